//! Stored messages: the hexadecimal digits of their octets (TS 24.501 8.1), so that states which
//! contain messages need no second encoding of every IE.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serializer};

/// Serialises octets as hexadecimal digits.
pub(crate) fn serialize<S: Serializer>(octets: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&hex::encode(octets))
}

/// Deserialises hexadecimal digits and decodes the octets.
pub(crate) fn deserialize<'de, D: Deserializer<'de>, T, E: std::fmt::Display>(
    deserializer: D,
    decode: impl FnOnce(&[u8]) -> Result<T, E>,
) -> Result<T, D::Error> {
    let digits = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
    let octets = octets(&digits).ok_or_else(|| D::Error::custom("not hexadecimal octets"))?;
    decode(&octets).map_err(D::Error::custom)
}

fn octets(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let pair = |pair: &[u8]| match *pair {
        [high, low] => Some((nibble(high)? << 4) | nibble(low)?),
        _ => None,
    };
    pairs.map(pair).collect()
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// Implements `Serialize` and `Deserialize` of a type by its octets.
macro_rules! stored {
    ($name:ty, |$message:ident| $encode:expr, $decode:expr) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $message = self;
                $crate::stored::serialize(&$encode, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::stored::deserialize(deserializer, $decode)
            }
        }
    };
}
pub(crate) use stored;
