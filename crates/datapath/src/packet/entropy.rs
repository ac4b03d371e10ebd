//! The outer source port of a flow, by which receivers and routers spread flows.

use super::flow::{IPV4_HEADER_LEN, IPV6_HEADER_LEN, TCP, UDP};

/// The dynamic ports (RFC 6335 6).
const FIRST_PORT: u16 = 49_152;
const PORT_BITS: u32 = 14;
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
const ESP: u8 = 50;
const SCTP: u8 = 132;

/// The UDP source port of the tunnel packet with this user packet: 49152 to 65535. Packets of one flow have the same
/// (TS 29.281 4.4.2.3, RFC 8085 5.1.1). The XDP program computes it, too (`read_traits` in bpf/tunnel.h). A flow is a pair of addresses, the
/// protocol, and ports or ESP's SPI; in IPv4 fragments, and behind options or extension headers, without the last.
pub fn source_port(packet: &[u8]) -> u16 {
    FIRST_PORT | (hash(packet).unwrap_or(0) >> (64 - PORT_BITS)) as u16
}

fn hash(packet: &[u8]) -> Option<u64> {
    let mut hash = 0;
    let (protocol, transport) = if packet.first()? >> 4 == 6 {
        let header: &[u8; IPV6_HEADER_LEN] = packet.first_chunk()?;
        for pair in header.get(8..)?.as_chunks::<8>().0 {
            hash = mix(hash, word(pair, 0)? | word(pair, 4)? << 32);
        }
        (header[6], packet.get(IPV6_HEADER_LEN..))
    } else {
        let header: &[u8; IPV4_HEADER_LEN] = packet.first_chunk()?;
        hash = mix(hash, word(header, 12)? | word(header, 16)? << 32);
        let is_plain = header[0] & 0x0f == 5 && u16::from_be_bytes([header[6], header[7]]) & 0x3fff == 0;
        (header[9], is_plain.then(|| packet.get(IPV4_HEADER_LEN..)).flatten())
    };
    let has_word = matches!(protocol, TCP | UDP | SCTP | ESP);
    let rest = transport.filter(|_| has_word).and_then(|transport| word(transport, 0)).unwrap_or(0);
    Some(mix(mix(hash, rest | u64::from(protocol) << 32), 0))
}

fn mix(hash: u64, word: u64) -> u64 {
    let hash = (hash ^ word).wrapping_mul(MIX);
    hash ^ hash >> 32
}

/// Four octets as the program loads them.
fn word(octets: &[u8], at: usize) -> Option<u64> {
    let octets = octets.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*octets).into())
}

#[cfg(test)]
mod tests {
    use super::super::samples::{udp_v4, udp_v6};
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn flows_are_spread_over_ports() {
        for (sample, source_at) in [(udp_v4(b"hello"), 20), (udp_v6(b"hello"), 40)] {
            let with = |at: usize, number: u16| {
                let mut packet = sample.clone();
                packet[at..at + 2].copy_from_slice(&number.to_be_bytes());
                packet
            };
            // By source port, by destination port, by the last octets of the destination.
            for at in [source_at, source_at + 2, source_at - 2] {
                let ports: Vec<_> = (0..4096).map(|number| source_port(&with(at, number))).collect();
                assert!(ports.iter().all(|port| *port >= FIRST_PORT));
                // Random choice of 4,096 among 16,384 would give 3,624 different ones.
                let different: HashSet<_> = ports.iter().collect();
                assert!(different.len() > 3200, "{} at {at}", different.len());
                for queues in [2, 3, 8, 16] {
                    for queue in 0..queues {
                        let share = ports.iter().filter(|port| **port % queues == queue).count();
                        let fair = 4096 / usize::from(queues);
                        assert!(share.abs_diff(fair) < fair / 4, "{share} of {fair} at {at}");
                    }
                }
            }
        }
    }

    #[test]
    fn only_the_flow_decides() {
        for mut packet in [udp_v4(b"hello"), udp_v6(b"hello")] {
            let is_v4 = packet[0] >> 4 == 4;
            let port = source_port(&packet);
            // Type of service, hop limit, length of the datagram, payload.
            let length = packet.len();
            packet[1] ^= 0x30;
            packet[if is_v4 { 8 } else { 7 }] ^= 1;
            packet[length - 1] ^= 1;
            assert_eq!(source_port(&packet), port);
        }
    }

    #[test]
    fn fragments_of_a_packet_have_one_port() {
        let mut first = udp_v4(b"hello");
        first[6] = 0x20;
        let mut later = udp_v4(b"other");
        later[6..8].copy_from_slice(&[0, 1]);
        later[20] ^= 1;
        assert_eq!(source_port(&first), source_port(&later));
    }

    #[test]
    fn any_octets_have_a_port() {
        for length in 0..60 {
            for first in [0x45, 0x46, 0x60, 0] {
                let mut packet = vec![6; length];
                packet.iter_mut().take(1).for_each(|octet| *octet = first);
                assert!(source_port(&packet) >= FIRST_PORT);
            }
        }
    }
}
