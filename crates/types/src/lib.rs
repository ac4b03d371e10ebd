//! Identities (TS 23.003) and common data (TS 29.571) as newtypes that parse once.
//!
//! A value of one of these types is valid by construction: the digits of a [`Supi`] need not be checked
//! again. Wire crates convert to and from these types.

pub mod bitrate;
pub mod block;
pub mod five_qi;
pub mod guti;
pub mod owner_map;
pub mod plmn;
pub mod slice;
pub mod subscriber;
pub mod tai;
pub mod text;

pub use bitrate::{Ambr, BitRate};
pub use block::{AmfUeNgapId, BlockId, ContextId, InstanceId, RanUeNgapId, Seid, ShardId, Teid};
pub use guti::{AmfId, FiveGGuti, FiveGSTmsi, FiveGTmsi, Guami};
pub use owner_map::{BlockMove, BlockOwner, OwnerMap};
pub use plmn::Plmn;
pub use slice::{Dnn, Snssai};
pub use subscriber::{Pei, SchemeOutput, Suci, Supi, UeIdentity};
pub use tai::{NrCellIdentity, Tac, Tai};
pub use text::serialize_text;

/// The error of parsing an identity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not {expected}")]
pub struct ParseError {
    /// The input, cut to 64 characters.
    pub text: String,
    /// The expected format, with an example.
    pub expected: &'static str,
}

impl ParseError {
    pub(crate) fn new(text: &str, expected: &'static str) -> Self {
        Self { text: text.chars().take(64).collect(), expected }
    }
}

/// The name of a value in words: `InvalidPduSessionIdentity` becomes `invalid pdu session identity`.
pub fn words_of_name(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 8);
    for letter in name.chars() {
        match letter {
            '_' => words.push(' '),
            upper if upper.is_ascii_uppercase() => {
                if !words.is_empty() {
                    words.push(' ');
                }
                words.push(upper.to_ascii_lowercase());
            }
            other => words.push(other),
        }
    }
    words
}

/// Serialises a type through its `Display` and `FromStr`.
macro_rules! serde_as_text {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::serialize_text(self, serializer)
            }
        }
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use serde_as_text;

#[cfg(test)]
mod tests {
    #[test]
    fn the_name_of_a_value_becomes_words() {
        assert_eq!(super::words_of_name("IllegalUe"), "illegal ue");
        assert_eq!(super::words_of_name("normal_release"), "normal release");
    }
}
