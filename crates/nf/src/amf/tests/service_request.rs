//! Service request (TS 24.501 5.6.1).

use super::world::{Phone, World, config, problem};
use crate::amf::AmfConfig;
use crate::kit::{NetworkFunction, SetInstances};
use pith_nas::gmm::ServiceRequest;
use pith_nas::ie::{GprsTimer2, RegistrationKind, ServiceType};
use pith_nas::{GmmCause, GmmMessage};
use pith_ngap::Message;
use pith_sbi::nsmf_pdusession::UpCnxState;
use pith_sbi::{Cause, Operation, Request};
use pith_types::InstanceId;
use std::sync::Arc;

fn idle() -> (World, Phone) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    phone.release(&mut world);
    world.take_ladder();
    (world, phone)
}

fn comes(world: &mut World, phone: &mut Phone, request: ServiceRequest) {
    let nas = phone.initial_nas(request);
    phone.connect(world, nas);
}

fn accepted(world: &mut World, phone: &mut Phone) -> Box<pith_nas::gmm::ServiceAccept> {
    let GmmMessage::ServiceAccept(accept) = phone.receive(world) else { panic!() };
    accept
}

#[test]
fn a_phone_with_data_gets_its_user_plane_with_the_answer() {
    let (mut world, mut phone) = idle();
    let mut request = phone.service_request(ServiceType::Data);
    request.uplink_data_status = Some([5].into_iter().collect());
    request.pdu_session_status = Some([5].into_iter().collect());
    comes(&mut world, &mut phone, request);
    let Message::InitialContextSetupRequest(setup) = world.downlinks[0].1.clone() else { panic!() };
    assert_eq!(setup.sessions.unwrap()[0].transfer, b"setup");
    let accept = accepted(&mut world, &mut phone);
    assert!(accept.reactivation_result.unwrap().is_empty());
    assert!(accept.pdu_session_status.unwrap().contains(5));
    phone.context_setup_response(&mut world, &[5]);
    assert_eq!(
        world.take_ladder(),
        "\
gnb1 -> InitialUeMessage
smf  <- UpdateSmContext
gnb1 <- InitialContextSetupRequest
gnb1 -> InitialContextSetupResponse
smf  <- UpdateSmContext"
    );
    assert_eq!(world.running(), []);
}

#[test]
fn k_gnb_is_derived_from_the_count_of_the_service_request() {
    let (mut world, mut phone) = idle();
    let request = phone.service_request(ServiceType::Signalling);
    let count = phone.security.as_ref().unwrap().next_to_send().unwrap();
    comes(&mut world, &mut phone, request);
    let Message::InitialContextSetupRequest(setup) = world.next() else { panic!() };
    let k_amf = pith_crypto::kdf::k_amf(
        &pith_crypto::keys::KSeaf::new(super::world::K_SEAF),
        super::world::supi().imsi(),
        &[0, 0],
    );
    let expected = pith_crypto::kdf::k_gnb(&k_amf, count.value(), pith_crypto::kdf::AccessType::ThreeGpp);
    assert_eq!(&setup.security_key, expected.as_bytes());
}

#[test]
fn a_failed_activation_is_reported_with_its_cause() {
    let (mut world, mut phone) = idle();
    world.script.insert(Operation::UpdateSmContext, problem(Cause::DnnCongestion));
    let mut request = phone.service_request(ServiceType::Data);
    request.uplink_data_status = Some([5].into_iter().collect());
    comes(&mut world, &mut phone, request);
    let accept = accepted(&mut world, &mut phone);
    assert!(accept.reactivation_result.unwrap().contains(5));
    let errors = accept.reactivation_result_error_cause.unwrap().0;
    assert_eq!(errors, [(5, GmmCause::InsufficientResourcesForSpecificSliceAndDnn)]);
}

#[test]
fn a_session_that_the_smf_lost_is_not_in_the_session_status() {
    let (mut world, mut phone) = idle();
    world.script.insert(Operation::UpdateSmContext, problem(Cause::ContextNotFound));
    let mut request = phone.service_request(ServiceType::Data);
    request.uplink_data_status = Some([5].into_iter().collect());
    comes(&mut world, &mut phone, request);
    assert!(accepted(&mut world, &mut phone).pdu_session_status.unwrap().is_empty());
    assert_eq!(world.amf.audit().sessions, 0);
}

#[test]
fn an_active_user_plane_is_not_set_up_again() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    world.take_ladder();
    let mut request = phone.service_request(ServiceType::Data);
    request.uplink_data_status = Some([5].into_iter().collect());
    phone.send(&mut world, request);
    assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport\ngnb1 <- DownlinkNasTransport");
    assert!(accepted(&mut world, &mut phone).reactivation_result.unwrap().is_empty());
}

#[test]
fn sessions_that_only_one_side_has_are_reconciled() {
    let (mut world, mut phone) = idle();
    let mut request = phone.service_request(ServiceType::Signalling);
    request.pdu_session_status = Some([6].into_iter().collect());
    comes(&mut world, &mut phone, request);
    assert!(accepted(&mut world, &mut phone).pdu_session_status.unwrap().is_empty());
    assert!(world.take_ladder().contains("smf  <- ReleaseSmContext"));
}

#[test]
fn a_failed_setup_at_the_gnb_is_reported_to_the_smf() {
    let (mut world, mut phone) = idle();
    let mut request = phone.service_request(ServiceType::Data);
    request.uplink_data_status = Some([5].into_iter().collect());
    comes(&mut world, &mut phone, request);
    accepted(&mut world, &mut phone);
    world.script.insert(Operation::UpdateSmContext, None);
    let message = pith_ngap::InitialContextSetupResponse {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        setup: None,
        failed: Some(super::world::transfers(&[5])),
        diagnostics: None,
    };
    world.ngap(phone.gnb, "InitialContextSetupResponse", message.encode());
    let Request::UpdateSmContext(update) = world.open_call(Operation::UpdateSmContext) else { panic!() };
    assert_eq!(update.body.n2_sm_info_type.unwrap().as_str(), "PDU_RES_SETUP_FAIL");
}

#[test]
fn initial_context_setup_failure_releases_the_connection() {
    let (mut world, mut phone) = idle();
    let request = phone.service_request(ServiceType::Signalling);
    comes(&mut world, &mut phone, request);
    accepted(&mut world, &mut phone);
    let message = pith_ngap::InitialContextSetupFailure {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        failed: None,
        cause: Some(pith_ngap::Cause::RadioNetwork(
            pith_ngap::CauseRadioNetwork::radio_connection_with_ue_lost,
        )),
        diagnostics: None,
    };
    world.ngap(phone.gnb, "InitialContextSetupFailure", message.encode());
    phone.released(&mut world);
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.connected, audit.connections), (1, 0, 0));
}

#[test]
fn an_unanswered_context_setup_releases_the_connection() {
    let (mut world, mut phone) = idle();
    let request = phone.service_request(ServiceType::Signalling);
    comes(&mut world, &mut phone, request);
    accepted(&mut world, &mut phone);
    world.expire(crate::kit::Timer::NgapGuard);
    assert!(world.take_ladder().ends_with("UeContextReleaseCommand"));
    world.expire(crate::kit::Timer::NgapGuard);
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.connected, audit.connections), (1, 0, 0));
}

#[test]
fn a_connected_phone_requests_its_user_plane() {
    let (mut world, mut phone) = idle();
    let request = phone.service_request(ServiceType::Signalling);
    comes(&mut world, &mut phone, request);
    accepted(&mut world, &mut phone);
    phone.context_setup_response(&mut world, &[]);
    world.take_ladder();
    world.script.insert(Operation::UpdateSmContext, None);
    let mut request = phone.service_request(ServiceType::Data);
    request.uplink_data_status = Some([5].into_iter().collect());
    phone.send(&mut world, request);
    let Request::UpdateSmContext(update) = &world.calls[0].2 else { panic!() };
    assert_eq!(update.body.up_cnx_state, Some(UpCnxState::Activating));
    let updated = pith_sbi::nsmf_pdusession::SmContextUpdatedData {
        n2_sm_info: Some(b"setup".to_vec().into()),
        n2_sm_info_type: Some(pith_sbi::nsmf_pdusession::N2SmInfoType::PduResSetupReq),
        ..Default::default()
    };
    world.reply_to(Operation::UpdateSmContext, Ok(pith_sbi::Response::SmContextUpdated(Box::new(updated))));
    assert_eq!(
        world.take_ladder(),
        "\
gnb1 -> UplinkNasTransport
smf  <- UpdateSmContext
gnb1 <- PduSessionResourceSetupRequest"
    );
    accepted(&mut world, &mut phone);
}

#[test]
fn a_lost_connection_during_activation_leaves_no_state() {
    let (mut world, mut phone) = idle();
    world.script.insert(Operation::UpdateSmContext, None);
    let mut request = phone.service_request(ServiceType::Data);
    request.uplink_data_status = Some([5].into_iter().collect());
    comes(&mut world, &mut phone, request);
    world.input(crate::kit::Input::N2(crate::kit::N2Input::GnbDown { gnb: phone.gnb }));
    world.reply_to(Operation::UpdateSmContext, Ok(pith_sbi::Response::NoContent));
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.in_procedure, audit.connections), (1, 0, 0));
}

/// The SMF has downlink data at the same time: its request is in transit while it answers the activation.
#[test]
fn a_session_is_set_up_once_by_activation_and_data_notification() {
    let (mut world, mut phone) = idle();
    world.script.insert(Operation::UpdateSmContext, None);
    let mut request = phone.service_request(ServiceType::Data);
    request.uplink_data_status = Some([5].into_iter().collect());
    comes(&mut world, &mut phone, request);
    world.script.clear();
    let resources = Some((super::world::NgapIe::PduResSetupReq, &b"setup"[..]));
    world.request(super::world::transfer(5, None, resources)).unwrap();
    assert!(world.downlinks.is_empty());
    let Some(at) = world.calls.iter().position(|(.., call)| call.operation() == Operation::UpdateSmContext)
    else {
        panic!()
    };
    let usual = world.usual(&world.calls[at].2.clone());
    world.reply_to(Operation::UpdateSmContext, usual);
    let setup = world.downlinks[0].1.clone();
    let Message::InitialContextSetupRequest(setup) = setup else { panic!("{setup:?}") };
    assert_eq!(setup.sessions.unwrap().len(), 1);
    accepted(&mut world, &mut phone);
    phone.context_setup_response(&mut world, &[5]);
    assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
}

#[test]
fn no_message_overtakes_a_queued_one() {
    let (mut world, mut phone) = idle();
    let mut request = phone.service_request(ServiceType::Data);
    request.uplink_data_status = Some([5].into_iter().collect());
    comes(&mut world, &mut phone, request);
    phone.receive(&mut world);
    world.take_ladder();
    let resources = Some((super::world::NgapIe::PduResSetupReq, &b"setup"[..]));
    world.request(super::world::transfer(5, Some(b"first"), resources)).unwrap();
    world.request(super::world::transfer(5, Some(b"second"), None)).unwrap();
    assert!(!world.take_ladder().contains("gnb1 <-"), "the gNB has no UE context yet");
    phone.context_setup_response(&mut world, &[5]);
    for expected in [&b"first"[..], b"second"] {
        let GmmMessage::DlNasTransport(transport) = phone.receive(&mut world) else { panic!() };
        assert_eq!(transport.payload_container, expected);
    }
}

#[test]
fn a_service_request_from_an_unserved_tracking_area_is_rejected() {
    let (mut world, mut phone) = idle();
    phone.location.tai.tac = pith_types::Tac::new(2);
    let request = phone.service_request(ServiceType::Signalling);
    comes(&mut world, &mut phone, request);
    let GmmMessage::ServiceReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::NoSuitableCellsInTrackingArea, "#15");
    phone.released(&mut world);
    assert_eq!(world.amf.audit().registered, 1);
}

/// UEs that follow the network's indications do not request fallback (EMF), or high priority access. Others get what every UE gets.
#[test]
fn service_types_without_a_service_of_their_own_are_served_as_signalling() {
    for service_type in [
        ServiceType::EmergencyServicesFallback,
        ServiceType::HighPriorityAccess,
        ServiceType::ElevatedSignalling,
    ] {
        let (mut world, mut phone) = idle();
        let request = phone.service_request(service_type);
        comes(&mut world, &mut phone, request);
        let accept = accepted(&mut world, &mut phone);
        assert!(accept.pdu_session_status.unwrap().contains(5));
        phone.context_setup_response(&mut world, &[]);
        assert_eq!((world.amf.audit().registered, world.running()), (1, vec![]), "{service_type:?}");
    }
}

/// An AMF of the set of the one that serves the phone, which lives or not.
fn other_amf(lives: bool) -> World {
    let mut config = config();
    let (old, own) = (config.identity.owner.instance, InstanceId(7));
    config.identity.owner.instance = own;
    let mut world = World::with(AmfConfig { shares_blocks: true, ..config });
    let root = |number: u8| Arc::new(format!("http://10.0.0.{number}:80").parse().unwrap());
    let living = if lives { [old, own].into() } else { [own].into() };
    let roots = [(old, root(1)), (own, root(7))].into();
    let instances = SetInstances { roots, living, is_uncertain: false, homes: Arc::default() };
    world.amf.change_instances(&Arc::new(instances));
    world
}

#[test]
fn a_phone_whose_amf_is_gone_keeps_its_registration_until_its_block_has_another_owner() {
    for (lives, cause) in
        [(false, GmmCause::Congestion), (true, GmmCause::UeIdentityCannotBeDerivedByTheNetwork)]
    {
        let ((_, mut phone), mut world) = (idle(), other_amf(lives));
        let request = phone.service_request(ServiceType::Data);
        comes(&mut world, &mut phone, request);
        phone.security = None;
        let GmmMessage::ServiceReject(reject) = phone.receive(&mut world) else { panic!() };
        assert_eq!((reject.cause, reject.t3346.is_some()), (cause, !lives));
        assert!(lives || reject.t3346.and_then(GprsTimer2::duration).is_some_and(|time| !time.is_zero()));
    }
}

#[test]
fn a_registration_update_waits_for_the_context_and_an_initial_registration_does_not() {
    for (kind, waits) in [
        (RegistrationKind::MobilityUpdating, true),
        (RegistrationKind::PeriodicUpdating, true),
        (RegistrationKind::Initial, false),
    ] {
        let ((_, mut phone), mut world) = (idle(), other_amf(false));
        let request = phone.registration_request(kind);
        let nas = phone.initial_nas(request);
        phone.connect(&mut world, nas);
        phone.security = None;
        match phone.receive(&mut world) {
            GmmMessage::RegistrationReject(reject) => {
                assert_eq!((waits, reject.cause), (true, GmmCause::Congestion));
                assert!(reject.t3346.is_some());
            }
            GmmMessage::IdentityRequest(_) => assert!(!waits, "{kind:?}"),
            other => panic!("{other:?}"),
        }
    }
}
