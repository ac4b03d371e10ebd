//! All engines against a model.

use super::redis::server::Server;
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A directory that is removed at the end of the test.
pub(super) struct Directory(PathBuf);

impl Directory {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Relaxed);
        let path = std::env::temp_dir().join(format!("pith-documents-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) fn key(block: u16, number: u32) -> DocumentKey {
    DocumentKey::new(DocumentKind::Amf, block, number).unwrap()
}

pub(super) fn head(key: DocumentKey, revision: u64) -> Head {
    Head { key, revision: Revision(revision), layout: 1, deadline: None }
}

/// Sections by id.
pub(super) type Content = BTreeMap<SectionId, Vec<u8>>;

pub(super) fn content(document: &Document) -> Content {
    document.sections().map(|(id, octets)| (id, octets.to_vec())).collect()
}

/// All documents of a kind.
pub(super) fn all(engine: &mut dyn Engine) -> BTreeMap<DocumentKey, Result<Content, DocumentError>> {
    let mut found = BTreeMap::new();
    for kind in DocumentKind::ALL {
        for block in 0..BLOCKS as u16 {
            engine
                .read_block(kind, block, &mut |key, document| {
                    found.insert(key, document.map(|document| content(&document)));
                })
                .unwrap();
        }
    }
    found
}

/// A change of a random test.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Replace(DocumentKey, Content),
    Update(DocumentKey, BTreeMap<SectionId, Option<Vec<u8>>>),
    Delete(DocumentKey),
}

fn any_key() -> impl Strategy<Value = DocumentKey> {
    (0u16..3, 0u32..4, 0usize..2).prop_map(|(block, number, kind)| DocumentKey {
        kind: DocumentKind::ALL[kind],
        block,
        number,
    })
}

fn any_octets() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..40)
}

pub(super) fn any_step() -> impl Strategy<Value = Step> {
    // Ids of one octet, and wide ones.
    let any_id = || prop::sample::select(vec![0, 1, 254, 255, 1 << 46]);
    let sections = prop::collection::btree_map(any_id(), any_octets(), 0..4);
    let changed = prop::collection::btree_map(any_id(), prop::option::of(any_octets()), 1..3);
    prop_oneof![
        3 => (any_key(), sections).prop_map(|(key, sections)| Step::Replace(key, sections)),
        5 => (any_key(), changed).prop_map(|(key, changed)| Step::Update(key, changed)),
        1 => any_key().prop_map(Step::Delete),
    ]
}

pub(super) fn any_batches() -> impl Strategy<Value = Vec<Vec<Step>>> {
    prop::collection::vec(prop::collection::vec(any_step(), 1..6), 1..25)
}

/// What the documents should be.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Model(pub BTreeMap<DocumentKey, (u64, Content)>);

impl Model {
    /// Applies a batch; returns it in the engines' form, and the conflicts that it has.
    pub fn apply(&mut self, steps: &[Step], owner: OwnerVersion) -> (Batch, Vec<usize>) {
        let mut batch = Batch::new(owner);
        let mut conflicts = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            match step {
                Step::Replace(key, sections) => {
                    let revision = self.0.get(key).map_or(0, |(revision, _)| *revision) + 1;
                    let mut writer = batch.replace(head(*key, revision));
                    for (id, octets) in sections {
                        writer.section(*id, octets);
                    }
                    self.0.insert(*key, (revision, sections.clone()));
                }
                Step::Update(key, changed) => {
                    let revision = self.0.get(key).map_or(0, |(revision, _)| *revision) + 1;
                    let mut writer = batch.update(head(*key, revision));
                    for (id, octets) in changed {
                        match octets {
                            Some(octets) => writer.section(*id, octets),
                            None => writer.remove(*id),
                        };
                    }
                    match self.0.get_mut(key) {
                        Some(found) => found.change(revision, changed),
                        None => conflicts.push(at),
                    }
                }
                Step::Delete(key) => {
                    batch.delete(*key, Revision(0));
                    self.0.remove(key);
                }
            }
        }
        (batch, conflicts)
    }

    pub fn documents(&self) -> BTreeMap<DocumentKey, Result<Content, DocumentError>> {
        self.0.iter().map(|(key, (_, content))| (*key, Ok(content.clone()))).collect()
    }
}

trait Changed {
    fn change(&mut self, revision: u64, changed: &BTreeMap<SectionId, Option<Vec<u8>>>);
}

impl Changed for (u64, Content) {
    fn change(&mut self, revision: u64, changed: &BTreeMap<SectionId, Option<Vec<u8>>>) {
        self.0 = revision;
        for (id, octets) in changed {
            match octets {
                Some(octets) => self.1.insert(*id, octets.clone()),
                None => self.1.remove(id),
            };
        }
    }
}

fn follows_the_model(engine: &mut dyn Engine, batches: &[Vec<Step>]) {
    let mut model = Model::default();
    for steps in batches {
        let (batch, conflicts) = model.apply(steps, OwnerVersion(1));
        assert_eq!(engine.append(&batch).unwrap().conflicts, conflicts);
    }
    assert_eq!(all(engine), model.documents());
    for (key, (revision, _)) in &model.0 {
        let found = engine.read(*key).unwrap().unwrap();
        assert_eq!((found.revision.0, found.is_stale), (*revision, false));
    }
}

pub(super) fn file_store(directory: &Path) -> FileStore {
    FileStore::open(file_settings(directory, Sync::None)).unwrap()
}

pub(super) fn file_settings(directory: &Path, sync: Sync) -> FileSettings {
    let secret = DocumentSecret::of_file(&directory.join("key"), true).unwrap();
    FileSettings {
        directory: directory.join("log"),
        secret,
        sync,
        on_durable: None,
        former: FormerRun::Unknown,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn memory_follows_the_model(batches in any_batches()) {
        follows_the_model(&mut MemoryStore::default().engine(), &batches);
    }

    #[test]
    fn a_file_follows_the_model_and_so_it_does_after_a_restart(batches in any_batches()) {
        let directory = Directory::new();
        let store = file_store(directory.path());
        let mut engine = store.engine(0).unwrap();
        follows_the_model(&mut engine, &batches);
        let before = all(&mut engine);
        drop(engine);
        drop(store);
        let store = file_store(directory.path());
        prop_assert_eq!(store.recovery().documents, before.len() as u64);
        prop_assert_eq!(all(&mut store.engine(0).unwrap()), before);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn a_server_follows_the_model(batches in any_batches()) {
        if let Some(server) = Server::start(&[]) {
            let store = server.store();
            let mut engine = store.engine();
            follows_the_model(&mut engine, &batches);
            prop_assert_eq!(all(&mut store.engine()), all(&mut engine), "over another connection");
        }
    }
}

/// The same for each engine.
fn for_each_engine(test: impl Fn(&mut dyn Engine, &mut dyn Engine)) {
    let memory = MemoryStore::default();
    test(&mut memory.engine(), &mut memory.engine());
    let directory = Directory::new();
    let store = file_store(directory.path());
    test(&mut store.engine(0).unwrap(), &mut store.engine(1).unwrap());
    if let Some(server) = Server::start(&[]) {
        let store = server.store();
        test(&mut store.engine(), &mut store.engine());
    }
}

pub(super) fn whole(owner: u64, key: DocumentKey, revision: u64, octets: &[u8]) -> Batch {
    let mut batch = Batch::new(OwnerVersion(owner));
    batch.replace(head(key, revision)).section(1, octets);
    batch
}

#[test]
fn a_former_owner_is_refused_and_its_batch_not_written() {
    for_each_engine(|former, owner| {
        former.append(&whole(4, key(7, 1), 1, b"former")).unwrap();
        owner.fence(7, OwnerVersion(5)).unwrap();
        let mut batch = whole(4, key(8, 1), 1, b"other block");
        batch.replace(head(key(7, 1), 2)).section(1, b"late");
        let error = former.append(&batch).unwrap_err();
        assert!(matches!(error, EngineError::Fenced { block: 7, current: 5, own: 4 }), "{error}");
        assert_eq!(former.read(key(8, 1)).unwrap(), None, "nothing of the batch is written");
        assert_eq!(owner.read(key(7, 1)).unwrap().unwrap().section(1), Some(b"former".as_slice()));
        assert!(former.fence(7, OwnerVersion(4)).is_err());
        owner.fence(7, OwnerVersion(5)).unwrap();
        owner.append(&whole(5, key(7, 1), 2, b"owner")).unwrap();
        assert_eq!(former.read(key(7, 1)).unwrap().unwrap().section(1), Some(b"owner".as_slice()));
        assert_eq!(former.fenced_below(7).unwrap(), OwnerVersion(5));
    });
}

#[test]
fn each_claim_raises_the_version_of_all_its_blocks_and_refuses_the_owner_before() {
    for_each_engine(|former, owner| {
        // More than one request has, with engines that need several.
        let blocks: Vec<u16> = (0..300).collect();
        let first = former.claim(&blocks, 3).unwrap();
        assert_eq!(first, OwnerVersion(3));
        former.append(&whole(first.0, key(299, 1), 1, b"former")).unwrap();
        let second = owner.claim(&blocks[250..], 2).unwrap();
        assert_eq!(second, OwnerVersion(5));
        let error = former.append(&whole(first.0, key(299, 1), 2, b"late")).unwrap_err();
        assert!(matches!(error, EngineError::Fenced { block: 299, current: 5, own: 3 }), "{error}");
        former.append(&whole(first.0, key(249, 1), 1, b"still its own")).unwrap();
        owner.append(&whole(second.0, key(299, 1), 2, b"owner")).unwrap();
        assert_eq!(former.read(key(299, 1)).unwrap().unwrap().section(1), Some(b"owner".as_slice()));
    });
}

#[test]
fn a_change_that_expects_another_revision_is_a_conflict_and_others_of_the_batch_are_made() {
    for_each_engine(|engine, other| {
        let append = |engine: &mut dyn Engine, revision: u64, expected: u64| {
            let mut batch = whole(1, key(0, 9), revision, &[revision as u8]);
            batch.expect(Revision(expected));
            batch.replace(head(key(0, 10), revision)).section(1, b"any");
            engine.append(&batch).unwrap().conflicts
        };
        assert_eq!(append(engine, 1, 1), [0], "there is no document yet");
        assert!(append(engine, 1, 0).is_empty());
        assert!(append(other, 2, 1).is_empty());
        assert_eq!(append(engine, 2, 1), [0], "the other one was faster");
        assert_eq!(engine.read(key(0, 9)).unwrap().unwrap().revision, Revision(2));
        assert_eq!(engine.read(key(0, 10)).unwrap().unwrap().revision, Revision(2));
    });
}

#[test]
fn an_update_of_an_absent_document_is_a_conflict() {
    for_each_engine(|engine, _| {
        let mut batch = Batch::new(OwnerVersion(1));
        batch.update(head(key(0, 1), 2)).section(1, b"x");
        batch.replace(head(key(0, 2), 1)).section(1, b"x");
        batch.update(head(key(0, 2), 2)).section(2, b"y");
        batch.delete(key(0, 2), Revision(3));
        batch.update(head(key(0, 2), 4)).section(2, b"z");
        assert_eq!(engine.append(&batch).unwrap().conflicts, [0, 4]);
        assert!(all(engine).is_empty());
    });
}

#[test]
fn deadlines_of_a_block_are_listed_by_time() {
    for_each_engine(|engine, _| {
        let mut batch = Batch::new(OwnerVersion(1));
        for (number, deadline) in [(1, Some(30)), (2, None), (3, Some(10)), (4, Some(20)), (5, Some(99))] {
            let deadline = deadline.map(UnixMillis);
            batch.replace(Head { deadline, ..head(key(3, number), 1) }).section(1, b"x");
        }
        batch.replace(Head { deadline: Some(UnixMillis(1)), ..head(key(4, 1), 1) }).section(1, b"x");
        batch.update(head(key(3, 4), 2)).section(1, b"no timer");
        engine.append(&batch).unwrap();
        let due = |engine: &mut dyn Engine, limit| -> Vec<_> {
            let due = engine.due(3, UnixMillis(50), limit).unwrap();
            due.iter().map(|due| (due.deadline.0, due.key.number)).collect()
        };
        assert_eq!(due(engine, 9), [(10, 3), (30, 1)]);
        assert_eq!(due(engine, 1), [(10, 3)]);
    });
}

#[test]
fn bounds_are_checked_before_anything_is_written() {
    for_each_engine(|engine, _| {
        let mut batch = whole(1, key(0, 1), 1, b"small");
        batch.replace(head(key(0, 2), 1)).section(1, &vec![0; MAX_DOCUMENT]);
        assert!(matches!(engine.append(&batch), Err(EngineError::TooLarge { .. })));
        let mut batch = Batch::new(OwnerVersion(1));
        for number in 0..=MAX_BATCH as u32 {
            batch.delete(key(0, number), Revision(1));
        }
        assert!(matches!(engine.append(&batch), Err(EngineError::TooMany(_))));
        assert!(engine.fence(1024, OwnerVersion(1)).is_err());
        assert!(all(engine).is_empty());
        assert_eq!(engine.statistics().failures, 2);
    });
}

#[test]
fn two_engines_merge_their_sections_of_a_document() {
    for_each_engine(|one, other| {
        let ue = DocumentKey::new(DocumentKind::Ue, 3, 9).unwrap();
        let write =
            |engine: &mut dyn Engine, expected: u64, change: Change, own: (SectionId, Option<&[u8]>)| {
                let mut batch = Batch::new(OwnerVersion(0));
                batch.begin(head(ue, expected + 1), change);
                batch.own_from_here();
                match own.1 {
                    Some(octets) => batch.continued().section(own.0, octets),
                    None => batch.continued().remove(own.0),
                };
                batch.expect(Revision(expected));
                assert!(merging::append(engine, &batch).unwrap().conflicts.is_empty());
            };
        let wide = 1 << 46;
        write(one, 0, Change::Replace, (1, Some(b"one")));
        write(other, 0, Change::Replace, (wide, Some(b"other")));
        write(one, 1, Change::Update, (1, Some(b"ONE")));
        let found = one.read(ue).unwrap().unwrap();
        assert_eq!(content(&found), [(1, b"ONE".to_vec()), (wide, b"other".to_vec())].into());
        // A deletion that expects too much.
        write(other, 1, Change::Delete, (wide, None));
        assert_eq!(content(&one.read(ue).unwrap().unwrap()), [(1, b"ONE".to_vec())].into());
        write(one, 1, Change::Replace, (1, None));
        assert_eq!(other.read(ue), Ok(None));
    });
}
