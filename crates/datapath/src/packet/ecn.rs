//! Telling of congestion: the CE codepoint (RFC 3168 5).

use super::checksum::{put, set_ipv4_checksum};
use super::flow::is_v4;

/// Both bits of the ECN field.
const CE: u8 = 3;

/// Marks a packet as having met congestion.
pub fn mark_congestion(packet: &mut [u8]) {
    let v4 = is_v4(packet);
    let Some(&byte) = packet.get(1) else { return };
    if !v4 {
        // The traffic class lies across two bytes; its last bits are the upper half of the second.
        return put(packet, 1, &[byte | CE << 4]);
    }
    put(packet, 1, &[byte | CE]);
    let length = usize::from(packet.first().copied().unwrap_or(0) & 0x0f) * 4;
    if let Some(header) = packet.get_mut(..length) {
        set_ipv4_checksum(header);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Flow;
    use super::super::checksum::Sum;
    use super::super::samples::{tcp_v4, tcp_v6};
    use super::*;
    use pith_upf::qos::Ecn;

    #[test]
    fn the_mark_shows_and_nothing_else_changes() {
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
}
