//! `multipart/related` (RFC 2387, RFC 2046 5.1): JSON, followed by binary parts with `Content-Id`.

use super::content::{self, Content};
use super::json;
use crate::Result;
use crate::problem::{Cause, Problem};
use bytes::Bytes;

pub(crate) const RELATED: &str = "multipart/related";

/// Largest number of parts; the largest SBI body, `CreateUEContext`, has 19.
const PARTS_MAX: usize = 32;
/// Largest size of a part's headers in octets; those of the SBI (Content-Type, Content-Id) have less than
/// 200.
const HEAD_MAX: usize = 1024;

/// A binary part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub content_id: String,
    pub media_type: String,
    pub content: Bytes,
}

/// The JSON and the binary parts.
pub(crate) struct Related {
    pub root: Bytes,
    pub parts: Vec<Part>,
}

/// Encodes a body from JSON and parts: content id, media type, octets.
pub(crate) fn encode(root: &[u8], parts: &[(&str, &'static str, Bytes)]) -> Content {
    let boundary = boundary(root, parts);
    let mut body = Vec::with_capacity(256 + root.len() + 256 * parts.len());
    let json = format!("--{boundary}\r\nContent-Type: {}\r\n\r\n", json::JSON);
    body.extend_from_slice(json.as_bytes());
    body.extend_from_slice(root);
    for (content_id, media_type, octets) in parts {
        let head =
            format!("\r\n--{boundary}\r\nContent-Type: {media_type}\r\nContent-Id: {content_id}\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(octets);
    }
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    let media_type = format!("{RELATED}; type=\"{}\"; boundary={boundary}", json::JSON);
    Content { media_type: media_type.into(), body: body.into() }
}

/// A boundary that does not occur in any part.
fn boundary(root: &[u8], parts: &[(&str, &'static str, Bytes)]) -> String {
    let free = |candidate: &String| {
        let marker = format!("--{candidate}");
        let within = |octets: &[u8]| find(octets, marker.as_bytes()).is_some();
        !within(root) && !parts.iter().any(|(_, _, octets)| within(octets))
    };
    let numbered = (0u32..).map(|n| format!("pith-{n:x}-related"));
    numbered.into_iter().find(free).unwrap_or_default()
}

/// Decodes a body into JSON and parts.
pub(crate) fn decode(media_type: &str, body: &Bytes) -> Result<Related> {
    let boundary = content::parameter(media_type, "boundary").filter(|boundary| is_boundary(boundary));
    let boundary = boundary.ok_or_else(|| broken("no boundary"))?;
    let mut parts = split(body, &format!("--{boundary}"))?;
    let start = content::parameter(media_type, "start").map(bare_id);
    let named = |start| parts.iter().position(|part: &Part| part.content_id == start);
    let root = start.map_or(Some(0), named).filter(|&at| at < parts.len());
    let root = root.ok_or_else(|| broken("no root part"))?;
    check(&parts)?;
    let root = parts.remove(root);
    if !root.media_type.is_empty() && !content::is(&root.media_type, json::JSON) {
        return Err(broken("the root part is not JSON"));
    }
    Ok(Related { root: root.content, parts })
}

/// Whether the text consists of `bchars` and does not end with a space (RFC 2046 5.1.1).
fn is_boundary(text: &str) -> bool {
    let character = |octet: u8| octet.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(&octet);
    (1..=70).contains(&text.len()) && text.bytes().all(character) && !text.ends_with(' ')
}

/// Content ids must be unique, and nested multiparts are not permitted: the SBI has none (TS 29.500 5.2.2.2).
fn check(parts: &[Part]) -> Result<()> {
    for (at, part) in parts.iter().enumerate() {
        let twice = parts.iter().take(at).any(|other| other.content_id == part.content_id);
        if twice && !part.content_id.is_empty() {
            return Err(broken("a Content-Id occurs twice"));
        }
        let kind = part.media_type.get(..10).unwrap_or_default();
        if kind.eq_ignore_ascii_case("multipart/") {
            return Err(broken("a multipart within a part"));
        }
    }
    Ok(())
}

fn broken(why: &'static str) -> Box<Problem> {
    let detail = format_args!("multipart/related: {why}").to_string();
    Problem::new(Cause::InvalidMsgFormat).detail(detail).into()
}

/// The parts between delimiters; preamble and epilogue are ignored.
fn split(body: &Bytes, delimiter: &str) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    let mut rest = after_delimiter(body, 0, delimiter).ok_or_else(|| broken("no delimiter"))?;
    loop {
        let (at, last) = rest;
        if last {
            return Ok(parts);
        }
        if parts.len() == PARTS_MAX {
            return Err(broken("too many parts"));
        }
        let marker = format!("\r\n{delimiter}");
        let from = at.saturating_sub(2);
        let tail = body.get(from..).unwrap_or_default();
        let end = find(tail, marker.as_bytes()).ok_or_else(|| broken("no closing delimiter"))?;
        let end = from + end;
        parts.push(part(&body.slice(at.min(end)..end))?);
        let next = after_delimiter(body, end, delimiter);
        rest = next.ok_or_else(|| broken("a delimiter line that does not end"))?;
    }
}

/// The end of the next delimiter's line, and whether it is the closing delimiter.
fn after_delimiter(body: &[u8], from: usize, delimiter: &str) -> Option<(usize, bool)> {
    let delimited = from + find(body.get(from..)?, delimiter.as_bytes())?;
    // A delimiter is at the beginning of a line (RFC 2046 5.1.1).
    if delimited > 0 && !body.get(..delimited)?.ends_with(b"\r\n") {
        return None;
    }
    let start = delimited + delimiter.len();
    let tail = body.get(start..)?;
    if tail.starts_with(b"--") {
        return Some((start, true));
    }
    let line = find(tail, b"\r\n")?;
    let blank = tail.get(..line)?.iter().all(|octet| b" \t".contains(octet));
    blank.then_some((start + line + 2, false))
}

/// Parses a part: headers, an empty line, octets.
fn part(octets: &Bytes) -> Result<Part> {
    let (head, content) = if octets.starts_with(b"\r\n") {
        (Bytes::new(), octets.slice(2..))
    } else {
        let end = find(octets, b"\r\n\r\n").ok_or_else(|| broken("a part without empty line"))?;
        (octets.slice(..end), octets.slice(end + 4..))
    };
    if head.len() > HEAD_MAX {
        return Err(broken("the headers of a part are too long"));
    }
    let head = std::str::from_utf8(&head).map_err(|_| broken("headers that are no text"))?;
    let header = |name: &str| {
        let fields = head.split("\r\n").filter_map(|line| line.split_once(':'));
        let mut named = fields.filter(|(key, _)| key.trim().eq_ignore_ascii_case(name));
        let value = named.next().map_or("", |(_, value)| value.trim());
        if named.next().is_some() { Err(broken("a header of a part occurs twice")) } else { Ok(value) }
    };
    // These encodings leave the octets unchanged (RFC 2045 6.2).
    let encoding = header("content-transfer-encoding")?;
    if !["", "binary", "8bit", "7bit"].iter().any(|plain| encoding.eq_ignore_ascii_case(plain)) {
        return Err(broken("a part is encoded"));
    }
    Ok(Part {
        content_id: bare_id(header("content-id")?).to_owned(),
        media_type: header("content-type")?.to_owned(),
        content,
    })
}

/// A content id without angle brackets, which some implementations add.
fn bare_id(id: &str) -> &str {
    id.trim_start_matches('<').trim_end_matches('>')
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    let first = *needle.first()?;
    let mut from = 0;
    loop {
        let at = from + haystack.get(from..)?.iter().position(|&octet| octet == first)?;
        if haystack.get(at..)?.starts_with(needle) {
            return Some(at);
        }
        from = at + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Content {
        let nas = Bytes::from_static(b"\x2e\x01--pith-0-related\r\n");
        let ngap = Bytes::from_static(b"\r\n\r\n\0");
        encode(b"{}", &[("n1", "application/vnd.3gpp.5gnas", nas), ("n2", "x/y", ngap)])
    }

    #[test]
    fn parts_round_trip_even_if_they_hold_delimiters() {
        let content = sample();
        assert!(content.media_type.ends_with("boundary=pith-1-related"));
        let related = decode(&content.media_type, &content.body).unwrap();
        assert_eq!(&related.root[..], b"{}");
        assert_eq!(related.parts.len(), 2);
        assert_eq!(&related.parts[0].content[..], b"\x2e\x01--pith-0-related\r\n");
        assert_eq!((&*related.parts[1].content_id, related.parts[1].content.len()), ("n2", 5));
    }

    #[test]
    fn a_foreign_body_is_read() {
        let body = "preamble\r\n--X \r\n\r\nab\r\n--X\r\ncontent-ID: <a@b>\r\ncontent-type: \
                    application/json\r\n\r\n{}\r\n--X--\r\nepilogue";
        let media_type = "Multipart/Related; start=\"<a@b>\"; boundary=\"X\"";
        let related = decode(media_type, &Bytes::from(body)).unwrap();
        assert_eq!((&related.root[..], related.parts.len()), (&b"{}"[..], 1));
        assert_eq!(&related.parts[0].content[..], b"ab");
    }

    #[test]
    fn truncated_and_corrupted_input_does_not_panic() {
        let content = sample();
        for cut in 0..content.body.len() {
            let _ = decode(&content.media_type, &content.body.slice(..cut));
            for with in [b'\r', b'\n', b'-', 0] {
                let mut flipped = content.body.to_vec();
                flipped[cut] = with;
                let _ = decode(&content.media_type, &flipped.into());
            }
        }
    }

    #[test]
    fn decoding_errors_name_the_reason() {
        let body = |text: &'static str| Bytes::from_static(text.as_bytes());
        let cases = [
            ("multipart/related", body("--X\r\n\r\n\r\n--X--")),
            ("multipart/related; boundary=X", body("")),
            ("multipart/related; boundary=X", body("--X--")),
            ("multipart/related; boundary=X", body("--X\r\n\r\n{}")),
            ("multipart/related; boundary=X", body("--Xtra\r\n\r\n{}\r\n--X--")),
            ("multipart/related; boundary=X", body("--X\r\nno empty line\r\n--X--")),
            ("multipart/related; boundary=X; start=b", body("--X\r\n\r\n{}\r\n--X--")),
            ("multipart/related; boundary=X", body("x--X\r\n\r\n{}\r\n--X--")),
            ("multipart/related; boundary=\"a\tb\"", body("--a\tb\r\n\r\n{}\r\n--a\tb--")),
            ("multipart/related; boundary=X", body("--X\r\nContent-Type: text/html\r\n\r\n{}\r\n--X--")),
            (
                "multipart/related; boundary=X",
                body("--X\r\nContent-Type: multipart/related; boundary=Y\r\n\r\n{}\r\n--X--"),
            ),
            (
                "multipart/related; boundary=X",
                body(
                    "--X\r\n\r\n{}\r\n--X\r\nContent-Id: a\r\n\r\n1\r\n--X\r\nContent-Id: <a>\r\n\r\n2\r\n--X--",
                ),
            ),
            (
                "multipart/related; boundary=X",
                body("--X\r\n\r\n{}\r\n--X\r\nContent-Id: a\r\nContent-ID: b\r\n\r\n1\r\n--X--"),
            ),
            (
                "multipart/related; boundary=X",
                body("--X\r\n\r\n{}\r\n--X\r\nContent-Transfer-Encoding: base64\r\n\r\n1\r\n--X--"),
            ),
        ];
        for (media_type, body) in cases {
            let problem = decode(media_type, &body).err().expect("a problem");
            assert_eq!((problem.status, problem.cause()), (400, Some(&Cause::InvalidMsgFormat)));
        }
        let long = format!("--X\r\nx: {}\r\n\r\n{{}}\r\n--X--", "y".repeat(HEAD_MAX));
        let many = "--X\r\n\r\n{}\r\n".repeat(PARTS_MAX + 1) + "--X--";
        for body in [long, many] {
            assert!(decode("multipart/related; boundary=X", &body.into()).is_err());
        }
    }
}
