//! Networks that the kernel reaches by interfaces towards gNBs and other UPFs: they are the core's, and closed to UEs.

use super::host::{ask, ip_address};
use super::{one_sided_interfaces, with_n3_address};
use crate::config::DatapathConfig;
use crate::sys::interface_index;
use crate::system::attributes;
use libc::{RT_TABLE_MAIN, RTA_DST, RTA_MULTIPATH, RTA_OIF, RTA_PRIORITY, RTM_GETROUTE, RTM_NEWROUTE};
use pith_upf::contract::AddressRange;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const RTMSG_LEN: usize = 12;
/// Length of struct rtnexthop.
const RTNEXTHOP_LEN: usize = 8;
const FAMILIES: [u8; 2] = [libc::AF_INET as u8, libc::AF_INET6 as u8];

/// The interfaces whose networks are closed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TunnelSide {
    interfaces: Vec<String>,
    /// Not those with a default route: they lead to the data network, too.
    unless_default: bool,
}

/// A network of the kernel's routing table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoutedNetwork {
    pub network: AddressRange,
    /// Whether it is reached by one of the interfaces; otherwise it is within such a network.
    pub is_behind: bool,
}

impl TunnelSide {
    /// Those that the configuration makes one-sided; without configured interfaces those with N3's addresses.
    pub fn of(config: &DatapathConfig) -> Self {
        if config.interfaces.is_empty() {
            return Self { interfaces: with_n3_address(config), unless_default: true };
        }
        Self { interfaces: one_sided_interfaces(config), unless_default: false }
    }

    pub fn is_empty(&self) -> bool {
        self.interfaces.is_empty()
    }

    /// Reads the networks behind the interfaces, and those within them that are reached otherwise.
    pub fn networks(&self) -> io::Result<Vec<RoutedNetwork>> {
        let devices: Vec<u32> =
            self.interfaces.iter().filter_map(|name| interface_index(name).ok()).collect();
        let mut networks = Vec::new();
        for family in FAMILIES.into_iter().filter(|_| !devices.is_empty()) {
            networks.extend(self.behind(&read(family)?, &devices));
        }
        Ok(networks)
    }

    fn behind(&self, routes: &[Route], devices: &[u32]) -> Vec<RoutedNetwork> {
        let is_default = |route: &&Route| route.network.prefix == 0;
        let mut devices = devices.to_vec();
        if self.unless_default {
            let by_default: Vec<_> =
                routes.iter().filter(is_default).flat_map(|route| &route.devices).collect();
            devices.retain(|device| !by_default.contains(&device));
        }
        let best = choose(routes, &devices);
        let mut sorted: Vec<_> =
            best.into_iter().map(|(network, (_, is_behind))| (network, is_behind)).collect();
        sorted.sort_by_key(|(network, _)| (network.address, network.prefix));
        let (mut networks, mut around) = (Vec::new(), Vec::<AddressRange>::new());
        for (network, is_behind) in sorted {
            while around.pop_if(|outer| !outer.contains(network.address)).is_some() {}
            if is_behind || !around.is_empty() {
                networks.push(RoutedNetwork { network, is_behind });
            }
            if is_behind {
                around.push(network);
            }
        }
        networks
    }
}

#[derive(Debug)]
struct Route {
    network: AddressRange,
    metric: u32,
    /// None for a route to no interface.
    devices: Vec<u32>,
}

/// Of each network the routes with the lowest metric: whether one of them leads by these devices.
fn choose(routes: &[Route], devices: &[u32]) -> HashMap<AddressRange, (u32, bool)> {
    let mut best: HashMap<AddressRange, (u32, bool)> = HashMap::new();
    for Route { network, metric, devices: by } in routes {
        let is_behind = by.iter().any(|device| devices.contains(device));
        let chosen = best.entry(*network).or_insert((*metric, is_behind));
        if *metric < chosen.0 {
            *chosen = (*metric, is_behind);
        } else if *metric == chosen.0 {
            chosen.1 |= is_behind;
        }
    }
    best
}

/// The routes of the main table.
fn read(family: u8) -> io::Result<Vec<Route>> {
    let mut request = vec![0; RTMSG_LEN];
    (request[0], request[4]) = (family, RT_TABLE_MAIN);
    let mut routes = Vec::new();
    ask(RTM_GETROUTE, &request, |kind, body| {
        if kind == RTM_NEWROUTE {
            routes.extend(route(body));
        }
    })?;
    Ok(routes)
}

/// Reads struct rtmsg and attributes.
fn route(body: &[u8]) -> Option<Route> {
    let (head, rest) = body.split_at_checked(RTMSG_LEN)?;
    if head.get(4) != Some(&RT_TABLE_MAIN) {
        return None;
    }
    let value = |wanted| attributes(rest).find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
    let is_v4 = *head.first()? == libc::AF_INET as u8;
    let any: IpAddr = if is_v4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let address = value(RTA_DST).map_or(Some(any), ip_address)?;
    let mut devices: Vec<u32> = value(RTA_OIF).and_then(|value| word(value, 0)).into_iter().collect();
    let mut hops = value(RTA_MULTIPATH).unwrap_or_default();
    while let Some(length) = hops.first_chunk().map(|length| usize::from(u16::from_ne_bytes(*length))) {
        devices.extend(word(hops, 4));
        hops = hops.get(length.max(RTNEXTHOP_LEN).next_multiple_of(4)..).unwrap_or_default();
    }
    Some(Route {
        network: AddressRange { address, prefix: *head.get(1)? }.network(),
        metric: value(RTA_PRIORITY).and_then(|value| word(value, 0)).unwrap_or(0),
        devices,
    })
}

fn word(octets: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*octets.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(network: &str, metric: u32, devices: &[u32]) -> Route {
        let (address, prefix) = network.split_once('/').unwrap();
        let network = AddressRange { address: address.parse().unwrap(), prefix: prefix.parse().unwrap() };
        Route { network, metric, devices: devices.to_vec() }
    }

    fn behind(unless_default: bool, routes: &[Route]) -> Vec<(String, bool)> {
        let side = TunnelSide { interfaces: vec!["n3".into()], unless_default };
        let text = |routed: RoutedNetwork| {
            (format!("{}/{}", routed.network.address, routed.network.prefix), routed.is_behind)
        };
        side.behind(routes, &[3]).into_iter().map(text).collect()
    }

    #[test]
    fn the_networks_behind_an_interface_and_holes_in_them_are_found() {
        let routes = [
            route("0.0.0.0/0", 0, &[6]),
            route("10.0.0.0/8", 5, &[3]),
            route("10.0.0.0/8", 9, &[6]),
            route("10.7.0.0/16", 0, &[6]),
            route("10.8.0.0/16", 0, &[]),
            route("172.16.0.0/24", 0, &[6, 3]),
            route("172.17.0.0/24", 0, &[6]),
            route("172.18.0.0/24", 0, &[6]),
            route("172.18.0.0/24", 0, &[3]),
        ];
        let closed = |name: &str| (name.to_owned(), true);
        let hole = |name: &str| (name.to_owned(), false);
        let expected = [
            closed("10.0.0.0/8"),
            hole("10.7.0.0/16"),
            hole("10.8.0.0/16"),
            closed("172.16.0.0/24"),
            closed("172.18.0.0/24"),
        ];
        assert_eq!(behind(false, &routes), expected);
        assert_eq!(behind(true, &routes), expected);
    }

    #[test]
    fn an_interface_that_was_not_configured_leads_to_n6_with_a_default_route() {
        let routes =
            [route("0.0.0.0/0", 100, &[3]), route("0.0.0.0/0", 0, &[6]), route("10.0.0.0/8", 5, &[3])];
        assert_eq!(behind(true, &routes), []);
        assert_eq!(behind(false, &routes), [("10.0.0.0/8".to_owned(), true)]);
    }
}
