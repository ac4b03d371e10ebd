//! Trust boundary of N4: who may send PFCP messages, and which addresses and networks rules may contain (TS
//! 33.513 4.2.2, TS 29.244 5.2).
//!
//! A rule with any other address or network is rejected; it is never applied as a rule towards N6.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use pith_pfcp::ie::NetworkInstance;

use crate::config::Config;
use crate::contract::AddressRange;

/// One or several SMFs that may use the UPF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PermittedSmf {
    /// The SMF's address, or the SMFs' network.
    pub network: AddressRange,
    /// The source port of its requests; `None`: any, as TS 29.244 4.2.2.1 permits.
    pub port: Option<u16>,
}

impl PermittedSmf {
    /// All SMFs at an address.
    pub fn at(address: IpAddr) -> Self {
        let prefix = if address.is_ipv4() { 32 } else { 128 };
        Self { network: AddressRange { address, prefix }, port: None }
    }

    fn contains(&self, peer: SocketAddr) -> bool {
        self.network.contains(peer.ip()) && self.port.is_none_or(|port| port == peer.port())
    }
}

/// Addresses of the UPF's host, which change while it runs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct HostAddresses {
    /// Networks and addresses that the host delivers to itself.
    pub local: Vec<AddressRange>,
    /// Broadcast addresses of its networks.
    pub broadcast: Vec<IpAddr>,
}

impl Config {
    /// Whether requests from this address are accepted.
    pub(crate) fn permits(&self, peer: SocketAddr) -> bool {
        self.smfs.iter().any(|smf| smf.contains(peer))
    }

    /// Whether a CP F-SEID may contain this address, to which the session's reports are sent.
    pub(crate) fn permits_endpoint(&self, address: IpAddr) -> bool {
        is_host(address) && self.smfs.iter().any(|smf| smf.network.contains(address))
    }

    /// Whether a GTP-U tunnel may have this peer. Loopback is permitted only if the UPF's own N3 is on
    /// loopback, and another address of the host only then, or if the operator lists it in `radios`.
    pub(crate) fn may_send_to(&self, peer: IpAddr) -> bool {
        let local = match peer {
            IpAddr::V4(_) => self.n3.v4.map(IpAddr::from),
            IpAddr::V6(_) => self.n3.v6.map(IpAddr::from),
        };
        let is_on_loopback = local.is_some_and(|local| local.is_loopback());
        let is_listed = self.radios.iter().any(|network| network.contains(peer));
        local.is_some()
            && (is_on_loopback || !peer.is_loopback())
            && (is_on_loopback || is_listed || !self.host.local.iter().any(|own| own.contains(peer)))
            && !self.host.broadcast.contains(&peer)
            && is_host(peer)
            && !is_without_scope(peer)
            && !self.is_own(peer)
            && (is_listed || self.radios.is_empty())
            && !self.ue_pools.iter().any(|pool| pool.contains(peer))
    }

    /// Whether a UE may have this address or prefix.
    pub(crate) fn may_be_of_ue(&self, range: AddressRange) -> bool {
        let AddressRange { address, prefix } = range;
        let mut pools =
            self.ue_pools.iter().filter(|pool| pool.address.is_ipv4() == address.is_ipv4()).peekable();
        let is_inside = |pool: &AddressRange| pool.contains(address) && pool.prefix <= prefix;
        !self.is_reserved(range) && (pools.peek().is_none() || pools.any(is_inside))
    }

    /// Whether a network may be a framed route. The UPF's host routes it to the UE: it must not have addresses of the core or of the host itself.
    pub(crate) fn may_be_behind_ue(&self, network: AddressRange) -> bool {
        let taken =
            self.ue_pools.iter().chain(&self.radios).chain(&self.core_networks).chain(&self.host.local);
        !self.is_reserved(network) && !taken.into_iter().any(|taken| overlap(*taken, network))
    }

    /// Whether N6 has a network of that name; DNNs are compared case-insensitively (TS 23.003 9.1).
    pub(crate) fn has_network(&self, instance: &NetworkInstance) -> bool {
        let name = instance.name();
        self.networks.iter().any(|network| network.eq_ignore_ascii_case(&name))
    }

    /// Addresses that no UE can have: the UPF's own, its SMFs', and those that are no host's.
    fn is_reserved(&self, range: AddressRange) -> bool {
        let holds = |address: IpAddr| range.contains(address);
        let smfs = self.smfs.iter().map(|smf| smf.network);
        NOT_OF_UES.iter().any(|reserved| overlap(*reserved, range))
            || self.own_addresses().any(holds)
            || smfs.filter(|smf| smf.prefix >= HOST_OF_SMF).any(|smf| overlap(smf, range))
    }

    fn is_own(&self, address: IpAddr) -> bool {
        self.own_addresses().any(|own| own == address)
    }

    fn own_addresses(&self) -> impl Iterator<Item = IpAddr> {
        let n3 = [self.n3.v4.map(IpAddr::from), self.n3.v6.map(IpAddr::from)];
        n3.into_iter().flatten().chain([self.n4]).chain(self.own_addresses.iter().copied())
    }
}

/// Shortest prefix of permitted SMFs that is reserved for them. A wider network may contain UEs, too: a
/// laboratory may permit all private addresses.
const HOST_OF_SMF: u8 = 24;

const fn v4(octets: [u8; 4], prefix: u8) -> AddressRange {
    let [a, b, c, d] = octets;
    AddressRange { address: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix }
}

const fn v6(first: u16, last: u16, prefix: u8) -> AddressRange {
    AddressRange { address: IpAddr::V6(Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, last)), prefix }
}

/// "This network", loopback, link-local, multicast and reserved addresses (RFC 6890); for IPv6 also
/// IPv4-mapped ones.
const NOT_OF_UES: [AddressRange; 8] = [
    v4([0; 4], 8),
    v4([127, 0, 0, 0], 8),
    v4([169, 254, 0, 0], 16),
    v4([224, 0, 0, 0], 4),
    v4([240, 0, 0, 0], 4),
    v6(0, 0, 64),
    v6(0xfe80, 0, 10),
    v6(0xff00, 0, 8),
];

/// Whether an address is a single host's.
fn is_host(address: IpAddr) -> bool {
    match address {
        // 240.0.0.0/4 is reserved, and all ones is the broadcast address (RFC 6890).
        IpAddr::V4(v4) => !matches!(v4.octets()[0], 0 | 224..=255),
        IpAddr::V6(v6) => !v6.is_unspecified() && !v6.is_multicast() && v6.to_ipv4_mapped().is_none(),
    }
}

/// A link-local IPv6 address is ambiguous without an interface.
fn is_without_scope(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

pub(crate) fn overlap(one: AddressRange, other: AddressRange) -> bool {
    one.contains(other.address) && one.prefix <= other.prefix
        || other.contains(one.address) && other.prefix <= one.prefix
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::GtpuAddress;

    fn config(n3: [u8; 4]) -> Config {
        let n3 = GtpuAddress { v4: Some(n3.into()), v6: None };
        let mut config = Config::new([10, 0, 4, 1].into(), n3, 0);
        config.smfs = vec![PermittedSmf::at([10, 0, 4, 2].into())];
        config.ue_pools = vec![v4([10, 45, 0, 0], 16)];
        config.own_addresses = vec![[10, 45, 0, 1].into()];
        config
    }

    #[test]
    fn tunnel_peers_are_hosts_other_than_the_upf() {
        let upf = config([10, 0, 3, 1]);
        assert!(upf.may_send_to([10, 0, 3, 99].into()));
        for peer in [
            "0.0.0.0",
            "0.1.2.3",
            "127.0.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "10.0.3.1",
            "10.0.4.1",
            "10.45.0.1",
            "10.45.7.7",
            "2001:db8::1",
        ] {
            assert!(!upf.may_send_to(peer.parse().unwrap()), "{peer}");
        }
        let mut named = config([10, 0, 3, 1]);
        named.radios = vec![v4([10, 0, 3, 0], 24)];
        assert!(named.may_send_to([10, 0, 3, 99].into()));
        assert!(!named.may_send_to([8, 8, 8, 8].into()), "'radios' does not contain it");
        let mut on_host = config([10, 0, 3, 1]);
        on_host.host = HostAddresses {
            local: vec![v4([10, 0, 3, 255], 32), v4([192, 0, 2, 1], 32)],
            broadcast: vec![[10, 0, 3, 255].into()],
        };
        assert!(!on_host.may_send_to([10, 0, 3, 255].into()), "a broadcast address of N3's network");
        assert!(!on_host.may_send_to([192, 0, 2, 1].into()), "another address of the host");
        on_host.radios = vec![v4([10, 0, 3, 0], 24), v4([192, 0, 2, 1], 32)];
        assert!(on_host.may_send_to([192, 0, 2, 1].into()), "a gNB on the same host, by name");
        assert!(!on_host.may_send_to([10, 0, 3, 255].into()));
        let local = config([127, 0, 0, 7]);
        assert!(local.may_send_to([127, 0, 0, 1].into()), "all is on one machine");
        assert!(!local.may_send_to([127, 0, 0, 7].into()));
        let mut v6 = upf;
        v6.n3 = GtpuAddress { v4: None, v6: Some("2001:db8::7".parse().unwrap()) };
        assert!(v6.may_send_to("2001:db8::9".parse().unwrap()));
        for peer in ["::", "::1", "ff02::1", "fe80::1", "::ffff:10.0.3.99", "2001:db8::7", "10.0.3.99"] {
            assert!(!v6.may_send_to(peer.parse().unwrap()), "{peer}");
        }
    }

    #[test]
    fn ues_have_addresses_of_the_pools() {
        let mut upf = config([10, 0, 3, 1]);
        let of = |address: IpAddr| AddressRange { address, prefix: if address.is_ipv4() { 32 } else { 64 } };
        assert!(upf.may_be_of_ue(of([10, 45, 3, 3].into())));
        assert!(upf.may_be_of_ue(of("2001:db8::".parse().unwrap())), "there is no pool of IPv6");
        for address in ["10.46.0.1", "10.45.0.1", "10.0.4.2", "fe80::", "::", "ff00::"] {
            assert!(!upf.may_be_of_ue(of(address.parse().unwrap())), "{address}");
        }
        let range = |text: &str, prefix| AddressRange { address: text.parse().unwrap(), prefix };
        upf.ue_pools.push(range("2001:db8:45::", 48));
        upf.own_addresses.push("2001:db8:45::1".parse().unwrap());
        assert!(upf.may_be_of_ue(range("2001:db8:45:100::", 56)));
        assert!(!upf.may_be_of_ue(range("2001:db8:45::", 56)), "it has the gateway");
        assert!(!upf.may_be_of_ue(range("2001:db8:45:8000::", 47)), "the pool does not contain all of it");
        assert!(!upf.may_be_of_ue(range("2001:db8:46::", 56)));
        upf.ue_pools.clear();
        assert!(upf.may_be_of_ue(of([10, 46, 0, 1].into())));
        for address in [
            "127.0.0.1",
            "169.254.169.254",
            "224.0.0.1",
            "255.255.255.255",
            "0.0.0.0",
            "10.0.4.2",
            "10.0.3.1",
        ] {
            assert!(!upf.may_be_of_ue(of(address.parse().unwrap())), "{address}");
        }
    }

    #[test]
    fn framed_routes_exclude_core_addresses() {
        let mut upf = config([10, 0, 3, 1]);
        assert!(upf.may_be_behind_ue(v4([192, 168, 7, 0], 24)));
        let networks = [v4([10, 210, 0, 0], 16), v4([10, 213, 0, 0], 16), v4([192, 0, 2, 0], 24)];
        assert!(networks.iter().all(|network| upf.may_be_behind_ue(*network)));
        upf.radios = vec![v4([10, 210, 7, 0], 24)];
        upf.core_networks = vec![v4([10, 213, 0, 9], 32)];
        upf.host.local = vec![v4([192, 0, 2, 1], 32)];
        assert!(!networks.iter().any(|network| upf.may_be_behind_ue(*network)), "radios, core and host");
        for network in [v4([10, 0, 0, 0], 8), v4([10, 45, 9, 0], 24), v4([128, 0, 0, 0], 1), v6(0, 0, 1)] {
            assert!(!upf.may_be_behind_ue(network), "{network:?}");
        }
    }
}
