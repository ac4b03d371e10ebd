//! Files of the log.

use super::super::EngineError;
use super::super::seal::{DocumentKeySchedule, DocumentSecret, SALT};
use super::key_list::{self, KeyList};
use super::record::{Item, SEGMENT_HEADER, Scanned, SegmentHeader, scan};
use super::{LARGEST_SEGMENT, SMALLEST_SEGMENT};
use crate::private_file;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

/// The id of no segment: they are counted from 1.
const ABSENT: u32 = 0;

/// A file of the log. One engine appends to it until it is full; all read it.
pub(super) struct Segment {
    pub id: u32,
    pub path: PathBuf,
    pub file: File,
    /// Octets of the file.
    pub length: AtomicU64,
    /// Octets of records that are a newest whole document or a needed tombstone. Compaction releases all other octets.
    pub live: AtomicU64,
    /// Whether all of its records are on the disk.
    pub is_flushed: AtomicBool,
    /// Whether its key list is written, and has all of its records.
    pub is_listed: AtomicBool,
    /// Attempts to write the record of a stop.
    pub attempts: AtomicU32,
    /// `None`: the header is damaged, so that no record can be decrypted.
    key: Option<DocumentKeySchedule>,
}

impl Segment {
    pub fn new(id: u32, path: PathBuf, file: File, length: u64, key: Option<DocumentKeySchedule>) -> Self {
        Self {
            id,
            path,
            file,
            length: AtomicU64::new(length),
            live: AtomicU64::new(0),
            is_flushed: AtomicBool::new(false),
            is_listed: AtomicBool::new(false),
            attempts: AtomicU32::new(0),
            key,
        }
    }

    /// Makes a file with a new salt. On failure no file is left.
    pub fn create(
        directory: &Path,
        id: u32,
        secret: &DocumentSecret,
        origin: &Origin,
    ) -> Result<Self, EngineError> {
        let path = directory.join(name(id));
        let mut salt = [0; SALT];
        getrandom::fill(&mut salt).map_err(|_| EngineError::Seal)?;
        let key = secret.key(&salt).ok_or(EngineError::Seal)?;
        let Origin { is_synced, boot, stale_below, run_start } = *origin;
        let header = SegmentHeader { is_synced, secret: secret.id(), boot, salt, stale_below, run_start };
        // Not the directory: others may have moved it away.
        let made = private_file::create_new(&path)
            .and_then(|file| file.write_all_at(&header.encode(), 0).map(|()| file));
        match made {
            Ok(file) => {
                reserve(&file);
                Ok(Self::new(id, path, file, SEGMENT_HEADER as u64, Some(key)))
            }
            Err(error) => {
                let _ = std::fs::remove_file(&path);
                Err(failed("create", &path, error))
            }
        }
    }

    /// In place of a segment as long as there is no room to make one: nothing can be appended to it.
    pub fn absent() -> io::Result<Self> {
        Ok(Self::new(ABSENT, PathBuf::new(), File::open("/dev/null")?, LARGEST_SEGMENT, None))
    }

    /// Whether this stands in place of a segment.
    pub const fn is_absent(&self) -> bool {
        self.id == ABSENT
    }

    pub fn key(&self) -> Option<&DocumentKeySchedule> {
        self.key.as_ref()
    }

    /// Appends at an offset with one system call. On failure the file ends at the offset, as before.
    pub fn write(&self, octets: &[u8], offset: u64) -> Result<(), EngineError> {
        match self.file.write_all_at(octets, offset) {
            Ok(()) => {
                self.length.store(offset + octets.len() as u64, Relaxed);
                Ok(())
            }
            Err(error) => {
                // A part may be written. Shortening a file needs no room.
                let cut = self.file.set_len(offset);
                Err(failed("write", &self.path, cut.err().unwrap_or(error)))
            }
        }
    }

    /// Flushes the data to the disk.
    pub fn flush(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Reads what the segment has. If octets are damaged, its key list says which records they were.
    pub fn read_items(&self) -> Result<Vec<Item>, EngineError> {
        let (octets, mut items, scanned) = self.scan()?;
        KeyList::complete(&self.path, &octets, &mut items, scanned);
        Ok(items)
    }

    /// Writes the key list, unless octets are lost. Nothing is appended to the segment any longer.
    pub fn write_key_list(&self) -> Result<(), EngineError> {
        let (octets, items, scanned) = self.scan()?;
        if let Some(list) = KeyList::of(&octets, &items, scanned.end) {
            let path = key_list::path_of(&self.path);
            list.write(&path).map_err(|error| failed("write", &path, error))?;
        }
        self.is_listed.store(true, Relaxed);
        Ok(())
    }

    fn scan(&self) -> Result<(Vec<u8>, Vec<Item>, Scanned), EngineError> {
        let mut octets = vec![0; usize::try_from(self.length.load(Relaxed)).unwrap_or(0)];
        self.file.read_exact_at(&mut octets, 0).map_err(|error| failed("read", &self.path, error))?;
        let mut items = Vec::new();
        let scanned = scan(&octets, |item| items.push(item));
        Ok((octets, items, scanned))
    }

    /// Octets that compaction of this segment releases.
    pub fn dead(&self) -> u64 {
        let used = SEGMENT_HEADER as u64 + self.live.load(Relaxed);
        self.length.load(Relaxed).saturating_sub(used)
    }
}

/// Reserves room on the disk for the first octets of a segment, whose length stays as it is. The next segment of each writer is made in
/// advance: so changes are stored for a while when others have filled the disk, and a start, which deletes the empty segments of the
/// former process, finds the room of these. A file system that cannot reserve, or has no room, changes nothing.
fn reserve(file: &File) {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is open; the call takes no pointers.
    #[allow(unsafe_code)]
    unsafe {
        libc::fallocate(file.as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, 0, SMALLEST_SEGMENT as libc::off_t);
    }
}

/// What a process writes in the header of each of its segments.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    pub is_synced: bool,
    pub boot: [u8; 16],
    pub stale_below: u64,
    pub run_start: u64,
}

/// Deletes the file of a segment, after its key list.
pub(super) fn delete(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(key_list::path_of(path)) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::fs::remove_file(path)
}

/// The name of a segment's file.
pub(super) fn name(id: u32) -> String {
    format!("{id:08x}.log")
}

/// The id in the name of a segment's file.
pub(super) fn id_of(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".log").filter(|digits| digits.len() == 8)?;
    u32::from_str_radix(digits, 16).ok()
}

/// The error of a write or of the creation of a file.
pub(super) fn failed(action: &'static str, path: &Path, source: io::Error) -> EngineError {
    // A limit of the process (RLIMIT_FSIZE) and a quota are room that is missing, too.
    let is_full =
        matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge);
    if is_full {
        return EngineError::Full(path.parent().unwrap_or(path).into());
    }
    EngineError::Io { action, path: path.into(), source }
}
