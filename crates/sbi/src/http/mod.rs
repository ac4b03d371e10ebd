//! HTTP requests and responses (TS 29.500 5) without a network, split into method, path, query, headers and
//! body.

mod content;
mod headers;
pub(crate) mod json;
mod multipart;
mod parts;
pub(crate) mod percent;
mod problem;
mod query;
mod record;
mod route;

pub(crate) use content::{Body, Content};
pub(crate) use json::json_bodies;
pub(crate) use parts::{Parts, Visit, decode_parts, encode_parts, multipart_bodies};
pub(crate) use query::QueryValue;
pub(crate) use route::{Incoming, Query, no_operation};

pub use headers::Headers;

use crate::Result;
use crate::mask::masked;
use bytes::Bytes;
use std::borrow::Cow;
use std::fmt;

/// The methods of the SBI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// Read a resource.
    Get,
    /// Create or replace the resource.
    Put,
    /// Create a resource, or execute a custom operation.
    Post,
    /// Modify a resource.
    Patch,
    /// Delete a resource.
    Delete,
}

impl Method {
    /// The method's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Put => "PUT",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// The method with this name; `None` if the SBI does not use it.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Get, Self::Put, Self::Post, Self::Patch, Self::Delete]
            .into_iter()
            .find(|method| method.as_str() == name)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A request. The path excludes the apiRoot with its prefix. `Debug` hides identities and the body.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// Method.
    pub method: Method,
    /// `/namf-comm/v1/ue-contexts/…`, percent-encoded.
    pub path: String,
    /// `name=value&…`, percent-encoded; empty if there is none.
    pub query: String,
    /// Other headers.
    pub headers: Headers,
    /// Media type of the body; `None` if there is no body.
    pub content_type: Option<Cow<'static, str>>,
    /// Body.
    pub body: Bytes,
}

/// A response. `Debug` hides the body.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpResponse {
    /// Status, 200 to 599.
    pub status: u16,
    /// Headers other than `Content-Type`.
    pub headers: Headers,
    /// Media type of the body; `None` if there is no body.
    pub content_type: Option<Cow<'static, str>>,
    /// Body.
    pub body: Bytes,
}

impl HttpRequest {
    /// A request without query and body.
    pub fn new(method: Method, path: &str) -> Self {
        Self {
            method,
            path: path.into(),
            query: String::new(),
            headers: Headers::default(),
            content_type: None,
            body: Bytes::new(),
        }
    }

    /// Appends a segment to the path.
    pub(crate) fn segment(&mut self, segment: &dyn fmt::Display) {
        self.path.push('/');
        self.path.push_str(&percent::segment(&segment.to_string()));
    }

    /// Adds a query parameter.
    pub(crate) fn parameter(&mut self, name: &str, value: &impl QueryValue) {
        if !self.query.is_empty() {
            self.query.push('&');
        }
        self.query.push_str(name);
        self.query.push('=');
        self.query.push_str(&percent::query(&value.to_query()));
    }

    /// Adds a query parameter if it has a value.
    pub(crate) fn optional(&mut self, name: &str, value: &Option<impl QueryValue>) {
        if let Some(value) = value {
            self.parameter(name, value);
        }
    }

    /// Sets the body.
    pub(crate) fn content(&mut self, content: Content) {
        self.content_type = Some(content.media_type);
        self.body = content.body;
    }

    /// Decodes the body.
    pub(crate) fn read<T: Body>(&self) -> Result<T> {
        content::decode(self.content_type.as_deref(), &self.body)
    }
}

impl HttpResponse {
    /// A response without a body.
    pub fn new(status: u16) -> Self {
        Self { status, headers: Headers::default(), content_type: None, body: Bytes::new() }
    }

    /// Sets the body.
    pub(crate) fn content(&mut self, content: Content) {
        self.content_type = Some(content.media_type);
        self.body = content.body;
    }

    /// Decodes the body.
    pub(crate) fn read<T: Body>(&self) -> Result<T> {
        content::decode(self.content_type.as_deref(), &self.body)
    }
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let content_type = self.content_type.as_deref().unwrap_or("no body");
        let path = masked(&self.path);
        write!(f, "{} {path}, {content_type}, {} octets", self.method, self.body.len())
    }
}

impl fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let content_type = self.content_type.as_deref().unwrap_or("no body");
        write!(f, "{}, {content_type}, {} octets", self.status, self.body.len())
    }
}
