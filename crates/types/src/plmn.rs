//! PLMN identity: MCC and MNC (TS 23.003 2.2, 12.1).

use crate::ParseError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

const EXPECTED: &str = "a PLMN: three digits of MCC, two or three of MNC, such as 999/70";

/// A public land mobile network: Mobile Country Code and Mobile Network Code.
///
/// In JSON it is the `PlmnId` of TS 29.571 5.4.4.3: `{"mcc":"999","mnc":"70"}`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "PlmnId", into = "PlmnId")]
pub struct Plmn {
    mcc: [u8; 3],
    mnc: [u8; 3],
    mnc_digits: u8,
}

/// `PlmnId` as in the OpenAPI files.
#[derive(Serialize, Deserialize)]
struct PlmnId {
    mcc: String,
    mnc: String,
}

impl TryFrom<PlmnId> for Plmn {
    type Error = ParseError;
    fn try_from(id: PlmnId) -> Result<Self, ParseError> {
        Self::new(&id.mcc, &id.mnc)
    }
}

impl From<Plmn> for PlmnId {
    fn from(plmn: Plmn) -> Self {
        Self { mcc: plmn.mcc(), mnc: plmn.mnc() }
    }
}

impl Plmn {
    /// From the digits of the two codes: three for the MCC, two or three for the MNC.
    pub fn new(mcc: &str, mnc: &str) -> Result<Self, ParseError> {
        let error = || ParseError::new(&format!("{mcc}/{mnc}"), EXPECTED);
        let mcc = digits(mcc).filter(|d| d.1 == 3).ok_or_else(error)?;
        let mnc = digits(mnc).filter(|d| d.1 >= 2).ok_or_else(error)?;
        Ok(Self { mcc: mcc.0, mnc: mnc.0, mnc_digits: mnc.1 })
    }

    /// Decodes the three octets of TS 24.008 10.5.1.3 (MCC2|MCC1, MNC3|MCC3, MNC2|MNC1).
    pub fn from_bcd(octets: [u8; 3]) -> Result<Self, ParseError> {
        let nibble = |octet: usize, high: bool| (octets[octet] >> if high { 4 } else { 0 }) & 0xf;
        let mcc = [nibble(0, false), nibble(0, true), nibble(1, false)];
        let third = nibble(1, true);
        let mnc = [nibble(2, false), nibble(2, true), if third == 0xf { 0 } else { third }];
        if mcc.iter().chain(&mnc).any(|&digit| digit > 9) {
            return Err(ParseError::new(&format!("{octets:02x?}"), EXPECTED));
        }
        Ok(Self { mcc, mnc, mnc_digits: if third == 0xf { 2 } else { 3 } })
    }

    /// Encodes the three octets of TS 24.008 10.5.1.3.
    pub fn to_bcd(self) -> [u8; 3] {
        let third = if self.mnc_digits == 2 { 0xf } else { self.mnc[2] };
        [self.mcc[1] << 4 | self.mcc[0], third << 4 | self.mcc[2], self.mnc[1] << 4 | self.mnc[0]]
    }

    /// The three digits of the Mobile Country Code.
    pub fn mcc(self) -> String {
        self.mcc.iter().map(|&digit| char::from(b'0' + digit)).collect()
    }

    /// The two or three digits of the Mobile Network Code.
    pub fn mnc(self) -> String {
        let digits = &self.mnc[..usize::from(self.mnc_digits)];
        digits.iter().map(|&digit| char::from(b'0' + digit)).collect()
    }

    /// The Serving Network Name, `5G:mnc070.mcc999.3gppnetwork.org` (TS 24.501 9.12.1).
    pub fn serving_network_name(self) -> String {
        format!("5G:mnc{:0>3}.mcc{}.3gppnetwork.org", self.mnc(), self.mcc())
    }
}

/// Two or three ASCII digits as numbers, and their count.
fn digits(text: &str) -> Option<([u8; 3], u8)> {
    let bytes = text.as_bytes();
    if !(2..=3).contains(&bytes.len()) || !bytes.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let mut out = [0; 3];
    for (slot, byte) in out.iter_mut().zip(bytes) {
        *slot = byte - b'0';
    }
    Some((out, bytes.len() as u8))
}

impl fmt::Display for Plmn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.mcc(), self.mnc())
    }
}

impl fmt::Debug for Plmn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Plmn {
    type Err = ParseError;
    /// Accepts `999/70`, `999-70`, or `99970` (the MCC is the first three digits).
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (mcc, mnc) = text
            .split_once(['/', '-'])
            .or_else(|| text.split_at_checked(3))
            .ok_or_else(|| ParseError::new(text, EXPECTED))?;
        Self::new(mcc, mnc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bcd_is_that_of_ts_24_008() {
        let two: Plmn = "999/70".parse().unwrap();
        assert_eq!(two.to_bcd(), [0x99, 0xf9, 0x07]);
        let three: Plmn = "310-410".parse().unwrap();
        assert_eq!(three.to_bcd(), [0x13, 0x00, 0x14]);
        assert_eq!(Plmn::from_bcd([0x13, 0x00, 0x14]), Ok(three));
        assert_eq!(Plmn::from_bcd([0x99, 0xf9, 0x07]), Ok(two));
        assert!(Plmn::from_bcd([0xa9, 0xf9, 0x07]).is_err());
    }

    #[test]
    fn an_mnc_of_two_digits_differs_from_one_with_a_leading_zero() {
        assert_ne!(Plmn::new("999", "70"), Plmn::new("999", "070"));
        assert_eq!(
            Plmn::new("999", "70").unwrap().serving_network_name(),
            "5G:mnc070.mcc999.3gppnetwork.org"
        );
    }

    #[test]
    fn json_is_plmn_id_of_ts_29_571() {
        let plmn: Plmn = "999/70".parse().unwrap();
        let json = serde_json::to_string(&plmn).unwrap();
        assert_eq!(json, r#"{"mcc":"999","mnc":"70"}"#);
        assert_eq!(serde_json::from_str::<Plmn>(&json).unwrap(), plmn);
        assert!(serde_json::from_str::<Plmn>(r#"{"mcc":"99","mnc":"70"}"#).is_err());
    }
}
