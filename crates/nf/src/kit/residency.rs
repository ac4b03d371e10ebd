//! What a shell must know of contexts to store them (design section 6): which changed, their documents, and how they return at a
//! start.
//!
//! ```text
//!  step on a context ──> Tracker ──┐ end of a turn
//!                                  └─> NetworkFunction::store_contexts ──> DocumentSink ──> store, then the turn's sends
//!  start ──> NetworkFunction::restore_context, once a document ──> resume_contexts
//! ```
//!
//! An NF that no shell asks to track its contexts records and packs nothing.

use super::document::Document;
use super::{Key, Nf, References};
use std::collections::HashMap;

/// The stable name of a stored context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoredKey {
    /// The NF.
    pub nf: Nf,
    /// Number of the context, which the NF gives.
    pub number: u64,
}

/// Receives the changes of stored contexts.
pub trait DocumentSink {
    /// The document replaces the stored one.
    fn write(&mut self, key: StoredKey, document: &Document);

    /// The context has ended.
    fn delete(&mut self, key: StoredKey);
}

/// Which contexts are stored at the end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreScope {
    /// All that changed and whose transaction is over.
    Changed,
    /// Only those that must be stored before the sends of the turn: ended contexts, and UEs whose reserved NAS COUNTs are used
    /// up.
    Required,
}

/// How contexts are stored.
#[derive(Debug, Clone)]
pub struct Tracking {
    /// References in URIs, which mean the same in each run.
    pub references: References,
    /// First generation of the keys of this run ([`super::Arena::set_first_generation`]): more than a former run has reached.
    pub first_generation: u32,
    /// Downlink NAS COUNTs that a document reserves. 0 if each change is stored before its messages are sent.
    pub reserved_counts: u32,
}

/// The contexts of one NF that changed, and those that have a document.
#[derive(Debug, Default)]
pub struct Tracker {
    tracking: Option<Tracking>,
    changed: Vec<Key>,
    required: Vec<Key>,
    /// The contexts with a document, each with the lowest downlink NAS COUNT that the document does not reserve (AMF; else 0).
    stored: HashMap<Key, u32>,
}

impl Tracker {
    /// Records changes from now on.
    pub fn start(&mut self, tracking: Tracking) {
        self.tracking = Some(tracking);
    }

    /// How contexts are stored; `None` if they are not.
    pub const fn tracking(&self) -> Option<&Tracking> {
        self.tracking.as_ref()
    }

    /// The first generation of this run's keys.
    pub fn first_generation(&self) -> u32 {
        self.tracking.as_ref().map_or(0, |tracking| tracking.first_generation)
    }

    /// Records a change.
    pub fn note_change(&mut self, key: Key) {
        if self.tracking.is_some() {
            self.changed.push(key);
        }
    }

    /// Records that a context must be stored at the end of the turn.
    pub fn require(&mut self, key: Key) {
        if self.tracking.is_some() {
            self.required.push(key);
        }
    }

    /// Records the end of a context.
    pub fn note_end(&mut self, key: Key) {
        if self.stored.contains_key(&key) {
            self.required.push(key);
        }
    }

    /// The contexts of a scope, each once. Older contexts of a place in the table are in front of later ones.
    pub fn take(&mut self, scope: StoreScope) -> Vec<Key> {
        let mut keys = std::mem::take(&mut self.required);
        if scope == StoreScope::Changed {
            keys.append(&mut self.changed);
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Records that a context has a document, which reserves the COUNTs below this one.
    pub fn note_stored(&mut self, key: Key, counts_below: u32) {
        self.stored.insert(key, counts_below);
    }

    /// Records that a context no longer has a document; returns whether it had one.
    pub fn note_deleted(&mut self, key: Key) -> bool {
        self.stored.remove(&key).is_some()
    }

    /// The lowest COUNT that the document of a context does not reserve; `None` without a document.
    pub fn counts_below(&self, key: Key) -> Option<u32> {
        self.stored.get(&key).copied()
    }

    /// The store did not take a change: the context counts as changed, or as one to be deleted.
    pub fn note_failure(&mut self, key: Key) {
        self.stored.entry(key).or_default();
        self.changed.push(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::{Arena, Rng};

    #[test]
    fn a_tracker_that_was_not_started_records_nothing() {
        let mut tracker = Tracker::default();
        let key = Key::from_u64(1);
        tracker.note_change(key);
        tracker.require(key);
        tracker.note_end(key);
        assert_eq!(tracker.take(StoreScope::Changed), []);
        assert_eq!((tracker.changed.capacity(), tracker.required.capacity()), (0, 0), "nothing is allocated");
    }

    #[test]
    fn a_former_context_of_a_place_comes_before_its_successor() {
        let mut arena = Arena::new(1);
        let old = arena.insert('a').unwrap();
        arena.remove(old);
        let new = arena.insert('b').unwrap();
        let mut tracker = Tracker::default();
        let references = References::new(&mut Rng::from_number(1));
        tracker.start(Tracking { references, first_generation: 0, reserved_counts: 0 });
        tracker.note_stored(old, 0);
        for key in [new, new] {
            tracker.note_change(key);
        }
        tracker.note_end(old);
        assert_eq!(tracker.take(StoreScope::Required), [old]);
        tracker.note_end(old);
        assert_eq!(tracker.take(StoreScope::Changed), [old, new]);
        assert!(tracker.note_deleted(old) && !tracker.note_deleted(old));
    }
}
