//! A UPF in the test's own network namespace, a gNB and a host of the data network in others, and packets.
//!
//! ```text
//!   radio ── eth0, veth, n3 ── UPF ── n6, veth, eth0 ── data network
//! ```

#![allow(unsafe_code, dead_code)]

pub mod conntrack;
mod host;
pub mod random;
#[path = "../../../../tests/skipped.rs"]
mod skipped;

pub use host::Host;
use pith_datapath::{Boundary, DatapathConfig, PathChoice, Tenant, UserPlane, XdpHook};
use pith_pfcp::gtpu::{GTPU_PORT, Packet, PduSessionInformation, UlPduSessionInformation};
use pith_upf::contract::*;
use std::ffi::CString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const UPF: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 1);
pub const GNB: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 2);
/// Both on N3, if a test configures IPv6 there.
pub const UPF_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
pub const GNB_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
/// The UPF's address towards the data network.
pub const UPF_N6: Ipv4Addr = Ipv4Addr::new(172, 17, 0, 1);
/// A host of the data network.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(172, 17, 0, 2);
/// The UPF's address in the UE pool.
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 45, 0, 1);
pub const UE: Ipv4Addr = Ipv4Addr::new(10, 45, 0, 2);
pub const TEID: u32 = 0x100;
pub const GNB_TEID: u32 = 0x200;
pub const QFI: u8 = 9;
/// Longer than any successful operation takes.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Moves this thread, and threads that it starts, into a network namespace of its own, which ends with them.
/// `false`, with a message, if that is not permitted.
pub fn enter_namespace() -> bool {
    // SAFETY: takes no pointers; changes the namespace of the calling thread only.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        skipped::skipped("no right to make a network namespace");
        return false;
    }
    run("ip link set lo up");
    true
}

/// A directory without mounts, in a mount namespace of this thread and of those that it starts; removed when
/// dropped. Call it from a thread with its own namespace.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        // SAFETY: takes no pointers; changes the namespace of the calling thread only.
        assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNS) }, 0, "a mount namespace");
        if !make_private("/") {
            enter_root_mount();
        }
        let folder = std::env::temp_dir().join(format!("pith-test-{}-{name}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    pub fn is_mount_point(&self) -> bool {
        let mounts = std::fs::read_to_string("/proc/thread-self/mountinfo").unwrap();
        mounts.contains(self.0.to_str().unwrap())
    }
}

/// Makes the mounts below a mount point private to this thread's mount namespace; `false` if it is no mount point.
fn make_private(mount_point: &str) -> bool {
    let path = CString::new(mount_point).unwrap();
    let none = std::ptr::null();
    // SAFETY: the path lives during the call; the other pointers may be null.
    unsafe { libc::mount(none, path.as_ptr(), none, libc::MS_REC | libc::MS_PRIVATE, none.cast()) == 0 }
}

/// In a chroot, the root directory is no mount point: it is bound to another directory, which becomes the root of this
/// thread. The thread has a mount namespace of its own, and thereby a root directory of its own.
fn enter_root_mount() {
    // Every Debian has it, so that no new directory is left behind.
    const ROOT: &str = "/mnt";
    run(&format!("mount --rbind / {ROOT}"));
    assert!(make_private(ROOT), "it is a mount point now");
    let directory = std::env::current_dir().unwrap();
    std::os::unix::fs::chroot(ROOT).unwrap();
    std::env::set_current_dir(directory).unwrap();
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).stderr(Stdio::null()).status();
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// The calling thread's id, which names its namespace.
pub fn thread_id() -> i32 {
    // SAFETY: takes and changes nothing.
    unsafe { libc::gettid() }
}

/// Runs a command that must succeed.
pub fn run(command: &str) -> String {
    let words: Vec<_> = command.split(' ').collect();
    let output = Command::new(words[0]).args(&words[1..]).output().expect(command);
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Adds an IPv6 address to a device, and waits until the kernel has created the route to it.
pub fn add_v6(address: Ipv6Addr, prefix: u8, device: &str) {
    run(&format!("ip addr add {address}/{prefix} dev {device} nodad"));
    let own = format!("local {address} ");
    wait_for("the address", || {
        let routes = Command::new("ip").args(["-6", "route", "show", "table", "local"]).output().unwrap();
        String::from_utf8_lossy(&routes.stdout).contains(&own)
    });
}

/// The datapath of a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Portable,
    Generic,
    Native,
}

pub struct Lab {
    pub upf: UserPlane,
    pub gnb: UdpSocket,
    pub kind: Kind,
    pub radio: Host,
    pub server: Host,
}

/// A lab for each path, one after the other; none if the test must be skipped.
pub fn labs() -> impl Iterator<Item = Lab> {
    labs_with(DatapathConfig { workers: 2, ..DatapathConfig::default() })
}

pub fn labs_with(config: DatapathConfig) -> impl Iterator<Item = Lab> {
    [Kind::Portable, Kind::Generic, Kind::Native].into_iter().map_while(move |kind| lab(kind, config.clone()))
}

pub fn lab(kind: Kind, config: DatapathConfig) -> Option<Lab> {
    if !enter_namespace() {
        return None;
    }
    eprintln!("-- {kind:?}");
    let radio = wire("n3", UPF, GNB, kind);
    let server = wire("n6", UPF_N6, SERVER, kind);
    server.run(|| drop(run(&format!("ip route add 10.45.0.0/16 via {UPF_N6}"))));
    let (path, xdp_hook) = match kind {
        Kind::Portable => (PathChoice::Portable, XdpHook::Auto),
        Kind::Generic => (PathChoice::Xdp, XdpHook::Auto),
        Kind::Native => (PathChoice::Xdp, XdpHook::Native),
    };
    let interfaces = vec!["n3".into(), "n6".into()];
    let mut n3_addresses = vec![UPF.into()];
    if config.n3_addresses.contains(&UPF_V6.into()) {
        n3_addresses.push(UPF_V6.into());
        add_v6(UPF_V6, 64, "n3");
        run(&format!("ip neigh replace {GNB_V6} lladdr 02:00:00:00:00:02 dev n3 nud permanent"));
        radio.run(|| add_v6(GNB_V6, 64, "eth0"));
    }
    let config = DatapathConfig { n3_addresses, path, interfaces, xdp_hook, ..config };
    let upf = UserPlane::start(config).unwrap();
    let gnb = radio.run(|| bound((GNB, GTPU_PORT)));
    gnb.set_read_timeout(Some(PATIENCE)).unwrap();
    Some(Lab { upf, gnb, kind, radio, server })
}

/// A boundary with permits for UEs of the default pool and for the server, which is the UE of a datapath
/// facing the other way.
pub fn permitting(permits: &[&str]) -> Boundary {
    let pool = |address: Ipv4Addr, prefix| AddressRange { address: address.into(), prefix };
    let pools = vec![pool(Ipv4Addr::new(10, 45, 0, 0), 16), pool(SERVER, 32)];
    let permits = permits.iter().map(|permit| permit.parse().unwrap()).collect();
    Boundary { tenants: vec![Tenant { pools, permits }], ..Boundary::default() }
}

/// A host behind an interface of the UPF. Both know each other's MAC, and the host sends and receives as a
/// network card does: complete checksums, single packets.
pub fn wire(interface: &str, upf: Ipv4Addr, address: Ipv4Addr, kind: Kind) -> Host {
    let host = Host::start();
    run(&format!("ip link add {interface} type veth peer name eth0 netns {}", host.thread));
    run(&format!("ip addr add {upf}/24 dev {interface}"));
    run(&format!("ip link set {interface} up"));
    host.run(move || {
        run(&format!("ip addr add {address}/24 dev eth0"));
        run("ip link set eth0 address 02:00:00:00:00:02 up");
        if kind == Kind::Native {
            run("ethtool -K eth0 gro on tx off");
        }
    });
    run(&format!("ip neigh replace {address} lladdr 02:00:00:00:00:02 dev {interface} nud permanent"));
    wait_for("the link", || run(&format!("ip link show {interface}")).contains("state UP"));
    host
}

impl Lab {
    pub fn install(&mut self, session: Session) {
        self.upf.install(Arc::new(session));
    }

    /// Sends an inner packet by a tunnel.
    pub fn uplink(&self, teid: u32, inner: &[u8]) {
        self.uplink_in(QFI, teid, inner);
    }

    /// The same of that QoS flow.
    pub fn uplink_in(&self, qfi: u8, teid: u32, inner: &[u8]) {
        self.gnb.send_to(&gpdu_in(qfi, teid, inner), (UPF, GTPU_PORT)).unwrap();
    }

    /// A socket of the data network.
    pub fn data_network(&self, port: u16) -> UdpSocket {
        let socket = self.server.run(move || bound((SERVER, port)));
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    /// Packets that the portable path has exchanged by TUN.
    pub fn tun_packets(&self) -> u64 {
        let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
        let line = table.lines().find(|line| line.trim().starts_with("pith0:")).unwrap();
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        numbers[1] + numbers[9]
    }

    /// Packets of a session that user space has passed.
    pub fn user_packets(&self, session: u64) -> u64 {
        let flows = self.upf.flows(SessionId(session));
        flows.iter().map(|flow| flow.count.passed().packets - flow.count.fast.packets).sum()
    }

    /// The next G-PDU that the gNB receives.
    pub fn downlink(&self) -> Gpdu {
        let (bytes, _) = self.datagram();
        let packet = Packet::decode(&bytes).unwrap();
        assert_eq!(packet.message_type.0, 255, "a G-PDU in {bytes:02x?}");
        let information = packet.pdu_session_information().map(|information| match information {
            PduSessionInformation::Downlink(downlink) => downlink,
            other => panic!("{other:?} towards a gNB"),
        });
        let (qfi, rqi) = (information.map(|it| it.qfi), information.is_some_and(|it| it.rqi));
        Gpdu { teid: packet.teid, qfi, rqi, inner: packet.payload.to_vec() }
    }

    pub fn datagram(&self) -> (Vec<u8>, SocketAddr) {
        let mut buffer = vec![0; 65_536];
        let (length, from) = patiently(|| self.gnb.recv_from(&mut buffer)).expect("a datagram for the gNB");
        buffer.truncate(length);
        (buffer, from)
    }

    /// Whether the gNB receives nothing for some time.
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
        let deadline = Instant::now() + PATIENCE;
        while self.upf.counters().dropped(reason) != count {
            let (name, counters) = (reason.name(), self.upf.counters());
            assert!(Instant::now() < deadline, "waited in vain for {count} of {name}: {counters:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A socket bound to that address. A command that another test starts has this process's sockets, also those that are closed
/// meanwhile, until it is executed.
pub fn bound(address: (Ipv4Addr, u16)) -> UdpSocket {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match UdpSocket::bind(address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(1));
            }
            socket => return socket.unwrap(),
        }
    }
}

/// An inner packet as a gNB sends it.
pub fn gpdu(teid: u32, inner: &[u8]) -> Vec<u8> {
    gpdu_in(QFI, teid, inner)
}

/// The same of that QoS flow.
pub fn gpdu_in(qfi: u8, teid: u32, inner: &[u8]) -> Vec<u8> {
    let information = UlPduSessionInformation { qfi, qos_monitoring: None };
    [&information.gpdu_header(teid, inner.len()).unwrap()[..], inner].concat()
}

#[derive(Debug)]
pub struct Gpdu {
    pub teid: u32,
    pub qfi: Option<u8>,
    pub rqi: bool,
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

/// Whether a descriptor becomes readable within 50 ms.
pub fn is_readable(descriptor: &impl AsRawFd) -> bool {
    let mut poll = libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, which lives during the call.
    unsafe { libc::poll(&raw mut poll, 1, 50) != 0 }
}

/// CPU time of this process's threads of that name.
pub fn cpu_of(name: &str) -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let of = |task: std::fs::DirEntry| {
        let comm = std::fs::read_to_string(task.path().join("comm")).ok()?;
        let stat = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        let nanos = stat.split(' ').next()?.parse().ok()?;
        (comm.trim() == name).then(|| Duration::from_nanos(nanos))
    };
    tasks.flatten().filter_map(of).sum()
}

/// The time that the kernel's threads of cpumaps have run, on a CPU.
pub fn cpumap_time(cpu: usize) -> Duration {
    let is_of_cpu = |comm: &str| comm.starts_with(&format!("cpumap/{cpu}/"));
    let tasks = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let comm = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        is_of_cpu(&comm).then(|| std::fs::read_to_string(entry.path().join("schedstat")).ok())?
    });
    tasks.filter_map(|stat| stat.split(' ').next()?.parse().ok()).map(Duration::from_nanos).sum()
}

/// Binds the calling thread to a CPU.
pub fn pin_to(cpu: usize) {
    // SAFETY: all zero is an empty set; the calls read and write that set only.
    unsafe {
        let mut set = std::mem::zeroed::<libc::cpu_set_t>();
        libc::CPU_SET(cpu, &mut set);
        assert_eq!(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set), 0);
    }
}

/// Enlarges a socket's buffer for bursts.
pub fn receive_much(socket: &UdpSocket) {
    let bytes: libc::c_int = 64 << 20;
    // SAFETY: the option's value is a readable C int.
    let set = unsafe {
        let value = (&raw const bytes).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, value, 4)
    };
    assert_eq!(set, 0);
}

/// Repeats a call that a signal interrupted.
fn patiently<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

pub fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = vec![0; 65_536];
    let length = patiently(|| socket.recv(&mut buffer)).expect("a datagram");
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
        framed_routes: Vec::new(),
        pdrs: vec![pdr(1, uplink, 1), pdr(2, Source::Network, 2)],
        fars: vec![
            Far { id: FarId(1), action: Action::Forward(Destination::Network) },
            Far { id: FarId(2), action: Action::Forward(to_gnb) },
        ],
        qers: vec![
            Qer { id: QerId(1), gates: Gates::OPEN, mbr: None, gbr: None, qfi: Some(Qfi(QFI)), rqi: false },
            Qer { id: QerId(2), gates: Gates::OPEN, mbr: Some(rates), gbr: None, qfi: None, rqi: false },
        ],
        urrs: vec![Urr { id: UrrId(1), threshold: VolumeLimits::default(), quota: VolumeLimits::default() }],
        former_qfis: Vec::new(),
    }
}

/// The session, idle: its downlink is buffered.
pub fn idle() -> Session {
    let mut session = session();
    session.fars[1].action = Action::Buffer { notify: true, packets: None };
    session
}
