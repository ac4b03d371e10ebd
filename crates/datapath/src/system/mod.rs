//! What Pith sets up in the system for UEs to reach the data network, and undoes when it stops: the
//! TUN interface's addresses, forwarding, NAT, firewalls, routes. It changes nothing that it did not make, but
//! `ip_forward`, which gets its former value back.

mod firewall;
mod forwarding;
mod framed;
mod interface;
mod nat;
mod nft;
mod policy;
mod port_blocks;
mod port_log;
mod route;
mod routing;

use crate::config::{DatapathConfig, StartError};
use forwarding::Forwarding;
pub use framed::FramedRoutes;
use nat::Iptables;
use nft::Tables;
pub use policy::{FirewallRule, NetworkPolicy, Protocol, StaticRoute, Verdict};
pub use port_blocks::{PortBlock, PortBlocks};
pub use port_log::PortLog;
pub use route::Route;
use routing::NetworkRoutes;
use std::io;
use std::net::IpAddr;

/// The set-up; dropping it undoes it. The interface itself goes with its last queue.
#[derive(Debug)]
pub struct Network {
    _forwarding: Vec<Forwarding>,
    _routes: Vec<NetworkRoutes>,
    _tables: Tables,
    _iptables: Iptables,
}

impl Network {
    /// Makes the interface, of which a queue is open, ready to carry the pools. What a process before left for an
    /// interface of that name goes first, whatever the configuration asks for.
    pub fn set_up(config: &DatapathConfig) -> Result<Self, StartError> {
        let v6 = config.pools.iter().any(|pool| pool.gateway.is_ipv6());
        interface::quieten(&config.tun, v6);
        interface::bring_up(config)?;
        let families = [
            (config.forwards(IpAddr::is_ipv4), forwarding::V4),
            (config.forwards(IpAddr::is_ipv6), forwarding::V6),
        ];
        let forwarding = families
            .into_iter()
            .filter(|(wanted, _)| *wanted)
            .map(|(_, setting)| Forwarding::enable(setting))
            .collect::<Result<_, _>>()?;
        let routes = NetworkRoutes::set_up(config)?;
        let what = "setting up NAT and firewall (nftables, or for NAT alone iptables where nft is missing)";
        let (tables, iptables) =
            packet_filter(config).map_err(|error| advise(config, error)).map_err(StartError::setup(what))?;
        Ok(Self { _forwarding: forwarding, _routes: routes, _tables: tables, _iptables: iptables })
    }
}

/// Adds to what `nft` or `iptables` said what to do about it.
fn advise(config: &DatapathConfig, error: io::Error) -> io::Error {
    let said = error.to_string();
    let lacks = ["No such file or directory", "not supported"].iter().any(|text| said.contains(text));
    let wants_nat = !nat::tables(config).is_empty();
    let advice = match error.kind() {
        io::ErrorKind::NotFound => "install nftables",
        _ if said.contains("not permitted") => "run as root, or with CAP_NET_ADMIN",
        _ if lacks && wants_nat => {
            "this kernel has no NAT for nftables: load its modules (modprobe -a nft_chain_nat nft_masq), or write \
             'upf: {nat: false}', remove 'nat_addresses', and leave NAT, or the route back to the pool, to a router"
        }
        _ if lacks => "this kernel lacks a part of nftables: load its modules (modprobe -a nf_tables nft_ct)",
        _ => return error,
    };
    io::Error::new(error.kind(), format!("{said}; {advice}"))
}

fn packet_filter(config: &DatapathConfig) -> io::Result<(Tables, Iptables)> {
    let tables: Vec<_> = nat::tables(config).into_iter().chain(firewall::table(config)).collect();
    match Tables::put_in(&config.tun, &tables) {
        Err(error)
            if error.kind() == io::ErrorKind::NotFound
                && (tables.is_empty() || Iptables::is_enough_for(config)) =>
        {
            Ok((Tables::default(), Iptables::set_up(config)?))
        }
        tables => Ok((tables?, Iptables::default())),
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
    fn a_kernel_without_nat_is_told_with_the_setting_that_asks_for_it() {
        let said = "nft: Error: Could not process rule: No such file or directory";
        let text = advice(true, said);
        assert!(text.starts_with(said), "{text}");
        assert!(text.contains("nft_chain_nat") && text.contains("'upf: {nat: false}'"), "{text}");
        assert!(!advice(false, said).contains("nat: false"));
        assert!(advice(true, "nft: Operation not permitted").contains("CAP_NET_ADMIN"));
    }
}
