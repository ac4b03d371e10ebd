//! Files with the home network's private keys for SUCIs (TS 33.501 Annex C.3).
//!
//! A file holds 64 hexadecimal digits and only its owner may access it.

use crate::config::{HomeNetworkKey, SuciProfile};
use crate::private_file::{self, ReadError, Readers};
use pith_crypto::suci::{HomeNetworkPrivateKey, HomeNetworkPublicKey, Profile};
use std::io;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// An error of a home network key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file can't be read or written.
    #[error("the home network key {}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Others than its owner may read the file.
    #[error("the home network key {} can be read by other users: change its mode with 'chmod 600'", .0.display())]
    Exposed(PathBuf),
    /// The content is not a private key.
    #[error("{} is not a private key: it must hold 64 hexadecimal digits; 'pith key new' creates one", .0.display())]
    NotAKey(PathBuf),
    /// The operating system's random source failed.
    #[error("the operating system's random source failed: {0}")]
    Randomness(getrandom::Error),
}

impl From<SuciProfile> for Profile {
    fn from(profile: SuciProfile) -> Self {
        match profile {
            SuciProfile::A => Self::A,
            SuciProfile::B => Self::B,
        }
    }
}

/// Reads the keys of a configuration, with their identifiers.
pub fn load(keys: &[HomeNetworkKey]) -> Result<Vec<(u8, HomeNetworkPrivateKey)>, KeyError> {
    keys.iter().map(|key| Ok((key.id, read(&key.private_key_file, key.profile)?))).collect()
}

fn read(path: &Path, profile: SuciProfile) -> Result<HomeNetworkPrivateKey, KeyError> {
    let text = private_file::read(path, Readers::Owner).map_err(|error| match error {
        ReadError::Exposed => KeyError::Exposed(path.into()),
        error => KeyError::File { path: path.into(), source: error.into_io() },
    })?;
    let octets = hex::decode(text.trim()).map_err(|_| KeyError::NotAKey(path.into()))?;
    HomeNetworkPrivateKey::new(profile.into(), &octets).map_err(|_| KeyError::NotAKey(path.into()))
}

/// Generates a key, writes the private key to a new file, and returns the public key for the USIMs.
pub fn generate(path: &Path, profile: SuciProfile) -> Result<HomeNetworkPublicKey, KeyError> {
    let (octets, public) = random(profile)?;
    let text = Zeroizing::new(hex::encode(octets) + "\n");
    private_file::create(path, &text).map_err(|source| KeyError::File { path: path.into(), source })?;
    Ok(public)
}

/// A private key and its public key. Very few values of 32 octets are not valid for profile B; these are
/// skipped.
fn random(profile: SuciProfile) -> Result<([u8; 32], HomeNetworkPublicKey), KeyError> {
    loop {
        let mut octets = [0; 32];
        getrandom::fill(&mut octets).map_err(KeyError::Randomness)?;
        let key = HomeNetworkPrivateKey::new(profile.into(), &octets);
        if let Ok(public) = key.and_then(|key| key.public_key()) {
            return Ok((octets, public));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn path(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("pith-key-{name}-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        path
    }

    #[test]
    fn a_generated_key_deconceals_what_its_public_key_concealed() {
        for profile in [SuciProfile::A, SuciProfile::B] {
            let private_key_file = path(&format!("generated-{profile}"));
            let public = generate(&private_key_file, profile).unwrap();
            let keys = load(&[HomeNetworkKey { id: 7, profile, private_key_file: private_key_file.clone() }])
                .unwrap();
            let hidden = public.conceal(&[9; 32], b"msin").unwrap();
            assert_eq!((keys[0].0, keys[0].1.deconceal(&hidden).unwrap()), (7, b"msin".to_vec()));
            assert!(generate(&private_key_file, profile).is_err(), "a key is never overwritten");
            fs::remove_file(private_key_file).unwrap();
        }
    }

    #[test]
    fn invalid_and_exposed_key_files_are_refused() {
        let path = path("bad");
        fs::write(&path, "00".repeat(32)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(read(&path, SuciProfile::A), Err(KeyError::Exposed(_))));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(
            matches!(read(&path, SuciProfile::B), Err(KeyError::NotAKey(_))),
            "zero is not a valid key of profile B"
        );
        fs::write(&path, "not hexadecimal").unwrap();
        assert!(matches!(read(&path, SuciProfile::A), Err(KeyError::NotAKey(_))));
        fs::remove_file(&path).unwrap();
    }
}
