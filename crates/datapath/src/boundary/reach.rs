//! The destinations of UE packets, compiled for look-up. The longest matching prefix decides.

use super::{Boundary, Host, Permit, RoutedNetwork, Tenant, only};
use crate::config::UePool;
use crate::packet::{Flow, is_v4};
use pith_upf::contract::{AddressRange, UeAddress};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 destinations closed at every UPF: 'this network' (RFC 1122 3.2.1.3), loopback, link-local (RFC 3927),
/// multicast, which is not routed here, and the limited broadcast. 240.0.0.0/4 is reserved, but some
/// operators use it.
const CLOSED_V4: [(Ipv4Addr, u8); 5] = [
    (Ipv4Addr::UNSPECIFIED, 8),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::BROADCAST, 32),
];
/// IPv6 destinations closed at every UPF (RFC 4291 2.4): unspecified, loopback and IPv4-compatible addresses, IPv4-mapped
/// addresses, which could stand for closed IPv4 addresses, link-local and multicast.
const CLOSED_V6: [(Ipv6Addr, u8); 4] = [
    (Ipv6Addr::UNSPECIFIED, 96),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8),
];
/// The well-known prefix of IPv4/IPv6 translators (RFC 6052 2.1).
const NAT64: Ipv6Addr = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0);
const NAT64_BITS: u8 = 96;
/// Maximum number of tenants: the BPF program has eight bits for one, and other values of them.
pub const MAX_TENANTS: usize = 250;
const ICMP: u8 = 1;
/// Next header of an IPv6 fragment (RFC 8200 4.5).
const FRAGMENT_HEADER: u8 = 44;
const ICMPV6: u8 = 58;
/// Type of Echo Request and Echo Reply in ICMP (RFC 792) and ICMPv6 (RFC 4443 4).
const ECHOES: [(u8, u8); 4] = [(ICMP, 8), (ICMP, 0), (ICMPV6, 128), (ICMPV6, 129)];
/// Destination Unreachable, Time Exceeded and Parameter Problem of ICMP (RFC 792); the same and Packet Too Big of ICMPv6
/// (RFC 4443 3).
const ERRORS: [(u8, u8); 7] =
    [(ICMP, 3), (ICMP, 11), (ICMP, 12), (ICMPV6, 1), (ICMPV6, 2), (ICMPV6, 3), (ICMPV6, 4)];

/// To whom an address belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Area {
    /// To none of the below: all UEs reach it.
    Open,
    /// To the core or this host: UEs reach it by a permit only.
    Closed,
    /// To the UEs of that tenant.
    Tenant(u8),
    /// To a tunnel peer outside of all configured networks: UEs reach it, except by GTP-U.
    TunnelPeer,
}

/// The areas and the permits.
#[derive(Debug, PartialEq, Eq)]
pub struct Reach {
    v4: Spans<u32>,
    v6: Spans<u128>,
    entries: Vec<(AddressRange, Area)>,
    /// The pools and their tenants, longest prefix first.
    pools: Vec<(AddressRange, u8)>,
    /// This UPF's own pools.
    here: Vec<AddressRange>,
    /// Addresses that the kernel delivers to this host, without broadcast addresses.
    local: Vec<AddressRange>,
    radios: Vec<AddressRange>,
    /// The permits of each tenant.
    permits: Vec<Vec<Permit>>,
    /// The UPF's own addresses in the pools, with the pools' tenants.
    gateways: Vec<(IpAddr, u8)>,
}

impl Reach {
    /// Compiles the areas of these pools on that host. `hosts`: further closed addresses. `peers`: those of tunnel peers.
    pub fn compile(
        boundary: &Boundary,
        pools: &[UePool],
        host: &Host,
        (hosts, peers): (&[IpAddr], &[IpAddr]),
    ) -> Self {
        let tenants = boundary.tenants_with(pools);
        let numbered = (0..).zip(tenants.iter().take(MAX_TENANTS));
        let of_tenant = |(number, tenant): (u8, &Tenant)| {
            tenant.pools.iter().map(move |pool| (pool.network(), number)).collect::<Vec<_>>()
        };
        let mut by_tenant: Vec<_> = numbered.flat_map(of_tenant).collect();
        by_tenant.sort_by_key(|(pool, _)| Reverse(pool.prefix));
        let mut entries: Vec<_> =
            by_tenant.iter().map(|(pool, tenant)| (*pool, Area::Tenant(*tenant))).collect();
        let closed = always_closed()
            .chain(boundary.core.iter().chain(&boundary.radios).copied())
            .chain(boundary.own.iter().flat_map(|own| host.networks_of(*own)))
            .chain(host.local.iter().copied())
            .chain(hosts.iter().copied().map(only))
            .map(|range| range.network());
        // A gNB names its own address. If all of it were closed, a hostile gNB could close any host to UEs. Only GTP-U needs
        // the UPF's help: with NAT it would come from the UPF's address, which gNBs believe.
        for peer in peers.iter().copied().map(only) {
            entries.push((peer, Area::TunnelPeer));
            entries.extend(by_translator(peer).map(|peer| (peer, Area::TunnelPeer)));
        }
        for range in closed {
            entries.push((range, Area::Closed));
            entries.extend(by_translator(range).map(|range| (range, Area::Closed)));
        }
        let mut entries = without_doubles(entries);
        close_tunnel_side(&mut entries, host);
        let gateways = pools.iter().filter_map(|pool| {
            let tenant = tenants.iter().position(|tenant| tenant.pools.contains(&pool.network()))?;
            Some((pool.gateway, u8::try_from(tenant).ok()?))
        });
        let is_own =
            |range: &AddressRange| *range != only(range.address) || !host.broadcast.contains(&range.address);
        Self {
            v4: Spans::of(entries.iter().filter(|(range, _)| range.address.is_ipv4())),
            v6: Spans::of(entries.iter().filter(|(range, _)| range.address.is_ipv6())),
            entries,
            pools: by_tenant,
            here: pools.iter().map(UePool::network).collect(),
            local: host.local.iter().copied().filter(is_own).collect(),
            radios: boundary.radios.clone(),
            gateways: gateways.collect(),
            permits: tenants.into_iter().map(|tenant| tenant.permits).collect(),
        }
    }

    pub fn area(&self, address: IpAddr) -> Area {
        match address {
            IpAddr::V4(v4) => self.v4.at(v4.to_bits()),
            IpAddr::V6(v6) => self.v6.at(v6.to_bits()),
        }
    }

    /// The tenant of a UE; `None` if no pool contains its addresses.
    pub fn tenant(&self, ue: UeAddress) -> Option<u8> {
        ue.v4
            .and_then(|v4| self.tenant_at(v4.into()))
            .or_else(|| ue.v6.and_then(|v6| self.tenant_at(v6.into())))
    }

    /// The tenant whose pool contains an address, assigned or not.
    fn tenant_at(&self, address: IpAddr) -> Option<u8> {
        self.pools.iter().find(|(pool, _)| pool.contains(address)).map(|(_, tenant)| *tenant)
    }

    /// Whether a UE reaches an address of an area without a permit.
    pub fn is_open_to(&self, ue: UeAddress, area: Area) -> bool {
        let is_of = |address: IpAddr, tenant| self.tenant_at(address) == Some(tenant);
        match area {
            Area::Open => true,
            Area::Closed | Area::TunnelPeer => false,
            Area::Tenant(tenant) => {
                ue.v4.is_some_and(|v4| is_of(v4.into(), tenant))
                    || ue.v6.is_some_and(|v6| is_of(v6.into(), tenant))
            }
        }
    }

    /// Whether a UE's packet to a closed destination is permitted. An unfragmented echo to or from the UPF's
    /// own address in the UE's pool always is: it is the usual first test of a session.
    pub fn is_permitted(&self, ue: UeAddress, flow: &Flow, packet: &[u8]) -> bool {
        let Some(tenant) = self.tenant(ue) else { return false };
        let permits = self.permits.get(usize::from(tenant)).map_or(&[][..], Vec::as_slice);
        permits.iter().any(|permit| permit.takes(flow))
            || (self.area(flow.destination) == Area::TunnelPeer && is_not_gtpu(flow, packet))
            || (self.gateways.contains(&(flow.destination, tenant)) && is_echo(flow, packet))
    }

    /// Whether an address is in a pool of this UPF, assigned or not.
    pub fn is_here(&self, address: IpAddr) -> bool {
        self.here.iter().any(|pool| pool.contains(address))
    }

    /// This UPF's own pools.
    pub fn here(&self) -> &[AddressRange] {
        &self.here
    }

    /// Whether an address is this host's own. A packet from TUN with such a source was made by this host: the kernel drops
    /// those that come from outside (RFC 1812 5.3.7; over IPv6, `system/closed.rs`), but not those from a broadcast address unless it
    /// checks reverse paths.
    pub fn is_local(&self, address: IpAddr) -> bool {
        self.local.iter().any(|range| range.contains(address))
    }

    /// Whether a packet to a UE from a closed source passes: an answer to what a permit lets pass, or an error of a router,
    /// since one with an address in a closed network may be on the path (path MTU discovery, RFC 1191).
    pub fn is_answer(&self, ue: UeAddress, flow: &Flow, packet: &[u8]) -> bool {
        let tenant = self.tenant(ue);
        let permits = tenant.and_then(|tenant| self.permits.get(usize::from(tenant)));
        let reversed = flow.reversed();
        permits.is_some_and(|permits| permits.iter().any(|permit| permit.takes(&reversed)))
            || is_error(flow, packet)
    }

    /// Whether GTP-U is accepted from configured networks only.
    pub fn has_radios(&self) -> bool {
        !self.radios.is_empty()
    }

    /// Tunnel peers outside of all configured networks, with their addresses by translators.
    pub fn tunnel_peers(&self) -> impl Iterator<Item = IpAddr> {
        let peers = self.entries.iter().filter(|(_, area)| *area == Area::TunnelPeer);
        peers.map(|(range, _)| range.address)
    }

    /// Whether GTP-U of an address is accepted without a tunnel.
    pub fn is_radio(&self, address: IpAddr) -> bool {
        self.radios.iter().any(|range| range.contains(address))
    }

    /// Networks with their areas; the longest matching prefix decides.
    pub fn entries(&self) -> &[(AddressRange, Area)] {
        &self.entries
    }

    /// Networks whose GTP-U is accepted.
    pub fn radios(&self) -> &[AddressRange] {
        &self.radios
    }

    /// The permits of all tenants.
    pub fn permits(&self) -> impl Iterator<Item = &Permit> {
        self.permits.iter().flatten()
    }

    /// The UPF's own addresses in the pools.
    pub fn gateways(&self) -> impl Iterator<Item = IpAddr> {
        self.gateways.iter().map(|(gateway, _)| *gateway)
    }

    /// First and last addresses of the closed ranges, in order.
    pub fn closed_spans(&self) -> Vec<(IpAddr, IpAddr)> {
        let v4 = self.v4.closed(u32::MAX);
        let v6 = self.v6.closed(u128::MAX);
        let of_v4 = |bits: u32| IpAddr::from(Ipv4Addr::from_bits(bits));
        let of_v6 = |bits: u128| IpAddr::from(Ipv6Addr::from_bits(bits));
        let v4 = v4.into_iter().map(|(first, last)| (of_v4(first), of_v4(last)));
        v4.chain(v6.into_iter().map(|(first, last)| (of_v6(first), of_v6(last)))).collect()
    }
}

/// Whether a packet is certainly no GTP-U; a fragment could be.
fn is_not_gtpu(flow: &Flow, packet: &[u8]) -> bool {
    const UDP: u8 = 17;
    const GTPU: u16 = 2152;
    let is_fragment = is_v4(packet) && packet.get(6..8).is_none_or(|field| field[0] & 0x3f | field[1] != 0);
    match flow.protocol {
        UDP => !is_fragment && flow.ports.is_some_and(|(_, destination)| destination != GTPU),
        FRAGMENT_HEADER => false,
        _ => true,
    }
}

fn always_closed() -> impl Iterator<Item = AddressRange> {
    let v4 = CLOSED_V4.map(|(address, prefix)| AddressRange { address: address.into(), prefix });
    let v6 = CLOSED_V6.map(|(address, prefix)| AddressRange { address: address.into(), prefix });
    v4.into_iter().chain(v6)
}

/// An IPv4 network in the translator's prefix.
fn by_translator(range: AddressRange) -> Option<AddressRange> {
    let IpAddr::V4(v4) = range.address else { return None };
    let address = Ipv6Addr::from_bits(NAT64.to_bits() | u128::from(v4.to_bits())).into();
    Some(AddressRange { address, prefix: NAT64_BITS + range.prefix })
}

/// Removes duplicate networks; a network that is both closed and a tenant's is closed.
fn without_doubles(entries: Vec<(AddressRange, Area)>) -> Vec<(AddressRange, Area)> {
    let mut areas = HashMap::with_capacity(entries.len());
    for (range, area) in entries {
        areas.insert(range, area);
    }
    areas.into_iter().collect()
}

/// Closes the networks behind interfaces towards gNBs. What is reached otherwise has the area that it would have without them.
fn close_tunnel_side(entries: &mut Vec<(AddressRange, Area)>, host: &Host) {
    let known: HashMap<AddressRange, Area> =
        if host.tunnel_side.is_empty() { HashMap::new() } else { entries.iter().copied().collect() };
    let mut added: Vec<(AddressRange, Area)> = Vec::new();
    for RoutedNetwork { network, is_behind } in host.tunnel_side.iter().copied() {
        for network in [Some(network), by_translator(network)].into_iter().flatten() {
            // A pool of UEs or a configured network is what it was.
            if known.contains_key(&network) {
                continue;
            }
            let mut around =
                (0..network.prefix).rev().map(|prefix| AddressRange { prefix, ..network }.network());
            let area = around.find_map(|range| known.get(&range).copied()).unwrap_or(Area::Open);
            added.push((network, if is_behind && area == Area::Open { Area::Closed } else { area }));
        }
    }
    entries.extend(added);
}

fn is_echo(flow: &Flow, packet: &[u8]) -> bool {
    icmp_type(flow, packet).is_some_and(|kind| ECHOES.contains(&(flow.protocol, kind)))
}

fn is_error(flow: &Flow, packet: &[u8]) -> bool {
    icmp_type(flow, packet).is_some_and(|kind| ERRORS.contains(&(flow.protocol, kind)))
}

/// A later IPv4 fragment has no ICMP type; in a later IPv6 fragment no transport header is found.
fn icmp_type(flow: &Flow, packet: &[u8]) -> Option<u8> {
    let is_later = is_v4(packet) && packet.get(6..8).is_none_or(|field| field[0] & 0x1f | field[1] != 0);
    packet.get(flow.transport_at).copied().filter(|_| !is_later)
}

/// Areas by their first addresses, in order; addresses before the first are open.
#[derive(Debug, PartialEq, Eq)]
struct Spans<T>(Box<[(T, Area)]>);

impl<T: Bits> Spans<T> {
    /// From networks that are nested or disjoint.
    fn of<'a>(entries: impl Iterator<Item = &'a (AddressRange, Area)>) -> Self {
        let mut networks: Vec<(T, T, Area)> = entries
            .filter_map(|(range, area)| {
                let (first, last) = T::span(range)?;
                Some((first, last, *area))
            })
            .collect();
        networks.sort_by_key(|(first, last, _)| (*first, Reverse(*last)));
        let mut spans: Vec<(T, Area)> = Vec::new();
        let mut around: Vec<(T, Area)> = Vec::new();
        for (first, last, area) in networks {
            close(&mut spans, &mut around, |end| end < first);
            spans.push((first, area));
            around.push((last, area));
        }
        close(&mut spans, &mut around, |_| true);
        // Of several networks with the same first address, the last is the innermost.
        spans.reverse();
        spans.dedup_by_key(|(first, _)| *first);
        spans.reverse();
        Self(spans.into())
    }

    #[inline]
    fn at(&self, address: T) -> Area {
        let after = self.0.partition_point(|(first, _)| *first <= address);
        after.checked_sub(1).and_then(|at| self.0.get(at)).map_or(Area::Open, |(_, area)| *area)
    }

    /// The closed ranges; adjacent ones are merged.
    fn closed(&self, most: T) -> Vec<(T, T)> {
        let mut closed: Vec<(T, T)> = Vec::new();
        for (at, (first, area)) in self.0.iter().enumerate() {
            let last = self.0.get(at + 1).map_or(most, |(next, _)| next.before());
            match closed.last_mut() {
                _ if *area != Area::Closed => {}
                Some((_, end)) if end.after() == Some(*first) => *end = last,
                _ => closed.push((*first, last)),
            }
        }
        closed
    }
}

/// Closes the networks for which `is_over`; after each, the enclosing network continues.
fn close<T: Bits>(spans: &mut Vec<(T, Area)>, around: &mut Vec<(T, Area)>, is_over: impl Fn(T) -> bool) {
    while let Some((last, _)) = around.last().copied().filter(|(last, _)| is_over(*last)) {
        around.pop();
        let area = around.last().map_or(Area::Open, |(_, area)| *area);
        spans.extend(last.after().map(|next| (next, area)));
    }
}

/// An address as a number.
trait Bits: Copy + Ord {
    fn span(range: &AddressRange) -> Option<(Self, Self)>;
    fn after(self) -> Option<Self>;
    fn before(self) -> Self;
}

impl Bits for u32 {
    fn span(range: &AddressRange) -> Option<(Self, Self)> {
        let IpAddr::V4(v4) = range.network().address else { return None };
        Some((v4.to_bits(), v4.to_bits() | Self::MAX.checked_shr(range.prefix.into()).unwrap_or(0)))
    }

    fn after(self) -> Option<Self> {
        self.checked_add(1)
    }

    fn before(self) -> Self {
        self.saturating_sub(1)
    }
}

impl Bits for u128 {
    fn span(range: &AddressRange) -> Option<(Self, Self)> {
        let IpAddr::V6(v6) = range.network().address else { return None };
        Some((v6.to_bits(), v6.to_bits() | Self::MAX.checked_shr(range.prefix.into()).unwrap_or(0)))
    }

    fn after(self) -> Option<Self> {
        self.checked_add(1)
    }

    fn before(self) -> Self {
        self.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::samples::udp_v4;

    fn range(text: &str) -> AddressRange {
        let (address, prefix) = text.split_once('/').unwrap();
        AddressRange { address: address.parse().unwrap(), prefix: prefix.parse().unwrap() }
    }

    fn host() -> Host {
        let interfaces = vec![range("10.210.0.1/24"), range("10.211.0.1/24"), range("2001:db8:46::1/64")];
        let local =
            ["10.210.0.1/32", "10.211.0.1/32", "10.211.0.255/32", "2001:db8:46::1/128", "10.45.0.1/32"];
        Host { interfaces, local: local.map(range).to_vec(), ..Host::default() }
    }

    fn pool(gateway: &str, prefix: u8) -> UePool {
        UePool { gateway: gateway.parse().unwrap(), prefix }
    }

    fn reach() -> Reach {
        let boundary = Boundary {
            own: vec!["10.210.0.1".parse().unwrap()],
            core: vec![range("192.0.2.0/24"), range("10.0.0.0/9")],
            radios: vec![range("198.51.100.0/24")],
            tenants: vec![Tenant {
                pools: vec![range("10.45.0.0/16"), range("10.47.0.0/16")],
                permits: vec!["10.211.0.1 udp port 53".parse().unwrap()],
            }],
        };
        let pools = [pool("10.45.0.1", 16), pool("10.46.0.1", 16)];
        let peers = ["9.9.9.9".parse().unwrap(), "172.16.7.8".parse().unwrap()];
        Reach::compile(&boundary, &pools, &host(), (&["203.0.113.9".parse().unwrap()], &peers))
    }

    #[test]
    fn an_address_that_a_gnb_names_is_closed_to_gtpu_only() {
        let reach = reach();
        let ue = UeAddress::v4("10.45.0.2".parse().unwrap());
        for peer in ["9.9.9.9", "172.16.7.8", "64:ff9b::9.9.9.9"] {
            let flow = Flow { destination: peer.parse().unwrap(), ..Flow::of(&udp_v4(b"x")).unwrap() };
            assert_eq!(reach.area(flow.destination), Area::TunnelPeer);
            assert!(!reach.is_open_to(ue, Area::TunnelPeer), "packets are looked at one by one");
            let to = |port| Flow { ports: Some((2152, port)), ..flow };
            let packet = udp_v4(b"x");
            assert!(reach.is_permitted(ue, &to(53), &packet));
            assert!(!reach.is_permitted(ue, &to(2152), &packet));
            assert!(!reach.is_permitted(ue, &Flow { ports: None, ..flow }, &packet));
            let mut fragment = packet.clone();
            fragment[6] |= 0x20;
            assert!(!reach.is_permitted(ue, &to(53), &fragment));
            assert!(reach.is_permitted(ue, &Flow { protocol: 6, ..to(443) }, &packet));
            assert!(!reach.closed_spans().iter().any(|(first, _)| *first == flow.destination));
        }
    }

    #[test]
    fn the_longest_network_that_holds_an_address_decides() {
        let reach = reach();
        for (address, area) in [
            ("8.8.8.8", Area::Open),
            ("0.1.2.3", Area::Closed),
            ("127.9.9.9", Area::Closed),
            ("169.254.169.254", Area::Closed),
            ("239.1.1.1", Area::Closed),
            ("240.0.0.1", Area::Open),
            ("255.255.255.255", Area::Closed),
            ("10.210.0.77", Area::Closed),
            ("10.211.0.1", Area::Closed),
            ("10.211.0.255", Area::Closed),
            ("10.211.0.2", Area::Open),
            ("10.1.1.1", Area::Closed),
            ("10.44.255.255", Area::Closed),
            ("10.45.0.0", Area::Tenant(0)),
            ("10.45.0.1", Area::Closed),
            ("10.45.0.2", Area::Tenant(0)),
            ("10.46.0.2", Area::Tenant(1)),
            ("10.47.255.255", Area::Tenant(0)),
            ("10.48.0.0", Area::Closed),
            ("10.128.0.0", Area::Open),
            ("192.0.1.255", Area::Open),
            ("192.0.2.0", Area::Closed),
            ("192.0.3.0", Area::Open),
            ("198.51.100.7", Area::Closed),
            ("203.0.113.9", Area::Closed),
            ("203.0.113.10", Area::Open),
            ("::", Area::Closed),
            ("::1", Area::Closed),
            ("::ffff:8.8.8.8", Area::Closed),
            ("64:ff9b::808:808", Area::Open),
            ("64:ff9b::7f00:1", Area::Closed),
            ("64:ff9b::10.210.0.5", Area::Closed),
            ("fe80::1", Area::Closed),
            ("febf:ffff::", Area::Closed),
            ("fec0::", Area::Open),
            ("ff02::2", Area::Closed),
            ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Area::Closed),
            ("2001:db8:46::1", Area::Closed),
            ("2001:db8:46::2", Area::Open),
        ] {
            assert_eq!(reach.area(address.parse().unwrap()), area, "{address}");
        }
    }

    #[test]
    fn networks_behind_n3s_interface_are_closed_and_holes_are_as_without() {
        let routed = |network: &str, is_behind| RoutedNetwork { network: range(network), is_behind };
        let tunnel_side = vec![
            routed("10.0.0.0/8", true),
            routed("10.45.0.0/16", false),
            routed("10.46.7.0/24", true),
            routed("10.200.0.0/16", false),
            routed("10.200.3.0/24", true),
            routed("192.0.2.128/25", false),
            routed("192.0.0.0/16", true),
        ];
        let host = Host { tunnel_side, ..host() };
        let boundary = Boundary { core: vec![range("192.0.2.0/24")], ..Boundary::default() };
        let pools = [pool("10.45.0.1", 16), pool("10.46.0.1", 16)];
        let reach = Reach::compile(&boundary, &pools, &host, (&[], &[]));
        for (address, area) in [
            ("10.1.1.1", Area::Closed),
            ("64:ff9b::10.1.1.1", Area::Closed),
            ("10.45.0.2", Area::Tenant(0)),
            ("10.46.7.2", Area::Tenant(1)),
            ("10.200.0.1", Area::Open),
            ("64:ff9b::10.200.0.1", Area::Open),
            ("10.200.3.1", Area::Closed),
            ("192.0.2.200", Area::Closed),
            ("192.0.3.1", Area::Closed),
            ("9.0.0.1", Area::Open),
        ] {
            assert_eq!(reach.area(address.parse().unwrap()), area, "{address}");
        }
    }

    #[test]
    fn the_same_comes_of_networks_one_by_one() {
        let reach = reach();
        let slow = |address: IpAddr| {
            let holding = reach.entries().iter().filter(|(range, _)| range.contains(address));
            holding.max_by_key(|(range, _)| range.prefix).map_or(Area::Open, |(_, area)| *area)
        };
        let mut bits = 1u32;
        for _ in 0..20_000 {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let near = reach.entries().iter().filter_map(|(range, _)| match range.address {
                IpAddr::V4(v4) => Some(v4.to_bits()),
                IpAddr::V6(_) => None,
            });
            let near = near.collect::<Vec<_>>();
            let base = near[bits as usize % near.len()].wrapping_add((bits >> 8) % 513).wrapping_sub(256);
            for address in [bits, base].map(|bits| IpAddr::from(Ipv4Addr::from_bits(bits))) {
                assert_eq!(reach.area(address), slow(address), "{address}");
            }
        }
    }

    #[test]
    fn ues_reach_their_own_tenants_and_what_is_permitted() {
        let reach = reach();
        let ue = |v4: &str| UeAddress::v4(v4.parse().unwrap());
        assert_eq!((reach.tenant(ue("10.47.0.9")), reach.tenant(ue("10.46.0.9"))), (Some(0), Some(1)));
        assert!(reach.is_open_to(ue("10.45.0.2"), Area::Tenant(0)));
        assert!(!reach.is_open_to(ue("10.45.0.2"), Area::Tenant(1)));
        let flow = Flow::of(&udp_v4(b"x")).unwrap();
        let dns = Flow { destination: "10.211.0.1".parse().unwrap(), ports: Some((1, 53)), ..flow };
        assert!(reach.is_permitted(ue("10.45.0.2"), &dns, &[]));
        assert!(!reach.is_permitted(ue("10.46.0.2"), &dns, &[]), "another tenant's");
        assert!(!reach.is_permitted(ue("10.45.0.2"), &Flow { ports: Some((1, 54)), ..dns }, &[]));
    }

    #[test]
    fn an_echo_reaches_the_gateway_of_its_own_pool() {
        let reach = reach();
        let ue = UeAddress::v4("10.45.0.2".parse().unwrap());
        let flow = Flow::of(&udp_v4(b"x")).unwrap();
        let icmp = Flow { destination: "10.45.0.1".parse().unwrap(), protocol: ICMP, ..flow };
        let packet = |kind, offset| [&[0x45, 0, 0, 28, 0, 0, 0, offset][..], &[0; 12], &[kind; 8]].concat();
        assert!(reach.is_permitted(ue, &icmp, &packet(8, 0)) && reach.is_permitted(ue, &icmp, &packet(0, 0)));
        assert!(!reach.is_permitted(ue, &icmp, &packet(3, 0)), "an error could change the host's routes");
        assert!(!reach.is_permitted(ue, &icmp, &packet(8, 1)), "a later fragment");
        assert!(!reach.is_permitted(ue, &Flow { protocol: 17, ..icmp }, &packet(8, 0)));
        let other = Flow { destination: "10.46.0.1".parse().unwrap(), ..icmp };
        assert!(!reach.is_permitted(ue, &other, &packet(8, 0)));
    }

    #[test]
    fn answers_and_errors_come_back_from_closed_sources() {
        let (reach, ue) = (reach(), UeAddress::v4("10.45.0.2".parse().unwrap()));
        let flow = Flow::of(&udp_v4(b"x")).unwrap();
        let dns = Flow { source: "10.211.0.1".parse().unwrap(), ports: Some((53, 1)), ..flow };
        assert!(reach.is_answer(ue, &dns, &[]));
        assert!(!reach.is_answer(ue, &Flow { ports: Some((54, 1)), ..dns }, &[]));
        assert!(!reach.is_answer(UeAddress::v4("10.46.0.2".parse().unwrap()), &dns, &[]), "another tenant's");
        let icmp = Flow { protocol: ICMP, ..dns };
        let packet = |kind, offset| [&[0x45, 0, 0, 28, 0, 0, 0, offset][..], &[0; 12], &[kind; 8]].concat();
        assert!(reach.is_answer(ue, &icmp, &packet(3, 0)) && reach.is_answer(ue, &icmp, &packet(11, 0)));
        assert!(!reach.is_answer(ue, &icmp, &packet(8, 0)) && !reach.is_answer(ue, &icmp, &packet(3, 1)));
    }

    #[test]
    fn closed_spans_are_apart() {
        let spans = reach().closed_spans();
        let text: Vec<_> = spans.iter().map(|(first, last)| format!("{first}-{last}")).collect();
        assert!(text.contains(&"10.0.0.0-10.44.255.255".into()), "{text:?}");
        assert!(text.contains(&"10.45.0.1-10.45.0.1".into()));
        assert!(text.contains(&"::-::ffff:ffff".into()), "{text:?}");
        assert_eq!(text[0], "0.0.0.0-0.255.255.255");
    }
}
