//! All UE contexts of a shard, and the ways to find one.

use super::context::UeContext;
use super::retained::Retained;
use crate::kit::{Arena, Identity, Key, Rng};
use pith_types::{FiveGTmsi, Supi};
use std::collections::HashMap;

/// Low bits of a 5G-TMSI, which are this shard's own.
const TMSI_OWN_BITS: u32 = 0x3f_ffff;

/// UE contexts by key.
pub(crate) type Ues = Arena<Box<UeContext>>;

/// Finds UE contexts by the identities of their UEs.
#[derive(Debug, Default)]
pub(crate) struct Index {
    by_supi: HashMap<Supi, Key>,
    by_tmsi: HashMap<FiveGTmsi, Key>,
    /// UEs that are known though they are not registered.
    pub retained: Retained,
}

impl Index {
    /// The context that holds the subscriber's registration.
    pub fn find_supi(&self, supi: &Supi) -> Option<Key> {
        self.by_supi.get(supi).copied()
    }

    /// The context that was given that 5G-TMSI.
    pub fn find_tmsi(&self, tmsi: FiveGTmsi) -> Option<Key> {
        self.by_tmsi.get(&tmsi).copied()
    }

    /// Makes `key` the one context of the subscriber; gives the one that was before.
    pub fn claim_supi(&mut self, supi: &Supi, key: Key) -> Option<Key> {
        self.retained.forget(supi);
        self.by_supi.insert(supi.clone(), key).filter(|old| *old != key)
    }

    /// Gives out a 5G-TMSI of this shard's block that no UE has: random, so that none can be told
    /// from another one of the same UE (TS 33.501 6.12.3).
    pub fn allocate_tmsi(&mut self, identity: &Identity, key: Key, rng: &mut Rng) -> FiveGTmsi {
        loop {
            let own = rng.next_u32() & TMSI_OWN_BITS;
            let tmsi = FiveGTmsi::new(identity.instance, identity.shard, own);
            if self.retained.has(tmsi) {
                continue;
            }
            if let std::collections::hash_map::Entry::Vacant(place) = self.by_tmsi.entry(tmsi) {
                place.insert(key);
                return tmsi;
            }
        }
    }

    /// Gives a UE that comes back the 5G-TMSI that it had.
    pub fn claim_tmsi(&mut self, tmsi: FiveGTmsi, key: Key) {
        self.by_tmsi.insert(tmsi, key);
    }

    /// Takes a 5G-TMSI back, if that context has it.
    pub fn free_tmsi(&mut self, tmsi: FiveGTmsi, key: Key) {
        if self.by_tmsi.get(&tmsi) == Some(&key) {
            self.by_tmsi.remove(&tmsi);
            shrink(&mut self.by_tmsi);
        }
    }

    /// Forgets the subscriber, if that context holds the registration.
    pub fn free_supi(&mut self, supi: &Supi, key: Key) {
        if self.by_supi.get(supi) == Some(&key) {
            self.by_supi.remove(supi);
            shrink(&mut self.by_supi);
        }
    }

    /// How many subscribers and 5G-TMSIs it knows.
    pub fn len(&self) -> (usize, usize) {
        (self.by_supi.len(), self.by_tmsi.len())
    }

    /// All entries: which context each leads to.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        self.by_supi.values().chain(self.by_tmsi.values()).copied()
    }
}

/// Entries that a table may have room for at any time.
const SPARE: usize = 1024;

/// Gives memory back once a table is less than a quarter full, so that a flood is not paid for after it is over.
pub(crate) fn shrink<K: Eq + std::hash::Hash, V>(table: &mut HashMap<K, V>) {
    if table.capacity() > 4 * table.len() + SPARE {
        table.shrink_to(2 * table.len());
    }
}
