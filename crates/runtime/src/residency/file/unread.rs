//! A log that this process does not open, because its documents are elsewhere: which contexts stay unread.

use super::super::{DocumentKey, DocumentKind};
use super::OpenError;
use super::key_list::{self, KeyList};
use super::record::{Item, RecordKind, scan};
use super::recovery;
use std::collections::HashMap;
use std::path::Path;

/// Number of contexts of UEs, PDU sessions and policy associations in the log of a directory; 0 if there is none. Files are only read, and
/// of a segment that has a key list only the list. Records of NFs (profiles, subscriptions, runs of an SMF) and challenges do not count.
///
/// # Errors
/// A segment or the directory cannot be read.
pub fn contexts_in_log(directory: &Path) -> Result<usize, OpenError> {
    if !directory.is_dir() {
        return Ok(0);
    }
    let mut newest = Newest::default();
    for path in recovery::files(directory)?.0.into_values() {
        match KeyList::read(&key_list::path_of(&path)) {
            Some(list) => {
                let records = list.records().iter();
                records.for_each(|record| newest.add(record.key, record.kind, record.sequence));
            }
            None => newest.add_segment(&path)?,
        }
    }
    Ok(newest.0.into_values().filter(|(_, kind)| *kind != RecordKind::Tombstone).count())
}

/// The last record of each context.
#[derive(Default)]
struct Newest(HashMap<DocumentKey, (u64, RecordKind)>);

impl Newest {
    fn add_segment(&mut self, path: &Path) -> Result<(), OpenError> {
        let octets = match recovery::read(path) {
            Ok((_, octets)) => octets,
            // The process that has the log may delete a segment meanwhile.
            Err(OpenError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        scan(&octets, |item| match item {
            Item::Record { header, .. } => self.add(header.key, header.kind, header.sequence),
            Item::Damaged { key, kind, sequence, .. } => self.add(key, kind, sequence),
            Item::Lost { .. } => {}
        });
        Ok(())
    }

    fn add(&mut self, key: DocumentKey, kind: RecordKind, sequence: u64) {
        let is_context =
            matches!(key.kind, DocumentKind::Amf | DocumentKind::Smf | DocumentKind::Pcf | DocumentKind::Ue);
        if !is_context || !kind.is_of_document() {
            return;
        }
        let known = self.0.entry(key).or_insert((sequence, kind));
        if known.0 < sequence {
            *known = (sequence, kind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{Directory, file_store, key, whole};
    use super::super::super::{Batch, Engine, OwnerVersion, Revision};
    use super::*;
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::PathBuf;

    fn content_of(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    }

    #[test]
    fn contexts_are_counted_in_a_log_in_use_and_after_a_stop_and_nothing_is_changed() {
        let directory = Directory::new();
        let log = directory.path().join("log");
        let store = file_store(directory.path());
        let mut engine = store.engine(0).unwrap();
        for number in 0..4 {
            engine.append(&whole(1, key(1, number), 1, b"x")).unwrap();
        }
        engine.append(&whole(1, key(1, 3), 2, b"y")).unwrap();
        let mut deletion = Batch::new(OwnerVersion(1));
        deletion.delete(key(1, 0), Revision(0));
        engine.append(&deletion).unwrap();
        // As after kill -9: without key lists.
        let before = content_of(&log);
        assert_eq!(contexts_in_log(&log).unwrap(), 3);
        // The flushing thread may make its spare segment meanwhile.
        let after = content_of(&log);
        assert!(before.iter().all(|(path, content)| after.get(path) == Some(content)));
        drop(engine);
        drop(store);
        let before = content_of(&log);
        assert!(before.keys().any(|path| path.extension().is_some_and(|it| it == "keys")));
        assert_eq!(contexts_in_log(&log).unwrap(), 3);
        assert_eq!(content_of(&log), before);
    }

    #[test]
    fn a_log_without_contexts_has_none() {
        let directory = Directory::new();
        let log = directory.path().join("log");
        assert_eq!(contexts_in_log(&log).unwrap(), 0, "no directory");
        let store = file_store(directory.path());
        let mut engine = store.engine(0).unwrap();
        assert_eq!(contexts_in_log(&log).unwrap(), 0, "no record");
        engine.fence(1, OwnerVersion(2)).unwrap();
        let profile = DocumentKey::new(DocumentKind::Nrf, 1, 1).unwrap();
        engine.append(&whole(2, profile, 1, b"x")).unwrap();
        assert_eq!(contexts_in_log(&log).unwrap(), 0, "a fence, and a profile of the NRF");
        engine.append(&whole(2, key(1, 1), 1, b"x")).unwrap();
        assert_eq!(contexts_in_log(&log).unwrap(), 1);
    }

    #[test]
    fn damage_hides_no_other_contexts() {
        let directory = Directory::new();
        let log = directory.path().join("log");
        let store = file_store(directory.path());
        let mut engine = store.engine(0).unwrap();
        for number in 0..3 {
            engine.append(&whole(1, key(1, number), 1, b"x")).unwrap();
        }
        let path = content_of(&log).into_iter().max_by_key(|(_, octets)| octets.len()).unwrap().0;
        let octets = fs::read(&path).unwrap();
        for at in 0..octets.len() {
            let mut damaged = octets.clone();
            damaged[at] ^= 0xff;
            fs::write(&path, damaged).unwrap();
            assert!(contexts_in_log(&log).unwrap() >= 2, "octet {at}");
        }
    }
}
