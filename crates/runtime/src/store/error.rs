//! What can go wrong with the database, for the operator.

use super::SealError;
use pith_nf::kit::StoreError;
use pith_types::Supi;
use std::path::PathBuf;

/// Why the database did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The file or its directory can't be made or read.
    #[error("can't use the database {}: {source}; set 'store.path' to a place that this user may write", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Another process has the file open.
    #[error("another process uses the database {}: is a core running already?", .0.display())]
    InUse(PathBuf),
    /// A later release made the file.
    #[error("the database {} has format {found}, this release knows up to {known}: use the later release that wrote it", path.display())]
    TooNew {
        /// Which file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The highest known one.
        known: u32,
    },
    /// The subscriber is there already.
    #[error("there is a subscriber {0} already: delete it first, or ask for it to be replaced")]
    Exists(Supi),
    /// The subscriber is not one that can be used.
    #[error("subscriber {supi}: {sentence}")]
    Invalid {
        /// Whose.
        supi: Supi,
        /// What is wrong and what to do.
        sentence: String,
    },
    /// Subscribers' keys can't be sealed or opened.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// SQLite failed.
    #[error("the database failed: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// A stored subscriber can't be read.
    #[error("the database holds a profile that can't be read: {0}")]
    Profile(#[from] serde_json::Error),
    /// The thread is gone: the core shuts down.
    #[error("the database is closed")]
    Closed,
}

impl From<&DatabaseError> for StoreError {
    fn from(error: &DatabaseError) -> Self {
        Self(error.to_string())
    }
}
