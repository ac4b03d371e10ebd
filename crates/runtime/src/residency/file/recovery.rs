//! Opening a log: reads all segments, cuts torn tails, builds the index.

use super::super::seal::DocumentSecret;
use super::super::{DocumentError, OwnerVersion};
use super::OpenError;
use super::index::{Block, State, location_of};
use super::key_list::{self, Explained, KeyList};
use super::record::{Item, RecordKind, SEGMENT_HEADER, Scanned, SegmentHeader, SegmentHeaderError, scan};
use super::segment::{self, Segment, id_of};
use crate::private_file::{self, Readers};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

/// What opening the log found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Documents that can be read.
    pub documents: u64,
    /// Octets of the log.
    pub octets: u64,
    /// Octets of unfinished writes, which were cut off. No message was sent because of them.
    pub torn: u64,
    /// Documents that are unknown because a record is damaged.
    pub damaged: Vec<DocumentError>,
    /// Descriptions of damage whose documents cannot be determined.
    pub lost: Vec<String>,
    /// Files in the directory that are not part of a log.
    pub foreign: Vec<PathBuf>,
    /// Writes may be lost: documents that were not written since are stale.
    pub is_stale: bool,
    /// The log is not the one that the database knows: all documents are stale ([`super::FormerRun`]).
    pub is_other_run: bool,
}

/// The content of a log.
pub(super) struct Recovered {
    pub blocks: Vec<Block>,
    pub segments: HashMap<u32, Arc<Segment>>,
    pub next_segment: u32,
    pub next_sequence: u64,
    pub stale_below: u64,
    /// Segments that others have removed.
    pub missing: Vec<(u32, KeyList)>,
    /// Damaged key lists of such segments.
    pub unusable_lists: Vec<PathBuf>,
    /// Number of the last write that a stopped process flushed.
    pub stopped: u64,
    pub report: Recovery,
}

/// A segment as it was read.
struct Loaded {
    segment: Segment,
    header: Option<SegmentHeader>,
    items: Vec<Item>,
}

impl Loaded {
    fn run_start(&self) -> u64 {
        self.header.map_or(0, |header| header.run_start)
    }

    fn last_sequence(&self) -> u64 {
        self.items.iter().map(sequence_of).max().unwrap_or(0)
    }

    /// The number up to which a stopped process had flushed all records.
    fn stopped(&self) -> Option<u64> {
        let stops = self.items.iter().filter_map(|item| match item {
            Item::Record { header, .. } if header.kind == RecordKind::Stop => Some(header.sequence),
            _ => None,
        });
        stops.max()
    }

    fn has_lost_octets(&self) -> bool {
        self.items.iter().any(|item| matches!(item, Item::Lost { .. }))
    }
}

/// Reads the log of a directory. Its last run may be another one than the one that the database knows, and an earlier start may have
/// found that, up to a number.
pub(super) fn recover(
    directory: &Path,
    secret: &DocumentSecret,
    boot: [u8; 16],
    (is_known_run, known_stale_below): (bool, u64),
) -> Result<Recovered, OpenError> {
    let mut report = Recovery::default();
    let mut loaded = Vec::new();
    let (files, lists) = files(directory)?;
    let last = files.keys().chain(lists.keys()).max();
    let next_segment = last.map_or(1, |id| id.saturating_add(1));
    let (missing, unusable_lists) = missing(&files, lists, &mut report);
    let has_unknown = !unusable_lists.is_empty();
    let files: Vec<_> = files.into_iter().collect();
    let of_file = |(id, path): &(u32, PathBuf)| {
        let mut found = Recovery::default();
        load(*id, path.clone(), secret, &mut found).map(|segment| (segment, found))
    };
    for result in in_parallel(&files, readers_of(&files), of_file) {
        let (segment, found) = result?;
        loaded.extend(segment);
        report.torn += found.torn;
        report.lost.extend(found.lost);
        report.foreign.extend(found.foreign);
    }
    remove_old_stops(&mut loaded)?;
    let listed = missing.iter().flat_map(|(_, list)| list.records()).map(|record| record.sequence);
    let next_sequence = 1 + loaded.iter().map(Loaded::last_sequence).chain(listed).max().unwrap_or(0);
    let stopped = loaded.iter().filter_map(Loaded::stopped).max().unwrap_or(0);
    report.is_other_run = !is_known_run && !loaded.is_empty();
    // A higher number is of a log that was moved away.
    let known = Some(known_stale_below).filter(|below| *below <= next_sequence).unwrap_or(0);
    let found = stale_below(&loaded, boot, next_sequence, stopped).max(known);
    let stale_below = if report.is_other_run || has_unknown { next_sequence } else { found };
    let blocks = index(&loaded, &missing);
    let segments = loaded.into_iter().map(|loaded| (loaded.segment.id, Arc::new(loaded.segment))).collect();
    let mut recovered = Recovered {
        blocks,
        segments,
        next_segment,
        next_sequence,
        stale_below,
        missing,
        unusable_lists,
        stopped,
        report,
    };
    recovered.finish(directory);
    Ok(recovered)
}

impl Recovered {
    /// Counts live octets and documents.
    fn finish(&mut self, directory: &Path) {
        for (block, content) in (0..).zip(&mut self.blocks) {
            for ((kind, number), entry) in &content.documents {
                if let Some(part) = entry.live()
                    && let Some(segment) = self.segments.get(&part.at.segment)
                {
                    segment.live.fetch_add(u64::from(part.at.length), Relaxed);
                }
                match entry.state() {
                    State::Absent => {}
                    State::Present => self.report.documents += 1,
                    State::Damaged(at) => {
                        let path = self.segments.get(&at.segment).map(|segment| segment.path.clone());
                        self.report.damaged.push(DocumentError::Damaged {
                            key: super::DocumentKey { kind: *kind, block, number: *number },
                            path: path.unwrap_or_else(|| directory.join(segment::name(at.segment))),
                            offset: at.offset.into(),
                        });
                    }
                }
            }
        }
        let missing = |id: u32| directory.join(segment::name(id));
        for (id, _) in &self.missing {
            let of_it = |error: &&DocumentError| matches!(error, DocumentError::Damaged { path, .. } if *path == missing(*id));
            let contexts = self.report.damaged.iter().filter(of_it).count();
            if contexts > 0 {
                self.report.lost.push(format!(
                    "{} is missing, which had the newest state of {contexts} contexts: these are unknown, their UEs register again. To keep them, stop Pith, and put the file back before the next start",
                    missing(*id).display()
                ));
            }
        }
        self.report.octets = self.segments.values().map(|segment| segment.length.load(Relaxed)).sum();
        self.report.is_stale = self.stale_below > 0;
    }
}

/// Deletes segments that contain only the record of a stop, except the one of the last stop.
fn remove_old_stops(loaded: &mut Vec<Loaded>) -> Result<(), OpenError> {
    let only_stop = |loaded: &Loaded| {
        let sequence = loaded.stopped().filter(|_| loaded.items.len() == 1)?;
        Some((sequence, loaded.segment.id))
    };
    let last = loaded.iter().filter_map(only_stop).max();
    for old in loaded.extract_if(.., |loaded| only_stop(loaded).is_some_and(|stop| Some(stop) != last)) {
        let path = old.segment.path;
        segment::delete(&path).map_err(|source| OpenError::Io { path, source })?;
    }
    Ok(())
}

pub(super) type Files = BTreeMap<u32, PathBuf>;

/// The log's segments and key lists by id.
pub(super) fn files(directory: &Path) -> Result<(Files, Files), OpenError> {
    let failed = |source| OpenError::Io { path: directory.into(), source };
    let (mut files, mut lists) = (Files::new(), Files::new());
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if let Some(id) = id_of(name) {
            files.insert(id, path);
        } else if let Some(id) = key_list::id_of(name) {
            lists.insert(id, path);
        }
    }
    Ok((files, lists))
}

/// The key lists of segments that are not there, and those of them that are damaged.
fn missing(files: &Files, lists: Files, report: &mut Recovery) -> (Vec<(u32, KeyList)>, Vec<PathBuf>) {
    let (mut missing, mut unusable) = (Vec::new(), Vec::new());
    for (id, path) in lists.into_iter().filter(|(id, _)| !files.contains_key(id)) {
        if let Some(list) = KeyList::read(&path) {
            missing.push((id, list));
            continue;
        }
        report.lost.push(format!(
            "{} is missing, and {} is damaged, which says what it had: all contexts may be outdated, and their UEs are authenticated again",
            segment::name(id),
            path.display()
        ));
        // It stays until a segment with records says what is outdated (`Shared::delete_unusable_lists`): until then the next start must find it.
        unusable.push(path);
    }
    (missing, unusable)
}

/// Reads a segment; `None` if it has no records.
fn load(
    id: u32,
    path: PathBuf,
    secret: &DocumentSecret,
    report: &mut Recovery,
) -> Result<Option<Loaded>, OpenError> {
    let (file, octets) = read(&path)?;
    let header = match SegmentHeader::decode(&octets) {
        Ok(header) if header.secret != secret.id() => {
            return Err(OpenError::OtherKey { path, key: secret.path().into() });
        }
        Ok(header) => Some(header),
        Err(SegmentHeaderError::TooNew(format)) => return Err(OpenError::TooNew { path, format }),
        Err(SegmentHeaderError::Incomplete) => None,
        Err(SegmentHeaderError::Invalid) => None,
    };
    let mut items = Vec::new();
    let scanned = scan(&octets, |item| items.push(item));
    let (is_listed, explained) = KeyList::complete(&path, &octets, &mut items, scanned);
    report_explained(&explained, &path, report);
    let has_records = items.iter().any(|item| !matches!(item, Item::Lost { .. }));
    if header.is_none() && !has_records && octets.len() >= SEGMENT_HEADER {
        report.foreign.push(path);
        return Ok(None);
    }
    let is_shortened = !is_listed && is_shortened(&octets, scanned);
    if is_shortened {
        items.push(Item::Lost { offset: scanned.end, total: scanned.torn });
    }
    if items.is_empty() {
        // The process ended before the first record.
        segment::delete(&path).map_err(|source| OpenError::Io { path, source })?;
        return Ok(None);
    }
    // The rest of a shortened record stays: the next start must find it, too.
    let end = if is_shortened { octets.len() as u64 } else { scanned.end };
    // Nothing is appended to it any longer: this also releases the room that was reserved for it.
    let cut = file.set_len(end);
    if scanned.torn > 0 && !is_shortened {
        report.torn += scanned.torn;
        cut.map_err(|source| OpenError::Io { path: path.clone(), source })?;
    }
    if header.is_none() {
        // Without the salt no record can be decrypted.
        items.iter_mut().for_each(make_damaged);
    }
    for item in &items {
        if let Item::Lost { offset, total } = item {
            report.lost.push(format!(
                "{total} octets at offset {offset} of {} are damaged, and no list says which contexts they were of: all contexts that were not \
                 written since may be outdated, and their UEs are authenticated again; check disk and memory",
                path.display()
            ));
        }
    }
    let key = header.and_then(|header| secret.key(&header.salt));
    let segment = Segment::new(id, path, file, scanned.end, key);
    // A list would say that the segment never had more.
    segment.is_listed.store(is_listed || is_shortened, Relaxed);
    Ok(Some(Loaded { segment, header, items }))
}

/// A kernel ends the write of a killed process, or one without room, at a multiple of this: file systems write by blocks.
const SECTOR: usize = 512;

/// Whether others have shortened the file: its last batch is incomplete, and a write does not end there. Then complete batches may be
/// missing, too, whose messages were sent.
fn is_shortened(octets: &[u8], scanned: Scanned) -> bool {
    scanned.torn > 0 && !octets.len().is_multiple_of(SECTOR)
}

fn report_explained(explained: &Explained, path: &Path, report: &mut Recovery) {
    for (octets, what) in [(explained.damaged, "are damaged"), (explained.missing, "are missing at its end")]
    {
        if octets > 0 {
            report.lost.push(format!(
                "{octets} octets of {} {what}: the contexts whose newest state they were are unknown, and their UEs register again; check disk and \
                 memory, and what else writes there",
                path.display()
            ));
        }
    }
}

pub(super) fn read(path: &Path) -> Result<(File, Vec<u8>), OpenError> {
    let mut file = private_file::open(path, Readers::Owner)
        .map_err(|error| OpenError::Io { path: path.into(), source: error.into_io() })?;
    let mut octets = Vec::new();
    file.read_to_end(&mut octets).map_err(|source| OpenError::Io { path: path.into(), source })?;
    if u32::try_from(octets.len()).is_err() {
        let source = io::Error::other("it is longer than any file of a log: move it away");
        return Err(OpenError::Io { path: path.into(), source });
    }
    Ok((file, octets))
}

fn make_damaged(item: &mut Item) {
    if let Item::Record { offset, header } = *item {
        let (key, kind, sequence) = (header.key, header.kind, header.sequence);
        *item = Item::Damaged { offset, total: header.total() as u64, key, kind, sequence };
    }
}

/// Applies a function to each value, on up to `threads` threads. Returns the results in the order of the values.
fn in_parallel<T: Sync, R: Send>(values: &[T], threads: usize, of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Relaxed)));
        let rest = numbers.map_while(|number| Some((number, values.get(number)?)));
        rest.map(|(number, value)| (number, of(value))).collect::<Vec<_>>()
    };
    let mut results = thread::scope(|scope| {
        let helper = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let helpers: Vec<_> = (1..threads.min(values.len())).map_while(helper).collect();
        let mut results = work();
        for helper in helpers {
            results.extend(helper.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    });
    results.sort_unstable_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Threads that read a log, at most.
const MOST_READERS: usize = 8;

/// Octets of segments that are in memory at once, unless one segment has more.
const MAX_READ_AT_ONCE: u64 = 256 << 20;

/// The number of threads that read these files.
fn readers_of(files: &[(u32, PathBuf)]) -> usize {
    // A file without metadata cannot be read either, which its reader reports.
    let sizes = files.iter().map(|(_, path)| fs::metadata(path).map_or(0, |metadata| metadata.len()));
    readers_within(MAX_READ_AT_ONCE, sizes.collect()).min(cores())
}

/// Number of readers, at least one, such that the largest files together have at most `octets` octets.
fn readers_within(octets: u64, mut sizes: Vec<u64>) -> usize {
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let sums = sizes.iter().scan(0u64, |sum, size| {
        *sum = sum.saturating_add(*size);
        Some(*sum)
    });
    sums.take_while(|sum| *sum <= octets).count().max(1)
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MOST_READERS)
}

/// The index: each core reads all items, and adds those of a range of blocks.
fn index(loaded: &[Loaded], missing: &[(u32, KeyList)]) -> Vec<Block> {
    let damaged = |(id, list): &(u32, KeyList)| {
        (*id, list.records().iter().map(|record| record.to_damaged()).collect::<Vec<_>>())
    };
    let missing: Vec<_> = missing.iter().map(damaged).collect();
    let of_missing = missing.iter().map(|(id, items)| (*id, items.as_slice()));
    let of_loaded = loaded.iter().map(|loaded| (loaded.segment.id, loaded.items.as_slice()));
    let all: Vec<_> = of_loaded.chain(of_missing).collect();
    let length = super::BLOCKS.div_ceil(cores());
    let starts: Vec<usize> = (0..super::BLOCKS).step_by(length).collect();
    let of_range = |start: &usize| index_range(&all, *start, length.min(super::BLOCKS - start));
    in_parallel(&starts, cores(), of_range).into_iter().flatten().collect()
}

/// The index of `length` blocks, the first of which is `start`.
fn index_range(segments: &[(u32, &[Item])], start: usize, length: usize) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    blocks.resize_with(length, Block::default);
    let place = |block: u16| usize::from(block).checked_sub(start).filter(|place| *place < length);
    for (segment, items) in segments {
        for item in *items {
            let at = location_of(*segment, item);
            match item {
                Item::Record { header, .. } => {
                    if let Some(block) = place(header.key.block).and_then(|place| blocks.get_mut(place)) {
                        block.add(header, at);
                    }
                }
                Item::Damaged { key, kind, sequence, .. } if kind.is_of_document() => {
                    if let Some(block) = place(key.block).and_then(|place| blocks.get_mut(place)) {
                        block.entry_mut(*key).add_damaged(*sequence, at);
                    }
                }
                Item::Damaged { .. } | Item::Lost { .. } => {}
            }
        }
    }
    blocks
}

/// The number of a write below which the last known write of a document may not be its last one, because later ones are lost. It is
/// the highest of:
///
/// - the end of each run with lost octets, whose documents are unknown;
/// - the end of each run that neither flushed its writes nor stopped before the kernel restarted;
/// - the number that an earlier process determined.
fn stale_below(loaded: &[Loaded], boot: [u8; 16], next_sequence: u64, stopped: u64) -> u64 {
    let end_of_run = |start: u64| {
        let later = loaded.iter().map(Loaded::run_start).filter(|other| *other > start);
        later.min().unwrap_or(next_sequence)
    };
    let is_unsure = |loaded: &&Loaded| {
        let is_power_failure = loaded.header.is_some_and(|header| header.boot != boot && !header.is_synced)
            && loaded.last_sequence() > stopped;
        is_power_failure || loaded.has_lost_octets()
    };
    let found = loaded.iter().filter(is_unsure).map(|loaded| end_of_run(loaded.run_start()));
    let known = loaded.iter().filter_map(|loaded| Some(loaded.header?.stale_below));
    found.chain(known).max().unwrap_or(0)
}

fn sequence_of(item: &Item) -> u64 {
    match item {
        Item::Record { header, .. } => header.sequence,
        Item::Damaged { sequence, .. } => *sequence,
        Item::Lost { .. } => 0,
    }
}

/// Whether compaction must keep a fence record: it is the newest one of the block.
pub(super) fn is_needed_fence(block: &Block, owner: OwnerVersion, segment: u32, offset: u32) -> bool {
    block
        .fence_record
        .is_some_and(|(known, at)| known == owner && at.segment == segment && at.offset == offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_segments_are_read_at_once_as_fit_in_memory() {
        assert_eq!(readers_within(256, vec![64, 1, 64, 64, 64, 64]), 4);
        assert_eq!(readers_within(256, vec![10, 20, 30]), 3);
        assert_eq!(readers_within(256, vec![1, 300, 100]), 1, "the largest alone is too large");
        assert_eq!(readers_within(256, Vec::new()), 1);
    }

    #[test]
    fn results_are_in_the_order_of_the_values() {
        let values: Vec<u32> = (0..100).collect();
        for threads in [0, 1, 8] {
            assert_eq!(
                in_parallel(&values, threads, |value| value * 2),
                values.iter().map(|value| value * 2).collect::<Vec<_>>()
            );
        }
    }
}
