//! A UPF between a gNB and a data network that send arbitrary frames and nothing of their own.

use super::cast::{Cast, GATEWAY_V6, GNB_V6, UPF_V6};
use super::ledger::{self, Values};
use super::nat::Nat;
use super::oracle::Side;
use super::wire::{self, Live};
use crate::support::*;
use pith_datapath::{DatapathConfig, PathChoice, UePool, UserPlane, XdpHook};
use pith_upf::contract::{Datapath, Session};
use std::net::{IpAddr, Ipv6Addr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

pub const UPF_N6_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x17, 0, 0, 0, 0, 0, 1);
const SERVER_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x17, 0, 0, 0, 0, 0, 2);
const GTPU_PORT: u16 = 2152;

/// The datapath, and how packets are given to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathUnderTest {
    Portable,
    Generic,
    Native,
    /// Native hook, with frames given by BPF_PROG_TEST_RUN instead of a wire.
    Live,
    /// Native hook, with uplink packets given to all CPUs.
    Spread,
    /// Native hook, with NAT by the program and the kernel.
    Nat,
    /// NAT by the kernel alone.
    PortableNat,
}

impl PathUnderTest {
    pub const ALL: [Self; 7] =
        [Self::Portable, Self::Generic, Self::Native, Self::Live, Self::Spread, Self::Nat, Self::PortableNat];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|under_test| under_test.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Generic => "generic",
            Self::Native => "native",
            Self::Live => "live",
            Self::Spread => "native-spread",
            Self::Nat => "native-nat",
            Self::PortableNat => "portable-nat",
        }
    }

    /// Whether UEs' IPv4 addresses are translated.
    pub fn nats(self) -> bool {
        matches!(self, Self::Nat | Self::PortableNat)
    }

    fn kind(self) -> Kind {
        match self {
            Self::Portable | Self::PortableNat => Kind::Portable,
            Self::Generic => Kind::Generic,
            Self::Native | Self::Live | Self::Spread | Self::Nat => Kind::Native,
        }
    }
}

/// One side of the UPF.
struct End {
    /// The UPF's MAC on that side.
    link: [u8; 6],
    /// Sends frames to the UPF.
    wire: UdpSocket,
    live: Option<Live>,
}

pub struct Stage {
    pub upf: UserPlane,
    under_test: PathUnderTest,
    /// The sessions as they were installed last.
    installed: Vec<Arc<Session>>,
    /// Counters of former datapaths.
    base: Values,
    pub cast: Cast,
    radio: End,
    network: End,
    /// Receive datagrams at the gNB, and frames at the network.
    gnb: [UdpSocket; 2],
    frames: UdpSocket,
    hosts: [Host; 2],
    buffer: Vec<u8>,
    /// Frames for which the network's socket had no room.
    frames_lost: u64,
}

impl Stage {
    /// `None` without the privilege to create namespaces. The calling thread moves to a namespace of its own.
    pub fn set(under_test: PathUnderTest) -> Option<Self> {
        if !enter_namespace() {
            return None;
        }
        trust_all_sources();
        let kind = under_test.kind();
        let radio = wire("n3", UPF, GNB, kind);
        let server = wire("n6", UPF_N6, SERVER, kind);
        let links = [wire::link_of("n3"), wire::link_of("n6")];
        set_routes();
        silence(&radio, &server);
        if under_test.nats() {
            // With XDP the UPF sets the first: segments have any sequence numbers. Connections last until the next epoch.
            for (name, value) in [
                ("tcp_be_liberal", "1"),
                ("tcp_timeout_established", "300"),
                ("udp_timeout", "120"),
                ("icmp_timeout", "120"),
            ] {
                std::fs::write(format!("/proc/sys/net/netfilter/nf_conntrack_{name}"), value).unwrap();
            }
        }
        let upf = UserPlane::start(config(under_test)).unwrap();
        if under_test == PathUnderTest::Spread {
            // The sender's CPU also receives the frames: all by one, as from one queue of a network card. Not
            // before the start: a UPF uses the CPUs that its thread may use.
            pin_to(0);
        }
        let live = |interface| (under_test == PathUnderTest::Live).then(|| Live::of(interface));
        let end = |host: &Host, link, interface| End {
            link,
            wire: host.run(|| wire::open("eth0", false)),
            live: live(interface),
        };
        let gnb = radio.run(|| [UdpSocket::bind((GNB, GTPU_PORT)), UdpSocket::bind((GNB_V6, GTPU_PORT))]);
        let gnb = gnb.map(|socket| socket.unwrap());
        let frames = server.run(|| wire::open("eth0", true));
        for socket in gnb.iter().chain([&frames]) {
            receive_much(socket);
            socket.set_nonblocking(true).unwrap();
        }
        Some(Self {
            upf,
            under_test,
            installed: Vec::new(),
            base: ledger::none(),
            cast: Cast::of(0, under_test.nats().then(Nat::default)),
            radio: end(&radio, links[0], "n3"),
            network: end(&server, links[1], "n6"),
            gnb,
            frames,
            hosts: [radio, server],
            buffer: vec![0; 1 << 17],
            frames_lost: 0,
        })
    }

    /// Installs all sessions.
    pub fn install(&mut self, sessions: Vec<Session>) {
        self.installed = sessions.into_iter().map(Arc::new).collect();
        self.installed.iter().for_each(|session| self.upf.install(Arc::clone(session)));
    }

    /// The counters, also those of former datapaths. A successor continues the usage of sessions.
    pub fn values(&self) -> Values {
        let mut values = ledger::values(&self.upf).0;
        ledger::add(&mut values, &self.base);
        values
    }

    /// Has another datapath take over, as another process does (ADR 0028), while packets flow.
    pub fn upgrade(&mut self) {
        let config = config(self.under_test);
        let handles = self.upf.handles().unwrap();
        let former = handles.settings.clone();
        let (mut next, _) = UserPlane::take_over(&config, handles).unwrap();
        let usages: Vec<_> = self.installed.iter().map(|session| self.upf.usage(session.id)).collect();
        for (session, usage) in self.installed.iter().zip(&usages) {
            next.install(Arc::clone(session));
            usage.iter().for_each(|usage| next.add_usage(session.id, usage));
        }
        self.upf.hold().unwrap();
        next.activate().unwrap();
        let queued = self.upf.drain().unwrap();
        next.go_on(queued).unwrap();
        for (session, before) in self.installed.iter().zip(usages) {
            let Some(mut usage) = self.upf.usage(session.id) else { continue };
            for urr in &mut usage.urrs {
                let counted = before.as_ref().and_then(|before| before.urr(urr.id));
                urr.volume = urr.volume.since(&counted.map(|urr| urr.volume).unwrap_or_default());
            }
            next.add_usage(session.id, &usage);
        }
        ledger::add(&mut self.base, &ledger::values(&self.upf).0);
        next.own_system(&config, &former).unwrap();
        std::mem::replace(&mut self.upf, next).leave();
        // The program is another one.
        for (end, interface) in [(&mut self.radio, "n3"), (&mut self.network, "n6")] {
            end.live = end.live.take().map(|_| Live::of(interface));
        }
    }

    pub fn link(&self, side: Side) -> [u8; 6] {
        self.end(side).link
    }

    fn end(&self, side: Side) -> &End {
        match side {
            Side::Radio => &self.radio,
            Side::Network => &self.network,
        }
    }

    /// Sends a frame to the UPF on that side.
    pub fn send(&self, side: Side, frame: &[u8]) {
        let end = self.end(side);
        match &end.live {
            Some(live) => live.run(frame),
            None => wire::send(&end.wire, frame),
        }
    }

    /// Receives all pending packets.
    pub fn receive(&mut self, mut take: impl FnMut(Side, &[u8])) {
        for socket in &self.gnb {
            while let Ok(length) = socket.recv(&mut self.buffer) {
                take(Side::Radio, &self.buffer[..length]);
            }
        }
        while let Ok(length) = self.frames.recv(&mut self.buffer) {
            let frame = &self.buffer[..length];
            let is_ip = matches!(frame.get(12..14), Some([8, 0] | [0x86, 0xdd]));
            if is_ip {
                take(Side::Network, &frame[14..]);
            }
        }
    }

    /// Waits until something is received, or the time is up.
    pub fn wait(&self, most: Duration) {
        wire::wait(self.gnb.iter().chain([&self.frames]), most);
    }

    /// Packets lost so far by the kernels of the three hosts, in full buffers and queues.
    pub fn lost_by_kernel(&mut self) -> u64 {
        let hosts: u64 = self.hosts.iter().map(|host| host.run(wire::lost_here)).sum();
        self.frames_lost += wire::lost_of(&self.frames);
        hosts + wire::lost_here() + self.frames_lost
    }
}

fn config(under_test: PathUnderTest) -> DatapathConfig {
    let (path, xdp_hook) = match under_test.kind() {
        Kind::Portable => (PathChoice::Portable, XdpHook::Auto),
        Kind::Generic => (PathChoice::Xdp, XdpHook::Generic),
        Kind::Native => (PathChoice::Xdp, XdpHook::Native),
    };
    DatapathConfig {
        n3_addresses: vec![UPF.into(), UPF_V6.into()],
        pools: vec![
            UePool { gateway: GATEWAY.into(), prefix: 16 },
            UePool { gateway: IpAddr::V6(GATEWAY_V6), prefix: 48 },
        ],
        workers: 2,
        nat: under_test.nats(),
        spread: under_test == PathUnderTest::Spread,
        path,
        xdp_hook,
        interfaces: vec!["n3".into(), "n6".into()],
        ..DatapathConfig::default()
    }
}

/// Packets from behind the server have foreign source addresses; incomplete datagrams expire soon.
fn trust_all_sources() {
    for (name, value) in [
        ("conf/all/rp_filter", "0"),
        ("conf/default/rp_filter", "0"),
        ("ipfrag_time", "1"),
        ("ipfrag_high_thresh", "67108864"),
    ] {
        std::fs::write(format!("/proc/sys/net/ipv4/{name}"), value).unwrap();
    }
}

fn set_routes() {
    run(&format!("ip route add default via {SERVER} dev n6"));
    add_v6(UPF_V6, 64, "n3");
    add_v6(UPF_N6_V6, 64, "n6");
    run(&format!("ip neigh replace {GNB_V6} lladdr 02:00:00:00:00:02 dev n3 nud permanent"));
    run(&format!("ip neigh replace {SERVER_V6} lladdr 02:00:00:00:00:02 dev n6 nud permanent"));
    run(&format!("ip -6 route add default via {SERVER_V6} dev n6"));
    // As on a card without offloads, single packets with complete checksums are sent to the data network; as
    // on any card, received frames of a flow are coalesced.
    run("ethtool -K n6 tx off gro on");
    run("ethtool -K n3 gro on");
}

/// The hosts' kernels answer nothing: the server's has no address, the gNB's only those of its sockets.
fn silence(radio: &Host, server: &Host) {
    radio.run(|| add_v6(GNB_V6, 64, "eth0"));
    server.run(|| {
        run("ip addr flush dev eth0");
        std::fs::write("/proc/sys/net/ipv6/conf/eth0/disable_ipv6", "1").unwrap();
    });
}
