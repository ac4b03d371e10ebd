//! What a peer may do within some time.

use super::{Duration, Instant};

/// Things that a peer may do: a number at once, and a further one after each interval.
#[derive(Debug, Clone)]
pub struct Allowance {
    most: u32,
    interval: Duration,
    left: u32,
    since: Instant,
}

impl Allowance {
    /// A full allowance: `most` at once, and one more after each `interval`, which is not 0.
    pub const fn full(most: u32, interval: Duration, now: Instant) -> Self {
        Self { most, interval, left: most, since: now }
    }

    /// Whether one more is permitted.
    pub fn has_left(&mut self, now: Instant) -> bool {
        let gained = now.since(self.since).as_millis() / self.interval.as_millis().max(1);
        if gained > 0 {
            let gained = u32::try_from(gained).unwrap_or(self.most).min(self.most);
            self.left = self.left.saturating_add(gained).min(self.most);
            let is_full = self.left == self.most;
            self.since = if is_full { now } else { self.since + self.interval * gained };
        }
        self.left > 0
    }

    /// Counts one; returns whether it is permitted.
    pub fn take(&mut self, now: Instant) -> bool {
        self.take_several(now, 1)
    }

    /// Takes `count` units, or none if fewer are left. Returns whether it took them.
    pub fn take_several(&mut self, now: Instant, count: u32) -> bool {
        let is_left = self.has_left(now) && self.left >= count;
        if is_left {
            self.left -= count;
        }
        is_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_comes_back_with_time() {
        let start = Instant::default();
        let mut allowance = Allowance::full(2, Duration::from_millis(100), start);
        assert_eq!([(); 3].map(|()| allowance.take(start)), [true, true, false]);
        assert!(!allowance.has_left(start));
        let later = start + Duration::from_millis(100);
        assert_eq!([(); 2].map(|()| allowance.take(later)), [true, false]);
        let last = later + Duration::from_secs(60);
        assert_eq!([(); 3].map(|()| allowance.take(last)), [true, true, false], "no more than at first");
    }
}
