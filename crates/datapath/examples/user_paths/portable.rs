//! The cost of the portable path: packets a second and CPU a packet, beside a loop of one packet a system
//! call.
//!
//! CPU is that of the UPF's thread, including the kernel's work for its writes and the work that the kernel
//! defers to its own thread of that CPU.

use super::cpu::put_off;
use super::net::{FAR_AWAY, Net, RADIO, SERVER, UPF_CPU, UPF_N3, WORKER, install, start_portable, ue};
use super::one_packet::{self, OnePacket};
use super::progress::Progress;
use super::row::{Row, Spread};
use super::support::{self, Host, cpu_of};
use pith_pfcp::gtpu::{GTPU_PORT, UlPduSessionInformation};
use pith_upf::contract::*;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

/// Duration of a measurement, and number of turns: both loops alternate, so that disturbances affect both.
const RUN: Duration = Duration::from_millis(200);
const RUNS: usize = 3;
const TURNS: usize = 3;
/// Flows, each of another UE, of some cases.
const MANY: u32 = 1000;
/// Packets of a train, as formed by a sender's GSO or a card's GRO.
const TRAIN: u32 = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrafficDirection {
    Up,
    Down,
}

/// How packets are sent by the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wire {
    Trains,
    Singly,
}

#[derive(Debug, Clone, Copy)]
struct Case {
    direction: TrafficDirection,
    size: usize,
    flows: u32,
    wire: Wire,
}

/// Packets sent and passed in a run, and its CPU time.
#[derive(Debug, Clone, Copy)]
struct Run {
    sent: u64,
    passed: u64,
    cpu: Duration,
}

impl Run {
    /// Nanoseconds of CPU a packet.
    fn each(&self) -> f64 {
        self.cpu.as_nanos() as f64 / self.passed.max(1) as f64
    }
}

/// Cases whose name or conditions contain `wanted`.
pub fn run(wanted: &str) -> Vec<Row> {
    let net = Net::set_up();
    if wanted.is_empty() {
        sessions(&net.upf);
    }
    let cases: Vec<_> = cases().filter(|case| case.to_string().contains(wanted)).collect();
    let mut progress = Progress::of("portable", cases.len());
    println!("{:<44} {:>8} {:>12} {:>10}", "path", "kpps", "CPU ns/pkt", "delivered");
    let mut rows = Vec::new();
    for case in cases {
        rows.extend(measure(&net, case));
        progress.step(&case.to_string());
    }
    rows
}

fn cases() -> impl Iterator<Item = Case> {
    let flows = [
        (TrafficDirection::Up, 1),
        (TrafficDirection::Down, 1),
        (TrafficDirection::Up, MANY),
        (TrafficDirection::Down, MANY),
    ];
    flows
        .into_iter()
        .flat_map(|(direction, flows)| {
            [64, 1400].into_iter().flat_map(move |size| {
                [Wire::Trains, Wire::Singly].map(move |wire| Case { direction, size, flows, wire })
            })
        })
        .filter(Case::is_reported)
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { direction, size, flows, wire } = self;
        write!(f, "{direction:?}, {size} B, {flows} flows, {wire:?}")
    }
}

impl Case {
    /// Trains of many flows on the way down are those of single packets: a train is one flow's.
    fn is_reported(&self) -> bool {
        self.flows == 1 || self.direction == TrafficDirection::Up || self.wire == Wire::Singly
    }

    /// The names of the rows of the portable path and of the loop.
    fn names(self) -> [&'static str; 2] {
        use TrafficDirection::{Down, Up};
        use Wire::{Singly, Trains};
        match (self.flows, self.size, self.direction, self.wire) {
            (1, 64, Up, Trains) => ["portable-64-ul", "one-packet-64-ul"],
            (1, 64, Down, Trains) => ["portable-64-dl", "one-packet-64-dl"],
            (1, 64, Up, Singly) => ["portable-64-ul-singly", "one-packet-64-ul-singly"],
            (1, 64, Down, Singly) => ["portable-64-dl-singly", "one-packet-64-dl-singly"],
            (1, _, Up, Trains) => ["portable-ul", "one-packet-ul"],
            (1, _, Down, Trains) => ["portable-dl", "one-packet-dl"],
            (1, _, Up, Singly) => ["portable-ul-singly", "one-packet-ul-singly"],
            (1, _, Down, Singly) => ["portable-dl-singly", "one-packet-dl-singly"],
            (_, 64, _, Trains) => ["portable-many-64-ul", "one-packet-many-64-ul"],
            (_, _, _, Trains) => ["portable-many-ul", "one-packet-many-ul"],
            (_, 64, Up, Singly) => ["portable-single-64-ul", "one-packet-single-64-ul"],
            (_, 64, Down, Singly) => ["portable-single-64-dl", "one-packet-single-64-dl"],
            (_, _, Up, Singly) => ["portable-single-ul", "one-packet-single-ul"],
            (_, _, Down, Singly) => ["portable-single-dl", "one-packet-single-dl"],
        }
    }

    /// Sends for the duration of the run, and returns the number of packets.
    fn send(self, net: &Net) -> u64 {
        match self.direction {
            TrafficDirection::Up => net.radio.run(move || send_uplink(self)),
            TrafficDirection::Down => net.server.run(move || send_downlink(self)),
        }
    }

    fn per_call(self) -> u32 {
        if self.wire == Wire::Trains { TRAIN } else { 1 }
    }
}

/// The rows of the portable path and of the loop.
fn measure(net: &Net, case: Case) -> Vec<Row> {
    let turns: Vec<_> = (0..TURNS).map(|_| [portable(net, case), one_packet(net, case)]).collect();
    let each = [("portable", 0), ("one a call", 1)].map(|(name, at)| {
        let runs: Vec<_> = turns.iter().flat_map(|turn| turn[at].clone()).collect();
        let best = least(&runs);
        report(&format!("{name}: {case}"), best);
        Spread::of(runs.iter().map(Run::each).collect())
    });
    let row = |(name, gross)| Row::of(name, (case.flows, 1, case.size), gross, 0.0);
    case.names().into_iter().zip(each).map(row).collect()
}

fn portable(net: &Net, case: Case) -> Vec<Run> {
    let datapath = net.upf.run(move || start_portable(case.flows));
    let passed = || {
        let counters = datapath.counters();
        if case.direction == TrafficDirection::Up { counters.n6_out.packets } else { counters.n3_out.packets }
    };
    let runs = runs(net, case, passed, || cpu_of(WORKER) + put_off(UPF_CPU));
    net.upf.run(move || drop(datapath));
    runs
}

fn one_packet(net: &Net, case: Case) -> Vec<Run> {
    let threads = net.upf.run(OnePacket::start);
    let (at, name) =
        if case.direction == TrafficDirection::Up { (0, one_packet::UP) } else { (1, one_packet::DOWN) };
    let runs = runs(net, case, || threads.packets()[at], || cpu_of(name) + put_off(UPF_CPU));
    net.upf.run(move || threads.stop());
    runs
}

/// The run with the least CPU a packet: on a shared machine it is the least disturbed.
fn least(runs: &[Run]) -> Run {
    *runs.iter().min_by(|a, b| a.each().total_cmp(&b.each())).expect("there are runs")
}

fn runs(net: &Net, case: Case, passed: impl Fn() -> u64, cpu: impl Fn() -> Duration) -> Vec<Run> {
    let run = |_| {
        let before = (passed(), cpu());
        let sent = case.send(net);
        thread::sleep(Duration::from_millis(20));
        Run { sent, passed: passed() - before.0, cpu: cpu() - before.1 }
    };
    (0..RUNS).map(run).collect()
}

fn report(name: &str, run: Run) {
    let (kpps, each) = (run.passed as f64 / RUN.as_secs_f64() / 1e3, run.each());
    println!("{name:<44} {kpps:>8.0} {each:>12.0} {:>9.1}%", run.passed as f64 * 100.0 / run.sent as f64);
}

/// The cost of a start, of 10,000 sessions, and of idling.
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
        let before = cpu_of(WORKER);
        thread::sleep(Duration::from_secs(1));
        println!("idle with {COUNT} sessions: {:?} of CPU in a second", cpu_of(WORKER) - before);
        let before = Instant::now();
        (0..COUNT).for_each(|number| drop(datapath.remove(SessionId(u64::from(number) + 1))));
        println!("removal: {:.1} µs", before.elapsed().as_secs_f64() * 1e6 / f64::from(COUNT));
    });
}

fn resident_kb() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4
}

fn send_uplink(case: Case) -> u64 {
    let (per_call, flows) = (case.per_call(), case.flows);
    let socket = UdpSocket::bind((RADIO, GTPU_PORT)).unwrap();
    // Neighbouring trains have no common flow, if there are enough flows.
    let trains: Vec<Vec<u8>> = (0..flows.div_ceil(per_call))
        .map(|train| (0..per_call).flat_map(|n| gpdu((train * per_call + n) % flows, case.size)).collect())
        .collect();
    if case.wire == Wire::Trains {
        set_segment(&socket, trains[0].len() / per_call as usize);
    }
    let upf = SocketAddr::from((UPF_N3, GTPU_PORT));
    let trains: Vec<_> = trains.iter().map(|train| (upf, &train[..])).collect();
    send_all(&socket, &trains, per_call)
}

fn gpdu(number: u32, size: usize) -> Vec<u8> {
    let mut inner = support::udp(ue(number), FAR_AWAY, 7000, &vec![0; size - 28]);
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

fn send_downlink(case: Case) -> u64 {
    let (payload, per_call) = (case.size - 28, case.per_call());
    let socket = UdpSocket::bind((SERVER, 0)).unwrap();
    if case.wire == Wire::Trains {
        set_segment(&socket, payload);
    }
    let train = vec![0; payload * per_call as usize];
    let to: Vec<_> = (0..case.flows).map(|flow| (SocketAddr::from((ue(flow), 5000)), &train[..])).collect();
    send_all(&socket, &to, per_call)
}

/// Sends trains in turn for the duration of the run, and returns the number of packets.
fn send_all(socket: &UdpSocket, trains: &[(SocketAddr, &[u8])], per_call: u32) -> u64 {
    let deadline = Instant::now() + RUN;
    let mut sent = 0;
    for (count, (to, train)) in trains.iter().cycle().enumerate() {
        if count % 64 == 0 && Instant::now() > deadline {
            break;
        }
        if socket.send_to(train, *to).is_ok() {
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
