//! Session Management Function (TS 23.501 6.2.2, TS 29.502): PDU sessions, from the UE's request to the
//! UPF's rules.
//!
//! ```text
//!   Request ──> services ──> update ─┐
//!   Reply, N4Input, Timer ───────────┴──> procedure::* ──> Answer, Call, N4Effect, StartTimer
//! ```
//!
//! This file dispatches the inputs. [`context`] has the SM context, [`table`] finds sessions, and [`procedure`] has the states
//! of a session; a state owns the data that are valid while it waits. A step processes one input for one session: it
//! consumes the state and returns the next one ([`Smf::with_session`]). Inputs that a session can't process while it changes
//! are stored in [`context::Pending`].
//!
//! ```text
//!  procedure/establishment/   TS 23.502 4.3.2.2.1
//!  procedure/user_plane.rs    4.2.3.2, 4.2.3.3, 4.2.6: activation, deactivation, downlink data
//!  procedure/flow_mobility.rs 4.14.1: dual connectivity; tunnels.rs has the rules
//!  procedure/modification.rs  4.3.3.2, requested by the PCF; flows/ has the rules and flows; modification_request.rs: by the UE
//!  procedure/release.rs       4.3.4.2
//!  procedure/branching.rs     4.3.5.4, 4.3.5.5: classifiers; path.rs switches the packets
//!  procedure/lost_tunnel.rs   TS 23.527 5.3.2.1
//!  procedure/restoration.rs   TS 23.527 4.3.2; confirmation.rs: sessions that UPFs have retained
//!  procedure/upf_failure.rs   TS 23.527 4.3
//! ```

mod absent;
mod config;
mod consumer;
mod context;
mod env;
mod error;
mod flows;
mod inspect;
mod n1;
mod n2;
mod n4;
mod n9;
mod passage;
mod pool;
mod procedure;
mod residency;
mod selection;
mod services;
mod table;
mod take_over;
#[cfg(test)]
mod tests;
mod timers;
mod tunnels;
mod unconfirmed;
mod update;

use crate::kit::document::{Names, UnpackError};
use crate::kit::{
    AddressNews, ContextIds, DocumentSink, Duration, EndedContexts, Fate, Identity, Input, Inspect, Instant,
    Key, Level, N4Effect, N4Input, N4Transaction, Needs, NetworkFunction, Order, Outbox, Page, PassedPart,
    ProcedureName, References, Rng, StoreScope, Tag, Timer, TimerKey, Tracker, Tracking, UpfHandle,
};
pub use config::{Breakout, DataNetwork, EmergencyServices, Network, SmfConfig, UpfService};
use context::{CallId, SmContext};
use env::{Env, IGNORED_REPLY, Shared};
use error::BranchingError;
pub use inspect::SmfAudit;
use pith_pfcp::Message;
use pith_sbi::{Reply, Request};
use pith_types::{BlockId, ContextId, OwnerMap, Seid, Supi};
use pool::Pools;
use procedure::{State, branching, session_report, upf_failure};
use residency::Restored;
use selection::Upfs;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use table::{Index, Sessions};
use timers::SessionTimer;
use unconfirmed::{Unconfirmed, is_unconfirmed};

/// Number of sessions of lost UPFs that the SMF ends at once: each needs about three calls to other NFs.
const LOST_BATCH: usize = 128;

/// Pause after such a batch, for the shard's other work and for the answers. 100,000 sessions are ended in four seconds.
const LOST_BATCH_PAUSE: Duration = Duration::from_millis(5);

/// The SMF of a shard.
pub struct Smf {
    sessions: Sessions,
    shared: Shared,
    rng: Rng,
    /// Requests received and not answered yet.
    replies_owed: usize,
    /// Sessions of lost UPFs, to be ended.
    lost: VecDeque<(Key, UpfHandle)>,
    /// Lost UPFs of sessions that are only in a store, with their names.
    awaited: BTreeMap<Key, Vec<(UpfHandle, Arc<str>)>>,
    /// Names of UPFs whose sessions are being ended.
    lost_names: BTreeMap<UpfHandle, Arc<str>>,
    /// Sessions that changed, for a store.
    tracker: Tracker,
    /// Sessions that ended, until the requests that release their resources are answered.
    ended: EndedContexts,
    /// Sessions of a former run, to be resumed.
    restored: Restored,
    /// Sessions of a former run that UPFs have not confirmed yet.
    unconfirmed: Unconfirmed,
    /// This run follows one that panicked, and is not resumed yet.
    takes_over: bool,
    /// The session of the step in progress.
    in_step: Option<ContextId>,
    /// Sessions pass through their documents after each step.
    reloads: bool,
}

impl Smf {
    /// An SMF without sessions.
    pub fn new(identity: Identity, config: SmfConfig, mut rng: Rng) -> Self {
        let references = References::new(&identity.reference_key);
        let ids = ContextIds::new(&identity, rng.fork());
        let (pools, upfs) = (Pools::new(&config, &identity), Upfs::new(&config));
        let shared = Shared {
            identity,
            config,
            references,
            ids,
            index: Index::default(),
            pools,
            upfs,
            stores_sessions: false,
        };
        Self {
            sessions: table::sessions(),
            shared,
            rng,
            replies_owed: 0,
            lost: VecDeque::new(),
            awaited: BTreeMap::new(),
            lost_names: BTreeMap::new(),
            tracker: Tracker::default(),
            ended: EndedContexts::default(),
            restored: Restored::default(),
            unconfirmed: Unconfirmed::default(),
            takes_over: false,
            in_step: None,
            reloads: false,
        }
    }

    /// Runs a step on a session, if the session still exists, and removes the context if the session is over. Every change
    /// of a session is such a step.
    fn with_session(
        &mut self,
        now: Instant,
        key: Key,
        out: &mut Outbox,
        step: impl FnOnce(State, &mut SmContext, &mut Env<'_>) -> State,
    ) {
        let Some(session) = self.sessions.get_mut(key) else { return };
        let (owed, effects) = (session.replies_owed(), out.effects().len());
        let before = session.state().procedure();
        self.in_step = Some(session.id);
        let takes_over = self.unconfirmed.is_of_former(key);
        session.step(&mut Env { takes_over, ..self.shared.env(now, out) }, step);
        self.in_step = None;
        self.replies_owed = self.replies_owed + session.replies_owed() - owed;
        let is_unconfirmed = is_unconfirmed(session.state());
        if session.state().is_over() {
            self.remove(key, effects, out);
            return self.note_step(key, false, out);
        }
        let procedure = session.state().procedure_since(before);
        self.tracker.note_change(session.id, procedure);
        if std::mem::take(&mut session.must_store) {
            self.tracker.require(session.id, procedure);
        }
        self.note_step(key, is_unconfirmed, out);
        if self.reloads {
            self.reload(key);
        }
    }

    /// Removes a session that is over. If it has a document, it keeps one until the requests that release its resources, among
    /// the effects from that one on, are answered.
    fn remove(&mut self, key: Key, effects: usize, out: &mut Outbox) {
        let Some(mut session) = self.sessions.remove(key) else { return };
        let document = session.document_at_end.take();
        let calls = match document {
            Some(_) => out.number_calls(effects, IGNORED_REPLY, || self.ended.next_number()),
            None => Vec::new(),
        };
        match document {
            Some(document) if !calls.is_empty() => {
                self.ended.insert(session.id, (session.ue.supi().cloned(), document), &calls);
                self.tracker.require(session.id, Some(ProcedureName::SessionRelease));
            }
            _ => self.end(session.id),
        }
    }

    /// Nothing is left of a session.
    fn end(&mut self, id: ContextId) {
        self.shared.ids.free(id);
        self.tracker.note_end(id, ProcedureName::SessionRelease);
    }

    fn reply(&mut self, now: Instant, tag: Tag, reply: Reply, out: &mut Outbox) {
        if tag.owner == IGNORED_REPLY.owner {
            if let Some(id) = self.ended.answered(tag.step) {
                self.end(id);
            }
            return;
        }
        let key = Key::from_u64(tag.owner);
        if !self.sessions.contains(key) {
            return consumer::delete_created_resource(reply, out);
        }
        self.with_session(now, key, out, |state, session, env| {
            procedure::on_reply(state, session, env, CallId(tag.step), reply)
        });
    }

    fn n4(&mut self, now: Instant, input: N4Input, out: &mut Outbox) {
        match input {
            N4Input::Response { tag, result } if !self.sessions.contains(Key::from_u64(tag.owner)) => {
                self.delete_unknown_session(result, out);
            }
            N4Input::Response { tag, result } => {
                let key = Key::from_u64(tag.owner);
                self.with_session(now, key, out, |state, session, env| {
                    procedure::on_n4_response(state, session, env, CallId(tag.step), result)
                });
                self.note_waiting(key);
            }
            N4Input::Request { transaction, seid, message } => {
                self.session_report(now, (transaction, seid), &message, out);
            }
            N4Input::UpfUp { upf, info } => {
                self.shared.upfs.insert(upf, info);
                self.delete_leaving(now, out);
                self.restore_sessions(now, out);
                self.announce_confirmed(out);
            }
            N4Input::UpfLoad { upf, percent } => self.shared.upfs.note_load(upf, percent),
            N4Input::UpfLeaves { upf } => self.shared.upfs.note_leaving(upf),
            N4Input::UpfRestarted { upf } => self.upf_lost(now, upf, true, out),
            N4Input::UpfDown { upf } => self.upf_lost(now, upf, false, out),
            // For the shard.
            N4Input::Held { .. } | N4Input::GiveUp { .. } => {}
        }
    }

    fn session_report(
        &mut self,
        now: Instant,
        (transaction, seid): (N4Transaction, Seid),
        message: &Message,
        out: &mut Outbox,
    ) {
        match table::find_seid(&self.shared.ids, &mut self.sessions, seid) {
            Some(key) => self.with_session(now, key, out, |state, session, env| {
                session_report::on_report(state, session, env, (transaction, seid), message)
            }),
            None => session_report::refuse(transaction, &mut self.shared.env(now, out)),
        }
    }

    /// An N4 association has failed: its sessions end, or are established again if the UPF has restarted (TS 23.527 4.3).
    fn upf_lost(&mut self, now: Instant, upf: UpfHandle, returns: bool, out: &mut Outbox) {
        if self.lost.is_empty() && self.awaited.is_empty() && !self.restored.has_waiting() {
            self.shared.upfs.forget_restarts();
        }
        if let Some(name) = self.shared.upfs.upf_name(upf) {
            self.lost_names.insert(upf, name.into());
        }
        if returns {
            self.shared.upfs.note_restart(upf);
        } else {
            self.shared.upfs.remove(upf);
        }
        let keys: Vec<_> = self.sessions.keys_with(|upfs| upfs.may_have(upf)).collect();
        // At once: a session that is put back before its batch must know that this UPF is lost.
        keys.iter().filter(|key| !self.sessions.is_resident(**key)).for_each(|key| {
            note_lost(&mut self.awaited, &self.lost_names, (*key, upf));
        });
        self.lost.extend(keys.into_iter().map(|key| (key, upf)));
        self.end_lost_sessions(now, out);
    }

    /// Ends a batch of sessions of lost UPFs. The calls to AMF, PCF and UDM for all sessions of a UPF at once would take too
    /// much memory. Until a session is ended, its requests to the UPF fail because there is no association.
    fn end_lost_sessions(&mut self, now: Instant, out: &mut Outbox) {
        for _ in 0..LOST_BATCH {
            let Some((key, upf)) = self.lost.pop_front() else { break };
            self.end_lost_session(now, (key, upf), out);
            self.sessions.pack_idle();
        }
        if self.lost.is_empty() {
            self.lost = VecDeque::new();
            self.lost_names.clear();
        } else {
            out.start(0, Timer::LostSessions, LOST_BATCH_PAUSE);
        }
    }

    /// Ends a session of a lost UPF, or defers that until the session is back from the store.
    fn end_lost_session(&mut self, now: Instant, (key, upf): (Key, UpfHandle), out: &mut Outbox) {
        if self.sessions.misses(key) {
            return note_lost(&mut self.awaited, &self.lost_names, (key, upf));
        }
        self.with_session(now, key, out, |state, session, env| {
            session.draining = session.draining.filter(|draining| draining.upf != upf);
            session.leaving.retain(|leaving| leaving.upf != upf);
            session.deletion = session.deletion.filter(|_| !session.leaving.is_empty());
            // The session may have ended or moved to another UPF meanwhile.
            if state.is_at(upf) {
                return upf_failure::on_upf_lost(state, session, env, upf);
            }
            state
        });
        self.note_waiting(key);
    }

    fn timer(&mut self, now: Instant, key: TimerKey, out: &mut Outbox) {
        if key.timer == Timer::LostSessions {
            return self.end_lost_sessions(now, out);
        }
        if key.timer == Timer::RestoredContexts {
            return self.restore_batch(now, out);
        }
        let Some(timer) = SessionTimer::of(key.timer) else {
            return out.log(Level::Error, || {
                format!("{:?} is no timer of the SMF: this is a bug in Pith", key.timer)
            });
        };
        self.with_session(now, Key::from_u64(key.owner), out, |state, session, env| {
            if session.timers.expire(timer) { procedure::on_timer(state, session, env, timer) } else { state }
        });
    }
}

/// Records that an absent session has lost a UPF, which its document names.
fn note_lost(
    awaited: &mut BTreeMap<Key, Vec<(UpfHandle, Arc<str>)>>,
    names: &BTreeMap<UpfHandle, Arc<str>>,
    (key, upf): (Key, UpfHandle),
) {
    let lost = awaited.entry(key).or_default();
    if lost.iter().all(|(known, _)| *known != upf) {
        lost.push((upf, names.get(&upf).cloned().unwrap_or_default()));
    }
}

impl Smf {
    /// The subscriber's session with that identity.
    fn find_supi(&self, supi: &Supi, pdu_session_id: u8) -> Option<Key> {
        self.shared.index.find(&supi.clone().into(), pdu_session_id)
    }

    /// Runs an operator's command on a session, if this shard has the session; returns the entry of the command's response.
    fn run_command(
        &mut self,
        now: Instant,
        (supi, pdu_session_id): (&Supi, u8),
        out: &mut Outbox,
        command: impl FnOnce(State, &mut SmContext, &mut Env<'_>) -> (State, Result<(), BranchingError>),
    ) -> Option<serde_json::Value> {
        let key = self.find_supi(supi, pdu_session_id)?;
        let is_absent = self.sessions.misses(key);
        let mut refusal = is_absent.then(|| "its context is being read: repeat the command".to_owned());
        self.with_session(now, key, out, |state, session, env| {
            let (next, result) = command(state, session, env);
            refusal = result.err().map(|error| error.to_string());
            next
        });
        Some(json!({ "supi": supi, "pduSessionId": pdu_session_id, "refusal": refusal }))
    }
}

impl NetworkFunction for Smf {
    fn handle(&mut self, now: Instant, input: Input, out: &mut Outbox) {
        match input {
            Input::Request { reply, request } => self.serve(now, reply, request, out),
            Input::Reply { tag, .. } if tag == IGNORED_REPLY => {}
            Input::Reply { tag, reply, .. } => self.reply(now, tag, reply, out),
            Input::N4(input) => self.n4(now, *input, out),
            Input::Timer(key) => self.timer(now, key, out),
            Input::N2(_) | Input::Routed { .. } | Input::Stored { .. } => {}
        }
        self.sessions.pack_idle();
    }

    fn operate(&mut self, now: Instant, what: &Order, out: &mut Outbox, list: &mut Vec<serde_json::Value>) {
        match what {
            Order::Branch { supi, pdu_session_id, upf, destinations } => {
                let refusal = self.run_command(now, (supi, *pdu_session_id), out, |state, session, env| {
                    branching::insert(state, session, env, (upf, destinations))
                });
                list.extend(refusal);
            }
            Order::Unbranch { supi, pdu_session_id } => {
                let refusal = self.run_command(now, (supi, *pdu_session_id), out, |state, session, _| {
                    branching::remove(state, session)
                });
                list.extend(refusal);
            }
            Order::Deregister { .. }
            | Order::Locate { .. }
            | Order::ResetGnb { .. }
            | Order::Capacity(_)
            | Order::Endpoint { .. }
            | Order::NotifyChanges
            | Order::AddRule { .. }
            | Order::RemoveRule { .. } => {}
        }
    }

    fn absent_for(&self, order: &Order) -> Option<ContextId> {
        match order {
            Order::Branch { supi, pdu_session_id, .. } | Order::Unbranch { supi, pdu_session_id } => {
                let key = self.find_supi(supi, *pdu_session_id)?;
                self.sessions.absent(key)
            }
            _ => None,
        }
    }

    fn inspect(&self, what: Inspect, list: &mut Vec<serde_json::Value>) {
        self.inspect_page(what, &Page::ALL, list);
    }

    fn inspect_page(&self, what: Inspect, page: &Page, list: &mut Vec<serde_json::Value>) -> Option<u32> {
        if what != Inspect::Sessions {
            return None;
        }
        let of = |supi| {
            let keys = (1..=15).filter_map(move |id| self.find_supi(supi, id));
            keys.filter_map(|key| self.sessions.view(key)).collect()
        };
        let (sessions, next) = match &page.supi {
            Some(supi) => (of(supi), None),
            None => self.sessions.page(page.first, page.limit),
        };
        list.extend(sessions.into_iter().map(|session| self.describe(&session)));
        next
    }

    fn replies_owed(&self) -> Option<usize> {
        Some(self.replies_owed)
    }

    fn reload_contexts(&mut self) {
        self.reloads = true;
        self.sessions.keep_cold();
    }

    fn track_contexts(&mut self, tracking: Tracking) {
        self.tracker.start(tracking);
        self.shared.stores_sessions = true;
    }

    fn store_contexts(&mut self, scope: StoreScope, sink: &mut dyn DocumentSink) {
        self.store_sessions(scope, sink);
    }

    fn restore_context(
        &mut self,
        _now: Instant,
        id: ContextId,
        document: &[u8],
        is_stale: bool,
    ) -> Result<(), UnpackError> {
        self.restore_session(id, document, is_stale)
    }

    fn needs(&self, input: &Input) -> Needs {
        match input {
            // It replaces a former session of the same identity, and gets an address that no other one has.
            Input::Request { request: Request::PostSmContexts(_), .. } => Needs::All,
            input => self.context_named(input).map_or(Needs::Nothing, Needs::Context),
        }
    }

    fn begin_restoring(&mut self, blocks: &BTreeSet<BlockId>) {
        self.shared.ids.begin_restoring(blocks);
    }

    fn note_restored(&mut self, block: BlockId) {
        self.shared.ids.note_restored(block);
    }

    fn resume_restored(&mut self, now: Instant, is_needed: bool, out: &mut Outbox) {
        self.resume_sessions(now, is_needed, out);
    }

    fn finish_restoring(&mut self, now: Instant, out: &mut Outbox) {
        self.shared.pools.claim_reserved();
        self.restore_later_sessions(now, out);
    }

    fn begin_take_over(&mut self) {
        self.takes_over = true;
    }

    fn take_over_context(
        &mut self,
        _now: Instant,
        id: ContextId,
        document: &[u8],
        fate: Fate,
    ) -> Result<(), UnpackError> {
        self.take_over_session(id, document, fate)
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

    fn is_in_transaction(&self, id: ContextId) -> bool {
        let session = self.shared.ids.find(id).and_then(|key| self.sessions.view(key));
        session.is_some_and(|session| session.is_in_transaction())
    }

    fn is_between_transactions(&self, id: ContextId) -> bool {
        let session = self.shared.ids.find(id).and_then(|key| self.sessions.view(key));
        session.is_none_or(|session| !absent::is_in_transaction(&session))
    }

    fn change_owners(&mut self, owners: &Arc<OwnerMap>) {
        self.shared.identity.owners = Arc::clone(owners);
        self.shared.ids.change_blocks(&self.shared.identity);
        if self.sessions.len() == 0 && self.takes_over {
            // A run that has nothing yet.
            self.shared.pools = Pools::new(&self.shared.config, &self.shared.identity);
        }
    }

    fn unsettled(&self, block: BlockId) -> Option<ContextId> {
        self.unsettled_session(block)
    }

    fn unsettled_for_instance(&self, block: BlockId) -> Option<ContextId> {
        let mut of_block = self.shared.ids.of_block(block).map(|(id, _)| id);
        of_block.find(|id| self.is_unsettled_session(*id) || !self.is_between_transactions(*id))
    }

    fn is_unsettled(&self, id: ContextId) -> bool {
        self.is_unsettled_session(id)
    }

    fn pass_block(&mut self, _now: Instant, block: BlockId, out: &mut Outbox) -> PassedPart {
        self.pass_sessions(block, out)
    }

    fn take_block(&mut self, now: Instant, block: BlockId, part: PassedPart, out: &mut Outbox) {
        self.take_sessions(now, block, part, out);
    }

    fn adopt_block(&mut self, block: BlockId) {
        self.shared.pools.adopt_block(block);
    }

    fn key_of(&self, id: ContextId) -> Option<u64> {
        self.shared.ids.find(id).map(Key::to_u64)
    }

    fn contexts_in(&self, block: BlockId) -> usize {
        self.shared.ids.of_block(block).count()
    }

    fn note_address(&mut self, news: AddressNews) {
        self.shared.pools.note_news(news);
    }

    fn take_address_news(&mut self) -> Vec<(BlockId, AddressNews)> {
        self.shared.pools.take_news()
    }

    fn addresses_elsewhere(&self) -> Vec<IpAddr> {
        self.shared.pools.elsewhere().iter().copied().collect()
    }

    fn context_of(&self, input: &Input) -> Option<ContextId> {
        self.context_named(input)
    }

    fn is_resident(&self, id: ContextId) -> bool {
        self.shared.ids.find(id).is_none_or(|key| self.sessions.is_resident(key))
    }

    fn drop_context(&mut self, id: ContextId) -> bool {
        self.drop_session(id)
    }

    fn put_context(
        &mut self,
        now: Instant,
        id: ContextId,
        document: &[u8],
        out: &mut Outbox,
    ) -> Result<(), UnpackError> {
        self.put_session(now, id, document, out)
    }

    fn forget_context(&mut self, _now: Instant, id: ContextId, _out: &mut Outbox) {
        self.forget_session(id);
    }

    fn take_missed(&mut self) -> Vec<ContextId> {
        self.sessions.take_missed()
    }

    fn finish_take_over(&mut self, _now: Instant, _out: &mut Outbox) {
        self.restored.at_upfs = HashSet::new();
    }

    fn resume_contexts(&mut self, now: Instant, out: &mut Outbox) {
        if std::mem::take(&mut self.takes_over) {
            out.n4(N4Effect::TakenOver { owners: Arc::clone(&self.shared.identity.owners) });
        }
        self.resume_sessions(now, true, out);
    }
}
