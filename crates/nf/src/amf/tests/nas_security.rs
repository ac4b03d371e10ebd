//! Unprotected, wrongly protected or replayed messages (TS 24.501 4.4.4.3), and messages that can't
//! be decoded (clause 7).

use super::pdu_session::{message, sm_context_created};
use super::world::{GNB, NgapIe, Phone, World, establishment, problem, transfer};
use pith_nas::gmm::{GmmStatus, NotificationResponse, RegistrationComplete, ServiceRequest};
use pith_nas::ie::{MobileIdentity, NgKsi, RegistrationKind, ServiceType};
use pith_nas::{GmmCause, GmmMessage, NasCount, SecurityHeaderType};
use pith_sbi::{Cause, Operation};
use pith_types::RanUeNgapId;

fn registered() -> (World, Phone) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    world.take_ladder();
    (world, phone)
}

const NOTHING: &str = "gnb1 -> UplinkNasTransport";

#[test]
fn a_replayed_message_is_discarded() {
    let (mut world, mut phone) = registered();
    let nas = phone.nas(establishment(5));
    phone.send_pdu(&mut world, nas.clone());
    world.take_ladder();
    phone.send_pdu(&mut world, nas);
    assert_eq!(world.take_ladder(), NOTHING);
}

#[test]
fn a_plain_message_is_discarded_once_there_are_keys() {
    let (mut world, mut phone) = registered();
    for message in [
        GmmMessage::from(establishment(5)),
        phone.registration_request(RegistrationKind::Initial).into(),
        phone.deregistration_request(false).into(),
    ] {
        phone.send_pdu(&mut world, message.encode());
        assert_eq!(world.take_ladder(), NOTHING);
    }
    assert_eq!(world.amf.audit().registered, 1);
}

#[test]
fn a_message_with_a_wrong_mac_is_discarded_and_consumes_no_count() {
    let (mut world, mut phone) = registered();
    let good = phone.nas(establishment(5));
    let mut bad = good.clone();
    bad[2] ^= 0x80;
    phone.send_pdu(&mut world, bad);
    assert_eq!(world.take_ladder(), NOTHING);
    phone.send_pdu(&mut world, good);
    assert!(world.take_ladder().contains("PostSmContexts"));
}

#[test]
fn an_unverified_service_request_is_rejected_without_effect() {
    let (mut world, phone) = registered();
    let s_tmsi = MobileIdentity::FiveGSTmsi(phone.guti.unwrap().s_tmsi());
    let request = ServiceRequest::new(NgKsi::Native(0), ServiceType::Signalling, s_tmsi);
    let mut stranger = Phone { ran_id: RanUeNgapId(50), ..Phone::default() };
    let mut pdu = vec![0x7e, 1, 9, 9, 9, 9, 0];
    pdu.extend(GmmMessage::from(request).encode());
    stranger.connect(&mut world, pdu);
    let GmmMessage::ServiceReject(reject) = stranger.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::UeIdentityCannotBeDerivedByTheNetwork);
    stranger.released(&mut world);
    let audit = world.amf.audit();
    assert_eq!((audit.contexts, audit.registered, audit.connected), (1, 1, 1));
}

#[test]
fn an_unverified_deregistration_has_no_effect() {
    let (mut world, phone) = registered();
    let mut stranger = Phone { guti: phone.guti, ran_id: RanUeNgapId(50), ..Phone::default() };
    let request = stranger.deregistration_request(true);
    let nas = stranger.initial_nas(request);
    stranger.connect(&mut world, nas);
    stranger.released(&mut world);
    assert_eq!(world.amf.audit().registered, 1);
}

#[test]
fn malformed_nas_gets_no_answer_and_leaves_no_state() {
    for pdu in [
        vec![],
        vec![0x7e],
        vec![0x7e, 0],
        vec![0x2e, 1, 2, 3],
        vec![0xff; 40],
        vec![0x7e, 4, 0, 0, 0, 0, 0, 1],
    ] {
        let (mut world, mut phone) = (World::new(), Phone::default());
        phone.connect(&mut world, pdu);
        phone.released(&mut world);
        world.assert_empty();
    }
}

#[test]
fn a_request_without_a_mandatory_ie_is_rejected() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.connect(&mut world, vec![0x7e, 0, 0x41, 0x79]);
    let GmmMessage::RegistrationReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::InvalidMandatoryInformation);
    phone.released(&mut world);
    world.assert_empty();
}

#[test]
fn an_unknown_message_type_gets_a_status() {
    let (mut world, mut phone) = registered();
    let pdu = phone.security.as_mut().unwrap();
    let header = pith_nas::SecurityHeaderType::IntegrityProtectedAndCiphered;
    let pdu = pdu.protect(header, &[0x7e, 0, 0x7f]).unwrap();
    phone.send_pdu(&mut world, pdu);
    let GmmMessage::GmmStatus(status) = phone.receive(&mut world) else { panic!() };
    assert_eq!(status.cause, GmmCause::MessageTypeNonExistentOrNotImplemented);
}

#[test]
fn an_unexpected_message_changes_nothing() {
    let (mut world, mut phone) = registered();
    for message in [
        GmmMessage::from(RegistrationComplete::new()),
        NotificationResponse::new().into(),
        GmmStatus::new(GmmCause::ProtocolErrorUnspecified).into(),
    ] {
        phone.send(&mut world, message);
        assert_eq!(world.take_ladder(), NOTHING);
    }
    assert_eq!(world.amf.audit().registered, 1);
    assert_eq!(phone.gnb, GNB);
}

/// CIoT optimisations are not supported, and no UE learns that they were.
#[test]
fn a_control_plane_service_request_gets_a_status() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.connect(&mut world, vec![0x7e, 0, 0x4f, 0]);
    let GmmMessage::GmmStatus(status) = phone.receive(&mut world) else { panic!() };
    assert_eq!(status.cause, GmmCause::MessageTypeNonExistentOrNotImplemented);
    phone.released(&mut world);
    world.assert_empty();
}

/// Sets the COUNTs of the UE and the AMF, uplink and downlink, to the next `uplink` and `downlink`.
fn set_counts(world: &mut World, phone: &mut Phone, uplink: u32, downlink: u32) {
    let next = |count| NasCount::new(count);
    let last = |count: u32| NasCount::new(count - 1);
    phone.security.as_mut().unwrap().resume(next(uplink), last(downlink));
    for ue in world.amf.ues.values_mut() {
        ue.security.as_mut().unwrap().nas.resume(next(downlink), last(uplink));
    }
}

/// COUNTs of which the last 2^16 are reserved for a new authentication.
const NEAR: u32 = 0xff_0000;

fn begin_reauthentication() -> (World, Phone) {
    let (mut world, mut phone) = registered();
    phone.establish(&mut world, 5);
    set_counts(&mut world, &mut phone, NEAR, 0x100);
    world.take_ladder();
    world.downlinks.clear();
    phone.send(&mut world, establishment(6));
    assert!(world.take_ladder().contains("Authenticate"));
    (world, phone)
}

#[test]
fn a_connected_ue_is_authenticated_before_its_uplink_count_wraps_around() {
    let (mut world, mut phone) = begin_reauthentication();
    let GmmMessage::AuthenticationRequest(challenge) = phone.receive(&mut world) else { panic!() };
    assert_ne!(challenge.ng_ksi, phone.ng_ksi, "the new key has another identifier");
    phone.send(&mut world, Phone::authentication_response());
    let GmmMessage::SecurityModeCommand(command) = phone.receive(&mut world) else { panic!() };
    let additional = command.additional_security_information.unwrap();
    assert!(!additional.retransmit_initial_nas_message);
    world.take_ladder();
    let header = pith_nas::SecurityHeaderType::IntegrityProtectedAndCipheredWithNewContext;
    let complete = phone.protect(header, pith_nas::gmm::SecurityModeComplete::new());
    phone.send_pdu(&mut world, complete);
    assert_eq!(
        world.take_ladder(),
        "gnb1 -> UplinkNasTransport\ngnb1 <- UeContextModificationRequest",
        "the gNB gets a new key, and the UE no other answer"
    );
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.sessions, audit.contexts), (1, 2, 1));
    let ue = world.amf.ues.values_mut().next().unwrap();
    assert!(!ue.security.as_ref().unwrap().nas.is_near_wrap(), "the COUNTs start again");
    phone.send(&mut world, establishment(7));
    assert!(!world.take_ladder().contains("Authenticate"));
    assert_eq!(world.amf.audit().sessions, 3, "messages under the new keys are accepted");
}

/// The UE may already discard what the former keys protect.
#[test]
fn a_setup_waits_for_the_end_of_an_authentication() {
    for is_aborted in [false, true] {
        let (mut world, mut phone) = registered();
        world.script.insert(Operation::PostSmContexts, None);
        phone.send(&mut world, establishment(5));
        world.request(transfer(5, Some(b"accept"), Some((NgapIe::PduResSetupReq, b"setup")))).unwrap();
        set_counts(&mut world, &mut phone, NEAR, 0x100);
        world.downlinks.clear();
        phone.send(&mut world, message(5, b"other"));
        let GmmMessage::AuthenticationRequest(_) = phone.receive(&mut world) else { panic!() };
        world.take_ladder();
        sm_context_created(&mut world);
        assert_eq!(world.take_ladder(), "smf  <- UpdateSmContext");
        if is_aborted {
            let request = phone.service_request(ServiceType::Signalling);
            phone.send(&mut world, request);
        } else {
            phone.send(&mut world, Phone::authentication_response());
            let GmmMessage::SecurityModeCommand(_) = phone.receive(&mut world) else { panic!() };
            let header = pith_nas::SecurityHeaderType::IntegrityProtectedAndCipheredWithNewContext;
            let complete = phone.protect(header, pith_nas::gmm::SecurityModeComplete::new());
            phone.send_pdu(&mut world, complete);
        }
        assert!(world.take_ladder().contains("PduSessionResourceSetupRequest"), "{is_aborted}");
    }
}

/// TS 24.501 5.4.2.7 c.
#[test]
fn a_service_request_aborts_an_authentication_for_new_keys() {
    let (mut world, mut phone) = begin_reauthentication();
    let GmmMessage::AuthenticationRequest(_) = phone.receive(&mut world) else { panic!() };
    let request = phone.service_request(ServiceType::Signalling);
    phone.send(&mut world, request);
    assert!(matches!(phone.receive(&mut world), GmmMessage::ServiceAccept(_)));
    assert_eq!(world.running(), []);
    world.take_ladder();
    phone.send(&mut world, Phone::authentication_response());
    assert_eq!(world.take_ladder(), NOTHING, "an answer that crosses it is late");
}

/// The UE has got SECURITY MODE COMMAND after its request: it reads only what is protected with the new keys.
#[test]
fn a_service_request_during_security_mode_control_is_answered_under_the_new_keys() {
    let (mut world, mut phone) = begin_reauthentication();
    let GmmMessage::AuthenticationRequest(_) = phone.receive(&mut world) else { panic!() };
    phone.send(&mut world, Phone::authentication_response());
    let mut request = phone.service_request(ServiceType::Signalling);
    request.pdu_session_status = Some([5].into_iter().collect());
    world.take_ladder();
    phone.send(&mut world, request);
    assert_eq!(world.take_ladder(), NOTHING);
    let GmmMessage::SecurityModeCommand(_) = phone.receive(&mut world) else { panic!() };
    let header = pith_nas::SecurityHeaderType::IntegrityProtectedAndCipheredWithNewContext;
    let complete = phone.protect(header, pith_nas::gmm::SecurityModeComplete::new());
    phone.send_pdu(&mut world, complete);
    let GmmMessage::ServiceAccept(accept) = phone.receive(&mut world) else { panic!() };
    assert_eq!(accept.pdu_session_status.unwrap().iter().collect::<Vec<_>>(), [5], "6 is not in the request");
    assert_eq!((world.amf.audit().in_procedure, world.running()), (0, vec![]));
}

#[test]
fn a_source_gnb_gets_the_new_key_when_the_handover_is_over_that_held_it_back() {
    let (mut world, mut phone) = begin_reauthentication();
    let GmmMessage::AuthenticationRequest(_) = phone.receive(&mut world) else { panic!() };
    world.script.insert(Operation::UpdateSmContext, None);
    super::n2_handover::require(&mut world, &phone, &[5]);
    phone.send(&mut world, Phone::authentication_response());
    let GmmMessage::SecurityModeCommand(_) = phone.receive(&mut world) else { panic!() };
    let header = pith_nas::SecurityHeaderType::IntegrityProtectedAndCipheredWithNewContext;
    let complete = phone.protect(header, pith_nas::gmm::SecurityModeComplete::new());
    world.take_ladder();
    phone.send_pdu(&mut world, complete);
    assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport", "no new key during the handover");
    let (amf_ue_ngap_id, ran_ue_ngap_id) = (phone.amf_id.unwrap(), phone.ran_id);
    let cancel = pith_ngap::HandoverCancel { amf_ue_ngap_id, ran_ue_ngap_id, cause: None };
    world.ngap(phone.gnb, "HandoverCancel", cancel.encode());
    let ladder = world.take_ladder();
    assert_eq!(ladder.matches("gnb1 <- UeContextModificationRequest").count(), 1, "{ladder}");
}

#[test]
fn a_downlink_count_near_its_end_begins_an_authentication_too() {
    let (mut world, mut phone) = registered();
    phone.establish(&mut world, 5);
    set_counts(&mut world, &mut phone, 0x100, NEAR);
    world.take_ladder();
    world.request(super::world::transfer(5, Some(b"modify"), None)).unwrap();
    assert!(world.take_ladder().contains("Authenticate"));
}

#[test]
fn a_service_request_near_the_end_is_accepted_and_then_the_ue_is_authenticated() {
    let (mut world, mut phone) = registered();
    phone.release(&mut world);
    set_counts(&mut world, &mut phone, NEAR, NEAR);
    let request = phone.service_request(ServiceType::Signalling);
    let nas = phone.initial_nas(request);
    world.downlinks.clear();
    phone.connect(&mut world, nas);
    assert!(matches!(phone.receive(&mut world), GmmMessage::ServiceAccept(_)));
    assert!(matches!(phone.receive(&mut world), GmmMessage::AuthenticationRequest(_)));
}

#[test]
fn a_home_network_that_fails_leaves_the_ue_registered_and_is_asked_again_later() {
    let (mut world, mut phone) = registered();
    set_counts(&mut world, &mut phone, NEAR, 0x100);
    world.script.insert(Operation::Authenticate, problem(Cause::SystemFailure));
    world.take_ladder();
    phone.send(&mut world, establishment(5));
    phone.send(&mut world, establishment(6));
    let ladder = world.take_ladder();
    assert_eq!(ladder.matches("Authenticate").count(), 1, "{ladder}");
    assert_eq!((world.amf.audit().registered, world.amf.audit().connected), (1, 1));
    world.now = world.now + crate::kit::Duration::from_secs(60);
    phone.send(&mut world, establishment(7));
    assert!(world.take_ladder().contains("Authenticate"));
}

#[test]
fn a_ue_that_does_not_answer_the_new_challenge_loses_its_connection_and_stays_registered() {
    let (mut world, mut phone) = begin_reauthentication();
    (0..5).for_each(|_| world.expire(crate::kit::Timer::T3560));
    phone.released(&mut world);
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.connected), (1, 0));
}

#[test]
fn no_count_is_used_again_when_they_are_exhausted() {
    let (mut world, mut phone) = registered();
    world.script.insert(Operation::Authenticate, problem(Cause::SystemFailure));
    phone.establish(&mut world, 5);
    set_counts(&mut world, &mut phone, 0x100, NasCount::MAX.value());
    world.downlinks.clear();
    world.request(super::world::transfer(5, Some(b"the last"), None)).unwrap();
    assert!(matches!(phone.receive(&mut world), GmmMessage::DlNasTransport(_)));
    phone.released(&mut world);
    world.assert_empty();
}

/// TS 24.501 4.4.5, table 9.3.1: only initial NAS messages are not ciphered.
#[test]
fn a_message_that_is_not_ciphered_is_discarded() {
    let (mut world, mut phone) = registered();
    for header in
        [SecurityHeaderType::IntegrityProtected, SecurityHeaderType::IntegrityProtectedWithNewContext]
    {
        let nas = phone.protect(header, establishment(5));
        phone.send_pdu(&mut world, nas);
        assert_eq!(world.take_ladder(), NOTHING);
    }
    let request = phone.deregistration_request(false);
    let nas = phone.protect(SecurityHeaderType::IntegrityProtectedWithNewContext, request);
    phone.send_pdu(&mut world, nas);
    assert_eq!(world.take_ladder(), NOTHING);
    phone.send(&mut world, establishment(5));
    assert!(world.take_ladder().contains("PostSmContexts"));
}

/// A UE that sends its requests as initial NAS messages also while it is connected.
#[test]
fn an_initial_nas_message_over_an_established_connection_may_be_unciphered() {
    let (mut world, mut phone) = registered();
    let request = phone.registration_request(RegistrationKind::PeriodicUpdating);
    let nas = phone.initial_nas(request);
    phone.send_pdu(&mut world, nas);
    assert!(matches!(phone.receive(&mut world), GmmMessage::RegistrationAccept(_)));
}
