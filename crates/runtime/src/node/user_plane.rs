//! The UPF of a process, as the configuration wants it.

use super::StartError;
use crate::clock::Clock;
use crate::config::{Config, DataNetwork, PacketPath, PredefinedRule, XdpHook};
use crate::upf::UpfThread;
use pith_datapath::{DatapathConfig, Enforcement, PathChoice, SharedRate};
use pith_nf::kit::Rng;
use pith_types::Ambr;
use pith_upf::contract::{AddressRange, Rates};
use pith_upf::{GtpuAddress, PredefinedAction, PredefinedRules, Upf};

/// Sets the datapath up and starts UPF-C.
pub(super) fn start(config: &Config, clock: Clock, rng: &mut Rng) -> Result<UpfThread, StartError> {
    let upf = &config.upf;
    let own = config.networks_of_upf();
    let networks = own.iter();
    let policies = networks.clone().map(DataNetwork::policy).filter(|policy| !policy.is_none());
    let pools = networks.map(DataNetwork::ue_pool);
    let shared = own.iter().filter_map(|network| {
        let (address, prefix) = (network.gateway().into(), network.pool.prefix());
        network.shared.map(|ambr| SharedRate { network: address, prefix, rates: rates(ambr) })
    });
    let datapath = DatapathConfig {
        n3_addresses: vec![upf.n3.into()],
        tun: upf.tun.clone(),
        pools: pools.collect(),
        mtu: own.first().map_or(1400, |network| network.mtu),
        workers: upf.workers.into(),
        nat: upf.nat,
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
        xdp_hook: match upf.xdp {
            XdpHook::Auto => pith_datapath::XdpHook::Auto,
            XdpHook::Native => pith_datapath::XdpHook::Native,
            XdpHook::Generic => pith_datapath::XdpHook::Generic,
        },
        sessions: upf.sessions,
        pin: upf.pin.clone(),
        ..DatapathConfig::default()
    };
    let socket = crate::udp::bind(upf.n4, "upf.n4")?;
    let n3 = GtpuAddress { v4: Some(upf.n3), v6: None };
    let smfs = config.smfs_of_upf();
    let defaults = pith_upf::Config::new(upf.n4.ip(), n3, clock.unix_seconds());
    let control = pith_upf::Config {
        // Of several SMFs none takes what the others need.
        max_sessions_of_peer: defaults.max_sessions / smfs.len().max(1),
        smfs,
        ue_pools: own.iter().map(ue_addresses).collect(),
        own_addresses: own.iter().map(|network| network.gateway().into()).collect(),
        networks: network_names(config),
        guaranteed: upf.guaranteed.map(rates),
        predefined: predefined(&upf.predefined_rules),
        ..defaults
    };
    let control = Upf::new(control, rng.octets());
    Ok(UpfThread::start(clock, control, socket, datapath)?)
}

fn ue_addresses(network: &DataNetwork) -> AddressRange {
    AddressRange { address: network.pool.address().into(), prefix: network.pool.prefix() }
}

/// What Network Instances may name.
fn network_names(config: &Config) -> Vec<String> {
    let data_networks = config.smf.data_networks.iter().map(|network| network.name.to_string());
    data_networks.chain(config.upf.network_instances.iter().cloned()).collect()
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
