//! A keyed MAC for names that a process gives out and takes back, such as those in its URIs.

use crate::kdf::hmac_sha256;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::fmt;

/// HMAC-SHA-256 under one key, cut to 64 bits: of 2^64 guesses one is right, and each costs a request.
#[derive(Clone)]
pub struct NameMac(Hmac<Sha256>);

impl NameMac {
    /// Under that key.
    pub fn new(key: &[u8; 32]) -> Self {
        Self(hmac_sha256(key))
    }

    /// The MAC of a name.
    pub fn of(&self, name: &str) -> u64 {
        let mac: [u8; 32] = self.0.clone().chain_update(name.as_bytes()).finalize().into_bytes().into();
        u64::from_be_bytes(crate::keys::part::<0, 8, 32>(&mac))
    }
}

impl fmt::Debug for NameMac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231 4.3, test case 2 has a shorter key, which HMAC fills with zeros.
    #[test]
    fn it_is_hmac_sha_256() {
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        assert_eq!(NameMac::new(&key).of("what do ya want for nothing?"), 0x5bdc_c146_bf60_754e);
    }
}
