//! The format of the log: segment header, records, and the scan of a file for complete batches.
//!
//! ```text
//!  segment   header 128 | record*
//!  record    header 64 | sealed sections | tag 16 | trailer 24
//! ```
//!
//! Header, trailer and body have a CRC32C each, and the trailer repeats the key, so that a damaged record is attributed to its
//! document even if its header is lost. A process appends only to segments that it made, so no records follow a tail that was cut
//! off by the end of the process.

use super::super::seal::{SALT, TAG};
use super::super::{DocumentKey, DocumentKind, Head, MAX_DOCUMENT, OwnerVersion, Revision, UnixMillis};
use crc32c::crc32c;

/// Octets of a segment's header.
pub(super) const SEGMENT_HEADER: usize = 128;
/// Octets of a record's header.
pub(super) const HEADER: usize = 64;
/// Octets of a record's trailer.
pub(super) const TRAILER: usize = 24;
/// Octets of a record without its sections.
pub(super) const OVERHEAD: usize = HEADER + TAG + TRAILER;
/// Version of the format. A reader refuses later ones.
pub(super) const FORMAT: u16 = 1;
/// Largest number of a write: the numbers after it do not overflow. A file with a larger one was not written by Pith.
pub(super) const LARGEST_SEQUENCE: u64 = u64::MAX / 2;

const SEGMENT_MAGIC: &[u8; 8] = b"PITHLOG\n";
const RECORD_MAGIC: &[u8; 4] = b"PdR\x01";

/// What a record contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum RecordKind {
    /// A whole document.
    Whole = 1,
    /// Sections of a document.
    Update = 2,
    /// The document was deleted.
    Tombstone = 3,
    /// The least version of the owner map for a block; kind and number of its key have no meaning.
    Fence = 4,
    /// All records up to this number are on the disk: the process stopped, and was not killed.
    Stop = 5,
}

impl RecordKind {
    pub fn from_code(code: u8) -> Option<Self> {
        [Self::Whole, Self::Update, Self::Tombstone, Self::Fence, Self::Stop]
            .into_iter()
            .find(|kind| *kind as u8 == code)
    }

    /// Whether the record belongs to the document of its key.
    pub fn is_of_document(self) -> bool {
        matches!(self, Self::Whole | Self::Update | Self::Tombstone)
    }
}

/// A record's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub kind: RecordKind,
    pub key: DocumentKey,
    /// Octets between header and trailer: sections and tag.
    pub length: u32,
    pub sequence: u64,
    pub owner: OwnerVersion,
    pub revision: Revision,
    pub deadline: Option<UnixMillis>,
    pub layout: u16,
    /// Records of the same batch that follow.
    pub remaining: u16,
    /// Nonce under the segment's key.
    pub number: u32,
    /// CRC32C of what is between header and trailer.
    pub body_crc: u32,
}

impl Header {
    /// Octets of the record.
    pub fn total(&self) -> usize {
        HEADER + self.length as usize + TRAILER
    }

    /// The fields of the document besides its sections.
    pub fn head(&self) -> Head {
        Head { key: self.key, revision: self.revision, layout: self.layout, deadline: self.deadline }
    }

    /// The header in wire form, without its CRCs.
    pub fn encode(&self) -> [u8; HEADER] {
        let mut to = [0; HEADER];
        let mut writer = Writer { to: &mut to, at: 0 };
        writer.put(RECORD_MAGIC);
        writer.put(&[self.kind as u8, self.key.kind as u8]);
        writer.put(&self.key.block.to_le_bytes());
        writer.put(&self.key.number.to_le_bytes());
        writer.put(&self.length.to_le_bytes());
        writer.put(&self.sequence.to_le_bytes());
        writer.put(&self.owner.0.to_le_bytes());
        writer.put(&self.revision.0.to_le_bytes());
        // 0 as a deadline would be 1970: it means none.
        writer.put(&self.deadline.map_or(0, |deadline| deadline.0).to_le_bytes());
        writer.put(&self.layout.to_le_bytes());
        writer.put(&self.remaining.to_le_bytes());
        writer.put(&self.number.to_le_bytes());
        to
    }

    /// Adds the CRCs.
    pub fn encode_crcs(&self, encoded: &mut [u8; HEADER]) {
        let mut writer = Writer { to: encoded, at: HEADER - 8 };
        writer.put(&self.body_crc.to_le_bytes());
        writer.put_crc();
    }

    /// The octets that sealing authenticates: the header without the CRCs.
    pub fn associated(encoded: &[u8; HEADER]) -> &[u8] {
        encoded.get(..HEADER - 8).unwrap_or_default()
    }

    /// The header at the start of `octets`.
    pub fn decode(octets: &[u8]) -> Option<Self> {
        let octets: &[u8; HEADER] = octets.first_chunk()?;
        if octets.first_chunk() != Some(RECORD_MAGIC) || !has_crc(octets) {
            return None;
        }
        let mut reader = Reader(octets.get(4..)?);
        let [kind, of] = reader.take()?;
        let block = u16::from_le_bytes(reader.take()?);
        let number = u32::from_le_bytes(reader.take()?);
        let header = Self {
            kind: RecordKind::from_code(kind)?,
            key: DocumentKey::new(DocumentKind::from_code(of)?, block, number)?,
            length: u32::from_le_bytes(reader.take()?),
            sequence: reader.u64()?,
            owner: OwnerVersion(reader.u64()?),
            revision: Revision(reader.u64()?),
            deadline: Some(reader.u64()?).filter(|deadline| *deadline > 0).map(UnixMillis),
            layout: u16::from_le_bytes(reader.take()?),
            remaining: u16::from_le_bytes(reader.take()?),
            number: u32::from_le_bytes(reader.take()?),
            body_crc: u32::from_le_bytes(reader.take()?),
        };
        let is_valid = (TAG..=MAX_DOCUMENT + TAG).contains(&(header.length as usize))
            && header.sequence <= LARGEST_SEQUENCE;
        is_valid.then_some(header)
    }

    /// The trailer of the record.
    pub fn trailer(&self) -> [u8; TRAILER] {
        let mut to = [0; TRAILER];
        let mut writer = Writer { to: &mut to, at: 0 };
        writer.put(&self.sequence.to_le_bytes());
        writer.put(&[self.kind as u8, self.key.kind as u8]);
        writer.put(&self.key.block.to_le_bytes());
        writer.put(&self.key.number.to_le_bytes());
        writer.put(&self.length.to_le_bytes());
        writer.put_crc();
        to
    }
}

/// The fields of a record that its trailer repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Trailer {
    sequence: u64,
    kind: RecordKind,
    key: DocumentKey,
    length: u32,
}

impl Trailer {
    fn decode(octets: &[u8]) -> Option<Self> {
        let octets: &[u8; TRAILER] = octets.first_chunk()?;
        if !has_crc(octets) {
            return None;
        }
        let mut reader = Reader(octets);
        let sequence = reader.u64()?;
        let [kind, of] = reader.take()?;
        let block = u16::from_le_bytes(reader.take()?);
        let number = u32::from_le_bytes(reader.take()?);
        let length = u32::from_le_bytes(reader.take()?);
        let key = DocumentKey::new(DocumentKind::from_code(of)?, block, number)?;
        let kind = RecordKind::from_code(kind)?;
        (sequence <= LARGEST_SEQUENCE).then_some(Self { sequence, kind, key, length })
    }
}

/// A segment's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    /// Whether writes were flushed before they counted as durable (`sync: batch`).
    pub is_synced: bool,
    /// Id of the secret.
    pub secret: [u8; 8],
    /// The kernel's boot id.
    pub boot: [u8; 16],
    /// Salt of the segment's key.
    pub salt: [u8; SALT],
    /// Documents whose last write has a lower number are stale.
    pub stale_below: u64,
    /// Number of the first write of the process that made the segment.
    pub run_start: u64,
}

/// The reason why a segment's header is not usable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentHeaderError {
    /// The process ended while it made the file.
    Incomplete,
    /// Not a file of Pith, or its first octets changed.
    Invalid,
    /// Written by a newer program.
    TooNew(u16),
}

impl SegmentHeader {
    pub fn encode(&self) -> [u8; SEGMENT_HEADER] {
        let mut to = [0; SEGMENT_HEADER];
        let mut writer = Writer { to: &mut to, at: 0 };
        writer.put(SEGMENT_MAGIC);
        writer.put(&FORMAT.to_le_bytes());
        writer.put(&u16::from(self.is_synced).to_le_bytes());
        writer.put(&self.secret);
        writer.put(&self.boot);
        writer.put(&self.salt);
        writer.put(&self.stale_below.to_le_bytes());
        writer.put(&self.run_start.to_le_bytes());
        writer.at = SEGMENT_HEADER - 4;
        writer.put_crc();
        to
    }

    pub fn decode(octets: &[u8]) -> Result<Self, SegmentHeaderError> {
        let octets: &[u8; SEGMENT_HEADER] = octets.first_chunk().ok_or(SegmentHeaderError::Incomplete)?;
        if octets.first_chunk() != Some(SEGMENT_MAGIC) || !has_crc(octets) {
            return Err(SegmentHeaderError::Invalid);
        }
        Self::fields(octets).ok_or(SegmentHeaderError::Invalid)?
    }

    fn fields(octets: &[u8]) -> Option<Result<Self, SegmentHeaderError>> {
        let mut reader = Reader(octets.get(SEGMENT_MAGIC.len()..)?);
        let format = u16::from_le_bytes(reader.take()?);
        if format != FORMAT {
            return Some(Err(SegmentHeaderError::TooNew(format)));
        }
        Some(Ok(Self {
            is_synced: u16::from_le_bytes(reader.take()?) & 1 != 0,
            secret: reader.take()?,
            boot: reader.take()?,
            salt: reader.take()?,
            stale_below: reader.u64()?,
            run_start: reader.u64()?,
        }))
    }
}

/// Something in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    /// A complete record.
    Record { offset: u64, header: Header },
    /// A damaged record of a known document.
    Damaged { offset: u64, total: u64, key: DocumentKey, kind: RecordKind, sequence: u64 },
    /// Octets that are no record, and from which the documents cannot be determined.
    Lost { offset: u64, total: u64 },
}

/// The result of a scan besides items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Scanned {
    /// End of the last complete batch.
    pub end: u64,
    /// Octets after it: a batch whose write was cut off. Its writer had not returned.
    pub torn: u64,
}

/// Visits all items of a segment, in order. `octets` is the whole file.
pub(super) fn scan(octets: &[u8], mut visit: impl FnMut(Item)) -> Scanned {
    let mut at = SEGMENT_HEADER.min(octets.len());
    let mut end = at;
    // The records of a batch count when its last one is complete.
    let mut batch = Vec::new();
    let mut is_after_loss = false;
    while let Some(rest) = octets.get(at..).filter(|rest| !rest.is_empty()) {
        let Some((item, length, is_last)) = item(rest, at) else { break };
        batch.push(item);
        at += length;
        if is_last {
            end = at;
            is_after_loss = matches!(item, Item::Lost { .. });
            batch.drain(..).for_each(&mut visit);
        }
    }
    if is_after_loss && end < octets.len() {
        // Not cut off: the next scan would take lost octets at the end of the file for a torn batch, and hide the damage.
        visit(Item::Lost { offset: end as u64, total: (octets.len() - end) as u64 });
        end = octets.len();
    }
    Scanned { end: end as u64, torn: (octets.len() - end) as u64 }
}

/// The item at the start of `rest`, its length, and whether it ends a batch; `None` if the file ends within it.
fn item(rest: &[u8], at: usize) -> Option<(Item, usize, bool)> {
    let offset = at as u64;
    if rest.len() < HEADER {
        return None;
    }
    let Some(header) = Header::decode(rest) else {
        let (item, length) = damage(rest, at);
        return Some((item, length, true));
    };
    let record = rest.get(..header.total())?;
    let body = record.get(HEADER..record.len() - TRAILER)?;
    let trailer = record.get(record.len() - TRAILER..)?;
    let is_intact = crc32c(body) == header.body_crc && trailer == header.trailer();
    let item = if is_intact {
        Item::Record { offset, header }
    } else {
        let Header { key, kind, sequence, .. } = header;
        Item::Damaged { offset, total: header.total() as u64, key, kind, sequence }
    };
    Some((item, header.total(), header.remaining == 0))
}

/// The damage at the start of `rest`, which has no valid header; it extends to the next record, or to the end. If it ends with the
/// trailer of a record that starts here, that trailer names the document.
fn damage(rest: &[u8], at: usize) -> (Item, usize) {
    let length = next_record(rest).unwrap_or(rest.len());
    let offset = at as u64;
    let trailer = length.checked_sub(TRAILER).and_then(|from| Trailer::decode(rest.get(from..length)?));
    let item = match trailer {
        Some(Trailer { sequence, kind, key, length: body }) if HEADER + body as usize + TRAILER == length => {
            Item::Damaged { offset, total: length as u64, key, kind, sequence }
        }
        _ => Item::Lost { offset, total: length as u64 },
    };
    (item, length)
}

/// Distance to the next valid header after the first octet.
fn next_record(octets: &[u8]) -> Option<usize> {
    let mut from = 1;
    loop {
        let rest = octets.get(from..)?;
        let found = rest.windows(RECORD_MAGIC.len()).position(|window| window == RECORD_MAGIC)?;
        if Header::decode(rest.get(found..)?).is_some() {
            return Some(from + found);
        }
        from += found + 1;
    }
}

/// Whether the last 4 octets are the CRC32C of the others.
fn has_crc(octets: &[u8]) -> bool {
    octets.split_last_chunk::<4>().is_some_and(|(octets, crc)| crc32c(octets) == u32::from_le_bytes(*crc))
}

struct Writer<'a> {
    to: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn put(&mut self, octets: &[u8]) {
        // The fields of each form add up to its array.
        if let Some(place) = self.to.get_mut(self.at..self.at + octets.len()) {
            place.copy_from_slice(octets);
        }
        self.at += octets.len();
    }

    fn put_crc(&mut self) {
        let crc = crc32c(self.to.get(..self.at).unwrap_or_default());
        self.put(&crc.to_le_bytes());
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}

/// Something in a segment, for tools and fuzzing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentItem {
    /// Offset in the file.
    pub offset: u64,
    /// Octets.
    pub length: u64,
    /// The document of an intact or damaged record; `None`: lost octets.
    pub key: Option<DocumentKey>,
    /// Whether the record is intact.
    pub is_intact: bool,
}

/// The content of a segment, for tools and fuzzing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SegmentContent {
    /// Records and damage in order.
    pub items: Vec<SegmentItem>,
    /// End of the last complete batch.
    pub end: u64,
    /// Octets of an incomplete batch after it.
    pub torn: u64,
}

impl SegmentContent {
    /// Reads the octets of a segment's file.
    pub fn of(octets: &[u8]) -> Self {
        let mut items = Vec::new();
        let Scanned { end, torn } = scan(octets, |item| items.push(SegmentItem::of(&item)));
        Self { items, end, torn }
    }
}

impl SegmentItem {
    fn of(item: &Item) -> Self {
        match *item {
            Item::Record { offset, header } => {
                Self { offset, length: header.total() as u64, key: Some(header.key), is_intact: true }
            }
            Item::Damaged { offset, total, key, .. } => {
                Self { offset, length: total, key: Some(key), is_intact: false }
            }
            Item::Lost { offset, total } => Self { offset, length: total, key: None, is_intact: false },
        }
    }
}

/// Corrects magic numbers, checksums and trailers of a segment's records, which are found by their lengths: then the fields that a
/// fuzzer changed are not refused for a wrong checksum.
pub fn with_checksums(octets: &[u8]) -> Vec<u8> {
    let mut octets = octets.to_vec();
    let mut at = SEGMENT_HEADER;
    while let Some(record) = octets.get_mut(at..).filter(|rest| rest.len() >= HEADER) {
        let length = record
            .get(12..16)
            .and_then(|field| field.first_chunk())
            .map_or(0, |field| u32::from_le_bytes(*field));
        let total = HEADER + length as usize + TRAILER;
        let body_crc = record.get(HEADER..total - TRAILER).map(crc32c);
        if let Some(magic) = record.first_chunk_mut() {
            *magic = *RECORD_MAGIC;
        }
        if let (Some(place), Some(crc)) = (record.get_mut(HEADER - 8..HEADER - 4), body_crc) {
            place.copy_from_slice(&crc.to_le_bytes());
        }
        let crc = crc32c(record.get(..HEADER - 4).unwrap_or_default());
        if let Some(place) = record.get_mut(HEADER - 4..HEADER) {
            place.copy_from_slice(&crc.to_le_bytes());
        }
        let header = Header::decode(record);
        if let (Some(header), Some(place)) = (header, record.get_mut(total - TRAILER..total)) {
            place.copy_from_slice(&header.trailer());
        }
        at += total;
    }
    octets
}
