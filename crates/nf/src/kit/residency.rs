//! What a shell must know of contexts to store them (design section 6): which changed, their documents, and how they return at a
//! start.
//!
//! ```text
//!  step on a context ──> Tracker ──┐ end of a turn
//!                                  └─> NetworkFunction::store_contexts ──> DocumentSink ──> store, then the turn's sends
//!  start ──> NetworkFunction::restore_context, once a document ──> resume_contexts
//! ```
//!
//! An NF that no shell asks to track its contexts records and packs nothing.

use super::document::Document;
use super::{Nf, ProcedureName};
use foldhash::fast::FixedState;
use pith_types::{BlockId, ContextId, Supi};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The stable name of a stored context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoredKey {
    /// The NF.
    pub nf: Nf,
    /// The context.
    pub id: ContextId,
}

/// Receives the changes of stored contexts.
pub trait DocumentSink {
    /// The document replaces the stored one. `ue` is the subscriber whose context it is, if it is of one.
    fn write(&mut self, key: StoredKey, ue: Option<&Supi>, document: &Document);

    /// The context has ended.
    fn delete(&mut self, key: StoredKey);

    /// After a restart the next document is restored before others: its context is in use at a gNB or UPF.
    fn restore_first(&mut self) {}

    /// The procedure of the changes that follow.
    fn begin_procedure(&mut self, _procedure: ProcedureName) {}
}

/// Which contexts are stored at the end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreScope {
    /// All that changed and whose transaction is over.
    Changed,
    /// Only those that must be stored before the sends of the turn: ended contexts, and UEs whose reserved NAS COUNTs are used
    /// up.
    Required,
}

/// How contexts are stored.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tracking {
    /// Downlink NAS COUNTs that a document reserves: those of messages that are sent before the next write, or while the store fails.
    pub reserved_counts: u32,
    /// Documents have all that [`super::NetworkFunction::put_context`] needs to continue in the middle of a procedure: the state,
    /// the NG connection, and exact COUNTs. For stores from which contexts are read again in the same run.
    pub whole: bool,
    /// A UE in a procedure keeps the document from before the procedure, as long as that is sufficient.
    pub by_procedure: bool,
    /// Documents are written some time after the changes.
    pub is_late: bool,
}

impl Tracking {
    /// Whether messages leave before the changes that they report are stored: after a panic the UE, gNB and UPF may be ahead of the
    /// document.
    pub const fn may_lag(&self) -> bool {
        self.is_late || self.by_procedure
    }
}

/// The contexts of one NF that changed, and those that have a document.
#[derive(Debug, Default)]
pub struct Tracker {
    tracking: Option<Tracking>,
    changed: Vec<Change>,
    required: Vec<Change>,
    /// The contexts with a document. The ids are random and of this shard, so a fast hash is safe.
    stored: HashMap<ContextId, Reserved, FixedState>,
    /// Writes fail at present.
    is_failing: bool,
    /// The contexts of all changes since the last [`Tracker::take_touched`].
    touched: Vec<ContextId>,
    /// Contexts that were read from documents and written since; it is not known yet whether a write has succeeded.
    unconfirmed: BTreeSet<ContextId>,
    /// Contexts that are stored also in a transaction ([`Tracker::require_in_transaction`], [`Tracker::note_all`]).
    in_transaction: BTreeSet<ContextId>,
    /// With `procedural` instead: contexts that are stored when their procedure is over, also in a transaction.
    after_procedure: BTreeSet<ContextId>,
    /// Contexts whose keys are those of another document, or whose document is about to be deleted, with the lowest COUNT that this document
    /// does not reserve. It is not known yet whether a write or a deletion has succeeded: else the next process has that document.
    inherited: BTreeMap<ContextId, u32>,
    /// A COUNT was used that no document reserves: since the last [`Tracker::take_awaited`].
    is_awaited: bool,
}

/// A context that changed, and the procedure that changed it.
pub type Change = (ContextId, ProcedureName);

/// Downlink NAS COUNTs between two writes of a context that an engine with a thread of its own may have begun, and that both fail.
const COUNTS_IN_FLIGHT: u32 = 4;

/// Downlink NAS COUNTs that a document reserves ([`Tracking::reserved_counts`]): a UE gets fewer messages between two writes, and some
/// while the store fails.
pub const RESERVED_COUNTS: u32 = 16;

/// A context with a document: the lowest downlink NAS COUNT that the document does not reserve (AMF; else 0).
#[derive(Debug, Clone, Copy, Default)]
struct Reserved {
    /// Of the last write, which may have failed.
    last: u32,
    /// Of the write before.
    former: u32,
    /// The procedure that changed the context last.
    procedure: ProcedureName,
    /// No write has succeeded for certain since the context was read: all that its document reserves may have been used.
    is_read: bool,
    /// A UE that is connected without a procedure in progress, according to its document.
    is_at_rest: bool,
}

impl Tracker {
    /// Records changes from now on.
    pub fn start(&mut self, tracking: Tracking) {
        self.tracking = Some(tracking);
    }

    /// How contexts are stored; `None` if they are not.
    pub const fn tracking(&self) -> Option<&Tracking> {
        self.tracking.as_ref()
    }

    /// Records a change by a procedure; `None`: by the same as the last change.
    pub fn note_change(&mut self, id: ContextId, procedure: Option<ProcedureName>) {
        if self.tracking.is_some() {
            let procedure = self.procedure_of(id, procedure);
            self.changed.push((id, procedure));
            self.touched.push(id);
        }
    }

    /// The procedure of a change, which is that of later changes, too, whose procedure is not known.
    fn procedure_of(&mut self, id: ContextId, procedure: Option<ProcedureName>) -> ProcedureName {
        match (self.stored.get_mut(&id), procedure) {
            (Some(reserved), Some(procedure)) => {
                reserved.procedure = procedure;
                procedure
            }
            (Some(reserved), None) => reserved.procedure,
            (None, procedure) => procedure.unwrap_or_default(),
        }
    }

    /// A context stays recorded as changed, because its transaction goes on.
    pub fn keep_change(&mut self, change: Change) {
        self.changed.push(change);
    }

    /// The contexts of all changes since the last [`Tracker::take_touched`], in order.
    pub fn touched(&self) -> &[ContextId] {
        &self.touched
    }

    /// Adds the contexts of all changes since the last call to a list.
    pub fn take_touched(&mut self, list: &mut Vec<ContextId>) {
        list.append(&mut self.touched);
    }

    /// Records that a context must be stored at the end of the turn; `None`: because of the procedure that changed it last.
    pub fn require(&mut self, id: ContextId, procedure: Option<ProcedureName>) {
        if self.tracking.is_some() {
            let procedure = self.procedure_of(id, procedure);
            self.required.push((id, procedure));
        }
    }

    /// Records that the next write of a context does not wait for the end of its transaction: others have got what its document lacks. With
    /// `procedural` it waits for the end of the procedure ([`Tracker::is_required_after_procedure`]).
    pub fn require_in_transaction(&mut self, id: ContextId) {
        match self.tracking {
            Some(tracking) if tracking.by_procedure => self.after_procedure.insert(id),
            Some(_) => self.in_transaction.insert(id),
            None => false,
        };
    }

    /// Whether the context is stored also in a transaction.
    pub fn is_required_in_transaction(&self, id: ContextId) -> bool {
        self.in_transaction.contains(&id)
    }

    /// Whether the context is stored also in a transaction, if it is in no procedure.
    pub fn is_required_after_procedure(&self, id: ContextId) -> bool {
        self.after_procedure.contains(&id)
    }

    /// Records that a context must be stored, and that no message of the turn leaves before: one has a COUNT that no document reserves.
    pub fn await_stored(&mut self, id: ContextId, procedure: Option<ProcedureName>) {
        self.is_awaited |= self.tracking.is_some();
        self.require(id, procedure);
    }

    /// Whether messages wait until the contexts that must be stored are written, also if others leave before ([`Tracking::is_late`]).
    pub const fn take_awaited(&mut self) -> bool {
        std::mem::replace(&mut self.is_awaited, false)
    }

    /// Whether contexts must be stored at the end of the turn.
    pub const fn has_required(&self) -> bool {
        !self.required.is_empty()
    }

    /// Records that a procedure ended a context.
    pub fn note_end(&mut self, id: ContextId, procedure: ProcedureName) {
        if self.stored.contains_key(&id) {
            self.required.push((id, procedure));
        }
    }

    /// The contexts of a scope, each once.
    pub fn take(&mut self, scope: StoreScope) -> Vec<Change> {
        let mut changes = std::mem::take(&mut self.required);
        if scope == StoreScope::Changed {
            changes.append(&mut self.changed);
        }
        if changes.len() > 1 {
            changes.sort_unstable();
            changes.dedup_by_key(|(id, _)| *id);
        }
        changes
    }

    /// A context has got the keys of another one, whose document is deleted in this turn.
    pub fn inherit(&mut self, id: ContextId, from: ContextId) {
        if let Some(below) = self.certain_below(from) {
            self.inherited.insert(id, below);
        }
    }

    /// A context ends, whose next COUNT would be this one.
    pub fn note_last(&mut self, id: ContextId, next: u32) {
        if let Some(below) = self.certain_below(id).filter(|below| next > *below) {
            self.inherited.insert(id, below);
            self.is_awaited = true;
        }
    }

    /// The lowest COUNT that a document of a context's keys does not reserve, as far as that is certain.
    fn certain_below(&self, id: ContextId) -> Option<u32> {
        let of_stored = |it: &Reserved| match it {
            it if it.is_read => it.former,
            it if self.is_failing => it.former.min(it.last),
            it => it.last,
        };
        self.inherited.get(&id).copied().or_else(|| self.stored.get(&id).map(of_stored))
    }

    /// Records that a context has a document, which reserves the COUNTs below this one.
    pub fn note_stored(&mut self, id: ContextId, counts_below: u32) {
        self.in_transaction.remove(&id);
        self.after_procedure.remove(&id);
        // If the first write fails, the context has no document, and a restart loses its keys, unless another document has them.
        let inherited = if self.stored.contains_key(&id) { None } else { self.inherited.remove(&id) };
        let first = Reserved {
            last: counts_below,
            former: inherited.unwrap_or(counts_below),
            procedure: ProcedureName::Other,
            is_read: inherited.is_some(),
            is_at_rest: false,
        };
        let reserved = self.stored.entry(id).or_insert(first);
        if reserved.is_read {
            self.unconfirmed.insert(id);
        } else if !self.is_failing {
            reserved.former = reserved.last;
        }
        reserved.last = counts_below;
    }

    /// Records that a context was read from its document. COUNTs from this one on are not reserved until the context is written.
    pub fn note_read(&mut self, id: ContextId, counts_below: u32) {
        let (last, procedure) = (counts_below, ProcedureName::Other);
        let reserved = Reserved { last, former: last, procedure, is_read: true, is_at_rest: false };
        self.stored.insert(id, reserved);
    }

    /// Records whether the document of a UE says that it is connected without a procedure in progress: the next process may keep its
    /// connection.
    pub fn note_at_rest(&mut self, id: ContextId, is_at_rest: bool) {
        if let Some(reserved) = self.stored.get_mut(&id) {
            reserved.is_at_rest = is_at_rest;
        }
    }

    /// As recorded by [`Tracker::note_at_rest`].
    pub fn is_at_rest(&self, id: ContextId) -> bool {
        self.stored.get(&id).is_some_and(|reserved| reserved.is_at_rest)
    }

    /// All writes so far have succeeded.
    pub fn note_written(&mut self) {
        self.inherited.clear();
        for id in std::mem::take(&mut self.unconfirmed) {
            if let Some(reserved) = self.stored.get_mut(&id) {
                (reserved.former, reserved.is_read) = (reserved.last, false);
            }
        }
    }

    /// While writes fail: whether the COUNTs below this one are in part reserved by no document. The next process that reads the document
    /// would use them, too.
    pub fn is_unreserved(&self, id: ContextId, next: u32) -> bool {
        // A document of what has ended reserves none.
        let former = || self.stored.get(&id).map(|it| it.former).filter(|former| *former > 0);
        self.is_failing && self.inherited.get(&id).copied().or_else(former).is_some_and(|below| next > below)
    }

    /// Records that a context no longer has a document; returns whether it had one.
    pub fn note_deleted(&mut self, id: ContextId) -> bool {
        self.in_transaction.remove(&id);
        self.after_procedure.remove(&id);
        self.stored.remove(&id).is_some()
    }

    /// Records the next COUNT of a context without a document. If another document of its keys does not reserve the one before, the messages of
    /// the turn wait for its deletion.
    pub fn note_count(&mut self, id: ContextId, next: u32) {
        self.is_awaited |= self.inherited.get(&id).is_some_and(|below| next > *below);
    }

    /// The lowest COUNT that the document of a context does not reserve; `None` without a document.
    pub fn counts_below(&self, id: ContextId) -> Option<u32> {
        self.stored.get(&id).map(|reserved| reserved.last)
    }

    /// While writes fail: the lowest COUNT that no document of a context reserves, so that it must not be used. `None` while writes
    /// succeed, and for a context without a document.
    pub fn counts_end(&self, id: ContextId) -> Option<u32> {
        if !self.is_failing {
            return None;
        }
        let stored = self.stored.get(&id).map(|reserved| reserved.last.min(reserved.former));
        let below = stored.or_else(|| self.inherited.get(&id).copied())?;
        Some(below.saturating_sub(COUNTS_IN_FLIGHT))
    }

    /// Whether writes fail from now on.
    pub fn note_failing(&mut self, is_failing: bool) {
        if self.is_failing && !is_failing {
            self.note_written();
            self.stored.values_mut().for_each(|reserved| reserved.former = reserved.last);
        }
        self.is_failing = is_failing;
    }

    /// Whether writes fail at present.
    pub const fn is_failing(&self) -> bool {
        self.is_failing
    }

    /// Whether a context has a document, perhaps of a former state.
    pub fn has_document(&self, id: ContextId) -> bool {
        self.stored.contains_key(&id)
    }

    /// Whether a context has a document, and did not change since.
    pub fn is_current(&self, id: ContextId) -> bool {
        let is_among = |changes: &[Change]| changes.iter().any(|(changed, _)| *changed == id);
        self.stored.contains_key(&id) && !is_among(&self.changed) && !is_among(&self.required)
    }

    /// All contexts with a document count as changed: the store may have lost some. In a transaction, too: the document of the one before may be
    /// lost, and a former one be there.
    pub fn note_all(&mut self) {
        self.changed.extend(self.stored.keys().map(|id| (*id, ProcedureName::Other)));
        self.in_transaction.extend(self.stored.keys());
    }

    /// The contexts of a block pass to another shard: they are no longer recorded here.
    pub fn forget_block(&mut self, block: BlockId) {
        self.changed.retain(|(id, _)| id.block != block);
        self.required.retain(|(id, _)| id.block != block);
        self.stored.retain(|id, _| id.block != block);
        self.in_transaction.retain(|id| id.block != block);
        self.after_procedure.retain(|id| id.block != block);
        self.inherited.retain(|id, _| id.block != block);
    }

    /// A context came from another shard; `stored` is what that one's document reserves, if there is one. It is stored before the next
    /// message leaves, so that the new owner's documents are those of the block.
    pub fn note_passed(&mut self, id: ContextId, stored: Option<u32>) {
        if self.tracking.is_some() {
            if let Some(counts_below) = stored {
                self.note_stored(id, counts_below);
                // That is not known.
                self.note_at_rest(id, true);
            }
            self.changed.push((id, ProcedureName::Other));
            self.required.push((id, ProcedureName::Other));
        }
    }

    /// The store did not take a change: the context counts as changed, or as one to be deleted. In a transaction, too
    /// ([`Tracker::require_in_transaction`]): others may rely on what was to be written.
    pub fn note_failure(&mut self, id: ContextId) {
        let procedure = self.stored.entry(id).or_default().procedure;
        self.changed.push((id, procedure));
        self.require_in_transaction(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> ContextId {
        ContextId::from_u64(number).unwrap()
    }

    #[test]
    fn a_tracker_that_was_not_started_records_nothing() {
        let mut tracker = Tracker::default();
        tracker.note_change(id(1), None);
        tracker.require(id(1), None);
        tracker.note_end(id(1), ProcedureName::Other);
        assert_eq!(tracker.take(StoreScope::Changed), []);
        assert_eq!((tracker.changed.capacity(), tracker.required.capacity()), (0, 0), "nothing is allocated");
    }

    #[test]
    fn while_writes_fail_only_counts_of_the_former_document_are_used() {
        let mut tracker = Tracker::default();
        tracker.start(Tracking { reserved_counts: 16, ..Tracking::default() });
        tracker.note_stored(id(1), 20);
        assert_eq!(tracker.counts_end(id(1)), None);
        tracker.note_stored(id(1), 30);
        tracker.note_failing(true);
        tracker.note_failure(id(1));
        assert_eq!((tracker.counts_end(id(1)), tracker.counts_end(id(2))), (Some(16), None));
        tracker.note_stored(id(1), 40);
        assert_eq!(tracker.counts_end(id(1)), Some(16), "an attempt that may fail, too");
        tracker.note_failing(false);
        assert_eq!((tracker.counts_end(id(1)), tracker.counts_below(id(1))), (None, Some(40)));
        tracker.note_failing(true);
        assert_eq!(tracker.counts_end(id(1)), Some(36), "the attempt succeeded");
    }

    #[test]
    fn a_write_that_failed_is_repeated_in_a_transaction_too() {
        let mut tracker = Tracker::default();
        tracker.start(Tracking::default());
        tracker.note_stored(id(1), 0);
        tracker.note_all();
        assert!(tracker.is_required_in_transaction(id(1)));
        tracker.note_stored(id(1), 0);
        assert!(!tracker.is_required_in_transaction(id(1)), "the attempt may succeed");
        tracker.note_failure(id(1));
        assert!(tracker.is_required_in_transaction(id(1)));
        tracker.note_deleted(id(1));
        assert!(!tracker.is_required_in_transaction(id(1)));
    }

    #[test]
    fn what_was_read_reserves_nothing_until_it_is_written() {
        let mut tracker = Tracker::default();
        tracker.start(Tracking { reserved_counts: 16, ..Tracking::default() });
        tracker.note_read(id(1), 20);
        tracker.note_stored(id(1), 37);
        tracker.note_stored(id(1), 38);
        assert!(!tracker.is_unreserved(id(1), 21), "writes do not fail, as far as is known");
        tracker.note_failing(true);
        let unreserved = [20, 21].map(|next| tracker.is_unreserved(id(1), next));
        assert_eq!((unreserved, tracker.counts_end(id(1))), ([false, true], Some(16)));
        tracker.note_failing(false);
        tracker.note_failing(true);
        assert_eq!((tracker.is_unreserved(id(1), 38), tracker.counts_end(id(1))), (false, Some(34)));
        tracker.note_read(id(2), 20);
        tracker.note_failing(false);
        tracker.note_stored(id(2), 37);
        tracker.note_written();
        tracker.note_stored(id(2), 40);
        tracker.note_failing(true);
        assert_eq!((tracker.is_unreserved(id(2), 30), tracker.counts_end(id(2))), (false, Some(33)));
    }

    #[test]
    fn the_keys_of_another_document_reserve_what_that_one_does() {
        let mut tracker = Tracker::default();
        tracker.start(Tracking { reserved_counts: 16, ..Tracking::default() });
        tracker.note_read(id(1), 20);
        tracker.note_last(id(1), 21);
        tracker.inherit(id(2), id(1));
        assert!(tracker.note_deleted(id(1)));
        tracker.note_stored(id(2), 37);
        tracker.note_failing(true);
        let unreserved = [(1, 21), (2, 21), (2, 20)].map(|(of, next)| tracker.is_unreserved(id(of), next));
        assert_eq!((unreserved, tracker.counts_end(id(2))), ([true, true, false], Some(16)));
        tracker.note_failing(false);
        tracker.note_failing(true);
        assert_eq!((tracker.is_unreserved(id(2), 30), tracker.counts_end(id(2))), (false, Some(33)));
        tracker.note_read(id(3), 20);
        tracker.inherit(id(4), id(3));
        assert_eq!(tracker.counts_end(id(4)), Some(16), "not stored yet");
        tracker.note_failing(false);
        tracker.note_failing(true);
        assert_eq!(tracker.counts_end(id(4)), None, "no document has its keys");
    }

    #[test]
    fn a_context_is_stored_once_and_its_end_is_required_if_it_has_a_document() {
        let mut tracker = Tracker::default();
        tracker.start(Tracking::default());
        tracker.note_stored(id(1), 0);
        for changed in [id(2), id(2), id(1)] {
            tracker.note_change(changed, None);
        }
        tracker.note_end(id(1), ProcedureName::Deregistration);
        tracker.note_end(id(3), ProcedureName::Other);
        assert_eq!(tracker.take(StoreScope::Required), [(id(1), ProcedureName::Deregistration)]);
        let other = |number| (id(number), ProcedureName::Other);
        assert_eq!(tracker.take(StoreScope::Changed), [other(1), other(2)]);
        assert!(tracker.note_deleted(id(1)) && !tracker.note_deleted(id(1)));
    }

    #[test]
    fn a_change_counts_for_its_procedure_or_that_of_the_change_before() {
        let mut tracker = Tracker::default();
        tracker.start(Tracking::default());
        tracker.note_stored(id(1), 0);
        tracker.note_change(id(1), Some(ProcedureName::ServiceRequest));
        assert_eq!(tracker.take(StoreScope::Changed), [(id(1), ProcedureName::ServiceRequest)]);
        tracker.note_change(id(1), None);
        assert_eq!(tracker.take(StoreScope::Changed), [(id(1), ProcedureName::ServiceRequest)]);
        tracker.note_change(id(1), Some(ProcedureName::AnRelease));
        tracker.note_change(id(1), Some(ProcedureName::Registration));
        tracker.note_change(id(2), None);
        let changes = tracker.take(StoreScope::Changed);
        assert_eq!(changes, [(id(1), ProcedureName::Registration), (id(2), ProcedureName::Other)]);
    }
}
