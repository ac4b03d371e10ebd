//! All UE contexts of a shard, and the indexes to find them.

use super::context::UeContext;
use super::retained::Retained;
use crate::kit::{Contexts, Key, Rng, shrink};
use pith_sbi::common::UeContextId;
use pith_types::{BlockId, FiveGTmsi, Pei, Supi, UeIdentity};
use std::collections::{BTreeSet, HashMap};

/// UE contexts by key.
pub(crate) type Ues = Contexts<UeContext>;

/// Indexes from UE identities to UE contexts.
#[derive(Debug, Default)]
pub(crate) struct Index {
    by_supi: HashMap<Supi, Key>,
    /// Unauthenticated UEs of emergency services.
    by_pei: HashMap<Pei, Key>,
    /// UEs that another AMF is handing over. What it says of them is not proven before they arrive: a context of `by_supi` stays beside.
    arriving: HashMap<Supi, Key>,
    /// The same UEs by other names that the source AMF uses: its own 5G-GUTI, or the PEI.
    arriving_names: HashMap<UeContextId, Key>,
    by_tmsi: HashMap<FiveGTmsi, Key>,
    /// Contexts whose sessions another shard has or may have: it was sent them, or the request for them.
    moving: BTreeSet<Key>,
    /// Retained security contexts of deregistered UEs.
    pub retained: Retained,
}

impl Index {
    /// The subscriber's context.
    pub fn find_supi(&self, supi: &Supi) -> Option<Key> {
        self.by_supi.get(supi).copied()
    }

    /// The context of that identity.
    pub fn find(&self, ue: &UeIdentity) -> Option<Key> {
        match ue {
            UeIdentity::Supi(supi) => self.find_supi(supi),
            UeIdentity::Pei(pei) => self.by_pei.get(pei).copied(),
        }
    }

    /// Makes `key` the only context of that identity; returns the previous one.
    pub fn claim(&mut self, ue: &UeIdentity, key: Key) -> Option<Key> {
        match ue {
            UeIdentity::Supi(supi) => self.claim_supi(supi, key),
            UeIdentity::Pei(pei) => self.by_pei.insert(pei.clone(), key).filter(|old| *old != key),
        }
    }

    /// Removes the identity if the index points to that context.
    pub fn free(&mut self, ue: &UeIdentity, key: Key) {
        match ue {
            UeIdentity::Supi(supi) => self.free_supi(supi, key),
            UeIdentity::Pei(pei) if self.by_pei.get(pei) == Some(&key) => {
                self.by_pei.remove(pei);
                shrink(&mut self.by_pei);
            }
            UeIdentity::Pei(_) => {}
        }
    }

    /// The context of a UE that another AMF is handing over.
    pub fn find_arrival(&self, supi: &Supi) -> Option<Key> {
        self.arriving.get(supi).copied()
    }

    /// As [`Index::find_arrival`], by the name that the source AMF uses.
    pub fn find_arrival_named(&self, id: &UeContextId) -> Option<Key> {
        match id {
            UeContextId::Supi(supi) => self.find_arrival(supi),
            id => self.arriving_names.get(id).copied(),
        }
    }

    /// The source AMF names a UE that is being handed over so.
    pub fn name_arrival(&mut self, id: UeContextId, key: Key) {
        if !matches!(id, UeContextId::Supi(_)) {
            self.arriving_names.insert(id, key);
        }
    }

    /// Makes `key` the only context of a UE that is being handed over; returns the previous one.
    pub fn claim_arrival(&mut self, supi: &Supi, key: Key) -> Option<Key> {
        let old = self.arriving.insert(supi.clone(), key).filter(|old| *old != key);
        if let Some(old) = old {
            self.free_names(old);
        }
        old
    }

    /// The handover of that context is over.
    pub fn free_arrival(&mut self, supi: &Supi, key: Key) {
        if self.arriving.get(supi) == Some(&key) {
            self.arriving.remove(supi);
            shrink(&mut self.arriving);
            self.free_names(key);
        }
    }

    /// Few source AMFs use other names than SUPIs.
    fn free_names(&mut self, arrival: Key) {
        self.arriving_names.retain(|_, named| *named != arrival);
        shrink(&mut self.arriving_names);
    }

    /// Number of UEs that other AMFs are handing over.
    pub fn arriving(&self) -> usize {
        self.arriving.len()
    }

    /// Number of unauthenticated UEs.
    pub fn unauthenticated(&self) -> usize {
        self.by_pei.len()
    }

    /// The context that the 5G-TMSI is allocated to.
    pub fn find_tmsi(&self, tmsi: FiveGTmsi) -> Option<Key> {
        self.by_tmsi.get(&tmsi).copied()
    }

    /// Makes `key` the subscriber's only context; returns the previous one.
    pub fn claim_supi(&mut self, supi: &Supi, key: Key) -> Option<Key> {
        self.retained.forget(supi);
        self.by_supi.insert(supi.clone(), key).filter(|old| *old != key)
    }

    /// Allocates an unused 5G-TMSI of that block. Its low bits are random: it can't be linked to the UE's other 5G-TMSIs, but as one of the
    /// UEs of the block (TS 33.501 6.12.3).
    pub fn allocate_tmsi(&mut self, block: BlockId, key: Key, rng: &mut Rng) -> FiveGTmsi {
        loop {
            let tmsi = FiveGTmsi::new(block, rng.next_u32());
            if self.retained.has(tmsi) {
                continue;
            }
            if let std::collections::hash_map::Entry::Vacant(place) = self.by_tmsi.entry(tmsi) {
                place.insert(key);
                return tmsi;
            }
        }
    }

    /// Allocates its previous 5G-TMSI to a returning UE.
    pub fn claim_tmsi(&mut self, tmsi: FiveGTmsi, key: Key) {
        self.by_tmsi.insert(tmsi, key);
    }

    /// Frees a 5G-TMSI if it is allocated to that context.
    pub fn free_tmsi(&mut self, tmsi: FiveGTmsi, key: Key) {
        if self.by_tmsi.get(&tmsi) == Some(&key) {
            self.by_tmsi.remove(&tmsi);
            shrink(&mut self.by_tmsi);
        }
    }

    /// Removes the subscriber if the index points to that context.
    pub fn free_supi(&mut self, supi: &Supi, key: Key) {
        if self.by_supi.get(supi) == Some(&key) {
            self.by_supi.remove(supi);
            shrink(&mut self.by_supi);
        }
    }

    /// Notes whether another shard may have the sessions of that context.
    pub fn note_moving(&mut self, key: Key, is_moving: bool) {
        if is_moving {
            self.moving.insert(key);
        } else {
            self.moving.remove(&key);
        }
    }

    /// Whether another shard may have the sessions of that context.
    pub fn is_moving(&self, key: Key) -> bool {
        self.moving.contains(&key)
    }

    /// Removes all identities of a context whose document is lost. Looks at the whole index.
    pub fn free_all(&mut self, key: Key) {
        self.by_supi.retain(|_, owner| *owner != key);
        self.by_pei.retain(|_, owner| *owner != key);
        self.arriving.retain(|_, owner| *owner != key);
        self.arriving_names.retain(|_, owner| *owner != key);
        self.by_tmsi.retain(|_, owner| *owner != key);
        self.note_moving(key, false);
    }

    /// Number of subscribers and of 5G-TMSIs in the index. A subscriber whose UE is being handed over counts for each context.
    pub fn len(&self) -> (usize, usize) {
        (self.by_supi.len() + self.arriving.len(), self.by_tmsi.len())
    }

    /// The contexts of all entries.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        let of_ues = self.by_supi.values().chain(self.by_pei.values()).chain(self.arriving.values());
        of_ues.chain(self.by_tmsi.values()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrival_that_is_replaced_or_over_leaves_no_name() {
        let mut index = Index::default();
        let supi: Supi = "imsi-001010000000001".parse().unwrap();
        let name = |pei: &str| UeContextId::Pei(pei.parse().unwrap());
        let [first, second] = [1, 2].map(Key::from_u64);
        index.claim_arrival(&supi, first);
        index.name_arrival(name("imeisv-1234567890123456"), first);
        assert_eq!(index.claim_arrival(&supi, second), Some(first));
        index.name_arrival(name("imeisv-1234567890123457"), second);
        assert_eq!(index.find_arrival_named(&name("imeisv-1234567890123456")), None);
        assert_eq!(index.find_arrival_named(&name("imeisv-1234567890123457")), Some(second));
        index.free_arrival(&supi, second);
        assert!(index.arriving_names.is_empty());
    }
}
