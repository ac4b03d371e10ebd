//! Contexts as documents (design section 6): the octets of one UE's context at one NF, for a store, for another instance, or for
//! memory while the UE is idle.
//!
//! ```text
//!  "PD" | format | NF | section | section | …
//!                      id, version, length (4 octets), body
//! ```
//!
//! - **Versions.** A section has its own version. A program reads the version that it writes and the two before it; any other is refused
//!   by name. A body has no field names: a changed field is a new version of its section.
//! - **Names.** Handles of this process ([`GnbHandle`], [`UpfHandle`]) are written as the names of what they stand for, through
//!   [`Names`]. Times are wall-clock times. The key of an [`Arena`](super::Arena) is not in the document: the loader assigns one.
//! - **Pending answers** are written with their caller. A caller on the other side of HTTP/2 is a number of this process's
//!   exchange: it has a meaning in this process only. States with such an answer wait for another NF, and are not stored.
//! - **Keys** are in the document in cleartext: the store encrypts it. [`Document`] is overwritten when dropped and has no content in
//!   `Debug`.
//!
//! A type takes part by [`Pack`], mostly through [`pack_struct`] and [`pack_enum`], which list every field: a forgotten one does not
//! compile.

mod bodies;
mod common;
mod frame;
mod pack;
#[cfg(test)]
mod tests;
mod values;

pub use frame::{Document, PackError, Reader, SECTION_IDS, Section, Sections, UnpackError, Writer};
pub use pack::Pack;
pub(crate) use pack::{pack_enum, pack_struct};
pub(crate) use values::Json;

use super::{GnbHandle, UpfHandle};

/// The names of what this process knows by handles.
pub trait Names {
    /// Whether handles are written as they are, in a document that stays in the process.
    fn keeps_handles(&self) -> bool {
        false
    }

    /// The Global RAN Node ID of a gNB; `None` if its association has ended.
    fn gnb_name(&self, _gnb: GnbHandle) -> Option<&str> {
        None
    }

    /// The host of a gNB ([`crate::kit::GnbInfo::host`]).
    fn gnb_host(&self, _gnb: GnbHandle) -> Option<std::net::IpAddr> {
        None
    }

    /// The gNB with that Global RAN Node ID; `None` if it has no association.
    fn gnb(&self, _name: &str) -> Option<GnbHandle> {
        None
    }

    /// The name of a UPF; `None` if its association has ended.
    fn upf_name(&self, _upf: UpfHandle) -> Option<&str> {
        None
    }

    /// The UPF with that name; `None` if it has no association.
    fn upf(&self, _name: &str) -> Option<UpfHandle> {
        None
    }
}

/// The names of an NF without gNBs and UPFs.
impl Names for () {}
