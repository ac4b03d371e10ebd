//! Profiles and subscriptions after a restart of the NRF.

use super::*;
use crate::kit::{StoreScope, Tracking};
use crate::testing::{Stored, block};

fn stored_bench() -> Bench<Nrf> {
    let mut bench = Bench::new(Nrf::new(root("nrf"), NrfConfig::default()).in_block(block(0)));
    bench.nf.track_contexts(Tracking::default());
    bench
}

/// Stores what changed, and restarts the NRF with that.
fn restart(bench: &mut Bench<Nrf>, stored: &mut Stored) -> Bench<Nrf> {
    stored.store(&mut bench.nf, StoreScope::Required);
    let mut next = stored_bench();
    next.now = bench.now;
    stored.restore(next.now, &mut next.nf, false);
    next
}

#[test]
fn profiles_and_subscriptions_outlive_the_process() {
    let (mut bench, mut stored) = (stored_bench(), Stored::default());
    register(&mut bench, Nf::Smf, 1);
    register(&mut bench, Nf::Udm, 2);
    let of_smf = |data: &mut SubscriptionData| data.subscr_cond = Some(SubscrCond::of_type(NfType::Smf));
    let subscription = subscribe(&mut bench, of_smf);
    let mut next = restart(&mut bench, &mut stored);
    assert_eq!(found(&mut next, query(NfType::Smf)), [instance(1)]);
    assert_eq!(beat(&mut next, 2).answer(), &Response::NoContent, "it does not have to register again");
    assert_eq!(told(&mut next, |bench| deregister(bench, 1)), Some(NotificationEventType::NfDeregistered));
    let another = subscribe(&mut next, |_| {});
    assert_ne!(another.id(), subscription.id());

    // What has ended does not return.
    deregister(&mut next, 2);
    let removed = RemoveSubscription { subscription_id: subscription.id().into() };
    assert_eq!(next.request(removed).answer(), &Response::NoContent);
    let mut last = restart(&mut next, &mut stored);
    assert!(found(&mut last, query(NfType::Smf)).is_empty());
    assert_eq!(beat(&mut last, 2).problem().status, 404);
    assert_eq!((last.nf.instances.len(), last.nf.subscriptions.len()), (0, 1));
    assert_eq!(stored.documents.len(), 1);
}

#[test]
fn a_heart_beat_that_changes_nothing_is_not_stored() {
    let (mut bench, mut stored) = (stored_bench(), Stored::default());
    register(&mut bench, Nf::Smf, 1);
    stored.store(&mut bench.nf, StoreScope::Required);
    beat(&mut bench, 1);
    patch(&mut bench, 1, vec![PatchItem::replace("/nfStatus", "REGISTERED"), PatchItem::add("/load", 30)]);
    stored.store(&mut bench.nf, StoreScope::Changed);
    assert_eq!(stored.writes, 1);
    patch(&mut bench, 1, vec![PatchItem::add("/priority", 3)]);
    stored.store(&mut bench.nf, StoreScope::Required);
    assert_eq!(stored.writes, 2);
}

#[test]
fn an_instance_that_was_suspended_returns_with_its_next_heart_beat_after_a_restart() {
    let (mut bench, mut stored) = (stored_bench(), Stored::default());
    register(&mut bench, Nf::Smf, 1);
    (0..4).for_each(|_| drop(bench.expire(Timer::NrfSweep)));
    let mut next = restart(&mut bench, &mut stored);
    assert!(found(&mut next, query(NfType::Smf)).is_empty());
    assert_eq!(beat(&mut next, 1).answer(), &Response::NoContent);
    assert_eq!(found(&mut next, query(NfType::Smf)), [instance(1)]);
    let mut last = restart(&mut next, &mut stored);
    assert_eq!(found(&mut last, query(NfType::Smf)), [instance(1)]);
}

#[test]
fn an_instance_that_is_silent_after_the_restart_leaves_discovery() {
    let (mut bench, mut stored) = (stored_bench(), Stored::default());
    register(&mut bench, Nf::Smf, 1);
    let mut next = restart(&mut bench, &mut stored);
    let mut out = crate::kit::Outbox::new(crate::kit::Level::Error);
    next.nf.resume_contexts(next.now, &mut out);
    assert!(out.effects().iter().any(|effect| format!("{effect:?}").contains("NrfSweep")), "the sweep runs");
    for _ in 0..4 {
        next.now = next.now + next.nf.config.heart_beat;
        next.input(Input::Timer(crate::kit::TimerKey { owner: 0, timer: Timer::NrfSweep }));
    }
    assert!(found(&mut next, query(NfType::Smf)).is_empty());
}

const GOLDEN: &[(&str, &str)] = &[
    ("nrf-profile-1", include_str!("../../../tests/golden/nrf-profile-1.hex")),
    ("nrf-subscription-1", include_str!("../../../tests/golden/nrf-subscription-1.hex")),
];

#[test]
fn documents_of_earlier_versions_are_read_and_damaged_ones_refused() {
    let (mut bench, mut stored) = (stored_bench(), Stored::default());
    register(&mut bench, Nf::Smf, 1);
    subscribe(&mut bench, |data| data.subscr_cond = Some(SubscrCond::of_type(NfType::Smf)));
    stored.store(&mut bench.nf, StoreScope::Required);
    let documents: Vec<_> = stored.documents.into_values().collect();
    let written = [("nrf-profile", documents[0].clone()), ("nrf-subscription", documents[1].clone())];
    crate::testing::check_documents(GOLDEN, &written, Nrf::repack);
}
