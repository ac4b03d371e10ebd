//! Time as the pure band knows it: handed in, never read.

use core::ops::{Add, Sub};
pub use core::time::Duration;
use pith_sbi::common::DateTime;

/// Microseconds since the process, or the simulated world, began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The moment so many microseconds after the beginning.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the beginning.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was; zero if it is yet to come.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// The wall clock, by what it showed when [`Instant`] began to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WallClock {
    epoch_unix_ms: i64,
}

impl WallClock {
    /// One that showed so many milliseconds since 1970.
    pub const fn of_epoch(epoch_unix_ms: i64) -> Self {
        Self { epoch_unix_ms }
    }

    /// What it shows at that moment.
    pub fn date_time(self, moment: Instant) -> DateTime {
        let since = i64::try_from(moment.as_micros() / 1000).unwrap_or(i64::MAX);
        DateTime::from_unix_ms(self.epoch_unix_ms.saturating_add(since))
    }

    /// The same in seconds since 1970.
    pub fn unix_s(self, moment: Instant) -> u64 {
        u64::try_from(self.date_time(moment).unix_ms() / 1000).unwrap_or(0)
    }

    /// The moment when it shows that; the first one, if it never did.
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
