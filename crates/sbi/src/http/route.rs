//! Assigns received requests to operations.

use super::{Body, HttpRequest, Method, QueryValue, percent};
use crate::Result;
use crate::problem::{Cause, Problem, ProblemMore};
use crate::uri::{ApiRoot, Uri};
use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

/// A received request with its path split at slashes.
pub(crate) struct Incoming<'a> {
    pub root: &'a Arc<ApiRoot>,
    pub http: &'a HttpRequest,
    /// Segments are percent-encoded, so that encoded slashes do not separate them.
    pub segments: Vec<&'a str>,
    pub query: Query<'a>,
}

impl<'a> Incoming<'a> {
    pub fn new(root: &'a Arc<ApiRoot>, http: &'a HttpRequest) -> Result<Self> {
        let path = http.path.strip_prefix('/').unwrap_or(&http.path);
        let segments = path.split('/').collect();
        Ok(Self { root, http, segments, query: Query::new(&http.query)? })
    }

    /// Parses a path segment.
    pub fn segment<T: FromStr>(&self, name: &str, segment: &str) -> Result<T> {
        let text = percent::decode(segment);
        let value = text.and_then(|text| text.parse().ok());
        value.ok_or_else(|| {
            let param = format!("{{{}}}", camel_case(name));
            Problem::mandatory_ie_incorrect(&param, "not of its form").into()
        })
    }

    /// Decodes the body.
    pub fn body<T: Body>(&self) -> Result<T> {
        self.http.read()
    }
}

/// Largest number of parameters of a query or form; SearchNFInstances, which has the most, has fewer than 100
/// in Release 17.
const PARAMETERS_MAX: usize = 128;

/// A query or form, split at ampersands.
pub(crate) struct Query<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Query<'a> {
    pub fn new(text: &'a str) -> Result<Self> {
        let pairs = text.split('&').filter(|p| !p.is_empty());
        if pairs.clone().take(PARAMETERS_MAX + 1).count() > PARAMETERS_MAX {
            let detail = format!("more than {PARAMETERS_MAX} parameters");
            return Err(Problem::new(Cause::InvalidQueryParam).detail(detail).into());
        }
        let pairs: Option<Vec<_>> = pairs.map(pair).collect();
        pairs.map(Self).ok_or_else(|| Cause::InvalidQueryParam.into())
    }

    /// The value of an optional parameter.
    pub fn optional<T: QueryValue>(&self, name: &str) -> Result<Option<T>> {
        let mut named = self.0.iter().filter(|(key, _)| key == name);
        let Some((_, text)) = named.next() else {
            return Ok(None);
        };
        if named.next().is_some() {
            let cause = Cause::OptionalQueryParamIncorrect;
            return Err(Problem::new(cause).param(&format!("query {name}"), "occurs twice").into());
        }
        T::from_query(text).map(Some).ok_or_else(|| {
            let cause = Cause::OptionalQueryParamIncorrect;
            Problem::new(cause).param(&format!("query {name}"), "not of its form").into()
        })
    }

    /// The value of a required parameter.
    pub fn required<T: QueryValue>(&self, name: &str) -> Result<T> {
        let param = format!("query {name}");
        let value = self.optional(name).map_err(|_| {
            Problem::new(Cause::MandatoryQueryParamIncorrect).param(&param, "not of its form")
        })?;
        let missing = || Problem::new(Cause::MandatoryQueryParamMissing).param(&param, "missing");
        Ok(value.ok_or_else(missing)?)
    }
}

fn pair(pair: &str) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    Some((percent::decode_query(name)?, percent::decode_query(value)?))
}

/// Converts `auth_ctx_id` to the form of the OpenAPI files: `authCtxId`.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let (first, rest) = word.split_at_checked(1).unwrap_or((word, ""));
        camel.push_str(&first.to_ascii_uppercase());
        camel.push_str(rest);
    }
    camel
}

/// The error of a request without an operation: 405 with `Allow` if the resource has other methods, else 404
/// (TS 29.500 5.2.7.2).
pub(crate) fn no_operation(allow: Vec<Method>) -> Box<Problem> {
    let problem = if allow.is_empty() {
        Problem::new(Cause::ResourceUriStructureNotFound)
    } else {
        Problem::of_status(405).with(ProblemMore::Allow(allow))
    };
    problem.into()
}

impl Incoming<'_> {
    /// The callback URI that the notification's consumer provided: the request's URI without the suffix of
    /// the notification.
    pub fn callback(&self, suffix: &str) -> Result<Uri> {
        if self.http.method != Method::Post {
            return Err(no_operation(vec![Method::Post]));
        }
        let path = self.http.path.strip_suffix(suffix).unwrap_or(&self.http.path);
        let query = if self.http.query.is_empty() { "" } else { "?" };
        Ok(Uri::new(self.root, &format!("{path}{query}{}", self.http.query)))
    }
}
