//! Registration (TS 24.501 5.5.1).

use crate::network::*;
use pith_nas::gmm::{IdentityRequest, RegistrationReject};
use pith_nas::ie::*;
use pith_nas::{GmmCause, GmmMessage, SecurityHeaderType};
use pith_ran::ue::{Event, Failure, Input, State};
use std::time::Duration;

#[test]
fn without_security_context_only_cleartext_ies_leave_the_ue_and_the_rest_follows_ciphered() {
    let mut pair = Pair::new();
    pair.input(Input::Register);
    let GmmMessage::RegistrationRequest(first) = pair.plain() else { panic!() };
    assert_eq!(first.requested_nssai, None);
    assert_eq!(first.gmm_capability, None);
    assert_eq!(first.ng_ksi, NgKsi::NoKey);
    assert!(matches!(first.mobile_identity, MobileIdentity::Suci(_)));
    let entire = Pair::new().secure();
    assert_eq!(entire.requested_nssai.unwrap().0.len(), 1);
    assert_eq!(entire.mobile_identity, first.mobile_identity);
}

#[test]
fn a_registration_ends_with_complete_and_no_violation() {
    let mut pair = Pair::new();
    pair.register();
    assert_eq!(pair.ue.state(), State::Registered);
    assert_eq!(pair.events, [Event::Registered(RegistrationKind::Initial)]);
    assert_eq!(pair.ue.next_timeout(), Some(pair.now + Duration::from_secs(60)), "only T3519 runs");
}

#[test]
fn with_a_context_the_request_is_integrity_protected_and_the_rest_of_it_ciphered_inside() {
    let mut pair = Pair::new();
    pair.register();
    pair.release_connection();
    pair.input(Input::Register);
    let octets = pair.octets();
    let opened = pair.security.as_mut().unwrap().unprotect(&octets).unwrap();
    assert_eq!(opened.header, SecurityHeaderType::IntegrityProtected);
    let GmmMessage::RegistrationRequest(outer) = GmmMessage::decode(&opened.plain).unwrap() else { panic!() };
    assert_eq!(outer.mobile_identity, guti());
    assert_eq!(outer.requested_nssai, None);
    let mut container = outer.nas_message_container.unwrap();
    pair.security.as_ref().unwrap().decipher_container(opened.count, &mut container);
    let GmmMessage::RegistrationRequest(inner) = GmmMessage::decode(&container).unwrap() else { panic!() };
    assert!(inner.requested_nssai.is_some());
    assert_eq!(inner.registration_type.kind, RegistrationKind::MobilityUpdating);
}

#[test]
fn an_accept_without_guti_tai_list_or_allowed_nssai_is_incomplete() {
    let cases: [(fn(&mut pith_nas::gmm::RegistrationAccept), &str); 4] = [
        (|accept| accept.guti = None, "TS 33.501 6.12.3"),
        (|accept| accept.tai_list = None, "TS 24.501 5.5.1.2.4"),
        (|accept| accept.allowed_nssai = None, "TS 24.501 5.5.1.2.4"),
        (|accept| accept.result.access = AccessType::NonThreeGpp, "TS 24.501 9.11.3.6"),
    ];
    for (spoil, clause) in cases {
        let mut pair = Pair::new();
        pair.secure();
        let mut accept = registration_accept();
        spoil(&mut accept);
        pair.give_ciphered(accept);
        assert_eq!(pair.violation(), clause);
    }
}

#[test]
fn an_accept_for_another_area_or_network_is_a_violation() {
    let mut pair = Pair::new();
    pair.secure();
    let mut accept = registration_accept();
    let elsewhere = pith_types::Tai { tac: pith_types::Tac::new(9), ..tai() };
    accept.tai_list = Some(TaiList::of(&[elsewhere]));
    accept.guti = Some(MobileIdentity::FiveGGuti("5g-guti-0010102004000000001".parse().unwrap()));
    pair.give_ciphered(accept);
    let clauses: Vec<_> = pair.violations.iter().map(|violation| violation.clause).collect();
    assert_eq!(clauses, ["TS 23.003 2.10.1", "TS 24.501 5.5.1.2.4"]);
}

#[test]
fn an_unsolicited_accept_gets_status_98() {
    let mut pair = Pair::new();
    pair.register();
    pair.give_ciphered(registration_accept());
    assert_eq!(pair.violation(), "TS 24.501 7.4");
    let GmmMessage::GmmStatus(status) = pair.ciphered() else { panic!() };
    assert_eq!(status.cause, GmmCause::MessageTypeNotCompatibleWithTheProtocolState);
}

#[test]
fn no_answer_in_t3510_means_another_attempt_after_t3511() {
    let mut pair = Pair::new();
    pair.input(Input::Register);
    pair.sent.clear();
    pair.advance(Duration::from_secs(15));
    assert_eq!(pair.events[0], Event::RegistrationFailed(Failure::NoAnswer));
    assert_eq!(pair.released, 1);
    pair.advance(Duration::from_secs(10));
    assert_eq!(pair.connections, 2);
    let GmmMessage::RegistrationRequest(_) = pair.plain() else { panic!() };
}

#[test]
fn after_five_attempts_t3502_is_waited_for() {
    let mut pair = Pair::new();
    pair.input(Input::Register);
    for attempt in 1..=5 {
        assert_eq!(pair.connections, attempt);
        pair.advance(Duration::from_secs(15));
        pair.advance(Duration::from_secs(10));
    }
    assert_eq!(pair.connections, 5);
    pair.advance(Duration::from_secs(12 * 60));
    assert_eq!(pair.connections, 6);
}

#[test]
fn t3502_has_the_value_of_the_last_accept() {
    let mut pair = Pair::new();
    pair.secure();
    let t3502 = Some(GprsTimer2::at_least(Duration::from_secs(20)));
    pair.give_ciphered(pith_nas::gmm::RegistrationAccept { t3502, ..registration_accept() });
    pair.release_connection();
    pair.input(Input::Deregister { switch_off: false });
    pair.release_connection();
    let before = pair.connections;
    pair.input(Input::Register);
    for _ in 0..5 {
        pair.advance(Duration::from_secs(15));
        pair.advance(Duration::from_secs(10));
    }
    assert_eq!(pair.connections, before + 5);
    pair.advance(Duration::from_secs(20));
    assert_eq!(pair.connections, before + 6);
}

#[test]
fn illegal_ue_makes_the_usim_invalid() {
    let mut pair = Pair::new();
    pair.input(Input::Register);
    pair.give_plain(RegistrationReject::new(GmmCause::IllegalUe));
    pair.assert_clean();
    pair.release_connection();
    pair.input(Input::Register);
    assert_eq!(pair.events.last(), Some(&Event::RegistrationFailed(Failure::InvalidUsim)));
    assert_eq!(pair.connections, 1);
}

#[test]
fn an_identity_that_the_network_can_not_derive_is_replaced_by_suci() {
    let mut pair = Pair::new();
    pair.register();
    pair.release_connection();
    pair.input(Input::Register);
    pair.sent.clear();
    pair.give_plain(RegistrationReject::new(GmmCause::UeIdentityCannotBeDerivedByTheNetwork));
    pair.release_connection();
    let GmmMessage::RegistrationRequest(request) = pair.plain() else { panic!() };
    assert!(matches!(request.mobile_identity, MobileIdentity::Suci(_)));
    assert_eq!(request.registration_type.kind, RegistrationKind::Initial);
}

#[test]
fn congestion_is_waited_out_by_t3346() {
    let mut pair = Pair::new();
    pair.input(Input::Register);
    let mut reject = RegistrationReject::new(GmmCause::Congestion);
    reject.t3346 = Some(GprsTimer2::at_least(Duration::from_secs(30)));
    pair.give_plain(reject);
    pair.release_connection();
    pair.advance(Duration::from_secs(29));
    assert_eq!(pair.connections, 1);
    pair.advance(Duration::from_secs(1));
    assert_eq!(pair.connections, 2);
}

#[test]
fn a_periodic_update_begins_when_t3512_runs_out_in_idle() {
    let mut pair = Pair::new();
    pair.register();
    pair.release_connection();
    pair.advance(Duration::from_secs(60));
    pair.advance(Duration::from_secs(3600));
    let octets = pair.octets();
    let opened = pair.security.as_mut().unwrap().unprotect(&octets).unwrap();
    let GmmMessage::RegistrationRequest(request) = GmmMessage::decode(&opened.plain).unwrap() else {
        panic!()
    };
    assert_eq!(request.registration_type.kind, RegistrationKind::PeriodicUpdating);
}

#[test]
fn moving_out_of_the_area_begins_a_mobility_update() {
    let mut pair = Pair::new();
    pair.register();
    pair.release_connection();
    pair.input(Input::Camp(pith_types::Tai { tac: pith_types::Tac::new(2), ..tai() }));
    assert_eq!(pair.ue.state(), State::AwaitingRegistrationAccept(RegistrationKind::MobilityUpdating));
}

#[test]
fn the_suci_is_sent_unprotected_and_unchanged_while_t3519_runs() {
    let mut pair = Pair::new();
    pair.input(Input::Register);
    let GmmMessage::RegistrationRequest(request) = pair.plain() else { panic!() };
    pair.give_plain(IdentityRequest::new(IdentityType::Suci));
    let GmmMessage::IdentityResponse(response) = pair.plain() else { panic!() };
    assert_eq!(response.mobile_identity, request.mobile_identity);
    pair.assert_clean();
}

#[test]
fn the_imei_is_not_sent_unprotected() {
    let mut pair = Pair::new();
    pair.input(Input::Register);
    pair.sent.clear();
    pair.give_plain(IdentityRequest::new(IdentityType::Imeisv));
    assert_eq!(pair.violation(), "TS 24.501 4.4.4.2");
    assert!(pair.sent.is_empty());
}

#[test]
fn the_imei_has_a_check_digit() {
    let mut pair = Pair::new();
    pair.register();
    pair.give_ciphered(IdentityRequest::new(IdentityType::Imei));
    let GmmMessage::IdentityResponse(response) = pair.ciphered() else { panic!() };
    assert_eq!(response.mobile_identity, MobileIdentity::Imei("imei-490154203237518".parse().unwrap()));
}
