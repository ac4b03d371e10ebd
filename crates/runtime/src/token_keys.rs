//! The keys that sign the NRF's access tokens (TS 33.501 13.4.1, ES256).
//!
//! They are kept in a file that only its owner reads, so that tokens outlive a restart of the NRF. A key is replaced
//! after [`ROTATION`]; its public half is published until the last token that it signed has expired. Every use of the
//! keys first replaces and forgets what is due, so that a stolen key is of no use longer than that, even if no token
//! is requested for weeks.

use crate::private_file::{self, PRIVATE, ReadError, Readers};
use pith_crypto::jws::{JwsAlgorithm, SigningKey, sha256};
use pith_nf::nrf::TokenSigner;
use pith_sbi::token::{AccessTokenClaims, jwks};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use zeroize::Zeroizing;

/// Validity of a token. A producer verifies tokens without the NRF, so that a token cannot be revoked before
/// its expiry.
pub const LIFETIME: Duration = Duration::from_secs(3600);

/// Time for which a key signs: it limits the use of a stolen key.
const ROTATION: Duration = Duration::from_secs(30 * 24 * 3600);

/// Time added to the publication of a replaced key, because clocks may differ.
const GRACE: Duration = Duration::from_secs(60);

/// An error of the token keys.
#[derive(Debug, thiserror::Error)]
pub enum TokenKeyError {
    /// The file cannot be read or written.
    #[error("the NRF's token keys {}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Others than its owner may read the file.
    #[error("the NRF's token keys {} can be read by other users: change its mode with 'chmod 600'", .0.display())]
    Exposed(PathBuf),
    /// The content of the file is not a list of keys.
    #[error("{} does not contain the NRF's token keys: remove it to have new ones created", .0.display())]
    NotKeys(PathBuf),
    /// The operating system's random source failed.
    #[error("the operating system's random source failed: {0}")]
    Randomness(getrandom::Error),
}

/// A key as stored in the file.
#[derive(Serialize, Deserialize)]
struct Stored {
    /// The private key, 64 hexadecimal digits.
    d: String,
    /// Time of creation, seconds since 1970.
    made: u64,
}

struct SigningKeyOfAge {
    key: SigningKey,
    id: Arc<str>,
    stored: Stored,
}

/// The NRF's keys; the last one signs.
pub struct TokenKeys {
    path: Option<PathBuf>,
    keys: Mutex<Vec<SigningKeyOfAge>>,
}

impl TokenKeys {
    /// Reads the keys of a file; creates the file if it does not exist. Without a file the keys are lost when
    /// the process ends.
    pub fn open(path: Option<PathBuf>) -> Result<Self, TokenKeyError> {
        let keys = match path.as_deref() {
            Some(path) => read(path)?,
            None => Vec::new(),
        };
        let this = Self { path, keys: Mutex::new(keys) };
        this.rotate(now())?;
        Ok(this)
    }

    /// The public halves at `now`, in seconds since 1970: a JWK Set (RFC 7517).
    pub fn published(&self, now: u64) -> Vec<u8> {
        self.rotate_or_warn(now);
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let list: Vec<_> = keys.iter().map(|key| (Arc::clone(&key.id), key.key.point())).collect();
        jwks(&list)
    }

    /// Makes a new key if the last one has signed for [`ROTATION`], and forgets those whose tokens have expired.
    fn rotate(&self, now: u64) -> Result<(), TokenKeyError> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let before = keys.len();
        forget_expired(&mut keys, now);
        let is_due = keys.last().is_none_or(|key| now >= key.stored.made.saturating_add(ROTATION.as_secs()));
        let successor = is_due
            .then(|| key_of(Stored { d: random_number()?, made: now }).ok_or_else(|| self.not_keys()))
            .transpose()?;
        if successor.is_none() && keys.len() == before {
            return Ok(());
        }
        // The key is stored before it signs, because a restarted NRF must have it.
        if let Some(path) = &self.path {
            let stored: Vec<_> = keys.iter().chain(&successor).map(|key| &key.stored).collect();
            write(path, &stored)?;
        }
        keys.extend(successor);
        Ok(())
    }

    /// If the new key can't be stored, the NRF still signs with the former one.
    fn rotate_or_warn(&self, now: u64) {
        if let Err(error) = self.rotate(now) {
            tracing::error!("the key of access tokens is not replaced: {error}");
        }
    }

    fn not_keys(&self) -> TokenKeyError {
        TokenKeyError::NotKeys(self.path.clone().unwrap_or_default())
    }
}

impl TokenSigner for TokenKeys {
    fn sign(&self, now: u64, claims: &AccessTokenClaims) -> Option<String> {
        self.rotate_or_warn(now);
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let signer = keys.last()?;
        let input = claims.signing_input(JwsAlgorithm::Es256, &signer.id);
        Some(AccessTokenClaims::token(&input, &signer.key.sign(input.as_bytes())?))
    }
}

/// Signs for an NRF whose clock counts from the start of its process, and does not follow a wall clock that is set meanwhile. Producers
/// compare a token's expiry with the wall clock, so a token expires its lifetime after the wall clock's time of its signature.
pub struct WallClockSigner(pub Arc<TokenKeys>);

impl TokenSigner for WallClockSigner {
    fn sign(&self, now: u64, claims: &AccessTokenClaims) -> Option<String> {
        let wall = self::now();
        let by_wall_clock = |time: u64| wall.saturating_add(time).saturating_sub(now);
        let mut claims = claims.clone();
        claims.exp = by_wall_clock(claims.exp);
        claims.nbf = claims.nbf.map(by_wall_clock);
        self.0.sign(wall, &claims)
    }
}

/// Removes the keys whose last token has expired. A key signs until its successor is made.
fn forget_expired(keys: &mut Vec<SigningKeyOfAge>, now: u64) {
    let life = (LIFETIME + GRACE).as_secs();
    let succeeded: Vec<u64> = keys.iter().skip(1).map(|key| key.stored.made).collect();
    let expired = succeeded.iter().take_while(|made| made.saturating_add(life) <= now).count();
    keys.drain(..expired);
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn random_number() -> Result<String, TokenKeyError> {
    let mut octets = [0; 32];
    getrandom::fill(&mut octets).map_err(TokenKeyError::Randomness)?;
    Ok(hex::encode(octets))
}

/// Very few values of 32 octets are not valid for P-256; the next attempt generates another one.
fn key_of(stored: Stored) -> Option<SigningKeyOfAge> {
    let d = <[u8; 32]>::try_from(hex::decode(&stored.d).ok()?).ok()?;
    let key = SigningKey::from_number(&d).ok()?;
    let (x, y) = key.point();
    // The id reveals nothing about the private key, and stays the same after a restart.
    let digest = sha256(&[x, y].concat());
    let id = hex::encode(&digest[..8]).into();
    Some(SigningKeyOfAge { key, id, stored })
}

fn read(path: &Path) -> Result<Vec<SigningKeyOfAge>, TokenKeyError> {
    let text = match private_file::read(path, Readers::Owner) {
        Ok(text) => text,
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        Err(ReadError::Exposed) => return Err(TokenKeyError::Exposed(path.into())),
        Err(error) => return Err(TokenKeyError::File { path: path.into(), source: error.into_io() }),
    };
    let not_keys = || TokenKeyError::NotKeys(path.into());
    let stored: Vec<Stored> = serde_json::from_str(&text).map_err(|_| not_keys())?;
    stored.into_iter().map(|stored| key_of(stored).ok_or_else(not_keys)).collect()
}

fn write(path: &Path, keys: &[&Stored]) -> Result<(), TokenKeyError> {
    let written = || private_file::replace(path, PRIVATE, &Zeroizing::new(serde_json::to_string(keys)?));
    written().map_err(|source| TokenKeyError::File { path: path.into(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pith_sbi::token::{KeySet, Refusal, Verifier};
    use pith_sbi::{NfInstanceId, NfType};
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    fn path(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("pith-token-{name}-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        path
    }

    fn claims(exp: u64) -> AccessTokenClaims {
        AccessTokenClaims::new(NfInstanceId(1), NfInstanceId(2), NfType::Udm, "nudm-sdm", exp)
    }

    fn verifier_at(keys: &TokenKeys, now: u64) -> Verifier {
        Verifier::new(KeySet::from_jwks(&keys.published(now)).unwrap())
    }

    fn verifier(keys: &TokenKeys) -> Verifier {
        verifier_at(keys, now())
    }

    #[test]
    fn tokens_remain_valid_after_a_restart_of_the_nrf() {
        let path = path("restart");
        let now = now();
        let token = TokenKeys::open(Some(path.clone())).unwrap().sign(now, &claims(now + 3600)).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let again = TokenKeys::open(Some(path.clone())).unwrap();
        assert!(verifier(&again).verify(now, &token).is_ok());
        assert_eq!(
            verifier(&TokenKeys::open(None).unwrap()).verify(now, &token),
            Err(Refusal::UnknownKey),
            "keys without a file end with the process"
        );
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_replaced_key_is_published_until_its_tokens_have_expired() {
        let path = path("rotation");
        let keys = TokenKeys::open(Some(path.clone())).unwrap();
        let now = now();
        let day = 24 * 3600;
        let old = keys.sign(now + 30 * day - 1, &claims(now + 30 * day + 3599)).unwrap();
        let new = keys.sign(now + 30 * day, &claims(now + 30 * day + 3600)).unwrap();
        let mut both = verifier_at(&keys, now + 30 * day);
        assert!(both.verify(now + 30 * day, &old).is_ok() && both.verify(now + 30 * day, &new).is_ok());
        let header = |token: &str| token.split('.').next().unwrap().to_owned();
        assert_ne!(header(&old), header(&new), "another key signs");
        // Two hours later no token of the old key is valid: a thief of that key can sign none.
        let later = now + 30 * day + 2 * 3600;
        let mut after = verifier_at(&keys, later);
        assert!(after.verify(later, &keys.sign(later, &claims(later + 3600)).unwrap()).is_ok());
        assert_eq!(after.verify(now + 30 * day, &old), Err(Refusal::UnknownKey));
        let mut restarted = verifier_at(&TokenKeys::open(Some(path.clone())).unwrap(), later);
        assert_eq!(restarted.verify(now + 30 * day, &old), Err(Refusal::UnknownKey));
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_key_ends_in_time_even_if_no_token_is_requested() {
        let keys = TokenKeys::open(None).unwrap();
        let (now, day) = (now(), 24 * 3600);
        let old = keys.sign(now, &claims(now + 3600)).unwrap();
        assert!(verifier_at(&keys, now + 30 * day).verify(now, &old).is_ok());
        let later = now + 30 * day + 2 * 3600;
        assert_eq!(verifier_at(&keys, later).verify(now, &old), Err(Refusal::UnknownKey));
    }

    /// The wall clock was set by a day, forward or back, since the NRF started.
    #[test]
    fn a_token_expires_by_the_wall_clock_although_the_nrf_does_not_follow_it() {
        let keys = Arc::new(TokenKeys::open(None).unwrap());
        let signer = WallClockSigner(Arc::clone(&keys));
        let day = 24 * 3600;
        for nrf in [now() - day, now(), now() + day] {
            let token = signer.sign(nrf, &claims(nrf + 3600)).unwrap();
            let now = now();
            assert!(verifier(&keys).verify(now, &token).is_ok(), "{nrf}");
            assert!(verifier(&keys).verify(now + 3590, &token).is_ok(), "{nrf}");
            let later = verifier(&keys).verify(now + 3600 + 60, &token);
            assert_eq!(later, Err(Refusal::Expired), "{nrf}");
        }
    }

    #[test]
    fn exposed_and_invalid_key_files_are_refused() {
        let path = path("bad");
        fs::write(&path, "[]").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(TokenKeys::open(Some(path.clone())), Err(TokenKeyError::Exposed(_))));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(TokenKeys::open(Some(path.clone())).is_ok(), "an empty list gets a key");
        fs::write(&path, r#"[{"d":"00","made":1}]"#).unwrap();
        assert!(matches!(TokenKeys::open(Some(path.clone())), Err(TokenKeyError::NotKeys(_))));
        fs::remove_file(path).unwrap();
    }
}
