//! The outer source port and flow label by the packet's flow.

use super::*;
use std::collections::HashSet;
use std::net::Ipv6Addr;

const SERVER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x46, 0, 0, 0, 0, 2);

fn down_v6(next: u8, payload: &[u8]) -> Vec<u8> {
    let ue = [UE_PREFIX, [0, 0, 0, 0, 0, 0, 0, 1]].concat().try_into().unwrap();
    ipv6(SERVER_V6.octets(), ue, next, payload)
}

fn to_ue_v6(packet: &[u8]) -> Vec<u8> {
    [ethernet(&TO_US, 0x86dd), packet.to_vec()].concat()
}

/// The source port of the tunnel packet in a frame, and the user packet in it, with a QFI.
fn port_and_packet(frame: &[u8], over_v6: bool) -> (u16, Vec<u8>) {
    let udp_at = 14 + if over_v6 { 40 } else { 20 };
    assert_eq!(frame[udp_at + 2..udp_at + 4], 2152u16.to_be_bytes());
    (u16::from_be_bytes([frame[udp_at], frame[udp_at + 1]]), frame[udp_at + 24..].to_vec())
}

/// Packets for the UE of all kinds that the port depends on.
fn packets() -> Vec<Vec<u8>> {
    let ports = udp(7000, 5000, b"hello");
    let mut fragments = [ipv4(SERVER, UE, 64, 17, &ports), ipv4(SERVER, UE, 64, 17, &ports)];
    fragments[0][6] = 0x20;
    fragments[1][7] = 1;
    fragments.iter_mut().for_each(|fragment| set_checksum(fragment));
    let mut all = fragments.to_vec();
    for protocol in [0, 1, 6, 17, 41, 50, 51, 132, 255] {
        for payload in [&ports[..], &ports[..3], &ports[..4], &[]] {
            all.push(ipv4(SERVER, UE, 64, protocol, payload));
            all.push(down_v6(protocol, payload));
        }
    }
    for number in 0..50u16 {
        all.push(ipv4(SERVER, UE, 64, 17, &udp(number, 5000, b"hello")));
        all.push(down_v6(6, &udp(7000, number, &[0; 20])));
    }
    all
}

#[test]
fn the_program_and_user_space_choose_the_same_port() {
    let Some(mut lab) = lab(&session()) else { return };
    for over_v6 in [false, true] {
        if over_v6 {
            let mut session = session();
            let peer = UPF_PEER_V6.parse().unwrap();
            let tunnel = Tunnel { peer, teid: Teid(0x200), dscp: Some(46) };
            session.fars[1].action = Action::Forward(Destination::Tunnel(tunnel));
            lab.install(&session);
        }
        let (mut forwarded, mut ports, mut labels) = (0, HashSet::new(), HashSet::new());
        for packet in packets() {
            let frame = if packet[0] >> 4 == 6 { to_ue_v6(&packet) } else { to_ue(&packet) };
            let (verdict, sent) = lab.run(&frame);
            if verdict != REDIRECT {
                continue;
            }
            let (port, inner) = port_and_packet(&sent, over_v6);
            assert_eq!(port, source_port(&packet), "{packet:02x?}");
            assert_eq!(port, source_port(&inner));
            assert!(port >= 49_152);
            forwarded += 1;
            ports.insert(port);
            labels.insert([sent[15] & 0x0f, sent[16], sent[17]]);
            // The same flow, another packet.
            let next = lab.run(&frame).1;
            assert_eq!(port_and_packet(&next, over_v6).0, port);
            assert_eq!(next[14..18], sent[14..18], "over IPv6 these octets end with the flow label");
        }
        assert!(forwarded > 150, "{forwarded}");
        assert!(ports.len() > 90, "{}", ports.len());
        assert!(!over_v6 || labels.len() > 90, "{}", labels.len());
    }
}

#[test]
fn without_flow_ports_the_source_port_is_that_of_gtpu() {
    let settings = super::Settings { plain: true, ..super::Settings::default() };
    let Some(lab) = lab_of(&session(), 0, settings) else { return };
    let mut marked = down(64);
    marked[1] = 3;
    set_checksum(&mut marked);
    let (verdict, frame) = lab.run(&to_ue(&marked));
    assert_eq!((verdict, port_and_packet(&frame, false).0, frame[15]), (REDIRECT, 2152, 46 << 2));
    assert_eq!(frame[59], 3, "the packet keeps its field");
}
