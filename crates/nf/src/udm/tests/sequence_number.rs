//! No SQN goes into two vectors, whoever asks at once (TS 33.102 6.3.2); with the UDR that there is,
//! the database is played here.

use super::*;
use crate::kit::{Effect, StoreRequest, StoreResponse, Subscriber};
use crate::udr::Udr;
use std::collections::VecDeque;

const WHO: &str = "imsi-999700000000001";

/// A home network: UDM, UDR, and the one subscriber that the database holds.
struct Home {
    udm: Bench<Udm>,
    udr: Bench<Udr>,
    subscriber: Subscriber,
    /// Calls to the UDR, in the order in which it gets them.
    calls: VecDeque<(Tag, Request)>,
    /// What the UDR was asked, in its order.
    asked: Vec<Operation>,
    /// What the database was asked so far.
    store_requests: u32,
    vectors: Vec<u64>,
}

impl Home {
    fn new() -> Self {
        let mut subscriber = Subscriber::with_defaults(supi(), K, OPC);
        subscriber.authentication.sqn = SQN;
        Self {
            udm: bench(),
            udr: Bench::new(Udr::new(root("udr"))),
            subscriber,
            calls: VecDeque::new(),
            asked: Vec::new(),
            store_requests: 0,
            vectors: Vec::new(),
        }
    }

    /// An AUSF asks; nobody answers before [`Home::live`].
    fn generate(&mut self, resync: Option<ResynchronizationInfo>) {
        let seen = generate(&mut self.udm, WHO, resync);
        self.take(seen);
    }

    /// What the UDM does.
    fn take(&mut self, seen: Seen) {
        for effect in seen.0 {
            match effect {
                Effect::Call { tag, request, .. } => self.calls.push_back((tag, request)),
                Effect::Answer { reply, .. } => self.vectors.push(sqn_in(&reply.unwrap())),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Calls are answered in turn, so that transactions go on side by side. Gives the SQNs of the vectors.
    fn live(&mut self) -> &[u64] {
        while let Some((tag, request)) = self.calls.pop_front() {
            self.asked.push(request.operation());
            let mut seen = self.udr.request(request);
            while seen.answers().is_empty() {
                let (stored_for, response) = (seen.store().0, self.store(seen.store().1));
                seen = self.udr.stored(stored_for, Ok(response));
            }
            let seen = self.udm.reply(tag, seen.answers()[0].clone());
            self.take(seen);
        }
        assert!(self.udm.nf.entries.is_empty());
        &self.vectors
    }

    fn store(&mut self, request: &StoreRequest) -> StoreResponse {
        self.store_requests += 1;
        match request {
            StoreRequest::Subscriber(_) => StoreResponse::Subscriber(Some(self.subscriber.clone().into())),
            StoreRequest::PutSequenceNumber { sqn, expected, .. } => {
                let stored = &mut self.subscriber.authentication.sqn;
                let as_expected = expected.is_none_or(|expected| expected == *stored);
                if as_expected {
                    *stored = *sqn;
                }
                StoreResponse::Done { created_or_found: as_expected }
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn one_authentication_asks_the_database_twice() {
    let mut home = Home::new();
    home.generate(None);
    assert_eq!(home.live(), [SQN + 33]);
    let asked = [Operation::QueryAuthSubsData, Operation::ModifyAuthenticationSubscription];
    assert_eq!((&home.asked[..], home.store_requests), (&asked[..], 2));
}

#[test]
fn authentications_of_one_subscriber_at_once_take_one_sqn_each() {
    let mut home = Home::new();
    home.generate(None);
    home.generate(None);
    home.generate(None);
    assert_eq!(home.live(), [SQN + 33, SQN + 66, SQN + 99]);
    assert_eq!(home.subscriber.authentication.sqn, SQN + 99);
}

#[test]
fn an_authentication_beside_a_resynchronisation_does_not_undo_it() {
    const SQN_MS: u64 = 0x4_0000;
    for resynchronised_first in [true, false] {
        let mut home = Home::new();
        home.generate(resynchronised_first.then(|| synchronisation_failure(SQN_MS)));
        home.generate((!resynchronised_first).then(|| synchronisation_failure(SQN_MS)));
        let vectors = home.live().to_vec();
        let last = *vectors.last().unwrap();
        assert!(vectors.is_sorted() && vectors.len() == 2 && vectors[0] != last, "{vectors:x?}");
        assert!(last > SQN_MS, "{vectors:x?}");
        assert_eq!(home.subscriber.authentication.sqn, last);
    }
}

#[test]
fn who_never_gets_an_sqn_gives_up() {
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
