//! Contexts that are restored while a shard serves: what inputs wait for at once, the others in slices at random times.

use super::process::Process;
use super::{SimEvent, World};
use pith_nf::fabric::{ShardEffect, ShardInput};

/// The longest time until the next slice, in milliseconds: messages meet shards with a part of their contexts.
const MOST_MILLIS: u64 = 200;

impl World {
    /// Restores the next slice of a shard's contexts later, if some are not restored.
    pub(super) fn restore_later(&mut self, process: usize, shard: usize) {
        let incarnation = self.processes[process].incarnation;
        if self.is_restoring((process, shard)) {
            let after = self.dice.millis(0, MOST_MILLIS);
            self.at(after, SimEvent::Restore { process, incarnation, shard });
        }
    }

    /// Restores a slice of a shard's contexts.
    pub(super) fn restore_slice(&mut self, process: usize, shard: usize) {
        let mut effects = Vec::new();
        self.restore_next((process, shard), &mut effects);
        self.read_contexts((process, shard), &mut effects);
        self.end_turn((process, shard), effects);
        if self.processes[process].is_running() {
            self.restore_later(process, shard);
        }
    }

    /// Restores what inputs wait for.
    pub(super) fn restore_wanted(&mut self, place: (usize, usize), effects: &mut Vec<ShardEffect>) {
        while self.has_wanted(place) {
            self.restore_next(place, effects);
            self.begin_reads(place, effects);
        }
    }

    /// Restores all contexts of a shard, if the store can be read.
    pub(super) fn restore_all(&mut self, place: (usize, usize), effects: &mut Vec<ShardEffect>) {
        while self.is_restoring_now(place) {
            self.restore_next(place, effects);
            self.begin_reads(place, effects);
        }
    }

    /// Whether contexts of a shard are not restored.
    pub(super) fn is_restoring(&self, (process, shard): (usize, usize)) -> bool {
        let Process { documents, stores, .. } = &self.processes[process];
        documents.as_ref().is_some_and(|it| it.is_restoring(shard))
            || stores.as_ref().is_some_and(|it| it.is_restoring(shard))
    }

    fn is_restoring_now(&self, (process, shard): (usize, usize)) -> bool {
        let Process { documents, stores, .. } = &self.processes[process];
        documents.as_ref().is_some_and(|it| it.is_restoring(shard))
            || stores.as_ref().is_some_and(|it| it.is_restoring_now(shard))
    }

    fn has_wanted(&self, (process, shard): (usize, usize)) -> bool {
        let Process { documents, stores, .. } = &self.processes[process];
        documents.as_ref().is_some_and(|it| it.has_wanted(shard))
            || stores.as_ref().is_some_and(|it| it.has_wanted(shard))
    }

    /// Notes among the effects what inputs wait for.
    pub(super) fn note_wanted(&mut self, (process, shard): (usize, usize), effects: &mut Vec<ShardEffect>) {
        let Process { documents, stores, .. } = &mut self.processes[process];
        effects.retain(|effect| {
            let ShardEffect::Restore(portion) = effect else { return true };
            documents.iter_mut().for_each(|it| it.want(shard, *portion));
            stores.iter_mut().for_each(|it| it.want(shard, *portion));
            false
        });
    }

    fn restore_next(&mut self, (process, shard): (usize, usize), effects: &mut Vec<ShardEffect>) {
        let Process { shard_hosts, documents, stores, .. } = &mut self.processes[process];
        let Some(host) = shard_hosts.get_mut(shard) else { return };
        let restored = match (documents, stores) {
            (Some(documents), _) => documents.restore_next(self.now, shard, &mut host.shard),
            (None, Some(stores)) => stores.restore_next(self.now, shard, &mut host.shard),
            (None, None) => return,
        };
        match restored {
            Ok(restored) => {
                for portion in restored {
                    host.shard.handle(self.now, ShardInput::Restored(portion), effects);
                }
            }
            Err(error) => self.watch.fail(format!("not restored: {error}")),
        }
    }
}
