//! UE contexts that pass to another shard with their block, while gNBs and SMFs continue.
//!
//! ```text
//!  context      local form, with its procedure and its timers
//!  connection   its ids and its state; also connections without a UE, which the gNB is to release
//!  index        the 5G-TMSIs, and whether the context is the subscriber's
//!  retained     security contexts of deregistered UEs with a 5G-TMSI of the block
//! ```
//!
//! A UE passes when no request to another NF is pending. Neither UE nor gNB gets a message because of it.

use super::Amf;
use super::config::HALF_OPEN_CONTEXT;
use super::connection::{FormerRequests, NgConnection, RanContext};
use super::context::{DeferredAction, UeContext, host_of};
use super::delivery;
use super::document::{pack_local, unpack_local};
use super::n2::release_connection;
use super::procedure::{Procedure, context_transfer, subscription_change};
use super::retained::PassedUe;
use crate::kit::document::{Document, Pack, PackError, Section, Sections, UnpackError, Writer, pack_struct};
use crate::kit::{
    Duration, GnbHandle, Handles, Instant, Key, Level, MovedConnection, Nf, Outbox, Owner, PassedContext,
    PassedPart, Timer, TnlaBinding, UNPLACED, WallClock,
};
use pith_ngap::{Cause, CauseRadioNetwork};
use pith_types::{AmfUeNgapId, BlockId, ContextId, FiveGTmsi, RanUeNgapId};
use std::collections::HashMap;

const REST: Section = Section { id: 1, name: "what a block has beside contexts", version: 1 };

/// What the document of a context in the local form does not have.
#[derive(Debug, Default)]
struct Entry {
    /// The context, as a number.
    id: u64,
    connection: Option<PassedConnection>,
    /// 5G-TMSIs that the index has for it.
    tmsis: Vec<FiveGTmsi>,
    /// The index has it for its subscriber, or for the device of an unauthenticated UE.
    is_of_identity: bool,
    /// It is among the unauthenticated ones.
    is_half_open: bool,
}

/// An NG connection.
#[derive(Debug)]
struct PassedConnection {
    id: AmfUeNgapId,
    ran_id: RanUeNgapId,
    gnb: u64,
    binding: TnlaBinding,
    context: RanContext,
    queued: Vec<Vec<u8>>,
    /// The gNB that the UE has left, and its id there; both or none.
    left_gnb: Option<u64>,
    left_ran_id: Option<RanUeNgapId>,
    former: FormerRequests,
}

/// All that a block has beside the documents of its contexts.
#[derive(Debug, Default)]
struct Rest {
    entries: Vec<Entry>,
    /// Connections without a UE.
    connections: Vec<PassedConnection>,
    retained: Vec<PassedUe>,
}

pack_struct!(Entry { id, connection, tmsis, is_of_identity, is_half_open });
pack_struct!(PassedConnection { id, ran_id, gnb, binding, context, queued, left_gnb, left_ran_id, former });
pack_struct!(Rest { entries, connections, retained });

impl Rest {
    fn to_document(&self) -> Result<Document, PackError> {
        let mut writer = Writer::new(Nf::Amf, &Handles);
        writer.section(&REST, |writer| self.pack(writer));
        writer.finish()
    }

    fn of_document(document: &Document) -> Result<Self, UnpackError> {
        Sections::of(document.octets(), Nf::Amf, &[REST], &Handles)?.unpack(&REST)
    }
}

impl PassedConnection {
    fn of(connection: NgConnection) -> Self {
        let NgConnection {
            id,
            ran_id,
            gnb,
            binding,
            keeps_stream: _,
            former,
            ue: _,
            former_ue: _,
            context,
            queued,
            releasing: _,
            left,
        } = connection;
        let (left_gnb, left_ran_id) = left.map(|(gnb, ran_id)| (gnb.0, ran_id)).unzip();
        Self { id, ran_id, gnb: gnb.0, binding, context, queued, left_gnb, left_ran_id, former }
    }
}

impl Amf {
    /// A UE of the block for which a request to another NF is pending, or that is still to be resumed, or that has no copy here.
    pub(super) fn unsettled_ue(&self, block: BlockId) -> Option<ContextId> {
        self.shared.ids.of_block(block).map(|(id, _)| id).find(|id| self.is_unsettled_ue(*id))
    }

    pub(super) fn is_unsettled_ue(&self, id: ContextId) -> bool {
        if self.ended.document(id).is_some() {
            return true;
        }
        let Some(key) = self.shared.ids.find(id) else { return false };
        if key == UNPLACED {
            // The document of a retained security context.
            return false;
        }
        let Some(ue) = self.ues.view(key) else { return true };
        // In a handover the UE has a second connection.
        let is_in_work = !ue.mobility.is_idle()
            || ue.is_in_transaction()
            || ue.sdm_call.is_some()
            || subscription_change::awaits_data(&ue);
        let is_lost = || ue.connection.is_some_and(|connection| self.is_lost(connection));
        is_in_work
            || self.is_to_be_resumed(key)
            || self.awaited.contains_key(&key)
            || is_lost()
            || self.is_at_expected_gnb(&ue)
    }

    /// Whether the UE's gNB is still to return: only this shard knows the handle of such a gNB.
    fn is_at_expected_gnb(&self, ue: &UeContext) -> bool {
        let connection = ue.connection.and_then(|key| self.shared.connections.get(key));
        connection.is_some_and(|connection| !self.shared.gnbs.contains_key(&connection.gnb))
    }

    /// Another AMF of the set gets the block (planned removal, TS 23.501 5.21.2.2.1): UEs that are connected and in no procedure are
    /// released to CM-IDLE, with N2 cause 'release due to 5GC generated reason'.
    pub(super) fn release_connections_of(&mut self, now: Instant, block: BlockId, out: &mut Outbox) {
        let of_block = self.shared.connections.iter().filter(|(_, it)| it.id.block() == block);
        let of_block: Vec<_> = of_block.map(|(key, it)| (key, it.ue)).collect();
        for (key, ue) in of_block {
            let ue = ue.and_then(|ue| self.ues.view(ue));
            let is_busy = ue.is_some_and(|ue| {
                !matches!(ue.procedure, Procedure::Idle) || !ue.mobility.is_idle() || ue.is_in_transaction()
            });
            if !is_busy {
                let cause = Cause::RadioNetwork(CauseRadioNetwork::release_due_to_5gc_generated_reason);
                self.with_env(now, out, |env| release_connection(env, key, cause));
            }
        }
        self.settle(now, out);
    }

    /// Gives away the UEs of a block.
    pub(super) fn pass_ues(&mut self, now: Instant, block: BlockId, out: &mut Outbox) -> PassedPart {
        let mut ids: Vec<_> = self.shared.ids.of_block(block).collect();
        ids.sort_unstable();
        let (mut part, mut rest) = (PassedPart::default(), Rest::default());
        for (id, key) in ids {
            let ue = self.ues.remove(key);
            self.shared.ids.free(id);
            let Some(ue) = ue else { continue };
            let entry = self.detach(*ue, &mut part, out);
            rest.entries.push(entry);
        }
        let of_block = self.shared.connections.iter().filter(|(_, it)| it.id.block() == block);
        for key in of_block.map(|(key, _)| key).collect::<Vec<_>>() {
            // Its gNB has released it already.
            let is_lost = self.is_lost(key);
            rest.connections.extend(self.detach_connection(key, out).filter(|_| !is_lost));
        }
        rest.retained = self.shared.index.retained.pass(block, now);
        self.tracker.forget_block(block);
        match rest.to_document() {
            Ok(document) => part.rest = Some(document),
            Err(error) => out.log(Level::Error, || format!("a block loses its connections: {error}")),
        }
        part
    }

    /// Packs a UE that was removed from the table, and removes it from the other tables.
    fn detach(&mut self, mut ue: UeContext, part: &mut PassedPart, out: &mut Outbox) -> Entry {
        for (timer, _) in ue.timers() {
            out.stop(ue.key.to_u64(), *timer);
        }
        self.superseding.remove(&ue.key);
        let mut entry = Entry { id: ue.id.to_u64(), ..Entry::default() };
        if let Some(place) = ue.half_open.take() {
            self.shared.half_open.remove(place);
            entry.is_half_open = true;
        }
        let index = &mut self.shared.index;
        for guti in [ue.guti, ue.old_guti].into_iter().flatten() {
            if index.find_tmsi(guti.tmsi) == Some(ue.key) {
                entry.tmsis.push(guti.tmsi);
                index.free_tmsi(guti.tmsi, ue.key);
            }
        }
        if let Some(identity) = ue.identity() {
            entry.is_of_identity = index.find(&identity) == Some(ue.key);
            index.free(&identity, ue.key);
        }
        if let Some(supi) = &ue.supi {
            index.free_arrival(supi, ue.key);
        }
        index.note_moving(ue.key, false);
        entry.connection =
            ue.connection.take().and_then(|connection| self.detach_connection(connection, out));
        match pack_local(&ue) {
            Ok(document) => part.contexts.push(PassedContext {
                id: ue.id,
                key: ue.key.to_u64(),
                document,
                stored: self.tracker.counts_below(ue.id),
            }),
            Err(error) => {
                out.log(Level::Error, || format!("{} is lost, and registers again: {error}", ue.name()));
            }
        }
        entry
    }

    fn detach_connection(&mut self, key: Key, out: &mut Outbox) -> Option<PassedConnection> {
        out.stop(key.to_u64(), Timer::NgapGuard);
        self.lost.retain(|(lost, _)| *lost != key);
        self.shared.connections.close(key).map(PassedConnection::of)
    }

    /// Takes the UEs of a block that another shard has given away.
    pub(super) fn take_ues(&mut self, now: Instant, part: PassedPart, out: &mut Outbox) {
        let rest = part.rest.as_ref().map(Rest::of_document).transpose().unwrap_or_else(|error| {
            out.log(Level::Error, || format!("a block came without its connections: {error}"));
            None
        });
        let Rest { entries, connections, retained } = rest.unwrap_or_default();
        let mut entries: HashMap<_, _> = entries.into_iter().map(|entry| (entry.id, entry)).collect();
        for context in part.contexts {
            let id = context.id;
            let entry = entries.remove(&id.to_u64()).unwrap_or_default();
            if let Err(error) = self.take_ue(now, &context, entry, out) {
                out.log(Level::Error, || format!("context {id} is lost, its UE registers again: {error}"));
            }
        }
        for connection in connections {
            self.attach_connection(None, connection, out);
        }
        for ue in retained {
            if let Some(id) = self.shared.index.retained.take_passed(ue, now, self.shared.config.retention) {
                self.shared.ids.claim(id, UNPLACED);
                let below = self.retained_counts_below(id);
                self.tracker.note_passed(id, Some(below));
            }
        }
        self.note_retained();
        self.settle(now, out);
        self.ues.pack_idle();
    }

    fn take_ue(
        &mut self,
        now: Instant,
        context: &PassedContext,
        entry: Entry,
        out: &mut Outbox,
    ) -> Result<(), UnpackError> {
        let id = context.id;
        self.shared.ids.check_free(id)?;
        let mut ue = unpack_local(context.document.octets(), (UNPLACED, id))?;
        let (identity, since) = (ue.identity(), ue.since);
        let arriving = ue.supi.clone().filter(|_| ue.arrival.is_some());
        let is_moving = ue.transferred_to == Some(Owner::Process) || context_transfer::awaits_sessions(&ue);
        let placed = self.ues.insert_with(|key| {
            ue.key = key;
            Box::new(ue)
        });
        let key = placed.ok_or(UnpackError::NoRoom)?;
        self.shared.ids.claim(id, key);
        self.shared.index.note_moving(key, is_moving);
        self.tracker.note_passed(id, context.stored);
        for tmsi in entry.tmsis {
            self.shared.index.claim_tmsi(tmsi, key);
        }
        if let Some(identity) = identity.filter(|_| entry.is_of_identity) {
            // Of two contexts of a subscriber the later one counts.
            let other =
                self.shared.index.find(&identity).and_then(|key| Some((key, self.ues.view(key)?.since)));
            let action = match other {
                Some((other, of_other)) if of_other >= since => {
                    Some(DeferredAction::Supersede { new: other, old: key })
                }
                other => {
                    self.shared.index.claim(&identity, key);
                    other.map(|(other, _)| DeferredAction::Supersede { new: key, old: other })
                }
            };
            self.shared.after.extend(action);
        }
        if let Some(old) = arriving.and_then(|supi| self.shared.index.claim_arrival(&supi, key)) {
            self.shared.after.push(DeferredAction::Supersede { new: key, old });
        }
        let gnb = entry.connection.as_ref().map(|connection| GnbHandle(connection.gnb));
        let connection = entry.connection.and_then(|it| self.attach_connection(Some(key), it, out));
        let place = entry.is_half_open.then(|| {
            let host = host_of(&self.shared.gnbs, gnb);
            self.shared.half_open.insert(host, key, HALF_OPEN_CONTEXT)
        });
        if let Some(ue) = self.ues.get_mut(key) {
            (ue.connection, ue.half_open) = (connection, place);
        }
        self.step(now, key, out, |ue, env| {
            let clock = WallClock::of_epoch(env.config.identity.epoch_unix_ms);
            for (timer, deadline) in ue.timers().to_vec() {
                let left = clock.instant(deadline).since(env.now);
                ue.start(env, timer, left.max(Duration::from_millis(1)));
            }
            delivery::guard_requests(ue, env);
        });
        Ok(())
    }

    fn attach_connection(
        &mut self,
        ue: Option<Key>,
        passed: PassedConnection,
        out: &mut Outbox,
    ) -> Option<Key> {
        let PassedConnection { id, ran_id, gnb, binding, context, queued, left_gnb, left_ran_id, former } =
            passed;
        let left = left_gnb.map(GnbHandle).zip(left_ran_id);
        let gnb = GnbHandle(gnb);
        let connections = &mut self.shared.connections;
        let key = connections.adopt(NgConnection {
            id,
            ran_id,
            gnb,
            binding,
            keeps_stream: binding.tnla.is_none(),
            ue,
            former_ue: None,
            context,
            queued,
            releasing: None,
            left,
            former,
        })?;
        if context == RanContext::Releasing {
            let host = host_of(&self.shared.gnbs, Some(gnb));
            let excess = connections.start_release(key, host);
            self.lost.extend(excess.and_then(|key| Some((key, connections.get(key)?.gnb))));
        }
        if matches!(context, RanContext::Requested | RanContext::Releasing | RanContext::Left) {
            out.start(key.to_u64(), Timer::NgapGuard, self.shared.config.timers.ngap_guard);
        }
        Some(key)
    }

    /// Whether the connection's gNB has released it.
    fn is_lost(&self, connection: Key) -> bool {
        self.lost.iter().any(|(lost, _)| *lost == connection)
    }

    /// The connections of a block, for the N2 gateway.
    pub(super) fn connections_of_block(&self, block: BlockId) -> Vec<MovedConnection> {
        let connections = self.shared.connections.iter().map(|(_, it)| (it.gnb, it.id, it.ran_id));
        connections.filter(|(_, id, _)| id.block() == block).collect()
    }
}
