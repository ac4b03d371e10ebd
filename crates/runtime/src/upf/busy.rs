//! Measures the load of UPF-C, and detects overload.
//!
//! The load is the processor time that the thread has used. Waiting for a processor does not count: on a
//! machine busy with other work, UPF-C is not overloaded as long as it handles all messages. It is overloaded
//! if it reads its queue for a second without finding it empty.

use std::time::Duration;

/// Length of a measurement, and the time after which a queue that was never empty counts as overload.
const SPAN: Duration = Duration::from_secs(1);

/// Measures the load in intervals.
#[derive(Debug)]
pub(super) struct Busy {
    begun: Duration,
    /// Processor time of the thread at the beginning of the interval.
    used_before: Duration,
    /// Since when each read has left datagrams in the queue.
    full_since: Option<Duration>,
}

impl Busy {
    /// Starts the measurement; `used` is the thread's processor time.
    pub fn begin(now: Duration, used: Duration) -> Self {
        Self { begun: now, used_before: used, full_since: None }
    }

    /// Records a read of the queue: whether all received datagrams were handled.
    pub fn note_read(&mut self, now: Duration, is_empty: bool) {
        self.full_since = if is_empty { None } else { self.full_since.or(Some(now)) };
    }

    /// At the end of an interval, the load in percent: 100 in case of overload. Only then is `used` called, which takes a system
    /// call.
    pub fn measure(&mut self, now: Duration, used: impl FnOnce() -> Duration) -> Option<u8> {
        let span = now.saturating_sub(self.begun);
        if span < SPAN {
            return None;
        }
        let used = used();
        let worked = used.saturating_sub(self.used_before);
        (self.begun, self.used_before) = (now, used);
        if self.full_since.is_some_and(|since| now.saturating_sub(since) >= SPAN) {
            return Some(100);
        }
        let percent = worked.as_micros() * 100 / span.as_micros().max(1);
        Some(u8::try_from(percent).unwrap_or(100).min(100))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_load_is_reported_at_the_end_of_an_interval() {
        let mut busy = Busy::begin(at(0), at(40));
        assert_eq!(busy.measure(at(400), || at(400)), None);
        busy.note_read(at(900), true);
        assert_eq!(busy.measure(at(1000), || at(540)), Some(50));
        busy.note_read(at(1900), true);
        assert_eq!(busy.measure(at(2000), || at(1540)), Some(100), "intervals are independent");
    }

    /// The thread was runnable all the time, but had the processor for a tenth of it.
    #[test]
    fn waiting_for_a_processor_is_no_load() {
        let mut busy = Busy::begin(at(0), at(0));
        (1..=10).for_each(|round| busy.note_read(at(round * 100), true));
        assert_eq!(busy.measure(at(1000), || at(100)), Some(10));
        // It did not run for more than a second.
        assert_eq!(busy.measure(at(2200), || at(110)), Some(0));
    }

    #[test]
    fn a_queue_that_is_never_empty_is_overload() {
        let mut busy = Busy::begin(at(0), at(0));
        (0..10).for_each(|round| busy.note_read(at(round * 100), false));
        assert_eq!(busy.measure(at(1000), || at(300)), Some(100));
        busy.note_read(at(1001), true);
        assert_eq!(busy.measure(at(2000), || at(600)), Some(30));
    }
}
