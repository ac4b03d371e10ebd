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

use super::{Shard, ShardEffect, ShardInput};
use crate::kit::{
    Caller, Fate, GnbHandle, GnbInfo, N2Input, N4Error, N4Input, N4Transaction, Nf, SetInstances, StoredKey,
    Tag, Tracking, UpfHandle, UpfInfo,
};
use bytes::Bytes;
use pith_pfcp::Message;
use pith_sbi::{Cause, Problem};
use pith_types::{BlockMove, OwnerMap, Seid};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
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
        stream: u16,
        pdu: Bytes,
    },
    /// NG RESET, which the gateway has acknowledged.
    Reset(Box<N2Input>),
    Report {
        transaction: N4Transaction,
        seid: Seid,
        message: Box<Message>,
    },
    /// A UPF has established a session. If the SMF has lost that, it deletes the session.
    Established {
        tag: Tag,
        message: Box<Message>,
    },
}

impl KeptInput {
    /// A copy of the input, if it is kept.
    fn of(input: &ShardInput) -> Option<Self> {
        match input {
            ShardInput::N2(N2Input::Pdu { gnb, stream, pdu }) => {
                Some(Self::Pdu { gnb: *gnb, stream: *stream, pdu: pdu.clone() })
            }
            ShardInput::N2(reset @ N2Input::Reset { .. }) => Some(Self::Reset(Box::new(reset.clone()))),
            ShardInput::N4(input) => match &**input {
                N4Input::Request { transaction, seid, message } => Some(Self::Report {
                    transaction: *transaction,
                    seid: *seid,
                    message: Box::new(message.clone()),
                }),
                N4Input::Response { tag, result: Ok(message @ Message::SessionEstablishmentResponse(_)) } => {
                    Some(Self::Established { tag: *tag, message: Box::new(message.clone()) })
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn into_input(self) -> ShardInput {
        match self {
            Self::Pdu { gnb, stream, pdu } => ShardInput::N2(N2Input::Pdu { gnb, stream, pdu }),
            Self::Reset(reset) => ShardInput::N2(*reset),
            Self::Report { transaction, seid, message } => {
                ShardInput::N4(Box::new(N4Input::Request { transaction, seid, message: *message }))
            }
            Self::Established { tag, message } => {
                let result: Result<Message, N4Error> = Ok(*message);
                ShardInput::N4(Box::new(N4Input::Response { tag, result }))
            }
        }
    }

    /// The NF that processes it.
    const fn nf(&self) -> Nf {
        match self {
            Self::Pdu { .. } | Self::Reset(_) => Nf::Amf,
            Self::Report { .. } | Self::Established { .. } => Nf::Smf,
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

/// A kept message.
#[derive(Debug)]
struct Entry {
    /// In the order of arrival.
    number: u64,
    /// It caused a panic before.
    is_suspect: bool,
    input: KeptInput,
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
        if tracking.may_lag() { Self::OfGnbs } else { Self::All }
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
    octets: usize,
    octets_of_gnb: BTreeMap<GnbHandle, usize>,
    /// Messages to be delivered again.
    again: VecDeque<Entry>,
    /// Callers outside the shard whose requests are not answered.
    owed: Vec<Caller>,
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
    moved: Option<(Arc<OwnerMap>, Vec<Ipv4Addr>)>,
    /// The instances of the process's set.
    instances: Option<Arc<SetInstances>>,
    /// Such an address changed in this turn.
    addresses_changed: bool,
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
            ShardInput::Address { .. } => self.addresses_changed = true,
            ShardInput::N4(input) => self.note_upf(input),
            ShardInput::Request { from, .. } | ShardInput::Forwarded { from, .. } => self.owed.push(*from),
            _ => {}
        }
        if self.keeps == Keeps::Nothing {
            return;
        }
        let is_kept =
            |input: &KeptInput| self.keeps == Keeps::All || !matches!(input, KeptInput::Report { .. });
        if let Some(input) = KeptInput::of(input).filter(is_kept) {
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

    /// The owner map of the next run, and UE addresses of the shard that sessions of other shards have.
    pub fn moved(&self) -> Option<(&Arc<OwnerMap>, &[Ipv4Addr])> {
        self.moved.as_ref().map(|(owners, elsewhere)| (owners, elsewhere.as_slice()))
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
        if let Some((entry, changes)) = self.current.take() {
            let subject = shard.subject(entry.input.nf(), changes);
            self.turn.push((entry, subject));
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
        if self.owed.is_empty() {
            return;
        }
        for effect in effects {
            if let ShardEffect::Answer { to, .. } | ShardEffect::Forward { from: to, .. } = effect
                && let Some(at) = self.owed.iter().position(|owed| owed == to)
            {
                self.owed.swap_remove(at);
            }
        }
    }

    /// The turn is over, and its effects leave the shard: forgets the messages of transactions that are over.
    pub fn end_turn(&mut self, shard: &mut Shard) {
        let known = self.moved.as_ref().map_or(1, |(owners, _)| owners.version());
        let owners = shard.owners();
        let is_newer = owners.version() > known;
        if is_newer || std::mem::take(&mut self.addresses_changed) {
            self.moved = Some((Arc::clone(owners), shard.addresses_elsewhere()));
        }
        self.touched.clear();
        shard.take_touched(&mut self.touched);
        for at in 0..if self.open.is_empty() { 0 } else { self.touched.len() } {
            if let Some(key) = self.touched.get(at).copied()
                && self.open.contains_key(&key)
                && !shard.is_in_transaction(key)
            {
                self.forget(key);
            }
        }
        if !self.suspects.is_empty() && self.again.is_empty() {
            let touched = &self.touched;
            self.suspects.retain(|(suspect, _)| !touched.contains(suspect));
        }
        let mut turn = std::mem::take(&mut self.turn);
        for (entry, subject) in turn.drain(..) {
            if let Some(key) = subject.filter(|key| shard.is_in_transaction(*key)) {
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

    fn forget(&mut self, key: StoredKey) {
        for entry in self.open.remove(&key).unwrap_or_default() {
            self.give_back(&entry);
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
        let culprit = self.current.take().map(|(entry, _)| entry).filter(|entry| !entry.is_suspect);
        let culprit = culprit.map(|entry| Entry { is_suspect: true, ..entry });
        let open = std::mem::take(&mut self.open).into_values().flatten();
        let turn = self.turn.drain(..).map(|(entry, _)| entry);
        let mut again: Vec<_> = open.chain(turn).chain(culprit).chain(self.again.drain(..)).collect();
        again.sort_by_key(|entry| entry.number);
        self.again = again.into();
        (self.octets, self.touched) = (0, Vec::new());
        self.octets_of_gnb.clear();
        let gives_up = self.panics > MOST_PANICS;
        if gives_up {
            self.again.clear();
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

    /// Answers to requests from outside the shard that the former run has not answered: their callers may repeat them.
    pub fn answers(&self, shard: &Shard) -> Vec<ShardEffect> {
        let problem =
            || Problem::new(Cause::SystemFailure).detail("the request was lost in an internal error");
        let answer = |to| ShardEffect::Answer { to, from: shard.own_root(), reply: Err(Box::new(problem())) };
        self.owed.iter().copied().map(answer).collect()
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
