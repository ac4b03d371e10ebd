//! Progress of a part that takes long.

use std::time::{Duration, Instant};

const BETWEEN: Duration = Duration::from_secs(10);

/// Prints a line every few seconds.
#[derive(Debug)]
pub struct Progress {
    part: &'static str,
    done: usize,
    all: usize,
    begun: Instant,
    printed: Instant,
}

impl Progress {
    pub fn of(part: &'static str, all: usize) -> Self {
        let now = Instant::now();
        Self { part, done: 0, all, begun: now, printed: now }
    }

    /// A step ends.
    pub fn step(&mut self, what: &str) {
        self.done += 1;
        if self.printed.elapsed() >= BETWEEN || self.done == self.all {
            self.printed = Instant::now();
            let seconds = self.begun.elapsed().as_secs();
            println!("   {}: {} of {} ({what}), {seconds} s", self.part, self.done, self.all);
        }
    }
}
