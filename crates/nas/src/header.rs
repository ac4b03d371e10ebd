//! NAS headers: message type and identities without decoding the message.

use crate::ie::MobileIdentity;
use crate::wire::Ie;
use pith_types::{FiveGGuti, FiveGSTmsi};
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
    /// A reserved value.
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

    /// Whether the contained message is ciphered.
    pub const fn is_ciphered(self) -> bool {
        matches!(
            self,
            Self::IntegrityProtectedAndCiphered | Self::IntegrityProtectedAndCipheredWithNewContext
        )
    }
}

/// The kind of a NAS message.
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

/// The extended protocol discriminator; `None` for an empty message.
pub fn peek_epd(octets: &[u8]) -> Option<u8> {
    octets.first().copied()
}

/// The kind of a message; `None` if it is too short or of another protocol.
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

/// A temporary identity that an AMF allocated to a UE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemporaryIdentity {
    /// 5G-GUTI, in REGISTRATION REQUEST and DEREGISTRATION REQUEST.
    FiveGGuti(FiveGGuti),
    /// 5G-S-TMSI, in SERVICE REQUEST.
    FiveGSTmsi(FiveGSTmsi),
}

/// Message types of the initial messages that carry a mobile identity (TS 24.501 table 9.7.1).
const REGISTRATION_REQUEST: u8 = 0x41;
const DEREGISTRATION_REQUEST_UE_ORIGINATING: u8 = 0x45;
const SERVICE_REQUEST: u8 = 0x4c;

/// The temporary identity in an initial NAS message, read without verification; `None` if the message has
/// none or is ciphered. An initial message is plain or integrity protected only (TS 24.501 4.4.6). In all
/// three messages the identity follows one octet and its length (TS 24.501 8.2.6, 8.2.12, 8.2.16).
pub fn peek_temporary_identity(octets: &[u8]) -> Option<TemporaryIdentity> {
    let (_, identity, _) = peek_identity(octets)?;
    temporary(identity)
}

/// The Additional GUTI of a REGISTRATION REQUEST, read without verification: a UE that comes from EPS has mapped its mobile identity from a
/// 4G-GUTI, and names its native 5G-GUTI here (TS 24.501 5.5.1.2.2, 5.5.1.3.2).
pub fn peek_additional_guti(octets: &[u8]) -> Option<FiveGGuti> {
    let (REGISTRATION_REQUEST, _, mut ies) = peek_identity(octets)? else { return None };
    loop {
        let (&iei, value) = ies.split_first()?;
        let (value, rest) = match iei {
            ADDITIONAL_GUTI => {
                let (&[high, low], value) = value.split_first_chunk()?;
                return match temporary(value.get(..usize::from(u16::from_be_bytes([high, low])))?)? {
                    TemporaryIdentity::FiveGGuti(guti) => Some(guti),
                    TemporaryIdentity::FiveGSTmsi(_) => None,
                };
            }
            LAST_VISITED_REGISTERED_TAI => (6, value),
            0x70..=0x7f => {
                let (&[high, low], value) = value.split_first_chunk()?;
                (usize::from(u16::from_be_bytes([high, low])), value)
            }
            0x80.. => (0, value),
            _ => {
                let (&length, value) = value.split_first()?;
                (usize::from(length), value)
            }
        };
        ies = rest.get(value..)?;
    }
}

/// Message type, mobile identity and the octets after it, of an initial message that is not ciphered.
fn peek_identity(octets: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let plain = match *octets {
        [EPD_5GMM, security, ref rest @ ..] => match SecurityHeaderType::from_octet(security) {
            SecurityHeaderType::Plain => octets,
            SecurityHeaderType::IntegrityProtected => rest.get(MAC_AND_SEQUENCE_NUMBER..)?,
            _ => return None,
        },
        _ => return None,
    };
    let (&[EPD_5GMM, spare_and_plain, message_type, _, high, low], rest) = plain.split_first_chunk()? else {
        return None;
    };
    if spare_and_plain & 0xf != 0 {
        return None;
    }
    if !matches!(message_type, REGISTRATION_REQUEST | DEREGISTRATION_REQUEST_UE_ORIGINATING | SERVICE_REQUEST)
    {
        return None;
    }
    let (identity, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([high, low])))?;
    Some((message_type, identity, rest))
}

fn temporary(identity: &[u8]) -> Option<TemporaryIdentity> {
    if !matches!(identity.first()? & 7, TYPE_5G_GUTI | TYPE_5G_S_TMSI) {
        return None;
    }
    match MobileIdentity::decode(identity) {
        Ok(MobileIdentity::FiveGGuti(guti)) => Some(TemporaryIdentity::FiveGGuti(guti)),
        Ok(MobileIdentity::FiveGSTmsi(s_tmsi)) => Some(TemporaryIdentity::FiveGSTmsi(s_tmsi)),
        _ => None,
    }
}

/// IEIs of a REGISTRATION REQUEST (TS 24.501 table 8.2.6.1.1): the sought one, and the only one of format TV with more than an octet.
const ADDITIONAL_GUTI: u8 = 0x77;
const LAST_VISITED_REGISTERED_TAI: u8 = 0x52;

/// Octets between the security header type and the contained message.
const MAC_AND_SEQUENCE_NUMBER: usize = 5;

/// Types of identity (TS 24.501 table 9.11.3.4.1).
const TYPE_5G_GUTI: u8 = 2;
const TYPE_5G_S_TMSI: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ie::{NgKsi, RegistrationKind, RegistrationType, UeSecurityCapability};
    use crate::{GmmMessage, gmm::RegistrationRequest};
    use pith_types::{FiveGTmsi, Guami, Tai};

    fn s_tmsi() -> FiveGSTmsi {
        FiveGSTmsi { amf_set: 1, amf_pointer: 0, tmsi: FiveGTmsi(0xabcd_ef01) }
    }

    /// The identity with its length, after the message type and one octet.
    fn message(message_type: u8, identity: &MobileIdentity) -> Vec<u8> {
        let mut value = Vec::new();
        identity.encode(&mut value);
        let mut octets = vec![EPD_5GMM, 0, message_type, 0x79, 0, value.len() as u8];
        octets.extend(value);
        octets
    }

    #[test]
    fn peek_finds_the_temporary_identity_in_plain_and_protected_messages() {
        let guami = Guami { plmn_id: "999/70".parse().unwrap(), amf_id: "020040".parse().unwrap() };
        let guti = FiveGGuti { guami, tmsi: s_tmsi().tmsi };
        let cases = [
            (0x41, MobileIdentity::FiveGGuti(guti), TemporaryIdentity::FiveGGuti(guti)),
            (0x45, MobileIdentity::FiveGGuti(guti), TemporaryIdentity::FiveGGuti(guti)),
            (0x4c, MobileIdentity::FiveGSTmsi(s_tmsi()), TemporaryIdentity::FiveGSTmsi(s_tmsi())),
        ];
        for (message_type, identity, expected) in cases {
            let plain = message(message_type, &identity);
            assert_eq!(peek_temporary_identity(&plain), Some(expected));
            let mut protected = vec![EPD_5GMM, 1, 9, 9, 9, 9, 0];
            protected.extend(&plain);
            assert_eq!(peek_temporary_identity(&protected), Some(expected));
            protected[1] = 2;
            assert_eq!(peek_temporary_identity(&protected), None, "ciphered");
            for end in 0..plain.len() {
                assert_eq!(peek_temporary_identity(&plain[..end]), None, "cut off after {end} octets");
            }
        }
    }

    #[test]
    fn peek_finds_the_additional_guti() {
        let guami = Guami { plmn_id: "999/70".parse().unwrap(), amf_id: "020040".parse().unwrap() };
        let guti = |tmsi| FiveGGuti { guami, tmsi: FiveGTmsi(tmsi) };
        let kind = RegistrationType { follow_on_request: false, kind: RegistrationKind::MobilityUpdating };
        let mut request =
            RegistrationRequest::new(kind, NgKsi::Native(1), MobileIdentity::FiveGGuti(guti(1)));
        let plain = |request: &RegistrationRequest| GmmMessage::from(request.clone()).encode();
        assert_eq!(peek_additional_guti(&plain(&request)), None);
        request.non_current_native_ng_ksi = Some(NgKsi::Native(2));
        request.ue_security_capability = Some(UeSecurityCapability::of_5gs(0xf0, 0xf0));
        request.last_visited_registered_tai =
            Some(Tai { plmn_id: guami.plmn_id, tac: "000001".parse().unwrap() });
        request.additional_guti = Some(MobileIdentity::FiveGGuti(guti(2)));
        request.eps_nas_message_container = Some(vec![0x77, 0, 11]);
        let octets = plain(&request);
        assert_eq!(peek_additional_guti(&octets), Some(guti(2)));
        assert_eq!(peek_temporary_identity(&octets), Some(TemporaryIdentity::FiveGGuti(guti(1))));
        (0..octets.len() - 6).for_each(|end| assert_eq!(peek_additional_guti(&octets[..end]), None, "{end}"));
        request.additional_guti = Some(MobileIdentity::FiveGSTmsi(guti(2).s_tmsi()));
        assert_eq!(peek_additional_guti(&plain(&request)), None);
    }

    #[test]
    fn peek_finds_no_temporary_identity_in_other_messages() {
        let plain = message(0x43, &MobileIdentity::FiveGSTmsi(s_tmsi()));
        assert_eq!(peek_temporary_identity(&plain), None);
        let suci = MobileIdentity::Suci("suci-0-999-70-0-0-0-0000000001".parse().unwrap());
        assert_eq!(peek_temporary_identity(&message(0x41, &suci)), None);
    }

    #[test]
    fn the_header_determines_the_kind_of_message() {
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
