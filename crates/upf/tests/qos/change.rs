//! Rule changes of active flows.

use crate::lab::*;
use pith_upf::contract::Direction;

fn flow(gbr: u64, mbr: u64) -> QosFlow {
    QosFlow { pdr: 1, gbr: gbr * MBIT, mbr: mbr * MBIT }
}

fn near(rates: &[f64], expected: &[f64]) -> bool {
    rates.iter().zip(expected).all(|(rate, expected)| (rate - expected).abs() < 0.03 * expected)
}

#[test]
fn rates_change_at_once_and_queued_packets_stay() {
    let mut lab = Lab::new(
        session(10 * MBIT, &[flow(2, 5)], &[2]),
        vec![Source::new(1, 10 * MBIT), Source::new(2, 10 * MBIT)],
    );
    lab.run_until(SECOND);
    let (waiting, dropped) = (lab.queued(), lab.dropped());
    assert!(waiting > 10);
    lab.install(session(10 * MBIT, &[flow(4, 7)], &[2]), Far::Forward);
    assert_eq!((lab.queued(), lab.dropped()), (waiting, dropped), "nothing was lost");
    lab.run_until(3 * SECOND);
    assert!(near(&lab.rates(SECOND + 100 * MS, 3 * SECOND), &[7.0, 3.0]));
    lab.install(session(20 * MBIT, &[flow(4, 7)], &[2]), Far::Forward);
    lab.run_until(4 * SECOND);
    assert!(near(&lab.rates(3 * SECOND + 100 * MS, 4 * SECOND), &[7.0, 10.0]));
    lab.assert_in_order();
}

#[test]
fn flows_come_and_go_and_counters_of_those_that_stay_go_on() {
    let mut lab = Lab::new(
        session(10 * MBIT, &[], &[1, 2]),
        vec![Source::new(1, 10 * MBIT), Source::new(2, 10 * MBIT)],
    );
    lab.run_until(SECOND);
    assert!(near(&lab.rates(100 * MS, SECOND), &[5.0, 5.0]));
    let passed = |lab: &Lab| lab.qos.usage().iter().map(|usage| usage.count.passed().packets).sum::<u64>();
    let before = passed(&lab);
    lab.install(session(10 * MBIT, &[flow(4, 7)], &[2]), Far::Forward);
    lab.run_until(2 * SECOND);
    assert!(near(&lab.rates(SECOND + 100 * MS, 2 * SECOND), &[7.0, 3.0]));
    assert!(passed(&lab) > before);
    lab.install(session(10 * MBIT, &[], &[1, 2]), Far::Forward);
    lab.run_until(3 * SECOND);
    assert!(near(&lab.rates(2 * SECOND + 100 * MS, 3 * SECOND), &[5.0, 5.0]));
    lab.assert_in_order();
}

#[test]
fn counters_prove_the_shares() {
    let mut lab = Lab::new(
        session(10 * MBIT, &[flow(2, 5)], &[2]),
        vec![Source::new(1, 10 * MBIT), Source::new(2, 10 * MBIT)],
    );
    lab.run_until(10 * SECOND);
    let usage = lab.qos.usage();
    let qos =
        usage.iter().find(|usage| usage.qers.len() == 2 && usage.direction == Direction::Downlink).unwrap();
    let mbit = |bytes: u64| bytes as f64 * 8.0 / 1e7;
    let colours = [qos.count.green, qos.count.yellow, qos.count.red].map(|count| mbit(count.bytes));
    assert!(near(&colours, &[2.0, 3.0, 5.0]), "{colours:?}");
    assert_eq!(qos.count.offered().packets, 12_500);
    let rest = usage.iter().find(|usage| usage.qers.len() == 1).unwrap();
    assert_eq!((rest.count.green.packets, rest.count.red.packets), (0, 0));
    assert!(near(&[mbit(rest.count.yellow.bytes), mbit(rest.count.dropped.bytes)], &[5.0, 5.0]));
}
