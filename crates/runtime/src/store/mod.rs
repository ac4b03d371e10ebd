//! The database: subscribers, and the documents that NFs keep about UEs, in one SQLite file.
//!
//! ```text
//!  shards ── StoreRequest, token ──┐              ┌── token, result ──> sink (shards' desks)
//!                                  ├──> desk ─────┤
//!  REST API ── closure ────────────┘   one txn    └── closure's own answer
//!                                      a batch
//! ```
//!
//! Whatever waits on the desk is one batch and shares one commit (group commit). A request is
//! answered after the commit of what was written before it, reads before the first write at once.
//! The order of requests is kept. The process that opened the file has it alone. Subscribers' keys are sealed (`seal.rs`).

mod database;
mod documents;
mod error;
mod schema;
mod seal;
mod subscribers;
mod thread;

pub use database::{Database, Place};
pub use error::DatabaseError;
pub use seal::SealError;
pub use subscribers::{Added, Existing};
pub use thread::{Answer, Sink, StoreHandle, StoreThread, start};

#[cfg(test)]
mod tests;
