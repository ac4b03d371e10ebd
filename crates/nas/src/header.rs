//! What the first octets of a NAS message say, without reading the message.

use serde::{Deserialize, Serialize};

/// Extended protocol discriminator of 5GMM (TS 24.007 11.2.3.1.1A).
pub const EPD_5GMM: u8 = 0x7e;
/// Extended protocol discriminator of 5GSM.
pub const EPD_5GSM: u8 = 0x2e;

/// Security header type (TS 24.501 Table 9.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SecurityHeaderType {
    /// Plain message, not security protected.
    Plain,
    /// Integrity protected.
    IntegrityProtected,
    /// Integrity protected and ciphered.
    IntegrityProtectedAndCiphered,
    /// Integrity protected with new 5G NAS security context: SECURITY MODE COMMAND only.
    IntegrityProtectedWithNewContext,
    /// Integrity protected and ciphered with new context: SECURITY MODE COMPLETE only.
    IntegrityProtectedAndCipheredWithNewContext,
    /// A value that is reserved.
    Reserved(u8),
}

impl SecurityHeaderType {
    /// From the second octet of a 5GMM message; its high half is spare.
    pub const fn from_octet(octet: u8) -> Self {
        match octet & 0xf {
            0 => Self::Plain,
            1 => Self::IntegrityProtected,
            2 => Self::IntegrityProtectedAndCiphered,
            3 => Self::IntegrityProtectedWithNewContext,
            4 => Self::IntegrityProtectedAndCipheredWithNewContext,
            reserved => Self::Reserved(reserved),
        }
    }

    /// The code on the wire.
    pub const fn code(self) -> u8 {
        match self {
            Self::Plain => 0,
            Self::IntegrityProtected => 1,
            Self::IntegrityProtectedAndCiphered => 2,
            Self::IntegrityProtectedWithNewContext => 3,
            Self::IntegrityProtectedAndCipheredWithNewContext => 4,
            Self::Reserved(code) => code,
        }
    }

    /// Whether the message inside is ciphered.
    pub const fn is_ciphered(self) -> bool {
        matches!(
            self,
            Self::IntegrityProtectedAndCiphered | Self::IntegrityProtectedAndCipheredWithNewContext
        )
    }
}

/// What kind of NAS message some octets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A plain 5GMM message of that message type.
    PlainGmm(u8),
    /// A security protected message: type of header and NAS sequence number.
    Protected(SecurityHeaderType, u8),
    /// A 5GSM message.
    Gsm {
        /// PDU session identity.
        pdu_session_id: u8,
        /// Procedure transaction identity.
        pti: u8,
        /// Message type.
        message_type: u8,
    },
}

/// The extended protocol discriminator, if there is an octet at all.
pub fn peek_epd(octets: &[u8]) -> Option<u8> {
    octets.first().copied()
}

/// What kind of message it is; `None` if it is too short to say or of another protocol.
pub fn peek(octets: &[u8]) -> Option<Kind> {
    match *octets {
        [EPD_5GSM, pdu_session_id, pti, message_type, ..] => {
            Some(Kind::Gsm { pdu_session_id, pti, message_type })
        }
        [EPD_5GMM, security, third, ref rest @ ..] => match SecurityHeaderType::from_octet(security) {
            SecurityHeaderType::Plain => Some(Kind::PlainGmm(third)),
            protected => rest.get(3).map(|&sqn| Kind::Protected(protected, sqn)),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_octets_say_what_a_message_is() {
        assert_eq!(peek(&[0x7e, 0, 0x41]), Some(Kind::PlainGmm(0x41)));
        assert_eq!(
            peek(&[0x7e, 4, 1, 2, 3, 4, 9, 0x7e]),
            Some(Kind::Protected(SecurityHeaderType::IntegrityProtectedAndCipheredWithNewContext, 9))
        );
        assert_eq!(peek(&[0x7e, 1, 1, 2, 3, 4]), None);
        assert_eq!(peek(&[0x07, 0x41, 0]), None);
        assert_eq!(peek(&[]), None);
    }
}
