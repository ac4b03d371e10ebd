//! Unified Data Repository (TS 29.504): subscription data (TS 29.505) and policy data (TS 29.519)
//! over the database.
//!
//! ```text
//!  Request ──> store request ──> database ──> Stored ──> answer
//! ```
//!
//! The UDR keeps only requests that wait for the database. An operator provisions one
//! [`crate::kit::Subscriber`]; each resource below `provisioned-data` is a view of it
//! ([`provisioned`]). Data that NFs write are stored as the documents that they sent. The UDM is notified of changes of the operator
//! ([`changes`]).

mod changes;
mod documents;
mod provisioned;
mod services;
#[cfg(test)]
mod tests;

use crate::kit::{
    Arena, Input, Instant, Key, NetworkFunction, Order, Outbox, PendingReply, StoreError, StoreRequest,
    StoreResponse, Tag, Timer,
};
use changes::Changes;
use pith_sbi::{Problem, Reply, Request};

/// Maximum number of requests that wait for the database.
const PENDING_LIMIT: u32 = 1 << 16;

/// A request that waits for the database.
#[derive(Debug)]
struct Pending {
    reply: PendingReply,
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
    changes: Changes,
}

impl Udr {
    /// A UDR with that API root.
    pub fn new(root: std::sync::Arc<pith_sbi::ApiRoot>) -> Self {
        Self { root, pending: Arena::new(PENDING_LIMIT), changes: Changes::default() }
    }

    /// This UDR, of those of the process's shards, notifies the UDM of changed subscribers.
    #[must_use]
    pub const fn notifying_changes(mut self) -> Self {
        self.changes.enable();
        self
    }

    fn begin(&mut self, reply: PendingReply, request: Request, out: &mut Outbox) {
        let store = match services::first_step(&request) {
            Ok(store) => store,
            Err(problem) => return reply.refuse(*problem, out),
        };
        match self.pending.insert(Pending { reply, request }) {
            Ok(key) => out.store(Tag::new(key.to_u64(), 0), store),
            Err(pending) => pending.reply.refuse(Problem::congestion(1), out),
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
        pending.reply.complete(reply, out);
    }
}

impl NetworkFunction for Udr {
    fn handle(&mut self, now: Instant, input: Input, out: &mut Outbox) {
        match input {
            Input::Request { reply, request } => self.begin(reply, request, out),
            Input::Stored { tag, result } if tag.owner == changes::OWNER => {
                self.changes.stored((now, &self.root), tag.step, result, out);
            }
            Input::Stored { tag, result } => self.stored(tag, result, out),
            Input::Reply { tag, reply, .. } => {
                self.changes.notified((now, &self.root), tag.step, reply, out);
            }
            Input::Timer(key) if key.timer == Timer::ChangedSubscribers => {
                self.changes.timeout(now, &self.root, out);
            }
            Input::N2(_) | Input::N4(_) | Input::Routed { .. } | Input::Timer(_) => {}
        }
    }

    fn operate(&mut self, _now: Instant, what: &Order, out: &mut Outbox, _list: &mut Vec<serde_json::Value>) {
        if *what == Order::NotifyChanges {
            self.changes.read(out);
        }
    }

    fn resume_contexts(&mut self, _now: Instant, out: &mut Outbox) {
        self.changes.read(out);
    }

    fn finish_take_over(&mut self, _now: Instant, out: &mut Outbox) {
        self.changes.read(out);
    }

    fn replies_owed(&self) -> Option<usize> {
        Some(self.pending.len())
    }
}
