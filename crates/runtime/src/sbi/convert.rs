//! Conversion between the SBI's HTTP types and hyper's.

use bytes::Bytes;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use hyper::{HeaderMap, StatusCode};
use pith_nf::kit::Nf;
use pith_sbi::http::Headers;
use pith_sbi::{ApiRoot, HttpRequest, HttpResponse, Method, Problem};

const ACCEPTED: &str = "application/json, application/problem+json, multipart/related";

/// Converts a request for hyper's client. `User-Agent` is the NF type of the caller (TS 29.500 5.2.2.2).
pub(super) fn to_request(
    root: &ApiRoot,
    nf: Nf,
    http: HttpRequest,
    token: Option<&str>,
) -> Result<hyper::Request<Bytes>, Box<Problem>> {
    let mark = if http.query.is_empty() { "" } else { "?" };
    let uri = format!("{root}{}{mark}{}", http.path, http.query);
    let mut request =
        hyper::Request::builder().method(http.method.as_str()).uri(uri).header(ACCEPT, ACCEPTED);
    if let Some(nf_type) = nf.nf_type() {
        request = request.header(USER_AGENT, nf_type.as_str());
    }
    if let Some(token) = token {
        let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| Problem::system_failure("the NRF's access token is not valid in a header"))?;
        value.set_sensitive(true);
        request = request.header(AUTHORIZATION, value);
    }
    let mut request = request
        .body(http.body)
        .map_err(|error| Problem::system_failure(format!("cannot form a URI of {root}: {error}")))?;
    write_headers(request.headers_mut(), &http.headers, http.content_type.as_deref());
    Ok(request)
}

/// Converts a received request; `path` follows the apiRoot.
pub(super) fn from_request(path: &str, request: hyper::Request<Bytes>) -> Result<HttpRequest, Box<Problem>> {
    let (head, body) = request.into_parts();
    let unused = || {
        Problem::of_status(StatusCode::NOT_IMPLEMENTED.as_u16()).detail("the SBI does not use this method")
    };
    let (headers, content_type) = read_headers(&head.headers);
    Ok(HttpRequest {
        method: Method::from_name(head.method.as_str()).ok_or_else(unused)?,
        path: path.to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers,
        content_type: content_type.map(Into::into),
        body,
    })
}

/// Converts a response for hyper's server.
pub(super) fn to_response(http: HttpResponse) -> hyper::Response<Bytes> {
    let mut response = hyper::Response::new(http.body);
    *response.status_mut() = StatusCode::from_u16(http.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    write_headers(response.headers_mut(), &http.headers, http.content_type.as_deref());
    response
}

/// Converts a received response.
pub(super) fn from_response(response: hyper::Response<Bytes>) -> HttpResponse {
    let (head, body) = response.into_parts();
    let (headers, content_type) = read_headers(&head.headers);
    HttpResponse { status: head.status.as_u16(), headers, content_type: content_type.map(Into::into), body }
}

/// Omits values that are not valid in a header, as they contain a peer's text.
fn write_headers(map: &mut HeaderMap, headers: &Headers, content_type: Option<&str>) {
    let content = content_type.map(|value| (CONTENT_TYPE.as_str(), value));
    for (name, value) in headers.iter().chain(content) {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            map.append(name, value);
        }
    }
}

/// The headers and the media type.
fn read_headers(map: &HeaderMap) -> (Headers, Option<String>) {
    let mut headers = Headers::default();
    let mut content_type = None;
    for (name, value) in map {
        let Ok(value) = value.to_str() else { continue };
        if name == CONTENT_TYPE {
            content_type = Some(value.to_owned());
        } else {
            headers.push(name.as_str().to_owned(), value);
        }
    }
    (headers, content_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_header_values_are_omitted() {
        let mut http = HttpResponse::new(201);
        http.headers.push("location", "http://a/b\r\nx: y");
        http.headers.push("retry-after", "3");
        let response = to_response(http);
        assert_eq!(response.headers().len(), 1);
        assert_eq!(response.headers()["retry-after"], "3");
    }
}
