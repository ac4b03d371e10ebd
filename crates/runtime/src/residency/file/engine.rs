//! Writing and reading of one shard.

use super::super::document::{Change, Entry};
use super::super::engine::{Appended, DocumentError, Due, Engine, EngineError, Sequence, Statistics};
use super::super::memory::{check_block, check_bounds, count, earliest, nanoseconds_since};
use super::super::seal::{DocumentKeySchedule, TAG};
use super::super::{
    Batch, Document, DocumentKey, DocumentKind, MAX_BATCH, OwnerVersion, Revision, UnixMillis,
};
use super::index::{Block, Location, State};
use super::maintenance::Writer;
use super::record::{HEADER, Header, RecordKind};
use super::segment::{Segment, failed};
use super::shared::{Shared, locked};
use super::{LARGEST_SEGMENT, Sync};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

/// Updates of a document after which the compaction thread merges them into a whole document. With more of them, reads take longer
/// and the log is larger; with fewer, more octets are written.
const MERGE_UPDATES: usize = 8;
/// Octets after which the flushing thread asks the kernel to start writing them to the disk. Otherwise dirty pages accumulate, until
/// the kernel blocks threads that write.
const WRITEBACK: u64 = 4 << 20;

/// Nonces of a segment's records; higher ones are for the record of a stop. A segment has fewer records than this, but a nonce of a
/// failed write is not used again.
const NUMBERS: u32 = 1 << 31;

/// The engine of one shard.
pub struct FileEngine {
    shared: Arc<Shared>,
    writer: Arc<Writer>,
    output: Output,
    /// Octets written since the flushing thread was last woken.
    unwritten: u64,
    statistics: Statistics,
}

/// The segment to which one thread appends.
pub(super) struct Output {
    pub segment: Arc<Segment>,
    pub offset: u64,
    /// The next nonce. No nonce is used twice, not even after a failed write.
    number: u32,
    /// The batch in wire form.
    buffer: Vec<u8>,
    /// Its records.
    pub written: Vec<(Header, Location)>,
}

impl Output {
    pub fn new(segment: Arc<Segment>) -> Self {
        let offset = segment.length.load(Relaxed);
        Self { segment, offset, number: 0, buffer: Vec::new(), written: Vec::new() }
    }

    /// For the record of a stop: its nonce is above those of the other records, and new for each attempt.
    pub fn last(segment: Arc<Segment>) -> Self {
        let number = NUMBERS + segment.attempts.fetch_add(1, Relaxed);
        Self { number, ..Self::new(segment) }
    }

    /// Continues in a new segment and returns the former one.
    pub fn roll(&mut self, next: Arc<Segment>) -> Arc<Segment> {
        self.offset = next.length.load(Relaxed);
        self.number = 0;
        std::mem::replace(&mut self.segment, next)
    }

    pub fn has_numbers(&self) -> bool {
        (self.number as usize) < NUMBERS as usize - MAX_BATCH
    }

    pub fn clear(&mut self) {
        self.buffer.clear();
        self.written.clear();
    }

    /// Octets that `write` would write.
    pub fn pending(&self) -> usize {
        self.buffer.len()
    }

    /// Adds a record. Its length, nonce and CRC are set here.
    pub fn push(&mut self, mut header: Header, sections: &[u8]) -> Result<(), EngineError> {
        let schedule: &DocumentKeySchedule = self.segment.key().ok_or(EngineError::Seal)?;
        let start = self.buffer.len();
        header.number = self.number;
        self.number += 1;
        // MAX_DOCUMENT fits.
        header.length = (sections.len() + TAG) as u32;
        let mut encoded = header.encode();
        self.buffer.extend(encoded);
        self.buffer.extend(sections);
        let body = self.buffer.get_mut(start + HEADER..).unwrap_or_default();
        let tag =
            schedule.seal(header.number, Header::associated(&encoded), body).ok_or(EngineError::Seal)?;
        self.buffer.extend(tag);
        header.body_crc = crc32c::crc32c(self.buffer.get(start + HEADER..).unwrap_or_default());
        if let Some(place) = self.buffer.get_mut(start..start + HEADER) {
            header.encode_crcs(&mut encoded);
            place.copy_from_slice(&encoded);
        }
        self.buffer.extend(header.trailer());
        let at = Location {
            segment: self.segment.id,
            // Below LARGEST_SEGMENT, or `write` is not called.
            offset: (self.offset + start as u64) as u32,
            length: header.total() as u32,
        };
        self.written.push((header, at));
        Ok(())
    }

    /// Writes the records with one system call.
    pub fn write(&mut self) -> Result<u64, EngineError> {
        self.segment.write(&self.buffer, self.offset)?;
        let octets = self.buffer.len() as u64;
        self.offset += octets;
        Ok(octets)
    }
}

type Locked<'a> = Vec<(u16, MutexGuard<'a, Block>)>;

impl FileEngine {
    pub(super) fn new(shared: &Arc<Shared>, number: u16) -> Result<Self, EngineError> {
        // Without room the contexts of the log can be read. The flushing thread makes a segment when there is some.
        let segment = match shared.make_segment() {
            Err(EngineError::Full(_)) => {
                Arc::new(Segment::absent().map_err(|error| failed("open", "/dev/null".as_ref(), error))?)
            }
            made => made?,
        };
        let writer = Arc::new(Writer::new(number, Arc::clone(&segment)));
        locked(&shared.writers).push(Arc::clone(&writer));
        shared.sync_bell.ring();
        Ok(Self {
            shared: Arc::clone(shared),
            writer,
            output: Output::new(segment),
            unwritten: 0,
            statistics: Statistics::default(),
        })
    }

    /// The segment to which it appends.
    #[cfg(test)]
    pub(super) fn active(&self) -> &Segment {
        &self.output.segment
    }

    fn append_batch(&mut self, batch: &Batch) -> Result<Appended, EngineError> {
        check_bounds(batch)?;
        self.check_disk()?;
        self.continue_in_spare(batch)?;
        let shared = Arc::clone(&self.shared);
        let mut blocks = lock_blocks(&shared, batch);
        for (number, block) in &blocks {
            check_fence(*number, block, batch.owner())?;
        }
        let conflicts = conflicts(&blocks, batch);
        let sequence = self.encode(batch, &conflicts)?;
        if self.output.written.is_empty() {
            return Ok(Appended { sequence: self.appended(), conflicts });
        }
        let octets = self.output.write()?;
        for (header, at) in &self.output.written {
            self.add(&mut blocks, header, *at);
        }
        drop(blocks);
        self.wrote(octets, sequence);
        Ok(Appended { sequence, conflicts })
    }

    fn check_disk(&self) -> Result<(), EngineError> {
        if self.writer.is_broken.load(Relaxed) {
            return Err(EngineError::Disk(self.shared.directory.clone()));
        }
        if self.shared.is_removed.load(Relaxed) {
            return Err(EngineError::Removed(self.shared.directory.clone()));
        }
        Ok(())
    }

    /// Continues in the segment that was made in advance, if the current one is full.
    fn continue_in_spare(&mut self, batch: &Batch) -> Result<(), EngineError> {
        let is_full = self.output.offset >= self.shared.full.load(Relaxed) || !self.output.has_numbers();
        if is_full {
            let spare = locked(&self.writer.spare).take();
            if let Some(spare) = spare {
                let full = self.output.roll(Arc::clone(&spare));
                // In this order: the flushing thread reads `active` first, then `rolled`, and must find each write in one of them.
                if !full.is_absent() {
                    locked(&self.shared.rolled).push(full);
                }
                *locked(&self.writer.active) = spare;
            }
            // The flushing thread makes the next spare segment. Without a spare, this segment grows beyond its limit.
            self.shared.sync_bell.ring();
        }
        let most = count(batch.octets() + batch.len() * super::record::OVERHEAD);
        let is_absent = self.output.segment.is_absent();
        if is_absent || self.output.offset + most > LARGEST_SEGMENT || !self.output.has_numbers() {
            return Err(EngineError::Full(self.shared.directory.clone()));
        }
        Ok(())
    }

    /// Encodes all changes but conflicting ones, and returns the last one's number.
    fn encode(&mut self, batch: &Batch, conflicts: &[usize]) -> Result<Sequence, EngineError> {
        self.output.clear();
        let changes = batch.len() - conflicts.len();
        let first = self.shared.sequence.fetch_add(count(changes), Relaxed) + 1;
        let kept = batch.entries().iter().enumerate().filter(|(at, _)| !conflicts.contains(at));
        for (at, (_, entry)) in kept.enumerate() {
            let header = Header {
                kind: kind_of(entry.change),
                key: entry.key,
                length: 0,
                sequence: first + count(at),
                owner: batch.owner(),
                revision: entry.revision,
                deadline: entry.deadline,
                layout: entry.layout,
                // MAX_BATCH fits.
                remaining: (changes - 1 - at) as u16,
                number: 0,
                body_crc: 0,
            };
            let is_deleted = entry.change == Change::Delete;
            self.output.push(header, if is_deleted { &[] } else { batch.sections(entry) })?;
        }
        Ok(Sequence(first + count(changes) - 1))
    }

    /// Enters a record into the index.
    fn add(&self, blocks: &mut Locked<'_>, header: &Header, at: Location) {
        let Some(block) = find(blocks, header.key.block) else { return };
        block.fence = block.fence.max(header.owner);
        let entry = block.entry_mut(header.key);
        let updates = self.shared.with_live(entry, |entry| {
            entry.add(header, at);
            entry.updates.len()
        });
        if updates > 0 && updates.is_multiple_of(MERGE_UPDATES) {
            locked(&self.shared.to_merge).push(header.key);
            self.shared.compaction_bell.ring();
        }
    }

    fn wrote(&mut self, octets: u64, sequence: Sequence) {
        self.statistics.octets_written += octets;
        self.writer.appended.store(sequence.0, Release);
        self.unwritten += octets;
        if self.shared.sync == Sync::Batch || self.unwritten >= WRITEBACK {
            self.unwritten = 0;
            self.shared.sync_bell.ring();
        }
    }

    fn appended(&self) -> Sequence {
        Sequence(self.writer.appended.load(Acquire))
    }

    fn count_read(&mut self, start: Instant, requests: usize, result: &Result<Document, DocumentError>) {
        self.statistics.reads += 1;
        self.statistics.requests += count(requests);
        self.statistics.read_requests += count(requests);
        self.statistics.read_ns += nanoseconds_since(start);
        self.statistics.octets_read += result.as_ref().map_or(0, |document| count(document.octets()));
    }
}

impl Engine for FileEngine {
    fn append(&mut self, batch: &Batch) -> Result<Appended, EngineError> {
        if batch.is_empty() {
            return Ok(Appended { sequence: self.appended(), conflicts: Vec::new() });
        }
        let start = Instant::now();
        let result = self.append_batch(batch);
        self.statistics.write_ns += nanoseconds_since(start);
        self.statistics.requests += 1;
        match &result {
            Ok(appended) => self.statistics.writes += count(batch.len() - appended.conflicts.len()),
            Err(_) => self.statistics.failures += 1,
        }
        result
    }

    fn read(&mut self, key: DocumentKey) -> Result<Option<Document>, DocumentError> {
        let start = Instant::now();
        let plan = {
            let block = self.shared.block(key.block);
            block.and_then(|block| self.shared.plan(key, block.entry(key)?))
        };
        let Some(plan) = plan else { return Ok(None) };
        let requests = plan.requests();
        let result = plan.read(key, self.shared.origin.stale_below);
        self.count_read(start, requests, &result);
        result.map(Some)
    }

    fn read_block(
        &mut self,
        kind: DocumentKind,
        block: u16,
        visit: &mut dyn FnMut(DocumentKey, Result<Document, DocumentError>),
    ) -> Result<(), EngineError> {
        check_block(block)?;
        let shared = Arc::clone(&self.shared);
        let plans: Vec<_> = {
            let Some(content) = shared.block(block) else { return Ok(()) };
            let entries = content.documents.iter().filter(|((of, _), _)| *of == kind);
            let plans = entries.filter_map(|((_, number), entry)| {
                let key = DocumentKey { kind, block, number: *number };
                Some((key, shared.plan(key, entry)?))
            });
            plans.collect()
        };
        for (key, plan) in plans {
            let start = Instant::now();
            let requests = plan.requests();
            let result = plan.read(key, shared.origin.stale_below);
            self.count_read(start, requests, &result);
            visit(key, result);
        }
        Ok(())
    }

    fn keys(&mut self, kind: DocumentKind, block: u16) -> Result<Vec<DocumentKey>, EngineError> {
        check_block(block)?;
        let Some(content) = self.shared.block(block) else { return Ok(Vec::new()) };
        let entries = content.documents.iter().filter(|((of, _), _)| *of == kind);
        let present = entries.filter(|(_, entry)| entry.state() != State::Absent);
        Ok(present.map(|((_, number), _)| DocumentKey { kind, block, number: *number }).collect())
    }

    fn due(&mut self, block: u16, until: UnixMillis, limit: usize) -> Result<Vec<Due>, EngineError> {
        check_block(block)?;
        let Some(content) = self.shared.block(block) else { return Ok(Vec::new()) };
        let present = content.documents.iter().filter(|(_, entry)| entry.state() == State::Present);
        let due = present.filter_map(|((kind, number), entry)| {
            let deadline = entry.deadline.filter(|deadline| *deadline <= until)?;
            Some(Due { deadline, key: DocumentKey { kind: *kind, block, number: *number } })
        });
        Ok(earliest(due.collect(), limit))
    }

    fn fence(&mut self, block: u16, owner: OwnerVersion) -> Result<(), EngineError> {
        check_block(block)?;
        self.check_disk()?;
        self.continue_in_spare(&Batch::new(owner))?;
        let shared = Arc::clone(&self.shared);
        let Some(mut content) = shared.block(block) else { return Ok(()) };
        check_fence(block, &content, owner)?;
        if content.fence == owner {
            return Ok(());
        }
        let sequence = shared.sequence.fetch_add(1, Relaxed) + 1;
        let header = Header {
            kind: RecordKind::Fence,
            key: DocumentKey { kind: DocumentKind::Ue, block, number: 0 },
            length: 0,
            sequence,
            owner,
            revision: Revision(0),
            deadline: None,
            layout: 0,
            remaining: 0,
            number: 0,
            body_crc: 0,
        };
        self.output.clear();
        self.output.push(header, &[])?;
        let octets = self.output.write()?;
        if let Some((header, at)) = self.output.written.first() {
            content.add(header, *at);
        }
        drop(content);
        self.wrote(octets, Sequence(sequence));
        Ok(())
    }

    fn fenced_below(&mut self, block: u16) -> Result<OwnerVersion, EngineError> {
        check_block(block)?;
        Ok(self.shared.block(block).map_or(OwnerVersion(0), |content| content.fence))
    }

    fn has_late_results(&self) -> bool {
        false
    }

    fn durable(&self) -> Sequence {
        if self.shared.sync == Sync::None {
            return self.appended();
        }
        Sequence(self.writer.flushed.load(Acquire))
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }
}

impl Drop for FileEngine {
    fn drop(&mut self) {
        locked(&self.shared.writers).retain(|writer| !Arc::ptr_eq(writer, &self.writer));
        let spare = locked(&self.writer.spare).take();
        let segments = [Some(Arc::clone(&self.output.segment)), spare];
        locked(&self.shared.rolled)
            .extend(segments.into_iter().flatten().filter(|segment| !segment.is_absent()));
        self.shared.sync_bell.ring();
    }
}

/// Locks the blocks of a batch, in ascending order, so that two engines cannot wait for each other.
fn lock_blocks<'a>(shared: &'a Shared, batch: &Batch) -> Locked<'a> {
    let mut numbers: Vec<u16> = batch.entries().iter().map(|entry| entry.key.block).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.into_iter().filter_map(|number| Some((number, shared.block(number)?))).collect()
}

fn find<'a>(blocks: &'a mut Locked<'_>, number: u16) -> Option<&'a mut Block> {
    let at = blocks.binary_search_by_key(&number, |(number, _)| *number).ok()?;
    blocks.get_mut(at).map(|(_, block)| &mut **block)
}

fn check_fence(number: u16, block: &Block, own: OwnerVersion) -> Result<(), EngineError> {
    if own < block.fence {
        return Err(EngineError::Fenced { block: number, current: block.fence.0, own: own.0 });
    }
    Ok(())
}

/// Changes whose document is not what they expect, taking earlier changes of the batch into account.
fn conflicts(blocks: &Locked<'_>, batch: &Batch) -> Vec<usize> {
    let entries = batch.entries();
    let mut conflicts = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        let needs_check = entry.expected.is_some() || entry.change == Change::Update;
        if needs_check && is_conflict(blocks, entries.get(..at).unwrap_or_default(), &conflicts, entry) {
            conflicts.push(at);
        }
    }
    conflicts
}

fn is_conflict(blocks: &Locked<'_>, earlier: &[Entry], conflicts: &[usize], entry: &Entry) -> bool {
    let made = earlier.iter().enumerate().rev().filter(|(at, _)| !conflicts.contains(at));
    let earlier = made.map(|(_, earlier)| earlier).find(|earlier| earlier.key == entry.key);
    let (revision, is_present) = match earlier {
        Some(earlier) if earlier.change == Change::Delete => (Revision(0), false),
        Some(earlier) => (earlier.revision, true),
        None => stored(blocks, entry.key),
    };
    entry.expected.is_some_and(|expected| expected != revision)
        || (entry.change == Change::Update && !is_present)
}

/// Revision of the stored document, 0 if there is none, and whether it can be updated.
fn stored(blocks: &Locked<'_>, key: DocumentKey) -> (Revision, bool) {
    let at = blocks.binary_search_by_key(&key.block, |(number, _)| *number).ok();
    let block = at.and_then(|at| blocks.get(at));
    let Some(entry) = block.and_then(|(_, block)| block.entry(key)) else { return (Revision(0), false) };
    match entry.state() {
        State::Absent => (Revision(0), false),
        State::Present => (entry.revision, true),
        State::Damaged(_) => (entry.revision, false),
    }
}

fn kind_of(change: Change) -> RecordKind {
    match change {
        Change::Replace => RecordKind::Whole,
        Change::Update => RecordKind::Update,
        Change::Delete => RecordKind::Tombstone,
    }
}
