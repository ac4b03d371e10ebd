//! The runtime's own store of contexts ([`ContextStore`]) in a world, over an engine in memory that may fail and that answers reads
//! later.

use crate::plan::Residency;
use pith_nf::fabric::{Shard, ShardEffect, ShardInput};
use pith_nf::kit::document::Document;
use pith_nf::kit::{Instant, StoredKey};
use pith_runtime::residency::{
    Appended, Batch, ContextStore, Document as StoredDocument, DocumentError, DocumentKey, DocumentKind,
    DocumentSecret, Due, Engine, EngineError, Loaded, MemoryEngine, MemoryStore, OwnerVersion, ReadResult,
    Sequence, Statistics, StoreHealth, StoreMode, UnixMillis, WriteForm, WriteTime,
};
use pith_types::{BlockId, BlockOwner, InstanceId, ShardId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The documents of all processes of a world: one server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Server {
    documents: MemoryStore,
    is_gone: Arc<AtomicBool>,
}

impl Server {
    /// Whether it answers.
    pub(crate) fn set_gone(&self, is_gone: bool) {
        self.is_gone.store(is_gone, Ordering::Relaxed);
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    /// The documents.
    pub(crate) fn documents(&self) -> Vec<DocumentKey> {
        let mut documents = Vec::new();
        for kind in DocumentKind::ALL {
            for block in BlockId::all() {
                let mut engine = self.documents.engine();
                // An engine in memory has no errors.
                let _ = engine.read_block(kind, block.number(), &mut |key, _| documents.push(key));
            }
        }
        documents
    }
}

/// The engine of one shard.
struct Remote {
    inner: MemoryEngine,
    is_gone: Arc<AtomicBool>,
    /// What was read and not returned yet.
    reads: Vec<(DocumentKey, ReadResult)>,
}

impl Remote {
    fn check(&self) -> Result<(), EngineError> {
        if self.is_gone.load(Ordering::Relaxed) {
            return Err(EngineError::Remote { server: "memory".into(), reason: "an outage".into() });
        }
        Ok(())
    }
}

impl Engine for Remote {
    fn append(&mut self, batch: &Batch) -> Result<Appended, EngineError> {
        self.check()?;
        self.inner.append(batch)
    }

    fn read(&mut self, key: DocumentKey) -> ReadResult {
        let failed = |error: EngineError| DocumentError::Remote { key, reason: error.to_string() };
        self.check().map_err(failed)?;
        self.inner.read(key)
    }

    fn read_block(
        &mut self,
        kind: DocumentKind,
        block: u16,
        visit: &mut dyn FnMut(DocumentKey, Result<StoredDocument, DocumentError>),
    ) -> Result<(), EngineError> {
        self.check()?;
        self.inner.read_block(kind, block, visit)
    }

    fn due(&mut self, block: u16, until: UnixMillis, limit: usize) -> Result<Vec<Due>, EngineError> {
        self.inner.due(block, until, limit)
    }

    fn fence(&mut self, block: u16, owner: OwnerVersion) -> Result<(), EngineError> {
        self.inner.fence(block, owner)
    }

    fn fenced_below(&mut self, block: u16) -> Result<OwnerVersion, EngineError> {
        self.inner.fenced_below(block)
    }

    fn durable(&self) -> Sequence {
        self.inner.durable()
    }

    fn begin_read(&mut self, key: DocumentKey) -> Option<ReadResult> {
        let read = self.read(key);
        self.reads.push((key, read));
        None
    }

    fn take_reads(&mut self) -> Vec<(DocumentKey, ReadResult)> {
        std::mem::take(&mut self.reads)
    }

    fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }
}

/// What the stores of contexts have done since their processes started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreOperations {
    /// Documents read.
    pub reads: u64,
    /// Documents replaced, updated or deleted.
    pub writes: u64,
    /// Requests to the store.
    pub requests: u64,
    /// Documents that requests of other processes brought.
    pub embedded: u64,
    /// Documents in requests that were not used.
    pub refused: u64,
}

impl StoreOperations {
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            requests: self.requests + other.requests,
            embedded: self.embedded + other.embedded,
            refused: self.refused + other.refused,
        }
    }
}

/// The stores of a process's shards.
pub(crate) struct Stores {
    server: Server,
    residency: Residency,
    form: WriteForm,
    /// The process: each has NFs of its own, with blocks of the same numbers.
    process: u16,
    /// By shard.
    stores: BTreeMap<usize, OfShard>,
}

struct OfShard {
    store: ContextStore,
    health: Arc<StoreHealth>,
    /// When the store's next turn is scheduled.
    next: Option<Instant>,
}

impl Stores {
    pub(crate) const fn new(server: Server, process: u16, residency: Residency, form: WriteForm) -> Self {
        Self { server, process, residency, form, stores: BTreeMap::new() }
    }

    fn mode(&self) -> StoreMode {
        let time = if self.residency == Residency::Soft { WriteTime::Later } else { WriteTime::BeforeSends };
        StoreMode {
            form: self.form,
            is_procedural: self.residency == Residency::Procedural,
            drops_copies: !matches!(
                self.residency,
                Residency::Durable | Residency::Procedural | Residency::Soft
            ),
            ..StoreMode::of_time(time)
        }
    }

    /// Makes the store of a new shard, and gives the shard its contexts. `started`: seconds since 1970.
    pub(crate) fn restore(
        &mut self,
        (now, started): (Instant, u64),
        (shard, shards): (usize, usize),
        to: &mut Shard,
    ) -> Result<(), String> {
        let engine = Remote {
            inner: self.server.documents.engine_in(self.process),
            is_gone: Arc::clone(&self.server.is_gone),
            reads: Vec::new(),
        };
        let owner = BlockOwner { instance: InstanceId(0), shard: ShardId(shard as u8) };
        let blocks = crate::network::owners(shards).blocks_of(owner).collect();
        let health = Arc::new(StoreHealth::default());
        let mut store =
            ContextStore::new(blocks, Box::new(engine), self.mode(), started, Arc::clone(&health));
        let secret = DocumentSecret::of_number(1);
        match self.residency {
            Residency::Shared => store = store.with_shared_documents(secret),
            Residency::Embedded => store = store.with_embedded_documents(secret),
            _ => {}
        }
        store.restore(now, to);
        let unreadable = health.unreadable();
        self.stores.insert(shard, OfShard { store, health, next: None });
        if unreadable > 0 { Err(format!("{unreadable} contexts")) } else { Ok(()) }
    }

    /// Takes the document that an input brings.
    pub(crate) fn open_embedded(&mut self, shard: usize, input: &mut ShardInput) {
        if let Some(it) = self.stores.get_mut(&shard) {
            it.store.open_embedded(input);
        }
    }

    /// Whether all writes of a shard are made.
    pub(crate) fn is_settled(&self, shard: usize) -> bool {
        self.stores.get(&shard).is_none_or(|it| it.store.is_settled())
    }

    /// A shard gets a block.
    pub(crate) fn take_block(&mut self, now: Instant, shard: usize, of: &mut Shard, block: BlockId) {
        if let Some(it) = self.stores.get_mut(&shard) {
            it.store.take_block(now, of, block);
        }
    }

    /// A shard has passed a block.
    pub(crate) fn pass_block(&mut self, shard: usize, block: BlockId) {
        if let Some(it) = self.stores.get_mut(&shard) {
            it.store.pass_block(block);
        }
    }

    /// Begins to read a context.
    pub(crate) fn load(&mut self, now: Instant, shard: usize, of: &mut Shard, key: StoredKey) {
        if let Some(it) = self.stores.get_mut(&shard) {
            it.store.load(now, of, key);
        }
    }

    /// Contexts that were read.
    pub(crate) fn take_loaded(&mut self, now: Instant, shard: usize, of: &mut Shard) -> Vec<Loaded> {
        self.stores.get_mut(&shard).map(|it| it.store.take_loaded(now, of)).unwrap_or_default()
    }

    /// Stores what a turn changed. Returns whether that was anything, and when the store is due again, if that must be scheduled.
    pub(crate) fn end_turn(
        &mut self,
        now: Instant,
        shard: usize,
        of: &mut Shard,
        effects: &mut [ShardEffect],
    ) -> (bool, Option<Instant>) {
        let Some(OfShard { store, health, next }) = self.stores.get_mut(&shard) else { return (false, None) };
        let before = health.statistics().writes;
        store.note_input();
        store.end_turn(now, of, effects);
        let due = store.next_turn();
        let is_scheduled = next.is_some_and(|next| next > now && due.is_some_and(|due| next <= due));
        if !is_scheduled {
            *next = due;
        }
        (health.statistics().writes > before, due.filter(|_| !is_scheduled))
    }

    /// What the stores have done.
    pub(crate) fn operations(&self) -> StoreOperations {
        let each = self.stores.values().map(|it| {
            let Statistics { reads, writes, requests, .. } = it.health.statistics();
            let (embedded, refused) = (it.health.embedded(), it.health.embedded_refused());
            StoreOperations { reads, writes, requests, embedded, refused }
        });
        each.fold(StoreOperations::default(), StoreOperations::plus)
    }

    /// All contexts of a shard that have a document.
    pub(crate) fn contexts(&mut self, shard: usize) -> Vec<(StoredKey, Document)> {
        self.stores.get_mut(&shard).map(|it| it.store.contexts()).unwrap_or_default()
    }
}
