//! The contexts of an NF by their external names.

use super::document::UnpackError;
use super::{Identity, Key, Rng, block_in_reference, shrink};
use foldhash::fast::FixedState;
use pith_sbi::Uri;
use pith_types::{BlockId, ContextId};
use std::collections::{BTreeSet, HashMap};

/// The key of a context that is in no table yet.
pub const UNPLACED: Key = Key::from_u64(u64::MAX);

/// Allocates [`ContextId`]s, and finds the context of each in the NF's table.
///
/// The number of an id is random: a reference to a context that a former run of the process had names no context of this
/// run, and a SEID that is derived from it cannot be guessed. Ids come from all blocks of the shard in turn, a run of them from each, so that
/// these are about equally full.
#[derive(Debug)]
pub struct ContextIds {
    /// In ascending order.
    blocks: Vec<BlockId>,
    next: usize,
    /// Ids of a run.
    run: u32,
    /// Ids of the run in progress that are left.
    left: u32,
    /// Blocks with contexts of a former run that are not restored yet: any of their ids may be in use.
    unrestored: BTreeSet<BlockId>,
    /// The ids are random and of this shard, so a fast hash is safe.
    keys: HashMap<ContextId, Key, FixedState>,
    rng: Rng,
}

impl ContextIds {
    /// No contexts, for the shard of that identity.
    pub fn new(identity: &Identity, rng: Rng) -> Self {
        let (blocks, unrestored) = (identity.blocks().collect(), BTreeSet::new());
        // The first block, which can't pass to another shard, comes last.
        Self { blocks, next: 1, run: 1, left: 1, unrestored, keys: HashMap::default(), rng }
    }

    /// Allocates `run` ids of one block before it takes the next block.
    #[must_use]
    pub fn in_runs_of(self, run: u32) -> Self {
        Self { run: run.max(1), left: run.max(1), ..self }
    }

    /// The shard has these blocks from now on.
    pub fn change_blocks(&mut self, identity: &Identity) {
        self.blocks = identity.blocks().collect();
    }

    /// The contexts of these blocks are still to be restored, those of other blocks are restored.
    pub fn begin_restoring(&mut self, blocks: &BTreeSet<BlockId>) {
        self.unrestored.clone_from(blocks);
    }

    /// All contexts of a block are restored.
    pub fn note_restored(&mut self, block: BlockId) {
        self.unrestored.remove(&block);
    }

    /// Whether contexts of a block are still to be restored.
    pub fn is_unrestored(&self, block: BlockId) -> bool {
        self.unrestored.contains(&block)
    }

    /// Whether contexts are still to be restored.
    pub fn is_restoring(&self) -> bool {
        !self.unrestored.is_empty()
    }

    /// The contexts of a block.
    pub fn of_block(&self, block: BlockId) -> impl Iterator<Item = (ContextId, Key)> {
        self.keys.iter().filter(move |(id, _)| id.block == block).map(|(id, key)| (*id, *key))
    }

    /// Allocates an unused id for the context at `key`.
    pub fn allocate(&mut self, key: Key) -> ContextId {
        let block = self.next_block();
        self.allocate_in(block, key)
    }

    /// As [`ContextIds::allocate`], in the block of the context which a callback URI of another NF names, if this shard has it: what a UE has at
    /// all NFs of a process passes to another owner together.
    pub fn allocate_beside(&mut self, callback: &Uri, key: Key) -> ContextId {
        match block_in_reference(callback.id()) {
            Some(block) => self.allocate_in(block, key),
            None => self.allocate(key),
        }
    }

    /// As [`ContextIds::allocate`], in that block if the shard has it and its contexts are restored.
    pub fn allocate_in(&mut self, block: BlockId, key: Key) -> ContextId {
        let is_usable = self.blocks.binary_search(&block).is_ok() && !self.is_unrestored(block);
        let block = if is_usable { block } else { self.next_block() };
        loop {
            let id = ContextId { block, number: self.rng.next_u32() };
            if self.claim(id, key) {
                return id;
            }
        }
    }

    /// Assigns an id to the context at `key`: one that a document has. `false` if another context has it.
    pub fn claim(&mut self, id: ContextId, key: Key) -> bool {
        match self.keys.entry(id) {
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(key);
                true
            }
            std::collections::hash_map::Entry::Occupied(place) => *place.get() == key,
        }
    }

    /// Whether a document's context may return under its id: the shard owns the block, and no context has the id.
    pub fn check_free(&self, id: ContextId) -> Result<(), UnpackError> {
        match self.blocks.binary_search(&id.block) {
            Err(_) => Err(UnpackError::OtherOwner(id.block)),
            Ok(_) if self.keys.contains_key(&id) => Err(UnpackError::IdInUse(id)),
            Ok(_) => Ok(()),
        }
    }

    /// The context with that id.
    pub fn find(&self, id: ContextId) -> Option<Key> {
        self.keys.get(&id).copied()
    }

    /// Frees the id of a context that is over.
    pub fn free(&mut self, id: ContextId) {
        self.keys.remove(&id);
        shrink(&mut self.keys);
    }

    /// Number of ids in use.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether no id is in use.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    fn next_block(&mut self) -> BlockId {
        let mut block = None;
        for _ in 0..=self.unrestored.len() {
            block = self.blocks.get(self.next % self.blocks.len().max(1)).copied();
            let is_usable = block.is_none_or(|block| !self.is_unrestored(block));
            self.left = self.left.saturating_sub(1);
            if !is_usable || self.left == 0 {
                self.next = self.next.wrapping_add(1);
                self.left = self.run;
            }
            if is_usable {
                break;
            }
        }
        // A shard without blocks gets no new UEs; its contexts would have a block that another shard owns.
        block.or(BlockId::new(0)).expect("0 is the number of a block")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use std::collections::BTreeMap;

    fn ids(seed: u64) -> ContextIds {
        ContextIds::new(&testing::identity_of_shard(1, 4), Rng::from_number(seed))
    }

    #[test]
    fn ids_fill_the_blocks_of_the_shard_evenly() {
        let mut ids = ids(1);
        let mut of_block: BTreeMap<BlockId, u32> = BTreeMap::new();
        for number in 0..1024 {
            let id = ids.allocate(Key::from_u64(number));
            assert_eq!(ids.find(id), Some(Key::from_u64(number)));
            *of_block.entry(id.block).or_default() += 1;
        }
        let expected: Vec<_> = testing::identity_of_shard(1, 4).blocks().collect();
        assert!(of_block.keys().eq(&expected), "{of_block:?}");
        assert!(of_block.values().all(|contexts| *contexts == 4), "{of_block:?}");
    }

    /// UEs of a block are not told from each other by their 5G-TMSIs (TS 33.501 6.12.3).
    #[test]
    fn a_run_of_ids_is_of_one_block() {
        let mut ids = ids(1).in_runs_of(64);
        let blocks: Vec<_> = (0..192).map(|number| ids.allocate(Key::from_u64(number)).block).collect();
        let runs: Vec<_> = blocks.chunks(64).map(|run| run[0]).collect();
        assert!(blocks.chunks(64).zip(&runs).all(|(run, block)| run.iter().all(|it| it == block)));
        assert!(runs[0] != runs[1] && runs[1] != runs[2] && runs[0] != runs[2]);
        // The block of a run passes to another shard.
        ids.begin_restoring(&[blocks[191]].into());
        assert_ne!(ids.allocate(Key::from_u64(192)).block, blocks[191]);
    }

    #[test]
    fn what_a_ue_has_at_other_nfs_is_in_its_block() {
        let mut ids = ids(1);
        let key = Key::from_u64(1);
        let root = testing::root("amf");
        let own: Vec<_> = testing::identity_of_shard(1, 4).blocks().collect();
        let callback = |block| {
            let id = ContextId { block, number: 7 };
            let reference = crate::kit::References::new(&crate::kit::ReferenceKey::new([1; 32])).of_id(id);
            Uri::new(&root, &format!("/namf-callback/v1/sm-context-status/{reference}"))
        };
        assert_eq!(ids.allocate_beside(&callback(own[5]), key).block, own[5]);
        let foreign = BlockId::all().find(|block| !own.contains(block)).unwrap();
        assert!(own.contains(&ids.allocate_beside(&callback(foreign), key).block));
        assert!(own.contains(&ids.allocate_beside(&Uri::new(&root, "/callback"), key).block));
    }

    #[test]
    fn new_contexts_get_ids_of_blocks_whose_contexts_are_restored() {
        let mut ids = ids(1);
        let blocks: Vec<_> = testing::identity_of_shard(1, 4).blocks().collect();
        let (restored, unrestored) = blocks.split_at(2);
        ids.begin_restoring(&unrestored.iter().copied().collect());
        for number in 0..100 {
            assert!(restored.contains(&ids.allocate(Key::from_u64(number)).block));
        }
        let allocate = |ids: &mut ContextIds| ids.allocate_in(unrestored[0], Key::from_u64(100)).block;
        assert!(restored.contains(&allocate(&mut ids)));
        ids.note_restored(unrestored[0]);
        assert_eq!(allocate(&mut ids), unrestored[0]);
    }

    #[test]
    fn an_id_of_a_former_run_names_no_context() {
        let (mut former, mut now) = (ids(1), ids(2));
        let old: Vec<_> = (0..1000).map(|number| former.allocate(Key::from_u64(number))).collect();
        for number in 0..1000 {
            now.allocate(Key::from_u64(number));
        }
        assert!(old.iter().all(|id| now.find(*id).is_none()));
    }

    #[test]
    fn a_claimed_id_is_not_given_to_another_context() {
        let mut ids = ids(1);
        let (one, other) = (Key::from_u64(1), Key::from_u64(2));
        let id = ids.allocate(one);
        assert!(ids.claim(id, one) && !ids.claim(id, other));
        assert_eq!(ids.find(id), Some(one));
        ids.free(id);
        assert!(ids.is_empty() && ids.claim(id, other));
        assert_eq!((ids.find(id), ids.len()), (Some(other), 1));
    }

    #[test]
    fn a_document_returns_only_under_a_free_id_of_this_shard() {
        let mut ids = ids(1);
        let id = ids.allocate(Key::from_u64(1));
        assert_eq!(ids.check_free(id), Err(UnpackError::IdInUse(id)));
        ids.free(id);
        assert_eq!(ids.check_free(id), Ok(()));
        for block in [0, BlockId::COUNT - 1].into_iter().filter_map(BlockId::new) {
            assert_eq!(ids.check_free(ContextId { block, ..id }), Err(UnpackError::OtherOwner(block)));
        }
    }
}
