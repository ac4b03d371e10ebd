//! Tests with peers that violate the protocol.

use std::time::{Duration, Instant};

use pith_runtime::sctp::{
    AssociationId, DownReason, Encapsulation, SctpConfig, SctpEvent, SctpTransport, UserTransport,
};

use crate::node::Node;
use crate::packet::{ABORT, INIT, INIT_ACK, Stranger, init_body, packet};
use crate::peer::{ECHO, Peer};
use crate::{exclusively, in_each_mode, port, server, udp};

fn stranger(ports: (u16, u16)) -> Stranger {
    Stranger::new(([127, 0, 0, 1], port() - 10_000).into(), ports)
}

#[test]
fn only_well_formed_packets_for_a_listener_are_answered() {
    let _guard = exclusively();
    let _peer = Peer::start(udp(), &[server()]);
    let ours = stranger((1234, port()));
    let good = packet(ours.ports, 0, INIT, &init_body(99));
    for at in 0..good.len() {
        let mut flipped = good.clone();
        flipped[at] ^= 1;
        ours.send(&flipped);
    }
    (0..good.len()).for_each(|length| ours.send(&good[..length]));
    ours.send(&packet((1234, port() + 1), 0, INIT, &init_body(99)));
    ours.send(&packet((0, port()), 0, INIT, &init_body(99)));
    assert_eq!(ours.receive(), None, "a broken or foreign packet was answered");

    ours.send(&good);
    assert_eq!(ours.receive().map(|(kind, _)| kind), Some(INIT_ACK));
}

#[test]
fn packets_dropped_are_counted_by_reason() {
    let _guard = exclusively();
    let config = SctpConfig::default();
    let mut transport =
        UserTransport::open(Encapsulation::Udp { port: port() - 10_000 }, config, String::new()).unwrap();
    transport.listen(server()).unwrap();
    let ours = stranger((1234, port()));
    let good = packet(ours.ports, 0, INIT, &init_body(99));
    let mut flipped = good.clone();
    flipped[20] ^= 1;
    ours.send(&good[..10]);
    ours.send(&flipped);
    ours.send(&packet((1234, 7), 0, INIT, &init_body(99)));
    ours.send(&good);
    transport.process(Instant::now(), &mut Vec::new());
    let counters = transport.counters();
    assert_eq!((counters.malformed, counters.bad_checksum, counters.foreign), (1, 1, 1));
    assert_eq!((counters.accepted, transport.path_count()), (1, 1));
}

#[test]
fn a_packet_without_association_is_answered_by_an_abort() {
    let _guard = exclusively();
    let _peer = Peer::start(udp(), &[server()]);
    let ours = stranger((1234, port()));
    let heartbeat = [0, 1, 0, 8, 1, 2, 3, 4];
    ours.send(&packet(ours.ports, 5555, 4, &heartbeat));
    assert_eq!(ours.receive().map(|(kind, _)| kind), Some(ABORT));
}

#[test]
fn a_flood_of_inits_uses_no_memory_and_delays_no_other_peer() {
    let _guard = exclusively();
    let peer = Peer::start(udp(), &[server()]);
    let mut node = Node::new(udp(), SctpConfig::default());
    node.connect(server());
    let before = peer.resident_kb();
    let ours = stranger((1, port()));
    for n in 0..50_000_u32 {
        ours.send(&packet(((n % 60_000) as u16 + 1, port()), 0, INIT, &init_body(n + 1)));
    }
    let id = node.connect(server());
    node.send(id, 0, ECHO, b"still there");
    assert_eq!(node.message(id).2, b"still there");
    let grown = peer.resident_kb().saturating_sub(before);
    assert!(grown < 4000, "the peer grew by {grown} kB over 50,000 INITs");
}

#[test]
fn a_restarted_peer_gets_a_new_association() {
    let _guard = exclusively();
    let mut node = Node::new(udp(), SctpConfig::default());
    node.transport.listen(server()).unwrap();
    let theirs = std::thread::spawn(|| {
        let ours = stranger((1234, port()));
        ours.establish(77);
        ours.establish(88);
        ours
    });
    let old = next_up(&mut node);
    assert_eq!(node.down(old), DownReason::Restarted);
    let new = next_up(&mut node);
    assert_ne!(old, new);
    node.transport.send(new, 0, ECHO, b"to the new one").unwrap();
    node.transport.flush();
    let received = theirs.join().unwrap().receive().expect("data").1;
    assert!(received.windows(14).any(|w| w == b"to the new one"));
}

fn next_up(node: &mut Node) -> AssociationId {
    node.wait_for("Up", |e| match e {
        SctpEvent::Up { association, .. } => Some(*association),
        _ => None,
    })
}

#[test]
fn a_message_beyond_the_limit_ends_only_its_association() {
    in_each_mode(|mode| {
        let _peer = Peer::start(mode, &[server()]);
        let mut node = Node::new(mode, SctpConfig { max_message: 1 << 20, ..SctpConfig::default() });
        let good = node.connect(server());
        let bad = node.connect(server());
        node.send(bad, 0, ECHO, &vec![0; 300_000]);
        assert_eq!(node.down(bad), DownReason::Aborted);
        node.send(good, 0, ECHO, b"unharmed");
        assert_eq!(node.message(good).2, b"unharmed");
    });
}

#[test]
fn a_peer_that_stops_answering_is_unreachable() {
    let _guard = exclusively();
    let config = SctpConfig {
        heartbeat: Duration::from_millis(100),
        rto_initial: Duration::from_millis(100),
        rto_min: Duration::from_millis(50),
        rto_max: Duration::from_millis(100),
        max_retransmissions: 3,
        ..SctpConfig::default()
    };
    let mut node = Node::new(udp(), config);
    node.transport.listen(server()).unwrap();
    let theirs = std::thread::spawn(|| stranger((1234, port())).establish(77));
    let id = next_up(&mut node);
    theirs.join().unwrap();
    assert_eq!(node.down(id), DownReason::Unreachable);
}
