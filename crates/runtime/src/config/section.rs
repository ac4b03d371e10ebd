//! Sections of the configuration, declared once: type, default and documentation together.
//!
//! From one declaration come the struct, its `Default`, its reading from YAML, and the words
//! that `pith config default` prints, so none of them can drift from the others.

/// One setting of a section.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its key in the file.
    pub name: &'static str,
    /// What it means, line by line.
    pub doc: &'static [&'static str],
    /// The settings within it, if it is a section or a list of sections.
    pub inner: &'static [Setting],
}

/// What the configuration is made of: sections, and plain values that have no settings within.
pub trait Described {
    /// The settings of a section, in their order; none for a plain value.
    const SETTINGS: &'static [Setting] = &[];
}

impl<T: Described> Described for Vec<T> {
    const SETTINGS: &'static [Setting] = T::SETTINGS;
}

impl<T: Described> Described for Option<T> {
    const SETTINGS: &'static [Setting] = T::SETTINGS;
}

impl<K, V> Described for std::collections::BTreeMap<K, V> {}

/// Says of types that they are plain values.
macro_rules! plain {
    ($($type:ty),+ $(,)?) => { $(impl $crate::config::Described for $type {})+ };
}

/// Declares a section of which every setting has a default.
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

/// Declares what a list holds: its settings are required unless they say `#[serde(default)]` or
/// are an `Option`.
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
    pith_types::Ambr,
    pith_types::Dnn,
    pith_types::Plmn,
    pith_types::Snssai,
    pith_types::Tac,
);
