//! AMF re-allocation (TS 23.502 4.2.2.2.3): the initial AMF serves slice 1 only; the target AMF, of another set, slices 1 and 2.

use super::context_transfer::carry;
use super::deregistration::notified;
use super::handover_between_amfs::{take_message, target_config};
use super::residency::restart;
use super::world::{OTHER_GNB, Phone, World, config, subscription};
use crate::amf::{AmfConfig, EmergencyServices};
use crate::kit::{Input, NetworkFunction, StoreScope, Target, Timer, Tracking};
use crate::testing::Stored;
use pith_nas::gmm::{RegistrationComplete, RegistrationRequest};
use pith_nas::ie::RegistrationKind;
use pith_nas::{GmmCause, GmmMessage};
use pith_ngap::{AmfInformationReroute, InitialUeMessage, Message, RerouteNasRequest};
use pith_sbi::common::{AccessType, NfInstanceId};
use pith_sbi::namf_communication as namf;
use pith_sbi::nnssf_nsselection::{AllowedNssai, AllowedSnssai, AuthorizedNetworkSliceInfo};
use pith_sbi::nsmf_pdusession::SmContextCause;
use pith_sbi::{Cause, Operation, Problem, Request, Response};
use pith_types::Snssai;

/// What the NSSF allows, with the target AMF's set.
fn nssf(allowed: &[u8]) -> AuthorizedNetworkSliceInfo {
    let list: Vec<_> = allowed.iter().map(|sst| AllowedSnssai::new(Snssai::of_sst(*sst))).collect();
    AuthorizedNetworkSliceInfo {
        allowed_nssai_list: vec![AllowedNssai::new(list, AccessType::ThreeGppAccess)],
        rejected_nssai_in_plmn: vec![Snssai::of_sst(7)],
        target_amf_set: Some("999-70-03-002".into()),
        ..Default::default()
    }
}

fn world_of(config: AmfConfig, slices: &[u8], info: AuthorizedNetworkSliceInfo) -> World {
    let mut config = config;
    config.plmns[0].slices = slices.iter().copied().map(Snssai::of_sst).collect();
    let mut world = World::with(config);
    let data = Response::SubscriptionDataSets(Box::new(subscription(&[1, 2])));
    world.script.insert(Operation::GetDataSets, Some(Ok(data)));
    let info = Response::AuthorizedNetworkSliceInfo(Box::new(info));
    world.script.insert(Operation::NsSelectionGet, Some(Ok(info)));
    world
}

/// The initial AMF, the target AMF, whose NSSF would send the UE back, and the UE.
fn worlds(allowed: &[u8]) -> (World, World, Phone) {
    let mut initial = world_of(AmfConfig { name: "amf-1".into(), ..config() }, &[1], nssf(allowed));
    initial.script.insert(Operation::N1MessageNotify, None);
    let back = AuthorizedNetworkSliceInfo { target_amf_set: Some("999-70-02-001".into()), ..nssf(&[1]) };
    let mut target = world_of(target_config(), &[2], back);
    target.script.insert(Operation::UeContextTransfer, None);
    target.script.insert(Operation::RegistrationStatusUpdate, None);
    (initial, target, Phone { gnb: OTHER_GNB, ..Phone::default() })
}

fn request_for(phone: &Phone, kind: RegistrationKind, ssts: &[u8]) -> RegistrationRequest {
    let mut request = phone.registration_request(kind);
    request.requested_nssai = Some(ssts.iter().copied().map(Snssai::of_sst).collect());
    request
}

/// Registers initially with a request for slice 2, up to the NSSF's answer.
fn registers(world: &mut World, phone: &mut Phone) {
    let request = request_for(phone, RegistrationKind::Initial, &[2]);
    let nas = phone.initial_nas(request.clone());
    phone.connect(world, nas);
    phone.secure(world, request);
}

/// A UE that is registered at the initial AMF with slice 1, a session and CM-IDLE, comes back and requests slice 2, too.
fn returns(initial: &mut World, phone: &mut Phone) -> Vec<u8> {
    phone.register(initial);
    phone.establish(initial, 5);
    phone.release(initial);
    initial.take_ladder();
    initial.downlinks.clear();
    let request = request_for(phone, RegistrationKind::MobilityUpdating, &[1, 2]);
    let nas = phone.initial_nas(request);
    phone.connect(initial, nas.clone());
    nas
}

fn passed_on(world: &mut World) -> namf::N1MessageNotify {
    let Request::N1MessageNotify(request) = world.open_call(Operation::N1MessageNotify) else { panic!() };
    *request
}

fn allowed(accept: &pith_nas::gmm::RegistrationAccept) -> Vec<u8> {
    accept.allowed_nssai.as_ref().unwrap().iter().map(|slice| slice.sst).collect()
}

#[test]
fn a_ue_of_another_amfs_slice_is_passed_on_step_by_step() {
    let (mut initial, mut target, mut phone) = worlds(&[2]);
    registers(&mut initial, &mut phone);
    let (_, to, _) = initial.calls.last().unwrap();
    let Target::Service(selection) = to else { panic!("{to:?}") };
    assert_eq!((selection.amf_set, selection.is_other), (Some((3, 2)), true));
    carry(&mut initial, &mut target, Operation::N1MessageNotify);
    assert_eq!(
        target.take_ladder(),
        "\
nf   -> N1MessageNotify
nf   <- 204
udm  <- ThreeGppRegistration
udm  <- GetDataSets
udm  <- SdmSubscribe
pcf  <- CreateAmPolicyAssociation
gnb2 <- InitialContextSetupRequest"
    );
    let Some((_, Message::InitialContextSetupRequest(setup))) = target.downlinks.front() else { panic!() };
    assert_eq!(setup.old_amf.as_deref(), Some("amf-1"), "the gNB learns whose UE it was");
    assert_eq!(setup.ran_ue_ngap_id, phone.ran_id);
    let accept = phone.accepted(&mut target);
    assert_eq!(allowed(&accept), [2]);
    assert_eq!(accept.rejected_nssai.unwrap().0[0].0, Snssai::of_sst(7), "as the NSSF says");
    phone.context_setup_response(&mut target, &[]);
    phone.send(&mut target, RegistrationComplete::new());
    assert_eq!(phone.guti.unwrap().guami, target_config().guami);
    assert_eq!(target.amf.audit().registered, 1);
    let ladder = initial.take_ladder();
    assert!(!ladder.contains("UeContextReleaseCommand"), "the connection is the target's: {ladder}");
    initial.assert_empty();
}

#[test]
fn a_registered_ue_is_passed_on_with_its_session() {
    let (mut initial, _, mut phone) = worlds(&[1, 2]);
    let mut target = world_of(target_config(), &[1, 2], nssf(&[1, 2]));
    returns(&mut initial, &mut phone);
    carry(&mut initial, &mut target, Operation::N1MessageNotify);
    let ladder = initial.take_ladder();
    assert!(!ladder.contains("ReleaseSmContext"), "the session is the target's: {ladder}");
    initial.assert_empty();
    let ladder = target.take_ladder();
    assert!(ladder.contains("smf  <- UpdateSmContext") && !ladder.contains("ausf"), "{ladder}");
    assert_eq!(allowed(&phone.accepted(&mut target)), [1, 2]);
    phone.context_setup_response(&mut target, &[]);
    phone.send(&mut target, RegistrationComplete::new());
    assert_eq!((target.amf.audit().registered, target.amf.audit().sessions), (1, 1));
}

#[test]
fn a_session_of_a_slice_that_does_not_go_along_is_released() {
    let (mut initial, mut target, mut phone) = worlds(&[2]);
    returns(&mut initial, &mut phone);
    carry(&mut initial, &mut target, Operation::N1MessageNotify);
    assert!(initial.take_ladder().contains("ReleaseSmContext"));
    initial.assert_empty();
    phone.accepted(&mut target);
    assert_eq!(target.amf.audit().sessions, 0);
}

/// The target AMF's messages before the context setup name the old AMF until the gNB has answered.
#[test]
fn a_target_amf_that_prefers_other_algorithms_authenticates_the_ue() {
    let (mut initial, _, mut phone) = worlds(&[2]);
    let integrity = vec![pith_crypto::nas::IntegrityAlgorithm::Nia1];
    let mut target = world_of(AmfConfig { integrity, ..target_config() }, &[2], nssf(&[2]));
    registers(&mut initial, &mut phone);
    carry(&mut initial, &mut target, Operation::N1MessageNotify);
    let Some((_, Message::DownlinkNasTransport(challenge))) = target.downlinks.front() else { panic!() };
    assert_eq!(challenge.old_amf.as_deref(), Some("amf-1"));
    let GmmMessage::AuthenticationRequest(_) = phone.receive(&mut target) else { panic!() };
    phone.send(&mut target, Phone::authentication_response());
    let Some((_, Message::DownlinkNasTransport(command))) = target.downlinks.front() else { panic!() };
    assert_eq!(command.old_amf, None, "the gNB knows");
    let request = request_for(&phone, RegistrationKind::Initial, &[2]);
    let GmmMessage::SecurityModeCommand(_) = phone.receive(&mut target) else { panic!() };
    let complete = phone.security_mode_complete(request);
    phone.send_pdu(&mut target, complete);
    assert_eq!(allowed(&phone.accepted(&mut target)), [2]);
}

#[test]
fn candidates_are_asked_one_after_the_other() {
    let candidates: Vec<_> = [7, 21, 22, 23, 24].map(NfInstanceId::from_random).to_vec();
    let (mut initial, mut target, mut phone) = worlds(&[2]);
    let info = AuthorizedNetworkSliceInfo { candidate_amf_list: candidates.clone(), ..nssf(&[2]) };
    let info = Response::AuthorizedNetworkSliceInfo(Box::new(info));
    initial.script.insert(Operation::NsSelectionGet, Some(Ok(info)));
    registers(&mut initial, &mut phone);
    for candidate in &candidates[1..4] {
        let (_, to, _) = initial.calls.last().unwrap();
        assert_eq!(*to, Target::Instance(*candidate), "not this AMF itself, and three at most");
        initial.reply_to(Operation::N1MessageNotify, Err(Problem::of_status(403).into()));
    }
    assert!(matches!(initial.calls.last(), Some((_, Target::Service(_), _))), "then the set");
    carry(&mut initial, &mut target, Operation::N1MessageNotify);
    phone.accepted(&mut target);
    initial.assert_empty();
}

#[test]
fn a_ue_that_no_other_amf_takes_gets_the_slices_of_this_one() {
    let (mut initial, _, mut phone) = worlds(&[2]);
    registers(&mut initial, &mut phone);
    initial.reply_to(Operation::N1MessageNotify, Err(Problem::new(Cause::NfDiscoveryFailure).into()));
    assert_eq!(allowed(&phone.accepted(&mut initial)), [1], "the default slice");
    assert!(!initial.take_ladder().contains("RerouteNasRequest"), "the UE has this AMF's security context");
}

#[test]
fn a_ue_whose_slices_only_another_amf_has_is_rejected_if_that_does_not_take_it() {
    let (mut initial, _, mut phone) = worlds(&[2]);
    let data = Response::SubscriptionDataSets(Box::new(subscription(&[2])));
    initial.script.insert(Operation::GetDataSets, Some(Ok(data)));
    registers(&mut initial, &mut phone);
    initial.reply_to(Operation::N1MessageNotify, Err(Problem::new(Cause::NfDiscoveryFailure).into()));
    let GmmMessage::RegistrationReject(reject) = phone.receive(&mut initial) else { panic!() };
    assert_eq!(reject.cause, GmmCause::NoNetworkSlicesAvailable);
    phone.released(&mut initial);
    initial.assert_empty();
}

/// TS 38.413 8.6.5: the UE was sent nothing, so any AMF may begin with its first message.
#[test]
fn a_verified_ue_is_rerouted_over_its_gnb_if_no_amf_takes_it_directly() {
    let (mut initial, mut target, mut phone) = worlds(&[1, 2]);
    let nas = returns(&mut initial, &mut phone);
    initial.reply_to(Operation::N1MessageNotify, Err(Problem::new(Cause::NfDiscoveryFailure).into()));
    let reroute: RerouteNasRequest = take_message!(initial, OTHER_GNB, RerouteNasRequest);
    assert_eq!((reroute.ran_ue_ngap_id, reroute.amf_set_id), (phone.ran_id, 2));
    let Ok(Message::InitialUeMessage(message)) = Message::decode(&reroute.ngap_message) else { panic!() };
    assert_eq!(message.nas_pdu, nas);
    let audit = initial.amf.audit();
    assert_eq!((audit.registered, audit.connected, audit.connections), (1, 0, 0), "CM-IDLE");
    assert!(initial.running().contains(&Timer::MobileReachable));
    // The gNB's part.
    let message = InitialUeMessage {
        amf_set_id: Some(reroute.amf_set_id),
        allowed_nssai: reroute.allowed_nssai,
        reroute: reroute.reroute,
        ..message
    };
    let plmn = AmfInformationReroute { rejected_in_plmn: vec![Snssai::of_sst(7)], ..Default::default() };
    assert_eq!(message.reroute, Some(plmn));
    target.ngap(OTHER_GNB, "InitialUeMessage", message.encode());
    carry(&mut target, &mut initial, Operation::UeContextTransfer);
    carry(&mut target, &mut initial, Operation::RegistrationStatusUpdate);
    initial.assert_empty();
    let accept = phone.accepted(&mut target);
    assert_eq!(allowed(&accept), [2], "and not back to the initial AMF for slice 1");
    assert!(!target.take_ladder().contains("NsSelectionGet"));
}

#[test]
fn the_context_of_a_rerouted_ue_is_given_away_once_and_for_its_own_message() {
    let (mut initial, _, mut phone) = worlds(&[1, 2]);
    let nas = returns(&mut initial, &mut phone);
    assert!(requests_context(&mut initial, &phone, &nas).is_err(), "it was not rerouted");
    initial.reply_to(Operation::N1MessageNotify, Err(Problem::new(Cause::NfDiscoveryFailure).into()));
    let mut other = nas.clone();
    *other.last_mut().unwrap() ^= 1;
    assert!(requests_context(&mut initial, &phone, &other).is_err());
    assert!(requests_context(&mut initial, &phone, &[]).is_err());
    assert!(requests_context(&mut initial, &phone, &nas).is_ok());
    assert!(requests_context(&mut initial, &phone, &nas).is_err(), "a replay");
}

/// UEContextTransfer with a message that was verified before.
fn requests_context(world: &mut World, phone: &Phone, nas: &[u8]) -> pith_sbi::Reply {
    let mut body =
        namf::UeContextTransferReqData::new(namf::TransferReason::MobiReg, AccessType::ThreeGppAccess);
    body.reg_request = Some(namf::N1MessageContainer::new(namf::N1MessageClass::FiveGmm, nas.to_vec()));
    let ue_context_id = pith_sbi::common::UeContextId::FiveGGuti(phone.guti.unwrap());
    world.request(namf::UeContextTransfer { ue_context_id, body })
}

#[test]
fn the_context_of_a_rerouted_ue_is_given_away_for_a_short_time_only() {
    for restarts in [false, true] {
        let (mut initial, _, mut phone) = worlds(&[1, 2]);
        initial.amf.track_contexts(Tracking::default());
        let nas = returns(&mut initial, &mut phone);
        initial.reply_to(Operation::N1MessageNotify, Err(Problem::new(Cause::NfDiscoveryFailure).into()));
        if restarts {
            let mut stored = Stored::default();
            stored.store(&mut initial.amf, StoreScope::Changed);
            restart(&mut initial, &stored, (1, 0), false);
        } else {
            initial.expire(Timer::ReroutedMessage);
        }
        assert_eq!(initial.amf.audit().registered, 1);
        assert!(requests_context(&mut initial, &phone, &nas).is_err(), "restart: {restarts}");
    }
}

#[test]
fn a_rerouted_ue_without_a_context_is_authenticated_by_the_target_amf() {
    let (_, mut target, mut phone) = worlds(&[2]);
    let request = request_for(&phone, RegistrationKind::Initial, &[2]);
    let nas_pdu = phone.initial_nas(request.clone());
    let message = InitialUeMessage {
        ran_ue_ngap_id: phone.ran_id,
        nas_pdu,
        location: phone.location,
        establishment_cause: None,
        s_tmsi: None,
        amf_set_id: Some(2),
        ue_context_request: Some(()),
        allowed_nssai: None,
        reroute: None,
    };
    target.ngap(OTHER_GNB, "InitialUeMessage", message.encode());
    assert_eq!(allowed(&phone.authenticate(&mut target, request)), [2]);
    assert!(!target.take_ladder().contains("NsSelectionGet"), "the initial AMF has asked");
}

/// Two AMFs that name each other: the second one keeps the UE, with what it serves or with a reject.
#[test]
fn no_ue_goes_around_between_amfs() {
    let (mut initial, mut target, mut phone) = worlds(&[2]);
    target.script.insert(Operation::N1MessageNotify, None);
    let data = Response::SubscriptionDataSets(Box::new(subscription(&[1])));
    target.script.insert(Operation::GetDataSets, Some(Ok(data)));
    registers(&mut initial, &mut phone);
    carry(&mut initial, &mut target, Operation::N1MessageNotify);
    assert!(target.calls.is_empty(), "neither NSSF nor another AMF");
    let GmmMessage::RegistrationReject(reject) = phone.receive(&mut target) else { panic!() };
    assert_eq!(reject.cause, GmmCause::NoNetworkSlicesAvailable);
    phone.released(&mut target);
    target.assert_empty();
}

#[test]
fn a_set_that_is_this_amfs_own_is_no_target() {
    for set in ["999-70-02-001", "998-70-03-002", "nonsense"] {
        let (mut initial, _, mut phone) = worlds(&[2]);
        let info = AuthorizedNetworkSliceInfo { target_amf_set: Some(set.into()), ..nssf(&[2]) };
        let info = Response::AuthorizedNetworkSliceInfo(Box::new(info));
        initial.script.insert(Operation::NsSelectionGet, Some(Ok(info)));
        registers(&mut initial, &mut phone);
        assert_eq!(allowed(&phone.accepted(&mut initial)), [1], "{set}");
    }
}

#[test]
fn a_connected_ue_is_not_passed_on() {
    let (mut initial, _, mut phone) = worlds(&[2]);
    phone.register(&mut initial);
    let request = request_for(&phone, RegistrationKind::MobilityUpdating, &[2]);
    phone.send(&mut initial, request);
    assert_eq!(allowed(&phone.accepted(&mut initial)), [1]);
}

/// Candidates of an NSSF.
fn names_candidates(world: &mut World, candidates: &[u128]) {
    let candidate_amf_list = candidates.iter().map(|number| NfInstanceId::from_random(*number)).collect();
    let info = AuthorizedNetworkSliceInfo { candidate_amf_list, ..nssf(&[2]) };
    let info = Response::AuthorizedNetworkSliceInfo(Box::new(info));
    world.script.insert(Operation::NsSelectionGet, Some(Ok(info)));
}

/// The target AMF may have the UE or not: the UE is released, and tries again. No other AMF gets it.
#[test]
fn without_an_answer_of_the_target_amf_the_ue_is_released() {
    let broken = Problem::new(Cause::NetworkFailure);
    for problem in [Problem::timed_out(), broken, Problem::of_status(502), Problem::of_status(504)] {
        let (mut initial, _, mut phone) = worlds(&[2]);
        names_candidates(&mut initial, &[21, 22]);
        registers(&mut initial, &mut phone);
        initial.reply_to(Operation::N1MessageNotify, Err(problem.into()));
        assert!(initial.calls.is_empty(), "{:?}", initial.calls);
        let ladder = initial.take_ladder();
        assert!(!ladder.contains("DownlinkNasTransport\ngnb2 <- UeContextRelease"), "no reject: {ladder}");
        phone.released(&mut initial);
        initial.assert_empty();
    }
}

#[test]
fn after_an_amf_that_was_not_reached_the_next_one_is_asked() {
    let (mut initial, _, mut phone) = worlds(&[2]);
    names_candidates(&mut initial, &[21, 22]);
    registers(&mut initial, &mut phone);
    initial.reply_to(Operation::N1MessageNotify, Err(Problem::not_reachable("refused").into()));
    let (_, to, _) = initial.calls.last().expect("the next candidate gets it");
    assert_eq!(*to, Target::Instance(NfInstanceId::from_random(22)));
}

#[test]
fn a_registered_ue_stays_registered_without_an_answer_of_the_target_amf() {
    let (mut initial, _, mut phone) = worlds(&[1, 2]);
    returns(&mut initial, &mut phone);
    initial.reply_to(Operation::N1MessageNotify, Err(Problem::timed_out().into()));
    phone.released(&mut initial);
    assert_eq!((initial.amf.audit().registered, initial.amf.audit().sessions), (1, 1));
    // The UDM says later that the target AMF has it: it may have the session.
    notified(&mut initial, "UE_REGISTRATION_AREA_CHANGE");
    initial.expire(Timer::TransferredContext);
    assert!(!initial.take_ladder().contains("ReleaseSmContext"));
    initial.assert_empty();
}

/// The target AMF's registration at the UDM may be faster than its answer.
#[test]
fn the_udms_notification_before_the_answer_means_that_the_target_amf_has_the_ue() {
    for answer in [Ok(Response::NoContent), Err(Problem::timed_out().into())] {
        let (mut initial, _, mut phone) = worlds(&[1, 2]);
        returns(&mut initial, &mut phone);
        notified(&mut initial, "UE_REGISTRATION_AREA_CHANGE");
        initial.reply_to(Operation::N1MessageNotify, answer);
        let ladder = initial.take_ladder();
        assert!(!ladder.contains("ReleaseSmContext") && !ladder.contains("UpdateThreeGpp"), "{ladder}");
        initial.assert_empty();
    }
}

/// The target AMF registers in the UDM, and then refuses.
#[test]
fn an_amf_that_keeps_the_ue_after_all_registers_in_the_udm_again() {
    let (mut initial, _, mut phone) = worlds(&[2]);
    registers(&mut initial, &mut phone);
    notified(&mut initial, "UE_REGISTRATION_AREA_CHANGE");
    initial.take_ladder();
    initial.reply_to(Operation::N1MessageNotify, Err(Problem::of_status(403).into()));
    let ladder = initial.take_ladder();
    for operation in ["ThreeGppRegistration", "GetDataSets", "SdmSubscribe"] {
        assert!(ladder.contains(operation), "{operation}: {ladder}");
    }
    assert!(!ladder.contains("NsSelectionGet"), "{ladder}");
    assert_eq!(allowed(&phone.accepted(&mut initial)), [1]);
    phone.context_setup_response(&mut initial, &[]);
    phone.send(&mut initial, RegistrationComplete::new());
    assert_eq!((initial.amf.audit().registered, initial.amf.audit().in_procedure), (1, 0));
    let request = phone.deregistration_request(true);
    phone.send(&mut initial, request);
    assert!(initial.take_ladder().contains("UpdateThreeGppRegistration"), "it purges its registration");
}

#[test]
fn a_ue_of_the_target_amf_ends_also_if_its_connection_is_lost_before_the_answer() {
    let (mut initial, _, mut phone) = worlds(&[1, 2]);
    returns(&mut initial, &mut phone);
    notified(&mut initial, "UE_REGISTRATION_AREA_CHANGE");
    initial.input(Input::N2(crate::kit::N2Input::Reset { gnb: OTHER_GNB, ues: None }));
    initial.take_ladder();
    initial.expire(Timer::TransferredContext);
    assert!(!initial.take_ladder().contains("ReleaseSmContext"), "the target AMF may have the session");
    assert_eq!(initial.amf.audit().registered, 0);
}

#[test]
fn a_gnb_that_is_lost_meanwhile_ends_the_registration() {
    let (mut initial, _, mut phone) = worlds(&[2]);
    registers(&mut initial, &mut phone);
    initial.input(Input::N2(crate::kit::N2Input::GnbDown { gnb: OTHER_GNB }));
    initial.reply_to(Operation::N1MessageNotify, Ok(Response::NoContent));
    initial.assert_empty();
}

#[test]
fn what_another_amf_passes_on_is_checked() {
    type Change = fn(&mut namf::N1MessageNotify);
    fn container(request: &mut namf::N1MessageNotify) -> &mut namf::RegistrationContextContainer {
        request.body.registration_ctxt_container.as_mut().unwrap()
    }
    let changes: [(&str, u16, Change); 13] = [
        ("no name", 400, |it| container(it).initial_amf_name = "".into()),
        ("a name that is no PrintableString", 400, |it| container(it).initial_amf_name = "amf_1".into()),
        ("a long name", 400, |it| container(it).initial_amf_name = "a".repeat(151).into()),
        ("no container", 400, |it| it.body.registration_ctxt_container = None),
        ("another reference", 404, |it| {
            it.uri = "http://127.0.0.2:7000/namf-callback/v1/n1-message/x".parse().unwrap()
        }),
        ("no SUPI", 400, |it| container(it).ue_context.supi = None),
        ("no keys", 400, |it| container(it).ue_context.seaf_data = None),
        ("no NAS message", 400, |it| it.body.n1_message_container.n1_message_content = vec![0x7e].into()),
        ("a service request", 400, |it| {
            let mut phone = Phone::default();
            phone.guti =
                Some(pith_types::FiveGGuti { guami: config().guami, tmsi: pith_types::FiveGTmsi(1) });
            let request = phone.service_request(pith_nas::ie::ServiceType::Data);
            it.body.n1_message_container.n1_message_content = GmmMessage::from(request).encode().into();
        }),
        ("too long", 400, |it| {
            let mut octets = it.body.n1_message_container.n1_message_content.content.to_vec();
            octets.extend([0x71, 0x40, 0]);
            octets.extend([0; 0x4000]);
            it.body.n1_message_container.n1_message_content = octets.into();
        }),
        ("another gNB", 403, |it| {
            container(it).ran_node_id.g_nb_id.as_mut().unwrap().g_nb_value = "00000009".into();
        }),
        ("another tracking area", 403, |it| {
            container(it).user_location.nr_location.as_mut().unwrap().tai.tac = pith_types::Tac::new(99);
        }),
        ("no location", 403, |it| container(it).user_location.nr_location = None),
    ];
    let (mut initial, mut target, mut phone) = worlds(&[2]);
    registers(&mut initial, &mut phone);
    let right = passed_on(&mut initial);
    for (what, status, change) in changes {
        let mut wrong = right.clone();
        change(&mut wrong);
        let problem = target.request(wrong).expect_err(what);
        assert_eq!(problem.status, status, "{what}");
        target.assert_empty();
    }
    assert!(target.request(right).is_ok());
    assert_eq!(target.amf.audit().connected, 1);
}

/// A subscriber's registration at the target AMF, CM-IDLE.
fn registered_at(target: &mut World) {
    let mut former = Phone::default();
    former.register(target);
    former.release(target);
    target.take_ladder();
    target.downlinks.clear();
}

/// Both AMFs serve both slices; the initial one has the UE with a session.
fn with_session() -> (World, World, Phone) {
    let (mut initial, _, mut phone) = worlds(&[1, 2]);
    let target = world_of(target_config(), &[1, 2], nssf(&[1, 2]));
    returns(&mut initial, &mut phone);
    (initial, target, phone)
}

#[test]
fn a_subscriber_who_is_connected_to_the_target_amf_is_not_taken() {
    let (mut initial, mut target, _) = with_session();
    Phone::default().register(&mut target);
    let problem = target.request(passed_on(&mut initial)).unwrap_err();
    assert_eq!(problem.status, 403, "{problem}");
    assert_eq!((target.amf.audit().registered, target.amf.audit().connected), (1, 1));
}

#[test]
fn no_ue_loses_its_connection_to_one_that_is_passed_on() {
    let (mut initial, mut target, phone) = with_session();
    let ran_id = pith_types::RanUeNgapId(phone.ran_id.0 - 1);
    let supi: pith_types::Supi = "imsi-999700000000012".parse().unwrap();
    let mut other = Phone { supi: supi.clone(), ran_id, gnb: OTHER_GNB, ..Phone::default() };
    target.found = supi;
    let request = passed_on(&mut initial);
    let registration = other.registration_request(RegistrationKind::Initial);
    let nas = other.initial_nas(registration.clone());
    other.connect(&mut target, nas);
    assert_eq!(other.ran_id, phone.ran_id);
    other.authenticate(&mut target, registration);
    let problem = target.request(request.clone()).unwrap_err();
    assert_eq!(problem.status, 403, "{problem}");
    assert_eq!((target.amf.audit().registered, target.amf.audit().connected), (1, 1));
    other.context_setup_response(&mut target, &[]);
    other.send(&mut target, RegistrationComplete::new());
    other.release(&mut target);
    assert!(target.request(request).is_ok(), "the id is free");
}

/// Nothing of the subscriber changes on the word of another AMF.
#[test]
fn a_subscriber_who_is_registered_at_the_target_amf_is_authenticated_first() {
    let (mut initial, mut target, mut phone) = with_session();
    registered_at(&mut target);
    target.script.insert(Operation::UpdateSmContext, None);
    carry(&mut initial, &mut target, Operation::N1MessageNotify);
    let ladder = target.take_ladder();
    assert_eq!(
        ladder,
        "nf   -> N1MessageNotify\nnf   <- 204\nausf <- Authenticate\ngnb2 <- DownlinkNasTransport"
    );
    assert_eq!((target.amf.audit().registered, target.amf.audit().sessions), (1, 0));
    let request = request_for(&phone, RegistrationKind::MobilityUpdating, &[1, 2]);
    phone.secure(&mut target, request);
    let Request::UpdateSmContext(update) = target.open_call(Operation::UpdateSmContext) else { panic!() };
    assert_eq!(update.body.serving_nf_id, Some(target_config().identity.instance_id));
    phone.accepted(&mut target);
    phone.context_setup_response(&mut target, &[]);
    phone.send(&mut target, RegistrationComplete::new());
    let audit = target.amf.audit();
    assert_eq!((audit.registered, audit.sessions, audit.half_open, audit.dangling), (1, 1, 0, 0));
}

#[test]
fn a_ue_that_is_not_the_subscriber_takes_nothing_from_its_registration() {
    let (mut initial, mut target, mut phone) = with_session();
    registered_at(&mut target);
    carry(&mut initial, &mut target, Operation::N1MessageNotify);
    let GmmMessage::AuthenticationRequest(_) = phone.receive(&mut target) else { panic!() };
    let mut response = Phone::authentication_response();
    response.res_star = Some([0; 16]);
    phone.send(&mut target, response);
    let GmmMessage::AuthenticationReject(_) = phone.receive(&mut target) else { panic!() };
    phone.released(&mut target);
    let ladder = target.take_ladder();
    assert!(!ladder.contains("SmContext") && !ladder.contains("UpdateThreeGpp"), "{ladder}");
    let audit = target.amf.audit();
    assert_eq!((audit.registered, audit.connected, audit.half_open, audit.dangling), (1, 0, 0, 0));
}

#[test]
fn ues_that_have_sent_nothing_are_limited() {
    let (mut initial, _, mut phone) = worlds(&[2]);
    let mut target = world_of(AmfConfig { max_ues: 16, ..target_config() }, &[2], nssf(&[2]));
    registers(&mut initial, &mut phone);
    let right = passed_on(&mut initial);
    let of_other = |number: u32| {
        let mut request = right.clone();
        let container = request.body.registration_ctxt_container.as_mut().unwrap();
        container.ue_context.supi = format!("imsi-9997000000001{number:02}").parse().ok();
        container.an_n2_ap_id = 50 + number;
        request
    };
    assert!(target.request(right.clone()).is_ok() && target.request(of_other(1)).is_ok());
    assert_eq!(target.request(of_other(2)).unwrap_err().status, 503);
    assert_eq!(target.amf.audit().half_open, 2);
    phone.accepted(&mut target);
    phone.send(&mut target, RegistrationComplete::new());
    assert!(target.request(of_other(2)).is_ok(), "the first one has its keys");
}

/// An initial AMF of another vendor may pass on all sessions.
#[test]
fn a_session_of_a_slice_that_the_target_amf_does_not_serve_ends_there() {
    let (mut initial, _, mut phone) = worlds(&[1, 2]);
    let mut target = world_of(target_config(), &[2], nssf(&[2]));
    target.script.insert(Operation::UpdateSmContext, None);
    returns(&mut initial, &mut phone);
    carry(&mut initial, &mut target, Operation::N1MessageNotify);
    let Request::UpdateSmContext(update) = target.open_call(Operation::UpdateSmContext) else { panic!() };
    let body = update.body;
    assert_eq!((body.release, body.serving_nf_id), (Some(true), Some(target_config().identity.instance_id)));
    assert_eq!(body.cause, Some(SmContextCause::RelDueToSliceNotAvailable));
    let accept = phone.accepted(&mut target);
    assert!(!accept.pdu_session_status.unwrap().contains(5));
    phone.send(&mut target, RegistrationComplete::new());
    assert_eq!((target.amf.audit().registered, target.amf.audit().sessions), (1, 0));
}

#[test]
fn an_emergency_session_goes_along_whatever_its_slice() {
    let (mut initial, _, mut phone) = worlds(&[1, 2]);
    let emergency = EmergencyServices {
        snssai: Snssai::of_sst(1),
        ..super::emergency::with_emergency(0).emergency.unwrap()
    };
    let config = AmfConfig { emergency: Some(emergency), ..target_config() };
    let mut target = world_of(config, &[2], nssf(&[2]));
    returns(&mut initial, &mut phone);
    let mut request = passed_on(&mut initial);
    let container = request.body.registration_ctxt_container.as_mut().unwrap();
    container.ue_context.session_context_list[0].dnn = "sos".parse().unwrap();
    assert!(target.request(request).is_ok());
    assert!(phone.accepted(&mut target).pdu_session_status.unwrap().contains(5));
    let (_, ue) = target.amf.ues.iter().next().unwrap();
    assert_eq!(ue.emergency_session(), Some(5));
}

#[test]
fn the_initial_amf_passes_the_emergency_session_on() {
    let emergency = super::emergency::with_emergency(0).emergency;
    let config = AmfConfig { name: "amf-1".into(), emergency, ..config() };
    let (mut initial, mut phone) =
        (world_of(config, &[1], nssf(&[1])), Phone { gnb: OTHER_GNB, ..Phone::default() });
    initial.script.insert(Operation::N1MessageNotify, None);
    phone.register(&mut initial);
    phone.send(&mut initial, super::emergency::emergency_request(6));
    phone.release(&mut initial);
    initial.downlinks.clear();
    let info = Response::AuthorizedNetworkSliceInfo(Box::new(nssf(&[2])));
    initial.script.insert(Operation::NsSelectionGet, Some(Ok(info)));
    let request = request_for(&phone, RegistrationKind::MobilityUpdating, &[1, 2]);
    let nas = phone.initial_nas(request);
    phone.connect(&mut initial, nas);
    let container = passed_on(&mut initial).body.registration_ctxt_container.unwrap();
    let ids: Vec<_> = container.ue_context.session_context_list.iter().map(|it| it.pdu_session_id).collect();
    assert_eq!(ids, [6]);
}

/// The Global RAN Node ID is that of NG Setup, with its length.
#[test]
fn the_target_amf_gets_the_gnb_id_with_its_length() {
    let (mut initial, _, mut phone) = worlds(&[2]);
    let node = pith_ngap::GlobalRanNodeId::Gnb { plmn: super::world::tai().plmn_id, id: 2, bits: 22 };
    initial.set_up_gnb(OTHER_GNB, crate::kit::GnbInfo { node, ..World::gnb_info(OTHER_GNB) }, false);
    registers(&mut initial, &mut phone);
    let container = passed_on(&mut initial).body.registration_ctxt_container.unwrap();
    let id = container.ran_node_id.g_nb_id.unwrap();
    assert_eq!((id.bit_length, &*id.g_nb_value), (22, "000002"));
}

#[test]
fn a_full_target_amf_refuses() {
    let (mut initial, _, mut phone) = worlds(&[2]);
    let mut target = world_of(AmfConfig { max_ues: 1, ..target_config() }, &[2], nssf(&[2]));
    let mut others = [1, 2].map(|number| {
        let supi = format!("imsi-99970000000001{number}").parse().unwrap();
        Phone { supi, ran_id: pith_types::RanUeNgapId(50 + number), ..Phone::default() }
    });
    for other in &mut others {
        target.found = other.supi.clone();
        let request = other.registration_request(RegistrationKind::Initial);
        let nas = other.initial_nas(request);
        other.connect(&mut target, nas);
    }
    registers(&mut initial, &mut phone);
    let problem = target.request(passed_on(&mut initial)).unwrap_err();
    assert_eq!(problem.status, 503, "NF_CONGESTION");
}

/// A UE whose first message the gNB reroutes, while the target AMF authenticates it: for documents.
pub(super) fn rerouted() -> World {
    let (mut initial, mut target, mut phone) = worlds(&[1, 2]);
    returns(&mut initial, &mut phone);
    initial.reply_to(Operation::N1MessageNotify, Err(Problem::new(Cause::NfDiscoveryFailure).into()));
    let reroute: RerouteNasRequest = take_message!(initial, OTHER_GNB, RerouteNasRequest);
    let Ok(Message::InitialUeMessage(message)) = Message::decode(&reroute.ngap_message) else { panic!() };
    let message = InitialUeMessage {
        amf_set_id: Some(reroute.amf_set_id),
        allowed_nssai: reroute.allowed_nssai,
        reroute: reroute.reroute,
        ..message
    };
    target.ngap(OTHER_GNB, "InitialUeMessage", message.encode());
    target.reply_to(Operation::UeContextTransfer, Err(Problem::context_not_found().into()));
    target
}
