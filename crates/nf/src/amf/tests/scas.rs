//! Security assurance of an AMF: the cases of TS 33.512 4.2.2 that apply to this AMF, each named by
//! its case id. `make scas` runs them (`tests/scas/cases.json`).

use super::world::{NgapIe, Phone, World, config, establishment, transfer};
use crate::kit::Timer;
use pith_crypto::nas::IntegrityAlgorithm;
use pith_nas::gmm::{
    AuthenticationFailure, AuthenticationResponse, ConfigurationUpdateComplete, RegistrationComplete,
};
use pith_nas::ie::{MobileIdentity, RegistrationKind, ServiceType, UeSecurityCapability};
use pith_nas::{GmmCause, GmmMessage};
use pith_ngap::Message;
use pith_sbi::{Operation, Request};
use pith_types::{FiveGTmsi, RanUeNgapId, Snssai};

/// Sends REGISTRATION REQUEST with that identity, and reads the challenge.
fn challenged(world: &mut World, phone: &mut Phone) {
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request);
    phone.connect(world, nas);
    if matches!(phone.shown(), MobileIdentity::FiveGGuti(_)) {
        let GmmMessage::IdentityRequest(_) = phone.receive(world) else { panic!("an unknown 5G-GUTI") };
        phone.send(world, pith_nas::gmm::IdentityResponse::new(Phone::suci()));
    }
    let GmmMessage::AuthenticationRequest(_) = phone.receive(world) else { panic!("a challenge") };
    world.take_ladder();
}

fn registered() -> (World, Phone) {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.register(&mut world);
    world.take_ladder();
    (world, phone)
}

fn synch_failure() -> AuthenticationFailure {
    let mut failure = AuthenticationFailure::new(GmmCause::SynchFailure);
    failure.auts = Some([7; 14]);
    failure
}

/// TS 33.512 4.2.2.1.1 (TS 33.501 6.1.3.3.2): RAND and AUTS are sent to the AUSF; no other
/// challenge is sent before its reply; an unsolicited failure changes nothing.
#[test]
fn tc_sync_fail_seaf_amf() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    challenged(&mut world, &mut phone);
    world.script.insert(Operation::Authenticate, None);
    phone.send(&mut world, synch_failure());
    assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport\nausf <- Authenticate");
    let (_, _, Request::Authenticate(request)) = &world.calls[0] else { panic!() };
    let info = request.body.resynchronization_info.as_ref().unwrap();
    assert_eq!((info.rand.0, info.auts.0), ([1; 16], [7; 14]));
    // Repeated before the AUSF replies: nothing is sent or requested.
    phone.send(&mut world, synch_failure());
    assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport");
    assert!(!world.running().contains(&Timer::T3560));
    let fresh = world.challenge();
    world.reply_to(
        Operation::Authenticate,
        Ok(pith_sbi::Response::UeAuthenticationCtxCreated(Box::new(fresh))),
    );
    assert!(matches!(phone.receive(&mut world), GmmMessage::AuthenticationRequest(_)));
    let (mut world, mut phone) = registered();
    phone.send(&mut world, synch_failure());
    assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport", "unsolicited");
}

/// TS 33.512 4.2.2.1.2 (TS 33.501 6.1.3.2.2): RES* is wrong for the SEAF or for the AUSF, or the
/// AUSF does not answer. A UE that registered with its SUCI is rejected, one that registered with
/// its 5G-GUTI is identified first.
#[test]
fn tc_res_star_verification_failure() {
    for verdict in [None, Some(Ok(false)), Some(Err(504))] {
        // SUCI
        let (mut world, mut phone) = (World::new(), Phone::default());
        challenged(&mut world, &mut phone);
        answer_wrongly(&mut world, &mut phone, verdict);
        match (verdict, phone.receive(&mut world)) {
            (Some(Err(_)), GmmMessage::RegistrationReject(_)) => {}
            (_, GmmMessage::AuthenticationReject(_)) => {}
            (_, other) => panic!("{}", other.name()),
        }
        phone.released(&mut world);
        world.assert_empty();
        if verdict == Some(Err(504)) {
            continue;
        }
        // 5G-GUTI of a UE that is registered, in a message that is not protected
        let (mut world, phone) = registered();
        let mut again = Phone { guti: phone.guti, ran_id: RanUeNgapId(90), ..Phone::default() };
        challenged(&mut world, &mut again);
        answer_wrongly(&mut world, &mut again, verdict);
        assert!(matches!(again.receive(&mut world), GmmMessage::AuthenticationReject(_)));
        again.released(&mut world);
        assert_eq!(world.amf.audit().registered, 1, "the subscriber does not notice");
        // 5G-GUTI verified by the AMF, with a capability that requires new keys
        let (mut world, mut phone) = registered();
        phone.release(&mut world);
        phone.capability = UeSecurityCapability::of_5gs(0xf0, 0xf0);
        let request = phone.registration_request(RegistrationKind::MobilityUpdating);
        let nas = phone.initial_nas(request);
        phone.connect(&mut world, nas);
        assert!(matches!(phone.receive(&mut world), GmmMessage::AuthenticationRequest(_)));
        answer_wrongly(&mut world, &mut phone, verdict);
        assert!(matches!(phone.receive(&mut world), GmmMessage::IdentityRequest(_)));
    }
}

/// The UE's RES* is wrong: with `None` HRES* differs, with `Some` HRES* matches and the AUSF
/// returns that result.
fn answer_wrongly(world: &mut World, phone: &mut Phone, verdict: Option<Result<bool, u16>>) {
    let mut response = AuthenticationResponse::new();
    response.res_star = Some(super::world::RES_STAR);
    match verdict {
        None => response.res_star = Some([0; 16]),
        Some(Ok(right)) => {
            let confirmation = super::world::confirmation(right);
            let reply = Ok(pith_sbi::Response::ConfirmationDataResponse(Box::new(confirmation)));
            world.script.insert(Operation::FiveGAkaConfirmation, Some(reply));
        }
        Some(Err(_)) => {
            let problem = super::world::problem(pith_sbi::Cause::UpstreamServerError);
            world.script.insert(Operation::FiveGAkaConfirmation, problem);
        }
    }
    phone.send(world, response);
}

/// TS 33.512 4.2.2.1.4 (TS 24.501 4.4.4.3): once secure exchange is established, a message with a wrong MAC or without one is
/// discarded.
#[test]
fn tc_nas_int_failure_amf() {
    let (mut world, mut phone) = registered();
    let good = phone.nas(establishment(5));
    for octet in 2..good.len() {
        let mut wrong = good.clone();
        wrong[octet] ^= 0x10;
        phone.send_pdu(&mut world, wrong);
        assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport", "octet {octet}");
    }
    phone.send_pdu(&mut world, GmmMessage::from(establishment(5)).encode());
    assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport", "without a MAC");
    phone.send_pdu(&mut world, good);
    assert!(world.take_ladder().contains("PostSmContexts"));
}

/// TS 33.512 4.2.2.3.1 (TS 33.501 6.4.3.2): a message that was accepted is not accepted again, at
/// once or later, over the same connection or another one.
#[test]
fn tc_nas_replay_amf() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request.clone());
    phone.connect(&mut world, nas);
    phone.receive(&mut world);
    phone.send(&mut world, Phone::authentication_response());
    phone.receive(&mut world);
    let complete = phone.security_mode_complete(request);
    phone.send_pdu(&mut world, complete.clone());
    phone.accepted(&mut world);
    phone.context_setup_response(&mut world, &[]);
    let registration_complete = phone.nas(RegistrationComplete::new());
    phone.send_pdu(&mut world, registration_complete.clone());
    let session = phone.nas(establishment(5));
    phone.send_pdu(&mut world, session.clone());
    world.take_ladder();
    for captured in [&complete, &registration_complete, &session] {
        phone.send_pdu(&mut world, captured.clone());
        assert_eq!(world.take_ladder(), "gnb1 -> UplinkNasTransport");
    }
    phone.release(&mut world);
    let service = phone.service_request(ServiceType::Signalling);
    let service = phone.initial_nas(service);
    phone.connect(&mut world, service.clone());
    assert!(matches!(phone.receive(&mut world), GmmMessage::ServiceAccept(_)));
    phone.context_setup_response(&mut world, &[]);
    let mut attacker = Phone { guti: phone.guti, ran_id: RanUeNgapId(90), ..Phone::default() };
    attacker.connect(&mut world, service);
    assert!(matches!(attacker.receive(&mut world), GmmMessage::ServiceReject(_)));
    assert_eq!(world.amf.audit().registered, 1);
    let leave = phone.deregistration_request(false);
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    let request = phone.initial_nas(request);
    phone.send_pdu(&mut world, request.clone());
    phone.accepted(&mut world);
    phone.send(&mut world, RegistrationComplete::new());
    attacker.connect(&mut world, request);
    assert!(matches!(attacker.receive(&mut world), GmmMessage::IdentityRequest(_)));
    phone.send(&mut world, leave);
    assert_eq!(world.amf.audit().registered, 0);
}

/// TS 33.512 4.2.2.3.2 (TS 33.501 5.5.2): NIA0 is not selected, neither alone nor beside others.
#[test]
fn tc_nas_null_int_amf() {
    assert!(!config().integrity.contains(&IntegrityAlgorithm::Nia0));
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.capability = UeSecurityCapability::of_5gs(0xe0, 0x80);
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    let GmmMessage::RegistrationReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, GmmCause::UeSecurityCapabilitiesMismatch);
    phone.released(&mut world);
    world.assert_empty();
    let mut phone = Phone { capability: UeSecurityCapability::of_5gs(0xf0, 0xf0), ..Phone::default() };
    phone.register(&mut world);
    assert_ne!(phone.security.unwrap().algorithms().integrity, IntegrityAlgorithm::Nia0);
}

/// TS 33.512 4.2.2.3.3 (TS 33.501 6.7.1.1): the UE's integrity algorithm of highest priority is
/// selected, and SECURITY MODE COMMAND and the messages after it are protected with it.
#[test]
fn tc_nas_int_selection_use_amf() {
    use IntegrityAlgorithm::{Nia1, Nia2, Nia3};
    let cases = [
        ([Nia1, Nia2, Nia3], 0xf0, Nia1),
        ([Nia2, Nia1, Nia3], 0xf0, Nia2),
        ([Nia3, Nia2, Nia1], 0xf0, Nia3),
        ([Nia3, Nia2, Nia1], 0xe0, Nia2),
    ];
    for (priority, ia, selected) in cases {
        let mut config = config();
        config.integrity = priority.to_vec();
        let mut world = World::with(config);
        let mut phone = Phone { capability: UeSecurityCapability::of_5gs(0xe0, ia), ..Phone::default() };
        // The UE verifies each message with the algorithm that the command names.
        phone.register(&mut world);
        assert_eq!(phone.security.unwrap().algorithms().integrity, selected);
        assert_eq!(world.amf.audit().registered, 1);
    }
}

/// TS 33.512 4.2.2.5.1 (TS 33.501 6.12.3): another 5G-GUTI after initial registration, after a mobility
/// update, and after a service request that answers paging; none is predictable from the one before.
#[test]
fn tc_5g_guti_allocation_amf() {
    let (mut world, mut phone) = registered();
    let mut seen: Vec<FiveGTmsi> = vec![phone.guti.unwrap().tmsi];
    for _ in 0..20 {
        phone.establish(&mut world, 5);
        phone.release(&mut world);
        let request = phone.registration_request(RegistrationKind::MobilityUpdating);
        let nas = phone.initial_nas(request);
        phone.connect(&mut world, nas);
        assert!(phone.accepted(&mut world).guti.is_some(), "mobility update");
        phone.context_setup_response(&mut world, &[]);
        phone.send(&mut world, RegistrationComplete::new());
        seen.push(phone.guti.unwrap().tmsi);
        phone.release(&mut world);
        world.request(transfer(5, None, Some((NgapIe::PduResSetupReq, b"setup")))).unwrap();
        let request = phone.service_request(ServiceType::MobileTerminatedServices);
        let nas = phone.initial_nas(request);
        world.downlinks.clear();
        phone.connect(&mut world, nas);
        assert!(matches!(phone.receive(&mut world), GmmMessage::ServiceAccept(_)));
        phone.context_setup_response(&mut world, &[5]);
        let GmmMessage::ConfigurationUpdateCommand(command) = phone.receive(&mut world) else { panic!() };
        let Some(MobileIdentity::FiveGGuti(guti)) = command.guti else {
            panic!("service request after paging")
        };
        phone.guti = Some(guti);
        phone.send(&mut world, ConfigurationUpdateComplete::new());
        seen.push(guti.tmsi);
        let request = phone.registration_request(RegistrationKind::Initial);
        let nas = phone.initial_nas(request);
        phone.release(&mut world);
        phone.connect(&mut world, nas);
        assert!(phone.accepted(&mut world).guti.is_some(), "initial registration");
        phone.context_setup_response(&mut world, &[]);
        phone.send(&mut world, RegistrationComplete::new());
        seen.push(phone.guti.unwrap().tmsi);
    }
    let steps: std::collections::BTreeSet<u32> =
        seen.windows(2).map(|pair| pair[1].0.wrapping_sub(pair[0].0)).collect();
    assert!(steps.len() > seen.len() - 4, "no 5G-TMSI follows from the one before");
    seen.sort_by_key(|tmsi| tmsi.0);
    seen.dedup();
    assert_eq!(seen.len(), 61);
}

/// TS 33.512 4.2.2.6.1 (TS 24.501 5.5.1.2.8): a UE security capability without ciphering or integrity algorithms, or without
/// the mandatory ones, is rejected, before the UE is challenged.
#[test]
fn tc_ue_sec_cap_handling_amf() {
    for (ea, ia) in [(0, 0xe0), (0xe0, 0), (0, 0), (0x10, 0xe0), (0x80, 0xe0), (0xe0, 0x10), (0xe0, 0x80)] {
        let (mut world, mut phone) = (World::new(), Phone::default());
        phone.capability = UeSecurityCapability::of_5gs(ea, ia);
        let request = phone.registration_request(RegistrationKind::Initial);
        let nas = phone.initial_nas(request);
        phone.connect(&mut world, nas);
        let GmmMessage::RegistrationReject(reject) = phone.receive(&mut world) else {
            panic!("{ea:x} {ia:x}")
        };
        assert_eq!(reject.cause, GmmCause::UeSecurityCapabilitiesMismatch);
        phone.released(&mut world);
        world.assert_empty();
    }
}

/// TS 33.512 4.2.2.6.2 (TS 33.501 6.7.3.0): INITIAL CONTEXT SETUP REQUEST has the capability that the UE sent under
/// protection.
#[test]
fn tc_ue_sec_caps_as_context_setup() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    phone.capability = UeSecurityCapability::of_5gs_and_eps(0xf0, 0xe0, 0xe0, 0xf0);
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request.clone());
    phone.connect(&mut world, nas);
    phone.secure(&mut world, request);
    let Message::InitialContextSetupRequest(setup) = world.next() else { panic!() };
    let sent = setup.security_capabilities;
    assert_eq!((sent.nr_encryption, sent.nr_integrity), (0xe000, 0xc000));
    assert_eq!((sent.eutra_encryption, sent.eutra_integrity), (0xc000, 0xe000));
}

/// TS 33.512 4.2.2.8.1 (TS 23.501 5.15.5.3, TS 24.501 5.4.5.2.3): a session in a slice that is not in the Allowed NSSAI is
/// not forwarded to an SMF.
#[test]
fn tc_validation_snssai_in_pdu_request() {
    let (mut world, mut phone) = registered();
    let refused = [Snssai::of_sst(2), Snssai::of_sst(200), Snssai { sst: 1, sd: Some([0, 0, 1]) }];
    for slice in refused {
        let mut request = establishment(5);
        request.snssai = Some(slice.into());
        phone.send(&mut world, request);
        assert!(!world.take_ladder().contains("smf"), "{slice:?}");
        let GmmMessage::DlNasTransport(back) = phone.receive(&mut world) else { panic!() };
        assert_eq!(back.cause, Some(GmmCause::PayloadWasNotForwarded));
        assert_eq!(back.payload_container, b"establish");
    }
    let mut request = establishment(5);
    request.snssai = Some(Snssai::of_sst(1).into());
    phone.send(&mut world, request);
    assert!(world.take_ladder().contains("smf  <- PostSmContexts"));
}
