//! With any rules and traffic, each packet was sent, dropped by name, or is queued.

use crate::lab::*;
use pith_upf::contract::Session;
use pith_upf::qos::{BufferLimits, Ecn};
use proptest::prelude::*;

fn any_session() -> impl Strategy<Value = Session> {
    let flow = (1u16..5, 0u64..20_000, 0u64..20_000);
    let flows = prop::collection::vec(flow, 0..4);
    (0u64..30_000, flows).prop_map(|(ambr, mut flows)| {
        flows.sort_unstable();
        flows.dedup_by_key(|flow| flow.0);
        let flows: Vec<_> = flows
            .into_iter()
            .map(|(pdr, gbr, more)| QosFlow { pdr, gbr: gbr * 1000, mbr: (gbr + more) * 1000 })
            .collect();
        let others: Vec<_> = (1..6).filter(|pdr| flows.iter().all(|flow| flow.pdr != *pdr)).collect();
        session(ambr * 1000, &flows, &others)
    })
}

fn any_source() -> impl Strategy<Value = Source> {
    let ecn = prop::sample::select(vec![Ecn::NotCapable, Ecn::Scalable, Ecn::Classic, Ecn::Experienced]);
    (1u16..6, 10u64..30_000, 40usize..9000, 0u64..500, 0u64..500, 1u64..60, ecn).prop_map(
        |(pdr, rate, bytes, start, length, burst, ecn)| Source {
            pdr,
            rate: rate * 1000,
            bytes,
            start: start * MS,
            stop: (start + length) * MS,
            ecn,
            burst,
        },
    )
}

fn any_far() -> impl Strategy<Value = Far> {
    prop_oneof![4 => Just(Far::Forward), 2 => Just(Far::Buffer(None)), 1 => Just(Far::BufferUntold), 1 => (0u16..20).prop_map(|n| Far::Buffer(Some(n))), 1 => Just(Far::Drop)]
}

fn assert_conserved(lab: &Lab) {
    let waiting = lab.queued() + lab.held() as u64;
    assert_eq!(lab.offered, lab.log.passed.len() as u64 + lab.dropped() + waiting);
    assert_eq!(lab.room.packets() as u64, waiting);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn in_is_out_and_dropped_and_waiting(
        first in any_session(),
        sources in prop::collection::vec(any_source(), 1..12),
        changes in prop::collection::vec((any_session(), any_far(), 1u64..200, any::<bool>()), 0..6),
        packets in 1usize..2000,
        lateness in 0u64..20,
    ) {
        let mut lab = Lab::with(first, sources, BufferLimits { session_packets: 64, packets, bytes: 500_000 });
        lab.lateness = lateness * MS / 4;
        let mut now = 0;
        for (session, far, pass, discard) in changes {
            now += pass * MS;
            lab.run_until(now);
            assert_conserved(&lab);
            if discard { lab.discard(false); }
            lab.install(session, far);
            assert_conserved(&lab);
        }
        lab.run_until(now + SECOND);
        assert_conserved(&lab);
        lab.assert_in_order();
        lab.discard(true);
        prop_assert_eq!((lab.room.packets(), lab.engine.sessions(), lab.queued()), (0, 0, 0));
        prop_assert_eq!(lab.offered, lab.log.passed.len() as u64 + lab.dropped());
    }
}
