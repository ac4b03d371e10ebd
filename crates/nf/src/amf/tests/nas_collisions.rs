//! A request of the UE crosses a procedure of the network, or replaces the one in progress (TS 24.501 5.4.1.3.7, 5.4.2.7, 5.4.3.6, 5.4.4.6,
//! 5.5.1.2.8, 5.5.2.3.5, 5.6.2.2.2).

use super::deregistration::notified;
use super::paging::{comes, data};
use super::world::{Phone, World, transfer};
use crate::kit::Timer;
use pith_nas::gmm::{ConfigurationUpdateComplete, IdentityResponse, RegistrationComplete};
use pith_nas::ie::{NgKsi, RegistrationKind, ServiceType};
use pith_nas::{GmmMessage, gmm};
use pith_sbi::Operation;
use pith_types::{FiveGGuti, FiveGTmsi};

const NOTHING: &str = "gnb1 -> UplinkNasTransport";

/// A UE with a session in CM-CONNECTED.
fn registered() -> (World, Phone) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    world.take_ladder();
    (world, phone)
}

/// A new UE, and its request.
fn begins(mut phone: Phone) -> (World, Phone, gmm::RegistrationRequest) {
    let mut world = World::new();
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request.clone());
    phone.connect(&mut world, nas);
    (world, phone, request)
}

/// It has received AUTHENTICATION REQUEST.
fn challenged() -> (World, Phone, gmm::RegistrationRequest) {
    let (mut world, mut phone, request) = begins(Phone::default());
    let GmmMessage::AuthenticationRequest(_) = phone.receive(&mut world) else { panic!() };
    world.take_ladder();
    (world, phone, request)
}

/// It has not received the SECURITY MODE COMMAND that was sent.
fn commanded() -> (World, Phone, gmm::RegistrationRequest) {
    let (mut world, mut phone, request) = challenged();
    phone.send(&mut world, Phone::authentication_response());
    world.take_ladder();
    (world, phone, request)
}

/// It has received IDENTITY REQUEST.
fn asked() -> (World, Phone, gmm::RegistrationRequest) {
    let config = super::world::config();
    let tmsi = FiveGTmsi::new(config.identity.blocks().next().unwrap(), 7);
    let guti = Some(FiveGGuti { guami: config.guami, tmsi });
    let phone = Phone { guti, ng_ksi: NgKsi::Native(3), ..Phone::default() };
    let (mut world, mut phone, request) = begins(phone);
    let GmmMessage::IdentityRequest(_) = phone.receive(&mut world) else { panic!() };
    world.take_ladder();
    (world, phone, request)
}

/// A UE that is to confirm its new 5G-GUTI in CONFIGURATION UPDATE COMPLETE. Its session has no user plane.
fn updated() -> (World, Phone) {
    let (mut world, mut phone) = registered();
    phone.release(&mut world);
    world.request(transfer(5, Some(b"modify"), None)).unwrap();
    world.downlinks.clear();
    comes(&mut world, &mut phone);
    let GmmMessage::ServiceAccept(_) = phone.receive(&mut world) else { panic!() };
    phone.context_setup_response(&mut world, &[]);
    let GmmMessage::DlNasTransport(_) = phone.receive(&mut world) else { panic!() };
    let GmmMessage::ConfigurationUpdateCommand(command) = phone.receive(&mut world) else { panic!() };
    assert!(command.guti.is_some());
    world.take_ladder();
    (world, phone)
}

/// TS 24.501 5.5.2.3.5 c: both procedures are complete.
#[test]
fn a_deregistration_of_the_phone_ends_that_of_the_network() {
    for switch_off in [false, true] {
        let (mut world, mut phone) = registered();
        notified(&mut world, "REREGISTRATION_REQUIRED");
        let GmmMessage::DeregistrationRequestUeTerminated(_) = phone.receive(&mut world) else { panic!() };
        world.take_ladder();
        let request = phone.deregistration_request(switch_off);
        phone.send(&mut world, request);
        let ladder = world.take_ladder();
        assert_eq!(ladder.contains("DownlinkNasTransport"), !switch_off, "{ladder}");
        if !switch_off {
            let accept = phone.receive(&mut world);
            assert!(matches!(accept, GmmMessage::DeregistrationAcceptUeOriginating(_)), "{accept:?}");
        }
        assert_eq!(world.amf.audit().sessions, 0);
        phone.released(&mut world);
        world.assert_empty();
    }
}

#[test]
fn a_phone_deregisters_in_each_procedure_of_its_registration() {
    for begin in [challenged, commanded, asked] {
        for switch_off in [false, true] {
            let (mut world, mut phone, _) = begin();
            world.downlinks.clear();
            let request = phone.deregistration_request(switch_off);
            phone.send(&mut world, request);
            if !switch_off {
                let accept = phone.receive(&mut world);
                assert!(matches!(accept, GmmMessage::DeregistrationAcceptUeOriginating(_)), "{accept:?}");
            }
            phone.released(&mut world);
            world.assert_empty();
        }
    }
}

#[test]
fn a_phone_deregisters_before_it_confirms_its_registration() {
    let (mut world, mut phone, request) = begins(Phone::default());
    phone.authenticate(&mut world, request);
    phone.context_setup_response(&mut world, &[]);
    assert_eq!(world.running(), [Timer::T3550]);
    let request = phone.deregistration_request(false);
    phone.send(&mut world, request);
    assert!(matches!(phone.receive(&mut world), GmmMessage::DeregistrationAcceptUeOriginating(_)));
    phone.released(&mut world);
    world.assert_empty();
}

/// TS 24.501 5.4.4.6 c.
#[test]
fn a_deregistration_ends_a_configuration_update() {
    let (mut world, mut phone) = updated();
    assert_eq!(world.running(), [Timer::T3555]);
    let request = phone.deregistration_request(true);
    phone.send(&mut world, request);
    phone.released(&mut world);
    world.assert_empty();
}

/// TS 24.501 5.4.4.6 d: the registration takes place.
#[test]
fn a_registration_update_ends_a_configuration_update() {
    let (mut world, mut phone) = updated();
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    phone.send(&mut world, request);
    phone.accepted(&mut world);
    assert_eq!(world.running(), [Timer::T3550]);
    phone.send(&mut world, ConfigurationUpdateComplete::new());
    assert_eq!(world.running(), [Timer::T3550], "a confirmation that crosses it counts for nothing");
    phone.send(&mut world, RegistrationComplete::new());
    assert_eq!((world.amf.audit().tmsis, world.running()), (1, vec![]));
}

/// TS 24.501 5.4.4.6 e: both procedures take place.
#[test]
fn a_service_request_does_not_end_a_configuration_update() {
    let (mut world, mut phone) = updated();
    let request = phone.service_request(ServiceType::Signalling);
    phone.send(&mut world, request);
    assert!(matches!(phone.receive(&mut world), GmmMessage::ServiceAccept(_)));
    world.expire(Timer::T3555);
    assert!(matches!(phone.receive(&mut world), GmmMessage::ConfigurationUpdateCommand(_)));
    assert_eq!(world.amf.audit().tmsis, 2);
    phone.send(&mut world, ConfigurationUpdateComplete::new());
    assert_eq!((world.amf.audit().tmsis, world.running()), (1, vec![]));
    assert_eq!(world.amf.audit().in_procedure, 0);
}

#[test]
fn a_configuration_update_goes_on_while_a_user_plane_is_activated() {
    for confirms in [true, false] {
        let (mut world, mut phone) = updated();
        world.script.insert(Operation::UpdateSmContext, None);
        let mut request = phone.service_request(ServiceType::Data);
        request.uplink_data_status = Some([5].into_iter().collect());
        phone.send(&mut world, request);
        assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport\nsmf  <- UpdateSmContext");
        if confirms {
            phone.send(&mut world, ConfigurationUpdateComplete::new());
            assert_eq!((world.amf.audit().tmsis, world.running()), (1, vec![]));
        } else {
            for _ in 0..4 {
                world.expire(Timer::T3555);
                assert!(matches!(phone.receive(&mut world), GmmMessage::ConfigurationUpdateCommand(_)));
            }
            world.expire(Timer::T3555);
            assert_eq!((world.amf.audit().tmsis, world.running()), (2, vec![]), "both stay valid");
        }
        let usual = world.usual(&world.calls[0].2.clone());
        world.reply_to(Operation::UpdateSmContext, usual);
        assert!(matches!(phone.receive(&mut world), GmmMessage::ServiceAccept(_)));
        assert_eq!(world.amf.audit().in_procedure, 0);
    }
}

#[test]
fn a_lost_connection_ends_a_configuration_update_beside_a_service_request() {
    let (mut world, mut phone) = updated();
    world.script.insert(Operation::UpdateSmContext, None);
    let mut request = phone.service_request(ServiceType::Data);
    request.uplink_data_status = Some([5].into_iter().collect());
    phone.send(&mut world, request);
    phone.release(&mut world);
    assert_eq!((world.amf.audit().in_procedure, world.amf.audit().tmsis), (0, 2));
    assert_eq!(world.running(), [Timer::MobileReachable]);
}

/// TS 24.501 5.4.2.7 a, 5.4.3.6 a: the registration is aborted.
#[test]
fn a_lost_connection_ends_each_procedure_of_a_registration() {
    for begin in [challenged, commanded, asked] {
        let (mut world, mut phone, _) = begin();
        world.downlinks.clear();
        phone.release(&mut world);
        world.assert_empty();
    }
}

/// TS 24.501 5.4.2.7 c, 5.4.3.6 c to e.
#[test]
fn the_same_registration_request_continues_and_another_one_begins_again() {
    type Begin = fn() -> (World, Phone, gmm::RegistrationRequest);
    let cases: [(Begin, &str); 2] = [(commanded, "SecurityModeCommand"), (asked, "IdentityRequest")];
    for (begin, name) in cases {
        let (mut world, mut phone, request) = begin();
        phone.send(&mut world, request.clone());
        assert_eq!(world.take_ladder(), NOTHING, "{name} stays valid");
        let mut other = request;
        other.registration_type.follow_on_request = true;
        world.downlinks.clear();
        phone.send(&mut world, other.clone());
        match phone.receive(&mut world) {
            GmmMessage::IdentityRequest(_) if name == "IdentityRequest" => {
                phone.send(&mut world, IdentityResponse::new(Phone::suci()));
                phone.authenticate(&mut world, other);
            }
            GmmMessage::AuthenticationRequest(_) if name == "SecurityModeCommand" => {
                phone.send(&mut world, Phone::authentication_response());
                let GmmMessage::SecurityModeCommand(_) = phone.receive(&mut world) else { panic!() };
                let complete = phone.security_mode_complete(other);
                phone.send_pdu(&mut world, complete);
                phone.accepted(&mut world);
            }
            unexpected => panic!("{name}: {unexpected:?}"),
        }
        assert_eq!((world.amf.audit().registered, world.amf.audit().contexts), (1, 1));
    }
}

/// TS 24.501 5.5.1.2.8 c.
#[test]
fn t3550_of_an_initial_registration_leaves_the_phone_registered() {
    let (mut world, mut phone, request) = begins(Phone::default());
    phone.authenticate(&mut world, request);
    phone.context_setup_response(&mut world, &[]);
    for _ in 0..4 {
        world.expire(Timer::T3550);
        phone.accepted(&mut world);
    }
    world.expire(Timer::T3550);
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.in_procedure, audit.tmsis), (1, 0, 1));
    assert!(world.downlinks.is_empty());
}

/// TS 24.501 5.5.1.2.8 a.
#[test]
fn a_connection_lost_before_the_complete_leaves_the_phone_registered() {
    let (mut world, mut phone, request) = begins(Phone::default());
    phone.authenticate(&mut world, request);
    phone.context_setup_response(&mut world, &[]);
    phone.release(&mut world);
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.in_procedure, audit.tmsis), (1, 0, 1));
    assert_eq!(world.running(), [Timer::MobileReachable]);
    let request = phone.service_request(ServiceType::Signalling);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    assert!(matches!(phone.receive(&mut world), GmmMessage::ServiceAccept(_)));
}

/// TS 24.501 5.6.2.2.2: the UE was about to register when it was paged.
#[test]
fn a_registration_update_ends_paging() {
    let (mut world, mut phone) = registered();
    phone.release(&mut world);
    data(&mut world);
    world.downlinks.clear();
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    assert!(!world.running().contains(&Timer::T3513));
    phone.accepted(&mut world);
    phone.context_setup_response(&mut world, &[]);
    let ladder = world.take_ladder();
    assert_eq!(ladder.matches("gnb1 <- PduSessionResourceSetupRequest").count(), 1, "for the data: {ladder}");
    assert_eq!(world.amf.audit().undelivered, 0);
}
