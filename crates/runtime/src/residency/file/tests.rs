//! Crashes, damage, full disks, compaction.

mod key_lists;
mod starts;

use super::super::tests::{
    Content, Directory, Model, Step, all, any_batches, content, file_settings, file_store, head, key, whole,
};
use super::super::{Batch, DocumentError, Engine, OwnerVersion, Revision};
use super::record::{HEADER, SEGMENT_HEADER};
use super::shared::locked;
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Ends as after kill -9: nothing is flushed or closed.
fn crash(store: FileStore, engines: Vec<FileEngine>) {
    let copy = store.shared.directory.with_extension("crashed");
    let _ = fs::remove_dir_all(&copy);
    DirBuilder::new().mode(0o700).create(&copy).unwrap();
    // Copying takes time, in which no segment may be deleted.
    let compaction = locked(&store.shared.compaction);
    for entry in fs::read_dir(&store.shared.directory).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
    }
    drop(compaction);
    let directory = store.shared.directory.clone();
    drop(engines);
    drop(store);
    fs::remove_dir_all(&directory).unwrap();
    fs::rename(&copy, &directory).unwrap();
}

/// The only segment of a log with records.
fn segment_of(directory: &Directory) -> PathBuf {
    let mut paths: Vec<_> = fs::read_dir(directory.path().join("log"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension().is_some_and(|it| it == "log")
                && fs::metadata(path).unwrap().len() > SEGMENT_HEADER as u64
        })
        .collect();
    assert_eq!(paths.len(), 1, "{paths:?}");
    paths.remove(0)
}

/// Reads a log without starting threads.
fn read_log(directory: &Directory) -> (BTreeMap<DocumentKey, Result<Content, DocumentError>>, Recovery) {
    let settings = file_settings(directory.path(), Sync::None);
    let boot = boot_id().unwrap();
    let recovered = recovery::recover(&settings.directory, &settings.secret, boot, (true, 0)).unwrap();
    let report = recovered.report.clone();
    let shared = Shared::new(settings, recovered, boot);
    let mut documents = BTreeMap::new();
    for number in 0..BLOCKS as u16 {
        let block = shared.block(number).unwrap();
        for ((kind, document), entry) in &block.documents {
            let key = DocumentKey { kind: *kind, block: number, number: *document };
            if let Some(plan) = shared.plan(key, entry) {
                documents.insert(key, plan.read(key, 0).map(|document| content(&document)));
            }
        }
    }
    (documents, report)
}

/// A log with some documents in one segment, after a crash.
fn crashed_log() -> (Directory, BTreeMap<DocumentKey, Vec<u8>>) {
    let directory = Directory::new();
    let store = file_store(directory.path());
    let mut engine = store.engine(0).unwrap();
    let mut documents = BTreeMap::new();
    for number in 0..6 {
        let octets = vec![number as u8; 30];
        engine.append(&whole(1, key(1, number), 1, &octets)).unwrap();
        documents.insert(key(1, number), octets);
    }
    crash(store, vec![engine]);
    (directory, documents)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// The file ends at each octet in turn: what is read is the state after the last batch that is complete.
    #[test]
    fn a_log_that_ends_anywhere_has_all_complete_batches(batches in any_batches()) {
        let directory = Directory::new();
        let store = file_store(directory.path());
        let mut engine = store.engine(0).unwrap();
        let mut model = Model::default();
        let mut states = vec![(SEGMENT_HEADER as u64, model.clone())];
        let first = vec![Step::Replace(key(900, 1), [(1, vec![1, 2, 3])].into())];
        for steps in std::iter::once(&first).chain(&batches) {
            let (batch, _) = model.apply(steps, OwnerVersion(1));
            engine.append(&batch).unwrap();
            states.push((engine_length(&engine), model.clone()));
        }
        crash(store, vec![engine]);
        let path = segment_of(&directory);
        let octets = fs::read(&path).unwrap();
        let from = octets.len().saturating_sub(600).max(SEGMENT_HEADER + 1);
        for length in from..=octets.len() {
            fs::write(&path, &octets[..length]).unwrap();
            // A log without a complete batch was deleted.
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            let (documents, recovery) = read_log(&directory);
            let complete = states.iter().rposition(|(end, _)| *end <= length as u64).unwrap();
            prop_assert_eq!(documents, states[complete].1.documents(), "{} of {}", length, octets.len());
            prop_assert!(recovery.damaged.is_empty());
            // A write does not end within a sector, unless with a record that changes no document (a fence).
            let is_complete = states[complete].0 == length as u64;
            let may_be_a_write = is_complete || length % 512 == 0;
            prop_assert!(recovery.lost.is_empty() || !may_be_a_write, "{}", length);
        }
    }
}

#[test]
fn a_log_that_others_have_shortened_is_outdated_at_each_start() {
    let (directory, documents) = crashed_log();
    let path = segment_of(&directory);
    let octets = fs::read(&path).unwrap();
    let record = (octets.len() - SEGMENT_HEADER) / documents.len();
    let length = SEGMENT_HEADER + 3 * record + record / 2;
    assert_ne!(length % 512, 0);
    fs::write(&path, &octets[..length]).unwrap();
    let (found, recovery) = read_log(&directory);
    assert_eq!((found.len(), recovery.lost.len(), recovery.is_stale, recovery.torn), (3, 1, true, 0));
    assert_eq!(read_log(&directory), (found, recovery), "the next start finds the same");
    let store = file_store(directory.path());
    let mut engine = store.engine(0).unwrap();
    assert!(engine.read(key(1, 0)).unwrap().unwrap().is_stale);
    engine.append(&whole(1, key(1, 0), 2, b"new")).unwrap();
    crash(store, vec![engine]);
    let store = file_store(directory.path());
    let mut engine = store.engine(0).unwrap();
    assert!(!engine.read(key(1, 0)).unwrap().unwrap().is_stale, "what was written since is not");
    assert!(engine.read(key(1, 1)).unwrap().unwrap().is_stale);
}

#[test]
fn a_flipped_bit_makes_one_document_unknown_and_its_error_names_key_file_and_offset() {
    let (directory, documents) = crashed_log();
    let path = segment_of(&directory);
    let octets = fs::read(&path).unwrap();
    let record = (octets.len() - SEGMENT_HEADER) / documents.len();
    let secret = DocumentSecret::of_file(&directory.path().join("key"), false).unwrap();
    for at in SEGMENT_HEADER..octets.len() {
        let mut changed = octets.clone();
        changed[at] ^= 1 << (at % 8);
        fs::write(&path, &changed).unwrap();
        let recovered =
            recovery::recover(&directory.path().join("log"), &secret, boot_id().unwrap(), (true, 0)).unwrap();
        let victim = key(1, ((at - SEGMENT_HEADER) / record) as u32);
        let offset = SEGMENT_HEADER + (at - SEGMENT_HEADER) / record * record;
        let damaged = DocumentError::Damaged { key: victim, path: path.clone(), offset: offset as u64 };
        assert_eq!(recovered.report.damaged, [damaged], "octet {at}");
        assert_eq!(recovered.report.documents, documents.len() as u64 - 1);
        assert!(recovered.report.lost.is_empty() && !recovered.report.is_stale);
    }
}

#[test]
fn a_damaged_document_can_be_replaced_and_not_updated_and_compaction_does_not_revive_what_it_was() {
    let (directory, documents) = crashed_log();
    let path = segment_of(&directory);
    // A second version of document 0, whose record is damaged: the first one must not be used.
    let store = file_store(directory.path());
    let mut engine = store.engine(0).unwrap();
    engine.append(&whole(1, key(1, 0), 2, b"second")).unwrap();
    crash(store, vec![engine]);
    let mut newer: Vec<_> = fs::read_dir(directory.path().join("log"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|other| *other > path && other.extension().is_some_and(|it| it == "log"))
        .filter(|other| fs::metadata(other).unwrap().len() > SEGMENT_HEADER as u64)
        .collect();
    let newer = newer.pop().unwrap();
    let mut octets = fs::read(&newer).unwrap();
    octets[SEGMENT_HEADER + HEADER + 2] ^= 1;
    fs::write(&newer, octets).unwrap();

    let store = file_store(directory.path());
    let mut engine = store.engine(0).unwrap();
    let error = engine.read(key(1, 0)).unwrap_err().to_string();
    assert!(error.contains("amf:1:0") && error.contains(&newer.display().to_string()), "{error}");
    assert!(error.contains("offset 128"), "{error}");
    assert_eq!(engine.read(key(1, 1)).unwrap().unwrap().section(1), Some(&documents[&key(1, 1)][..]));
    let mut update = Batch::new(OwnerVersion(1));
    update.update(head(key(1, 0), 3)).section(1, b"third");
    assert_eq!(engine.append(&update).unwrap().conflicts, [0]);
    compact_all(&store);
    assert_eq!(engine.read(key(1, 0)), Ok(None), "unknown");
    crash(store, vec![engine]);
    let store = file_store(directory.path());
    let mut engine = store.engine(0).unwrap();
    assert_eq!(engine.read(key(1, 0)), Ok(None), "unknown, also after a restart");
    engine.append(&whole(1, key(1, 0), 1, b"new")).unwrap();
    assert_eq!(engine.read(key(1, 0)).unwrap().unwrap().section(1), Some(b"new".as_slice()));
}

#[test]
fn octets_lost_with_their_keys_make_what_was_written_before_stale() {
    let (directory, documents) = crashed_log();
    let path = segment_of(&directory);
    let mut octets = fs::read(&path).unwrap();
    let record = (octets.len() - SEGMENT_HEADER) / documents.len();
    octets[SEGMENT_HEADER + record..SEGMENT_HEADER + 3 * record].fill(0);
    fs::write(&path, octets).unwrap();
    for _ in 0..3 {
        let store = file_store(directory.path());
        let recovery = store.recovery();
        assert_eq!((recovery.documents, recovery.lost.len(), recovery.is_stale), (4, 1, true));
        let mut engine = store.engine(0).unwrap();
        assert!(engine.read(key(1, 5)).unwrap().unwrap().is_stale);
        // What is written from now on is not, in later runs too.
        assert!(engine.read(key(2, 0)).unwrap().is_none_or(|document| !document.is_stale));
        engine.append(&whole(1, key(2, 0), 1, b"x")).unwrap();
        assert!(!engine.read(key(2, 0)).unwrap().unwrap().is_stale);
        engine.append(&Batch::new(OwnerVersion(1))).unwrap();
        let mut batch = Batch::new(OwnerVersion(1));
        batch.delete(key(2, 0), Revision(2));
        engine.append(&batch).unwrap();
    }
}

#[test]
fn a_short_loss_before_a_torn_record_is_the_same_at_the_next_start() {
    let (directory, _) = crashed_log();
    let path = segment_of(&directory);
    let octets = fs::read(&path).unwrap();
    let record = (octets.len() - SEGMENT_HEADER) / 6;
    let torn = &octets[SEGMENT_HEADER..SEGMENT_HEADER + record - 1];
    fs::write(&path, [&octets, [7; 12].as_slice(), torn].concat()).unwrap();
    let first = read_log(&directory);
    assert_eq!((first.1.documents, first.1.lost.len(), first.1.torn), (6, 2, 0));
    assert_eq!(read_log(&directory), first);
}

#[test]
fn a_log_that_others_have_moved_away_refuses_writes_until_it_is_back() {
    let directory = Directory::new();
    let store = file_store(directory.path());
    let mut engine = store.engine(0).unwrap();
    let (log, elsewhere) = (directory.path().join("log"), directory.path().join("elsewhere"));
    engine.append(&whole(1, key(1, 1), 1, b"x")).unwrap();
    let mut becomes = |is_refused: bool| {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            store.shared.sync_bell.ring();
            let result = engine.append(&whole(1, key(1, 1), 2, b"y"));
            if matches!(result, Err(EngineError::Removed(_))) == is_refused {
                return;
            }
            assert!(Instant::now() < deadline, "{result:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    fs::rename(&log, &elsewhere).unwrap();
    becomes(true);
    fs::rename(&elsewhere, &log).unwrap();
    becomes(false);
    // The thread may be making a file.
    while fs::remove_dir_all(&log).is_err_and(|error| error.kind() != std::io::ErrorKind::NotFound) {}
    becomes(true);
}

#[test]
fn after_a_power_failure_documents_are_stale_until_they_are_written() {
    let directory = Directory::new();
    let boot =
        |boot: u8, sync| FileStore::open_on_boot(file_settings(directory.path(), sync), [boot; 16]).unwrap();
    let is_stale = |engine: &mut FileEngine, number| engine.read(key(0, number)).unwrap().unwrap().is_stale;
    let store = boot(1, Sync::None);
    let mut engine = store.engine(0).unwrap();
    engine.append(&whole(1, key(0, 1), 1, b"x")).unwrap();
    engine.append(&whole(1, key(0, 2), 1, b"x")).unwrap();
    crash(store, vec![engine]);
    // The process was killed: nothing is lost.
    let store = boot(1, Sync::None);
    let mut engine = store.engine(0).unwrap();
    assert!(!is_stale(&mut engine, 1));
    crash(store, vec![engine]);
    // The power failed.
    let store = boot(2, Sync::None);
    let mut engine = store.engine(0).unwrap();
    assert!(store.recovery().is_stale && is_stale(&mut engine, 1) && is_stale(&mut engine, 2));
    engine.append(&whole(1, key(0, 2), 2, b"y")).unwrap();
    assert!(!is_stale(&mut engine, 2));
    crash(store, vec![engine]);
    // Killed again, and stopped: 1 is stale still, 2 is not.
    for _ in 0..2 {
        let store = boot(2, Sync::None);
        let mut engine = store.engine(0).unwrap();
        assert!(is_stale(&mut engine, 1) && !is_stale(&mut engine, 2));
        drop(engine);
        drop(store);
    }
    // The process was stopped before the machine: nothing new is stale.
    let store = boot(3, Sync::None);
    let mut engine = store.engine(0).unwrap();
    assert!(is_stale(&mut engine, 1) && !is_stale(&mut engine, 2));
}

/// A log of boot 2: a process was killed after it wrote a document, and `stop` ends the next one.
fn stopped_log(stop: impl FnOnce(FileStore)) -> Directory {
    let directory = Directory::new();
    let settings = || file_settings(directory.path(), Sync::None);
    let store = FileStore::open_on_boot(settings(), [2; 16]).unwrap();
    let mut engine = store.engine(0).unwrap();
    engine.append(&whole(1, key(0, 1), 1, b"x")).unwrap();
    crash(store, vec![engine]);
    stop(FileStore::open_on_boot(settings(), [2; 16]).unwrap());
    directory
}

fn is_stale_on_boot_3(directory: &Directory) -> bool {
    let store = FileStore::open_on_boot(file_settings(directory.path(), Sync::None), [3; 16]).unwrap();
    store.engine(0).unwrap().read(key(0, 1)).unwrap().unwrap().is_stale
}

#[test]
fn a_stop_is_recorded_when_the_segments_of_dropped_engines_were_already_handled() {
    let directory = stopped_log(|store| {
        drop(store.engine(0).unwrap());
        wait_until(|| locked(&store.shared.rolled).is_empty());
    });
    assert!(!is_stale_on_boot_3(&directory));
}

#[test]
fn a_stop_is_recorded_without_an_engine() {
    assert!(!is_stale_on_boot_3(&stopped_log(drop)));
    // Killed: the next boot must suspect a power failure.
    assert!(is_stale_on_boot_3(&stopped_log(|store| crash(store, Vec::new()))));
}

#[test]
fn a_stop_is_remembered_when_compaction_deletes_the_segment_of_its_record() {
    let directory = stopped_log(|store| drop(store.engine(0).unwrap()));
    let settings = file_settings(directory.path(), Sync::None);
    let store = FileStore::open_on_boot(settings, [3; 16]).unwrap();
    let is_of_stop = |segment: &std::sync::Arc<segment::Segment>| {
        let octets = fs::read(&segment.path).unwrap();
        let mut found = false;
        record::scan(&octets, |item| {
            found |= matches!(item, record::Item::Record { header, .. } if header.kind == record::RecordKind::Stop);
        });
        found
    };
    let stops: Vec<_> = store.shared.segments().values().filter(|one| is_of_stop(one)).cloned().collect();
    let [stop] = &stops[..] else { panic!("one segment has the record of the stop") };
    compaction::compact_one(&store.shared, stop);
    assert!(!stop.path.exists());
    crash(store, Vec::new());
    assert!(!is_stale_on_boot_3(&directory));
}

#[test]
fn a_number_that_no_write_can_have_is_damage() {
    let (directory, documents) = crashed_log();
    let path = segment_of(&directory);
    let mut octets = fs::read(&path).unwrap();
    let header = record::Header::decode(&octets[SEGMENT_HEADER..]).unwrap();
    let last = record::Header { sequence: u64::MAX, ..header };
    let end = SEGMENT_HEADER + last.total();
    let mut encoded = last.encode();
    last.encode_crcs(&mut encoded);
    octets[SEGMENT_HEADER..SEGMENT_HEADER + HEADER].copy_from_slice(&encoded);
    octets[end - record::TRAILER..end].copy_from_slice(&last.trailer());
    fs::write(&path, octets).unwrap();
    let store = file_store(directory.path());
    assert_eq!((store.recovery().documents, store.recovery().lost.len()), (documents.len() as u64 - 1, 1));
    store.engine(0).unwrap().append(&whole(1, key(1, 0), 1, b"x")).unwrap();
}

#[test]
fn a_stopped_log_is_free_while_a_child_process_has_a_copy_of_its_lock() {
    let directory = Directory::new();
    let store = file_store(directory.path());
    // As between fork and exec.
    let copy = store.lock.try_clone().unwrap();
    drop(store);
    file_store(directory.path());
    drop(copy);
}

#[test]
fn with_sync_a_power_failure_makes_nothing_stale_and_writers_are_notified() {
    let directory = Directory::new();
    let (sender, receiver) = mpsc::channel();
    let on_durable: OnDurable = {
        let sender = std::sync::Mutex::new(sender);
        Box::new(move |writer, sequence| sender.lock().unwrap().send((writer, sequence)).unwrap())
    };
    let settings =
        FileSettings { on_durable: Some(on_durable), ..file_settings(directory.path(), Sync::Batch) };
    let store = FileStore::open_on_boot(settings, [1; 16]).unwrap();
    let mut engine = store.engine(3).unwrap();
    let appended = engine.append(&whole(1, key(0, 1), 1, b"x")).unwrap();
    let notified = receiver.recv_timeout(Duration::from_secs(20)).unwrap();
    assert_eq!(notified, (3, appended.sequence));
    assert_eq!(engine.durable(), appended.sequence);
    crash(store, vec![engine]);
    let store = FileStore::open_on_boot(file_settings(directory.path(), Sync::Batch), [2; 16]).unwrap();
    assert!(!store.engine(0).unwrap().read(key(0, 1)).unwrap().unwrap().is_stale);
}

#[test]
fn a_second_owner_is_refused() {
    let directory = Directory::new();
    let store = file_store(directory.path());
    let error = FileStore::open(file_settings(directory.path(), Sync::None)).err().unwrap();
    assert!(matches!(error, OpenError::InUse(_)), "{error}");
    drop(store);
    file_store(directory.path());
}

#[test]
fn files_are_the_owners_and_of_another_key_format_or_origin_are_refused_or_left_alone() {
    let (directory, _) = crashed_log();
    let path = segment_of(&directory);
    let log = directory.path().join("log");
    for entry in fs::read_dir(&log).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o700);

    let error_of =
        |settings| FileStore::open(settings).err().map(|error| error.to_string()).unwrap_or_default();
    let other = DocumentSecret::ephemeral().unwrap();
    let error = error_of(FileSettings { secret: other, ..file_settings(directory.path(), Sync::None) });
    assert!(error.contains("sealed with another key"), "{error}");

    let octets = fs::read(&path).unwrap();
    let mut newer = octets.clone();
    newer[8] = 9;
    let crc = crc32c::crc32c(&newer[..SEGMENT_HEADER - 4]).to_le_bytes();
    newer[SEGMENT_HEADER - 4..SEGMENT_HEADER].copy_from_slice(&crc);
    fs::write(&path, &newer).unwrap();
    let error = error_of(file_settings(directory.path(), Sync::None));
    assert!(error.contains("format 9") && error.contains("start the newer program"), "{error}");

    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let error = error_of(file_settings(directory.path(), Sync::None));
    assert!(error.contains("chmod 600"), "{error}");

    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(
        &path,
        "a text of somebody else that is a little longer than the header of a segment is; ".repeat(3),
    )
    .unwrap();
    let store = file_store(directory.path());
    assert_eq!(store.recovery().foreign, std::slice::from_ref(&path));
    assert!(path.exists());
}

#[test]
fn a_damaged_segment_header_names_its_documents() {
    let (directory, documents) = crashed_log();
    let path = segment_of(&directory);
    let mut octets = fs::read(&path).unwrap();
    octets[40] ^= 1;
    fs::write(&path, octets).unwrap();
    let store = file_store(directory.path());
    assert_eq!(store.recovery().damaged.len(), documents.len());
    assert!(store.engine(0).unwrap().read(key(1, 0)).is_err());
}

#[test]
fn a_fence_survives_a_restart_and_compaction() {
    let directory = Directory::new();
    let store = file_store(directory.path());
    let mut engine = store.engine(0).unwrap();
    engine.fence(9, OwnerVersion(7)).unwrap();
    crash(store, vec![engine]);
    for _ in 0..2 {
        let store = file_store(directory.path());
        let mut engine = store.engine(0).unwrap();
        assert_eq!(engine.fenced_below(9).unwrap(), OwnerVersion(7));
        assert!(engine.append(&whole(6, key(9, 1), 1, b"x")).is_err());
        compact_all(&store);
        assert_eq!(engine.fenced_below(9).unwrap(), OwnerVersion(7));
    }
}

fn wait_until(condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "it does not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Compacts each segment that no engine appends to.
fn compact_all(store: &FileStore) {
    compaction::compact_all(&store.shared);
}

#[test]
fn the_log_is_at_most_twice_its_documents_and_what_is_deleted_leaves_it() {
    let directory = Directory::new();
    let store = file_store(directory.path());
    let mut engine = store.engine(0).unwrap();
    let mut expected = BTreeMap::new();
    for round in 1..=30_u64 {
        for number in 0..1000_u32 {
            let mut batch = Batch::new(OwnerVersion(1));
            let octets = [round as u8; 1500];
            if round % 3 == 1 {
                batch.replace(head(key(5, number), round)).section(1, &octets).section(2, b"fixed");
            } else {
                batch.update(head(key(5, number), round)).section(1, &octets[..200]);
            }
            engine.append(&batch).unwrap();
            let length = if round % 3 == 1 { 1500 } else { 200 };
            expected.insert(key(5, number), [(1, octets[..length].to_vec()), (2, b"fixed".to_vec())].into());
        }
    }
    let expected: BTreeMap<_, _> = expected.into_iter().map(|(key, content)| (key, Ok(content))).collect();
    let is_bounded = |store: &FileStore| {
        let (octets, live) = store.size();
        octets <= 2 * live + 8 * SMALLEST_SEGMENT
    };
    wait_until(|| is_bounded(&store));
    assert!(store.compacted().0 > 0);
    assert_eq!(all(&mut engine), expected);
    crash(store, vec![engine]);

    let store = file_store(directory.path());
    let mut engine = store.engine(0).unwrap();
    assert_eq!(all(&mut engine), expected);
    let live = |store: &FileStore| store.size().1;
    let before = live(&store);
    for number in 0..1000 {
        let mut batch = Batch::new(OwnerVersion(1));
        batch.delete(key(5, number), Revision(99));
        engine.append(&batch).unwrap();
    }
    assert!(live(&store) < before / 5);
    compact_all(&store);
    compact_all(&store);
    drop(engine);
    drop(store);
    let store = file_store(directory.path());
    compact_all(&store);
    assert_eq!(store.recovery().documents, 0);
    assert_eq!(store.size().1, 0, "tombstones leave with the records that they hide");
    assert!(all(&mut store.engine(0).unwrap()).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    /// Two writers, compaction at random times, restarts: always the model's state.
    #[test]
    fn compaction_and_restarts_change_nothing(runs in prop::collection::vec((any_batches(), any::<bool>(), any::<bool>()), 1..4)) {
        let directory = Directory::new();
        let mut model = Model::default();
        for (batches, is_killed, is_compacted) in runs {
            let store = file_store(directory.path());
            let mut engines = vec![store.engine(0).unwrap(), store.engine(1).unwrap()];
            prop_assert_eq!(all(&mut engines[0]), model.documents());
            for (at, steps) in batches.iter().enumerate() {
                let (batch, _) = model.apply(steps, OwnerVersion(1));
                engines[at % 2].append(&batch).unwrap();
                if is_compacted && at % 5 == 2 {
                    compact_all(&store);
                }
            }
            prop_assert_eq!(all(&mut engines[0]), model.documents());
            if is_killed {
                crash(store, engines);
            } else {
                drop(engines);
                drop(store);
            }
        }
        let store = file_store(directory.path());
        compact_all(&store);
        prop_assert_eq!(all(&mut store.engine(0).unwrap()), model.documents());
    }
}

/// Runs a test of this program in a process of its own, with a directory.
fn in_child(test: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("residency::file::tests::{test}"), "--nocapture"]);
    command.env(CHILD, directory).stdin(Stdio::null());
    command
}

const CHILD: &str = "PITH_TEST_LOG";

/// Not a test by itself: appends until it is killed, and prints each number that was acknowledged.
#[test]
fn child_appends() {
    let Some(directory) = std::env::var_os(CHILD) else { return };
    let store = file_store(Path::new(&directory));
    let mut engine = store.engine(0).unwrap();
    let document = engine.read(key(0, 0)).unwrap();
    let first =
        document.map_or(0, |document| u64::from_le_bytes(document.section(1).unwrap().try_into().unwrap()));
    let mut out = std::io::stdout();
    for number in first + 1.. {
        let mut batch = Batch::new(OwnerVersion(1));
        batch.replace(head(key(0, 0), number)).section(1, &number.to_le_bytes());
        let other = key(1, (number % 500) as u32);
        if number % 7 < 3 && engine.read(other).unwrap().is_some() {
            batch.update(head(other, number)).section(1, &number.to_le_bytes());
        } else {
            batch.replace(head(other, number)).section(1, &number.to_le_bytes()).section(2, &[7; 1500]);
        }
        engine.append(&batch).unwrap();
        out.write_all(format!("acknowledged {number}\n").as_bytes()).unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn after_kill_9_all_that_was_acknowledged_is_there() {
    let directory = Directory::new();
    let mut last = 0;
    for round in 0..12_u64 {
        let mut child = in_child("child_appends", directory.path()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let wanted = last + 1 + round * 300;
        for line in lines {
            let line = line.unwrap();
            let Some(number) = line.split("acknowledged ").nth(1) else { continue };
            let number: u64 = number.trim().parse().unwrap();
            assert!(number > last);
            if last < wanted && number >= wanted {
                child.kill().unwrap();
            }
            last = number;
        }
        child.wait().unwrap();
        let store = file_store(directory.path());
        assert!(store.recovery().damaged.is_empty() && store.recovery().lost.is_empty());
        let mut engine = store.engine(0).unwrap();
        let document = engine.read(key(0, 0)).unwrap().unwrap();
        let stored = u64::from_le_bytes(document.section(1).unwrap().try_into().unwrap());
        // One more may be written and not acknowledged; a line may have been cut off.
        assert!(stored >= last && stored <= last + 2, "{stored} stored, {last} acknowledged");
        for number in (1..=stored).rev().take(500) {
            let found = engine.read(key(1, (number % 500) as u32)).unwrap().unwrap();
            assert_eq!(found.section(1), Some(number.to_le_bytes().as_slice()));
            assert_eq!(found.section(2), Some([7; 1500].as_slice()));
        }
        last = stored;
    }
}

/// Not a test by itself: limits the size of files of its process.
#[test]
fn child_without_room() {
    let Some(directory) = std::env::var_os(CHILD) else { return };
    let store = file_store(Path::new(&directory));
    let mut engine = store.engine(0).unwrap();
    let limit_files = |octets| {
        let limit = libc::rlimit { rlim_cur: octets, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: the structure is valid; the calls change this process only.
        #[allow(unsafe_code)]
        unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit), 0);
        }
    };
    engine.append(&whole(1, key(0, 0), 1, &[1; 1000])).unwrap();
    for room in [1, 70, 500, 1100] {
        let length = engine_length(&engine);
        limit_files(length + room);
        for _ in 0..3 {
            let mut batch = whole(1, key(0, 0), 2, &[2; 1000]);
            batch.replace(head(key(0, 1), 1)).section(1, &[1; 100]);
            let error = engine.append(&batch).unwrap_err();
            assert!(matches!(error, EngineError::Full(_)), "{error}");
            assert_eq!(engine_length(&engine), length);
        }
        assert_eq!(engine.read(key(0, 0)).unwrap().unwrap().revision, Revision(1));
        assert_eq!(engine.read(key(0, 1)), Ok(None));
        limit_files(libc::RLIM_INFINITY);
        engine.append(&whole(1, key(0, 0), 1, &[1; 1000])).unwrap();
    }
    engine.append(&whole(1, key(0, 0), 3, &[3; 1000])).unwrap();
    crash(store, vec![engine]);
    let store = file_store(Path::new(&directory));
    assert_eq!(store.recovery().torn, 0);
    assert!(store.recovery().damaged.is_empty() && store.recovery().lost.is_empty());
    let document = store.engine(0).unwrap().read(key(0, 0)).unwrap().unwrap();
    assert_eq!(content(&document), [(1, vec![3; 1000])].into());
    println!("passed");
}

fn engine_length(engine: &FileEngine) -> u64 {
    fs::metadata(&engine.active().path).unwrap().len()
}

#[test]
fn without_room_nothing_is_written_and_writing_continues_when_there_is_room() {
    let directory = Directory::new();
    let output = in_child("child_without_room", directory.path()).output().unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("passed"), "{text}");
}

#[test]
fn segments_are_changed_without_losing_records() {
    let directory = Directory::new();
    let store = file_store(directory.path());
    let mut engine = store.engine(0).unwrap();
    let first = engine.active().id;
    let mut number = 0;
    while engine.active().id == first {
        number += 1;
        engine.append(&whole(1, key(0, number), 1, &[0; 4000])).unwrap();
        assert!(number < 100_000, "the next segment was not made");
    }
    assert!(number >= (SMALLEST_SEGMENT / 4200) as u32);
    engine.append(&whole(1, key(0, 0), 1, b"x")).unwrap();
    crash(store, vec![engine]);
    assert_eq!(file_store(directory.path()).recovery().documents, u64::from(number) + 1);
}
