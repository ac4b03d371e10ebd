//! Bit rates (TS 29.571 5.5.2 `BitRate`).

use crate::{ParseError, serde_as_text};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

const EXPECTED: &str = "a bit rate: a number and bps, Kbps, Mbps, Gbps or Tbps, such as '100 Mbps'";

const UNITS: [(&str, u64); 5] =
    [("Tbps", 1_000_000_000_000), ("Gbps", 1_000_000_000), ("Mbps", 1_000_000), ("Kbps", 1_000), ("bps", 1)];

/// A rate in bits per second; written as in JSON, `100 Mbps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BitRate(pub u64);

serde_as_text!(BitRate);

impl BitRate {
    /// A rate in megabits per second.
    pub const fn mbps(megabits: u64) -> Self {
        Self(megabits.saturating_mul(1_000_000))
    }

    /// A rate in kilobits per second.
    pub const fn kbps(kilobits: u64) -> Self {
        Self(kilobits.saturating_mul(1_000))
    }

    /// Bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, size) = UNITS
            .into_iter()
            .find(|(_, size)| self.0 >= *size && self.0.is_multiple_of(*size))
            .unwrap_or(("bps", 1));
        write!(f, "{} {unit}", self.0 / size)
    }
}

impl FromStr for BitRate {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = || ParseError::new(text, EXPECTED);
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(error)?;
        let (number, unit) = text.split_at(split);
        let (_, size) = UNITS.into_iter().find(|(name, _)| *name == unit.trim()).ok_or_else(error)?;
        let rate = number.parse::<f64>().map_err(|_| error())? * size as f64;
        Ok(Self(rate.round() as u64))
    }
}

/// Aggregate maximum bit rate (TS 29.571 5.5.4.1 `Ambr`): session AMBR or UE AMBR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ambr {
    /// The uplink rate.
    pub uplink: BitRate,
    /// The downlink rate.
    pub downlink: BitRate,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips_in_the_largest_whole_unit() {
        for (text, bps) in
            [("100 Mbps", 100_000_000), ("1500 Kbps", 1_500_000), ("0 bps", 0), ("3 Tbps", 3_000_000_000_000)]
        {
            assert_eq!(text.parse::<BitRate>().unwrap().bps(), bps);
            assert_eq!(BitRate(bps).to_string(), text);
        }
        assert_eq!("1.5 Gbps".parse(), Ok(BitRate::mbps(1500)));
        assert!("fast".parse::<BitRate>().is_err());
        assert!("10 mb".parse::<BitRate>().is_err());
    }
}
