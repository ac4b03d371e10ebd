//! Flow counters (`flows`) against the packets sent: by user space, by the XDP program, and while a session
//! moves between them.

mod support;

use pith_datapath::{DatapathConfig, Enforcement};
use pith_upf::contract::*;
use pith_upf::qos::{Count, FlowCount};
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};
use support::*;

const MBIT: u64 = 1_000_000;
/// The server's ports of the QoS flows' traffic, and of the rest.
const QOS: [u16; 3] = [7001, 7002, 7003];
const REST: u16 = 7000;
const UE_PORT: u16 = 5000;
/// What the headers of UDP add to a payload.
const HEADERS: u64 = 28;

fn rates(rate: u64) -> Option<Rates> {
    Some(Rates { uplink: rate, downlink: rate })
}

/// The flow of a server's port, by the QER that only that flow has.
fn qer_of(port: u16) -> QerId {
    QerId(u32::from(port))
}

/// The session with a QoS flow each way for each of these ports, of that GBR and MBR.
fn session_with(ports: &[u16], ambr: u64, (gbr, mbr): (u64, u64)) -> Session {
    let mut session = session();
    session.qers[1].mbr = rates(ambr);
    for port in ports {
        let qer = qer_of(*port);
        let (mbr, gbr) = (rates(mbr), rates(gbr));
        session.qers.push(Qer {
            id: qer,
            gates: Gates::OPEN,
            mbr,
            gbr,
            qfi: Some(Qfi((*port % 10) as u8)),
            rqi: false,
        });
        let text = format!("permit out 17 from any {port} to assigned");
        let filters = text.parse::<FlowDescription>().unwrap().filters;
        for bare in 0..2 {
            let id = PdrId(port % 10 * 10 + bare);
            let (filters, qers) = (filters.clone(), vec![qer, QerId(2)]);
            let pdr = session.pdrs[usize::from(bare)].clone();
            session.pdrs.push(Pdr { id, precedence: 1, filters, qers, ..pdr });
        }
    }
    session
}

/// Packets sent of a flow.
#[derive(Debug)]
struct Sent {
    port: u16,
    up: Count,
    down: Count,
    socket: UdpSocket,
}

impl Sent {
    fn nothing(lab: &Lab, port: u16) -> Self {
        let socket = lab.data_network(port);
        receive_much(&socket);
        Self { port, up: Count::default(), down: Count::default(), socket }
    }

    /// Sends packets of `bytes` in each direction.
    fn send(&mut self, lab: &Lab, up: u64, down: u64, bytes: u64) {
        let payload = vec![0; (bytes - HEADERS) as usize];
        let packet = udp(UE, SERVER, self.port, &payload);
        (0..up).for_each(|_| lab.uplink(TEID, &packet));
        (0..down).for_each(|_| assert!(self.socket.send_to(&payload, (UE, UE_PORT)).is_ok()));
        let count = |packets| Count { packets, bytes: packets * bytes };
        (self.up, self.down) = (self.up + count(up), self.down + count(down));
    }

    fn of(&self, direction: Direction) -> Count {
        match direction {
            Direction::Uplink => self.up,
            Direction::Downlink => self.down,
        }
    }
}

/// The counters of a port's flow in a direction.
fn count_of(lab: &Lab, port: u16, direction: Direction) -> FlowCount {
    let flows = lab.upf.flows(SessionId(1));
    let is_of = |qers: &[QerId]| match port {
        REST => qers == [QerId(1), QerId(2)],
        port => qers.contains(&qer_of(port)),
    };
    let found: Vec<_> =
        flows.iter().filter(|flow| flow.direction == direction && is_of(&flow.qers)).collect();
    assert_eq!(found.len(), 1, "{port} {direction:?} in {flows:?}");
    found[0].count
}

const WAYS: [Direction; 2] = [Direction::Uplink, Direction::Downlink];

/// Waits until all packets sent were received, and forwarded or dropped.
fn wait_come(lab: &mut Lab, sent: &[Sent]) {
    let all = |direction| sent.iter().map(|sent| sent.of(direction).packets).sum::<u64>();
    let [up, down] = WAYS.map(all);
    wait_for("all that was sent", || {
        lab.upf.poll_events(&mut Vec::new());
        let Counters { n3_in, n6_in, n3_out, n6_out, dropped, .. } = lab.upf.counters();
        let dropped: u64 = dropped.iter().map(|(_, count)| count).sum();
        (n3_in.packets, n6_in.packets) == (up, down) && n3_out.packets + n6_out.packets + dropped == up + down
    });
}

/// Each flow's offered count equals the packets sent, and the sum of all flows' passed counts the packets
/// forwarded.
fn assert_offered(lab: &Lab, sent: &[Sent]) {
    for (sent, direction) in sent.iter().flat_map(|sent| WAYS.map(|direction| (sent, direction))) {
        let count = count_of(lab, sent.port, direction);
        assert_eq!(count.offered(), sent.of(direction), "{} {direction:?}: {count:?}", sent.port);
        assert_eq!(count.queued, Count::default());
        assert!(count.fast.packets <= count.passed().packets);
    }
    let (flows, counters) = (lab.upf.flows(SessionId(1)), lab.upf.counters());
    for (direction, out) in [(Direction::Uplink, counters.n6_out), (Direction::Downlink, counters.n3_out)] {
        let passed = flows.iter().filter(|flow| flow.direction == direction).map(|flow| flow.count.passed());
        let passed = passed.fold(Count::default(), |sum, count| sum + count);
        assert_eq!((passed.packets, passed.bytes), (out.packets, out.bytes), "{direction:?}");
    }
    let lost: u64 = flows.iter().map(|flow| flow.count.red.packets + flow.count.dropped.packets).sum();
    assert_eq!(lost, counters.dropped.iter().map(|(_, count)| count).sum::<u64>());
}

#[test]
fn below_the_rate_flow_counters_match_the_packets_sent() {
    for mut lab in labs() {
        lab.install(session_with(&QOS, 1000 * MBIT, (100 * MBIT, 200 * MBIT)));
        let mut sent: Vec<_> = QOS.into_iter().chain([REST]).map(|port| Sent::nothing(&lab, port)).collect();
        for turn in 0..10 {
            for (flow, at) in sent.iter_mut().zip(1..) {
                flow.send(&lab, at, 2 * at, 100 * at + turn);
            }
            wait_come(&mut lab, &sent);
            assert_offered(&lab, &sent);
        }
        for (sent, direction) in sent.iter().flat_map(|sent| WAYS.map(|direction| (sent, direction))) {
            let count = count_of(&lab, sent.port, direction);
            let all = sent.of(direction);
            let (green, yellow) =
                if sent.port == REST { (Count::default(), all) } else { (all, Count::default()) };
            let fast = if lab.kind == Kind::Portable { Count::default() } else { all };
            assert_eq!(count, FlowCount { green, yellow, fast, ..FlowCount::default() }, "{}", sent.port);
        }
    }
}

#[test]
fn counters_go_on_over_new_rules_and_those_of_a_flow_that_ends_begin_anew() {
    for mut lab in labs() {
        let with = |ports: &[u16]| session_with(ports, 1000 * MBIT, (100 * MBIT, 200 * MBIT));
        lab.install(with(&QOS));
        let mut sent: Vec<_> = [REST, QOS[1], QOS[2]].map(|port| Sent::nothing(&lab, port)).into();
        for ports in [&QOS[1..], &[QOS[2], QOS[1]], &QOS, &QOS[1..]].into_iter().cycle().take(12) {
            sent.iter_mut().for_each(|flow| flow.send(&lab, 3, 5, 500));
            lab.install(with(ports));
            sent.iter_mut().for_each(|flow| flow.send(&lab, 2, 1, 300));
            wait_come(&mut lab, &sent);
            assert_offered(&lab, &sent);
        }
        lab.install(with(&[]));
        assert_eq!(lab.upf.flows(SessionId(1)).len(), 2);
        lab.install(with(&QOS));
        for (port, direction) in QOS.into_iter().flat_map(|port| WAYS.map(|direction| (port, direction))) {
            assert_eq!(count_of(&lab, port, direction), FlowCount::default());
        }
    }
}

#[test]
fn above_the_rate_every_packet_is_counted_once_while_the_session_changes_paths() {
    for mut lab in labs() {
        lab.install(session_with(&QOS[..1], 8 * MBIT, (2 * MBIT, 4 * MBIT)));
        receive_much(&lab.gnb);
        let mut sent: Vec<_> = [QOS[0], REST].map(|port| Sent::nothing(&lab, port)).into();
        let begin = Instant::now();
        // Bursts that are queued, some of them dropped, with enough time in between for the session to return
        // to the program.
        while begin.elapsed() < Duration::from_secs(2) {
            for _ in 0..5 {
                sent.iter_mut().for_each(|flow| flow.send(&lab, 8, 8, 1000));
                thread::sleep(Duration::from_millis(1));
            }
            wait_come(&mut lab, &sent);
            assert_offered(&lab, &sent);
            for _ in 0..8 {
                thread::sleep(Duration::from_millis(10));
                lab.upf.poll_events(&mut Vec::new());
                sent.iter_mut().for_each(|flow| flow.send(&lab, 1, 1, 100));
            }
        }
        wait_come(&mut lab, &sent);
        assert_offered(&lab, &sent);
        for (sent, direction) in sent.iter().flat_map(|sent| WAYS.map(|direction| (sent, direction))) {
            let count = count_of(&lab, sent.port, direction);
            assert!(count.red.packets + count.dropped.packets > 0, "{} {direction:?}: {count:?}", sent.port);
            let by_both = count.fast.packets > 0 && count.fast.packets < count.passed().packets;
            assert_eq!(by_both, lab.kind != Kind::Portable, "{} {direction:?}: {count:?}", sent.port);
        }
    }
}

/// With policing, the program itself drops.
#[test]
fn policed_packets_are_red_above_the_flows_own_rate_and_dropped_above_others() {
    for mut lab in labs_with(DatapathConfig {
        workers: 2,
        enforcement: Enforcement::Police,
        ..DatapathConfig::default()
    }) {
        // Buckets of 16 KiB.
        lab.install(session_with(&QOS[..1], MBIT, (MBIT / 2, MBIT / 2)));
        let mut sent: Vec<_> = [QOS[0], REST].map(|port| Sent::nothing(&lab, port)).into();
        for _ in 0..3 {
            sent.iter_mut().for_each(|flow| flow.send(&lab, 40, 40, 1000));
            wait_come(&mut lab, &sent);
            assert_offered(&lab, &sent);
        }
        for direction in WAYS {
            let [qos, rest] = [QOS[0], REST].map(|port| count_of(&lab, port, direction));
            assert!(qos.green.packets >= 16 && qos.red.packets >= 60, "{direction:?}: {qos:?}");
            assert_eq!((qos.dropped, rest.red, rest.green), Default::default(), "{direction:?}: {rest:?}");
            assert!(rest.dropped.packets >= 60, "{direction:?}: {rest:?}");
            for count in [qos, rest] {
                let fast = if lab.kind == Kind::Portable { Count::default() } else { count.passed() };
                assert_eq!(count.fast, fast);
            }
        }
        let dropped = lab.upf.counters().dropped(DropReason::RateExceeded);
        assert_eq!(lab.upf.counters().dropped, [(DropReason::RateExceeded, dropped)]);
    }
}
