//! The store of the contexts of a process (all residencies but `none`).

use super::reference_key::{self, NamedContexts};
use super::{Hosting, StartError};
use crate::clock::Clock;
use crate::config::{Config, Residency, StateEngine, StateSync, StateWrite};
use crate::lease::LeaseGuard;
use crate::private_file::{self, PRIVATE, Readers};
use crate::residency::{
    ContextStore, DocumentKind, DocumentSecret, Engine, EngineThread, FileSettings, FileStore, FormerRun,
    OnDurable, OnWritten, OwnerFile, OwnerStore, RedisOpenError, RedisSettings, RedisStore, RunId,
    StoreHealth, StoreMode, Sync, WriteForm, WriteTime, contexts_in_log, kinds_of_nfs,
};
use crate::shard::ShardQueue;
use crate::signals::is_end_requested;
use crate::store::{Database, DatabaseLocation};
use pith_nf::fabric::ShardInput;
use pith_nf::kit::Nf;
use pith_types::BlockId;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The file of the owner map, in the directory of the log.
const OWNERS: &str = "owners";

/// The name under which the id of the reference key is stored.
const KEY_ID: &str = "reference-key-id";

/// Where documents are.
enum Store {
    /// The log, and its directory.
    File(FileStore, PathBuf),
    Redis(RedisStore),
}

/// The store of a process, and what its shards have in common.
pub(super) struct Contexts {
    store: Store,
    shards: Vec<ShardQueue>,
    mode: StoreMode,
    /// Present if all NFs have one document for a UE; and whether it travels in requests.
    shared: Option<(DocumentSecret, bool)>,
    health: Arc<StoreHealth>,
}

impl Contexts {
    /// Opens the store; `None` if the contexts of this process end with it.
    pub(super) fn open(
        config: &Config,
        hosting: &Hosting,
        shards: &[ShardQueue],
        clock: Clock,
        former: FormerRun,
    ) -> Result<Option<Self>, StartError> {
        if !hosting.nfs.iter().any(|nf| matches!(nf, Nf::Amf | Nf::Smf | Nf::Pcf | Nf::Nrf | Nf::Ausf)) {
            return Ok(None);
        }
        if let Some(line) = unread_log(config, hosting) {
            tracing::warn!("{line}");
        }
        let Some(mode) = mode(config) else {
            tracing::info!("contexts of UEs and sessions are not stored: they end with this process");
            return Ok(None);
        };
        let is_shared = matches!(config.residency(), Residency::Shared | Residency::Embedded);
        if is_shared && hosting.several_processes && config.state.engine == StateEngine::File {
            return Err(
                "'residency: shared' and 'embedded' with NFs in several processes needs a store that they share: set \
                        'state.engine' to redis"
                    .into(),
            );
        }
        let store = match config.state.engine {
            StateEngine::File => {
                let (store, directory) = open_file(config, hosting, shards, clock, former)?;
                Store::File(store, directory)
            }
            StateEngine::Redis => Store::Redis(open_redis(config, hosting)?),
        };
        let travels = config.residency == Residency::Embedded;
        let shared = if is_shared { Some((secret(config)?, travels)) } else { None };
        let health = Arc::new(StoreHealth::default());
        Ok(Some(Self { store, shards: shards.to_vec(), mode, shared, health }))
    }

    /// Stores in the database which run uses the log, so that the next start detects a copy of one of the two. On a full disk both keep
    /// the former run.
    pub(super) fn begin_run(&self, database: &mut Database) {
        let Store::File(store, _) = &self.store else { return };
        let Some(run) = store.run() else { return };
        match database.set_run(&run.to_text()) {
            Ok(()) => store.confirm_run(),
            Err(error) => tracing::warn!("the next start can't detect a copy of the contexts: {error}"),
        }
    }

    /// The owner map of the store.
    pub(super) fn owners(&self) -> Box<dyn OwnerStore> {
        match &self.store {
            Store::File(_, directory) => Box::new(OwnerFile::new(directory.join(OWNERS))),
            Store::Redis(store) => Box::new(store.owners()),
        }
    }

    /// Whether a restart finds all contexts whose messages have left.
    pub(super) const fn loses_nothing(&self) -> bool {
        matches!(self.mode.time, WriteTime::BeforeSends) && !self.mode.is_procedural
    }

    /// Whether the log had contexts that can't be read.
    pub(super) fn has_lost_documents(&self) -> bool {
        match &self.store {
            Store::File(store, _) => {
                !(store.recovery().damaged.is_empty() && store.recovery().lost.is_empty())
            }
            Store::Redis(_) => false,
        }
    }

    /// An engine for documents of the process, before its shards have theirs.
    pub(super) fn engine_of_process(&self) -> Result<Box<dyn Engine>, StartError> {
        Ok(match &self.store {
            Store::File(store, _) => Box::new(store.engine(self.shards.len() as u16)?),
            Store::Redis(store) => Box::new(store.engine()),
        })
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
        lease: Option<LeaseGuard>,
    ) -> Result<ContextStore, StartError> {
        let engine: Box<dyn Engine> = match &mut self.store {
            Store::File(store, _) => Box::new(store.engine(shard)?),
            Store::Redis(store) => Box::new(store.engine()),
        };
        let engine: Box<dyn Engine> = if engine.waits_for_network() {
            Box::new(EngineThread::start(format!("state-{shard}"), engine, wake_one(&self.shards, shard))?)
        } else {
            engine
        };
        let store = ContextStore::new(blocks, engine, self.mode, clock.unix_seconds(), self.health())
            .with_lease(lease);
        Ok(match &self.shared {
            Some((secret, false)) => store.with_shared_documents(secret.clone()),
            Some((secret, true)) => store.with_embedded_documents(secret.clone()),
            None => store,
        })
    }
}

/// How contexts are stored; `None` if they end with the process.
fn mode(config: &Config) -> Option<StoreMode> {
    let mut mode = StoreMode::of_time(WriteTime::BeforeSends);
    match config.residency() {
        Residency::Auto | Residency::None => return None,
        Residency::Soft => mode.time = WriteTime::Later,
        Residency::Durable => {}
        Residency::Procedural => mode.is_procedural = true,
        Residency::Stateless | Residency::Shared | Residency::Embedded => mode.drops_copies = true,
    }
    mode.form = match config.state.write {
        StateWrite::Replace => WriteForm::Replace,
        StateWrite::Update => WriteForm::Update,
    };
    Some(mode)
}

/// The directory of the log of this process, whether it is used or not; `None` if the process has none.
fn log_directory(config: &Config, hosting: &Hosting) -> Option<PathBuf> {
    let first = hosting.nfs.first().filter(|_| hosting.several_processes).map(ToString::to_string);
    config.context_directory(first.as_deref())
}

/// A warning of contexts that a former start stored in the log, if this one does not read it: without it, the rejection of their UEs would be
/// the first sign of a changed setting.
fn unread_log(config: &Config, hosting: &Hosting) -> Option<String> {
    let (reason, remedy) = match (config.residency(), config.state.engine) {
        (Residency::Auto | Residency::None, _) => ("'residency' is none", "'residency'"),
        (_, StateEngine::Redis) => ("'state.engine' is redis", "'state.engine: file'"),
        (_, StateEngine::File) => return None,
    };
    let directory = log_directory(config, hosting)?;
    match contexts_in_log(&directory) {
        Ok(0) => None,
        Ok(contexts) => Some(format!(
            "{} has {contexts} context(s) of a former start, which are not read because {reason}: their UEs register again. To keep them, stop Pith now, \
             and start it with the former {remedy}; otherwise remove the directory",
            directory.display()
        )),
        Err(error) => Some(format!(
            "{} may have contexts of a former start, which are not read because {reason}: {error}",
            directory.display()
        )),
    }
}

fn open_file(
    config: &Config,
    hosting: &Hosting,
    shards: &[ShardQueue],
    clock: Clock,
    former: FormerRun,
) -> Result<(FileStore, PathBuf), StartError> {
    let directory = log_directory(config, hosting).ok_or("'residency' needs 'state.directory'")?;
    let began = clock.now();
    let store = FileStore::open(FileSettings {
        directory: directory.clone(),
        secret: secret(config)?,
        sync: match config.state.sync {
            StateSync::None => Sync::None,
            StateSync::Batch => Sync::Batch,
        },
        on_durable: (config.state.sync == StateSync::Batch).then(|| wake(shards)),
        former,
    })?;
    report(&store, clock.now().since(began));
    Ok((store, directory))
}

fn open_redis(config: &Config, hosting: &Hosting) -> Result<RedisStore, StartError> {
    let first = hosting.nfs.first().filter(|_| hosting.several_processes).map(ToString::to_string);
    let redis = &config.state.redis;
    let secret = secret(config)?;
    let open = || {
        RedisStore::open(RedisSettings {
            url: redis.url.clone(),
            password_file: redis.password_file.clone(),
            ca: redis.ca.clone(),
            secret: secret.clone(),
            kinds: match &first {
                Some(_) => kinds_of_nfs(&hosting.nfs),
                None => DocumentKind::ALL.into(),
            },
            scope: first.clone().unwrap_or_default(),
        })
    };
    let store = if reference_key::was_made(config) { wait_for_server(open)? } else { open()? };
    tracing::info!("contexts are stored in Redis at {}", store.url());
    Ok(store)
}

/// Time until the next attempt to reach the server.
const SERVER_PAUSE: Duration = Duration::from_millis(500);
/// Attempts until the log says again what the start waits for.
const ATTEMPTS_A_MESSAGE: u32 = 20;

/// A start after others: contexts are in the server, which may have gone with this process, and returns.
fn wait_for_server(
    open: impl Fn() -> Result<RedisStore, RedisOpenError>,
) -> Result<RedisStore, RedisOpenError> {
    let mut attempts = 0;
    loop {
        match open() {
            Err(error) if error.may_pass && !is_end_requested() => {
                if attempts % ATTEMPTS_A_MESSAGE == 0 {
                    tracing::error!("{error}; the start waits for the server, which has the contexts of UEs");
                }
                attempts += 1;
                std::thread::sleep(SERVER_PAUSE);
            }
            result => return result,
        }
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

/// Wakes a shard after each write of its engine's thread.
fn wake_one(shards: &[ShardQueue], shard: u16) -> OnWritten {
    let queue = shards.get(usize::from(shard)).cloned();
    Box::new(move || {
        if let Some(queue) = &queue {
            queue.send(ShardInput::Written);
            queue.wake();
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
    if found.is_other_run {
        tracing::warn!(
            "the contexts are not those of the last start with this database, one of the two was restored from a copy: UEs are authenticated \
             again, and changes since then are lost"
        );
    } else if found.is_stale {
        tracing::warn!(
            "the latest changes of contexts may be lost (power failure, or a damaged file): UEs are authenticated again"
        );
    }
}

impl NamedContexts for Contexts {
    fn place(&self) -> Result<Option<String>, StartError> {
        Ok(match &self.store {
            Store::File(store, directory) => {
                let found = store.recovery();
                let has_any = found.documents > 0 || !found.damaged.is_empty();
                has_any.then(|| format!("move {} away", directory.display()))
            }
            Store::Redis(store) => store.is_used()?.then(|| {
                format!("delete the keys of {} that begin with '{}'", store.url(), store.namespace())
            }),
        })
    }

    fn key_id(&self) -> Result<Option<String>, StartError> {
        Ok(match &self.store {
            Store::File(_, directory) => match private_file::read(&directory.join(KEY_ID), Readers::Owner) {
                Ok(id) => Some(id.trim().to_owned()),
                Err(error) if error.is_not_found() => None,
                Err(error) => {
                    return Err(format!("cannot read {}: {error}", directory.join(KEY_ID).display()).into());
                }
            },
            Store::Redis(store) => store.note(KEY_ID)?,
        })
    }

    fn note_key_id(&self, id: &str) {
        let noted = match &self.store {
            Store::File(_, directory) => {
                private_file::replace(&directory.join(KEY_ID), PRIVATE, id).map_err(|error| error.to_string())
            }
            Store::Redis(store) => store.set_note(KEY_ID, id).map_err(|error| error.to_string()),
        };
        if let Err(error) = noted {
            tracing::warn!("the next start can't detect another key of references: {error}");
        }
    }
}

/// What the database of this process knows of the last run.
pub(super) fn former_run(config: &Config, database: Option<&Database>) -> Result<FormerRun, StartError> {
    match (config.store.location(), database) {
        (DatabaseLocation::File { .. }, Some(database)) => Ok(match database.run()? {
            Some(id) => RunId::of_text(&id).map_or(FormerRun::None, FormerRun::Known),
            None => FormerRun::None,
        }),
        _ => Ok(FormerRun::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::residency::{Batch, DocumentKey, Head, OwnerVersion, Revision};

    /// A directory with a log in which one UE has a context.
    fn stored(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("pith-unread-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        let store = FileStore::open(FileSettings {
            directory: directory.join("contexts"),
            secret: DocumentSecret::of_file(&directory.join("key"), true).unwrap(),
            sync: Sync::None,
            on_durable: None,
            former: FormerRun::Unknown,
        })
        .unwrap();
        let key = DocumentKey::new(DocumentKind::Amf, 1, 1).unwrap();
        let mut batch = Batch::new(OwnerVersion(1));
        batch.replace(Head { key, revision: Revision(1), layout: 1, deadline: None }).section(1, b"x");
        store.engine(0).unwrap().append(&batch).unwrap();
        directory
    }

    fn warning(directory: &std::path::Path, settings: &str, hosting: &Hosting) -> Option<String> {
        let text = format!("store: {{path: {}}}\n{settings}", directory.join("pith.db").display());
        unread_log(&Config::parse(&text, "test").unwrap(), hosting)
    }

    #[test]
    fn contexts_that_a_start_does_not_read_are_named_with_the_remedy() {
        let directory = stored("all");
        let log = directory.join("contexts").display().to_string();
        let of = |settings: &str| warning(&directory, settings, &Hosting::all());
        for residency in ["durable", "soft", "stateless", "shared", "embedded"] {
            let redis = of(&format!("residency: {residency}\nstate: {{engine: redis}}")).unwrap();
            assert!(redis.starts_with(&format!("{log} has 1 context(s) of a former start")), "{redis}");
            assert!(
                redis.contains("UEs register again") && redis.contains("'state.engine: file'"),
                "{redis}"
            );
            assert_eq!(of(&format!("residency: {residency}\nstate: {{engine: file}}")), None);
        }
        let none = of("residency: none").unwrap();
        assert!(none.starts_with(&log) && none.contains("'residency' is none"), "{none}");
        // A process of `pith nf` has a directory of its own.
        let nf = Hosting { nfs: vec![Nf::Amf], upf: false, several_processes: true, takes_over: false };
        assert_eq!(warning(&directory, "residency: none", &nf), None);
        std::fs::rename(directory.join("contexts"), directory.join("aside")).unwrap();
        std::fs::create_dir(directory.join("contexts")).unwrap();
        std::fs::rename(directory.join("aside"), directory.join("contexts").join(Nf::Amf.to_string()))
            .unwrap();
        assert!(warning(&directory, "residency: none", &nf).is_some());
        assert_eq!(of("residency: none"), None);
        std::fs::remove_dir_all(directory).unwrap();
    }
}
