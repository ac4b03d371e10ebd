//! Congestion marking: the ECN field (RFC 3168 5), also across tunnels (RFC 6040).

use super::checksum::put;
use super::flow::is_v4;
use pith_upf::qos::Ecn;

/// Both bits of the ECN field.
const CE: u8 = 3;
const ECT_1: u8 = 1;

/// The type of service or traffic class of a packet; 0 if it is shorter than two octets.
#[inline]
pub fn tos_of(packet: &[u8]) -> u8 {
    match *packet {
        [first, second, ..] if first >> 4 == 6 => first << 4 | second >> 4,
        [_, second, ..] => second,
        _ => 0,
    }
}

/// Applies the outer ECN field to a packet that leaves a tunnel (RFC 6040 4.2). `false` if the packet must be dropped: a
/// router on the tunnel's path marked it, and its ends do not support ECN.
#[inline]
pub fn merge_outer_ecn(packet: &mut [u8], outer: Ecn) -> bool {
    if matches!(outer, Ecn::NotCapable | Ecn::Classic) {
        return true;
    }
    let inner = tos_of(packet) & CE;
    match (Ecn::of_tos(inner), outer) {
        (Ecn::NotCapable, Ecn::Experienced) => return false,
        (Ecn::NotCapable | Ecn::Experienced, _) => {}
        (_, Ecn::Experienced) => set_ecn(packet, CE),
        _ => set_ecn(packet, ECT_1),
    }
    true
}

/// Sets CE.
pub fn mark_congestion(packet: &mut [u8]) {
    set_ecn(packet, CE);
}

/// Sets the ECN field. The IPv4 checksum is updated incrementally (RFC 1624 3), so a wrong one stays wrong.
fn set_ecn(packet: &mut [u8], ecn: u8) {
    let v4 = is_v4(packet);
    let Some(&byte) = packet.get(1) else { return };
    if !v4 {
        // The traffic class spans two bytes; its last bits are the upper half of the second.
        return put(packet, 1, &[byte & !(CE << 4) | ecn << 4]);
    }
    let marked = byte & !CE | ecn;
    if marked == byte {
        return;
    }
    put(packet, 1, &[marked]);
    if let Some(checksum) = packet.get(10..12).and_then(|bytes| bytes.as_array()) {
        let before = u32::from(!u16::from(byte));
        let sum = u32::from(!u16::from_be_bytes(*checksum)) + before + u32::from(marked);
        let sum = (sum & 0xffff) + (sum >> 16);
        let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
        put(packet, 10, &checksum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::Flow;
    use super::super::checksum::{Sum, set_ipv4_checksum};
    use super::super::rfc6040::LEAVING;
    use super::super::samples::{tcp_v4, tcp_v6};
    use super::*;

    #[test]
    fn the_outer_field_is_merged_by_the_table_of_rfc_6040() {
        for (inner, outer, expected) in LEAVING {
            for (mut packet, is_v4) in [(tcp_v4(1, 0x10, b"x"), true), (tcp_v6(1, 0x10, b"x"), false)] {
                if is_v4 {
                    packet[1] = 0xb8 | inner;
                    set_ipv4_checksum(&mut packet[..20]);
                } else {
                    packet[..2].copy_from_slice(&[0x6b, 0x8a | inner << 4]);
                }
                let before = Flow::of(&packet).unwrap();
                let goes_on = merge_outer_ecn(&mut packet, Ecn::of_tos(outer));
                assert_eq!(goes_on.then(|| tos_of(&packet) & CE), expected, "{inner} in {outer}");
                let flow = Flow::of(&packet).unwrap();
                assert_eq!(flow.tos, tos_of(&packet));
                assert_eq!(Flow { tos: before.tos, ..flow }, before);
                assert_eq!(flow.tos & !CE, 0xb8);
                if is_v4 {
                    assert_eq!(Sum::default().add(&packet[..20]).checksum(), [0, 0]);
                }
            }
        }
    }

    #[test]
    fn a_packet_without_header_is_unchanged() {
        for length in 0..3 {
            let mut packet = vec![0x46; length];
            merge_outer_ecn(&mut packet, Ecn::Experienced);
            merge_outer_ecn(&mut packet, Ecn::Scalable);
        }
    }

    #[test]
    fn marking_changes_only_ecn_and_checksum() {
        for (mut packet, tos) in [(tcp_v4(1, 0x10, b"x"), 0xb9), (tcp_v6(1, 0x10, b"x"), 0)] {
            if tos != 0 {
                packet[1] = tos;
                set_ipv4_checksum(&mut packet[..20]);
            }
            let before = Flow::of(&packet).unwrap();
            mark_congestion(&mut packet);
            let flow = Flow::of(&packet).unwrap();
            assert_eq!(Ecn::of_tos(flow.tos), Ecn::Experienced);
            assert_eq!(flow.tos & !CE, before.tos & !CE);
            assert_eq!(Flow { tos: before.tos, ..flow }, before);
            if tos != 0 {
                assert_eq!(Sum::default().add(&packet[..20]).checksum(), [0, 0]);
            }
        }
    }

    #[test]
    fn marking_keeps_a_checksum_as_correct_as_it_was() {
        for id in 0..=u16::MAX {
            let mut packet = tcp_v4(1, 0x10, b"x");
            packet[1] = (id % 4) as u8;
            packet[4..6].copy_from_slice(&id.to_be_bytes());
            set_ipv4_checksum(&mut packet[..20]);
            let mut broken = packet.clone();
            broken[8] ^= 1;
            [&mut packet, &mut broken].into_iter().for_each(|packet| mark_congestion(packet));
            assert_eq!(Sum::default().add(&packet[..20]).checksum(), [0, 0], "{id}");
            assert_ne!(Sum::default().add(&broken[..20]).checksum(), [0, 0], "{id}");
        }
    }
}
