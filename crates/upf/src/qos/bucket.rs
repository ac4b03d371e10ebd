//! A token bucket that several threads may use without a lock.
//!
//! A bucket is one number: the time at which it will be full again (the virtual scheduling form of the
//! leaky bucket). A packet conforms if that time is no further away than the burst; charging moves it
//! by the time that the packet takes at the rate. In the long run exactly the rate passes; at any time
//! at most one burst and one packet above it.

use super::Time;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Sixteenths of a nanosecond: what a byte takes at 100 Gbit/s is not rounded away.
const TICKS: u64 = 16;
/// Fractions of a tick that the time of a byte is kept in.
const FRACTION_BITS: u32 = 16;
const BIT_TICKS_PER_SECOND: u128 = 8 * TICKS as u128 * 1_000_000_000;

/// How much a bucket saves up while it is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burst {
    /// Nanoseconds at its rate.
    pub time: u64,
    /// Bytes at least, so that slow rates still pass whole packets.
    pub least: u64,
}

impl Burst {
    /// Where what exceeds a rate waits: no more than what a timer that is late would lose.
    pub const SHAPING: Self = Self { time: 20_000_000, least: 3_000 };
    /// Where what exceeds a rate is dropped: as much as TCP sends at once.
    pub const POLICING: Self = Self { time: 100_000_000, least: 16_384 };
}

/// A token bucket.
#[derive(Debug)]
pub struct Bucket {
    /// Bits per second.
    rate: u64,
    /// Fractions of ticks that a byte takes.
    per_byte: u64,
    /// Ticks that it saves up.
    burst: u64,
    /// When it is full again, in ticks.
    full_at: AtomicU64,
}

impl Bucket {
    /// A full bucket of a rate in bits per second; 0 lets nothing pass.
    pub fn new(rate: u64, burst: Burst) -> Self {
        let divisor = u128::from(rate.max(1));
        let per_byte = ((BIT_TICKS_PER_SECOND << FRACTION_BITS) / divisor) as u64;
        let mut bucket = Self { rate, per_byte, burst: 0, full_at: AtomicU64::new(0) };
        bucket.burst = bucket.ticks_of(burst.least).max(burst.time.saturating_mul(TICKS));
        bucket
    }

    /// Bits per second.
    pub fn rate(&self) -> u64 {
        self.rate
    }

    /// Whether a packet may pass now.
    pub fn conforms(&self, now: Time) -> bool {
        self.rate > 0 && self.full_at.load(Relaxed) <= ticks(now).saturating_add(self.burst)
    }

    /// From when on a packet may pass, if nothing is charged before.
    pub fn ready_at(&self) -> Time {
        match self.rate {
            0 => Time::NEVER,
            _ => Time(self.full_at.load(Relaxed).saturating_sub(self.burst).div_ceil(TICKS)),
        }
    }

    /// Takes what a packet of `bytes` costs. Debt is bounded by two bursts: packets that pass whatever
    /// the bucket says must not silence the others for long.
    pub fn charge(&self, now: Time, bytes: usize) {
        let (now, cost) = (ticks(now), self.ticks_of(bytes as u64));
        let deepest = now.saturating_add(self.burst.saturating_mul(3)).saturating_add(cost);
        let charged = |full_at: u64| Some(full_at.max(now).saturating_add(cost).min(deepest.max(full_at)));
        // The closure never says no.
        let _ = self.full_at.fetch_update(Relaxed, Relaxed, charged);
    }

    /// Empties it: what had been saved up is spent elsewhere.
    pub fn spend(&self, now: Time) {
        self.full_at.fetch_max(ticks(now).saturating_add(self.burst), Relaxed);
    }

    /// Bytes that pass in so many nanoseconds.
    pub fn bytes_in(&self, nanos: u64) -> u64 {
        (u128::from(self.rate) * u128::from(nanos) / 8_000_000_000) as u64
    }

    fn ticks_of(&self, bytes: u64) -> u64 {
        ((u128::from(bytes) * u128::from(self.per_byte)) >> FRACTION_BITS) as u64
    }
}

fn ticks(time: Time) -> u64 {
    time.0.saturating_mul(TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Bytes that pass when `offered` bits per second of `packet` bytes come for ten seconds.
    fn passed(bucket: &Bucket, offered: u64, packet: usize) -> u64 {
        let gap = packet as u64 * 8 * SECOND / offered;
        let times = (0..10 * SECOND / gap).map(|n| Time(1 + n * gap));
        let conforming = times.filter(|now| {
            let conforms = bucket.conforms(*now);
            conforms.then(|| bucket.charge(*now, packet));
            conforms
        });
        conforming.count() as u64 * packet as u64
    }

    #[test]
    fn the_rate_passes_and_one_burst() {
        for burst in [Burst::SHAPING, Burst::POLICING] {
            for (rate, packet) in [(1_000_000, 100), (10_000_000, 1400), (1_000_000_000, 1400), (333_333, 60)]
            {
                let bytes = passed(&Bucket::new(rate, burst), rate * 3, packet);
                let exact = rate / 8 * 10;
                let most = exact + (rate * burst.time / 8 / SECOND).max(burst.least) + packet as u64;
                assert!(bytes >= exact * 999 / 1000 && bytes <= most, "{rate}: {bytes} of {exact}");
            }
        }
    }

    #[test]
    fn below_the_rate_all_passes_and_a_rate_of_zero_passes_nothing() {
        let bytes = passed(&Bucket::new(10_000_000, Burst::SHAPING), 9_900_000, 1400);
        assert!(bytes * 8 / 10 > 9_899_000, "{bytes}");
        assert_eq!(passed(&Bucket::new(0, Burst::SHAPING), 1_000_000, 100), 0);
        assert_eq!(Bucket::new(0, Burst::SHAPING).ready_at(), Time::NEVER);
    }

    #[test]
    fn it_conforms_from_the_time_that_it_tells() {
        let bucket = Bucket::new(1_000_000, Burst::SHAPING);
        let now = Time(SECOND);
        while bucket.conforms(now) {
            bucket.charge(now, 1400);
        }
        let ready = bucket.ready_at();
        assert!(ready > now && bucket.conforms(ready) && !bucket.conforms(Time(ready.0 - 1)));
    }

    #[test]
    fn spending_leaves_no_burst_and_forgives_no_debt() {
        let bucket = Bucket::new(8_000_000, Burst::SHAPING);
        let now = Time(SECOND);
        bucket.spend(now);
        assert!(bucket.conforms(now));
        bucket.charge(now, 1000);
        assert!(!bucket.conforms(now));
        let ready = bucket.ready_at();
        bucket.spend(now);
        assert_eq!(bucket.ready_at(), ready);
    }
}
