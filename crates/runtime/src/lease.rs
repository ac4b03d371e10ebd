//! Whether this process may serve its UEs: an instance of a set may until its lease ends, as others serve them then.

use crate::clock::Clock;
use pith_nf::kit::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The end of the process's lease, for all of its shards.
///
/// A process that was paused holds what its shards send until it has asked the store again.
#[derive(Debug, Clone)]
pub struct LeaseGuard {
    /// Microseconds since the start of the clock.
    until: Arc<AtomicU64>,
    clock: Clock,
}

impl LeaseGuard {
    /// A lease that lasts for this time.
    pub fn new(clock: Clock, lasts: Duration) -> Self {
        let guard = Self { until: Arc::default(), clock };
        guard.extend(guard.now(), lasts);
        guard
    }

    /// Microseconds since the start of the clock.
    pub fn now(&self) -> u64 {
        self.clock.now().as_micros()
    }

    /// The lease was renewed by a request that began at that time.
    pub fn extend(&self, began: u64, lasts: Duration) {
        let lasts = u64::try_from(lasts.as_micros()).unwrap_or(u64::MAX);
        self.until.store(began.saturating_add(lasts), Ordering::Release);
    }

    /// Whether the lease has ended.
    pub fn has_ended(&self) -> bool {
        self.now() > self.until.load(Ordering::Acquire)
    }
}
