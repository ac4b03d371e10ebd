//! Checks that involve several settings, and ranges of single ones.

use super::{
    Config, DataNetwork, Emergency, EmergencyNumber, ExternalNf, ExternalSecurity, Ipv4Net, N2, PacketPath,
    PredefinedRule, Residency, Sbi, SbiSecurity, SctpMode, StateEngine, StateSync,
};
use pith_datapath::{FirewallRule, NetworkPolicy, UePool};
use pith_nas::ie::EmergencyNumberList;
use pith_nf::amf::LocalTime;
use pith_ngap::is_amf_name;
use pith_types::{Snssai, five_qi};
use pith_upf::contract::{AddressRange, Direction};
use std::collections::HashSet;
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// An invalid setting: its path, such as `smf.data_networks[1].pool`, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Path of the setting.
    pub path: String,
    /// The problem and what to do about it.
    pub sentence: String,
}

/// All findings; none if the configuration can be used.
pub(super) fn findings(config: &Config) -> Vec<Finding> {
    let mut findings = Findings(Vec::new());
    findings.network(config);
    findings.amf(config);
    findings.sessions(config);
    findings.data_networks(config);
    findings.static_addresses(config);
    findings.prefixes(&config.smf.data_networks);
    findings.upfs(config);
    findings.n4_peers(config);
    findings.n6(config);
    findings.sbi(&config.sbi);
    findings.shell(config);
    findings.0
}

pub(super) struct Findings(Vec<Finding>);

impl Findings {
    /// Adds a finding unless the condition holds.
    pub(super) fn require(&mut self, condition: bool, path: impl Into<String>, sentence: impl Into<String>) {
        if !condition {
            self.0.push(Finding { path: path.into(), sentence: sentence.into() });
        }
    }

    /// Adds a finding if a list is empty, too long or has an entry twice.
    pub(super) fn list<T: Eq + Hash>(&mut self, path: &str, items: &[T], limit: usize) {
        self.require(!items.is_empty(), path, "this list is empty: name at least one");
        self.require(items.len() <= limit, path, format!("there are at most {limit} of these"));
        let different: HashSet<_> = items.iter().collect();
        self.require(different.len() == items.len(), path, "an entry occurs twice: remove one");
    }

    /// The limits are those of messages to gNBs and UEs: 12 PLMNs (TS 38.413 9.2.6.2), 16 TAIs of a
    /// registration area (TS 24.501 9.11.3.9), 8 S-NSSAIs (TS 24.501 9.11.3.37).
    fn network(&mut self, config: &Config) {
        self.list("network.plmns", &config.network.plmns, 12);
        self.list("network.tracking_areas", &config.network.tracking_areas, 16);
        self.list("network.slices", &config.network.slices, 8);
        let ids: Vec<_> = config.home_network_keys.iter().map(|key| key.id).collect();
        for (at, id) in ids.iter().enumerate() {
            let path = format!("home_network_keys[{at}].id");
            self.require(
                *id != 0,
                path.clone(),
                "0 is reserved for the null scheme: number keys from 1 to 255",
            );
            self.require(!ids[..at].contains(id), path, "another key has this id: give each its own");
        }
    }

    fn amf(&mut self, config: &Config) {
        let amf = &config.amf;
        let sentence =
            "a name has 1 to 150 letters, digits, spaces and characters of '()+,-./:=?, as NGAP has it";
        self.require(is_amf_name(&amf.name), "amf.name", sentence);
        self.require(amf.set <= 1023, "amf.set", "an AMF Set ID must be 0 to 1023");
        self.require(amf.pointer <= 63, "amf.pointer", "an AMF Pointer must be 0 to 63");
        let most = (1000..=1 << 24).contains(&amf.max_ues);
        self.require(most, "amf.max_ues", "this must be 1000 to 16777216");
        self.slices_of_amfs(config);
        self.slice_instances(config);
        self.list("amf.n2.addresses", &amf.n2.addresses, 8);
        self.require(amf.n2.port != 0, "amf.n2.port", "a port must be 1 to 65535; gNBs expect 38412");
        self.n2(&amf.n2);
        self.list("amf.security.integrity", &amf.security.integrity, 3);
        self.list("amf.security.ciphering", &amf.security.ciphering, 4);
        if let Some(Err(error)) = amf.time_zone.as_deref().map(str::parse::<LocalTime>) {
            self.require(false, "amf.time_zone", error.to_string());
        }
        if let Some(names) = &amf.network_name {
            let is_name = |name: &String| (1..=60).contains(&name.chars().count());
            let are_names = is_name(&names.full) && names.short.as_ref().is_none_or(is_name);
            self.require(are_names, "amf.network_name", "a name has 1 to 60 characters");
        }
        let levels = &amf.paging_priorities;
        let are_levels = levels.len() <= 8 && levels.iter().all(|level| (1..=15).contains(level));
        self.require(are_levels, "amf.paging_priorities", "list at most 8 ARP priority levels, each 1 to 15");
        if let Some(mico) = &amf.mico {
            let has_time = !mico.t3512.0.is_zero();
            self.require(has_time, "amf.mico.t3512", "this must be longer than 0, such as 12h");
        }
        if let Some(emergency) = &amf.emergency {
            self.emergency(config, emergency);
        }
    }

    fn slices_of_amfs(&mut self, config: &Config) {
        let slices = &config.network.slices;
        let known = |some: &[Snssai]| some.iter().all(|slice| slices.contains(slice));
        self.require(
            known(&config.amf.slices),
            "amf.slices",
            "'network.slices' does not have that slice: add it",
        );
        for (at, amfs) in config.nssf.amfs.iter().enumerate() {
            let path = |setting: &str| format!("nssf.amfs[{at}].{setting}");
            let is_known = known(&amfs.slices) && !amfs.slices.is_empty();
            self.require(is_known, path("slices"), "list one or more slices of 'network.slices'");
            let is_one = amfs.set.is_some() == amfs.instances.is_empty();
            self.require(is_one, path("set"), "name either an AMF Set or instances");
            self.require(amfs.set.unwrap_or(0) <= 1023, path("set"), "an AMF Set ID must be 0 to 1023");
        }
    }

    fn slice_instances(&mut self, config: &Config) {
        let network = &config.network;
        for (at, instance) in config.nssf.slice_instances.iter().enumerate() {
            let path = |setting: &str| format!("nssf.slice_instances[{at}].{setting}");
            let sentence = "write 1 to 64 letters, digits, '-', '_' and '.'";
            self.require(is_nsi_id(&instance.id), path("id"), sentence);
            let known = |slice| network.slices.contains(slice);
            let has_slices = !instance.slices.is_empty() && instance.slices.iter().all(known);
            self.require(has_slices, path("slices"), "list one or more slices of 'network.slices'");
            let is_known = instance.tracking_areas.iter().all(|tac| network.tracking_areas.contains(tac));
            let sentence = "'network.tracking_areas' does not have that one: add it";
            self.require(is_known, path("tracking_areas"), sentence);
        }
        let are_ids = config.smf.slice_instances.iter().all(|id| is_nsi_id(id));
        let sentence = "write ids of 'nssf.slice_instances': letters, digits, '-', '_' and '.'";
        self.require(are_ids, "smf.slice_instances", sentence);
    }

    fn emergency(&mut self, config: &Config, emergency: &Emergency) {
        let path = |setting: &str| format!("amf.emergency.{setting}");
        let networks = &config.smf.data_networks;
        let has_network = networks.iter().any(|network| network.name == emergency.dnn);
        self.require(
            has_network,
            path("dnn"),
            "'smf.data_networks' has no data network of that name: add one",
        );
        let has_slice = config.amf_slices().contains(&emergency.slice);
        self.require(has_slice, path("slice"), "'network.slices' does not have that slice: add it");
        let fits = five_qi::is_standardised(emergency.five_qi) && !five_qi::is_gbr(emergency.five_qi);
        let sentence = "choose a standardised 5QI without guaranteed bit rate: IMS signalling has 5";
        self.require(fits, path("five_qi"), sentence);
        let arp = (1..=15).contains(&emergency.arp_priority);
        self.require(arp, path("arp_priority"), "an ARP priority level is 1 (first) to 15");
        let most = (1..=65_536).contains(&emergency.max_unauthenticated);
        self.require(most, path("max_unauthenticated"), "this must be 1 to 65536");
        let has_time = !emergency.t3512.0.is_zero();
        self.require(has_time, path("t3512"), "this must be longer than 0, such as 10min");
        self.emergency_numbers(&emergency.numbers);
    }

    fn emergency_numbers(&mut self, numbers: &[EmergencyNumber]) {
        let is_number =
            |text: &str| (1..=20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        for (at, number) in numbers.iter().enumerate() {
            let path = format!("amf.emergency.numbers[{at}].number");
            self.require(is_number(&number.number), path, "write 1 to 20 digits in quotes, such as '110'");
        }
        let octets: usize = numbers.iter().map(|number| 2 + number.number.len().div_ceil(2)).sum();
        let fits = octets <= EmergencyNumberList::MAX_OCTETS;
        let sentence =
            "these do not fit a message to UEs: list twelve numbers of three or four digits at most";
        self.require(fits, "amf.emergency.numbers", sentence);
    }

    fn n2(&mut self, n2: &N2) {
        let multi_homed = n2.addresses.len() > 1;
        let by_kernel = matches!(n2.sctp, SctpMode::Auto | SctpMode::Kernel);
        let sentence = "more than one address needs the kernel's SCTP: write 'sctp: kernel', or one address";
        self.require(!multi_homed || by_kernel, "amf.n2.addresses", sentence);
        let several = multi_homed && n2.addresses.iter().any(IpAddr::is_unspecified);
        let sentence = "0.0.0.0 and :: mean all addresses: list no other address";
        self.require(!several, "amf.n2.addresses", sentence);
        if !n2.endpoints.is_empty() {
            let further = n2.endpoints.iter().map(|endpoint| endpoint.address);
            let all: Vec<_> = n2.addresses.iter().copied().chain(further).collect();
            self.list("amf.n2.endpoints", &all, 32);
            let sentence = "gNBs must be able to connect to each address: 0.0.0.0 and :: are none";
            self.require(!all.iter().any(IpAddr::is_unspecified), "amf.n2.endpoints", sentence);
        }
        let share = (1..=16_384).contains(&n2.associations_per_address);
        self.require(share, "amf.n2.associations_per_address", "this must be 1 to 16384");
        for (at, gnb) in n2.gnbs.iter().enumerate() {
            let path = |setting| format!("amf.n2.gnbs[{at}].{setting}");
            let sentence = "write it as 'pith gnb list' shows it, such as 999/70-gnb-000001";
            self.require(gnb.has_valid_id(), path("id"), sentence);
            let own = n2.gnbs[..at].iter().all(|other| !other.id.eq_ignore_ascii_case(&gnb.id));
            self.require(own, path("id"), "this gNB is already listed above: add its addresses there");
            self.list(&path("addresses"), &gnb.addresses, 8);
        }
    }

    fn sessions(&mut self, config: &Config) {
        let n4 = &config.n4;
        let names: Vec<_> = n4.upfs.iter().map(|upf| &upf.name).collect();
        let addresses: Vec<_> = n4.upfs.iter().map(|upf| upf.address).collect();
        self.list("n4.upfs", &names, 64);
        self.list("n4.upfs", &addresses, 64);
        self.require((1..=10).contains(&n4.n1), "n4.n1", "this must be 1 to 10");
        self.require(!n4.t1.0.is_zero(), "n4.t1", "this must be longer than 0, such as 1s");
        self.require(!n4.heartbeat.0.is_zero(), "n4.heartbeat", "this must be longer than 0, such as 10s");
        let rq_timer = config.smf.timers.rq_timer.0.as_secs();
        let is_sendable = (2..=186 * 60).contains(&rq_timer);
        self.require(is_sendable, "smf.timers.rq_timer", "this must be 2s to 186min, such as 1min");
        let tun = &config.upf.tun;
        let interface = (1..=15).contains(&tun.len()) && tun.bytes().all(|b| b.is_ascii_alphanumeric());
        self.require(interface, "upf.tun", "an interface has a name of 1 to 15 letters and digits");
        self.user_plane(config);
        self.predefined_rules(&config.upf.predefined_rules);
    }

    fn user_plane(&mut self, config: &Config) {
        let upf = &config.upf;
        let names = upf.interfaces.iter().all(|name| (1..=15).contains(&name.len()));
        self.require(names, "upf.interfaces", "an interface has a name of 1 to 15 characters");
        self.require(upf.interfaces.len() <= 64, "upf.interfaces", "at most 64 interfaces are supported");
        let known = upf.tunnel_interfaces.iter().all(|name| upf.interfaces.contains(name));
        self.require(known, "upf.tunnel_interfaces", "each of these must also be listed in 'interfaces'");
        let room = (1..=1 << 20).contains(&upf.sessions);
        self.require(room, "upf.sessions", "this must be 1 to 1048576");
        let xdp = upf.datapath == PacketPath::Xdp;
        let by_kernel =
            |network: &DataNetwork| !NetworkPolicy { port_blocks: None, ..network.policy() }.is_none();
        let carries = !config.smf.data_networks.iter().all(by_kernel) || config.smf.data_networks.is_empty();
        let sentence =
            "XDP bypasses firewall, routes and MSS, and every data network has one of these: write auto";
        self.require(!xdp || carries, "upf.datapath", sentence);
        let named = !upf.interfaces.is_empty();
        self.require(
            !xdp || named,
            "upf.interfaces",
            "XDP needs the interfaces of N3 and N6, such as [eth1, eth2]",
        );
    }

    fn predefined_rules(&mut self, rules: &[PredefinedRule]) {
        for (at, rule) in rules.iter().enumerate() {
            let path = |setting| format!("upf.predefined_rules[{at}].{setting}");
            self.require(!rule.name.is_empty(), path("name"), "a rule needs a name");
            let own = rules[..at].iter().all(|other| other.name != rule.name);
            self.require(own, path("name"), "another rule has this name: give each its own");
            self.require(!rule.filters.is_empty(), path("filters"), "list at least one filter");
            let useful = rule.drop != rule.mbr.is_some();
            let sentence = "write either 'drop: true' or 'mbr'";
            self.require(useful, path("drop"), sentence);
        }
    }

    fn data_networks(&mut self, config: &Config) {
        let networks = &config.smf.data_networks;
        let names: Vec<_> = networks.iter().map(|network| &network.name).collect();
        self.list("smf.data_networks", &names, 64);
        for (at, network) in networks.iter().enumerate() {
            let path = |setting| format!("smf.data_networks[{at}].{setting}");
            let pool = network.pool;
            let sizes = (8..=28).contains(&pool.prefix());
            self.require(sizes, path("pool"), "a pool must be a network of /8 to /28, such as 10.45.0.0/16");
            if let Some((taken, what)) = RESERVED.iter().find(|(taken, _)| overlaps(*taken, pool)) {
                let (address, prefix) = taken;
                let sentence = format!("{address}/{prefix} is {what}, which UEs cannot use: choose another");
                self.require(false, path("pool"), sentence);
            }
            let gateway = network.gateway();
            let inside = pool.contains(gateway) && gateway != pool.address();
            self.require(inside, path("gateway"), format!("the gateway must be a host of the pool {pool}"));
            let is_known = network.ladn.iter().all(|tac| config.network.tracking_areas.contains(tac));
            self.require(is_known, path("ladn"), "'network.tracking_areas' does not have that area: add it");
            self.require((1280..=9000).contains(&network.mtu), path("mtu"), "an MTU must be 1280 to 9000");
            self.require(network.dns.len() <= 4, path("dns"), "there are at most 4 name servers");
            self.require(network.p_cscf.len() <= 4, path("p_cscf"), "there are at most 4 P-CSCFs");
            let is_host = |it: &IpAddr| !(it.is_unspecified() || it.is_multicast() || it.is_loopback());
            let are_hosts = network.p_cscf.iter().all(is_host);
            self.require(are_hosts, path("p_cscf"), "a P-CSCF must have an address that UEs can send to");
            if let Some(other) = networks[..at].iter().find(|other| other.pool.overlaps(pool)) {
                let sentence =
                    format!("overlaps the pool {} of '{}': choose another", other.pool, other.name);
                self.require(false, path("pool"), sentence);
            }
        }
    }

    fn n6(&mut self, config: &Config) {
        let mut taken = HashSet::new();
        for (at, network) in config.smf.data_networks.iter().enumerate() {
            let path = |setting: &str| format!("smf.data_networks[{at}].{setting}");
            let mss = network.mss.is_none_or(|mss| (536..=8960).contains(&mss));
            self.require(mss, path("mss"), "an MSS must be 536 to 8960");
            let own = network.nat_addresses.iter().all(|address| taken.insert(*address));
            self.require(
                own,
                path("nat_addresses"),
                "an address is already listed here or above: remove one",
            );
            self.port_blocks(config, network, &path);
            for (number, rule) in network.firewall.iter().enumerate() {
                let path = format!("{}[{number}]", path("firewall"));
                self.firewall_rule(network, &rule.0, path);
            }
            for (number, route) in network.routes.iter().enumerate() {
                let path = format!("{}[{number}]", path("routes"));
                self.require(
                    route.0.via.is_ipv4() || network.pool6.is_some(),
                    path,
                    "this data network is IPv4 only, and so must be its routes",
                );
            }
            for (number, permit) in network.reach.iter().enumerate() {
                let path = format!("{}[{number}]", path("reach"));
                let sentence = "this data network is IPv4 only, and so must be the addresses in 'reach'";
                self.require(permit.0.to.address.is_ipv4() || network.pool6.is_some(), path, sentence);
            }
        }
    }

    fn port_blocks(&mut self, config: &Config, network: &DataNetwork, path: &dyn Fn(&str) -> String) {
        let ports = (64..=64_512).contains(&network.nat_ports);
        self.require(ports, path("nat_ports"), "a UE must have 64 to 64512 ports");
        let policy = network.policy();
        let Some(blocks) = policy.port_blocks.filter(|_| ports) else { return };
        self.require(config.upf.nat, path("nat_addresses"), "these need NAT: write 'upf: {nat: true}' too");
        let sentence = format!(
            "{} has more UE addresses than can get {} ports each ({}): add addresses, reduce the ports, or use a smaller pool, /16 at most",
            network.pool,
            network.nat_ports,
            blocks.capacity()
        );
        self.require(blocks.is_enough_for(network.ue_pool()), path("nat_addresses"), sentence);
    }

    /// Refuses a rule that no packet of the network can match, as it has no effect.
    fn firewall_rule(&mut self, network: &DataNetwork, rule: &FirewallRule, path: String) {
        let ends = [rule.from, rule.to];
        let v4 = ends.iter().flatten().all(|end| end.address.is_ipv4());
        self.require(
            v4 || network.pool6.is_some(),
            path.clone(),
            "this data network is IPv4 only, and so must be the addresses of its rules",
        );
        let (word, phones) = match rule.direction {
            Direction::Uplink => ("from", rule.from),
            Direction::Downlink => ("to", rule.to),
        };
        let pool = network.ue_pool();
        let has = |pool: UePool, phones: AddressRange| {
            pool.contains(phones.address) || phones.contains(pool.gateway)
        };
        let of_pool = phones.is_none_or(|phones| {
            has(pool, phones) || network.ue_pool6().is_some_and(|pool| has(pool, phones))
        });
        let sentence = format!("no UE of {} has the address after '{word}'", network.pool);
        self.require(of_pool, path, sentence);
    }

    fn sbi(&mut self, sbi: &Sbi) {
        for (nf, external) in &sbi.external {
            self.external(&format!("sbi.external.{nf}"), external);
        }
        self.cleartext(sbi);
        self.require(!sbi.request_timeout.0.is_zero(), "sbi.request_timeout", "write a time such as 5s");
        self.require(sbi.max_exchanges > 0, "sbi.max_exchanges", "at least 1 is needed");
        let body = (1 << 14..=1 << 26).contains(&sbi.max_body);
        self.require(body, "sbi.max_body", "this must be 16384 (16 kB) to 67108864 (64 MB)");
    }

    /// Cleartext to another machine must be configured explicitly (TS 33.501 13.1).
    fn external(&mut self, path: &str, external: &ExternalNf) {
        let sentence = "this must be the apiRoot of the other NF, such as https://10.0.0.9:8000";
        self.require(is_root(&external.url), path, sentence);
        let plain = external.url.starts_with("http://");
        let named = external.security == Some(ExternalSecurity::None);
        let sentence = format!(
            "this is cleartext to another machine: write https://…, or, if the NF has no TLS, {{url: '{}', security: none}}",
            external.url
        );
        self.require(!plain || named || external.is_loopback(), path, sentence);
        let sentence = "the URL contradicts 'security': http:// is none, https:// is tls or mtls";
        self.require(plain == (external.security() == ExternalSecurity::None), path, sentence);
        let sentence = "cleartext has no certificates: remove 'ca'";
        self.require(!plain || external.ca.is_none(), format!("{path}.ca"), sentence);
    }

    fn cleartext(&mut self, sbi: &Sbi) {
        let sentence = |address: SocketAddr| {
            format!(
                "with 'security: none' traffic to {address} could be read and changed: use a loopback address, or mtls"
            )
        };
        let open = |address: &SocketAddr| sbi.security == SbiSecurity::Mtls || address.ip().is_loopback();
        self.require(open(&sbi.listen()), "sbi.listen", sentence(sbi.listen()));
        for (nf, address) in &sbi.addresses {
            self.require(open(address), format!("sbi.addresses.{nf}"), sentence(*address));
        }
        let plain = sbi.external.values().any(|external| external.security() == ExternalSecurity::None);
        let sentence = "no NF in 'external' has 'security: none', and all other callers are refused at this address: remove this";
        self.require(sbi.plain_listen.is_none() || plain, "sbi.plain_listen", sentence);
        let named = sbi.plain_listen.is_none_or(|at| !at.ip().is_unspecified() && at.port() != 0);
        let sentence = "other NFs use this address: write an address of this machine and a port";
        self.require(named, "sbi.plain_listen", sentence);
    }

    fn shell(&mut self, config: &Config) {
        self.require(config.workers <= 64, "workers", "there are at most 64 shards");
        let buffer = (64..=1 << 20).contains(&config.task_buffer);
        self.require(buffer, "task_buffer", "this must be 64 to 1048576");
        let level = fault_of_level(&config.log.level);
        self.require(level.is_none(), "log.level", level.unwrap_or_default());
        let is_stored = config.residency() == Residency::None || config.state_directory().is_some();
        let sentence = "the database of subscribers is in memory and ends with the process, so contexts can't outlive it: set 'store.path' to a file";
        self.require(is_stored, "residency", sentence);
        self.state(config);
        self.set(config);
        let api = &config.api;
        let safe = api.listen.is_none_or(|at| at.ip().is_loopback()) || api.plain_http;
        let sentence = "tokens would cross a network in cleartext: put a TLS proxy in front and write 'plain_http: true'";
        self.require(safe, "api.listen", sentence);
    }
}

impl Findings {
    fn set(&mut self, config: &Config) {
        let set = &config.set;
        if !set.is_used() {
            return;
        }
        self.require(set.instance <= 63, "set.instance", "this must be 0 to 63");
        let lease = (500..=60_000).contains(&set.lease.0.as_millis());
        self.require(lease, "set.lease", "this must be 500ms to 60s");
        let is_redis = config.state.engine == StateEngine::Redis;
        let sentence = "the processes of a set have a store in common: set 'state.engine' to redis";
        self.require(is_redis, "set.instance", sentence);
        let keeps =
            matches!(config.residency(), Residency::Soft | Residency::Durable | Residency::Procedural);
        self.require(keeps, "set.instance", "a set needs 'residency' soft, durable or procedural");
        let sentence = "in a set the AMF Pointer is 'set.instance': leave this out";
        self.require(config.amf.pointer == 0, "amf.pointer", sentence);
        let sentence = "UEs that another AMF of the set takes over are in CM-IDLE: leave this out";
        self.require(!config.amf.n2.retain_ues, "amf.n2.retain_ues", sentence);
    }

    fn state(&mut self, config: &Config) {
        let state = &config.state;
        if config.residency() == Residency::None || state.engine == StateEngine::File {
            return;
        }
        let sentence = "a server flushes by its own setting (appendfsync): leave this out";
        self.require(state.sync == StateSync::None, "state.sync", sentence);
        self.require(
            state.directory.is_none(),
            "state.directory",
            "'engine: redis' has no directory: leave this out",
        );
        let redis = &state.redis;
        let sentence =
            "the password would cross a network in cleartext: write rediss:// and set 'state.redis.ca'";
        self.require(!redis.url.is_exposed(), "state.redis.url", sentence);
        let has_ca = redis.ca.is_some() || !redis.url.is_tls();
        self.require(has_ca, "state.redis.url", "TLS needs the CA of the server: set 'state.redis.ca'");
        let is_used = redis.ca.is_none() || redis.url.is_tls();
        self.require(is_used, "state.redis.ca", "the URL is without TLS: write rediss://");
    }
}

/// Networks whose addresses no UE can have (RFC 6890).
const RESERVED: [((Ipv4Addr, u8), &str); 4] = [
    ((Ipv4Addr::new(0, 0, 0, 0), 8), "'this network'"),
    ((Ipv4Addr::new(127, 0, 0, 0), 8), "loopback"),
    ((Ipv4Addr::new(169, 254, 0, 0), 16), "link-local"),
    ((Ipv4Addr::new(224, 0, 0, 0), 3), "multicast or reserved"),
];

fn overlaps((address, prefix): (Ipv4Addr, u8), pool: Ipv4Net) -> bool {
    Ipv4Net::new(address, prefix).overlaps(pool)
}

/// The problem of a 'log.level'; `None` if it can be used. Without a general level all other modules would be
/// silent.
fn fault_of_level(text: &str) -> Option<String> {
    const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];
    let is_level = |word: &str| LEVELS.contains(&word.to_ascii_lowercase().as_str());
    let known = || format!("use one of {}", LEVELS.join(", "));
    for part in text.split(',').map(str::trim) {
        match part.split_once('=') {
            None if !is_level(part) => {
                return Some(format!("'log.level' has '{part}', which is not a level: {}", known()));
            }
            Some((_, level)) if !is_level(level.trim()) => {
                return Some(format!("'log.level' has '{level}', which is not a level: {}", known()));
            }
            _ => {}
        }
    }
    let has_general = text.split(',').any(|part| is_level(part.trim()));
    (!has_general).then(|| {
        format!(
            "with this 'log.level' only the named modules would be logged: begin with a general level, such as info,{text}"
        )
    })
}

/// `https://host:port`, with or without a path.
/// An identity of a slice instance that is the same in a list of a query.
fn is_nsi_id(id: &str) -> bool {
    (1..=64).contains(&id.len())
        && id.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"-_.".contains(&octet))
}

fn is_root(root: &str) -> bool {
    let rest = root.strip_prefix("https://").or_else(|| root.strip_prefix("http://"));
    let authority = rest.and_then(|rest| rest.split('/').next());
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
    fn the_default_has_no_findings() {
        assert_eq!(findings(&Config::default()), []);
    }

    #[test]
    fn overlapping_pools_are_reported_at_the_second() {
        let text = found(
            "smf:\n  data_networks:\n    - {name: a, pool: 10.45.0.0/16}\n    - {name: b, pool: 10.45.7.0/24}\n",
        );
        assert_eq!(
            text,
            "f:4:23: overlaps the pool 10.45.0.0/16 of 'a': choose another (here: 10.45.7.0/24)"
        );
    }

    #[test]
    fn a_firewall_rule_is_reported_at_its_line() {
        let text = found(
            "smf:\n  data_networks:\n    - name: a\n      pool: 10.0.0.0/16\n      firewall:\n        - deny down\n        - deny up from 10.1.0.0/16\n",
        );
        assert!(text.starts_with("f:7:11: no UE of 10.0.0.0/16"), "{text}");
    }

    #[test]
    fn cleartext_to_another_machine_is_refused_unless_configured() {
        let text =
            found("sbi:\n  external:\n    nrf: https://10.0.0.1:8000\n    udm: http://10.0.0.9:8000\n");
        assert!(text.starts_with("f:4:10: this is cleartext to another machine"), "{text}");
        for yaml in [
            "sbi: {external: {udm: 'http://127.0.0.9:8000'}}",
            "sbi: {external: {udm: 'https://udm.example.org:8000'}}",
            "sbi: {external: {udm: {url: 'http://10.0.0.9:8000', security: none, oauth2: off}}, plain_listen: '10.0.0.1:80'}",
            "sbi: {external: {udm: {url: 'https://10.0.0.9:8000', security: tls, oauth2: on, ca: x, callers: [10.0.0.8]}}}",
        ] {
            assert!(Config::parse(yaml, "f").is_ok(), "{}", found(yaml));
        }
    }

    #[test]
    fn each_check_reports_its_finding() {
        for (yaml, sentence) in [
            ("network: {slices: []}", "empty"),
            ("network: {plmns: [999/70, 999/70]}", "twice"),
            ("home_network_keys: [{id: 0, profile: a, private_key_file: k}]", "from 1 to 255"),
            ("amf: {name: ''}", "1 to 150"),
            ("amf: {name: amf_1}", "1 to 150"),
            ("amf: {n2: {sctp: raw, addresses: [10.0.0.1, 10.0.1.1]}}", "needs the kernel's SCTP"),
            ("amf: {n2: {addresses: [0.0.0.0, 10.0.1.1]}}", "list no other address"),
            ("amf: {n2: {associations_per_address: 0}}", "1 to 16384"),
            ("amf: {n2: {endpoints: [{address: 127.0.0.5}]}}", "occurs twice"),
            ("amf: {n2: {endpoints: [{address: 0.0.0.0}]}}", "each address"),
            ("amf: {n2: {gnbs: [{id: gnb-1, addresses: [10.0.0.2]}]}}", "such as 999/70-gnb-000001"),
            ("amf: {n2: {gnbs: [{id: 999/70-gnb-000001, addresses: []}]}}", "at least one"),
            ("n4: {n1: 0}", "1 to 10"),
            ("upf: {tun: a/b}", "letters and digits"),
            ("upf: {datapath: xdp}", "such as [eth1, eth2]"),
            ("upf: {interfaces: [eth1], tunnel_interfaces: [eth2]}", "also be listed in 'interfaces'"),
            ("upf: {sessions: 0}", "1 to 1048576"),
            ("amf: {max_ues: 10}", "1000 to 16777216"),
            ("amf: {slices: ['2']}", "'network.slices' does not have that slice"),
            ("nssf: {amfs: [{slices: ['1']}]}", "either an AMF Set or instances"),
            ("nssf: {amfs: [{slices: ['9'], set: 7}]}", "list one or more slices"),
            ("nssf: {amfs: [{slices: ['1'], set: 1024}]}", "0 to 1023"),
            ("nssf: {slice_instances: [{id: 'a,b', slices: ['1']}]}", "write 1 to 64 letters"),
            ("nssf: {slice_instances: [{id: a, slices: []}]}", "list one or more slices"),
            (
                "nssf: {slice_instances: [{id: a, slices: ['1'], tracking_areas: ['000099']}]}",
                "'network.tracking_areas' does not have that one",
            ),
            ("smf: {slice_instances: ['']}", "ids of 'nssf.slice_instances'"),
            ("amf: {emergency: {dnn: sos, slice: {sst: 1}}}", "'smf.data_networks' has no data network"),
            (
                "amf: {emergency: {dnn: internet, slice: {sst: 9}}}",
                "'network.slices' does not have that slice",
            ),
            ("amf: {emergency: {dnn: internet, slice: {sst: 1}, five_qi: 1}}", "without guaranteed bit rate"),
            ("amf: {emergency: {dnn: internet, slice: {sst: 1}, arp_priority: 0}}", "1 (first) to 15"),
            ("amf: {emergency: {dnn: internet, slice: {sst: 1}, max_unauthenticated: 0}}", "1 to 65536"),
            ("amf: {emergency: {dnn: internet, slice: {sst: 1}, t3512: 0s}}", "longer than 0"),
            ("amf: {mico: {t3512: 0s}}", "longer than 0"),
            ("amf: {time_zone: Europe/Berlin}", "POSIX TZ string"),
            ("amf: {paging_priorities: [0]}", "1 to 15"),
            ("amf: {network_name: {full: ''}}", "1 to 60 characters"),
            ("amf: {network_name: {full: Pith, short: ''}}", "1 to 60 characters"),
            (
                "amf: {emergency: {dnn: internet, slice: {sst: 1}, numbers: [{number: 11a}]}}",
                "1 to 20 digits",
            ),
            ("smf: {data_networks: [{name: a, pool: 10.0.0.0/30}]}", "/8 to /28"),
            ("smf: {data_networks: [{name: a, pool: 10.0.0.0/16, gateway: 10.1.0.1}]}", "host of the pool"),
            ("smf: {data_networks: [{name: a, pool: 10.0.0.0/16, mtu: 100}]}", "1280"),
            ("smf: {data_networks: [{name: a, pool: 10.0.0.0/16, mss: 9}]}", "536"),
            ("smf: {data_networks: [{name: a, pool: 10.0.0.0/16, nat_ports: 9}]}", "64 to 64512"),
            (
                "smf: {data_networks: [{name: a, pool: 10.0.0.0/16, reach: [fd00::1]}]}",
                "so must be the addresses in 'reach'",
            ),
            (
                "smf: {data_networks: [{name: a, pool: 10.0.0.0/16, reach: [gnb]}]}",
                "such as '10.211.0.1 udp port 53'",
            ),
            ("upf: {radios: [10.210.0.1/16]}", "such as 192.0.2.0/24"),
            ("smf: {data_networks: [{name: a, pool: 10.0.0.0/16, nat_addresses: [192.0.2.1]}]}", "(126)"),
            (
                "smf: {data_networks: [{name: a, pool: 10.0.0.0/28, nat_addresses: [192.0.2.1]}]}\nupf: {nat: false}",
                "need NAT",
            ),
            (
                "smf: {data_networks: [{name: a, pool: 10.0.0.0/28, nat_addresses: [192.0.2.1, 192.0.2.1]}]}",
                "already",
            ),
            (
                "smf: {data_networks: [{name: a, pool: 10.0.0.0/16, firewall: [deny out]}]}",
                "such as 'deny up",
            ),
            (
                "smf: {data_networks: [{name: a, pool: 10.0.0.0/16, firewall: [deny up from 10.1.0.0/16]}]}",
                "no UE of 10.0.0.0/16",
            ),
            (
                "smf: {data_networks: [{name: a, pool: 10.0.0.0/16, firewall: ['deny up to fe80::/10']}]}",
                "is IPv4 only",
            ),
            ("smf: {data_networks: [{name: a, pool: 10.0.0.0/16, routes: [10.9.0.0/16]}]}", "via 192.0.2.1"),
            (
                "smf: {data_networks: [{name: a, pool: 10.0.0.0/16, mss: 1300}]}\nupf: {datapath: xdp, nat: false, interfaces: [a]}",
                "every data network has one",
            ),
            ("upf: {predefined_rules: [{name: a, filters: [permit in]}]}", "for example, 'permit out 17"),
            ("upf: {predefined_rules: [{name: a, filters: [permit out ip from any to any]}]}", "drop: true"),
            ("upf: {predefined_rules: [{name: a, filters: [], drop: true}]}", "at least one filter"),
            ("sbi: {external: {udm: 'https://x'}}", "https://10.0.0.9:8000"),
            ("sbi: {external: {udm: 'http://10.0.0.9:8000'}}", "security: none}"),
            (
                "sbi: {external: {udm: {url: 'https://10.0.0.9:8000', security: none}}}",
                "contradicts 'security'",
            ),
            (
                "sbi: {external: {udm: {url: 'http://10.0.0.9:8000', security: tls}}}",
                "contradicts 'security'",
            ),
            ("sbi: {external: {udm: {url: 'http://10.0.0.9:8000', security: none, ca: x}}}", "remove 'ca'"),
            ("sbi: {external: {udm: {url: 'https://10.0.0.9:8000', oauth: on}}}", "did you mean 'oauth2'"),
            ("sbi: {security: none, listen: '10.0.0.1:7777'}", "or mtls"),
            ("sbi: {security: none, addresses: {amf: '10.0.0.1:7777'}}", "or mtls"),
            ("sbi: {plain_listen: '10.0.0.1:7778'}", "remove this"),
            ("workers: 65", "64 shards"),
            ("smf: {data_networks: [{name: a, pool: 127.3.0.0/16}]}", "is loopback"),
            ("log: {level: loud}", "'loud', which is not a level: use one of error, warn"),
            ("log: {level: 'info,pith::nf=loud'}", "'loud', which is not a level"),
            ("log: {level: 'pith::nf=debug'}", "such as info,pith::nf=debug"),
            ("task_buffer: 1", "64 to"),
            ("api: {listen: '0.0.0.0:80'}", "plain_http"),
        ] {
            assert!(found(yaml).contains(sentence), "{yaml}: {}", found(yaml));
        }
    }
}
