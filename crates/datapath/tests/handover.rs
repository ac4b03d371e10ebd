//! AF_XDP under overload: it recovers, and every packet is accounted for.

mod support;

use pith_datapath::DatapathConfig;
use pith_upf::contract::*;
use pith_upf::qos::Count;
use std::net::{Ipv4Addr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};
use support::*;

/// UE's port.
const PORT: u16 = 5000;

/// The XDP path with the native hook, which uses AF_XDP.
fn native() -> Option<Lab> {
    lab(Kind::Native, DatapathConfig { workers: 1, ..DatapathConfig::default() })
}

fn sum(counters: &Counters) -> u64 {
    let dropped: u64 = counters.dropped.iter().map(|(_, count)| count).sum();
    counters.n3_out.packets + counters.n6_out.packets + dropped + counters.buffered
}

/// Waits until every received packet is sent, dropped by name, or queued.
fn wait_balanced(lab: &Lab) {
    wait_for("as many out as in", || {
        let counters = lab.upf.counters();
        sum(&counters) == counters.n3_in.packets + counters.n6_in.packets
    });
}

fn limited(id: u64, ue: Ipv4Addr, rate: u64) -> Session {
    let mut session = session_of(id, ue, TEID + id as u32, GNB_TEID + id as u32);
    session.qers[1].mbr = Some(Rates { uplink: rate, downlink: rate });
    session
}

/// Sends trains of 64 small packets at full speed.
fn flood(socket: &UdpSocket, packets: usize) {
    for _ in 0..packets / 64 {
        for number in 0..64u8 {
            socket.send_to(&[number; 32], (UE, PORT)).unwrap();
        }
    }
}

#[test]
fn af_xdp_recovers_from_overload() {
    let Some(mut lab) = native() else { return };
    lab.install(idle());
    let server = lab.data_network(7000);
    let before = lab.tun_packets();
    for _ in 0..20 {
        flood(&server, 4096);
        wait_balanced(&lab);
        // The worker still takes new rules and packets.
        lab.install(session());
        lab.install(idle());
    }
    let counters = lab.upf.counters();
    assert!(counters.n6_in.packets >= 20 * 4096 * 9 / 10, "{counters:?}");
    assert_eq!(lab.tun_packets(), before, "frames that fit don't take the kernel's way");
    lab.install(session());
    wait_for("the held", || lab.upf.counters().buffered == 0);
    receive_much(&lab.gnb);
    lab.gnb.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    while lab.gnb.recv_from(&mut [0; 2048]).is_ok() {}
    lab.gnb.set_read_timeout(Some(PATIENCE)).unwrap();
    for number in 0..100u8 {
        server.send_to(&[number; 8], (UE, PORT)).unwrap();
        assert_eq!(lab.downlink().payload(), [number; 8]);
    }
}

#[test]
fn no_byte_of_usage_is_lost_or_doubled_while_sessions_come_and_go() {
    let Some(mut lab) = native() else { return };
    let ues: Vec<Ipv4Addr> = (2..10).map(|last| Ipv4Addr::new(10, 45, 0, last)).collect();
    let all = || (1..).zip(ues.iter().copied());
    all().for_each(|(id, ue)| lab.install(limited(id, ue, 20_000_000)));
    let (server, socket) = (lab.data_network(7000), lab.data_network(7001));
    receive_much(&server);
    receive_much(&lab.gnb);
    // Alternates above and below the rate: sessions move between user space and the program all the time.
    let targets = ues.clone();
    let sender = thread::spawn(move || {
        let begin = Instant::now();
        for burst in (1..=60).cycle() {
            for _ in 0..burst {
                targets.iter().for_each(|ue| drop(socket.send_to(&[0; 1000], (*ue, PORT))));
            }
            if begin.elapsed() > Duration::from_secs(2) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    });
    let mut turn = 0u64;
    while !sender.is_finished() {
        lab.upf.poll_events(&mut Vec::new());
        for (id, ue) in all() {
            lab.uplink(TEID + id as u32, &udp(ue, SERVER, 7000, &[0; 900]));
        }
        turn += 1;
        let (id, ue) = all().nth(turn as usize % ues.len()).unwrap();
        lab.install(limited(id, ue, 15_000_000 + turn % 5 * 5_000_000));
        thread::sleep(Duration::from_millis(5));
    }
    sender.join().unwrap();
    wait_for("empty queues", || lab.upf.counters().buffered == 0);
    wait_balanced(&lab);
    let mut used = Volume::default();
    for (id, _) in all() {
        let volume = lab.upf.usage(SessionId(id)).unwrap().urrs[0].volume;
        used.add(Direction::Uplink, volume.uplink_packets, volume.uplink);
        used.add(Direction::Downlink, volume.downlink_packets, volume.downlink);
    }
    let Counters { n3_out, n6_out, .. } = lab.upf.counters();
    assert_eq!((used.downlink, used.downlink_packets), (n3_out.bytes, n3_out.packets));
    assert_eq!((used.uplink, used.uplink_packets), (n6_out.bytes, n6_out.packets));
    for (direction, out) in [(Direction::Downlink, n3_out), (Direction::Uplink, n6_out)] {
        let flows = all().flat_map(|(id, _)| lab.upf.flows(SessionId(id)));
        let passed = flows.filter(|flow| flow.direction == direction).map(|flow| flow.count.passed());
        let passed = passed.fold(Count::default(), |sum, count| sum + count);
        assert_eq!((passed.packets, passed.bytes), (out.packets, out.bytes), "{direction:?}");
    }
    let by_user_space: u64 = all().map(|(id, _)| lab.user_packets(id)).sum();
    assert!(by_user_space > 0 && by_user_space < n3_out.packets + n6_out.packets, "both ways were taken");
}
