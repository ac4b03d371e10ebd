//! Engines that store contexts of UEs and sessions as documents (design section 6). NFs do not know of them.
//!
//! ```text
//!  shard ── Batch of a turn ──> Engine::append ──> one write ──> sends of the turn
//!                                   │
//!                          memory | file | redis
//! ```
//!
//! A document is a set of sections (octets) under a stable key: kind, block, number. Engines seal sections before
//! they leave the process, and neither interpret them nor keep them unpacked.

mod contexts;
mod costs;
mod document;
mod embedding;
mod engine;
mod file;
mod health;
mod key;
mod loads;
mod member;
mod memory;
mod merging;
mod owners;
mod redis;
mod seal;
mod shared;
mod thread;
mod written;

pub(crate) use contexts::kinds_of_nfs;
pub use contexts::{ContextStore, Loaded, StoreMode, WriteForm, WriteTime};
pub use costs::{Cost, Costs};
pub use document::{Batch, Change, Document, Head, MAX_BATCH, MAX_DOCUMENT, SectionId, SectionWriter};
pub use embedding::EmbeddedContent;
pub use engine::{
    Appended, DocumentError, Due, Engine, EngineError, LateFailure, ReadResult, Sequence, Statistics,
};
pub use file::{
    FileEngine, FileSettings, FileStore, FormerRun, OnDurable, OpenError, Recovery, RunId, SegmentContent,
    SegmentItem, Sync, contexts_in_log, with_checksums,
};
pub use health::StoreHealth;
pub use key::{BLOCKS, DocumentKey, DocumentKind, OwnerVersion, Revision, UnixMillis};
pub use member::{HasEnded, JoinError, Joined, Joining, SetError, SetHost, SetMember};
pub use memory::{MemoryEngine, MemoryStore};
pub use merging::append as append_merged;
pub use owners::{
    Description, Lease, LiveInstance, OwnerFile, OwnerMemory, OwnerStore, Poll, SetMap, StoredOwners,
};
pub use redis::{RedisEngine, RedisOpenError, RedisOwners, RedisPlace, RedisSettings, RedisStore, RedisUrl};
pub use seal::DocumentSecret;
pub use thread::{EngineThread, OnWritten};

#[cfg(test)]
mod tests;
