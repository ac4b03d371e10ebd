//! Runs simulated worlds: `pith-world --seeds 1000`, `pith-world --seed 17 --ladder`; and kills processes in them:
//! `pith-world kill --seeds 0..8`.

#[global_allocator]
static ALLOCATOR: pith_runtime::memory::Allocator = pith_runtime::memory::Allocator;

mod command;

use pith_world::{Plan, World, WorldOutcome, run_worlds};
use std::process::ExitCode;

const USAGE: &str =
    "usage: pith-world [--seeds N] [--from N] [--seed N [--ladder]] [--instances N | --areas N]";

/// Command line options.
#[derive(Debug, Clone, Copy)]
struct Options {
    from: u64,
    seeds: u64,
    ladder: bool,
    /// Instances of AMF, SMF and PCF; 0: as the seed says.
    instances: usize,
    /// AMFs of different AMF Sets.
    areas: usize,
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    if words.next_if_eq("kill").is_some() {
        return command::run(words);
    }
    match parse(words) {
        Some(options) => run(options),
        None => {
            eprintln!("{USAGE}\n{}", command::USAGE);
            ExitCode::from(2)
        }
    }
}
fn parse(mut words: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options { from: 0, seeds: 256, ladder: false, instances: 0, areas: 1 };
    while let Some(word) = words.next() {
        let mut number = || words.next()?.parse().ok();
        match word.as_str() {
            "--seeds" => options.seeds = number()?,
            "--from" => options.from = number()?,
            "--seed" => (options.from, options.seeds) = (number()?, 1),
            "--ladder" => options.ladder = true,
            "--instances" => options.instances = number().filter(|number| (2..=8).contains(number))? as usize,
            "--areas" => options.areas = number().filter(|number| (2..=8).contains(number))? as usize,
            _ => return None,
        }
    }
    Some(options)
}

/// Sums of the reports of worlds.
#[derive(Debug, Default)]
struct Sums {
    worlds: u64,
    failed: u64,
    steps: u64,
    moved: u64,
    ended: u32,
    losses: usize,
}

impl Sums {
    fn add(&mut self, seed: u64, outcome: &WorldOutcome) {
        self.worlds += 1;
        match outcome {
            WorldOutcome::Completed(report) => {
                self.steps += report.steps;
                (self.moved, self.ended) = (self.moved + u64::from(report.moved), self.ended + report.ended);
                self.losses += report.losses.len();
            }
            WorldOutcome::Broken(failure) => {
                self.failed += 1;
                let at = failure.at.as_micros() / 1_000_000;
                println!("seed {seed} at {at} s: {}", failure.what);
            }
            WorldOutcome::Panicked => {
                self.failed += 1;
                println!("seed {seed}: a panic");
            }
        }
    }
}

fn plan(options: Options, seed: u64) -> Plan {
    match (options.instances, options.areas) {
        (0, 1) => Plan::of_seed(seed),
        (0, areas) => Plan::of_areas(seed, areas),
        (instances, _) => Plan::of_instances(seed, instances),
    }
}

fn run(options: Options) -> ExitCode {
    let mut sums = Sums::default();
    if options.ladder {
        let (outcome, seed) = (with_ladder(plan(options, options.from)), options.from);
        sums.add(seed, &outcome);
    } else {
        let seeds = options.from..options.from.saturating_add(options.seeds);
        run_worlds(seeds.map(|seed| plan(options, seed)), |seed, outcome| {
            sums.add(seed, &outcome);
            if sums.worlds.is_multiple_of(100) && sums.worlds < options.seeds {
                eprintln!("{} of {} worlds, {} failed", sums.worlds, options.seeds, sums.failed);
            }
        });
    }
    let Sums { worlds, steps, failed, moved, ended, losses } = sums;
    println!("{worlds} worlds, {steps} steps, {failed} failed");
    if options.instances > 0 {
        println!(
            "{moved} blocks passed between living shards, {ended} instances ended with status 75, {losses} losses"
        );
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs one world, and prints its messages and the violations that UEs and gNBs reported.
fn with_ladder(plan: Plan) -> WorldOutcome {
    println!("{plan:?}");
    let mut world = World::new(plan);
    world.keep_ladder();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run_phases()));
    world.ladder().iter().for_each(|entry| println!("{entry}"));
    match result {
        Ok(Ok(report)) => {
            report.violations.iter().for_each(|(violation, count)| println!("{count:>6} {violation}"));
            WorldOutcome::Completed(report)
        }
        Ok(Err(failure)) => WorldOutcome::Broken(failure),
        Err(_) => WorldOutcome::Panicked,
    }
}
