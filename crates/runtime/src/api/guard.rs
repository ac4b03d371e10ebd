//! Who may use the API.

use super::ApiError;
use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::http::request::Parts;
use std::net::IpAddr;

/// Lets requests pass or not.
pub struct Guard {
    token: Option<String>,
}

impl Guard {
    /// One that wants that token, or, without one, that trusts this machine's own clients.
    pub fn new(token: Option<String>) -> Self {
        Self { token }
    }

    /// Whether a request with this head may pass.
    pub(super) fn check(&self, head: &Parts) -> Result<(), ApiError> {
        match &self.token {
            Some(token) => check_token(token, head),
            None => check_host(head),
        }
    }
}

fn check_token(token: &str, head: &Parts) -> Result<(), ApiError> {
    let shown = head.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let shown = shown.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    if same(shown.trim().as_bytes(), token.as_bytes()) {
        return Ok(());
    }
    Err(ApiError {
        status: StatusCode::UNAUTHORIZED,
        detail: "send 'Authorization: Bearer …' with the secret of the file 'api.token_file'".into(),
    })
}

/// Compares in a time that does not tell how much is alike.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

/// A web page whose name was pointed at this machine (DNS rebinding) shows its name here: only
/// addresses and `localhost` pass.
fn check_host(head: &Parts) -> Result<(), ApiError> {
    let header = head.headers.get(HOST).and_then(|value| value.to_str().ok());
    let authority = header.or_else(|| head.uri.authority().map(|authority| authority.as_str()));
    let host = authority.map(host_of).unwrap_or_default();
    if host == "localhost" || host.parse::<IpAddr>().is_ok() {
        return Ok(());
    }
    let detail = "ask by address or as 'localhost', or set 'api.token_file'".into();
    Err(ApiError { status: StatusCode::FORBIDDEN, detail })
}

/// The host of `host:port`, without the brackets of an IPv6 address.
fn host_of(authority: &str) -> &str {
    if let Some((host, _)) = authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return host;
    }
    authority.split(':').next().unwrap_or(authority)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(name: &str, value: &str) -> Parts {
        hyper::Request::get("/").header(name, value).body(()).unwrap().into_parts().0
    }

    #[test]
    fn only_this_machines_own_clients_pass_without_a_token() {
        let guard = Guard::new(None);
        for host in ["127.0.0.1:5100", "localhost", "[::1]:5100"] {
            assert!(guard.check(&head("host", host)).is_ok(), "{host}");
        }
        for host in ["evil.example:5100", "", "localhost.evil.example"] {
            assert!(guard.check(&head("host", host)).is_err(), "{host}");
        }
    }

    #[test]
    fn a_token_is_compared_whole() {
        let guard = Guard::new(Some("secret".into()));
        assert!(guard.check(&head("authorization", "Bearer secret")).is_ok());
        for shown in ["Bearer secre", "Bearer secret2", "secret", "Bearer "] {
            let error = guard.check(&head("authorization", shown)).unwrap_err();
            assert_eq!(error.status, StatusCode::UNAUTHORIZED, "{shown}");
        }
    }
}
