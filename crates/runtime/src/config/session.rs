//! The settings of SMF, N4 and UPF.

use super::ipv6::{Ipv6Net, may_match};
use super::n6::{FirewallRule, IpNet, PacketFilter, Permit, StaticRoute};
use super::section::{item, section};
use super::smf_filter::SmfFilter;
use super::text::{Ipv4Net, Period, words};
use super::upfs::{Breakout, UpfService};
use pith_datapath::{NetworkPolicy, PortBlocks, UePool};
use pith_types::{Ambr, BitRate, Dnn, Tac};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

section! {
    /// Session Management Function.
    Smf {
        /// Data networks; the first is the default.
        data_networks: Vec<DataNetwork> = vec![DataNetwork::internet()],
        /// Data networks and areas that the UPFs of 'n4.upfs' serve, if there are several.
        upfs: Vec<UpfService> = Vec::new(),
        /// Instances of slices that this SMF serves, by their ids of 'nssf.slice_instances'; any by default.
        slice_instances: Vec<String> = Vec::new(),
        /// Lengths of timers of sessions (TS 24.501 10.3).
        timers: SmfTimers = SmfTimers::default(),
    }
}

item! {
    /// A data network.
    DataNetwork {
        /// DNN that UEs request.
        name: Dnn,
        /// UE address pool.
        pool: Ipv4Net,
        /// The UPF's address in the pool; by default the first one.
        gateway: Option<Ipv4Addr>,
        /// Pool of IPv6 prefixes, /40 to /60, such as fd45:7069:7468::/48: each session of type IPv6 or IPv4v6 has a
        /// /64 of it. Other routers must route the pool to this machine, unless 'nat6' is on. If absent, sessions are
        /// of type IPv4.
        pool6: Option<Ipv6Net>,
        /// Length of each session's IPv6 prefix, 48 to 64. Of a prefix shorter than 64 the UE has the first /64, and a router behind the UE
        /// gets the others by DHCPv6 prefix delegation.
        #[serde(default = "default_prefix6")]
        prefix6: u8,
        /// Ranges of static addresses, such as [10.45.255.0/24, 'fd45:7069:7468:ff00::/56']: parts of 'pool', 'pool6', or the pools of
        /// UPFs for this data network. Subscribers with 'staticIpAddress' have their addresses there; others get none of them.
        #[serde(default)]
        static_addresses: Vec<IpNet>,
        /// Translate IPv6 addresses of outgoing packets to the machine's own address (NAT66), as private addresses
        /// need.
        #[serde(default)]
        nat6: bool,
        /// DNS servers sent to UEs, IPv4 and IPv6; those of IPv6 also by DHCPv6.
        #[serde(default = "public_dns")]
        dns: Vec<IpAddr>,
        /// P-CSCFs of an IMS, IPv4 and IPv6, sent to UEs that request them, as phones do for voice (data network 'ims'). UEs reach one at this
        /// machine, or in a network that is closed by default, with 'reach' only.
        #[serde(default)]
        p_cscf: Vec<IpAddr>,
        /// MTU sent to UEs, in octets: 1280 to 9000.
        #[serde(default = "default_mtu")]
        mtu: u16,
        /// Session-AMBR of subscribers without their own.
        #[serde(default = "default_ambr")]
        ambr: Ambr,
        /// Tracking areas of a local area data network (LADN, TS 23.501 5.6.5), which 'network.tracking_areas' has: UEs elsewhere get no
        /// session, and lose theirs when they leave. Everywhere if empty.
        #[serde(default)]
        ladn: Vec<Tac>,
        /// Local breakout: destinations whose packets leave at another UPF near the gNBs. The first entry
        /// applies whose UPF serves the UE's area and has an association.
        #[serde(default)]
        breakouts: Vec<Breakout>,
        /// Bit rates shared by all its UEs, as for a slice; unlimited if absent.
        shared: Option<Ambr>,
        /// Public addresses shared by its UEs if 'upf.nat' is on. Each UE has its own ports, which are logged
        /// with its sessions. Other routers must route these addresses to this machine. If absent, UEs share
        /// the machine's own address and its ports dynamically.
        #[serde(default)]
        nat_addresses: Vec<Ipv4Addr>,
        /// Ports per UE, 64 to 64512, with 'nat_addresses'.
        #[serde(default = "default_nat_ports")]
        nat_ports: u16,
        /// Firewall: the first matching rule decides; packets without a match and replies are accepted.
        /// Example:
        /// [deny up to 10.0.0.0/8, allow down tcp to 10.45.0.9 port 22, deny down]. up: from UEs, down: to
        /// UEs; protocol icmp, tcp or udp; source (from), destination (to) and destination ports.
        #[serde(default)]
        firewall: Vec<FirewallRule>,
        /// Routes for this network's packets only, such as [10.9.0.0/16 via 192.0.2.1], or for all of them:
        /// [0.0.0.0/0 via 192.0.2.1].
        #[serde(default)]
        routes: Vec<StaticRoute>,
        /// Destinations that its UEs may reach although they are closed by default: this machine's own
        /// addresses, the networks of N2, N3, N4, the SBI and the API, and UEs of other data networks. Each
        /// is an address or a network, optionally with a protocol (icmp, tcp, udp) and ports. Example:
        /// [10.211.0.1 udp port 53, 192.0.2.0/24] for a DNS server on this machine and a network of gNBs.
        /// GTP-U, by which UEs could enter the tunnels of others, needs 'udp port 2152'. Pings to the gateway are always answered.
        #[serde(default)]
        reach: Vec<Permit>,
        /// Largest MSS of TCP connections, in octets: 536 to 8960. If absent, the two ends negotiate it.
        mss: Option<u16>,
    }
}

fn public_dns() -> Vec<IpAddr> {
    let v6 = Ipv6Addr::new(0x2606, 0x4700, 0x4700, 0, 0, 0, 0, 0x1111);
    vec![Ipv4Addr::new(1, 1, 1, 1).into(), Ipv4Addr::new(8, 8, 8, 8).into(), v6.into()]
}

const fn default_nat_ports() -> u16 {
    512
}

const fn default_prefix6() -> u8 {
    64
}

const fn default_mtu() -> u16 {
    1400
}

const fn default_ambr() -> Ambr {
    Ambr { uplink: BitRate::mbps(1000), downlink: BitRate::mbps(1000) }
}

impl DataNetwork {
    /// The default data network.
    fn internet() -> Self {
        Self {
            name: "internet".parse().expect("a constant that is a DNN"),
            pool: Ipv4Net::new(Ipv4Addr::new(10, 45, 0, 0), 16),
            gateway: None,
            pool6: None,
            prefix6: default_prefix6(),
            static_addresses: Vec::new(),
            nat6: false,
            dns: public_dns(),
            p_cscf: Vec::new(),
            mtu: default_mtu(),
            ambr: default_ambr(),
            ladn: Vec::new(),
            breakouts: Vec::new(),
            shared: None,
            nat_addresses: Vec::new(),
            nat_ports: default_nat_ports(),
            firewall: Vec::new(),
            routes: Vec::new(),
            reach: Vec::new(),
            mss: None,
        }
    }

    /// A copy of this data network with another pool.
    pub(super) fn with_pool(&self, pool: Ipv4Net) -> Self {
        Self { pool, gateway: None, ..self.clone() }
    }

    /// The pool as a datapath type.
    pub fn ue_pool(&self) -> UePool {
        UePool { gateway: self.gateway().into(), prefix: self.pool.prefix() }
    }

    /// The kernel's policy for IPv4 packets, except masquerading by the machine's own address.
    pub fn policy(&self) -> NetworkPolicy {
        let blocks = PortBlocks { addresses: self.nat_addresses.clone(), ports: self.nat_ports };
        NetworkPolicy {
            port_blocks: (!self.nat_addresses.is_empty()).then_some(blocks),
            firewall: self
                .firewall
                .iter()
                .map(|rule| rule.0)
                .filter(|rule| may_match(rule, IpAddr::is_ipv4))
                .collect(),
            routes: self.routes.iter().map(|route| route.0).filter(|route| route.via.is_ipv4()).collect(),
            mss: self.mss,
            ..NetworkPolicy::none(self.ue_pool())
        }
    }

    /// The UPF's address in the pool.
    pub fn gateway(&self) -> Ipv4Addr {
        self.gateway.unwrap_or(self.pool.first_host())
    }
}

section! {
    /// 5GSM timers. The SMF sends a message at most five times.
    SmfTimers {
        /// Started when PDU SESSION MODIFICATION COMMAND is sent.
        t3591: Period = Period::seconds(16),
        /// Started when PDU SESSION RELEASE COMMAND is sent.
        t3592: Period = Period::seconds(16),
        /// RQ timer, sent to UEs that support reflective QoS if the PCF has none: 2 s to 186min. A UE deletes a QoS rule that it has derived
        /// after this time without a packet that confirms it.
        rq_timer: Period = Period::seconds(60),
    }
}

section! {
    /// PFCP of the SMF.
    N4 {
        /// PFCP address of the SMF.
        address: SocketAddr = loopback(4, 8805),
        /// UPFs with which the SMF sets up an association.
        upfs: Vec<UpfPeer> = vec![UpfPeer { name: "upf".into(), address: loopback(7, 8805) }],
        /// Time between heartbeats (TS 29.244 6.2.2).
        heartbeat: Period = Period::seconds(10),
        /// T1: time before a request is retransmitted (TS 29.244 6.4).
        t1: Period = Period(std::time::Duration::from_millis(500)),
        /// N1: number of times a request is sent before the UPF counts as failed (TS 29.244 6.4). A change or deletion of a session is sent until the
        /// UPF answers a heartbeat or has lost the association, and then n1 times more: up to 2 n1 t1 + heartbeat in all.
        n1: u8 = 6,
        /// Name of the SMF's set, such as set1.smfset.5gc.example.org: its SMFs may take over each other's sessions
        /// at UPFs that have it in 'upf.smf_sets' (TS 29.244 5.22.3). If absent, the SMF is in no set.
        smf_set: Option<String> = None,
    }
}

item! {
    /// A UPF that the SMF uses.
    UpfPeer {
        /// Name of the UPF in logs and tables.
        name: String,
        /// PFCP address of the UPF.
        address: SocketAddr,
    }
}

section! {
    /// User Plane Function.
    Upf {
        /// PFCP address of the UPF.
        n4: SocketAddr = loopback(7, 8805),
        /// SMFs that may use this UPF, such as [10.0.0.4], [10.0.0.4:8805] if it sends from that port only,
        /// or [10.0.0.0/24]; others are refused. Default: the SMF at 'n4.address'.
        smfs: Vec<SmfFilter> = Vec::new(),
        /// Further names of the N6 networks (Network Instance) in rules of SMFs of other vendors, in addition
        /// to those of 'smf.data_networks'. Rules for other networks are refused.
        network_instances: Vec<String> = Vec::new(),
        /// GTP-U address (UDP port 2152), to which gNBs send.
        n3: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 7),
        /// Networks of gNBs and other UPFs, such as [10.210.0.0/16]. GTP-U is accepted from them, tunnels
        /// lead only into them, and UEs cannot reach them. If empty, a tunnel may lead to any other host, the
        /// UPF accepts GTP-U from hosts that are the tunnel peer of a session, or were in the last 24 hours, and
        /// from any host while a session's tunnel peer is unknown, and UEs reach gNBs outside of the core's
        /// networks, except by GTP-U. Name the networks if UEs move: else the uplink of the first UE that
        /// arrives at a gNB without sessions in that time is dropped until its handover is complete.
        radios: Vec<IpNet> = Vec::new(),
        /// Further networks of the core that UEs must not reach through routers.
        core_networks: Vec<IpNet> = Vec::new(),
        /// Network interface towards the data networks, created and removed by Pith.
        tun: String = "pith0".into(),
        /// Packet threads: 0 means one for each core.
        workers: u8 = 0,
        /// Translate UE addresses of outgoing packets to the machine's own address (IPv4 masquerading), or to
        /// the 'nat_addresses' of their data network.
        nat: bool = true,
        /// Connections that a UE may have through NAT at a time (in IPv6, each prefix of 64 bits); packets of further ones are rejected by
        /// ICMP. 'nft list ruleset' shows their number. 0: no limit.
        nat_connections: u32 = 4096,
        /// Delay packets that exceed a session's rates and share the rate fairly (shaping); if false, drop
        /// them.
        shape: bool = true,
        /// Total of guaranteed bit rates that sessions may have; unlimited if absent.
        guaranteed: Option<Ambr> = None,
        /// Packet path: auto, xdp, portable. auto: XDP if interfaces and system permit it; otherwise portable.
        /// 'pith status' and the log show the path, the reason, and what would make it faster. Data networks
        /// with a firewall, routes, an MSS or NAT66 always use the portable path.
        datapath: PacketPath = PacketPath::Auto,
        /// N3 and N6 interfaces between which XDP forwards, such as [eth1, eth2]; a VLAN interface by its own
        /// name. If absent, XDP uses the interfaces with 'n3' and with the default route if these are network
        /// cards whose drivers attach XDP without a link reset.
        interfaces: Vec<String> = Vec::new(),
        /// Those of 'interfaces' towards gNBs and other UPFs; on other interfaces XDP handles no GTP-U.
        /// Default:
        /// the interfaces with the N3 address, or all if none has it.
        tunnel_interfaces: Vec<String> = Vec::new(),
        /// Let XDP forward packets past rules of the machine's own firewall, such as those of Docker or ufw. If
        /// false, 'auto' uses the portable path if there are such rules. With NAT, the firewall sees the first
        /// packets of each connection in any case.
        bypass_firewall: bool = false,
        /// XDP attach mode: native, in the driver; generic, in the network stack, for any interface; auto:
        /// native if the driver supports it, and generic on a veth. native and generic also permit XDP on
        /// interfaces that 'interfaces' does not name, although the link may be reset at the start.
        xdp: XdpHook = XdpHook::Auto,
        /// Send packets that XDP forwards into tunnels from a UDP port that depends on their flow (49152 to
        /// 65535), over IPv6 also with a flow label, so that gNBs and routers spread them over cores and links.
        /// false: from port 2152, for gNBs and firewalls that accept GTP-U from that port only. GTP-U
        /// signalling and the portable path always use port 2152.
        flow_ports: bool = true,
        /// Let XDP spread uplink packets over all CPUs by TEID; each tunnel's packets stay in order. All packets of a gNB arrive
        /// at one CPU: this helps if that is busier than the others, but each packet takes more CPU time.
        spread: bool = false,
        /// Copy the ECN field of packets to their tunnel headers, so that routers between UPF and gNB mark
        /// packets instead of dropping them (RFC 6040). false: tunnel headers without ECN, for gNBs that do not
        /// copy these marks back.
        outer_ecn: bool = true,
        /// Sessions that XDP can hold, about 2 kB each; further sessions use the portable path.
        sessions: u32 = 16_384,
        /// Directory, such as /sys/fs/bpf/pith, in which XDP programs are pinned. While Pith restarts after a
        /// crash, XDP continues to forward packets of existing sessions until the SMFs have restored the
        /// sessions to keep. If no BPF file system is mounted there, Pith mounts one, on an empty directory
        /// only.
        pin: Option<PathBuf> = None,
        /// Time for which the sessions of an SMF that does not answer heartbeats are retained. An SMF that returns
        /// within it finds its sessions, if it has lost none.
        retention: Period = Period::seconds(60),
        /// Names of SMF sets whose SMFs may take over each other's sessions (TS 29.244 5.22.3).
        smf_sets: Vec<String> = Vec::new(),
        /// After a start, the time for SMFs to establish sessions again, from the first association on: meanwhile unknown
        /// TEIDs get no Error Indication, which would end the gNBs' tunnels (TS 23.527 4.3.2).
        restoration: Period = Period::seconds(10),
        /// Rules that an SMF may activate in a session by name (TS 29.244 5.19).
        predefined_rules: Vec<PredefinedRule> = Vec::new(),
    }
}

item! {
    /// A predefined rule, which several sessions may use.
    PredefinedRule {
        /// Name by which an SMF activates the rule.
        name: String,
        /// Packets that the rule matches, such as [permit out 17 from 192.0.2.0/24 5000-5010 to assigned]:
        /// protocol, address and ports of the remote end; both directions.
        filters: Vec<PacketFilter>,
        /// Drop matching packets; otherwise the FAR of the activating PDR applies.
        #[serde(default)]
        drop: bool,
        /// Bit rates shared by all matching packets of a session; unlimited if absent.
        mbr: Option<Ambr>,
    }
}

words! {
    /// Path of packets through the UPF.
    PacketPath, "a packet path" {
        /// The fastest path that the settings and the system permit.
        Auto = "auto",
        /// XDP; the UPF does not start without it.
        Xdp = "xdp",
        /// GTP-U socket and TUN.
        Portable = "portable",
    }
}

words! {
    /// XDP attach mode.
    XdpHook, "an XDP attach mode" {
        /// Native if supported, else generic.
        Auto = "auto",
        /// In the driver.
        Native = "native",
        /// In the network stack, after the driver.
        Generic = "generic",
    }
}

const fn loopback(host: u8, port: u16) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(127, 0, 0, host)), port)
}
