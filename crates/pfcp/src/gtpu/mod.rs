//! GTP-U: tunnels of the user plane (TS 29.281), with the PDU Session Container (TS 38.415).
//!
//! [`Packet::decode`] borrows what it can and copies nothing; [`GpduHeader::write_before`] puts the header of a tunnel
//! in front of a packet in place; [`Signalling`] is what the endpoints tell each other.

mod container;
mod header;
mod signalling;

pub use container::{
    DlPduSessionInformation, PduSessionInformation, QosMonitoringTimes, UlPduSessionInformation,
};
pub use header::{
    Comprehension, ExtensionHeader, ExtensionHeaders, GTPU_PORT, GpduHeader, GtpuError, GtpuMessageType,
    Packet,
};
pub use signalling::{ErrorIndication, Signalling};
