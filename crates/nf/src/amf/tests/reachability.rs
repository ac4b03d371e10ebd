//! UE-specific DRX, extended DRX, MICO mode, and the priority of paging (TS 23.501 5.4.1.3, 5.4.3.2, 5.4.5, 5.31.7.2).

use super::emergency;
use super::handover_between_amfs::take_message;
use super::paging::{comes, data};
use super::world::*;
use crate::amf::{AmfConfig, MicoMode};
use crate::kit::{Duration, Timer};
use pith_nas::gmm::{RegistrationAccept, RegistrationComplete, RegistrationRequest};
use pith_nas::ie::{DrxParameters, ExtendedDrxParameters, GprsTimer3, MicoIndication, RegistrationKind};
use pith_ngap::{
    Message, NrPagingEdrx, NrPagingEdrxCycle, NrPagingTimeWindow, Paging, PagingDrx, PagingPriority,
};
use pith_sbi::common::{Arp, PreemptionCapability, PreemptionVulnerability};
use pith_sbi::{Cause, Operation, Request};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

fn with_everything() -> AmfConfig {
    AmfConfig {
        longest_edrx_cycle: 90 * SECOND,
        mico: Some(MicoMode { t3512: 10 * HOUR, all_plmn_area: false }),
        paging_priorities: vec![2, 5],
        ..config()
    }
}

/// What the UE adds to its requests.
type Wish = fn(&mut RegistrationRequest);

fn wants_drx(request: &mut RegistrationRequest) {
    request.requested_drx_parameters = Some(DrxParameters::T64);
}

fn wants_edrx(request: &mut RegistrationRequest) {
    request.requested_extended_drx_parameters = Some(edrx(9, 3));
}

fn wants_mico(request: &mut RegistrationRequest) {
    request.mico_indication = Some(MicoIndication::default());
}

fn wants_active_time(request: &mut RegistrationRequest) {
    wants_mico(request);
    request.t3324 = Some(GprsTimer3::at_least(60 * SECOND));
}

const fn edrx(value: u8, paging_time_window: u8) -> ExtendedDrxParameters {
    ExtendedDrxParameters { paging_time_window, value, further: Vec::new() }
}

/// Registers initially.
fn registers(world: &mut World, phone: &mut Phone, wish: Wish) -> Box<RegistrationAccept> {
    let mut request = phone.registration_request(RegistrationKind::Initial);
    wish(&mut request);
    let nas = phone.initial_nas(request.clone());
    phone.connect(world, nas);
    let accept = phone.authenticate(world, request);
    phone.context_setup_response(world, &[]);
    phone.send(world, RegistrationComplete::new());
    accept
}

/// The idle UE registers again.
fn updates(
    world: &mut World,
    phone: &mut Phone,
    kind: RegistrationKind,
    wish: Wish,
) -> Box<RegistrationAccept> {
    let mut request = phone.registration_request(kind);
    wish(&mut request);
    let nas = phone.initial_nas(request);
    phone.connect(world, nas);
    let accept = phone.accepted(world);
    if accept.guti.is_some() {
        phone.send(world, RegistrationComplete::new());
    }
    accept
}

/// A registered UE with a session, in CM-IDLE.
fn idle(config: AmfConfig, wish: Wish) -> (World, Phone) {
    let (mut world, mut phone) = (World::with(config), Phone::default());
    registers(&mut world, &mut phone, wish);
    phone.establish(&mut world, 5);
    phone.release(&mut world);
    world.downlinks.clear();
    (world, phone)
}

/// The PAGING that each gNB gets.
fn paged(world: &mut World) -> Paging {
    data(world);
    let paging = take_message!(world, GNB, Paging);
    assert_eq!(take_message!(world, OTHER_GNB, Paging), paging);
    paging
}

#[test]
fn ue_specific_drx_is_negotiated_and_used_in_paging() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    let accept = registers(&mut world, &mut phone, wants_drx);
    assert_eq!(accept.negotiated_drx_parameters, Some(DrxParameters::T64));
    phone.establish(&mut world, 5);
    phone.release(&mut world);
    world.downlinks.clear();
    assert_eq!(paged(&mut world).paging_drx, Some(PagingDrx::v64));
}

#[test]
fn a_reserved_drx_cycle_is_no_preference() {
    for value in [DrxParameters::NotSpecified, DrxParameters::Other(9)] {
        let (mut world, mut phone) = (World::new(), Phone::default());
        let mut request = phone.registration_request(RegistrationKind::Initial);
        request.requested_drx_parameters = Some(value);
        let nas = phone.initial_nas(request.clone());
        phone.connect(&mut world, nas);
        let accept = phone.authenticate(&mut world, request);
        assert_eq!(accept.negotiated_drx_parameters, Some(DrxParameters::NotSpecified));
        phone.context_setup_response(&mut world, &[]);
        phone.send(&mut world, RegistrationComplete::new());
        phone.establish(&mut world, 5);
        phone.release(&mut world);
        world.downlinks.clear();
        assert_eq!(paged(&mut world).paging_drx, None);
    }
}

#[test]
fn a_periodic_update_keeps_ue_specific_drx_and_a_mobility_update_without_it_ends_it() {
    let cycles = [
        (RegistrationKind::PeriodicUpdating, Some(PagingDrx::v64)),
        (RegistrationKind::MobilityUpdating, None),
    ];
    for (kind, drx) in cycles {
        let (mut world, mut phone) = idle(config(), wants_drx);
        let accept = updates(&mut world, &mut phone, kind, |_| {});
        assert_eq!(accept.negotiated_drx_parameters, None);
        phone.release(&mut world);
        world.downlinks.clear();
        assert_eq!(paged(&mut world).paging_drx, drx, "{kind:?}");
    }
}

#[test]
fn a_ue_without_requests_gets_nothing_and_is_paged_as_before() {
    let (mut world, mut phone) = (World::with(with_everything()), Phone::default());
    let accept = registers(&mut world, &mut phone, |_| {});
    assert!(accept.negotiated_drx_parameters.is_none() && accept.mico_indication.is_none());
    assert!(accept.negotiated_extended_drx_parameters.is_none() && accept.t3324.is_none());
    phone.establish(&mut world, 5);
    phone.release(&mut world);
    assert_eq!(world.running(), [Timer::MobileReachable]);
    world.downlinks.clear();
    let paging = paged(&mut world);
    assert_eq!(paging, Paging::new(phone.guti.unwrap().s_tmsi(), vec![tai()]));
}

#[test]
fn without_the_settings_a_ue_gets_neither_extended_drx_nor_mico_mode() {
    let (mut world, mut phone) = (World::new(), Phone::default());
    let accept = registers(&mut world, &mut phone, |request| {
        wants_edrx(request);
        wants_active_time(request);
    });
    assert!(accept.negotiated_extended_drx_parameters.is_none() && accept.mico_indication.is_none());
    assert!(accept.t3324.is_none());
}

#[test]
fn extended_drx_is_negotiated_to_the_longest_cycle_of_the_operator() {
    let granted = |requested: u8| {
        let (mut world, mut phone) = (World::with(with_everything()), Phone::default());
        let mut request = phone.registration_request(RegistrationKind::Initial);
        request.requested_extended_drx_parameters = Some(edrx(requested, 3));
        let nas = phone.initial_nas(request.clone());
        phone.connect(&mut world, nas);
        let accept = phone.authenticate(&mut world, request);
        accept.negotiated_extended_drx_parameters.unwrap()
    };
    // 61.44 s is a cycle of E-UTRA only; 163.84 s and 10485.76 s are longer than the operator's longest.
    for (requested, value) in [(0, 0), (1, 1), (3, 3), (4, 3), (5, 5), (8, 5), (9, 5), (15, 5)] {
        assert_eq!(granted(requested), edrx(value, 3), "requested {requested}");
    }
}

/// Any cycle.
fn with_all_cycles() -> AmfConfig {
    AmfConfig { longest_edrx_cycle: 11_000 * SECOND, ..config() }
}

#[test]
fn the_paging_time_window_is_as_long_as_the_cycle_needs() {
    // Requested value and window, and the granted window: 1.28 s for each unit and one more.
    let windows =
        [(5, 0, 0), (9, 0, 1), (9, 5, 5), (10, 0, 3), (11, 0, 7), (12, 0, 15), (12, 7, 15), (15, 0, 15)];
    for (value, requested, granted) in windows {
        let (mut world, mut phone) = (World::with(with_all_cycles()), Phone::default());
        let mut request = phone.registration_request(RegistrationKind::Initial);
        request.requested_extended_drx_parameters = Some(edrx(value, requested));
        let nas = phone.initial_nas(request.clone());
        phone.connect(&mut world, nas);
        let accept = phone.authenticate(&mut world, request);
        assert_eq!(accept.negotiated_extended_drx_parameters, Some(edrx(value, granted)));
    }
}

#[test]
fn a_cycle_has_64_pagings_at_most() {
    let (mut world, _) = idle(with_all_cycles(), |request| {
        // 327.68 s, and a window of 1.28 s.
        request.requested_extended_drx_parameters = Some(edrx(10, 0));
    });
    paged(&mut world);
    let (begin, mut pagings) = (world.now, 1);
    loop {
        world.downlinks.clear();
        world.expire(Timer::T3513);
        if world.now - begin >= Duration::from_millis(327_680) {
            break;
        }
        pagings += 1;
    }
    assert_eq!(pagings, 64);
}

#[test]
fn a_ue_with_extended_drx_is_paged_in_each_window_of_a_cycle() {
    let (mut world, mut phone) = idle(with_everything(), wants_edrx);
    let paging = paged(&mut world);
    let extended = NrPagingEdrx { cycle: NrPagingEdrxCycle::hf8, window: Some(NrPagingTimeWindow::s4) };
    assert_eq!(paging.nr_edrx, Some(extended));
    // A cycle of 81.92 s has 16 windows of 5.12 s.
    let begin = world.now;
    for _ in 1..16 {
        world.expire(Timer::T3513);
        assert_eq!(world.downlinks.len(), 2);
        world.downlinks.clear();
    }
    assert_eq!(world.now - begin, Duration::from_millis(15 * 5_120));
    // Afterwards the retransmissions count.
    world.script.insert(Operation::N1N2TransferFailureNotification, None);
    for _ in 0..4 {
        world.expire(Timer::T3513);
        world.downlinks.clear();
    }
    assert!(world.calls.is_empty(), "still paged");
    world.expire(Timer::T3513);
    let failure = world.open_call(Operation::N1N2TransferFailureNotification);
    assert!(matches!(failure, Request::N1N2TransferFailureNotification(_)));
    comes(&mut world, &mut phone);
    assert_eq!(world.amf.audit().undelivered, 0);
}

#[test]
fn a_short_cycle_has_no_paging_time_window() {
    let (mut world, _) = idle(with_everything(), |request| {
        request.requested_extended_drx_parameters = Some(edrx(1, 3));
    });
    let extended = NrPagingEdrx { cycle: NrPagingEdrxCycle::hf1, window: None };
    assert_eq!(paged(&mut world).nr_edrx, Some(extended));
}

#[test]
fn extended_drx_ends_with_a_registration_that_does_not_request_it() {
    for kind in [RegistrationKind::PeriodicUpdating, RegistrationKind::MobilityUpdating] {
        let (mut world, mut phone) = idle(with_everything(), wants_edrx);
        let accept = updates(&mut world, &mut phone, kind, |_| {});
        assert_eq!(accept.negotiated_extended_drx_parameters, None);
        phone.release(&mut world);
        world.downlinks.clear();
        assert_eq!(paged(&mut world).nr_edrx, None);
    }
}

/// The AMF refuses a message for the UE (TS 29.518 5.2.2.3.1.2).
fn is_refused(world: &mut World) {
    world.downlinks.clear();
    let message = transfer(5, None, Some((NgapIe::PduResSetupReq, b"setup")));
    let refusal = world.request(message).unwrap_err();
    assert!(refusal.is(&Cause::UeNotReachable) && refusal.status == 504, "{refusal}");
    assert!(world.downlinks.is_empty(), "not paged");
    assert_eq!(world.amf.audit().undelivered, 0);
}

#[test]
fn an_idle_ue_in_mico_mode_is_not_paged() {
    let (mut world, mut phone) = idle(with_everything(), wants_mico);
    is_refused(&mut world);
    let accept = updates(&mut world, &mut phone, RegistrationKind::MobilityUpdating, wants_mico);
    assert_eq!(accept.mico_indication, Some(MicoIndication::default()));
    assert_eq!(accept.t3512.unwrap().duration(), Some(10 * HOUR));
    assert!(accept.t3324.is_none() && accept.tai_list.is_some());
    // It is reachable while it is connected.
    assert!(world.request(transfer(5, Some(b"modify"), None)).is_ok());
    phone.receive(&mut world);
    phone.release(&mut world);
    is_refused(&mut world);
}

#[test]
fn a_ue_in_mico_mode_is_deregistered_after_its_own_t3512() {
    let (mut world, _) = idle(with_everything(), wants_mico);
    assert_eq!(world.running(), [Timer::ImplicitDeregistration]);
    let idle_since = world.now;
    world.expire(Timer::ImplicitDeregistration);
    assert_eq!(world.now - idle_since, 10 * HOUR + 240 * SECOND);
    assert_eq!(world.amf.audit().registered, 0);
}

#[test]
fn a_ue_in_mico_mode_may_request_a_shorter_t3512() {
    let shortest = GprsTimer3::at_least(config().timers.t3512).duration().unwrap();
    let requests = [
        (HOUR, HOUR),
        (20 * HOUR, 10 * HOUR),
        // Not shorter than that of UEs without MICO mode.
        (2 * SECOND, shortest),
    ];
    for (requested, granted) in requests {
        let (mut world, mut phone) = (World::with(with_everything()), Phone::default());
        let mut request = phone.registration_request(RegistrationKind::Initial);
        wants_mico(&mut request);
        request.requested_t3512 = Some(GprsTimer3::at_least(requested));
        let nas = phone.initial_nas(request.clone());
        phone.connect(&mut world, nas);
        let accept = phone.authenticate(&mut world, request);
        assert_eq!(accept.t3512.unwrap().duration(), Some(granted));
    }
}

#[test]
fn a_ue_in_mico_mode_is_reachable_in_its_active_time() {
    let (mut world, _) = idle(with_everything(), wants_active_time);
    let begin = world.now;
    world.now = begin + 59 * SECOND;
    paged(&mut world);
    let (mut world, mut phone) = idle(with_everything(), wants_active_time);
    world.now = world.now + 60 * SECOND;
    is_refused(&mut world);
    // Each connection begins an active time.
    let accept = updates(&mut world, &mut phone, RegistrationKind::PeriodicUpdating, wants_active_time);
    assert_eq!(accept.t3324.unwrap().duration(), Some(60 * SECOND));
    phone.release(&mut world);
    world.downlinks.clear();
    paged(&mut world);
}

#[test]
fn a_message_that_crosses_the_release_of_a_ue_in_mico_mode_fails() {
    let (mut world, mut phone) = (World::with(with_everything()), Phone::default());
    registers(&mut world, &mut phone, wants_mico);
    phone.establish(&mut world, 5);
    let message = pith_ngap::UeContextReleaseRequest {
        amf_ue_ngap_id: phone.amf_id.unwrap(),
        ran_ue_ngap_id: phone.ran_id,
        sessions: None,
        cause: None,
    };
    world.ngap(phone.gnb, "UeContextReleaseRequest", message.encode());
    data(&mut world);
    world.take_ladder();
    phone.released(&mut world);
    let ladder = world.take_ladder();
    assert!(!ladder.contains("Paging") && ladder.contains("N1N2TransferFailureNotification"), "{ladder}");
}

#[test]
fn mico_mode_ends_with_a_registration_that_does_not_request_it() {
    let (mut world, mut phone) = idle(with_everything(), wants_mico);
    let accept = updates(&mut world, &mut phone, RegistrationKind::PeriodicUpdating, |_| {});
    assert_eq!(accept.mico_indication, None);
    phone.release(&mut world);
    assert!(world.running().contains(&Timer::MobileReachable));
    world.downlinks.clear();
    paged(&mut world);
}

#[test]
fn the_whole_network_is_the_registration_area_of_a_ue_without_restrictions() {
    let mico = Some(MicoMode { t3512: 10 * HOUR, all_plmn_area: true });
    let (mut world, mut phone) = (World::with(AmfConfig { mico, ..config() }), Phone::default());
    let accept = registers(&mut world, &mut phone, wants_mico);
    assert!(accept.mico_indication.unwrap().all_plmn_area);
    assert_eq!(accept.tai_list, None);
}

#[test]
fn an_emergency_registered_ue_gets_no_mico_mode() {
    let services = emergency::with_emergency(0);
    let (mut world, mut phone) =
        (World::with(AmfConfig { emergency: services.emergency, ..with_everything() }), Phone::default());
    let mut request = phone.registration_request(RegistrationKind::Emergency);
    wants_mico(&mut request);
    wants_edrx(&mut request);
    let nas = phone.initial_nas(request.clone());
    phone.connect(&mut world, nas);
    let accept = phone.authenticate(&mut world, request);
    assert!(accept.mico_indication.is_none() && accept.negotiated_extended_drx_parameters.is_none());
}

#[test]
fn an_emergency_session_ends_mico_mode_and_suspends_extended_drx() {
    let services = emergency::with_emergency(0);
    let config = AmfConfig { emergency: services.emergency, ..with_everything() };
    let (mut world, mut phone) = (World::with(config), Phone::default());
    registers(&mut world, &mut phone, |request| {
        wants_active_time(request);
        wants_edrx(request);
    });
    phone.send(&mut world, emergency::emergency_request(5));
    phone.release(&mut world);
    let t3512 = world.timers.iter().find(|(key, _)| key.timer == Timer::MobileReachable).unwrap();
    assert_eq!(*t3512.1 - world.now, 10 * HOUR + 240 * SECOND, "the UE has that T3512");
    world.now = world.now + HOUR;
    world.downlinks.clear();
    assert_eq!(paged(&mut world).nr_edrx, None);
}

/// The IE has no 54 minutes: the UE gets 60, and the AMF expects its update then.
#[test]
fn the_mobile_reachable_timer_is_longer_than_the_t3512_that_the_ue_got() {
    let mut world = World::new();
    let mut phone = Phone::default();
    let granted = registers(&mut world, &mut phone, |_| {}).t3512.and_then(GprsTimer3::duration).unwrap();
    assert_eq!(granted, HOUR);
    phone.release(&mut world);
    let until = world.timers.iter().find(|(key, _)| key.timer == Timer::MobileReachable).unwrap();
    assert_eq!(*until.1 - world.now, granted + 240 * SECOND);
}

/// An SMF has data of that ARP priority level.
fn data_of(world: &mut World, level: u8) {
    let mut request = transfer(5, None, Some((NgapIe::PduResSetupReq, b"setup")));
    let (may, is) = (PreemptionCapability::NotPreempt, PreemptionVulnerability::Preemptable);
    request.body.arp = Some(Arp::new(level, may, is));
    assert!(world.request(request).is_ok());
}

#[test]
fn data_of_a_priority_service_are_paged_for_with_priority() {
    let levels =
        [(2, Some(PagingPriority::priolevel1)), (5, Some(PagingPriority::priolevel2)), (1, None), (9, None)];
    for (level, priority) in levels {
        let (mut world, _) = idle(with_everything(), |_| {});
        data_of(&mut world, level);
        assert_eq!(take_message!(world, GNB, Paging).priority, priority, "ARP {level}");
    }
    let (mut world, _) = idle(config(), |_| {});
    data_of(&mut world, 2);
    assert_eq!(take_message!(world, GNB, Paging).priority, None);
}

#[test]
fn the_highest_priority_of_the_queued_messages_counts() {
    let (mut world, mut phone) = idle(with_everything(), |_| {});
    data_of(&mut world, 5);
    world.request(transfer(5, Some(b"modify"), None)).unwrap();
    world.downlinks.clear();
    world.expire(Timer::T3513);
    assert_eq!(take_message!(world, GNB, Paging).priority, Some(PagingPriority::priolevel2));
    data_of(&mut world, 2);
    world.downlinks.clear();
    world.expire(Timer::T3513);
    assert_eq!(take_message!(world, GNB, Paging).priority, Some(PagingPriority::priolevel1));
    // Later messages do not inherit it.
    world.downlinks.clear();
    comes(&mut world, &mut phone);
    phone.receive(&mut world);
    phone.release(&mut world);
    world.downlinks.clear();
    data(&mut world);
    let is_paging =
        |(_, message): &(_, Message)| matches!(message, Message::Paging(it) if it.priority.is_none());
    assert!(!world.downlinks.is_empty() && world.downlinks.iter().all(is_paging));
}

/// The priority of the queued messages, 0 for the highest.
fn priority(world: &World) -> Option<u8> {
    let (_, ue) = world.amf.ues.iter().next().unwrap();
    ue.reachability.paging_priority
}

/// Neither if the UE gets them, nor if it does not answer.
#[test]
fn messages_that_are_no_longer_queued_leave_no_priority() {
    let (mut world, mut phone) = idle(with_everything(), |_| {});
    data_of(&mut world, 2);
    assert_eq!(priority(&world), Some(0));
    comes(&mut world, &mut phone);
    assert_eq!(priority(&world), None);
    phone.receive(&mut world);
    phone.release(&mut world);
    data_of(&mut world, 5);
    assert_eq!(priority(&world), Some(1));
    for _ in 0..5 {
        world.expire(Timer::T3513);
    }
    assert_eq!((priority(&world), world.amf.audit().undelivered), (None, 0));
}

#[test]
fn a_message_that_waits_for_a_handover_has_its_priority() {
    let (mut world, mut phone) = (World::with(with_everything()), Phone::default());
    registers(&mut world, &mut phone, |_| {});
    phone.establish(&mut world, 5);
    world.script.insert(Operation::UpdateSmContext, None);
    super::n2_handover::require(&mut world, &phone, &[5]);
    data_of(&mut world, 5);
    assert_eq!((priority(&world), world.amf.audit().undelivered), (Some(1), 1));
}

/// A UE in MICO mode with an active time and DRX, in CM-IDLE: for documents.
pub(super) fn in_mico_mode() -> World {
    let (world, _) = idle(with_everything(), |request| {
        wants_drx(request);
        wants_edrx(request);
        wants_active_time(request);
    });
    world
}
