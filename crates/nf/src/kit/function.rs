//! What every NF is to its shard.

use super::{Input, Instant, Outbox};
use pith_types::Supi;
use serde_json::Value;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// A network function, or a part that sits beside them in a shard.
pub trait NetworkFunction: Send {
    /// Takes note of one thing that happened, and says what is to be done.
    fn handle(&mut self, now: Instant, input: Input, out: &mut Outbox);

    /// Adds what an operator asks to see, one JSON object an entry.
    fn inspect(&self, _what: Inspect, _list: &mut Vec<Value>) {}

    /// Does what an operator wants done, if it is this NF's to do; adds an entry for each thing it was done to.
    fn operate(&mut self, _now: Instant, _what: &Order, _out: &mut Outbox, _list: &mut Vec<Value>) {}
}

/// What an operator asks to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Inspect {
    /// UE contexts of the AMF.
    Ues,
    /// SM contexts of the SMF.
    Sessions,
    /// NF instances that the NRF knows.
    Instances,
}

/// What an operator wants done. Each shard is told, and does it to those that it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// AMF: ends registrations (TS 23.502 4.2.2.3.3: by O&M intervention).
    Deregister {
        /// Of whom.
        supis: Arc<[Supi]>,
        /// Why.
        why: Deregister,
    },
    /// SMF: puts a classifier and local anchor into a session (TS 23.502 4.3.5.4). The entry has a `refusal`, or null:
    /// then it has begun.
    Branch {
        /// Whose session.
        supi: Supi,
        /// Which.
        pdu_session_id: u8,
        /// Name of the UPF.
        upf: String,
        /// Destinations that packets leave there for: network and prefix length.
        destinations: Vec<(Ipv4Addr, u8)>,
    },
    /// SMF: takes it out again (TS 23.502 4.3.5.5); the entry is as that of `Branch`.
    Unbranch {
        /// Whose session.
        supi: Supi,
        /// Which.
        pdu_session_id: u8,
    },
}

/// Why an operator ends a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deregister {
    /// The UE is to register again, from the beginning.
    Anew,
    /// It is no subscriber any more.
    Withdrawn,
}
