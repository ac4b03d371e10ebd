//! The shard of the connection of each RAN-UE-NGAP-ID. A gNB's message with that id alone does not
//! identify a shard.

use crate::kit::{ResetUe, shrink};
use pith_types::{AmfUeNgapId, RanUeNgapId, ShardId};
use std::collections::{BTreeMap, HashMap, HashSet};

/// RAN-UE-NGAP-IDs recorded for an association: more than a gNB has connected UEs, and at most 600
/// kB for a gNB that sends invented ids. Further ids may be on any shard.
const MAX_IDS: usize = 16_384;

/// The RAN-UE-NGAP-IDs of one association. An entry is a hint: the shard may have closed the connection.
#[derive(Debug, Default)]
pub(super) struct RanIds {
    entries: HashMap<RanUeNgapId, Entry>,
    /// Not all ids in use are recorded, because there were too many.
    is_incomplete: bool,
}

/// The connection of an id.
#[derive(Debug, Clone, Copy)]
struct Entry {
    shard: ShardId,
    /// The AMF-UE-NGAP-ID, once an uplink message has shown it.
    amf: Option<AmfUeNgapId>,
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
        match self.entries.get(&id) {
            Some(entry) => ConnectionShard::Shard(entry.shard),
            None if self.is_incomplete => ConnectionShard::AnyShard,
            None => ConnectionShard::None,
        }
    }

    /// A connection of that id begins on a shard.
    pub fn assign(&mut self, id: RanUeNgapId, shard: ShardId) {
        if self.entries.len() < MAX_IDS || self.entries.contains_key(&id) {
            self.entries.insert(id, Entry { shard, amf: None });
        } else {
            self.is_incomplete = true;
        }
    }

    /// An uplink message shows both ids of a connection.
    pub fn note_amf_id(&mut self, id: RanUeNgapId, (amf, shard): (AmfUeNgapId, ShardId)) {
        if let Some(entry) = self.entries.get_mut(&id)
            && entry.shard == shard
        {
            entry.amf = Some(amf);
        }
    }

    /// The connection with these ids has passed to a shard.
    pub fn move_to(&mut self, id: RanUeNgapId, (amf, shard): (AmfUeNgapId, ShardId)) {
        if let Some(entry) = self.entries.get_mut(&id)
            && entry.amf.is_none_or(|known| known == amf)
        {
            *entry = Entry { shard, amf: Some(amf) };
        }
    }

    /// The gNB has released the connection with these ids. A later connection with the same RAN-UE-NGAP-ID remains.
    pub fn release(&mut self, id: RanUeNgapId, (amf, shard): (AmfUeNgapId, ShardId)) {
        let is_that = |entry: &Entry| entry.shard == shard && entry.amf.is_none_or(|known| known == amf);
        if self.entries.get(&id).is_some_and(is_that) {
            self.entries.remove(&id);
            self.forget_overflow();
        }
    }

    /// The UE of the connection with these ids is not at this gNB, or no longer.
    pub fn leave(&mut self, id: RanUeNgapId, amf: AmfUeNgapId) {
        if self.entries.get(&id).is_some_and(|entry| entry.amf == Some(amf)) {
            self.entries.remove(&id);
            self.forget_overflow();
        }
    }

    /// NG RESET of these connections, each named by one id or both (TS 38.413 9.2.6.11). Two ids of different connections name none.
    pub fn reset(&mut self, ues: &[ResetUe]) {
        for (ran, amf) in ues.iter().filter_map(|ue| Some((ue.ran?, ue.amf))) {
            let is_that = |entry: &Entry| amf.is_none() || entry.amf.is_none_or(|known| amf == Some(known));
            if self.entries.get(&ran).is_some_and(is_that) {
                self.entries.remove(&ran);
            }
        }
        let amf_only: HashSet<_> = ues.iter().filter(|ue| ue.ran.is_none()).filter_map(|ue| ue.amf).collect();
        if !amf_only.is_empty() {
            self.entries.retain(|_, entry| entry.amf.is_none_or(|amf| !amf_only.contains(&amf)));
        }
        self.forget_overflow();
    }

    /// A shard has continued with the connections `kept`. Returns the other ones in its blocks (`is_of_shard`) according to this table, which
    /// are removed from it, and those of `kept` that the gNB has released.
    ///
    /// A connection whose AMF-UE-NGAP-ID no uplink message has shown is not among the others: it may have begun since. If it was
    /// lost, the shard answers the gNB's next message for it with ERROR INDICATION (TS 38.413 10.6).
    pub fn reconcile(
        &mut self,
        shard: ShardId,
        is_of_shard: impl Fn(AmfUeNgapId) -> bool,
        kept: &BTreeMap<RanUeNgapId, AmfUeNgapId>,
    ) -> (Vec<(AmfUeNgapId, RanUeNgapId)>, Vec<(AmfUeNgapId, RanUeNgapId)>) {
        let is_kept = |ran: &RanUeNgapId, amf: AmfUeNgapId| kept.get(ran) == Some(&amf);
        let shown = self.entries.iter().filter_map(|(ran, entry)| Some((entry.amf?, *ran)));
        let mut left: Vec<_> = shown.filter(|(amf, ran)| is_of_shard(*amf) && !is_kept(ran, *amf)).collect();
        left.sort_unstable();
        let is_released = |ran: &RanUeNgapId, amf: &AmfUeNgapId| match self.entries.get(ran) {
            Some(entry) => entry.shard != shard || entry.amf.is_some_and(|known| known != *amf),
            None => !self.is_incomplete,
        };
        let released = kept.iter().filter(|(ran, amf)| is_released(ran, amf));
        let released = released.map(|(ran, amf)| (*amf, *ran)).collect();
        left.iter().for_each(|(_, ran)| {
            self.entries.remove(ran);
        });
        self.forget_overflow();
        (left, released)
    }

    /// The gNB has no connections: NG RESET of the NG interface, or a new NG Setup (TS 38.413 8.7.1.1, 8.7.4.1).
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Once no id is known the gNB has hardly any connection: connections beyond the bound do not count for ever.
    fn forget_overflow(&mut self) {
        if self.entries.is_empty() {
            self.clear();
        }
        shrink(&mut self.entries);
    }

    /// How many ids are noted.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_types::BlockId;

    #[test]
    fn ids_beyond_the_bound_can_be_on_any_shard() {
        let mut ids = RanIds::default();
        for id in 0..=MAX_IDS as u32 {
            assert_eq!(ids.find(RanUeNgapId(id)), ConnectionShard::None);
            ids.assign(RanUeNgapId(id), ShardId(1));
        }
        assert_eq!(ids.find(RanUeNgapId(7)), ConnectionShard::Shard(ShardId(1)));
        assert_eq!(ids.find(RanUeNgapId(MAX_IDS as u32)), ConnectionShard::AnyShard);
        assert_eq!(ids.len(), MAX_IDS);
        for id in 0..MAX_IDS as u32 {
            ids.release(RanUeNgapId(id), amf(1, id));
        }
        assert_eq!(ids.find(RanUeNgapId(MAX_IDS as u32)), ConnectionShard::None, "the table is empty again");
    }

    #[test]
    fn only_the_connection_that_has_an_id_frees_it() {
        let mut ids = RanIds::default();
        ids.assign(RanUeNgapId(7), ShardId(0));
        ids.assign(RanUeNgapId(7), ShardId(1));
        ids.release(RanUeNgapId(7), amf(0, 5));
        assert_eq!(ids.find(RanUeNgapId(7)), ConnectionShard::Shard(ShardId(1)));
        ids.note_amf_id(RanUeNgapId(7), amf(1, 6));
        ids.release(RanUeNgapId(7), amf(1, 5));
        assert_eq!(
            ids.find(RanUeNgapId(7)),
            ConnectionShard::Shard(ShardId(1)),
            "an earlier connection of the shard"
        );
        ids.release(RanUeNgapId(7), amf(1, 6));
        assert_eq!(ids.find(RanUeNgapId(7)), ConnectionShard::None);
    }

    #[test]
    fn a_ue_that_has_left_frees_its_id_unless_another_has_it() {
        let mut ids = RanIds::default();
        ids.assign(RanUeNgapId(7), ShardId(0));
        ids.leave(RanUeNgapId(7), amf(0, 5).0);
        assert_eq!(ids.len(), 1, "it may be a later connection");
        ids.note_amf_id(RanUeNgapId(7), amf(0, 6));
        ids.leave(RanUeNgapId(7), amf(0, 5).0);
        assert_eq!(ids.len(), 1);
        ids.leave(RanUeNgapId(7), amf(0, 6).0);
        assert_eq!(ids.find(RanUeNgapId(7)), ConnectionShard::None);
    }

    #[test]
    fn a_reset_frees_the_ids_of_its_connections_by_either_id() {
        let mut ids = RanIds::default();
        for id in 1..=4 {
            ids.assign(RanUeNgapId(id), ShardId(1));
            ids.note_amf_id(RanUeNgapId(id), amf(1, 100 + id));
        }
        let by_ran = ResetUe { amf: None, ran: Some(RanUeNgapId(1)) };
        let by_amf = ResetUe { amf: Some(amf(1, 102).0), ran: None };
        let by_both = ResetUe { amf: Some(amf(1, 103).0), ran: Some(RanUeNgapId(3)) };
        ids.reset(&[by_ran, by_amf, by_both]);
        assert_eq!((ids.len(), ids.find(RanUeNgapId(4))), (1, ConnectionShard::Shard(ShardId(1))));
        ids.reset(&[ResetUe { amf: Some(amf(1, 105).0), ran: Some(RanUeNgapId(4)) }]);
        assert_eq!(ids.len(), 1, "the two ids are of different connections");
    }

    /// An id with its shard.
    fn amf(shard: u8, connection: u32) -> (AmfUeNgapId, ShardId) {
        let block = BlockId::new(u16::from(shard)).expect("below 1024");
        (AmfUeNgapId::new(block, connection), ShardId(shard))
    }
}
