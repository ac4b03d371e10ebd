//! The key of the references in URIs, of an installation: references mean the same after a restart.

use super::StartError;
use crate::config::Config;
use crate::private_file::{self, PRIVATE};
use crate::store::{SealError, read_key_file};
use pith_nf::kit::{ReferenceKey, Rng};
use std::path::Path;
use zeroize::Zeroizing;

/// The key's file, beside the database. Processes of a host that have the same configuration share it.
const FILE: &str = "reference-key";

/// The key of the file; creates the file if there is none. With `store.path: memory` the key is random.
pub(super) fn open(config: &Config, rng: &mut Rng) -> Result<ReferenceKey, StartError> {
    match config.store.path.file() {
        Some(database) => of_file(&database.with_file_name(FILE), rng),
        None => Ok(ReferenceKey::new(rng.octets())),
    }
}

/// A process without a database may have no right to write there: its references end with it.
fn of_file(path: &Path, rng: &mut Rng) -> Result<ReferenceKey, StartError> {
    if !path.exists() {
        // If this fails, reading reports why.
        let _ = create(path);
    }
    match read_key_file(path, false) {
        Ok(key) => Ok(ReferenceKey::new(*key)),
        Err(SealError::File { path, source }) => {
            tracing::warn!(
                "cannot read or create {}: {source}; the URIs that this process gives out end with it",
                path.display()
            );
            Ok(ReferenceKey::new(rng.octets()))
        }
        Err(SealError::NotAKey(path)) => Err(format!(
            "{} must contain 64 hexadecimal digits: restore it from a backup. If it is removed, a new one is created, and registered UEs lose their sessions",
            path.display()
        )
        .into()),
        Err(error) => Err(error.into()),
    }
}

/// Creates the file with a new key, unless another process of this host has: a process never reads half a key.
fn create(path: &Path) -> std::io::Result<()> {
    let draft = path.with_extension(std::process::id().to_string());
    let mut octets = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *octets).map_err(|error| std::io::Error::other(error.to_string()))?;
    private_file::replace(&draft, PRIVATE, &Zeroizing::new(hex::encode(*octets) + "\n"))?;
    let linked = std::fs::hard_link(&draft, path);
    std::fs::remove_file(&draft)?;
    linked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_made_once_and_a_damaged_file_is_refused() {
        let path = std::env::temp_dir().join(format!("pith-reference-key-{}", std::process::id()));
        let mut rng = Rng::from_number(1);
        let key = of_file(&path, &mut rng).unwrap();
        assert_eq!(of_file(&path, &mut rng).unwrap(), key, "the same after a restart");
        std::fs::write(&path, "none").unwrap();
        assert!(of_file(&path, &mut rng).unwrap_err().to_string().contains("restore it"));
        std::fs::remove_file(&path).unwrap();
        assert_ne!(of_file(&path, &mut rng).unwrap(), key);
        std::fs::remove_file(&path).unwrap();
        assert!(of_file(Path::new("/proc/none/key"), &mut rng).is_ok(), "without a right to write");
    }
}
