//! The SBI (TS 29.500): HTTP requests and responses, written as text:
//!
//! ```text
//!  POST /nausf-auth/v1/ue-authentications?query        Authenticate 201
//!  content-type: application/json                      location: http://...
//!
//!  {"supiOrSuci": ...}                                 {"authType": ...}
//! ```

use crate::target::{CheckFailed, ensure, same};
use pith_sbi::http::{Headers, HttpRequest, HttpResponse, Method};
use pith_sbi::{ApiRoot, Operation, Request, Response, Scheme};
use std::sync::{Arc, LazyLock};

static ROOT: LazyLock<Arc<ApiRoot>> =
    LazyLock::new(|| Arc::new(ApiRoot::new(Scheme::Http, "127.0.0.1:7777").with_prefix("/s1")));

/// The parts of an HTTP message.
pub(super) struct Http<'a> {
    pub first: &'a str,
    pub second: &'a str,
    pub headers: Headers,
    pub content_type: Option<String>,
    pub body: &'a [u8],
}

impl<'a> Http<'a> {
    pub fn of(input: &'a [u8]) -> Option<Self> {
        let end = input.windows(2).position(|pair| pair == b"\n\n").unwrap_or(input.len());
        let head = std::str::from_utf8(input.get(..end)?).ok()?;
        let body = input.get(end + 2..).unwrap_or_default();
        let mut lines = head.split('\n');
        let (first, second) = lines.next()?.split_once(' ')?;
        let mut http = Self { first, second, headers: Headers::default(), content_type: None, body };
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            match name {
                "content-type" => http.content_type = Some(value.to_owned()),
                name => http.headers.push(name.to_owned(), value),
            }
        }
        Some(http)
    }
}

/// The request in that text; `None` if it is not HTTP.
pub fn http_request(input: &[u8]) -> Option<HttpRequest> {
    let http = Http::of(input)?;
    let (path, query) = http.second.split_once('?').unwrap_or((http.second, ""));
    let mut request = HttpRequest::new(Method::from_name(http.first)?, path);
    request.query = query.to_owned();
    request.headers = http.headers;
    request.content_type = http.content_type.map(Into::into);
    request.body = http.body.to_vec().into();
    Some(request)
}

/// A request to a server: refused with a 4xx, or the same after encoding and decoding it again.
pub fn request(input: &[u8]) -> Result<(), CheckFailed> {
    let Some(http) = http_request(input) else { return Ok(()) };
    match Request::from_http(&ROOT, &http) {
        Ok(request) => {
            let _ = (
                format!("{request:?}"),
                request.target_nf(),
                request.target_uri().map(|uri| uri.to_string()),
            );
            same(&request, Request::from_http(&ROOT, &request.to_http()))
        }
        Err(problem) => {
            let written = problem.to_http(None);
            ensure((400..500).contains(&written.status), || format!("the sender's fault, but {problem}"))
        }
    }
}

/// The response in that text, and its operation.
pub fn http_response(input: &[u8]) -> Option<(Operation, HttpResponse)> {
    let http = Http::of(input)?;
    let operation = Operation::ALL.iter().find(|operation| operation.info().operation_id == http.first)?;
    let mut response = HttpResponse::new(http.second.parse().ok()?);
    response.headers = http.headers;
    response.content_type = http.content_type.map(Into::into);
    response.body = http.body.to_vec().into();
    Some((*operation, response))
}

/// A response to a client: an outcome of its operation that is the same after encoding and
/// decoding, or a problem.
pub fn response(input: &[u8]) -> Result<(), CheckFailed> {
    let Some((operation, http)) = http_response(input) else { return Ok(()) };
    match Response::from_http(operation, &ROOT, &http) {
        Ok(response) => {
            let known = operation.info().outcomes.contains(&response.outcome());
            ensure(known, || format!("{:?} is no outcome of {operation:?}", response.outcome()))?;
            let _ = format!("{response:?}");
            same(&response, Response::from_http(operation, &ROOT, &response.to_http()))
        }
        Err(problem) => {
            let _ = (problem.to_string(), problem.to_http(Some(operation)));
            Ok(())
        }
    }
}
