//! With NAT: UDP and TCP connections of UEs to hosts behind the server, which sees only the UPF's address.
//!
//! The connections of a session end with it. Its UE's next packets make others, perhaps with other public ports, and another UE may get the
//! former ports, to which the server still sends. A UE whose session has not ended in the round gets its own packets, and only these.

use super::account::{Account, InKernel, Lost, count_in_kernel, lost};
use super::packet::{REMOTE, Seen, Segment, ipv4, payload, see};
use super::support::conntrack::{self, TCP, UDP, public_ends};
use super::support::random::Random;
use super::support::*;
use super::{Load, NOBODY, SESSIONS, Senders, any_session, gnb_teid, teid, ue, wire};
use pith_pfcp::gtpu::Packet;
use pith_upf::contract::{Counters, Datapath};
use std::collections::{HashMap, HashSet};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const FIN: u8 = 1;
const SYN: u8 = 2;
/// With PSH: the kernel does not coalesce such segments.
const DATA: u8 = 0x18;
const ETHERNET: usize = 14;
/// A UE's first TCP connection has this port; each later one has the next.
const FIRST_TCP_PORT: u16 = 20_000;

/// A connection, as conntrack has it: both its ends, before and after translation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Connection {
    ue_port: u16,
    server_port: u16,
    public_port: u16,
}

/// By protocol and session.
type Connections = HashMap<(u8, u64), Connection>;

pub struct NatLoad {
    senders: Senders,
    shared: Arc<Shared>,
    lost: Mutex<Lost>,
    /// Counted before the load.
    before: Counters,
}

struct Shared {
    gnb: UdpSocket,
    /// Sends and receives frames of the server.
    server: UdpSocket,
    /// The UPF's MAC on N6.
    link: [u8; 6],
    /// What the server knows.
    connections: Mutex<Connections>,
    /// The ports of the UEs' current TCP connections.
    tcp_ports: Vec<AtomicU16>,
    /// Those of which a session has ended since the last [`Load::forget_former`].
    ended: Mutex<HashSet<u64>>,
    /// Frames from and to the server.
    server_sent: AtomicU64,
    server_received: AtomicU64,
    /// By protocol and session, what arrived in the check of all sessions.
    through: Mutex<HashSet<(Way, u8, u64)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Way {
    Up,
    Down,
}

impl NatLoad {
    pub fn start(lab: &Lab) -> Self {
        run(&format!("ip route add 198.51.100.0/24 via {SERVER} dev n6"));
        // As on a network card: single packets with complete checksums.
        run("ethtool -K n6 tx off");
        // Segments here have any sequence numbers. With XDP the UPF sets this.
        std::fs::write("/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal", "1").unwrap();
        count_in_kernel();
        // The kernel sends nothing of its own to UEs.
        std::fs::write("/proc/sys/net/ipv6/conf/pith0/disable_ipv6", "1").unwrap();
        let shared = Arc::new(Shared {
            gnb: lab.gnb.try_clone().unwrap(),
            server: lab.server.run(|| wire::open("eth0", true)),
            link: wire::link_of("n6"),
            connections: Mutex::default(),
            tcp_ports: (0..=NOBODY).map(|_| AtomicU16::new(FIRST_TCP_PORT)).collect(),
            ended: Mutex::default(),
            server_sent: AtomicU64::new(0),
            server_received: AtomicU64::new(0),
            through: Mutex::default(),
        });
        let mut senders = Senders::new();
        let all = || Arc::clone(&shared);
        let (up, down, at_server, at_gnb) = (all(), all(), all(), all());
        senders.receive(shared.server.try_clone().unwrap(), move |frame| at_server.server_receives(frame));
        senders.receive(shared.gnb.try_clone().unwrap(), move |message| at_gnb.gnb_receives(message));
        senders.send(2, move |noise| up.send_uplink(noise));
        senders.send(3, move |noise| down.send_downlink(noise));
        let lost = Lost { up: 0, down: 0, in_queues: lost(lab) };
        Self { senders, shared, lost: Mutex::new(lost), before: lab.upf.counters() }
    }
}

impl Load for NatLoad {
    fn senders(&mut self) -> &mut Senders {
        &mut self.senders
    }

    fn session_ends(&self, id: u64) {
        self.shared.ended.lock().unwrap().insert(id);
    }

    /// No packet is in transit: when the connections of former sessions have ended, too, nothing of them remains.
    fn forget_former(&self) {
        wait_for("the end of the connections of former sessions", || {
            public_ends().keys().all(|connection| !(1..=SESSIONS).any(|id| ue(id) == connection.ue.0))
        });
        self.shared.connections.lock().unwrap().clear();
        self.shared.ended.lock().unwrap().clear();
    }

    fn all_through(&self, lab: &Lab) {
        let shared = &self.shared;
        self.forget_former();
        let wait = |what: &str, way| {
            let all = || {
                [UDP, TCP].into_iter().flat_map(|protocol| (1..=SESSIONS).map(move |id| (way, protocol, id)))
            };
            wait_for(what, || all().all(|one| shared.through.lock().unwrap().contains(&one)));
        };
        shared.through.lock().unwrap().clear();
        for id in 1..=SESSIONS {
            shared.uplink(&Segment::udp(id, 9));
            shared.uplink(&Segment::tcp(id, shared.next_tcp_port(id), SYN, 9));
        }
        wait("a packet of each session to the data network", Way::Up);
        let known = shared.connections.lock().unwrap().clone();
        (1..=SESSIONS).for_each(|id| shared.downlink(UDP, id, known[&(UDP, id)], 9, 0));
        wait("an answer for each session", Way::Down);
        shared.through.lock().unwrap().clear();
        for id in 1..=SESSIONS {
            shared.uplink(&Segment::udp(id, 9));
            shared.uplink(&Segment::tcp(id, shared.tcp_port(id), DATA, 9));
            shared.downlink(UDP, id, known[&(UDP, id)], 9, 0);
            shared.downlink(TCP, id, known[&(TCP, id)], 9, DATA);
        }
        wait("more of each connection up", Way::Up);
        wait("more of each connection down", Way::Down);
        let public_ends = public_ends();
        for ((protocol, id), Connection { ue_port, server_port, public_port }) in known {
            let key =
                conntrack::Connection { protocol, ue: (ue(id), ue_port), remote: (REMOTE, server_port) };
            assert_eq!(
                public_ends.get(&key),
                Some(&(UPF_N6, public_port)),
                "conntrack's public end of {key:?}"
            );
        }
        // The next count begins with nothing in transit.
        self.settle(lab);
    }

    fn account(&self, lab: &Lab) -> String {
        self.settle(lab)
    }
}

impl NatLoad {
    /// Waits until the counters explain what the server received and sent; panics if they do not.
    fn settle(&self, lab: &Lab) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let account = self.account_of(&lab.upf.counters());
            let missing = (account.missing_up(), account.missing_down());
            let mut known = self.lost.lock().unwrap();
            if missing == (known.up, known.down) {
                return account.to_string();
            }
            if Instant::now() > deadline {
                let lost = lost(lab);
                assert!(lost > known.in_queues, "not to the packet: {missing:?} missing; {account:?}");
                println!(
                    "{} lost by the three kernels, in queues or as they were not inserted",
                    lost - known.in_queues
                );
                *known = Lost { up: missing.0, down: missing.1, in_queues: lost };
            }
            drop(known);
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn account_of(&self, counters: &Counters) -> Account {
        let kernel = InKernel::read();
        assert_eq!(kernel.untranslated, 0, "a UE's own address on N6");
        Account {
            received: self.shared.server_received.load(SeqCst),
            sent: self.shared.server_sent.load(SeqCst),
            up: counters.n6_out.packets - self.before.n6_out.packets,
            down: counters.n6_in.packets - self.before.n6_in.packets,
            kernel,
        }
    }
}

impl Shared {
    fn tcp_port(&self, id: u64) -> u16 {
        self.tcp_ports[id as usize].load(SeqCst)
    }

    fn next_tcp_port(&self, id: u64) -> u16 {
        let next = FIRST_TCP_PORT + (self.tcp_port(id) - FIRST_TCP_PORT + 1) % 40_000;
        self.tcp_ports[id as usize].store(next, SeqCst);
        next
    }

    fn uplink(&self, segment: &Segment) {
        let packet = segment.packet(ue(segment.id));
        let _ = self.gnb.send_to(&gpdu(teid(segment.id), &packet), (UPF, 2152));
    }

    fn downlink(&self, protocol: u8, id: u64, connection: Connection, length: usize, flags: u8) {
        let Connection { ue_port, server_port, public_port } = connection;
        let payload = payload(id, ue_port, length);
        let packet = ipv4(protocol, (REMOTE, server_port), (UPF_N6, public_port), flags, &payload);
        let frame = [&self.link[..], &[2, 0, 0, 0, 0, 2, 8, 0], &packet].concat();
        wire::send(&self.server, &frame);
        self.server_sent.fetch_add(1, SeqCst);
    }

    /// Mostly packets of a UE's connections; some for unknown TEIDs, with a foreign source, or not GTP-U.
    fn send_uplink(&self, noise: &mut Random) {
        let (id, length) = (any_session(noise), noise.below(1300));
        let segment = if noise.once_in(2) {
            Segment::udp(id, length)
        } else {
            let flags = match noise.below(200) {
                0 => FIN | DATA,
                1..8 => SYN,
                _ => DATA,
            };
            let port = self.tcp_port(id);
            if flags & FIN != 0 {
                self.next_tcp_port(id);
            }
            Segment::tcp(id, port, flags, length)
        };
        let (tunnel, source) = match noise.below(50) {
            0 => (teid(NOBODY), ue(id)),
            1 => (teid(id), ue(NOBODY)),
            2 => return drop(self.gnb.send_to(&[0; 3], (UPF, 2152))),
            _ => (teid(id), ue(id)),
        };
        let _ = self.gnb.send_to(&gpdu(tunnel, &segment.packet(source)), (UPF, 2152));
    }

    /// To connections that the server knows; some to a port without one.
    fn send_downlink(&self, noise: &mut Random) {
        let (id, protocol) = (any_session(noise), noise.pick(&[UDP, TCP]));
        let known = self.connections.lock().unwrap().get(&(protocol, id)).copied();
        let Some(connection) = known else { return };
        let server_port = if noise.once_in(50) { 9 } else { connection.server_port };
        let flags = if protocol == TCP { DATA } else { 0 };
        self.downlink(protocol, id, Connection { server_port, ..connection }, noise.below(1300), flags);
    }

    fn server_receives(&self, frame: &[u8]) {
        let is_v4 = frame.get(12..14) == Some(&[8, 0]);
        let Some(seen) = frame.get(ETHERNET..).filter(|_| is_v4).and_then(see) else { return };
        if seen.destination.0 != REMOTE {
            return;
        }
        self.server_received.fetch_add(1, SeqCst);
        assert_eq!(seen.source.0, UPF_N6, "the source of {seen:?}");
        let Seen { protocol, id, ue_port, .. } = seen;
        let (server_port, public_port) = (seen.destination.1, seen.source.1);
        let connection = Connection { ue_port, server_port, public_port };
        let known = self.connections.lock().unwrap().insert((protocol, id), connection);
        if let Some(known) = known.filter(|known| known.ue_port == ue_port && !self.has_ended(id)) {
            assert_eq!(known, connection, "a connection has one public port: {seen:?}");
        }
        self.note(Way::Up, protocol, id);
        if protocol == TCP && seen.flags & SYN != 0 {
            self.downlink(protocol, id, connection, 9, SYN | DATA);
        }
    }

    fn gnb_receives(&self, message: &[u8]) {
        let Ok(gpdu) = Packet::decode(message) else { return };
        if gpdu.message_type.0 != 255 {
            return;
        }
        let Some(seen) = see(gpdu.payload) else { return };
        let Seen { protocol, id, ue_port, .. } = seen;
        if (gpdu.teid, seen.destination) != (gnb_teid(id), (ue(id), ue_port)) {
            assert!(self.has_ended(id), "another UE's, to TEID {:#x}: {seen:?}", gpdu.teid);
            return;
        }
        assert_eq!(seen.source.0, REMOTE, "the source of {seen:?}");
        self.note(Way::Down, protocol, id);
        if seen.flags & SYN != 0 {
            self.uplink(&Segment::tcp(id, ue_port, DATA, 9));
        }
    }

    fn has_ended(&self, id: u64) -> bool {
        self.ended.lock().unwrap().contains(&id)
    }

    fn note(&self, way: Way, protocol: u8, id: u64) {
        self.through.lock().unwrap().insert((way, protocol, id));
    }
}
