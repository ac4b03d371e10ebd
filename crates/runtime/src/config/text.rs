//! Settings with a text format: networks, durations, and types with their own text format.

use serde::Deserialize;
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;
use std::time::Duration;

/// Serializes a value through `FromStr` and `Display`, independent of its own serde format.
pub mod one {
    use super::*;

    /// Serializes the value as text.
    pub fn serialize<T: fmt::Display, S: serde::Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    /// Deserializes the value from text.
    pub fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: fmt::Display>,
        D: serde::Deserializer<'de>,
    {
        Text::deserialize(deserializer).map(|text| text.0)
    }
}

/// Reads and writes a list of values as text.
pub mod list {
    use super::*;

    /// Serializes the values as texts.
    pub fn serialize<T: fmt::Display, S: serde::Serializer>(
        values: &[T],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(T::to_string))
    }

    /// Deserializes the values from texts.
    pub fn deserialize<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
    where
        T: FromStr<Err: fmt::Display>,
        D: serde::Deserializer<'de>,
    {
        let texts = Vec::<Text<T>>::deserialize(deserializer)?;
        Ok(texts.into_iter().map(|text| text.0).collect())
    }
}

struct Text<T>(T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Text).map_err(serde::de::Error::custom)
    }
}

/// Implements serde through `Display` and `FromStr`, and declares the types as plain values.
macro_rules! text_value {
    ($($type:ty),+ $(,)?) => { $(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::config::text::one::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::config::text::one::deserialize(deserializer)
            }
        }

        $crate::config::section::plain!($type);
    )+ };
}
pub(crate) use text_value;

/// A duration: `54min`, `6s`, `500ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period(pub Duration);

text_value!(Period, Ipv4Net);

const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1)];

impl Period {
    /// A period of this many seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// A period of this many minutes.
    pub const fn minutes(minutes: u64) -> Self {
        Self::seconds(minutes * 60)
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis() as u64;
        let (unit, size) = UNITS
            .into_iter()
            .find(|(_, size)| millis >= *size && millis.is_multiple_of(*size))
            .unwrap_or(("s", 1000));
        write!(f, "{}{unit}", millis / size)
    }
}

impl FromStr for Period {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
            let (number, unit) = text.split_at_checked(unit_at)?;
            let (_, size) = UNITS.into_iter().find(|(name, _)| *name == unit.trim())?;
            number.parse::<u64>().ok()?.checked_mul(size)
        };
        parse().map(|millis| Self(Duration::from_millis(millis))).ok_or_else(|| {
            format!("'{text}' is not a duration: write a whole number and h, min, s or ms, such as 54min")
        })
    }
}

/// An IPv4 network, `10.45.0.0/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ipv4Net {
    address: Ipv4Addr,
    prefix: u8,
}

impl Ipv4Net {
    /// The network with this address and prefix length (at most 32); bits after the prefix are cleared.
    pub const fn new(address: Ipv4Addr, prefix: u8) -> Self {
        let prefix = if prefix > 32 { 32 } else { prefix };
        Self { address: Ipv4Addr::from_bits(address.to_bits() & mask(prefix)), prefix }
    }

    /// The first address, which identifies the network.
    pub const fn address(self) -> Ipv4Addr {
        self.address
    }

    /// The prefix length, 0 to 32.
    pub const fn prefix(self) -> u8 {
        self.prefix
    }

    /// Whether the network contains an address.
    pub const fn contains(self, address: Ipv4Addr) -> bool {
        address.to_bits() & mask(self.prefix) == self.address.to_bits()
    }

    /// Whether the networks have an address in common.
    pub const fn overlaps(self, other: Self) -> bool {
        self.contains(other.address) || other.contains(self.address)
    }

    /// The first host address, which is the default gateway.
    pub const fn first_host(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.address.to_bits() | 1)
    }
}

const fn mask(prefix: u8) -> u32 {
    match u32::MAX.checked_shl(32 - prefix as u32) {
        Some(mask) => mask,
        None => 0,
    }
}

impl fmt::Display for Ipv4Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl FromStr for Ipv4Net {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (address, prefix) = text
            .split_once('/')
            .and_then(|(address, prefix)| Some((address.parse().ok()?, prefix.parse().ok()?)))
            .filter(|(_, prefix)| *prefix <= 32)
            .ok_or_else(|| format!("'{text}' is not an IPv4 network such as 10.45.0.0/16"))?;
        let net = Self::new(address, prefix);
        if net.address == address {
            Ok(net)
        } else {
            Err(format!("'{text}' has bits set after its prefix: write {net}"))
        }
    }
}

/// Declares an enum whose values are words in the configuration file.
macro_rules! words {
    ($(#[doc = $about:literal])+ $name:ident, $what:literal {
        $($(#[doc = $doc:literal])+ $variant:ident = $word:literal,)+
    }) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self {
                    $(Self::$variant => $word,)+
                })
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => {
                        let known = [$($word),+].join(", ");
                        Err(format!(concat!("'{}' is not ", $what, ": choose one of {}"), text, known))
                    }
                }
            }
        }

        $crate::config::text::text_value!($name);
    };
}
pub(crate) use words;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_round_trip_in_their_largest_whole_unit() {
        for text in ["54min", "6s", "500ms", "2h", "0s", "90s"] {
            assert_eq!(text.parse::<Period>().unwrap().to_string(), text);
        }
        assert_eq!("6 s".parse(), Ok(Period::seconds(6)));
        for bad in ["6", "s", "1.5s", "-1s", "1d", "99999999999999999999h", ""] {
            assert!(bad.parse::<Period>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_network_contains_and_overlaps() {
        let net: Ipv4Net = "10.45.0.0/16".parse().unwrap();
        assert!(net.contains(Ipv4Addr::new(10, 45, 255, 255)));
        assert!(!net.contains(Ipv4Addr::new(10, 46, 0, 0)));
        assert!(net.overlaps("10.45.7.0/24".parse().unwrap()));
        assert!(net.overlaps("0.0.0.0/0".parse().unwrap()));
        assert!(!net.overlaps("10.46.0.0/16".parse().unwrap()));
        assert_eq!(net.first_host(), Ipv4Addr::new(10, 45, 0, 1));
    }

    #[test]
    fn a_network_with_host_bits_is_refused_with_the_right_one() {
        let error = "10.45.0.1/16".parse::<Ipv4Net>().unwrap_err();
        assert!(error.contains("write 10.45.0.0/16"), "{error}");
        for bad in ["10.45.0.0", "10.45.0.0/33", "x/8", "/"] {
            assert!(bad.parse::<Ipv4Net>().is_err(), "{bad}");
        }
    }
}
