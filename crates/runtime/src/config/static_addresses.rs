//! Ranges of static UE addresses in the pools of data networks.

use super::check::Findings;
use super::{Config, DataNetwork};
use pith_nf::kit::{IpNetwork, overlap};
use std::net::IpAddr;

impl Findings {
    /// A range of static addresses is a part of a pool of its data network, and is listed once.
    pub(super) fn static_addresses(&mut self, config: &Config) {
        for (at, network) in config.smf.data_networks.iter().enumerate() {
            let ranges: Vec<_> =
                network.static_addresses.iter().map(|range| (range.0.address, range.0.prefix)).collect();
            for (number, range) in ranges.iter().enumerate() {
                let path = format!("smf.data_networks[{at}].static_addresses[{number}]");
                if let Some(sentence) = fault(config, network, *range, &ranges[..number]) {
                    self.require(false, path, sentence);
                }
            }
        }
    }
}

fn fault(config: &Config, network: &DataNetwork, range: IpNetwork, before: &[IpNetwork]) -> Option<String> {
    let contains = |(pool, prefix): IpNetwork| prefix <= range.1 && overlap((pool, prefix), range);
    if !pools(config, network).any(contains) {
        return Some("must be a part of 'pool', of 'pool6', or of a UPF's pool for this data network".into());
    }
    let host = |address: IpAddr| (address, if address.is_ipv4() { 32 } else { 128 });
    if let Some(gateway) = network.gateways().find(|gateway| overlap(host(*gateway), range)) {
        return Some(format!("contains the gateway {gateway}: choose another part of the pool"));
    }
    if range.0.is_ipv6() && range.1 > network.prefix6 {
        return Some(format!(
            "must have whole prefixes of sessions, which have {} bits ('prefix6')",
            network.prefix6
        ));
    }
    before.iter().any(|other| overlap(*other, range)).then(|| "overlaps a range that is listed before".into())
}

/// The pools of a data network, with those of UPFs for it.
fn pools(config: &Config, network: &DataNetwork) -> impl Iterator<Item = IpNetwork> {
    let of_upfs = config.smf.upfs.iter().filter_map(|upf| upf.pool(&network.name));
    let v4 = of_upfs.chain([network.pool]).map(|pool| (pool.address().into(), pool.prefix()));
    v4.chain(network.pool6.map(|pool| (pool.address().into(), pool.prefix())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(settings: &str) -> String {
        let upfs = "upfs: [{name: upf, pools: [{data_network: a, pool: 10.46.0.0/16}]}]";
        let text = format!("smf: {{{upfs}, data_networks: [{{name: a, pool: 10.45.0.0/16, {settings}}}]}}");
        Config::parse(&text, "f").err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn static_ranges_are_parts_of_the_pools() {
        let good = "pool6: 2001:db8::/48, static_addresses: [10.45.255.0/24, 10.46.9.0/28, '2001:db8:0:ff00::/56', 10.45.3.7]";
        assert_eq!(found(good), "");
        for (settings, expected) in [
            ("static_addresses: [10.47.0.0/24]", "must be a part of 'pool'"),
            ("static_addresses: [10.44.0.0/15]", "must be a part of 'pool'"),
            ("static_addresses: ['2001:db8:0:ff00::/56']", "must be a part of 'pool'"),
            ("static_addresses: [10.45.0.0/24]", "contains the gateway 10.45.0.1"),
            ("pool6: 2001:db8::/48, static_addresses: ['2001:db8::/56']", "contains the gateway 2001:db8::1"),
            (
                "pool6: 2001:db8::/48, prefix6: 56, static_addresses: ['2001:db8:0:ff80::/57']",
                "whole prefixes of sessions, which have 56 bits",
            ),
            ("static_addresses: [10.45.8.0/21, 10.45.9.0/24]", "overlaps a range"),
            ("static_addresses: [x]", "is not a network"),
        ] {
            assert!(found(settings).contains(expected), "{settings}: {}", found(settings));
        }
    }
}
