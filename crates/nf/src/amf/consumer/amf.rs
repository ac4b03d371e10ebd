//! Namf_Communication (TS 29.518) at other AMFs.

use super::smf::sbi_node;
use super::{handover_name, location, owner};
use crate::amf::context::{CallId, Env, UeContext};
use crate::amf::mobility::n14::sbi_cause;
use crate::amf::reallocation::NssfSlices;
use crate::kit::{Selection, Target};
use pith_nas::GmmMessage;
use pith_nas::gmm::RegistrationRequest;
use pith_ngap::Cause;
use pith_sbi::common::{AccessType, BinaryData, UeContextId};
use pith_sbi::namf_communication as namf;
use pith_sbi::{ApiRoot, NfType, Uri};
use pith_types::{AmfUeNgapId, FiveGGuti, RanUeNgapId, Supi, Tai};
use std::sync::Arc;

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
    body.plmn_id = Some(env.config.plmn_in(ue.location));
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
    body.plmn_id = Some(env.config.plmn_in(ue.location));
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
    body.guami = Some(env.config.guami_in(ue.location));
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
pub(crate) fn notify_source_amf(ue: &UeContext, env: &mut Env<'_>, uri: Uri, to_release: Vec<u8>) {
    let mut body = namf::N2InformationNotification::new(uri.id());
    body.notify_reason = Some(namf::N2InfoNotifyReason::HandoverCompleted);
    body.guami = Some(env.config.guami_in(ue.location));
    body.to_release_session_list = to_release;
    let target = owner(&uri);
    env.call_without_reply(target, namf::N2InfoNotify { uri, body });
}
