//! What is wrong with a NAS message, where, and what the sender is told (TS 24.501 clause 7).

use crate::cause::{GmmCause, GsmCause};
use std::fmt;

/// A message that can not be handled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{ie} at octet {offset}: {fault}")]
pub struct NasError {
    /// Octets from the start of the message to what is wrong.
    pub offset: usize,
    /// The name of the IE, or of the part of the header.
    pub ie: &'static str,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What can be wrong with a message as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Too short to say which message it is: ignored (TS 24.501 7.2.1).
    TooShort,
    /// The extended protocol discriminator is another one.
    OtherProtocol(u8),
    /// The message is security protected, where a plain one is needed.
    Protected,
    /// A PDU session identity that is reserved: ignored (TS 24.501 7.3.2).
    ReservedPduSessionIdentity(u8),
    /// The procedure transaction identity 255, which is reserved: ignored (TS 24.501 7.3.1).
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
    /// The cause that a 5GMM STATUS names, or a reject; `None` where the message is ignored.
    pub fn gmm_cause(&self) -> Option<GmmCause> {
        match self.fault {
            Fault::UnknownMessageType(_) => Some(GmmCause::MessageTypeNonExistentOrNotImplemented),
            Fault::Missing | Fault::Malformed(_) | Fault::ComprehensionRequired(_) => {
                Some(GmmCause::InvalidMandatoryInformation)
            }
            _ => None,
        }
    }

    /// The cause that a 5GSM STATUS names, or a reject; `None` where the message is ignored.
    pub fn gsm_cause(&self) -> Option<GsmCause> {
        self.gmm_cause().map(|cause| GsmCause::from_code(cause.code()))
    }
}

/// Why the value of an IE is syntactically incorrect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// An optional IE that was not taken as it came; the rest of the message stands
/// (TS 24.501 7.6, 7.7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// Octets from the start of the message to the IE.
    pub offset: usize,
    /// The IE identifier.
    pub iei: u8,
    /// What was done with it.
    pub what: Noted,
}

/// What can be noted of an optional IE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noted {
    /// Not an IE of the message as we know it: skipped (7.6.1).
    Unknown,
    /// There a second time: the first one counts (7.6.3).
    Repeated,
    /// Syntactically incorrect: counts as absent (7.7.1).
    Malformed(&'static str),
    /// It came after an IE that it should precede. A UE ignores such an IE and a network should
    /// (7.6.2); the decoder takes it, and leaves it to a strict caller to refuse.
    OutOfSequence,
}
