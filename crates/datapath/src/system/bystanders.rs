//! Keeps the host from routing between its other interfaces, where Pith alone enabled forwarding: between the core's networks and the
//! data network packets of UEs are forwarded, and no others.

use super::forwarding::{Switch, V4, V6};
use super::route::Route;
use crate::config::StartError;

/// The group of the TUN interfaces of all UPFs in a network namespace: one that enabled forwarding permits it to the others.
const TUN_GROUP: u32 = u32::from_be_bytes(*b"PITH");

/// Makes the interface one of a UPF's.
pub fn set_group(tun: &str) -> Result<(), StartError> {
    let set = Route::open(tun).and_then(|mut route| route.set_group(TUN_GROUP));
    set.map_err(StartError::setup(format!("setting the group of {tun}")))
}

/// The chain for a family of addresses (`ip`, `ip6`); empty if the host forwarded packets before.
pub fn chain(tun: &str, family: &str, switches: &[Switch]) -> String {
    let setting = if family == "ip" { V4 } else { V6 };
    if !switches.iter().any(|switch| switch.has_enabled(setting)) {
        return String::new();
    }
    format!(
        "\tchain bystanders {{\n\t\ttype filter hook forward priority -10;\n\t\tiif \"{tun}\" accept\n\t\toif \"{tun}\" accept\n\
         \t\tiifgroup {TUN_GROUP} accept\n\t\toifgroup {TUN_GROUP} accept\n\t\tcounter drop\n\t}}\n"
    )
}
