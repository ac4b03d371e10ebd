//! The header of a PFCP message (TS 29.244 7.2.2).

use std::fmt;

use crate::error::DecodeError;
use crate::ie::Cause;
use crate::ie_type::IeType;

/// The supported version of PFCP.
pub const PFCP_VERSION: u8 = 1;

/// Octets that the Message Length field excludes.
const UNCOUNTED_LEN: usize = 4;

/// The type of a message (TS 29.244 table 7.3-1); unknown values are preserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageType(pub u8);

macro_rules! message_types {
    ($($value:literal $name:ident $text:literal)*) => {
        impl MessageType {
            $(#[doc = concat!("PFCP ", $text, ".")] pub const $name: MessageType = MessageType($value);)*

            /// The name in table 7.3-1, if the type is one of Release 17.
            pub fn name(self) -> Option<&'static str> {
                match self {
                    $(MessageType::$name => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

message_types! {
    1 HEARTBEAT_REQUEST "Heartbeat Request"
    2 HEARTBEAT_RESPONSE "Heartbeat Response"
    3 PFD_MANAGEMENT_REQUEST "PFD Management Request"
    4 PFD_MANAGEMENT_RESPONSE "PFD Management Response"
    5 ASSOCIATION_SETUP_REQUEST "Association Setup Request"
    6 ASSOCIATION_SETUP_RESPONSE "Association Setup Response"
    7 ASSOCIATION_UPDATE_REQUEST "Association Update Request"
    8 ASSOCIATION_UPDATE_RESPONSE "Association Update Response"
    9 ASSOCIATION_RELEASE_REQUEST "Association Release Request"
    10 ASSOCIATION_RELEASE_RESPONSE "Association Release Response"
    11 VERSION_NOT_SUPPORTED_RESPONSE "Version Not Supported Response"
    12 NODE_REPORT_REQUEST "Node Report Request"
    13 NODE_REPORT_RESPONSE "Node Report Response"
    14 SESSION_SET_DELETION_REQUEST "Session Set Deletion Request"
    15 SESSION_SET_DELETION_RESPONSE "Session Set Deletion Response"
    16 SESSION_SET_MODIFICATION_REQUEST "Session Set Modification Request"
    17 SESSION_SET_MODIFICATION_RESPONSE "Session Set Modification Response"
    50 SESSION_ESTABLISHMENT_REQUEST "Session Establishment Request"
    51 SESSION_ESTABLISHMENT_RESPONSE "Session Establishment Response"
    52 SESSION_MODIFICATION_REQUEST "Session Modification Request"
    53 SESSION_MODIFICATION_RESPONSE "Session Modification Response"
    54 SESSION_DELETION_REQUEST "Session Deletion Request"
    55 SESSION_DELETION_RESPONSE "Session Deletion Response"
    56 SESSION_REPORT_REQUEST "Session Report Request"
    57 SESSION_REPORT_RESPONSE "Session Report Response"
}

impl MessageType {
    /// Whether a message of this type is a response.
    pub fn is_response(self) -> bool {
        matches!(self.0, 2 | 4 | 6 | 8 | 10 | 11 | 13 | 15 | 17 | 51 | 53 | 55 | 57)
    }

    /// Whether this is a session related message, whose header contains a SEID (TS 29.244 7.2.2.3).
    pub fn is_session_related(self) -> bool {
        (50..100).contains(&self.0)
    }
}

impl fmt::Display for MessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "PFCP message {}", self.0),
        }
    }
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The message's type.
    pub message_type: MessageType,
    /// The receiver's SEID; `None` in node related messages, 0 if it is not known yet.
    pub seid: Option<u64>,
    /// Matches a response with its request; 24 bits.
    pub sequence: u32,
    /// Relative priority, 0 (highest) to 15, if the sender gave one.
    pub priority: Option<u8>,
    /// Another message follows in the datagram (TS 29.244 6.5).
    pub follow_on: bool,
    /// Octets of the message after the first four, by its Length field. Ignored by [`Header::encode`].
    pub length: u16,
}

const FLAG_SEID: u8 = 0x01;
const FLAG_PRIORITY: u8 = 0x02;
const FLAG_FOLLOW_ON: u8 = 0x04;

impl Header {
    /// The header of a message of `message_type`, with a SEID if it is session related.
    pub fn new(message_type: MessageType, seid: u64, sequence: u32) -> Self {
        let seid = message_type.is_session_related().then_some(seid);
        Header { message_type, seid, sequence, priority: None, follow_on: false, length: 0 }
    }

    /// Octets of the header on the wire.
    pub fn encoded_len(&self) -> usize {
        if self.seid.is_some() { 16 } else { 8 }
    }

    /// Decodes the header at the start of `datagram`, and returns it with the following octets of the
    /// message.
    pub fn decode(datagram: &[u8]) -> Result<(Header, &[u8]), DecodeError> {
        let too_short = DecodeError::TooShort(datagram.len());
        let header = Header::parse(datagram).ok_or(too_short)?;
        let version = datagram.first().map_or(0, |octet| octet >> 5);
        if version != PFCP_VERSION {
            return Err(DecodeError::VersionNotSupported { version, sequence: header.sequence });
        }
        let available = datagram.len() - UNCOUNTED_LEN;
        let end = UNCOUNTED_LEN + usize::from(header.length);
        let body = datagram
            .get(header.encoded_len()..end)
            .ok_or(DecodeError::LengthMismatch { header, available })?;
        if end < datagram.len() && !header.follow_on {
            return Err(DecodeError::LengthMismatch { header, available });
        }
        Ok((header, body))
    }

    /// The fields of version 1; `None` if `datagram` is truncated.
    fn parse(datagram: &[u8]) -> Option<Header> {
        let (&[flags, message_type, length_high, length_low], rest) = datagram.split_first_chunk::<4>()?;
        let (seid, rest) = match flags & FLAG_SEID {
            0 => (None, rest),
            _ => rest.split_first_chunk::<8>().map(|(seid, rest)| (Some(u64::from_be_bytes(*seid)), rest))?,
        };
        let &[high, middle, low, last] = rest.first_chunk::<4>()?;
        Some(Header {
            message_type: MessageType(message_type),
            seid,
            sequence: u32::from_be_bytes([0, high, middle, low]),
            priority: (flags & FLAG_PRIORITY != 0 && seid.is_some()).then_some(last >> 4),
            follow_on: flags & FLAG_FOLLOW_ON != 0,
            length: u16::from_be_bytes([length_high, length_low]),
        })
    }

    /// Appends the header of a message of `length` octets after the first four.
    pub(crate) fn encode(&self, length: u16, out: &mut Vec<u8>) {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let flags = flag(self.seid.is_some(), FLAG_SEID)
            | flag(self.priority.is_some(), FLAG_PRIORITY)
            | flag(self.follow_on, FLAG_FOLLOW_ON);
        out.extend([PFCP_VERSION << 5 | flags, self.message_type.0]);
        out.extend(length.to_be_bytes());
        if let Some(seid) = self.seid {
            out.extend(seid.to_be_bytes());
        }
        let [_, high, middle, low] = self.sequence.to_be_bytes();
        out.extend([high, middle, low, self.priority.unwrap_or(0) << 4]);
    }
}

/// The header fields by which a gateway routes a message, unchecked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peek {
    /// The message's type.
    pub message_type: MessageType,
    /// The receiver's SEID; `None` in node related messages.
    pub seid: Option<u64>,
    /// The 24 bit sequence number.
    pub sequence: u32,
}

/// Reads the header of `datagram` without checking the rest; `None` if it is not a header of version 1.
pub fn peek(datagram: &[u8]) -> Option<Peek> {
    let header = Header::parse(datagram)?;
    let version = datagram.first()? >> 5;
    (version == PFCP_VERSION).then_some(Peek {
        message_type: header.message_type,
        seid: header.seid,
        sequence: header.sequence,
    })
}

/// The Cause of a message that may lack other information elements; `None` if there is none at its top level.
pub fn peek_cause(message: &[u8]) -> Option<Cause> {
    let header = Header::parse(message)?;
    let mut rest = message.get(header.encoded_len()..UNCOUNTED_LEN + usize::from(header.length))?;
    loop {
        let (&[kind_high, kind_low, length_high, length_low], after) = rest.split_first_chunk::<4>()?;
        let length = u16::from_be_bytes([length_high, length_low]);
        let (value, next) = after.split_at_checked(length.into())?;
        if IeType(u16::from_be_bytes([kind_high, kind_low])) == IeType::CAUSE {
            return value.first().map(|cause| Cause::from(*cause));
        }
        rest = next;
    }
}

/// Splits a datagram into its bundled messages (TS 29.244 6.5, 7.2.1A); usually there is one.
pub fn bundled(datagram: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(datagram);
    std::iter::from_fn(move || {
        let bytes = rest.take()?;
        let Some(header) = Header::parse(bytes).filter(|header| header.follow_on) else { return Some(bytes) };
        match bytes.split_at_checked(UNCOUNTED_LEN + usize::from(header.length)) {
            Some((message, following)) => {
                rest = Some(following);
                Some(message)
            }
            None => Some(bytes),
        }
    })
}
