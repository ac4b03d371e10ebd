//! The store of the contexts of a process (`residency: soft` and `durable`).

use super::{Hosting, StartError};
use crate::clock::Clock;
use crate::config::{Config, Residency, StateSync};
use crate::residency::{
    ContextStore, DocumentSecret, FileSettings, FileStore, OnDurable, StoreHealth, Sync, WriteTime,
};
use crate::shard::ShardQueue;
use crate::store::DatabaseLocation;
use pith_nf::fabric::ShardInput;
use pith_nf::kit::{Nf, Rng};
use pith_types::ShardId;
use std::sync::Arc;

/// The store of a process, and what its shards have in common.
pub(super) struct Contexts {
    store: FileStore,
    secret: DocumentSecret,
    time: WriteTime,
    shards: usize,
    health: Arc<StoreHealth>,
}

impl Contexts {
    /// Opens the store; `None` if the contexts of this process end with it.
    pub(super) fn open(
        config: &Config,
        hosting: &Hosting,
        shards: &[ShardQueue],
        clock: Clock,
    ) -> Result<Option<Self>, StartError> {
        let time = match config.residency {
            Residency::None => return Ok(None),
            Residency::Soft => WriteTime::Later,
            Residency::Durable => WriteTime::BeforeSends,
        };
        if !hosting.nfs.iter().any(|nf| matches!(nf, Nf::Amf | Nf::Smf | Nf::Pcf)) {
            return Ok(None);
        }
        let first = hosting.nfs.first().filter(|_| hosting.several_processes).map(ToString::to_string);
        let directory =
            config.context_directory(first.as_deref()).ok_or("'residency' needs 'state.directory'")?;
        let secret = secret(config)?;
        let began = clock.now();
        let store = FileStore::open(FileSettings {
            directory,
            secret: secret.clone(),
            sync: match config.state.sync {
                StateSync::None => Sync::None,
                StateSync::Batch => Sync::Batch,
            },
            on_durable: (config.state.sync == StateSync::Batch).then(|| wake(shards)),
        })?;
        report(&store, clock.now().since(began));
        let health = Arc::new(StoreHealth::default());
        Ok(Some(Self { store, secret, time, shards: shards.len(), health }))
    }

    /// The source of the NF instance ids of a process whose certificate has none: the same in each run, as other NFs have them
    /// in their contexts.
    pub(super) fn instance_ids(&self) -> Rng {
        Rng::from_seed(self.secret.derive("NF instance ids"))
    }

    /// The state of the store.
    pub(super) fn health(&self) -> Arc<StoreHealth> {
        Arc::clone(&self.health)
    }

    /// The store of one shard. The first shard deletes the contexts of shards that no longer exist.
    pub(super) fn of_shard(&mut self, shard: u16, clock: Clock) -> Result<ContextStore, StartError> {
        let engine = Box::new(self.store.engine(shard)?);
        let (health, started) = (self.health(), clock.unix_seconds());
        let mut store = ContextStore::new(shard, engine, self.time, &self.secret, started, health);
        if shard == 0 {
            let former = self.shards as u16..ShardId::LIMIT as u16;
            let count: usize = former.map(|block| store.forget_block(block)).sum();
            if count > 0 {
                tracing::warn!(
                    "{count} contexts of shards that no longer exist are deleted, their UEs register again: 'workers' was higher"
                );
            }
        }
        Ok(store)
    }
}

/// The key of the database also protects contexts. It is made unless there is a database, which needs its own.
fn secret(config: &Config) -> Result<DocumentSecret, StartError> {
    match config.store.location() {
        DatabaseLocation::File { key, path } => Ok(DocumentSecret::of_file(&key, !path.exists())?),
        DatabaseLocation::Memory => Ok(DocumentSecret::ephemeral()?),
    }
}

/// Wakes the shard whose writes are durable.
fn wake(shards: &[ShardQueue]) -> OnDurable {
    let shards = shards.to_vec();
    Box::new(move |writer, _| {
        if let Some(shard) = shards.get(usize::from(writer)) {
            shard.send(ShardInput::Written);
            shard.wake();
        }
    })
}

fn report(store: &FileStore, took: std::time::Duration) {
    let found = store.recovery();
    tracing::info!("{} contexts read in {} ms", found.documents, took.as_millis());
    found.damaged.iter().for_each(|error| tracing::error!("{error}"));
    found.lost.iter().for_each(|lost| tracing::error!("{lost}"));
    for path in &found.foreign {
        tracing::warn!("{} is no log of contexts: move it away", path.display());
    }
    if found.is_stale {
        tracing::warn!(
            "the latest changes of contexts may be lost (power failure): UEs are authenticated again"
        );
    }
}
