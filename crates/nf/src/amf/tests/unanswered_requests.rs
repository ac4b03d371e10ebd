//! gNBs that do not answer PDU SESSION RESOURCE SETUP REQUEST and RELEASE COMMAND, answer by ERROR INDICATION, or answer without the session (TS
//! 38.413 8.2.1, 8.2.2, 8.7.5): the session's identity can be used again.

use super::handover_between_amfs::take_message;
use super::n2_handover::{answer, connected, updates};
use super::pdu_session::{message, release_response, reported, setup_response, status_notify};
use super::world::*;
use crate::kit::Timer;
use pith_nas::GmmMessage;
use pith_nas::ie::ServiceType;
use pith_ngap::transfer::SetupUnsuccessfulTransfer;
use pith_ngap::{Cause, CauseProtocol, CauseRadioNetwork, ErrorIndication};
use pith_sbi::nsmf_pdusession::{N2SmInfoType, UpCnxState};

/// The gNB's answer, if it is one.
type Answer = fn(&mut World, &Phone);

fn guard_expires(world: &mut World, _: &Phone) {
    world.expire(Timer::NgapGuard);
}

/// An answer to the setup may be lost: the gNB is to release what it may have.
fn does_not_answer_the_setup(world: &mut World, phone: &Phone) {
    guard_expires(world, phone);
    let release = take_message!(world, GNB, PduSessionResourceReleaseCommand);
    assert_eq!(release.sessions.iter().map(|it| it.pdu_session_id).collect::<Vec<_>>(), [5]);
    assert!(world.downlinks.is_empty(), "the setup waits: {:?}", world.downlinks);
    assert!(world.running().contains(&Timer::NgapGuard));
}

fn releases_instead(world: &mut World, phone: &Phone) {
    does_not_answer_the_setup(world, phone);
    release_response(world, phone);
}

fn answers_nothing(world: &mut World, phone: &Phone) {
    does_not_answer_the_setup(world, phone);
    guard_expires(world, phone);
}

fn error(world: &mut World, phone: &Phone, cause: Cause) {
    let indication = ErrorIndication {
        amf_ue_ngap_id: phone.amf_id,
        ran_ue_ngap_id: Some(phone.ran_id),
        cause: Some(cause),
        diagnostics: None,
        s_tmsi: None,
    };
    world.ngap(phone.gnb, "ErrorIndication", indication.encode());
}

fn does_not_know_the_session(world: &mut World, phone: &Phone) {
    error(world, phone, Cause::RadioNetwork(CauseRadioNetwork::unknown_PDU_session_ID));
}

fn has_the_session_already(world: &mut World, phone: &Phone) {
    error(world, phone, Cause::RadioNetwork(CauseRadioNetwork::multiple_PDU_session_ID_instances));
}

fn does_not_understand(world: &mut World, phone: &Phone) {
    error(world, phone, Cause::Protocol(CauseProtocol::semantic_error));
}

fn release_response_without_sessions(world: &mut World, phone: &Phone) {
    let response = pith_ngap::PduSessionResourceReleaseResponse {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        released: None,
        location: None,
        diagnostics: None,
    };
    world.ngap(phone.gnb, "PduSessionResourceReleaseResponse", response.encode());
}

fn release_response_that_can_not_be_processed(world: &mut World, phone: &Phone) {
    let response = pith_ngap::PduSessionResourceReleaseResponse {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        released: Some(transfers(&[5])),
        location: None,
        diagnostics: None,
    };
    let pdu = crate::testing::with_ie_to_reject(&response.encode().unwrap());
    world.ngap(phone.gnb, "PduSessionResourceReleaseResponse", Ok(pdu));
}

pub(super) fn setup_response_without_sessions(world: &mut World, phone: &Phone) {
    let response = pith_ngap::PduSessionResourceSetupResponse {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        setup: None,
        failed: None,
        diagnostics: None,
    };
    world.ngap(phone.gnb, "PduSessionResourceSetupResponse", response.encode());
}

fn requests_setup(world: &mut World, id: u8) {
    world.request(transfer(id, Some(b"accept"), Some((NgapIe::PduResSetupReq, b"setup")))).unwrap();
}

/// The UE completes the release of session 5, and establishes it again.
fn establishes_again(world: &mut World, phone: &mut Phone) {
    phone.send(world, message(5, b"complete"));
    status_notify(world, 5).unwrap();
    phone.send(world, establishment(5));
    requests_setup(world, 5);
    assert!(world.downlinks.is_empty(), "it waits: {:?}", world.downlinks);
    world.calls.clear();
}

/// The setup of session 5 follows, and is answered. Session 6 has noticed nothing.
fn is_set_up(world: &mut World, phone: &Phone) {
    let setup = take_message!(world, GNB, PduSessionResourceSetupRequest);
    assert_eq!(setup.sessions.iter().map(|it| it.pdu_session_id).collect::<Vec<_>>(), [5]);
    assert!(setup.sessions[0].nas_pdu.is_some(), "with the accept");
    assert!(world.running().contains(&Timer::NgapGuard));
    setup_response(world, phone, true);
    assert_eq!(reported(world), [N2SmInfoType::PduResSetupRsp]);
    assert!(!world.running().contains(&Timer::NgapGuard));
    assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
    assert_eq!((world.amf.audit().connected, world.amf.audit().sessions), (1, 2));
}

#[test]
fn a_session_is_set_up_after_a_release_that_the_gnb_does_not_answer_properly() {
    let answers: [Answer; 4] = [
        guard_expires,
        does_not_know_the_session,
        release_response_without_sessions,
        release_response_that_can_not_be_processed,
    ];
    for answer in answers {
        let (mut world, mut phone) = connected(&[5, 6]);
        world.request(transfer(5, Some(b"command"), Some((NgapIe::PduResRelCmd, b"release")))).unwrap();
        let _ = take_message!(world, GNB, PduSessionResourceReleaseCommand);
        establishes_again(&mut world, &mut phone);
        answer(&mut world, &phone);
        is_set_up(&mut world, &phone);
        // A late answer.
        release_response(&mut world, &phone);
        assert!(world.downlinks.is_empty() && reported(&mut world).is_empty());
    }
}

/// The UE releases session 5 while it is set up: the gNB has no resources yet that the SMF could release.
fn released_during_setup() -> (World, Phone) {
    let (mut world, mut phone) = connected(&[6]);
    phone.send(&mut world, establishment(5));
    requests_setup(&mut world, 5);
    let _ = take_message!(world, GNB, PduSessionResourceSetupRequest);
    world.request(transfer(5, Some(b"command"), None)).unwrap();
    let _ = take_message!(world, GNB, DownlinkNasTransport);
    (world, phone)
}

/// It is not known whether the gNB has the former resources, nor whether the UE has got the accept.
#[test]
fn a_session_is_set_up_after_a_setup_that_the_gnb_does_not_answer_properly() {
    let answers: [Answer; 4] =
        [releases_instead, answers_nothing, has_the_session_already, setup_response_without_sessions];
    for answer in answers {
        let (mut world, mut phone) = released_during_setup();
        establishes_again(&mut world, &mut phone);
        answer(&mut world, &phone);
        is_set_up(&mut world, &phone);
        setup_response(&mut world, &phone, false);
        assert!(world.downlinks.is_empty() && reported(&mut world).is_empty(), "a late answer");
    }
}

/// The SMF gets a cause that no gNB sends: the UE may have got the accept.
#[test]
fn a_setup_answer_without_the_session_is_reported_with_a_cause_of_the_core() {
    let answers: [Answer; 2] = [guard_expires, setup_response_without_sessions];
    for answer in answers {
        let (mut world, mut phone) = connected(&[]);
        phone.send(&mut world, establishment(5));
        requests_setup(&mut world, 5);
        world.calls.clear();
        answer(&mut world, &phone);
        let update = updates(&world).remove(0);
        assert_eq!(update.n2_sm_info_type, Some(N2SmInfoType::PduResSetupFail));
        let transfer = SetupUnsuccessfulTransfer::decode(&update.n2_sm_info.unwrap().content).unwrap();
        let cause = CauseRadioNetwork::release_due_to_5gc_generated_reason;
        assert_eq!(transfer.cause, Cause::RadioNetwork(cause));
    }
}

/// It answers one of two requests, which is not known: the timer decides.
#[test]
fn an_error_indication_that_may_answer_two_requests_ends_neither() {
    let (mut world, mut phone) = connected(&[]);
    for id in [5, 6] {
        phone.send(&mut world, establishment(id));
        requests_setup(&mut world, id);
    }
    world.calls.clear();
    does_not_understand(&mut world, &phone);
    does_not_know_the_session(&mut world, &phone);
    setup_response_without_sessions(&mut world, &phone);
    assert_eq!(updates(&world), []);
    setup_response(&mut world, &phone, true);
    assert_eq!(reported(&mut world), [N2SmInfoType::PduResSetupRsp]);
    world.expire(Timer::NgapGuard);
    assert_eq!(reported(&mut world), [N2SmInfoType::PduResSetupFail]);
}

/// A protocol error may be one of any other message, such as DOWNLINK NAS TRANSPORT.
#[test]
fn an_error_indication_that_names_no_procedure_does_not_end_a_setup() {
    let (mut world, mut phone) = connected(&[]);
    phone.send(&mut world, establishment(5));
    requests_setup(&mut world, 5);
    world.calls.clear();
    does_not_understand(&mut world, &phone);
    assert_eq!(updates(&world), []);
    setup_response(&mut world, &phone, true);
    assert_eq!(reported(&mut world), [N2SmInfoType::PduResSetupRsp]);
}

/// The SMF has session 5 set up again, and the gNB does not answer the setup.
fn with_open_setup() -> (World, Phone) {
    let (mut world, phone) = connected(&[5]);
    world.request(transfer(5, None, Some((NgapIe::PduResSetupReq, b"first")))).unwrap();
    let _ = take_message!(world, GNB, PduSessionResourceReleaseCommand);
    release_response(&mut world, &phone);
    let request = take_message!(world, GNB, PduSessionResourceSetupRequest);
    assert_eq!(request.sessions[0].transfer, b"first");
    (world, phone)
}

/// The UE requests the user plane of session 5, which the SMF activates.
fn requests_service(world: &mut World, phone: &mut Phone) {
    let mut request = phone.service_request(ServiceType::Data);
    request.uplink_data_status = Some([5].into_iter().collect());
    world.calls.clear();
    phone.send(world, request);
    assert_eq!(updates(world)[0].up_cnx_state, Some(UpCnxState::Activating));
    answer(world, Some(N2SmInfoType::PduResSetupReq));
    let GmmMessage::ServiceAccept(accept) = phone.receive(world) else { panic!() };
    assert!(accept.reactivation_result.is_none_or(|failed| failed.is_empty()), "{accept:?}");
    assert!(world.downlinks.is_empty(), "the gNB is to answer first: {:?}", world.downlinks);
}

fn user_plane_follows(world: &mut World, phone: &Phone) {
    let request = take_message!(world, GNB, PduSessionResourceSetupRequest);
    assert_eq!(request.sessions[0].transfer, b"PDU_RES_SETUP_REQ");
    world.calls.clear();
    setup_response(world, phone, true);
    assert_eq!(reported(world), [N2SmInfoType::PduResSetupRsp]);
    assert!(!world.running().contains(&Timer::NgapGuard));
}

/// The UE releases the session before the gNB has answered its setup, and the SMF commands no release at the gNB, which has no resources for it yet.
#[test]
fn the_gnb_releases_what_it_sets_up_after_the_ue_has_requested_the_release() {
    let (mut world, mut phone) = released_during_setup();
    setup_response(&mut world, &phone, true);
    phone.send(&mut world, message(5, b"complete"));
    status_notify(&mut world, 5).unwrap();
    let release = take_message!(world, GNB, PduSessionResourceReleaseCommand);
    assert_eq!(release.sessions.iter().map(|it| it.pdu_session_id).collect::<Vec<_>>(), [5]);
    world.calls.clear();
    phone.send(&mut world, establishment(5));
    requests_setup(&mut world, 5);
    assert!(world.downlinks.is_empty(), "it waits: {:?}", world.downlinks);
    release_response(&mut world, &phone);
    is_set_up(&mut world, &phone);
}

/// A setup that the gNB has not answered is released there. Meanwhile the UE requests its user plane.
#[test]
fn a_service_request_during_a_release_gets_its_user_plane_after_it() {
    let answers: [Answer; 2] = [release_response, guard_expires];
    for answer in answers {
        let (mut world, mut phone) = with_open_setup();
        world.expire(Timer::NgapGuard);
        let _ = take_message!(world, GNB, PduSessionResourceReleaseCommand);
        requests_service(&mut world, &mut phone);
        answer(&mut world, &phone);
        user_plane_follows(&mut world, &phone);
    }
}

/// The gNB has answered the release of a session only, and not its setup before. The next setup waits: its answer would be taken as that to the first.
#[test]
fn a_setup_waits_for_the_answer_to_a_former_one() {
    let (mut world, mut phone) = with_open_setup();
    world.request(transfer(5, None, Some((NgapIe::PduResRelCmd, b"release")))).unwrap();
    let _ = take_message!(world, GNB, PduSessionResourceReleaseCommand);
    release_response(&mut world, &phone);
    requests_service(&mut world, &mut phone);
    world.expire(Timer::NgapGuard);
    let _ = take_message!(world, GNB, PduSessionResourceReleaseCommand);
    release_response(&mut world, &phone);
    user_plane_follows(&mut world, &phone);
}

#[test]
fn a_ue_that_repeats_its_request_does_not_prolong_the_wait_for_the_gnb() {
    let (mut world, mut phone) = connected(&[5]);
    world.request(transfer(5, Some(b"command"), Some((NgapIe::PduResRelCmd, b"release")))).unwrap();
    world.downlinks.clear();
    let deadline = |world: &World| {
        let guard = world.timers.iter().find(|(key, _)| key.timer == Timer::NgapGuard);
        *guard.expect("it runs").1
    };
    let before = deadline(&world);
    world.now = world.now + crate::kit::Duration::from_secs(5);
    establishes_again(&mut world, &mut phone);
    assert_eq!(deadline(&world), before);
}

/// The accept would reach the UE after the command to release the session.
#[test]
fn an_accept_that_waits_is_dropped_when_the_smf_ends_the_session() {
    let (mut world, mut phone) = connected(&[5]);
    world.request(transfer(5, Some(b"command"), Some((NgapIe::PduResRelCmd, b"release")))).unwrap();
    world.downlinks.clear();
    establishes_again(&mut world, &mut phone);
    world.request(transfer(5, Some(b"command"), None)).unwrap();
    let _ = take_message!(world, GNB, DownlinkNasTransport);
    world.expire(Timer::NgapGuard);
    assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
    assert!(!world.ladder.iter().any(|line| line.ends_with("Paging")));
}

/// A former run of the shard may have sent it. TS 38.413 10.4: an error in a response is handled locally.
#[test]
fn a_release_complete_without_a_command_ends_the_connection() {
    let (mut world, phone) = connected(&[5]);
    let complete = pith_ngap::UeContextReleaseComplete {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        location: None,
        sessions: None,
        diagnostics: None,
    };
    for _ in 0..2 {
        world.ngap(GNB, "UeContextReleaseComplete", complete.encode());
    }
    let states: Vec<_> = updates(&world).into_iter().map(|it| it.up_cnx_state).collect();
    assert_eq!(states, [Some(UpCnxState::Deactivated)]);
    assert_eq!(world.amf.audit().connected, 0);
    assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
}
