//! A shard that panics, with an NF whose contexts are numbers.

use super::*;
use crate::residency::{MemoryStore, StoreHealth, StoreMode, WriteTime};
use pith_nf::fabric::{Agent, AgentConfig};
use pith_nf::kit::document::{Section, Sections, UnpackError, Writer};
use pith_nf::kit::{
    DocumentSink, Fate, GnbHandle, Input, Level, N2Effect, N2Input, NetworkFunction, Outbox, Passage,
    PassedBlock, PassedContext, PassedPart, ReferenceKey, References, StoreScope, StoredKey, Timer,
    TnlaBinding, Tracker,
};
use pith_sbi::{ApiRoot, Scheme};
use pith_types::{BlockId, BlockMove, BlockOwner, ContextId, InstanceId, OwnerMap, ShardId};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

const VALUE: Section = Section { id: 1, name: "value", version: 1 };

/// How often the shard panics, for all its runs.
type Panics = Arc<AtomicU32>;

/// A PDU with the octet `n` adds 1 to the number of context `n`, which is sent to the gNB. With a second octet the shard panics then, as
/// long as there are panics left.
struct Numbers {
    values: BTreeMap<u64, u64>,
    tracker: Tracker,
    in_step: Option<ContextId>,
    panics: Panics,
    /// A block has passed: the next write panics, as long as there are panics left.
    has_passed: bool,
}

/// Contexts from this number on are in a block that can pass.
const OF_BLOCK: u64 = 100;

/// Contexts from this number on are in a block of the other shard.
const OF_OTHER: u64 = 150;

fn block(number: u16) -> BlockId {
    BlockId::new(number).unwrap()
}

fn id(number: u64) -> ContextId {
    let block = match number {
        OF_BLOCK..OF_OTHER => 5,
        OF_OTHER..TIMED => 600,
        _ => return ContextId::from_u64(number).unwrap(),
    };
    ContextId { block: self::block(block), number: number as u32 }
}

/// The inverse of `id`.
fn number_of(id: ContextId) -> u64 {
    if matches!(id.block.number(), 5 | 600) { id.number.into() } else { id.to_u64() }
}

fn document(value: u64) -> pith_nf::kit::document::Document {
    let mut writer = Writer::new(Nf::Amf, &());
    writer.section(&VALUE, |writer| writer.number(value));
    writer.finish().unwrap()
}

fn value(document: &[u8]) -> Result<u64, UnpackError> {
    Sections::of(document, Nf::Amf, &[VALUE], &())?.unpack(&VALUE)
}

fn panic_if_left(panics: &Panics) {
    let left = panics.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    assert!(left.is_err(), "the panic of a test");
}

impl NetworkFunction for Numbers {
    fn context_of(&self, input: &Input) -> Option<ContextId> {
        match input {
            Input::N2(N2Input::Pdu { pdu, .. }) => Some(id(u64::from(pdu[0]))),
            Input::Timer(key) => Some(id(key.owner)),
            _ => None,
        }
    }

    fn handle(&mut self, _now: Instant, input: Input, out: &mut Outbox) {
        let (number, panics) = match &input {
            Input::N2(N2Input::Pdu { pdu, .. }) => (u64::from(pdu[0]), pdu.len() > 1),
            Input::Timer(key) => (key.owner, true),
            _ => return,
        };
        self.in_step = Some(id(number));
        let value = self.values.entry(number).or_default();
        *value += 1;
        out.n2(N2Effect::Send {
            gnb: GnbHandle(number),
            binding: TnlaBinding::unbound(*value as u16),
            pdu: Vec::new().into(),
        });
        if panics {
            panic_if_left(&self.panics);
        }
        self.tracker.note_change(id(number), None);
        self.in_step = None;
    }

    fn store_contexts(&mut self, scope: StoreScope, sink: &mut dyn DocumentSink) {
        if self.has_passed {
            panic_if_left(&self.panics);
        }
        for (id, _) in self.tracker.take(scope) {
            let Some(value) = self.values.get(&number_of(id)) else { continue };
            sink.write(StoredKey { nf: Nf::Amf, id }, None, &document(*value));
            self.tracker.note_stored(id, 0);
        }
    }

    fn restore_context(
        &mut self,
        _now: Instant,
        id: ContextId,
        document: &[u8],
        _is_stale: bool,
    ) -> Result<(), UnpackError> {
        let value = value(document)?;
        self.values.insert(number_of(id), value);
        assert!(value != FATAL, "the panic of a test");
        self.tracker.note_stored(id, 0);
        Ok(())
    }

    fn take_over_context(
        &mut self,
        _now: Instant,
        id: ContextId,
        document: &[u8],
        fate: Fate,
    ) -> Result<(), UnpackError> {
        let value = value(document)?;
        self.values.insert(number_of(id), if fate == Fate::Ends { 0 } else { value });
        if value == POISON {
            panic_if_left(&self.panics);
        }
        self.tracker.note_stored(id, 0);
        Ok(())
    }

    fn resume_contexts(&mut self, _now: Instant, out: &mut Outbox) {
        if self.values.contains_key(&TIMED) {
            out.start(TIMED, Timer::T3513, Duration::ZERO);
        }
    }

    fn pass_block(&mut self, _now: Instant, block: BlockId, _out: &mut Outbox) -> PassedPart {
        let of_block: Vec<_> =
            self.values.keys().copied().filter(|number| id(*number).block == block).collect();
        let pass = |number| {
            let value = self.values.remove(&number)?;
            Some(PassedContext { id: id(number), key: number, document: document(value), stored: Some(0) })
        };
        let contexts = of_block.into_iter().filter_map(pass).collect();
        self.tracker.forget_block(block);
        self.has_passed = true;
        PassedPart { contexts, rest: None }
    }

    fn take_block(&mut self, _now: Instant, _block: BlockId, part: PassedPart, _out: &mut Outbox) {
        for context in part.contexts {
            self.in_step = Some(context.id);
            self.values.insert(number_of(context.id), value(context.document.octets()).unwrap());
            self.tracker.note_passed(context.id, context.stored);
        }
        panic_if_left(&self.panics);
        self.in_step = None;
    }

    fn in_step(&self) -> Option<ContextId> {
        self.in_step
    }

    fn tracker(&self) -> Option<&Tracker> {
        Some(&self.tracker)
    }

    fn tracker_mut(&mut self) -> Option<&mut Tracker> {
        Some(&mut self.tracker)
    }
}

/// A context whose document with this number cannot be read without a panic.
const POISON: u64 = 7;

/// A context whose document with this number cannot be read at the start without a panic.
const FATAL: u64 = 9;

/// A context with a timer that runs from the start, and panics.
const TIMED: u64 = 200;

/// What left the shard: contexts and their numbers; and what concerns the passage of blocks.
#[derive(Clone, Default)]
struct Sent(Arc<Mutex<Vec<(u64, u16)>>>, Arc<Mutex<Vec<String>>>);

impl Outside for Sent {
    fn carry_out(&mut self, effect: ShardEffect) {
        let note = |what: String| self.1.lock().unwrap().push(what);
        match effect {
            ShardEffect::N2(N2Effect::Send { gnb, binding, .. }) => {
                self.0.lock().unwrap().push((gnb.0, binding.stream));
            }
            ShardEffect::N2(N2Effect::Passage(Passage::Moved { change, .. })) => {
                note(format!("moved {}", change.version));
            }
            ShardEffect::PassOn { input, .. } => {
                let ShardInput::Block(passed) = *input else { return };
                let contexts = &passed.parts[0].1.contexts;
                note(format!("block {}, {} contexts", passed.change.version, contexts.len()));
            }
            ShardEffect::MoveEnded { change, result } => note(format!("{} ends: {result:?}", change.version)),
            _ => {}
        }
    }

    fn flush(&mut self) {}
}

type TestDriver = Driver<Box<dyn FnMut() -> Shard + Send>, Sent>;

fn driver(panics: u32, documents: Option<&MemoryStore>) -> (TestDriver, Sent) {
    driver_with(panics, documents, WriteTime::BeforeSends)
}

/// The first of two shards.
fn driver_with(panics: u32, documents: Option<&MemoryStore>, time: WriteTime) -> (TestDriver, Sent) {
    let root = Arc::new(ApiRoot::new(Scheme::Http, "127.0.0.1:1"));
    let panics: Panics = Arc::new(AtomicU32::new(panics));
    let mut make: Box<dyn FnMut() -> Shard + Send> = Box::new(move || {
        let agent = Agent::new(AgentConfig {
            shard: 0,
            shards: 2,
            owner: owner(0),
            owners: Arc::new(OwnerMap::of_instance(InstanceId(0), 2)),
            own_root: Arc::clone(&root),
            hosted: Vec::new(),
            nrf: Arc::clone(&root),
            fixed: BTreeMap::new(),
            forced_http: Default::default(),
            protected: Default::default(),
            references: References::new(&ReferenceKey::new([1; 32])),
        });
        let numbers = Numbers {
            values: BTreeMap::new(),
            tracker: Tracker::default(),
            in_step: None,
            panics: Arc::clone(&panics),
            has_passed: false,
        };
        Shard::new(vec![(Nf::Amf, Box::new(numbers))], agent, Level::Info)
    });
    let mut shard = make();
    let (clock, sent) = (Clock::start(), Sent::default());
    let contexts = documents.map(|documents| {
        let health = Arc::new(StoreHealth::default());
        let mode = StoreMode::of_time(time);
        let blocks = BlockId::all().collect();
        let mut store = ContextStore::new(blocks, Box::new(documents.engine()), mode, 1, health);
        restore(0, clock, &mut shard, &mut make, &mut store);
        HeldEffects::new(store)
    });
    let keeps = contexts.as_ref().map_or(Keeps::Nothing, |contexts| contexts.store.keeps());
    let driver = Driver {
        number: 0,
        clock,
        shard,
        make,
        outside: sent.clone(),
        timers: Timers::default(),
        effects: Vec::new(),
        contexts,
        take_over: TakeOver::new(keeps),
        run: 0,
        unadopted: None,
    };
    (driver, sent)
}

fn owner(shard: u8) -> BlockOwner {
    BlockOwner { instance: InstanceId(0), shard: ShardId(shard) }
}

fn turn(driver: &mut TestDriver, pdus: &[&[u8]]) {
    for pdu in pdus {
        let pdu = pdu.to_vec().into();
        driver.process(ShardInput::N2(N2Input::Pdu {
            gnb: GnbHandle(1),
            binding: TnlaBinding::unbound(1),
            pdu,
        }));
    }
    driver.end_turn();
}

fn taken(sent: &Sent) -> Vec<(u64, u16)> {
    std::mem::take(&mut sent.0.lock().unwrap())
}

#[test]
fn after_a_panic_no_message_of_the_turn_is_lost_and_none_is_sent_twice() {
    let documents = MemoryStore::default();
    let (mut driver, sent) = driver(1, Some(&documents));
    turn(&mut driver, &[&[1], &[2]]);
    assert_eq!(taken(&sent), [(1, 1), (2, 1)]);
    turn(&mut driver, &[&[1], &[2, 0], &[1]]);
    assert_eq!(taken(&sent), [(1, 2), (2, 2), (1, 3)], "from the documents, in the order of arrival");
    assert_eq!(driver.run, 1);
}

#[test]
fn without_a_store_the_shard_starts_empty_and_goes_on() {
    let (mut driver, sent) = driver(1, None);
    turn(&mut driver, &[&[1], &[2, 0], &[1]]);
    assert_eq!(taken(&sent), [(1, 1), (1, 1)], "the effects of the panicking input are lost");
}

#[test]
fn a_message_that_always_panics_is_dropped_and_its_context_ends() {
    let documents = MemoryStore::default();
    let (mut driver, sent) = driver(u32::MAX, Some(&documents));
    turn(&mut driver, &[&[1], &[2]]);
    turn(&mut driver, &[&[1], &[2, 0]]);
    assert_eq!(taken(&sent), [(1, 1), (2, 1), (1, 2)]);
    assert_eq!(driver.run, 2, "given once more, and no more");
    turn(&mut driver, &[&[1], &[2]]);
    assert_eq!(taken(&sent), [(1, 3), (2, 1)], "the other context goes on; this one had ended");
}

#[test]
fn a_timer_that_always_panics_takes_the_shard_into_no_loop() {
    let documents = MemoryStore::default();
    let (mut driver, sent) = driver(0, Some(&documents));
    turn(&mut driver, &[&[TIMED as u8], &[2]]);
    taken(&sent);
    let (mut driver, sent) = self::driver(u32::MAX, Some(&documents));
    driver.process(ShardInput::Start);
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(2));
        driver.end_turn();
    }
    assert_eq!(driver.run, 3, "goes on, ends, its document is deleted");
    turn(&mut driver, &[&[2]]);
    assert!(taken(&sent).ends_with(&[(2, 2)]) || taken(&sent).is_empty());
}

#[test]
fn a_document_that_cannot_be_read_without_a_panic_is_deleted() {
    let documents = MemoryStore::default();
    let (mut driver, sent) = driver(0, Some(&documents));
    turn(&mut driver, &[&[1]]);
    (0..POISON).for_each(|_| turn(&mut driver, &[&[3]]));
    let (mut driver, _) = {
        taken(&sent);
        self::driver(u32::MAX, None)
    };
    // The first run has no documents: it panics, and the next one reads them.
    let health = Arc::new(StoreHealth::default());
    let mode = StoreMode::of_time(WriteTime::BeforeSends);
    // Of the same process: documents of former ones are restored.
    let store = ContextStore::new(BlockId::all().collect(), Box::new(documents.engine()), mode, 1, health);
    driver.contexts = Some(HeldEffects::new(store));
    driver.take_over = TakeOver::new(Keeps::All);
    turn(&mut driver, &[&[9, 0]]);
    assert_eq!(driver.run, 5, "the message twice, the document three times");
    let values = |driver: &mut TestDriver| {
        turn(driver, &[&[1], &[3]]);
        taken(&driver.outside)
    };
    assert!(values(&mut driver).ends_with(&[(1, 2), (3, 1)]));
}

#[test]
fn a_document_that_panics_at_the_start_is_left_out() {
    let documents = MemoryStore::default();
    let (mut first, _) = driver(0, Some(&documents));
    turn(&mut first, &[&[1], &[2], &[4], &[4]]);
    (0..FATAL).for_each(|_| turn(&mut first, &[&[3]]));
    let (mut second, sent) = driver(0, Some(&documents));
    turn(&mut second, &[&[1], &[2], &[3], &[4]]);
    assert_eq!(taken(&sent), [(1, 2), (2, 2), (3, 1), (4, 3)]);
    // As many as a start leaves out, and more.
    for number in 10..10 + 17 {
        (0..FATAL).for_each(|_| turn(&mut second, &[&[number]]));
    }
    assert!(catch_unwind(AssertUnwindSafe(|| driver(0, Some(&documents)))).is_err());
}

#[test]
fn a_document_that_panics_while_the_shard_serves_is_left_out() {
    let documents = MemoryStore::default();
    let (mut first, _) = driver(0, Some(&documents));
    let timer = |owner| ShardInput::Timer { nf: Nf::Amf, key: TimerKey { owner, timer: Timer::T3513 } };
    let (fatal, other) = (OF_BLOCK + 1, OF_BLOCK + 2);
    for owner in [other, 1] {
        first.process(timer(owner));
        first.end_turn();
    }
    for _ in 0..FATAL {
        first.process(timer(fatal));
        first.end_turn();
    }
    let (mut second, sent) = driver(0, Some(&documents));
    second.process(ShardInput::Start);
    assert_eq!(second.end_turn(), Some(Duration::ZERO), "the next slice follows at once");
    while second.contexts.as_ref().unwrap().store.is_restoring() {
        second.end_turn();
    }
    assert_eq!(second.run, 1);
    [1, other, fatal].into_iter().for_each(|owner| second.process(timer(owner)));
    second.end_turn();
    assert_eq!(taken(&sent), [(1, 2), (other, 2), (fatal, 1)]);
}

fn change(version: u64, shard: u8, number: u16) -> BlockMove {
    BlockMove { block: block(number), to: owner(shard), version }
}

/// What happened to blocks.
fn blocks(sent: &Sent) -> Vec<String> {
    std::mem::take(&mut sent.1.lock().unwrap())
}

/// The shard passes its block to the other one.
fn pass_block(driver: &mut TestDriver) {
    driver.process(ShardInput::Move(change(2, 1, 5)));
    driver.end_turn();
    driver.process(ShardInput::N2(N2Input::Held { block: block(5) }));
    driver.end_turn();
}

#[test]
fn a_panic_after_a_block_was_passed_does_not_lose_it() {
    let documents = MemoryStore::default();
    let (mut driver, sent) = driver(1, Some(&documents));
    turn(&mut driver, &[&[1], &[101]]);
    pass_block(&mut driver);
    assert_eq!(blocks(&sent), ["block 2, 1 contexts"]);
    assert_eq!(driver.run, 0, "no write follows in this turn");
    turn(&mut driver, &[&[1]]);
    assert_eq!(driver.run, 1, "the next write panics");
    assert_eq!(driver.shard.owners().owner(block(5)), owner(1), "the next run knows the owner");
    assert_eq!((taken(&sent).last(), blocks(&sent).len()), (Some(&(1, 2)), 0));
}

#[test]
fn the_new_owner_of_a_block_gets_it_again_after_a_panic() {
    let passed = |documents: Option<&MemoryStore>, panics| {
        let (mut driver, sent) = driver(panics, documents);
        let context = PassedContext { id: id(150), key: 1, document: document(7), stored: None };
        let part = PassedPart { contexts: vec![context], rest: None };
        let parts = vec![(Nf::Amf, part)];
        driver.process(ShardInput::Block(Box::new(PassedBlock { change: change(2, 0, 600), parts })));
        driver.end_turn();
        turn(&mut driver, &[&[150]]);
        (driver.run, taken(&sent), blocks(&sent))
    };
    let told = ["moved 2", "2 ends: Ok(())"].map(str::to_owned);
    let documents = MemoryStore::default();
    assert_eq!(passed(Some(&documents), 1), (1, vec![(150, 8)], told.to_vec()));
    assert_eq!(passed(None, 1), (1, vec![(150, 8)], told.to_vec()), "also without a store");
    // Twice: the gateways get an end of it, and the shard has what the store has.
    assert_eq!(passed(Some(&MemoryStore::default()), 2), (2, vec![(150, 1)], told.to_vec()));
}

#[test]
fn with_soft_a_block_passes_when_its_changes_are_written() {
    let documents = MemoryStore::default();
    let (mut soft, sent) = driver_with(0, Some(&documents), WriteTime::Later);
    turn(&mut soft, &[&[101]]);
    pass_block(&mut soft);
    assert_eq!(blocks(&sent), ["block 2, 1 contexts"]);
    let (mut next, sent) = driver(0, Some(&documents));
    next.process(ShardInput::Start);
    while next.contexts.as_ref().unwrap().store.is_restoring() {
        next.end_turn();
    }
    turn(&mut next, &[&[101]]);
    assert_eq!(taken(&sent), [(101, 2)], "the document is not behind");
}
