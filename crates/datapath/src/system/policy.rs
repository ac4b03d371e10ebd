//! Policies for the packets of one data network on N6: firewall, routes, MSS, NAT.
//!
//! The kernel applies all of them, and the XDP path bypasses the kernel: sessions of a network with another policy than NAT44
//! take the portable path.

use super::port_blocks::PortBlocks;
use crate::config::UePool;
use pith_upf::contract::{AddressRange, Direction, PortRange};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The policy of a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkPolicy {
    /// One of the configuration's pools.
    pub pool: UePool,
    /// NAT44 by blocks of ports.
    pub port_blocks: Option<PortBlocks>,
    /// Whether packets to other networks get an IPv6 address of the host (NAT66).
    pub nat66: bool,
    /// The first matching rule decides; without a match packets pass. Replies to permitted packets pass.
    pub firewall: Vec<FirewallRule>,
    /// Routes for this network's packets only.
    pub routes: Vec<StaticRoute>,
    /// The limit of TCP's MSS.
    pub mss: Option<u16>,
}

impl NetworkPolicy {
    /// A network without policies.
    pub fn none(pool: UePool) -> Self {
        Self { pool, port_blocks: None, nat66: false, firewall: vec![], routes: vec![], mss: None }
    }

    /// Whether the kernel has nothing to do.
    pub fn is_none(&self) -> bool {
        *self == Self::none(self.pool)
    }
}

/// A rule of a network's firewall.
///
/// ```text
/// deny up to 10.0.0.0/8
/// allow down tcp to 10.45.0.9 port 22
/// │     │    │   └ source (from) and destination (to), ports of the destination; all of them may be missing
/// │     │    └ icmp, tcp or udp
/// │     └ up: from UEs, down: to UEs
/// └ allow or deny
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirewallRule {
    /// The decision.
    pub verdict: Verdict,
    /// Uplink or downlink.
    pub direction: Direction,
    /// `None`: any protocol.
    pub protocol: Option<Protocol>,
    /// Source; `None`: any.
    pub from: Option<AddressRange>,
    /// Destination; `None`: any.
    pub to: Option<AddressRange>,
    /// Destination ports; with TCP or UDP only.
    pub ports: Option<PortRange>,
}

/// The decision of a firewall rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Packets pass.
    Allow,
    /// Packets are dropped.
    Deny,
}

/// A protocol in rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// ICMP, and ICMPv6 for IPv6.
    Icmp,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    /// Parses a protocol name.
    pub fn named(word: &str) -> Option<Self> {
        [Self::Icmp, Self::Tcp, Self::Udp].into_iter().find(|protocol| protocol.name() == word)
    }

    /// The IP protocol numbers, for IPv4 and IPv6.
    pub const fn numbers(self) -> [u8; 2] {
        match self {
            Self::Icmp => [1, 58],
            Self::Tcp => [6, 6],
            Self::Udp => [17, 17],
        }
    }

    /// The name in rules.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Icmp => "icmp",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

impl FromStr for FirewallRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse_rule(text).ok_or_else(|| {
            format!("'{text}' is not a firewall rule such as 'deny up to 10.0.0.0/8' or 'allow down tcp to 10.45.0.9 port 22'")
        })
    }
}

fn parse_rule(text: &str) -> Option<FirewallRule> {
    let mut words = text.split_ascii_whitespace().peekable();
    let verdict = match words.next()? {
        "allow" => Verdict::Allow,
        "deny" => Verdict::Deny,
        _ => return None,
    };
    let direction = match words.next()? {
        "up" => Direction::Uplink,
        "down" => Direction::Downlink,
        _ => return None,
    };
    let protocol = words.peek().and_then(|word| Protocol::named(word));
    if protocol.is_some() {
        words.next();
    }
    let mut rule = FirewallRule { verdict, direction, protocol, from: None, to: None, ports: None };
    while let Some(word) = words.next() {
        let value = words.next()?;
        match word {
            "from" if rule.from.is_none() => rule.from = Some(parse_network(value)?),
            "to" if rule.to.is_none() => rule.to = Some(parse_network(value)?),
            "port" if rule.ports.is_none() => rule.ports = Some(parse_ports(value)?),
            _ => return None,
        }
    }
    let has_ports = matches!(rule.protocol, Some(Protocol::Tcp | Protocol::Udp));
    let mut ends = rule.from.iter().chain(&rule.to).map(|end| end.address.is_ipv4());
    let mixed = ends.next().is_some_and(|first| ends.any(|other| other != first));
    ((has_ports || rule.ports.is_none()) && !mixed).then_some(rule)
}

/// Parses an address, or a network without bits set after its prefix.
pub fn parse_network(text: &str) -> Option<AddressRange> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address.parse().ok()?, prefix.parse().ok()?),
        None => {
            let address: IpAddr = text.parse().ok()?;
            (address, if address.is_ipv4() { 32 } else { 128 })
        }
    };
    let after = match address {
        IpAddr::V4(v4) if prefix <= 32 => v4.to_bits().checked_shl(prefix.into()).unwrap_or(0).into(),
        IpAddr::V6(v6) if prefix <= 128 => v6.to_bits().checked_shl(prefix.into()).unwrap_or(0),
        _ => return None,
    };
    (after == 0).then_some(AddressRange { address, prefix })
}

/// Parses a port, or a range of ports.
pub fn parse_ports(text: &str) -> Option<PortRange> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let ports = PortRange { first: first.parse().ok()?, last: last.parse().ok()? };
    (ports.first <= ports.last).then_some(ports)
}

impl fmt::Display for FirewallRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.verdict == Verdict::Allow { "allow" } else { "deny" };
        let direction = if self.direction == Direction::Uplink { "up" } else { "down" };
        write!(f, "{verdict} {direction}")?;
        self.protocol.map_or(Ok(()), |protocol| write!(f, " {}", protocol.name()))?;
        self.from.map_or(Ok(()), |from| write!(f, " from {}", Net(from)))?;
        self.to.map_or(Ok(()), |to| write!(f, " to {}", Net(to)))?;
        self.ports.map_or(Ok(()), |ports| write!(f, " port {ports}"))
    }
}

/// A network as text, in the format of nftables and iptables, too.
#[derive(Debug, Clone, Copy)]
pub struct Net(pub AddressRange);

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AddressRange { address, prefix } = self.0;
        let whole = if address.is_ipv4() { 32 } else { 128 };
        if prefix == whole { write!(f, "{address}") } else { write!(f, "{address}/{prefix}") }
    }
}

/// A static route: `10.9.0.0/16 via 192.0.2.1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaticRoute {
    /// The destination; prefix length 0 for the default route.
    pub to: AddressRange,
    /// The next hop, on a network of the host.
    pub via: IpAddr,
}

impl FromStr for StaticRoute {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (to, via) = text.split_once(" via ")?;
            let route = Self { to: parse_network(to.trim())?, via: via.trim().parse().ok()? };
            (route.to.address.is_ipv4() == route.via.is_ipv4()).then_some(route)
        };
        parse().ok_or_else(|| format!("'{text}' is not a route such as '10.9.0.0/16 via 192.0.2.1'"))
    }
}

impl fmt::Display for StaticRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} via {}", Net(self.to), self.via)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_read_as_they_were_written() {
        for text in [
            "deny up",
            "deny up to 10.0.0.0/8",
            "allow down tcp to 10.45.0.9 port 22",
            "deny up udp from 10.45.0.0/24 to 192.0.2.1 port 5000-5010",
            "allow down icmp from 2001:db8::/32",
        ] {
            assert_eq!(text.parse::<FirewallRule>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn an_invalid_rule_is_rejected_with_an_example() {
        for text in [
            "",
            "deny",
            "drop up",
            "deny out",
            "deny up port 22",
            "deny up icmp port 22",
            "deny up to 10.0.0.1/8",
            "deny up to 10.0.0.0/33",
            "deny up to",
            "deny up to 10.0.0.0/8 to 10.0.0.0/8",
            "deny up tcp port 23-22",
            "deny up from 10.0.0.0/8 to 2001:db8::/32",
            "deny up sctp",
        ] {
            assert!(text.parse::<FirewallRule>().unwrap_err().contains("such as"), "{text}");
        }
    }

    #[test]
    fn routes_read_as_they_were_written() {
        for text in ["10.9.0.0/16 via 192.0.2.1", "0.0.0.0/0 via 192.0.2.1", "2001:db8::/32 via fe80::1"] {
            assert_eq!(text.parse::<StaticRoute>().unwrap().to_string(), text);
        }
        for text in ["10.9.0.1/16 via 192.0.2.1", "10.9.0.0/16", "10.9.0.0/16 via fe80::1", "via 192.0.2.1"] {
            assert!(text.parse::<StaticRoute>().is_err(), "{text}");
        }
    }
}
