//! Engine `file`: an append log of one process, the default (ADR 0017).
//!
//! ```text
//!  shard-0 ── FileEngine ── pwrite ──> 00000007.log ─┐ rolled         ┌─> deleted
//!  shard-1 ── FileEngine ── pwrite ──> 00000008.log ─┤                │
//!                 │                                  ├─> compaction ──┴─> 00000009.log
//!                 └──── index (a lock for each block of ids)
//!  pith-log-sync      makes segments in advance, flushes
//!  pith-log-compact   merges updates, copies the needed records of segments, deletes the segments
//! ```
//!
//! - A batch is one `pwrite` of the shard's thread into the shard's segment. Then the batch is in the page cache, and survives the end of
//!   the process at any instruction; with `Sync::Batch` it also survives a power failure once `Engine::durable` reaches it.
//! - Any shard reads any document: a block of ids passes from shard to shard without copying.
//! - Files are read at start only, into an index; segments of former processes are never appended to.
//! - A closed segment has a list of its records (`00000007.keys`), so that damage concerns only the documents whose records it was.
//! - The log has at most `MAX_RATIO` times the octets of the live documents, plus `SMALLEST_SEGMENT` for each shard and
//!   four of them for compaction.

mod compaction;
mod engine;
mod index;
mod key_list;
mod maintenance;
mod record;
mod recovery;
mod run;
mod segment;
mod shared;
mod unread;

pub use engine::FileEngine;
pub use record::{SegmentContent, SegmentItem, with_checksums};
pub use recovery::Recovery;
pub use run::{FormerRun, RunId};
pub use unread::contexts_in_log;

use super::seal::DocumentSecret;
use super::{BLOCKS, DocumentKey, EngineError, Sequence};
use crate::private_file;
use maintenance::Threads;
use shared::Shared;
use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Fewest octets of a full segment: a file operation for 500 documents of 2 kB.
const SMALLEST_SEGMENT: u64 = 1 << 20;
/// Most octets of a full segment: compaction reads a segment into memory.
const FULL_SEGMENT: u64 = 64 << 20;
/// Size at which a segment accepts no further batch, if no new segment can be made. Offsets have 32 bits.
const LARGEST_SEGMENT: u64 = 1 << 30;

/// When writes are flushed to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sync {
    /// When the kernel chooses to: writes survive the end of the process. A power failure may lose those of the last 30 s or so, which
    /// the next start detects by the kernel's boot id.
    #[default]
    None,
    /// After each batch, by a thread of its own, which flushes several batches together. The caller sends a batch's messages when
    /// `Engine::durable` reaches the batch.
    Batch,
}

/// Called on the flushing thread when `Engine::durable` of a writer has increased, with the writer and the new value. Must not block.
pub type OnDurable = Box<dyn Fn(u16, Sequence) + Send + std::marker::Sync>;

/// Settings of the store.
pub struct FileSettings {
    /// Directory of the log; made if it does not exist.
    pub directory: PathBuf,
    /// The secret that encrypts documents.
    pub secret: DocumentSecret,
    /// When writes are flushed.
    pub sync: Sync,
    /// Notification for `Sync::Batch`.
    pub on_durable: Option<OnDurable>,
    /// The last process that used the log, as another file of the installation says.
    pub former: FormerRun,
}

/// The log of a process: makes an engine for each shard. Dropping it flushes what its engines wrote; drop
/// them first.
pub struct FileStore {
    shared: Arc<Shared>,
    recovery: Recovery,
    threads: Threads,
    /// The id of this process, which the database is to know.
    run: Option<RunId>,
    lock: File,
}

/// The log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A file or directory cannot be used.
    #[error("cannot use {}: {source}{}", path.display(), remedy(source))]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Another process has the log.
    #[error("{} is in use by another process: stop it, or configure another directory", .0.display())]
    InUse(PathBuf),
    /// The log was written by a newer program.
    #[error("{} has format {format}, this program reads up to {}: start the newer program, or move the directory away (then UEs register again)", path.display(), record::FORMAT)]
    TooNew {
        /// Path of the file.
        path: PathBuf,
        /// Its format.
        format: u16,
    },
    /// The log was sealed with another key.
    #[error("{} was sealed with another key than {}: restore that file from your backup, or move the directory away (then UEs register again)", path.display(), key.display())]
    OtherKey {
        /// Path of the segment.
        path: PathBuf,
        /// Path of the key file.
        key: PathBuf,
    },
    /// The first segment or a thread cannot be made.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// What to do about an error of a file or directory of the log, as the end of a sentence.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; let the user that runs this process write there, or set 'state.directory' to another directory"
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "; mount its file system for writing, or set 'state.directory' to another directory"
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "; it, or a part of its path, is no directory: move that away, or set 'state.directory' to another directory"
        }
        io::ErrorKind::IsADirectory => "; a directory is in the place of a file of the log: move it away",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; free some room there",
        _ => "",
    }
}

impl FileStore {
    /// Opens the log, or makes it.
    pub fn open(settings: FileSettings) -> Result<Self, OpenError> {
        let boot = boot_id().map_err(|source| OpenError::Io { path: BOOT_ID.into(), source })?;
        Self::open_on_boot(settings, boot)
    }

    fn open_on_boot(settings: FileSettings, boot: [u8; 16]) -> Result<Self, OpenError> {
        let directory = &settings.directory;
        let failed = |source| OpenError::Io { path: directory.clone(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        let lock = lock(directory)?;
        let runs = run::Runs::read(directory);
        let is_known = runs.is_known(settings.former);
        let recovered = recovery::recover(directory, &settings.secret, boot, (is_known, runs.stale_below))?;
        let recovery = recovered.report.clone();
        let run = match settings.former {
            FormerRun::Unknown => None,
            former => runs.begin(former, recovered.stale_below, directory),
        };
        let shared = Arc::new(Shared::new(settings, recovered, boot));
        let threads = Threads::start(&shared)?;
        Ok(Self { shared, recovery, threads, run, lock })
    }

    /// The result of recovery, for the caller to log.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// The id of this process's run, to be stored in the database, and then confirmed ([`FileStore::confirm_run`]). `None`: the log is
    /// compared with no database, or the id can't be stored beside it.
    pub fn run(&self) -> Option<RunId> {
        self.run
    }

    /// The database has the id of this run.
    pub fn confirm_run(&self) {
        if let Some(run) = self.run {
            run::Runs::confirm(run, self.shared.origin.stale_below, &self.shared.directory);
        }
    }

    /// An engine for a shard. Each has a segment of its own; `writer` is the number in notifications.
    pub fn engine(&self, writer: u16) -> Result<FileEngine, EngineError> {
        FileEngine::new(&self.shared, writer)
    }

    /// Octets of the log, and of its live documents.
    pub fn size(&self) -> (u64, u64) {
        self.shared.size()
    }

    /// Segments that compaction rewrote, and octets that it wrote.
    pub fn compacted(&self) -> (u64, u64) {
        self.shared.compacted()
    }
}

impl Drop for FileStore {
    fn drop(&mut self) {
        self.threads.stop();
        // Not by closing the file: a child process has a copy of it between fork and exec, which would hold the lock.
        let _ = self.lock.unlock();
    }
}

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

fn boot_id() -> io::Result<[u8; 16]> {
    let text = std::fs::read_to_string(BOOT_ID)?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let mut id = [0; 16];
    hex::decode_to_slice(digits, &mut id).map_err(io::Error::other)?;
    Ok(id)
}

/// Locks the directory. The kernel releases the lock with the process.
fn lock(directory: &Path) -> Result<File, OpenError> {
    let path = directory.join("lock");
    let file = private_file::append(&path).map_err(|source| OpenError::Io { path: path.clone(), source })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse(directory.into())),
        Err(TryLockError::Error(source)) => Err(OpenError::Io { path, source }),
    }
}

#[cfg(test)]
mod tests;
