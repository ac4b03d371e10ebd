//! Writes of a document that has several writers (residencies `shared` and `embedded`): a write is conditional on the revision that
//! its writer read. If another writer was faster, the document is read again, and the writer's sections replace those with the same
//! ids; all others stay as the other writer left them.
//!
//! ```text
//!  append(if revision is 7) ── conflict ──> read: revision 8 ──> its sections + own ones ──> append(if revision is 8)
//! ```
//!
//! Each write raises the revision, so that no revision occurs twice while there is a document.

use super::document::{Change, Entry, merge};
use super::{Appended, Batch, Document, DocumentError, DocumentKey, Engine, EngineError, Head, Revision};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of attempts to merge a document that other shards write at the same time; then the writer gets the conflict.
const ATTEMPTS: usize = 16;

/// Writes a batch, and merges what conflicts with another writer's change. Conflicts remain where the document is lost, or is
/// outdated, and the change has not all of it. What conflicts is read with one request, and written with one.
pub fn append(engine: &mut dyn Engine, batch: &Batch) -> Result<Appended, EngineError> {
    let mut appended = engine.append(batch)?;
    let is_merged = |at: &usize| batch.entries().get(*at).is_some_and(|entry| entry.own.is_some());
    let (mut left, mut conflicts): (Vec<usize>, Vec<usize>) =
        std::mem::take(&mut appended.conflicts).into_iter().partition(is_merged);
    for _ in 0..ATTEMPTS {
        if left.is_empty() {
            break;
        }
        let (now, later) = first_of_each(batch, left);
        let found = read(engine, &now)?;
        let (mut again, mut written) = (Batch::new(batch.owner()), Vec::new());
        for (at, entry) in now {
            let place = if merge_into(&mut again, batch, entry, found.get(&entry.key)) {
                &mut written
            } else {
                &mut conflicts
            };
            place.push(at);
        }
        let result = engine.append(&again)?;
        appended.sequence = appended.sequence.max(result.sequence);
        left = result.conflicts.iter().filter_map(|at| written.get(*at).copied()).chain(later).collect();
    }
    conflicts.append(&mut left);
    conflicts.sort_unstable();
    appended.conflicts = conflicts;
    Ok(appended)
}

/// The first of these changes of each document; the others, in their order.
fn first_of_each(batch: &Batch, changes: Vec<usize>) -> (Vec<(usize, &Entry)>, Vec<usize>) {
    let (mut first, mut later, mut documents) = (Vec::new(), Vec::new(), BTreeSet::new());
    for at in changes {
        match batch.entries().get(at) {
            Some(entry) if documents.insert(entry.key) => first.push((at, entry)),
            _ => later.push(at),
        }
    }
    (first, later)
}

/// What the engine has of the documents of these changes.
fn read(
    engine: &mut dyn Engine,
    changes: &[(usize, &Entry)],
) -> Result<BTreeMap<DocumentKey, Document>, EngineError> {
    let keys: Vec<DocumentKey> = changes.iter().map(|(_, entry)| entry.key).collect();
    let (mut found, mut failure) = (BTreeMap::new(), None);
    engine.read_each(&keys, &mut |key, read| match read {
        Ok(document) => found.extend(document.map(|document| (key, document))),
        Err(error) if error.is_temporary() => failure = Some(unreachable(&error)),
        // No program can read it: the writer's copy replaces it.
        Err(_) => {}
    });
    match failure {
        Some(error) => Err(error),
        None => Ok(found),
    }
}

/// Adds the change for a document as it was found; returns `false` if that is not possible.
fn merge_into(again: &mut Batch, batch: &Batch, entry: &Entry, found: Option<&Document>) -> bool {
    let Some(found) = found.filter(|found| !found.is_stale) else {
        // Sections of other contexts may be outdated or lost. Those of the writer are not, if it has them all.
        if entry.change == Change::Update {
            return false;
        }
        again.begin(entry.head(), entry.change);
        again.add_wire(batch.sections(entry));
        return true;
    };
    let own = batch.own_sections(entry);
    let merged = merge([found.wire(), own]);
    // Not the revision that the writer takes for its own: its copy does not have what was merged.
    let revision = Revision(entry.revision.0.max(found.revision.0) + 1);
    let head = Head { revision, ..entry.head() };
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
    true
}

fn unreachable(error: &DocumentError) -> EngineError {
    EngineError::Paused(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::{DocumentKind, MemoryStore, OwnerVersion};
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
