//! Reads routes, neighbours and links by rtnetlink.

use super::{Fib, Neighbour, NextHop, Route};
use crate::boundary::{ask, ip_address};
use crate::packet::Prefixes;
use crate::system::{attributes, has_foreign_rule};
use libc::{
    ARPHRD_ETHER, NDA_DST, NDA_LLADDR, NUD_STALE, RT_TABLE_LOCAL, RT_TABLE_MAIN, RTA_DST, RTA_GATEWAY,
    RTA_OIF, RTA_PRIORITY, RTM_GETLINK, RTM_GETNEIGH, RTM_GETROUTE, RTM_NEWLINK, RTM_NEWNEIGH, RTM_NEWROUTE,
    RTN_UNICAST,
};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::AtomicBool;
use std::{fs, io};

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_MASTER: u16 = 10;
/// Own metrics such as an MTU, several next hops, a gateway of the other family, an encapsulation: for the kernel.
const FOR_THE_KERNEL: [u16; 4] = [8, 9, 18, 22];
/// Lengths of struct ifinfomsg, struct rtmsg, struct ndmsg.
const IFINFOMSG_LEN: usize = 16;
const RTMSG_LEN: usize = 12;
const NDMSG_LEN: usize = 12;
const IFF_UP: u32 = 1;
/// `RTNH_F_DEAD | RTNH_F_LINKDOWN`.
const RTNH_DOWN: u32 = 1 | 16;
/// `NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT`.
const NUD_RESOLVED: u16 = 2 | NUD_STALE | 8 | 16 | 128;
/// With more routes, or neighbours, each change would cost too much: the kernel forwards.
const MOST_ROUTES: usize = 4_096;
const MOST_NEIGHBOURS: usize = 16_384;
const FAMILIES: [u8; 2] = [libc::AF_INET as u8, libc::AF_INET6 as u8];

/// An Ethernet interface.
#[derive(Debug)]
struct Link {
    address: [u8; 6],
    mtu: u16,
    /// Of IPv6 packets.
    mtu_v6: u16,
}

/// A route before the choice by metric.
#[derive(Debug)]
struct Candidate {
    network: (IpAddr, u8),
    metric: u32,
    route: Route,
    /// For all sources and types of service.
    is_general: bool,
}

impl Fib {
    /// Reads the current tables. Packets never leave by the devices of `except`; they come from `tun`.
    pub fn read(except: &[String], tun: &str) -> io::Result<Self> {
        let mut fib = Self::default();
        for family in FAMILIES {
            if has_foreign_rule(family)? {
                return Ok(Self::default());
            }
        }
        let links = read_links(except)?;
        let forwarded = FAMILIES.into_iter().filter(|family| is_forwarding(*family, tun));
        for family in forwarded {
            fib.read_routes(family, &links)?;
            fib.read_neighbours(family, &links)?;
        }
        Ok(fib)
    }

    fn read_routes(&mut self, family: u8, links: &HashMap<u32, Link>) -> io::Result<()> {
        let mut candidates = Vec::new();
        let mut request = vec![0; RTMSG_LEN];
        request[0] = family;
        ask(RTM_GETROUTE, &request, |kind, body| {
            let table = body.get(4).copied().filter(|_| kind == RTM_NEWROUTE);
            match table {
                Some(RT_TABLE_LOCAL) => {
                    if let Some((network, length)) = network_of(body) {
                        self.local.insert(network, length, ());
                    }
                }
                Some(RT_TABLE_MAIN) if candidates.len() <= MOST_ROUTES => {
                    candidates.extend(candidate(body, links))
                }
                _ => {}
            }
        })?;
        if candidates.len() <= MOST_ROUTES {
            choose(candidates, &mut self.routes);
        }
        Ok(())
    }

    fn read_neighbours(&mut self, family: u8, links: &HashMap<u32, Link>) -> io::Result<()> {
        let mut request = vec![0; NDMSG_LEN];
        request[0] = family;
        ask(RTM_GETNEIGH, &request, |kind, body| {
            if kind == RTM_NEWNEIGH && self.next_hops.len() < MOST_NEIGHBOURS {
                self.next_hops.extend(next_hop(body, links));
            }
        })
    }
}

/// The neighbours on these devices whose link address the kernel has not confirmed recently.
pub(super) fn stale_neighbours(devices: &[u32]) -> io::Result<Vec<Neighbour>> {
    let (links, mut fib) = (read_links(&[])?, Fib::default());
    for family in FAMILIES {
        fib.read_neighbours(family, &links)?;
    }
    let is_due = |(neighbour, hop): (Neighbour, NextHop)| {
        (hop.is_stale && devices.contains(&neighbour.device)).then_some(neighbour)
    };
    Ok(fib.next_hops.into_iter().filter_map(is_due).collect())
}

/// The Ethernet interfaces that are up and belong to no bridge, bonding or VRF.
fn read_links(except: &[String]) -> io::Result<HashMap<u32, Link>> {
    let mut links = HashMap::new();
    ask(RTM_GETLINK, &[0; IFINFOMSG_LEN], |kind, body| {
        if kind == RTM_NEWLINK {
            links.extend(link(body, except));
        }
    })?;
    Ok(links)
}

/// Reads struct ifinfomsg and attributes.
fn link(body: &[u8], except: &[String]) -> Option<(u32, Link)> {
    let (head, rest) = body.split_at_checked(IFINFOMSG_LEN)?;
    let kind = u16::from_ne_bytes(*head.get(2..)?.first_chunk()?);
    let name = value(rest, IFLA_IFNAME)?;
    let is_excepted = except.iter().any(|except| name.strip_suffix(&[0]) == Some(except.as_bytes()));
    let is_usable =
        kind == ARPHRD_ETHER && word(head, 8)? & IFF_UP != 0 && value(rest, IFLA_MASTER).is_none();
    if is_excepted || !is_usable {
        return None;
    }
    let address = *value(rest, IFLA_ADDRESS)?.as_array()?;
    let mtu = word(value(rest, IFLA_MTU)?, 0)?.min(u16::MAX.into()) as u16;
    let name = std::str::from_utf8(name).ok()?.trim_end_matches('\0');
    let of_v6 = setting(&format!("ipv6/conf/{name}/mtu")).and_then(|text| text.parse().ok());
    Some((word(head, 4)?, Link { address, mtu, mtu_v6: of_v6.map_or(mtu, |of_v6: u16| of_v6.min(mtu)) }))
}

/// Whether the kernel forwards packets of a family from that interface.
fn is_forwarding(family: u8, tun: &str) -> bool {
    let is_v4 = family == libc::AF_INET as u8;
    let switch =
        if is_v4 { format!("ipv4/conf/{tun}/forwarding") } else { "ipv6/conf/all/forwarding".into() };
    setting(&switch).is_none_or(|value| value != "0")
}

/// A setting of the network namespace.
fn setting(path: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/sys/net/{path}")).ok()?;
    Some(text.trim().to_owned())
}

/// Reads struct rtmsg and attributes of a route of the main table.
fn candidate(body: &[u8], links: &HashMap<u32, Link>) -> Option<Candidate> {
    let network = network_of(body)?;
    let (head, rest) = body.split_at_checked(RTMSG_LEN)?;
    let metric = value(rest, RTA_PRIORITY).and_then(|value| word(value, 0)).unwrap_or(0);
    let is_general = head.get(2..4)? == [0, 0];
    let route = plain_route(head, rest, links).unwrap_or(Route::Kernel);
    Some(Candidate { network, metric, route, is_general })
}

/// The route by one Ethernet next hop for all sources and types of service; `None`: another kind.
fn plain_route(head: &[u8], rest: &[u8], links: &HashMap<u32, Link>) -> Option<Route> {
    let [_, _, source_length, tos, _, _, _, kind, ..] = *head else { return None };
    let is_plain = [source_length, tos, kind] == [0, 0, RTN_UNICAST] && word(head, 8)? & RTNH_DOWN == 0;
    if !is_plain || FOR_THE_KERNEL.into_iter().any(|kind| value(rest, kind).is_some()) {
        return None;
    }
    let device = word(value(rest, RTA_OIF)?, 0).filter(|device| links.contains_key(device))?;
    Some(match value(rest, RTA_GATEWAY) {
        Some(gateway) => Route::Gateway(Neighbour { device, address: ip_address(gateway)? }),
        None => Route::OnLink(device),
    })
}

/// The network of a route; without RTA_DST all addresses.
fn network_of(route: &[u8]) -> Option<(IpAddr, u8)> {
    let (head, rest) = route.split_at_checked(RTMSG_LEN)?;
    let is_v4 = *head.first()? == libc::AF_INET as u8;
    let any = if is_v4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    Some((value(rest, RTA_DST).map_or(Some(any), ip_address)?, *head.get(1)?))
}

/// Of routes to one network that with the lowest metric; two with the same are several next hops. The kernel prefers those of some
/// sources or types of service whatever their metric, so it decides if there are any.
fn choose(candidates: Vec<Candidate>, routes: &mut Prefixes<Route>) {
    let mut best: HashMap<(IpAddr, u8), (u32, Route)> = HashMap::new();
    for Candidate { network, metric, route, is_general } in candidates {
        let metric = if is_general { metric.saturating_add(1) } else { 0 };
        match best.entry(network) {
            Entry::Vacant(place) => {
                place.insert((metric, route));
            }
            Entry::Occupied(mut place) if metric < place.get().0 => {
                place.insert((metric, route));
            }
            Entry::Occupied(mut place) if metric == place.get().0 => place.get_mut().1 = Route::Kernel,
            Entry::Occupied(_) => {}
        }
    }
    for ((network, length), (_, route)) in best {
        routes.insert(network, length, route);
    }
}

/// Reads struct ndmsg and attributes.
fn next_hop(body: &[u8], links: &HashMap<u32, Link>) -> Option<(Neighbour, NextHop)> {
    let (head, rest) = body.split_at_checked(NDMSG_LEN)?;
    let state = u16::from_ne_bytes(*head.get(8..)?.first_chunk()?);
    let device = word(head, 4).filter(|_| state & NUD_RESOLVED != 0)?;
    let Link { address: own, mtu, mtu_v6 } = links.get(&device)?;
    let to: [u8; 6] = *value(rest, NDA_LLADDR)?.as_array()?;
    let mut ethernet = [0; 12];
    ethernet.iter_mut().zip(to.iter().chain(own)).for_each(|(octet, from)| *octet = *from);
    let neighbour = Neighbour { device, address: ip_address(value(rest, NDA_DST)?)? };
    let is_stale = state & NUD_STALE != 0;
    let mtu = if neighbour.address.is_ipv4() { *mtu } else { *mtu_v6 };
    Some((neighbour, NextHop { device, ethernet, mtu, is_stale, used: AtomicBool::new(false) }))
}

fn word(octets: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*octets.get(at..)?.first_chunk()?))
}

fn value(octets: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(octets).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_decides_if_a_route_is_for_some_sources() {
        let network: (IpAddr, u8) = ("192.0.2.0".parse().unwrap(), 24);
        let route = |metric, device, is_general| Candidate {
            network,
            metric,
            route: if is_general { Route::OnLink(device) } else { Route::Kernel },
            is_general,
        };
        let chosen = |candidates| {
            let mut routes = Prefixes::default();
            choose(candidates, &mut routes);
            routes.find(network.0).copied()
        };
        assert_eq!(chosen(vec![route(0, 1, true), route(5, 2, true)]), Some(Route::OnLink(1)));
        assert_eq!(
            chosen(vec![route(5, 1, true), route(5, 2, true)]),
            Some(Route::Kernel),
            "several next hops"
        );
        assert_eq!(chosen(vec![route(0, 1, true), route(2048, 2, false)]), Some(Route::Kernel));
        assert_eq!(chosen(vec![route(2048, 2, false), route(0, 1, true)]), Some(Route::Kernel));
    }
}
