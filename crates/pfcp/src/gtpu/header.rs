//! The header of GTP-U and its extension headers (TS 29.281 5.1, 5.2).

use super::container::{DlPduSessionInformation, PduSessionInformation};

/// The UDP port of GTP-U (TS 29.281 4.4.2).
pub const GTPU_PORT: u16 = 2152;

/// Version 1 in the upper three bits, and Protocol Type 1: GTP, not GTP'.
const VERSION_AND_TYPE: u8 = 0x30;
const FLAG_EXTENSION: u8 = 0x04;
const FLAG_SEQUENCE: u8 = 0x02;
const FLAG_N_PDU: u8 = 0x01;
const FLAGS_OPTIONAL: u8 = FLAG_EXTENSION | FLAG_SEQUENCE | FLAG_N_PDU;

/// Octets that the Length field excludes.
const MANDATORY_LEN: usize = 8;

/// The type of a message (TS 29.281 table 6.1-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GtpuMessageType(pub u8);

impl GtpuMessageType {
    /// Echo Request.
    pub const ECHO_REQUEST: Self = GtpuMessageType(1);
    /// Echo Response.
    pub const ECHO_RESPONSE: Self = GtpuMessageType(2);
    /// Error Indication.
    pub const ERROR_INDICATION: Self = GtpuMessageType(26);
    /// Supported Extension Headers Notification.
    pub const SUPPORTED_EXTENSION_HEADERS_NOTIFICATION: Self = GtpuMessageType(31);
    /// Tunnel Status.
    pub const TUNNEL_STATUS: Self = GtpuMessageType(253);
    /// End Marker.
    pub const END_MARKER: Self = GtpuMessageType(254);
    /// G-PDU: a user packet.
    pub const G_PDU: Self = GtpuMessageType(255);
}

/// Why octets are not a GTP-U packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GtpuError {
    /// Another version, or GTP'.
    #[error("neither version 1 nor GTP (first octet {0:#04x})")]
    Version(u8),
    /// The packet ends before its header, or before the header's length.
    #[error("the packet is truncated")]
    Truncated,
    /// An extension header has length 0, or ends after the packet.
    #[error("an extension header has an invalid length")]
    ExtensionHeader,
    /// An information element is missing or too short.
    #[error("an information element is missing or too short")]
    InformationElement,
}

/// A GTP-U packet in memory.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The message type.
    pub message_type: GtpuMessageType,
    /// The receiver's TEID; 0 in path messages.
    pub teid: u32,
    /// The sequence number, if the S flag is set.
    pub sequence: Option<u16>,
    /// The extension headers.
    pub extensions: ExtensionHeaders<'a>,
    /// The octets after the headers: a user packet or information elements.
    pub payload: &'a [u8],
    /// Octets before the payload.
    pub header_len: usize,
}

impl<'a> Packet<'a> {
    /// Decodes the headers. Octets beyond the header's length are ignored.
    pub fn decode(bytes: &'a [u8]) -> Result<Packet<'a>, GtpuError> {
        let (&[flags, message_type, length_high, length_low, a, b, c, d], rest) =
            bytes.split_first_chunk::<MANDATORY_LEN>().ok_or(GtpuError::Truncated)?;
        if flags & 0xf0 != VERSION_AND_TYPE {
            return Err(GtpuError::Version(flags));
        }
        let length = u16::from_be_bytes([length_high, length_low]);
        let contents = rest.get(..length.into()).ok_or(GtpuError::Truncated)?;
        let mut packet = Packet {
            message_type: GtpuMessageType(message_type),
            teid: u32::from_be_bytes([a, b, c, d]),
            sequence: None,
            extensions: ExtensionHeaders::none(),
            payload: contents,
            header_len: MANDATORY_LEN,
        };
        if flags & FLAGS_OPTIONAL != 0 {
            packet.decode_optional(flags, contents)?;
        }
        Ok(packet)
    }

    fn decode_optional(&mut self, flags: u8, contents: &'a [u8]) -> Result<(), GtpuError> {
        let (&[high, low, _n_pdu, next], rest) =
            contents.split_first_chunk::<4>().ok_or(GtpuError::Truncated)?;
        self.sequence = (flags & FLAG_SEQUENCE != 0).then(|| u16::from_be_bytes([high, low]));
        let first = if flags & FLAG_EXTENSION != 0 { next } else { 0 };
        let all = ExtensionHeaders { next: first, bytes: rest };
        let mut walk = all;
        for extension in walk.by_ref() {
            extension?;
        }
        self.payload = walk.bytes;
        self.extensions = all;
        self.header_len = MANDATORY_LEN + contents.len() - walk.bytes.len();
        Ok(())
    }

    /// The PDU Session Container, if there is a valid one.
    pub fn pdu_session_information(&self) -> Option<PduSessionInformation> {
        let container =
            |header: ExtensionHeader<'_>| header.header_type == ExtensionHeader::PDU_SESSION_CONTAINER;
        let header = self.extensions.flatten().find(|header| container(*header))?;
        PduSessionInformation::decode(header.content)
    }

    /// The first extension header that the endpoint must comprehend but for which `knows` is false: such a
    /// packet is discarded and answered with a Supported Extension Headers Notification (TS 29.281 5.2.1).
    pub fn uncomprehended(&self, knows: impl Fn(u8) -> bool) -> Option<u8> {
        let required = |header: &ExtensionHeader<'_>| {
            header.comprehension() >= Comprehension::Endpoint && !knows(header.header_type)
        };
        self.extensions.flatten().find(required).map(|header| header.header_type)
    }
}

/// The required comprehension of an extension header: the upper two bits of its type (TS 29.281 figure
/// 5.2.1-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Comprehension {
    /// Not required; forwarded if not comprehended.
    NotRequiredForward,
    /// Not required; discarded if not comprehended.
    NotRequiredDiscard,
    /// Required by the endpoint.
    Endpoint,
    /// Required by every receiver.
    Recipient,
}

/// An extension header (TS 29.281 5.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtensionHeader<'a> {
    /// The type; its upper two bits are the required comprehension.
    pub header_type: u8,
    /// Its content, with padding.
    pub content: &'a [u8],
}

impl ExtensionHeader<'_> {
    /// The UDP port of the G-PDU that an Error Indication refers to.
    pub const UDP_PORT: u8 = 0x40;
    /// The PDU Session Container (TS 38.415).
    pub const PDU_SESSION_CONTAINER: u8 = 0x85;

    /// The required comprehension.
    pub fn comprehension(&self) -> Comprehension {
        match self.header_type >> 6 {
            0 => Comprehension::NotRequiredForward,
            1 => Comprehension::NotRequiredDiscard,
            2 => Comprehension::Endpoint,
            _ => Comprehension::Recipient,
        }
    }
}

/// The extension headers of a packet, in order.
#[derive(Clone, Copy, Debug)]
pub struct ExtensionHeaders<'a> {
    next: u8,
    bytes: &'a [u8],
}

impl ExtensionHeaders<'_> {
    fn none() -> Self {
        ExtensionHeaders { next: 0, bytes: &[] }
    }
}

impl<'a> Iterator for ExtensionHeaders<'a> {
    type Item = Result<ExtensionHeader<'a>, GtpuError>;

    fn next(&mut self) -> Option<Self::Item> {
        let header_type = std::mem::take(&mut self.next);
        if header_type == 0 {
            return None;
        }
        let units = self.bytes.first().copied().unwrap_or(0);
        let split = self.bytes.split_at_checked(4 * usize::from(units));
        let Some(([_units, content @ .., next], rest)) = split else {
            return Some(Err(GtpuError::ExtensionHeader));
        };
        self.next = *next;
        self.bytes = rest;
        Some(Ok(ExtensionHeader { header_type, content }))
    }
}

/// The header to write before a user packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpduHeader {
    /// The peer's TEID.
    pub teid: u32,
    /// The PDU Session Container for the gNB; `None` towards EPC.
    pub pdu_session: Option<DlPduSessionInformation>,
}

impl GpduHeader {
    /// The longest header that [`Self::write_before`] writes.
    pub const MAX_LEN: usize = 20;

    /// Octets of the header.
    pub fn encoded_len(&self) -> usize {
        match self.pdu_session {
            None => 8,
            Some(DlPduSessionInformation { ppi: None, .. }) => 16,
            Some(_) => 20,
        }
    }

    /// Writes the header into `buffer` directly before `payload_start`, for a payload from there to the end,
    /// and returns its offset; `None`, without writing, if there is no room or the payload is too long.
    pub fn write_before(&self, buffer: &mut [u8], payload_start: usize) -> Option<usize> {
        let (room, payload) = buffer.split_at_mut_checked(payload_start)?;
        self.write_at_end_of(room, payload.len())
    }

    /// Writes the header into the last octets of `room`, for a payload elsewhere, and returns its offset;
    /// `None`, without writing, if there is no room or the payload is too long.
    pub fn write_at_end_of(&self, room: &mut [u8], payload_len: usize) -> Option<usize> {
        let start = room.len().checked_sub(self.encoded_len())?;
        let length = u16::try_from(payload_len + self.encoded_len() - MANDATORY_LEN).ok()?;
        let (mandatory, rest) = room.get_mut(start..)?.split_first_chunk_mut::<MANDATORY_LEN>()?;
        let flags = if self.pdu_session.is_some() { FLAG_EXTENSION } else { 0 };
        let [length_high, length_low] = length.to_be_bytes();
        let [a, b, c, d] = self.teid.to_be_bytes();
        *mandatory =
            [VERSION_AND_TYPE | flags, GtpuMessageType::G_PDU.0, length_high, length_low, a, b, c, d];
        if let Some(information) = &self.pdu_session {
            information.write(rest);
        }
        Some(start)
    }
}

/// Appends a header, with or without a sequence number, and `payload`.
pub(super) fn put_packet(
    out: &mut Vec<u8>,
    message_type: GtpuMessageType,
    teid: u32,
    sequence: Option<u16>,
    payload: &[u8],
) {
    let optional = sequence.map(|sequence| {
        let [high, low] = sequence.to_be_bytes();
        [high, low, 0, 0]
    });
    let flags = if sequence.is_some() { FLAG_SEQUENCE } else { 0 };
    let length = payload.len() + optional.map_or(0, |octets| octets.len());
    out.extend([VERSION_AND_TYPE | flags, message_type.0]);
    out.extend(u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes());
    out.extend(teid.to_be_bytes());
    out.extend(optional.iter().flatten());
    out.extend(payload);
}
