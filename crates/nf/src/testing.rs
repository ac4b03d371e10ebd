//! Test support for every NF: a bench that passes inputs to an NF and collects its effects.

use crate::kit::document::{Document, UnpackError};
use crate::kit::{
    self, Caller, Client, DocumentSink, Effect, Identity, Input, Instant, Level, NetworkFunction, Outbox,
    PendingReply, References, StoreError, StoreRequest, StoreResponse, StoreScope, StoredKey, Tag, Target,
    Timer, TimerKey, Tracking,
};
use pith_sbi::{ApiRoot, Cause, NfInstanceId, Operation, Problem, Reply, Request, Response, Scheme};
use pith_types::{Ambr, BitRate, InstanceId, Plmn, ShardId, Supi};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The caller of the NF in every test.
pub(crate) const CALLER: Caller = Caller::Remote { exchange: 1, client: None };

/// A caller with a certificate.
pub(crate) fn client(number: u128) -> Caller {
    let instance = instance(number);
    Caller::Remote { exchange: 1, client: Some(Client { instance, process: instance, is_named: true }) }
}

pub(crate) fn plmn() -> Plmn {
    "999/70".parse().unwrap()
}

pub(crate) fn supi() -> Supi {
    "imsi-999700000000001".parse().unwrap()
}

pub(crate) fn root(name: &str) -> Arc<ApiRoot> {
    Arc::new(ApiRoot::new(Scheme::Http, &format!("{name}:80")))
}

pub(crate) fn instance(number: u128) -> NfInstanceId {
    NfInstanceId::from_random(number)
}

pub(crate) fn ambr(mbps: u64) -> Ambr {
    Ambr { uplink: BitRate::mbps(mbps), downlink: BitRate::mbps(mbps) }
}

pub(crate) fn identity() -> Identity {
    Identity {
        instance_id: instance(7),
        api_root: root("nf"),
        plmn: plmn(),
        instance: InstanceId(1),
        shard: ShardId(0),
        epoch_unix_ms: 0,
    }
}

/// An NF, the time, and its running timers.
pub(crate) struct Bench<N> {
    pub nf: N,
    pub now: Instant,
    pub timers: BTreeMap<TimerKey, Instant>,
    /// Sends the requests.
    pub caller: Caller,
}

impl<N: NetworkFunction> Bench<N> {
    pub fn new(mut nf: N) -> Self {
        nf.reload_contexts();
        Self { nf, now: Instant::default(), timers: BTreeMap::new(), caller: CALLER }
    }

    /// Passes an input to the NF; returns its effects other than timers and events.
    pub fn input(&mut self, input: Input) -> Seen {
        let mut out = Outbox::new(Level::Debug);
        kit::deliver(&mut self.nf, self.now, input, &mut out);
        self.take(out)
    }

    /// The effects other than timers and events; started timers run from now on.
    pub fn take(&mut self, mut out: Outbox) -> Seen {
        let mut seen = Seen::default();
        for effect in out.drain() {
            match effect {
                Effect::StartTimer { key, after } => {
                    self.timers.insert(key, self.now + after);
                }
                Effect::StopTimer(key) => {
                    self.timers.remove(&key);
                }
                Effect::Event(_) => {}
                other => seen.0.push(other),
            }
        }
        seen
    }

    pub fn request(&mut self, request: impl Into<Request>) -> Seen {
        self.input(Input::Request { reply: PendingReply::owed_to(self.caller), request: request.into() })
    }

    pub fn reply(&mut self, tag: Tag, reply: Reply) -> Seen {
        self.input(Input::Reply { tag, from: None, reply })
    }

    pub fn stored(&mut self, tag: Tag, result: Result<StoreResponse, StoreError>) -> Seen {
        self.input(Input::Stored { tag, result })
    }

    /// Expires that timer, which must be running.
    pub fn expire(&mut self, timer: Timer) -> Seen {
        let running = self.timers.iter().find(|(key, _)| key.timer == timer);
        let (key, deadline) = running.map(|(key, at)| (*key, *at)).expect("the timer runs");
        self.timers.remove(&key);
        self.now = deadline;
        self.input(Input::Timer(key))
    }
}

/// A store of documents: the numbers of contexts, and their documents.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    pub documents: BTreeMap<u64, Vec<u8>>,
    /// Documents written so far.
    pub writes: usize,
}

impl DocumentSink for Stored {
    fn write(&mut self, key: StoredKey, document: &Document) {
        self.documents.insert(key.number, document.octets().to_vec());
        self.writes += 1;
    }

    fn delete(&mut self, key: StoredKey) {
        assert!(self.documents.remove(&key.number).is_some(), "{key:?} is deleted, but was not stored");
    }
}

impl Stored {
    /// Stores what changed.
    pub fn store(&mut self, nf: &mut dyn NetworkFunction, scope: StoreScope) {
        nf.store_contexts(scope, self);
    }

    /// Gives a new NF the stored contexts.
    pub fn restore(&self, now: Instant, nf: &mut dyn NetworkFunction, is_stale: bool) {
        for (number, document) in &self.documents {
            nf.restore_context(now, *number, document, is_stale).unwrap();
        }
    }
}

/// How an NF stores contexts, in its first and later runs.
pub(crate) fn tracking(run: u32, reserved_counts: u32) -> Tracking {
    Tracking { references: References::of_secret(&[3; 32]), first_generation: 1000 * run, reserved_counts }
}

/// The effects of an NF, in their order.
#[derive(Debug, Default)]
pub(crate) struct Seen(pub Vec<Effect>);

impl Seen {
    pub fn calls(&self) -> Vec<(Tag, &Target, &Request)> {
        let calls = self.0.iter().filter_map(|effect| match effect {
            Effect::Call { tag, target, request } => Some((*tag, target, request)),
            _ => None,
        });
        calls.collect()
    }

    /// The called operations, in their order.
    pub fn operations(&self) -> Vec<Operation> {
        self.calls().iter().map(|(.., request)| request.operation()).collect()
    }

    /// The one call.
    pub fn call(&self) -> (Tag, &Request) {
        let [(tag, _, request)] = self.calls()[..] else { panic!("not one call: {:?}", self.0) };
        (tag, request)
    }

    pub fn answers(&self) -> Vec<&Reply> {
        let answers = self.0.iter().filter_map(|effect| match effect {
            Effect::Answer { reply, .. } => Some(reply),
            _ => None,
        });
        answers.collect()
    }

    /// The one answer, which is a success.
    pub fn answer(&self) -> &Response {
        let [Ok(response)] = self.answers()[..] else { panic!("not one answer: {:?}", self.0) };
        response
    }

    /// The one answer, which is a problem.
    pub fn problem(&self) -> &Problem {
        let [Err(problem)] = self.answers()[..] else { panic!("not one problem: {:?}", self.0) };
        problem
    }

    pub fn cause(&self) -> Option<&Cause> {
        self.problem().cause()
    }

    /// The one database request.
    pub fn store(&self) -> (Tag, &StoreRequest) {
        match &self.0[..] {
            [Effect::Store { tag, request }] => (*tag, request),
            other => panic!("not one store request: {other:?}"),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The octets of a file of documents.
pub(crate) fn from_hex(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// Prints a document for `tests/golden`.
pub(crate) fn print_document(name: &str, octets: &[u8]) {
    let hex: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
    println!("GOLDEN {name} {hex}");
}

/// Documents of earlier versions are read, and damaged ones refused; without any panic.
pub(crate) fn check_documents(
    golden: &[(&str, &str)],
    repack: impl Fn(&[u8]) -> Result<Document, UnpackError>,
) {
    for (name, hex) in golden {
        let whole = from_hex(hex);
        let again = repack(&whole).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(again.octets(), whole, "{name}");
        for at in 0..whole.len() {
            assert!(repack(&whole[..at]).is_err(), "{name}: {at} octets");
            let mut damaged = whole.clone();
            for bit in 0..8 {
                damaged[at] ^= 1 << bit;
                // Either it is refused, or it is another document, which stays what it is.
                if let Ok(other) = repack(&damaged) {
                    assert_eq!(repack(other.octets()).as_ref(), Ok(&other), "{name}: octet {at}");
                }
                damaged[at] ^= 1 << bit;
            }
        }
    }
}
