//! Durations and their percentiles.

use serde::Serialize;
use std::time::Duration;

/// Durations in order of arrival, in microseconds.
#[derive(Debug, Clone, Default)]
pub struct Latencies(Vec<u32>);

/// Percentiles of durations, in milliseconds; all zero if there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Number of durations.
    pub count: usize,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Maximum.
    pub max: f64,
}

impl Latencies {
    /// Adds a duration; it saturates at 71 minutes.
    pub fn add(&mut self, duration: Duration) {
        self.0.push(u32::try_from(duration.as_micros()).unwrap_or(u32::MAX));
    }

    /// Number of durations.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The percentiles, by the nearest-rank method.
    pub fn summary(&self) -> Summary {
        self.summary_from(0)
    }

    /// The percentiles without the first `skipped` durations.
    pub fn summary_from(&self, skipped: usize) -> Summary {
        let mut sorted = self.0.get(skipped..).unwrap_or_default().to_vec();
        sorted.sort_unstable();
        let millis = |micros: u32| f64::from(micros) / 1000.0;
        let rank = |percent: usize| {
            let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
            sorted.get(at).copied().map_or(0.0, millis)
        };
        Summary { count: sorted.len(), p50: rank(50), p90: rank(90), p99: rank(99), max: rank(100) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_nearest_rank() {
        let mut latencies = Latencies::default();
        (1..=200).rev().for_each(|millis| latencies.add(Duration::from_millis(millis)));
        let summary = latencies.summary();
        assert_eq!(summary, Summary { count: 200, p50: 100.0, p90: 180.0, p99: 198.0, max: 200.0 });
    }

    #[test]
    fn a_summary_may_begin_later() {
        let mut latencies = Latencies::default();
        [900, 1, 2].map(Duration::from_millis).into_iter().for_each(|elapsed| latencies.add(elapsed));
        let later = latencies.summary_from(1);
        assert_eq!((later.count, later.p50, later.max), (2, 1.0, 2.0));
        assert_eq!(latencies.summary_from(4), Summary::default());
    }

    #[test]
    fn one_duration_is_every_percentile_and_none_is_zero() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.summary(), Summary::default());
        latencies.add(Duration::from_micros(1500));
        assert_eq!(latencies.summary(), Summary { count: 1, p50: 1.5, p90: 1.5, p99: 1.5, max: 1.5 });
    }
}
