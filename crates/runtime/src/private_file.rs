//! Files with secrets: readable by their owner only, checked before reading, replaced atomically.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use zeroize::Zeroizing;

/// Mode of a file with secrets, and of a file for all users.
pub(crate) const PRIVATE: u32 = 0o600;
pub(crate) const PUBLIC: u32 = 0o644;

/// The reason why a file with secrets is not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The file cannot be opened or read.
    #[error("{0}")]
    Io(io::Error),
    /// Other users may read the file.
    #[error("other users can read it: change its mode with 'chmod 600'")]
    Exposed,
}

impl ReadError {
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == ErrorKind::NotFound)
    }
}

/// Permitted readers of a file with secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    Owner,
    /// A service manager may make the key readable for a group.
    OwnerAndGroup,
}

/// Reads a file after checking its mode. The mode is checked on the open file, so that renaming cannot bypass
/// the check.
pub(crate) fn read(path: &Path, readers: Readers) -> Result<Zeroizing<String>, ReadError> {
    let mut file = File::open(path).map_err(ReadError::Io)?;
    let others = match readers {
        Readers::Owner => 0o077,
        Readers::OwnerAndGroup => 0o007,
    };
    if file.metadata().map_err(ReadError::Io)?.mode() & others != 0 {
        return Err(ReadError::Exposed);
    }
    let mut text = Zeroizing::new(String::new());
    file.read_to_string(&mut text).map_err(ReadError::Io)?;
    Ok(text)
}

/// Writes a new file for its owner; fails if the file exists.
pub(crate) fn create(path: &Path, text: &str) -> io::Result<()> {
    write_new(path, PRIVATE, text)
}

/// Creates or replaces a file atomically: a reader sees the old or the new content. Creates the directory if
/// needed.
pub(crate) fn replace(path: &Path, mode: u32, text: &str) -> io::Result<()> {
    make_directory_of(path)?;
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{}", std::process::id()));
    let draft = Path::new(&draft);
    // A killed process with the same id may have left a file.
    let _ = fs::remove_file(draft);
    write_new(draft, mode, text)?;
    fs::rename(draft, path)
}

/// Opens a file for appending, readable by its owner only. Creates it and its directory if needed.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    make_directory_of(path)?;
    OpenOptions::new().append(true).create(true).mode(PRIVATE).open(path)
}

fn write_new(path: &Path, mode: u32, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn make_directory_of(path: &Path) -> io::Result<()> {
    match path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        Some(directory) => DirBuilder::new().recursive(true).mode(0o700).create(directory),
        None => Ok(()),
    }
}
