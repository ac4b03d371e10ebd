//! Tests of the start and end of associations.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use pith_runtime::sctp::{self, DownReason, FormerPeer, SctpConfig, SctpError, SctpEvent, SctpMode};

use crate::node::Node;
use crate::peer::{COUNT, ECHO, ORDER, Peer};
use crate::{exclusively, in_each_mode, server, udp};

/// Detects an unreachable peer within a second.
fn impatient() -> SctpConfig {
    SctpConfig {
        heartbeat: Duration::from_millis(100),
        rto_initial: Duration::from_millis(100),
        rto_min: Duration::from_millis(50),
        rto_max: Duration::from_millis(150),
        max_retransmissions: 3,
        max_init_attempts: 3,
        ..SctpConfig::default()
    }
}

#[test]
fn a_killed_peer_is_noticed_without_sending() {
    in_each_mode(|mode| {
        let peer = Peer::start(mode, &[server()]);
        let mut node = Node::new(mode, impatient());
        let id = node.connect(server());
        node.run_for(Duration::from_millis(300));
        assert_eq!(node.events, []);
        peer.kill();
        let killed = Instant::now();
        // The kernel outlives the process and sends an ABORT.
        let reason = if mode == SctpMode::Kernel { DownReason::Aborted } else { DownReason::Unreachable };
        assert_eq!(node.down(id), reason);
        assert!(killed.elapsed() < Duration::from_secs(4), "{:?}", killed.elapsed());
    });
}

/// RFC 9260 8.5.1: an ABORT with the receiver's tag is accepted.
#[test]
fn the_next_process_aborts_the_associations_of_a_killed_one() {
    in_each_mode(|mode| {
        let peer = Peer::start(mode, &[server()]);
        let mut node = Node::new(mode, SctpConfig::default());
        let id = node.connect(server());
        node.send(id, 0, ORDER, b"former");
        let (_, _, text) = node.message(id);
        let former: Result<FormerPeer, _> = std::str::from_utf8(&text).unwrap().parse();
        if mode == SctpMode::Kernel {
            // The kernel has aborted the association before the next process starts.
            assert!(former.is_err());
            return;
        }
        let former = former.unwrap();
        assert_eq!(former.local, server());
        peer.kill();
        node.run_for(Duration::from_millis(200));
        let wrong = FormerPeer { tag: !former.tag, ..former };
        let other = Peer::start_after(mode, &[server()], Some(&wrong));
        node.run_for(Duration::from_millis(200));
        assert_eq!(node.events, [], "a wrong tag aborts nothing");
        other.kill();
        let _next = Peer::start_after(mode, &[server()], Some(&former));
        let started = Instant::now();
        assert_eq!(node.down(id), DownReason::Aborted);
        assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
        let again = node.connect(server());
        node.send(again, 0, ECHO, b"served again");
        assert_eq!(node.message(again).2, b"served again");
    });
}

#[test]
fn a_missing_peer_is_noticed() {
    in_each_mode(|mode| {
        let mut node = Node::new(mode, impatient());
        let id = node.transport.connect(None, server()).unwrap();
        // The kernel answers for ports without a listener.
        let reason = if mode == SctpMode::Kernel { DownReason::Refused } else { DownReason::Unreachable };
        assert_eq!(node.down(id), reason);
    });
}

#[test]
fn a_shutdown_delivers_first_and_is_reported_on_both_sides() {
    in_each_mode(|mode| {
        let _peer = Peer::start(mode, &[server()]);
        let mut node = Node::new(mode, SctpConfig::default());
        let own = node.connect(server());
        node.send(own, 0, COUNT, b"last words");
        node.transport.shutdown(own);
        assert_eq!(node.down(own), DownReason::Shutdown);

        let theirs = node.connect(server());
        node.send(theirs, 0, ORDER, b"count");
        assert_eq!(node.message(theirs).2, b"10");
        node.send(theirs, 0, ORDER, b"shutdown");
        assert_eq!(node.down(theirs), DownReason::Shutdown);
        assert_eq!(node.events, []);
    });
}

#[test]
fn an_abort_is_reported_to_the_peer() {
    in_each_mode(|mode| {
        let _peer = Peer::start(mode, &[server()]);
        let mut node = Node::new(mode, SctpConfig::default());
        let id = node.connect(server());
        node.send(id, 0, ORDER, b"abort");
        assert_eq!(node.down(id), DownReason::Aborted);
    });
}

#[test]
fn a_dropped_transport_aborts_and_permits_another_one() {
    in_each_mode(|mode| {
        let _peer = Peer::start(mode, &[server()]);
        for _ in 0..3 {
            let mut node = Node::new(mode, SctpConfig::default());
            if mode != SctpMode::Kernel {
                assert!(matches!(sctp::open(mode, SctpConfig::default()), Err(SctpError::EngineExists)));
            }
            let id = node.connect(server());
            node.send(id, 0, ECHO, b"hello");
            node.message(id);
        }
    });
}

#[test]
fn a_listener_s_address_belongs_to_one_process() {
    in_each_mode(|mode| {
        let _peer = Peer::start(mode, &[server()]);
        let mut node = Node::new(mode, SctpConfig::default());
        let refused = node.transport.listen(server()).unwrap_err();
        assert!(refused.to_string().contains("in use"), "{refused}");
    });
}

#[test]
fn an_association_above_the_limit_is_refused() {
    in_each_mode(|mode| {
        let _peer = Peer::start(mode, &[server()]);
        let mut node = Node::new(mode, SctpConfig { max_associations: 2, ..SctpConfig::default() });
        let first = node.connect(server());
        node.connect(server());
        let refused = node.transport.connect(None, server());
        assert!(matches!(refused, Err(SctpError::TooManyAssociations(2))));
        node.transport.abort(first);
        node.connect(server());
    });
}

#[test]
fn hundreds_of_associations_from_many_addresses_are_independent() {
    in_each_mode(|mode| {
        let _peer = Peer::start(mode, &[server()]);
        let mut node = Node::new(mode, SctpConfig::default());
        let connect = |n: u16| {
            let local = IpAddr::from([127, 0, 1, (n % 50) as u8 + 1]);
            node.transport.connect(Some(local), server()).unwrap()
        };
        let ids: Vec<_> = (0..400).map(connect).collect();
        for &id in &ids {
            let local = node.up(id);
            node.send(id, 0, ECHO, local.to_string().as_bytes());
            assert_eq!(node.message(id).2, local.to_string().into_bytes());
        }
    });
}

#[test]
fn thousands_of_successive_associations_leak_no_memory() {
    in_each_mode(|mode| {
        let peer = Peer::start(mode, &[server()]);
        let mut node = Node::new(mode, SctpConfig::default());
        let mut address = 0_u16;
        let mut cycle = |graceful: bool| {
            // The kernel chooses ports at random, and answers for a port that it used before: a new address
            // each time keeps the associations independent.
            address += 1;
            let [high, low] = address.to_be_bytes();
            let local = (mode == SctpMode::Kernel).then(|| IpAddr::from([127, 1, high, low]));
            let id = node.connect_from(local, server());
            if graceful {
                node.transport.shutdown(id);
                assert_eq!(node.down(id), DownReason::Shutdown);
            } else {
                node.transport.abort(id);
            }
        };
        (0..500).for_each(|n| cycle(n % 2 == 0));
        let before = peer.resident_kb();
        (0..1500).for_each(|n| cycle(n % 2 == 0));
        let grown = peer.resident_kb().saturating_sub(before);
        assert!(grown < 1500, "the peer grew by {grown} kB over 1500 associations");
    });
}

#[test]
fn the_chosen_mode_is_described() {
    let _guard = exclusively();
    let transport = sctp::open(SctpMode::Udp(5555), SctpConfig::default()).unwrap();
    assert!(transport.description().contains("UDP port 5555"), "{}", transport.description());
    assert_eq!(transport.next_deadline(), None);
    drop(transport);
    let automatic = sctp::open(SctpMode::Auto, SctpConfig::default()).unwrap();
    assert!(automatic.description().contains(": "), "{}", automatic.description());
}

#[test]
fn accepted_and_ended_associations_are_reported_once() {
    let _guard = exclusively();
    let mut node = Node::new(udp(), SctpConfig::default());
    node.transport.listen(server()).unwrap();
    let client = node.connect(server());
    let accepted = node.wait_for("Up", |e| match e {
        SctpEvent::Up { association, local, .. } if *local == server() => Some(*association),
        _ => None,
    });
    node.send(accepted, 0, ECHO, b"hello");
    assert_eq!(node.message(client).2, b"hello");
    node.transport.shutdown(client);
    assert_eq!(node.down(client), DownReason::Shutdown);
    assert_eq!(node.down(accepted), DownReason::Shutdown);
    node.run_for(Duration::from_millis(50));
    assert_eq!(node.events, []);
}
