//! XDP and the kernel's own forwarding. A BPF program creates frames (live frames of BPF_PROG_TEST_RUN),
//! another counts and drops the output, so all work on a packet is done on one CPU, without other work.
//!
//! ```text
//!   generate ─ redirect ─▶ g ── veth ── in │ what is measured │ out ── veth ── s: sink
//! ```

mod bench;
pub mod cases;
pub mod frame;
pub mod upf;

use super::progress::Progress;
use super::row::{Row, Spread};
pub use bench::{Bench, CPU, FRAMES, apart};
pub use cases::{Case, Flows, TrafficDirection};
use cases::{NONE, Named, TRAIN};

const TRACING: &str = "/sys/kernel/tracing/events/xdp/enable";
/// All cases alternate, so that disturbances affect all.
const TURNS: usize = 3;
/// Runs of a case in a turn.
const RUNS: usize = 6;
/// Octets of a user packet.
pub const PACKET: usize = 100;

/// Runs all cases whose names contain one of the parts in `wanted`, each in a namespace of its own.
pub fn run(wanted: &str) -> Vec<Row> {
    warn_of_tracing();
    println!("xdp-full: {TRAIN} packets in a row for a session; the others: each packet is another's");
    println!("xdp-installed: packets are those of 1000 sessions");
    let is_wanted = |name: &str| wanted.split(',').any(|part| name.contains(part));
    let cases: Vec<_> = cases::cases().into_iter().filter(|case| is_wanted(case.0)).collect();
    let (mut generator, mut gross) = (Generators::default(), vec![Vec::new(); cases.len()]);
    let mut progress = Progress::of("xdp", TURNS * (cases.len() + 2));
    for _ in 0..TURNS {
        generator.measure(&mut progress);
        for (runs, (name, case, flows)) in gross.iter_mut().zip(&cases) {
            runs.extend(measure(*case, *flows));
            progress.step(name);
        }
    }
    let row = |((name, case, flows), gross): (Named, Vec<f64>)| {
        Row::of(name, (flows.installed, 1, PACKET), Spread::of(gross), generator.cost(case.direction()))
    };
    cases.into_iter().zip(gross).map(row).collect()
}

fn warn_of_tracing() {
    if std::fs::read_to_string(TRACING).is_ok_and(|enabled| !enabled.starts_with('0')) {
        println!(
            "{TRACING} is on: every redirect is traced, which costs more than all the rest; write 0 there"
        );
    }
}

/// What frames cost without anything that forwards them.
#[derive(Debug, Default)]
pub struct Generators([Vec<f64>; 2]);

impl Generators {
    /// Measures both directions.
    pub fn measure(&mut self, progress: &mut Progress) {
        for (runs, direction) in self.0.iter_mut().zip([TrafficDirection::Up, TrafficDirection::Down]) {
            runs.extend(measure(Case::Discard(direction), NONE));
            progress.step("the generator alone");
        }
    }

    /// The median.
    pub fn cost(&self, direction: TrafficDirection) -> f64 {
        Spread::of(self.0[direction as usize].clone()).median
    }
}

/// Nanoseconds of CPU a packet with the generator's, of each run.
fn measure(case: Case, flows: Flows) -> Vec<f64> {
    apart(move || {
        let mut bench = Bench::set_up(case.direction());
        let _running = bench.start(case, flows.installed);
        bench.configure(case, flows, PACKET);
        // Until caches are warm, and the kernel has a connection for each destination.
        bench.generate(FRAMES.max(8 * flows.destinations));
        let runs: Vec<_> = (0..RUNS).filter_map(|_| bench.cost_of_run()).collect();
        assert!(!runs.is_empty(), "the CPU was taken away for long in all runs");
        runs
    })
}
