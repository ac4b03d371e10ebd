//! The server of documents in a world, and its faults: it does not answer, it has no room, it writes later, or it loses what it
//! acknowledged last.
//!
//! ```text
//!  ContextStore ── append ──> SlowEngine: a queue ── some milliseconds later ──> ServerEngine ──> MemoryEngine
//!       ^                                                                        │
//!       └───────── durable, take_failures, take_reads <──────────────────────────┘
//! ```

use crate::dice::Dice;
use pith_nf::kit::Instant;
use pith_runtime::residency::{
    Appended, Batch, Document, DocumentError, DocumentKey, DocumentKind, Due, Engine, EngineError,
    LateFailure, MemoryEngine, MemoryStore, OwnerVersion, ReadResult, Sequence, Statistics, UnixMillis,
    append_merged,
};
use pith_types::BlockId;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A loss takes back at most the writes of this time: as with `appendfsync everysec`.
const LOSABLE: Duration = Duration::from_secs(1);

/// The documents of all processes of a world.
#[derive(Clone)]
pub(crate) struct Server {
    documents: MemoryStore,
    state: Arc<Mutex<State>>,
}

struct State {
    now: Instant,
    is_gone: bool,
    is_full: bool,
    /// Processes that do not reach it.
    cut_off: BTreeSet<usize>,
    /// The longest time from a request to its answer; with `None` the server answers at once.
    latency: Option<Duration>,
    dice: Dice,
    /// Number of losses so far.
    losses: u32,
    /// Documents that were not written since the last loss.
    stale: BTreeSet<DocumentKey>,
    /// What the writes of the last second replaced.
    replaced: VecDeque<(Instant, DocumentKey, Option<Document>)>,
}

impl Server {
    /// An empty server.
    pub(crate) fn new(seed: u64, latency: Option<Duration>) -> Self {
        let state = State {
            now: Instant::default(),
            is_gone: false,
            is_full: false,
            cut_off: BTreeSet::new(),
            latency,
            dice: Dice::new(seed),
            losses: 0,
            stale: BTreeSet::new(),
            replaced: VecDeque::new(),
        };
        Self { documents: MemoryStore::default(), state: Arc::new(Mutex::new(state)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The engine of a shard of that process. Processes with another scope do not fence it off.
    pub(crate) fn engine(&self, (process, scope): (usize, u16)) -> ServerEngine {
        let losses = self.state().losses;
        ServerEngine { inner: self.documents.engine_in(scope), server: self.clone(), process, losses }
    }

    /// As `engine`; changes and reads wait in a queue, as with an engine on a thread of its own. `None` if the server has no latency.
    pub(crate) fn slow_engine(&self, process: (usize, u16)) -> Option<SlowEngine> {
        self.state().latency?;
        let queue = Queue {
            inner: self.engine(process),
            entries: VecDeque::new(),
            last: 0,
            completed: 0,
            failures: Vec::new(),
            reads: Vec::new(),
        };
        Some(SlowEngine(Arc::new(Mutex::new(queue))))
    }

    /// The time of the world.
    pub(crate) fn set_now(&self, now: Instant) {
        self.state().now = now;
    }

    /// Whether it answers.
    pub(crate) fn set_gone(&self, is_gone: bool) {
        self.state().is_gone = is_gone;
    }

    /// Whether a process does not reach it.
    pub(crate) fn cut_off(&self, process: usize, is_cut_off: bool) {
        let mut state = self.state();
        if is_cut_off {
            state.cut_off.insert(process);
        } else {
            state.cut_off.remove(&process);
        }
    }

    /// Whether it answers that process.
    pub(crate) fn answers(&self, process: usize) -> bool {
        let state = self.state();
        !state.is_gone && !state.cut_off.contains(&process)
    }

    /// Whether it has no room for changes. Deletions, too, are then refused.
    pub(crate) fn set_full(&self, is_full: bool) {
        self.state().is_full = is_full;
    }

    /// Whether changes fail at present.
    pub(crate) fn fails(&self) -> bool {
        let state = self.state();
        state.is_gone || state.is_full
    }

    /// It loses the writes of that time, at most of the last second, and says so to all: documents that are not written again are outdated.
    pub(crate) fn lose(&self, time: Duration) {
        let mut state = self.state();
        let now = state.now;
        while let Some((_, key, former)) = state.replaced.pop_back_if(|(at, ..)| *at + time > now) {
            self.documents.put_back(key, former);
        }
        state.replaced.clear();
        state.stale = self.documents().into_iter().collect();
        state.losses += 1;
    }

    /// Whether documents are from before the last loss: a context that is not in a process is lost with its document.
    pub(crate) fn has_stale(&self) -> bool {
        !self.state().stale.is_empty()
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

/// The engine of one shard: each call has its result at once.
pub(crate) struct ServerEngine {
    inner: MemoryEngine,
    server: Server,
    process: usize,
    /// Losses of which the shard knows.
    losses: u32,
}

impl ServerEngine {
    /// Not `check`, which would be the method of `Engine`.
    fn reach(&self) -> Result<(), EngineError> {
        if !self.server.answers(self.process) {
            return Err(EngineError::Remote { server: "memory".into(), reason: "an outage".into() });
        }
        Ok(())
    }

    /// Marks a document that was not written since a loss.
    fn marked(&self, mut document: Document) -> Document {
        document.is_stale = self.server.state().stale.contains(&document.key);
        document
    }

    /// Notes what the batch replaces, so that a loss can take it back.
    fn note_replaced(&mut self, batch: &Batch) {
        for key in batch.keys() {
            let former = self.inner.read(key).ok().flatten().map(|document| self.marked(document));
            let mut state = self.server.state();
            let now = state.now;
            state.replaced.push_back((now, key, former));
            while state.replaced.front().is_some_and(|(at, ..)| *at + LOSABLE < now) {
                state.replaced.pop_front();
            }
        }
    }
}

impl Engine for ServerEngine {
    fn append(&mut self, batch: &Batch) -> Result<Appended, EngineError> {
        self.reach()?;
        if self.server.state().is_full {
            return Err(EngineError::Full("memory".into()));
        }
        self.note_replaced(batch);
        let appended = self.inner.append(batch)?;
        let mut state = self.server.state();
        for (at, key) in batch.keys().enumerate() {
            if !appended.conflicts.contains(&at) {
                state.stale.remove(&key);
            }
        }
        Ok(appended)
    }

    fn read(&mut self, key: DocumentKey) -> ReadResult {
        let failed = |error: EngineError| DocumentError::Remote { key, reason: error.to_string() };
        self.reach().map_err(failed)?;
        Ok(self.inner.read(key)?.map(|document| self.marked(document)))
    }

    fn read_block(
        &mut self,
        kind: DocumentKind,
        block: u16,
        visit: &mut dyn FnMut(DocumentKey, Result<Document, DocumentError>),
    ) -> Result<(), EngineError> {
        self.reach()?;
        let mut found = Vec::new();
        self.inner.read_block(kind, block, &mut |key, read| found.push((key, read)))?;
        found.into_iter().for_each(|(key, read)| visit(key, read.map(|document| self.marked(document))));
        Ok(())
    }

    fn due(&mut self, block: u16, until: UnixMillis, limit: usize) -> Result<Vec<Due>, EngineError> {
        self.inner.due(block, until, limit)
    }

    fn fence(&mut self, block: u16, owner: OwnerVersion) -> Result<(), EngineError> {
        self.reach()?;
        self.inner.fence(block, owner)
    }

    fn fenced_below(&mut self, block: u16) -> Result<OwnerVersion, EngineError> {
        self.reach()?;
        self.inner.fenced_below(block)
    }

    fn durable(&self) -> Sequence {
        self.inner.durable()
    }

    fn take_loss(&mut self) -> bool {
        let losses = self.server.state().losses;
        std::mem::replace(&mut self.losses, losses) != losses
    }

    fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }
}

/// The engine of one shard, whose changes and reads are executed later.
#[derive(Clone)]
pub(crate) struct SlowEngine(Arc<Mutex<Queue>>);

struct Queue {
    inner: ServerEngine,
    entries: VecDeque<(Instant, Queued)>,
    /// Number of the last accepted batch, and of the last one that was written or has failed.
    last: u64,
    completed: u64,
    failures: Vec<LateFailure>,
    reads: Vec<(DocumentKey, ReadResult)>,
}

enum Queued {
    Append(Batch),
    Read(DocumentKey),
}

impl SlowEngine {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the queue proceeds.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.queue().entries.front().map(|(ready, _)| *ready)
    }

    /// Executes what is due.
    pub(crate) fn proceed(&self) {
        let mut queue = self.queue();
        let now = queue.inner.server.state().now;
        while let Some((_, queued)) = queue.entries.pop_front_if(|(ready, _)| *ready <= now) {
            queue.execute(queued);
        }
    }

    /// The process ends: the first few of its pending requests arrive.
    pub(crate) fn end(&self) {
        let mut queue = self.queue();
        let waiting = queue.entries.len() as u64;
        let arrive = queue.inner.server.state().dice.below(waiting + 1) as usize;
        let entries = std::mem::take(&mut queue.entries);
        entries.into_iter().take(arrive).for_each(|(_, queued)| queue.execute(queued));
    }
}

impl Queue {
    fn add(&mut self, queued: Queued) {
        let mut state = self.inner.server.state();
        let most = state.latency.unwrap_or_default().as_millis() as u64;
        let ready = state.now + state.dice.millis(0, most);
        drop(state);
        let ready = self.entries.back().map_or(ready, |(last, _)| ready.max(*last));
        self.entries.push_back((ready, queued));
    }

    fn execute(&mut self, queued: Queued) {
        match queued {
            Queued::Append(batch) => {
                let keys: Vec<_> = batch.keys().collect();
                let failure = match append_merged(&mut self.inner, &batch) {
                    Ok(Appended { conflicts, .. }) if conflicts.is_empty() => None,
                    Ok(Appended { conflicts, .. }) => {
                        let keys = conflicts.iter().filter_map(|at| keys.get(*at).copied()).collect();
                        Some(LateFailure { keys, error: None })
                    }
                    Err(error) => Some(LateFailure { keys, error: Some(error) }),
                };
                self.failures.extend(failure);
                self.completed += 1;
            }
            Queued::Read(key) => {
                let read = self.inner.read(key);
                self.reads.push((key, read));
            }
        }
    }

    /// As a call that waits for its result: pending requests are executed before it.
    fn wait(&mut self) -> &mut ServerEngine {
        for (_, queued) in std::mem::take(&mut self.entries) {
            self.execute(queued);
        }
        &mut self.inner
    }
}

impl Engine for SlowEngine {
    fn append(&mut self, batch: &Batch) -> Result<Appended, EngineError> {
        let mut queue = self.queue();
        queue.add(Queued::Append(batch.copy()));
        queue.last += 1;
        Ok(Appended { sequence: Sequence(queue.last), conflicts: Vec::new() })
    }

    fn read(&mut self, key: DocumentKey) -> ReadResult {
        self.queue().wait().read(key)
    }

    fn read_block(
        &mut self,
        kind: DocumentKind,
        block: u16,
        visit: &mut dyn FnMut(DocumentKey, Result<Document, DocumentError>),
    ) -> Result<(), EngineError> {
        self.queue().wait().read_block(kind, block, visit)
    }

    fn due(&mut self, block: u16, until: UnixMillis, limit: usize) -> Result<Vec<Due>, EngineError> {
        self.queue().wait().due(block, until, limit)
    }

    fn fence(&mut self, block: u16, owner: OwnerVersion) -> Result<(), EngineError> {
        self.queue().wait().fence(block, owner)
    }

    fn fenced_below(&mut self, block: u16) -> Result<OwnerVersion, EngineError> {
        self.queue().wait().fenced_below(block)
    }

    /// A batch that failed counts as well, as with the runtime's thread.
    fn durable(&self) -> Sequence {
        Sequence(self.queue().completed)
    }

    fn begin_read(&mut self, key: DocumentKey) -> Option<ReadResult> {
        self.queue().add(Queued::Read(key));
        None
    }

    fn take_reads(&mut self) -> Vec<(DocumentKey, ReadResult)> {
        std::mem::take(&mut self.queue().reads)
    }

    fn take_failures(&mut self) -> Vec<LateFailure> {
        std::mem::take(&mut self.queue().failures)
    }

    fn take_loss(&mut self) -> bool {
        self.queue().inner.take_loss()
    }

    fn statistics(&self) -> Statistics {
        self.queue().inner.statistics()
    }
}
