//! What shaping costs: a thousand sessions, each offered more than its AMBR, on one worker.
//!
//! ```text
//!   data network (namespace) ── veth ── UPF (namespace) ── veth, GTP-U ── radio (namespace)
//! ```
//!
//! CPU is that of the UPF's thread alone, which also carries the kernel's work for what it writes.
//! Writes `target/bench/user-shaped.json`. Needs root.
//!
//! `cargo run --release -p pith-datapath --example shaped`

#![allow(unsafe_code)]

#[path = "../tests/support/mod.rs"]
mod support;

use pith_datapath::{DatapathConfig, Enforcement, PortableDatapath};
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

/// What all sessions are offered and may have, in Mbit/s, and in trains of how many packets.
#[derive(Debug, Clone, Copy)]
struct Case {
    name: &'static str,
    offered: u64,
    train: usize,
    ambr: u64,
    enforcement: Enforcement,
}

const CASES: [Case; 7] = [
    case("4.2 Gbit/s in trains of 8, no limit reached", 4200, 8, 100_000, Enforcement::Shape),
    case("4.2 Gbit/s in trains of 8, policed to 4", 4200, 8, 4000, Enforcement::Police),
    case("4.2 Gbit/s in trains of 8, shaped to 4", 4200, 8, 4000, Enforcement::Shape),
    case("1.2 Gbit/s in trains of 2, no limit reached", 1200, 2, 100_000, Enforcement::Shape),
    case("1.2 Gbit/s in trains of 2, policed to 1", 1200, 2, 1000, Enforcement::Police),
    case("1.2 Gbit/s in trains of 2, shaped to 1", 1200, 2, 1000, Enforcement::Shape),
    case("1.2 Gbit/s in trains of 2, shaped to 0.6", 1200, 2, 600, Enforcement::Shape),
];

const fn case(name: &'static str, offered: u64, train: usize, ambr: u64, enforcement: Enforcement) -> Case {
    Case { name, offered, train, ambr, enforcement }
}

fn main() {
    assert!(enter_namespace(), "needs root");
    pin(0);
    let _radio = wire("n3", UPF, GNB);
    let (server, _) = wire("n6", UPF_N6, SERVER);
    server.run(|| drop(run(&format!("ip route add 10.45.0.0/16 via {UPF_N6}"))));
    println!(
        "{:<44} {:>10} {:>8} {:>12} {:>10}",
        "1000 sessions, one worker", "Gbit/s", "kpps", "CPU ns/pkt", "of a core"
    );
    let mut lines = Vec::new();
    for case in CASES {
        lines.push(measure(&server, case));
        thread::sleep(Duration::from_millis(300));
    }
    let folder = PathBuf::from(std::env::var("BENCH_DIR").unwrap_or("target/bench".into()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("user-shaped.json"), format!("{{\"shaped\":[{}]}}\n", lines.join(",")))
        .unwrap();
}

/// A host behind an interface of the UPF. A full socket is where packets for the radio end.
fn wire(name: &str, upf: Ipv4Addr, address: Ipv4Addr) -> (Host, UdpSocket) {
    let host = Host::start();
    run(&format!("ip link add {name} type veth peer name eth0 netns {}", host.thread));
    run(&format!("ip addr add {upf}/24 dev {name}"));
    run(&format!("ip link set {name} up"));
    let sink = host.run(move || {
        pin(1);
        run(&format!("ip addr add {address}/24 dev eth0"));
        run("ip link set eth0 up");
        UdpSocket::bind((address, GTPU_PORT)).unwrap()
    });
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

/// Sends to the UEs in turn, for the run's time.
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

fn measure(server: &Host, case: Case) -> String {
    let Case { name, enforcement, .. } = case;
    let ambr = case.ambr * 1_000_000 / u64::from(SESSIONS);
    let config = DatapathConfig {
        n3_addresses: vec![UPF.into()],
        workers: 1,
        enforcement,
        ..DatapathConfig::default()
    };
    let mut upf = PortableDatapath::start(config).unwrap();
    for number in 0..SESSIONS {
        let mut session = session_of(u64::from(number) + 1, ue(number), 0x100 + number, 0x1000 + number);
        session.fars[1].action = Action::Forward(Destination::Tunnel(tunnel_to(GNB, 0x1000 + number)));
        session.qers[1].mbr = Some(Rates { uplink: ambr, downlink: ambr });
        upf.install(Arc::new(session));
    }
    let cpu = cpu_of_worker();
    let begin = Instant::now();
    server.run(move || send(case));
    let seconds = begin.elapsed().as_secs_f64();
    let counters = upf.counters();
    let cpu = (cpu_of_worker() - cpu).as_secs_f64();
    let packets = counters.n3_out.packets as f64;
    let gbit = counters.n3_out.bytes as f64 * 8e-9 / seconds;
    let (each, core) = (cpu * 1e9 / counters.n6_in.packets as f64, cpu / seconds);
    println!("{name:<44} {gbit:>10.2} {:>8.0} {each:>12.0} {:>9.0}%", packets / seconds / 1e3, core * 100.0);
    format!("{{\"name\":\"{name}\",\"gbit\":{gbit:.3},\"ns_per_packet\":{each:.0},\"core\":{core:.3}}}")
}

/// CPU that the UPF's thread has used.
fn cpu_of_worker() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let of = |task: std::fs::DirEntry| {
        let comm = std::fs::read_to_string(task.path().join("comm")).ok()?;
        let stat = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        let nanos = stat.split(' ').next()?.parse().ok()?;
        (comm.trim() == "pith-upf-0").then(|| Duration::from_nanos(nanos))
    };
    tasks.filter_map(of).sum()
}
