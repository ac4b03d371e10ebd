//! Contexts that are restored while the shard serves: what an input needs is restored first.
//!
//! ```text
//!  input ── needs ──> restored: deliver
//!                └──> not restored: wait ── ShardEffect::Restore ──> shell ── ShardInput::Restored ──> deliver in order
//!  shell, between inputs: a slice of the others ── ShardInput::Restored
//! ```
//!
//! An input that names a context by its id needs that one. A 5G-TMSI says only the block of its UE, whose contexts are restored
//! together. What looks for a context by its SUPI, or allocates a UE address, needs all contexts of its NF: it waits until the shell has
//! restored them.
//!
//! A session that has passed to this shard with its block keeps its UE address, which may be of a block of another shard. After a restart that shard
//! learns it from this one ([`crate::kit::AddressNews`]). So a UE address is allocated when all shards of the process have restored their sessions:
//!
//! ```text
//!  shard 1: its sessions are restored ── Address, SessionsRestored ──> shard 0: its sessions are restored, too: it allocates
//! ```

use super::absent::Queued;
use super::shard::{Shard, ShardEffect, ShardInput};
use crate::kit::{Input, Inspect, Instant, Needs, Nf, StoredKey};
use pith_sbi::Problem;
use pith_types::{BlockId, ContextId};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

/// Inputs that wait at most. Beyond it, what they wait for is restored before anything else is served.
const MOST_WAITING: usize = 16_384;

/// Contexts of a former run that are restored together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Portion {
    /// One.
    Context(StoredKey),
    /// All of a block.
    Block(Nf, BlockId),
    /// Some, which nothing waits for.
    Slice(Nf),
    /// All.
    All(Nf),
}

impl Portion {
    const fn nf(self) -> Nf {
        match self {
            Self::Context(key) => key.nf,
            Self::Block(nf, _) | Self::Slice(nf) | Self::All(nf) => nf,
        }
    }
}

/// The contexts of a former run that are not restored yet.
#[derive(Debug, Clone, Default)]
pub struct Unrestored {
    /// Blocks of which some are not restored. An NF without such blocks is not in the map.
    blocks: BTreeMap<Nf, BTreeSet<BlockId>>,
    /// Numbers of contexts of these blocks that are restored.
    restored: HashMap<(Nf, BlockId), HashSet<u32>>,
}

impl Unrestored {
    /// The contexts of an NF in a block are to be restored.
    pub fn add_block(&mut self, nf: Nf, block: BlockId) {
        self.blocks.entry(nf).or_default().insert(block);
    }

    /// One of them is restored.
    pub fn note_context(&mut self, key: StoredKey) {
        if self.has_block(key.nf, key.id.block) {
            self.restored.entry((key.nf, key.id.block)).or_default().insert(key.id.number);
        }
    }

    /// All of the block are restored.
    pub fn note_block(&mut self, nf: Nf, block: BlockId) {
        let Some(blocks) = self.blocks.get_mut(&nf) else { return };
        blocks.remove(&block);
        self.restored.remove(&(nf, block));
        if blocks.is_empty() {
            self.blocks.remove(&nf);
        }
    }

    /// Whether a context may be in the store, and is not restored.
    pub fn has(&self, key: StoredKey) -> bool {
        let is_restored = |numbers: &HashSet<u32>| numbers.contains(&key.id.number);
        self.has_block(key.nf, key.id.block)
            && !self.restored.get(&(key.nf, key.id.block)).is_some_and(is_restored)
    }

    /// Whether contexts of an NF in a block are not restored.
    pub fn has_block(&self, nf: Nf, block: BlockId) -> bool {
        self.blocks.get(&nf).is_some_and(|blocks| blocks.contains(&block))
    }

    /// The blocks of an NF with contexts that are not restored.
    pub fn blocks_of(&self, nf: Nf) -> impl Iterator<Item = BlockId> {
        self.blocks.get(&nf).into_iter().flatten().copied()
    }

    /// Whether all contexts are restored.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

/// The contexts that a shard waits for, and the inputs that wait.
#[derive(Default)]
pub(super) struct Restoring {
    unrestored: Unrestored,
    /// In order.
    waiting: BTreeMap<Portion, VecDeque<Queued>>,
    number: usize,
    /// Requests of operators, which see and change all contexts.
    operator: Vec<ShardInput>,
    /// What the last input from outside waits for.
    pub held: Option<Portion>,
    /// Other shards of the process whose sessions may have UE addresses of this one's blocks: they have not restored them yet.
    others: BTreeSet<u16>,
    /// The other shards do not know that the sessions of this one are restored.
    is_awaited_by_others: bool,
    /// The NFs have resumed the contexts that were restored before the first input, or taken over.
    pub has_resumed: bool,
}

impl Restoring {
    /// Whether the contexts of former runs are all restored, and those of other shards that matter here.
    pub(super) fn is_complete(&self) -> bool {
        self.unrestored.is_empty() && self.others.is_empty()
    }

    /// Whether sessions of other shards are missing.
    pub fn awaits_others(&self) -> bool {
        !self.others.is_empty()
    }

    /// Whether contexts of an NF are missing, of this shard or of others.
    fn misses_some(&self, nf: Nf) -> bool {
        self.unrestored.blocks.contains_key(&nf) || (nf == Nf::Smf && !self.others.is_empty())
    }

    /// What an input waits for, if it does.
    fn portion(&self, nf: Nf, needs: Needs, has: impl Fn(ContextId) -> bool) -> Option<Portion> {
        match needs {
            Needs::Nothing => None,
            Needs::Context(id) => {
                let key = StoredKey { nf, id };
                (self.unrestored.has(key) && !has(id)).then_some(Portion::Context(key))
            }
            Needs::Block(block) => self.unrestored.has_block(nf, block).then_some(Portion::Block(nf, block)),
            Needs::All => Some(Portion::All(nf)),
        }
    }

    /// Whether an input waits for that portion.
    pub fn is_awaited(&self, portion: Portion) -> bool {
        self.waiting.contains_key(&portion)
    }

    /// Whether contexts of a block are not restored.
    pub fn has_block(&self, block: BlockId) -> bool {
        self.unrestored.blocks.values().any(|blocks| blocks.contains(&block))
    }

    fn note(&mut self, portion: Portion) {
        match portion {
            Portion::Context(key) => self.unrestored.note_context(key),
            Portion::Block(nf, block) => self.unrestored.note_block(nf, block),
            Portion::All(nf) => drop(self.unrestored.blocks.remove(&nf)),
            Portion::Slice(_) => {}
        }
    }

    /// The inputs that waited for that portion, unless some of it is missing at other shards.
    fn release(&mut self, portion: Portion) -> VecDeque<Queued> {
        if matches!(portion, Portion::All(nf) if self.misses_some(nf)) {
            return VecDeque::new();
        }
        let released = self.waiting.remove(&portion).unwrap_or_default();
        self.number -= released.len();
        released
    }
}

impl Shard {
    /// From now on contexts are restored while the shard serves. Before the first input, or for blocks that the shard gets.
    pub fn begin_restoring(&mut self, unrestored: &Unrestored) {
        for (nf, function) in &mut self.functions {
            let blocks = unrestored.blocks.get(nf).cloned().unwrap_or_default();
            function.begin_restoring(&blocks);
        }
        self.restoring.unrestored.clone_from(unrestored);
    }

    /// Before the first input: these shards of the process may restore sessions that have UE addresses of this shard's blocks, and await the
    /// restoration of this one's.
    pub(super) fn await_sessions_of(&mut self, others: &BTreeSet<u16>) {
        if self.hosts(Nf::Smf) {
            self.restoring.others.clone_from(others);
            self.restoring.is_awaited_by_others = true;
        }
    }

    /// Another shard has restored its sessions.
    pub(super) fn sessions_restored_at(&mut self, shard: u16) {
        self.restoring.others.remove(&shard);
        for input in self.restoring.release(Portion::All(Nf::Smf)).into_iter().rev() {
            self.queue.push_front(input);
        }
    }

    /// The other shards learn once that the sessions of this one are restored: after what they must know of UE addresses.
    pub(super) fn announce_sessions(&mut self, out: &mut Vec<ShardEffect>) {
        let Restoring { unrestored, is_awaited_by_others, has_resumed, .. } = &mut self.restoring;
        if *is_awaited_by_others && *has_resumed && !unrestored.blocks.contains_key(&Nf::Smf) {
            *is_awaited_by_others = false;
            out.push(ShardEffect::SessionsRestored);
        }
    }

    /// Whether inputs wait for that portion to be restored.
    pub fn is_portion_awaited(&self, portion: Portion) -> bool {
        self.restoring.is_awaited(portion)
    }

    /// What the last input waits for, if contexts must be restored first.
    pub const fn awaits(&self) -> Option<Portion> {
        self.restoring.held
    }

    /// Returns the input unless it waits for contexts that are not restored.
    pub(super) fn hold_if_unrestored(
        &mut self,
        now: Instant,
        queued: Queued,
        out: &mut Vec<ShardEffect>,
    ) -> Option<Queued> {
        let (nf, input, _) = &queued;
        if !self.restoring.misses_some(*nf) {
            return Some(queued);
        }
        let Some((_, function)) = self.functions.iter().find(|(hosted, _)| hosted == nf) else {
            return Some(queued);
        };
        let has = |id| function.key_of(id).is_some();
        let Some(portion) = self.restoring.portion(*nf, function.needs(input), has) else {
            return Some(queued);
        };
        let nf = *nf;
        if self.restoring.number >= MOST_WAITING && !self.restoring.unrestored.blocks.contains_key(&nf) {
            // Nothing that this shard could restore first.
            self.refuse_waiting(now, queued, out);
            return None;
        }
        let is_first = !self.restoring.is_awaited(portion);
        self.restoring.waiting.entry(portion).or_default().push_back(queued);
        self.restoring.held = Some(portion);
        self.restoring.number += 1;
        if is_first && !matches!(portion, Portion::All(_)) {
            out.push(ShardEffect::Restore(portion));
        }
        if self.restoring.number == MOST_WAITING {
            out.push(ShardEffect::Restore(Portion::All(nf)));
        }
        None
    }

    /// Too many requests wait for the sessions of other shards.
    fn refuse_waiting(&mut self, now: Instant, (nf, input, _): Queued, out: &mut Vec<ShardEffect>) {
        if let Input::Request { reply, .. } = input {
            reply.refuse(Problem::congestion(1), &mut self.outbox);
            self.route(now, nf, out);
        }
    }

    /// Returns the input unless it is an operator's, and waits until all contexts are restored.
    pub(super) fn hold_if_operator(&mut self, input: ShardInput) -> Option<ShardInput> {
        let is_held = !self.restoring.unrestored.is_empty()
            && matches!(
                input,
                ShardInput::Inspect { what: Inspect::Ues | Inspect::Sessions, .. }
                    | ShardInput::Operate { .. }
            );
        if is_held {
            self.restoring.operator.push(input);
            return None;
        }
        Some(input)
    }

    /// Contexts were restored: the NF resumes them, and the inputs that waited are delivered before others.
    pub(super) fn restored(&mut self, now: Instant, portion: Portion, out: &mut Vec<ShardEffect>) {
        let nf = portion.nf();
        let was_restoring = self.restoring.unrestored.blocks.contains_key(&nf);
        self.restoring.note(portion);
        let is_over = was_restoring && !self.restoring.unrestored.blocks.contains_key(&nf);
        if let Some((_, function)) = self.functions.iter_mut().find(|(hosted, _)| *hosted == nf) {
            match portion {
                Portion::Block(_, block) => function.note_restored(block),
                Portion::All(_) => function.begin_restoring(&BTreeSet::new()),
                Portion::Context(_) | Portion::Slice(_) => {}
            }
            let is_needed = matches!(portion, Portion::Context(_));
            function.resume_restored(now, is_needed, &mut self.outbox);
            if is_over {
                function.finish_restoring(now, &mut self.outbox);
            }
            self.route(now, nf, out);
        }
        let mut released = self.restoring.release(portion);
        if is_over {
            released.append(&mut self.restoring.release(Portion::All(nf)));
        }
        for input in released.into_iter().rev() {
            self.queue.push_front(input);
        }
        if self.restoring.unrestored.is_empty() {
            self.restoring.unrestored = Unrestored::default();
            for input in std::mem::take(&mut self.restoring.operator) {
                self.handle(now, input, out);
            }
        }
    }
}
