//! The audit log: changes, reads of keys, and denied requests, with the caller of each.
//!
//! Each entry is a line of JSON, appended to a file that only its owner can read and write, and is also
//! logged under `pith::audit` with identities masked. A file of 8 MiB is renamed to `audit.jsonl.1`; the
//! eight newest renamed files are kept.

use super::{Caller, time};
use crate::private_file;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Size in octets at which a file is renamed, and the number of renamed files that are kept.
const LARGEST: u64 = 8 << 20;
const KEPT: u32 = 8;
/// Entries kept in memory if there is no file.
const RECENT: usize = 10_000;

/// An operation that was done or denied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Time of the request, RFC 3339.
    pub time: String,
    /// The caller's name.
    pub who: String,
    /// The caller's role; empty if the caller is unknown.
    pub role: String,
    /// Source of the request: the peer's address or user.
    pub from: String,
    /// The operation of the API.
    pub operation: String,
    /// Path and query of the request.
    pub target: String,
    /// The HTTP status of the response.
    pub status: u16,
}

/// Where audit entries are written.
pub struct Audit {
    file: Option<PathBuf>,
    recent: RefCell<VecDeque<Entry>>,
}

impl Audit {
    /// Writes entries to a file.
    pub fn to_file(file: PathBuf) -> Self {
        Self { file: Some(file), recent: RefCell::default() }
    }

    /// Keeps entries in memory only; they are lost when the process ends.
    pub fn in_memory() -> Self {
        Self { file: None, recent: RefCell::default() }
    }

    /// Checks that the file can be opened for writing.
    pub fn check(&self) -> io::Result<()> {
        self.file.as_deref().map_or(Ok(()), |file| private_file::append(file).map(drop))
    }

    /// Writes an entry.
    pub(super) fn write(&self, caller: Option<&Caller>, what: Entry) {
        let entry = Entry {
            time: time::now(),
            who: caller.map_or_else(|| "nobody".into(), |caller| caller.name.clone()),
            role: caller.map(|caller| caller.role.to_string()).unwrap_or_default(),
            ..what
        };
        let Entry { who, operation, target, status, from, .. } = &entry;
        tracing::info!(target: "pith::audit", "{who} from {from}: {operation} {}: {status}", pith_sbi::masked(target));
        let Some(file) = &self.file else {
            let mut recent = self.recent.borrow_mut();
            recent.push_back(entry);
            if recent.len() > RECENT {
                recent.pop_front();
            }
            return;
        };
        if let Err(error) = append(file, &entry) {
            tracing::error!("cannot write to the audit log {}: {error}", file.display());
        }
    }

    /// The last entries, oldest first.
    pub(super) fn last(&self, limit: usize) -> io::Result<Vec<Entry>> {
        let entries: Vec<Entry> = match &self.file {
            Some(file) => read(file, limit)?,
            None => self.recent.borrow().iter().cloned().collect(),
        };
        let skip = entries.len().saturating_sub(limit);
        Ok(entries.into_iter().skip(skip).collect())
    }
}

fn append(file: &Path, entry: &Entry) -> io::Result<()> {
    let mut handle = private_file::append(file)?;
    let line = serde_json::to_string(entry)? + "\n";
    handle.write_all(line.as_bytes())?;
    if handle.metadata()?.len() >= LARGEST {
        put_aside(file)?;
    }
    Ok(())
}

fn put_aside(file: &Path) -> io::Result<()> {
    for number in (1..KEPT).rev() {
        match fs::rename(numbered(file, number), numbered(file, number + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::rename(file, numbered(file, 1))
}

fn numbered(file: &Path, number: u32) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

/// The newest entries of all files, oldest first; at least `limit` if there are as many.
fn read(file: &Path, limit: usize) -> io::Result<Vec<Entry>> {
    let mut parts = Vec::new();
    let mut found = 0;
    let files = [file.to_owned()].into_iter().chain((1..=KEPT).map(|number| numbered(file, number)));
    for file in files {
        let text = match File::open(&file) {
            Ok(handle) => tail(handle)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(error),
        };
        let entries: Vec<Entry> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        found += entries.len();
        parts.push(entries);
        if found >= limit {
            break;
        }
    }
    Ok(parts.into_iter().rev().flatten().collect())
}

/// The end of a file: at most twice the largest size of a file.
fn tail(mut handle: File) -> io::Result<String> {
    let length = handle.metadata()?.len();
    handle.seek(SeekFrom::Start(length.saturating_sub(2 * LARGEST)))?;
    let mut octets = Vec::new();
    handle.take(2 * LARGEST).read_to_end(&mut octets)?;
    Ok(String::from_utf8_lossy(&octets).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn entry(number: usize) -> Entry {
        Entry {
            time: String::new(),
            who: String::new(),
            role: String::new(),
            from: "test".into(),
            operation: "addSubscribers".into(),
            target: format!("/{number}"),
            status: 201,
        }
    }

    #[test]
    fn entries_are_appended_and_large_files_are_rotated() {
        let directory = std::env::temp_dir().join(format!("pith-audit-{}", std::process::id()));
        let file = directory.join("audit.jsonl");
        let audit = Audit::to_file(file.clone());
        audit.write(None, entry(1));
        audit.write(None, entry(2));
        let targets = |limit| -> Vec<String> {
            audit.last(limit).unwrap().into_iter().map(|entry| entry.target).collect()
        };
        assert_eq!((targets(1), targets(9)), (vec!["/2".into()], vec!["/1".into(), "/2".into()]));
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        fs::write(&file, " ".repeat(LARGEST as usize)).unwrap();
        audit.write(None, entry(3));
        assert!(!file.exists() && numbered(&file, 1).exists());
        audit.write(None, entry(4));
        assert_eq!(targets(2), ["/3".to_owned(), "/4".to_owned()]);
        fs::remove_dir_all(directory).unwrap();
    }
}
