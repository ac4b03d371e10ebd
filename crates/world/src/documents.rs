//! The store of a simulated process: it survives the process's end.

use crate::plan::Residency;
use pith_nf::fabric::Shard;
use pith_nf::kit::document::Document;
use pith_nf::kit::{DocumentSink, Instant, Nf, StoreScope, StoredKey, Tracking};
use pith_types::Supi;
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest time until a change is written, and the downlink NAS COUNTs that a document reserves unless each change is written
/// before its messages are sent: as in the runtime.
const SOFT_DELAY: Duration = Duration::from_millis(200);
const RESERVED_COUNTS: u32 = 16;

/// Documents by shard and key.
#[derive(Debug)]
pub(crate) struct Documents {
    residency: Residency,
    stored: BTreeMap<(usize, StoredKey), Document>,
    /// When the changes of each shard are written next.
    due: BTreeMap<usize, Due>,
    /// [`Residency::Stateless`]: copies are not dropped, while the world looks at them.
    keeps_copies: bool,
}

/// The writes of a shard ([`Residency::Soft`]).
#[derive(Debug, Clone, Copy, Default)]
struct Due {
    is_scheduled: bool,
    at: Instant,
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
    stored: &'a mut BTreeMap<(usize, StoredKey), Document>,
    written: Vec<StoredKey>,
    wrote: bool,
}

impl DocumentSink for OfShard<'_> {
    fn write(&mut self, key: StoredKey, _ue: &Supi, document: &Document) {
        self.wrote = true;
        self.written.push(key);
        self.stored.insert((self.shard, key), document.compact());
    }

    fn delete(&mut self, key: StoredKey) {
        self.wrote = true;
        self.stored.remove(&(self.shard, key));
    }
}

impl Documents {
    pub(crate) const fn new(residency: Residency) -> Self {
        Self { residency, stored: BTreeMap::new(), due: BTreeMap::new(), keeps_copies: false }
    }

    /// Stores what a turn of the shard changed: all of it, or ([`Residency::Soft`]) what must be written before the turn's sends.
    pub(crate) fn end_turn(&mut self, now: Instant, shard: usize, of: &mut Shard) -> TurnWrites {
        if self.residency != Residency::Soft {
            return TurnWrites { wrote: self.store(StoreScope::Changed, shard, of), next: None };
        }
        let due = self.due.entry(shard).or_default();
        let scope = if now < due.at { StoreScope::Required } else { StoreScope::Changed };
        let mut next = None;
        if scope == StoreScope::Changed {
            (due.at, due.is_scheduled) = (now + SOFT_DELAY, false);
        } else if !due.is_scheduled {
            due.is_scheduled = true;
            next = Some(due.at);
        }
        TurnWrites { wrote: self.store(scope, shard, of), next }
    }

    fn store(&mut self, scope: StoreScope, shard: usize, of: &mut Shard) -> bool {
        let mut sink = OfShard { shard, stored: &mut self.stored, written: Vec::new(), wrote: false };
        of.store_contexts(scope, &mut sink);
        let OfShard { written, wrote, .. } = sink;
        if self.residency == Residency::Stateless && !self.keeps_copies {
            let touched = of.take_touched_contexts();
            for key in touched.into_iter().chain(written) {
                of.drop_context(key);
            }
        }
        wrote
    }

    /// The document of a context whose copy was dropped.
    pub(crate) fn load(&self, shard: usize, key: StoredKey) -> Option<Document> {
        self.stored.get(&(shard, key)).map(Document::compact)
    }

    /// Whether copies are kept from now on, so that the world can look at them; returns the contexts that have documents.
    pub(crate) fn keep_copies(&mut self, keep: bool) -> Vec<(usize, StoredKey)> {
        self.keeps_copies = keep;
        if self.residency == Residency::Stateless {
            self.stored.keys().copied().collect()
        } else {
            Vec::new()
        }
    }

    /// The shard belongs to a new process.
    pub(crate) fn note_start(&mut self, shard: usize) {
        self.due.remove(&shard);
    }

    /// Gives a new shard its contexts; the error names one that can't be unpacked.
    pub(crate) fn restore(&self, now: Instant, shard: usize, to: &mut Shard) -> Result<(), String> {
        let by_procedure = self.residency == Residency::Procedural;
        let has_delay = by_procedure || self.residency == Residency::Soft;
        let reserved_counts = if has_delay { RESERVED_COUNTS } else { 0 };
        let whole = self.residency == Residency::Stateless;
        to.track_contexts(|nf| is_stored(nf).then_some(Tracking { reserved_counts, whole, by_procedure }));
        if whole {
            to.expect_dropped_contexts();
        }
        for ((_, key), document) in self.stored.iter().filter(|((of, _), _)| *of == shard) {
            to.restore_context(now, *key, document.octets(), false)
                .map_err(|error| format!("{key:?}: {error}"))?;
        }
        Ok(())
    }
}

const fn is_stored(nf: Nf) -> bool {
    matches!(nf, Nf::Amf | Nf::Smf | Nf::Pcf)
}
