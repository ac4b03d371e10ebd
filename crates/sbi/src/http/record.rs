//! A line of JSON for each message, for `tests/openapi/validate.py` and other readers of recordings.
//!
//! ```text
//! {"direction": "request", "method": "POST", "path": "/nsmf-pdusession/v1/sm-contexts",
//!  "query": "", "content_type": "multipart/related; …", "body": {…},
//!  "parts": [{"content_id": "n1SmMsg", "media_type": "application/vnd.3gpp.5gnas", "octets": 23}]}
//! {"direction": "response", "method": …, "path": …, "status": 201, "headers": {"location": …}, …}
//! ```
//!
//! A body that is not JSON is stored as text in `raw`. A recording contains keys and identities in cleartext.

use super::{HttpRequest, HttpResponse, content, multipart};
use bytes::Bytes;
use serde_json::{Map, Value, json};

impl HttpRequest {
    /// The request's line in a recording.
    pub fn to_record(&self) -> Value {
        let mut record = Map::new();
        record.insert("direction".into(), "request".into());
        record.insert("method".into(), self.method.as_str().into());
        record.insert("path".into(), self.path.as_str().into());
        record.insert("query".into(), self.query.as_str().into());
        put_body(&mut record, self.content_type.as_deref(), &self.body);
        Value::Object(record)
    }
}

impl HttpResponse {
    /// The line of the response to a request in a recording.
    pub fn to_record(&self, request: &HttpRequest) -> Value {
        let headers: Map<String, Value> =
            self.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.into())).collect();
        let mut record = Map::new();
        record.insert("direction".into(), "response".into());
        record.insert("method".into(), request.method.as_str().into());
        record.insert("path".into(), request.path.as_str().into());
        record.insert("status".into(), self.status.into());
        record.insert("headers".into(), headers.into());
        put_body(&mut record, self.content_type.as_deref(), &self.body);
        Value::Object(record)
    }
}

fn put_body(record: &mut Map<String, Value>, content_type: Option<&str>, body: &Bytes) {
    let Some(content_type) = content_type else {
        return;
    };
    record.insert("content_type".into(), content_type.into());
    let mut root = body.clone();
    let related = content::essence(content_type).eq_ignore_ascii_case(multipart::RELATED);
    if let Some(multipart::Related { root: json, parts }) =
        related.then(|| multipart::decode(content_type, body).ok()).flatten()
    {
        root = json;
        record.insert("parts".into(), parts.iter().map(part).collect());
    }
    match super::json::parse::<Value>(&root) {
        Ok(value) => record.insert("body".into(), value),
        Err(_) => record.insert("raw".into(), String::from_utf8_lossy(&root).into()),
    };
}

fn part(part: &multipart::Part) -> Value {
    json!({
        "content_id": part.content_id,
        "media_type": part.media_type,
        "octets": part.content.len(),
    })
}
