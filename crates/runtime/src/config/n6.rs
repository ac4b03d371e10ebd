//! What the UPF does with a data network's packets on N6: values that the file writes as a line of words.

use super::text::text_value;
use std::fmt;
use std::str::FromStr;

/// Declares a value that the datapath reads and writes as text.
macro_rules! line_of_words {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => { $(
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name(pub pith_datapath::$name);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                text.parse().map(Self)
            }
        }

        text_value!($name);
    )+ };
}

line_of_words! {
    /// A rule of a network's firewall.
    FirewallRule,
    /// A way to another network.
    StaticRoute,
}
