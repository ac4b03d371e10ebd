//! The interface between an NF and its shard.

use super::{Input, Instant, Outbox};
use pith_types::Supi;
use serde_json::Value;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// A network function, or another part of a shard that handles inputs.
pub trait NetworkFunction: Send {
    /// Handles one input and adds its effects to `out`.
    fn handle(&mut self, now: Instant, input: Input, out: &mut Outbox);

    /// Adds the state that an operator requests, one JSON object for each entry.
    fn inspect(&self, _what: Inspect, _list: &mut Vec<Value>) {}

    /// Carries out an operator's action, if it is this NF's; adds an entry for each object that it changed.
    fn operate(&mut self, _now: Instant, _what: &Order, _out: &mut Outbox, _list: &mut Vec<Value>) {}
}

/// State that an operator can request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Inspect {
    /// UE contexts of the AMF.
    Ues,
    /// SM contexts of the SMF.
    Sessions,
    /// NF instances that the NRF knows.
    Instances,
}

/// An operator's action. Each shard carries it out on its own UEs and sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Order {
    /// AMF: deregisters subscribers (TS 23.502 4.2.2.3.3: by O&M intervention).
    Deregister { supis: Arc<[Supi]>, why: Deregister },
    /// SMF: inserts an uplink classifier and a local PSA into a session (TS 23.502 4.3.5.4). The
    /// entry has a `refusal`; null means that the insertion has started.
    Branch {
        supi: Supi,
        pdu_session_id: u8,
        /// Name of the UPF.
        upf: String,
        /// Destinations of packets that leave at the local PSA: network and prefix length.
        destinations: Vec<(Ipv4Addr, u8)>,
    },
    /// SMF: removes the uplink classifier (TS 23.502 4.3.5.5); the entry is as for `Branch`.
    Unbranch { supi: Supi, pdu_session_id: u8 },
}

/// Why an operator deregisters a subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deregister {
    /// The UE must register again.
    Anew,
    /// The subscription is withdrawn.
    Withdrawn,
}
