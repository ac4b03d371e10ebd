//! Errors of the database, with advice for the operator.

use super::SealError;
use pith_nf::kit::StoreError;
use pith_types::Supi;
use std::path::PathBuf;

/// An error of the database.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The file or its directory cannot be created or read.
    #[error("cannot use the database {}: {source}; set 'store.path' to a file that this user can write", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// Another process has the file open.
    #[error("another process uses the database {}: is a core already running?", .0.display())]
    InUse(PathBuf),
    /// The file is none of SQLite.
    #[error("{} is no database, or its begin is damaged: restore it from a backup, or set 'store.path' to another file", .0.display())]
    NotADatabase(PathBuf),
    /// A later release wrote the file.
    #[error("a later release of Pith wrote the database {} (format {found}; this is Pith {}, which supports formats up to {known}): start that release again, or restore a copy of the file from before the upgrade", path.display(), env!("CARGO_PKG_VERSION"))]
    TooNew {
        /// Path of the file.
        path: PathBuf,
        /// Format of the file.
        found: u32,
        /// The highest supported format.
        known: u32,
    },
    /// The subscriber already exists.
    #[error("subscriber {0} already exists: delete it first, or request to replace it")]
    Exists(Supi),
    /// The subscriber's data is not valid.
    #[error("subscriber {supi}: {sentence}")]
    Invalid {
        /// SUPI of the subscriber.
        supi: Supi,
        /// The problem and what to do about it.
        sentence: String,
    },
    /// Another subscriber has a static address or a framed route.
    #[error(
        "subscriber {supi}: {address}/{prefix} has addresses of subscriber {other}: a static address or framed route belongs to one subscriber"
    )]
    Assigned {
        /// SUPI of the subscriber to be added.
        supi: Supi,
        /// The address or network.
        address: std::net::IpAddr,
        /// Its prefix length.
        prefix: u8,
        /// SUPI of the subscriber that has it.
        other: String,
    },
    /// Subscribers' keys cannot be encrypted or decrypted.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// SQLite failed.
    #[error("the database failed: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// A stored subscriber cannot be parsed.
    #[error("the database contains an invalid profile: {0}")]
    Profile(#[from] serde_json::Error),
    /// The database's thread has ended: the core shuts down.
    #[error("the database is closed")]
    Closed,
}

impl From<&DatabaseError> for StoreError {
    fn from(error: &DatabaseError) -> Self {
        Self(error.to_string())
    }
}
