//! Tracking areas and cells (TS 23.003 28.6, 19.4.2.3, 19.6A).

use crate::{ParseError, Plmn, serde_as_text};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Tracking Area Code, 24 bits; six hexadecimal digits in JSON (TS 29.571 5.4.2 `Tac`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tac(u32);

serde_as_text!(Tac);

impl Tac {
    /// A code of at most 24 bits; higher bits are dropped.
    pub const fn new(code: u32) -> Self {
        Self(code & 0x00ff_ffff)
    }

    /// The code as a number.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The three octets of the code, most significant first.
    pub const fn octets(self) -> [u8; 3] {
        let [_, a, b, c] = self.0.to_be_bytes();
        [a, b, c]
    }
}

impl From<[u8; 3]> for Tac {
    fn from([a, b, c]: [u8; 3]) -> Self {
        Self(u32::from_be_bytes([0, a, b, c]))
    }
}

impl fmt::Display for Tac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06x}", self.0)
    }
}

impl FromStr for Tac {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let code = u32::from_str_radix(text, 16).ok();
        code.filter(|_| matches!(text.len(), 4 | 6))
            .map(Self)
            .ok_or_else(|| ParseError::new(text, "a TAC of four or six hexadecimal digits, such as 000001"))
    }
}

/// Tracking Area Identity (TS 29.571 5.4.4.4 `Tai`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tai {
    /// The PLMN.
    pub plmn_id: Plmn,
    /// The tracking area in that PLMN.
    pub tac: Tac,
}

/// NR Cell Identity, 36 bits; nine hexadecimal digits in JSON (TS 29.571 5.4.2 `NrCellId`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NrCellIdentity(u64);

serde_as_text!(NrCellIdentity);

impl NrCellIdentity {
    /// An identity of at most 36 bits; higher bits are dropped.
    pub const fn new(id: u64) -> Self {
        Self(id & 0xf_ffff_ffff)
    }

    /// The identity as a number.
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl fmt::Display for NrCellIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:09x}", self.0)
    }
}

impl FromStr for NrCellIdentity {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let id = u64::from_str_radix(text, 16).ok();
        id.filter(|_| text.len() == 9)
            .map(Self)
            .ok_or_else(|| ParseError::new(text, "an NR Cell Identity of nine hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tai_in_json_is_that_of_ts_29_571() {
        let tai = Tai { plmn_id: "999/70".parse().unwrap(), tac: Tac::new(1) };
        let json = serde_json::to_string(&tai).unwrap();
        assert_eq!(json, r#"{"plmnId":{"mcc":"999","mnc":"70"},"tac":"000001"}"#);
        assert_eq!(serde_json::from_str::<Tai>(&json).unwrap(), tai);
        assert!("1".parse::<Tac>().is_err());
        assert_eq!(NrCellIdentity::new(16).to_string(), "000000010");
    }
}
