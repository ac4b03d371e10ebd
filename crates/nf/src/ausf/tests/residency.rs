//! Challenges after a restart of the AUSF.

use super::*;
use crate::kit::{StoreScope, Tracking};
use crate::testing::Stored;

fn stored_bench() -> Bench<Ausf> {
    let mut bench = bench();
    bench.nf.track_contexts(Tracking::default());
    bench
}

/// Stores what changed, and restarts the AUSF with that some time later.
fn restart(bench: &mut Bench<Ausf>, stored: &mut Stored, later: Duration) -> Bench<Ausf> {
    stored.store(&mut bench.nf, StoreScope::Changed);
    let config = AusfConfig { serving_networks: vec![testing::plmn()] };
    let mut next = Bench::new(Ausf::new(testing::identity(), config, Rng::from_number(2)));
    next.nf.track_contexts(Tracking::default());
    next.now = bench.now + later;
    stored.restore(next.now, &mut next.nf, false);
    let mut out = Outbox::new(crate::kit::Level::Info);
    next.nf.resume_contexts(next.now, &mut out);
    next.take(out);
    next
}

#[test]
fn a_challenge_is_confirmed_after_a_restart_and_then_not_stored_any_longer() {
    let (mut bench, mut stored) = (stored_bench(), Stored::default());
    let id = challenge(&mut bench);
    let mut next = restart(&mut bench, &mut stored, Duration::from_secs(2));
    assert_eq!((stored.documents.len(), next.timers.len()), (1, 1));
    let seen = confirm(&mut next, &id, Some(XRES_STAR));
    assert_eq!(confirmation(&seen).auth_result, AuthResult::AuthenticationSuccess);
    assert!(confirmation(&seen).kseaf.is_some() && told_udm(&seen));
    stored.store(&mut next.nf, StoreScope::Required);
    assert!(stored.documents.is_empty());
    assert_eq!(confirm(&mut next, &id, Some(XRES_STAR)).problem().status, 404, "a challenge is used once");
}

#[test]
fn a_challenge_is_not_stored_before_there_is_a_vector_nor_after_its_end() {
    let (mut bench, mut stored) = (stored_bench(), Stored::default());
    authenticate(&mut bench, SERVING_NETWORK);
    stored.store(&mut bench.nf, StoreScope::Changed);
    assert!(stored.documents.is_empty(), "the AMF repeats its request");
    challenge(&mut bench);
    let mut next = restart(&mut bench, &mut stored, Duration::from_secs(2));
    next.expire(Timer::Expiry);
    assert!(next.now <= bench.now + CHALLENGE_LIFETIME + Duration::from_secs(1), "not a lifetime longer");
    stored.store(&mut next.nf, StoreScope::Required);
    assert!(stored.documents.is_empty());
}

#[test]
fn a_challenge_that_is_too_old_does_not_return() {
    let (mut bench, mut stored) = (stored_bench(), Stored::default());
    let id = challenge(&mut bench);
    let mut next = restart(&mut bench, &mut stored, CHALLENGE_LIFETIME);
    assert_eq!((next.nf.pending(), next.timers.len()), (0, 0));
    assert_eq!(confirm(&mut next, &id, Some(XRES_STAR)).problem().status, 404);
    stored.store(&mut next.nf, StoreScope::Required);
    assert!(stored.documents.is_empty());
}
