//! Octets that travel beside the JSON, in a part of their own (TS 29.571 `RefToBinaryData`).

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Media types of parts beside the JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaType {
    /// A NAS message, or a part of one.
    FiveGNas,
    /// An NGAP information element.
    Ngap,
}

impl MediaType {
    /// As in `Content-Type`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FiveGNas => "application/vnd.3gpp.5gnas",
            Self::Ngap => "application/vnd.3gpp.ngap",
        }
    }
}

/// A NAS message or an NGAP information element that a body brings along.
///
/// In JSON only a reference stands, `{"contentId":"n1SmMsg"}`; the octets are a part of the
/// `multipart/related` body. In process they are just here.
#[derive(Clone, Default)]
pub struct BinaryData {
    pub(crate) content_id: Arc<str>,
    /// The octets.
    pub content: Bytes,
}

impl PartialEq for BinaryData {
    /// Two are the same if their octets are; the content id is but a label.
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
