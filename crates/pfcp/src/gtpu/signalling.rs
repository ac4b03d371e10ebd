//! GTP-U messages other than G-PDUs (TS 29.281 7).

use std::net::IpAddr;

use super::header::{GtpuError, GtpuMessageType, Packet, put_packet};

const RECOVERY: u8 = 14;
const TEID_DATA_I: u8 = 16;
const GTPU_PEER_ADDRESS: u8 = 133;
const EXTENSION_HEADER_TYPE_LIST: u8 = 141;

/// Error Indication: the receiver of a G-PDU does not know its tunnel (TS 29.281 7.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorIndication {
    /// Tunnel Endpoint Identifier Data I: the TEID of the G-PDU.
    pub teid: u32,
    /// GTP-U Peer Address: the destination address of the G-PDU.
    pub peer: IpAddr,
}

/// A message between endpoints of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signalling {
    /// Echo Request (TS 29.281 7.2.1).
    EchoRequest {
        /// Matches the response with the request.
        sequence: u16,
    },
    /// Echo Response (TS 29.281 7.2.2); its Recovery is always 0.
    EchoResponse {
        /// The request's sequence number.
        sequence: u16,
    },
    /// Error Indication.
    ErrorIndication(ErrorIndication),
    /// Supported Extension Headers Notification (TS 29.281 7.2.3).
    SupportedExtensionHeadersNotification {
        /// The types that the sender comprehends.
        header_types: Vec<u8>,
    },
    /// End Marker: the last packet on the tunnel (TS 29.281 7.3.2).
    EndMarker {
        /// The receiver's TEID.
        teid: u32,
    },
}

impl Signalling {
    /// The message in `packet`; `None` if it is of another type.
    pub fn decode(packet: &Packet<'_>) -> Result<Option<Signalling>, GtpuError> {
        let sequence = packet.sequence.unwrap_or(0);
        Ok(Some(match packet.message_type {
            GtpuMessageType::ECHO_REQUEST => Signalling::EchoRequest { sequence },
            GtpuMessageType::ECHO_RESPONSE => Signalling::EchoResponse { sequence },
            GtpuMessageType::END_MARKER => Signalling::EndMarker { teid: packet.teid },
            GtpuMessageType::ERROR_INDICATION => {
                Signalling::ErrorIndication(error_indication(packet.payload)?)
            }
            GtpuMessageType::SUPPORTED_EXTENSION_HEADERS_NOTIFICATION => {
                let header_types = find(packet.payload, EXTENSION_HEADER_TYPE_LIST)?.to_vec();
                Signalling::SupportedExtensionHeadersNotification { header_types }
            }
            _ => return Ok(None),
        }))
    }

    /// Appends the whole packet.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Signalling::EchoRequest { sequence } => {
                put_packet(out, GtpuMessageType::ECHO_REQUEST, 0, Some(*sequence), &[]);
            }
            Signalling::EchoResponse { sequence } => {
                put_packet(out, GtpuMessageType::ECHO_RESPONSE, 0, Some(*sequence), &[RECOVERY, 0]);
            }
            Signalling::ErrorIndication(indication) => {
                put_packet(out, GtpuMessageType::ERROR_INDICATION, 0, Some(0), &indication.elements());
            }
            Signalling::SupportedExtensionHeadersNotification { header_types } => {
                let count = header_types.len().min(0xff);
                let mut elements = vec![EXTENSION_HEADER_TYPE_LIST, count as u8];
                elements.extend(header_types.iter().take(count));
                put_packet(
                    out,
                    GtpuMessageType::SUPPORTED_EXTENSION_HEADERS_NOTIFICATION,
                    0,
                    Some(0),
                    &elements,
                );
            }
            Signalling::EndMarker { teid } => put_packet(out, GtpuMessageType::END_MARKER, *teid, None, &[]),
        }
    }
}

impl ErrorIndication {
    fn elements(&self) -> Vec<u8> {
        let mut out = vec![TEID_DATA_I];
        out.extend(self.teid.to_be_bytes());
        match self.peer {
            IpAddr::V4(address) => out.extend([&[GTPU_PEER_ADDRESS, 0, 4][..], &address.octets()].concat()),
            IpAddr::V6(address) => out.extend([&[GTPU_PEER_ADDRESS, 0, 16][..], &address.octets()].concat()),
        }
        out
    }
}

fn error_indication(elements: &[u8]) -> Result<ErrorIndication, GtpuError> {
    let teid = find(elements, TEID_DATA_I)?;
    let teid = teid.first_chunk::<4>().map(|octets| u32::from_be_bytes(*octets));
    let peer = find(elements, GTPU_PEER_ADDRESS)?;
    let peer = match peer.len() {
        4 => peer.first_chunk::<4>().map(|octets| IpAddr::from(*octets)),
        16 => peer.first_chunk::<16>().map(|octets| IpAddr::from(*octets)),
        _ => None,
    };
    let (teid, peer) = teid.zip(peer).ok_or(GtpuError::InformationElement)?;
    Ok(ErrorIndication { teid, peer })
}

/// The value of the first information element of `wanted` type (TS 29.281 8.1). Types below 128 have a fixed
/// length; others have a length field, of one octet in an Extension Header Type List and of two otherwise.
fn find(mut elements: &[u8], wanted: u8) -> Result<&[u8], GtpuError> {
    let missing = GtpuError::InformationElement;
    loop {
        let (&element_type, rest) = elements.split_first().ok_or(missing)?;
        let (length, rest) = match (element_type, rest) {
            (RECOVERY, rest) => (1, rest),
            (TEID_DATA_I, rest) => (4, rest),
            (EXTENSION_HEADER_TYPE_LIST, [length, rest @ ..]) => ((*length).into(), rest),
            (128.., [high, low, rest @ ..]) => (u16::from_be_bytes([*high, *low]).into(), rest),
            _ => return Err(missing),
        };
        let (value, rest) = rest.split_at_checked(length).ok_or(missing)?;
        if element_type == wanted {
            return Ok(value);
        }
        elements = rest;
    }
}
