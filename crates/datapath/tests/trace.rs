//! Packet trace of one session: the reported fields, on both paths.

mod support;

use pith_datapath::DatapathConfig;
use pith_upf::contract::*;
use std::net::Ipv4Addr;
use support::*;

/// Reported packets, once there are `count`.
fn traced(lab: &mut Lab, count: usize) -> Vec<TracedPacket> {
    let mut packets = Vec::new();
    wait_for("traced packets", || {
        assert_eq!(lab.upf.poll_trace(&mut packets), 0);
        // The XDP path does its own work there.
        lab.upf.poll_events(&mut Vec::new());
        packets.len() >= count
    });
    packets
}

#[test]
fn packets_are_traced_with_their_rule_and_destination() {
    for mut lab in labs() {
        lab.install(session());
        lab.upf.trace(SessionId(1), true);
        let server = lab.data_network(7000);
        lab.uplink(TEID, &udp(UE, SERVER, 7000, b"up"));
        assert_eq!(receive(&server), b"up");
        server.send_to(b"down", (UE, 5000)).unwrap();
        assert_eq!(lab.downlink().payload(), b"down");
        let packets = traced(&mut lab, 2);
        let [up, down] = packets[..] else { panic!("{packets:?}") };
        assert_eq!((up.direction, up.length, up.qfi), (Direction::Uplink, 30, Some(Qfi(QFI))));
        assert_eq!((up.pdr, up.fate), (Some(PdrId(1)), Fate::ToNetwork));
        assert_eq!((up.source, up.destination, up.ports), (UE.into(), SERVER.into(), Some((5000, 7000))));
        assert_eq!((down.pdr, down.fate), (Some(PdrId(2)), Fate::ToTunnel(tunnel_to(GNB, GNB_TEID))));
        assert!(up.age >= down.age && up.session == SessionId(1));
    }
}

#[test]
fn drops_are_traced_with_their_reason() {
    for mut lab in labs() {
        lab.install(session());
        lab.upf.trace(SessionId(1), true);
        lab.uplink(TEID, &udp(Ipv4Addr::new(10, 45, 0, 99), SERVER, 7000, b"spoofed"));
        let packet = traced(&mut lab, 1)[0];
        assert_eq!((packet.pdr, packet.fate), (Some(PdrId(1)), Fate::Dropped(DropReason::SpoofedSource)));
        let mut closed = session();
        closed.qers[0].gates.uplink = Gate::Closed;
        lab.install(closed);
        lab.uplink(TEID, &udp(UE, SERVER, 7000, b"gate"));
        assert_eq!(traced(&mut lab, 1)[0].fate, Fate::Dropped(DropReason::GateClosed));
    }
}

#[test]
fn a_held_packet_is_reported_twice() {
    for mut lab in labs() {
        lab.install(idle());
        lab.upf.trace(SessionId(1), true);
        lab.data_network(7000).send_to(b"wake up", (UE, 5000)).unwrap();
        assert_eq!(traced(&mut lab, 1)[0].fate, Fate::Buffered);
        lab.install(session());
        assert_eq!(lab.downlink().payload(), b"wake up");
        assert_eq!(traced(&mut lab, 1)[0].fate, Fate::ToTunnel(tunnel_to(GNB, GNB_TEID)));
    }
}

#[test]
fn other_sessions_and_ended_traces_are_not_reported() {
    for mut lab in labs_with(DatapathConfig { workers: 1, ..DatapathConfig::default() }) {
        let other = Ipv4Addr::new(10, 45, 0, 3);
        lab.install(session());
        lab.install(session_of(2, other, TEID + 1, GNB_TEID + 1));
        lab.upf.trace(SessionId(1), true);
        let server = lab.data_network(7000);
        for (teid, ue) in [(TEID + 1, other), (TEID, UE)] {
            lab.uplink(teid, &udp(ue, SERVER, 7000, b"x"));
            receive(&server);
        }
        let packets = traced(&mut lab, 1);
        assert!(packets.iter().all(|packet| packet.session == SessionId(1)), "{packets:?}");
        lab.upf.trace(SessionId(1), false);
        lab.uplink(TEID, &udp(UE, SERVER, 7000, b"x"));
        receive(&server);
        let mut packets = Vec::new();
        assert_eq!((lab.upf.poll_trace(&mut packets), packets), (0, vec![]));
    }
}
