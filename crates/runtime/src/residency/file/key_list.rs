//! The key list of a segment to which nothing is appended any longer: which documents have records in it, and where. If octets of the
//! segment are damaged or missing, it names the documents that they belonged to; all others are not affected.
//!
//! ```text
//!  file      magic 8 | segment's header CRC 4 | number of records 4 | segment's length 8 | record* | CRC 4
//!  record    sequence 8 | offset 4 | length 4 | kind 1 | document's kind 1 | block 2 | number 4
//! ```
//!
//! The list is written when the segment is full, when the process stops, and at the next start after it was killed; it is deleted before its
//! segment. A list without a segment is one whose segment has been removed by others: it is deleted when what it says is in other segments.

use super::super::{DocumentKey, DocumentKind};
use super::record::{Item, LARGEST_SEQUENCE, RecordKind, SEGMENT_HEADER, Scanned};
use crate::private_file::{self, Readers};
use crc32c::crc32c;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"PITHKEY\n";
const HEADER: usize = 24;
const RECORD: usize = 24;

/// A record of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Listed {
    pub key: DocumentKey,
    pub kind: RecordKind,
    pub sequence: u64,
    pub offset: u32,
    pub length: u32,
}

/// The records of a segment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct KeyList {
    heading: Heading,
    records: Vec<Listed>,
}

/// What a list begins with: it says whose list it is, and how long the segment was. A start reads no more unless octets are missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Heading {
    /// The CRC of the segment's header, which differs between segments.
    header: [u8; 4],
    /// Octets of the segment.
    length: u64,
}

/// What a list says about a segment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Explained {
    /// Octets between records that are damaged, and whose documents are known.
    pub damaged: u64,
    /// Octets that are missing at the end, and whose documents are known.
    pub missing: u64,
}

impl Listed {
    pub fn to_damaged(self) -> Item {
        let Self { key, kind, sequence, offset, length } = self;
        Item::Damaged { offset: offset.into(), total: length.into(), key, kind, sequence }
    }

    fn overlaps(&self, from: u64, to: u64) -> bool {
        u64::from(self.offset) < to && u64::from(self.offset) + u64::from(self.length) > from
    }

    fn of_item(item: &Item) -> Option<Self> {
        let (key, kind, sequence, offset, total) = match *item {
            Item::Record { offset, header } => {
                (header.key, header.kind, header.sequence, offset, header.total() as u64)
            }
            Item::Damaged { offset, total, key, kind, sequence } => (key, kind, sequence, offset, total),
            Item::Lost { .. } => return None,
        };
        // Segments are shorter than 4 GiB: LARGEST_SEGMENT.
        Some(Self { key, kind, sequence, offset: offset as u32, length: total as u32 })
    }

    fn encode(&self, to: &mut Vec<u8>) {
        to.extend(self.sequence.to_le_bytes());
        to.extend(self.offset.to_le_bytes());
        to.extend(self.length.to_le_bytes());
        to.extend([self.kind as u8, self.key.kind as u8]);
        to.extend(self.key.block.to_le_bytes());
        to.extend(self.key.number.to_le_bytes());
    }

    fn decode(octets: &[u8]) -> Option<Self> {
        let (sequence, rest) = octets.split_first_chunk()?;
        let (offset, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let ([kind, of], rest) = rest.split_first_chunk()?;
        let (block, rest) = rest.split_first_chunk()?;
        let (number, _) = rest.split_first_chunk()?;
        let kind = RecordKind::from_code(*kind)?;
        let of = DocumentKind::from_code(*of)?;
        let sequence =
            Some(u64::from_le_bytes(*sequence)).filter(|sequence| *sequence <= LARGEST_SEQUENCE)?;
        Some(Self {
            key: DocumentKey::new(of, u16::from_le_bytes(*block), u32::from_le_bytes(*number))?,
            kind,
            sequence,
            offset: u32::from_le_bytes(*offset),
            length: u32::from_le_bytes(*length),
        })
    }
}

impl Heading {
    /// The heading, the number of records, and the octets after them.
    fn decode(octets: &[u8]) -> Option<(Self, u32, &[u8])> {
        let (header, rest) = octets.strip_prefix(MAGIC)?.split_first_chunk()?;
        let (count, rest) = rest.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let heading = Self { header: *header, length: u64::from_le_bytes(*length) };
        Some((heading, u32::from_le_bytes(*count), rest))
    }

    /// Whether a list with this heading has all records but that of a stop, which is appended after it.
    fn covers(&self, items: &[Item]) -> bool {
        let mut after = items
            .iter()
            .rev()
            .filter_map(Listed::of_item)
            .take_while(|record| u64::from(record.offset) >= self.length);
        after.all(|record| record.kind == RecordKind::Stop)
    }

    fn read(path: &Path) -> Option<Self> {
        let mut octets = [0; HEADER];
        private_file::open(path, Readers::Owner).ok()?.read_exact(&mut octets).ok()?;
        Self::decode(&octets).map(|(heading, ..)| heading)
    }
}

impl KeyList {
    /// The list of a segment with that content. `None` if octets of it are lost: a list must be complete.
    pub fn of(octets: &[u8], items: &[Item], end: u64) -> Option<Self> {
        let records = items.iter().map(Listed::of_item).collect::<Option<_>>()?;
        Some(Self { heading: Heading { header: header_of(octets)?, length: end }, records })
    }

    /// Explains what a scan of the segment with that file and those octets has not found: reads the list only if octets are damaged or
    /// missing. Returns whether the segment has a complete list, and what it explains.
    pub fn complete(
        segment: &Path,
        octets: &[u8],
        items: &mut Vec<Item>,
        scanned: Scanned,
    ) -> (bool, Explained) {
        let path = path_of(segment);
        let is_of = |heading: &Heading| header_of(octets).is_none_or(|header| header == heading.header);
        let Some(heading) = Heading::read(&path).filter(is_of) else { return (false, Explained::default()) };
        let is_whole =
            scanned.end >= heading.length && !items.iter().any(|item| matches!(item, Item::Lost { .. }));
        if is_whole {
            return (heading.covers(items), Explained::default());
        }
        match Self::read(&path) {
            Some(list) => (true, list.explain(items, scanned)),
            None => (false, Explained::default()),
        }
    }

    pub fn records(&self) -> &[Listed] {
        &self.records
    }

    /// Replaces lost octets by the damaged records that they were, and adds the records that are missing at the end.
    fn explain(&self, items: &mut Vec<Item>, scanned: Scanned) -> Explained {
        let mut explained = Explained::default();
        let mut found = Vec::with_capacity(items.len());
        for item in items.drain(..) {
            match item {
                // Only the record of a stop may follow what is listed.
                Item::Lost { offset, total } if offset + total <= self.heading.length => {
                    explained.damaged += total;
                    let within = |record: &&Listed| record.overlaps(offset, offset + total);
                    found.extend(self.records.iter().filter(within).map(|record| record.to_damaged()));
                }
                item => found.push(item),
            }
        }
        if scanned.end < self.heading.length {
            explained.missing = self.heading.length - scanned.end;
            let after = |record: &&Listed| u64::from(record.offset) + u64::from(record.length) > scanned.end;
            found.extend(self.records.iter().filter(after).map(|record| record.to_damaged()));
        }
        *items = found;
        explained
    }

    fn encode(&self) -> Vec<u8> {
        let mut octets = Vec::with_capacity(HEADER + RECORD * self.records.len() + 4);
        octets.extend(MAGIC);
        octets.extend(self.heading.header);
        octets.extend((self.records.len() as u32).to_le_bytes());
        octets.extend(self.heading.length.to_le_bytes());
        self.records.iter().for_each(|record| record.encode(&mut octets));
        let crc = crc32c(&octets);
        octets.extend(crc.to_le_bytes());
        octets
    }

    /// `None` if the octets are no list, or damaged.
    fn decode(octets: &[u8]) -> Option<Self> {
        let (octets, crc) = octets.split_last_chunk::<4>()?;
        let (heading, count, rest) =
            Heading::decode(octets).filter(|_| crc32c(octets) == u32::from_le_bytes(*crc))?;
        let records: Vec<_> = rest.chunks(RECORD).map(Listed::decode).collect::<Option<_>>()?;
        let is_whole = rest.len() == RECORD * records.len() && records.len() == count as usize;
        is_whole.then_some(Self { heading, records })
    }

    /// The list in a file; `None` if there is none that can be used.
    pub fn read(path: &Path) -> Option<Self> {
        let mut octets = Vec::new();
        private_file::open(path, Readers::Owner).ok()?.read_to_end(&mut octets).ok()?;
        Self::decode(&octets)
    }

    /// Writes the file, on the disk.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let draft = path.with_extension("keys-draft");
        // A killed process may have left a file.
        let _ = fs::remove_file(&draft);
        let mut file = private_file::create_new(&draft)?;
        let written = file.write_all(&self.encode()).and_then(|()| file.sync_data());
        written.and_then(|()| fs::rename(&draft, path)).inspect_err(|_| drop(fs::remove_file(&draft)))
    }
}

/// The CRC of a segment's header; `None` if the segment has none.
fn header_of(octets: &[u8]) -> Option<[u8; 4]> {
    octets.get(SEGMENT_HEADER - 4..SEGMENT_HEADER)?.first_chunk().copied()
}

/// The file with the list of a segment, beside it.
pub(super) fn path_of(segment: &Path) -> PathBuf {
    segment.with_extension("keys")
}

/// The id of the segment in the name of a list's file.
pub(super) fn id_of(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".keys").filter(|digits| digits.len() == 8)?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> KeyList {
        let record = |number: u32| Listed {
            key: DocumentKey::new(DocumentKind::Smf, 7, number).unwrap(),
            kind: RecordKind::Update,
            sequence: 100 + u64::from(number),
            offset: 128 + 100 * number,
            length: 100,
        };
        KeyList {
            heading: Heading { header: [1, 2, 3, 4], length: 628 },
            records: (0..5).map(record).collect(),
        }
    }

    #[test]
    fn a_list_is_the_same_after_its_file_and_a_damaged_one_is_not_used() {
        let octets = list().encode();
        assert_eq!(KeyList::decode(&octets), Some(list()));
        for at in 0..octets.len() {
            let mut changed = octets.clone();
            changed[at] ^= 1;
            assert_eq!(KeyList::decode(&changed), None, "octet {at}");
            assert_eq!(KeyList::decode(&octets[..at]), None, "{at} octets");
        }
    }

    #[test]
    fn lost_octets_are_records_that_overlap_them() {
        let numbers = |items: &[Item]| {
            let number = |item: &Item| Listed::of_item(item).map(|record| record.key.number);
            items.iter().map(number).collect::<Vec<_>>()
        };
        let mut items = vec![Item::Lost { offset: 227, total: 102 }];
        let explained = list().explain(&mut items, Scanned { end: 628, torn: 0 });
        assert_eq!(explained, Explained { damaged: 102, missing: 0 });
        assert_eq!(numbers(&items), [Some(0), Some(1), Some(2)]);
        let explained = list().explain(&mut items, Scanned { end: 428, torn: 30 });
        assert_eq!(explained, Explained { damaged: 0, missing: 200 });
        assert_eq!(numbers(&items), [Some(0), Some(1), Some(2), Some(3), Some(4)]);
    }
}
