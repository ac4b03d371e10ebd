//! How an NF addresses other NFs: targets of calls, and callers.

use super::{Client, Instant, ReferenceKey, WallClock};
use pith_sbi::common::DateTime;
use pith_sbi::{ApiRoot, NfInstanceId, NfType, Uri};
use pith_types::{BlockId, BlockOwner, Dnn, Guami, OwnerMap, Plmn, Snssai, Tai};
use std::fmt;
use std::sync::Arc;

/// The network functions that a shard can host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Nf {
    /// Access and Mobility Management Function.
    Amf,
    /// Session Management Function.
    Smf,
    /// Authentication Server Function.
    Ausf,
    /// Unified Data Management.
    Udm,
    /// Unified Data Repository.
    Udr,
    /// Policy Control Function.
    Pcf,
    /// Network Repository Function.
    Nrf,
    /// Network Slice Selection Function.
    Nssf,
    /// Not an NF: the shard's SBI agent, which registers NFs, discovers others and routes calls.
    Agent,
}

impl Nf {
    /// All NFs that a shard can host, in start order.
    pub const ALL: [Self; 8] =
        [Self::Nrf, Self::Udr, Self::Udm, Self::Ausf, Self::Pcf, Self::Nssf, Self::Smf, Self::Amf];

    /// The name in configuration, commands and ladders.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Amf => "amf",
            Self::Smf => "smf",
            Self::Ausf => "ausf",
            Self::Udm => "udm",
            Self::Udr => "udr",
            Self::Pcf => "pcf",
            Self::Nrf => "nrf",
            Self::Nssf => "nssf",
            Self::Agent => "agent",
        }
    }
}

impl Nf {
    /// The type in NF profiles; `None` for the agent.
    pub const fn nf_type(self) -> Option<NfType> {
        Some(match self {
            Self::Amf => NfType::Amf,
            Self::Smf => NfType::Smf,
            Self::Ausf => NfType::Ausf,
            Self::Udm => NfType::Udm,
            Self::Udr => NfType::Udr,
            Self::Pcf => NfType::Pcf,
            Self::Nrf => NfType::Nrf,
            Self::Nssf => NfType::Nssf,
            Self::Agent => return None,
        })
    }

    /// The NF of that type, if Pith has it.
    pub fn of_type(nf_type: &NfType) -> Option<Self> {
        Self::ALL.into_iter().find(|nf| nf.nf_type().as_ref() == Some(nf_type))
    }

    /// The NF of that name, such as `amf`.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|nf| nf.name() == name)
    }
}

impl fmt::Display for Nf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Identifies a call: returned with the reply. A reply to a step that is over can be recognised by its tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag {
    /// Chosen by the NF: the [`crate::kit::Key`] of a UE, a session, a transaction.
    pub owner: u64,
    /// The number of the call among its owner's.
    pub step: u32,
    /// The run of the shard, as [`crate::fabric::Shard`] sets it in what leaves the shard: a later run takes no reply to an earlier
    /// one. 0 within a shard.
    pub run: u16,
}

impl Tag {
    /// The tag of a call within its shard.
    pub const fn new(owner: u64, step: u32) -> Self {
        Self { owner, step, run: 0 }
    }
}

/// The destination of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// An instance that offers the operation's service, chosen by the agent (design section 8).
    Service(Selection),
    /// A known instance: one that answered before, or the one in a resource URI.
    Root(Arc<ApiRoot>),
    /// The instance that gave out this URI. If that is this process: the shard that has the context which the URI names.
    Context(Uri),
    /// The NF instance of that id, found through the NRF.
    Instance(NfInstanceId),
}

/// What the instance must serve, if that matters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Selection {
    /// A slice.
    pub snssai: Option<Snssai>,
    /// An instance of the slice, by its NSI ID (TS 29.531 6.1.6.2.8).
    pub slice_instance: Option<Arc<str>>,
    /// A data network.
    pub dnn: Option<Dnn>,
    /// A tracking area.
    pub tai: Option<Tai>,
    /// The AMF of that GUAMI.
    pub guami: Option<Guami>,
    /// An AMF of that region and set.
    pub amf_set: Option<(u8, u16)>,
    /// Not an instance of this process, nor of its set.
    pub is_other: bool,
}

impl Target {
    /// Any instance that offers the operation's service.
    pub fn any() -> Self {
        Self::Service(Selection::default())
    }
}

/// The sender of a request, returned with the answer. Opaque to NFs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Caller {
    /// An NF of the same shard.
    Local { nf: Nf, tag: Tag },
    /// An NF of another shard of this process, or (in the simulation) of another process.
    Shard {
        /// The shell's number of the shard.
        shard: u16,
        nf: Nf,
        tag: Tag,
    },
    /// An HTTP/2 client, by the shell's number of the exchange.
    Remote {
        exchange: u64,
        /// What its certificate and its token prove; `None` for a process of the same user in cleartext.
        client: Option<Client>,
    },
}

/// Identity of an NF instance, and of one of its shards: what it registers, and the root of the URIs that it creates.
#[derive(Debug, Clone, PartialEq)]
pub struct Identity {
    /// `nfInstanceId`, a UUID.
    pub instance_id: NfInstanceId,
    /// API root of its services, the same for all shards of the process.
    pub api_root: Arc<ApiRoot>,
    /// The network that it belongs to.
    pub plmn: Plmn,
    /// Instance and shard as the owner map has them.
    pub owner: BlockOwner,
    /// The owner of each block of ids.
    pub owners: Arc<OwnerMap>,
    /// The key of the references in its URIs.
    pub reference_key: ReferenceKey,
    /// The wall clock at the start of [`Instant`], milliseconds since 1970.
    pub epoch_unix_ms: i64,
}

impl Identity {
    /// The blocks of ids that this shard owns.
    pub fn blocks(&self) -> impl Iterator<Item = BlockId> {
        self.owners.blocks_of(self.owner)
    }

    /// The wall clock at that instant.
    pub fn date_time(&self, now: Instant) -> DateTime {
        WallClock::of_epoch(self.epoch_unix_ms).date_time(now)
    }
}
