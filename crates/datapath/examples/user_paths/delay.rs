//! The delay that forwarding adds at a part of its capacity: XDP beside the kernel.
//!
//! A BPF program sends at the times of a Poisson process, whatever becomes of the packets (an open loop): a packet that is late,
//! because the CPU still forwards those before it, or was taken away, is sent as soon as possible, with the time at which it was
//! due. The time from there to its arrival is its delay; so time that a packet waits for the CPU counts, as in the queue of a
//! network card. Time in which other processes had the CPU, more than 100 µs between two polls, is no time of the Poisson process;
//! such pauses are counted. The time since its transmission, which leaves out that wait, and the wait itself, are reported, too.
//!
//! Capacity is what the same CPU forwards without pauses, with its generator, one packet at a time.

use super::histogram::{BINS, Histogram};
use super::progress::Progress;
use super::xdp::cases::{Flows, NONE, SOME, scattered, usual};
use super::xdp::frame::{frame_of, payload_at, traffic_of};
use super::xdp::{Bench, Case, FRAMES, PACKET, TrafficDirection, apart};
use crate::cpu::used_by;
use crate::generator::Traffic;
use libbpf_rs::{MapCore, MapFlags};

const TURNS: usize = 3;
/// Offered parts of the capacity, in percent.
const LOADS: [u32; 3] = [20, 80, 95];
/// Packets of a run without pauses.
const WARM: u32 = 200_000;
/// Polls of a run, of 80 ns or more each.
const LOOKS: u32 = 1_000_000;
/// Times between packets: `GAPS` of the program.
const GAPS: u32 = 4096;
/// Histograms of the program, in its order.
const HISTOGRAMS: usize = 3;

const CASES: [(&str, Case, Flows); 6] = [
    ("kernel-forward", Case::Kernel, NONE),
    ("kernel-masquerade", Case::Masquerade, Flows { installed: SOME, destinations: SOME, ..NONE }),
    ("xdp-single-ul", usual(TrafficDirection::Up), scattered(SOME)),
    ("xdp-single-dl", usual(TrafficDirection::Down), scattered(SOME)),
    ("default-nat-ul", Case::Nat(TrafficDirection::Up), scattered(SOME)),
    ("default-nat-dl", Case::Nat(TrafficDirection::Down), scattered(SOME)),
];

/// The results of a case and load, over all turns.
#[derive(Debug, Clone, Default)]
struct Delays {
    /// Thousands of packets a second, of each turn.
    offered: Vec<f64>,
    /// Times that the CPU was taken away.
    pauses: u64,
    /// From due to arrival; from transmission to arrival; from due to transmission.
    of: [Histogram; HISTOGRAMS],
}

/// As JSON, and a table.
pub fn run() -> String {
    let mut results = vec![vec![Delays::default(); LOADS.len()]; CASES.len()];
    let mut progress = Progress::of("delay", TURNS * CASES.len());
    for _ in 0..TURNS {
        for (results, (name, case, flows)) in results.iter_mut().zip(CASES) {
            measure(case, flows).into_iter().zip(results).for_each(|(turn, all)| all.add(turn));
            progress.step(name);
        }
    }
    println!(
        "\n{:<20} {:>5} {:>7} {:>9} {:>34} {:>22}",
        "added delay, µs",
        "load",
        "kpps",
        "packets",
        "from due: p50, p99, p99.9, max",
        "from sent: p50, p99.9"
    );
    let mut rows = Vec::new();
    for (results, (name, _, flows)) in results.iter().zip(CASES) {
        for (delays, load) in results.iter().zip(LOADS) {
            delays.print(name, load);
            rows.push(delays.json(name, flows.installed, load));
        }
    }
    format!("[{}]", rows.join(",\n"))
}

impl Delays {
    fn add(&mut self, (offered, pauses, counts): (f64, u64, Vec<u64>)) {
        self.offered.push(offered);
        self.pauses += pauses;
        for (histogram, counts) in [1, 0, 2].into_iter().zip(counts.chunks(BINS)) {
            let histogram = &mut self.of[histogram];
            counts.iter().enumerate().for_each(|(bin, count)| histogram.add(bin, *count));
        }
    }

    fn kpps(&self) -> f64 {
        self.offered.iter().sum::<f64>() / self.offered.len() as f64
    }

    fn print(&self, name: &str, load: u32) {
        let [due, sent, _] = &self.of;
        let micros = |nanos: u64| nanos as f64 / 1e3;
        let all = [0.5, 0.99, 0.999, 1.0].map(|part| format!("{:.1}", micros(due.quantile(part)))).join(", ");
        let forwarding = [0.5, 0.999].map(|part| format!("{:.1}", micros(sent.quantile(part)))).join(", ");
        println!("{name:<20} {load:>4}% {:>7.0} {:>9} {all:>34} {forwarding:>22}", self.kpps(), due.count());
    }

    fn json(&self, name: &str, sessions: u32, load: u32) -> String {
        let [due, sent, late] = &self.of;
        format!(
            "{{\"name\":\"{name}\",\"sessions\":{sessions},\"load\":{load},\"kpps\":{:.1},\"packets\":{},\"pauses\":{},\
             \"delay_ns\":{},\"since_sent_ns\":{},\"sender_late_ns\":{}}}",
            self.kpps(),
            due.count(),
            self.pauses,
            due.json(),
            sent.json(),
            late.json()
        )
    }
}

/// For each load the offered rate in kpps, the number of pauses, and the program's histograms.
fn measure(case: Case, flows: Flows) -> Vec<(f64, u64, Vec<u64>)> {
    apart(move || {
        let mut bench = Bench::set_up(case.direction());
        let _running = bench.start_with(case, flows.installed, "sink_timed");
        let nanos = capacity(&mut bench, case, flows);
        let at = |load: u32| {
            let between = nanos * 100.0 / f64::from(load);
            let counts = delays(&mut bench, case, flows, between);
            (1e6 / between, bench.generator().pauses(), counts)
        };
        LOADS.into_iter().map(at).collect()
    })
}

/// Nanoseconds of the CPU for a packet, if one follows the other.
fn capacity(bench: &mut Bench, case: Case, flows: Flows) -> f64 {
    set_gaps(bench, 0.0);
    configure(bench, case, flows);
    let mut call = bench.generator().call("generate_timed");
    call.run(FRAMES, 1).unwrap();
    let (before, begin) = (bench.arrivals().1, used_by("thread-self").expect("it lives"));
    call.run(WARM, 1).unwrap();
    let spent = used_by("thread-self").expect("it lives") - begin;
    spent.as_nanos() as f64 / (bench.arrivals().1 - before).max(1) as f64
}

fn configure(bench: &mut Bench, case: Case, flows: Flows) {
    let (stamp_at, stamp_after) = payload_at(case);
    let traffic = Traffic { stamp_at, stamp_after, ..traffic_of(case, flows) };
    bench.configure_as(&traffic, frame_of(case, flows, PACKET));
}

/// Runs with this mean time between packets, in nanoseconds, and returns the counts of all bins.
fn delays(bench: &mut Bench, case: Case, flows: Flows, between: f64) -> Vec<u64> {
    set_gaps(bench, between);
    configure(bench, case, flows);
    let cells = (HISTOGRAMS * BINS) as u32;
    (0..cells).for_each(|cell| bench.generator().put("delays", cell, &[0; 8]));
    bench.generator().call("generate_timed").run(LOOKS, 1).unwrap();
    let map = bench.generator().map("delays");
    let count = |cell: u32| {
        let value = map.lookup(&cell.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
        u64::from_ne_bytes(value[..8].try_into().unwrap())
    };
    (0..cells).map(count).collect()
}

/// Exponentially distributed times with this mean, of which the program draws.
fn set_gaps(bench: &Bench, mean: f64) {
    for slot in 0..GAPS {
        let part = (f64::from(slot) + 0.5) / f64::from(GAPS);
        let gap = (-part.ln() * mean) as u32;
        bench.generator().put("gaps", slot, &gap.to_ne_bytes());
    }
}
