//! Translation of addresses and ports in IPv4 packets, independent of the datapath's and the kernel's.

use super::octets::sum;
use crate::support::conntrack::{Connection, ICMP, TCP, UDP};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::Ipv4Addr;

pub const SOURCE: usize = 12;
pub const DESTINATION: usize = 16;
/// Length of a header without options.
pub const HEAD: usize = 20;

/// What translation changes of a packet that may come to the data network.
#[derive(Debug, Clone)]
pub struct Original {
    pub source: Ipv4Addr,
    pub port: u16,
    pub checksum: u16,
}

/// Where a packet has what translation changes: offsets of both ports and of the checksum.
#[derive(Debug, Clone, Copy)]
pub struct Places {
    pub protocol: u8,
    pub ports: [usize; 2],
    pub check: usize,
}

/// `None`: no first part of UDP, TCP or ICMP Echo over IPv4 without options.
pub fn places(packet: &[u8]) -> Option<Places> {
    let is_first = word(packet, 6)? & 0x1fff == 0;
    let protocol = *packet.get(9)?;
    let (ports, check) = match protocol {
        UDP => ([HEAD, HEAD + 2], HEAD + 6),
        TCP => ([HEAD, HEAD + 2], HEAD + 16),
        ICMP if matches!(packet.get(HEAD)?, 0 | 8) => ([HEAD + 4; 2], HEAD + 2),
        _ => return None,
    };
    let is_complete = packet.len() >= check.max(ports[1]) + 2;
    (packet[0] == 0x45 && is_first && is_complete).then_some(Places { protocol, ports, check })
}

pub fn word(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*octets.get(at)?, *octets.get(at + 1)?]))
}

pub fn address(octets: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(octets[at], octets[at + 1], octets[at + 2], octets[at + 3])
}

/// Replaces octets in the scope of the checksum at `check`, and updates that; a wrong one stays wrong (RFC 1624 3).
pub fn replace(packet: &mut [u8], at: usize, new: &[u8], check: usize) {
    let old = packet[at..at + new.len()].iter().map(|octet| !octet).collect::<Vec<_>>();
    packet[at..at + new.len()].copy_from_slice(new);
    let before = (!word(packet, check).unwrap_or(0)).to_be_bytes();
    let after = !sum(&[&before, &old, new]);
    packet[check..check + 2].copy_from_slice(&after.to_be_bytes());
}

/// Gives a packet another end, at `end` (SOURCE or DESTINATION).
pub fn translate(packet: &mut [u8], places: Places, end: usize, to: Ipv4Addr, port: u16) {
    let Places { protocol, ports, check } = places;
    let is_unchecked = protocol == UDP && word(packet, check) == Some(0);
    let old = packet[end..end + 4].to_vec();
    replace(packet, end, &to.octets(), 10);
    if protocol != ICMP {
        // The address is in the pseudo header.
        packet[end..end + 4].copy_from_slice(&old);
        replace(packet, end, &to.octets(), check);
    }
    replace(packet, ports[usize::from(end == DESTINATION)], &port.to_be_bytes(), check);
    if protocol == UDP && (is_unchecked || word(packet, check) == Some(0)) {
        packet[check..check + 2].fill(if is_unchecked { 0 } else { 0xff });
    }
}

/// The connection of a packet from a UE, or, with `end` DESTINATION, to it.
pub fn connection(packet: &[u8], places: Places, end: usize) -> Option<Connection> {
    let own = usize::from(end == DESTINATION);
    let port = |at: usize| word(packet, places.ports[at]);
    let remote_port = if places.protocol == ICMP { (*packet.get(HEAD + 1)?).into() } else { port(1 - own)? };
    Some(Connection {
        protocol: places.protocol,
        ue: (address(packet, end), port(own)?),
        remote: (address(packet, SOURCE + DESTINATION - end), remote_port),
    })
}

/// All of a packet but what translation changes.
fn skeleton(packet: &[u8], places: Places) -> u64 {
    let mut rest = packet.to_vec();
    rest[10..16].fill(0);
    for at in [places.ports[0], places.check] {
        rest[at..at + 2].fill(0);
    }
    if packet[6] & 0x40 != 0 {
        // Without meaning (RFC 6864 4.1).
        rest[4..6].fill(0);
    }
    let mut hasher = DefaultHasher::new();
    rest.hash(&mut hasher);
    hasher.finish()
}

/// What is needed to recognize a packet of a UE after its translation.
pub fn original(packet: &[u8]) -> Option<(u64, Original)> {
    let places = places(packet)?;
    let (source, port) = (address(packet, SOURCE), word(packet, places.ports[0])?);
    Some((skeleton(packet, places), Original { source, port, checksum: word(packet, places.check)? }))
}

/// All ones and zero are the same sum, but for UDP, where zero is none.
pub fn is_same_checksum(packet: &[u8], places: Places, original: &Original) -> bool {
    let checksum = word(packet, places.check).unwrap_or(0);
    let is_zero = |checksum: u16| matches!(checksum, 0 | 0xffff);
    checksum == original.checksum || places.protocol != UDP && is_zero(checksum) && is_zero(original.checksum)
}

/// Destination Unreachable or Time Exceeded, with the start of a packet.
pub fn is_error(packet: &[u8]) -> bool {
    packet.len() >= 2 * HEAD + 16 && packet[0] == 0x45 && packet[9] == ICMP && matches!(packet[HEAD], 3 | 11)
}

/// As [`places`], of a packet of which only the first eight octets are there.
pub fn places_quoted(quoted: &[u8]) -> Option<Places> {
    let is_udp = quoted[0] == 0x45 && quoted[9] == UDP && word(quoted, 6)? & 0x1fff == 0;
    is_udp.then_some(Places { protocol: UDP, ports: [HEAD, HEAD + 2], check: HEAD + 6 })
}

#[cfg(test)]
mod tests {
    use super::super::octets::{V4, transport_sum, udp};
    use super::*;

    const UE: Ipv4Addr = Ipv4Addr::new(10, 45, 1, 2);
    const PUBLIC: Ipv4Addr = Ipv4Addr::new(172, 17, 0, 1);
    const REMOTE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

    fn packet(source: (Ipv4Addr, u16)) -> Vec<u8> {
        let datagram = udp((source.0.into(), source.1), (REMOTE.into(), 7000), b"hello");
        let header = V4 {
            source: source.0.octets(),
            destination: REMOTE.octets(),
            protocol: UDP,
            tos: 0,
            id: 0,
            fragment: 0,
            ttl: 64,
            options: Vec::new(),
        };
        header.before(&datagram)
    }

    #[test]
    fn a_translated_packet_is_the_one_built_with_its_public_end() {
        let (mut translated, expected) = (packet((UE, 5000)), packet((PUBLIC, 40_000)));
        let places = places(&translated).unwrap();
        translate(&mut translated, places, SOURCE, PUBLIC, 40_000);
        assert_eq!(translated, expected);
        assert_eq!(transport_sum(PUBLIC.into(), REMOTE.into(), UDP, &translated[HEAD..]), 0xffff);
        assert_eq!(original(&translated).unwrap().0, original(&packet((UE, 5000))).unwrap().0);
    }

    #[test]
    fn wrong_checksums_stay_wrong_and_none_stays_none() {
        for (checksum, octet) in [([0, 0], 0), ([0x12, 0x34], 1)] {
            let mut sent = packet((UE, 5000));
            sent[26..28].copy_from_slice(&checksum);
            sent[10] ^= octet;
            let (before, places) = (sent.clone(), places(&sent).unwrap());
            translate(&mut sent, places, SOURCE, PUBLIC, 40_000);
            assert_eq!(sum(&[&sent[..HEAD]]) == 0xffff, octet == 0);
            assert_ne!(transport_sum(PUBLIC.into(), REMOTE.into(), UDP, &sent[HEAD..]), 0xffff);
            translate(&mut sent, places, SOURCE, UE, 5000);
            assert_eq!(sent, before);
        }
    }
}
