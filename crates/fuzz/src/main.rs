//! `pith-fuzz`: runs targets over many inputs, or replays one input.

use anyhow::{Context, Result};
use clap::Parser;
use pith_fuzz::run::{Crash, Runner, minimise, run_one};
use pith_fuzz::target::{self, Kind, Target};
use pith_fuzz::watchdog::Watchdog;
use pith_fuzz::{corpus, panic};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Fuzz targets of Pith.
#[derive(Parser)]
struct Args {
    /// A target, 'all', 'decoders', 'states', or 'list'.
    target: String,
    /// Inputs for each target; by default 10 million for a decoder and 20,000 for a state.
    #[arg(long)]
    inputs: Option<u64>,
    /// Seed of the inputs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Runs only the input in this file, and reports the result.
    #[arg(long)]
    replay: Option<PathBuf>,
    /// Folder for inputs that break a target.
    #[arg(long, default_value = "target/fuzz")]
    crashes: PathBuf,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(2)
        }
    }
}

/// Returns whether all targets hold.
fn run() -> Result<bool> {
    let args = Args::parse();
    let targets = chosen(&args.target)?;
    if args.target == "list" {
        targets.iter().for_each(|target| println!("{:<16} {}", target.name, target.what));
        return Ok(true);
    }
    if let Some(file) = &args.replay {
        return targets.iter().try_fold(true, |holds, target| Ok(replay(target, file)? && holds));
    }
    panic::suppress_output();
    std::fs::create_dir_all(&args.crashes).with_context(|| args.crashes.display().to_string())?;
    targets.iter().try_fold(true, |holds, target| Ok(fuzz(target, &args)? && holds))
}

fn chosen(name: &str) -> Result<Vec<&'static Target>> {
    let of_kind = |kind| target::all().filter(|target| target.kind == kind).collect();
    Ok(match name {
        "all" | "list" => target::all().collect(),
        "decoders" => of_kind(Kind::Decoder),
        "states" => of_kind(Kind::State),
        name => {
            vec![target::find(name).with_context(|| format!("no target '{name}': see 'pith-fuzz list'"))?]
        }
    })
}

fn replay(target: &Target, file: &Path) -> Result<bool> {
    let mut holds = true;
    for seed in corpus::read_file(file)? {
        match run_one(target, &seed.octets) {
            Ok((took, memory)) => println!("{}: holds, {took:?}, {memory} octets of memory", seed.name),
            Err(what) => {
                holds = false;
                println!("{}: {what}", seed.name);
            }
        }
    }
    Ok(holds)
}

/// Runs a target; returns whether it holds.
fn fuzz(target: &Target, args: &Args) -> Result<bool> {
    let inputs = args.inputs.unwrap_or(match target.kind {
        Kind::Decoder => 10_000_000,
        Kind::State => 20_000,
    });
    let seeds = corpus::read(target.name)?;
    let mut runner = Runner::new(target, &seeds, args.seed);
    let watchdog = Watchdog::start(args.crashes.join(format!("{}-hangs", target.name)));
    let begun = Instant::now();
    let step = (inputs / 100).clamp(1, 100_000);
    for from in (0..inputs).step_by(step as usize) {
        runner.run(from..(from + step).min(inputs), |input| watchdog.note(input));
        progress(target, runner.report().inputs, inputs, &begun);
    }
    watchdog.rest();
    let report = runner.report();
    println!(
        "{:<16} {:>10} inputs {:>7.1} s {:>9.0}/s  most {:>9.3?} {:>8} octets  {} broken",
        target.name,
        report.inputs,
        begun.elapsed().as_secs_f64(),
        report.inputs as f64 / begun.elapsed().as_secs_f64(),
        report.slowest,
        report.max_memory,
        report.crashes.len()
    );
    for crash in &report.crashes {
        keep(target, crash.clone(), &args.crashes)?;
    }
    Ok(report.crashes.is_empty())
}

fn progress(target: &Target, done: u64, of: u64, begun: &Instant) {
    if std::io::stderr().is_terminal() {
        eprint!("\r{:<16} {done}/{of} {:.0} s ", target.name, begun.elapsed().as_secs_f64());
        let _ = std::io::stderr().flush();
        if done == of {
            eprint!("\r\x1b[K");
        }
    }
}

/// Minimises an input that breaks its target, writes it to a file, and prints the command to replay it.
fn keep(target: &Target, crash: Crash, folder: &Path) -> Result<()> {
    let crash = minimise(target, crash);
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for octet in &crash.input {
        hash = (hash ^ u64::from(*octet)).wrapping_mul(0x100_0000_01b3);
    }
    let file = folder.join(format!("{}-{hash:016x}", target.name));
    std::fs::write(&file, &crash.input).with_context(|| file.display().to_string())?;
    println!("  {}", crash.what.replace('\n', "\n  "));
    println!("  {}", hex::encode(&crash.input));
    println!("  again: pith-fuzz {} --replay {}", target.name, file.display());
    Ok(())
}
