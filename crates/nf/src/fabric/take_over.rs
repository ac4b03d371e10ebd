//! What a shard's next run needs after a panic, besides the stored contexts: the messages from outside whose transaction was not
//! over, and the state of the connections that go on without the shard.
//!
//! ```text
//!  gateways ──> queue ──> TakeOver::begin ──> Shard.handle ──> TakeOver::handled ──┐ end of the turn
//!                                                                                 └─> TakeOver::end_turn: transactions that are over
//!  panic ──> TakeOver::panicked ──> another Shard, its contexts from their documents ──> TakeOver::next: messages in their order
//! ```
//!
//! A message is kept as long as its effects have not left the shard, and then while the transaction of its UE or session goes on. The
//! transaction begins again with it. A copy costs no memory: the octets of an NGAP PDU are shared.
//!
//! Requests of other shards and processes are kept for the turn, and while they wait for the load of their context. One whose processing
//! has begun, with effects that have left, is answered with 500.
//!
//! A block that another shard has passed ([`super::passage`]) is kept until the effects of its turn have left the shard. The next run gets it
//! again, instead of the documents of its contexts. So no change is lost, also if documents are written later or not at all. A panic in
//! that, too, leaves the contexts of the store.

use super::passage::{FormerKeys, MoveError};
use super::{Portion, Shard, ShardEffect, ShardInput};
use crate::kit::{
    AddressNews, Caller, Fate, GnbHandle, GnbInfo, Input, N2Input, N4Error, N4Input, N4Transaction, Nf,
    PassedBlock, SetInstances, StoredKey, Tag, TnlaBinding, Tracking, UpfHandle, UpfInfo,
};
use bytes::Bytes;
use pith_pfcp::Message;
use pith_sbi::{ApiRoot, Cause, Problem, Reply, Request};
use pith_types::{BlockMove, ContextId, OwnerMap, Seid};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

/// Messages of one UE or session that are kept while its transaction goes on: the oldest is forgotten first.
const MOST_OF_CONTEXT: usize = 8;

/// Octets of messages of one gNB that are kept while transactions go on.
const MOST_OF_GNB: usize = 1 << 20;

/// Octets of all messages that are kept while transactions go on.
const MOST: usize = 8 << 20;

/// What a kept message counts besides its octets.
const OVERHEAD: usize = 128;

/// Contexts that caused a panic, and have not completed a step since. A further one replaces the oldest.
const MOST_SUSPECTS: usize = 64;

/// Panics in a row, with fewer than [`CALM`] inputs in between, after which the stored contexts are given up: none of the other bounds
/// has ended the loop.
const MOST_PANICS: u32 = 16;

/// Inputs after which earlier panics count no longer.
const CALM: u32 = 10_000;

/// A message from outside.
#[derive(Debug, Clone)]
enum KeptInput {
    Pdu {
        gnb: GnbHandle,
        binding: TnlaBinding,
        pdu: Bytes,
    },
    /// NG RESET, which the gateway has acknowledged.
    Reset(Box<N2Input>),
    Report {
        transaction: N4Transaction,
        seid: Seid,
        message: Box<Message>,
    },
    /// A UPF has established a session, which the SMF deletes if it has lost that; or it answers a request for a session that has passed to
    /// another shard.
    Response {
        tag: Tag,
        result: Box<Result<Message, N4Error>>,
    },
    /// A request of another shard or process.
    Request {
        from: Caller,
        nf: Nf,
        request: Box<Request>,
        /// As in [`ShardInput::Forwarded`], if it was forwarded.
        asked: Option<u16>,
    },
    /// A block that another shard has passed.
    Block(Box<PassedBlock>),
    /// The answer to a request of a former owner of the context. It may name a resource, which is deleted if the next run has no use for it.
    ForContext {
        nf: Nf,
        id: ContextId,
        tag: Tag,
        answer: Box<Answer>,
    },
}

#[derive(Debug, Clone)]
enum Answer {
    OfUpf(Result<Message, N4Error>),
    OfNf { from: Option<Arc<ApiRoot>>, reply: Reply },
}

impl KeptInput {
    /// A copy of the input, if it is kept.
    fn of(input: &ShardInput, keeps: Keeps, shard: &Shard) -> Option<Self> {
        let (of_gnbs, of_upfs) = (keeps != Keeps::Nothing, keeps == Keeps::All);
        let has_passed = |tag: &Tag| shard.former_context(Nf::Smf, *tag).is_some();
        match input {
            ShardInput::N2(N2Input::Pdu { gnb, binding, pdu }) if of_gnbs => {
                Some(Self::Pdu { gnb: *gnb, binding: *binding, pdu: pdu.clone() })
            }
            ShardInput::N2(reset @ N2Input::Reset { .. }) if of_gnbs => {
                Some(Self::Reset(Box::new(reset.clone())))
            }
            ShardInput::Request { from, nf, request } if of_gnbs => {
                Some(Self::Request { from: *from, nf: *nf, request: Box::new(request.clone()), asked: None })
            }
            ShardInput::Forwarded { from, nf, request, asked } if of_gnbs => Some(Self::Request {
                from: *from,
                nf: *nf,
                request: Box::new(request.clone()),
                asked: Some(*asked),
            }),
            ShardInput::Block(passed) => Some(Self::Block(passed.clone())),
            ShardInput::ForContext { nf, id, input } => {
                let (tag, answer) = Answer::of(input)?;
                Some(Self::ForContext { nf: *nf, id: *id, tag, answer: Box::new(answer) })
            }
            ShardInput::Reply { nf, tag, from, reply } => {
                let id = shard.former_context(*nf, *tag)?;
                let answer = Answer::OfNf { from: from.clone(), reply: reply.clone() };
                Some(Self::ForContext { nf: *nf, id, tag: *tag, answer: Box::new(answer) })
            }
            ShardInput::N4(input) => match &**input {
                N4Input::Request { transaction, seid, message } if of_upfs => Some(Self::Report {
                    transaction: *transaction,
                    seid: *seid,
                    message: Box::new(message.clone()),
                }),
                N4Input::Response { tag, result } => {
                    let is_established = matches!(result, Ok(Message::SessionEstablishmentResponse(_)));
                    let is_kept = is_established && of_gnbs || has_passed(tag);
                    is_kept.then(|| Self::Response { tag: *tag, result: Box::new(result.clone()) })
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn into_input(self) -> ShardInput {
        match self {
            Self::Pdu { gnb, binding, pdu } => ShardInput::N2(N2Input::Pdu { gnb, binding, pdu }),
            Self::Reset(reset) => ShardInput::N2(*reset),
            Self::Report { transaction, seid, message } => {
                ShardInput::N4(Box::new(N4Input::Request { transaction, seid, message: *message }))
            }
            Self::Response { tag, result } => {
                ShardInput::N4(Box::new(N4Input::Response { tag, result: *result }))
            }
            Self::Request { from, nf, request, asked: None } => {
                ShardInput::Request { from, nf, request: *request }
            }
            Self::Request { from, nf, request, asked: Some(asked) } => {
                ShardInput::Forwarded { from, nf, request: *request, asked }
            }
            Self::Block(passed) => ShardInput::Block(passed),
            Self::ForContext { nf, id, tag, answer } => {
                let input = match *answer {
                    Answer::OfUpf(result) => Input::N4(Box::new(N4Input::Response { tag, result })),
                    Answer::OfNf { from, reply } => Input::Reply { tag, from, reply },
                };
                ShardInput::ForContext { nf, id, input: Box::new(input) }
            }
        }
    }

    /// The NF that processes it.
    const fn nf(&self) -> Nf {
        match self {
            Self::Pdu { .. } | Self::Reset(_) | Self::Block(_) => Nf::Amf,
            Self::Report { .. } | Self::Response { .. } => Nf::Smf,
            Self::Request { nf, .. } | Self::ForContext { nf, .. } => *nf,
        }
    }

    /// Whether it is kept beyond its turn with that context.
    fn outlives_turn(&self, shard: &Shard, context: StoredKey) -> bool {
        match self {
            Self::Block(_) | Self::ForContext { .. } => false,
            Self::Request { .. } => shard.is_awaited(context),
            _ => shard.is_in_transaction(context),
        }
    }

    const fn gnb(&self) -> Option<GnbHandle> {
        match self {
            Self::Pdu { gnb, .. } => Some(*gnb),
            _ => None,
        }
    }

    const fn octets(&self) -> usize {
        OVERHEAD + if let Self::Pdu { pdu, .. } = self { pdu.len() } else { 0 }
    }
}

impl Answer {
    /// A copy of an answer, with the tag of its request.
    fn of(input: &Input) -> Option<(Tag, Self)> {
        match input {
            Input::N4(input) => match &**input {
                N4Input::Response { tag, result } => Some((*tag, Self::OfUpf(result.clone()))),
                _ => None,
            },
            Input::Reply { tag, from, reply } => {
                Some((*tag, Self::OfNf { from: from.clone(), reply: reply.clone() }))
            }
            _ => None,
        }
    }
}

/// A kept message.
#[derive(Debug)]
struct Entry {
    /// In the order of arrival.
    number: u64,
    /// It caused a panic before.
    is_suspect: bool,
    input: KeptInput,
}

impl Entry {
    /// The change, if the entry is a block.
    fn into_taken(self) -> Option<BlockMove> {
        if let KeptInput::Block(passed) = self.input { Some(passed.change) } else { None }
    }
}

/// The messages that are kept for the next run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keeps {
    /// None: contexts are not stored.
    #[default]
    Nothing,
    /// Those of gNBs. Documents may be behind the messages that left: sessions are established at their UPFs again, which ends what UPFs
    /// have reported.
    OfGnbs,
    /// Those of gNBs and UPFs.
    All,
}

impl Keeps {
    /// What is kept with this tracking of contexts.
    pub const fn with(tracking: &Tracking) -> Self {
        if tracking.is_late { Self::OfGnbs } else { Self::All }
    }
}

/// What the next run of a shard needs; see the module documentation.
#[derive(Debug, Default)]
pub struct TakeOver {
    /// The messages that are kept.
    keeps: Keeps,
    numbered: u64,
    /// The input that is being handled, with the number of changes before it.
    current: Option<(Entry, usize)>,
    /// Messages of this turn, with their UEs or sessions.
    turn: Vec<(Entry, Option<StoredKey>)>,
    /// Messages of former turns whose transaction goes on.
    open: BTreeMap<StoredKey, VecDeque<Entry>>,
    /// Messages that wait until contexts are restored.
    held: Vec<(Entry, Portion)>,
    octets: usize,
    octets_of_gnb: BTreeMap<GnbHandle, usize>,
    /// Messages to be delivered again.
    again: VecDeque<Entry>,
    /// Callers outside the shard whose requests are not answered.
    owed: Vec<Caller>,
    /// Moves of blocks that an operator requests, and that are not over for this shard.
    moves: Vec<BlockMove>,
    /// Blocks that the shard has taken, but can't have again: it has panicked twice with them. The gateways do not know it yet.
    unannounced: Vec<BlockMove>,
    /// The keys of passed contexts in all runs.
    former: FormerKeys,
    /// Contexts that changed in this turn.
    touched: Vec<StoredKey>,
    /// Contexts that caused a panic, and how many.
    suspects: VecDeque<(StoredKey, u8)>,
    panics: u32,
    /// Inputs since the last panic.
    calm: u32,
    gnbs: BTreeMap<GnbHandle, Arc<GnbInfo>>,
    upfs: BTreeMap<UpfHandle, Associated>,
    /// Once a block has another owner than at the start: the owner map, and UE addresses of the shard that sessions of other shards have.
    moved: Option<(Arc<OwnerMap>, Vec<IpAddr>)>,
    /// The instances of the process's set.
    instances: Option<Arc<SetInstances>>,
    /// Such an address changed in this turn.
    addresses_changed: bool,
    /// News of addresses in this turn.
    news: Vec<AddressNews>,
    /// Other shards of the process that have not restored their sessions yet. `None`: the contexts are not stored.
    unrestored: Option<BTreeSet<u16>>,
}

/// An associated UPF.
#[derive(Debug, Clone)]
struct Associated {
    info: Arc<UpfInfo>,
    load: Option<u8>,
    is_leaving: bool,
}

impl TakeOver {
    /// Nothing is kept yet.
    pub fn new(keeps: Keeps) -> Self {
        Self { keeps, ..Self::default() }
    }

    /// The process begins with stored contexts, and has these other shards: none of them has restored its sessions yet. Before the first input.
    pub fn await_sessions_of(&mut self, others: impl Iterator<Item = u16>, shard: &mut Shard) {
        let others = others.collect();
        shard.await_sessions_of(&others);
        self.unrestored = Some(others);
    }

    /// The shard is about to handle an input.
    pub fn begin(&mut self, shard: &mut Shard, input: &ShardInput) {
        match input {
            ShardInput::N2(N2Input::GnbUp { gnb, info }) => {
                self.gnbs.insert(*gnb, Arc::clone(info));
            }
            ShardInput::N2(N2Input::GnbDown { gnb }) => {
                self.gnbs.remove(gnb);
            }
            // At once: if the turn fails, the block is this shard's nevertheless, and its documents are in the store.
            ShardInput::Block(passed) => self.note_change(shard, passed.change),
            ShardInput::OwnersChanged(change) => self.note_change(shard, *change),
            ShardInput::Instances(instances) => self.instances = Some(Arc::clone(instances)),
            ShardInput::Adopt(changes) => changes.iter().for_each(|change| self.note_change(shard, *change)),
            ShardInput::Address { news, .. } => {
                self.addresses_changed = true;
                self.news.push(*news);
            }
            ShardInput::SessionsRestored { shard } => {
                self.unrestored.as_mut().map(|others| others.remove(shard));
            }
            ShardInput::N4(input) => self.note_upf(input),
            ShardInput::Request { from, .. } | ShardInput::Forwarded { from, .. } => self.owed.push(*from),
            ShardInput::Move(change) => self.moves.push(*change),
            _ => {}
        }
        if let Some(input) = KeptInput::of(input, self.keeps, shard) {
            self.numbered += 1;
            let changes = shard.touched(input.nf());
            self.current = Some((Entry { number: self.numbered, is_suspect: false, input }, changes));
        }
    }

    fn note_change(&mut self, shard: &Shard, change: BlockMove) {
        let owners = self.moved.as_ref().map_or_else(|| shard.owners(), |(owners, _)| owners);
        if let Some(owners) = owners.moved(change) {
            let elsewhere = self.moved.take().map(|(_, elsewhere)| elsewhere).unwrap_or_default();
            self.moved = Some((Arc::new(owners), elsewhere));
        }
        self.addresses_changed = true;
    }

    /// Gives the next run of the shard what the former ones knew of blocks: before the contexts are taken over.
    pub fn begin_run(&self, shard: &mut Shard) {
        if let Some((owners, elsewhere)) = &self.moved {
            shard.begin_with(owners, elsewhere);
        }
        shard.note_addresses(&self.news);
        if let Some(others) = &self.unrestored {
            shard.await_sessions_of(others);
        }
        let arriving = self.again.iter().filter_map(|entry| match &entry.input {
            KeptInput::Block(passed) => Some(passed.change.block),
            _ => None,
        });
        shard.begin_with_passages(&self.former, arriving.collect());
    }

    /// Blocks that the next run has from their documents, and of which the gateways do not know yet.
    pub fn unannounced(&self) -> Vec<BlockMove> {
        self.unannounced.clone()
    }

    fn note_upf(&mut self, input: &N4Input) {
        match input {
            N4Input::UpfUp { upf, info } => {
                let known = self.upfs.entry(*upf);
                let info = Arc::clone(info);
                known.and_modify(|upf| upf.info = Arc::clone(&info)).or_insert(Associated {
                    info,
                    load: None,
                    is_leaving: false,
                });
            }
            N4Input::UpfLoad { upf, percent } => {
                if let Some(upf) = self.upfs.get_mut(upf) {
                    upf.load = Some(*percent);
                }
            }
            N4Input::UpfLeaves { upf } => {
                if let Some(upf) = self.upfs.get_mut(upf) {
                    upf.is_leaving = true;
                }
            }
            N4Input::UpfRestarted { upf } | N4Input::UpfDown { upf } => {
                self.upfs.remove(upf);
            }
            N4Input::Response { .. }
            | N4Input::Request { .. }
            | N4Input::Held { .. }
            | N4Input::GiveUp { .. } => {}
        }
    }

    /// The shard has handled the input.
    pub fn handled(&mut self, shard: &Shard) {
        // Without stored contexts the effects have left.
        if let Some((entry, changes)) = self.current.take().filter(|_| self.keeps != Keeps::Nothing) {
            match (shard.subject(entry.input.nf(), changes), shard.awaits()) {
                (None, Some(portion)) => self.held.push((entry, portion)),
                (subject, _) => self.turn.push((entry, subject)),
            }
        }
        if self.panics > 0 {
            self.calm += 1;
            if self.calm > CALM {
                (self.panics, self.calm) = (0, 0);
            }
        }
    }

    /// These effects leave the shard.
    pub fn note_answers<'a>(&mut self, effects: impl Iterator<Item = &'a ShardEffect>) {
        if self.owed.is_empty() && self.moves.is_empty() {
            return;
        }
        for effect in effects {
            match effect {
                ShardEffect::Answer { to, .. } | ShardEffect::Forward { from: to, .. } => {
                    if let Some(at) = self.owed.iter().position(|owed| owed == to) {
                        self.owed.swap_remove(at);
                    }
                }
                ShardEffect::MoveEnded { change, .. } => self.moves.retain(|of| of.version != change.version),
                ShardEffect::PassOn { input, .. } => {
                    if let ShardInput::Block(passed) = &**input {
                        self.moves.retain(|of| of.version != passed.change.version);
                    }
                }
                _ => {}
            }
        }
    }

    /// The turn is over, and its effects leave the shard: forgets the messages of transactions that are over.
    pub fn end_turn(&mut self, shard: &mut Shard) {
        let owners = shard.owners();
        // Not by the version: changes of different blocks come in any order.
        let is_other = match &self.moved {
            Some((known, _)) => !Arc::ptr_eq(known, owners),
            None => owners.version() > 1,
        };
        if is_other || std::mem::take(&mut self.addresses_changed) {
            self.moved = Some((Arc::clone(owners), shard.addresses_elsewhere()));
        }
        self.news.clear();
        self.unannounced.clear();
        shard.take_new_former(&mut self.former);
        self.touched.clear();
        shard.take_touched(&mut self.touched);
        for at in 0..if self.open.is_empty() { 0 } else { self.touched.len() } {
            if let Some(key) = self.touched.get(at).copied()
                && self.open.contains_key(&key)
            {
                self.forget_if_over(shard, key);
            }
        }
        if !self.suspects.is_empty() && self.again.is_empty() {
            let touched = &self.touched;
            self.suspects.retain(|(suspect, _)| !touched.contains(suspect));
        }
        self.held.retain(|(_, portion)| shard.is_portion_awaited(*portion));
        let mut turn = std::mem::take(&mut self.turn);
        for (entry, subject) in turn.drain(..) {
            if let Some(key) = subject.filter(|key| entry.input.outlives_turn(shard, *key)) {
                self.keep(key, entry);
            }
        }
        self.turn = turn;
    }

    fn keep(&mut self, key: StoredKey, entry: Entry) {
        let (octets, gnb) = (entry.input.octets(), entry.input.gnb());
        let of_gnb = gnb.and_then(|gnb| self.octets_of_gnb.get(&gnb)).copied().unwrap_or(0);
        if self.octets + octets > MOST || of_gnb + octets > MOST_OF_GNB {
            return;
        }
        let open = self.open.entry(key).or_default();
        let excess = if open.len() >= MOST_OF_CONTEXT { open.pop_front() } else { None };
        open.push_back(entry);
        self.octets += octets;
        if let Some(gnb) = gnb {
            *self.octets_of_gnb.entry(gnb).or_default() += octets;
        }
        if let Some(excess) = excess {
            self.give_back(&excess);
        }
    }

    fn forget_if_over(&mut self, shard: &Shard, key: StoredKey) {
        let entries = self.open.remove(&key).unwrap_or_default();
        let (open, over): (VecDeque<_>, VecDeque<_>) =
            entries.into_iter().partition(|entry| entry.input.outlives_turn(shard, key));
        over.iter().for_each(|entry| self.give_back(entry));
        if !open.is_empty() {
            self.open.insert(key, open);
        }
    }

    fn give_back(&mut self, entry: &Entry) {
        let octets = entry.input.octets();
        self.octets = self.octets.saturating_sub(octets);
        if let Some(gnb) = entry.input.gnb()
            && let Some(of_gnb) = self.octets_of_gnb.get_mut(&gnb)
        {
            *of_gnb = of_gnb.saturating_sub(octets);
            if *of_gnb == 0 {
                self.octets_of_gnb.remove(&gnb);
            }
        }
    }

    /// The shard has panicked, in a step on this context. Its effects of the turn are lost. The message that it was handling is delivered
    /// once more, if it did not cause a panic before.
    ///
    /// Returns whether the stored contexts are to be given up, because panics follow each other without an end.
    pub fn panicked(&mut self, in_step: Option<StoredKey>) -> bool {
        (self.panics, self.calm) = (self.panics + 1, 0);
        if let Some(suspect) = in_step {
            match self.suspects.iter_mut().find(|(known, _)| *known == suspect) {
                Some((_, panics)) => *panics = panics.saturating_add(1),
                None => {
                    if self.suspects.len() >= MOST_SUSPECTS {
                        self.suspects.pop_front();
                    }
                    self.suspects.push_back((suspect, 1));
                }
            }
        }
        let (culprit, twice) = match self.current.take() {
            Some((entry, _)) if entry.is_suspect => (None, Some(entry)),
            current => (current.map(|(entry, _)| Entry { is_suspect: true, ..entry }), None),
        };
        self.unannounced.extend(twice.and_then(Entry::into_taken));
        let open = std::mem::take(&mut self.open).into_values().flatten();
        let turn = self.turn.drain(..).map(|(entry, _)| entry);
        let held = self.held.drain(..).map(|(entry, _)| entry);
        let mut again: Vec<_> =
            open.chain(turn).chain(held).chain(culprit).chain(self.again.drain(..)).collect();
        again.retain(|entry| match &entry.input {
            KeptInput::Request { from, .. } => self.owed.contains(from),
            _ => true,
        });
        again.sort_by_key(|entry| entry.number);
        self.again = again.into();
        (self.octets, self.touched) = (0, Vec::new());
        self.octets_of_gnb.clear();
        let gives_up = self.panics > MOST_PANICS;
        if gives_up {
            self.unannounced.extend(self.again.drain(..).filter_map(Entry::into_taken));
            self.suspects.clear();
            self.panics = 0;
        }
        gives_up
    }

    /// What becomes of a context in the next run; `None`: its document is deleted.
    pub fn fate(&self, key: StoredKey) -> Option<Fate> {
        let panics =
            self.suspects.iter().find(|(suspect, _)| *suspect == key).map_or(0, |(_, panics)| *panics);
        match panics {
            0 | 1 => Some(Fate::GoesOn),
            2 => Some(Fate::Ends),
            _ => None,
        }
    }

    /// The gNBs and UPFs that are connected, and the instances of the set: the first inputs of the next run.
    pub fn connections(&self) -> Vec<ShardInput> {
        let gnbs = self.gnbs.iter();
        let gnbs =
            gnbs.map(|(gnb, info)| ShardInput::N2(N2Input::GnbUp { gnb: *gnb, info: Arc::clone(info) }));
        let mut inputs: Vec<_> = gnbs.collect();
        inputs.extend(self.instances.clone().map(ShardInput::Instances));
        let mut add = |input| inputs.push(ShardInput::N4(Box::new(input)));
        for (upf, associated) in &self.upfs {
            add(N4Input::UpfUp { upf: *upf, info: Arc::clone(&associated.info) });
            if let Some(percent) = associated.load {
                add(N4Input::UpfLoad { upf: *upf, percent });
            }
            if associated.is_leaving {
                add(N4Input::UpfLeaves { upf: *upf });
            }
        }
        inputs
    }

    /// Answers to requests from outside the shard that the former run has begun in former turns and not answered: their callers may repeat
    /// them. Blocks that it was about to pass stay.
    pub fn answers(&self, shard: &Shard) -> Vec<ShardEffect> {
        let problem =
            || Problem::new(Cause::SystemFailure).detail("the request was lost in an internal error");
        let answer = |to| ShardEffect::Answer { to, from: shard.own_root(), reply: Err(Box::new(problem())) };
        let ended = |change| ShardEffect::MoveEnded { change, result: Err(MoveError::Interrupted) };
        let is_again = |owed: &Caller| {
            let is_its =
                |entry: &Entry| matches!(&entry.input, KeptInput::Request { from, .. } if from == owed);
            self.again.iter().any(is_its)
        };
        let answers = self.owed.iter().copied().filter(|owed| !is_again(owed)).map(answer);
        answers.chain(self.moves.iter().copied().map(ended)).collect()
    }

    /// The next message that is to be delivered again.
    pub fn next(&mut self, shard: &mut Shard) -> Option<ShardInput> {
        let Entry { number, is_suspect, input } = self.again.pop_front()?;
        let again = input.clone().into_input();
        let changes = shard.touched(input.nf());
        self.current = Some((Entry { number, is_suspect, input }, changes));
        Some(again)
    }

    /// The contexts are resumed: their changes say nothing of a step that succeeds.
    pub fn resumed(&mut self, shard: &mut Shard) {
        shard.take_touched(&mut self.touched);
        self.touched.clear();
    }
}
