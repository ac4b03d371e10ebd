//! Key set identifier, security capability and algorithms.

use super::flags;
use crate::error::Malformed;
use crate::wire::{Cursor, Ie};
use serde::{Deserialize, Serialize};
use std::fmt;

/// NAS key set identifier (TS 24.501 9.11.3.32), half an octet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NgKsi {
    /// Identifies a native 5G NAS security context, 0 to 6.
    Native(u8),
    /// Identifies a mapped 5G NAS security context, 0 to 6.
    Mapped(u8),
    /// The UE has no key.
    NoKey,
}

impl Ie for NgKsi {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let bits = Cursor(value).u8()?;
        Ok(match (bits & 7, bits & 8) {
            (7, _) => Self::NoKey,
            (id, 0) => Self::Native(id),
            (id, _) => Self::Mapped(id),
        })
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self {
            Self::Native(id) => id & 7,
            Self::Mapped(id) => 8 | id & 7,
            Self::NoKey => 7,
        });
    }
}

/// UE security capability (TS 24.501 9.11.3.54), 2 to 8 octets, kept as received because the
/// network replays them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct UeSecurityCapability {
    octets: [u8; 8],
    length: u8,
}

impl UeSecurityCapability {
    /// The algorithms of 5GS, one bit each from the left: 0x80 is 5G-EA0 or 5G-IA0.
    pub const fn of_5gs(ea: u8, ia: u8) -> Self {
        Self { octets: [ea, ia, 0, 0, 0, 0, 0, 0], length: 2 }
    }

    /// The algorithms of 5GS and of EPS.
    pub const fn of_5gs_and_eps(ea: u8, ia: u8, eea: u8, eia: u8) -> Self {
        Self { octets: [ea, ia, eea, eia, 0, 0, 0, 0], length: 4 }
    }

    /// The capability with these received octets; `None` if there are fewer than two.
    pub fn from_octets(octets: &[u8]) -> Option<Self> {
        Self::decode(octets).ok()
    }

    /// The octets on the wire.
    pub fn octets(&self) -> &[u8] {
        self.octets.get(..usize::from(self.length)).unwrap_or(&self.octets)
    }

    /// 5G-EA0 (0x80), 128-5G-EA1 (0x40) … 5G-EA7 (0x01).
    pub const fn ea(&self) -> u8 {
        self.octets[0]
    }

    /// 5G-IA0 (0x80), 128-5G-IA1 (0x40) … 5G-IA7 (0x01).
    pub const fn ia(&self) -> u8 {
        self.octets[1]
    }

    /// EEA0 (0x80) … EEA7 (0x01); 0 if the UE sent none.
    pub const fn eea(&self) -> u8 {
        self.octets[2]
    }

    /// EIA0 (0x80) … EIA7 (0x01); 0 if the UE sent none.
    pub const fn eia(&self) -> u8 {
        self.octets[3]
    }

    /// Whether the UE supports the 5G-EA of that number.
    pub const fn supports_ea(&self, number: u8) -> bool {
        number < 8 && self.ea() >> (7 - number) & 1 == 1
    }

    /// Whether the UE supports the 5G-IA of that number.
    pub const fn supports_ia(&self, number: u8) -> bool {
        number < 8 && self.ia() >> (7 - number) & 1 == 1
    }
}

impl fmt::Debug for UeSecurityCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UeSecurityCapability({:02x?})", self.octets())
    }
}

impl Ie for UeSecurityCapability {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let mut octets = [0; 8];
        let value = value.get(..8).unwrap_or(value);
        if value.len() < 2 {
            return Err(Malformed("UE security capability has at least 2 octets"));
        }
        for (slot, octet) in octets.iter_mut().zip(value) {
            *slot = *octet;
        }
        Ok(Self { octets, length: value.len() as u8 })
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.octets());
    }
}

/// NAS security algorithms (TS 24.501 9.11.3.34): numbers of 5G-EA and 5G-IA, 0 to 7.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NasSecurityAlgorithms {
    /// Number of the ciphering algorithm; 2 is 128-5G-EA2.
    pub ciphering: u8,
    /// Number of the integrity protection algorithm.
    pub integrity: u8,
}

impl Ie for NasSecurityAlgorithms {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let octet = Cursor(value).u8()?;
        Ok(Self { ciphering: octet >> 4, integrity: octet & 0xf })
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.ciphering << 4 | self.integrity & 0xf);
    }
}

flags! {
    /// Additional 5G security information (TS 24.501 9.11.3.12).
    AdditionalSecurityInformation {
        /// A new K_AMF must be derived from the current one (HDP).
        horizontal_derivation = 1,
        /// SECURITY MODE COMPLETE must contain the complete initial NAS message (RINMR).
        retransmit_initial_nas_message = 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_is_replayed_unchanged() {
        for text in ["e0e0", "f0f0c0", "e0e0e0e00102", "e0e0e0e001020304"] {
            let octets = hex::decode(text).unwrap();
            let capability = UeSecurityCapability::decode(&octets).unwrap();
            assert_eq!(capability.octets(), octets);
        }
        let capability = UeSecurityCapability::of_5gs(0xa0, 0x20);
        assert!(capability.supports_ea(2) && !capability.supports_ea(1));
        assert!(capability.supports_ia(2) && !capability.supports_ia(0));
        assert!(UeSecurityCapability::decode(&[1]).is_err());
    }
}
