//! The AMF as a service consumer: one function for each SBI request to another NF. The procedures
//! handle the replies.

mod amf;
mod smf;

pub(crate) use amf::{
    REGISTRATIONS_OF_OTHER_AMFS, create_ue_context, n2_callback, notify_source_amf, pass_registration_on,
    release_named_ue_context, release_ue_context, report_transfer, transfer_context,
    transfer_context_of_authenticated, transfer_ran_status,
};
pub(crate) use smf::{
    activate, announce_deactivated, announce_session, cancel_handover, complete_handover, create_session,
    deactivate, deactivate_unheard, establish_session, forward, handover_prepared, leave_to_other_amf,
    move_flows, path_switch_setup_failed, postpone_report, prepare_handover, presence_reported,
    release_passed_on, release_session, release_sm_context, repeat_completion, repeat_deactivation, report,
    report_presence, report_released, report_usage, retransmit_report, sm_context_created, switch_path,
    target_id,
};

use crate::amf::context::{CallId, Env, UeContext};
use crate::amf::procedure::registration::begins_registration;
use crate::amf::residency;
use crate::amf::session::SessionCall;
use crate::amf::slices::Slices;
use crate::kit::Target;
use bytes::Bytes;
use pith_nas::ie::RegistrationKind;
use pith_ngap::{Cause, CauseRadioNetwork};
use pith_sbi::common::{AccessType, Ncgi, NrLocation, RatType, SupiOrSuci, SupportedFeatures, UserLocation};
use pith_sbi::namf_communication as namf;
use pith_sbi::nausf_ueauthentication as nausf;
use pith_sbi::nnssf_nsselection as nnssf;
use pith_sbi::npcf_ampolicycontrol as npcf;
use pith_sbi::nudm_sdm as sdm;
use pith_sbi::nudm_uecm as uecm;
use pith_sbi::{Base64, NfType, Reply, ResourceUri, Response, Uri};
use pith_types::{ContextId, Guami, Plmn, Snssai};
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
    if ue.lacks_registration() {
        // What the UDM answers to the request at its arrival does not count any longer.
        ue.sdm_call = None;
    }
    let root = &env.config.identity.api_root;
    let callback =
        uecm::DeregistrationNotification::callback_uri(root, &NfType::Amf, &env.references.of_id(ue.id));
    if !ue.registered_in_udm {
        // An aborted registration counts as one.
        ue.udm_plmn = network_at_udm(ue, env);
    }
    let guami = env.config.guami_in(ue.location);
    let instance = env.config.identity.instance_id;
    let mut body = uecm::Amf3GppAccessRegistration::new(instance, callback, guami, RatType::Nr);
    body.pei = ue.pei.clone();
    body.initial_registration_ind = Some(begins_registration(kind));
    body.emergency_registration_ind = ue.is_emergency_registered().then_some(true);
    Some(ue.call(env, Target::any(), uecm::ThreeGppRegistration { ue_id: supi, body }))
}

/// Nudm_UECM_Registration of a UE that another AMF has handed over, when it arrives. The UDM, which knows the order of registrations, notifies the
/// former AMF, and this one if the UE registers elsewhere from now on; TS 23.502 4.9.1.3.3 step 12 has it with the UE's registration, which need
/// not follow.
pub(crate) fn register_arrival(ue: &mut UeContext, env: &mut Env<'_>) {
    ue.sdm_call = register_in_udm(ue, env, RegistrationKind::MobilityUpdating);
    // The UDM may have processed a request whose reply is lost.
    ue.registered_in_udm = ue.sdm_call.is_some();
}

/// The network of the UE, if it is not the usual one.
fn network_at_udm(ue: &UeContext, env: &Env<'_>) -> Option<Plmn> {
    Some(env.config.plmn_in(ue.location)).filter(|plmn| *plmn != env.config.guami.plmn_id)
}

/// The UDM has registered the AMF as the one that serves the UE. The subscription of a former network is void: if the registration ends before the
/// UDM has sent that of this network, the next one requests it.
pub(crate) fn note_registered_in_udm(ue: &mut UeContext, env: &Env<'_>) {
    let plmn = network_at_udm(ue, env);
    if plmn != ue.udm_plmn {
        ue.subscription = None;
    }
    (ue.registered_in_udm, ue.udm_plmn) = (true, plmn);
}

/// The GUAMI with which the AMF has registered in the UDM.
fn guami_at_udm(ue: &UeContext, env: &Env<'_>) -> Guami {
    env.config.guami_in_network(ue.udm_plmn)
}

/// Whether the AMF is registered in the UDM as the one that serves the UE where it is. In another network of the AMF it has another GUAMI, and
/// the subscription may be another one.
pub(crate) fn is_registered_in_udm(ue: &UeContext, env: &Env<'_>) -> bool {
    ue.registered_in_udm && guami_at_udm(ue, env) == env.config.guami_in(ue.location)
}

/// Nudm_SDM_Get: access and mobility data and SMF selection data in one request; `None` if the SUPI
/// is not known.
pub(crate) fn subscription_data(ue: &mut UeContext, env: &mut Env<'_>) -> Option<CallId> {
    let request = sdm::GetDataSets {
        supi: ue.supi.clone()?,
        dataset_names: vec![sdm::DataSetName::Am, sdm::DataSetName::SmfSel],
        plmn_id: Some(env.config.plmn_in(ue.location).into()),
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
        slice_info_request_for_ue_cu: None,
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
    body.serving_plmn = Some(env.config.plmn_in(ue.location).into());
    body.guami = Some(env.config.guami_in(ue.location));
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
    body.guami = Some(env.config.guami_in(ue.location));
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

/// Deletes the UE's resources at other NFs: sessions, policy, subscription, registration (TS 23.502
/// 4.2.2.3.2; 4.5.3 for the purge). The data received from these NFs are deleted too.
pub(crate) fn release_all(ue: &mut UeContext, env: &mut Env<'_>) {
    if ue.transferred_to.is_some() {
        leave_to_other_amf(ue);
    }
    residency::note_resources(ue, env);
    smf::release_all_sessions(ue, env);
    delete_policy(ue, env);
    (ue.subscription, ue.restrictions, ue.slices) = (None, None, Slices::default());
    ue.subscribe_trace(None, env.out);
    (ue.sdm_call, ue.refresh_call) = (None, None);
    unsubscribe(ue, env);
    let Some(ue_id) = ue.supi.clone() else { return };
    // If another context of this AMF serves the subscriber, the registration is that one's.
    let is_served = env.index.find_supi(&ue_id).is_some_and(|key| key != ue.key);
    if std::mem::take(&mut ue.registered_in_udm) && !is_served {
        let mut body = uecm::Amf3GppAccessRegistrationModification::new(guami_at_udm(ue, env));
        body.purge_flag = Some(true);
        ue.udm_plmn = None;
        env.call_without_reply(Target::any(), uecm::UpdateThreeGppRegistration { ue_id, body });
    }
}

/// Namf_Communication_N1N2TransferFailureNotification: the UE does not respond to paging.
pub(crate) fn transfer_failed(env: &mut Env<'_>, callback: Uri, message: Uri) {
    let body =
        namf::N1N2MsgTxfrFailureNotification::new(namf::N1N2MessageTransferCause::UeNotResponding, message);
    let target = owner(&callback);
    env.call_without_reply(target, namf::N1N2TransferFailureNotification { uri: callback, body });
}
