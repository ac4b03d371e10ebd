//! Packets that the server sends.

use super::{HEADER, KDF_AKA_PRIME, MAC, attribute, code, method, subtype};
use pith_crypto::eap_aka_prime;
use pith_crypto::keys::{Autn, KAut, Rand};

/// Notification code: general failure before the UE is authenticated. Its P bit is set, so the
/// packet has no AT_MAC (RFC 4187 6.1, 10.19).
pub(in crate::ausf) const FAILURE_BEFORE_AUTHENTICATION: u16 = 0x4000;

/// Content of an AKA'-Challenge.
pub(in crate::ausf) struct Challenge<'a> {
    pub rand: &'a Rand,
    pub autn: &'a Autn,
    /// The serving network name, from which the keys are derived (TS 33.501 6.1.3.1).
    pub network_name: &'a str,
}

/// EAP-Request/AKA'-Challenge (RFC 9048 3.1, 3.2; RFC 4187 9.3).
pub(in crate::ausf) fn challenge(identifier: u8, challenge: &Challenge<'_>, k_aut: &KAut) -> Vec<u8> {
    Packet::new(identifier, subtype::CHALLENGE)
        .with(attribute::AT_RAND, &[&[0; 2], challenge.rand.as_bytes()])
        .with(attribute::AT_AUTN, &[&[0; 2], challenge.autn.as_bytes()])
        .with(attribute::AT_KDF, &[&KDF_AKA_PRIME.to_be_bytes()])
        .with(
            attribute::AT_KDF_INPUT,
            &[&length_of(challenge.network_name), challenge.network_name.as_bytes()],
        )
        .finish_with_mac(k_aut)
}

/// EAP-Request/AKA'-Notification with a code whose P bit is set (RFC 4187 9.10).
pub(in crate::ausf) fn notification(identifier: u8, notification: u16) -> Vec<u8> {
    Packet::new(identifier, subtype::NOTIFICATION)
        .with(attribute::AT_NOTIFICATION, &[&notification.to_be_bytes()])
        .finish()
}

/// EAP-Success, with the identifier of the response that it answers (RFC 3748 4.2).
pub(in crate::ausf) const fn success(identifier: u8) -> [u8; 4] {
    [code::SUCCESS, identifier, 0, 4]
}

/// EAP-Failure, with the identifier of the response that it answers (RFC 3748 4.2).
pub(in crate::ausf) const fn failure(identifier: u8) -> [u8; 4] {
    [code::FAILURE, identifier, 0, 4]
}

/// A network name has about 32 octets (TS 24.501 9.12.1).
fn length_of(name: &str) -> [u8; 2] {
    (name.len() as u16).to_be_bytes()
}

/// An EAP-Request/AKA' under construction.
struct Packet(Vec<u8>);

impl Packet {
    fn new(identifier: u8, subtype: u8) -> Self {
        Self(vec![code::REQUEST, identifier, 0, 0, method::AKA_PRIME, subtype, 0, 0])
    }

    /// Adds an attribute, padded to words of four octets.
    fn with(mut self, kind: u8, parts: &[&[u8]]) -> Self {
        let octets = 2 + parts.iter().map(|part| part.len()).sum::<usize>();
        self.0.extend([kind, octets.div_ceil(4) as u8]);
        parts.iter().for_each(|part| self.0.extend_from_slice(part));
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// Writes the length.
    fn finish(mut self) -> Vec<u8> {
        debug_assert!(self.0.len() >= HEADER);
        let length = (self.0.len() as u16).to_be_bytes();
        self.0.splice(2..4, length);
        self.0
    }

    /// Adds AT_MAC over the whole packet (RFC 4187 10.15).
    fn finish_with_mac(self, k_aut: &KAut) -> Vec<u8> {
        let mut packet = self.with(attribute::AT_MAC, &[&[0; 2 + MAC]]).finish();
        let mac = eap_aka_prime::at_mac(k_aut, &packet);
        packet.truncate(packet.len() - MAC);
        packet.extend(mac);
        packet
    }
}
