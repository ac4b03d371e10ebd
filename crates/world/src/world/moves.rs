//! Blocks of ids pass from shard to shard while UEs are served.

use super::World;
use pith_nf::fabric::{MoveError, ShardInput};
use pith_nf::kit::Input;
use pith_types::{BlockId, BlockMove, BlockOwner, ShardId};

/// Of the moves, this many are of a block with contexts, per mille.
const OF_CONTEXTS: u32 = 900;

impl World {
    /// A block of a process passes to another shard: most times one that has contexts.
    pub(super) fn move_block(&mut self, process: usize) {
        if !self.processes[process].is_running() || self.plan.shards < 2 {
            return;
        }
        let of_contexts = self.blocks_with_contexts(process);
        let block = if !of_contexts.is_empty() && self.dice.chance(OF_CONTEXTS) {
            of_contexts[self.dice.index(of_contexts.len())]
        } else {
            BlockId::new(self.dice.below(BlockId::COUNT.into()) as u16).expect("below the number of blocks")
        };
        let to = self.dice.index(self.plan.shards);
        self.begin_move(process, block, to);
    }

    /// Asks the owner of a block to pass it.
    pub(super) fn begin_move(&mut self, process: usize, block: BlockId, to: usize) {
        let instance = self.plan.instance(process);
        let target = &mut self.processes[process];
        target.version += 1;
        let to = BlockOwner { instance, shard: ShardId(to as u8) };
        let change = BlockMove { block, to, version: target.version };
        let owner = target.owners.owner(block).shard;
        self.send_to_shard(process, owner.0.into(), ShardInput::Move(change));
    }

    /// All blocks of a process that have contexts pass to the next shard. Returns whether there are any.
    pub(super) fn move_all(&mut self, process: usize) -> bool {
        let blocks = self.blocks_with_contexts(process);
        for block in &blocks {
            let owner = usize::from(self.processes[process].owners.owner(*block).shard.0);
            self.begin_move(process, *block, (owner + 1) % self.plan.shards);
        }
        !blocks.is_empty()
    }

    /// Blocks with contexts, except those that stay: the first one of each shard.
    fn blocks_with_contexts(&self, process: usize) -> Vec<BlockId> {
        let initial = &self.processes[process].owners_at_start;
        let is_first = |block: &BlockId| initial.blocks_of(initial.owner(*block)).next() == Some(*block);
        let has_contexts = |block: &BlockId| self.contexts_in(process, *block) > 0;
        BlockId::all().filter(has_contexts).filter(|block| !is_first(block)).collect()
    }

    fn contexts_in(&self, process: usize, block: BlockId) -> usize {
        self.processes[process].shard_hosts.iter().map(|host| host.shard.contexts_in(block)).sum()
    }

    pub(super) fn pass_on(&mut self, (process, from): (usize, usize), to: usize, input: ShardInput) {
        if let ShardInput::ForContext { nf, input, .. } = &input
            && let Input::Reply { tag, .. } = &**input
        {
            self.journal().open_calls.remove(&((process, from, *nf), *tag));
        }
        self.send_to_shard(process, to, input);
    }

    pub(super) fn owners_changed(&mut self, (process, shard): (usize, usize), change: BlockMove) {
        let target = &mut self.processes[process];
        if let Some(owners) = target.owners.moved(change) {
            target.owners = std::sync::Arc::new(owners);
        }
        self.note_moved(process, change);
        self.send_to_others((process, shard), || ShardInput::OwnersChanged(change));
    }

    pub(super) fn move_ended(&mut self, process: usize, change: BlockMove, result: Result<(), MoveError>) {
        self.note_release(process, change, result.is_ok());
        let BlockMove { block, to, version } = change;
        self.moved += u32::from(result.is_ok());
        let outcome = result.map_or_else(|error| error.to_string(), |()| "moved".into());
        self.record("world", "world", format!("block {block} to {}, version {version}: {outcome}", name(to)));
    }
}

/// A shard, with its instance in a set.
fn name(owner: BlockOwner) -> String {
    match owner.instance.0 {
        0 => format!("shard {}", owner.shard.0),
        instance => format!("shard {} of instance {instance}", owner.shard.0),
    }
}
