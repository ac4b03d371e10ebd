//! Restoring while the shard serves: what an input needs at once, the rest in slices between inputs.
//!
//! ```text
//!  start ──> begin_restoring: NRF, contexts in use at gNBs and UPFs ──> the shard serves
//!  ShardEffect::Restore ──> want ──> restore_next ──> ShardInput::Restored      what inputs wait for
//!  no input waits       ───────────> restore_next ──> ShardInput::Restored      a slice of the others
//! ```

use super::restoring::BLOCKS_AT_ONCE;
use super::{ContextStore, KINDS, check_layout, document_key, packed, stored_key};
use crate::residency::{Document, DocumentKey, DocumentKind, EngineError, ReadResult, UnixMillis};
use pith_nf::fabric::{Portion, Shard, Unrestored};
use pith_nf::kit::{Instant, Nf, StoredKey};
use pith_types::BlockId;
use std::collections::BTreeMap;

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
    /// Documents of further blocks, which a server has listed with the same request.
    listed: BTreeMap<(Nf, BlockId), Vec<DocumentKey>>,
    /// What inputs wait for.
    wanted: Vec<Portion>,
    /// Failed attempts to read the next document. Failed attempts to list documents do not count: they say nothing of that one.
    attempts: u8,
    began: Instant,
}

/// The store cannot be read at present.
struct Unreachable(EngineError);

impl ContextStore {
    /// Gives a new shard the contexts of its blocks. They are restored while the shard serves, except the first ones
    /// ([`ContextStore::restore_next`]); now, if copies are dropped, or all NFs have one document for a UE.
    pub fn begin_restoring(&mut self, now: Instant, shard: &mut Shard) {
        if self.shared.is_some() || self.mode.drops_copies {
            return self.restore(now, shard);
        }
        // Another attempt after a panic restores all again.
        self.restoring = Restoring::default();
        self.track(shard);
        for nf in ON_DEMAND.into_iter().filter(|nf| shard.hosts(*nf)) {
            for block in &self.blocks {
                self.restoring.unrestored.add_block(nf, *block);
            }
        }
        let result = self.claim();
        let is_gone = result.is_err() && !self.engine.answers_at_once();
        if let Err(error) = result {
            self.fail(now, shard, &error);
            if self.is_fenced {
                self.restoring = Restoring::default();
                return;
            }
        }
        if is_gone {
            self.probe();
        } else if let Err(Unreachable(error)) = self.restore_first(now, shard) {
            self.fail_to_read(now, shard, &error);
        }
        self.restoring.began = now;
        shard.begin_restoring(&self.restoring.unrestored);
        self.report();
    }

    /// Restores the contexts of further blocks while the shard serves, whose owner it is from now on: those of a process that has ended.
    pub fn restore_blocks(&mut self, now: Instant, shard: &mut Shard, blocks: &[BlockId]) {
        for block in blocks {
            self.take_block(now, shard, *block);
            self.restoring.listed.retain(|(_, listed), _| listed != block);
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
            Err(Unreachable(error)) => self.fail_to_read(now, shard, &error),
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
        if self.owner.is_none() && !self.engine.answers_at_once() {
            // The server was gone at the start: former owners must not write what is read now.
            self.claim().map_err(Unreachable)?;
        }
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

    /// Restores what the shard needs before its first input: contexts of NFs that are not restored on demand, the block from which new
    /// contexts get their ids, and the documents that say that their contexts are in use.
    fn restore_first(&mut self, now: Instant, shard: &mut Shard) -> Result<(), Unreachable> {
        let hosted: Vec<_> = KINDS.into_iter().filter(|(_, nf)| shard.hosts(*nf)).collect();
        let blocks = self.blocks.clone();
        let places = |kind: DocumentKind| blocks.iter().map(move |block| (kind, block.number()));
        let mut failure = None;
        for (kind, nf) in &hosted {
            let restored = if ON_DEMAND.contains(nf) {
                blocks.first().map_or(Ok(()), |block| self.restore_block(now, shard, *nf, *block))
            } else {
                let listed = self.engine.list(&places(*kind).collect::<Vec<_>>()).map_err(Unreachable);
                listed.and_then(|keys| self.restore_documents(now, shard, &keys))
            };
            match restored {
                // Each attempt waits for the server.
                Err(error) if !self.engine.answers_at_once() => return Err(error),
                Err(error) => failure = Some(error),
                Ok(()) => {}
            }
        }
        let on_demand = hosted.iter().filter(|(_, nf)| ON_DEMAND.contains(nf));
        let places: Vec<_> = on_demand.flat_map(|(kind, _)| places(*kind)).collect();
        let first = self.engine.list_due(&places, FIRST).map_err(Unreachable)?;
        self.restore_documents(now, shard, &first)?;
        failure.map_or(Ok(()), Err)
    }

    /// A request that reads failed, whichever it was: none follows before the outage is over.
    fn fail_to_read(&mut self, now: Instant, shard: &mut Shard, error: &EngineError) {
        self.fail(now, shard, error);
        self.outage.iter_mut().for_each(|outage| outage.stops_reading = true);
        if !self.engine.answers_at_once() {
            self.probe();
        }
    }

    /// The outage lasts until a document can be read: each attempt to restore one would wait for the server.
    fn probe(&mut self) {
        let block = self.blocks.first().map_or(0, |block| block.number());
        self.loads.probe(DocumentKey { kind: DocumentKind::Amf, block, number: 0 });
    }

    /// Restores the next documents of the blocks that are not restored.
    fn restore_slice(
        &mut self,
        now: Instant,
        shard: &mut Shard,
        restored: &mut Vec<Portion>,
    ) -> Result<(), Unreachable> {
        let (mut left, mut whole, mut keys) = (SLICE, Vec::new(), Vec::new());
        let mut part = self.restoring.part.take();
        // A block without documents counts, too.
        while left > 0 {
            let (nf, block, mut rest) = match part.take() {
                Some(part) => part,
                None => {
                    let next = self.next_block(&whole);
                    let Some((nf, block)) = next else { break };
                    (nf, block, self.keys_in(nf, block)?)
                }
            };
            left -= 1;
            keys.extend(rest.drain(rest.len().saturating_sub(left)..));
            left = SLICE.saturating_sub(keys.len() + whole.len() + 1);
            if rest.is_empty() {
                whole.push((nf, block));
            } else {
                part = Some((nf, block, rest));
                break;
            }
        }
        // With one request of a server. After an error the documents of all these blocks are listed again.
        self.restore_documents(now, shard, &keys)?;
        for (nf, block) in whole {
            self.restoring.unrestored.note_block(nf, block);
            restored.push(Portion::Block(nf, block));
        }
        restored.extend(part.iter().map(|(nf, _, _)| Portion::Slice(*nf)));
        self.restoring.part = part;
        Ok(())
    }

    /// The first block that is not restored, nor among these.
    fn next_block(&self, taken: &[(Nf, BlockId)]) -> Option<(Nf, BlockId)> {
        ON_DEMAND.into_iter().find_map(|nf| {
            let mut blocks = self.restoring.unrestored.blocks_of(nf);
            blocks.find(|block| !taken.contains(&(nf, *block))).map(|block| (nf, block))
        })
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
        self.restore_documents(now, shard, &keys)?;
        self.restoring.unrestored.note_block(nf, block);
        Ok(())
    }

    fn restore_named(&mut self, now: Instant, shard: &mut Shard, key: StoredKey) -> Result<(), Unreachable> {
        let Some(document) = document_key(key) else { return Ok(()) };
        if self.restoring.unrestored.has(key) {
            self.restore_documents(now, shard, &[document])?;
        }
        Ok(())
    }

    /// The keys of the documents in a block that are not restored. A server lists those of further blocks with the same request: each
    /// request takes a round trip, in which the shard does not serve.
    fn keys_in(&mut self, nf: Nf, block: BlockId) -> Result<Vec<DocumentKey>, Unreachable> {
        let Some((kind, _)) = KINDS.into_iter().find(|(_, of)| *of == nf) else { return Ok(Vec::new()) };
        if self.engine.answers_at_once() {
            return self.engine.keys(kind, block.number()).map_err(Unreachable);
        }
        let Restoring { listed, unrestored, .. } = &mut self.restoring;
        if let Some(keys) = listed.remove(&(nf, block)) {
            return Ok(keys);
        }
        let is_other = |other: &BlockId| *other != block && !listed.contains_key(&(nf, *other));
        let others = unrestored.blocks_of(nf).filter(is_other).take(BLOCKS_AT_ONCE - 1);
        let blocks: Vec<BlockId> = [block].into_iter().chain(others).collect();
        let places: Vec<_> = blocks.iter().map(|block| (kind, block.number())).collect();
        let keys = self.engine.list(&places).map_err(Unreachable)?;
        listed.extend(blocks.into_iter().map(|block| ((nf, block), Vec::new())));
        for key in keys {
            let of_block = BlockId::new(key.block).and_then(|block| listed.get_mut(&(nf, block)));
            of_block.into_iter().for_each(|keys| keys.push(key));
        }
        Ok(listed.remove(&(nf, block)).unwrap_or_default())
    }

    /// Restores contexts, except those that are restored.
    fn restore_documents(
        &mut self,
        now: Instant,
        shard: &mut Shard,
        places: &[DocumentKey],
    ) -> Result<(), Unreachable> {
        // After the last attempt one by one, so that a document that cannot be read fails alone.
        let at_once = if self.restoring.attempts < MOST_ATTEMPTS { SLICE } else { 1 };
        for places in places.chunks(at_once) {
            let is_wanted =
                |key: StoredKey| !ON_DEMAND.contains(&key.nf) || self.restoring.unrestored.has(key);
            let wanted: Vec<_> =
                places.iter().copied().filter(|place| stored_key(*place).is_some_and(is_wanted)).collect();
            let mut found = Vec::with_capacity(wanted.len());
            self.engine.read_each(&wanted, &mut |place, read| found.push((place, read)));
            for (place, read) in found {
                self.restore_result(now, shard, place, read)?;
            }
        }
        Ok(())
    }

    fn restore_result(
        &mut self,
        now: Instant,
        shard: &mut Shard,
        place: DocumentKey,
        read: ReadResult,
    ) -> Result<(), Unreachable> {
        let Some(key) = stored_key(place) else { return Ok(()) };
        match read {
            Ok(Some(document)) => self.restore_read(now, shard, (key, place), &document),
            // It ended before the restart.
            Ok(None) => {}
            Err(error) if error.is_temporary() && self.restoring.attempts < MOST_ATTEMPTS => {
                self.restoring.attempts += 1;
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
        self.restoring.listed.clear();
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
