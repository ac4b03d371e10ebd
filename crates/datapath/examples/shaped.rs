//! The cost of shaping: a thousand sessions, each offered more than its AMBR, on one worker; on the portable
//! path, and by AF_XDP with XDP. And a burst for each of a thousand idle UEs, held and then delivered.
//!
//! ```text
//!   data network (namespace) ── veth ── UPF (namespace) ── veth, GTP-U ── radio (namespace)
//! ```
//!
//! CPU is that of the UPF's thread alone, including the kernel's work for its writes. XDP receives single
//! packets, as from a network card; the portable path receives the sender's trains.
//!
//! Writes `target/bench/user-shaped.json`. Needs root.
//!
//! `cargo run --release -p pith-datapath --example shaped`

#![allow(unsafe_code)]

#[path = "../tests/support/mod.rs"]
mod support;

use pith_datapath::{BufferLimits, DatapathConfig, Enforcement, PathChoice, UserPlane, XdpHook};
use pith_pfcp::gtpu::GTPU_PORT;
use pith_upf::contract::*;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use support::*;

const RUN: Duration = Duration::from_secs(3);
const SESSIONS: u32 = 1000;
const BYTES: usize = 1400;

/// Offered and permitted rate of all sessions together, in Mbit/s, and packets of a train.
#[derive(Debug, Clone, Copy)]
struct Case {
    path: PathChoice,
    name: &'static str,
    offered: u64,
    train: usize,
    ambr: u64,
    enforcement: Enforcement,
}

const CASES: [Case; 11] = [
    case(
        PathChoice::Portable,
        "4.2 Gbit/s in trains of 8, no limit reached",
        4200,
        8,
        100_000,
        Enforcement::Shape,
    ),
    case(PathChoice::Portable, "4.2 Gbit/s in trains of 8, policed to 4", 4200, 8, 4000, Enforcement::Police),
    case(PathChoice::Portable, "4.2 Gbit/s in trains of 8, shaped to 4", 4200, 8, 4000, Enforcement::Shape),
    case(
        PathChoice::Portable,
        "1.2 Gbit/s in trains of 2, no limit reached",
        1200,
        2,
        100_000,
        Enforcement::Shape,
    ),
    case(PathChoice::Portable, "1.2 Gbit/s in trains of 2, policed to 1", 1200, 2, 1000, Enforcement::Police),
    case(PathChoice::Portable, "1.2 Gbit/s in trains of 2, shaped to 1", 1200, 2, 1000, Enforcement::Shape),
    case(PathChoice::Portable, "1.2 Gbit/s in trains of 2, shaped to 0.6", 1200, 2, 600, Enforcement::Shape),
    case(PathChoice::Xdp, "XDP, 4.2 Gbit/s, no limit reached", 4200, 8, 100_000, Enforcement::Shape),
    case(PathChoice::Xdp, "AF_XDP, 4.2 Gbit/s, shaped to 4", 4200, 8, 4000, Enforcement::Shape),
    case(PathChoice::Xdp, "AF_XDP, 4.2 Gbit/s, shaped to 3", 4200, 8, 3000, Enforcement::Shape),
    case(PathChoice::Xdp, "AF_XDP, 1.2 Gbit/s, shaped to 1", 1200, 2, 1000, Enforcement::Shape),
];

const fn case(
    path: PathChoice,
    name: &'static str,
    offered: u64,
    train: usize,
    ambr: u64,
    enforcement: Enforcement,
) -> Case {
    Case { path, name, offered, train, ambr, enforcement }
}

fn main() {
    println!(
        "{:<44} {:>10} {:>8} {:>12} {:>10}",
        "1000 sessions, one worker", "Gbit/s", "kpps", "CPU ns/pkt", "of a core"
    );
    let lines: Vec<_> =
        CASES.into_iter().map(|case| apart(move || measure(&Net::of(case.path), case))).collect();
    let held: Vec<_> =
        [PathChoice::Portable, PathChoice::Xdp].map(|path| apart(move || page(&Net::of(path), path))).into();
    let folder = PathBuf::from(std::env::var("BENCH_DIR").unwrap_or("target/bench".into()));
    std::fs::create_dir_all(&folder).unwrap();
    let text = format!("{{\"shaped\":[{}],\"paging\":[{}]}}\n", lines.join(","), held.join(","));
    std::fs::write(folder.join("user-shaped.json"), text).unwrap();
}

/// Runs a job in a namespace of its own.
fn apart(job: impl FnOnce() -> String + Send + 'static) -> String {
    let job = || {
        assert!(enter_namespace(), "needs root");
        pin(0);
        job()
    };
    thread::spawn(job).join().unwrap()
}

/// The gNB and the data network.
struct Net {
    _radio: Host,
    /// Receives packets for the gNB; excess ones are dropped.
    gnb: UdpSocket,
    server: Host,
}

impl Net {
    fn of(path: PathChoice) -> Self {
        let (radio, gnb) = wire("n3", UPF, GNB, path);
        let (server, _) = wire("n6", UPF_N6, SERVER, path);
        server.run(|| drop(run(&format!("ip route add 10.45.0.0/16 via {UPF_N6}"))));
        Self { _radio: radio, gnb, server }
    }
}

/// A host behind an interface of the UPF.
fn wire(name: &str, upf: Ipv4Addr, address: Ipv4Addr, path: PathChoice) -> (Host, UdpSocket) {
    let host = Host::start();
    run(&format!("ip link add {name} type veth peer name eth0 netns {}", host.thread));
    run(&format!("ip addr add {upf}/24 dev {name}"));
    run(&format!("ip link set {name} up"));
    let sink = host.run(move || {
        pin(1);
        run(&format!("ip addr add {address}/24 dev eth0"));
        run("ip link set eth0 address 02:00:00:00:00:02 up");
        if path == PathChoice::Xdp {
            run("ethtool -K eth0 gro on tx off");
        }
        UdpSocket::bind((address, GTPU_PORT)).unwrap()
    });
    run(&format!("ip neigh replace {address} lladdr 02:00:00:00:00:02 dev {name} nud permanent"));
    (host, sink)
}

fn pin(cpu: usize) {
    // SAFETY: all zero is an empty set; the calls read and write that set only.
    unsafe {
        let mut set = std::mem::zeroed::<libc::cpu_set_t>();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

fn ue(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 45, 1, 0).to_bits() + number)
}

/// Sends to the UEs in turn for the duration of the run.
fn send(case: Case) {
    let socket = UdpSocket::bind((SERVER, 0)).unwrap();
    let segment = (BYTES - 28) as libc::c_int;
    // SAFETY: the option's value is a readable C int.
    unsafe {
        let value = (&raw const segment).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, value, 4);
    }
    let train = vec![0; (BYTES - 28) * case.train];
    let (begin, mut sent) = (Instant::now(), 0u64);
    while begin.elapsed() < RUN {
        let due = begin.elapsed().as_nanos() as u64 * case.offered / (case.train * BYTES * 8 * 1000) as u64;
        while sent < due && begin.elapsed() < RUN {
            let _ = socket.send_to(&train, (ue(sent as u32 % SESSIONS), 5000));
            sent += 1;
        }
    }
}

/// A UPF with its sessions.
fn start(path: PathChoice, enforcement: Enforcement, session: impl Fn(&mut Session)) -> UserPlane {
    let config = DatapathConfig {
        n3_addresses: vec![UPF.into()],
        workers: 1,
        enforcement,
        path,
        xdp_hook: XdpHook::Native,
        interfaces: vec!["n3".into(), "n6".into()],
        buffer: BufferLimits { packets: 200_000, ..BufferLimits::default() },
        ..DatapathConfig::default()
    };
    let mut upf = UserPlane::start(config).unwrap();
    install(&mut upf, session);
    upf
}

fn install(upf: &mut UserPlane, change: impl Fn(&mut Session)) {
    for number in 0..SESSIONS {
        let mut session = session_of(u64::from(number) + 1, ue(number), 0x100 + number, 0x1000 + number);
        change(&mut session);
        upf.install(Arc::new(session));
    }
}

fn measure(net: &Net, case: Case) -> String {
    let Case { path, name, enforcement, .. } = case;
    let ambr = case.ambr * 1_000_000 / u64::from(SESSIONS);
    let mut upf = start(path, enforcement, |session| {
        session.qers[1].mbr = Some(Rates { uplink: ambr, downlink: ambr });
    });
    let cpu = cpu_of("pith-upf-0");
    let begin = Instant::now();
    let sending = net.server.begin(move || send(case));
    while sending.recv_timeout(Duration::from_millis(10)).is_err() {
        upf.poll_events(&mut Vec::new());
    }
    let seconds = begin.elapsed().as_secs_f64();
    let counters = upf.counters();
    let cpu = (cpu_of("pith-upf-0") - cpu).as_secs_f64();
    let packets = counters.n3_out.packets as f64;
    let gbit = counters.n3_out.bytes as f64 * 8e-9 / seconds;
    let (each, core) = (cpu * 1e9 / counters.n6_in.packets as f64, cpu / seconds);
    println!("{name:<44} {gbit:>10.2} {:>8.0} {each:>12.0} {:>9.0}%", packets / seconds / 1e3, core * 100.0);
    wait_for("as many out as in", || {
        let counters = upf.counters();
        let dropped: u64 = counters.dropped.iter().map(|(_, count)| count).sum();
        counters.buffered == 0 && counters.n6_in.packets == counters.n3_out.packets + dropped
    });
    format!(
        "{{\"name\":\"{name}\",\"gbit\":{gbit:.3},\"ns_per_packet\":{each:.0},\"core\":{core:.3},\
         \"offered_kpps\":{:.1},\"kpps\":{:.1}}}",
        counters.n6_in.packets as f64 / seconds / 1e3,
        packets / seconds / 1e3
    )
}

/// Packets for each idle UE.
const BURST: u32 = 100;

/// Sends a burst to each of the UEs, all idle; then the UEs are reached.
fn page(net: &Net, path: PathChoice) -> String {
    let mut upf = start(path, Enforcement::Shape, |session| {
        session.fars[1].action = Action::Buffer { notify: true, packets: None };
    });
    let begin = Instant::now();
    let socket = net.server.run(|| UdpSocket::bind((SERVER, 0)).unwrap());
    let all = u64::from(BURST * SESSIONS);
    for number in 0..BURST {
        for at in 0..SESSIONS {
            socket.send_to(&number.to_be_bytes(), (ue(at), 5000)).unwrap();
        }
        // So that no queue before the UPF overflows.
        let expected = u64::from((number + 1) * SESSIONS);
        wait_for("all held", || upf.counters().buffered == expected);
    }
    let held = begin.elapsed().as_secs_f64();
    let mut events = Vec::new();
    upf.poll_events(&mut events);
    let told = events.iter().filter(|event| matches!(event, Event::DownlinkData { .. })).count();
    receive_much(&net.gnb);
    let gnb = net.gnb.try_clone().unwrap();
    let receiver = thread::spawn(move || in_order(&gnb));
    let begin = Instant::now();
    install(&mut upf, |_| ());
    let disorder = receiver.join().unwrap();
    let delivered = begin.elapsed().as_secs_f64();
    let counters = upf.counters();
    let dropped: u64 = counters.dropped.iter().map(|(_, count)| count).sum();
    println!(
        "paging, {path:?}: {all} packets held in {held:.2} s, told of {told} times, delivered in {delivered:.2} s; \
         out of order {disorder}, dropped {dropped}, left over {}",
        counters.buffered
    );
    format!(
        "{{\"path\":\"{path:?}\",\"held\":{all},\"told\":{told},\"delivered\":{},\"out_of_order\":{disorder},\
         \"dropped\":{dropped},\"left_over\":{}}}",
        counters.n3_out.packets, counters.buffered
    )
}

/// Receives all packets of the bursts, and counts those out of order.
fn in_order(gnb: &UdpSocket) -> u32 {
    gnb.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut next, mut buffer, mut disorder) = (vec![0; SESSIONS as usize], [0; 2048], 0);
    for _ in 0..BURST * SESSIONS {
        let length = gnb.recv(&mut buffer).expect("a packet more");
        let ue = u32::from_be_bytes(buffer[4..8].try_into().unwrap()) - 0x1000;
        let number = u32::from_be_bytes(buffer[length - 4..length].try_into().unwrap());
        disorder += u32::from(std::mem::replace(&mut next[ue as usize], number + 1) != number);
    }
    disorder
}
