//! Tests that messages arrive complete, in order and once.

use std::net::{Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use pith_runtime::sctp::{SctpConfig, SctpEvent, SendError};

use crate::node::Node;
use crate::peer::{COUNT, ECHO, ORDER, Peer};
use crate::{in_each_mode, port, server};

#[test]
fn a_thousand_messages_on_several_streams_keep_their_order() {
    in_each_mode(|mode| {
        let _peer = Peer::start(mode, &[server()]);
        let mut node = Node::new(mode, SctpConfig::default());
        let id = node.connect(server());
        let streams = 7;
        for n in 0..1000_u32 {
            node.send(id, (n % streams) as u16, ECHO, &n.to_be_bytes());
        }
        let mut next: Vec<u32> = (0..streams).collect();
        for _ in 0..1000 {
            let (stream, ppid, payload) = node.message(id);
            let expected = &mut next[usize::from(stream)];
            assert_eq!((ppid, payload), (ECHO, expected.to_be_bytes().to_vec()));
            *expected += streams;
        }
    });
}

#[test]
fn messages_of_any_length_are_delivered() {
    in_each_mode(|mode| {
        let _peer = Peer::start(mode, &[server()]);
        let mut node = Node::new(mode, SctpConfig::default());
        let id = node.connect(server());
        for length in [1, 3, 1300, 1400, 1500, 9000, 70_000, 256 << 10] {
            let sent: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
            node.send(id, 3, ECHO, &sent);
            let (stream, ppid, received) = node.message(id);
            assert_eq!((stream, ppid), (3, ECHO));
            assert!(received == sent, "{length} bytes came back as {}", received.len());
        }
    });
}

#[test]
fn a_paused_peer_stops_the_sender_and_nothing_is_lost() {
    in_each_mode(|mode| {
        let _peer = Peer::start(mode, &[server()]);
        let config = SctpConfig::default();
        let room = config.send_buffer + config.receive_buffer;
        let mut node = Node::new(mode, config);
        let (id, other) = (node.connect(server()), node.connect(server()));
        node.send(id, 0, ORDER, b"pause");

        let message = [7; 1000];
        let mut taken = 0;
        let mut refused_since = Instant::now();
        while refused_since.elapsed() < Duration::from_millis(300) {
            match node.transport.send(id, 1, COUNT, &message) {
                Ok(()) => {
                    taken += message.len();
                    refused_since = Instant::now();
                    assert!(taken < room + 100_000, "{taken} bytes went to a peer that does not read");
                }
                Err(SendError::Backpressure) => node.run_for(Duration::from_millis(20)),
                Err(other) => panic!("{other}"),
            }
        }
        assert!(taken > 300_000, "only {taken} bytes were taken");

        node.events.clear();
        node.send(other, 0, ORDER, b"resume");
        node.wait_for("SendReady", |e| matches!(e, SctpEvent::SendReady { .. }).then_some(()));
        node.send(id, 1, ORDER, b"count");
        assert_eq!(node.message(id).2, taken.to_string().into_bytes());
    });
}

#[test]
fn reading_resumes_where_it_was_paused() {
    in_each_mode(|mode| {
        let _peer = Peer::start(mode, &[server()]);
        let mut node = Node::new(mode, SctpConfig::default());
        let id = node.connect(server());
        node.transport.pause_reading(id);
        for n in 0..100_u32 {
            node.send(id, 0, ECHO, &n.to_be_bytes());
        }
        node.run_for(Duration::from_millis(100));
        assert_eq!(node.events, []);
        node.transport.resume_reading(id);
        for n in 0..100_u32 {
            assert_eq!(node.message(id).2, n.to_be_bytes());
        }
    });
}

#[test]
fn unsendable_messages_get_specific_errors() {
    in_each_mode(|mode| {
        let _peer = Peer::start(mode, &[server()]);
        let mut node = Node::new(mode, SctpConfig { outbound_streams: 4, ..SctpConfig::default() });
        let id = node.transport.connect(None, server()).unwrap();
        assert_eq!(node.transport.send(id, 0, ECHO, b"early"), Err(SendError::Closed));
        node.up(id);
        assert_eq!(node.transport.send(id, 4, ECHO, b"beyond"), Err(SendError::NoSuchStream));
        assert_eq!(node.transport.send(id, 0, ECHO, b""), Err(SendError::Length));
        assert_eq!(node.transport.send(id, 0, ECHO, &vec![0; (256 << 10) + 1]), Err(SendError::Length));
        node.send(id, 3, ECHO, b"fine");
        assert_eq!(node.message(id), (3, ECHO, b"fine".to_vec()));
        node.transport.abort(id);
        assert_eq!(node.transport.send(id, 0, ECHO, b"late"), Err(SendError::Closed));
    });
}

#[test]
fn several_listeners_serve_both_families_and_any_address() {
    in_each_mode(|mode| {
        let (one, other) = (port(), port() + 8_000);
        let v4 = |port| SocketAddr::from(([127, 0, 0, 2], port));
        let v6 = |ip: Ipv6Addr| SocketAddr::from((ip, one));
        let _peer = Peer::start(mode, &[v4(one), v4(other), v6(Ipv6Addr::UNSPECIFIED)]);
        let mut node = Node::new(mode, SctpConfig::default());
        for remote in [v4(one), v4(other), v6(Ipv6Addr::LOCALHOST)] {
            let id = node.connect(remote);
            let name = remote.to_string().into_bytes();
            node.send(id, 1, ECHO, &name);
            assert_eq!(node.message(id), (1, ECHO, name));
        }
    });
}
