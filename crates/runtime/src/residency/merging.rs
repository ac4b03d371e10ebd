//! Writes of a document that has several writers (residencies `shared` and `embedded`): a write is conditional on the revision that
//! its writer read. If another writer was faster, the document is read anew, and the writer's sections replace those with the same
//! ids; all others stay as the other writer left them.
//!
//! ```text
//!  append(if revision is 7) ── conflict ──> read: revision 8 ──> its sections + own ones ──> append(if revision is 8)
//! ```
//!
//! Each write raises the revision, so that no revision occurs twice while there is a document.

use super::document::{Change, Entry, merge};
use super::{Appended, Batch, Document, DocumentError, Engine, EngineError, Head, Revision};

/// Attempts until a conflict is returned to the writer: so many others would have to be faster each time.
const ATTEMPTS: usize = 16;

/// Writes a batch, and merges what conflicts with another writer's change. Conflicts remain where the document is lost, or is
/// outdated, and the change has not all of it.
pub(super) fn append(engine: &mut dyn Engine, batch: &Batch) -> Result<Appended, EngineError> {
    let mut appended = engine.append(batch)?;
    let mut conflicts = Vec::new();
    for at in std::mem::take(&mut appended.conflicts) {
        let entry = batch.entries().get(at).filter(|entry| entry.own.is_some());
        match entry {
            Some(entry) => match resolve(engine, batch, entry)? {
                Some(merged) => appended.sequence = appended.sequence.max(merged.sequence),
                None => conflicts.push(at),
            },
            None => conflicts.push(at),
        }
    }
    appended.conflicts = conflicts;
    Ok(appended)
}

/// Merges a change into what the engine has; `None` if that is not possible.
fn resolve(engine: &mut dyn Engine, batch: &Batch, entry: &Entry) -> Result<Option<Appended>, EngineError> {
    for _ in 0..ATTEMPTS {
        let found = match engine.read(entry.key) {
            Ok(found) => found,
            Err(error) if error.is_temporary() => return Err(unreachable(&error)),
            // Nobody can read it: the writer's copy replaces it.
            Err(_) => None,
        };
        let Some(again) = merged(batch, entry, found.as_ref()) else { return Ok(None) };
        let appended = engine.append(&again)?;
        if appended.conflicts.is_empty() {
            return Ok(Some(appended));
        }
    }
    Ok(None)
}

/// The change for a document as it was found.
fn merged(batch: &Batch, entry: &Entry, found: Option<&Document>) -> Option<Batch> {
    let Some(found) = found.filter(|found| !found.is_stale) else {
        // Sections of other contexts may be outdated or lost. Those of the writer are not, if it has them all.
        let mut whole = batch.only(entry);
        whole.set_expected(None);
        return (entry.change != Change::Update).then_some(whole);
    };
    let own = batch.own_sections(entry);
    let merged = merge([found.wire(), own]);
    // Not the revision that the writer takes for its own: its copy does not have what was merged.
    let revision = Revision(entry.revision.0.max(found.revision.0) + 1);
    let head = Head { revision, ..entry.head() };
    let mut again = Batch::new(batch.owner());
    if merged.is_empty() {
        again.delete(entry.key, revision);
    } else if entry.change == Change::Update {
        again.update(head);
        again.add_wire(own);
    } else {
        again.replace(head);
        again.add_wire(&merged);
    }
    again.expect(found.revision);
    Some(again)
}

fn unreachable(error: &DocumentError) -> EngineError {
    EngineError::Paused(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::{DocumentKey, DocumentKind, MemoryStore, OwnerVersion};
    use super::*;

    fn key() -> DocumentKey {
        DocumentKey::new(DocumentKind::Ue, 3, 7).unwrap()
    }

    /// A change of a document with that revision: sections that others wrote, and own ones.
    fn write(
        store: &MemoryStore,
        (change, expected): (Change, u64),
        others: &[(u64, &str)],
        own: &[(u64, Option<&str>)],
    ) -> Vec<usize> {
        let mut batch = Batch::new(OwnerVersion(0));
        let head = Head { key: key(), revision: Revision(expected + 1), layout: 1, deadline: None };
        let mut writer = match change {
            Change::Replace => batch.replace(head),
            Change::Update => batch.update(head),
            Change::Delete => {
                batch.delete(key(), head.revision);
                batch.update(head)
            }
        };
        for (id, value) in others {
            writer.section(*id, value.as_bytes());
        }
        batch.own_from_here();
        for (id, value) in own {
            let mut writer = batch.continued();
            match value {
                Some(value) => writer.section(*id, value.as_bytes()),
                None => writer.remove(*id),
            };
        }
        batch.expect(Revision(expected));
        append(&mut store.engine(), &batch).unwrap().conflicts
    }

    fn content(store: &MemoryStore) -> Vec<(u64, String)> {
        let found = store.engine().read(key()).unwrap();
        let text = |octets: &[u8]| String::from_utf8(octets.to_vec()).unwrap();
        found.iter().flat_map(Document::sections).map(|(id, octets)| (id, text(octets))).collect()
    }

    fn expect(store: &MemoryStore, expected: &[(u64, &str)]) {
        let expected: Vec<_> = expected.iter().map(|(id, text)| (*id, (*text).to_owned())).collect();
        assert_eq!(content(store), expected);
    }

    const SMF: u64 = 1 << 40;

    #[test]
    fn two_writers_keep_each_others_sections() {
        let store = MemoryStore::default();
        assert!(write(&store, (Change::Replace, 0), &[], &[(1, Some("amf"))]).is_empty());
        // The SMF has not read the document; then the AMF writes what it read before.
        assert!(write(&store, (Change::Replace, 0), &[], &[(SMF, Some("smf"))]).is_empty());
        expect(&store, &[(1, "amf"), (SMF, "smf")]);
        assert!(write(&store, (Change::Replace, 1), &[(2, "old")], &[(1, Some("amf 2"))]).is_empty());
        expect(&store, &[(1, "amf 2"), (SMF, "smf")]);
        assert!(write(&store, (Change::Update, 1), &[], &[(SMF, Some("smf 2")), (1, None)]).is_empty());
        expect(&store, &[(SMF, "smf 2")]);
    }

    #[test]
    fn a_writer_whose_change_was_merged_does_not_replace_what_it_has_not_read() {
        let store = MemoryStore::default();
        assert!(write(&store, (Change::Replace, 0), &[], &[(SMF, Some("smf"))]).is_empty());
        assert!(write(&store, (Change::Replace, 6), &[], &[(1, Some("amf"))]).is_empty());
        // The writer knows only of its own change, and expects the revision that it gave it.
        assert!(write(&store, (Change::Replace, 7), &[], &[(1, Some("amf 2"))]).is_empty());
        expect(&store, &[(1, "amf 2"), (SMF, "smf")]);
    }

    #[test]
    fn the_last_section_takes_the_document_with_it() {
        let store = MemoryStore::default();
        assert!(write(&store, (Change::Replace, 0), &[], &[(1, Some("amf"))]).is_empty());
        assert!(write(&store, (Change::Replace, 7), &[(9, "gone")], &[(1, None)]).is_empty());
        assert!(store.engine().read(key()).unwrap().is_none());
    }

    #[test]
    fn an_update_of_a_lost_document_is_a_conflict_and_a_whole_one_is_written() {
        let store = MemoryStore::default();
        assert_eq!(write(&store, (Change::Update, 5), &[], &[(1, Some("changed"))]), [0]);
        assert!(write(&store, (Change::Replace, 5), &[(2, "other")], &[(1, Some("own"))]).is_empty());
        expect(&store, &[(1, "own"), (2, "other")]);
    }
}
