//! This host's addresses, read from the kernel.

use super::{RoutedNetwork, TunnelSide, only};
use crate::sys::NetlinkSocket;
use crate::system::{attributes, messages};
use libc::{RTA_DST, RTM_GETADDR, RTM_GETROUTE, RTM_NEWADDR, RTM_NEWROUTE, RTN_BROADCAST};
use pith_upf::contract::AddressRange;
use std::io;
use std::net::IpAddr;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
/// The routing table of locally delivered addresses.
const TABLE_LOCAL: u8 = 255;
/// Lengths of struct nlmsghdr, struct ifaddrmsg, struct rtmsg.
const HEADER_LEN: usize = 16;
const IFADDRMSG_LEN: usize = 8;
const RTMSG_LEN: usize = 12;
/// The longest datagram of the kernel, which contains as many messages as fit.
const LONGEST_ANSWER: usize = 32_768;
/// A network with a shorter prefix is not a link's: it would close most of the Internet.
const SHORTEST_V4: u8 = 8;
const SHORTEST_V6: u8 = 16;
const FAMILIES: [u8; 2] = [libc::AF_INET as u8, libc::AF_INET6 as u8];

/// Addresses of a host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Host {
    /// Addresses of interfaces, each with its network's prefix length.
    pub interfaces: Vec<AddressRange>,
    /// Locally delivered addresses, including broadcast and anycast addresses and networks of the local
    /// routing table.
    pub local: Vec<AddressRange>,
    /// Broadcast addresses of interfaces' networks.
    pub broadcast: Vec<IpAddr>,
    /// Networks behind the interfaces towards gNBs and other UPFs.
    pub tunnel_side: Vec<RoutedNetwork>,
}

impl Host {
    /// Reads this host's addresses by netlink, and the networks behind the interfaces of that side.
    pub fn read(side: &TunnelSide) -> io::Result<Self> {
        let mut host = Self { tunnel_side: side.networks()?, ..Self::default() };
        for family in FAMILIES {
            let mut request = vec![0; IFADDRMSG_LEN];
            request[0] = family;
            ask(RTM_GETADDR, &request, |kind, body| {
                if kind == RTM_NEWADDR {
                    host.interfaces.extend(interface_address(body));
                }
            })?;
            let mut request = vec![0; RTMSG_LEN];
            (request[0], request[4]) = (family, TABLE_LOCAL);
            ask(RTM_GETROUTE, &request, |kind, body| {
                if let Some((range, kind)) = local_route(body).filter(|_| kind == RTM_NEWROUTE) {
                    host.local.push(range);
                    host.broadcast.extend((kind == RTN_BROADCAST).then_some(range.address));
                }
            })?;
        }
        host.local.extend(host.interfaces.iter().map(|interface| only(interface.address)));
        host.local.sort_by_key(|range| (range.address, range.prefix));
        host.local.dedup();
        Ok(host)
    }

    /// The networks of interfaces that have an address, and the address itself.
    pub fn networks_of(&self, address: IpAddr) -> impl Iterator<Item = AddressRange> {
        let has = move |interface: &&AddressRange| {
            let shortest = if address.is_ipv4() { SHORTEST_V4 } else { SHORTEST_V6 };
            interface.address == address && interface.prefix >= shortest
        };
        self.interfaces.iter().filter(has).map(AddressRange::network).chain([only(address)])
    }
}

/// Sends a dump request, and passes kind and body of each answer to `take`.
pub fn ask(kind: u16, request: &[u8], take: impl FnMut(u16, &[u8])) -> io::Result<()> {
    ask_of(libc::NETLINK_ROUTE, kind, request, take)
}

/// As [`ask`], of another subsystem of the kernel.
pub fn ask_of(
    protocol: libc::c_int,
    kind: u16,
    request: &[u8],
    mut take: impl FnMut(u16, &[u8]),
) -> io::Result<()> {
    let socket = NetlinkSocket::of(protocol)?;
    // Requires Linux 4.20; earlier kernels list all routing tables.
    let _ = socket.ask_strictly();
    let length = (HEADER_LEN + request.len()) as u32;
    let words = [&kind.to_ne_bytes()[..], &DUMP.to_ne_bytes(), &1u32.to_ne_bytes(), &[0; 4], request];
    let message = [&length.to_ne_bytes()[..], &words.concat()].concat();
    let mut answer = vec![0; LONGEST_ANSWER];
    let mut length = socket.exchange(&message, &mut answer)?;
    loop {
        for (kind, body) in messages(answer.get(..length).unwrap_or_default()) {
            match kind {
                NLMSG_DONE => return Ok(()),
                NLMSG_ERROR => {
                    let code = body.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
                    return Err(io::Error::from_raw_os_error(code.saturating_neg()));
                }
                kind => take(kind, body),
            }
        }
        length = socket.receive(&mut answer)?;
    }
}

/// Reads struct ifaddrmsg and attributes. On a point-to-point link IFA_ADDRESS is the other end's.
fn interface_address(body: &[u8]) -> Option<AddressRange> {
    let (head, rest) = body.split_at_checked(IFADDRMSG_LEN)?;
    let value = |wanted| attributes(rest).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
    let address = ip_address(value(IFA_LOCAL).or_else(|| value(IFA_ADDRESS))?)?;
    Some(AddressRange { address, prefix: *head.get(1)? })
}

/// Reads struct rtmsg and attributes: a network and its type of route.
fn local_route(body: &[u8]) -> Option<(AddressRange, u8)> {
    let (head, rest) = body.split_at_checked(RTMSG_LEN)?;
    if head.get(4) != Some(&TABLE_LOCAL) {
        return None;
    }
    let (_, address) = attributes(rest).find(|(kind, _)| *kind == RTA_DST)?;
    Some((AddressRange { address: ip_address(address)?, prefix: *head.get(1)? }, *head.get(7)?))
}

/// The address of 4 or 16 octets.
pub fn ip_address(octets: &[u8]) -> Option<IpAddr> {
    let v4 = || <[u8; 4]>::try_from(octets).ok().map(IpAddr::from);
    v4().or_else(|| <[u8; 16]>::try_from(octets).ok().map(IpAddr::from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::enter_namespace;
    use std::process::Command;

    #[test]
    fn local_addresses_are_read_from_the_kernel() {
        if !enter_namespace() {
            return;
        }
        for command in [
            "link set lo up",
            "link add n6 type veth peer name server",
            "link set n6 up",
            "link set server up",
            "addr add 192.0.2.1/24 dev n6",
            "addr add 2001:db8::1/64 dev n6 nodad",
            "route add local 198.51.100.0/24 dev lo",
        ] {
            assert!(Command::new("ip").args(command.split(' ')).status().unwrap().success(), "{command}");
        }
        let host = Host::read(&TunnelSide::default()).unwrap();
        let has = |text: &str, prefix| {
            host.local.contains(&AddressRange { address: text.parse().unwrap(), prefix })
        };
        assert!(
            has("192.0.2.1", 32) && has("192.0.2.255", 32) && has("127.0.0.0", 8) && has("2001:db8::1", 128)
        );
        assert!(has("198.51.100.0", 24), "{host:?}");
        let is_broadcast = |text: &str| host.broadcast.contains(&text.parse().unwrap());
        assert!(is_broadcast("192.0.2.255") && !is_broadcast("192.0.2.1"), "{host:?}");
        let own = "192.0.2.1".parse().unwrap();
        let networks: Vec<_> = host.networks_of(own).collect();
        assert_eq!(networks, [AddressRange { address: "192.0.2.0".parse().unwrap(), prefix: 24 }, only(own)]);
        assert_eq!(host.networks_of("203.0.113.1".parse().unwrap()).count(), 1);
    }
}
