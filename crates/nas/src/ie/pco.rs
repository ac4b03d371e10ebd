//! Extended protocol configuration options (TS 24.501 9.11.4.6, TS 24.008 10.5.6.3): parameters of
//! the data network that a UE requests and gets.

use crate::error::Malformed;
use crate::wire::{Cursor, Ie, with_length_u8, with_length_u16};
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, Ipv6Addr};

const PPP_FOR_IP: u8 = 0x80;

const PCSCF_IPV6: u16 = 0x0001;
const IM_CN_SIGNALLING: u16 = 0x0002;
const DNS_IPV6: u16 = 0x0003;
const IP_ALLOCATION_VIA_NAS: u16 = 0x000a;
const IPV4_ALLOCATION_VIA_DHCP: u16 = 0x000b;
const PCSCF_IPV4: u16 = 0x000c;
const DNS_IPV4: u16 = 0x000d;
const IPV4_LINK_MTU: u16 = 0x0010;
const IPCP: u16 = 0x8021;

/// Options from the UE: requested parameters.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UplinkPco(pub Vec<PcoRequest>);

/// Options from the network.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DownlinkPco(pub Vec<PcoOption>);

/// A parameter that a UE requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PcoRequest {
    /// P-CSCF IPv6 address.
    PcscfIpv6,
    /// The session is for IMS signalling.
    ImCnSubsystemSignalling,
    /// DNS server IPv6 address.
    DnsServerIpv6,
    /// The address is allocated in the accept.
    IpAllocationViaNas,
    /// The IPv4 address is allocated by DHCP.
    Ipv4AllocationViaDhcp,
    /// P-CSCF IPv4 address.
    PcscfIpv4,
    /// DNS server IPv4 address.
    DnsServerIpv4,
    /// IPv4 link MTU.
    Ipv4LinkMtu,
    /// An IPCP packet (RFC 1332, RFC 1877).
    Ipcp(Vec<u8>),
    /// Another protocol or container.
    Other {
        /// Its identifier.
        id: u16,
        /// Its contents.
        contents: Vec<u8>,
    },
}

/// A parameter for the UE.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PcoOption {
    /// A P-CSCF.
    PcscfIpv6(Ipv6Addr),
    /// A DNS server.
    DnsServerIpv6(Ipv6Addr),
    /// A P-CSCF.
    PcscfIpv4(Ipv4Addr),
    /// A DNS server.
    DnsServerIpv4(Ipv4Addr),
    /// Maximum size of an IPv4 packet, in octets.
    Ipv4LinkMtu(u16),
    /// An IPCP packet (RFC 1332, RFC 1877).
    Ipcp(Vec<u8>),
    /// Another protocol or container.
    Other {
        /// Its identifier.
        id: u16,
        /// Its contents.
        contents: Vec<u8>,
    },
}

impl UplinkPco {
    /// Whether the UE requests that parameter.
    pub fn asks(&self, request: &PcoRequest) -> bool {
        self.0.contains(request)
    }
}

/// Containers whose length field has two octets (TS 24.008 Table 10.5.154, notes).
fn long_uplink(id: u16) -> bool {
    matches!(id, 0x0041 | 0x0051)
}

/// Containers whose length field has two octets (TS 24.008 Table 10.5.154, notes).
fn long_downlink(id: u16) -> bool {
    matches!(id, 0x0023 | 0x0024 | 0x0030..=0x0032 | 0x0041 | 0x0051)
}

fn containers<T>(
    value: &[u8],
    is_long: fn(u16) -> bool,
    item: impl Fn(u16, &[u8]) -> T,
) -> Result<Vec<T>, Malformed> {
    let mut cursor = Cursor(value);
    cursor.u8()?;
    cursor.all(|cursor| {
        let id = cursor.u16()?;
        let length = if is_long(id) { cursor.u16()? } else { cursor.u8()?.into() };
        Ok(item(id, cursor.take(length.into())?))
    })
}

fn put_container(out: &mut Vec<u8>, id: u16, is_long: bool, contents: &[u8]) {
    out.extend(id.to_be_bytes());
    if is_long {
        with_length_u16(out, |out| out.extend(contents))
    } else {
        with_length_u8(out, |out| out.extend(contents))
    }
}

impl From<(u16, &[u8])> for PcoRequest {
    /// Requests without contents are recognised whatever contents they have.
    fn from((id, contents): (u16, &[u8])) -> Self {
        match id {
            PCSCF_IPV6 => Self::PcscfIpv6,
            IM_CN_SIGNALLING => Self::ImCnSubsystemSignalling,
            DNS_IPV6 => Self::DnsServerIpv6,
            IP_ALLOCATION_VIA_NAS => Self::IpAllocationViaNas,
            IPV4_ALLOCATION_VIA_DHCP => Self::Ipv4AllocationViaDhcp,
            PCSCF_IPV4 => Self::PcscfIpv4,
            DNS_IPV4 => Self::DnsServerIpv4,
            IPV4_LINK_MTU => Self::Ipv4LinkMtu,
            IPCP => Self::Ipcp(contents.to_vec()),
            id => Self::Other { id, contents: contents.to_vec() },
        }
    }
}

impl PcoRequest {
    fn id_and_contents(&self) -> (u16, &[u8]) {
        match self {
            Self::PcscfIpv6 => (PCSCF_IPV6, &[]),
            Self::ImCnSubsystemSignalling => (IM_CN_SIGNALLING, &[]),
            Self::DnsServerIpv6 => (DNS_IPV6, &[]),
            Self::IpAllocationViaNas => (IP_ALLOCATION_VIA_NAS, &[]),
            Self::Ipv4AllocationViaDhcp => (IPV4_ALLOCATION_VIA_DHCP, &[]),
            Self::PcscfIpv4 => (PCSCF_IPV4, &[]),
            Self::DnsServerIpv4 => (DNS_IPV4, &[]),
            Self::Ipv4LinkMtu => (IPV4_LINK_MTU, &[]),
            Self::Ipcp(packet) => (IPCP, packet),
            Self::Other { id, contents } => (*id, contents),
        }
    }
}

impl Ie for UplinkPco {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        containers(value, long_uplink, |id, contents| (id, contents).into()).map(Self)
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(PPP_FOR_IP);
        for request in &self.0 {
            let (id, contents) = request.id_and_contents();
            put_container(out, id, long_uplink(id), contents);
        }
    }
}

impl From<(u16, &[u8])> for PcoOption {
    /// An option with an invalid length is kept in `Other`.
    fn from((id, contents): (u16, &[u8])) -> Self {
        let ipv4 = || <[u8; 4]>::try_from(contents).ok().map(Ipv4Addr::from);
        let ipv6 = || <[u8; 16]>::try_from(contents).ok().map(Ipv6Addr::from);
        let mtu = || <[u8; 2]>::try_from(contents).ok().map(u16::from_be_bytes);
        match id {
            PCSCF_IPV6 => ipv6().map(Self::PcscfIpv6),
            DNS_IPV6 => ipv6().map(Self::DnsServerIpv6),
            PCSCF_IPV4 => ipv4().map(Self::PcscfIpv4),
            DNS_IPV4 => ipv4().map(Self::DnsServerIpv4),
            IPV4_LINK_MTU => mtu().map(Self::Ipv4LinkMtu),
            IPCP => Some(Self::Ipcp(contents.to_vec())),
            _ => None,
        }
        .unwrap_or_else(|| Self::Other { id, contents: contents.to_vec() })
    }
}

impl Ie for DownlinkPco {
    fn decode(value: &[u8]) -> Result<Self, Malformed> {
        containers(value, long_downlink, |id, contents| (id, contents).into()).map(Self)
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(PPP_FOR_IP);
        let mut put = |id, contents: &[u8]| put_container(out, id, long_downlink(id), contents);
        for option in &self.0 {
            match option {
                PcoOption::PcscfIpv6(address) => put(PCSCF_IPV6, &address.octets()),
                PcoOption::DnsServerIpv6(address) => put(DNS_IPV6, &address.octets()),
                PcoOption::PcscfIpv4(address) => put(PCSCF_IPV4, &address.octets()),
                PcoOption::DnsServerIpv4(address) => put(DNS_IPV4, &address.octets()),
                PcoOption::Ipv4LinkMtu(mtu) => put(IPV4_LINK_MTU, &mtu.to_be_bytes()),
                PcoOption::Ipcp(packet) => put(IPCP, packet),
                PcoOption::Other { id, contents } => put(*id, contents),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_for_dns_is_answered_under_the_same_identifier() {
        let request = UplinkPco::decode(&hex::decode("80000a00000d00").unwrap()).unwrap();
        assert_eq!(request.0, [PcoRequest::IpAllocationViaNas, PcoRequest::DnsServerIpv4]);
        let mut out = Vec::new();
        DownlinkPco(vec![PcoOption::DnsServerIpv4(Ipv4Addr::new(8, 8, 8, 8)), PcoOption::Ipv4LinkMtu(1400)])
            .encode(&mut out);
        assert_eq!(hex::encode(out), "80000d040808080800100 20578".replace(' ', ""));
    }

    #[test]
    fn qos_rules_have_a_long_length_downlink_only() {
        let contents = vec![7; 300];
        let option = PcoOption::Other { id: 0x23, contents };
        let mut out = Vec::new();
        DownlinkPco(vec![option.clone()]).encode(&mut out);
        assert_eq!(DownlinkPco::decode(&out).unwrap().0, [option]);
        let indicator = UplinkPco::decode(&[0x80, 0, 0x23, 0]).unwrap();
        assert_eq!(indicator.0.len(), 1);
    }
}
