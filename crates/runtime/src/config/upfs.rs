//! Selection of UPFs: what each UPF serves, its address pools, and local breakout.

use super::check::Findings;
use super::section::item;
use super::text::{Ipv4Net, list};
use super::{Config, DataNetwork};
use pith_types::{Dnn, Snssai, Tac};
use std::collections::HashSet;

item! {
    /// What a UPF of 'n4.upfs' serves. A UPF without an entry serves everything.
    UpfService {
        /// Name of the UPF in 'n4.upfs'.
        name: String,
        /// Data networks that the UPF connects to: all if absent, [] for a UPF that is only an intermediate
        /// UPF, such as one at the edge.
        data_networks: Option<Vec<Dnn>>,
        /// Slices that the UPF serves: all if empty.
        #[serde(default, with = "list")]
        slices: Vec<Snssai>,
        /// Tracking areas whose gNBs reach the UPF: all if empty. A UE elsewhere uses the UPF through an
        /// intermediate UPF that its gNB reaches.
        #[serde(default)]
        tracking_areas: Vec<Tac>,
        /// Among suitable UPFs, those with the lowest priority value are selected.
        #[serde(default = "default_priority")]
        priority: u16,
        /// Share of sessions relative to UPFs of the same priority, 1 to 1000; reduced by the load that the
        /// UPF reports.
        #[serde(default = "default_weight")]
        weight: u16,
        /// UE address pools of this UPF alone. Without them UPFs share the pool of the data network; then the
        /// routers of the data network must know the UPF of each UE, or each UPF must use NAT.
        #[serde(default)]
        pools: Vec<UpfPool>,
    }
}

item! {
    /// A UPF's own address pool for a data network.
    UpfPool {
        /// DNN of the data network.
        data_network: Dnn,
        /// The pool.
        pool: Ipv4Net,
    }
}

item! {
    /// Local breakout: destinations whose packets leave at another UPF than the anchor (TS 23.501 5.6.4.2).
    Breakout {
        /// The UPF, by its name in 'n4.upfs'; gNBs must reach it.
        upf: String,
        /// Destinations of the packets, such as [192.0.2.0/24].
        destinations: Vec<Ipv4Net>,
    }
}

const fn default_priority() -> u16 {
    100
}

const fn default_weight() -> u16 {
    1
}

impl UpfService {
    /// The UPF's own pool for a data network.
    pub fn pool(&self, network: &Dnn) -> Option<Ipv4Net> {
        self.pools.iter().find(|pool| pool.data_network == *network).map(|pool| pool.pool)
    }

    fn is_anchor(&self, network: &DataNetwork) -> bool {
        self.data_networks.as_ref().is_none_or(|networks| networks.contains(&network.name))
    }
}

impl Config {
    /// The data networks of the UPF of this process, with its own pools or the shared ones. An intermediate
    /// UPF also gets the pools of other UPFs.
    pub fn networks_of_upf(&self) -> Vec<DataNetwork> {
        let own = self.n4.upfs.iter().find(|upf| upf.address == self.upf.n4);
        let service = own.and_then(|own| self.smf.upfs.iter().find(|service| service.name == own.name));
        let networks = self.smf.data_networks.iter();
        networks.flat_map(|network| self.networks_at(service, network)).collect()
    }

    fn networks_at(&self, service: Option<&UpfService>, network: &DataNetwork) -> Vec<DataNetwork> {
        if let Some(pool) = service.and_then(|service| service.pool(&network.name)) {
            return vec![network.with_pool(pool)];
        }
        let is_before_others = service.is_some_and(|service| {
            !service.is_anchor(network)
                || network.breakouts.iter().any(|breakout| breakout.upf == service.name)
        });
        let others = self.smf.upfs.iter().filter(|_| is_before_others);
        let others = others.filter_map(|other| other.pool(&network.name));
        std::iter::once(network.clone()).chain(others.map(|pool| network.with_pool(pool))).collect()
    }
}

impl Findings {
    /// UPFs and data networks that `smf.upfs` and breakouts name must exist, and pools must not overlap.
    pub(super) fn upfs(&mut self, config: &Config) {
        let is_known = |name: &str| config.n4.upfs.iter().any(|upf| upf.name == *name);
        let mut names = HashSet::new();
        let mut pools: Vec<_> = config.smf.data_networks.iter().map(|network| network.pool).collect();
        for (at, upf) in config.smf.upfs.iter().enumerate() {
            let path = |setting: &str| format!("smf.upfs[{at}].{setting}");
            self.require(is_known(&upf.name), path("name"), "no UPF of 'n4.upfs' has this name");
            self.require(names.insert(&upf.name), path("name"), "this UPF is already listed above");
            self.require((1..=1000).contains(&upf.weight), path("weight"), "a weight must be 1 to 1000");
            for (number, UpfPool { data_network, pool }) in upf.pools.iter().enumerate() {
                let path = |setting: &str| path(&format!("pools[{number}].{setting}"));
                let known = config.smf.data_networks.iter().any(|network| network.name == *data_network);
                self.require(known, path("data_network"), "no data network of 'smf' has this name");
                let sizes = (8..=28).contains(&pool.prefix());
                self.require(
                    sizes,
                    path("pool"),
                    "a pool must be a network of /8 to /28, such as 10.46.0.0/16",
                );
                let free = pools.iter().all(|other| !other.overlaps(*pool));
                self.require(free, path("pool"), "overlaps another pool: choose another");
                pools.push(*pool);
            }
        }
        for (at, network) in config.smf.data_networks.iter().enumerate() {
            for (number, breakout) in network.breakouts.iter().enumerate() {
                let path = |setting| format!("smf.data_networks[{at}].breakouts[{number}].{setting}");
                self.require(is_known(&breakout.upf), path("upf"), "no UPF of 'n4.upfs' has this name");
                self.list(&path("destinations"), &breakout.destinations, 64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPFS: &str = "n4:\n  upfs:\n    - {name: centre, address: 127.0.0.7:8805}\n    - {name: edge, address: 127.0.0.8:8805}\n";

    fn pools(smf: &str, n4: &str) -> Vec<String> {
        let yaml = format!("{UPFS}{smf}upf: {{n4: '{n4}:8805'}}\n");
        let networks = Config::parse(&yaml, "f").unwrap().networks_of_upf();
        networks.iter().map(|network| network.pool.to_string()).collect()
    }

    #[test]
    fn a_upf_has_the_pools_of_its_sessions() {
        let own =
            "smf:\n  upfs:\n    - {name: centre, pools: [{data_network: internet, pool: 10.46.0.0/16}]}\n";
        assert_eq!(pools(own, "127.0.0.7"), ["10.46.0.0/16"]);
        assert_eq!(pools(own, "127.0.0.8"), ["10.45.0.0/16"], "an anchor");
        let before = format!("{own}    - {{name: edge, data_networks: []}}\n");
        assert_eq!(pools(&before, "127.0.0.8"), ["10.45.0.0/16", "10.46.0.0/16"]);
        assert_eq!(pools("", "127.0.0.9"), ["10.45.0.0/16"]);
    }

    #[test]
    fn each_check_reports_its_finding() {
        for (smf, sentence) in [
            ("upfs: [{name: other}]", "no UPF of 'n4.upfs'"),
            ("upfs: [{name: edge}, {name: edge}]", "already listed above"),
            ("upfs: [{name: edge, weight: 0}]", "1 to 1000"),
            ("upfs: [{name: edge, pools: [{data_network: x, pool: 10.46.0.0/16}]}]", "no data network"),
            ("upfs: [{name: edge, pools: [{data_network: internet, pool: 10.45.0.0/16}]}]", "overlaps"),
            ("upfs: [{name: edge, pools: [{data_network: internet, pool: 10.46.0.0/30}]}]", "/8 to /28"),
            (
                "data_networks: [{name: a, pool: 10.0.0.0/16, breakouts: [{upf: x, destinations: [192.0.2.0/24]}]}]",
                "no UPF of 'n4.upfs'",
            ),
            (
                "data_networks: [{name: a, pool: 10.0.0.0/16, breakouts: [{upf: edge, destinations: []}]}]",
                "at least one",
            ),
        ] {
            let text = Config::parse(&format!("{UPFS}smf: {{{smf}}}\n"), "f").unwrap_err().to_string();
            assert!(text.contains(sentence), "{smf}: {text}");
        }
    }
}
