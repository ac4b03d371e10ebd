//! Properties of a PDU session: type, SSC mode, address, capabilities.

use super::flags;
use crate::error::Malformed;
use crate::wire::{Cursor, Ie, coded};
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, Ipv6Addr};

coded! {
    /// PDU session type (TS 24.501 Table 9.11.4.11.1), half an octet.
    PduSessionType & 7 {
        /// IPv4.
        Ipv4 = 1,
        /// IPv6.
        Ipv6 = 2,
        /// IPv4 and IPv6.
        Ipv4v6 = 3,
        /// Unstructured.
        Unstructured = 4,
        /// Ethernet.
        Ethernet = 5,
    }
}

impl PduSessionType {
    /// The type that the network takes it for: unused values stand for IPv4v6 (TS 24.501 Table 9.11.4.11.1).
    pub const fn as_received(self) -> Self {
        match self {
            Self::Other(0 | 6) => Self::Ipv4v6,
            other => other,
        }
    }
}

coded! {
    /// SSC mode (TS 24.501 Table 9.11.4.16.1), half an octet.
    SscMode & 7 {
        /// The anchor stays.
        Mode1 = 1,
        /// Release, then a new session.
        Mode2 = 2,
        /// A new session, then release.
        Mode3 = 3,
    }
}

impl SscMode {
    /// The mode that the network takes it for: unused values stand for others (TS 24.501 Table 9.11.4.16.1).
    pub const fn as_received(self) -> Self {
        match self {
            Self::Other(4) => Self::Mode1,
            Self::Other(5) => Self::Mode2,
            Self::Other(6) => Self::Mode3,
            mode => mode,
        }
    }
}

flags! {
    /// Allowed SSC mode (TS 24.501 9.11.4.5), half an octet.
    AllowedSscMode {
        /// SSC mode 1.
        mode_1 = 1,
        /// SSC mode 2.
        mode_2 = 2,
        /// SSC mode 3.
        mode_3 = 3,
    }
}

flags! {
    /// Always-on PDU session requested or its indication (TS 24.501 9.11.4.3, 9.11.4.4), half an
    /// octet.
    AlwaysOn {
        /// Requested, or granted.
        on = 1,
    }
}

flags! {
    /// Re-attempt indicator (TS 24.501 9.11.4.17).
    ReAttemptIndicator {
        /// Re-attempt in S1 mode is not allowed (RATC).
        not_in_s1_mode = 1,
        /// Re-attempt in an equivalent PLMN is not allowed (EPLMNC).
        not_in_equivalent_plmn = 2,
    }
}

flags! {
    /// 5GSM congestion re-attempt indicator (TS 24.501 9.11.4.21).
    CongestionReAttemptIndicator {
        /// The back-off timer applies in all PLMNs (ABO).
        in_all_plmns = 1,
        /// The back-off timer applies to the current access type only (CATBO).
        in_current_access = 2,
    }
}

coded! {
    /// Maximum data rate per UE for user-plane integrity protection (TS 24.501 Table 9.11.4.7.1).
    IntegrityRate {
        /// 64 kbit/s.
        Kbps64 = 0,
        /// None.
        Null = 1,
        /// Full data rate.
        Full = 255,
    }
}

/// Integrity protection maximum data rate (TS 24.501 9.11.4.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntegrityProtectionMaximumDataRate {
    /// From the UE.
    pub uplink: IntegrityRate,
    /// To the UE.
    pub downlink: IntegrityRate,
}

impl IntegrityProtectionMaximumDataRate {
    /// Full rate in both directions.
    pub const FULL: Self = Self { uplink: IntegrityRate::Full, downlink: IntegrityRate::Full };
}

impl Ie for IntegrityProtectionMaximumDataRate {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let [uplink, downlink] = Cursor(value).array()?;
        Ok(Self { uplink: IntegrityRate::from_code(uplink), downlink: IntegrityRate::from_code(downlink) })
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend([self.uplink.code(), self.downlink.code()]);
    }
}

/// Maximum number of supported packet filters (TS 24.501 9.11.4.9): 11 bits, 17 to 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaximumPacketFilters(pub u16);

impl Ie for MaximumPacketFilters {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        Cursor(value).u16().map(|bits| Self(bits >> 5))
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend((self.0 << 5).to_be_bytes());
    }
}

/// 5GSM capability (TS 24.501 9.11.4.1), 1 to 13 octets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GsmCapability(pub Vec<u8>);

impl GsmCapability {
    /// Reflective QoS is supported.
    pub fn reflective_qos(&self) -> bool {
        self.0.first().is_some_and(|octet| octet & 1 != 0)
    }

    /// A multi-homed IPv6 session is supported.
    pub fn multi_homed_ipv6(&self) -> bool {
        self.0.first().is_some_and(|octet| octet & 2 != 0)
    }
}

impl Ie for GsmCapability {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        Ok(Self(value.to_vec()))
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(&self.0);
    }
}

/// PDU address (TS 24.501 9.11.4.10): the UE's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PduAddress {
    /// IPv4 address of an IPv4 or IPv4v6 session.
    pub ipv4: Option<Ipv4Addr>,
    /// Interface identifier of the link-local address of an IPv6 or IPv4v6 session.
    pub interface_id: Option<[u8; 8]>,
    /// The SMF's own link-local address.
    pub smf_link_local: Option<Ipv6Addr>,
}

impl From<Ipv4Addr> for PduAddress {
    fn from(address: Ipv4Addr) -> Self {
        Self { ipv4: Some(address), ..Self::default() }
    }
}

const SMF_LINK_LOCAL: u8 = 8;

impl Ie for PduAddress {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor(value);
        let header = cursor.u8()?;
        let (has_ipv6, has_ipv4) = match PduSessionType::from_code(header & 7) {
            PduSessionType::Ipv4 => (false, true),
            PduSessionType::Ipv6 => (true, false),
            PduSessionType::Ipv4v6 => (true, true),
            _ => return Err(Malformed("an address for a session without IP")),
        };
        let mut address = Self::default();
        if has_ipv6 {
            address.interface_id = Some(cursor.array()?);
        }
        if has_ipv4 {
            address.ipv4 = Some(cursor.array::<4>()?.into());
        }
        if header & SMF_LINK_LOCAL != 0 {
            address.smf_link_local = Some(cursor.array::<16>()?.into());
        }
        Ok(address)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let kind = match (self.interface_id, self.ipv4) {
            (Some(_), Some(_)) => PduSessionType::Ipv4v6,
            (Some(_), None) => PduSessionType::Ipv6,
            (None, _) => PduSessionType::Ipv4,
        };
        let link_local = self.smf_link_local.map_or(0, |_| SMF_LINK_LOCAL);
        out.push(link_local | kind.code());
        out.extend(self.interface_id.into_iter().flatten());
        out.extend(self.ipv4.into_iter().flat_map(|ipv4| ipv4.octets()));
        out.extend(self.smf_link_local.into_iter().flat_map(|ipv6| ipv6.octets()));
    }
}

/// Suggested interface identifier (TS 24.501 Table 8.3.1.1.1): a PDU address (9.11.4.10) of an IPv6
/// session that contains only the interface identifier suggested by the UE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuggestedInterfaceIdentifier(pub [u8; 8]);

impl Ie for SuggestedInterfaceIdentifier {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor(value);
        match PduSessionType::from_code(cursor.u8()? & 7) {
            PduSessionType::Ipv6 => Ok(Self(cursor.array()?)),
            _ => Err(Malformed("an interface identifier for a session without IPv6")),
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(PduSessionType::Ipv6.code());
        out.extend(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TS 24.501 9.11.4.11, 9.11.4.16: bit 4 is spare. Unused modes stand for others.
    #[test]
    fn spare_bits_are_ignored_and_unused_modes_interpreted() {
        assert_eq!(PduSessionType::decode(&[9]), Ok(PduSessionType::Ipv4));
        assert_eq!(SscMode::decode(&[9]), Ok(SscMode::Mode1));
        let received = |code| SscMode::from_code(code).as_received();
        assert_eq!([4, 5, 6].map(received), [SscMode::Mode1, SscMode::Mode2, SscMode::Mode3]);
        assert_eq!([2, 7].map(received), [SscMode::Mode2, SscMode::Other(7)]);
        let received = |code| PduSessionType::from_code(code).as_received();
        assert_eq!(
            [0, 5, 6].map(received),
            [PduSessionType::Ipv4v6, PduSessionType::Ethernet, PduSessionType::Ipv4v6]
        );
        assert_eq!(received(7), PduSessionType::Other(7));
        let received = |code| crate::ie::RequestType::from_code(code).as_received();
        assert_eq!(received(0), crate::ie::RequestType::InitialRequest);
        assert_eq!(received(7), crate::ie::RequestType::Other(7));
        assert_eq!(crate::ie::RequestType::decode(&[9]), Ok(crate::ie::RequestType::InitialRequest));
    }

    #[test]
    fn a_suggested_interface_identifier_is_of_ipv6_alone() {
        let octets = hex::decode("020000000000000001").unwrap();
        let mut out = Vec::new();
        SuggestedInterfaceIdentifier::decode(&octets).unwrap().encode(&mut out);
        assert_eq!(out, octets);
        assert!(SuggestedInterfaceIdentifier::decode(&hex::decode("010a3c862e06fac105").unwrap()).is_err());
        assert!(SuggestedInterfaceIdentifier::decode(&octets[..8]).is_err());
    }

    #[test]
    fn each_kind_of_address_round_trips() {
        for text in [
            "010a2d0002",
            "020000000000000001",
            "0300000000000000010a2d0002",
            "0a0000000000000001fe800000000000000000000000000001",
        ] {
            let octets = hex::decode(text).unwrap();
            let mut out = Vec::new();
            PduAddress::decode(&octets).unwrap().encode(&mut out);
            assert_eq!(hex::encode(out), text);
        }
        assert!(PduAddress::decode(&[5, 1, 2, 3, 4]).is_err());
        assert!(PduAddress::decode(&[1, 1, 2, 3]).is_err());
    }
}
