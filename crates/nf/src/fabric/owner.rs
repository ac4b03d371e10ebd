//! The shard of this process that a request is for.
//!
//! ```text
//!  context in the URI (resource, callback, 5G-GUTI)  -> owner of its block
//!  SUPI, for an operation on the UE's context        -> any shard; the shards forward it until one has the context
//!  UE address, for a new application session         -> the same
//!  SUPI, for a new session or policy association     -> from another process: the same shard for each request of the SUPI
//!  PEI, for a new emergency session without SUPI     -> the same
//!  otherwise                                         -> any shard
//! ```

use crate::kit::{block_in_reference, block_of_equipment, block_of_subscriber};
use pith_sbi::Request;
use pith_sbi::common::UeContextId;
use pith_sbi::nsmf_pdusession::SmContextCreateData;
use pith_types::{BlockId, InstanceId, OwnerMap};

/// The shard of the instance that has the context which the request names; `None` if the request names none, or one of
/// another instance.
pub fn shard_of(owners: &OwnerMap, instance: InstanceId, request: &Request) -> Option<u16> {
    owners.shard_of(instance, block_of(request)?).map(|shard| shard.0.into())
}

/// The shard for a request from another process: as [`shard_of`]. A request that creates a session, policy association or UE context is
/// served by the same shard each time: after a crash of its sender, it may be a repetition, and replaces what the first one created. Requests
/// from this process stay on the shard of the UE.
pub fn shard_of_remote(owners: &OwnerMap, instance: InstanceId, request: &Request) -> Option<u16> {
    let supi = match request {
        Request::PostSmContexts(request) => return shard_of_ue(owners, instance, &request.body),
        Request::CreateSmPolicy(request) => Some(&request.body.supi),
        Request::CreateAmPolicyAssociation(request) => Some(&request.body.supi),
        Request::CreateUeContext(request) => request.body.ue_context.supi.as_ref(),
        Request::N1MessageNotify(request) => {
            request.body.registration_ctxt_container.as_ref().and_then(|it| it.ue_context.supi.as_ref())
        }
        _ => None,
    };
    let Some(supi) = supi else { return shard_of(owners, instance, request) };
    owners.shard_of(instance, block_of_subscriber(supi)?).map(|shard| shard.0.into())
}

/// The shard for a new session: that of the SUPI, or of the PEI in an emergency session of a UE whose SUPI is missing or was not authenticated
/// (TS 29.502 6.1.6.2.2).
fn shard_of_ue(owners: &OwnerMap, instance: InstanceId, data: &SmContextCreateData) -> Option<u16> {
    let supi = data.supi.as_ref().filter(|_| data.unauthenticated_supi != Some(true));
    let block = match (supi, &data.pei) {
        (Some(supi), _) => block_of_subscriber(supi),
        (None, Some(pei)) => block_of_equipment(pei),
        (None, None) => None,
    };
    owners.shard_of(instance, block?).map(|shard| shard.0.into())
}

/// The block of the context that a request names.
pub(super) fn block_of(request: &Request) -> Option<BlockId> {
    if let Some(uri) = request.target_uri() {
        return block_in_reference(uri.id());
    }
    match request {
        Request::FiveGAkaConfirmation(r) => block_in_reference(&r.auth_ctx_id),
        Request::EapAuthMethod(r) => block_in_reference(&r.auth_ctx_id),
        Request::DeleteFiveGAkaAuthenticationResult(r) => block_in_reference(&r.auth_ctx_id),
        Request::DeleteEapAuthenticationResult(r) => block_in_reference(&r.auth_ctx_id),
        Request::UpdateSmContext(r) => block_in_reference(&r.sm_context_ref),
        Request::ReleaseSmContext(r) => block_in_reference(&r.sm_context_ref),
        Request::RetrieveSmContext(r) => block_in_reference(&r.sm_context_ref),
        Request::N1N2MessageTransfer(r) => block_of_ue(&r.ue_context_id),
        Request::UeContextTransfer(r) => block_of_ue(&r.ue_context_id),
        Request::RegistrationStatusUpdate(r) => block_of_ue(&r.ue_context_id),
        Request::ReadAmPolicyAssociation(r) => block_in_reference(&r.pol_asso_id),
        Request::UpdateAmPolicyAssociation(r) => block_in_reference(&r.pol_asso_id),
        Request::DeleteAmPolicyAssociation(r) => block_in_reference(&r.pol_asso_id),
        Request::GetSmPolicy(r) => block_in_reference(&r.sm_policy_id),
        Request::UpdateSmPolicy(r) => block_in_reference(&r.sm_policy_id),
        Request::DeleteSmPolicy(r) => block_in_reference(&r.sm_policy_id),
        Request::GetAppSession(r) => block_in_reference(&r.app_session_id),
        Request::ModAppSession(r) => block_in_reference(&r.app_session_id),
        Request::DeleteAppSession(r) => block_in_reference(&r.app_session_id),
        Request::UpdateEventsSubsc(r) => block_in_reference(&r.app_session_id),
        Request::DeleteEventsSubsc(r) => block_in_reference(&r.app_session_id),
        _ => None,
    }
}

const fn block_of_ue(id: &UeContextId) -> Option<BlockId> {
    match id {
        UeContextId::FiveGGuti(guti) => Some(guti.tmsi.block()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::{ReferenceKey, References};
    use crate::testing::{block, plmn, root, sparse_owners, supi};
    use pith_sbi::Uri;
    use pith_sbi::common::{AccessType, PlmnIdNid};
    use pith_sbi::namf_communication as namf;
    use pith_sbi::npcf_ampolicycontrol::DeleteAmPolicyAssociation;
    use pith_sbi::nsmf_pdusession::{PostSmContexts, ReleaseSmContext};
    use pith_sbi::nudm_uecm::{DeregistrationData, DeregistrationNotification, DeregistrationReason};
    use pith_types::{ContextId, FiveGGuti, FiveGTmsi, Guami};

    fn shard(request: impl Into<Request>) -> Option<u16> {
        shard_of(&sparse_owners(3), InstanceId(0), &request.into())
    }

    fn reference(shard: u8) -> String {
        References::new(&ReferenceKey::new([9; 32])).of_id(ContextId { block: block(shard), number: 77 })
    }

    #[test]
    fn resources_and_callbacks_lead_to_the_owner_of_their_block() {
        for owner in 0..3 {
            let expected = Some(owner.into());
            let sm_context_ref = reference(owner);
            assert_eq!(shard(ReleaseSmContext { sm_context_ref, body: Default::default() }), expected);
            assert_eq!(shard(DeleteAmPolicyAssociation { pol_asso_id: reference(owner) }), expected);
            let body = DeregistrationData::new(DeregistrationReason::UeInitialRegistration);
            let uri = Uri::new(&root("amf"), &format!("/namf-callback/v1/dereg-notify/{}", reference(owner)));
            assert_eq!(shard(DeregistrationNotification { uri, body }), expected);
        }
    }

    #[test]
    fn a_ue_context_is_found_by_the_block_of_its_guti() {
        let transfer = |ue_context_id| {
            let reason = namf::TransferReason::InitReg;
            let body = namf::UeContextTransferReqData::new(reason, AccessType::ThreeGppAccess);
            shard(namf::UeContextTransfer { ue_context_id, body })
        };
        let guami = Guami { plmn_id: plmn(), amf_id: "020040".parse().unwrap() };
        let guti = FiveGGuti { guami, tmsi: FiveGTmsi::new(block(2), 7) };
        assert_eq!(transfer(UeContextId::FiveGGuti(guti)), Some(2));
        assert_eq!(transfer(supi().into()), None, "the shards are asked");
    }

    #[test]
    fn what_a_subscriber_creates_from_another_process_leads_to_one_shard() {
        let owners = OwnerMap::of_instance(InstanceId(0), 4);
        let of = |number: u64| {
            let supi: pith_types::Supi = format!("imsi-99970{number:010}").parse().unwrap();
            let callback = Uri::new(&root("amf"), "/namf-callback/v1/am-policy/1");
            let features = pith_sbi::common::SupportedFeatures(0);
            let body =
                pith_sbi::npcf_ampolicycontrol::PolicyAssociationRequest::new(callback, supi, features);
            let request = pith_sbi::npcf_ampolicycontrol::CreateAmPolicyAssociation { body }.into();
            assert_eq!(
                shard_of(&owners, InstanceId(0), &request),
                None,
                "in the process: the shard of the UE"
            );
            shard_of_remote(&owners, InstanceId(0), &request).unwrap()
        };
        let mut counts = [0; 4];
        for number in 0..400 {
            assert_eq!(of(number), of(number));
            counts[usize::from(of(number))] += 1;
        }
        assert!(counts.iter().all(|count| *count > 60), "{counts:?}");
    }

    /// The second request for an emergency session replaces what the first one created.
    #[test]
    fn a_session_of_a_ue_without_authenticated_supi_leads_to_the_shard_of_its_pei() {
        let owners = OwnerMap::of_instance(InstanceId(0), 4);
        let of = |supi: Option<u64>, is_unauthenticated: bool, pei: Option<u64>| {
            let callback = Uri::new(&root("amf"), "/namf-callback/v1/sm-context-status/1");
            let (instance, network) = (crate::testing::instance(1), PlmnIdNid::from(plmn()));
            let mut body = SmContextCreateData::new(instance, network, AccessType::ThreeGppAccess, callback);
            body.supi = supi.map(|number| format!("imsi-99970{number:010}").parse().unwrap());
            body.pei = pei.map(|number| format!("imei-{number:015}").parse().unwrap());
            body.unauthenticated_supi = is_unauthenticated.then_some(true);
            shard_of_remote(&owners, InstanceId(0), &PostSmContexts { body }.into())
        };
        let shards = |of: &dyn Fn(u64) -> Option<u16>| (0..40).map(of).collect::<Vec<_>>();
        let by_pei = shards(&|number| of(None, false, Some(number)));
        assert!((0..4).all(|shard| by_pei.contains(&Some(shard))), "{by_pei:?}");
        assert_eq!(shards(&|number| of(Some(7), true, Some(number))), by_pei);
        let by_supi = shards(&|number| of(Some(number), false, None));
        assert_eq!(shards(&|number| of(Some(number), false, Some(7))), by_supi);
        assert_eq!(of(None, false, None), None);
    }

    #[test]
    fn ids_of_others_name_no_shard() {
        for id in ["1", "none", &reference(200), "77.0"] {
            assert_eq!(shard(DeleteAmPolicyAssociation { pol_asso_id: id.into() }), None, "{id}");
        }
    }
}
