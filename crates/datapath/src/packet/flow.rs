//! The header fields of a user packet that rules match: addresses, protocol, ports.

use super::checksum::put;
use super::dhcpv6::{ALL_SERVERS, SERVER_PORT};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Protocol number of TCP.
pub const TCP: u8 = 6;
/// Protocol number of UDP.
pub const UDP: u8 = 17;
const SCTP: u8 = 132;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
const ESP: u8 = 50;
const AH: u8 = 51;
/// Bytes of an IPv4 header without options.
pub const IPV4_HEADER_LEN: usize = 20;
/// Bytes of an IPv6 header without extensions.
pub const IPV6_HEADER_LEN: usize = 40;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;
/// Maximum number of extension headers that are skipped to find the transport header.
const MAX_EXTENSIONS: usize = 8;

/// A packet's header fields. Ports are unknown in fragments other than the first and in truncated packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// IPv4 protocol, or the last IPv6 next header.
    pub protocol: u8,
    /// Source and destination port.
    pub ports: Option<(u16, u16)>,
    /// Security Parameter Index of ESP or AH.
    pub spi: Option<u32>,
    /// Type of service or traffic class.
    pub tos: u8,
    /// IPv6 flow label.
    pub flow_label: Option<u32>,
    /// Bytes from the start of the packet to its transport header.
    pub transport_at: usize,
    /// Bytes of the packet by its IP header.
    pub length: usize,
}

impl Flow {
    /// Parses the headers; `None` if the packet is not IP or shorter than its header says.
    #[inline]
    pub fn of(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => Self::of_v4(packet),
            6 => Self::of_v6(packet),
            _ => None,
        }
    }

    fn of_v4(packet: &[u8]) -> Option<Self> {
        let header: &[u8; IPV4_HEADER_LEN] = packet.first_chunk()?;
        let [version, tos, l0, l1, _, _, f0, f1, _, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3] = *header;
        let transport_at = usize::from(version & 0x0f) * 4;
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        if transport_at < IPV4_HEADER_LEN || length < transport_at || packet.len() < length {
            return None;
        }
        let offset = u16::from_be_bytes([f0, f1]) & 0x1fff;
        let flow = Self {
            source: Ipv4Addr::new(s0, s1, s2, s3).into(),
            destination: Ipv4Addr::new(d0, d1, d2, d3).into(),
            protocol,
            ports: None,
            spi: None,
            tos,
            flow_label: None,
            transport_at,
            length,
        };
        let transport = if offset == 0 { packet.get(transport_at..length)? } else { &[] };
        Some(flow.with_transport(transport))
    }

    fn of_v6(packet: &[u8]) -> Option<Self> {
        let header: &[u8; IPV6_HEADER_LEN] = packet.first_chunk()?;
        let word = u32::from_be_bytes(*header.first_chunk()?);
        let length = usize::from(u16::from_be_bytes([header[4], header[5]])) + IPV6_HEADER_LEN;
        if packet.len() < length {
            return None;
        }
        let address = |at: usize| header.get(at..)?.first_chunk::<16>().copied().map(Ipv6Addr::from);
        let (protocol, transport_at) = skip_extensions(packet.get(..length)?, header[6]);
        let flow = Self {
            source: address(8)?.into(),
            destination: address(24)?.into(),
            protocol,
            ports: None,
            spi: None,
            tos: (word >> 20) as u8,
            flow_label: Some(word & 0x000f_ffff),
            transport_at: transport_at.unwrap_or(length),
            length,
        };
        let transport = transport_at.and_then(|at| packet.get(at..length)).unwrap_or_default();
        Some(flow.with_transport(transport))
    }

    /// Whether the packet is for the link between the UE and the UPF only, and is never routed: it is, without extension headers,
    /// ICMPv6 to a link-local or link-local multicast address (RFC 4291 2.5.6, 2.7), or DHCPv6 to all servers (RFC 8415 7.1).
    #[inline]
    pub fn is_on_link(&self) -> bool {
        let IpAddr::V6(to) = self.destination else { return false };
        let [first, ..] = to.segments();
        let is_link_local = first & 0xffc0 == 0xfe80 || first & 0xff0f == 0xff02;
        is_link_local
            && self.transport_at == IPV6_HEADER_LEN
            && (self.protocol == ICMPV6 || self.is_dhcpv6(to))
    }

    fn is_dhcpv6(&self, to: Ipv6Addr) -> bool {
        let is_for_server = self.ports.is_some_and(|(_, port)| port == SERVER_PORT);
        self.protocol == UDP && is_for_server && to == ALL_SERVERS
    }

    /// Whether the packet is an ICMP error, which quotes another packet: RFC 792, or RFC 4443 2.1.
    pub fn is_icmp_error(&self, packet: &[u8]) -> bool {
        let Some(&kind) = packet.get(self.transport_at) else { return false };
        let is_later_fragment = || {
            let fragment = packet.get(6..8).and_then(|octets| octets.first_chunk::<2>());
            fragment.is_some_and(|octets| u16::from_be_bytes(*octets) & 0x1fff != 0)
        };
        // Either protocol number in a packet of the other IP version means nothing.
        match (self.protocol, self.source) {
            (ICMP, IpAddr::V4(_)) => matches!(kind, 3 | 4 | 5 | 11 | 12) && !is_later_fragment(),
            (ICMPV6, IpAddr::V6(_)) => kind < 128,
            _ => false,
        }
    }

    /// The destination of the packet that an ICMP error quotes; the unspecified address if it is not there.
    pub fn quoted_destination(&self, packet: &[u8]) -> IpAddr {
        let quoted = packet.get(self.transport_at + 8..self.length).unwrap_or_default();
        let v4 = || quoted.get(16..)?.first_chunk::<4>();
        let v6 = || quoted.get(24..)?.first_chunk::<16>();
        match (self.source, quoted.first().map(|first| first >> 4)) {
            (IpAddr::V4(_), Some(4)) => v4().map_or(Ipv4Addr::UNSPECIFIED, |octets| (*octets).into()).into(),
            (IpAddr::V6(_), Some(6)) => v6().map_or(Ipv6Addr::UNSPECIFIED, |octets| (*octets).into()).into(),
            _ => Ipv4Addr::UNSPECIFIED.into(),
        }
    }

    /// A hash of addresses and ports. Senders can cause collisions, but gain nothing by them.
    pub fn hash(&self) -> u64 {
        let (source, destination) = self.ports.unwrap_or_default();
        let ports = u64::from(source) << 16 | u64::from(destination);
        let fold = |address: IpAddr| match address {
            IpAddr::V4(v4) => u64::from(v4.to_bits()),
            IpAddr::V6(v6) => (v6.to_bits() >> 64) as u64 ^ v6.to_bits() as u64,
        };
        let mixed = ports ^ fold(self.source) ^ fold(self.destination).rotate_left(32);
        mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// As an answer to this packet has them.
    pub fn reversed(&self) -> Self {
        let ports = self.ports.map(|(source, destination)| (destination, source));
        Self { source: self.destination, destination: self.source, ports, ..*self }
    }

    fn with_transport(mut self, transport: &[u8]) -> Self {
        match (self.protocol, transport) {
            (TCP | UDP | SCTP, &[a, b, c, d, ..]) => {
                self.ports = Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])));
            }
            (ESP, &[a, b, c, d, ..]) | (AH, &[_, _, _, _, a, b, c, d, ..]) => {
                self.spi = Some(u32::from_be_bytes([a, b, c, d]));
            }
            _ => {}
        }
        self
    }
}

/// The last next header and its offset; `None` in a later fragment, or if the chain is truncated or has more than [`MAX_EXTENSIONS`].
fn skip_extensions(packet: &[u8], first: u8) -> (u8, Option<usize>) {
    let (mut next, mut at) = (first, IPV6_HEADER_LEN);
    for skipped in 0..=MAX_EXTENSIONS {
        if !matches!(next, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION_OPTIONS) {
            return (next, Some(at));
        }
        if skipped == MAX_EXTENSIONS {
            break;
        }
        let Some(&[following, length, f0, f1, ..]) = packet.get(at..) else { return (next, None) };
        if next == FRAGMENT && u16::from_be_bytes([f0, f1]) & 0xfff8 != 0 {
            return (following, None);
        }
        at += if next == FRAGMENT { 8 } else { (usize::from(length) + 1) * 8 };
        next = following;
    }
    (next, None)
}

/// Whether the version field says IPv4.
pub fn is_v4(packet: &[u8]) -> bool {
    packet.first().is_some_and(|byte| byte >> 4 == 4)
}

/// Decrements the hop limit as a router does; `false` if it is exhausted. The IPv4 checksum is updated
/// incrementally (RFC 1624 3), so a wrong one stays wrong.
pub fn decrement_ttl(packet: &mut [u8]) -> bool {
    let at = if is_v4(packet) { 8 } else { 7 };
    let Some(ttl) = packet.get(at).copied().filter(|ttl| *ttl > 1) else { return false };
    put(packet, at, &[ttl - 1]);
    if is_v4(packet)
        && let Some(checksum) = packet.get(10..12).and_then(|bytes| bytes.as_array())
    {
        let sum = u32::from(u16::from_be_bytes(*checksum)) + 0x0100;
        let sum = sum + u32::from(sum >= 0xffff);
        put(packet, 10, &(sum as u16).to_be_bytes());
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::checksum::{Sum, set_ipv4_checksum};
    use super::super::samples::{tcp_v4, udp_v4, udp_v6};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ports_follow_options_and_length() {
        let flow = Flow::of(&tcp_v4(1000, 0x10, b"hello")).unwrap();
        assert_eq!((flow.protocol, flow.ports), (TCP, Some((40_000, 80))));
        assert_eq!((flow.transport_at, flow.length), (20, 57));
        let mut short = tcp_v4(1000, 0x10, b"hello");
        short.truncate(56);
        assert_eq!(Flow::of(&short), None);
    }

    #[test]
    fn only_the_icmp_of_its_ip_version_has_errors() {
        let is_error = |mut packet: Vec<u8>, at: usize, protocol, kind| {
            packet[at] = protocol;
            let flow = Flow::of(&packet).unwrap();
            packet[flow.transport_at] = kind;
            flow.is_icmp_error(&packet)
        };
        for (protocol, v4, v6) in [(ICMP, true, false), (ICMPV6, false, true)] {
            assert_eq!(is_error(udp_v4(b"hello"), 9, protocol, 3), v4);
            assert_eq!(is_error(udp_v6(b"hello"), 6, protocol, 3), v6);
            assert!(!is_error(udp_v4(b"hello"), 9, protocol, 128 + 8));
        }
    }

    #[test]
    fn a_later_fragment_has_no_ports() {
        let mut packet = tcp_v4(1000, 0x10, b"hello");
        packet[7] = 1;
        assert_eq!(Flow::of(&packet).unwrap().ports, None);
    }

    #[test]
    fn extension_headers_are_skipped() {
        let plain = udp_v6(b"hello");
        assert_eq!(Flow::of(&plain).unwrap().ports, Some((40_000, 53)));
        let mut extended = plain.clone();
        extended.splice(40..40, [UDP, 0, 1, 4, 0, 0, 0, 0]);
        extended[6] = DESTINATION_OPTIONS;
        extended[5] += 8;
        let flow = Flow::of(&extended).unwrap();
        assert_eq!((flow.protocol, flow.ports, flow.transport_at), (UDP, Some((40_000, 53)), 48));
    }

    #[test]
    fn eight_extension_headers_are_skipped_and_no_ninth_one() {
        let with = |headers: usize| {
            let mut packet = udp_v6(b"hello");
            for at in 0..headers {
                let next = if at == 0 { UDP } else { DESTINATION_OPTIONS };
                packet.splice(40..40, [next, 0, 1, 4, 0, 0, 0, 0]);
            }
            packet[6] = DESTINATION_OPTIONS;
            packet[5] += 8 * headers as u8;
            Flow::of(&packet).unwrap().ports
        };
        assert_eq!((with(8), with(9)), (Some((40_000, 53)), None));
    }

    #[test]
    fn decrementing_the_ttl_updates_the_checksum() {
        let mut packet = tcp_v4(1000, 0x10, b"hello");
        assert!(decrement_ttl(&mut packet));
        assert_eq!(packet[8], 63);
        assert_eq!(Sum::default().add(&packet[..20]).checksum(), [0, 0]);
        packet[8] = 1;
        assert!(!decrement_ttl(&mut packet));
    }

    #[test]
    fn decrementing_the_ttl_keeps_a_wrong_checksum_wrong() {
        let mut broken = tcp_v4(1000, 0x10, b"hello");
        broken[1] ^= 1;
        assert!(decrement_ttl(&mut broken));
        assert_ne!(Sum::default().add(&broken[..20]).checksum(), [0, 0]);
        broken[1] ^= 1;
        assert_eq!(Sum::default().add(&broken[..20]).checksum(), [0, 0]);
    }

    #[test]
    fn every_checksum_follows_its_hop() {
        for id in 0..=u16::MAX {
            let mut packet = tcp_v4(1000, 0x10, b"");
            packet[4..6].copy_from_slice(&id.to_be_bytes());
            set_ipv4_checksum(&mut packet[..20]);
            decrement_ttl(&mut packet);
            assert_eq!(Sum::default().add(&packet[..20]).checksum(), [0, 0], "{id}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(mut bytes: Vec<u8>, version in prop::sample::select(vec![0x45u8, 0x60, 0x4f])) {
            if let Some(first) = bytes.first_mut() { *first = version; }
            let _ = Flow::of(&bytes);
            decrement_ttl(&mut bytes);
        }
    }
}
