//! Runs simulated worlds: `pith-world --seeds 1000`, `pith-world --seed 17 --ladder`; and kills processes in them:
//! `pith-world kill --seeds 0..8`.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod command;

use pith_world::{Plan, World};
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

fn run(options: Options) -> ExitCode {
    let (mut failed, mut steps) = (0, 0);
    let (mut moved, mut ended, mut lost) = (0, 0, 0);
    let mut violations = std::collections::BTreeMap::<String, u64>::new();
    for seed in options.from..options.from.saturating_add(options.seeds) {
        let plan = match (options.instances, options.areas) {
            (0, 1) => Plan::of_seed(seed),
            (0, areas) => Plan::of_areas(seed, areas),
            (instances, _) => Plan::of_instances(seed, instances),
        };
        if options.ladder {
            println!("{plan:?}");
        }
        let mut world = World::new(plan);
        if options.ladder {
            world.keep_ladder();
        }
        // The panic has been reported on the standard error output; other seeds are still run.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run_phases()));
        if options.ladder {
            world.ladder().iter().for_each(|entry| println!("{entry}"));
        }
        match result {
            Err(_) => {
                failed += 1;
                println!("seed {seed}: a panic");
            }
            Ok(Ok(report)) => {
                steps += report.steps;
                (moved, ended) = (moved + u64::from(report.moved), ended + report.ended);
                lost += report.losses.len();
                for (violation, count) in report.violations {
                    *violations.entry(violation).or_default() += count;
                }
            }
            Ok(Err(failure)) => {
                failed += 1;
                println!(
                    "seed {} at {} s: {}",
                    failure.seed,
                    failure.at.as_micros() / 1_000_000,
                    failure.what
                );
            }
        }
    }
    println!("{} worlds, {steps} steps, {failed} failed", options.seeds);
    if options.instances > 0 {
        println!(
            "{moved} blocks passed between living shards, {ended} instances ended with status 75, {lost} losses"
        );
    }
    if options.ladder {
        violations.iter().for_each(|(violation, count)| println!("{count:>6} {violation}"));
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
