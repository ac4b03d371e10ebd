//! NAS ciphering and deciphering, which are the same operation (TS 33.501 D.2).

use aes::Aes128Enc;
use aes::cipher::{InnerIvInit, KeyInit, StreamCipher};
use ctr::Ctr64BE;
use zuc::eea3::eea3_xor_inplace;

use super::{CipheringAlgorithm, MessageInput, uea2_uia2};
use crate::keys::KNasEnc;

/// A ciphering algorithm with its key.
#[derive(Clone)]
pub struct NasCipher(Inner);

#[derive(Clone)]
enum Inner {
    Nea0,
    Nea1(KNasEnc),
    Nea2(Box<Aes128Enc>),
    Nea3(KNasEnc),
}

impl NasCipher {
    /// Expands the key for the algorithm.
    pub fn new(algorithm: CipheringAlgorithm, key: &KNasEnc) -> Self {
        Self(match algorithm {
            CipheringAlgorithm::Nea0 => Inner::Nea0,
            CipheringAlgorithm::Nea1 => Inner::Nea1(key.clone()),
            CipheringAlgorithm::Nea2 => Inner::Nea2(Box::new(Aes128Enc::new(key.as_bytes().into()))),
            CipheringAlgorithm::Nea3 => Inner::Nea3(key.clone()),
        })
    }

    /// The algorithm.
    pub fn algorithm(&self) -> CipheringAlgorithm {
        match self.0 {
            Inner::Nea0 => CipheringAlgorithm::Nea0,
            Inner::Nea1(_) => CipheringAlgorithm::Nea1,
            Inner::Nea2(_) => CipheringAlgorithm::Nea2,
            Inner::Nea3(_) => CipheringAlgorithm::Nea3,
        }
    }

    /// Ciphers or deciphers in place. 128-NEA0 leaves the octets unchanged.
    pub fn apply(&self, input: MessageInput, octets: &mut [u8]) {
        match &self.0 {
            Inner::Nea0 => {}
            Inner::Nea1(key) => uea2_uia2::eea1(key.as_bytes(), input, octets),
            Inner::Nea2(aes) => nea2(aes, input, octets),
            Inner::Nea3(key) => nea3(key.as_bytes(), input, octets),
        }
    }
}

/// AES-CTR with initial counter block COUNT || BEARER || DIRECTION || 0..0, whose low 64 bits are incremented
/// (TS 33.401 B.1.3).
fn nea2(aes: &Aes128Enc, input: MessageInput, octets: &mut [u8]) {
    let mut counter = [0; 16];
    counter[..8].copy_from_slice(&input.to_bytes());
    let core = ctr::CtrCore::<&Aes128Enc, ctr::flavors::Ctr64BE>::inner_iv_init(aes, &counter.into());
    Ctr64BE::<&Aes128Enc>::from_core(core).apply_keystream(octets);
}

/// 128-EEA3 (TS 35.221 3).
fn nea3(key: &[u8; 16], input: MessageInput, octets: &mut [u8]) {
    let direction = input.direction as u8;
    eea3_xor_inplace(input.count, input.bearer, direction, key, octets, 8 * octets.len());
}
