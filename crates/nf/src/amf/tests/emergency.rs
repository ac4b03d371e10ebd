//! Emergency services (TS 23.501 5.16.4; TS 24.501 5.5.1.2.2, 5.5.1.2.6, 5.4.2; TS 33.501 10.2).

use super::world::*;
use super::{n2_handover, xn_handover};
use crate::amf::config::{EMERGENCY_UES, REJECTABLE_UES};
use crate::amf::{Amf, AmfConfig, EmergencyServices};
use crate::kit::{Duration, NetworkFunction, Rng, StoreScope, Timer, Tracking};
use crate::testing::Stored;
use pith_crypto::nas::{CipheringAlgorithm, IntegrityAlgorithm};
use pith_nas::gmm::{self, IdentityResponse};
use pith_nas::ie::{
    EmergencyCategory, EmergencyNumber, MobileIdentity, PduSessionSet, RegistrationKind, RequestType,
    ServiceType, UeSecurityCapability,
};
use pith_nas::{GmmCause, GmmMessage};
use pith_ngap::Message;
use pith_sbi::common::{Area, RestrictionType, ServiceAreaRestriction, UeContextId};
use pith_sbi::nsmf_pdusession::{self as nsmf, HoState};
use pith_sbi::nudm_sdm::AccessAndMobilitySubscriptionData;
use pith_sbi::{Cause, Operation, Request, Response};
use pith_types::{FiveGGuti, FiveGTmsi, Pei, Snssai, Tac};

const IMEI: &str = "imei-490154203237518";

/// The PEI that a phone sends in SECURITY MODE COMPLETE.
fn imeisv() -> Pei {
    "imeisv-4370816125816151".parse().unwrap()
}

/// An AMF with emergency services; UEs without authentication are admitted up to that number.
pub(super) fn with_emergency(unauthenticated: u32) -> AmfConfig {
    let police = EmergencyCategory { police: true, ..Default::default() };
    let emergency = EmergencyServices {
        dnn: "sos".parse().unwrap(),
        snssai: Snssai::of_sst(2),
        unauthenticated,
        t3512: Duration::from_secs(600),
        numbers: vec![EmergencyNumber { category: police, digits: "110".into() }],
    };
    AmfConfig { emergency: Some(emergency), ..config() }
}

/// An emergency registration with that identity.
fn request_with(phone: &Phone, identity: MobileIdentity) -> gmm::RegistrationRequest {
    let mut request = phone.registration_request(RegistrationKind::Emergency);
    request.mobile_identity = identity;
    request
}

/// A 5G-GUTI for which the AMF has no context.
fn unknown_guti() -> MobileIdentity {
    let tmsi = FiveGTmsi::new(config().identity.blocks().next().unwrap(), 7);
    MobileIdentity::FiveGGuti(FiveGGuti { guami: config().guami, tmsi })
}

fn connect(world: &mut World, phone: &mut Phone, request: &gmm::RegistrationRequest) {
    let nas = phone.initial_nas(request.clone());
    phone.connect(world, nas);
}

fn rejected(world: &mut World, phone: &mut Phone) -> GmmCause {
    let GmmMessage::RegistrationReject(reject) = phone.receive(world) else { panic!("a reject is due") };
    phone.released(world);
    reject.cause
}

/// Answers SECURITY MODE COMMAND, which has null algorithms; returns the answer.
fn take_null(
    world: &mut World,
    phone: &mut Phone,
    request: gmm::RegistrationRequest,
) -> Box<gmm::RegistrationAccept> {
    let GmmMessage::SecurityModeCommand(command) = phone.receive(world) else { panic!("keys are due") };
    assert_eq!((command.algorithms.integrity, command.algorithms.ciphering), (0, 0));
    assert_eq!(command.ng_ksi, pith_nas::ie::NgKsi::Native(0));
    let complete = phone.security_mode_complete(request);
    phone.send_pdu(world, complete);
    phone.accepted(world)
}

/// Answers SECURITY MODE COMMAND with that IMEISV alone.
fn take_null_as(world: &mut World, phone: &mut Phone, imeisv: &str) {
    let GmmMessage::SecurityModeCommand(_) = phone.receive(world) else { panic!("keys are due") };
    let mut complete = gmm::SecurityModeComplete::new();
    complete.imeisv = Some(MobileIdentity::Imeisv(imeisv.parse().unwrap()));
    let header = pith_nas::SecurityHeaderType::IntegrityProtectedAndCipheredWithNewContext;
    let complete = phone.protect(header, complete);
    phone.send_pdu(world, complete);
}

/// A phone without a SIM card registers.
fn register_without_sim(world: &mut World, phone: &mut Phone) -> Box<gmm::RegistrationAccept> {
    let request = request_with(phone, MobileIdentity::Imei(IMEI.parse().unwrap()));
    connect(world, phone, &request);
    let accept = take_null(world, phone, request);
    phone.context_setup_response(world, &[]);
    phone.send(world, gmm::RegistrationComplete::new());
    accept
}

/// A phone with a SIM card registers for emergency services.
pub(super) fn register_with_sim(world: &mut World, phone: &mut Phone) -> Box<gmm::RegistrationAccept> {
    let request = phone.registration_request(RegistrationKind::Emergency);
    connect(world, phone, &request);
    let accept = phone.authenticate(world, request);
    phone.context_setup_response(world, &[]);
    phone.send(world, gmm::RegistrationComplete::new());
    accept
}

pub(super) fn emergency_request(id: u8) -> gmm::UlNasTransport {
    let mut transport = establishment(id);
    transport.request_type = Some(RequestType::InitialEmergencyRequest);
    transport
}

/// The cause with which a request for a session is returned.
pub(super) fn returned(world: &mut World, phone: &mut Phone) -> GmmCause {
    let GmmMessage::DlNasTransport(transport) = phone.receive(world) else { panic!() };
    transport.cause.expect("the payload was not forwarded")
}

/// The request that the SMF got last.
fn asked_smf(
    world: &mut World,
    phone: &mut Phone,
    request: gmm::UlNasTransport,
) -> nsmf::SmContextCreateData {
    world.script.insert(Operation::PostSmContexts, None);
    phone.send(world, request);
    let Request::PostSmContexts(request) = world.open_call(Operation::PostSmContexts) else { panic!() };
    world.script.remove(&Operation::PostSmContexts);
    request.body
}

/// The subscription allows service only in a tracking area where the UE is not.
fn restrict(world: &mut World) {
    let mut data = subscription(&[1]);
    let restriction = ServiceAreaRestriction {
        restriction_type: Some(RestrictionType::AllowedAreas),
        max_num_of_tas: None,
        areas: vec![Area { area_code: None, tacs: vec![Tac::new(99)] }],
    };
    data.am_data = data.am_data.map(|plain| AccessAndMobilitySubscriptionData {
        service_area_restriction: Some(restriction),
        ..plain
    });
    world.script.insert(Operation::GetDataSets, Some(Ok(Response::SubscriptionDataSets(Box::new(data)))));
}

/// A registered phone without SIM card, with an emergency session.
pub(super) fn unauthenticated() -> World {
    let (mut world, mut phone) = (World::with(with_emergency(10)), Phone::default());
    register_without_sim(&mut world, &mut phone);
    phone.send(&mut world, emergency_request(5));
    world
}

/// A phone without SIM card that has got SECURITY MODE COMMAND.
pub(super) fn in_security_mode() -> World {
    let (mut world, mut phone) = (World::with(with_emergency(10)), Phone::default());
    let request = request_with(&phone, MobileIdentity::Imei(IMEI.parse().unwrap()));
    connect(&mut world, &mut phone, &request);
    world
}

#[test]
fn a_subscriber_registers_for_emergency_services_step_by_step() {
    let (mut world, mut phone) = (World::with(with_emergency(0)), Phone::default());
    let accept = register_with_sim(&mut world, &mut phone);
    assert_eq!(
        world.take_ladder(),
        "\
gnb1 -> InitialUeMessage
ausf <- Authenticate
gnb1 <- DownlinkNasTransport
gnb1 -> UplinkNasTransport
ausf <- FiveGAkaConfirmation
gnb1 <- DownlinkNasTransport
gnb1 -> UplinkNasTransport
udm  <- ThreeGppRegistration
gnb1 <- InitialContextSetupRequest
gnb1 -> InitialContextSetupResponse
gnb1 -> UplinkNasTransport"
    );
    assert!(accept.result.emergency_registered);
    assert_eq!(
        (accept.allowed_nssai.clone(), accept.network_feature_support.unwrap().emergency_services),
        (None, 1)
    );
    assert_eq!(accept.t3512.unwrap().duration(), Some(Duration::from_secs(600)));
    assert_eq!(accept.emergency_number_list.unwrap().0[0].digits, "110");
    assert_ne!(phone.security.as_ref().unwrap().algorithms().integrity, IntegrityAlgorithm::Nia0);
    let body = asked_smf(&mut world, &mut phone, emergency_request(5));
    assert_eq!(body.request_type, Some(nsmf::RequestType::InitialEmergencyRequest));
    assert_eq!((body.dnn.unwrap().as_str(), body.s_nssai), ("sos", Some(Snssai::of_sst(2))));
    assert_eq!((body.supi, body.unauthenticated_supi), (Some(supi()), None));
}

#[test]
fn the_udm_is_informed_of_an_emergency_registration_and_may_refuse_it() {
    let (mut world, mut phone) = (World::with(with_emergency(0)), Phone::default());
    world.script.insert(Operation::ThreeGppRegistration, None);
    let request = phone.registration_request(RegistrationKind::Emergency);
    connect(&mut world, &mut phone, &request);
    phone.secure(&mut world, request);
    let Request::ThreeGppRegistration(it) = &world.calls[0].2 else { panic!() };
    assert_eq!(
        (it.body.emergency_registration_ind, it.body.initial_registration_ind),
        (Some(true), Some(true))
    );
    world.reply_to(Operation::ThreeGppRegistration, problem(Cause::RoamingNotAllowed).unwrap());
    assert!(phone.accepted(&mut world).result.emergency_registered);
}

#[test]
fn a_phone_without_sim_card_gets_an_emergency_session_step_by_step() {
    let (mut world, mut phone) = (World::with(with_emergency(10)), Phone::default());
    let accept = register_without_sim(&mut world, &mut phone);
    assert!(accept.result.emergency_registered && accept.allowed_nssai.is_none());
    phone.send(&mut world, emergency_request(5));
    let mut transfer = transfer(5, Some(b"accept"), Some((NgapIe::PduResSetupReq, b"setup")));
    transfer.ue_context_id = UeContextId::Pei(imeisv());
    world.request(transfer).unwrap();
    assert_eq!(
        world.take_ladder(),
        "\
gnb1 -> InitialUeMessage
gnb1 <- DownlinkNasTransport
gnb1 -> UplinkNasTransport
gnb1 <- InitialContextSetupRequest
gnb1 -> InitialContextSetupResponse
gnb1 -> UplinkNasTransport
gnb1 -> UplinkNasTransport
smf  <- PostSmContexts
nf   -> N1N2MessageTransfer
gnb1 <- PduSessionResourceSetupRequest
nf   <- 200"
    );
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.supis, audit.half_open, audit.sessions), (1, 0, 0, 1));
}

#[test]
fn gnb_and_smf_learn_that_a_phone_is_not_authenticated() {
    let (mut world, mut phone) = (World::with(with_emergency(10)), Phone::default());
    let request = request_with(&phone, MobileIdentity::Imei(IMEI.parse().unwrap()));
    connect(&mut world, &mut phone, &request);
    let GmmMessage::SecurityModeCommand(_) = phone.receive(&mut world) else { panic!() };
    let complete = phone.security_mode_complete(request);
    phone.send_pdu(&mut world, complete);
    let Message::InitialContextSetupRequest(setup) = world.downlinks[0].1.clone() else { panic!() };
    let capabilities = setup.security_capabilities;
    assert_eq!((capabilities.nr_integrity, capabilities.nr_encryption), (0, 0), "null algorithms only");
    assert_eq!(setup.allowed_nssai, [Snssai::of_sst(2)], "mandatory in NGAP");
    phone.accepted(&mut world);
    phone.context_setup_response(&mut world, &[]);
    let body = asked_smf(&mut world, &mut phone, emergency_request(5));
    assert_eq!((body.supi, body.unauthenticated_supi, body.pei), (None, None, Some(imeisv())));
}

/// TS 24.501 5.4.1.3.5: the network may continue an emergency registration after a failed authentication.
#[test]
fn a_subscriber_who_can_not_be_authenticated_is_admitted_without() {
    let failures: [fn(&mut World); 4] = [
        |world| drop(world.script.insert(Operation::Authenticate, problem(Cause::UserNotFound))),
        |world| drop(world.script.insert(Operation::Authenticate, problem(Cause::TimedOutRequest))),
        |world| {
            drop(world.script.insert(Operation::Authenticate, problem(Cause::ServingNetworkNotAuthorized)))
        },
        |world| {
            drop(world.script.insert(Operation::FiveGAkaConfirmation, problem(Cause::AuthenticationRejected)))
        },
    ];
    for (number, fail) in failures.into_iter().enumerate() {
        let (mut world, mut phone) = (World::with(with_emergency(10)), Phone::default());
        fail(&mut world);
        let request = phone.registration_request(RegistrationKind::Emergency);
        connect(&mut world, &mut phone, &request);
        if number == 3 {
            let GmmMessage::AuthenticationRequest(_) = phone.receive(&mut world) else { panic!() };
            phone.send(&mut world, Phone::authentication_response());
        }
        take_null(&mut world, &mut phone, request);
        phone.context_setup_response(&mut world, &[]);
        phone.send(&mut world, gmm::RegistrationComplete::new());
        let body = asked_smf(&mut world, &mut phone, emergency_request(5));
        assert_eq!((body.supi, body.unauthenticated_supi), (Some(supi()), Some(true)), "it claims that SUPI");
        assert_eq!(world.amf.audit().supis, 0, "which proves nothing");
    }
}

#[test]
fn a_usim_that_refuses_the_challenge_is_admitted_without_authentication() {
    let (mut world, mut phone) = (World::with(with_emergency(10)), Phone::default());
    let request = phone.registration_request(RegistrationKind::Emergency);
    connect(&mut world, &mut phone, &request);
    let GmmMessage::AuthenticationRequest(_) = phone.receive(&mut world) else { panic!() };
    phone.send(&mut world, gmm::AuthenticationFailure::new(GmmCause::MacFailure));
    assert!(take_null(&mut world, &mut phone, request).result.emergency_registered);
}

/// It names the 5G-GUTI of another UE, and has no SIM card.
#[test]
fn a_phone_that_names_the_guti_of_another_does_not_take_its_context() {
    let (mut world, mut phone) = (World::with(with_emergency(10)), Phone::default());
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    let mut forger = Phone { ran_id: pith_types::RanUeNgapId(66), ..Phone::default() };
    let request = request_with(&forger, MobileIdentity::FiveGGuti(phone.guti.unwrap()));
    connect(&mut world, &mut forger, &request);
    let asked = forger.receive(&mut world);
    assert!(matches!(asked, GmmMessage::IdentityRequest(_)), "{asked:?}");
    forger.send(&mut world, IdentityResponse::new(MobileIdentity::NoIdentity));
    assert!(take_null(&mut world, &mut forger, request).result.emergency_registered);
    let audit = world.amf.audit();
    assert_eq!((audit.contexts, audit.registered, audit.connected, audit.sessions), (2, 2, 2, 1));
    phone.send(&mut world, emergency_request(6));
    assert_eq!(world.amf.audit().sessions, 2, "its security context is in use");
}

/// A UE that does not answer gets nothing: it is not known to be there.
#[test]
fn a_phone_that_does_not_answer_the_challenge_is_not_admitted() {
    let (mut world, mut phone) = (World::with(with_emergency(10)), Phone::default());
    let request = phone.registration_request(RegistrationKind::Emergency);
    connect(&mut world, &mut phone, &request);
    for _ in 0..5 {
        world.expire(Timer::T3560);
    }
    phone.released(&mut world);
    world.assert_empty();
}

/// TS 24.501 5.5.1.2.6 and annex A.
#[test]
fn without_permission_a_phone_without_authentication_is_rejected() {
    let imei = MobileIdentity::Imei(IMEI.parse().unwrap());
    for config in [config(), with_emergency(0)] {
        let (mut world, mut phone) = (World::with(config), Phone::default());
        let request = request_with(&phone, imei.clone());
        connect(&mut world, &mut phone, &request);
        assert_eq!(rejected(&mut world, &mut phone), GmmCause::PeiNotAccepted);
        world.assert_empty();
    }
    let (mut world, mut phone) = (World::with(with_emergency(0)), Phone::default());
    world.script.insert(Operation::FiveGAkaConfirmation, problem(Cause::AuthenticationRejected));
    let request = phone.registration_request(RegistrationKind::Emergency);
    connect(&mut world, &mut phone, &request);
    let GmmMessage::AuthenticationRequest(_) = phone.receive(&mut world) else { panic!() };
    phone.send(&mut world, Phone::authentication_response());
    assert!(matches!(phone.receive(&mut world), GmmMessage::AuthenticationReject(_)));
    phone.released(&mut world);
    world.assert_empty();
}

/// The UE has no SUCI, and sends its PEI in SECURITY MODE COMPLETE only.
#[test]
fn a_phone_without_any_identity_is_admitted_with_its_imeisv_and_not_without() {
    let (mut world, mut phone) = (World::with(with_emergency(10)), Phone::default());
    let request = request_with(&phone, unknown_guti());
    connect(&mut world, &mut phone, &request);
    let GmmMessage::IdentityRequest(_) = phone.receive(&mut world) else { panic!() };
    phone.send(&mut world, IdentityResponse::new(MobileIdentity::NoIdentity));
    assert!(take_null(&mut world, &mut phone, request).result.emergency_registered);

    let (mut world, mut phone) = (World::with(with_emergency(10)), Phone::default());
    let request = request_with(&phone, unknown_guti());
    connect(&mut world, &mut phone, &request);
    let GmmMessage::IdentityRequest(_) = phone.receive(&mut world) else { panic!() };
    phone.send(&mut world, IdentityResponse::new(MobileIdentity::NoIdentity));
    let GmmMessage::SecurityModeCommand(_) = phone.receive(&mut world) else { panic!() };
    let mut complete = gmm::SecurityModeComplete::new();
    complete.nas_message_container = Some(GmmMessage::from(request).encode());
    let header = pith_nas::SecurityHeaderType::IntegrityProtectedAndCipheredWithNewContext;
    let complete = phone.protect(header, complete);
    phone.send_pdu(&mut world, complete);
    assert_eq!(rejected(&mut world, &mut phone), GmmCause::IllegalUe);
    world.assert_empty();
}

/// With null algorithms only emergency services are admitted, whatever the message that follows says.
#[test]
fn a_request_that_becomes_a_normal_one_under_null_algorithms_is_rejected() {
    let (mut world, mut phone) = (World::with(with_emergency(10)), Phone::default());
    let request = request_with(&phone, MobileIdentity::Imei(IMEI.parse().unwrap()));
    connect(&mut world, &mut phone, &request);
    let GmmMessage::SecurityModeCommand(_) = phone.receive(&mut world) else { panic!() };
    let other = phone.registration_request(RegistrationKind::Initial);
    let complete = phone.security_mode_complete(other);
    phone.send_pdu(&mut world, complete);
    assert_eq!(rejected(&mut world, &mut phone), GmmCause::InvalidMandatoryInformation);
    world.assert_empty();
}

#[test]
fn the_number_of_unauthenticated_phones_is_limited() {
    let (mut world, mut phone) = (World::with(with_emergency(1)), Phone::default());
    register_without_sim(&mut world, &mut phone);
    let mut other = Phone { ran_id: pith_types::RanUeNgapId(50), ..Phone::default() };
    let request = request_with(&other, MobileIdentity::Imei(IMEI.parse().unwrap()));
    connect(&mut world, &mut other, &request);
    take_null_as(&mut world, &mut other, "imeisv-4370816125816199");
    assert_eq!(rejected(&mut world, &mut other), GmmCause::Congestion);
    // The first one registers again in place of itself.
    phone.guti = None;
    phone.security = None;
    register_without_sim(&mut world, &mut phone);
    assert_eq!(world.amf.audit().registered, 1);
}

#[test]
fn an_emergency_registered_phone_gets_one_emergency_session_and_no_other() {
    let (mut world, mut phone) = (World::with(with_emergency(0)), Phone::default());
    register_with_sim(&mut world, &mut phone);
    phone.send(&mut world, establishment(4));
    assert_eq!(returned(&mut world, &mut phone), GmmCause::PayloadWasNotForwarded);
    phone.send(&mut world, emergency_request(5));
    phone.send(&mut world, emergency_request(6));
    assert_eq!(returned(&mut world, &mut phone), GmmCause::PayloadWasNotForwarded);
    assert_eq!(world.amf.audit().sessions, 1);
    // The UE has lost the session, and requests it again.
    phone.send(&mut world, emergency_request(5));
    assert_eq!(world.amf.audit().sessions, 1);
    world.take_ladder();
    let mut existing = emergency_request(5);
    existing.request_type = Some(RequestType::ExistingEmergencyPduSession);
    phone.send(&mut world, existing.clone());
    assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport\nsmf  <- UpdateSmContext");
    existing.pdu_session_id = Some(7);
    phone.send(&mut world, existing);
    assert_eq!(returned(&mut world, &mut phone), GmmCause::PayloadWasNotForwarded);
}

#[test]
fn a_normally_registered_phone_gets_an_emergency_session_outside_its_service_area() {
    let (mut world, mut phone) = (World::with(with_emergency(0)), Phone::default());
    restrict(&mut world);
    phone.register(&mut world);
    phone.send(&mut world, establishment(4));
    assert_eq!(returned(&mut world, &mut phone), GmmCause::RestrictedServiceArea);
    phone.send(&mut world, emergency_request(5));
    let setup = transfer(5, Some(b"accept"), Some((NgapIe::PduResSetupReq, b"setup")));
    world.request(setup).expect("restrictions do not apply to an emergency session");
    phone.receive(&mut world);
    phone.release(&mut world);
    world.take_ladder();
    let mut request = phone.service_request(ServiceType::Data);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    let GmmMessage::ServiceReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::RestrictedServiceArea);
    request = phone.service_request(ServiceType::EmergencyServices);
    request.uplink_data_status = Some([5].into_iter().collect::<PduSessionSet>());
    phone.send(&mut world, request);
    let GmmMessage::ServiceAccept(accept) = phone.receive(&mut world) else { panic!() };
    assert_eq!(accept.reactivation_result, Some(PduSessionSet::NONE), "its user plane is active");
}

/// The subscription forbids the tracking area where the UE is.
fn forbid(world: &mut World) {
    let mut data = subscription(&[1]);
    data.am_data.as_mut().unwrap().forbidden_areas =
        vec![Area { area_code: None, tacs: vec![location().tai.tac] }];
    world.script.insert(Operation::GetDataSets, Some(Ok(Response::SubscriptionDataSets(Box::new(data)))));
}

/// The subscription has no slice that is served.
fn withdraw_slices(world: &mut World) {
    let data = subscription(&[7]);
    world.script.insert(Operation::GetDataSets, Some(Ok(Response::SubscriptionDataSets(Box::new(data)))));
}

/// TS 24.501 5.5.1.3.4: the update is accepted, for emergency services only.
#[test]
fn an_update_where_the_phone_may_not_register_keeps_its_emergency_session() {
    for restrict in [forbid, withdraw_slices] {
        let (mut world, mut phone) = (World::with(with_emergency(0)), Phone::default());
        phone.register(&mut world);
        phone.establish(&mut world, 4);
        phone.send(&mut world, emergency_request(5));
        phone.release(&mut world);
        restrict(&mut world);
        super::subscription_change::notified(&mut world);
        world.take_ladder();
        let mut request = phone.registration_request(RegistrationKind::MobilityUpdating);
        request.pdu_session_status = Some([4, 5].into_iter().collect());
        connect(&mut world, &mut phone, &request);
        let accept = phone.accepted(&mut world);
        assert!(accept.result.emergency_registered && accept.allowed_nssai.is_none());
        assert_eq!(accept.pdu_session_status, Some([5].into_iter().collect::<PduSessionSet>()));
        let ladder = world.take_ladder();
        for end in ["ReleaseSmContext", "DeleteAmPolicyAssociation", "SdmUnsubscribe"] {
            assert_eq!(ladder.matches(end).count(), 1, "{end}: {ladder}");
        }
        phone.context_setup_response(&mut world, &[]);
        phone.send(&mut world, gmm::RegistrationComplete::new());
        phone.send(&mut world, establishment(4));
        assert_eq!(returned(&mut world, &mut phone), GmmCause::PayloadWasNotForwarded);
        assert_eq!(world.amf.audit().sessions, 1);
    }
}

#[test]
fn an_update_where_the_phone_may_not_register_is_rejected_without_emergency_session() {
    for (restrict, cause) in [
        (forbid as fn(&mut World), GmmCause::TrackingAreaNotAllowed),
        (withdraw_slices, GmmCause::NoNetworkSlicesAvailable),
    ] {
        let (mut world, mut phone) = (World::with(with_emergency(0)), Phone::default());
        phone.register(&mut world);
        phone.send(&mut world, emergency_request(5));
        phone.release(&mut world);
        restrict(&mut world);
        super::subscription_change::notified(&mut world);
        // The UE does not have the session.
        let mut request = phone.registration_request(RegistrationKind::MobilityUpdating);
        request.pdu_session_status = Some(PduSessionSet::NONE);
        connect(&mut world, &mut phone, &request);
        assert_eq!(rejected(&mut world, &mut phone), cause);
        world.assert_empty();
    }
}

/// A registered UE outside its service area, with an emergency session.
fn with_call() -> (World, Phone) {
    let (mut world, mut phone) = (World::with(with_emergency(0)), Phone::default());
    restrict(&mut world);
    phone.register(&mut world);
    phone.send(&mut world, emergency_request(5));
    world.request(transfer(5, Some(b"accept"), Some((NgapIe::PduResSetupReq, b"setup")))).unwrap();
    phone.receive(&mut world);
    world.take_ladder();
    (world, phone)
}

#[test]
fn the_emergency_session_is_handed_over_outside_the_service_area() {
    let (mut world, phone) = with_call();
    world.script.insert(Operation::UpdateSmContext, None);
    n2_handover::require(&mut world, &phone, &[5]);
    assert_eq!(n2_handover::states(&world).last(), Some(&Some(HoState::Preparing)));
    let (mut world, phone) = with_call();
    world.script.insert(Operation::UpdateSmContext, Some(xn_handover::acknowledged()));
    xn_handover::switch(&mut world, OTHER_GNB, &xn_handover::request(phone.amf_id.unwrap(), &[5]));
    let answer = xn_handover::acknowledge(&mut world, OTHER_GNB);
    assert_eq!(xn_handover::ids(&answer.switched), [5]);
}

/// TS 23.502 4.2.2.3.3: the AMF does not start the deregistration.
#[test]
fn a_withdrawn_subscription_does_not_end_an_emergency_session() {
    for reason in ["SUBSCRIPTION_WITHDRAWN", "REREGISTRATION_REQUIRED"] {
        let (mut world, mut phone) = (World::with(with_emergency(0)), Phone::default());
        phone.register(&mut world);
        phone.establish(&mut world, 4);
        phone.send(&mut world, emergency_request(5));
        super::deregistration::notified(&mut world, reason);
        let audit = world.amf.audit();
        assert_eq!((audit.registered, audit.sessions), (1, 1), "{reason}");
        assert_eq!(world.amf.ues.iter().next().unwrap().1.emergency_session(), Some(5));
    }
}

/// The UE is deregistered as soon as the session has ended; if it is in CM-IDLE, without a message.
#[test]
fn a_phone_whose_subscription_was_withdrawn_is_deregistered_after_its_emergency_session() {
    for (reason, registers_again) in [("SUBSCRIPTION_WITHDRAWN", false), ("REREGISTRATION_REQUIRED", true)] {
        for is_idle in [false, true] {
            let (mut world, mut phone) = (World::with(with_emergency(0)), Phone::default());
            phone.register(&mut world);
            phone.send(&mut world, emergency_request(5));
            world.take_ladder();
            super::deregistration::notified(&mut world, reason);
            let ladder = world.take_ladder();
            assert!(ladder.contains("SdmUnsubscribe") && ladder.contains("DeleteAmPolicy"), "{ladder}");
            phone.send(&mut world, establishment(4));
            assert_eq!(returned(&mut world, &mut phone), GmmCause::PayloadWasNotForwarded);
            if is_idle {
                phone.release(&mut world);
            }
            super::pdu_session::status_notify(&mut world, 5).unwrap();
            if !is_idle {
                let GmmMessage::DeregistrationRequestUeTerminated(request) = phone.receive(&mut world) else {
                    panic!("{reason}")
                };
                assert_eq!(request.deregistration_type.re_registration_required, registers_again);
                phone.send(&mut world, gmm::DeregistrationAcceptUeTerminated::new());
                phone.released(&mut world);
            }
            world.assert_empty();
        }
    }
}

/// TS 23.501 5.16.4.4: it stays registered for T3512, to be called back.
#[test]
fn an_emergency_registered_phone_stays_registered_after_its_emergency_session() {
    let (mut world, mut phone) = (World::with(with_emergency(0)), Phone::default());
    register_with_sim(&mut world, &mut phone);
    phone.send(&mut world, emergency_request(5));
    super::deregistration::notified(&mut world, "SUBSCRIPTION_WITHDRAWN");
    super::pdu_session::status_notify(&mut world, 5).unwrap();
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.sessions), (1, 0));
}

/// Its place among the unauthenticated UEs is free, also if it says another IMEISV now.
#[test]
fn an_unauthenticated_phone_that_is_authenticated_later_leaves_its_place() {
    let (mut world, mut phone) = (World::with(with_emergency(1)), Phone::default());
    let request = request_with(&phone, MobileIdentity::Imei(IMEI.parse().unwrap()));
    connect(&mut world, &mut phone, &request);
    take_null_as(&mut world, &mut phone, "imeisv-4370816125816199");
    phone.accepted(&mut world);
    phone.context_setup_response(&mut world, &[]);
    phone.send(&mut world, gmm::RegistrationComplete::new());
    let mut request = phone.registration_request(RegistrationKind::Initial);
    request.mobile_identity = Phone::suci();
    phone.send(&mut world, request.clone());
    phone.authenticate(&mut world, request);
    let mut other = Phone { ran_id: pith_types::RanUeNgapId(50), ..Phone::default() };
    assert!(register_without_sim(&mut world, &mut other).result.emergency_registered);
}

#[test]
fn a_request_does_not_become_another_kind_in_security_mode() {
    let (mut world, mut phone) = (World::with(with_emergency(1)), Phone::default());
    let request = phone.registration_request(RegistrationKind::Emergency);
    connect(&mut world, &mut phone, &request);
    let other = phone.registration_request(RegistrationKind::Initial);
    phone.secure(&mut world, other);
    assert_eq!(rejected(&mut world, &mut phone), GmmCause::InvalidMandatoryInformation);
}

#[test]
fn without_configuration_an_emergency_service_request_is_restricted_as_others() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    restrict(&mut world);
    phone.register(&mut world);
    phone.release(&mut world);
    let request = phone.service_request(ServiceType::EmergencyServices);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    let GmmMessage::ServiceReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::RestrictedServiceArea);
}

#[test]
fn emergency_registrations_use_the_contexts_beyond_the_limit() {
    let small = AmfConfig { max_ues: 1, ..with_emergency(10) };
    let (mut world, mut phone) = (World::with(small), Phone::default());
    phone.register(&mut world);
    let mut other = Phone { ran_id: pith_types::RanUeNgapId(50), ..Phone::default() };
    let request = other.registration_request(RegistrationKind::Initial);
    connect(&mut world, &mut other, &request);
    assert_eq!(rejected(&mut world, &mut other), GmmCause::Congestion);
    assert!(register_without_sim(&mut world, &mut other).result.emergency_registered);
    assert_eq!(world.amf.audit().registered, 2);
}

/// They hold a part of the contexts beyond the limit, and the oldest of them ends first.
#[test]
fn unanswered_emergency_registrations_leave_contexts_for_other_phones() {
    let small = AmfConfig { max_ues: 1, ..with_emergency(10) };
    let mut world = World::with(small);
    for number in 0..REJECTABLE_UES + 1 {
        let mut silent = Phone { ran_id: pith_types::RanUeNgapId(1000 + number), ..Phone::default() };
        let request = request_with(&silent, MobileIdentity::Imei(IMEI.parse().unwrap()));
        connect(&mut world, &mut silent, &request);
        world.downlinks.clear();
        world.ladder.clear();
        world.events.clear();
    }
    assert_eq!(world.amf.audit().half_open, 1 + EMERGENCY_UES as usize);
    let mut phone = Phone { ran_id: pith_types::RanUeNgapId(50), ..Phone::default() };
    let request = phone.registration_request(RegistrationKind::Initial);
    connect(&mut world, &mut phone, &request);
    assert_eq!(rejected(&mut world, &mut phone), GmmCause::Congestion);
    assert!(register_without_sim(&mut world, &mut phone).result.emergency_registered);
}

/// TS 24.501 5.3.7: the mobile reachable timer is T3512, and its expiry ends the registration.
#[test]
fn a_silent_emergency_registered_phone_is_deregistered_after_t3512() {
    let (mut world, mut phone) = (World::with(with_emergency(10)), Phone::default());
    register_without_sim(&mut world, &mut phone);
    phone.send(&mut world, emergency_request(5));
    phone.release(&mut world);
    let before = world.now;
    world.take_ladder();
    world.expire(Timer::MobileReachable);
    assert_eq!(world.now.since(before), Duration::from_secs(600));
    assert!(world.take_ladder().ends_with("smf  <- ReleaseSmContext"));
    world.assert_empty();
}

#[test]
fn an_emergency_registered_subscriber_registers_normally_later() {
    let (mut world, mut phone) = (World::with(with_emergency(0)), Phone::default());
    register_with_sim(&mut world, &mut phone);
    phone.send(&mut world, emergency_request(5));
    phone.release(&mut world);
    world.take_ladder();
    let request = phone.registration_request(RegistrationKind::Initial);
    connect(&mut world, &mut phone, &request);
    let accept = phone.accepted(&mut world);
    assert!(!accept.result.emergency_registered && accept.allowed_nssai.is_some());
    assert!(world.take_ladder().contains("udm  <- GetDataSets"));
    phone.context_setup_response(&mut world, &[]);
    phone.send(&mut world, gmm::RegistrationComplete::new());
    assert_eq!(world.amf.audit().sessions, 0, "the emergency session ended");
    phone.send(&mut world, establishment(4));
    assert_eq!(world.amf.audit().sessions, 1);
}

#[test]
fn a_normally_registered_phone_becomes_emergency_registered() {
    let (mut world, mut phone) = (World::with(with_emergency(0)), Phone::default());
    phone.register(&mut world);
    phone.establish(&mut world, 4);
    phone.release(&mut world);
    world.take_ladder();
    let request = phone.registration_request(RegistrationKind::Emergency);
    connect(&mut world, &mut phone, &request);
    let accept = phone.accepted(&mut world);
    assert!(accept.result.emergency_registered && accept.allowed_nssai.is_none());
    let ladder = world.take_ladder();
    for end in ["ReleaseSmContext", "DeleteAmPolicyAssociation", "SdmUnsubscribe"] {
        assert!(ladder.contains(end), "{end}: {ladder}");
    }
    assert_eq!(world.amf.audit().sessions, 0);
}

#[test]
fn a_late_notification_gives_an_emergency_registered_phone_no_subscription() {
    let (mut world, mut phone) = (World::with(with_emergency(0)), Phone::default());
    register_with_sim(&mut world, &mut phone);
    world.take_ladder();
    super::subscription_change::notified(&mut world);
    assert_eq!(world.take_ladder(), "nf   -> SdmChangeNotification\nnf   <- 204");
    assert!(world.amf.ues.iter().all(|(_, ue)| ue.subscription.is_none() && ue.refresh_call.is_none()));
}

#[test]
fn updates_keep_an_unauthenticated_phone_registered_for_emergency_services() {
    let (mut world, mut phone) = (World::with(with_emergency(10)), Phone::default());
    register_without_sim(&mut world, &mut phone);
    phone.send(&mut world, emergency_request(5));
    phone.release(&mut world);
    for kind in [RegistrationKind::MobilityUpdating, RegistrationKind::PeriodicUpdating] {
        world.take_ladder();
        let request = phone.registration_request(kind);
        connect(&mut world, &mut phone, &request);
        assert!(phone.accepted(&mut world).result.emergency_registered);
        let ladder = world.take_ladder();
        assert!(!ladder.contains("ausf") && !ladder.contains("udm"), "{ladder}");
        if kind == RegistrationKind::MobilityUpdating {
            phone.send(&mut world, gmm::RegistrationComplete::new());
        }
        phone.release(&mut world);
    }
    assert_eq!(world.amf.audit().sessions, 1);
}

/// TS 24.501 5.5.1.3.5, 5.6.1.5: the AMF has an outdated document of the UE, which it can't authenticate.
#[test]
fn an_unauthenticated_phone_with_an_outdated_context_registers_again() {
    let (mut world, mut phone) = (World::with(with_emergency(10)), Phone::default());
    world.amf.track_contexts(Tracking::default());
    register_without_sim(&mut world, &mut phone);
    phone.send(&mut world, emergency_request(5));
    phone.release(&mut world);
    let mut stored = Stored::default();
    stored.store(&mut world.amf, StoreScope::Changed);
    let mut amf = Amf::new(with_emergency(10), Rng::from_number(2));
    amf.reload_contexts();
    amf.track_contexts(Tracking::default());
    stored.restore(world.now, &mut amf, true);
    world.replace_amf(amf);
    world.connect_gnbs();

    let cause_9 = GmmCause::UeIdentityCannotBeDerivedByTheNetwork;
    let request = phone.service_request(ServiceType::Data);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    let GmmMessage::ServiceReject(reject) = phone.receive(&mut world) else { panic!("a reject is due") };
    assert_eq!(reject.cause, cause_9);
    phone.released(&mut world);
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    connect(&mut world, &mut phone, &request);
    let GmmMessage::IdentityRequest(_) = phone.receive(&mut world) else { panic!("it may have a SUCI") };
    phone.security = None;
    phone.send(&mut world, IdentityResponse::new(MobileIdentity::NoIdentity));
    assert_eq!(rejected(&mut world, &mut phone), cause_9);
    phone.guti = None;
    assert!(register_without_sim(&mut world, &mut phone).result.emergency_registered);
    assert_eq!(world.amf.audit().contexts, 1, "in place of its former context");
}

/// A message that null integrity protects proves nothing: a normal registration needs an authentication.
#[test]
fn a_normal_registration_is_never_accepted_on_null_integrity() {
    let (mut world, mut phone) = (World::with(with_emergency(10)), Phone::default());
    register_without_sim(&mut world, &mut phone);
    phone.release(&mut world);
    let request = phone.registration_request(RegistrationKind::Initial);
    connect(&mut world, &mut phone, &request);
    let GmmMessage::IdentityRequest(_) = phone.receive(&mut world) else {
        panic!("the identity is requested")
    };
    phone.send(&mut world, IdentityResponse::new(Phone::suci()));
    let accept = phone.authenticate(&mut world, request);
    assert!(!accept.result.emergency_registered);
    assert_ne!(phone.security.as_ref().unwrap().algorithms().integrity, IntegrityAlgorithm::Nia0);
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.supis, audit.dangling), (1, 1, 0));
}

/// Null integrity verifies any message: no AMF gets a request for the context that it names, and no place stays taken.
#[test]
fn an_unauthenticated_phone_that_names_a_guti_of_another_amf_is_identified() {
    for kind in [RegistrationKind::Initial, RegistrationKind::Emergency] {
        let (mut world, mut phone) = (World::with(with_emergency(1)), Phone::default());
        register_without_sim(&mut world, &mut phone);
        phone.release(&mut world);
        world.script.insert(Operation::UeContextTransfer, problem(Cause::ContextNotFound));
        world.take_ladder();
        let mut request = phone.registration_request(kind);
        let guti = phone.guti.unwrap();
        let guami = super::handover_between_amfs::target_config().guami;
        request.additional_guti = Some(MobileIdentity::FiveGGuti(FiveGGuti { guami, ..guti }));
        connect(&mut world, &mut phone, &request);
        let answer = phone.receive(&mut world);
        let ladder = world.take_ladder();
        assert!(matches!(answer, GmmMessage::IdentityRequest(_)), "{answer:?}: {ladder}");
        assert!(!ladder.contains("UeContextTransfer"), "{ladder}");
        phone.send(&mut world, IdentityResponse::new(MobileIdentity::NoIdentity));
        if kind == RegistrationKind::Emergency {
            assert!(take_null(&mut world, &mut phone, request).result.emergency_registered);
            continue;
        }
        assert_eq!(rejected(&mut world, &mut phone), GmmCause::IllegalUe);
        let mut other = Phone { ran_id: pith_types::RanUeNgapId(50), ..Phone::default() };
        assert!(register_without_sim(&mut world, &mut other).result.emergency_registered);
    }
}

/// Keys and context of an unauthenticated UE stay at this AMF.
#[test]
fn the_context_of_an_unauthenticated_phone_is_not_transferred() {
    use pith_sbi::namf_communication as namf;
    let (mut world, mut phone) = (World::with(with_emergency(10)), Phone::default());
    register_without_sim(&mut world, &mut phone);
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    let nas = phone.initial_nas(request);
    let access = pith_sbi::common::AccessType::ThreeGppAccess;
    let mut body = namf::UeContextTransferReqData::new(namf::TransferReason::MobiReg, access);
    let class = namf::N1MessageClass::FiveGmm;
    body.reg_request = Some(namf::N1MessageContainer::new(class, nas));
    let ue_context_id = UeContextId::FiveGGuti(phone.guti.unwrap());
    assert!(world.request(namf::UeContextTransfer { ue_context_id, body }).is_err());
}

/// TS 33.501 10.2.2, 5.5.2: null integrity is for unauthenticated emergency services only, and only if configured.
#[test]
fn null_algorithms_are_never_chosen_for_any_other_phone() {
    let kinds = [RegistrationKind::Initial, RegistrationKind::MobilityUpdating, RegistrationKind::Emergency];
    let capabilities = [(0xe0, 0xe0), (0xf0, 0xf0), (0x80, 0x80), (0xe0, 0x80), (0x80, 0xe0), (0xff, 0xff)];
    for (config, permitted) in [(config(), false), (with_emergency(0), false), (with_emergency(10), true)] {
        for (kind, (ea, ia)) in kinds.iter().flat_map(|kind| capabilities.map(|it| (*kind, it))) {
            for is_subscriber in [true, false] {
                let mut world = World::with(config.clone());
                let capability = UeSecurityCapability::of_5gs(ea, ia);
                let mut phone = Phone { capability, ..Phone::default() };
                let mut request = phone.registration_request(kind);
                if !is_subscriber {
                    request.mobile_identity = MobileIdentity::Imei(IMEI.parse().unwrap());
                }
                connect(&mut world, &mut phone, &request);
                let mut message = phone.receive(&mut world);
                if matches!(message, GmmMessage::IdentityRequest(_)) {
                    phone.send(&mut world, IdentityResponse::new(MobileIdentity::NoIdentity));
                    message = phone.receive(&mut world);
                }
                if matches!(message, GmmMessage::AuthenticationRequest(_)) {
                    phone.send(&mut world, Phone::authentication_response());
                    message = phone.receive(&mut world);
                }
                let GmmMessage::SecurityModeCommand(command) = message else { continue };
                let is_null = command.algorithms.integrity == IntegrityAlgorithm::Nia0 as u8;
                let may_be = permitted && !is_subscriber && kind == RegistrationKind::Emergency;
                assert_eq!(is_null, may_be, "{kind:?} {ea:x} {ia:x}");
                let is_ciphered = command.algorithms.ciphering != CipheringAlgorithm::Nea0 as u8;
                assert!(is_ciphered || may_be, "{kind:?} {ea:x} {ia:x}");
            }
        }
    }
}
