//! The system's settings through which UEs reach the data network, set up at start and restored at stop: the
//! TUN interface's addresses, forwarding, NAT, firewalls, routes. Pith changes only what it created, except
//! settings of the kernel such as `ip_forward`, whose previous values it restores.

mod bystanders;
mod closed;
mod firewall;
mod foreign_routing;
mod foreign_rules;
mod forwarding;
mod framed;
mod interface;
mod nat;
mod nat_sweep;
mod nft;
mod policy;
mod port_blocks;
mod port_log;
mod route;
mod route_mtus;
mod routing;
mod tunnels;

use crate::boundary::{Host, Reach, TunnelSide, one_sided_interfaces};
use crate::config::{DatapathConfig, StartError};
pub use closed::ClosedSets;
pub use foreign_routing::{foreign_routing, has_foreign_rule};
pub use foreign_rules::{foreign_rules, has_ipsec_policies, has_silent_rules};
pub use forwarding::{LIBERAL, Switch};
pub use framed::FramedRoutes;
use nat::Iptables;
pub use nat_sweep::NatSweep;
use nft::{Table, Tables};
pub use policy::{
    FirewallRule, Net, NetworkPolicy, Protocol, StaticRoute, Verdict, parse_network, parse_ports,
};
pub use port_blocks::{PortBlock, PortBlocks};
pub use port_log::PortLog;
pub use route::{Route, attributes, messages};
pub use route_mtus::{RouteMtus, route_mtus};
use routing::NetworkRoutes;
use std::io;
use std::net::IpAddr;

/// The settings; dropping this restores the system. The interface itself ends with its last queue.
#[derive(Debug, Default)]
pub struct Network {
    switches: Vec<Switch>,
    routes: Vec<NetworkRoutes>,
    tables: Tables,
    iptables: Iptables,
    /// Whether the packet filter checks closed destinations.
    closes: bool,
}

impl Network {
    /// The packet filter's sets of closed destinations.
    pub fn closed_sets(&self, config: &DatapathConfig) -> ClosedSets {
        if !self.closes {
            return ClosedSets::default();
        }
        ClosedSets::of(&config.tun, one_sided_interfaces(config), !config.is_hairpin_direct())
    }

    /// Prepares the interface, of which a queue is open, for the pools. It first removes what an earlier
    /// process left for an interface of that name, independently of the configuration.
    pub fn set_up(config: &DatapathConfig) -> Result<Self, StartError> {
        let v6 = config.pools.iter().any(|pool| pool.gateway.is_ipv6());
        interface::quieten(&config.tun, v6);
        interface::bring_up(config)?;
        let mut switches = forward(config, &[])?;
        let routes = NetworkRoutes::set_up(config)?;
        let (Filter { tables, iptables }, closes) = filter(config, &switches)?;
        let iptables = iptables.unwrap_or_default();
        switches.extend(lifetimes(config, &[]));
        Ok(Self { switches, routes, tables, iptables, closes })
    }

    /// Another process's settings, which this one leaves as they are.
    pub fn inherited() -> Self {
        Self::default()
    }

    /// Becomes the owner of a former process's settings, with `former` values of those that it changed. The packet filter is renewed
    /// in one transaction; addresses and routes are as they were.
    pub fn own(&mut self, config: &DatapathConfig, former: &[(String, String)]) -> Result<(), StartError> {
        self.switches = forward(config, former)?;
        self.routes = NetworkRoutes::inherit(config)?;
        let (Filter { tables, iptables }, closes) = filter(config, &self.switches)?;
        (self.tables, self.iptables, self.closes) = (tables, iptables.unwrap_or_default(), closes);
        self.switches.extend(lifetimes(config, former));
        Ok(())
    }

    /// The settings that were changed, with their former values.
    pub fn former_settings(&self) -> Vec<(String, String)> {
        self.switches.iter().filter_map(Switch::former).collect()
    }

    /// Leaves all settings to another process.
    pub fn leave(&mut self) {
        self.switches.iter_mut().for_each(Switch::keep);
        std::mem::take(&mut self.routes).into_iter().for_each(std::mem::forget);
        std::mem::forget(std::mem::take(&mut self.tables));
        std::mem::forget(std::mem::take(&mut self.iptables));
    }
}

/// Enables forwarding of the address families in use; `former` are values from before a former process.
fn forward(config: &DatapathConfig, former: &[(String, String)]) -> Result<Vec<Switch>, StartError> {
    let families = [
        (config.forwards(IpAddr::is_ipv4), forwarding::V4),
        (config.forwards(IpAddr::is_ipv6), forwarding::V6),
    ];
    // Also what only a former process needed: it is restored at the end.
    let is_former = |setting: &str| former.iter().any(|(name, _)| name == setting);
    let wanted = families.into_iter().filter(|(wanted, setting)| *wanted || is_former(setting));
    wanted
        .map(|(_, setting)| {
            let what = format!("turning forwarding on in {setting}");
            Switch::inherit(setting, former).map_err(StartError::setup(what))
        })
        .collect()
}

/// Raises the lifetimes of connections with NAT, whose settings exist from the packet filter's NAT rules on; `former` are values
/// from before a former process.
fn lifetimes(config: &DatapathConfig, former: &[(String, String)]) -> Vec<Switch> {
    let has_nat = config.pools.iter().any(|pool| config.has_nat44(*pool));
    let had_nat = former.iter().any(|(name, _)| forwarding::is_lifetime(name));
    if has_nat || had_nat { Switch::lifetimes(former) } else { Vec::new() }
}

/// Sets up the packet filter. Returns whether it checks closed destinations.
fn filter(config: &DatapathConfig, switches: &[Switch]) -> Result<(Filter, bool), StartError> {
    let what = "setting up NAT and firewall (nftables, or for NAT alone iptables where nft is missing)";
    bystanders::set_group(&config.tun)?;
    let host = Host::read(&TunnelSide::of(config));
    let host = host.map_err(StartError::setup("reading this host's addresses"))?;
    let reach = Reach::compile(&config.whole_boundary(), &config.pools, &host, (&[], &[]));
    let by_kernel = !config.is_hairpin_direct();
    let mut closed = closed::tables(&config.tun, &reach, &one_sided_interfaces(config), by_kernel);
    for table in &mut closed {
        table.body += &tunnels::chain(config, table.family);
        table.body += &bystanders::chain(&config.tun, table.family, switches);
    }
    let mut checked = closed.clone();
    checked.iter_mut().for_each(|table| table.body += &tunnels::n4_chain(config, table.family));
    let found = packet_filter(config, checked.clone()).or_else(|error| {
        if checked == closed {
            return Err(error);
        }
        tracing::warn!(%error, "PFCP is accepted from any interface: set the sysctl rp_filter to 1, or load nft_fib");
        packet_filter(config, closed)
    });
    let (filter, closes) = match found {
        Ok(filter @ Filter { iptables: None, .. }) => (filter, true),
        Ok(filter) => (filter, false),
        Err(error) => {
            tracing::debug!(%error, "no packet filter for closed destinations");
            let filter = packet_filter(config, Vec::new()).map_err(|error| advise(config, error));
            (filter.map_err(StartError::setup(what))?, false)
        }
    };
    if !closes {
        tracing::warn!(
            "closed destinations are checked by the UPF, but not by the kernel's packet filter: install nftables for it"
        );
    }
    Ok((filter, closes))
}

/// Runs a command, whose words are separated by spaces.
pub fn run_command(command: &str) -> io::Result<String> {
    nft::run(&nft::words(command), "")
}

/// Adds advice to an error of `nft` or `iptables`.
fn advise(config: &DatapathConfig, error: io::Error) -> io::Error {
    let said = error.to_string();
    let lacks = ["No such file or directory", "not supported"].iter().any(|text| said.contains(text));
    let wants_nat = !nat::tables(config).is_empty();
    let advice = match error.kind() {
        io::ErrorKind::NotFound => "install nftables",
        _ if said.contains("not permitted") => "run as root, or with CAP_NET_ADMIN",
        _ if lacks && wants_nat => {
            "this kernel lacks NAT for nftables: load the modules (modprobe -a nft_chain_nat nft_masq), or set \
             'upf: {nat: false}', remove 'nat_addresses', and leave NAT, or the route back to the pool, to a router"
        }
        _ if lacks => "this kernel lacks parts of nftables: load the modules (modprobe -a nf_tables nft_ct)",
        _ => return error,
    };
    io::Error::new(error.kind(), format!("{said}; {advice}"))
}

/// The active parts of the kernel's packet filter.
struct Filter {
    tables: Tables,
    /// Used instead of tables if there is no `nft`.
    iptables: Option<Iptables>,
}

/// NAT and firewalls, with these tables beside them.
fn packet_filter(config: &DatapathConfig, closed: Vec<Table>) -> io::Result<Filter> {
    let firewall = firewall::body(config).map(|body| Table { family: "inet", body });
    let nat = nat::tables(config);
    let is_wanted = !nat.is_empty() || firewall.is_some();
    let mut tables: Vec<_> = nat.into_iter().chain(firewall).collect();
    for table in closed.clone() {
        match tables.iter_mut().find(|other| other.family == table.family) {
            Some(other) => other.body += &table.body,
            None => tables.push(table),
        }
    }
    let counts = tables.iter().any(|table| table.body.contains("ct count"));
    match Tables::put_in(&config.tun, &tables) {
        Err(error)
            if error.kind() == io::ErrorKind::NotFound && (!is_wanted || Iptables::is_enough_for(config)) =>
        {
            Ok(Filter { tables: Tables::default(), iptables: Some(Iptables::set_up(config)?) })
        }
        // The kernel may be unable to count connections.
        Err(error) if counts && error.kind() != io::ErrorKind::NotFound => {
            let said = error.to_string();
            let unlimited = DatapathConfig { nat_connections: 0, ..config.clone() };
            let filter = packet_filter(&unlimited, closed).map_err(|_| error)?;
            tracing::warn!(
                error = said,
                "NAT: the number of a UE's connections is unlimited; the module nft_connlimit may be missing"
            );
            Ok(filter)
        }
        tables => Ok(Filter { tables: tables?, iptables: None }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::UePool;

    fn advice(nat: bool, said: &str) -> String {
        let gateway = "10.45.0.1".parse().unwrap();
        let config =
            DatapathConfig { nat, pools: vec![UePool { gateway, prefix: 16 }], ..Default::default() };
        advise(&config, io::Error::other(said.to_owned())).to_string()
    }

    #[test]
    fn missing_nat_is_reported_with_the_setting_that_requires_it() {
        let said = "nft: Error: Could not process rule: No such file or directory";
        let text = advice(true, said);
        assert!(text.starts_with(said), "{text}");
        assert!(text.contains("nft_chain_nat") && text.contains("'upf: {nat: false}'"), "{text}");
        assert!(!advice(false, said).contains("nat: false"));
        assert!(advice(true, "nft: Operation not permitted").contains("CAP_NET_ADMIN"));
    }
}
