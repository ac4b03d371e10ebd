//! Registration with a 5G-GUTI that is known here (TS 24.501 5.5.1.3, and 5.5.1.2 with a native
//! security context).

use super::world::{OTHER_GNB, Phone, World, config, establishment, transfer};
use crate::kit::Timer;
use pith_nas::gmm::{IdentityResponse, RegistrationComplete, RegistrationRequest};
use pith_nas::ie::{MobileIdentity, RegistrationKind, UeSecurityCapability, UeStatus};
use pith_nas::{GmmCause, GmmMessage};
use pith_ngap::Message;
use pith_types::{FiveGGuti, FiveGTmsi, Guami};

/// A UE that is registered and in CM-IDLE, with a session.
fn idle() -> (World, Phone) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    phone.release(&mut world);
    world.take_ladder();
    (world, phone)
}

fn comes(world: &mut World, phone: &mut Phone, request: RegistrationRequest) {
    let nas = phone.initial_nas(request);
    phone.connect(world, nas);
}

#[test]
fn a_known_guti_that_passes_the_integrity_check_needs_no_authentication() {
    let (mut world, mut phone) = idle();
    let before = phone.guti;
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    comes(&mut world, &mut phone, request);
    assert_eq!(world.take_ladder(), "gnb1 -> InitialUeMessage\ngnb1 <- InitialContextSetupRequest");
    phone.accepted(&mut world);
    assert_ne!(phone.guti, before);
    assert_eq!(world.amf.audit().tmsis, 2, "both hold until the UE confirms");
    phone.send(&mut world, RegistrationComplete::new());
    assert_eq!(world.amf.audit().tmsis, 1);
    assert_eq!(world.amf.audit().sessions, 1);
}

/// A 5G-GUTI that a UE has mapped from its 4G-GUTI (TS 23.003 2.10.2.2).
fn mapped_from_eps() -> MobileIdentity {
    let guami = Guami { amf_id: "800101".parse().unwrap(), ..config().guami };
    MobileIdentity::FiveGGuti(FiveGGuti { guami, tmsi: FiveGTmsi(0xc000_0001) })
}

/// TS 24.501 5.5.1.3.2, TS 23.502 4.11.2.3.
#[test]
fn a_phone_that_comes_back_from_eps_is_known_by_its_native_guti() {
    let (mut world, mut phone) = idle();
    let mut request = phone.registration_request(RegistrationKind::MobilityUpdating);
    request.additional_guti = Some(std::mem::replace(&mut request.mobile_identity, mapped_from_eps()));
    request.ue_status = Some(UeStatus { registered_in_epc: true, ..UeStatus::default() });
    request.eps_nas_message_container = Some(vec![0x07, 0x48, 0]);
    comes(&mut world, &mut phone, request);
    assert_eq!(world.take_ladder(), "gnb1 -> InitialUeMessage\ngnb1 <- InitialContextSetupRequest");
    phone.accepted(&mut world);
    phone.send(&mut world, RegistrationComplete::new());
    assert_eq!((world.amf.audit().tmsis, world.amf.audit().sessions), (1, 1));
}

/// There is no N26: the MME is not requested for the context (TS 23.502 4.11.2.3).
#[test]
fn a_phone_that_comes_from_eps_for_the_first_time_is_identified_and_authenticated() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    let mut request = phone.registration_request(RegistrationKind::MobilityUpdating);
    request.mobile_identity = mapped_from_eps();
    request.ue_status = Some(UeStatus { registered_in_epc: true, ..UeStatus::default() });
    let nas = phone.initial_nas(request.clone());
    phone.connect(&mut world, nas);
    assert!(matches!(phone.receive(&mut world), GmmMessage::IdentityRequest(_)));
    phone.send(&mut world, IdentityResponse::new(Phone::suci()));
    phone.authenticate(&mut world, request);
    assert_eq!(world.amf.audit().registered, 1);
}

#[test]
fn a_periodic_update_allocates_no_guti_and_needs_no_complete() {
    let (mut world, mut phone) = idle();
    assert_eq!(world.running(), [Timer::MobileReachable]);
    let before = phone.guti;
    let request = phone.registration_request(RegistrationKind::PeriodicUpdating);
    comes(&mut world, &mut phone, request);
    let accept = phone.accepted(&mut world);
    assert_eq!((accept.guti, phone.guti), (None, before));
    let audit = world.amf.audit();
    assert_eq!((audit.in_procedure, audit.timers, audit.tmsis), (0, 0, 1));
}

#[test]
fn an_initial_registration_with_a_known_guti_ends_earlier_sessions() {
    let (mut world, mut phone) = idle();
    let request = phone.registration_request(RegistrationKind::Initial);
    comes(&mut world, &mut phone, request);
    assert_eq!(
        world.take_ladder(),
        "\
gnb1 -> InitialUeMessage
gnb1 <- InitialContextSetupRequest
smf  <- ReleaseSmContext"
    );
    assert_eq!(world.amf.audit().sessions, 0);
}

#[test]
fn uplink_data_status_activates_the_user_plane_with_the_accept() {
    let (mut world, mut phone) = idle();
    let mut request = phone.registration_request(RegistrationKind::MobilityUpdating);
    request.uplink_data_status = Some([5, 6].into_iter().collect());
    request.pdu_session_status = Some([5, 6].into_iter().collect());
    comes(&mut world, &mut phone, request);
    let Message::InitialContextSetupRequest(setup) = world.downlinks[0].1.clone() else { panic!() };
    let sessions = setup.sessions.unwrap();
    assert_eq!(
        (sessions.len(), sessions[0].pdu_session_id, &sessions[0].transfer[..]),
        (1, 5, &b"setup"[..])
    );
    assert!(setup.ue_ambr.is_some());
    let accept = phone.accepted(&mut world);
    assert_eq!(accept.pdu_session_status.unwrap().iter().collect::<Vec<_>>(), [5]);
    assert_eq!(accept.reactivation_result.unwrap().iter().collect::<Vec<_>>(), [6]);
    phone.context_setup_response(&mut world, &[5]);
    assert!(world.take_ladder().ends_with("smf  <- UpdateSmContext"));
}

#[test]
fn a_session_that_the_phone_does_not_have_is_released() {
    let (mut world, mut phone) = idle();
    let mut request = phone.registration_request(RegistrationKind::MobilityUpdating);
    request.pdu_session_status = Some([].into_iter().collect());
    comes(&mut world, &mut phone, request);
    assert!(world.take_ladder().contains("smf  <- ReleaseSmContext"));
    assert_eq!(world.amf.audit().sessions, 0);
}

#[test]
fn the_gnb_releases_resources_of_a_session_that_ends() {
    for kind in [RegistrationKind::MobilityUpdating, RegistrationKind::Initial] {
        let (mut world, mut phone) = (World::new(), Phone::default());
        phone.register(&mut world);
        phone.establish(&mut world, 5);
        world.take_ladder();
        let mut request = phone.registration_request(kind);
        request.pdu_session_status = Some([].into_iter().collect());
        phone.send(&mut world, request);
        let ladder = world.take_ladder();
        assert!(ladder.contains("smf  <- ReleaseSmContext"), "{ladder}");
        assert!(ladder.contains("gnb1 <- PduSessionResourceReleaseCommand"), "{ladder}");
    }
}

#[test]
fn the_request_in_the_container_of_a_protected_message_is_used() {
    let (mut world, mut phone) = idle();
    let mut whole = phone.registration_request(RegistrationKind::MobilityUpdating);
    whole.uplink_data_status = Some([5].into_iter().collect());
    let mut container = GmmMessage::from(whole).encode();
    phone.security.as_ref().unwrap().cipher_container(&mut container).unwrap();
    let mut request = phone.registration_request(RegistrationKind::MobilityUpdating);
    request.nas_message_container = Some(container);
    comes(&mut world, &mut phone, request);
    assert!(world.take_ladder().contains("smf  <- UpdateSmContext"));
}

#[test]
fn a_known_guti_with_a_wrong_mac_is_identified_by_suci_and_takes_over_its_context() {
    let (mut world, mut phone) = idle();
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    let mut nas = phone.initial_nas(request.clone());
    nas[2] ^= 1;
    phone.connect(&mut world, nas);
    phone.security = None;
    assert!(matches!(phone.receive(&mut world), GmmMessage::IdentityRequest(_)));
    phone.send(&mut world, pith_nas::gmm::IdentityResponse::new(Phone::suci()));
    phone.authenticate(&mut world, request);
    let audit = world.amf.audit();
    assert_eq!((audit.contexts, audit.supis, audit.sessions), (1, 1, 1), "one context, with its session");
    let ladder = world.take_ladder();
    assert!(!ladder.contains("UeContextTransfer"), "no other shard is asked: {ladder}");
}

#[test]
fn a_changed_capability_needs_new_keys() {
    let (mut world, mut phone) = idle();
    phone.capability = UeSecurityCapability::of_5gs(0xf0, 0xf0);
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    comes(&mut world, &mut phone, request.clone());
    phone.authenticate(&mut world, request);
    assert_eq!(world.amf.audit().contexts, 1);
}

#[test]
fn a_phone_in_an_unserved_tracking_area_is_rejected() {
    let mut elsewhere = config();
    elsewhere.tais[0].tac = pith_types::Tac::new(2);
    let (mut world, mut phone) = (World::with(elsewhere), Phone::default());
    let request = phone.registration_request(RegistrationKind::Initial);
    comes(&mut world, &mut phone, request);
    let GmmMessage::RegistrationReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::NoSuitableCellsInTrackingArea);
}

#[test]
fn emergency_registration_is_rejected_with_protocol_error() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    let request = phone.registration_request(RegistrationKind::Emergency);
    comes(&mut world, &mut phone, request);
    let GmmMessage::RegistrationReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::ProtocolErrorUnspecified);
    phone.released(&mut world);
    world.assert_empty();
}

#[test]
fn registrations_of_kinds_that_are_not_supported_are_rejected() {
    for (kind, cause) in [
        (RegistrationKind::SnpnOnboarding, GmmCause::ProtocolErrorUnspecified),
        (RegistrationKind::DisasterRoamingInitial, GmmCause::DisasterRoamingNotAllowed),
        (RegistrationKind::DisasterRoamingMobilityUpdating, GmmCause::DisasterRoamingNotAllowed),
    ] {
        let (mut world, mut phone) = (World::new(), Phone::default());
        let request = phone.registration_request(kind);
        comes(&mut world, &mut phone, request);
        let GmmMessage::RegistrationReject(reject) = phone.receive(&mut world) else { panic!("{kind:?}") };
        assert_eq!(reject.cause, cause);
        phone.released(&mut world);
        world.assert_empty();
    }
}

#[test]
fn a_request_without_security_capability_is_rejected() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    let mut request = phone.registration_request(RegistrationKind::Initial);
    request.ue_security_capability = None;
    comes(&mut world, &mut phone, request);
    let GmmMessage::RegistrationReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::ConditionalIeError);
}

#[test]
fn case_c_t3550_retransmits_the_accept_and_then_both_gutis_stay_valid() {
    let (mut world, mut phone) = idle();
    let before = phone.guti.unwrap();
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    comes(&mut world, &mut phone, request);
    phone.accepted(&mut world);
    for _ in 0..4 {
        world.expire(Timer::T3550);
        phone.accepted(&mut world);
    }
    world.expire(Timer::T3550);
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.in_procedure, audit.tmsis), (1, 0, 2));
    // The UE never received it: it registers with the old one, so that the old one and the
    // newest are valid.
    phone.guti = Some(before);
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    comes(&mut world, &mut phone, request);
    phone.accepted(&mut world);
    phone.send(&mut world, RegistrationComplete::new());
    assert_eq!(world.amf.audit().tmsis, 1);
}

#[test]
fn case_a_after_a_lost_connection_both_gutis_stay_valid() {
    let (mut world, mut phone) = idle();
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    comes(&mut world, &mut phone, request);
    phone.accepted(&mut world);
    phone.release(&mut world);
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.in_procedure, audit.tmsis), (1, 0, 2));
    assert_eq!(world.running(), [Timer::MobileReachable]);
}

#[test]
fn a_registration_over_another_gnb_ends_the_first_connection() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    world.take_ladder();
    phone.gnb = OTHER_GNB;
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    comes(&mut world, &mut phone, request);
    let ladder = world.take_ladder();
    assert!(ladder.contains("gnb1 <- UeContextReleaseCommand"), "{ladder}");
    assert!(ladder.ends_with("gnb2 <- InitialContextSetupRequest\nsmf  <- UpdateSmContext"), "{ladder}");
    let audit = world.amf.audit();
    assert_eq!((audit.connections, audit.releasing, audit.connected), (2, 1, 1));
}

#[test]
fn an_update_over_the_same_connection_is_answered_in_a_downlink_nas_transport() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    world.take_ladder();
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    phone.send(&mut world, request);
    assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport\ngnb1 <- DownlinkNasTransport");
    phone.accepted(&mut world);
}

#[test]
fn a_repeated_request_during_a_challenge_is_not_answered() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    let request = phone.registration_request(RegistrationKind::Initial);
    comes(&mut world, &mut phone, request.clone());
    phone.receive(&mut world);
    world.take_ladder();
    phone.send(&mut world, request);
    assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport");
}

#[test]
fn a_different_request_restarts_the_registration() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    let request = phone.registration_request(RegistrationKind::Initial);
    comes(&mut world, &mut phone, request.clone());
    phone.receive(&mut world);
    let mut other = request;
    other.registration_type.follow_on_request = true;
    phone.send(&mut world, other.clone());
    phone.authenticate(&mut world, other);
    assert_eq!(world.amf.audit().registered, 1);
}

#[test]
fn a_message_of_an_smf_is_refused_during_a_registration() {
    let (mut world, mut phone) = idle();
    world.script.insert(pith_sbi::Operation::UpdateSmContext, None);
    let mut request = phone.registration_request(RegistrationKind::MobilityUpdating);
    request.uplink_data_status = Some([5].into_iter().collect());
    comes(&mut world, &mut phone, request);
    let refused = world.request(transfer(5, Some(b"x"), None)).unwrap_err();
    assert_eq!(
        (refused.status, refused.cause().unwrap().as_str()),
        (409, "TEMPORARY_REJECT_REGISTRATION_ONGOING")
    );
}

#[test]
fn a_full_amf_rejects_new_phones_with_a_back_off() {
    let mut small = config();
    small.max_ues = 1;
    let (mut world, mut phone) = (World::with(small), Phone::default());
    phone.register(&mut world);
    let mut second = Phone { ran_id: pith_types::RanUeNgapId(60), ..Phone::default() };
    let request = second.registration_request(RegistrationKind::Initial);
    comes(&mut world, &mut second, request);
    let GmmMessage::RegistrationReject(reject) = second.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::Congestion);
    assert_eq!(reject.t3346.unwrap().duration().unwrap().as_secs(), 60);
    second.released(&mut world);
    assert_eq!(world.amf.audit().contexts, 1);
    phone.send(&mut world, establishment(5));
}
