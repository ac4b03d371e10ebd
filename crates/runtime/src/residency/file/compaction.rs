//! Compaction: keeps the log within `MAX_RATIO` of its live documents.
//!
//! Compaction reads the segment with the largest part of dead octets and copies the records that the index needs: a document with
//! its updates as one record, a damaged document as a tombstone (its damage was reported), a tombstone while older records of its
//! document exist. A copy has the sequence number of the newest record in it, so that recovery takes the same state from original and
//! copy. The segment is deleted when the copies are on the disk.

use super::super::{DocumentError, DocumentKey, EngineError, OwnerVersion, Revision};
use super::SMALLEST_SEGMENT;
use super::engine::Output;
use super::index::{Base, Block, Entry, Part, State, location_of};
use super::key_list::{self, KeyList};
use super::record::{Header, Item, RecordKind, SEGMENT_HEADER};
use super::recovery::is_needed_fence;
use super::segment::{self, Segment, failed};
use super::shared::{Shared, locked};
use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

/// Size of the log, in percent of its live documents, at which compaction begins. Together with the copies of one segment, the log
/// stays below 200 percent.
const MAX_RATIO: u64 = 170;
/// Dead octets of a segment, in thousandths, below which it is not compacted. If no closed segment has more, the dead octets are in
/// open segments.
const LEAST_DEAD: u64 = 150;
/// Size that a log may have without any live documents: active segments are not compacted.
const FREE: u64 = 4 * SMALLEST_SEGMENT;
/// Octets of copies that are written with one system call.
const CHUNK: usize = 256 << 10;
/// Pause after a failure (no room), or while a key list cannot be deleted yet.
const RETRY: Duration = Duration::from_secs(2);

/// A running compaction; there is at most one.
pub(super) struct Compaction<'a> {
    shared: &'a Shared,
    state: MutexGuard<'a, CompactionState>,
}

/// The state that one compaction leaves to the next.
#[derive(Default)]
pub(super) struct CompactionState {
    output: Option<Output>,
    /// The entries that the copies in `output` replace.
    copies: Vec<Copied>,
    /// Their documents.
    pending: HashSet<DocumentKey>,
}

/// What a copy replaces: the entry's base and its updates up to the copy's sequence number.
#[derive(Debug, Clone, Copy)]
struct Copied {
    base: Base,
    damage: Option<Part>,
}

/// The compaction thread.
pub(super) fn run(shared: &Shared) {
    let mut retry = None;
    loop {
        shared.compaction_bell.wait(retry);
        let mut compaction = Compaction::begin(shared);
        if compaction.is_stopping() {
            compaction.release_output();
            return;
        }
        retry = match compaction.turn() {
            // A damaged list is left until the first record is written.
            Ok(is_done) => (!is_done).then_some(RETRY),
            Err(error) => {
                tracing::warn!(%error, "cannot compact the document log; the next attempt is in 2 s");
                compaction.abandon();
                Some(RETRY)
            }
        };
    }
}

impl<'a> Compaction<'a> {
    fn begin(shared: &'a Shared) -> Self {
        Self { shared, state: locked(&shared.compaction) }
    }

    fn is_stopping(&self) -> bool {
        self.shared.is_stopping.load(Acquire)
    }

    /// Closes the segment of the copies.
    fn release_output(&mut self) {
        if let Some(output) = self.state.output.take() {
            locked(&self.shared.rolled).push(output.segment);
            self.shared.sync_bell.ring();
        }
    }

    /// Whether nothing is left to do.
    fn turn(&mut self) -> Result<bool, EngineError> {
        self.list_closed()?;
        self.delete_missing()?;
        let is_done = self.shared.delete_unusable_lists()?;
        self.merge_updated()?;
        // Several passes: tombstones may become unnecessary when a pass deletes the records that they hide.
        while let Some(segment) = self.candidate() {
            if self.is_stopping() {
                break;
            }
            self.compact(&segment)?;
            self.merge_updated()?;
        }
        Ok(is_done)
    }

    /// Discards copies that were not written. Copies that were written but are not in the index are dead records.
    fn abandon(&mut self) {
        self.state.copies.clear();
        self.state.pending.clear();
        if let Some(output) = &mut self.state.output {
            output.clear();
        }
    }

    /// The closed segment with the largest part of dead octets, if the log is too long.
    fn candidate(&self) -> Option<Arc<Segment>> {
        let (octets, live) = self.shared.size();
        self.shared.adapt_full(live);
        if octets <= FREE.max(live / 100 * MAX_RATIO) {
            return None;
        }
        let closed = self.closed();
        let part =
            |segment: &Segment| segment.dead().saturating_mul(1000) / segment.length.load(Relaxed).max(1);
        let worst = closed.into_iter().max_by_key(|segment| part(segment))?;
        (part(&worst) >= LEAST_DEAD).then_some(worst)
    }

    /// Segments to which nothing is appended any longer.
    ///
    /// The segments are read before the lists of open ones: a segment that has records was on one of these before, and one that has none is
    /// made before it is on any.
    fn closed(&self) -> Vec<Arc<Segment>> {
        let is_used = |segment: &&Arc<Segment>| {
            segment.id < self.shared.first_segment || segment.length.load(Relaxed) > SEGMENT_HEADER as u64
        };
        let mut closed: Vec<_> = self.shared.segments().values().filter(is_used).cloned().collect();
        let mut open = BTreeSet::new();
        for writer in &*locked(&self.shared.writers) {
            open.insert(locked(&writer.active).id);
            open.extend(locked(&writer.spare).as_ref().map(|segment| segment.id));
        }
        open.extend(locked(&self.shared.rolled).iter().map(|segment| segment.id));
        open.extend(self.state.output.as_ref().map(|output| output.segment.id));
        closed.retain(|segment| !open.contains(&segment.id));
        closed
    }

    /// Writes the key lists of segments to which nothing is appended any longer.
    fn list_closed(&self) -> Result<(), EngineError> {
        let closed = self.closed();
        let mut unlisted = closed.iter().filter(|segment| !segment.is_listed.load(Relaxed));
        unlisted.try_for_each(|segment| segment.write_key_list())
    }

    /// Deletes the documents whose newest records were in segments that others have removed, and the key lists of these.
    fn delete_missing(&mut self) -> Result<(), EngineError> {
        let missing = std::mem::take(&mut *locked(&self.shared.missing));
        for (at, (id, list)) in missing.iter().enumerate() {
            if let Err(error) = self.delete_listed(*id, list) {
                locked(&self.shared.missing).extend(missing.iter().skip(at).cloned());
                return Err(error);
            }
        }
        Ok(())
    }

    fn delete_listed(&mut self, id: u32, list: &KeyList) -> Result<(), EngineError> {
        for record in list.records().iter().filter(|record| record.kind.is_of_document()) {
            self.copy(record.key, |entry| entry.needs(id, record.offset))?;
            self.write_if(CHUNK)?;
        }
        self.write_if(0)?;
        self.flush()?;
        let path = key_list::path_of(&self.shared.directory.join(segment::name(id)));
        std::fs::remove_file(&path).map_err(|error| failed("delete", &path, error))
    }

    /// Merges the documents that have many updates.
    fn merge_updated(&mut self) -> Result<(), EngineError> {
        let keys: BTreeSet<DocumentKey> =
            std::mem::take(&mut *locked(&self.shared.to_merge)).into_iter().collect();
        for key in keys {
            self.copy(key, |entry| !entry.updates.is_empty())?;
            self.write_if(CHUNK)?;
        }
        self.write_if(0)
    }

    /// Copies what is needed of a segment, and deletes it.
    fn compact(&mut self, segment: &Arc<Segment>) -> Result<(), EngineError> {
        let items = segment.read_items()?;
        for item in &items {
            self.keep(segment, item)?;
            self.write_if(CHUNK)?;
        }
        self.write_if(0)?;
        self.flush()?;
        self.forget(&items);
        self.shared.delete_segment(segment);
        self.shared.compacted_segments.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Flushes copies and writes of shards, which replace the records of a segment, before the segment is deleted.
    fn flush(&self) -> Result<(), EngineError> {
        let full = self.closed();
        let all: Vec<Arc<Segment>> = self.shared.segments().values().cloned().collect();
        for segment in all.iter().filter(|segment| !segment.is_flushed.load(Acquire)) {
            segment.flush().map_err(|error| failed("flush", &segment.path, error))?;
            if full.iter().any(|other| other.id == segment.id) {
                segment.is_flushed.store(true, Release);
            }
        }
        // The files of copies must be in the directory before others leave it.
        self.shared.flush_directory()
    }

    fn keep(&mut self, segment: &Segment, item: &Item) -> Result<(), EngineError> {
        let offset = location_of(segment.id, item).offset;
        match item {
            Item::Record { header, .. } if header.kind == RecordKind::Fence => {
                self.keep_fence(header, segment.id, offset)
            }
            Item::Record { header, .. } if header.kind == RecordKind::Stop => self.keep_stop(header),
            Item::Record { header: Header { kind, key, .. }, .. } | Item::Damaged { kind, key, .. }
                if kind.is_of_document() =>
            {
                self.copy(*key, |entry| entry.needs(segment.id, offset))
            }
            Item::Record { .. } | Item::Damaged { .. } | Item::Lost { .. } => Ok(()),
        }
    }

    /// Adds a copy of a document to the output, if the document meets a condition.
    fn copy(&mut self, key: DocumentKey, is_wanted: impl Fn(&Entry) -> bool) -> Result<(), EngineError> {
        if self.state.pending.contains(&key) {
            return Ok(());
        }
        let Some(block) = self.shared.block(key.block) else { return Ok(()) };
        let Some(entry) = block.entry(key).filter(|entry| is_wanted(entry)) else { return Ok(()) };
        let damaged_at = entry.damage.map_or(0, |part| part.sequence);
        let newest = entry.newest().max(damaged_at);
        let copied = Copied { base: entry.base, damage: entry.damage };
        let tombstone = tombstone(key, newest, block.fence, entry.revision);
        let plan = if entry.state() == State::Present { self.shared.plan(key, entry) } else { None };
        drop(block);
        let merged = match plan.map(|plan| plan.read_merged(key)) {
            Some(Ok(merged)) => Some(merged),
            Some(Err(DocumentError::Io { path, reason, .. })) => {
                let source = std::io::Error::other(reason);
                return Err(EngineError::Io { action: "read", path, source });
            }
            // Damaged since the start: the document is unknown from now on, as if it had been damaged then.
            Some(Err(error)) => {
                tracing::error!("{error}");
                None
            }
            None => None,
        };
        self.state.copies.push(copied);
        self.state.pending.insert(key);
        let output = self.output()?;
        match merged {
            Some((newest, sections)) => {
                output.push(Header { kind: RecordKind::Whole, remaining: 0, ..newest }, &sections)
            }
            None => output.push(tombstone, &[]),
        }
    }

    fn keep_fence(&mut self, header: &Header, segment: u32, offset: u32) -> Result<(), EngineError> {
        let is_needed = match self.shared.block(header.key.block) {
            Some(block) => is_needed_fence(&block, header.owner, segment, offset),
            None => false,
        };
        if is_needed { self.copy_record(header) } else { Ok(()) }
    }

    /// The record of the last stop is needed while there are segments of earlier boots.
    fn keep_stop(&mut self, header: &Header) -> Result<(), EngineError> {
        if header.sequence == self.shared.stopped { self.copy_record(header) } else { Ok(()) }
    }

    /// Copies a record that is not of a document.
    fn copy_record(&mut self, header: &Header) -> Result<(), EngineError> {
        self.state.copies.push(Copied { base: Base::Missing, damage: None });
        self.output()?.push(Header { remaining: 0, ..*header }, &[])
    }

    fn output(&mut self) -> Result<&mut Output, EngineError> {
        let full = self.shared.full.load(Relaxed);
        let is_full = self.state.output.as_ref().is_some_and(|output| {
            output.written.is_empty() && (output.offset >= full || !output.has_numbers())
        });
        if is_full {
            self.release_output();
        }
        if self.state.output.is_none() {
            self.state.output = Some(Output::new(self.shared.make_segment()?));
        }
        self.state.output.as_mut().ok_or(EngineError::Seal)
    }

    /// If the pending copies have more than `octets` octets, writes them and enters them into the index.
    fn write_if(&mut self, octets: usize) -> Result<(), EngineError> {
        let CompactionState { output, copies, pending } = &mut *self.state;
        let Some(output) = output.as_mut().filter(|output| output.pending() > octets) else { return Ok(()) };
        let written = output.write()?;
        self.shared.compaction_octets.fetch_add(written, Relaxed);
        for ((header, at), copied) in output.written.iter().zip(copies.iter()) {
            let Some(mut block) = self.shared.block(header.key.block) else { continue };
            if !header.kind.is_of_document() {
                block.add(header, *at);
                continue;
            }
            let entry = block.entry_mut(header.key);
            self.shared.with_live(entry, |entry| {
                if entry.base == copied.base && entry.damage == copied.damage {
                    entry.add(header, *at);
                } else {
                    // The document was replaced or deleted meanwhile: the copy is dead.
                    entry.records += 1;
                }
            });
        }
        output.clear();
        copies.clear();
        pending.clear();
        Ok(())
    }

    /// Subtracts the records of a segment from the counts of their documents.
    fn forget(&self, items: &[Item]) {
        for item in items {
            let (Item::Record { header: Header { kind, key, .. }, .. } | Item::Damaged { kind, key, .. }) =
                item
            else {
                continue;
            };
            if !kind.is_of_document() {
                continue;
            }
            let Some(mut block) = self.shared.block(key.block) else { continue };
            let block: &mut Block = &mut block;
            let Some(entry) = block.documents.get_mut(&(key.kind, key.number)) else { continue };
            self.shared.with_live(entry, |entry| entry.records = entry.records.saturating_sub(1));
            // The entry of a deleted document stays as long as there are records of it: if the document is written and deleted
            // again, the count must include them.
            if entry.records == 0 {
                block.documents.remove(&(key.kind, key.number));
            }
        }
    }
}

fn tombstone(key: DocumentKey, sequence: u64, owner: OwnerVersion, revision: Revision) -> Header {
    Header {
        kind: RecordKind::Tombstone,
        key,
        length: 0,
        sequence,
        owner,
        revision,
        deadline: None,
        layout: 0,
        remaining: 0,
        number: 0,
        body_crc: 0,
    }
}

#[cfg(test)]
pub(super) fn compact_one(shared: &Shared, segment: &Arc<Segment>) {
    let mut compaction = Compaction::begin(shared);
    compaction.compact(segment).unwrap();
    compaction.release_output();
}

/// Compacts each segment that is not open, whatever its dead octets.
#[cfg(test)]
pub(super) fn compact_all(shared: &Shared) {
    let mut compaction = Compaction::begin(shared);
    for segment in compaction.closed() {
        compaction.compact(&segment).unwrap();
    }
    compaction.release_output();
}

/// Writes the key lists that are missing.
#[cfg(test)]
pub(super) fn list_closed(shared: &Shared) {
    Compaction::begin(shared).list_closed().unwrap();
}
