//! The settings of the process itself: storage, API, logs.

use super::section::section;
use super::text::{text_value, words};
use crate::private_file::{self, Readers};
use crate::residency::RedisUrl;
use crate::store::DatabaseLocation;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fmt, str::FromStr};

section! {
    /// Storage.
    Store {
        /// SQLite file, readable by its owner only. auto: /var/lib/pith/pith.db for root,
        /// ~/.local/share/pith/pith.db for others. memory: data is lost when the process ends.
        path: StorePath = StorePath::Auto,
        /// File with the key that encrypts subscribers' keys (AES-256-GCM), readable by its owner only: 64
        /// hexadecimal digits. Default: the systemd credential 'pith-store-key' if there is one
        /// (LoadCredential=), else a
        /// file beside the database, which Pith creates. Keep a copy of the key apart from the database.
        key_file: Option<PathBuf> = None,
    }
}

impl Store {
    /// Location of the database and its key.
    pub fn location(&self) -> DatabaseLocation {
        let Some(path) = self.path.file() else { return DatabaseLocation::Memory };
        let credential = || {
            let directory = std::env::var_os("CREDENTIALS_DIRECTORY")?;
            Some(PathBuf::from(directory).join("pith-store-key")).filter(|path| path.exists())
        };
        match self.key_file.clone().or_else(credential) {
            Some(key) => DatabaseLocation::File { path, key },
            None => DatabaseLocation::file(path),
        }
    }
}

section! {
    /// The REST API.
    Api {
        /// Unix socket through which the commands of 'pith' operate the core. Default: api.sock beside
        /// the store's file if 'store.path' is a file, else in /run/pith for root, in $XDG_RUNTIME_DIR/pith
        /// for others. If NFs are processes of their own, the name of the NF is added: api-amf.sock.
        socket: Option<PathBuf> = None,
        /// Group whose members may use the socket, besides root and the user that runs the core.
        socket_group: Option<String> = None,
        /// Role of the group's members: viewer, operator or admin.
        socket_role: Role = Role::Operator,
        /// Address at which the API is also served over HTTP/1.1 and HTTP/2, such as 127.0.0.1:5100. Each
        /// request needs a token, which 'pith api token add' creates. The OpenAPI description is at
        /// /openapi.json.
        listen: Option<SocketAddr> = None,
        /// Permit an address other than loopback without TLS: only behind a proxy with TLS.
        plain_http: bool = false,
        /// File with a secret that is accepted as an administrator's token: 32 characters or more, such as 'openssl
        /// rand -hex 32' prints. Readable by its owner only.
        token_file: Option<PathBuf> = None,
    }
}

section! {
    /// Logs, on standard error.
    Log {
        /// error, warn, info, debug or trace; or per module, such as info,pith::ngap=debug.
        level: String = "info".into(),
        /// text: human-readable lines. json: one object per line.
        format: LogFormat = LogFormat::Text,
        /// Whether the kernel may write a core file when the process crashes, and a debugger of the same user may attach.
        /// Both show subscribers' keys: for debugging only.
        core_dumps: bool = false,
    }
}

words! {
    /// The role of a caller.
    Role, "a role" {
        /// Read everything but keys.
        Viewer = "viewer",
        /// Also change subscribers, UEs and sessions.
        Operator = "operator",
        /// Also keys, tokens and the audit log.
        Admin = "admin",
    }
}

impl Api {
    /// The secret that clients may send as a token, if configured.
    pub fn token(&self) -> std::io::Result<Option<String>> {
        let Some(path) = &self.token_file else { return Ok(None) };
        let error =
            |error: String| std::io::Error::other(format!("'api.token_file' {}: {error}", path.display()));
        let text = private_file::read(path, Readers::Owner).map_err(|cause| error(cause.to_string()))?;
        let secret = text.trim();
        let characters: BTreeSet<char> = secret.chars().collect();
        if secret.len() < SECRET_LENGTH || characters.len() < SECRET_VARIETY {
            return Err(error(format!(
                "the secret must have {SECRET_LENGTH} characters or more, {SECRET_VARIETY} of them different: 'openssl rand -hex 32' makes one"
            )));
        }
        Ok(Some(secret.to_owned()))
    }
}

/// Minimum length of the secret of `api.token_file`, which protects it against guessing, and minimum number of different
/// characters. 32 random hexadecimal digits have at least 8 different ones in all but one case of a million.
const SECRET_LENGTH: usize = 32;
const SECRET_VARIETY: usize = 8;

words! {
    /// Format of log lines.
    LogFormat, "a log format" {
        /// Human-readable lines.
        Text = "text",
        /// One object per line.
        Json = "json",
    }
}

/// Location of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorePath {
    /// The default file of the user that runs the process.
    Auto,
    /// In memory: lost when the process ends.
    Memory,
    /// This file.
    File(PathBuf),
}

text_value!(StorePath, Residency, StateSync, RedisUrl);

impl StorePath {
    /// The path; `None` for memory.
    pub fn file(&self) -> Option<PathBuf> {
        match self {
            Self::Auto => Some(state_directory().join("pith.db")),
            Self::Memory => None,
            Self::File(path) => Some(path.clone()),
        }
    }
}

/// The user that runs this process.
pub fn user() -> u32 {
    // SAFETY: geteuid has no preconditions and can't fail.
    #[allow(unsafe_code)]
    unsafe {
        libc::geteuid()
    }
}

/// Directory for sockets of a core that root runs. As /run is root's, no other user can create it.
pub(super) const SYSTEM_SOCKETS: &str = "/run/pith";

/// Whether only the owner of a directory, and root, can create files in it.
pub(super) fn is_private_to_its_owner(directory: &Path) -> bool {
    std::fs::symlink_metadata(directory).is_ok_and(|data| data.is_dir() && data.mode() & 0o022 == 0)
}

/// Directory for sockets of the user that runs this process.
pub(super) fn runtime_directory() -> PathBuf {
    if user() == 0 {
        return PathBuf::from(SYSTEM_SOCKETS);
    }
    let session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    session.map_or_else(state_directory, |session| session.join("pith"))
}

/// Directory for state of the user that runs this process.
pub(super) fn state_directory() -> PathBuf {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    state_directory_of(user(), variable("XDG_DATA_HOME"), variable("HOME"))
}

/// Directory for state: the machine's for root and for users without a home directory, else in the home directory (XDG
/// Base Directory). Never the working directory, which may belong to another user.
fn state_directory_of(user: u32, data: Option<PathBuf>, home: Option<PathBuf>) -> PathBuf {
    let absolute = |path: Option<PathBuf>| path.filter(|path| path.is_absolute());
    let home = absolute(home).map(|home| home.join(".local/share"));
    let own = absolute(data).or(home).filter(|_| user != 0);
    own.unwrap_or_else(|| PathBuf::from("/var/lib")).join("pith")
}

impl fmt::Display for StorePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Memory => f.write_str("memory"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl FromStr for StorePath {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("'path' is empty: write the path of a file, auto or memory".into()),
            "auto" => Ok(Self::Auto),
            "memory" => Ok(Self::Memory),
            path => Ok(Self::File(path.into())),
        }
    }
}

/// Whether contexts of UEs and sessions outlive the process (design section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Residency {
    /// As `Durable` if the database of subscribers is a file, else as `None`.
    Auto,
    /// They end with the process.
    None,
    /// Changes are written shortly after the answer.
    Soft,
    /// Changes are written before the answer.
    Durable,
    /// As `Durable`, but UEs in a procedure are written when the procedure is over.
    Procedural,
    /// As `Durable`, and copies are dropped after each transaction.
    Stateless,
    /// As `Stateless`, with one document for all NFs of a UE.
    Shared,
    /// As `Shared`, and the document travels in the requests between processes.
    Embedded,
}

/// When the log of contexts is flushed to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateSync {
    /// When the kernel does so.
    None,
    /// Before the answers.
    Batch,
}

words! {
    /// Where contexts are stored.
    StateEngine, "an engine" {
        /// A log in 'state.directory'.
        File = "file",
        /// A server of Redis or Valkey.
        Redis = "redis",
    }
}

words! {
    /// What a change of a stored context writes.
    StateWrite, "a form of writing" {
        /// The whole document.
        Replace = "replace",
        /// Its changed sections.
        Update = "update",
    }
}

section! {
    /// The contexts of UEs and sessions that outlive the process; see 'residency'.
    State {
        /// file: a log in 'directory'. redis: a server of Redis or Valkey; while it cannot be reached, registered UEs are served
        /// and new ones are rejected with a back-off time.
        engine: StateEngine = StateEngine::File,
        /// Directory of their log, readable by its owner only. Default: 'contexts' beside the file of 'store.path'. If NFs are
        /// processes of their own, each has a directory in it.
        directory: Option<PathBuf> = None,
        /// none: contexts survive the end of the process, but after a power failure UEs authenticate again. batch: changes
        /// are flushed to the disk before the answer. A server has its own setting for this (appendfsync).
        sync: StateSync = StateSync::None,
        /// replace: a change writes the whole context. update: only the sections that changed.
        write: StateWrite = StateWrite::Replace,
        /// The server of 'engine: redis'.
        redis: Redis = Redis::default(),
    }
}

section! {
    /// A server of Redis or Valkey. It should save what it has (appendonly yes), and must not evict keys.
    Redis {
        /// redis://HOST:PORT, rediss://HOST:PORT with TLS, or unix:///PATH; before HOST a user (USER@), at the end the number of the
        /// database (/1, for a path ?db=1).
        url: RedisUrl = RedisUrl::local(),
        /// File with the password, readable by its owner only.
        password_file: Option<PathBuf> = None,
        /// File with the certificates of the CAs that may have issued the server's, for rediss (PEM).
        ca: Option<PathBuf> = None,
    }
}

impl fmt::Display for Residency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::None => f.write_str("none"),
            Self::Soft => f.write_str("soft"),
            Self::Durable => f.write_str("durable"),
            Self::Procedural => f.write_str("procedural"),
            Self::Stateless => f.write_str("stateless"),
            Self::Shared => f.write_str("shared"),
            Self::Embedded => f.write_str("embedded"),
        }
    }
}

impl fmt::Display for StateSync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Batch => "batch",
        })
    }
}

impl FromStr for StateSync {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "batch" => Ok(Self::Batch),
            _ => Err(format!("'{text}' is not a way to flush: write none or batch")),
        }
    }
}

/// What `residency` can be.
const RESIDENCIES: &str = "auto, none, soft, durable, procedural, stateless, shared or embedded";

impl FromStr for Residency {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            "soft" => Ok(Self::Soft),
            "durable" => Ok(Self::Durable),
            "procedural" => Ok(Self::Procedural),
            "stateless" => Ok(Self::Stateless),
            "shared" => Ok(Self::Shared),
            "embedded" => Ok(Self::Embedded),
            _ => Err(format!("'{text}' is not a residency: write {RESIDENCIES}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn state_is_never_kept_in_the_working_directory() {
        let path = |text: &str| Some(PathBuf::from(text));
        for (user, data, home, expected) in [
            (0, path("/d"), path("/h"), "/var/lib/pith"),
            (1, path("/d"), path("/h"), "/d/pith"),
            (1, path("d"), path("/h"), "/h/.local/share/pith"),
            (1, None, path("h"), "/var/lib/pith"),
            (1, None, path(""), "/var/lib/pith"),
            (1, None, None, "/var/lib/pith"),
        ] {
            assert_eq!(state_directory_of(user, data, home), PathBuf::from(expected));
        }
    }

    #[test]
    fn a_secret_has_32_characters_and_is_read_from_a_private_file_only() {
        let path = std::env::temp_dir().join(format!("pith-secret-{}", std::process::id()));
        let api = Api { token_file: Some(path.clone()), ..Api::default() };
        let read = |text: &str, mode: u32| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            api.token().map_err(|error| error.to_string())
        };
        let secret = "0123456789abcdef0123456789abcdef";
        assert_eq!(read(&format!("{secret}\n"), 0o600).unwrap().as_deref(), Some(secret));
        for mode in [0o644, 0o640, 0o660, 0o606] {
            assert!(read(secret, mode).unwrap_err().contains("chmod 600"), "{mode:o}");
        }
        for weak in [&secret[1..], "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "passwordpassword"] {
            assert!(read(weak, 0o600).unwrap_err().contains("openssl rand"), "{weak}");
        }
        fs::remove_file(&path).unwrap();
    }
}
