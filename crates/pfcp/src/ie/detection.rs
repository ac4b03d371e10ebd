//! Packet detection: filters of a PDI, and the outer header to remove.

use crate::error::IeFault;
use crate::group::Ie;
use crate::ie::address::{bit, flags};
use crate::ie::macros::{enum_ie, flags_ie, number_ie};
use crate::wire::{Reader, put_octets16};

number_ie! {
    /// Precedence: PDRs with lower values are evaluated first (TS 29.244 8.2.11).
    pub struct Precedence(u32);
    /// Framed-Routing, as the RADIUS attribute (TS 29.244 8.2.110).
    pub struct FramedRouting(u32);
}

/// SDF Filter (TS 29.244 8.2.5).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SdfFilter {
    /// An IPFilterRule such as `permit out ip from any to assigned` (TS 29.212 5.4.2).
    pub flow_description: Option<Vec<u8>>,
    /// ToS or traffic class, and its mask.
    pub tos_traffic_class: Option<[u8; 2]>,
    /// The IPsec security parameter index.
    pub security_parameter_index: Option<u32>,
    /// The IPv6 flow label, 20 bits.
    pub flow_label: Option<u32>,
    /// SDF Filter ID of a bidirectional filter: without a description, that of the same id applies.
    pub filter_id: Option<u32>,
}

impl SdfFilter {
    /// A filter that is only a flow description.
    pub fn from_description(description: &str) -> Self {
        SdfFilter { flow_description: Some(description.into()), ..SdfFilter::default() }
    }
}

fn flow_label(value: &mut Reader<'_>) -> Result<u32, IeFault> {
    let [high, middle, low] = value.array()?;
    Ok(u32::from_be_bytes([0, high & 0x0f, middle, low]))
}

impl Ie for SdfFilter {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let [octet, _spare] = value.array()?;
        Ok(SdfFilter {
            flow_description: value.when(bit(octet, 1), Reader::octets16)?,
            tos_traffic_class: value.when(bit(octet, 2), Reader::array)?,
            security_parameter_index: value.when(bit(octet, 3), Reader::u32)?,
            flow_label: value.when(bit(octet, 4), flow_label)?,
            filter_id: value.when(bit(octet, 5), Reader::u32)?,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let octet = flags([
            (1, self.flow_description.is_some()),
            (2, self.tos_traffic_class.is_some()),
            (3, self.security_parameter_index.is_some()),
            (4, self.flow_label.is_some()),
            (5, self.filter_id.is_some()),
        ]);
        out.extend([octet, 0]);
        self.flow_description.iter().for_each(|description| put_octets16(out, description));
        out.extend(self.tos_traffic_class.iter().flatten());
        out.extend(self.security_parameter_index.iter().flat_map(|index| index.to_be_bytes()));
        out.extend(self.flow_label.iter().flat_map(|label| label.to_be_bytes().into_iter().skip(1)));
        out.extend(self.filter_id.iter().flat_map(|id| id.to_be_bytes()));
    }
}

enum_ie! {
    /// The outer headers to remove (TS 29.244 table 8.2.64-1).
    pub enum OuterHeader: mask 0xff {
        /// GTP-U, UDP and IPv4.
        GtpuUdpIpv4 = 0,
        /// GTP-U, UDP and IPv6.
        GtpuUdpIpv6 = 1,
        /// UDP and IPv4.
        UdpIpv4 = 2,
        /// UDP and IPv6.
        UdpIpv6 = 3,
        /// IPv4.
        Ipv4 = 4,
        /// IPv6.
        Ipv6 = 5,
        /// GTP-U, UDP and IP of either version.
        GtpuUdpIp = 6,
        /// One VLAN tag.
        VlanTagPop = 7,
        /// Two VLAN tags.
        VlanTagsPopPop = 8,
    }
}

/// Outer Header Removal (TS 29.244 8.2.64).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OuterHeaderRemoval {
    /// The headers to remove.
    pub header: OuterHeader,
    /// GTP-U Extension Header Deletion, a bit mask: 1 deletes the PDU Session Container.
    pub extension_header_deletion: Option<u8>,
}

impl From<OuterHeader> for OuterHeaderRemoval {
    fn from(header: OuterHeader) -> Self {
        OuterHeaderRemoval { header, extension_header_deletion: None }
    }
}

impl Ie for OuterHeaderRemoval {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let header = OuterHeader::decode(value)?;
        let has_deletion = !value.is_empty();
        Ok(OuterHeaderRemoval { header, extension_header_deletion: value.when(has_deletion, Reader::u8)? })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.header.value());
        out.extend(self.extension_header_deletion);
    }
}

flags_ie! {
    /// Packet Replication and Detection Carry-On Information (TS 29.244 8.2.130).
    pub struct PacketReplication: u8, min 1 {
        /// Not to the source PDU session.
        PRIUEAI = 5/1,
        /// Not to N19 if received from N19.
        PRIN19I = 5/2,
        /// Not to N6 if received from N6.
        PRIN6I = 5/3,
        /// Continue with the PDRs of other sessions.
        DCARONI = 5/4,
    }

    /// MPTCP Applicable Indication (TS 29.244 8.2.181).
    pub struct MptcpApplicableIndication: u8, min 1 {
        /// MPTCP applies to the uplink traffic.
        MAI = 5/1,
    }
}

enum_ie! {
    /// The direction of a flow (TS 29.244 table 8.2.61-1).
    pub enum FlowDirection: mask 0x07 {
        /// Not specified.
        Unspecified = 0,
        /// To the UE.
        Downlink = 1,
        /// From the UE.
        Uplink = 2,
        /// Both.
        Bidirectional = 3,
    }
}

/// Flow Information of a detected application (TS 29.244 8.2.61).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowInformation {
    /// Its direction.
    pub direction: FlowDirection,
    /// An IPFilterRule (TS 29.212 5.4.2).
    pub flow_description: Vec<u8>,
}

impl Ie for FlowInformation {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        Ok(FlowInformation { direction: FlowDirection::decode(value)?, flow_description: value.octets16()? })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.direction.encode(out);
        put_octets16(out, &self.flow_description);
    }
}

/// DNS Query Filter (TS 29.244 8.2.201): the value as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsQueryFilter(pub Vec<u8>);

impl Ie for DnsQueryFilter {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        value.octets16().map(DnsQueryFilter)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_octets16(out, &self.0);
    }
}

/// PFD Contents: a packet flow description of an application (TS 29.244 8.2.39).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PfdContents {
    /// A flow description (TS 29.251 6.4.3.7).
    pub flow_description: Option<Vec<u8>>,
    /// A URL (TS 29.251 6.4.3.8).
    pub url: Option<Vec<u8>>,
    /// A domain name (TS 29.251 6.4.3.9).
    pub domain_name: Option<Vec<u8>>,
    /// Operator specific content.
    pub custom: Option<Vec<u8>>,
    /// The protocol in which the domain name is matched.
    pub domain_name_protocol: Option<Vec<u8>>,
    /// Further flow descriptions, each after its length.
    pub additional_flow_descriptions: Option<Vec<u8>>,
    /// Further URLs, each after its length.
    pub additional_urls: Option<Vec<u8>>,
    /// Further domain names and protocols, each after its length.
    pub additional_domain_names: Option<Vec<u8>>,
}

impl PfdContents {
    fn fields(&self) -> [&Option<Vec<u8>>; 8] {
        [
            &self.flow_description,
            &self.url,
            &self.domain_name,
            &self.custom,
            &self.domain_name_protocol,
            &self.additional_flow_descriptions,
            &self.additional_urls,
            &self.additional_domain_names,
        ]
    }
}

impl Ie for PfdContents {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let [octet, _spare] = value.array()?;
        let mut field = |number| value.when(bit(octet, number), Reader::octets16);
        Ok(PfdContents {
            flow_description: field(1)?,
            url: field(2)?,
            domain_name: field(3)?,
            custom: field(4)?,
            domain_name_protocol: field(5)?,
            additional_flow_descriptions: field(6)?,
            additional_urls: field(7)?,
            additional_domain_names: field(8)?,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let fields = self.fields();
        let present = (0..).zip(fields).filter(|(_, field)| field.is_some());
        out.extend([present.fold(0u8, |octet, (number, _)| octet | 1 << number), 0]);
        fields.into_iter().flatten().for_each(|field| put_octets16(out, field));
    }
}
