//! Sets up the TUN interface: MTU, queue length, addresses, up.

use super::route::Route;
use crate::config::{DatapathConfig, StartError, UePool};
use std::fs;

/// Packets or trains in the kernel's TUN queue.
const QUEUE_LEN: u32 = 4096;

/// Prevents the kernel from sending its own IPv6 packets on the interface, where they would be no use to UEs,
/// and from forwarding packets of UEs by source routes (RFC 791 3.1). Best effort: if the first fails, some
/// packets are dropped and counted; the second is the kernel's default.
pub fn quieten(tun: &str, v6: bool) {
    let _ = fs::write(format!("/proc/sys/net/ipv4/conf/{tun}/accept_source_route"), "0");
    let (setting, value) = if v6 { ("addr_gen_mode", "1") } else { ("disable_ipv6", "1") };
    let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{tun}/{setting}"), value);
}

/// Sets the lengths, adds the pools' gateways, which creates their routes, and brings the interface up.
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
