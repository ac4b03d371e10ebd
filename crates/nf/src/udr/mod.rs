//! Unified Data Repository (TS 29.504): subscription data (TS 29.505) and policy data (TS 29.519)
//! over the database.
//!
//! ```text
//!  Request ──> store request ──> database ──> Stored ──> answer
//! ```
//!
//! The UDR keeps only requests that wait for the database. An operator provisions one
//! [`crate::kit::Subscriber`]; each resource below `provisioned-data` is a view of it
//! ([`provisioned`]). Data that NFs write are stored as the documents that they sent.

mod documents;
mod provisioned;
mod services;
#[cfg(test)]
mod tests;

use crate::kit::{
    Arena, Caller, Input, Instant, Key, NetworkFunction, Outbox, StoreError, StoreRequest, StoreResponse, Tag,
};
use pith_sbi::{Problem, Reply, Request};

/// Maximum number of requests that wait for the database.
const PENDING_LIMIT: u32 = 1 << 16;

/// A request that waits for the database.
#[derive(Debug)]
struct Pending {
    from: Caller,
    request: Request,
}

/// What follows a database result.
enum Next {
    Answer(Reply),
    Store(StoreRequest),
}

/// The UDR of a shard.
#[derive(Debug)]
pub struct Udr {
    root: std::sync::Arc<pith_sbi::ApiRoot>,
    pending: Arena<Pending>,
}

impl Udr {
    /// A UDR with that API root.
    pub const fn new(root: std::sync::Arc<pith_sbi::ApiRoot>) -> Self {
        Self { root, pending: Arena::new(PENDING_LIMIT) }
    }

    fn begin(&mut self, from: Caller, request: Request, out: &mut Outbox) {
        let store = match services::first_step(&request) {
            Ok(store) => store,
            Err(problem) => return out.refuse(from, *problem),
        };
        match self.pending.insert_with(|_| Pending { from, request }) {
            Some(key) => out.store(Tag { owner: key.to_u64(), step: 0 }, store),
            None => out.refuse(from, Problem::congestion(1)),
        }
    }

    fn stored(&mut self, tag: Tag, result: Result<StoreResponse, StoreError>, out: &mut Outbox) {
        let key = Key::from_u64(tag.owner);
        let Some(pending) = self.pending.get(key) else { return };
        let next = match result {
            Ok(response) => services::next_step(&self.root, &pending.request, tag.step, response),
            Err(error) => Next::Answer(Err(Box::new(Problem::system_failure(error)))),
        };
        match next {
            Next::Store(store) => out.store(Tag { step: tag.step + 1, ..tag }, store),
            Next::Answer(reply) => self.end(key, reply, out),
        }
    }

    fn end(&mut self, key: Key, reply: Reply, out: &mut Outbox) {
        let Some(pending) = self.pending.remove(key) else { return };
        match reply {
            Ok(response) => out.answer(pending.from, response),
            Err(problem) => out.refuse(pending.from, *problem),
        }
    }
}

impl NetworkFunction for Udr {
    fn handle(&mut self, _now: Instant, input: Input, out: &mut Outbox) {
        match input {
            Input::Request { from, request } => self.begin(from, request, out),
            Input::Stored { tag, result } => self.stored(tag, result, out),
            Input::N2(_) | Input::N4(_) | Input::Reply { .. } | Input::Timer(_) => {}
        }
    }
}
