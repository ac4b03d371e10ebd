//! Calls of other NFs' operations: a function for each operation.

use super::context::{Access, CallId, IpVersions, Qos, SmContext, UeAddress};
use super::env::{Env, IGNORED_REPLY};
use crate::kit::{Outbox, Target};
use pith_sbi::common::{
    Arp, DateTime, PduSessionType, PreemptionCapability, PreemptionVulnerability, SubscribedDefaultQos,
};
use pith_sbi::namf_communication::{
    N1MessageClass, N1MessageContainer, N1N2MessageTransfer, N1N2MessageTransferReqData,
    N1N2TransferFailureNotification, N2InfoContainer, N2InfoContent, N2InformationClass, N2SmInformation,
    NgapIeType,
};
use pith_sbi::npcf_smpolicycontrol::{
    CreateSmPolicy, DeleteSmPolicy, PolicyControlRequestTrigger, RuleReport, ServingNfIdentity,
    SmPolicyContextData, SmPolicyDeleteData, SmPolicyUpdateContextData, UpdateSmPolicy,
};
use pith_sbi::nsmf_pdusession::{
    ResourceStatus, SmContextStatusNotification, SmContextStatusNotify, StatusInfo,
};
use pith_sbi::nudm_sdm::{GetSmData, SdmChangeNotification, SdmSubscribe, SdmSubscription};
use pith_sbi::nudm_uecm::{RegisterSmf, RetrieveSmfRegistration, SmfDeregistration, SmfRegistration};
use pith_sbi::{Cause, NfType, Problem, Reply, ResourceUri, Response, Uri};
use pith_types::{Plmn, Supi};

/// Nudm_SDM_Get: session management subscription data (TS 29.503 5.2.2.2.5).
pub(super) fn get_sm_data(
    session: &mut SmContext,
    env: &mut Env<'_>,
    (supi, plmn_id): (Supi, Plmn),
) -> CallId {
    let request = GetSmData {
        supi,
        single_nssai: Some(session.snssai),
        dnn: Some(session.dnn.clone()),
        plmn_id: Some(plmn_id),
    };
    session.call(env, Target::any(), request)
}

/// Whether an NF has not processed a request, or has failed in it for some time: a later request may succeed.
pub(super) fn is_unanswered(problem: &Problem) -> bool {
    problem.status >= 500 || problem.is(&Cause::NfDiscoveryFailure)
}

/// Nudm_UECM_Registration (TS 23.502 4.3.2.2.1 step 4a), with the time of the session's first one.
pub(super) fn register(session: &mut SmContext, env: &mut Env<'_>, supi: Supi, first: DateTime) -> CallId {
    session.is_registered = true;
    let identity = env.identity;
    let mut body =
        SmfRegistration::new(identity.instance_id, session.pdu_session_id, session.snssai, identity.plmn);
    body.smf_set_id.clone_from(&env.config.set_id);
    body.dnn = Some(session.dnn.clone());
    let callback = Uri::callback(&identity.api_root, &NfType::Smf, "dereg-notify", &env.reference(session));
    body.dereg_callback_uri = Some(callback);
    body.registration_time = Some(first);
    let pdu_session_id = session.pdu_session_id;
    session.call(env, Target::any(), RegisterSmf { ue_id: supi, pdu_session_id, body })
}

/// Nudm_UECM_Get: the SMF that is registered for the session (TS 29.503 5.3.2.5).
pub(super) fn retrieve_registration(session: &mut SmContext, env: &mut Env<'_>, supi: Supi) -> CallId {
    let request = RetrieveSmfRegistration { ue_id: supi, pdu_session_id: session.pdu_session_id };
    session.call(env, Target::any(), request)
}

/// Nudm_SDM_Subscribe to changes of the session's data (TS 23.502 4.3.2.2.1 step 4b). The subscription ends with the registration.
pub(super) fn subscribe_to_changes(session: &mut SmContext, env: &mut Env<'_>, supi: Supi) -> CallId {
    let (root, reference) = (&env.identity.api_root, env.reference(session));
    let callback = SdmChangeNotification::callback_uri(root, &NfType::Smf, &reference);
    let monitored = ResourceUri::from(format!("/nudm-sdm/v2/{supi}/sm-data").as_str());
    let mut body = SdmSubscription::new(env.identity.instance_id, callback, vec![monitored]);
    body.implicit_unsubscribe = Some(true);
    body.single_nssai = Some(session.snssai);
    body.dnn = Some(session.dnn.clone());
    session.call(env, Target::any(), SdmSubscribe { ue_id: supi, body })
}

/// Nudm_UECM_Deregistration, if the SMF is registered (TS 29.503 5.3.2.4).
pub(super) fn deregister(session: &mut SmContext, env: &mut Env<'_>) {
    if std::mem::take(&mut session.is_registered)
        && let Some(ue_id) = session.ue.supi().cloned()
    {
        let pdu_session_id = session.pdu_session_id;
        let smf_instance_id = Some(env.identity.instance_id);
        env.notify_nf(Target::any(), SmfDeregistration { ue_id, pdu_session_id, smf_instance_id });
    }
}

/// Npcf_SMPolicyControl_Create (TS 29.512 4.2.2).
pub(super) fn create_policy(
    session: &mut SmContext,
    env: &mut Env<'_>,
    supi: Supi,
    access: Access,
) -> CallId {
    let notification =
        Uri::callback(&env.identity.api_root, &NfType::Smf, "sm-policy", &env.reference(session));
    let mut body = SmPolicyContextData::new(
        supi,
        session.pdu_session_id,
        session_type(session.ip),
        session.dnn.clone(),
        notification,
        session.snssai,
    );
    body.subs_sess_ambr = Some(session.qos.ambr);
    body.subs_def_qos = Some(subscribed_default_qos(&session.qos));
    body.ipv4_address = session.address.v4;
    body.ipv6_address_prefix = session.address.prefix();
    body.ref_qos_indication = session.reflective.is_supported.then_some(true);
    body.access_type = Some(access.kind);
    body.rat_type = access.rat_type;
    body.serving_network = Some(access.serving_network);
    body.user_location_info = access.location;
    body.ue_time_zone = access.time_zone;
    body.pei = access.pei;
    body.gpsi = access.gpsi;
    let mut serving = ServingNfIdentity::default();
    serving.serv_nf_inst_id = Some(session.amf.instance);
    serving.guami = access.guami;
    body.serv_nf_id = Some(serving);
    body.smf_id = Some(env.identity.instance_id);
    session.call(env, Target::any(), CreateSmPolicy { body })
}

/// The PDU session type of these versions (TS 29.571 5.4.3.3).
const fn session_type(ip: IpVersions) -> PduSessionType {
    match ip {
        IpVersions { v4: true, v6: true } => PduSessionType::Ipv4v6,
        IpVersions { v6: true, .. } => PduSessionType::Ipv6,
        IpVersions { .. } => PduSessionType::Ipv4,
    }
}

fn subscribed_default_qos(qos: &Qos) -> SubscribedDefaultQos {
    SubscribedDefaultQos::new(qos.five_qi, arp(qos))
}

/// ARP of the default flow.
fn arp(qos: &Qos) -> Arp {
    Arp::new(qos.arp_priority, PreemptionCapability::NotPreempt, PreemptionVulnerability::Preemptable)
}

/// Npcf_SMPolicyControl_Update: an address of the session has changed since Create (trigger UE_IP_CH, TS 29.512 table
/// 5.6.3.6-1).
pub(super) fn update_policy_address(session: &SmContext, env: &mut Env<'_>, released: UeAddress) {
    if let Some(policy) = &session.policy {
        let mut body = SmPolicyUpdateContextData::default();
        body.rep_policy_ctrl_req_triggers = vec![PolicyControlRequestTrigger::UeIpCh];
        body.ipv4_address = session.address.v4;
        body.rel_ipv4_address = released.v4;
        body.ipv6_address_prefix = session.address.prefix();
        body.rel_ipv6_address_prefix = released.prefix();
        let request = UpdateSmPolicy { sm_policy_id: policy.id().to_owned(), body };
        env.notify_nf(Target::Root(policy.root.clone()), request);
    }
}

/// Npcf_SMPolicyControl_Update: the subscribed session-AMBR or default QoS has changed (TS 29.512 4.2.4.2, table 5.6.3.6-1). `None`: the session
/// has no policy association.
pub(super) fn update_policy_qos(
    session: &mut SmContext,
    env: &mut Env<'_>,
    subscribed: &Qos,
) -> Option<CallId> {
    let policy = session.policy.clone()?;
    let mut body = SmPolicyUpdateContextData::default();
    let former = &session.subscribed;
    if subscribed.ambr != former.ambr {
        body.rep_policy_ctrl_req_triggers.push(PolicyControlRequestTrigger::SeAmbrCh);
        body.subs_sess_ambr = Some(subscribed.ambr);
    }
    if (subscribed.five_qi, subscribed.arp_priority) != (former.five_qi, former.arp_priority) {
        body.rep_policy_ctrl_req_triggers.push(PolicyControlRequestTrigger::DefQosCh);
        body.subs_def_qos = Some(subscribed_default_qos(subscribed));
    }
    let request = UpdateSmPolicy { sm_policy_id: policy.id().to_owned(), body };
    Some(session.call(env, Target::Root(policy.root.clone()), request))
}

/// Npcf_SMPolicyControl_Update: the UE has revoked its support of reflective QoS (trigger REF_QOS_IND_CH, TS 29.512 table 5.6.3.6-1).
/// The decision in the answer applies, and so do notifications that follow.
pub(super) fn report_revoked_reflective_qos(session: &mut SmContext, env: &mut Env<'_>) {
    let Some(policy) = &session.policy else { return };
    let mut body = SmPolicyUpdateContextData::default();
    body.rep_policy_ctrl_req_triggers = vec![PolicyControlRequestTrigger::RefQosIndCh];
    body.ref_qos_indication = Some(false);
    let request = UpdateSmPolicy { sm_policy_id: policy.id().to_owned(), body };
    let target = Target::Root(policy.root.clone());
    session.reflective.awaits_pcf = true;
    session.report_to_pcf(env, target, request);
}

/// Npcf_SMPolicyControl_Update: PCC rules that are not enforced (TS 29.512 4.2.4.15).
pub(super) fn report_rules(session: &SmContext, env: &mut Env<'_>, reports: Vec<RuleReport>) {
    let Some(policy) = session.policy.as_ref().filter(|_| !reports.is_empty()) else { return };
    let mut body = SmPolicyUpdateContextData::default();
    body.rule_reports = reports;
    let request = UpdateSmPolicy { sm_policy_id: policy.id().to_owned(), body };
    env.notify_nf(Target::Root(policy.root.clone()), request);
}

/// Npcf_SMPolicyControl_Delete (TS 29.512 4.2.5).
pub(super) fn delete_policy(uri: &Uri, out: &mut Outbox) {
    let request = DeleteSmPolicy { sm_policy_id: uri.id().to_owned(), body: SmPolicyDeleteData::default() };
    out.call(IGNORED_REPLY, Target::Root(uri.root.clone()), request.into());
}

/// A reply arrived that no session waits for, since its session or state has ended: the resource that it reports as created is
/// deleted.
pub(super) fn delete_created_resource(reply: Reply, out: &mut Outbox) {
    if let Ok(Response::SmPolicyDecisionCreated(created)) = reply {
        delete_policy(&created.location, out);
    }
}

/// Nsmf_PDUSession_SMContextStatusNotify: the session is released (TS 29.502 5.2.2.5).
pub(super) fn notify_released(session: &SmContext, env: &mut Env<'_>) {
    let uri = session.amf.status_uri.clone();
    let body = SmContextStatusNotification::new(StatusInfo::new(ResourceStatus::Released));
    env.notify_nf(Target::Root(uri.root.clone()), SmContextStatusNotify { uri, body });
}

/// Namf_Communication_N1N2MessageTransfer: a message for UE, gNB or both (TS 29.518 5.2.2.3.1).
pub(super) fn transfer(
    session: &SmContext,
    n1: Option<Vec<u8>>,
    n2: Option<(NgapIeType, Vec<u8>)>,
) -> N1N2MessageTransfer {
    let mut body = N1N2MessageTransferReqData::default();
    body.pdu_session_id = Some(session.pdu_session_id);
    body.n1_message_container = n1.map(|message| N1MessageContainer::new(N1MessageClass::Sm, message));
    body.n2_info_container = n2.map(|(kind, info)| {
        let mut content = N2InfoContent::new(info);
        content.ngap_ie_type = Some(kind);
        let mut information = N2SmInformation::new(session.pdu_session_id);
        information.n2_info_content = Some(content);
        information.s_nssai = Some(session.snssai);
        let mut container = N2InfoContainer::new(N2InformationClass::Sm);
        container.sm_info = Some(information);
        container
    });
    N1N2MessageTransfer { ue_context_id: session.ue.clone().into(), body }
}

/// N2 information alone, for which an idle UE is not paged (`skipInd`).
pub(super) fn transfer_to_gnb(session: &SmContext, kind: NgapIeType, info: Vec<u8>) -> N1N2MessageTransfer {
    let mut request = transfer(session, None, Some((kind, info)));
    request.body.skip_ind = Some(true);
    request
}

/// Requests the AMF to notify the SMF if the message does not reach UE or gNB (TS 29.518 5.2.2.3.2).
pub(super) fn with_failure_notification(
    session: &SmContext,
    env: &Env<'_>,
    mut request: N1N2MessageTransfer,
) -> N1N2MessageTransfer {
    let (root, reference) = (&env.identity.api_root, env.reference(session));
    let uri = N1N2TransferFailureNotification::callback_uri(root, &NfType::Smf, &reference);
    request.body.n1n2_failure_txf_notif_uri = Some(uri);
    request
}

/// The AMF that has the UE's context: its status URI names that context if it is an AMF of this process.
fn amf_of(session: &SmContext) -> Target {
    Target::Context(session.amf.status_uri.clone())
}

/// Calls the session's AMF; the answer has the returned id.
pub(super) fn call_amf(session: &mut SmContext, env: &mut Env<'_>, request: N1N2MessageTransfer) -> CallId {
    let target = amf_of(session);
    session.call(env, target, request)
}

/// Requests the session's AMF to page the UE, with the priority of the default flow (TS 23.502 4.2.3.3 step 3a). A refusal for some time has effect ([`super::procedure::refused_transfer`]).
pub(super) fn request_paging(session: &mut SmContext, env: &mut Env<'_>, mut request: N1N2MessageTransfer) {
    request.body.arp = Some(arp(&session.qos));
    request.body.five_qi = Some(session.qos.five_qi);
    let target = amf_of(session);
    session.request_paging(env, target, request);
}

/// Sends the UE the command that answers its revocation of reflective QoS. A refusal for some time has effect
/// ([`super::procedure::refused_transfer`]).
pub(super) fn answer_revocation(session: &mut SmContext, env: &mut Env<'_>, request: N1N2MessageTransfer) {
    let target = amf_of(session);
    session.answer_revocation(env, target, request);
}

/// Calls the session's AMF; the answer is ignored.
pub(super) fn notify_amf(session: &SmContext, env: &mut Env<'_>, request: N1N2MessageTransfer) {
    env.notify_nf(amf_of(session), request);
}
