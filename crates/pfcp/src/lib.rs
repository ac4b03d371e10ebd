//! PFCP (TS 29.244, Release 17) and GTP-U (TS 29.281) on the wire. See the crate's README for its contract.
//!
//! [`Message::decode`] and [`Message::encode`] handle whole PFCP messages; [`peek`] reads the header fields
//! that a gateway needs; [`gtpu`] is the framing of the user plane.

pub mod error;
pub mod group;
pub mod gtpu;
mod header;
pub mod ie;
mod ie_type;
pub mod message;
pub mod rules;
pub mod wire;

pub use error::{DecodeError, IeError, IeFault, TooLong};
pub use group::{Change, OtherIe};
pub use header::{Header, MessageType, PFCP_VERSION, Peek, bundled, peek, peek_cause};
pub use ie_type::IeType;
pub use message::Message;
