//! Nsmf_PDUSession (TS 29.502).

use super::{location, owner, select_instance, session_name};
use crate::amf::context::{CallId, Env, UeContext};
use crate::amf::mobility::{departure, n2_handover};
use crate::amf::session::{PduSession, SessionCall, UserPlane};
use crate::amf::{delivery, ladn};
use crate::kit::{Selection, Target};
use bytes::Bytes;
use pith_sbi::common::{
    AccessType, BinaryData, GNbId, GlobalRanNodeId, PlmnIdNid, PresenceState, RatType, SupiOrSuci,
};
use pith_sbi::nsmf_pdusession as nsmf;
use pith_sbi::{NfType, Uri};
use pith_types::Guami;
use std::sync::Arc;

/// Begins the establishment of a session: an SMF is selected, by the slice instance if the network has them. An emergency session has none.
pub(crate) fn establish_session(ue: &mut UeContext, env: &mut Env<'_>, id: u8, payload: &Bytes) {
    if env.config.selects_slice_instances && ue.emergency_session() != Some(id) {
        select_instance(ue, env, id, payload);
    } else {
        create_session(ue, env, id, payload, None);
    }
}

/// Nsmf_PDUSession_CreateSMContext, at an SMF of the slice instance, if there is one. An unauthenticated UE has the SUPI that it claims, if the
/// AMF knows one, and its PEI (TS 29.502 6.1.6.2.2).
pub(crate) fn create_session(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    id: u8,
    payload: &Bytes,
    slice_instance: Option<Arc<str>>,
) {
    let Some(session) = ue.session(id) else { return };
    let (snssai, dnn) = (session.snssai, session.dnn.clone());
    let callback = status_callback(ue, env, id);
    let mut body = nsmf::SmContextCreateData::new(
        env.config.identity.instance_id,
        PlmnIdNid::from(env.config.plmn_in(ue.location)),
        AccessType::ThreeGppAccess,
        callback,
    );
    body.supi = ue.supi.clone();
    if ue.is_unauthenticated() {
        body.supi = ue.claimed.as_ref().and_then(SupiOrSuci::supi);
        body.unauthenticated_supi = body.supi.is_some().then_some(true);
    }
    body.pei = ue.pei.clone();
    body.gpsi = ue.subscription.as_ref().and_then(|subscription| subscription.gpsi.clone());
    body.pdu_session_id = Some(id);
    body.dnn = Some(dnn.clone());
    body.s_nssai = Some(snssai);
    body.guami = Some(env.config.guami_in(ue.location));
    body.request_type = Some(if ue.emergency_session() == Some(id) {
        nsmf::RequestType::InitialEmergencyRequest
    } else {
        nsmf::RequestType::InitialRequest
    });
    body.n1_sm_msg = Some(payload.clone().into());
    body.rat_type = Some(RatType::Nr);
    body.ue_location = location(ue);
    body.ue_time_zone = env.ue_time_zone();
    body.presence_in_ladn = ladn::presence(ue, env.config, &dnn);
    let target = Target::Service(Selection {
        snssai: Some(snssai),
        slice_instance,
        dnn: Some(dnn),
        ..Selection::default()
    });
    let call = ue.call(env, target, nsmf::PostSmContexts { body });
    if let Some(session) = ue.session_mut(id) {
        session.calls.push((call, SessionCall::Create(payload.clone())));
    }
}

/// The URI at which the SMF reports the end of the session: new for each SM context, and stored in
/// the session.
fn status_callback(ue: &mut UeContext, env: &Env<'_>, id: u8) -> Uri {
    let number = ue.next_number();
    if let Some(session) = ue.session_mut(id) {
        session.number = number;
    }
    status_callback_of(ue, env, id, number)
}

fn status_callback_of(ue: &UeContext, env: &Env<'_>, id: u8, number: CallId) -> Uri {
    let reference = env.references.of_name(&session_name(ue.id, id, number));
    nsmf::SmContextStatusNotify::callback_uri(&env.config.identity.api_root, &NfType::Amf, &reference)
}

/// Notifies the SMF of a transferred session that this AMF serves the UE now (TS 23.502 4.2.2.2.2 step 17).
pub(crate) fn announce_session(ue: &mut UeContext, env: &mut Env<'_>, id: u8) {
    let body = serving_amf(ue, env, id);
    notify_smf(ue, env, id, body);
}

/// As [`announce_session`], of a session that has no user plane here: in one request, which the SMF takes from this AMF.
pub(crate) fn announce_deactivated(ue: &mut UeContext, env: &mut Env<'_>, id: u8) {
    let serving = serving_amf(ue, env, id);
    let Some(session) = ue.session_mut(id) else { return };
    let had_user_plane = std::mem::replace(&mut session.user_plane, UserPlane::Deactivated);
    let is_active = had_user_plane != UserPlane::Deactivated;
    let up_cnx_state = is_active.then_some(nsmf::UpCnxState::Deactivated);
    notify_smf(ue, env, id, nsmf::SmContextUpdateData { up_cnx_state, ..serving });
}

/// This AMF serves the UE of a session. Where the UE is in relation to a LADN, only the former AMF has said.
fn serving_amf(ue: &mut UeContext, env: &Env<'_>, id: u8) -> nsmf::SmContextUpdateData {
    let callback = status_callback(ue, env, id);
    serving_amf_at(ue, env, id, callback)
}

/// As [`serving_amf`], with that callback URI.
fn serving_amf_at(ue: &UeContext, env: &Env<'_>, id: u8, callback: Uri) -> nsmf::SmContextUpdateData {
    nsmf::SmContextUpdateData {
        serving_nf_id: Some(env.config.identity.instance_id),
        guami: Some(env.config.guami_in(ue.location)),
        serving_network: Some(env.config.plmn_in(ue.location).into()),
        sm_context_status_uri: Some(callback),
        presence_in_ladn: presence_in_ladn(ue, env, id),
        ..Default::default()
    }
}

pub(super) fn presence_in_ladn(ue: &UeContext, env: &Env<'_>, id: u8) -> Option<PresenceState> {
    ladn::presence(ue, env.config, &ue.session(id)?.dnn)
}

/// Reports whether the UE is in the service area of a session's LADN. One such report at a time is pending: if the UE moves meanwhile, another
/// one follows its answer. It supersedes no report of the user plane, which the SMF still lacks if it does not answer.
pub(crate) fn report_presence(ue: &mut UeContext, env: &mut Env<'_>, id: u8) {
    let presence_in_ladn = presence_in_ladn(ue, env, id);
    if presence_in_ladn.is_some() && ue.session(id).is_some_and(|session| !session.reports_presence()) {
        notify_smf(ue, env, id, nsmf::SmContextUpdateData { presence_in_ladn, ..Default::default() });
    }
}

/// The SMF has answered that report, or refused it: the UE may have moved since.
pub(crate) fn presence_reported(ue: &mut UeContext, env: &mut Env<'_>, id: u8, reported: &PresenceState) {
    if presence_in_ladn(ue, env, id).is_some_and(|presence| presence != *reported) {
        report_presence(ue, env, id);
    }
}

/// Sends the SMF a report, which is retransmitted if the SMF does not answer.
fn notify_smf(ue: &mut UeContext, env: &mut Env<'_>, id: u8, body: nsmf::SmContextUpdateData) {
    update_and_note(ue, env, id, body.clone(), SessionCall::Report(Box::new(body)));
}

/// Retransmits a report that the SMF did not answer: without it the SMF would send packets to a gNB that has
/// released the session. Not retransmitted if a later report superseded it, or after the retry limit.
pub(crate) fn retransmit_report(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    id: u8,
    call: CallId,
    mut body: nsmf::SmContextUpdateData,
) {
    let most = env.config.max_retransmissions;
    let is_presence = body.is_presence_report();
    let is_latest = |session: &&mut PduSession| is_presence || session.last_call == call;
    let Some(session) = ue.session_mut(id).filter(is_latest) else { return };
    if !session.count_unheard(&body, most) {
        if body.serving_nf_id.is_some() {
            note_unannounced(ue, env, id);
        }
        return;
    }
    if is_presence {
        return report_presence(ue, env, id);
    }
    if body.presence_in_ladn.is_some() {
        body.presence_in_ladn = presence_in_ladn(ue, env, id);
    }
    notify_smf(ue, env, id, body);
}

/// The SMF has not served a report of the user plane, which is not repeated while the SMF's answer to an activation is awaited: it would undo
/// that. If the activation fails, the SMF may still have the former user plane: see [`deactivate_unheard`].
pub(crate) fn postpone_report(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    id: u8,
    body: &nsmf::SmContextUpdateData,
) {
    if let Some(session) = ue.session_mut(id) {
        session.count_unheard(body, env.config.max_retransmissions);
    }
    if body.serving_nf_id.is_some() {
        note_unannounced(ue, env, id);
    }
}

/// The SMF may not know that this AMF serves the session: the next request says so. What the gNB is to release concerns no setup that follows.
fn note_unannounced(ue: &mut UeContext, env: &mut Env<'_>, id: u8) {
    let Some(session) = ue.session(id).filter(|session| session.held_setup.is_none()) else { return };
    if matches!(session.user_plane, UserPlane::Deactivated | UserPlane::Replacing) {
        delivery::note_ended(ue, env, session);
        if let Some(session) = ue.session_mut(id) {
            session.user_plane = UserPlane::Unannounced;
        }
    }
}

/// Nsmf_PDUSession_UpdateSMContext; `None` if the session has no SM context yet.
fn update(ue: &mut UeContext, env: &mut Env<'_>, id: u8, body: nsmf::SmContextUpdateData) -> Option<CallId> {
    let context = ue.session(id)?.sm_context.as_ref()?;
    let (target, sm_context_ref) = (owner(context), context.id().to_owned());
    let call = ue.call(env, target, nsmf::UpdateSmContext { sm_context_ref, body });
    ue.session_mut(id)?.last_call = call;
    Some(call)
}

/// Nsmf_PDUSession_UpdateSMContext; the session records the purpose of the call. If the session has no SM context yet, the call
/// is deferred until it has one.
fn update_and_note(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    id: u8,
    body: nsmf::SmContextUpdateData,
    purpose: SessionCall,
) {
    if let (SessionCall::Report(_), Some(session)) = (&purpose, ue.session_mut(id)) {
        session.make_room_for_report();
    }
    match ue.session_mut(id) {
        Some(session) if session.sm_context.is_none() => session.held.push((body, purpose)),
        Some(session) => {
            let before = session.last_call;
            let call = update(ue, env, id, body);
            if let (Some(session), Some(call)) = (ue.session_mut(id), call) {
                if !purpose.is_about_user_plane() {
                    // It supersedes no report of the user plane, which the SMF still lacks if it does not answer.
                    session.last_call = before;
                }
                session.calls.push((call, purpose));
            }
        }
        None => {}
    }
}

/// The SMF has created the SM context: sends the deferred requests.
pub(crate) fn sm_context_created(ue: &mut UeContext, env: &mut Env<'_>, id: u8, context: Uri) {
    let Some(session) = ue.session_mut(id) else { return };
    session.sm_context = Some(context);
    let held = std::mem::take(&mut session.held);
    // The SMF gets the gNB's tunnel, and a document without the SM context is that of no session.
    ue.must_store |= !held.is_empty();
    for (body, purpose) in held {
        if body.is_presence_report() {
            // The UE may have moved since.
            report_presence(ue, env, id);
        } else {
            update_and_note(ue, env, id, body, purpose);
        }
    }
    delivery::send_held_setup(ue, env, id);
}

/// Forwards a 5GSM message of the UE to the SMF.
pub(crate) fn forward(ue: &mut UeContext, env: &mut Env<'_>, id: u8, payload: &Bytes) {
    let body = nsmf::SmContextUpdateData {
        n1_sm_msg: Some(payload.clone().into()),
        ue_location: location(ue),
        ue_time_zone: env.ue_time_zone(),
        ..Default::default()
    };
    update_and_note(ue, env, id, body, SessionCall::Forward(payload.clone()));
}

/// Forwards the gNB's answer to the SMF.
pub(crate) fn report(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    id: u8,
    transfer: Vec<u8>,
    kind: nsmf::N2SmInfoType,
) {
    let body = nsmf::SmContextUpdateData {
        n2_sm_info: Some(BinaryData::from(transfer)),
        n2_sm_info_type: Some(kind),
        ..Default::default()
    };
    notify_smf(ue, env, id, body);
}

/// As [`report`], of resources that the gNB has released before the SMF has switched the path to them. The SMF is not requested again, and may have got
/// no request with which it learns this AMF: it learns it with the report.
pub(crate) fn report_released(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    id: u8,
    transfer: Vec<u8>,
    kind: nsmf::N2SmInfoType,
) {
    let Some(session) = ue.session_mut(id) else { return };
    session.forget_unheard();
    let number = session.number;
    let callback = status_callback_of(ue, env, id, number);
    let body = nsmf::SmContextUpdateData {
        n2_sm_info: Some(BinaryData::from(transfer)),
        n2_sm_info_type: Some(kind),
        ..serving_amf_at(ue, env, id, callback)
    };
    notify_smf(ue, env, id, body);
}

/// Forwards a report of a secondary RAT's data volume. It is sent once, since a report that arrives twice counts twice.
pub(crate) fn report_usage(ue: &UeContext, env: &mut Env<'_>, id: u8, transfer: Vec<u8>) {
    let Some(context) = ue.session(id).and_then(|session| session.sm_context.as_ref()) else { return };
    let body = nsmf::SmContextUpdateData {
        n2_sm_info: Some(BinaryData::from(transfer)),
        n2_sm_info_type: Some(nsmf::N2SmInfoType::SecondaryRatUsage),
        ..Default::default()
    };
    let sm_context_ref = context.id().to_owned();
    env.call_without_reply(owner(context), nsmf::UpdateSmContext { sm_context_ref, body });
}

/// Requests the SMF to activate the session's user plane; `None` if there is no such session. An SMF that may not know that this AMF serves the
/// session learns it.
pub(crate) fn activate(ue: &mut UeContext, env: &mut Env<'_>, id: u8) -> Option<CallId> {
    let body = nsmf::SmContextUpdateData {
        up_cnx_state: Some(nsmf::UpCnxState::Activating),
        ue_location: location(ue),
        ue_time_zone: env.ue_time_zone(),
        an_type: Some(AccessType::ThreeGppAccess),
        rat_type: Some(RatType::Nr),
        ..unknown_amf(ue, env, id)?
    };
    update(ue, env, id, body)
}

/// This AMF, if the SMF may not know that it serves the session; `None` if there is no such session.
fn unknown_amf(ue: &mut UeContext, env: &Env<'_>, id: u8) -> Option<nsmf::SmContextUpdateData> {
    let is_unannounced = ue.session(id)?.is_unannounced();
    Some(if is_unannounced { serving_amf(ue, env, id) } else { nsmf::SmContextUpdateData::default() })
}

/// Requests the SMF to switch the session's path to the target gNB of an Xn handover (TS 29.502 5.2.2.3.3.2); `None` if there is no
/// such session.
pub(crate) fn switch_path(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    id: u8,
    transfer: Vec<u8>,
) -> Option<CallId> {
    let body = nsmf::SmContextUpdateData {
        to_be_switched: Some(true),
        n2_sm_info: Some(BinaryData::from(transfer)),
        n2_sm_info_type: Some(nsmf::N2SmInfoType::PathSwitchReq),
        ue_location: location(ue),
        ue_time_zone: env.ue_time_zone(),
        an_type: Some(AccessType::ThreeGppAccess),
        rat_type: Some(RatType::Nr),
        ..unknown_amf(ue, env, id)?
    };
    let session = ue.session_mut(id)?;
    if session.user_plane == UserPlane::Unannounced {
        session.user_plane = UserPlane::Activated;
    }
    update(ue, env, id, body)
}

/// Forwards a gNB's indication that QoS flows of the session move to other tunnels (TS 23.502 4.14.1 step 2); `None` if there is no such session.
pub(crate) fn move_flows(ue: &mut UeContext, env: &mut Env<'_>, id: u8, transfer: Vec<u8>) -> Option<CallId> {
    let body = nsmf::SmContextUpdateData {
        n2_sm_info: Some(BinaryData::from(transfer)),
        n2_sm_info_type: Some(nsmf::N2SmInfoType::PduResModInd),
        ue_location: location(ue),
        ue_time_zone: env.ue_time_zone(),
        an_type: Some(AccessType::ThreeGppAccess),
        rat_type: Some(RatType::Nr),
        ..Default::default()
    };
    let before = ue.session(id)?.last_call;
    let call = update(ue, env, id, body);
    // A report before it is repeated unless the SMF has moved the flows.
    ue.session_mut(id)?.last_call = before;
    call
}

/// Requests the SMF to prepare an N2 handover of the session (TS 29.502 5.2.2.3.4.2); `None` if there is no such session.
pub(crate) fn prepare_handover(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    id: u8,
    transfer: Vec<u8>,
    target: &pith_ngap::TargetId,
) -> Option<CallId> {
    let mut body = handover_update(nsmf::HoState::Preparing);
    body.n2_sm_info = Some(BinaryData::from(transfer));
    body.n2_sm_info_type = Some(nsmf::N2SmInfoType::HandoverRequired);
    body.target_id = target_id(target);
    body.target_serving_nf_id = ue.arrival.as_ref().map(|_| env.config.identity.instance_id);
    update(ue, env, id, body)
}

/// The target of a handover as an SBI data type.
pub(crate) fn target_id(target: &pith_ngap::TargetId) -> Option<nsmf::NgRanTargetId> {
    let pith_ngap::TargetId::RanNode { node, tai } = target else { return None };
    Some(nsmf::NgRanTargetId::new(sbi_node(*node)?, *tai))
}

/// A gNB.
pub(super) fn sbi_node(node: pith_ngap::GlobalRanNodeId) -> Option<GlobalRanNodeId> {
    let pith_ngap::GlobalRanNodeId::Gnb { plmn, id, bits } = node else { return None };
    let mut node = GlobalRanNodeId::new(plmn);
    let digits = usize::from(bits.div_ceil(4));
    node.g_nb_id = Some(GNbId { bit_length: bits, g_nb_value: format!("{id:0digits$x}").into() });
    Some(node)
}

fn handover_update(state: nsmf::HoState) -> nsmf::SmContextUpdateData {
    nsmf::SmContextUpdateData { ho_state: Some(state), ..Default::default() }
}

/// Sends the SMF the target gNB's result (TS 29.502 5.2.2.3.4.3).
pub(crate) fn handover_prepared(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    id: u8,
    transfer: Vec<u8>,
    kind: nsmf::N2SmInfoType,
) -> Option<CallId> {
    let mut body = handover_update(nsmf::HoState::Prepared);
    body.n2_sm_info = Some(BinaryData::from(transfer));
    body.n2_sm_info_type = Some(kind);
    update(ue, env, id, body)
}

/// The UE is at the target gNB: requests the SMF to switch the path (TS 29.502 5.2.2.3.4.4). `is_new`: another AMF has served the UE.
pub(crate) fn complete_handover(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    id: u8,
    is_new: bool,
) -> Option<CallId> {
    let serving = if is_new { serving_amf(ue, env, id) } else { nsmf::SmContextUpdateData::default() };
    let ho_state = Some(nsmf::HoState::Completed);
    let ue_time_zone = env.ue_time_zone();
    let body = nsmf::SmContextUpdateData { ue_location: location(ue), ue_time_zone, ho_state, ..serving };
    update(ue, env, id, body)
}

/// As [`complete_handover`], to an SMF that may not have got that request: it learns this AMF, if it does not know it, and has the callback URI of that
/// request. What it has not answered besides is repeated, too.
pub(crate) fn repeat_completion(ue: &mut UeContext, env: &mut Env<'_>, id: u8) -> Option<CallId> {
    let (number, before) = ue.session(id).map(|session| (session.number, session.last_call))?;
    let callback = status_callback_of(ue, env, id, number);
    let serving = serving_amf_at(ue, env, id, callback);
    let ho_state = Some(nsmf::HoState::Completed);
    let ue_time_zone = env.ue_time_zone();
    let body = nsmf::SmContextUpdateData { ue_location: location(ue), ue_time_zone, ho_state, ..serving };
    let call = update(ue, env, id, body);
    ue.session_mut(id)?.last_call = before;
    call
}

/// The handover does not take place (TS 29.502 5.2.2.3.4.5). The reply changes nothing.
pub(crate) fn cancel_handover(ue: &mut UeContext, env: &mut Env<'_>, id: u8) {
    update(ue, env, id, handover_update(nsmf::HoState::Cancelled));
}

/// Reports that the target gNB of an Xn handover has no resources for the session (TS 29.502 5.2.2.3.3.3).
pub(crate) fn path_switch_setup_failed(ue: &mut UeContext, env: &mut Env<'_>, id: u8, transfer: Vec<u8>) {
    let Some(serving) = unknown_amf(ue, env, id) else { return };
    let Some(session) = ue.session_mut(id) else { return };
    session.user_plane = UserPlane::Deactivated;
    let body = nsmf::SmContextUpdateData {
        failed_to_be_switched: Some(true),
        n2_sm_info: Some(BinaryData::from(transfer)),
        n2_sm_info_type: Some(nsmf::N2SmInfoType::PathSwitchSetupFail),
        ..serving
    };
    notify_smf(ue, env, id, body);
}

/// Requests the SMF to deactivate the session's user plane, if it has one.
pub(crate) fn deactivate(ue: &mut UeContext, env: &mut Env<'_>, id: u8) {
    let Some(session) = ue.session_mut(id) else { return };
    match session.user_plane {
        UserPlane::Deactivated => {}
        UserPlane::Unannounced => announce_deactivated(ue, env, id),
        _ => {
            session.user_plane = UserPlane::Deactivated;
            repeat_deactivation(ue, env, id);
        }
    }
}

/// The request of [`deactivate`]. An SMF that may not know that this AMF serves the session learns it.
pub(crate) fn repeat_deactivation(ue: &mut UeContext, env: &mut Env<'_>, id: u8) {
    let Some(serving) = unknown_amf(ue, env, id) else { return };
    let body = nsmf::SmContextUpdateData { up_cnx_state: Some(nsmf::UpCnxState::Deactivated), ..serving };
    notify_smf(ue, env, id, body);
}

/// An activation has failed, or is not awaited any longer. If the SMF has not answered the deactivation before it, the UPF may still send packets to
/// the gNB that the UE has left (TS 23.502 4.2.6): the request is repeated. Not if another AMF may serve the session.
pub(crate) fn deactivate_unheard(ue: &mut UeContext, env: &mut Env<'_>, id: u8) {
    if ue.transferred_to.is_some() || departure::may_be_complete(ue) {
        return;
    }
    let Some(session) = ue.session(id).filter(|session| session.lacks_answer()) else { return };
    match session.user_plane {
        UserPlane::Deactivated => repeat_deactivation(ue, env, id),
        UserPlane::Unannounced => announce_deactivated(ue, env, id),
        _ => {}
    }
}

/// Releases a session in this AMF, at the SMF, and at the gNB if it has resources for it.
pub(crate) fn release_session(ue: &mut UeContext, env: &mut Env<'_>, id: u8) {
    let Some(at) = ue.sessions.iter().position(|session| session.id == id) else { return };
    let is_pending = ue.mobility.switches_path_of(id);
    let session = ue.sessions.swap_remove(at);
    let guami = env.config.guami_in(ue.location);
    end_at_smf(env, guami, &session, is_pending);
    if !n2_handover::session_ended(ue, env, &session) {
        delivery::release_ended(ue, env, &session);
    }
    if env.stores_ues && session.sm_context.is_some() {
        ue.released_sessions.push(session);
    }
}

/// Ends a session that another AMF has passed on, and that this one does not take.
pub(crate) fn release_passed_on(ue: &mut UeContext, env: &mut Env<'_>, session: PduSession) {
    let Some(context) = &session.sm_context else { return };
    let guami = env.config.guami_in(ue.location);
    release_as_serving(env, guami, context, nsmf::SmContextCause::RelDueToSliceNotAvailable);
    if env.stores_ues {
        ue.released_sessions.push(session);
    }
}

/// Ends a session at an SMF that may not know that this AMF serves it: in one request, which the SMF accepts from this AMF (TS 29.502 5.2.2.3.12).
fn release_as_serving(env: &mut Env<'_>, guami: Guami, context: &Uri, cause: nsmf::SmContextCause) {
    let body = nsmf::SmContextUpdateData {
        serving_nf_id: Some(env.config.identity.instance_id),
        guami: Some(guami),
        serving_network: Some(guami.plmn_id.into()),
        release: Some(true),
        cause: Some(cause),
        ..Default::default()
    };
    let sm_context_ref = context.id().to_owned();
    env.call_without_reply(owner(context), nsmf::UpdateSmContext { sm_context_ref, body });
}

/// Ends a session at its SMF. ReleaseSMContext would be refused if the SMF has not got the announcement of this AMF (`is_pending`), perhaps with
/// the request to switch its path. While the session may be another AMF's, it is not announced: see [`leave_to_other_amf`].
fn end_at_smf(env: &mut Env<'_>, guami: Guami, session: &PduSession, is_pending: bool) {
    match &session.sm_context {
        Some(context) if is_pending || session.is_unannounced() => {
            release_as_serving(env, guami, context, nsmf::SmContextCause::RelDueToUnspecifiedReason);
        }
        Some(context) => release_sm_context(env, context),
        None => {}
    }
}

/// Releases all sessions. The gNB is not asked: its connection ends too.
pub(super) fn release_all_sessions(ue: &mut UeContext, env: &mut Env<'_>) {
    let guami = env.config.guami_in(ue.location);
    for session in ue.sessions.drain(..) {
        end_at_smf(env, guami, &session, false);
    }
}

/// Another AMF may have taken the sessions, and announced itself to the SMFs. An SMF believes an AMF that names itself, and refuses ReleaseSMContext
/// of the AMF that served the UE before: only the latter is sent from now on.
pub(crate) fn leave_to_other_amf(ue: &mut UeContext) {
    ue.sessions.iter_mut().for_each(PduSession::forget_announcement);
}

/// Nsmf_PDUSession_ReleaseSMContext.
pub(crate) fn release_sm_context(env: &mut Env<'_>, context: &Uri) {
    let sm_context_ref = context.id().to_owned();
    let body = nsmf::SmContextReleaseData::default();
    env.call_without_reply(owner(context), nsmf::ReleaseSmContext { sm_context_ref, body });
}
