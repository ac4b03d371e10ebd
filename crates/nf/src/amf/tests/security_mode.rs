//! Security mode control and its abnormal cases (TS 24.501 5.4.2).

use super::world::{Phone, World};
use crate::kit::Timer;
use pith_nas::gmm::{RegistrationRequest, SecurityModeCommand, SecurityModeReject};
use pith_nas::ie::{ImeisvRequest, RegistrationKind, UeSecurityCapability};
use pith_nas::{GmmCause, GmmMessage, SecurityHeaderType};

/// A UE that received SECURITY MODE COMMAND.
fn commanded() -> (World, Phone, RegistrationRequest, Box<SecurityModeCommand>) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request.clone());
    phone.connect(&mut world, nas);
    phone.receive(&mut world);
    phone.send(&mut world, Phone::authentication_response());
    let GmmMessage::SecurityModeCommand(command) = phone.receive(&mut world) else { panic!() };
    (world, phone, request, command)
}

#[test]
fn the_command_requests_the_imeisv_and_the_complete_request() {
    let (_, _, _, command) = commanded();
    assert_eq!((command.algorithms.ciphering, command.algorithms.integrity), (2, 2));
    assert_eq!(command.imeisv_request, Some(ImeisvRequest::Requested));
    assert!(command.additional_security_information.unwrap().retransmit_initial_nas_message);
}

#[test]
fn the_request_in_the_container_replaces_the_first_one() {
    let (mut world, mut phone, mut request, _) = commanded();
    request.pdu_session_status = Some([5].into_iter().collect());
    let complete = phone.security_mode_complete(request);
    phone.send_pdu(&mut world, complete);
    let accept = phone.accepted(&mut world);
    assert!(accept.pdu_session_status.unwrap().is_empty(), "only asked for in the container");
}

#[test]
fn a_modified_capability_is_detected() {
    let (mut world, mut phone, mut request, _) = commanded();
    request.ue_security_capability = Some(UeSecurityCapability::of_5gs(0xf0, 0xf0));
    let complete = phone.security_mode_complete(request);
    phone.send_pdu(&mut world, complete);
    let GmmMessage::RegistrationReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::UeSecurityCapabilitiesMismatch);
    phone.released(&mut world);
    world.assert_empty();
}

#[test]
fn a_phone_without_a_common_algorithm_is_rejected() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.capability = UeSecurityCapability::of_5gs(0x80, 0x80);
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    let GmmMessage::RegistrationReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::UeSecurityCapabilitiesMismatch);
}

#[test]
fn a_security_mode_reject_ends_the_registration() {
    let (mut world, mut phone, ..) = commanded();
    let reject = SecurityModeReject::new(GmmCause::UeSecurityCapabilitiesMismatch);
    phone.security = None;
    phone.send(&mut world, reject);
    phone.released(&mut world);
    world.assert_empty();
}

#[test]
fn case_b_t3560_retransmits_the_command_with_new_counts_and_then_aborts() {
    let (mut world, mut phone, ..) = commanded();
    let mut seen = std::collections::HashSet::new();
    for _ in 0..4 {
        world.expire(Timer::T3560);
        let pdu = phone.nas_pdu(world.downlinks.pop_front().unwrap().1).unwrap();
        assert_eq!(pdu[1], SecurityHeaderType::IntegrityProtectedWithNewContext.code());
        assert!(seen.insert(pdu[6]), "a COUNT was used twice");
        phone.security.as_mut().unwrap().unprotect(&pdu).unwrap();
    }
    world.expire(Timer::T3560);
    phone.released(&mut world);
    world.assert_empty();
}

#[test]
fn a_complete_with_a_wrong_mac_is_discarded() {
    let (mut world, mut phone, request, _) = commanded();
    let mut complete = phone.security_mode_complete(request);
    complete[3] ^= 1;
    world.take_ladder();
    phone.send_pdu(&mut world, complete.clone());
    assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport");
    complete[3] ^= 1;
    phone.send_pdu(&mut world, complete);
    phone.accepted(&mut world);
}

#[test]
fn only_a_message_protected_with_the_new_keys_takes_them_into_use() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    phone.capability = UeSecurityCapability::of_5gs(0xf0, 0xf0);
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    phone.send(&mut world, request.clone());
    let GmmMessage::AuthenticationRequest(_) = phone.receive(&mut world) else { panic!("new capabilities") };
    phone.send(&mut world, Phone::authentication_response());
    let old = phone.security.take();
    let GmmMessage::SecurityModeCommand(_) = phone.receive(&mut world) else { panic!() };
    let new = std::mem::replace(&mut phone.security, old);
    world.take_ladder();
    for header in [SecurityHeaderType::IntegrityProtected, SecurityHeaderType::IntegrityProtectedAndCiphered]
    {
        let complete = phone.protect(header, pith_nas::gmm::SecurityModeComplete::new());
        phone.send_pdu(&mut world, complete);
        assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport", "{header:?}");
    }
    phone.security = new;
    let wrong = phone.protect(
        SecurityHeaderType::IntegrityProtectedAndCipheredWithNewContext,
        super::world::establishment(5),
    );
    phone.send_pdu(&mut world, wrong);
    assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport", "no other message has that header");
    let complete = phone.security_mode_complete(request);
    phone.send_pdu(&mut world, complete);
    phone.accepted(&mut world);
}
