//! UE contexts that outlive the process (design section 6): which are stored, and how those of a former run return.
//!
//! - **Stored** is a UE that is authenticated and has a registration, or resources at other NFs. A registration that was not accepted
//!   begins again by the UE's timers.
//! - **Ended** is a context whose registration is over. It keeps a document until other NFs have answered the requests that release
//!   its resources; a restarted process repeats them.
//! - **In a transaction,** while a request of the UE to another NF is pending, the UE keeps the document of the transaction before: if
//!   the process ends, UE or gNB repeat their message. It is stored nevertheless before a gNB or an SMF gets a user plane that the former
//!   document lacks: the next process has it deactivated. So it is before an SMF deactivates a user plane, or a gNB releases the UE, whose
//!   connection the next process would keep by the former document.
//! - **No downlink NAS COUNT is used twice.** A document has the next COUNT, and reserves those from it on ([`Tracking`]). If a step
//!   uses a COUNT beyond these, the UE is stored in any case before the messages of that turn are sent; while the store fails, no
//!   message beyond them is sent (`n1::seal`). A restored UE starts at the first COUNT that its document does not reserve. Reserved COUNTs that the UE may not have seen count as unconfirmed
//!   (TS 24.501 4.4.3.1: the UE estimates a COUNT from its eight low bits); beyond the limit the UE is authenticated again.
//! - **Deregistered** UEs whose security contexts are retained have documents of their own ([`super::retained`]), which also reserve
//!   COUNTs.
//! - **Restored** UEs are in CM-IDLE: their N2 associations ended with the process. The timers of CM-IDLE start again. A UE that was connected
//!   without a procedure in progress stays so until its gNB has returned and says whether it retains its UEs (`n2/setup.rs`). A UE whose
//!   document may be outdated keeps its registration and its sessions, but not its security context: it is authenticated at its first
//!   message (`procedure/service_request.rs`). If its document names a former 5G-GUTI, it is unknown.

use super::config::AmfConfig;
use super::connection::{NgConnection, RanContext};
use super::context::{Env, IGNORED_REPLY, Released, RmState, UeContext};
use super::document::{self, StoredConnection, Unpacked};
use super::gnbs::ExpectedGnb;
use super::mobility::{self, Mobility, n2_handover};
use super::n2::Initial;
use super::procedure::{Procedure, context_transfer, subscription_change, ue_context_release};
use super::retained::KnownUe;
use super::security::SecurityContext;
use super::services::MAX_UNCONFIRMED_NAS_COUNTS;
use super::session::{PduSession, UserPlane};
use super::take_over::TakenOver;
use super::{Amf, consumer, procedure_name};
use crate::kit::document::{Document, UnpackError};
use crate::kit::{
    DocumentSink, Duration, Instant, Key, N2Effect, Nf, Outbox, Owner, ProcedureName, StoreScope, StoredKey,
    Timer, Tracking, UNPLACED, WallClock,
};
use pith_ngap::Message;
use pith_types::{AmfUeNgapId, ContextId, Supi};
use std::collections::VecDeque;
use std::net::IpAddr;

/// Number of restored UEs whose timers start at once.
const BATCH: usize = 1000;

/// Pause after such a batch, for the shard's other work.
const PAUSE: Duration = Duration::from_millis(5);

/// UEs of a former run, to be resumed.
#[derive(Debug, Default)]
pub(super) struct Restored {
    due: VecDeque<(Key, Resumption)>,
    /// The first UEs are resumed, and gNBs may have returned. Those that were connected are among the first.
    is_resumed: bool,
    /// Contexts of subscribers that have another, with that one.
    superseded: Vec<(Key, Key)>,
}

/// How a UE is resumed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Resumption {
    /// In CM-IDLE: its N2 association ended with the process. Its document must not name the connection any longer, if it does.
    Idle { was_connected: bool },
    /// In CM-CONNECTED, at a gNB that may return.
    Connected,
    /// Where its document says: gateways and gNBs have continued.
    Continue(TakenOver),
}

impl Amf {
    /// Notes that a UE that was placed is to be resumed.
    pub(super) fn resume_later(&mut self, key: Key, resumption: Resumption) {
        self.restored.due.push_back((key, resumption));
    }

    /// Whether a UE of a former run is not resumed yet.
    pub(super) fn is_to_be_resumed(&self, key: Key) -> bool {
        self.restored.due.iter().any(|(due, _)| *due == key)
    }

    /// The procedure of a UE before a step, if contexts are stored.
    pub(super) fn procedure_at(&mut self, key: Key) -> Option<ProcedureName> {
        self.tracker.tracking()?;
        procedure_name::of(self.ues.get_mut(key)?, &self.shared.connections)
    }

    /// Records a change of a UE's context by a step that began in that procedure, and whether the context must be stored before the
    /// next message is sent.
    pub(super) fn note_change(&mut self, key: Key, before: Option<ProcedureName>) {
        if self.tracker.tracking().is_none() {
            return;
        }
        let Some(ue) = self.ues.get_mut(key) else { return };
        let procedure = before.or_else(|| procedure_name::of(ue, &self.shared.connections));
        self.tracker.note_change(ue.id, procedure);
        if std::mem::take(&mut ue.must_store) {
            self.tracker.require_in_transaction(ue.id);
        }
        if std::mem::take(&mut ue.must_store_at_once) {
            self.tracker.require(ue.id, procedure);
        }
        let Some(next) = next_count(ue) else { return };
        match self.tracker.counts_below(ue.id) {
            Some(below) if next > below => self.tracker.await_stored(ue.id, procedure),
            Some(_) => {}
            None => self.tracker.note_count(ue.id, next),
        }
    }

    /// Passes on the documents of changed UEs. In a transaction the former document is sufficient, unless a COUNT beyond its
    /// reservation was used, the UE is registered and has none, or it gets what later messages depend on: a 5G-GUTI (until the UE
    /// confirms it), or a security context, whose COUNTs begin again. With `procedural` that context waits for the end of the procedure, and so
    /// does a session that is set up, but not for the end of other sessions' transactions.
    pub(super) fn store_ues(&mut self, scope: StoreScope, sink: &mut dyn DocumentSink) {
        let Some(&Tracking { reserved_counts: reserved, by_procedure, .. }) = self.tracker.tracking() else {
            return;
        };
        let keeps_connections = self.keeps_connections();
        for (id, procedure) in self.tracker.take(scope) {
            self.in_step = Some(id);
            sink.begin_procedure(procedure);
            self.ues.pack_idle();
            let stored = StoredKey { nf: Nf::Amf, id };
            let below = self.tracker.counts_below(id);
            if self.shared.ids.find(id).is_some_and(|key| !self.ues.is_resident(key)) {
                continue;
            }
            let ue = self.shared.ids.find(id).and_then(|key| self.ues.get_mut(key));
            match ue.filter(|ue| is_stored(ue)) {
                Some(ue) => {
                    let next = next_count(ue).unwrap_or(0);
                    // After a restart a UE whose path may have been switched is not at rest at its former gNB.
                    let is_moving = keeps_connections && !ue.mobility.is_idle();
                    let has_new_keys = !by_procedure && below.is_some_and(|below| next + reserved < below);
                    // The UE takes them into use before it answers.
                    let is_offered = ue.is_registered()
                        && matches!(ue.procedure, Procedure::AwaitingSecurityModeComplete(_));
                    // Until the UE confirms its 5G-GUTI: the former one, if there is any, may be another AMF's.
                    let has_new_guti = ue.old_guti.is_some()
                        || matches!(ue.procedure, Procedure::AwaitingRegistrationComplete(_));
                    let is_renewed = has_new_guti || has_new_keys || is_offered;
                    let connection = ue.connection.and_then(|key| self.shared.connections.get(key));
                    // The next process would keep a connection that gNB or SMFs no longer have.
                    let is_leaving = keeps_connections
                        && self.tracker.is_at_rest(id)
                        && !has_resources_at_gnb(ue, connection);
                    let is_sufficient = !is_moving
                        && !is_leaving
                        && !is_renewed
                        && !self.tracker.is_required_in_transaction(id)
                        && below.map_or(!ue.is_registered(), |below| next <= below);
                    // Another session's SMF may not have answered when the procedure is over.
                    let in_transaction =
                        ue.is_in_transaction() && !self.tracker.is_required_after_procedure(id);
                    let is_busy = in_transaction || (by_procedure && is_in_procedure(ue));
                    if is_busy && is_sufficient {
                        self.tracker.keep_change((id, procedure));
                        continue;
                    }
                    let at_rest = keeps_connections
                        && connection.is_some_and(|it| is_at_rest(ue, it.context, &it.queued));
                    if connection.is_some() {
                        self.setups.forget_lost(id);
                    }
                    let connection = connection.or_else(|| self.setups.lost_connection(id));
                    match document::pack(ue, connection, &self.shared.gnbs) {
                        Ok(document) => {
                            // gNBs that set up their associations wait for its user planes.
                            if connection.is_some() || ue.may_have_user_plane() {
                                sink.restore_first();
                            }
                            sink.write(stored, ue.supi.as_ref(), &document);
                            self.tracker.note_stored(id, next + reserved);
                            self.tracker.note_at_rest(id, at_rest);
                        }
                        Err(_) => self.tracker.keep_change((id, procedure)),
                    }
                }
                None => match self.ended.document(id) {
                    Some((ue, document)) => {
                        sink.restore_first();
                        sink.write(stored, ue, document);
                        self.tracker.note_stored(id, 0);
                    }
                    None => match self.pack_retained(id) {
                        Some((ue, document)) => {
                            sink.write(stored, Some(&ue), &document);
                            self.tracker.note_stored(id, self.retained_counts_below(id));
                        }
                        None if self.tracker.note_deleted(id) => sink.delete(stored),
                        None => {}
                    },
                },
            }
        }
        self.in_step = None;
    }

    /// While the store fails: whether a message for a gNB contains a NAS message with a COUNT that no document reserves. The context may have
    /// ended with the message.
    pub(super) fn has_unreserved_count(&self, message: &N2Effect) -> bool {
        let N2Effect::Send { pdu, .. } = message else { return false };
        if !self.tracker.is_failing() {
            return false;
        }
        let connections = &self.shared.connections;
        let key = nas_recipient(pdu).and_then(|id| connections.find(id));
        let Some(connection) = key.and_then(|key| connections.get(key)) else { return false };
        let ue = connection.ue.and_then(|key| self.ues.view(key));
        let used = ue.and_then(|ue| Some((ue.id, next_count(&ue)?))).or(connection.former_ue);
        used.is_some_and(|(id, next)| self.tracker.is_unreserved(id, next))
    }

    /// The lowest COUNT that the document of a retained security context does not reserve.
    pub(super) fn retained_counts_below(&self, id: ContextId) -> u32 {
        let reserved = self.tracker.tracking().map_or(0, |tracking| tracking.reserved_counts);
        let next = self.shared.index.retained.next_count(id);
        next.map_or(0, |next| next.value() + reserved)
    }

    /// Takes a UE's context back under its id.
    pub(super) fn restore_ue(
        &mut self,
        now: Instant,
        id: ContextId,
        octets: &[u8],
        is_stale: bool,
    ) -> Result<(), UnpackError> {
        if document::is_retained(octets) {
            return self.restore_retained(now, id, octets, is_stale);
        }
        self.shared.ids.check_free(id)?;
        let Unpacked { mut ue, connection, host } =
            document::unpack(octets, (UNPLACED, id), &self.shared.gnbs)?;
        let is_tracked = self.tracker.tracking().is_some();
        let tracking = self.tracker.tracking().copied().unwrap_or_default();
        // The UE may be ahead of a document that was written some time after the changes.
        let at_rest = !is_stale
            && is_tracked
            && !tracking.may_lag()
            && connection.as_ref().is_some_and(|it| is_at_rest(&ue, it.context, &it.queued));
        let access_keys = std::mem::take(&mut ue.access_keys);
        let may_have_user_plane = ue.is_in_transaction() || ue.may_have_user_plane();
        if let Some(target) = n2_handover::target_of(&ue.mobility) {
            self.note_left_target(target);
        } else if let (Mobility::AwaitingPathSwitch(_), Some(connection)) = (&ue.mobility, &connection) {
            // The source gNB has it until the target gNB gets PATH SWITCH REQUEST ACKNOWLEDGE.
            self.note_left_target(connection.id);
        }
        recover(&mut ue, &self.shared.config, is_stale, &tracking);
        if at_rest {
            // Of the gNB that may have retained the UE; they end with the connection.
            ue.access_keys = access_keys;
        }
        let is_kept = at_rest
            && !self.restored.is_resumed
            && self.shared.config.retains_ues
            && ue.is_registered()
            && ue.security.is_some();
        // Also those that are deactivated because the document may be behind.
        let may_have_user_plane = may_have_user_plane || ue.may_have_user_plane();
        let key = self.place_ue(id, ue)?;
        let was_connected = connection.is_some();
        let left = match (connection, host.filter(|_| is_kept)) {
            (Some(stored), Some(host)) => self.expect(key, stored, host).err(),
            (stored, _) => stored,
        };
        let is_connected = was_connected && left.is_none();
        // The document, which may say so, is that of the former run.
        self.tracker.note_at_rest(id, was_connected);
        if let Some(left) = left {
            self.note_left_connection(key, left);
        } else if may_have_user_plane && !is_connected {
            self.note_left_unnamed(key);
        }
        if is_stale {
            // The next writer of a document that all NFs share would leave an outdated context out: it is written also in a transaction.
            self.tracker.note_deleted(id);
        }
        if is_connected || is_stale {
            // Its document has COUNTs that may have been used, or is outdated.
            self.tracker.keep_change((id, ProcedureName::Other));
        }
        let resumption =
            if is_connected { Resumption::Connected } else { Resumption::Idle { was_connected } };
        self.restored.due.push_back((key, resumption));
        Ok(())
    }

    /// The connection of a restored UE is kept until its gNB returns; it is given back if there is no room.
    fn expect(&mut self, ue: Key, stored: StoredConnection, host: IpAddr) -> Result<(), StoredConnection> {
        let connections = &mut self.shared.connections;
        if !connections.has_room() || connections.find(stored.id).is_some() {
            return Err(stored);
        }
        let global_id = stored.gnb.clone();
        let gnb = self.shared.gnbs.expect(ExpectedGnb { global_id, host });
        let key = connections.adopt(stored.into_connection(gnb, ue));
        if let Some(ue) = self.ues.get_mut(ue) {
            ue.connection = key;
        }
        Ok(())
    }

    /// Takes the security context of a deregistered UE back.
    pub(super) fn restore_retained(
        &mut self,
        now: Instant,
        id: ContextId,
        octets: &[u8],
        is_stale: bool,
    ) -> Result<(), UnpackError> {
        self.shared.ids.check_free(id)?;
        let (mut ue, until) = document::unpack_retained(octets, (UNPLACED, id))?;
        let reserved = self.tracker.tracking().map_or(0, |tracking| tracking.reserved_counts);
        skip_reserved_counts(&mut ue, is_stale, reserved);
        self.shared.ids.claim(id, UNPLACED);
        self.tracker.note_read(id, next_count(&ue).unwrap_or(0));
        let until = WallClock::of_epoch(self.shared.config.identity.epoch_unix_ms).instant(until);
        let index = &mut self.shared.index;
        match (ue.supi, ue.guti, ue.security) {
            (Some(supi), Some(guti), Some(security))
                if until > now
                    && index.find_supi(&supi).is_none()
                    && index.find_tmsi(guti.tmsi).is_none() =>
            {
                let known = KnownUe { supi, pei: ue.pei, guti, security };
                index.retained.restore(known, id, until, self.shared.config.retention);
            }
            // Too old, or the UE has registered since.
            _ => {}
        }
        if self.shared.index.retained.find(id).is_none() {
            self.end(id);
        }
        Ok(())
    }

    /// Records which security contexts of deregistered UEs are new, and which have ended.
    pub(super) fn note_retained(&mut self) {
        if self.shared.index.retained.has_changes() {
            for id in self.shared.index.retained.take_changes() {
                match self.shared.index.retained.find(id) {
                    Some(_) => self.tracker.note_change(id, Some(ProcedureName::Deregistration)),
                    // Before a message with one of its COUNTs leaves.
                    None => self.end(id),
                }
            }
        }
    }

    /// The document of a retained security context.
    fn pack_retained(&self, id: ContextId) -> Option<(Supi, Document)> {
        let (ue, until) = self.shared.index.retained.find(id)?;
        let clock = WallClock::of_epoch(self.shared.config.identity.epoch_unix_ms);
        let supi = ue.supi.clone();
        Some((supi, document::pack_retained(ue, clock.date_time(until), id).ok()?))
    }

    /// Places a context of a document in the tables.
    pub(super) fn place_ue(&mut self, id: ContextId, mut ue: UeContext) -> Result<Key, UnpackError> {
        let (identity, gutis) = (ue.identity(), [ue.guti, ue.old_guti]);
        let (is_registered, since, next) = (ue.is_registered(), ue.since, next_count(&ue));
        let is_moving = ue.transferred_to == Some(Owner::Process);
        let placed = self.ues.insert_with(|key| {
            ue.key = key;
            Box::new(ue)
        });
        let key = placed.ok_or(UnpackError::NoRoom)?;
        self.shared.ids.claim(id, key);
        self.tracker.note_read(id, next.unwrap_or(0));
        if !is_registered {
            // It ends at once, and the UE begins again.
            return Ok(key);
        }
        let index = &mut self.shared.index;
        index.note_moving(key, is_moving);
        for guti in gutis.into_iter().flatten() {
            if index.find_tmsi(guti.tmsi).is_none() {
                index.claim_tmsi(guti.tmsi, key);
            }
        }
        if let Some(identity) = identity {
            // Of two contexts the later one counts (see `Amf::supersede`).
            let other = index.find(&identity).and_then(|other| Some((other, self.ues.view(other)?)));
            match other {
                Some((other, it)) if it.since >= since => {
                    self.restored.superseded.push((other, key));
                }
                other => {
                    self.restored.superseded.extend(other.map(|(other, _)| (key, other)));
                    index.claim(&identity, key);
                }
            }
        }
        self.ues.pack_idle();
        Ok(key)
    }

    /// Keeps what a step released at other NFs in a document, until the requests for that, among the effects from that one on, are
    /// answered. Returns whether there are any.
    pub(super) fn note_released(
        &mut self,
        id: ContextId,
        (ue, released): (Option<Supi>, Released),
        effects: usize,
        out: &mut Outbox,
    ) -> bool {
        let calls = out.number_calls(effects, IGNORED_REPLY, || self.ended.next_number());
        if !calls.is_empty() {
            self.ended.insert(id, (ue, released.document), &calls);
            if let Some(gnb) = released.leaves {
                self.note_ending(id, gnb);
            }
            let ends = !self.shared.ids.find(id).is_some_and(|key| self.ues.contains(key));
            self.tracker.require(id, ends.then_some(ProcedureName::Deregistration));
        }
        !calls.is_empty()
    }

    /// The reply to a request that releases a resource.
    pub(super) fn released(&mut self, call: u32, out: &mut Outbox) {
        let Some(id) = self.ended.answered(call) else { return };
        self.note_ended(id, out);
        match self.shared.ids.find(id).filter(|key| self.ues.contains(*key)) {
            Some(_) => self.tracker.require(id, None),
            None => self.end(id),
        }
    }

    /// All UEs are read.
    pub(super) fn resume_ues(&mut self, now: Instant, out: &mut Outbox) {
        self.supersede_restored(now, out);
        self.restored.is_resumed = true;
        // gNBs may still have connections that no document names: their ids are not used again soon.
        self.separate_ids();
        self.expect_gnbs(out);
        self.resume_batch(now, out);
    }

    /// Of two restored contexts of a subscriber the later one goes on.
    pub(super) fn supersede_restored(&mut self, now: Instant, out: &mut Outbox) {
        for (new, old) in std::mem::take(&mut self.restored.superseded) {
            self.supersede(now, new, old, out);
        }
    }

    /// Starts the timers of a batch of restored UEs, and ends contexts that have no registration.
    pub(super) fn resume_batch(&mut self, now: Instant, out: &mut Outbox) {
        for _ in 0..BATCH {
            let Some((key, resumption)) = self.restored.due.pop_front() else { break };
            match (resumption, self.ues.id(key)) {
                (Resumption::Continue(state), _) => {
                    self.resume_taken_over(now, key, state, out);
                    continue;
                }
                (Resumption::Idle { was_connected: true }, Some(id)) => {
                    self.tracker.keep_change((id, ProcedureName::Other));
                }
                (Resumption::Idle { .. } | Resumption::Connected, _) => {}
            }
            self.step(now, key, out, |ue, env| {
                if ue.transferred_to == Some(Owner::Process) {
                    // Its report may be lost with the former run: the sessions may be the other shard's.
                    ue.transferred_to = Some(Owner::SameUser);
                }
                // A UE that returned meanwhile has its timers.
                if !ue.is_registered() || ue.connection.is_some() || !ue.timers().is_empty() {
                    return;
                }
                if ue.transferred_to.is_some() && !ue.registered_in_udm {
                    // Another AMF serves the UE, which the UDM has said: its report was awaited.
                    return context_transfer::await_status(ue, env);
                }
                let remote: Vec<u8> = ue
                    .sessions
                    .iter()
                    .filter(|it| it.user_plane != UserPlane::Deactivated)
                    .map(|it| it.id)
                    .collect();
                for id in remote {
                    consumer::deactivate(ue, env, id);
                    // A report may be lost with the former run, too.
                    consumer::report_presence(ue, env, id);
                }
                ue_context_release::on_idle(ue, env);
            });
            self.note_left(key, out);
            if self.tracker.tracking().is_some_and(|tracking| tracking.whole) {
                // Its document is of the former run: with its connection, and timers that have expired.
                self.note_change(key, Some(ProcedureName::Other));
            }
            self.ues.pack_idle();
        }
        if self.restored.due.is_empty() {
            self.restored.due = VecDeque::new();
        } else {
            out.start(0, Timer::RestoredContexts, PAUSE);
        }
    }
}

/// Whether a UE has a document: its identity is established, and it is registered or has resources at other NFs. Those of a UE that another
/// AMF is handing over are that AMF's.
pub(super) fn is_stored(ue: &UeContext) -> bool {
    ue.identity().is_some() && ue.arrival.is_none() && (ue.is_registered() || has_resources(ue))
}

/// Notes what a UE has at other NFs in a document, before it is released there. The gNB may not get the command to release the UE: if it
/// may retain UEs, the document names the connection.
pub(super) fn note_resources(ue: &mut UeContext, env: &Env<'_>) {
    if !env.stores_ues || !has_resources(ue) || ue.released.is_some() {
        return;
    }
    let identities =
        (ue.guti.take(), ue.old_guti.take(), ue.security.take(), ue.outdated.take(), ue.offered.take());
    let rest = (std::mem::take(&mut ue.undelivered), std::mem::take(&mut ue.procedure), ue.rm);
    ue.rm = RmState::Deregistered;
    let connection = ue.connection.filter(|_| env.config.retains_ues);
    let connection = connection.and_then(|key| env.connections.get(key));
    let releasing = connection.filter(|it| it.context == RanContext::Releasing);
    let leaves = ue.may_have_user_plane().then(|| ue.left_gnb(env));
    let document = document::pack(ue, releasing, env.gnbs).ok();
    ue.released = document.map(|document| Box::new(Released { document, leaves }));
    (ue.guti, ue.old_guti, ue.security, ue.outdated, ue.offered) = identities;
    (ue.undelivered, ue.procedure, ue.rm) = rest;
}

/// The document of sessions that are being released, while their UE goes on: a restarted process releases them again.
pub(super) fn pack_released(
    ue: &mut UeContext,
    sessions: Vec<PduSession>,
    env: &Env<'_>,
) -> Option<Released> {
    let leaves = sessions.iter().any(PduSession::may_have_user_plane).then(|| ue.left_gnb(env));
    let sessions = std::mem::replace(&mut ue.sessions, sessions);
    let identities =
        (ue.guti.take(), ue.old_guti.take(), ue.security.take(), ue.outdated.take(), ue.offered.take());
    let transferred_policy = ue.transferred_policy.take();
    let resources = (ue.policy.take(), ue.sdm_subscription.take(), std::mem::take(&mut ue.registered_in_udm));
    let rest = (std::mem::take(&mut ue.undelivered), std::mem::take(&mut ue.procedure), ue.rm);
    ue.rm = RmState::Deregistered;
    let document = document::pack(ue, None, env.gnbs).ok();
    ue.sessions = sessions;
    (ue.guti, ue.old_guti, ue.security, ue.outdated, ue.offered) = identities;
    (ue.policy, ue.sdm_subscription, ue.registered_in_udm) = resources;
    ue.transferred_policy = transferred_policy;
    (ue.undelivered, ue.procedure, ue.rm) = rest;
    Some(Released { document: document?, leaves })
}

/// Whether a UE has resources at other NFs.
fn has_resources(ue: &UeContext) -> bool {
    let has_policy =
        ue.policy.is_some() || ue.transferred_policy.as_ref().is_some_and(|policy| policy.is_taken);
    !ue.sessions.is_empty() || has_policy || ue.sdm_subscription.is_some() || ue.registered_in_udm
}

/// Whether a procedure of the UE or of a session goes on: it waits for UE or gNB.
fn is_in_procedure(ue: &UeContext) -> bool {
    let is_changing = |it: &PduSession| {
        matches!(it.user_plane, UserPlane::Activating | UserPlane::Releasing | UserPlane::Replacing)
    };
    !matches!(ue.procedure, Procedure::Idle) || ue.sessions.iter().any(is_changing)
}

/// The connection to which a PDU sends a NAS message.
fn nas_recipient(pdu: &[u8]) -> Option<AmfUeNgapId> {
    match Message::decode(pdu).ok()? {
        Message::DownlinkNasTransport(message) => Some(message.amf_ue_ngap_id),
        Message::InitialContextSetupRequest(message) => Some(message.amf_ue_ngap_id),
        Message::PduSessionResourceSetupRequest(message) => Some(message.amf_ue_ngap_id),
        Message::PduSessionResourceModifyRequest(message) => Some(message.amf_ue_ngap_id),
        Message::PduSessionResourceReleaseCommand(message) => Some(message.amf_ue_ngap_id),
        _ => None,
    }
}

/// The COUNT of the next downlink message.
pub(super) fn next_count(ue: &UeContext) -> Option<u32> {
    ue.security.as_ref()?.nas.next_to_send().map(|count| count.value())
}

/// Ends the procedure of a document, with what is known of its result.
pub(super) fn end_procedure(ue: &mut UeContext) {
    ue.in_progress = None;
    match std::mem::take(&mut ue.procedure) {
        // The network has ended the registration.
        Procedure::AwaitingDeregistrationAccept(_) => ue.rm = RmState::Deregistered,
        // The UDM may have processed the registration.
        Procedure::AwaitingUecmRegistration(_) => ue.registered_in_udm = true,
        Procedure::AwaitingSecurityModeComplete(state) => ue.note_offered(state.offer.context),
        _ => {}
    }
}

/// Whether nothing is in progress between a connected UE, its gNB and the core.
fn is_at_rest(ue: &UeContext, context: RanContext, queued: &[Vec<u8>]) -> bool {
    context == RanContext::Established
        && queued.is_empty()
        && ue.undelivered.is_empty()
        && ue.mobility.is_idle()
        && !ue.is_in_transaction()
        && !is_in_procedure(ue)
}

/// Whether a UE that was connected without a procedure in progress still has its connection and its user planes: no SMF was requested to
/// deactivate one.
fn has_resources_at_gnb(ue: &UeContext, connection: Option<&NgConnection>) -> bool {
    let reports = |session: &PduSession| session.calls.iter().any(|(_, purpose)| purpose.is_report());
    let is_left = |session: &PduSession| session.user_plane == UserPlane::Deactivated && reports(session);
    connection.is_some_and(|it| it.context == RanContext::Established) && !ue.sessions.iter().any(is_left)
}

/// What remains of a UE after the process has ended: no connection, and no pending call. SMFs of other processes may have activated user
/// planes since the document was written, if it may be behind.
fn recover(ue: &mut UeContext, config: &AmfConfig, is_stale: bool, tracking: &Tracking) {
    let procedure = &ue.procedure;
    // A deactivation has given way to an activation, whose reply does not arrive.
    let is_postponed = |it: &&mut PduSession| procedure.activates(it.id) && it.lacks_answer();
    ue.sessions.iter_mut().filter(is_postponed).for_each(|it| it.note_active(false));
    end_procedure(ue);
    mobility::announce_again(&mut ue.sessions, &ue.mobility);
    ue.mobility = Mobility::Idle;
    ue.withdrawn = None;
    ue.access_keys.reset();
    ue.sdm_call = None;
    subscription_change::repeat(ue);
    ue.timers.clear();
    ue.initial = Initial::default();
    ue.reallocation = None;
    let own = &config.identity.api_root;
    ue.sessions.retain(|session| session.sm_context.is_some());
    for session in &mut ue.sessions {
        session.lose_calls();
        session.held.clear();
        session.held_setup = None;
        let is_own =
            session.sm_context.as_ref().is_some_and(|context| context.root.authority == own.authority);
        if tracking.may_lag() && !is_own {
            session.note_active(false);
        }
    }
    skip_reserved_counts(ue, is_stale, tracking.reserved_counts);
}

/// COUNTs that the document reserved may have been used: a UE that cannot estimate the next one is authenticated before it gets service,
/// and so is one that may have been sent messages since.
pub(super) fn skip_reserved_counts(ue: &mut UeContext, is_stale: bool, reserved: u32) {
    let skip = |mut security: SecurityContext| {
        security.nas.skip_to_send(reserved);
        security.unconfirmed = security.unconfirmed.saturating_add(reserved);
        let is_outdated = is_stale || security.unconfirmed > MAX_UNCONFIRMED_NAS_COUNTS;
        if is_outdated { security.into_outdated() } else { security }
    };
    ue.offered = ue.offered.take().map(|offered| Box::new(skip(*offered)));
    match ue.security.take().map(skip) {
        Some(outdated) if outdated.is_outdated() => ue.outdated = Some(Box::new(outdated)),
        security => ue.security = security,
    }
}
