//! Temporary identities assigned by an AMF (TS 23.003 2.10, 2.11).

use crate::{ParseError, Plmn, serde_as_text};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// AMF Identifier: AMF Region ID (8 bits), AMF Set ID (10), AMF Pointer (6); TS 23.003 2.10.1.
///
/// In JSON six hexadecimal digits (TS 29.571 5.3.2 `AmfId`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AmfId {
    /// AMF Region ID.
    pub region: u8,
    /// AMF Set ID, 10 bits.
    pub set: u16,
    /// AMF Pointer, 6 bits.
    pub pointer: u8,
}

serde_as_text!(AmfId);

impl AmfId {
    /// From the 24 bits: region, set, pointer.
    pub const fn from_bits(bits: u32) -> Self {
        Self { region: (bits >> 16) as u8, set: (bits >> 6) as u16 & 0x3ff, pointer: bits as u8 & 0x3f }
    }

    /// The 24 bits: region, set, pointer.
    pub const fn to_bits(self) -> u32 {
        (self.region as u32) << 16 | (self.set as u32 & 0x3ff) << 6 | self.pointer as u32 & 0x3f
    }
}

impl fmt::Display for AmfId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06x}", self.to_bits())
    }
}

impl FromStr for AmfId {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bits = u32::from_str_radix(text, 16).ok();
        bits.filter(|_| text.len() == 6).map(Self::from_bits).ok_or_else(|| {
            ParseError::new(text, "an AMF Identifier of six hexadecimal digits, such as 020040")
        })
    }
}

/// Globally Unique AMF Identifier (TS 29.571 5.4.4.15 `Guami`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Guami {
    /// The PLMN.
    pub plmn_id: Plmn,
    /// The AMF in that PLMN.
    pub amf_id: AmfId,
}

/// 5G Temporary Mobile Subscription Identifier: unique within one AMF.
///
/// Its high bits contain the block (see [`crate::block`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FiveGTmsi(pub u32);

/// 5G-S-TMSI: the part of the 5G-GUTI that a UE sends over the radio (TS 23.003 2.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FiveGSTmsi {
    /// AMF Set ID, 10 bits.
    pub amf_set: u16,
    /// AMF Pointer, 6 bits.
    pub amf_pointer: u8,
    /// The identifier within that AMF.
    pub tmsi: FiveGTmsi,
}

/// 5G Globally Unique Temporary Identifier (TS 23.003 2.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FiveGGuti {
    /// The AMF that assigned it.
    pub guami: Guami,
    /// The UE within that AMF.
    pub tmsi: FiveGTmsi,
}

impl FiveGGuti {
    /// The shortened form of the same identity.
    pub fn s_tmsi(&self) -> FiveGSTmsi {
        FiveGSTmsi { amf_set: self.guami.amf_id.set, amf_pointer: self.guami.amf_id.pointer, tmsi: self.tmsi }
    }
}

impl fmt::Display for FiveGGuti {
    /// As in `ueContextId`, `5g-guti-99970020040abcdef01` (TS 29.518 6.1.3.2.2).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plmn = self.guami.plmn_id;
        write!(f, "5g-guti-{}{}{}{:08x}", plmn.mcc(), plmn.mnc(), self.guami.amf_id, self.tmsi.0)
    }
}

impl FromStr for FiveGGuti {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = || ParseError::new(text, "a 5G-GUTI such as 5g-guti-99970020040abcdef01");
        let rest = text.strip_prefix("5g-guti-").filter(|t| t.is_ascii()).ok_or_else(error)?;
        let (plmn, rest) = rest.split_at_checked(rest.len().saturating_sub(14)).ok_or_else(error)?;
        let (amf_id, tmsi) = rest.split_at_checked(6).ok_or_else(error)?;
        Ok(Self {
            guami: Guami { plmn_id: plmn.parse()?, amf_id: amf_id.parse()? },
            tmsi: FiveGTmsi(u32::from_str_radix(tmsi, 16).map_err(|_| error())?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amf_id_bits() {
        let id: AmfId = "020040".parse().unwrap();
        assert_eq!(id, AmfId { region: 2, set: 1, pointer: 0 });
        assert_eq!(id.to_string(), "020040");
        assert!("20040".parse::<AmfId>().is_err());
    }

    #[test]
    fn guti_text_round_trips() {
        let text = "5g-guti-99970020040abcdef01";
        let guti: FiveGGuti = text.parse().unwrap();
        assert_eq!(guti.to_string(), text);
        assert_eq!(guti.s_tmsi().tmsi, FiveGTmsi(0xabcd_ef01));
        for bad in ["5g-guti-", "5g-guti-9997002004", "imsi-999700000000001"] {
            assert!(bad.parse::<FiveGGuti>().is_err(), "{bad}");
        }
    }
}
