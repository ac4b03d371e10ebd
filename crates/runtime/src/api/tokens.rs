//! API tokens: 256 random bits each, stored as a digest.

use super::guard::Caller;
use super::{ApiError, time};
use crate::config::Role;
use crate::private_file::{self, PRIVATE, Readers};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// The most tokens that can exist.
const MOST: usize = 256;
/// Largest length of a token's name, in characters.
const LONGEST_NAME: usize = 64;

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The public part, which identifies the token for revocation.
    pub id: String,
    /// The operator's label for the token.
    pub name: String,
    /// The role of its holder.
    pub role: Role,
    /// Time of creation, RFC 3339.
    pub created: String,
    /// SHA-256 of the secret part, in hexadecimal digits.
    digest: String,
}

/// A new token with its secret, which is returned only once.
#[derive(Debug, Clone, Serialize)]
pub struct Issued {
    /// The public part of the token.
    pub id: String,
    /// The operator's label for the token.
    pub name: String,
    /// The role of its holder.
    pub role: Role,
    /// The token itself, as in 'Authorization: Bearer TOKEN'.
    pub token: String,
}

/// All tokens of a core.
pub struct Tokens {
    /// The file with the tokens, shared by the processes of a core; `None`: in memory only.
    file: Option<PathBuf>,
    list: RefCell<Vec<Token>>,
    /// Modification time of the file when it was last read.
    stamp: Cell<Option<Stamp>>,
}

/// Changes when the file changes or is replaced: inode, time of change in seconds and nanoseconds, size.
type Stamp = (u64, i64, i64, u64);

impl Tokens {
    /// The tokens of a file, which need not exist yet.
    pub fn of_file(file: PathBuf) -> Self {
        Self { file: Some(file), ..Self::in_memory() }
    }

    /// An empty list that is lost when the process ends.
    pub fn in_memory() -> Self {
        Self { file: None, list: RefCell::default(), stamp: Cell::new(None) }
    }

    /// Lists all tokens.
    pub(super) fn list(&self) -> Vec<Token> {
        self.refresh();
        self.list.borrow().clone()
    }

    /// Creates a token.
    pub(super) fn add(&self, name: &str, role: Role) -> Result<Issued, ApiError> {
        let printable = !name.is_empty() && name.chars().all(|c| !c.is_control());
        if !printable || name.chars().count() > LONGEST_NAME {
            return Err(ApiError::bad_request(format!(
                "'name' must have 1 to {LONGEST_NAME} printable characters"
            )));
        }
        let _lock = self.lock()?;
        self.read()?;
        if self.list.borrow().len() >= MOST {
            return Err(ApiError::bad_request(format!("there are {MOST} tokens: revoke some first")));
        }
        let mut octets = [0; 36];
        getrandom::fill(&mut octets)
            .map_err(|error| ApiError::internal(format!("no randomness: {error}")))?;
        let (id, secret) = octets.split_at(4);
        let (id, secret) = (hex::encode(id), hex::encode(secret));
        let token =
            Token { id: id.clone(), name: name.into(), role, created: time::now(), digest: digest(&secret) };
        self.list.borrow_mut().push(token);
        self.write()?;
        Ok(Issued { token: format!("pith_{id}_{secret}"), id, name: name.into(), role })
    }

    /// Revokes a token; returns whether it existed.
    pub(super) fn revoke(&self, id: &str) -> Result<bool, ApiError> {
        let _lock = self.lock()?;
        self.read()?;
        let before = self.list.borrow().len();
        self.list.borrow_mut().retain(|token| token.id != id);
        let found = self.list.borrow().len() < before;
        if found {
            self.write()?;
        }
        Ok(found)
    }

    /// The caller that a token authenticates.
    pub(super) fn find(&self, shown: &str) -> Option<Caller> {
        let (id, secret) = shown.strip_prefix("pith_")?.split_once('_')?;
        self.refresh();
        let list = self.list.borrow();
        let token = list.iter().find(|token| token.id == id)?;
        // A timing difference discloses nothing useful: the compared value is a digest of 256 random bits.
        (token.digest == digest(secret))
            .then(|| Caller { name: format!("token {} ({})", token.id, token.name), role: token.role })
    }

    /// Reads the file again if another process has written it. While the file cannot be read, no token is
    /// accepted.
    fn refresh(&self) {
        let stamp = self.stamp_of_file();
        if self.file.is_none() || stamp == self.stamp.get() {
            return;
        }
        self.stamp.set(stamp);
        if let Err(error) = self.read() {
            tracing::error!("no API token is accepted: {}", error.detail);
            self.list.borrow_mut().clear();
        }
    }

    /// Reads the file. An unreadable file is an error and is not overwritten, as its tokens would be lost.
    fn read(&self) -> Result<(), ApiError> {
        let Some(file) = &self.file else { return Ok(()) };
        let unreadable =
            |error: String| ApiError::internal(format!("can't read {}: {error}", file.display()));
        let list = match private_file::read(file, Readers::Owner) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?,
            Err(error) if error.is_not_found() => Vec::new(),
            Err(error) => return Err(unreadable(error.to_string())),
        };
        *self.list.borrow_mut() = list;
        Ok(())
    }

    fn write(&self) -> Result<(), ApiError> {
        let Some(file) = &self.file else { return Ok(()) };
        let text = serde_json::to_string_pretty(&*self.list.borrow());
        let written =
            text.map_err(std::io::Error::from).and_then(|text| private_file::replace(file, PRIVATE, &text));
        written.map_err(|error| ApiError::internal(format!("can't write {}: {error}", file.display())))?;
        self.stamp.set(self.stamp_of_file());
        Ok(())
    }

    fn stamp_of_file(&self) -> Option<Stamp> {
        let data = std::fs::metadata(self.file.as_ref()?).ok()?;
        Some((data.ino(), data.mtime(), data.mtime_nsec(), data.size()))
    }

    /// Until it is dropped no other process changes the file: a list that was read is written before another one reads.
    fn lock(&self) -> Result<Option<File>, ApiError> {
        let Some(file) = &self.file else { return Ok(None) };
        let path = file.with_extension("lock");
        let locked = private_file::append(&path).and_then(|lock| lock.lock().map(|()| lock));
        let failed = |error| ApiError::internal(format!("can't lock {}: {error}", path.display()));
        locked.map(Some).map_err(failed)
    }
}

fn digest(secret: &str) -> String {
    hex::encode(Sha256::digest(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_add_and_revoke_at_once_lose_nothing() {
        let directory = std::env::temp_dir().join(format!("pith-tokens-{}", std::process::id()));
        let file = directory.join("api-tokens.json");
        let work = |process: usize| {
            let tokens = Tokens::of_file(file.clone());
            let add = |number: usize| tokens.add(&format!("{process}-{number}"), Role::Viewer).unwrap();
            let ids: Vec<String> = (0..20).map(|number| add(number).id).collect();
            ids.iter().skip(10).for_each(|id| assert!(tokens.revoke(id).unwrap()));
        };
        let work = &work;
        std::thread::scope(|scope| {
            for process in 0..4 {
                scope.spawn(move || work(process));
            }
        });
        assert_eq!(Tokens::of_file(file.clone()).list().len(), 40);
        std::fs::remove_dir_all(directory).unwrap();
    }
}
