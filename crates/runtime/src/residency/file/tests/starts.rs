//! Starts with a log that was copied back, or with a full disk.

use super::*;

/// Starts a process, whose database gets the id of its run.
fn start(directory: &Directory, database: &mut FormerRun) -> FileStore {
    let store = open(directory, *database);
    if let Some(run) = store.run() {
        *database = FormerRun::Known(run);
        store.confirm_run();
    }
    store
}

fn open(directory: &Directory, former: FormerRun) -> FileStore {
    FileStore::open(FileSettings { former, ..file_settings(directory.path(), Sync::None) }).unwrap()
}

fn write(store: &FileStore, number: u32, revision: u64) -> FileEngine {
    let mut engine = store.engine(0).unwrap();
    engine.append(&whole(1, key(0, number), revision, b"x")).unwrap();
    engine
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    DirBuilder::new().mode(0o700).create(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

fn is_stale(engine: &mut FileEngine, number: u32) -> bool {
    engine.read(key(0, number)).unwrap().unwrap().is_stale
}

#[test]
fn documents_of_a_log_that_was_copied_back_are_stale_until_they_are_written() {
    let directory = Directory::new();
    let (log, backup) = (directory.path().join("log"), directory.path().join("backup"));
    let mut database = FormerRun::None;
    let store = start(&directory, &mut database);
    let mut engine = write(&store, 1, 1);
    engine.append(&whole(1, key(0, 2), 1, b"x")).unwrap();
    crash(store, vec![engine]);
    copy(&log, &backup);
    let store = start(&directory, &mut database);
    assert!(!store.recovery().is_stale && !store.recovery().is_other_run);
    let engine = write(&store, 1, 2);
    crash(store, vec![engine]);
    copy(&backup, &log);
    // Killed before it writes: the next start knows, too.
    let store = start(&directory, &mut database);
    assert!(store.recovery().is_other_run && store.recovery().is_stale);
    crash(store, Vec::new());
    let store = start(&directory, &mut database);
    assert!(!store.recovery().is_other_run && store.recovery().is_stale);
    let mut engine = write(&store, 1, 3);
    assert!(!is_stale(&mut engine, 1) && is_stale(&mut engine, 2));
    crash(store, vec![engine]);
    let store = start(&directory, &mut database);
    let mut engine = store.engine(0).unwrap();
    assert!(!is_stale(&mut engine, 1) && is_stale(&mut engine, 2));
}

#[test]
fn documents_are_stale_if_the_database_was_copied_back() {
    let directory = Directory::new();
    let mut database = FormerRun::None;
    let store = start(&directory, &mut database);
    let engine = write(&store, 1, 1);
    crash(store, vec![engine]);
    for (mut former, what) in [(database, "of the run before"), (FormerRun::None, "of before the first run")]
    {
        let store = start(&directory, &mut database);
        assert!(!store.recovery().is_other_run, "{what}");
        crash(store, Vec::new());
        let store = start(&directory, &mut former);
        assert!(store.recovery().is_other_run, "{what}");
        assert!(is_stale(&mut store.engine(0).unwrap(), 1));
        drop(store);
        database = former;
    }
}

#[test]
fn a_start_that_is_killed_between_its_two_notes_changes_nothing() {
    let directory = Directory::new();
    let mut database = FormerRun::None;
    let store = start(&directory, &mut database);
    let engine = write(&store, 1, 1);
    crash(store, vec![engine]);
    for has_reached_database in [false, true, false, true, true, false] {
        let store = open(&directory, database);
        assert!(!store.recovery().is_other_run);
        if has_reached_database {
            database = FormerRun::Known(store.run().unwrap());
        }
        crash(store, Vec::new());
    }
    assert!(!start(&directory, &mut database).recovery().is_stale);
}

#[test]
fn a_log_is_not_compared_without_a_database_and_a_new_log_is_not_stale() {
    let directory = Directory::new();
    let mut database = FormerRun::None;
    let store = start(&directory, &mut database);
    let engine = write(&store, 1, 1);
    crash(store, vec![engine]);
    let store = open(&directory, FormerRun::Unknown);
    assert!(store.run().is_none() && !store.recovery().is_stale);
    drop(store);
    // An operator has moved the log away, or its segments only.
    for is_whole in [true, false] {
        for entry in fs::read_dir(directory.path().join("log")).unwrap() {
            let path = entry.unwrap().path();
            if is_whole || path.extension().is_some() {
                fs::remove_file(path).unwrap();
            }
        }
        let store = start(&directory, &mut database);
        assert!(!store.recovery().is_stale && !store.recovery().is_other_run);
        let mut engine = write(&store, 1, 1);
        assert!(!is_stale(&mut engine, 1));
        drop(engine);
    }
    fs::write(directory.path().join("log/run"), "damaged").unwrap();
    assert!(start(&directory, &mut database).recovery().is_other_run);
}

#[test]
fn on_a_full_disk_documents_are_read_and_written_when_there_is_room() {
    let (directory, documents) = crashed_log();
    let store = file_store(directory.path());
    store.shared.is_full.store(true, std::sync::atomic::Ordering::Relaxed);
    let mut engine = store.engine(0).unwrap();
    for (key, octets) in &documents {
        assert_eq!(engine.read(*key).unwrap().unwrap().section(1), Some(octets.as_slice()));
    }
    for _ in 0..2 {
        let error = engine.append(&whole(1, key(1, 0), 2, b"second")).unwrap_err();
        assert!(matches!(error, EngineError::Full(_)), "{error}");
        let error = engine.fence(1, OwnerVersion(9)).unwrap_err();
        assert!(matches!(error, EngineError::Full(_)), "{error}");
    }
    store.shared.is_full.store(false, std::sync::atomic::Ordering::Relaxed);
    let until = Instant::now() + Duration::from_secs(20);
    while engine.append(&whole(1, key(1, 0), 2, b"second")).is_err() {
        assert!(Instant::now() < until, "there is room");
        std::thread::sleep(Duration::from_millis(20));
    }
    crash(store, vec![engine]);
    let store = file_store(directory.path());
    assert_eq!(store.recovery().documents, documents.len() as u64);
    let document = store.engine(0).unwrap().read(key(1, 0)).unwrap().unwrap();
    assert_eq!(document.section(1), Some(b"second".as_slice()));
    // Stopped without room, and without having written.
    drop(store);
    let store = file_store(directory.path());
    store.shared.is_full.store(true, std::sync::atomic::Ordering::Relaxed);
    let engine = store.engine(0).unwrap();
    drop((engine, store));
    assert_eq!(file_store(directory.path()).recovery().documents, documents.len() as u64);
}
