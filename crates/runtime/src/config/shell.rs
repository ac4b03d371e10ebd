//! The settings of the process itself: storage, API, logs.

use super::section::section;
use super::text::{text_value, words};
use crate::store::DatabaseLocation;
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
        /// File with a secret that is accepted as an administrator's token.
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
        let text = std::fs::read_to_string(path).map_err(|cause| error(cause.to_string()))?;
        match text.trim() {
            short if short.len() < 16 => Err(error("the secret must have 16 characters or more".into())),
            token => Ok(Some(token.to_owned())),
        }
    }
}

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

text_value!(StorePath, Residency);

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

/// Directory for state: the machine's for root, else in the home directory (XDG Base Directory).
pub(super) fn state_directory() -> PathBuf {
    if user() == 0 {
        return PathBuf::from("/var/lib/pith");
    }
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    data.or(home).unwrap_or_default().join("pith")
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

/// Where the context of a UE is kept (design section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Residency {
    /// In the memory of the shard that owns the UE.
    Soft,
}

impl fmt::Display for Residency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Soft => f.write_str("soft"),
        }
    }
}

impl FromStr for Residency {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "soft" => Ok(Self::Soft),
            "durable" | "stateless" | "shared" | "embedded" => {
                Err(format!("this release does not support '{text}': write soft"))
            }
            _ => Err(format!("'{text}' is not a residency: write soft")),
        }
    }
}
