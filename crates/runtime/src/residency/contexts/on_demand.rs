//! Restoring while the shard serves: what an input needs at once, the rest in slices between inputs.
//!
//! ```text
//!  start ──> begin_restoring: NRF, contexts in use at gNBs and UPFs ──> the shard serves
//!  ShardEffect::Restore ──> want ──> restore_next ──> ShardInput::Restored      what inputs wait for
//!  no input waits       ───────────> restore_next ──> ShardInput::Restored      a slice of the others
//! ```

use super::{ContextStore, KINDS, check_layout, document_key, packed, stored_key};
use crate::residency::{Document, DocumentKey, EngineError, UnixMillis};
use pith_nf::fabric::{Portion, Shard, Unrestored};
use pith_nf::kit::{Instant, Nf, StoredKey};
use pith_types::BlockId;

/// Documents that are restored between inputs: about a millisecond.
const SLICE: usize = 128;

/// The NFs whose contexts are restored while the shard serves, in the order in which a new UE needs all of them.
const ON_DEMAND: [Nf; 3] = [Nf::Amf, Nf::Pcf, Nf::Smf];

/// The deadline of documents that are restored before others.
pub(super) const FIRST: UnixMillis = UnixMillis(1);

/// Attempts to read a document, one a second, after which it counts as unreadable.
const MOST_ATTEMPTS: u8 = 30;

/// What is not restored yet.
#[derive(Default)]
pub(super) struct Restoring {
    unrestored: Unrestored,
    /// The block of which slices are restored, and the rest of its documents.
    part: Option<(Nf, BlockId, Vec<DocumentKey>)>,
    /// What inputs wait for.
    wanted: Vec<Portion>,
    /// Failed attempts to read the next document.
    attempts: u8,
    began: Instant,
}

/// The store cannot be read at present.
struct Unreachable(EngineError);

impl ContextStore {
    /// Gives a new shard the contexts of its blocks. Those that the store can read at once are restored while the shard serves, except the first
    /// ones ([`ContextStore::restore_next`]); all others now.
    pub fn begin_restoring(&mut self, now: Instant, shard: &mut Shard) {
        if self.shared.is_some() || self.mode.drops_copies || !self.engine.answers_at_once() {
            return self.restore(now, shard);
        }
        // Another attempt after a panic restores all again.
        self.restoring = Restoring::default();
        self.track(shard);
        if let Err(error) = self.claim() {
            self.fail(now, shard, &error);
            if self.is_fenced {
                return;
            }
        }
        let first_blocks: Vec<BlockId> = self.blocks.first().copied().into_iter().collect();
        for (_, nf) in KINDS.into_iter().filter(|(_, nf)| shard.hosts(*nf)).collect::<Vec<_>>() {
            let all = self.blocks.clone();
            let is_later = ON_DEMAND.contains(&nf);
            if is_later {
                all.iter().for_each(|block| self.restoring.unrestored.add_block(nf, *block));
            }
            // New contexts get ids of the first block.
            for block in if is_later { first_blocks.clone() } else { all } {
                if let Err(Unreachable(error)) = self.restore_block(now, shard, nf, block) {
                    self.fail(now, shard, &error);
                    break;
                }
            }
        }
        if let Err(Unreachable(error)) = self.restore_first(now, shard) {
            self.fail(now, shard, &error);
        }
        self.restoring.began = now;
        shard.begin_restoring(&self.restoring.unrestored);
        self.report();
    }

    /// Restores the contexts of further blocks while the shard serves, whose owner it is from now on: those of a process that has ended.
    pub fn restore_blocks(&mut self, now: Instant, shard: &mut Shard, blocks: &[BlockId]) {
        for block in blocks {
            self.take_block(now, shard, *block);
            for nf in ON_DEMAND.into_iter().filter(|nf| shard.hosts(*nf)) {
                self.restoring.unrestored.add_block(nf, *block);
            }
        }
        self.restoring.began = now;
        shard.begin_restoring(&self.restoring.unrestored);
    }

    /// Inputs wait for that portion.
    pub fn want(&mut self, portion: Portion) {
        self.restoring.wanted.push(portion);
    }

    /// Whether inputs wait for contexts that can be restored now.
    pub fn has_wanted(&self) -> bool {
        !self.restoring.wanted.is_empty() && self.can_read()
    }

    /// Whether contexts are not restored yet, and the store can be read.
    pub fn is_restoring_now(&self) -> bool {
        self.can_read() && !self.is_fenced && self.is_restoring()
    }

    fn can_read(&self) -> bool {
        self.outage.is_none_or(|outage| !outage.stops_reading)
    }

    /// Whether contexts are not restored yet.
    pub fn is_restoring(&self) -> bool {
        !self.restoring.unrestored.is_empty() || !self.restoring.wanted.is_empty()
    }

    /// Restores what inputs wait for; if there is no such input, a slice of the contexts that are not restored yet. Returns what the
    /// shard receives as [`ShardInput::Restored`](pith_nf::fabric::ShardInput::Restored).
    pub fn restore_next(&mut self, now: Instant, shard: &mut Shard) -> Vec<Portion> {
        if !self.is_restoring() || !self.can_read() || self.is_fenced {
            return Vec::new();
        }
        let was_restoring = !self.restoring.unrestored.is_empty();
        let mut restored = Vec::new();
        let result = self.restore_portions(now, shard, &mut restored);
        match result {
            Ok(()) => self.restoring.attempts = 0,
            Err(Unreachable(error)) => {
                self.restoring.attempts = self.restoring.attempts.saturating_add(1);
                self.fail(now, shard, &error);
            }
        }
        if was_restoring && self.restoring.unrestored.is_empty() {
            let took = now.since(self.restoring.began).as_millis();
            tracing::info!(
                "{} contexts are restored, the last ones {took} ms after the start",
                self.restored
            );
        }
        restored
    }

    fn restore_portions(
        &mut self,
        now: Instant,
        shard: &mut Shard,
        restored: &mut Vec<Portion>,
    ) -> Result<(), Unreachable> {
        if self.restoring.wanted.is_empty() {
            return self.restore_slice(now, shard, restored);
        }
        while let Some(wanted) = self.restoring.wanted.first().copied() {
            match wanted {
                Portion::Context(key) => self.restore_named(now, shard, key)?,
                Portion::Block(nf, block) => self.restore_block(now, shard, nf, block)?,
                Portion::All(nf) => {
                    let blocks: Vec<_> = self.restoring.unrestored.blocks_of(nf).collect();
                    for block in blocks {
                        self.restore_block(now, shard, nf, block)?;
                    }
                }
                Portion::Slice(_) => {}
            }
            self.restoring.wanted.remove(0);
            restored.push(wanted);
        }
        Ok(())
    }

    /// Restores the documents that say that their contexts are in use.
    fn restore_first(&mut self, now: Instant, shard: &mut Shard) -> Result<(), Unreachable> {
        for block in self.blocks.clone() {
            let due = self.engine.due(block.number(), FIRST, usize::MAX).map_err(Unreachable)?;
            for key in due.into_iter().filter_map(|due| stored_key(due.key)) {
                if shard.hosts(key.nf) {
                    self.restore_named(now, shard, key)?;
                }
            }
        }
        Ok(())
    }

    /// Restores the next documents of the blocks that are not restored.
    fn restore_slice(
        &mut self,
        now: Instant,
        shard: &mut Shard,
        restored: &mut Vec<Portion>,
    ) -> Result<(), Unreachable> {
        let mut left = SLICE;
        while left > 0 {
            let (nf, block, mut rest) = match self.restoring.part.take() {
                Some(part) => part,
                None => {
                    let first = |nf: Nf| Some((nf, self.restoring.unrestored.blocks_of(nf).next()?));
                    let Some((nf, block)) = ON_DEMAND.into_iter().find_map(first) else { break };
                    (nf, block, self.keys_in(nf, block)?)
                }
            };
            // A block without documents counts, too.
            left -= 1;
            while let Some(key) = rest.last().copied().filter(|_| left > 0) {
                if let Err(error) = self.restore_document(now, shard, key) {
                    self.restoring.part = Some((nf, block, rest));
                    return Err(error);
                }
                rest.pop();
                left -= 1;
            }
            if rest.is_empty() {
                self.restoring.unrestored.note_block(nf, block);
                restored.push(Portion::Block(nf, block));
            } else {
                self.restoring.part = Some((nf, block, rest));
                restored.push(Portion::Slice(nf));
            }
        }
        Ok(())
    }

    /// Restores all contexts of a block that are not restored.
    fn restore_block(
        &mut self,
        now: Instant,
        shard: &mut Shard,
        nf: Nf,
        block: BlockId,
    ) -> Result<(), Unreachable> {
        if ON_DEMAND.contains(&nf) && !self.restoring.unrestored.has_block(nf, block) {
            return Ok(());
        }
        let is_part = |(of, part, _): &mut (Nf, BlockId, Vec<DocumentKey>)| (*of, *part) == (nf, block);
        let keys = match self.restoring.part.take_if(is_part) {
            Some((_, _, rest)) => rest,
            None => self.keys_in(nf, block)?,
        };
        for key in keys {
            self.restore_document(now, shard, key)?;
        }
        self.restoring.unrestored.note_block(nf, block);
        Ok(())
    }

    fn restore_named(&mut self, now: Instant, shard: &mut Shard, key: StoredKey) -> Result<(), Unreachable> {
        let Some(document) = document_key(key) else { return Ok(()) };
        if self.restoring.unrestored.has(key) {
            self.restore_document(now, shard, document)?;
        }
        Ok(())
    }

    /// The keys of the documents in a block that are not restored.
    fn keys_in(&mut self, nf: Nf, block: BlockId) -> Result<Vec<DocumentKey>, Unreachable> {
        let Some((kind, _)) = KINDS.into_iter().find(|(_, of)| *of == nf) else { return Ok(Vec::new()) };
        self.engine.keys(kind, block.number()).map_err(Unreachable)
    }

    /// Restores a context, unless it is restored.
    fn restore_document(
        &mut self,
        now: Instant,
        shard: &mut Shard,
        place: DocumentKey,
    ) -> Result<(), Unreachable> {
        let Some(key) = stored_key(place) else { return Ok(()) };
        let is_on_demand = ON_DEMAND.contains(&key.nf);
        if is_on_demand && !self.restoring.unrestored.has(key) {
            return Ok(());
        }
        match self.engine.read(place) {
            Ok(Some(document)) => self.restore_read(now, shard, (key, place), &document),
            // It ended before the restart.
            Ok(None) => {}
            Err(error) if error.is_temporary() && self.restoring.attempts < MOST_ATTEMPTS => {
                return Err(Unreachable(EngineError::Paused(error.to_string())));
            }
            Err(error) => self.note_unreadable(&error),
        }
        self.restoring.unrestored.note_context(key);
        Ok(())
    }

    fn restore_read(
        &mut self,
        now: Instant,
        shard: &mut Shard,
        (key, place): (StoredKey, DocumentKey),
        document: &Document,
    ) {
        match check_layout(document) {
            Ok(()) => self.restore_packed(now, shard, (key, place), packed(key, document).octets(), document),
            Err(error) => self.note_unreadable(&error),
        }
    }

    /// Another run of the shard begins. The contexts that are not restored are restored while it serves, except one with which the former run
    /// panicked.
    pub(super) fn continue_restoring(&mut self, shard: &mut Shard) {
        if let Some(key) = self.reading.take()
            && self.restoring.unrestored.has(key)
        {
            self.left_out.insert(key);
        }
        self.restoring.part = None;
        self.restoring.wanted.clear();
        shard.begin_restoring(&self.restoring.unrestored);
    }

    /// Whether a context is not restored yet: a run after a panic does not take it over.
    pub(super) fn is_unrestored(&self, key: StoredKey) -> bool {
        self.restoring.unrestored.has(key)
    }

    /// Contexts that are not restored are given up.
    pub(super) fn restore_no_more(&mut self, shard: &mut Shard) {
        self.restoring = Restoring::default();
        shard.begin_restoring(&Unrestored::default());
    }
}
