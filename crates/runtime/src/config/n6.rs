//! N6 settings whose value in the file is a line of words.

use super::text::text_value;
use pith_datapath::{Net, parse_network};
use pith_upf::contract::{AddressRange, FlowDescription, SdfFilter};
use std::fmt;
use std::str::FromStr;

/// Declares a setting with the text format of its datapath type.
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
    /// A firewall rule of a data network.
    FirewallRule,
    /// A route to another network.
    StaticRoute,
    /// A destination that UEs may reach although it is closed by default.
    Permit,
}

/// An address or a network, IPv4 or IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpNet(pub AddressRange);

impl fmt::Display for IpNet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Net(self.0).fmt(f)
    }
}

impl FromStr for IpNet {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let network = parse_network(text);
        network
            .map(Self)
            .ok_or_else(|| format!("'{text}' is not a network such as 192.0.2.0/24, or an address"))
    }
}

text_value!(IpNet);

/// The packets that a predefined rule matches: a flow description (TS 29.212 5.4.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketFilter {
    text: String,
    /// The parsed filters.
    pub filters: Vec<SdfFilter>,
}

impl fmt::Display for PacketFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for PacketFilter {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let described: FlowDescription = text.parse().map_err(|error| {
            format!("{error}; write, for example, 'permit out 17 from 192.0.2.0/24 5000-5010 to assigned'")
        })?;
        Ok(Self { text: text.into(), filters: described.filters })
    }
}

text_value!(PacketFilter);
