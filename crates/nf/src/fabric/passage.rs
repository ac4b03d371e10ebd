//! A block of ids passes from one shard of a process to another, with its contexts.
//!
//! ```text
//!  former owner                    gateways                    new owner            others
//!   | ── Hold ───────────────────>  what arrives waits
//!   | <─ Held ───────────────────   nothing more follows
//!   | finishes transactions of the block, stops its timers
//!   | ── Block: version, contexts, connections, addresses ──>  |
//!   | forwards what still comes ───────────────────────────>   | goes on
//!                                   | <──────────── Moved ──   | ── OwnersChanged ──> |
//!                                   | pending, in order ─>     |                      |
//! ```
//!
//! - A block passes when no request of or to another NF is pending for a context in it. If that takes longer than [`LONGEST`], the block
//!   stays, and pending inputs go to its owner.
//! - For another instance of the set, no procedure of a context in it may wait for another NF or a UPF either: the answers would not follow.
//! - The former owner answers nothing for the block afterwards: requests, replies, and responses of UPFs follow the contexts.
//! - Each change of the owner map has a version. An older change of the same block has no effect, so that a late one does not undo it.
//! - If the new owner panics in the turn in which it takes the block, its next run gets the block again ([`super::TakeOver`]). If it panics
//!   a second time with it, it has the contexts of the store. The gateways get `Moved` in either case.
//! - The first block that a shard has at the start stays: subscriptions of its agent and records of the NRF are in it. A shard passes one block at a time, so that its other UEs wait a few milliseconds at most.

use super::owner::shard_of;
use super::shard::{Shard, ShardEffect, ShardInput};
use crate::kit::{
    AddressNews, Input, Instant, N2Effect, N2Input, N4Effect, N4Input, NetworkFunction, Nf, Passage,
    PassedBlock, StoredKey, Tag, Timer, TimerKey,
};
use pith_types::{BlockId, BlockMove, ContextId, OwnerMap};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// How long a block waits for the end of its transactions.
pub const LONGEST: Duration = Duration::from_secs(2);

/// Keys of passed contexts, by which late replies are forwarded. Beyond that the oldest are forgotten.
const MOST_FORMER: usize = 1 << 16;

/// Why a block stays where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MoveError {
    /// The shard does not have it.
    #[error("another shard has the block by now: list the shards again")]
    NotOwner,
    /// It is there.
    #[error("the shard has the block already")]
    SameShard,
    /// The shard's own subscriptions and the NRF's records are in it.
    #[error("it is the first block of its shard, which stays: the records of NRF and agent are in it")]
    FirstBlock,
    /// Several shards have parts of one document.
    #[error("with 'residency: shared' and 'embedded' the NFs of a UE have one document, and blocks stay")]
    SharedDocuments,
    /// Transactions went on for too long, or too much arrived meanwhile.
    #[error("requests for its UEs did not end in time: repeat the command when there is less load")]
    Busy,
    /// The process has no such shard.
    #[error("the process has no shard of that number")]
    NoSuchShard,
    /// The shard panicked before it passed the block.
    #[error("an internal error interrupted the move, and the block stays where it is: repeat the command")]
    Interrupted,
}

/// The keys that contexts had at this shard before they passed, by which the shard forwards late replies.
#[derive(Debug, Clone, Default)]
pub(super) struct FormerKeys {
    ids: HashMap<FormerKey, ContextId>,
    order: VecDeque<FormerKey>,
}

/// A context's key in the table of an NF, in a run of the shard.
pub(super) type FormerKey = (u16, Nf, u64);

impl FormerKeys {
    pub(super) fn note(&mut self, key: FormerKey, id: ContextId) {
        self.ids.insert(key, id);
        self.order.push_back(key);
        while self.order.len() > MOST_FORMER {
            self.order.pop_front().and_then(|oldest| self.ids.remove(&oldest));
        }
    }

    fn find(&self, key: FormerKey) -> Option<ContextId> {
        self.ids.get(&key).copied()
    }
}

/// The block that a shard is about to pass.
#[derive(Debug)]
struct Leaving {
    change: BlockMove,
    /// The N2 gateway has not answered yet.
    awaits_n2: bool,
    /// The N4 gateway has not answered yet.
    awaits_n4: bool,
    /// A context for which the block waits.
    waits_for: Option<StoredKey>,
}

/// The blocks that a shard passes.
#[derive(Debug, Default)]
pub(super) struct Passages {
    leaving: Option<Leaving>,
    /// A block that leaves for another instance, as long as its UEs are connected.
    pub(super) idling: Option<BlockMove>,
    queue: VecDeque<BlockMove>,
    former: FormerKeys,
    /// Those of the current turn.
    new_former: Vec<(FormerKey, ContextId)>,
    /// Blocks that this run of the shard has taken.
    taken: BTreeSet<BlockId>,
    /// Blocks that this run is about to take, because the run before panicked with them: their documents are not taken over.
    arriving: BTreeSet<BlockId>,
    /// A block has another owner than at the start of the process.
    has_changed: bool,
    /// No block may leave: several shards have parts of one document.
    stays: bool,
}

impl Passages {
    /// Whether a block has passed to or from this shard.
    pub(super) const fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// Whether the copies of contexts of a block must stay: it is about to be passed.
    pub(super) fn needs_copies(&self, block: BlockId) -> bool {
        self.leaving.as_ref().is_some_and(|leaving| leaving.change.block == block)
    }

    fn note_former(&mut self, key: FormerKey, id: ContextId) {
        self.former.note(key, id);
        self.new_former.push((key, id));
    }

    /// Whether the run gets the block again, so that its documents are not taken over.
    pub(super) fn is_arriving(&self, block: BlockId) -> bool {
        self.arriving.contains(&block)
    }
}

impl Shard {
    /// The owner map as the shard has it.
    pub const fn owners(&self) -> &Arc<OwnerMap> {
        self.agent.owners()
    }

    /// The shard has this owner map, and sessions of other shards have these UE addresses: before the contexts of a run are taken over.
    pub(super) fn begin_with(&mut self, owners: &Arc<OwnerMap>, elsewhere: &[std::net::IpAddr]) {
        self.set_owners(Arc::clone(owners));
        let news: Vec<_> = elsewhere.iter().map(|address| AddressNews::Used(*address)).collect();
        self.note_addresses(&news);
    }

    /// What other shards have said of UE addresses of this shard's blocks.
    pub(super) fn note_addresses(&mut self, news: &[AddressNews]) {
        for (_, function) in &mut self.functions {
            news.iter().for_each(|news| function.note_address(*news));
        }
    }

    /// What former runs of the shard have passed, and the blocks that this one gets again.
    pub(super) fn begin_with_passages(&mut self, former: &FormerKeys, arriving: BTreeSet<BlockId>) {
        self.passages.former = former.clone();
        self.passages.arriving = arriving;
    }

    /// Moves the keys of contexts that have passed since the last call to a list.
    pub(super) fn take_new_former(&mut self, former: &mut FormerKeys) {
        self.passages.new_former.drain(..).for_each(|(key, id)| former.note(key, id));
    }

    /// The context that the key in a tag from outside meant, if that context has passed.
    pub(super) fn former_context(&self, nf: Nf, tag: Tag) -> Option<ContextId> {
        self.passages.former.find((tag.run, nf, tag.owner))
    }

    /// As [`Shard::former_context`], if a shard of this instance has its block. A reply for a context that another instance has does not follow
    /// it, and is handled as one for a context that has ended: what it reports as created is deleted.
    fn context_passed_on(&self, nf: Nf, tag: Tag) -> Option<ContextId> {
        self.former_context(nf, tag).filter(|id| self.is_in_instance(id.block))
    }

    fn is_in_instance(&self, block: BlockId) -> bool {
        self.owners().shard_of(self.agent.owner().instance, block).is_some()
    }

    /// The shard keeps its blocks: documents are of several shards.
    pub const fn keep_blocks(&mut self) {
        self.passages.stays = true;
    }

    /// Whether no block is about to leave.
    pub const fn is_at_rest(&self) -> bool {
        self.passages.leaving.is_none() && self.passages.idling.is_none()
    }

    /// UE addresses of the shard's blocks that sessions of other shards have.
    pub fn addresses_elsewhere(&self) -> Vec<std::net::IpAddr> {
        self.functions.iter().flat_map(|(_, function)| function.addresses_elsewhere()).collect()
    }

    /// Number of contexts of each NF in a block.
    pub fn contexts_in(&self, block: BlockId) -> usize {
        self.functions.iter().map(|(_, function)| function.contexts_in(block)).sum()
    }

    /// The shard as operators see it.
    pub(super) fn describe(&self) -> serde_json::Value {
        let own = self.agent.owner();
        let mut ranges: Vec<(u16, u16)> = Vec::new();
        let mut contexts = 0;
        for block in self.owners().blocks_of(own) {
            contexts += self.contexts_in(block);
            match ranges.last_mut().filter(|(_, last)| *last + 1 == block.number()) {
                Some((_, last)) => *last = block.number(),
                None => ranges.push((block.number(), block.number())),
            }
        }
        let range = |(first, last): (u16, u16)| {
            if first == last { format!("{first:x}") } else { format!("{first:x}-{last:x}") }
        };
        serde_json::json!({
            "shard": own.shard.0,
            "blocks": ranges.into_iter().map(range).collect::<Vec<_>>(),
            "contexts": contexts,
            "inputs": self.inputs,
            "mapVersion": self.owners().version(),
            "leaving": self.passages.leaving.as_ref().map(|it| it.change.block.to_string()),
        })
    }

    pub(super) fn set_owners(&mut self, owners: Arc<OwnerMap>) {
        for (_, function) in &mut self.functions {
            function.change_owners(&owners);
        }
        self.passages.has_changed = true;
        self.agent.set_owners(owners);
    }

    /// Another shard has a block.
    pub(super) fn owners_changed(&mut self, change: BlockMove) {
        if let Some(owners) = self.owners().moved(change) {
            self.set_owners(Arc::new(owners));
        }
    }

    /// Begins to pass a block, or refuses it.
    pub(super) fn begin_move(&mut self, change: BlockMove, out: &mut Vec<ShardEffect>) {
        if self.passages.leaving.is_some() || self.passages.idling.is_some() {
            return self.passages.queue.push_back(change);
        }
        if let Err(error) = self.check_move(change) {
            return out.push(ShardEffect::MoveEnded { change, result: Err(error) });
        }
        out.push(ShardEffect::StartTimer { nf: Nf::Agent, key: deadline(change), after: LONGEST });
        if change.to.instance == self.agent.owner().instance {
            self.hold_block(change, out);
        } else {
            self.passages.idling = Some(change);
        }
    }

    /// From now on the gateways keep what arrives for a block.
    pub(super) fn hold_block(&mut self, change: BlockMove, out: &mut Vec<ShardEffect>) {
        let (block, shard) = (change.block, self.agent.owner().shard);
        let (awaits_n2, awaits_n4) = (self.hosts(Nf::Amf), self.hosts(Nf::Smf));
        if awaits_n2 {
            out.push(ShardEffect::N2(N2Effect::Passage(Passage::Hold { block, shard })));
        }
        if awaits_n4 {
            out.push(ShardEffect::N4(Box::new(N4Effect::Passage(Passage::Hold { block, shard }))));
        }
        self.passages.leaving = Some(Leaving { change, awaits_n2, awaits_n4, waits_for: None });
    }

    fn check_move(&self, change: BlockMove) -> Result<(), MoveError> {
        let (owners, own) = (self.owners(), self.agent.owner());
        if owners.owner(change.block) != own || owners.owned_since(change.block) >= change.version {
            return Err(MoveError::NotOwner);
        }
        if change.to == own {
            return Err(MoveError::SameShard);
        }
        if change.to.instance == own.instance && u16::from(change.to.shard.0) >= self.agent.shards() {
            return Err(MoveError::NoSuchShard);
        }
        if self.passages.stays {
            return Err(MoveError::SharedDocuments);
        }
        if self.restoring.awaits_others() {
            // What they must say of the block's UE addresses is for its owner.
            return Err(MoveError::Busy);
        }
        // In a set there is no NRF, and notifications for the agent are late at most.
        let returns = self.agent.instances().home(change.block) == Some(change.to.instance);
        if self.agent.home() == Some(change.block) && !returns {
            return Err(MoveError::FirstBlock);
        }
        Ok(())
    }

    /// A gateway answers, or wants the block to stay. Returns whether the input was that.
    pub(super) fn note_gateway(&mut self, input: &ShardInput, out: &mut Vec<ShardEffect>) -> bool {
        let (block, is_held) = match input {
            ShardInput::N2(N2Input::Held { block }) => (*block, true),
            ShardInput::N2(N2Input::GiveUp { block }) => (*block, false),
            ShardInput::N4(input) => match **input {
                N4Input::Held { block } => (block, true),
                N4Input::GiveUp { block } => (block, false),
                _ => return false,
            },
            _ => return false,
        };
        match &mut self.passages.leaving {
            Some(leaving) if leaving.change.block == block && is_held => match input {
                ShardInput::N2(_) => leaving.awaits_n2 = false,
                _ => leaving.awaits_n4 = false,
            },
            Some(leaving) if leaving.change.block == block => self.give_up(out),
            // From before a panic: the block stays.
            None if is_held => self.release(block, out),
            _ => {}
        }
        true
    }

    /// Transactions of the block last too long.
    pub(super) fn move_is_late(&mut self, key: TimerKey, out: &mut Vec<ShardEffect>) {
        if self.passages.leaving.as_ref().is_some_and(|leaving| deadline(leaving.change) == key) {
            self.give_up(out);
        }
        if let Some(change) = self.passages.idling.take_if(|change| deadline(*change) == key) {
            out.push(ShardEffect::MoveEnded { change, result: Err(MoveError::Busy) });
        }
    }

    fn give_up(&mut self, out: &mut Vec<ShardEffect>) {
        let Some(Leaving { change, .. }) = self.passages.leaving.take() else { return };
        out.push(ShardEffect::StopTimer { nf: Nf::Agent, key: deadline(change) });
        self.release(change.block, out);
        out.push(ShardEffect::MoveEnded { change, result: Err(MoveError::Busy) });
    }

    fn release(&self, block: BlockId, out: &mut Vec<ShardEffect>) {
        if self.hosts(Nf::Amf) {
            out.push(ShardEffect::N2(N2Effect::Passage(Passage::Release { block })));
        }
        if self.hosts(Nf::Smf) {
            out.push(ShardEffect::N4(Box::new(N4Effect::Passage(Passage::Release { block }))));
        }
    }

    /// An input was handled.
    pub(super) fn advance_moves(&mut self, out: &mut Vec<ShardEffect>) {
        self.send_address_news(out);
        self.is_settled(out);
    }

    /// Whether a block is to leave.
    pub fn has_moves(&self) -> bool {
        let Passages { leaving, idling, queue, .. } = &self.passages;
        leaving.is_some() || idling.is_some() || !queue.is_empty()
    }

    /// Passes the block that is to leave, if nothing holds it, and begins with the next one. Called at the end of a turn, after
    /// its changes are written: the documents of the block are those of its contexts.
    pub fn complete_move(&mut self, now: Instant, out: &mut Vec<ShardEffect>) {
        // Connections may have ended since.
        self.make_idle(now, out);
        if self.is_settled(out) {
            self.pass(now, out);
        }
        while self.passages.leaving.is_none()
            && self.passages.idling.is_none()
            && let Some(next) = self.passages.queue.pop_front()
        {
            self.begin_move(next, out);
            self.make_idle(now, out);
        }
    }

    /// Whether the block that is to leave can pass. A context of which only the store has a copy is read first.
    fn is_settled(&mut self, out: &mut Vec<ShardEffect>) -> bool {
        let Some(leaving) = &self.passages.leaving else { return false };
        // While a store fails, only this shard knows which NAS COUNTs may be used.
        let is_failing = self.functions.iter().any(|(_, function)| function.is_store_failing());
        let block = leaving.change.block;
        if leaving.awaits_n2 || leaving.awaits_n4 || is_failing || self.restoring.has_block(block) {
            return false;
        }
        let leaves_instance = leaving.change.to.instance != self.agent.owner().instance;
        if leaves_instance && self.has_connections(block) {
            return false;
        }
        let is_unsettled = |key: &StoredKey| {
            let of_nf = self.functions.iter().find(|(nf, _)| *nf == key.nf);
            self.absent.is_awaited(*key)
                || of_nf.is_some_and(|(_, function)| {
                    function.is_unsettled(key.id)
                        || leaves_instance && !function.is_between_transactions(key.id)
                })
        };
        let waits_for = leaving.waits_for.filter(is_unsettled).or_else(|| {
            let unsettled = |(nf, function): &(Nf, Box<dyn NetworkFunction>)| {
                let id = if leaves_instance {
                    function.unsettled_for_instance(block)
                } else {
                    function.unsettled(block)
                };
                id.map(|id| StoredKey { nf: *nf, id })
            };
            self.functions.iter().find_map(unsettled).or_else(|| self.absent.awaited_in(block))
        });
        if let Some(leaving) = &mut self.passages.leaving {
            leaving.waits_for = waits_for;
        }
        let Some(key) = waits_for else { return true };
        if !self.is_resident(key) && self.absent.begin_load(key) {
            out.push(ShardEffect::Load { key });
        }
        false
    }

    fn pass(&mut self, now: Instant, out: &mut Vec<ShardEffect>) {
        let Some(Leaving { change, .. }) = self.passages.leaving.take() else { return };
        let mut parts = Vec::new();
        for each in 0..self.functions.len() {
            let (nf, function) = &mut self.functions[each];
            let nf = *nf;
            let part = function.pass_block(now, change.block, &mut self.outbox);
            for context in &part.contexts {
                self.passages.note_former((self.run, nf, context.key), context.id);
            }
            parts.push((nf, part));
            self.route(now, nf, out);
        }
        self.owners_changed(change);
        out.push(ShardEffect::StopTimer { nf: Nf::Agent, key: deadline(change) });
        if change.to.instance != self.agent.owner().instance {
            return self.released(change, out);
        }
        self.pass_on(change.block, ShardInput::Block(Box::new(PassedBlock { change, parts })), out);
    }

    /// Takes a block that another shard has passed.
    pub(super) fn take_block(&mut self, now: Instant, passed: PassedBlock, out: &mut Vec<ShardEffect>) {
        let PassedBlock { change, parts } = passed;
        self.owners_changed(change);
        self.passages.arriving.remove(&change.block);
        self.passages.taken.insert(change.block);
        for (nf, part) in parts {
            if let Some((_, function)) = self.functions.iter_mut().find(|(hosted, _)| *hosted == nf) {
                function.take_block(now, change.block, part, &mut self.outbox);
            }
            self.route(now, nf, out);
        }
        self.announce(change, out);
    }

    /// The gateways and the other shards learn that the shard has the block.
    pub(super) fn announce(&self, change: BlockMove, out: &mut Vec<ShardEffect>) {
        if self.hosts(Nf::Amf) {
            let has = self
                .functions
                .iter()
                .flat_map(|(_, function)| function.connections_of(change.block))
                .collect();
            out.push(ShardEffect::N2(N2Effect::Passage(Passage::Moved { change, has })));
        }
        if self.hosts(Nf::Smf) {
            out.push(ShardEffect::N4(Box::new(N4Effect::Passage(Passage::Moved { change, has: () }))));
        }
        out.push(ShardEffect::OwnersChanged(change));
        out.push(ShardEffect::MoveEnded { change, result: Ok(()) });
    }

    /// Sends an input to the owner of a block. One of another instance gets none: it has begun with the documents.
    fn pass_on(&self, block: BlockId, input: ShardInput, out: &mut Vec<ShardEffect>) {
        let Some(shard) = self.owners().shard_of(self.agent.owner().instance, block) else { return };
        out.push(ShardEffect::PassOn { shard: shard.0.into(), input: Box::new(input) });
    }

    /// An input for a context that another shard has passed on.
    pub(super) fn passed_on(&mut self, (nf, id): (Nf, ContextId), input: Input, out: &mut Vec<ShardEffect>) {
        if self.owners().owner(id.block) != self.agent.owner() && self.is_in_instance(id.block) {
            return self.pass_on(id.block, ShardInput::ForContext { nf, id, input: Box::new(input) }, out);
        }
        // A run that has the context from its document has sent the request again.
        let has_call = self.passages.taken.contains(&id.block);
        let function = self.functions.iter().find(|(hosted, _)| *hosted == nf && has_call);
        let key =
            function.and_then(|(_, function)| function.key_of(id)).unwrap_or(super::shard::FORMER_OWNER);
        let mut input = input;
        if let Some(tag) = tag_mut(&mut input) {
            *tag = Tag { owner: key, run: 0, ..*tag };
        }
        self.push(nf, input);
    }

    /// News of a UE address, for the owner of its block.
    pub(super) fn address_news(&mut self, block: BlockId, news: AddressNews, out: &mut Vec<ShardEffect>) {
        if self.owners().owner(block) != self.agent.owner() {
            return self.pass_on(block, ShardInput::Address { block, news }, out);
        }
        self.functions.iter_mut().for_each(|(_, function)| function.note_address(news));
    }

    /// Sends the owners of addresses what they must know of them.
    pub(super) fn send_address_news(&mut self, out: &mut Vec<ShardEffect>) {
        // Other NFs assign no addresses.
        let Some((_, smf)) = self.functions.iter_mut().find(|(nf, _)| *nf == Nf::Smf) else { return };
        for (block, news) in smf.take_address_news() {
            self.address_news(block, news, out);
        }
    }

    /// Forwards a request or a reply for a context of a block that another shard has. Returns any other input.
    pub(super) fn forward_if_passed(
        &self,
        (nf, input, asked): (Nf, Input, u16),
        out: &mut Vec<ShardEffect>,
    ) -> Option<Input> {
        if self.passages.has_changed {
            // Within the shard: a tag of this run.
            let former = |tag: &Tag| self.context_passed_on(nf, Tag { run: self.run, ..*tag });
            let id = match &input {
                Input::Reply { tag, .. } | Input::Routed { tag, .. } => former(tag),
                Input::N4(input) => match &**input {
                    N4Input::Response { tag, .. } => former(tag),
                    _ => None,
                },
                // A request that passes from shard to shard in search of a context names no block.
                Input::Request { request, .. } if asked == 0 && !matches!(nf, Nf::Agent | Nf::Nrf) => {
                    return match shard_of(self.owners(), self.agent.owner().instance, request) {
                        Some(shard) if shard != self.agent.shard() => {
                            self.forward_request(shard, nf, input, out);
                            None
                        }
                        _ => Some(input),
                    };
                }
                _ => None,
            };
            if let Some(id) = id {
                let input = Box::new(input);
                self.pass_on(id.block, ShardInput::ForContext { nf, id, input }, out);
                return None;
            }
        }
        Some(input)
    }

    fn forward_request(&self, shard: u16, nf: Nf, input: Input, out: &mut Vec<ShardEffect>) {
        let Input::Request { reply, request } = input else { return };
        let from = self.caller_outside(reply.caller());
        out.push(ShardEffect::Forward { shard, nf, from, request, asked: 0 });
    }

    fn forward_reply_to_former_run(
        &self,
        input: ShardInput,
        out: &mut Vec<ShardEffect>,
    ) -> Option<ShardInput> {
        let call = match &input {
            ShardInput::Reply { nf, tag, .. } => Some((*nf, *tag)),
            ShardInput::N4(input) => match &**input {
                N4Input::Response { tag, .. } => Some((Nf::Smf, *tag)),
                _ => None,
            },
            _ => None,
        };
        let call = call.filter(|(_, tag)| tag.run != self.run);
        let Some((nf, id)) = call.and_then(|(nf, tag)| Some((nf, self.context_passed_on(nf, tag)?))) else {
            return Some(input);
        };
        let input = match input {
            ShardInput::Reply { tag, from, reply, .. } => Input::Reply { tag, from, reply },
            ShardInput::N4(input) => Input::N4(input),
            other => return Some(other),
        };
        self.pass_on(id.block, ShardInput::ForContext { nf, id, input: Box::new(input) }, out);
        None
    }

    /// Forwards what a gateway sent for a block that another shard has, and replies to calls that a former run made for a context of it. Returns
    /// any other input.
    pub(super) fn forward_from_outside(
        &self,
        input: ShardInput,
        out: &mut Vec<ShardEffect>,
    ) -> Option<ShardInput> {
        if !self.passages.has_changed {
            return Some(input);
        }
        let input = self.forward_reply_to_former_run(input, out)?;
        let block = match &input {
            ShardInput::N2(N2Input::Pdu { pdu, .. }) => {
                pith_ngap::peek(pdu).and_then(|peeked| peeked.amf_ue_ngap_id).map(|id| id.block())
            }
            ShardInput::N4(input) => match &**input {
                N4Input::Request { seid, .. } => Some(seid.block()),
                _ => None,
            },
            _ => None,
        };
        match block.filter(|block| self.owners().owner(*block) != self.agent.owner()) {
            Some(block) => {
                self.pass_on(block, input, out);
                None
            }
            None => Some(input),
        }
    }
}

/// The tag of a reply or response.
fn tag_mut(input: &mut Input) -> Option<&mut Tag> {
    match input {
        Input::Reply { tag, .. } | Input::Routed { tag, .. } => Some(tag),
        Input::N4(input) => match &mut **input {
            N4Input::Response { tag, .. } => Some(tag),
            _ => None,
        },
        _ => None,
    }
}

/// The timer after which a block stays.
pub(super) const fn deadline(change: BlockMove) -> TimerKey {
    TimerKey { owner: change.version, timer: Timer::BlockMove }
}
