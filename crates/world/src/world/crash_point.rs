//! Crash points: the places in a turn of a process at which it can be killed.
//!
//! ```text
//!  input ─> Shard.handle ─●─> store ─●─> send ─●─> send ─●
//! ```
//!
//! What was sent before arrives: a gNB or UPF may have received messages of which the restarted process knows only what is stored.
//! Uplink messages on their way, replies and database results are lost with the process.

use super::{SimEvent, World};
use crate::plan::Residency;
use pith_nf::fabric::ShardEffect;
use pith_nf::kit::Instant;
use std::time::Duration;

/// A place in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CrashSite {
    /// The input was handled; nothing is stored or sent.
    BeforeStore,
    /// The turn is stored, and its messages up to this one were sent.
    BeforeSend,
    /// All messages of the turn were sent.
    AfterTurn,
}

/// Counts the crash points of one process, and kills it at one of them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CrashPoints {
    /// The process.
    pub victim: usize,
    /// Not the process ends: the shard panics. Only the points before a store count, as a panic takes back the whole turn.
    pub panics: bool,
    /// Its points are counted.
    counts: bool,
    /// Since when they are counted: the begin of the procedure.
    since: Instant,
    /// Crash points passed.
    pub passed: u64,
    /// Kill the process at this one.
    at: Option<u64>,
    /// The crash has happened.
    pub crashed: Option<Crash>,
}

/// A crash that has happened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crash {
    pub at: Instant,
    /// What a UE got within this time before the crash may not be written yet.
    pub unwritten: Option<Duration>,
}

/// A change that a UE got less than this before the end of the process may be unwritten with `residency: soft`: 200 ms, and the time
/// of the message to the UE.
const SOFT_UNWRITTEN: Duration = Duration::from_millis(250);

/// In-flight messages of SCTP associations arrive within this time.
const IN_FLIGHT: Duration = Duration::from_millis(6);

/// Whether an effect is a message that leaves the shard.
pub(super) const fn is_send(effect: &ShardEffect) -> bool {
    match effect {
        ShardEffect::N2(_)
        | ShardEffect::N4(_)
        | ShardEffect::HttpCall { .. }
        | ShardEffect::ShardCall { .. }
        | ShardEffect::Forward { .. }
        | ShardEffect::Answer { .. }
        | ShardEffect::Store { .. }
        | ShardEffect::PassOn { .. } => true,
        ShardEffect::NrfRestarted
        | ShardEffect::Load { .. }
        | ShardEffect::Restore(_)
        | ShardEffect::StartTimer { .. }
        | ShardEffect::StopTimer { .. }
        | ShardEffect::Event { .. }
        | ShardEffect::OwnersChanged(_)
        | ShardEffect::SessionsRestored
        | ShardEffect::Released(_)
        | ShardEffect::MoveEnded { .. }
        | ShardEffect::Ready
        | ShardEffect::Inspected { .. } => false,
    }
}

impl World {
    /// Counts the crash points of the victim from now on; kills it at that one.
    pub(super) fn count_crash_points(&mut self, at: Option<u64>) {
        self.crash_points = CrashPoints { counts: true, since: self.now, at, ..self.crash_points };
    }

    /// Counts the inputs of shards from now on; a shard panics at that one.
    pub(super) fn count_panics(&mut self, at: Option<u64>) {
        self.count_crash_points(at);
        self.crash_points.panics = true;
    }

    /// Counts no more crash points; returns how many there were.
    pub(super) fn end_crash_points(&mut self) -> u64 {
        self.crash_points.counts = false;
        self.crash_points.passed
    }

    /// Counts a crash point; returns whether the process is killed there.
    pub(super) fn crashes_at(&mut self, (process, shard): (usize, usize), site: CrashSite) -> bool {
        let points = &mut self.crash_points;
        if !points.counts || points.victim != process || points.crashed.is_some() {
            return false;
        }
        if points.panics && site != CrashSite::BeforeStore {
            return false;
        }
        let number = points.passed;
        points.passed += 1;
        if points.at != Some(number) {
            return false;
        }
        let unwritten = match self.plan.residency {
            Residency::Soft => Some(SOFT_UNWRITTEN),
            // What the procedure accepted.
            Residency::Procedural => Some(self.now - self.crash_points.since),
            Residency::None
            | Residency::Durable
            | Residency::Stateless
            | Residency::Shared
            | Residency::Embedded => None,
        };
        self.crash_points.crashed = Some(Crash { at: self.now, unwritten });
        if self.crash_points.panics {
            self.panic((process, shard));
        } else {
            self.record("fault", "world", format!("crash {site:?} in shard {shard} of process {process}"));
            self.crash(process);
        }
        true
    }

    /// Kills a process in the middle of a turn; it starts again a little later.
    pub(super) fn crash(&mut self, process: usize) {
        let ends_n2 = self.processes[process].n2.is_some();
        if !self.processes[process].is_stored() {
            self.watch.killed.extend(self.processes[process].nfs.iter().copied());
        }
        self.kill_process(process);
        if ends_n2 {
            self.end_associations_of(process, IN_FLIGHT);
        }
        // An instance returns within its lease, or when the others have its blocks.
        let is_late = self.is_in_set(process) && self.plan.seed.is_multiple_of(2);
        let least = if is_late { self.plan.lease * 2 } else { Duration::ZERO };
        let after = least + self.dice.millis(100, 2000);
        self.at(after, SimEvent::Start { process });
    }
}
