//! Local area data networks (TS 23.501 5.6.5).

use super::handover::TARGET;
use super::world::*;
use crate::kit::{NetworkFunction, StoreScope, Timer, Tracking};
use crate::testing::Stored;
use pith_nas::gsm::PduSessionReleaseComplete;
use pith_nas::{GsmBody, GsmCause};
use pith_ngap::transfer::PathSwitchRequestTransfer;
use pith_sbi::common::PresenceState;
use pith_sbi::namf_communication::{N1N2MessageTransferCause, N1N2MessageTransferRspData};
use pith_sbi::nsmf_pdusession::{N2SmInfoType, UpCnxState};
use pith_sbi::{Cause, Operation, Response};

/// The data network is available in some tracking areas.
fn world() -> World {
    let mut config = config();
    config.data_networks[0].is_ladn = true;
    World::with(config, &["upf"])
}

fn requests(world: &mut World, presence: Option<PresenceState>) {
    world.post_with("internet", establishment(|_| {}), |data| data.presence_in_ladn = presence);
}

fn reports(world: &mut World, presence: PresenceState) {
    world.take_ladder();
    world.update(|data| data.presence_in_ladn = Some(presence));
}

#[test]
fn a_session_outside_the_service_area_is_rejected() {
    for presence in [Some(PresenceState::OutOfArea), Some(PresenceState::Unknown), None] {
        let mut world = world();
        requests(&mut world, presence);
        assert_eq!(world.reject(), GsmCause::OutOfLadnServiceArea);
        assert_eq!(world.refusal(), &Cause::OutOfLadnServiceArea);
        world.is_quiet();
    }
}

#[test]
fn a_ue_that_leaves_the_service_area_loses_its_session() {
    let mut world = world();
    requests(&mut world, Some(PresenceState::InArea));
    world.gnb_answers();
    reports(&mut world, PresenceState::InArea);
    assert_eq!(world.take_ladder(), "amf <- 204", "it stays");
    reports(&mut world, PresenceState::OutOfArea);
    let ladder = world.take_ladder();
    assert!(ladder.contains("upf <- SessionDeletionRequest\namf <- N1N2MessageTransfer"), "{ladder}");
    let GsmBody::PduSessionReleaseCommand(command) = &world.n1.last().unwrap().body else { panic!() };
    assert_eq!(command.cause, GsmCause::OutOfLadnServiceArea);
    assert!(world.transfers.last().unwrap().n2_info_container.is_some(), "the gNB, too");
    world.uplink(PduSessionReleaseComplete::new());
    world.is_quiet();
}

/// The AMF reports it once.
#[test]
fn that_a_ue_has_left_the_service_area_is_stored_at_once() {
    let mut world = world();
    world.bench.nf.track_contexts(Tracking { is_late: true, ..Tracking::default() });
    requests(&mut world, Some(PresenceState::InArea));
    world.gnb_answers();
    let mut stored = Stored::default();
    stored.store(&mut world.bench.nf, StoreScope::Changed);
    reports(&mut world, PresenceState::InArea);
    stored.store(&mut world.bench.nf, StoreScope::Required);
    assert_eq!(stored.writes, 1, "it stays");
    reports(&mut world, PresenceState::OutOfArea);
    stored.store(&mut world.bench.nf, StoreScope::Required);
    assert_eq!(stored.writes, 2);
}

/// The AMF's answer for a UE in CM-IDLE.
fn is_idle(world: &mut World) {
    let answer = N1N2MessageTransferRspData::new(N1N2MessageTransferCause::N1MsgNotTransferred);
    let answer = Ok(Response::N1N2MessageTransferInitiated(Box::new(answer)));
    world.script.insert(Operation::N1N2MessageTransfer, Some(answer));
}

/// The command of the last message to the AMF, for which an idle UE is not paged.
fn is_told_unless_idle(world: &World) {
    let GsmBody::PduSessionReleaseCommand(command) = &world.n1.last().unwrap().body else { panic!() };
    assert_eq!(command.cause, GsmCause::OutOfLadnServiceArea);
    assert_eq!(world.transfers.last().unwrap().skip_ind, Some(true));
}

#[test]
fn a_session_of_an_idle_ue_ends_without_a_message_to_the_ue() {
    let mut world = world();
    requests(&mut world, Some(PresenceState::InArea));
    world.gnb_answers();
    world.deactivate();
    is_idle(&mut world);
    reports(&mut world, PresenceState::OutOfArea);
    let ladder = world.take_ladder();
    assert!(ladder.contains("amf <- N1N2MessageTransfer\namf <- SmContextStatusNotify"), "{ladder}");
    is_told_unless_idle(&world);
    world.is_quiet();
}

/// A restart has deactivated the user plane of a UE that is connected.
#[test]
fn a_connected_ue_without_a_user_plane_gets_the_release() {
    let mut world = world();
    requests(&mut world, Some(PresenceState::InArea));
    world.gnb_answers();
    world.deactivate();
    reports(&mut world, PresenceState::OutOfArea);
    let ladder = world.take_ladder();
    assert!(!ladder.contains("amf <- SmContextStatusNotify"), "{ladder}");
    is_told_unless_idle(&world);
    assert!(world.transfers.last().unwrap().n2_info_container.is_none(), "the gNB has no resources");
    // It becomes idle meanwhile.
    is_idle(&mut world);
    world.expire(Timer::T3592);
    is_told_unless_idle(&world);
    assert!(world.take_ladder().contains("amf <- SmContextStatusNotify"));
    world.is_quiet();
}

/// The AMF accepts no message during a registration.
#[test]
fn a_release_that_the_amf_refuses_for_a_registration_is_sent_again() {
    let mut world = world();
    requests(&mut world, Some(PresenceState::InArea));
    world.gnb_answers();
    world.deactivate();
    world.script.insert(Operation::N1N2MessageTransfer, problem(Cause::TemporaryRejectRegistrationOngoing));
    reports(&mut world, PresenceState::OutOfArea);
    world.script.clear();
    let sent = world.transfers.len();
    world.expire(Timer::T3592);
    assert_eq!(world.transfers.len(), sent + 1);
    world.uplink(PduSessionReleaseComplete::new());
    world.is_quiet();
}

/// What else the update has is processed, and then the session ends.
#[test]
fn a_deactivation_outside_the_service_area_reaches_the_upf() {
    let mut world = world();
    requests(&mut world, Some(PresenceState::InArea));
    world.gnb_answers();
    world.take_ladder();
    is_idle(&mut world);
    world.update(|data| {
        data.presence_in_ladn = Some(PresenceState::OutOfArea);
        data.up_cnx_state = Some(UpCnxState::Deactivated);
    });
    let ladder = world.take_ladder();
    let (buffers, ends) = ladder.split_once("amf <- 200").expect("the AMF gets its answer");
    assert!(buffers.contains("upf <- SessionModificationRequest"), "{ladder}");
    assert!(ends.contains("amf <- SmContextStatusNotify"), "{ladder}");
    world.is_quiet();
}

#[test]
fn a_path_switch_outside_the_service_area_is_answered_before_the_release() {
    let mut world = world();
    requests(&mut world, Some(PresenceState::InArea));
    world.gnb_answers();
    world.take_ladder();
    let transfer = PathSwitchRequestTransfer { downlink: TARGET, flows: vec![1], additional: vec![] };
    world.update(|data| {
        data.presence_in_ladn = Some(PresenceState::OutOfArea);
        data.n2_sm_info_type = Some(N2SmInfoType::PathSwitchReq);
        data.n2_sm_info = Some(transfer.encode().into());
    });
    let Some(Ok(Response::SmContextUpdated(answer))) = world.answers.last() else { panic!() };
    assert_eq!(answer.n2_sm_info_type, Some(N2SmInfoType::PathSwitchReqAck));
    let GsmBody::PduSessionReleaseCommand(command) = &world.n1.last().unwrap().body else { panic!() };
    assert_eq!(command.cause, GsmCause::OutOfLadnServiceArea);
    world.uplink(PduSessionReleaseComplete::new());
    world.is_quiet();
}

#[test]
fn an_activation_outside_the_service_area_is_refused() {
    let mut world = world();
    requests(&mut world, Some(PresenceState::InArea));
    world.gnb_answers();
    world.deactivate();
    world.take_ladder();
    is_idle(&mut world);
    world.update(|data| {
        data.presence_in_ladn = Some(PresenceState::OutOfArea);
        data.up_cnx_state = Some(UpCnxState::Activating);
    });
    assert_eq!(world.refusal(), &Cause::OutOfLadnServiceArea);
    assert!(world.take_ladder().contains("amf <- SmContextStatusNotify"));
    world.is_quiet();
}

/// The AMF has not answered for the gNB yet when the user plane ends.
#[test]
fn a_ue_that_becomes_idle_before_its_release_is_not_paged_for_it() {
    let mut world = world();
    requests(&mut world, Some(PresenceState::InArea));
    world.gnb_answers();
    world.upf = None;
    is_idle(&mut world);
    world.deactivate();
    reports(&mut world, PresenceState::OutOfArea);
    world.take_ladder();
    world.upf_answers_late();
    let ladder = world.take_ladder();
    assert!(ladder.contains("amf <- SmContextStatusNotify"), "{ladder}");
    is_told_unless_idle(&world);
}

/// The gNB has not answered yet: the session is released when it has.
#[test]
fn a_ue_that_leaves_during_the_establishment_loses_its_session_after_it() {
    let mut world = world();
    requests(&mut world, Some(PresenceState::InArea));
    reports(&mut world, PresenceState::OutOfArea);
    assert_eq!(world.take_ladder(), "amf <- 204");
    world.gnb_answers();
    let GsmBody::PduSessionReleaseCommand(command) = &world.n1.last().unwrap().body else { panic!() };
    assert_eq!(command.cause, GsmCause::OutOfLadnServiceArea);
    world.uplink(PduSessionReleaseComplete::new());
    world.is_quiet();
}

#[test]
fn a_data_network_that_is_no_ladn_is_served_everywhere() {
    let mut world = World::new();
    requests(&mut world, Some(PresenceState::OutOfArea));
    world.gnb_answers();
    reports(&mut world, PresenceState::OutOfArea);
    assert_eq!(world.take_ladder(), "amf <- 204");
    assert_eq!(world.bench.nf.audit().contexts, 1);
}
