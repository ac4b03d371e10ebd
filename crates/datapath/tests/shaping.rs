//! Sessions above their rates, with real packets: which packets are queued, how long, and the shares of
//! flows.

mod support;

use pith_datapath::{BufferLimits, DatapathConfig};
use pith_upf::contract::*;
use std::collections::HashMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};
use support::*;

const MBIT: u64 = 1_000_000;
/// The UE's port for the QoS flow's traffic, and for the rest.
const QOS: u16 = 5001;
const REST: u16 = 5000;
/// Bytes of a packet, and of its payload.
const BYTES: usize = 1000;
const PAYLOAD: usize = BYTES - 28;

fn both_ways(rate: u64) -> Option<Rates> {
    Some(Rates { uplink: rate, downlink: rate })
}

/// The session with an AMBR, and a QoS flow of that GBR and MBR.
fn qos_session(ambr: u64, gbr: u64, mbr: u64) -> Session {
    let mut session = session();
    session.qers[1].mbr = both_ways(ambr);
    let own = Qer {
        id: QerId(3),
        gates: Gates::OPEN,
        mbr: both_ways(mbr),
        gbr: both_ways(gbr),
        qfi: Some(Qfi(2)),
        rqi: false,
    };
    session.qers.push(own);
    let text = format!("permit out 17 from any to assigned {QOS}");
    let filters = text.parse::<FlowDescription>().unwrap().filters;
    let qers = vec![QerId(3), QerId(2)];
    session.pdrs.push(Pdr { id: PdrId(3), precedence: 1, filters, qers, ..session.pdrs[1].clone() });
    session
}

fn limited(ambr: u64) -> Session {
    let mut session = session();
    session.qers[1].mbr = both_ways(ambr);
    session
}

/// Sends packets of `BYTES` at a rate for some time.
fn pace(rate: u64, time: Duration, mut send: impl FnMut(u64)) {
    let (begin, mut sent) = (Instant::now(), 0);
    while begin.elapsed() < time {
        let due = begin.elapsed().as_micros() as u64 * rate / (BYTES as u64 * 8 * 1_000_000);
        while sent < due {
            send(sent);
            sent += 1;
        }
        thread::sleep(Duration::from_micros(500));
    }
}

/// Bytes that the gNB receives within some time, by the UE's port.
fn receive_by_port(gnb: &UdpSocket, time: Duration) -> HashMap<u16, usize> {
    let (begin, mut bytes, mut buffer) = (Instant::now(), HashMap::new(), [0; 2048]);
    gnb.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    while begin.elapsed() < time {
        let Ok(length) = gnb.recv(&mut buffer) else { continue };
        let inner = &buffer[16..length];
        *bytes.entry(u16::from_be_bytes([inner[22], inner[23]])).or_default() += inner.len();
    }
    bytes
}

fn mbit(bytes: usize, time: Duration) -> f64 {
    bytes as f64 * 8e-6 / time.as_secs_f64()
}

/// Mbit/s of a QoS flow and of the rest, with 10 offered for each.
fn shares(lab: &Lab) -> [f64; 2] {
    let time = Duration::from_millis(1500);
    let senders = [QOS, REST].map(|port| {
        let socket = lab.data_network(7000 + port % 10);
        thread::spawn(move || pace(10 * MBIT, time, |_| drop(socket.send_to(&[0; PAYLOAD], (UE, port)))))
    });
    receive_by_port(&lab.gnb, Duration::from_millis(300));
    let window = Duration::from_secs(1);
    let bytes = receive_by_port(&lab.gnb, window);
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    [QOS, REST].map(|port| mbit(bytes[&port], window))
}

#[test]
fn a_qos_flow_and_the_rest_get_their_shares() {
    for (gbr, mbr, expected) in [(2, 5, [5.0, 5.0]), (4, 7, [7.0, 3.0])] {
        for mut lab in labs() {
            lab.install(qos_session(10 * MBIT, gbr * MBIT, mbr * MBIT));
            // A busy machine may delay the worker, and thereby reduce the session's rate.
            let mut all = (0..5).map(|_| shares(&lab));
            let near = |rates: &[f64; 2]| {
                rates.iter().zip(expected).all(|(rate, it)| (rate / it - 1.0).abs() < 0.04)
            };
            assert!(all.any(|rates| near(&rates)), "{:?} Mbit/s, not {expected:?}", shares(&lab));
            wait_for("empty queues", || lab.upf.counters().buffered == 0);
            let usage = lab.upf.flows(SessionId(1));
            let qos = usage.iter().find(|flow| flow.qers.contains(&QerId(3))).unwrap();
            assert!(qos.count.green.packets > 0 && qos.count.yellow.packets > 0);
            assert!(qos.count.red.packets + qos.count.dropped.packets > 0);
            let out = lab.upf.counters().n3_out.packets;
            assert_eq!(usage.iter().map(|flow| flow.count.passed().packets).sum::<u64>(), out);
            // Packets that bypass user space belong to flows without queued packets.
            let by_user = lab.user_packets(1);
            let is_fast = lab.kind != Kind::Portable;
            assert!(by_user == out || is_fast && by_user > out / 2 && by_user < out, "{by_user} of {out}");
        }
    }
}

#[test]
fn uplink_is_shaped_too_and_nothing_is_lost_without_a_name() {
    for mut lab in labs() {
        lab.install(limited(8 * MBIT));
        let server = lab.data_network(7000);
        receive_much(&server);
        let packet = udp(UE, SERVER, 7000, &[0; PAYLOAD]);
        let time = Duration::from_secs(1);
        pace(16 * MBIT, time, |_| lab.uplink(TEID, &packet));
        wait_for("empty queues", || lab.upf.counters().buffered == 0);
        let counters = lab.upf.counters();
        let dropped: u64 = counters.dropped.iter().map(|(_, count)| count).sum();
        assert_eq!(counters.n3_in.packets, counters.n6_out.packets + dropped);
        let rate = mbit(counters.n6_out.bytes as usize, time);
        assert!((7.6..8.8).contains(&rate), "{rate} Mbit/s: a burst and a queue more than 8");
        let volume = lab.upf.usage(SessionId(1)).unwrap().urrs[0].volume;
        assert_eq!(volume.uplink, counters.n6_out.bytes);
    }
}

#[test]
fn new_rules_apply_to_queued_packets_in_order() {
    for mut lab in labs() {
        lab.install(limited(2 * MBIT));
        let server = lab.data_network(7000);
        let send = move |number: u64| {
            let mut payload = [0; PAYLOAD];
            payload[..8].copy_from_slice(&number.to_be_bytes());
            server.send_to(&payload, (UE, REST)).unwrap();
        };
        let sender = thread::spawn(move || pace(6 * MBIT, Duration::from_secs(1), send));
        let mut last = None;
        let begin = Instant::now();
        let rates = [2, 20, 1, 50].iter().cycle();
        for (turn, rate) in (0..).zip(rates) {
            if begin.elapsed() > Duration::from_millis(900) {
                break;
            }
            let mut session = limited(rate * MBIT);
            let tunnel = tunnel_to(GNB, GNB_TEID + turn % 2);
            session.fars[1].action = Action::Forward(Destination::Tunnel(tunnel));
            lab.install(session);
            for _ in 0..20 {
                let number = u64::from_be_bytes(lab.downlink().payload()[..8].try_into().unwrap());
                assert!(last < Some(number), "{last:?} before {number}");
                last = Some(number);
            }
        }
        sender.join().unwrap();
        wait_for("empty queues", || lab.upf.counters().buffered == 0);
    }
}

#[test]
fn a_session_that_falls_idle_with_packets_waiting_is_told_of_once() {
    let idle = |notify| {
        let mut session = limited(1000);
        session.fars[1].action = Action::Buffer { notify, packets: None };
        session
    };
    let told = Event::DownlinkData { session: SessionId(1), pdr: PdrId(2), qfi: Some(Qfi(QFI)), dscp: 0 };
    for mut lab in labs() {
        let server = lab.data_network(7000);
        let send = || drop(server.send_to(&[0; PAYLOAD], (UE, REST)));
        // The last packet of a queue waits for its tokens, which takes eight seconds.
        lab.install(limited(1000));
        (0..20).for_each(|_| send());
        let queued = || {
            let Counters { n6_in, n3_out, buffered, dropped, .. } = lab.upf.counters();
            let dropped: u64 = dropped.iter().map(|(_, count)| count).sum();
            n6_in.packets == 20 && n3_out.packets + buffered + dropped == 20 && buffered > 0
        };
        wait_for("a queue", queued);
        lab.install(idle(true));
        assert_eq!(lab.event(), told);
        let held = lab.upf.counters().buffered;
        send();
        wait_for("one more", || lab.upf.counters().buffered == held + 1);
        assert!(lab.no_event(), "told of already");
        // The new rules decide whether an event is reported, not the held packets.
        lab.install(idle(false));
        send();
        wait_for("another", || lab.upf.counters().buffered == held + 2);
        assert!(lab.no_event());
        lab.install(idle(true));
        assert_eq!(lab.event(), told);
    }
}

#[test]
fn a_session_goes_away_with_what_it_has_waiting() {
    for mut lab in labs() {
        let server = lab.data_network(7000);
        for _ in 0..20 {
            lab.install(limited(MBIT));
            for _ in 0..30 {
                server.send_to(&[0; PAYLOAD], (UE, REST)).unwrap();
            }
            thread::sleep(Duration::from_millis(3));
            let volume = lab.upf.remove(SessionId(1)).unwrap().urrs[0].volume;
            let counters = lab.upf.counters();
            assert_eq!(counters.buffered, 0);
            assert!(volume.downlink_packets <= counters.n3_out.packets);
        }
        let balanced = || {
            let counters = lab.upf.counters();
            let dropped: u64 = counters.dropped.iter().map(|(_, count)| count).sum();
            counters.n6_in.packets == counters.n3_out.packets + dropped
        };
        wait_for("as many out as in", balanced);
    }
}

/// Sessions, numbered from 0.
fn many(count: u32, ambr: u64) -> impl Iterator<Item = Session> {
    (0..count).map(move |number| {
        let mut session = session_of(u64::from(number) + 1, ue(number), TEID + number, 0x10_0000 + number);
        session.qers[1].mbr = both_ways(ambr);
        session
    })
}

fn ue(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 45, 1, 0).to_bits() + number)
}

#[test]
fn a_thousand_sessions_are_shaped_each_to_its_rate() {
    const COUNT: u32 = 1000;
    for mut lab in labs() {
        many(COUNT, MBIT / 10).for_each(|session| lab.install(session));
        let server = lab.data_network(7000);
        let time = Duration::from_secs(2);
        // 200 kbit/s for each: twice each session's share.
        pace(200 * MBIT, time, |n| drop(server.send_to(&[0; PAYLOAD], (ue(n as u32 % COUNT), REST))));
        wait_for("empty queues", || lab.upf.counters().buffered == 0);
        let burst = 3_000 + 2 * 3_028 + BYTES as u64;
        let exact = MBIT / 80 * 2;
        for number in 1..=u64::from(COUNT) {
            let bytes = lab.upf.usage(SessionId(number)).unwrap().urrs[0].volume.downlink;
            let expected = exact * 9 / 10..=exact * 21 / 20 + burst;
            assert!(expected.contains(&bytes), "session {number}: {bytes} bytes, not {expected:?}");
        }
    }
}

#[test]
fn a_hundred_packets_for_each_of_a_thousand_idle_ues_arrive_in_order() {
    const COUNT: u32 = 1000;
    const EACH: u32 = 100;
    let buffer = BufferLimits { packets: 100_000, ..BufferLimits::default() };
    let config = DatapathConfig { workers: 2, buffer, ..DatapathConfig::default() };
    for mut lab in labs_with(config) {
        let idle = |mut session: Session| {
            session.fars[1].action = Action::Buffer { notify: true, packets: None };
            session
        };
        many(COUNT, 100 * MBIT).for_each(|session| lab.install(idle(session)));
        let server = lab.data_network(7000);
        for number in 0..EACH {
            for at in 0..COUNT {
                server.send_to(&number.to_be_bytes(), (ue(at), REST)).unwrap();
            }
            let expected = u64::from((number + 1) * COUNT);
            wait_for("all held", || lab.upf.counters().buffered == expected);
        }
        let mut events = Vec::new();
        lab.upf.poll_events(&mut events);
        assert_eq!(events.len(), COUNT as usize, "each told of once");
        receive_much(&lab.gnb);
        let gnb = lab.gnb.try_clone().unwrap();
        let receiver = thread::spawn(move || {
            let (mut next, mut buffer) = (vec![0; COUNT as usize], [0; 2048]);
            for _ in 0..COUNT * EACH {
                let length = gnb.recv(&mut buffer).expect("a packet more");
                let ue = u32::from_be_bytes(buffer[4..8].try_into().unwrap()) - 0x10_0000;
                let number = u32::from_be_bytes(buffer[length - 4..length].try_into().unwrap());
                assert_eq!(std::mem::replace(&mut next[ue as usize], number + 1), number, "UE {ue}");
            }
        });
        many(COUNT, 100 * MBIT).for_each(|session| lab.install(session));
        receiver.join().unwrap();
        let counters = lab.upf.counters();
        assert_eq!((counters.buffered, counters.dropped), (0, vec![]));
    }
}

#[test]
fn a_worker_with_nothing_due_sleeps() {
    for mut lab in labs() {
        many(500, MBIT).for_each(|session| lab.install(session));
        let server = lab.data_network(7000);
        pace(20 * MBIT, Duration::from_millis(200), |n| {
            drop(server.send_to(&[0; PAYLOAD], (ue(n as u32 % 5), REST)))
        });
        wait_for("empty queues", || lab.upf.counters().buffered == 0);
        thread::sleep(Duration::from_millis(50));
        // A neighbour's packets, or an interrupt in a worker's time, may disturb a measurement; a worker that polls fails all of them.
        let used = [(); 4].map(|()| {
            let before = cpu_of_workers();
            thread::sleep(Duration::from_millis(500));
            cpu_of_workers() - before
        });
        assert!(used.iter().any(|used| *used < Duration::from_millis(2)), "{used:?}");
    }
}

/// CPU time of the workers in this test's namespace.
fn cpu_of_workers() -> Duration {
    let namespace = |task: &str| std::fs::read_link(format!("/proc/self/task/{task}/ns/net")).ok();
    let own = namespace(&thread_id().to_string());
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let of = |task: std::fs::DirEntry| {
        let comm = std::fs::read_to_string(task.path().join("comm")).ok()?;
        let stat = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        let nanos = stat.split(' ').next()?.parse().ok()?;
        let ours = namespace(task.file_name().to_str()?) == own && comm.starts_with("pith-upf");
        ours.then(|| Duration::from_nanos(nanos))
    };
    tasks.filter_map(of).sum()
}
