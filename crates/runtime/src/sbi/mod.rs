//! The HTTP/2 binding of the SBI, and the thread on which it and the REST API run.
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
//! A request's path begins with `/s3` where it is for shard 3: NFs put that into the apiRoot that
//! they give out. Without it, a subscriber's requests go to one shard and others to each in turn.

mod access;
mod convert;
mod record;
mod server;
mod thread;

pub use access::{AccessSettings, KeySource};
pub use record::{RECORD_VARIABLE, Recorder};
pub use thread::{ApiListener, ApiSettings, HttpHandle, HttpThread, SbiSettings, bind, start};

use crate::api::Topic;
use crate::token::ShardToken;
use pith_nf::fabric::Bearer;
use pith_nf::kit::Nf;
use pith_sbi::{ApiRoot, NfInstanceId, Reply, Request};
use std::sync::Arc;

/// A request that an NF has to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Its number.
    pub id: u64,
    /// The NF instance that asks, where token or certificate prove it.
    pub client: Option<NfInstanceId>,
}

/// The shards of a process, as the HTTP thread sees them. None of these may block.
pub trait Shards: Send + 'static {
    /// How many there are: at least one.
    fn count(&self) -> u16;

    /// Whether the inbox of that shard is full, so that requests of others have to be refused.
    fn is_full(&self, shard: u16) -> bool;

    /// Hands over a request of that client; one [`HttpHandle::answer`] follows.
    fn request(&self, shard: u16, from: Exchange, nf: Nf, request: Request);

    /// Hands over what came of a call.
    fn reply(&self, token: ShardToken, from: Option<Arc<ApiRoot>>, reply: Reply);

    /// Gives back a call whose access token the producer refused.
    fn token_refused(&self, token: ShardToken, root: Arc<ApiRoot>, request: Box<Request>, bearer: Bearer);

    /// Asks those that know a topic, and gives how many: one [`HttpHandle::inspected`] of each
    /// follows.
    fn inspect(&self, topic: Topic, exchange: u64) -> usize;
}

#[cfg(test)]
mod tests;
