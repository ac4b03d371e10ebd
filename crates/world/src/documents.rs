//! The store of a simulated process: it survives the process's end.

use crate::plan::Residency;
use pith_nf::fabric::Shard;
use pith_nf::kit::document::Document;
use pith_nf::kit::{DocumentSink, Instant, Nf, StoreScope, StoredKey, Tracking};
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest time until a change is written, and the downlink NAS COUNTs that a document reserves, with [`Residency::Soft`]:
/// as in the runtime.
const SOFT_DELAY: Duration = Duration::from_millis(200);
const SOFT_RESERVED_COUNTS: u32 = 16;

/// Documents by shard and key.
#[derive(Debug)]
pub(crate) struct Documents {
    residency: Residency,
    stored: BTreeMap<(usize, StoredKey), Vec<u8>>,
    /// When the changes of each shard are written, if there are any ([`Residency::Soft`]).
    due: BTreeMap<usize, Instant>,
}

/// What the end of a turn wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TurnWrites {
    pub wrote: bool,
    /// When the next write is due, if it must be scheduled.
    pub next: Option<Instant>,
}

/// The documents of one shard.
struct OfShard<'a> {
    shard: usize,
    stored: &'a mut BTreeMap<(usize, StoredKey), Vec<u8>>,
    wrote: bool,
}

impl DocumentSink for OfShard<'_> {
    fn write(&mut self, key: StoredKey, document: &Document) {
        self.wrote = true;
        self.stored.insert((self.shard, key), document.octets().to_vec());
    }

    fn delete(&mut self, key: StoredKey) {
        self.wrote = true;
        self.stored.remove(&(self.shard, key));
    }
}

impl Documents {
    pub(crate) const fn new(residency: Residency) -> Self {
        Self { residency, stored: BTreeMap::new(), due: BTreeMap::new() }
    }

    /// Stores what a turn of the shard changed: all of it, or ([`Residency::Soft`]) what must be written before the turn's sends.
    pub(crate) fn end_turn(&mut self, now: Instant, shard: usize, of: &mut Shard) -> TurnWrites {
        if self.residency == Residency::Durable {
            return TurnWrites { wrote: self.store(StoreScope::Changed, shard, of), next: None };
        }
        let (scope, next) = match self.due.get(&shard) {
            None => (StoreScope::Required, Some(now + SOFT_DELAY)),
            Some(due) if now < *due => (StoreScope::Required, None),
            Some(_) => (StoreScope::Changed, None),
        };
        match next {
            Some(due) => self.due.insert(shard, due),
            None if scope == StoreScope::Changed => self.due.remove(&shard),
            None => None,
        };
        TurnWrites { wrote: self.store(scope, shard, of), next }
    }

    fn store(&mut self, scope: StoreScope, shard: usize, of: &mut Shard) -> bool {
        let mut sink = OfShard { shard, stored: &mut self.stored, wrote: false };
        of.store_contexts(scope, &mut sink);
        sink.wrote
    }

    /// The shard belongs to a new process.
    pub(crate) fn note_start(&mut self, shard: usize) {
        self.due.remove(&shard);
    }

    /// Gives a new shard its contexts; the error names one that can't be unpacked.
    pub(crate) fn restore(&self, now: Instant, shard: usize, to: &mut Shard) -> Result<(), String> {
        let reserved_counts = if self.residency == Residency::Soft { SOFT_RESERVED_COUNTS } else { 0 };
        to.track_contexts(|nf| is_stored(nf).then_some(Tracking { reserved_counts, ..Tracking::default() }));
        for ((_, key), document) in self.stored.iter().filter(|((of, _), _)| *of == shard) {
            to.restore_context(now, *key, document, false).map_err(|error| format!("{key:?}: {error}"))?;
        }
        Ok(())
    }
}

const fn is_stored(nf: Nf) -> bool {
    matches!(nf, Nf::Amf | Nf::Smf | Nf::Pcf)
}
