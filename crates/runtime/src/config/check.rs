//! What is wrong though every value alone is right.

use super::{Config, DataNetwork, PacketPath, Sbi, Upf};
use std::collections::HashSet;
use std::hash::Hash;

/// A setting that is wrong: its path, such as `smf.data_networks[1].pool`, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where in the configuration.
    pub path: String,
    /// What is wrong and what to do.
    pub sentence: String,
}

/// Everything that is wrong; nothing if the configuration can be used.
pub(super) fn findings(config: &Config) -> Vec<Finding> {
    let mut findings = Findings(Vec::new());
    findings.network(config);
    findings.amf(config);
    findings.sessions(config);
    findings.data_networks(&config.smf.data_networks);
    findings.sbi(&config.sbi);
    findings.shell(config);
    findings.0
}

struct Findings(Vec<Finding>);

impl Findings {
    /// Notes the sentence unless the condition holds.
    fn require(&mut self, condition: bool, path: impl Into<String>, sentence: impl Into<String>) {
        if !condition {
            self.0.push(Finding { path: path.into(), sentence: sentence.into() });
        }
    }

    /// Notes a list that is empty, too long or names something twice.
    fn list<T: Eq + Hash>(&mut self, path: &str, items: &[T], limit: usize) {
        self.require(!items.is_empty(), path, "this list is empty: name at least one");
        self.require(items.len() <= limit, path, format!("there are at most {limit} of these"));
        let different: HashSet<_> = items.iter().collect();
        self.require(different.len() == items.len(), path, "something stands here twice: remove one");
    }

    /// Limits are those of what is told to gNBs and UEs: 12 PLMNs (TS 38.413 9.2.6.2), 16 TAIs of a
    /// registration area (TS 24.501 9.11.3.9), 8 S-NSSAIs (TS 24.501 9.11.3.37).
    fn network(&mut self, config: &Config) {
        self.list("network.plmns", &config.network.plmns, 12);
        self.list("network.tracking_areas", &config.network.tracking_areas, 16);
        self.list("network.slices", &config.network.slices, 8);
        let ids: Vec<_> = config.home_network_keys.iter().map(|key| key.id).collect();
        for (at, id) in ids.iter().enumerate() {
            let path = format!("home_network_keys[{at}].id");
            self.require(*id != 0, path.clone(), "0 is the null scheme's: number keys from 1 to 255");
            self.require(!ids[..at].contains(id), path, "another key has this id: give each its own");
        }
    }

    fn amf(&mut self, config: &Config) {
        let amf = &config.amf;
        let printable = |name: &str| (1..=150).contains(&name.len()) && name.is_ascii();
        self.require(printable(&amf.name), "amf.name", "a name has 1 to 150 ASCII characters");
        self.require(amf.set <= 1023, "amf.set", "an AMF Set ID is 0 to 1023");
        self.require(amf.pointer <= 63, "amf.pointer", "an AMF Pointer is 0 to 63");
        self.list("amf.n2.addresses", &amf.n2.addresses, 8);
        self.require(amf.n2.port != 0, "amf.n2.port", "a port is 1 to 65535; gNBs expect 38412");
        self.list("amf.security.integrity", &amf.security.integrity, 3);
        self.list("amf.security.ciphering", &amf.security.ciphering, 4);
    }

    fn sessions(&mut self, config: &Config) {
        let n4 = &config.n4;
        let names: Vec<_> = n4.upfs.iter().map(|upf| &upf.name).collect();
        let addresses: Vec<_> = n4.upfs.iter().map(|upf| upf.address).collect();
        self.list("n4.upfs", &names, 64);
        self.list("n4.upfs", &addresses, 64);
        self.require((1..=10).contains(&n4.n1), "n4.n1", "a request is sent 1 to 10 times");
        self.require(!n4.t1.0.is_zero(), "n4.t1", "this must be longer than nothing, such as 1s");
        self.require(
            !n4.heartbeat.0.is_zero(),
            "n4.heartbeat",
            "this must be longer than nothing, such as 10s",
        );
        let tun = &config.upf.tun;
        let interface = (1..=15).contains(&tun.len()) && tun.bytes().all(|b| b.is_ascii_alphanumeric());
        self.require(interface, "upf.tun", "an interface has a name of 1 to 15 letters and digits");
        self.user_plane(&config.upf);
    }

    fn user_plane(&mut self, upf: &Upf) {
        let names = upf.interfaces.iter().all(|name| (1..=15).contains(&name.len()));
        self.require(names, "upf.interfaces", "an interface has a name of 1 to 15 characters");
        self.require(upf.interfaces.len() <= 64, "upf.interfaces", "there is room for 64 interfaces");
        let room = (1..=1 << 20).contains(&upf.sessions);
        self.require(room, "upf.sessions", "there is room for 1 to 1048576 sessions");
        let xdp = upf.datapath == PacketPath::Xdp;
        self.require(!xdp || !upf.nat, "upf.datapath", "XDP goes past Pith's own NAT: write nat: false too");
        let named = !upf.interfaces.is_empty();
        self.require(
            !xdp || named,
            "upf.interfaces",
            "XDP needs the interfaces of N3 and N6, such as [eth1, eth2]",
        );
    }

    fn data_networks(&mut self, networks: &[DataNetwork]) {
        let names: Vec<_> = networks.iter().map(|network| &network.name).collect();
        self.list("smf.data_networks", &names, 64);
        for (at, network) in networks.iter().enumerate() {
            let path = |setting| format!("smf.data_networks[{at}].{setting}");
            let pool = network.pool;
            let sizes = (8..=28).contains(&pool.prefix());
            self.require(sizes, path("pool"), "a pool is a network of /8 to /28, such as 10.45.0.0/16");
            let gateway = network.gateway();
            let inside = pool.contains(gateway) && gateway != pool.address();
            self.require(inside, path("gateway"), format!("the gateway must be a host of the pool {pool}"));
            self.require((1280..=9000).contains(&network.mtu), path("mtu"), "an MTU is 1280 to 9000");
            self.require(network.dns.len() <= 4, path("dns"), "there are at most 4 name servers");
            if let Some(other) = networks[..at].iter().find(|other| other.pool.overlaps(pool)) {
                let sentence =
                    format!("overlaps the pool {} of '{}': choose another", other.pool, other.name);
                self.require(false, path("pool"), sentence);
            }
        }
    }

    fn sbi(&mut self, sbi: &Sbi) {
        for (nf, root) in &sbi.external {
            let sentence = "this is where the other NF stands, such as http://10.0.0.9:8000";
            self.require(is_root(root), format!("sbi.external.{nf}"), sentence);
        }
        self.require(!sbi.request_timeout.0.is_zero(), "sbi.request_timeout", "write a time such as 5s");
        self.require(sbi.max_exchanges > 0, "sbi.max_exchanges", "at least 1 is needed");
        let body = (1 << 14..=1 << 26).contains(&sbi.max_body);
        self.require(body, "sbi.max_body", "this is 16384 (16 kB) to 67108864 (64 MB)");
    }

    fn shell(&mut self, config: &Config) {
        self.require(config.workers <= 64, "workers", "there are at most 64 shards");
        let buffer = (64..=1 << 20).contains(&config.task_buffer);
        self.require(buffer, "task_buffer", "an inbox holds 64 to 1048576");
        let api = &config.api;
        let safe = api.listen.ip().is_loopback() || api.token_file.is_some();
        let sentence = "others than this machine could reach the API: name a 'token_file' beside it";
        self.require(safe, "api.listen", sentence);
    }
}

/// `http://host:port`, with or without a path.
fn is_root(root: &str) -> bool {
    let authority = root.strip_prefix("http://").and_then(|rest| rest.split('/').next());
    let Some((host, port)) = authority.and_then(|authority| authority.rsplit_once(':')) else {
        return false;
    };
    !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(yaml: &str) -> String {
        Config::parse(yaml, "f").unwrap_err().to_string()
    }

    #[test]
    fn the_default_is_right() {
        assert_eq!(findings(&Config::default()), []);
    }

    #[test]
    fn pools_that_overlap_are_found_at_the_second() {
        let text = found(
            "smf:\n  data_networks:\n    - {name: a, pool: 10.45.0.0/16}\n    - {name: b, pool: 10.45.7.0/24}\n",
        );
        assert_eq!(text, "f:4:23: overlaps the pool 10.45.0.0/16 of 'a': choose another");
    }

    #[test]
    fn each_check_finds_what_it_is_for() {
        for (yaml, sentence) in [
            ("network: {slices: []}", "empty"),
            ("network: {plmns: [999/70, 999/70]}", "twice"),
            ("home_network_keys: [{id: 0, profile: a, private_key_file: k}]", "from 1 to 255"),
            ("amf: {name: ''}", "1 to 150"),
            ("n4: {n1: 0}", "1 to 10"),
            ("upf: {tun: a/b}", "letters and digits"),
            ("upf: {datapath: xdp, interfaces: [eth1]}", "write nat: false too"),
            ("upf: {datapath: xdp, nat: false}", "such as [eth1, eth2]"),
            ("upf: {sessions: 0}", "1 to 1048576"),
            ("smf: {data_networks: [{name: a, pool: 10.0.0.0/30}]}", "/8 to /28"),
            ("smf: {data_networks: [{name: a, pool: 10.0.0.0/16, gateway: 10.1.0.1}]}", "host of the pool"),
            ("smf: {data_networks: [{name: a, pool: 10.0.0.0/16, mtu: 100}]}", "1280"),
            ("sbi: {external: {udm: 'https://x'}}", "http://10.0.0.9:8000"),
            ("workers: 65", "64 shards"),
            ("task_buffer: 1", "64 to"),
            ("api: {listen: '0.0.0.0:80'}", "token_file"),
        ] {
            assert!(found(yaml).contains(sentence), "{yaml}: {}", found(yaml));
        }
    }
}
