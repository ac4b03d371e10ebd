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

/// What travels as a body.
pub(crate) trait Body: Sized {
    /// Writes it.
    fn encode(&self) -> Content;
    /// Reads it; `None` if the media type is none that it comes in.
    fn decode(media_type: &str, body: &Bytes) -> Option<Result<Self>>;
}

/// Reads a body: 400 if it is missing or wrong, 415 if its media type is not one that the operation
/// takes (TS 29.500 5.2.7.2).
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

/// The type and subtype of a media type, without its parameters.
pub(crate) fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

/// A parameter of a media type, without its quotes.
pub(crate) fn parameter<'a>(media_type: &'a str, name: &str) -> Option<&'a str> {
    media_type.split(';').skip(1).find_map(|parameter| {
        let (key, value) = parameter.split_once('=')?;
        let named = key.trim().eq_ignore_ascii_case(name);
        named.then(|| value.trim().trim_matches('"'))
    })
}

/// Whether the media type is that one, or plain JSON where that one is JSON that is named more
/// closely: what some implementations send.
pub(crate) fn is(media_type: &str, wanted: &str) -> bool {
    let essence = essence(media_type);
    let plain = |t: &str| t.eq_ignore_ascii_case(json::JSON) || t.eq_ignore_ascii_case(json::HAL);
    let named = essence.eq_ignore_ascii_case(wanted);
    named || (plain(essence) && (plain(wanted) || wanted == json::PROBLEM))
}
