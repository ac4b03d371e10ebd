//! The boundary of UE sessions: which destinations are closed to UEs (this host, the core's networks, gNBs,
//! other tenants' UEs), and which hosts may send GTP-U.
//!
//! ```text
//!   configuration ─┐                         ┌─▶ workers: Message::Reach, Message::Radio
//!   this host ─────┼─▶ keeper ─▶ Reach ──────┼─▶ the BPF program's table `areas`
//!   rules' tunnels ┘  (a thread)             └─▶ nftables: what the kernel would let through
//! ```
//!
//! The portable path (`portable/border.rs`) and the BPF program (`bpf/route.h`) check each packet from a
//! tunnel to N6 before its rates. nftables repeats the check for packets from the TUN interface
//! (`system/closed.rs`).

mod behind_n3;
mod host;
mod keeper;
mod peers;
mod permit;
mod reach;

pub use behind_n3::{RoutedNetwork, TunnelSide};
pub use host::{Host, ask, ask_of, ip_address};
pub use keeper::{Keeper, Mirror};
pub use permit::Permit;
pub use reach::{Area, MAX_TENANTS, Reach};

use crate::automatic::default_interfaces;
use crate::config::{DatapathConfig, UePool};
use crate::sys::interface_addresses;
use pith_upf::contract::AddressRange;
use std::net::IpAddr;

/// Closed destinations in addition to this host's addresses and loopback, link-local and multicast addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Boundary {
    /// The core's addresses on N2, N3, N4, the SBI and the API. If one is this host's, its network is closed,
    /// too.
    pub own: Vec<IpAddr>,
    /// Further networks and addresses of the core: peers on N4 and the SBI.
    pub core: Vec<AddressRange>,
    /// Networks of gNBs and other UPFs. They are closed, and GTP-U is accepted from them; from other hosts
    /// only if they are peers of tunnels.
    pub radios: Vec<AddressRange>,
    /// Data networks. The UEs of one reach each other, but not those of another. A pool in none of them is a
    /// tenant of its own.
    pub tenants: Vec<Tenant>,
}

/// A data network.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tenant {
    /// Addresses of its UEs, at any UPF.
    pub pools: Vec<AddressRange>,
    /// Closed destinations that its UEs reach.
    pub permits: Vec<Permit>,
}

impl Boundary {
    /// The tenants, plus one for each pool that is in none.
    pub fn tenants_with(&self, pools: &[UePool]) -> Vec<Tenant> {
        let mut tenants = self.tenants.clone();
        for pool in pools.iter().map(UePool::network) {
            let is_known = tenants.iter().any(|tenant| tenant.pools.contains(&pool));
            if !is_known {
                tenants.push(Tenant { pools: vec![pool], permits: Vec::new() });
            }
        }
        tenants
    }
}

/// The address as a range of one.
pub fn only(address: IpAddr) -> AddressRange {
    AddressRange { address, prefix: if address.is_ipv4() { 32 } else { 128 } }
}

/// The interfaces with an N3 address.
fn with_n3_address(config: &DatapathConfig) -> Vec<String> {
    let known = interface_addresses().unwrap_or_default();
    let with_n3 = known.into_iter().filter(|(_, at)| config.n3_addresses.contains(at));
    let mut names: Vec<_> = with_n3.map(|(name, _)| name).collect();
    names.sort();
    names.dedup();
    names
}

/// The interfaces that receive GTP-U: as configured, or those with an N3 address, or all if none has one.
pub fn tunnel_interfaces(config: &DatapathConfig) -> Vec<String> {
    if !config.tunnel_interfaces.is_empty() {
        return config.tunnel_interfaces.clone();
    }
    let with_n3 = with_n3_address(config);
    let found: Vec<_> = config.interfaces.iter().filter(|name| with_n3.contains(name)).cloned().collect();
    if found.is_empty() { config.interfaces.clone() } else { found }
}

/// Interfaces for tunnel packets only. Empty if all interfaces are such, because N6 is then reached by one of
/// them.
pub fn one_sided_interfaces(config: &DatapathConfig) -> Vec<String> {
    let mut tunnels = tunnel_interfaces(config);
    if config.interfaces.iter().all(|name| tunnels.contains(name)) {
        return Vec::new();
    }
    if config.is_chosen {
        let to_network = default_interfaces();
        tunnels.retain(|name| !to_network.contains(name));
    }
    tunnels
}
