//! Test support for every NF: a bench that passes inputs to an NF and collects its effects.

use crate::kit::document::{Document, SECTION_IDS, Section, UnpackError};
use crate::kit::{
    self, Caller, Client, DocumentSink, Effect, Identity, Input, Instant, Issuer, Level, NetworkFunction,
    Outbox, PendingReply, ReferenceKey, StoreError, StoreRequest, StoreResponse, StoreScope, StoredKey, Tag,
    Target, Timer, TimerKey,
};
use pith_sbi::{ApiRoot, Cause, NfInstanceId, Operation, Problem, Reply, Request, Response, Scheme};
use pith_types::{Ambr, BitRate, BlockId, BlockOwner, ContextId, InstanceId, OwnerMap, Plmn, ShardId, Supi};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The caller of the NF in every test.
pub(crate) const CALLER: Caller = Caller::Remote { exchange: 1, client: None };

/// A caller with a certificate.
pub(crate) fn client(number: u128) -> Caller {
    let instance = instance(number);
    Caller::Remote {
        exchange: 1,
        client: Some(Client {
            instance,
            process: instance,
            is_named: true,
            is_proven: true,
            issuer: Issuer::Own,
        }),
    }
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
    identity_of_shard(0, 1)
}

/// The identity of one of several shards of a process.
pub(crate) fn identity_of_shard(shard: u8, shards: u8) -> Identity {
    let instance_of_set = InstanceId(1);
    Identity {
        instance_id: instance(7),
        api_root: root("nf"),
        plmn: plmn(),
        owner: BlockOwner { instance: instance_of_set, shard: ShardId(shard) },
        owners: Arc::new(OwnerMap::of_instance(instance_of_set, shards)),
        reference_key: ReferenceKey::new([7; 32]),
        epoch_unix_ms: 0,
    }
}

/// An owner map in which each shard of instance 0 has one block, and instance 1 has the others.
pub(crate) fn sparse_owners(shards: u8) -> Arc<OwnerMap> {
    Arc::new(OwnerMap::new(1, |block| match u8::try_from(block.number()) {
        Ok(shard) if shard < shards => BlockOwner { instance: InstanceId(0), shard: ShardId(shard) },
        _ => BlockOwner { instance: InstanceId(1), shard: ShardId(0) },
    }))
}

/// A document without sections.
pub(crate) fn empty_document() -> crate::kit::document::Document {
    crate::kit::document::Writer::new(crate::kit::Nf::Amf, &()).finish().unwrap()
}

/// An NGAP PDU with an IE of an unknown id, of one octet, with criticality 'notify', after its IEs. For PDUs that stay shorter than 128 octets.
pub(crate) fn with_unknown_ie(pdu: &[u8]) -> Vec<u8> {
    with_ie(pdu, 0x80)
}

/// As [`with_unknown_ie`], with criticality 'reject'.
pub(crate) fn with_ie_to_reject(pdu: &[u8]) -> Vec<u8> {
    with_ie(pdu, 0)
}

fn with_ie(pdu: &[u8], criticality: u8) -> Vec<u8> {
    let mut pdu = [pdu, &[0xff, 0xfe, criticality, 1, 0]].concat();
    pdu[3] += 5;
    pdu[6] += 1;
    assert!(pdu[3] < 128, "the length has one octet");
    pdu
}

/// The block of a shard in that map.
pub(crate) fn block(shard: u8) -> BlockId {
    BlockId::new(shard.into()).unwrap()
}

/// An NF, the time, and its running timers.
pub(crate) struct Bench<N> {
    pub nf: N,
    pub now: Instant,
    pub timers: BTreeMap<TimerKey, Instant>,
    /// Sends the requests.
    pub caller: Caller,
    /// Keeps no copies of contexts between inputs, if present.
    pub stateless: Option<Stateless>,
}

impl<N: NetworkFunction> Bench<N> {
    pub fn new(mut nf: N) -> Self {
        nf.reload_contexts();
        Self { nf, now: Instant::default(), timers: BTreeMap::new(), caller: CALLER, stateless: None }
    }

    /// Passes an input to the NF; returns its effects other than timers and events.
    pub fn input(&mut self, input: Input) -> Seen {
        let mut out = Outbox::new(Level::Debug);
        if let Some(shell) = &mut self.stateless {
            shell.before(&mut self.nf, self.now, &input, &mut out);
        }
        kit::deliver(&mut self.nf, self.now, input, &mut out);
        if let Some(shell) = &mut self.stateless {
            shell.after(&mut self.nf, self.now, &mut out);
        }
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

    /// A reply of the NF with that root.
    pub fn reply_from(&mut self, tag: Tag, root: Arc<ApiRoot>, reply: Reply) -> Seen {
        self.input(Input::Reply { tag, from: Some(root), reply })
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

/// A store of documents by the ids of their contexts.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    pub documents: BTreeMap<ContextId, Vec<u8>>,
    /// Documents written so far.
    pub writes: usize,
    /// Documents that are restored first.
    pub first: BTreeSet<ContextId>,
    is_first: bool,
}

impl DocumentSink for Stored {
    fn write(&mut self, key: StoredKey, _ue: Option<&Supi>, document: &Document) {
        self.documents.insert(key.id, document.octets().to_vec());
        self.writes += 1;
        if std::mem::take(&mut self.is_first) {
            self.first.insert(key.id);
        } else {
            self.first.remove(&key.id);
        }
    }

    fn restore_first(&mut self) {
        self.is_first = true;
    }

    fn delete(&mut self, key: StoredKey) {
        assert!(self.documents.remove(&key.id).is_some(), "{key:?} is deleted, but was not stored");
    }
}

impl Stored {
    /// Stores what changed.
    pub fn store(&mut self, nf: &mut dyn NetworkFunction, scope: StoreScope) {
        nf.store_contexts(scope, self);
    }

    /// Gives a new NF the stored contexts.
    pub fn restore(&self, now: Instant, nf: &mut dyn NetworkFunction, is_stale: bool) {
        for (id, document) in &self.documents {
            nf.restore_context(now, *id, document, is_stale).unwrap();
        }
    }
}

/// A shell that keeps no copies of contexts between transactions.
#[derive(Debug, Default)]
pub(crate) struct Stateless {
    pub stored: Stored,
    /// Contexts that were read again.
    pub reads: usize,
}

impl Stateless {
    /// Reads the context that the input is for.
    pub fn before(&mut self, nf: &mut dyn NetworkFunction, now: Instant, input: &Input, out: &mut Outbox) {
        if let Some(id) = nf.context_of(input) {
            self.read(nf, now, id, out);
        }
    }

    /// Reads what else was needed, stores what changed, and drops all copies.
    pub fn after(&mut self, nf: &mut dyn NetworkFunction, now: Instant, out: &mut Outbox) {
        for id in nf.take_missed() {
            self.read(nf, now, id, out);
        }
        self.stored.store(nf, StoreScope::Changed);
        for id in self.stored.documents.keys() {
            nf.drop_context(*id);
        }
    }

    fn read(&mut self, nf: &mut dyn NetworkFunction, now: Instant, id: ContextId, out: &mut Outbox) {
        if !nf.is_resident(id) {
            nf.put_context(now, id, &self.stored.documents[&id], out).unwrap();
            assert!(nf.is_resident(id));
            self.reads += 1;
        }
    }
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

/// The text of a file of documents.
fn to_hex(octets: &[u8]) -> String {
    let line = |octets: &[u8]| octets.iter().map(|octet| format!("{octet:02x}")).collect::<String>() + "\n";
    octets.chunks(60).map(line).collect()
}

/// Ids and versions of the sections of a document.
fn versions(document: &[u8]) -> Vec<[u8; 2]> {
    let (mut rest, mut found) = (&document[4..], Vec::new());
    while let [id, version, a, b, c, d, body @ ..] = rest {
        found.push([*id, *version]);
        rest = &body[u32::from_be_bytes([*a, *b, *c, *d]) as usize..];
    }
    found
}

/// Checks that the newest file of a context has the sections that this program writes. With `PITH_GOLDEN=<directory>`, writes the
/// missing file instead.
fn check_newest(golden: &[(&str, &str)], context: &str, document: &[u8]) {
    let number = |name: &str| name.strip_prefix(context)?.strip_prefix('-')?.parse::<u32>().ok();
    let newest = golden.iter().filter_map(|(name, hex)| Some((number(name)?, from_hex(hex)))).max();
    if newest.as_ref().is_some_and(|(_, known)| versions(known) == versions(document)) {
        return;
    }
    let Some(directory) = std::env::var_os("PITH_GOLDEN") else {
        panic!("no file has the sections of {context} as this program writes them: {NEW_FILES}");
    };
    let name = format!("{context}-{}.hex", newest.map_or(1, |(newest, _)| newest + 1));
    std::fs::write(std::path::Path::new(&directory).join(name), to_hex(document)).unwrap();
}

const NEW_FILES: &str = "add files with 'PITH_GOLDEN=tests/golden cargo test -p pith-nf documents_of_earlier_versions', and to GOLDEN \
     (tests/golden/README.md); the version of a section changes with its form";

/// Sections of a context have different ids, for each of which a shared document has room (`runtime/src/residency/shared.rs`).
pub(crate) fn check_sections(sections: &[Section]) {
    let ids: BTreeSet<u8> = sections.iter().map(|section| section.id).collect();
    assert_eq!(ids.len(), sections.len(), "an id occurs twice");
    let largest = ids.last().copied().unwrap_or_default();
    assert!(largest < SECTION_IDS, "section {largest}: shared documents need a larger range");
}

/// Documents of earlier versions are read, and damaged ones refused; without any panic. `written` are contexts and the documents
/// that this program writes of them.
pub(crate) fn check_documents(
    golden: &[(&str, &str)],
    written: &[(&str, Vec<u8>)],
    repack: impl Fn(&[u8]) -> Result<Document, UnpackError>,
) {
    for (context, document) in written {
        check_newest(golden, context, document);
    }
    for (name, hex) in golden {
        let whole = from_hex(hex);
        let again = repack(&whole).unwrap_or_else(|error| panic!("{name}: {error}; {NEW_FILES}"));
        if versions(&whole) == versions(again.octets()) {
            assert_eq!(again.octets(), whole, "{name} changes when it is written again: {NEW_FILES}");
        } else {
            assert_eq!(repack(again.octets()).as_ref(), Ok(&again), "{name}");
        }
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
