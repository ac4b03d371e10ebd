//! IPv6 in data networks: pools of prefixes, and the settings that apply to them.

use super::check::Findings;
use super::session::DataNetwork;
use super::text::text_value;
use pith_datapath::{FirewallRule, NetworkPolicy, UePool};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// An IPv6 network, `fd45:7069:7468::/48`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ipv6Net {
    address: Ipv6Addr,
    prefix: u8,
}

impl Ipv6Net {
    /// The network with this address and prefix length (at most 128); bits after the prefix are cleared.
    pub const fn new(address: Ipv6Addr, prefix: u8) -> Self {
        let prefix = if prefix > 128 { 128 } else { prefix };
        Self { address: Ipv6Addr::from_bits(address.to_bits() & mask(prefix)), prefix }
    }

    /// The first address, which identifies the network.
    pub const fn address(self) -> Ipv6Addr {
        self.address
    }

    /// The prefix length, 0 to 128.
    pub const fn prefix(self) -> u8 {
        self.prefix
    }

    /// Whether the network contains an address.
    pub const fn contains(self, address: Ipv6Addr) -> bool {
        address.to_bits() & mask(self.prefix) == self.address.to_bits()
    }

    /// Whether the networks have an address in common.
    pub const fn overlaps(self, other: Self) -> bool {
        self.contains(other.address) || other.contains(self.address)
    }

    /// The UPF's address in the network, in its first prefix of 64 bits, which no UE gets.
    pub const fn gateway(self) -> Ipv6Addr {
        Ipv6Addr::from_bits(self.address.to_bits() | 1)
    }
}

const fn mask(prefix: u8) -> u128 {
    match u128::MAX.checked_shl(128 - prefix as u32) {
        Some(mask) => mask,
        None => 0,
    }
}

impl fmt::Display for Ipv6Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl FromStr for Ipv6Net {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (address, prefix) = text
            .split_once('/')
            .and_then(|(address, prefix)| Some((address.parse().ok()?, prefix.parse().ok()?)))
            .filter(|(_, prefix)| *prefix <= 128)
            .ok_or_else(|| format!("'{text}' is not an IPv6 network such as fd45:7069:7468::/48"))?;
        let net = Self::new(address, prefix);
        if net.address == address {
            Ok(net)
        } else {
            Err(format!("'{text}' has bits set after its prefix: write {net}"))
        }
    }
}

text_value!(Ipv6Net);

impl DataNetwork {
    /// The pool of prefixes as a datapath type.
    pub fn ue_pool6(&self) -> Option<UePool> {
        self.pool6.map(|pool| UePool { gateway: pool.gateway().into(), prefix: pool.prefix() })
    }

    /// By how many bits the prefix of a session is shorter than 64.
    pub const fn delegation(&self) -> u8 {
        64_u8.saturating_sub(self.prefix6)
    }

    /// The UPF's addresses in the pools.
    pub fn gateways(&self) -> impl Iterator<Item = IpAddr> {
        [Some(self.gateway().into()), self.pool6.map(|pool| pool.gateway().into())].into_iter().flatten()
    }

    /// The kernel's policy for IPv6 packets. Firewall rules without addresses apply to both IP versions.
    pub fn policy6(&self) -> Option<NetworkPolicy> {
        let pool = self.ue_pool6()?;
        let firewall =
            self.firewall.iter().map(|rule| rule.0).filter(|rule| may_match(rule, IpAddr::is_ipv6));
        let routes = self.routes.iter().map(|route| route.0).filter(|route| route.via.is_ipv6());
        Some(NetworkPolicy {
            nat66: self.nat6,
            firewall: firewall.collect(),
            routes: routes.collect(),
            // The IPv6 header is longer by 20 octets.
            mss: self.mss.map(|mss| mss.saturating_sub(20)),
            ..NetworkPolicy::none(pool)
        })
    }
}

/// Whether packets of an IP version may match a firewall rule.
pub(super) fn may_match(rule: &FirewallRule, is_of_version: fn(&IpAddr) -> bool) -> bool {
    [rule.from, rule.to].iter().flatten().all(|end| is_of_version(&end.address))
}

/// Networks that cannot be prefixes of UEs.
const RESERVED: [(Ipv6Net, &str); 3] = [
    (Ipv6Net::new(Ipv6Addr::UNSPECIFIED, 8), "reserved"),
    (Ipv6Net::new(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 9), "link-local or reserved"),
    (Ipv6Net::new(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8), "multicast"),
];

impl Findings {
    /// Pools have prefixes of 64 bits for UEs, and do not overlap.
    pub(super) fn prefixes(&mut self, networks: &[DataNetwork]) {
        for (at, network) in networks.iter().enumerate() {
            let path = |setting| format!("smf.data_networks[{at}].{setting}");
            let sentence = "NAT of IPv6 needs IPv6 addresses: add 'pool6'";
            self.require(!network.nat6 || network.pool6.is_some(), path("nat6"), sentence);
            let sentence = "sessions with a prefix of IPv6 need a pool: add 'pool6'";
            self.require(network.delegation() == 0 || network.pool6.is_some(), path("prefix6"), sentence);
            let sentence = "the prefix of a session must have 48 to 64 bits";
            self.require((48..=64).contains(&network.prefix6), path("prefix6"), sentence);
            let Some(pool) = network.pool6 else { continue };
            let sentence = "a pool of IPv6 must be a network of /40 to /60, such as fd45:7069:7468::/48";
            self.require((40..=60).contains(&pool.prefix()), path("pool6"), sentence);
            let sentence =
                "must be longer than that of 'pool6' by 4 bits or more, as a pool has at least 14 sessions";
            self.require(network.prefix6 >= pool.prefix().saturating_add(4), path("prefix6"), sentence);
            if let Some((taken, what)) = RESERVED.iter().find(|(taken, _)| taken.overlaps(pool)) {
                let sentence = format!("{taken} is {what}, which UEs cannot use: choose another");
                self.require(false, path("pool6"), sentence);
            }
            let mut before = networks[..at].iter().filter_map(|other| Some((other, other.pool6?)));
            if let Some((other, taken)) = before.find(|(_, taken)| taken.overlaps(pool)) {
                let sentence = format!("overlaps the pool {taken} of '{}': choose another", other.name);
                self.require(false, path("pool6"), sentence);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn refused(networks: &str) -> String {
        let text = format!("smf:\n  data_networks:\n{networks}");
        Config::parse(&text, "f").unwrap_err().to_string()
    }

    #[test]
    fn a_pool_of_prefixes_is_checked_at_its_line() {
        for (pool6, expected) in [
            ("2001:db8::/64", "f:3:44: a pool of IPv6 must be a network of /40 to /60"),
            ("2001:db8::/32", "/40 to /60"),
            ("fe80::/48", "link-local"),
            ("ff05::/48", "multicast"),
            ("'::/48'", "reserved"),
            ("2001:db8::1/48", "write 2001:db8::/48"),
            ("10.0.0.0/48", "is not an IPv6 network"),
        ] {
            let text = refused(&format!("    - {{name: a, pool: 10.45.0.0/16, pool6: {pool6}}}\n"));
            assert!(text.contains(expected), "{text}");
        }
        let both = "    - {name: a, pool: 10.45.0.0/16, pool6: 2001:db8::/48}\n    - {name: b, pool: 10.46.0.0/16, pool6: \
                    2001:db8:0:100::/56}\n";
        assert!(
            refused(both).contains("f:4:44: overlaps the pool 2001:db8::/48 of 'a'"),
            "{}",
            refused(both)
        );
        assert!(refused("    - {name: a, pool: 10.45.0.0/16, nat6: true}\n").contains("add 'pool6'"));
    }

    #[test]
    fn the_prefix_of_a_session_is_one_of_the_pool() {
        let with = |settings: &str| format!("    - {{name: a, pool: 10.45.0.0/16, {settings}}}\n");
        for (settings, expected) in [
            ("prefix6: 56", "add 'pool6'"),
            ("pool6: 2001:db8::/48, prefix6: 47", "48 to 64 bits"),
            ("pool6: 2001:db8::/40, prefix6: 65", "48 to 64 bits"),
            ("pool6: 2001:db8::/48, prefix6: 51", "longer than that of 'pool6' by 4 bits"),
        ] {
            let text = refused(&with(settings));
            assert!(text.contains(expected), "{settings}: {text}");
        }
        let text = format!("smf:\n  data_networks:\n{}", with("pool6: 2001:db8::/48, prefix6: 56"));
        let config = Config::parse(&text, "f").unwrap();
        assert_eq!(config.smf.data_networks[0].delegation(), 8);
    }

    #[test]
    fn policies_apply_to_the_ip_version_of_their_addresses() {
        let text =
            "smf: {data_networks: [{name: a, pool: 10.45.0.0/16, pool6: 2001:db8::/48, nat6: true, mss: 1300,
            firewall: [deny down, deny up to 10.0.0.0/8, 'deny up to 2001:db8:9::/48']}]}";
        let config = Config::parse(text, "f").unwrap();
        let network = &config.smf.data_networks[0];
        let v6 = network.policy6().unwrap();
        assert_eq!(v6.pool.gateway, "2001:db8::1".parse::<IpAddr>().unwrap());
        assert_eq!((v6.firewall.len(), v6.mss, v6.nat66), (2, Some(1280), true));
        assert_eq!((network.policy().firewall.len(), network.policy().nat66), (2, false));
    }
}
