//! Requests to the kernel's routing tables (rtnetlink, RFC 3549), limited to those needed.

use crate::sys::{NetlinkSocket, interface_index};
use libc::{
    RT_SCOPE_LINK, RT_SCOPE_UNIVERSE, RTA_DST, RTA_GATEWAY, RTA_OIF, RTA_TABLE, RTM_DELROUTE, RTM_DELRULE,
    RTM_GETROUTE, RTM_NEWADDR, RTM_NEWLINK, RTM_NEWROUTE, RTM_NEWRULE, RTN_UNICAST,
};
use pith_upf::contract::AddressRange;
use std::net::IpAddr;
use std::{fmt, io};

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_CREATE: u16 = 0x400;
const NLM_F_DUMP: u16 = 0x300;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFLA_GROUP: u16 = 27;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
/// No duplicate address detection: no other host is on the interface.
const IFA_F_NODAD: u8 = 2;
const FRA_SRC: u16 = 2;
const FRA_IIFNAME: u16 = 3;
const FRA_PRIORITY: u16 = 6;
const FRA_TABLE: u16 = 15;
const FRA_PROTOCOL: u16 = 21;
/// The origin of a route or rule (RTPROT): a number that no routing daemon uses.
pub const RTPROT_PITH: u8 = 197;
const FR_ACT_TO_TBL: u8 = 1;
const IFF_UP: u32 = 1;
const HEADER_LEN: usize = 16;
/// struct rtmsg
const RTMSG_LEN: usize = 12;
/// The longest datagram of the kernel, which contains as many messages as fit.
const LONGEST_ANSWER: usize = 32_768;

const FAMILIES: [u8; 2] = [libc::AF_INET as u8, libc::AF_INET6 as u8];

/// A routing rule: packets from a network, received by an interface, use a routing table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The source network.
    pub from: AddressRange,
    pub interface: String,
    pub table: u32,
    /// Rules are evaluated from the lowest priority number up.
    pub priority: u32,
}

/// A route of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableRoute {
    pub table: u32,
    /// The destination.
    pub to: AddressRange,
    /// The next hop; `None`: on the interface's own link.
    pub via: Option<IpAddr>,
}

impl fmt::Display for TableRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "to {}/{}", self.to.address, self.to.prefix)?;
        self.via.map_or(Ok(()), |via| write!(f, " via {via}"))
    }
}

/// Requests for one interface.
#[derive(Debug)]
pub struct Route {
    socket: NetlinkSocket,
    interface: u32,
    sequence: u32,
}

impl Route {
    /// Opens the interface of that name.
    pub fn open(interface: &str) -> io::Result<Self> {
        Ok(Self { socket: NetlinkSocket::open()?, interface: interface_index(interface)?, sequence: 0 })
    }

    /// Sets the MTU and the queue length.
    pub fn set_lengths(&mut self, mtu: u32, queue: u32) -> io::Result<()> {
        let mut request = self.link_request(0);
        attribute(&mut request, IFLA_MTU, &mtu.to_ne_bytes());
        attribute(&mut request, IFLA_TXQLEN, &queue.to_ne_bytes());
        self.request(RTM_NEWLINK, 0, &request)
    }

    /// Sets the group of interfaces that packet filters can compare.
    pub fn set_group(&mut self, group: u32) -> io::Result<()> {
        let mut request = self.link_request(0);
        attribute(&mut request, IFLA_GROUP, &group.to_ne_bytes());
        self.request(RTM_NEWLINK, 0, &request)
    }

    pub fn bring_up(&mut self) -> io::Result<()> {
        self.request(RTM_NEWLINK, 0, &self.link_request(IFF_UP))
    }

    /// Adds an address to the interface, and thereby the route to its network.
    pub fn add_address(&mut self, address: IpAddr, prefix: u8) -> io::Result<()> {
        let (family, octets) = parts(address);
        // struct ifaddrmsg
        let mut request = vec![family, prefix, IFA_F_NODAD, 0];
        request.extend(self.interface.to_ne_bytes());
        attribute(&mut request, IFA_LOCAL, &octets);
        attribute(&mut request, IFA_ADDRESS, &octets);
        self.request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &request)
    }

    pub fn add_rule(&mut self, rule: &Rule) -> io::Result<()> {
        self.request(RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, &rule_request(rule))
    }

    pub fn delete_rule(&mut self, rule: &Rule) -> io::Result<()> {
        self.request(RTM_DELRULE, 0, &rule_request(rule))
    }

    /// Deletes Pith's rules for packets received by an interface.
    pub fn delete_rules(&mut self, interface: &str) {
        for family in FAMILIES {
            // The kernel matches only the attributes that the request contains.
            let request = rule_of_ours(family, 0, interface);
            while self.request(RTM_DELRULE, 0, &request).is_ok() {}
        }
    }

    pub fn add_route(&mut self, route: &TableRoute) -> io::Result<()> {
        let request = self.route_request(route);
        self.request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &request)
    }

    pub fn delete_route(&mut self, route: &TableRoute) -> io::Result<()> {
        let request = self.route_request(route);
        self.request(RTM_DELROUTE, 0, &request)
    }

    /// Deletes Pith's routes in a table.
    pub fn delete_routes(&mut self, table: u32) -> io::Result<()> {
        for family in FAMILIES {
            for route in self.routes_of_ours(family, table)? {
                self.request(RTM_DELROUTE, 0, &route)?;
            }
        }
        Ok(())
    }

    /// Pith's routes, as encoded by the kernel.
    fn routes_of_ours(&mut self, family: u8, table: u32) -> io::Result<Vec<Vec<u8>>> {
        let mut any = [0; RTMSG_LEN];
        any[0] = family;
        let request = self.message(RTM_GETROUTE, NLM_F_DUMP, &any);
        let mut answer = vec![0; LONGEST_ANSWER];
        let mut length = self.socket.exchange(&request, &mut answer)?;
        let mut found = Vec::new();
        loop {
            for (kind, body) in messages(answer.get(..length).unwrap_or_default()) {
                match kind {
                    NLMSG_DONE => return Ok(found),
                    NLMSG_ERROR => return acknowledged(kind, body).map(|()| found),
                    _ if is_ours(body, table) => found.push(body.to_vec()),
                    _ => {}
                }
            }
            length = self.socket.receive(&mut answer)?;
        }
    }

    fn route_request(&self, route: &TableRoute) -> Vec<u8> {
        let (family, to) = parts(route.to.address);
        let scope = if route.via.is_some() { RT_SCOPE_UNIVERSE } else { RT_SCOPE_LINK };
        // struct rtmsg; the table number is an attribute
        let mut request = vec![family, route.to.prefix, 0, 0, 0, RTPROT_PITH, scope, RTN_UNICAST];
        request.extend(0u32.to_ne_bytes());
        attribute(&mut request, RTA_TABLE, &route.table.to_ne_bytes());
        attribute(&mut request, RTA_DST, &to);
        match route.via {
            Some(via) => attribute(&mut request, RTA_GATEWAY, &parts(via).1),
            None => attribute(&mut request, RTA_OIF, &self.interface.to_ne_bytes()),
        }
        request
    }

    /// struct ifinfomsg with `flags` to be set.
    fn link_request(&self, flags: u32) -> Vec<u8> {
        let words = [0, self.interface, flags, flags];
        words.into_iter().flat_map(u32::to_ne_bytes).collect()
    }

    fn request(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        let message = self.message(kind, flags | NLM_F_ACK, body);
        let mut answer = [0; 4096];
        let length = self.socket.exchange(&message, &mut answer)?;
        let (kind, body) = messages(answer.get(..length).unwrap_or_default()).next().unwrap_or_default();
        acknowledged(kind, body)
    }

    /// struct nlmsghdr and the body.
    fn message(&mut self, kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
        self.sequence += 1;
        let length = (HEADER_LEN + body.len()) as u32;
        let mut message = length.to_ne_bytes().to_vec();
        message.extend(kind.to_ne_bytes());
        message.extend((flags | NLM_F_REQUEST).to_ne_bytes());
        message.extend(self.sequence.to_ne_bytes());
        message.extend(0u32.to_ne_bytes());
        message.extend(body);
        message
    }
}

/// The address family and octets.
fn parts(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(v4) => (libc::AF_INET as u8, v4.octets().to_vec()),
        IpAddr::V6(v6) => (libc::AF_INET6 as u8, v6.octets().to_vec()),
    }
}

fn rule_request(rule: &Rule) -> Vec<u8> {
    let (family, from) = parts(rule.from.address);
    let mut request = rule_of_ours(family, rule.from.prefix, &rule.interface);
    attribute(&mut request, FRA_SRC, &from);
    attribute(&mut request, FRA_PRIORITY, &rule.priority.to_ne_bytes());
    attribute(&mut request, FRA_TABLE, &rule.table.to_ne_bytes());
    request
}

fn rule_of_ours(family: u8, from_prefix: u8, interface: &str) -> Vec<u8> {
    // struct fib_rule_hdr; the table number is an attribute
    let mut request = vec![family, 0, from_prefix, 0, 0, 0, 0, FR_ACT_TO_TBL];
    request.extend(0u32.to_ne_bytes());
    attribute(&mut request, FRA_IIFNAME, &[interface.as_bytes(), &[0]].concat());
    attribute(&mut request, FRA_PROTOCOL, &[RTPROT_PITH]);
    request
}

/// Whether Pith made a route (struct rtmsg, attributes) in that table.
fn is_ours(route: &[u8], table: u32) -> bool {
    let (head, rest) = route.split_at_checked(RTMSG_LEN).unwrap_or_default();
    let in_table = (RTA_TABLE, &table.to_ne_bytes()[..]);
    head.get(5) == Some(&RTPROT_PITH) && attributes(rest).any(|attribute| attribute == in_table)
}

/// Iterates over types and values of attributes.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?);
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// Iterates over types and bodies of an answer's messages.
pub fn messages(mut answer: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*answer.first_chunk()?) as usize;
        let kind = u16::from_ne_bytes(*answer.get(4..)?.first_chunk()?);
        let body = answer.get(HEADER_LEN..length)?;
        answer = answer.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, body))
    })
}

fn attribute(request: &mut Vec<u8>, kind: u16, value: &[u8]) {
    request.extend((value.len() as u16 + 4).to_ne_bytes());
    request.extend(kind.to_ne_bytes());
    request.extend(value);
    request.resize(request.len().next_multiple_of(4), 0);
}

/// Checks an acknowledgement: an error message with code 0; other codes are negative `errno`s.
fn acknowledged(kind: u16, body: &[u8]) -> io::Result<()> {
    match (kind, body.first_chunk().map(|code| i32::from_ne_bytes(*code))) {
        (NLMSG_ERROR, Some(0)) => Ok(()),
        (NLMSG_ERROR, Some(code)) => Err(io::Error::from_raw_os_error(code.saturating_neg())),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer is no acknowledgement")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_refusal_comes_back_as_its_error() {
        let mut route = Route::open("lo").unwrap();
        let error = route.add_address("192.0.2.1".parse().unwrap(), 99).unwrap_err();
        assert!(error.raw_os_error().is_some_and(|code| code > 0), "{error}");
        assert!(Route::open("no-such-interface").is_err());
    }

    #[test]
    fn attributes_are_padded_to_words() {
        let mut request = Vec::new();
        attribute(&mut request, 1, &[9; 5]);
        assert_eq!(request.len(), 12);
        assert_eq!(u16::from_ne_bytes([request[0], request[1]]), 9);
    }
}
