//! The contexts of an NF by their external names.

use super::document::UnpackError;
use super::{Identity, Key, Rng, block_in_reference, shrink};
use foldhash::fast::FixedState;
use pith_sbi::Uri;
use pith_types::{BlockId, ContextId, Pei, Supi};
use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasher;

/// The key of a context that is in no table yet.
pub const UNPLACED: Key = Key::from_u64(u64::MAX);

/// The block of a subscriber: its owner serves what NFs of other processes create for the subscriber (`fabric/owner.rs`).
pub fn block_of_subscriber(supi: &Supi) -> Option<BlockId> {
    block_of_identity(supi.as_str())
}

/// As [`block_of_subscriber`], of a UE that is known by its equipment.
pub fn block_of_equipment(pei: &Pei) -> Option<BlockId> {
    block_of_identity(pei.as_str())
}

fn block_of_identity(identity: &str) -> Option<BlockId> {
    let hash = FixedState::default().hash_one(identity);
    BlockId::new((hash % u64::from(BlockId::COUNT)) as u16)
}

/// Allocates [`ContextId`]s, and finds the context of each in the NF's table.
///
/// The number of an id is random: a reference to a context that a former run of the process had names no context of this
/// run, and a SEID that is derived from it cannot be guessed. New contexts fill a block up to the next multiple of a run, then the emptiest
/// block of the shard, so that these are about equally full. Contexts count while they exist: those that end soon use up no run.
#[derive(Debug)]
pub struct ContextIds {
    /// In ascending order.
    blocks: Vec<BlockId>,
    /// The index in `blocks` at which the search for the emptiest block begins: among equals their turn decides.
    next: usize,
    /// Contexts of a run.
    run: u32,
    /// The block of the run in progress, and the number of contexts that ends it.
    current: Option<(BlockId, u32)>,
    /// Number of contexts of each block.
    live: Vec<u32>,
    /// No usable block is emptier.
    least: Fill,
    /// Blocks with contexts of a former run that are not restored yet: any of their ids may be in use.
    unrestored: BTreeSet<BlockId>,
    /// The ids are random and of this shard, so a fast hash is safe.
    keys: HashMap<ContextId, Key, FixedState>,
    rng: Rng,
}

/// How full a block is: its runs, and whether the last one is complete. Of blocks with equally many runs, the one with an incomplete run is
/// filled up first, because its UEs lack companions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Fill {
    runs: u32,
    is_complete: bool,
}

impl ContextIds {
    /// No contexts, for the shard of that identity.
    pub fn new(identity: &Identity, rng: Rng) -> Self {
        Self {
            blocks: identity.blocks().collect(),
            // The first block, which can't pass to another shard, comes last.
            next: 1,
            run: 1,
            current: None,
            live: vec![0; BlockId::COUNT.into()],
            least: Fill::default(),
            unrestored: BTreeSet::new(),
            keys: HashMap::default(),
            rng,
        }
    }

    /// Fills a block up to the next multiple of `run` contexts before it takes another block.
    #[must_use]
    pub fn in_runs_of(self, run: u32) -> Self {
        Self { run: run.max(1), ..self }
    }

    /// The shard has these blocks from now on.
    pub fn change_blocks(&mut self, identity: &Identity) {
        self.blocks = identity.blocks().collect();
        self.least = Fill::default();
    }

    /// The contexts of these blocks are still to be restored, those of other blocks are restored.
    pub fn begin_restoring(&mut self, blocks: &BTreeSet<BlockId>) {
        self.unrestored.clone_from(blocks);
        self.least = Fill::default();
    }

    /// All contexts of a block are restored.
    pub fn note_restored(&mut self, block: BlockId) {
        self.unrestored.remove(&block);
        self.least = Fill::default();
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
        let block = if self.is_usable(block) { block } else { self.next_block() };
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
                self.count(id.block, |live| live.saturating_add(1));
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
        if self.keys.remove(&id).is_some() {
            self.count(id.block, |live| live.saturating_sub(1));
        }
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

    /// Whether new contexts may be in that block.
    fn is_usable(&self, block: BlockId) -> bool {
        self.blocks.binary_search(&block).is_ok() && !self.is_unrestored(block)
    }

    fn next_block(&mut self) -> BlockId {
        let current =
            self.current.filter(|(block, end)| self.is_usable(*block) && self.live_in(*block) < *end);
        let (block, end) = current.unwrap_or_else(|| self.begin_run());
        self.current = (self.live_in(block) + 1 < end).then_some((block, end));
        block
    }

    /// The emptiest block, and the number of contexts that ends its run.
    fn begin_run(&mut self) -> (BlockId, u32) {
        let blocks = self.blocks.len();
        let mut emptiest: Option<(Fill, usize)> = None;
        for at in (0..blocks).map(|offset| (self.next + offset) % blocks) {
            if self.is_unrestored(self.blocks[at]) {
                continue;
            }
            let fill = self.fill(self.blocks[at]);
            if emptiest.is_none_or(|(least, _)| fill < least) {
                emptiest = Some((fill, at));
            }
            if fill <= self.least {
                break;
            }
        }
        if let Some((fill, _)) = emptiest {
            self.least = fill;
        }
        let at = emptiest.map_or(self.next % blocks.max(1), |(_, at)| at);
        self.next = at + 1;
        // A shard without blocks gets no new UEs; its contexts would have a block that another shard owns.
        let block = self.blocks.get(at).copied().or(BlockId::new(0)).expect("0 is the number of a block");
        (block, (self.live_in(block) / self.run + 1).saturating_mul(self.run))
    }

    fn live_in(&self, block: BlockId) -> u32 {
        self.live[usize::from(block.number())]
    }

    fn fill(&self, block: BlockId) -> Fill {
        let live = self.live_in(block);
        Fill { runs: live / self.run, is_complete: live.is_multiple_of(self.run) }
    }

    fn count(&mut self, block: BlockId, change: impl FnOnce(u32) -> u32) {
        let live = &mut self.live[usize::from(block.number())];
        *live = change(*live);
        self.least = self.least.min(self.fill(block));
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

    /// Contexts that end without a registration take no companions from the UEs of a block (TS 33.501 6.12.3).
    #[test]
    fn half_open_contexts_use_up_no_run() {
        let mut ids = ids(1).in_runs_of(64);
        let half_open = Key::from_u64(1000);
        let ues = |ids: &mut ContextIds, number| -> BTreeSet<BlockId> {
            (0..number).map(|ue| ids.allocate(Key::from_u64(ue)).block).collect()
        };
        let mut blocks = BTreeSet::new();
        for ue in 0..64 {
            for _ in 0..63 {
                let id = ids.allocate(half_open);
                ids.free(id);
            }
            blocks.insert(ids.allocate(Key::from_u64(ue)).block);
        }
        assert_eq!(blocks.len(), 1, "one after the other");
        let first = ues(&mut ids, 1);
        let flood: Vec<_> = (0..1000).map(|_| ids.allocate(half_open)).collect();
        let amid_flood = ues(&mut ids, 1);
        assert_ne!(first, amid_flood);
        flood.into_iter().for_each(|id| ids.free(id));
        let (rest_of_one, rest_of_other) = (ues(&mut ids, 63), ues(&mut ids, 63));
        assert_eq!((rest_of_one.len(), rest_of_other.len()), (1, 1), "the blocks of both UEs fill up");
        assert_eq!(&rest_of_one | &rest_of_other, &first | &amid_flood);
    }

    #[test]
    fn the_emptiest_block_is_next() {
        for run in [1, 64] {
            let mut ids = ids(1).in_runs_of(run);
            let blocks: Vec<_> = testing::identity_of_shard(1, 4).blocks().collect();
            let next = |ids: &mut ContextIds| {
                let run: BTreeSet<_> = (0..run).map(|_| ids.allocate(Key::from_u64(1)).block).collect();
                assert_eq!(run.len(), 1, "{run:?}");
                run.into_iter().next().unwrap()
            };
            // A document's context counts as well: its block has a run more than the others, when the others have one.
            for number in 0..run {
                assert!(ids.claim(ContextId { block: blocks[2], number }, Key::from_u64(0)));
            }
            assert!(
                ids.claim(ContextId { block: blocks[2], number: 0 }, Key::from_u64(0)),
                "is counted once"
            );
            let order: Vec<_> = (1..blocks.len()).map(|_| next(&mut ids)).collect();
            let expected = [&blocks[1..2], &blocks[3..], &blocks[..1]].concat();
            assert_eq!(order, expected);
            assert_eq!(next(&mut ids), blocks[1], "all have one");
            // A block whose contexts have ended is emptier again.
            let ended: Vec<_> = ids.of_block(blocks[7]).map(|(id, _)| id).collect();
            for id in &ended {
                ids.free(*id);
                ids.free(*id);
            }
            assert_eq!((ended.len() as u32, next(&mut ids)), (run, blocks[7]));
            assert_eq!(next(&mut ids), blocks[8]);
        }
    }

    #[test]
    fn blocks_of_other_shards_and_unrestored_blocks_get_no_runs() {
        let mut ids = ids(1).in_runs_of(64);
        let (one, other) = (testing::identity_of_shard(1, 4), testing::identity_of_shard(2, 4));
        let is_of = |identity: &Identity, block| identity.blocks().any(|own| own == block);
        let block = ids.allocate(Key::from_u64(0)).block;
        ids.change_blocks(&other);
        let elsewhere = ids.allocate(Key::from_u64(1)).block;
        assert!(is_of(&other, elsewhere) && !is_of(&one, elsewhere));
        // The context is still counted when the block returns: 63 more fill it up.
        ids.change_blocks(&one);
        assert!((0..63).all(|number| ids.allocate(Key::from_u64(number)).block == block));
        assert_ne!(ids.allocate(Key::from_u64(64)).block, block);
        ids.begin_restoring(&one.blocks().collect());
        assert!(is_of(&one, ids.allocate(Key::from_u64(65)).block), "in one of its own, if none is usable");
        ids.note_restored(block);
        assert!((0..100).all(|number| ids.allocate(Key::from_u64(number)).block == block));
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
