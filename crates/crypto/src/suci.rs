//! Concealment and de-concealment of a SUPI with ECIES (TS 33.501 Annex C.3).
//!
//! ```text
//! profile A: X25519     ephemeral public key 32 octets
//! profile B: P-256      33 octets compressed, 65 uncompressed
//! scheme output = ephemeral public key || cipher text || MAC tag (8 octets)
//! ```
//!
//! The null scheme (C.2) conceals nothing and needs no function: its output is its input. Profile B requires
//! compressed points; uncompressed ones are accepted too.

mod ecies;
mod msin;

use aws_lc_rs::agreement::{ECDH_P256, PrivateKey, UnparsedPublicKey, X25519, agree};
use aws_lc_rs::encoding::{AsBigEndian, EcPublicKeyCompressedBin};

pub use msin::{decode_msin, encode_msin};

/// Lengths of ephemeral public keys in octets: profile A, and profile B compressed and uncompressed.
const X25519_POINT: usize = 32;
const COMPRESSED_POINT: usize = 33;
const UNCOMPRESSED_POINT: usize = 65;

/// The ECIES profiles (TS 33.501 C.3.4); the value is the protection scheme identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Profile {
    /// X25519.
    A = 1,
    /// P-256.
    B = 2,
}

/// The octets are not a valid key of the profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a key of ECIES profile {0:?}")]
pub struct InvalidKey(pub Profile);

/// The reason why a scheme output cannot be de-concealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SuciError {
    /// The output is shorter than an ephemeral public key and a MAC tag.
    #[error("scheme output too short")]
    TooShort,
    /// The ephemeral public key is not a valid point, or yields no shared secret.
    #[error("ephemeral public key not valid")]
    InvalidEphemeralKey,
    /// The MAC tag does not match: another home network key, or modified octets.
    #[error("MAC tag does not match")]
    MacMismatch,
}

/// A home network's private key.
pub struct HomeNetworkPrivateKey {
    profile: Profile,
    key: PrivateKey,
}

impl HomeNetworkPrivateKey {
    /// Creates a key from the 32 octets of the private key, big endian for profile B.
    pub fn new(profile: Profile, octets: &[u8]) -> Result<Self, InvalidKey> {
        let key = private_key(profile, octets).ok_or(InvalidKey(profile))?;
        Ok(Self { profile, key })
    }

    /// The profile of the key.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// The public key for USIMs.
    pub fn public_key(&self) -> Result<HomeNetworkPublicKey, InvalidKey> {
        let octets = public_octets(self.profile, &self.key).ok_or(InvalidKey(self.profile))?;
        Ok(HomeNetworkPublicKey { profile: self.profile, octets })
    }

    /// De-conceals a scheme output; for an IMSI, decode the result with [`decode_msin`] (TS 33.501 C.3.3).
    pub fn deconceal(&self, scheme_output: &[u8]) -> Result<Vec<u8>, SuciError> {
        let (ephemeral, rest) = split_ephemeral_key(self.profile, scheme_output)?;
        let (cipher_text, tag) = rest.split_last_chunk().ok_or(SuciError::TooShort)?;
        let open = |secret: &[u8]| open_any(secret, ephemeral, cipher_text, tag);
        shared_secret(self.profile, &self.key, ephemeral, open)
    }
}

/// The tag is computed with a key derived from the ephemeral public key's octets. Some UEs send an
/// uncompressed point but derive the key from the compressed one, so that both are tried.
fn open_any(
    secret: &[u8],
    ephemeral: &[u8],
    cipher_text: &[u8],
    tag: &[u8; ecies::TAG_LENGTH],
) -> Result<Vec<u8>, SuciError> {
    let as_sent = ecies::open(secret, ephemeral, cipher_text, tag);
    match (as_sent, compressed(ephemeral)) {
        (Err(SuciError::MacMismatch), Some(point)) => ecies::open(secret, &point, cipher_text, tag),
        (result, _) => result,
    }
}

/// The compressed form of an uncompressed point: parity of Y, then X (SEC 1 2.3.3).
fn compressed(point: &[u8]) -> Option<[u8; COMPRESSED_POINT]> {
    let [0x04, coordinates @ ..] = point else {
        return None;
    };
    let x = coordinates.first_chunk::<32>()?;
    let mut compressed = [0; COMPRESSED_POINT];
    compressed[0] = 0x02 | (coordinates.last()? & 1);
    compressed[1..].copy_from_slice(x);
    Some(compressed)
}

fn split_ephemeral_key(profile: Profile, output: &[u8]) -> Result<(&[u8], &[u8]), SuciError> {
    let length = match (profile, output.first()) {
        (_, None) => return Err(SuciError::TooShort),
        (Profile::A, _) => X25519_POINT,
        (Profile::B, Some(0x02 | 0x03)) => COMPRESSED_POINT,
        (Profile::B, Some(0x04)) => UNCOMPRESSED_POINT,
        (Profile::B, _) => return Err(SuciError::InvalidEphemeralKey),
    };
    output.split_at_checked(length).ok_or(SuciError::TooShort)
}

/// A home network's public key, stored in the USIM or the ME.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeNetworkPublicKey {
    profile: Profile,
    octets: Vec<u8>,
}

impl HomeNetworkPublicKey {
    /// Creates a key from its octets: 32 for profile A; 33 or 65 for profile B.
    pub fn new(profile: Profile, octets: &[u8]) -> Result<Self, InvalidKey> {
        match split_ephemeral_key(profile, octets) {
            Ok((point, [])) => Ok(Self { profile, octets: point.to_vec() }),
            _ => Err(InvalidKey(profile)),
        }
    }

    /// The profile of the key.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// The octets of the key; a derived point of profile B is compressed.
    pub fn as_bytes(&self) -> &[u8] {
        &self.octets
    }

    /// The scheme output that conceals `plain_text`. `ephemeral_private_key` is 32 random octets used only
    /// once (TS 33.501 C.3.2).
    pub fn conceal(
        &self,
        ephemeral_private_key: &[u8; 32],
        plain_text: &[u8],
    ) -> Result<Vec<u8>, InvalidKey> {
        let error = InvalidKey(self.profile);
        let key = private_key(self.profile, ephemeral_private_key).ok_or(error)?;
        let mut output = public_octets(self.profile, &key).ok_or(error)?;
        let sealed = shared_secret(self.profile, &key, &self.octets, |secret| {
            Ok(ecies::seal(secret, &output, plain_text))
        });
        output.extend(sealed.map_err(|_| error)?);
        Ok(output)
    }
}

fn private_key(profile: Profile, octets: &[u8]) -> Option<PrivateKey> {
    let algorithm = match profile {
        Profile::A => &X25519,
        Profile::B => &ECDH_P256,
    };
    PrivateKey::from_private_key(algorithm, octets).ok()
}

fn public_octets(profile: Profile, key: &PrivateKey) -> Option<Vec<u8>> {
    let public = key.compute_public_key().ok()?;
    match profile {
        Profile::A => Some(public.as_ref().to_vec()),
        Profile::B => {
            let point: EcPublicKeyCompressedBin<'_> = public.as_be_bytes().ok()?;
            Some(point.as_ref().to_vec())
        }
    }
}

fn shared_secret<T>(
    profile: Profile,
    own: &PrivateKey,
    peer: &[u8],
    with: impl FnOnce(&[u8]) -> Result<T, SuciError>,
) -> Result<T, SuciError> {
    let algorithm = match profile {
        Profile::A => &X25519,
        Profile::B => &ECDH_P256,
    };
    let peer = UnparsedPublicKey::new(algorithm, peer);
    agree(own, peer, SuciError::InvalidEphemeralKey, with)
}

#[cfg(test)]
mod tests;
