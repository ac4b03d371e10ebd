//! The symmetric part of ECIES (TS 33.501 C.3.4): key derivation (SEC 1 3.6.1), MAC tag (SEC 1 3.7) and encryption
//! (SEC 1 3.8).

use aes::Aes128;
use aes::cipher::{KeyIvInit, StreamCipher};
use hmac::Mac;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::SuciError;
use crate::kdf::hmac_sha256;
use crate::keys::equal_in_constant_time;

/// Length of the MAC tag in octets.
pub(super) const TAG_LENGTH: usize = 8;

/// The derived key data: encryption key (16 octets), initial counter block (16) and MAC key (32) (TS 33.501 C.3.2, C.3.4).
struct Keys {
    data: Zeroizing<[u8; 64]>,
}

impl Keys {
    /// ANSI-X9.63-KDF (SEC 1 3.6.1): blocks of SHA-256(shared secret || counter || SharedInfo1). SharedInfo1 is the
    /// ephemeral public key (TS 33.501 C.3.4).
    fn derive(shared_secret: &[u8], ephemeral_public_key: &[u8]) -> Self {
        let mut data = Zeroizing::new([0; 64]);
        for (block, counter) in data.chunks_exact_mut(32).zip(1u32..) {
            let hash = Sha256::new()
                .chain_update(shared_secret)
                .chain_update(counter.to_be_bytes())
                .chain_update(ephemeral_public_key);
            block.copy_from_slice(&hash.finalize());
        }
        Self { data }
    }

    /// Encrypts or decrypts with AES-128-CTR; only the last 32 bits of the counter block are incremented.
    fn apply_ctr(&self, octets: &mut [u8]) {
        let (key, initial_counter_block) = (&self.data[..16], &self.data[16..32]);
        ctr::Ctr32BE::<Aes128>::new(key.into(), initial_counter_block.into()).apply_keystream(octets);
    }

    /// HMAC-SHA-256, truncated to the first 64 bits.
    fn tag(&self, cipher_text: &[u8]) -> [u8; TAG_LENGTH] {
        let mac = hmac_sha256(&self.data[32..]).chain_update(cipher_text).finalize();
        let mac: [u8; 32] = mac.into_bytes().into();
        crate::keys::part::<0, TAG_LENGTH, 32>(&mac)
    }
}

/// Encrypts the plain text. Returns the cipher text, followed by its tag.
pub(super) fn seal(shared_secret: &[u8], ephemeral_public_key: &[u8], plain_text: &[u8]) -> Vec<u8> {
    let keys = Keys::derive(shared_secret, ephemeral_public_key);
    let mut sealed = plain_text.to_vec();
    keys.apply_ctr(&mut sealed);
    let tag = keys.tag(&sealed);
    sealed.extend(tag);
    sealed
}

/// Verifies the tag, and decrypts the cipher text.
pub(super) fn open(
    shared_secret: &[u8],
    ephemeral_public_key: &[u8],
    cipher_text: &[u8],
    tag: &[u8; TAG_LENGTH],
) -> Result<Vec<u8>, SuciError> {
    let keys = Keys::derive(shared_secret, ephemeral_public_key);
    if !equal_in_constant_time(&keys.tag(cipher_text), tag) {
        return Err(SuciError::MacMismatch);
    }
    let mut plain_text = cipher_text.to_vec();
    keys.apply_ctr(&mut plain_text);
    Ok(plain_text)
}
