//! The AMF as a service consumer: one function for each SBI request to another NF. The procedures
//! handle the replies.

use super::context::{CallId, Env, UeContext};
use super::mobility::n2_handover;
use super::mobility::n14::sbi_cause;
use super::procedure::registration::begins_registration;
use super::reallocation::NssfSlices;
use super::session::{PduSession, SessionCall, UserPlane};
use super::slices::Slices;
use super::{delivery, ladn, residency};
use crate::kit::{Selection, Target};
use bytes::Bytes;
use pith_nas::GmmMessage;
use pith_nas::gmm::RegistrationRequest;
use pith_nas::ie::RegistrationKind;
use pith_ngap::{Cause, CauseRadioNetwork};
use pith_sbi::common::{
    AccessType, BinaryData, GNbId, GlobalRanNodeId, Ncgi, NrLocation, PlmnIdNid, PresenceState, RatType,
    SupiOrSuci, SupportedFeatures, UeContextId, UserLocation,
};
use pith_sbi::namf_communication as namf;
use pith_sbi::nausf_ueauthentication as nausf;
use pith_sbi::nnssf_nsselection as nnssf;
use pith_sbi::npcf_ampolicycontrol as npcf;
use pith_sbi::nsmf_pdusession as nsmf;
use pith_sbi::nudm_sdm as sdm;
use pith_sbi::nudm_uecm as uecm;
use pith_sbi::{ApiRoot, Base64, NfType, Reply, ResourceUri, Response, Uri};
use pith_types::{AmfUeNgapId, ContextId, FiveGGuti, RanUeNgapId, Snssai, Supi, Tai};
use std::sync::Arc;

/// Requests that change or delete a resource go to the NF that created it.
fn owner(resource: &Uri) -> Target {
    Target::Root(Arc::clone(&resource.root))
}

/// The UE's location as an SBI data type.
fn location(ue: &UeContext) -> Option<UserLocation> {
    let seen = ue.location?;
    let cell = Ncgi::new(seen.cell_plmn, seen.cell);
    Some(UserLocation { nr_location: Some(NrLocation::new(seen.tai, cell)) })
}

/// The name that the callback reference of a session carries: the id of the UE's context, and the number of the session among
/// those with the same PDU session identity.
pub(crate) fn session_name(ue: ContextId, id: u8, number: CallId) -> String {
    format!("{ue}-{id}-{}", number.0)
}

/// UE, PDU session identity and number in such a name.
pub(crate) fn of_session_name(name: &str) -> Option<(ContextId, u8, u32)> {
    let mut parts = name.splitn(3, '-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The name that the callback reference of a handover to another AMF carries: the id of the UE's context, and the number of the handover.
fn handover_name(ue: ContextId, number: CallId) -> String {
    format!("{ue}-n2-{}", number.0)
}

/// UE and number in such a name.
pub(crate) fn of_handover_name(name: &str) -> Option<(ContextId, u32)> {
    let (ue, number) = name.split_once("-n2-")?;
    Some((ue.parse().ok()?, number.parse().ok()?))
}

/// Deletes the resource that a reply created, or gave to this AMF, if no procedure waits for the reply.
pub(crate) fn undo(env: &mut Env<'_>, reply: Reply) {
    match reply {
        Ok(Response::SmContextCreated(created)) => release_sm_context(env, &created.location),
        Ok(Response::PolicyAssociationCreated(created)) => delete_association(env, &created.location),
        Ok(Response::PolicyUpdate(update)) if is_policy(&update.resource_uri) => {
            delete_association(env, &update.resource_uri);
        }
        Ok(Response::UeContextCreated(created)) => {
            let cause = CauseRadioNetwork::handover_cancelled;
            release_ue_context(env, &created.location, Cause::RadioNetwork(cause));
        }
        _ => {}
    }
}

// Nausf_UEAuthentication (TS 29.509)

/// Nausf_UEAuthentication_Authenticate.
pub(crate) fn authenticate(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    identity: &SupiOrSuci,
    resynchronization: Option<nausf::ResynchronizationInfo>,
) -> CallId {
    let plmn = ue.location.map_or(env.config.guami.plmn_id, |location| location.tai.plmn_id);
    let mut body = nausf::AuthenticationInfo::new(identity.clone(), plmn.serving_network_name());
    body.resynchronization_info = resynchronization;
    ue.call(env, Target::any(), nausf::Authenticate { body })
}

/// Nausf_UEAuthentication_Authenticate: the UE's response to the 5G-AKA challenge; `None` if the UE
/// sent none.
pub(crate) fn confirm_5g_aka(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    context: &Uri,
    res_star: Option<[u8; 16]>,
) -> CallId {
    let auth_ctx_id = authentication_id(context).to_owned();
    let body = nausf::ConfirmationData { res_star: res_star.map(Into::into), supported_features: None };
    ue.call(env, owner(context), nausf::FiveGAkaConfirmation { auth_ctx_id, body })
}

/// Nausf_UEAuthentication_Authenticate: the UE's EAP-Response.
pub(crate) fn eap_session(ue: &mut UeContext, env: &mut Env<'_>, context: &Uri, packet: Bytes) -> CallId {
    let auth_ctx_id = authentication_id(context).to_owned();
    let body = nausf::EapSession::new(Some(Base64(packet)));
    ue.call(env, owner(context), nausf::EapAuthMethod { auth_ctx_id, body })
}

/// `authCtxId` in the URI of an authentication context, or of a resource below it.
fn authentication_id(context: &Uri) -> &str {
    let mut segments = context.path.split('/');
    segments
        .find(|segment| *segment == "ue-authentications")
        .and_then(|_| segments.next())
        .unwrap_or_default()
}

// Nudm_UECM, Nudm_SDM (TS 29.503)

/// Nudm_UECM_Registration; `None` if the SUPI is not known.
pub(crate) fn register_in_udm(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    kind: RegistrationKind,
) -> Option<CallId> {
    let supi = ue.supi.clone()?;
    let root = &env.config.identity.api_root;
    let callback =
        uecm::DeregistrationNotification::callback_uri(root, &NfType::Amf, &env.references.of_id(ue.id));
    let mut body = uecm::Amf3GppAccessRegistration::new(
        env.config.identity.instance_id,
        callback,
        env.config.guami,
        RatType::Nr,
    );
    body.pei = ue.pei.clone();
    body.initial_registration_ind = Some(begins_registration(kind));
    body.emergency_registration_ind = ue.is_emergency_registered().then_some(true);
    Some(ue.call(env, Target::any(), uecm::ThreeGppRegistration { ue_id: supi, body }))
}

/// Nudm_SDM_Get: access and mobility data and SMF selection data in one request; `None` if the SUPI
/// is not known.
pub(crate) fn subscription_data(ue: &mut UeContext, env: &mut Env<'_>) -> Option<CallId> {
    let request = sdm::GetDataSets {
        supi: ue.supi.clone()?,
        dataset_names: vec![sdm::DataSetName::Am, sdm::DataSetName::SmfSel],
        plmn_id: Some(env.config.guami.plmn_id.into()),
    };
    Some(ue.call(env, Target::any(), request))
}

/// Nudm_SDM_Subscribe to changes of the same data; `None` if the SUPI is not known.
pub(crate) fn subscribe_to_changes(ue: &mut UeContext, env: &mut Env<'_>) -> Option<CallId> {
    let supi = ue.supi.clone()?;
    let root = &env.config.identity.api_root;
    let callback = sdm::SdmChangeNotification::callback_uri(root, &NfType::Amf, &env.references.of_id(ue.id));
    let resource = |data: &str| ResourceUri::from(format!("/nudm-sdm/v2/{supi}/{data}").as_str());
    let monitored = vec![resource("am-data"), resource("smf-select-data")];
    let mut body = sdm::SdmSubscription::new(env.config.identity.instance_id, callback, monitored);
    body.implicit_unsubscribe = Some(true);
    // After a kill between the UDM's answer and the document's write, the AMF subscribes again: one of both would stay at the UDM.
    body.unique_subscription = Some(true);
    Some(ue.call(env, Target::any(), sdm::SdmSubscribe { ue_id: supi, body }))
}

/// Nudm_SDM_Unsubscribe, if there is a subscription.
pub(crate) fn unsubscribe(ue: &mut UeContext, env: &mut Env<'_>) {
    let Some((ue_id, subscription)) = ue.supi.clone().zip(ue.sdm_subscription.take()) else { return };
    let subscription_id = subscription.id().to_owned();
    env.call_without_reply(owner(&subscription), sdm::SdmUnsubscribe { ue_id, subscription_id });
}

// Nnssf_NSSelection (TS 29.531)

/// Nnssf_NSSelection_Get for a registration.
pub(crate) fn select_slices(ue: &mut UeContext, env: &mut Env<'_>, requested: &[Snssai]) -> CallId {
    let mut info =
        nnssf::SliceInfoForRegistration { requested_nssai: requested.to_vec(), ..Default::default() };
    if let Some(subscription) = &ue.subscription {
        let subscribed = |slice: &Snssai, default| {
            let mut subscribed = nnssf::SubscribedSnssai::new(*slice);
            subscribed.default_indication = Some(default);
            subscribed
        };
        let default = subscription.default_slices.iter().map(|slice| subscribed(slice, true));
        let others = subscription.slices.iter().map(|slice| subscribed(slice, false));
        info.subscribed_nssai = default.chain(others).collect();
    }
    let request =
        nnssf::NsSelectionGet { slice_info_request_for_registration: Some(info), ..slice_selection(ue, env) };
    ue.call(env, Target::any(), request)
}

/// Nnssf_NSSelection_Get for the slice instance of a session (TS 23.502 4.3.2.2.3.2).
fn select_instance(ue: &mut UeContext, env: &mut Env<'_>, id: u8, payload: &Bytes) {
    let Some(snssai) = ue.session(id).map(|session| session.snssai) else { return };
    let info = nnssf::SliceInfoForPduSession::new(snssai, nnssf::RoamingIndication::NonRoaming);
    let request =
        nnssf::NsSelectionGet { slice_info_request_for_pdu_session: Some(info), ..slice_selection(ue, env) };
    let call = ue.call(env, Target::any(), request);
    if let Some(session) = ue.session_mut(id) {
        session.calls.push((call, SessionCall::SelectInstance(payload.clone())));
    }
}

fn slice_selection(ue: &UeContext, env: &Env<'_>) -> nnssf::NsSelectionGet {
    nnssf::NsSelectionGet {
        nf_type: NfType::Amf,
        nf_id: env.config.identity.instance_id,
        slice_info_request_for_registration: None,
        slice_info_request_for_pdu_session: None,
        home_plmn_id: None,
        tai: ue.location.map(|location| location.tai),
        supported_features: None,
    }
}

// Npcf_AMPolicyControl (TS 29.507)

/// Whether a URI of another AMF is that of an AM policy association.
pub(crate) fn is_policy(uri: &Uri) -> bool {
    let resource = uri.path.split_once("/npcf-am-policy-control/v1/policies/");
    resource.is_some_and(|(_, id)| !id.is_empty() && !id.contains(['/', '?']))
}

/// The URI to which the PCF sends notifications.
fn policy_callback(ue: &UeContext, env: &Env<'_>) -> Uri {
    let root = &env.config.identity.api_root;
    npcf::AmPolicyUpdateNotify::callback_uri(root, &NfType::Amf, &env.references.of_id(ue.id))
}

/// Npcf_AMPolicyControl_Create; `None` if the SUPI is not known.
pub(crate) fn create_policy(ue: &mut UeContext, env: &mut Env<'_>) -> Option<CallId> {
    let supi = ue.supi.clone()?;
    let callback = policy_callback(ue, env);
    let mut body = npcf::PolicyAssociationRequest::new(callback, supi, SupportedFeatures::default());
    body.access_type = Some(AccessType::ThreeGppAccess);
    body.rat_type = Some(RatType::Nr);
    body.pei = ue.pei.clone();
    body.user_loc = location(ue);
    body.serving_plmn = Some(env.config.guami.plmn_id.into());
    body.guami = Some(env.config.guami);
    body.allowed_snssais = ue.slices.allowed.clone();
    body.serv_area_res = ue.subscribed_service_area();
    if let Some(subscription) = &ue.subscription {
        body.gpsi = subscription.gpsi.clone();
        body.rfsp = subscription.rfsp;
        body.ue_ambr = subscription.ue_ambr;
    }
    Some(ue.call(env, Target::any(), npcf::CreateAmPolicyAssociation { body }))
}

/// Npcf_AMPolicyControl_Update: this AMF goes on with the association of the AMF from which the context came (TS 29.507 4.2.3.1, TS 23.502
/// 4.16.2.2). `None` if there is none that this AMF takes.
pub(crate) fn take_policy(ue: &mut UeContext, env: &mut Env<'_>) -> Option<CallId> {
    let uri = ue.transferred_policy.as_ref().filter(|policy| policy.is_taken)?.uri.clone();
    let request = policy_relocation(ue, env, &uri);
    Some(ue.call(env, owner(&uri), request))
}

fn policy_relocation(ue: &UeContext, env: &Env<'_>, association: &Uri) -> npcf::UpdateAmPolicyAssociation {
    let mut body = npcf::PolicyAssociationUpdateRequest::default();
    body.notification_uri = Some(policy_callback(ue, env));
    body.guami = Some(env.config.guami);
    npcf::UpdateAmPolicyAssociation { pol_asso_id: association.id().to_owned(), body }
}

/// Npcf_AMPolicyControl_Get: the whole policy of an association.
pub(crate) fn read_policy(ue: &mut UeContext, env: &mut Env<'_>, association: &Uri) -> CallId {
    let request = npcf::ReadAmPolicyAssociation { pol_asso_id: association.id().to_owned() };
    ue.call(env, owner(association), request)
}

/// Npcf_AMPolicyControl_Delete.
pub(crate) fn delete_policy(ue: &mut UeContext, env: &mut Env<'_>) {
    if let Some(policy) = ue.policy.take() {
        delete_association(env, &policy.uri);
    }
    end_transferred_policy(ue, env);
}

/// Ends an association that the AMF from which the context came has left to this one, if it did not go on with it: the PCF is notified
/// that it is this AMF's, which [`undo`] then deletes.
fn end_transferred_policy(ue: &mut UeContext, env: &mut Env<'_>) {
    if let Some(policy) = ue.transferred_policy.take().filter(|policy| policy.is_taken) {
        let request = policy_relocation(ue, env, &policy.uri);
        env.call_without_reply(owner(&policy.uri), request);
    }
}

fn delete_association(env: &mut Env<'_>, association: &Uri) {
    let pol_asso_id = association.id().to_owned();
    env.call_without_reply(owner(association), npcf::DeleteAmPolicyAssociation { pol_asso_id });
}

// Nsmf_PDUSession (TS 29.502)

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
        PlmnIdNid::from(env.config.guami.plmn_id),
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
    body.guami = Some(env.config.guami);
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
    let reference = env.references.of_name(&session_name(ue.id, id, number));
    if let Some(session) = ue.session_mut(id) {
        session.number = number;
    }
    nsmf::SmContextStatusNotify::callback_uri(&env.config.identity.api_root, &NfType::Amf, &reference)
}

/// Notifies the SMFs of transferred sessions that this AMF serves the UE now (TS 23.502 4.2.2.2.2 step 17).
pub(crate) fn announce_sessions(ue: &mut UeContext, env: &mut Env<'_>) {
    let ids: Vec<u8> = ue.sessions.iter().map(|session| session.id).collect();
    for id in ids {
        announce_session(ue, env, id);
    }
}

/// As [`announce_sessions`], of one session.
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
    nsmf::SmContextUpdateData {
        serving_nf_id: Some(env.config.identity.instance_id),
        guami: Some(env.config.guami),
        sm_context_status_uri: Some(status_callback(ue, env, id)),
        presence_in_ladn: presence_in_ladn(ue, env, id),
        ..Default::default()
    }
}

fn presence_in_ladn(ue: &UeContext, env: &Env<'_>, id: u8) -> Option<PresenceState> {
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
fn sbi_node(node: pith_ngap::GlobalRanNodeId) -> Option<GlobalRanNodeId> {
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

/// The request of [`deactivate`].
pub(crate) fn repeat_deactivation(ue: &mut UeContext, env: &mut Env<'_>, id: u8) {
    let body =
        nsmf::SmContextUpdateData { up_cnx_state: Some(nsmf::UpCnxState::Deactivated), ..Default::default() };
    notify_smf(ue, env, id, body);
}

/// Releases a session in this AMF, at the SMF, and at the gNB if it has resources for it.
pub(crate) fn release_session(ue: &mut UeContext, env: &mut Env<'_>, id: u8) {
    let Some(at) = ue.sessions.iter().position(|session| session.id == id) else { return };
    let session = ue.sessions.swap_remove(at);
    end_at_smf(env, &session);
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
    release_as_serving(env, context, nsmf::SmContextCause::RelDueToSliceNotAvailable);
    if env.stores_ues {
        ue.released_sessions.push(session);
    }
}

/// Ends a session at an SMF that may not know that this AMF serves it: in one request, which the SMF accepts from this AMF (TS 29.502 5.2.2.3.12).
fn release_as_serving(env: &mut Env<'_>, context: &Uri, cause: nsmf::SmContextCause) {
    let body = nsmf::SmContextUpdateData {
        serving_nf_id: Some(env.config.identity.instance_id),
        guami: Some(env.config.guami),
        release: Some(true),
        cause: Some(cause),
        ..Default::default()
    };
    let sm_context_ref = context.id().to_owned();
    env.call_without_reply(owner(context), nsmf::UpdateSmContext { sm_context_ref, body });
}

/// Ends a session at its SMF. ReleaseSMContext would be refused if the SMF has not got the announcement of this AMF. While the session may be
/// another AMF's, it is not announced: see [`leave_to_other_amf`].
fn end_at_smf(env: &mut Env<'_>, session: &PduSession) {
    match &session.sm_context {
        Some(context) if session.is_unannounced() => {
            release_as_serving(env, context, nsmf::SmContextCause::RelDueToUnspecifiedReason);
        }
        Some(context) => release_sm_context(env, context),
        None => {}
    }
}

/// Releases all sessions. The gNB is not asked: its connection ends too.
fn release_all_sessions(ue: &mut UeContext, env: &mut Env<'_>) {
    for session in ue.sessions.drain(..) {
        end_at_smf(env, &session);
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

/// Deletes the UE's resources at other NFs: sessions, policy, subscription, registration (TS 23.502
/// 4.2.2.3.2; 4.5.3 for the purge). The data received from these NFs are deleted too.
pub(crate) fn release_all(ue: &mut UeContext, env: &mut Env<'_>) {
    if ue.transferred_to.is_some() {
        leave_to_other_amf(ue);
    }
    residency::note_resources(ue, env);
    release_all_sessions(ue, env);
    delete_policy(ue, env);
    (ue.subscription, ue.restrictions, ue.slices) = (None, None, Slices::default());
    ue.subscribe_trace(None, env.out);
    (ue.sdm_call, ue.refresh_call) = (None, None);
    unsubscribe(ue, env);
    let Some(ue_id) = ue.supi.clone() else { return };
    // If another context of this AMF serves the subscriber, the registration is that one's.
    let is_served = env.index.find_supi(&ue_id).is_some_and(|key| key != ue.key);
    if std::mem::take(&mut ue.registered_in_udm) && !is_served {
        let mut body = uecm::Amf3GppAccessRegistrationModification::new(env.config.guami);
        body.purge_flag = Some(true);
        env.call_without_reply(Target::any(), uecm::UpdateThreeGppRegistration { ue_id, body });
    }
}

// Namf_Communication (TS 29.518) at other AMFs

/// Namf_Communication_UEContextTransfer to the AMF that allocated the 5G-GUTI.
pub(crate) fn transfer_context(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    target: Target,
    guti: FiveGGuti,
    reason: namf::TransferReason,
) -> CallId {
    let mut body = namf::UeContextTransferReqData::new(reason, AccessType::ThreeGppAccess);
    let content = BinaryData::from(std::mem::take(&mut ue.initial.nas_pdu));
    body.reg_request = Some(namf::N1MessageContainer::new(namf::N1MessageClass::FiveGmm, content));
    body.plmn_id = Some(env.config.guami.plmn_id);
    let request = namf::UeContextTransfer { ue_context_id: UeContextId::FiveGGuti(guti), body };
    ue.call(env, target, request)
}

/// As [`transfer_context`], for a UE that this AMF has authenticated (TS 29.518 6.1.6.3.7).
pub(crate) fn transfer_context_of_authenticated(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    old_amf: &Arc<ApiRoot>,
    supi: Supi,
) -> CallId {
    let reason = namf::TransferReason::MobiRegUeValidated;
    let mut body = namf::UeContextTransferReqData::new(reason, AccessType::ThreeGppAccess);
    body.plmn_id = Some(env.config.guami.plmn_id);
    let request = namf::UeContextTransfer { ue_context_id: UeContextId::Supi(supi), body };
    ue.call(env, Target::Root(Arc::clone(old_amf)), request)
}

/// Namf_Communication_RegistrationStatusUpdate: whether this AMF has the UE's context now.
pub(crate) fn report_transfer(
    env: &mut Env<'_>,
    peer: Arc<ApiRoot>,
    ue_context_id: UeContextId,
    body: namf::UeRegStatusUpdateReqData,
) {
    env.call_without_reply(Target::Root(peer), namf::RegistrationStatusUpdate { ue_context_id, body });
}

/// Namf_Communication_N1MessageNotify to an AMF that is to serve the UE: the URI of an AMF of another vendor is in its profile. `None` if the
/// location is not known.
pub(crate) fn pass_registration_on(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    (target, context): (Target, namf::UeContext),
    (gnb, (amf_id, ran_id)): (pith_ngap::GlobalRanNodeId, (AmfUeNgapId, RanUeNgapId)),
    request: &RegistrationRequest,
    nssf: &NssfSlices,
) -> Option<CallId> {
    let content = BinaryData::from(GmmMessage::from(request.clone()).encode());
    let mut container = namf::RegistrationContextContainer::new(
        context,
        AccessType::ThreeGppAccess,
        ran_id.0,
        sbi_node(gnb)?,
        env.config.name.as_str(),
        location(ue)?,
    );
    container.ue_context_request = Some(ue.initial.wants_context);
    container.initial_amf_n2_ap_id = Some(amf_id.value());
    nssf.fill(&mut container);
    let message = namf::N1MessageContainer::new(namf::N1MessageClass::FiveGmm, content);
    let mut body = namf::N1MessageNotification::new(message);
    body.registration_ctxt_container = Some(container);
    body.guami = Some(env.config.guami);
    let uri = namf::N1MessageNotify::callback_uri(
        &env.config.identity.api_root,
        &NfType::Amf,
        REGISTRATIONS_OF_OTHER_AMFS,
    );
    Some(ue.call(env, target, namf::N1MessageNotify { uri, body }))
}

/// The reference in the callback URI of this AMF's default notification subscription (TS 29.510 6.1.6.2.4).
pub(crate) const REGISTRATIONS_OF_OTHER_AMFS: &str = "default";

/// Namf_Communication_CreateUEContext to an AMF that serves the tracking area; `None` if the SUPI is not known.
pub(crate) fn create_ue_context(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    tai: Tai,
    body: namf::UeContextCreateData,
) -> Option<CallId> {
    let ue_context_id = UeContextId::Supi(ue.supi.clone()?);
    let target = Target::Service(Selection { tai: Some(tai), is_other: true, ..Selection::default() });
    Some(ue.call(env, target, namf::CreateUeContext { ue_context_id, body }))
}

/// The URI at which the target AMF reports the completion of that handover.
pub(crate) fn n2_callback(ue: &UeContext, env: &Env<'_>, number: CallId) -> Uri {
    let reference = env.references.of_name(&handover_name(ue.id, number));
    namf::N2InfoNotify::callback_uri(&env.config.identity.api_root, &NfType::Amf, &reference)
}

/// Namf_Communication_ReleaseUEContext at the target AMF, which has created this context.
pub(crate) fn release_ue_context(env: &mut Env<'_>, context: &Uri, cause: Cause) {
    let Ok(ue_context_id) = context.id().parse() else { return };
    release_named_ue_context(env, owner(context), ue_context_id, cause);
}

/// As [`release_ue_context`], by the name that this AMF has given the context in its request.
pub(crate) fn release_named_ue_context(
    env: &mut Env<'_>,
    target: Target,
    ue_context_id: UeContextId,
    cause: Cause,
) {
    let body = namf::UeContextRelease::new(sbi_cause(cause));
    env.call_without_reply(target, namf::ReleaseUeContext { ue_context_id, body });
}

/// Namf_Communication_N1N2MessageTransfer of a status of the source gNB to the target AMF.
pub(crate) fn transfer_ran_status(env: &mut Env<'_>, context: &Uri, status: namf::N2InfoContent) {
    let Ok(ue_context_id) = context.id().parse() else { return };
    let mut container = namf::N2InfoContainer::new(namf::N2InformationClass::Ran);
    container.ran_info = Some(namf::N2RanInformation::new(status));
    let mut body = namf::N1N2MessageTransferReqData::default();
    body.n2_info_container = Some(container);
    env.call_without_reply(owner(context), namf::N1N2MessageTransfer { ue_context_id, body });
}

/// Namf_Communication_N2InfoNotify to the source AMF: the UE is here, without the sessions that this AMF does not serve.
pub(crate) fn notify_source_amf(env: &mut Env<'_>, uri: Uri, to_release: Vec<u8>) {
    let mut body = namf::N2InformationNotification::new(uri.id());
    body.notify_reason = Some(namf::N2InfoNotifyReason::HandoverCompleted);
    body.guami = Some(env.config.guami);
    body.to_release_session_list = to_release;
    let target = owner(&uri);
    env.call_without_reply(target, namf::N2InfoNotify { uri, body });
}

/// Namf_Communication_N1N2TransferFailureNotification: the UE does not respond to paging.
pub(crate) fn transfer_failed(env: &mut Env<'_>, callback: Uri, message: Uri) {
    let body =
        namf::N1N2MsgTxfrFailureNotification::new(namf::N1N2MessageTransferCause::UeNotResponding, message);
    let target = owner(&callback);
    env.call_without_reply(target, namf::N1N2TransferFailureNotification { uri: callback, body });
}
