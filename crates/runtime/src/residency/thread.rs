//! A thread of its own for an engine that waits for a network: the shard's thread goes on with other UEs meanwhile.
//!
//! ```text
//!  shard ── append ──> changes ──> thread ──> Engine::append ──> server
//!    ^                                 │
//!    └── durable, take_failures, take_reads <── on_written: wakes the shard
//! ```
//!
//! While the thread waits, the changes of further turns gather, and go with one request (group commit). Reads wait for the changes
//! before them.

use super::engine::{LateFailure, ReadResult};
use super::merging;
use super::{
    Appended, Batch, Document, DocumentError, DocumentKey, DocumentKind, Due, Engine, EngineError,
    OwnerVersion, Sequence, Statistics, UnixMillis,
};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Octets of changes of a shard that wait; at 1,000 UEs a second some seconds.
const MAX_WAITING: usize = 64 << 20;
/// Octets of changes in one request, unless one batch has more.
const MAX_REQUEST: usize = 4 << 20;
/// Documents in one request.
const MAX_READS: usize = 256;
/// After a failure batches and reads fail at once for this time, instead of each waiting for a server that does not answer.
const PAUSE: Duration = Duration::from_millis(500);

/// Time between two checks of the store ([`Engine::check`]).
const CHECK: Duration = Duration::from_secs(5);

/// Called by the thread after each write, and after the reads of [`Engine::begin_read`].
pub type OnWritten = Box<dyn Fn() + Send>;

/// An engine on a thread of its own.
pub struct EngineThread {
    commands: Option<Sender<Command>>,
    shared: Arc<Shared>,
    /// Number of the last accepted batch.
    last: u64,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// Number of the last batch that was written or has failed.
    completed: AtomicU64,
    /// Octets that wait.
    waiting: AtomicUsize,
    has_failures: AtomicBool,
    has_reads: AtomicBool,
    has_lost_writes: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    failures: Vec<LateFailure>,
    reads: Vec<(DocumentKey, ReadResult)>,
    statistics: Statistics,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Each change of the state is complete before anything can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A query, with the channel for its result.
type Query = Box<dyn FnOnce(&mut dyn Engine) + Send>;

enum Command {
    Append(Batch),
    Read(DocumentKey),
    Query(Query),
}

impl EngineThread {
    /// Starts the thread of a shard's engine.
    pub fn start(name: String, engine: Box<dyn Engine>, on_written: OnWritten) -> std::io::Result<Self> {
        let (commands, queue) = unbounded();
        let shared = Arc::new(Shared::default());
        let worker = Worker::new(engine, queue, Arc::clone(&shared), on_written);
        let thread = std::thread::Builder::new().name(name).spawn(move || worker.run())?;
        Ok(Self { commands: Some(commands), shared, last: 0, thread: Some(thread) })
    }

    /// Has the thread execute a query, and waits for the result; `None` if the thread has ended.
    fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&mut dyn Engine) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, result) = bounded(1);
        let query = Box::new(move |engine: &mut dyn Engine| {
            // It fails only if the caller no longer waits.
            let _ = answer.send(query(engine));
        });
        self.commands.as_ref()?.send(Command::Query(query)).ok()?;
        result.recv().ok()
    }
}

fn ended() -> EngineError {
    EngineError::Remote { server: "its thread".into(), reason: "it has ended: this is a bug in Pith".into() }
}

impl Engine for EngineThread {
    /// Accepts a batch. Conflicts and failures follow with [`Engine::take_failures`].
    fn append(&mut self, batch: &Batch) -> Result<Appended, EngineError> {
        super::memory::check_bounds(batch)?;
        let octets = batch.weight();
        if self.shared.waiting.load(Ordering::Relaxed) + octets > MAX_WAITING {
            return Err(EngineError::Backlog(MAX_WAITING >> 20));
        }
        self.shared.waiting.fetch_add(octets, Ordering::Relaxed);
        let commands = self.commands.as_ref().ok_or_else(ended)?;
        commands.send(Command::Append(batch.copy())).map_err(|_| ended())?;
        self.last += 1;
        Ok(Appended { sequence: Sequence(self.last), conflicts: Vec::new() })
    }

    fn read(&mut self, key: DocumentKey) -> Result<Option<Document>, DocumentError> {
        let gone = || DocumentError::Remote { key, reason: ended().to_string() };
        self.query(move |engine| engine.read(key)).ok_or_else(gone)?
    }

    fn read_block(
        &mut self,
        kind: DocumentKind,
        block: u16,
        visit: &mut dyn FnMut(DocumentKey, Result<Document, DocumentError>),
    ) -> Result<(), EngineError> {
        let read = self.query(move |engine| {
            let mut found = Vec::new();
            let result = engine.read_block(kind, block, &mut |key, read| found.push((key, read)));
            (found, result)
        });
        let (found, result) = read.ok_or_else(ended)?;
        for (key, read) in found {
            visit(key, read);
        }
        result
    }

    fn keys(&mut self, kind: DocumentKind, block: u16) -> Result<Vec<DocumentKey>, EngineError> {
        self.query(move |engine| engine.keys(kind, block)).ok_or_else(ended)?
    }

    fn list(&mut self, places: &[(DocumentKind, u16)]) -> Result<Vec<DocumentKey>, EngineError> {
        let places = places.to_vec();
        self.query(move |engine| engine.list(&places)).ok_or_else(ended)?
    }

    fn list_due(
        &mut self,
        places: &[(DocumentKind, u16)],
        until: UnixMillis,
    ) -> Result<Vec<DocumentKey>, EngineError> {
        let places = places.to_vec();
        self.query(move |engine| engine.list_due(&places, until)).ok_or_else(ended)?
    }

    fn read_each(&mut self, keys: &[DocumentKey], visit: &mut dyn FnMut(DocumentKey, ReadResult)) {
        let wanted = keys.to_vec();
        let read = self.query(move |engine| {
            let mut found = Vec::with_capacity(wanted.len());
            engine.read_each(&wanted, &mut |key, read| found.push((key, read)));
            found
        });
        match read {
            Some(found) => found.into_iter().for_each(|(key, read)| visit(key, read)),
            None => {
                let reason = ended().to_string();
                for key in keys {
                    visit(*key, Err(DocumentError::Remote { key: *key, reason: reason.clone() }));
                }
            }
        }
    }

    fn answers_at_once(&self) -> bool {
        false
    }

    fn due(&mut self, block: u16, until: UnixMillis, limit: usize) -> Result<Vec<Due>, EngineError> {
        self.query(move |engine| engine.due(block, until, limit)).ok_or_else(ended)?
    }

    fn fence(&mut self, block: u16, owner: OwnerVersion) -> Result<(), EngineError> {
        self.query(move |engine| engine.fence(block, owner)).ok_or_else(ended)?
    }

    fn fenced_below(&mut self, block: u16) -> Result<OwnerVersion, EngineError> {
        self.query(move |engine| engine.fenced_below(block)).ok_or_else(ended)?
    }

    fn take(&mut self, blocks: &[u16], own: OwnerVersion) -> Result<bool, EngineError> {
        let blocks = blocks.to_vec();
        self.query(move |engine| engine.take(&blocks, own)).ok_or_else(ended)?
    }

    fn claim(&mut self, blocks: &[u16], step: u64) -> Result<OwnerVersion, EngineError> {
        let blocks = blocks.to_vec();
        self.query(move |engine| engine.claim(&blocks, step)).ok_or_else(ended)?
    }

    /// A batch that failed counts as well: its effects leave, and the shard writes its contexts again.
    fn durable(&self) -> Sequence {
        if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            return Sequence(self.last);
        }
        Sequence(self.shared.completed.load(Ordering::Acquire))
    }

    fn begin_read(&mut self, key: DocumentKey) -> Option<ReadResult> {
        let sent = self.commands.as_ref().is_some_and(|commands| commands.send(Command::Read(key)).is_ok());
        (!sent).then(|| Err(DocumentError::Remote { key, reason: ended().to_string() }))
    }

    fn take_reads(&mut self) -> Vec<(DocumentKey, ReadResult)> {
        let has_reads = &self.shared.has_reads;
        if !has_reads.load(Ordering::Relaxed) || !has_reads.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        std::mem::take(&mut self.shared.state().reads)
    }

    fn take_failures(&mut self) -> Vec<LateFailure> {
        let has_failures = &self.shared.has_failures;
        if !has_failures.load(Ordering::Acquire) || !has_failures.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        std::mem::take(&mut self.shared.state().failures)
    }

    fn take_loss(&mut self) -> bool {
        self.shared.has_lost_writes.swap(false, Ordering::Relaxed)
    }

    fn statistics(&self) -> Statistics {
        self.shared.state().statistics
    }
}

impl Drop for EngineThread {
    /// Writes what was accepted.
    fn drop(&mut self) {
        self.commands = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("a thread of the store panicked: this is a bug in Pith, please report it");
        }
        let failures = std::mem::take(&mut self.shared.state().failures);
        if let Some(error) = failures.iter().find_map(|failure| failure.error.as_ref()) {
            let contexts: usize = failures.iter().map(|failure| failure.keys.len()).sum();
            tracing::error!("the last changes of {contexts} contexts are not stored: {error}");
        }
    }
}

struct Worker {
    engine: Box<dyn Engine>,
    queue: Receiver<Command>,
    shared: Arc<Shared>,
    on_written: OnWritten,
    /// After a failure: until when batches and reads fail at once, and why.
    paused: Option<(Instant, String)>,
    /// A command that was received while others were gathered.
    pending: Option<Command>,
    /// When the store is to be checked.
    check_at: Instant,
}

impl Worker {
    fn new(
        engine: Box<dyn Engine>,
        queue: Receiver<Command>,
        shared: Arc<Shared>,
        on_written: OnWritten,
    ) -> Self {
        // The first check, before anything is written, finds what the store has.
        let check_at = Instant::now();
        Self { engine, queue, shared, on_written, paused: None, pending: None, check_at }
    }

    /// The next command; `None` if there is none before the next check. An error if there are none any longer.
    fn next(&mut self) -> Result<Option<Command>, RecvTimeoutError> {
        if self.pending.is_some() {
            return Ok(self.pending.take());
        }
        match self.queue.recv_deadline(self.check_at) {
            Err(RecvTimeoutError::Timeout) => Ok(None),
            received => received.map(Some),
        }
    }

    /// Checks the store, if it is time, so that a process without traffic notices a loss, too.
    fn check(&mut self) {
        if Instant::now() < self.check_at {
            return;
        }
        if self.pause().is_none() {
            if let Err(error) = self.engine.check() {
                self.paused = Some((Instant::now() + PAUSE, error.to_string()));
            }
            self.note_statistics();
            if self.shared.has_lost_writes.load(Ordering::Relaxed) {
                (self.on_written)();
            }
        }
        self.check_at = Instant::now() + CHECK;
    }

    fn run(mut self) {
        while let Ok(command) = self.next() {
            self.check();
            let Some(command) = command else { continue };
            match command {
                Command::Append(batch) => self.append(batch),
                Command::Read(key) => self.read(key),
                Command::Query(query) => {
                    query(self.engine.as_mut());
                    self.note_statistics();
                }
            }
        }
    }

    /// Writes a batch together with those that wait behind it.
    fn append(&mut self, mut batch: Batch) {
        let (mut batches, mut octets) = (1, batch.weight());
        while let Ok(command) = self.queue.try_recv() {
            match command {
                Command::Append(later) if batch.absorb(&later, MAX_REQUEST) => {
                    batches += 1;
                    octets += later.weight();
                }
                other => {
                    self.pending = Some(other);
                    break;
                }
            }
        }
        if let Some(failure) = self.write(&batch) {
            self.shared.state().failures.push(failure);
            self.shared.has_failures.store(true, Ordering::Release);
        }
        self.note_statistics();
        self.shared.waiting.fetch_sub(octets, Ordering::Relaxed);
        // After the failures, so that the shard finds them when it finds its batch completed.
        self.shared.completed.fetch_add(batches, Ordering::Release);
        (self.on_written)();
    }

    /// Reads a document together with the reads that are pending behind it.
    fn read(&mut self, key: DocumentKey) {
        let mut keys = vec![key];
        while keys.len() < MAX_READS
            && let Ok(command) = self.queue.try_recv()
        {
            match command {
                Command::Read(key) => keys.push(key),
                other => {
                    self.pending = Some(other);
                    break;
                }
            }
        }
        let mut results = Vec::with_capacity(keys.len());
        match self.pause() {
            Some(reason) => {
                let failed = |key| (key, Err(DocumentError::Remote { key, reason: reason.clone() }));
                results.extend(keys.into_iter().map(failed));
            }
            None => self.read_now(&keys, &mut results),
        }
        self.note_statistics();
        self.shared.state().reads.append(&mut results);
        self.shared.has_reads.store(true, Ordering::Release);
        (self.on_written)();
    }

    fn read_now(&mut self, keys: &[DocumentKey], results: &mut Vec<(DocumentKey, ReadResult)>) {
        self.engine.read_each(keys, &mut |key, read| results.push((key, read)));
        let failure = results.iter().find_map(|(_, read)| read.as_ref().err().filter(|it| it.is_temporary()));
        if let Some(error) = failure {
            self.paused = Some((Instant::now() + PAUSE, error.to_string()));
        }
    }

    /// Why nothing is attempted at present.
    fn pause(&self) -> Option<String> {
        self.paused.as_ref().filter(|(until, _)| Instant::now() < *until).map(|(_, reason)| reason.clone())
    }

    fn write(&mut self, batch: &Batch) -> Option<LateFailure> {
        let all = || batch.keys().collect();
        if let Some(reason) = self.pause() {
            return Some(LateFailure { keys: all(), error: Some(EngineError::Paused(reason)) });
        }
        match merging::append(self.engine.as_mut(), batch) {
            Ok(appended) => {
                self.paused = None;
                let keys: Vec<_> = batch.keys().collect();
                let keys: Vec<_> =
                    appended.conflicts.iter().filter_map(|at| keys.get(*at).copied()).collect();
                (!keys.is_empty()).then_some(LateFailure { keys, error: None })
            }
            Err(error) => {
                self.paused = Some((Instant::now() + PAUSE, error.to_string()));
                Some(LateFailure { keys: all(), error: Some(error) })
            }
        }
    }

    fn note_statistics(&mut self) {
        if self.engine.take_loss() {
            self.shared.has_lost_writes.store(true, Ordering::Relaxed);
        }
        self.shared.state().statistics = self.engine.statistics();
    }
}

#[cfg(test)]
mod tests;
