//! Engine `memory`: documents in the process, for tests and for residency `soft` in one process.

use super::document::{Change, Entry, is_complete, merge};
use super::engine::{Appended, DocumentError, Due, Engine, EngineError, Sequence, Statistics};
use super::{
    BLOCKS, Batch, Document, DocumentKey, DocumentKind, Head, MAX_BATCH, MAX_DOCUMENT, OwnerVersion,
    Revision, UnixMillis,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Documents in memory, shared by the engines of a process.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore(Arc<Mutex<Content>>);

#[derive(Debug, Default)]
struct Content {
    documents: BTreeMap<(u16, DocumentKind, u32), Document>,
    /// By scope and block.
    fences: BTreeMap<(u16, u16), OwnerVersion>,
    sequence: u64,
}

impl MemoryStore {
    /// An engine for a shard.
    pub fn engine(&self) -> MemoryEngine {
        self.engine_in(0)
    }

    /// An engine for a shard of one of several processes: those with another scope do not fence it off.
    pub fn engine_in(&self, scope: u16) -> MemoryEngine {
        MemoryEngine { store: self.clone(), scope, sequence: Sequence(0), statistics: Statistics::default() }
    }

    /// Makes a document what it was before: for simulations of a store that loses writes.
    pub fn put_back(&self, key: DocumentKey, former: Option<Document>) {
        let mut content = self.content();
        match former {
            Some(document) => content.documents.insert(place(key), document),
            None => content.documents.remove(&place(key)),
        };
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        // Each change of the content is complete before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The engine of one shard.
#[derive(Debug)]
pub struct MemoryEngine {
    store: MemoryStore,
    /// That of its fences.
    scope: u16,
    sequence: Sequence,
    statistics: Statistics,
}

impl Engine for MemoryEngine {
    fn append(&mut self, batch: &Batch) -> Result<Appended, EngineError> {
        let start = Instant::now();
        let result = check_bounds(batch).and_then(|()| self.store.content().append(self.scope, batch));
        let counts = &mut self.statistics;
        counts.write_ns += nanoseconds_since(start);
        match &result {
            Ok(appended) => {
                self.sequence = appended.sequence;
                counts.writes += count(batch.len() - appended.conflicts.len());
                counts.octets_written += count(batch.octets());
                counts.requests += 1;
            }
            Err(_) => counts.failures += 1,
        }
        result
    }

    fn read(&mut self, key: DocumentKey) -> Result<Option<Document>, DocumentError> {
        let start = Instant::now();
        let found = self.store.content().documents.get(&place(key)).cloned();
        self.statistics.read_ns += nanoseconds_since(start);
        self.statistics.reads += 1;
        self.statistics.requests += 1;
        self.statistics.read_requests += 1;
        self.statistics.octets_read += count(found.as_ref().map_or(0, Document::octets));
        Ok(found)
    }

    fn read_block(
        &mut self,
        kind: DocumentKind,
        block: u16,
        visit: &mut dyn FnMut(DocumentKey, Result<Document, DocumentError>),
    ) -> Result<(), EngineError> {
        let range = (block, kind, 0)..=(block, kind, u32::MAX);
        let found: Vec<Document> =
            self.store.content().documents.range(range).map(|(_, found)| found.clone()).collect();
        self.statistics.requests += 1;
        self.statistics.read_requests += 1;
        for document in found {
            self.statistics.reads += 1;
            self.statistics.octets_read += count(document.octets());
            visit(document.key, Ok(document));
        }
        Ok(())
    }

    fn due(&mut self, block: u16, until: UnixMillis, limit: usize) -> Result<Vec<Due>, EngineError> {
        let content = self.store.content();
        let documents = content.documents.values().filter(|document| document.key.block == block);
        let due =
            documents.filter_map(|document| Some(Due { deadline: document.deadline?, key: document.key }));
        Ok(earliest(due.filter(|due| due.deadline <= until).collect(), limit))
    }

    fn fence(&mut self, block: u16, owner: OwnerVersion) -> Result<(), EngineError> {
        check_block(block)?;
        let mut content = self.store.content();
        content.check_fence((self.scope, block), owner)?;
        content.fences.insert((self.scope, block), owner);
        Ok(())
    }

    fn fenced_below(&mut self, block: u16) -> Result<OwnerVersion, EngineError> {
        check_block(block)?;
        Ok(self.store.content().fences.get(&(self.scope, block)).copied().unwrap_or_default())
    }

    fn durable(&self) -> Sequence {
        self.sequence
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }
}

impl Content {
    fn append(&mut self, scope: u16, batch: &Batch) -> Result<Appended, EngineError> {
        for entry in batch.entries() {
            self.check_fence((scope, entry.key.block), batch.owner())?;
        }
        let mut conflicts = Vec::new();
        for (at, entry) in batch.entries().iter().enumerate() {
            if self.is_conflict(entry) {
                conflicts.push(at);
                continue;
            }
            self.sequence += 1;
            self.fences.insert((scope, entry.key.block), batch.owner());
            self.change(batch, entry);
        }
        Ok(Appended { sequence: Sequence(self.sequence), conflicts })
    }

    fn check_fence(&self, (scope, block): (u16, u16), owner: OwnerVersion) -> Result<(), EngineError> {
        let current = self.fences.get(&(scope, block)).copied().unwrap_or_default();
        if owner < current {
            return Err(EngineError::Fenced { block, current: current.0, own: owner.0 });
        }
        Ok(())
    }

    fn is_conflict(&self, entry: &Entry) -> bool {
        let found = self.documents.get(&place(entry.key));
        let revision = found.map_or(Revision(0), |document| document.revision);
        entry.expected.is_some_and(|expected| expected != revision)
            || (entry.change == Change::Update && found.is_none())
    }

    fn change(&mut self, batch: &Batch, entry: &Entry) {
        let place = place(entry.key);
        let sections = batch.sections(entry);
        let merged = match entry.change {
            Change::Delete => {
                self.documents.remove(&place);
                return;
            }
            Change::Replace => merge([sections]),
            Change::Update => match self.documents.get(&place) {
                Some(former) => merge([former.wire(), sections]),
                None => return,
            },
        };
        self.documents.insert(place, Document::new(entry.head(), batch.owner(), false, merged));
    }
}

fn place(key: DocumentKey) -> (u16, DocumentKind, u32) {
    (key.block, key.kind, key.number)
}

/// The first `limit` by deadline.
pub(super) fn earliest(mut due: Vec<Due>, limit: usize) -> Vec<Due> {
    due.sort_unstable();
    due.truncate(limit);
    due
}

/// The bounds of a batch, the same for all engines.
pub(super) fn check_bounds(batch: &Batch) -> Result<(), EngineError> {
    if batch.len() > MAX_BATCH {
        return Err(EngineError::TooMany(batch.len()));
    }
    for entry in batch.entries() {
        check_block(entry.key.block)?;
        let sections = batch.sections(entry);
        if sections.len() > MAX_DOCUMENT || !is_complete(sections) {
            return Err(EngineError::TooLarge { key: entry.key, octets: sections.len() });
        }
    }
    Ok(())
}

pub(super) fn check_block(block: u16) -> Result<(), EngineError> {
    if usize::from(block) < BLOCKS { Ok(()) } else { Err(EngineError::NoSuchBlock(block)) }
}

pub(super) fn nanoseconds_since(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

impl Entry {
    pub(super) fn head(&self) -> Head {
        Head { key: self.key, revision: self.revision, layout: self.layout, deadline: self.deadline }
    }
}
