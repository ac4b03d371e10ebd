//! The settings of sessions: SMF, N4 and UPF.

use super::n6::{FirewallRule, IpNet, PacketFilter, Permit, StaticRoute};
use super::section::{item, section};
use super::smf_filter::SmfFilter;
use super::text::{Ipv4Net, Period, words};
use super::upfs::{Breakout, UpfService};
use pith_datapath::{NetworkPolicy, PortBlocks, UePool};
use pith_types::{Ambr, BitRate, Dnn};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

section! {
    /// Session Management Function.
    Smf {
        /// Data networks that sessions lead to; the first is the default one.
        data_networks: Vec<DataNetwork> = vec![DataNetwork::internet()],
        /// What the UPFs of 'n4.upfs' are for, where there are several.
        upfs: Vec<UpfService> = Vec::new(),
        /// Lengths of the timers of TS 24.501 table 10.3.2.
        timers: SmfTimers = SmfTimers::default(),
    }
}

item! {
    /// A data network.
    DataNetwork {
        /// DNN, by which phones ask for it.
        name: Dnn,
        /// Addresses of phones.
        pool: Ipv4Net,
        /// The UPF's own address in the pool; the first one where nothing else is said.
        gateway: Option<Ipv4Addr>,
        /// Name servers that phones are told.
        #[serde(default = "public_dns")]
        dns: Vec<Ipv4Addr>,
        /// Largest IP packet that phones may send, in octets: 1280 to 9000.
        #[serde(default = "default_mtu")]
        mtu: u16,
        /// Session-AMBR of subscribers who have none of their own.
        #[serde(default = "default_ambr")]
        ambr: Ambr,
        /// Packets that leave its sessions at another UPF, one near the radios: the first is taken whose UPF serves
        /// the phone's area and is there.
        #[serde(default)]
        breakouts: Vec<Breakout>,
        /// Bit rates that all its phones have together, as those of a slice; no bound where nothing is said.
        shared: Option<Ambr>,
        /// Addresses that its phones share on their way out, where 'upf.nat' is on; each phone has ports of
        /// its own, which the log tells with its sessions. Others must route these addresses here. None:
        /// phones share the machine's own address, and its ports as they need them.
        #[serde(default)]
        nat_addresses: Vec<Ipv4Addr>,
        /// Ports of each phone, 64 to 64512, where there are 'nat_addresses'.
        #[serde(default = "default_nat_ports")]
        nat_ports: u16,
        /// Firewall: the first rule that a packet matches decides, others pass, and so do answers. Such as
        /// [deny up to 10.0.0.0/8, allow down tcp to 10.45.0.9 port 22, deny down]: up is from phones,
        /// down to them; icmp, tcp or udp; from and to whom; to which ports.
        #[serde(default)]
        firewall: Vec<FirewallRule>,
        /// Ways that only this network's packets take, such as [10.9.0.0/16 via 192.0.2.1], or all of
        /// them: [0.0.0.0/0 via 192.0.2.1].
        #[serde(default)]
        routes: Vec<StaticRoute>,
        /// What its phones reach although it is closed to phones: this machine's own addresses, the networks of N2,
        /// N3, N4, the SBI and the API, and the phones of other data networks. An address or a network; with
        /// it a protocol (icmp, tcp, udp) and ports. Such as [10.211.0.1 udp port 53, 192.0.2.0/24] for a
        /// name server on this machine and a network of radios. Pings of the gateway are answered anyway.
        #[serde(default)]
        reach: Vec<Permit>,
        /// Longest segment that TCP connections may agree on, in octets: 536 to 8960; what the two ends
        /// agree on where nothing is said.
        mss: Option<u16>,
    }
}

fn public_dns() -> Vec<Ipv4Addr> {
    vec![Ipv4Addr::new(1, 1, 1, 1), Ipv4Addr::new(8, 8, 8, 8)]
}

const fn default_nat_ports() -> u16 {
    512
}

const fn default_mtu() -> u16 {
    1400
}

const fn default_ambr() -> Ambr {
    Ambr { uplink: BitRate::mbps(1000), downlink: BitRate::mbps(1000) }
}

impl DataNetwork {
    /// The one that there is by default.
    fn internet() -> Self {
        Self {
            name: "internet".parse().expect("a constant that is a DNN"),
            pool: Ipv4Net::new(Ipv4Addr::new(10, 45, 0, 0), 16),
            gateway: None,
            dns: public_dns(),
            mtu: default_mtu(),
            ambr: default_ambr(),
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

    /// The same with other addresses.
    pub(super) fn with_pool(&self, pool: Ipv4Net) -> Self {
        Self { pool, gateway: None, ..self.clone() }
    }

    /// Its addresses as the datapath has them.
    pub fn ue_pool(&self) -> UePool {
        UePool { gateway: self.gateway().into(), prefix: self.pool.prefix() }
    }

    /// What the kernel does with its packets, NAT by the machine's own address aside.
    pub fn policy(&self) -> NetworkPolicy {
        let blocks = PortBlocks { addresses: self.nat_addresses.clone(), ports: self.nat_ports };
        NetworkPolicy {
            port_blocks: (!self.nat_addresses.is_empty()).then_some(blocks),
            firewall: self.firewall.iter().map(|rule| rule.0).collect(),
            routes: self.routes.iter().map(|route| route.0).collect(),
            mss: self.mss,
            ..NetworkPolicy::none(self.ue_pool())
        }
    }

    /// The UPF's own address in the pool.
    pub fn gateway(&self) -> Ipv4Addr {
        self.gateway.unwrap_or(self.pool.first_host())
    }
}

section! {
    /// 5GSM timers of the SMF. What is retransmitted is sent five times in all, then given up.
    SmfTimers {
        /// PDU SESSION MODIFICATION COMMAND sent.
        t3591: Period = Period::seconds(16),
        /// PDU SESSION RELEASE COMMAND sent.
        t3592: Period = Period::seconds(16),
    }
}

section! {
    /// PFCP from the SMF's side.
    N4 {
        /// Where the SMF's PFCP stands.
        address: SocketAddr = loopback(4, 8805),
        /// UPFs to set up an association with.
        upfs: Vec<UpfPeer> = vec![UpfPeer { name: "upf".into(), address: loopback(7, 8805) }],
        /// Time between heartbeats (TS 29.244 6.2.2).
        heartbeat: Period = Period::seconds(10),
        /// T1: time before a request is sent again (TS 29.244 6.4).
        t1: Period = Period::seconds(1),
        /// N1: how often a request is sent before the UPF counts as gone (TS 29.244 6.4).
        n1: u8 = 4,
    }
}

item! {
    /// A UPF that the SMF uses.
    UpfPeer {
        /// A name for it, in logs and tables.
        name: String,
        /// Where its PFCP stands.
        address: SocketAddr,
    }
}

section! {
    /// User Plane Function.
    Upf {
        /// Where the UPF's PFCP stands.
        n4: SocketAddr = loopback(7, 8805),
        /// SMFs that may use this UPF, such as [10.0.0.4], [10.0.0.4:8805] if it sends from that port only, or
        /// [10.0.0.0/24]; others are refused. Where nothing is said: the one at 'n4.address'.
        smfs: Vec<SmfFilter> = Vec::new(),
        /// Names by which SMFs of other makers call the networks of N6 in their rules (Network Instance), beside
        /// those of 'smf.data_networks'. Rules for other networks are refused.
        network_instances: Vec<String> = Vec::new(),
        /// Address of the GTP-U tunnels (UDP port 2152), which gNBs send to.
        n3: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 7),
        /// Networks of radios and of other UPFs, such as [10.210.0.0/16]. The UPF accepts their GTP-U, and
        /// phones don't reach them. Without: the UPF accepts GTP-U from the addresses of its tunnels, and
        /// from any radio for a session whose tunnel is not known yet. Name those that send from other
        /// addresses than they receive at.
        radios: Vec<IpNet> = Vec::new(),
        /// Further networks of the core that phones don't reach, where routers lead to them.
        core_networks: Vec<IpNet> = Vec::new(),
        /// Network interface towards the data networks; it is made and removed by Pith.
        tun: String = "pith0".into(),
        /// Threads that carry packets: 0 means one for each core.
        workers: u8 = 0,
        /// Translate the phones' addresses to the machine's own on the way out (IPv4 masquerading), or to
        /// the 'nat_addresses' of their data network.
        nat: bool = true,
        /// Have what exceeds a session's rates wait a moment, and share them fairly; otherwise it is dropped.
        shape: bool = true,
        /// Guaranteed bit rates that sessions may be promised in all; no bound where nothing is said.
        guaranteed: Option<Ambr> = None,
        /// Which way packets go: auto, xdp, portable. auto: XDP where 'interfaces' names some, 'nat' is
        /// off and the system allows it; otherwise portable. The log says which it is, and why. Data
        /// networks with a firewall, routes or an MSS of their own take the portable path in any case.
        datapath: PacketPath = PacketPath::Auto,
        /// Network interfaces of N3 and N6, such as [eth1, eth2], which XDP forwards between; a VLAN's
        /// by its own name. The machine's firewall does not see what XDP forwards.
        interfaces: Vec<String> = Vec::new(),
        /// Those of them by which radios and other UPFs are reached; by others XDP takes no GTP-U. Where nothing is said:
        /// those that have the N3 address, or all if none has it.
        tunnel_interfaces: Vec<String> = Vec::new(),
        /// Where XDP sees packets: native, in the driver; generic, behind it, for any interface; auto:
        /// native where the driver has it, and generic on a veth.
        xdp: XdpHook = XdpHook::Auto,
        /// Sessions that XDP has room for, each of some 2 kB; those beyond take the portable path.
        sessions: u32 = 16_384,
        /// Folder, such as /sys/fs/bpf/pith, by which XDP goes on with the packets of known sessions when Pith is
        /// killed, until it has begun again and the SMFs have set up what they want kept. If no BPF file system is
        /// mounted there, Pith mounts one, on an empty folder only.
        pin: Option<PathBuf> = None,
        /// Rules that an SMF may activate in a session by their names (TS 29.244 5.19).
        predefined_rules: Vec<PredefinedRule> = Vec::new(),
    }
}

item! {
    /// A rule that sessions share.
    PredefinedRule {
        /// By which it is activated.
        name: String,
        /// Which packets, such as [permit out 17 from 192.0.2.0/24 5000-5010 to assigned]: protocol,
        /// address and ports of the other end; for both ways.
        filters: Vec<PacketFilter>,
        /// Drop them; otherwise they go where the session's rule says that activates this one.
        #[serde(default)]
        drop: bool,
        /// Bit rates that all of a session's packets of this kind have together; no bound where nothing
        /// is said.
        mbr: Option<Ambr>,
    }
}

words! {
    /// Which way packets go.
    PacketPath, "a way for packets" {
        /// The fastest that settings and system allow.
        Auto = "auto",
        /// XDP, or no start.
        Xdp = "xdp",
        /// GTP-U socket and TUN.
        Portable = "portable",
    }
}

words! {
    /// Where XDP sees packets.
    XdpHook, "a place for XDP" {
        /// In the driver where that works.
        Auto = "auto",
        /// In the driver.
        Native = "native",
        /// Behind the driver.
        Generic = "generic",
    }
}

const fn loopback(host: u8, port: u16) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(127, 0, 0, host)), port)
}
