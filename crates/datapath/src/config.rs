//! Configuration of a datapath, and errors at start.

use crate::boundary::Boundary;
use crate::system::NetworkPolicy;
use crate::xdp::XdpError;
use pith_upf::contract::{AddressRange, UeAddress};
use pith_upf::qos::{BufferLimits, Enforcement, SharedRate};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use thiserror::Error;

/// Settings of a datapath.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatapathConfig {
    /// Addresses of this host for GTP-U. Packets are sent from the first of each family.
    pub n3_addresses: Vec<IpAddr>,
    /// Address of this host for PFCP, if other hosts may reach it: packets to it must come from where their source is routed to.
    pub n4_address: Option<SocketAddr>,
    /// Name of the TUN interface to create: 1 to 15 bytes, not in use.
    pub tun: String,
    /// Address pools of the UEs.
    pub pools: Vec<UePool>,
    /// Longest packet of a UE, 1280 to 65,000 bytes: with 44 bytes of tunnel headers over IPv4 (64 over IPv6)
    /// it must fit into N3's MTU.
    pub mtu: u16,
    /// DNS servers of IPv6 pools, sent to UEs that request them by DHCPv6.
    pub dns: Vec<(AddressRange, Vec<Ipv6Addr>)>,
    /// Number of worker threads; 0: one for each core.
    pub workers: usize,
    /// Whether packets to other networks get an address of the host (NAT44). The XDP path needs Linux 6.0 for it.
    pub nat: bool,
    /// The greatest number of connections of a UE through NAT44; 0: unlimited.
    pub nat_connections: u32,
    /// Closed destinations in addition to this host and the networks of `n3_addresses`.
    pub boundary: Boundary,
    /// N6 policies of pools, at most one a pool. Sessions of pools with another policy than NAT44 take the portable path.
    pub policies: Vec<NetworkPolicy>,
    /// Limits on packets held for idle UEs and on queued packets.
    pub buffer: BufferLimits,
    /// Whether packets above rates are queued or dropped.
    pub enforcement: Enforcement,
    /// Rates shared by all UEs of a network: a slice's AMBR.
    pub shared_rates: Vec<SharedRate>,
    /// The packet path.
    pub path: PathChoice,
    /// The N3 and N6 interfaces of the XDP path; VLAN interfaces by their own names. Empty: with `PathChoice::Auto` those with
    /// N3's addresses and default routes, if XDP does not disturb other traffic there.
    pub interfaces: Vec<String>,
    /// Those of `interfaces` towards gNBs and other UPFs: GTP-U received on the others is dropped. Empty: the interfaces that
    /// have an N3 address, or all if none has one.
    pub tunnel_interfaces: Vec<String>,
    /// Whether Pith chose `interfaces`: then user packets may leave by one with an N3 address, too, if it has a default route.
    pub is_chosen: bool,
    /// Whether packets of networks without NAT44 may bypass rules of the host's packet filter. Otherwise `PathChoice::Auto`
    /// takes the portable path if there are any.
    pub bypass_firewall: bool,
    /// Where the XDP program runs.
    pub xdp_hook: XdpHook,
    /// Sessions in the XDP path's tables, 1 to 1,048,576; some 2 kB each on two CPUs. Further sessions take
    /// the portable path.
    pub sessions: u32,
    /// A directory such as /sys/fs/bpf/pith, for one UPF only. With it, the XDP program stays attached when
    /// the process is killed, and the next process succeeds it. If no BPF file system is there, one is
    /// mounted on it.
    pub pin: Option<PathBuf>,
    /// Whether the XDP path (with AF_XDP) sends a user packet from a UDP port that depends on its flow, 49152 to 65535, over
    /// IPv6 also with a flow label, so that receivers and routers spread flows. Otherwise, and on the portable path, from
    /// port 2152.
    pub flow_ports: bool,
    /// Whether the XDP path spreads the packets of tunnels over all CPUs by TEID. All packets of a gNB arrive at one CPU: this
    /// helps if that is busier than the others, and costs more CPU time a packet.
    pub spread: bool,
    /// Whether outer headers get the ECN field of their packet (RFC 6040 4.1, normal mode), so that routers between UPF and
    /// gNB mark packets instead of dropping them; otherwise zero. The receiver must follow RFC 6040, too.
    pub outer_ecn: bool,
    /// Whether unknown TEIDs are answered with Error Indications from the first packet on. Not if SMFs may restore sessions.
    pub refuses_unknown: bool,
}

/// The packet path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PathChoice {
    /// XDP if the interfaces, the system and its packet filter permit it; otherwise the portable path.
    #[default]
    Auto,
    /// XDP; the start fails if it is not available.
    Xdp,
    /// GTP-U socket and TUN.
    Portable,
}

/// Where the XDP program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum XdpHook {
    /// In the driver, if it supports XDP; on a veth after the driver, because its peer may not be prepared.
    #[default]
    Auto,
    /// In the driver. The peer of a veth needs GRO on (`ethtool -K eth0 gro on`) or an XDP program of its
    /// own.
    Native,
    /// After the driver: on any interface, but slower.
    Generic,
}

impl Default for DatapathConfig {
    /// The test network's pool, with N3 at 127.0.0.1 and without NAT.
    fn default() -> Self {
        let pool = UePool { gateway: IpAddr::from([10, 45, 0, 1]), prefix: 16 };
        Self {
            n3_addresses: vec![IpAddr::from([127, 0, 0, 1])],
            n4_address: None,
            tun: "pith0".to_owned(),
            pools: vec![pool],
            mtu: 1400,
            dns: Vec::new(),
            workers: 0,
            nat: false,
            nat_connections: 4096,
            boundary: Boundary::default(),
            policies: Vec::new(),
            buffer: BufferLimits::default(),
            enforcement: Enforcement::default(),
            shared_rates: Vec::new(),
            path: PathChoice::Auto,
            interfaces: Vec::new(),
            tunnel_interfaces: Vec::new(),
            is_chosen: false,
            bypass_firewall: false,
            xdp_hook: XdpHook::Auto,
            sessions: 16_384,
            pin: None,
            flow_ports: true,
            spread: false,
            outer_ecn: true,
            refuses_unknown: true,
        }
    }
}

impl DatapathConfig {
    /// The N6 policy of a pool.
    pub fn policy(&self, pool: UePool) -> Option<&NetworkPolicy> {
        self.policies.iter().find(|policy| policy.pool == pool)
    }

    /// The closed destinations, including the networks of N3.
    pub fn whole_boundary(&self) -> Boundary {
        let own = self.boundary.own.iter().chain(&self.n3_addresses).copied().collect();
        Boundary { own, ..self.boundary.clone() }
    }

    /// Whether user space must exchange a pool's packets with the data network by the kernel, not by AF_XDP.
    pub fn needs_kernel(&self, pool: UePool) -> bool {
        self.nat && pool.gateway.is_ipv4() || self.policy(pool).is_some_and(|policy| !policy.is_none())
    }

    /// Whether a pool's packets to other networks get another source address (NAT44).
    pub fn has_nat44(&self, pool: UePool) -> bool {
        let has_blocks = self.policy(pool).is_some_and(|policy| policy.port_blocks.is_some());
        pool.gateway.is_ipv4() && (self.nat || has_blocks)
    }

    /// Whether a pool has a policy that the XDP program cannot apply: any but NAT44.
    pub fn is_only_by_kernel(&self, pool: UePool) -> bool {
        let without_nat44 = |policy: &NetworkPolicy| NetworkPolicy { port_blocks: None, ..policy.clone() };
        self.policy(pool).is_some_and(|policy| !without_nat44(policy).is_none())
    }

    /// The pools whose packets user space must exchange with the data network by the kernel.
    pub fn pools_by_kernel(&self) -> impl Iterator<Item = UePool> {
        self.pools.iter().copied().filter(|pool| self.needs_kernel(*pool))
    }

    /// Whether the kernel must forward packets of an address family: those of UEs, or, for the XDP path's
    /// route look-ups, those of tunnels.
    pub fn forwards(&self, is_of: fn(&IpAddr) -> bool) -> bool {
        let asks_for_routes = !self.interfaces.is_empty() && self.path != PathChoice::Portable;
        self.pools.iter().any(|pool| is_of(&pool.gateway))
            || (asks_for_routes && self.n3_addresses.iter().any(is_of))
    }

    /// Whether packets between UEs bypass the kernel; not if a firewall has to see them.
    pub fn is_hairpin_direct(&self) -> bool {
        self.policies.iter().all(|policy| policy.firewall.is_empty())
    }
}

/// An address pool of UEs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UePool {
    /// The host's own address in the pool, on the TUN interface.
    pub gateway: IpAddr,
    /// The pool's prefix length.
    pub prefix: u8,
}

impl UePool {
    /// Whether a UE has an address of the pool.
    pub fn has(&self, ue: UeAddress) -> bool {
        let addresses = [ue.v4.map(IpAddr::from), ue.v6.map(IpAddr::from)];
        addresses.into_iter().flatten().any(|address| self.contains(address))
    }

    /// Whether an address is in the pool.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.network().contains(address)
    }

    /// The pool as a network.
    pub fn network(&self) -> AddressRange {
        AddressRange { address: self.gateway, prefix: self.prefix }.network()
    }
}

/// Errors at the start of a datapath. The system is restored before they are returned.
#[derive(Debug, Error)]
#[allow(missing_docs)] // fields
pub enum StartError {
    /// No address for GTP-U.
    #[error("no N3 address: configure an address of this host that gNBs reach")]
    NoAddress,
    /// A gateway's prefix is longer than its address.
    #[error("the UE pool {gateway}/{prefix} has a prefix longer than its address")]
    Pool { gateway: IpAddr, prefix: u8 },
    /// More data networks than the user plane distinguishes.
    #[error(
        "there are {tenants} data networks and pools in none of them; a UPF can keep {most} apart: use several UPFs"
    )]
    Tenants { tenants: usize, most: usize },
    /// More UEs than blocks of ports.
    #[error("the UE pool {gateway}/{prefix} has more addresses than there are blocks of ports ({blocks})")]
    PortBlocks { gateway: IpAddr, prefix: u8, blocks: u32 },
    /// The GTP-U port could not be bound.
    #[error("GTP-U cannot be received on {address}: {source}; {hint}")]
    Bind { address: IpAddr, hint: &'static str, source: io::Error },
    /// The TUN interface could not be created.
    #[error("interface {name} cannot be created: {source}; {hint}")]
    Tun { name: String, hint: &'static str, source: io::Error },
    /// The kernel refused an address, route or setting.
    #[error("{what} failed: {source}")]
    Setup { what: String, source: io::Error },
    /// The configuration requires XDP, which is not available.
    #[error("the XDP path is not available: {0}")]
    Xdp(#[from] XdpError),
    /// The configuration requires XDP together with settings that XDP does not support.
    #[error("the XDP path is not available: {0}")]
    XdpSettings(String),
    /// The configuration differs in what cannot change while packets flow.
    #[error("{0} than in the running process: restart the UPF instead")]
    TakeOver(String),
    /// Out of threads or descriptors.
    #[error("workers cannot be started: {0}")]
    Workers(#[from] io::Error),
}

impl StartError {
    pub(crate) fn bind(address: IpAddr, source: io::Error) -> Self {
        let hint = match source.kind() {
            io::ErrorKind::AddrInUse => "another UPF or GTP-U endpoint uses port 2152 of that address",
            io::ErrorKind::AddrNotAvailable => "the address must be one of this host's",
            _ => "check the address and the permissions",
        };
        Self::Bind { address, hint, source }
    }

    pub(crate) fn tun(name: &str, source: io::Error) -> Self {
        let hint = match source.kind() {
            io::ErrorKind::NotFound => "load the module: modprobe tun",
            io::ErrorKind::PermissionDenied => "run as root, with CAP_NET_ADMIN, or in a user namespace",
            _ if source.raw_os_error() == Some(libc::EBUSY) => {
                "another program uses an interface of that name"
            }
            _ => "choose another name of at most 15 bytes",
        };
        Self::Tun { name: name.to_owned(), hint, source }
    }

    pub(crate) fn setup(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Setup { what, source }
    }
}
