//! URIs of this process for NFs of another vendor that speak cleartext (`sbi.external.<nf>.security: none`).
//!
//! The NFs of the process put their https apiRoot into callbacks and `Location`. Such an NF can't use it, so it gets the
//! address of `sbi.plain_listen` instead; both listeners take the same paths.

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::HeaderValue;
use std::net::SocketAddr;

/// Replaces the authority in URIs of this process.
pub(super) struct PlainUris {
    secure: Vec<u8>,
    plain: Vec<u8>,
}

impl PlainUris {
    /// For a process that serves https at one address and http at another.
    pub(super) fn new(secure: SocketAddr, plain: SocketAddr) -> Self {
        Self {
            secure: format!("https://{secure}").into_bytes(),
            plain: format!("http://{plain}").into_bytes(),
        }
    }

    /// In headers and body of a message that leaves in cleartext.
    pub(super) fn rewrite(&self, headers: &mut HeaderMap, body: &mut Bytes) {
        for value in headers.values_mut() {
            if let Some(Ok(plain)) =
                self.replaced(value.as_bytes()).map(|octets| HeaderValue::from_bytes(&octets))
            {
                *value = plain;
            }
        }
        if let Some(plain) = self.replaced(body) {
            *body = plain.into();
        }
    }

    /// The octets with each URI replaced; `None` if there is none in them. What follows the authority must end it: port 77
    /// is not port 7777.
    fn replaced(&self, octets: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let mut rest = octets;
        while let Some(at) = rest.windows(self.secure.len()).position(|window| window == self.secure) {
            let (before, found) = rest.split_at(at);
            let behind = &found[self.secure.len()..];
            let is_whole =
                behind.first().is_none_or(|octet| matches!(octet, b'/' | b'"' | b'?' | b'#' | b'>'));
            out.extend_from_slice(before);
            out.extend_from_slice(if is_whole { &self.plain } else { &self.secure });
            rest = behind;
        }
        if out.is_empty() {
            return None;
        }
        out.extend_from_slice(rest);
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_of_this_process_become_plain_and_others_stay() {
        let uris = PlainUris::new("10.0.0.1:77".parse().unwrap(), "10.0.0.1:80".parse().unwrap());
        let mut headers = HeaderMap::new();
        headers.insert(
            "location",
            HeaderValue::from_static("https://10.0.0.1:77/s1/nsmf-pdusession/v1/sm-contexts/1"),
        );
        headers.insert("accept", HeaderValue::from_static("application/json"));
        let mut body = Bytes::from_static(
            br#"{"a":"https://10.0.0.1:77/s0/x","b":"https://10.0.0.1:77","c":"https://10.0.0.1:777/x","d":"https://10.0.0.2:77/x"}"#,
        );
        uris.rewrite(&mut headers, &mut body);
        assert_eq!(headers["location"], "http://10.0.0.1:80/s1/nsmf-pdusession/v1/sm-contexts/1");
        assert_eq!(headers["accept"], "application/json");
        assert_eq!(
            body,
            r#"{"a":"http://10.0.0.1:80/s0/x","b":"http://10.0.0.1:80","c":"https://10.0.0.1:777/x","d":"https://10.0.0.2:77/x"}"#
        );
        let mut other = Bytes::from_static(b"https://10.0.0.2:77/");
        uris.rewrite(&mut HeaderMap::new(), &mut other);
        assert_eq!(other, "https://10.0.0.2:77/");
    }
}
