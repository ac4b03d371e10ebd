//! Finds the interfaces of N3 and N6, if the configuration does not name them: XDP runs there if that neither interrupts nor
//! slows down other traffic of the host.

use crate::config::{DatapathConfig, XdpHook};
use crate::placement;
use crate::sys::{driver_of, interface_addresses, strips_vlan_tags, vlan_of};
use crate::system::{foreign_routing, foreign_rules, has_ipsec_policies};
use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::{fs, io};

/// Drivers that attach XDP without a reset of the link. Others may lose the link for seconds.
const STEADY_DRIVERS: [&str; 2] = ["virtio_net", "mlx5_core"];

/// The name of the loopback interface in every network namespace.
const LOOPBACK: &str = "lo";

const ROUTING_REMEDY: &str = "name the interfaces in 'upf.interfaces', if routes without marks and sources lead to the right next hops";

/// Octets of the tables for a session: its block of 512, its keys, and its part of what only some sessions use.
const SESSION_OCTETS: u64 = 1_700;
/// Octets of the caches of routes and of senders of a CPU, with few CPUs; and the most of all CPUs, as long as a CPU's share
/// is not too small.
const CPU_OCTETS: u64 = 1_710_000;
const CACHE_OCTETS: u64 = 16_800_000;
/// The least of a CPU.
const LEAST_CPU_OCTETS: u64 = 115_000;
/// Octets of an AF_XDP socket, one for each queue.
const QUEUE_OCTETS: u64 = 9_000_000;
/// XDP chosen by itself uses at most the available memory divided by this.
const MEMORY_PART: u64 = 16;

/// Why XDP does not run, and what would change that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// As a sentence without full stop.
    pub reason: String,
    /// The setting or measure with which XDP would run.
    pub remedy: Option<String>,
}

impl Obstacle {
    pub fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { reason: reason.into(), remedy: Some(remedy.into()) }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, "; for XDP {remedy}"))
    }
}

/// The configuration with the interfaces of this host, in whose drivers XDP can run.
pub fn with_interfaces(config: &DatapathConfig) -> Result<DatapathConfig, Obstacle> {
    let known = interface_addresses().unwrap_or_default();
    let interface_of = |address: &IpAddr| {
        // All of 127.0.0.0/8, of which an interface has one address.
        if address.is_loopback() {
            return LOOPBACK.to_owned();
        }
        known.iter().find(|(_, of)| of == address).map(|(name, _)| name.clone()).unwrap_or_default()
    };
    let n3: Vec<_> = config.n3_addresses.iter().map(|address| (*address, interface_of(address))).collect();
    let interfaces = choose(&n3, &default_interfaces(), config.xdp_hook, Device::of)?;
    check_routing(config, &interfaces)?;
    // The generic hook would make each packet of the host slower.
    let xdp_hook = if config.xdp_hook == XdpHook::Auto { XdpHook::Native } else { config.xdp_hook };
    let queues = if xdp_hook == XdpHook::Generic {
        0
    } else {
        placement::queues(&placement::of(&interfaces)).max(interfaces.len()) as u64
    };
    let available = memory_available(&fs::read_to_string("/proc/meminfo").unwrap_or_default());
    let cpus = libbpf_rs::num_possible_cpus().unwrap_or(1);
    check_memory(config.sessions, cpus as u64, queues, available)?;
    Ok(DatapathConfig { interfaces, is_chosen: true, xdp_hook, ..config.clone() })
}

/// Octets of memory that processes can still get (/proc/meminfo); `None`: unknown.
fn memory_available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.saturating_mul(1024))
}

/// The kernel allocates XDP's tables for all sessions at the start: they must not take memory that other programs need.
fn check_memory(sessions: u32, cpus: u64, queues: u64, available: Option<u64>) -> Result<(), Obstacle> {
    let caches = CPU_OCTETS.saturating_mul(cpus).min(CACHE_OCTETS.max(LEAST_CPU_OCTETS.saturating_mul(cpus)));
    let needed = SESSION_OCTETS.saturating_mul(sessions.into()).saturating_add(caches);
    let needed = needed.saturating_add(QUEUE_OCTETS.saturating_mul(queues));
    let Some(available) = available.filter(|available| needed > available / MEMORY_PART) else {
        return Ok(());
    };
    let (needed, available) = (needed / 1_000_000, available / 1_000_000);
    let reason = format!(
        "its tables and sockets take about {needed} MB, more than 1/{MEMORY_PART} of the {available} MB available"
    );
    Err(Obstacle::new(reason, "lower 'upf.sessions', or name the interfaces in 'upf.interfaces'"))
}

/// XDP's route look-up must choose the same way as the kernel, which forwards the first packets.
fn check_routing(config: &DatapathConfig, interfaces: &[String]) -> Result<(), Obstacle> {
    let found = foreign_routes(config, interfaces)
        .unwrap_or_else(|error| Some(format!("the kernel's routing rules cannot be read ({error})")));
    found.map_or(Ok(()), |reason| Err(Obstacle::new(reason, ROUTING_REMEDY)))
}

/// What makes the kernel choose another way than XDP's route look-up; `None`: nothing.
pub fn foreign_routes(config: &DatapathConfig, interfaces: &[String]) -> io::Result<Option<String>> {
    let has = |is_of: fn(&IpAddr) -> bool| {
        config.pools.iter().map(|pool| &pool.gateway).chain(&config.n3_addresses).any(is_of)
    };
    let families = [(libc::AF_INET, has(IpAddr::is_ipv4)), (libc::AF_INET6, has(IpAddr::is_ipv6))];
    let families: Vec<_> = families.into_iter().filter(|(_, used)| *used).map(|(family, _)| family).collect();
    foreign_routing(interfaces, &families)
}

/// What a name in the routing table or with an N3 address stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Device {
    Loopback,
    /// A network card, or a VLAN of one.
    Card {
        driver: String,
        /// For a VLAN: its card, if that removes tags before XDP sees the frames.
        stripped_by: Option<String>,
    },
    /// Such as veth, bridge, bonding, tun.
    Virtual {
        driver: String,
    },
}

impl Device {
    fn of(name: &str) -> Self {
        let vlan = vlan_of(name);
        let is_vlan = vlan.is_some();
        let (device, _) = vlan.unwrap_or((name.to_owned(), 0));
        let driver = driver_of(&device).unwrap_or_default();
        let is_card = Path::new("/sys/class/net").join(&device).join("device").exists();
        match (device.as_str(), is_card) {
            (LOOPBACK, _) => Self::Loopback,
            (_, true) => {
                let strips = is_vlan && strips_vlan_tags(&device).unwrap_or(true);
                Self::Card { driver, stripped_by: strips.then_some(device) }
            }
            (_, false) => Self::Virtual { driver },
        }
    }
}

/// The interfaces of N3, given with their addresses, and of N6, without duplicates.
fn choose(
    n3: &[(IpAddr, String)],
    n6: &[String],
    hook: XdpHook,
    device: impl Fn(&str) -> Device,
) -> Result<Vec<String>, Obstacle> {
    const NAME_THEM: &str = "name the interfaces of N3 and N6 in 'upf.interfaces'";
    for (address, name) in n3 {
        if name.is_empty() {
            return Err(Obstacle::new(format!("no interface has N3's address {address}"), NAME_THEM));
        }
        if device(name) == Device::Loopback {
            let reason = format!("N3's address {address} is on the loopback interface");
            return Err(Obstacle::new(reason, "set 'upf.n3' to an address of a network interface"));
        }
    }
    if n6.is_empty() {
        return Err(Obstacle::new("there is no default route, which would name N6's interface", NAME_THEM));
    }
    let mut found: Vec<String> = Vec::new();
    for name in n3.iter().map(|(_, name)| name).chain(n6).filter(|name| !name.is_empty()) {
        check(name, device(name), hook)?;
        if !found.contains(name) {
            found.push(name.clone());
        }
    }
    Ok(found)
}

/// Whether XDP may run on an interface that the configuration does not name. A configured hook permits any whose frames XDP
/// sees with their VLAN tags.
fn check(name: &str, device: Device, hook: XdpHook) -> Result<(), Obstacle> {
    if let Device::Card { stripped_by: Some(card), .. } = &device {
        // XDP would take the frames of the VLAN for untagged ones.
        let reason = format!("{card} removes the VLAN tags of {name} before XDP sees them");
        return Err(Obstacle::new(reason, format!("run 'ethtool -K {card} rxvlan off'")));
    }
    if hook != XdpHook::Auto {
        return Ok(());
    }
    match device {
        Device::Loopback => {
            Err(Obstacle { reason: format!("N6 is the loopback interface {name}"), remedy: None })
        }
        Device::Virtual { driver } => {
            let kind = if driver.is_empty() { "virtual" } else { &driver };
            let remedy = "name it in 'upf.interfaces', where local senders need no segmentation offload";
            Err(Obstacle::new(format!("{name} is a {kind} interface"), remedy))
        }
        Device::Card { driver, .. } if !STEADY_DRIVERS.contains(&driver.as_str()) => {
            let reason = format!("its start may reset the link of {name} (driver {driver})");
            Err(Obstacle::new(reason, "permit that by 'upf.xdp: native'"))
        }
        Device::Card { .. } => Ok(()),
    }
}

/// The interfaces of this host's IPv4 default routes.
pub fn default_interfaces() -> Vec<String> {
    default_routes(&fs::read_to_string("/proc/thread-self/net/route").unwrap_or_default())
}

/// The interfaces of IPv4 default routes (/proc/net/route).
fn default_routes(table: &str) -> Vec<String> {
    let is_default =
        |fields: &[&str]| fields.get(1) == Some(&"00000000") && fields.get(7) == Some(&"00000000");
    let rows = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut found: Vec<String> = Vec::new();
    for name in
        rows.filter(|fields| is_default(fields)).filter_map(|fields| Some((*fields.first()?).to_owned()))
    {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// The host's packet filter rules that packets would bypass. With NAT44 the kernel sees the first packets of each connection, and so do
/// rules of its NAT.
pub fn bypassed_rules(config: &DatapathConfig) -> Vec<String> {
    let mut pools = config.pools.iter().filter(|pool| !config.is_only_by_kernel(**pool)).peekable();
    if pools.peek().is_none() {
        return Vec::new();
    }
    let policies = has_ipsec_policies().then(|| "the policies of IPsec ('ip xfrm policy')".to_owned());
    foreign_rules(!pools.all(|pool| config.has_nat44(*pool))).into_iter().chain(policies).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str) -> Device {
        let driver = |driver: &str| driver.to_owned();
        let card = |of: &str, stripped_by| Device::Card { driver: driver(of), stripped_by };
        match name {
            "lo" => Device::Loopback,
            "eth0" | "eth1" | "eth0.7" => card("virtio_net", None),
            "ens1" => card("ixgbe", None),
            "ens2.7" => card("mlx5_core", Some("ens2".to_owned())),
            _ => Device::Virtual { driver: driver("veth") },
        }
    }

    fn choice(n3: &[(&str, &str)], n6: &[&str], hook: XdpHook) -> Result<Vec<String>, Obstacle> {
        let n3: Vec<_> = n3.iter().map(|(at, name)| (at.parse().unwrap(), (*name).to_owned())).collect();
        let n6: Vec<_> = n6.iter().map(|name| (*name).to_owned()).collect();
        choose(&n3, &n6, hook, device)
    }

    #[test]
    fn the_interfaces_of_n3_and_n6_are_found() {
        let n3 = [("192.0.2.1", "eth0")];
        assert_eq!(choice(&n3, &["eth1"], XdpHook::Auto).unwrap(), ["eth0", "eth1"]);
        assert_eq!(choice(&n3, &["eth0"], XdpHook::Auto).unwrap(), ["eth0"], "one for both");
        assert_eq!(choice(&n3, &["eth0.7"], XdpHook::Auto).unwrap(), ["eth0", "eth0.7"]);
    }

    #[test]
    fn the_reason_against_xdp_is_stated_with_its_remedy() {
        for (n3, n6, reason, remedy) in [
            (("127.0.0.7", "lo"), "eth0", "127.0.0.7 is on the loopback interface", "upf.n3"),
            (("192.0.2.1", ""), "eth0", "no interface has N3's address 192.0.2.1", "upf.interfaces"),
            (("192.0.2.1", "eth0"), "", "no default route", "upf.interfaces"),
            (("192.0.2.1", "veth7"), "eth0", "veth7 is a veth interface", "upf.interfaces"),
            (("192.0.2.1", "eth0"), "ens1", "reset the link of ens1 (driver ixgbe)", "upf.xdp: native"),
            (("192.0.2.1", "ens2.7"), "eth0", "VLAN tags of ens2.7", "ethtool -K ens2 rxvlan off"),
        ] {
            let n6: Vec<_> = [n6].into_iter().filter(|name| !name.is_empty()).collect();
            let text = choice(&[n3], &n6, XdpHook::Auto).unwrap_err().to_string();
            assert!(text.contains(reason) && text.contains(remedy), "{text}");
        }
    }

    #[test]
    fn a_configured_hook_permits_any_interface_but_loopback() {
        let n3 = [("192.0.2.1", "veth7")];
        assert_eq!(choice(&n3, &["ens1"], XdpHook::Generic).unwrap(), ["veth7", "ens1"]);
        assert!(choice(&[("127.0.0.7", "lo")], &["ens1"], XdpHook::Native).is_err());
    }

    #[test]
    fn xdp_takes_a_small_part_of_the_memory_only() {
        let available = memory_available("MemTotal:  4000000 kB\nMemAvailable:     1000000 kB\n");
        assert_eq!(available, Some(1_024_000_000));
        assert!(check_memory(16_384, 2, 2, available).is_ok(), "49 of 64 MB");
        assert!(check_memory(16_384, 64, 2, available).is_ok(), "63 MB: hardly more for each CPU");
        assert!(check_memory(16_384, 2, 2, None).is_ok(), "unknown");
        let obstacle = check_memory(100_000, 64, 2, available).unwrap_err().to_string();
        assert!(obstacle.contains("about 204 MB, more than 1/16 of the 1024 MB"), "{obstacle}");
        assert!(check_memory(u32::MAX, u64::MAX, 1, available).is_err());
    }

    #[test]
    fn default_routes_are_read() {
        let table = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
                     eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
                     eth1\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
                     eth0\t00000000\t0201A8C0\t0003\t0\t0\t200\t00000000\t0\t0\t0\n";
        assert_eq!(default_routes(table), ["eth0"]);
    }
}
