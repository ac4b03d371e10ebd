//! The ECN field across tunnels (RFC 6040).

use super::*;
use crate::packet::rfc6040::LEAVING;
use std::net::Ipv6Addr;

/// A DSCP beside the ECN field.
const DSCP: u8 = 46 << 2;

pub fn with_tos(mut packet: Vec<u8>, tos: u8) -> Vec<u8> {
    if packet[0] >> 4 == 6 {
        packet[0] = 0x60 | tos >> 4;
        packet[1] = tos << 4;
    } else {
        packet[1] = tos;
        set_checksum(&mut packet);
    }
    packet
}

fn ue_v6() -> [u8; 16] {
    [UE_PREFIX, [0, 0, 0, 0, 0, 0, 0, 1]].concat().try_into().unwrap()
}

fn up_v6() -> Vec<u8> {
    let server: Ipv6Addr = "2001:db8:46::2".parse().unwrap();
    ipv6(ue_v6(), server.octets(), 17, &udp(5000, 7000, b"hello"))
}

/// A G-PDU in an outer header with that field, over IPv4 or IPv6.
fn tunnelled_in(message: &[u8], tos: u8, is_v6: bool) -> Vec<u8> {
    if !is_v6 {
        let outer = with_tos(ipv4(GNB, UPF, 64, 17, &udp(2152, 2152, message)), tos);
        return [ethernet(&TO_US, 0x800), outer].concat();
    }
    let [gnb, upf]: [Ipv6Addr; 2] = ["fd00::2", "fd00::1"].map(|address| address.parse().unwrap());
    let outer = with_tos(ipv6(gnb.octets(), upf.octets(), 17, &udp(2152, 2152, message)), tos);
    [ethernet(&TO_US, 0x86dd), outer].concat()
}

#[test]
fn the_outer_field_is_merged_when_a_packet_leaves_a_tunnel() {
    let Some(lab) = lab(&session()) else { return };
    for (inner, outer, result) in LEAVING {
        for (is_v6, packet) in [(false, up(64)), (true, up(64)), (false, up_v6()), (true, up_v6())] {
            let frame = tunnelled_in(&gpdu(TEID, &with_tos(packet.clone(), DSCP | inner)), outer, is_v6);
            let before = lab.volume();
            let Some(result) = result else {
                lab.drops_only(&frame, DropReason::LostCongestion);
                continue;
            };
            let (verdict, sent) = lab.run(&frame);
            let mut expected = with_tos(packet, DSCP | result);
            if expected[0] >> 4 == 6 {
                expected[7] -= 1;
            } else {
                expected[8] -= 1;
                set_checksum(&mut expected);
            }
            assert_eq!((verdict, &sent[14..]), (REDIRECT, &expected[..]), "{inner} in {outer}");
            assert_eq!(lab.volume().uplink_packets, before.uplink_packets + 1);
        }
    }
}

#[test]
fn a_filter_sees_the_merged_field() {
    let mut filtered = session();
    let tos = Some(TosFilter { value: 3, mask: 0xff });
    filtered.pdrs[0].filters = vec![SdfFilter { tos, ..SdfFilter::default() }];
    let Some(lab) = lab(&filtered) else { return };
    let frame = |outer| tunnelled_in(&gpdu(TEID, &with_tos(up(64), 2)), outer, false);
    assert_eq!(lab.run(&frame(3)).0, REDIRECT);
    lab.drops_only(&frame(0), DropReason::NoRule);
}

#[test]
fn outer_headers_get_the_field_of_their_packet() {
    let Some(mut lab) = lab(&session()) else { return };
    for over_v6 in [false, true] {
        if over_v6 {
            let peer = UPF_PEER_V6.parse().unwrap();
            let mut session = session();
            let tunnel = Tunnel { peer, teid: Teid(0x200), dscp: Some(46) };
            session.fars[1].action = Action::Forward(Destination::Tunnel(tunnel));
            lab.install(&session);
        }
        for ecn in 0..4 {
            let (verdict, frame) = lab.run(&to_ue(&with_tos(down(64), ecn)));
            assert_eq!(verdict, REDIRECT);
            let outer = &frame[14..];
            let tos = if over_v6 { outer[0] << 4 | outer[1] >> 4 } else { outer[1] };
            assert_eq!(tos, 46 << 2 | ecn);
            let inner = &outer[if over_v6 { 64 } else { 44 }..];
            assert_eq!(inner, with_tos(down(63), ecn));
        }
    }
}

#[test]
fn onward_tunnels_get_the_merged_field() {
    let mut onward = session();
    let tunnel = Tunnel { peer: GNB.into(), teid: Teid(0x300), dscp: None };
    onward.fars[0].action = Action::Forward(Destination::Tunnel(tunnel));
    let Some(lab) = lab(&onward) else { return };
    let (verdict, frame) = lab.run(&tunnelled_in(&gpdu(TEID, &with_tos(up(64), 1)), 3, false));
    assert_eq!((verdict, frame[15]), (REDIRECT, 3));
    assert_eq!(&frame[58..], with_tos(up(64), 3));
}
