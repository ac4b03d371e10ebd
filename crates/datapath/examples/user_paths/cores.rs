//! Two CPUs beside one: each CPU generates, forwards and drops its own frames, on its own queue of the same interfaces. What
//! they share is the program's: tables, counters, routes.
//!
//! The CPU time of a packet is compared, not the packets a second: on a machine with two CPUs other processes take a part of
//! both, and the generators, which a real UPF has not, take theirs.

use super::progress::Progress;
use super::row::{Row, Spread};
use super::xdp::cases::{Flows, MANY, NONE, SOME, scattered, usual};
use super::xdp::{Bench, Case, Generators, PACKET, TrafficDirection, apart};

const TURNS: usize = 2;
const RUNS: usize = 6;
const CORES: [u32; 2] = [1, 2];

fn cases() -> Vec<(&'static str, Case, Flows)> {
    use TrafficDirection::{Down, Up};
    let many = Flows { destinations: SOME, ..NONE };
    vec![
        ("kernel-cores", Case::Kernel, many),
        ("xdp-cores-ul", usual(Up), scattered(SOME)),
        ("xdp-cores-dl", usual(Down), scattered(SOME)),
        ("xdp-cores-scattered-ul", usual(Up), scattered(MANY)),
        ("default-nat-cores-ul", Case::Nat(Up), scattered(SOME)),
        ("default-nat-cores-dl", Case::Nat(Down), scattered(SOME)),
    ]
}

/// A row for each case and number of CPUs; none if the machine has one only.
pub fn run() -> Vec<Row> {
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
        println!("cores: this machine has one CPU; skipped");
        return Vec::new();
    }
    let cases = cases();
    let mut gross = vec![[const { Vec::new() }; 2]; cases.len()];
    let (mut generators, steps) = (Generators::default(), cases.len() * CORES.len() + 2);
    let mut progress = Progress::of("cores", TURNS * steps);
    for _ in 0..TURNS {
        generators.measure(&mut progress);
        for (of_case, (name, case, flows)) in gross.iter_mut().zip(&cases) {
            for (runs, cores) in of_case.iter_mut().zip(CORES) {
                runs.extend(measure(*case, *flows, cores));
                progress.step(name);
            }
        }
    }
    let row = |(name, case, flows): (&'static str, Case, Flows), runs: Vec<f64>, cores| {
        let generator = generators.cost(case.direction());
        Row::of(name, (flows.installed, cores, PACKET), Spread::of(runs), generator)
    };
    let rows = cases.into_iter().zip(gross);
    rows.flat_map(|(case, of_case)| {
        of_case.into_iter().zip(CORES).map(move |(runs, cores)| (case, runs, cores))
    })
    .map(|(case, runs, cores)| row(case, runs, cores))
    .collect()
}

fn measure(case: Case, flows: Flows, cores: u32) -> Vec<f64> {
    apart(move || {
        let mut bench = Bench::on_cores(case.direction(), cores);
        let _running = bench.start(case, flows.installed);
        bench.configure(case, flows, PACKET);
        let _warm = bench.cost_on_all();
        let runs: Vec<_> = (0..RUNS).filter_map(|_| bench.cost_on_all()).collect();
        assert!(!runs.is_empty(), "a CPU was taken away for long in all runs");
        runs
    })
}
