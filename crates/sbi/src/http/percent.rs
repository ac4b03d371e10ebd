//! Percent-encoding (RFC 3986 2.1).

use std::borrow::Cow;

/// Characters that are not encoded in a path segment: unreserved characters and those of `pchar`.
fn in_segment(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&octet)
}

/// Characters that are not encoded in a query value; commas separate list items and are encoded.
fn in_query(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || b"-._~!$'()*,;:@/".contains(&octet)
}

fn encode(text: &str, keep: fn(u8) -> bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for octet in text.bytes() {
        if keep(octet) {
            encoded.push(char::from(octet));
        } else {
            encoded.push_str(&format!("%{octet:02X}"));
        }
    }
    encoded
}

/// Encodes a path segment. `.` and `..` are encoded too, as path normalisation would remove them.
pub(crate) fn segment(text: &str) -> String {
    match text {
        "." => "%2E".into(),
        ".." => "%2E%2E".into(),
        _ => encode(text, in_segment),
    }
}

/// Encodes the value of a query parameter.
pub(crate) fn query(text: &str) -> String {
    encode(text, in_query)
}

/// Decodes a text; `None` if an escape is invalid or the octets are not UTF-8.
pub(crate) fn decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(text.into());
    }
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&octet, after)) = rest.split_first() {
        rest = after;
        if octet == b'%' {
            let (pair, after) = rest.split_at_checked(2)?;
            octets.push(crate::octets::hex_pair(pair)?);
            rest = after;
        } else {
            octets.push(octet);
        }
    }
    String::from_utf8(octets).ok().map(Cow::Owned)
}

/// Decodes a form field or query value, in which `+` is a space.
pub(crate) fn decode_query(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('+') {
        return decode(text);
    }
    decode(&text.replace('+', " ")).map(|decoded| Cow::Owned(decoded.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_values_decode_to_the_same_values() {
        for text in ["imsi-1", "5G:mnc070", "a/b?c#d%e", "é", "..", r#"{"sst":1}"#, "a+b c&d=e"] {
            assert_eq!(decode(&segment(text)).as_deref(), Some(text));
            assert_eq!(decode_query(&query(text)).as_deref(), Some(text));
        }
        assert_eq!(segment("a/b"), "a%2Fb");
        assert_eq!(decode_query("a+b").as_deref(), Some("a b"));
    }

    #[test]
    fn broken_escapes_are_refused() {
        for bad in ["%", "%1", "%zz", "%ff", "a%2"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
