//! Bounds the log lines that peers cause.

use std::cell::Cell;
use std::time::Duration;
use tokio::time::Instant;

/// Lines logged per second at most: an unreachable peer, or one that is refused, causes thousands.
const LINES: u32 = 10;

/// Counts events of a kind, such as failed calls.
pub(super) struct LogRate {
    /// What happened, as in '12 further calls failed'.
    events: &'static str,
    second: Cell<Option<Instant>>,
    /// Events within the current second.
    count: Cell<u32>,
}

impl LogRate {
    pub(super) const fn new(events: &'static str) -> Self {
        Self { events, second: Cell::new(None), count: Cell::new(0) }
    }

    /// Counts an event; returns whether to log it.
    pub(super) fn should_log(&self) -> bool {
        let now = Instant::now();
        if self.second.get().is_none_or(|began| now - began >= Duration::from_secs(1)) {
            let untold = self.count.get().saturating_sub(LINES);
            if untold > 0 {
                tracing::warn!("{untold} further {}", self.events);
            }
            self.second.set(Some(now));
            self.count.set(0);
        }
        self.count.set(self.count.get() + 1);
        self.count.get() <= LINES
    }
}
