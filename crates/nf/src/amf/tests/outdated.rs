//! UE contexts whose documents may be outdated: the UE keeps its registration and its sessions, and is authenticated at its first message.

use super::residency::{registered, request_service, restart};
use super::world::{GNB, Phone, World, problem, transfer};
use crate::amf::context::{RmState, UeContext};
use crate::amf::n1;
use crate::amf::security::SecurityContext;
use crate::kit::{StoreScope, Timer, UNPLACED};
use crate::testing::Stored;
use pith_crypto::kdf;
use pith_crypto::keys::KAmf;
use pith_crypto::nas::{CipheringAlgorithm, IntegrityAlgorithm};
use pith_nas::gmm::{self, ServiceAccept, ServiceRequest};
use pith_nas::ie::{PayloadContainerType, RegistrationKind, ServiceType, UeSecurityCapability};
use pith_nas::security::{Algorithms, Connection};
use pith_nas::{GmmCause, GmmMessage, NasSecurity, Role, SecurityHeaderType};
use pith_sbi::common::DateTime;
use pith_sbi::{Cause, Operation};

/// A registered phone with session 5, at an AMF that has an outdated document of it.
fn outdated() -> (World, Phone, Stored) {
    let (mut world, phone, stored) = registered(0);
    restart(&mut world, &stored, (1, 0), true);
    world.connect_gnbs();
    world.take_ladder();
    (world, phone, stored)
}

/// A SERVICE REQUEST for the user plane of session 5.
fn request(phone: &Phone) -> ServiceRequest {
    let mut request = phone.service_request(ServiceType::Data);
    request.uplink_data_status = Some([5].into_iter().collect());
    request.pdu_session_status = Some([5].into_iter().collect());
    request
}

/// Sends the request, and returns what the AMF answers, which is not protected.
fn plain_answer(world: &mut World, phone: &mut Phone) -> GmmMessage {
    let request = request(phone);
    let nas = phone.initial_nas(request);
    phone.connect(world, nas);
    plain_downlink(world, phone)
}

fn plain_downlink(world: &mut World, phone: &mut Phone) -> GmmMessage {
    let message = world.next();
    let pdu = phone.nas_pdu(message).unwrap();
    GmmMessage::decode(&pdu).expect("a plain message")
}

/// The phone requests service, is authenticated, and is accepted.
pub(super) fn authenticated_service(world: &mut World, phone: &mut Phone) -> Box<ServiceAccept> {
    let challenge = plain_answer(world, phone);
    assert!(matches!(challenge, GmmMessage::AuthenticationRequest(_)), "{challenge:?}");
    phone.send(world, Phone::authentication_response());
    let GmmMessage::SecurityModeCommand(command) = phone.receive(world) else { panic!("then keys") };
    assert!(command.additional_security_information.unwrap().retransmit_initial_nas_message);
    let mut complete = gmm::SecurityModeComplete::new();
    complete.nas_message_container = Some(GmmMessage::from(request(phone)).encode());
    let header = SecurityHeaderType::IntegrityProtectedAndCipheredWithNewContext;
    let complete = phone.protect(header, complete);
    phone.send_pdu(world, complete);
    let GmmMessage::ServiceAccept(accept) = phone.receive(world) else { panic!("then service") };
    accept
}

/// The AMF has the registration and the session.
fn assert_registered(world: &World) {
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.sessions, audit.supis, audit.dangling), (1, 1, 1, 0));
}

#[test]
fn the_phone_is_authenticated_and_keeps_its_sessions() {
    let (mut world, mut phone, _) = outdated();
    let accept = authenticated_service(&mut world, &mut phone);
    assert!(accept.pdu_session_status.unwrap().contains(5));
    assert!(accept.reactivation_result.unwrap().is_empty());
    assert_eq!(phone.security.as_ref().unwrap().last_received().unwrap().value(), 1, "COUNTs begin again");
    phone.context_setup_response(&mut world, &[5]);
    let ladder = world.take_ladder();
    let expected = "\
gnb1 -> InitialUeMessage
ausf <- Authenticate
gnb1 <- DownlinkNasTransport
gnb1 -> UplinkNasTransport
ausf <- FiveGAkaConfirmation
gnb1 <- DownlinkNasTransport
gnb1 -> UplinkNasTransport
smf  <- UpdateSmContext
gnb1 <- InitialContextSetupRequest
gnb1 -> InitialContextSetupResponse
smf  <- UpdateSmContext";
    assert_eq!(ladder, expected);
    assert_registered(&world);
}

/// The phone requests service with an outdated context, and has got SECURITY MODE COMMAND.
pub(super) fn offered(reserved: u32) -> (World, Phone, Stored) {
    let (mut world, mut phone, mut stored) = registered(reserved);
    restart(&mut world, &stored, (1, reserved), true);
    world.connect_gnbs();
    let GmmMessage::AuthenticationRequest(_) = plain_answer(&mut world, &mut phone) else { panic!() };
    phone.send(&mut world, Phone::authentication_response());
    stored.store(&mut world.amf, StoreScope::Changed);
    let GmmMessage::SecurityModeCommand(_) = phone.receive(&mut world) else { panic!() };
    (world, phone, stored)
}

/// TS 24.501 5.4.2.3: the phone takes the new context into use when it gets the command.
#[test]
fn new_keys_are_known_after_a_restart_before_the_phone_has_confirmed_them() {
    for (reserved, restarts) in [(0, 1), (16, 1), (16, 3)] {
        let (mut world, mut phone, mut stored) = offered(reserved);
        for run in 0..restarts {
            restart(&mut world, &stored, (2 + run, reserved), false);
            stored.store(&mut world.amf, StoreScope::Changed);
        }
        world.connect_gnbs();
        let GmmMessage::ServiceAccept(accept) = request_service(&mut world, &mut phone) else { panic!() };
        assert!(accept.pdu_session_status.is_none_or(|status| status.contains(5)));
        phone.context_setup_response(&mut world, &[5]);
        phone.release(&mut world);
        stored.store(&mut world.amf, StoreScope::Changed);
        restart(&mut world, &stored, (7, reserved), false);
        world.connect_gnbs();
        let GmmMessage::ServiceAccept(_) = request_service(&mut world, &mut phone) else { panic!() };
        assert_registered(&world);
    }
}

/// The contexts of AMF and phone with these keys.
fn both_sides(key: u8) -> (SecurityContext, NasSecurity) {
    let algorithms = Algorithms { integrity: IntegrityAlgorithm::Nia2, ciphering: CipheringAlgorithm::Nea2 };
    let context =
        SecurityContext::new(key, KAmf::new([key; 32]), UeSecurityCapability::of_5gs(0xf0, 0x70), algorithms);
    let (integrity, ciphering) = (
        kdf::k_nas_int(&context.k_amf, algorithms.integrity),
        kdf::k_nas_enc(&context.k_amf, algorithms.ciphering),
    );
    let phone = NasSecurity::new(Role::Ue, Connection::ThreeGpp, algorithms, integrity, ciphering);
    (context, phone)
}

#[test]
fn a_phone_may_have_got_the_command_or_not() {
    let (world, _, _) = offered(0);
    let id = world.amf.ues.iter().map(|(_, ue)| ue.id).next().unwrap();
    let ue = || {
        let (of_amf, former) = both_sides(1);
        let (offered, new) = both_sides(2);
        let mut ue = UeContext::new((UNPLACED, id), DateTime::from_unix_ms(0));
        ue.rm = RmState::Registered;
        ue.note_offered(offered);
        (ue, of_amf, former, new)
    };
    let initial = |phone: &mut NasSecurity| {
        phone.protect(SecurityHeaderType::IntegrityProtected, &[0x7e, 0, 0x4c]).unwrap()
    };
    for is_outdated in [false, true] {
        let (mut ue, of_amf, mut former, mut new) = ue();
        (ue.security, ue.outdated) =
            if is_outdated { (None, Some(Box::new(of_amf.into_outdated()))) } else { (Some(of_amf), None) };
        let message = initial(&mut former);
        assert_eq!(ue.verify_initial(&message).is_some(), !is_outdated);
        assert_eq!(ue.recognise_outdated(&message), is_outdated);
        // An outdated context proves nothing: the message may be a replay, and the phone have the new keys.
        assert_eq!(ue.offered.is_some(), is_outdated);
        assert_eq!(ue.verify_initial(&initial(&mut new)).is_some(), is_outdated);
        assert_eq!(ue.security.map(|it| it.ng_ksi), Some(if is_outdated { 2 } else { 1 }));
        assert!(ue.outdated.is_none() && ue.offered.is_none());
    }
}

#[test]
fn new_keys_of_an_outdated_document_recognise_the_phone() {
    let (mut world, mut phone, stored) = offered(0);
    restart(&mut world, &stored, (2, 0), true);
    world.connect_gnbs();
    authenticated_service(&mut world, &mut phone);
    assert_registered(&world);
}

/// TS 24.501 5.4.2.7 a: the answer is lost with the connection.
#[test]
fn new_keys_are_known_if_the_connection_is_lost_before_the_phone_has_confirmed_them() {
    let (mut world, mut phone, ..) = offered(0);
    phone.release(&mut world);
    let GmmMessage::ServiceAccept(_) = request_service(&mut world, &mut phone) else { panic!() };
    assert_registered(&world);
}

#[test]
fn the_phone_is_authenticated_also_after_another_restart() {
    let (mut world, mut phone, mut stored) = outdated();
    stored.store(&mut world.amf, StoreScope::Changed);
    restart(&mut world, &stored, (2, 0), false);
    world.connect_gnbs();
    authenticated_service(&mut world, &mut phone);
    assert_registered(&world);
}

#[test]
fn an_authenticated_phone_is_not_authenticated_again_after_a_restart() {
    let (mut world, mut phone, mut stored) = outdated();
    authenticated_service(&mut world, &mut phone);
    phone.context_setup_response(&mut world, &[5]);
    stored.store(&mut world.amf, StoreScope::Changed);
    restart(&mut world, &stored, (2, 0), false);
    world.connect_gnbs();
    let GmmMessage::ServiceAccept(_) = request_service(&mut world, &mut phone) else { panic!() };
}

/// The document has no COUNT of the messages since, of which there may be more than the sequence number's eight bits tell.
#[test]
fn a_phone_that_has_sent_many_messages_since_is_recognised() {
    let (mut world, mut phone, _) = outdated();
    for _ in 0..3000 {
        phone.initial_nas(gmm::RegistrationComplete::new());
    }
    authenticated_service(&mut world, &mut phone);
    let (mut world, mut phone, _) = outdated();
    for _ in 0..5000 {
        phone.initial_nas(gmm::RegistrationComplete::new());
    }
    let GmmMessage::ServiceReject(reject) = plain_answer(&mut world, &mut phone) else { panic!() };
    assert_eq!(reject.cause, GmmCause::UeIdentityCannotBeDerivedByTheNetwork);
    assert_registered(&world);
}

#[test]
fn a_replayed_request_gets_a_challenge_and_nothing_else() {
    let (mut world, mut phone, _) = outdated();
    let (replayed, later) = (request(&phone), request(&phone));
    let (replayed, later) = (phone.initial_nas(replayed), phone.initial_nas(later));
    let mut attacker = Phone { guti: phone.guti, gnb: GNB, ..Phone::default() };
    attacker.connect(&mut world, replayed.clone());
    let challenge = plain_downlink(&mut world, &mut attacker);
    assert!(matches!(challenge, GmmMessage::AuthenticationRequest(_)));
    let mut wrong = Phone::authentication_response();
    wrong.res_star = Some([0; 16]);
    attacker.send(&mut world, wrong);
    let GmmMessage::ServiceReject(_) = plain_downlink(&mut world, &mut attacker) else { panic!() };
    attacker.released(&mut world);
    assert_registered(&world);
    // Not a second time.
    attacker.connect(&mut world, replayed.clone());
    let GmmMessage::ServiceReject(_) = plain_downlink(&mut world, &mut attacker) else { panic!() };
    attacker.released(&mut world);
    // Nor while the phone itself is connected.
    phone.ran_id.0 += 100;
    phone.connect(&mut world, later);
    let challenge = plain_downlink(&mut world, &mut phone);
    assert!(matches!(challenge, GmmMessage::AuthenticationRequest(_)));
    attacker.connect(&mut world, replayed);
    let GmmMessage::ServiceReject(_) = plain_downlink(&mut world, &mut attacker) else { panic!() };
    phone.send(&mut world, Phone::authentication_response());
    let GmmMessage::SecurityModeCommand(_) = phone.receive(&mut world) else { panic!("then keys") };
    assert_registered(&world);
}

/// It would end the registration of the phone: the sender has no key.
#[test]
fn a_plain_registration_after_a_replayed_request_is_ignored() {
    for kind in [RegistrationKind::Emergency, RegistrationKind::Initial, RegistrationKind::MobilityUpdating] {
        let (mut world, mut phone, _) = outdated();
        let replayed = request(&phone);
        let replayed = phone.initial_nas(replayed);
        let mut attacker = Phone { guti: phone.guti, gnb: GNB, ..Phone::default() };
        attacker.connect(&mut world, replayed);
        let challenge = plain_downlink(&mut world, &mut attacker);
        assert!(matches!(challenge, GmmMessage::AuthenticationRequest(_)));
        let registration = attacker.registration_request(kind);
        attacker.send(&mut world, registration);
        assert!(world.downlinks.is_empty(), "{kind:?}");
        assert_registered(&world);
    }
}

#[test]
fn a_message_that_the_outdated_context_does_not_verify_is_rejected() {
    let (mut world, mut phone, _) = outdated();
    let message = request(&phone);
    let mut nas = phone.initial_nas(message);
    nas[2] ^= 1;
    phone.connect(&mut world, nas);
    let GmmMessage::ServiceReject(reject) = plain_downlink(&mut world, &mut phone) else { panic!() };
    assert_eq!(reject.cause, GmmCause::UeIdentityCannotBeDerivedByTheNetwork);
    assert_registered(&world);
}

#[test]
fn a_phone_that_does_not_answer_stays_registered() {
    let (mut world, mut phone, _) = outdated();
    plain_answer(&mut world, &mut phone);
    (0..5).for_each(|_| world.expire(Timer::T3560));
    world.downlinks.retain(|(_, message)| message.name() == "UeContextReleaseCommand");
    phone.released(&mut world);
    assert_registered(&world);
    authenticated_service(&mut world, &mut phone);
    assert_registered(&world);
}

#[test]
fn a_phone_keeps_its_registration_if_the_home_network_does_not_answer() {
    let (mut world, mut phone, _) = outdated();
    world.script.insert(Operation::Authenticate, problem(Cause::TimedOutRequest));
    let GmmMessage::ServiceReject(reject) = plain_answer(&mut world, &mut phone) else { panic!() };
    assert!(reject.cause == GmmCause::Congestion && reject.t3346.is_some());
    phone.released(&mut world);
    world.script.clear();
    authenticated_service(&mut world, &mut phone);
    assert_registered(&world);
}

/// Nothing is sent with the outdated context, and nothing unprotected but what belongs to the authentication.
#[test]
fn while_the_phone_is_authenticated_no_other_message_is_sent() {
    let (mut world, mut phone, _) = outdated();
    let challenge = plain_answer(&mut world, &mut phone).encode();
    let reply = world.request(transfer(5, Some(b"command"), None));
    assert!(reply.is_err(), "a registration, or what counts as one, is in progress");
    let key = world.amf.ues.iter().next().map(|(key, _)| key).unwrap();
    let ue = world.amf.ues.get_mut(key).unwrap();
    let container = gmm::DlNasTransport::new(PayloadContainerType::N1SmInformation, b"command".to_vec());
    assert_eq!(n1::seal(ue, &GmmMessage::from(container).encode()), None);
    assert_eq!(n1::seal(ue, &challenge), Some(challenge));
    assert!(world.downlinks.is_empty());
}

/// A phone with session 5 registers in that way, at an AMF that has an outdated document of it. It has sent SECURITY MODE COMPLETE.
fn authenticated(world: &mut World, phone: &mut Phone, kind: RegistrationKind) {
    let mut request = phone.registration_request(kind);
    request.pdu_session_status = Some([5].into_iter().collect());
    let nas = phone.initial_nas(request.clone());
    phone.connect(world, nas);
    let GmmMessage::IdentityRequest(_) = plain_downlink(world, phone) else { panic!() };
    let identity =
        phone.protect(SecurityHeaderType::IntegrityProtected, gmm::IdentityResponse::new(Phone::suci()));
    phone.send_pdu(world, identity);
    let GmmMessage::AuthenticationRequest(_) = plain_downlink(world, phone) else { panic!() };
    let response = phone.protect(SecurityHeaderType::IntegrityProtected, Phone::authentication_response());
    phone.send_pdu(world, response);
    let GmmMessage::SecurityModeCommand(_) = phone.receive(world) else { panic!("then keys") };
    let complete = phone.security_mode_complete(request);
    phone.send_pdu(world, complete);
}

#[test]
fn a_phone_that_registers_keeps_its_sessions_if_the_process_ends_before_the_accept() {
    for (kind, kept) in [(RegistrationKind::MobilityUpdating, 1), (RegistrationKind::Initial, 0)] {
        let (mut world, mut phone, mut stored) = outdated();
        stored.store(&mut world.amf, StoreScope::Changed);
        world.script.insert(Operation::ThreeGppRegistration, None);
        authenticated(&mut world, &mut phone, kind);
        stored.store(&mut world.amf, StoreScope::Changed);
        world.calls.clear();
        restart(&mut world, &stored, (2, 0), false);
        let audit = world.amf.audit();
        assert_eq!((audit.registered, audit.sessions, audit.dangling), (kept, kept, 0), "{kind:?}");
    }
}

#[test]
fn a_phone_that_registers_keeps_its_sessions() {
    for kind in [RegistrationKind::MobilityUpdating, RegistrationKind::PeriodicUpdating] {
        let (mut world, mut phone, _) = outdated();
        authenticated(&mut world, &mut phone, kind);
        let accept = phone.accepted(&mut world);
        assert!(accept.pdu_session_status.unwrap().contains(5), "{kind:?}");
        assert_registered(&world);
    }
}
