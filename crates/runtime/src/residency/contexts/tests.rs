//! The store of a shard's contexts, with an NF whose contexts are numbers.

mod on_demand;

use super::*;
use crate::residency::{Appended, Due, MemoryEngine, MemoryStore, SectionId, Statistics, UnixMillis};
use crate::shard::{HeldEffects, Outside};
use pith_nf::fabric::ShardEffect;
use pith_nf::fabric::{Agent, AgentConfig, ShardInput};
use pith_nf::kit::document::{Section, Sections, UnpackError, Writer};
use pith_nf::kit::{
    Input, Level, NetworkFunction, Order, Outbox, ReferenceKey, References, Tag, Timer, TimerKey, Tracker,
};
use pith_pfcp::Message;
use pith_pfcp::ie::Cause;
use pith_pfcp::message::SessionModificationResponse;
use pith_sbi::{ApiRoot, Scheme};
use pith_types::{BlockOwner, InstanceId, OwnerMap, ShardId};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicU64, Ordering};

const VALUE: Section = Section { id: 1, name: "value", version: 1 };
const SECTIONS: &[Section] = &[VALUE];

/// Contexts from that number on are in use at gNBs.
const IN_USE: u32 = 1_000_000;

/// Contexts of these numbers are of UEs without a SUPI.
const WITHOUT_SUPI: Range<u32> = 900..1000;

/// Each hundred numbers are of one UE, in all blocks.
fn ue_of(id: ContextId) -> Option<Supi> {
    let imsi = format!("99970{:010}", id.number / 100);
    (!WITHOUT_SUPI.contains(&id.number)).then(|| Supi::from_imsi(&imsi).unwrap())
}

/// Contexts by their ids as numbers. A timer changes the context of its owner; `LostSessions` ends it, and `Expiry` must be stored at once, and `T3560`
/// before the messages of its turn leave.
#[derive(Default)]
struct Numbers {
    values: Arc<Mutex<BTreeMap<u64, u64>>>,
    /// Contexts whose copies are dropped.
    absent: BTreeSet<u64>,
    tracker: Tracker,
}

impl NetworkFunction for Numbers {
    fn handle(&mut self, now: Instant, input: Input, _out: &mut Outbox) {
        let Input::Timer(TimerKey { owner, timer }) = input else { return };
        let id = ContextId::from_u64(owner).unwrap();
        let mut values = self.values.lock().unwrap();
        if timer == Timer::LostSessions {
            values.remove(&owner);
            return self.tracker.note_end(id, ProcedureName::Deregistration);
        }
        if timer == Timer::T3513 {
            // A digit for each input, in their order.
            *values.entry(owner).or_default() *= 10;
            *values.entry(owner).or_default() += now.as_micros() / 1000 % 10;
        } else {
            values.insert(owner, now.as_micros());
        }
        self.tracker.note_change(id, Some(ProcedureName::Registration));
        if timer == Timer::Expiry {
            self.tracker.require(id, None);
        }
        if timer == Timer::T3560 {
            self.tracker.await_stored(id, None);
        }
    }

    fn tracker(&self) -> Option<&Tracker> {
        Some(&self.tracker)
    }

    fn tracker_mut(&mut self) -> Option<&mut Tracker> {
        Some(&mut self.tracker)
    }

    fn store_contexts(&mut self, scope: StoreScope, sink: &mut dyn DocumentSink) {
        for (id, procedure) in self.tracker.take(scope) {
            sink.begin_procedure(procedure);
            let stored = StoredKey { nf: Nf::Amf, id };
            if self.absent.contains(&id.to_u64()) {
                continue;
            }
            match self.values.lock().unwrap().get(&id.to_u64()) {
                Some(value) => {
                    let mut writer = Writer::new(Nf::Amf, &());
                    writer.section(&VALUE, |writer| writer.number(*value));
                    if id.number >= IN_USE {
                        sink.restore_first();
                    }
                    sink.write(stored, ue_of(id).as_ref(), &writer.finish().unwrap());
                    self.tracker.note_stored(id, 0);
                }
                None if self.tracker.note_deleted(id) => sink.delete(stored),
                None => {}
            }
        }
    }

    /// The value of the context of that number.
    fn operate(&mut self, _now: Instant, what: &Order, _out: &mut Outbox, list: &mut Vec<serde_json::Value>) {
        let Order::Capacity(number) = what else { return };
        let value = self.values.lock().unwrap().get(&u64::from(*number)).copied();
        list.push(serde_json::json!(value));
    }

    fn absent_for(&self, order: &Order) -> Option<ContextId> {
        let Order::Capacity(number) = order else { return None };
        let number = u64::from(*number);
        ContextId::from_u64(number).filter(|_| self.absent.contains(&number))
    }

    fn context_of(&self, input: &Input) -> Option<ContextId> {
        let Input::Timer(TimerKey { owner, .. }) = input else { return None };
        ContextId::from_u64(*owner)
    }

    fn is_resident(&self, id: ContextId) -> bool {
        !self.absent.contains(&id.to_u64())
    }

    fn drop_context(&mut self, id: ContextId) -> bool {
        let is_dropped = self.tracker.is_current(id);
        if is_dropped {
            self.values.lock().unwrap().remove(&id.to_u64());
            self.absent.insert(id.to_u64());
        }
        is_dropped
    }

    fn put_context(
        &mut self,
        _now: Instant,
        id: ContextId,
        document: &[u8],
        _out: &mut Outbox,
    ) -> Result<(), UnpackError> {
        let value = Sections::of(document, Nf::Amf, SECTIONS, &())?.unpack(&VALUE)?;
        if self.absent.remove(&id.to_u64()) {
            self.values.lock().unwrap().insert(id.to_u64(), value);
        }
        Ok(())
    }

    fn forget_context(&mut self, _now: Instant, id: ContextId, _out: &mut Outbox) {
        self.absent.remove(&id.to_u64());
    }

    fn restore_context(
        &mut self,
        _now: Instant,
        id: ContextId,
        document: &[u8],
        _is_stale: bool,
    ) -> Result<(), UnpackError> {
        let value = Sections::of(document, Nf::Amf, SECTIONS, &())?.unpack(&VALUE)?;
        self.values.lock().unwrap().insert(id.to_u64(), value);
        self.tracker.note_stored(id, 0);
        Ok(())
    }
}

/// A memory engine that may be full, or out of reach.
struct Disk {
    inner: MemoryEngine,
    is_full: Arc<AtomicBool>,
    /// Nothing can be written, read or listed.
    is_gone: Arc<AtomicBool>,
    /// What is durable, if not all that was written.
    flushed: Option<Arc<AtomicU64>>,
    claims: Claims,
}

/// How blocks are claimed.
#[derive(Clone, Copy)]
enum Claims {
    None,
    Blocks,
    /// The disk is full at the first attempt.
    OnFullDisk,
}

impl Disk {
    fn reach(&self) -> Result<(), EngineError> {
        if self.is_gone.load(Ordering::Relaxed) {
            return Err(EngineError::Remote { server: "disk".into(), reason: "gone".into() });
        }
        Ok(())
    }
}

impl Engine for Disk {
    fn append(&mut self, batch: &Batch) -> Result<Appended, EngineError> {
        self.reach()?;
        if self.is_full.load(Ordering::Relaxed) {
            return Err(EngineError::Full(PathBuf::from("/full")));
        }
        self.inner.append(batch)
    }

    fn read(&mut self, key: DocumentKey) -> Result<Option<StoredDocument>, DocumentError> {
        if self.is_full.load(Ordering::Relaxed) || self.reach().is_err() {
            return Err(DocumentError::Remote { key, reason: "gone".into() });
        }
        self.inner.read(key)
    }

    fn read_sections(
        &mut self,
        key: DocumentKey,
        sections: &[SectionId],
    ) -> Result<Option<StoredDocument>, DocumentError> {
        self.inner.read_sections(key, sections)
    }

    fn read_block(
        &mut self,
        kind: DocumentKind,
        block: u16,
        visit: &mut dyn FnMut(DocumentKey, Result<StoredDocument, DocumentError>),
    ) -> Result<(), EngineError> {
        self.reach()?;
        self.inner.read_block(kind, block, visit)
    }

    fn due(&mut self, block: u16, until: UnixMillis, limit: usize) -> Result<Vec<Due>, EngineError> {
        self.inner.due(block, until, limit)
    }

    fn fence(&mut self, block: u16, owner: OwnerVersion) -> Result<(), EngineError> {
        self.inner.fence(block, owner)
    }

    fn fenced_below(&mut self, block: u16) -> Result<OwnerVersion, EngineError> {
        if self.is_full.load(Ordering::Relaxed) {
            return Err(EngineError::Paused("gone".into()));
        }
        self.inner.fenced_below(block)
    }

    /// Most tests look at the documents with further runs, which must not end the first.
    fn claim(&mut self, blocks: &[u16], step: u64) -> Result<OwnerVersion, EngineError> {
        match self.claims {
            Claims::None => Ok(OwnerVersion(0)),
            Claims::Blocks => self.inner.claim(blocks, step),
            Claims::OnFullDisk => {
                self.claims = Claims::Blocks;
                Err(EngineError::Full(PathBuf::from("/full")))
            }
        }
    }

    fn durable(&self) -> Sequence {
        self.flushed
            .as_ref()
            .map_or(self.inner.durable(), |flushed| Sequence(flushed.load(Ordering::Relaxed)))
    }

    fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }
}

/// One run of a process with one shard.
struct Run {
    shard: Shard,
    store: ContextStore,
    values: Arc<Mutex<BTreeMap<u64, u64>>>,
    health: Arc<StoreHealth>,
    is_full: Arc<AtomicBool>,
    /// The responses of orders.
    inspected: Vec<(u64, Vec<serde_json::Value>)>,
    is_gone: Arc<AtomicBool>,
}

fn at(millis: u64) -> Instant {
    Instant::from_micros(millis * 1000)
}

impl Run {
    fn start(documents: &MemoryStore, time: WriteTime) -> Self {
        Self::start_with(documents, time, None)
    }

    fn start_with(documents: &MemoryStore, time: WriteTime, flushed: Option<Arc<AtomicU64>>) -> Self {
        Self::of_blocks(documents, time, flushed, BlockId::all().collect())
    }

    fn of_blocks(
        documents: &MemoryStore,
        time: WriteTime,
        flushed: Option<Arc<AtomicU64>>,
        blocks: Vec<BlockId>,
    ) -> Self {
        Self::of_mode(documents, StoreMode::of_time(time), flushed, blocks)
    }

    fn of_mode(
        documents: &MemoryStore,
        mode: StoreMode,
        flushed: Option<Arc<AtomicU64>>,
        blocks: Vec<BlockId>,
    ) -> Self {
        Self::of_layout(documents, mode, flushed, (blocks, Claims::None), false)
    }

    fn of_owner(
        documents: &MemoryStore,
        mode: StoreMode,
        flushed: Option<Arc<AtomicU64>>,
        owner: (Vec<BlockId>, Claims),
    ) -> Self {
        Self::of_layout(documents, mode, flushed, owner, false)
    }

    fn of_layout(
        documents: &MemoryStore,
        mode: StoreMode,
        flushed: Option<Arc<AtomicU64>>,
        owner: (Vec<BlockId>, Claims),
        is_shared: bool,
    ) -> Self {
        let mut run = Self::without_contexts(documents, mode, flushed, owner, is_shared);
        run.store.restore(at(0), &mut run.shard);
        run
    }

    fn without_contexts(
        documents: &MemoryStore,
        mode: StoreMode,
        flushed: Option<Arc<AtomicU64>>,
        (blocks, claims): (Vec<BlockId>, Claims),
        is_shared: bool,
    ) -> Self {
        let numbers = Numbers::default();
        let values = Arc::clone(&numbers.values);
        let root = Arc::new(ApiRoot::new(Scheme::Http, "127.0.0.1:1"));
        let agent = Agent::new(AgentConfig {
            shard: 0,
            shards: 1,
            owner: BlockOwner::default(),
            owners: Arc::new(OwnerMap::of_instance(InstanceId(0), 1)),
            own_root: Arc::clone(&root),
            hosted: Vec::new(),
            nrf: root,
            fixed: BTreeMap::new(),
            forced_http: Default::default(),
            protected: Default::default(),
            references: References::new(&ReferenceKey::new([1; 32])),
        });
        let shard = Shard::new(vec![(Nf::Amf, Box::new(numbers))], agent, Level::Info);
        let health = Arc::new(StoreHealth::default());
        let (is_full, is_gone) = (Arc::default(), Arc::default());
        let inner = documents.engine();
        let engine =
            Disk { inner, is_full: Arc::clone(&is_full), is_gone: Arc::clone(&is_gone), flushed, claims };
        let mut store = ContextStore::new(blocks, Box::new(engine), mode, 1, Arc::clone(&health));
        if is_shared {
            store = store.with_shared_documents(DocumentSecret::of_number(7));
        }
        Self { shard, store, values, health, is_full, is_gone, inspected: Vec::new() }
    }

    fn input(&mut self, millis: u64, owner: u64, timer: Timer) {
        self.deliver(millis, owner, timer);
        self.end_turn(millis);
    }

    /// An input, without the end of the turn.
    fn deliver(&mut self, millis: u64, owner: u64, timer: Timer) {
        let key = TimerKey { owner, timer };
        self.handle(millis, ShardInput::Timer { nf: Nf::Amf, key });
    }

    fn handle(&mut self, millis: u64, input: ShardInput) {
        let mut effects = Vec::new();
        self.shard.handle(at(millis), input, &mut effects);
        for effect in effects {
            match effect {
                ShardEffect::Load { key } => self.store.load(at(millis), &mut self.shard, key),
                ShardEffect::Restore(portion) => self.store.want(portion),
                ShardEffect::Inspected { exchange, list, .. } => self.inspected.push((exchange, list)),
                _ => {}
            }
        }
        self.store.note_input();
    }

    fn take_loaded(&mut self, millis: u64) {
        for (key, document) in self.store.take_loaded(at(millis), &mut self.shard) {
            self.handle(millis, ShardInput::Loaded { key, document });
        }
    }

    fn end_turn(&mut self, millis: u64) {
        self.take_loaded(millis);
        self.store.end_turn(at(millis), &mut self.shard, &mut []);
    }

    fn stateless(documents: &MemoryStore) -> Self {
        let mode = StoreMode { drops_copies: true, ..StoreMode::of_time(WriteTime::BeforeSends) };
        Self::of_mode(documents, mode, None, BlockId::all().collect())
    }

    fn numbers(&self) -> Vec<u64> {
        self.values.lock().unwrap().keys().copied().collect()
    }
}

/// What another run restores.
fn stored(documents: &MemoryStore) -> Vec<u64> {
    Run::start(documents, WriteTime::BeforeSends).numbers()
}

#[test]
fn durable_contexts_are_written_at_the_end_of_their_turn_and_restored() {
    let documents = MemoryStore::default();
    let mut run = Run::start(&documents, WriteTime::BeforeSends);
    for owner in [3, 7, 1 << 32 | 5] {
        run.input(10, owner, Timer::MobileReachable);
    }
    assert_eq!(stored(&documents), [3, 7, 1 << 32 | 5]);
    run.input(11, 3, Timer::LostSessions);
    let next = Run::start(&documents, WriteTime::BeforeSends);
    assert_eq!((next.numbers(), next.health.restored()), (vec![7, 1 << 32 | 5], 2));
}

#[test]
fn soft_contexts_are_written_together_some_milliseconds_later() {
    let documents = MemoryStore::default();
    let mut run = Run::start(&documents, WriteTime::Later);
    run.input(1000, 1, Timer::MobileReachable);
    run.input(1010, 2, Timer::MobileReachable);
    run.input(1020, 3, Timer::MobileReachable);
    assert!(stored(&documents).is_empty());
    assert_eq!(run.store.next_turn(), Some(at(1000) + SOFT_DELAY));
    run.input(1021, 4, Timer::Expiry);
    assert_eq!(stored(&documents), [4], "required");
    run.input(1022, 4, Timer::LostSessions);
    assert!(stored(&documents).is_empty(), "ended");
    run.store.end_turn(at(1000) + SOFT_DELAY, &mut run.shard, &mut []);
    assert_eq!(stored(&documents), [1, 2, 3]);
    assert_eq!(run.store.next_turn(), None);
    run.input(5000, 5, Timer::MobileReachable);
    assert_eq!(stored(&documents), [1, 2, 3], "after a pause the delay is the same");
    assert_eq!(run.store.next_turn(), Some(at(5000) + SOFT_DELAY));
}

#[test]
fn a_fenced_store_is_not_due_any_longer() {
    let documents = MemoryStore::default();
    let mut run = Run::start(&documents, WriteTime::Later);
    run.input(1, 1, Timer::MobileReachable);
    assert_eq!(run.store.next_turn(), Some(at(1) + SOFT_DELAY));
    run.store.note_fenced();
    assert_eq!(run.store.next_turn(), None, "it would be due at once, again and again");
}

#[test]
fn also_with_soft_messages_wait_for_a_context_whose_counts_no_document_reserves() {
    let documents = MemoryStore::default();
    let mut run = Run::start_with(&documents, WriteTime::Later, Some(Arc::default()));
    let mut written = |owner: u64, timer: Timer| {
        let input = ShardInput::Timer { nf: Nf::Amf, key: TimerKey { owner, timer } };
        run.shard.handle(at(1), input, &mut Vec::new());
        run.store.note_input();
        run.store.end_turn(at(1), &mut run.shard, &mut [])
    };
    assert_eq!(written(1, Timer::MobileReachable), Sequence(0));
    assert_eq!(written(2, Timer::Expiry), Sequence(0));
    let awaited = written(3, Timer::T3560);
    assert!(awaited > Sequence(0));
    assert_eq!(written(1, Timer::MobileReachable), Sequence(0), "only that turn");
    assert_eq!(stored(&documents), [2, 3]);
}

#[test]
fn with_a_full_disk_serving_goes_on_and_changes_are_written_later() {
    let documents = MemoryStore::default();
    let mut run = Run::start(&documents, WriteTime::BeforeSends);
    run.input(1, 1, Timer::MobileReachable);
    run.is_full.store(true, Ordering::Relaxed);
    run.input(2, 2, Timer::MobileReachable);
    run.input(3, 1, Timer::LostSessions);
    assert!(run.health.error().unwrap().contains("no space left"), "{:?}", run.health.error());
    assert_eq!(stored(&documents), [1]);
    run.is_full.store(false, Ordering::Relaxed);
    run.input(500, 3, Timer::MobileReachable);
    assert_eq!(stored(&documents), [1], "not before the next attempt");
    assert_eq!(run.store.next_turn(), Some(at(2) + RETRY));
    run.store.end_turn(at(2) + RETRY, &mut run.shard, &mut []);
    assert_eq!(stored(&documents), [2, 3]);
    assert_eq!((run.health.error(), run.store.next_turn()), (None, None));
}

#[test]
fn a_document_that_cannot_be_read_does_not_affect_others() {
    let documents = MemoryStore::default();
    let mut run = Run::start(&documents, WriteTime::BeforeSends);
    run.input(1, 1, Timer::MobileReachable);
    let mut batch = Batch::new(OwnerVersion(0));
    let mut put = |number: u32, layout: u16, octets: &[u8]| {
        let key = DocumentKey::new(DocumentKind::Amf, 0, number).unwrap();
        let head = Head { key, revision: Revision(1), layout, deadline: None };
        let mut writer = batch.replace(head);
        writer.section(1, octets);
    };
    put(20, LAYOUT + 1, &[1, 1, 0, 0, 0, 1, 7]);
    put(21, LAYOUT, &[1, 9, 0, 0, 0, 1, 7]);
    put(22, LAYOUT, b"?");
    put(23, LAYOUT, &[1, 1, 0, 0, 0, 1, 7]);
    documents.engine().append(&batch).unwrap();
    let next = Run::start(&documents, WriteTime::BeforeSends);
    assert_eq!((next.numbers(), next.health.unreadable()), (vec![1, 23], 3));
}

#[test]
fn each_shard_restores_the_contexts_of_its_blocks_whatever_the_number_of_shards_was() {
    let documents = MemoryStore::default();
    let mut run = Run::start(&documents, WriteTime::BeforeSends);
    let id = |block: u64, number: u64| block << 32 | number;
    for owner in [id(0, 7), id(341, 1), id(342, 1), id(1023, u64::from(u32::MAX))] {
        run.input(10, owner, Timer::MobileReachable);
    }
    let owners = OwnerMap::of_instance(InstanceId(0), 3);
    let of_shard = |shard| {
        let owner = BlockOwner { instance: InstanceId(0), shard: ShardId(shard) };
        let blocks = owners.blocks_of(owner).collect();
        Run::of_blocks(&documents, WriteTime::BeforeSends, None, blocks)
    };
    assert_eq!(of_shard(0).numbers(), [id(0, 7), id(341, 1)]);
    assert_eq!(of_shard(1).numbers(), [id(342, 1)]);
    let mut last = of_shard(2);
    assert_eq!(last.numbers(), [id(1023, u64::from(u32::MAX))]);
    last.store.start_empty(&mut last.shard);
    assert_eq!(stored(&documents), [id(0, 7), id(341, 1), id(342, 1)], "those of other shards stay");
}

#[test]
fn a_shard_that_panicked_starts_without_contexts() {
    let documents = MemoryStore::default();
    let mut run = Run::start(&documents, WriteTime::BeforeSends);
    run.input(1, 1, Timer::MobileReachable);
    let mut again = Run::start(&documents, WriteTime::BeforeSends);
    again.store.start_empty(&mut again.shard);
    assert!(stored(&documents).is_empty());
}

/// Records how many effects have left, with the documents that were stored then.
struct Left<'a>(&'a MemoryStore, Vec<Vec<u64>>);

impl Outside for Left<'_> {
    fn carry_out(&mut self, _effect: ShardEffect) {
        self.1.push(stored(self.0));
    }

    fn flush(&mut self) {}
}

#[test]
fn effects_leave_after_the_changes_of_their_turn_are_durable() {
    let documents = MemoryStore::default();
    let flushed = Arc::new(AtomicU64::new(0));
    let Run { mut shard, store, .. } =
        Run::start_with(&documents, WriteTime::BeforeSends, Some(Arc::clone(&flushed)));
    let (mut held, mut left) = (HeldEffects::new(store), Left(&documents, Vec::new()));
    let mut turn = |held: &mut HeldEffects, left: &mut Left<'_>, owner: Option<u64>| {
        if let Some(owner) = owner {
            let key = TimerKey { owner, timer: Timer::MobileReachable };
            shard.handle(at(owner), ShardInput::Timer { nf: Nf::Amf, key }, &mut Vec::new());
            held.note_input();
            held.hold(ShardEffect::Ready);
        }
        let written = held.write(at(9), &mut shard);
        held.release(written, left);
    };
    turn(&mut held, &mut left, Some(1));
    turn(&mut held, &mut left, Some(2));
    assert_eq!((stored(&documents), left.1.len()), (vec![1, 2], 0), "written, and not flushed");
    flushed.store(1, Ordering::Relaxed);
    turn(&mut held, &mut left, None);
    assert_eq!(left.1.len(), 1);
    flushed.store(2, Ordering::Relaxed);
    turn(&mut held, &mut left, None);
    assert_eq!(left.1.len(), 2);
    flushed.store(3, Ordering::Relaxed);
    turn(&mut held, &mut left, Some(3));
    assert_eq!(left.1.last().unwrap(), &[1, 2, 3], "stored before the effect left");
}

/// The stored value of a context.
fn value(documents: &MemoryStore, owner: u64) -> Option<u64> {
    Run::start(documents, WriteTime::BeforeSends).values.lock().unwrap().get(&owner).copied()
}

#[test]
fn a_stateless_process_keeps_no_copy_between_transactions() {
    let documents = MemoryStore::default();
    let mut run = Run::stateless(&documents);
    for millis in 1..=3 {
        run.input(millis, 7, Timer::T3513);
        assert!(run.numbers().is_empty(), "dropped");
    }
    assert_eq!(value(&documents, 7), Some(123));
    // A turn without a change of it.
    run.end_turn(4);
    run.input(5, 7, Timer::LostSessions);
    assert_eq!(value(&documents, 7), None, "ended");
    assert!(run.shard.take_touched_contexts().is_empty());
}

/// The command of an operator finds the context, and its response comes then.
#[test]
fn an_order_waits_for_its_context() {
    let documents = MemoryStore::default();
    let mut run = Run::stateless(&documents);
    run.input(1, 7, Timer::T3513);
    let order = |exchange, number| ShardInput::Operate { exchange, what: Box::new(Order::Capacity(number)) };
    run.handle(2, order(20, 7));
    run.handle(2, order(21, 8));
    assert_eq!(run.inspected, [(21, vec![serde_json::Value::Null])], "the other one has none");
    run.end_turn(3);
    assert_eq!(run.inspected[1..], [(20, vec![serde_json::json!(1)])]);
    run.end_turn(4);
    assert!(run.numbers().is_empty(), "dropped again");
}

#[test]
fn inputs_wait_for_their_context_in_order_and_others_do_not_wait() {
    let documents = MemoryStore::default();
    let mut run = Run::stateless(&documents);
    run.input(1, 7, Timer::T3513);
    run.deliver(2, 7, Timer::T3513);
    run.deliver(3, 8, Timer::T3513);
    run.deliver(4, 7, Timer::T3513);
    assert_eq!(run.numbers(), [8]);
    run.end_turn(5);
    // They were delivered when the context was back.
    assert_eq!((value(&documents, 7), value(&documents, 8)), (Some(155), Some(3)));
    run.deliver(6, 7, Timer::T3513);
    run.deliver(7, 7, Timer::LostSessions);
    run.end_turn(8);
    assert_eq!(value(&documents, 7), None, "the end came last");
}

#[test]
fn a_context_whose_document_is_lost_is_unknown() {
    let documents = MemoryStore::default();
    let mut run = Run::stateless(&documents);
    run.input(1, 7, Timer::T3513);
    let mut batch = Batch::new(OwnerVersion(0));
    batch.delete(DocumentKey::new(DocumentKind::Amf, 0, 7).unwrap(), Revision(9));
    documents.engine().append(&batch).unwrap();
    run.input(2, 7, Timer::T3513);
    assert_eq!((value(&documents, 7), run.health.unreadable()), (Some(2), 1), "it begins anew");
}

#[test]
fn while_the_store_is_gone_inputs_wait_and_changes_stay_in_the_process() {
    let documents = MemoryStore::default();
    let mut run = Run::stateless(&documents);
    run.input(1, 7, Timer::T3513);
    run.is_full.store(true, Ordering::Relaxed);
    run.input(2, 7, Timer::T3513);
    run.input(3, 8, Timer::T3513);
    run.input(4, 8, Timer::T3513);
    assert_eq!((run.numbers(), value(&documents, 7)), (vec![8], Some(1)), "the one copy is not dropped");
    assert!(run.health.error().is_some());
    run.is_full.store(false, Ordering::Relaxed);
    let after = 4 + RETRY.as_millis() as u64;
    run.end_turn(after);
    run.end_turn(after + 1);
    let last = (after + 1) % 10;
    assert_eq!((value(&documents, 7), value(&documents, 8)), (Some(10 + last), Some(34)));
    run.end_turn(after + 2);
    assert_eq!((run.health.error(), run.store.next_turn(), run.numbers()), (None, None, vec![]));
}

#[test]
fn an_update_that_conflicts_becomes_a_whole_document() {
    let documents = MemoryStore::default();
    let mode = StoreMode { form: WriteForm::Update, ..StoreMode::of_time(WriteTime::BeforeSends) };
    let mut run = Run::of_mode(&documents, mode, None, BlockId::all().collect());
    run.input(1, 7, Timer::T3513);
    run.input(2, 7, Timer::T3513);
    let mut batch = Batch::new(OwnerVersion(0));
    batch.delete(DocumentKey::new(DocumentKind::Amf, 0, 7).unwrap(), Revision(9));
    documents.engine().append(&batch).unwrap();
    run.input(3, 7, Timer::T3513);
    assert_eq!((value(&documents, 7), run.health.error()), (Some(123), None));
}

/// A run whose NFs have one document for a UE.
fn shared(documents: &MemoryStore, form: WriteForm, blocks: Vec<BlockId>) -> Run {
    let mode = StoreMode { drops_copies: true, form, ..StoreMode::of_time(WriteTime::BeforeSends) };
    Run::of_layout(documents, mode, None, (blocks, Claims::None), true)
}

/// Contexts in each document of a UE.
fn in_documents(documents: &MemoryStore) -> Vec<Vec<u64>> {
    let mut found = Vec::new();
    for block in BlockId::all() {
        let visit = &mut |_, read: Result<StoredDocument, DocumentError>| {
            let contexts = contexts_in(&read.unwrap());
            found.push(contexts.into_iter().map(|(key, _)| key.id.to_u64()).collect());
        };
        documents.engine().read_block(DocumentKind::Ue, block.number(), visit).unwrap();
    }
    found.sort();
    found
}

const FORMS: [WriteForm; 2] = [WriteForm::Replace, WriteForm::Update];

#[test]
fn contexts_of_a_ue_have_one_document_which_a_transaction_reads_once() {
    for form in FORMS {
        let documents = MemoryStore::default();
        let mut run = shared(&documents, form, BlockId::all().collect());
        for owner in [101, 102, 103] {
            run.deliver(10, owner, Timer::T3550);
        }
        run.deliver(10, 201, Timer::T3550);
        run.end_turn(10);
        assert_eq!(in_documents(&documents), [vec![101, 102, 103], vec![201]]);
        let counts = run.store.engine.statistics();
        assert_eq!((counts.writes, counts.reads), (2, 0), "one write a UE");
        assert!(run.numbers().is_empty(), "no copies");
        assert_eq!(run.store.shared.as_ref().unwrap().copies(), 0);

        for owner in [101, 103] {
            run.deliver(20, owner, Timer::T3550);
        }
        run.end_turn(20);
        run.end_turn(21);
        let counts = run.store.engine.statistics();
        assert_eq!((counts.writes, counts.reads), (3, 1));
        let value = |owner| {
            let next = shared(&documents, form, BlockId::all().collect());
            next.values.lock().unwrap().get(&owner).copied()
        };
        assert_eq!([101, 102, 103].map(value), [20, 10, 20].map(|millis: u64| Some(millis * 1000)));
    }
}

#[test]
fn a_ue_without_a_supi_has_a_document_for_each_context() {
    for form in FORMS {
        let documents = MemoryStore::default();
        let mut run = shared(&documents, form, BlockId::all().collect());
        for owner in [901, 902] {
            run.deliver(10, owner, Timer::T3513);
        }
        run.end_turn(10);
        assert_eq!(in_documents(&documents), [vec![901], vec![902]]);
        assert!(run.numbers().is_empty(), "no copies");
        // The process is killed.
        let mut run = shared(&documents, form, BlockId::all().collect());
        run.deliver(11, 901, Timer::T3513);
        run.end_turn(11);
        run.end_turn(12);
        let next = shared(&documents, form, BlockId::all().collect());
        assert_eq!(
            [901, 902].map(|owner| next.values.lock().unwrap().get(&owner).copied()),
            [Some(1), Some(0)]
        );
        drop(next);
        for owner in [901, 902] {
            run.input(20, owner, Timer::LostSessions);
            run.end_turn(21);
        }
        assert_eq!(in_documents(&documents), Vec::<Vec<u64>>::new());
    }
}

#[test]
fn a_read_that_a_panic_cut_off_begins_again_in_the_next_run() {
    let documents = MemoryStore::default();
    let mut run = shared(&documents, WriteForm::Update, BlockId::all().collect());
    for owner in [101, 102] {
        run.deliver(10, owner, Timer::T3550);
    }
    run.end_turn(10);
    // The read has begun, and has no result yet.
    run.deliver(20, 101, Timer::T3550);
    let mut next = shared(&documents, WriteForm::Update, BlockId::all().collect());
    std::mem::swap(&mut run.store, &mut next.store);
    next.store.start_run(&mut next.shard);
    next.store.take_over(at(20), &mut next.shard, |_| Some(Fate::GoesOn));
    next.end_turn(21);
    next.deliver(30, 102, Timer::T3550);
    next.end_turn(30);
    next.end_turn(31);
    let value = |owner| {
        let next = shared(&documents, WriteForm::Update, BlockId::all().collect());
        next.values.lock().unwrap().get(&owner).copied()
    };
    assert_eq!(value(102), Some(30_000));
}

#[test]
fn the_last_context_takes_the_document_with_it() {
    for form in FORMS {
        let documents = MemoryStore::default();
        let mut run = shared(&documents, form, BlockId::all().collect());
        for owner in [101, 102] {
            run.input(10, owner, Timer::T3550);
        }
        for (owner, left) in [(101, vec![vec![102]]), (102, vec![])] {
            run.input(20, owner, Timer::LostSessions);
            run.end_turn(21);
            assert_eq!(in_documents(&documents), left);
        }
        assert_eq!(run.store.shared.as_ref().unwrap().all(), []);
    }
}

#[test]
fn two_shards_merge_their_contexts_of_a_ue() {
    for form in FORMS {
        let documents = MemoryStore::default();
        let of_block = |block| shared(&documents, form, vec![BlockId::new(block).unwrap()]);
        let (mut one, mut other) = (of_block(0), of_block(1));
        let own = 5;
        let remote = ContextId { block: BlockId::new(1).unwrap(), number: 6 }.to_u64();
        one.input(10, own, Timer::T3550);
        other.input(11, remote, Timer::T3550);
        assert_eq!(in_documents(&documents), [vec![own, remote]]);
        // Both have read the document before either writes it.
        one.deliver(20, own, Timer::T3550);
        other.deliver(20, remote, Timer::T3550);
        one.take_loaded(20);
        other.take_loaded(20);
        one.end_turn(20);
        other.end_turn(20);
        let (one, other) = (of_block(0), of_block(1));
        assert_eq!((one.numbers(), other.numbers()), (vec![own], vec![remote]));
        assert_eq!(one.values.lock().unwrap()[&own], 20_000);
        assert_eq!(other.values.lock().unwrap()[&remote], 20_000);
    }
}

#[test]
fn a_copy_with_only_own_changes_is_not_taken_for_the_document() {
    for form in FORMS {
        let documents = MemoryStore::default();
        let all = || BlockId::all().collect::<Vec<_>>();
        shared(&documents, form, all()).input(10, 101, Timer::T3550);
        let mut run = shared(&documents, form, all());
        // 101 is dropped at its next transaction.
        run.input(20, 101, Timer::T3550);
        run.end_turn(21);
        assert!(run.numbers().is_empty());
        // A new context of the UE is written without a read, and the former one is needed before the copy is dropped.
        run.deliver(30, 102, Timer::Expiry);
        run.store.note_input();
        run.store.write(at(30), &mut run.shard, StoreScope::Changed);
        run.deliver(30, 101, Timer::T3550);
        run.end_turn(31);
        run.end_turn(32);
        assert_eq!(in_documents(&documents), [vec![101, 102]]);
        assert_eq!(shared(&documents, form, all()).values.lock().unwrap()[&101], 31_000);
        assert_eq!(run.health.unreadable(), 0);
        // A restored context ends while the copy has only another one.
        let mut run = shared(&documents, form, all());
        run.deliver(40, 102, Timer::T3550);
        run.store.write(at(40), &mut run.shard, StoreScope::Changed);
        run.deliver(40, 101, Timer::LostSessions);
        run.end_turn(40);
        assert_eq!(in_documents(&documents), [vec![102]]);
    }
}

#[test]
fn a_process_whose_blocks_another_one_has_claimed_writes_and_sends_nothing() {
    let documents = MemoryStore::default();
    let owner = || {
        let mode = StoreMode::of_time(WriteTime::BeforeSends);
        Run::of_owner(&documents, mode, None, (BlockId::all().collect(), Claims::Blocks))
    };
    let Run { mut shard, mut store, .. } = owner();
    let key = |owner| TimerKey { owner, timer: Timer::MobileReachable };
    let mut turn = |held: &mut HeldEffects, left: &mut Left<'_>, owner| {
        let input = ShardInput::Timer { nf: Nf::Amf, key: key(owner) };
        shard.handle(at(owner), input, &mut Vec::new());
        held.note_input();
        held.hold(ShardEffect::Ready);
        let written = held.write(at(owner), &mut shard);
        held.release(written, left);
    };
    let first = store.owner;
    assert!(first.is_some_and(|version| version > OwnerVersion(0)));
    store.has_changes = false;
    let (mut held, mut left) = (HeldEffects::new(store), Left(&documents, Vec::new()));
    turn(&mut held, &mut left, 1);
    assert_eq!((stored(&documents), left.1.len()), (vec![1], 1));
    let mut other = owner();
    assert!(other.store.owner > first, "the version rises with each owner");
    turn(&mut held, &mut left, 2);
    assert_eq!((stored(&documents), left.1.len()), (vec![1], 1), "refused, and nobody is answered");
    turn(&mut held, &mut left, 3);
    assert_eq!((stored(&documents), left.1.len()), (vec![1], 1));
    other.input(4, 4, Timer::MobileReachable);
    assert_eq!(stored(&documents), [1, 4]);
}

#[test]
fn with_a_full_disk_at_the_start_contexts_return_and_are_claimed_later() {
    let documents = MemoryStore::default();
    Run::start(&documents, WriteTime::BeforeSends).input(1, 1, Timer::MobileReachable);
    let mode = StoreMode::of_time(WriteTime::BeforeSends);
    let all = BlockId::all().collect();
    let mut run = Run::of_owner(&documents, mode, None, (all, Claims::OnFullDisk));
    assert_eq!((run.numbers(), run.store.owner), (vec![1], None));
    run.input(2_000, 2, Timer::MobileReachable);
    assert_eq!(stored(&documents), [1, 2]);
    assert!(run.store.owner.is_some() && run.health.error().is_none());
}

#[test]
fn a_block_taken_while_the_store_is_gone_is_claimed_with_a_higher_version_than_its_former_owners() {
    let documents = MemoryStore::default();
    let block = BlockId::all().last().unwrap();
    let mode = StoreMode::of_time(WriteTime::BeforeSends);
    let owner = |blocks| Run::of_owner(&documents, mode, None, (blocks, Claims::Blocks));
    let mut run = owner(BlockId::all().filter(|own| *own != block).collect());
    // The former owner of the block, and its successors until its version is the higher one.
    let former = std::iter::repeat_with(|| owner(vec![block]).store.owner);
    let former = former.take(100_000).find(|former| *former > run.store.owner).unwrap();
    run.is_full.store(true, Ordering::Relaxed);
    run.store.take_block(at(1), &mut run.shard, block);
    run.end_turn(1);
    run.is_full.store(false, Ordering::Relaxed);
    run.input(2_000, 1, Timer::MobileReachable);
    assert!(!run.store.is_fenced() && run.health.error().is_none() && run.store.owner > former);
    assert_eq!(stored(&documents), [1]);
    run.store
        .batch
        .delete(DocumentKey::new(DocumentKind::Amf, block.number(), 1).unwrap(), Revision(u64::MAX));
    assert!(run.store.engine.append(&run.store.batch).is_ok(), "the block itself is the shard's");
}

#[test]
fn a_upf_that_does_not_know_a_session_ends_an_instance_only_if_its_lease_has_ended() {
    let documents = MemoryStore::default();
    let Run { mut store, .. } = Run::start(&documents, WriteTime::BeforeSends);
    let guard = LeaseGuard::simulated(Duration::from_secs(3));
    store = store.with_lease(Some(guard.clone()));
    let mut receive = |cause| {
        let response = SessionModificationResponse::new(cause);
        let result = Ok(Message::SessionModificationResponse(response));
        store.receive(&mut ShardInput::N4(Box::new(N4Input::Response {
            tag: Tag { owner: 1, step: 1, run: 0 },
            result,
        })));
        store.is_fenced()
    };
    assert!(!receive(Cause::SessionContextNotFound), "the UPF has lost it");
    guard.set_now(Instant::from_micros(4_000_000));
    guard.go_on(Duration::from_secs(10));
    assert!(!receive(Cause::RequestAccepted) && !guard.is_fenced(), "it serves without the store");
    assert!(receive(Cause::SessionContextNotFound) && guard.is_fenced());
}
