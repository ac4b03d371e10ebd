//! Tests of the store.

use super::*;
use pith_nf::kit::{StoreRequest, StoreResponse, Subscriber};
use pith_types::Supi;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

fn supi(number: u64) -> Supi {
    Supi::from_imsi(&format!("99970{number:010}")).unwrap()
}

fn subscriber(number: u64) -> Subscriber {
    Subscriber::with_defaults(supi(number), [1; 16], [2; 16])
}

fn put_sqn(sqn: u64, expected: Option<u64>) -> StoreRequest {
    StoreRequest::PutSequenceNumber { supi: supi(1), sqn, expected }
}

/// A directory that is removed when dropped.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("pith-store-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn file(&self) -> DatabaseLocation {
        DatabaseLocation::file(self.0.join("pith.db"))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The same for a database in memory, and for one in a file.
fn for_memory_and_file(test: impl Fn(Database)) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    test(memory());
    let directory = Directory::new(&format!("documents-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
    test(Database::open(&directory.file()).unwrap());
}

fn memory() -> Database {
    Database::open(&DatabaseLocation::Memory).unwrap()
}

#[test]
fn ten_thousand_subscribers_are_added_in_under_two_seconds() {
    let directory = Directory::new("bulk");
    let mut database = Database::open(&directory.file()).unwrap();
    let begun = Instant::now();
    let added = database.add_subscribers((1..=10_000).map(subscriber), Existing::Refuse).unwrap();
    let took = begun.elapsed();
    assert_eq!(added, Added { added: 10_000, ..Added::default() });
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(database.subscriber_count().unwrap(), 10_000);
}

/// A subscriber with a static address and a framed route.
fn with_addresses(number: u64, address: [u8; 4], route: &str) -> Subscriber {
    let mut subscriber = subscriber(number);
    let dnn = &mut subscriber.slices[0].dnns[0];
    dnn.static_ip_address = vec![pith_sbi::nudm_sdm::IpAddress::Ipv4(address.into())];
    let route = serde_json::json!([{ "ipv4Mask": route }]);
    dnn.ipv4_frame_route_list = serde_json::from_value(route).unwrap();
    subscriber
}

#[test]
fn a_static_address_or_framed_route_belongs_to_one_subscriber() {
    for_memory_and_file(|mut database| {
        let first = with_addresses(1, [10, 45, 255, 7], "192.168.8.0/22");
        database.add_subscribers([first.clone()], Existing::Refuse).unwrap();
        let mut refused = |address, route| {
            let second = with_addresses(2, address, route);
            let error = database.add_subscribers([second], Existing::Refuse).unwrap_err().to_string();
            assert!(error.contains(first.supi.as_str()), "{error}");
        };
        refused([10, 45, 255, 7], "192.168.7.0/24");
        refused([10, 45, 255, 8], "192.168.9.0/24");
        refused([10, 45, 255, 8], "192.168.0.0/16");
        refused([10, 45, 255, 8], "192.168.8.0/21");
        assert_eq!(database.subscriber_count().unwrap(), 1);
        let beside = [
            with_addresses(2, [10, 45, 255, 8], "192.168.12.0/24"),
            with_addresses(3, [10, 45, 255, 6], "192.168.7.0/24"),
        ];
        database.add_subscribers(beside, Existing::Refuse).unwrap();
        // The subscriber itself may change, and leaves its addresses to others.
        let moved = with_addresses(1, [10, 45, 255, 9], "192.168.8.0/24");
        database.add_subscribers([moved], Existing::Replace).unwrap();
        let other = with_addresses(4, [10, 45, 255, 7], "192.168.9.0/24");
        database.add_subscribers([other], Existing::Refuse).unwrap();
        database.delete_subscribers(&[supi(1)]).unwrap();
        database
            .add_subscribers([with_addresses(5, [10, 45, 255, 9], "192.168.8.0/24")], Existing::Refuse)
            .unwrap();
    });
}

#[test]
fn a_refused_subscriber_refuses_its_whole_request() {
    let mut database = memory();
    database.add_subscribers([subscriber(5)], Existing::Refuse).unwrap();
    let error = database.add_subscribers([subscriber(4), subscriber(5)], Existing::Refuse).unwrap_err();
    assert!(matches!(error, DatabaseError::Exists(who) if who == supi(5)));
    assert_eq!(database.subscriber_count().unwrap(), 1);
    let added = database.add_subscribers([subscriber(4), subscriber(5)], Existing::Keep).unwrap();
    assert_eq!((added.added, added.kept), (1, 1));
}

#[test]
fn an_invalid_subscriber_is_refused_with_what_to_do() {
    let mut bad = subscriber(1);
    bad.slices.clear();
    let error = memory().add_subscribers([bad], Existing::Refuse).unwrap_err().to_string();
    assert!(error.contains("default: true"), "{error}");
}

#[test]
fn pages_follow_one_another() {
    let mut database = memory();
    database.add_subscribers((1..=25).map(subscriber), Existing::Refuse).unwrap();
    let first = database.subscribers(None, 10).unwrap();
    let second = database.subscribers(Some(&first[9].supi), 100).unwrap();
    assert_eq!((first.len(), second.len()), (10, 15));
    assert_eq!(second[0], subscriber(11));
}

/// They name the AMF that is to deregister the UE.
#[test]
fn the_documents_of_a_deleted_subscriber_stay_until_nfs_are_notified() {
    for_memory_and_file(|mut database| {
        database.add_subscribers([subscriber(1), subscriber(3)], Existing::Refuse).unwrap();
        let resource = || "context-data/amf-3gpp-access".to_owned();
        let put = StoreRequest::PutDocument { supi: supi(1), resource: resource(), body: "{}".into() };
        database.handle(&put).unwrap();
        assert_eq!(database.delete_subscribers(&[supi(1), supi(2), supi(3)]).unwrap(), 2);
        assert_eq!(database.subscriber(&supi(1)).unwrap(), None);
        let rows = changed(&mut database, 0);
        let [(number, of_first)] = &rows[..] else { panic!("no NF serves the other: {rows:?}") };
        assert_eq!(*of_first, supi(1));
        let get = StoreRequest::Document { supi: supi(1), resource: resource() };
        assert_eq!(database.handle(&get).unwrap(), StoreResponse::Document(Some("{}".into())));
        assert_eq!(database.handle(&put).unwrap(), StoreResponse::NoSubscriber, "no AMF may register");
        let (expected, body) = ("{}".into(), r#"{"purgeFlag":true}"#.into());
        let purge = StoreRequest::ReplaceDocument { supi: supi(1), resource: resource(), expected, body };
        assert_eq!(database.handle(&purge).unwrap(), StoreResponse::Done { created_or_found: true });
        let forget = StoreRequest::ForgetChanged { numbers: vec![*number] };
        assert_eq!(database.handle(&forget).unwrap(), StoreResponse::Done { created_or_found: true });
        assert_eq!(database.handle(&get).unwrap(), StoreResponse::Document(None));
    });
}

#[test]
fn the_documents_of_a_subscriber_that_was_added_again_stay() {
    for_memory_and_file(|mut database| {
        database.add_subscribers([subscriber(1)], Existing::Refuse).unwrap();
        let resource = || "context-data/amf-3gpp-access".to_owned();
        let put = StoreRequest::PutDocument { supi: supi(1), resource: resource(), body: "{}".into() };
        database.handle(&put).unwrap();
        database.delete_subscribers(&[supi(1)]).unwrap();
        database.add_subscribers([subscriber(1)], Existing::Refuse).unwrap();
        let numbers = changed(&mut database, 0).into_iter().map(|(number, _)| number).collect();
        database.handle(&StoreRequest::ForgetChanged { numbers }).unwrap();
        let get = StoreRequest::Document { supi: supi(1), resource: resource() };
        assert_eq!(database.handle(&get).unwrap(), StoreResponse::Document(Some("{}".into())));
    });
}

/// Rows of changed subscribers.
fn changed(database: &mut Database, after: u64) -> Vec<(u64, Supi)> {
    let StoreResponse::Changed(rows) = database.handle(&StoreRequest::Changed { after, limit: 10 }).unwrap()
    else {
        panic!()
    };
    rows
}

#[test]
fn a_changed_subscriber_whom_nfs_serve_has_a_row_until_they_are_notified() {
    for_memory_and_file(|mut database| {
        let replace = |database: &mut Database, new: Subscriber| {
            assert_eq!(database.add_subscribers([new], Existing::Replace).unwrap().replaced, 1);
        };
        let with_ambr = |number, mbps| {
            let mut new = subscriber(number);
            new.ambr.uplink = pith_types::BitRate::mbps(mbps);
            new
        };
        database.add_subscribers([subscriber(1), subscriber(2)], Existing::Refuse).unwrap();
        let resource = "context-data/amf-3gpp-access".to_owned();
        let put = StoreRequest::PutDocument { supi: supi(1), resource, body: "{}".into() };
        database.handle(&put).unwrap();
        replace(&mut database, subscriber(1));
        let mut other_key = subscriber(1);
        other_key.authentication.k = pith_nf::kit::Secret([9; 16]);
        replace(&mut database, other_key);
        replace(&mut database, with_ambr(2, 7));
        assert_eq!(changed(&mut database, 0), [], "the data are the same, or no NF has them");

        replace(&mut database, with_ambr(1, 7));
        let [(first, _)] = changed(&mut database, 0)[..] else { panic!() };
        replace(&mut database, with_ambr(1, 8));
        let [(second, _)] = changed(&mut database, 0)[..] else { panic!() };
        assert!(second > first, "{first} {second}");
        assert_eq!(changed(&mut database, second), []);
        let forget = |number| StoreRequest::ForgetChanged { numbers: vec![number] };
        database.handle(&forget(first)).unwrap();
        assert_eq!(changed(&mut database, 0), [(second, supi(1))], "it has changed again");
        database.handle(&forget(second)).unwrap();
        assert_eq!(changed(&mut database, 0), []);
        replace(&mut database, with_ambr(1, 9));
        assert!(changed(&mut database, 0)[0].0 > second, "numbers are not used twice");
        let before = changed(&mut database, 0)[0].0;
        database.delete_subscribers(&[supi(1)]).unwrap();
        assert!(changed(&mut database, 0)[0].0 > before, "the AMF deregisters the UE");
    });
}

#[test]
fn documents_are_bounded_for_each_collection_and_belong_to_a_subscriber() {
    for_memory_and_file(|mut database| {
        let put = |database: &mut Database, path: &str| {
            let put = StoreRequest::PutDocument { supi: supi(1), resource: path.into(), body: "{}".into() };
            database.handle(&put).unwrap()
        };
        assert_eq!(put(&mut database, "context-data/amf-3gpp-access"), StoreResponse::NoSubscriber);
        database.add_subscribers([subscriber(1)], Existing::Refuse).unwrap();
        let new = StoreResponse::Done { created_or_found: true };
        for number in 0..48 {
            assert_eq!(put(&mut database, &format!("context-data/smf-registrations/{number}")), new);
        }
        assert_eq!(put(&mut database, "context-data/smf-registrations/more"), StoreResponse::Full);
        let known = StoreResponse::Done { created_or_found: false };
        assert_eq!(put(&mut database, "context-data/smf-registrations/0"), known);
        assert_eq!(put(&mut database, "context-data/amf-3gpp-access"), new, "another collection");
        let subscribe = |database: &mut Database, number: u32, nf: u128| {
            let nf = pith_sbi::NfInstanceId(nf);
            put(database, &format!("context-data/sdm-subscriptions/{number}-{nf}"))
        };
        for number in 0..24 {
            assert_eq!(subscribe(&mut database, number, 1), new);
        }
        assert_eq!(subscribe(&mut database, 24, 1), StoreResponse::Full);
        assert_eq!(subscribe(&mut database, 0, 1), known);
        assert_eq!(subscribe(&mut database, 24, 2), new, "another NF");
    });
}

#[test]
fn documents_are_found_by_prefix() {
    for_memory_and_file(|mut database| {
        database.add_subscribers([subscriber(1)], Existing::Refuse).unwrap();
        for (path, body) in [("smf-registrations/1", "a"), ("smf-registrations/2", "b"), ("smf-x", "c")] {
            let put = StoreRequest::PutDocument { supi: supi(1), resource: path.into(), body: body.into() };
            assert_eq!(database.handle(&put).unwrap(), StoreResponse::Done { created_or_found: true });
            assert_eq!(database.handle(&put).unwrap(), StoreResponse::Done { created_or_found: false });
        }
        let all = StoreRequest::Documents { supi: supi(1), prefix: "smf-registrations/".into() };
        let found = vec![
            ("smf-registrations/1".to_owned(), "a".to_owned()),
            ("smf-registrations/2".to_owned(), "b".to_owned()),
        ];
        assert_eq!(database.handle(&all).unwrap(), StoreResponse::Documents(found));
    });
}

#[test]
fn a_file_is_persistent_and_private() {
    let directory = Directory::new("keep");
    let sqn = put_sqn(0xffff_ffff_ffff, None);
    {
        let mut database = Database::open(&directory.file()).unwrap();
        database.add_subscribers([subscriber(1)], Existing::Refuse).unwrap();
        database.subscriber(&supi(1)).unwrap();
        database.handle(&sqn).unwrap();
        let remembered = database.subscriber(&supi(1)).unwrap().unwrap();
        assert_eq!(remembered.authentication.sqn, 0xffff_ffff_ffff);
    }
    let mut database = Database::open(&directory.file()).unwrap();
    assert_eq!(database.subscriber(&supi(1)).unwrap().unwrap().authentication.sqn, 0xffff_ffff_ffff);
    for entry in std::fs::read_dir(&directory.0).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
    }
}

/// The octets of all files of the directory except the key file.
fn stored(directory: &Directory) -> Vec<u8> {
    let files = std::fs::read_dir(&directory.0).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|file| file.extension().is_none_or(|ending| ending != "key"));
    files.flat_map(|file| std::fs::read(file).unwrap()).collect()
}

fn contains(octets: &[u8], part: &[u8]) -> bool {
    octets.windows(part.len()).any(|window| window == part)
}

#[test]
fn tc_no_key_in_the_database_file() {
    let directory = Directory::new("sealed");
    let keys = [0x5a; 16];
    let subscriber = Subscriber::with_defaults(supi(1), keys, [0xa5; 16]);
    {
        let mut database = Database::open(&directory.file()).unwrap();
        database.add_subscribers([subscriber.clone()], Existing::Refuse).unwrap();
        let stored = stored(&directory);
        assert!(contains(&stored, b"imsi-"));
        assert!(!contains(&stored, &keys) && !contains(&stored, &[b'5', b'a'].repeat(16)));
        assert!(!contains(&stored, &[b'a', b'5'].repeat(16)));
    }
    let mut database = Database::open(&directory.file()).unwrap();
    assert_eq!(*database.subscriber(&supi(1)).unwrap().unwrap(), subscriber);
}

#[test]
fn another_key_file_is_refused_and_a_missing_one_is_not_replaced() {
    let directory = Directory::new("otherkey");
    drop(Database::open(&directory.file()).unwrap());
    let key = directory.0.join("pith.db.key");
    std::fs::write(&key, "00".repeat(32)).unwrap();
    let error = Database::open(&directory.file()).err().unwrap();
    assert!(matches!(error, DatabaseError::Seal(SealError::OtherKey { .. })), "{error}");
    std::fs::remove_file(&key).unwrap();
    let error = Database::open(&directory.file()).err().unwrap();
    assert!(matches!(error, DatabaseError::Seal(SealError::Missing(_))), "{error}");
    assert!(!key.exists());
    std::fs::write(&key, "not a key").unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let error = Database::open(&directory.file()).err().unwrap();
    assert!(matches!(error, DatabaseError::Seal(SealError::NotAKey(_))), "{error}");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = Database::open(&directory.file()).err().unwrap();
    assert!(matches!(error, DatabaseError::Seal(SealError::Exposed(_))), "{error}");
}

#[test]
fn copied_and_modified_sealed_keys_are_refused() {
    let mut database = memory();
    database.add_subscribers([subscriber(1), subscriber(2)], Existing::Refuse).unwrap();
    let sql = "UPDATE subscriber SET keys = (SELECT keys FROM subscriber WHERE supi = ?1) WHERE supi = ?2";
    database.connection.execute(sql, [supi(1).as_str(), supi(2).as_str()]).unwrap();
    let error = database.subscriber(&supi(2)).err().unwrap();
    assert!(matches!(error, DatabaseError::Seal(SealError::Changed(_))), "{error}");
    for length in [1, 11, 12, 30] {
        let sql = "UPDATE subscriber SET keys = substr(keys, 1, ?2) WHERE supi = ?1";
        database.connection.execute(sql, rusqlite::params![supi(1).as_str(), length]).unwrap();
        assert!(database.subscriber(&supi(1)).is_err(), "{length}");
    }
}

#[test]
fn cleartext_keys_of_an_earlier_release_are_encrypted() {
    let directory = Directory::new("migrate");
    let subscriber = Subscriber::with_defaults(supi(1), [0x5a; 16], [0xa5; 16]);
    let clear = [b'5', b'a'].repeat(16);
    {
        std::fs::create_dir_all(&directory.0).unwrap();
        let connection = rusqlite::Connection::open(directory.0.join("pith.db")).unwrap();
        let sql = "CREATE TABLE subscriber (supi TEXT PRIMARY KEY, sqn INTEGER NOT NULL, profile TEXT NOT NULL) WITHOUT ROWID;
            CREATE TABLE document (supi TEXT NOT NULL, resource TEXT NOT NULL, body TEXT NOT NULL,
                PRIMARY KEY (supi, resource)) WITHOUT ROWID;
            PRAGMA user_version = 1";
        connection.execute_batch(sql).unwrap();
        let profile = serde_json::to_string(&subscriber).unwrap();
        let row = (supi(1).as_str().to_owned(), 7, profile);
        connection.execute("INSERT INTO subscriber VALUES (?1, ?2, ?3)", row).unwrap();
    }
    assert!(contains(&stored(&directory), &clear));
    let mut database = Database::open(&directory.file()).unwrap();
    let read = database.subscriber(&supi(1)).unwrap().unwrap();
    assert_eq!((&read.authentication.k, read.authentication.sqn), (&subscriber.authentication.k, 7));
    drop(database);
    assert!(!contains(&stored(&directory), &clear));
}

/// Processes that start together: one makes the database, and another that finds it refuses to start without its key.
#[test]
fn the_key_is_there_before_the_database() {
    let directory = Directory::new("key-first");
    let DatabaseLocation::File { path, key } = directory.file() else { panic!("a file") };
    let other = std::thread::spawn(move || {
        while !path.exists() {
            std::hint::spin_loop();
        }
        key.exists()
    });
    Database::open(&directory.file()).unwrap();
    assert!(other.join().unwrap());
}

#[test]
fn a_second_process_gets_an_in_use_error() {
    let directory = Directory::new("busy");
    let _first = Database::open(&directory.file()).unwrap();
    let error = Database::open(&directory.file()).err().unwrap();
    assert!(matches!(error, DatabaseError::InUse(_)), "{error}");
}

#[test]
fn a_file_of_a_later_release_is_refused() {
    let directory = Directory::new("later");
    Database::open(&directory.file()).unwrap().connection.pragma_update(None, "user_version", 99).unwrap();
    let error = Database::open(&directory.file()).err().unwrap();
    assert!(matches!(error, DatabaseError::TooNew { found: 99, .. }), "{error}");
    let text = error.to_string();
    let path = directory.0.join("pith.db").display().to_string();
    assert!(text.contains(&path) && text.contains("format 99") && text.contains("restore a copy"), "{text}");
    assert!(text.contains(&format!("this is Pith {}", env!("CARGO_PKG_VERSION"))), "{text}");
}

#[test]
fn all_requests_are_answered_in_order_before_the_thread_ends() {
    let (answers, received) = mpsc::channel();
    let mut database = memory();
    database.add_subscribers([subscriber(1)], Existing::Refuse).unwrap();
    let (store, thread) =
        start(database, move |token: u32, answer| answers.send((token, answer)).unwrap()).unwrap();
    for token in 0..3000 {
        let (supi, resource) = (supi(1), "r".to_owned());
        let request = match token % 3 {
            0 => StoreRequest::PutDocument { supi, resource, body: token.to_string() },
            _ => StoreRequest::Document { supi, resource },
        };
        store.request(token, request);
    }
    thread.close();
    let answers: Vec<_> = received.into_iter().collect();
    assert_eq!(answers.len(), 3000);
    for (at, (token, answer)) in (0..).zip(&answers) {
        let written = (at / 3 * 3).to_string();
        let expected = match at % 3 {
            0 => StoreResponse::Done { created_or_found: at == 0 },
            _ => StoreResponse::Document(Some(written)),
        };
        assert_eq!((at, answer), (*token, &Ok(expected)));
    }
}

#[test]
fn threads_share_commits_without_losing_a_write() {
    let directory = Directory::new("threads");
    let mut database = Database::open(&directory.file()).unwrap();
    database.add_subscribers((0..160).map(subscriber), Existing::Refuse).unwrap();
    let (answers, received) = mpsc::channel();
    let (store, thread) = start(database, move |_: u64, answer| answers.send(answer).unwrap()).unwrap();
    std::thread::scope(|scope| {
        for shard in 0..4 {
            let store = store.clone();
            scope.spawn(move || {
                for at in 0..1000 {
                    let (supi, resource) = (supi(shard * 40 + at / 25), format!("{shard}/{at}"));
                    store.request(at, StoreRequest::PutDocument { supi, resource, body: "{}".into() });
                }
            });
        }
    });
    thread.close();
    assert!(received.into_iter().all(|answer| answer == Ok(StoreResponse::Done { created_or_found: true })));
    let mut database = Database::open(&directory.file()).unwrap();
    for number in 0..160 {
        let all = StoreRequest::Documents { supi: supi(number), prefix: String::new() };
        let StoreResponse::Documents(found) = database.handle(&all).unwrap() else { panic!() };
        assert_eq!(found.len(), 25);
    }
}

#[test]
fn management_runs_after_earlier_requests() {
    let (store, thread) = start(memory(), |_: (), _| ()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let count = runtime.block_on(async {
        store.run(|database| database.add_subscribers([subscriber(1)], Existing::Refuse)).await.unwrap();
        store.request((), put_sqn(7, None));
        store.run(|database| database.subscriber(&supi(1))).await.unwrap().unwrap().authentication.sqn
    });
    assert_eq!(count, 7);
    thread.close();
}

#[test]
fn an_sqn_is_stored_only_if_the_previous_one_is_as_expected() {
    let mut database = memory();
    let put = |database: &mut Database, sqn, expected| {
        let answer = database.handle(&put_sqn(sqn, expected)).unwrap();
        let remembered = database.subscriber(&supi(1)).unwrap().map(|found| found.authentication.sqn);
        database.cache.clear();
        let written = database.subscriber(&supi(1)).unwrap().map(|found| found.authentication.sqn);
        assert_eq!(remembered, written);
        (answer == StoreResponse::Done { created_or_found: true }, written)
    };
    assert_eq!(put(&mut database, 33, Some(0)), (false, None), "no such subscriber");
    database.add_subscribers([subscriber(1)], Existing::Refuse).unwrap();
    assert_eq!(put(&mut database, 33, Some(0)), (true, Some(33)));
    assert_eq!(put(&mut database, 34, Some(0)), (false, Some(33)), "the second of two that read 0");
    assert_eq!(put(&mut database, 66, Some(33)), (true, Some(66)));
    assert_eq!(put(&mut database, 5, None), (true, Some(5)));
}

/// The SQN of the first subscriber after its replacement by one with this K and SQN.
fn sqn_after_replacement(k: [u8; 16], sqn: u64) -> u64 {
    let mut database = memory();
    let with = |k, sqn| {
        let mut subscriber = Subscriber::with_defaults(supi(1), k, [2; 16]);
        subscriber.authentication.sqn = sqn;
        subscriber
    };
    database.add_subscribers([with([1; 16], 0x1000)], Existing::Refuse).unwrap();
    database.add_subscribers([with(k, sqn)], Existing::Replace).unwrap();
    database.subscriber(&supi(1)).unwrap().unwrap().authentication.sqn
}

#[test]
fn a_replaced_subscriber_keeps_the_higher_sqn_while_k_is_the_same() {
    assert_eq!(sqn_after_replacement([1; 16], 0), 0x1000);
    assert_eq!(sqn_after_replacement([1; 16], 0x2000), 0x2000);
    assert_eq!(sqn_after_replacement([3; 16], 0), 0);
}

/// What is in memory of a file's documents agrees with the file, also after a rollback.
#[test]
fn documents_in_memory_are_those_of_the_file() {
    let directory = Directory::new("cache");
    let put = |resource: &str, body: &str| StoreRequest::PutDocument {
        supi: supi(1),
        resource: resource.into(),
        body: body.into(),
    };
    let all = StoreRequest::Documents { supi: supi(1), prefix: String::new() };
    let read = |database: &mut Database| match database.handle(&all).unwrap() {
        StoreResponse::Documents(found) => found,
        other => panic!("{other:?}"),
    };
    let of = |items: &[(&str, &str)]| -> Vec<(String, String)> {
        items.iter().map(|(resource, body)| ((*resource).into(), (*body).into())).collect()
    };
    let mut database = Database::open(&directory.file()).unwrap();
    database.add_subscribers([subscriber(1)], Existing::Refuse).unwrap();
    for (resource, body) in [("b", "1"), ("a", "2"), ("c", "3"), ("a", "4")] {
        database.handle(&put(resource, body)).unwrap();
    }
    database.handle(&StoreRequest::DeleteDocument { supi: supi(1), resource: "c".into() }).unwrap();
    assert_eq!(read(&mut database), of(&[("a", "4"), ("b", "1")]));
    let failed = database.transaction(|database| {
        database.handle(&put("a", "5"))?;
        database.handle(&put("d", "6"))?;
        Err::<(), _>(DatabaseError::Closed)
    });
    assert!(failed.is_err());
    assert_eq!(read(&mut database), of(&[("a", "4"), ("b", "1")]));
    drop(database);
    assert_eq!(read(&mut Database::open(&directory.file()).unwrap()), of(&[("a", "4"), ("b", "1")]));
}

/// The second of two that read the same document does not overwrite what the first has written.
#[test]
fn a_document_is_replaced_only_if_it_is_as_expected() {
    for_memory_and_file(|mut database| {
        database.add_subscribers([subscriber(1)], Existing::Refuse).unwrap();
        let resource = || "context-data/amf-3gpp-access".to_owned();
        let put = StoreRequest::PutDocument { supi: supi(1), resource: resource(), body: "1".into() };
        database.handle(&put).unwrap();
        let mut replace = |expected: &str, body: &str| {
            let (expected, body) = (expected.into(), body.into());
            let request =
                StoreRequest::ReplaceDocument { supi: supi(1), resource: resource(), expected, body };
            database.handle(&request).unwrap() == StoreResponse::Done { created_or_found: true }
        };
        assert!(replace("1", "2") && !replace("1", "3") && replace("2", "3"));
    });
}
