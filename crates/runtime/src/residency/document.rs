//! Documents as engines see them: sections of octets, and batches of changes.
//!
//! ```text
//!  sections   { id 8 | length 32 | octets }*               length 0xffffffff: the section is removed (updates only)
//!             { 0xff | id 64 | length 32 | octets }*       ids from 255 on
//! ```

use super::{DocumentKey, OwnerVersion, Revision, UnixMillis};
use std::ops::Range;
use zeroize::{Zeroize, Zeroizing};

/// Most octets of the sections of a document or an update. A registered UE with a session has 2 kB; 15 sessions with queued N1 and
/// N2 messages of 64 kB each fit.
pub const MAX_DOCUMENT: usize = 2 << 20;
/// Most changes of a batch: a record contains the number of following changes in 16 bits.
pub const MAX_BATCH: usize = 4096;

/// Id of a section within a document. The NF defines its meaning; in a document of all NFs of a UE it also names NF and context.
pub type SectionId = u64;

/// The first octet of an id from that number on, which follows in 64 bits.
const WIDE: u8 = u8::MAX;
/// Length of a removed section.
const REMOVED: u32 = u32::MAX;

/// A change of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The sections are the whole document.
    Replace,
    /// The sections replace or remove those with the same id.
    Update,
    /// The document is deleted.
    Delete,
}

/// Changes of one shard and turn, which an engine writes with one request. `reset` empties it for reuse without a new allocation.
pub struct Batch {
    owner: OwnerVersion,
    entries: Vec<Entry>,
    octets: Vec<u8>,
}

/// One change of a batch.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub key: DocumentKey,
    pub change: Change,
    pub revision: Revision,
    /// The revision that the engine must have; `None`: any.
    pub expected: Option<Revision>,
    pub deadline: Option<UnixMillis>,
    pub layout: u16,
    range: Range<usize>,
    /// For a document that has several writers: where in `range` the writer's own sections begin. Before them are those that the
    /// document had when the writer read it.
    pub own: Option<usize>,
}

/// The fields of a document besides its sections.
#[derive(Debug, Clone, Copy)]
pub struct Head {
    /// The document's key.
    pub key: DocumentKey,
    /// The document's revision after the change; higher than before.
    pub revision: Revision,
    /// Version of the layout of its sections.
    pub layout: u16,
    /// The first of its timers, for `Engine::due`.
    pub deadline: Option<UnixMillis>,
}

impl Batch {
    /// An empty batch of an owner with this version of the owner map.
    pub const fn new(owner: OwnerVersion) -> Self {
        Self { owner, entries: Vec::new(), octets: Vec::new() }
    }

    /// Empties the batch for the next turn.
    pub fn reset(&mut self, owner: OwnerVersion) {
        self.owner = owner;
        self.entries.clear();
        self.octets.clear();
    }

    /// Writes a whole document.
    pub fn replace(&mut self, head: Head) -> SectionWriter<'_> {
        self.begin(head, Change::Replace)
    }

    /// Writes changed sections of a document that the engine has.
    pub fn update(&mut self, head: Head) -> SectionWriter<'_> {
        self.begin(head, Change::Update)
    }

    /// Deletes a document. Deleting an absent one succeeds.
    pub fn delete(&mut self, key: DocumentKey, revision: Revision) {
        self.begin(Head { key, revision, layout: 0, deadline: None }, Change::Delete);
    }

    /// Makes the last change conditional: on this revision of the document in the engine (compare and set).
    pub fn expect(&mut self, revision: Revision) {
        if let Some(entry) = self.entries.last_mut() {
            entry.expected = Some(revision);
        }
    }

    /// Marks the last change as one of a document that has several writers: if the engine has another revision than the expected one,
    /// the sections that are added from now on are merged into what it has ([`super::merging`]).
    pub fn own_from_here(&mut self) {
        let at = self.octets.len();
        if let Some(entry) = self.entries.last_mut() {
            entry.own = Some(at - entry.range.start);
        }
    }

    /// A copy, for another thread.
    pub fn copy(&self) -> Self {
        Self { owner: self.owner, entries: self.entries.clone(), octets: self.octets.clone() }
    }

    /// The document of each change, in order.
    pub fn keys(&self) -> impl Iterator<Item = DocumentKey> {
        self.entries.iter().map(|entry| entry.key)
    }

    /// Octets of memory that the batch needs.
    pub(super) fn weight(&self) -> usize {
        self.octets.len() + self.entries.len() * size_of::<Entry>()
    }

    /// Adds the changes of a later batch of the same owner, if the result is within the bounds of a batch.
    pub(super) fn absorb(&mut self, later: &Self, most_octets: usize) -> bool {
        if later.owner != self.owner
            || self.len() + later.len() > MAX_BATCH
            || self.octets.len() + later.octets.len() > most_octets
        {
            return false;
        }
        let by = self.octets.len();
        if self.octets.capacity() < by + later.octets.len() {
            // A buffer that is too small is overwritten before it is freed.
            let mut larger = Vec::with_capacity(2 * (by + later.octets.len()));
            larger.extend_from_slice(&self.octets);
            self.octets.zeroize();
            self.octets = larger;
        }
        self.octets.extend_from_slice(&later.octets);
        self.entries.extend(later.entries.iter().map(|entry| {
            let range = entry.range.start + by..entry.range.end + by;
            Entry { range, ..entry.clone() }
        }));
        true
    }

    /// Number of changes.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Octets of all sections.
    pub fn octets(&self) -> usize {
        self.octets.len()
    }

    /// The version of the owner map of its writer.
    pub const fn owner(&self) -> OwnerVersion {
        self.owner
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Adds sections to the last change.
    pub(super) const fn continued(&mut self) -> SectionWriter<'_> {
        SectionWriter { batch: self }
    }

    /// The sections of a change that are its writer's own, in their wire form.
    pub(super) fn own_sections(&self, entry: &Entry) -> &[u8] {
        self.sections(entry).get(entry.own.unwrap_or(0)..).unwrap_or_default()
    }

    /// Adds sections in their wire form to the last change.
    pub(super) fn add_wire(&mut self, sections: &[u8]) {
        self.octets.extend_from_slice(sections);
        if let Some(entry) = self.entries.last_mut() {
            entry.range.end = self.octets.len();
        }
    }

    /// The sections of a change, in their wire form.
    pub(super) fn sections(&self, entry: &Entry) -> &[u8] {
        self.octets.get(entry.range.clone()).unwrap_or_default()
    }

    pub(super) fn begin(&mut self, head: Head, change: Change) -> SectionWriter<'_> {
        let at = self.octets.len();
        let Head { key, revision, layout, deadline } = head;
        self.entries.push(Entry {
            key,
            change,
            revision,
            expected: None,
            deadline,
            layout,
            range: at..at,
            own: None,
        });
        SectionWriter { batch: self }
    }
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Sections contain keys and identities.
        write!(f, "Batch({} changes, {} octets)", self.entries.len(), self.octets.len())
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.octets.zeroize();
    }
}

/// Adds sections to the last change of a batch.
#[derive(Debug)]
pub struct SectionWriter<'a> {
    batch: &'a mut Batch,
}

impl SectionWriter<'_> {
    /// Adds a section. Of two with one id the last one counts.
    pub fn section(&mut self, id: SectionId, octets: &[u8]) -> &mut Self {
        // A longer section exceeds MAX_DOCUMENT, which the engine refuses.
        let length = u32::try_from(octets.len()).unwrap_or(REMOVED - 1);
        self.put(id, length, octets)
    }

    /// Removes a section (of an update).
    pub fn remove(&mut self, id: SectionId) -> &mut Self {
        self.put(id, REMOVED, &[])
    }

    fn put(&mut self, id: SectionId, length: u32, octets: &[u8]) -> &mut Self {
        let to = &mut self.batch.octets;
        put_header(to, id, length);
        to.extend(octets);
        if let Some(entry) = self.batch.entries.last_mut() {
            entry.range.end = to.len();
        }
        self
    }
}

/// A stored document.
#[derive(Clone, PartialEq, Eq)]
pub struct Document {
    /// Its key.
    pub key: DocumentKey,
    /// Its revision.
    pub revision: Revision,
    /// Version of the owner map of its last writer.
    pub owner: OwnerVersion,
    /// Version of the layout of its sections.
    pub layout: u16,
    /// The first of its timers.
    pub deadline: Option<UnixMillis>,
    /// Later writes may be lost (power failure, lost octets of the log, another Redis): security sections are not to be used.
    pub is_stale: bool,
    sections: Zeroizing<Vec<u8>>,
}

impl Document {
    pub(super) fn new(head: Head, owner: OwnerVersion, is_stale: bool, sections: Zeroizing<Vec<u8>>) -> Self {
        let Head { key, revision, layout, deadline } = head;
        Self { key, revision, owner, layout, deadline, is_stale, sections }
    }

    /// The section with that id.
    pub fn section(&self, id: SectionId) -> Option<&[u8]> {
        self.sections().find(|(found, _)| *found == id).map(|(_, octets)| octets)
    }

    /// All sections, by id.
    pub fn sections(&self) -> impl Iterator<Item = (SectionId, &[u8])> {
        Sections(&self.sections).filter_map(|(id, octets)| Some((id, octets?)))
    }

    /// Octets of all sections with their headers.
    pub fn octets(&self) -> usize {
        self.sections.len()
    }

    /// The sections in wire form.
    pub(super) fn wire(&self) -> &[u8] {
        &self.sections
    }
}

impl std::fmt::Debug for Document {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Sections contain keys and identities.
        write!(f, "Document({} revision {}, {} octets)", self.key, self.revision.0, self.sections.len())
    }
}

/// The sections in wire form; `None` as octets: removed. Ends at the first invalid header.
#[derive(Clone)]
pub(super) struct Sections<'a>(pub &'a [u8]);

impl<'a> Iterator for Sections<'a> {
    type Item = (SectionId, Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        let (short, rest) = self.0.split_first()?;
        let (id, rest) = match *short {
            WIDE => {
                let (wide, rest) = rest.split_first_chunk()?;
                // One id has one form.
                (Some(u64::from_le_bytes(*wide)).filter(|id| *id >= WIDE.into())?, rest)
            }
            id => (id.into(), rest),
        };
        let (length, rest) = rest.split_first_chunk()?;
        let length = u32::from_le_bytes(*length);
        if length == REMOVED {
            self.0 = rest;
            return Some((id, None));
        }
        let (octets, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some((id, Some(octets)))
    }
}

/// Whether octets are a complete sequence of sections.
pub(super) fn is_complete(octets: &[u8]) -> bool {
    let mut sections = Sections(octets);
    while sections.next().is_some() {}
    sections.0.is_empty()
}

/// The document that results from a whole one and updates, in order: each section once, by id.
pub(super) fn merge<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Zeroizing<Vec<u8>> {
    let mut sections: Vec<(SectionId, Option<&[u8]>)> = parts.into_iter().flat_map(Sections).collect();
    // Stable: of two sections with one id the last one counts.
    sections.sort_by_key(|(id, _)| *id);
    let is_last = |at: usize, id: SectionId| sections.get(at + 1).is_none_or(|(next, _)| *next != id);
    let newest = sections.iter().enumerate().filter(|(at, (id, _))| is_last(*at, *id));
    let present: Vec<(SectionId, &[u8])> =
        newest.filter_map(|(_, (id, octets))| Some((*id, (*octets)?))).collect();
    let room = present.iter().map(|(id, octets)| header_of(*id) + octets.len()).sum();
    let mut merged = Zeroizing::new(Vec::with_capacity(room));
    for (id, octets) in present {
        put_header(&mut merged, id, u32::try_from(octets.len()).unwrap_or(0));
        merged.extend(octets);
    }
    merged
}

/// Octets in front of a section.
fn header_of(id: SectionId) -> usize {
    if id < WIDE.into() { 1 + 4 } else { 1 + 8 + 4 }
}

/// Adds what is in front of a section.
pub(super) fn put_header(to: &mut Vec<u8>, id: SectionId, length: u32) {
    match u8::try_from(id) {
        Ok(short) if short != WIDE => to.push(short),
        _ => {
            to.push(WIDE);
            to.extend(id.to_le_bytes());
        }
    }
    to.extend(length.to_le_bytes());
}
