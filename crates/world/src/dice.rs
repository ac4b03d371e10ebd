//! The only source of randomness in a world: everything follows from its seed.

use pith_nf::kit::Rng;
use std::time::Duration;

/// A seeded generator with the distributions that a world needs.
pub(crate) struct Dice(Rng);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(Rng::from_number(seed))
    }

    /// A generator for a part of the world.
    pub fn fork(&mut self) -> Rng {
        self.0.fork()
    }

    /// 0 up to, not including, `limit`; 0 if `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit.max(1)
    }

    /// An index into a list of that length.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// True with a probability of `per_mille` in a thousand.
    pub fn chance(&mut self, per_mille: u32) -> bool {
        self.below(1000) < u64::from(per_mille)
    }

    /// A duration from `least` to `most` milliseconds, in microseconds.
    pub fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_micros(least * 1000 + self.below((most.saturating_sub(least)) * 1000 + 1))
    }

    pub fn seconds(&mut self, least: u64, most: u64) -> Duration {
        self.millis(least * 1000, most * 1000)
    }
}
