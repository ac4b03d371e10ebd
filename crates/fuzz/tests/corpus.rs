//! All targets hold for their corpus, and for some thousand inputs generated from it.

use pith_fuzz::corpus;
use pith_fuzz::run::{Runner, run_one};
use pith_fuzz::target::{self, Kind, Target};

/// The failures of a target.
fn failures(target: &Target) -> Vec<String> {
    let seeds = corpus::read(target.name).expect("a corpus that can be read");
    assert!(!seeds.is_empty(), "{} has no corpus", target.name);
    let replay = |seed: &corpus::Seed| {
        let what = run_one(target, &seed.octets).err()?;
        Some(format!("{}, {}: {what}", target.name, seed.name))
    };
    let mut failures: Vec<_> = seeds.iter().filter_map(replay).collect();
    let mut runner = Runner::new(target, &seeds, 1);
    let inputs = match target.kind {
        Kind::Decoder => 5_000,
        Kind::State => 60,
    };
    runner.run(0..inputs, |_| ());
    let crashes = runner.report().crashes.iter();
    failures.extend(
        crashes.map(|crash| format!("{}, {}: {}", target.name, hex::encode(&crash.input), crash.what)),
    );
    failures
}

fn hold(kind: Kind) {
    let failures: Vec<_> = target::all().filter(|target| target.kind == kind).flat_map(failures).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn decoders_hold() {
    hold(Kind::Decoder);
}

#[test]
fn states_hold() {
    hold(Kind::State);
}
