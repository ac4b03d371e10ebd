//! A lock-free token bucket for several threads.
//!
//! The state of a bucket is one number: the time at which it will be full again (the virtual scheduling form
//! of the leaky bucket). A packet conforms if that time is no further away than the burst; charging advances
//! it by the packet's time at the rate. The long-term rate is exact; at any time at most one burst and one
//! packet exceed it.

use super::Time;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Sixteenths of a nanosecond, so that the time of a byte at 100 Gbit/s is not rounded to zero.
const TICKS: u64 = 16;
const BIT_TICKS_PER_SECOND: u64 = 8 * TICKS * 1_000_000_000;
/// The rate of a bucket without a limit.
const NO_LIMIT: u64 = u64::MAX;
/// The time of a byte is stored in 65,536ths of a tick, so that charging needs only a multiplication.
const PER_BYTE_SHIFT: u32 = 16;
/// Longest time of a byte, that of some 30 bit/s, so that the time of a packet does not overflow.
const MAX_PER_BYTE: u64 = 1 << 48;

/// The burst size of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burst {
    /// Burst in nanoseconds at its rate.
    pub time: u64,
    /// Least burst in bytes, so that slow rates still pass whole packets.
    pub least: u64,
}

impl Burst {
    /// For queueing: no more than a late timer would lose.
    pub const SHAPING: Self = Self { time: 20_000_000, least: 3_000 };
    /// For policing: as much as TCP sends at once.
    pub const POLICING: Self = Self { time: 100_000_000, least: 16_384 };
}

/// A token bucket. Its layout is fixed, so that a BPF program can share it.
#[derive(Debug)]
#[repr(C)]
pub struct Bucket {
    /// Bits per second; `NO_LIMIT`: everything conforms.
    rate: AtomicU64,
    /// Burst in ticks.
    burst: AtomicU64,
    /// Time at which the bucket is full, in ticks.
    full_at: AtomicU64,
    /// Time of a byte, in 65,536ths of a tick.
    per_byte: AtomicU64,
}

impl Default for Bucket {
    /// A bucket without a limit.
    fn default() -> Self {
        let [burst, full_at, per_byte] = [0; 3].map(AtomicU64::new);
        Self { rate: AtomicU64::new(NO_LIMIT), burst, full_at, per_byte }
    }
}

impl Bucket {
    /// A full bucket of a rate in bits per second; at 0 nothing passes.
    pub fn new(rate: u64, burst: Burst) -> Self {
        let bucket = Self::default();
        bucket.fill(Some(rate), burst);
        bucket
    }

    /// Sets a rate and fills the bucket; `None`: no limit.
    pub fn fill(&self, rate: Option<u64>, burst: Burst) {
        let rate = rate.unwrap_or(NO_LIMIT);
        self.rate.store(rate, Relaxed);
        let per_byte = per_byte(rate);
        self.per_byte.store(per_byte, Relaxed);
        self.burst.store(ticks_of(burst.least, per_byte).max(burst.time.saturating_mul(TICKS)), Relaxed);
        self.full_at.store(0, Relaxed);
    }

    /// Bits per second; `None` if there is no limit.
    pub fn rate(&self) -> Option<u64> {
        Some(self.rate.load(Relaxed)).filter(|rate| *rate != NO_LIMIT)
    }

    /// Whether there is a limit.
    pub fn is_limit(&self) -> bool {
        self.rate().is_some()
    }

    /// Whether a packet conforms now.
    pub fn conforms(&self, now: Time) -> bool {
        match self.rate.load(Relaxed) {
            NO_LIMIT => true,
            0 => false,
            _ => self.full_at.load(Relaxed) <= ticks(now).saturating_add(self.burst.load(Relaxed)),
        }
    }

    /// Earliest time at which a packet conforms, without further charges.
    pub fn ready_at(&self) -> Time {
        match self.rate.load(Relaxed) {
            NO_LIMIT => Time(0),
            0 => Time::NEVER,
            _ => Time(self.full_at.load(Relaxed).saturating_sub(self.burst.load(Relaxed)).div_ceil(TICKS)),
        }
    }

    /// Charges a packet of `bytes`. Debt is limited to two bursts, so that packets that pass regardless of
    /// the bucket do not block others for long.
    pub fn charge(&self, now: Time, bytes: usize) {
        if !self.is_limit() {
            return;
        }
        let (now, cost) = (ticks(now), ticks_of(bytes as u64, self.per_byte.load(Relaxed)));
        let deepest = now.saturating_add(self.burst.load(Relaxed).saturating_mul(3)).saturating_add(cost);
        let charged = |full_at: u64| Some(full_at.max(now).saturating_add(cost).min(deepest.max(full_at)));
        // The closure always returns `Some`.
        let _ = self.full_at.fetch_update(Relaxed, Relaxed, charged);
    }
}

/// The time of a byte at a rate.
fn per_byte(rate: u64) -> u64 {
    match rate {
        0 | NO_LIMIT => 0,
        rate => ((BIT_TICKS_PER_SECOND << PER_BYTE_SHIFT) / rate).min(MAX_PER_BYTE),
    }
}

/// The time of `bytes` bytes.
fn ticks_of(bytes: u64, per_byte: u64) -> u64 {
    bytes.saturating_mul(per_byte) >> PER_BYTE_SHIFT
}

fn ticks(time: Time) -> u64 {
    time.0.saturating_mul(TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Bytes that pass when `offered` bits per second arrive in packets of `packet` bytes for ten seconds.
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
    fn a_packet_conforms_from_ready_at_on() {
        let bucket = Bucket::new(1_000_000, Burst::SHAPING);
        let now = Time(SECOND);
        while bucket.conforms(now) {
            bucket.charge(now, 1400);
        }
        let ready = bucket.ready_at();
        assert!(ready > now && bucket.conforms(ready) && !bucket.conforms(Time(ready.0 - 1)));
    }
}
