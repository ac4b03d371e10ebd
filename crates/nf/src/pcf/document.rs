//! The document of a policy association: its context and its owner.
//!
//! An association that is being created waits for the UDR, and its caller for an answer: if the process ends, the creation begins again.

use super::applications::Application;
use super::latest::Mark;
use super::rules::Rules;
use super::{Association, Context};
use crate::kit::document::{
    Document, Json, Pack, PackError, Reader, Section, Sections, UnpackError, Writer, pack_enum,
};
use crate::kit::{Context as Packable, Key, Nf};
use pith_types::ContextId;

/// Version 1 has the request as JSON.
const ASSOCIATION: Section = Section { id: 1, name: "association", version: 2 };

/// Absent in an association without PCC rules of an operator or an application.
const RULES: Section = Section { id: 2, name: "rules", version: 1 };

/// All sections, in their order in a document: the last one is always there, so that a document that was cut off is refused.
pub(super) const SECTIONS: &[Section] = &[RULES, ASSOCIATION];

pack_enum!(Context { 0 => Access(context), 1 => Session(context) });

/// Packs an association.
pub(super) fn pack(association: &Association) -> Result<Document, PackError> {
    let Association { id: _, context, owner, creating, rules } = association;
    let mut writer = Writer::new(Nf::Pcf, &());
    if let Some(rules) = rules {
        writer.section(&RULES, |writer| rules.pack(writer));
    }
    writer.section(&ASSOCIATION, |writer| {
        context.pack(writer);
        owner.pack(writer);
        creating.pack(writer);
    });
    writer.finish()
}

/// Unpacks an association; its id is that of the document.
pub(super) fn unpack(octets: &[u8], id: ContextId) -> Result<Association, UnpackError> {
    let sections = Sections::of(octets, Nf::Pcf, SECTIONS, &())?;
    let rules = if sections.has(&RULES) { Some(sections.unpack(&RULES)?) } else { None };
    sections.read(&ASSOCIATION, |version, reader| {
        let context = if version == 1 { context_of_version_1(reader)? } else { Context::unpack(reader)? };
        let (owner, creating) = Pack::unpack(reader)?;
        Ok(Association { id, context, owner, creating, rules })
    })
}

/// The rules as JSON, as their parts are SBI data types.
impl Pack for Rules {
    fn pack(&self, writer: &mut Writer<'_>) {
        let Self { rules, unanswered, applications, last } = self;
        Json::pack(&(rules, unanswered), writer);
        last.pack(writer);
        let number = applications.len() as u32;
        number.pack(writer);
        for (number, Application { request, owner }) in applications {
            number.pack(writer);
            owner.pack(writer);
            Json::pack(request, writer);
        }
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        let (rules, unanswered) = Json::unpack(reader, "PCC rules")?;
        let last = Pack::unpack(reader)?;
        let mut all = Self { rules, unanswered, applications: Default::default(), last };
        for _ in 0..u32::unpack(reader)? {
            let (number, owner) = Pack::unpack(reader)?;
            let request = Json::unpack(reader, "AppSessionContextReqData")?;
            all.applications.insert(number, Application { request, owner });
        }
        Ok(all)
    }
}

fn context_of_version_1(reader: &mut Reader<'_>) -> Result<Context, UnpackError> {
    match reader.octet()? {
        0 => Json::unpack(reader, "PolicyAssociationRequest").map(Box::new).map(Context::Access),
        1 => Json::unpack(reader, "SmPolicyContextData").map(Box::new).map(Context::Session),
        _ => Err(reader.malformed("Context")),
    }
}

/// An association in the local form: packed in memory.
impl Packable for Association {
    type Mark = Mark;

    fn id(&self) -> ContextId {
        self.id
    }

    fn mark(&self) -> Mark {
        Self::mark(self)
    }

    fn is_idle(&self) -> bool {
        self.creating.is_none()
    }

    fn pack_local(&self) -> Option<Document> {
        pack(self).ok()
    }

    fn unpack_local(octets: &[u8], (_, id): (Key, ContextId), _: Mark) -> Result<Self, UnpackError> {
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
