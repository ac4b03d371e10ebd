//! Identification (TS 24.501 5.4.3).

use super::world::{Phone, World, config};
use crate::kit::Timer;
use pith_nas::gmm::IdentityResponse;
use pith_nas::ie::{IdentityType, MobileIdentity, NgKsi, RegistrationKind};
use pith_nas::{GmmCause, GmmMessage};
use pith_types::{FiveGGuti, FiveGTmsi, Guami};

/// A UE with an unknown 5G-GUTI that received IDENTITY REQUEST.
fn asked() -> (World, Phone) {
    let tmsi = FiveGTmsi::new(config().identity.blocks().next().unwrap(), 7);
    let guti = FiveGGuti { guami: config().guami, tmsi };
    asked_with(guti)
}

fn asked_with(guti: FiveGGuti) -> (World, Phone) {
    let (mut world, mut phone) = (World::new(), Phone { guti: Some(guti), ..Phone::default() });
    phone.ng_ksi = NgKsi::Native(3);
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    let GmmMessage::IdentityRequest(request) = phone.receive(&mut world) else { panic!() };
    assert_eq!(request.identity_type, IdentityType::Suci);
    (world, phone)
}

#[test]
fn an_unknown_guti_leads_to_identification_and_registration() {
    let (mut world, mut phone) = asked();
    phone.send(&mut world, IdentityResponse::new(Phone::suci()));
    let request = phone.registration_request(RegistrationKind::Initial);
    phone.authenticate(&mut world, request);
    assert_eq!(phone.ng_ksi, NgKsi::Native(4), "another one than the UE has");
    assert_eq!(world.amf.audit().registered, 1);
}

#[test]
fn a_guti_of_another_network_is_unknown() {
    let guami = Guami { plmn_id: "001/01".parse().unwrap(), ..config().guami };
    asked_with(FiveGGuti { guami, tmsi: FiveGTmsi(1) });
}

#[test]
fn case_b_t3570_retransmits_the_request_four_times_and_then_aborts() {
    let (mut world, mut phone) = asked();
    for _ in 0..4 {
        world.expire(Timer::T3570);
        assert!(matches!(phone.receive(&mut world), GmmMessage::IdentityRequest(_)));
    }
    world.expire(Timer::T3570);
    phone.released(&mut world);
    world.assert_empty();
}

#[test]
fn a_phone_that_has_no_identity_is_rejected() {
    let (mut world, mut phone) = asked();
    phone.send(&mut world, IdentityResponse::new(MobileIdentity::NoIdentity));
    let GmmMessage::RegistrationReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::IllegalUe);
    phone.released(&mut world);
    world.assert_empty();
}

/// TS 24.501 5.5.1.3.5 #9: the UE registers again.
#[test]
fn an_update_of_a_phone_without_context_and_identity_is_rejected_with_cause_9() {
    for kind in [RegistrationKind::MobilityUpdating, RegistrationKind::PeriodicUpdating] {
        let (mut world, mut phone) = (World::new(), asked().1);
        let request = phone.registration_request(kind);
        let nas = phone.initial_nas(request);
        phone.connect(&mut world, nas);
        let GmmMessage::IdentityRequest(_) = phone.receive(&mut world) else { panic!() };
        phone.send(&mut world, IdentityResponse::new(MobileIdentity::NoIdentity));
        let GmmMessage::RegistrationReject(reject) = phone.receive(&mut world) else { panic!() };
        assert_eq!(reject.cause, GmmCause::UeIdentityCannotBeDerivedByTheNetwork);
        phone.released(&mut world);
        world.assert_empty();
    }
}

#[test]
fn an_unprotected_equipment_identity_is_not_accepted() {
    let (mut world, mut phone) = asked();
    world.take_ladder();
    let imei = MobileIdentity::Imeisv("imeisv-4370816125816151".parse().unwrap());
    phone.send(&mut world, IdentityResponse::new(imei));
    assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport", "TS 24.501 4.4.4.3: ignored");
}
