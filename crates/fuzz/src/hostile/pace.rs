//! A steady rate: what is due is sent in bursts a millisecond apart, so that the attacker costs little itself.

use std::time::{Duration, Instant};

/// Time between bursts.
const TICK: Duration = Duration::from_millis(1);

/// How many messages are due.
pub struct Pace {
    rate: u32,
    begin: Instant,
    end: Instant,
    sent: u64,
}

impl Pace {
    /// `rate` messages a second, for that long from now.
    pub fn new(rate: u32, length: Duration) -> Self {
        let begin = Instant::now();
        Self { rate, begin, end: begin + length, sent: 0 }
    }

    /// Whether the attack goes on.
    pub fn is_on(&self) -> bool {
        Instant::now() < self.end
    }

    /// How many are due now. Bursts that a busy machine made late are not made up for beyond 10 ms.
    pub fn due(&mut self) -> u64 {
        let due = (self.begin.elapsed().as_secs_f64() * f64::from(self.rate)) as u64;
        let most = u64::from(self.rate) / 100 + 1;
        due.saturating_sub(self.sent).min(most)
    }

    /// Adds to the number of messages sent.
    pub fn count(&mut self, sent: u64) {
        self.sent += sent;
    }

    /// Until the next burst.
    pub const fn tick(&self) -> Duration {
        TICK
    }

    /// How many were sent.
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }
}

/// CPU time of this process, from the scheduler's clock of its threads.
pub fn cpu_seconds() -> f64 {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return 0.0 };
    let nanoseconds = |entry: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read_to_string(entry.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    threads.filter_map(nanoseconds).sum::<u64>() as f64 / 1e9
}
