//! One gNB's uplink over all CPUs: packets of a session stay in order, and another CPU than the receiving one handles some sessions.

mod support;

use pith_datapath::DatapathConfig;
use pith_upf::contract::*;
use std::collections::HashMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;
use support::*;

const SESSIONS: u32 = 16;
const PACKETS: u32 = 500;
/// Sessions whose packets wait for their rate: each CPU has some.
const SLOW_SESSIONS: u32 = 8;
const SLOW_PACKETS: u32 = 24;
/// In bit/s.
const SLOW: u64 = 4_000_000;

fn ue(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 45, 1, 0).to_bits() + number)
}

#[test]
fn sessions_of_one_gnb_are_handled_in_order_by_several_cpus() {
    if std::thread::available_parallelism().unwrap().get() < 2 {
        return eprintln!("needs two CPUs");
    }
    for kind in [Kind::Generic, Kind::Native] {
        // Each in its own thread: a UPF that a thread bound to one CPU starts has only that one.
        std::thread::spawn(move || one_gnb(kind)).join().unwrap();
    }
}

fn one_gnb(kind: Kind) {
    let config = DatapathConfig { spread: true, workers: 2, ..DatapathConfig::default() };
    let Some(mut lab) = lab(kind, config) else { return };
    for number in 0..SESSIONS {
        lab.install(session_of(u64::from(number) + 1, ue(number), TEID + number, GNB_TEID + number));
    }
    let server = lab.data_network(7000);
    receive_much(&server);
    for packet in 0..PACKETS {
        // The sender's CPU also receives the packets.
        pin_to(packet as usize / 3 % 2);
        for number in 0..SESSIONS {
            lab.uplink(TEID + number, &udp(ue(number), SERVER, 7000, &packet.to_be_bytes()));
        }
        if packet % 16 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    receive_in_order(&server, SESSIONS * PACKETS);
    let counters = lab.upf.counters();
    assert_eq!((counters.n3_in.packets, counters.dropped), (u64::from(SESSIONS * PACKETS), vec![]));
    assert_eq!(lab.tun_packets(), 0, "all by XDP");
    let volumes = (1..=u64::from(SESSIONS)).map(|id| lab.upf.usage(SessionId(id)).unwrap().urrs[0].volume);
    assert!(volumes.into_iter().all(|volume| volume.uplink_packets == u64::from(PACKETS)));
    assert!(cpumap_time(1) > Duration::ZERO, "the other CPU handles sessions");
    packets_wait_for_their_rate(&mut lab, &server);
}

/// Packets above their session's rate go to user space.
fn packets_wait_for_their_rate(lab: &mut Lab, server: &UdpSocket) {
    // As a gNB on this host sends: without checksums, which the network card would add.
    lab.radio.run(|| drop(run("ethtool -K eth0 tx on")));
    for number in SESSIONS..SESSIONS + SLOW_SESSIONS {
        let mut session = session_of(u64::from(number) + 1, ue(number), TEID + number, GNB_TEID + number);
        session.qers[1].mbr = Some(Rates { uplink: SLOW, downlink: SLOW });
        lab.install(session);
    }
    for packet in 0..SLOW_PACKETS {
        if packet % (SLOW_PACKETS / 2) == 0 {
            pin_to((packet > 0).into());
        }
        for number in SESSIONS..SESSIONS + SLOW_SESSIONS {
            let payload = [&packet.to_be_bytes()[..], &[0; 1200]].concat();
            lab.uplink(TEID + number, &udp(ue(number), SERVER, 7000, &payload));
        }
    }
    server.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let (mut last, mut received, mut number) = (HashMap::new(), 0, [0; 4]);
    while let Ok((_, from)) = server.recv_from(&mut number) {
        let number = u32::from_be_bytes(number);
        let before = last.insert(from.ip(), number);
        assert!(before.is_none_or(|before| before < number), "{number} of {from} behind {before:?}");
        received += 1;
    }
    let dropped: u64 = lab.upf.counters().dropped.iter().map(|(_, packets)| packets).sum();
    assert_eq!(received + dropped, u64::from(SLOW_SESSIONS * SLOW_PACKETS), "queues are short, none is lost");
    let count = |id| lab.upf.flows(SessionId(id)).into_iter().map(|flow| flow.count);
    let waited = |id| count(id).any(|count| count.passed().packets > count.fast.packets);
    let first = u64::from(SESSIONS) + 1;
    assert!((first..first + u64::from(SLOW_SESSIONS)).all(waited), "packets waited in user space");
}

/// Receives `packets` packets. Those of each UE come in the order of their numbers, without gaps.
fn receive_in_order(server: &UdpSocket, packets: u32) {
    let mut next: HashMap<_, u32> = HashMap::new();
    for _ in 0..packets {
        let mut number = [0; 4];
        let (_, from) = server.recv_from(&mut number).expect("each packet");
        let next = next.entry(from.ip()).or_default();
        assert_eq!(u32::from_be_bytes(number), *next, "of {from}");
        *next += 1;
    }
}
