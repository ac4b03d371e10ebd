//! A UPF in a network namespace of the test's own, a gNB's socket beside it, and packets.

#![allow(unsafe_code, dead_code)]

use pith_datapath::{DatapathConfig, PortableDatapath};
use pith_pfcp::gtpu::{GTPU_PORT, Packet, PduSessionInformation, UlPduSessionInformation};
use pith_upf::contract::*;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const UPF: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
pub const GNB: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// The host's address in the UE pool; the tests' data network.
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 45, 0, 1);
pub const UE: Ipv4Addr = Ipv4Addr::new(10, 45, 0, 2);
pub const TEID: u32 = 0x100;
pub const GNB_TEID: u32 = 0x200;
pub const QFI: u8 = 9;
/// Longer than anything takes that works.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Puts this thread, and what it starts, into a namespace of its own, which ends with them. `false`,
/// having said so, where that is not allowed.
pub fn enter_namespace() -> bool {
    // SAFETY: takes no pointers; changes the namespace of the calling thread only.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        eprintln!("skipped: no right to make a network namespace");
        return false;
    }
    run("ip link set lo up");
    true
}

/// The calling thread's id, by which others can name its namespace.
pub fn thread_id() -> i32 {
    // SAFETY: takes and changes nothing.
    unsafe { libc::gettid() }
}

/// Runs a command that has to succeed.
pub fn run(command: &str) -> String {
    let words: Vec<_> = command.split(' ').collect();
    let output = Command::new(words[0]).args(&words[1..]).output().expect(command);
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub struct Lab {
    pub upf: PortableDatapath,
    pub gnb: UdpSocket,
}

/// A UPF and a gNB on loopback; `None` where the test has to be skipped.
pub fn lab() -> Option<Lab> {
    lab_with(DatapathConfig { workers: 2, ..DatapathConfig::default() })
}

pub fn lab_with(config: DatapathConfig) -> Option<Lab> {
    if !enter_namespace() {
        return None;
    }
    let upf = PortableDatapath::start(config).unwrap();
    let gnb = UdpSocket::bind((GNB, GTPU_PORT)).unwrap();
    gnb.set_read_timeout(Some(PATIENCE)).unwrap();
    Some(Lab { upf, gnb })
}

impl Lab {
    pub fn install(&mut self, session: Session) {
        self.upf.install(Arc::new(session));
    }

    /// Sends an inner packet into a tunnel.
    pub fn uplink(&self, teid: u32, inner: &[u8]) {
        let information = UlPduSessionInformation { qfi: QFI, qos_monitoring: None };
        let header = information.gpdu_header(teid, inner.len()).unwrap();
        self.gnb.send_to(&[&header[..], inner].concat(), (UPF, GTPU_PORT)).unwrap();
    }

    /// The next G-PDU that the gNB gets.
    pub fn downlink(&self) -> Gpdu {
        let (bytes, _) = self.datagram();
        let packet = Packet::decode(&bytes).unwrap();
        assert_eq!(packet.message_type.0, 255, "a G-PDU in {bytes:02x?}");
        let qfi = packet.pdu_session_information().map(|information| match information {
            PduSessionInformation::Downlink(downlink) => downlink.qfi,
            other => panic!("{other:?} towards a gNB"),
        });
        Gpdu { teid: packet.teid, qfi, inner: packet.payload.to_vec() }
    }

    pub fn datagram(&self) -> (Vec<u8>, SocketAddr) {
        let mut buffer = vec![0; 65_536];
        let (length, from) = self.gnb.recv_from(&mut buffer).expect("a datagram for the gNB");
        buffer.truncate(length);
        (buffer, from)
    }

    /// Whether the gNB gets nothing for a while.
    pub fn gnb_hears_nothing(&self) -> bool {
        self.gnb.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let nothing = self.gnb.recv_from(&mut [0; 2048]).is_err();
        self.gnb.set_read_timeout(Some(PATIENCE)).unwrap();
        nothing
    }

    /// The next event.
    pub fn event(&mut self) -> Event {
        let mut events = Vec::new();
        wait_for("an event", || {
            self.upf.poll_events(&mut events);
            !events.is_empty()
        });
        assert_eq!(events.len(), 1, "{events:?}");
        events[0]
    }

    pub fn no_event(&mut self) -> bool {
        let mut events = Vec::new();
        self.upf.poll_events(&mut events);
        events.is_empty()
    }

    pub fn wait_dropped(&self, reason: DropReason, count: u64) {
        wait_for(reason.name(), || self.upf.counters().dropped(reason) == count);
    }
}

#[derive(Debug)]
pub struct Gpdu {
    pub teid: u32,
    pub qfi: Option<u8>,
    pub inner: Vec<u8>,
}

impl Gpdu {
    pub fn payload(&self) -> &[u8] {
        &self.inner[28..]
    }
}

pub fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Lets bursts wait in a socket.
pub fn receive_much(socket: &UdpSocket) {
    let bytes: libc::c_int = 64 << 20;
    // SAFETY: the option's value is a readable C int.
    let set = unsafe {
        let value = (&raw const bytes).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, value, 4)
    };
    assert_eq!(set, 0);
}

/// A socket of the data network.
pub fn data_network(port: u16) -> UdpSocket {
    let socket = UdpSocket::bind((GATEWAY, port)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

pub fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = vec![0; 65_536];
    let length = socket.recv(&mut buffer).expect("a datagram");
    buffer.truncate(length);
    buffer
}

/// A UE's UDP packet without checksum.
pub fn udp(source: Ipv4Addr, destination: Ipv4Addr, port: u16, payload: &[u8]) -> Vec<u8> {
    let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0];
    ip[2..4].copy_from_slice(&(28 + payload.len() as u16).to_be_bytes());
    ip.extend(source.octets());
    ip.extend(destination.octets());
    let sum: u32 = ip.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ip[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    let length = (8 + payload.len() as u16).to_be_bytes();
    [&ip, &5000u16.to_be_bytes()[..], &port.to_be_bytes(), &length, &[0, 0], payload].concat()
}

pub fn tunnel_to(peer: impl Into<IpAddr>, teid: u32) -> Tunnel {
    Tunnel { peer: peer.into(), teid: Teid(teid), dscp: None }
}

/// A session as an SMF sets it up: uplink to N6, downlink to the gNB, one QoS flow, session AMBR, a URR.
pub fn session() -> Session {
    session_of(1, UE, TEID, GNB_TEID)
}

pub fn session_of(id: u64, ue: Ipv4Addr, teid: u32, gnb_teid: u32) -> Session {
    let rates = Rates { uplink: 1_000_000_000, downlink: 1_000_000_000 };
    let pdr = |id, source, far| Pdr {
        id: PdrId(id),
        precedence: 255,
        source,
        filters: Vec::new(),
        qfis: Vec::new(),
        far: FarId(far),
        qers: vec![QerId(1), QerId(2)],
        urrs: vec![UrrId(1)],
    };
    let uplink = Source::Tunnel { teid: Teid(teid), direction: Direction::Uplink };
    let to_gnb = Destination::Tunnel(tunnel_to(GNB, gnb_teid));
    Session {
        id: SessionId(id),
        ue: UeAddress::v4(ue),
        pdrs: vec![pdr(1, uplink, 1), pdr(2, Source::Network, 2)],
        fars: vec![
            Far { id: FarId(1), action: Action::Forward(Destination::Network) },
            Far { id: FarId(2), action: Action::Forward(to_gnb) },
        ],
        qers: vec![
            Qer { id: QerId(1), gates: Gates::OPEN, mbr: None, gbr: None, qfi: Some(Qfi(QFI)) },
            Qer { id: QerId(2), gates: Gates::OPEN, mbr: Some(rates), gbr: None, qfi: None },
        ],
        urrs: vec![Urr { id: UrrId(1), threshold: VolumeLimits::default(), quota: VolumeLimits::default() }],
    }
}

/// The session, idle: its downlink is buffered.
pub fn idle() -> Session {
    let mut session = session();
    session.fars[1].action = Action::Buffer { notify: true, packets: None };
    session
}
