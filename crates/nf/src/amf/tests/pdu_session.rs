//! PDU sessions: the AMF's part (TS 24.501 5.4.5; TS 23.502 4.3).

use super::world::{NgapIe, Phone, World, establishment, problem, transfer, transfers};
use crate::kit::Timer;
use pith_nas::gmm::{DlNasTransport, UlNasTransport};
use pith_nas::ie::{PayloadContainerType, RequestType};
use pith_nas::{GmmCause, GmmMessage};
use pith_ngap::Message;
use pith_sbi::nsmf_pdusession::{N2SmInfoType, SmContextCreateErrorData, SmContextUpdatedData, UpCnxState};
use pith_sbi::{Cause, Operation, Problem, ProblemMore, Request, Response};
use pith_types::Snssai;

fn registered() -> (World, Phone) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    world.take_ladder();
    (world, phone)
}

fn came_back(world: &mut World, phone: &mut Phone) -> Box<DlNasTransport> {
    let GmmMessage::DlNasTransport(transport) = phone.receive(world) else { panic!() };
    transport
}

/// A 5GSM message of an existing session.
pub(super) fn message(id: u8, octets: &[u8]) -> UlNasTransport {
    let mut transport = UlNasTransport::new(PayloadContainerType::N1SmInformation, octets.to_vec());
    transport.pdu_session_id = Some(id);
    transport
}

#[test]
fn missing_session_parameters_come_from_the_subscription() {
    let (mut world, mut phone) = registered();
    world.script.insert(Operation::PostSmContexts, None);
    phone.send(&mut world, establishment(5));
    let Request::PostSmContexts(request) = &world.calls[0].2 else { panic!() };
    let body = &request.body;
    assert_eq!((body.s_nssai, body.dnn.as_ref().unwrap().as_str()), (Some(Snssai::of_sst(1)), "internet"));
    assert_eq!(body.n1_sm_msg.as_ref().unwrap().content, &b"establish"[..]);
    assert_eq!(body.pdu_session_id, Some(5));
    assert!(body.ue_location.is_some() && body.supi.is_some() && body.pei.is_some());
}

/// TS 23.003 9A.
#[test]
fn a_dnn_with_the_operator_identifier_of_the_network_is_that_of_its_network_identifier() {
    let (mut world, mut phone) = registered();
    world.script.insert(Operation::PostSmContexts, None);
    let mut transport = establishment(5);
    transport.dnn = Some("internet.mnc001.mcc001.gprs".parse().unwrap());
    phone.send(&mut world, transport.clone());
    let back = came_back(&mut world, &mut phone);
    assert_eq!(back.cause, Some(GmmCause::DnnNotSupportedOrNotSubscribedInTheSlice), "of another network");
    transport.dnn = Some("internet.mnc070.mcc999.gprs".parse().unwrap());
    phone.send(&mut world, transport);
    let Request::PostSmContexts(request) = &world.calls[0].2 else { panic!() };
    assert_eq!(request.body.dnn.as_ref().unwrap().as_str(), "internet");
}

#[test]
fn a_data_network_that_is_not_subscribed_is_refused() {
    let (mut world, mut phone) = registered();
    let mut transport = establishment(5);
    transport.dnn = Some("corporate".parse().unwrap());
    phone.send(&mut world, transport);
    let back = came_back(&mut world, &mut phone);
    assert_eq!(back.cause, Some(GmmCause::DnnNotSupportedOrNotSubscribedInTheSlice));
    assert_eq!((back.pdu_session_id, &back.payload_container[..]), (Some(5), &b"establish"[..]));
    assert_eq!(world.amf.audit().sessions, 0);
}

#[test]
fn a_slice_that_is_not_allowed_is_refused() {
    let (mut world, mut phone) = registered();
    let mut transport = establishment(5);
    transport.snssai = Some(Snssai::of_sst(9).into());
    phone.send(&mut world, transport);
    assert_eq!(came_back(&mut world, &mut phone).cause, Some(GmmCause::PayloadWasNotForwarded));
}

/// No function has subscribed to them: SMS over NAS, location services, UE policy (TS 24.501 5.4.5.2.5, 5.4.5.3.1 e).
#[test]
fn payloads_without_a_receiver_are_returned_unchanged() {
    let (mut world, mut phone) = registered();
    for code in (2..=15).map(PayloadContainerType::from_code) {
        world.take_ladder();
        phone.send(&mut world, UlNasTransport::new(code, b"payload".to_vec()));
        let back = came_back(&mut world, &mut phone);
        assert_eq!(back.cause, Some(GmmCause::PayloadWasNotForwarded), "{code:?}");
        assert_eq!((back.payload_container_type, &back.payload_container[..]), (code, &b"payload"[..]));
        assert!(!world.take_ladder().contains("<- Update"), "no NF gets it");
    }
    assert_eq!(world.amf.audit().registered, 1);
}

/// Without an emergency registration there is no emergency session (TS 24.501 5.4.5.2.5).
#[test]
fn a_request_for_an_emergency_session_is_returned() {
    let (mut world, mut phone) = registered();
    for kind in [RequestType::InitialEmergencyRequest, RequestType::ExistingEmergencyPduSession] {
        let mut transport = establishment(5);
        transport.request_type = Some(kind);
        phone.send(&mut world, transport);
        assert_eq!(came_back(&mut world, &mut phone).cause, Some(GmmCause::PayloadWasNotForwarded));
    }
    assert_eq!(world.amf.audit().sessions, 0);
}

#[test]
fn a_payload_of_unknown_type_is_returned() {
    let (mut world, mut phone) = registered();
    let mut without_id = establishment(5);
    without_id.pdu_session_id = None;
    let sms = UlNasTransport::new(PayloadContainerType::Sms, b"hi".to_vec());
    let mut reserved = establishment(5);
    reserved.pdu_session_id = Some(16);
    for transport in [without_id, sms, reserved, message(7, b"release")] {
        phone.send(&mut world, transport);
        assert_eq!(came_back(&mut world, &mut phone).cause, Some(GmmCause::PayloadWasNotForwarded));
    }
}

#[test]
fn the_smfs_reject_is_forwarded_to_the_phone() {
    let (mut world, mut phone) = registered();
    let error = SmContextCreateErrorData { n1_sm_msg: Some(b"reject".to_vec().into()), ..Default::default() };
    let refused = Problem::new(Cause::DnnDenied).with(ProblemMore::SmContextCreateError(Box::new(error)));
    world.script.insert(Operation::PostSmContexts, Some(Err(refused.into())));
    phone.send(&mut world, establishment(5));
    let back = came_back(&mut world, &mut phone);
    assert_eq!((back.cause, &back.payload_container[..]), (None, &b"reject"[..]));
    assert_eq!(world.amf.audit().sessions, 0);
}

/// TS 24.501 7.2, 7.3: the message is too short, or its PTI is reserved.
#[test]
fn a_request_that_the_smf_ignores_gets_no_answer() {
    let (mut world, mut phone) = registered();
    world.script.insert(Operation::PostSmContexts, super::world::problem(Cause::N1SmError));
    phone.send(&mut world, establishment(5));
    assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport\nsmf  <- PostSmContexts");
    assert_eq!(world.amf.audit().sessions, 0);
}

/// TS 24.501 5.4.5.2.3, 5.4.5.2.5: the AMF knows no SMF of that session. The SMF of one that the UE has decides.
#[test]
fn a_request_for_an_existing_session_begins_no_session() {
    let (mut world, mut phone) = registered();
    let mut transport = establishment(5);
    transport.request_type = Some(RequestType::ExistingPduSession);
    world.take_ladder();
    phone.send(&mut world, transport.clone());
    assert_eq!(came_back(&mut world, &mut phone).cause, Some(GmmCause::PayloadWasNotForwarded));
    assert!(!world.take_ladder().contains("PostSmContexts"));
    assert_eq!(world.amf.audit().sessions, 0);
    phone.establish(&mut world, 5);
    world.take_ladder();
    phone.send(&mut world, transport);
    assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport\nsmf  <- UpdateSmContext");
}

/// ATSSS is not supported.
#[test]
fn a_request_for_a_multi_access_session_is_returned() {
    let (mut world, mut phone) = registered();
    let mut transport = establishment(5);
    transport.request_type = Some(RequestType::MaPduRequest);
    phone.send(&mut world, transport);
    assert_eq!(came_back(&mut world, &mut phone).cause, Some(GmmCause::PayloadWasNotForwarded));
    assert_eq!(world.amf.audit().sessions, 0);
}

#[test]
fn a_message_of_another_class_than_sm_is_not_implemented() {
    let (mut world, mut phone) = registered();
    phone.establish(&mut world, 5);
    world.take_ladder();
    let mut request = super::world::transfer(5, Some(b"location"), None);
    let container = request.body.n1_message_container.as_mut().unwrap();
    container.n1_message_class = pith_sbi::namf_communication::N1MessageClass::Lpp;
    assert_eq!(world.request(request).unwrap_err().status, 501);
    assert!(!world.take_ladder().contains("gnb1"), "the UE gets nothing");
}

#[test]
fn without_an_smf_the_request_is_returned() {
    let (mut world, mut phone) = registered();
    world.script.insert(Operation::PostSmContexts, problem(Cause::TargetNfNotReachable));
    phone.send(&mut world, establishment(5));
    assert_eq!(came_back(&mut world, &mut phone).cause, Some(GmmCause::PayloadWasNotForwarded));
    assert_eq!(world.amf.audit().sessions, 0);
}

#[test]
fn a_request_for_a_session_that_the_phone_has_replaces_it() {
    let (mut world, mut phone) = registered();
    for id in 1..=15 {
        phone.establish(&mut world, id);
    }
    assert_eq!(world.amf.audit().sessions, 15);
    let mut request = establishment(1);
    request.request_type = Some(RequestType::InitialRequest);
    world.take_ladder();
    phone.send(&mut world, request);
    let ladder = world.take_ladder();
    assert!(ladder.contains("ReleaseSmContext") && ladder.contains("PostSmContexts"), "{ladder}");
    assert_eq!(world.amf.audit().sessions, 15, "the UE has forgotten the first one");
}

#[test]
fn a_release_involves_smf_gnb_and_phone() {
    let (mut world, mut phone) = registered();
    phone.establish(&mut world, 5);
    world.take_ladder();
    let released = SmContextUpdatedData {
        n1_sm_msg: Some(b"command".to_vec().into()),
        n2_sm_info: Some(b"release".to_vec().into()),
        n2_sm_info_type: Some(N2SmInfoType::PduResRelCmd),
        ..Default::default()
    };
    let released = Response::SmContextUpdated(Box::new(released));
    world.script.insert(Operation::UpdateSmContext, Some(Ok(released)));
    phone.send(&mut world, message(5, b"release"));
    world.script.clear();
    assert_eq!(&came_back(&mut world, &mut phone).payload_container[..], b"command");

    let response = pith_ngap::PduSessionResourceReleaseResponse {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        released: Some(transfers(&[5])),
        location: None,
        diagnostics: None,
    };
    world.ngap(phone.gnb, "PduSessionResourceReleaseResponse", response.encode());
    phone.send(&mut world, message(5, b"complete"));
    status_notify(&mut world, 5).unwrap();
    assert_eq!(
        world.take_ladder(),
        "\
gnb1 -> UplinkNasTransport
smf  <- UpdateSmContext
gnb1 <- PduSessionResourceReleaseCommand
gnb1 -> PduSessionResourceReleaseResponse
smf  <- UpdateSmContext
gnb1 -> UplinkNasTransport
smf  <- UpdateSmContext
nf   -> SmContextStatusNotify
nf   <- 204"
    );
    assert_eq!(world.amf.audit().sessions, 0);
}

/// The SMF reports the end of a session to the callback URI that it received.
pub(super) fn status_notify(world: &mut World, id: u8) -> pith_sbi::Reply {
    use pith_sbi::nsmf_pdusession::{
        ResourceStatus, SmContextStatusNotification, SmContextStatusNotify, StatusInfo,
    };
    let reference = world.amf.session_reference(&super::world::supi(), id);
    let root = &super::world::identity().api_root;
    let uri = SmContextStatusNotify::callback_uri(root, &pith_sbi::NfType::Amf, &reference);
    let body = SmContextStatusNotification::new(StatusInfo::new(ResourceStatus::Released));
    world.request(SmContextStatusNotify { uri, body })
}

#[test]
fn a_late_notification_of_a_former_session_is_ignored() {
    let (mut world, mut phone) = registered();
    phone.establish(&mut world, 5);
    let former = world.amf.session_reference(&super::world::supi(), 5);
    phone.send(&mut world, establishment(5));
    assert_ne!(world.amf.session_reference(&super::world::supi(), 5), former);
    assert_eq!(world.amf.audit().sessions, 1);
}

#[test]
fn a_session_without_resources_in_the_gnb_is_released_by_nas_alone() {
    let (mut world, mut phone) = registered();
    phone.send(&mut world, establishment(5));
    world.request(transfer(5, Some(b"command"), Some((NgapIe::PduResRelCmd, b"x")))).unwrap();
    assert!(matches!(world.downlinks[0].1, Message::DownlinkNasTransport(_)));
    came_back(&mut world, &mut phone);
}

#[test]
fn two_sessions_are_set_up_concurrently() {
    let (mut world, mut phone) = registered();
    phone.send(&mut world, establishment(1));
    phone.send(&mut world, establishment(2));
    for id in [2, 1] {
        world.request(transfer(id, Some(b"accept"), Some((NgapIe::PduResSetupReq, b"setup")))).unwrap();
        assert_eq!(came_back(&mut world, &mut phone).pdu_session_id, Some(id));
    }
}

#[test]
fn messages_are_queued_until_the_gnb_has_a_context() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    let request = phone.registration_request(pith_nas::ie::RegistrationKind::Initial);
    let nas = phone.initial_nas(request.clone());
    phone.connect(&mut world, nas);
    phone.authenticate(&mut world, request);
    phone.send(&mut world, establishment(5));
    world.take_ladder();
    world.request(transfer(5, Some(b"accept"), Some((NgapIe::PduResSetupReq, b"setup")))).unwrap();
    assert_eq!(world.take_ladder(), "nf   -> N1N2MessageTransfer\nnf   <- 200");
    phone.context_setup_response(&mut world, &[]);
    assert!(world.take_ladder().ends_with("gnb1 <- PduSessionResourceSetupRequest"));
}

#[test]
fn messages_that_overtake_the_smfs_reply_are_deferred() {
    let (mut world, mut phone) = registered();
    world.script.insert(Operation::PostSmContexts, None);
    phone.send(&mut world, establishment(5));
    world.take_ladder();
    world.request(transfer(5, Some(b"accept"), Some((NgapIe::PduResSetupReq, b"setup")))).unwrap();
    phone.send(&mut world, message(5, b"release"));
    let ladder = world.take_ladder();
    assert!(
        !ladder.contains("PduSessionResourceSetupRequest") && !ladder.contains("UpdateSmContext"),
        "{ladder}"
    );
    sm_context_created(&mut world);
    assert_eq!(world.take_ladder(), "gnb1 <- PduSessionResourceSetupRequest\nsmf  <- UpdateSmContext");
    phone.session_setup_response(&mut world, 5);
    assert!(world.take_ladder().ends_with("smf  <- UpdateSmContext"));
}

/// The SMF has created an SM context for session 5.
pub(super) fn sm_context_created(world: &mut World) {
    let location = "http://smf:80/nsmf-pdusession/v1/sm-contexts/sm-5".parse().unwrap();
    let created = pith_sbi::Created { location, body: Default::default() };
    world.reply_to(Operation::PostSmContexts, Ok(Response::SmContextCreated(Box::new(created))));
}

/// An SMF that sends its accept for session 5 before it answers.
fn overtaken() -> (World, Phone) {
    let (mut world, mut phone) = registered();
    world.script.insert(Operation::PostSmContexts, None);
    phone.send(&mut world, establishment(5));
    world.request(transfer(5, Some(b"accept"), Some((NgapIe::PduResSetupReq, b"setup")))).unwrap();
    assert!(!world.take_ladder().contains("PduSessionResourceSetupRequest"));
    (world, phone)
}

/// The SMF rejects the session with a message, after which its setup is outdated, or has the gNB release what it may have.
#[test]
fn a_setup_that_waits_for_an_sm_context_is_superseded() {
    let release = || Some((NgapIe::PduResRelCmd, &b"release"[..]));
    for (n1, n2) in [(Some(&b"reject"[..]), None), (None, release()), (Some(b"reject"), release())] {
        let (mut world, _) = overtaken();
        world.request(transfer(5, n1, n2)).unwrap();
        assert!(!world.take_ladder().contains("PduSessionResource"));
        sm_context_created(&mut world);
        assert_eq!(world.take_ladder(), "");
    }
    let (mut world, mut phone) = overtaken();
    world.request(transfer(5, None, Some((NgapIe::PduResSetupReq, b"other")))).unwrap();
    sm_context_created(&mut world);
    assert_eq!(came_back(&mut world, &mut phone).payload_container, b"accept", "it is not lost");
}

#[test]
fn a_setup_that_waits_for_an_sm_context_ends_with_the_session() {
    for is_idle in [false, true] {
        let (mut world, mut phone) = overtaken();
        if is_idle {
            phone.release(&mut world);
        }
        world.take_ladder();
        world.reply_to(Operation::PostSmContexts, Err(Problem::new(Cause::SystemFailure).into()));
        assert_eq!(world.amf.audit().sessions, 0);
        if is_idle {
            super::paging::comes(&mut world, &mut phone);
            phone.receive(&mut world);
        } else {
            assert_eq!(came_back(&mut world, &mut phone).cause, Some(GmmCause::PayloadWasNotForwarded));
        }
        phone.send(&mut world, establishment(5));
        sm_context_created(&mut world);
        assert!(!world.take_ladder().contains("PduSessionResource"));
    }
}

/// The UE has come back from CM-IDLE before the SMF answers.
#[test]
fn a_queued_setup_waits_for_the_sm_context() {
    for is_held in [true, false] {
        let (mut world, mut phone) = registered();
        world.script.insert(Operation::PostSmContexts, None);
        phone.send(&mut world, establishment(5));
        let accept = transfer(5, Some(b"accept"), Some((NgapIe::PduResSetupReq, b"setup")));
        if is_held {
            world.request(accept).unwrap();
            phone.release(&mut world);
        } else {
            phone.release(&mut world);
            world.request(accept).unwrap();
        }
        world.take_ladder();
        world.downlinks.clear();
        super::paging::comes(&mut world, &mut phone);
        let pith_ngap::Message::InitialContextSetupRequest(setup) = world.downlinks[0].1.clone() else {
            panic!()
        };
        assert_eq!(setup.sessions, None);
        phone.receive(&mut world);
        phone.context_setup_response(&mut world, &[]);
        assert!(
            matches!(phone.receive(&mut world), GmmMessage::ConfigurationUpdateCommand(_)),
            "after paging"
        );
        world.take_ladder();
        sm_context_created(&mut world);
        assert_eq!(world.take_ladder(), "gnb1 <- PduSessionResourceSetupRequest");
        assert_eq!(came_back(&mut world, &mut phone).payload_container, b"accept");
    }
}

#[test]
fn a_late_sm_context_is_released() {
    let (mut world, mut phone) = registered();
    world.script.insert(Operation::PostSmContexts, None);
    phone.send(&mut world, establishment(5));
    let request = phone.deregistration_request(true);
    phone.send(&mut world, request);
    phone.released(&mut world);
    world.take_ladder();
    let location = "http://smf:80/nsmf-pdusession/v1/sm-contexts/late".parse().unwrap();
    let created = pith_sbi::Created { location, body: Default::default() };
    world.reply_to(Operation::PostSmContexts, Ok(Response::SmContextCreated(Box::new(created))));
    assert_eq!(world.take_ladder(), "smf  <- ReleaseSmContext");
    world.assert_empty();
}

#[test]
fn a_session_that_the_smf_lost_is_deleted() {
    let (mut world, mut phone) = registered();
    phone.establish(&mut world, 5);
    world.script.insert(Operation::UpdateSmContext, problem(Cause::ContextNotFound));
    phone.send(&mut world, message(5, b"release"));
    assert_eq!(came_back(&mut world, &mut phone).cause, Some(GmmCause::PayloadWasNotForwarded));
    assert_eq!(world.amf.audit().sessions, 0);
}

/// The gNB's result and the deactivation that follows it may change their order on the way to the SMF.
#[test]
fn a_result_that_may_arrive_after_the_deactivation_is_followed_by_another() {
    let (mut world, mut phone) = registered();
    world.script.insert(Operation::UpdateSmContext, None);
    phone.establish(&mut world, 5);
    let (report, ..) = world.calls.pop().unwrap();
    phone.release(&mut world);
    world.take_ladder();
    let mut updated = SmContextUpdatedData::default();
    updated.up_cnx_state = Some(UpCnxState::Activated);
    world.reply(report, Ok(Response::SmContextUpdated(Box::new(updated))));
    assert_eq!(world.take_ladder(), "smf  <- UpdateSmContext");
    let Some((_, _, Request::UpdateSmContext(request))) = world.calls.last() else { panic!() };
    assert_eq!(request.body.up_cnx_state, Some(UpCnxState::Deactivated));
}

/// The SMF requests the setup of the session's resources for buffered packets.
pub(super) fn set_up(world: &mut World) {
    let reply = world.request(transfer(5, None, Some((NgapIe::PduResSetupReq, b"setup"))));
    assert!(reply.is_ok(), "{reply:?}");
}

pub(super) fn release_response(world: &mut World, phone: &Phone) {
    let message = pith_ngap::PduSessionResourceReleaseResponse {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        released: Some(transfers(&[5])),
        location: None,
        diagnostics: None,
    };
    world.ngap(phone.gnb, "PduSessionResourceReleaseResponse", message.encode());
}

/// A UE with a session that its gNB has, although the SMF has detected the loss of the tunnel.
fn with_lost_tunnel() -> (World, Phone) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    world.take_ladder();
    (world, phone)
}

#[test]
fn a_setup_after_a_release_command_waits_until_the_gnb_has_released() {
    let (mut world, phone) = with_lost_tunnel();
    world.request(transfer(5, None, Some((NgapIe::PduResRelCmd, b"release")))).unwrap();
    set_up(&mut world);
    release_response(&mut world, &phone);
    assert_eq!(
        world.take_ladder(),
        "\
nf   -> N1N2MessageTransfer
gnb1 <- PduSessionResourceReleaseCommand
nf   <- 200
nf   -> N1N2MessageTransfer
nf   <- 200
gnb1 -> PduSessionResourceReleaseResponse
gnb1 <- PduSessionResourceSetupRequest
smf  <- UpdateSmContext"
    );
    setup_response(&mut world, &phone, true);
    assert!(!world.running().contains(&Timer::NgapGuard));
}

#[test]
fn a_setup_of_a_session_that_the_gnb_has_is_preceded_by_its_release() {
    let (mut world, phone) = with_lost_tunnel();
    set_up(&mut world);
    set_up(&mut world);
    let ladder = world.take_ladder();
    assert_eq!(ladder.matches("PduSessionResourceReleaseCommand").count(), 1, "{ladder}");
    assert!(!ladder.contains("PduSessionResourceSetupRequest"), "{ladder}");
    release_response(&mut world, &phone);
    assert!(world.take_ladder().ends_with("gnb1 <- PduSessionResourceSetupRequest"));
}

/// Its resources count as released (TS 38.413 8.2.2).
#[test]
fn a_session_whose_release_the_gnb_does_not_answer_is_set_up_again() {
    let (mut world, phone) = with_lost_tunnel();
    set_up(&mut world);
    world.take_ladder();
    world.expire(Timer::NgapGuard);
    assert!(world.take_ladder().ends_with("gnb1 <- PduSessionResourceSetupRequest"));
    setup_response(&mut world, &phone, true);
    assert!(!world.running().contains(&Timer::NgapGuard));
}

/// The SMF does not answer: the AMF keeps a few messages, and returns the others.
#[test]
fn messages_for_an_smf_that_does_not_answer_are_limited() {
    let (mut world, mut phone) = registered();
    world.script.insert(Operation::PostSmContexts, None);
    phone.send(&mut world, establishment(5));
    world.downlinks.clear();
    for number in 0..20_u8 {
        phone.send(&mut world, message(5, &vec![number; 60_000]));
        if number < 7 {
            assert!(world.downlinks.is_empty(), "message {number} is kept for the SMF");
        } else {
            let back = came_back(&mut world, &mut phone);
            assert_eq!(back.cause, Some(GmmCause::PayloadWasNotForwarded));
            assert_eq!((back.pdu_session_id, back.payload_container.len()), (Some(5), 60_000));
        }
    }
    let octets: usize = world.amf.documents().iter().map(|document| document.octets().len()).sum();
    assert!(octets < 2 * 8 * 61_000, "{octets}");
}

/// The gNB's answer to a setup of session 5.
pub(super) fn setup_response(world: &mut World, phone: &Phone, is_set_up: bool) {
    let message = pith_ngap::PduSessionResourceSetupResponse {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        setup: is_set_up.then(|| transfers(&[5])),
        failed: (!is_set_up).then(|| transfers(&[5])),
        diagnostics: None,
    };
    world.ngap(phone.gnb, "PduSessionResourceSetupResponse", message.encode());
}

/// The kinds of N2 information that the SMF has got.
pub(super) fn reported(world: &mut World) -> Vec<N2SmInfoType> {
    let kind = |(_, _, request): (_, _, Request)| match request {
        Request::UpdateSmContext(request) => request.body.n2_sm_info_type,
        _ => None,
    };
    world.calls.drain(..).filter_map(kind).collect()
}

/// A UE that establishes session 5 again, whose first setup its gNB has not answered. The SMF has requested the second setup.
fn with_replaced_session() -> (World, Phone) {
    let (mut world, mut phone) = registered();
    for _ in 0..2 {
        phone.send(&mut world, establishment(5));
        world.request(transfer(5, Some(b"accept"), Some((NgapIe::PduResSetupReq, b"setup")))).unwrap();
    }
    world.script.insert(Operation::UpdateSmContext, None);
    let ladder = world.take_ladder();
    assert_eq!(ladder.matches("gnb1 <- PduSessionResourceReleaseCommand").count(), 1, "{ladder}");
    assert_eq!(ladder.matches("gnb1 <- PduSessionResourceSetupRequest").count(), 1, "{ladder}");
    (world, phone)
}

/// TS 23.502 4.3.2.2.1 step 2: answers about the session that was replaced concern the new one in no order.
#[test]
fn answers_about_a_replaced_session_do_not_concern_the_new_one() {
    for is_first_set_up in [false, true] {
        for is_release_first in [false, true] {
            let (mut world, phone) = with_replaced_session();
            if is_release_first {
                release_response(&mut world, &phone);
                setup_response(&mut world, &phone, is_first_set_up);
                if is_first_set_up {
                    // The gNB has resources again, which is to release them.
                    assert!(world.take_ladder().ends_with("gnb1 <- PduSessionResourceReleaseCommand"));
                    release_response(&mut world, &phone);
                }
            } else {
                setup_response(&mut world, &phone, is_first_set_up);
                assert!(!world.take_ladder().contains("<-"), "the release is not answered");
                release_response(&mut world, &phone);
            }
            let ladder = world.take_ladder();
            assert!(ladder.ends_with("gnb1 <- PduSessionResourceSetupRequest"), "{ladder}");
            assert_eq!(reported(&mut world), [], "the SMF has heard nothing of the new session");
            setup_response(&mut world, &phone, true);
            assert!(!world.running().contains(&Timer::NgapGuard));
            assert_eq!(reported(&mut world), [N2SmInfoType::PduResSetupRsp]);
        }
    }
}

#[test]
fn a_session_that_is_replaced_twice_is_released_once_at_the_gnb() {
    let (mut world, mut phone) = with_replaced_session();
    phone.send(&mut world, establishment(5));
    world.request(transfer(5, Some(b"accept"), Some((NgapIe::PduResSetupReq, b"setup")))).unwrap();
    assert!(!world.take_ladder().contains("gnb1 <-"), "the gNB has the command");
    setup_response(&mut world, &phone, false);
    release_response(&mut world, &phone);
    assert!(world.take_ladder().ends_with("gnb1 <- PduSessionResourceSetupRequest"));
    setup_response(&mut world, &phone, true);
    assert_eq!(reported(&mut world), [N2SmInfoType::PduResSetupRsp]);
}

/// The UE completes the release, and establishes the session again, before the gNB has answered the command.
#[test]
fn a_late_release_response_does_not_concern_a_new_session() {
    let (mut world, mut phone) = registered();
    phone.establish(&mut world, 5);
    world.request(transfer(5, Some(b"command"), Some((NgapIe::PduResRelCmd, b"release")))).unwrap();
    phone.send(&mut world, message(5, b"complete"));
    status_notify(&mut world, 5).unwrap();
    phone.send(&mut world, establishment(5));
    world.script.insert(Operation::UpdateSmContext, None);
    world.take_ladder();
    world.request(transfer(5, Some(b"accept"), Some((NgapIe::PduResSetupReq, b"setup")))).unwrap();
    assert!(!world.take_ladder().contains("gnb1 <-"), "it waits for the release");
    release_response(&mut world, &phone);
    assert!(world.take_ladder().ends_with("gnb1 <- PduSessionResourceSetupRequest"));
    assert_eq!(reported(&mut world), []);
    // The connection ends before the gNB has answered the setup: the SMF is notified.
    phone.release(&mut world);
    let Some((_, _, Request::UpdateSmContext(request))) = world.calls.last() else { panic!() };
    assert_eq!(request.body.up_cnx_state, Some(UpCnxState::Deactivated));
}

/// A setup that the SMF takes back before the gNB has answered it.
#[test]
fn an_answer_to_a_setup_that_was_taken_back_does_not_concern_a_later_one() {
    let (mut world, mut phone) = registered();
    phone.establish(&mut world, 5);
    world.request(transfer(5, None, Some((NgapIe::PduResRelCmd, b"release")))).unwrap();
    set_up(&mut world);
    release_response(&mut world, &phone);
    world.request(transfer(5, None, Some((NgapIe::PduResRelCmd, b"release")))).unwrap();
    world.script.insert(Operation::UpdateSmContext, None);
    set_up(&mut world);
    world.take_ladder();
    release_response(&mut world, &phone);
    assert!(!world.take_ladder().contains("gnb1 <-"), "the first setup is not answered");
    setup_response(&mut world, &phone, false);
    assert!(world.take_ladder().ends_with("gnb1 <- PduSessionResourceSetupRequest"));
    setup_response(&mut world, &phone, true);
    assert_eq!(reported(&mut world), [N2SmInfoType::PduResRelRsp, N2SmInfoType::PduResSetupRsp]);
}

/// TS 38.413 10.4: a response that answers nothing pending changes nothing.
#[test]
fn answers_without_a_request_change_nothing() {
    let (mut world, mut phone) = registered();
    phone.establish(&mut world, 5);
    world.take_ladder();
    release_response(&mut world, &phone);
    setup_response(&mut world, &phone, false);
    setup_response(&mut world, &phone, true);
    assert!(!world.take_ladder().contains("<-"), "neither SMF nor gNB gets anything");
    world.script.insert(Operation::UpdateSmContext, None);
    phone.release(&mut world);
    let Some((_, _, Request::UpdateSmContext(request))) = world.calls.last() else { panic!() };
    assert_eq!(request.body.up_cnx_state, Some(UpCnxState::Deactivated), "the SMF pages for later packets");
}

/// The gNB gets the setup while the SMF answers a report of before.
#[test]
fn a_late_reply_does_not_end_a_pending_setup() {
    let (mut world, mut phone) = registered();
    phone.establish(&mut world, 5);
    world.script.insert(Operation::UpdateSmContext, None);
    let notify = pith_ngap::PduSessionResourceNotify {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        notified: None,
        released: Some(transfers(&[5])),
    };
    world.ngap(phone.gnb, "PduSessionResourceNotify", notify.encode());
    let (report, ..) = world.calls.pop().unwrap();
    set_up(&mut world);
    let mut updated = SmContextUpdatedData::default();
    updated.up_cnx_state = Some(UpCnxState::Deactivated);
    world.reply(report, Ok(Response::SmContextUpdated(Box::new(updated))));
    setup_response(&mut world, &phone, true);
    assert_eq!(reported(&mut world), [N2SmInfoType::PduResSetupRsp]);
}

/// TS 29.518 5.2.2.3.1: the sender learns that nothing was sent.
#[test]
fn n2_information_that_is_no_request_for_a_gnb_or_of_another_session_is_refused() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    world.take_ladder();
    for kind in [NgapIe::HandoverCmd, NgapIe::Other("PDU_RES_SETUP_RSP".into())] {
        let problem = world.request(transfer(5, None, Some((kind, b"n2")))).unwrap_err();
        assert!(problem.status == 400 && problem.is(&Cause::MandatoryIeIncorrect), "{problem}");
    }
    let mut other = transfer(5, Some(b"5GSM"), Some((NgapIe::PduResRelCmd, b"release")));
    other.body.pdu_session_id = Some(6);
    assert_eq!(world.request(other).unwrap_err().status, 400);
    assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
}
