//! Bodies and their media types.

use super::json;
use crate::Result;
use crate::problem::Problem;
use bytes::Bytes;
use std::borrow::Cow;

/// A body with its media type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    pub media_type: Cow<'static, str>,
    pub body: Bytes,
}

/// A type that is transferred as a body.
pub(crate) trait Body: Sized {
    /// Encodes the body.
    fn encode(&self) -> Content;
    /// Decodes the body; `None` if the type does not use this media type.
    fn decode(media_type: &str, body: &Bytes) -> Option<Result<Self>>;
}

/// Decodes a body: 400 if it is missing or invalid, 415 if the operation does not accept its media type (TS
/// 29.500 5.2.7.2).
pub(crate) fn decode<T: Body>(media_type: Option<&str>, body: &Bytes) -> Result<T> {
    let Some(media_type) = media_type else {
        let problem = if body.is_empty() {
            Problem::mandatory_ie_missing("body")
        } else {
            Problem::of_status(415).detail("the body has no Content-Type")
        };
        return Err(problem.into());
    };
    T::decode(media_type, body).unwrap_or_else(|| {
        let shown: String = media_type.chars().take(64).collect();
        Err(Problem::of_status(415).detail(format_args!("'{shown}' is not taken here")).into())
    })
}

/// Type and subtype of a media type, without parameters.
pub(crate) fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

/// A parameter of a media type, without quotes.
pub(crate) fn parameter<'a>(media_type: &'a str, name: &str) -> Option<&'a str> {
    media_type.split(';').skip(1).find_map(|parameter| {
        let (key, value) = parameter.split_once('=')?;
        let named = key.trim().eq_ignore_ascii_case(name);
        named.then(|| value.trim().trim_matches('"'))
    })
}

/// Whether the media type is the wanted one. Plain JSON is also accepted for a more specific JSON type,
/// because some implementations send it.
pub(crate) fn is(media_type: &str, wanted: &str) -> bool {
    let essence = essence(media_type);
    let plain = |t: &str| t.eq_ignore_ascii_case(json::JSON) || t.eq_ignore_ascii_case(json::HAL);
    let named = essence.eq_ignore_ascii_case(wanted);
    named || (plain(essence) && (plain(wanted) || wanted == json::PROBLEM))
}
