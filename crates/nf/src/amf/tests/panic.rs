//! UE contexts after a panic of their shard: gateways and gNBs have continued.

use super::world::{GNB, OTHER_GNB, Phone, World, config, supi};
use crate::amf::{Amf, Audit};
use crate::kit::{
    Effect, Fate, Input, N2Effect, N2Input, NetworkFunction, Outbox, Rng, StoreScope, Timer, Tracking,
};
use crate::testing::Stored;
use pith_nas::GmmMessage;
use pith_sbi::{Operation, Response};
use std::sync::Arc;

fn tracked(tracking: Tracking) -> World {
    let mut world = World::new();
    world.amf.track_contexts(tracking);
    world
}

/// The next run of the shard has what was stored, and its messages go to the gNBs.
pub(super) fn take_over(world: &mut World, stored: &Stored, tracking: Tracking, fate: Fate) {
    let mut amf = Amf::new(config(), Rng::from_number(9));
    amf.reload_contexts();
    amf.track_contexts(tracking);
    amf.begin_take_over();
    let up = N2Input::GnbUp { gnb: GNB, info: Arc::new(World::gnb_info(GNB)) };
    amf.handle(world.now, Input::N2(up), &mut Outbox::default());
    for (id, document) in &stored.documents {
        amf.take_over_context(world.now, *id, document, fate).unwrap();
    }
    world.replace_amf(amf);
}

fn registered(tracking: Tracking) -> (World, Phone, Stored) {
    let (mut world, mut phone, mut stored) = (tracked(tracking), Phone::default(), Stored::default());
    phone.register(&mut world);
    phone.establish(&mut world, 5);
    stored.store(&mut world.amf, StoreScope::Changed);
    world.take_ladder();
    (world, phone, stored)
}

#[test]
fn a_connected_phone_notices_nothing() {
    let (mut world, mut phone, stored) = registered(Tracking::default());
    take_over(&mut world, &stored, Tracking::default(), Fate::GoesOn);
    assert_eq!(world.take_ladder(), "", "nothing is sent");
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.connected, audit.sessions, audit.dangling), (1, 1, 1, 0));
    let request = phone.deregistration_request(false);
    phone.send(&mut world, request);
    let answer = phone.receive(&mut world);
    assert!(
        matches!(answer, GmmMessage::DeregistrationAcceptUeOriginating(_)),
        "its COUNT is a new one: {answer:?}"
    );
    let mut out = Outbox::default();
    world.amf.finish_take_over(world.now, &mut out);
    let [Effect::N2(N2Effect::TakenOver { connections, .. })] = out.effects() else { panic!("{out:?}") };
    assert_eq!(connections.len(), 1, "until the gNB has released it");
}

#[test]
fn a_procedure_that_waits_for_the_phone_goes_on_with_its_timer() {
    let (mut world, mut phone, mut stored) = registered(Tracking::default());
    world.operate(supi(), crate::kit::Deregister::Anew);
    stored.store(&mut world.amf, StoreScope::Changed);
    let first = phone.receive(&mut world);
    assert!(matches!(first, GmmMessage::DeregistrationRequestUeTerminated(_)));
    world.take_ladder();
    take_over(&mut world, &stored, Tracking::default(), Fate::GoesOn);
    assert_eq!(world.running(), [Timer::T3522]);
    world.expire(Timer::T3522);
    let again = phone.receive(&mut world);
    assert!(matches!(again, GmmMessage::DeregistrationRequestUeTerminated(_)), "{again:?}");
}

/// A phone that was released, while its SMF did not answer the deactivation of its session.
fn cut_off() -> (World, Stored) {
    let (mut world, mut phone, _) = registered(Tracking::default());
    let mut stored = Stored::default();
    world.script.insert(Operation::UpdateSmContext, None);
    phone.release(&mut world);
    // The store has lost its documents: the context is written in the middle of the transaction.
    world.amf.store_all_contexts();
    stored.store(&mut world.amf, StoreScope::Changed);
    world.take_ladder();
    (world, stored)
}

#[test]
fn a_gnb_is_set_up_when_the_deactivation_that_was_cut_off_is_answered() {
    let (mut world, stored) = cut_off();
    take_over(&mut world, &stored, Tracking::default(), Fate::GoesOn);
    assert_eq!(world.take_ladder(), "smf  <- UpdateSmContext", "again");
    world.set_up.clear();
    world.set_up_gnb(OTHER_GNB, World::gnb_info(OTHER_GNB), false);
    assert!(world.set_up.is_empty(), "no document says at which gNB its user plane was");
    world.reply_to(Operation::UpdateSmContext, Ok(Response::NoContent));
    assert_eq!(world.set_up.len(), 1);
}

#[test]
fn a_phone_whose_request_to_an_smf_is_lost_is_released_and_stays_registered() {
    let (mut world, stored) = cut_off();
    take_over(&mut world, &stored, Tracking::default(), Fate::GoesOn);
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.in_procedure, audit.sessions), (1, 0, 1), "{audit:?}");
}

#[test]
fn a_phone_that_may_be_ahead_of_its_document_returns_from_cm_idle() {
    let soft = Tracking { reserved_counts: 16, is_late: true, ..Tracking::default() };
    let (mut world, _, stored) = registered(soft);
    take_over(&mut world, &stored, soft, Fate::GoesOn);
    let audit = world.amf.audit();
    assert_eq!((audit.registered, audit.connected), (1, 0));
    let mut out = Outbox::default();
    world.amf.finish_take_over(world.now, &mut out);
    let Some(Effect::N2(N2Effect::TakenOver { connections, .. })) = out.effects().last() else { panic!() };
    assert!(connections.is_empty(), "the gateway has the gNB release its connection");
}

#[test]
fn a_context_that_panicked_repeatedly_ends_with_what_it_has() {
    let (mut world, mut phone, stored) = registered(Tracking::default());
    take_over(&mut world, &stored, Tracking::default(), Fate::Ends);
    let ladder = world.take_ladder();
    for expected in ["ReleaseSmContext", "DeleteAmPolicyAssociation", "UeContextReleaseCommand"] {
        assert!(ladder.contains(expected), "{expected} in {ladder}");
    }
    phone.released(&mut world);
    let left = world.amf.audit();
    assert_eq!(left, Audit { gnbs: left.gnbs, ..Audit::default() });
}

#[test]
fn new_connections_do_not_get_the_ids_of_former_ones() {
    let (mut world, _, stored) = registered(Tracking::default());
    let former = world.amf.shared.connections.iter().next().map(|(_, it)| it.id).unwrap();
    take_over(&mut world, &stored, Tracking::default(), Fate::GoesOn);
    let adopted = world.amf.shared.connections.iter().next().map(|(_, it)| it.id);
    assert_eq!(adopted, Some(former));
    let mut other = Phone {
        supi: "imsi-999700000000009".parse().unwrap(),
        ran_id: pith_types::RanUeNgapId(2),
        ..Phone::default()
    };
    let request = other.registration_request(pith_nas::ie::RegistrationKind::Initial);
    let nas = other.initial_nas(request);
    other.connect(&mut world, nas);
    let ids: Vec<_> = world.amf.shared.connections.iter().map(|(_, it)| it.id.own()).collect();
    assert!(ids.len() == 2 && ids.iter().any(|own| *own > 1000), "random: {ids:?}");
}
