//! The Access and Mobility Management Function (TS 23.501 6.2.1): terminates N1 and N2, registers
//! UEs, and carries their session signalling to SMFs.
//!
//! ```text
//!   N2Input ──> n2 ──> n1 ──> procedure::*  ──> n1 ──> n2 ──> N2Effect
//!   Request ──> services ────────┤  ├──────────────────────> Answer
//!   Reply, Timer ────────────────┘  └── Call, StartTimer ──>
//! ```
//!
//! This module only dispatches. A UE's context is in [`context`], the indexes of UEs in [`table`],
//! and the procedure in progress in [`procedure`]: one state, which owns the data that are valid
//! while it waits. A step works on one UE's context and an [`Env`]; actions on other UEs' contexts
//! are deferred in [`DeferredAction`] until the step is over. When a step ends, the context of a UE that is
//! neither registered nor in a procedure is deleted.

mod absent;
mod access_keys;
mod config;
mod connection;
mod consumer;
mod context;
mod delivery;
mod document;
mod emergency;
mod error;
mod gnbs;
mod in_progress;
mod inspect;
mod ladn;
mod mobility;
mod n1;
mod n2;
mod passage;
mod pending_table;
mod procedure;
mod procedure_name;
mod reachability;
mod reallocation;
mod refusal;
mod residency;
mod restoring;
mod restrictions;
mod retained;
mod retransmission;
mod security;
mod services;
mod session;
mod slices;
mod subscription;
mod table;
mod take_over;
#[cfg(feature = "testing")]
#[allow(missing_docs, clippy::new_without_default, clippy::should_implement_trait, clippy::duplicate_mod)]
#[path = "tests/world.rs"]
pub mod testing;
#[cfg(test)]
mod tests;
mod time_zone;
mod trace;

pub use config::{AmfConfig, EmergencyServices, MicoMode, NetworkNames, Peer, ServedPlmn, Timers};
pub use inspect::Audit;
pub use ladn::Ladn;
pub use n1::{NasOutcome, Silence};
pub use retained::Retention;
pub use time_zone::{LocalTime, LocalTimeError};

use crate::kit::document::UnpackError;
use crate::kit::{
    ContextIds, DocumentSink, EndedContexts, Fate, GnbHandle, Identity, Input, Inspect, Instant, Key,
    MovedConnection, N2Effect, N2Input, Needs, NetworkFunction, Order, Outbox, Page, PassedPart,
    ProcedureName, References, Rng, SetInstances, StoreScope, Tag, Timer, TimerKey, Tracker, Tracking,
    UNPLACED,
};
use absent::Awaited;
use connection::Connections;
use context::{CallId, DeferredAction, Env, Gnbs, Shared, UeContext};
use pending_table::PendingTable;
use pith_crypto::number_order::NumberOrder;
use pith_ngap::{Cause, CauseNas};
use pith_sbi::{ApiRoot, NfInstanceId, Reply, Request};
use pith_types::{BlockId, ContextId, InstanceId, OwnerMap};
use residency::Restored;
use retained::KnownUe;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use table::{Index, Ues};

/// One AMF, or one shard of it.
pub struct Amf {
    ues: Ues,
    shared: Shared,
    /// Connections of lost gNBs, still to be closed, with the gNB. A connection whose UE has moved on to another gNB stays.
    lost: VecDeque<(Key, GnbHandle)>,
    /// What is deferred until contexts are back that are only in a store.
    awaited: BTreeMap<Key, Vec<Awaited>>,
    /// Contexts that stay in the process until the absent one that each supersedes is back: otherwise the load of each of the two begins
    /// when the copy of the other is dropped, without end.
    superseding: BTreeMap<Key, Key>,
    /// UEs that changed, for a store.
    tracker: Tracker,
    /// UEs whose contexts ended, until the requests that release their resources are answered.
    ended: EndedContexts,
    /// UEs of a former run, to be resumed.
    restored: Restored,
    /// NG Setups, and UEs that leave gNBs.
    setups: n2::Setups,
    /// Requests of other NFs that are not answered yet.
    replies_owed: usize,
    /// The context of the step in progress.
    in_step: Option<ContextId>,
    /// Contexts pass through their documents after each step.
    reloads: bool,
}

/// The order of AMF-UE-NGAP-IDs: another in each run, and unknown to gNBs.
fn id_order(identity: &Identity) -> NumberOrder {
    let Identity { epoch_unix_ms, owner, .. } = identity;
    let name = format!("AMF-UE-NGAP-IDs {epoch_unix_ms} {} {}", owner.instance.0, owner.shard.0);
    NumberOrder::new(identity.reference_key.number(&name))
}

impl Amf {
    /// An AMF without UE contexts.
    pub fn new(config: AmfConfig, mut rng: Rng) -> Self {
        let shared = Shared {
            gnbs: Gnbs::new(),
            connections: Connections::new(config.max_connections(), id_order(&config.identity)),
            ids: ContextIds::new(&config.identity, rng.fork()).in_runs_of(config.ues_in_a_row),
            index: Index::default(),
            references: References::new(&config.identity.reference_key),
            rng,
            half_open: PendingTable::new(config::HALF_OPEN),
            stores_ues: false,
            after: Vec::new(),
            refuses_new: false,
            config,
        };
        let most = shared.config.max_ues.saturating_add(config::REJECTABLE_UES);
        Self {
            ues: Ues::new(most),
            shared,
            lost: VecDeque::new(),
            awaited: BTreeMap::new(),
            superseding: BTreeMap::new(),
            tracker: Tracker::default(),
            ended: EndedContexts::default(),
            restored: Restored::default(),
            setups: n2::Setups::default(),
            replies_owed: 0,
            in_step: None,
            reloads: false,
        }
    }

    /// Runs a step that needs no UE context.
    fn with_env(&mut self, now: Instant, out: &mut Outbox, step: impl FnOnce(&mut Env<'_>)) {
        step(&mut self.shared.env(now, self.ues.len(), out));
    }

    /// Runs a step on one UE's context, if it exists; deletes the context if it is over.
    fn with_ue(
        &mut self,
        now: Instant,
        key: Key,
        out: &mut Outbox,
        step: impl FnOnce(&mut UeContext, &mut Env<'_>),
    ) {
        let before = self.procedure_at(key);
        self.step(now, key, out, step);
        self.note_change(key, before);
        self.settle(now, out);
        self.note_left(key, out);
    }

    /// Runs a step that leaves a stored UE as its document says, or ends it.
    fn step(
        &mut self,
        now: Instant,
        key: Key,
        out: &mut Outbox,
        step: impl FnOnce(&mut UeContext, &mut Env<'_>),
    ) {
        let (ues, effects) = (self.ues.len(), out.effects().len());
        let Some(ue) = self.ues.get_mut(key) else { return };
        let owed = ue.replies_owed();
        ue.counts_end = self.tracker.counts_end(ue.id);
        self.in_step = Some(ue.id);
        let mut env = self.shared.env(now, ues, out);
        step(ue, &mut env);
        procedure::reauthentication::begin_if_due(ue, &mut env);
        procedure::subscription_change::resume(ue, &mut env);
        procedure::deregistration::resume(ue, &mut env);
        mobility::n2_handover::await_registration(ue, &mut env);
        trace::resume(ue, &mut env);
        procedure::voice_match::resume(ue, &mut env);
        self.replies_owed = self.replies_owed + ue.replies_owed() - owed;
        self.in_step = None;
        if ue.is_over() {
            if let Some(mut ue) = self.ues.remove(key) {
                self.release(now, &mut ue, effects, out);
            }
            return;
        }
        let sessions = std::mem::take(&mut ue.released_sessions);
        let supi = ue.supi.clone();
        if let Some(released) = ue.released.take() {
            let id = ue.id;
            self.note_released(id, (supi, *released), effects, out);
        } else if !sessions.is_empty()
            && let Some(released) = residency::pack_released(ue, sessions, &self.shared.env(now, ues, out))
        {
            // A context of its own: the UE goes on without these sessions.
            let id = self.shared.ids.allocate(UNPLACED);
            if !self.note_released(id, (supi, released), effects, out) {
                self.shared.ids.free(id);
            }
        }
        if self.reloads {
            self.reload(key);
        }
    }

    /// Releases what a removed context owns. `effects`: the first effect of the step that ended it.
    fn release(&mut self, now: Instant, ue: &mut UeContext, effects: usize, out: &mut Outbox) {
        self.replies_owed -= ue.replies_owed();
        self.superseding.remove(&ue.key);
        self.tracker.note_last(ue.id, residency::next_count(ue).unwrap_or(0));
        let ues = self.ues.len();
        let retained = forget(ue, &mut self.shared.env(now, ues, out));
        retained.iter().for_each(|id| self.tracker.inherit(*id, ue.id));
        if let Some(released) = ue.released.take() {
            self.note_released(ue.id, (ue.supi.clone(), *released), effects, out);
        }
        if self.ended.document(ue.id).is_none() {
            self.end(ue.id);
        }
    }

    /// Nothing is left of a UE's context: frees its id.
    fn end(&mut self, id: ContextId) {
        self.shared.ids.free(id);
        self.setups.forget_lost(id);
        self.tracker.note_end(id, ProcedureName::Deregistration);
    }

    /// Performs the actions on other UEs' contexts that the last step deferred.
    fn settle(&mut self, now: Instant, out: &mut Outbox) {
        while let Some(after) = self.shared.after.pop() {
            match after {
                DeferredAction::Supersede { new, old } => self.supersede(now, new, old, out),
                DeferredAction::Close(connection) => self.connection_lost(now, connection, out),
            }
        }
    }

    fn supersede(&mut self, now: Instant, new: Key, old: Key, out: &mut Outbox) {
        let again = Awaited::Supersede { new, old };
        if self.defers(new, again) {
            return;
        }
        if self.defers(old, again) {
            self.superseding.insert(new, old);
            return;
        }
        self.superseding.remove(&new);
        let Some(id) = self.ues.id(old) else { return };
        let effects = out.effects().len();
        let Some(mut old) = self.ues.remove(old) else { return self.end(id) };
        old.discards_security = true;
        self.with_ue(now, new, out, |ue, env| procedure::registration::take_over(ue, env, &mut old));
        self.release(now, &mut old, effects, out);
    }

    /// `from`: the API root to which the call was sent.
    fn reply(
        &mut self,
        now: Instant,
        (tag, from): (Tag, Option<Arc<ApiRoot>>),
        reply: Reply,
        out: &mut Outbox,
    ) {
        if tag.owner == context::IGNORED_REPLY.owner {
            let effects = out.effects().len();
            self.with_env(now, out, |env| consumer::undo(env, reply));
            let further = out.number_calls(effects, context::IGNORED_REPLY, || self.ended.next_number());
            self.ended.follow(tag.step, &further);
            return self.released(tag.step, out);
        }
        let key = Key::from_u64(tag.owner);
        if !self.ues.contains(key) {
            return self.with_env(now, out, |env| consumer::undo(env, reply));
        }
        self.with_ue(now, key, out, |ue, env| {
            let call = CallId(tag.step);
            if let Some(from) = &from {
                procedure::note_sender(ue, call, from);
            }
            if let (Some(from), Err(problem)) = (&from, &reply) {
                mobility::departure::release_unconfirmed(ue, env, call, from, problem);
            }
            procedure::on_reply(ue, env, call, reply);
        });
    }

    /// The SMF that receives a CreateSMContext request.
    fn routed(&mut self, tag: Tag, instance: NfInstanceId) {
        let Some(ue) = self.ues.get_mut(Key::from_u64(tag.owner)) else { return };
        let call = CallId(tag.step);
        let session = ue.sessions.iter_mut().find(|session| session.creates(call));
        if let Some(session) = session {
            session.smf.instance = Some(instance);
        }
    }

    fn timer(&mut self, now: Instant, key: TimerKey, out: &mut Outbox) {
        let owner = Key::from_u64(key.owner);
        if key.timer == Timer::LostConnections {
            return self.lose_connections(now, out);
        }
        if key.timer == Timer::AbsentGnbs {
            return self.expect_no_gnbs(now, out);
        }
        if key.timer == Timer::RestoredContexts {
            return self.resume_batch(now, out);
        }
        if key.timer == Timer::NgapGuard {
            return self.ngap_guard(now, owner, out);
        }
        self.with_ue(now, owner, out, |ue, env| {
            if ue.take_expired(key.timer) {
                procedure::on_timer(ue, env, key.timer);
            }
        });
    }
}

/// Frees everything that a UE context owns: timers, resources at other NFs, identities, connection. Returns the id of its retained security
/// context, if that is stored.
fn forget(ue: &mut UeContext, env: &mut Env<'_>) -> Option<ContextId> {
    mobility::abort(ue, env);
    ue.stop_all(env);
    delivery::fail_all(ue, env);
    consumer::release_all(ue, env);
    ue.leave_half_open(env);
    if let Some(connection) = ue.connection.and_then(|key| env.connections.get_mut(key)) {
        connection.detach(ue);
    }
    let retained = retain_security(ue, env);
    if let Some(identity) = ue.identity() {
        env.index.free(&identity, ue.key);
    }
    if let Some(supi) = &ue.supi {
        env.index.free_arrival(supi, ue.key);
    }
    env.index.note_moving(ue.key, false);
    for guti in ue.guti.take().into_iter().chain(ue.old_guti.take()) {
        env.index.free_tmsi(guti.tmsi, ue.key);
    }
    if let Some(key) = ue.connection.take() {
        n2::release_connection(env, key, Cause::Nas(CauseNas::normal_release));
    }
    retained
}

/// Retains the UE's native security context, unless the end of the registration forbids it (TS
/// 33.501 6.8.1.1.1). Returns the id of its document, if contexts are stored.
fn retain_security(ue: &mut UeContext, env: &mut Env<'_>) -> Option<ContextId> {
    let security = ue.security.take().filter(|_| !ue.discards_security)?;
    let (supi, guti) = (ue.supi.as_ref()?, ue.guti?);
    if env.index.find_supi(supi) != Some(ue.key) {
        return None;
    }
    let known = KnownUe { supi: supi.clone(), pei: ue.pei.take(), guti, security };
    // Of the block of the 5G-TMSI: both pass to another shard together.
    let id = env.stores_ues.then(|| env.ids.allocate_in(guti.tmsi.block(), UNPLACED));
    env.index.retained.keep(known, id, env.now, env.config.retention);
    id
}

impl NetworkFunction for Amf {
    fn handle(&mut self, now: Instant, input: Input, out: &mut Outbox) {
        match input {
            Input::N2(N2Input::Pdu { gnb, binding, pdu }) => {
                self.ngap_pdu(now, n2::N2Origin { gnb, binding }, &pdu, out);
            }
            Input::N2(N2Input::GnbUp { gnb, info }) => self.gnb_up(gnb, info),
            Input::N2(N2Input::NgSetup { gnb, retains_ues }) => self.ng_setup(now, gnb, retains_ues, out),
            Input::N2(N2Input::GnbDown { gnb }) => self.gnb_down(now, gnb, out),
            Input::N2(N2Input::Reset { gnb, ues }) => self.reset(now, gnb, ues, out),
            Input::N2(N2Input::ReleaseBindings { gnb, tnla }) => self.release_bindings(gnb, tnla, out),
            // For the shard.
            Input::N2(N2Input::Held { .. } | N2Input::GiveUp { .. }) => {}
            Input::Request { reply, request } => self.serve(now, reply, request, out),
            Input::Reply { tag, from, reply } => self.reply(now, (tag, from), reply, out),
            Input::Routed { tag, instance } => self.routed(tag, instance),
            Input::Timer(key) => self.timer(now, key, out),
            Input::N4(_) | Input::Stored { .. } => {}
        }
        self.note_retained();
        self.ues.pack_idle();
    }

    fn replies_owed(&self) -> Option<usize> {
        Some(self.replies_owed)
    }

    fn has_context(&self, request: &Request) -> bool {
        let found = match request {
            Request::N1N2MessageTransfer(request) => self.find_receiver(request),
            Request::UeContextTransfer(request) => self.find_transferable(request),
            Request::RegistrationStatusUpdate(request) => self.find_transferred(&request.ue_context_id),
            Request::ReleaseUeContext(request) => self.find_arrival(&request.ue_context_id),
            _ => return true,
        };
        found.is_some()
    }

    fn reload_contexts(&mut self) {
        self.reloads = true;
        self.ues.keep_cold();
    }

    fn track_contexts(&mut self, tracking: Tracking) {
        self.tracker.start(tracking);
        self.shared.stores_ues = true;
    }

    fn store_contexts(&mut self, scope: StoreScope, sink: &mut dyn DocumentSink) {
        self.store_ues(scope, sink);
    }

    fn accept_new_contexts(&mut self, accepted: bool) {
        self.shared.refuses_new = !accepted;
        self.tracker.note_failing(!accepted);
    }

    fn restore_context(
        &mut self,
        now: Instant,
        id: ContextId,
        document: &[u8],
        is_stale: bool,
    ) -> Result<(), UnpackError> {
        self.restore_ue(now, id, document, is_stale)?;
        // A UE that has registered since replaces its retained security context.
        self.note_retained();
        Ok(())
    }

    fn context_of(&self, input: &Input) -> Option<ContextId> {
        self.context_named(input)
    }

    fn needs(&self, input: &Input) -> Needs {
        self.needs_of(input)
    }

    fn begin_restoring(&mut self, blocks: &BTreeSet<BlockId>) {
        self.shared.ids.begin_restoring(blocks);
    }

    fn note_restored(&mut self, block: BlockId) {
        self.shared.ids.note_restored(block);
    }

    fn resume_restored(&mut self, now: Instant, _is_needed: bool, out: &mut Outbox) {
        self.resume_restored_ues(now, out);
    }

    fn finish_restoring(&mut self, now: Instant, _out: &mut Outbox) {
        self.shared.index.retained.resume(now, self.shared.config.retention);
        self.note_retained();
    }

    fn is_resident(&self, id: ContextId) -> bool {
        self.shared.ids.find(id).is_none_or(|key| self.ues.is_resident(key))
    }

    fn drop_context(&mut self, id: ContextId) -> bool {
        self.drop_ue(id)
    }

    fn put_context(
        &mut self,
        now: Instant,
        id: ContextId,
        document: &[u8],
        out: &mut Outbox,
    ) -> Result<(), UnpackError> {
        self.put_ue(now, id, document, out)
    }

    fn forget_context(&mut self, now: Instant, id: ContextId, out: &mut Outbox) {
        self.forget_ue(now, id, out);
    }

    fn take_missed(&mut self) -> Vec<ContextId> {
        self.ues.take_missed()
    }

    fn resume_contexts(&mut self, now: Instant, out: &mut Outbox) {
        self.shared.index.retained.resume(now, self.shared.config.retention);
        self.note_retained();
        self.resume_ues(now, out);
    }

    fn change_instances(&mut self, instances: &Arc<SetInstances>) {
        let own = self.shared.config.identity.owner.instance;
        let others = instances.living.iter().filter(|instance| **instance != own);
        let peer = |instance: &InstanceId| {
            let api_root = Arc::clone(instances.root_of_living(*instance)?);
            Some(Peer { instance: *instance, api_root })
        };
        self.shared.config.peers = others.filter_map(peer).collect();
        self.shared.config.instances = Arc::clone(instances);
    }

    fn make_idle(&mut self, now: Instant, block: BlockId, out: &mut Outbox) {
        self.release_connections_of(now, block, out);
    }

    fn resume_adopted(&mut self, now: Instant, out: &mut Outbox) {
        self.shared.index.retained.resume(now, self.shared.config.retention);
        self.note_retained();
        // Ids of connections need not be separate: gNBs have those of the other AMF with an association of their own.
        self.resume_restored_ues(now, out);
        self.expect_gnbs(out);
    }

    fn take_over_context(
        &mut self,
        now: Instant,
        id: ContextId,
        document: &[u8],
        fate: Fate,
    ) -> Result<(), UnpackError> {
        self.take_over_ue(now, id, document, fate)?;
        self.note_retained();
        Ok(())
    }

    fn begin_take_over(&mut self) {
        self.separate_ids();
    }

    fn finish_take_over(&mut self, now: Instant, out: &mut Outbox) {
        self.shared.index.retained.resume(now, self.shared.config.retention);
        self.note_retained();
        self.expect_gnbs(out);
        self.report_connections(out);
    }

    fn in_step(&self) -> Option<ContextId> {
        self.in_step
    }

    fn tracker(&self) -> Option<&Tracker> {
        Some(&self.tracker)
    }

    fn tracker_mut(&mut self) -> Option<&mut Tracker> {
        Some(&mut self.tracker)
    }

    fn withholds(&self, message: &N2Effect) -> bool {
        self.has_unreserved_count(message)
    }

    fn is_in_transaction(&self, id: ContextId) -> bool {
        let ue = self.shared.ids.find(id).and_then(|key| self.ues.view(key));
        ue.is_some_and(|ue| ue.is_in_transaction())
    }

    fn change_owners(&mut self, owners: &Arc<OwnerMap>) {
        self.shared.config.identity.owners = Arc::clone(owners);
        self.shared.ids.change_blocks(&self.shared.config.identity);
    }

    fn unsettled(&self, block: BlockId) -> Option<ContextId> {
        self.unsettled_ue(block)
    }

    fn is_unsettled(&self, id: ContextId) -> bool {
        self.is_unsettled_ue(id)
    }

    fn pass_block(&mut self, now: Instant, block: BlockId, out: &mut Outbox) -> PassedPart {
        self.pass_ues(now, block, out)
    }

    fn take_block(&mut self, now: Instant, _block: BlockId, part: PassedPart, out: &mut Outbox) {
        self.take_ues(now, part, out);
    }

    fn connections_of(&self, block: BlockId) -> Vec<MovedConnection> {
        self.connections_of_block(block)
    }

    fn key_of(&self, id: ContextId) -> Option<u64> {
        self.shared.ids.find(id).map(Key::to_u64)
    }

    fn contexts_in(&self, block: BlockId) -> usize {
        self.shared.ids.of_block(block).count()
    }

    fn inspect(&self, what: Inspect, list: &mut Vec<serde_json::Value>) {
        self.inspect_page(what, &Page::ALL, list);
    }

    fn inspect_page(&self, what: Inspect, page: &Page, list: &mut Vec<serde_json::Value>) -> Option<u32> {
        if what != Inspect::Ues {
            return None;
        }
        let of = |supi| self.shared.index.find_supi(supi).and_then(|key| self.ues.view(key));
        let (ues, next) = match &page.supi {
            Some(supi) => (of(supi).into_iter().collect(), None),
            None => self.ues.page(page.first, page.limit),
        };
        list.extend(ues.into_iter().map(|ue| self.describe(&ue)));
        next
    }

    fn operate(&mut self, now: Instant, what: &Order, out: &mut Outbox, list: &mut Vec<serde_json::Value>) {
        match what {
            Order::Deregister { supis, why } => {
                for supi in supis.iter() {
                    let index = &self.shared.index;
                    let keys = [index.find_supi(supi), index.find_arrival(supi)];
                    for key in keys.into_iter().flatten() {
                        self.deregister(now, key, (*why).into(), out);
                    }
                    if keys != [None, None] {
                        list.push(serde_json::json!({ "supi": supi }));
                    }
                }
            }
            Order::Locate { supi } => list.extend(self.locate(now, supi, out)),
            Order::ResetGnb { gnb } => list.extend(self.reset_gnb(gnb, out)),
            Order::Capacity(capacity) => {
                out.n2(N2Effect::Capacity(*capacity));
                list.push(serde_json::json!({ "relativeCapacity": capacity }));
            }
            Order::Endpoint { address, weight } if self.shared.config.endpoints.contains(address) => {
                out.n2(N2Effect::Endpoint { address: *address, weight: *weight });
                list.push(serde_json::json!({ "address": address, "weight": weight }));
            }
            Order::Endpoint { .. }
            | Order::Branch { .. }
            | Order::Unbranch { .. }
            | Order::AddRule { .. }
            | Order::RemoveRule { .. }
            | Order::NotifyChanges => {}
        }
    }
}
