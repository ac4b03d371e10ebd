//! No SQN is used in two vectors, even for concurrent requests (TS 33.102 6.3.2).

use super::*;
use crate::kit::Effect;
use pith_sbi::common::{PatchItem, PatchOperation};
use std::collections::VecDeque;

const WHO: &str = "imsi-999700000000001";

/// A UDM, and a UDR with one subscriber.
struct Home {
    udm: Bench<Udm>,
    /// The SQN in the UDR.
    sqn: u64,
    /// Requests to the UDR, in order of arrival.
    calls: VecDeque<(Tag, Request)>,
    /// Operations requested from the UDR, in order.
    asked: Vec<Operation>,
    /// SQNs of the returned vectors.
    vectors: Vec<u64>,
}

impl Home {
    fn new() -> Self {
        Self { udm: bench(), sqn: SQN, calls: VecDeque::new(), asked: Vec::new(), vectors: Vec::new() }
    }

    /// An AUSF requests a vector; the UDR answers only in [`Home::live`].
    fn generate(&mut self, resync: Option<ResynchronizationInfo>) {
        let seen = generate(&mut self.udm, WHO, resync);
        self.take(seen);
    }

    /// Collects the UDM's effects.
    fn take(&mut self, seen: Seen) {
        for effect in seen.0 {
            match effect {
                Effect::Call { tag, request, .. } => self.calls.push_back((tag, request)),
                Effect::Answer { reply, .. } => self.vectors.push(sqn_in(&reply.unwrap())),
                other => panic!("{other:?}"),
            }
        }
    }

    /// The UDR answers the requests in turn, so that transactions run concurrently. Returns the
    /// SQNs of the vectors.
    fn live(&mut self) -> &[u64] {
        while let Some((tag, request)) = self.calls.pop_front() {
            self.asked.push(request.operation());
            let reply = match request {
                Request::QueryAuthSubsData(_) => keys_and(self.sqn),
                Request::ModifyAuthenticationSubscription(modify) => self.patch(&modify.body),
                other => panic!("{other:?}"),
            };
            let seen = self.udm.reply(tag, reply);
            self.take(seen);
        }
        assert!(self.udm.nf.entries.is_empty());
        &self.vectors
    }

    /// Applies a patch as RFC 6902 defines.
    fn patch(&mut self, patch: &[PatchItem]) -> Reply {
        for item in patch {
            assert_eq!(item.path, "/sequenceNumber/sqn");
            let value = u64::from_str_radix(item.value.as_ref().unwrap().as_str().unwrap(), 16).unwrap();
            match item.op {
                PatchOperation::Test if value != self.sqn => return Err(Problem::of_status(409).into()),
                PatchOperation::Test => {}
                PatchOperation::Replace => self.sqn = value,
                _ => panic!("{item:?}"),
            }
        }
        Ok(Response::NoContent)
    }
}

#[test]
fn one_authentication_sends_two_requests_to_the_udr() {
    let mut home = Home::new();
    home.generate(None);
    assert_eq!(home.live(), [SQN + 33]);
    assert_eq!(home.asked, [Operation::QueryAuthSubsData, Operation::ModifyAuthenticationSubscription]);
}

#[test]
fn concurrent_authentications_of_one_subscriber_use_different_sqns() {
    let mut home = Home::new();
    home.generate(None);
    home.generate(None);
    home.generate(None);
    assert_eq!(home.live(), [SQN + 33, SQN + 66, SQN + 99]);
    assert_eq!(home.sqn, SQN + 99);
}

#[test]
fn a_concurrent_authentication_does_not_undo_a_resynchronisation() {
    const SQN_MS: u64 = 0x4_0000;
    for resynchronised_first in [true, false] {
        let mut home = Home::new();
        home.generate(resynchronised_first.then(|| synchronisation_failure(SQN_MS)));
        home.generate((!resynchronised_first).then(|| synchronisation_failure(SQN_MS)));
        let vectors = home.live().to_vec();
        let last = *vectors.last().unwrap();
        assert!(vectors.is_sorted() && vectors.len() == 2 && vectors[0] != last, "{vectors:x?}");
        assert!(last > SQN_MS, "{vectors:x?}");
        assert_eq!(home.sqn, last);
    }
}

#[test]
fn a_transaction_that_never_gets_an_sqn_fails() {
    let mut bench = bench();
    let mut seen = generate(&mut bench, WHO, None);
    let mut vectors = 0;
    while seen.answers().is_empty() {
        let keep = bench.reply(seen.call().0, keys());
        seen = bench.reply(keep.call().0, Err(Problem::of_status(409).into()));
        vectors += 1;
    }
    assert_eq!((seen.cause(), vectors), (Some(&Cause::AvGenerationProblem), 8));
    assert!(bench.nf.entries.is_empty());
}
