//! Contexts that are restored while a shard serves: what inputs wait for at once, the others in slices at random times.

use super::process::Process;
use super::{SimEvent, World};
use crate::stores::Stores;
use pith_nf::fabric::{ShardEffect, ShardInput};

/// The longest time until the next slice, in milliseconds: messages meet shards with a part of their contexts.
const MOST_MILLIS: u64 = 200;

impl World {
    /// Restores the next slice of a shard's contexts later, if some are not restored.
    pub(super) fn restore_later(&mut self, process: usize, shard: usize) {
        let Process { stores, incarnation, .. } = &self.processes[process];
        let incarnation = *incarnation;
        if stores.as_ref().is_some_and(|stores| stores.is_restoring(shard)) {
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
        while self.of_stores(place, Stores::has_wanted) {
            self.restore_next(place, effects);
            self.begin_reads(place, effects);
        }
    }

    /// Restores all contexts of a shard, if the store can be read.
    pub(super) fn restore_all(&mut self, place: (usize, usize), effects: &mut Vec<ShardEffect>) {
        while self.of_stores(place, Stores::is_restoring_now) {
            self.restore_next(place, effects);
            self.begin_reads(place, effects);
        }
    }

    /// Whether contexts of a shard are not restored.
    pub(super) fn is_restoring(&self, place: (usize, usize)) -> bool {
        self.of_stores(place, Stores::is_restoring)
    }

    fn of_stores(&self, (process, shard): (usize, usize), what: impl Fn(&Stores, usize) -> bool) -> bool {
        self.processes[process].stores.as_ref().is_some_and(|stores| what(stores, shard))
    }

    fn restore_next(&mut self, (process, shard): (usize, usize), effects: &mut Vec<ShardEffect>) {
        let Process { shard_hosts, stores: Some(stores), .. } = &mut self.processes[process] else { return };
        let Some(host) = shard_hosts.get_mut(shard) else { return };
        match stores.restore_next(self.now, shard, &mut host.shard) {
            Ok(restored) => {
                for portion in restored {
                    host.shard.handle(self.now, ShardInput::Restored(portion), effects);
                }
            }
            Err(error) => self.watch.fail(format!("not restored: {error}")),
        }
    }
}
