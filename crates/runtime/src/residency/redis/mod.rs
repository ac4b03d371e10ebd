//! Engine `redis`: documents in a server of Redis or Valkey, which the processes of several hosts can share.
//!
//! ```text
//!  pith:ID:{BLOCK}:KIND:NUMBER   hash      r revision, o owner, l layout, d deadline, g generation, and each section by its number
//!  pith:ID:{BLOCK}:KIND          set       numbers of the documents of a kind
//!  pith:ID:{BLOCK}:owner         string    version of the owner map below which writes are refused
//!  pith:ID:marker                string    a random text: without it, the documents were deleted
//!  pith:ID:reference-key-id      string    the key with which references to the documents are made
//! ```
//!
//! ID names the secret with which sections are sealed, so that two cores can use one server. A batch is one call of a
//! script (`append.lua`): it checks fences and revisions, and changes sections, in one step.
//!
//! **Lost writes.** A server that starts again, or another one that takes over, may lack the latest writes; its replication id is
//! another one then. A document has the id under which it was written: with another one, it is read as stale, and its UE is
//! authenticated again.
//!
//! **Deleted documents.** Engines check every few seconds that the marker is the one that they have found first. If it is not, someone has
//! deleted the documents (FLUSHALL): contexts in memory are written again.
//!
//! **Full memory.** At `maxmemory` all writes are refused, leases and documents. A start writes the marker first, so that it waits until
//! there is room.

mod address;
mod connection;
mod engine;
mod fields;
mod foreign;
mod owners;
#[cfg(test)]
pub(crate) mod server;
#[cfg(test)]
mod tests;

pub use address::{RedisPlace, RedisUrl};
pub use engine::RedisEngine;
pub(super) use fields::Sealer;
pub use owners::RedisOwners;

use super::{DocumentKind, DocumentSecret};
use crate::private_file::{self, Readers};
use connection::{Access, Commands, Connection, RequestError};
use redis::Value;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// How a server is reached.
#[derive(Debug, Clone)]
pub struct RedisSettings {
    /// Its address.
    pub url: RedisUrl,
    /// File with the password, readable by its owner only.
    pub password_file: Option<PathBuf>,
    /// File with the certificates of CAs that may have issued the server's (PEM).
    pub ca: Option<PathBuf>,
    /// Seals documents.
    pub secret: DocumentSecret,
    /// The NF whose process writes, if each NF has a process of its own: these own the same blocks, each with its kinds of documents, and
    /// do not fence each other off. Empty for a process with all NFs.
    pub scope: String,
    /// The kinds of documents that only processes of this scope write. From their versions an overwritten fence is restored.
    pub kinds: Vec<DocumentKind>,
}

/// A server cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("'{setting}' {value}: {reason}")]
pub struct RedisOpenError {
    setting: &'static str,
    value: String,
    reason: String,
    /// The settings are complete, and the server refuses or does not answer: it may later.
    pub may_pass: bool,
}

/// The documents of a process in a server.
pub struct RedisStore {
    shared: Arc<Shared>,
}

/// What the engines of a process have in common.
struct Shared {
    access: Access,
    secret: DocumentSecret,
    /// What all keys begin with.
    namespace: String,
    /// The scope of fences.
    scope: String,
    /// The kinds of documents whose writers have these fences.
    kinds: Vec<DocumentKind>,
    /// When an engine of the process has last noticed that the documents were deleted.
    deleted: Mutex<Option<Instant>>,
}

/// Engines of several shards notice one deletion within this time.
const SAME_DELETION: Duration = Duration::from_secs(30);

impl Shared {
    fn fence_of(&self, block: u16) -> String {
        format!("{}:{{{block:x}}}:owner{}", self.namespace, self.scope)
    }

    /// The key of the marker: its value is another one after all keys were deleted.
    fn marker(&self) -> String {
        format!("{}:marker", self.namespace)
    }

    /// Logs once that the documents were deleted.
    fn note_deletion(&self) {
        let mut deleted = self.deleted.lock().unwrap_or_else(PoisonError::into_inner);
        if deleted.is_none_or(|at| at.elapsed() > SAME_DELETION) {
            tracing::error!(
                "Redis at {}: the contexts were deleted, or replaced (FLUSHALL, another server): those in memory are written again, UEs of \
                 others register again",
                self.access.url
            );
        }
        *deleted = Some(Instant::now());
    }
}

impl RedisStore {
    /// Connects once, to find mistakes at the start, and writes: a server that takes no writes (`maxmemory`) is refused.
    pub fn open(settings: RedisSettings) -> Result<Self, RedisOpenError> {
        let RedisSettings { url, password_file, ca, secret, scope, kinds } = settings;
        let password = password_file.as_deref().map(read_password).transpose()?;
        let tls = ca.as_deref().filter(|_| url.is_tls()).map(read_ca).transpose()?;
        if url.is_tls() && tls.is_none() {
            let reason = "TLS needs the CA of the server: set 'state.redis.ca'".into();
            return Err(RedisOpenError {
                setting: "state.redis.url",
                value: url.to_string(),
                reason,
                may_pass: false,
            });
        }
        let access = Access { url, password, tls };
        Connection::open(&access).map_err(|error| RedisOpenError {
            setting: "state.redis.url",
            value: access.url.to_string(),
            reason: error.reason,
            may_pass: true,
        })?;
        let namespace = format!("pith:{}", hex::encode(secret.id()));
        let deleted = Mutex::default();
        let store = Self { shared: Arc::new(Shared { access, secret, namespace, scope, kinds, deleted }) };
        let random =
            engine::new_marker().map_err(|error| store.refused(RequestError::new(error.to_string())))?;
        // Redis refuses SET if its memory is full, also if there is a marker.
        store.command(redis::cmd("SET").arg(store.shared.marker()).arg(random).arg("NX"))?;
        Ok(store)
    }

    /// An engine for a shard.
    pub fn engine(&self) -> RedisEngine {
        RedisEngine::new(Arc::clone(&self.shared))
    }

    /// The owner map, and the leases of the instances.
    pub fn owners(&self) -> RedisOwners {
        RedisOwners::new(Arc::clone(&self.shared))
    }

    /// What all keys of the core begin with.
    pub fn namespace(&self) -> &str {
        &self.shared.namespace
    }

    /// Whether a process of this scope has used the server before: it has claimed blocks.
    pub fn is_used(&self) -> Result<bool, RedisOpenError> {
        let mut commands = Commands::default();
        for block in 0..super::BLOCKS {
            commands.add(redis::cmd("GET").arg(self.shared.fence_of(block as u16)));
        }
        let mut is_used = false;
        let mut connection = Connection::open(&self.shared.access).map_err(|error| self.refused(error))?;
        let asked = connection.request(&commands, &mut |_, reply| is_used |= reply != Value::Nil);
        asked.map(|()| is_used).map_err(|error| self.refused(error))
    }

    /// The text under a name that all processes of the core have in common.
    pub fn note(&self, name: &str) -> Result<Option<String>, RedisOpenError> {
        let found = self.command(redis::cmd("GET").arg(format!("{}:{name}", self.shared.namespace)))?;
        Ok((found != Value::Nil).then(|| connection::text(&found)))
    }

    /// Stores a text under a name.
    pub fn set_note(&self, name: &str, text: &str) -> Result<(), RedisOpenError> {
        self.command(redis::cmd("SET").arg(format!("{}:{name}", self.shared.namespace)).arg(text)).map(drop)
    }

    fn command(&self, command: &redis::Cmd) -> Result<Value, RedisOpenError> {
        let connection = Connection::open(&self.shared.access);
        connection.and_then(|mut connection| connection.command(command)).map_err(|error| self.refused(error))
    }

    fn refused(&self, error: RequestError) -> RedisOpenError {
        RedisOpenError {
            setting: "state.redis.url",
            value: self.shared.access.url.to_string(),
            may_pass: true,
            reason: error.reason,
        }
    }

    /// The address of the server.
    pub fn url(&self) -> &RedisUrl {
        &self.shared.access.url
    }
}

fn read_password(path: &Path) -> Result<Zeroizing<String>, RedisOpenError> {
    let failed = |reason: String| RedisOpenError {
        setting: "state.redis.password_file",
        value: path.display().to_string(),
        may_pass: false,
        reason,
    };
    let text = private_file::read(path, Readers::Owner).map_err(|error| failed(error.to_string()))?;
    let password = Zeroizing::new(text.trim().to_owned());
    if password.is_empty() {
        return Err(failed("the file has no password".into()));
    }
    Ok(password)
}

fn read_ca(path: &Path) -> Result<Arc<ClientConfig>, RedisOpenError> {
    let failed = |reason: String| RedisOpenError {
        setting: "state.redis.ca",
        value: path.display().to_string(),
        may_pass: false,
        reason,
    };
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| failed(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| failed(error.to_string()))?;
        roots.add(certificate).map_err(|error| failed(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(failed("the file has no certificate (PEM)".into()));
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| failed(error.to_string()))?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}
