//! The contexts of a shard's NFs, for their store: which changed, which return, and what may leave.

use super::{Shard, ShardEffect};
use crate::fabric::intervals::Intervals;
use crate::fabric::restoring::Portion;
use crate::kit::document::UnpackError;
use crate::kit::{self, DocumentSink, Instant, NetworkFunction, Nf, StoreScope, StoredKey, Tracking};
use pith_types::BlockMove;

impl Shard {
    /// For simulations: contexts pass through their documents after each step.
    pub fn reload_contexts(&mut self) {
        for (_, function) in &mut self.functions {
            function.reload_contexts();
        }
    }

    /// From now on the NFs for which `of_nf` returns a tracking record which of their contexts change.
    pub fn track_contexts(&mut self, of_nf: impl Fn(Nf) -> Option<Tracking>) {
        self.tracked.clear();
        for (at, (nf, function)) in self.functions.iter_mut().enumerate() {
            if let Some(tracking) = of_nf(*nf) {
                function.track_contexts(tracking);
                self.tracked.push(at);
            }
        }
    }

    /// Passes on the documents of the contexts that changed since the last call: at the end of a turn, before its effects are
    /// carried out.
    pub fn store_contexts(&mut self, scope: StoreScope, sink: &mut dyn DocumentSink) {
        for at in &self.tracked {
            let (_, function) = &mut self.functions[*at];
            function.store_contexts(scope, sink);
        }
    }

    /// Whether [`StoreScope::Required`] has contexts.
    pub fn has_required_contexts(&self) -> bool {
        self.tracked.iter().any(|at| self.functions[*at].1.has_required_contexts())
    }

    /// Whether no message of this turn may leave before the contexts that must be stored are written: one has a NAS COUNT that no document
    /// reserves.
    pub fn take_awaited(&mut self) -> bool {
        let mut any = false;
        for at in &self.tracked {
            any |= self.functions[*at].1.take_awaited();
        }
        any
    }

    /// The store did not take a change of this context.
    pub fn store_failed(&mut self, key: StoredKey) {
        if self.agent.owners().owner(key.id.block) != self.agent.owner() {
            // It has passed to another shard, which writes it.
            return;
        }
        if let Some((_, function)) = self.functions.iter_mut().find(|(nf, _)| *nf == key.nf) {
            function.store_failed(key.id);
        }
    }

    /// All changes that were stored so far are written.
    pub fn note_written(&mut self) {
        for at in &self.tracked {
            self.functions[*at].1.note_written();
        }
    }

    /// While the store fails: removes messages with NAS COUNTs that no document reserves. Returns how many.
    pub fn withhold(&self, effects: &mut Vec<ShardEffect>) -> usize {
        let before = effects.len();
        effects.retain(|effect| match effect {
            ShardEffect::N2(message) => !self.functions.iter().any(|(_, it)| it.withholds(message)),
            _ => true,
        });
        before - effects.len()
    }

    /// From now on the shell drops copies of contexts ([`Shard::drop_context`]).
    pub fn expect_dropped_contexts(&mut self) {
        self.absent.enable();
    }

    /// The contexts to which inputs were delivered since the last call, each once.
    pub fn take_touched_contexts(&mut self) -> Vec<StoredKey> {
        self.absent.take_touched()
    }

    /// Deletes the copy of a context whose document is stored, unless its transaction goes on. The next input for it waits for a
    /// [`ShardEffect::Load`].
    pub fn drop_context(&mut self, key: StoredKey) -> bool {
        if self.passages.needs_copies(key.id.block) {
            return false;
        }
        let function = self.functions.iter_mut().find(|(nf, _)| *nf == key.nf);
        function.is_some_and(|(_, function)| function.drop_context(key.id))
    }

    /// Whether a context is in the process: its copy was not dropped.
    pub fn is_resident(&self, key: StoredKey) -> bool {
        let function = self.functions.iter().find(|(nf, _)| *nf == key.nf);
        function.is_some_and(|(_, function)| function.is_resident(key.id))
    }

    /// Whether the shard has that NF.
    pub fn hosts(&self, nf: Nf) -> bool {
        self.functions.iter().any(|(hosted, _)| *hosted == nf)
    }

    /// The store may have lost documents: all contexts are stored again.
    pub fn store_all_contexts(&mut self) {
        for (_, function) in &mut self.functions {
            function.store_all_contexts();
        }
    }

    /// Whether the NFs create contexts for new UEs.
    pub fn accept_new_contexts(&mut self, accepted: bool) {
        for (_, function) in &mut self.functions {
            function.accept_new_contexts(accepted);
        }
    }

    /// Takes a context back: before the first input, or while the shard serves ([`Shard::begin_restoring`]). A document of an NF that the shard does not host is ignored.
    pub fn restore_context(
        &mut self,
        now: Instant,
        key: StoredKey,
        document: &[u8],
        is_stale: bool,
    ) -> Result<(), UnpackError> {
        match self.functions.iter_mut().find(|(nf, _)| *nf == key.nf) {
            Some((_, function)) => function.restore_context(now, key.id, document, is_stale),
            None => Ok(()),
        }
    }

    /// The shard is another run, with that number, of one that panicked. Replies to calls of earlier runs are ignored, except that what
    /// they say was created is deleted.
    pub fn begin_run(&mut self, run: u16) {
        self.run = run;
        self.functions.iter_mut().for_each(|(_, function)| function.begin_take_over());
    }

    /// As [`Shard::restore_context`], while gateways, gNBs and UPFs have continued.
    pub fn take_over_context(
        &mut self,
        now: Instant,
        key: StoredKey,
        document: &[u8],
        fate: kit::Fate,
    ) -> Result<(), UnpackError> {
        if self.passages.is_arriving(key.id.block) {
            return Ok(());
        }
        match self.functions.iter_mut().find(|(nf, _)| *nf == key.nf) {
            Some((_, function)) => function.take_over_context(now, key.id, document, fate),
            None => Ok(()),
        }
    }

    /// All contexts were taken over, and messages were delivered again: the gateways learn what the shard has, first that it has these blocks
    /// ([`TakeOver::unannounced`](super::TakeOver::unannounced)).
    pub fn finish_take_over(&mut self, now: Instant, blocks: &[BlockMove], out: &mut Vec<ShardEffect>) {
        blocks.iter().for_each(|change| self.announce(*change, out));
        for each in 0..self.functions.len() {
            let (nf, function) = &mut self.functions[each];
            let nf = *nf;
            function.finish_take_over(now, &mut self.outbox);
            self.route(now, nf, out);
        }
        self.run(now, out);
    }

    /// The context that a step is about: after a panic, the one that caused it.
    pub fn in_step(&self) -> Option<StoredKey> {
        let in_step = |(nf, function): &(Nf, Box<dyn NetworkFunction>)| {
            function.in_step().map(|id| StoredKey { nf: *nf, id })
        };
        self.functions.iter().find_map(in_step)
    }

    /// Number of changes of contexts of an NF in this turn.
    pub fn touched(&mut self, nf: Nf) -> usize {
        (self.held, self.restoring.held) = (None, None);
        self.functions.iter().find(|(hosted, _)| *hosted == nf).map_or(0, |(_, function)| function.touched())
    }

    /// The context that the input since then was about: the first one that changed, or the one that must be loaded first.
    pub fn subject(&self, nf: Nf, since: usize) -> Option<StoredKey> {
        let (_, function) = self.functions.iter().find(|(hosted, _)| *hosted == nf)?;
        let changed = function.touched_at(since).map(|id| StoredKey { nf, id });
        changed.or(self.held)
    }

    /// The contexts that changed since the last call. A context may occur several times.
    pub fn take_touched(&mut self, list: &mut Vec<StoredKey>) {
        let mut ids = Vec::new();
        for at in &self.storing {
            let Some((nf, function)) = self.functions.get_mut(*at) else { continue };
            function.take_touched(&mut ids);
            list.extend(ids.drain(..).map(|id| StoredKey { nf: *nf, id }));
        }
        self.transactions.begin_turn();
    }

    /// The intervals between transactions since the start of the shard, if there are new ones since the last call.
    pub fn new_intervals(&mut self) -> Option<&Intervals> {
        self.transactions.take_news()
    }

    /// Whether the transaction of a context goes on: a request to another NF is pending, or inputs wait for its load.
    pub fn is_in_transaction(&self, key: StoredKey) -> bool {
        let is_pending = |(nf, function): &(Nf, Box<dyn NetworkFunction>)| {
            *nf == key.nf && function.is_in_transaction(key.id)
        };
        self.is_awaited(key) || self.functions.iter().any(is_pending)
    }

    /// Whether inputs wait for the load of a context, or until it is restored.
    pub(in crate::fabric) fn is_awaited(&self, key: StoredKey) -> bool {
        self.absent.is_awaited(key) || self.restoring.is_awaited(Portion::Context(key))
    }

    /// All contexts were restored: the NFs resume them. Called once, after [`ShardInput::Start`].
    pub fn resume_contexts(&mut self, now: Instant, out: &mut Vec<ShardEffect>) {
        for each in 0..self.functions.len() {
            let (nf, function) = &mut self.functions[each];
            let nf = *nf;
            function.resume_contexts(now, &mut self.outbox);
            self.route(now, nf, out);
        }
        self.run(now, out);
        self.restoring.has_resumed = true;
        self.send_address_news(out);
        self.announce_sessions(out);
    }
}
