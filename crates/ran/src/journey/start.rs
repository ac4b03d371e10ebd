//! Start times of the UEs of a run.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use std::time::Duration;

/// Distribution of the UEs' start times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrivals {
    /// All at the same time.
    AtOnce,
    /// UEs per second, evenly spaced.
    Rate(f64),
    /// Mean number of UEs per second of a Poisson process.
    Poisson(f64),
}

impl Arrivals {
    /// The start time of each of `count` UEs, in order.
    pub fn times(self, count: usize, seed: u64) -> Vec<Duration> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut at = 0.0;
        let mut next = |gap: f64| {
            let now = at;
            at += gap;
            Duration::from_secs_f64(now)
        };
        let gaps = (0..count).map(|_| match self {
            Self::AtOnce => 0.0,
            Self::Rate(rate) => 1.0 / rate.max(f64::MIN_POSITIVE),
            Self::Poisson(rate) => exponential(&mut random) / rate.max(f64::MIN_POSITIVE),
        });
        gaps.map(|gap| next(gap.min(1e9))).collect()
    }
}

/// An exponentially distributed number with mean 1.
fn exponential(random: &mut ChaCha8Rng) -> f64 {
    // 53 bits, so that it is in (0, 1].
    let uniform = ((random.next_u64() >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
    -uniform.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_spaces_evenly() {
        let times = Arrivals::Rate(4.0).times(3, 0);
        assert_eq!(times, [0, 250, 500].map(Duration::from_millis));
        assert_eq!(Arrivals::AtOnce.times(2, 0), [Duration::ZERO; 2]);
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_spread_of_an_exponential() {
        let times = Arrivals::Poisson(100.0).times(20_001, 7);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 0.01).abs() < 0.0003, "{mean}");
        assert!((variance.sqrt() - 0.01).abs() < 0.0006, "{}", variance.sqrt());
        assert_eq!(times, Arrivals::Poisson(100.0).times(20_001, 7), "the same seed, the same times");
    }
}
