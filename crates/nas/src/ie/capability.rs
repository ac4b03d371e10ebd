//! Capabilities of UE and network: 5GMM capability, network feature support, UE radio capability ID.

use crate::error::Malformed;
use crate::wire::{Cursor, Ie, bcd_of_digits, digits_of_bcd};
use serde::{Deserialize, Serialize};

/// 5GMM capability (TS 24.501 9.11.3.1), 1 to 13 octets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GmmCapability(pub Vec<u8>);

impl GmmCapability {
    fn bit(&self, octet: usize, bit: u8) -> bool {
        self.0.get(octet).is_some_and(|octet| octet >> (bit - 1) & 1 == 1)
    }

    /// S1 mode is supported.
    pub fn s1_mode(&self) -> bool {
        self.bit(0, 1)
    }

    /// ATTACH REQUEST with request type 'handover' can be sent after a move from N1 mode.
    pub fn handover_attach(&self) -> bool {
        self.bit(0, 2)
    }

    /// LTE positioning protocol is supported.
    pub fn lpp(&self) -> bool {
        self.bit(0, 3)
    }

    /// Service gap control is supported.
    pub fn service_gap_control(&self) -> bool {
        self.bit(0, 8)
    }

    /// Network slice-specific authentication is supported.
    pub fn nssaa(&self) -> bool {
        self.bit(1, 7)
    }

    /// The Extended rejected NSSAI IE is supported (ER-NSSAI).
    pub fn extended_rejected_nssai(&self) -> bool {
        self.bit(2, 5)
    }

    /// Radio capability signalling optimisation is supported.
    pub fn racs(&self) -> bool {
        self.bit(1, 8)
    }
}

impl Ie for GmmCapability {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        Ok(Self(value.to_vec()))
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(&self.0);
    }
}

/// 5GS network feature support (TS 24.501 9.11.3.5).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NetworkFeatureSupport {
    /// IMS voice over PS session over 3GPP access.
    pub ims_voice_three_gpp: bool,
    /// IMS voice over PS session over non-3GPP access.
    pub ims_voice_non_three_gpp: bool,
    /// Emergency services over 3GPP access: 0 none, 1 NR, 2 E-UTRA, 3 both; to 5GCN.
    pub emergency_services: u8,
    /// Emergency services fallback: 0 none, 1 NR, 2 E-UTRA, 3 both; to 5GCN.
    pub emergency_fallback: u8,
    /// Interworking without N26.
    pub interworking_without_n26: bool,
    /// Access identity 1 (MPS) is valid.
    pub mps: bool,
    /// Further octets, as received.
    pub further: Vec<u8>,
}

impl Ie for NetworkFeatureSupport {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor(value);
        let octet = cursor.u8()?;
        Ok(Self {
            ims_voice_three_gpp: octet & 0x01 != 0,
            ims_voice_non_three_gpp: octet & 0x02 != 0,
            emergency_services: octet >> 2 & 3,
            emergency_fallback: octet >> 4 & 3,
            interworking_without_n26: octet & 0x40 != 0,
            mps: octet & 0x80 != 0,
            further: cursor.0.to_vec(),
        })
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(
            u8::from(self.ims_voice_three_gpp)
                | u8::from(self.ims_voice_non_three_gpp) << 1
                | (self.emergency_services & 3) << 2
                | (self.emergency_fallback & 3) << 4
                | u8::from(self.interworking_without_n26) << 6
                | u8::from(self.mps) << 7,
        );
        out.extend(&self.further);
    }
}

/// UE radio capability ID (TS 24.501 9.11.3.68): its digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UeRadioCapabilityId(pub String);

impl Ie for UeRadioCapabilityId {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        digits_of_bcd(value).map(Self)
    }
    fn encode(&self, out: &mut Vec<u8>) {
        bcd_of_digits(&self.0, out);
    }
}
