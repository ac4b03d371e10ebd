//! The engine that every packet path shares: sessions compiled for look-up, and what rules do to a
//! packet. No path touches a meter or a counter but through here; who waits, and who is next, is
//! `pith_upf::qos`.

mod classify;
mod compile;
mod counters;
mod sessions;
mod usage;
mod waiting;

pub use compile::{Origin, Rule, Rules};
pub use counters::{Drops, WorkerCounters, total};
pub use sessions::{Installed, Sessions};
pub use usage::Worker;
pub use waiting::Waiting;

use pith_upf::qos::Time;
use std::time::{Duration, Instant};

/// Nanoseconds since the datapath started; never 0, which stands for never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now(pub u64);

impl From<Now> for Time {
    fn from(now: Now) -> Self {
        Self(now.0)
    }
}

impl Now {
    /// The age of a time that was stored as nanoseconds; `None` for never.
    pub fn since(self, stored: u64) -> Option<Duration> {
        (stored != 0).then(|| Duration::from_nanos(self.0.saturating_sub(stored)))
    }
}

/// The clock of a datapath.
#[derive(Debug, Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    /// Starts it.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Now.
    pub fn now(&self) -> Now {
        Now(self.0.elapsed().as_nanos() as u64 + 1)
    }
}
