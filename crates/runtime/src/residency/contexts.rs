//! The contexts in the blocks of a shard as documents: what changed in a turn is written with one request, before the sends of the turn
//! (`durable`), or some milliseconds later (`soft`).
//!
//! ```text
//!  inputs ──> Shard.handle ──> effects, held
//!  end of the turn ──> Shard.store_contexts ──> Batch ──> Engine::append ──> effects leave
//!  start ──> Engine::read_block ──> Shard.restore_context, once a document
//! ```
//!
//! If the engine fails (disk full), the contexts count as changed, and serving goes on: the next attempt is a second later.

use super::{
    Batch, Document as StoredDocument, DocumentError, DocumentKey, DocumentKind, Engine, EngineError, Head,
    MAX_BATCH, OwnerVersion, Revision, Sequence,
};
use pith_nf::fabric::Shard;
use pith_nf::kit::document::Document;
use pith_nf::kit::{DocumentSink, Duration, Instant, Nf, StoreScope, StoredKey, Tracking};
use pith_types::{BlockId, ContextId};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The longest time until a change is written with `soft`: the registration of a UE under load takes about as long, so that its
/// context is written once.
const SOFT_DELAY: Duration = Duration::from_millis(200);

/// Downlink NAS COUNTs that a document reserves with `soft`: a UE gets fewer messages within [`SOFT_DELAY`], except in a
/// registration.
const SOFT_RESERVED_COUNTS: u32 = 16;

/// Time until the next attempt after the engine failed.
const RETRY: Duration = Duration::from_secs(1);

/// Kinds of documents of NFs that store contexts, in the order in which they are restored.
const KINDS: [(DocumentKind, Nf); 3] =
    [(DocumentKind::Pcf, Nf::Pcf), (DocumentKind::Smf, Nf::Smf), (DocumentKind::Amf, Nf::Amf)];

/// The only version of the layout of sections: as the NFs pack them.
const LAYOUT: u16 = 1;

/// When changes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteTime {
    /// Before the sends of the turn.
    BeforeSends,
    /// At most [`SOFT_DELAY`] later, several turns together.
    Later,
}

/// The state of a process's store, for `pith status`.
#[derive(Debug, Default)]
pub struct StoreHealth {
    error: Mutex<Option<String>>,
    restored: AtomicU64,
    unreadable: AtomicU64,
}

impl StoreHealth {
    /// Why contexts are not stored at present.
    pub fn error(&self) -> Option<String> {
        self.lock().clone()
    }

    /// Contexts that were restored at the start.
    pub fn restored(&self) -> u64 {
        self.restored.load(Ordering::Relaxed)
    }

    /// Contexts that could not be restored.
    pub fn unreadable(&self) -> u64 {
        self.unreadable.load(Ordering::Relaxed)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_success(&self) {
        if self.lock().take().is_some() {
            tracing::info!("contexts are stored again");
        }
    }

    fn note_failure(&self, error: &EngineError) {
        let former = self.lock().replace(error.to_string());
        if former.is_none() {
            tracing::error!("contexts are not stored, a restart would lose the latest changes: {error}");
        }
    }
}

/// The store of one shard's contexts.
pub struct ContextStore {
    blocks: Vec<BlockId>,
    engine: Box<dyn Engine>,
    time: WriteTime,
    health: Arc<StoreHealth>,
    batch: Batch,
    /// The contexts in the batch.
    keys: Vec<StoredKey>,
    revision: u64,
    last: Sequence,
    has_changes: bool,
    /// When changes are written next, with [`WriteTime::Later`].
    due: Instant,
    /// When the next attempt is made after a failure.
    retry: Option<Instant>,
}

impl ContextStore {
    /// The store of a shard with these blocks. `started` is the wall clock at the process's start, in seconds since 1970.
    pub fn new(
        blocks: Vec<BlockId>,
        engine: Box<dyn Engine>,
        time: WriteTime,
        started: u64,
        health: Arc<StoreHealth>,
    ) -> Self {
        Self {
            blocks,
            engine,
            time,
            health,
            batch: Batch::new(OwnerVersion(0)),
            keys: Vec::new(),
            // Higher than in any former run, unless the clock was set back; see `restore`.
            revision: started << 20,
            last: Sequence(0),
            has_changes: false,
            due: Instant::default(),
            retry: None,
        }
    }

    /// Gives a new shard the contexts of its blocks.
    pub fn restore(&mut self, now: Instant, shard: &mut Shard) {
        self.track(shard);
        for (kind, nf) in KINDS {
            // One block at a time is in memory twice.
            for block in self.blocks.clone() {
                for (key, read) in self.read_block(kind, block) {
                    match read {
                        Ok(document) => self.restore_one(now, shard, nf, key, &document),
                        Err(error) => self.note_unreadable(&error),
                    }
                }
            }
        }
    }

    /// The documents of a kind in a block.
    fn read_block(
        &mut self,
        kind: DocumentKind,
        block: BlockId,
    ) -> Vec<(DocumentKey, Result<StoredDocument, DocumentError>)> {
        let mut found = Vec::new();
        let visit = &mut |key, read| found.push((key, read));
        if let Err(error) = self.engine.read_block(kind, block.number(), visit) {
            tracing::error!("the contexts of block {block} can't be read, their UEs register again: {error}");
        }
        found
    }

    /// An empty shard takes the place of one that panicked: its contexts end.
    pub fn start_empty(&mut self, shard: &mut Shard) {
        self.track(shard);
        for (kind, _) in KINDS {
            for block in self.blocks.clone() {
                let keys: Vec<_> = self.read_block(kind, block).into_iter().map(|(key, _)| key).collect();
                self.delete_all(&keys);
            }
        }
        self.batch.reset(OwnerVersion(0));
    }

    fn delete_all(&mut self, keys: &[DocumentKey]) {
        for part in keys.chunks(MAX_BATCH) {
            self.batch.reset(OwnerVersion(0));
            for key in part {
                self.revision += 1;
                self.batch.delete(*key, Revision(self.revision));
            }
            if let Err(error) = self.engine.append(&self.batch) {
                self.health.note_failure(&error);
            }
        }
    }

    fn track(&self, shard: &mut Shard) {
        let reserved_counts = if self.time == WriteTime::Later { SOFT_RESERVED_COUNTS } else { 0 };
        let is_stored = |nf| KINDS.iter().any(|(_, of)| *of == nf);
        shard.track_contexts(|nf| is_stored(nf).then_some(Tracking { reserved_counts, whole: false }));
    }

    fn restore_one(
        &mut self,
        now: Instant,
        shard: &mut Shard,
        nf: Nf,
        key: DocumentKey,
        document: &StoredDocument,
    ) {
        self.revision = self.revision.max(document.revision.0);
        if document.layout != LAYOUT {
            let layout = document.layout;
            let error = format!(
                "{key} has layout {layout}, this program reads {LAYOUT}: start the program that wrote it; until then its UE registers again"
            );
            return self.note_unreadable(&error);
        }
        let Some(block) = BlockId::new(key.block) else { return };
        let stored = StoredKey { nf, id: ContextId { block, number: key.number } };
        let packed = Document::of_sections(nf, document.sections().map(|(_, octets)| octets));
        match shard.restore_context(now, stored, packed.octets(), document.is_stale) {
            Ok(()) => {
                self.health.restored.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => {
                self.note_unreadable(&format_args!("{key} is unknown, its UE registers again: {error}"));
            }
        }
    }

    fn note_unreadable(&self, error: &dyn std::fmt::Display) {
        self.health.unreadable.fetch_add(1, Ordering::Relaxed);
        tracing::error!("{error}");
    }

    /// The shard has handled an input, which may have changed contexts.
    pub const fn note_input(&mut self) {
        self.has_changes = true;
    }

    /// Writes what must be written now. Returns the number of the write that must be durable before the turn's sends leave
    /// ([`ContextStore::durable`]): with `soft` none.
    pub fn end_turn(&mut self, now: Instant, shard: &mut Shard) -> Sequence {
        if self.has_changes && self.retry.is_none_or(|retry| now >= retry) {
            self.write_scope(now, shard);
        }
        match self.time {
            WriteTime::BeforeSends => self.last,
            WriteTime::Later => Sequence(0),
        }
    }

    fn write_scope(&mut self, now: Instant, shard: &mut Shard) {
        let scope = match self.time {
            WriteTime::Later if now < self.due => StoreScope::Required,
            _ => StoreScope::Changed,
        };
        self.write(now, shard, scope);
        if scope == StoreScope::Changed {
            self.has_changes = self.retry.is_some();
            self.due = now + SOFT_DELAY;
        }
    }

    /// Writes all changes, at the end of the process.
    pub fn finish(&mut self, now: Instant, shard: &mut Shard) {
        self.write(now, shard, StoreScope::Changed);
    }

    /// What was written up to this number survives what the engine promises.
    pub fn durable(&self) -> Sequence {
        self.engine.durable()
    }

    /// When the next turn is due for the store.
    pub fn next_turn(&self) -> Option<Instant> {
        let due = (self.has_changes && self.time == WriteTime::Later).then_some(self.due);
        self.retry.or(due)
    }

    fn write(&mut self, now: Instant, shard: &mut Shard, scope: StoreScope) {
        let mut turn = Turn { store: self, failed: Vec::new(), error: None };
        shard.store_contexts(scope, &mut turn);
        turn.append();
        let Turn { failed, error, store } = turn;
        match error {
            Some(error) => {
                failed.into_iter().for_each(|key| shard.store_failed(key));
                store.health.note_failure(&error);
                store.retry = Some(now + RETRY);
            }
            None if store.retry.take().is_some() => store.health.note_success(),
            None => {}
        }
    }
}

/// The changes of one turn.
struct Turn<'a> {
    store: &'a mut ContextStore,
    failed: Vec<StoredKey>,
    error: Option<EngineError>,
}

impl Turn<'_> {
    /// Writes the batch. After a failure nothing more is written in this turn.
    fn append(&mut self) {
        let store = &mut *self.store;
        if store.batch.is_empty() {
            return;
        }
        let result = match self.error {
            Some(_) => None,
            None => Some(store.engine.append(&store.batch)),
        };
        match result {
            Some(Ok(appended)) => store.last = appended.sequence,
            Some(Err(error)) => {
                self.failed.append(&mut store.keys);
                self.error = Some(error);
            }
            None => self.failed.append(&mut store.keys),
        }
        store.keys.clear();
        store.batch.reset(OwnerVersion(0));
    }

    /// Makes room for a change; returns its document and revision, if documents have such a key.
    fn next(&mut self, key: StoredKey) -> Option<(DocumentKey, Revision)> {
        if self.store.batch.len() >= MAX_BATCH {
            self.append();
        }
        let kind = KINDS.iter().find(|(_, nf)| *nf == key.nf).map(|(kind, _)| *kind)?;
        let document = DocumentKey::new(kind, key.id.block.number(), key.id.number)?;
        self.store.revision += 1;
        self.store.keys.push(key);
        Some((document, Revision(self.store.revision)))
    }
}

impl DocumentSink for Turn<'_> {
    fn write(&mut self, key: StoredKey, document: &Document) {
        let Some((place, revision)) = self.next(key) else { return };
        let head = Head { key: place, revision, layout: LAYOUT, deadline: None };
        let mut writer = self.store.batch.replace(head);
        for (id, octets) in document.sections() {
            writer.section(id, octets);
        }
    }

    fn delete(&mut self, key: StoredKey) {
        if let Some((place, revision)) = self.next(key) {
            self.store.batch.delete(place, revision);
        }
    }
}

#[cfg(test)]
mod tests;
