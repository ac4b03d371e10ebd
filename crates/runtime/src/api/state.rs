//! Files of the API: tokens and the audit log, readable by their owner only.

use pith_sbi::common::DateTime;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The time as RFC 3339 writes it.
pub(super) fn now() -> String {
    let ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    DateTime::from_unix_ms(i64::try_from(ms).unwrap_or(i64::MAX)).to_string()
}

/// Reads a file that only its owner may read.
pub(super) fn read_private(file: &Path) -> io::Result<String> {
    let mode = match fs::metadata(file) {
        Ok(metadata) => metadata.mode(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok("[]".into()),
        Err(error) => return Err(error),
    };
    if mode & 0o077 != 0 {
        return Err(io::Error::other("others may read it: 'chmod 600' it"));
    }
    fs::read_to_string(file)
}

/// Replaces a file in one step.
pub(super) fn write_private(file: &Path, text: &str) -> io::Result<()> {
    directory_of(file)?;
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let new = Path::new(&name);
    let _ = fs::remove_file(new);
    let mut handle = OpenOptions::new().write(true).create_new(true).mode(0o600).open(new)?;
    handle.write_all(text.as_bytes())?;
    handle.sync_all()?;
    fs::rename(new, file)
}

/// Opens a file to write at its end.
pub(super) fn append(file: &Path) -> io::Result<File> {
    directory_of(file)?;
    OpenOptions::new().append(true).create(true).mode(0o600).open(file)
}

fn directory_of(file: &Path) -> io::Result<()> {
    let Some(directory) = file.parent().filter(|directory| !directory.as_os_str().is_empty()) else {
        return Ok(());
    };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}
