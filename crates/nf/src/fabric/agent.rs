//! The SBI agent of a shard: registers its NFs, discovers others, and routes each call (design
//! sections 7 and 8).
//!
//! A call is for a service or for a known instance. A service is discovered through the NRF; the
//! result is used as long as the NRF permits. Of the discovered instances, one of the same process is
//! preferred to any other; among equals the least loaded is chosen. The apiRoot of the instance
//! determines the binding. All shards of a process have the same apiRoot: a request for a context is
//! routed to the shard that owns the context's block, any other stays on the caller's shard.

use super::access_token::{AccessTokens, Bearer, Outgoing};
use super::discovery::{Cache, Query};
use super::owner::{block_of, shard_of};
use super::registration::Registrations;
use super::reselection::Reselection;
use super::watch::Watches;
use crate::kit::{
    Input, Instant, Level, NetworkFunction, Nf, Outbox, References, SetInstances, Tag, Target, Timer,
    WallClock, block_in_reference,
};
use pith_sbi::nnrf_nfmanagement::{NfProfile, NotificationEventType, SubscrCond, SubscriptionData};
use pith_sbi::{ApiRoot, Cause, NfInstanceId, NfType, Problem, Reply, Request, Response, Uri};
use pith_types::{BlockId, BlockOwner, ContextId, OwnerMap};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Configuration of an agent.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// The shard's number in its process.
    pub shard: u16,
    /// Number of shards of the process.
    pub shards: u16,
    /// The instance and shard in the owner map.
    pub owner: BlockOwner,
    /// The owner of each block of ids.
    pub owners: Arc<OwnerMap>,
    /// API root of the services of the process.
    pub own_root: Arc<ApiRoot>,
    /// NFs of the process, with their profiles. The agent of the first shard registers them.
    pub hosted: Vec<Hosted>,
    /// The NRF.
    pub nrf: Arc<ApiRoot>,
    /// NFs at configured addresses, for example another vendor's: not discovered.
    pub fixed: BTreeMap<Nf, Arc<ApiRoot>>,
    /// NFs that are called over HTTP/2 even if they are in this process.
    pub forced_http: BTreeSet<Nf>,
    /// NFs whose services require an access token when they are called over HTTP/2.
    pub protected: BTreeSet<Nf>,
    /// References in the URIs of NRF notifications.
    pub references: References,
}

/// An NF of the process.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Hosted {
    pub nf: Nf,
    /// The profile that it registers.
    pub profile: NfProfile,
}

/// An SBI call to be routed.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) nf: Nf,
    pub(super) tag: Tag,
    pub(super) target: Target,
    pub(super) request: Request,
}

impl Call {
    /// The NF that the request is for.
    pub(super) fn target_nf(&self) -> Option<Nf> {
        match &self.request {
            Request::NfStatusNotify(_) => Some(Nf::Agent),
            request => Nf::of_type(&request.target_nf()?),
        }
    }
}

/// The route of a call.
#[derive(Debug, PartialEq)]
pub(super) enum Route {
    /// To an NF of this shard.
    Local(Nf),
    /// To an NF of another shard of this process.
    Shard(u16, Nf),
    /// Over HTTP/2.
    Http(Arc<ApiRoot>),
    /// Not known: must be discovered through the NRF.
    Discover(Box<Query>),
}

/// The agent of a shard.
#[derive(Debug)]
pub struct Agent {
    config: AgentConfig,
    /// A block that the shard keeps.
    home: Option<BlockId>,
    /// The process's set.
    instances: Arc<SetInstances>,
    registrations: Registrations,
    cache: Cache,
    /// Instances of sets that did not answer.
    pub(super) reselection: Reselection,
    /// Subscriptions to changes of NF instances at the NRF.
    watches: Watches,
    /// Access tokens, and calls held until there is one.
    tokens: AccessTokens,
    /// Held calls for which the NRF granted or refused a token.
    authorized: Vec<Outgoing>,
    refused: Vec<(Outgoing, Problem)>,
    /// Calls whose discovery has succeeded.
    ready: Vec<Call>,
    /// Calls whose discovery has found no instance.
    failed: Vec<Call>,
    /// The NRF has lost its state, and the other shards do not know yet.
    nrf_restarted: bool,
}

/// Purposes of the agent's own calls: the kind is in the tag's step, the rest in its owner.
pub(super) mod step {
    pub(in crate::fabric) const REGISTER: u32 = 1;
    pub(in crate::fabric) const HEART_BEAT: u32 = 2;
    pub(in crate::fabric) const DEREGISTER: u32 = 3;
    pub(in crate::fabric) const DISCOVER: u32 = 4;
    pub(in crate::fabric) const SUBSCRIBE: u32 = 5;
    pub(in crate::fabric) const UNSUBSCRIBE: u32 = 6;
    pub(in crate::fabric) const TOKEN: u32 = 7;
}

impl Agent {
    /// An agent whose wall clock starts in 1970.
    pub fn new(config: AgentConfig) -> Self {
        let registered = if config.shard == 0 { config.hosted.clone() } else { Vec::new() };
        let registrations = Registrations::new(registered, Arc::clone(&config.nrf));
        let watches = Watches::new(Arc::clone(&config.nrf), WallClock::default());
        let consumers = config.hosted.iter().map(|hosted| (hosted.nf, hosted.profile.nf_instance_id));
        let tokens = AccessTokens::new(config.protected.clone(), consumers.collect());
        let home = config.owners.blocks_of(config.owner).next();
        Self {
            config,
            home,
            instances: Arc::default(),
            tokens,
            authorized: Vec::new(),
            refused: Vec::new(),
            registrations,
            cache: Cache::default(),
            reselection: Reselection::default(),
            watches,
            ready: Vec::new(),
            failed: Vec::new(),
            nrf_restarted: false,
        }
    }

    /// Sets the wall clock. The NRF sends the end of subscriptions as wall-clock time.
    pub fn with_wall_clock(mut self, wall: WallClock) -> Self {
        self.watches = Watches::new(Arc::clone(&self.config.nrf), wall);
        self
    }

    /// Whether all NFs that this agent registers are registered.
    pub fn is_registered(&self) -> bool {
        self.registrations.are_all_done()
    }

    pub(super) fn start(&mut self, out: &mut Outbox) {
        self.registrations.register_all(out);
    }

    pub(super) fn stop(&mut self, out: &mut Outbox) {
        self.watches.end_all(out);
        self.registrations.deregister_all(out);
    }

    pub(super) fn own_root(&self) -> Arc<ApiRoot> {
        Arc::clone(&self.config.own_root)
    }

    /// The instance and shard in the owner map.
    pub(super) const fn owner(&self) -> BlockOwner {
        self.config.owner
    }

    /// The block that the shard keeps.
    pub(super) const fn home(&self) -> Option<BlockId> {
        self.home
    }

    /// The owner map.
    pub(super) const fn owners(&self) -> &Arc<OwnerMap> {
        &self.config.owners
    }

    /// The instances of the process's set.
    pub(super) fn instances(&self) -> &SetInstances {
        &self.instances
    }

    /// Instances of the set have come or gone: discovery results with those that are gone are out of date.
    pub(super) fn set_instances(&mut self, instances: Arc<SetInstances>) {
        self.cache.forget_all();
        self.instances = instances;
    }

    /// The owner map has changed.
    pub(super) fn set_owners(&mut self, owners: Arc<OwnerMap>) {
        self.config.owners = owners;
    }

    pub(super) const fn shard(&self) -> u16 {
        self.config.shard
    }

    /// The shard after this one in the ring of the process's shards.
    pub(super) fn next_shard(&self) -> u16 {
        (self.config.shard + 1) % self.config.shards.max(1)
    }

    /// Number of shards of the process.
    pub(super) const fn shards(&self) -> u16 {
        self.config.shards
    }

    /// Whether the NRF has lost its state since the last query.
    pub(super) fn take_nrf_restart(&mut self) -> bool {
        std::mem::take(&mut self.nrf_restarted)
    }

    /// Whether a discovery or an access token request has ended since its calls were last taken.
    pub(super) fn has_outcomes(&self) -> bool {
        let Self { authorized, refused, ready, failed, .. } = self;
        !(authorized.is_empty() && refused.is_empty() && ready.is_empty() && failed.is_empty())
    }

    /// Removes and returns the calls whose discovery has succeeded.
    pub(super) fn take_ready(&mut self) -> Vec<Call> {
        std::mem::take(&mut self.ready)
    }

    /// Removes and returns the calls for which the NRF has no instance.
    pub(super) fn take_failed(&mut self) -> Vec<Call> {
        std::mem::take(&mut self.failed)
    }

    /// Adds an access token to a call over HTTP/2, or holds the call until there is one. Returns
    /// the token request to send to the NRF, if one is needed.
    pub(super) fn authorize(
        &mut self,
        now: Instant,
        call: Outgoing,
    ) -> (Option<(Outgoing, Option<Bearer>)>, Option<Call>) {
        let authorized = self.tokens.authorize(now, call);
        let ask = authorized.ask.map(|(id, request)| self.own_call(Tag::new(id, step::TOKEN), request));
        (authorized.send, ask)
    }

    /// A producer refused the token of a call: the token is deleted.
    pub(super) fn token_refused(&mut self, call: &Outgoing, bearer: &Bearer) {
        self.tokens.refused(call, bearer);
    }

    /// Removes and returns the held calls for which there is a token now.
    pub(super) fn take_authorized(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.authorized)
    }

    /// Removes and returns the held calls for which the NRF refused a token.
    pub(super) fn take_refused(&mut self) -> Vec<(Outgoing, Problem)> {
        std::mem::take(&mut self.refused)
    }

    /// The NRF's reply to a token request.
    fn token_answered(&mut self, now: Instant, id: u64, reply: Reply, out: &mut Outbox) {
        match self.tokens.answered(now, id, reply) {
            Some((held, Ok(()))) => self.authorized.extend(held),
            Some((held, Err(problem))) => {
                out.log(Level::Warn, || problem.to_string());
                self.refused.extend(held.into_iter().map(|call| (call, problem.clone())));
            }
            None => {}
        }
    }

    /// The route of a call.
    pub(super) fn route(&mut self, now: Instant, call: &Call) -> Result<Route, Box<Problem>> {
        let nf = call.target_nf();
        match &call.target {
            Target::Root(root) => return Ok(self.route_to(now, root, nf, call)),
            Target::Context(uri) => return Ok(self.route_to(now, &uri.root, nf, call)),
            Target::Service(_) | Target::Instance(_) => {}
        }
        if let Some(root) = nf.and_then(|nf| self.config.fixed.get(&nf)) {
            return Ok(self.route_to(now, root, nf, call));
        }
        let question = Query::of(call).ok_or_else(|| Problem::not_reachable("a callback without a root"))?;
        match self.choose(now, &question) {
            Some(root) => Ok(self.route_to(now, &root, nf, call)),
            None => Ok(Route::Discover(Box::new(question))),
        }
    }

    /// The route to an apiRoot.
    fn route_to(&self, now: Instant, root: &Arc<ApiRoot>, nf: Option<Nf>, call: &Call) -> Route {
        let root = &self.root_in_set(root, call);
        let root = &self.root_of_set(now, root, call).unwrap_or_else(|| Arc::clone(root));
        // The 404 of a stranger in this process is no answer either: only calls over HTTP/2 are kept until their answer.
        let forced =
            nf.is_some_and(|nf| self.config.forced_http.contains(&nf)) || self.is_for_stranger(call, root);
        let here = nf.filter(|_| !forced && **root == *self.config.own_root);
        let Some(nf) = here else { return Route::Http(Arc::clone(root)) };
        let shard = self.shard_for(nf, call);
        if shard == self.config.shard { Route::Local(nf) } else { Route::Shard(shard, nf) }
    }

    /// An apiRoot of the process's set stands for the instance that has the context which the call names; without one, for any
    /// instance that lives. Any other apiRoot stands for itself.
    fn root_in_set(&self, root: &Arc<ApiRoot>, call: &Call) -> Arc<ApiRoot> {
        let own = &self.config.own_root;
        if !self.instances.has_root(root) {
            return Arc::clone(root);
        }
        let named = || match &call.target {
            Target::Context(uri) => block_in_reference(uri.id()),
            _ => None,
        };
        let block = block_of(&call.request).or_else(named);
        let owner = block.map(|block| self.config.owners.owner(block).instance);
        match owner {
            Some(instance) if instance == self.config.owner.instance => Arc::clone(own),
            Some(instance) => {
                self.instances.root_of_living(instance).map_or_else(|| Arc::clone(root), Arc::clone)
            }
            None if self.instances.is_living(root) => Arc::clone(root),
            None => Arc::clone(own),
        }
    }

    /// The shard of this process for a call: the owner of the context that the request names, or that the caller names;
    /// else this shard. A core has one NRF, on the first shard.
    fn shard_for(&self, nf: Nf, call: &Call) -> u16 {
        if nf == Nf::Nrf {
            return 0;
        }
        let (owners, instance) = (&self.config.owners, self.config.owner.instance);
        let named = || match &call.target {
            Target::Context(uri) => {
                owners.shard_of(instance, block_in_reference(uri.id())?).map(|shard| shard.0.into())
            }
            _ => None,
        };
        shard_of(owners, instance, &call.request).or_else(named).unwrap_or(self.config.shard)
    }

    /// The best known instance for a query: this process if it serves it, else the least loaded one.
    fn choose(&mut self, now: Instant, question: &Query) -> Option<Arc<ApiRoot>> {
        let own = &self.config.own_root;
        self.cache.choose(now, question, |root| u8::from(*root != **own))
    }

    /// The NF instance that the NRF returned for the NF that a request is for, at that apiRoot: the server's
    /// certificate must contain its id.
    pub(super) fn instance_at(&self, root: &Arc<ApiRoot>, request: &Request) -> Option<NfInstanceId> {
        self.cache.instance_at(root, &request.target_nf()?).map(|found| found.id)
    }

    /// The callback URI in the profile of the AMF to which a registration is passed on.
    pub(super) fn registration_callback(&self, root: &Arc<ApiRoot>) -> Option<Uri> {
        self.cache.registration_callback(root).cloned()
    }

    /// Whether the NF that a request is for, at that apiRoot, reads embedded documents, as far as the NRF has told.
    pub(super) fn reads_embedded(&self, root: &Arc<ApiRoot>, request: &Request) -> bool {
        let found = request.target_nf().and_then(|nf_type| self.cache.instance_at(root, &nf_type));
        found.is_some_and(|found| found.reads_embedded)
    }

    /// The NF instance at the end of a route, if it is known.
    pub(super) fn instance_of(&self, route: &Route, call: &Call) -> Option<NfInstanceId> {
        match route {
            Route::Local(nf) | Route::Shard(_, nf) => {
                let hosted = self.config.hosted.iter().find(|hosted| hosted.nf == *nf)?;
                Some(hosted.profile.nf_instance_id)
            }
            Route::Http(root) => self.instance_at(root, &call.request),
            Route::Discover(_) => None,
        }
    }

    /// Holds a call until its discovery is complete; returns the discovery request if none is pending.
    pub(super) fn discover(&mut self, question: Query, call: Call) -> Option<Call> {
        let requester = self.requester();
        let (id, query) = self.cache.ask(question, call, requester)?;
        Some(self.own_call(Tag::new(id, step::DISCOVER), query))
    }

    /// Results of discoveries.
    pub(super) const fn cache(&self) -> &Cache {
        &self.cache
    }

    fn own_call(&self, tag: Tag, request: Request) -> Call {
        Call { nf: Nf::Agent, tag, target: Target::Root(Arc::clone(&self.config.nrf)), request }
    }

    /// The requester in discovery requests: the first NF of the shard.
    fn requester(&self) -> NfType {
        let types = self.config.hosted.iter().filter_map(|hosted| hosted.nf.nf_type());
        types.into_iter().next().unwrap_or(NfType::Amf)
    }

    fn reply(&mut self, now: Instant, tag: Tag, reply: Reply, out: &mut Outbox) {
        match tag.step {
            step::DISCOVER => self.discovered(now, tag.owner, reply, out),
            step::SUBSCRIBE => self.watches.reply(tag.owner, reply),
            step::UNSUBSCRIBE => {}
            step::TOKEN => self.token_answered(now, tag.owner, reply, out),
            _ => {
                if self.registrations.reply(tag, reply, out) {
                    self.nrf_restarted = true;
                    self.renew_watches(now, out);
                }
            }
        }
    }

    /// The NRF no longer knows this process, and therefore none of its subscriptions.
    pub(super) fn renew_watches(&mut self, now: Instant, out: &mut Outbox) {
        for nf_type in self.watches.forget() {
            self.watch(now, &nf_type, out);
        }
    }

    /// A connection over HTTP/2 broke.
    pub(super) fn connection_lost(&self, authority: &str, out: &mut Outbox) {
        if *self.config.nrf.authority == *authority {
            self.registrations.connection_lost(out);
        }
    }

    /// The NRF's reply: held calls proceed, or fail if there is no instance.
    fn discovered(&mut self, now: Instant, id: u64, reply: Reply, out: &mut Outbox) {
        let (own, instances) = (&self.config.own_root, &self.instances);
        let is_own = |root: &ApiRoot| *root == **own || instances.has_root(root);
        let Some(answered) = self.cache.answered(now, id, reply, is_own) else { return };
        for (root, sets) in self.cache.take_sets() {
            self.reselection.learn(&root, &sets);
        }
        if answered.not_found {
            return self.failed.extend(answered.waiting);
        }
        self.ready.extend(answered.waiting);
        self.watch(now, &answered.question.nf_type, out);
    }

    /// Subscribes to changes at the NRF, so that a stale result is not used for long (TS 29.510 5.2.2.5).
    fn watch(&mut self, now: Instant, nf_type: &NfType, out: &mut Outbox) {
        let requester = self.requester();
        let reference = self.config.references.of_name(&self.watch_name(nf_type));
        let uri = Uri::callback(&self.config.own_root, &requester, "nf-status", &reference);
        let data = || {
            let mut data = SubscriptionData::new(uri);
            data.subscr_cond = Some(SubscrCond::of_type(nf_type.clone()));
            data.req_nf_type = Some(requester);
            data
        };
        self.watches.keep(now, nf_type, data, out);
    }

    /// The name of a subscription: it begins with an id of a block of this shard, so that notifications arrive here.
    fn watch_name(&self, nf_type: &NfType) -> String {
        let id = self.home.map(|block| ContextId { block, number: 0 });
        format!("{}-{}", id.map(|id| id.to_string()).unwrap_or_default(), nf_type.as_str())
    }

    fn request(&mut self, request: Request) -> Reply {
        let Request::NfStatusNotify(notification) = request else {
            return Err(Box::new(Problem::of_status(404)));
        };
        if self.config.references.name(notification.uri.id()).is_none() {
            return Err(Box::new(Problem::new(Cause::SubscriptionNotFound)));
        }
        match (&notification.body.event, &notification.body.nf_profile) {
            (NotificationEventType::NfProfileChanged, Some(profile)) => self.cache.forget(&profile.nf_type),
            _ => self.cache.forget_all(),
        }
        Ok(Response::NoContent)
    }
}

impl NetworkFunction for Agent {
    fn handle(&mut self, now: Instant, input: Input, out: &mut Outbox) {
        match input {
            Input::Reply { tag, reply, .. } => self.reply(now, tag, reply, out),
            Input::Request { reply, request } => reply.complete(self.request(request), out),
            Input::Timer(key) if key.timer == Timer::NrfHeartBeat => self.registrations.timer(key.owner, out),
            Input::N2(_) | Input::N4(_) | Input::Routed { .. } | Input::Stored { .. } | Input::Timer(_) => {}
        }
    }
    fn replies_owed(&self) -> Option<usize> {
        Some(0)
    }
}
