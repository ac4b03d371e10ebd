//! The rule engine of both packet paths: sessions compiled for look-up, and the application of rules to
//! packets. All access to meters and counters is here; queueing and scheduling are in `pith_upf::qos`.

mod ahead;
mod classify;
mod compile;
mod counters;
mod pool;
mod sessions;
mod trace;
mod usage;
mod waiting;

pub use ahead::STEPS;
pub use compile::{Origin, Rule, Rules};
pub use counters::{Drops, WorkerCounters, total};
pub use pool::{BlockPool, BlockValues, Pool, Pools, SessionBlock};
pub use sessions::{Installed, Sessions};
pub use trace::{Ingress, Tracer};
pub use usage::{UrrUse, Worker};
pub use waiting::Waiting;

use crate::sys::monotonic;
use pith_upf::qos::Time;
use std::time::Duration;

/// Nanoseconds since the datapath started; never 0, which means 'never'.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now(pub u64);

impl From<Now> for Time {
    fn from(now: Now) -> Self {
        Self(now.0)
    }
}

impl Now {
    /// The time of an age, as stored; not 0.
    pub fn before(self, age: Duration) -> u64 {
        self.0.saturating_sub(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX)).max(1)
    }

    /// The age of a time stored as nanoseconds; `None` for never.
    pub fn since(self, stored: u64) -> Option<Duration> {
        (stored != 0).then(|| Duration::from_nanos(self.0.saturating_sub(stored)))
    }
}

/// The clock of a datapath: the system's monotonic clock, relative to its start.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    started: u64,
}

impl Clock {
    pub fn start() -> Self {
        Self { started: monotonic() }
    }

    /// The clock of another process that this one succeeds.
    pub fn started_at(started: u64) -> Self {
        Self { started: started.min(monotonic()) }
    }

    /// The system's time at the start, in nanoseconds.
    pub fn started(&self) -> u64 {
        self.started
    }

    pub fn now(&self) -> Now {
        Now(monotonic().saturating_sub(self.started) + 1)
    }
}
