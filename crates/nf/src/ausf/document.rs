//! The document of an authentication: its state, and the deadline of the UE's response.
//!
//! Stored are the states that wait for the UE. [`Authentication::AwaitingVector`] and [`Authentication::AwaitingResyncVector`] wait for
//! the UDM and owe the AMF an answer: if the process ends, the AMF's request begins again.

use super::{Authentication, Entry};
use crate::kit::document::{Document, Pack, PackError, Section, Sections, UnpackError, Writer, pack_enum};
use crate::kit::{Key, Nf, Owner};
use pith_types::ContextId;

const AUTHENTICATION: Section = Section { id: 1, name: "authentication", version: 1 };

/// All sections.
pub(super) const SECTIONS: &[Section] = &[AUTHENTICATION];

// A number is never given to another state.
pack_enum!(Authentication {
    0 => Ended,
    1 => AwaitingVector(state, reply),
    2 => Challenged(state),
    3 => AwaitingEapResponse(state),
    4 => AwaitingResyncVector(state, reply),
    5 => AwaitingNotificationResponse(state),
});

/// Packs an authentication.
pub(super) fn pack(entry: &Entry) -> Result<Document, PackError> {
    let Entry { id: _, state, deadline, owner: _ } = entry;
    let mut writer = Writer::new(Nf::Ausf, &());
    writer.section(&AUTHENTICATION, |writer| {
        state.pack(writer);
        deadline.pack(writer);
    });
    writer.finish()
}

/// Unpacks an authentication; its id is that of the document.
pub(super) fn unpack(octets: &[u8], id: ContextId) -> Result<Entry, UnpackError> {
    let (state, deadline) = Sections::of(octets, Nf::Ausf, SECTIONS, &())?.unpack(&AUTHENTICATION)?;
    Ok(Entry { id, state, deadline, owner: None })
}

/// The owners of authentications, which no other document has.
const OWNERS: Section = Section { id: 1, name: "owners", version: 1 };

/// Packs the owners of authentications that pass to another shard.
pub(super) fn pack_owners(owners: &Vec<(u64, Option<Owner>)>) -> Result<Document, PackError> {
    let mut writer = Writer::new(Nf::Ausf, &());
    writer.section(&OWNERS, |writer| owners.pack(writer));
    writer.finish()
}

/// Unpacks them.
pub(super) fn unpack_owners(document: &Document) -> Result<Vec<(u64, Option<Owner>)>, UnpackError> {
    Sections::of(document.octets(), Nf::Ausf, &[OWNERS], &())?.unpack(&OWNERS)
}

impl super::Ausf {
    /// Replaces an authentication by what its document yields, and panics if a document made of that differs: for simulations.
    pub(super) fn reload(&mut self, key: Key) {
        let Some(entry) = self.authentications.get_mut(key) else { return };
        let document = pack(entry).expect("an authentication can be packed");
        let loaded =
            unpack(document.octets(), entry.id).unwrap_or_else(|error| panic!("an authentication: {error}"));
        *entry = Entry { owner: entry.owner, ..loaded };
        assert!(pack(entry).as_ref() == Ok(&document), "an authentication changes in its document");
    }
}

/// The id of an authentication that is in no table.
#[cfg(any(test, feature = "testing"))]
const UNNAMED: ContextId = ContextId::from_u64(0).expect("of block 0");

#[cfg(any(test, feature = "testing"))]
impl super::Ausf {
    /// The documents of all authentications.
    pub fn documents(&self) -> Vec<Document> {
        self.authentications.iter().filter_map(|(_, entry)| pack(entry).ok()).collect()
    }

    /// Unpacks a document.
    pub fn check_document(octets: &[u8]) -> Result<(), UnpackError> {
        unpack(octets, UNNAMED).map(drop)
    }

    /// Unpacks a document, and packs it again.
    pub fn repack(octets: &[u8]) -> Result<Document, UnpackError> {
        Ok(pack(&unpack(octets, UNNAMED)?).expect("an authentication can be packed"))
    }
}
