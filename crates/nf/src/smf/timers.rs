//! The timers of a session, with their deadlines by the wall clock.

use crate::kit::Timer;
use crate::kit::document::{Pack, Reader, UnpackError, Writer, pack_enum};
use pith_sbi::common::DateTime;

/// A timer of a session. [`super::procedure::on_timer`] shows which state handles which timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionTimer {
    /// Limits the wait for UDM, PCF, UPFs or gNB.
    Guard,
    /// Awaits PDU SESSION MODIFICATION COMPLETE (TS 24.501 table 10.3.2).
    T3591,
    /// Awaits PDU SESSION RELEASE COMPLETE (TS 24.501 table 10.3.2).
    T3592,
    /// How long a UPF that left the path keeps the session, for packets in transit.
    PathGrace,
    /// How long the session waits until it registers again with a UDM, or requests changed data again from a UDM or PCF, that has not answered.
    Reregistration,
    /// How long the SM context that had the session before may delete the registration, which has replaced its own.
    RegistrationCheck,
}

impl SessionTimer {
    pub(super) const ALL: [Self; 6] = [
        Self::Guard,
        Self::T3591,
        Self::T3592,
        Self::PathGrace,
        Self::Reregistration,
        Self::RegistrationCheck,
    ];

    /// The session timer of that name.
    pub(super) fn of(timer: Timer) -> Option<Self> {
        Self::ALL.into_iter().find(|known| Timer::from(*known) == timer)
    }
}

impl From<SessionTimer> for Timer {
    fn from(timer: SessionTimer) -> Self {
        match timer {
            SessionTimer::Guard => Self::SbiGuard,
            SessionTimer::T3591 => Self::T3591,
            SessionTimer::T3592 => Self::T3592,
            SessionTimer::PathGrace => Self::PathGrace,
            SessionTimer::Reregistration => Self::Reregistration,
            SessionTimer::RegistrationCheck => Self::RegistrationCheck,
        }
    }
}

/// The running timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Timers([Option<DateTime>; SessionTimer::ALL.len()]);

pack_enum!(SessionTimer {
    0 => Guard,
    1 => T3591,
    2 => T3592,
    3 => PathGrace,
    4 => Reregistration,
    5 => RegistrationCheck,
});

impl Pack for Timers {
    fn pack(&self, writer: &mut Writer<'_>) {
        self.running().collect::<Vec<_>>().pack(writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        let mut timers = Self::default();
        for (timer, deadline) in Vec::unpack(reader)? {
            timers.start(timer, deadline);
        }
        Ok(timers)
    }
}

impl Timers {
    /// Records that the timer runs until `deadline`.
    pub(super) fn start(&mut self, timer: SessionTimer, deadline: DateTime) {
        self.0[timer as usize] = Some(deadline);
    }

    /// Records that the timer no longer runs; returns whether it was running.
    pub(super) fn expire(&mut self, timer: SessionTimer) -> bool {
        self.0[timer as usize].take().is_some()
    }

    /// Whether the timer runs.
    pub(super) const fn runs(&self, timer: SessionTimer) -> bool {
        self.0[timer as usize].is_some()
    }

    /// The running timers and their deadlines.
    pub(super) fn running(&self) -> impl Iterator<Item = (SessionTimer, DateTime)> {
        SessionTimer::ALL.into_iter().zip(self.0).filter_map(|(timer, deadline)| Some((timer, deadline?)))
    }
}
