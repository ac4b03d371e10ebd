//! Errors of received messages, and the answers to them (TS 29.244 7.6).

use crate::header::Header;
use crate::ie::Cause;
use crate::ie_type::IeType;

/// A fault of an information element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IeFault {
    /// A mandatory information element is absent (TS 29.244 7.6.6).
    #[error("mandatory, but missing")]
    MandatoryMissing,
    /// A conditional information element is absent although its condition is met (TS 29.244 7.6.6).
    #[error("missing, although its condition is met")]
    ConditionalMissing,
    /// The value ends before its fields, or beyond the message (TS 29.244 7.6.7).
    #[error("its length does not match its contents")]
    InvalidLength,
    /// The value is invalid; the text gives the reason (TS 29.244 7.6.8).
    #[error("{0}")]
    Incorrect(&'static str),
}

/// A fault of an information element, with its location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{ie_type} at octet {offset}: {fault}")]
pub struct IeError {
    /// The type of the faulty or missing information element; the innermost, if groups are nested.
    pub ie_type: IeType,
    /// Offset of the information element in the message, or of the end of the group that lacks it.
    pub offset: usize,
    /// The fault.
    pub fault: IeFault,
}

impl IeError {
    /// The cause to answer a request with (TS 29.244 8.2.1).
    pub fn cause(&self) -> Cause {
        match self.fault {
            IeFault::MandatoryMissing => Cause::MandatoryIeMissing,
            IeFault::ConditionalMissing => Cause::ConditionalIeMissing,
            IeFault::InvalidLength => Cause::InvalidLength,
            IeFault::Incorrect(_) => Cause::MandatoryIeIncorrect,
        }
    }
}

/// Why a message could not be decoded. The variants correspond to the receiver's actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Too short for its header: discard silently (TS 29.244 7.6.3).
    #[error("{0} octets are too few for a PFCP header")]
    TooShort(usize),
    /// Another version of PFCP: answer Version Not Supported (TS 29.244 7.6.2).
    #[error("PFCP version {version} is not supported")]
    VersionNotSupported {
        /// The version received.
        version: u8,
        /// The sequence number, at its place in version 1.
        sequence: u32,
    },
    /// The datagram is shorter than the header's length: answer a request with cause Invalid Length, discard
    /// a response (TS 29.244 7.6.3).
    #[error("{} octets announced, {available} received", header.length)]
    LengthMismatch {
        /// The header, for the answer.
        header: Header,
        /// The number of octets after the first four.
        available: usize,
    },
    /// A message type that Release 17 does not define: discard silently (TS 29.244 7.6.4).
    #[error("unknown message type {}", header.message_type.0)]
    UnknownMessage {
        /// The header.
        header: Header,
    },
    /// An information element is faulty: answer a request with the error's cause and Offending IE.
    #[error("{}: {error}", header.message_type)]
    Ie {
        /// The header, for the answer.
        header: Header,
        /// The information element and its fault.
        error: IeError,
    },
}

/// The message, or one of its information elements, is too long for its length field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a PFCP message of {0} octets cannot be expressed")]
pub struct TooLong(pub usize);
