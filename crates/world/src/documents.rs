//! The store of a simulated process: it survives the process's end.

mod restoring;

use crate::plan::Residency;
use pith_nf::amf::Amf;
use pith_nf::fabric::{Keeps, Shard};
use pith_nf::kit::document::Document;
use pith_nf::kit::{DocumentSink, Fate, Instant, Nf, RESERVED_COUNTS, StoreScope, StoredKey, Tracking};
use pith_types::{BlockId, Supi};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The longest time until a change is written with [`Residency::Soft`]: as in the runtime.
const SOFT_DELAY: Duration = Duration::from_millis(200);

/// Instead of a shard: the block is on its way from one to another.
const ON_ITS_WAY: usize = usize::MAX;

/// Documents by shard and key.
#[derive(Debug)]
pub(crate) struct Documents {
    residency: Residency,
    stored: BTreeMap<(usize, StoredKey), Document>,
    /// When the changes of each shard are written, if there are any ([`Residency::Soft`]).
    due: BTreeMap<usize, Instant>,
    /// [`Residency::Stateless`]: copies are not dropped, while the world looks at them.
    keeps_copies: bool,
    /// Writes fail.
    fails: bool,
    /// Shards whose NFs know that writes fail.
    failing: BTreeSet<usize>,
    /// Contexts that are restored before others: they are in use at gNBs or UPFs.
    first: BTreeSet<StoredKey>,
    /// Contexts that the present run of the process has written.
    own: BTreeSet<StoredKey>,
    restoring: restoring::Restoring,
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
    first: &'a mut BTreeSet<StoredKey>,
    own: &'a mut BTreeSet<StoredKey>,
    /// The next document is one of these.
    is_first: bool,
    written: Vec<StoredKey>,
    wrote: bool,
}

/// The changes that a failing store did not take.
#[derive(Default)]
struct Refused(Vec<StoredKey>);

impl DocumentSink for Refused {
    fn write(&mut self, key: StoredKey, _ue: Option<&Supi>, _document: &Document) {
        self.0.push(key);
    }

    fn delete(&mut self, key: StoredKey) {
        self.0.push(key);
    }
}

impl DocumentSink for OfShard<'_> {
    fn write(&mut self, key: StoredKey, _ue: Option<&Supi>, document: &Document) {
        self.wrote = true;
        self.written.push(key);
        self.stored.insert((self.shard, key), document.compact());
        self.own.insert(key);
        if std::mem::take(&mut self.is_first) {
            self.first.insert(key);
        } else {
            self.first.remove(&key);
        }
    }

    fn restore_first(&mut self) {
        self.is_first = true;
    }

    fn delete(&mut self, key: StoredKey) {
        self.wrote = true;
        self.stored.remove(&(self.shard, key));
    }
}

impl Documents {
    pub(crate) fn new(residency: Residency) -> Self {
        Self {
            residency,
            stored: BTreeMap::new(),
            due: BTreeMap::new(),
            keeps_copies: false,
            fails: false,
            failing: BTreeSet::new(),
            first: BTreeSet::new(),
            own: BTreeSet::new(),
            restoring: restoring::Restoring::default(),
        }
    }

    /// Stores what a turn of the shard changed: all of it, or ([`Residency::Soft`]) what must be written before the turn's sends.
    pub(crate) fn end_turn(&mut self, now: Instant, shard: usize, of: &mut Shard) -> TurnWrites {
        if self.residency != Residency::Soft {
            return TurnWrites { wrote: self.store(StoreScope::Changed, shard, of), next: None };
        }
        let (scope, next) = match self.due.get(&shard) {
            // As in the runtime: a block that is about to pass is written at once.
            _ if !of.is_at_rest() => (StoreScope::Changed, None),
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

    /// Whether changes of the last [`SOFT_DELAY`] may not be written yet.
    pub(crate) fn is_behind(&self) -> bool {
        !self.due.is_empty()
    }

    /// A shard has passed a block: no shard reads its documents until the new owner has it.
    pub(crate) fn pass_block(&mut self, block: BlockId) {
        self.assign_block(block, ON_ITS_WAY);
    }

    /// A block has another owner.
    pub(crate) fn assign_block(&mut self, block: BlockId, shard: usize) {
        let of_block = |(_, key): &&(usize, StoredKey)| key.id.block == block;
        for place in self.stored.keys().filter(of_block).copied().collect::<Vec<_>>() {
            if let Some(document) = self.stored.remove(&place) {
                self.stored.insert((shard, place.1), document);
            }
        }
    }

    /// Blocks have these owners: documents are those of the owner's shard.
    pub(crate) fn assign(&mut self, shard_of: impl Fn(BlockId) -> usize) {
        // A process starts.
        self.own.clear();
        let stored = std::mem::take(&mut self.stored);
        let assigned =
            stored.into_iter().map(|((_, key), document)| ((shard_of(key.id.block), key), document));
        self.stored = assigned.collect();
    }

    /// Writes fail from now on, or succeed again.
    pub(crate) const fn fail(&mut self, fails: bool) {
        self.fails = fails;
    }

    /// The changes of a shard are not written, as in the runtime: its NFs keep them.
    fn refuse(&mut self, scope: StoreScope, of: &mut Shard) {
        let mut refused = Refused::default();
        of.store_contexts(scope, &mut refused);
        for key in refused.0 {
            of.store_failed(key);
        }
    }

    fn store(&mut self, scope: StoreScope, shard: usize, of: &mut Shard) -> bool {
        if self.fails {
            self.refuse(scope, of);
            if self.failing.insert(shard) {
                of.accept_new_contexts(false);
            }
            return false;
        }
        if self.failing.remove(&shard) {
            of.accept_new_contexts(true);
        }
        let (stored, first, own) = (&mut self.stored, &mut self.first, &mut self.own);
        let mut sink =
            OfShard { shard, stored, first, own, is_first: false, written: Vec::new(), wrote: false };
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

    /// A context that has a document, besides those of NFs and the retained security contexts of deregistered UEs.
    pub(crate) fn any(&self) -> Option<StoredKey> {
        let is_of_ue = |((_, key), document): &(&(usize, StoredKey), &Document)| match key.nf {
            Nf::Nrf => false,
            Nf::Amf => !Amf::is_retained(document.octets()),
            _ => true,
        };
        self.stored.iter().find(is_of_ue).map(|((_, key), _)| *key)
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
        self.failing.remove(&shard);
    }

    fn tracking(&self) -> Tracking {
        Tracking {
            reserved_counts: RESERVED_COUNTS,
            whole: self.residency == Residency::Stateless,
            by_procedure: self.residency == Residency::Procedural,
            is_late: self.residency == Residency::Soft,
        }
    }

    /// The messages that a shard keeps for a run after a panic.
    pub(crate) fn keeps(&self) -> Keeps {
        Keeps::with(&self.tracking())
    }

    /// The shard records changes from now on.
    pub(crate) fn track(&self, shard: &mut Shard) {
        let tracking = self.tracking();
        shard.track_contexts(|nf| is_stored(nf).then_some(tracking));
        if tracking.whole {
            shard.expect_dropped_contexts();
        }
    }

    /// Gives the next run of a shard its contexts, in the order of the runtime; those without a fate are deleted.
    pub(crate) fn take_over(
        &mut self,
        now: Instant,
        shard: usize,
        to: &mut Shard,
        fate: impl Fn(StoredKey) -> Option<Fate>,
    ) -> Result<(), String> {
        self.announce(shard, to);
        self.stored.retain(|(of, key), _| *of != shard || fate(*key).is_some());
        for nf in [Nf::Nrf, Nf::Pcf, Nf::Smf, Nf::Amf] {
            for ((of, key), document) in &self.stored {
                let is_taken = (*of, key.nf) == (shard, nf) && !self.is_unrestored(shard, *key);
                if let Some(fate) = fate(*key).filter(|_| is_taken) {
                    let taken = if fate == Fate::GoesOn && !self.own.contains(key) {
                        // Of a former process, as in the runtime.
                        to.restore_context(now, *key, document.octets(), false)
                    } else {
                        to.take_over_context(now, *key, document.octets(), fate)
                    };
                    taken.map_err(|error| format!("{key:?}: {error}"))?;
                }
            }
        }
        Ok(())
    }

    /// Gives a new shard its contexts; the error names one that can't be unpacked.
    pub(crate) fn restore(&mut self, now: Instant, shard: usize, to: &mut Shard) -> Result<(), String> {
        self.track(to);
        self.restoring.end(shard);
        for ((_, key), document) in self.stored.iter().filter(|((of, _), _)| *of == shard) {
            to.restore_context(now, *key, document.octets(), false)
                .map_err(|error| format!("{key:?}: {error}"))?;
        }
        Ok(())
    }
}

const fn is_stored(nf: Nf) -> bool {
    matches!(nf, Nf::Amf | Nf::Smf | Nf::Pcf | Nf::Nrf)
}
