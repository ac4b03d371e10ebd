//! Networks behind UEs: framed routes (TS 23.501 5.6.14).

use std::net::IpAddr;
use std::str::FromStr;

/// An IPv4 or IPv6 network, such as `192.168.7.0/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    length: u8,
}

impl Network {
    /// Whether an address is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (own, other, width) = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => (own.to_bits().into(), other.to_bits().into(), 32u8),
            (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits(), other.to_bits(), 128),
            _ => return false,
        };
        let hosts = width - self.length;
        u128::checked_shr(own ^ other, hosts.into()).unwrap_or(0) == 0
    }
}

impl FromStr for Network {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (address, length) = text.split_once('/')?;
            let (address, length): (IpAddr, u8) = (address.parse().ok()?, length.parse().ok()?);
            let width = if address.is_ipv4() { 32 } else { 128 };
            (length <= width).then_some(Self { address, length })
        };
        parse().ok_or("a network such as 192.168.7.0/24")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_addresses_of_their_version() {
        let network = |text: &str| text.parse::<Network>().unwrap();
        let contains = |text: &str, address: &str| network(text).contains(address.parse().unwrap());
        assert!(contains("192.168.7.0/24", "192.168.7.255") && !contains("192.168.7.0/24", "192.168.8.0"));
        assert!(contains("0.0.0.0/0", "192.0.2.1") && !contains("0.0.0.0/0", "2001:db8::1"));
        assert!(contains("2001:db8:5::/48", "2001:db8:5:ff::1") && contains("::/0", "2001:db8::1"));
        assert!(contains("192.0.2.1/32", "192.0.2.1") && !contains("192.0.2.1/32", "192.0.2.2"));
        for text in ["192.0.2.0", "192.0.2.0/33", "2001:db8::/129", "/8"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
