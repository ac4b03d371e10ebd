//! Tunnel to tunnel, and tunnels over IPv6: by the XDP program and by the portable path.

mod support;

use pith_datapath::{DatapathConfig, Enforcement};
use pith_pfcp::gtpu::{GTPU_PORT, Packet, PduSessionInformation};
use pith_upf::contract::*;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use support::*;

const OTHER: Ipv4Addr = Ipv4Addr::new(10, 45, 0, 3);
const OTHER_TEID: u32 = 0x101;
const OTHER_GNB_TEID: u32 = 0x201;
/// Packets received from a further UPF.
const N9_TEID: u32 = 0x300;

/// N3 with IPv6 too.
fn with_v6() -> DatapathConfig {
    DatapathConfig { n3_addresses: vec![UPF_V6.into()], workers: 2, ..DatapathConfig::default() }
}

fn gnb_v6(lab: &Lab) -> UdpSocket {
    let socket = lab.radio.run(|| UdpSocket::bind((GNB_V6, GTPU_PORT)).unwrap());
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// A session whose downlink goes into a tunnel over IPv6.
fn session_over_v6() -> Session {
    let mut session = session();
    let tunnel = Tunnel { dscp: Some(46), ..tunnel_to(GNB_V6, GNB_TEID) };
    session.fars[1].action = Action::Forward(Destination::Tunnel(tunnel));
    session
}

/// Whether none of these sessions' packets was handled by user space, except on the portable path.
fn is_the_programs(lab: &Lab, sessions: &[u64]) -> bool {
    let by_user_space: u64 = sessions.iter().map(|id| lab.user_packets(*id)).sum();
    (by_user_space == 0) == (lab.kind != Kind::Portable)
}

fn no_drops(lab: &Lab) {
    assert_eq!(lab.upf.counters().dropped, []);
}

#[test]
fn tunnels_over_ipv6_carry_packets_of_any_length_both_ways() {
    for mut lab in labs_with(with_v6()) {
        lab.install(session_over_v6());
        let (gnb, server) = (gnb_v6(&lab), lab.data_network(7000));
        // The gNB's kernel drops packets with a wrong checksum.
        for size in [0, 1, 2, 3, 35, 36, 37, 63, 64, 100, 1299, 1300] {
            let payload: Vec<u8> = (0..size).map(|n| (n * 7) as u8).collect();
            gnb.send_to(&gpdu(TEID, &udp(UE, SERVER, 7000, &payload)), (UPF_V6, GTPU_PORT)).unwrap();
            assert_eq!(receive(&server), payload);
            server.send_to(&payload, (UE, 5000)).unwrap();
            let bytes = receive(&gnb);
            let packet = Packet::decode(&bytes).unwrap();
            assert_eq!((packet.teid, &packet.payload[28..]), (GNB_TEID, &payload[..]));
            let marked = packet.pdu_session_information().map(|information| information.qfi());
            assert_eq!(marked, Some(QFI));
        }
        assert!(is_the_programs(&lab, &[1]));
        no_drops(&lab);
    }
}

#[test]
fn packets_held_for_an_ipv6_tunnel_are_sent_in_order() {
    for mut lab in labs_with(with_v6()) {
        let mut idle = session_over_v6();
        idle.fars[1].action = Action::Buffer { notify: false, packets: None };
        lab.install(idle);
        let (gnb, server) = (gnb_v6(&lab), lab.data_network(7000));
        receive_much(&gnb);
        for n in 0..50 {
            server.send_to(&[n], (UE, 5000)).unwrap();
        }
        wait_for("all held", || lab.upf.counters().buffered == 50);
        lab.install(session_over_v6());
        server.send_to(&[50], (UE, 5000)).unwrap();
        let mut buffer = [0; 2048];
        let mut next = || gnb.recv(&mut buffer).ok().map(|length| buffer[length - 1]);
        let order: Vec<u8> = (0..=50).map_while(|_| next()).collect();
        assert_eq!(order, (0..=50).collect::<Vec<_>>(), "{:?}", lab.upf.counters());
    }
}

/// Two sessions of this UPF.
fn pair() -> [Session; 2] {
    [session(), session_of(2, OTHER, OTHER_TEID, OTHER_GNB_TEID)]
}

fn volume(lab: &Lab, session: u64) -> Volume {
    lab.upf.usage(SessionId(session)).unwrap().urrs[0].volume
}

#[test]
fn ues_reach_each_other_without_user_space_and_both_are_charged() {
    for mut lab in labs() {
        pair().into_iter().for_each(|session| lab.install(session));
        for n in 0..10u8 {
            lab.uplink(TEID, &udp(UE, OTHER, 7000, &[n; 22]));
            let gpdu = lab.downlink();
            assert_eq!((gpdu.teid, gpdu.qfi, gpdu.payload()), (OTHER_GNB_TEID, Some(QFI), &[n; 22][..]));
            assert_eq!(gpdu.inner, a_hop_less(udp(UE, OTHER, 7000, &[n; 22])));
        }
        let ten = Traffic { packets: 10, bytes: 500 };
        wait_for("counters", || lab.upf.counters().n3_out == ten);
        let counters = lab.upf.counters();
        assert_eq!((counters.n3_in, counters.n6_in.packets, counters.n6_out.packets), (ten, 0, 0));
        let up = Volume { uplink: 500, uplink_packets: 10, ..Volume::default() };
        let down = Volume { downlink: 500, downlink_packets: 10, ..Volume::default() };
        assert_eq!((volume(&lab, 1), volume(&lab, 2)), (up, down));
        assert!(is_the_programs(&lab, &[1, 2]));
        no_drops(&lab);
    }
}

fn a_hop_less(mut packet: Vec<u8>) -> Vec<u8> {
    packet[8] -= 1;
    let sum = u32::from(u16::from_be_bytes([packet[10], packet[11]])) + 0x100;
    packet[10..12].copy_from_slice(&((sum + (sum >> 16)) as u16).to_be_bytes());
    packet
}

#[test]
fn a_packet_between_ues_obeys_the_rules_of_both() {
    for mut lab in labs() {
        let [from, to] = pair();
        let packet = udp(UE, OTHER, 7000, b"x");
        let mut closed = to.clone();
        closed.qers[0].gates.downlink = Gate::Closed;
        let mut dropping = to.clone();
        dropping.fars[1].action = Action::Drop;
        let mut of_nothing = to.clone();
        of_nothing.pdrs.pop();
        lab.install(from.clone());
        for (other, reason) in [
            (closed, DropReason::GateClosed),
            (dropping, DropReason::RuleDrop),
            (of_nothing, DropReason::NoRule),
        ] {
            lab.install(other);
            lab.uplink(TEID, &packet);
            lab.wait_dropped(reason, 1);
        }
        // The sender's rules have permitted it.
        assert_eq!((volume(&lab, 1).uplink_packets, volume(&lab, 2)), (3, Volume::default()));
        let mut barred = from;
        barred.qers[0].gates.uplink = Gate::Closed;
        lab.install(barred);
        lab.install(to);
        lab.uplink(TEID, &packet);
        lab.wait_dropped(DropReason::GateClosed, 2);
        lab.uplink(TEID, &udp("10.45.0.9".parse().unwrap(), OTHER, 7000, b"x"));
        lab.wait_dropped(DropReason::SpoofedSource, 1);
        assert_eq!((volume(&lab, 1).uplink_packets, volume(&lab, 2)), (3, Volume::default()));
        assert!(lab.gnb_hears_nothing());
    }
}

#[test]
fn rates_of_both_ues_hold_between_them() {
    let config = DatapathConfig { workers: 1, enforcement: Enforcement::Police, ..DatapathConfig::default() };
    for mut lab in labs_with(config) {
        for (slow, session) in [(1, 0), (0, 1)] {
            let mut both = pair();
            both[session].qers[1].mbr = Some(Rates { uplink: 1_000_000, downlink: 1_000_000 });
            both[slow].qers[1].mbr = Some(Rates { uplink: 999_000_000, downlink: 999_000_000 });
            both.into_iter().for_each(|session| lab.install(session));
            let before = (lab.upf.counters().n3_out.packets, dropped(&lab));
            for _ in 0..200 {
                lab.uplink(TEID, &udp(UE, OTHER, 7000, &[0; 972]));
            }
            let passed = || lab.upf.counters().n3_out.packets - before.0;
            wait_for("all packets", || passed() + dropped(&lab) - before.1 == 200);
            // Sixteen kilobytes at once, plus the rate's tokens meanwhile: at most a second's on a slow
            // machine.
            assert!((16..=140).contains(&passed()), "{}", passed());
        }
    }
}

fn dropped(lab: &Lab) -> u64 {
    lab.upf.counters().dropped(DropReason::RateExceeded)
}

#[test]
fn packets_to_an_idle_ue_of_this_upf_are_held_and_reported() {
    for mut lab in labs() {
        let [from, to] = pair();
        let mut idle = to.clone();
        idle.fars[1].action = Action::Buffer { notify: true, packets: None };
        lab.install(from);
        lab.install(idle);
        for n in 0..20u8 {
            lab.uplink(TEID, &udp(UE, OTHER, 7000, &[n]));
        }
        let told = Event::DownlinkData { session: SessionId(2), pdr: PdrId(2), qfi: Some(Qfi(QFI)), dscp: 0 };
        assert_eq!(lab.event(), told);
        wait_for("all held", || lab.upf.counters().buffered == 20);
        lab.install(to);
        lab.uplink(TEID, &udp(UE, OTHER, 7000, &[20]));
        let order: Vec<u8> = (0..=20).map(|_| lab.downlink().payload()[0]).collect();
        assert_eq!(order, (0..=20).collect::<Vec<_>>());
        assert_eq!((volume(&lab, 1).uplink_packets, volume(&lab, 2).downlink_packets), (21, 21));
    }
}

#[test]
fn packets_above_the_receiving_ues_rate_are_queued_and_charged_once() {
    for mut lab in labs() {
        let mut both = pair();
        both[1].qers[1].mbr = Some(Rates { uplink: 4_000_000, downlink: 4_000_000 });
        both.into_iter().for_each(|session| lab.install(session));
        receive_much(&lab.gnb);
        for _ in 0..60 {
            lab.uplink(TEID, &udp(UE, OTHER, 7000, &[0; 972]));
        }
        let all = || {
            let counters = lab.upf.counters();
            counters.n3_out.packets + counters.dropped.iter().map(|(_, count)| count).sum::<u64>()
        };
        wait_for("all packets", || all() == 60);
        let counters = lab.upf.counters();
        assert_eq!((counters.n3_in.packets, counters.buffered), (60, 0));
        assert_eq!(volume(&lab, 1).uplink_packets, 60);
        assert_eq!(volume(&lab, 2).downlink_packets, counters.n3_out.packets);
        assert!(counters.n3_out.packets > 10);
    }
}

/// Between gNB and anchor UPF: packets of both directions are forwarded from tunnel to tunnel.
fn intermediate(gnb: impl Into<IpAddr>, anchor: impl Into<IpAddr>) -> Session {
    let mut session = session();
    session.ue = UeAddress::default();
    session.qers.remove(0);
    session.pdrs[1].source = Source::Tunnel { teid: Teid(N9_TEID), direction: Direction::Downlink };
    session.fars[0].action = Action::Forward(Destination::Tunnel(tunnel_to(anchor, 0x900)));
    session.fars[1].action = Action::Forward(Destination::Tunnel(tunnel_to(gnb, GNB_TEID)));
    session
}

/// The header of a downlink packet of that QoS flow.
fn from_anchor(qfi: u8, inner: &[u8]) -> Vec<u8> {
    let length = (inner.len() as u16 + 8).to_be_bytes();
    let header =
        [&[0x34, 255, length[0], length[1]], &N9_TEID.to_be_bytes()[..], &[0, 0, 0, 0x85, 1, 0, qfi, 0]];
    [&header.concat(), inner].concat()
}

#[test]
fn an_intermediate_upf_passes_packets_on_as_they_are_with_the_flow_that_they_came_with() {
    for mut lab in labs() {
        lab.install(intermediate(GNB, GNB));
        let (up, down) = (udp(UE, SERVER, 7000, b"up"), udp(SERVER, UE, 5000, b"down, and longer"));
        lab.uplink(TEID, &up);
        let (bytes, _) = lab.datagram();
        assert_eq!(bytes[..16], [0x34, 255, 0, 38, 0, 0, 9, 0, 0, 0, 0, 0x85, 1, 0x10, QFI, 0]);
        assert_eq!(bytes[16..], up);
        for qfi in [1, 63] {
            lab.gnb.send_to(&from_anchor(qfi, &down), (UPF, GTPU_PORT)).unwrap();
            let gpdu = lab.downlink();
            assert_eq!((gpdu.teid, gpdu.qfi, &gpdu.inner), (GNB_TEID, Some(qfi), &down));
        }
        // Without a PDU Session Container: none is added.
        lab.gnb.send_to(&[&[0x30, 255, 0, 30, 0, 0, 1, 0], &up[..]].concat(), (UPF, GTPU_PORT)).unwrap();
        assert_eq!(lab.datagram().0, [&[0x30, 255, 0, 30, 0, 0, 9, 0], &up[..]].concat());
        let all = Traffic { packets: 4, bytes: 2 * 30 + 2 * 44 };
        wait_for("counters", || lab.upf.counters().n3_out == all);
        assert_eq!((lab.upf.counters().n3_in, lab.upf.counters().n6_out.packets), (all, 0));
        let expected = Volume { uplink: 60, uplink_packets: 2, downlink: 88, downlink_packets: 2 };
        assert_eq!(volume(&lab, 1), expected);
        assert!(is_the_programs(&lab, &[1]));
        no_drops(&lab);
    }
}

#[test]
fn an_intermediate_upf_joins_tunnels_over_ipv4_and_ipv6() {
    for mut lab in labs_with(with_v6()) {
        lab.install(intermediate(GNB, GNB_V6));
        let gnb = gnb_v6(&lab);
        let (up, down) = (udp(UE, SERVER, 7000, b"up"), udp(SERVER, UE, 5000, b"down"));
        lab.uplink(TEID, &up);
        let bytes = receive(&gnb);
        let packet = Packet::decode(&bytes).unwrap();
        let information = packet.pdu_session_information();
        assert!(matches!(information, Some(PduSessionInformation::Uplink(uplink)) if uplink.qfi == QFI));
        assert_eq!((packet.teid, packet.payload), (0x900, &up[..]));
        gnb.send_to(&from_anchor(5, &down), (UPF_V6, GTPU_PORT)).unwrap();
        let gpdu = lab.downlink();
        assert_eq!((gpdu.teid, gpdu.qfi, gpdu.inner), (GNB_TEID, Some(5), down));
        assert!(is_the_programs(&lab, &[1]));
        no_drops(&lab);
    }
}
