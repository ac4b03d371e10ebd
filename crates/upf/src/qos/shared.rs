//! Rates shared by several sessions: a slice's, or a data network's.

use super::{Aggregates, Enforcement, MeterSource};
use crate::contract::{AddressRange, Rates, UeAddress};
use std::net::IpAddr;

/// A rate shared by all UEs of a network. A slice has its own UE addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedRate {
    /// An address of the UEs' network.
    pub network: IpAddr,
    /// Prefix length of the network.
    pub prefix: u8,
    /// The network of the IPv6 prefixes of the same UEs, if they have any.
    pub prefixes: Option<AddressRange>,
    /// The rates of all its UEs together.
    pub rates: Rates,
}

/// The meters of shared rates.
#[derive(Debug, Default)]
pub struct SharedMeters {
    networks: Vec<(SharedRate, Aggregates)>,
    none: Aggregates,
}

impl SharedMeters {
    /// Full meters of these rates.
    pub fn new(rates: &[SharedRate], enforcement: Enforcement, source: &dyn MeterSource) -> Self {
        let meter = |rate| vec![source.aggregate(rate, enforcement.burst())];
        let aggregates = |rate: &SharedRate| Aggregates {
            uplink: meter(rate.rates.uplink),
            downlink: meter(rate.rates.downlink),
        };
        let networks = rates.iter().map(|rate| (*rate, aggregates(rate))).collect();
        Self { networks, none: Aggregates::default() }
    }

    /// The meters that apply to a UE.
    pub fn of(&self, ue: UeAddress) -> &Aggregates {
        let own = [ue.v4.map(IpAddr::from), ue.v6.map(IpAddr::from)].into_iter().flatten();
        let found =
            own.clone().find_map(|address| self.networks.iter().find(|(rate, _)| rate.contains(address)));
        found.map_or(&self.none, |(_, aggregates)| aggregates)
    }
}

impl SharedRate {
    fn contains(&self, address: IpAddr) -> bool {
        if self.prefixes.is_some_and(|prefixes| prefixes.contains(address)) {
            return true;
        }
        let differ = match (self.network, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => (own.to_bits() ^ other.to_bits()).leading_zeros(),
            (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits() ^ other.to_bits()).leading_zeros(),
            _ => return false,
        };
        differ >= self.prefix.into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::OnHeap;
    use super::*;
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    #[test]
    fn a_ue_shares_the_rate_of_its_network_and_no_other() {
        let rates = Rates { uplink: 1000, downlink: 2000 };
        let prefixes = AddressRange { address: "2001:db8:46::".parse().unwrap(), prefix: 48 };
        let rate =
            SharedRate { network: "10.46.0.1".parse().unwrap(), prefix: 16, prefixes: Some(prefixes), rates };
        let meters = SharedMeters::new(&[rate], Enforcement::Shape, &OnHeap);
        let of = |c: u8, d: u8| meters.of(UeAddress::v4(Ipv4Addr::new(10, 46 + c, 0, d)));
        assert!(Arc::ptr_eq(&of(0, 2).downlink[0], &of(0, 3).downlink[0]));
        assert_eq!(of(0, 2).uplink[0].meter().peak_rate(), Some(1000));
        assert!(of(1, 2).downlink.is_empty());
        let v6 = UeAddress::v6("2001:db8::".parse().unwrap());
        assert!(meters.of(v6).uplink.is_empty());
        let v6 = UeAddress::v6("2001:db8:46:7::".parse().unwrap());
        assert!(Arc::ptr_eq(&of(0, 2).uplink[0], &meters.of(v6).uplink[0]), "one rate for both IP versions");
    }
}
