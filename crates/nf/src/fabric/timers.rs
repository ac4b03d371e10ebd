//! A table of running timers for the driver of a shard: the shell with the clock, the simulation
//! with virtual time.

use crate::kit::{Instant, is_oversized, shrink};
use foldhash::fast::FixedState;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::Hash;

/// Running timers by key. Starting a running timer restarts it.
///
/// The old entry of a stopped or restarted timer stays in the heap until its deadline, or until
/// such entries outnumber the running timers.
#[derive(Debug)]
pub struct Timers<K> {
    /// The keys are the shard's own, so a fast hash is safe.
    running: HashMap<K, u64, FixedState>,
    heap: BinaryHeap<Reverse<(Instant, u64, K)>>,
    started: u64,
}

impl<K: Copy + Eq + Ord + Hash> Default for Timers<K> {
    fn default() -> Self {
        Self { running: HashMap::default(), heap: BinaryHeap::new(), started: 0 }
    }
}

impl<K: Copy + Eq + Ord + Hash> Timers<K> {
    /// Starts or restarts a timer that expires at `deadline`.
    pub fn start(&mut self, key: K, deadline: Instant) {
        self.started += 1;
        self.running.insert(key, self.started);
        self.heap.push(Reverse((deadline, self.started, key)));
        self.shrink();
    }

    /// Stops a timer if it runs.
    pub fn stop(&mut self, key: K) {
        self.running.remove(&key);
        self.shrink();
    }

    /// The deadline of the next timer.
    pub fn next_deadline(&mut self) -> Option<Instant> {
        while let Some(Reverse((deadline, number, key))) = self.heap.peek() {
            if self.running.get(key) == Some(number) {
                return Some(*deadline);
            }
            self.heap.pop();
        }
        None
    }

    /// Removes and returns a timer that has expired by `now`, the earliest first.
    pub fn expired(&mut self, now: Instant) -> Option<K> {
        if self.next_deadline()? > now {
            return None;
        }
        let Reverse((_, _, key)) = self.heap.pop()?;
        self.running.remove(&key);
        self.shrink();
        Some(key)
    }

    /// Number of running timers.
    pub fn len(&self) -> usize {
        self.running.len()
    }

    /// Whether no timer runs.
    pub fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// The running timers.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.running.keys()
    }

    fn shrink(&mut self) {
        if self.heap.len() > 64 && self.heap.len() > self.running.len() * 2 {
            let running = &self.running;
            self.heap.retain(|Reverse((_, number, key))| running.get(key) == Some(number));
        }
        if is_oversized(self.heap.capacity(), self.heap.len()) {
            self.heap.shrink_to(2 * self.heap.len());
        }
        shrink(&mut self.running);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    #[test]
    fn timers_expire_in_order_and_once() {
        let mut timers = Timers::default();
        timers.start('b', at(20));
        timers.start('a', at(10));
        assert_eq!(timers.next_deadline(), Some(at(10)));
        assert_eq!(timers.expired(at(9)), None);
        assert_eq!(timers.expired(at(30)), Some('a'));
        assert_eq!(timers.expired(at(30)), Some('b'));
        assert_eq!(timers.expired(at(30)), None);
    }

    #[test]
    fn the_memory_of_many_timers_is_freed_when_they_stop_or_expire() {
        let mut timers = Timers::default();
        let capacity = |timers: &Timers<u64>| timers.heap.capacity().max(timers.running.capacity());
        for key in 0..50_000 {
            timers.start(key, at(key));
        }
        (0..49_990).for_each(|key| timers.stop(key));
        assert!(capacity(&timers) < 2_500, "{}", capacity(&timers));
        for key in 0..50_000 {
            timers.start(key, at(key));
        }
        while timers.expired(at(60_000)).is_some() {}
        assert!(capacity(&timers) < 2_500, "{}", capacity(&timers));
    }

    #[test]
    fn a_restarted_timer_expires_at_its_new_time_only() {
        let mut timers = Timers::default();
        timers.start('a', at(10));
        timers.start('a', at(20));
        assert_eq!(timers.expired(at(15)), None);
        assert_eq!(timers.expired(at(20)), Some('a'));
        assert!(timers.is_empty());
    }

    #[test]
    fn stopped_timers_leave_nothing_behind() {
        let mut timers = Timers::default();
        for round in 0..10_000 {
            timers.start(round % 7, at(round));
            timers.stop(round % 7);
        }
        assert_eq!(timers.next_deadline(), None);
        assert!(timers.heap.len() <= 64);
    }
}
