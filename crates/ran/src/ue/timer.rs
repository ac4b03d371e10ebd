//! The timers of 5GMM in the UE (TS 24.501 table 10.2.1).

use crate::clock::Instant;
use std::time::Duration;

macro_rules! timers {
    ($( $(#[$meta:meta])* $name:ident = $seconds:expr, )*) => {
        /// A timer of 5GMM.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Timer {
            $( $(#[$meta])* $name, )*
        }

        impl Timer {
            const ALL: [Self; COUNT] = [$(Self::$name),*];

            /// Its name in the specification.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$name => stringify!($name), )* }
            }

            /// Its default value.
            pub const fn duration(self) -> Duration {
                match self { $( Self::$name => Duration::from_secs($seconds), )* }
            }
        }

        const COUNT: usize = [$(Timer::$name),*].len();
    };
}

timers! {
    /// Wait after the last failed attempt of a registration.
    T3502 = 12 * 60,
    /// Registration: no answer.
    T3510 = 15,
    /// Wait after a failed attempt of a registration.
    T3511 = 10,
    /// Periodic registration update.
    T3512 = 54 * 60,
    /// RAND and RES* are stored.
    T3516 = 30,
    /// Service request: no answer.
    T3517 = 15,
    /// The SUCI is stored.
    T3519 = 60,
    /// No further challenge after a refused one.
    T3520 = 15,
    /// De-registration: no answer.
    T3521 = 15,
    /// The network does not release the connection.
    T3540 = 10,
    /// Mobility management back-off.
    T3346 = 0,
}

/// Running timers with their expiry times.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timers([Option<Instant>; COUNT]);

impl Timers {
    /// Starts or restarts a timer.
    pub fn start(&mut self, timer: Timer, until: Instant) {
        if let Some(slot) = self.0.get_mut(timer as usize) {
            *slot = Some(until);
        }
    }

    pub fn stop(&mut self, timer: Timer) {
        if let Some(slot) = self.0.get_mut(timer as usize) {
            *slot = None;
        }
    }

    pub fn stop_all(&mut self, timers: &[Timer]) {
        timers.iter().for_each(|timer| self.stop(*timer));
    }

    pub fn is_running(&self, timer: Timer) -> bool {
        self.0.get(timer as usize).is_some_and(Option::is_some)
    }

    /// The running timers.
    pub fn running(&self) -> impl Iterator<Item = Timer> {
        Timer::ALL.into_iter().filter(|timer| self.is_running(*timer))
    }

    /// The expiry time of the next timer.
    pub fn next(&self) -> Option<Instant> {
        self.0.iter().flatten().min().copied()
    }

    /// Removes and returns a timer that has expired by `now`.
    pub fn take_expired(&mut self, now: Instant) -> Option<Timer> {
        let expired =
            |timer: &Timer| self.0.get(*timer as usize).is_some_and(|at| at.is_some_and(|at| at <= now));
        let timer = Timer::ALL.into_iter().find(expired)?;
        self.stop(timer);
        Some(timer)
    }
}
