//! Requests that a UE repeats (TS 24.501 5.5.1.2.8 d and e, 5.6.1.8).

use super::world::{Phone, World, problem, subscription};
use crate::kit::Timer;
use pith_nas::gmm::{RegistrationComplete, RegistrationRequest};
use pith_nas::ie::{RegistrationKind, ServiceType};
use pith_nas::{GmmCause, GmmMessage};
use pith_sbi::{Operation, Response};

/// A UE that has got REGISTRATION ACCEPT, and its request.
fn accepted() -> (World, Phone, RegistrationRequest) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request.clone());
    phone.connect(&mut world, nas);
    phone.authenticate(&mut world, request.clone());
    phone.context_setup_response(&mut world, &[]);
    world.take_ladder();
    (world, phone, request)
}

/// A UE in CM-CONNECTED with a session that has no user plane.
fn connected() -> (World, Phone) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    phone.release(&mut world);
    let request = phone.service_request(ServiceType::Signalling);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    phone.receive(&mut world);
    phone.context_setup_response(&mut world, &[]);
    world.take_ladder();
    (world, phone)
}

const NOTHING: &str = "gnb1 -> UplinkNasTransport";
const ONE_MESSAGE: &str = "gnb1 -> UplinkNasTransport\ngnb1 <- DownlinkNasTransport";

#[test]
fn a_repeated_request_after_the_accept_gets_the_same_accept() {
    let (mut world, mut phone, request) = accepted();
    let guti = phone.guti;
    for _ in 0..3 {
        world.expire(Timer::T3550);
        phone.accepted(&mut world);
    }
    world.take_ladder();
    phone.send(&mut world, request);
    assert_eq!(world.take_ladder(), ONE_MESSAGE);
    phone.accepted(&mut world);
    assert_eq!((phone.guti, world.amf.audit().tmsis), (guti, 1), "the same 5G-GUTI");
    assert_eq!(world.running(), [Timer::T3550]);
    // The accept that answers the request counts as no retransmission: one is left.
    world.expire(Timer::T3550);
    phone.accepted(&mut world);
    world.expire(Timer::T3550);
    assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
    assert_eq!(world.running(), []);
}

#[test]
fn another_request_after_the_accept_begins_again() {
    let (mut world, mut phone, mut request) = accepted();
    let guti = phone.guti;
    request.registration_type.follow_on_request = true;
    phone.send(&mut world, request);
    phone.accepted(&mut world);
    assert_ne!(phone.guti, guti);
    phone.send(&mut world, RegistrationComplete::new());
    assert_eq!((world.amf.audit().tmsis, world.amf.audit().in_procedure), (1, 0));
}

#[test]
fn a_request_after_the_complete_begins_another_registration() {
    let (mut world, mut phone, request) = accepted();
    let guti = phone.guti;
    phone.send(&mut world, RegistrationComplete::new());
    phone.send(&mut world, request);
    phone.accepted(&mut world);
    assert_ne!(phone.guti, guti);
}

/// The container is ciphered with another COUNT each time.
#[test]
fn a_repeated_update_is_known_by_the_request_in_its_container() {
    let (mut world, mut phone) = connected();
    let mut whole = phone.registration_request(RegistrationKind::MobilityUpdating);
    whole.pdu_session_status = Some([5].into_iter().collect());
    let with_container = |phone: &Phone| {
        let mut container = GmmMessage::from(whole.clone()).encode();
        phone.security.as_ref().unwrap().cipher_container(&mut container).unwrap();
        let mut request = whole.clone();
        (request.pdu_session_status, request.nas_message_container) = (None, Some(container));
        request
    };
    let (mut first, guti) = (with_container(&phone), phone.guti);
    phone.send(&mut world, first.clone());
    phone.accepted(&mut world);
    let renewed = phone.guti;
    assert_ne!(renewed, guti);
    let again = with_container(&phone);
    assert_ne!(again.nas_message_container, first.nas_message_container);
    world.take_ladder();
    phone.send(&mut world, again);
    assert_eq!(world.take_ladder(), ONE_MESSAGE);
    phone.accepted(&mut world);
    assert_eq!(phone.guti, renewed);
    first.nas_message_container = None;
    phone.send(&mut world, first);
    phone.accepted(&mut world);
    assert_ne!(phone.guti, renewed, "without the session status it is another request");
}

/// TS 24.501 5.5.1.2.8 e: also after security mode control.
#[test]
fn a_repeated_request_while_the_udm_is_asked_changes_nothing() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    world.script.insert(Operation::GetDataSets, None);
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request.clone());
    phone.connect(&mut world, nas);
    phone.secure(&mut world, request.clone());
    world.take_ladder();
    phone.send(&mut world, request.clone());
    assert_eq!(world.take_ladder(), NOTHING);
    let data = Response::SubscriptionDataSets(Box::new(subscription(&[1])));
    world.reply_to(Operation::GetDataSets, Ok(data));
    phone.accepted(&mut world);
    assert_eq!(world.amf.audit().registered, 1);
}

#[test]
fn another_request_while_the_udm_is_asked_begins_again() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    world.script.insert(Operation::GetDataSets, None);
    let mut request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request.clone());
    phone.connect(&mut world, nas);
    phone.secure(&mut world, request.clone());
    world.script.clear();
    world.script.insert(Operation::ThreeGppRegistration, problem(pith_sbi::Cause::RoamingNotAllowed));
    request.registration_type.follow_on_request = true;
    phone.send(&mut world, request);
    let GmmMessage::RegistrationReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::PlmnNotAllowed, "#11");
}

#[test]
fn a_repeated_service_request_does_not_begin_again() {
    let (mut world, mut phone) = connected();
    world.script.insert(Operation::UpdateSmContext, None);
    let mut request = phone.service_request(ServiceType::Data);
    request.uplink_data_status = Some([5].into_iter().collect());
    phone.send(&mut world, request.clone());
    assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport\nsmf  <- UpdateSmContext");
    phone.send(&mut world, request);
    assert_eq!(world.take_ladder(), NOTHING, "the SMF is not asked again");
    let usual = world.usual(&world.calls[0].2.clone());
    world.reply_to(Operation::UpdateSmContext, usual);
    assert!(matches!(phone.receive(&mut world), GmmMessage::ServiceAccept(_)));
    assert!(world.downlinks.is_empty(), "one answer: {:?}", world.downlinks);
    assert_eq!(world.amf.audit().in_procedure, 0);
}

#[test]
fn another_service_request_begins_again() {
    let (mut world, mut phone) = connected();
    world.script.insert(Operation::UpdateSmContext, None);
    let mut request = phone.service_request(ServiceType::Data);
    request.uplink_data_status = Some([5].into_iter().collect());
    phone.send(&mut world, request);
    world.take_ladder();
    let request = phone.service_request(ServiceType::Signalling);
    phone.send(&mut world, request);
    assert_eq!(world.take_ladder(), ONE_MESSAGE, "without user plane it is answered at once");
    assert!(matches!(phone.receive(&mut world), GmmMessage::ServiceAccept(_)));
}
