//! Unprotected, wrongly protected or replayed messages (TS 24.501 4.4.4.3), and messages that can't
//! be decoded (clause 7).

use super::world::{GNB, Phone, World, establishment};
use pith_nas::gmm::{RegistrationComplete, ServiceRequest};
use pith_nas::ie::{MobileIdentity, NgKsi, RegistrationKind, ServiceType};
use pith_nas::{GmmCause, GmmMessage};
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
    phone.send(&mut world, RegistrationComplete::new());
    assert_eq!(world.take_ladder(), NOTHING);
    assert_eq!(world.amf.audit().registered, 1);
    assert_eq!(phone.gnb, GNB);
}
