//! Routing by which the kernel may send a packet another way than XDP's route look-up, which knows neither marks nor sockets, and
//! takes one of several next hops.

use super::route::{RTPROT_PITH, attributes};
use crate::boundary::ask;
use libc::{
    RT_TABLE_MAIN, RTA_MULTIPATH, RTM_GETLINK, RTM_GETROUTE, RTM_GETRULE, RTM_NEWLINK, RTM_NEWROUTE,
    RTM_NEWRULE,
};
use std::io;

const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_SLAVE_KIND: u16 = 4;
const FRA_PRIORITY: u16 = 6;
const FRA_L3MDEV: u16 = 19;
const FRA_PROTOCOL: u16 = 21;
/// Lengths of struct ifinfomsg, struct rtmsg, struct fib_rule_hdr.
const IFINFOMSG_LEN: usize = 16;
const RTMSG_LEN: usize = 12;
const RULE_LEN: usize = 12;
const FR_ACT_TO_TBL: u8 = 1;
/// Priorities and tables of the kernel's own rules: local, main, default.
const OWN_RULES: [(u32, u8); 3] = [(0, 255), (32_766, RT_TABLE_MAIN), (32_767, 253)];

/// Describes what makes the routing of these interfaces a policy, for the log; `None`: nothing.
pub fn foreign_routing(interfaces: &[String], families: &[libc::c_int]) -> io::Result<Option<String>> {
    for family in families.iter().map(|family| *family as u8) {
        let version = if i32::from(family) == libc::AF_INET { "IPv4" } else { "IPv6" };
        if let Some(priority) = foreign_rule(family)? {
            return Ok(Some(format!(
                "an {version} routing rule of priority {priority} is not the kernel's or Pith's"
            )));
        }
        if has_several_next_hops(family)? {
            return Ok(Some(format!("an {version} route has several next hops")));
        }
    }
    let enslaved = interface_in_vrf(interfaces)?;
    Ok(enslaved.map(|name| format!("{name} belongs to a VRF")))
}

/// Whether a routing rule is neither the kernel's nor Pith's.
pub fn has_foreign_rule(family: u8) -> io::Result<bool> {
    Ok(foreign_rule(family)?.is_some())
}

/// The priority of a rule that is neither the kernel's nor Pith's.
fn foreign_rule(family: u8) -> io::Result<Option<u32>> {
    let mut found = None;
    let mut request = vec![0; RULE_LEN];
    request[0] = family;
    ask(RTM_GETRULE, &request, |kind, body| {
        if kind == RTM_NEWRULE {
            found = found.or_else(|| priority_of_foreign(body));
        }
    })?;
    Ok(found)
}

/// Reads struct fib_rule_hdr and attributes.
fn priority_of_foreign(rule: &[u8]) -> Option<u32> {
    let (head, rest) = rule.split_at_checked(RULE_LEN)?;
    let priority = value(rest, FRA_PRIORITY).and_then(|value| value.first_chunk());
    let priority = priority.map_or(0, |octets| u32::from_ne_bytes(*octets));
    let [_, to, from, tos, table, _, _, action, ..] = *head else { return None };
    let is_kernels =
        [to, from, tos, action] == [0, 0, 0, FR_ACT_TO_TBL] && OWN_RULES.contains(&(priority, table));
    // The rule of VRFs concerns their interfaces only.
    let is_of_vrf = value(rest, FRA_L3MDEV).is_some();
    let is_piths = value(rest, FRA_PROTOCOL) == Some(&[RTPROT_PITH]);
    (!is_kernels && !is_of_vrf && !is_piths).then_some(priority)
}

fn has_several_next_hops(family: u8) -> io::Result<bool> {
    let mut found = false;
    let mut request = vec![0; RTMSG_LEN];
    (request[0], request[4]) = (family, RT_TABLE_MAIN);
    ask(RTM_GETROUTE, &request, |kind, body| {
        let (head, rest) = body.split_at_checked(RTMSG_LEN).unwrap_or_default();
        let is_main = head.get(4) == Some(&RT_TABLE_MAIN);
        found |= kind == RTM_NEWROUTE && is_main && value(rest, RTA_MULTIPATH).is_some();
    })?;
    Ok(found)
}

/// One of these interfaces that a VRF has enslaved.
fn interface_in_vrf(interfaces: &[String]) -> io::Result<Option<String>> {
    let mut found = None;
    ask(RTM_GETLINK, &[0; IFINFOMSG_LEN], |kind, body| {
        let (_, rest) = body.split_at_checked(IFINFOMSG_LEN).unwrap_or_default();
        let slave = value(rest, IFLA_LINKINFO).and_then(|info| value(info, IFLA_INFO_SLAVE_KIND));
        if kind == RTM_NEWLINK && slave.is_some_and(|kind| kind.starts_with(b"vrf")) {
            let name = value(rest, IFLA_IFNAME).unwrap_or_default();
            let is_named = |own: &&String| name.strip_suffix(&[0]) == Some(own.as_bytes());
            found = found.take().or_else(|| interfaces.iter().find(is_named).cloned());
        }
    })?;
    Ok(found)
}

fn value(octets: &[u8], wanted: u16) -> Option<&[u8]> {
    /// `NLA_F_NESTED`
    const NESTED: u16 = 1 << 15;
    attributes(octets).find(|(kind, _)| kind & !NESTED == wanted).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::enter_namespace;
    use std::process::Command;

    fn ip(command: &str) -> bool {
        Command::new("ip").args(command.split(' ')).status().unwrap().success()
    }

    fn found() -> Option<String> {
        foreign_routing(&["n6".to_owned()], &[libc::AF_INET, libc::AF_INET6]).unwrap()
    }

    #[test]
    fn policies_of_the_kernels_routing_are_found() {
        if !enter_namespace() {
            return;
        }
        for command in [
            "link add n6 type veth peer name server",
            "link set n6 up",
            "link set server up",
            "addr add 192.0.2.1/24 dev n6",
            "route add default via 192.0.2.2",
            "rule add from 10.45.0.0/16 iif n6 table 77 priority 20000 protocol 197",
        ] {
            assert!(ip(command), "{command}");
        }
        assert_eq!(found(), None, "one next hop, and a rule of Pith");
        for (family, rule) in
            [("-4", "fwmark 1 table 100"), ("-6", "from all lookup main suppress_prefixlength 0")]
        {
            assert!(ip(&format!("{family} rule add {rule} priority 500")));
            assert!(found().unwrap().contains("routing rule of priority 500"));
            assert!(ip(&format!("{family} rule del priority 500")));
        }
        assert!(ip("route replace default nexthop via 192.0.2.2 nexthop via 192.0.2.3"));
        assert!(found().unwrap().contains("an IPv4 route has several next hops"));
        assert!(ip("route del default"));
        if ip("link add blue type vrf table 10") {
            assert_eq!(found(), None, "a VRF without the interface");
            assert!(ip("link set n6 master blue"));
            assert_eq!(found().unwrap(), "n6 belongs to a VRF");
        }
    }
}
