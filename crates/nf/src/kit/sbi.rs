//! How an NF names whom it calls and who called.

use pith_sbi::ApiRoot;
use pith_types::{Dnn, InstanceId, ShardId, Snssai};
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
    pub const ALL: [Self; 8] = [
        Self::Nrf,
        Self::Udr,
        Self::Udm,
        Self::Ausf,
        Self::Pcf,
        Self::Nssf,
        Self::Smf,
        Self::Amf,
    ];

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
    Instance(Arc<str>),
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
    },
}

/// Who an NF instance is: what it registers and puts in the URIs that it gives out.
#[derive(Debug, Clone, PartialEq)]
pub struct Identity {
    /// `nfInstanceId`, a UUID.
    pub instance_id: Arc<str>,
    /// Where its services stand; its path prefix names the shard.
    pub api_root: Arc<ApiRoot>,
    /// The block of ids that is its own: instance part.
    pub instance: InstanceId,
    /// The block of ids that is its own: shard part.
    pub shard: ShardId,
}
