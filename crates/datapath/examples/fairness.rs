//! Shares of a session's rate, with real packets and real TCP, over time.
//!
//! ```text
//!   UE's stack ─ modem (a datapath facing the other way) ─ GTP-U over veth ─ UPF ─ data network
//! ```
//!
//! Writes `target/bench/user-fairness.json` (shares, queueing delay, take-over) and
//! `target/bench/fairness.csv` (Mbit/s of each flow every 50 ms); `bench/user.py` plots and merges them.
//! Needs root; nothing leaves the two namespaces.
//!
//! `cargo run --release -p pith-datapath --example fairness`

#![allow(unsafe_code)]

#[path = "../tests/support/mod.rs"]
mod support;

use pith_datapath::{DatapathConfig, PortableDatapath, UePool};
use pith_upf::contract::*;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use support::*;

const AMBR: f64 = 10.0;
/// Bytes of each UDP packet with its headers.
const BYTES: usize = 1000;
/// The first port of QoS flows' traffic; that of other traffic is far above.
const QOS_PORT: u16 = 5001;
const REST_PORT: u16 = 6001;
/// Duration of a case, and the time from which it is measured.
const RUN: Duration = Duration::from_secs(6);
const WARM: Duration = Duration::from_secs(1);
/// Interval of the time series.
const BIN: Duration = Duration::from_millis(50);

/// The traffic of a flow.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Traffic {
    /// UDP: rate in Mbit/s; start and end of a pause in seconds, if there is one.
    Udp(f64, Option<(f64, f64)>),
    /// TCP at full speed.
    Tcp,
}

#[derive(Debug, Clone, Copy)]
struct Case {
    name: &'static str,
    /// GBR and MBR of the QoS flow, in Mbit/s.
    qos: Option<(f64, f64)>,
    /// The QoS flow's traffic first, if there is one.
    traffic: &'static [Traffic],
}

/// A packet received by the UE: time, flow, bytes, and delay.
type Arrival = (Duration, usize, usize, Option<Duration>);

const UDP: Traffic = Traffic::Udp(10.0, None);
const CASES: [Case; 6] = [
    Case { name: "GBR 2, MBR 5", qos: Some((2.0, 5.0)), traffic: &[UDP, UDP] },
    Case { name: "GBR 4, MBR 7", qos: Some((4.0, 7.0)), traffic: &[UDP, UDP] },
    Case { name: "GBR 2, MBR 5, TCP against UDP", qos: Some((2.0, 5.0)), traffic: &[Traffic::Tcp, UDP] },
    Case { name: "GBR 4, MBR 7, UDP against TCP", qos: Some((4.0, 7.0)), traffic: &[UDP, Traffic::Tcp] },
    Case {
        name: "GBR 4, MBR 7, stop and start",
        qos: Some((4.0, 7.0)),
        traffic: &[Traffic::Udp(10.0, Some((2.0, 4.0))), UDP],
    },
    Case {
        name: "eight flows",
        qos: None,
        traffic: &[
            Traffic::Udp(0.2, None),
            Traffic::Udp(0.5, None),
            Traffic::Udp(0.8, None),
            Traffic::Udp(1.0, None),
            Traffic::Udp(1.3, None),
            Traffic::Udp(2.0, None),
            Traffic::Udp(3.0, None),
            Traffic::Udp(5.0, None),
        ],
    },
];

fn main() {
    assert!(enter_namespace(), "needs root");
    let (ue, mut upf, modem) = start();
    let (mut csv, mut pairs) = (String::from("case,seconds,flow,mbit\n"), Vec::new());
    let (mut max_min, mut take_over) = (String::new(), String::new());
    for case in CASES {
        upf.install(Arc::new(session_of_case(&case)));
        let arrivals = run_case(&ue, &case);
        let rates = rates(&arrivals, case.traffic.len(), WARM, RUN);
        let p99 = p99(&arrivals);
        println!(
            "{:<32} {}  p99 {p99:.1} ms",
            case.name,
            rates.iter().map(|r| format!("{r:5.2} ")).collect::<String>()
        );
        series(&case, &arrivals, &mut csv);
        match case.qos {
            None => max_min = max_min_json(&case, &rates),
            Some(_) if matches!(case.traffic[0], Traffic::Udp(_, Some(_))) => {
                take_over = take_over_json(&arrivals)
            }
            Some(qos) => pairs.push(pair_json(qos, &case, &rates, p99)),
        }
        thread::sleep(Duration::from_millis(200));
    }
    let folder = PathBuf::from(std::env::var("BENCH_DIR").unwrap_or("target/bench".into()));
    std::fs::create_dir_all(&folder).unwrap();
    let json =
        format!("{{\"fairness\":[{}],\"max_min\":{max_min},\"take_over\":{take_over}}}\n", pairs.join(","));
    std::fs::write(folder.join("user-fairness.json"), json).unwrap();
    std::fs::write(folder.join("fairness.csv"), csv).unwrap();
    ue.run(move || drop(modem));
}

/// The UPF in this namespace, and a host with a UE and its modem.
fn start() -> (Host, PortableDatapath, PortableDatapath) {
    let ue = Host::start();
    run(&format!("ip link add n3 type veth peer name eth0 netns {}", ue.thread));
    run(&format!("ip addr add {UPF}/24 dev n3"));
    run("ip link set n3 up");
    let config = DatapathConfig {
        n3_addresses: vec![UPF.into()],
        boundary: permitting(&["10.45.0.1"]),
        workers: 1,
        ..DatapathConfig::default()
    };
    let upf = PortableDatapath::start(config).unwrap();
    let modem = ue.run(start_modem);
    (ue, upf, modem)
}

fn start_modem() -> PortableDatapath {
    run(&format!("ip addr add {GNB}/24 dev eth0"));
    run("ip link set eth0 up");
    let config = DatapathConfig {
        n3_addresses: vec![GNB.into()],
        tun: "modem".into(),
        pools: vec![UePool { gateway: IpAddr::V4(UE), prefix: 32 }],
        boundary: permitting(&["10.45.0.2"]),
        workers: 1,
        ..DatapathConfig::default()
    };
    let mut modem = PortableDatapath::start(config).unwrap();
    run(&format!("ip route add {GATEWAY}/32 dev modem"));
    let mut session = session_of(1, GATEWAY, GNB_TEID, TEID);
    session.fars[1].action = Action::Forward(Destination::Tunnel(tunnel_to(UPF, TEID)));
    session.qers[1].mbr = None;
    modem.install(Arc::new(session));
    modem
}

fn session_of_case(case: &Case) -> Session {
    let rates = |mbit: f64| Some(Rates { uplink: 1_000_000_000, downlink: (mbit * 1e6) as u64 });
    let mut session = session();
    session.fars[1].action = Action::Forward(Destination::Tunnel(tunnel_to(GNB, GNB_TEID)));
    session.qers[1].mbr = rates(AMBR);
    if let Some((gbr, mbr)) = case.qos {
        let own = Qer {
            id: QerId(3),
            gates: Gates::OPEN,
            mbr: rates(mbr),
            gbr: rates(gbr),
            qfi: Some(Qfi(2)),
            rqi: false,
        };
        session.qers.push(own);
        let text = format!("permit out ip from any {QOS_PORT} to assigned");
        let filters = text.parse::<FlowDescription>().unwrap().filters;
        let pdr = Pdr { id: PdrId(3), precedence: 1, filters, ..session.pdrs[1].clone() };
        session.pdrs.push(Pdr { qers: vec![QerId(3), QerId(2)], ..pdr });
    }
    session
}

/// The data network's port of a flow, which identifies the QoS flow.
fn port_of(case: &Case, flow: usize) -> u16 {
    if case.qos.is_some() && flow == 0 { QOS_PORT } else { REST_PORT + flow as u16 }
}

/// Runs all flows of a case concurrently.
fn run_case(ue: &Host, case: &Case) -> Vec<Arrival> {
    let begin = Instant::now() + Duration::from_millis(300);
    let (tell, told) = mpsc::channel();
    let mut sources = Vec::new();
    for (flow, traffic) in case.traffic.iter().copied().enumerate() {
        let (port, tell) = (port_of(case, flow), tell.clone());
        match traffic {
            Traffic::Udp(mbit, pause) => {
                let socket = UdpSocket::bind((GATEWAY, port)).unwrap();
                ue.run(move || receive_udp(port, flow, begin, tell));
                sources.push(thread::spawn(move || send_udp(&socket, port, mbit, pause, begin)));
            }
            Traffic::Tcp => {
                let listener = TcpListener::bind((GATEWAY, port)).unwrap();
                ue.run(move || receive_tcp(port, flow, begin, tell));
                sources.push(thread::spawn(move || send_tcp(&listener, begin)));
            }
        }
    }
    drop(tell);
    sources.into_iter().for_each(|source| source.join().unwrap());
    told.into_iter().flatten().collect()
}

fn send_udp(socket: &UdpSocket, port: u16, mbit: f64, pause: Option<(f64, f64)>, begin: Instant) {
    thread::sleep(begin - Instant::now());
    let (gap, mut due) = (BYTES as f64 * 8e-6 / mbit, 0.0);
    let mut payload = [0; BYTES - 28];
    while due < RUN.as_secs_f64() {
        let now = begin.elapsed().as_secs_f64();
        if due > now {
            thread::sleep(Duration::from_secs_f64((due - now).max(3e-4)));
            continue;
        }
        if !pause.is_some_and(|(from, to)| (from..to).contains(&due)) {
            payload[..8].copy_from_slice(&(begin.elapsed().as_nanos() as u64).to_be_bytes());
            socket.send_to(&payload, (UE, port)).unwrap();
        }
        due += gap;
    }
}

fn receive_udp(port: u16, flow: usize, begin: Instant, tell: mpsc::Sender<Vec<Arrival>>) {
    let socket = UdpSocket::bind((UE, port)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    thread::spawn(move || {
        let (mut arrivals, mut buffer) = (Vec::new(), [0; 2048]);
        while begin.elapsed() < RUN + Duration::from_millis(100) || Instant::now() < begin {
            let Ok(length) = socket.recv(&mut buffer) else { continue };
            let at = begin.elapsed();
            let sent = Duration::from_nanos(u64::from_be_bytes(buffer[..8].try_into().unwrap()));
            arrivals.push((at, flow, length + 28, at.checked_sub(sent)));
        }
        tell.send(arrivals).unwrap();
    });
}

fn send_tcp(listener: &TcpListener, begin: Instant) {
    let (mut stream, _) = listener.accept().unwrap();
    thread::sleep(begin.saturating_duration_since(Instant::now()));
    stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    while begin.elapsed() < RUN {
        let _ = stream.write(&[0; 16_384]);
    }
}

/// Counts received bytes including the headers of each segment.
fn receive_tcp(port: u16, flow: usize, begin: Instant, tell: mpsc::Sender<Vec<Arrival>>) {
    let mut stream = TcpStream::connect((GATEWAY, port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    thread::spawn(move || {
        let (mut arrivals, mut buffer) = (Vec::new(), [0; 16_384]);
        while begin.elapsed() < RUN || Instant::now() < begin {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => {
                    arrivals.push((begin.elapsed(), flow, length + length.div_ceil(1348) * 52, None))
                }
                Err(_) => continue,
            }
        }
        tell.send(arrivals).unwrap();
    });
}

/// Mbit/s of each flow between two times.
fn rates(arrivals: &[Arrival], flows: usize, from: Duration, to: Duration) -> Vec<f64> {
    let mut bytes = vec![0; flows];
    for (_, flow, length, _) in arrivals.iter().filter(|arrival| (from..to).contains(&arrival.0)) {
        bytes[*flow] += length;
    }
    bytes.iter().map(|bytes| *bytes as f64 * 8e-6 / (to - from).as_secs_f64()).collect()
}

/// The 99th percentile of the delay of UDP packets, in milliseconds.
fn p99(arrivals: &[Arrival]) -> f64 {
    let mut delays: Vec<_> =
        arrivals.iter().filter(|arrival| arrival.0 > WARM).filter_map(|arrival| arrival.3).collect();
    delays.sort_unstable();
    delays.get(delays.len().saturating_sub(1) * 99 / 100).map_or(0.0, |delay| delay.as_secs_f64() * 1e3)
}

fn series(case: &Case, arrivals: &[Arrival], csv: &mut String) {
    let bins = (RUN.as_millis() / BIN.as_millis()) as u32;
    for bin in 0..bins {
        let rates = rates(arrivals, case.traffic.len(), BIN * bin, BIN * (bin + 1));
        for (flow, rate) in rates.iter().enumerate() {
            let seconds = (BIN * bin).as_secs_f64();
            writeln!(csv, "\"{}\",{seconds:.2},{},{rate:.3}", case.name, flow_name(case, flow)).unwrap();
        }
    }
}

fn flow_name(case: &Case, flow: usize) -> String {
    match (case.qos, case.traffic[flow]) {
        (None, Traffic::Udp(mbit, _)) => format!("{mbit} offered"),
        (_, traffic) => format!("{} {}", if flow == 0 { "QoS" } else { "rest" }, protocol(traffic)),
    }
}

fn protocol(traffic: Traffic) -> &'static str {
    if traffic == Traffic::Tcp { "TCP" } else { "UDP" }
}

fn pair_json((gbr, mbr): (f64, f64), case: &Case, rates: &[f64], p99: f64) -> String {
    let [qos, rest] = [0, 1].map(|flow| (rates[flow], protocol(case.traffic[flow])));
    format!(
        "{{\"ambr\":{AMBR},\"gbr\":{gbr},\"mbr\":{mbr},\"qos\":{:.3},\"rest\":{:.3},\"qos_traffic\":\"{}\",\"rest_traffic\":\"{}\",\"p99_ms\":{p99:.1}}}",
        qos.0, rest.0, qos.1, rest.1
    )
}

/// The shares of many flows beside the exact solution, and the largest deviation.
fn max_min_json(case: &Case, rates: &[f64]) -> String {
    let offered: Vec<f64> = case
        .traffic
        .iter()
        .map(|traffic| if let Traffic::Udp(mbit, _) = traffic { *mbit } else { AMBR })
        .collect();
    let exact = max_min(AMBR, &offered);
    let off = rates.iter().zip(&exact).map(|(rate, exact)| (rate / exact - 1.0).abs() * 100.0);
    format!(
        "{{\"ambr\":{AMBR},\"offered\":{offered:?},\"got\":{rates:.3?},\"exact\":{exact:.3?},\"worst_percent\":{:.2}}}",
        off.fold(0.0, f64::max)
    )
}

fn max_min(capacity: f64, offered: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..offered.len()).collect();
    order.sort_by(|a, b| offered[*a].total_cmp(&offered[*b]));
    let (mut left, mut shares) = (capacity, vec![0.0; offered.len()]);
    for (done, at) in order.iter().enumerate() {
        shares[*at] = offered[*at].min(left / (offered.len() - done) as f64);
        left -= shares[*at];
    }
    shares
}

/// Milliseconds until the rest has nine tenths of the rate that the QoS flow releases when it stops at 2 s,
/// and until the QoS flow has nine tenths of its share when it starts again at 4 s; in windows of 20 ms.
fn take_over_json(arrivals: &[Arrival]) -> String {
    let reached = |flow: usize, from: f64, mbit: f64| {
        let window = Duration::from_millis(20);
        let windows = (0..200).map(|step| Duration::from_secs_f64(from) + Duration::from_millis(5) * step);
        let first =
            windows.into_iter().find(|start| rates(arrivals, 2, *start, *start + window)[flow] >= mbit * 0.9);
        first.map_or(f64::NAN, |start| ((start + window).as_secs_f64() - from) * 1e3)
    };
    let (stop, start) = (reached(1, 2.0, 10.0), reached(0, 4.0, 7.0));
    println!("{:<32} {stop:.0} ms after a stop, {start:.0} ms after a start", "  taken over");
    format!("{{\"after_stop_ms\":{stop:.0},\"after_start_ms\":{start:.0}}}")
}
