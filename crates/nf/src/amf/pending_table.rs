//! Entries that wait for an answer of a UE or gNB, with limits in total and for each gNB. Beyond a
//! total limit the oldest entry of the gNB with the most octets is removed; beyond a gNB's own
//! limit, that gNB's oldest entry. So a flood from one gNB does not affect the UEs of other gNBs.

use crate::kit::{GnbHandle, Key};
use std::collections::BTreeMap;

/// Limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Entries of all gNBs.
    pub entries: usize,
    /// Entries of one gNB.
    pub entries_of_gnb: usize,
    /// Octets of all entries.
    pub octets: usize,
}

/// Identifies an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryId {
    gnb: GnbHandle,
    number: u64,
}

/// Entries of each gNB, in order of arrival.
#[derive(Debug)]
pub(crate) struct PendingTable {
    bounds: Bounds,
    queues: BTreeMap<GnbHandle, Queue>,
    next: u64,
    entries: usize,
    octets: usize,
}

#[derive(Debug, Default)]
struct Queue {
    entries: BTreeMap<u64, (Key, usize)>,
    octets: usize,
}

impl PendingTable {
    pub const fn new(bounds: Bounds) -> Self {
        Self { bounds, queues: BTreeMap::new(), next: 0, entries: 0, octets: 0 }
    }

    /// Adds an entry of a gNB.
    pub fn insert(&mut self, gnb: GnbHandle, key: Key, octets: usize) -> EntryId {
        let place = EntryId { gnb, number: self.next };
        self.next += 1;
        let queue = self.queues.entry(gnb).or_default();
        queue.entries.insert(place.number, (key, octets));
        queue.octets += octets;
        self.entries += 1;
        self.octets += octets;
        place
    }

    /// Removes an entry, if it is still there.
    pub fn remove(&mut self, place: EntryId) -> Option<Key> {
        let queue = self.queues.get_mut(&place.gnb)?;
        let (key, octets) = queue.entries.remove(&place.number)?;
        queue.octets -= octets;
        if queue.entries.is_empty() {
            self.queues.remove(&place.gnb);
        }
        self.entries -= 1;
        self.octets -= octets;
        Some(key)
    }

    /// Removes and returns the entry that must be evicted after a new one of that gNB; `None`
    /// within the limits.
    pub fn evict(&mut self, gnb: GnbHandle) -> Option<Key> {
        let of_gnb = self.queues.get(&gnb).map_or(0, |queue| queue.entries.len());
        let gnb = if self.entries > self.bounds.entries || self.octets > self.bounds.octets {
            *self.queues.iter().max_by_key(|(_, queue)| (queue.octets, queue.entries.len()))?.0
        } else if of_gnb > self.bounds.entries_of_gnb {
            gnb
        } else {
            return None;
        };
        let number = *self.queues.get(&gnb)?.entries.first_key_value()?.0;
        self.remove(EntryId { gnb, number })
    }

    /// How many entries there are.
    pub const fn len(&self) -> usize {
        self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::Arena;

    const FLOODING: GnbHandle = GnbHandle(1);
    const OTHER: GnbHandle = GnbHandle(2);

    fn keys(count: u32) -> Vec<Key> {
        let mut arena = Arena::new(count);
        (0..count).map(|_| arena.insert_with(|_| ()).unwrap()).collect()
    }

    #[test]
    fn the_oldest_entry_of_the_gnb_with_most_entries_is_evicted() {
        let keys = keys(10);
        let mut waiting = PendingTable::new(Bounds { entries: 8, entries_of_gnb: 7, octets: 1000 });
        waiting.insert(OTHER, keys[0], 1);
        for key in &keys[1..8] {
            waiting.insert(FLOODING, *key, 1);
            assert_eq!(waiting.evict(FLOODING), None);
        }
        waiting.insert(OTHER, keys[8], 1);
        assert_eq!(waiting.evict(OTHER), Some(keys[1]));
        waiting.insert(FLOODING, keys[9], 1);
        assert_eq!(waiting.evict(FLOODING), Some(keys[2]));
        assert_eq!((waiting.len(), waiting.evict(FLOODING)), (8, None));
    }

    #[test]
    fn octets_are_limited_and_removed_entries_do_not_count() {
        let keys = keys(3);
        let mut waiting = PendingTable::new(Bounds { entries: 8, entries_of_gnb: 8, octets: 1000 });
        let small = waiting.insert(OTHER, keys[0], 10);
        waiting.insert(FLOODING, keys[1], 900);
        waiting.insert(FLOODING, keys[2], 900);
        assert_eq!(waiting.evict(FLOODING), Some(keys[1]));
        assert_eq!(waiting.evict(FLOODING), None);
        assert_eq!((waiting.remove(small), waiting.remove(small)), (Some(keys[0]), None));
        assert_eq!((waiting.len(), waiting.octets), (1, 900));
    }
}
