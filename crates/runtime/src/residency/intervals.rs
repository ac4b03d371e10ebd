//! The time between transactions: how long a context stays unused after a transaction has written it, before the next one writes it
//! again. A cache between transactions, and one write for several of them, are worth what this time says (`make bench-residency`).

use foldhash::fast::FixedState;
use pith_nf::kit::{Instant, Nf, StoredKey};
use std::collections::{HashMap, VecDeque};

/// Contexts whose last transaction is remembered, in each shard. The oldest is forgotten first.
const MOST_REMEMBERED: usize = 4096;

/// Each power of two of microseconds has four buckets: a quantile is at most a quarter too high.
const PER_DOUBLING: u32 = 4;
const BUCKETS: usize = 36 * PER_DOUBLING as usize;

/// NFs whose transactions are measured: those of the UE on N1 and N2, and those of its sessions on N4.
const MEASURED: [Nf; 2] = [Nf::Amf, Nf::Smf];

/// Intervals by duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Histogram([u64; BUCKETS]);

/// The intervals of one shard.
#[derive(Debug)]
pub(super) struct Intervals {
    since: HashMap<StoredKey, Instant, FixedState>,
    order: VecDeque<(StoredKey, Instant)>,
    by_nf: IntervalsByNf,
}

/// The intervals between transactions, by NF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntervalsByNf([Histogram; MEASURED.len()]);

/// A distribution of intervals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IntervalSummary {
    /// Number of intervals.
    pub count: u64,
    /// Half of them are not longer, milliseconds.
    pub p50_ms: f64,
    /// 99 of 100 are not longer, milliseconds.
    pub p99_ms: f64,
}

impl Default for IntervalsByNf {
    fn default() -> Self {
        Self([Histogram([0; BUCKETS]); MEASURED.len()])
    }
}

impl Default for Intervals {
    fn default() -> Self {
        Self { since: HashMap::default(), order: VecDeque::new(), by_nf: IntervalsByNf::default() }
    }
}

impl Histogram {
    fn add(&mut self, micros: u64) {
        let micros = micros.max(1);
        let power = micros.ilog2();
        // The two bits below the highest one.
        let part = (micros << 2 >> power) as u32 & (PER_DOUBLING - 1);
        let at = (power * PER_DOUBLING + part) as usize;
        if let Some(count) = self.0.get_mut(at.min(BUCKETS - 1)) {
            *count += 1;
        }
    }

    fn summary(&self) -> Option<IntervalSummary> {
        let count: u64 = self.0.iter().sum();
        let quantile = |share: f64| {
            let mut left = (count as f64 * share).ceil().max(1.0) as u64;
            let found = self.0.iter().position(|bucket| {
                let is_in = *bucket >= left;
                left = left.saturating_sub(*bucket);
                is_in
            });
            upper_end(found.unwrap_or(BUCKETS - 1)) / 1000.0
        };
        (count > 0).then(|| IntervalSummary { count, p50_ms: quantile(0.5), p99_ms: quantile(0.99) })
    }
}

/// The longest interval of a bucket, microseconds.
fn upper_end(bucket: usize) -> f64 {
    let bucket = bucket as u32;
    let base = 2.0_f64.powi((bucket / PER_DOUBLING) as i32);
    base * (1.0 + f64::from(bucket % PER_DOUBLING + 1) / f64::from(PER_DOUBLING))
}

impl IntervalsByNf {
    /// The sum of two.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            own.0.iter_mut().zip(&other.0).for_each(|(own, other)| *own += other);
        }
        self
    }

    /// The NFs that had any.
    pub fn summaries(&self) -> impl Iterator<Item = (Nf, IntervalSummary)> {
        MEASURED.into_iter().zip(&self.0).filter_map(|(nf, histogram)| Some((nf, histogram.summary()?)))
    }
}

impl Intervals {
    /// A transaction of the context is over.
    pub fn note(&mut self, key: StoredKey, now: Instant) {
        let Some(at) = MEASURED.iter().position(|nf| *nf == key.nf) else { return };
        let before = self.since.insert(key, now);
        self.order.push_back((key, now));
        if let (Some(before), Some(histogram)) = (before, self.by_nf.0.get_mut(at)) {
            histogram.add(now.since(before).as_micros() as u64);
        }
        while self.order.len() > MOST_REMEMBERED {
            let Some((oldest, then)) = self.order.pop_front() else { break };
            if self.since.get(&oldest) == Some(&then) {
                self.since.remove(&oldest);
            }
        }
    }

    /// What was measured.
    pub const fn measured(&self) -> &IntervalsByNf {
        &self.by_nf
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_types::{BlockId, ContextId};

    fn key(nf: Nf, number: u32) -> StoredKey {
        StoredKey { nf, id: ContextId { block: BlockId::new(1).unwrap(), number } }
    }

    fn at(ms: u64) -> Instant {
        Instant::from_micros(ms * 1000)
    }

    #[test]
    fn an_interval_is_from_transaction_to_transaction_of_one_context() {
        let mut intervals = Intervals::default();
        for (number, ms) in [(1, 0), (2, 5), (1, 10), (2, 1005)] {
            intervals.note(key(Nf::Amf, number), at(ms));
        }
        intervals.note(key(Nf::Smf, 1), at(10));
        intervals.note(key(Nf::Pcf, 1), at(20));
        let found: Vec<_> = intervals.measured().summaries().collect();
        let [(Nf::Amf, summary)] = found[..] else { panic!("{found:?}") };
        assert_eq!(summary.count, 2);
        assert!((10.0..=12.5).contains(&summary.p50_ms), "{summary:?}");
        assert!((1000.0..=1250.0).contains(&summary.p99_ms), "{summary:?}");
    }

    #[test]
    fn contexts_beyond_the_bound_are_forgotten_oldest_first() {
        let mut intervals = Intervals::default();
        for number in 0..=MOST_REMEMBERED as u32 {
            intervals.note(key(Nf::Amf, number), at(u64::from(number)));
        }
        intervals.note(key(Nf::Amf, 0), at(9000));
        assert_eq!(intervals.measured().summaries().count(), 0, "the first one was forgotten");
        intervals.note(key(Nf::Amf, 7), at(9001));
        assert_eq!(intervals.measured().summaries().count(), 1);
        assert!(intervals.since.len() <= MOST_REMEMBERED);
    }

    #[test]
    fn buckets_are_at_most_a_quarter_wide() {
        for micros in (0..35).flat_map(|power| [1_u64 << power, (1 << power) + (1 << power >> 1)]) {
            let mut histogram = Histogram([0; BUCKETS]);
            histogram.add(micros);
            let found = histogram.summary().unwrap().p50_ms * 1000.0;
            assert!((micros as f64..=micros as f64 * 1.5).contains(&found), "{micros} µs: {found}");
            assert!(micros < 4 || found <= micros as f64 * 1.25, "{micros} µs: {found}");
        }
    }
}
