//! The run of an SMF at its UPFs, as a document beside its sessions: the Recovery Time Stamp (TS 29.244 8.2.65), and the identifier of
//! the sessions of the run (`gateway/n4/retention.rs` of `pith-nf`).
//!
//! A run continues the former one, with the same time stamp, if no session was lost between them. The document is lost or outdated
//! together with the sessions, as it is in the same store.

use super::residency::Contexts;
use crate::clock::Clock;
use crate::residency::{Batch, Document, DocumentKey, DocumentKind, Engine, Head, OwnerVersion, Revision};
use pith_nf::gateway::n4::StoredRun;
use pith_types::BlockId;

/// The version of the document's layout, and its only section: time stamp and identifier.
const LAYOUT: u16 = 1;
const SECTION: u64 = 1;

/// A run of an SMF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SmfRun {
    /// In seconds since 1970.
    pub(super) recovery_time_stamp: u64,
    /// Present if sessions outlive the process without loss.
    pub(super) stored: Option<StoredRun>,
}

impl SmfRun {
    /// The run of a process that begins now. `block` is one of the SMF's blocks, and always the same one.
    pub(super) fn begin(contexts: Option<&Contexts>, block: Option<BlockId>, clock: Clock) -> Self {
        let now = clock.unix_seconds();
        let without = Self { recovery_time_stamp: now, stored: None };
        let Some((contexts, block)) = contexts.filter(|contexts| contexts.loses_nothing()).zip(block) else {
            return without;
        };
        let begun = contexts.engine_of_process().map_err(|error| error.to_string()).and_then(|mut engine| {
            begin(engine.as_mut(), block, now, contexts.has_lost_documents())
                .map_err(|error| error.to_string())
        });
        begun.unwrap_or_else(|error| {
            tracing::warn!("UPFs are not asked to retain sessions: {error}");
            without
        })
    }
}

/// Reads the document of the former run, and writes that of this one.
fn begin(
    engine: &mut dyn Engine,
    block: BlockId,
    now: u64,
    has_lost: bool,
) -> Result<SmfRun, crate::residency::EngineError> {
    let key = DocumentKey { kind: DocumentKind::SmfRun, block: block.number(), number: 0 };
    // A number that no former owner has; the shard claims its blocks after this.
    let owner = engine.claim(&[key.block], 1)?;
    // What cannot be read is not there.
    let found = engine.read(key).ok().flatten();
    let revision = found.as_ref().map_or(0, |document| document.revision.0) + 1;
    let former = found.filter(|document| !document.is_stale && !has_lost).and_then(|it| unpack(&it));
    let run = match former {
        Some((recovery_time_stamp, session_set)) => {
            let session_set = session_set.wrapping_add(1);
            SmfRun { recovery_time_stamp, stored: Some(StoredRun { session_set, has_former: true }) }
        }
        None => {
            SmfRun { recovery_time_stamp: now, stored: Some(StoredRun { session_set: 1, has_former: false }) }
        }
    };
    write(engine, owner, (key, Revision(revision)), &run)?;
    Ok(run)
}

fn write(
    engine: &mut dyn Engine,
    owner: OwnerVersion,
    (key, revision): (DocumentKey, Revision),
    run: &SmfRun,
) -> Result<(), crate::residency::EngineError> {
    let mut octets = run.recovery_time_stamp.to_be_bytes().to_vec();
    let session_set = run.stored.map_or(0, |stored| stored.session_set);
    octets.extend_from_slice(&session_set.to_be_bytes());
    let mut batch = Batch::new(owner);
    batch.replace(Head { key, revision, layout: LAYOUT, deadline: None }).section(SECTION, &octets);
    engine.append(&batch).map(drop)
}

fn unpack(document: &Document) -> Option<(u64, u16)> {
    let octets = document.section(SECTION).filter(|_| document.layout == LAYOUT)?;
    let (stamp, set) = octets.split_first_chunk()?;
    Some((u64::from_be_bytes(*stamp), u16::from_be_bytes(set.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::residency::{DocumentSecret, FileSettings, FileStore, FormerRun, Sync};
    use std::path::{Path, PathBuf};

    /// A new directory.
    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("pith-run-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        path
    }

    fn store(directory: &Path) -> FileStore {
        let secret = DocumentSecret::of_number(7);
        let directory = directory.to_owned();
        FileStore::open(FileSettings {
            directory,
            secret,
            sync: Sync::None,
            on_durable: None,
            former: FormerRun::Unknown,
        })
        .unwrap()
    }

    fn run(store: &FileStore, now: u64, has_lost: bool) -> (u64, StoredRun) {
        let block = BlockId::new(0).unwrap();
        let run = begin(&mut store.engine(9).unwrap(), block, now, has_lost).unwrap();
        (run.recovery_time_stamp, run.stored.unwrap())
    }

    const fn stored(session_set: u16, has_former: bool) -> StoredRun {
        StoredRun { session_set, has_former }
    }

    #[test]
    fn a_run_has_the_time_stamp_of_the_former_one_unless_contexts_were_lost() {
        let path = &directory("runs");
        assert_eq!(run(&store(path), 100, false), (100, stored(1, false)));
        assert_eq!(run(&store(path), 200, false), (100, stored(2, true)));
        assert_eq!(run(&store(path), 300, false), (100, stored(3, true)));
        assert_eq!(run(&store(path), 400, true), (400, stored(1, false)), "documents were lost");
        assert_eq!(run(&store(path), 500, false), (400, stored(2, true)));
        std::fs::remove_dir_all(path).unwrap();
        assert_eq!(run(&store(path), 600, false), (600, stored(1, false)), "with its sessions");
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn the_shards_writes_are_accepted_afterwards() {
        let path = directory("shard");
        let store = store(&path);
        let mut shard = store.engine(0).unwrap();
        run(&store, 100, false);
        let owner = shard.claim(&[0], 1).unwrap();
        let key = DocumentKey { kind: DocumentKind::Smf, block: 0, number: 5 };
        let mut batch = Batch::new(owner);
        batch.replace(Head { key, revision: Revision(1), layout: 1, deadline: None }).section(1, &[1]);
        assert!(shard.append(&batch).is_ok());
        drop((shard, store));
        std::fs::remove_dir_all(path).unwrap();
    }
}
