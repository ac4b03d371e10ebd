//! All UE contexts of a shard, and the ways to find one.

use super::context::UeContext;
use crate::kit::{Arena, Identity, Key, Rng};
use pith_types::{FiveGTmsi, Supi};
use std::collections::HashMap;

/// Low bits of a 5G-TMSI, which are this shard's own.
const TMSI_OWN_BITS: u32 = 0x3f_ffff;

/// UE contexts by key.
pub(crate) type Ues = Arena<UeContext>;

/// Finds UE contexts by the identities of their UEs.
#[derive(Debug, Default)]
pub(crate) struct Index {
    by_supi: HashMap<Supi, Key>,
    by_tmsi: HashMap<FiveGTmsi, Key>,
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
        self.by_supi.insert(supi.clone(), key).filter(|old| *old != key)
    }

    /// Gives out a 5G-TMSI of this shard's block that no UE has: random, so that none can be told
    /// from another one of the same UE (TS 33.501 6.12.3).
    pub fn allocate_tmsi(&mut self, identity: &Identity, key: Key, rng: &mut Rng) -> FiveGTmsi {
        loop {
            let own = rng.next_u32() & TMSI_OWN_BITS;
            let tmsi = FiveGTmsi::new(identity.instance, identity.shard, own);
            if let std::collections::hash_map::Entry::Vacant(place) = self.by_tmsi.entry(tmsi) {
                place.insert(key);
                return tmsi;
            }
        }
    }

    /// Takes a 5G-TMSI back, if that context has it.
    pub fn free_tmsi(&mut self, tmsi: FiveGTmsi, key: Key) {
        if self.by_tmsi.get(&tmsi) == Some(&key) {
            self.by_tmsi.remove(&tmsi);
        }
    }

    /// Forgets the subscriber, if that context holds the registration.
    pub fn free_supi(&mut self, supi: &Supi, key: Key) {
        if self.by_supi.get(supi) == Some(&key) {
            self.by_supi.remove(supi);
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
