//! Configuration sections, each declared once with type, default and documentation.
//!
//! One declaration yields the struct, its `Default`, its deserializer, and the text of `pith config default`,
//! so that they cannot diverge.

/// One setting of a section.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Key in the file.
    pub name: &'static str,
    /// Documentation, line by line.
    pub doc: &'static [&'static str],
    /// Nested settings of a section or a list of sections.
    pub inner: &'static [Setting],
}

/// A type of the configuration: a section, or a plain value without nested settings.
pub trait Described {
    /// The settings of a section in order; none for a plain value.
    const SETTINGS: &'static [Setting] = &[];
}

impl<T: Described> Described for Vec<T> {
    const SETTINGS: &'static [Setting] = T::SETTINGS;
}

impl<T: Described> Described for Option<T> {
    const SETTINGS: &'static [Setting] = T::SETTINGS;
}

impl<K, V> Described for std::collections::BTreeMap<K, V> {}

/// Declares types as plain values.
macro_rules! plain {
    ($($type:ty),+ $(,)?) => { $(impl $crate::config::Described for $type {})+ };
}

/// Declares a section. Every setting has a default.
macro_rules! section {
    ($(#[doc = $about:literal])+ $name:ident {
        $($(#[doc = $doc:literal])+ $(#[serde($($serde:tt)+)])?
        $field:ident: $type:ty = $default:expr,)+
    }) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $($(#[doc = $doc])+ $(#[serde($($serde)+)])? pub $field: $type,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        $crate::config::section::described!($name { $($(#[doc = $doc])+ $field: $type,)+ });
    };
}

/// Declares the entries of a list. A setting is required unless it has `#[serde(default)]` or is an `Option`.
macro_rules! item {
    ($(#[doc = $about:literal])+ $name:ident {
        $($(#[doc = $doc:literal])+ $(#[serde($($serde:tt)+)])? $field:ident: $type:ty,)+
    }) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[doc = $doc])+ $(#[serde($($serde)+)])? pub $field: $type,)+
        }

        $crate::config::section::described!($name { $($(#[doc = $doc])+ $field: $type,)+ });
    };
}

macro_rules! described {
    ($name:ident { $($(#[doc = $doc:literal])+ $field:ident: $type:ty,)+ }) => {
        impl $crate::config::Described for $name {
            const SETTINGS: &'static [$crate::config::Setting] = &[
                $($crate::config::Setting {
                    name: stringify!($field),
                    doc: &[$($doc),+],
                    inner: <$type as $crate::config::Described>::SETTINGS,
                },)+
            ];
        }
    };
}

pub(crate) use {described, item, plain, section};

plain!(
    bool,
    u8,
    u16,
    u32,
    usize,
    String,
    std::path::PathBuf,
    std::net::IpAddr,
    std::net::Ipv4Addr,
    std::net::SocketAddr,
    pith_sbi::NfInstanceId,
    pith_types::Ambr,
    pith_types::Dnn,
    pith_types::Plmn,
    pith_types::Snssai,
    pith_types::Tac,
);
