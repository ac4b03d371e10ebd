//! Protection of NAS messages (TS 24.501 4.4, TS 33.501 6.4).
//!
//! ```text
//!  octet  1     2                3..6   7                     8..
//!         EPD | security header | MAC | NAS sequence number | message, ciphered or not
//!                                       '---- the MAC is over these ----'
//! ```
//!
//! [`NasSecurity`] is one side of a 5G NAS security context on one access: keys, algorithms and
//! both NAS COUNTs. It never uses a COUNT for sending twice and never accepts one twice. When the
//! COUNTs are exhausted it refuses, so the caller must authenticate before
//! ([`NasSecurity::is_near_wrap`]).

mod acceptance;
mod count;

pub use acceptance::{
    network_processes_despite_failed_integrity, network_processes_unprotected, ue_processes_unprotected,
};
pub use count::NasCount;

use crate::header::{EPD_5GMM, SecurityHeaderType};
use crate::ie::{IntraN1Container, NasSecurityAlgorithms, NgKsi};
use pith_crypto::keys::{KNasEnc, KNasInt};
use pith_crypto::nas::{CipheringAlgorithm, Direction, IntegrityAlgorithm, MessageInput, NasCipher, NasMac};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// Octets before the contained message.
const HEADER: usize = 7;

/// The end of the N1 interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// The AMF: it sends downlink.
    Network,
    /// The UE: it sends uplink.
    Ue,
}

impl Role {
    fn sends(self) -> Direction {
        match self {
            Self::Network => Direction::Downlink,
            Self::Ue => Direction::Uplink,
        }
    }

    fn receives(self) -> Direction {
        match self {
            Self::Network => Direction::Uplink,
            Self::Ue => Direction::Downlink,
        }
    }
}

/// The access of a NAS connection; its number is the BEARER (TS 33.501 6.4.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Connection {
    /// 3GPP access, 1.
    ThreeGpp = 1,
    /// Non-3GPP access, 2.
    NonThreeGpp = 2,
}

/// The two algorithms of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Algorithms {
    /// Integrity protection.
    pub integrity: IntegrityAlgorithm,
    /// Ciphering.
    pub ciphering: CipheringAlgorithm,
}

impl From<Algorithms> for NasSecurityAlgorithms {
    fn from(Algorithms { integrity, ciphering }: Algorithms) -> Self {
        Self { ciphering: ciphering as u8, integrity: integrity as u8 }
    }
}

/// COUNT of the MAC of a container for a handover: none of a message (TS 33.501 6.9.2.3.3).
pub const CONTAINER_COUNT: u32 = u32::MAX;

/// Keys, algorithms and NAS COUNTs of one side of a context. It is not `Clone`: two copies would
/// send the same COUNT twice. It can be transferred by serialisation.
#[derive(Deserialize)]
#[serde(try_from = "Stored")]
pub struct NasSecurity {
    role: Role,
    connection: Connection,
    k_nas_int: KNasInt,
    k_nas_enc: KNasEnc,
    mac: NasMac,
    cipher: NasCipher,
    /// The COUNT of the next message sent; `None` if they are exhausted.
    next_to_send: Option<NasCount>,
    /// The highest COUNT of an accepted message; `None` before the first one.
    last_received: Option<NasCount>,
}

/// A message without its protection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unprotected {
    /// The plain message.
    pub plain: Vec<u8>,
    /// Its security header type.
    pub header: SecurityHeaderType,
    /// Its COUNT; K_gNB is derived from that of an uplink message.
    pub count: NasCount,
}

/// Why a message can't be protected or accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecurityError {
    /// Not a security protected 5GMM message.
    #[error("not a security protected 5GMM message")]
    NotProtected,
    /// The MAC does not match the message and the estimated COUNT: altered, replayed, or of another context.
    #[error("integrity check failed")]
    IntegrityCheckFailed,
    /// All NAS COUNTs have been used (TS 24.501 4.4.3.5).
    #[error("NAS COUNT would wrap around")]
    CountExhausted,
}

impl NasSecurity {
    /// A security context that is taken into use: both COUNTs start at 0 (TS 24.501 4.4.3.1).
    pub fn new(
        role: Role,
        connection: Connection,
        algorithms: Algorithms,
        k_nas_int: KNasInt,
        k_nas_enc: KNasEnc,
    ) -> Self {
        Self {
            role,
            connection,
            mac: NasMac::new(algorithms.integrity, &k_nas_int),
            cipher: NasCipher::new(algorithms.ciphering, &k_nas_enc),
            k_nas_int,
            k_nas_enc,
            next_to_send: Some(NasCount::ZERO),
            last_received: None,
        }
    }

    /// Continues with the COUNTs of a context from another AMF: the next to send, and the last accepted.
    pub fn resume(&mut self, next_to_send: Option<NasCount>, last_received: Option<NasCount>) {
        self.next_to_send = next_to_send;
        self.last_received = last_received;
    }

    /// The algorithms of the context.
    pub fn algorithms(&self) -> Algorithms {
        Algorithms { integrity: self.mac.algorithm(), ciphering: self.cipher.algorithm() }
    }

    /// The COUNT of the next message sent; `None` if they are exhausted.
    pub fn next_to_send(&self) -> Option<NasCount> {
        self.next_to_send
    }

    /// The COUNT of the last accepted message; `None` before the first.
    pub fn last_received(&self) -> Option<NasCount> {
        self.last_received
    }

    /// Whether so few COUNTs are left that the UE must be authenticated again (TS 24.501 4.4.3.5).
    pub fn is_near_wrap(&self) -> bool {
        let sent = self.next_to_send.is_none_or(NasCount::is_near_wrap);
        sent || self.last_received.is_some_and(NasCount::is_near_wrap)
    }

    /// Whether no further message can be sent, or none can be accepted.
    pub fn is_exhausted(&self) -> bool {
        self.next_to_send.is_none() || self.last_received == Some(NasCount::MAX)
    }

    /// Advances the next COUNT to send: after a take-over, past those that may have been used and not stored.
    pub fn skip_to_send(&mut self, by: u32) {
        self.next_to_send = self.next_to_send.and_then(|count| count.plus(by));
    }

    /// Protects a plain message, which uses up one COUNT.
    pub fn protect(&mut self, header: SecurityHeaderType, plain: &[u8]) -> Result<Vec<u8>, SecurityError> {
        let count = self.next_to_send.ok_or(SecurityError::CountExhausted)?;
        self.next_to_send = count.plus(1);
        let mut message = Vec::with_capacity(HEADER + plain.len());
        message.extend([EPD_5GMM, header.code(), 0, 0, 0, 0, count.sequence_number()]);
        message.extend(plain);
        let input = self.input(count, self.role.sends());
        if let (true, Some(body)) = (header.is_ciphered(), message.get_mut(HEADER..)) {
            self.cipher.apply(input, body);
        }
        let mac = self.mac.mac(input, message.get(HEADER - 1..).unwrap_or_default());
        if let Some(octets) = message.get_mut(2..HEADER - 1) {
            octets.copy_from_slice(&mac);
        }
        Ok(message)
    }

    /// Verifies a protected message and returns the plain one. A message that fails changes nothing.
    pub fn unprotect(&mut self, message: &[u8]) -> Result<Unprotected, SecurityError> {
        self.unprotect_ahead(message, 0)
    }

    /// As [`Self::unprotect`], for a context that was stored before its last messages. If the check fails with the estimated COUNT, it is
    /// repeated with the overflow counter raised by 1, 2 and so on, up to `overflows`.
    ///
    /// The peer of an outdated context is to be authenticated: a message of its past, which the context does not know, passes, too.
    pub fn unprotect_ahead(&mut self, message: &[u8], overflows: u16) -> Result<Unprotected, SecurityError> {
        let envelope = Envelope::of(message).ok_or(SecurityError::NotProtected)?;
        let first = NasCount::estimate(self.last_received, envelope.sequence_number)
            .ok_or(SecurityError::CountExhausted)?;
        let mut counts = (0..=overflows).map_while(|ahead| first.plus(u32::from(ahead) << 8));
        let is_valid = |count: &NasCount| {
            let input = self.input(*count, self.role.receives());
            self.mac.verify(input, envelope.authenticated, envelope.mac)
        };
        let count = counts.find(is_valid).ok_or(SecurityError::IntegrityCheckFailed)?;
        let input = self.input(count, self.role.receives());
        self.last_received = Some(count);
        let mut plain = envelope.body.to_vec();
        if envelope.header.is_ciphered() {
            self.cipher.apply(input, &mut plain);
        }
        Ok(Unprotected { plain, header: envelope.header, count })
    }

    /// The plain message of a protected one that was returned, if it is one of the last `latest` that this side has sent. It does not
    /// count as received.
    pub fn reopen(&self, message: &[u8], latest: u8) -> Result<Vec<u8>, SecurityError> {
        let envelope = Envelope::of(message).ok_or(SecurityError::NotProtected)?;
        let count = NasCount::among_last(self.next_to_send, envelope.sequence_number, latest)
            .ok_or(SecurityError::IntegrityCheckFailed)?;
        let input = self.input(count, self.role.sends());
        if !self.mac.verify(input, envelope.authenticated, envelope.mac) {
            return Err(SecurityError::IntegrityCheckFailed);
        }
        let mut plain = envelope.body.to_vec();
        if envelope.header.is_ciphered() {
            self.cipher.apply(input, &mut plain);
        }
        Ok(plain)
    }

    /// The container that changes the UE's context to this one in a handover between AMFs, with K_AMF kept (TS 33.501 6.9.2.3.3). It uses up
    /// one downlink COUNT, and its MAC is of another one, [`CONTAINER_COUNT`].
    pub fn handover_container(&mut self, ng_ksi: NgKsi) -> Result<IntraN1Container, SecurityError> {
        let count = self.next_to_send.ok_or(SecurityError::CountExhausted)?;
        self.next_to_send = count.plus(1);
        Ok(self.container(ng_ksi, false, count))
    }

    /// As [`Self::handover_container`], with a K_AMF that the source AMF has derived with that downlink COUNT (TS 33.501 6.9.2.3.3): the COUNTs of this
    /// context begin at 0.
    pub fn derived_key_container(&self, ng_ksi: NgKsi, derived_with: NasCount) -> IntraN1Container {
        self.container(ng_ksi, true, derived_with)
    }

    fn container(&self, ng_ksi: NgKsi, has_new_k_amf: bool, count: NasCount) -> IntraN1Container {
        let mut container = IntraN1Container {
            mac: [0; 4],
            algorithms: self.algorithms().into(),
            has_new_k_amf,
            ng_ksi,
            sequence_number: count.sequence_number(),
        };
        let bearer = self.connection as u8;
        let input = MessageInput { count: CONTAINER_COUNT, bearer, direction: Direction::Downlink };
        container.mac = self.mac.mac(input, &container.authenticated());
        container
    }

    /// Ciphers the value of the NAS message container in the next message (TS 24.501 4.4.6).
    pub fn cipher_container(&self, container: &mut [u8]) -> Result<(), SecurityError> {
        let count = self.next_to_send.ok_or(SecurityError::CountExhausted)?;
        self.cipher.apply(self.input(count, self.role.sends()), container);
        Ok(())
    }

    /// Deciphers the value of the NAS message container of an initial message that was received
    /// with that COUNT (TS 24.501 4.4.6).
    pub fn decipher_container(&self, count: NasCount, container: &mut [u8]) {
        self.cipher.apply(self.input(count, self.role.receives()), container);
    }

    fn input(&self, count: NasCount, direction: Direction) -> MessageInput {
        MessageInput { count: count.value(), bearer: self.connection as u8, direction }
    }
}

impl fmt::Debug for NasSecurity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NasSecurity")
            .field("role", &self.role)
            .field("connection", &self.connection)
            .field("algorithms", &self.algorithms())
            .field("next_to_send", &self.next_to_send)
            .field("last_received", &self.last_received)
            .finish_non_exhaustive()
    }
}

/// The parts of a protected message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// Security header type.
    pub header: SecurityHeaderType,
    /// NAS-MAC.
    pub mac: [u8; 4],
    /// Low eight bits of the COUNT.
    pub sequence_number: u8,
    /// Sequence number and body, which the MAC covers.
    authenticated: &'a [u8],
    /// The contained message, ciphered if the header says so.
    pub body: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Splits a protected message without verification; `None` if it is not one.
    pub fn of(message: &'a [u8]) -> Option<Self> {
        let (&[EPD_5GMM, header, m0, m1, m2, m3], authenticated) = message.split_first_chunk()? else {
            return None;
        };
        let (&sequence_number, body) = authenticated.split_first()?;
        let header = SecurityHeaderType::from_octet(header);
        if matches!(header, SecurityHeaderType::Plain | SecurityHeaderType::Reserved(_)) {
            return None;
        }
        Some(Self { header, mac: [m0, m1, m2, m3], sequence_number, authenticated, body })
    }

    /// The contained message, unverified: for message types that are processed although their
    /// integrity can't be verified. `None` if it is ciphered.
    pub fn unverified(&self) -> Option<&'a [u8]> {
        (!self.header.is_ciphered()).then_some(self.body)
    }
}

/// The stored form of a context.
#[derive(Serialize, Deserialize)]
struct Stored {
    role: Role,
    connection: Connection,
    integrity: u8,
    ciphering: u8,
    k_nas_int: KNasInt,
    k_nas_enc: KNasEnc,
    next_to_send: Option<NasCount>,
    last_received: Option<NasCount>,
}

impl Serialize for NasSecurity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let algorithms = self.algorithms();
        Stored {
            role: self.role,
            connection: self.connection,
            integrity: algorithms.integrity as u8,
            ciphering: algorithms.ciphering as u8,
            k_nas_int: self.k_nas_int.clone(),
            k_nas_enc: self.k_nas_enc.clone(),
            next_to_send: self.next_to_send,
            last_received: self.last_received,
        }
        .serialize(serializer)
    }
}

impl TryFrom<Stored> for NasSecurity {
    type Error = pith_crypto::nas::UnknownAlgorithm;

    fn try_from(stored: Stored) -> Result<Self, Self::Error> {
        let algorithms =
            Algorithms { integrity: stored.integrity.try_into()?, ciphering: stored.ciphering.try_into()? };
        Ok(Self {
            next_to_send: stored.next_to_send,
            last_received: stored.last_received,
            ..Self::new(stored.role, stored.connection, algorithms, stored.k_nas_int, stored.k_nas_enc)
        })
    }
}
