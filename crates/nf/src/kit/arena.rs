//! A table whose keys are never reused.

use super::capacity::is_oversized;

/// The index of an entry, and the generation of that index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// The key as one number, for timers and tags.
    pub const fn to_u64(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// The inverse of [`Key::to_u64`].
    pub const fn from_u64(value: u64) -> Self {
        Self { index: value as u32, generation: (value >> 32) as u32 }
    }

    /// The index in the table, from 0.
    pub const fn index(self) -> u32 {
        self.index
    }

    /// Number of earlier entries at that index.
    pub const fn generation(self) -> u32 {
        self.generation
    }
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// Entries by [`Key`]. The key of a removed entry finds nothing, even if its index is in use again.
///
/// Free indexes are reused oldest first, so that an index, and the ids derived from it, stay unused
/// as long as possible. Free indexes at the end of a table that is less than a quarter full are given up, so that the
/// memory of a flood is freed.
#[derive(Debug)]
pub struct Arena<T> {
    slots: Vec<Slot<T>>,
    free: std::collections::VecDeque<u32>,
    limit: u32,
    /// The generation of new slots: at least that of every slot that was given up, so that no key occurs twice.
    first_generation: u32,
    /// Removals until the next attempt to shrink.
    until_shrink: usize,
}

impl<T> Arena<T> {
    /// An empty table of at most `limit` entries.
    pub const fn new(limit: u32) -> Self {
        let free = std::collections::VecDeque::new();
        Self { slots: Vec::new(), free, limit, first_generation: 0, until_shrink: 0 }
    }

    /// Inserts the entry that `make` returns for its key; `None` if the table is full.
    pub fn insert_with(&mut self, make: impl FnOnce(Key) -> T) -> Option<Key> {
        let (key, place) = self.vacant()?;
        *place = Some(make(key));
        Some(key)
    }

    /// Inserts an entry; gives it back if the table is full.
    pub fn insert(&mut self, value: T) -> Result<Key, T> {
        match self.vacant() {
            Some((key, place)) => {
                *place = Some(value);
                Ok(key)
            }
            None => Err(value),
        }
    }

    /// A free key and its empty place. The caller must fill the place. `None` if the table is full.
    pub(crate) fn vacant(&mut self) -> Option<(Key, &mut Option<T>)> {
        if (self.slots.len() as u32) < self.limit && self.free.len() < 64 {
            self.free.push_front(self.slots.len() as u32);
            self.slots.push(Slot { generation: self.first_generation, value: None });
        }
        let index = self.free.pop_front()?;
        let slot = self.slots.get_mut(index as usize)?;
        let key = Key { index, generation: slot.generation };
        Some((key, &mut slot.value))
    }

    /// The entry of that key.
    pub fn get(&self, key: Key) -> Option<&T> {
        self.slots.get(key.index as usize).filter(|slot| slot.generation == key.generation)?.value.as_ref()
    }

    /// The entry of that key, mutable.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.slots.get_mut(key.index as usize)?;
        if slot.generation == key.generation { slot.value.as_mut() } else { None }
    }

    /// The entry at that index whose generation has the given low bits: for ids that contain only
    /// part of a key.
    pub fn find(&self, index: u32, generation_bits: u32, mask: u32) -> Option<Key> {
        let slot = self.slots.get(index as usize).filter(|slot| slot.value.is_some())?;
        (slot.generation & mask == generation_bits & mask)
            .then_some(Key { index, generation: slot.generation })
    }

    /// Removes and returns the entry.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.slots.get_mut(key.index as usize).filter(|slot| slot.generation == key.generation)?;
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push_back(key.index);
        if is_oversized(self.slots.len(), self.len()) {
            match self.until_shrink.checked_sub(1) {
                Some(left) => self.until_shrink = left,
                None => self.shrink(),
            }
        }
        Some(value)
    }

    /// Gives up the free slots behind the last entry if these are half of all, so that the cost of searching the list of
    /// free indexes is constant for each slot. Twice as many slots as entries remain. If they are fewer, the next attempt
    /// follows after a number of removals in proportion to the slots that were looked at.
    fn shrink(&mut self) {
        let used = self.slots.iter().rposition(|slot| slot.value.is_some()).map_or(0, |last| last + 1);
        if used > self.slots.len() / 2 {
            self.until_shrink = (self.slots.len() - used) / 8;
            return;
        }
        let kept = used.max(2 * self.len());
        for slot in self.slots.drain(kept..) {
            // The generation of a free slot is one higher than that of its last key.
            self.first_generation = self.first_generation.max(slot.generation);
        }
        self.free.retain(|index| (*index as usize) < kept);
        self.slots.shrink_to(kept);
        self.free.shrink_to(kept);
    }

    /// All entries with their keys.
    pub fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let key = Key { index: index as u32, generation: slot.generation };
            slot.value.as_ref().map(|value| (key, value))
        })
    }

    /// Up to `limit` entries from that index on, and the index from which there may be more.
    pub fn page(&self, first: u32, limit: u32) -> (Vec<(Key, &T)>, Option<u32>) {
        /// Slots to look at for each entry: where most are free a page has fewer entries.
        const SLOTS: u32 = 64;
        let mut found = Vec::new();
        let mut next = first;
        let end = first.saturating_add(limit.saturating_mul(SLOTS)).min(self.slots.len() as u32);
        while next < end && (found.len() as u32) < limit {
            found.extend(self.slots.get(next as usize).and_then(|slot| {
                let key = Key { index: next, generation: slot.generation };
                slot.value.as_ref().map(|value| (key, value))
            }));
            next += 1;
        }
        (found, (next < self.slots.len() as u32).then_some(next))
    }

    /// All entries, mutable.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.value.as_mut())
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_a_removed_entry_finds_nothing() {
        let mut arena = Arena::new(1);
        let first = arena.insert_with(|_| 'a').unwrap();
        assert_eq!((arena.insert_with(|_| 'b'), arena.insert('c')), (None, Err('c')), "full");
        assert_eq!(arena.remove(first), Some('a'));
        let second = arena.insert_with(|_| 'b').unwrap();
        assert_eq!(second.index(), first.index());
        assert_eq!((arena.get(first), arena.get(second)), (None, Some(&'b')));
        assert_eq!(arena.remove(first), None);
        assert_eq!(arena.len(), 1);
        assert_eq!(Key::from_u64(second.to_u64()), second);
    }

    #[test]
    fn pages_have_all_entries_once() {
        let mut arena = Arena::new(1000);
        let keys: Vec<_> = (0..300).map(|number| arena.insert_with(|_| number).unwrap()).collect();
        for key in keys.iter().filter(|key| key.index() % 3 == 0) {
            arena.remove(*key);
        }
        let (mut found, mut next) = (Vec::new(), Some(0));
        while let Some(first) = next {
            let page;
            (page, next) = arena.page(first, 7);
            assert!(page.len() <= 7);
            found.extend(page.into_iter().map(|(_, number)| *number));
        }
        let mut all: Vec<_> = arena.iter().map(|(_, number)| *number).collect();
        assert_eq!(found, all);
        all.clear();
        for key in keys {
            arena.remove(key);
        }
        assert_eq!(arena.page(0, 1), (Vec::new(), Some(64)), "a page looks at a bounded number of slots");
        assert_eq!(arena.page(0, u32::MAX), (Vec::new(), None));
    }

    #[test]
    fn the_memory_of_a_flood_is_freed_and_its_keys_stay_invalid() {
        let mut arena = Arena::new(100_000);
        let kept: Vec<_> = (0..10).map(|_| arena.insert_with(|_| [0u8; 64]).unwrap()).collect();
        let mut flood: Vec<Vec<Key>> = Vec::new();
        for _ in 0..3 {
            flood.push((0..50_000).map(|_| arena.insert_with(|_| [1u8; 64]).unwrap()).collect());
            for key in flood.last().unwrap() {
                arena.remove(*key);
            }
            assert!(arena.slots.capacity() < 2_000, "{}", arena.slots.capacity());
            assert!(arena.free.capacity() < 2_000, "{}", arena.free.capacity());
        }
        let keys: std::collections::HashSet<Key> = flood.iter().flatten().copied().collect();
        assert_eq!(keys.len(), 150_000, "no key occurs twice");
        let later: Vec<_> = (0..50_000).map(|_| arena.insert_with(|_| [2u8; 64]).unwrap()).collect();
        assert!(later.iter().all(|key| !keys.contains(key)));
        assert!(keys.iter().all(|key| arena.get(*key).is_none()));
        assert!(kept.iter().all(|key| arena.get(*key).is_some()));
        assert_eq!(arena.len(), 50_010);
    }

    #[test]
    fn free_indexes_are_reused_oldest_first() {
        let mut arena = Arena::new(1000);
        let first = arena.insert_with(|_| ()).unwrap();
        arena.remove(first);
        assert_ne!(arena.insert_with(|_| ()).unwrap().index(), first.index());
        assert_eq!(arena.find(first.index(), 0, 0xf), None);
    }
}
