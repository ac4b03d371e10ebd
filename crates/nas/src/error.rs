//! Errors in a NAS message: position, IE, and the cause for the sender (TS 24.501 clause 7).

use crate::cause::{GmmCause, GsmCause};
use std::fmt;

/// A message that can't be processed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{ie} at octet {offset}: {fault}")]
pub struct NasError {
    /// Offset of the error from the start of the message.
    pub offset: usize,
    /// Name of the IE or header field.
    pub ie: &'static str,
    /// The error.
    pub fault: Fault,
}

/// Errors of a message as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Too short to contain a message type: ignored (TS 24.501 7.2.1).
    TooShort,
    /// Another extended protocol discriminator.
    OtherProtocol(u8),
    /// The message is security protected, and a plain one is expected.
    Protected,
    /// A reserved PDU session identity: ignored (TS 24.501 7.3.2).
    ReservedPduSessionIdentity(u8),
    /// The reserved procedure transaction identity 255: ignored (TS 24.501 7.3.1).
    ReservedPti,
    /// A message type that does not exist or is not implemented (TS 24.501 7.4).
    UnknownMessageType(u8),
    /// A mandatory IE is missing (TS 24.501 7.5.1).
    Missing,
    /// A mandatory IE is syntactically incorrect (TS 24.501 7.5.1).
    Malformed(&'static str),
    /// An unknown IE is encoded as 'comprehension required' (TS 24.501 7.5.1).
    ComprehensionRequired(u8),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort => f.write_str("the message ends here"),
            Self::OtherProtocol(epd) => write!(f, "protocol discriminator {epd:#04x}"),
            Self::Protected => f.write_str("security protected, expected plain"),
            Self::ReservedPduSessionIdentity(id) => write!(f, "{id} is reserved"),
            Self::ReservedPti => f.write_str("255 is reserved"),
            Self::UnknownMessageType(code) => write!(f, "message type {code:#04x} is unknown"),
            Self::Missing => f.write_str("mandatory IE is missing"),
            Self::Malformed(why) => write!(f, "mandatory IE: {why}"),
            Self::ComprehensionRequired(iei) => {
                write!(f, "unknown IEI {iei:#04x} requires comprehension")
            }
        }
    }
}

impl NasError {
    /// The cause for 5GMM STATUS or a reject; `None` if the message is ignored.
    pub fn gmm_cause(&self) -> Option<GmmCause> {
        match self.fault {
            Fault::UnknownMessageType(_) => Some(GmmCause::MessageTypeNonExistentOrNotImplemented),
            Fault::Missing | Fault::Malformed(_) | Fault::ComprehensionRequired(_) => {
                Some(GmmCause::InvalidMandatoryInformation)
            }
            _ => None,
        }
    }

    /// The cause for 5GSM STATUS or a reject; `None` if the message is ignored.
    pub fn gsm_cause(&self) -> Option<GsmCause> {
        self.gmm_cause().map(|cause| GsmCause::from_code(cause.code()))
    }
}

/// Why the value of an IE is syntactically incorrect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// An optional IE that was not accepted as received; the rest of the message is valid (TS 24.501 7.6, 7.7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// Offset of the IE from the start of the message.
    pub offset: usize,
    /// The IE identifier.
    pub iei: u8,
    /// How the decoder treated it.
    pub what: Noted,
}

/// Treatment of an optional IE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noted {
    /// Unknown in this message: skipped (7.6.1).
    Unknown,
    /// Repeated: the first one counts (7.6.3).
    Repeated,
    /// Syntactically incorrect: counts as absent (7.7.1).
    Malformed(&'static str),
    /// Received after an IE that it must precede. A UE must ignore such an IE and a network should
    /// (7.6.2). The decoder accepts it; a strict caller can refuse it.
    OutOfSequence,
}
