//! The UE's side of a 5G NAS security context (TS 24.501 4.4, TS 33.501 6.4), implemented
//! independently of the core's.

use pith_crypto::kdf;
use pith_crypto::keys::KAmf;
#[cfg(test)]
use pith_crypto::keys::{KNasEnc, KNasInt};
use pith_crypto::nas::{
    CipheringAlgorithm, Direction, IntegrityAlgorithm, MessageInput, NasCipher, NasMac, UnknownAlgorithm,
};
use pith_nas::SecurityHeaderType;
use pith_nas::header::EPD_5GMM;
use pith_nas::ie::{IntraN1Container, NasSecurityAlgorithms, NgKsi};
use std::cell::OnceCell;

/// BEARER: the NAS connection identifier of 3GPP access (TS 33.501 6.4.3.1).
const BEARER: u8 = 1;
/// Octets before the sequence number: EPD, security header type and MAC (TS 24.501 figure 9.1.1.2).
const BEFORE_SEQUENCE_NUMBER: usize = 6;
/// Octets before the NAS message: these and the sequence number.
const HEADER: usize = 7;
/// NAS COUNT has 24 bits (TS 24.501 4.4.3.1).
const COUNT_END: u32 = 1 << 24;
/// COUNT of the MAC of a handover's container: 2^32 - 1, which no message has (TS 33.501 6.9.2.3.3).
const CONTAINER_COUNT: u32 = u32::MAX;

/// Why a protected message was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckFailure {
    /// Shorter than its header.
    TooShort,
    /// The MAC is wrong.
    Mac,
    /// The MAC is correct for a COUNT that was used already.
    Replay { count: u32 },
    /// The COUNT has reached its maximum.
    Exhausted,
}

/// The NAS keys, expanded.
struct Keys {
    mac: NasMac,
    cipher: NasCipher,
}

/// Keys, algorithms and COUNTs.
pub(crate) struct SecurityContext {
    pub ng_ksi: NgKsi,
    pub k_amf: KAmf,
    integrity: IntegrityAlgorithm,
    ciphering: CipheringAlgorithm,
    /// The expanded keys, while the UE is connected: an idle UE derives them again.
    keys: OnceCell<Keys>,
    /// COUNT of the next uplink message.
    uplink: u32,
    /// The highest COUNT of an accepted downlink message.
    downlink: Option<u32>,
}

impl SecurityContext {
    /// A context with both COUNTs at 0; an error if an algorithm is not supported.
    pub fn new(
        ng_ksi: NgKsi,
        k_amf: KAmf,
        algorithms: NasSecurityAlgorithms,
    ) -> Result<Self, UnknownAlgorithm> {
        let integrity = IntegrityAlgorithm::try_from(algorithms.integrity)?;
        let ciphering = CipheringAlgorithm::try_from(algorithms.ciphering)?;
        Ok(Self { ng_ksi, k_amf, integrity, ciphering, keys: OnceCell::new(), uplink: 0, downlink: None })
    }

    fn keys(&self) -> &Keys {
        self.keys.get_or_init(|| Keys {
            mac: NasMac::new(self.integrity, &kdf::k_nas_int(&self.k_amf, self.integrity)),
            cipher: NasCipher::new(self.ciphering, &kdf::k_nas_enc(&self.k_amf, self.ciphering)),
        })
    }

    /// Frees the memory of the expanded keys until the next message.
    pub fn drop_expanded_keys(&mut self) {
        self.keys.take();
    }

    /// A context with recorded keys, with 128-NEA2 and 128-NIA2.
    #[cfg(test)]
    pub fn of_keys(k_nas_int: &KNasInt, k_nas_enc: &KNasEnc) -> Self {
        Self {
            ng_ksi: NgKsi::Native(0),
            k_amf: KAmf::new([0; 32]),
            integrity: IntegrityAlgorithm::Nia2,
            ciphering: CipheringAlgorithm::Nea2,
            keys: OnceCell::from(Keys {
                mac: NasMac::new(IntegrityAlgorithm::Nia2, k_nas_int),
                cipher: NasCipher::new(CipheringAlgorithm::Nea2, k_nas_enc),
            }),
            uplink: 0,
            downlink: None,
        }
    }

    /// A context with the same K_AMF and COUNTs, and other algorithms (TS 24.501 4.4.2.6).
    pub fn with_algorithms(&self, algorithms: NasSecurityAlgorithms) -> Result<Self, UnknownAlgorithm> {
        let other = Self::new(self.ng_ksi, self.k_amf.clone(), algorithms)?;
        Ok(Self { uplink: self.uplink, downlink: self.downlink, ..other })
    }

    /// The context after a handover whose container has that downlink COUNT.
    pub fn after_container(
        &self,
        algorithms: NasSecurityAlgorithms,
        count: u32,
    ) -> Result<Self, UnknownAlgorithm> {
        let other = self.with_algorithms(algorithms)?;
        Ok(Self { downlink: self.downlink.max(Some(count)), ..other })
    }

    /// The context after a handover whose container has that downlink COUNT, and says that K_AMF has changed: COUNTs begin at 0 (TS 33.501 6.9.2.3.4,
    /// A.13).
    pub fn derived_in_handover(
        &self,
        algorithms: NasSecurityAlgorithms,
        count: u32,
    ) -> Result<Self, UnknownAlgorithm> {
        Self::new(self.ng_ksi, kdf::k_amf_prime(&self.k_amf, Direction::Downlink, count), algorithms)
    }

    /// Checks the container of a handover with the K_NASint of its algorithm; returns its downlink COUNT (TS 33.501 6.9.2.3.3, 6.9.2.3.4).
    pub fn check_container(&self, container: &IntraN1Container) -> Result<u32, CheckFailure> {
        let count = self.estimate(container.sequence_number).ok_or(CheckFailure::Exhausted)?;
        let other = if container.has_new_k_amf {
            self.derived_in_handover(container.algorithms, count)
        } else {
            self.with_algorithms(container.algorithms)
        };
        let other = other.map_err(|_| CheckFailure::Mac)?;
        let input = input(CONTAINER_COUNT, Direction::Downlink);
        let is_valid = other.keys().mac.verify(input, &container.authenticated(), container.mac);
        if is_valid { Ok(count) } else { Err(CheckFailure::Mac) }
    }

    /// Whether its messages have no protection.
    pub fn is_null(&self) -> bool {
        self.integrity == IntegrityAlgorithm::Nia0
    }

    /// The COUNT of the next uplink message.
    pub fn next_uplink(&self) -> u32 {
        self.uplink
    }

    /// The highest COUNT of an accepted downlink message.
    pub fn last_downlink(&self) -> Option<u32> {
        self.downlink
    }

    /// Whether the uplink COUNT has reached its maximum (TS 24.501 4.4.3.5).
    pub fn is_exhausted(&self) -> bool {
        self.uplink >= COUNT_END
    }

    /// Protects a plain message with the next uplink COUNT.
    pub fn seal(&mut self, header: SecurityHeaderType, plain: &[u8]) -> Vec<u8> {
        let input = input(self.uplink, Direction::Uplink);
        let mut message = vec![EPD_5GMM, header.code(), 0, 0, 0, 0, self.uplink as u8];
        message.extend(plain);
        if let (true, Some(body)) = (header.is_ciphered(), message.get_mut(HEADER..)) {
            self.keys().cipher.apply(input, body);
        }
        let mac = self.keys().mac.mac(input, message.get(BEFORE_SEQUENCE_NUMBER..).unwrap_or_default());
        message.splice(2..BEFORE_SEQUENCE_NUMBER, mac);
        self.uplink += 1;
        message
    }

    /// Ciphers the value of the NAS message container in the next uplink message (TS 24.501 4.4.6).
    pub fn cipher_container(&self, container: &mut [u8]) {
        self.keys().cipher.apply(input(self.uplink, Direction::Uplink), container);
    }

    /// Checks the MAC of a downlink message and returns the deciphered plain message (TS 24.501 4.4.3). A message that fails the
    /// check changes nothing.
    pub fn open(&mut self, message: &[u8]) -> Result<Vec<u8>, CheckFailure> {
        let (&[_, header, m0, m1, m2, m3], authenticated) =
            message.split_first_chunk::<BEFORE_SEQUENCE_NUMBER>().ok_or(CheckFailure::TooShort)?;
        let (&sequence_number, body) = authenticated.split_first().ok_or(CheckFailure::TooShort)?;
        let received = [m0, m1, m2, m3];
        let count = self.estimate(sequence_number).ok_or(CheckFailure::Exhausted)?;
        let verify =
            |count| self.keys().mac.verify(input(count, Direction::Downlink), authenticated, received);
        if !verify(count) {
            let used = count.checked_sub(0x100).filter(|used| verify(*used));
            return Err(used.map_or(CheckFailure::Mac, |count| CheckFailure::Replay { count }));
        }
        self.downlink = Some(count);
        let mut plain = body.to_vec();
        if SecurityHeaderType::from_octet(header).is_ciphered() {
            self.keys().cipher.apply(input(count, Direction::Downlink), &mut plain);
        }
        Ok(plain)
    }

    /// The smallest COUNT that is above the last one and has this sequence number (TS 24.501 4.4.3.1).
    fn estimate(&self, sequence_number: u8) -> Option<u32> {
        let sequence_number = u32::from(sequence_number);
        let lowest = self.downlink.map_or(0, |last| last + 1);
        let count = lowest & !0xff | sequence_number;
        let count = if count < lowest { count + 0x100 } else { count };
        (count < COUNT_END).then_some(count)
    }

    /// The context after horizontal derivation of K_AMF, with the uplink COUNT of the REGISTRATION
    /// REQUEST that started the procedure (TS 24.501 5.4.2.3, TS 33.501 A.13).
    pub fn derived(
        &self,
        uplink_count: u32,
        algorithms: NasSecurityAlgorithms,
    ) -> Result<Self, UnknownAlgorithm> {
        let k_amf = kdf::k_amf_prime(&self.k_amf, Direction::Uplink, uplink_count);
        Self::new(self.ng_ksi, k_amf, algorithms)
    }
}

fn input(count: u32, direction: Direction) -> MessageInput {
    MessageInput { count, bearer: BEARER, direction }
}
