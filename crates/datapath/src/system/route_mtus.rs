//! MTUs of IPv4 routes. The kernel's forwarding keeps to them, but XDP's route look-up reports those of interfaces only, unless an MTU
//! is locked.

use super::route::attributes;
use crate::boundary::{ask, ip_address};
use libc::{RT_TABLE_MAIN, RTA_DST, RTA_METRICS, RTA_PRIORITY, RTM_GETROUTE, RTM_NEWROUTE};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

const RTAX_MTU: u16 = 2;
const RTMSG_LEN: usize = 12;

/// Networks with their prefix lengths, and the MTUs of their routes; 0: that of the interface.
pub type RouteMtus = HashMap<(Ipv4Addr, u8), u32>;

/// The routes of the main table with an MTU, and those without within these.
pub fn route_mtus() -> io::Result<RouteMtus> {
    let mut request = vec![0; RTMSG_LEN];
    (request[0], request[4]) = (libc::AF_INET as u8, RT_TABLE_MAIN);
    let mut best: HashMap<(Ipv4Addr, u8), (u32, u32)> = HashMap::new();
    ask(RTM_GETROUTE, &request, |kind, body| {
        let Some((network, metric, mtu)) = route(body).filter(|_| kind == RTM_NEWROUTE) else { return };
        let chosen = best.entry(network).or_insert((metric, mtu));
        if metric < chosen.0 {
            *chosen = (metric, mtu);
        }
    })?;
    Ok(limited(best.into_iter().map(|(network, (_, mtu))| (network, mtu)).collect()))
}

/// Leaves out what neither has an MTU nor is within a network with one.
fn limited(mut routes: Vec<((Ipv4Addr, u8), u32)>) -> RouteMtus {
    routes.sort_unstable();
    let mut around: Vec<(Ipv4Addr, u8)> = Vec::new();
    let mut kept = RouteMtus::new();
    for (network, mtu) in routes {
        while around.pop_if(|outer| !contains(*outer, network.0)).is_some() {}
        if mtu != 0 || !around.is_empty() {
            kept.insert(network, mtu);
        }
        if mtu != 0 {
            around.push(network);
        }
    }
    kept
}

fn contains((network, prefix): (Ipv4Addr, u8), address: Ipv4Addr) -> bool {
    let differing = network.to_bits() ^ address.to_bits();
    differing.checked_shr(32u32.saturating_sub(prefix.into())).unwrap_or(0) == 0
}

/// Reads struct rtmsg and attributes: network, metric, MTU or 0.
fn route(body: &[u8]) -> Option<((Ipv4Addr, u8), u32, u32)> {
    let (head, rest) = body.split_at_checked(RTMSG_LEN)?;
    if head.get(4) != Some(&RT_TABLE_MAIN) {
        return None;
    }
    let address = match value(rest, RTA_DST).map(ip_address) {
        None => Ipv4Addr::UNSPECIFIED,
        Some(Some(IpAddr::V4(address))) => address,
        Some(_) => return None,
    };
    let number = |value: &[u8]| Some(u32::from_ne_bytes(*value.first_chunk()?));
    let metric = value(rest, RTA_PRIORITY).and_then(number).unwrap_or(0);
    let mtu = value(rest, RTA_METRICS).and_then(|metrics| value(metrics, RTAX_MTU)).and_then(number);
    Some(((address, *head.get(1)?), metric, mtu.unwrap_or(0)))
}

fn value(octets: &[u8], wanted: u16) -> Option<&[u8]> {
    /// `NLA_F_NESTED`
    const NESTED: u16 = 1 << 15;
    attributes(octets).find(|(kind, _)| kind & !NESTED == wanted).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::enter_namespace;
    use std::process::Command;

    #[test]
    fn routes_with_an_mtu_and_longer_ones_are_read() {
        if !enter_namespace() {
            return;
        }
        for command in [
            "link add n6 type veth peer name server",
            "link set n6 up",
            "link set server up",
            "addr add 192.0.2.1/24 dev n6",
            "route add 198.51.100.0/24 via 192.0.2.2 mtu 1300",
            "route add 198.51.100.0/24 via 192.0.2.2 mtu 1200 metric 7",
            "route add 198.51.100.128/25 via 192.0.2.2",
            "route add 203.0.113.0/24 via 192.0.2.2 mtu lock 1280",
            "route add 203.0.114.0/24 via 192.0.2.2",
        ] {
            assert!(Command::new("ip").args(command.split(' ')).status().unwrap().success(), "{command}");
        }
        let network = |text: &str, prefix| (text.parse::<Ipv4Addr>().unwrap(), prefix);
        let expected = [
            (network("198.51.100.0", 24), 1300),
            (network("198.51.100.128", 25), 0),
            (network("203.0.113.0", 24), 1280),
        ];
        assert_eq!(route_mtus().unwrap(), RouteMtus::from(expected));
        assert!(
            Command::new("ip")
                .args("route add default via 192.0.2.2 mtu 1400".split(' '))
                .status()
                .unwrap()
                .success()
        );
        let all = route_mtus().unwrap();
        assert_eq!((all[&network("0.0.0.0", 0)], all[&network("203.0.114.0", 24)]), (1400, 0));
    }
}
