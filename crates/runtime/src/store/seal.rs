//! Subscribers' keys at rest: sealed by AES-256-GCM under a key that is not in the database.
//!
//! A sealed value is nonce, ciphertext and tag. The SUPI is authenticated with it, so that a row's keys are of no use
//! in another row. Who has the file of the database has no K, OPc or TOPc; who has the key file too has all of them.

use crate::private_file::{self, ReadError, Readers};
use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::digest::{SHA256, digest};
use pith_nf::kit::{Authentication, Secret};
use pith_types::Supi;
use std::io;
use std::path::{Path, PathBuf};
use zeroize::{Zeroize, Zeroizing};

/// Octets of the key.
const KEY: usize = 32;
/// What a sealed value is for: another use of the same key would have another text here.
const PURPOSE: &str = "pith subscriber keys 1 ";

/// Why keys can't be sealed or opened.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The key file can't be read or made.
    #[error("can't use the key file {}: {source}; 'store.key_file' names another", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others than its owner may read the key file.
    #[error("the key file {} can be read by others: 'chmod 600' it", .0.display())]
    Exposed(PathBuf),
    /// The key file holds something else.
    #[error("the key file {} must hold 64 hexadecimal digits; restore it from your backup: without it the keys of subscribers can't be read", .0.display())]
    NotAKey(PathBuf),
    /// The database was sealed under another key, or the key file is gone.
    #[error("the keys of subscribers were sealed under the key {wanted}, and {} holds {found}: restore that file from your backup, or import the subscribers into a new database", path.display())]
    OtherKey {
        /// Which file.
        path: PathBuf,
        /// The id of the key in it.
        found: String,
        /// The id of the key that the database wants.
        wanted: String,
    },
    /// A sealed value was changed, or is another subscriber's.
    #[error("the sealed keys of {} were changed or belong to another subscriber: delete that subscriber and add it anew", .0.masked())]
    Changed(Supi),
    /// The cryptographic library failed.
    #[error("AES-256-GCM failed")]
    Library,
}

/// Seals and opens subscribers' keys.
pub(super) struct Seal {
    key: RandomizedNonceKey,
    id: String,
}

impl Seal {
    /// Under a key that nobody keeps: for a database in memory.
    pub(super) fn ephemeral() -> Result<Self, SealError> {
        let key = random_key()?;
        Self::new(&key)
    }

    /// Under the key of that file, which is made if there is none and `may_make`.
    pub(super) fn of_file(path: &Path, may_make: bool) -> Result<Self, SealError> {
        let file = |source| SealError::File { path: path.into(), source };
        let text = match private_file::read(path, Readers::Owner) {
            Ok(text) => text,
            Err(error) if error.is_not_found() && may_make => {
                let text = Zeroizing::new(hex::encode(*random_key()?) + "\n");
                private_file::create(path, &text).map_err(file)?;
                text
            }
            Err(ReadError::Io(error)) => return Err(file(error)),
            Err(ReadError::Exposed) => return Err(SealError::Exposed(path.into())),
        };
        let mut key = Zeroizing::new([0; KEY]);
        hex::decode_to_slice(text.trim(), &mut *key).map_err(|_| SealError::NotAKey(path.into()))?;
        Self::new(&key)
    }

    fn new(key: &[u8; KEY]) -> Result<Self, SealError> {
        let digest = digest(&SHA256, key);
        let key = RandomizedNonceKey::new(&AES_256_GCM, key).map_err(|_| SealError::Library)?;
        Ok(Self { key, id: hex::encode(digest.as_ref().get(..4).unwrap_or_default()) })
    }

    /// Names the key without telling anything of it.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The keys of a subscriber, sealed.
    pub(super) fn seal(&self, supi: &Supi, keys: &Authentication) -> Result<Vec<u8>, SealError> {
        let mut plain = Zeroizing::new(Vec::with_capacity(16 + 17 + 33));
        plain.extend(keys.k.0);
        put(&mut plain, keys.opc.as_ref());
        put(&mut plain, keys.topc.as_ref());
        let mut sealed = plain.to_vec();
        let aad = Aad::from(purpose(supi));
        let Ok(nonce) = self.key.seal_in_place_append_tag(aad, &mut sealed) else {
            sealed.zeroize();
            return Err(SealError::Library);
        };
        Ok([nonce.as_ref().as_slice(), &sealed].concat())
    }

    /// Puts the sealed keys into a subscriber that was stored without them.
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

/// The authentication data of a subscriber without its keys, as the profile's JSON stores it.
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

/// An octet that says whether there is one, then the key.
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
