//! Packet filters of PCC rules: flow descriptions (TS 29.512 5.6.2.14; IPFilterRule of TS 29.212 5.4.2), and the packet filters of QoS
//! rules made of them (TS 24.501 9.11.4.13).

use crate::kit::document::pack_struct;
use pith_nas::ie::{FilterComponent, FilterDirection, PacketFilter};
use pith_pfcp::ie::SdfFilter;
use pith_sbi::npcf_smpolicycontrol::{FlowDirection, FlowInformation};
use std::net::{IpAddr, Ipv4Addr};
use std::str::SplitAsciiWhitespace;
use std::sync::Arc;

/// Packet filters that a UE supports in a session if it does not say that it supports more (TS 24.501 6.4.1.2), without that of the
/// default rule.
pub(crate) const MAX_PACKET_FILTERS: usize = 15;

/// Octets of a flow description at most.
const MAX_DESCRIPTION: usize = 512;

/// Ranges of ports at one end at most.
const MAX_PORTS: usize = 8;

/// A packet filter of a PCC rule. Its texts are checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FlowFilter {
    /// The IPFilterRule, as the PCF wrote it.
    description: Arc<str>,
    /// Type of service or traffic class, and its mask.
    traffic_class: Option<[u8; 2]>,
    /// Security parameter index of IPsec.
    spi: Option<u32>,
    /// IPv6 flow label, 20 bits.
    flow_label: Option<u32>,
    /// Directions: bit 0 downlink, bit 1 uplink.
    directions: u8,
    /// Whether the filter is sent to the UE.
    is_for_ue: bool,
}

pack_struct!(FlowFilter { description, traffic_class, spi, flow_label, directions, is_for_ue });

const DOWNLINK: u8 = 1;
const UPLINK: u8 = 2;

impl FlowFilter {
    /// The filter of that flow information. `None`: it is incorrect, or has parts that the SMF does not know.
    pub(crate) fn of(information: &FlowInformation) -> Option<Self> {
        let description = information.flow_description.clone()?;
        Description::parse(&description)?;
        let traffic_class = match &information.tos_traffic_class {
            Some(text) => Some(u16::try_from(hexadecimal(text, 4)?).ok()?.to_be_bytes()),
            None => None,
        };
        let number = |text: &Option<Arc<str>>, digits| match text {
            Some(text) => hexadecimal(text, digits).map(Some),
            None => Some(None),
        };
        let flow_label = number(&information.flow_label, 6)?;
        if flow_label.is_some_and(|label| label >= 1 << 20) {
            return None;
        }
        let directions = match &information.flow_direction {
            Some(FlowDirection::Downlink) => DOWNLINK,
            Some(FlowDirection::Uplink) => UPLINK,
            None | Some(FlowDirection::Bidirectional | FlowDirection::Unspecified) => DOWNLINK | UPLINK,
            Some(_) => return None,
        };
        Some(Self {
            description,
            traffic_class,
            spi: number(&information.spi, 8)?,
            flow_label,
            directions,
            is_for_ue: information.packet_filter_usage == Some(true),
        })
    }

    /// Whether it matches packets to the UE.
    pub(crate) const fn is_downlink(&self) -> bool {
        self.directions & DOWNLINK != 0
    }

    /// Whether it matches packets of the UE.
    pub(crate) const fn is_uplink(&self) -> bool {
        self.directions & UPLINK != 0
    }

    /// The filter for a UPF. A flow description is written for downlink packets and applies to both directions (TS 29.212 5.4.2).
    pub(crate) fn sdf_filter(&self) -> SdfFilter {
        SdfFilter {
            flow_description: Some(self.description.as_bytes().to_vec()),
            tos_traffic_class: self.traffic_class,
            security_parameter_index: self.spi,
            flow_label: self.flow_label,
            filter_id: None,
        }
    }

    /// The packet filters for the UE, one for each pair of port ranges; none if the filter is not sent to it. The identities count from
    /// `first`.
    pub(crate) fn packet_filters(&self, first: u8) -> Vec<PacketFilter> {
        let Some(description) = Description::parse(&self.description).filter(|_| self.is_for_ue) else {
            return Vec::new();
        };
        let with_ports = description.pairs_of_ports().into_iter().map(|(remote, local)| {
            let mut components = description.components();
            components.extend(remote.map(|ports| ports_component(ports, End::Remote)));
            components.extend(local.map(|ports| ports_component(ports, End::Local)));
            components.extend(self.spi.map(FilterComponent::SecurityParameterIndex));
            components
                .extend(self.traffic_class.map(|[value, mask]| FilterComponent::TrafficClass(value, mask)));
            components.extend(self.flow_label.map(FilterComponent::FlowLabel));
            if components.is_empty() {
                components.push(FilterComponent::MatchAll);
            }
            components
        });
        let direction = FilterDirection::from_code(self.directions);
        (first..).zip(with_ports).map(|(id, components)| PacketFilter { id, direction, components }).collect()
    }
}

/// What the SMF makes of a flow description, for the PCF that checks those of applications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DescribedFlow {
    /// Packet filters of the UE that it needs; a session has [`MAX_PACKET_FILTERS`] at most.
    pub packet_filters: usize,
    /// The network at the UE's end; `None`: any address of the UE.
    pub local: Option<(IpAddr, u8)>,
    /// The network at the other end; `None`: any address.
    pub remote: Option<(IpAddr, u8)>,
    /// The protocol of its packets; `None`: any.
    pub protocol: Option<u8>,
}

impl DescribedFlow {
    /// Of a flow information; `None` if it is incorrect, or the SMF cannot encode it.
    pub(crate) fn of(information: &FlowInformation) -> Option<Self> {
        let filter = FlowFilter::of(information)?;
        let Description { local, remote, protocol, .. } = Description::parse(&filter.description)?;
        Some(Self { packet_filters: filter.packet_filters(0).len(), local, remote, protocol })
    }
}

enum End {
    Remote,
    Local,
}

const fn ports_component((low, high): (u16, u16), end: End) -> FilterComponent {
    match (end, low == high) {
        (End::Remote, true) => FilterComponent::RemotePort(low),
        (End::Remote, false) => FilterComponent::RemotePorts(low, high),
        (End::Local, true) => FilterComponent::LocalPort(low),
        (End::Local, false) => FilterComponent::LocalPorts(low, high),
    }
}

fn hexadecimal(text: &str, digits: usize) -> Option<u32> {
    let is_right = text.len() == digits && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_right.then(|| u32::from_str_radix(text, 16).ok()).flatten()
}

/// Inclusive ranges of ports.
type Ports = Vec<(u16, u16)>;

/// `permit out <protocol> from <remote> to <local>`, parsed.
struct Description {
    protocol: Option<u8>,
    remote: Option<(IpAddr, u8)>,
    remote_ports: Ports,
    local: Option<(IpAddr, u8)>,
    local_ports: Ports,
}

impl Description {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        if text.len() > MAX_DESCRIPTION || words.next() != Some("permit") || words.next() != Some("out") {
            return None;
        }
        let protocol = match words.next()? {
            "ip" => None,
            number => Some(number.parse().ok()?),
        };
        if words.next() != Some("from") {
            return None;
        }
        let (remote, remote_ports, after) = end(&mut words)?;
        if after != Some("to") {
            return None;
        }
        let (local, local_ports, after) = end(&mut words)?;
        let is_mixed =
            remote.zip(local).is_some_and(|((one, _), (other, _))| one.is_ipv4() != other.is_ipv4());
        if after.is_some() || is_mixed {
            return None;
        }
        Some(Self { protocol, remote, remote_ports, local, local_ports })
    }

    /// The components without ports.
    fn components(&self) -> Vec<FilterComponent> {
        let mut components = Vec::new();
        components.extend(self.remote.map(|(address, prefix)| match address {
            IpAddr::V4(v4) => FilterComponent::Ipv4Remote(v4, mask(prefix)),
            IpAddr::V6(v6) => FilterComponent::Ipv6Remote(v6, prefix),
        }));
        components.extend(self.local.map(|(address, prefix)| match address {
            IpAddr::V4(v4) => FilterComponent::Ipv4Local(v4, mask(prefix)),
            IpAddr::V6(v6) => FilterComponent::Ipv6Local(v6, prefix),
        }));
        components.extend(self.protocol.map(FilterComponent::Protocol));
        components
    }

    fn pairs_of_ports(&self) -> Vec<(Option<(u16, u16)>, Option<(u16, u16)>)> {
        let of = |ports: &Ports| match &ports[..] {
            [] => vec![None],
            ports => ports.iter().copied().map(Some).collect::<Vec<_>>(),
        };
        let locals = of(&self.local_ports);
        let remotes = of(&self.remote_ports);
        remotes.iter().flat_map(|remote| locals.iter().map(move |local| (*remote, *local))).collect()
    }
}

/// The netmask of a prefix length.
fn mask(prefix: u8) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0))
}

/// An address and ports, and the word after them.
#[allow(clippy::type_complexity)]
fn end<'a>(words: &mut SplitAsciiWhitespace<'a>) -> Option<(Option<(IpAddr, u8)>, Ports, Option<&'a str>)> {
    let address = match words.next()? {
        "any" | "assigned" => None,
        word => Some(network(word)?),
    };
    match words.next() {
        Some(word) if word.starts_with(|c: char| c.is_ascii_digit()) => {
            Some((address, ports(word)?, words.next()))
        }
        after => Some((address, Vec::new(), after)),
    }
}

fn network(word: &str) -> Option<(IpAddr, u8)> {
    let (address, prefix) = match word.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix.parse::<u8>().ok()?)),
        None => (word, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let prefix = prefix.unwrap_or(most);
    (prefix <= most).then_some((address, prefix))
}

fn ports(word: &str) -> Option<Ports> {
    let range = |text: &str| match text.split_once('-') {
        Some((low, high)) => {
            let range = (low.parse().ok()?, high.parse().ok()?);
            (range.0 <= range.1).then_some(range)
        }
        None => text.parse().ok().map(|port| (port, port)),
    };
    let ports: Ports = word.split(',').map(range).collect::<Option<_>>()?;
    (ports.len() <= MAX_PORTS).then_some(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(description: &str) -> Option<FlowFilter> {
        let information = FlowInformation {
            flow_description: Some(description.into()),
            packet_filter_usage: Some(true),
            ..FlowInformation::default()
        };
        FlowFilter::of(&information)
    }

    #[test]
    fn a_flow_description_becomes_packet_filters_of_the_ue() {
        let filters = filter("permit out 17 from 192.0.2.0/24 5060,6000-6010 to assigned 4000").unwrap();
        let remote =
            FilterComponent::Ipv4Remote("192.0.2.0".parse().unwrap(), "255.255.255.0".parse().unwrap());
        let of = |id, port| PacketFilter {
            id,
            direction: FilterDirection::Bidirectional,
            components: vec![
                remote.clone(),
                FilterComponent::Protocol(17),
                port,
                FilterComponent::LocalPort(4000),
            ],
        };
        let expected =
            [of(3, FilterComponent::RemotePort(5060)), of(4, FilterComponent::RemotePorts(6000, 6010))];
        assert_eq!(filters.packet_filters(3), expected);
    }

    #[test]
    fn wrong_descriptions_are_refused() {
        for text in [
            "",
            "permit in 17 from any to assigned",
            "deny out ip from any to assigned",
            "permit out udp from any to assigned",
            "permit out 256 from any to assigned",
            "permit out ip from 192.0.2.1/33 to assigned",
            "permit out ip from any 7-3 to assigned",
            "permit out ip from any 1,2,3,4,5,6,7,8,9 to assigned",
            "permit out ip from any to assigned frag",
            "permit out ip from !192.0.2.1 to assigned",
            "permit out ip from 192.0.2.1 to 2001:db8::1",
        ] {
            assert!(filter(text).is_none(), "{text}");
        }
        assert!(
            filter(&format!("permit out ip from any to assigned{}", " ".repeat(MAX_DESCRIPTION))).is_none()
        );
    }

    #[test]
    fn masks_have_the_length_of_their_prefix() {
        assert_eq!(mask(0), Ipv4Addr::UNSPECIFIED);
        assert_eq!(mask(8), Ipv4Addr::new(255, 0, 0, 0));
        assert_eq!(mask(32), Ipv4Addr::BROADCAST);
    }
}
