//! What Pith sets up in the system for UEs to reach the data network, and undoes when it stops: the
//! TUN interface's addresses, forwarding, NAT. It changes nothing that it did not make, but
//! `ip_forward`, which gets its former value back.

mod forwarding;
mod interface;
mod nat;
mod route;

use crate::config::{DatapathConfig, StartError};
use forwarding::Forwarding;
use nat::Nat;
pub use route::Route;
use std::net::IpAddr;

/// The set-up; dropping it undoes it. The interface itself goes with its last queue.
#[derive(Debug)]
pub struct Network {
    _forwarding: Vec<Forwarding>,
    _nat: Option<Nat>,
}

impl Network {
    /// Makes the interface, of which a queue is open, ready to carry the pools.
    pub fn set_up(config: &DatapathConfig) -> Result<Self, StartError> {
        let v6 = config.pools.iter().any(|pool| pool.gateway.is_ipv6());
        interface::quieten(&config.tun, v6);
        interface::bring_up(config)?;
        let v4 = config.pools.iter().any(|pool| pool.gateway.is_ipv4());
        let families = [(v4, forwarding::V4), (v6, forwarding::V6)];
        let forwarding = families
            .into_iter()
            .filter(|(wanted, _)| *wanted)
            .map(|(_, setting)| Forwarding::enable(setting))
            .collect::<Result<_, _>>()?;
        let nat = config.nat.then(|| Nat::set_up(&config.tun, &nat_pools(config))).transpose()?;
        Ok(Self { _forwarding: forwarding, _nat: nat })
    }
}

fn nat_pools(config: &DatapathConfig) -> Vec<String> {
    let v4 = config.pools.iter().filter_map(|pool| match pool.gateway {
        IpAddr::V4(gateway) => Some((gateway, pool.prefix)),
        IpAddr::V6(_) => None,
    });
    v4.map(|(gateway, prefix)| format!("{gateway}/{prefix}")).collect()
}
