//! Sessions that are offered more than their rate, by AF_XDP: the cost of a packet, and a worker's share of a
//! core at 4 Gbit/s. One CPU generates at a steady rate and runs the kernel's receive path; the other is the
//! worker's.

use super::cpu::put_off;
use super::support::cpu_of;
use super::xdp::{Bench, CPU, Case, PACKET, TrafficDirection, apart};
use super::{Row, Spread};
use pith_datapath::UserPlane;
use pith_upf::contract::{Datapath, SessionId};
use std::thread;
use std::time::{Duration, Instant};

const SESSIONS: u32 = 1000;
const WORKER: &str = "pith-upf-0";
/// The CPU that generates frames.
const GENERATOR: usize = CPU + 1;
/// Polls of the generator for a due frame, in a run of a second or more.
const LOOKS: u32 = 10_000_000;
/// Never due, in nanoseconds.
const NEVER: u64 = u64::MAX >> 1;
const RUNS: usize = 3;

/// The result of a run.
#[derive(Debug, Clone, Copy)]
struct Run {
    generated: u64,
    arrived: u64,
    /// The number of polls before a frame was due.
    early: u64,
    /// The number of packets that went through user space.
    by_worker: u64,
    seconds: f64,
    /// CPU time of the generator and of the receive path.
    generator: Duration,
    /// CPU time of the worker, including the kernel's work for it.
    worker: Duration,
}

impl Run {
    /// Nanoseconds of the generator's CPU for each packet, without its polling.
    fn sending(&self, look: f64) -> f64 {
        (self.generator.as_nanos() as f64 - self.early as f64 * look) / self.generated as f64
    }
}

/// The row of `afxdp-shaped`, and, as JSON, the share of a core at 4 Gbit/s.
pub fn run() -> (Row, String) {
    let interval = 2500;
    let rate = 1_000_000_000 / interval * PACKET as u64 * 8 / 2;
    let idle =
        best(Case::Discard(TrafficDirection::Down), (PACKET, NEVER), |run| run.generator.as_secs_f64());
    let look = idle.generator.as_nanos() as f64 / idle.early as f64;
    let sending = |run: &Run| run.sending(look);
    let discarded = best(Case::Discard(TrafficDirection::Down), (PACKET, interval), sending);
    // Some packets are forwarded by the program, because their session has returned to it.
    let worker = |run: &Run| run.worker.as_nanos() as f64 / run.by_worker.max(1) as f64;
    let cost = |run: &Run| run.sending(look) - discarded.sending(look) + worker(run);
    let shaped =
        best(Case::Shaped(rate), (PACKET, interval), |run| -(run.by_worker as f64 / run.generated as f64));
    let net = cost(&shaped);
    println!("afxdp-shaped {SESSIONS}: {net:.0} ns, {:.0} of them the worker's; {shaped:?}", worker(&shaped));
    let gross = net + discarded.sending(look);
    let gross = Spread::of(vec![gross]);
    let row =
        Row { name: "afxdp-shaped", sessions: SESSIONS, kpps: 1e6 / gross.least, ns_per_packet: net, gross };
    (row, on_a_core())
}

/// 5 Gbit/s for sessions limited to 4.
fn on_a_core() -> String {
    const BYTES: usize = 1400;
    let gbit = |packets: u64, run: &Run| packets as f64 * BYTES as f64 * 8e-9 / run.seconds;
    let run = best(Case::Shaped(4_000_000_000), (BYTES, 2240), |run| -gbit(run.arrived, run));
    let (offered, shaped) = (gbit(run.generated, &run), gbit(run.arrived, &run));
    let core = run.worker.as_secs_f64() / run.seconds;
    println!(
        "{SESSIONS} sessions that may have 4 Gbit/s, offered {offered:.2}: {shaped:.2}, {:.0}% of a core",
        core * 100.0
    );
    format!(
        "{{\"sessions\":{SESSIONS},\"offered_gbit\":{offered:.3},\"gbit\":{shaped:.3},\"core\":{core:.3}}}"
    )
}

/// The run with the least of a measure: on a shared machine it is the least disturbed.
fn best(case: Case, frame: (usize, u64), by: impl Fn(&Run) -> f64) -> Run {
    let runs = apart(move || runs(case, frame)).into_iter();
    runs.min_by(|a, b| by(a).total_cmp(&by(b))).expect("there are runs")
}

fn runs(case: Case, (bytes, interval): (usize, u64)) -> Vec<Run> {
    let bench = Bench::set_up(TrafficDirection::Down);
    let (_links, mut upf) = bench.start(case, SESSIONS);
    let mut run = || {
        bench.frame(case, SESSIONS, 1, (bytes, interval));
        let (before, begin) = (cpu_of(WORKER) + put_off(CPU), Instant::now());
        let generating = bench.generate_on(GENERATOR, LOOKS);
        while !generating.is_finished() {
            if let Some(upf) = &mut upf {
                upf.poll_events(&mut Vec::new());
            }
            thread::sleep(Duration::from_millis(10));
        }
        let seconds = begin.elapsed().as_secs_f64();
        let (generated, arrived) = bench.arrivals();
        let worker = cpu_of(WORKER) + put_off(CPU) - before;
        let by_worker = upf.as_ref().map_or(0, through_user_space);
        Run {
            generated,
            arrived,
            early: bench.early(),
            by_worker,
            seconds,
            generator: generating.join().unwrap(),
            worker,
        }
    };
    let mut before = 0;
    let runs = (0..RUNS).map(|_| {
        let mut run = run();
        run.by_worker -= std::mem::replace(&mut before, run.by_worker);
        run
    });
    runs.collect()
}

/// Packets of all sessions that were queued, or checked for it.
fn through_user_space(upf: &UserPlane) -> u64 {
    let flows = (1..=u64::from(SESSIONS)).flat_map(|id| upf.flows(SessionId(id)));
    flows.map(|flow| flow.count.offered().packets).sum()
}
