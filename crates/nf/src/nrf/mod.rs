//! Network Repository Function (TS 29.510): registration and discovery of NF instances.
//!
//! ```text
//!  NF ─> RegisterNfInstance (PUT) ─> instances ─> NfStatusNotify to subscribers
//!  NF ─> UpdateNfInstance (PATCH) ─> heart-beat, load        every 10 s
//!        silent for three heart-beats: suspended, no longer discovered (5.2.2.3.2)
//!        silent for ten more: deleted
//!  restart ─> documents ──────────> instances and subscriptions as before (`residency`)
//!  NF ─> SearchNfInstances ────────> instances that match the query
//! ```

mod access_token;
mod authorization;
mod config;
mod discovery;
mod management;
mod residency;
mod subscription;
#[cfg(test)]
mod tests;

use crate::kit::document::UnpackError;
use crate::kit::{
    Caller, Client, DocumentSink, Input, Inspect, Instant, Issuer, NetworkFunction, Outbox, Owner,
    PendingReply, StoreScope, Timer, Tracker, WallClock,
};
pub use access_token::{TokenIssuer, TokenSigner};
pub use config::NrfConfig;
use pith_sbi::nnrf_nfmanagement::NfProfile;
use pith_sbi::{ApiRoot, Cause, NfInstanceId, Problem, Request};
use pith_types::{BlockId, ContextId};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use subscription::Subscription;

/// A registered NF instance.
#[derive(Debug)]
struct Instance {
    profile: NfProfile,
    last_heard: Instant,
    /// The client that registered it.
    owner: Owner,
    /// The number of its document.
    number: u32,
}

impl Instance {
    /// Refuses a client that is not the NF of the profile: its certificate names the instance, which was checked with
    /// the request, or it registered the profile. A certificate of a foreign CA counts only among the NFs of that CA: the
    /// CA may write the id of any NF into it.
    fn check_owner(&self, from: Caller) -> Result<(), Box<Problem>> {
        match from {
            Caller::Remote { client: Some(client), .. } if client.is_named && self.trusts(client.issuer) => {
                Ok(())
            }
            _ => self.owner.check(from),
        }
    }

    /// Whether the client is an NF of this core with the id, which a foreign NF has registered before.
    fn is_displaced_by(&self, from: Caller) -> bool {
        let is_foreign = matches!(self.owner, Owner::Client(owner) if owner.issuer != Issuer::Own);
        is_foreign
            && is_named(from)
            && matches!(Owner::of(from), Owner::Client(client) if client.issuer == Issuer::Own)
    }

    fn trusts(&self, issuer: Issuer) -> bool {
        issuer == Issuer::Own || matches!(self.owner, Owner::Client(owner) if owner.issuer == issuer)
    }
}

/// Whether the client's certificate names the instance for which it acts.
const fn is_named(from: Caller) -> bool {
    matches!(from, Caller::Remote { client: Some(Client { is_named: true, .. }), .. })
}

/// The NRF; a core has one.
#[derive(Debug)]
pub struct Nrf {
    root: Arc<ApiRoot>,
    config: NrfConfig,
    wall: WallClock,
    /// `None` if access tokens are disabled.
    tokens: Option<TokenIssuer>,
    instances: BTreeMap<NfInstanceId, Instance>,
    subscriptions: BTreeMap<u64, Subscription>,
    /// The last number of a document or subscription.
    numbered: u32,
    sweeping: bool,
    /// The block of the numbers of documents, if there are any.
    block: Option<BlockId>,
    tracker: Tracker,
}

impl Nrf {
    /// An NRF with that API root, whose wall clock starts in 1970.
    pub fn new(root: Arc<ApiRoot>, config: NrfConfig) -> Self {
        Self {
            root,
            config,
            wall: WallClock::default(),
            tokens: None,
            instances: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            numbered: 0,
            sweeping: false,
            block: None,
            tracker: Tracker::default(),
        }
    }

    /// Sets the wall clock. The end of subscriptions is sent as wall-clock time.
    pub fn with_wall_clock(mut self, wall: WallClock) -> Self {
        self.wall = wall;
        self
    }

    /// Enables access tokens.
    pub fn with_tokens(mut self, tokens: TokenIssuer) -> Self {
        self.tokens = Some(tokens);
        self
    }

    fn request(&mut self, now: Instant, reply: PendingReply, request: Request, out: &mut Outbox) {
        self.sweep_later(out);
        let from = reply.caller();
        let result = match request {
            Request::RegisterNfInstance(request) => self.register(now, *request, from, out),
            Request::UpdateNfInstance(request) => self.update(now, &request, from, out),
            Request::DeregisterNfInstance(request) => self.deregister(&request.nf_instance_id, from, out),
            Request::GetNfInstance(request) => self.profile(&request.nf_instance_id, from),
            Request::GetNfInstances(request) => self.list(&request, from),
            Request::CreateSubscription(request) => self.subscribe(now, request.body, from),
            Request::UpdateSubscription(request) => self.renew(now, &request, from),
            Request::RemoveSubscription(request) => self.unsubscribe(&request.subscription_id, from),
            Request::SearchNfInstances(request) => self.search(&request, from),
            Request::AccessTokenRequest(request) => self.access_token(now, &request.body, from),
            _ => Err(Box::new(Problem::new(Cause::ResourceUriStructureNotFound))),
        };
        reply.complete(result, out);
    }

    /// Starts the sweep timer while there are instances or subscriptions.
    fn sweep_later(&mut self, out: &mut Outbox) {
        if !self.sweeping {
            self.sweeping = true;
            out.start(0, Timer::NrfSweep, self.config.heart_beat);
        }
    }
}

impl NetworkFunction for Nrf {
    fn handle(&mut self, now: Instant, input: Input, out: &mut Outbox) {
        match input {
            Input::Request { reply, request } => self.request(now, reply, request, out),
            Input::Timer(key) if key.timer == Timer::NrfSweep => {
                self.sweep(now, out);
                self.sweeping = false;
                self.sweep_later(out);
            }
            Input::Reply { tag, reply, .. } => self.notified(tag, &reply, out),
            Input::N2(_) | Input::N4(_) | Input::Routed { .. } | Input::Stored { .. } | Input::Timer(_) => {}
        }
    }

    fn replies_owed(&self) -> Option<usize> {
        Some(0)
    }

    fn tracker(&self) -> Option<&Tracker> {
        Some(&self.tracker)
    }

    fn tracker_mut(&mut self) -> Option<&mut Tracker> {
        Some(&mut self.tracker)
    }

    fn store_contexts(&mut self, scope: StoreScope, sink: &mut dyn DocumentSink) {
        self.store_records(scope, sink);
    }

    fn restore_context(
        &mut self,
        now: Instant,
        id: ContextId,
        document: &[u8],
        _is_stale: bool,
    ) -> Result<(), UnpackError> {
        self.restore_record(now, id, document)
    }

    fn resume_contexts(&mut self, _now: Instant, out: &mut Outbox) {
        if !self.instances.is_empty() || !self.subscriptions.is_empty() {
            self.sweep_later(out);
        }
    }

    fn inspect(&self, what: Inspect, list: &mut Vec<serde_json::Value>) {
        if what != Inspect::Instances {
            return;
        }
        list.extend(self.instances.values().map(|Instance { profile, .. }| {
            let names: Vec<_> = profile.services().map(|service| service.service_name.as_str()).collect();
            let root = profile.services().next().and_then(pith_sbi::nnrf_nfmanagement::NfService::api_root);
            json!({
                "nfType": profile.nf_type,
                "nfInstanceId": profile.nf_instance_id,
                "nfStatus": profile.nf_status,
                "apiRoot": root.map(|root| root.to_string()),
                "services": names.join(", "),
            })
        }));
    }
}
