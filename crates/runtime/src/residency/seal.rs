//! Encryption of documents with AES-256-GCM.
//!
//! ```text
//!  key file ── HMAC-SHA256("pith documents 1") ──> secret ── HMAC-SHA256(salt) ──> key of one log segment or writer
//! ```
//!
//! A segment's key is used for one file only, by the process that made it (the salt is random). The nonces of its records are
//! consecutive numbers; a failed write uses its numbers up, too. So no nonce is used twice under a key, neither after a restart nor
//! after a cut tail or a compaction. Random nonces would be exhausted after 2^32 records (NIST SP 800-38D 8.3).

use crate::store::{SealError, read_key_file};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hmac;
use std::path::{Path, PathBuf};

/// Octets that sealing adds.
pub(super) const TAG: usize = 16;
/// Octets of a salt.
pub(super) const SALT: usize = 16;
/// Purpose of the derived key; any other use of the key file has another text.
const PURPOSE: &[u8] = b"pith documents 1";

/// The secret from which the keys of documents are derived.
#[derive(Clone)]
pub struct DocumentSecret {
    key: hmac::Key,
    path: PathBuf,
}

impl DocumentSecret {
    /// The secret of a key file (`store.key_file`). If the file does not exist and `may_make`, creates it.
    pub fn of_file(path: &Path, may_make: bool) -> Result<Self, SealError> {
        let key = read_key_file(path, may_make)?;
        Ok(Self::of_key(&key, path))
    }

    /// The secret of a key that is not stored, for documents that do not outlive the process.
    pub fn ephemeral() -> Result<Self, SealError> {
        let mut key = zeroize::Zeroizing::new([0; 32]);
        getrandom::fill(&mut *key).map_err(|_| SealError::Library)?;
        Ok(Self::of_key(&key, Path::new("memory")))
    }

    /// A secret that everyone can derive: for simulations, whose documents do not leave the process.
    pub fn of_number(number: u64) -> Self {
        let mut key = [0; 32];
        if let Some(low) = key.first_chunk_mut() {
            *low = number.to_le_bytes();
        }
        Self::of_key(&key, Path::new("simulation"))
    }

    fn of_key(key: &[u8; 32], path: &Path) -> Self {
        let derived = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), PURPOSE);
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref()), path: path.into() }
    }

    /// The id of the secret, which reveals nothing about it.
    pub(super) fn id(&self) -> [u8; 8] {
        let id = hmac::sign(&self.key, b"id");
        id.as_ref().first_chunk().copied().unwrap_or_default()
    }

    /// A number for that name, the same wherever the secret is known, which reveals nothing about the name.
    pub(super) fn number(&self, name: &str) -> u64 {
        let number = hmac::sign(&self.key, format!("number {name}").as_bytes());
        u64::from_be_bytes(number.as_ref().first_chunk().copied().unwrap_or_default())
    }

    /// The path of the key file, for errors.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The key of a segment or writer with that salt.
    pub(super) fn key(&self, salt: &[u8; SALT]) -> Option<DocumentKeySchedule> {
        let derived = hmac::sign(&self.key, &[b"segment ".as_slice(), salt].concat());
        let key = UnboundKey::new(&AES_256_GCM, derived.as_ref()).ok()?;
        Some(DocumentKeySchedule(LessSafeKey::new(key)))
    }
}

impl std::fmt::Debug for DocumentSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DocumentSecret({})", self.path.display())
    }
}

/// A key that is ready for use.
pub(super) struct DocumentKeySchedule(LessSafeKey);

impl DocumentKeySchedule {
    /// Encrypts in place and returns the tag. `number` must be used once.
    pub fn seal(&self, number: u32, associated: &[u8], octets: &mut [u8]) -> Option<[u8; TAG]> {
        let tag = self.0.seal_in_place_separate_tag(nonce(number), Aad::from(associated), octets).ok()?;
        tag.as_ref().try_into().ok()
    }

    /// Decrypts octets with their tag in place.
    pub fn open<'a>(&self, number: u32, associated: &[u8], octets: &'a mut [u8]) -> Option<&'a mut [u8]> {
        self.0.open_in_place(nonce(number), Aad::from(associated), octets).ok()
    }
}

fn nonce(number: u32) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    if let Some(low) = nonce.first_chunk_mut() {
        *low = number.to_le_bytes();
    }
    Nonce::assume_unique_for_key(nonce)
}
