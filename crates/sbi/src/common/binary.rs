//! Octets outside the JSON, in a body part of their own (TS 29.571 `RefToBinaryData`).

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Media types of binary body parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaType {
    /// A NAS message, or a part of it.
    FiveGNas,
    /// An NGAP information element.
    Ngap,
}

impl MediaType {
    /// The value for `Content-Type`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FiveGNas => "application/vnd.3gpp.5gnas",
            Self::Ngap => "application/vnd.3gpp.ngap",
        }
    }
}

/// A NAS message or an NGAP information element of a body.
///
/// The JSON contains only a reference, `{"contentId":"n1SmMsg"}`; the octets are a part of the
/// `multipart/related` body. Within a process the value contains the octets.
#[derive(Clone, Default)]
pub struct BinaryData {
    pub(crate) content_id: Arc<str>,
    /// The message or element.
    pub content: Bytes,
}

impl PartialEq for BinaryData {
    /// Values are equal if their octets are; the content id is only a label.
    fn eq(&self, other: &Self) -> bool {
        self.content == other.content
    }
}

impl Eq for BinaryData {}

impl<T: Into<Bytes>> From<T> for BinaryData {
    fn from(content: T) -> Self {
        Self { content_id: Arc::default(), content: content.into() }
    }
}

impl fmt::Debug for BinaryData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} octets", self.content.len())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RefToBinaryData {
    content_id: Arc<str>,
}

impl Serialize for BinaryData {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RefToBinaryData { content_id: Arc::clone(&self.content_id) }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for BinaryData {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let RefToBinaryData { content_id } = Deserialize::deserialize(deserializer)?;
        Ok(Self { content_id, content: Bytes::new() })
    }
}
