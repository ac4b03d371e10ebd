//! XDP and the kernel's own forwarding. A BPF program creates frames (live frames of BPF_PROG_TEST_RUN),
//! another counts and drops the output, so all work on a packet is done on one CPU, without other work.
//!
//! ```text
//!   generate ─ redirect ─▶ g ── veth ── in │ what is measured │ out ── veth ── s: sink
//! ```

use super::conntrack::Conntrack;
use super::cpu::{pin, put_off, used_by};
use super::support::run as command;
use super::support::{self, GNB, SERVER, UPF, UPF_N6, enter_namespace, session_of};
use super::{Row, Spread};
use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder, ProgramInput, libbpf_sys};
use pith_datapath::{DatapathConfig, PathChoice, UePool, UserPlane, XdpHook};
use pith_pfcp::gtpu::UlPduSessionInformation;
use pith_upf::contract::{Datapath, Rates};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const TRACING: &str = "/sys/kernel/tracing/events/xdp/enable";
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/bench.o"));
/// Duration of a measurement, and number of turns: all cases alternate, so that disturbances affect all.
const RUN: Duration = Duration::from_millis(100);
const RUNS: usize = 6;
const TURNS: usize = 4;
/// Consecutive packets of a session, as in a TCP window or a video frame.
const TRAIN: u32 = 16;
/// Frames of one call.
const FRAMES: u32 = 8192;
/// The CPU that runs everything.
pub const CPU: usize = 0;
/// Bytes of a user packet.
pub const PACKET: usize = 100;
/// A rate that no traffic reaches, in bit/s.
const UNLIMITED: u64 = 100_000_000_000;
/// Bytes that the generator rewrites: `FRAME` in `bpf/bench.bpf.c`.
const FRAME: usize = 80;
const ETHERNET: usize = 14;
const TUNNEL: usize = 20 + 8 + 16;
const LINK: [u8; 6] = [2, 0, 0, 0, 0, 2];
const FIRST_TEID: u32 = 0x100;
const FIRST_UE: Ipv4Addr = Ipv4Addr::new(10, 45, 1, 0);
/// The public address of session 0, with NAT; each session has its own, so that the generator can count them up.
const FIRST_PUBLIC: Ipv4Addr = Ipv4Addr::new(198, 51, 0, 0);
/// The UE's and the server's port of `support::udp`.
const PORTS: (u16, u16) = (5000, 7000);
/// Connections of the rows with NAT: one for each session.
const CONNECTIONS: u32 = 1000;
/// The first of many destinations; all are routed by `SERVER`.
const FIRST_FAR: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 0);

/// Runs all cases, each in a namespace of its own.
pub fn run(wanted: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    if std::fs::read_to_string(TRACING).is_ok_and(|enabled| !enabled.starts_with('0')) {
        println!(
            "{TRACING} is on: every redirect is traced, which costs more than all the rest; write 0 there"
        );
    }
    println!("xdp-full: {TRAIN} packets in a row for a session; xdp-scattered: each packet is another's");
    println!("xdp-installed: packets are those of 1000 sessions");
    let is_wanted = |name: &str| wanted.split(',').any(|part| name.contains(part));
    let cases: Vec<_> = cases().into_iter().filter(|case| is_wanted(case.0)).collect();
    let (mut generator, mut gross) = ([const { Vec::new() }; 2], vec![Vec::new(); cases.len()]);
    for turn in 1..=TURNS {
        for (runs, direction) in generator.iter_mut().zip([TrafficDirection::Up, TrafficDirection::Down]) {
            runs.extend(measure(Case::Discard(direction), NONE));
        }
        for (runs, (_, case, sessions)) in gross.iter_mut().zip(&cases) {
            runs.extend(measure(*case, *sessions));
        }
        println!("turn {turn} of {TURNS}");
    }
    let generator = generator.map(Spread::of);
    println!("generator: {:.0} ns a packet up, {:.0} down", generator[0].least, generator[1].least);
    for ((name, case, sessions), gross) in cases.into_iter().zip(gross) {
        let (sessions, gross) = (sessions.installed, Spread::of(gross));
        let net = gross.least - generator[case.direction() as usize].least;
        rows.push(Row { name, sessions, kpps: 1e6 / gross.least, ns_per_packet: net, gross });
    }
    rows
}

/// The sessions of a case.
#[derive(Debug, Clone, Copy)]
struct Sessions {
    installed: u32,
    /// Sessions that packets are distributed over.
    active: u32,
    /// Consecutive packets of one session.
    train: u32,
    /// Destinations of uplink packets, each packet's another one.
    destinations: u32,
}

const NONE: Sessions = Sessions { installed: 0, active: 0, train: 1, destinations: 1 };
/// More destinations than the program's route cache has entries, so that most look-ups miss it.
const MANY_DESTINATIONS: u32 = 65_536;

fn cases() -> Vec<(&'static str, Case, Sessions)> {
    let mut cases = vec![
        ("kernel-forward", Case::Kernel, NONE),
        ("xdp-decap", Case::Bare("decap", TrafficDirection::Up), NONE),
        ("xdp-encap", Case::Bare("encap", TrafficDirection::Down), NONE),
    ];
    let mut both = |names: [&'static str; 2], installed, active, train| {
        let sessions = Sessions { installed, active, train, destinations: 1 };
        cases.push((names[0], Case::Full(TrafficDirection::Up), sessions));
        cases.push((names[1], Case::Full(TrafficDirection::Down), sessions));
    };
    for sessions in [1, 1000, 100_000] {
        both(["xdp-full-ul", "xdp-full-dl"], sessions, sessions, TRAIN);
    }
    // The default configuration: NAT, single packets of many UEs.
    both(["default-nat-ul", "default-nat-dl"], CONNECTIONS, CONNECTIONS, 1);
    for case in cases.iter_mut().filter(|case| case.0.starts_with("default-nat")) {
        case.1 = Case::Nat(case.1.direction());
    }
    cases.push(("kernel-masquerade", Case::Masquerade, Sessions { destinations: CONNECTIONS, ..NONE }));
    let mut both = |names: [&'static str; 2], installed, active, train| {
        let sessions = Sessions { installed, active, train, destinations: 1 };
        cases.push((names[0], Case::Full(TrafficDirection::Up), sessions));
        cases.push((names[1], Case::Full(TrafficDirection::Down), sessions));
    };
    // Whether look-ups slow down with the number of sessions: the touched memory is that of 1,000.
    both(["xdp-installed-ul", "xdp-installed-dl"], 100_000, 1000, TRAIN);
    // The worst case: consecutive packets belong to different sessions.
    for sessions in [1000, 100_000] {
        both(["xdp-scattered-ul", "xdp-scattered-dl"], sessions, sessions, 1);
    }
    let marking = Sessions { installed: 1000, active: 1000, train: TRAIN, destinations: 1 };
    for (name, ecn, ports) in [
        ("xdp-marking-both-dl", true, true),
        ("xdp-marking-ecn-dl", true, false),
        ("xdp-marking-ports-dl", false, true),
        ("xdp-marking-none-dl", false, false),
    ] {
        cases.push((name, Case::Marking(ecn, ports), marking));
    }
    for (name, case) in
        [("kernel-destinations", Case::Kernel), ("xdp-destinations-ul", Case::Full(TrafficDirection::Up))]
    {
        let installed = if case == Case::Kernel { 0 } else { 1000 };
        let sessions = Sessions { installed, active: installed, train: 1, destinations: MANY_DESTINATIONS };
        cases.push((name, case, sessions));
    }
    cases
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrafficDirection {
    Up,
    Down,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Dropped on reception: the cost of the generator.
    Discard(TrafficDirection),
    /// Plain packets routed by the kernel.
    Kernel,
    /// The same with masquerading.
    Masquerade,
    /// A program that encapsulates or decapsulates without checks.
    Bare(&'static str, TrafficDirection),
    /// Pith.
    Full(TrafficDirection),
    /// Pith with NAT, as configured by default.
    Nat(TrafficDirection),
    /// Pith, downlink: whether outer headers get the packet's ECN field, and a source port of its flow.
    Marking(bool, bool),
    /// Pith, downlink, with a limit for all sessions together, in bit/s.
    Shaped(u64),
}

impl Case {
    fn direction(self) -> TrafficDirection {
        match self {
            Self::Kernel | Self::Masquerade => TrafficDirection::Up,
            Self::Shaped(_) | Self::Marking(..) => TrafficDirection::Down,
            Self::Discard(direction)
            | Self::Bare(_, direction)
            | Self::Full(direction)
            | Self::Nat(direction) => direction,
        }
    }
}

/// Nanoseconds of CPU a packet with the generator's, of each run.
fn measure(case: Case, sessions: Sessions) -> Vec<f64> {
    apart(move || {
        let bench = Bench::set_up(case.direction());
        let _runs = bench.start(case, sessions.installed);
        let Sessions { active, train, destinations, .. } = sessions;
        bench.frame_to(case, (active, train, destinations), (PACKET, 0));
        bench.generate(FRAMES);
        bench.arrivals();
        bench.costs()
    })
}

/// Runs a job in a namespace of its own.
pub fn apart<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> T {
    let job = || {
        assert!(enter_namespace(), "needs root");
        pin(CPU);
        job()
    };
    thread::spawn(job).join().unwrap()
}

/// Values that must live during a measurement.
pub type Running = (Vec<Link>, Option<UserPlane>);

pub struct Bench {
    object: Object,
    into: &'static str,
    /// The generator attached to an unused interface: otherwise the kernel would register it for each call,
    /// and wait milliseconds for all CPUs.
    _known: Link,
}

impl Bench {
    pub fn set_up(direction: TrafficDirection) -> Self {
        let (into, out) = if direction == TrafficDirection::Up { ("n3", "n6") } else { ("n6", "n3") };
        command(&format!("ip link add g type veth peer name {into}"));
        command(&format!("ip link add s type veth peer name {out}"));
        command(&format!("ip addr add {UPF}/24 dev n3"));
        command(&format!("ip addr add {UPF_N6}/24 dev n6"));
        ["g", "s", "n3", "n6"].iter().for_each(|link| drop(command(&format!("ip link set {link} up"))));
        command(&format!("ip link set {into} address 02:00:00:00:00:02"));
        command(&format!("ip neigh replace {GNB} lladdr 02:00:00:00:00:03 dev n3 nud permanent"));
        command(&format!("ip neigh replace {SERVER} lladdr 02:00:00:00:00:03 dev n6 nud permanent"));
        command(&format!("ip route add 100.64.0.0/10 via {SERVER}"));
        command("ip link add known type veth peer name nothing");
        let object = ObjectBuilder::default().open_memory(OBJECT).unwrap().load().unwrap();
        let known = attach(&object, "generate", "known");
        let bench = Self { object, into, _known: known };
        bench.set_device(0, "g");
        bench.set_device(1, out);
        bench
    }

    fn set_device(&self, slot: u32, link: &str) {
        let devices = self.object.maps().find(|map| map.name() == "devices").unwrap();
        devices.update(&slot.to_ne_bytes(), &index(link).to_ne_bytes(), MapFlags::ANY).unwrap();
    }

    pub fn start(&self, case: Case, sessions: u32) -> Running {
        let mut links = vec![self.attach("sink", "s")];
        let upf = match case {
            Case::Discard(_) => {
                links.push(self.attach("sink", self.into));
                None
            }
            Case::Kernel | Case::Masquerade => {
                std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
                command(&format!("ethtool -K {} gro on", self.into));
                if case == Case::Masquerade {
                    command("nft add table ip nat");
                    command("nft add chain ip nat post { type nat hook postrouting priority 100 ; }");
                    command("nft add rule ip nat post oifname n6 masquerade");
                }
                None
            }
            Case::Bare(program, _) => {
                links.push(self.attach(program, self.into));
                None
            }
            Case::Full(_) => Some(start_upf(sessions, UNLIMITED, false)),
            Case::Nat(_) => {
                let upf = start_upf(sessions, UNLIMITED, true);
                let conntrack = Conntrack::open();
                let number = |first: Ipv4Addr, number| Ipv4Addr::from_bits(first.to_bits() + number);
                for session in 0..sessions {
                    let public = (number(FIRST_PUBLIC, session), PORTS.0);
                    conntrack.add((number(FIRST_UE, session), PORTS.0), (SERVER, PORTS.1), public);
                }
                Some(upf)
            }
            Case::Marking(ecn, ports) => Some(start_marking(sessions, UNLIMITED, false, (ecn, ports))),
            Case::Shaped(rate) => Some(start_upf(sessions, rate / u64::from(sessions), false)),
        };
        (links, upf)
    }

    fn attach(&self, program: &str, link: &str) -> Link {
        attach(&self.object, program, link)
    }

    /// Sets the generated traffic: number of sessions, consecutive packets of one, bytes of a packet, and
    /// nanoseconds between packets.
    pub fn frame(&self, case: Case, sessions: u32, train: u32, timing: (usize, u64)) {
        self.frame_to(case, (sessions, train, 1), timing);
    }

    /// The same, spread over that number of destinations.
    fn frame_to(
        &self,
        case: Case,
        (sessions, train, destinations): (u32, u32, u32),
        (packet, interval): (usize, u64),
    ) {
        let frame = frame_of(case, packet, if destinations > 1 { FIRST_FAR } else { SERVER });
        let destination_at = match case {
            _ if destinations == 1 => 0,
            Case::Kernel | Case::Masquerade => ETHERNET + 16,
            _ => ETHERNET + TUNNEL + 16,
        };
        let (teid_at, address_at) = match case {
            Case::Full(TrafficDirection::Up) | Case::Nat(TrafficDirection::Up) => {
                (ETHERNET + 20 + 8 + 4, ETHERNET + TUNNEL + 12)
            }
            Case::Full(TrafficDirection::Down)
            | Case::Nat(TrafficDirection::Down)
            | Case::Marking(..)
            | Case::Shaped(_) => (0, ETHERNET + 16),
            _ => (0, 0),
        };
        let mut value = vec![0; 16];
        for word in [sessions, teid_at as u32, address_at as u32, train] {
            value.extend(word.to_ne_bytes());
        }
        for word in [interval, 0, 0] {
            value.extend(word.to_ne_bytes());
        }
        for word in [destinations, destination_at as u32] {
            value.extend(word.to_ne_bytes());
        }
        value.extend(&frame[..FRAME]);
        self.table().update(&0u32.to_ne_bytes(), &value, MapFlags::ANY).unwrap();
        std::fs::write(format!("/proc/self/task/{}/comm", support::thread_id()), "bench-xdp").unwrap();
        FRAME_BYTES.with_borrow_mut(|bytes| *bytes = frame);
    }

    fn table(&self) -> impl MapCore {
        self.object.maps().find(|map| map.name() == "bench").unwrap()
    }

    pub fn generate(&self, frames: u32) {
        let program = self.object.progs_mut().find(|program| program.name() == "generate").unwrap();
        FRAME_BYTES.with_borrow(|frame| {
            let input = ProgramInput {
                data_in: Some(frame),
                flags: libbpf_sys::BPF_F_TEST_XDP_LIVE_FRAMES,
                repeat: frames,
                ..ProgramInput::default()
            };
            program.test_run(input).unwrap();
        });
    }

    /// Frames generated, and received by the sink.
    pub fn arrivals(&self) -> (u64, u64) {
        (self.word(0), self.word(1))
    }

    /// The number of polls before a frame was due.
    pub fn early(&self) -> u64 {
        self.word(6)
    }

    fn word(&self, number: usize) -> u64 {
        let value = self.table().lookup(&0u32.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
        u64::from_ne_bytes(value[number * 8..number * 8 + 8].try_into().unwrap())
    }

    /// Generates on another CPU, and returns the CPU time that this took.
    pub fn generate_on(&self, cpu: usize, frames: u32) -> thread::JoinHandle<Duration> {
        let program = self.object.progs().find(|program| program.name() == "generate").unwrap();
        let program = program.as_fd().try_clone_to_owned().unwrap();
        let mut frame = FRAME_BYTES.with_borrow(Vec::clone);
        thread::spawn(move || {
            pin(cpu);
            let before = used_by("thread-self").expect("it lives");
            let mut options = libbpf_sys::bpf_test_run_opts {
                sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
                data_in: frame.as_mut_ptr().cast(),
                data_size_in: frame.len() as u32,
                repeat: frames as i32,
                flags: libbpf_sys::BPF_F_TEST_XDP_LIVE_FRAMES,
                ..Default::default()
            };
            // SAFETY: the options say their own size; the frame lives during the call.
            unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
            used_by("thread-self").expect("it lives") - before
        })
    }

    /// Of short runs, without those that lost packets.
    fn costs(&self) -> Vec<f64> {
        let runs: Vec<_> = (0..RUNS).filter_map(|_| self.cost_of_run()).collect();
        assert!(!runs.is_empty(), "the CPU was taken away for long in all runs");
        runs
    }

    /// `None` if packets were lost: another process used the CPU while a veth's ring of 256 overflowed.
    fn cost_of_run(&self) -> Option<f64> {
        let (before, cpu, begin) = (self.arrivals(), cpu_time(), Instant::now());
        while begin.elapsed() < RUN {
            self.generate(FRAMES);
        }
        let (after, spent) = (self.arrivals(), cpu_time() - cpu);
        let (generated, arrived) = (after.0 - before.0, after.1 - before.1);
        (arrived * 100 >= generated * 98).then(|| spent.as_nanos() as f64 / arrived as f64)
    }
}

fn attach(object: &Object, program: &str, link: &str) -> Link {
    let program = object.progs_mut().find(|found| found.name() == program).unwrap();
    program.attach_xdp(index(link) as i32).unwrap()
}

thread_local! {
    static FRAME_BYTES: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// The frame of session 0, with a user packet of that length.
fn frame_of(case: Case, packet: usize, server: Ipv4Addr) -> Vec<u8> {
    let payload = vec![0; packet - 28];
    let link = [&LINK[..], &[2, 0, 0, 0, 0, 9], &[8, 0]].concat();
    let mut up = support::udp(FIRST_UE, server, PORTS.1, &payload);
    if let Case::Nat(_) = case {
        // A checksum that NAT must update. It is not verified.
        up[26..28].fill(0x5a);
    }
    match case {
        Case::Nat(TrafficDirection::Down) => {
            let mut down = support::udp(server, FIRST_PUBLIC, PORTS.0, &payload);
            down[20..22].copy_from_slice(&PORTS.1.to_be_bytes());
            down[26..28].fill(0x5a);
            [link, down].concat()
        }
        Case::Kernel | Case::Masquerade => [link, support::udp(GNB, server, 7000, &payload)].concat(),
        Case::Full(TrafficDirection::Down)
        | Case::Shaped(_)
        | Case::Marking(..)
        | Case::Bare(_, TrafficDirection::Down)
        | Case::Discard(TrafficDirection::Down) => {
            [link, support::udp(server, FIRST_UE, 5000, &payload)].concat()
        }
        _ => {
            let information = UlPduSessionInformation { qfi: 9, qos_monitoring: None };
            let header = information.gpdu_header(FIRST_TEID, up.len()).unwrap();
            let mut outer = support::udp(GNB, UPF, 2152, &[&header[..], &up].concat());
            outer[20..22].copy_from_slice(&2152u16.to_be_bytes());
            [link, outer].concat()
        }
    }
}

/// With sessions of that rate in each direction, in bit/s.
pub fn start_upf(sessions: u32, rate: u64, nat: bool) -> UserPlane {
    let DatapathConfig { outer_ecn, flow_ports, .. } = DatapathConfig::default();
    start_marking(sessions, rate, nat, (outer_ecn, flow_ports))
}

/// The same, with these fields in outer headers (`Case::Marking`).
fn start_marking(sessions: u32, rate: u64, nat: bool, (outer_ecn, flow_ports): (bool, bool)) -> UserPlane {
    let config = DatapathConfig {
        outer_ecn,
        flow_ports,
        n3_addresses: vec![UPF.into()],
        pools: vec![UePool { gateway: Ipv4Addr::new(10, 0, 0, 1).into(), prefix: 8 }],
        workers: 1,
        nat,
        path: PathChoice::Xdp,
        xdp_hook: XdpHook::Native,
        interfaces: vec!["n3".into(), "n6".into()],
        sessions,
        ..DatapathConfig::default()
    };
    let mut upf = UserPlane::start(config).unwrap();
    for number in 0..sessions {
        let ue = Ipv4Addr::from_bits(FIRST_UE.to_bits() + number);
        let mut session = session_of(u64::from(number) + 1, ue, FIRST_TEID + number, 0x10_0000 + number);
        session.qers[1].mbr = Some(Rates { uplink: rate, downlink: rate });
        upf.install(Arc::new(session));
    }
    upf
}

fn index(link: &str) -> u32 {
    let name = std::ffi::CString::new(link).unwrap();
    // SAFETY: the name ends with a zero byte and lives during the call.
    unsafe { libc::if_nametoindex(name.as_ptr()) }
}

/// CPU time of this thread, including the kernel's work in its name and the work that the kernel deferred to
/// its own thread of this CPU.
pub fn cpu_time() -> Duration {
    used_by("thread-self").expect("it lives") + put_off(CPU)
}
