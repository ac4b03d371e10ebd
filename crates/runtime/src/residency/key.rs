//! Names of documents: kind, block of ids, number within the block.

use std::fmt;

/// Blocks of ids: 10 bits in every id.
pub const BLOCKS: usize = 1024;

/// What a document is the context of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DocumentKind {
    /// A UE context of the AMF.
    Amf = 1,
    /// An SM context of the SMF.
    Smf = 2,
    /// An authentication context of the AUSF.
    Ausf = 3,
    /// A UE context of the UDM.
    Udm = 4,
    /// A policy association of the PCF.
    Pcf = 5,
    /// A record of the NRF: a profile or a subscription.
    Nrf = 6,
    /// One document of all NFs for a UE (residency `shared`).
    Ue = 7,
    /// The run of an SMF at its UPFs. (Codes 8 to 27 are not used.)
    SmfRun = 28,
}

impl DocumentKind {
    /// All kinds.
    pub const ALL: [Self; 8] =
        [Self::Amf, Self::Smf, Self::Ausf, Self::Udm, Self::Pcf, Self::Nrf, Self::Ue, Self::SmfRun];

    /// The name in keys of Redis, errors and statistics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Amf => "amf",
            Self::Smf => "smf",
            Self::Ausf => "ausf",
            Self::Udm => "udm",
            Self::Pcf => "pcf",
            Self::Nrf => "nrf",
            Self::Ue => "ue",
            Self::SmfRun => "smf-run",
        }
    }

    /// The kind with that code in a record.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == code)
    }
}

/// The stable name of a document. It outlives processes, and contains no subscriber identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DocumentKey {
    /// What the document is the context of.
    pub kind: DocumentKind,
    /// Block of ids, below `BLOCKS`; the owner map says who may write its documents.
    pub block: u16,
    /// Number within the block.
    pub number: u32,
}

impl DocumentKey {
    /// `None` if the block is out of range.
    pub const fn new(kind: DocumentKind, block: u16, number: u32) -> Option<Self> {
        if (block as usize) < BLOCKS { Some(Self { kind, block, number }) } else { None }
    }
}

impl fmt::Display for DocumentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:x}:{:x}", self.kind.name(), self.block, self.number)
    }
}

/// Version of the owner map under which a write is made: a fencing token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct OwnerVersion(pub u64);

/// Number of a document's change, which its owner counts from 1. 0: there is no document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Revision(pub u64);

/// Wall-clock time in milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnixMillis(pub u64);
