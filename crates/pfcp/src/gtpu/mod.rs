//! GTP-U: tunnels of the user plane (TS 29.281), with the PDU Session Container (TS 38.415).
//!
//! [`Packet::decode`] borrows and copies nothing; [`GpduHeader::write_before`] writes a tunnel's header
//! before a packet in place; [`Signalling`] contains the other messages between endpoints.

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
