//! Slices and data networks (TS 23.003 9A, 28.4).

use crate::{ParseError, Plmn, serde_as_text};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

const EXPECTED: &str =
    "an S-NSSAI: an SST, and six hexadecimal digits of SD if it has one, such as 1 or 1-010203";

/// A slice: Slice/Service Type and optional Slice Differentiator (24 bits).
///
/// In JSON it is the `Snssai` of TS 29.571 5.4.4.2; as text `1` or `1-010203`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Snssai {
    /// Slice/Service Type: 1 eMBB, 2 URLLC, 3 MIoT, 4 V2X, 5 HMTC; from 128 on operator-specific.
    pub sst: u8,
    /// Slice Differentiator; `None` if absent or 0xFFFFFF.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "sd_text")]
    pub sd: Option<[u8; 3]>,
}

impl Snssai {
    /// A slice without differentiator.
    pub const fn of_sst(sst: u8) -> Self {
        Self { sst, sd: None }
    }
}

mod sd_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(sd: &Option<[u8; 3]>, serializer: S) -> Result<S::Ok, S::Error> {
        let [a, b, c] = sd.unwrap_or([0xff; 3]);
        crate::serialize_text(&format_args!("{a:02x}{b:02x}{c:02x}"), serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<[u8; 3]>, D::Error> {
        let text = String::deserialize(deserializer)?;
        super::parse_sd(&text).ok_or_else(|| D::Error::custom("sd is not six hexadecimal digits"))
    }
}

/// Six hexadecimal digits; `ffffff` means that there is no SD (TS 23.003 28.4.2).
fn parse_sd(text: &str) -> Option<Option<[u8; 3]>> {
    let value = u32::from_str_radix(text, 16).ok().filter(|_| text.len() == 6)?;
    let [_, a, b, c] = value.to_be_bytes();
    Some((value != 0xff_ffff).then_some([a, b, c]))
}

impl fmt::Display for Snssai {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sd {
            None => write!(f, "{}", self.sst),
            Some([a, b, c]) => write!(f, "{}-{a:02x}{b:02x}{c:02x}", self.sst),
        }
    }
}

impl FromStr for Snssai {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = || ParseError::new(text, EXPECTED);
        let (sst, sd) = match text.split_once('-') {
            None => (text, None),
            Some((sst, sd)) => (sst, parse_sd(sd).ok_or_else(error)?),
        };
        Ok(Self { sst: sst.parse().map_err(|_| error())?, sd })
    }
}

/// Data Network Name: labels of letters, digits and hyphens, 1 to 100 octets, compared without
/// case (TS 23.003 9A, 9.1).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dnn(Arc<str>);

serde_as_text!(Dnn);

impl Dnn {
    /// The name, in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The network identifier of a DNN with the operator identifier of that network: `internet` of `internet.mnc070.mcc999.gprs`. `None` for a
    /// DNN without operator identifier, or with that of another network (TS 23.003 9A, 9.1.2).
    pub fn network_identifier_in(&self, network: Plmn) -> Option<Self> {
        let operator = format!(".mnc{:0>3}.mcc{}.gprs", network.mnc(), network.mcc());
        self.0.strip_suffix(operator.as_str()).map(|name| Self(name.into()))
    }
}

impl fmt::Display for Dnn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Dnn {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        };
        if text.len() > 99 || !text.split('.').all(label) {
            return Err(ParseError::new(
                text,
                "a DNN: letters, digits and hyphens, labels parted by dots, such as internet",
            ));
        }
        Ok(Self(text.to_ascii_lowercase().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snssai_text_and_json() {
        let plain: Snssai = "1".parse().unwrap();
        assert_eq!(serde_json::to_string(&plain).unwrap(), r#"{"sst":1}"#);
        let with_sd: Snssai = "1-0A0b03".parse().unwrap();
        assert_eq!(serde_json::to_string(&with_sd).unwrap(), r#"{"sst":1,"sd":"0a0b03"}"#);
        assert_eq!(serde_json::from_str::<Snssai>(r#"{"sst":1,"sd":"ffffff"}"#).unwrap(), plain);
        assert!("1-xyz".parse::<Snssai>().is_err());
        assert!("256".parse::<Snssai>().is_err());
    }

    #[test]
    fn a_dnn_may_have_an_operator_identifier() {
        let dnn = |text: &str| text.parse::<Dnn>().unwrap();
        let [home, other] = ["999/70", "001/01"].map(|plmn| plmn.parse::<Plmn>().unwrap());
        let full = dnn("Internet.MNC070.MCC999.GPRS");
        assert_eq!(full.network_identifier_in(home), Some(dnn("internet")));
        assert_eq!(full.network_identifier_in(other), None);
        assert_eq!(dnn("a.b.mnc001.mcc001.gprs").network_identifier_in(other), Some(dnn("a.b")));
        for without in ["internet", "mnc070.mcc999.gprs", "internet.mnc70.mcc999.gprs", "x.mnc070.mcc999"] {
            assert_eq!(dnn(without).network_identifier_in(home), None, "{without}");
        }
    }

    #[test]
    fn dnn_is_checked_and_compared_without_case() {
        assert_eq!("Internet".parse::<Dnn>(), "internet".parse::<Dnn>());
        for bad in ["", "a..b", "a b", ".a"] {
            assert!(bad.parse::<Dnn>().is_err(), "{bad}");
        }
    }
}
