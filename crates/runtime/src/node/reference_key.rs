//! The key of the references in URIs, of an installation: references mean the same after a restart.

use super::StartError;
use super::residency::Contexts;
use crate::config::Config;
use crate::private_file::{self, PRIVATE};
use crate::store::{SealError, read_key_file};
use pith_nf::kit::{ReferenceKey, Rng};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use zeroize::Zeroizing;

/// The key's file, beside the database. Processes of a host that have the same configuration share it.
const FILE: &str = "reference-key";

/// The key of the file; creates the file if there is none, and no context that another key has named. With `store.path: memory` the key is
/// random.
pub(super) fn open(
    config: &Config,
    contexts: Option<&Contexts>,
    rng: &mut Rng,
) -> Result<ReferenceKey, StartError> {
    match config.store.path.file() {
        Some(database) => of_contexts(&database.with_file_name(FILE), contexts, rng),
        None => Ok(ReferenceKey::new(rng.octets())),
    }
}

/// Whether an earlier start has made the file.
pub(super) fn was_made(config: &Config) -> bool {
    config.store.path.file().is_some_and(|database| database.with_file_name(FILE).exists())
}

/// What is stored with contexts, to recognise the key that has named them.
pub(super) trait NamedContexts {
    /// Whether there are contexts, and where, with what is to be done to begin without them.
    fn place(&self) -> Result<Option<String>, StartError>;

    /// The id of the key; `None` if an earlier version of Pith has made them.
    fn key_id(&self) -> Result<Option<String>, StartError>;

    /// Stores the id of the key. Without it the next start detects a missing file only.
    fn note_key_id(&self, id: &str);
}

fn of_contexts(
    path: &Path,
    contexts: Option<&impl NamedContexts>,
    rng: &mut Rng,
) -> Result<ReferenceKey, StartError> {
    let Some(contexts) = contexts else { return of_file(path, rng) };
    let (place, known) = (contexts.place()?, contexts.key_id()?);
    if let Some(place) = &place
        && !path.exists()
        && (known.is_some() || may_create(path))
    {
        return Err(format!(
            "{} is missing, with which the sessions in the stored contexts are named: restore it from a backup. If it is lost, {place}; then UEs register again",
            path.display()
        )
        .into());
    }
    let key = of_file(path, rng)?;
    if !path.exists() {
        return Ok(key);
    }
    let id = format!("{:032x}", key.number("id of the reference key"));
    match (known, place) {
        (Some(known), _) if known == id => {}
        (Some(_), Some(place)) => {
            return Err(format!(
                "{} is another key than the one with which the sessions in the stored contexts are named: restore it from a backup, or copy it from the \
                 host that has it. If it is the right one, the id of it beside the contexts (reference-key-id) is damaged: remove that. If the key is lost, {place}; then UEs register again",
                path.display()
            )
            .into());
        }
        _ => contexts.note_key_id(&id),
    }
    Ok(key)
}

/// Whether this user may create the file: another one's process may have done so elsewhere.
fn may_create(path: &Path) -> bool {
    let directory = path.parent().and_then(|directory| CString::new(directory.as_os_str().as_bytes()).ok());
    // SAFETY: the path is a string that ends with a zero octet, and the call only reads it.
    #[allow(unsafe_code)]
    directory.is_some_and(|directory| unsafe { libc::access(directory.as_ptr(), libc::W_OK) == 0 })
}

/// A process without a database may have no right to write there: its references end with it.
fn of_file(path: &Path, rng: &mut Rng) -> Result<ReferenceKey, StartError> {
    let created = if path.exists() { Ok(()) } else { create(path) };
    let why = match read_key_file(path, false) {
        Ok(key) => return Ok(ReferenceKey::new(*key)),
        Err(SealError::File { source, .. }) => source.to_string(),
        Err(SealError::Missing(_)) => created.err().map_or_else(|| "it is missing".into(), |error| error.to_string()),
        Err(SealError::NotAKey(path)) => return Err(format!(
            "{} must contain 64 hexadecimal digits: restore it from a backup. If it is removed, a new one is created, and registered UEs lose their sessions",
            path.display()
        )
        .into()),
        Err(error) => return Err(error.into()),
    };
    tracing::warn!(
        "cannot read or create {}: {why}; the URIs that this process gives out end with it",
        path.display()
    );
    Ok(ReferenceKey::new(rng.octets()))
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
    use std::cell::RefCell;

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

    #[derive(Default)]
    struct Named {
        has_any: bool,
        id: RefCell<Option<String>>,
    }

    impl NamedContexts for Named {
        fn place(&self) -> Result<Option<String>, StartError> {
            Ok(self.has_any.then(|| "move them away".into()))
        }

        fn key_id(&self) -> Result<Option<String>, StartError> {
            Ok(self.id.borrow().clone())
        }

        fn note_key_id(&self, id: &str) {
            *self.id.borrow_mut() = Some(id.into());
        }
    }

    #[test]
    fn contexts_are_not_used_with_another_key_than_theirs() {
        let path = std::env::temp_dir().join(format!("pith-contexts-key-{}", std::process::id()));
        let (mut rng, mut contexts) = (Rng::from_number(1), Named::default());
        let open = |contexts: &Named, rng: &mut Rng| of_contexts(&path, Some(contexts), rng);
        let key = open(&contexts, &mut rng).unwrap();
        contexts.has_any = true;
        assert_eq!(open(&contexts, &mut rng).unwrap(), key);
        // It is not created beside contexts, whether these know their key or not.
        let text = std::fs::read_to_string(&path).unwrap();
        for id in [contexts.id.take(), None] {
            contexts.id.replace(id);
            std::fs::remove_file(&path).unwrap();
            let error = open(&contexts, &mut rng).unwrap_err().to_string();
            assert!(error.contains("is missing") && error.contains("move them away"), "{error}");
            assert!(!path.exists());
            private_file::replace(&path, PRIVATE, &text).unwrap();
            assert_eq!(open(&contexts, &mut rng).unwrap(), key, "restored");
        }
        private_file::replace(&path, PRIVATE, &"7".repeat(64)).unwrap();
        let error = open(&contexts, &mut rng).unwrap_err().to_string();
        assert!(error.contains("another key"), "{error}");
        contexts.has_any = false;
        assert!(open(&contexts, &mut rng).is_ok(), "nothing is named with the former key");
        contexts.has_any = true;
        assert!(open(&contexts, &mut rng).is_ok());
        std::fs::remove_file(&path).unwrap();
    }
}
