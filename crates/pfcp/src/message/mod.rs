//! All messages, their decoding and encoding (TS 29.244 7.3 to 7.5).

mod association;
mod heartbeat;
mod node;
mod session_deletion;
mod session_establishment;
mod session_modification;
mod session_report;

pub use association::*;
pub use heartbeat::*;
pub use node::*;
pub use session_deletion::*;
pub use session_establishment::*;
pub use session_modification::*;
pub use session_report::*;

use crate::error::{DecodeError, IeError, TooLong};
use crate::header::{Header, MessageType};
use crate::wire::{Ies, Reader};

macro_rules! messages {
    ($($message_type:ident $name:ident($body:ident),)*) => {
        /// A message of Release 17.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(clippy::large_enum_variant)]
        pub enum Message {
            $(#[doc = concat!("[`", stringify!($body), "`].")] $name($body),)*
        }

        $(
            impl From<$body> for Message {
                fn from(body: $body) -> Self {
                    Message::$name(body)
                }
            }
        )*

        impl Message {
            /// The message type for the header.
            pub fn message_type(&self) -> MessageType {
                match self {
                    $(Message::$name(_) => MessageType::$message_type,)*
                }
            }

            fn decode_body(message_type: MessageType, ies: Ies<'_>) -> Option<Result<Message, IeError>> {
                match message_type {
                    $(MessageType::$message_type => Some($body::decode_ies(ies).map(Message::$name)),)*
                    _ => None,
                }
            }

            fn encode_body(&self, out: &mut Vec<u8>) {
                match self {
                    $(Message::$name(body) => body.encode_ies(out),)*
                }
            }
        }
    };
}

messages! {
    HEARTBEAT_REQUEST HeartbeatRequest(HeartbeatRequest),
    HEARTBEAT_RESPONSE HeartbeatResponse(HeartbeatResponse),
    PFD_MANAGEMENT_REQUEST PfdManagementRequest(PfdManagementRequest),
    PFD_MANAGEMENT_RESPONSE PfdManagementResponse(PfdManagementResponse),
    ASSOCIATION_SETUP_REQUEST AssociationSetupRequest(AssociationSetupRequest),
    ASSOCIATION_SETUP_RESPONSE AssociationSetupResponse(AssociationSetupResponse),
    ASSOCIATION_UPDATE_REQUEST AssociationUpdateRequest(AssociationUpdateRequest),
    ASSOCIATION_UPDATE_RESPONSE AssociationUpdateResponse(AssociationUpdateResponse),
    ASSOCIATION_RELEASE_REQUEST AssociationReleaseRequest(AssociationReleaseRequest),
    ASSOCIATION_RELEASE_RESPONSE AssociationReleaseResponse(AssociationReleaseResponse),
    VERSION_NOT_SUPPORTED_RESPONSE VersionNotSupportedResponse(VersionNotSupportedResponse),
    NODE_REPORT_REQUEST NodeReportRequest(NodeReportRequest),
    NODE_REPORT_RESPONSE NodeReportResponse(NodeReportResponse),
    SESSION_SET_DELETION_REQUEST SessionSetDeletionRequest(SessionSetDeletionRequest),
    SESSION_SET_DELETION_RESPONSE SessionSetDeletionResponse(SessionSetDeletionResponse),
    SESSION_SET_MODIFICATION_REQUEST SessionSetModificationRequest(SessionSetModificationRequest),
    SESSION_SET_MODIFICATION_RESPONSE SessionSetModificationResponse(SessionSetModificationResponse),
    SESSION_ESTABLISHMENT_REQUEST SessionEstablishmentRequest(SessionEstablishmentRequest),
    SESSION_ESTABLISHMENT_RESPONSE SessionEstablishmentResponse(SessionEstablishmentResponse),
    SESSION_MODIFICATION_REQUEST SessionModificationRequest(SessionModificationRequest),
    SESSION_MODIFICATION_RESPONSE SessionModificationResponse(SessionModificationResponse),
    SESSION_DELETION_REQUEST SessionDeletionRequest(SessionDeletionRequest),
    SESSION_DELETION_RESPONSE SessionDeletionResponse(SessionDeletionResponse),
    SESSION_REPORT_REQUEST SessionReportRequest(SessionReportRequest),
    SESSION_REPORT_RESPONSE SessionReportResponse(SessionReportResponse),
}

impl Message {
    /// Decodes the message at the start of `datagram`; see [`crate::bundled`] for datagrams with several.
    pub fn decode(datagram: &[u8]) -> Result<(Header, Message), DecodeError> {
        let (header, body) = Header::decode(datagram)?;
        let ies = Ies::new(Reader::new(body, header.encoded_len()));
        match Message::decode_body(header.message_type, ies) {
            Some(Ok(message)) => Ok((header, message)),
            Some(Err(error)) => Err(DecodeError::Ie { header, error }),
            None => Err(DecodeError::UnknownMessage { header }),
        }
    }

    /// Appends the message. `seid` is the receiver's SEID, omitted in node related messages; only the lower
    /// 24 bits of `sequence` are used. On an error `out` is unchanged.
    pub fn encode(&self, seid: u64, sequence: u32, out: &mut Vec<u8>) -> Result<(), TooLong> {
        self.encode_with(&Header::new(self.message_type(), seid, sequence), out)
    }

    /// Appends the message with the priority and the follow-on flag of `header`.
    pub fn encode_with(&self, header: &Header, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let start = out.len();
        header.encode(0, out);
        self.encode_body(out);
        let len = out.len() - start;
        match (u16::try_from(len - 4), out.get_mut(start + 2..start + 4)) {
            (Ok(length), Some(place)) => place.copy_from_slice(&length.to_be_bytes()),
            _ => {
                out.truncate(start);
                return Err(TooLong(len));
            }
        }
        Ok(())
    }
}
