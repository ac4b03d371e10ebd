//! UE-associated logical NG-connections (TS 38.413 8.1) between this shard and UEs at gNBs.
//!
//! A connection has its own lifetime: a UE context may use several connections one after another,
//! and a connection without a UE stays until its gNB has released it. So an AMF-UE-NGAP-ID is never
//! given to another UE while a gNB may still use it.

use super::config::RELEASING;
use super::context::UeContext;
use super::pending_table::{EntryId, PendingTable};
use super::residency::next_count;
use crate::kit::document::{Pack, Reader, UnpackError, Writer, pack_struct};
use crate::kit::{Arena, GnbHandle, Key, Tnla, TnlaBinding, shrink};
use pith_crypto::number_order::NumberOrder;
use pith_nas::ie::PduSessionSet;
use pith_ngap::Notice;
use pith_types::{AmfUeNgapId, BlockId, ContextId, RanUeNgapId};
use std::collections::HashMap;
use std::net::IpAddr;

/// One UE-associated logical NG-connection.
#[derive(Debug)]
pub(crate) struct NgConnection {
    pub id: AmfUeNgapId,
    pub ran_id: RanUeNgapId,
    pub gnb: GnbHandle,
    /// The association and the stream of its messages.
    pub binding: TnlaBinding,
    /// The stream was in use before the connection has a binding, and stays when the gNB's next message binds it: the AMF has chosen it,
    /// or the shard has restored the connection.
    pub(super) keeps_stream: bool,
    /// The UE that uses the connection; `None` once the UE has another connection or no context.
    pub ue: Option<Key>,
    /// The context that used it, and the COUNT after the last one of its messages: some may not have left yet.
    pub former_ue: Option<(ContextId, u32)>,
    /// Whether the gNB has a UE context.
    pub context: RanContext,
    /// Downlink PDUs queued until the gNB has a UE context.
    pub queued: Vec<Vec<u8>>,
    /// The gNB that the UE has left, with its RAN-UE-NGAP-ID: messages of it may still be in transit.
    pub left: Option<(GnbHandle, RanUeNgapId)>,
    /// What the gNB has still to answer, but no session waits for.
    pub former: FormerRequests,
    /// Its entry in the list of connections that gNBs are to release.
    pub(super) releasing: Option<EntryId>,
}

/// The PDU session identities in requests to a gNB that it has not answered, whose answers concern no session that the UE has: a later session
/// with the identity waits for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FormerRequests {
    /// Setups of sessions that have ended or are released since.
    pub setups: PduSessionSet,
    /// Releases of sessions that have ended.
    pub releases: PduSessionSet,
}

impl FormerRequests {
    pub const NONE: Self = Self { setups: PduSessionSet::NONE, releases: PduSessionSet::NONE };
}

impl Pack for FormerRequests {
    fn pack(&self, writer: &mut Writer<'_>) {
        let list = |set: PduSessionSet| set.iter().collect::<Vec<u8>>();
        list(self.setups).pack(writer);
        list(self.releases).pack(writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        let (setups, releases): (Vec<u8>, Vec<u8>) = (Pack::unpack(reader)?, Pack::unpack(reader)?);
        Ok(Self { setups: setups.into_iter().collect(), releases: releases.into_iter().collect() })
    }
}

/// A gNB's end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RanSide {
    pub gnb: GnbHandle,
    pub binding: TnlaBinding,
    pub ran_id: RanUeNgapId,
}

pack_struct!(RanSide { gnb, binding, ran_id });

impl NgConnection {
    /// The connection in another state, without queued PDUs and entries of lists.
    pub const fn without_queue(&self, context: RanContext) -> Self {
        let Self { id, ran_id, gnb, binding, keeps_stream, ue, .. } = *self;
        Self {
            id,
            ran_id,
            gnb,
            binding,
            keeps_stream,
            ue,
            former_ue: None,
            context,
            queued: Vec::new(),
            left: None,
            former: FormerRequests::NONE,
            releasing: None,
        }
    }

    /// The UE no longer uses the connection.
    pub fn detach(&mut self, ue: &UeContext) {
        self.ue = None;
        self.former_ue = next_count(ue).map(|next| (ue.id, next));
    }

    /// The gNB's end.
    pub const fn side(&self) -> RanSide {
        RanSide { gnb: self.gnb, binding: self.binding, ran_id: self.ran_id }
    }
}

/// Whether a gNB has a UE context with security.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RanContext {
    /// No UE context: NAS signalling only.
    Absent,
    /// INITIAL CONTEXT SETUP REQUEST sent.
    Requested,
    /// The gNB has a UE context.
    Established,
    /// UE CONTEXT RELEASE COMMAND sent.
    Releasing,
    /// PATH SWITCH REQUEST received, and not answered yet.
    Switching,
    /// HANDOVER REQUEST sent, and not answered yet: the gNB has assigned no id.
    Awaiting,
    /// The gNB is prepared for the UE, which has not arrived.
    Prepared,
    /// The source gNB of an N2 handover, which forwards packets until the SMFs have switched the paths.
    Left,
}

/// In place of a RAN-UE-NGAP-ID that the gNB has not assigned yet.
const UNASSIGNED: RanUeNgapId = RanUeNgapId(u32::MAX);

/// Of a connection that the AMF begins: any association of the gNB, and not the stream of messages without a UE (TS 38.412 7).
pub(super) const OF_HANDOVER: TnlaBinding = TnlaBinding::unbound(1);

/// All connections of a shard.
#[derive(Debug)]
pub(crate) struct Connections {
    table: Arena<NgConnection>,
    limit: usize,
    by_id: HashMap<AmfUeNgapId, Key>,
    by_ran: HashMap<(GnbHandle, RanUeNgapId), Key>,
    releasing: PendingTable,
    /// What was ignored of requests whose response is not sent yet.
    notices: HashMap<Key, Box<Notice>>,
    /// The order of the owner's parts of AMF-UE-NGAP-IDs.
    order: NumberOrder,
    /// The position of the last one.
    last: u32,
}

impl Connections {
    /// An empty table. `limit`: the largest number of connections. `order`: of AMF-UE-NGAP-IDs.
    pub fn new(limit: u32, order: NumberOrder) -> Self {
        Self {
            table: Arena::new(limit),
            limit: limit as usize,
            by_id: HashMap::new(),
            by_ran: HashMap::new(),
            releasing: PendingTable::new(RELEASING),
            notices: HashMap::new(),
            order,
            last: 0,
        }
    }

    /// Whether another connection can be opened.
    pub fn has_room(&self) -> bool {
        self.table.len() < self.limit
    }

    /// Opens a connection for an INITIAL UE MESSAGE, with an id of that block; `None` if there are too many connections.
    pub fn open(
        &mut self,
        block: BlockId,
        (gnb, binding): (GnbHandle, TnlaBinding),
        ran_id: RanUeNgapId,
    ) -> Option<Key> {
        let id = self.next_id(block);
        let key = self.table.insert_with(|_| NgConnection {
            id,
            ran_id,
            gnb,
            binding,
            keeps_stream: binding.tnla.is_none(),
            ue: None,
            former_ue: None,
            context: RanContext::Absent,
            queued: Vec::new(),
            left: None,
            former: FormerRequests::NONE,
            releasing: None,
        })?;
        self.by_id.insert(id, key);
        self.by_ran.insert((gnb, ran_id), key);
        Some(key)
    }

    /// Opens a connection at the target gNB of a handover, which will assign its id; `None` if there are too many connections.
    pub fn open_for_handover(&mut self, block: BlockId, gnb: GnbHandle) -> Option<Key> {
        let id = self.next_id(block);
        let key = self.table.insert_with(|_| NgConnection {
            id,
            ran_id: UNASSIGNED,
            gnb,
            binding: OF_HANDOVER,
            keeps_stream: true,
            ue: None,
            former_ue: None,
            context: RanContext::Awaiting,
            queued: Vec::new(),
            left: None,
            former: FormerRequests::NONE,
            releasing: None,
        })?;
        self.by_id.insert(id, key);
        Some(key)
    }

    /// The target gNB is prepared for the UE, and has assigned its id.
    pub fn note_prepared(&mut self, key: Key, ran_id: RanUeNgapId) {
        let Some(connection) = self.table.get_mut(key) else { return };
        (connection.ran_id, connection.context) = (ran_id, RanContext::Prepared);
        self.by_ran.insert((connection.gnb, ran_id), key);
    }

    /// Opens a connection that another owner of its block had: with its ids and its state. `None` if there are too many connections.
    pub fn adopt(&mut self, connection: NgConnection) -> Option<Key> {
        let (id, ran) = (connection.id, (connection.gnb, connection.ran_id));
        let key = self.table.insert_with(|_| connection)?;
        self.by_id.insert(id, key);
        self.by_ran.insert(ran, key);
        Some(key)
    }

    /// New ids follow this position. A gNB may still have connections of which a former owner's document says nothing.
    pub const fn count_ids_from(&mut self, position: u32) {
        self.last = position & AmfUeNgapId::MAX_OWN;
    }

    /// An unused id. An id is used again as late as possible, and a gNB does not know those of other gNBs' UEs: PATH SWITCH REQUEST
    /// has no other proof that the UE was handed over to its sender. The owner's part is never 0: UERANSIM reads id 0 as absent
    /// and omits the IE.
    fn next_id(&mut self, block: BlockId) -> AmfUeNgapId {
        loop {
            self.last = (self.last + 1) & AmfUeNgapId::MAX_OWN;
            let id = AmfUeNgapId::new(block, self.order.at(self.last));
            if id.own() != 0 && !self.by_id.contains_key(&id) {
                return id;
            }
        }
    }

    /// The connection with that AMF-UE-NGAP-ID.
    pub fn find(&self, id: AmfUeNgapId) -> Option<Key> {
        self.by_id.get(&id).copied()
    }

    /// The connection with that RAN-UE-NGAP-ID at a gNB.
    pub fn find_by_ran(&self, gnb: GnbHandle, ran_id: RanUeNgapId) -> Option<Key> {
        self.by_ran.get(&(gnb, ran_id)).copied()
    }

    pub fn get(&self, key: Key) -> Option<&NgConnection> {
        self.table.get(key)
    }

    pub fn get_mut(&mut self, key: Key) -> Option<&mut NgConnection> {
        self.table.get_mut(key)
    }

    /// The gNB's end of a connection.
    pub fn side(&self, key: Key) -> Option<RanSide> {
        self.get(key).map(NgConnection::side)
    }

    /// The UE has moved to another gNB. Returns the former gNB's end.
    pub fn relocate(&mut self, key: Key, to: RanSide, context: RanContext) -> Option<RanSide> {
        let connection = self.table.get_mut(key)?;
        let former = connection.side();
        (connection.gnb, connection.binding, connection.ran_id) = (to.gnb, to.binding, to.ran_id);
        // A stream that the AMF had chosen was one of the former gNB.
        connection.keeps_stream = to.binding.tnla.is_none();
        connection.left = Some((former.gnb, former.ran_id));
        connection.context = context;
        connection.queued.clear();
        connection.former = FormerRequests::NONE;
        let ran = (former.gnb, former.ran_id);
        if self.by_ran.get(&ran) == Some(&key) {
            self.by_ran.remove(&ran);
            shrink(&mut self.by_ran);
        }
        self.by_ran.insert((to.gnb, to.ran_id), key);
        Some(former)
    }

    /// Removes a connection and frees its ids.
    pub fn close(&mut self, key: Key) -> Option<NgConnection> {
        let connection = self.table.remove(key)?;
        self.take_notice(key);
        self.by_id.remove(&connection.id);
        shrink(&mut self.by_id);
        let ran = (connection.gnb, connection.ran_id);
        if self.by_ran.get(&ran) == Some(&key) {
            self.by_ran.remove(&ran);
            shrink(&mut self.by_ran);
        }
        if let Some(place) = connection.releasing {
            self.releasing.remove(place);
        }
        Some(connection)
    }

    /// Marks a connection as being released by the gNB, which is at that host. If more releases are pending than the bound permits, returns the
    /// oldest one, which the caller must treat as released.
    pub fn start_release(&mut self, key: Key, host: IpAddr) -> Option<Key> {
        let connection = self.table.get_mut(key)?;
        connection.context = RanContext::Releasing;
        connection.queued.clear();
        connection.releasing = Some(self.releasing.insert(host, key, 1));
        self.releasing.evict(host)
    }

    /// The gNB of a connection has another association.
    pub fn move_to(&mut self, key: Key, gnb: GnbHandle) {
        let Some(connection) = self.table.get_mut(key) else { return };
        let former = std::mem::replace(&mut connection.gnb, gnb);
        let ran_id = connection.ran_id;
        if self.by_ran.get(&(former, ran_id)) == Some(&key) {
            self.by_ran.remove(&(former, ran_id));
        }
        self.by_ran.insert((gnb, ran_id), key);
    }

    /// The gNB has sent a message for the UE: its binding follows (TS 23.501 5.21.1.3). On the same association the stream stays.
    pub fn rebind(&mut self, key: Key, binding: TnlaBinding) {
        if let Some(connection) = self.table.get_mut(key).filter(|it| it.binding.tnla != binding.tnla) {
            let stream = if connection.keeps_stream { connection.binding.stream } else { binding.stream };
            connection.binding = TnlaBinding { stream, ..binding };
            connection.keeps_stream = false;
        }
    }

    /// The response on that connection is to report what was ignored of its request.
    pub fn keep_notice(&mut self, key: Key, notice: Box<Notice>) {
        self.notices.insert(key, notice);
    }

    /// No response is to report it.
    pub fn take_notice(&mut self, key: Key) -> Option<Box<Notice>> {
        let notice = self.notices.remove(&key)?;
        shrink(&mut self.notices);
        Some(notice)
    }

    /// A response, with what was ignored of its request.
    pub fn with_notice(&mut self, key: Key, response: Vec<u8>) -> Vec<u8> {
        match self.notices.get(&key).and_then(|notice| notice.add_to(&response)) {
            Some(with_notice) => {
                self.take_notice(key);
                with_notice
            }
            None => response,
        }
    }

    /// Releases the bindings to an association. Returns the connections that had them, with the bindings.
    pub fn unbind(&mut self, gnb: GnbHandle, tnla: Tnla) -> Vec<(Key, TnlaBinding)> {
        let keys = self.of_gnb(gnb).into_iter();
        let unbind = |key: Key| {
            let connection = self.table.get_mut(key).filter(|it| it.binding.tnla == Some(tnla))?;
            let unbound = TnlaBinding::unbound(connection.binding.stream);
            Some((key, std::mem::replace(&mut connection.binding, unbound)))
        };
        keys.filter_map(unbind).collect()
    }

    /// The connections over one gNB.
    pub fn of_gnb(&self, gnb: GnbHandle) -> Vec<Key> {
        let here = self.table.iter().filter(|(_, connection)| connection.gnb == gnb);
        here.map(|(key, _)| key).collect()
    }

    pub fn iter(&self) -> impl Iterator<Item = (Key, &NgConnection)> {
        self.table.iter()
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_closed_connection_is_not_found_after_its_index_is_reused() {
        let mut connections = Connections::new(1 << 18, NumberOrder::new(1));
        let mut ids = std::collections::HashSet::new();
        let block = BlockId::new(5).unwrap();
        for ran in 0..1000 {
            let key =
                connections.open(block, (GnbHandle(1), TnlaBinding::unbound(0)), RanUeNgapId(ran)).unwrap();
            let id = connections.get(key).unwrap().id;
            assert!(ids.insert(id), "{id:?} was given twice");
            assert_eq!(id.block(), block);
            assert_ne!(id.own(), 0, "UERANSIM leaves out an id that is 0");
            assert_eq!(connections.find(id), Some(key));
            connections.close(key);
            assert_eq!(connections.find(id), None);
            assert_eq!(connections.find_by_ran(GnbHandle(1), RanUeNgapId(ran)), None);
        }
        assert!(connections.by_id.is_empty() && connections.by_ran.is_empty());
    }

    #[test]
    fn a_ue_that_has_moved_keeps_no_stream_of_the_former_gnb() {
        let mut connections = Connections::new(1 << 18, NumberOrder::new(1));
        let (block, ran_id) = (BlockId::new(5).unwrap(), RanUeNgapId(1));
        let key = connections.open(block, (GnbHandle(1), TnlaBinding::unbound(4)), ran_id).unwrap();
        let binding = TnlaBinding { tnla: Some(Tnla(7)), stream: 2 };
        connections.relocate(key, RanSide { gnb: GnbHandle(2), binding, ran_id }, RanContext::Established);
        let next = TnlaBinding { tnla: Some(Tnla(8)), stream: 9 };
        connections.rebind(key, next);
        assert_eq!(connections.get(key).unwrap().binding, next, "the gNB chooses");
        // After a handover the AMF has chosen.
        let chosen = RanSide { gnb: GnbHandle(3), binding: OF_HANDOVER, ran_id };
        connections.relocate(key, chosen, RanContext::Established);
        connections.rebind(key, next);
        let stream = OF_HANDOVER.stream;
        assert_eq!(connections.get(key).unwrap().binding, TnlaBinding { stream, ..next });
    }

    #[test]
    fn ids_wrap_around_in_an_order_that_shows_no_count() {
        let mut connections = Connections::new(1 << 18, NumberOrder::new(1));
        let block = BlockId::new(5).unwrap();
        let mut open = |last: Option<u32>, ran| {
            connections.last = last.unwrap_or(connections.last);
            let key =
                connections.open(block, (GnbHandle(1), TnlaBinding::unbound(0)), RanUeNgapId(ran)).unwrap();
            connections.get(key).unwrap().id.own()
        };
        let order = NumberOrder::new(1);
        assert_eq!(open(None, 1), order.at(1));
        assert_eq!(open(Some(AmfUeNgapId::MAX_OWN - 1), 2), order.at(AmfUeNgapId::MAX_OWN));
        assert_eq!(open(None, 3), order.at(0));
        assert_eq!(open(None, 4), order.at(2), "that of position 1 is in use");
    }
}
