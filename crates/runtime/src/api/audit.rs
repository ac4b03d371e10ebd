//! The audit log: changes, reads of keys, and denied requests, with the caller of each.
//!
//! Each entry is a line of JSON, appended to a file that only its owner can read and write, and is also
//! logged under `pith::audit` with identities masked. A change has an entry before it begins and one after it ended,
//! so that an interrupted change is visible. A file of 8 MiB is renamed to `audit.jsonl.1`; the eight newest renamed
//! files are kept. Denied requests are recorded in another file, `audit-denied.jsonl`, so that peers without a role
//! cannot displace the entries of changes.

use super::{Caller, time};
use crate::private_file;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::{HashSet, VecDeque};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Size in octets at which a file is renamed, and the number of renamed files that are kept: of changes, of denials.
const LARGEST: u64 = 8 << 20;
const KEPT: u32 = 8;
const KEPT_DENIALS: u32 = 1;
/// Entries kept in memory if there is no file.
const RECENT: usize = 10_000;

/// The stage of a request that an entry records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The request is about to be handled.
    Begun,
    /// The request has been handled.
    #[default]
    Ended,
    /// The request was refused and not handled.
    Denied,
}

/// An operation that was done or denied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Identifies the request; its entries have the same value.
    #[serde(default)]
    pub id: String,
    /// The stage that is recorded.
    #[serde(default)]
    pub state: State,
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
    /// The HTTP status of the response; 0 before the request has ended.
    pub status: u16,
}

/// The entries to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    All,
    Changes,
    Denials,
}

/// Where audit entries are written.
pub struct Audit {
    changes: Log,
    denials: Log,
}

impl Audit {
    /// Writes entries to a file.
    pub fn to_file(file: PathBuf) -> Self {
        let mut denied = file.file_stem().unwrap_or_default().to_owned();
        denied.push("-denied.jsonl");
        let denied = file.with_file_name(denied);
        Self { changes: Log::new(Some(file), KEPT), denials: Log::new(Some(denied), KEPT_DENIALS) }
    }

    /// Keeps entries in memory only; they are lost when the process ends.
    pub fn in_memory() -> Self {
        Self { changes: Log::new(None, 0), denials: Log::new(None, 0) }
    }

    /// Checks that the file can be opened for writing.
    pub fn check(&self) -> io::Result<()> {
        self.changes.file.as_deref().map_or(Ok(()), |file| private_file::append(file).map(drop))
    }

    /// Records that a request is about to be handled. Pass the returned entry to [`Audit::ended`].
    pub(super) fn begun(&self, caller: &Caller, what: Entry) -> Entry {
        let entry = Entry { id: random_id(), state: State::Begun, ..completed(Some(caller), what) };
        self.changes.write(entry.clone());
        entry
    }

    /// Records the result of the request.
    pub(super) fn ended(&self, begun: Entry, status: u16) {
        let entry = Entry { state: State::Ended, time: time::now(), status, ..begun };
        tell(&entry);
        self.changes.write(entry);
    }

    /// Records a request that was refused.
    pub(super) fn denied(&self, caller: Option<&Caller>, what: Entry) {
        let entry = Entry { id: random_id(), state: State::Denied, ..completed(caller, what) };
        tell(&entry);
        self.denials.write(entry);
    }

    /// The last entries, oldest first. The first entry of a request that has ended is left out.
    pub(super) fn last(&self, limit: usize, wanted: Wanted) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        if wanted != Wanted::Denials {
            entries = self.changes.last(limit.saturating_mul(2))?;
            let is_end = |entry: &&Entry| entry.state == State::Ended && !entry.id.is_empty();
            let ended: HashSet<String> =
                entries.iter().filter(is_end).map(|entry| entry.id.clone()).collect();
            entries.retain(|entry| entry.state != State::Begun || !ended.contains(&entry.id));
        }
        if wanted != Wanted::Changes {
            entries.extend(self.denials.last(limit)?);
            entries.sort_by(|a, b| a.time.cmp(&b.time));
        }
        let skip = entries.len().saturating_sub(limit);
        Ok(entries.into_iter().skip(skip).collect())
    }
}

/// The entry with caller and time.
fn completed(caller: Option<&Caller>, what: Entry) -> Entry {
    Entry {
        time: time::now(),
        who: caller.map_or_else(|| "nobody".into(), |caller| caller.name.clone()),
        role: caller.map(|caller| caller.role.to_string()).unwrap_or_default(),
        ..what
    }
}

fn tell(entry: &Entry) {
    let Entry { who, operation, target, status, from, .. } = entry;
    tracing::info!(target: "pith::audit", "{who} from {from}: {operation} {}: {status}", pith_sbi::masked(target));
}

/// Sixteen hexadecimal digits; none if the system has no randomness: entries are then not paired.
fn random_id() -> String {
    let mut octets = [0; 8];
    getrandom::fill(&mut octets).map(|()| hex::encode(octets)).unwrap_or_default()
}

/// Entries of one kind, in a file or in memory.
struct Log {
    file: Option<PathBuf>,
    /// Number of renamed files that are kept.
    kept: u32,
    recent: RefCell<VecDeque<Entry>>,
}

impl Log {
    fn new(file: Option<PathBuf>, kept: u32) -> Self {
        Self { file, kept, recent: RefCell::default() }
    }

    fn write(&self, entry: Entry) {
        let Some(file) = &self.file else {
            let mut recent = self.recent.borrow_mut();
            recent.push_back(entry);
            if recent.len() > RECENT {
                recent.pop_front();
            }
            return;
        };
        if let Err(error) = append(file, self.kept, &entry) {
            tracing::error!("cannot write to the audit log {}: {error}", file.display());
        }
    }

    fn last(&self, limit: usize) -> io::Result<Vec<Entry>> {
        let entries: Vec<Entry> = match &self.file {
            Some(file) => read(file, self.kept, limit)?,
            None => self.recent.borrow().iter().cloned().collect(),
        };
        let skip = entries.len().saturating_sub(limit);
        Ok(entries.into_iter().skip(skip).collect())
    }
}

fn append(file: &Path, kept: u32, entry: &Entry) -> io::Result<()> {
    let mut handle = private_file::append(file)?;
    let line = serde_json::to_string(entry)? + "\n";
    handle.write_all(line.as_bytes())?;
    if handle.metadata()?.len() >= LARGEST {
        put_aside(file, kept)?;
    }
    Ok(())
}

fn put_aside(file: &Path, kept: u32) -> io::Result<()> {
    for number in (1..kept).rev() {
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
fn read(file: &Path, kept: u32, limit: usize) -> io::Result<Vec<Entry>> {
    let mut parts = Vec::new();
    let mut found = 0;
    let files = [file.to_owned()].into_iter().chain((1..=kept).map(|number| numbered(file, number)));
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
            id: String::new(),
            state: State::Ended,
            time: String::new(),
            who: String::new(),
            role: String::new(),
            from: "test".into(),
            operation: "addSubscribers".into(),
            target: format!("/{number}"),
            status: 201,
        }
    }

    struct Directory(PathBuf);

    impl Directory {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("pith-audit-{name}-{}", std::process::id())))
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn targets(audit: &Audit, limit: usize, wanted: Wanted) -> Vec<String> {
        audit.last(limit, wanted).unwrap().into_iter().map(|entry| entry.target).collect()
    }

    fn somebody() -> Caller {
        Caller { name: "test".into(), role: crate::config::Role::Admin }
    }

    #[test]
    fn entries_are_appended_and_large_files_are_rotated() {
        let directory = Directory::new("large");
        let file = directory.0.join("audit.jsonl");
        let audit = Audit::to_file(file.clone());
        let write = |number| audit.ended(audit.begun(&somebody(), entry(number)), 201);
        write(1);
        write(2);
        let last = |limit| targets(&audit, limit, Wanted::All);
        assert_eq!((last(1), last(9)), (vec!["/2".into()], vec!["/1".into(), "/2".into()]));
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        fs::write(&file, " ".repeat(LARGEST as usize)).unwrap();
        write(3);
        assert!(numbered(&file, 1).exists());
        write(4);
        assert_eq!(last(2), ["/3".to_owned(), "/4".to_owned()]);
    }

    #[test]
    fn an_interrupted_change_is_listed() {
        let audit = Audit::in_memory();
        let begun = audit.begun(&somebody(), entry(1));
        audit.ended(audit.begun(&somebody(), entry(2)), 204);
        let states = || -> Vec<(String, State)> {
            let entries = audit.last(9, Wanted::All).unwrap();
            entries.into_iter().map(|entry| (entry.target, entry.state)).collect()
        };
        assert_eq!(states(), [("/1".to_owned(), State::Begun), ("/2".to_owned(), State::Ended)]);
        audit.ended(begun, 200);
        assert_eq!(states(), [("/2".to_owned(), State::Ended), ("/1".to_owned(), State::Ended)]);
    }

    /// Entries of earlier versions have neither an id nor a state.
    #[test]
    fn denials_do_not_displace_changes() {
        let directory = Directory::new("denials");
        let file = directory.0.join("audit.jsonl");
        let audit = Audit::to_file(file.clone());
        audit.check().unwrap();
        let old =
            r#"{"time":"","who":"a","role":"admin","from":"b","operation":"c","target":"/1","status":200}"#;
        fs::write(&file, format!("{old}\n")).unwrap();
        let denied = directory.0.join("audit-denied.jsonl");
        for _ in 0..KEPT + 2 {
            audit.denied(None, entry(2));
            fs::write(&denied, " ".repeat(LARGEST as usize)).unwrap();
            audit.denied(None, entry(3));
        }
        assert_eq!(targets(&audit, 9, Wanted::Changes), ["/1"]);
        audit.denied(None, entry(4));
        assert_eq!(targets(&audit, 2, Wanted::Denials), ["/3", "/4"]);
        assert_eq!(
            fs::read_dir(&directory.0).unwrap().count(),
            3,
            "the log, the denials, and one file of those before"
        );
    }
}
