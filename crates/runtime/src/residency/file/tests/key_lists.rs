//! Damage in segments whose records are listed.

use super::super::key_list::{KeyList, path_of};
use super::*;
use std::sync::atomic::Ordering::Relaxed;

/// A closed segment with documents 0 to 5 of block 1 and its list. Document 0 has a newer record in another segment.
fn listed_log() -> (Directory, PathBuf, BTreeMap<DocumentKey, Vec<u8>>) {
    let (directory, mut documents) = crashed_log();
    let path = segment_of(&directory);
    let store = file_store(directory.path());
    wait_for(|| KeyList::read(&path_of(&path)).is_some());
    let mut engine = store.engine(0).unwrap();
    engine.append(&whole(1, key(1, 0), 2, b"newer")).unwrap();
    documents.insert(key(1, 0), b"newer".to_vec());
    crash(store, vec![engine]);
    (directory, path, documents)
}

fn wait_for(is_done: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_done() {
        assert!(Instant::now() < until, "it is not done");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Checks that only those documents are unknown, at this start and after the next ones.
fn check(
    directory: &Directory,
    documents: &BTreeMap<DocumentKey, Vec<u8>>,
    unknown: &[u32],
    reports: &[&str],
) {
    for start in 0..4 {
        let store = file_store(directory.path());
        let mut engine = store.engine(0).unwrap();
        let found = store.recovery();
        assert!(!found.is_stale, "{found:?}");
        for (key, octets) in documents {
            let read = engine.read(*key);
            if unknown.contains(&key.number) {
                let is_unknown = matches!(read, Ok(None) | Err(DocumentError::Damaged { .. }));
                assert!(is_unknown, "{key} at start {start}: {read:?}");
            } else {
                let read = read.unwrap().unwrap();
                assert!(!read.is_stale && read.section(1) == Some(octets.as_slice()), "{key}");
            }
        }
        if start == 0 {
            let damaged: Vec<_> = found.damaged.iter().map(ToString::to_string).collect();
            assert_eq!(damaged.len(), unknown.len(), "{damaged:?}");
            assert!(
                reports.iter().all(|words| found.lost.iter().any(|lost| lost.contains(words))),
                "{found:?}"
            );
        }
        if start == 2 {
            compact_all(&store);
        }
        crash(store, vec![engine]);
    }
}

#[test]
fn a_segment_without_records_is_not_listed_before_its_engine_appends() {
    let directory = Directory::new();
    let store = file_store(directory.path());
    let segment = store.shared.make_segment().unwrap();
    compaction::list_closed(&store.shared);
    assert!(!segment.is_listed.load(Relaxed) && !path_of(&segment.path).exists());
}

#[test]
fn a_list_that_lacks_records_is_written_again_at_the_next_start() {
    let (directory, _) = crashed_log();
    let path = segment_of(&directory);
    let octets = fs::read(&path).unwrap();
    let empty = KeyList::of(&octets, &[], SEGMENT_HEADER as u64).unwrap();
    empty.write(&path_of(&path)).unwrap();
    let store = file_store(directory.path());
    wait_for(|| KeyList::read(&path_of(&path)).is_some_and(|list| list.records().len() == 6));
    drop(store);
}

#[test]
fn a_damaged_page_concerns_the_documents_that_it_had() {
    let (directory, path, documents) = listed_log();
    let mut octets = fs::read(&path).unwrap();
    let record = (octets.len() - SEGMENT_HEADER) / documents.len();
    octets[SEGMENT_HEADER + 10..SEGMENT_HEADER + 3 * record - 10].fill(0);
    fs::write(&path, octets).unwrap();
    check(&directory, &documents, &[1, 2], &["are damaged", &path.display().to_string()]);
}

#[test]
fn a_segment_that_is_cut_lacks_the_documents_at_its_end() {
    for left in [0, 60, SEGMENT_HEADER] {
        let (directory, path, documents) = listed_log();
        let octets = fs::read(&path).unwrap();
        fs::write(&path, &octets[..left]).unwrap();
        check(&directory, &documents, &[1, 2, 3, 4, 5], &["missing at its end", &path.display().to_string()]);
    }
    let (directory, path, documents) = listed_log();
    let octets = fs::read(&path).unwrap();
    let record = (octets.len() - SEGMENT_HEADER) / documents.len();
    fs::write(&path, &octets[..octets.len() - record - 7]).unwrap();
    check(&directory, &documents, &[4, 5], &["missing at its end", &path.display().to_string()]);
}

#[test]
fn a_segment_that_is_removed_lacks_its_documents() {
    let (directory, path, documents) = listed_log();
    fs::remove_file(&path).unwrap();
    check(&directory, &documents, &[1, 2, 3, 4, 5], &["is missing", "of 5 contexts"]);
    let store = file_store(directory.path());
    wait_for(|| !path_of(&path).exists());
    drop(store);
    assert!(
        file_store(directory.path()).recovery().lost.is_empty(),
        "it is reported until the documents are deleted"
    );
}

#[test]
fn a_segment_that_is_removed_with_a_damaged_list_makes_all_documents_stale() {
    let (directory, path, _) = listed_log();
    fs::remove_file(&path).unwrap();
    let list = path_of(&path);
    let mut octets = fs::read(&list).unwrap();
    octets[30] ^= 1;
    fs::write(&list, octets).unwrap();
    for start in 0..2 {
        let store = file_store(directory.path());
        assert!(store.recovery().is_stale);
        let mut engine = store.engine(0).unwrap();
        assert!(engine.read(key(1, 0)).unwrap().unwrap().is_stale, "start {start}");
        engine.append(&whole(1, key(1, 9), 1, b"new")).unwrap();
        assert!(!engine.read(key(1, 9)).unwrap().unwrap().is_stale);
        crash(store, vec![engine]);
    }
}

#[test]
fn that_documents_are_stale_is_known_after_a_kill_at_any_time() {
    let (directory, path, _) = listed_log();
    fs::remove_file(&path).unwrap();
    fs::write(path_of(&path), "damaged").unwrap();
    for start in 0..3 {
        let store = file_store(directory.path());
        assert!(store.recovery().is_stale, "start {start}");
        let mut engine = store.engine(0).unwrap();
        assert!(engine.read(key(1, 0)).unwrap().unwrap().is_stale, "start {start}");
        // Killed before its first write.
        crash(store, vec![engine]);
    }
    let store = file_store(directory.path());
    let mut engine = store.engine(0).unwrap();
    engine.append(&whole(1, key(1, 9), 1, b"new")).unwrap();
    wait_for(|| !path_of(&path).exists());
    crash(store, vec![engine]);
    let store = file_store(directory.path());
    let mut engine = store.engine(0).unwrap();
    assert!(engine.read(key(1, 0)).unwrap().unwrap().is_stale);
    assert!(!engine.read(key(1, 9)).unwrap().unwrap().is_stale);
}

#[test]
fn a_stopped_log_has_lists_of_all_segments() {
    let (directory, path, documents) = listed_log();
    drop(file_store(directory.path()));
    let paths = fs::read_dir(directory.path().join("log")).unwrap().map(|entry| entry.unwrap().path());
    let segments: Vec<_> = paths.filter(|path| path.extension().is_some_and(|it| it == "log")).collect();
    assert!(segments.len() >= 3 && segments.contains(&path));
    assert!(segments.iter().all(|path| KeyList::read(&path_of(path)).is_some()), "{segments:?}");
    check(&directory, &documents, &[], &[]);
    // Lists are deleted with their segments.
    let store = file_store(directory.path());
    compact_all(&store);
    drop(store);
    assert!(!path.exists() && !path_of(&path).exists());
}
