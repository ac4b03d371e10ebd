//! The owner map of the process for threads that are no shard, and the moves that operators have begun.

use pith_types::{BlockId, BlockMove, BlockOwner, InstanceId, OwnerMap, ShardId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The owner map, and pending moves.
#[derive(Debug)]
pub(super) struct Moves {
    instance: InstanceId,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    owners: Arc<OwnerMap>,
    /// The version that was given last.
    version: u64,
    /// The operators' requests, by version.
    pending: BTreeMap<u64, u64>,
}

impl Moves {
    pub(super) fn new((owners, instance): (Arc<OwnerMap>, InstanceId)) -> Arc<Self> {
        let version = owners.version();
        Arc::new(Self { instance, state: Mutex::new(State { owners, version, pending: BTreeMap::new() }) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The owner of each block, and the instance of this process.
    pub(super) fn owners(&self) -> (Arc<OwnerMap>, InstanceId) {
        (Arc::clone(&self.state().owners), self.instance)
    }

    /// A move for an operator's request: the shard that gets it, and the change. Each move has a version of its own.
    pub(super) fn begin(&self, block: BlockId, to: ShardId, exchange: u64) -> (u16, BlockMove) {
        let mut state = self.state();
        state.version += 1;
        let version = state.version;
        state.pending.insert(version, exchange);
        let to = BlockOwner { instance: self.instance, shard: to };
        (state.owners.owner(block).shard.0.into(), BlockMove { block, to, version })
    }

    /// A version for a move that no operator has requested.
    pub(super) fn next_version(&self) -> u64 {
        let mut state = self.state();
        state.version += 1;
        state.version
    }

    /// Whether a block leaves for another instance.
    pub(super) fn is_of_set(&self, change: BlockMove) -> bool {
        change.to.instance != self.instance
    }

    /// Versions up to that one are given.
    pub(super) fn note_version(&self, version: u64) {
        let mut state = self.state();
        state.version = state.version.max(version);
    }

    /// A move has ended; returns the operator's request.
    pub(super) fn end(&self, version: u64) -> Option<u64> {
        self.state().pending.remove(&version)
    }

    /// A block has another owner.
    pub(super) fn note(&self, change: BlockMove) {
        let mut state = self.state();
        if let Some(owners) = state.owners.moved(change) {
            state.owners = Arc::new(owners);
        }
    }
}
