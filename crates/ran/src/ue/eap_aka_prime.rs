//! Primary authentication by EAP-AKA' (TS 24.501 5.4.1.2.2, TS 33.501 6.1.3.1, RFC 9048, RFC 4187).
//!
//! ```text
//!  UE                                                        AMF
//!   | <- AUTHENTICATION REQUEST   EAP-Request/AKA'-Challenge   |
//!   |    AUTHENTICATION RESPONSE  EAP-Response/AKA'-… ->       |  Challenge, Synchronization-Failure or
//!   |                                                          |  Authentication-Reject
//!   | <- AUTHENTICATION REQUEST   EAP-Request/AKA'-Notification|  if it failed; EAP-Response/AKA'-Notification ->
//!   | <- SECURITY MODE COMMAND or AUTHENTICATION RESULT        |  EAP-Success
//!   | <- AUTHENTICATION REJECT or AUTHENTICATION RESULT        |  EAP-Failure
//! ```

use super::authentication::EapRound;
use super::usim::{Answer, Refusal};
use super::{Timer, Ue};
use pith_crypto::eap_aka_prime;
use pith_crypto::kdf;
use pith_crypto::keys::{Autn, KAut, Rand};
use pith_nas::GmmCause;
use pith_nas::gmm::{AuthenticationResponse, AuthenticationResult};
use pith_nas::ie::NgKsi;

/// Codes of EAP packets (RFC 3748 4).
mod code {
    pub const REQUEST: u8 = 1;
    pub const RESPONSE: u8 = 2;
    pub const SUCCESS: u8 = 3;
}

/// EAP method type of AKA' (RFC 9048 6.1).
const EAP_AKA_PRIME: u8 = 50;

/// Subtypes (RFC 4187 11).
mod subtype {
    pub const CHALLENGE: u8 = 1;
    pub const AUTHENTICATION_REJECT: u8 = 2;
    pub const SYNCHRONIZATION_FAILURE: u8 = 4;
    pub const NOTIFICATION: u8 = 12;
}

/// Attributes (RFC 4187 11, RFC 9048 6.2).
mod attribute {
    pub const AT_RAND: u8 = 1;
    pub const AT_AUTN: u8 = 2;
    pub const AT_RES: u8 = 3;
    pub const AT_AUTS: u8 = 4;
    pub const AT_MAC: u8 = 11;
    pub const AT_KDF_INPUT: u8 = 23;
    pub const AT_KDF: u8 = 24;
}

/// The key derivation function of RFC 9048 3.3, the only one defined.
const KDF_AKA_PRIME: [u8; 2] = [0, 1];
/// Code, identifier, length, type, subtype, reserved.
const HEADER: usize = 8;

/// An EAP-Request/AKA'-Challenge.
struct Challenge<'a> {
    identifier: u8,
    rand: [u8; 16],
    autn: [u8; 16],
    network_name: &'a [u8],
    /// Offset of AT_MAC's value in the packet, and the value.
    mac: (usize, [u8; 16]),
}

/// Each attribute as type, offset of its value, and value (RFC 4187 8.1).
fn attributes(packet: &[u8]) -> impl Iterator<Item = (u8, usize, &[u8])> {
    let mut at = HEADER;
    std::iter::from_fn(move || {
        let (&[kind, words], _) = packet.get(at..)?.split_first_chunk()?;
        let start = at + 2;
        at += 4 * usize::from(words);
        Some((kind, start, packet.get(start..at)?))
    })
}

impl<'a> Challenge<'a> {
    fn decode(packet: &'a [u8]) -> Option<Self> {
        let (&[code, identifier, high, low, method, subtype, _, _], _) =
            packet.split_first_chunk::<HEADER>()?;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let is_challenge = (code, method, subtype) == (code::REQUEST, EAP_AKA_PRIME, subtype::CHALLENGE);
        if !is_challenge || length != packet.len() {
            return None;
        }
        let find = |wanted| attributes(packet).find(|(kind, ..)| *kind == wanted);
        let sixteen = |wanted| find(wanted)?.2.get(2..)?.try_into().ok();
        let (_, mac_at, _) = find(attribute::AT_MAC)?;
        let (_, _, name) = find(attribute::AT_KDF_INPUT)?;
        let (length, name) = name.split_first_chunk()?;
        Some(Self {
            identifier,
            rand: sixteen(attribute::AT_RAND)?,
            autn: sixteen(attribute::AT_AUTN)?,
            network_name: name.get(..u16::from_be_bytes(*length).into())?,
            mac: (mac_at + 2, sixteen(attribute::AT_MAC)?),
        })
    }
}

/// The identifier of an EAP-Request/AKA'-Notification. The network sends it before EAP-Failure, and
/// the UE acknowledges it (RFC 4187 6.1).
fn notification(packet: &[u8]) -> Option<u8> {
    let (&[code, identifier, high, low, method, subtype, _, _], _) = packet.split_first_chunk::<HEADER>()?;
    let length = usize::from(u16::from_be_bytes([high, low]));
    let is_notification = (code, method, subtype) == (code::REQUEST, EAP_AKA_PRIME, subtype::NOTIFICATION);
    (is_notification && length == packet.len()).then_some(identifier)
}

/// Whether the network's first offer is key derivation function 1.
fn offers_own_kdf(packet: &[u8]) -> bool {
    attributes(packet)
        .find(|(kind, ..)| *kind == attribute::AT_KDF)
        .is_some_and(|(.., kdf)| kdf == KDF_AKA_PRIME)
}

/// An EAP-Response/AKA' under construction.
struct Response(Vec<u8>);

impl Response {
    fn new(identifier: u8, subtype: u8) -> Self {
        Self(vec![code::RESPONSE, identifier, 0, 0, EAP_AKA_PRIME, subtype, 0, 0])
    }

    /// Adds an attribute, padded to words of four octets.
    fn with(mut self, kind: u8, value: &[u8]) -> Self {
        let words = (2 + value.len()).div_ceil(4);
        self.0.extend([kind, words as u8]);
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    fn finish(mut self) -> Vec<u8> {
        let length = (self.0.len() as u16).to_be_bytes();
        self.0.splice(2..4, length);
        self.0
    }

    /// Adds AT_MAC over the whole packet (RFC 4187 10.15).
    fn finish_with_mac(self, key: &KAut) -> Vec<u8> {
        let mut packet = self.with(attribute::AT_MAC, &[0; 18]).finish();
        let mac = eap_aka_prime::at_mac(key, &packet);
        packet.truncate(packet.len() - mac.len());
        packet.extend(mac);
        packet
    }
}

impl Ue {
    /// An EAP-request in AUTHENTICATION REQUEST (TS 24.501 5.4.1.2.2.3, 5.4.1.2.2.4).
    pub(super) fn receive_eap_request(&mut self, ng_ksi: NgKsi, packet: &[u8], abba: &[u8]) {
        if let Some(response) = self.stored_response(packet) {
            return self.send_eap(response);
        }
        if !self.is_fresh_ng_ksi(ng_ksi) {
            self.violation("TS 24.501 5.4.1.2.2.2", format!("ngKSI {ng_ksi:?} is already in use"));
            return self.fail_authentication(GmmCause::NgKsiAlreadyInUse, None);
        }
        if let Some(identifier) = notification(packet) {
            return self.respond(packet, Response::new(identifier, subtype::NOTIFICATION).finish());
        }
        let Some(challenge) = Challenge::decode(packet) else {
            let text = "EAP message that is not a complete EAP-Request/AKA'-Challenge";
            return self.violation("RFC 9048 6.3", text);
        };
        let name = self.settings.plmn.serving_network_name();
        if !offers_own_kdf(packet) || challenge.network_name != name.as_bytes() {
            self.violation("TS 33.501 6.1.3.1", "AT_KDF or AT_KDF_INPUT is not that of this serving network");
            return self.reject_eap(packet, challenge.identifier);
        }
        match self.usim.challenge(&Rand::new(challenge.rand), &Autn::new(challenge.autn)) {
            Ok(answer) => self.answer_eap_challenge(ng_ksi, packet, &challenge, &answer, abba),
            Err(Refusal::SynchFailure(auts)) => {
                let response = Response::new(challenge.identifier, subtype::SYNCHRONIZATION_FAILURE);
                let response = response.with(attribute::AT_AUTS, auts.as_bytes());
                self.respond(packet, response.with(attribute::AT_KDF, &KDF_AKA_PRIME).finish());
                self.note_refused_challenge();
            }
            Err(Refusal::MacFailure | Refusal::SeparationBit) => {
                self.reject_eap(packet, challenge.identifier)
            }
        }
    }

    fn answer_eap_challenge(
        &mut self,
        ng_ksi: NgKsi,
        packet: &[u8],
        challenge: &Challenge<'_>,
        answer: &Answer,
        abba: &[u8],
    ) {
        let name = self.settings.plmn.serving_network_name();
        let autn = Autn::new(challenge.autn);
        let (ck, ik) = kdf::ck_ik_prime(&answer.ck, &answer.ik, &name, &autn);
        let keys = eap_aka_prime::keys(&ck, &ik, self.usim.supi().imsi());
        let (at, mac) = challenge.mac;
        let mut with_zero_mac = packet.to_vec();
        with_zero_mac.splice(at..at + mac.len(), [0; 16]);
        if !eap_aka_prime::check_at_mac(&keys.k_aut, &with_zero_mac, &mac) {
            self.violation("RFC 4187 10.15", "AT_MAC of the EAP-Request is wrong");
            return self.reject_eap(packet, challenge.identifier);
        }
        self.keep_partial_context(ng_ksi, &kdf::k_ausf_from_emsk(&keys.emsk), abba);
        let res = answer.res.as_bytes();
        let bits = (8 * res.len() as u16).to_be_bytes();
        let response = Response::new(challenge.identifier, subtype::CHALLENGE);
        let response = response.with(attribute::AT_RES, &[&bits, res].concat());
        self.timers.start(Timer::T3516, self.now + Timer::T3516.duration());
        self.respond(packet, response.finish_with_mac(&keys.k_aut));
        self.resume_stopped_timers();
    }

    fn reject_eap(&mut self, packet: &[u8], identifier: u8) {
        self.respond(packet, Response::new(identifier, subtype::AUTHENTICATION_REJECT).finish());
        self.note_refused_challenge();
    }

    /// The response to the same request, if it was sent already: the request is a retransmission
    /// (RFC 3748 4.1).
    fn stored_response(&self, packet: &[u8]) -> Option<Vec<u8>> {
        let round = self.authentication.eap.as_ref()?;
        (round.request == packet).then(|| round.response.clone())
    }

    /// Answers a request, and stores the answer.
    fn respond(&mut self, packet: &[u8], response: Vec<u8>) {
        self.authentication.eap = Some(EapRound { request: packet.to_vec(), response: response.clone() });
        self.send_eap(response);
    }

    fn send_eap(&mut self, packet: Vec<u8>) {
        let mut response = AuthenticationResponse::new();
        response.eap_message = Some(packet);
        self.send(&response.into());
    }

    /// AUTHENTICATION RESULT: EAP-success, or EAP-failure, which invalidates the keys (TS 24.501 5.4.1.2.5).
    pub(super) fn receive_authentication_result(&mut self, result: &AuthenticationResult) {
        if self.authentication.eap.take().is_none() {
            return self.violation("TS 24.501 5.4.1.2.5", "AUTHENTICATION RESULT without an authentication");
        }
        if !is_eap_success(&result.eap_message) {
            self.authentication.partial = None;
        }
    }
}

/// Whether a packet is EAP-Success (RFC 3748 4.2).
pub(crate) fn is_eap_success(packet: &[u8]) -> bool {
    matches!(packet, [code::SUCCESS, _, 0, 4])
}
