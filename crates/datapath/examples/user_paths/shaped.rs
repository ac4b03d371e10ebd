//! Sessions that are offered more than their rate: the cost of a packet where packets wait for their rate, and where the
//! sender adapts to marks; and a worker's share of a core at 4 Gbit/s. One CPU generates and runs the kernel's receive path;
//! the other is the worker's.

use super::cpu::{pin, put_off, used_by};
use super::generator::Traffic;
use super::progress::Progress;
use super::row::{Row, Spread};
use super::support::cpu_of;
use super::xdp::cases::{Flows, SOME, scattered};
use super::xdp::frame::{frame_of, traffic_of};
use super::xdp::{Bench, CPU, Case, PACKET, TrafficDirection, apart};
use pith_datapath::UserPlane;
use pith_upf::contract::{Datapath, SessionId};
use pith_upf::qos::Ecn;
use std::thread;
use std::time::{Duration, Instant};

const WORKER: &str = "pith-upf-0";
/// The CPU that generates frames.
const GENERATOR: usize = CPU + 1;
const RUN: Duration = Duration::from_millis(700);
const RUNS: usize = 4;
/// Octets of a full-sized user packet.
const FULL: usize = 1400;
/// The AMBR of the session at its AMBR, in bit/s.
const AMBR: u64 = 1_000_000_000;
/// Offered part of the AMBR, in percent: TCP keeps the queue full, and loses little.
const OFFERED: u64 = 105;

/// The result of a run.
#[derive(Debug, Clone, Copy)]
struct Run {
    generated: u64,
    arrived: u64,
    marked: u64,
    /// The number of packets that went through user space.
    by_worker: u64,
    seconds: f64,
    /// CPU time of the generator and of the receive path.
    generator: Duration,
    /// CPU time of the worker, including the kernel's work for it.
    worker: Duration,
}

impl Run {
    /// Nanoseconds of CPU for each packet.
    fn gross(&self) -> f64 {
        (self.generator + self.worker).as_nanos() as f64 / self.generated as f64
    }

    fn percent(&self, of: u64) -> f64 {
        of as f64 * 100.0 / self.generated as f64
    }
}

/// The rows, and, as JSON, the share of a core at 4 Gbit/s.
pub fn run() -> (Vec<Row>, String) {
    let mut progress = Progress::of("shaped", 6);
    let (at_ambr, paced) = (|ecn| Case::AtAmbr(AMBR, ecn), FULL as u64 * 8 * 1_000_000_000 / AMBR);
    let full = (FULL, paced * 100 / OFFERED);
    let small = (PACKET, 2500);
    let [alone_full, alone_small] = [full, small].map(|frame| {
        let runs = apart(move || runs(Case::Discard(TrafficDirection::Down), scattered(SOME), frame));
        progress.step("the generator alone");
        Spread::of(runs.iter().map(Run::gross).collect()).median
    });
    let rows = [
        ("at-ambr-tcp", at_ambr(Ecn::NotCapable), scattered(1), full, alone_full),
        ("at-ambr-ect1", at_ambr(Ecn::Scalable), scattered(1), full, alone_full),
        ("afxdp-shaped", Case::Shaped(160_000_000), scattered(SOME), small, alone_small),
    ];
    let rows = rows.map(|(name, case, flows, frame, alone)| {
        let runs = apart(move || runs(case, flows, frame));
        progress.step(name);
        row(name, (flows, frame.0), &runs, alone)
    });
    let on_a_core = on_a_core();
    progress.step("4 Gbit/s");
    (rows.into(), on_a_core)
}

fn row(name: &'static str, (flows, octets): (Flows, usize), runs: &[Run], alone: f64) -> Row {
    let last = runs.last().expect("there are runs");
    println!(
        "{name}: {:.0} kpps offered; {:.0}% arrived, {:.0}% by user space, {:.1}% marked; worker {:.0}% of a core",
        last.generated as f64 / last.seconds / 1e3,
        last.percent(last.arrived),
        last.percent(last.by_worker),
        last.percent(last.marked),
        last.worker.as_secs_f64() * 100.0 / last.seconds
    );
    let gross = runs.iter().map(Run::gross).collect();
    Row::of(name, (flows.installed, 2, octets), Spread::of(gross), alone)
}

/// 5 Gbit/s for sessions limited to 4: the run with the most.
fn on_a_core() -> String {
    let gbit = |packets: u64, run: &Run| packets as f64 * FULL as f64 * 8e-9 / run.seconds;
    let runs = apart(|| runs(Case::Shaped(4_000_000_000), scattered(SOME), (FULL, 2240)));
    let most = runs.into_iter().max_by(|a, b| gbit(a.arrived, a).total_cmp(&gbit(b.arrived, b)));
    let run = most.expect("there are runs");
    let (offered, shaped) = (gbit(run.generated, &run), gbit(run.arrived, &run));
    let core = run.worker.as_secs_f64() / run.seconds;
    println!(
        "{SOME} sessions that may have 4 Gbit/s, offered {offered:.2}: {shaped:.2}, {:.0}% of a core",
        core * 100.0
    );
    format!("{{\"sessions\":{SOME},\"offered_gbit\":{offered:.3},\"gbit\":{shaped:.3},\"core\":{core:.3}}}")
}

/// The runs, after one that is left out.
fn runs(case: Case, flows: Flows, (octets, pace): (usize, u64)) -> Vec<Run> {
    let mut bench = Bench::set_up(TrafficDirection::Down);
    let adapts = matches!(case, Case::AtAmbr(_, Ecn::Scalable));
    let sink = if adapts { "sink_of_adaptive" } else { "sink" };
    let (_links, mut upf) = bench.start_with(case, flows.installed, sink);
    let mut before = 0;
    let runs = (0..=RUNS).map(|_| {
        let traffic = Traffic { pace, ..traffic_of(case, flows) };
        bench.configure_as(&traffic, frame_of(case, flows, octets));
        let mut run = one(&bench, &mut upf, flows.installed);
        run.by_worker -= std::mem::replace(&mut before, run.by_worker);
        run
    });
    runs.skip(1).collect()
}

fn one(bench: &Bench, upf: &mut Option<UserPlane>, sessions: u32) -> Run {
    let arrived = bench.generator().arrivals();
    let (before, begin) = (cpu_of(WORKER) + put_off(CPU), Instant::now());
    let generating = generate_on(bench, GENERATOR);
    while !generating.is_finished() {
        if let Some(upf) = upf {
            upf.poll_events(&mut Vec::new());
        }
        thread::sleep(Duration::from_millis(10));
    }
    let seconds = begin.elapsed().as_secs_f64();
    let (packets, marked) = bench.generator().arrivals();
    Run {
        generated: bench.generator().generated(),
        arrived: packets - arrived.0,
        marked: marked - arrived.1,
        by_worker: upf.as_ref().map_or(0, |upf| through_user_space(upf, sessions)),
        seconds,
        generator: generating.join().unwrap(),
        worker: cpu_of(WORKER) + put_off(CPU) - before,
    }
}

/// Generates on another CPU, and returns the CPU time that this took.
fn generate_on(bench: &Bench, cpu: usize) -> thread::JoinHandle<Duration> {
    let mut call = bench.generator().call("generate");
    thread::spawn(move || {
        pin(cpu);
        let before = used_by("thread-self").expect("it lives");
        call.keep_pace(RUN).unwrap();
        used_by("thread-self").expect("it lives") - before
    })
}

/// Packets of all sessions that were queued, or checked for it.
fn through_user_space(upf: &UserPlane, sessions: u32) -> u64 {
    let flows = (1..=u64::from(sessions)).flat_map(|id| upf.flows(SessionId(id)));
    flows.map(|flow| flow.count.offered().packets - flow.count.fast.packets).sum()
}
