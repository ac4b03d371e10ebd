//! The cost of the QoS engine: nanoseconds a packet if no packet is queued, and if all are.
//!
//! `cargo run --release -p pith-upf --example qos_bench`

use pith_upf::contract::*;
use pith_upf::qos::*;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const PACKET: usize = 1400;
/// A millisecond of virtual time, in nanoseconds.
const MS: u64 = 1_000_000;

/// An outlet that only counts.
#[derive(Default)]
struct Count {
    sent: u64,
    dropped: u64,
}

impl Outlet<u32> for Count {
    fn send(&mut self, packet: u32, _: bool) -> bool {
        black_box(packet);
        self.sent += 1;
        true
    }

    fn drop(&mut self, packet: u32, _: DropReason) {
        black_box(packet);
        self.dropped += 1;
    }

    fn held(&mut self, _: &u32, _: PdrId) {}
}

/// A session with an AMBR, and optionally a QoS flow.
fn session(id: u64, ambr: u64, with_qos_flow: bool) -> Session {
    let rates = |rate| Some(Rates { uplink: rate, downlink: rate });
    let pdr = |id, qers: &[u32]| Pdr {
        id: PdrId(id),
        precedence: 1,
        source: Source::Network,
        filters: vec![],
        qfis: vec![],
        far: FarId(1),
        qers: qers.iter().map(|id| QerId(*id)).collect(),
        urrs: vec![],
    };
    let qer = |id, gbr, mbr| Qer { id: QerId(id), gates: Gates::OPEN, mbr, gbr, qfi: None, rqi: false };
    let mut session = Session {
        pdrs: vec![pdr(1, &[1])],
        qers: vec![qer(1, None, rates(ambr))],
        ..Session::new(SessionId(id))
    };
    if with_qos_flow {
        session.pdrs.push(pdr(2, &[1, 2]));
        session.qers.push(qer(2, rates(ambr / 5), rates(ambr / 2)));
    }
    session
}

fn compile(session: &Session) -> SessionQos {
    SessionQos::compile(session, None, Enforcement::Shape, &Aggregates::default(), &OnHeap)
}

fn main() {
    for with_qos_flow in [false, true] {
        meters(with_qos_flow);
    }
    println!(
        "{:<52} {:>9} {:>9} {:>8}",
        "queued, all sessions in one engine", "ns/packet", "of 1 core", "dropped"
    );
    for (sessions, ambr, tuples) in [
        (1u64, 10_000_000u64, 2u32),
        (1, 4_000_000_000, 8),
        (1000, 4_000_000, 1),
        (1000, 4_000_000, 8),
        (20_000, 200_000, 2),
    ] {
        for with_qos_flow in [false, true] {
            queued(sessions, ambr, tuples, with_qos_flow);
        }
    }
}

/// Packets of a session without queued packets.
fn meters(with_qos_flow: bool) {
    let qos = compile(&session(1, 100_000_000_000, with_qos_flow));
    let flows = qos.flows(Direction::Downlink);
    let flow = flows.last().expect("a flow");
    const COUNT: u64 = 10_000_000;
    let begin = Instant::now();
    for n in 0..COUNT {
        black_box(flow.admit(Time(n * 1000), 100));
    }
    let each = begin.elapsed().as_nanos() as f64 / COUNT as f64;
    println!("not queued, {} meters: {each:.1} ns a packet", flow.metering().len());
}

/// Sessions offered 5% more than their AMBR, for a second of virtual time.
fn queued(sessions: u64, ambr: u64, tuples: u32, with_qos_flow: bool) {
    let all: Vec<_> = (0..sessions).map(|id| compile(&session(id, ambr, with_qos_flow))).collect();
    let mut engine = Engine::new(Arc::new(Room::new(BufferLimits::default())));
    let mut count = Count::default();
    let each_tick = sessions * ambr * 105 / 100 / 8 / 1000 / PACKET as u64;
    let (mut next, begin) = (0u64, Instant::now());
    let seconds = if each_tick < 50 { 10 } else { 1 };
    for tick in 1..=1000 * seconds {
        let now = Time(tick * MS);
        for _ in 0..each_tick.max(1) {
            let (id, turn) = (next % sessions, next / sessions);
            let flows = all[id as usize].flows(Direction::Downlink);
            let arrival = Arrival {
                flow: (turn % flows.len() as u64) as u16,
                tuple: (turn as u32 % tuples).wrapping_mul(0x9e37_79b9),
                bytes: PACKET,
                ecn: Ecn::NotCapable,
            };
            let whose = SessionQueue { key: (SessionId(id), Direction::Downlink), flows };
            engine.offer(whose, now, arrival, next as u32, &mut count);
            next += 1;
        }
        engine.run(now, &mut count);
    }
    let taken = begin.elapsed().as_secs_f64();
    let name = format!(
        "{sessions} at {} Mbit/s, {tuples} 5-tuples{}",
        ambr as f64 / 1e6,
        if with_qos_flow { ", a QoS flow each" } else { "" }
    );
    let percent = taken * 100.0 / seconds as f64;
    let dropped = count.dropped as f64 * 100.0 / next as f64;
    println!("{name:<52} {:>9.0} {percent:>8.1}% {dropped:>7.1}%", taken * 1e9 / next as f64);
}
