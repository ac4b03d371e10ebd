//! Encryption of stored subscribers' keys with AES-256-GCM and a key outside the database.
//!
//! A sealed value consists of nonce, ciphertext and tag. The SUPI is authenticated data, so that the keys of
//! a row cannot be used in another row. The database file alone does not reveal K, OPc or TOPc; the database
//! file and the key file together do.

use crate::private_file::{self, ReadError, Readers};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::digest::{SHA256, digest};
use pith_nf::kit::{Authentication, Secret};
use pith_types::Supi;
use std::io;
use std::path::{Path, PathBuf};
use zeroize::{Zeroize, Zeroizing};

/// Octets of the key.
const KEY: usize = 32;
/// Purpose of a sealed value; any other use of the key would have another text here.
const PURPOSE: &str = "pith subscriber keys 1 ";

/// An error of sealing or opening keys.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The key file cannot be read or created.
    #[error("cannot use the key file {}: {source}; set 'store.key_file' to another one", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// There is no key file, although something was sealed with its key.
    #[error("the key file {} is missing, with which keys of subscribers and contexts of UEs were sealed: restore it from your backup, or set 'store.key_file' to its place", .0.display())]
    Missing(PathBuf),
    /// Others than its owner may read the key file.
    #[error("the key file {} can be read by other users: change its mode with 'chmod 600'", .0.display())]
    Exposed(PathBuf),
    /// The content of the key file is not a key.
    #[error("the key file {} must hold 64 hexadecimal digits; restore it from your backup, as subscribers' keys cannot be read without it", .0.display())]
    NotAKey(PathBuf),
    /// The database was sealed with another key, or the key file is missing.
    #[error("subscribers' keys were sealed with the key {wanted}, but {} contains the key {found}: restore that file from your backup, or import the subscribers into a new database", path.display())]
    OtherKey {
        /// Path of the key file.
        path: PathBuf,
        /// The id of the key in the file.
        found: String,
        /// The id of the key that the database needs.
        wanted: String,
    },
    /// A sealed value was modified, or belongs to another subscriber.
    #[error("the sealed keys of {} were modified or belong to another subscriber: delete that subscriber and add it again", .0.masked())]
    Changed(Supi),
    /// The cryptographic library failed.
    #[error("AES-256-GCM failed")]
    Library,
}

/// Encrypts and decrypts subscribers' keys.
pub(super) struct Seal {
    key: LessSafeKey,
    id: String,
}

impl Seal {
    /// Uses a random key that is not stored, for a database in memory.
    pub(super) fn ephemeral() -> Result<Self, SealError> {
        let key = random_key()?;
        Self::new(&key)
    }

    /// Uses the key of a file. If the file does not exist and `may_make`, creates it.
    pub(super) fn of_file(path: &Path, may_make: bool) -> Result<Self, SealError> {
        let key = read_key_file(path, may_make)?;
        Self::new(&key)
    }

    fn new(key: &[u8; KEY]) -> Result<Self, SealError> {
        let digest = digest(&SHA256, key);
        let key = UnboundKey::new(&AES_256_GCM, key).map_err(|_| SealError::Library)?;
        let key = LessSafeKey::new(key);
        Ok(Self { key, id: hex::encode(digest.as_ref().get(..4).unwrap_or_default()) })
    }

    /// The id of the key, which reveals nothing about it.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Encrypts the keys of a subscriber.
    pub(super) fn seal(&self, supi: &Supi, keys: &Authentication) -> Result<Vec<u8>, SealError> {
        let mut plain = Zeroizing::new(Vec::with_capacity(16 + 17 + 33));
        plain.extend(keys.k.0);
        put(&mut plain, keys.opc.as_ref());
        put(&mut plain, keys.topc.as_ref());
        let mut sealed = plain.to_vec();
        // From the system, not from the library: its generator takes 5 ms to collect entropy at its first use. 2^32 random
        // nonces under one key are safe (NIST SP 800-38D 8.3).
        let mut nonce = [0; NONCE_LEN];
        let aad = Aad::from(purpose(supi));
        let is_sealed = getrandom::fill(&mut nonce).is_ok()
            && self.key.seal_in_place_append_tag(Nonce::from(&nonce), aad, &mut sealed).is_ok();
        if !is_sealed {
            sealed.zeroize();
            return Err(SealError::Library);
        }
        Ok([nonce.as_slice(), &sealed].concat())
    }

    /// Decrypts the keys into a subscriber that was stored without them.
    pub(super) fn open(
        &self,
        supi: &Supi,
        sealed: &[u8],
        into: &mut Authentication,
    ) -> Result<(), SealError> {
        let changed = || SealError::Changed(supi.clone());
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN).ok_or_else(changed)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| changed())?;
        let mut buffer = Zeroizing::new(sealed.to_vec());
        let plain =
            self.key.open_in_place(nonce, Aad::from(purpose(supi)), &mut buffer).map_err(|_| changed())?;
        let mut rest: &[u8] = plain;
        into.k = Secret(*take(&mut rest).ok_or_else(changed)?);
        into.opc = get(&mut rest).ok_or_else(changed)?;
        into.topc = get(&mut rest).ok_or_else(changed)?;
        Ok(())
    }
}

/// Reads the key of a file. If the file does not exist and `may_make`, creates it.
pub(crate) fn read_key_file(path: &Path, may_make: bool) -> Result<Zeroizing<[u8; KEY]>, SealError> {
    let file = |source| SealError::File { path: path.into(), source };
    let text = match private_file::read(path, Readers::Owner) {
        Ok(text) => text,
        Err(error) if error.is_not_found() && may_make => {
            let text = Zeroizing::new(hex::encode(*random_key()?) + "\n");
            private_file::create_once(path, &text).map_err(file)?;
            // Another process may have been first.
            private_file::read(path, Readers::Owner).map_err(|error| file(error.into_io()))?
        }
        Err(error) if error.is_not_found() => return Err(SealError::Missing(path.into())),
        Err(ReadError::Exposed) => return Err(SealError::Exposed(path.into())),
        Err(error) => return Err(file(error.into_io())),
    };
    let mut key = Zeroizing::new([0; KEY]);
    hex::decode_to_slice(text.trim(), &mut *key).map_err(|_| SealError::NotAKey(path.into()))?;
    Ok(key)
}

/// The authentication data of a subscriber without its keys, for the profile's JSON.
pub(super) fn without_keys(authentication: &Authentication) -> Authentication {
    Authentication { k: Secret([0; 16]), opc: None, topc: None, ..authentication.clone() }
}

fn purpose(supi: &Supi) -> Vec<u8> {
    format!("{PURPOSE}{supi}").into_bytes()
}

fn random_key() -> Result<Zeroizing<[u8; KEY]>, SealError> {
    let mut key = Zeroizing::new([0; KEY]);
    getrandom::fill(&mut *key).map_err(|_| SealError::Library)?;
    Ok(key)
}

/// Writes an octet for the presence of a key, and the key.
fn put<const N: usize>(to: &mut Vec<u8>, key: Option<&Secret<N>>) {
    to.push(u8::from(key.is_some()));
    to.extend(key.iter().flat_map(|key| key.0));
}

fn get<const N: usize>(from: &mut &[u8]) -> Option<Option<Secret<N>>> {
    match take::<1>(from)? {
        [0] => Some(None),
        [1] => Some(Some(Secret(*take(from)?))),
        _ => None,
    }
}

fn take<'a, const N: usize>(from: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (taken, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(taken)
}
