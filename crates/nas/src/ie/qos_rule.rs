//! QoS rules (TS 24.501 9.11.4.13). The UE uses them to classify uplink user traffic of a PDU session and to assign it to
//! QoS flows.

use crate::error::Malformed;
use crate::wire::{Cursor, Ie, coded, with_length_u8, with_length_u16};
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The QoS rules IE: its rules, in the order of the IE.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QosRules(pub Vec<QosRule>);

coded! {
    /// Rule operation code, three bits.
    RuleOperation {
        /// Create new QoS rule.
        Create = 1,
        /// Delete existing QoS rule.
        Delete = 2,
        /// Modify existing QoS rule and add packet filters.
        AddPacketFilters = 3,
        /// Modify existing QoS rule and replace all packet filters.
        ReplacePacketFilters = 4,
        /// Modify existing QoS rule and delete packet filters.
        DeletePacketFilters = 5,
        /// Modify existing QoS rule without modifying packet filters.
        ModifyWithoutPacketFilters = 6,
    }
}

/// Maximum number of packet filters of a rule.
const MAX_PACKET_FILTERS: usize = 15;

/// One QoS rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QosRule {
    /// QoS rule identifier: 1 to 255, assigned by the network; 0 in a UE's request to create a rule.
    pub id: u8,
    /// What the receiver does with the rule.
    pub operation: RuleOperation,
    /// DQR bit: this is the session's default QoS rule.
    pub default: bool,
    /// Packet filters: at most 15, because the IE has four bits for their number. Encoding omits the others.
    pub packet_filters: Vec<PacketFilter>,
    /// `None` if a rule is deleted; may be absent if a rule is modified.
    pub precedence_and_qfi: Option<PrecedenceAndQfi>,
}

/// The last two octets of a rule, which are present or absent together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrecedenceAndQfi {
    /// Rules are evaluated in ascending order of precedence; 255 is the lowest priority.
    pub precedence: u8,
    /// Segregation bit: the UE requests a dedicated QoS flow for the rule. In a rule from the network the bit is spare.
    pub segregation: bool,
    /// QoS flow identifier: 1 to 63; 0 if the UE leaves the choice to the network.
    pub qfi: u8,
}

impl QosRule {
    /// The default rule that assigns all packets to one QoS flow.
    pub fn match_all(id: u8, qfi: u8) -> Self {
        Self {
            id,
            operation: RuleOperation::Create,
            default: true,
            packet_filters: vec![PacketFilter {
                id: 1,
                direction: FilterDirection::Bidirectional,
                components: vec![FilterComponent::MatchAll],
            }],
            precedence_and_qfi: Some(PrecedenceAndQfi { precedence: 255, segregation: false, qfi }),
        }
    }

    fn decode(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let id = cursor.u8()?;
        let length = cursor.u16()?;
        let mut body = Cursor(cursor.take(length.into())?);
        let header = body.u8()?;
        let operation = RuleOperation::from_code(header >> 5);
        let packet_filters = (0..header & 0xf)
            .map(|_| PacketFilter::decode(operation, &mut body))
            .collect::<Result<_, _>>()?;
        let precedence_and_qfi =
            if body.is_empty() { None } else { Some(PrecedenceAndQfi::decode(&mut body)?) };
        Ok(Self { id, operation, default: header & 0x10 != 0, packet_filters, precedence_and_qfi })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let filters = self.packet_filters.get(..MAX_PACKET_FILTERS).unwrap_or(&self.packet_filters);
        out.push(self.id);
        with_length_u16(out, |out| {
            let default = u8::from(self.default) << 4;
            out.push(self.operation.code() << 5 | default | filters.len() as u8);
            for filter in filters {
                filter.encode(self.operation, out);
            }
            if let Some(precedence_and_qfi) = self.precedence_and_qfi {
                let segregation = u8::from(precedence_and_qfi.segregation) << 6;
                out.extend([precedence_and_qfi.precedence, segregation | precedence_and_qfi.qfi & 0x3f]);
            }
        });
    }
}

impl PrecedenceAndQfi {
    fn decode(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let precedence = cursor.u8()?;
        let flow = cursor.u8()?;
        Ok(Self { precedence, segregation: flow & 0x40 != 0, qfi: flow & 0x3f })
    }
}

impl Ie for QosRules {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        Cursor(value).all(QosRule::decode).map(Self)
    }
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.iter().for_each(|rule| rule.encode(out));
    }
}

coded! {
    /// Direction of the packets that a filter applies to, two bits.
    FilterDirection {
        /// Packets to the UE.
        Downlink = 1,
        /// Packets from the UE.
        Uplink = 2,
        /// Packets in both directions.
        Bidirectional = 3,
    }
}

/// A packet filter. A packet matches if it matches all components.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketFilter {
    /// Packet filter identifier: 0 to 15, unique within the rule. 0 in a UE's request to create a filter.
    pub id: u8,
    /// `Other(0)` if filters are deleted: their entries in the IE have no direction.
    pub direction: FilterDirection,
    /// Empty if filters are deleted.
    pub components: Vec<FilterComponent>,
}

impl PacketFilter {
    fn decode(operation: RuleOperation, cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let header = cursor.u8()?;
        let (direction, components) = match operation {
            RuleOperation::DeletePacketFilters => (0, Vec::new()),
            _ => (header >> 4 & 3, cursor.with_length_u8()?.all(FilterComponent::decode)?),
        };
        Ok(Self { id: header & 0xf, direction: FilterDirection::from_code(direction), components })
    }

    fn encode(&self, operation: RuleOperation, out: &mut Vec<u8>) {
        if operation == RuleOperation::DeletePacketFilters {
            return out.push(self.id & 0xf);
        }
        out.push((self.direction.code() & 3) << 4 | self.id & 0xf);
        with_length_u8(out, |out| {
            for component in &self.components {
                component.encode(out);
            }
        });
    }
}

/// A packet filter component (TS 24.501 Table 9.11.4.13.1); 'local' is the UE's side, 'remote' is the
/// data network's side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FilterComponent {
    /// Any packet.
    MatchAll,
    /// Address and mask.
    Ipv4Remote(Ipv4Addr, Ipv4Addr),
    /// Address and mask.
    Ipv4Local(Ipv4Addr, Ipv4Addr),
    /// Address and prefix length.
    Ipv6Remote(Ipv6Addr, u8),
    /// Address and prefix length.
    Ipv6Local(Ipv6Addr, u8),
    /// IPv4 protocol, or IPv6 next header.
    Protocol(u8),
    /// One port of the UE.
    LocalPort(u16),
    /// Port range of the UE, inclusive.
    LocalPorts(u16, u16),
    /// One port of the data network.
    RemotePort(u16),
    /// Port range of the data network, inclusive.
    RemotePorts(u16, u16),
    /// Security parameter index of IPsec.
    SecurityParameterIndex(u32),
    /// IPv4 type of service or IPv6 traffic class, and its mask.
    TrafficClass(u8, u8),
    /// IPv6 flow label, 20 bits.
    FlowLabel(u32),
    /// Destination MAC address.
    DestinationMac([u8; 6]),
    /// Source MAC address.
    SourceMac([u8; 6]),
    /// 802.1Q C-TAG VID, 12 bits.
    CTagVid(u16),
    /// 802.1Q S-TAG VID, 12 bits.
    STagVid(u16),
    /// 802.1Q C-TAG PCP and DEI, four bits.
    CTagPcpDei(u8),
    /// 802.1Q S-TAG PCP and DEI, four bits.
    STagPcpDei(u8),
    /// Ethertype.
    Ethertype(u16),
    /// Range of destination MAC addresses, inclusive.
    DestinationMacs([u8; 6], [u8; 6]),
    /// Range of source MAC addresses, inclusive.
    SourceMacs([u8; 6], [u8; 6]),
}

impl FilterComponent {
    /// Why rules with a component of an undefined type are malformed.
    pub const UNDEFINED: &'static str = "undefined packet filter component";

    fn decode(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let ipv4 = |cursor: &mut Cursor<'_>| cursor.array::<4>().map(Ipv4Addr::from);
        let ipv6 = |cursor: &mut Cursor<'_>| cursor.array::<16>().map(Ipv6Addr::from);
        Ok(match cursor.u8()? {
            0x01 => Self::MatchAll,
            0x10 => Self::Ipv4Remote(ipv4(cursor)?, ipv4(cursor)?),
            0x11 => Self::Ipv4Local(ipv4(cursor)?, ipv4(cursor)?),
            0x21 => Self::Ipv6Remote(ipv6(cursor)?, cursor.u8()?),
            0x23 => Self::Ipv6Local(ipv6(cursor)?, cursor.u8()?),
            0x30 => Self::Protocol(cursor.u8()?),
            0x40 => Self::LocalPort(cursor.u16()?),
            0x41 => Self::LocalPorts(cursor.u16()?, cursor.u16()?),
            0x50 => Self::RemotePort(cursor.u16()?),
            0x51 => Self::RemotePorts(cursor.u16()?, cursor.u16()?),
            0x60 => Self::SecurityParameterIndex(cursor.u32()?),
            0x70 => Self::TrafficClass(cursor.u8()?, cursor.u8()?),
            0x80 => {
                let [a, b, c] = cursor.array()?;
                Self::FlowLabel(u32::from_be_bytes([0, a & 0xf, b, c]))
            }
            0x81 => Self::DestinationMac(cursor.array()?),
            0x82 => Self::SourceMac(cursor.array()?),
            0x83 => Self::CTagVid(cursor.u16()? & 0xfff),
            0x84 => Self::STagVid(cursor.u16()? & 0xfff),
            0x85 => Self::CTagPcpDei(cursor.u8()? & 0xf),
            0x86 => Self::STagPcpDei(cursor.u8()? & 0xf),
            0x87 => Self::Ethertype(cursor.u16()?),
            0x88 => Self::DestinationMacs(cursor.array()?, cursor.array()?),
            0x89 => Self::SourceMacs(cursor.array()?, cursor.array()?),
            _ => return Err(Malformed(Self::UNDEFINED)),
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let mut put = |component_type: u8, parts: [&[u8]; 2]| {
            out.push(component_type);
            out.extend(parts.concat());
        };
        match self {
            Self::MatchAll => put(0x01, [&[], &[]]),
            Self::Ipv4Remote(a, mask) => put(0x10, [&a.octets(), &mask.octets()]),
            Self::Ipv4Local(a, mask) => put(0x11, [&a.octets(), &mask.octets()]),
            Self::Ipv6Remote(a, prefix) => put(0x21, [&a.octets(), &[*prefix]]),
            Self::Ipv6Local(a, prefix) => put(0x23, [&a.octets(), &[*prefix]]),
            Self::Protocol(protocol) => put(0x30, [&[*protocol], &[]]),
            Self::LocalPort(port) => put(0x40, [&port.to_be_bytes(), &[]]),
            Self::LocalPorts(low, high) => put(0x41, [&low.to_be_bytes(), &high.to_be_bytes()]),
            Self::RemotePort(port) => put(0x50, [&port.to_be_bytes(), &[]]),
            Self::RemotePorts(low, high) => put(0x51, [&low.to_be_bytes(), &high.to_be_bytes()]),
            Self::SecurityParameterIndex(spi) => put(0x60, [&spi.to_be_bytes(), &[]]),
            Self::TrafficClass(class, mask) => put(0x70, [&[*class], &[*mask]]),
            Self::FlowLabel(label) => {
                let [_, a, b, c] = label.to_be_bytes();
                put(0x80, [&[a & 0xf, b, c], &[]]);
            }
            Self::DestinationMac(mac) => put(0x81, [mac, &[]]),
            Self::SourceMac(mac) => put(0x82, [mac, &[]]),
            Self::CTagVid(vid) => put(0x83, [&(vid & 0xfff).to_be_bytes(), &[]]),
            Self::STagVid(vid) => put(0x84, [&(vid & 0xfff).to_be_bytes(), &[]]),
            Self::CTagPcpDei(bits) => put(0x85, [&[bits & 0xf], &[]]),
            Self::STagPcpDei(bits) => put(0x86, [&[bits & 0xf], &[]]),
            Self::Ethertype(ethertype) => put(0x87, [&ethertype.to_be_bytes(), &[]]),
            Self::DestinationMacs(low, high) => put(0x88, [low, high]),
            Self::SourceMacs(low, high) => put(0x89, [low, high]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodes the rules, and checks that decoding returns them.
    fn round_trip(rules: &[QosRule]) -> String {
        let mut out = Vec::new();
        QosRules(rules.to_vec()).encode(&mut out);
        assert_eq!(QosRules::decode(&out), Ok(QosRules(rules.to_vec())));
        hex::encode(out)
    }

    #[test]
    fn the_match_all_rule_has_the_expected_octets() {
        assert_eq!(round_trip(&[QosRule::match_all(1, 1)]), "01000631310101ff01");
    }

    #[test]
    fn deletions_have_no_components_and_no_precedence() {
        let delete = QosRule {
            id: 2,
            operation: RuleOperation::Delete,
            default: false,
            packet_filters: vec![],
            precedence_and_qfi: None,
        };
        assert_eq!(round_trip(&[delete]), "02000140");
        let filters = QosRule {
            id: 3,
            operation: RuleOperation::DeletePacketFilters,
            default: false,
            packet_filters: vec![PacketFilter {
                id: 4,
                direction: FilterDirection::Other(0),
                components: vec![],
            }],
            precedence_and_qfi: None,
        };
        assert_eq!(round_trip(&[filters]), "030002a104");
    }

    #[test]
    fn every_filter_component_round_trips() {
        let (four, six) = (Ipv4Addr::new(10, 0, 0, 1), Ipv6Addr::LOCALHOST);
        use FilterComponent::*;
        let components = vec![
            Ipv4Remote(four, Ipv4Addr::BROADCAST),
            Ipv4Local(four, Ipv4Addr::BROADCAST),
            Ipv6Remote(six, 128),
            Ipv6Local(six, 64),
            Protocol(17),
            LocalPort(53),
            LocalPorts(1, 2),
            RemotePort(53),
            RemotePorts(3, 4),
            SecurityParameterIndex(7),
            TrafficClass(0xb8, 0xfc),
            FlowLabel(0xfffff),
            DestinationMac([1; 6]),
            SourceMac([2; 6]),
            CTagVid(0xfff),
            STagVid(1),
            CTagPcpDei(9),
            STagPcpDei(3),
            Ethertype(0x0800),
            DestinationMacs([1; 6], [2; 6]),
            SourceMacs([3; 6], [4; 6]),
        ];
        let mut rule = QosRule::match_all(1, 5);
        rule.packet_filters = vec![PacketFilter { id: 2, direction: FilterDirection::Uplink, components }];
        round_trip(&[rule.clone(), rule]);
    }
}
