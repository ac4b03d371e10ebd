//! Handover of a UPF-C's state to its successor: another process, perhaps of another version of Pith (docs/adr/0028).
//!
//! ```text
//!  Upf::export ──▶ head, associations, sessions, requests, responses, end ──▶ Importer::take … finish ──▶ Upf
//!  Upf::counted_since ──▶ what the former datapath counted until its last packet ──▶ Upf::add_counted
//! ```
//!
//! The state is a sequence of records, each a JSON text, so that none needs the memory of all. Rules are PFCP messages in it. Memory
//! layouts are no part of it: the successor compiles the rules again. It refuses the whole if one record is invalid, and then its
//! predecessor goes on.

mod export;
mod heartbeats;
mod import;
pub(crate) mod micros;
mod provisioned;
mod record;
mod usage;

pub use export::Counted;
pub use heartbeats::Heartbeats;
pub use import::Importer;
pub(crate) use record::{Octets, ResponseRecord};

use pith_pfcp::MessageType;

use crate::contract::SessionId;

/// The version of the records.
pub const FORMAT: u32 = 1;

/// The reason why a state cannot be handed over.
#[derive(Debug, thiserror::Error)]
pub enum HandoverError {
    /// A rule does not fit into a PFCP message.
    #[error("a rule of session {:#x} is too long", session.0)]
    TooLong {
        /// The session.
        session: SessionId,
    },
    /// A record is no JSON text of a known form.
    #[error("a record cannot be read: {0}")]
    Record(#[from] serde_json::Error),
    /// A record cannot be passed on.
    #[error(transparent)]
    Channel(#[from] std::io::Error),
    /// Octets that should be a PFCP message.
    #[error("a PFCP message in the state cannot be decoded: {0}")]
    Pfcp(String),
    /// A PFCP message of another type than expected.
    #[error("a PFCP message in the state has the unexpected type {0}")]
    Unexpected(MessageType),
    /// Records are missing, repeated, or in the wrong order.
    #[error("the state is incomplete, or its records are in the wrong order")]
    Incomplete,
    /// A session cannot be installed.
    #[error("session {:#x} cannot be taken over: {reason}; if the configuration has changed, restart the UPF instead", session.0)]
    Session {
        /// The session.
        session: SessionId,
        /// The reason.
        reason: String,
    },
    /// Another UPF.
    #[error("the running UPF has the Node ID {0}, another one than the configuration")]
    OtherNode(String),
    /// More than the configuration permits.
    #[error("the running UPF has more {0} than the configuration permits")]
    TooMany(&'static str),
}
