//! The interface of an engine, its errors and statistics.

use super::{Batch, Document, DocumentKey, DocumentKind, OwnerVersion, SectionId, UnixMillis};
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

/// A store of documents, as one shard sees it. Engines of several shards share the documents: each reads what all wrote.
///
/// Only the owner of a block writes its documents. `fence` makes it known; afterwards a former owner's writes are
/// refused. Reads are not fenced: a new owner fences first, then reads.
pub trait Engine: Send {
    /// Writes a batch with one request. After a crash, either all of its changes are present or none. (Redis: this holds for each
    /// change alone.) Refuses the whole batch if a block has a later owner; skips changes that conflict.
    fn append(&mut self, batch: &Batch) -> Result<Appended, EngineError>;

    /// Reads a document.
    fn read(&mut self, key: DocumentKey) -> Result<Option<Document>, DocumentError>;

    /// Reads some sections of a document; others may be missing in the result.
    fn read_sections(
        &mut self,
        key: DocumentKey,
        _sections: &[SectionId],
    ) -> Result<Option<Document>, DocumentError> {
        self.read(key)
    }

    /// Reads all documents of a kind in a block, in any order. One that cannot be read is passed as its error.
    fn read_block(
        &mut self,
        kind: DocumentKind,
        block: u16,
        visit: &mut dyn FnMut(DocumentKey, Result<Document, DocumentError>),
    ) -> Result<(), EngineError>;

    /// The keys of the documents of a kind in a block, in any order.
    fn keys(&mut self, kind: DocumentKind, block: u16) -> Result<Vec<DocumentKey>, EngineError> {
        let mut keys = Vec::new();
        self.read_block(kind, block, &mut |key, _| keys.push(key))?;
        Ok(keys)
    }

    /// The keys of the documents of some kinds, each in a block, in any order. An engine may read them with one request.
    fn list(&mut self, places: &[(DocumentKind, u16)]) -> Result<Vec<DocumentKey>, EngineError> {
        let mut all = Vec::new();
        for (kind, block) in places {
            all.extend(self.keys(*kind, *block)?);
        }
        Ok(all)
    }

    /// The keys of those of them that have a deadline before or at `until`, in any order.
    fn list_due(
        &mut self,
        places: &[(DocumentKind, u16)],
        until: UnixMillis,
    ) -> Result<Vec<DocumentKey>, EngineError> {
        let mut found = Vec::new();
        for block in places.iter().map(|(_, block)| *block).collect::<BTreeSet<_>>() {
            let due = self.due(block, until, usize::MAX)?.into_iter().map(|due| due.key);
            found.extend(due.filter(|key| places.contains(&(key.kind, key.block))));
        }
        Ok(found)
    }

    /// Whether calls that return documents need no network. If not, the shard's thread waits for a server in each of them.
    fn answers_at_once(&self) -> bool {
        !self.waits_for_network()
    }

    /// The documents of a block with a deadline before or at `until`, earliest first, at most `limit`. Looks at all
    /// documents of the block: for take-over, not for each timer.
    fn due(&mut self, block: u16, until: UnixMillis, limit: usize) -> Result<Vec<Due>, EngineError>;

    /// Compare and set: makes `owner` the block's least version for writes, unless a later one was set.
    fn fence(&mut self, block: u16, owner: OwnerVersion) -> Result<(), EngineError>;

    /// The version of the owner map below which writes to the block are refused.
    fn fenced_below(&mut self, block: u16) -> Result<OwnerVersion, EngineError>;

    /// Fences these blocks with `own`, which the caller has already: `false`, and nothing is changed, if a former owner's version is not
    /// lower, as the store would still take its writes. An engine may do it with few requests.
    fn take(&mut self, blocks: &[u16], own: OwnerVersion) -> Result<bool, EngineError> {
        for block in blocks {
            if self.fenced_below(*block)? >= own {
                return Ok(false);
            }
        }
        blocks.iter().try_for_each(|block| self.fence(*block, own)).map(|()| true)
    }

    /// Makes the caller the owner of these blocks: fences them with a version that is higher than that of each former owner by `step`, and
    /// returns it. Two callers at once with different steps get different versions, and the lower one is refused.
    fn claim(&mut self, blocks: &[u16], step: u64) -> Result<OwnerVersion, EngineError> {
        let mut latest = OwnerVersion(0);
        for block in blocks {
            latest = latest.max(self.fenced_below(*block)?);
        }
        let own = OwnerVersion(latest.0.saturating_add(step));
        for block in blocks {
            self.fence(*block, own)?;
        }
        Ok(own)
    }

    /// The last write that is as durable as `sync` promises. Without `sync` that is the last write of `append`.
    fn durable(&self) -> Sequence;

    /// Whether calls wait for a network. Such an engine needs a thread of its own: the shard's thread must not block.
    fn waits_for_network(&self) -> bool {
        false
    }

    /// Reads documents; `visit` gets one result for each key. An engine may read them with one request.
    fn read_each(&mut self, keys: &[DocumentKey], visit: &mut dyn FnMut(DocumentKey, ReadResult)) {
        for key in keys {
            visit(*key, self.read(*key));
        }
    }

    /// Reads a document, after the writes before it. `None`: the result follows with `take_reads`, so that the caller need not wait.
    fn begin_read(&mut self, key: DocumentKey) -> Option<ReadResult> {
        Some(self.read(key))
    }

    /// Results of `begin_read`.
    fn take_reads(&mut self) -> Vec<(DocumentKey, ReadResult)> {
        Vec::new()
    }

    /// Whether `take_failures` and `take_loss` may have results.
    fn has_late_results(&self) -> bool {
        true
    }

    /// Batches that failed after `append` accepted them. Only engines that write on a thread of their own have any.
    fn take_failures(&mut self) -> Vec<LateFailure> {
        Vec::new()
    }

    /// Checks from time to time that the store still has what was written to it; `take_loss` has the result.
    fn check(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Whether documents may have been lost since the last call: another server took over, or it started again. All contexts are
    /// then written again.
    fn take_loss(&mut self) -> bool {
        false
    }

    /// Counters since the engine was created.
    fn statistics(&self) -> Statistics;
}

/// Number of a write within a store. Later writes have higher numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Sequence(pub u64);

/// The result of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Appended {
    /// The last write's number: it is durable as soon as `Engine::durable` reaches it.
    pub sequence: Sequence,
    /// Indices of changes that were not made: the document's revision is not the expected one, or an update found no document or a
    /// damaged one. Read the document again, or replace it.
    pub conflicts: Vec<usize>,
}

/// A document, or that there is none.
pub type ReadResult = Result<Option<Document>, DocumentError>;

/// Changes that were accepted and not made.
#[derive(Debug)]
pub struct LateFailure {
    /// The documents.
    pub keys: Vec<DocumentKey>,
    /// Why; `None`: the changes conflict.
    pub error: Option<EngineError>,
}

/// A document with a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    /// The first of its timers.
    pub deadline: UnixMillis,
    /// The document.
    pub key: DocumentKey,
}

/// Counters of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Documents replaced, updated or deleted.
    pub writes: u64,
    /// Documents read.
    pub reads: u64,
    /// System calls of a file, requests on the wire of Redis.
    pub requests: u64,
    /// Those of them that read documents.
    pub read_requests: u64,
    /// Octets written, as stored.
    pub octets_written: u64,
    /// Octets read, as stored.
    pub octets_read: u64,
    /// Time in writes, nanoseconds.
    pub write_ns: u64,
    /// Time in reads, nanoseconds.
    pub read_ns: u64,
    /// Batches that were refused or failed.
    pub failures: u64,
}

impl DocumentError {
    /// Whether a later attempt may succeed: the document may be all right.
    pub const fn is_temporary(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::Remote { .. })
    }
}

impl Statistics {
    /// The sum of two.
    pub const fn plus(self, other: Self) -> Self {
        Self {
            writes: self.writes + other.writes,
            reads: self.reads + other.reads,
            requests: self.requests + other.requests,
            read_requests: self.read_requests + other.read_requests,
            octets_written: self.octets_written + other.octets_written,
            octets_read: self.octets_read + other.octets_read,
            write_ns: self.write_ns + other.write_ns,
            read_ns: self.read_ns + other.read_ns,
            failures: self.failures + other.failures,
        }
    }
}

/// A batch or a query failed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// Another instance or shard owns the block.
    #[error(
        "block {block:x} has an owner of version {current}, this write is of version {own}: read the owner map again and forward what belongs to the block"
    )]
    Fenced {
        /// The block.
        block: u16,
        /// Version of the block's owner.
        current: u64,
        /// Version of the refused write.
        own: u64,
    },
    /// No room. Nothing of the batch was written; the next attempt succeeds when there is room.
    #[error("no space left for documents in {}: free some, or move the directory to a larger file system; writes continue by themselves", .0.display())]
    Full(PathBuf),
    /// An error of the file system.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Data were not flushed to the disk. The kernel may have dropped them, so that no later flush can be trusted.
    #[error("the disk of {} failed to store documents: check it (dmesg), then restart; documents written since are not safe from a power failure", .0.display())]
    Disk(PathBuf),
    /// Files of the log were removed by others while the process writes to them: no later start would find what is written.
    #[error("{} was removed while Pith writes there: contexts are not stored any longer. Put it back; if that is not possible, restart Pith, and all UEs register again", .0.display())]
    Removed(PathBuf),
    /// A batch exceeds a bound.
    #[error("{key} has {octets} octets, more than {limit}", limit = super::MAX_DOCUMENT)]
    TooLarge {
        /// The document.
        key: DocumentKey,
        /// Its octets.
        octets: usize,
    },
    /// A batch exceeds a bound.
    #[error("a batch of {0} changes, more than {limit}: split it", limit = super::MAX_BATCH)]
    TooMany(usize),
    /// A block that cannot exist.
    #[error("block {0:x} is not below {limit:x}", limit = super::BLOCKS)]
    NoSuchBlock(u16),
    /// A cryptographic operation failed.
    #[error("AES-256-GCM failed")]
    Seal,
    /// A server did not take a batch, or not all of a query.
    #[error("Redis at {server}: {reason}")]
    Remote {
        /// Its address.
        server: String,
        /// What is wrong and, if known, what to do.
        reason: String,
    },
    /// The owner map of a set is damaged, or was changed by hand.
    #[error("the owner map in the store cannot be read: a running instance writes it again")]
    OwnerMap,
    /// The server did not answer shortly before.
    #[error("{0}")]
    Paused(String),
    /// More changes wait for a server than a process keeps.
    #[error(
        "{0} MiB of changes wait for the server of documents: it is too slow; check its load and the network"
    )]
    Backlog(usize),
}

/// A document is unknown because it cannot be read. Others are not affected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// Octets in the log changed.
    #[error("{key} is unknown: its record at offset {offset} of {} is damaged. Its UE registers again; if this recurs, check disk and memory", path.display())]
    Damaged {
        /// The document.
        key: DocumentKey,
        /// Path of the file.
        path: PathBuf,
        /// Offset of the damaged record.
        offset: u64,
    },
    /// A sealed value was modified or moved, or the key is another one.
    #[error("{key} is unknown: its record at offset {offset} of {} was modified, or sealed with another key. Its UE registers again; restore the key file from your backup if it was replaced", path.display())]
    Changed {
        /// The document.
        key: DocumentKey,
        /// Path of the file.
        path: PathBuf,
        /// Offset of the record.
        offset: u64,
    },
    /// The file cannot be read.
    #[error("{key} cannot be read from {}: {reason}", path.display())]
    Io {
        /// The document.
        key: DocumentKey,
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        reason: String,
    },
    /// A server did not answer.
    #[error("{key} cannot be read: {reason}")]
    Remote {
        /// The document.
        key: DocumentKey,
        /// What is wrong.
        reason: String,
    },
    /// A sealed value in a server was modified or moved, or the key is another one.
    #[error(
        "{key} is unknown: its fields in Redis at {server} were modified, or sealed with another key. Its UE registers again; restore the key file from your backup if it was replaced"
    )]
    Modified {
        /// The document.
        key: DocumentKey,
        /// Address of the server.
        server: String,
    },
}
