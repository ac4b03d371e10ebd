//! The engine against a real server, which each test starts.

use super::super::tests::{Content, all, content, head, key, whole};
use super::super::*;
use super::server::Server;
use ::redis::{Cmd, Value, cmd};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A document with these sections.
fn document(revision: u64, sections: &[(SectionId, &[u8])]) -> Batch {
    let mut batch = Batch::new(OwnerVersion(1));
    let mut writer = batch.replace(head(key(3, 9), revision));
    for (id, octets) in sections {
        writer.section(*id, octets);
    }
    batch
}

fn sections(engine: &mut RedisEngine) -> Content {
    content(&engine.read(key(3, 9)).unwrap().unwrap())
}

/// A command that bypasses the engine.
fn raw(server: &Server, command: &Cmd) -> Value {
    raw_of(&server.store(), command)
}

fn raw_of(store: &RedisStore, command: &Cmd) -> Value {
    let mut connection = super::connection::Connection::open(&store.shared.access).unwrap();
    connection.command(command).unwrap()
}

#[test]
fn an_update_sends_only_changed_sections() {
    let Some(server) = Server::start(&[]) else { return };
    let mut engine = server.store().engine();
    engine.append(&document(1, &[(1, &[7; 5000]), (2, b"two"), (3, b"three")])).unwrap();
    let before = engine.statistics();
    let mut batch = Batch::new(OwnerVersion(1));
    batch.update(head(key(3, 9), 2)).section(2, b"TWO").remove(3).section(4, b"four");
    batch.expect(Revision(1));
    assert!(engine.append(&batch).unwrap().conflicts.is_empty());
    let spent = engine.statistics();
    assert!(spent.octets_written - before.octets_written < 700, "{spent:?}");
    assert_eq!((spent.writes - before.writes, spent.requests - before.requests), (1, 1));
    let expected: Content = [(1, vec![7; 5000]), (2, b"TWO".to_vec()), (4, b"four".to_vec())].into();
    assert_eq!(sections(&mut engine), expected);
    let some = engine.read_sections(key(3, 9), &[2, 9]).unwrap().unwrap();
    assert_eq!(content(&some), [(2, b"TWO".to_vec())].into());
    assert_eq!(engine.read_sections(key(3, 8), &[2]), Ok(None));
}

#[test]
fn another_programs_value_under_a_key_concerns_one_document_only() {
    let Some(server) = Server::start(&[]) else { return };
    let mut engine = server.store().engine();
    for number in 1..4 {
        engine.append(&whole(1, key(3, number), 1, b"fine")).unwrap();
    }
    let Value::Array(keys) = raw(&server, cmd("KEYS").arg("*:amf:2")) else { panic!() };
    raw(&server, cmd("SET").arg(super::connection::text(&keys[0])).arg("a string"));
    let found = all(&mut engine);
    assert!(matches!(found[&key(3, 2)], Err(DocumentError::Modified { .. })), "{found:?}");
    assert!(found[&key(3, 1)].is_ok() && found[&key(3, 3)].is_ok());
    assert!(matches!(engine.read(key(3, 2)), Err(DocumentError::Modified { .. })));
    // A whole document replaces it, and other changes of the batch are made.
    let mut batch = whole(1, key(3, 1), 2, b"new");
    batch.replace(head(key(3, 2), 2)).section(1, b"new");
    assert!(engine.append(&batch).unwrap().conflicts.is_empty());
    let new: Content = [(1, b"new".to_vec())].into();
    assert_eq!([1, 2].map(|number| all(&mut engine)[&key(3, number)].clone()), [Ok(new.clone()), Ok(new)]);
}

/// Values that other programs leave under a key of Pith.
fn foreign_values(server: &Server, name: &str) -> Vec<Cmd> {
    raw(server, cmd("DEL").arg(name));
    let mut list = cmd("RPUSH");
    list.arg(name).arg("a list");
    let mut text = cmd("SET");
    text.arg(name).arg("a string");
    let mut large = cmd("SET");
    large.arg(name).arg("123456789012345678901234567890");
    vec![list, text, large]
}

#[test]
fn a_fence_that_another_program_has_overwritten_is_restored_from_the_documents_of_its_block() {
    let Some(server) = Server::start(&[]) else { return };
    let mut engine = server.store().engine();
    let own = engine.claim(&[3, 4], 7).unwrap();
    engine.append(&whole(own.0, key(3, 1), 1, b"one")).unwrap();
    let name = engine.fence_of(3);
    for value in foreign_values(&server, &name) {
        let set = |server: &Server| {
            raw(server, cmd("DEL").arg(&name));
            raw(server, &value);
        };
        set(&server);
        assert_eq!(engine.fenced_below(3).unwrap(), own, "{value:?}");
        // A former owner stays one.
        let error = engine.append(&whole(own.0 - 1, key(3, 2), 1, b"late")).unwrap_err();
        assert!(matches!(error, EngineError::Fenced { block: 3, .. }), "{error}");
        let mut batch = whole(own.0, key(3, 2), 1, b"two");
        batch.replace(head(key(4, 2), 1)).section(1, b"of another block");
        assert!(engine.append(&batch).unwrap().conflicts.is_empty());
        assert_eq!(engine.fenced_below(3).unwrap(), own);
        set(&server);
        engine.fence(3, own).unwrap();
        set(&server);
        let mut next = server.store().engine();
        let claimed = next.claim(&[3, 4], 0).unwrap();
        assert_eq!(claimed, own);
        assert_eq!(all(&mut next).len(), 3);
    }
}

#[test]
fn an_overwritten_fence_is_not_restored_from_documents_of_other_nfs() {
    let Some(server) = Server::start(&[]) else { return };
    let engine = |scope: &str, kind: DocumentKind| {
        let (scope, kinds) = (scope.into(), vec![kind]);
        RedisStore::open(RedisSettings { scope, kinds, ..server.settings() }).unwrap().engine()
    };
    let (mut amf, mut smf) = (engine("amf", DocumentKind::Amf), engine("smf", DocumentKind::Smf));
    let own = amf.claim(&[3], 2).unwrap();
    amf.append(&whole(own.0, key(3, 1), 1, b"of the AMF")).unwrap();
    // The SMF's process started more often. Its sessions are in blocks with the same numbers.
    let of_smf = smf.claim(&[3], 9).unwrap();
    let session = DocumentKey { kind: DocumentKind::Smf, ..key(3, 1) };
    smf.append(&whole(of_smf.0, session, 1, b"of the SMF")).unwrap();
    let name = amf.fence_of(3);
    for value in foreign_values(&server, &name) {
        raw(&server, cmd("DEL").arg(&name));
        raw(&server, &value);
        assert_eq!(amf.fenced_below(3).unwrap(), own, "{value:?}");
        amf.append(&whole(own.0, key(3, 2), 1, b"later")).unwrap();
        assert_eq!(amf.fenced_below(3).unwrap(), own);
        assert_eq!(smf.fenced_below(3).unwrap(), of_smf);
    }
}

#[test]
fn a_fence_that_the_next_owner_has_just_written_is_not_removed_as_another_programs_value() {
    let Some(server) = Server::start(&[]) else { return };
    let (mut engine, mut next) = (server.store().engine(), server.store().engine());
    let own = engine.claim(&[3], 1).unwrap();
    let name = engine.fence_of(3);
    raw(&server, cmd("SET").arg(&name).arg("a string"));
    // The engine has seen this value. Before it restores the fence, the next owner claims the block.
    let later = next.claim(&[3], 5).unwrap();
    assert!(later > own);
    let _ = engine.restore_fence(3, own);
    assert_eq!(raw(&server, cmd("GET").arg(&name)), Value::BulkString(later.0.to_string().into_bytes()));
    let error = engine.append(&whole(own.0, key(3, 1), 1, b"late")).unwrap_err();
    assert!(matches!(error, EngineError::Fenced { block: 3, .. }), "{error}");
}

#[test]
fn an_index_that_another_program_has_overwritten_is_restored() {
    let Some(server) = Server::start(&[]) else { return };
    let mut engine = server.store().engine();
    let mut batch = Batch::new(OwnerVersion(1));
    for number in 0..300 {
        batch.replace(head(key(3, number * 77), 1)).section(1, b"x");
    }
    batch.replace(head(key(0x33, 5), 1)).section(1, b"of another block");
    engine.append(&batch).unwrap();
    let name = engine.key_of_kind(DocumentKind::Amf, 3);
    let mut other = cmd("SADD");
    other.arg(&name).arg("no number");
    for value in foreign_values(&server, &name).into_iter().chain([other]) {
        raw(&server, cmd("DEL").arg(&name));
        raw(&server, &value);
        assert_eq!(all(&mut engine).len(), 301, "{value:?}");
        assert_eq!(raw(&server, cmd("SCARD").arg(&name)), Value::Int(300));
    }
    // It is found when a document is added, or deleted, too.
    for number in [1, 2] {
        raw(&server, cmd("SET").arg(&name).arg("a string"));
        engine.append(&whole(1, key(3, number), 1, b"new")).unwrap();
        assert_eq!(raw(&server, cmd("SCARD").arg(&name)), Value::Int(300 + i64::from(number)));
    }
    raw(&server, cmd("SET").arg(&name).arg("a string"));
    let mut batch = Batch::new(OwnerVersion(1));
    batch.delete(key(3, 1), Revision(2));
    engine.append(&batch).unwrap();
    assert_eq!(raw(&server, cmd("SCARD").arg(&name)), Value::Int(301));
    assert_eq!(all(&mut engine).len(), 302);
}

#[test]
fn another_programs_values_in_place_of_leases_and_map_are_replaced() {
    use crate::residency::owners::tests::{check_leases, check_map};
    let Some(server) = Server::start(&[]) else { return };
    for _ in 0..2 {
        let mut owners = server.store().owners();
        check_map(&mut owners);
        check_leases(&mut owners);
        let Value::Array(keys) = raw(&server, cmd("KEYS").arg("*s")) else { panic!() };
        assert_eq!(keys.len(), 2, "{keys:?}");
        for key in keys {
            raw(&server, cmd("SET").arg(super::connection::text(&key)).arg("junk"));
        }
    }
}

/// The message about a missing permission names what is needed.
#[test]
fn the_commands_that_are_to_be_permitted_suffice() {
    use crate::residency::owners::tests::{check_leases, check_map};
    let Some(server) = Server::start(&[]) else { return };
    let store = server.store();
    store.engine().append(&whole(1, key(3, 1), 1, b"x")).unwrap();
    let mut restrict = cmd("ACL");
    restrict.arg(&["SETUSER", "default", "resetkeys", "~pith:*", "nocommands"]);
    let names = super::connection::COMMANDS.replace(" and ", ", ");
    for name in names.split(", ") {
        restrict.arg(format!("+{}", name.to_lowercase()));
    }
    raw(&server, &restrict);
    let store = server.store();
    check_map(&mut store.owners());
    check_leases(&mut store.owners());
    let mut engine = store.engine();
    let owner = engine.claim(&[3], 1).unwrap();
    let batch = |revision, octets: &[u8]| {
        let mut batch = Batch::new(owner);
        batch.replace(head(key(3, 1), revision)).section(1, octets);
        batch
    };
    engine.append(&batch(2, b"y")).unwrap();
    let mut update = Batch::new(owner);
    update.update(head(key(3, 1), 3)).section(1, b"z").remove(2);
    engine.append(&update).unwrap();
    assert_eq!(all(&mut engine).len(), 1);
    // An index and a fence that other programs overwrote are restored, too.
    assert!(engine.restore_index(DocumentKind::Amf, 3).is_ok());
    engine.restore_fence(3, owner).unwrap();
    store.set_note("n", "text").unwrap();
    assert!(store.is_used().unwrap() && store.note("n").unwrap().is_some());
    let mut batch = Batch::new(owner);
    batch.delete(key(3, 1), Revision(4));
    engine.append(&batch).unwrap();
}

#[test]
fn notes_of_a_core_are_stored_and_a_server_knows_whether_it_was_used() {
    let Some(server) = Server::start(&[]) else { return };
    let store = server.store();
    assert_eq!((store.is_used().unwrap(), store.note("n").unwrap()), (false, None));
    store.set_note("n", "text").unwrap();
    assert_eq!(store.note("n").unwrap().as_deref(), Some("text"));
    store.engine().claim(&[1023], 1).unwrap();
    assert!(store.is_used().unwrap());
}

#[test]
fn sections_are_sealed_and_bound_to_their_document() {
    let Some(server) = Server::start(&[]) else { return };
    let mut engine = server.store().engine();
    engine.append(&document(1, &[(1, b"a secret key of a UE"), (2, b"other")])).unwrap();
    engine.append(&whole(1, key(3, 10), 1, b"fine")).unwrap();
    let Value::Array(keys) = raw(&server, cmd("KEYS").arg("*:amf:9")) else { panic!() };
    let name = super::connection::text(&keys[0]);
    let Value::BulkString(sealed) = raw(&server, cmd("HGET").arg(&name).arg(1)) else { panic!() };
    assert!(!sealed.windows(6).any(|octets| octets == b"secret"));
    // A section under another number, a changed octet, and a field that no engine writes.
    for (field, value) in
        [("2", sealed.clone()), ("1", [sealed.as_slice(), b"x"].concat()), ("x", b"y".to_vec())]
    {
        raw(&server, cmd("HSET").arg(&name).arg(field).arg(value));
        let error = engine.read(key(3, 9)).unwrap_err();
        assert!(error.to_string().contains("amf:3:9 is unknown"), "{error}");
        engine.append(&document(2, &[(1, b"again"), (2, b"other")])).unwrap();
        raw(&server, cmd("HDEL").arg(&name).arg("x"));
    }
    let read = all(&mut engine);
    assert_eq!(read.len(), 2, "others are read: {read:?}");
}

#[test]
fn documents_written_before_the_server_was_replaced_are_stale() {
    let Some(mut server) = Server::start(&["--appendonly", "yes", "--appendfsync", "always"]) else { return };
    let mut engine = server.store().engine();
    engine.append(&document(1, &[(1, b"before")])).unwrap();
    assert!(!engine.read(key(3, 9)).unwrap().unwrap().is_stale);
    assert!(!engine.take_loss());
    server.kill();
    let error = engine.append(&document(2, &[(1, b"lost")])).unwrap_err();
    assert!(
        matches!(error, EngineError::Remote { .. }) && error.to_string().contains(&server.url),
        "{error}"
    );
    assert!(server.resume());
    // For the same process and for the next one.
    assert!(engine.read(key(3, 9)).unwrap().unwrap().is_stale);
    assert!(engine.take_loss() && !engine.take_loss());
    let mut next = server.store().engine();
    assert!(next.read(key(3, 9)).unwrap().unwrap().is_stale);
    engine.append(&document(3, &[(1, b"after")])).unwrap();
    assert!(!next.read(key(3, 9)).unwrap().unwrap().is_stale);
}

#[test]
fn a_forgotten_script_is_loaded_again() {
    let Some(server) = Server::start(&[]) else { return };
    let mut engine = server.store().engine();
    engine.append(&document(1, &[(1, b"x")])).unwrap();
    raw(&server, cmd("SCRIPT").arg("FLUSH"));
    engine.append(&document(2, &[(1, b"y")])).unwrap();
    assert_eq!(sections(&mut engine), [(1, b"y".to_vec())].into());
}

#[test]
fn a_large_batch_and_a_large_block_are_written_and_read_in_parts() {
    let Some(server) = Server::start(&[]) else { return };
    let mut engine = server.store().engine();
    let large = vec![5; MAX_DOCUMENT - 100];
    let mut batch = Batch::new(OwnerVersion(1));
    for number in 0..30 {
        batch.replace(head(key(3, number), 1)).section(1, &large);
    }
    for number in 30..MAX_BATCH as u32 {
        batch.replace(head(key(3, number), 1)).section(1, b"small");
    }
    assert!(engine.append(&batch).unwrap().conflicts.is_empty());
    let mut read = BTreeMap::new();
    engine
        .read_block(DocumentKind::Amf, 3, &mut |key, document| {
            read.insert(key.number, document.unwrap().section(1).unwrap().len());
        })
        .unwrap();
    assert_eq!(read.len(), MAX_BATCH);
    assert!(read.iter().all(|(number, octets)| *octets == if *number < 30 { large.len() } else { 5 }));
}

#[test]
fn two_cores_share_a_server() {
    let Some(server) = Server::start(&[]) else { return };
    let mut engine = server.store().engine();
    engine.append(&document(1, &[(1, b"one")])).unwrap();
    fs::remove_file(server.path("key")).unwrap();
    let mut other = server.store().engine();
    assert!(all(&mut other).is_empty());
    other.append(&document(1, &[(1, b"other")])).unwrap();
    assert_eq!(sections(&mut engine), [(1, b"one".to_vec())].into());
}

#[test]
fn processes_of_different_nfs_do_not_fence_each_other_off() {
    let Some(server) = Server::start(&[]) else { return };
    let settings = server.settings();
    let engine = |scope: &str| {
        let settings = RedisSettings { scope: scope.into(), ..settings.clone() };
        RedisStore::open(settings).unwrap().engine()
    };
    let (mut amf, mut smf, mut next) = (engine("amf"), engine("smf"), engine("amf"));
    let claim = |engine: &mut RedisEngine| engine.claim(&[3], 1).unwrap();
    assert_eq!((claim(&mut amf), claim(&mut smf)), (OwnerVersion(1), OwnerVersion(1)));
    amf.append(&document(1, &[(1, b"of the AMF")])).unwrap();
    assert_eq!(claim(&mut next), OwnerVersion(2));
    assert!(matches!(amf.append(&document(2, &[(1, b"late")])), Err(EngineError::Fenced { .. })));
}

fn refusal(settings: RedisSettings) -> String {
    RedisStore::open(settings).err().unwrap().to_string()
}

#[test]
fn a_password_is_read_from_a_private_file() {
    let Some(server) = Server::start(&["--requirepass", "correct"]) else { return };
    let file = server.path("password");
    let with = |text: &str, mode: u32| {
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        RedisSettings { password_file: Some(file.clone()), ..server.settings() }
    };
    assert!(refusal(server.settings()).contains("requires a password"));
    assert!(refusal(with("wrong", 0o600)).contains("refuses user or password"));
    assert!(refusal(with("correct", 0o644)).contains("chmod 600"));
    assert!(refusal(with("", 0o600)).contains("no password"));
    let mut engine = RedisStore::open(with("correct\n", 0o600)).unwrap().engine();
    engine.append(&document(1, &[(1, b"x")])).unwrap();
    assert_eq!(sections(&mut engine).len(), 1);
}

#[test]
fn tls_accepts_only_certificates_of_the_configured_ca() {
    let Some((server, ca)) = Server::start_tls() else { return };
    let with = |ca: Option<&std::path::Path>| RedisSettings { ca: ca.map(Into::into), ..server.settings() };
    assert!(refusal(with(None)).contains("'state.redis.ca'"));
    let mut engine = RedisStore::open(with(Some(&ca))).unwrap().engine();
    engine.append(&document(1, &[(1, b"x")])).unwrap();
    assert_eq!(sections(&mut engine).len(), 1);
    let foreign = server.path("foreign.pem");
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    fs::write(&foreign, other.cert.pem()).unwrap();
    assert!(refusal(with(Some(&foreign))).contains("TLS failed"), "{}", refusal(with(Some(&foreign))));
    fs::write(&foreign, "no certificate").unwrap();
    assert!(refusal(with(Some(&foreign))).contains("state.redis.ca"));
    let clear = server.url.replace("rediss", "redis").parse().unwrap();
    assert!(!refusal(RedisSettings { url: clear, ..server.settings() }).is_empty());
}

#[test]
fn a_server_that_evicts_keys_is_refused() {
    let options = ["--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru"];
    let Some(server) = Server::start(&options) else { return };
    assert!(refusal(server.settings()).contains("noeviction"));
}

#[test]
fn a_peer_that_is_no_server_is_refused_within_bounds() {
    use std::io::Write;
    for answer in
        [b"HTTP/1.1 400 Bad Request\r\n\r\n".as_slice(), b"$999999999999\r\n", b"*99999999\r\n", b"+OK"]
    {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap()).parse().unwrap();
        let peer = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.write_all(answer);
            // More than a reply may have.
            let chunk = vec![b'x'; 1 << 20];
            for _ in 0..16 {
                if stream.write_all(&chunk).is_err() {
                    break;
                }
            }
        });
        let secret = DocumentSecret::ephemeral().unwrap();
        let error = refusal(RedisSettings {
            url,
            password_file: None,
            ca: None,
            secret,
            scope: String::new(),
            kinds: Vec::new(),
        });
        assert!(error.starts_with("'state.redis.url' redis://127.0.0.1"), "{error}");
        peer.join().unwrap();
    }
}

/// Redis refuses only the first write of a script, and only if that may need memory.
#[test]
fn at_maxmemory_documents_are_refused_as_leases_are_and_a_start_is() {
    use super::super::owners::{Lease, OwnerStore};
    let Some(server) = Server::start(&[]) else { return };
    let (store, other) = (server.store(), server.store());
    let mut engine = store.engine();
    for (number, text) in [(1, b"one"), (2, b"two")] {
        engine.append(&whole(1, key(3, number), 1, text)).unwrap();
    }
    let before = all(&mut engine);
    let limit = |octets: &str| {
        raw_of(&other, cmd("CONFIG").arg("SET").arg("maxmemory").arg(octets));
    };
    limit("1");
    // A document that exists, one that does not, and one beside another one's removal.
    let mut mixed = whole(1, key(3, 1), 2, b"new");
    mixed.delete(key(3, 2), Revision(2));
    for batch in [whole(1, key(3, 1), 2, b"new"), whole(1, key(3, 9), 1, b"new"), mixed] {
        let error = engine.append(&batch).unwrap_err().to_string();
        assert!(error.contains("maxmemory"), "{error}");
    }
    assert_eq!(all(&mut engine), before, "nothing of them is written");
    let description = Description { root: "http://10.0.0.1:80".into(), shards: 1, process: None };
    let lasts = std::time::Duration::from_secs(3);
    let lease = Lease { instance: pith_types::InstanceId(1), incarnation: 1, lasts, description };
    assert!(store.owners().poll(Some(&lease), false).unwrap_err().to_string().contains("maxmemory"));
    let error = RedisStore::open(server.settings()).err().unwrap();
    assert!(error.may_pass && error.to_string().contains("maxmemory"), "{error}");
    // What frees memory is not refused.
    let mut batch = Batch::new(OwnerVersion(1));
    batch.delete(key(3, 2), Revision(2));
    engine.append(&batch).unwrap();
    assert_eq!(all(&mut engine).len(), 1);
    limit("0");
    engine.append(&whole(1, key(3, 1), 2, b"new")).unwrap();
    server.store();
}

#[test]
fn documents_that_someone_deletes_are_missed_by_each_engine() {
    let Some(server) = Server::start(&[]) else { return };
    let (mut engine, mut other) = (server.store().engine(), server.store().engine());
    for _ in 0..2 {
        engine.append(&whole(1, key(3, 1), 1, b"one")).unwrap();
        for each in [&mut engine, &mut other] {
            each.check().unwrap();
            each.check().unwrap();
            assert!(!each.take_loss());
        }
        raw_of(&server.store(), &cmd("FLUSHALL"));
        for each in [&mut engine, &mut other] {
            each.check().unwrap();
            assert!(each.take_loss());
        }
    }
}

#[test]
fn a_thread_without_work_notices_that_the_documents_were_deleted() {
    let Some(server) = Server::start(&[]) else { return };
    let store = server.store();
    let (woken, wakes) = crossbeam_channel::unbounded();
    let on_written = Box::new(move || woken.send(()).unwrap());
    let mut thread = EngineThread::start("state-0".into(), Box::new(store.engine()), on_written).unwrap();
    thread.append(&whole(1, key(3, 1), 1, b"one")).unwrap();
    wakes.recv().unwrap();
    // It has read the marker before it wrote.
    raw_of(&store, &cmd("FLUSHALL"));
    wakes.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
    assert!(thread.take_loss());
}

#[test]
fn an_index_that_someone_has_deleted_is_restored_when_one_of_its_documents_is_written() {
    let Some(server) = Server::start(&[]) else { return };
    let mut engine = server.store().engine();
    for number in 1..=3 {
        engine.append(&whole(1, key(3, number), 1, b"one")).unwrap();
    }
    let name = engine.key_of_kind(DocumentKind::Amf, 3);
    raw(&server, cmd("DEL").arg(&name));
    engine.append(&whole(1, key(3, 2), 2, b"two")).unwrap();
    assert_eq!(raw(&server, cmd("SCARD").arg(&name)), Value::Int(3));
    assert_eq!(all(&mut engine).len(), 3);
}
