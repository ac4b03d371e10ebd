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
    /// Other users may read or change the file.
    #[error("other users can read or change it: change its mode with 'chmod 600'")]
    Exposed,
    /// The file belongs to another user.
    #[error("it belongs to user {0}: 'chown' it to root or to the user that runs this process")]
    Foreign(u32),
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
    /// A service manager may make the key readable, but not writable, for a group.
    OwnerAndGroup,
}

impl ReadError {
    /// The error as an I/O error.
    pub(crate) fn into_io(self) -> io::Error {
        match self {
            Self::Io(error) => error,
            other => io::Error::other(other.to_string()),
        }
    }
}

/// Reads a file after checking its mode, and that it belongs to root or to the user that runs this process. Both are
/// checked on the open file, so that renaming cannot bypass the check.
pub(crate) fn read(path: &Path, readers: Readers) -> Result<Zeroizing<String>, ReadError> {
    let mut file = File::open(path).map_err(ReadError::Io)?;
    check(&file, readers)?;
    let mut text = Zeroizing::new(String::new());
    file.read_to_string(&mut text).map_err(ReadError::Io)?;
    Ok(text)
}

/// Opens a file for reading and writing, after the same checks.
pub(crate) fn open(path: &Path, readers: Readers) -> Result<File, ReadError> {
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(ReadError::Io)?;
    check(&file, readers)?;
    Ok(file)
}

fn check(file: &File, readers: Readers) -> Result<(), ReadError> {
    let others = match readers {
        Readers::Owner => 0o077,
        Readers::OwnerAndGroup => 0o037,
    };
    let data = file.metadata().map_err(ReadError::Io)?;
    if data.uid() != 0 && data.uid() != crate::config::user() {
        return Err(ReadError::Foreign(data.uid()));
    }
    if data.mode() & others != 0 {
        return Err(ReadError::Exposed);
    }
    Ok(())
}

/// Writes a new file for its owner; fails if the file exists.
pub(crate) fn create(path: &Path, text: &str) -> io::Result<()> {
    write_new(path, PRIVATE, text)
}

/// Writes a file for its owner, and its directory if needed, unless the file exists: of several processes that do so at once, one
/// makes it. A reader sees the whole content.
pub(crate) fn create_once(path: &Path, text: &str) -> io::Result<()> {
    make_directory_of(path)?;
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{}", std::process::id()));
    let draft = Path::new(&draft);
    // A killed process with the same id may have left a file.
    let _ = fs::remove_file(draft);
    write_new(draft, PRIVATE, text)?;
    let linked = fs::hard_link(draft, path);
    fs::remove_file(draft)?;
    match linked {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
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

/// Opens a file for appending, readable by its owner only. Creates it and its directory if needed. A symbolic link is
/// refused: another user who may write to the directory could have lines appended to any file.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    make_directory_of(path)?;
    let opened =
        OpenOptions::new().append(true).create(true).mode(PRIVATE).custom_flags(libc::O_NOFOLLOW).open(path);
    opened.map_err(without_link)
}

/// What to do about a symbolic link.
fn without_link(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ELOOP) => io::Error::other("it is a symbolic link: replace it with a file"),
        _ => error,
    }
}

/// Opens a file for reading and writing, for its owner only. Creates it and its directory if needed. A symbolic link is refused, as by
/// [`append`].
pub(crate) fn open_or_create(path: &Path) -> io::Result<File> {
    make_directory_of(path)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(PRIVATE).custom_flags(libc::O_NOFOLLOW);
    options.open(path).map_err(without_link)
}

/// Refuses a symbolic link that another user has made.
pub(crate) fn refuse_foreign_link(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(data) if data.is_symlink() && ![0, crate::config::user()].contains(&data.uid()) => {
            let reason = format!("it is a symbolic link of user {}, who could redirect it", data.uid());
            Err(io::Error::other(reason))
        }
        _ => Ok(()),
    }
}

/// Creates a file for reading and writing, for its owner only; fails if the file exists.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(PRIVATE).open(path)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    #[test]
    fn links_of_others_are_not_followed() {
        let name = |name: &str| std::env::temp_dir().join(format!("pith-{name}-{}", std::process::id()));
        let (victim, link) = (name("victim"), name("link"));
        fs::write(&victim, "").unwrap();
        symlink(&victim, &link).unwrap();
        let error = append(&link).unwrap_err().to_string();
        assert!(error.contains("symbolic link"), "{error}");
        assert!(refuse_foreign_link(&link).is_ok(), "the user's own");
        if lchown(&link, Some(65534), None).is_ok() {
            let error = refuse_foreign_link(&link).unwrap_err().to_string();
            assert!(error.contains("user 65534"), "{error}");
        } else {
            crate::skipped::case_skipped("no right to give a link to another user");
        }
        assert!(append(&victim).is_ok());
        fs::remove_file(&link).unwrap();
        fs::remove_file(&victim).unwrap();
    }

    #[test]
    fn a_file_that_others_may_read_or_change_or_that_is_anothers_is_not_read() {
        let path = std::env::temp_dir().join(format!("pith-private-{}", std::process::id()));
        fs::write(&path, "secret").unwrap();
        let read_as = |mode, readers| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            read(&path, readers).is_ok()
        };
        for (mode, owner, group) in [
            (0o600, true, true),
            (0o400, true, true),
            (0o640, false, true),
            (0o660, false, false),
            (0o620, false, false),
            (0o644, false, false),
            (0o602, false, false),
        ] {
            assert_eq!(read_as(mode, Readers::Owner), owner, "{mode:o}");
            assert_eq!(read_as(mode, Readers::OwnerAndGroup), group, "{mode:o}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        if chown(&path, Some(65534), None).is_ok() {
            let error = read(&path, Readers::Owner).unwrap_err().to_string();
            assert!(error.contains("belongs to user 65534"), "{error}");
        } else {
            crate::skipped::case_skipped("no right to give a file to another user");
        }
        fs::remove_file(&path).unwrap();
    }
}
