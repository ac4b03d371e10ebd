//! What UEs do not reach through their sessions: this host, the core's networks, radios, other tenants' UEs; and which
//! hosts may send GTP-U.
//!
//! ```text
//!   configuration ─┐                         ┌─▶ workers: Message::Reach, Message::Radio
//!   this host ─────┼─▶ keeper ─▶ Reach ──────┼─▶ the BPF program's table `areas`
//!   rules' tunnels ┘  (a thread)             └─▶ nftables: what the kernel would let through
//! ```
//!
//! Every packet from a tunnel to N6 is checked before its rates, on the portable path by `portable/border.rs`, in the
//! program by `bpf/route.h`. The kernel's packet filter repeats the check behind the TUN interface
//! (`system/closed.rs`).

mod host;
mod keeper;
mod peers;
mod permit;
mod reach;

pub use host::Host;
pub use keeper::{Keeper, Mirror};
pub use permit::Permit;
pub use reach::{Area, Reach};

use crate::config::{DatapathConfig, UePool};
use crate::sys::interface_addresses;
use pith_upf::contract::AddressRange;
use std::net::IpAddr;

/// What is closed to UEs beside this host's own addresses, loopback, link-local and multicast addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Boundary {
    /// The core's addresses on N2, N3, N4, the SBI and the API. Where one is this host's, its network is closed too.
    pub own: Vec<IpAddr>,
    /// Further networks and addresses of the core: peers on N4 and the SBI.
    pub core: Vec<AddressRange>,
    /// Networks of radios and other UPFs. They are closed, and GTP-U is accepted from them; from others it is accepted
    /// where a tunnel leads to.
    pub radios: Vec<AddressRange>,
    /// Data networks. The UEs of one reach each other, and no other's. A pool that is in none is a tenant of its own.
    pub tenants: Vec<Tenant>,
}

/// A data network.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tenant {
    /// Addresses of its UEs, at any UPF.
    pub pools: Vec<AddressRange>,
    /// What of the closed its UEs reach.
    pub permits: Vec<Permit>,
}

impl Boundary {
    /// The tenants, with one of its own for each pool that is in none.
    fn tenants_with(&self, pools: &[UePool]) -> Vec<Tenant> {
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

/// An address as a range.
pub fn only(address: IpAddr) -> AddressRange {
    AddressRange { address, prefix: if address.is_ipv4() { 32 } else { 128 } }
}

/// The interfaces by which GTP-U comes: as the configuration says, or those that have an N3 address, or, where none has
/// one, all.
pub fn tunnel_interfaces(config: &DatapathConfig) -> Vec<String> {
    if !config.tunnel_interfaces.is_empty() {
        return config.tunnel_interfaces.clone();
    }
    let known = interface_addresses().unwrap_or_default();
    let is_n3 = |name: &&String| known.iter().any(|(of, at)| of == *name && config.n3_addresses.contains(at));
    let found: Vec<_> = config.interfaces.iter().filter(is_n3).cloned().collect();
    if found.is_empty() { config.interfaces.clone() } else { found }
}

/// The interfaces by which tunnels' packets come and leave and no others: none where all are such, since N6 is then
/// reached by one of them, too.
pub fn one_sided_interfaces(config: &DatapathConfig) -> Vec<String> {
    let tunnels = tunnel_interfaces(config);
    if config.interfaces.iter().all(|name| tunnels.contains(name)) { Vec::new() } else { tunnels }
}
