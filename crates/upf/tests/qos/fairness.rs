//! Shares of flows against the exact solution.

use crate::lab::*;
use pith_upf::qos::Ecn;

/// The exact solution: each flow gets its demand up to its guarantee; the rest of the AMBR is shared evenly,
/// up to `min(demand, MBR)` each. Rates in Mbit/s, flows as (demand, GBR, MBR).
fn max_min(ambr: f64, flows: &[(f64, f64, f64)]) -> Vec<f64> {
    let sure: Vec<f64> = flows.iter().map(|(demand, gbr, _)| demand.min(*gbr)).collect();
    let wanted: Vec<f64> =
        flows.iter().zip(&sure).map(|((demand, _, mbr), sure)| demand.min(*mbr) - sure).collect();
    let mut left = ambr - sure.iter().sum::<f64>();
    let mut order: Vec<usize> = (0..flows.len()).collect();
    order.sort_by(|a, b| wanted[*a].total_cmp(&wanted[*b]));
    let mut shares = sure;
    for (done, at) in order.iter().enumerate() {
        let share = wanted[*at].min(left / (flows.len() - done) as f64);
        shares[*at] += share;
        left -= share;
    }
    shares
}

fn assert_near(rates: &[f64], expected: &[f64], tolerance: f64) {
    let near =
        rates.iter().zip(expected).all(|(rate, expected)| (rate - expected).abs() <= expected * tolerance);
    assert!(near, "{rates:.3?} Mbit/s, not {expected:.3?}");
}

/// Rates of a QoS flow with that GBR and MBR, and of the rest, with AMBR 10.
fn pair(gbr: u64, mbr: u64, sources: [Source; 2], lateness: u64) -> Vec<f64> {
    let flow = QosFlow { pdr: 1, gbr: gbr * MBIT, mbr: mbr * MBIT };
    let mut lab = Lab::new(session(10 * MBIT, &[flow], &[2]), sources.into());
    lab.lateness = lateness;
    lab.run_until(11 * SECOND);
    lab.assert_in_order();
    lab.rates(SECOND, 11 * SECOND)
}

fn both(rate: u64) -> [Source; 2] {
    [Source::new(1, rate), Source::new(2, rate)]
}

#[test]
fn a_qos_flow_gets_half_of_what_is_left_beyond_its_guarantee_up_to_its_maximum() {
    for (gbr, mbr, expected) in [
        (2, 5, [5.0, 5.0]),
        (4, 7, [7.0, 3.0]),
        (2, 10, [6.0, 4.0]),
        (0, 10, [5.0, 5.0]),
        (9, 10, [9.5, 0.5]),
        (6, 6, [6.0, 4.0]),
    ] {
        assert_near(&pair(gbr, mbr, both(10 * MBIT), 0), &expected, 0.02);
        assert_near(&pair(gbr, mbr, both(100 * MBIT), 0), &expected, 0.02);
        assert_near(&pair(gbr, mbr, both(10 * MBIT), 3 * MS), &expected, 0.02);
    }
}

#[test]
fn packets_of_other_sizes_and_bursts_change_no_share() {
    let mut sources = both(10 * MBIT);
    sources[0].bytes = 80;
    sources[1].bytes = 1400;
    assert_near(&pair(4, 7, sources.clone(), 0), &[7.0, 3.0], 0.02);
    sources.swap(0, 1);
    (sources[0].pdr, sources[1].pdr) = (1, 2);
    assert_near(&pair(2, 5, sources, 0), &[5.0, 5.0], 0.02);
    let mut sources = both(20 * MBIT);
    sources[0].burst = 8;
    assert_near(&pair(2, 5, sources, 0), &[5.0, 5.0], 0.02);
}

#[test]
fn unused_shares_are_available_to_others() {
    for (demands, expected) in
        [([3, 20], [3.0, 7.0]), ([20, 1], [7.0, 1.0]), ([1, 20], [1.0, 9.0]), ([4, 4], [4.0, 4.0])]
    {
        let sources = [Source::new(1, demands[0] * MBIT), Source::new(2, demands[1] * MBIT)];
        assert_near(&pair(4, 7, sources, 0), &expected, 0.02);
    }
}

#[test]
fn connections_of_one_flow_share_it_max_min() {
    let demands = [0.2, 0.5, 0.8, 1.0, 1.5, 2.0, 3.0, 5.0];
    let sources = demands.map(|mbit: f64| Source { bytes: 500, ..Source::new(1, (mbit * 1e6) as u64) });
    let mut lab = Lab::new(session(10 * MBIT, &[], &[1]), sources.into());
    lab.run_until(21 * SECOND);
    let exact = max_min(10.0, &demands.map(|demand| (demand, 0.0, 10.0)));
    assert_near(&lab.rates(SECOND, 21 * SECOND), &exact, 0.03);
}

#[test]
fn qos_flows_and_others_share_a_session_max_min() {
    let flows = [(5.0, 1.0, 2.0), (5.0, 2.0, 9.0), (0.5, 1.0, 3.0), (3.0, 0.5, 4.0)];
    let others = [0.3, 1.2, 4.0, 9.0];
    let qos = (1u16..).zip(flows).map(|(pdr, (_, gbr, mbr))| QosFlow {
        pdr,
        gbr: (gbr * 1e6) as u64,
        mbr: (mbr * 1e6) as u64,
    });
    // A non-QoS flow is a PDR with its own QER, whose MBR it never reaches.
    let qos: Vec<_> = qos.chain((5..9).map(|pdr| QosFlow { pdr, gbr: 0, mbr: 100 * MBIT })).collect();
    let demands = flows.iter().map(|flow| flow.0).chain(others);
    let sources =
        (1..).zip(demands).map(|(pdr, mbit)| Source { bytes: 400, ..Source::new(pdr, (mbit * 1e6) as u64) });
    let mut lab = Lab::new(session(10 * MBIT, &qos, &[]), sources.collect());
    lab.run_until(21 * SECOND);
    let all: Vec<_> = flows.into_iter().chain(others.map(|demand| (demand, 0.0, 100.0))).collect();
    assert_near(&lab.rates(SECOND, 21 * SECOND), &max_min(10.0, &all), 0.03);
}

#[test]
fn a_share_is_taken_over_within_100_ms_of_a_stop_and_given_back_of_a_start() {
    let stopping = Source { stop: 2 * SECOND, ..Source::new(1, 10 * MBIT) };
    let starting = Source { start: 4 * SECOND, ..Source::new(1, 10 * MBIT) };
    let flow = QosFlow { pdr: 1, gbr: 4 * MBIT, mbr: 7 * MBIT };
    let sources = vec![stopping, Source::new(2, 10 * MBIT), starting];
    let mut lab = Lab::new(session(10 * MBIT, &[flow], &[2]), sources);
    lab.run_until(6 * SECOND);
    let window = |from, to| lab.rates(from, to);
    assert_near(&window(SECOND, 2 * SECOND)[..2], &[7.0, 3.0], 0.02);
    assert_near(&window(2 * SECOND + 50 * MS, 2 * SECOND + 150 * MS)[1..2], &[10.0], 0.02);
    assert_near(&window(4 * SECOND + 100 * MS, 4 * SECOND + 300 * MS)[1..], &[3.0, 7.0], 0.02);
}

#[test]
fn an_ecn_capable_flow_keeps_its_share_and_loses_few_packets() {
    let flow = QosFlow { pdr: 1, gbr: 2 * MBIT, mbr: 5 * MBIT };
    let sources = vec![Source { ecn: Ecn::Scalable, ..Source::new(1, 6 * MBIT) }, Source::new(2, 10 * MBIT)];
    let mut lab = Lab::new(session(10 * MBIT, &[flow], &[2]), sources);
    lab.run_until(5 * SECOND);
    assert_near(&lab.rates(SECOND, 5 * SECOND), &[5.0, 5.0], 0.02);
    let marked = |source| lab.log.passed.iter().filter(|p| p.marked && p.packet.source == source).count();
    assert!(marked(0) > 1000, "{}", marked(0));
    assert_eq!(marked(1), 0);
}
