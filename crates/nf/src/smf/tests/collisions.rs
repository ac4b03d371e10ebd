//! Requests of the UE that cross a procedure of the network (TS 24.501 6.3.2.5, 6.3.3.5), or come too early (6.4.3.4).

use super::flows::awaiting_complete;
use super::standing::withdraw;
use super::world::*;
use crate::kit::Timer;
use pith_nas::gsm::{
    PduSessionModificationComplete, PduSessionModificationRequest, PduSessionReleaseComplete,
    PduSessionReleaseRequest,
};
use pith_nas::{GsmBody, GsmCause};
use pith_sbi::Operation;

#[test]
fn during_a_release_by_the_network_requests_of_the_ue_are_ignored() {
    let mut world = World::established();
    withdraw(&mut world);
    world.take_ladder();
    let sent = world.n1.len();
    world.uplink(PduSessionReleaseRequest::new());
    world.uplink(PduSessionModificationRequest::new());
    assert_eq!(world.take_ladder(), "amf <- 204\namf <- 204");
    assert_eq!(world.n1.len(), sent, "no message for the UE");
    world.expire(Timer::T3592);
    let command = world.n1.last().unwrap();
    assert_eq!(command.pti, 0, "the release is still the network's");
    assert!(matches!(command.body, GsmBody::PduSessionReleaseCommand(_)), "{command:?}");
    world.uplink_with(0, PduSessionReleaseComplete::new());
    world.is_quiet();
}

#[test]
fn a_repeated_release_request_gets_the_command_again() {
    let mut world = World::established();
    for _ in 0..2 {
        world.uplink(PduSessionReleaseRequest::new());
        let command = world.n1.last().unwrap();
        assert_eq!(command.pti, 9);
        assert!(matches!(command.body, GsmBody::PduSessionReleaseCommand(_)), "{command:?}");
    }
    assert_eq!(world.n1.iter().filter(|message| message.pti == 9).count(), 2);
    world.uplink(PduSessionReleaseComplete::new());
    world.is_quiet();
}

/// TS 24.501 6.3.2.5: the modification is aborted, and the release takes place.
#[test]
fn a_release_request_ends_a_modification_by_the_network() {
    let mut world = awaiting_complete();
    assert!(world.bench.timers.keys().any(|key| key.timer == Timer::T3591));
    world.uplink(PduSessionReleaseRequest::new());
    let command = world.n1.last().unwrap();
    assert_eq!(command.pti, 9);
    assert!(matches!(command.body, GsmBody::PduSessionReleaseCommand(_)), "{command:?}");
    let timers: Vec<_> = world.bench.timers.keys().map(|key| key.timer).collect();
    assert_eq!(timers, [Timer::T3592]);
    let sent = world.n1.len();
    world.uplink(PduSessionModificationComplete::new());
    assert_eq!(world.n1.len(), sent, "a confirmation that crosses the command changes nothing");
    world.uplink(PduSessionReleaseComplete::new());
    world.is_quiet();
}

#[test]
fn a_modification_request_does_not_end_a_modification_by_the_network() {
    let mut world = awaiting_complete();
    world.uplink(PduSessionModificationRequest::new());
    let reject = world.n1.last().unwrap();
    assert!(matches!(reject.body, GsmBody::PduSessionModificationReject(_)), "{reject:?}");
    world.expire(Timer::T3591);
    let command = world.n1.last().unwrap();
    assert_eq!(command.pti, 0);
    assert!(matches!(command.body, GsmBody::PduSessionModificationCommand(_)), "{command:?}");
    world.uplink(PduSessionModificationComplete::new());
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    assert!(session.modification.is_none(), "the UE has confirmed");
}

#[test]
fn a_session_that_is_being_established_is_not_released() {
    for open in [Some(Operation::CreateSmPolicy), None] {
        let mut world = World::new();
        world.script.extend(open.map(|operation| (operation, None)));
        if open.is_none() {
            world.upf = None;
        }
        world.establish();
        world.uplink(PduSessionReleaseRequest::new());
        let answer = world.n1.last().unwrap().clone();
        let GsmBody::PduSessionReleaseReject(reject) = answer.body else { panic!("{answer:?}") };
        assert_eq!((answer.pti, reject.cause), (9, GsmCause::MessageNotCompatibleWithTheProtocolState));
        assert_eq!(world.bench.nf.audit().contexts, 1, "{open:?}");
    }
}
