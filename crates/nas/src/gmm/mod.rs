//! 5GMM messages (TS 24.501 8.2): mobility management, between UE and AMF.

mod authentication;
mod configuration_update;
mod deregistration;
mod initial;
mod registration;
mod security_mode;
mod service;
mod transport;

pub use authentication::*;
pub use configuration_update::*;
pub use deregistration::*;
pub use registration::*;
pub use security_mode::*;
pub use service::*;
pub use transport::*;

use crate::error::{Fault, NasError, Note};
use crate::header::{EPD_5GMM, SecurityHeaderType};
use crate::table::Reader;

/// Octets of the plain 5GMM header: discriminator, security header type, message type.
const HEADER: usize = 3;

macro_rules! gmm_messages {
    ($( $code:literal $name:ident ($($boxed:tt)*), )*) => {
        /// A plain 5GMM message.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum GmmMessage {
            $(
                #[doc = concat!("Message type `", stringify!($code), "`.")]
                $name($($boxed)*),
            )*
        }

        $(
            impl From<$name> for GmmMessage {
                fn from(message: $name) -> Self {
                    Self::$name(message.into())
                }
            }
        )*

        impl GmmMessage {
            /// The message's name, as in the specification but in Rust case.
            pub fn name(&self) -> &'static str {
                match self { $( Self::$name(_) => stringify!($name), )* }
            }

            /// The message type octet (TS 24.501 Table 9.7.1).
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

gmm_messages! {
    0x41 RegistrationRequest(Box<RegistrationRequest>),
    0x42 RegistrationAccept(Box<RegistrationAccept>),
    0x43 RegistrationComplete(RegistrationComplete),
    0x44 RegistrationReject(Box<RegistrationReject>),
    0x45 DeregistrationRequestUeOriginating(DeregistrationRequestUeOriginating),
    0x46 DeregistrationAcceptUeOriginating(DeregistrationAcceptUeOriginating),
    0x47 DeregistrationRequestUeTerminated(Box<DeregistrationRequestUeTerminated>),
    0x48 DeregistrationAcceptUeTerminated(DeregistrationAcceptUeTerminated),
    0x4c ServiceRequest(Box<ServiceRequest>),
    0x4d ServiceReject(Box<ServiceReject>),
    0x4e ServiceAccept(Box<ServiceAccept>),
    0x54 ConfigurationUpdateCommand(Box<ConfigurationUpdateCommand>),
    0x55 ConfigurationUpdateComplete(ConfigurationUpdateComplete),
    0x56 AuthenticationRequest(AuthenticationRequest),
    0x57 AuthenticationResponse(AuthenticationResponse),
    0x58 AuthenticationReject(AuthenticationReject),
    0x59 AuthenticationFailure(AuthenticationFailure),
    0x5a AuthenticationResult(AuthenticationResult),
    0x5b IdentityRequest(IdentityRequest),
    0x5c IdentityResponse(IdentityResponse),
    0x5d SecurityModeCommand(Box<SecurityModeCommand>),
    0x5e SecurityModeComplete(Box<SecurityModeComplete>),
    0x5f SecurityModeReject(SecurityModeReject),
    0x64 GmmStatus(GmmStatus),
    0x65 Notification(Notification),
    0x66 NotificationResponse(NotificationResponse),
    0x67 UlNasTransport(Box<UlNasTransport>),
    0x68 DlNasTransport(Box<DlNasTransport>),
}

impl GmmMessage {
    /// Decodes a plain message; errors in optional IEs are dropped.
    pub fn decode(octets: &[u8]) -> Result<Self, NasError> {
        Self::decode_with_notes(octets, &mut Vec::new())
    }

    /// Decodes a plain message, and reports optional IEs that were not accepted as received.
    pub fn decode_with_notes(octets: &[u8], notes: &mut Vec<Note>) -> Result<Self, NasError> {
        let error = |offset, ie, fault| NasError { offset, ie, fault };
        let &[epd, security, message_type, ..] = octets else {
            return Err(error(octets.len(), "header", Fault::TooShort));
        };
        if epd != EPD_5GMM {
            return Err(error(0, "protocol discriminator", Fault::OtherProtocol(epd)));
        }
        if SecurityHeaderType::from_octet(security) != SecurityHeaderType::Plain {
            return Err(error(1, "security header type", Fault::Protected));
        }
        Self::read(message_type, &mut Reader::new(octets, HEADER, notes))
    }

    /// Encodes the plain message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        out.extend([EPD_5GMM, 0, self.message_type()]);
        self.write(&mut out);
        out
    }
}

crate::stored::stored!(GmmMessage, |message| message.encode(), Self::decode);
