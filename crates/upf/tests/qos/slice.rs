//! Sessions that share a slice's rate.

use crate::lab::{MBIT, MS, QosFlow, SECOND, session};
use pith_upf::contract::*;
use pith_upf::qos::*;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// Bytes sent, by session.
#[derive(Default)]
struct Sent([usize; 4]);

impl Outlet<usize> for Sent {
    fn send(&mut self, session: usize, _: bool) -> bool {
        self.0[session] += 1000;
        true
    }

    fn drop(&mut self, _: usize, _: DropReason) {}

    fn held(&mut self, _: &usize, _: PdrId) {}
}

/// Downlink rates in Mbit/s of four sessions, for an offered load in a slice limited to 9 Mbit/s; with
/// `guaranteed` the last has a GBR of 3 Mbit/s.
fn rates(offered: [u64; 4], guaranteed: bool) -> [f64; 4] {
    let network = IpAddr::from([10, 45, 0, 0]);
    let rates = Rates { uplink: MBIT, downlink: 9 * MBIT };
    let shared = SharedMeters::new(
        &[SharedRate { network, prefix: 16, prefixes: None, rates }],
        Enforcement::Shape,
        &OnHeap,
    );
    let own = |at: usize| {
        let flows = [QosFlow { pdr: 1, gbr: 3 * MBIT, mbr: 8 * MBIT }];
        let mut session =
            if guaranteed && at == 3 { session(8 * MBIT, &flows, &[]) } else { session(8 * MBIT, &[], &[1]) };
        session.id = SessionId(at as u64);
        session.ue = UeAddress::v4(Ipv4Addr::new(10, 45, 0, at as u8));
        SessionQos::compile(&session, None, Enforcement::Shape, shared.of(session.ue), &OnHeap)
    };
    let sessions = [0, 1, 2, 3].map(own);
    let mut engine = Engine::new(Arc::new(Room::new(BufferLimits::default())));
    let mut due = [1u64, 2, 3, 4].map(|offset| offset * 100_000);
    let (mut sent, mut warm) = (Sent::default(), Sent::default());
    for now in (1..10 * SECOND).step_by(MS as usize / 8) {
        engine.run(Time(now), &mut sent);
        for at in 0..4 {
            while due[at] <= now {
                due[at] += 8_000 * SECOND / offered[at];
                let flows = sessions[at].flows(Direction::Downlink);
                let whose = SessionQueue { key: (SessionId(at as u64), Direction::Downlink), flows };
                let arrival = Arrival { flow: 0, tuple: 0, bytes: 1000, ecn: Ecn::NotCapable };
                engine.offer(whose, Time(now), arrival, at, &mut sent);
            }
        }
        if now < SECOND {
            warm = Sent(sent.0);
        }
    }
    [0, 1, 2, 3].map(|at| (sent.0[at] - warm.0[at]) as f64 * 8e-6 / 9.0)
}

fn assert_near(rates: [f64; 4], expected: [f64; 4]) {
    let near = rates.iter().zip(expected).all(|(rate, expected)| (rate / expected - 1.0).abs() < 0.05);
    assert!(near, "{rates:.2?} Mbit/s, not {expected:.2?}");
}

#[test]
fn sessions_take_turns_at_the_slice_s_rate() {
    assert_near(rates([6 * MBIT; 4], false), [2.25; 4]);
    assert_near(rates([MBIT, 6 * MBIT, 6 * MBIT, 6 * MBIT], false), [1.0, 2.67, 2.67, 2.67]);
}

#[test]
fn a_guarantee_holds_in_a_slice_that_is_full() {
    let rates = rates([20 * MBIT; 4], true);
    assert!(rates[3] >= 3.0 && (rates.iter().sum::<f64>() - 9.0).abs() < 0.2, "{rates:.2?}");
    assert!(rates[..3].iter().all(|rate| (rate - rates[0]).abs() < 0.1), "{rates:.2?}");
}
