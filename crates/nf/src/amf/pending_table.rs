//! Entries that wait for an answer of a UE or gNB, with limits in total and for each host of gNBs
//! ([`GnbInfo::host`](crate::kit::GnbInfo)). Beyond a total limit the oldest entry of the host with the most octets is
//! removed; beyond a host's own limit, that host's oldest entry. gNB IDs do not count: a host may claim any number of them.
//! So a flood from one host affects UEs of other hosts only while their own host has more octets than the flooding one.

use crate::kit::Key;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Entries of all hosts.
    pub entries: usize,
    /// Entries of one host.
    pub entries_of_host: usize,
    /// Octets of all entries.
    pub octets: usize,
}

/// Identifies an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryId {
    host: IpAddr,
    number: u64,
}

/// Entries of each host, in order of arrival.
#[derive(Debug)]
pub(crate) struct PendingTable {
    bounds: Bounds,
    queues: BTreeMap<IpAddr, Queue>,
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

    /// Adds an entry of a host.
    pub fn insert(&mut self, host: IpAddr, key: Key, octets: usize) -> EntryId {
        let place = EntryId { host, number: self.next };
        self.next += 1;
        let queue = self.queues.entry(host).or_default();
        queue.entries.insert(place.number, (key, octets));
        queue.octets += octets;
        self.entries += 1;
        self.octets += octets;
        place
    }

    /// Adds octets to an entry, if it is still there.
    pub fn grow(&mut self, place: EntryId, octets: usize) {
        let Some(queue) = self.queues.get_mut(&place.host) else { return };
        let Some((_, counted)) = queue.entries.get_mut(&place.number) else { return };
        *counted += octets;
        queue.octets += octets;
        self.octets += octets;
    }

    /// Removes an entry, if it is still there.
    pub fn remove(&mut self, place: EntryId) -> Option<Key> {
        let queue = self.queues.get_mut(&place.host)?;
        let (key, octets) = queue.entries.remove(&place.number)?;
        queue.octets -= octets;
        if queue.entries.is_empty() {
            self.queues.remove(&place.host);
        }
        self.entries -= 1;
        self.octets -= octets;
        Some(key)
    }

    /// Removes and returns the entry that must be evicted after an entry of that host was added or has grown; `None`
    /// within the limits.
    pub fn evict(&mut self, host: IpAddr) -> Option<Key> {
        let of_host = self.queues.get(&host).map_or(0, |queue| queue.entries.len());
        if self.entries > self.bounds.entries || self.octets > self.bounds.octets {
            self.evict_of_largest()
        } else if of_host > self.bounds.entries_of_host {
            self.evict_of(host)
        } else {
            None
        }
    }

    /// Removes and returns the oldest entry of the host with the most octets.
    pub fn evict_of_largest(&mut self) -> Option<Key> {
        let host = *self.queues.iter().max_by_key(|(_, queue)| (queue.octets, queue.entries.len()))?.0;
        self.evict_of(host)
    }

    /// Removes and returns the oldest entry of a host.
    fn evict_of(&mut self, host: IpAddr) -> Option<Key> {
        let number = *self.queues.get(&host)?.entries.first_key_value()?.0;
        self.remove(EntryId { host, number })
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
    use std::net::Ipv4Addr;

    const FLOODING: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));

    fn keys(count: u32) -> Vec<Key> {
        let mut arena = Arena::new(count);
        (0..count).map(|_| arena.insert_with(|_| ()).unwrap()).collect()
    }

    #[test]
    fn the_oldest_entry_of_the_host_with_most_entries_is_evicted() {
        let keys = keys(10);
        let mut waiting = PendingTable::new(Bounds { entries: 8, entries_of_host: 7, octets: 1000 });
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
        let mut waiting = PendingTable::new(Bounds { entries: 8, entries_of_host: 8, octets: 1000 });
        let small = waiting.insert(OTHER, keys[0], 10);
        waiting.insert(FLOODING, keys[1], 900);
        waiting.insert(FLOODING, keys[2], 900);
        assert_eq!(waiting.evict(FLOODING), Some(keys[1]));
        assert_eq!(waiting.evict(FLOODING), None);
        assert_eq!((waiting.remove(small), waiting.remove(small)), (Some(keys[0]), None));
        assert_eq!((waiting.len(), waiting.octets), (1, 900));
    }
}
