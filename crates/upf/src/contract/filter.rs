//! SDF filters of PDRs (TS 29.244 8.2.5).

use super::Direction;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Matches packets by their headers; a field that is `None` or [`Endpoint::ANY`] matches all.
///
/// Ends are named by their side, not by direction, so that one filter applies to both directions: the remote
/// end is the source of a downlink packet and the destination of an uplink packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SdfFilter {
    /// IP protocol number; for IPv6 the last next header.
    pub protocol: Option<u8>,
    /// The data network's end.
    pub remote: Endpoint,
    /// The UE's end.
    pub local: Endpoint,
    /// Type of service or traffic class, under a mask.
    pub tos: Option<TosFilter>,
    /// IPsec Security Parameter Index.
    pub spi: Option<u32>,
    /// IPv6 flow label, 20 bits.
    pub flow_label: Option<u32>,
    /// Direction of a unidirectional filter; `None`: both directions.
    pub direction: Option<Direction>,
}

/// Writes a flow description, followed by the fields that such a description cannot express.
impl fmt::Display for SdfFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.protocol {
            Some(protocol) => write!(f, "permit out {protocol}")?,
            None => write!(f, "permit out ip")?,
        }
        write!(f, " from {} to ", self.remote)?;
        match self.local {
            Endpoint { address: None, ports: None } => write!(f, "assigned")?,
            Endpoint { address: None, ports: Some(ports) } => write!(f, "assigned {ports}")?,
            local => write!(f, "{local}")?,
        }
        if let Some(TosFilter { value, mask }) = self.tos {
            write!(f, ", tos {value:#04x}/{mask:#04x}")?;
        }
        if let Some(spi) = self.spi {
            write!(f, ", spi {spi:#x}")?;
        }
        if let Some(label) = self.flow_label {
            write!(f, ", flow label {label:#x}")?;
        }
        match self.direction {
            Some(Direction::Uplink) => write!(f, ", uplink only"),
            Some(Direction::Downlink) => write!(f, ", downlink only"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(range) => write!(f, "{}/{}", range.address, range.prefix)?,
            None => write!(f, "any")?,
        }
        self.ports.map_or(Ok(()), |ports| write!(f, " {ports}"))
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{}-{}", self.first, self.last)
        }
    }
}

/// One end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Endpoint {
    /// Addresses; `None`: any.
    pub address: Option<AddressRange>,
    /// Ports; `None`: any, also for packets without ports.
    pub ports: Option<PortRange>,
}

impl Endpoint {
    /// Any address, any port.
    pub const ANY: Self = Self { address: None, ports: None };
}

/// An IP network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AddressRange {
    /// The network's address.
    pub address: IpAddr,
    /// Prefix length: up to 32 for IPv4, up to 128 for IPv6.
    pub prefix: u8,
}

impl AddressRange {
    /// Whether `address` is in the range.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(range), IpAddr::V4(address)) => {
                same_prefix(range.to_bits().into(), address.to_bits().into(), 32, self.prefix)
            }
            (IpAddr::V6(range), IpAddr::V6(address)) => {
                same_prefix(range.to_bits(), address.to_bits(), 128, self.prefix)
            }
            _ => false,
        }
    }

    /// Its first and its last address.
    pub fn ends(&self) -> (IpAddr, IpAddr) {
        let first = self.network().address;
        let last = match first {
            IpAddr::V4(v4) => {
                let hosts = u32::MAX.checked_shr(self.prefix.into()).unwrap_or(0);
                Ipv4Addr::from_bits(v4.to_bits() | hosts).into()
            }
            IpAddr::V6(v6) => {
                let hosts = u128::MAX.checked_shr(self.prefix.into()).unwrap_or(0);
                Ipv6Addr::from_bits(v6.to_bits() | hosts).into()
            }
        };
        (first, last)
    }

    /// The same network with zero host bits.
    pub fn network(&self) -> Self {
        let address = match self.address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32u32.saturating_sub(self.prefix.into())).unwrap_or(0);
                IpAddr::from(Ipv4Addr::from_bits(v4.to_bits() & mask))
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(128u32.saturating_sub(self.prefix.into())).unwrap_or(0);
                IpAddr::from(Ipv6Addr::from_bits(v6.to_bits() & mask))
            }
        };
        Self { address, prefix: self.prefix }
    }
}

/// Whether the first `prefix` of `width` bits are equal.
fn same_prefix(a: u128, b: u128, width: u8, prefix: u8) -> bool {
    (a ^ b).checked_shr(width.saturating_sub(prefix).into()).unwrap_or(0) == 0
}

/// A port range, both ends included. A flow description's list of ports becomes one filter for each range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortRange {
    /// The first port.
    pub first: u16,
    /// The last port.
    pub last: u16,
}

impl PortRange {
    /// Whether `port` is in the range.
    pub const fn contains(&self, port: u16) -> bool {
        self.first <= port && port <= self.last
    }
}

/// Type of service or traffic class under a mask (TS 29.244 8.2.5, ToS Traffic Class).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TosFilter {
    /// The value.
    pub value: u8,
    /// The mask.
    pub mask: u8,
}

impl TosFilter {
    /// Whether a packet's type of service or traffic class matches.
    pub const fn matches(&self, tos: u8) -> bool {
        (tos ^ self.value) & self.mask == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str, prefix: u8) -> AddressRange {
        AddressRange { address: text.parse().unwrap(), prefix }
    }

    #[test]
    fn an_address_range_counts_its_leading_bits_only() {
        let contains = |range: AddressRange, text: &str| range.contains(text.parse().unwrap());
        assert!(contains(range("192.0.2.77", 24), "192.0.2.1"));
        assert!(!contains(range("192.0.2.77", 24), "192.0.3.1"));
        assert!(contains(range("192.0.2.77", 0), "10.0.0.1"));
        assert!(!contains(range("192.0.2.77", 32), "192.0.2.76"));
        assert!(contains(range("2001:db8::", 32), "2001:db8:ffff::1"));
        assert!(!contains(range("2001:db8::", 32), "2001:db9::1"));
        assert!(contains(range("::", 0), "2001:db9::1"));
        assert!(!contains(range("::", 0), "192.0.2.1"));
    }

    #[test]
    fn a_filter_reads_as_the_description_that_it_came_from() {
        for text in [
            "permit out 17 from 192.0.2.0/24 5060 to assigned",
            "permit out ip from any to assigned 6000-6010",
            "permit out 6 from any 443 to 10.45.0.2/32",
        ] {
            let parsed: crate::contract::FlowDescription = text.parse().unwrap();
            assert_eq!(parsed.filters[0].to_string(), text);
        }
        let tos = Some(TosFilter { value: 0xb8, mask: 0xfc });
        let direction = Some(Direction::Uplink);
        let filter = SdfFilter { tos, direction, ..SdfFilter::default() };
        assert_eq!(filter.to_string(), "permit out ip from any to assigned, tos 0xb8/0xfc, uplink only");
    }

    #[test]
    fn tos_is_compared_under_its_mask() {
        let filter = TosFilter { value: 0xb8, mask: 0xfc };
        assert!(filter.matches(0xbb));
        assert!(!filter.matches(0xb0));
    }
}
