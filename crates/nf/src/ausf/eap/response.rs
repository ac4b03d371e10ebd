//! Packets that the UE sends.

use super::{HEADER, KDF_AKA_PRIME, MAC, attribute, code, method, subtype};
use pith_crypto::eap_aka_prime;
use pith_crypto::keys::{Auts, KAut};

/// An EAP-Response of a UE to an EAP-Request of EAP-AKA'.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::ausf) enum Response<'a> {
    /// AKA'-Challenge: RES and its MAC.
    Challenge {
        /// RES, 4 to 16 octets (RFC 4187 10.8).
        res: &'a [u8],
        mac: Mac<'a>,
    },
    /// AKA'-Challenge that requests another key derivation function (RFC 9048 3.2).
    KeyDerivation(u16),
    /// AKA'-Authentication-Reject: AUTN is wrong (RFC 4187 9.5).
    AuthenticationReject,
    /// AKA'-Synchronization-Failure: SQN in AUTN is out of range (RFC 4187 9.6).
    SynchronizationFailure(Auts),
    /// AKA'-Notification: the UE's acknowledgement (RFC 4187 9.11).
    Notification,
    /// AKA'-Client-Error, with its code (RFC 4187 9.9).
    ClientError(u16),
    /// Legacy Nak: the UE does not support EAP-AKA' (RFC 3748 5.3.1).
    Nak,
}

/// AT_MAC, and the packet that it covers.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::ausf) struct Mac<'a> {
    packet: &'a [u8],
    /// Offset of the value.
    at: usize,
}

impl Mac<'_> {
    /// Whether the MAC matches the whole packet with AT_MAC's value set to zero (RFC 4187 10.15).
    pub fn is_right(&self, k_aut: &KAut) -> bool {
        let Some(received) = self.packet.get(self.at..self.at + MAC) else { return false };
        let mut with_zero_mac = self.packet.to_vec();
        with_zero_mac.splice(self.at..self.at + MAC, [0; MAC]);
        eap_aka_prime::check_at_mac(k_aut, &with_zero_mac, received)
    }
}

/// Why a packet is not a valid response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(in crate::ausf) enum EapError {
    /// It has no header, is not an EAP-Response, or its length field is wrong.
    #[error("not a complete EAP-Response")]
    NoResponse,
    /// It answers another request.
    #[error("answers request {0}")]
    OtherIdentifier(u8),
    /// Neither EAP-AKA' nor Nak.
    #[error("EAP type {0}")]
    Type(u8),
    /// A subtype that does not answer any request of this server.
    #[error("subtype {0}")]
    Subtype(u8),
    /// An attribute's length is zero or exceeds the packet.
    #[error("length of the attribute at octet {0}")]
    Length(usize),
    /// An unknown attribute that may not be skipped (RFC 4187 8.1).
    #[error("attribute {0} is unknown")]
    UnknownAttribute(u8),
    /// An attribute occurs twice (RFC 4187 8.1).
    #[error("attribute {0} occurs twice")]
    Repeated(u8),
    /// An attribute is missing or has an invalid value.
    #[error("attribute {0} is missing or wrong")]
    Attribute(u8),
}

impl<'a> Response<'a> {
    /// Decodes the response to the request of that identifier.
    pub fn decode(packet: &'a [u8], identifier: u8) -> Result<Self, EapError> {
        let (&[code, answered, high, low, method], _) =
            packet.split_first_chunk().ok_or(EapError::NoResponse)?;
        let length = usize::from(u16::from_be_bytes([high, low]));
        if code != code::RESPONSE || length != packet.len() {
            return Err(EapError::NoResponse);
        }
        if answered != identifier {
            return Err(EapError::OtherIdentifier(answered));
        }
        match method {
            method::AKA_PRIME => Self::decode_aka_prime(packet),
            method::NAK => Ok(Self::Nak),
            other => Err(EapError::Type(other)),
        }
    }

    fn decode_aka_prime(packet: &'a [u8]) -> Result<Self, EapError> {
        let (&[.., subtype, _, _], _) = packet.split_first_chunk::<HEADER>().ok_or(EapError::NoResponse)?;
        let attributes = Attributes::decode(packet)?;
        match subtype {
            subtype::CHALLENGE => attributes.challenge(packet),
            subtype::AUTHENTICATION_REJECT => Ok(Self::AuthenticationReject),
            subtype::SYNCHRONIZATION_FAILURE => attributes.auts().map(Self::SynchronizationFailure),
            subtype::NOTIFICATION => Ok(Self::Notification),
            subtype::CLIENT_ERROR => attributes.client_error().map(Self::ClientError),
            other => Err(EapError::Subtype(other)),
        }
    }
}

/// The attributes of a response, each with the offset of its value.
#[derive(Default)]
struct Attributes<'a> {
    res: Option<(usize, &'a [u8])>,
    auts: Option<(usize, &'a [u8])>,
    mac: Option<(usize, &'a [u8])>,
    client_error: Option<(usize, &'a [u8])>,
    kdf: Option<(usize, &'a [u8])>,
}

impl<'a> Attributes<'a> {
    /// Decodes all attributes. Their lengths must fit the packet, and unknown ones must be of a
    /// skippable type (RFC 4187 8.1).
    fn decode(packet: &'a [u8]) -> Result<Self, EapError> {
        let mut found = Self::default();
        let mut at = HEADER;
        while at < packet.len() {
            let (&[kind, words], _) =
                packet.get(at..).and_then(<[u8]>::split_first_chunk).ok_or(EapError::Length(at))?;
            let end = at + 4 * usize::from(words);
            let value = packet.get(at + 2..end).ok_or(EapError::Length(at))?;
            found.keep(kind, at + 2, value)?;
            at = end;
        }
        Ok(found)
    }

    fn keep(&mut self, kind: u8, at: usize, value: &'a [u8]) -> Result<(), EapError> {
        let place = match kind {
            attribute::AT_RES => &mut self.res,
            attribute::AT_AUTS => &mut self.auts,
            attribute::AT_MAC => &mut self.mac,
            attribute::AT_CLIENT_ERROR_CODE => &mut self.client_error,
            attribute::AT_KDF => &mut self.kdf,
            attribute::FIRST_SKIPPABLE.. => return Ok(()),
            _ => return Err(EapError::UnknownAttribute(kind)),
        };
        match place.replace((at, value)) {
            // Only AT_KDF may occur more than once (RFC 9048 3.2).
            Some(_) if kind != attribute::AT_KDF => Err(EapError::Repeated(kind)),
            _ => Ok(()),
        }
    }

    /// RES with its MAC, or the key derivation function that the UE requests instead.
    fn challenge(&self, packet: &'a [u8]) -> Result<Response<'a>, EapError> {
        if let (Some((_, kdf)), None) = (self.kdf, self.res) {
            let kdf = kdf.try_into().map_err(|_| EapError::Attribute(attribute::AT_KDF))?;
            return Ok(Response::KeyDerivation(u16::from_be_bytes(kdf)));
        }
        let res = self.res().ok_or(EapError::Attribute(attribute::AT_RES))?;
        let mac = self.mac.filter(|(_, value)| value.len() == 2 + MAC);
        let (at, _) = mac.ok_or(EapError::Attribute(attribute::AT_MAC))?;
        Ok(Response::Challenge { res, mac: Mac { packet, at: at + 2 } })
    }

    /// RES, whose length is given in bits (RFC 4187 10.8).
    fn res(&self) -> Option<&'a [u8]> {
        let (_, value) = self.res?;
        let (bits, padded) = value.split_first_chunk()?;
        let bits = usize::from(u16::from_be_bytes(*bits));
        let is_allowed = (32..=128).contains(&bits) && bits.is_multiple_of(8);
        let length = Some(bits / 8).filter(|length| is_allowed && length.next_multiple_of(4) == padded.len());
        padded.get(..length?)
    }

    fn auts(&self) -> Result<Auts, EapError> {
        if self.kdf.is_some_and(|(_, kdf)| kdf != KDF_AKA_PRIME.to_be_bytes()) {
            return Err(EapError::Attribute(attribute::AT_KDF));
        }
        let auts = self.auts.and_then(|(_, value)| <[u8; Auts::LEN]>::try_from(value).ok());
        auts.map(Auts::new).ok_or(EapError::Attribute(attribute::AT_AUTS))
    }

    fn client_error(&self) -> Result<u16, EapError> {
        let code = self.client_error.and_then(|(_, value)| <[u8; 2]>::try_from(value).ok());
        code.map(u16::from_be_bytes).ok_or(EapError::Attribute(attribute::AT_CLIENT_ERROR_CODE))
    }
}
