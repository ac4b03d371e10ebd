//! The pace at which large tables of the kernel are read, as they may change all the time.

use std::time::{Duration, Instant};

/// Least pause before a reading: changes often arrive in groups.
const GATHER: Duration = Duration::from_millis(50);
/// The pause after a reading is at least its duration times this.
const SHARE: u32 = 20;

/// The time from which on the next reading may begin.
#[derive(Debug, Default)]
pub struct Reading {
    next: Option<Instant>,
}

impl Reading {
    /// The pause before the next reading.
    pub fn pause(&self) -> Duration {
        let rest = self.next.map(|next| next.saturating_duration_since(Instant::now()));
        rest.unwrap_or_default().max(GATHER)
    }

    /// Reads, and takes the time.
    pub fn measure<T>(&mut self, read: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = read();
        let end = Instant::now();
        self.next = Some(end + (end - begun) * SHARE);
        result
    }
}
