//! The time between the transactions of a context: from the end of one to the begin of the next. A residency that keeps no copies writes and reads
//! the context in that time.
//!
//! ```text
//!  input from outside ── transaction ── no SBI request is pending ── interval ── next input from outside
//! ```
//!
//! A sample is counted: of each four UE contexts (AMF) and sessions (SMF) one, of at most [`MOST`] contexts of a shard at a time, so that
//! the memory does not grow with their number. Nothing is counted if contexts are not tracked.

use crate::kit::{Instant, NetworkFunction, Nf, StoredKey};
use foldhash::fast::FixedState;
use std::collections::HashMap;
use std::time::Duration;

/// Contexts of a shard that are counted at most.
const MOST: usize = 4096;
/// Every fourth context is sampled, by its number. Numbers are random.
const SAMPLED: u32 = 4;

/// Buckets of a histogram: the first one below 16 µs, then four for each power of two, up to 19 hours.
const BUCKETS: usize = 129;
/// The exponent of the second bucket.
const LOWEST: u32 = 4;

/// Intervals by their length; a bucket is at most a quarter longer than it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Histogram {
    counts: [u32; BUCKETS],
    sum_us: u64,
}

/// The intervals between transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Intervals {
    /// Of UE contexts in the AMF.
    pub ues: Histogram,
    /// Of sessions in the SMF.
    pub sessions: Histogram,
    /// Those of sessions that end with a message of a UPF.
    pub n4: Histogram,
}

/// The contexts that are counted.
#[derive(Default)]
pub(super) struct Transactions {
    /// When the last transaction ended; `None`: one is in progress.
    contexts: HashMap<StoredKey, Option<Instant>, FixedState>,
    /// Changes of this turn that are counted, by NF.
    seen: [usize; OF.len()],
    intervals: Intervals,
    has_new: bool,
}

/// The NFs whose contexts are counted.
const OF: [Nf; 2] = [Nf::Amf, Nf::Smf];

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: [0; BUCKETS], sum_us: 0 }
    }
}

impl Histogram {
    fn add(&mut self, interval: Duration) {
        let micros = u64::try_from(interval.as_micros()).unwrap_or(u64::MAX);
        self.sum_us = self.sum_us.saturating_add(micros);
        if let Some(count) = self.counts.get_mut(bucket_of(micros)) {
            *count = count.saturating_add(1);
        }
    }

    /// Adds the intervals of another.
    pub fn add_all(&mut self, other: &Self) {
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
        for (own, other) in self.counts.iter_mut().zip(&other.counts) {
            *own = own.saturating_add(*other);
        }
    }

    /// Number of intervals.
    pub fn count(&self) -> u64 {
        self.counts.iter().copied().map(u64::from).sum()
    }

    /// The mean; zero without intervals.
    pub fn mean(&self) -> Duration {
        Duration::from_micros(self.sum_us.checked_div(self.count()).unwrap_or(0))
    }

    /// The interval that a part of all, in thousandths, does not exceed, to an eighth of it; zero without intervals.
    pub fn quantile(&self, thousandths: u64) -> Duration {
        let wanted = (self.count() * thousandths).div_ceil(1000).max(1);
        let mut before = 0;
        let reaches = |count: &u32| {
            before += u64::from(*count);
            before >= wanted
        };
        let bucket = self.counts.iter().position(reaches);
        Duration::from_micros(bucket.map_or(0, middle_of))
    }
}

/// The bucket of an interval in microseconds.
fn bucket_of(micros: u64) -> usize {
    let Some(exponent) = micros.checked_ilog2().filter(|exponent| *exponent >= LOWEST) else { return 0 };
    let quarter = (micros >> (exponent - 2)) & 3;
    // Below 64 * 4.
    (1 + (exponent - LOWEST) as usize * 4 + quarter as usize).min(BUCKETS - 1)
}

/// The middle of a bucket in microseconds.
fn middle_of(bucket: usize) -> u64 {
    let Some(place) = bucket.checked_sub(1) else { return 1 << (LOWEST - 1) };
    let quarter = 1_u64 << (place / 4 + LOWEST as usize - 2);
    quarter * (4 + place as u64 % 4) + quarter / 2
}

impl Intervals {
    /// Adds the intervals of another.
    pub fn add_all(&mut self, other: &Self) {
        self.ues.add_all(&other.ues);
        self.sessions.add_all(&other.sessions);
        self.n4.add_all(&other.n4);
    }
}

impl Transactions {
    /// An input was handled: counts the contexts that it changed.
    pub fn note(&mut self, now: Instant, functions: &[(Nf, Box<dyn NetworkFunction>)], is_n4: bool) {
        for (at, nf) in OF.into_iter().enumerate() {
            let Some((_, function)) = functions.iter().find(|(hosted, _)| *hosted == nf) else { continue };
            let changes = function.touched();
            let Some(seen) = self.seen.get_mut(at) else { continue };
            let new = (std::mem::replace(seen, changes)..changes).filter_map(|at| function.touched_at(at));
            let mut last = None;
            for id in new.filter(|id| id.number % SAMPLED == 0) {
                if last.replace(id) != Some(id) {
                    self.note_one(now, StoredKey { nf, id }, function.as_ref(), is_n4);
                }
            }
        }
    }

    fn note_one(&mut self, now: Instant, key: StoredKey, function: &dyn NetworkFunction, is_n4: bool) {
        let has_room = self.contexts.len() < MOST;
        let Some(place) = self.contexts.get_mut(&key) else {
            if has_room {
                let is_over = function.is_between_transactions(key.id);
                self.contexts.insert(key, is_over.then_some(now));
            }
            return;
        };
        // Several changes of one input are of one transaction.
        if let Some(ended) = place.filter(|ended| *ended < now) {
            let interval = now.since(ended);
            match key.nf {
                Nf::Amf => self.intervals.ues.add(interval),
                _ => self.intervals.sessions.add(interval),
            }
            if is_n4 && key.nf == Nf::Smf {
                self.intervals.n4.add(interval);
            }
            self.has_new = true;
        }
        *place = function.is_between_transactions(key.id).then_some(now);
        if function.key_of(key.id).is_none() {
            self.contexts.remove(&key);
        }
    }

    /// The lists of changes begin again.
    pub const fn begin_turn(&mut self) {
        self.seen = [0; OF.len()];
    }

    /// The intervals since the start, if there are new ones since the last call.
    pub fn take_news(&mut self) -> Option<&Intervals> {
        std::mem::take(&mut self.has_new).then_some(&self.intervals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_in_a_bucket_that_is_at_most_a_quarter_longer() {
        for micros in
            (0..40).map(|exponent| 1_u64 << exponent).flat_map(|it| [it - 1, it, it + 1, it + it / 3])
        {
            let middle = middle_of(bucket_of(micros));
            if (16..1 << 36).contains(&micros) {
                let ratio = middle as f64 / micros as f64;
                assert!((0.85..=1.15).contains(&ratio), "{micros}: {middle}");
            }
        }
        assert!((1..BUCKETS).all(|bucket| bucket_of(middle_of(bucket)) == bucket));
    }

    #[test]
    fn quantiles_and_mean_are_those_of_the_intervals() {
        let mut histogram = Histogram::default();
        assert_eq!(
            (histogram.count(), histogram.mean(), histogram.quantile(500)),
            (0, Duration::ZERO, Duration::ZERO)
        );
        for millis in 1..=100 {
            histogram.add(Duration::from_millis(millis));
        }
        assert_eq!((histogram.count(), histogram.mean()), (100, Duration::from_micros(50_500)));
        let close = |found: Duration, millis: f64| (found.as_secs_f64() * 1000.0 / millis - 1.0).abs() < 0.13;
        assert!(
            close(histogram.quantile(500), 50.0) && close(histogram.quantile(990), 99.0),
            "{histogram:?}"
        );
        let mut sum = histogram;
        sum.add_all(&histogram);
        assert_eq!((sum.count(), sum.mean()), (200, histogram.mean()));
    }
}
