//! Messages that the AMF refuses for the time of a handover or a registration (TS 23.502 4.9.1.3.1).

use super::handover::{cancelled, completed, prepared, required};
use super::policy::{notify, rule};
use super::world::*;
use crate::kit::Timer;
use pith_nas::GsmBody;
use pith_nas::gsm::PduSessionModificationComplete;
use pith_pfcp::ie::ReportType;
use pith_sbi::{Cause, Operation};

const REFUSALS: [Cause; 2] =
    [Cause::TemporaryRejectHandoverOngoing, Cause::TemporaryRejectRegistrationOngoing];

/// The AMF accepts from now on.
fn accepts(world: &mut World) {
    world.script.remove(&Operation::N1N2MessageTransfer);
    world.take_ladder();
}

/// Downlink data of an idle session, for which the AMF does not page the UE now.
fn refused_downlink_data(cause: Cause) -> World {
    let mut world = World::established();
    world.deactivate();
    world.script.insert(Operation::N1N2MessageTransfer, problem(cause));
    world.take_ladder();
    world.report(ReportType::DLDR);
    assert_eq!(world.take_ladder(), "upf <- SessionReportResponse\namf <- N1N2MessageTransfer");
    world
}

/// A change of rates of the PCF, which the AMF does not send to the UE now.
fn refused_command() -> World {
    let mut world = World::established();
    world.script.insert(Operation::N1N2MessageTransfer, problem(Cause::TemporaryRejectHandoverOngoing));
    notify(&mut world, rule(50, 9));
    world
}

/// The UPF reports only the first packet.
#[test]
fn downlink_data_are_reported_again_until_the_amf_accepts() {
    for cause in REFUSALS {
        let mut world = refused_downlink_data(cause);
        world.expire(Timer::SbiGuard);
        assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer");
        accepts(&mut world);
        world.expire(Timer::SbiGuard);
        assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer");
        assert!(world.transfers.last().unwrap().n2_info_container.is_some());
        assert!(world.bench.timers.is_empty(), "{:?}", world.bench.timers);
    }
}

#[test]
fn a_refusal_for_good_is_not_followed_by_another_report() {
    for cause in [Cause::UeInNonAllowedArea, Cause::UeNotReachable] {
        let mut world = refused_downlink_data(cause);
        assert!(world.bench.timers.is_empty());
        world.update(|data| data.serving_nf_id = Some(crate::testing::instance(3)));
        assert_eq!(world.take_ladder(), "amf <- 204");
    }
}

/// The AMF was away for a moment, and the UPF reports only the first packet.
#[test]
fn downlink_data_are_reported_again_to_an_amf_that_does_not_answer() {
    for cause in [Cause::TimedOutRequest, Cause::TargetNfNotReachable] {
        let mut world = refused_downlink_data(cause.clone());
        for _ in 0..5 {
            world.expire(Timer::SbiGuard);
            assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer");
        }
        world.expire(Timer::SbiGuard);
        assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer");
        assert!(world.bench.timers.is_empty(), "not without end: {:?}", world.bench.timers);
        let mut world = refused_downlink_data(cause);
        accepts(&mut world);
        world.expire(Timer::SbiGuard);
        assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer");
        assert!(world.bench.timers.is_empty(), "{:?}", world.bench.timers);
    }
}

/// It is for the AMF that serves the UE after the handover.
#[test]
fn downlink_data_are_reported_at_once_to_the_amf_to_which_the_ue_was_handed_over() {
    let mut world = refused_downlink_data(Cause::TemporaryRejectHandoverOngoing);
    accepts(&mut world);
    world.update(|data| data.serving_nf_id = Some(crate::testing::instance(3)));
    assert_eq!(world.take_ladder(), "amf <- 204\namf <- N1N2MessageTransfer");
    assert!(world.bench.timers.is_empty());
}

#[test]
fn an_activation_of_the_user_plane_needs_no_further_report() {
    let mut world = refused_downlink_data(Cause::TemporaryRejectHandoverOngoing);
    accepts(&mut world);
    world.gnb_answers();
    assert!(!world.take_ladder().contains("N1N2MessageTransfer"));
    assert!(world.bench.timers.is_empty(), "{:?}", world.bench.timers);
}

#[test]
fn a_modification_command_is_sent_again_when_the_handover_is_over() {
    let over: [fn(&mut World); 2] = [
        |world| {
            prepared(world);
            accepts(world);
            completed(world);
        },
        |world| {
            accepts(world);
            cancelled(world);
        },
    ];
    for end in over {
        let mut world = refused_command();
        required(&mut world);
        end(&mut world);
        let ladder = world.take_ladder();
        assert_eq!(ladder.matches("N1N2MessageTransfer").count(), 1, "{ladder}");
        let transfer = world.transfers.last().unwrap();
        assert!(transfer.n1_message_container.is_some() && transfer.n2_info_container.is_some());
        world.uplink(PduSessionModificationComplete::new());
        assert!(world.bench.timers.is_empty(), "{:?}", world.bench.timers);
    }
}

#[test]
fn a_modification_command_is_sent_again_when_the_guard_timer_expires_and_not_without_end() {
    let mut world = refused_command();
    for _ in 0..4 {
        world.take_ladder();
        world.expire(Timer::SbiGuard);
        assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer");
    }
    world.expire(Timer::SbiGuard);
    assert_eq!(world.take_ladder(), "");
    assert!(world.bench.timers.is_empty(), "{:?}", world.bench.timers);
    let commands = world.n1.iter().filter(|it| matches!(it.body, GsmBody::PduSessionModificationCommand(_)));
    assert_eq!(commands.count(), 5);
}
