//! Radios that do not answer, or answer late: what outsiders found with gNBs of their own.

use super::handover_between_amfs::take_message;
use super::n2_handover::{AT_TARGET, acknowledge, answer, commanded, connected, notify, requested, require};
use super::world::*;
use super::xn_handover;
use crate::kit::{Input, N2Input, Timer};
use pith_nas::GmmMessage;
use pith_nas::ie::RegistrationKind;
use pith_ngap::{
    Cause, CauseProtocol, HandoverRequest, UeContextReleaseCommand, UplinkNasTransport, UserLocation,
};
use pith_sbi::nsmf_pdusession::N2SmInfoType;
use pith_sbi::{Operation, Response};
use pith_types::{Ambr, Snssai, Tac, Tai};
use std::sync::Arc;

fn set_up(world: &mut World, id: u8) {
    let setup = transfer(id, Some(b"accept"), Some((NgapIe::PduResSetupReq, b"setup")));
    assert!(world.request(setup).is_ok());
    let _ = take_message!(world, GNB, PduSessionResourceSetupRequest);
}

fn set_up_response(world: &mut World, phone: &Phone, id: u8) {
    let response = pith_ngap::PduSessionResourceSetupResponse {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        setup: Some(transfers(&[id])),
        failed: None,
        diagnostics: None,
    };
    world.ngap(GNB, "PduSessionResourceSetupResponse", response.encode());
}

/// It answers for other sessions only, or not at all: the session would stay in activation, and a service request would say that it has a user
/// plane. The other sessions go on.
#[test]
fn a_setup_that_the_gnb_does_not_answer_has_failed() {
    let (mut world, mut phone) = connected(&[]);
    for id in [5, 6] {
        phone.send(&mut world, establishment(id));
        set_up(&mut world, id);
    }
    set_up_response(&mut world, &phone, 5);
    assert!(world.running().contains(&Timer::NgapGuard), "session 6 waits");
    world.calls.clear();
    world.expire(Timer::NgapGuard);
    assert_eq!(super::n2_handover::updates(&world)[0].n2_sm_info_type, Some(N2SmInfoType::PduResSetupFail));
    // The answer may be lost: the gNB releases the resources. A late answer changes nothing.
    let release = take_message!(world, GNB, PduSessionResourceReleaseCommand);
    assert_eq!(release.sessions[0].pdu_session_id, 6);
    set_up_response(&mut world, &phone, 6);
    assert!(world.downlinks.is_empty() && world.running().contains(&Timer::NgapGuard));
    world.expire(Timer::NgapGuard);
    assert!(world.downlinks.is_empty() && !world.running().contains(&Timer::NgapGuard));
    assert_eq!(world.amf.audit().connected, 1);
}

/// The gNB of an Xn handover does not answer what the source gNB was asked.
#[test]
fn a_path_switch_ends_the_wait_for_the_source_gnb() {
    let (mut world, mut phone) = connected(&[5]);
    phone.send(&mut world, establishment(6));
    set_up(&mut world, 6);
    xn_handover::switch(&mut world, OTHER_GNB, &xn_handover::request(phone.amf_id.unwrap(), &[5]));
    assert!(!world.running().contains(&Timer::NgapGuard), "{:?}", world.running());
}

/// The timer is that of the context setup, too.
#[test]
fn an_answer_without_sessions_does_not_end_the_wait_for_a_context() {
    let (mut world, mut phone) = connected(&[]);
    phone.release(&mut world);
    let request = phone.service_request(pith_nas::ie::ServiceType::Signalling);
    let request = phone.initial_nas(request);
    world.downlinks.clear();
    phone.connect(&mut world, request);
    let _ = phone.receive(&mut world);
    assert!(world.running().contains(&Timer::NgapGuard), "INITIAL CONTEXT SETUP REQUEST");
    super::unanswered_requests::setup_response_without_sessions(&mut world, &phone);
    assert!(world.running().contains(&Timer::NgapGuard));
}

#[test]
fn an_answered_setup_is_not_guarded() {
    let (mut world, mut phone) = connected(&[]);
    for id in [5, 6] {
        phone.send(&mut world, establishment(id));
        set_up(&mut world, id);
    }
    set_up_response(&mut world, &phone, 5);
    set_up_response(&mut world, &phone, 6);
    assert!(!world.running().contains(&Timer::NgapGuard));
}

/// INITIAL CONTEXT SETUP RESPONSE without the sessions of its request.
#[test]
fn sessions_that_a_context_setup_does_not_name_have_failed() {
    let (mut world, mut phone) = connected(&[5]);
    world.script.remove(&Operation::UpdateSmContext);
    phone.release(&mut world);
    let mut request = phone.service_request(pith_nas::ie::ServiceType::Data);
    request.uplink_data_status = Some([5].into_iter().collect());
    let request = phone.initial_nas(request);
    world.downlinks.clear();
    phone.connect(&mut world, request);
    let _ = phone.receive(&mut world);
    phone.context_setup_response(&mut world, &[]);
    world.script.insert(Operation::UpdateSmContext, None);
    world.expire(Timer::NgapGuard);
    assert_eq!(super::n2_handover::updates(&world)[0].n2_sm_info_type, Some(N2SmInfoType::PduResSetupFail));
    assert_eq!(world.amf.audit().connected, 1);
}

fn tac_of(world: &World) -> Tac {
    let location = world.amf.ues.iter().next().and_then(|(_, ue)| ue.location);
    location.expect("a location").tai.tac
}

/// The associations of two gNBs have no common order.
#[test]
fn a_late_message_of_the_former_gnb_says_nothing_about_the_location() {
    let there = Tai { tac: Tac::new(2), ..tai() };
    let mut world = World::with(crate::amf::AmfConfig { tais: vec![tai(), there], ..config() });
    let mut phone = Phone::default();
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    world.script.insert(Operation::UpdateSmContext, None);
    let info = World::gnb_info(OTHER_GNB);
    let info = crate::kit::GnbInfo { supported: vec![(there, vec![Snssai::of_sst(1)])], ..info };
    world.input(Input::N2(N2Input::GnbUp { gnb: OTHER_GNB, info: Arc::new(info) }));
    let location = Some(pith_ngap::UserLocation { tai: there, ..location() });
    let switch =
        pith_ngap::PathSwitchRequest { location, ..xn_handover::request(phone.amf_id.unwrap(), &[5]) };
    xn_handover::switch(&mut world, OTHER_GNB, &switch);
    world.reply_to(Operation::UpdateSmContext, xn_handover::acknowledged());
    xn_handover::acknowledge(&mut world, OTHER_GNB);
    assert_eq!(tac_of(&world), Tac::new(2));
    // It was in transit: a periodic update, from where the UE was.
    let request = phone.registration_request(RegistrationKind::PeriodicUpdating);
    phone.send(&mut world, request);
    assert_eq!(tac_of(&world), Tac::new(2));
    assert_eq!(world.amf.audit().registered, 1, "slices of its cell are allowed");
}

/// The answer would go to the source gNB, where the UE is no longer.
#[test]
fn a_message_before_handover_notify_changes_nothing() {
    let (mut world, mut phone, id) = commanded(&[5]);
    let request = phone.registration_request(RegistrationKind::MobilityUpdating);
    let nas_pdu = phone.nas(request);
    let message =
        UplinkNasTransport { amf_ue_ngap_id: id, ran_ue_ngap_id: AT_TARGET, nas_pdu, location: None };
    world.ngap(OTHER_GNB, "UplinkNasTransport", message.encode());
    assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
    notify(&mut world, id);
    answer(&mut world, None);
    let _: UeContextReleaseCommand = take_message!(world, GNB, UeContextReleaseCommand);
    assert_eq!((world.amf.audit().registered, world.amf.audit().in_procedure), (1, 0));
}

/// TS 38.413 10.4: with the cause of an unknown UE the gNB would release it (10.6).
#[test]
fn a_repeated_acknowledge_does_not_fit_the_state() {
    let (mut world, _, request) = requested(&[5]);
    let id = request.amf_ue_ngap_id;
    acknowledge(&mut world, id, &[5], &[]);
    acknowledge(&mut world, id, &[5], &[]);
    let error = take_message!(world, OTHER_GNB, ErrorIndication);
    let cause = CauseProtocol::message_not_compatible_with_receiver_state;
    assert_eq!(error.cause, Some(Cause::Protocol(cause)));
    answer(&mut world, Some(N2SmInfoType::HandoverCmd));
    let _ = take_message!(world, GNB, HandoverCommand);
}

/// HANDOVER REQUEST had the former one (TS 23.501 5.7.1.8).
#[test]
fn the_target_gnb_gets_a_ue_ambr_that_has_changed_during_the_handover() {
    let (mut world, phone) = connected(&[5]);
    require(&mut world, &phone, &[5]);
    answer(&mut world, Some(N2SmInfoType::PduResSetupReq));
    let request: HandoverRequest = take_message!(world, OTHER_GNB, HandoverRequest);
    let id = request.amf_ue_ngap_id;
    let ambr: Ambr = serde_json::from_str(r#"{"uplink": "7 Mbps", "downlink": "9 Mbps"}"#).unwrap();
    let mut data = subscription(&[1]);
    data.am_data.as_mut().unwrap().subscribed_ue_ambr = Some(ambr);
    world.script.insert(Operation::GetDataSets, Some(Ok(Response::SubscriptionDataSets(Box::new(data)))));
    super::subscription_change::notified(&mut world);
    let modification = take_message!(world, GNB, UeContextModificationRequest);
    assert_eq!(modification.ue_ambr, Some(ambr));
    acknowledge(&mut world, id, &[5], &[]);
    answer(&mut world, Some(N2SmInfoType::HandoverCmd));
    let _ = take_message!(world, GNB, HandoverCommand);
    notify(&mut world, id);
    answer(&mut world, None);
    let _: UeContextReleaseCommand = take_message!(world, GNB, UeContextReleaseCommand);
    let modification = take_message!(world, OTHER_GNB, UeContextModificationRequest);
    assert_eq!((modification.amf_ue_ngap_id, modification.ue_ambr), (id, Some(ambr)));
    assert!(world.downlinks.is_empty(), "{:?}", world.downlinks);
}

/// TS 23.501 5.15.5.2.1: the allowed slices are those of each tracking area in the registration area.
#[test]
fn a_tracking_area_without_the_allowed_slices_is_not_in_the_registration_area() {
    let there = Tai { tac: Tac::new(2), ..tai() };
    let elsewhere = Tai { tac: Tac::new(3), ..tai() };
    for (slice, is_there) in [(1, true), (2, false)] {
        let mut config = config();
        config.tais = vec![tai(), there, elsewhere];
        config.plmns[0].slices.push(Snssai::of_sst(2));
        let mut world = World::with(config);
        let info = World::gnb_info(OTHER_GNB);
        let supported = vec![(there, vec![Snssai::of_sst(slice)])];
        let info = crate::kit::GnbInfo { supported, ..info };
        world.input(Input::N2(N2Input::GnbUp { gnb: OTHER_GNB, info: Arc::new(info) }));
        let mut phone = Phone::default();
        phone.register(&mut world);
        let (_, ue) = world.amf.ues.iter().next().unwrap();
        assert_eq!(ue.slices.allowed, [Snssai::of_sst(1)]);
        let area = [Some(tai()), is_there.then_some(there), Some(elsewhere)];
        assert_eq!(ue.registration_area, area.into_iter().flatten().collect::<Vec<_>>(), "{slice}");
    }
}

/// It speaks for its own tracking areas only: those of others may have other restrictions.
#[test]
fn a_ue_in_a_tracking_area_of_another_gnb_is_not_served() {
    let there = Tai { tac: Tac::new(2), ..tai() };
    let mut config = config();
    config.tais.push(there);
    let mut world = World::with(config);
    let mut phone = Phone { location: UserLocation { tai: there, ..location() }, ..Phone::default() };
    let request = phone.registration_request(RegistrationKind::Initial);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    let GmmMessage::RegistrationReject(reject) = phone.receive(&mut world) else { panic!() };
    assert_eq!(reject.cause, pith_nas::GmmCause::NoSuitableCellsInTrackingArea);
}

/// TS 23.003 2.10.1; TS 23.501 5.18.2a: one gNB broadcasts two networks, and a UE has selected the second.
#[test]
fn a_ue_in_another_network_of_the_amf_gets_a_5g_guti_of_that_network() {
    let plmn = "001/01".parse().unwrap();
    let there = Tai { plmn_id: plmn, ..tai() };
    let mut config = config();
    config.plmns.push(crate::amf::config::ServedPlmn { plmn, slices: vec![Snssai::of_sst(1)] });
    config.tais.push(there);
    let mut world = World::with(config);
    let supported = vec![(tai(), vec![Snssai::of_sst(1)]), (there, vec![Snssai::of_sst(1)])];
    let info = crate::kit::GnbInfo { supported, ..World::gnb_info(GNB) };
    world.input(Input::N2(N2Input::GnbUp { gnb: GNB, info: Arc::new(info) }));
    let location = UserLocation { cell_plmn: plmn, tai: there, ..location() };
    let mut phone = Phone { location, ..Phone::default() };
    phone.register(&mut world);
    assert_eq!(phone.guti.unwrap().guami.plmn_id, plmn);
    phone.release(&mut world);
    // The AMF knows it by its 5G-S-TMSI.
    let request = phone.service_request(pith_nas::ie::ServiceType::Signalling);
    let nas = phone.initial_nas(request);
    phone.connect(&mut world, nas);
    let GmmMessage::ServiceAccept(_) = phone.receive(&mut world) else { panic!("{:?}", world.ladder) };
    // Also in a registration, which has all of it.
    phone.context_setup_response(&mut world, &[]);
    phone.release(&mut world);
    let nas = phone.registration_request(RegistrationKind::PeriodicUpdating);
    let nas = phone.initial_nas(nas);
    world.take_ladder();
    phone.connect(&mut world, nas);
    phone.accepted(&mut world);
    assert!(!world.take_ladder().contains("ausf"), "{:?}", world.ladder);
}
