//! 256 worlds: the regression test of the NFs under faults.

use pith_world::{Failure, Plan, World};

const SEEDS: u64 = 256;

#[test]
fn every_seed_keeps_the_invariants() {
    let failures: Vec<Box<Failure>> =
        (0..SEEDS).filter_map(|seed| World::run(Plan::of_seed(seed)).err()).collect();
    let told: Vec<String> =
        failures.iter().map(|failure| format!("seed {}: {}", failure.seed, failure.what)).collect();
    let first = failures.first().map(|failure| failure.to_string()).unwrap_or_default();
    assert!(failures.is_empty(), "{}\n\nthe first one:\n{first}", told.join("\n"));
}

#[test]
fn worlds_differ_and_are_busy() {
    let (mut sessions, mut classifiers, mut steps) = (0, 0, 0);
    for seed in (0..64).step_by(4) {
        let report = World::run(Plan::of_seed(seed)).expect("a world without faults");
        assert!(report.violations.is_empty(), "seed {seed}: {:?}", report.violations);
        sessions += report.sessions;
        classifiers += report.classifiers;
        steps += report.steps;
    }
    assert!(sessions > 10 && steps > 10_000, "{sessions} sessions, {steps} steps");
    assert!(classifiers > 3, "{classifiers} classifiers");
}
