//! Congestion marking: the CE codepoint (RFC 3168 5).

use super::checksum::put;
use super::flow::is_v4;

/// Both bits of the ECN field.
const CE: u8 = 3;

/// Sets CE. The IPv4 checksum is updated incrementally (RFC 1624 3), so a wrong one stays wrong.
pub fn mark_congestion(packet: &mut [u8]) {
    let v4 = is_v4(packet);
    let Some(&byte) = packet.get(1) else { return };
    if !v4 {
        // The traffic class spans two bytes; its last bits are the upper half of the second.
        return put(packet, 1, &[byte | CE << 4]);
    }
    put(packet, 1, &[byte | CE]);
    if let Some(checksum) = packet.get(10..12).and_then(|bytes| bytes.as_array()) {
        let more = u32::from((byte | CE) - byte);
        let sum = u32::from(!u16::from_be_bytes(*checksum)) + more;
        let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
        put(packet, 10, &checksum.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::Flow;
    use super::super::checksum::{Sum, set_ipv4_checksum};
    use super::super::samples::{tcp_v4, tcp_v6};
    use super::*;
    use pith_upf::qos::Ecn;

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
