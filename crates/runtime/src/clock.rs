//! The process's clock, as the pure band counts time.

use pith_nf::kit::Instant;

/// Counts microseconds since the process began; the same in all threads.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    began: std::time::Instant,
}

impl Clock {
    /// A clock that begins now.
    pub fn start() -> Self {
        Self { began: std::time::Instant::now() }
    }

    /// Now.
    pub fn now(&self) -> Instant {
        Instant::from_micros(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX))
    }
}
