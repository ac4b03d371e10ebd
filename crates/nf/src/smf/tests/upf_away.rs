//! Changes of a session while its UPF is away (TS 23.527 4.3.2): the session waits for the UPF, and the change is in force afterwards. If
//! the UPF does not return, the UE is requested to establish the session again (TS 23.502 4.3.4.2).

use super::super::*;
use super::branching::{branched, plain};
use super::flow_mobility::indicate;
use super::flows::{remove, voice, with_voice};
use super::policy::{notify, rule};
use super::world::*;
use super::{handover, handover_triggered, upfs};
use crate::kit::N4Error;
use crate::testing::ambr;
use pith_nas::gsm::PduSessionReleaseComplete;
use pith_nas::{GsmBody, GsmCause, GsmMessage};
use pith_ngap::CauseRadioNetwork;
use pith_pfcp::Change as Set;
use pith_pfcp::ie::{ApplyAction, Cause as N4Cause};
use pith_sbi::namf_communication::NgapIeType;
use pith_sbi::{Cause as SbiCause, Operation};

/// The UPF's handle after its restart.
const AGAIN: UpfHandle = UpfHandle(9);

/// A change of a session that a modification at the anchor carries.
struct Change {
    name: &'static str,
    world: fn() -> World,
    begin: fn(&mut World),
    /// What the session waits for when the anchor has it again.
    afterwards: &'static str,
}

fn plain_session() -> World {
    let mut world = World::with(plain(), &["upf", "edge"]);
    world.establish();
    world.gnb_answers();
    world.take_ladder();
    world
}

fn idle() -> World {
    let mut world = World::established();
    world.deactivate();
    world.take_ladder();
    world
}

fn unbranch(world: &mut World) {
    world.unbranch();
    world.gnb_modifies(true);
}

/// Each change of a session whose anchor is away. The classifier's requests are answered.
const CHANGES: [Change; 11] = [
    Change {
        name: "rates",
        world: World::established,
        begin: |world| notify(world, rule(50, 8)),
        afterwards: "Established",
    },
    Change {
        name: "rules",
        world: World::established,
        begin: |world| notify(world, voice),
        afterwards: "Established",
    },
    Change {
        name: "removed rules",
        world: with_voice,
        begin: |world| notify(world, remove("voice")),
        afterwards: "Established",
    },
    Change { name: "activation", world: idle, begin: World::gnb_answers, afterwards: "Established" },
    Change {
        name: "deactivation",
        world: World::established,
        begin: World::deactivate,
        afterwards: "Established",
    },
    Change {
        name: "path switch",
        world: World::established,
        begin: handover::switch,
        afterwards: "Established",
    },
    Change {
        name: "N2 handover",
        world: || {
            let mut world = World::established();
            handover::required(&mut world);
            handover::prepared(&mut world);
            world
        },
        begin: handover::completed,
        afterwards: "Established",
    },
    Change { name: "flow mobility", world: World::established, begin: indicate, afterwards: "Established" },
    Change {
        name: "lost tunnel",
        world: World::established,
        begin: |world| world.report_lost(GNB_TUNNEL),
        afterwards: "Established",
    },
    Change {
        name: "insertion of a classifier",
        world: plain_session,
        begin: |world| assert_eq!(world.branch("edge"), None),
        afterwards: "AwaitingUplinkSwitch",
    },
    Change { name: "removal of a classifier", world: branched, begin: unbranch, afterwards: "Established" },
];

/// Begins the change; returns the request that the UPF has not answered.
fn begin(change: &Change) -> (World, Tag) {
    let mut world = (change.world)();
    world.silent.insert(UPF);
    (change.begin)(&mut world);
    let (tag, upf, message) = world.open_n4.pop().unwrap_or_else(|| panic!("{}", change.name));
    assert!(matches!(message, Message::SessionModificationRequest(_)), "{}", change.name);
    assert_eq!((upf, world.open_n4.len()), (UPF, 0), "{}", change.name);
    world.take_ladder();
    (world, tag)
}

fn fails(world: &mut World, tag: Tag, error: N4Error) {
    world.n4_input(N4Input::Response { tag, result: Err(error) });
}

fn state(world: &World) -> &'static str {
    world.bench.nf.sessions.iter().next().map_or("none", |(_, session)| session.state().name())
}

/// The UPF has another association; it has, or gets, the session with the change.
fn check(world: &mut World, change: &Change) {
    let name = change.name;
    assert_eq!(state(world), change.afterwards, "{name}: {}", world.take_ladder());
    assert_eq!(world.bench.nf.audit().contexts, 1, "{name}");
    assert!(!world.take_ladder().contains("SmContextStatusNotify"), "{name}");
    assert!(world.n1.iter().all(|n1| !matches!(n1.body, GsmBody::PduSessionReleaseCommand(_))), "{name}");
    assert_eq!(world.open_n4.len(), 0, "{name}");
}

/// The last request to establish the session at the anchor.
fn establishment_at_anchor(world: &World) -> &pith_pfcp::message::SessionEstablishmentRequest {
    let requests = world.n4.iter().rev().filter_map(|message| match message {
        Message::SessionEstablishmentRequest(request) => Some(request),
        _ => None,
    });
    let mut of_anchor =
        requests.filter(|request| request.cp_f_seid.seid & super::super::context::FRONT_SEID == 0);
    of_anchor.next().unwrap()
}

#[test]
fn a_change_waits_for_a_upf_that_restarts() {
    for change in &CHANGES {
        let (mut world, tag) = begin(change);
        fails(&mut world, tag, N4Error::NoAssociation);
        assert_eq!(state(&world), "AwaitingRestoration", "{}: {}", change.name, world.take_ladder());
        world.n4_input(N4Input::UpfRestarted { upf: UPF });
        world.silent.clear();
        world.associate(AGAIN, "upf");
        check(&mut world, change);
        assert_eq!(world.user_plane().unwrap().anchor.upf, AGAIN, "{}", change.name);
    }
}

/// The gateway got the request when the association had ended.
#[test]
fn a_change_waits_for_a_upf_that_restarted_before_the_request_reached_the_gateway() {
    for change in &CHANGES {
        let (mut world, tag) = begin(change);
        world.n4_input(N4Input::UpfRestarted { upf: UPF });
        fails(&mut world, tag, N4Error::NoAssociation);
        assert_eq!(state(&world), "AwaitingRestoration", "{}: {}", change.name, world.take_ladder());
        world.silent.clear();
        world.associate(AGAIN, "upf");
        check(&mut world, change);
    }
}

/// It answers heartbeats: it may have the change, or not.
#[test]
fn a_upf_that_does_not_answer_a_change_gets_the_session_again() {
    for change in &CHANGES {
        let (mut world, tag) = begin(change);
        world.silent.clear();
        fails(&mut world, tag, N4Error::NoAnswer);
        assert_eq!(establishment_at_anchor(&world).cp_f_seid.seid, world.seid().0, "{}", change.name);
        check(&mut world, change);
    }
}

/// TS 23.502 4.3.4.2 steps 1e and 3: gNB and UE would otherwise keep a session that no UPF serves.
#[test]
fn a_change_that_waits_for_a_upf_that_does_not_return_ends_with_a_release_of_the_ue() {
    for change in &CHANGES {
        let (mut world, tag) = begin(change);
        fails(&mut world, tag, N4Error::NoAssociation);
        world.n4_input(N4Input::UpfRestarted { upf: UPF });
        // The gNB of a lost tunnel gets its resources again, else.
        let has_tunnel = world.user_plane().unwrap().gnb.is_some() || change.name == "lost tunnel";
        let sent = world.n1.len();
        world.take_ladder();
        world.n4_input(N4Input::UpfDown { upf: UPF });
        if has_tunnel {
            expect_reactivation(&world, change.name);
            assert_eq!(world.n1.len(), sent + 1);
            world.uplink(PduSessionReleaseComplete::new());
        }
        assert!(world.take_ladder().contains("amf <- SmContextStatusNotify"), "{}", change.name);
        assert_eq!(world.bench.nf.audit().contexts, 0, "{}", change.name);
    }
}

fn expect_reactivation(world: &World, name: &str) {
    let GsmBody::PduSessionReleaseCommand(command) = &world.n1.last().unwrap().body else { panic!("{name}") };
    assert_eq!(command.cause, GsmCause::ReactivationRequested, "{name}");
    let container = world.transfers.last().unwrap().n2_info_container.clone().unwrap();
    let kind = container.sm_info.unwrap().n2_info_content.unwrap().ngap_ie_type;
    assert_eq!(kind, Some(NgapIeType::PduResRelCmd), "{name}");
}

/// A UPF that is there, and refuses the session that it is to get again.
#[test]
fn a_session_that_can_not_be_restored_is_released_at_gnb_and_ue() {
    for refusal in [Ok(N4Cause::NoResourcesAvailable), Err(N4Error::NoAnswer)] {
        let mut world = World::established();
        world.n4_input(N4Input::UpfRestarted { upf: UPF });
        world.refusing.insert(AGAIN, refusal);
        world.associate(AGAIN, "upf");
        expect_reactivation(&world, "restoration");
        world.uplink(PduSessionReleaseComplete::new());
        world.is_quiet();
    }
}

/// The UPF is there, and refuses a change without which the session can't go on.
#[test]
fn a_session_that_ends_because_a_upf_refuses_is_released_at_gnb_and_ue() {
    let mut world = World::established();
    world.upf = Some(Ok(N4Cause::NoResourcesAvailable));
    notify(&mut world, rule(50, 8));
    expect_reactivation(&world, "rates");
    world.uplink(PduSessionReleaseComplete::new());
    assert!(world.take_ladder().contains("amf <- SmContextStatusNotify"));
}

/// An idle UE learns it from the PDU session status of its next request.
#[test]
fn of_a_session_without_tunnel_the_amf_is_notified() {
    let mut world = idle();
    world.upf = Some(Ok(N4Cause::NoResourcesAvailable));
    notify(&mut world, rule(50, 8));
    let ladder = world.take_ladder();
    assert!(ladder.contains("amf <- SmContextStatusNotify") && !ladder.contains("N1N2"), "{ladder}");
}

#[test]
fn rates_that_waited_for_a_upf_reach_it_and_the_ue_once() {
    let (mut world, tag) = begin(&CHANGES[0]);
    fails(&mut world, tag, N4Error::NoAssociation);
    world.n4_input(N4Input::UpfRestarted { upf: UPF });
    // Another decision, which leaves the rates as they are.
    notify(&mut world, rule(50, 8));
    world.silent.clear();
    world.take_ladder();
    world.associate(AGAIN, "upf");
    let expected =
        "upf <- SessionEstablishmentRequest\nupf <- SessionModificationRequest\namf <- N1N2MessageTransfer";
    assert_eq!(world.take_ladder(), expected);
    let rates = &establishment_at_anchor(&world).create_qers[0].maximum_bitrate;
    assert_eq!(rates.map(|it| it.downlink), Some(50_000));
    let Some(Message::SessionModificationRequest(request)) = world.n4.last() else { panic!() };
    assert!(matches!(request.update_qers[0].maximum_bitrate, Some(Set::Set(it)) if it.downlink == 50_000));
    let GsmBody::PduSessionModificationCommand(command) = &world.n1.last().unwrap().body else { panic!() };
    assert_eq!(command.session_ambr, Some(ambr(50)));
    super::flows::complete(&mut world);
    assert!(world.bench.timers.is_empty());
    assert_eq!(world.take_ladder(), "amf <- 204");
}

#[test]
fn rules_that_waited_for_a_upf_reach_it_and_the_ue_once() {
    for (at, pdrs) in [(1, 4), (2, 2)] {
        let (mut world, tag) = begin(&CHANGES[at]);
        fails(&mut world, tag, N4Error::NoAssociation);
        world.n4_input(N4Input::UpfRestarted { upf: UPF });
        world.silent.clear();
        world.take_ladder();
        world.associate(AGAIN, "upf");
        assert_eq!(world.take_ladder(), "upf <- SessionEstablishmentRequest\namf <- N1N2MessageTransfer");
        assert_eq!(establishment_at_anchor(&world).create_pdrs.len(), pdrs);
        assert!(matches!(world.n1.last().unwrap().body, GsmBody::PduSessionModificationCommand(_)));
    }
}

#[test]
fn a_lost_tunnel_that_waited_for_a_upf_is_set_up_again() {
    let (mut world, tag) = begin(&CHANGES[8]);
    fails(&mut world, tag, N4Error::NoAssociation);
    world.n4_input(N4Input::UpfRestarted { upf: UPF });
    world.silent.clear();
    world.associate(AGAIN, "upf");
    assert_eq!(
        world.take_ladder(),
        "amf <- N1N2MessageTransfer\nupf <- SessionEstablishmentRequest\namf <- N1N2MessageTransfer",
        "the gNB releases its resources, and gets them again"
    );
    let far = &establishment_at_anchor(&world).create_fars[1];
    assert_eq!(far.apply_action, ApplyAction::BUFF | ApplyAction::NOCP);
}

/// The UPF between gNB and anchor restarts while it is to get new rates.
#[test]
fn rates_of_a_session_whose_classifier_is_away_reach_the_anchor_and_the_ue() {
    for error in [N4Error::NoAssociation, N4Error::NoAnswer] {
        let mut world = branched();
        world.silent.insert(EDGE);
        notify(&mut world, rule(50, 8));
        let (tag, ..) = world.open_n4.pop().unwrap();
        world.take_ladder();
        fails(&mut world, tag, error);
        world.gnb_modifies(true);
        let ladder = world.take_ladder();
        assert!(ladder.contains("upf <- SessionModificationRequest"), "{error:?}: {ladder}");
        assert!(
            matches!(world.n1.last().unwrap().body, GsmBody::PduSessionModificationCommand(_)),
            "{ladder}"
        );
        assert_eq!(world.bench.nf.audit().contexts, 1);
        assert!(world.user_plane().unwrap().front.is_none());
    }
}

/// The gNB reaches the anchor through the other UPF only.
#[test]
fn a_change_waits_for_a_upf_that_the_gnb_needs() {
    for is_first in [true, false] {
        let mut world = World::with(upfs::far_anchor(), &["upf", "edge"]);
        world.establish();
        world.gnb_answers();
        world.silent.insert(EDGE);
        world.deactivate();
        let (tag, upf, _) = world.open_n4.pop().unwrap();
        assert_eq!(upf, EDGE);
        if is_first {
            world.n4_input(N4Input::UpfRestarted { upf: EDGE });
        }
        fails(&mut world, tag, N4Error::NoAssociation);
        if !is_first {
            world.n4_input(N4Input::UpfRestarted { upf: EDGE });
        }
        assert_eq!(state(&world), "AwaitingRestoration", "{}", world.take_ladder());
        world.silent.clear();
        world.associate(AGAIN, "edge");
        assert_eq!(state(&world), "Established", "{}", world.take_ladder());
        let front = world.user_plane().unwrap().front.unwrap();
        assert_eq!((front.session.upf, world.bench.nf.audit().n4_sessions), (AGAIN, 2));
    }
}

/// A session that was established when the UPF restarted.
#[test]
fn a_session_waits_for_a_upf_that_the_gnb_needs() {
    for lost in [UPF, EDGE] {
        let name = if lost == UPF { "upf" } else { "edge" };
        let mut world = World::with(upfs::far_anchor(), &["upf", "edge"]);
        world.establish();
        world.gnb_answers();
        world.n4_input(N4Input::UpfRestarted { upf: lost });
        assert_eq!(state(&world), "AwaitingRestoration", "{}", world.take_ladder());
        world.associate(AGAIN, name);
        assert_eq!(world.bench.nf.audit().n4_sessions, 2, "{}", world.take_ladder());
        assert!(matches!(state(&world), "Established" | "AwaitingUplinkSwitch"), "{}", state(&world));
    }
}

/// What a change needs from a UPF while the session's other UPF, which it needs as well, is lost.
fn loses_one_of_two(begin: fn(&mut World), lost: UpfHandle) {
    let mut world = World::with(upfs::far_anchor(), &["upf", "edge"]);
    world.establish();
    world.gnb_answers();
    world.silent.extend([UPF, EDGE]);
    begin(&mut world);
    world.take_ladder();
    world.n4_input(N4Input::UpfDown { upf: lost });
    assert!(matches!(state(&world), "AwaitingReleaseComplete" | "none"), "{}", state(&world));
    let ladder = world.take_ladder();
    let deletions = |name: &str| ladder.matches(&format!("{name} <- SessionDeletionRequest")).count();
    let names = if lost == UPF { ["edge", "upf"] } else { ["upf", "edge"] };
    assert_eq!(names.map(deletions), [1, 0], "{ladder}");
}

/// Nothing is left at the UPF that is not lost, whichever of them the SMF had asked.
#[test]
fn a_session_that_ends_during_a_change_is_deleted_at_its_other_upf() {
    for lost in [UPF, EDGE] {
        loses_one_of_two(|world| notify(world, rule(50, 8)), lost);
        loses_one_of_two(|world| world.deactivate(), lost);
    }
}

/// The anchor's response is not known yet when the front UPF restarts, too.
#[test]
fn a_session_is_not_restored_twice_at_once() {
    let mut world = World::with(upfs::far_anchor(), &["upf", "edge"]);
    world.establish();
    world.gnb_answers();
    world.n4_input(N4Input::UpfRestarted { upf: UPF });
    world.silent.insert(AGAIN);
    world.associate(AGAIN, "upf");
    world.take_ladder();
    world.n4_input(N4Input::UpfRestarted { upf: EDGE });
    // So that nothing depends on the former handle.
    world.n4_input(N4Input::UpfRestarted { upf: UpfHandle(99) });
    assert_eq!(world.take_ladder().matches("SessionEstablishmentRequest").count(), 0);
    world.upf_answers_late();
    assert_eq!(state(&world), "AwaitingRestoration");
    assert!(world.take_ladder().contains("upf <- SessionDeletionRequest"));
    world.associate(UpfHandle(10), "edge");
    assert_eq!(world.bench.nf.audit().n4_sessions, 2, "{}", world.take_ladder());
    assert!(matches!(state(&world), "Established" | "AwaitingUplinkSwitch"), "{}", state(&world));
}

/// Its next run may have given the SEID to another session.
#[test]
fn nothing_is_deleted_at_a_upf_that_has_restarted() {
    let mut world = World::established();
    world.bench.nf.shared.upfs.note_restart(UPF);
    world.associate(AGAIN, "upf");
    world.take_ladder();
    world.release_by_amf();
    let ladder = world.take_ladder();
    assert!(!ladder.contains("SessionDeletionRequest"), "{ladder}");
}

/// The gateway has no room for the request.
#[test]
fn a_restoration_that_is_not_sent_is_repeated() {
    let mut world = World::established();
    world.n4_input(N4Input::UpfRestarted { upf: UPF });
    world.silent.insert(AGAIN);
    world.associate(AGAIN, "upf");
    let (tag, ..) = world.open_n4.pop().unwrap();
    fails(&mut world, tag, N4Error::Overloaded);
    assert_eq!(state(&world), "AwaitingRestoration");
    world.silent.clear();
    world.expire(Timer::SbiGuard);
    assert_eq!((state(&world), world.bench.nf.audit().n4_sessions), ("Established", 1));
}

/// A session that waits for the gNB. `is_refused`: the gNB hands the UE over, so that the UE has not got the accept.
fn awaiting_setup(is_refused: bool) -> World {
    let mut world = World::new();
    world.establish();
    if is_refused {
        handover_triggered::refuses_setup(&mut world, CauseRadioNetwork::xn_handover_triggered);
    }
    assert_eq!(state(&world), "AwaitingResourceSetup");
    world.n4_input(N4Input::UpfRestarted { upf: UPF });
    assert_eq!(state(&world), "AwaitingRestoration");
    world.take_ladder();
    world
}

fn returns(world: &mut World) {
    world.associate(AGAIN, "upf");
    assert_eq!(state(world), "AwaitingResourceSetup");
    assert_eq!(world.bench.timers.len(), 1, "the guard timer");
}

fn accepts(world: &World) -> usize {
    let is_accept = |it: &&GsmMessage| matches!(it.body, GsmBody::PduSessionEstablishmentAccept(_));
    world.n1.iter().filter(is_accept).count()
}

fn is_set_up(world: &World) {
    assert_eq!(state(world), "Established");
    assert_eq!(world.user_plane().unwrap().gnb, Some(GNB_TUNNEL));
    assert!(world.bench.timers.is_empty(), "{:?}", world.bench.timers);
}

#[test]
fn the_ue_gets_an_accept_that_was_refused_when_the_upf_has_restarted() {
    let mut world = awaiting_setup(true);
    let first = world.n1.last().unwrap().clone();
    returns(&mut world);
    assert_eq!(world.take_ladder(), "upf <- SessionEstablishmentRequest");
    world.expire(Timer::SbiGuard);
    assert_eq!(world.take_ladder(), "amf <- N1N2MessageTransfer");
    assert_eq!((accepts(&world), world.n1.last().unwrap()), (2, &first));
    assert!(world.transfers.last().unwrap().n2_info_container.is_some());
    world.gnb_answers();
    is_set_up(&world);
}

/// The gNB or the AMF refuses while the session waits for its UPF.
#[test]
fn the_ue_gets_an_accept_that_is_refused_during_the_restart_of_the_upf() {
    let mut world = awaiting_setup(false);
    handover_triggered::refuses_setup(&mut world, CauseRadioNetwork::xn_handover_triggered);
    returns(&mut world);
    world.expire(Timer::SbiGuard);
    assert_eq!(accepts(&world), 2);
    world.gnb_answers();
    is_set_up(&world);

    for is_restored_before in [false, true] {
        let mut world = World::new();
        world.script.insert(Operation::N1N2MessageTransfer, None);
        world.establish();
        let (tag, _) = world.open.pop().unwrap();
        world.n4_input(N4Input::UpfRestarted { upf: UPF });
        if is_restored_before {
            returns(&mut world);
        }
        let refusal = problem(SbiCause::TemporaryRejectHandoverOngoing).unwrap();
        let seen = world.bench.reply(tag, refusal);
        world.follow(seen);
        if !is_restored_before {
            returns(&mut world);
        }
        world.expire(Timer::SbiGuard);
        assert_eq!(accepts(&world), 2);
        world.gnb_answers();
        is_set_up(&world);
    }
}

/// A second accept would end the session: the UE answers it with 5GSM STATUS #47.
#[test]
fn an_accept_that_the_ue_may_have_is_not_repeated_after_a_restart_of_the_upf() {
    for answers_before in [true, false] {
        let mut world = awaiting_setup(false);
        if answers_before {
            world.gnb_answers();
            world.associate(AGAIN, "upf");
        } else {
            returns(&mut world);
            world.gnb_answers();
        }
        is_set_up(&world);
        assert_eq!(accepts(&world), 1);
    }
    let mut world = awaiting_setup(false);
    returns(&mut world);
    world.expire(Timer::SbiGuard);
    let GsmBody::PduSessionReleaseCommand(_) = &world.n1.last().unwrap().body else { panic!() };
    world.uplink(PduSessionReleaseComplete::new());
    assert!(world.take_ladder().contains("amf <- SmContextStatusNotify"), "the gNB does not answer");
    world.is_quiet();
}

#[test]
fn a_session_without_accept_ends_with_its_upf_or_the_connection() {
    let mut world = awaiting_setup(true);
    world.n4_input(N4Input::UpfDown { upf: UPF });
    assert!(world.take_ladder().contains("amf <- SmContextStatusNotify"));
    world.is_quiet();
    // The gNB may have resources.
    let mut world = awaiting_setup(false);
    world.n4_input(N4Input::UpfDown { upf: UPF });
    expect_reactivation(&world, "setup");
    // The UE's connection is released.
    let mut world = awaiting_setup(true);
    world.deactivate();
    world.associate(AGAIN, "upf");
    world.is_quiet();
}
