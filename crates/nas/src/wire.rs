//! Decoding and encoding of IE values.

use crate::error::Malformed;

/// The value part of an information element, without identifier and length.
///
/// An IE of half an octet is a value of one octet whose high half is zero.
pub trait Ie: Sized {
    /// Decodes the value.
    fn decode(value: &[u8]) -> Result<Self, Malformed>;
    /// Appends the encoded value to `out`.
    fn encode(&self, out: &mut Vec<u8>);
}

/// A read position in the value of an IE; reads beyond its end are [`Malformed`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a>(pub &'a [u8]);

const SHORT: Malformed = Malformed("ends too early");

impl<'a> Cursor<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn u8(&mut self) -> Result<u8, Malformed> {
        let (&first, rest) = self.0.split_first().ok_or(SHORT)?;
        self.0 = rest;
        Ok(first)
    }

    pub fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (first, rest) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = rest;
        Ok(*first)
    }

    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (first, rest) = self.0.split_at_checked(length).ok_or(SHORT)?;
        self.0 = rest;
        Ok(first)
    }

    /// Returns the value if nothing follows it.
    pub fn end<T>(self, value: T) -> Result<T, Malformed> {
        if self.is_empty() { Ok(value) } else { Err(Malformed("longer than the maximum")) }
    }

    /// Takes a value that is preceded by one octet with its length.
    pub fn with_length_u8(&mut self) -> Result<Cursor<'a>, Malformed> {
        let length = self.u8()?;
        self.take(length.into()).map(Cursor)
    }

    /// Decodes items up to the end.
    pub fn all<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let mut items = Vec::new();
        while !self.is_empty() {
            items.push(item(self)?);
        }
        Ok(items)
    }
}

/// Encodes a length octet, then the octets that `body` appends, truncated to 255.
pub(crate) fn with_length_u8(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.push(0);
    body(out);
    out.truncate(at + 1 + usize::from(u8::MAX));
    let length = out.len() - at - 1;
    if let Some(octet) = out.get_mut(at) {
        *octet = length as u8;
    }
}

/// Encodes a length of two octets, then the octets that `body` appends, truncated to 65535.
pub(crate) fn with_length_u16(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend([0, 0]);
    body(out);
    out.truncate(at + 2 + usize::from(u16::MAX));
    let length = (out.len() - at - 2) as u16;
    if let Some(octets) = out.get_mut(at..at + 2) {
        octets.copy_from_slice(&length.to_be_bytes());
    }
}

/// Decimal digits of BCD octets, low half first; fillers `1111` are permitted at the end.
pub(crate) fn digits_of_bcd(octets: &[u8]) -> Result<String, Malformed> {
    let mut halves = octets.iter().flat_map(|octet| [octet & 0xf, octet >> 4]);
    let mut digits = String::with_capacity(octets.len() * 2);
    for half in halves.by_ref() {
        match half {
            0..=9 => digits.push(char::from(b'0' + half)),
            0xf => break,
            _ => return Err(Malformed("a BCD digit above 9")),
        }
    }
    if halves.all(|half| half == 0xf) { Ok(digits) } else { Err(Malformed("a BCD digit after the filler")) }
}

/// BCD octets of decimal digits, low half first, padded with `1111`.
pub(crate) fn bcd_of_digits(digits: &str, out: &mut Vec<u8>) {
    for pair in digits.as_bytes().chunks(2) {
        let half = |at: usize| pair.get(at).map_or(0xf, |digit| digit & 0xf);
        out.push(half(1) << 4 | half(0));
    }
}

impl Ie for u8 {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        Cursor(value).u8()
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }
}

impl Ie for u16 {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        Cursor(value).u16()
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.to_be_bytes());
    }
}

impl<const N: usize> Ie for [u8; N] {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        <[u8; N]>::try_from(value).map_err(|_| Malformed("invalid length"))
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self);
    }
}

/// An IE of another protocol, or one that is forwarded without decoding.
impl Ie for Vec<u8> {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        Ok(value.to_vec())
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self);
    }
}

/// An enumeration of an octet, or a part of one, that preserves undefined values.
macro_rules! coded {
    ($(#[$meta:meta])* $name:ident $(& $bits:literal)? {
        $( $(#[$vmeta:meta])* $variant:ident = $code:literal ),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(from = "u8", into = "u8")]
        pub enum $name {
            $( $(#[$vmeta])* $variant, )*
            /// A value that this release does not define.
            Other(u8),
        }

        impl $name {
            /// The value of that code.
            pub const fn from_code(code: u8) -> Self {
                match code $(& $bits)? {
                    $( $code => Self::$variant, )*
                    other => Self::Other(other),
                }
            }

            /// The code on the wire.
            pub const fn code(self) -> u8 {
                match self {
                    $( Self::$variant => $code, )*
                    Self::Other(code) => code,
                }
            }
        }

        impl From<u8> for $name {
            fn from(code: u8) -> Self {
                Self::from_code(code)
            }
        }

        impl From<$name> for u8 {
            fn from(value: $name) -> Self {
                value.code()
            }
        }

        impl $crate::wire::Ie for $name {
            fn decode(value: &[u8]) -> Result<Self, $crate::error::Malformed> {
                $crate::wire::Cursor(value).u8().map(Self::from_code)
            }
            fn encode(&self, out: &mut Vec<u8>) {
                out.push(self.code());
            }
        }
    };
}
pub(crate) use coded;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bcd_digits_round_trip_with_and_without_filler() {
        for digits in ["", "1", "12", "00012"] {
            let mut octets = Vec::new();
            bcd_of_digits(digits, &mut octets);
            assert_eq!(digits_of_bcd(&octets).as_deref(), Ok(digits));
        }
        assert!(digits_of_bcd(&[0x1a]).is_err());
        assert!(digits_of_bcd(&[0xf1, 0x22]).is_err());
    }

    #[test]
    fn a_part_that_is_too_long_is_truncated() {
        let mut out = Vec::new();
        with_length_u8(&mut out, |out| out.extend([7; 300]));
        assert_eq!((out.len(), out[0]), (256, 255));
    }
}
