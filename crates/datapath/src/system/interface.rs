//! The TUN interface: length of packets and queue, addresses, up.

use super::route::Route;
use crate::config::{DatapathConfig, StartError, UePool};
use std::fs;

/// Packets or trains that a TUN queue holds for its worker.
const QUEUE_LEN: u32 = 4096;

/// Keeps the kernel from talking IPv6 of its own on the interface, since UEs are no link, and from sending packets of UEs
/// where their options say (RFC 791 3.1, source routes). Best effort: where the first fails, some packets are dropped and
/// counted; the second is the kernel's default.
pub fn quieten(tun: &str, v6: bool) {
    let _ = fs::write(format!("/proc/sys/net/ipv4/conf/{tun}/accept_source_route"), "0");
    let (setting, value) = if v6 { ("addr_gen_mode", "1") } else { ("disable_ipv6", "1") };
    let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{tun}/{setting}"), value);
}

/// Sets lengths, gives the interface the pools' gateways, which makes their routes, and brings it up.
pub fn bring_up(config: &DatapathConfig) -> Result<(), StartError> {
    let tun = &config.tun;
    let mut route = Route::open(tun).map_err(StartError::setup(format!("finding interface {tun}")))?;
    route
        .set_lengths(config.mtu.into(), QUEUE_LEN)
        .map_err(StartError::setup(format!("setting MTU {} of {tun}", config.mtu)))?;
    route.bring_up().map_err(StartError::setup(format!("bringing {tun} up")))?;
    for UePool { gateway, prefix } in &config.pools {
        route
            .add_address(*gateway, *prefix)
            .map_err(StartError::setup(format!("giving {tun} the address {gateway}/{prefix}")))?;
    }
    Ok(())
}
