//! Percent-encoding (RFC 3986 2.1).

use std::borrow::Cow;

/// What stands in a path segment as it is: unreserved characters and those of `pchar`.
fn in_segment(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&octet)
}

/// What stands in the value of a query parameter as it is; commas part the items of a list.
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

/// One segment of a path. `.` and `..` would be taken out by whoever normalises the path.
pub(crate) fn segment(text: &str) -> String {
    match text {
        "." => "%2E".into(),
        ".." => "%2E%2E".into(),
        _ => encode(text, in_segment),
    }
}

/// The value of a query parameter.
pub(crate) fn query(text: &str) -> String {
    encode(text, in_query)
}

/// The text again; `None` if an escape is broken or the octets are no UTF-8.
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

/// The value of a form field or query parameter, where `+` is a space.
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
    fn what_is_encoded_is_decoded() {
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
