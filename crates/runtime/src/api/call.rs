//! An API call: its parameters and body, and its response.

use crate::http::problem;
use crate::store::DatabaseError;
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};
use pith_sbi::json::{Bounds, Violation, check, check_sequence};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::str::FromStr;

/// Bounds of a body: an import has up to a million subscribers of some 60 values each.
const BODY: Bounds = Bounds { depth: 16, nodes: 1 << 26 };

/// A request as a handler receives it.
pub(super) struct Call {
    /// Values of the path's parameters, in order.
    pub path: Vec<String>,
    /// Parameters of the query.
    pub query: HashMap<String, String>,
    /// Header fields.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Call {
    /// The first parameter of the path.
    pub fn path_parameter<T: FromStr<Err: ToString>>(&self) -> Result<T, ApiError> {
        let text = self.path.first().map(String::as_str).unwrap_or_default();
        text.parse().map_err(|error: T::Err| ApiError::bad_request(error.to_string()))
    }

    /// A parameter of the query.
    pub fn query<T: FromStr<Err: ToString>>(&self, name: &str) -> Result<Option<T>, ApiError> {
        let parse = |text: &String| text.parse();
        let parsed = self.query.get(name).map(parse).transpose();
        parsed
            .map_err(|error: T::Err| ApiError::bad_request(format!("query '{name}': {}", error.to_string())))
    }

    /// The body's JSON: one object, an array of objects, or one object per line.
    pub fn body_items<T: DeserializeOwned>(&self) -> Result<Vec<T>, ApiError> {
        let content =
            self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let bad = |error: serde_json::Error| ApiError::bad_request(format!("the body: {error}"));
        let unsound = |violation: Violation| ApiError::bad_request(format!("the body: {violation}"));
        let content = content.split(';').next().unwrap_or_default().trim();
        match content {
            "application/json" => check(&self.body, &BODY).map_err(unsound)?,
            "application/x-ndjson" => check_sequence(&self.body, &BODY).map_err(unsound)?,
            _ => {}
        }
        match content {
            "application/json" if self.body.trim_ascii_start().starts_with(b"[") => {
                serde_json::from_slice(&self.body).map_err(bad)
            }
            "application/json" => serde_json::from_slice(&self.body).map(|one| vec![one]).map_err(bad),
            "application/x-ndjson" => serde_json::Deserializer::from_slice(&self.body)
                .into_iter()
                .collect::<Result<_, _>>()
                .map_err(bad),
            _ => Err(ApiError {
                status: StatusCode::UNSUPPORTED_MEDIA_TYPE,
                detail:
                    "send 'Content-Type: application/json', or application/x-ndjson with one object per line"
                        .into(),
            }),
        }
    }
}

/// A successful answer with a JSON body.
pub(super) fn json(status: StatusCode, body: &impl Serialize) -> Result<Response<Bytes>, ApiError> {
    let body = serde_json::to_vec(body).map_err(|error| ApiError::internal(error.to_string()))?;
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// A successful answer without a body.
pub(super) fn no_content() -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status.
    pub status: StatusCode,
    /// What is wrong and what to do.
    pub detail: String,
}

impl ApiError {
    /// A `400 Bad Request` error.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, detail: detail.into() }
    }

    /// A `404 Not Found` error.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, detail: detail.into() }
    }

    /// A `500 Internal Server Error`.
    pub fn internal(detail: impl Into<String>) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, detail: detail.into() }
    }

    /// The response, with a `ProblemDetails` body.
    pub fn into_response(self) -> Response<Bytes> {
        let mut response = problem(self.status, "", &self.detail);
        if self.status == StatusCode::UNAUTHORIZED {
            response
                .headers_mut()
                .insert(hyper::header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<DatabaseError> for ApiError {
    fn from(error: DatabaseError) -> Self {
        let status = match error {
            DatabaseError::Exists(_) | DatabaseError::Assigned { .. } => StatusCode::CONFLICT,
            DatabaseError::Invalid { .. } => StatusCode::BAD_REQUEST,
            DatabaseError::Closed => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { status, detail: error.to_string() }
    }
}
