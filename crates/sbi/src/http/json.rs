//! JSON bodies, and errors of invalid ones.

use super::content::{self, Content};
use crate::Result;
use crate::problem::{Cause, Problem};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// JSON (RFC 8259).
pub(crate) const JSON: &str = "application/json";
/// JSON with hyperlinks (TS 29.501).
pub(crate) const HAL: &str = "application/3gppHal+json";
/// JSON Patch (RFC 6902).
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
/// JSON Merge Patch (RFC 7396).
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";
/// The body of an error (RFC 9457).
pub(crate) const PROBLEM: &str = "application/problem+json";

/// Types with a JSON body of one media type.
macro_rules! json_bodies {
    ($($media_type:ident: $($body:ty),+;)+) => {
        $($(impl crate::http::Body for $body {
            fn encode(&self) -> crate::http::Content {
                crate::http::json::encode(crate::http::json::$media_type, self)
            }
            fn decode(media_type: &str, body: &bytes::Bytes) -> Option<crate::Result<Self>> {
                crate::http::json::decode(crate::http::json::$media_type, media_type, body)
            }
        })+)+
    };
}
pub(crate) use json_bodies;

/// The JSON text of a value. All types of this crate can be written as JSON.
pub(crate) fn text(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

pub(crate) fn encode(media_type: &'static str, value: &impl Serialize) -> Content {
    Content { media_type: media_type.into(), body: text(value).into() }
}

pub(crate) fn decode<T: DeserializeOwned>(wanted: &str, media_type: &str, body: &Bytes) -> Option<Result<T>> {
    content::is(media_type, wanted).then(|| parse(body))
}

/// Parses a value, or returns the problem (TS 29.500 5.2.7.2). Depth, number of values and unique names are
/// checked before anything is allocated (TS 33.117 4.3.6.3).
pub(crate) fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T> {
    crate::json::check(json, &crate::json::MESSAGE)
        .map_err(|violation| Problem::new(Cause::InvalidMsgFormat).detail(violation))?;
    serde_json::from_slice(json).map_err(|error| Box::new(problem(&error)))
}

fn problem(error: &serde_json::Error) -> Problem {
    let text = error.to_string();
    let missing = text.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
    match (error.is_data(), missing) {
        (true, Some(member)) => Problem::mandatory_ie_missing(member),
        (true, None) => Problem::new(Cause::MandatoryIeIncorrect),
        (false, _) => Problem::new(Cause::InvalidMsgFormat),
    }
    .detail(text)
}
