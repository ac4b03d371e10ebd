//! Keeps the data network from speaking GTP-U and PFCP: sockets take what the kernel delivers, from any interface.

use crate::boundary::tunnel_interfaces;
use crate::config::DatapathConfig;
use crate::sys::{driver_of, interface_addresses};
use pith_pfcp::gtpu::GTPU_PORT;
use std::net::IpAddr;

/// The chain for a family of addresses (`ip`, `ip6`); empty without interfaces that lead to the data network only.
pub fn chain(config: &DatapathConfig, family: &str) -> String {
    let is_of = |address: &&IpAddr| address.is_ipv4() == (family == "ip");
    let own: Vec<_> = config.n3_addresses.iter().filter(is_of).map(ToString::to_string).collect();
    let from: Vec<_> = outer_interfaces(config).into_iter().map(|name| format!("\"{name}\"")).collect();
    if own.is_empty() || from.is_empty() {
        return String::new();
    }
    let (own, from) = (own.join(", "), from.join(", "));
    tracing::debug!(own, from, "GTP-U from these interfaces is dropped");
    format!(
        "\tchain tunnels {{\n\t\ttype filter hook input priority -10;\n\
         \t\tiifname {{ {from} }} {family} daddr {{ {own} }} udp dport {GTPU_PORT} counter drop\n\t}}\n"
    )
}

/// The chain that checks the reverse path of PFCP, also where the host does not (`rp_filter`): a host of another network that names itself as the
/// SMF would end all sessions (design 12a). Empty if no other host reaches N4.
pub fn n4_chain(config: &DatapathConfig, family: &str) -> String {
    let Some(own) = config.n4_address.filter(|own| own.is_ipv4() == (family == "ip")) else {
        return String::new();
    };
    format!(
        "\tchain n4 {{\n\t\ttype filter hook input priority -10;\n\
         \t\t{family} daddr {} udp dport {} iif != \"lo\" fib saddr . iif oif missing counter drop\n\t}}\n",
        own.ip(),
        own.port()
    )
}

/// Interfaces that lead to the data network, and not to gNBs: of the configured ones those without tunnels; without configured ones
/// those of default routes, unless they or a loopback interface have N3's address.
fn outer_interfaces(config: &DatapathConfig) -> Vec<String> {
    if !config.interfaces.is_empty() {
        let tunnels = tunnel_interfaces(config);
        return config.interfaces.iter().filter(|name| !tunnels.contains(name)).cloned().collect();
    }
    let known = interface_addresses().unwrap_or_default();
    let with_n3: Vec<_> =
        known.iter().filter(|(_, address)| config.n3_addresses.contains(address)).map(|(of, _)| of).collect();
    let is_anywhere =
        with_n3.iter().any(|name| *name == "lo" || driver_of(name).is_ok_and(|driver| driver == "dummy"));
    if with_n3.is_empty() || is_anywhere {
        return Vec::new();
    }
    let mut found = crate::automatic::default_interfaces();
    found.retain(|name| !with_n3.contains(&name));
    found
}
