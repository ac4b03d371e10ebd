//! The owner map: which shard of which instance has a block of ids.
//!
//! Gateways, shards, and the server and client of the SBI have a copy, and route by it. It is small, and has no entry for a UE.

use crate::{BlockId, InstanceId, ShardId};
use std::collections::BTreeMap;

/// The owner of a block: one shard of one instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct BlockOwner {
    /// The instance.
    pub instance: InstanceId,
    /// Its shard.
    pub shard: ShardId,
}

/// A change of the map: a block has another owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockMove {
    /// The block.
    pub block: BlockId,
    /// Its owner from now on.
    pub to: BlockOwner,
    /// The version of the map with this change. A version is given to one change only.
    pub version: u64,
}

/// The owner of each block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerMap {
    version: u64,
    /// By block number, [`BlockId::COUNT`] entries: the owner, and the version with which it became that.
    owners: Box<[(BlockOwner, u64)]>,
}

impl OwnerMap {
    /// The map of that version, in which `owner` gives the owner of each block.
    pub fn new(version: u64, owner: impl Fn(BlockId) -> BlockOwner) -> Self {
        Self { version, owners: BlockId::all().map(|block| (owner(block), version)).collect() }
    }

    /// The map of an instance that has all blocks. Each of its shards has as many as any other, or one more; they are
    /// contiguous. With the same number of shards the map is the same after a restart.
    pub fn of_instance(instance: InstanceId, shards: u8) -> Self {
        let shards = u32::from(shards.clamp(1, ShardId::LIMIT as u8));
        let owner = |block: BlockId| {
            let shard = u32::from(block.number()) * shards / u32::from(BlockId::COUNT);
            BlockOwner { instance, shard: ShardId(shard as u8) }
        };
        Self::new(1, owner)
    }

    /// The map of that version with these owners, in the order of blocks, each with the version with which it became that; `None` unless
    /// there is one for each block.
    pub fn of_owners(version: u64, owners: Vec<(BlockOwner, u64)>) -> Option<Self> {
        let is_complete = owners.len() == usize::from(BlockId::COUNT);
        is_complete.then(|| Self { version, owners: owners.into_boxed_slice() })
    }

    /// The owner of each block, in the order of blocks, with the version with which it became that.
    pub fn owners(&self) -> impl Iterator<Item = (BlockOwner, u64)> {
        self.owners.iter().copied()
    }

    /// The version. It rises with each change: an owner with an older version may no longer write (a fencing token).
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// The owner of a block.
    pub fn owner(&self, block: BlockId) -> BlockOwner {
        self.owners.get(usize::from(block.number())).map(|(owner, _)| *owner).unwrap_or_default()
    }

    /// The version with which the owner of a block became that.
    pub fn owned_since(&self, block: BlockId) -> u64 {
        self.owners.get(usize::from(block.number())).map_or(0, |(_, since)| *since)
    }

    /// The map with a change; `None` if it has that change, or a later one of the block.
    ///
    /// Changes of different blocks may come in any order: each copy of the map becomes the same.
    pub fn moved(&self, BlockMove { block, to, version }: BlockMove) -> Option<Self> {
        if version <= self.owned_since(block) {
            return None;
        }
        let mut owners = self.owners.clone();
        if let Some(owner) = owners.get_mut(usize::from(block.number())) {
            *owner = (to, version);
        }
        Some(Self { version: self.version.max(version), owners })
    }

    /// The shard that has a block, if the block is that instance's.
    pub fn shard_of(&self, instance: InstanceId, block: BlockId) -> Option<ShardId> {
        let owner = self.owner(block);
        (owner.instance == instance).then_some(owner.shard)
    }

    /// The changes that lead from an earlier map to this one.
    pub fn changes_since(&self, earlier: &Self) -> Vec<BlockMove> {
        let is_change = |block: &BlockId| self.owned_since(*block) > earlier.owned_since(*block);
        let change = |block| BlockMove { block, to: self.owner(block), version: self.owned_since(block) };
        BlockId::all().filter(is_change).map(change).collect()
    }

    /// Number of blocks of each instance that has any.
    pub fn blocks_of_instances(&self) -> BTreeMap<InstanceId, usize> {
        let mut counts = BTreeMap::new();
        for (owner, _) in self.owners() {
            *counts.entry(owner.instance).or_default() += 1;
        }
        counts
    }

    /// The map in which the blocks of all other instances are divided among these: instances that live, with their numbers of shards. Each
    /// block goes to the shard that has the fewest. `None` if they have all blocks already.
    pub fn taken_over_by(&self, living: &BTreeMap<InstanceId, u8>) -> Option<Self> {
        let orphans = BlockId::all().filter(|block| !living.contains_key(&self.owner(*block).instance));
        self.divided(orphans.collect(), living)
    }

    /// The map for an instance with that number of shards: blocks of shards that it does not have, and as many of the others as
    /// necessary, are divided among its shards. The first block of each shard stays. `None` if nothing changes.
    pub fn for_shards(&self, instance: InstanceId, shards: u8) -> Option<Self> {
        let of_shard = |shard| self.blocks_of(BlockOwner { instance, shard: ShardId(shard) });
        let own = BlockId::all().filter(|block| self.owner(*block).instance == instance).count();
        let has_others = (shards..ShardId::LIMIT as u8).any(|shard| of_shard(shard).next().is_some());
        let lacks_any =
            own >= usize::from(shards) && (0..shards).any(|shard| of_shard(shard).next().is_none());
        if !has_others && !lacks_any {
            return None;
        }
        let fair = own.div_ceil(usize::from(shards.max(1))).max(1);
        // Of a shard with more than its part, the last blocks.
        let surplus = (0..ShardId::LIMIT as u8)
            .flat_map(|shard| of_shard(shard).skip(if shard < shards { fair } else { 0 }));
        self.divided(surplus.collect(), &BTreeMap::from([(instance, shards)]))
    }

    fn divided(&self, blocks: Vec<BlockId>, among: &BTreeMap<InstanceId, u8>) -> Option<Self> {
        if blocks.is_empty() || among.is_empty() {
            return None;
        }
        let mut counts: BTreeMap<BlockOwner, usize> = BTreeMap::new();
        for (instance, shards) in among {
            for shard in 0..(*shards).max(1) {
                let owner = BlockOwner { instance: *instance, shard: ShardId(shard) };
                let kept = self.blocks_of(owner).filter(|block| !blocks.contains(block)).count();
                counts.insert(owner, kept);
            }
        }
        let of_instance = |counts: &BTreeMap<BlockOwner, usize>, instance| {
            counts
                .iter()
                .filter(|(owner, _)| owner.instance == instance)
                .map(|(_, count)| *count)
                .sum::<usize>()
        };
        let version = self.version + 1;
        let mut map = Self { version, owners: self.owners.clone() };
        for block in blocks {
            // Instances have equally many, and so have their shards.
            let rank =
                |owner: &BlockOwner| (of_instance(&counts, owner.instance), counts.get(owner).copied());
            let Some(to) = counts.keys().copied().min_by_key(rank) else { break };
            *counts.entry(to).or_default() += 1;
            if let Some(owner) = map.owners.get_mut(usize::from(block.number())) {
                *owner = (to, version);
            }
        }
        Some(map)
    }

    /// What the instances that live are to give, so that each has its part of the blocks: giver, receiver, number. None is given by an
    /// instance that would then have less than its part.
    pub fn surplus(&self, living: &BTreeMap<InstanceId, u8>) -> Vec<(InstanceId, InstanceId, usize)> {
        let counts = self.blocks_of_instances();
        let count = |instance: &InstanceId| counts.get(instance).copied().unwrap_or(0);
        let fair = usize::from(BlockId::COUNT) / living.len().max(1);
        let mut givers: Vec<_> = living.keys().map(|it| (*it, count(it).saturating_sub(fair))).collect();
        let mut gifts = Vec::new();
        for receiver in living.keys() {
            let mut lacks = fair.saturating_sub(count(receiver));
            for (giver, has) in &mut givers {
                let number = lacks.min(*has);
                if number > 0 {
                    gifts.push((*giver, *receiver, number));
                    (lacks, *has) = (lacks - number, *has - number);
                }
            }
        }
        gifts
    }

    /// The blocks of an owner, in ascending order.
    pub fn blocks_of(&self, owner: BlockOwner) -> impl Iterator<Item = BlockId> {
        BlockId::all().filter(move |block| self.owner(*block) == owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_has_one_owner_and_shards_have_equally_many() {
        for shards in 1..=ShardId::LIMIT as u8 {
            let map = OwnerMap::of_instance(InstanceId(3), shards);
            let blocks = |shard| {
                let owner = BlockOwner { instance: InstanceId(3), shard: ShardId(shard) };
                map.blocks_of(owner).collect::<Vec<_>>()
            };
            let all: Vec<_> = (0..shards).flat_map(blocks).collect();
            assert!(all.iter().copied().eq(BlockId::all()), "{shards} shards: each block once, contiguous");
            let sizes: Vec<_> = (0..shards).map(|shard| blocks(shard).len()).collect();
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{sizes:?}");
            assert_eq!(map, OwnerMap::of_instance(InstanceId(3), shards), "the same after a restart");
        }
    }

    #[test]
    fn changes_of_several_blocks_yield_one_map_in_any_order() {
        let map = OwnerMap::of_instance(InstanceId(0), 2);
        let to = |shard| BlockOwner { instance: InstanceId(0), shard: ShardId(shard) };
        let block = |number| BlockId::new(number).unwrap();
        let there = BlockMove { block: block(7), to: to(1), version: 2 };
        let other = BlockMove { block: block(9), to: to(1), version: 3 };
        let back = BlockMove { block: block(7), to: to(0), version: 4 };
        let one = map.moved(there).unwrap().moved(other).unwrap().moved(back).unwrap();
        let late = map.moved(back).unwrap().moved(other).unwrap();
        assert_eq!(late.moved(there), None, "an older change of the block is no change");
        assert_eq!(one, late);
        assert_eq!((one.version(), one.owned_since(block(7)), one.owned_since(block(8))), (4, 4, 1));
        assert_eq!((one.owner(block(7)), one.owner(block(9))), (to(0), to(1)));
    }

    #[test]
    fn the_blocks_of_a_dead_instance_are_divided_evenly_among_the_living() {
        let first = OwnerMap::of_instance(InstanceId(1), 2);
        assert_eq!(first.taken_over_by(&BTreeMap::from([(InstanceId(1), 2)])), None, "it has them");
        let living = BTreeMap::from([(InstanceId(2), 2), (InstanceId(3), 1)]);
        let map = first.taken_over_by(&living).unwrap();
        assert_eq!(map.version(), 2);
        assert_eq!(map.blocks_of_instances(), BTreeMap::from([(InstanceId(2), 512), (InstanceId(3), 512)]));
        let shard = BlockOwner { instance: InstanceId(2), shard: ShardId(1) };
        assert_eq!(map.blocks_of(shard).count(), 256);
        assert_eq!(map.changes_since(&first).len(), 1024);
        // Then one of these dies.
        let last = map.taken_over_by(&BTreeMap::from([(InstanceId(3), 1)])).unwrap();
        assert_eq!(last.changes_since(&map).len(), 512, "those of the other stay");
        assert!(last.changes_since(&map).iter().all(|change| change.version == 3));
    }

    #[test]
    fn a_returning_instance_gets_its_part() {
        let map = OwnerMap::of_instance(InstanceId(2), 2);
        let living = BTreeMap::from([(InstanceId(1), 2), (InstanceId(2), 2)]);
        assert_eq!(map.surplus(&living), [(InstanceId(2), InstanceId(1), 512)]);
        let of_three = BTreeMap::from([(InstanceId(1), 2), (InstanceId(2), 2), (InstanceId(3), 1)]);
        let gifts = map.surplus(&of_three);
        assert_eq!(gifts, [(InstanceId(2), InstanceId(1), 341), (InstanceId(2), InstanceId(3), 341)]);
        assert_eq!(map.surplus(&BTreeMap::from([(InstanceId(2), 2)])), []);
    }

    #[test]
    fn another_number_of_shards_leaves_no_block_without_an_owner() {
        let instance = InstanceId(0);
        let of =
            |map: &OwnerMap, shard| map.blocks_of(BlockOwner { instance, shard: ShardId(shard) }).count();
        let four = OwnerMap::of_instance(instance, 4);
        assert_eq!(four.for_shards(instance, 4), None);
        let two = four.for_shards(instance, 2).unwrap();
        assert_eq!((of(&two, 0), of(&two, 1)), (512, 512));
        assert_eq!(two.owner(BlockId::new(0).unwrap()), four.owner(BlockId::new(0).unwrap()));
        let three = two.for_shards(instance, 3).unwrap();
        assert_eq!([of(&three, 0), of(&three, 1), of(&three, 2)], [342, 342, 340]);
    }

    #[test]
    fn a_block_of_another_instance_has_no_shard_here() {
        let map = OwnerMap::of_instance(InstanceId(3), 2);
        let last = BlockId::new(BlockId::COUNT - 1).unwrap();
        assert_eq!(map.shard_of(InstanceId(3), last), Some(ShardId(1)));
        assert_eq!(map.shard_of(InstanceId(4), last), None);
    }
}
