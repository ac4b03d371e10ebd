//! Notifications of changed subscribers.

use super::super::changes::AGAIN;
use super::*;
use crate::kit::{Duration, Order, Timer};
use pith_sbi::{Cause, Problem, Response};
use pith_types::Supi;

fn notifying() -> Bench<Udr> {
    Bench::new(Udr::new(root("udr")).notifying_changes())
}

fn operate(bench: &mut Bench<Udr>) -> Seen {
    let mut out = Outbox::default();
    bench.nf.operate(bench.now, &Order::NotifyChanges, &mut out, &mut Vec::new());
    bench.take(out)
}

fn number(number: u64) -> Supi {
    Supi::from_imsi(&format!("99970{number:010}")).unwrap()
}

fn rows(numbers: std::ops::Range<u64>) -> Result<StoreResponse, StoreError> {
    Ok(StoreResponse::Changed(numbers.map(|it| (it, number(it))).collect()))
}

fn notified(seen: &Seen) -> Vec<(Tag, Supi)> {
    let of = |(tag, _, request): (Tag, &crate::kit::Target, &Request)| {
        let Request::DataChangeNotification(notification) = request else { panic!("{request:?}") };
        assert_eq!(request.target_nf(), Some(pith_sbi::NfType::Udm));
        (tag, notification.body.ue_id.clone().unwrap())
    };
    seen.calls().into_iter().map(of).collect()
}

/// One changed subscriber, of which the UDM is notified.
fn one() -> (Bench<Udr>, Tag) {
    let mut bench = notifying();
    let asked = operate(&mut bench);
    let (tag, StoreRequest::Changed { after: 0, .. }) = asked.store() else { panic!("{asked:?}") };
    let seen = bench.stored(tag, rows(7..8));
    let [(tag, supi)] = &notified(&seen)[..] else { panic!("{seen:?}") };
    assert_eq!(*supi, number(7));
    (bench, *tag)
}

#[test]
fn a_change_is_notified_twice_and_forgotten() {
    let (mut bench, tag) = one();
    assert!(bench.reply(tag, Ok(Response::NoContent)).is_empty());
    let before = bench.now;
    let again = bench.expire(Timer::ChangedSubscribers);
    assert_eq!(bench.now.since(before), AGAIN);
    let [(tag, _)] = &notified(&again)[..] else { panic!("{again:?}") };
    let seen = bench.reply(*tag, Ok(Response::NoContent));
    assert_eq!(seen.store().1, &StoreRequest::ForgetChanged { numbers: vec![7] });
    assert!(bench.stored(seen.store().0, Ok(StoreResponse::Done { created_or_found: true })).is_empty());
    let asked = operate(&mut bench);
    let (_, StoreRequest::Changed { after: 7, .. }) = asked.store() else { panic!("{asked:?}") };
}

#[test]
fn a_failed_notification_is_repeated_with_growing_pauses_but_not_without_end() {
    let (mut bench, mut tag) = one();
    let mut pauses = Vec::new();
    loop {
        let seen = bench.reply(tag, Err(Box::new(Problem::timed_out())));
        assert!(seen.is_empty());
        if !bench.timers.keys().any(|key| key.timer == Timer::ChangedSubscribers) {
            break;
        }
        let before = bench.now;
        let again = bench.expire(Timer::ChangedSubscribers);
        pauses.push(bench.now.since(before));
        tag = notified(&again)[0].0;
    }
    assert_eq!(pauses[..3], [1, 2, 4].map(Duration::from_secs));
    assert_eq!((pauses.len(), pauses[22]), (23, Duration::from_secs(512)));
    // The row stays: the next start reads it.
    let mut next = notifying();
    let asked = operate(&mut next);
    assert_eq!(asked.store().1, &StoreRequest::Changed { after: 0, limit: 128 });
}

#[test]
fn a_udm_that_takes_no_notifications_is_not_asked_again() {
    let (mut bench, tag) = one();
    assert!(bench.reply(tag, Err(Box::new(Problem::of_status(404)))).is_empty());
    let again = bench.expire(Timer::ChangedSubscribers);
    let seen = bench.reply(notified(&again)[0].0, Err(Box::new(Problem::of_status(404))));
    assert_eq!(seen.store().1, &StoreRequest::ForgetChanged { numbers: vec![7] });
}

/// The NRF has been restarted, and not all NFs have registered again.
#[test]
fn a_notification_for_which_no_nf_is_found_is_repeated() {
    let (mut bench, mut tag) = one();
    for attempt in ["first", "second"] {
        let before = bench.now;
        assert!(bench.reply(tag, Err(Box::new(Problem::new(Cause::NfDiscoveryFailure)))).is_empty());
        let again = bench.expire(Timer::ChangedSubscribers);
        assert_eq!(bench.now.since(before), Duration::from_secs(1), "{attempt}");
        let seen = bench.reply(notified(&again)[0].0, Ok(Response::NoContent));
        if attempt == "second" {
            assert_eq!(seen.store().1, &StoreRequest::ForgetChanged { numbers: vec![7] });
            break;
        }
        tag = notified(&bench.expire(Timer::ChangedSubscribers))[0].0;
    }
}

#[test]
fn many_changes_are_notified_some_at_a_time() {
    let mut bench = notifying();
    let asked = operate(&mut bench);
    let seen = bench.stored(asked.store().0, rows(1..129));
    let mut open: Vec<_> = notified(&seen).into_iter().map(|(tag, _)| tag).collect();
    assert_eq!(open.len(), 32);
    let mut supis = std::collections::BTreeSet::new();
    let mut stores = seen.0.into_iter().filter(|it| matches!(it, Effect::Store { .. })).count();
    while let Some(tag) = open.pop() {
        let seen = bench.reply(tag, Ok(Response::NoContent));
        for (tag, supi) in notified(&seen) {
            assert!(supis.insert(supi), "once");
            open.push(tag);
        }
        stores += seen.0.iter().filter(|it| matches!(it, Effect::Store { .. })).count();
        assert!(open.len() <= 32);
    }
    assert_eq!((supis.len(), stores), (96, 1), "the next rows are read once");
}

#[test]
fn a_database_failure_is_tried_again() {
    let mut bench = notifying();
    let asked = operate(&mut bench);
    assert!(bench.stored(asked.store().0, Err(StoreError("busy".into()))).is_empty());
    let again = bench.expire(Timer::ChangedSubscribers);
    assert_eq!(again.store().1, &StoreRequest::Changed { after: 0, limit: 128 });
}

#[test]
fn the_udrs_of_other_shards_notify_nothing() {
    let mut bench = bench();
    assert!(operate(&mut bench).is_empty());
    let mut out = Outbox::default();
    bench.nf.resume_contexts(bench.now, &mut out);
    assert!(bench.take(out).is_empty());
}
