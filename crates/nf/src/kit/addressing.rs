//! Static addresses and framed routes of a subscription, for a slice and data network (TS 23.501 5.8.2.2.1, 5.6.14; TS 29.503
//! `DnnConfiguration`).

use pith_sbi::nudm_sdm::{FrameRouteInfo, IpAddress};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network: its first address and prefix length.
pub type IpNetwork = (IpAddr, u8);

/// Framed routes of a session at most; a UPF accepts no more.
const MAX_ROUTES: usize = 64;

/// The prefix length of a UE's link.
const LINK_PREFIX: u8 = 64;

/// Networks that cannot be behind a UE: 'this network', loopback, link-local and multicast (RFC 6890).
const NOT_BEHIND_UES: [IpNetwork; 7] = [
    (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 8),
    (IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), 8),
    (IpAddr::V4(Ipv4Addr::new(169, 254, 0, 0)), 16),
    (IpAddr::V4(Ipv4Addr::new(224, 0, 0, 0)), 3),
    (IpAddr::V6(Ipv6Addr::UNSPECIFIED), 64),
    (IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)), 10),
    (IpAddr::V6(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0)), 8),
];

/// Static addresses and framed routes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Addressing {
    /// Static IPv4 address; without it, the session has a dynamic one.
    pub v4: Option<Ipv4Addr>,
    /// Static IPv6 prefix, of 48 to 64 bits.
    pub v6: Option<(Ipv6Addr, u8)>,
    /// Networks behind the UE, of both IP versions.
    pub framed_routes: Vec<IpNetwork>,
}

impl Addressing {
    /// The static addresses and framed routes in subscription data. Of an IPv6 address, the prefix of 64 bits counts. The error is a
    /// sentence that names the value.
    pub fn of<'a>(
        addresses: &[IpAddress],
        routes: impl Iterator<Item = &'a FrameRouteInfo>,
    ) -> Result<Self, String> {
        let mut addressing = Self::default();
        for address in addresses {
            let is_second = match address {
                IpAddress::Ipv4(v4) => addressing.v4.replace(*v4).is_some(),
                IpAddress::Ipv6(v6) => {
                    let upper = v6.to_bits() >> LINK_PREFIX << LINK_PREFIX;
                    addressing.v6.replace((Ipv6Addr::from_bits(upper), LINK_PREFIX)).is_some()
                }
                IpAddress::Ipv6Prefix(text) => addressing.v6.replace(static_prefix(text)?).is_some(),
            };
            if is_second {
                return Err("'staticIpAddress' has at most one address of each IP version".into());
            }
        }
        for route in routes {
            for text in route.ipv4_mask.iter().chain(&route.ipv6_prefix) {
                let network = framed_route(text)?;
                if !addressing.framed_routes.contains(&network) {
                    addressing.framed_routes.push(network);
                }
            }
        }
        if addressing.framed_routes.len() > MAX_ROUTES {
            return Err(format!("a session has at most {MAX_ROUTES} framed routes"));
        }
        Ok(addressing)
    }

    /// Those of these IP versions.
    #[must_use]
    pub fn of_versions(mut self, v4: bool, v6: bool) -> Self {
        self.v4 = self.v4.filter(|_| v4);
        self.v6 = self.v6.filter(|_| v6);
        self.framed_routes.retain(|(address, _)| if address.is_ipv4() { v4 } else { v6 });
        self
    }

    /// Whether all addresses are dynamic, and there are no framed routes.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The addresses and networks that no other session can have.
    pub fn networks(&self) -> impl Iterator<Item = IpNetwork> {
        let v4 = self.v4.map(|v4| (v4.into(), 32));
        let v6 = self.v6.map(|(prefix, length)| (prefix.into(), length));
        v4.into_iter().chain(v6).chain(self.framed_routes.iter().copied())
    }
}

fn static_prefix(text: &str) -> Result<(Ipv6Addr, u8), String> {
    match network(text) {
        Some((IpAddr::V6(prefix), length)) if (48..=LINK_PREFIX).contains(&length) => Ok((prefix, length)),
        _ => Err(format!(
            "'{text}' in 'staticIpAddress' is no IPv6 prefix of 48 to 64 bits such as 2001:db8:45:ff01::/64"
        )),
    }
}

fn framed_route(text: &str) -> Result<IpNetwork, String> {
    let Some(network) = network(text) else {
        return Err(format!(
            "the framed route '{text}' is no network such as 192.0.2.0/24 or 2001:db8:5::/48"
        ));
    };
    match NOT_BEHIND_UES.iter().find(|reserved| overlap(**reserved, network)) {
        None => Ok(network),
        Some((address, prefix)) => Err(format!(
            "the framed route {text} has addresses of {address}/{prefix}, which no UE can have behind it"
        )),
    }
}

/// Parses a network without bits after its prefix, which has at least one bit.
fn network(text: &str) -> Option<IpNetwork> {
    let (address, prefix) = text.split_once('/')?;
    let (address, prefix): (IpAddr, u8) = (address.parse().ok()?, prefix.parse().ok()?);
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let is_network = (1..=longest).contains(&prefix) && first_and_last((address, prefix)).0 == bits(address);
    is_network.then_some((address, prefix))
}

/// Whether two networks have an address in common.
pub fn overlap(one: IpNetwork, other: IpNetwork) -> bool {
    let ((first, last), (from, to)) = (first_and_last(one), first_and_last(other));
    one.0.is_ipv4() == other.0.is_ipv4() && first <= to && from <= last
}

/// The first and the last address of a network as numbers, which are in order within an IP version.
pub fn first_and_last((address, prefix): IpNetwork) -> (u128, u128) {
    let host_bits = if address.is_ipv4() { 32_u32 } else { 128 }.saturating_sub(prefix.into());
    let mask = 1_u128.checked_shl(host_bits).map_or(u128::MAX, |size| size - 1);
    (bits(address) & !mask, bits(address) | mask)
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u32::from(v4).into(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(text: &str) -> FrameRouteInfo {
        let mut route = FrameRouteInfo::default();
        *(if text.contains(':') { &mut route.ipv6_prefix } else { &mut route.ipv4_mask }) = Some(text.into());
        route
    }

    fn of(addresses: &[IpAddress], routes: &[&str]) -> Result<Addressing, String> {
        let routes: Vec<_> = routes.iter().map(|text| route(text)).collect();
        Addressing::of(addresses, routes.iter())
    }

    #[test]
    fn static_addresses_and_framed_routes_are_read_from_subscription_data() {
        let v4 = IpAddress::Ipv4(Ipv4Addr::new(10, 45, 255, 7));
        let v6 = IpAddress::Ipv6("2001:db8:45:ff01::77".parse().unwrap());
        let read = of(&[v4.clone(), v6], &["192.168.7.0/24", "2001:db8:5::/48", "192.168.7.0/24"]).unwrap();
        assert_eq!(read.v4, Some(Ipv4Addr::new(10, 45, 255, 7)));
        assert_eq!(read.v6, Some(("2001:db8:45:ff01::".parse().unwrap(), 64)));
        let shown = |network: &IpNetwork| format!("{}/{}", network.0, network.1);
        let routes: Vec<_> = read.framed_routes.iter().map(shown).collect();
        assert_eq!(routes, ["192.168.7.0/24", "2001:db8:5::/48"]);
        let of_v4 = read.of_versions(true, false);
        assert_eq!((of_v4.v6, of_v4.framed_routes.len()), (None, 1));
        assert_eq!(of_v4.networks().count(), 2);
        let prefix = IpAddress::Ipv6Prefix("2001:db8:45:ff00::/56".into());
        assert_eq!(of(&[prefix], &[]).unwrap().v6, Some(("2001:db8:45:ff00::".parse().unwrap(), 56)));
        assert!(of(&[v4.clone(), v4], &[]).unwrap_err().contains("at most one"));
    }

    #[test]
    fn wrong_values_are_named() {
        for text in ["2001:db8::1/64", "2001:db8::/47", "2001:db8::/65", "10.0.0.0/24", "2001:db8::"] {
            assert!(of(&[IpAddress::Ipv6Prefix(text.into())], &[]).unwrap_err().contains(text), "{text}");
        }
        for text in ["192.168.7.1/24", "0.0.0.0/0", "192.168.7.0", "192.168.7.0/33", "::/0", "x"] {
            assert!(of(&[], &[text]).unwrap_err().contains("is no network"), "{text}");
        }
        for text in [
            "127.0.0.0/8",
            "126.0.0.0/7",
            "169.254.3.0/24",
            "224.0.0.0/4",
            "255.255.255.255/32",
            "fe80::/64",
            "::/1",
        ] {
            assert!(of(&[], &[text]).unwrap_err().contains("no UE can have"), "{text}");
        }
        let many: Vec<_> = (0..65).map(|number| format!("172.16.{number}.0/24")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        assert!(of(&[], &many).unwrap_err().contains("at most 64"));
    }

    #[test]
    fn networks_overlap_within_an_ip_version() {
        let network = |text: &str| network(text).unwrap();
        assert!(overlap(network("10.0.0.0/8"), network("10.45.0.0/16")));
        assert!(overlap(network("10.45.0.0/16"), network("10.0.0.0/8")));
        assert!(!overlap(network("10.45.0.0/16"), network("10.46.0.0/16")));
        assert!(!overlap(network("128.0.0.0/1"), network("::/1")));
    }
}
