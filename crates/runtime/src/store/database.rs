//! One open database: what every user of it shares.

use super::seal::{Seal, SealError};
use super::{DatabaseError, schema};
use pith_nf::kit::{StoreRequest, Subscriber};
use pith_types::Supi;
use rusqlite::{Connection, ErrorCode, OptionalExtension};
use std::collections::HashMap;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Where a database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In memory: gone when closed.
    Memory,
    /// A file, made if there is none, readable by its owner only.
    File {
        /// The database.
        path: PathBuf,
        /// The key that subscribers' keys are sealed under.
        key: PathBuf,
    },
}

impl Place {
    /// A file, with the key beside it: `pith.db` and `pith.db.key`.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let mut key = path.clone().into_os_string();
        key.push(".key");
        Self::File { path, key: key.into() }
    }
}

/// An open database. It has its file alone, so what it remembers of it stays true.
pub struct Database {
    pub(super) connection: Connection,
    pub(super) cache: HashMap<Supi, Arc<Subscriber>>,
    pub(super) seal: Seal,
}

impl Database {
    /// Opens it, makes it if there is none, and brings it to this release's format.
    pub fn open(place: &Place) -> Result<Self, DatabaseError> {
        let mut connection = match place {
            Place::Memory => Connection::open_in_memory()?,
            Place::File { path, .. } => open_file(path)?,
        };
        connection.set_prepared_statement_cache_capacity(32);
        let found = schema::version(&connection)?;
        if found > schema::VERSION {
            let path = PathBuf::from(connection.path().unwrap_or_default());
            return Err(DatabaseError::TooNew { path, found, known: schema::VERSION });
        }
        schema::migrate(&mut connection, found)?;
        let sealed_under = sealed_under(&connection)?;
        let seal = match place {
            Place::Memory => Seal::ephemeral()?,
            Place::File { key, .. } => Seal::of_file(key, sealed_under.is_none())?,
        };
        let mut database = Self { connection, cache: HashMap::new(), seal };
        match (sealed_under, place) {
            (Some(wanted), Place::File { key, .. }) if wanted != database.seal.id() => {
                let found = database.seal.id().to_owned();
                return Err(SealError::OtherKey { path: key.clone(), found, wanted }.into());
            }
            (Some(_), _) => {}
            (None, _) => database.seal_all(found > 0)?,
        }
        database.rehearse()?;
        Ok(database)
    }

    /// Does once what every registration asks for and takes it back, so that the first phone does not wait
    /// for statements to be compiled.
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

    /// Does all of it or nothing.
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
            // The first error is the one to tell; rolling back what is not open fails too.
            let _ = self.roll_back();
        }
        committed
    }

    fn roll_back(&mut self) -> Result<(), DatabaseError> {
        self.cache.clear();
        self.execute("ROLLBACK")
    }

    fn execute(&self, sql: &str) -> Result<(), DatabaseError> {
        self.connection.prepare_cached(sql)?.execute([])?;
        Ok(())
    }
}

/// The id of the key that subscribers' keys are sealed under, if any are.
fn sealed_under(connection: &Connection) -> rusqlite::Result<Option<String>> {
    connection.query_row("SELECT key_id FROM sealed_under", [], |row| row.get(0)).optional()
}

/// Opens a file for this process alone. WAL with `synchronous=NORMAL`: a commit costs no fsync and
/// survives a crash of the process; a power cut may take the last ones, never the file.
fn open_file(path: &Path) -> Result<Connection, DatabaseError> {
    make_private(path).map_err(|source| DatabaseError::File { path: path.into(), source })?;
    let prepare = || {
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_millis(200))?;
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        // What was deleted is overwritten: an earlier release stored keys in the clear.
        connection.pragma_update(None, "secure_delete", "ON")?;
        connection.execute_batch("BEGIN IMMEDIATE; COMMIT")?;
        Ok(connection)
    };
    prepare().map_err(|error: rusqlite::Error| match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => DatabaseError::InUse(path.into()),
        _ => error.into(),
    })
}

/// Makes the file and its directory, both for their owner only; they hold keys.
fn make_private(path: &Path) -> std::io::Result<()> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
    }
    Ok(())
}
