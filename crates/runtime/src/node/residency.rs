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
use pith_nf::kit::Nf;
use pith_types::BlockId;
use std::sync::Arc;

/// The store of a process, and what its shards have in common.
pub(super) struct Contexts {
    store: FileStore,
    time: WriteTime,
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
        let began = clock.now();
        let store = FileStore::open(FileSettings {
            directory,
            secret: secret(config)?,
            sync: match config.state.sync {
                StateSync::None => Sync::None,
                StateSync::Batch => Sync::Batch,
            },
            on_durable: (config.state.sync == StateSync::Batch).then(|| wake(shards)),
        })?;
        report(&store, clock.now().since(began));
        let health = Arc::new(StoreHealth::default());
        Ok(Some(Self { store, time, health }))
    }

    /// The state of the store.
    pub(super) fn health(&self) -> Arc<StoreHealth> {
        Arc::clone(&self.health)
    }

    /// The store of the contexts in the blocks of one shard.
    pub(super) fn of_shard(
        &mut self,
        shard: u16,
        blocks: Vec<BlockId>,
        clock: Clock,
    ) -> Result<ContextStore, StartError> {
        let engine = Box::new(self.store.engine(shard)?);
        Ok(ContextStore::new(blocks, engine, self.time, clock.unix_seconds(), self.health()))
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
