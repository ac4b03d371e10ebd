//! Macros for the two kinds of types in the OpenAPI files: `record!` for JSON objects, `open_enum!` for
//! strings that may have values of later releases.

/// Defines JSON objects with members in camelCase; unknown members are ignored.
///
/// `required` members must be present and are the arguments of `new`, in order; `optional` members are
/// `Option`s; `repeated` members are collections that are omitted if empty; `rest` keeps unknown members.
macro_rules! record {
    ($(#[$meta:meta])* $name:ident {
        required { $($(#[$rm:meta])* $r:ident: $rt:ty,)+ }
        $(optional { $($(#[$om:meta])* $o:ident: $ot:ty,)+ })?
        $(repeated { $($(#[$lm:meta])* $l:ident: $lt:ty,)+ })?
        $(rest { $(#[$xm:meta])* $x:ident, })?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $($(#[$rm])* pub $r: $rt,)+
            $($($(#[$om])* #[serde(skip_serializing_if = "Option::is_none")] pub $o: Option<$ot>,)+)?
            $($($(#[$lm])*
                #[serde(default, skip_serializing_if = "crate::record::Collection::is_empty")]
                pub $l: $lt,)+)?
            $($(#[$xm])* #[serde(flatten)] pub $x: serde_json::Map<String, serde_json::Value>,)?
        }

        impl $name {
            #[doc = "With its required members, and no other."]
            #[allow(clippy::too_many_arguments)]
            pub fn new($($r: impl Into<$rt>),+) -> Self {
                Self {
                    $($r: $r.into(),)+
                    $($($o: None,)+)?
                    $($($l: Default::default(),)+)?
                    $($x: Default::default(),)?
                }
            }
        }
    };
    ($(#[$meta:meta])* $name:ident {
        $(optional { $($(#[$om:meta])* $o:ident: $ot:ty,)+ })?
        $(repeated { $($(#[$lm:meta])* $l:ident: $lt:ty,)+ })?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $($($(#[$om])* #[serde(skip_serializing_if = "Option::is_none")] pub $o: Option<$ot>,)+)?
            $($($(#[$lm])*
                #[serde(default, skip_serializing_if = "crate::record::Collection::is_empty")]
                pub $l: $lt,)+)?
        }
    };
}
pub(crate) use record;

/// Defines extensible enumerations of strings: an unknown value is kept in `Other`.
macro_rules! open_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$vm:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $(#[doc = concat!("`", $text, "`")] $(#[$vm])* $variant,)+
            /// A value of another release or vendor.
            Other(std::sync::Arc<str>),
        }

        impl $name {
            /// The known values of Release 17.
            pub const KNOWN: &'static [Self] = &[$(Self::$variant),+];

            /// The value in JSON.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Other(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)+
                    other => Self::Other(other.into()),
                }
            }
        }

        crate::record::text_of_enum!($name);
    };
}
pub(crate) use open_enum;

/// Reads a required member that may be null: without this, one that is missing would count as null.
pub(crate) fn nullable<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::Deserialize<'de>,
{
    serde::Deserialize::deserialize(deserializer)
}

/// Reads an optional member that is not nullable: in a JSON Merge Patch, null would remove it (RFC 7396).
pub(crate) fn not_null<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Reads an array with at least one element (`minItems: 1`), where an empty one would count as absent.
pub(crate) fn not_empty<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::Deserialize<'de>,
{
    let elements: Vec<T> = serde::Deserialize::deserialize(deserializer)?;
    if elements.is_empty() {
        return Err(serde::de::Error::invalid_length(0, &"at least one element"));
    }
    Ok(elements)
}

/// Implements `Display`, `FromStr` and serde for a type with `as_str` and `From<&str>`.
macro_rules! text_of_enum {
    ($name:ident) => {
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::convert::Infallible;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Ok(Self::from(text))
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                crate::record::text(deserializer).map(|text| Self::from(text.as_ref()))
            }
        }
    };
}
pub(crate) use text_of_enum;

/// Implements serde through `Display` and `FromStr`.
macro_rules! serde_as_text {
    ($name:ty) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                pith_types::serialize_text(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = crate::record::text(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use serde_as_text;

/// Reads a string from any deserializer, borrowed if possible.
pub(crate) fn text<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<std::borrow::Cow<'de, str>, D::Error> {
    struct Text;
    impl<'de> serde::de::Visitor<'de> for Text {
        type Value = std::borrow::Cow<'de, str>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a string")
        }
        fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
            Ok(text.into())
        }
        fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
            Ok(text.to_owned().into())
        }
        fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
            Ok(text.into())
        }
    }
    deserializer.deserialize_str(Text)
}

/// A type of `repeated` members.
pub(crate) trait Collection {
    fn is_empty(&self) -> bool;
}

impl<T> Collection for Vec<T> {
    fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }
}

impl<K, V> Collection for std::collections::BTreeMap<K, V> {
    fn is_empty(&self) -> bool {
        std::collections::BTreeMap::is_empty(self)
    }
}
