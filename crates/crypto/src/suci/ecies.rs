//! The symmetric part of ECIES: key derivation, encryption, MAC tag (TS 33.501 C.3.4; SEC 1 3.6.1, 3.8).

use aes::Aes128;
use aes::cipher::{KeyIvInit, StreamCipher};
use hmac::Mac;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::SuciError;
use crate::kdf::hmac_sha256;
use crate::keys::equal;

/// Length of the MAC tag in octets.
pub(super) const TAG: usize = 8;

/// Encryption key, initial counter block and MAC key (TS 33.501 C.3.2).
struct Keys {
    data: Zeroizing<[u8; 64]>,
}

impl Keys {
    /// ANSI X9.63: SHA-256(secret || counter || SharedInfo1), with the ephemeral public key as SharedInfo1.
    fn derive(secret: &[u8], ephemeral: &[u8]) -> Self {
        let mut data = Zeroizing::new([0; 64]);
        for (block, counter) in data.chunks_exact_mut(32).zip(1u32..) {
            let hash = Sha256::new()
                .chain_update(secret)
                .chain_update(counter.to_be_bytes())
                .chain_update(ephemeral);
            block.copy_from_slice(&hash.finalize());
        }
        Self { data }
    }

    /// AES-128-CTR with a 32-bit counter; its own inverse.
    fn cipher(&self, octets: &mut [u8]) {
        let (key, icb) = (&self.data[..16], &self.data[16..32]);
        ctr::Ctr32BE::<Aes128>::new(key.into(), icb.into()).apply_keystream(octets);
    }

    /// HMAC-SHA-256 truncated to 64 bits.
    fn tag(&self, cipher_text: &[u8]) -> [u8; TAG] {
        let mac = hmac_sha256(&self.data[32..]).chain_update(cipher_text).finalize();
        let mac: [u8; 32] = mac.into_bytes().into();
        crate::keys::part::<0, TAG, 32>(&mac)
    }
}

/// Cipher text and tag.
pub(super) fn seal(secret: &[u8], ephemeral: &[u8], plain_text: &[u8]) -> Vec<u8> {
    let keys = Keys::derive(secret, ephemeral);
    let mut sealed = plain_text.to_vec();
    keys.cipher(&mut sealed);
    let tag = keys.tag(&sealed);
    sealed.extend(tag);
    sealed
}

/// The plain text, if the tag matches.
pub(super) fn open(
    secret: &[u8],
    ephemeral: &[u8],
    cipher_text: &[u8],
    tag: &[u8; TAG],
) -> Result<Vec<u8>, SuciError> {
    let keys = Keys::derive(secret, ephemeral);
    if !equal(&keys.tag(cipher_text), tag) {
        return Err(SuciError::MacMismatch);
    }
    let mut plain_text = cipher_text.to_vec();
    keys.cipher(&mut plain_text);
    Ok(plain_text)
}
