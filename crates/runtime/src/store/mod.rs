//! The database: subscribers, and the documents that NFs store for UEs, in one SQLite file.
//!
//! ```text
//!  shards ── StoreRequest, token ──┐              ┌── token, result ──> sink (shards' queues)
//!                                  ├──> queue ────┤
//!  REST API ── closure ────────────┘   one txn    └── closure's own answer
//!                                      a batch
//! ```
//!
//! All pending requests form one batch with one commit (group commit). A request is answered after the commit
//! of earlier writes; reads before the first write are answered immediately. Requests keep their order. The
//! process that opened the file has exclusive access. Subscribers' keys are encrypted (`seal.rs`).

mod database;
mod documents;
mod error;
mod schema;
mod seal;
mod subscribers;
mod thread;

pub use database::{Database, DatabaseLocation};
pub use error::DatabaseError;
pub use seal::SealError;
pub(crate) use seal::read_key_file;
pub use subscribers::{Added, Existing};
pub use thread::{Answer, Sink, StoreHandle, StoreThread, start};

#[cfg(test)]
mod tests;
