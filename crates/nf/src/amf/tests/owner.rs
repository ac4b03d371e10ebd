//! Whose requests about a UE are taken, and which callbacks are (TS 33.501 13.1).

use super::world::*;
use crate::kit::{Caller, Client, Input, NetworkFunction};
use crate::testing::{client, instance};
use pith_sbi::common::{AccessType, UeContextId};
use pith_sbi::namf_communication as namf;
use pith_sbi::nsmf_pdusession::{
    ResourceStatus, SmContextStatusNotification, SmContextStatusNotify, StatusInfo,
};
use pith_sbi::nudm_sdm::{ModificationNotification, SdmChangeNotification};
use pith_sbi::{Created, NfType, Operation, Reply, Request, Response, Uri};

fn registered() -> (World, Phone) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    world.caller = client(1);
    phone.establish(&mut world, 5);
    world.take_ladder();
    (world, phone)
}

#[test]
fn messages_of_a_session_come_from_its_smf_only() {
    let (mut world, _) = registered();
    world.request(transfer(5, Some(b"modify"), None)).unwrap();
    world.caller = client(2);
    let refused = world.request(transfer(5, Some(b"modify"), None)).unwrap_err();
    assert_eq!(refused.status, 403);
    world.caller = client(1);
    world.request(transfer(5, Some(b"modify"), None)).unwrap();
}

/// TS 29.502 5.2.2.5.
#[test]
fn the_end_of_a_session_is_notified_by_its_smf_only() {
    let (mut world, _) = registered();
    let known = world.amf.session_reference(&supi(), 5);
    let notify = |world: &mut World| {
        let uri = SmContextStatusNotify::callback_uri(&identity().api_root, &NfType::Amf, &known);
        let body = SmContextStatusNotification::new(StatusInfo::new(ResourceStatus::Released));
        world.request(SmContextStatusNotify { uri, body })
    };
    world.caller = client(2);
    assert_eq!(notify(&mut world).unwrap_err().status, 403);
    assert_eq!(world.amf.audit().sessions, 1);
    world.caller = client(1);
    notify(&mut world).unwrap();
    assert_eq!(world.amf.audit().sessions, 0);
    world.caller = client(2);
    notify(&mut world).unwrap();
}

#[test]
fn a_message_without_its_session_is_refused_by_the_name_of_the_parameter() {
    let (mut world, _) = registered();
    let mut request = transfer(5, Some(b"modify"), None);
    request.body.pdu_session_id = None;
    let refused = world.request(request).unwrap_err();
    assert_eq!(refused.cause(), Some(&pith_sbi::Cause::MandatoryIeMissing));
    assert_eq!(refused.details.invalid_params[0].param, "pduSessionId");
}

#[test]
fn n2_information_of_another_class_is_refused_as_such() {
    let (mut world, _) = registered();
    for class in [namf::N2InformationClass::Nrppa, namf::N2InformationClass::Pws] {
        let mut request = transfer(5, None, None);
        request.body.n2_info_container = Some(namf::N2InfoContainer::new(class));
        let refused = world.request(request).unwrap_err();
        assert_eq!(refused.status, 501);
        assert!(refused.details.detail.as_ref().is_some_and(|detail| detail.contains("SM and RAN")));
    }
}

/// A session whose CreateSMContext went to an SMF instance, before that SMF has answered.
fn requested(smf: u128) -> (World, Phone) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    world.script.insert(Operation::PostSmContexts, None);
    phone.send(&mut world, establishment(5));
    let tag = world.calls.iter().find(|(.., call)| matches!(call, Request::PostSmContexts(_))).unwrap().0;
    world.input(Input::Routed { tag, instance: instance(smf) });
    world.take_ladder();
    (world, phone)
}

/// Not that of the first sender.
#[test]
fn a_session_is_that_of_the_smf_to_which_it_was_requested() {
    let (mut world, _) = requested(1);
    world.caller = client(2);
    assert_eq!(world.request(transfer(5, Some(b"accept"), None)).unwrap_err().status, 403);
    world.caller = client(1);
    world.request(transfer(5, Some(b"accept"), None)).unwrap();
    world.caller = client(2);
    assert_eq!(world.request(transfer(5, Some(b"modify"), None)).unwrap_err().status, 403);
}

/// A foreign SMF without an instance id in its certificate, and an SMF of several without access token.
#[test]
fn an_smf_that_proves_no_instance_sends_for_its_session() {
    for is_named in [false, true] {
        let (mut world, _) = requested(1);
        let Caller::Remote { client: Some(client), .. } = client(7) else { panic!() };
        let unproven = Client { is_named, is_proven: false, ..client };
        world.caller = Caller::Remote { exchange: 1, client: Some(unproven) };
        world.request(transfer(5, Some(b"accept"), None)).unwrap();
        world.caller = crate::testing::client(1);
        assert_eq!(world.request(transfer(5, Some(b"modify"), None)).unwrap_err().status, 403);
    }
}

#[test]
fn n1_messages_of_other_classes_do_not_reach_the_ue_as_session_management() {
    let (mut world, _) = requested(1);
    let mut policy = transfer(5, Some(b"policy"), None);
    let content = b"policy".to_vec();
    policy.body.n1_message_container =
        Some(namf::N1MessageContainer::new(namf::N1MessageClass::Updp, content));
    world.downlinks.clear();
    assert_eq!(world.request(policy).unwrap_err().status, 501);
    assert!(world.downlinks.is_empty());
    world.caller = client(1);
    world.request(transfer(5, Some(b"accept"), None)).unwrap();
}

#[test]
fn a_transferred_context_names_the_smf_of_each_session() {
    let (mut world, _) = requested(1);
    let location = Uri::new(&crate::testing::root("smf"), "/nsmf-pdusession/v1/sm-contexts/sm-5");
    let created = Created { location, body: Default::default() };
    world.reply_to(Operation::PostSmContexts, Ok(Response::SmContextCreated(Box::new(created))));
    let reason = namf::TransferReason::MobiRegUeValidated;
    let body = namf::UeContextTransferReqData::new(reason, AccessType::ThreeGppAccess);
    let reply = world.request(namf::UeContextTransfer { ue_context_id: UeContextId::Supi(supi()), body });
    let Ok(Response::UeContextTransferred(transferred)) = reply else { panic!("{reply:?}") };
    let sessions = &transferred.ue_context.session_context_list;
    assert_eq!(sessions.iter().map(|session| session.hsmf_id).collect::<Vec<_>>(), [Some(instance(1))]);
}

#[test]
fn the_amf_that_got_a_context_says_what_became_of_it() {
    let (mut world, _) = registered();
    let supi = || UeContextId::Supi(supi());
    world.caller = client(1);
    let reason = namf::TransferReason::MobiRegUeValidated;
    let body = namf::UeContextTransferReqData::new(reason, AccessType::ThreeGppAccess);
    world.request(namf::UeContextTransfer { ue_context_id: supi(), body }).unwrap();
    let report = |world: &mut World| {
        let body = namf::UeRegStatusUpdateReqData::new(namf::UeContextTransferStatus::Transferred);
        world.request(namf::RegistrationStatusUpdate { ue_context_id: supi(), body })
    };
    world.caller = client(2);
    assert_eq!(report(&mut world).unwrap_err().status, 403);
    assert_eq!(world.amf.audit().contexts, 1);
    world.caller = client(1);
    report(&mut world).unwrap();
}

/// Another shard may have the context that a request names by its SUPI.
#[test]
fn a_shard_knows_which_ue_contexts_it_has() {
    let (mut world, phone) = registered();
    let has = |id: UeContextId| {
        let body = namf::N1N2MessageTransferReqData::default();
        world.amf.has_context(&namf::N1N2MessageTransfer { ue_context_id: id, body }.into())
    };
    assert!(has(supi().into()) && has(UeContextId::FiveGGuti(phone.guti.unwrap())));
    assert!(!has(UeContextId::Supi("imsi-999700000000099".parse().unwrap())));
    // A report is for the shard whose context was transferred.
    assert!(!world.amf.has_context(&registration_status(supi().into()).into()));
    let reason = namf::TransferReason::MobiRegUeValidated;
    let body = namf::UeContextTransferReqData::new(reason, AccessType::ThreeGppAccess);
    world.request(namf::UeContextTransfer { ue_context_id: supi().into(), body }).unwrap();
    let guti = UeContextId::FiveGGuti(phone.guti.unwrap());
    assert!(
        [supi().into(), guti].map(|id| world.amf.has_context(&registration_status(id).into())) == [true; 2]
    );
    let uri = SdmChangeNotification::callback_uri(&identity().api_root, &NfType::Amf, "1");
    let other = SdmChangeNotification { uri, body: ModificationNotification::new(vec![]) };
    assert!(world.amf.has_context(&other.into()), "the AMF answers all others");
}

fn registration_status(ue_context_id: UeContextId) -> namf::RegistrationStatusUpdate {
    let body = namf::UeRegStatusUpdateReqData::new(namf::UeContextTransferStatus::Transferred);
    namf::RegistrationStatusUpdate { ue_context_id, body }
}

/// Notifications at the URIs of references that the AMF did not give out.
#[test]
fn references_cannot_be_guessed() {
    let (mut world, _) = registered();
    let root = &identity().api_root;
    let session = |world: &mut World, reference: &str| -> Reply {
        let uri = SmContextStatusNotify::callback_uri(root, &NfType::Amf, reference);
        let body = SmContextStatusNotification::new(StatusInfo::new(ResourceStatus::Released));
        world.request(SmContextStatusNotify { uri, body })
    };
    let known = world.amf.session_reference(&supi(), 5);
    let (name, mac) = known.split_once('.').unwrap();
    let other_session = format!("{}.{mac}", name.replace("-5-", "-6-"));
    for guess in [name, &other_session, "0-5-0", "0-5-0.0", "0-5-0.0000000000000000"] {
        assert_eq!(session(&mut world, guess).unwrap_err().status, 404, "{guess}");
    }
    let ue = world.amf.key_of(&supi());
    assert_eq!(
        session(&mut world, &ue).unwrap_err().status,
        404,
        "the reference of a UE is none of a session"
    );
    for guess in ["0", "0.0", "0.0000000000000000", name, &known] {
        let uri = SdmChangeNotification::callback_uri(root, &NfType::Amf, guess);
        let body = ModificationNotification::new(Vec::new());
        let reply = world.request(SdmChangeNotification { uri, body });
        assert_eq!(reply.unwrap_err().status, 404, "{guess}");
    }
    assert_eq!(world.amf.audit().sessions, 1);
    session(&mut world, &known).unwrap();
    assert_eq!(world.amf.audit().sessions, 0);
}
