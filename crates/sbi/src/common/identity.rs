//! Identities: NF instances, networks, and UEs in the formats of paths.

use crate::record::serde_as_text;
use pith_types::{FiveGGuti, ParseError, Pei, Plmn, Suci, Supi, UeIdentity};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A text is not an identity of the requested kind. The error does not contain the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not {0}")]
pub struct IdentityError(&'static str);

/// `nfInstanceId`: a UUID (TS 29.571, RFC 9562).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NfInstanceId(pub u128);

serde_as_text!(NfInstanceId);

impl NfInstanceId {
    /// A version 4 UUID from 128 random bits.
    pub const fn from_random(bits: u128) -> Self {
        const VERSION: u128 = 0xf << 76;
        const VARIANT: u128 = 0x3 << 62;
        Self(bits & !(VERSION | VARIANT) | 0x4 << 76 | 0x2 << 62)
    }
}

impl fmt::Display for NfInstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 32];
        hex::encode_to_slice(self.0.to_be_bytes(), &mut digits).map_err(|_| fmt::Error)?;
        let mut text = [b'-'; 36];
        for (from, to) in [(0..8, 0..8), (8..12, 9..13), (12..16, 14..18), (16..20, 19..23), (20..32, 24..36)]
        {
            text[to].copy_from_slice(&digits[from]);
        }
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for NfInstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for NfInstanceId {
    type Err = IdentityError;
    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let error = IdentityError("a UUID such as 4ad8a1f0-5b0e-4b5c-9d1e-0123456789ab");
        let mut lengths = [8, 4, 4, 4, 12].into_iter();
        let mut bits = 0;
        for part in text.split('-') {
            let digits = part.bytes().all(|b| b.is_ascii_hexdigit());
            if !digits || lengths.next() != Some(part.len()) {
                return Err(error);
            }
            let value = u128::from_str_radix(part, 16).map_err(|_| error)?;
            bits = bits << (4 * part.len()) | value;
        }
        if lengths.next().is_some() { Err(error) } else { Ok(Self(bits)) }
    }
}

/// Optional features supported by both sides (TS 29.571, TS 29.500 6.6.2): bit 0 is feature 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SupportedFeatures(pub u128);

serde_as_text!(SupportedFeatures);

impl SupportedFeatures {
    /// Whether feature number `n`, 1 to 128, is supported.
    pub const fn has(self, n: u32) -> bool {
        n >= 1 && n <= 128 && self.0 >> (n - 1) & 1 == 1
    }
}

impl fmt::Display for SupportedFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

impl FromStr for SupportedFeatures {
    type Err = IdentityError;
    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let digits = text.trim_start_matches('0');
        if digits.is_empty() {
            return Ok(Self(0));
        }
        let valid = digits.bytes().all(|b| b.is_ascii_hexdigit());
        let bits = u128::from_str_radix(digits, 16).ok().filter(|_| valid);
        bits.map(Self).ok_or(IdentityError("features in hexadecimal digits"))
    }
}

/// A network, with the NID of a stand-alone non-public network (TS 29.571).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "PlmnIdNidText", into = "PlmnIdNidText")]
pub struct PlmnIdNid {
    /// The PLMN.
    pub plmn_id: Plmn,
    /// Network identifier, 11 hexadecimal digits.
    pub nid: Option<Arc<str>>,
}

#[derive(Serialize, Deserialize)]
struct PlmnIdNidText {
    mcc: String,
    mnc: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    nid: Option<Arc<str>>,
}

impl TryFrom<PlmnIdNidText> for PlmnIdNid {
    type Error = ParseError;
    fn try_from(text: PlmnIdNidText) -> Result<Self, ParseError> {
        Ok(Self { plmn_id: Plmn::new(&text.mcc, &text.mnc)?, nid: text.nid })
    }
}

impl From<PlmnIdNid> for PlmnIdNidText {
    fn from(PlmnIdNid { plmn_id, nid }: PlmnIdNid) -> Self {
        Self { mcc: plmn_id.mcc(), mnc: plmn_id.mnc(), nid }
    }
}

impl From<Plmn> for PlmnIdNid {
    fn from(plmn_id: Plmn) -> Self {
        Self { plmn_id, nid: None }
    }
}

/// A network in a path of Nudr_DataRepository: `99970` (TS 29.505 `VarPlmnId`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ServingPlmnId(pub Plmn);

impl fmt::Display for ServingPlmnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.0.mcc(), self.0.mnc())
    }
}

impl FromStr for ServingPlmnId {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (plmn, _nid) = text.split_once('-').unwrap_or((text, ""));
        plmn.parse().map(Self)
    }
}

/// A UE's identity as received: a SUCI, or a known SUPI (TS 29.571).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SupiOrSuci {
    /// A SUPI.
    Supi(Supi),
    /// A SUCI as sent by the UE.
    Suci(Suci),
}

serde_as_text!(SupiOrSuci);

impl SupiOrSuci {
    /// The SUPI, also of a SUCI of the null scheme.
    pub fn supi(&self) -> Option<Supi> {
        match self {
            Self::Supi(supi) => Some(supi.clone()),
            Self::Suci(suci) => suci.null_scheme_supi(),
        }
    }
}

impl fmt::Display for SupiOrSuci {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Supi(supi) => supi.fmt(f),
            Self::Suci(suci) => suci.fmt(f),
        }
    }
}

impl FromStr for SupiOrSuci {
    type Err = IdentityError;
    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let parsed = if text.starts_with("suci-") {
            text.parse().map(Self::Suci)
        } else {
            text.parse().map(Self::Supi)
        };
        parsed.map_err(|_| IdentityError("a SUPI or a SUCI of the type IMSI"))
    }
}

impl From<Supi> for SupiOrSuci {
    fn from(supi: Supi) -> Self {
        Self::Supi(supi)
    }
}

impl From<Suci> for SupiOrSuci {
    fn from(suci: Suci) -> Self {
        Self::Suci(suci)
    }
}

/// A UE context of an AMF in a path (TS 29.518 6.1.3.2.2 `ueContextId`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum UeContextId {
    /// The SUPI.
    Supi(Supi),
    /// The 5G-GUTI.
    FiveGGuti(FiveGGuti),
    /// The PEI, for emergency services.
    Pei(Pei),
}

impl fmt::Display for UeContextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Supi(supi) => supi.fmt(f),
            Self::FiveGGuti(guti) => guti.fmt(f),
            Self::Pei(pei) => pei.fmt(f),
        }
    }
}

impl FromStr for UeContextId {
    type Err = IdentityError;
    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let parsed = match text.split('-').next() {
            Some("5g") => text.parse().map(Self::FiveGGuti),
            Some("imei" | "imeisv") => text.parse().map(Self::Pei),
            _ => text.parse().map(Self::Supi),
        };
        parsed.map_err(|_| IdentityError("a SUPI, 5G-GUTI or PEI"))
    }
}

impl From<Supi> for UeContextId {
    fn from(supi: Supi) -> Self {
        Self::Supi(supi)
    }
}

impl From<UeIdentity> for UeContextId {
    fn from(ue: UeIdentity) -> Self {
        match ue {
            UeIdentity::Supi(supi) => Self::Supi(supi),
            UeIdentity::Pei(pei) => Self::Pei(pei),
        }
    }
}

impl From<FiveGGuti> for UeContextId {
    fn from(guti: FiveGGuti) -> Self {
        Self::FiveGGuti(guti)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_id_is_a_uuid() {
        let text = "4ad8a1f0-5b0e-4b5c-9d1e-0123456789ab";
        assert_eq!(text.parse::<NfInstanceId>().unwrap().to_string(), text);
        let made = NfInstanceId::from_random(u128::MAX).to_string();
        assert_eq!(made, "ffffffff-ffff-4fff-bfff-ffffffffffff");
        for bad in ["", "4ad8a1f0-5b0e-4b5c-9d1e", "4ad8a1f0-5b0e-4b5c-9d1e-0123456789ab-0"] {
            assert!(bad.parse::<NfInstanceId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn features_are_bits_from_the_last_digit() {
        let features: SupportedFeatures = "0005".parse().unwrap();
        assert!(features.has(1) && !features.has(2) && features.has(3) && !features.has(0));
        assert_eq!("".parse(), Ok(SupportedFeatures(0)));
        assert!("g".parse::<SupportedFeatures>().is_err());
        assert!("+5".parse::<SupportedFeatures>().is_err());
    }

    #[test]
    fn a_ue_context_is_named_in_three_ways() {
        for text in ["imsi-999700000000001", "5g-guti-99970020040abcdef01", "imei-123456789012345"] {
            assert_eq!(text.parse::<UeContextId>().unwrap().to_string(), text);
        }
        assert!("5g-guti-1".parse::<UeContextId>().is_err());
    }

    #[test]
    fn a_network_has_a_nid_or_not() {
        let json = r#"{"mcc":"999","mnc":"70","nid":"000007ed9d5"}"#;
        let network: PlmnIdNid = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&network).unwrap(), json);
        let plmn: ServingPlmnId = "99970-000007ed9d5".parse().unwrap();
        assert_eq!(plmn.to_string(), "99970");
    }
}
