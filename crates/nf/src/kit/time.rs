//! Time in the pure band: passed in, never read from a clock.

use core::ops::{Add, Sub};
pub use core::time::Duration;
use pith_sbi::common::DateTime;

/// Microseconds since the start of the process or of the simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The instant `micros` microseconds after the start.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the start.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Time since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// The wall clock, derived from its value at the start of [`Instant`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WallClock {
    epoch_unix_ms: i64,
}

impl WallClock {
    /// A wall clock with that start value, milliseconds since 1970.
    pub const fn of_epoch(epoch_unix_ms: i64) -> Self {
        Self { epoch_unix_ms }
    }

    /// The wall clock at that instant.
    pub fn date_time(self, moment: Instant) -> DateTime {
        let since = i64::try_from(moment.as_micros() / 1000).unwrap_or(i64::MAX);
        DateTime::from_unix_ms(self.epoch_unix_ms.saturating_add(since))
    }

    /// The time in seconds since 1970.
    pub fn unix_s(self, moment: Instant) -> u64 {
        u64::try_from(self.date_time(moment).unix_ms() / 1000).unwrap_or(0)
    }

    /// The instant of a wall-clock time; the start, if it is earlier.
    pub fn instant(self, shown: DateTime) -> Instant {
        let since = shown.unix_ms().saturating_sub(self.epoch_unix_ms);
        Instant::from_micros(u64::try_from(since).unwrap_or(0).saturating_mul(1000))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}
