//! Service request, paging, configuration update (TS 24.501 5.6.1, 5.6.2, 5.4.4).

use crate::network::*;
use pith_nas::gmm::{ConfigurationUpdateCommand, ServiceAccept, ServiceReject, ServiceRequest};
use pith_nas::ie::*;
use pith_nas::{GmmCause, GmmMessage, SecurityHeaderType};
use pith_ran::ue::{Event, Failure, Input, SessionFailure, State};
use std::time::Duration;

fn idle_with_session() -> Pair {
    let mut pair = Pair::new();
    pair.register();
    pair.establish(1);
    pair.release_connection();
    pair.events.clear();
    pair
}

/// The request in the container of the protected one.
fn inner_request(pair: &mut Pair) -> ServiceRequest {
    let octets = pair.octets();
    let opened = pair.security.as_mut().unwrap().unprotect(&octets).unwrap();
    assert_eq!(opened.header, SecurityHeaderType::IntegrityProtected);
    let GmmMessage::ServiceRequest(outer) = GmmMessage::decode(&opened.plain).unwrap() else { panic!() };
    assert_eq!((outer.uplink_data_status, outer.pdu_session_status), (None, None), "not in clear");
    let mut container = outer.nas_message_container.clone().unwrap();
    pair.security.as_ref().unwrap().decipher_container(opened.count, &mut container);
    let GmmMessage::ServiceRequest(inner) = GmmMessage::decode(&container).unwrap() else { panic!() };
    *inner
}

fn accept() -> ServiceAccept {
    let mut accept = ServiceAccept::new();
    accept.pdu_session_status = Some([1].into_iter().collect());
    accept.reactivation_result = Some(PduSessionSet::NONE);
    accept
}

#[test]
fn data_status_and_session_status_are_sent_ciphered() {
    let mut pair = idle_with_session();
    pair.input(Input::RequestService);
    let request = inner_request(&mut pair);
    assert_eq!(request.service_type, ServiceType::Data);
    assert_eq!(request.uplink_data_status, Some([1].into_iter().collect()));
    assert_eq!(request.pdu_session_status, Some([1].into_iter().collect()));
    pair.give_ciphered(accept());
    assert_eq!(pair.events, [Event::ServiceAccepted]);
    pair.assert_clean();
}

#[test]
fn paging_is_answered_as_mobile_terminated() {
    let mut pair = idle_with_session();
    pair.input(Input::Paging(Default::default()));
    assert_eq!(inner_request(&mut pair).service_type, ServiceType::MobileTerminatedServices);
}

/// Uplink data while the UE answers paging: it requests the user plane then.
#[test]
fn data_while_paging_is_answered_are_requested_after_it() {
    let mut pair = idle_with_session();
    pair.input(Input::Paging(Default::default()));
    assert_eq!(inner_request(&mut pair).uplink_data_status, None);
    pair.input(Input::RequestService);
    assert!(pair.sent.is_empty(), "one request at a time");
    pair.give_ciphered(ServiceAccept { reactivation_result: None, ..accept() });
    let GmmMessage::ServiceRequest(request) = pair.ciphered() else { panic!() };
    assert_eq!(request.service_type, ServiceType::Data);
    assert_eq!(request.uplink_data_status, Some([1].into_iter().collect()));
    pair.give_ciphered(accept());
    assert!(pair.sent.is_empty(), "once");
    pair.assert_clean();
}

#[test]
fn an_accept_without_reactivation_result_is_incomplete() {
    let mut pair = idle_with_session();
    pair.input(Input::RequestService);
    inner_request(&mut pair);
    pair.give_ciphered(ServiceAccept { reactivation_result: None, ..accept() });
    assert_eq!(pair.violation(), "TS 24.501 5.6.1.4.1");
}

#[test]
fn a_failed_activation_is_reported_to_the_user() {
    let mut pair = idle_with_session();
    pair.input(Input::RequestService);
    inner_request(&mut pair);
    pair.give_ciphered(ServiceAccept { reactivation_result: Some([1].into_iter().collect()), ..accept() });
    assert_eq!(pair.events, [Event::ServiceAccepted, Event::UserPlaneFailed(1)]);
    pair.assert_clean();
}

#[test]
fn a_session_that_the_network_has_lost_is_dropped() {
    let mut pair = idle_with_session();
    pair.input(Input::RequestService);
    inner_request(&mut pair);
    pair.give_ciphered(ServiceAccept { pdu_session_status: Some(PduSessionSet::NONE), ..accept() });
    assert_eq!(pair.events, [Event::SessionReleased(1), Event::ServiceAccepted]);
    assert_eq!(pair.ue.sessions().count(), 0);
}

#[test]
fn cause_9_leads_to_a_new_registration_with_suci() {
    let mut pair = idle_with_session();
    pair.input(Input::RequestService);
    pair.sent.clear();
    pair.give_plain(ServiceReject::new(GmmCause::UeIdentityCannotBeDerivedByTheNetwork));
    pair.release_connection();
    let GmmMessage::RegistrationRequest(request) = pair.plain() else { panic!() };
    assert!(matches!(request.mobile_identity, MobileIdentity::Suci(_)));
    pair.assert_clean();
}

#[test]
fn no_answer_in_t3517_ends_it() {
    let mut pair = idle_with_session();
    pair.input(Input::RequestService);
    pair.advance(Duration::from_secs(15));
    assert!(pair.events.contains(&Event::ServiceFailed(Failure::NoAnswer)));
    assert_eq!((pair.released, pair.ue.state()), (1, State::Registered));
}

#[test]
fn k_gnb_is_derived_from_the_service_request_count() {
    let mut pair = idle_with_session();
    pair.input(Input::RequestService);
    let octets = pair.octets();
    let count = pair.security.as_mut().unwrap().unprotect(&octets).unwrap().count;
    let k_amf = pair.k_amf.clone().unwrap();
    let k_gnb = pith_crypto::kdf::k_gnb(&k_amf, count.value(), pith_crypto::kdf::AccessType::ThreeGpp);
    let capabilities = pith_ngap::SecurityCapabilities {
        nr_encryption: 0xc000,
        nr_integrity: 0xc000,
        eutra_encryption: 0xc000,
        eutra_integrity: 0xc000,
    };
    pair.input(Input::SecurityActivated { k_gnb: *k_gnb.as_bytes(), capabilities });
    pair.assert_clean();
}

#[test]
fn a_configuration_update_is_acknowledged_and_its_guti_used() {
    let mut pair = Pair::new();
    pair.register();
    let mut command = ConfigurationUpdateCommand::new();
    command.guti = Some(second_guti());
    command.indication = Some(ConfigurationUpdateIndication { acknowledgement: true, ..Default::default() });
    pair.give_ciphered(command);
    let GmmMessage::ConfigurationUpdateComplete(_) = pair.ciphered() else { panic!() };
    assert_eq!(pair.ue.guti().map(MobileIdentity::FiveGGuti), Some(second_guti()));
    pair.assert_clean();
}

#[test]
fn a_new_guti_has_to_be_acknowledged() {
    let mut pair = Pair::new();
    pair.register();
    let mut command = ConfigurationUpdateCommand::new();
    command.guti = Some(second_guti());
    pair.give_ciphered(command);
    assert_eq!(pair.violation(), "TS 24.501 5.4.4.2");
    assert!(pair.sent.is_empty());
}

/// The network allows service in another tracking area only.
fn elsewhere() -> ServiceAreaList {
    let other = pith_types::Tai { tac: pith_types::Tac::new(2), ..tai() };
    let parts = TaiList::of(&[other]).0.into_iter();
    ServiceAreaList(parts.map(|areas| ServiceArea { allowed: true, areas }).collect())
}

#[test]
fn outside_its_service_area_a_ue_answers_paging_only() {
    let mut pair = Pair::new();
    pair.secure();
    let mut accept = registration_accept();
    accept.service_area_list = Some(elsewhere());
    pair.give_ciphered(accept);
    pair.sent.clear();
    pair.events.clear();
    pair.input(Input::EstablishSession(session_request(1)));
    assert_eq!(pair.events, [Event::SessionFailed(1, SessionFailure::NotPossible)]);
    pair.release_connection();
    pair.events.clear();
    pair.input(Input::RequestService);
    assert_eq!(pair.events, [Event::ServiceFailed(Failure::RestrictedArea)]);
    assert!(pair.sent.is_empty());
    pair.input(Input::Paging(Default::default()));
    assert_eq!(pair.sent.len(), 1, "the answer to paging");
    pair.assert_clean();
}

#[test]
fn a_service_area_of_a_configuration_update_is_acknowledged_and_applies() {
    let mut pair = idle_with_session();
    pair.input(Input::RequestService);
    inner_request(&mut pair);
    pair.give_ciphered(accept());
    let mut command = ConfigurationUpdateCommand::new();
    command.service_area_list = Some(elsewhere());
    pair.give_ciphered(command.clone());
    assert_eq!(pair.violation(), "TS 24.501 5.4.4.2", "the UE must acknowledge a service area list");
    command.indication =
        Some(ConfigurationUpdateIndication { acknowledgement: true, registration_requested: false });
    pair.give_ciphered(command);
    let GmmMessage::ConfigurationUpdateComplete(_) = pair.ciphered() else { panic!() };
    pair.events.clear();
    pair.input(Input::EstablishSession(session_request(2)));
    assert_eq!(pair.events, [Event::SessionFailed(2, SessionFailure::NotPossible)]);
    pair.assert_clean();
}

#[test]
fn after_a_reject_for_its_service_area_the_ue_registers_over_the_connection() {
    let mut pair = idle_with_session();
    pair.input(Input::RequestService);
    inner_request(&mut pair);
    pair.give_ciphered(ServiceReject::new(GmmCause::RestrictedServiceArea));
    let GmmMessage::RegistrationRequest(request) = pair.ciphered() else { panic!() };
    assert_eq!(request.registration_type.kind, RegistrationKind::MobilityUpdating);
    assert_eq!(pair.events, [Event::ServiceFailed(GmmCause::RestrictedServiceArea.into())]);
    pair.assert_clean();
}
