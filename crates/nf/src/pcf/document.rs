//! The document of a policy association: its context and its owner.
//!
//! An association that is being created waits for the UDR, and its caller for an answer: if the process ends, the creation begins again.

use super::latest::Purpose;
use super::{Association, Context};
use crate::kit::document::{Document, Pack, PackError, Section, Sections, UnpackError, Writer, pack_enum};
use crate::kit::{Context as Packable, Key, Nf};
use pith_types::ContextId;

const ASSOCIATION: Section = Section { id: 1, name: "association", version: 1 };

/// All sections.
pub(super) const SECTIONS: &[Section] = &[ASSOCIATION];

pack_enum!(Context { 0 => Access(context), 1 => Session(context) });

/// Packs an association.
pub(super) fn pack(association: &Association) -> Result<Document, PackError> {
    let Association { id: _, context, owner, creating } = association;
    let mut writer = Writer::new(Nf::Pcf, &());
    writer.section(&ASSOCIATION, |writer| {
        context.pack(writer);
        owner.pack(writer);
        creating.pack(writer);
    });
    writer.finish()
}

/// Unpacks an association; its id is that of the document.
pub(super) fn unpack(octets: &[u8], id: ContextId) -> Result<Association, UnpackError> {
    let (context, owner, creating) = Sections::of(octets, Nf::Pcf, SECTIONS, &())?.unpack(&ASSOCIATION)?;
    Ok(Association { id, context, owner, creating })
}

/// An association in the local form: packed in memory.
impl Packable for Association {
    type Mark = Purpose;

    fn id(&self) -> ContextId {
        self.id
    }

    fn mark(&self) -> Purpose {
        self.purpose()
    }

    fn is_idle(&self) -> bool {
        self.creating.is_none()
    }

    fn pack_local(&self) -> Option<Document> {
        pack(self).ok()
    }

    fn unpack_local(octets: &[u8], (_, id): (Key, ContextId), _: Purpose) -> Result<Self, UnpackError> {
        unpack(octets, id)
    }
}

impl super::Pcf {
    /// Replaces an association by what its document yields, and panics if a document made of that differs: for simulations.
    pub(super) fn reload(&mut self, key: Key) {
        let Some(association) = self.associations.get_mut(key) else { return };
        let document = pack(association).expect("an association can be packed");
        *association = unpack(document.octets(), association.id)
            .unwrap_or_else(|error| panic!("an association: {error}"));
        assert!(pack(association).as_ref() == Ok(&document), "an association changes in its document");
    }
}

/// The id of an association that is in no table.
#[cfg(any(test, feature = "testing"))]
const UNNAMED: ContextId = ContextId::from_u64(0).expect("of block 0");

#[cfg(any(test, feature = "testing"))]
impl super::Pcf {
    /// The documents of all associations.
    pub fn documents(&self) -> Vec<Document> {
        self.associations.iter().filter_map(|(_, association)| pack(&association).ok()).collect()
    }

    /// Unpacks a document.
    pub fn check_document(octets: &[u8]) -> Result<(), UnpackError> {
        unpack(octets, UNNAMED).map(drop)
    }

    /// Unpacks a document, and packs it again.
    pub fn repack(octets: &[u8]) -> Result<Document, UnpackError> {
        Ok(pack(&unpack(octets, UNNAMED)?).expect("an association can be packed"))
    }
}
