//! The owner map: which shard of which instance has a block of ids.
//!
//! Gateways, shards, and the server and client of the SBI have a copy, and route by it. It is small, and has no entry for a UE.

use crate::{BlockId, InstanceId, ShardId};

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
    fn a_block_of_another_instance_has_no_shard_here() {
        let map = OwnerMap::of_instance(InstanceId(3), 2);
        let last = BlockId::new(BlockId::COUNT - 1).unwrap();
        assert_eq!(map.shard_of(InstanceId(3), last), Some(ShardId(1)));
        assert_eq!(map.shard_of(InstanceId(4), last), None);
    }
}
