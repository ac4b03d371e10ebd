//! Primary authentication and its abnormal cases (TS 24.501 5.4.1.3).

use super::world::{Phone, World, problem};
use crate::kit::Timer;
use pith_nas::gmm::{AuthenticationFailure, AuthenticationResponse};
use pith_nas::ie::{NgKsi, RegistrationKind};
use pith_nas::{GmmCause, GmmMessage};
use pith_sbi::{Cause, Operation, Request};

/// A UE that has been challenged.
fn challenged() -> (World, Phone) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    let GmmMessage::AuthenticationRequest(challenge) = phone.receive(&mut world) else { panic!() };
    assert_eq!(challenge.rand, Some([1; 16]));
    world.take_ladder();
    (world, phone)
}

fn failure(cause: GmmCause) -> AuthenticationFailure {
    AuthenticationFailure::new(cause)
}

/// The UE gets AUTHENTICATION REJECT, and its connection is released.
fn assert_authentication_reject(world: &mut World, phone: &mut Phone) {
    assert!(matches!(phone.receive(world), GmmMessage::AuthenticationReject(_)));
    phone.released(world);
    world.assert_empty();
}

#[test]
fn a_wrong_res_star_is_reported_to_the_ausf_and_rejected() {
    let (mut world, mut phone) = challenged();
    let mut response = AuthenticationResponse::new();
    response.res_star = Some([0; 16]);
    phone.send(&mut world, response);
    assert_eq!(
        world.take_ladder(),
        "\
gnb1 -> UplinkNasTransport
ausf <- FiveGAkaConfirmation
gnb1 <- DownlinkNasTransport
gnb1 <- UeContextReleaseCommand"
    );
    assert_authentication_reject(&mut world, &mut phone);
}

#[test]
fn a_response_without_res_star_is_wrong() {
    let (mut world, mut phone) = challenged();
    phone.send(&mut world, AuthenticationResponse::new());
    assert_authentication_reject(&mut world, &mut phone);
}

#[test]
fn the_seaf_does_not_rely_on_the_ausf_alone() {
    let (mut world, mut phone) = challenged();
    let good = super::world::confirmation(true);
    let good = pith_sbi::Response::ConfirmationDataResponse(Box::new(good));
    world.script.insert(Operation::FiveGAkaConfirmation, Some(Ok(good)));
    let mut response = AuthenticationResponse::new();
    response.res_star = Some([1; 16]);
    phone.send(&mut world, response);
    assert_authentication_reject(&mut world, &mut phone);
}

#[test]
fn case_c_a_mac_failure_after_registration_by_suci_is_rejected() {
    let (mut world, mut phone) = challenged();
    phone.send(&mut world, failure(GmmCause::MacFailure));
    assert_authentication_reject(&mut world, &mut phone);
}

#[test]
fn case_d_non_5g_authentication_unacceptable_is_rejected() {
    let (mut world, mut phone) = challenged();
    phone.send(&mut world, failure(GmmCause::NonFiveGAuthenticationUnacceptable));
    assert_authentication_reject(&mut world, &mut phone);
}

/// AUTHENTICATION REJECT would make the USIM invalid (TS 24.501 5.4.1.3.5), although nothing is known of it: the cause counts as #111
/// (9.11.3.2).
#[test]
fn a_failure_with_a_cause_of_another_procedure_leaves_the_usim_valid() {
    for cause in [GmmCause::IllegalUe, GmmCause::ProtocolErrorUnspecified, GmmCause::Other(200)] {
        let (mut world, mut phone) = challenged();
        phone.send(&mut world, failure(cause));
        assert_usim_stays_valid(&mut world, &mut phone);
        assert!(told(&world).contains("the UE refused the authentication"), "{}", told(&world));
    }
}

/// AUTS is conditional: without it the home network learns nothing.
#[test]
fn a_synch_failure_without_auts_leaves_the_usim_valid() {
    let (mut world, mut phone) = challenged();
    phone.send(&mut world, failure(GmmCause::SynchFailure));
    assert_usim_stays_valid(&mut world, &mut phone);
}

fn assert_usim_stays_valid(world: &mut World, phone: &mut Phone) {
    let GmmMessage::RegistrationReject(reject) = phone.receive(world) else { panic!("REGISTRATION REJECT") };
    assert_eq!(reject.cause, GmmCause::ProtocolErrorUnspecified);
    phone.released(world);
    world.assert_empty();
}

#[test]
fn case_e_another_ng_ksi_is_chosen_once() {
    let (mut world, mut phone) = challenged();
    phone.send(&mut world, failure(GmmCause::NgKsiAlreadyInUse));
    let GmmMessage::AuthenticationRequest(second) = phone.receive(&mut world) else { panic!() };
    assert_eq!((second.rand, second.ng_ksi), (Some([2; 16]), NgKsi::Native(1)));
    phone.send(&mut world, failure(GmmCause::NgKsiAlreadyInUse));
    assert_usim_stays_valid(&mut world, &mut phone);
}

#[test]
fn case_f_a_synch_failure_resynchronises_the_home_network_once() {
    let (mut world, mut phone) = challenged();
    world.script.insert(Operation::Authenticate, None);
    let mut synch_failure = failure(GmmCause::SynchFailure);
    synch_failure.auts = Some([0x5a; 14]);
    phone.send(&mut world, synch_failure.clone());
    let Request::Authenticate(request) = &world.calls[0].2 else { panic!() };
    let resynchronization = request.body.resynchronization_info.as_ref().unwrap();
    assert_eq!((resynchronization.rand.0, resynchronization.auts.0), ([1; 16], [0x5a; 14]));

    let challenge = pith_sbi::Response::UeAuthenticationCtxCreated(Box::new(world.challenge()));
    world.reply_to(Operation::Authenticate, Ok(challenge));
    let GmmMessage::AuthenticationRequest(second) = phone.receive(&mut world) else { panic!() };
    assert_eq!(second.rand, Some([2; 16]));
    phone.send(&mut world, synch_failure);
    assert_authentication_reject(&mut world, &mut phone);
    assert!(told(&world).contains("sequence number"), "{}", told(&world));
}

#[test]
fn case_b_t3560_retransmits_the_challenge_four_times_and_then_aborts() {
    let (mut world, mut phone) = challenged();
    for _ in 0..4 {
        world.expire(Timer::T3560);
        let GmmMessage::AuthenticationRequest(again) = phone.receive(&mut world) else { panic!() };
        assert_eq!(again.rand, Some([1; 16]), "the same challenge");
    }
    world.expire(Timer::T3560);
    phone.released(&mut world);
    world.assert_empty();
}

#[test]
fn a_duplicate_response_counts_once() {
    let (mut world, mut phone) = challenged();
    phone.send(&mut world, Phone::authentication_response());
    world.take_ladder();
    let repeated = GmmMessage::from(Phone::authentication_response()).encode();
    phone.send_pdu(&mut world, repeated);
    assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport");
}

#[test]
fn a_phone_with_a_foreign_guti_is_identified_before_it_is_rejected() {
    let (mut world, mut owner) = (World::new(), Phone::default());
    owner.register(&mut world);
    let mut stranger = Phone { guti: owner.guti, ..Phone::default() };
    stranger.ran_id = pith_types::RanUeNgapId(100);
    let request = stranger.registration_request(RegistrationKind::MobilityUpdating);
    let nas = stranger.initial_nas(request);
    world.take_ladder();
    stranger.connect(&mut world, nas);
    assert!(matches!(stranger.receive(&mut world), GmmMessage::IdentityRequest(_)));
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.contexts), (1, 2), "the owner is not touched");
}

#[test]
fn an_unknown_subscriber_is_an_illegal_ue() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    world.script.insert(Operation::Authenticate, problem(Cause::UserNotFound));
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    let GmmMessage::RegistrationReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::IllegalUe);
    phone.released(&mut world);
    world.assert_empty();
}

/// #3 would invalidate the USIM for its own network, too (TS 24.501 5.5.1.2.5).
#[test]
fn an_unknown_subscriber_of_another_network_is_not_allowed_in_this_one() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    world.script.insert(Operation::Authenticate, problem(Cause::UserNotFound));
    let mut request = phone.registration_request(RegistrationKind::Initial);
    request.mobile_identity =
        pith_nas::ie::MobileIdentity::Suci("suci-0-208-93-0-0-0-0000000001".parse().unwrap());
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    let GmmMessage::RegistrationReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::PlmnNotAllowed);
}

#[test]
fn an_unauthorised_serving_network_rejects_with_its_cause() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    world.script.insert(Operation::Authenticate, problem(Cause::ServingNetworkNotAuthorized));
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    let GmmMessage::RegistrationReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::ServingNetworkNotAuthorized);
}

#[test]
fn without_an_ausf_the_phone_is_rejected_with_protocol_error() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    world.script.insert(Operation::Authenticate, problem(Cause::TargetNfNotReachable));
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    let GmmMessage::RegistrationReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::ProtocolErrorUnspecified);
    phone.released(&mut world);
    world.assert_empty();
}

#[test]
fn a_suci_that_the_home_network_can_not_de_conceal_does_not_end_the_usim() {
    for cause in
        [Cause::InvalidHnPublicKeyIdentifier, Cause::InvalidSchemeOutput, Cause::UnsupportedProtectionScheme]
    {
        let (mut world, mut phone) = (World::new(), Phone::default());
        world.script.insert(Operation::Authenticate, problem(cause));
        let request = phone.registration_request(RegistrationKind::Initial);
        let nas = phone.initial_nas(request);
        phone.connect(&mut world, nas);
        let GmmMessage::RegistrationReject(reject) = phone.receive(&mut world) else { panic!() };
        assert_eq!(reject.cause, GmmCause::ProtocolErrorUnspecified);
        phone.released(&mut world);
        world.assert_empty();
    }
}

/// The log line that explains to the operator why a registration was refused.
fn told(world: &World) -> &str {
    let mut refused = world.events.iter().filter(|event| event.procedure == "Registration");
    &refused.next_back().expect("a refusal").text
}

#[test]
fn a_refusal_is_logged_with_identity_reason_and_remedy() {
    for (cause, why) in [
        (GmmCause::MacFailure, "MAC failure): K, OPc"),
        (GmmCause::NonFiveGAuthenticationUnacceptable, "#26 non five g authentication"),
    ] {
        let (mut world, mut phone) = challenged();
        phone.send(&mut world, failure(cause));
        assert!(told(&world).contains(why), "{}", told(&world));
        let event = world.events.iter().rfind(|event| event.procedure == "Registration").unwrap();
        assert!(event.ue.starts_with("imsi-") && event.ue.contains('*'), "{}", event.ue);
    }
    let (mut world, mut phone) = (World::new(), Phone::default());
    world.script.insert(Operation::Authenticate, problem(Cause::UserNotFound));
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    assert!(told(&world).contains("unknown subscriber") && told(&world).contains("pith subscriber add"));
}
