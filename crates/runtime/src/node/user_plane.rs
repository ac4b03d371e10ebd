//! Sets up the UPF of a process from the configuration.

use super::StartError;
use super::upgrade::Upgrade;
use crate::clock::Clock;
use crate::config::{Config, DataNetwork, HostedNf, Ipv6Net, PacketPath, PredefinedRule, XdpHook};
use crate::gate::Gate;
use crate::upf::UpfThread;
use pith_datapath::{
    Boundary, DatapathConfig, Enforcement, PathChoice, SharedRate, Tenant, interface_addresses,
};
use pith_nf::kit::Rng;
use pith_types::Ambr;
use pith_upf::contract::{AddressRange, Rates};
use pith_upf::{GtpuAddress, PermittedSmf, PredefinedAction, PredefinedRules, Upf};
use std::collections::HashSet;
use std::net::{IpAddr, Ipv6Addr};

/// Refuses a UE pool that contains an address of this machine, as its packets would be routed to UEs. TUN
/// interfaces are ignored: UEs on this machine (simulators) have them, with addresses of the pool.
fn check_pools(networks: &[DataNetwork], tun: &str) -> Result<(), StartError> {
    let is_tun = |name: &str| {
        name == tun || std::path::Path::new("/sys/class/net").join(name).join("tun_flags").exists()
    };
    let addresses = interface_addresses().unwrap_or_default();
    for (name, address) in addresses.iter().filter(|(name, _)| !is_tun(name)) {
        let pool_with = |network: &DataNetwork| match address {
            IpAddr::V4(v4) => network.pool.contains(*v4).then(|| network.pool.to_string()),
            IpAddr::V6(v6) => network.pool6.filter(|pool| pool.contains(*v6)).map(|pool| pool.to_string()),
        };
        if let Some((network, pool)) =
            networks.iter().find_map(|network| Some((network, pool_with(network)?)))
        {
            return Err(format!(
                "the pool {pool} of data network '{}' contains {address}, an address of this machine on {name}: choose another",
                network.name
            )
            .into());
        }
    }
    Ok(())
}

/// The datapath of a configuration.
pub(super) fn datapath(config: &Config) -> DatapathConfig {
    let upf = &config.upf;
    let own = config.networks_of_upf();
    let networks = own.iter();
    // The pools of several UPFs, which an intermediate UPF has, have their prefixes in common.
    let of_v6 = networks_with_prefixes(&own);
    let policies = networks.clone().map(DataNetwork::policy);
    let policies = policies.chain(of_v6.iter().filter_map(|network| network.policy6()));
    let policies = policies.filter(|policy| !policy.is_none());
    let pools = networks.map(DataNetwork::ue_pool);
    let pools = pools.chain(of_v6.iter().filter_map(|network| network.ue_pool6()));
    let shared = own.iter().filter_map(|network| {
        let (address, prefix) = (network.gateway().into(), network.pool.prefix());
        let prefixes = network.pool6.map(prefixes);
        network.shared.map(|ambr| SharedRate { network: address, prefix, prefixes, rates: rates(ambr) })
    });
    DatapathConfig {
        n3_addresses: vec![upf.n3.into()],
        n4_address: Some(upf.n4).filter(|n4| !n4.ip().is_loopback()),
        tun: upf.tun.clone(),
        pools: pools.collect(),
        mtu: own.first().map_or(1400, |network| network.mtu),
        dns: of_v6.iter().filter_map(|network| Some((prefixes(network.pool6?), dns6(network)))).collect(),
        workers: upf.workers.into(),
        nat: upf.nat,
        nat_connections: upf.nat_connections,
        boundary: boundary(config),
        policies: policies.collect(),
        enforcement: if upf.shape { Enforcement::Shape } else { Enforcement::Police },
        shared_rates: shared.collect(),
        path: match upf.datapath {
            PacketPath::Auto => PathChoice::Auto,
            PacketPath::Xdp => PathChoice::Xdp,
            PacketPath::Portable => PathChoice::Portable,
        },
        interfaces: upf.interfaces.clone(),
        tunnel_interfaces: upf.tunnel_interfaces.clone(),
        bypass_firewall: upf.bypass_firewall,
        xdp_hook: match upf.xdp {
            XdpHook::Auto => pith_datapath::XdpHook::Auto,
            XdpHook::Native => pith_datapath::XdpHook::Native,
            XdpHook::Generic => pith_datapath::XdpHook::Generic,
        },
        flow_ports: upf.flow_ports,
        spread: upf.spread,
        outer_ecn: upf.outer_ecn,
        sessions: upf.sessions,
        pin: upf.pin.clone(),
        ..DatapathConfig::default()
    }
}

/// Sets up the datapath, or takes that of a running UPF over, and starts UPF-C.
pub(super) fn start(
    config: &Config,
    clock: Clock,
    rng: &mut Rng,
    gate: Gate,
    mut upgrade: Upgrade,
) -> Result<UpfThread, StartError> {
    let upf = &config.upf;
    let own = config.networks_of_upf();
    check_pools(&own, &upf.tun)?;
    let of_v6 = networks_with_prefixes(&own);
    let datapath = datapath(config);
    let n3 = GtpuAddress { v4: Some(upf.n3), v6: None };
    let smfs = config.smfs_of_upf();
    let defaults = pith_upf::Config::new(upf.n4.ip(), n3, clock.unix_seconds());
    let control = pith_upf::Config {
        max_sessions_of_peer: defaults.max_sessions / parts(&smfs).max(1),
        smfs,
        smf_sets: upf.smf_sets.clone(),
        path_failure_retention: upf.retention.0,
        radios: upf.radios.iter().map(|network| network.0).collect(),
        core_networks: core_networks(config),
        ue_pools: own
            .iter()
            .map(ue_addresses)
            .chain(of_v6.iter().filter_map(|network| network.pool6.map(prefixes)))
            .collect(),
        own_addresses: own.iter().flat_map(DataNetwork::gateways).collect(),
        networks: network_names(config),
        guaranteed: upf.guaranteed.map(rates),
        predefined: predefined(&upf.predefined_rules),
        ..defaults
    };
    let (predecessor, restoration) = (upgrade.predecessor.take(), upf.restoration.0);
    let succeedable = upgrade.into_succeedable(config, &datapath);
    let (predecessor, succeedable) = match (predecessor, succeedable) {
        (Some(predecessor), Some(succeedable)) => (predecessor, succeedable),
        (_, succeedable) => {
            let socket = crate::udp::bind(upf.n4, "upf.n4")?;
            let control = Upf::new(control, rng.octets());
            return Ok(UpfThread::start_succeedable(
                clock,
                control,
                socket,
                datapath,
                restoration,
                gate,
                succeedable,
            )?);
        }
    };
    let control = (control, rng.octets());
    Ok(UpfThread::take_over(predecessor, control, &datapath, restoration, gate, succeedable)?)
}

/// The number of equal parts of the UPF's sessions: one for each SMF, so that none uses up the sessions of others. A network
/// counts as several SMFs.
fn parts(smfs: &[PermittedSmf]) -> usize {
    const OF_NETWORK: usize = 4;
    let is_host = |network: &AddressRange| network.prefix == if network.address.is_ipv4() { 32 } else { 128 };
    smfs.iter().map(|smf| if is_host(&smf.network) { 1 } else { OF_NETWORK }).sum()
}

/// The core's networks, and the pools of all data networks, which may be at other UPFs.
fn core_networks(config: &Config) -> Vec<AddressRange> {
    let Boundary { own, core, tenants, .. } = boundary(config);
    let host = |address: IpAddr| AddressRange { address, prefix: if address.is_ipv4() { 32 } else { 128 } };
    own.into_iter().map(host).chain(core).chain(tenants.into_iter().flat_map(|tenant| tenant.pools)).collect()
}

fn ue_addresses(network: &DataNetwork) -> AddressRange {
    AddressRange { address: network.pool.address().into(), prefix: network.pool.prefix() }
}

fn dns6(network: &DataNetwork) -> Vec<Ipv6Addr> {
    let of_v6 = network.dns.iter().filter_map(|server| match server {
        IpAddr::V6(v6) => Some(*v6),
        IpAddr::V4(_) => None,
    });
    of_v6.collect()
}

fn prefixes(pool: Ipv6Net) -> AddressRange {
    AddressRange { address: pool.address().into(), prefix: pool.prefix() }
}

/// The data networks that have IPv6, each once.
fn networks_with_prefixes(own: &[DataNetwork]) -> Vec<&DataNetwork> {
    let mut known = HashSet::new();
    own.iter().filter(|network| network.pool6.is_some_and(|pool| known.insert(pool))).collect()
}

/// The permitted Network Instances.
fn network_names(config: &Config) -> Vec<String> {
    let data_networks = config.smf.data_networks.iter().map(|network| network.name.to_string());
    data_networks.chain(config.upf.network_instances.iter().cloned()).collect()
}

/// The destinations closed to UEs besides this host and N3: addresses of the core's NFs and their peers.
fn boundary(config: &Config) -> Boundary {
    let Config { amf, n4, upf, sbi, api, smf, .. } = config;
    let functions = HostedNf::ALL.into_iter().map(|nf| sbi.address(nf).ip());
    let sockets = [n4.address, upf.n4, sbi.listen()]
        .into_iter()
        .chain(api.listen)
        .chain(sbi.plain_listen)
        .map(|socket| socket.ip());
    let n2 = amf.n2.endpoints.iter().map(|endpoint| endpoint.address).chain(amf.n2.addresses.iter().copied());
    let own = n2.chain(functions).chain(sockets);
    let host = |address: IpAddr| AddressRange { address, prefix: if address.is_ipv4() { 32 } else { 128 } };
    let upfs = n4.upfs.iter().map(|peer| host(peer.address.ip()));
    // An NF of another vendor given by name is covered only if 'upf.core_networks' contains its address.
    let external = sbi.external.values().flat_map(|external| {
        let address = external.host().and_then(|host| host.parse().ok());
        external.callers.iter().copied().chain(address)
    });
    // For a network of permitted SMFs, only SMFs with an association are closed.
    let smfs = config.smfs_of_upf().into_iter().map(|smf| smf.network);
    let smfs = smfs.filter(|network| *network == host(network.address));
    let tenant = |network: &DataNetwork| {
        let others = smf.upfs.iter().filter_map(|service| service.pool(&network.name));
        let pools = others.chain([network.pool]);
        Tenant {
            pools: pools
                .map(|pool| AddressRange { address: pool.address().into(), prefix: pool.prefix() })
                .chain(network.pool6.map(prefixes))
                .collect(),
            permits: network.reach.iter().map(|permit| permit.0).collect(),
        }
    };
    Boundary {
        own: own.collect(),
        core: upfs
            .chain(external.map(host))
            .chain(upf.core_networks.iter().map(|network| network.0))
            .chain(smfs)
            .collect(),
        radios: upf.radios.iter().map(|network| network.0).collect(),
        tenants: smf.data_networks.iter().map(tenant).collect(),
    }
}

fn rates(ambr: Ambr) -> Rates {
    Rates { uplink: ambr.uplink.bps(), downlink: ambr.downlink.bps() }
}

fn predefined(rules: &[PredefinedRule]) -> PredefinedRules {
    let rule = |rule: &PredefinedRule| pith_upf::PredefinedRule {
        name: rule.name.clone(),
        filters: rule.filters.iter().flat_map(|filter| filter.filters.clone()).collect(),
        action: if rule.drop { PredefinedAction::Drop } else { PredefinedAction::AsTheSessionSays },
        mbr: rule.mbr.map(rates),
    };
    PredefinedRules(rules.iter().map(rule).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> AddressRange {
        pith_datapath::parse_network(text).unwrap()
    }

    #[test]
    fn configured_addresses_are_closed() {
        let yaml = "\
amf: {n2: {addresses: [10.210.0.1]}}
n4: {upfs: [{name: upf, address: '10.212.0.7:8805'}]}
upf: {core_networks: [10.213.0.0/16], radios: [10.214.0.0/16]}
sbi: {external: {udm: 'https://10.215.0.9:8000'}, listen: '10.216.0.1:7777'}
api: {listen: '127.0.0.2:5100'}
smf:
  upfs: [{name: upf, pools: [{data_network: internet, pool: 10.46.0.0/16}]}]
  data_networks:
    - {name: internet, pool: 10.45.0.0/16, reach: [10.211.0.1 udp port 53]}
    - {name: ims, pool: 10.47.0.0/16}
";
        let boundary = boundary(&Config::parse(yaml, "f").unwrap());
        for own in ["10.210.0.1", "127.0.0.4", "127.0.0.7", "10.216.0.1", "127.0.0.2", "127.0.0.10"] {
            assert!(boundary.own.contains(&own.parse().unwrap()), "{own}");
        }
        assert_eq!(boundary.core[..3], ["10.212.0.7", "10.215.0.9", "10.213.0.0/16"].map(range));
        assert_eq!(boundary.radios, [range("10.214.0.0/16")]);
        let [internet, ims] = &boundary.tenants[..] else { panic!("two data networks") };
        assert_eq!(internet.pools, ["10.46.0.0/16", "10.45.0.0/16"].map(range));
        assert_eq!(internet.permits[0].to_string(), "10.211.0.1 udp port 53");
        assert_eq!((&ims.pools[..], ims.permits.len()), (&[range("10.47.0.0/16")][..], 0));
    }
}
