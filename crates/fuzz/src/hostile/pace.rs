//! A constant rate: due messages are sent in bursts four milliseconds apart, so that the attacker
//! itself uses little CPU.

use std::time::{Duration, Instant};

/// Interval of bursts.
const TICK: Duration = Duration::from_millis(4);

/// Computes how many messages are due.
pub struct Pace {
    rate: u32,
    begin: Instant,
    end: Instant,
    sent: u64,
}

impl Pace {
    /// `rate` messages a second for `length` from now.
    pub fn new(rate: u32, length: Duration) -> Self {
        let begin = Instant::now();
        Self { rate, begin, end: begin + length, sent: 0 }
    }

    /// Whether the attack continues.
    pub fn is_on(&self) -> bool {
        Instant::now() < self.end
    }

    /// The number of messages due now. Of bursts that a busy machine delayed, at most 10 ms are caught up.
    pub fn due(&mut self) -> u64 {
        let due = (self.begin.elapsed().as_secs_f64() * f64::from(self.rate)) as u64;
        let most = u64::from(self.rate) / 100 + 1;
        due.saturating_sub(self.sent).min(most)
    }

    /// Adds to the number of sent messages.
    pub fn count(&mut self, sent: u64) {
        self.sent += sent;
    }

    /// Interval of bursts.
    pub const fn tick(&self) -> Duration {
        TICK
    }

    /// Number of sent messages.
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }
}

/// CPU time of this process, from the scheduler's statistics of its threads.
pub fn cpu_seconds() -> f64 {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return 0.0 };
    let nanoseconds = |entry: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read_to_string(entry.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    threads.filter_map(nanoseconds).sum::<u64>() as f64 / 1e9
}
