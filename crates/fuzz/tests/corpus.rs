//! The corpus of every target, and some thousand inputs made of it, hold.

use pith_fuzz::corpus;
use pith_fuzz::run::{Runner, run_one};
use pith_fuzz::target::{self, Kind, Target};

fn holds(target: &Target) {
    let seeds = corpus::read(target.name).expect("a corpus that can be read");
    assert!(!seeds.is_empty(), "{} has no corpus", target.name);
    for seed in &seeds {
        if let Err(what) = run_one(target, &seed.octets) {
            panic!("{}, {}: {what}", target.name, seed.name);
        }
    }
    let mut runner = Runner::new(target, &seeds, 1);
    let inputs = match target.kind {
        Kind::Decoder => 5_000,
        Kind::State => 60,
    };
    runner.run(0..inputs, |_| ());
    if let Some(crash) = runner.report().crashes.first() {
        panic!("{}, {}: {}", target.name, hex::encode(&crash.input), crash.what);
    }
}

#[test]
fn decoders_hold() {
    target::all().filter(|target| target.kind == Kind::Decoder).for_each(holds);
}

#[test]
fn states_hold() {
    target::all().filter(|target| target.kind == Kind::State).for_each(holds);
}
