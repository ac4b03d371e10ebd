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
        let (tables, iptables) = packet_filter(config).map_err(StartError::setup(what))?;
        Ok(Self { _forwarding: forwarding, _routes: routes, _tables: tables, _iptables: iptables })
    }
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
