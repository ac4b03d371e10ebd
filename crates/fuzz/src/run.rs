//! Execution of a target: catches panics, measures costs, keeps inputs that break it.

use crate::alloc::allocated;
use crate::corpus::Seed;
use crate::mutate::Mutator;
use crate::random::Random;
use crate::target::{CheckFailed, Target};
use pith_runtime::clock::thread_cpu_time;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// An input that breaks its target.
#[derive(Debug, Clone)]
pub struct Crash {
    /// The input.
    pub input: Vec<u8>,
    /// Description of the failure.
    pub what: String,
}

/// The result of a run.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Number of inputs.
    pub inputs: u64,
    /// Inputs that broke the target, at most one for each kind of failure.
    pub crashes: Vec<Crash>,
    /// Processor time of the slowest input.
    pub slowest: Duration,
    /// Largest allocation of an input, in octets.
    pub max_memory: u64,
}

/// Runs one input, and checks the limits of the target.
pub fn run_one(target: &Target, input: &[u8]) -> Result<(Duration, u64), String> {
    let (begun, before) = (thread_cpu_time(), allocated());
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let (took, memory) = (thread_cpu_time() - begun, allocated() - before);
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(CheckFailed(what))) => return Err(what),
        Err(panic) => return Err(format!("panic: {}", crate::panic::what(&*panic))),
    }
    let bound = target.bounds.memory + target.bounds.memory_per_octet * input.len() as u64;
    if memory > bound {
        return Err(format!(
            "memory: {memory} octets allocated, the limit is {bound} for an input of {}",
            input.len()
        ));
    }
    if took > target.bounds.time && (0..3).all(|_| time(target, input) > target.bounds.time) {
        return Err(format!("time: {took:?}, at most {:?}", target.bounds.time));
    }
    Ok((took, memory))
}

/// Measures again: other load on the machine disturbs processor time, too, if less than wall time.
fn time(target: &Target, input: &[u8]) -> Duration {
    let begun = thread_cpu_time();
    let _ = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    thread_cpu_time() - begun
}

/// A run of a target over inputs generated from its seeds.
pub struct Runner<'a> {
    target: &'a Target,
    mutator: Mutator<'a>,
    seed: u64,
    report: Report,
}

impl<'a> Runner<'a> {
    /// A run with that seed.
    pub fn new(target: &'a Target, seeds: &'a [Seed], seed: u64) -> Self {
        Self { target, mutator: Mutator::new(target.shape, seeds), seed, report: Report::default() }
    }

    /// Runs the inputs of these numbers; `before` gets each one first.
    pub fn run(&mut self, numbers: std::ops::Range<u64>, mut before: impl FnMut(&[u8])) {
        for number in numbers {
            let input = self.mutator.make(&mut Random::of_input(self.seed, number));
            before(&input);
            self.take(input);
        }
    }

    fn take(&mut self, input: Vec<u8>) {
        self.report.inputs += 1;
        match run_one(self.target, &input) {
            Ok((took, memory)) => {
                self.report.slowest = self.report.slowest.max(took);
                self.report.max_memory = self.report.max_memory.max(memory);
            }
            Err(what) => self.note(Crash { input, what }),
        }
    }

    /// Keeps the shortest input for each kind of failure.
    fn note(&mut self, crash: Crash) {
        let same = self.report.crashes.iter_mut().find(|known| kind(&known.what) == kind(&crash.what));
        match same {
            Some(known) if known.input.len() > crash.input.len() => *known = crash,
            Some(_) => {}
            None => self.report.crashes.push(crash),
        }
    }

    /// The result so far.
    pub fn report(&self) -> &Report {
        &self.report
    }
}

/// The kind of a failure: its text without values.
fn kind(what: &str) -> String {
    let line = what.lines().next().unwrap_or_default();
    line.chars().filter(|letter| !letter.is_ascii_digit()).take(60).collect()
}

/// Removes octets from an input as long as the same failure occurs.
pub fn minimise(target: &Target, crash: Crash) -> Crash {
    let mut best = crash;
    let mut size = best.input.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < best.input.len() {
            let mut shorter = best.input.clone();
            shorter.drain(at..(at + size).min(shorter.len()));
            match run_one(target, &shorter) {
                Err(what) if kind(&what) == kind(&best.what) => best = Crash { input: shorter, what },
                _ => at += size,
            }
        }
        size /= 2;
    }
    best
}
