//! UE contexts that another run of the shard had, while gateways, gNBs and UPFs continued: the shard panicked.
//!
//! | document | the UE |
//! |---|---|
//! | no request to another NF pending | goes on with its NG connection, its procedure and its timers |
//! | an N2 handover, before HANDOVER NOTIFY | it ends; the UE goes on with the connection of the source gNB |
//! | HANDOVER COMMAND of a handover to another AMF was sent | it continues: N2InfoNotify or the timer ends it |
//! | a UE that another AMF is handing over | no document: the source AMF's request or timer ends |
//! | a request pending | the procedure is aborted; UE CONTEXT RELEASE COMMAND if it is connected |
//! | an NG connection whose gNB has disconnected since | in CM-IDLE |
//! | not registered | ends: its resources at other NFs are released |
//! | written some time after the changes ([`crate::kit::Tracking::may_lag`]) | in CM-IDLE, as after a restart of the process |
//!
//! Connections that no document has are not taken over: the N2 gateway resets them (TS 38.413 8.7.4.2.2), and their UEs are in
//! CM-IDLE or begin their registration again.

use super::Amf;
use super::connection::RanContext;
use super::context::{Env, UeContext, host_of};
use super::delivery;
use super::document::{self, StoredConnection, Unpacked};
use super::ladn;
use super::mobility::{self, n2_handover};
use super::n2;
use super::procedure::{self, Procedure, deregistration, subscription_change, ue_context_release};
use super::residency::{Resumption, end_procedure, skip_reserved_counts};
use super::session::PduSession;
use crate::kit::document::UnpackError;
use crate::kit::{Duration, Fate, Instant, Key, N2Effect, Outbox, ProcedureName, Timer, UNPLACED, WallClock};
use pith_ngap::{Cause, CauseRadioNetwork};
use pith_types::ContextId;
use std::sync::Arc;

/// What is to be done for a UE that was taken over.
#[derive(Debug, Clone, Copy)]
pub(super) struct TakenOver {
    /// Replies for which the document waits never arrive.
    is_cut: bool,
    /// The gNB of its connection has disconnected.
    lost_connection: bool,
}

impl Amf {
    /// Takes a UE's context over from its document.
    pub(super) fn take_over_ue(
        &mut self,
        now: Instant,
        id: ContextId,
        octets: &[u8],
        fate: Fate,
    ) -> Result<(), UnpackError> {
        if fate == Fate::GoesOn && self.tracker.tracking().is_some_and(|tracking| tracking.may_lag()) {
            // The UE may be ahead of its document: it returns from CM-IDLE, and both sides compare their sessions.
            self.restore_ue(now, id, octets, false)?;
            self.note_user_planes(id);
            return Ok(());
        }
        if document::is_retained(octets) {
            return self.restore_retained(now, id, octets, false);
        }
        self.shared.ids.check_free(id)?;
        let Unpacked { mut ue, connection, .. } =
            document::unpack(octets, (UNPLACED, id), &self.shared.gnbs)?;
        let reserved = self.tracker.tracking().map_or(0, |tracking| tracking.reserved_counts);
        skip_reserved_counts(&mut ue, false, reserved);
        let is_cut = ue.is_in_transaction();
        ue.sdm_call = None;
        subscription_change::repeat(&mut ue);
        if is_cut {
            ue.sessions.retain(|session| session.sm_context.is_some());
            ue.sessions.iter_mut().for_each(PduSession::lose_calls);
            mobility::announce_again(&mut ue.sessions, &ue.mobility);
        }
        if fate == Fate::Ends {
            ue.rm = super::context::RmState::Deregistered;
            ue.discards_security = true;
        }
        if !ue.is_registered() {
            end_procedure(&mut ue);
        }
        let (had_connection, may_have_user_plane) = (connection.is_some(), ue.may_have_user_plane());
        let key = self.place_ue(id, ue)?;
        let adopted = connection.and_then(|connection| match self.adopt(key, connection) {
            Ok(adopted) => adopted,
            Err(left) => {
                // A gNB of the process before may retain it, and return.
                self.note_left_connection(key, left);
                None
            }
        });
        if let Some(ue) = self.ues.get_mut(key) {
            ue.connection = adopted;
        }
        // Its document may say so, also if the gNB has gone: the next process would expect it back.
        self.tracker.note_at_rest(id, had_connection && self.keeps_connections());
        let lost_connection = had_connection && adopted.is_none();
        if lost_connection || ((is_cut || may_have_user_plane) && adopted.is_none()) {
            self.note_left_unnamed(key);
        }
        self.resume_later(key, Resumption::Continue(TakenOver { is_cut, lost_connection }));
        Ok(())
    }

    /// SMFs continue with the user planes that a procedure has activated, perhaps since the document was written: all are to be deactivated.
    fn note_user_planes(&mut self, id: ContextId) {
        if self.tracker.tracking().is_some_and(|tracking| tracking.by_procedure)
            && let Some(ue) = self.shared.ids.find(id).and_then(|key| self.ues.get_mut(key))
        {
            ue.sessions.iter_mut().for_each(|session| session.note_active(false));
            self.ues.pack_idle();
        }
    }

    /// Adds a connection of a document to the table, if its gNB is connected; otherwise it is given back.
    fn adopt(&mut self, ue: Key, stored: StoredConnection) -> Result<Option<Key>, StoredConnection> {
        let (id, context) = (stored.id, stored.context);
        let Some(gnb) = crate::kit::document::Names::gnb(&self.shared.gnbs, &stored.gnb) else {
            return Err(stored);
        };
        let connections = &mut self.shared.connections;
        if !connections.has_room() || connections.find(id).is_some() {
            return Err(stored);
        }
        let key = connections.adopt(stored.into_connection(gnb, ue));
        if let Some(key) = key
            && context == RanContext::Releasing
        {
            let host = host_of(&self.shared.gnbs, Some(gnb));
            // A run has no more connections that are being released than the bound permits.
            let _ = self.shared.connections.start_release(key, host);
        }
        Ok(key)
    }

    /// Resumes a UE that was taken over.
    pub(super) fn resume_taken_over(&mut self, now: Instant, key: Key, state: TakenOver, out: &mut Outbox) {
        self.step(now, key, out, |ue, env| {
            resume(ue, env, state);
            ue.sessions.iter_mut().for_each(PduSession::forget_left_switches);
        });
        if let Some(id) = self.ues.id(key) {
            self.tracker.keep_change((id, ProcedureName::Other));
        }
        self.settle(now, out);
        self.note_left(key, out);
        self.ues.pack_idle();
    }

    /// Reports the connections of the shard to the N2 gateway, which compares them with its own.
    pub(super) fn report_connections(&mut self, out: &mut Outbox) {
        let connections = self.shared.connections.iter().map(|(_, it)| (it.gnb, it.id, it.ran_id)).collect();
        let identity = &self.shared.config.identity;
        let (shard, owners) = (identity.owner.shard, Arc::clone(&identity.owners));
        out.n2(N2Effect::TakenOver { shard, owners, connections });
    }

    /// New AMF-UE-NGAP-IDs begin at a random number: gNBs may still have others of the former run.
    pub(super) fn separate_ids(&mut self) {
        let first = self.shared.rng.next_u32();
        self.shared.connections.count_ids_from(first);
    }
}

fn resume(ue: &mut UeContext, env: &mut Env<'_>, TakenOver { is_cut, lost_connection }: TakenOver) {
    if !ue.is_registered() {
        // The context is over, and releases what it has.
        return;
    }
    let clock = WallClock::of_epoch(env.config.identity.epoch_unix_ms);
    for (timer, deadline) in ue.timers().to_vec() {
        let left = clock.instant(deadline).since(env.now);
        ue.start(env, timer, left.max(Duration::from_millis(1)));
    }
    let connection = ue.connection.and_then(|key| Some((key, env.connections.get(key)?.context)));
    if let Some((key, RanContext::Requested | RanContext::Releasing)) = connection {
        env.out.start(key.to_u64(), Timer::NgapGuard, env.config.timers.ngap_guard);
    }
    delivery::guard_requests(ue, env);
    if lost_connection {
        ue_context_release::on_connection_lost(ue, env);
        return ue_context_release::on_idle(ue, env);
    }
    if ue.mobility.is_n2_handover() {
        // The connection at the target gNB is in no document; the N2 gateway resets it.
        n2_handover::target_lost(ue, env);
    }
    if !is_cut {
        return;
    }
    if matches!(ue.procedure, Procedure::AwaitingDeregistrationAccept(_)) {
        deregistration::implicit(ue, env);
    }
    procedure::abort(ue, env);
    mobility::abort(ue, env);
    // A report may have been lost, or its SMF may have lost what it had begun.
    ladn::report_all(ue, env);
    if connection.is_some() {
        let cause = CauseRadioNetwork::release_due_to_5gc_generated_reason;
        n2::release(ue, env, Cause::RadioNetwork(cause));
    } else {
        ue_context_release::deactivate_sessions(ue, env);
        ue_context_release::on_idle(ue, env);
    }
}
