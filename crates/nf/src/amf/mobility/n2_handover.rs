//! N2 handover to a gNB of this AMF (TS 23.502 4.9.1.3; TS 38.413 8.4.1 to 8.4.3, 8.4.5 to 8.4.7).
//!
//! | step | state | from | timer | TS 23.502 4.9.1.3 |
//! |---|---|---|---|---|
//! | HANDOVER REQUIRED | | source gNB | | .2 1 |
//! | UpdateSMContext (PREPARING), a session each | [`AwaitingSessionPreparation`] | SMFs | | .2 4 to 7 |
//! | HANDOVER REQUEST with NH and NCC | [`AwaitingHandoverRequestAcknowledge`] | target gNB | preparation | .2 9, 10 |
//! | UpdateSMContext (PREPARED), a session each | [`AwaitingHandoverCommand`] | SMFs | | .2 11 |
//! | HANDOVER COMMAND; RAN STATUS TRANSFER is relayed | [`AwaitingHandoverNotify`] | target gNB | completion | .3 1 to 5 |
//! | UpdateSMContext (COMPLETED), a session each; UE CONTEXT RELEASE COMMAND to the source gNB | [`AwaitingSessionCompletion`] | SMFs | | .3 6 to 14 |
//!
//! The UE has two NG connections from HANDOVER REQUEST on: the target gNB's has an AMF-UE-NGAP-ID of its own, of the UE's block. Until
//! HANDOVER NOTIFY the UE's connection is that of the source gNB. SMFs' messages for UE and gNB are queued meanwhile.
//!
//! The handover of a UE from another AMF has the same steps from UpdateSMContext on, with that AMF in place of the source gNB
//! ([`super::arrival`]). A handover to a gNB that is not connected here is one to another AMF ([`super::departure`]).

use super::{Mobility, arrival, departure, n14};
use crate::amf::access_keys;
use crate::amf::connection::{NgConnection, RanContext};
use crate::amf::consumer;
use crate::amf::context::{CallId, Env, UeContext};
use crate::amf::gnbs::Gnbs;
use crate::amf::procedure::{configuration_update, ue_context_release};
use crate::amf::session::{PduSession, UserPlane};
use crate::amf::{delivery, ladn, n2};
use crate::kit::document::pack_struct;
use crate::kit::{GnbHandle, Key, Level, Timer};
use pith_ngap::transfer::HandoverPreparationUnsuccessfulTransfer;
use pith_ngap::{
    Cause, CauseRadioNetwork, DownlinkRanEarlyStatusTransfer, DownlinkRanStatusTransfer, EarlyRanStatus,
    GlobalRanNodeId, HandoverCancel, HandoverCancelAcknowledge, HandoverCommand, HandoverFailure,
    HandoverItem, HandoverNotify, HandoverPreparationFailure, HandoverRequestAcknowledge, HandoverRequired,
    HandoverType, RanStatus, SessionTransfer, TargetId,
};
use pith_sbi::namf_communication::{NgapIeType, UeContextCreateErrorData};
use pith_sbi::nsmf_pdusession::N2SmInfoType;
use pith_sbi::{Cause as SbiCause, Problem, ProblemMore, Reply, Response};
use pith_types::{AmfUeNgapId, Tai};

/// SMFs prepare the sessions.
#[derive(Debug)]
pub(crate) struct AwaitingSessionPreparation {
    calls: Vec<(CallId, u8)>,
    target: GnbHandle,
    cause: Option<Cause>,
    source_to_target: Vec<u8>,
    sessions: Vec<HandoverItem>,
    to_release: Vec<SessionTransfer>,
}

/// HANDOVER REQUEST was sent.
#[derive(Debug)]
pub(crate) struct AwaitingHandoverRequestAcknowledge {
    /// The connection at the target gNB.
    target: AmfUeNgapId,
    /// Sessions in the request.
    sessions: Vec<u8>,
    to_release: Vec<SessionTransfer>,
}

/// SMFs get the target gNB's tunnels.
#[derive(Debug)]
pub(crate) struct AwaitingHandoverCommand {
    calls: Vec<(CallId, u8)>,
    target: AmfUeNgapId,
    target_to_source: Vec<u8>,
    /// Sessions for which the target gNB has resources.
    admitted: Vec<u8>,
    accepted: Vec<SessionTransfer>,
    to_release: Vec<SessionTransfer>,
}

/// HANDOVER COMMAND was sent: the UE moves.
#[derive(Debug)]
pub(crate) struct AwaitingHandoverNotify {
    target: AmfUeNgapId,
    /// Sessions that are handed over.
    accepted: Vec<u8>,
    /// Sessions for which the target gNB has resources, and whose SMFs refused.
    refused: Vec<u8>,
}

/// The UE is at the target gNB; SMFs switch the paths.
#[derive(Debug)]
pub(crate) struct AwaitingSessionCompletion {
    calls: Vec<(CallId, u8)>,
}

pack_struct!(AwaitingSessionPreparation { calls, target, cause, source_to_target, sessions, to_release });
pack_struct!(AwaitingHandoverRequestAcknowledge { target, sessions, to_release });
pack_struct!(AwaitingHandoverCommand { calls, target, target_to_source, admitted, accepted, to_release });
pack_struct!(AwaitingHandoverNotify { target, accepted, refused });
pack_struct!(AwaitingSessionCompletion { calls });

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
            Self::OtherSystem | Self::NotAllowed => CauseRadioNetwork::ho_target_not_allowed,
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
pub(super) const SUCCESSFUL: Cause = Cause::RadioNetwork(CauseRadioNetwork::successful_handover);
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

/// The handover is over, and the UE stays at its source gNB, which gets a key that it was not sent meanwhile ([`n2::rekey`]). The caller has
/// taken the state out of the UE's context.
pub(super) fn stay(ue: &UeContext, env: &mut Env<'_>) -> Mobility {
    if ue.access_keys.is_outdated() {
        n2::rekey(ue, env);
    }
    Mobility::Idle
}

/// Takes the call that was answered out of the list; returns its session.
fn take_call(calls: &mut Vec<(CallId, u8)>, call: CallId) -> Option<u8> {
    let at = calls.iter().position(|(id, _)| *id == call)?;
    Some(calls.swap_remove(at).1)
}

/// The N2 information of an SMF's reply, if it has that type; else the transfer for the source gNB.
fn transfer_of(
    reply: Reply,
    wanted: &N2SmInfoType,
) -> Result<Vec<u8>, (Option<Vec<u8>>, Option<Box<Problem>>)> {
    match reply {
        Ok(Response::SmContextUpdated(updated)) if updated.n2_sm_info_type.as_ref() == Some(wanted) => {
            Ok(updated.n2_sm_info.map(|info| info.content.to_vec()).unwrap_or_default())
        }
        Ok(_) => Err((None, None)),
        Err(problem) => {
            let transfer = match &problem.more {
                Some(ProblemMore::SmContextUpdateError(error))
                    if error.n2_sm_info_type == Some(N2SmInfoType::HandoverPrepFail) =>
                {
                    error.n2_sm_info.as_ref().map(|info| info.content.to_vec())
                }
                _ => None,
            };
            Err((transfer, Some(problem)))
        }
    }
}

/// A session that is not handed over: its item for the source gNB.
fn not_handed_over(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    id: u8,
    (transfer, problem): (Option<Vec<u8>>, Option<Box<Problem>>),
) -> SessionTransfer {
    env.out.log(Level::Warn, || {
        let why = problem.as_ref().map_or_else(|| "unexpected reply".into(), ToString::to_string);
        format!("{}: session {id} is not handed over: {why}", ue.name())
    });
    match problem.map(|problem| problem.status) {
        Some(404) => ue.sessions.retain(|session| session.id != id),
        // Without an answer the SMF may have prepared the session, with a tunnel for forwarded packets.
        Some(504) => consumer::cancel_handover(ue, env, id),
        _ => {}
    }
    match transfer {
        Some(transfer) => SessionTransfer { pdu_session_id: id, transfer },
        None => unsuccessful(id, NOT_PREPARED),
    }
}

impl AwaitingSessionPreparation {
    /// Whether the SMF of a session has not answered yet.
    pub fn prepares(&self, session: u8) -> bool {
        self.calls.iter().any(|(_, id)| *id == session)
    }

    pub fn awaits_any(&self, meets: impl Fn(CallId) -> bool) -> bool {
        self.calls.iter().any(|(id, _)| meets(*id))
    }

    /// The reply of one SMF.
    pub fn on_reply(mut self, ue: &mut UeContext, env: &mut Env<'_>, call: CallId, reply: Reply) -> Mobility {
        let Some(id) = take_call(&mut self.calls, call) else { return self.into() };
        match (transfer_of(reply, &N2SmInfoType::PduResSetupReq), ue.session(id)) {
            (Ok(transfer), Some(session)) => {
                let snssai = session.snssai;
                self.sessions.push(HandoverItem { pdu_session_id: id, snssai, transfer });
            }
            (Ok(_), None) => self.to_release.push(unsuccessful(id, NOT_PREPARED)),
            (Err(error), _) => self.to_release.push(not_handed_over(ue, env, id, error)),
        }
        self.go_on(ue, env)
    }

    fn on_ended(mut self, ue: &mut UeContext, env: &mut Env<'_>, id: u8) -> Mobility {
        let is_concerned = self.prepares(id) || self.sessions.iter().any(|item| item.pdu_session_id == id);
        if !is_concerned {
            return self.into();
        }
        self.calls.retain(|(_, session)| *session != id);
        self.sessions.retain(|item| item.pdu_session_id != id);
        self.to_release.push(unsuccessful(id, NOT_PREPARED));
        self.go_on(ue, env)
    }

    /// HANDOVER REQUEST to the target gNB, once all SMFs have replied (TS 38.413 8.4.2.2; TS 33.501 6.9.2.3.3). The algorithms of NAS
    /// change only if another AMF hands the UE over.
    fn go_on(self, ue: &mut UeContext, env: &mut Env<'_>) -> Mobility {
        if !self.calls.is_empty() {
            return self.into();
        }
        if self.sessions.is_empty() {
            fail_preparation(ue, env, HandoverError::NoSession);
            return stay(ue, env);
        }
        let ids: Vec<u8> = self.sessions.iter().map(|item| item.pdu_session_id).collect();
        let selected = if ue.arrival.is_some() { arrival::select_algorithms(ue, env) } else { Ok(None) };
        let nas_container = match selected {
            Ok(container) => container.map(|container| container.octets()),
            Err(error) => {
                cancel_sessions(ue, env, &ids);
                fail_preparation(ue, env, error);
                return stay(ue, env);
            }
        };
        let is_connected = env.gnbs.contains_key(&self.target);
        let key =
            if is_connected { env.connections.open_for_handover(ue.id.block, self.target) } else { None };
        let next_hop =
            if ue.arrival.is_some() { ue.access_keys.adopted() } else { access_keys::next_hop(ue) };
        let (Some(key), Some(next_hop)) = (key, next_hop) else {
            cancel_sessions(ue, env, &ids);
            fail_preparation(ue, env, HandoverError::UnknownTarget);
            return stay(ue, env);
        };
        let Some(connection) = env.connections.get_mut(key) else { return Mobility::Idle };
        connection.ue = Some(ue.key);
        let target = connection.id;
        let Self { cause, source_to_target, sessions, to_release, .. } = self;
        let has_new_k_amf = ue.arrival.as_ref().is_some_and(|arrival| arrival.derived_with.is_some());
        let content =
            n2::HandoverContent { cause, next_hop, has_new_k_amf, nas_container, sessions, source_to_target };
        n2::handover_request(ue, env, key, content);
        ue.start(env, Timer::Handover, env.config.timers.handover_preparation);
        AwaitingHandoverRequestAcknowledge { target, sessions: ids, to_release }.into()
    }
}

impl AwaitingHandoverRequestAcknowledge {
    /// HANDOVER REQUEST ACKNOWLEDGE: the SMFs get the target gNB's tunnels (TS 23.502 4.9.1.3.2 step 11a).
    fn on_acknowledge(
        self,
        ue: &mut UeContext,
        env: &mut Env<'_>,
        message: HandoverRequestAcknowledge,
    ) -> Mobility {
        ue.stop(env, Timer::Handover);
        let Self { target, sessions, to_release } = self;
        let target_to_source = message.target_to_source;
        let mut state = AwaitingHandoverCommand {
            calls: Vec::new(),
            target,
            target_to_source,
            admitted: Vec::new(),
            accepted: Vec::new(),
            to_release,
        };
        let admitted =
            message.admitted.into_iter().flatten().map(|item| (item, N2SmInfoType::HandoverReqAck));
        let failed =
            message.failed.into_iter().flatten().map(|item| (item, N2SmInfoType::HandoverResAllocFail));
        let mut answered = Vec::new();
        for (item, kind) in admitted.chain(failed).filter(|(item, _)| sessions.contains(&item.pdu_session_id))
        {
            let id = item.pdu_session_id;
            if answered.contains(&id) {
                // The first item of a session counts.
                continue;
            }
            answered.push(id);
            if kind == N2SmInfoType::HandoverReqAck {
                state.admitted.push(id);
            }
            match consumer::handover_prepared(ue, env, id, item.transfer, kind) {
                Some(call) => state.calls.push((call, id)),
                None => state.to_release.push(unsuccessful(id, NOT_PREPARED)),
            }
        }
        for id in sessions.into_iter().filter(|id| !answered.contains(id)) {
            cancel_sessions(ue, env, &[id]);
            state.to_release.push(unsuccessful(id, NOT_PREPARED));
        }
        state.go_on(ue, env)
    }

    /// The target gNB does not prepare the handover.
    fn end(self, ue: &mut UeContext, env: &mut Env<'_>, error: HandoverError) -> Mobility {
        ue.stop(env, Timer::Handover);
        cancel_sessions(ue, env, &self.sessions);
        fail_preparation(ue, env, error);
        stay(ue, env)
    }
}

impl AwaitingHandoverCommand {
    pub fn awaits_any(&self, meets: impl Fn(CallId) -> bool) -> bool {
        self.calls.iter().any(|(id, _)| meets(*id))
    }

    /// The reply of one SMF.
    pub fn on_reply(mut self, ue: &mut UeContext, env: &mut Env<'_>, call: CallId, reply: Reply) -> Mobility {
        let Some(pdu_session_id) = take_call(&mut self.calls, call) else { return self.into() };
        match transfer_of(reply, &N2SmInfoType::HandoverCmd) {
            Ok(transfer) => self.accepted.push(SessionTransfer { pdu_session_id, transfer }),
            Err(error) => self.to_release.push(not_handed_over(ue, env, pdu_session_id, error)),
        }
        self.go_on(ue, env)
    }

    fn on_ended(mut self, ue: &mut UeContext, env: &mut Env<'_>, id: u8) -> Mobility {
        let is_accepted = self.accepted.iter().any(|item| item.pdu_session_id == id);
        if !is_accepted && !self.awaits_session(id) {
            return self.into();
        }
        self.calls.retain(|(_, session)| *session != id);
        self.accepted.retain(|item| item.pdu_session_id != id);
        self.to_release.push(unsuccessful(id, NOT_PREPARED));
        self.go_on(ue, env)
    }

    fn awaits_session(&self, id: u8) -> bool {
        self.calls.iter().any(|(_, session)| *session == id)
    }

    /// HANDOVER COMMAND to the source gNB, once all SMFs have replied (TS 38.413 8.4.1.2).
    fn go_on(self, ue: &mut UeContext, env: &mut Env<'_>) -> Mobility {
        if !self.calls.is_empty() {
            return self.into();
        }
        let Self { target, target_to_source, mut admitted, accepted, to_release, .. } = self;
        if accepted.is_empty() {
            release_target(env, target, NOT_PREPARED);
            fail_preparation(ue, env, HandoverError::NoSession);
            return stay(ue, env);
        }
        let ids: Vec<u8> = accepted.iter().map(|item| item.pdu_session_id).collect();
        admitted.retain(|id| !ids.contains(id));
        if ue.arrival.is_some() {
            arrival::prepared(ue, env, accepted, to_release, target_to_source);
            ue.start(env, Timer::Handover, env.config.timers.handover_completion);
            return AwaitingHandoverNotify { target, accepted: ids, refused: admitted }.into();
        }
        let (Some(key), Some(source)) = (ue.connection, source_of(ue, env)) else {
            release_target(env, target, CANCELLED);
            cancel_sessions(ue, env, &ids);
            ue.log_outcome(env, Level::Info, "N2 handover", "the source gNB has released the UE");
            return Mobility::Idle;
        };
        let command = HandoverCommand {
            amf_ue_ngap_id: source.id,
            ran_ue_ngap_id: source.ran_id,
            handover_type: HandoverType::intra5gs,
            nas_security_parameters: None,
            sessions: Some(accepted),
            to_release: (!to_release.is_empty()).then_some(to_release),
            target_to_source,
            diagnostics: None,
        };
        n2::respond(env, key, command.encode());
        ue.start(env, Timer::Handover, env.config.timers.handover_completion);
        AwaitingHandoverNotify { target, accepted: ids, refused: admitted }.into()
    }
}

impl AwaitingHandoverNotify {
    /// The session is not handed over, although the target gNB has resources for it.
    fn without(mut self, id: u8) -> Self {
        let is_accepted = self.accepted.contains(&id);
        self.accepted.retain(|accepted| *accepted != id);
        self.refused.extend(is_accepted.then_some(id));
        self
    }

    /// HANDOVER NOTIFY: the UE is at the target gNB (TS 38.413 8.4.3.2). The source gNB's connection is released, and the SMFs switch the
    /// paths.
    fn on_notify(
        self,
        ue: &mut UeContext,
        env: &mut Env<'_>,
        key: Key,
        message: &HandoverNotify,
    ) -> Mobility {
        ue.stop(env, Timer::Handover);
        let moved = ladn::note_location(ue, env.config, message.location);
        let source = ue.connection.replace(key);
        let left = source.and_then(|source| env.connections.get(source)).map(|it| (it.gnb, it.ran_id));
        if let Some(connection) = env.connections.get_mut(key) {
            connection.context = RanContext::Established;
            // Until the SMFs have switched the paths, an NG Setup of the source gNB waits.
            connection.left = left;
        }
        if let Some(source) = source {
            delivery::leave_source(ue, env, source, |id| self.accepted.contains(&id));
            n2::release_connection(env, source, SUCCESSFUL);
            if let Some(connection) = env.connections.get_mut(source) {
                connection.detach(ue);
            }
        }
        let arrival = ue.arrival.take();
        let is_new_amf = arrival.is_some();
        if let Some(arrival) = arrival {
            arrival::arrived(ue, env, *arrival);
        }
        let others = ue.sessions.iter().filter(|session| !self.accepted.contains(&session.id));
        let others: Vec<u8> = others.map(|session| session.id).collect();
        for id in others {
            if is_new_amf {
                consumer::announce_deactivated(ue, env, id);
            } else {
                consumer::deactivate(ue, env, id);
            }
        }
        for id in self.refused {
            release_at_target(ue, env, id);
        }
        let mut calls = Vec::new();
        for id in self.accepted {
            let call = consumer::complete_handover(ue, env, id, is_new_amf);
            calls.extend(call.map(|call| (call, id)));
        }
        moved.report(ue, env);
        AwaitingSessionCompletion { calls }.go_on(ue, env)
    }
}

impl AwaitingSessionCompletion {
    /// The sessions whose SMFs have not answered.
    pub fn sessions(&self) -> impl Iterator<Item = u8> {
        self.calls.iter().map(|(_, id)| *id)
    }

    pub fn awaits_any(&self, meets: impl Fn(CallId) -> bool) -> bool {
        self.calls.iter().any(|(id, _)| meets(*id))
    }

    /// The reply of one SMF. A session whose path was not switched has no user plane.
    pub fn on_reply(mut self, ue: &mut UeContext, env: &mut Env<'_>, call: CallId, reply: Reply) -> Mobility {
        let Some(id) = take_call(&mut self.calls, call) else { return self.into() };
        match reply {
            Ok(_) => {
                if let Some(session) = ue.session_mut(id) {
                    session.user_plane = UserPlane::Activated;
                }
            }
            Err(problem) => {
                env.out
                    .log(Level::Warn, || format!("{}: session {id} is not switched: {problem}", ue.name()));
                let is_releasing = ue.session(id).is_some_and(is_released);
                if problem.status == 404 {
                    ue.sessions.retain(|session| session.id != id);
                } else if !is_releasing {
                    // If another AMF has handed the UE over, the session may still be that AMF's.
                    consumer::announce_deactivated(ue, env, id);
                }
                if !is_releasing {
                    release_at_target(ue, env, id);
                }
            }
        }
        self.go_on(ue, env)
    }

    /// The SMF has ended the session, and perhaps restarted before its answer: a late reply, or none, concerns no session any longer.
    fn on_ended(mut self, ue: &mut UeContext, env: &mut Env<'_>, session: &PduSession) -> Mobility {
        self.calls.retain(|(_, id)| *id != session.id);
        if !is_released(session) {
            delivery::release_ended(ue, env, session);
        }
        self.go_on(ue, env)
    }

    fn go_on(self, ue: &mut UeContext, env: &mut Env<'_>) -> Mobility {
        if !self.calls.is_empty() {
            return self.into();
        }
        if ue.access_keys.is_outdated() {
            n2::rekey(ue, env);
        }
        ue.log_outcome(env, Level::Info, "N2 handover", "ok");
        Mobility::Idle
    }
}

/// Whether the target gNB has released the resources of a session, or has got the command: the SMF may have ended the session meanwhile, or
/// requested a setup.
const fn is_released(session: &PduSession) -> bool {
    matches!(session.user_plane, UserPlane::Releasing | UserPlane::Replacing | UserPlane::Deactivated)
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
/// which it expired. Called after each step of a UE.
pub(in crate::amf) fn await_registration(ue: &mut UeContext, env: &mut Env<'_>) {
    let is_awaited = ue.guti.is_none() && ue.is_registered() && ue.mobility.is_idle();
    if is_awaited && ue.is_reachable(env) && ue.timers().iter().all(|(timer, _)| *timer != Timer::Handover) {
        ue.start(env, Timer::Handover, env.config.timers.handover_completion);
    }
}

/// The target gNB releases the resources of a session whose user plane is deactivated. Its answer concerns no SMF.
fn release_at_target(ue: &mut UeContext, env: &mut Env<'_>, id: u8) {
    match ue.session_mut(id) {
        Some(session) => {
            session.user_plane = UserPlane::Replacing;
            n2::release_resources(ue, env, id);
        }
        None => delivery::release_former(ue, env, id),
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
    if let Some(target) = target_of(state) {
        release_target(env, target, CANCELLED);
    }
    cancel_sessions(ue, env, &prepared_sessions(state));
    super::announce_again(&mut ue.sessions, state);
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

/// HANDOVER REQUEST ACKNOWLEDGE of the target gNB.
pub(crate) fn acknowledged(ue: &mut UeContext, env: &mut Env<'_>, message: HandoverRequestAcknowledge) {
    let step = match std::mem::take(&mut ue.mobility) {
        Mobility::AwaitingHandoverRequestAcknowledge(state) => state.on_acknowledge(ue, env, message),
        other => other,
    };
    settle(ue, env, step);
}

/// HANDOVER FAILURE of the target gNB (TS 38.413 8.4.2.3), whose connection is closed already.
pub(crate) fn refused(ue: &mut UeContext, env: &mut Env<'_>, message: &HandoverFailure) {
    env.out.log(Level::Warn, || {
        format!("{}: HANDOVER FAILURE: {}", ue.name(), crate::amf::refusal::text_of(message.cause))
    });
    let step = match std::mem::take(&mut ue.mobility) {
        Mobility::AwaitingHandoverRequestAcknowledge(state) => state.end(ue, env, HandoverError::Refused),
        other => other,
    };
    settle(ue, env, step);
}

/// HANDOVER NOTIFY over the target gNB's connection.
pub(crate) fn notified(ue: &mut UeContext, env: &mut Env<'_>, key: Key, message: &HandoverNotify) {
    let step = match std::mem::take(&mut ue.mobility) {
        Mobility::AwaitingHandoverNotify(state) => state.on_notify(ue, env, key, message),
        other => other,
    };
    settle(ue, env, step);
}

/// UPLINK RAN STATUS TRANSFER of the source gNB: relayed to the target gNB, or to its AMF (TS 38.413 8.4.6, 8.4.7).
pub(crate) fn relay_status(ue: &UeContext, env: &mut Env<'_>, status: RanStatus) {
    match &ue.mobility {
        Mobility::AwaitingN2InfoNotify(state) => {
            let kind = NgapIeType::RanStatusTransContainer;
            consumer::transfer_ran_status(env, state.context(), n14::information(kind, status.encode()));
        }
        _ => send_status(ue, env, status),
    }
}

/// DOWNLINK RAN STATUS TRANSFER to the target gNB.
pub(super) fn send_status(ue: &UeContext, env: &mut Env<'_>, status: RanStatus) {
    let Some(target) = prepared_target(ue, env) else { return };
    let (amf_ue_ngap_id, ran_ue_ngap_id) = (target.id, target.ran_id);
    let (message, side) =
        (DownlinkRanStatusTransfer { amf_ue_ngap_id, ran_ue_ngap_id, status }, target.side());
    n2::send_to(env.out, side, message.encode());
}

/// UPLINK RAN EARLY STATUS TRANSFER of the source gNB of a DAPS handover: relayed to the target gNB, or to its AMF (TS 38.413 8.4.9, 8.4.10).
pub(crate) fn relay_early_status(ue: &UeContext, env: &mut Env<'_>, status: EarlyRanStatus) {
    match &ue.mobility {
        Mobility::AwaitingN2InfoNotify(state) => {
            let kind = NgapIeType::EarlyStatusTransContainer;
            consumer::transfer_ran_status(env, state.context(), n14::information(kind, status.encode()));
        }
        _ => send_early_status(ue, env, status),
    }
}

/// DOWNLINK RAN EARLY STATUS TRANSFER to the target gNB.
pub(super) fn send_early_status(ue: &UeContext, env: &mut Env<'_>, status: EarlyRanStatus) {
    let Some(target) = prepared_target(ue, env) else { return };
    let (amf_ue_ngap_id, ran_ue_ngap_id) = (target.id, target.ran_id);
    let (message, side) =
        (DownlinkRanEarlyStatusTransfer { amf_ue_ngap_id, ran_ue_ngap_id, status }, target.side());
    n2::send_to(env.out, side, message.encode());
}

/// The connection at the target gNB, while the UE is between the two.
fn prepared_target<'a>(ue: &UeContext, env: &'a Env<'_>) -> Option<&'a NgConnection> {
    let Mobility::AwaitingHandoverNotify(state) = &ue.mobility else { return None };
    env.connections.find(state.target).and_then(|key| env.connections.get(key))
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

/// Whether the UE may have got HANDOVER COMMAND: it leaves its source gNB, whatever becomes of that (TS 23.502 4.9.1.3.3).
pub(crate) fn outlives_source(ue: &UeContext) -> bool {
    let is_commanded =
        matches!(ue.mobility, Mobility::AwaitingHandoverNotify(_) | Mobility::AwaitingN2InfoNotify(_));
    is_commanded && ue.arrival.is_none()
}

/// The connection at the source gNB is lost after HANDOVER COMMAND. The UE is expected at the target gNB until the timer expires. Its sessions
/// keep their user planes: those that are not handed over are deactivated at HANDOVER NOTIFY.
pub(crate) fn source_lost(ue: &UeContext, env: &mut Env<'_>) {
    env.out.log(Level::Info, || {
        format!("{}: the source gNB is gone, and the UE is expected at the target gNB", ue.name())
    });
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
        Mobility::Idle if ue.is_registered() && ue.guti.is_none() => {
            configuration_update::request_registration(ue, env);
            Mobility::Idle
        }
        // The wait for the UE's registration goes on after the handover.
        state if ue.guti.is_none() => state,
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
