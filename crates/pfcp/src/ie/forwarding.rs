//! Forwarding: actions, outer headers, redirection.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::error::IeFault;
use crate::group::Ie;
use crate::ie::address::{bit, flags, ipv4, ipv6, put_addresses};
use crate::ie::ethernet::VlanTag;
use crate::ie::macros::{enum_ie, flags_ie};
use crate::wire::{Reader, put_octets8, put_octets16};

flags_ie! {
    /// Apply Action (TS 29.244 8.2.26). Octet 6 came with Release 16: Open5GS's UPF discards an IE without it.
    pub struct ApplyAction: u16, min 1, sent 2 {
        /// Drop.
        DROP = 5/1,
        /// Forward.
        FORW = 5/2,
        /// Buffer.
        BUFF = 5/3,
        /// Notify the CP function of the first buffered downlink packet.
        NOCP = 5/4,
        /// Duplicate.
        DUPL = 5/5,
        /// Accept joining an IP multicast group.
        IPMA = 5/6,
        /// Deny joining an IP multicast group.
        IPMD = 5/7,
        /// Duplicate for redundant transmission.
        DFRT = 5/8,
        /// Eliminate duplicates of redundant transmission.
        EDRT = 6/1,
        /// Notify of the first buffered downlink packet, for the delivery status.
        BDPN = 6/2,
        /// Notify of the first discarded downlink packet, for the delivery status.
        DDPN = 6/3,
        /// Forward to a lower layer SSM address.
        FSSM = 6/4,
        /// Forward and replicate by unicast.
        MBSU = 6/5,
    }
}

impl ApplyAction {
    /// Whether exactly one of DROP, FORW, BUFF, IPMA and IPMD is set, as TS 29.244 8.2.26 requires.
    pub fn is_valid(self) -> bool {
        let exclusive = ApplyAction::DROP.0
            | ApplyAction::FORW.0
            | ApplyAction::BUFF.0
            | ApplyAction::IPMA.0
            | ApplyAction::IPMD.0;
        (self.0 & exclusive).count_ones() == 1
    }
}

/// Indications in octet 6 of an Outer Header Creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OuterHeaderIndications {
    /// The packet is of N19.
    pub n19: bool,
    /// The packet is of N6.
    pub n6: bool,
    /// Lower layer source specific multicast address and common TEID.
    pub low_layer_ssm: bool,
}

/// Outer Header Creation (TS 29.244 8.2.56). The fields determine the header: with a TEID GTP-U over UDP,
/// with a port plain UDP, without both plain IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OuterHeaderCreation {
    /// The tunnel endpoint identifier of the GTP-U peer.
    pub teid: Option<u32>,
    /// The peer's IPv4 address.
    pub ipv4: Option<Ipv4Addr>,
    /// The peer's IPv6 address.
    pub ipv6: Option<Ipv6Addr>,
    /// The UDP destination port.
    pub port: Option<u16>,
    /// The C-TAG to set.
    pub c_tag: Option<VlanTag>,
    /// The S-TAG to set.
    pub s_tag: Option<VlanTag>,
    /// Internal indications for the packet.
    pub indications: OuterHeaderIndications,
}

impl OuterHeaderCreation {
    /// GTP-U towards the endpoint `teid` at `address`.
    pub fn gtpu(teid: u32, address: IpAddr) -> Self {
        let (ipv4, ipv6) = match address {
            IpAddr::V4(address) => (Some(address), None),
            IpAddr::V6(address) => (None, Some(address)),
        };
        OuterHeaderCreation { teid: Some(teid), ipv4, ipv6, ..OuterHeaderCreation::default() }
    }

    fn description(&self) -> [u8; 2] {
        let (gtpu, udp) = (self.teid.is_some(), self.port.is_some());
        let (ipv4, ipv6, plain) = (self.ipv4.is_some(), self.ipv6.is_some(), !gtpu && !udp);
        let first = [
            (1, gtpu && ipv4),
            (2, gtpu && ipv6),
            (3, udp && ipv4),
            (4, udp && ipv6),
            (5, plain && ipv4),
            (6, plain && ipv6),
            (7, self.c_tag.is_some()),
            (8, self.s_tag.is_some()),
        ];
        let OuterHeaderIndications { n19, n6, low_layer_ssm } = self.indications;
        [flags(first), flags([(1, n19), (2, n6), (3, low_layer_ssm)])]
    }
}

impl Ie for OuterHeaderCreation {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let [first, second] = value.array()?;
        // The other bits of the second octet are spare.
        if [first, second & 0x07] == [0, 0] {
            return Err(IeFault::Incorrect("an Outer Header Creation is empty"));
        }
        let any = |bits: &[u8]| bits.iter().any(|number| bit(first, *number));
        Ok(OuterHeaderCreation {
            teid: value.when(any(&[1, 2]), Reader::u32)?,
            ipv4: value.when(any(&[1, 3, 5]), ipv4)?,
            ipv6: value.when(any(&[2, 4, 6]), ipv6)?,
            port: value.when(any(&[3, 4]), Reader::u16)?,
            c_tag: value.when(any(&[7]), VlanTag::decode)?,
            s_tag: value.when(any(&[8]), VlanTag::decode)?,
            indications: OuterHeaderIndications {
                n19: bit(second, 1),
                n6: bit(second, 2),
                low_layer_ssm: bit(second, 3),
            },
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.description());
        out.extend(self.teid.iter().flat_map(|teid| teid.to_be_bytes()));
        put_addresses(out, self.ipv4, self.ipv6);
        out.extend(self.port.iter().flat_map(|port| port.to_be_bytes()));
        out.extend(self.c_tag.iter().chain(&self.s_tag).flat_map(VlanTag::octets));
    }
}

/// Transport Level Marking: the DSCP of the outer header (TS 29.244 8.2.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TransportLevelMarking {
    /// ToS or traffic class: the DSCP in its upper six bits.
    pub tos: u8,
    /// The mask, 0xFC.
    pub mask: u8,
}

impl Ie for TransportLevelMarking {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let [tos, mask] = value.array()?;
        Ok(TransportLevelMarking { tos, mask })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend([self.tos, self.mask]);
    }
}

/// Forwarding Policy: the name of a policy configured in the UP function, at most 255 octets (TS 29.244
/// 8.2.23).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ForwardingPolicy(pub Vec<u8>);

impl Ie for ForwardingPolicy {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        value.octets8().map(ForwardingPolicy)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_octets8(out, &self.0);
    }
}

enum_ie! {
    /// The type of a redirect address (TS 29.244 table 8.2.20-1).
    pub enum RedirectAddressType: mask 0x0f {
        /// An IPv4 address.
        Ipv4 = 0,
        /// An IPv6 address.
        Ipv6 = 1,
        /// A URL.
        Url = 2,
        /// A SIP URI.
        SipUri = 3,
        /// An IPv4 and an IPv6 address.
        Ipv4AndIpv6 = 4,
        /// A port.
        Port = 5,
        /// An IPv4 address and a port.
        Ipv4AndPort = 6,
        /// An IPv6 address and a port.
        Ipv6AndPort = 7,
        /// An IPv4 and an IPv6 address, and a port.
        Ipv4AndIpv6AndPort = 8,
    }
}

/// Redirect Information (TS 29.244 8.2.20).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectInformation {
    /// The type of the addresses.
    pub address_type: RedirectAddressType,
    /// The server, as text.
    pub server: Vec<u8>,
    /// The IPv6 address, if the server has two addresses.
    pub other_server: Vec<u8>,
    /// The port, for types with a port.
    pub port: Option<u16>,
}

impl Ie for RedirectInformation {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let address_type = RedirectAddressType::decode(value)?;
        let server = value.octets16()?;
        let has_other = !value.is_empty();
        let other_server = value.when(has_other, Reader::octets16)?.unwrap_or_default();
        let has_port = (5..=8).contains(&address_type.value());
        Ok(RedirectInformation {
            address_type,
            server,
            other_server,
            port: value.when(has_port, Reader::u16)?,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.address_type.encode(out);
        put_octets16(out, &self.server);
        put_octets16(out, &self.other_server);
        out.extend(self.port.iter().flat_map(|port| port.to_be_bytes()));
    }
}

/// Header Enrichment (TS 29.244 8.2.67).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderEnrichment {
    /// The type of header; 0 is HTTP.
    pub header_type: u8,
    /// The name of the field.
    pub name: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
}

impl Ie for HeaderEnrichment {
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let header_type = value.u8()? & 0x1f;
        Ok(HeaderEnrichment { header_type, name: value.octets8()?, value: value.octets8()? })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.header_type);
        put_octets8(out, &self.name);
        put_octets8(out, &self.value);
    }
}

/// IP Address and Port Number Replacement (TS 29.244 8.2.200).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IpAddressAndPortReplacement {
    /// The destination IPv4 address to set.
    pub destination_ipv4: Option<Ipv4Addr>,
    /// The destination IPv6 address to set.
    pub destination_ipv6: Option<Ipv6Addr>,
    /// The destination port to set.
    pub destination_port: Option<u16>,
    /// The source IPv4 address to set.
    pub source_ipv4: Option<Ipv4Addr>,
    /// The source IPv6 address to set.
    pub source_ipv6: Option<Ipv6Addr>,
    /// The source port to set.
    pub source_port: Option<u16>,
}

impl Ie for IpAddressAndPortReplacement {
    /// The flags take one octet, by table 8.1.2-1 and the used bits; the figure contains a second, spare
    /// octet.
    fn decode(value: &mut Reader<'_>) -> Result<Self, IeFault> {
        let octet = value.u8()?;
        Ok(IpAddressAndPortReplacement {
            destination_ipv4: value.when(bit(octet, 1), ipv4)?,
            destination_ipv6: value.when(bit(octet, 2), ipv6)?,
            destination_port: value.when(bit(octet, 3), Reader::u16)?,
            source_ipv4: value.when(bit(octet, 4), ipv4)?,
            source_ipv6: value.when(bit(octet, 5), ipv6)?,
            source_port: value.when(bit(octet, 6), Reader::u16)?,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(flags([
            (1, self.destination_ipv4.is_some()),
            (2, self.destination_ipv6.is_some()),
            (3, self.destination_port.is_some()),
            (4, self.source_ipv4.is_some()),
            (5, self.source_ipv6.is_some()),
            (6, self.source_port.is_some()),
        ]));
        put_addresses(out, self.destination_ipv4, self.destination_ipv6);
        out.extend(self.destination_port.iter().flat_map(|port| port.to_be_bytes()));
        put_addresses(out, self.source_ipv4, self.source_ipv6);
        out.extend(self.source_port.iter().flat_map(|port| port.to_be_bytes()));
    }
}
