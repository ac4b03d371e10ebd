//! PDUs that can't be processed (TS 38.413 clause 10). One that begins a procedure is answered, with the procedure's failure message if it has
//! one. One that ends a procedure of this AMF is not: the procedure has failed (10.3.4.2, 10.3.5).

use super::{Handling, N2Origin, close, error_indication, ids_of, release_connection, send, wants_answer};
use crate::amf::Amf;
use crate::amf::connection::RanSide;
use crate::amf::mobility::{n2_handover, path_switch};
use crate::amf::procedure::pdu_session_resources;
use crate::kit::{Instant, Key, Level, Outbox};
use pith_ngap::{
    Cause, CauseProtocol, Class, HandoverPreparationFailure, Message, NgapError, Other, PathSwitchRequest,
    Peek, peek,
};
use pith_types::{AmfUeNgapId, RanUeNgapId};

/// Procedure codes (TS 38.413 9.4.7).
mod code {
    pub const HANDOVER_PREPARATION: u8 = 12;
    pub const HANDOVER_RESOURCE_ALLOCATION: u8 = 13;
    pub const INITIAL_CONTEXT_SETUP: u8 = 14;
    pub const PATH_SWITCH_REQUEST: u8 = 25;
    pub const PDU_SESSION_RESOURCE_MODIFY: u8 = 26;
    pub const PDU_SESSION_RESOURCE_RELEASE: u8 = 28;
    pub const PDU_SESSION_RESOURCE_SETUP: u8 = 29;
    pub const UE_CONTEXT_RELEASE: u8 = 41;
}

impl Amf {
    /// A procedure without a handler: rejected, or ignored and notified, if its criticality requires it (TS 38.413 10.3.4.1).
    pub(super) fn unknown_procedure(
        &self,
        from: N2Origin,
        pdu: &[u8],
        other: Other,
        out: &mut Outbox,
    ) -> Handling {
        out.log(Level::Warn, || format!("NGAP procedure {} is not supported", other.procedure_code));
        if other.answer.is_some()
            && let Some(error) = pith_ngap::unknown_procedure(pdu)
        {
            let (amf_id, ran_id) = ids_of(pdu);
            error_indication(from, amf_id, ran_id, error.cause(), error.diagnostics(), out);
        }
        Handling::Discarded
    }

    /// A message that only an AMF may send, or that concerns a whole gNB.
    pub(super) fn not_for_an_amf(
        &self,
        from: N2Origin,
        pdu: &[u8],
        message: &Message,
        out: &mut Outbox,
    ) -> Handling {
        out.log(Level::Warn, || format!("{} is not for an AMF", message.name()));
        if wants_answer(message) {
            let cause = Cause::Protocol(CauseProtocol::message_not_compatible_with_receiver_state);
            let (amf_id, ran_id) = ids_of(pdu);
            error_indication(from, amf_id, ran_id, cause, None, out);
        }
        Handling::Discarded
    }

    /// A PDU with an error that its criticality does not permit to ignore.
    pub(super) fn ngap_error(
        &mut self,
        now: Instant,
        from: N2Origin,
        pdu: &[u8],
        error: &NgapError,
        out: &mut Outbox,
    ) {
        out.log(Level::Warn, || format!("NGAP: {error}"));
        if pith_ngap::is_error_indication(pdu) {
            return;
        }
        let (amf_id, ran_id) = ids_of(pdu);
        if let NgapError::AbstractSyntax { procedure_code, initiating, .. } = error {
            match (*procedure_code, amf_id.zip(ran_id)) {
                _ if !initiating => return self.faulty_outcome(now, from, pdu, error.cause(), out),
                (code::HANDOVER_PREPARATION, Some(ids)) => {
                    return faulty_handover_required(from, ids, error, out);
                }
                (code::PATH_SWITCH_REQUEST, _) => {
                    if let Some(request) = PathSwitchRequest::decode_despite_errors(pdu) {
                        return self.refuse_faulty_path_switch(from, &request, error, out);
                    }
                }
                _ => {}
            }
        }
        error_indication(from, amf_id, ran_id, error.cause(), error.diagnostics(), out);
    }

    fn refuse_faulty_path_switch(
        &self,
        from: N2Origin,
        request: &PathSwitchRequest,
        error: &NgapError,
        out: &mut Outbox,
    ) {
        let target = RanSide { gnb: from.gnb, binding: from.binding, ran_id: request.ran_ue_ngap_id };
        let is_connected = self.shared.connections.find_by_ran(from.gnb, target.ran_id).is_some();
        path_switch::refuse_faulty(target, is_connected, request, error, out);
    }

    /// The end of a procedure of this AMF, with such an error. What the gNB has done is not known: it releases the UE, if it may have resources
    /// of which the AMF does not know. The UE connects again. A release counts as one that the gNB does not answer.
    fn faulty_outcome(&mut self, now: Instant, from: N2Origin, pdu: &[u8], cause: Cause, out: &mut Outbox) {
        let Some(outcome) = peek(pdu) else { return };
        let connection = outcome.amf_ue_ngap_id.and_then(|id| self.shared.connections.find(id));
        if outcome.procedure_code == code::HANDOVER_RESOURCE_ALLOCATION {
            return self.faulty_handover_outcome(now, from, (outcome, connection), cause, out);
        }
        let is_it = |key: &Key| {
            let known = self.shared.connections.get(*key);
            known.is_some_and(|it| it.gnb == from.gnb && Some(it.ran_id) == outcome.ran_ue_ngap_id)
        };
        let Some(key) = connection.filter(is_it) else { return };
        match outcome.procedure_code {
            // The gNB has released the UE, whatever else it says.
            code::UE_CONTEXT_RELEASE => self.release_complete(now, key, None, out),
            code::PDU_SESSION_RESOURCE_RELEASE => {
                let ue = self.shared.connections.get(key).and_then(|connection| connection.ue);
                let Some(ue) = ue else { return };
                self.with_ue(now, ue, out, |ue, env| {
                    if ue.connection == Some(key) {
                        pdu_session_resources::release_answered(ue, env, None);
                    }
                });
            }
            code::INITIAL_CONTEXT_SETUP
            | code::PDU_SESSION_RESOURCE_SETUP
            | code::PDU_SESSION_RESOURCE_MODIFY => {
                self.with_env(now, out, |env| release_connection(env, key, cause));
                self.settle(now, out);
            }
            _ => {}
        }
    }

    fn faulty_handover_outcome(
        &mut self,
        now: Instant,
        from: N2Origin,
        (outcome, connection): (Peek<'_>, Option<Key>),
        cause: Cause,
        out: &mut Outbox,
    ) {
        let Some((key, ue)) = self.awaited_target(from, connection) else { return };
        self.with_ue(now, ue, out, |ue, env| {
            match outcome.class {
                Class::Unsuccessful => close(env, key),
                Class::Initiating | Class::Successful => release_connection(env, key, cause),
            }
            n2_handover::target_lost(ue, env);
            if let Some(connection) = env.connections.get_mut(key) {
                connection.ue = None;
            }
        });
    }
}

/// A HANDOVER REQUIRED that can't be decoded: HANDOVER PREPARATION FAILURE, with the diagnostics (TS 38.413 10.3.4.2, 10.3.5), so that the
/// gNB keeps the UE.
fn faulty_handover_required(
    from: N2Origin,
    (amf_ue_ngap_id, ran_ue_ngap_id): (AmfUeNgapId, RanUeNgapId),
    error: &NgapError,
    out: &mut Outbox,
) {
    let (cause, diagnostics) = (Some(error.cause()), error.response_diagnostics());
    let failure = HandoverPreparationFailure { amf_ue_ngap_id, ran_ue_ngap_id, cause, diagnostics };
    send::send(out, from.gnb, from.binding, failure.encode());
}
