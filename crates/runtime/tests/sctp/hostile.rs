//! Tests with peers that violate the protocol.

use std::time::{Duration, Instant};

use pith_runtime::sctp::{
    AssociationId, DownReason, Encapsulation, SctpConfig, SctpEvent, SctpTransport, UserTransport,
};

use crate::node::Node;
use crate::packet::{ABORT, COOKIE_ACK, ERROR, INIT, INIT_ACK, Stranger, init_body, packet};
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

/// RFC 9260 8.4, rule 7: the peer may have got an ABORT since it sent its COOKIE ECHO.
#[test]
fn an_answer_to_no_cookie_echo_is_discarded() {
    let _guard = exclusively();
    let _peer = Peer::start(udp(), &[server()]);
    let ours = stranger((1234, port()));
    ours.send(&packet(ours.ports, 5555, COOKIE_ACK, &[]));
    let stale_cookie = [0, 3, 0, 8, 0, 0, 0, 1];
    ours.send(&packet(ours.ports, 5555, ERROR, &stale_cookie));
    assert_eq!(ours.receive(), None);
    let unrecognized_chunk = [0, 6, 0, 8, 0xfe, 0, 0, 4];
    ours.send(&packet(ours.ports, 5555, ERROR, &unrecognized_chunk));
    assert_eq!(ours.receive().map(|(kind, _)| kind), Some(ABORT));
    let tag = ours.establish(77);
    ours.send(&packet(ours.ports, tag, COOKIE_ACK, &[]));
    ours.send(&packet(ours.ports, tag, ERROR, &stale_cookie));
    assert!(ours.is_alive(tag), "an association that is up ignores them");
}

/// RFC 6951 5.4: UDP ports do not identify an association. A NAT may change the peer's.
#[test]
fn an_association_follows_its_peer_to_another_udp_port() {
    let _guard = exclusively();
    let mut node = Node::new(udp(), SctpConfig::default());
    node.transport.listen(server()).unwrap();
    let theirs = std::thread::spawn(|| {
        let first = stranger((1234, port()));
        let tag = first.establish(77);
        let neighbour = first.at("127.0.0.1").shared((1235, port()));
        // Two associations from one UDP port.
        let shared = first.shared((1236, port()));
        let shared_tag = shared.establish(79);
        assert!(!neighbour.is_alive(tag), "another SCTP port");
        let second = first.at("127.0.0.1");
        assert!(!second.is_alive(!tag), "a wrong tag");
        assert!(first.is_alive(tag), "it has not moved");
        assert!(second.is_alive(tag));
        assert!(shared.is_alive(shared_tag), "the other association has not moved");
        (second, shared)
    });
    let id = next_up(&mut node);
    let other = next_up(&mut node);
    while !theirs.is_finished() {
        node.run_for(Duration::from_millis(10));
    }
    let (second, shared) = theirs.join().unwrap();
    assert_eq!(node.events, []);
    for (id, to, text) in [(id, second, b"moved"), (other, shared, b"stays")] {
        node.transport.send(id, 0, ECHO, text).unwrap();
        node.transport.flush();
        let received = std::iter::from_fn(|| to.receive());
        assert!(received.into_iter().any(|(_, it)| it.windows(5).any(|w| w == text)), "{text:?}");
    }
    let former = node.transport.former_peer(id).unwrap();
    assert_eq!(former.tag, 77);
}

/// RFC 9260 5.2.4: only a peer that gets packets at the other UDP port has an association from there. It does not end that of a peer with the same
/// address and SCTP port: both may be behind one address translator.
#[test]
fn peers_with_one_sctp_port_differ_by_udp_port_if_their_cookies_were_sent_there() {
    let _guard = exclusively();
    let mut node = Node::new(udp(), SctpConfig::default());
    node.transport.listen(server()).unwrap();
    let theirs = std::thread::spawn(|| {
        let first = stranger((1234, port()));
        let tag = first.establish(77);
        // A cookie that was sent to another address, from an address that is not the sender's.
        let (_, cookie) = first.at("127.0.0.2").cookie_echo(78);
        let forged = first.at("127.0.0.1");
        forged.send(&cookie);
        assert_eq!(forged.receive(), None);
        assert!(first.is_alive(tag));
        let second = first.at("127.0.0.1");
        let other = second.establish(88);
        assert!(first.is_alive(tag) && second.is_alive(other));
        // The first one moves.
        let moved = first.at("127.0.0.1");
        assert!(moved.is_alive(tag) && second.is_alive(other));
    });
    let [first, second] = [next_up(&mut node), next_up(&mut node)];
    while !theirs.is_finished() {
        node.run_for(Duration::from_millis(10));
    }
    theirs.join().unwrap();
    assert_eq!(node.events, []);
    assert_eq!(node.transport.former_peer(first).unwrap().tag, 77);
    assert_eq!(node.transport.former_peer(second).unwrap().tag, 88);
}

/// A packet from an unknown UDP port is compared with the tag of each.
#[test]
fn the_associations_with_one_sctp_port_are_limited() {
    let _guard = exclusively();
    let _peer = Peer::start(udp(), &[server()]);
    let first = stranger((1234, port()));
    let tag = first.establish(1);
    let others: Vec<_> = (2..=16).map(|tag| (first.at("127.0.0.1"), tag)).collect();
    for (other, tag) in &others {
        other.establish(*tag);
    }
    let excess = first.at("127.0.0.1");
    excess.send(&packet(excess.ports, 0, INIT, &init_body(17)));
    assert_eq!(excess.receive(), None);
    assert!(first.is_alive(tag));
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
    assert_eq!(node.transport.former_peer(new).unwrap().tag, 88, "that of the association since its restart");
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
