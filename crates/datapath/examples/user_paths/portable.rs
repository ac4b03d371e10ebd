//! What the portable path costs: packets a second and CPU a packet, beside a loop of one packet a
//! system call, and TCP through a tunnel.
//!
//! ```text
//!   radio (namespace) ── veth, GTP-U ── UPF (namespace) ── veth, IP ── data network (namespace)
//! ```
//!
//! CPU is that of the UPF's thread alone, which also carries the kernel's work for what it writes.

use super::Row;
use super::support::{self, Host, UPF_N6, cpu_of, run as command};
use pith_datapath::{DatapathConfig, PortableDatapath, UePool};
use pith_pfcp::gtpu::{GTPU_PORT, UlPduSessionInformation};
use pith_upf::contract::*;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const RADIO: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 2);
const UPF_N3: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(172, 17, 0, 2);
const RUN: Duration = Duration::from_secs(2);

fn pin(cpu: usize) {
    // SAFETY: all zero is an empty set; the calls read and write that set only.
    unsafe {
        let mut set = std::mem::zeroed::<libc::cpu_set_t>();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// All cases.
pub fn run() -> Vec<Row> {
    let (radio, server, upf) = (Host::start(), Host::start(), Host::start());
    for (host, cpu) in [(&radio, 1), (&server, 1), (&upf, 0)] {
        host.run(move || pin(cpu));
    }
    let (radio_id, server_id) = (radio.thread, server.thread);
    upf.run(move || {
        command(&format!("ip link add n3 type veth peer name eth0 netns {radio_id}"));
        command(&format!("ip link add n6 type veth peer name eth0 netns {server_id}"));
        command(&format!("ip addr add {UPF_N3}/24 dev n3"));
        command(&format!("ip addr add {UPF_N6}/24 dev n6"));
        command("ip link set n3 up");
        command("ip link set n6 up");
    });
    for (host, address) in [(&radio, RADIO), (&server, SERVER)] {
        host.run(move || {
            command(&format!("ip addr add {address}/24 dev eth0"));
            command("ip link set eth0 up");
        });
    }
    server.run(|| {
        command(&format!("ip route add 10.45.0.0/16 via {UPF_N6}"));
        command("ip route add blackhole 192.0.2.0/24");
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
    });
    upf.run(|| drop(command(&format!("ip route add 192.0.2.0/24 via {SERVER}"))));
    sessions(&upf);
    println!("{:<44} {:>8} {:>12} {:>10}", "path", "kpps", "CPU ns/pkt", "delivered");
    let mut rows = Vec::new();
    for size in [64, 1400] {
        for flows in [1, 1000] {
            for gso in [true, false] {
                let name = format!("{size} B, {flows} flows{}", if gso { ", trains" } else { "" });
                let measured = uplink(&upf, &radio, &name, Uplink { size, flows, gso });
                if size == 64 && gso {
                    rows.extend(pair(["portable-ul", "one-packet-ul"], flows, measured));
                }
            }
        }
    }
    for size in [64, 1400] {
        for gso in [true, false] {
            let name = format!("{size} B, 1 flow{}", if gso { ", trains" } else { "" });
            let measured = downlink(&upf, &server, &name, size, gso);
            if size == 64 && gso {
                rows.extend(pair(["portable-dl", "one-packet-dl"], 1, measured));
            }
        }
    }
    tcp(&upf, &radio, &server);
    rows
}

/// Rows of what the portable path and a loop of one packet a call took.
fn pair(names: [&'static str; 2], sessions: u32, each: [f64; 2]) -> impl Iterator<Item = Row> {
    let row = move |(name, ns)| Row { name, sessions, kpps: 1e6 / ns, ns_per_packet: ns };
    names.into_iter().zip(each).map(row)
}

/// What starting, 10,000 sessions and idling cost.
fn sessions(upf: &Host) {
    const COUNT: u32 = 10_000;
    upf.run(|| {
        let before = (resident_kb(), Instant::now());
        let mut datapath = start_portable(0);
        println!("start: {:.1} ms, {} kB", before.1.elapsed().as_secs_f64() * 1e3, resident_kb() - before.0);
        let before = (resident_kb(), Instant::now());
        install(&mut datapath, COUNT);
        let each = before.1.elapsed().as_secs_f64() * 1e6 / f64::from(COUNT);
        thread::sleep(Duration::from_millis(100));
        let size = (resident_kb() - before.0) as f64 / f64::from(COUNT);
        println!("session: {each:.1} µs to install, {size:.2} kB");
        let before = cpu_of("pith-upf-0");
        thread::sleep(Duration::from_secs(1));
        println!("idle with {COUNT} sessions: {:?} of CPU in a second", cpu_of("pith-upf-0") - before);
        let before = Instant::now();
        (0..COUNT).for_each(|number| drop(datapath.remove(SessionId(u64::from(number) + 1))));
        println!("removal: {:.1} µs", before.elapsed().as_secs_f64() * 1e6 / f64::from(COUNT));
    });
}

fn resident_kb() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4
}

#[derive(Clone, Copy)]
struct Uplink {
    size: usize,
    flows: u32,
    gso: bool,
}

/// Sessions of `flows` UEs; TEID and address by number.
fn start_portable(sessions: u32) -> PortableDatapath {
    let config =
        DatapathConfig { n3_addresses: vec![UPF_N3.into()], workers: 1, ..DatapathConfig::default() };
    let mut upf = PortableDatapath::start(config).unwrap();
    install(&mut upf, sessions);
    upf
}

fn install(upf: &mut PortableDatapath, sessions: u32) {
    for number in 0..sessions {
        let mut session =
            support::session_of(u64::from(number) + 1, ue(number), 0x100 + number, 0x200 + number);
        let peer = Tunnel { peer: RADIO.into(), teid: Teid(0x200 + number), dscp: None };
        session.fars[1].action = Action::Forward(Destination::Tunnel(peer));
        session.qers[1].mbr = Some(Rates { uplink: 100_000_000_000, downlink: 100_000_000_000 });
        upf.install(Arc::new(session));
    }
}

fn ue(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 45, 1, 0).to_bits() + number)
}

/// Nanoseconds a packet: the portable path's, the loop's.
fn uplink(upf: &Host, radio: &Host, name: &str, case: Uplink) -> [f64; 2] {
    let packets = move |upf: &PortableDatapath| upf.counters().n6_out.packets;
    let datapath = upf.run(move || start_portable(case.flows));
    let before = cpu_of("pith-upf-0");
    let sent = radio.run(move || send_uplink(case));
    thread::sleep(Duration::from_millis(100));
    let portable =
        report(&format!("portable uplink, {name}"), packets(&datapath), sent, cpu_of("pith-upf-0") - before);
    upf.run(move || drop(datapath));

    let naive = upf.run(Naive::start);
    let before = cpu_of("one-up");
    let sent = radio.run(move || send_uplink(case));
    thread::sleep(Duration::from_millis(100));
    let cpu = cpu_of("one-up") - before;
    let packets = upf.run(move || naive.stop().0);
    [portable, report(&format!("one a call uplink, {name}"), packets, sent, cpu)]
}

fn downlink(upf: &Host, server: &Host, name: &str, size: usize, gso: bool) -> [f64; 2] {
    let datapath = upf.run(|| start_portable(1));
    let before = cpu_of("pith-upf-0");
    let sent = server.run(move || send_downlink(size, gso));
    thread::sleep(Duration::from_millis(100));
    let packets = datapath.counters().n3_out.packets;
    let portable =
        report(&format!("portable downlink, {name}"), packets, sent, cpu_of("pith-upf-0") - before);
    upf.run(move || drop(datapath));

    let naive = upf.run(Naive::start);
    let before = cpu_of("one-down");
    let sent = server.run(move || send_downlink(size, gso));
    thread::sleep(Duration::from_millis(100));
    let cpu = cpu_of("one-down") - before;
    let packets = upf.run(move || naive.stop().1);
    [portable, report(&format!("one a call downlink, {name}"), packets, sent, cpu)]
}

fn report(name: &str, packets: u64, sent: u64, cpu: Duration) -> f64 {
    let kpps = packets as f64 / RUN.as_secs_f64() / 1e3;
    let each = cpu.as_nanos() as f64 / packets.max(1) as f64;
    println!("{name:<44} {kpps:>8.0} {each:>12.0} {:>9.1}%", packets as f64 * 100.0 / sent as f64);
    each
}

/// Sends G-PDUs for the run's time, and answers how many.
fn send_uplink(Uplink { size, flows, gso }: Uplink) -> u64 {
    let socket = UdpSocket::bind((RADIO, GTPU_PORT)).unwrap();
    let per_call = if gso { 40 } else { 1 };
    // Neighbouring trains have no flow in common, where there are enough.
    let trains: Vec<Vec<u8>> = (0..flows.div_ceil(per_call))
        .map(|train| (0..per_call).flat_map(|n| gpdu((train * per_call + n) % flows, size)).collect())
        .collect();
    let segment = trains[0].len() / per_call as usize;
    if gso {
        set_segment(&socket, segment);
    }
    send_all(&socket, (UPF_N3, GTPU_PORT).into(), &trains, per_call)
}

fn gpdu(number: u32, size: usize) -> Vec<u8> {
    let mut inner = support::udp(ue(number), Ipv4Addr::new(192, 0, 2, 1), 7000, &vec![0; size - 28]);
    let sum = udp_checksum(&inner);
    inner[26..28].copy_from_slice(&sum.to_be_bytes());
    let information = UlPduSessionInformation { qfi: 9, qos_monitoring: None };
    let header = information.gpdu_header(0x100 + number, inner.len()).unwrap();
    [&header[..], &inner].concat()
}

fn udp_checksum(packet: &[u8]) -> u16 {
    let words = |bytes: &[u8]| {
        bytes.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum::<u32>()
    };
    let mut sum = words(&packet[12..]) + 17 + (packet.len() as u32 - 20);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn send_downlink(size: usize, gso: bool) -> u64 {
    let socket = UdpSocket::bind((SERVER, 0)).unwrap();
    let per_call = if gso { 40 } else { 1 };
    if gso {
        set_segment(&socket, size - 28);
    }
    send_all(&socket, (ue(0), 5000).into(), &[vec![0; (size - 28) * per_call as usize]], per_call)
}

fn send_all(socket: &UdpSocket, to: SocketAddr, trains: &[Vec<u8>], per_call: u32) -> u64 {
    let deadline = Instant::now() + RUN;
    let mut sent = 0;
    for (count, train) in trains.iter().cycle().enumerate() {
        if count % 64 == 0 && Instant::now() > deadline {
            break;
        }
        if socket.send_to(train, to).is_ok() {
            sent += u64::from(per_call);
        }
    }
    sent
}

fn set_segment(socket: &UdpSocket, bytes: usize) {
    let value = bytes as libc::c_int;
    // SAFETY: the option's value is a readable C int.
    unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, (&raw const value).cast(), 4)
    };
}

/// The loop that most TUN-based UPFs have: a packet, a system call.
struct Naive {
    stop: Arc<AtomicBool>,
    up: JoinHandle<u64>,
    down: JoinHandle<u64>,
}

impl Naive {
    fn start() -> Self {
        command("ip tuntap add one0 mode tun");
        command("ip addr add 10.45.0.1/16 dev one0");
        command("ip link set one0 up mtu 1400");
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        let tun = open_tun("one0");
        let socket = UdpSocket::bind((UPF_N3, GTPU_PORT)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (up_tun, up_socket, up_stop) =
            (tun.try_clone().unwrap(), socket.try_clone().unwrap(), stop.clone());
        let up =
            thread::Builder::new().name("one-up".into()).spawn(move || one_up(up_tun, &up_socket, &up_stop));
        let down_stop = stop.clone();
        let down =
            thread::Builder::new().name("one-down".into()).spawn(move || one_down(tun, &socket, &down_stop));
        Self { stop, up: up.unwrap(), down: down.unwrap() }
    }

    fn stop(self) -> (u64, u64) {
        self.stop.store(true, Relaxed);
        let socket = UdpSocket::bind((UPF_N6, 0)).unwrap();
        let _ = socket.send_to(b"", (ue(0), 5000));
        let counts = (self.up.join().unwrap(), self.down.join().unwrap());
        command("ip link del one0");
        counts
    }
}

fn one_up(mut tun: File, socket: &UdpSocket, stop: &AtomicBool) -> u64 {
    let (mut buffer, mut count) = ([0; 65_536], 0);
    while !stop.load(Relaxed) {
        let Ok((length, _)) = socket.recv_from(&mut buffer) else { continue };
        if buffer[..length].get(1) == Some(&255) && tun.write(&buffer[16..length]).is_ok() {
            count += 1;
        }
    }
    count
}

fn one_down(mut tun: File, socket: &UdpSocket, stop: &AtomicBool) -> u64 {
    let (mut buffer, mut count) = ([0; 65_536], 0);
    while !stop.load(Relaxed) {
        let Ok(length) = tun.read(&mut buffer[16..]) else { continue };
        buffer[..16].copy_from_slice(&[0x34, 255, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0x85, 1, 0, 9, 0]);
        buffer[2..4].copy_from_slice(&(length as u16 + 8).to_be_bytes());
        if socket.send_to(&buffer[..16 + length], (RADIO, GTPU_PORT)).is_ok() {
            count += 1;
        }
    }
    count
}

fn open_tun(name: &str) -> File {
    let file = OpenOptions::new().read(true).write(true).open("/dev/net/tun").unwrap();
    // SAFETY: all zero is a valid `ifreq`, which TUNSETIFF reads and writes.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from as libc::c_char);
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        assert_eq!(libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request), 0);
    }
    file
}

/// TCP from and to a UE whose modem is a second datapath, facing the first.
fn tcp(upf: &Host, radio: &Host, server: &Host) {
    let datapath = upf.run(|| start_portable(1));
    let modem = radio.run(start_modem);
    for (name, to_ue) in [("uplink", false), ("downlink", true)] {
        let before = cpu_of("pith-upf-0");
        let served = server.begin(move || serve(to_ue));
        thread::sleep(Duration::from_millis(50));
        let own = radio.run(move || connect(to_ue));
        let bytes = own.max(served.recv().unwrap());
        let cpu = (cpu_of("pith-upf-0") - before).as_secs_f64() / RUN.as_secs_f64() * 100.0;
        let rate = bytes as f64 * 8.0 / RUN.as_secs_f64() / 1e9;
        println!("TCP {name:<40} {rate:>8.2} Gbit/s, UPF {cpu:.0}% of a core");
    }
    radio.run(move || drop(modem));
    upf.run(move || drop(datapath));
}

/// A datapath the other way round: its "UE" is the server, its data network the UE's own stack.
fn start_modem() -> PortableDatapath {
    let config = DatapathConfig {
        n3_addresses: vec![RADIO.into()],
        tun: "modem".into(),
        pools: vec![UePool { gateway: IpAddr::V4(ue(0)), prefix: 32 }],
        workers: 1,
        ..DatapathConfig::default()
    };
    let mut modem = PortableDatapath::start(config).unwrap();
    command(&format!("ip route add {SERVER}/32 dev modem"));
    let mut session = support::session_of(1, SERVER, 0x200, 0x100);
    let upf = Tunnel { peer: UPF_N3.into(), teid: Teid(0x100), dscp: None };
    session.fars[1].action = Action::Forward(Destination::Tunnel(upf));
    session.qers[1].mbr = None;
    modem.install(Arc::new(session));
    modem
}

fn serve(send: bool) -> u64 {
    let listener = TcpListener::bind((SERVER, 5201)).unwrap();
    let (stream, _) = listener.accept().unwrap();
    transfer(stream, send)
}

fn connect(to_ue: bool) -> u64 {
    transfer(TcpStream::connect((SERVER, 5201)).unwrap(), !to_ue)
}

fn transfer(mut stream: TcpStream, send: bool) -> u64 {
    let mut buffer = vec![0; 1 << 18];
    let deadline = Instant::now() + RUN;
    let mut bytes = 0;
    while Instant::now() < deadline {
        let moved = if send { stream.write(&buffer) } else { stream.read(&mut buffer) };
        match moved {
            Ok(moved) if moved > 0 => bytes += moved as u64,
            _ => break,
        }
    }
    if send { 0 } else { bytes }
}
