//! Emergency services (TS 24.501 5.5.1.2.2, 5.4.2.3, 5.4.5.2.2).

use crate::network::*;
use pith_nas::gmm::{AuthenticationFailure, IdentityRequest, SecurityModeCommand};
use pith_nas::ie::*;
use pith_nas::{GmmCause, GmmMessage};
use pith_ran::ue::{Event, Input, Service, SessionRequest};

/// SECURITY MODE COMMAND with null algorithms.
fn null_command(ng_ksi: NgKsi) -> SecurityModeCommand {
    let algorithms = NasSecurityAlgorithms { ciphering: 0, integrity: 0 };
    SecurityModeCommand { algorithms, ng_ksi, ..security_mode_command() }
}

fn accept(emergency_registered: bool) -> pith_nas::gmm::RegistrationAccept {
    let result = RegistrationResult { emergency_registered, ..RegistrationResult::THREE_GPP };
    pith_nas::gmm::RegistrationAccept { result, allowed_nssai: None, ..registration_accept() }
}

/// A UE without a SIM card is registered.
fn without_sim() -> Pair {
    let mut pair = Pair::of_service(Service::EmergencyWithoutSim);
    pair.input(Input::Register);
    let GmmMessage::RegistrationRequest(request) = pair.plain() else { panic!() };
    assert_eq!(request.registration_type.kind, RegistrationKind::Emergency);
    assert!(matches!(request.mobile_identity, MobileIdentity::Imei(_)), "its only identity");
    pair.null_context();
    pair.give_security_mode_command(null_command(NgKsi::Native(0)));
    let (_, GmmMessage::SecurityModeComplete(complete)) = pair.protected() else { panic!() };
    assert!(complete.imeisv.is_some() && complete.nas_message_container.is_some());
    pair.give_ciphered(accept(true));
    let GmmMessage::RegistrationComplete(_) = pair.ciphered() else { panic!() };
    pair.assert_clean();
    pair
}

#[test]
fn a_ue_without_sim_card_registers_with_null_algorithms_and_requests_an_emergency_session() {
    let mut pair = without_sim();
    let capabilities = pith_ngap::SecurityCapabilities {
        nr_encryption: 0,
        nr_integrity: 0,
        eutra_encryption: 0,
        eutra_integrity: 0,
    };
    pair.input(Input::SecurityActivated { k_gnb: [7; 32], capabilities });
    pair.input(Input::EstablishSession(SessionRequest { dnn: None, snssai: None, ..session_request(1) }));
    let GmmMessage::UlNasTransport(transport) = pair.ciphered() else { panic!() };
    assert_eq!(transport.request_type, Some(RequestType::InitialEmergencyRequest));
    assert_eq!((transport.dnn, transport.snssai), (None, None), "the network selects them");
    pair.assert_clean();
}

#[test]
fn a_gnb_that_gets_other_algorithms_of_an_unauthenticated_ue_is_reported() {
    let mut pair = without_sim();
    let capabilities = pith_ngap::SecurityCapabilities {
        nr_encryption: 0xc000,
        nr_integrity: 0xc000,
        eutra_encryption: 0,
        eutra_integrity: 0,
    };
    pair.input(Input::SecurityActivated { k_gnb: [7; 32], capabilities });
    assert_eq!(pair.violation(), "TS 33.501 10.2.2.2");
}

#[test]
fn a_ue_without_sim_card_has_no_suci() {
    let mut pair = Pair::of_service(Service::EmergencyWithoutSim);
    pair.input(Input::Register);
    pair.sent.clear();
    pair.give_plain(IdentityRequest::new(IdentityType::Suci));
    let GmmMessage::IdentityResponse(response) = pair.plain() else { panic!() };
    assert_eq!(response.mobile_identity, MobileIdentity::NoIdentity);
}

#[test]
fn after_a_failed_authentication_null_algorithms_are_accepted() {
    let mut pair = Pair::of_service(Service::Emergency);
    pair.input(Input::Register);
    pair.sent.clear();
    let mut challenge = pair.challenge(NgKsi::Native(0));
    challenge.autn = challenge.autn.map(|mut autn| {
        autn[15] ^= 1;
        autn
    });
    pair.give_plain(challenge);
    let GmmMessage::AuthenticationFailure(AuthenticationFailure { cause, .. }) = pair.plain() else {
        panic!()
    };
    assert_eq!(cause, GmmCause::MacFailure);
    pair.null_context();
    pair.give_security_mode_command(null_command(NgKsi::Native(0)));
    let (_, GmmMessage::SecurityModeComplete(_)) = pair.protected() else { panic!() };
    pair.give_ciphered(accept(true));
    assert!(pair.events.contains(&Event::Registered(RegistrationKind::Emergency)));
    pair.assert_clean();
}

#[test]
fn null_algorithms_are_refused_in_a_normal_registration_and_with_another_key_set() {
    for (service, ng_ksi) in [(Service::Normal, 0), (Service::Emergency, 3)] {
        let mut pair = Pair::of_service(service);
        pair.input(Input::Register);
        pair.sent.clear();
        pair.null_context();
        pair.give_security_mode_command(null_command(NgKsi::Native(ng_ksi)));
        let GmmMessage::SecurityModeReject(_) = pair.plain() else { panic!("{service:?}") };
        assert_eq!(pair.violation(), "TS 24.501 5.4.2.3");
    }
}

#[test]
fn a_normal_answer_to_an_emergency_registration_is_reported() {
    let mut pair = Pair::of_service(Service::Emergency);
    pair.secure();
    pair.give_ciphered(accept(false));
    assert_eq!(pair.violation(), "TS 24.501 9.11.3.6");
}

/// TS 24.501 5.3.7.
#[test]
fn an_emergency_registered_ue_deregisters_when_t3512_expires() {
    let mut pair = without_sim();
    pair.release_connection();
    pair.advance(std::time::Duration::from_secs(60));
    assert_eq!(pair.ue.state(), pith_ran::ue::State::Registered);
    pair.advance(std::time::Duration::from_secs(3600));
    assert_eq!(pair.ue.state(), pith_ran::ue::State::Deregistered);
    assert!(pair.events.contains(&Event::Deregistered { by_network: false }));
    assert!(pair.sent.is_empty(), "without signalling");
}
