//! N2 handover to a gNB of this AMF (TS 23.502 4.9.1.3; TS 38.413 8.4.1 to 8.4.3, 8.4.5 to 8.4.7).
//!
//! | step | state | from | timer | TS 23.502 4.9.1.3 |
//! |---|---|---|---|---|
//! | HANDOVER REQUIRED | | source gNB | | .2 1 |
//! | UpdateSMContext (PREPARING), a session each | [`AwaitingSessionPreparation`] | SMFs | | .2 4 to 7 |
//! | HANDOVER REQUEST with NH and NCC | [`AwaitingHandoverRequestAcknowledge`] | target gNB | preparation | .2 9, 10 |
//! | UpdateSMContext (PREPARED), a session each | [`AwaitingHandoverCommand`] | SMFs | | .2 11 |
//! | HANDOVER COMMAND; RAN STATUS TRANSFER is relayed | [`AwaitingHandoverNotify`] | target gNB | completion | .3 1 to 5 |
//! | UpdateSMContext (COMPLETED), a session each; UE CONTEXT RELEASE COMMAND to the source gNB | [`AwaitingSessionCompletion`] | SMFs | repetition | .3 6 to 14 |
//!
//! The UE has two NG connections from HANDOVER REQUEST on: the target gNB's has an AMF-UE-NGAP-ID of its own, of the UE's block. Until
//! HANDOVER NOTIFY the UE's connection is that of the source gNB. SMFs' messages for UE and gNB are queued meanwhile.
//!
//! An SMF that does not answer COMPLETED may be restarting: the request is repeated for about 20 s, in which the UE is handed over to no other gNB but over
//! Xn. Then the session goes on without a user plane, which a service request sets up.
//!
//! The handover of a UE from another AMF has the same steps from UpdateSMContext on, with that AMF in place of the source gNB
//! ([`super::arrival`]). A handover to a gNB that is not connected here is one to another AMF ([`super::departure`]).

mod execution;
mod preparation;
mod status_transfer;

pub(crate) use execution::{
    AwaitingHandoverNotify, AwaitingSessionCompletion, DUE, notified, outlives_source, source_lost,
};
pub(crate) use preparation::{
    AwaitingHandoverCommand, AwaitingHandoverRequestAcknowledge, AwaitingSessionPreparation, acknowledged,
    refused,
};
pub(in crate::amf) use status_transfer::{relay_early_status, relay_status, send_early_status, send_status};

use super::{Mobility, arrival, departure, n14};
use crate::amf::connection::{NgConnection, RanContext};
use crate::amf::consumer;
use crate::amf::context::{CallId, Env, UeContext};
use crate::amf::gnbs::Gnbs;
use crate::amf::procedure::deregistration::{self, Reason};
use crate::amf::procedure::{Procedure, configuration_update, ue_context_release};
use crate::amf::session::PduSession;
use crate::amf::{delivery, n2};
use crate::kit::{GnbHandle, Level, Timer};
use pith_ngap::transfer::HandoverPreparationUnsuccessfulTransfer;
use pith_ngap::{
    Cause, CauseRadioNetwork, GlobalRanNodeId, HandoverCancel, HandoverCancelAcknowledge,
    HandoverPreparationFailure, HandoverRequired, HandoverType, SessionTransfer, TargetId,
};
use pith_sbi::namf_communication::UeContextCreateErrorData;
use pith_sbi::{Cause as SbiCause, Problem, ProblemMore};
use pith_types::{AmfUeNgapId, Tai};

/// Why a handover ends without success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HandoverError {
    /// The UE is not registered, has no security, or the gNB has no UE context.
    #[error("no UE context to hand over")]
    NoContext,
    /// Another handover of the UE is in progress.
    #[error("another handover is in progress")]
    InProgress,
    /// To another system, or from one.
    #[error("not a handover within 5GS")]
    OtherSystem,
    /// The gNB is not connected to this AMF, or does not serve the tracking area, and no other AMF serves that.
    #[error("the target is unknown")]
    UnknownTarget,
    /// It is a procedure between gNBs (TS 23.502 4.9.1.3).
    #[error("the target is the source gNB")]
    SourceGnb,
    /// The subscription does not allow service in the target's tracking area.
    #[error("the UE's mobility restrictions do not allow the target")]
    NotAllowed,
    /// No session can be handed over.
    #[error("no session is handed over")]
    NoSession,
    /// The target gNB or the target AMF refuses.
    #[error("the target refuses")]
    Refused,
    /// The target AMF refuses with that cause.
    #[error("the target AMF refuses: {0}")]
    ByTargetAmf(Cause),
    /// The target gNB or the target AMF does not answer.
    #[error("the target does not answer")]
    NoAnswer,
    /// This AMF serves none of the UE's slices.
    #[error("none of the UE's slices is served")]
    NoSlices,
    /// This AMF permits no NAS algorithms that the UE supports, or can't continue with its keys.
    #[error("the UE's NAS security is not permitted here")]
    Security,
    /// The UE is connected to this AMF, or this AMF has no room for it.
    #[error("the UE is not taken over")]
    NotTakenOver,
}

impl HandoverError {
    /// Cause of HANDOVER PREPARATION FAILURE (TS 38.413 9.3.1.2).
    const fn cause(self) -> Cause {
        Cause::RadioNetwork(match self {
            Self::ByTargetAmf(cause) => return cause,
            Self::NoContext | Self::NoSession | Self::Refused | Self::NotTakenOver => {
                CauseRadioNetwork::ho_failure_in_target_5GC_ngran_node_or_target_system
            }
            Self::NoSlices => CauseRadioNetwork::slice_not_supported,
            Self::Security => {
                CauseRadioNetwork::encryption_and_or_integrity_protection_algorithms_not_supported
            }
            Self::InProgress => CauseRadioNetwork::interaction_with_other_procedure,
            Self::OtherSystem | Self::SourceGnb | Self::NotAllowed => {
                CauseRadioNetwork::ho_target_not_allowed
            }
            Self::UnknownTarget => CauseRadioNetwork::unknown_targetID,
            Self::NoAnswer => CauseRadioNetwork::tngrelocprep_expiry,
        })
    }

    /// The error response to the source AMF (TS 29.518 6.1.3.2.3.1).
    pub fn problem(self) -> Problem {
        let error =
            UeContextCreateErrorData { ngap_cause: Some(n14::sbi_cause(self.cause())), ..Default::default() };
        let problem = Problem::new(SbiCause::HandoverFailure).detail(self);
        problem.with(ProblemMore::UeContextCreateError(Box::new(error)))
    }
}

/// Cause of the release of the source's connection after the handover.
pub(in crate::amf) const SUCCESSFUL: Cause = Cause::RadioNetwork(CauseRadioNetwork::successful_handover);

/// Cause of the release of the target's connection without a handover.
pub(super) const CANCELLED: Cause = Cause::RadioNetwork(CauseRadioNetwork::handover_cancelled);

/// Cause for a session that is not handed over.
pub(super) const NOT_PREPARED: Cause =
    Cause::RadioNetwork(CauseRadioNetwork::ho_failure_in_target_5GC_ngran_node_or_target_system);

pub(super) fn unsuccessful(pdu_session_id: u8, cause: Cause) -> SessionTransfer {
    SessionTransfer { pdu_session_id, transfer: HandoverPreparationUnsuccessfulTransfer { cause }.encode() }
}

/// HANDOVER REQUIRED of the source gNB (TS 38.413 8.4.1.2).
pub(crate) fn required(ue: &mut UeContext, env: &mut Env<'_>, mut message: HandoverRequired) {
    // The first item of a session counts.
    let mut seen = Vec::new();
    message.sessions.retain(|item| {
        let is_first = !seen.contains(&item.pdu_session_id);
        seen.push(item.pdu_session_id);
        is_first
    });
    match check(ue, env, &message) {
        Ok(Some(gnb)) => {
            let HandoverRequired { target, cause, source_to_target, sessions, .. } = message;
            ue.mobility = begin(ue, env, (gnb, target), (cause, source_to_target), sessions);
        }
        Ok(None) => ue.mobility = departure::begin(ue, env, message),
        Err(error) => fail_preparation(ue, env, error),
    }
}

/// The target gNB, if the handover is possible; `None` if it may be connected to another AMF.
fn check(
    ue: &UeContext,
    env: &Env<'_>,
    message: &HandoverRequired,
) -> Result<Option<GnbHandle>, HandoverError> {
    let connection =
        ue.connection.and_then(|key| env.connections.get(key)).ok_or(HandoverError::NoContext)?;
    if !ue.mobility.is_idle() {
        return Err(HandoverError::InProgress);
    }
    if connection.context != RanContext::Established || ue.security.is_none() || !ue.is_registered() {
        return Err(HandoverError::NoContext);
    }
    let TargetId::RanNode { node, tai } = &message.target else { return Err(HandoverError::OtherSystem) };
    if message.handover_type != HandoverType::intra5gs {
        return Err(HandoverError::OtherSystem);
    }
    if !ue.has_service_in(tai) && ue.emergency_session().is_none() {
        // TS 23.502 4.9.1.3.2 step 1, TS 23.501 5.3.4.1.1, 5.16.4.3.
        return Err(HandoverError::NotAllowed);
    }
    if env.gnbs.get(&connection.gnb).is_some_and(|source| source.node == *node) {
        return Err(HandoverError::SourceGnb);
    }
    let gnb = gnb_of(env.gnbs, node, tai);
    if gnb.is_none() {
        departure::check(ue)?;
    }
    Ok(gnb)
}

/// The gNB with that identity, if it is connected and serves the tracking area.
pub(in crate::amf) fn gnb_of(gnbs: &Gnbs, node: &GlobalRanNodeId, tai: &Tai) -> Option<GnbHandle> {
    let name = node.to_string();
    let is_it = |info: &crate::kit::GnbInfo| {
        info.global_id == name && info.supported.iter().any(|(served, _)| served == tai)
    };
    gnbs.iter().find(|(_, info)| is_it(info)).map(|(gnb, _)| *gnb)
}

/// Requests the SMFs to prepare the sessions.
pub(super) fn begin(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    (gnb, target): (GnbHandle, TargetId),
    (cause, source_to_target): (Option<Cause>, Vec<u8>),
    sessions: Vec<SessionTransfer>,
) -> Mobility {
    ue.modifies_target = false;
    let own = ue.location.map(|location| location.tai.plmn_id);
    ue.target_plmn = match &target {
        TargetId::RanNode { tai, .. } => Some(tai.plmn_id).filter(|plmn| own != Some(*plmn)),
        _ => None,
    };
    let mut state = AwaitingSessionPreparation {
        calls: Vec::new(),
        target: gnb,
        cause,
        source_to_target,
        sessions: Vec::new(),
        to_release: Vec::new(),
    };
    let is_restricted = matches!(&target, TargetId::RanNode { tai, .. } if !ue.has_service_in(tai));
    let emergency = ue.emergency_session();
    for item in sessions {
        let id = item.pdu_session_id;
        if is_restricted && emergency != Some(id) {
            let cause = Cause::RadioNetwork(CauseRadioNetwork::ho_target_not_allowed);
            state.to_release.push(unsuccessful(id, cause));
            continue;
        }
        match consumer::prepare_handover(ue, env, id, item.transfer, &target) {
            Some(call) => state.calls.push((call, id)),
            None => {
                let cause = Cause::RadioNetwork(CauseRadioNetwork::unknown_PDU_session_ID);
                state.to_release.push(unsuccessful(id, cause));
            }
        }
    }
    state.go_on(ue, env)
}

/// HANDOVER PREPARATION FAILURE to the source gNB, where the UE stays (TS 38.413 8.4.1.3), or the refusal to the source AMF.
pub(super) fn fail_preparation(ue: &mut UeContext, env: &mut Env<'_>, error: HandoverError) {
    ue.log_outcome(env, Level::Warn, "N2 handover", "preparation failed");
    env.out.log(Level::Warn, || format!("{}: handover: {error}", ue.name()));
    if ue.arrival.is_some() {
        return arrival::end(ue, env, error);
    }
    let (Some(key), Some(connection)) = (ue.connection, source_of(ue, env)) else { return };
    let failure = HandoverPreparationFailure {
        amf_ue_ngap_id: connection.id,
        ran_ue_ngap_id: connection.ran_id,
        cause: Some(error.cause()),
        diagnostics: None,
    };
    n2::respond(env, key, failure.encode());
}

/// The connection at the source gNB; `None` if that is being released: the gNB no longer knows the UE.
pub(super) fn source_of<'a>(ue: &UeContext, env: &'a Env<'_>) -> Option<&'a NgConnection> {
    let connection = env.connections.get(ue.connection?)?;
    (connection.context != RanContext::Releasing).then_some(connection)
}

/// Takes the call that was answered out of the list; returns its session.
fn take_call(calls: &mut Vec<(CallId, u8)>, call: CallId) -> Option<u8> {
    let at = calls.iter().position(|(id, _)| *id == call)?;
    Some(calls.swap_remove(at).1)
}

/// The handover is over, and the UE stays at its source gNB, which gets a key that it was not sent meanwhile ([`n2::rekey`]). The caller has
/// taken the state out of the UE's context.
pub(super) fn stay(ue: &mut UeContext, env: &mut Env<'_>) -> Mobility {
    ue.target_plmn = None;
    if ue.access_keys.is_outdated() {
        n2::rekey(ue, env);
    }
    Mobility::Idle
}

/// A session has ended. What its SMF answers to the handover's requests concerns no later session with the identity, and the target gNB releases
/// its resources. Returns whether it was commanded to.
pub(crate) fn session_ended(ue: &mut UeContext, env: &mut Env<'_>, session: &PduSession) -> bool {
    if ue.mobility.is_idle() {
        return false;
    }
    let is_completing = matches!(ue.mobility, Mobility::AwaitingSessionCompletion(_));
    let step = match std::mem::take(&mut ue.mobility) {
        Mobility::AwaitingSessionPreparation(state) => state.on_ended(ue, env, session.id),
        Mobility::AwaitingHandoverCommand(state) => state.on_ended(ue, env, session.id),
        Mobility::AwaitingHandoverNotify(state) => state.without(session.id).into(),
        Mobility::AwaitingSessionCompletion(state) if state.sessions().any(|id| id == session.id) => {
            state.on_ended(ue, env, session)
        }
        other => {
            ue.mobility = other;
            return false;
        }
    };
    settle(ue, env, step);
    is_completing
}

/// A UE that another AMF has handed over has no 5G-GUTI of this one. Normally it registers at once, as it is outside its registration area. The
/// timer runs while it is connected, and no handover is in progress, so that it starts again after the next handover, or after a procedure in
/// which it expired. When it expires first, the UE is requested to register; then it is deregistered ([`on_timer`]). Called after each step of a UE.
pub(in crate::amf) fn await_registration(ue: &mut UeContext, env: &mut Env<'_>) {
    let is_leaving = matches!(ue.procedure, Procedure::AwaitingDeregistrationAccept(_));
    let is_awaited = is_registration_due(ue) && ue.is_registered() && ue.mobility.is_idle() && !is_leaving;
    if is_awaited && ue.is_reachable(env) && ue.timers().iter().all(|(timer, _)| *timer != Timer::Handover) {
        ue.start(env, Timer::Handover, env.config.timers.handover_completion);
    }
}

/// Whether the UE has not registered since another AMF has handed it over.
fn is_registration_due(ue: &UeContext) -> bool {
    ue.guti.is_none() || ue.lacks_registration()
}

/// The gNB is about to release a UE that has no 5G-GUTI of this AMF yet: it gets one, with which it can be paged, and is requested to register.
/// A UE that was handed over to another AMF and back is in its registration area, and does not register by itself. SMFs may not have switched its
/// paths yet. Returns whether the command was sent.
pub(in crate::amf) fn allocate_guti(ue: &mut UeContext, env: &mut Env<'_>) -> bool {
    let is_there = matches!(ue.mobility, Mobility::Idle | Mobility::AwaitingSessionCompletion(_));
    if ue.guti.is_some() || !ue.is_registered() || !is_there {
        return false;
    }
    configuration_update::request_registration(ue, env);
    ue.guti.is_some()
}

/// The UE has not registered within the time. It gets a 5G-GUTI, and is requested to. The second time it is deregistered with 're-registration
/// required': this AMF keeps no context of a UE that another one may serve (TS 24.501 5.5.2.3.1).
fn on_registration_overdue(ue: &mut UeContext, env: &mut Env<'_>) {
    if ue.guti.is_none() {
        return configuration_update::request_registration(ue, env);
    }
    // A UE that is in CM-IDLE registers when it returns, or its mobile reachable timer expires.
    let is_at_rest = matches!(ue.procedure, Procedure::Idle) && ue.is_reachable(env);
    if is_at_rest && ue.emergency_session().is_none() {
        deregistration::by_network(ue, env, Reason::ReRegistrationRequired);
    }
}

/// Tells SMFs that the handover does not take place.
fn cancel_sessions(ue: &mut UeContext, env: &mut Env<'_>, sessions: &[u8]) {
    for id in sessions {
        consumer::cancel_handover(ue, env, *id);
    }
}

/// Releases the connection at the target gNB.
fn release_target(env: &mut Env<'_>, target: AmfUeNgapId, cause: Cause) {
    let Some(key) = env.connections.find(target) else { return };
    if let Some(connection) = env.connections.get_mut(key) {
        connection.ue = None;
    }
    n2::release_connection(env, key, cause);
}

/// The connection at the target gNB that a state has.
pub(in crate::amf) const fn target_of(state: &Mobility) -> Option<AmfUeNgapId> {
    match state {
        Mobility::AwaitingHandoverRequestAcknowledge(state) => Some(state.target),
        Mobility::AwaitingHandoverCommand(state) => Some(state.target),
        Mobility::AwaitingHandoverNotify(state) => Some(state.target),
        Mobility::Idle
        | Mobility::AwaitingPathSwitch(_)
        | Mobility::AwaitingSessionPreparation(_)
        | Mobility::AwaitingSessionCompletion(_)
        | Mobility::AwaitingFlows(_)
        | Mobility::AwaitingUeContextCreation(_)
        | Mobility::AwaitingN2InfoNotify(_) => None,
    }
}

/// Sessions whose SMFs have prepared the handover, or are preparing it.
fn prepared_sessions(state: &Mobility) -> Vec<u8> {
    let of_calls = |calls: &[(CallId, u8)]| calls.iter().map(|(_, id)| *id).collect::<Vec<_>>();
    match state {
        Mobility::AwaitingSessionPreparation(state) => {
            let prepared = state.sessions.iter().map(|item| item.pdu_session_id);
            of_calls(&state.calls).into_iter().chain(prepared).collect()
        }
        Mobility::AwaitingHandoverRequestAcknowledge(state) => state.sessions.clone(),
        Mobility::AwaitingHandoverCommand(state) => {
            let accepted = state.accepted.iter().map(|item| item.pdu_session_id);
            of_calls(&state.calls).into_iter().chain(accepted).collect()
        }
        Mobility::AwaitingHandoverNotify(state) => state.accepted.clone(),
        Mobility::Idle
        | Mobility::AwaitingPathSwitch(_)
        | Mobility::AwaitingSessionCompletion(_)
        | Mobility::AwaitingFlows(_)
        | Mobility::AwaitingUeContextCreation(_)
        | Mobility::AwaitingN2InfoNotify(_) => Vec::new(),
    }
}

/// Ends a handover that is not complete: releases the target's connection, and notifies the SMFs, or the target AMF. The context of a
/// UE that another AMF hands over ends.
pub(super) fn withdraw(ue: &mut UeContext, env: &mut Env<'_>, state: &Mobility) {
    ue.stop(env, Timer::Handover);
    ue.stop(env, Timer::HandoverCompletion);
    ue.target_plmn = None;
    if let Some(target) = target_of(state) {
        release_target(env, target, CANCELLED);
    }
    cancel_sessions(ue, env, &prepared_sessions(state));
    super::announce_again(&mut ue.sessions, state);
    super::note_left_switches(&mut ue.sessions, state);
    if let Mobility::AwaitingN2InfoNotify(state) = state {
        state.withdraw(ue, env);
    }
    arrival::end(ue, env, HandoverError::NotTakenOver);
}

/// ReleaseUEContext of the source AMF: the handover does not take place (TS 29.518 5.2.2.2.4).
pub(crate) fn released_by_source(ue: &mut UeContext, env: &mut Env<'_>) {
    let state = std::mem::take(&mut ue.mobility);
    withdraw(ue, env, &state);
    ue.log_outcome(env, Level::Info, "N2 handover", "cancelled");
}

/// HANDOVER CANCEL of the source gNB: HANDOVER CANCEL ACKNOWLEDGE, also if there is nothing to cancel (TS 38.413 8.4.5.2).
pub(crate) fn cancel(ue: &mut UeContext, env: &mut Env<'_>, message: &HandoverCancel) {
    if ue.mobility.is_n2_handover() {
        let state = std::mem::take(&mut ue.mobility);
        withdraw(ue, env, &state);
        ue.log_outcome(env, Level::Info, "N2 handover", "cancelled");
        ue.mobility = stay(ue, env);
    }
    let Some(connection) = ue.connection.and_then(|key| env.connections.get(key)) else { return };
    let acknowledge = HandoverCancelAcknowledge {
        amf_ue_ngap_id: message.amf_ue_ngap_id,
        ran_ue_ngap_id: message.ran_ue_ngap_id,
        diagnostics: None,
    };
    n2::send_to(env.out, connection.side(), acknowledge.encode());
    delivery::send_held(ue, env);
    configuration_update::confirm_counts(ue, env);
}

/// The target gNB has closed its connection, or is gone. Before HANDOVER COMMAND the preparation has failed; later the source gNB waits
/// for the UE, and cancels or releases it.
pub(crate) fn target_lost(ue: &mut UeContext, env: &mut Env<'_>) {
    let step = match std::mem::take(&mut ue.mobility) {
        Mobility::AwaitingHandoverRequestAcknowledge(state) => state.end(ue, env, HandoverError::Refused),
        state @ (Mobility::AwaitingHandoverCommand(_) | Mobility::AwaitingHandoverNotify(_)) => {
            let is_prepared = matches!(state, Mobility::AwaitingHandoverNotify(_));
            withdraw(ue, env, &state);
            if is_prepared {
                ue.log_outcome(env, Level::Warn, "N2 handover", "the target gNB is gone");
            } else {
                fail_preparation(ue, env, HandoverError::Refused);
            }
            return_to_source(ue, env)
        }
        other => other,
    };
    settle(ue, env, step);
}

/// The handover is over without success. Without a source gNB, the UE is in CM-IDLE.
fn return_to_source(ue: &mut UeContext, env: &mut Env<'_>) -> Mobility {
    if ue.connection.is_none() && ue.is_registered() {
        ue_context_release::on_connection_lost(ue, env);
        ue_context_release::on_idle(ue, env);
        return Mobility::Idle;
    }
    stay(ue, env)
}

/// The timer of the handover expired: the target gNB does not answer, or the UE did not arrive there.
pub(super) fn on_timer(ue: &mut UeContext, env: &mut Env<'_>, state: Mobility) -> Mobility {
    match state {
        Mobility::AwaitingHandoverRequestAcknowledge(state) => {
            release_target(env, state.target, Cause::RadioNetwork(CauseRadioNetwork::tngrelocprep_expiry));
            state.end(ue, env, HandoverError::NoAnswer)
        }
        state @ (Mobility::AwaitingHandoverNotify(_) | Mobility::AwaitingN2InfoNotify(_)) => {
            withdraw(ue, env, &state);
            ue.log_outcome(env, Level::Warn, "N2 handover", "the UE did not arrive");
            return_to_source(ue, env)
        }
        Mobility::Idle if ue.is_registered() && is_registration_due(ue) => {
            on_registration_overdue(ue, env);
            Mobility::Idle
        }
        // The wait for the UE's registration goes on after the handover.
        state if is_registration_due(ue) => state,
        state => {
            env.out.log(Level::Warn, || format!("{}: Handover timer expired in {}", ue.name(), state.name()));
            state
        }
    }
}

/// Stores the next state; sends what was queued for the handover, if it is over.
fn settle(ue: &mut UeContext, env: &mut Env<'_>, next: Mobility) {
    ue.mobility = next;
    delivery::send_held(ue, env);
}

macro_rules! into_mobility {
    ($($state:ident)*) => {$(
        impl From<$state> for Mobility {
            fn from(state: $state) -> Self {
                Self::$state(Box::new(state))
            }
        }
    )*};
}

into_mobility! {
    AwaitingSessionPreparation
    AwaitingHandoverRequestAcknowledge
    AwaitingHandoverCommand
    AwaitingHandoverNotify
    AwaitingSessionCompletion
}
