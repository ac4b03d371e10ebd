//! The store of a simulated process: it survives the process's end.

use crate::plan::Residency;
use pith_nf::fabric::{Keeps, Shard};
use pith_nf::kit::document::Document;
use pith_nf::kit::{DocumentSink, Fate, Instant, Nf, StoreScope, StoredKey, Tracking};
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
    /// When the changes of each shard are written next.
    due: BTreeMap<usize, Due>,
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
        let mut sink = OfShard { shard, stored: &mut self.stored, wrote: false };
        of.store_contexts(scope, &mut sink);
        sink.wrote
    }

    /// The shard belongs to a new process.
    pub(crate) fn note_start(&mut self, shard: usize) {
        self.due.remove(&shard);
    }

    fn tracking(&self) -> Tracking {
        let reserved_counts = if self.residency == Residency::Soft { SOFT_RESERVED_COUNTS } else { 0 };
        Tracking { reserved_counts, ..Tracking::default() }
    }

    /// The messages that a shard keeps for a run after a panic.
    pub(crate) fn keeps(&self) -> Keeps {
        Keeps::with(&self.tracking())
    }

    /// The shard records changes from now on.
    pub(crate) fn track(&self, shard: &mut Shard) {
        let tracking = self.tracking();
        shard.track_contexts(|nf| is_stored(nf).then_some(tracking));
    }

    /// Gives the next run of a shard its contexts, in the order of the runtime; those without a fate are deleted.
    pub(crate) fn take_over(
        &mut self,
        now: Instant,
        shard: usize,
        to: &mut Shard,
        fate: impl Fn(StoredKey) -> Option<Fate>,
    ) -> Result<(), String> {
        self.stored.retain(|(of, key), _| *of != shard || fate(*key).is_some());
        for nf in [Nf::Pcf, Nf::Smf, Nf::Amf] {
            for ((of, key), document) in &self.stored {
                if let Some(fate) = fate(*key).filter(|_| (*of, key.nf) == (shard, nf)) {
                    to.take_over_context(now, *key, document, fate)
                        .map_err(|error| format!("{key:?}: {error}"))?;
                }
            }
        }
        Ok(())
    }

    /// Gives a new shard its contexts; the error names one that can't be unpacked.
    pub(crate) fn restore(&self, now: Instant, shard: usize, to: &mut Shard) -> Result<(), String> {
        self.track(to);
        for ((_, key), document) in self.stored.iter().filter(|((of, _), _)| *of == shard) {
            to.restore_context(now, *key, document, false).map_err(|error| format!("{key:?}: {error}"))?;
        }
        Ok(())
    }
}

const fn is_stored(nf: Nf) -> bool {
    matches!(nf, Nf::Amf | Nf::Smf | Nf::Pcf)
}
