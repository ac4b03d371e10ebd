//! An open database.

use super::documents::Documents;
use super::seal::{Seal, SealError};
use super::{DatabaseError, schema};
use crate::private_file;
use pith_nf::kit::{StoreRequest, Subscriber};
use pith_types::Supi;
use rusqlite::{Connection, ErrorCode, OptionalExtension};
use std::collections::HashMap;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Location of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabaseLocation {
    /// In memory: lost when closed.
    Memory,
    /// A file readable by its owner only; created if it does not exist.
    File {
        /// File of the database.
        path: PathBuf,
        /// File of the key that encrypts subscribers' keys.
        key: PathBuf,
    },
}

impl DatabaseLocation {
    /// A database file with the key file beside it: `pith.db` and `pith.db.key`.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let mut key = path.clone().into_os_string();
        key.push(".key");
        Self::File { path, key: key.into() }
    }
}

/// An open database. The process has exclusive access to its file, so that the cache stays valid.
pub struct Database {
    pub(super) connection: Connection,
    pub(super) cache: HashMap<Supi, Arc<Subscriber>>,
    pub(super) documents: Documents,
    pub(super) seal: Seal,
}

impl Database {
    /// Opens the database; creates it if it does not exist, and migrates it to this release's format.
    pub fn open(location: &DatabaseLocation) -> Result<Self, DatabaseError> {
        let mut connection = match location {
            DatabaseLocation::Memory => Connection::open_in_memory()?,
            DatabaseLocation::File { path, key } => {
                // First: another process that finds the database expects its key.
                if !path.exists() {
                    Seal::of_file(key, true)?;
                }
                open_file(path)?
            }
        };
        connection.set_prepared_statement_cache_capacity(32);
        let found = schema::version(&connection)?;
        if found > schema::VERSION {
            let path = PathBuf::from(connection.path().unwrap_or_default());
            return Err(DatabaseError::TooNew { path, found, known: schema::VERSION });
        }
        schema::migrate(&mut connection, found)?;
        let sealed_under = sealed_under(&connection)?;
        let seal = match location {
            DatabaseLocation::Memory => Seal::ephemeral()?,
            DatabaseLocation::File { key, .. } => Seal::of_file(key, sealed_under.is_none())?,
        };
        let documents = Documents::new(matches!(location, DatabaseLocation::File { .. }));
        let mut database = Self { connection, cache: HashMap::new(), documents, seal };
        match (sealed_under, location) {
            (Some(wanted), DatabaseLocation::File { key, .. }) if wanted != database.seal.id() => {
                let found = database.seal.id().to_owned();
                return Err(SealError::OtherKey { path: key.clone(), found, wanted }.into());
            }
            (Some(_), _) => {}
            (None, _) => database.seal_all(found > 0)?,
        }
        database.rehearse()?;
        Ok(database)
    }

    /// The last process that used the log of contexts, as [`Self::set_run`] has stored it.
    pub fn run(&self) -> Result<Option<String>, DatabaseError> {
        Ok(self.connection.query_row("SELECT id FROM run", [], |row| row.get(0)).optional()?)
    }

    /// Stores the id of the process that uses the log of contexts. It survives a power failure.
    pub fn set_run(&mut self, id: &str) -> Result<(), DatabaseError> {
        self.connection.pragma_update(None, "synchronous", "FULL")?;
        let stored = self.transaction(|database| {
            database.connection.execute("DELETE FROM run", [])?;
            database.connection.execute("INSERT INTO run VALUES (?1)", [id])?;
            Ok(())
        });
        self.connection.pragma_update(None, "synchronous", "NORMAL")?;
        stored
    }

    /// Runs the statements of a registration once and rolls them back, so that the first UE does not wait for
    /// their compilation.
    fn rehearse(&mut self) -> Result<(), DatabaseError> {
        let Ok(supi) = "imsi-001010000000000".parse::<Supi>() else { return Ok(()) };
        let resource = String::new();
        let requests = [
            StoreRequest::PutSequenceNumber { supi: supi.clone(), sqn: 0, expected: Some(0) },
            StoreRequest::PutDocument { supi: supi.clone(), resource: resource.clone(), body: String::new() },
            StoreRequest::Document { supi: supi.clone(), resource: resource.clone() },
            StoreRequest::DeleteDocument { supi: supi.clone(), resource },
            StoreRequest::Subscriber(supi),
        ];
        self.begin()?;
        self.commit()?;
        self.begin()?;
        requests.iter().try_for_each(|request| self.handle(request).map(drop))?;
        self.roll_back()
    }

    /// Runs `work` in a transaction.
    pub(super) fn transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        self.begin()?;
        let result = work(self);
        let ended = match &result {
            Ok(_) => self.commit(),
            Err(_) => self.roll_back(),
        };
        ended.and(result)
    }

    pub(super) fn begin(&mut self) -> Result<(), DatabaseError> {
        self.execute("BEGIN IMMEDIATE")
    }

    pub(super) fn commit(&mut self) -> Result<(), DatabaseError> {
        let committed = self.execute("COMMIT");
        if committed.is_err() {
            // The first error is the one to return; a rollback without an open transaction fails too.
            let _ = self.roll_back();
        }
        committed
    }

    fn roll_back(&mut self) -> Result<(), DatabaseError> {
        self.cache.clear();
        self.documents.roll_back();
        self.execute("ROLLBACK")
    }

    fn execute(&self, sql: &str) -> Result<(), DatabaseError> {
        self.connection.prepare_cached(sql)?.execute([])?;
        Ok(())
    }
}

/// The id of the key that encrypts subscribers' keys, if any are stored.
fn sealed_under(connection: &Connection) -> rusqlite::Result<Option<String>> {
    connection.query_row("SELECT key_id FROM sealed_under", [], |row| row.get(0)).optional()
}

/// Opens a file exclusively. WAL with `synchronous=NORMAL`: a commit needs no fsync and survives a crash of
/// the process; a power failure may lose the last commits but does not damage the file.
fn open_file(path: &Path) -> Result<Connection, DatabaseError> {
    make_private(path).map_err(|source| DatabaseError::File { path: path.into(), source })?;
    let prepare = || {
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_millis(200))?;
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        // Deleted data is overwritten: an earlier release stored keys in cleartext.
        connection.pragma_update(None, "secure_delete", "ON")?;
        connection.execute_batch("BEGIN IMMEDIATE; COMMIT")?;
        Ok(connection)
    };
    prepare().map_err(|error: rusqlite::Error| match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => DatabaseError::InUse(path.into()),
        Some(ErrorCode::NotADatabase) => DatabaseError::NotADatabase(path.into()),
        _ => error.into(),
    })
}

/// Creates the file and its directory, accessible by their owner only, as they contain keys.
fn make_private(path: &Path) -> std::io::Result<()> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    private_file::refuse_foreign_link(path)?;
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
    }
    Ok(())
}
