//! What engines and threads of a log share.

use super::super::document::merge;
use super::super::seal::DocumentSecret;
use super::super::{Document, DocumentError, DocumentKey, EngineError};
use super::compaction::CompactionState;
use super::index::{Block, Entry, Location, Part, State};
use super::key_list::KeyList;
use super::maintenance::{Bell, Writer};
use super::record::{HEADER, Header, RecordKind, SEGMENT_HEADER, TRAILER};
use super::recovery::Recovered;
use super::segment::{self, Origin, Segment};
use super::{FULL_SEGMENT, FileSettings, OnDurable, SMALLEST_SEGMENT, Sync};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use zeroize::Zeroizing;

pub(super) type Segments = HashMap<u32, Arc<Segment>>;

/// Lock order: `compaction`, blocks (ascending), `segments`. No other lock is held together with another one.
pub(super) struct Shared {
    pub directory: PathBuf,
    pub secret: DocumentSecret,
    pub sync: Sync,
    pub on_durable: Option<OnDurable>,
    pub origin: Origin,
    blocks: Vec<Mutex<Block>>,
    segments: RwLock<Segments>,
    next_segment: AtomicU32,
    /// Segments that others have removed: damaged documents of these are deleted.
    pub missing: Mutex<Vec<(u32, KeyList)>>,
    /// Damaged key lists of such segments: because of them all earlier documents are stale.
    pub unusable_lists: Mutex<Vec<PathBuf>>,
    /// Segments from this id on were made by this process.
    pub first_segment: u32,
    /// Number of the last write that a stopped process flushed, as found at the start.
    pub stopped: u64,
    /// Number of the last write.
    pub sequence: AtomicU64,
    /// Octets at which a segment is full.
    pub full: AtomicU64,
    pub writers: Mutex<Vec<Arc<Writer>>>,
    /// Full segments that are not flushed yet.
    pub rolled: Mutex<Vec<Arc<Segment>>>,
    /// Documents with many updates.
    pub to_merge: Mutex<Vec<DocumentKey>>,
    /// Held while a compaction runs.
    pub compaction: Mutex<CompactionState>,
    pub sync_bell: Bell,
    pub compaction_bell: Bell,
    pub is_stopping: AtomicBool,
    /// Others have removed or moved files to which engines append.
    pub is_removed: AtomicBool,
    pub compacted_segments: AtomicU64,
    /// Tests: the disk has no room.
    #[cfg(test)]
    pub is_full: AtomicBool,
    pub compaction_octets: AtomicU64,
}

impl Shared {
    pub fn new(settings: FileSettings, recovered: Recovered, boot: [u8; 16]) -> Self {
        let FileSettings { directory, secret, sync, on_durable, former: _ } = settings;
        let origin = Origin {
            is_synced: sync == Sync::Batch,
            boot,
            stale_below: recovered.stale_below,
            run_start: recovered.next_sequence,
        };
        Self {
            directory,
            secret,
            sync,
            on_durable,
            origin,
            blocks: recovered.blocks.into_iter().map(Mutex::new).collect(),
            segments: RwLock::new(recovered.segments),
            next_segment: AtomicU32::new(recovered.next_segment),
            missing: Mutex::new(recovered.missing),
            unusable_lists: Mutex::new(recovered.unusable_lists),
            first_segment: recovered.next_segment,
            stopped: recovered.stopped,
            sequence: AtomicU64::new(recovered.next_sequence - 1),
            full: AtomicU64::new(SMALLEST_SEGMENT),
            writers: Mutex::default(),
            rolled: Mutex::default(),
            to_merge: Mutex::default(),
            compaction: Mutex::default(),
            sync_bell: Bell::default(),
            is_removed: AtomicBool::new(false),
            compaction_bell: Bell::default(),
            is_stopping: AtomicBool::new(false),
            compacted_segments: AtomicU64::new(0),
            #[cfg(test)]
            is_full: AtomicBool::new(false),
            compaction_octets: AtomicU64::new(0),
        }
    }

    /// Makes a segment and lists it.
    pub fn make_segment(&self) -> Result<Arc<Segment>, EngineError> {
        #[cfg(test)]
        if self.is_full.load(Relaxed) {
            return Err(EngineError::Full(self.directory.clone()));
        }
        let id = self.next_segment.fetch_add(1, Relaxed);
        let segment = Arc::new(Segment::create(&self.directory, id, &self.secret, &self.origin)?);
        self.segments_mut().insert(id, Arc::clone(&segment));
        Ok(segment)
    }

    /// Deletes a segment's file. Reads that began before still succeed.
    pub fn delete_segment(&self, segment: &Segment) {
        self.segments_mut().remove(&segment.id);
        if let Err(error) = segment::delete(&segment.path) {
            tracing::error!(path = %segment.path.display(), %error, "cannot delete a part of the document log");
        }
    }

    /// Deletes damaged key lists as soon as a segment on the disk says which documents are stale because of them: one with records, as a start
    /// deletes empty ones. Returns whether none is left.
    pub fn delete_unusable_lists(&self) -> Result<bool, EngineError> {
        let lists = locked(&self.unusable_lists).clone();
        if lists.is_empty() {
            return Ok(true);
        }
        let has_mark = |segment: &&Arc<Segment>| {
            segment.id >= self.first_segment && segment.length.load(Relaxed) > SEGMENT_HEADER as u64
        };
        let Some(marked) = self.segments().values().find(has_mark).cloned() else { return Ok(false) };
        marked.flush().map_err(|error| segment::failed("flush", &marked.path, error))?;
        self.flush_directory()?;
        for list in lists {
            match fs::remove_file(&list) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(segment::failed("delete", &list, error));
                }
                _ => locked(&self.unusable_lists).retain(|other| *other != list),
            }
        }
        Ok(true)
    }

    /// Files that were made before now survive a power failure.
    pub fn flush_directory(&self) -> Result<(), EngineError> {
        let flushed = File::open(&self.directory).and_then(|directory| directory.sync_all());
        flushed.map_err(|error| segment::failed("flush", &self.directory, error))
    }

    /// The block. `None`: out of range, which callers have checked.
    pub fn block(&self, block: u16) -> Option<MutexGuard<'_, Block>> {
        Some(locked(self.blocks.get(usize::from(block))?))
    }

    pub fn segments(&self) -> RwLockReadGuard<'_, Segments> {
        self.segments.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn segments_mut(&self) -> RwLockWriteGuard<'_, Segments> {
        self.segments.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Octets of the log, and of its live records.
    pub fn size(&self) -> (u64, u64) {
        let segments = self.segments();
        let sum = |of: fn(&Segment) -> &AtomicU64| -> u64 {
            segments.values().map(|one| of(one).load(Relaxed)).sum()
        };
        (sum(|one| &one.length), sum(|one| &one.live))
    }

    pub fn compacted(&self) -> (u64, u64) {
        (self.compacted_segments.load(Relaxed), self.compaction_octets.load(Relaxed))
    }

    /// Adapts the size of segments to that of the log: compaction works on whole segments.
    pub fn adapt_full(&self, live: u64) {
        // The open segments together contain at most an eighth of the live octets.
        let writers = locked(&self.writers).len().max(1) as u64;
        self.full.store((live / 8 / writers).clamp(SMALLEST_SEGMENT, FULL_SEGMENT), Relaxed);
    }

    /// The records that must be read of a document. Their files remain readable after the block's lock is released.
    pub fn plan(&self, key: DocumentKey, entry: &Entry) -> Option<ReadPlan> {
        let segments = self.segments();
        let file = |at: &Location| Some((Arc::clone(segments.get(&at.segment)?), *at));
        match entry.state() {
            State::Absent => None,
            State::Damaged(at) => {
                let path = segments.get(&at.segment).map(|segment| segment.path.clone());
                let path = path.unwrap_or_else(|| self.directory.join(segment::name(at.segment)));
                let error = DocumentError::Damaged { key, path, offset: at.offset.into() };
                Some(ReadPlan { records: Err(error) })
            }
            State::Present => {
                let parts = entry.base.part().into_iter().chain(entry.updates.iter().copied());
                let records: Vec<_> = parts.filter_map(|Part { at, .. }| file(&at)).collect();
                Some(ReadPlan { records: Ok(records) })
            }
        }
    }

    /// Applies `change` to an entry, and updates the segments' counts of live octets.
    pub fn with_live<R>(&self, entry: &mut Entry, change: impl FnOnce(&mut Entry) -> R) -> R {
        let before = entry.live();
        let result = change(entry);
        let after = entry.live();
        if before != after {
            let segments = self.segments();
            let segment = |part: &Part| segments.get(&part.at.segment);
            if let Some((part, segment)) = before.and_then(|part| Some((part, segment(&part)?))) {
                segment.live.fetch_sub(part.at.length.into(), Relaxed);
            }
            if let Some((part, segment)) = after.and_then(|part| Some((part, segment(&part)?))) {
                segment.live.fetch_add(part.at.length.into(), Relaxed);
            }
        }
        result
    }
}

/// The records of a document, base first.
pub(super) struct ReadPlan {
    records: Result<Vec<(Arc<Segment>, Location)>, DocumentError>,
}

impl ReadPlan {
    /// Number of records, each of which is read with one system call.
    pub fn requests(&self) -> usize {
        self.records.as_ref().map_or(0, Vec::len)
    }

    /// Reads, decrypts and merges.
    pub fn read(self, key: DocumentKey, stale_below: u64) -> Result<Document, DocumentError> {
        let (header, sections) = self.read_merged(key)?;
        let is_stale = header.sequence < stale_below;
        Ok(Document::new(header.head(), header.owner, is_stale, sections))
    }

    /// The header of the newest record, and the merged sections.
    pub fn read_merged(self, key: DocumentKey) -> Result<(Header, Zeroizing<Vec<u8>>), DocumentError> {
        let mut newest = None;
        let mut opened = Vec::new();
        for (segment, at) in self.records? {
            let (header, sections) = read_record(key, &segment, at)?;
            newest = Some(header);
            opened.push(sections);
        }
        let merged = merge(opened.iter().map(|sections| sections.as_slice()));
        match newest {
            Some(header) => Ok((header, merged)),
            // Not possible: the index of a present document has its base.
            None => Err(DocumentError::Damaged { key, path: PathBuf::new(), offset: 0 }),
        }
    }
}

/// Reads and decrypts a record.
fn read_record(
    key: DocumentKey,
    segment: &Segment,
    at: Location,
) -> Result<(Header, Zeroizing<Vec<u8>>), DocumentError> {
    let offset = u64::from(at.offset);
    let mut record = vec![0; at.length as usize];
    let path = || segment.path.clone();
    segment.file.read_exact_at(&mut record, offset).map_err(|error| DocumentError::Io {
        key,
        path: path(),
        reason: error.to_string(),
    })?;
    let damaged = || DocumentError::Damaged { key, path: path(), offset };
    let header = Header::decode(&record).ok_or_else(damaged)?;
    let is_expected = header.key == key
        && header.total() == record.len()
        && matches!(header.kind, RecordKind::Whole | RecordKind::Update);
    let encoded: [u8; HEADER] = record.first_chunk().copied().ok_or_else(damaged)?;
    let body = record.get(HEADER..record.len() - TRAILER).ok_or_else(damaged)?;
    if !is_expected || crc32c::crc32c(body) != header.body_crc {
        return Err(damaged());
    }
    let mut body = Zeroizing::new(body.to_vec());
    let changed = || DocumentError::Changed { key, path: path(), offset };
    let schedule = segment.key().ok_or_else(changed)?;
    let length =
        schedule.open(header.number, Header::associated(&encoded), &mut body).ok_or_else(changed)?.len();
    body.truncate(length);
    Ok((header, body))
}

/// Locks a mutex. Its content is consistent after every statement, so a panic of another thread does no harm.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
