//! What the engine has of each context, so that an update contains only changed sections (`state.write: update`).

use super::{Revision, SectionId};
use foldhash::fast::RandomState;
use pith_nf::kit::StoredKey;
use pith_nf::kit::document::Document;
use pith_types::BlockId;
use std::collections::HashMap;
use std::hash::BuildHasher;

/// A section by its number and a hash of its octets.
type Digest = (SectionId, u64);

/// The sections of each context as they were written last. Of a section only a hash is kept: two octet strings have the same with a
/// probability of 2^-64, and the keys of the hash are random.
#[derive(Debug, Default)]
pub(super) struct WrittenSections {
    contexts: HashMap<StoredKey, (Revision, Box<[Digest]>), RandomState>,
    hasher: RandomState,
}

/// What a write contains.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Changes {
    /// Nothing: the engine has the document.
    None,
    /// Everything: the engine may not have it.
    All,
    /// Some sections.
    Sections {
        /// The revision that the engine must have.
        former: Revision,
        changed: Vec<SectionId>,
        removed: Vec<SectionId>,
    },
}

impl WrittenSections {
    /// What a write of this document contains; the document counts as written.
    pub fn changes(&mut self, key: StoredKey, document: &Document) -> Changes {
        let digest = |(id, octets)| (SectionId::from(id), self.hasher.hash_one(octets));
        let new: Box<[Digest]> = document.sections().map(digest).collect();
        let Some((former, old)) = self.contexts.get_mut(&key) else {
            self.contexts.insert(key, (Revision(0), new));
            return Changes::All;
        };
        let changed: Vec<_> = new.iter().filter(|new| !old.contains(new)).map(|(id, _)| *id).collect();
        let has = |wanted: &SectionId| new.iter().any(|(id, _)| id == wanted);
        let removed: Vec<_> = old.iter().map(|(id, _)| *id).filter(|id| !has(id)).collect();
        let former = *former;
        *old = new;
        if changed.is_empty() && removed.is_empty() {
            return Changes::None;
        }
        Changes::Sections { former, changed, removed }
    }

    /// The revision under which a context is written.
    pub fn note_revision(&mut self, key: StoredKey, revision: Revision) {
        if let Some((former, _)) = self.contexts.get_mut(&key) {
            *former = revision;
        }
    }

    /// Another shard writes the contexts of this block.
    pub fn forget_block(&mut self, block: BlockId) {
        self.contexts.retain(|key, _| key.id.block != block);
    }

    /// The engine may not have what was written last.
    pub fn forget(&mut self, key: StoredKey) {
        self.contexts.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_nf::kit::Nf;
    use pith_nf::kit::document::{Section, Writer};
    use pith_types::ContextId;

    fn document(sections: &[(u8, u64)]) -> Document {
        let mut writer = Writer::new(Nf::Amf, &());
        for (id, value) in sections {
            writer.section(&Section { id: *id, name: "value", version: 1 }, |writer| writer.number(*value));
        }
        writer.finish().unwrap()
    }

    #[test]
    fn an_update_has_the_sections_that_differ_from_the_last_write() {
        let mut written = WrittenSections::default();
        let key = StoredKey { nf: Nf::Amf, id: ContextId::from_u64(7).unwrap() };
        let mut write = |revision: u64, sections: &[(u8, u64)]| {
            let changes = written.changes(key, &document(sections));
            if changes != Changes::None {
                written.note_revision(key, Revision(revision));
            }
            changes
        };
        let sections = |former, changed: &[SectionId], removed: &[SectionId]| Changes::Sections {
            former: Revision(former),
            changed: changed.into(),
            removed: removed.into(),
        };
        assert_eq!(write(1, &[(1, 10), (2, 20), (3, 30)]), Changes::All);
        assert_eq!(write(2, &[(1, 10), (2, 20), (3, 30)]), Changes::None);
        assert_eq!(write(3, &[(1, 10), (2, 21), (4, 40)]), sections(1, &[2, 4], &[3]));
        assert_eq!(write(4, &[(1, 10), (2, 21), (4, 41)]), sections(3, &[4], &[]));
        written.forget(key);
        assert_eq!(written.changes(key, &document(&[(1, 10)])), Changes::All);
    }
}
