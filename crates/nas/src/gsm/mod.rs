//! 5GSM messages (TS 24.501 8.3): session management, between UE and SMF.

mod authentication;
mod establishment;
mod modification;
mod release;

pub use authentication::*;
pub use establishment::*;
pub use modification::*;
pub use release::*;

use crate::error::{Fault, NasError, Note};
use crate::header::EPD_5GSM;
use crate::table::Reader;

/// Octets of the header: discriminator, PDU session identity, PTI, message type.
const HEADER: usize = 4;

/// A 5GSM message with the fields common to all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GsmMessage {
    /// PDU session identity, 1 to 15; 0 means none (TS 24.501 9.4).
    pub pdu_session_id: u8,
    /// Procedure transaction identity, 1 to 254; 0 means none (TS 24.501 9.6).
    pub pti: u8,
    /// The message itself.
    pub body: GsmBody,
}

macro_rules! gsm_messages {
    ($( $code:literal $name:ident ($($boxed:tt)*), )*) => {
        /// The type of a 5GSM message, and its IEs.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum GsmBody {
            $(
                #[doc = concat!("Message type `", stringify!($code), "`.")]
                $name($($boxed)*),
            )*
        }

        $(
            impl From<$name> for GsmBody {
                fn from(message: $name) -> Self {
                    Self::$name(message.into())
                }
            }
        )*

        impl GsmBody {
            /// The message's name, as in the specification but in Rust case.
            pub fn name(&self) -> &'static str {
                match self { $( Self::$name(_) => stringify!($name), )* }
            }

            /// The message type octet (TS 24.501 Table 9.7.2).
            pub fn message_type(&self) -> u8 {
                match self { $( Self::$name(_) => $code, )* }
            }

            fn read(message_type: u8, reader: &mut Reader<'_>) -> Result<Self, NasError> {
                match message_type {
                    $( $code => $name::read(reader).map(Self::from), )*
                    unknown => Err(NasError {
                        offset: HEADER - 1,
                        ie: "message type",
                        fault: Fault::UnknownMessageType(unknown),
                    }),
                }
            }

            fn write(&self, out: &mut Vec<u8>) {
                match self { $( Self::$name(message) => message.write(out), )* }
            }
        }
    };
}

gsm_messages! {
    0xc1 PduSessionEstablishmentRequest(Box<PduSessionEstablishmentRequest>),
    0xc2 PduSessionEstablishmentAccept(Box<PduSessionEstablishmentAccept>),
    0xc3 PduSessionEstablishmentReject(Box<PduSessionEstablishmentReject>),
    0xc5 PduSessionAuthenticationCommand(PduSessionAuthenticationCommand),
    0xc6 PduSessionAuthenticationComplete(PduSessionAuthenticationComplete),
    0xc7 PduSessionAuthenticationResult(PduSessionAuthenticationResult),
    0xc9 PduSessionModificationRequest(Box<PduSessionModificationRequest>),
    0xca PduSessionModificationReject(PduSessionModificationReject),
    0xcb PduSessionModificationCommand(Box<PduSessionModificationCommand>),
    0xcc PduSessionModificationComplete(PduSessionModificationComplete),
    0xcd PduSessionModificationCommandReject(PduSessionModificationCommandReject),
    0xd1 PduSessionReleaseRequest(PduSessionReleaseRequest),
    0xd2 PduSessionReleaseReject(PduSessionReleaseReject),
    0xd3 PduSessionReleaseCommand(Box<PduSessionReleaseCommand>),
    0xd4 PduSessionReleaseComplete(PduSessionReleaseComplete),
    0xd6 GsmStatus(GsmStatus),
}

impl GsmMessage {
    /// A message of that session and transaction.
    pub fn new(pdu_session_id: u8, pti: u8, body: impl Into<GsmBody>) -> Self {
        Self { pdu_session_id, pti, body: body.into() }
    }

    /// Decodes a message; errors in optional IEs are dropped.
    pub fn decode(octets: &[u8]) -> Result<Self, NasError> {
        Self::decode_with_notes(octets, &mut Vec::new())
    }

    /// Decodes a message, and reports optional IEs that were not accepted as received.
    pub fn decode_with_notes(octets: &[u8], notes: &mut Vec<Note>) -> Result<Self, NasError> {
        let error = |offset, ie, fault| Err(NasError { offset, ie, fault });
        let &[epd, pdu_session_id, pti, message_type, ..] = octets else {
            return error(octets.len(), "header", Fault::TooShort);
        };
        if epd != EPD_5GSM {
            return error(0, "protocol discriminator", Fault::OtherProtocol(epd));
        }
        if pdu_session_id > 15 {
            let fault = Fault::ReservedPduSessionIdentity(pdu_session_id);
            return error(1, "PDU session identity", fault);
        }
        if pti == 255 {
            return error(2, "procedure transaction identity", Fault::ReservedPti);
        }
        let body = GsmBody::read(message_type, &mut Reader::new(octets, HEADER, notes))?;
        Ok(Self { pdu_session_id, pti, body })
    }

    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        let message_type = self.body.message_type();
        out.extend([EPD_5GSM, self.pdu_session_id, self.pti, message_type]);
        self.body.write(&mut out);
        out
    }
}

crate::stored::stored!(GsmMessage, |message| message.encode(), Self::decode);
