//! Worlds of many seeds, on all CPUs.

use crate::plan::Plan;
use crate::world::{Failure, Report, World};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The result of a world. A panic has been reported on the standard error output.
#[derive(Debug)]
pub enum WorldOutcome {
    /// All invariants held.
    Completed(Report),
    /// An invariant was broken.
    Broken(Box<Failure>),
    /// The code under test panicked.
    Panicked,
}

/// Runs a world for each plan. `done` gets each one's outcome as soon as it is there, in no particular order.
pub fn run_worlds(plans: impl Iterator<Item = Plan> + Send, mut done: impl FnMut(u64, WorldOutcome) + Send) {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let (plans, done) = (Mutex::new(plans), Mutex::new(&mut done));
    let next = || plans.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some(plan) = next() {
            let seed = plan.seed;
            let outcome = match catch_unwind(AssertUnwindSafe(|| World::run(plan))) {
                Ok(Ok(report)) => WorldOutcome::Completed(report),
                Ok(Err(failure)) => WorldOutcome::Broken(failure),
                Err(_) => WorldOutcome::Panicked,
            };
            (*done.lock().unwrap_or_else(PoisonError::into_inner))(seed, outcome);
        }
    };
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
}

/// The reports of the worlds of all plans, and what failed, by seed.
pub fn reports_of(plans: impl Iterator<Item = Plan> + Send) -> (Vec<Report>, Vec<String>) {
    let (mut reports, mut failures) = (Vec::new(), Vec::new());
    run_worlds(plans, |seed, outcome| match outcome {
        WorldOutcome::Completed(report) => reports.push(report),
        WorldOutcome::Broken(failure) => failures.push((seed, failure.to_string())),
        WorldOutcome::Panicked => failures.push((seed, format!("seed {seed}: a panic"))),
    });
    failures.sort();
    (reports, failures.into_iter().map(|(_, what)| what).collect())
}
