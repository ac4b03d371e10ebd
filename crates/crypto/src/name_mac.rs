//! A keyed MAC for names that a process gives out and takes back, such as those in its URIs, and numbers of an installation.

use crate::kdf::hmac_sha256;
use aes::Aes256Enc;
use cmac::{Cmac, Mac};
use std::fmt;

/// AES-256-CMAC (NIST SP 800-38B) under one key, cut to 64 bits: of 2^64 guesses one is right, and each costs a request.
#[derive(Clone)]
pub struct NameMac(Box<Cmac<Aes256Enc>>);

impl NameMac {
    /// Under that key.
    pub fn new(key: &[u8; 32]) -> Self {
        Self(Box::new(<Cmac<Aes256Enc> as cmac::digest::KeyInit>::new(key.into())))
    }

    /// The MAC of a name.
    pub fn of(&self, name: &str) -> u64 {
        self.of_octets(name.as_bytes())
    }

    fn of_octets(&self, octets: &[u8]) -> u64 {
        let mac: [u8; 16] = Cmac::clone(&self.0).chain_update(octets).finalize().into_bytes().into();
        u64::from_be_bytes(crate::keys::part::<0, 8, 16>(&mac))
    }
}

impl fmt::Debug for NameMac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// A number of 128 bits that key and name determine, and that does not reveal the key: two HMAC-SHA-256, cut to 64 bits.
pub fn number(key: &[u8; 32], name: &str) -> u128 {
    let half = |half: &str| {
        let mac = hmac_sha256(key).chain_update(name.as_bytes()).chain_update(half.as_bytes());
        let mac: [u8; 32] = hmac::Mac::finalize(mac).into_bytes().into();
        u128::from(u64::from_be_bytes(crate::keys::part::<0, 8, 32>(&mac)))
    };
    half(" high") << 64 | half(" low")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NIST SP 800-38B, examples of AES-256.
    #[test]
    fn it_is_aes_256_cmac() {
        let key = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4";
        let key: [u8; 32] = hex::decode(key).unwrap().try_into().unwrap();
        let message = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411";
        let message = hex::decode(message).unwrap();
        let mac = NameMac::new(&key);
        assert_eq!(mac.of_octets(&[]), 0x0289_62f6_1b7b_f89e);
        assert_eq!(mac.of_octets(&message[..16]), 0x28a7_023f_452e_8f82);
        assert_eq!(mac.of_octets(&message), 0xaaf3_d8f1_de56_40c2);
    }

    /// RFC 4231 4.3: test case 2 has a shorter key, which HMAC fills with zeros.
    #[test]
    fn a_number_is_two_macs() {
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        let mac = hmac::Mac::finalize(hmac_sha256(&key).chain_update(b"what do ya want for nothing?"));
        assert_eq!(mac.into_bytes()[..8], 0x5bdc_c146_bf60_754e_u64.to_be_bytes());
        let (one, other) = (number(&key, "AMF"), number(&key, "SMF"));
        assert!(one != other && one >> 64 != other >> 64 && one as u64 != other as u64);
        assert_eq!(one, number(&key, "AMF"));
    }
}
