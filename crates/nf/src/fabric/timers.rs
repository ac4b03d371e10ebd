//! A table of running timers for the driver of a shard: the shell with the clock, the simulation
//! with virtual time.

use crate::kit::{Instant, is_oversized, shrink};
use foldhash::fast::FixedState;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::hash::Hash;

/// Microseconds of a bucket, as a power of two: about a quarter of a second.
const BUCKET: u32 = 18;

/// Entries of stopped or restarted timers that a table always may have.
const SPARE: usize = 64;

/// Entries that starting or stopping a timer looks at, while too many are of stopped timers.
const SWEPT: usize = 4;

/// Running timers by key. Starting a running timer restarts it.
///
/// Timers of the next quarter of a second are in a heap, all others in buckets by deadline. The old entry of a stopped or restarted timer
/// stays until its deadline, or until such entries outnumber the running timers: then each call removes a few, so that none takes long,
/// however many timers run.
#[derive(Debug)]
pub struct Timers<K> {
    /// The keys are the shard's own, so a fast hash is safe.
    running: HashMap<K, u64, FixedState>,
    heap: BinaryHeap<Reverse<Entry<K>>>,
    /// Entries of later buckets.
    buckets: BTreeMap<u64, Vec<Entry<K>>>,
    /// The first bucket that is not in the heap.
    first: u64,
    /// Entries in `buckets`.
    later: usize,
    /// Where the sweep goes on: a bucket, and an entry of it.
    swept: (u64, usize),
    started: u64,
}

type Entry<K> = (Instant, u64, K);

impl<K: Copy + Eq + Ord + Hash> Default for Timers<K> {
    fn default() -> Self {
        Self {
            running: HashMap::default(),
            heap: BinaryHeap::new(),
            buckets: BTreeMap::new(),
            first: 0,
            later: 0,
            swept: (0, 0),
            started: 0,
        }
    }
}

impl<K: Copy + Eq + Ord + Hash> Timers<K> {
    /// Starts or restarts a timer that expires at `deadline`.
    pub fn start(&mut self, key: K, deadline: Instant) {
        self.started += 1;
        self.running.insert(key, self.started);
        let entry = (deadline, self.started, key);
        let bucket = bucket_of(deadline);
        if bucket < self.first {
            self.heap.push(Reverse(entry));
        } else {
            self.buckets.entry(bucket).or_default().push(entry);
            self.later += 1;
        }
        self.sweep();
    }

    /// Stops a timer if it runs.
    pub fn stop(&mut self, key: K) {
        if self.running.remove(&key).is_some() {
            self.sweep();
            shrink(&mut self.running);
        }
    }

    /// When [`Timers::expired`] is to be called: at the deadline of the next timer, or somewhat earlier. `None` if no timer runs.
    pub fn next_deadline(&mut self) -> Option<Instant> {
        if self.running.is_empty() {
            return None;
        }
        let later = self.buckets.keys().next().map(|bucket| Instant::from_micros(bucket << BUCKET));
        self.next_in_heap().or(later)
    }

    /// The deadline of the next timer in the heap.
    fn next_in_heap(&mut self) -> Option<Instant> {
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
        self.load_until(now);
        if self.next_in_heap()? > now {
            return None;
        }
        let Reverse((_, _, key)) = self.heap.pop()?;
        self.running.remove(&key);
        if is_oversized(self.heap.capacity(), self.heap.len()) {
            self.heap.shrink_to(2 * self.heap.len());
        }
        shrink(&mut self.running);
        Some(key)
    }

    /// Moves the timers of buckets that have begun to the heap.
    fn load_until(&mut self, now: Instant) {
        let bucket = bucket_of(now);
        while let Some(first) = self.buckets.first_entry().filter(|first| *first.key() <= bucket) {
            let entries = first.remove();
            self.later -= entries.len();
            let running = &self.running;
            let runs = |(_, number, key): &Entry<K>| running.get(key) == Some(number);
            self.heap.extend(entries.into_iter().filter(runs).map(Reverse));
        }
        self.first = self.first.max(bucket + 1);
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

    /// Looks at some entries, and removes those of stopped timers.
    fn sweep(&mut self) {
        if self.running.is_empty() {
            (self.heap, self.buckets, self.later) = (BinaryHeap::new(), BTreeMap::new(), 0);
        }
        if self.later <= SPARE + 2 * self.running.len() {
            return;
        }
        let (from, at) = self.swept;
        let Some((&bucket, entries)) = self.buckets.range_mut(from..).next() else {
            self.swept = (0, 0);
            return;
        };
        let mut at = if bucket == from { at } else { 0 };
        for _ in 0..SWEPT {
            let Some((_, number, key)) = entries.get(at) else { break };
            if self.running.get(key) == Some(number) {
                at += 1;
            } else {
                entries.swap_remove(at);
                self.later -= 1;
            }
        }
        self.swept = (bucket, at);
        if at >= entries.len() {
            if entries.is_empty() {
                self.buckets.remove(&bucket);
            } else if is_oversized(entries.capacity(), entries.len()) {
                entries.shrink_to(2 * entries.len());
            }
            self.swept = (bucket + 1, 0);
        }
    }
}

/// The bucket of a deadline.
const fn bucket_of(deadline: Instant) -> u64 {
    deadline.as_micros() >> BUCKET
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
        assert_eq!(timers.next_deadline(), Some(at(0)), "the begin of its bucket");
        assert_eq!(timers.expired(at(9)), None);
        assert_eq!(timers.next_deadline(), Some(at(10)));
        assert_eq!(timers.expired(at(30)), Some('a'));
        assert_eq!(timers.expired(at(30)), Some('b'));
        assert_eq!(timers.expired(at(30)), None);
    }

    #[test]
    fn the_memory_of_many_timers_is_freed_when_they_stop_or_expire() {
        let mut timers = Timers::default();
        let capacity = |timers: &Timers<u64>| {
            let later = timers.buckets.values().map(Vec::capacity).sum::<usize>();
            timers.heap.capacity().max(timers.running.capacity()).max(later)
        };
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
        assert!(timers.heap.is_empty() && timers.buckets.is_empty());
    }

    #[test]
    fn entries_of_restarted_timers_are_removed_a_few_at_a_time() {
        let mut timers = Timers::default();
        let hour = 3_600_000_000;
        for round in 0..20 {
            for key in 0..1000 {
                let later = round * 1_000_000 + key * 1000;
                timers.start(key, at(hour + later));
                assert!(timers.later <= 3 * 1000 + SPARE, "{} entries of 1,000 timers", timers.later);
                assert!(timers.expired(at(later)).is_none());
            }
        }
        assert!(timers.next_deadline().unwrap() > at(hour));
        let last = hour + 19 * 1_000_000;
        let order: Vec<_> = std::iter::from_fn(|| timers.expired(at(last + 999 * 1000))).collect();
        assert_eq!(order, (0..1000).collect::<Vec<_>>(), "each at its last deadline");
        assert_eq!((timers.later, timers.heap.len(), timers.next_deadline()), (0, 0, None));
    }
}
