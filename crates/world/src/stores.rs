//! The runtime's own store of contexts ([`ContextStore`]) in a world, over a simulated server. Effects leave when the changes of their
//! turn are written, as in the runtime.

use crate::plan::Residency;
use crate::server::{Server, SlowEngine};
use pith_nf::fabric::{Keeps, Portion, Shard, ShardEffect, ShardInput};
use pith_nf::kit::document::Document;
use pith_nf::kit::{Fate, Instant, StoredKey};
use pith_runtime::lease::LeaseGuard;
use pith_runtime::residency::{
    ContextStore, DocumentSecret, Engine, Loaded, Sequence, Statistics, StoreHealth, StoreMode, WriteForm,
    WriteTime,
};
use pith_types::{BlockId, BlockMove};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

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
    /// The process, and the scope of its fences: each has NFs of its own, with blocks of the same numbers. Instances of a set have one scope.
    process: (usize, u16),
    /// By shard.
    stores: BTreeMap<usize, OfShard>,
}

struct OfShard {
    store: ContextStore,
    health: Arc<StoreHealth>,
    /// When the store's next turn is scheduled.
    next: Option<Instant>,
    /// Requests that the server has not executed, if it has a latency.
    queue: Option<SlowEngine>,
    /// Effects of former turns whose writes are not durable yet, with the numbers of these writes.
    unwritten: VecDeque<(Sequence, Vec<ShardEffect>)>,
    /// The write of the last turn.
    last: Sequence,
}

impl OfShard {
    fn proceed(&self) {
        self.queue.iter().for_each(SlowEngine::proceed);
    }
}

impl Stores {
    pub(crate) const fn new(
        server: Server,
        process: (usize, u16),
        residency: Residency,
        form: WriteForm,
    ) -> Self {
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

    /// Makes the store of a new shard with these blocks, and gives the shard its contexts. `started`: seconds since 1970.
    pub(crate) fn restore(
        &mut self,
        (now, started): (Instant, u64),
        (shard, blocks): (usize, Vec<BlockId>),
        (on_demand, lease): (bool, Option<LeaseGuard>),
        to: &mut Shard,
    ) -> Result<(), String> {
        let queue = self.server.slow_engine(self.process);
        let engine: Box<dyn Engine> = match &queue {
            Some(queue) => Box::new(queue.clone()),
            None => Box::new(self.server.engine(self.process)),
        };
        let health = Arc::new(StoreHealth::default());
        let store = ContextStore::new(blocks, engine, self.mode(), started, Arc::clone(&health));
        let mut store = store.with_lease(lease);
        let secret = DocumentSecret::of_number(1);
        match self.residency {
            Residency::Shared => store = store.with_shared_documents(secret),
            Residency::Embedded => store = store.with_embedded_documents(secret),
            _ => {}
        }
        if on_demand {
            store.begin_restoring(now, to);
        } else {
            store.restore(now, to);
        }
        let unreadable = health.unreadable();
        let (unwritten, last) = (VecDeque::new(), Sequence(0));
        self.stores.insert(shard, OfShard { store, health, next: None, queue, unwritten, last });
        if unreadable > 0 { Err(format!("{unreadable} contexts")) } else { Ok(()) }
    }

    /// Inputs of a shard wait for contexts.
    pub(crate) fn want(&mut self, shard: usize, portion: Portion) {
        if let Some(it) = self.stores.get_mut(&shard) {
            it.store.want(portion);
        }
    }

    /// Whether contexts for which inputs wait can be restored.
    pub(crate) fn has_wanted(&self, shard: usize) -> bool {
        self.stores.get(&shard).is_some_and(|it| it.store.has_wanted())
    }

    /// Whether contexts of a shard are not restored.
    pub(crate) fn is_restoring(&self, shard: usize) -> bool {
        self.stores.get(&shard).is_some_and(|it| it.store.is_restoring())
    }

    /// Whether contexts of a shard are not restored, and the store can be read.
    pub(crate) fn is_restoring_now(&self, shard: usize) -> bool {
        self.stores.get(&shard).is_some_and(|it| it.store.is_restoring_now())
    }

    /// Restores what inputs wait for, or a slice of the other contexts. Returns what the shard receives as restored.
    pub(crate) fn restore_next(
        &mut self,
        now: Instant,
        shard: usize,
        of: &mut Shard,
    ) -> Result<Vec<Portion>, String> {
        let Some(it) = self.stores.get_mut(&shard) else { return Ok(Vec::new()) };
        let before = it.health.unreadable();
        let restored = it.store.restore_next(now, of);
        match it.health.unreadable() - before {
            0 => Ok(restored),
            unreadable => Err(format!("{unreadable} contexts")),
        }
    }

    /// The messages that a shard keeps for a run after a panic.
    pub(crate) fn keeps(&self) -> Keeps {
        self.stores.values().next().map_or(Keeps::Nothing, |it| it.store.keeps())
    }

    /// Another run of a shard takes the place of one that panicked.
    pub(crate) fn start_run(&mut self, shard: usize, of: &mut Shard) {
        if let Some(it) = self.stores.get_mut(&shard) {
            it.store.start_run(of);
        }
    }

    /// Gives the next run of a shard its contexts; those without a fate are deleted.
    pub(crate) fn take_over(
        &mut self,
        now: Instant,
        shard: usize,
        to: &mut Shard,
        fate: impl Fn(StoredKey) -> Option<Fate>,
    ) -> Result<(), String> {
        let Some(it) = self.stores.get_mut(&shard) else { return Ok(()) };
        let before = it.health.unreadable();
        it.store.take_over(now, to, fate);
        match it.health.unreadable() - before {
            0 => Ok(()),
            unreadable => Err(format!("{unreadable} contexts")),
        }
    }

    /// Takes the document that an input brings.
    pub(crate) fn receive(&mut self, shard: usize, input: &mut ShardInput) {
        if let Some(it) = self.stores.get_mut(&shard) {
            it.store.receive(input);
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

    /// A shard gets blocks that another instance had, and their contexts. `false`: later.
    pub(crate) fn adopt(
        &mut self,
        now: Instant,
        shard: usize,
        of: &mut Shard,
        changes: &[BlockMove],
    ) -> bool {
        self.stores.get_mut(&shard).is_none_or(|it| it.store.adopt(now, of, changes))
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
        let Some(it) = self.stores.get_mut(&shard) else { return Vec::new() };
        it.proceed();
        it.store.take_loaded(now, of)
    }

    /// Stores what a turn changed. Returns whether that was anything, and when the store is due again, if that must be scheduled.
    pub(crate) fn end_turn(
        &mut self,
        now: Instant,
        shard: usize,
        of: &mut Shard,
        effects: &mut Vec<ShardEffect>,
    ) -> (bool, Option<Instant>) {
        let Some(it) = self.stores.get_mut(&shard) else { return (false, None) };
        it.proceed();
        let OfShard { store, health, next, queue, last, unwritten, .. } = it;
        let (before, accepted) = (health.statistics().writes, *last);
        store.note_input();
        *last = store.end_turn(now, of, effects);
        store.withhold(of, unwritten.iter_mut().map(|(_, effects)| effects).chain([effects]));
        let wrote = health.statistics().writes > before || *last > accepted;
        let answer = queue.as_ref().and_then(SlowEngine::next);
        let due = store.next_turn().into_iter().chain(answer).min();
        let is_scheduled = next.is_some_and(|next| next > now && due.is_some_and(|due| next <= due));
        if !is_scheduled {
            *next = due;
        }
        (wrote, due.filter(|_| !is_scheduled))
    }

    /// The effects that may leave: those of former turns whose writes are durable, and those of this turn, unless its write is not.
    pub(crate) fn release(&mut self, shard: usize, effects: Vec<ShardEffect>) -> Vec<ShardEffect> {
        let Some(it) = self.stores.get_mut(&shard) else { return effects };
        if it.store.is_fenced() {
            it.unwritten.clear();
            return Vec::new();
        }
        it.unwritten.push_back((it.last, effects));
        if it.store.has_no_lease() {
            return Vec::new();
        }
        let durable = it.store.durable();
        let mut released = Vec::new();
        while let Some((_, effects)) = it.unwritten.pop_front_if(|(written, _)| *written <= durable) {
            released.extend(effects);
        }
        released
    }

    /// Whether changes of the process are not stored yet.
    pub(crate) fn is_behind(&self) -> bool {
        let is_behind =
            |it: &OfShard| it.store.is_failing() || it.store.is_restoring() || it.store.next_turn().is_some();
        self.stores.values().any(|it| !it.unwritten.is_empty() || is_behind(it))
    }

    /// The process ends.
    pub(crate) fn end(&mut self) {
        self.stores.values().filter_map(|it| it.queue.as_ref()).for_each(SlowEngine::end);
        self.stores.clear();
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
