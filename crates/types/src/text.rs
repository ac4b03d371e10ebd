//! Serialises a value as its text.

use serde::Serializer;
use std::fmt::{self, Display, Write};

/// Length of texts that are made on the stack: identities and most URIs.
const LONGEST: usize = 120;

/// Serialises a value as its text, as [`Serializer::collect_str`] does. A JSON serializer gets the text as one string: it would
/// otherwise look for characters to be escaped in each part that `Display` writes.
pub fn serialize_text<S: Serializer>(
    value: &(impl Display + ?Sized),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut text = Text { octets: [0; LONGEST], length: 0 };
    match write!(text, "{value}").ok().and_then(|()| text.as_str()) {
        Some(text) => serializer.serialize_str(text),
        None => serializer.collect_str(value),
    }
}

/// A short text on the stack. Longer ones are an error.
struct Text {
    octets: [u8; LONGEST],
    length: usize,
}

impl Text {
    fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(self.octets.get(..self.length)?).ok()
    }
}

impl Write for Text {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let end = self.length + part.len();
        self.octets.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(part.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_any_length_is_serialised_whole() {
        for length in [0, 1, LONGEST - 1, LONGEST, LONGEST + 1, 3 * LONGEST] {
            let text = format!("{}é\"", "x".repeat(length));
            let json = serialize_text(&format_args!("{text}"), serde_json::value::Serializer).unwrap();
            assert_eq!(json, serde_json::Value::String(text));
        }
    }
}
