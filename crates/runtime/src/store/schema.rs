//! The tables, and the migration of files with earlier formats.

use rusqlite::Connection;

/// Migrations from one format to the next; `user_version` of a file is the number of applied ones.
const STEPS: [&str; 7] = ["
    CREATE TABLE subscriber (
        supi TEXT PRIMARY KEY,
        sqn INTEGER NOT NULL,      -- highest sequence number used, 48 bits
        profile TEXT NOT NULL      -- JSON of the subscriber; its sqn does not count
    ) WITHOUT ROWID;
    CREATE TABLE document (
        supi TEXT NOT NULL,
        resource TEXT NOT NULL,    -- path below the UE in Nudr_DataRepository
        body TEXT NOT NULL,        -- JSON
        PRIMARY KEY (supi, resource)
    ) WITHOUT ROWID;
", "
    ALTER TABLE subscriber ADD COLUMN keys BLOB NOT NULL DEFAULT x'';    -- sealed; the profile's count no more
    CREATE TABLE sealed_under (key_id TEXT PRIMARY KEY) WITHOUT ROWID;   -- one row: the key of all sealed columns
", "
    CREATE TABLE sequence_number (    -- apart from the profile, as it changes with each authentication
        supi TEXT PRIMARY KEY,
        sqn INTEGER NOT NULL          -- highest sequence number used, 48 bits
    ) WITHOUT ROWID;
    INSERT INTO sequence_number SELECT supi, sqn FROM subscriber;
    ALTER TABLE subscriber DROP COLUMN sqn;
", "
    CREATE TABLE run (id TEXT PRIMARY KEY) WITHOUT ROWID;    -- one row: the last process that used the log of contexts
", "
    CREATE TABLE withdrawn (supi TEXT PRIMARY KEY) WITHOUT ROWID;    -- deleted subscribers whose UEs an AMF may still serve
", "
    CREATE TABLE changed (    -- subscribers with changed data, until the NFs that serve their UEs were notified
        number INTEGER PRIMARY KEY AUTOINCREMENT,    -- a further change has a higher one
        supi TEXT NOT NULL UNIQUE
    );
", "
    CREATE TABLE assigned (    -- static addresses and framed routes; no two have an address in common
        first BLOB PRIMARY KEY,    -- IP version and first address, 17 octets
        last BLOB NOT NULL,
        supi TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX assigned_of ON assigned (supi);
"];

/// The format that this release writes.
pub(super) const VERSION: u32 = STEPS.len() as u32;

/// The format of an open file; 0 for a new one.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Migrates a file to this release's format in one transaction.
pub(super) fn migrate(connection: &mut Connection, from: u32) -> rusqlite::Result<()> {
    if from == VERSION {
        // Without a write: the disk may be full.
        return Ok(());
    }
    let transaction = connection.transaction()?;
    for step in STEPS.iter().skip(from as usize) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}
