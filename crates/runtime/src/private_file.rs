//! Files with secrets: readable by their owner only, checked before they are read, replaced in one step.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use zeroize::Zeroizing;

/// Access rights of a file with secrets, and of one for all users.
pub(crate) const PRIVATE: u32 = 0o600;
pub(crate) const PUBLIC: u32 = 0o644;

/// Why a file with secrets is not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// It can't be opened or read.
    #[error("{0}")]
    Io(io::Error),
    /// Other users may read it.
    #[error("others can read it: 'chmod 600' it")]
    Exposed,
}

impl ReadError {
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == ErrorKind::NotFound)
    }
}

/// Who may read a file with secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    Owner,
    /// A service manager may give the key to a group.
    OwnerAndGroup,
}

/// Reads a file that nobody else may read. The rights are those of the file that is read, whatever its name is moved to.
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

/// Writes a new file for its owner; never overwrites one.
pub(crate) fn create(path: &Path, text: &str) -> io::Result<()> {
    write_new(path, PRIVATE, text)
}

/// Replaces a file, or makes it, in one step: a reader sees the old or the new one. The directory is made if needed.
pub(crate) fn replace(path: &Path, mode: u32, text: &str) -> io::Result<()> {
    make_directory_of(path)?;
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{}", std::process::id()));
    let draft = Path::new(&draft);
    // What a killed process with this id left.
    let _ = fs::remove_file(draft);
    write_new(draft, mode, text)?;
    fs::rename(draft, path)
}

/// Opens a file of its owner for appending; makes it, and its directory, if needed.
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
