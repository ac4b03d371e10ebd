//! The contexts in the blocks of a shard as documents: what changed in a turn is written with one request, before the sends of the turn
//! (`durable`), or some milliseconds later (`soft`).
//!
//! ```text
//!  inputs ──> Shard.handle ──> effects, held
//!  end of the turn ──> Shard.store_contexts ──> Batch ──> Engine::append ──> effects leave
//!  start ──> Shard.restore_context, once a document, the first ones before the shard serves (`on_demand`)
//! ```
//!
//! If the engine fails (disk full, no server), the contexts count as changed, and serving goes on: the next attempt is a second
//! later. Until one succeeds, UEs that have no context are rejected with a back-off time.

mod on_demand;
mod restoring;
mod taking_over;
mod writing;

use super::costs::Accounts;
use super::health::Slot;
use super::loads::{Finding, Loads};
use super::merging;
use super::shared::{OwnSections, SharedDocuments, SharedLoad, contexts_in};
use super::written::{Changes, WrittenSections};
use super::{
    Batch, Document as StoredDocument, DocumentError, DocumentKey, DocumentKind, DocumentSecret, Engine,
    EngineError, Head, MAX_BATCH, OwnerVersion, Revision, SectionId, Sequence, StoreHealth,
};
use crate::lease::LeaseGuard;
use pith_nf::fabric::{Keeps, Shard, ShardEffect, ShardInput};
use pith_nf::kit::document::{Document, UnpackError};
use pith_nf::kit::{
    Caller, DocumentSink, Duration, Fate, Instant, N4Input, Nf, ProcedureName, RESERVED_COUNTS, StoreScope,
    StoredKey, Tracking,
};
use pith_types::{BlockId, BlockMove, ContextId, Supi};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use writing::Turn;

/// The longest time until a change is written with `soft`: the registration of a UE under load takes about as long, so that its
/// context is written once.
const SOFT_DELAY: Duration = Duration::from_millis(200);

/// A document that was read for an NF.
type ReadContext = (Nf, DocumentKey, Result<StoredDocument, DocumentError>);

/// Time until the next attempt after the engine failed.
const RETRY: Duration = Duration::from_secs(1);

/// Contexts that a start leaves out at most: each requires that all are restored again.
const MAX_LEFT_OUT: usize = 16;

/// Kinds of documents of NFs that store contexts, in the order in which they are restored.
pub(super) const KINDS: [(DocumentKind, Nf); 5] = [
    (DocumentKind::Nrf, Nf::Nrf),
    (DocumentKind::Ausf, Nf::Ausf),
    (DocumentKind::Pcf, Nf::Pcf),
    (DocumentKind::Smf, Nf::Smf),
    (DocumentKind::Amf, Nf::Amf),
];

/// The only version of the layout of sections: as the NFs pack them.
pub(super) const LAYOUT: u16 = 1;

/// A context that was read; `None`: its document is lost.
pub type Loaded = (StoredKey, Option<Document>);

/// When changes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteTime {
    /// Before the sends of the turn.
    BeforeSends,
    /// At most [`SOFT_DELAY`] later, several turns together.
    Later,
}

/// How contexts are stored, and whether the process keeps copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreMode {
    /// When changes are written.
    pub time: WriteTime,
    /// What is written.
    pub form: WriteForm,
    /// UEs in a procedure keep their former document as long as it is sufficient.
    pub is_procedural: bool,
    /// Copies are dropped after each transaction, and read again at the next message.
    pub drops_copies: bool,
}

impl StoreMode {
    /// Whole documents at that time; the process keeps its copies.
    pub const fn of_time(time: WriteTime) -> Self {
        Self { time, form: WriteForm::Replace, is_procedural: false, drops_copies: false }
    }

    const fn tracking(self) -> Tracking {
        Tracking {
            reserved_counts: RESERVED_COUNTS,
            whole: self.drops_copies,
            by_procedure: self.is_procedural,
            is_late: matches!(self.time, WriteTime::Later),
        }
    }
}

/// What a change of a stored context writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteForm {
    /// The whole document.
    Replace,
    /// The sections that changed.
    Update,
}

/// The store of one shard's contexts.
pub struct ContextStore {
    blocks: Vec<BlockId>,
    engine: Box<dyn Engine>,
    mode: StoreMode,
    /// The engine reports failures later, too.
    has_late_results: bool,
    health: Arc<StoreHealth>,
    slot: Slot,
    batch: Batch,
    /// The contexts in the batch, each with the place of its change.
    keys: Vec<(usize, StoredKey)>,
    /// The procedure and size of each change in the batch.
    sizes: Vec<(ProcedureName, usize)>,
    /// Costs by procedure.
    accounts: Accounts,
    /// The sections that the engine has, with [`WriteForm::Update`].
    written: Option<WrittenSections>,
    revision: u64,
    /// Documents of this process have higher revisions.
    first: Revision,
    last: Sequence,
    /// What was durable when failures were taken last: later writes may have failed.
    seen: Sequence,
    has_changes: bool,
    /// When changes are written, with [`WriteTime::Later`]; `None` if there is no change.
    due: Option<Instant>,
    /// Present from a failure until changes are stored again.
    outage: Option<Outage>,
    /// Contexts that were written in this turn, if copies are dropped.
    stored: Vec<StoredKey>,
    /// Contexts whose copies are dropped when the write of that number is durable.
    dropping: VecDeque<(Sequence, Vec<StoredKey>)>,
    loads: Loads,
    /// Present if all NFs have one document for a UE.
    shared: Option<SharedDocuments>,
    /// Contexts that were read, or found in a copy.
    loaded: Vec<Loaded>,
    /// The last write and the last durable one when counters were reported.
    reported: (Sequence, Sequence),
    /// The context whose document is being restored or taken over.
    reading: Option<StoredKey>,
    /// Contexts with which the shard panicked at the start: they are not restored.
    left_out: BTreeSet<StoredKey>,
    /// Contexts that this attempt to restore them has restored.
    restored: u64,
    /// What is restored while the shard serves.
    restoring: on_demand::Restoring,
    /// The version of the owner in each write, once the blocks are claimed: a fencing token.
    owner: Option<OwnerVersion>,
    /// Another process has claimed the blocks since.
    is_fenced: bool,
    /// Present in a set of instances.
    lease: Option<LeaseGuard>,
}

/// The engine does not store changes.
#[derive(Debug, Clone, Copy)]
struct Outage {
    /// When the next attempt is made.
    retry: Instant,
    /// The write of the current attempt.
    attempt: Option<Sequence>,
    /// The engine can't read documents, either.
    stops_reading: bool,
}

impl ContextStore {
    /// The store of a shard with these blocks. `started` is the wall clock at the process's start, in seconds since 1970.
    pub fn new(
        blocks: Vec<BlockId>,
        engine: Box<dyn Engine>,
        mode: StoreMode,
        started: u64,
        health: Arc<StoreHealth>,
    ) -> Self {
        let slot = health.add_shard();
        Self {
            blocks,
            has_late_results: engine.has_late_results(),
            engine,
            mode,
            health,
            slot,
            batch: Batch::new(OwnerVersion::default()),
            owner: None,
            is_fenced: false,
            lease: None,
            keys: Vec::new(),
            sizes: Vec::new(),
            accounts: Accounts::default(),
            written: (mode.form == WriteForm::Update).then(WrittenSections::default),
            // Higher than in any former run, unless the clock was set back; see `restore`.
            revision: started << 20,
            first: Revision(started << 20),
            last: Sequence(0),
            seen: Sequence(0),
            has_changes: false,
            due: None,
            outage: None,
            stored: Vec::new(),
            dropping: VecDeque::new(),
            loads: Loads::default(),
            shared: None,
            loaded: Vec::new(),
            reported: (Sequence(0), Sequence(0)),
            reading: None,
            left_out: BTreeSet::new(),
            restored: 0,
            restoring: on_demand::Restoring::default(),
        }
    }

    /// Keeps the contexts of all NFs for a UE in one document, whose key follows from SUPI and secret.
    #[must_use]
    pub fn with_shared_documents(mut self, secret: DocumentSecret) -> Self {
        self.shared = Some(SharedDocuments::new(secret, self.mode.form));
        // Copies say what the store has.
        self.written = None;
        self
    }

    /// As `with_shared_documents`; documents travel in requests between processes, too.
    #[must_use]
    pub fn with_embedded_documents(mut self, secret: DocumentSecret) -> Self {
        let shared = SharedDocuments::new(secret.clone(), self.mode.form).embedding(secret);
        (self.shared, self.written) = (Some(shared), None);
        self
    }

    /// Takes what concerns stored contexts from an input, before the shard handles it: the document that it brings, and a UPF's refusal
    /// that shows another owner.
    pub fn receive(&mut self, input: &mut ShardInput) {
        match input {
            ShardInput::N4(input) => self.note_refusal(input),
            ShardInput::Request { from, request, .. } => {
                let Some(sealed) = request.take_embedded() else { return };
                if let (Caller::Remote { exchange, .. }, Some(shared)) = (from, &mut self.shared) {
                    self.health.note_embedded(&shared.adopt(*exchange, request.operation(), &sealed.0));
                }
            }
            ShardInput::Reply { nf, tag, reply, .. } => {
                let sealed = reply.as_mut().ok().and_then(pith_sbi::Response::take_embedded);
                if let Some(shared) = &mut self.shared {
                    shared.take_answer((*nf, *tag), sealed.as_ref().map(|sealed| &sealed.0));
                }
            }
            _ => {}
        }
    }

    /// After the end of its lease, which it could not renew, the process has another one's blocks if a UPF does not know a session any
    /// longer: the SMF that took the session over has replaced it (TS 29.244 5.22.3). Nothing of this process may leave then.
    fn note_refusal(&mut self, input: &N4Input) {
        if self.lease.as_ref().is_none_or(LeaseGuard::may_claim) || self.is_fenced {
            return;
        }
        if input.shows_unknown_session() {
            tracing::error!(
                "a UPF does not know a session, and the lease of this process has ended: another process may serve its UEs, so this one serves none any longer"
            );
            self.note_fenced();
        }
    }

    fn note_fenced(&mut self) {
        self.is_fenced = true;
        self.lease.iter().for_each(LeaseGuard::note_fenced);
    }

    /// Adds documents to calls and answers of the turn.
    fn embed(&mut self, now: Instant, effects: &mut [ShardEffect]) {
        let Some(shared) = &mut self.shared else { return };
        shared.delete_unused(now);
        for effect in effects {
            match effect {
                ShardEffect::HttpCall { nf, tag, request, context: Some(context), .. } => {
                    let ue = request.supi();
                    let document = request
                        .can_embed()
                        .then(|| shared.embed((*nf, *tag), *context, ue.as_ref()))
                        .flatten();
                    document.into_iter().for_each(|document| request.embed(document));
                }
                ShardEffect::Answer { to: Caller::Remote { exchange, .. }, reply, .. } => {
                    let (contexts, answer) = shared.answer(now, *exchange);
                    // If the request changed none of them, the copy is no longer needed.
                    self.stored.extend(contexts);
                    if let (Ok(response), Some((operation, document))) = (reply, answer) {
                        response.embed(operation, document);
                    }
                }
                // The context is another shard's, which reads its document.
                ShardEffect::Forward { from: Caller::Remote { exchange, .. }, .. } => {
                    self.stored.extend(shared.answer(now, *exchange).0);
                }
                _ => {}
            }
        }
    }

    /// Makes this process the owner of its blocks, if it is not: from then on the store refuses writes of former owners.
    fn claim(&mut self) -> Result<(), EngineError> {
        if self.owner.is_none() {
            self.check_lease()?;
            // A document of several processes may be in any block: each version that is not older will do.
            let (of, step) = match self.shared {
                Some(_) => (BlockId::all().collect(), 0),
                None => (self.blocks.clone(), 1 + random_step()),
            };
            let blocks: Vec<u16> = of.iter().map(|block| block.number()).collect();
            let own = self.engine.claim(&blocks, step)?;
            self.owner = Some(own);
            self.batch.reset(own);
        }
        Ok(())
    }

    /// Whether all writes are made: a block may pass to another shard, whose fence refuses later ones.
    pub fn is_settled(&self) -> bool {
        !self.is_fenced && self.outage.is_none() && self.engine.durable() >= self.last
    }

    /// The shard has passed a block: its documents are those of the new owner.
    pub fn pass_block(&mut self, block: BlockId) {
        self.blocks.retain(|own| *own != block);
        self.stored.retain(|key| key.id.block != block);
        for (_, keys) in &mut self.dropping {
            keys.retain(|key| key.id.block != block);
        }
        if let Some(written) = &mut self.written {
            written.forget_block(block);
        }
    }

    /// The shard gets a block, before its contexts: from now on the store refuses writes of the former owner. The contexts are
    /// written at the end of the turn.
    pub fn take_block(&mut self, now: Instant, shard: &mut Shard, block: BlockId) {
        if let Err(at) = self.blocks.binary_search(&block) {
            self.blocks.insert(at, block);
        }
        self.has_changes = true;
        if let Err(error) = self.claim_blocks(&[block]) {
            // The fence of this block may be higher than the shard's version: the next write claims all blocks with a higher one.
            self.owner = None;
            self.fail(now, shard, &error);
        }
    }

    /// The shard gets blocks that another instance had: from now on the store refuses writes of that instance. Restores their contexts.
    /// Returns whether it could; else the blocks are to be adopted later.
    pub fn adopt(&mut self, now: Instant, shard: &mut Shard, changes: &[BlockMove]) -> bool {
        let blocks: Vec<BlockId> = changes.iter().map(|change| change.block).collect();
        for block in &blocks {
            if let Err(at) = self.blocks.binary_search(block) {
                self.blocks.insert(at, *block);
            }
        }
        let read = self.claim_blocks(&blocks).and_then(|()| self.read_blocks(shard, &blocks));
        let found = match read {
            Ok(found) => found,
            Err(error) => {
                self.owner = None;
                self.fail(now, shard, &error);
                return false;
            }
        };
        shard.begin_adoption(changes);
        for (nf, key, read) in found {
            match read {
                Ok(document) => self.restore_one(now, shard, nf, key, &document),
                Err(error) => self.note_unreadable(&error),
            }
        }
        self.has_changes = true;
        self.report();
        true
    }

    /// The shard serves as long as this lease lasts.
    #[must_use]
    pub fn with_lease(mut self, lease: Option<LeaseGuard>) -> Self {
        self.lease = lease;
        self
    }

    /// Whether nothing may leave the shard at present: the lease of the process has ended, and others may serve its UEs.
    pub fn has_no_lease(&self) -> bool {
        self.lease.as_ref().is_some_and(LeaseGuard::has_ended)
    }

    /// Fences blocks with the shard's version, or all of its blocks with a higher one if that of a former owner is higher.
    fn claim_blocks(&mut self, blocks: &[BlockId]) -> Result<(), EngineError> {
        self.check_lease()?;
        let Some(own) = self.owner else { return self.claim() };
        let numbers: Vec<u16> = blocks.iter().map(|block| block.number()).collect();
        if self.engine.take(&numbers, own)? {
            return Ok(());
        }
        self.owner = None;
        self.claim()
    }

    /// The documents of these blocks that NFs of the shard have, in the order in which they are restored. A server that fails in between
    /// is an error.
    fn read_blocks(&mut self, shard: &Shard, blocks: &[BlockId]) -> Result<Vec<ReadContext>, EngineError> {
        let kinds: Vec<_> = KINDS.into_iter().filter(|(_, nf)| shard.hosts(*nf)).collect();
        let mut found = Vec::new();
        for (kind, nf) in kinds {
            let places: Vec<_> = blocks.iter().map(|block| (kind, block.number())).collect();
            let keys = self.engine.list(&places)?;
            let mut failure = None;
            self.engine.read_each(&keys, &mut |key, read| match read {
                Ok(Some(document)) => found.push((nf, key, Ok(document))),
                Ok(None) => {}
                Err(DocumentError::Remote { reason, .. }) => failure = Some(reason),
                Err(error) => found.push((nf, key, Err(error))),
            });
            if let Some(reason) = failure {
                return Err(EngineError::Remote { server: "the store".into(), reason });
            }
        }
        Ok(found)
    }

    /// Blocks are claimed as long as they are the process's for certain. A claim of a former owner would shut out the present one.
    fn check_lease(&self) -> Result<(), EngineError> {
        if self.lease.as_ref().is_none_or(LeaseGuard::may_claim) {
            return Ok(());
        }
        Err(EngineError::Paused("this instance claims no contexts before it has renewed its lease".into()))
    }

    /// Whether another process has claimed the blocks: nothing of this one may leave.
    pub fn is_fenced(&self) -> bool {
        self.is_fenced || self.lease.as_ref().is_some_and(LeaseGuard::is_fenced)
    }

    /// The messages that the shard keeps for a run after a panic.
    pub const fn keeps(&self) -> Keeps {
        Keeps::with(&self.mode.tracking())
    }

    fn track(&self, shard: &mut Shard) {
        // Without the AMF, whose registrations end with its process, the AUSF stores challenges of UEs that are not authenticated.
        let has_amf = shard.hosts(Nf::Amf);
        let is_stored = |nf| KINDS.iter().any(|(_, of)| *of == nf) && !(nf == Nf::Ausf && has_amf);
        let tracking = self.mode.tracking();
        shard.track_contexts(|nf| is_stored(nf).then_some(tracking));
        if self.mode.drops_copies {
            shard.expect_dropped_contexts();
        }
        if self.shared.is_some() {
            shard.keep_blocks();
        }
    }

    fn note_unreadable(&self, error: &dyn std::fmt::Display) {
        self.health.note_unreadable();
        tracing::error!("{error}");
    }

    /// The shard has handled an input, which may have changed contexts.
    pub const fn note_input(&mut self) {
        self.has_changes = true;
    }

    /// Writes what must be written now, and adds documents to the turn's effects (`embedded`). Returns the number of the write that must be durable before the turn's sends leave
    /// ([`ContextStore::durable`]): with `soft`, none, unless a message has a NAS COUNT that no document reserves; while the engine fails, none.
    pub fn end_turn(&mut self, now: Instant, shard: &mut Shard, effects: &mut [ShardEffect]) -> Sequence {
        self.take_late_results(now, shard);
        let is_awaited = shard.take_awaited();
        if self.has_changes && self.may_write(now) {
            self.write_scope(now, shard);
        }
        self.embed(now, effects);
        // In this order: what is durable by this number and is not among the failures is stored.
        let durable = self.engine.durable();
        self.seen = durable;
        self.take_late_results(now, shard);
        self.note_recovery(shard, durable);
        if self.outage.is_none() && durable >= self.last {
            shard.note_written();
        }
        self.drop_copies(shard, durable);
        self.report();
        if let Some(intervals) = shard.new_intervals() {
            self.health.note_intervals(self.slot, intervals);
        }
        match self.mode.time {
            _ if self.outage.is_some() => Sequence(0),
            WriteTime::BeforeSends => self.last,
            WriteTime::Later => {
                if is_awaited {
                    self.last
                } else {
                    Sequence(0)
                }
            }
        }
    }

    fn may_write(&self, now: Instant) -> bool {
        !self.is_fenced && self.outage.is_none_or(|outage| outage.attempt.is_none() && now >= outage.retry)
    }

    fn write_scope(&mut self, now: Instant, shard: &mut Shard) {
        let scope = match self.mode.time {
            // From the first change: a UE that registers alone is written once, too. A block that is about to pass to another shard is
            // written at once, so that nothing of it is unwritten on its way.
            WriteTime::Later
                if self.outage.is_none()
                    && shard.is_at_rest()
                    && now < *self.due.get_or_insert(now + SOFT_DELAY) =>
            {
                StoreScope::Required
            }
            _ => StoreScope::Changed,
        };
        if scope == StoreScope::Changed {
            self.has_changes = false;
            self.due = None;
        } else if !shard.has_required_contexts() {
            return;
        }
        let is_attempt = self.outage.is_some();
        self.write(now, shard, scope);
        if self.has_changes && self.mode.time == WriteTime::Later {
            // Another writer was first.
            self.due.get_or_insert(now + SOFT_DELAY);
        }
        if is_attempt {
            self.attempt_loads(now, shard);
        }
    }

    /// After an attempt to write in an outage: attempts the reads that failed, too.
    fn attempt_loads(&mut self, now: Instant, shard: &mut Shard) {
        if let Some(outage) = self.outage.as_mut().filter(|outage| now >= outage.retry) {
            outage.attempt = Some(self.last);
            for finding in self.loads.retry(self.engine.as_mut()) {
                self.note_finding(now, shard, finding);
            }
        }
    }

    /// Failures of an engine that writes on a thread of its own.
    fn take_late_results(&mut self, now: Instant, shard: &mut Shard) {
        if !self.has_late_results {
            return;
        }
        for failure in self.engine.take_failures() {
            for key in failure.keys {
                self.note_document_failed(shard, key);
            }
            if let Some(error) = failure.error {
                self.fail(now, shard, &error);
            }
        }
        if self.engine.take_loss() {
            tracing::warn!("the server of documents may have lost some: all contexts are written again");
            shard.store_all_contexts();
            self.written = self.written.take().map(|_| WrittenSections::default());
            self.shared.iter_mut().for_each(SharedDocuments::forget_copies);
            self.has_changes = true;
        }
    }

    /// Drops the copies of contexts whose transaction was over in this or a former turn, and is durable.
    fn drop_copies(&mut self, shard: &mut Shard, durable: Sequence) {
        if !self.mode.drops_copies {
            return;
        }
        let mut touched = shard.take_touched_contexts();
        touched.append(&mut self.stored);
        if !touched.is_empty() {
            self.dropping.push_back((self.last, touched));
        }
        while let Some((_, keys)) = self.dropping.pop_front_if(|(written, _)| *written <= durable) {
            for key in &keys {
                let is_dropped = shard.drop_context(*key);
                if let Some(document) = document_key(*key).filter(|_| is_dropped) {
                    self.accounts.forget(document);
                }
            }
            if let Some(shared) = &mut self.shared {
                shared.drop_copies(&keys, |key| shard.is_resident(key));
            }
        }
    }

    /// A change of a document was accepted, and is not made.
    fn note_document_failed(&mut self, shard: &mut Shard, document: DocumentKey) {
        let contexts = match &mut self.shared {
            Some(shared) if document.kind == DocumentKind::Ue => {
                shared.forget_copy(document);
                shared.contexts_of(document)
            }
            _ => stored_key(document).into_iter().collect(),
        };
        for key in contexts {
            self.note_failed(shard, key);
        }
    }

    fn note_failed(&mut self, shard: &mut Shard, key: StoredKey) {
        shard.store_failed(key);
        if let Some(written) = &mut self.written {
            written.forget(key);
        }
        if let Some(shared) = self.shared.as_mut().filter(|_| is_of_ue(key.nf)) {
            shared.note_failed(key);
        }
        self.has_changes = true;
    }

    fn fail(&mut self, now: Instant, shard: &mut Shard, error: &EngineError) {
        self.health.note_failure(self.slot, error);
        if matches!(error, EngineError::Fenced { .. }) && !self.is_fenced {
            tracing::error!(
                "another process has taken over the contexts, this one serves no UE any longer: {error}"
            );
            self.note_fenced();
        }
        // A log on a full disk is read as before; documents that are not within reach are not.
        let is_out_of_reach = matches!(error, EngineError::Paused(_) | EngineError::Remote { .. });
        let stops_reading = !self.engine.answers_at_once() || is_out_of_reach;
        self.outage = Some(Outage { retry: now + RETRY, attempt: None, stops_reading });
        self.has_changes = true;
        shard.accept_new_contexts(false);
    }

    fn note_recovery(&mut self, shard: &mut Shard, durable: Sequence) {
        let attempt = self.outage.and_then(|outage| outage.attempt);
        let is_written = attempt.is_some_and(|attempt| durable >= attempt);
        if is_written && self.loads.has_recovered() {
            self.outage = None;
            self.health.note_success(self.slot);
            shard.accept_new_contexts(true);
        }
    }

    fn report(&mut self) {
        let state = (self.last, self.engine.durable());
        if state != self.reported || self.last == Sequence(0) {
            self.reported = state;
            let statistics = self.engine.statistics();
            let costs = self.accounts.settle(&statistics, state.1 >= state.0);
            self.health.note_statistics(self.slot, statistics, costs);
        }
    }

    /// Begins to read a context whose copy was dropped.
    pub fn load(&mut self, now: Instant, shard: &mut Shard, key: StoredKey) {
        let document = match &mut self.shared {
            Some(shared) if is_of_ue(key.nf) => match shared.load(key) {
                SharedLoad::Ready(found) => return self.note_loaded(key, found),
                SharedLoad::Wait => return,
                SharedLoad::Read(document) => document,
            },
            _ => match document_key(key) {
                Some(document) => document,
                None => return self.note_loaded(key, None),
            },
        };
        let finding = self.loads.begin(self.engine.as_mut(), document);
        self.note_finding(now, shard, finding);
    }

    fn note_loaded(&mut self, key: StoredKey, found: Option<Document>) {
        self.loaded.push((key, found));
    }

    /// Contexts that were read since the last call.
    pub fn take_loaded(&mut self, now: Instant, shard: &mut Shard) -> Vec<Loaded> {
        if !self.mode.drops_copies && !self.loads.has_probes() {
            return Vec::new();
        }
        let findings = self.loads.collect(self.engine.as_mut());
        for finding in findings {
            self.note_finding(now, shard, finding);
        }
        let read = self.loads.take();
        if !read.is_empty() {
            read.iter().for_each(|(document, _)| self.accounts.note_read(*document));
            self.accounts.settle(&self.engine.statistics(), false);
        }
        for (document, read) in read {
            match &mut self.shared {
                Some(shared) if document.kind == DocumentKind::Ue => {
                    let mut contexts = shared.loaded(document, read.as_ref());
                    self.loaded.append(&mut contexts);
                }
                _ => {
                    let found = |key| (key, read.as_ref().map(|read| packed(key, read)));
                    self.loaded.extend(stored_key(document).map(found));
                }
            }
        }
        std::mem::take(&mut self.loaded)
    }

    fn note_finding(&mut self, now: Instant, shard: &mut Shard, finding: Finding) {
        match finding {
            Finding::Good => {}
            Finding::Unreadable(reason) => self.note_unreadable(&reason),
            Finding::Unreachable(error) => self.fail(now, shard, &EngineError::Paused(error.to_string())),
        }
    }

    /// The engine may have other revisions of these documents of the batch than the copies say.
    fn forget_copies(&mut self, changes: &[usize]) {
        let Some(shared) = &mut self.shared else { return };
        let documents: Vec<_> = self.batch.keys().collect();
        for document in changes.iter().filter_map(|at| documents.get(*at)) {
            shared.forget_copy(*document);
        }
    }

    /// Writes all changes, at the end of the process.
    pub fn finish(&mut self, now: Instant, shard: &mut Shard) {
        if !self.is_fenced {
            self.write(now, shard, StoreScope::Changed);
        }
    }

    /// Whether the engine failed, and changes may not be stored.
    pub const fn is_failing(&self) -> bool {
        self.outage.is_some()
    }

    /// What was written up to this number survives what the engine promises.
    pub const fn durable(&self) -> Sequence {
        self.seen
    }

    /// While the store fails: removes messages that must not leave from effects that are held ([`Shard::withhold`]).
    pub fn withhold<'a>(&self, shard: &Shard, held: impl Iterator<Item = &'a mut Vec<ShardEffect>>) {
        if self.outage.is_none() {
            return;
        }
        let withheld: usize = held.map(|effects| shard.withhold(effects)).sum();
        if withheld > 0 {
            tracing::warn!("{withheld} messages are not sent: no stored context reserves their NAS COUNTs");
        }
    }

    /// When the next turn is due for the store.
    pub fn next_turn(&self) -> Option<Instant> {
        match self.outage {
            // It writes and reads nothing any longer.
            _ if self.is_fenced => None,
            // Reads that were repeated at the end of this turn: at once.
            _ if self.loads.has_results() => Some(Instant::default()),
            Some(Outage { retry, attempt, .. }) => attempt.is_none().then_some(retry),
            None => self.due.filter(|_| self.has_changes),
        }
    }

    fn write(&mut self, now: Instant, shard: &mut Shard, scope: StoreScope) {
        if let Err(error) = self.claim() {
            return self.fail(now, shard, &error);
        }
        let mut turn = Turn::new(self);
        shard.store_contexts(scope, &mut turn);
        turn.add_documents();
        turn.append();
        let Turn { failed, error, store, .. } = turn;
        let has_conflicts = !failed.is_empty() && error.is_none();
        for key in failed {
            store.note_failed(shard, key);
        }
        if let Some(error) = error {
            store.fail(now, shard, &error);
        } else if has_conflicts {
            // As whole documents, which do not conflict.
            store.write(now, shard, StoreScope::Changed);
        }
    }
}

/// The document as its NF packed it.
fn packed(key: StoredKey, document: &StoredDocument) -> Document {
    Document::of_sections(key.nf, document.sections().map(|(_, octets)| octets))
}

/// Why a document cannot be used, if its layout is another one.
pub(super) fn check_layout(document: &StoredDocument) -> Result<(), String> {
    if document.layout != LAYOUT {
        let (key, layout) = (document.key, document.layout);
        return Err(format!(
            "{key} has layout {layout}, this program reads {LAYOUT}: start the program that wrote it; until then its UE registers again"
        ));
    }
    Ok(())
}

/// The kinds of documents of a shard's NFs: those of others are other processes'.
fn kinds_of(shard: &Shard) -> Vec<DocumentKind> {
    KINDS.into_iter().filter(|(_, nf)| shard.hosts(*nf)).map(|(kind, _)| kind).collect()
}

/// The kinds of documents that only a process with these NFs writes, if the others have processes of their own: the one document of a UE
/// (residency `shared`) has several writers.
pub(crate) fn kinds_of_nfs(nfs: &[Nf]) -> Vec<DocumentKind> {
    let own = KINDS.into_iter().filter(|(_, nf)| nfs.contains(nf)).map(|(kind, _)| kind);
    own.chain(nfs.contains(&Nf::Smf).then_some(DocumentKind::SmfRun)).collect()
}

/// Random, so that of two processes that start at once one is refused.
fn random_step() -> u64 {
    let mut step = [0; 2];
    let _ = getrandom::fill(&mut step);
    u16::from_le_bytes(step).into()
}

/// Whether contexts of this NF are of a UE. With [`SharedDocuments`] the others have documents of their own.
const fn is_of_ue(nf: Nf) -> bool {
    !matches!(nf, Nf::Nrf | Nf::Ausf)
}

/// The document of a context.
pub(super) fn document_key(key: StoredKey) -> Option<DocumentKey> {
    let kind = KINDS.iter().find(|(_, nf)| *nf == key.nf).map(|(kind, _)| *kind)?;
    DocumentKey::new(kind, key.id.block.number(), key.id.number)
}

/// The context of a document.
pub(super) fn stored_key(key: DocumentKey) -> Option<StoredKey> {
    let nf = KINDS.iter().find(|(kind, _)| *kind == key.kind).map(|(_, nf)| *nf)?;
    Some(StoredKey { nf, id: ContextId { block: BlockId::new(key.block)?, number: key.number } })
}

#[cfg(test)]
mod tests;
