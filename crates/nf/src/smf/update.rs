//! Nsmf_PDUSession_UpdateSMContext (TS 29.502 5.2.2.3): a message of the UE, an answer of the gNB, or a change of the user
//! plane. This file selects the handler by state; the procedures have the handlers.

use super::context::SmContext;
use super::env::Env;
use super::n1::UNASSIGNED_PTI;
use super::procedure::{
    AwaitingResourceSetup, Established, State, flow_mobility, handover, ladn, modification,
    modification_request, path_switch, refused_setup, refused_transfer, release, user_plane,
};
use super::{n1, n2};
use crate::kit::{Caller, Level, Outbox, Owner, PendingReply};
use bytes::Bytes;
use pith_nas::{GsmBody, GsmCause, GsmMessage, NasError};
use pith_ngap::transfer::{ModifyResponseTransfer, SecondaryRatUsageTransfer, SetupResponseTransfer};
use pith_sbi::common::PresenceState;
use pith_sbi::nsmf_pdusession::{
    HoState, N2SmInfoType, SmContextUpdateData, SmContextUpdateErrorData, SmContextUpdatedData, UpCnxState,
};
use pith_sbi::{Cause, Problem, ProblemMore, Response};
use std::sync::Arc;

/// Serves an update. While a change at UPF or gNB is in progress, the update is pending.
pub(super) fn on_update(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    data: SmContextUpdateData,
) -> State {
    if data.release == Some(true) {
        let next = release::end_state(state, session, env);
        acknowledge(reply, env.out);
        return next;
    }
    let leaves = data.presence_in_ladn == Some(PresenceState::OutOfArea);
    if leaves && env.config.network(&session.dnn, &session.snssai).is_some_and(|network| network.is_ladn) {
        return ladn::on_left(state, session, env, reply, data);
    }
    serve(state, session, env, reply, data)
}

/// Serves an update of a UE that may have the session where it is.
pub(super) fn serve(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    data: SmContextUpdateData,
) -> State {
    use State as S;
    if handover::is_repeated(&state, session, &data) {
        handover::answer_completed(reply, env);
        return state;
    }
    match state {
        S::AwaitingUplinkSwitch(state) => state.on_update(session, env, reply, data),
        S::AwaitingResourceRelease(state) => state.on_update(session, env, reply, data),
        S::AwaitingRestoration(state) => state.on_update(session, env, reply, data),
        S::AwaitingN4Modification(_)
        | S::AwaitingPathSwitch(_)
        | S::AwaitingFlowMobility(_)
        | S::AwaitingForwardingTunnel(_)
        | S::AwaitingRates(_)
        | S::AwaitingClassifier(_)
        | S::AwaitingDownlinkSwitch(_)
        | S::AwaitingBuffering(_)
        | S::AwaitingConfirmation(_) => {
            session.queue_update(env, reply, data);
            state
        }
        S::AwaitingSubscriptionData(_)
        | S::AwaitingPolicyDecision(_)
        | S::AwaitingN4Establishment(_)
        | S::AwaitingFrontEstablishment(_)
        | S::AwaitingN9Modification(_)
        | S::AwaitingResourceSetup(_)
        | S::Established(_)
        | S::AwaitingReleaseComplete(_) => apply(state, session, env, reply, data),
        S::Abandoned(_) | S::Over => {
            reply.refuse(Problem::context_not_found(), env.out);
            state
        }
    }
}

/// Serves pending updates in order, until one starts another change.
pub(super) fn resume(mut state: State, session: &mut SmContext, env: &mut Env<'_>) -> State {
    while !state.is_changing() && !session.pending.updates.is_empty() {
        let (reply, data) = session.pending.updates.remove(0);
        state = apply(state, session, env, reply, data);
    }
    state
}

fn apply(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    data: SmContextUpdateData,
) -> State {
    if let Some(unsupported @ (UpCnxState::Suspended | UpCnxState::Other(_))) = &data.up_cnx_state {
        // SUSPENDED is of user plane CIoT 5GS optimisation (TS 23.502 4.8.1).
        let problem = Problem::new(Cause::OptionalIeIncorrect)
            .param("upCnxState", format_args!("{unsupported} is not supported"));
        reply.refuse(problem, env.out);
        return state;
    }
    if let Some(message) = &data.n1_sm_msg {
        return on_n1_message(state, session, env, reply, &message.content);
    }
    if let Some(handover) = data.ho_state.clone().filter(|handover| *handover != HoState::None) {
        return handover::on_update(state, session, env, reply, (&handover, &data));
    }
    match (&data.n2_sm_info_type, &data.up_cnx_state) {
        (Some(kind), _) => {
            let info = data.n2_sm_info.as_ref().map(|info| &info.content);
            on_n2_information(state, session, env, reply, kind, info.unwrap_or(&Bytes::new()))
        }
        (None, Some(UpCnxState::Activating)) => on_activate(state, session, env, reply),
        (None, Some(UpCnxState::Deactivated)) => change_user_plane(state, session, env, reply, None),
        (None, _) if data.n2_sm_info.is_some() => {
            reply.refuse(Problem::mandatory_ie_missing("n2SmInfoType"), env.out);
            state
        }
        (None, _) => {
            acknowledge(reply, env.out);
            state
        }
    }
}

/// Another AMF serves the UE, if it says so with whatever it requests (TS 29.502 5.2.2.3.6): the session is its own from now on. Not that which
/// prepares a handover.
pub(super) fn note_amf(session: &mut SmContext, env: &mut Env<'_>, data: &SmContextUpdateData, from: Caller) {
    let owner = Owner::of(from);
    let known = (session.amf.owner, session.amf.instance);
    if let Some(instance) = data.serving_nf_id.filter(|instance| (owner, *instance) != known) {
        session.log(env, Level::Info, || format!("is of AMF {instance} now ({owner})"));
    }
    let amf = &mut session.amf;
    if let Some(instance) = data.serving_nf_id {
        (amf.owner, amf.instance, amf.handover_target) = (owner, instance, None);
    } else if data.ho_state.is_some() {
        return;
    }
    if let Some(uri) = &data.sm_context_status_uri {
        (amf.root, amf.status_uri) = (Arc::clone(&uri.root), uri.clone());
    }
}

/// A 5GSM message of the UE (TS 24.501 clause 6, 7.3, 7.4).
fn on_n1_message(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    octets: &Bytes,
) -> State {
    let mut notes = Vec::new();
    let message = match GsmMessage::decode_with_notes(octets, &mut notes) {
        Ok(message) => message,
        Err(error) => {
            on_wrong_message(session, env, reply, octets, &error);
            return state;
        }
    };
    let (id, pti) = (message.pdu_session_id, message.pti);
    if let Some(cause) = error_of_pti(&state, session, &message) {
        answer_n1(reply, n1::status(id, pti, cause), env.out);
        return state;
    }
    if id != session.pdu_session_id {
        on_other_identity(session, env, reply, message);
        return state;
    }
    match message.body {
        // The SMF releases the session already (TS 24.501 6.3.3.5).
        GsmBody::PduSessionReleaseRequest(_) | GsmBody::PduSessionModificationRequest(_)
            if state.release_pti() == Some(UNASSIGNED_PTI) =>
        {
            acknowledge(reply, env.out);
        }
        GsmBody::PduSessionReleaseRequest(_) => return on_release_request(state, session, env, reply, pti),
        GsmBody::PduSessionReleaseComplete(_) => {
            acknowledge(reply, env.out);
            return on_release_complete(state, session, env);
        }
        GsmBody::PduSessionModificationComplete(_) | GsmBody::PduSessionModificationCommandReject(_)
            if pti != UNASSIGNED_PTI =>
        {
            acknowledge(reply, env.out);
            session.reflective.revocation = None;
        }
        GsmBody::PduSessionModificationComplete(_) => {
            acknowledge(reply, env.out);
            refused_transfer::on_confirmed(&state, session, env);
            modification::on_modification_complete(session, env);
            refused_transfer::on_command_ended(&state, session, env);
        }
        GsmBody::PduSessionModificationCommandReject(reject) => {
            acknowledge(reply, env.out);
            refused_transfer::on_command_ended(&state, session, env);
            return modification::on_modification_reject(state, session, env, reject.cause);
        }
        GsmBody::PduSessionModificationRequest(request)
            if modification_request::revokes_reflective_qos(session, &request, &notes) =>
        {
            modification::revoke_reflective_qos(&state, session, env, pti);
            session.answered_pti = Some(pti);
            answer_n1(reply, n1::modification_accept(session, pti), env.out);
        }
        GsmBody::PduSessionModificationRequest(request) => {
            let cause = modification_request::cause_of_reject(session, &request, &notes);
            session.log(env, Level::Debug, || {
                format!("a modification that the UE requests is rejected: {cause}")
            });
            session.answered_pti = Some(pti);
            answer_n1(reply, n1::modification_reject(id, pti, cause), env.out);
        }
        GsmBody::GsmStatus(status) => {
            session.log(env, Level::Debug, || format!("the UE sends 5GSM STATUS: {}", status.cause));
            acknowledge(reply, env.out);
            return on_status(state, session, env, pti, status.cause);
        }
        // The UE wants to transfer it from another access or from EPS, where this SMF has no session (TS 24.501 6.4.1.4.1). It may request a new one.
        GsmBody::PduSessionEstablishmentRequest(_) => {
            session.log(env, Level::Debug, || "a transfer that the UE requests is rejected".to_owned());
            session.answered_pti = Some(pti);
            let cause = GsmCause::PduSessionDoesNotExist;
            answer_n1(reply, n1::establishment_reject(id, pti, cause), env.out);
        }
        // Messages that belong to an establishment, or that only the network sends (TS 24.501 7.4).
        GsmBody::PduSessionEstablishmentAccept(_)
        | GsmBody::PduSessionEstablishmentReject(_)
        | GsmBody::PduSessionAuthenticationCommand(_)
        | GsmBody::PduSessionAuthenticationComplete(_)
        | GsmBody::PduSessionAuthenticationResult(_)
        | GsmBody::PduSessionModificationReject(_)
        | GsmBody::PduSessionModificationCommand(_)
        | GsmBody::PduSessionReleaseReject(_)
        | GsmBody::PduSessionReleaseCommand(_) => {
            let cause = GsmCause::MessageTypeNotCompatibleWithTheProtocolState;
            answer_n1(reply, n1::status(id, pti, cause), env.out);
        }
    }
    state
}

/// The cause for 5GSM STATUS if the PTI does not fit the message (TS 24.501 7.3.1).
fn error_of_pti(state: &State, session: &SmContext, message: &GsmMessage) -> Option<GsmCause> {
    let is_unassigned = message.pti == UNASSIGNED_PTI;
    match message.body {
        GsmBody::PduSessionEstablishmentRequest(_)
        | GsmBody::PduSessionModificationRequest(_)
        | GsmBody::PduSessionReleaseRequest(_) => is_unassigned.then_some(GsmCause::InvalidPtiValue),
        // Without a release it is ignored.
        GsmBody::PduSessionReleaseComplete(_)
            if is_unassigned && state.release_pti().is_some_and(|pti| pti != UNASSIGNED_PTI) =>
        {
            Some(GsmCause::PtiMismatch)
        }
        _ if is_unassigned => None,
        // The SMF begins each other modification, with no PTI.
        GsmBody::PduSessionModificationComplete(_) | GsmBody::PduSessionModificationCommandReject(_) => {
            (session.reflective.revocation != Some(message.pti)).then_some(GsmCause::PtiMismatch)
        }
        GsmBody::PduSessionReleaseComplete(_) if state.release_pti() != Some(message.pti) => {
            Some(GsmCause::PtiMismatch)
        }
        _ => None,
    }
}

/// The message is about another session than the UL NAS TRANSPORT that carried it: nothing changes (TS 24.501 7.3.2).
fn on_other_identity(session: &SmContext, env: &mut Env<'_>, reply: PendingReply, message: GsmMessage) {
    let (id, pti, cause) = (message.pdu_session_id, message.pti, GsmCause::InvalidPduSessionIdentity);
    let name = message.body.name();
    session.log(env, Level::Warn, || format!("the UE sends {name} of session {id} as one of this session"));
    let answer = match message.body {
        GsmBody::PduSessionModificationRequest(_) => n1::modification_reject(id, pti, cause),
        GsmBody::PduSessionReleaseRequest(_) => n1::release_reject(id, pti, cause),
        GsmBody::GsmStatus(_) => return acknowledge(reply, env.out),
        _ => n1::status(id, pti, cause),
    };
    answer_n1(reply, answer, env.out);
}

/// The UE requests the release of its session. A session that is being established is not released (TS 24.501 6.4.3.3,
/// 6.4.3.4).
fn on_release_request(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    pti: u8,
) -> State {
    match state {
        State::Established(Established { user_plane })
        | State::AwaitingResourceSetup(AwaitingResourceSetup { user_plane, .. }) => {
            release::on_release_request(user_plane, session, env, reply, pti)
        }
        State::AwaitingReleaseComplete(state) => state.on_release_request(session, env, reply, pti),
        state => {
            let cause = GsmCause::MessageNotCompatibleWithTheProtocolState;
            session.answered_pti = Some(pti);
            answer_n1(reply, n1::release_reject(session.pdu_session_id, pti, cause), env.out);
            state
        }
    }
}

fn on_release_complete(state: State, session: &mut SmContext, env: &mut Env<'_>) -> State {
    match state {
        State::AwaitingReleaseComplete(state) => state.on_release_complete(session, env),
        state => {
            let name = state.name();
            session.log(env, Level::Debug, || format!("PDU SESSION RELEASE COMPLETE ignored in {name}"));
            state
        }
    }
}

/// 5GSM STATUS (TS 24.501 6.5.3). With the PTI of PDU SESSION MODIFICATION COMMAND, #43, #47, #81 and #97 end the modification as if the UE had
/// rejected it: with #43, the session, too. After other causes the SMF sends the command again.
fn on_status(state: State, session: &mut SmContext, env: &mut Env<'_>, pti: u8, cause: GsmCause) -> State {
    let is_of_identity = matches!(cause, GsmCause::InvalidPduSessionIdentity | GsmCause::PtiMismatch);
    let is_of_message =
        matches!(cause, GsmCause::InvalidPtiValue | GsmCause::MessageTypeNonExistentOrNotImplemented);
    let is_modified =
        pti == UNASSIGNED_PTI && session.modification.is_some() && state.release_pti().is_none();
    if is_modified && (is_of_identity || is_of_message) {
        refused_transfer::on_command_ended(&state, session, env);
        return modification::on_modification_reject(state, session, env, cause);
    }
    if is_of_identity { on_refused_identity(state, session, env, pti) } else { state }
}

/// 5GSM STATUS #43 or #47: the UE does not know the session, or the PTI (TS 24.501 6.5.3).
///
/// If the session is being released, the UE has released it before; its PDU SESSION RELEASE COMPLETE was lost. If the PTI is that of a request
/// that the SMF has answered since, the answer met a procedure that the UE had given up (T3581, T3582; TS 24.501 7.3.1), and the session stays.
/// Otherwise the UE refuses PDU SESSION ESTABLISHMENT ACCEPT: it has the session of an earlier request, with another address, for good.
/// The session ends, and the UE establishes it again.
fn on_refused_identity(state: State, session: &mut SmContext, env: &mut Env<'_>, pti: u8) -> State {
    match state {
        State::AwaitingReleaseComplete(_) => on_release_complete(state, session, env),
        state if pti != UNASSIGNED_PTI && session.answered_pti != Some(pti) => {
            release::release_when_established(state, session, GsmCause::ReactivationRequested)
        }
        state => state,
    }
}

/// N2 information of the gNB (TS 29.502 5.2.2.3.2).
fn on_n2_information(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    kind: &N2SmInfoType,
    info: &Bytes,
) -> State {
    match kind {
        N2SmInfoType::PduResSetupRsp => match SetupResponseTransfer::decode(info) {
            Ok(transfer) if refused_setup::is_contradictory(&transfer) => {
                return on_wrong_setup(state, session, env, reply, "a QoS flow has two results");
            }
            Ok(transfer) if !refused_setup::has_default_flow(&transfer) => {
                return refused_setup::on_unusable(state, session, env, reply);
            }
            Ok(transfer) => {
                modification::on_setup(session, env, &transfer);
                return change_user_plane(state, session, env, reply, Some(&transfer));
            }
            Err(error) => return on_wrong_setup(state, session, env, reply, error),
        },
        N2SmInfoType::PduResSetupFail => {
            return refused_setup::on_failure(state, session, env, reply, info);
        }
        N2SmInfoType::PduResNtyRel => return change_user_plane(state, session, env, reply, None),
        N2SmInfoType::PathSwitchReq => return path_switch::on_request(state, session, env, reply, info),
        // The target gNB has no resources for the session (TS 23.502 4.9.1.2.2).
        N2SmInfoType::PathSwitchSetupFail => return change_user_plane(state, session, env, reply, None),
        N2SmInfoType::PduResModInd => return flow_mobility::on_indication(state, session, env, reply, info),
        N2SmInfoType::PduResModRsp => return on_modified(state, session, env, reply, info),
        N2SmInfoType::PduResNty => {
            let has_lost_default_flow = modification::on_gnb_notification(session, env, info);
            acknowledge(reply, env.out);
            if has_lost_default_flow {
                return refused_setup::on_default_flow_released(state, session, env);
            }
        }
        N2SmInfoType::SecondaryRatUsage => match SecondaryRatUsageTransfer::decode(info) {
            Ok(transfer) => {
                session.count_secondary_rat(transfer.usage);
                acknowledge(reply, env.out);
            }
            Err(error) => reply.refuse(Problem::new(Cause::N2SmError).detail(error), env.out),
        },
        N2SmInfoType::PduResModFail => {
            acknowledge(reply, env.out);
            let is_requested = session.gnb.take_answer();
            if is_requested && !refused_transfer::on_unmodified(&state, session, env, info) {
                modification::on_gnb_failure(session, env);
                session.log(env, Level::Warn, || "the gNB did not modify the session's resources".to_owned());
            }
        }
        // It changes nothing.
        N2SmInfoType::PduResRelRsp => acknowledge(reply, env.out),
        kind => refuse_n2(reply, kind, env.out),
    }
    state
}

/// The gNB has set the session up with a tunnel that is not known: the session can't be used, and gNB and UE release it. Not with
/// #39: the UE would establish it again at once, and the gNB's next answer may be no better (TS 24.501 6.3.3.2).
fn on_wrong_setup(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    error: impl std::fmt::Display,
) -> State {
    let problem = Problem::new(Cause::N2SmError).detail(&error);
    match state {
        State::Established(Established { user_plane })
        | State::AwaitingResourceSetup(AwaitingResourceSetup { user_plane, .. }) => {
            session.log(env, Level::Warn, || {
                format!("the gNB's answer to a setup is wrong, the session ends: {error}")
            });
            reply.refuse(problem, env.out);
            release::end_without_resources(user_plane.into(), session, env)
        }
        state => {
            reply.refuse(problem, env.out);
            state
        }
    }
}

/// Answers with the N2 information that the gNB needs to set the user plane up (TS 23.502 4.2.3.2 step 11).
fn on_activate(state: State, session: &mut SmContext, env: &mut Env<'_>, reply: PendingReply) -> State {
    match state {
        State::Established(established) => established.on_activate(session, env, reply),
        state => {
            reply.refuse(Problem::new(Cause::InsufficientResources), env.out);
            state
        }
    }
}

/// The gNB's answer to a modification: flows that it refuses. It may have moved flows to other tunnels (TS 38.413 8.2.3.2, 9.3.4.4); most have not.
fn on_modified(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    info: &Bytes,
) -> State {
    let transfer = match ModifyResponseTransfer::decode(info) {
        Ok(transfer) => transfer,
        Err(error) => {
            // What the gNB has is unknown: its flows are removed.
            session.log(env, Level::Warn, || format!("the gNB's answer to a modification is wrong: {error}"));
            if session.gnb.take_answer() {
                modification::on_gnb_failure(session, env);
            }
            reply.refuse(Problem::new(Cause::N2SmError).detail(error), env.out);
            return state;
        }
    };
    if !session.gnb.take_answer() {
        // It answers no request, or one about a former session with the identity (TS 38.413 10.4).
        session
            .log(env, Level::Info, || "the gNB answers a modification that it was not requested".to_owned());
        acknowledge(reply, env.out);
        return state;
    }
    modification::on_gnb_modified(session, env, &transfer);
    match state {
        State::Established(Established { user_plane })
            if user_plane.gnb.is_some()
                && (transfer.downlink.is_some() || !transfer.additional.is_empty()) =>
        {
            flow_mobility::on_modified(user_plane, session, env, reply, transfer)
        }
        state => {
            acknowledge(reply, env.out);
            state
        }
    }
}

/// The gNB's tunnels are now those of `gnb`, or there is none (TS 23.502 4.2.3.2 step 16, 4.2.6).
fn change_user_plane(
    state: State,
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    gnb: Option<&SetupResponseTransfer>,
) -> State {
    match state {
        State::AwaitingResourceSetup(state) if gnb.is_none() && state.ends_without_accept() => {
            state.on_deactivated(session, env, reply)
        }
        State::Established(Established { user_plane })
        | State::AwaitingResourceSetup(AwaitingResourceSetup { user_plane, .. }) => {
            if gnb.is_none() {
                session.forget_handover();
            }
            match gnb {
                Some(gnb) => user_plane::activate(user_plane, session, env, reply, gnb),
                None => user_plane::deactivate(user_plane, session, env, reply),
            }
        }
        state => {
            let problem = Problem::new(Cause::UnprocessableRequest).detail(state.phase().name());
            reply.refuse(problem, env.out);
            state
        }
    }
}

/// The AMF could not deliver a message to gNB or UE. An establishment ends; for an established session, the UPF drops the
/// buffered packets.
pub(super) fn on_delivery_failure(state: State, session: &mut SmContext, env: &mut Env<'_>) -> State {
    match state {
        State::AwaitingResourceSetup(state) => state.on_failure(session, env),
        State::Established(established) => established.on_paging_failure(session, env),
        // The message was sent in an earlier state.
        state => {
            let name = state.name();
            session.log(env, Level::Debug, || format!("a message was not delivered; ignored in {name}"));
            state
        }
    }
}

/// N2 information that this SMF does not act on: the refusal carries the transfer for the gNB (TS 29.502 table
/// 6.1.3.3.4.2.2-2).
fn refuse_n2(reply: PendingReply, kind: &N2SmInfoType, out: &mut Outbox) {
    let problem = Problem::new(Cause::N2SmError)
        .detail(format!("this SMF does not support N2 information of type {}", kind.as_str()));
    refuse_transfer(reply, kind, problem, out);
}

/// Refuses N2 information with the unsuccessful transfer for the gNB, if its type has one (TS 29.502 table 6.1.3.3.4.2.2-2).
pub(super) fn refuse_transfer(reply: PendingReply, kind: &N2SmInfoType, problem: Problem, out: &mut Outbox) {
    match n2::refusal(kind) {
        Some(refusal) => refuse_with(reply, refusal, problem, out),
        None => reply.refuse(problem, out),
    }
}

/// Refuses N2 information with that unsuccessful transfer for the gNB.
pub(super) fn refuse_with(
    reply: PendingReply,
    (kind, transfer): (N2SmInfoType, Vec<u8>),
    problem: Problem,
    out: &mut Outbox,
) {
    let mut data = SmContextUpdateErrorData::default();
    data.n2_sm_info = Some(transfer.into());
    data.n2_sm_info_type = Some(kind);
    reply.refuse(problem.with(ProblemMore::SmContextUpdateError(Box::new(data))), out);
}

/// A 5GSM message that could not be decoded is ignored, or answered with its cause: a request with its reject, others with 5GSM STATUS (TS
/// 24.501 7.2 to 7.5).
fn on_wrong_message(
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    octets: &[u8],
    error: &NasError,
) {
    let (Some(cause), &[_, _, pti, message_type, ..]) = (error.gsm_cause(), octets) else {
        return acknowledge(reply, env.out);
    };
    let id = session.pdu_session_id;
    let answer = match message_type {
        MODIFICATION_REQUEST | RELEASE_REQUEST if pti == UNASSIGNED_PTI => {
            n1::status(id, pti, GsmCause::InvalidPtiValue)
        }
        MODIFICATION_REQUEST => n1::modification_reject(id, pti, cause),
        RELEASE_REQUEST => n1::release_reject(id, pti, cause),
        _ => n1::status(id, pti, cause),
    };
    if matches!(message_type, MODIFICATION_REQUEST | RELEASE_REQUEST) {
        session.answered_pti = Some(pti);
    }
    answer_n1(reply, answer, env.out);
}

/// Message types of requests that have a reject (TS 24.501 table 9.7.2).
const MODIFICATION_REQUEST: u8 = 0xc9;
const RELEASE_REQUEST: u8 = 0xd1;

/// Answers with a message for the UE.
pub(super) fn answer_n1(reply: PendingReply, message: Vec<u8>, out: &mut Outbox) {
    let mut data = SmContextUpdatedData::default();
    data.n1_sm_msg = Some(message.into());
    answer_update(reply, data, out);
}

/// Answers with 200 and these data.
pub(super) fn answer_update(reply: PendingReply, data: SmContextUpdatedData, out: &mut Outbox) {
    reply.answer(Response::SmContextUpdated(Box::new(data)), out);
}

/// The end of the wait for a gNB's answer.
pub(super) enum GnbAnswer {
    /// The gNB answered.
    N2(N2SmInfoType),
    /// The user plane is deactivated: the gNB no longer serves the UE, and will not answer.
    Deactivated,
}

/// Handles an update while the gNB's answer is awaited. Acknowledges one of these answers, and queues any other update. `None`:
/// the answer is still awaited.
pub(super) fn await_gnb(
    session: &mut SmContext,
    env: &mut Env<'_>,
    reply: PendingReply,
    data: SmContextUpdateData,
    answers: &[N2SmInfoType],
) -> Option<GnbAnswer> {
    if let Some(answer) = data.n2_sm_info_type.clone().filter(|kind| answers.contains(kind)) {
        acknowledge(reply, env.out);
        return Some(GnbAnswer::N2(answer));
    }
    // After a path switch another gNB serves the UE, too.
    let is_deactivation = match &data.n2_sm_info_type {
        None => {
            data.up_cnx_state == Some(UpCnxState::Deactivated) || data.ho_state == Some(HoState::Completed)
        }
        Some(kind) => matches!(kind, N2SmInfoType::PathSwitchReq | N2SmInfoType::PathSwitchSetupFail),
    };
    session.queue_update(env, reply, data);
    is_deactivation.then_some(GnbAnswer::Deactivated)
}

/// Answers with 204 (no content).
pub(super) fn acknowledge(reply: PendingReply, out: &mut Outbox) {
    reply.answer(Response::NoContent, out);
}
