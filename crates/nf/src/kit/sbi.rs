//! How an NF names whom it calls and who called.

use super::{Instant, WallClock};
use pith_sbi::common::DateTime;
use pith_sbi::{ApiRoot, NfInstanceId, NfType};
use pith_types::{Dnn, InstanceId, Plmn, ShardId, Snssai};
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
    /// Not an NF: the shard's SBI agent, which registers, discovers and finds the way.
    Agent,
}

impl Nf {
    /// Every NF that can be hosted, in the order in which they start.
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

    /// The NF of that type, if it can be hosted here.
    pub fn of_type(nf_type: &NfType) -> Option<Self> {
        Self::ALL.into_iter().find(|nf| nf.nf_type().as_ref() == Some(nf_type))
    }

    /// The NF of that name, `amf`.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|nf| nf.name() == name)
    }
}

impl fmt::Display for Nf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Comes back with the reply: whose call it was and at which step, so that a late reply to a step that
/// is over is known as such.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag {
    /// The NF's own: the [`crate::kit::Key`] of a UE, a session, a transaction.
    pub owner: u64,
    /// Which of the owner's calls.
    pub step: u32,
}

/// Whom a call goes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// An instance that offers the operation's service, chosen by the agent (design section 8).
    Service(Selection),
    /// A known instance: one that answered before, or that a resource URI names.
    Root(Arc<ApiRoot>),
    /// The NF instance of that id, found through the NRF.
    Instance(NfInstanceId),
}

/// What the instance must serve, where that matters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Selection {
    /// A slice.
    pub snssai: Option<Snssai>,
    /// A data network.
    pub dnn: Option<Dnn>,
}

impl Target {
    /// Any instance that offers the operation's service.
    pub fn any() -> Self {
        Self::Service(Selection::default())
    }
}

/// Who asked, to be handed back with the answer. Opaque to NFs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Caller {
    /// An NF of the same shard.
    Local {
        /// Which.
        nf: Nf,
        /// Its tag.
        tag: Tag,
    },
    /// An NF of another shard of this process, or (in a simulated world) of another process.
    Shard {
        /// Which shard, as the shell numbers them.
        shard: u16,
        /// Which NF there.
        nf: Nf,
        /// Its tag.
        tag: Tag,
    },
    /// A client beyond HTTP/2, by the shell's number of the exchange.
    Remote {
        /// The exchange.
        exchange: u64,
        /// The NF instance that its token or its certificate names; of several in a certificate the first. `None` where
        /// nothing proves it.
        client: Option<NfInstanceId>,
    },
}

/// Who an NF instance is: what it registers and puts in the URIs that it gives out.
#[derive(Debug, Clone, PartialEq)]
pub struct Identity {
    /// `nfInstanceId`, a UUID.
    pub instance_id: NfInstanceId,
    /// Where its services stand; its path prefix names the shard.
    pub api_root: Arc<ApiRoot>,
    /// The network that it belongs to.
    pub plmn: Plmn,
    /// The block of ids that is its own: instance part.
    pub instance: InstanceId,
    /// The block of ids that is its own: shard part.
    pub shard: ShardId,
    /// The wall clock when [`Instant`] began to count, milliseconds since 1970.
    pub epoch_unix_ms: i64,
}

impl Identity {
    /// What the wall clock shows at that moment.
    pub fn date_time(&self, now: Instant) -> DateTime {
        WallClock::of_epoch(self.epoch_unix_ms).date_time(now)
    }
}
