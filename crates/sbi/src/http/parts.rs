//! Bodies that are JSON with optional binary parts (NAS and NGAP messages). With parts the body is `multipart/related`
//! (TS 29.500 5.2.7.2): its root part is the JSON, which refers to each binary part by its content id. Without parts the body
//! is plain JSON.

use super::content::{self, Content};
use super::{json, multipart};
use crate::Result;
use crate::common::{BinaryData, MediaType};
use crate::problem::Problem;
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Called for each binary part that is present, with its content id for encoding, its media type, and the JSON member that
/// refers to it.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(&'static str, MediaType, &mut BinaryData);

/// A body that may have binary parts.
pub(crate) trait Parts: Clone + Serialize + DeserializeOwned {
    /// Whether the body is `multipart/related` even without binary parts.
    const ALWAYS_MULTIPART: bool = false;

    /// Calls `visit` for each binary part that is present.
    fn visit(&mut self, visit: Visit<'_>);
}

/// Implements [`Parts`] and `Body` for the listed types. Each entry names a member with a binary part: `member as media type,
/// content id`.
macro_rules! multipart_bodies {
    ($($body:ty { $($($member:ident).+ as $media_type:ident $content_id:literal),+ })+) => {
        $(impl crate::http::Parts for $body {
            fn visit(&mut self, visit: crate::http::Visit<'_>) {
                $(crate::http::multipart_bodies!(@visit visit, self, $content_id, $media_type, $($member).+);)+
            }
        }
        crate::http::multipart_bodies!(@body $body);)+
    };
    (@visit $visit:ident, $self:expr, $content_id:literal, $media_type:ident, $member:ident) => {
        if let Some(data) = $self.$member.as_mut() {
            $visit($content_id, crate::common::MediaType::$media_type, data);
        }
    };
    (@body $body:ty) => {
        impl crate::http::Body for $body {
            fn encode(&self) -> crate::http::Content {
                crate::http::encode_parts(self)
            }
            fn decode(media_type: &str, body: &bytes::Bytes) -> Option<crate::Result<Self>> {
                crate::http::decode_parts(media_type, body)
            }
        }
    };
}
pub(crate) use multipart_bodies;

/// Encodes a body; the content ids are those of the type.
pub(crate) fn encode_parts<T: Parts>(value: &T) -> Content {
    let mut value = value.clone();
    let mut parts = Vec::new();
    value.visit(&mut |content_id, media_type, data| {
        data.content_id = content_id.into();
        parts.push((content_id, media_type.as_str(), data.content.clone()));
    });
    if parts.is_empty() && !T::ALWAYS_MULTIPART {
        return json::encode(json::JSON, &value);
    }
    multipart::encode(&json::text(&value), &parts)
}

/// Decodes a body; `None` if the media type is neither JSON nor `multipart/related`.
pub(crate) fn decode_parts<T: Parts>(media_type: &str, body: &Bytes) -> Option<Result<T>> {
    if content::is(media_type, json::JSON) {
        return Some(json::parse(body).and_then(|value| fill(value, &[])));
    }
    let related = content::essence(media_type).eq_ignore_ascii_case(multipart::RELATED);
    related.then(|| {
        let related = multipart::decode(media_type, body)?;
        fill(json::parse(&related.root)?, &related.parts)
    })
}

/// Copies the content of the parts into the members that refer to them by content id. Each referenced part must be present
/// (TS 29.500 5.2.7.2).
fn fill<T: Parts>(mut value: T, parts: &[multipart::Part]) -> Result<T> {
    let mut missing = None;
    value.visit(
        &mut |content_id, _, data| match parts.iter().find(|part| part.content_id == *data.content_id) {
            Some(part) => data.content = part.content.clone(),
            None => missing = Some(content_id),
        },
    );
    match missing {
        Some(content_id) => Err(Problem::mandatory_ie_missing(content_id).into()),
        None => Ok(value),
    }
}
