//! Contexts that are restored while the shard serves.

use super::*;
use crate::residency::{EngineThread, ReadResult};

const fn id(block: u64, number: u64) -> u64 {
    block << 32 | number
}

/// A run that serves before its contexts are restored.
fn serving(documents: &MemoryStore) -> Run {
    let mode = StoreMode::of_time(WriteTime::BeforeSends);
    let owner = (BlockId::all().collect(), Claims::None);
    let mut run = Run::without_contexts(documents, mode, None, owner, false);
    run.store.begin_restoring(at(0), &mut run.shard);
    run
}

impl Run {
    /// Restores what inputs wait for, or a slice.
    fn restore_next(&mut self, millis: u64) {
        for portion in self.store.restore_next(at(millis), &mut self.shard) {
            self.handle(millis, ShardInput::Restored(portion));
        }
    }

    fn value(&self, owner: u64) -> Option<u64> {
        self.values.lock().unwrap().get(&owner).copied()
    }
}

/// Three hundred contexts in one block, and one in each of some others.
fn documents() -> MemoryStore {
    let documents = MemoryStore::default();
    let mut run = Run::start(&documents, WriteTime::BeforeSends);
    for number in 0..300 {
        run.input(1, id(5, number), Timer::T3513);
    }
    for owner in [id(0, 1), id(9, 1), id(1000, IN_USE.into())] {
        run.input(2, owner, Timer::T3513);
    }
    documents
}

#[test]
fn a_context_that_an_input_names_is_restored_first_and_the_others_follow_in_slices() {
    let documents = documents();
    let mut run = serving(&documents);
    assert_eq!(run.numbers(), [id(0, 1), id(1000, IN_USE.into())], "the first block, and what is in use");
    for millis in [3, 4] {
        run.deliver(millis, id(5, 7), Timer::T3513);
    }
    assert_eq!(run.value(id(5, 7)), None, "both inputs wait");
    run.restore_next(4);
    assert_eq!(run.value(id(5, 7)), Some(144), "after the digit of the former run");
    assert_eq!(run.numbers().len(), 3, "no other context of the block");
    let mut slices = 0;
    while run.store.is_restoring() {
        let before = run.numbers().len();
        run.restore_next(5);
        assert!(run.numbers().len() - before <= 128);
        slices += 1;
    }
    assert_eq!(run.numbers().len(), 303);
    assert!(slices > 2, "{slices}");
    assert_eq!(run.value(id(5, 7)), Some(144), "a restored context is not replaced by its document");
    run.input(6, id(9, 1), Timer::T3513);
    assert_eq!(run.value(id(9, 1)), Some(26));
}

#[test]
fn inputs_wait_while_the_store_cannot_be_read() {
    let documents = documents();
    let mut run = serving(&documents);
    run.is_full.store(true, Ordering::Relaxed);
    run.deliver(3, id(9, 1), Timer::T3513);
    run.restore_next(3);
    assert!(run.store.is_failing() && !run.store.is_restoring_now());
    run.input(4, id(0, 1), Timer::T3513);
    assert_eq!((run.value(id(0, 1)), run.value(id(9, 1))), (Some(24), None), "restored contexts are served");
    run.is_full.store(false, Ordering::Relaxed);
    run.store.end_turn(at(3) + RETRY, &mut run.shard, &mut []);
    assert!(run.store.is_restoring_now());
    run.restore_next(1005);
    assert_eq!(run.value(id(9, 1)), Some(25), "its input was not lost");
}

#[test]
fn a_document_that_cannot_be_read_holds_up_no_other() {
    let documents = documents();
    let mut run = serving(&documents);
    run.is_full.store(true, Ordering::Relaxed);
    run.deliver(3, id(9, 1), Timer::T3513);
    // Writes succeed, so that the outage is over each time; reads fail.
    for attempt in 1..=31 {
        run.restore_next(1000 * attempt);
        run.is_full.store(false, Ordering::Relaxed);
        run.store.end_turn(at(1000 * attempt) + RETRY, &mut run.shard, &mut []);
        run.is_full.store(true, Ordering::Relaxed);
    }
    assert_eq!((run.value(id(9, 1)), run.health.unreadable()), (Some(0), 1), "the context is new");
}

/// Seed 300071 of the world.
#[test]
fn no_document_counts_as_unreadable_while_the_documents_cannot_even_be_listed() {
    let documents = documents();
    let mut run = serving(&documents);
    run.is_gone.store(true, Ordering::Relaxed);
    run.restore_next(3);
    assert!(run.store.is_failing() && !run.store.is_restoring_now(), "no attempt before the next second");
    for attempt in 1..=40 {
        run.store.end_turn(at(1100 * attempt), &mut run.shard, &mut []);
        run.restore_next(1100 * attempt);
        assert!(run.store.is_failing() && !run.store.is_restoring_now(), "attempt {attempt}");
    }
    // An input is now the first that needs one of them.
    run.deliver(45_003, id(9, 1), Timer::T3513);
    run.store.end_turn(at(45_003), &mut run.shard, &mut []);
    run.restore_next(45_003);
    assert_eq!((run.value(id(9, 1)), run.health.unreadable()), (None, 0), "the input waits");
    run.is_gone.store(false, Ordering::Relaxed);
    run.store.end_turn(at(46_003) + RETRY, &mut run.shard, &mut []);
    assert!(run.store.is_restoring_now());
    run.restore_next(47_003);
    assert_eq!((run.value(id(9, 1)), run.health.unreadable()), (Some(23), 0), "its document was read");
}

/// As `serving`, with an engine on a thread of its own, as for a server.
fn serving_from_a_server(documents: &MemoryStore, is_gone: bool) -> Run {
    let mode = StoreMode::of_time(WriteTime::BeforeSends);
    let blocks: Vec<_> = BlockId::all().collect();
    let mut run = Run::without_contexts(documents, mode, None, (blocks.clone(), Claims::None), false);
    let is_full = Arc::clone(&run.is_full);
    is_full.store(is_gone, Ordering::Relaxed);
    let is_gone = Arc::clone(&run.is_gone);
    let disk = Disk { inner: documents.engine(), is_full, is_gone, flushed: None, claims: Claims::None };
    let engine = EngineThread::start("server".into(), Box::new(disk), Box::new(|| {})).unwrap();
    run.store = ContextStore::new(blocks, Box::new(engine), mode, 1, Arc::clone(&run.health));
    run.store.begin_restoring(at(0), &mut run.shard);
    run
}

#[test]
fn contexts_in_a_server_are_restored_while_the_shard_serves() {
    let documents = documents();
    let mut run = serving_from_a_server(&documents, false);
    assert_eq!(run.numbers(), [id(0, 1), id(1000, IN_USE.into())]);
    run.deliver(3, id(5, 7), Timer::T3513);
    run.restore_next(4);
    assert_eq!((run.value(id(5, 7)), run.numbers().len()), (Some(14), 3));
    while run.store.is_restoring() {
        run.restore_next(5);
    }
    assert_eq!(run.numbers().len(), 303);
}

/// A server that counts the requests for documents: each takes a round trip.
struct Far {
    inner: MemoryEngine,
    requests: Arc<AtomicU64>,
}

impl Far {
    fn asked(&mut self) -> &mut MemoryEngine {
        self.requests.fetch_add(1, Ordering::Relaxed);
        &mut self.inner
    }
}

impl Engine for Far {
    fn append(&mut self, batch: &Batch) -> Result<Appended, EngineError> {
        self.inner.append(batch)
    }

    fn read(&mut self, key: DocumentKey) -> Result<Option<StoredDocument>, DocumentError> {
        self.asked().read(key)
    }

    fn read_each(&mut self, keys: &[DocumentKey], visit: &mut dyn FnMut(DocumentKey, ReadResult)) {
        self.asked().read_each(keys, visit);
    }

    fn read_block(
        &mut self,
        kind: DocumentKind,
        block: u16,
        visit: &mut dyn FnMut(DocumentKey, Result<StoredDocument, DocumentError>),
    ) -> Result<(), EngineError> {
        self.asked().read_block(kind, block, visit)
    }

    fn list(&mut self, places: &[(DocumentKind, u16)]) -> Result<Vec<DocumentKey>, EngineError> {
        self.asked().list(places)
    }

    fn list_due(
        &mut self,
        places: &[(DocumentKind, u16)],
        until: UnixMillis,
    ) -> Result<Vec<DocumentKey>, EngineError> {
        self.asked().list_due(places, until)
    }

    fn due(&mut self, block: u16, until: UnixMillis, limit: usize) -> Result<Vec<Due>, EngineError> {
        self.asked().due(block, until, limit)
    }

    fn fence(&mut self, block: u16, owner: OwnerVersion) -> Result<(), EngineError> {
        self.inner.fence(block, owner)
    }

    fn fenced_below(&mut self, block: u16) -> Result<OwnerVersion, EngineError> {
        self.inner.fenced_below(block)
    }

    fn waits_for_network(&self) -> bool {
        true
    }

    fn durable(&self) -> Sequence {
        self.inner.durable()
    }

    fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }
}

/// With a round trip of 1 ms, a request for each of 1,024 blocks takes a second, for each kind of documents.
#[test]
fn the_documents_of_many_blocks_are_listed_with_one_request() {
    let documents = documents();
    let mut former = Run::start(&documents, WriteTime::BeforeSends);
    for block in 100..900 {
        former.input(2, id(block, 1), Timer::T3513);
    }
    let blocks: Vec<_> = BlockId::all().collect();
    for (mode, is_shared) in [
        (StoreMode::of_time(WriteTime::BeforeSends), false),
        (StoreMode { drops_copies: true, ..StoreMode::of_time(WriteTime::BeforeSends) }, false),
        (StoreMode { drops_copies: true, ..StoreMode::of_time(WriteTime::BeforeSends) }, true),
    ] {
        let owner = (blocks.clone(), Claims::None);
        let mut run = Run::without_contexts(&documents, mode, None, owner, is_shared);
        let requests = Arc::new(AtomicU64::new(0));
        let engine = Far { inner: documents.engine(), requests: Arc::clone(&requests) };
        run.store = ContextStore::new(blocks.clone(), Box::new(engine), mode, 1, Arc::clone(&run.health));
        if is_shared {
            run.store = run.store.with_shared_documents(DocumentSecret::of_number(7));
        }
        run.store.begin_restoring(at(0), &mut run.shard);
        while run.store.is_restoring() {
            run.restore_next(5);
        }
        let expected = if is_shared { 0 } else { 303 + 800 };
        assert_eq!(run.numbers().len(), expected, "{mode:?}");
        let requests = requests.load(Ordering::Relaxed);
        assert!(requests < 60, "{requests} requests with {mode:?}, shared: {is_shared}");
    }
}

#[test]
fn a_server_that_is_gone_at_the_start_is_read_when_it_returns() {
    let documents = documents();
    let mut run = serving_from_a_server(&documents, true);
    run.deliver(1, id(9, 1), Timer::T3513);
    // Longer than the attempts for a document: none of them reads one.
    for second in 1..=40 {
        let now = at(1100 * second);
        run.store.end_turn(now, &mut run.shard, &mut []);
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while run.store.next_turn().is_none() {
            assert!(std::time::Instant::now() < until, "no answer to the probe");
            assert!(run.store.take_loaded(now, &mut run.shard).is_empty());
        }
        assert!(run.store.is_failing() && !run.store.is_restoring_now());
    }
    assert_eq!((run.numbers().len(), run.health.unreadable()), (0, 0));
    run.is_full.store(false, Ordering::Relaxed);
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    for second in 41.. {
        let now = at(1100 * second);
        run.store.take_loaded(now, &mut run.shard);
        run.store.end_turn(now, &mut run.shard, &mut []);
        if run.store.is_restoring_now() {
            break;
        }
        assert!(std::time::Instant::now() < until, "the server's return is not noticed");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    run.restore_next(50_003);
    assert_eq!(run.value(id(9, 1)), Some(23), "its input was not lost");
    while run.store.is_restoring() {
        run.restore_next(50_004);
    }
    assert_eq!((run.numbers().len(), run.health.unreadable()), (303, 0));
}

#[test]
fn a_run_after_a_panic_restores_what_the_former_one_had_not() {
    let documents = documents();
    let mut run = serving(&documents);
    run.input(3, id(5, 7), Timer::T3513);
    run.restore_next(3);
    let mut next = Run::without_contexts(
        &documents,
        StoreMode::of_time(WriteTime::BeforeSends),
        None,
        (Vec::new(), Claims::None),
        false,
    );
    std::mem::swap(&mut run.store, &mut next.store);
    next.store.start_run(&mut next.shard);
    next.store.take_over(at(4), &mut next.shard, |_| Some(Fate::GoesOn));
    assert_eq!(next.numbers(), [id(0, 1), id(5, 7), id(1000, IN_USE.into())], "those are taken over");
    next.deliver(5, id(9, 1), Timer::T3513);
    next.restore_next(5);
    assert_eq!(next.value(id(9, 1)), Some(25));
    while next.store.is_restoring() {
        next.restore_next(6);
    }
    assert_eq!(next.numbers().len(), 303);
}

#[test]
fn blocks_of_a_process_that_has_ended_are_restored_while_the_shard_serves() {
    let documents = documents();
    let mode = StoreMode::of_time(WriteTime::BeforeSends);
    let blocks = BlockId::all().take(3).collect();
    let mut run = Run::without_contexts(&documents, mode, None, (blocks, Claims::None), false);
    run.store.begin_restoring(at(0), &mut run.shard);
    while run.store.is_restoring() {
        run.restore_next(1);
    }
    assert_eq!(run.numbers(), [id(0, 1)]);
    run.store.restore_blocks(at(2), &mut run.shard, &[BlockId::new(5).unwrap(), BlockId::new(9).unwrap()]);
    run.deliver(3, id(9, 1), Timer::T3513);
    run.restore_next(3);
    assert_eq!(run.value(id(9, 1)), Some(23));
    while run.store.is_restoring() {
        run.restore_next(4);
    }
    assert_eq!(run.numbers().len(), 302);
}
