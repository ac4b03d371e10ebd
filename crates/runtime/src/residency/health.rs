//! The state of a process's store, for `pith status`.

use super::embedding::Adoption;
use super::{Costs, EngineError, Statistics};
use pith_nf::fabric::Intervals;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The state of a process's store.
#[derive(Debug, Default)]
pub struct StoreHealth {
    restored: AtomicU64,
    unreadable: AtomicU64,
    /// Documents that requests brought, and those of them that were not used.
    embedded: AtomicU64,
    refused: AtomicU64,
    shards: Mutex<Vec<ShardHealth>>,
}

/// The state of one shard's engine.
#[derive(Debug, Default)]
struct ShardHealth {
    error: Option<String>,
    statistics: Statistics,
    costs: Costs,
    intervals: Intervals,
}

/// The place of one shard in a [`StoreHealth`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot(usize);

impl StoreHealth {
    /// Why contexts are not stored at present.
    pub fn error(&self) -> Option<String> {
        self.shards().iter().find_map(|shard| shard.error.clone())
    }

    /// Contexts that were restored at the start.
    pub fn restored(&self) -> u64 {
        self.restored.load(Ordering::Relaxed)
    }

    /// Contexts that could not be restored.
    pub fn unreadable(&self) -> u64 {
        self.unreadable.load(Ordering::Relaxed)
    }

    /// Documents that requests of other processes brought, so that they were not read (`embedded`).
    pub fn embedded(&self) -> u64 {
        self.embedded.load(Ordering::Relaxed)
    }

    /// Documents in requests that were not used: older ones, or of another installation.
    pub fn embedded_refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// The counters of all engines.
    pub fn statistics(&self) -> Statistics {
        self.shards().iter().map(|shard| shard.statistics).fold(Statistics::default(), Statistics::plus)
    }

    /// What contexts have cost by procedure.
    pub fn costs(&self) -> Costs {
        self.shards().iter().fold(Costs::default(), |sum, shard| sum.plus(&shard.costs))
    }

    /// The time between transactions of contexts.
    pub fn intervals(&self) -> Intervals {
        let mut sum = Intervals::default();
        self.shards().iter().for_each(|shard| sum.add_all(&shard.intervals));
        sum
    }

    pub(super) fn add_shard(&self) -> Slot {
        let mut shards = self.shards();
        shards.push(ShardHealth::default());
        Slot(shards.len() - 1)
    }

    pub(super) fn note_restored(&self) {
        self.restored.fetch_add(1, Ordering::Relaxed);
    }

    /// Contexts that were restored are restored again.
    pub(super) fn forget_restored(&self, contexts: u64) {
        self.restored.fetch_sub(contexts, Ordering::Relaxed);
    }

    pub(super) fn note_embedded(&self, adoption: &Adoption) {
        match adoption {
            Adoption::Adopted => {
                self.embedded.fetch_add(1, Ordering::Relaxed);
            }
            Adoption::Refused(reason) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                tracing::debug!("a document in a request is not used: {reason}");
            }
        }
    }

    pub(super) fn note_unreadable(&self) {
        self.unreadable.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn note_statistics(&self, slot: Slot, statistics: Statistics, costs: &Costs) {
        if let Some(shard) = self.shards().get_mut(slot.0) {
            (shard.statistics, shard.costs) = (statistics, *costs);
        }
    }

    pub(super) fn note_intervals(&self, slot: Slot, intervals: &Intervals) {
        if let Some(shard) = self.shards().get_mut(slot.0) {
            shard.intervals = *intervals;
        }
    }

    pub(super) fn note_success(&self, slot: Slot) {
        let former = self.shards().get_mut(slot.0).and_then(|shard| shard.error.take());
        if former.is_some() {
            tracing::info!("contexts are stored again");
        }
    }

    pub(super) fn note_failure(&self, slot: Slot, error: &EngineError) {
        let mut shards = self.shards();
        let was_good = shards.iter().all(|shard| shard.error.is_none());
        if let Some(shard) = shards.get_mut(slot.0) {
            shard.error = Some(error.to_string());
        }
        drop(shards);
        if was_good {
            tracing::error!("contexts are not stored, a restart would lose the latest changes: {error}");
        }
    }

    fn shards(&self) -> MutexGuard<'_, Vec<ShardHealth>> {
        self.shards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
