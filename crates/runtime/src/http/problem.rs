//! Error responses before a request reaches an NF (TS 29.500 5.2.7.2).

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::json;

/// A response with `ProblemDetails` (TS 29.571 5.2.4.1).
pub fn problem(status: StatusCode, cause: &str, detail: &str) -> Response<Bytes> {
    let mut details = json!({
        "status": status.as_u16(),
        "title": status.canonical_reason().unwrap_or("Error"),
        "detail": detail,
    });
    if !cause.is_empty() {
        details["cause"] = cause.into();
    }
    let mut response = Response::new(Bytes::from(details.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    response
}
