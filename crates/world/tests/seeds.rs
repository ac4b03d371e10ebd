//! 256 worlds: the regression test of the NFs under faults.

use pith_world::{Failure, Plan, Residency, World};

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
fn each_fault_of_the_store_is_drawn_with_each_residency() {
    let plans: Vec<_> = (0..SEEDS).map(Plan::of_seed).collect();
    let count = |what: &dyn Fn(&Plan) -> bool| plans.iter().filter(|plan| what(plan)).count();
    for residency in Residency::STORED {
        let of = |plan: &Plan| plan.residency == residency && plan.store.is_some();
        let drawn = [
            count(&|plan| of(plan) && plan.faults.outages > 0),
            count(&|plan| of(plan) && plan.faults.full_stores > 0),
            count(&|plan| of(plan) && plan.store_latency.is_some()),
            count(&|plan| of(plan) && plan.faults.store_losses > 0),
            count(&|plan| of(plan) && plan.faults.power_failures > 0),
            count(&|plan| of(plan) && plan.faults.crashes > 0 && plan.processes.len() > 1),
        ];
        assert!(drawn.iter().all(|worlds| *worlds > 0), "{}: {drawn:?}", residency.name());
    }
    assert!(count(&|plan| plan.store.is_some() && plan.faults.panics > 0) > 10);
    assert!(count(&|plan| plan.ues == 50) > 2);
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
