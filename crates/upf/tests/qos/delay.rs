//! Delays of packets under any load.

use crate::lab::*;
use pith_upf::contract::DropReason;

#[test]
fn p99_is_under_25_ms_for_floods_under_any_rate() {
    for ambr in [2, 10, 100, 1000] {
        let flow = QosFlow { pdr: 1, gbr: ambr * MBIT * 2 / 5, mbr: ambr * MBIT * 7 / 10 };
        let flood = |pdr| Source::new(pdr, ambr * MBIT * 3);
        let mut lab = Lab::new(session(ambr * MBIT, &[flow], &[2]), vec![flood(1), flood(2)]);
        lab.lateness = MS;
        lab.run_until(SECOND);
        for source in [0, 1] {
            assert!(lab.delay(source, 0.99) < 25.0, "{ambr}: {} ms", lab.delay(source, 0.99));
        }
    }
}

#[test]
fn a_connection_below_its_share_does_not_wait_for_a_flood() {
    let sparse = Source { bytes: 200, ..Source::new(1, MBIT / 10) };
    let mut lab = Lab::new(session(10 * MBIT, &[], &[1]), vec![Source::new(1, 100 * MBIT), sparse]);
    lab.run_until(10 * SECOND);
    assert!(lab.delay(1, 0.99) < 3.0, "{} ms", lab.delay(1, 0.99));
    let passed = lab.log.passed.iter().filter(|passed| passed.packet.source == 1).count();
    assert_eq!(passed, 10 * 100_000 / 1600, "and loses nothing");
}

#[test]
fn drops_have_a_reason() {
    let flow = QosFlow { pdr: 1, gbr: 2 * MBIT, mbr: 5 * MBIT };
    let sources = |qos, rest| vec![Source::new(1, qos * MBIT), Source::new(2, rest * MBIT)];
    let reasons = |sources| {
        let mut lab = Lab::new(session(10 * MBIT, &[flow], &[2]), sources);
        lab.run_until(2 * SECOND);
        lab.log
            .dropped
            .into_iter()
            .filter(|(_, count)| *count > 5)
            .map(|(reason, _)| reason)
            .collect::<Vec<_>>()
    };
    assert_eq!(reasons(sources(9, 1)), [DropReason::RateExceeded], "above its own maximum: red");
    assert_eq!(reasons(sources(1, 20)).first(), Some(&DropReason::QueueDelay));
    assert_eq!(reasons(sources(4, 5)), []);
}
