//! What every NF is to its shard.

use super::{Input, Instant, Outbox};

/// A network function, or a part that sits beside them in a shard.
pub trait NetworkFunction: Send {
    /// Takes note of one thing that happened, and says what is to be done.
    fn handle(&mut self, now: Instant, input: Input, out: &mut Outbox);

    /// Adds what an operator asks to see, one JSON object an entry.
    fn inspect(&self, _what: Inspect, _list: &mut Vec<serde_json::Value>) {}
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
