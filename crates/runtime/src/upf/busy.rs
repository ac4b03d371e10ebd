//! How much of its time a thread is at work.

use std::time::Duration;

/// The span over which time is measured.
const SPAN: Duration = Duration::from_secs(1);

/// The time that a thread did not sleep, span by span.
#[derive(Debug)]
pub(super) struct Busy {
    begun: Duration,
    asleep: Duration,
}

impl Busy {
    /// From now on.
    pub fn begin(now: Duration) -> Self {
        Self { begun: now, asleep: Duration::ZERO }
    }

    /// It slept in between; at the end of a span, how busy it was, in percent.
    pub fn slept(&mut self, from: Duration, to: Duration) -> Option<u8> {
        self.asleep += to.saturating_sub(from);
        let span = to.saturating_sub(self.begun);
        if span < SPAN {
            return None;
        }
        let awake = span.saturating_sub(self.asleep);
        *self = Self::begin(to);
        u8::try_from(awake.as_micros() * 100 / span.as_micros().max(1)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_told_at_the_end_of_a_span() {
        let at = Duration::from_millis;
        let mut busy = Busy::begin(at(0));
        assert_eq!(busy.slept(at(100), at(400)), None);
        assert_eq!(busy.slept(at(800), at(1000)), Some(50));
        assert_eq!(busy.slept(at(2000), at(2000)), Some(100), "a span of its own");
    }
}
