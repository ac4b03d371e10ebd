//! Packets of idle UEs: limited, reported once, released completely and in order.

use crate::lab::*;
use pith_upf::contract::{DropReason, PdrId};
use pith_upf::qos::BufferLimits;

/// A hundred packets at once, of one PDR.
fn burst(pdr: u16) -> Source {
    Source { burst: 100, stop: MS, ..Source::new(pdr, MBIT) }
}

fn idle(limits: BufferLimits, sources: Vec<Source>, most: Option<u16>) -> Lab {
    let mut lab = Lab::with(session(10 * MBIT, &[], &[1, 2]), sources, limits);
    lab.far = Far::Buffer(most);
    lab
}

#[test]
fn a_held_burst_is_released_in_order_at_the_sessions_rate() {
    let mut lab = idle(BufferLimits::default(), vec![burst(1)], None);
    lab.run_until(SECOND);
    assert_eq!((lab.held(), lab.log.passed.len(), &lab.log.told[..]), (100, 0, &[PdrId(1)][..]));
    lab.install(session(10 * MBIT, &[], &[1, 2]), Far::Forward);
    lab.run_until(2 * SECOND);
    lab.assert_in_order();
    assert_eq!((lab.log.passed.len(), lab.dropped(), lab.room.packets()), (100, 0, 0));
    let took = lab.log.passed[99].at - SECOND;
    assert!((50 * MS..90 * MS).contains(&took), "800 kbit at 10 Mbit/s, less a burst: {took}");
}

#[test]
fn packets_during_a_release_are_sent_after_it() {
    let steady = Source { start: 999 * MS, ..Source::new(1, 5 * MBIT) };
    let mut lab = idle(BufferLimits::default(), vec![burst(1), steady], None);
    lab.run_until(SECOND);
    lab.install(session(10 * MBIT, &[], &[1, 2]), Far::Forward);
    lab.run_until(3 * SECOND);
    lab.assert_in_order();
    let last_of_burst = lab.log.passed.iter().rposition(|passed| passed.packet.source == 0).unwrap();
    let before = lab.log.passed[..last_of_burst].iter().filter(|passed| passed.packet.source == 1).count();
    assert_eq!(before, 0, "two packets held behind the burst, and none before it");
    let lost = lab.dropped();
    assert!(lost < 20, "only what does not fit behind a burst as long as six times the bound: {lost}");
}

#[test]
fn every_limit_applies_and_drops_by_name() {
    let sources = || vec![burst(1), burst(2)];
    let limits = BufferLimits::default();
    for (limits, most, held) in [
        (limits, None, 128),
        (limits, Some(7), 7),
        (limits, Some(0), 0),
        (BufferLimits { packets: 50, ..limits }, None, 50),
        (BufferLimits { bytes: 30_000, ..limits }, None, 30),
    ] {
        let mut lab = idle(limits, sources(), most);
        lab.run_until(SECOND);
        assert_eq!(lab.held(), held);
        assert_eq!(lab.log.dropped.get(&DropReason::BufferFull), Some(&(200 - held as u64)));
    }
}

#[test]
fn each_pdr_is_reported_once_until_nothing_is_held() {
    let again = Source { start: 2 * SECOND, stop: 2 * SECOND + MS, ..burst(1) };
    let mut lab = idle(BufferLimits::default(), vec![burst(1), burst(2), again], Some(200));
    lab.run_until(SECOND);
    assert_eq!(lab.log.told, [PdrId(1), PdrId(2)]);
    lab.install(session(10 * MBIT, &[], &[1, 2]), Far::Buffer(Some(500)));
    assert_eq!(lab.held(), 200, "rules that still buffer keep what is held");
    lab.run_until(2 * SECOND + 2 * MS);
    assert_eq!(lab.log.told.len(), 2);
    lab.discard(false);
    assert_eq!((lab.held(), lab.room.packets(), lab.engine.sessions()), (0, 0, 0));
    assert_eq!(lab.log.dropped.get(&DropReason::BufferDiscarded), Some(&300));
}

#[test]
fn rules_that_drop_empty_the_buffer() {
    let mut lab = idle(BufferLimits::default(), vec![burst(1)], None);
    lab.run_until(SECOND);
    lab.install(session(10 * MBIT, &[], &[1, 2]), Far::Drop);
    lab.run_until(2 * SECOND);
    assert_eq!((lab.held(), lab.dropped(), lab.room.packets()), (0, 100, 0));
    assert_eq!(lab.engine.sessions(), 0);
}

#[test]
fn a_session_that_falls_idle_keeps_what_was_queued() {
    let mut lab = Lab::new(
        session(10 * MBIT, &[], &[1, 2]),
        vec![Source { stop: SECOND, ..Source::new(1, 20 * MBIT) }],
    );
    lab.run_until(SECOND - MS);
    let queued = lab.queued();
    assert!(queued > 10);
    lab.install(session(10 * MBIT, &[], &[1, 2]), Far::Buffer(None));
    assert_eq!((lab.held() as u64, lab.queued()), (queued, 0));
    assert_eq!(lab.log.told, [PdrId(1)], "its UE has to be woken for them");
    lab.run_until(2 * SECOND);
    lab.install(session(10 * MBIT, &[], &[1, 2]), Far::Forward);
    lab.run_until(3 * SECOND);
    lab.assert_in_order();
    assert_eq!(lab.engine.sessions(), 0);
    assert_eq!(lab.offered, lab.log.passed.len() as u64 + lab.dropped());
}

#[test]
fn unreported_held_packets_are_reported_when_new_rules_request_it() {
    let mut lab = idle(BufferLimits::default(), vec![burst(1), burst(2)], Some(200));
    lab.far = Far::BufferUntold;
    lab.run_until(SECOND);
    assert_eq!((lab.held(), lab.log.told.len()), (128, 0));
    for (far, told) in
        [(Far::Buffer(None), 2), (Far::Buffer(Some(5)), 2), (Far::BufferUntold, 2), (Far::Buffer(None), 4)]
    {
        lab.install(session(10 * MBIT, &[], &[1, 2]), far);
        assert_eq!((lab.held(), lab.log.told.len()), (128, told), "{far:?}");
    }
}
