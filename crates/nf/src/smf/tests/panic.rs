//! Sessions after a panic of their shard: gateways, gNBs and UPFs have continued.

use super::super::Smf;
use super::super::SmfConfig;
use super::super::procedure::State;
use super::handover;
use super::world::*;
use crate::kit::{Fate, Input, Level, N4Input, NetworkFunction, Outbox, Rng, StoreScope, Tag, Tracking};
use crate::testing::{self, Bench, Stored};
use pith_pfcp::Message;
use pith_pfcp::ie::{Cause as N4Cause, FSeid, NodeId};
use pith_pfcp::message::SessionEstablishmentResponse;

pub(super) fn tracked(mut world: World) -> World {
    world.bench.nf.track_contexts(Tracking::default());
    world
}

pub(super) fn stored(world: &mut World) -> Stored {
    let mut stored = Stored::default();
    stored.store(&mut world.bench.nf, StoreScope::Changed);
    stored
}

/// The next run of the shard, with the UPFs of the former one.
pub(super) fn taken_over(world: &World, stored: &Stored, fate: Fate) -> World {
    taken_over_with(world, stored, (config(), fate), |next| next.associate(UPF, "upf"))
}

fn taken_over_with(
    world: &World,
    stored: &Stored,
    (config, fate): (SmfConfig, Fate),
    associate: impl FnOnce(&mut World),
) -> World {
    let mut next = World::with(config.clone(), &[]);
    let mut smf = Smf::new(testing::identity(), config, Rng::from_number(2));
    smf.track_contexts(Tracking::default());
    smf.begin_take_over();
    next.bench = Bench::new(smf);
    next.reference.clone_from(&world.reference);
    associate(&mut next);
    next.take_ladder();
    for (id, document) in &stored.documents {
        next.bench.nf.take_over_context(world.bench.now, *id, document, fate).unwrap();
    }
    let mut out = Outbox::new(Level::Debug);
    next.bench.nf.resume_contexts(world.bench.now, &mut out);
    let seen = next.bench.take(out);
    next.follow(seen);
    next
}

/// The process has just started, and UPFs retain its sessions: one with a classifier waits for the other UPF.
#[test]
fn a_session_that_was_taken_over_before_its_upfs_are_associated_is_unconfirmed() {
    let (world, stored) = super::retention::stored_with_classifier();
    let fate = (super::branching::plain(), Fate::GoesOn);
    let mut next = taken_over_with(&world, &stored, fate, |_| ());
    next.take_ladder();
    next.associate_retaining(UPF, "upf");
    assert_eq!(next.take_ladder(), "", "the UPF would delete the session as one of a former run");
    next.associate_retaining(EDGE, "edge");
    let ladder = next.take_ladder();
    for expected in
        ["upf <- SessionModificationRequest", "gateway <- confirmed upf", "gateway <- confirmed edge"]
    {
        assert!(ladder.contains(expected), "{ladder}");
    }
}

#[test]
fn an_established_session_goes_on_without_a_message_to_its_upf() {
    let mut world = tracked(World::new());
    world.establish();
    world.gnb_answers();
    let stored = stored(&mut world);
    let mut next = taken_over(&world, &stored, Fate::GoesOn);
    assert_eq!(next.take_ladder(), "");
    let before = world.user_plane().unwrap();
    let after = next.user_plane().unwrap();
    assert_eq!((after.anchor, after.gnb), (before.anchor, before.gnb), "SEID, F-TEID and the gNB's tunnel");
    assert_eq!(next.bench.nf.audit().addresses, 1);
    next.deactivate();
    assert_eq!(next.take_ladder(), "upf <- SessionModificationRequest\namf <- 200");
    next.release_by_amf();
    assert_eq!(next.bench.nf.audit(), Default::default());
}

#[test]
fn a_session_that_waits_for_its_anchor_is_requested_again() {
    let mut world = tracked(World::new());
    world.upf = None;
    world.establish();
    let stored = stored(&mut world);
    let mut next = taken_over(&world, &stored, Fate::GoesOn);
    let ladder = next.take_ladder();
    assert!(ladder.starts_with("upf <- SessionEstablishmentRequest"), "{ladder}");
    assert!(ladder.contains("amf <- N1N2MessageTransfer"), "the establishment goes on: {ladder}");
    next.gnb_answers();
    let (_, session) = next.bench.nf.sessions.iter().next().unwrap();
    assert!(matches!(session.state(), State::Established(_)), "{}", session.state().name());
}

/// The AMF has got no answer to COMPLETED, and repeats it.
#[test]
fn a_handover_whose_path_switch_was_cut_is_completed_again() {
    let mut world = tracked(World::new());
    world.establish();
    world.gnb_answers();
    handover::required(&mut world);
    handover::prepared(&mut world);
    world.upf = None;
    handover::completed(&mut world);
    let stored = stored(&mut world);
    let mut next = taken_over(&world, &stored, Fate::GoesOn);
    next.take_ladder();
    handover::completed(&mut next);
    assert_eq!(next.take_ladder(), "upf <- SessionModificationRequest\namf <- 200");
    assert_eq!(next.user_plane().unwrap().gnb, Some(handover::TARGET));
    handover::completed(&mut next);
    assert_eq!(next.take_ladder(), "amf <- 200");
}

/// The former run may not have sent the request.
#[test]
fn a_session_that_was_leaving_a_upf_is_deleted_there() {
    let mut world = tracked(World::new());
    world.establish();
    world.gnb_answers();
    let (_, session) = world.bench.nf.sessions.iter().next().unwrap();
    let (key, anchor) = (session.key, session.state().user_plane().unwrap().anchor);
    world.bench.nf.sessions.get_mut(key).unwrap().leaving.push(anchor);
    let stored = stored(&mut world);
    let mut next = taken_over(&world, &stored, Fate::GoesOn);
    assert_eq!(next.take_ladder(), "upf <- SessionDeletionRequest");
    assert!(next.bench.nf.sessions.iter().all(|(_, session)| session.leaving.is_empty()));
}

#[test]
fn what_a_upf_established_for_a_former_run_is_deleted() {
    let world = tracked(World::new());
    let mut next = taken_over(&world, &Stored::default(), Fate::GoesOn);
    let address = next.bench.nf.shared.upfs.info(UPF).unwrap().address;
    let response = SessionEstablishmentResponse {
        up_f_seid: Some(FSeid::new(0x77, address)),
        ..SessionEstablishmentResponse::new(NodeId::from(address), N4Cause::RequestAccepted)
    };
    let result = Ok(Message::SessionEstablishmentResponse(response));
    let input = N4Input::Response { tag: Tag::new(u64::MAX - 2, 0), result };
    let mut out = Outbox::new(Level::Debug);
    next.bench.nf.handle(world.bench.now, Input::N4(Box::new(input)), &mut out);
    let seen = next.bench.take(out);
    next.follow(seen);
    assert_eq!(next.take_ladder(), "upf <- SessionDeletionRequest");
}

#[test]
fn a_session_that_panicked_repeatedly_ends_with_what_it_has() {
    let mut world = tracked(World::new());
    world.establish();
    world.gnb_answers();
    let stored = stored(&mut world);
    let next = taken_over(&world, &stored, Fate::Ends);
    let ladder = next.ladder.join("\n");
    for expected in ["upf <- SessionDeletionRequest", "pcf <- DeleteSmPolicy", "amf <- SmContextStatusNotify"]
    {
        assert!(ladder.contains(expected), "{expected} in {ladder}");
    }
    assert_eq!(next.bench.nf.audit(), Default::default());
}
