//! What a gNB refuses because it hands the UE over is requested again (TS 23.502 4.9.1.2.1, 4.9.1.3.1).

use super::branching;
use super::flows::{complete, gnb_modifies, gnb_sends, voice};
use super::handover::switch;
use super::policy::notify;
use super::world::*;
use crate::kit::Timer;
use pith_nas::gsm::PduSessionReleaseComplete;
use pith_nas::{GsmBody, GsmCause};
use pith_ngap::transfer::{ModifyUnsuccessfulTransfer, SetupUnsuccessfulTransfer};
use pith_ngap::{Cause as NgapCause, CauseRadioNetwork};
use pith_pfcp::ie::{ApplyAction, ReportType};
use pith_sbi::nsmf_pdusession::{N2SmInfoType, UpCnxState};
use pith_sbi::{Cause, Operation};

const XN: CauseRadioNetwork = CauseRadioNetwork::xn_handover_triggered;
const N2: CauseRadioNetwork = CauseRadioNetwork::ng_intra_system_handover_triggered;

pub(super) fn refuses_setup(world: &mut World, cause: CauseRadioNetwork) {
    let cause = NgapCause::RadioNetwork(cause);
    let transfer = SetupUnsuccessfulTransfer { cause }.encode();
    gnb_sends(world, N2SmInfoType::PduResSetupFail, transfer);
}

pub(super) fn refuses_modification(world: &mut World, cause: CauseRadioNetwork) {
    let cause = NgapCause::RadioNetwork(cause);
    let transfer = ModifyUnsuccessfulTransfer { cause }.encode();
    gnb_sends(world, N2SmInfoType::PduResModFail, transfer);
}

fn last_has_accept(world: &World) -> bool {
    let transfer = world.transfers.last().unwrap();
    let is_accept = matches!(world.n1.last().unwrap().body, GsmBody::PduSessionEstablishmentAccept(_));
    is_accept && transfer.n1_message_container.is_some() && transfer.n2_info_container.is_some()
}

#[test]
fn the_ue_gets_the_accept_of_an_establishment_after_the_handover() {
    for cause in [XN, N2, CauseRadioNetwork::ng_inter_system_handover_triggered] {
        let mut world = World::new();
        world.establish();
        let first = world.n1.last().unwrap().clone();
        world.take_ladder();
        refuses_setup(&mut world, cause);
        assert_eq!(world.take_ladder(), "amf <- 204");
        world.expire(Timer::SbiGuard);
        assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer");
        assert!(last_has_accept(&world));
        assert_eq!(*world.n1.last().unwrap(), first, "with the PTI of the UE's request");
        world.gnb_answers();
        assert_eq!(world.user_plane().unwrap().gnb, Some(GNB_TUNNEL));
        assert!(world.bench.timers.is_empty(), "{:?}", world.bench.timers);
    }
}

#[test]
fn the_accept_is_not_sent_again_without_end() {
    let mut world = World::new();
    world.establish();
    for _ in 0..8 {
        refuses_setup(&mut world, XN);
        world.take_ladder();
        world.expire(Timer::SbiGuard);
        assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer");
    }
    refuses_setup(&mut world, XN);
    assert_eq!(world.reject(), GsmCause::InsufficientResources);
    world.is_quiet();
    // One that the gNB does not answer.
    world.establish();
    refuses_setup(&mut world, XN);
    world.expire(Timer::SbiGuard);
    world.expire(Timer::SbiGuard);
    assert!(matches!(world.n1.last().unwrap().body, GsmBody::PduSessionReleaseCommand(_)));
    world.uplink(PduSessionReleaseComplete::new());
    world.is_quiet();
}

#[test]
fn a_session_whose_accept_the_ue_did_not_get_ends_with_its_connection() {
    let mut world = World::new();
    world.establish();
    refuses_setup(&mut world, XN);
    world.deactivate();
    world.is_quiet();
}

/// Other vendors' AMFs refuse while a handover is prepared (TS 29.518 5.2.2.3.1).
#[test]
fn an_accept_that_the_amf_refuses_for_a_handover_is_sent_again() {
    let mut world = World::new();
    world.script.insert(Operation::N1N2MessageTransfer, problem(Cause::TemporaryRejectHandoverOngoing));
    world.establish();
    world.script.remove(&Operation::N1N2MessageTransfer);
    world.take_ladder();
    world.expire(Timer::SbiGuard);
    assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer");
    assert!(last_has_accept(&world));
    world.gnb_answers();
    assert_eq!(world.user_plane().unwrap().gnb, Some(GNB_TUNNEL));
}

#[test]
fn the_user_plane_of_an_idle_session_is_set_up_after_the_handover_with_the_buffered_packets() {
    let mut world = World::established();
    world.deactivate();
    world.update(|data| data.up_cnx_state = Some(UpCnxState::Activating));
    world.take_ladder();
    for _ in 0..2 {
        refuses_setup(&mut world, N2);
        assert_eq!(world.take_ladder(), "amf <- 204", "the UPF keeps its packets");
        world.expire(Timer::SbiGuard);
        assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer");
    }
    world.gnb_answers();
    assert_eq!(world.user_plane().unwrap().gnb, Some(GNB_TUNNEL));
    assert!(world.bench.timers.is_empty(), "{:?}", world.bench.timers);
    // As before, a UE in idle mode is paged for its packets.
    world.deactivate();
    world.take_ladder();
    world.report(ReportType::DLDR);
    assert_eq!(world.take_ladder(), "upf <- SessionReportResponse\namf <- N1N2MessageTransfer");
}

/// The UE has packets, and the UPF has none.
#[test]
fn a_ue_that_is_idle_after_the_handover_is_paged_for_downlink_data_only() {
    for has_data in [false, true] {
        for reported_before in [false, true] {
            let mut world = World::established();
            world.deactivate();
            if has_data && reported_before {
                world.report(ReportType::DLDR);
            }
            world.update(|data| data.up_cnx_state = Some(UpCnxState::Activating));
            refuses_setup(&mut world, N2);
            if has_data && !reported_before {
                world.report(ReportType::DLDR);
            }
            world.script.insert(Operation::N1N2MessageTransfer, problem(Cause::UeInCmIdleState));
            world.take_ladder();
            world.expire(Timer::SbiGuard);
            assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer");
            let skip = world.transfers.last().unwrap().skip_ind;
            assert_eq!(skip, if has_data { None } else { Some(true) });
            assert!(world.bench.timers.is_empty(), "{:?}", world.bench.timers);
            world.script.clear();
            // Later packets page the UE.
            world.report(ReportType::DLDR);
            assert_eq!(world.transfers.last().unwrap().skip_ind, None);
            world.gnb_answers();
            assert_eq!(world.user_plane().unwrap().gnb, Some(GNB_TUNNEL));
        }
    }
}

#[test]
fn a_tunnel_of_earlier_resources_ends_before_the_setup_is_requested_again() {
    let mut world = World::established();
    world.update(|data| data.up_cnx_state = Some(UpCnxState::Activating));
    world.take_ladder();
    refuses_setup(&mut world, XN);
    assert_eq!(world.take_ladder(), "upf <- SessionModificationRequest\namf <- 200");
    assert_eq!(downlink_action(&world), ApplyAction::BUFF | ApplyAction::NOCP);
    world.expire(Timer::SbiGuard);
    assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer");
    world.gnb_answers();
    assert_eq!(world.user_plane().unwrap().gnb, Some(GNB_TUNNEL));
}

#[test]
fn a_change_of_flows_is_requested_again_after_the_handover() {
    let mut world = World::established();
    notify(&mut world, voice);
    world.take_ladder();
    refuses_modification(&mut world, XN);
    assert_eq!(world.take_ladder(), "amf <- 204", "the PCF's rule stays");
    switch(&mut world);
    world.take_ladder();
    world.expire(Timer::SbiGuard);
    assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer");
    let transfer = world.transfers.last().unwrap();
    assert!(transfer.n1_message_container.is_some() && transfer.n2_info_container.is_some());
    gnb_modifies(&mut world, &[2], &[]);
    complete(&mut world);
    assert!(world.bench.timers.is_empty(), "{:?}", world.bench.timers);
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    assert_eq!(session.flows(), [1, 2]);
}

#[test]
fn a_change_that_is_always_refused_fails() {
    let mut world = World::established();
    notify(&mut world, voice);
    for _ in 0..4 {
        refuses_modification(&mut world, N2);
        world.take_ladder();
        world.expire(Timer::SbiGuard);
        assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer");
    }
    refuses_modification(&mut world, N2);
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    assert_eq!(session.flows(), [1, 2], "until T3591 expires");
    world.expire(Timer::T3591);
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    assert_eq!(session.flows(), [1]);
}

/// The gNB is to send to a classifier; the request waits for the path switch.
#[test]
fn another_uplink_endpoint_is_requested_again_after_the_handover() {
    let mut world = branching::established();
    assert_eq!(world.branch("edge"), None);
    world.take_ladder();
    refuses_modification(&mut world, XN);
    assert_eq!(world.take_ladder(), "amf <- 204");
    switch(&mut world);
    let ladder = world.take_ladder();
    assert!(ladder.contains("amf <- 200"), "{ladder}");
    let gnb_uplink = world.user_plane().unwrap().gnb_uplink;
    assert_eq!(gnb_uplink, Some(world.user_plane().unwrap().n3_session().tunnel));
}

/// Some gNBs return the command, which the AMF sends again, or pass it on (TS 38.413 8.6.4).
#[test]
fn a_gnb_that_refused_gets_the_change_that_the_ue_confirms() {
    let mut world = World::established();
    notify(&mut world, voice);
    refuses_modification(&mut world, XN);
    switch(&mut world);
    world.take_ladder();
    complete(&mut world);
    assert_eq!(world.take_ladder(), "amf <- 204\namf <- N1N2MessageTransfer");
    let transfer = world.transfers.last().unwrap();
    assert!(transfer.n1_message_container.is_none() && transfer.n2_info_container.is_some());
    gnb_modifies(&mut world, &[2], &[]);
    assert!(world.take_ladder().contains("upf <- SessionModificationRequest"), "packets use the flow");
    assert!(world.bench.timers.is_empty(), "{:?}", world.bench.timers);
}

#[test]
fn the_user_plane_is_not_requested_again_without_end() {
    let mut world = World::established();
    world.deactivate();
    world.update(|data| data.up_cnx_state = Some(UpCnxState::Activating));
    for _ in 0..6 {
        refuses_setup(&mut world, N2);
        world.expire(Timer::SbiGuard);
    }
    world.take_ladder();
    refuses_setup(&mut world, N2);
    assert_eq!(
        world.take_ladder(),
        "amf <- 204\nupf <- SessionModificationRequest",
        "its packets are dropped"
    );
    assert!(world.bench.timers.is_empty(), "{:?}", world.bench.timers);
}
