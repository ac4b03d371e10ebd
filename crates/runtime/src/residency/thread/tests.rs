//! An engine on a thread of its own.

use super::super::tests::{head, key, whole};
use super::super::{MemoryEngine, MemoryStore, SectionId};
use super::*;
use std::sync::atomic::AtomicU32;
use std::sync::mpsc;

/// An engine whose writes wait for a permit. Its server can be gone.
struct Slow {
    inner: MemoryEngine,
    permits: mpsc::Receiver<()>,
    is_gone: Arc<AtomicBool>,
    writes: Arc<AtomicU32>,
}

impl Engine for Slow {
    fn append(&mut self, batch: &Batch) -> Result<Appended, EngineError> {
        self.permits.recv().unwrap();
        self.writes.fetch_add(1, Ordering::Relaxed);
        if self.is_gone.load(Ordering::Relaxed) {
            return Err(EngineError::Remote { server: "a".into(), reason: "gone".into() });
        }
        self.inner.append(batch)
    }

    fn read(&mut self, key: DocumentKey) -> Result<Option<Document>, DocumentError> {
        self.inner.read(key)
    }

    fn read_sections(
        &mut self,
        key: DocumentKey,
        _: &[SectionId],
    ) -> Result<Option<Document>, DocumentError> {
        self.inner.read(key)
    }

    fn read_block(
        &mut self,
        kind: DocumentKind,
        block: u16,
        visit: &mut dyn FnMut(DocumentKey, Result<Document, DocumentError>),
    ) -> Result<(), EngineError> {
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

    fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }
}

struct Setup {
    engine: EngineThread,
    permits: mpsc::Sender<()>,
    is_gone: Arc<AtomicBool>,
    writes: Arc<AtomicU32>,
    written: mpsc::Receiver<()>,
}

fn setup() -> Setup {
    let (permits, waiting) = mpsc::channel();
    let (notice, written) = mpsc::channel();
    let (is_gone, writes) = (Arc::<AtomicBool>::default(), Arc::<AtomicU32>::default());
    let inner = MemoryStore::default().engine();
    let slow = Slow { inner, permits: waiting, is_gone: Arc::clone(&is_gone), writes: Arc::clone(&writes) };
    let on_written = Box::new(move || {
        let _ = notice.send(());
    });
    let engine = EngineThread::start("test".into(), Box::new(slow), on_written).unwrap();
    Setup { engine, permits, is_gone, writes, written }
}

#[test]
fn changes_that_wait_go_with_one_request_and_reads_come_after_them() {
    let Setup { mut engine, permits, writes, written, .. } = setup();
    for revision in 1..=9 {
        let appended = engine.append(&whole(1, key(0, 1), revision, &[revision as u8])).unwrap();
        assert_eq!(appended.sequence, Sequence(revision));
    }
    assert_eq!(engine.durable(), Sequence(0));
    for _ in 0..9 {
        permits.send(()).unwrap();
    }
    let read = engine.read(key(0, 1)).unwrap().unwrap();
    assert_eq!((read.revision.0, read.section(1)), (9, Some([9].as_slice())));
    assert_eq!(engine.durable(), Sequence(9));
    // The first may have left alone.
    assert!(writes.load(Ordering::Relaxed) <= 2);
    assert!(engine.take_failures().is_empty());
    assert_eq!(engine.statistics().writes, 9);
    written.recv().unwrap();
}

#[test]
fn what_a_server_does_not_take_is_reported_and_later_batches_do_not_wait_for_it() {
    let Setup { mut engine, permits, is_gone, writes, written } = setup();
    is_gone.store(true, Ordering::Relaxed);
    engine.append(&whole(1, key(0, 1), 1, b"x")).unwrap();
    permits.send(()).unwrap();
    written.recv().unwrap();
    engine.append(&whole(1, key(0, 2), 1, b"x")).unwrap();
    written.recv().unwrap();
    assert_eq!((engine.durable(), writes.load(Ordering::Relaxed)), (Sequence(2), 1));
    let failures = engine.take_failures();
    let keys: Vec<_> = failures.iter().flat_map(|failure| failure.keys.clone()).collect();
    assert_eq!(keys, [key(0, 1), key(0, 2)]);
    // A read does not wait for the server either.
    assert!(engine.begin_read(key(0, 2)).is_none());
    written.recv().unwrap();
    let reads = engine.take_reads();
    let failed =
        matches!(&reads[..], [(_, Err(DocumentError::Remote { reason, .. }))] if reason.contains("gone"));
    assert!(failed, "{reads:?}");
    assert!(failures.iter().all(|failure| failure.error.as_ref().unwrap().to_string().contains("gone")));
    assert!(engine.take_failures().is_empty());
    is_gone.store(false, Ordering::Relaxed);
    std::thread::sleep(PAUSE);
    engine.append(&whole(1, key(0, 2), 1, b"x")).unwrap();
    permits.send(()).unwrap();
    written.recv().unwrap();
    assert!(engine.take_failures().is_empty());
    assert!(engine.read(key(0, 2)).unwrap().is_some());
}

#[test]
fn conflicts_are_reported_by_their_documents() {
    let Setup { mut engine, permits, written, .. } = setup();
    let mut batch = whole(1, key(0, 1), 1, b"x");
    batch.update(head(key(0, 2), 1)).section(1, b"absent");
    engine.append(&batch).unwrap();
    permits.send(()).unwrap();
    written.recv().unwrap();
    let failures = engine.take_failures();
    assert_eq!((failures.len(), &failures[0].keys), (1, &vec![key(0, 2)]));
    assert!(failures[0].error.is_none());
}

#[test]
fn waiting_changes_are_bounded_and_the_end_writes_them() {
    let Setup { mut engine, permits, writes, .. } = setup();
    let large = vec![0; 1 << 20];
    let mut accepted = 0;
    let error = loop {
        match engine.append(&whole(1, key(0, accepted), 1, &large)) {
            Ok(_) => accepted += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, EngineError::Backlog(64)), "{error}");
    assert!((60..=64).contains(&accepted), "{accepted}");
    for _ in 0..accepted {
        permits.send(()).unwrap();
    }
    drop(engine);
    assert!(writes.load(Ordering::Relaxed) >= 15, "at most four in a request");
}
