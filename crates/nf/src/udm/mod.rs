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
use pith_sbi::{Problem, Reply, Request};
use procedure::{Step, Transaction};

/// Maximum number of transactions in progress.
const TRANSACTION_LIMIT: u32 = 1 << 16;

struct Entry {
    reply: PendingReply,
    transaction: Transaction,
    /// The pending call of the transaction.
    step: u32,
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
        match self.entries.insert(Entry { reply, transaction: Transaction::Ended, step: 0 }) {
            Ok(key) => self.go_on(key, step, out),
            Err(entry) => entry.reply.refuse(Problem::congestion(1), out),
        }
    }

    fn reply(&mut self, tag: Tag, reply: Reply, out: &mut Outbox) {
        let key = Key::from_u64(tag.owner);
        let Some(entry) = self.entries.get_mut(key).filter(|entry| entry.step == tag.step) else { return };
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
            Input::Reply { tag, reply, .. } => self.reply(tag, reply, out),
            Input::N2(_) | Input::N4(_) | Input::Routed { .. } | Input::Stored { .. } | Input::Timer(_) => {}
        }
    }
    fn replies_owed(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}
