//! Tokens of the API: 256 random bits each, of which only a digest is kept.

use super::guard::Caller;
use super::{ApiError, time};
use crate::config::Role;
use crate::private_file::{self, PRIVATE, Readers};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::time::SystemTime;

/// Tokens that there may be.
const MOST: usize = 256;
/// Characters of a token's name.
const LONGEST_NAME: usize = 64;

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Its public part, by which it is revoked.
    pub id: String,
    /// What it is for.
    pub name: String,
    /// What its holder may do.
    pub role: Role,
    /// When it was made.
    pub created: String,
    /// SHA-256 of the secret part, in hexadecimal digits.
    digest: String,
}

/// A token with its secret, which is shown once.
#[derive(Debug, Clone, Serialize)]
pub struct Issued {
    /// Its public part.
    pub id: String,
    /// What it is for.
    pub name: String,
    /// What its holder may do.
    pub role: Role,
    /// What clients send after 'Authorization: Bearer'.
    pub token: String,
}

/// All tokens of a core.
pub struct Tokens {
    /// Where they are kept; processes of one core share the file.
    file: Option<PathBuf>,
    list: RefCell<Vec<Token>>,
    /// Of the file, when it was read.
    changed: Cell<Option<SystemTime>>,
}

impl Tokens {
    /// Those of a file, which need not exist yet.
    pub fn of_file(file: PathBuf) -> Self {
        Self { file: Some(file), ..Self::in_memory() }
    }

    /// None yet, and none that outlive the process.
    pub fn in_memory() -> Self {
        Self { file: None, list: RefCell::default(), changed: Cell::new(None) }
    }

    /// All of them.
    pub(super) fn list(&self) -> Vec<Token> {
        self.refresh();
        self.list.borrow().clone()
    }

    /// Makes one.
    pub(super) fn add(&self, name: &str, role: Role) -> Result<Issued, ApiError> {
        let printable = !name.is_empty() && name.chars().all(|c| !c.is_control());
        if !printable || name.chars().count() > LONGEST_NAME {
            return Err(ApiError::bad_request(format!("'name' has 1 to {LONGEST_NAME} characters")));
        }
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

    /// Takes one back; whether there was one.
    pub(super) fn revoke(&self, id: &str) -> Result<bool, ApiError> {
        self.read()?;
        let before = self.list.borrow().len();
        self.list.borrow_mut().retain(|token| token.id != id);
        let found = self.list.borrow().len() < before;
        if found {
            self.write()?;
        }
        Ok(found)
    }

    /// The holder of a token.
    pub(super) fn find(&self, shown: &str) -> Option<Caller> {
        let (id, secret) = shown.strip_prefix("pith_")?.split_once('_')?;
        self.refresh();
        let list = self.list.borrow();
        let token = list.iter().find(|token| token.id == id)?;
        // A digest of 256 random bits tells nothing by the time that its comparison takes.
        (token.digest == digest(secret))
            .then(|| Caller { name: format!("token {} ({})", token.id, token.name), role: token.role })
    }

    /// Reads the file again if another process wrote it. No token counts while it can't be read.
    fn refresh(&self) {
        let Some(file) = &self.file else { return };
        let changed = std::fs::metadata(file).and_then(|metadata| metadata.modified()).ok();
        if changed == self.changed.get() {
            return;
        }
        self.changed.set(changed);
        if let Err(error) = self.read() {
            tracing::error!("no token is accepted: {}", error.detail);
            self.list.borrow_mut().clear();
        }
    }

    /// Reads the file. One that can't be read must not be replaced: its tokens would be lost.
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
        self.changed.set(std::fs::metadata(file).and_then(|metadata| metadata.modified()).ok());
        Ok(())
    }
}

fn digest(secret: &str) -> String {
    hex::encode(Sha256::digest(secret))
}
