//! The fields of a document's hash, and the seal of its sections.
//!
//! ```text
//!  section   { salt 16 | number 4 | ciphertext | tag 16 }   AES-256-GCM; associated: the document's key and the section's number
//! ```

use super::super::document::{merge, put_header};
use super::super::seal::{DocumentKeySchedule, DocumentSecret, SALT, TAG};
use super::super::{Document, DocumentKey, Head, OwnerVersion, Revision, SectionId, UnixMillis};
use redis::Value;
use zeroize::Zeroizing;

/// Octets in front of the ciphertext.
const HEADER: usize = SALT + 4;
/// Keys that are kept: engines and processes that wrote lately.
const KEPT_KEYS: usize = 16;

/// Seals sections with a key of its own, and opens those of other writers.
pub(in super::super) struct Sealer {
    secret: DocumentSecret,
    /// Salt, key and number of the next section.
    own: Option<([u8; SALT], DocumentKeySchedule, u32)>,
    others: Vec<([u8; SALT], DocumentKeySchedule)>,
}

impl Sealer {
    pub const fn new(secret: DocumentSecret) -> Self {
        Self { secret, own: None, others: Vec::new() }
    }

    /// A section as it is stored.
    pub fn seal(&mut self, key: DocumentKey, id: SectionId, octets: &[u8]) -> Option<Vec<u8>> {
        // Each number is used once with a key.
        if self.own.as_ref().is_none_or(|(_, _, number)| *number == u32::MAX) {
            let mut salt = [0; SALT];
            getrandom::fill(&mut salt).ok()?;
            self.own = Some((salt, self.secret.key(&salt)?, 0));
        }
        let (salt, schedule, number) = self.own.as_mut()?;
        let mut sealed = Vec::with_capacity(HEADER + octets.len() + TAG);
        sealed.extend_from_slice(salt);
        sealed.extend_from_slice(&number.to_le_bytes());
        sealed.extend_from_slice(octets);
        let tag = schedule.seal(*number, &associated(key, id), sealed.get_mut(HEADER..)?)?;
        *number += 1;
        sealed.extend_from_slice(&tag);
        Some(sealed)
    }

    /// The section of a stored value; `None` if it was modified or is another one's.
    pub fn open<'a>(&mut self, key: DocumentKey, id: SectionId, sealed: &'a mut [u8]) -> Option<&'a [u8]> {
        let (header, rest) = sealed.split_at_mut_checked(HEADER)?;
        let (salt, number) = header.split_first_chunk::<SALT>()?;
        let number = u32::from_le_bytes(*number.first_chunk()?);
        self.schedule(salt)?.open(number, &associated(key, id), rest).map(|octets| &*octets)
    }

    fn schedule(&mut self, salt: &[u8; SALT]) -> Option<&DocumentKeySchedule> {
        let at = match self.others.iter().position(|(known, _)| known == salt) {
            Some(at) => at,
            None => {
                if self.others.len() >= KEPT_KEYS {
                    self.others.remove(0);
                }
                self.others.push((*salt, self.secret.key(salt)?));
                self.others.len() - 1
            }
        };
        self.others.get(at).map(|(_, schedule)| schedule)
    }

    /// The document of a hash. `Ok(None)`: there is none; `Err`: it was modified.
    pub fn document(
        &mut self,
        key: DocumentKey,
        generation: &str,
        fields: Vec<(Vec<u8>, Vec<u8>)>,
    ) -> Result<Option<Document>, Modified> {
        if fields.is_empty() {
            return Ok(None);
        }
        let mut head = Head { key, revision: Revision(0), layout: 0, deadline: None };
        let (mut owner, mut is_stale) = (OwnerVersion(0), true);
        // With room for all, so that no copy of keys stays behind.
        let room = fields.iter().map(|(_, value)| value.len()).sum();
        let mut wire = Zeroizing::new(Vec::with_capacity(room));
        for (name, mut value) in fields {
            match name.as_slice() {
                b"r" => head.revision = Revision(number(&value)?),
                b"o" => owner = OwnerVersion(number(&value)?),
                b"l" => head.layout = u16::try_from(number(&value)?).map_err(|_| Modified)?,
                b"d" => head.deadline = Some(UnixMillis(number(&value)?)),
                b"g" => is_stale = value != generation.as_bytes(),
                name => {
                    let id = number(name)?;
                    let octets = self.open(key, id, &mut value).ok_or(Modified)?;
                    put_header(&mut wire, id, u32::try_from(octets.len()).map_err(|_| Modified)?);
                    wire.extend(octets);
                    // It was decrypted in place.
                    zeroize::Zeroize::zeroize(&mut value);
                }
            }
        }
        // No engine counts that far: later revisions must fit.
        if head.revision == Revision(0) || head.revision.0 > 1 << 62 {
            return Err(Modified);
        }
        Ok(Some(Document::new(head, owner, is_stale, merge([wire.as_slice()]))))
    }
}

/// A hash is not as an engine wrote it.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct Modified;

fn associated(key: DocumentKey, id: SectionId) -> Vec<u8> {
    format!("{key} {id}").into_bytes()
}

fn number(octets: &[u8]) -> Result<u64, Modified> {
    std::str::from_utf8(octets).ok().and_then(|text| text.parse().ok()).ok_or(Modified)
}

/// The fields of a reply to HGETALL.
pub(super) fn fields(reply: Value) -> Vec<(Vec<u8>, Vec<u8>)> {
    let octets = |value| match value {
        Value::BulkString(octets) => octets,
        _ => Vec::new(),
    };
    match reply {
        Value::Map(pairs) => pairs.into_iter().map(|(name, value)| (octets(name), octets(value))).collect(),
        Value::Array(values) => {
            let mut values = values.into_iter();
            let pairs = std::iter::from_fn(|| Some((octets(values.next()?), octets(values.next()?))));
            pairs.collect()
        }
        _ => Vec::new(),
    }
}

/// A number in a reply.
pub(super) fn integer(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::BulkString(octets) => number(octets).ok(),
        _ => None,
    }
}
