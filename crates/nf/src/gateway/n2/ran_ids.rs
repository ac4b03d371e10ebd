//! The shard of the connection of each RAN-UE-NGAP-ID. A gNB's message with that id alone does not
//! identify a shard.

use pith_types::{RanUeNgapId, ShardId};
use std::collections::HashMap;

/// RAN-UE-NGAP-IDs recorded for an association: more than a gNB has connected UEs, and at most 300
/// kB for a gNB that sends invented ids. Further ids may be on any shard.
const MOST_IDS: usize = 16_384;

/// The RAN-UE-NGAP-IDs of one association. An entry is a hint: the shard may have closed the connection.
#[derive(Debug, Default)]
pub(super) struct RanIds {
    shards: HashMap<RanUeNgapId, ShardId>,
    /// Not all ids in use are recorded, because there were too many.
    is_incomplete: bool,
}

/// Where the connection of an id may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionShard {
    /// On that shard, if it exists.
    Shard(ShardId),
    /// On any shard, if it exists.
    AnyShard,
    /// On no shard.
    None,
}

impl RanIds {
    /// Where the connection of that id may be.
    pub fn find(&self, id: RanUeNgapId) -> ConnectionShard {
        match self.shards.get(&id) {
            Some(shard) => ConnectionShard::Shard(*shard),
            None if self.is_incomplete => ConnectionShard::AnyShard,
            None => ConnectionShard::None,
        }
    }

    /// A connection of that id was started on a shard.
    pub fn assign(&mut self, id: RanUeNgapId, shard: ShardId) {
        if self.shards.len() < MOST_IDS || self.shards.contains_key(&id) {
            self.shards.insert(id, shard);
        } else {
            self.is_incomplete = true;
        }
    }

    /// The connection of that id on that shard is over.
    pub fn release(&mut self, id: RanUeNgapId, shard: ShardId) {
        if self.shards.get(&id) == Some(&shard) {
            self.shards.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_beyond_the_bound_can_be_on_any_shard() {
        let mut ids = RanIds::default();
        for id in 0..=MOST_IDS as u32 {
            assert_eq!(ids.find(RanUeNgapId(id)), ConnectionShard::None);
            ids.assign(RanUeNgapId(id), ShardId(1));
        }
        assert_eq!(ids.find(RanUeNgapId(7)), ConnectionShard::Shard(ShardId(1)));
        assert_eq!(ids.find(RanUeNgapId(MOST_IDS as u32)), ConnectionShard::AnyShard);
        assert_eq!(ids.shards.len(), MOST_IDS);
    }

    #[test]
    fn only_the_shard_of_the_connection_frees_its_id() {
        let mut ids = RanIds::default();
        ids.assign(RanUeNgapId(7), ShardId(0));
        ids.assign(RanUeNgapId(7), ShardId(1));
        ids.release(RanUeNgapId(7), ShardId(0));
        assert_eq!(ids.find(RanUeNgapId(7)), ConnectionShard::Shard(ShardId(1)));
        ids.release(RanUeNgapId(7), ShardId(1));
        assert_eq!(ids.find(RanUeNgapId(7)), ConnectionShard::None);
    }
}
