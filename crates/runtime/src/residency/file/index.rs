//! The index in memory: where each document's records are. Its state depends on the set of records only, not on the
//! order in which they are added, so that recovery reads segments in any order.

use super::super::{DocumentKey, DocumentKind, OwnerVersion, Revision, UnixMillis};
use super::record::{Header, Item, RecordKind};
use foldhash::fast::FixedState;
use std::collections::HashMap;

/// Place of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Location {
    pub segment: u32,
    pub offset: u32,
    pub length: u32,
}

/// A record of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub sequence: u64,
    pub at: Location,
}

/// The record that determines a document, before updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// The index has no such record.
    Missing,
    Whole(Part),
    Deleted(Part),
}

impl Base {
    pub fn part(&self) -> Option<Part> {
        match self {
            Self::Missing => None,
            Self::Whole(part) | Self::Deleted(part) => Some(*part),
        }
    }

    fn sequence(&self) -> u64 {
        self.part().map_or(0, |part| part.sequence)
    }
}

/// What the index knows of a document.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub base: Base,
    /// Updates after the base, by sequence.
    pub updates: Vec<Part>,
    pub revision: Revision,
    pub deadline: Option<UnixMillis>,
    /// The newest damaged record, unless a later record replaced the document.
    pub damage: Option<Part>,
    /// Number of the document's records in all segments, dead ones included. A tombstone is needed while there are other records.
    pub records: u32,
}

impl Default for Entry {
    fn default() -> Self {
        Self {
            base: Base::Missing,
            updates: Vec::new(),
            revision: Revision(0),
            deadline: None,
            damage: None,
            records: 0,
        }
    }
}

/// State of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Absent,
    Present,
    /// A needed record is damaged.
    Damaged(Location),
}

impl Entry {
    /// The number of the newest record that counts.
    pub fn newest(&self) -> u64 {
        self.updates.last().map_or(self.base.sequence(), |part| part.sequence)
    }

    pub fn state(&self) -> State {
        if let Some(damage) = self.damage {
            return State::Damaged(damage.at);
        }
        match (self.base, self.updates.first()) {
            (Base::Whole(_), _) => State::Present,
            // Updates are written only to a present document, so its base is lost.
            (Base::Missing | Base::Deleted(_), Some(update)) => State::Damaged(update.at),
            (Base::Missing | Base::Deleted(_), None) => State::Absent,
        }
    }

    /// Adds a record.
    pub fn add(&mut self, header: &Header, at: Location) {
        self.records += 1;
        let part = Part { sequence: header.sequence, at };
        let is_newest = part.sequence >= self.newest().max(self.base.sequence());
        let counts = match header.kind {
            RecordKind::Whole => self.set_base(Base::Whole(part)),
            RecordKind::Tombstone => self.set_base(Base::Deleted(part)),
            RecordKind::Update if part.sequence > self.base.sequence() => {
                let place = self.updates.partition_point(|other| other.sequence < part.sequence);
                self.updates.insert(place, part);
                true
            }
            RecordKind::Update | RecordKind::Fence | RecordKind::Stop => false,
        };
        if counts && is_newest {
            self.revision = header.revision;
            self.deadline = header.deadline;
        }
    }

    /// Adds a damaged record.
    pub fn add_damaged(&mut self, sequence: u64, at: Location) {
        self.records += 1;
        let is_newer = self.damage.is_none_or(|known| known.sequence < sequence);
        if sequence > self.base.sequence() && is_newer {
            self.damage = Some(Part { sequence, at });
        }
    }

    fn set_base(&mut self, base: Base) -> bool {
        let sequence = base.sequence();
        // Equal: a copy that compaction made.
        if sequence < self.base.sequence() {
            return false;
        }
        self.base = base;
        self.updates.retain(|update| update.sequence > sequence);
        self.damage = self.damage.filter(|damage| damage.sequence > sequence);
        true
    }

    /// Whether the record at that place is needed to read the document, or to know that it is deleted or damaged.
    pub fn needs(&self, segment: u32, offset: u32) -> bool {
        let is_there = |part: &Part| part.at.segment == segment && part.at.offset == offset;
        let is_base = match &self.base {
            Base::Missing => false,
            Base::Whole(part) => is_there(part),
            Base::Deleted(part) => is_there(part) && self.records > 1,
        };
        is_base || self.updates.iter().any(is_there) || self.damage.as_ref().is_some_and(is_there)
    }
}

/// The documents of a block of ids, and its fence.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// The numbers are random and of this core, so a fast hash is safe.
    pub documents: HashMap<(DocumentKind, u32), Entry, FixedState>,
    pub fence: OwnerVersion,
    /// The newest record that only sets the fence; `None` if the fence is known only from records of documents.
    pub fence_record: Option<(OwnerVersion, Location)>,
}

impl Block {
    pub fn entry(&self, key: DocumentKey) -> Option<&Entry> {
        self.documents.get(&(key.kind, key.number))
    }

    pub fn entry_mut(&mut self, key: DocumentKey) -> &mut Entry {
        self.documents.entry((key.kind, key.number)).or_default()
    }

    /// Adds a record to document or fence.
    pub fn add(&mut self, header: &Header, at: Location) {
        self.fence = self.fence.max(header.owner);
        match header.kind {
            RecordKind::Whole | RecordKind::Update | RecordKind::Tombstone => {
                self.entry_mut(header.key).add(header, at);
            }
            RecordKind::Fence if self.fence_record.is_none_or(|(known, _)| known <= header.owner) => {
                self.fence_record = Some((header.owner, at));
            }
            RecordKind::Fence | RecordKind::Stop => {}
        }
    }
}

/// The place of an item.
pub(super) fn location_of(segment: u32, item: &Item) -> Location {
    let (offset, length) = match item {
        Item::Record { offset, header } => (*offset, header.total() as u64),
        Item::Damaged { offset, total, .. } | Item::Lost { offset, total } => (*offset, *total),
    };
    // Segments are shorter than 4 GiB: LARGEST_SEGMENT.
    Location { segment, offset: offset as u32, length: length as u32 }
}

impl Entry {
    /// The record whose octets count as live: compaction copies it, and merges updates into the copy.
    pub fn live(&self) -> Option<Part> {
        match self.base {
            Base::Whole(part) => Some(part),
            Base::Deleted(part) if self.records > 1 => Some(part),
            Base::Deleted(_) | Base::Missing => None,
        }
    }
}
