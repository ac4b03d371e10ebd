//! One gNB's uplink over all CPUs: packets of a session stay in order, and another CPU than the receiving one handles some sessions.

mod support;

use pith_datapath::DatapathConfig;
use pith_upf::contract::*;
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::Duration;
use support::*;

const SESSIONS: u32 = 16;
const PACKETS: u32 = 500;

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
    // The sender's CPU also receives the packets.
    pin_to(0);
    for packet in 0..PACKETS {
        for number in 0..SESSIONS {
            lab.uplink(TEID + number, &udp(ue(number), SERVER, 7000, &packet.to_be_bytes()));
        }
        if packet % 16 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let mut next: HashMap<_, u32> = HashMap::new();
    for _ in 0..SESSIONS * PACKETS {
        let mut number = [0; 4];
        let (_, from) = server.recv_from(&mut number).expect("each packet");
        let next = next.entry(from.ip()).or_default();
        assert_eq!(u32::from_be_bytes(number), *next, "of {from}");
        *next += 1;
    }
    let counters = lab.upf.counters();
    assert_eq!((counters.n3_in.packets, counters.dropped), (u64::from(SESSIONS * PACKETS), vec![]));
    assert_eq!(lab.tun_packets(), 0, "all by XDP");
    let volumes = (1..=u64::from(SESSIONS)).map(|id| lab.upf.usage(SessionId(id)).unwrap().urrs[0].volume);
    assert!(volumes.into_iter().all(|volume| volume.uplink_packets == u64::from(PACKETS)));
    assert!(cpumap_time(1) > Duration::ZERO, "the other CPU handles sessions");
}
