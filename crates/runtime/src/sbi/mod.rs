//! The HTTP/2 binding of the SBI, and the thread of the SBI and the operator API.
//!
//! ```text
//!  shard ── HttpHandle::call ──> client ──HTTP/2──> peer
//!        <─ Shards::reply ─────────┘
//!  peer ──HTTP/2──> server ── Shards::request ──> shard
//!                      <───── HttpHandle::answer ───┘
//!  operator ──> REST API ── Shards::inspect ──> shards, gateways
//!                      <── HttpHandle::inspected ──┘
//! ```
//!
//! A request for a context (the resource or the callback in its URI) goes to the shard that owns the block in the
//! context's reference. Other requests are distributed: those for a subscriber always to the same shard, others in
//! rotation.

mod access;
mod convert;
mod log_rate;
mod plain;
mod record;
mod renewals;
mod server;
mod thread;

pub use access::{AccessSettings, KeySource};
pub use record::{RECORD_VARIABLE, Recorder};
pub use thread::{ApiListener, ApiSettings, HttpHandle, HttpThread, SbiSettings, bind, start};

use crate::api::Topic;
use crate::token::ShardToken;
use pith_nf::fabric::Bearer;
use pith_nf::kit::{Client, Nf};
use pith_sbi::{ApiRoot, Reply, Request};
use std::sync::Arc;

/// A request that an NF must answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// The exchange's number.
    pub id: u64,
    /// The calling NF instance, if authenticated by a token or certificate.
    pub client: Option<Client>,
}

/// The shards of a process as the HTTP thread uses them. No method may block.
pub trait Shards: Send + 'static {
    /// Number of shards, at least one.
    fn count(&self) -> u16;

    /// The shard that has the context which a request names, if it names one.
    fn owner(&self, request: &Request) -> Option<u16>;

    /// Whether the shard's queue is full, so that requests must be refused.
    fn is_full(&self, shard: u16) -> bool;

    /// Passes a request to a shard; [`HttpHandle::answer`] must be called once for it.
    fn request(&self, shard: u16, from: Exchange, nf: Nf, request: Request);

    /// Passes the result of a call to its shard.
    fn reply(&self, token: ShardToken, from: Option<Arc<ApiRoot>>, reply: Reply);

    /// Returns a call whose access token was refused by the producer.
    fn token_refused(&self, token: ShardToken, root: Arc<ApiRoot>, request: Box<Request>, bearer: Bearer);

    /// Reports that a connection to that authority (host and port) ended.
    fn connection_lost(&self, authority: &str);

    /// Queries the shards and gateways that can answer a topic and returns their number; each must call
    /// [`HttpHandle::inspected`] once.
    fn inspect(&self, topic: Topic, exchange: u64) -> usize;
}

#[cfg(test)]
mod tests;
