//! Neighbour Discovery on the link between a UE and its UPF (RFC 4861, RFC 4862; TS 23.501 5.8.2.2.3): the UPF is the only
//! router of that link, and advertises the session's /64 for stateless address autoconfiguration.
//!
//! The link has no link-layer addresses, and the prefix is not on-link: a UE sends all packets to the router.

use super::checksum::{transport_checksum, transport_holds};
use super::flow::{Flow, IPV6_HEADER_LEN};
use std::net::{IpAddr, Ipv6Addr};

const ICMPV6: u8 = 58;
const ROUTER_SOLICITATION: u8 = 133;
const ROUTER_ADVERTISEMENT: u8 = 134;
const NEIGHBOUR_SOLICITATION: u8 = 135;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;

const SOURCE_LINK_LAYER: u8 = 1;
const PREFIX_INFORMATION: u8 = 3;
const MTU: u8 = 5;

/// The hop limit of every message: a router would have decremented it, so it was not sent from another link (RFC 4861 3.1).
const HOP_LIMIT: u8 = 255;
/// The hop limit that UEs use (RFC 4861 4.2).
const CUR_HOP_LIMIT: u8 = 64;
/// The longest lifetime of a default router, in seconds: 18.2 hours (RFC 8319 4).
const ROUTER_LIFETIME: u16 = u16::MAX;
/// DHCPv6 has other configuration than addresses (RFC 4861 4.2).
const OTHER_CONFIGURATION: u8 = 0x40;
/// A lifetime of a prefix without an end (RFC 4861 4.6.2).
const INFINITE: [u8; 4] = [0xff; 4];
/// Autonomous address configuration; the on-link flag (0x80) is not set (TS 23.501 5.8.2.2.3).
const AUTONOMOUS: u8 = 0x40;
/// Flags of a Neighbour Advertisement: from a router, solicited (RFC 4861 4.4).
const ROUTER_SOLICITED: u8 = 0xc0;
/// The prefix of a session.
const PREFIX_LENGTH: u8 = 64;

/// The UPF's link-local address on each session's link. SMFs give UEs other interface identifiers.
pub const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
/// All nodes of a link (RFC 4291 2.7.1).
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// A valid message of a UE that the UPF answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Solicitation {
    /// Router Solicitation; `from` is `None` if the UE has no address yet.
    Router {
        /// The sender.
        from: Option<Ipv6Addr>,
    },
    /// Neighbour Solicitation for the UPF's own address: the UE checks whether its router is reachable (RFC 4861 7.3).
    Neighbour {
        /// The sender.
        from: Ipv6Addr,
    },
}

impl Solicitation {
    /// Reads a packet whose headers are `flow`; `None` for any other message, and for one that does not pass the checks of RFC
    /// 4861 6.1.1 and 7.1.1. A Neighbour Solicitation for another address than the UPF's is not answered: the link has no other
    /// node, so that a UE detects no duplicate of its address.
    pub fn read(packet: &[u8], flow: &Flow) -> Option<Self> {
        let (IpAddr::V6(from), IpAddr::V6(to)) = (flow.source, flow.destination) else { return None };
        // Extension headers have no use here, and a fragment is ignored (RFC 6980 5).
        if flow.protocol != ICMPV6 || flow.transport_at != IPV6_HEADER_LEN {
            return None;
        }
        let (ip, message) = packet.get(..flow.length)?.split_at_checked(IPV6_HEADER_LEN)?;
        if ip.get(7) != Some(&HOP_LIMIT) || !transport_holds(ip, ICMPV6, message) {
            return None;
        }
        match *message.first_chunk::<8>()? {
            [ROUTER_SOLICITATION, 0, ..] => {
                let has_link_layer = check_options(message.get(8..)?)?;
                let from = (!from.is_unspecified()).then_some(from);
                (from.is_some() || !has_link_layer).then_some(Self::Router { from })
            }
            [NEIGHBOUR_SOLICITATION, 0, ..] => {
                let target = Ipv6Addr::from(*message.get(8..)?.first_chunk::<16>()?);
                check_options(message.get(24..)?)?;
                let is_for_router = target == ROUTER && (to == ROUTER || to == solicited_node(ROUTER));
                (is_for_router && !from.is_unspecified()).then_some(Self::Neighbour { from })
            }
            _ => None,
        }
    }
}

/// Checks that each option has a length (RFC 4861 6.1.1); returns whether there is a source link-layer address.
fn check_options(mut options: &[u8]) -> Option<bool> {
    let mut has_link_layer = false;
    while !options.is_empty() {
        let &[kind, length, ..] = options else { return None };
        options = options.get(usize::from(length).checked_mul(8).filter(|length| *length > 0)?..)?;
        has_link_layer |= kind == SOURCE_LINK_LAYER;
    }
    Some(has_link_layer)
}

/// The solicited-node multicast address (RFC 4291 2.7.1).
const fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let low = address.to_bits() & 0x00ff_ffff;
    Ipv6Addr::from_bits(0xff02_0000_0000_0000_0000_0001_ff00_0000 | low)
}

/// A Router Advertisement for the /64 `prefix` (RFC 4861 4.2), with `mtu` in octets; to all nodes if `to` is `None`. `has_dhcpv6`: DHCPv6 has
/// DNS servers.
pub fn router_advertisement(prefix: Ipv6Addr, mtu: u32, has_dhcpv6: bool, to: Option<Ipv6Addr>) -> Vec<u8> {
    let flags = if has_dhcpv6 { OTHER_CONFIGURATION } else { 0 };
    let mut message = vec![ROUTER_ADVERTISEMENT, 0, 0, 0, CUR_HOP_LIMIT, flags];
    message.extend(ROUTER_LIFETIME.to_be_bytes());
    // Reachable time and retransmission timer: unspecified.
    message.extend([0; 8]);
    message.extend([MTU, 1, 0, 0]);
    message.extend(mtu.to_be_bytes());
    message.extend([PREFIX_INFORMATION, 4, PREFIX_LENGTH, AUTONOMOUS]);
    message.extend(INFINITE);
    message.extend(INFINITE);
    message.extend([0; 4]);
    message.extend(prefix.octets());
    complete(to.unwrap_or(ALL_NODES), message)
}

/// The Neighbour Advertisement that answers [`Solicitation::Neighbour`] (RFC 4861 4.4, 7.2.4).
pub fn neighbour_advertisement(to: Ipv6Addr) -> Vec<u8> {
    let mut message = vec![NEIGHBOUR_ADVERTISEMENT, 0, 0, 0, ROUTER_SOLICITED, 0, 0, 0];
    message.extend(ROUTER.octets());
    complete(to, message)
}

/// Prepends the IPv6 header, and sets the checksum.
fn complete(to: Ipv6Addr, mut message: Vec<u8>) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((message.len() as u16).to_be_bytes());
    packet.extend([ICMPV6, HOP_LIMIT]);
    packet.extend(ROUTER.octets());
    packet.extend(to.octets());
    let checksum = transport_checksum(&packet, ICMPV6, &message, &[]);
    super::checksum::put(&mut message, 2, &checksum);
    packet.extend(message);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 45, 2, 0, 0, 0, 0);
    const UE: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x77);

    /// What scapy 2.5 makes of `IPv6(src="fe80::77", dst="ff02::2", hlim=255)/ICMPv6ND_RS()`.
    const SCAPY_RS: u64 = 0x8500_7cc0_0000_0000;

    fn scapy_rs() -> Vec<u8> {
        let header = [0x60, 0, 0, 0, 0, 8, 0x3a, 0xff];
        let message = &SCAPY_RS.to_be_bytes()[..];
        [&header[..], &UE.octets(), &all_routers().octets(), message].concat()
    }

    fn message(from: Ipv6Addr, to: Ipv6Addr, mut message: Vec<u8>) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, message.len() as u8, ICMPV6, HOP_LIMIT];
        packet.extend(from.octets());
        packet.extend(to.octets());
        let checksum = transport_checksum(&packet, ICMPV6, &message, &[]);
        message[2..4].copy_from_slice(&checksum);
        packet.extend(message);
        packet
    }

    fn read(packet: &[u8]) -> Option<Solicitation> {
        Solicitation::read(packet, &Flow::of(packet)?)
    }

    fn all_routers() -> Ipv6Addr {
        "ff02::2".parse().unwrap()
    }

    #[test]
    fn a_router_solicitation_of_another_program_is_valid() {
        assert_eq!(read(&scapy_rs()), Some(Solicitation::Router { from: Some(UE) }));
    }

    #[test]
    fn a_solicitation_without_an_address_must_not_name_a_link_layer_address() {
        let none = Ipv6Addr::UNSPECIFIED;
        let bare = message(none, all_routers(), vec![133, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(read(&bare), Some(Solicitation::Router { from: None }));
        let named = vec![133, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 1];
        assert_eq!(read(&message(none, all_routers(), named.clone())), None);
        assert_eq!(read(&message(UE, all_routers(), named)), Some(Solicitation::Router { from: Some(UE) }));
    }

    #[test]
    fn a_damaged_or_routed_solicitation_is_not_answered() {
        let whole = scapy_rs();
        for length in 0..whole.len() {
            assert_eq!(read(&whole[..length]), None, "{length} octets");
        }
        // Hop limit, checksum, code, source.
        for at in [7, 41, 42, 23] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert_eq!(read(&damaged), None, "octet {at}");
        }
        let without_length = vec![133, 0, 0, 0, 0, 0, 0, 0, 14, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(read(&message(UE, all_routers(), without_length)), None);
        let cut = vec![133, 0, 0, 0, 0, 0, 0, 0, 14];
        assert_eq!(read(&message(UE, all_routers(), cut)), None);
    }

    #[test]
    fn only_the_routers_own_address_is_resolved() {
        let about = |target: Ipv6Addr| [vec![135, 0, 0, 0, 0, 0, 0, 0], target.octets().to_vec()].concat();
        let asked = |from, to: Ipv6Addr, target| read(&message(from, to, about(target)));
        assert_eq!(asked(UE, ROUTER, ROUTER), Some(Solicitation::Neighbour { from: UE }));
        let multicast = "ff02::1:ff00:1".parse().unwrap();
        assert_eq!(asked(UE, multicast, ROUTER), Some(Solicitation::Neighbour { from: UE }));
        assert_eq!(asked(UE, "ff02::1:ff00:77".parse().unwrap(), UE), None);
        assert_eq!(asked(Ipv6Addr::UNSPECIFIED, multicast, ROUTER), None, "duplicate address detection");
        let answer = neighbour_advertisement(UE);
        let flow = Flow::of(&answer).unwrap();
        assert_eq!((flow.source, flow.destination), (ROUTER.into(), UE.into()));
        assert!(transport_holds(&answer[..40], ICMPV6, &answer[40..]));
        assert_eq!((answer[7], answer[40], answer[44]), (255, 136, 0xc0));
    }

    #[test]
    fn an_advertisement_has_the_prefix_for_autoconfiguration_but_not_on_link() {
        let packet = router_advertisement(PREFIX, 1400, false, None);
        let flow = Flow::of(&packet).unwrap();
        assert_eq!(flow.destination, IpAddr::V6(ALL_NODES));
        assert_eq!((flow.length, packet[7]), (packet.len(), 255));
        assert!(transport_holds(&packet[..40], ICMPV6, &packet[40..]));
        assert_eq!(packet[40..42], [134, 0]);
        assert_eq!(packet[44..56], [64, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(packet[56..64], [5, 1, 0, 0, 0, 0, 0x05, 0x78]);
        let prefix = [&[3, 4, 64, 0x40][..], &[0xff; 8], &[0; 4], &PREFIX.octets()].concat();
        assert_eq!(packet[64..], prefix);
        let with_dhcpv6 = router_advertisement(PREFIX, 1400, true, None);
        assert_eq!((with_dhcpv6[45], with_dhcpv6.len()), (0x40, packet.len()));
    }
}
