//! Whether this process may serve its UEs: an instance of a set may until its lease ends, as others serve them then.
//!
//! ```text
//!  the lease was renewed          ── renew ──> until then the process serves, and may claim blocks
//!  the store does not answer      ── go_on ──> it serves: without the store no other instance can take its blocks
//!  the store names another owner  ── note_fenced ──> it ends
//! ```

use crate::clock::Clock;
use pith_nf::kit::{Duration, Instant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The end of the process's lease, for all of its shards.
///
/// A process that was paused holds what its shards send until it has asked the store again.
#[derive(Debug, Clone)]
pub struct LeaseGuard(Arc<State>);

#[derive(Debug)]
struct State {
    /// The process serves until then: microseconds since the start of the clock.
    until: AtomicU64,
    /// The lease that was renewed last ends then.
    renewed_until: AtomicU64,
    /// The store has refused a write: another process is the owner.
    is_fenced: AtomicBool,
    time: Time,
}

#[derive(Debug)]
enum Time {
    Clock(Clock),
    /// That of a simulation, in microseconds.
    Simulated(AtomicU64),
}

impl LeaseGuard {
    /// A lease that lasts for this time.
    pub fn new(clock: Clock, lasts: Duration) -> Self {
        Self::of_time(Time::Clock(clock), lasts)
    }

    /// As `new`, in a simulation that sets the time ([`LeaseGuard::set_now`]).
    pub fn simulated(lasts: Duration) -> Self {
        Self::of_time(Time::Simulated(AtomicU64::new(0)), lasts)
    }

    fn of_time(time: Time, lasts: Duration) -> Self {
        let (until, renewed_until) = (AtomicU64::new(0), AtomicU64::new(0));
        let guard = Self(Arc::new(State { until, renewed_until, is_fenced: AtomicBool::new(false), time }));
        guard.renew(guard.now(), lasts);
        guard
    }

    /// The time in a simulation; with a clock this does nothing.
    pub fn set_now(&self, now: Instant) {
        if let Time::Simulated(time) = &self.0.time {
            time.store(now.as_micros(), Ordering::Release);
        }
    }

    /// Microseconds since the start of the clock.
    pub fn now(&self) -> u64 {
        match &self.0.time {
            Time::Clock(clock) => clock.now().as_micros(),
            Time::Simulated(time) => time.load(Ordering::Acquire),
        }
    }

    /// The lease was renewed by a request that began at that time.
    pub fn renew(&self, began: u64, lasts: Duration) {
        let until = began.saturating_add(micros(lasts));
        self.0.renewed_until.store(until, Ordering::Release);
        self.0.until.store(until, Ordering::Release);
    }

    /// The process serves for that time, although its lease is not renewed.
    pub fn go_on(&self, time: Duration) {
        self.0.until.store(self.now().saturating_add(micros(time)), Ordering::Release);
    }

    /// Whether the process holds what its shards send.
    pub fn has_ended(&self) -> bool {
        self.now() > self.0.until.load(Ordering::Acquire)
    }

    /// Whether the blocks that the process knows as its own are its own: it may claim them in the store.
    pub fn may_claim(&self) -> bool {
        self.now() <= self.0.renewed_until.load(Ordering::Acquire)
    }

    /// The store has refused a write, as another process is the owner of a block.
    pub fn note_fenced(&self) {
        self.0.is_fenced.store(true, Ordering::Release);
    }

    /// Whether a write was refused: the process can serve no UEs any longer.
    pub fn is_fenced(&self) -> bool {
        self.0.is_fenced.load(Ordering::Acquire)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_its_store_serves_and_claims_nothing() {
        let guard = LeaseGuard::simulated(Duration::from_secs(3));
        let at = |seconds: u64| guard.set_now(Instant::from_micros(seconds * 1_000_000));
        assert!(guard.may_claim() && !guard.has_ended());
        at(2);
        guard.go_on(Duration::from_secs(10));
        at(4);
        assert!(!guard.may_claim() && !guard.has_ended());
        at(13);
        assert!(guard.has_ended());
        guard.renew(12_000_000, Duration::from_secs(3));
        assert!(guard.may_claim() && !guard.has_ended());
    }
}
