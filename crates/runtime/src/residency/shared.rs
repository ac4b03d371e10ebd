//! One document for all NFs of a UE (residency `shared`): its key follows from the SUPI, and its sections name NF and context.
//!
//! ```text
//!  key      HMAC(secret, SUPI) -> block 10 | number 32      the same in each process of the installation
//!           HMAC(secret, NF and id of the context)          without a SUPI: one document for each context
//!  section  kind 4 | block 10 | number 32 | section 4       so that no two contexts have a section in common;
//!                                                          bit 60: the section's number is 16 more
//! ```
//!
//! The store has a *copy* of a document from the first read of a transaction until all contexts in it are dropped. What a shard
//! wrote is in its copy, so that contexts of one transaction are read once and written with one change. Each write is conditional
//! on the copy's revision, and merged otherwise ([`super::merging`]). Two SUPIs with the same key share a document, and nothing else.

use super::contexts::{KINDS, LAYOUT, WriteForm};
use super::document::Change;
use super::embedding::Embedding;
use super::{BLOCKS, DocumentSecret};
use super::{Batch, Document as StoredDocument, DocumentKey, DocumentKind, Head, Revision, SectionId};
use foldhash::fast::FixedState;
use pith_nf::kit::document::{Document, SECTION_IDS};
use pith_nf::kit::{ProcedureName, StoredKey};
use pith_types::{BlockId, ContextId, Supi};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use zeroize::Zeroizing;

/// Sections of a context in its first range.
const SECTIONS: SectionId = 16;
/// The second range, and how many sections it has.
const FURTHER: SectionId = 1 << 60;
const FURTHER_SECTIONS: SectionId = SECTION_IDS as SectionId - SECTIONS;
/// The purpose of the HMAC.
const PURPOSE: &str = "ue document";

type Octets = Zeroizing<Vec<u8>>;

/// The documents that have contexts of a shard.
pub(super) struct SharedDocuments {
    secret: DocumentSecret,
    form: WriteForm,
    /// The document of each stored context. The ids are random and of this shard, so a fast hash is safe.
    pub(super) places: HashMap<StoredKey, DocumentKey, FixedState>,
    pub(super) documents: HashMap<DocumentKey, UeDocument, FixedState>,
    /// Contexts whose end is written, and may not be durable yet.
    pub(super) deleted: HashSet<StoredKey>,
    /// Present with `embedded`: documents travel in requests.
    pub(super) embedding: Option<Embedding>,
}

/// A document, as far as this shard knows it.
#[derive(Default)]
pub(super) struct UeDocument {
    /// Contexts of this shard in it.
    pub contexts: Vec<StoredKey>,
    pub copy: Option<Copy>,
    /// Contexts that are needed as soon as the document is read.
    awaited: Vec<StoredKey>,
}

/// What the store has.
pub(super) struct Copy {
    pub revision: Revision,
    /// `false`: only what this shard wrote. The document may have more.
    pub is_whole: bool,
    pub sections: BTreeMap<SectionId, Octets>,
    /// Sections that this shard removed, unless the copy is whole.
    removed: BTreeSet<SectionId>,
}

/// What a turn changes in a document; without octets, the section is removed.
#[derive(Default)]
pub(super) struct OwnSections {
    /// The contexts.
    pub contexts: Vec<StoredKey>,
    /// The procedure for which the change counts.
    pub procedure: ProcedureName,
    sections: BTreeMap<SectionId, Option<Octets>>,
}

/// What becomes of a load.
pub(super) enum SharedLoad {
    /// The copy has the context; `None`: the document does not have it.
    Ready(Option<Document>),
    /// The document must be read.
    Read(DocumentKey),
    /// It is being read.
    Wait,
}

/// The sections of a context begin here. `None` if contexts of that NF are not stored.
pub(super) fn first_section(key: StoredKey) -> Option<SectionId> {
    let kind = KINDS.iter().find(|(_, nf)| *nf == key.nf)?.0 as u8;
    let id = SectionId::from(key.id.block.number()) << 36 | SectionId::from(key.id.number) << 4;
    Some(SectionId::from(kind) << 46 | id)
}

/// The ranges of the sections of a context.
fn ranges(first: SectionId) -> [Range<SectionId>; 2] {
    [first..first + SECTIONS, (first | FURTHER)..(first | FURTHER) + FURTHER_SECTIONS]
}

/// The section of that number of a context whose sections begin there.
pub(super) fn section(first: SectionId, number: u8) -> SectionId {
    let number = SectionId::from(number);
    debug_assert!(number < SECTIONS + FURTHER_SECTIONS, "a context has a section {number}");
    if number < SECTIONS { first + number } else { FURTHER | (first + (number - SECTIONS)) }
}

/// Where the sections of the context of that one begin.
pub(super) fn first_of(section: SectionId) -> SectionId {
    section & !(FURTHER | (SECTIONS - 1))
}

/// The context that a section belongs to.
fn context_of(section: SectionId) -> Option<StoredKey> {
    let section = section & !FURTHER;
    let kind = DocumentKind::from_code(u8::try_from(section >> 46).ok()?)?;
    let nf = KINDS.iter().find(|(of, _)| *of == kind)?.1;
    let block = BlockId::new((section >> 36) as u16 & (BLOCKS as u16 - 1))?;
    Some(StoredKey { nf, id: ContextId { block, number: (section >> 4) as u32 } })
}

/// The contexts in a document, each once, with their documents.
pub(super) fn contexts_in(document: &StoredDocument) -> Vec<(StoredKey, Document)> {
    let mut sections: BTreeMap<StoredKey, Vec<&[u8]>> = BTreeMap::new();
    for (id, octets) in document.sections() {
        if let Some(key) = context_of(id) {
            sections.entry(key).or_default().push(octets);
        }
    }
    sections.into_iter().map(|(key, octets)| (key, Document::of_sections(key.nf, octets))).collect()
}

impl SharedDocuments {
    pub fn new(secret: DocumentSecret, form: WriteForm) -> Self {
        Self {
            secret,
            form,
            places: HashMap::default(),
            documents: HashMap::default(),
            deleted: HashSet::new(),
            embedding: None,
        }
    }

    /// Documents travel in requests, too.
    pub fn embedding(mut self, secret: DocumentSecret) -> Self {
        self.embedding = Some(Embedding::new(secret));
        self
    }

    /// The document of a UE.
    pub(super) fn key_of(&self, ue: &Supi) -> Option<DocumentKey> {
        let name = self.secret.number(&[PURPOSE, " ", ue.as_str()].concat());
        DocumentKey::new(DocumentKind::Ue, (name >> 32) as u16 & (BLOCKS as u16 - 1), name as u32)
    }

    /// The document of a context of a UE without a SUPI (registered for emergency services): another NF of the UE need not know its PEI.
    fn key_without_supi(&self, key: StoredKey) -> Option<DocumentKey> {
        let name = self.secret.number(&format!("{PURPOSE} of {:x}", first_section(key)?));
        DocumentKey::new(DocumentKind::Ue, (name >> 32) as u16 & (BLOCKS as u16 - 1), name as u32)
    }

    /// Records that a context of this shard is in a document.
    pub fn note(&mut self, key: StoredKey, place: DocumentKey) {
        if self.places.insert(key, place).is_none() {
            self.documents.entry(place).or_default().contexts.push(key);
        }
    }

    /// As `note`, with the content.
    pub fn note_read(&mut self, key: StoredKey, place: DocumentKey, packed: &Document) {
        self.note(key, place);
        self.embedding.iter_mut().for_each(|embedding| embedding.note(key, packed));
    }

    /// The contexts of this shard in a document.
    pub fn contexts_of(&self, place: DocumentKey) -> Vec<StoredKey> {
        self.documents.get(&place).map(|document| document.contexts.clone()).unwrap_or_default()
    }

    /// All documents with contexts of this shard.
    pub fn all(&self) -> Vec<DocumentKey> {
        self.documents.keys().copied().collect()
    }

    /// A context has that document; `None`: it has ended. Adds the change to those of the turn.
    pub fn change(
        &mut self,
        turn: &mut BTreeMap<DocumentKey, OwnSections>,
        (key, procedure): (StoredKey, ProcedureName),
        new: Option<(Option<&Supi>, &Document)>,
    ) {
        let known = self.places.get(&key).copied();
        let named = |ue: Option<&Supi>| ue.map_or_else(|| self.key_without_supi(key), |ue| self.key_of(ue));
        let Some(place) = known.or_else(|| named(new?.0)) else { return };
        let Some(first) = first_section(key) else { return };
        self.note(key, place);
        let own = turn.entry(place).or_default();
        own.contexts.push(key);
        own.procedure = own.procedure.min(procedure);
        own.sections.extend(ranges(first).into_iter().flatten().map(|id| (id, None)));
        match new {
            Some((_, document)) => {
                self.deleted.remove(&key);
                self.embedding.iter_mut().for_each(|embedding| embedding.note(key, document));
                for (id, octets) in document.sections() {
                    own.sections.insert(section(first, id), Some(Zeroizing::new(octets.to_vec())));
                }
            }
            None => {
                self.deleted.insert(key);
            }
        }
    }

    /// Adds the change of a document to a batch, with a revision of at least `next`; returns whether anything differs from what the
    /// store has. The change counts as written.
    pub fn write(&mut self, batch: &mut Batch, place: DocumentKey, own: OwnSections, next: Revision) -> bool {
        let document = self.documents.entry(place).or_default();
        let has_copy = document.copy.is_some();
        let copy = document.copy.get_or_insert_with(|| Copy {
            revision: Revision(0),
            is_whole: false,
            sections: BTreeMap::new(),
            removed: BTreeSet::new(),
        });
        let changed: Vec<(SectionId, Option<Octets>)> =
            own.sections.into_iter().filter(|(id, octets)| copy.differs(*id, octets.as_ref())).collect();
        if changed.is_empty() {
            return false;
        }
        let expected = copy.revision;
        let revision = Revision(next.0.max(expected.0 + 1));
        for (id, _) in &changed {
            copy.sections.remove(id);
        }
        let head = Head { key: place, revision, layout: LAYOUT, deadline: None };
        let is_empty = copy.sections.is_empty() && changed.iter().all(|(_, octets)| octets.is_none());
        let change = match self.form {
            _ if is_empty => Change::Delete,
            WriteForm::Update if has_copy => Change::Update,
            _ => Change::Replace,
        };
        let mut writer = batch.begin(head, change);
        if change == Change::Replace {
            for (id, octets) in &copy.sections {
                writer.section(*id, octets);
            }
        }
        batch.own_from_here();
        let mut writer = batch.continued();
        for (id, octets) in changed {
            match octets {
                Some(octets) => {
                    copy.removed.remove(&id);
                    writer.section(id, &octets);
                    copy.sections.insert(id, octets);
                }
                None => {
                    if !copy.is_whole {
                        copy.removed.insert(id);
                    }
                    writer.remove(id);
                }
            }
        }
        batch.expect(expected);
        copy.revision = revision;
        if is_empty {
            document.copy = None;
        }
        true
    }

    /// The store may have another revision than the copy.
    pub fn forget_copy(&mut self, place: DocumentKey) {
        if let Some(document) = self.documents.get_mut(&place) {
            document.copy = None;
        }
    }

    /// The store may have lost documents.
    pub fn forget_copies(&mut self) {
        self.documents.values_mut().for_each(|document| document.copy = None);
    }

    /// Another run of the shard begins: reads of the former one have no result.
    pub fn begin_run(&mut self) {
        for document in self.documents.values_mut() {
            document.copy = None;
            document.awaited.clear();
        }
    }

    /// The shard no longer has contexts.
    pub fn forget_contexts(&mut self) {
        self.places.clear();
        self.documents.clear();
        self.deleted.clear();
        self.embedding.iter_mut().for_each(Embedding::forget_all);
    }

    /// The end of that context is not written.
    pub fn note_failed(&mut self, key: StoredKey) {
        self.deleted.remove(&key);
    }

    /// Begins to load a context.
    pub fn load(&mut self, key: StoredKey) -> SharedLoad {
        let place = self.places.get(&key).copied();
        let Some((place, document)) = place.and_then(|place| Some((place, self.documents.get_mut(&place)?)))
        else {
            return SharedLoad::Ready(None);
        };
        if let Some(copy) = &document.copy {
            let found = copy.context(key);
            if found.is_some() || copy.is_whole {
                return SharedLoad::Ready(found);
            }
        }
        document.awaited.push(key);
        if document.awaited.len() > 1 { SharedLoad::Wait } else { SharedLoad::Read(place) }
    }

    /// A document was read, or is lost. Returns the contexts that were waiting for it; `None`: the document does not have it.
    pub fn loaded(
        &mut self,
        place: DocumentKey,
        read: Option<&StoredDocument>,
    ) -> Vec<(StoredKey, Option<Document>)> {
        let Some(document) = self.documents.get_mut(&place) else { return Vec::new() };
        if let Some(read) = read.filter(|_| document.copy.as_ref().is_none_or(|copy| !copy.is_whole)) {
            let octets = |(id, octets): (_, &[u8])| (id, Zeroizing::new(octets.to_vec()));
            document.complete(read.revision, read.sections().map(octets).collect());
        }
        let copy = document.copy.as_ref();
        let awaited = std::mem::take(&mut document.awaited);
        let found: Vec<_> =
            awaited.into_iter().map(|key| (key, copy.and_then(|copy| copy.context(key)))).collect();
        if let Some(embedding) = &mut self.embedding {
            let contexts = found.iter().filter_map(|(key, document)| Some((*key, document.as_ref()?)));
            contexts.for_each(|(key, document)| embedding.note(key, document));
        }
        found
    }

    /// The write of these contexts is durable: deletes the copies of documents of which no context is in the process, and forgets
    /// contexts that have ended. A document that is being read keeps its copy: the read may have begun before what this shard wrote.
    pub fn drop_copies(&mut self, written: &[StoredKey], is_resident: impl Fn(StoredKey) -> bool) {
        for key in written {
            let Some(place) = self.places.get(key).copied() else { continue };
            let has_ended = self.deleted.remove(key);
            if has_ended {
                self.places.remove(key);
                self.embedding.iter_mut().for_each(|embedding| embedding.forget(*key));
            }
            let Some(document) = self.documents.get_mut(&place) else { continue };
            document.contexts.retain(|it| !has_ended || it != key);
            if document.contexts.is_empty() {
                self.documents.remove(&place);
            } else if document.awaited.is_empty() && !document.contexts.iter().any(|it| is_resident(*it)) {
                document.copy = None;
            }
        }
    }

    /// Number of copies.
    #[cfg(test)]
    pub fn copies(&self) -> usize {
        self.documents.values().filter(|document| document.copy.is_some()).count()
    }
}

impl UeDocument {
    /// The document was read, or a request brought it.
    pub fn complete(&mut self, revision: Revision, mut sections: BTreeMap<SectionId, Octets>) {
        if let Some(former) = self.copy.take() {
            // What this shard wrote meanwhile is newer.
            for id in former.removed {
                sections.remove(&id);
            }
            sections.extend(former.sections);
        }
        self.copy = Some(Copy::whole(revision, sections));
    }
}

/// The sections of a context.
pub(super) fn sections_of(
    sections: &BTreeMap<SectionId, Octets>,
    key: StoredKey,
) -> impl Iterator<Item = (SectionId, &Octets)> {
    let first = first_section(key);
    first
        .into_iter()
        .flat_map(ranges)
        .flat_map(|range| sections.range(range))
        .map(|(id, octets)| (*id, octets))
}

impl Copy {
    /// The document with that revision.
    pub const fn whole(revision: Revision, sections: BTreeMap<SectionId, Octets>) -> Self {
        Self { revision, is_whole: true, sections, removed: BTreeSet::new() }
    }

    /// Whether a section differs from what the store has, as far as that is known.
    fn differs(&self, id: SectionId, octets: Option<&Octets>) -> bool {
        match (self.sections.get(&id), octets) {
            (None, None) => !self.is_whole && !self.removed.contains(&id),
            (found, octets) => found != octets,
        }
    }

    /// The document of a context.
    pub fn context(&self, key: StoredKey) -> Option<Document> {
        let mut sections = sections_of(&self.sections, key).map(|(_, octets)| octets.as_slice()).peekable();
        sections.peek()?;
        Some(Document::of_sections(key.nf, sections))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Engine, MemoryStore, OwnerVersion, merging};
    use super::*;
    use pith_nf::kit::Nf;
    use pith_nf::kit::document::{Section, Writer};

    const VALUE: Section = Section { id: 1, name: "value", version: 1 };

    fn packed(nf: Nf, value: u64) -> Document {
        let mut writer = Writer::new(nf, &());
        writer.section(&VALUE, |writer| writer.number(value));
        writer.finish().unwrap()
    }

    /// Writes that value of a context.
    fn write(
        documents: &mut SharedDocuments,
        store: &MemoryStore,
        key: StoredKey,
        value: u64,
    ) -> DocumentKey {
        let ue = Supi::from_imsi("999700000000001").unwrap();
        let mut turn = BTreeMap::new();
        let context = packed(key.nf, value);
        documents.change(&mut turn, (key, ProcedureName::Other), Some((Some(&ue), &context)));
        let (place, own) = turn.pop_first().unwrap();
        let mut batch = Batch::new(OwnerVersion(0));
        assert!(documents.write(&mut batch, place, own, Revision(value)));
        merging::append(&mut store.engine(), &batch).unwrap();
        place
    }

    /// The SMF's session leaves the process while the document is read for the AMF.
    #[test]
    fn a_read_that_began_before_a_write_does_not_bring_the_former_content_back() {
        let store = MemoryStore::default();
        let mut documents = SharedDocuments::new(DocumentSecret::of_number(1), WriteForm::Update);
        let [amf, smf] = [Nf::Amf, Nf::Smf].map(|nf| StoredKey { nf, id: ContextId::from_u64(7).unwrap() });
        write(&mut documents, &store, amf, 1);
        write(&mut documents, &store, smf, 2);
        // The next run of the shard has taken over the session, and does not know the rest of the document.
        documents.begin_run();
        let place = write(&mut documents, &store, smf, 3);
        assert!(matches!(documents.load(amf), SharedLoad::Read(read) if read == place));
        let read = store.engine().read(place).unwrap().unwrap();
        write(&mut documents, &store, smf, 4);
        documents.drop_copies(&[smf], |_| false);
        let loaded = documents.loaded(place, Some(&read));
        assert_eq!(loaded.first().map(|(key, context)| (*key, context.is_some())), Some((amf, true)));
        let SharedLoad::Ready(Some(session)) = documents.load(smf) else { panic!("it is in the copy") };
        assert_eq!(session.octets(), packed(Nf::Smf, 4).octets());
        documents.drop_copies(&[amf], |_| false);
        assert_eq!(documents.copies(), 0);
    }

    #[test]
    fn no_two_contexts_have_a_section_in_common() {
        let ids = [(0, 0), (0, 1), (0, u32::MAX), (1, 0), (1023, u32::MAX)];
        let contexts = ids.into_iter().flat_map(|(block, number)| {
            let id = ContextId { block: BlockId::new(block).unwrap(), number };
            [Nf::Amf, Nf::Smf, Nf::Pcf].map(|nf| StoredKey { nf, id })
        });
        let mut seen = BTreeSet::new();
        for key in contexts {
            let first = first_section(key).unwrap();
            let numbers = 0..(SECTIONS + FURTHER_SECTIONS) as u8;
            let of_key: Vec<_> = numbers.map(|number| section(first, number)).collect();
            assert!(ranges(first).into_iter().flatten().eq(of_key.iter().copied()));
            for id in of_key {
                assert_eq!((context_of(id), first_of(id)), (Some(key), first));
                assert!(seen.insert(id), "{key:?}: {id:#x}");
            }
        }
    }
}
