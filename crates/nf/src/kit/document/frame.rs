//! The frame of a document: header and sections, and the errors of both directions.

use super::{Names, Pack};
use crate::kit::Nf;
use pith_types::{BlockId, ContextId};
use std::cell::Cell;
use std::fmt;
use zeroize::Zeroize;

/// The first octets of a document.
const MAGIC: [u8; 2] = *b"PD";

/// The version of the frame.
const FORMAT: u8 = 1;

/// Octets before the first section: magic, format, NF.
const HEADER: usize = 4;

/// Octets before a section's body: id, version, length.
const SECTION_HEADER: usize = 6;

/// Octets that a new document has room for: those of a registered UE with a session and its messages, so that writing seldom
/// moves keys to another place in memory.
const ROOM: usize = 1024;

/// Capacity up to which a thread keeps a document's buffer for its next document.
const KEPT_ROOM: usize = 4 * ROOM;

/// The ids of a context's sections are smaller than this: a document that NFs share gives each context a range of 32 ids.
pub const SECTION_IDS: u8 = 32;

/// Versions before the current one that are read.
const VERSIONS_BEFORE: u8 = 2;

/// A kind of section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// Its number in the document.
    pub id: u8,
    /// Its name in errors.
    pub name: &'static str,
    /// The version that this program writes. Versions begin at 1.
    pub version: u8,
}

impl Section {
    /// The oldest version that this program reads.
    pub const fn oldest(&self) -> u8 {
        if self.version > VERSIONS_BEFORE { self.version - VERSIONS_BEFORE } else { 1 }
    }
}

thread_local! {
    /// The buffer of the thread's last document, for its next one: to allocate, overwrite and free one for each document costs as
    /// much as to pack it.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The octets of a document. They contain keys. A thread that packs contexts has these contexts in memory, so one buffer a thread
/// stays as it is; all others are overwritten before they are freed.
#[derive(Clone, PartialEq, Eq)]
struct Buffer(Vec<u8>);

impl Buffer {
    /// An empty buffer with the capacity of a usual document.
    fn take() -> Self {
        let mut octets = SPARE.take();
        octets.clear();
        octets.reserve(ROOM);
        Self(octets)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if (ROOM..=KEPT_ROOM).contains(&self.0.capacity()) {
            // The buffer that was spare is overwritten in its place.
            let _ = SPARE.try_with(|spare| self.0 = spare.replace(std::mem::take(&mut self.0)));
        }
        self.0.zeroize();
    }
}

/// A packed context, or some of its sections. It contains keys.
#[derive(Clone, PartialEq, Eq)]
pub struct Document(Buffer);

impl Document {
    /// Its octets, in cleartext.
    pub fn octets(&self) -> &[u8] {
        &self.0.0
    }

    /// A copy without spare memory, to be kept.
    pub fn compact(&self) -> Self {
        Self(Buffer(self.octets().to_vec()))
    }

    /// Its sections, each with its id and with its octets including id, version and length: what a store keeps apart.
    pub fn sections(&self) -> impl Iterator<Item = (u8, &[u8])> {
        let mut rest = self.octets().get(HEADER..).unwrap_or_default();
        std::iter::from_fn(move || {
            let [id, _, length @ ..] = *rest.first_chunk::<SECTION_HEADER>()?;
            let (section, others) =
                rest.split_at_checked(SECTION_HEADER + u32::from_be_bytes(length) as usize)?;
            rest = others;
            Some((id, section))
        })
    }

    /// What an update of a stored document writes: the sections that are new or differ, and without octets those that are gone.
    pub fn changes_since<'a>(&'a self, former: &'a Self) -> impl Iterator<Item = (u8, Option<&'a [u8]>)> {
        let has = |document: &'a Self, wanted: u8| document.sections().any(|(id, _)| id == wanted);
        let new = self.sections().filter(|section| former.sections().all(|old| old != *section));
        let gone = former.sections().filter(move |(id, _)| !has(self, *id));
        new.map(|(id, section)| (id, Some(section))).chain(gone.map(|(id, _)| (id, None)))
    }

    /// A document of an NF from its stored sections.
    pub fn of_sections<'a>(nf: Nf, sections: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut writer = Writer::new(nf, &());
        sections.into_iter().for_each(|section| writer.put(section));
        Self(writer.octets)
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Document({} octets)", self.octets().len())
    }
}

/// Why a context cannot be packed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    /// A session is at a UPF whose association has ended.
    #[error(
        "a UPF of the session has no association any more: the session is ended shortly, and needs no document"
    )]
    UpfIsGone,
    /// A value is longer than a document permits.
    #[error("the {0} section has more than 4 GB")]
    TooLong(&'static str),
    /// A body cannot be written as JSON.
    #[error("the body of an SBI message has no JSON: this is a bug in Pith")]
    NoJson,
}

/// Why octets cannot be unpacked. The context counts as unknown; all others are served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnpackError {
    /// Another program's octets.
    #[error(
        "these octets are not a document of Pith: another program wrote them, or they are damaged; delete them"
    )]
    NoDocument,
    /// The id of the context is not this shard's.
    #[error("block {0} of ids belongs to another shard: only its owner restores the document")]
    OtherOwner(BlockId),
    /// Another context has the id.
    #[error("another context has the id {0}: delete the document")]
    IdInUse(ContextId),
    /// The NF's table is full.
    #[error("the NF has no room for another context: start with more 'workers'")]
    NoRoom,
    /// A frame that this program does not know.
    #[error(
        "the document has format {0}, and this program reads format {FORMAT}: a newer version of Pith wrote it; start that version, or \
         delete the document"
    )]
    Format(u8),
    /// The document of another NF.
    #[error("the document belongs to NF type {found}, not to the {expected}: delete it")]
    OtherNf {
        /// Number of the NF type in the document.
        found: u8,
        /// The NF that reads.
        expected: Nf,
    },
    /// A section that this program does not know.
    #[error(
        "the document has a section {0}, which this program does not know: a newer version of Pith wrote it; start that version, or delete the document"
    )]
    UnknownSection(u8),
    /// A version of a section that this program does not read.
    #[error(
        "the {section} section has version {found}, and this program reads {oldest} to {newest}: start a version of Pith that reads it, or \
         delete the document"
    )]
    SectionVersion {
        /// Name of the section.
        section: &'static str,
        /// Its version.
        found: u8,
        /// The oldest version that this program reads.
        oldest: u8,
        /// The newest one.
        newest: u8,
    },
    /// A section is missing or occurs twice.
    #[error("the document has no {0} section, or two of them: it is damaged; delete it")]
    SectionCount(&'static str),
    /// A value in a section is impossible.
    #[error(
        "octet {offset} of the {section} section is not the {expected} that belongs there: the document is damaged; delete it"
    )]
    Malformed {
        /// Name of the section.
        section: &'static str,
        /// Octets of its body before the value.
        offset: usize,
        /// What should be there.
        expected: &'static str,
    },
    /// A UPF of the session has no association with this process yet.
    #[error("the session is at UPF '{0}', which has no association: load the document again once it has one")]
    UpfIsMissing(String),
}

/// Writes a document.
pub struct Writer<'a> {
    octets: Buffer,
    names: &'a dyn Names,
    error: Option<PackError>,
}

impl<'a> Writer<'a> {
    /// A document of an NF, without sections.
    pub fn new(nf: Nf, names: &'a dyn Names) -> Self {
        let mut octets = Buffer::take();
        octets.0.extend(MAGIC);
        octets.0.extend([FORMAT, number(nf)]);
        Self { octets, names, error: None }
    }

    /// Adds a section with the body that `write` writes.
    pub fn section(&mut self, section: &Section, write: impl FnOnce(&mut Self)) {
        self.put(&[section.id, section.version, 0, 0, 0, 0]);
        let start = self.octets.0.len();
        write(self);
        let body = self.octets.0.len() - start;
        let Ok(length) = u32::try_from(body) else {
            return self.fail(PackError::TooLong(section.name));
        };
        if let Some(place) = self.octets.0.get_mut(start - 4..start) {
            place.copy_from_slice(&length.to_be_bytes());
        }
    }

    /// The document.
    pub fn finish(self) -> Result<Document, PackError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(Document(self.octets)),
        }
    }

    /// Adds octets as they are. A buffer that is too small is overwritten before it is freed.
    #[inline]
    pub fn put(&mut self, octets: &[u8]) {
        if self.octets.0.capacity() - self.octets.0.len() < octets.len() {
            self.grow(octets.len());
        }
        self.octets.0.extend_from_slice(octets);
    }

    /// Makes room for some more octets.
    #[cold]
    fn grow(&mut self, more: usize) {
        let full = &mut self.octets.0;
        let mut larger = Vec::with_capacity((2 * full.capacity()).max(full.len() + more));
        larger.extend_from_slice(full);
        full.zeroize();
        *full = larger;
    }

    /// Adds a number: seven bits an octet, the low ones first.
    #[inline]
    pub fn number(&mut self, number: u64) {
        if number < 0x80 {
            self.put(&[number as u8]);
        } else {
            self.long_number(number);
        }
    }

    fn long_number(&mut self, mut number: u64) {
        let (mut octets, mut used) = ([0; 10], 0);
        for octet in &mut octets {
            used += 1;
            *octet = number as u8 & 0x7f;
            number >>= 7;
            if number == 0 {
                break;
            }
            *octet |= 0x80;
        }
        self.put(&octets[..used]);
    }

    /// Adds the octets that `write` adds, with their number before them.
    pub fn counted_by<E>(&mut self, write: impl FnOnce(&mut Self) -> Result<(), E>) -> Result<(), E> {
        let start = self.octets.0.len();
        write(self)?;
        let end = self.octets.0.len();
        self.number((end - start) as u64);
        let digits = self.octets.0.len() - end;
        if let Some(counted) = self.octets.0.get_mut(start..) {
            counted.rotate_right(digits);
        }
        Ok(())
    }

    /// Adds octets with their number.
    pub fn counted(&mut self, octets: &[u8]) {
        self.number(octets.len() as u64);
        self.put(octets);
    }

    /// The names of handles.
    pub(super) const fn names(&self) -> &'a dyn Names {
        self.names
    }

    /// The document is void.
    pub(super) fn fail(&mut self, error: PackError) {
        self.error.get_or_insert(error);
    }
}

/// For serialisers.
impl std::io::Write for Writer<'_> {
    #[inline]
    fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
        self.put(octets);
        Ok(octets.len())
    }

    #[inline]
    fn write_all(&mut self, octets: &[u8]) -> std::io::Result<()> {
        self.put(octets);
        Ok(())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The sections of a document: the header is checked, bodies are not.
pub struct Sections<'a> {
    /// Version and body, in the order of the kinds.
    found: Vec<Option<(u8, &'a [u8])>>,
    kinds: &'static [Section],
    names: &'a dyn Names,
}

impl<'a> Sections<'a> {
    /// Checks the header, and finds the sections.
    pub fn of(
        octets: &'a [u8],
        nf: Nf,
        kinds: &'static [Section],
        names: &'a dyn Names,
    ) -> Result<Self, UnpackError> {
        let rest = octets.strip_prefix(&MAGIC).ok_or(UnpackError::NoDocument)?;
        let (&format, rest) = rest.split_first().ok_or(UnpackError::NoDocument)?;
        if format != FORMAT {
            return Err(UnpackError::Format(format));
        }
        let (&found, mut rest) = rest.split_first().ok_or(UnpackError::NoDocument)?;
        if found != number(nf) {
            return Err(UnpackError::OtherNf { found, expected: nf });
        }
        let mut sections = Self { found: vec![None; kinds.len()], kinds, names };
        while !rest.is_empty() {
            rest = sections.take(rest)?;
        }
        Ok(sections)
    }

    /// Finds one section; returns what follows it.
    fn take(&mut self, octets: &'a [u8]) -> Result<&'a [u8], UnpackError> {
        let (header, rest) = octets.split_first_chunk::<SECTION_HEADER>().ok_or(UnpackError::NoDocument)?;
        let [id, version, length @ ..] = *header;
        let at = self.kinds.iter().position(|kind| kind.id == id).ok_or(UnpackError::UnknownSection(id))?;
        let kind = &self.kinds[at];
        if version < kind.oldest() || version > kind.version {
            let (oldest, newest) = (kind.oldest(), kind.version);
            return Err(UnpackError::SectionVersion { section: kind.name, found: version, oldest, newest });
        }
        let length = u32::from_be_bytes(length) as usize;
        let (body, rest) = rest.split_at_checked(length).ok_or(UnpackError::SectionCount(kind.name))?;
        match self.found[at].replace((version, body)) {
            None => Ok(rest),
            Some(_) => Err(UnpackError::SectionCount(kind.name)),
        }
    }

    /// Whether the document has that section.
    pub fn has(&self, section: &Section) -> bool {
        self.body(section).is_some()
    }

    fn body(&self, section: &Section) -> Option<(u8, &'a [u8])> {
        let at = self.kinds.iter().position(|kind| kind.id == section.id)?;
        self.found[at]
    }

    /// Reads a section: `read` gets its version and must consume the body.
    pub fn read<T>(
        &self,
        section: &Section,
        read: impl FnOnce(u8, &mut Reader<'a>) -> Result<T, UnpackError>,
    ) -> Result<T, UnpackError> {
        let (version, body) = self.body(section).ok_or(UnpackError::SectionCount(section.name))?;
        let mut reader = Reader { rest: body, length: body.len(), section: section.name, names: self.names };
        let value = read(version, &mut reader)?;
        if reader.rest.is_empty() { Ok(value) } else { Err(reader.malformed("end")) }
    }

    /// Reads a section of the current version.
    pub fn unpack<T: Pack>(&self, section: &Section) -> Result<T, UnpackError> {
        self.read(section, |_, reader| T::unpack(reader))
    }
}

/// Reads the body of a section.
pub struct Reader<'a> {
    rest: &'a [u8],
    length: usize,
    section: &'static str,
    names: &'a dyn Names,
}

impl<'a> Reader<'a> {
    /// Whether the body has nothing more: what follows its other fields may be absent.
    pub const fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// One octet.
    pub fn octet(&mut self) -> Result<u8, UnpackError> {
        match self.rest.split_first() {
            Some((octet, rest)) => {
                self.rest = rest;
                Ok(*octet)
            }
            None => Err(self.malformed("octet")),
        }
    }

    /// The next `count` octets.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], UnpackError> {
        match self.rest.split_at_checked(count) {
            Some((octets, rest)) => {
                self.rest = rest;
                Ok(octets)
            }
            None => Err(self.malformed("number of octets")),
        }
    }

    /// An array of octets.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], UnpackError> {
        match self.rest.split_first_chunk() {
            Some((octets, rest)) => {
                self.rest = rest;
                Ok(*octets)
            }
            None => Err(self.malformed("number of octets")),
        }
    }

    /// A number in its shortest form.
    pub fn number(&mut self) -> Result<u64, UnpackError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let octet = self.octet()?;
            let bits = u64::from(octet & 0x7f);
            if bits << shift >> shift != bits || (octet == 0 && shift > 0) {
                break;
            }
            number |= bits << shift;
            if octet & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.malformed("number"))
    }

    /// Octets with their number.
    pub fn counted(&mut self) -> Result<&'a [u8], UnpackError> {
        let count = self.count()?;
        self.take(count)
    }

    /// The number of items that follow, each of at least one octet: so a damaged number reserves no memory.
    pub fn count(&mut self) -> Result<usize, UnpackError> {
        let count = usize::try_from(self.number()?).ok().filter(|count| *count <= self.rest.len());
        count.ok_or_else(|| self.malformed("number of items"))
    }

    /// The error of a value that is not as expected.
    pub fn malformed(&self, expected: &'static str) -> UnpackError {
        UnpackError::Malformed { section: self.section, offset: self.length - self.rest.len(), expected }
    }

    /// The names of handles.
    pub(super) const fn names(&self) -> &'a dyn Names {
        self.names
    }
}

/// The number of an NF in documents.
const fn number(nf: Nf) -> u8 {
    match nf {
        Nf::Amf => 1,
        Nf::Smf => 2,
        Nf::Ausf => 3,
        Nf::Udm => 4,
        Nf::Udr => 5,
        Nf::Pcf => 6,
        Nf::Nrf => 7,
        Nf::Nssf => 8,
        Nf::Agent => 9,
    }
}
