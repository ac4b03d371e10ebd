//! Octets in JSON texts: hexadecimal (RAND, RES*, keys) and base64 (TS 29.571 `Bytes`).

use crate::record::serde_as_text;
use bytes::Bytes;
use std::fmt;
use std::str::FromStr;

/// A text does not represent octets. The error does not contain the text, which may be a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OctetsError {
    /// Not hexadecimal digits, or the wrong number of them.
    #[error("not {0} octets in hexadecimal digits")]
    Hex(usize),
    /// Not base64 (RFC 4648 section 4).
    #[error("not base64")]
    Base64,
}

/// `N` octets, as `2 N` hexadecimal digits in JSON.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hex<const N: usize>(pub [u8; N]);

impl<const N: usize> serde::Serialize for Hex<N> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        pith_types::serialize_text(self, serializer)
    }
}

impl<'de, const N: usize> serde::Deserialize<'de> for Hex<N> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = crate::record::text(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl<const N: usize> From<[u8; N]> for Hex<N> {
    fn from(octets: [u8; N]) -> Self {
        Self(octets)
    }
}

impl<const N: usize> fmt::Display for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl<const N: usize> fmt::Debug for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<const N: usize> FromStr for Hex<N> {
    type Err = OctetsError;
    fn from_str(text: &str) -> Result<Self, OctetsError> {
        let mut octets = [0; N];
        if text.len() != 2 * N {
            return Err(OctetsError::Hex(N));
        }
        for (octet, pair) in octets.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *octet = hex_pair(pair).ok_or(OctetsError::Hex(N))?;
        }
        Ok(Self(octets))
    }
}

/// Writes octets as hexadecimal digits, 16 octets at a time.
pub(crate) fn write_hex(f: &mut impl fmt::Write, octets: &[u8]) -> fmt::Result {
    octets.chunks(16).try_for_each(|part| {
        let mut digits = [0; 32];
        let digits = digits.get_mut(..2 * part.len()).unwrap_or_default();
        hex::encode_to_slice(part, digits).map_err(|_| fmt::Error)?;
        f.write_str(std::str::from_utf8(digits).map_err(|_| fmt::Error)?)
    })
}

/// The octet of two hexadecimal digits.
pub(crate) fn hex_pair(pair: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*pair.get(at)?).to_digit(16);
    u8::try_from(digit(0)? << 4 | digit(1)?).ok()
}

/// `N` octets that must not appear in logs: keys, expected responses. `2 N` hexadecimal digits in JSON.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret<const N: usize>(pub [u8; N]);

impl<const N: usize> serde::Serialize for Secret<N> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Hex(self.0).serialize(serializer)
    }
}

impl<'de, const N: usize> serde::Deserialize<'de> for Secret<N> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Hex::deserialize(deserializer).map(|Hex(octets)| Self(octets))
    }
}

impl<const N: usize> From<[u8; N]> for Secret<N> {
    fn from(octets: [u8; N]) -> Self {
        Self(octets)
    }
}

impl<const N: usize> fmt::Debug for Secret<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// A text that must not appear in logs, such as an encrypted long-term key.
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct SecretText(pub String);

impl<T: Into<String>> From<T> for SecretText {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Octets, as base64 in JSON (TS 29.571 `Bytes`).
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Base64(pub Bytes);

serde_as_text!(Base64);

impl<T: Into<Bytes>> From<T> for Base64 {
    fn from(octets: T) -> Self {
        Self(octets.into())
    }
}

impl fmt::Debug for Base64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} octets", self.0.len())
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

impl fmt::Display for Base64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for group in self.0.chunks(3) {
            let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(group.get(at).copied().unwrap_or(0)));
            for at in 0..4 {
                let sextet = (bits >> (18 - 6 * at)) as usize & 0x3f;
                let shown = if at <= group.len() { ALPHABET[sextet] } else { b'=' };
                fmt::Write::write_char(f, char::from(shown))?;
            }
        }
        Ok(())
    }
}

impl FromStr for Base64 {
    type Err = OctetsError;
    fn from_str(text: &str) -> Result<Self, OctetsError> {
        let sextets = text.trim_end_matches('=').as_bytes();
        let padded = text.len() - sextets.len();
        if !text.len().is_multiple_of(4) || padded > 2 {
            return Err(OctetsError::Base64);
        }
        let mut octets = Vec::with_capacity(text.len() / 4 * 3);
        for group in sextets.chunks(4) {
            let mut bits = 0;
            for at in 0..4 {
                bits = bits << 6 | group.get(at).map_or(Ok(0), |&letter| sextet(letter))?;
            }
            let [_, decoded @ ..] = bits.to_be_bytes();
            octets.extend_from_slice(decoded.get(..group.len() - 1).unwrap_or_default());
        }
        Ok(Self(octets.into()))
    }
}

/// Encodes octets as base64url without padding (RFC 4648 5, RFC 7515 2).
pub(crate) fn base64url(octets: &[u8]) -> String {
    let text = Base64(Bytes::copy_from_slice(octets)).to_string();
    text.trim_end_matches('=').replace('+', "-").replace('/', "_")
}

/// Decodes base64url. The text of a value is unique: unused bits must be zero, so that a token has only one
/// form.
pub(crate) fn from_base64url(text: &str) -> Option<Vec<u8>> {
    if text.bytes().any(|letter| matches!(letter, b'+' | b'/' | b'=')) {
        return None;
    }
    let padding = "=".repeat(text.len().wrapping_neg() % 4);
    let standard = text.replace('-', "+").replace('_', "/") + &padding;
    let Base64(octets) = standard.parse().ok()?;
    (base64url(&octets) == text).then(|| octets.into())
}

fn sextet(letter: u8) -> Result<u32, OctetsError> {
    let value = match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return Err(OctetsError::Base64),
    };
    Ok(u32::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648_section_10() {
        for (octets, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(Base64::from(octets).to_string(), text);
            assert_eq!(text.parse(), Ok(Base64::from(octets)));
        }
        for bad in ["Z", "Zg=", "Zg===", "====", "Zg==Zg==", "Zm8!", "Zé=="] {
            assert_eq!(bad.parse::<Base64>(), Err(OctetsError::Base64), "{bad}");
        }
    }

    #[test]
    fn base64url_has_one_text_for_each_value() {
        for (octets, text) in [(&b""[..], ""), (b"f", "Zg"), (&[0xfb, 0xff], "-_8"), (&[3, 236, 255], "A-z_")]
        {
            assert_eq!(base64url(octets), text);
            assert_eq!(from_base64url(text).as_deref(), Some(octets));
        }
        for bad in ["Zh", "Zg==", "A+z/", "Z", "é"] {
            assert_eq!(from_base64url(bad), None, "{bad}");
        }
    }

    #[test]
    fn hex_wants_exactly_its_octets() {
        assert_eq!("0aFF".parse(), Ok(Hex([0x0a, 0xff])));
        assert_eq!(Hex([0x0a, 0xff]).to_string(), "0aff");
        for bad in ["", "0af", "0aff0", "0x0a", "+1+1", "éé"] {
            assert_eq!(bad.parse::<Hex<2>>(), Err(OctetsError::Hex(2)), "{bad}");
        }
    }

    #[test]
    fn no_secret_shows_in_debug_or_in_an_error() {
        assert_eq!(format!("{:?}", Secret([0xab; 4])), "…");
        assert_eq!(format!("{:?}", SecretText::from("465B5CE8")), "…");
        let error = serde_json::from_str::<Secret<4>>("\"465B5CE8B1\"").unwrap_err();
        assert!(!error.to_string().contains("465B"), "{error}");
    }
}
