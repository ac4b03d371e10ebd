//! Key derivation (TS 33.220 Annex B.2, TS 33.501 Annex A).
//!
//! ```text
//! CK, IK --five_g_he_av--> K_AUSF, XRES*     -> K_SEAF -> K_AMF -> K_NASint, K_NASenc
//!        --ck_ik_prime---> CK', IK' (EAP)                       -> K_gNB -> K_NG-RAN*
//!                                                               -> NH
//! ```

mod access;
mod authentication;

use hmac::{Hmac, Mac};
use sha2::Sha256;

pub use access::*;
pub use authentication::*;

/// HMAC-SHA-256(`key`, FC || P0 || L0 || P1 || L1 ..) (TS 33.220 B.2).
///
/// A parameter longer than 65535 octets, which exceeds its length field, is truncated.
pub(crate) fn kdf(key: &[u8], fc: u8, parameters: &[&[u8]]) -> [u8; 32] {
    let mut mac = hmac_sha256(key);
    mac.update(&[fc]);
    for parameter in parameters {
        let length = u16::try_from(parameter.len()).unwrap_or(u16::MAX);
        mac.update(&parameter[..usize::from(length)]);
        mac.update(&length.to_be_bytes());
    }
    mac.finalize().into_bytes().into()
}

/// An HMAC-SHA-256; the key may have any length.
pub(crate) fn hmac_sha256(key: &[u8]) -> Hmac<Sha256> {
    Mac::new_from_slice(key).expect("HMAC takes a key of any length")
}

/// CK || IK, the key of the first derivations.
fn ck_ik(ck: &[u8; 16], ik: &[u8; 16]) -> zeroize::Zeroizing<[u8; 32]> {
    let mut key = zeroize::Zeroizing::new([0; 32]);
    key[..16].copy_from_slice(ck);
    key[16..].copy_from_slice(ik);
    key
}

#[cfg(test)]
mod tests;
