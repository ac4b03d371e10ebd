//! Unified Data Management (TS 29.503): authentication vectors, UE context management, subscription data.
//!
//! ```text
//!  GenerateAuthData     procedure/authentication.rs   SUCI -> SUPI, SQN, vector
//!  3GppRegistration     procedure/registration.rs     the old AMF deregisters the UE
//!  Subscribe, Modify    procedure/subscription.rs     resources and expiry are checked
//!  data change          procedure/data_change.rs      the NFs that have subscribed are notified
//!  everything else      procedure/relay.rs            one operation of the UDR
//! ```
//!
//! The UDM keeps only transactions in progress, so that any instance can serve any request.

mod config;
mod error;
mod procedure;
#[cfg(test)]
mod tests;

use crate::kit::{Arena, Input, Instant, Key, NetworkFunction, Outbox, PendingReply, Rng, Tag, Target};
pub use config::{HomeNetworkKey, UdmConfig};
use pith_sbi::{ApiRoot, Problem, Reply, Request};
use procedure::{Step, Transaction};
use std::sync::Arc;

/// Maximum number of transactions in progress.
const TRANSACTION_LIMIT: u32 = 1 << 16;

struct Entry {
    reply: PendingReply,
    transaction: Transaction,
    /// The pending call of the transaction.
    step: u32,
    /// The NF that this call notifies.
    notified: Option<Arc<ApiRoot>>,
}

/// The UDM of a shard.
pub struct Udm {
    config: UdmConfig,
    rng: Rng,
    entries: Arena<Entry>,
}

impl Udm {
    /// A UDM with those keys, and its own randomness.
    pub const fn new(config: UdmConfig, rng: Rng) -> Self {
        Self { config, rng, entries: Arena::new(TRANSACTION_LIMIT) }
    }

    fn begin(&mut self, now: Instant, reply: PendingReply, request: Request, out: &mut Outbox) {
        let step = procedure::begin(&self.config, now, reply.caller(), request);
        match self.entries.insert(Entry { reply, transaction: Transaction::Ended, step: 0, notified: None }) {
            Ok(key) => self.go_on(key, step, out),
            Err(entry) => entry.reply.refuse(Problem::congestion(1), out),
        }
    }

    fn reply(&mut self, (tag, from): (Tag, Option<Arc<ApiRoot>>), reply: Reply, out: &mut Outbox) {
        let key = Key::from_u64(tag.owner);
        let Some(entry) = self.entries.get_mut(key).filter(|entry| entry.step == tag.step) else { return };
        let reply = reply.map_err(|problem| of_notified(entry.notified.as_ref(), from.as_ref(), problem));
        let transaction = std::mem::replace(&mut entry.transaction, Transaction::Ended);
        let step = transaction.reply(&self.config, &mut self.rng, reply);
        self.go_on(key, step, out);
    }

    fn go_on(&mut self, key: Key, step: Step, out: &mut Outbox) {
        match step {
            Step::Call(request, next) => {
                let Some(entry) = self.entries.get_mut(key) else { return };
                entry.transaction = next;
                entry.step += 1;
                entry.notified = request.target_uri().map(|uri| Arc::clone(&uri.root));
                out.call(Tag::new(key.to_u64(), entry.step), target_of(&request), request);
            }
            Step::SendAndCall(requests, request, next) => {
                requests.into_iter().for_each(|request| send(request, out));
                self.go_on(key, Step::Call(request, next), out);
            }
            Step::Answer(reply, requests) => {
                let Some(entry) = self.entries.remove(key) else { return };
                entry.reply.complete(reply, out);
                requests.into_iter().for_each(|request| send(request, out));
            }
        }
    }
}

/// The answer to a notification. If the NF is gone, one of another set may have got the notification, which does not know the UE, and says 404: that NF
/// has not lost its context, and may return.
fn of_notified(
    notified: Option<&Arc<ApiRoot>>,
    from: Option<&Arc<ApiRoot>>,
    problem: Box<Problem>,
) -> Box<Problem> {
    let is_of_other = notified.zip(from).is_some_and(|(notified, from)| notified != from);
    if is_of_other && problem.status == 404 {
        return Box::new(Problem::not_reachable("another NF instance does not have the context either"));
    }
    problem
}

/// Sends a notification to its URI, or a request to the UDR; the reply is ignored (the tag has no entry).
fn send(request: Request, out: &mut Outbox) {
    out.call(Tag::new(u64::MAX, 0), target_of(&request), request);
}

/// Where a notification goes: to its URI. Other requests are for the UDR.
fn target_of(request: &Request) -> Target {
    request.target_uri().map_or_else(Target::any, |uri| Target::Root(uri.root.clone()))
}

impl NetworkFunction for Udm {
    fn change_owners(&mut self, owners: &std::sync::Arc<pith_types::OwnerMap>) {
        self.config.identity.owners = std::sync::Arc::clone(owners);
    }

    fn handle(&mut self, now: Instant, input: Input, out: &mut Outbox) {
        match input {
            Input::Request { reply, request } => self.begin(now, reply, request, out),
            Input::Reply { tag, from, reply } => self.reply((tag, from), reply, out),
            Input::N2(_) | Input::N4(_) | Input::Routed { .. } | Input::Stored { .. } | Input::Timer(_) => {}
        }
    }
    fn replies_owed(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}
