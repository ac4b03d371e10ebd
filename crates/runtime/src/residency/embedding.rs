//! Documents in SBI requests (residency `embedded`): the first NF of a chain reads the document of a UE, and sends it in the requests
//! that it makes for the UE, so that the NFs in other processes need not read it. What such an NF changes, it writes itself before
//! its messages leave; its answer brings the changed document back, so that the caller's own write needs no further read.
//!
//! ```text
//!  request   block 16 | number 32 | sealed { revision 64 | sections }
//!  answer    block 16 | number 32 | sealed { seal of the request 160 | revision 64 | sections }
//! ```
//!
//! **A former document is refused.** Contexts are changed by their owner only. The store knows a digest of each context as this
//! shard wrote or read it last: a document with another content of one of them is not used, and the document is read. An answer
//! names the seal of its request. What is written is conditional on the revision, as with `shared`.

use super::document::{Sections, is_complete, put_header};
use super::redis::Sealer;
use super::seal::DocumentSecret;
use super::shared::{Copy, SharedDocuments, first_of, first_section, section, sections_of};
use super::{DocumentKey, DocumentKind, Revision, SectionId};
use bytes::Bytes;
use foldhash::fast::RandomState;
use pith_nf::kit::document::Document;
use pith_nf::kit::{Duration, Instant, Nf, StoredKey, Tag};
use pith_sbi::Operation;
use pith_sbi::embedded::{EmbeddedDocument, MAX_EMBEDDED};
use pith_types::Supi;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::BuildHasher;
use zeroize::Zeroizing;

/// What is sealed, in place of the number of a section. No section has these.
const REQUEST: SectionId = SectionId::MAX;
const ANSWER: SectionId = SectionId::MAX - 1;
/// Time after the answer for which a document is kept that has no context of this shard yet: an SMF answers before it has what it
/// stores.
const KEPT: Duration = Duration::from_secs(1);
/// Octets of a document's key.
const KEY: usize = 6;
/// Octets that name a seal: salt and number.
const SEAL: usize = 20;

type Octets = Zeroizing<Vec<u8>>;

/// The documents that travel.
pub(super) struct Embedding {
    sealer: Sealer,
    hasher: RandomState,
    /// The last known content of each context of this shard.
    digests: HashMap<StoredKey, u64>,
    /// Calls with a document, until their replies.
    sent: HashMap<(Nf, Tag), Sent>,
    /// Requests with a document, until their answers.
    received: HashMap<u64, Received>,
    /// Documents without a context of this shard, with the time of the answer.
    unused: VecDeque<(Instant, DocumentKey)>,
}

struct Sent {
    document: DocumentKey,
    revision: Revision,
    seal: [u8; SEAL],
}

struct Received {
    document: DocumentKey,
    revision: Revision,
    seal: [u8; SEAL],
    operation: Operation,
}

/// What becomes of a document that a request brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Adoption {
    /// It is the copy of this transaction.
    Adopted,
    /// It is not used; the document is read.
    Refused(&'static str),
}

impl Embedding {
    pub fn new(secret: DocumentSecret) -> Self {
        Self {
            sealer: Sealer::new(secret),
            hasher: RandomState::default(),
            digests: HashMap::new(),
            sent: HashMap::new(),
            received: HashMap::new(),
            unused: VecDeque::new(),
        }
    }

    fn digest<'a>(&self, sections: impl IntoIterator<Item = (SectionId, &'a [u8])>) -> u64 {
        let each = sections.into_iter().map(|section| self.hasher.hash_one(section));
        each.fold(0, u64::wrapping_add)
    }

    /// A context has this content.
    pub fn note(&mut self, key: StoredKey, document: &Document) {
        let Some(first) = first_section(key) else { return };
        let digest = self.digest(document.sections().map(|(id, octets)| (section(first, id), octets)));
        self.digests.insert(key, digest);
    }

    /// A context has ended.
    pub fn forget(&mut self, key: StoredKey) {
        self.digests.remove(&key);
    }

    /// The shard no longer has contexts.
    pub fn forget_all(&mut self) {
        self.digests.clear();
        self.sent.clear();
        self.received.clear();
        self.unused.clear();
    }

    fn knows(&self, key: StoredKey, sections: &BTreeMap<SectionId, Octets>) -> bool {
        let found = sections_of(sections, key).map(|(id, octets)| (id, octets.as_slice()));
        self.digests.get(&key) == Some(&self.digest(found))
    }

    fn seal(&mut self, document: DocumentKey, what: SectionId, plain: &[u8]) -> Option<EmbeddedDocument> {
        let mut octets = Vec::with_capacity(KEY + SEAL + plain.len() + 16);
        octets.extend(document.block.to_be_bytes());
        octets.extend(document.number.to_be_bytes());
        octets.extend(self.sealer.seal(document, what, plain)?);
        Some(EmbeddedDocument(octets.into()))
    }
}

/// The key of a document and the name of its seal, before anything is decrypted.
fn peek(octets: &[u8]) -> Option<(DocumentKey, [u8; SEAL], &[u8])> {
    let (block, rest) = octets.split_first_chunk()?;
    let (number, sealed) = rest.split_first_chunk()?;
    let key = DocumentKey::new(DocumentKind::Ue, u16::from_be_bytes(*block), u32::from_be_bytes(*number))?;
    Some((key, *sealed.first_chunk()?, sealed))
}

/// Revision and sections.
fn content(octets: &[u8]) -> Option<(Revision, BTreeMap<SectionId, Octets>)> {
    let (revision, wire) = octets.split_first_chunk()?;
    let revision = Revision(u64::from_be_bytes(*revision));
    let is_valid = is_complete(wire) && revision.0 > 0 && revision.0 <= 1 << 62;
    let present = Sections(wire).filter_map(|(id, octets)| Some((id, Zeroizing::new(octets?.to_vec()))));
    is_valid.then(|| (revision, present.collect()))
}

/// The plain form of a copy, after `before`; `None` if it is too long to travel.
fn plain(before: &[u8], copy: &Copy) -> Option<Octets> {
    let room: usize = copy.sections.values().map(|octets| octets.len() + 16).sum();
    // With room for all, so that no copy of keys stays behind.
    let mut plain = Zeroizing::new(Vec::with_capacity(before.len() + 8 + room));
    plain.extend_from_slice(before);
    plain.extend(copy.revision.0.to_be_bytes());
    for (id, octets) in &copy.sections {
        put_header(&mut plain, *id, u32::try_from(octets.len()).ok()?);
        plain.extend_from_slice(octets);
    }
    (plain.len() + KEY + SEAL + 16 <= MAX_EMBEDDED).then_some(plain)
}

impl SharedDocuments {
    /// The document of a context, for a request that is made for it. `None` if the store has not read it in this transaction.
    pub fn embed(
        &mut self,
        call: (Nf, Tag),
        context: StoredKey,
        ue: Option<&Supi>,
    ) -> Option<EmbeddedDocument> {
        // A context that is not stored yet may be one of a UE with a document.
        let document = self.places.get(&context).copied().or_else(|| self.key_of(ue?))?;
        let copy = self.documents.get(&document)?.copy.as_ref().filter(|copy| copy.is_whole)?;
        let (plain, revision) = (plain(&[], copy)?, copy.revision);
        let embedding = self.embedding.as_mut()?;
        let sealed = embedding.seal(document, REQUEST, &plain)?;
        let (_, seal, _) = peek(&sealed.0)?;
        embedding.sent.insert(call, Sent { document, revision, seal });
        Some(sealed)
    }

    /// A request brings a document.
    pub fn adopt(&mut self, exchange: u64, operation: Operation, sealed: &Bytes) -> Adoption {
        let Some(embedding) = &mut self.embedding else { return Adoption::Refused("not configured") };
        let Some((document, seal, octets)) = peek(sealed).filter(|_| sealed.len() <= MAX_EMBEDDED) else {
            return Adoption::Refused("it is no document");
        };
        let mut octets = Zeroizing::new(octets.to_vec());
        let Some(opened) = embedding.sealer.open(document, REQUEST, &mut octets) else {
            return Adoption::Refused("it is sealed with another key, or was modified");
        };
        let Some((revision, sections)) = content(opened) else {
            return Adoption::Refused("it is no document");
        };
        let known = self.documents.get(&document);
        let is_current = |key: &StoredKey| self.deleted.contains(key) || embedding.knows(*key, &sections);
        if !known.is_none_or(|known| known.contexts.iter().all(is_current)) {
            return Adoption::Refused("it is older than what this NF has written");
        }
        let known = self.documents.entry(document).or_default();
        if known.copy.as_ref().is_none_or(|copy| !copy.is_whole) {
            known.complete(revision, sections);
        }
        embedding.received.insert(exchange, Received { document, revision, seal, operation });
        Adoption::Adopted
    }

    /// The contexts of this shard in the document that a request brought, and the document for the answer, if it changed since.
    pub fn answer(
        &mut self,
        now: Instant,
        exchange: u64,
    ) -> (Vec<StoredKey>, Option<(Operation, EmbeddedDocument)>) {
        let received = self.embedding.as_mut().and_then(|embedding| embedding.received.remove(&exchange));
        let (Some(received), Some(embedding)) = (received, &mut self.embedding) else {
            return (Vec::new(), None);
        };
        let Received { document, revision, seal, operation } = received;
        let Some(known) = self.documents.get(&document) else { return (Vec::new(), None) };
        let copy = known.copy.as_ref().filter(|copy| copy.is_whole && copy.revision != revision);
        let answer = copy.and_then(|copy| embedding.seal(document, ANSWER, &plain(&seal, copy)?));
        let contexts = known.contexts.clone();
        if contexts.is_empty() {
            // The request may have begun a context, which is stored later.
            embedding.unused.push_back((now, document));
        }
        (contexts, answer.map(|answer| (operation, answer)))
    }

    /// Deletes the copies of documents of which this shard has no context after all.
    pub fn delete_unused(&mut self, now: Instant) {
        let Some(embedding) = &mut self.embedding else { return };
        let documents = &mut self.documents;
        while let Some((_, document)) =
            embedding.unused.pop_front_if(|(answered, _)| now.since(*answered) >= KEPT)
        {
            if documents.get(&document).is_some_and(|it| it.contexts.is_empty()) {
                documents.remove(&document);
            }
        }
    }

    /// A call has its reply, perhaps with the changed document.
    pub fn take_answer(&mut self, call: (Nf, Tag), sealed: Option<&Bytes>) {
        let Some(embedding) = &mut self.embedding else { return };
        let Some(sent) = embedding.sent.remove(&call) else { return };
        let Some((document, _, octets)) = sealed.and_then(|sealed| peek(sealed)) else { return };
        if document != sent.document || octets.len() > MAX_EMBEDDED {
            return;
        }
        let mut octets = Zeroizing::new(octets.to_vec());
        let opened = embedding.sealer.open(document, ANSWER, &mut octets);
        let answer = opened.and_then(|opened| opened.split_first_chunk());
        let Some((_, octets)) = answer.filter(|(seal, _)| **seal == sent.seal) else { return };
        let Some((revision, mut sections)) = content(octets) else { return };
        let Some(known) = self.documents.get_mut(&document) else { return };
        let Some(copy) = known.copy.as_mut().filter(|copy| copy.revision == sent.revision) else { return };
        // The contexts of this shard are its own.
        let own: BTreeSet<SectionId> = known.contexts.iter().filter_map(|key| first_section(*key)).collect();
        let is_own = |id: SectionId| own.contains(&first_of(id));
        sections.retain(|id, _| !is_own(*id));
        copy.sections.retain(|id, _| is_own(*id));
        copy.sections.append(&mut sections);
        copy.revision = revision;
    }
}

/// The decoder of documents in requests, for fuzzing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddedContent {
    /// The document's revision.
    pub revision: u64,
    /// Its sections, by id.
    pub sections: BTreeMap<SectionId, Vec<u8>>,
}

impl EmbeddedContent {
    /// What an NF adopts of the octets of a request's member; `None` if it refuses them.
    pub fn adopt(octets: &[u8]) -> Option<Self> {
        let mut documents = Self::documents();
        let octets = Bytes::copy_from_slice(octets);
        (documents.adopt(1, Operation::UpdateSmContext, &octets) == Adoption::Adopted).then_some(())?;
        let copy = documents.documents.into_values().next()?.copy?;
        let sections = copy.sections.into_iter().map(|(id, octets)| (id, octets.to_vec()));
        Some(Self { revision: copy.revision.0, sections: sections.collect() })
    }

    /// The octets as the plain content of a member that an instance of the same operator sealed.
    pub fn sealed(plain: &[u8]) -> Option<Vec<u8>> {
        let key = DocumentKey::new(DocumentKind::Ue, 1, 2)?;
        Some(Self::documents().embedding?.seal(key, REQUEST, plain)?.0.to_vec())
    }

    /// The plain content.
    pub fn plain(&self) -> Option<Vec<u8>> {
        let sections = self.sections.iter().map(|(id, octets)| (*id, Zeroizing::new(octets.clone())));
        let copy = Copy::whole(Revision(self.revision), sections.collect());
        plain(&[], &copy).map(|plain| plain.to_vec())
    }

    fn documents() -> SharedDocuments {
        let secret = DocumentSecret::of_number(1);
        SharedDocuments::new(secret.clone(), super::WriteForm::Replace).embedding(secret)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Batch, OwnerVersion, WriteForm};
    use super::*;
    use pith_nf::kit::ProcedureName;
    use pith_nf::kit::document::{Section, Writer};
    use pith_types::ContextId;

    const VALUE: Section = Section { id: 1, name: "value", version: 1 };

    fn key(nf: Nf, number: u64) -> StoredKey {
        StoredKey { nf, id: ContextId::from_u64(number).unwrap() }
    }

    fn packed(nf: Nf, value: u64) -> Document {
        let mut writer = Writer::new(nf, &());
        writer.section(&VALUE, |writer| writer.number(value));
        writer.finish().unwrap()
    }

    fn ue() -> Supi {
        Supi::from_imsi("999700000000001").unwrap()
    }

    /// The documents of an NF's process.
    struct Process {
        nf: Nf,
        documents: SharedDocuments,
        revision: u64,
    }

    impl Process {
        fn new(nf: Nf, secret: u64) -> Self {
            let secret = DocumentSecret::of_number(secret);
            let documents = SharedDocuments::new(secret.clone(), WriteForm::Replace).embedding(secret);
            Self { nf, documents, revision: 0 }
        }

        /// The NF has written its context; what the store had before is known.
        fn write(&mut self, value: u64) {
            let mut turn = BTreeMap::new();
            self.documents.change(
                &mut turn,
                (key(self.nf, 7), ProcedureName::Other),
                Some((Some(&ue()), &packed(self.nf, value))),
            );
            for (place, own) in turn {
                self.revision += 100;
                let mut batch = Batch::new(OwnerVersion(0));
                self.documents.write(&mut batch, place, own, Revision(self.revision));
            }
        }

        fn value(&mut self) -> Option<Document> {
            match self.documents.load(key(self.nf, 7)) {
                super::super::shared::SharedLoad::Ready(found) => found,
                _ => None,
            }
        }

        fn complete(&mut self) {
            self.documents.documents.values_mut().for_each(|it| it.copy.as_mut().unwrap().is_whole = true);
        }

        fn drop_copy(&mut self) {
            self.documents.forget_copies();
        }
    }

    const CALL: (Nf, Tag) = (Nf::Amf, Tag { owner: 1, step: 2, run: 0 });

    /// AMF and SMF have a context each, in one document, which the AMF has read.
    fn chain() -> (Process, Process) {
        let (mut amf, mut smf) = (Process::new(Nf::Amf, 1), Process::new(Nf::Smf, 1));
        smf.write(20);
        amf.write(10);
        amf.complete();
        let smf_sections: Vec<_> = smf
            .documents
            .documents
            .values()
            .next()
            .unwrap()
            .copy
            .iter()
            .flat_map(|copy| copy.sections.clone())
            .collect();
        amf.documents
            .documents
            .values_mut()
            .for_each(|it| it.copy.as_mut().unwrap().sections.extend(smf_sections.clone()));
        smf.drop_copy();
        (amf, smf)
    }

    #[test]
    fn a_document_travels_to_the_next_nf_and_returns_changed() {
        let (mut amf, mut smf) = chain();
        let request = amf.documents.embed(CALL, key(Nf::Amf, 7), None).unwrap();
        assert!(smf.value().is_none());
        assert_eq!(smf.documents.adopt(5, Operation::UpdateSmContext, &request.0), Adoption::Adopted);
        assert_eq!(smf.value(), Some(packed(Nf::Smf, 20)), "without a read");
        smf.write(21);
        let (operation, answer) = smf.documents.answer(Instant::default(), 5).1.unwrap();
        assert_eq!(operation, Operation::UpdateSmContext);
        let before = amf.documents.documents.values().next().unwrap().copy.as_ref().unwrap().revision;
        amf.documents.take_answer(CALL, Some(&answer.0));
        let copy = amf.documents.documents.values().next().unwrap().copy.as_ref().unwrap();
        assert!(copy.revision > before);
        assert_eq!(copy.context(key(Nf::Smf, 7)), Some(packed(Nf::Smf, 21)));
        assert_eq!(copy.context(key(Nf::Amf, 7)), Some(packed(Nf::Amf, 10)));
        // An answer is used once.
        amf.documents.take_answer(CALL, Some(&answer.0));
        assert!(smf.documents.answer(Instant::default(), 5).1.is_none());
    }

    #[test]
    fn an_older_document_is_refused() {
        let (mut amf, mut smf) = chain();
        let old = amf.documents.embed(CALL, key(Nf::Amf, 7), None).unwrap();
        assert_eq!(smf.documents.adopt(5, Operation::UpdateSmContext, &old.0), Adoption::Adopted);
        smf.write(21);
        smf.documents.answer(Instant::default(), 5);
        smf.drop_copy();
        let refused = smf.documents.adopt(6, Operation::UpdateSmContext, &old.0);
        assert_eq!(refused, Adoption::Refused("it is older than what this NF has written"));
        assert!(smf.value().is_none() && smf.documents.answer(Instant::default(), 6).1.is_none());
    }

    #[test]
    fn a_document_that_began_no_context_is_deleted() {
        let (mut amf, _) = chain();
        let request = amf.documents.embed(CALL, key(Nf::Amf, 7), None).unwrap();
        let mut pcf = Process::new(Nf::Pcf, 1);
        for (exchange, begins) in [(1, false), (2, true)] {
            pcf.documents.adopt(exchange, Operation::CreateSmPolicy, &request.0);
            pcf.documents.answer(Instant::default(), exchange);
            if begins {
                pcf.write(30);
            }
            pcf.documents.delete_unused(Instant::default());
            assert_eq!(pcf.documents.documents.len(), 1);
            pcf.documents.delete_unused(Instant::default() + KEPT);
            assert_eq!(pcf.documents.documents.len(), usize::from(begins));
        }
    }

    #[test]
    fn an_answer_to_another_request_is_ignored() {
        let (mut amf, mut smf) = chain();
        let request = amf.documents.embed(CALL, key(Nf::Amf, 7), None).unwrap();
        smf.documents.adopt(5, Operation::UpdateSmContext, &request.0);
        smf.write(21);
        let (_, answer) = smf.documents.answer(Instant::default(), 5).1.unwrap();
        amf.documents.take_answer(CALL, None);
        amf.documents.embed(CALL, key(Nf::Amf, 7), None).unwrap();
        amf.documents.take_answer(CALL, Some(&answer.0));
        let copy = amf.documents.documents.values().next().unwrap().copy.as_ref().unwrap();
        assert_eq!(copy.context(key(Nf::Smf, 7)), Some(packed(Nf::Smf, 20)));
    }

    #[test]
    fn what_is_modified_or_sealed_with_another_key_is_refused() {
        let (mut amf, mut smf) = chain();
        let request = amf.documents.embed(CALL, key(Nf::Amf, 7), None).unwrap();
        let refused = |adoption| matches!(adoption, Adoption::Refused(_));
        for at in 0..request.0.len() {
            let mut changed = request.0.to_vec();
            changed[at] ^= 1;
            assert!(
                refused(smf.documents.adopt(1, Operation::UpdateSmContext, &changed.into())),
                "octet {at}"
            );
        }
        for length in 0..request.0.len() {
            let cut = request.0.slice(..length);
            assert!(refused(smf.documents.adopt(1, Operation::UpdateSmContext, &cut)), "{length} octets");
        }
        let mut other = Process::new(Nf::Smf, 2);
        assert!(refused(other.documents.adopt(1, Operation::UpdateSmContext, &request.0)));
        assert!(other.documents.documents.is_empty() && smf.value().is_none());
    }
}
