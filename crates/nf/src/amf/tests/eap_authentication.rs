//! Primary authentication by EAP-AKA' and its abnormal cases (TS 24.501 5.4.1.2): the AMF between a
//! UE and an AUSF whose packets the test generates.

use super::world::{K_SEAF, Phone, World, problem, supi};
use crate::kit::Timer;
use pith_nas::gmm::{
    AuthenticationFailure, AuthenticationRequest, AuthenticationResponse, SecurityModeCommand,
};
use pith_nas::ie::{NgKsi, RegistrationKind, UeSecurityCapability};
use pith_nas::{GmmCause, GmmMessage};
use pith_sbi::common::{AuthType, Links};
use pith_sbi::nausf_ueauthentication::{AuthData, AuthResult, EapSession, UeAuthenticationCtx};
use pith_sbi::{Base64, Cause, Created, Operation, Reply, Request, Response};

const CHALLENGE: [u8; 8] = [1, 7, 0, 8, 50, 1, 0, 0];
const ANSWER: [u8; 8] = [2, 7, 0, 8, 50, 1, 0, 0];
const SUCCESS: [u8; 4] = [3, 7, 0, 4];
const FAILURE: [u8; 4] = [4, 7, 0, 4];

fn packet(octets: &[u8]) -> Base64 {
    Base64(octets.to_vec().into())
}

/// The AUSF's first EAP-Request.
fn context(world: &mut World, request: &[u8]) -> Reply {
    let Created { location, .. } = world.challenge();
    let data = AuthData::Eap(packet(request));
    let body = UeAuthenticationCtx::new(AuthType::EapAkaPrime, data, Links::default());
    Ok(Response::UeAuthenticationCtxCreated(Box::new(Created { location, body })))
}

fn session(payload: &[u8], result: AuthResult) -> Reply {
    let mut session = EapSession::new(Some(packet(payload)));
    session.auth_result = Some(result);
    if result == AuthResult::AuthenticationSuccess {
        session.supi = Some(supi());
        session.kseaf = Some(K_SEAF.into());
    }
    Ok(Response::EapSession(Box::new(session)))
}

/// A UE that has sent a registration request of that type to a network with EAP.
fn began(phone: &mut Phone, kind: RegistrationKind) -> World {
    let mut world = World::new();
    let first = context(&mut world, &CHALLENGE);
    world.script.insert(Operation::Authenticate, Some(first));
    world.script.insert(Operation::EapAuthMethod, None);
    let request = phone.registration_request(kind);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    world
}

fn request(world: &mut World, phone: &mut Phone) -> AuthenticationRequest {
    let GmmMessage::AuthenticationRequest(request) = phone.receive(world) else { panic!("a request") };
    request
}

/// A UE that has been sent the challenge.
fn challenged() -> (World, Phone) {
    let mut phone = Phone::default();
    let mut world = began(&mut phone, RegistrationKind::Initial);
    let challenge = request(&mut world, &mut phone);
    assert_eq!(challenge.eap_message.as_deref(), Some(&CHALLENGE[..]));
    assert_eq!((challenge.rand, challenge.autn, challenge.abba), (None, None, vec![0, 0]));
    world.take_ladder();
    (world, phone)
}

fn answer(octets: &[u8]) -> AuthenticationResponse {
    let mut response = AuthenticationResponse::new();
    response.eap_message = Some(octets.to_vec());
    response
}

fn command(world: &mut World, phone: &mut Phone) -> SecurityModeCommand {
    let GmmMessage::SecurityModeCommand(command) = phone.receive(world) else { panic!("then keys") };
    *command
}

#[test]
fn eap_success_is_sent_in_security_mode_command_with_abba() {
    let (mut world, mut phone) = challenged();
    phone.send(&mut world, answer(&ANSWER));
    let Request::EapAuthMethod(sent) = &world.calls[0].2 else { panic!("{:?}", world.calls) };
    assert_eq!((sent.auth_ctx_id.as_str(), &sent.body.eap_payload), ("a1", &Some(packet(&ANSWER))));
    world.reply_to(Operation::EapAuthMethod, session(&SUCCESS, AuthResult::AuthenticationSuccess));
    assert_eq!(
        world.take_ladder(),
        "\
gnb1 -> UplinkNasTransport
ausf <- EapAuthMethod
gnb1 <- DownlinkNasTransport"
    );
    let command = command(&mut world, &mut phone);
    assert_eq!(command.eap_message.as_deref(), Some(&SUCCESS[..]));
    assert_eq!(command.abba.as_deref(), Some(&[0, 0][..]));
    let complete = phone.security_mode_complete(phone.registration_request(RegistrationKind::Initial));
    phone.send_pdu(&mut world, complete);
    phone.accepted(&mut world);
}

#[test]
fn every_request_of_the_ausf_is_sent_with_the_same_key_set_identifier() {
    let (mut world, mut phone) = challenged();
    let second = [1, 8, 0, 8, 50, 1, 0, 0];
    phone.send(&mut world, answer(&ANSWER));
    world.reply_to(Operation::EapAuthMethod, session(&second, AuthResult::AuthenticationOngoing));
    let again = request(&mut world, &mut phone);
    assert_eq!((again.eap_message.as_deref(), again.ng_ksi), (Some(&second[..]), NgKsi::Native(0)));
    phone.send(&mut world, answer(&[2, 8, 0, 8, 50, 1, 0, 0]));
    world.reply_to(Operation::EapAuthMethod, session(&SUCCESS, AuthResult::AuthenticationSuccess));
    command(&mut world, &mut phone);
}

#[test]
fn eap_failure_is_sent_in_authentication_reject_after_registration_by_suci() {
    let (mut world, mut phone) = challenged();
    phone.send(&mut world, answer(&ANSWER));
    world.reply_to(Operation::EapAuthMethod, session(&FAILURE, AuthResult::AuthenticationFailure));
    let GmmMessage::AuthenticationReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.eap_message.as_deref(), Some(&FAILURE[..]));
    phone.released(&mut world);
    world.assert_empty();
}

#[test]
fn eap_failure_is_sent_in_authentication_result_before_identification() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    phone.release(&mut world);
    let challenge = context(&mut world, &CHALLENGE);
    world.script.insert(Operation::Authenticate, Some(challenge));
    world.script.insert(Operation::EapAuthMethod, Some(session(&FAILURE, AuthResult::AuthenticationFailure)));
    // A UE whose capability has changed gets a new key.
    phone.capability = UeSecurityCapability::of_5gs(0xf0, 0xe0);
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    assert!(matches!(phone.receive(&mut world), GmmMessage::AuthenticationRequest(_)));
    phone.send(&mut world, answer(&ANSWER));
    let GmmMessage::AuthenticationResult(result) = phone.receive(&mut world) else { panic!() };
    assert_eq!(result.eap_message, FAILURE);
    assert!(matches!(phone.receive(&mut world), GmmMessage::IdentityRequest(_)));
}

#[test]
fn an_unsolicited_packet_is_discarded_and_t3560_continues() {
    let (mut world, mut phone) = challenged();
    for octets in [&CHALLENGE[..], &[2, 6, 0, 8, 50, 1, 0, 0], &ANSWER[..7], &[2, 7, 0, 9, 50, 1, 0, 0]] {
        phone.send(&mut world, answer(octets));
    }
    let mut without = AuthenticationResponse::new();
    without.res_star = Some([1; 16]);
    phone.send(&mut world, without);
    assert!(world.calls.is_empty(), "{:?}", world.calls);
    assert!(world.running().contains(&Timer::T3560));
    phone.send(&mut world, answer(&ANSWER));
    assert_eq!(world.calls.len(), 1);
}

#[test]
fn t3560_retransmits_the_packet_four_times_and_then_aborts() {
    let (mut world, mut phone) = challenged();
    for _ in 0..4 {
        world.expire(Timer::T3560);
        assert_eq!(request(&mut world, &mut phone).eap_message.as_deref(), Some(&CHALLENGE[..]));
    }
    world.expire(Timer::T3560);
    phone.released(&mut world);
    world.assert_empty();
}

#[test]
fn ng_ksi_in_use_repeats_the_packet_once_with_another_identifier() {
    let (mut world, mut phone) = challenged();
    phone.send(&mut world, AuthenticationFailure::new(GmmCause::NgKsiAlreadyInUse));
    let again = request(&mut world, &mut phone);
    assert_eq!((again.eap_message.as_deref(), again.ng_ksi), (Some(&CHALLENGE[..]), NgKsi::Native(1)));
    assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport\ngnb1 <- DownlinkNasTransport");
    phone.send(&mut world, AuthenticationFailure::new(GmmCause::NgKsiAlreadyInUse));
    let GmmMessage::RegistrationReject(reject) = phone.receive(&mut world) else {
        panic!("REGISTRATION REJECT")
    };
    assert_eq!(reject.cause, GmmCause::ProtocolErrorUnspecified);
    phone.released(&mut world);
    world.assert_empty();
}

#[test]
fn other_authentication_failure_causes_do_not_apply_to_eap() {
    let (mut world, mut phone) = challenged();
    phone.send(&mut world, AuthenticationFailure::new(GmmCause::MacFailure));
    assert!(matches!(phone.receive(&mut world), GmmMessage::AuthenticationReject(_)));
    phone.released(&mut world);
    world.assert_empty();
}

#[test]
fn a_failure_with_a_cause_of_another_procedure_leaves_the_usim_valid() {
    let (mut world, mut phone) = challenged();
    phone.send(&mut world, AuthenticationFailure::new(GmmCause::ProtocolErrorUnspecified));
    let GmmMessage::RegistrationReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::ProtocolErrorUnspecified);
    phone.released(&mut world);
    world.assert_empty();
}

#[test]
fn an_invalid_reply_of_the_ausf_is_a_network_failure() {
    let mut without_key = EapSession::new(Some(packet(&SUCCESS)));
    without_key.auth_result = Some(AuthResult::AuthenticationSuccess);
    let cases = [
        session(&ANSWER, AuthResult::AuthenticationSuccess),
        session(&SUCCESS, AuthResult::AuthenticationOngoing),
        Ok(Response::EapSession(Box::new(without_key))),
        Ok(Response::NoContent),
        problem(Cause::TargetNfNotReachable).unwrap(),
    ];
    for case in cases {
        let (mut world, mut phone) = challenged();
        phone.send(&mut world, answer(&ANSWER));
        world.reply_to(Operation::EapAuthMethod, case);
        let GmmMessage::RegistrationReject(reject) = phone.receive(&mut world) else { panic!() };
        assert_eq!(reject.cause, GmmCause::ProtocolErrorUnspecified);
        phone.released(&mut world);
        world.assert_empty();
    }
}

#[test]
fn a_first_packet_that_is_not_a_request_is_not_forwarded() {
    let mut world = World::new();
    let mut phone = Phone::default();
    let first = context(&mut world, &SUCCESS);
    world.script.insert(Operation::Authenticate, Some(first));
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    assert!(matches!(phone.receive(&mut world), GmmMessage::RegistrationReject(_)));
    phone.released(&mut world);
    world.assert_empty();
}
