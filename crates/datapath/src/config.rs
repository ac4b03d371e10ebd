//! What a datapath is started with, and why it may not start.

use crate::boundary::Boundary;
use crate::system::NetworkPolicy;
use crate::xdp::XdpError;
use pith_upf::contract::{AddressRange, UeAddress};
use pith_upf::qos::{BufferLimits, Enforcement, SharedRate};
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use thiserror::Error;

/// Settings of a datapath.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatapathConfig {
    /// Addresses of this host that GTP-U peers send to. Of each family, packets leave from the first.
    pub n3_addresses: Vec<IpAddr>,
    /// Name of the TUN interface to make: 1 to 15 bytes, not in use.
    pub tun: String,
    /// Where UEs get their addresses from.
    pub pools: Vec<UePool>,
    /// Longest packet of a UE, 1280 to 65,000 bytes: with 44 bytes of tunnel headers over IPv4 (64 over
    /// IPv6) it has to fit through N3.
    pub mtu: u16,
    /// Threads; 0: one for each core.
    pub workers: usize,
    /// Whether packets to other networks take an address of the host (NAT44).
    pub nat: bool,
    /// What is closed to UEs, beside this host and the networks of `n3_addresses`.
    pub boundary: Boundary,
    /// What else holds for pools on N6; at most one a pool. Their sessions take the portable path.
    pub policies: Vec<NetworkPolicy>,
    /// Bounds on what is held for idle UEs and what is queued.
    pub buffer: BufferLimits,
    /// Whether what exceeds rates waits or is dropped.
    pub enforcement: Enforcement,
    /// Rates that all UEs of a network have together: a slice's AMBR.
    pub shared_rates: Vec<SharedRate>,
    /// Which way packets go.
    pub path: PathChoice,
    /// Interfaces of N3 and N6 that the XDP path takes packets from and sends them by; VLAN interfaces by
    /// their own names.
    pub interfaces: Vec<String>,
    /// Those of them by which radios and other UPFs are reached: by others no GTP-U is taken. None: those that have an N3
    /// address, or all where none has one.
    pub tunnel_interfaces: Vec<String>,
    /// Where the XDP program sees packets.
    pub xdp_hook: XdpHook,
    /// Sessions that the XDP path has room for, 1 to 1,048,576; some 2 kB each on two CPUs. Those beyond take the
    /// portable path.
    pub sessions: u32,
    /// A folder such as /sys/fs/bpf/pith, by which the XDP program stays attached when the process ends unasked, and the
    /// next one takes over. One UPF's alone. A BPF file system is mounted on it where none is.
    pub pin: Option<PathBuf>,
}

/// Which way packets go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PathChoice {
    /// XDP where interfaces are named and NAT is not Pith's, and the system allows it; otherwise portable.
    #[default]
    Auto,
    /// XDP, or no start.
    Xdp,
    /// GTP-U socket and TUN.
    Portable,
}

/// Where the XDP program sees packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum XdpHook {
    /// In the driver where it can, but on a veth, whose other end may not be ready for it.
    #[default]
    Auto,
    /// In the driver. The other end of a veth has to have GRO on (`ethtool -K eth0 gro on`), or an XDP
    /// program of its own.
    Native,
    /// Behind the driver: for any interface, and slower.
    Generic,
}

impl Default for DatapathConfig {
    /// The test network's pool on an N3 at 127.0.0.1; no NAT.
    fn default() -> Self {
        let pool = UePool { gateway: IpAddr::from([10, 45, 0, 1]), prefix: 16 };
        Self {
            n3_addresses: vec![IpAddr::from([127, 0, 0, 1])],
            tun: "pith0".to_owned(),
            pools: vec![pool],
            mtu: 1400,
            workers: 0,
            nat: false,
            boundary: Boundary::default(),
            policies: Vec::new(),
            buffer: BufferLimits::default(),
            enforcement: Enforcement::default(),
            shared_rates: Vec::new(),
            path: PathChoice::Auto,
            interfaces: Vec::new(),
            tunnel_interfaces: Vec::new(),
            xdp_hook: XdpHook::Auto,
            sessions: 16_384,
            pin: None,
        }
    }
}

impl DatapathConfig {
    /// What else holds for a pool.
    pub fn policy(&self, pool: UePool) -> Option<&NetworkPolicy> {
        self.policies.iter().find(|policy| policy.pool == pool)
    }

    /// What is closed to UEs, the networks of N3 included.
    pub fn whole_boundary(&self) -> Boundary {
        let own = self.boundary.own.iter().chain(&self.n3_addresses).copied().collect();
        Boundary { own, ..self.boundary.clone() }
    }

    /// Whether the packets of a pool have to pass the kernel, where they leave and come in.
    pub fn needs_kernel(&self, pool: UePool) -> bool {
        self.nat && pool.gateway.is_ipv4() || self.policy(pool).is_some_and(|policy| !policy.is_none())
    }

    /// The pools of which that is so.
    pub fn pools_by_kernel(&self) -> impl Iterator<Item = UePool> {
        self.pools.iter().copied().filter(|pool| self.needs_kernel(*pool))
    }

    /// Whether the system has to forward packets of a family: those of UEs, or, for the XDP path to be told routes,
    /// those of tunnels.
    pub fn forwards(&self, is_of: fn(&IpAddr) -> bool) -> bool {
        let asks_for_routes = !self.interfaces.is_empty() && self.path != PathChoice::Portable;
        self.pools.iter().any(|pool| is_of(&pool.gateway))
            || (asks_for_routes && self.n3_addresses.iter().any(is_of))
    }

    /// Whether UEs reach each other without the kernel: it would have to see what a firewall is for.
    pub fn is_hairpin_direct(&self) -> bool {
        self.policies.iter().all(|policy| policy.firewall.is_empty())
    }
}

/// A network of UEs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UePool {
    /// The host's own address in it, on the TUN interface.
    pub gateway: IpAddr,
    /// Bits of the network.
    pub prefix: u8,
}

impl UePool {
    /// Whether a UE has an address of the pool.
    pub fn has(&self, ue: UeAddress) -> bool {
        let addresses = [ue.v4.map(IpAddr::from), ue.v6.map(IpAddr::from)];
        addresses.into_iter().flatten().any(|address| self.contains(address))
    }

    /// Whether an address is one of the pool's.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.network().contains(address)
    }

    /// Its network: what its addresses have in common.
    pub fn network(&self) -> AddressRange {
        AddressRange { address: self.gateway, prefix: self.prefix }.network()
    }
}

/// Why a datapath did not start. What had been set up by then is undone.
#[derive(Debug, Error)]
pub enum StartError {
    /// No address to listen on.
    #[error("no N3 address: name an address of this host that radios reach")]
    NoAddress,
    /// A gateway's prefix is longer than its address.
    #[error("the UE pool {gateway}/{prefix} has more bits than its address")]
    Pool {
        /// The pool's gateway.
        gateway: IpAddr,
        /// Its prefix.
        prefix: u8,
    },
    /// Fewer blocks of ports than UEs.
    #[error("the UE pool {gateway}/{prefix} has more addresses than there are blocks of ports ({blocks})")]
    PortBlocks {
        /// The pool's gateway.
        gateway: IpAddr,
        /// Its prefix.
        prefix: u8,
        /// How many UEs get a block.
        blocks: u32,
    },
    /// The GTP-U port can't be had.
    #[error("GTP-U can't be received on {address}: {source}; {hint}")]
    Bind {
        /// The address.
        address: IpAddr,
        /// What to do.
        hint: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// The TUN interface can't be made.
    #[error("interface {name} can't be made: {source}; {hint}")]
    Tun {
        /// Its name.
        name: String,
        /// What to do.
        hint: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// An address, route or setting was refused.
    #[error("{what} failed: {source}")]
    Setup {
        /// What was tried.
        what: String,
        /// What the system says.
        source: io::Error,
    },
    /// The configuration asks for XDP, and there is none.
    #[error("the XDP path can't be had: {0}")]
    Xdp(#[from] XdpError),
    /// The configuration asks for XDP together with what it can't do.
    #[error("the XDP path {0}")]
    XdpSettings(&'static str),
    /// Out of threads or descriptors.
    #[error("workers can't be started: {0}")]
    Workers(#[from] io::Error),
}

impl StartError {
    pub(crate) fn bind(address: IpAddr, source: io::Error) -> Self {
        let hint = match source.kind() {
            io::ErrorKind::AddrInUse => "another UPF or GTP-U endpoint has port 2152 of that address",
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
                "another program has an interface of that name"
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
