//! Runs of many procedures, seeds and crash points on several threads.

use super::{Breach, BreachKind, Kill, PROCEDURES, Procedure, Victim};
use crate::plan::Residency;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Which runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// Seeds from the first to, not including, the second.
    pub seeds: (u64, u64),
    /// Residencies.
    pub residencies: Vec<Residency>,
    /// Victims.
    pub victims: Vec<Victim>,
    /// Only procedures whose name contains this.
    pub procedure: Option<String>,
    /// Every n-th crash point.
    pub stride: u64,
    /// Threads.
    pub threads: usize,
    /// With gNBs that retain their UEs.
    pub retains_ues: bool,
}

/// The result of the runs of a procedure, a residency and a victim.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// Crash points at which the victim was killed.
    pub points: u64,
    /// Runs that broke an invariant.
    pub broken: Vec<BrokenRun>,
}

/// A run that broke an invariant.
#[derive(Debug, Clone)]
pub struct BrokenRun {
    /// The arguments that repeat it.
    pub run: String,
    /// What it broke.
    pub kind: BreachKind,
    /// Whether the residency forbids that.
    pub is_failure: bool,
    /// Description.
    pub what: String,
}

impl Row {
    /// Number of runs that broke an invariant of that kind.
    pub fn count(&self, kind: BreachKind) -> usize {
        self.broken.iter().filter(|broken| broken.kind == kind).count()
    }

    /// Number of runs that broke what the residency promises.
    pub fn failures(&self) -> usize {
        self.broken.iter().filter(|broken| broken.is_failure).count()
    }
}

/// Rows by procedure (its place in [`PROCEDURES`]), residency and victim.
pub type Table = BTreeMap<(usize, Residency, Victim), Row>;

struct Shared<'a> {
    jobs: Vec<(usize, Kill)>,
    next: AtomicUsize,
    table: Mutex<Table>,
    progress: &'a (dyn Fn(usize, usize, &Table) + Sync),
}

/// Kills the victims at all crash points. `progress` gets the number of worlds that are done, their total number, and the table.
pub fn campaign(options: &Options, progress: &(dyn Fn(usize, usize, &Table) + Sync)) -> Table {
    let shared =
        Shared { jobs: jobs(options), next: AtomicUsize::new(0), table: Mutex::new(Table::new()), progress };
    thread::scope(|scope| {
        for _ in 0..options.threads.max(1) {
            scope.spawn(|| work(options, &shared));
        }
    });
    shared.table.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn jobs(options: &Options) -> Vec<(usize, Kill)> {
    let is_chosen =
        |procedure: &Procedure| options.procedure.as_ref().is_none_or(|part| procedure.name.contains(part));
    let chosen: Vec<_> =
        PROCEDURES.iter().enumerate().filter(|(_, procedure)| is_chosen(procedure)).collect();
    let mut jobs = Vec::new();
    for seed in options.seeds.0..options.seeds.1 {
        for residency in &options.residencies {
            for victim in &options.victims {
                let possible = chosen.iter().map(|(at, procedure)| {
                    let (residency, victim, retains_ues) = (*residency, *victim, options.retains_ues);
                    (*at, Kill { procedure, seed, residency, victim, retains_ues })
                });
                jobs.extend(possible.filter(|(_, kill)| kill.is_possible()));
            }
        }
    }
    jobs
}

fn work(options: &Options, shared: &Shared<'_>) {
    loop {
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        let Some((at, kill)) = shared.jobs.get(number) else { return };
        let row = run(kill, options.stride);
        let mut table = shared.table.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = table.entry((*at, kill.residency, kill.victim)).or_default();
        sum.points += row.points;
        sum.broken.extend(row.broken);
        (shared.progress)(number + 1, shared.jobs.len(), &table);
    }
}

/// One world without a crash, and one for each chosen crash point.
fn run(kill: &Kill, stride: u64) -> Row {
    let mut row = Row::default();
    let points = match kill.points() {
        Ok(points) => points,
        Err(breach) => {
            row.broken.push(broken(format!("{kill} (without a crash)"), breach, true));
            return row;
        }
    };
    // Another part of the points with each seed.
    let stride = match stride {
        0 | 1 => 1,
        stride => stride * kill.procedure.thinning,
    };
    let chosen = (kill.seed % stride..points).step_by(stride as usize);
    row.points = chosen.clone().count() as u64;
    for point in chosen {
        if let (Err(breach), _) = kill.crash_at(point, false) {
            let is_failure = kill.forbids(breach.kind);
            row.broken.push(broken(format!("{kill} --point {point}"), breach, is_failure));
        }
    }
    row
}

fn broken(run: String, Breach { kind, failure }: Breach, is_failure: bool) -> BrokenRun {
    BrokenRun { run, kind, is_failure, what: failure.what }
}
