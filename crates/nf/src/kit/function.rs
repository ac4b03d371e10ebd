//! The interface between an NF and its shard.

use super::document::UnpackError;
use super::{
    AddressNews, DocumentSink, Input, Instant, MovedConnection, N2Effect, Outbox, PassedPart, SetInstances,
    StoreScope, Tracker, Tracking,
};
use pith_sbi::Request;
use pith_types::{Ambr, BlockId, ContextId, OwnerMap, Supi};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// A network function, or another part of a shard that handles inputs.
pub trait NetworkFunction: Send {
    /// Handles one input and adds its effects to `out`.
    fn handle(&mut self, now: Instant, input: Input, out: &mut Outbox);

    /// Adds the state that an operator requests, one JSON object for each entry.
    fn inspect(&self, _what: Inspect, _list: &mut Vec<Value>) {}

    /// Adds one page of the state that an operator requests. Returns where the next page begins, if there may be one.
    fn inspect_page(&self, what: Inspect, _page: &Page, list: &mut Vec<Value>) -> Option<u32> {
        self.inspect(what, list);
        None
    }

    /// Executes an operator's command, if it concerns this NF; adds an entry for each object that it changed.
    fn operate(&mut self, _now: Instant, _what: &Order, _out: &mut Outbox, _list: &mut Vec<Value>) {}

    /// Number of requests that the NF has received and not answered yet; `None` if it does not count them.
    fn replies_owed(&self) -> Option<usize> {
        None
    }

    /// The context that an order needs, if its copy was dropped: the order waits until it is back.
    fn absent_for(&self, _order: &Order) -> Option<ContextId> {
        None
    }

    /// Whether the NF has the context that a request concerns, as far as the request names one that another shard of the
    /// process may have instead.
    fn has_context(&self, _request: &Request) -> bool {
        true
    }

    /// For simulations: from now on each context that a step changes is replaced by what its document yields
    /// ([`super::document`]); a context that is not the same afterwards panics.
    fn reload_contexts(&mut self) {}

    /// The changes of contexts, if the NF stores contexts.
    fn tracker(&self) -> Option<&Tracker> {
        None
    }

    /// Whether the NF has contexts that change.
    fn has_contexts(&self) -> bool {
        self.tracker().is_some()
    }

    /// As [`NetworkFunction::tracker`].
    fn tracker_mut(&mut self) -> Option<&mut Tracker> {
        None
    }

    /// Whether [`StoreScope::Required`] has contexts.
    fn has_required_contexts(&self) -> bool {
        self.tracker().is_some_and(Tracker::has_required)
    }

    /// As [`Tracker::take_awaited`].
    fn take_awaited(&mut self) -> bool {
        self.tracker_mut().is_some_and(Tracker::take_awaited)
    }

    /// From now on the NF records which of its contexts change.
    fn track_contexts(&mut self, tracking: Tracking) {
        if let Some(tracker) = self.tracker_mut() {
            tracker.start(tracking);
        }
    }

    /// Passes on the documents of the contexts that changed since the last call; called at the end of a turn, if contexts are
    /// tracked. A context in the middle of a transaction stays recorded: its pending calls are not stored.
    fn store_contexts(&mut self, _scope: StoreScope, _sink: &mut dyn DocumentSink) {}

    /// The store did not take the last change of this context.
    fn store_failed(&mut self, id: ContextId) {
        if let Some(tracker) = self.tracker_mut() {
            tracker.note_failure(id);
        }
    }

    /// The store may have lost documents: all contexts that have one count as changed.
    fn store_all_contexts(&mut self) {
        if let Some(tracker) = self.tracker_mut() {
            tracker.note_all();
        }
    }

    /// Whether the NF creates contexts for new UEs. Not while changes are not stored: a restart would lose them.
    fn accept_new_contexts(&mut self, _accepted: bool) {}

    /// Takes a context back at the start, from a document of [`NetworkFunction::store_contexts`]. `is_stale`: a later document may
    /// have been lost, so NAS COUNTs in this one may have been used.
    fn restore_context(
        &mut self,
        _now: Instant,
        _id: ContextId,
        _document: &[u8],
        _is_stale: bool,
    ) -> Result<(), UnpackError> {
        Ok(())
    }

    /// The context that an input is for, if the input names one: a shell that does not keep copies loads it before it delivers
    /// the input. The context may have ended meanwhile.
    fn context_of(&self, _input: &Input) -> Option<ContextId> {
        None
    }

    /// Whether the NF has the context itself. `false` only after [`NetworkFunction::drop_context`].
    fn is_resident(&self, _id: ContextId) -> bool {
        true
    }

    /// Deletes the copy of a context whose document is stored; returns whether it did. A context that changed since, or that
    /// waits for another NF, stays.
    fn drop_context(&mut self, _id: ContextId) -> bool {
        false
    }

    /// Gives a dropped context back, from a document that the NF packed with [`Tracking::whole`]. A context that was not
    /// dropped stays as it is.
    fn put_context(
        &mut self,
        _now: Instant,
        _id: ContextId,
        _document: &[u8],
        _out: &mut Outbox,
    ) -> Result<(), UnpackError> {
        Ok(())
    }

    /// The document of a dropped context is lost: the context ends, and its UE is unknown. A context that was not dropped stays.
    fn forget_context(&mut self, _now: Instant, _id: ContextId, _out: &mut Outbox) {}

    /// Contexts that the last inputs concern beside the one of [`NetworkFunction::context_of`], and that were dropped: the NF
    /// has deferred what it does with them until the shell gives them back.
    fn take_missed(&mut self) -> Vec<ContextId> {
        Vec::new()
    }

    /// All contexts were restored, and the NF may use other NFs and timers.
    fn resume_contexts(&mut self, _now: Instant, _out: &mut Outbox) {}

    /// Contexts of these blocks are restored while the NF serves, those of other blocks are restored already. New contexts get ids
    /// of other blocks.
    fn begin_restoring(&mut self, _blocks: &BTreeSet<BlockId>) {}

    /// Which contexts must be restored before the NF handles an input.
    fn needs(&self, input: &Input) -> Needs {
        self.context_of(input).map_or(Needs::Nothing, Needs::Context)
    }

    /// All contexts of a block are restored.
    fn note_restored(&mut self, _block: BlockId) {}

    /// Further contexts were restored after [`NetworkFunction::resume_contexts`]. `is_needed`: an input waits for them.
    fn resume_restored(&mut self, _now: Instant, _is_needed: bool, _out: &mut Outbox) {}

    /// All contexts are restored that were announced by [`NetworkFunction::begin_restoring`].
    fn finish_restoring(&mut self, _now: Instant, _out: &mut Outbox) {}

    /// The NF is another run of one that panicked, before its first input. Ids of the former run may be in use at gNBs.
    fn begin_take_over(&mut self) {}

    /// Takes a context over from its document while gateways, gNBs and UPFs continue: from a run of the shard that panicked. Called
    /// like [`NetworkFunction::restore_context`], after the gNBs and UPFs that are connected. The context goes on where the
    /// document says, or ends.
    fn take_over_context(
        &mut self,
        now: Instant,
        id: ContextId,
        document: &[u8],
        _fate: Fate,
    ) -> Result<(), UnpackError> {
        self.restore_context(now, id, document, false)
    }

    /// All contexts were taken over, and the messages whose transaction was not over were delivered again: gateways compare what
    /// they have.
    fn finish_take_over(&mut self, _now: Instant, _out: &mut Outbox) {}

    /// The context that a step is about: after a panic, the one that caused it.
    fn in_step(&self) -> Option<ContextId> {
        None
    }

    /// Number of changes of contexts since the last call of [`NetworkFunction::take_touched`].
    fn touched(&self) -> usize {
        self.tracker().map_or(0, |tracker| tracker.touched().len())
    }

    /// The context of the change of that number, from 0.
    fn touched_at(&self, number: usize) -> Option<ContextId> {
        self.tracker()?.touched().get(number).copied()
    }

    /// Adds the contexts that changed since the last call to a list. A context may occur several times.
    fn take_touched(&mut self, list: &mut Vec<ContextId>) {
        if let Some(tracker) = self.tracker_mut() {
            tracker.take_touched(list);
        }
    }

    /// Whether a request that a message from outside caused for this context is pending at another NF.
    fn is_in_transaction(&self, _id: ContextId) -> bool {
        false
    }

    /// Whether no transaction of that context is in progress: no SBI request that it has made or received is pending.
    fn is_between_transactions(&self, id: ContextId) -> bool {
        !self.is_in_transaction(id)
    }

    /// The owner map has changed. The blocks that this shard gained or lost are passed by [`NetworkFunction::take_block`] and
    /// [`NetworkFunction::pass_block`].
    fn change_owners(&mut self, _owners: &Arc<OwnerMap>) {}

    /// A context of the block that cannot pass to another shard yet: a request of or to another NF is pending, or the shell has its only
    /// copy.
    fn unsettled(&self, _block: BlockId) -> Option<ContextId> {
        None
    }

    /// As [`NetworkFunction::unsettled`], for a block that leaves for another instance: replies and responses do not follow it, so that
    /// a procedure that waits for one would end.
    fn unsettled_for_instance(&self, block: BlockId) -> Option<ContextId> {
        self.unsettled(block)
    }

    /// Whether that context still cannot pass.
    fn is_unsettled(&self, _id: ContextId) -> bool {
        false
    }

    /// Gives away the contexts of a block, with their timers, which are stopped.
    fn pass_block(&mut self, _now: Instant, _block: BlockId, _out: &mut Outbox) -> PassedPart {
        PassedPart::default()
    }

    /// Takes the contexts of a block that another shard has given away: they go on where they are.
    fn take_block(&mut self, _now: Instant, _block: BlockId, _part: PassedPart, _out: &mut Outbox) {}

    /// Instances of the process's set have come or gone.
    fn change_instances(&mut self, _instances: &Arc<SetInstances>) {}

    /// The block is to be released to another instance: what its UEs have at gNBs of this one ends, as soon as they are in no procedure.
    fn make_idle(&mut self, _now: Instant, _block: BlockId, _out: &mut Outbox) {}

    /// The shard has got a block that another instance had, whose contexts follow from their documents
    /// ([`NetworkFunction::restore_context`]).
    fn adopt_block(&mut self, _block: BlockId) {}

    /// All contexts of adopted blocks were restored.
    fn resume_adopted(&mut self, now: Instant, out: &mut Outbox) {
        self.resume_restored(now, true, out);
    }

    /// The NG connections of a block.
    fn connections_of(&self, _block: BlockId) -> Vec<MovedConnection> {
        Vec::new()
    }

    /// The owner in the tags of calls for a context.
    fn key_of(&self, _id: ContextId) -> Option<u64> {
        None
    }

    /// A UE address in this shard's blocks was released or used at another shard.
    fn note_address(&mut self, _news: AddressNews) {}

    /// What the owners of these blocks must know of their UE addresses.
    fn take_address_news(&mut self) -> Vec<(BlockId, AddressNews)> {
        Vec::new()
    }

    /// UE addresses of this shard's blocks that sessions of other shards have.
    fn addresses_elsewhere(&self) -> Vec<IpAddr> {
        Vec::new()
    }

    /// All changes that were stored so far are written.
    fn note_written(&mut self) {
        if let Some(tracker) = self.tracker_mut() {
            tracker.note_written();
        }
    }

    /// While the store fails: whether a message must not leave, because the next process could send another one with the same NAS COUNT.
    fn withholds(&self, _message: &N2Effect) -> bool {
        false
    }

    /// Whether a store does not take changes at present.
    fn is_store_failing(&self) -> bool {
        self.tracker().is_some_and(Tracker::is_failing)
    }

    /// Number of contexts in a block.
    fn contexts_in(&self, _block: BlockId) -> usize {
        0
    }
}

/// The contexts of a former run that an input needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// None that is not restored.
    Nothing,
    /// This one.
    Context(ContextId),
    /// All of a block: one of them may have what the input names.
    Block(BlockId),
    /// All: one of them may have what the input names, or allocates.
    All,
}

/// What becomes of a context that is taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It goes on.
    GoesOn,
    /// It releases what it has at other NFs, and ends: its steps panicked repeatedly.
    Ends,
}

/// Gives an NF an input. In debug builds it checks that no answer is lost: each request that the NF received is
/// answered, or the NF counts it as not answered yet.
pub fn deliver(function: &mut dyn NetworkFunction, now: Instant, input: Input, out: &mut Outbox) {
    if !cfg!(debug_assertions) {
        return function.handle(now, input, out);
    }
    let requested = usize::from(matches!(input, Input::Request { .. }));
    let (owed, answered) = (function.replies_owed(), out.answers());
    function.handle(now, input, out);
    if let (Some(before), Some(after)) = (owed, function.replies_owed()) {
        let answered = out.answers() - answered;
        debug_assert_eq!(
            before + requested,
            after + answered,
            "requests owed before and taken, owed after and answered"
        );
    }
}

/// State that an operator can request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Inspect {
    /// UE contexts of the AMF.
    Ues,
    /// SM contexts of the SMF.
    Sessions,
    /// NF instances that the NRF knows.
    Instances,
    /// The shard itself: its blocks and contexts.
    Shard,
}

/// A part of a list, so that no operator's request keeps a shard busy for long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The first entry: 0, or what the page before returned.
    pub first: u32,
    /// Entries at most.
    pub limit: u32,
    /// Only those of this subscriber.
    pub supi: Option<Supi>,
}

impl Page {
    /// Everything.
    pub const ALL: Self = Self { first: 0, limit: u32::MAX, supi: None };
}

/// An operator's action. Each shard carries it out on its own UEs and sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Order {
    /// AMF: deregisters subscribers (TS 23.502 4.2.2.3.3: by O&M intervention).
    Deregister { supis: Arc<[Supi]>, why: Deregister },
    /// AMF: requests a UE's gNB to report the UE's location (TS 38.413 8.12.1). The entry has a `refusal`; null means that the gNB was
    /// requested.
    Locate { supi: Supi },
    /// AMF: resets the interface to the gNB of this Global RAN Node ID, `999/70-gnb-000001`, or name (TS 38.413 8.7.4.2.1).
    ResetGnb { gnb: String },
    /// AMF: changes the Relative AMF Capacity until the next start (TS 38.413 8.7.3).
    Capacity(u8),
    /// AMF: changes the weight of an N2 endpoint until the next start, or has gNBs remove their associations with it (TS 38.413 8.7.3).
    Endpoint { address: IpAddr, weight: Option<u8> },
    /// SMF: inserts an uplink classifier and a local PSA into a session (TS 23.502 4.3.5.4). The
    /// entry has a `refusal`; null means that the insertion has started.
    Branch {
        supi: Supi,
        pdu_session_id: u8,
        /// Name of the UPF.
        upf: String,
        /// Destinations of packets that leave at the local PSA: network and prefix length.
        destinations: Vec<(Ipv4Addr, u8)>,
    },
    /// SMF: removes the uplink classifier (TS 23.502 4.3.5.5); the entry is as for `Branch`.
    Unbranch { supi: Supi, pdu_session_id: u8 },
    /// PCF: adds or replaces a PCC rule of a session (TS 29.512 4.2.3). The entry has a `refusal`; null means that the SMF is notified.
    AddRule { supi: Supi, pdu_session_id: u8, rule: PolicyRule },
    /// UDR: notifies the UDM of subscribers that have changed in the database.
    NotifyChanges,
    /// PCF: removes such a rule; the entry is as for `AddRule`.
    RemoveRule { supi: Supi, pdu_session_id: u8, name: String },
}

/// A PCC rule that an operator adds to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRule {
    /// Its name in the session: letters, digits, `-` and `_`, at most 64.
    pub name: String,
    /// 5QI (TS 23.501 5.7.4).
    pub five_qi: u8,
    /// Priority level of ARP, 1 to 15.
    pub priority_level: u8,
    /// Rules with lower values are evaluated first, 1 to 254.
    pub precedence: u8,
    /// Guaranteed bit rates, of a GBR 5QI.
    pub guaranteed: Option<Ambr>,
    /// Maximum bit rates; by default the guaranteed ones.
    pub maximum: Option<Ambr>,
    /// Flow descriptions, such as `permit out 17 from 192.0.2.9 5004 to assigned` (TS 29.212 5.4.2), 1 to 15.
    pub flows: Vec<String>,
    /// Whether the UE derives its QoS rules from downlink packets (reflective QoS), in place of getting the flows.
    pub reflective: bool,
}

/// Why an operator deregisters a subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deregister {
    /// The UE must register again.
    Anew,
    /// The subscription is withdrawn.
    Withdrawn,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::{Level, PendingReply};
    use crate::testing::CALLER;
    use pith_sbi::nudm_sdm::GetSmData;

    /// An NF that keeps one reply, and loses every other.
    #[derive(Default)]
    struct Forgetful(Option<PendingReply>);

    impl NetworkFunction for Forgetful {
        fn handle(&mut self, _now: Instant, input: Input, _out: &mut Outbox) {
            if let Input::Request { reply, .. } = input {
                self.0.get_or_insert(reply);
            }
        }

        fn replies_owed(&self) -> Option<usize> {
            Some(self.0.iter().count())
        }
    }

    fn request() -> Input {
        let query = GetSmData { supi: crate::testing::supi(), single_nssai: None, dnn: None, plmn_id: None };
        Input::Request { reply: PendingReply::owed_to(CALLER), request: query.into() }
    }

    #[test]
    #[should_panic(expected = "requests owed before and taken")]
    fn a_lost_reply_is_found() {
        let (mut nf, mut out) = (Forgetful::default(), Outbox::new(Level::Info));
        deliver(&mut nf, Instant::default(), request(), &mut out);
        assert_eq!(nf.replies_owed(), Some(1), "the first is owed");
        deliver(&mut nf, Instant::default(), request(), &mut out);
    }
}
