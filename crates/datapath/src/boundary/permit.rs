//! Permits: exceptions from the closed destinations.

use crate::packet::Flow;
use crate::system::{Net, Protocol, parse_network, parse_ports};
use pith_pfcp::gtpu::GTPU_PORT;
use pith_upf::contract::{AddressRange, PortRange};
use std::fmt;
use std::str::FromStr;

/// ```text
/// 10.211.0.1 udp port 53
/// │          └ icmp, tcp or udp, and ports of the destination; without, all packets but GTP-U
/// └ an address or a network
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permit {
    /// The destination.
    pub to: AddressRange,
    /// `None`: any protocol.
    pub protocol: Option<Protocol>,
    /// Destination ports; with TCP or UDP only.
    pub ports: Option<PortRange>,
}

/// Its IP protocol number.
const UDP: u8 = 17;

impl Permit {
    /// Permits all packets to a range.
    pub fn all(to: AddressRange) -> Self {
        Self { to, protocol: None, ports: None }
    }

    /// Whether it permits a packet. A later fragment has no ports, so a permit with ports does not match it. One without ports does not permit
    /// GTP-U: a UE that reaches gNBs would send packets in the tunnels of other UEs, with NAT from the UPF's own address.
    pub fn takes(&self, flow: &Flow) -> bool {
        let is_port = match (self.ports, flow.ports) {
            (Some(ports), Some((_, port))) => ports.contains(port),
            (Some(_), None) => false,
            (None, ports) => !(flow.protocol == UDP && ports.is_some_and(|(_, port)| port == GTPU_PORT)),
        };
        self.to.contains(flow.destination)
            && self.protocol.is_none_or(|protocol| protocol.numbers().contains(&flow.protocol))
            && is_port
    }
}

impl FromStr for Permit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text).ok_or_else(|| {
            format!("'{text}' is not a destination such as '10.211.0.1 udp port 53' or '192.0.2.0/24'")
        })
    }
}

fn parse(text: &str) -> Option<Permit> {
    let mut words = text.split_ascii_whitespace();
    let mut permit = Permit::all(parse_network(words.next()?)?);
    let Some(name) = words.next() else { return Some(permit) };
    permit.protocol = Some(Protocol::named(name)?);
    let Some(word) = words.next() else { return Some(permit) };
    permit.ports = Some(parse_ports(words.next().filter(|_| word == "port")?)?);
    (permit.protocol != Some(Protocol::Icmp) && words.next().is_none()).then_some(permit)
}

impl fmt::Display for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Net(self.to))?;
        self.protocol.map_or(Ok(()), |protocol| write!(f, " {}", protocol.name()))?;
        self.ports.map_or(Ok(()), |ports| write!(f, " port {ports}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::samples::udp_v6;

    #[test]
    fn permits_read_as_they_were_written() {
        for text in [
            "192.0.2.1",
            "192.0.2.0/24",
            "10.211.0.1 udp port 53",
            "2001:db8::1 tcp port 80-89",
            "10.0.0.1 icmp",
        ] {
            assert_eq!(text.parse::<Permit>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn an_invalid_permit_is_rejected_with_an_example() {
        for text in [
            "",
            "udp",
            "10.0.0.1/8",
            "10.0.0.1 sctp",
            "10.0.0.1 icmp port 1",
            "10.0.0.1 udp 53",
            "10.0.0.1 udp port",
            "10.0.0.1 udp port 53 x",
        ] {
            assert!(text.parse::<Permit>().unwrap_err().contains("such as"), "{text}");
        }
    }

    #[test]
    fn a_permit_with_ports_takes_these_alone() {
        let flow = Flow::of(&udp_v6(b"x")).unwrap();
        let permit = |rest: &str| format!("{}{rest}", flow.destination).parse::<Permit>().unwrap();
        for (rest, takes) in
            [("", true), (" udp", true), (" udp port 53", true), (" udp port 54-60", false), (" tcp", false)]
        {
            assert_eq!(permit(rest).takes(&flow), takes, "{rest}");
        }
        assert!(!permit(" udp port 53").takes(&Flow { ports: None, ..flow }), "a later fragment");
        let gtpu = Flow { ports: Some((2152, 2152)), ..flow };
        let takes = ["", " udp", " udp port 2152"].map(|rest| permit(rest).takes(&gtpu));
        assert_eq!(takes, [false, false, true]);
    }
}
