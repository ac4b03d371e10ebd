//! Changes that an instance accepted while it did not reach the store of contexts, and that ended with it: the only ones that `durable`
//! may lose (docs/state.md).

use super::World;
use pith_nf::kit::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// An instance attempts a write again within this time after the store is back.
const WRITTEN_AGAIN: Duration = Duration::from_secs(5);
/// Messages of an instance that has ended arrive within this time.
const IN_FLIGHT: Duration = Duration::from_millis(50);

/// When changes were not stored.
#[derive(Debug, Default)]
pub(super) struct Unstored {
    /// By process: since when, and until when, its changes may not be stored.
    failing: BTreeMap<usize, (Instant, Option<Instant>)>,
    /// What was accepted in these times ended with its process.
    lost: Vec<(Instant, Instant)>,
}

impl Unstored {
    /// The process does not reach the store from now on.
    pub fn begin(&mut self, process: usize, now: Instant) {
        let period = self.failing.entry(process).or_insert((now, None));
        let since = if period.1.is_some_and(|until| until < now) { now } else { period.0 };
        *period = (since, None);
    }

    /// The process reaches the store again.
    pub fn end(&mut self, process: usize, now: Instant) {
        if let Some((_, until)) = self.failing.get_mut(&process) {
            *until = Some(now + WRITTEN_AGAIN);
        }
    }

    /// The process ends: changes that are not stored end with it.
    pub fn process_ended(&mut self, process: usize, now: Instant) {
        let Some((since, until)) = self.failing.get(&process).copied() else { return };
        if until.is_none_or(|until| now <= until) {
            self.lost.push((since, now + IN_FLIGHT));
        }
    }

    /// Whether a change that a UE got at that time may have ended with an instance.
    pub fn may_have_lost(&self, at: Instant) -> bool {
        self.lost.iter().any(|(since, until)| (*since..=*until).contains(&at))
    }
}

impl World {
    /// These processes do not reach the store from now on.
    pub(super) fn begin_unstored(&mut self, processes: impl IntoIterator<Item = usize>) {
        processes.into_iter().for_each(|process| self.unstored.begin(process, self.now));
    }

    /// The process reaches the store, as far as it is not cut off, and the store answers.
    pub(super) fn end_unstored(&mut self) {
        for process in 0..self.processes.len() {
            if self.server.answers(process) && !self.server.fails() {
                self.unstored.end(process, self.now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn second(number: u64) -> Instant {
        Instant::from_micros(number * 1_000_000)
    }

    #[test]
    fn only_changes_without_the_store_end_with_their_process() {
        let mut unstored = Unstored::default();
        unstored.begin(1, second(10));
        unstored.begin(1, second(12));
        unstored.end(1, second(14));
        unstored.process_ended(0, second(15));
        assert!(!unstored.may_have_lost(second(11)), "another process has ended");
        unstored.process_ended(1, second(15));
        let lost = [9, 10, 13, 15, 16].map(|at| unstored.may_have_lost(second(at)));
        assert_eq!(lost, [false, true, true, true, false]);
    }

    #[test]
    fn changes_are_stored_after_the_store_is_back() {
        let mut unstored = Unstored::default();
        unstored.begin(1, second(10));
        unstored.end(1, second(14));
        unstored.process_ended(1, second(20));
        assert!(!unstored.may_have_lost(second(11)));
        unstored.begin(1, second(30));
        unstored.process_ended(1, second(31));
        assert_eq!([11, 30].map(|at| unstored.may_have_lost(second(at))), [false, true]);
    }
}
