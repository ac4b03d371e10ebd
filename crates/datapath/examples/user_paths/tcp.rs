//! TCP from and to a UE whose modem is a second datapath, facing the first. The UE and its modem use one CPU,
//! the UPF and the server the other.

use super::cpu::{pin, threads_of, used_by_thread};
use super::net::{Net, RADIO, SERVER, UPF_CPU, UPF_N3, WORKER, start_portable, ue};
use super::support::{self, run as command};
use pith_datapath::{DatapathConfig, PortableDatapath, UePool};
use pith_upf::contract::*;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const RUN: Duration = Duration::from_secs(2);
const RUNS: usize = 2;

/// A direction's throughput, and the CPU of the UPF.
struct Run {
    gbit: f64,
    /// Share of a core.
    upf: f64,
    modem: f64,
}

/// Both directions, as JSON.
pub fn run() -> String {
    let net = Net::set_up();
    net.server.run(|| pin(UPF_CPU));
    let datapath = net.upf.run(|| start_portable(1));
    let [upf] = workers();
    let modem_plane = net.radio.run(start_modem);
    let all: [u32; 2] = workers();
    let modem = all[usize::from(all[0] == upf)];
    let measured = |(name, to_ue)| {
        let runs = (0..RUNS).map(|_| measure(&net, [upf, modem], to_ue));
        let best = runs.max_by(|a, b| a.gbit.total_cmp(&b.gbit)).expect("there are runs");
        let (upf, modem) = (best.upf * 100.0, best.modem * 100.0);
        println!("TCP {name}: {:.2} Gbit/s, UPF {upf:.0}% of a core, the UE's modem {modem:.0}%", best.gbit);
        format!("{{\"way\":\"{name}\",\"gbit\":{:.3},\"core\":{:.3}}}", best.gbit, best.upf)
    };
    let results = [("uplink", false), ("downlink", true)].map(measured).join(",");
    net.radio.run(move || drop(modem_plane));
    net.upf.run(move || drop(datapath));
    format!("[{results}]")
}

/// The datapaths' threads, once all are running.
fn workers<const COUNT: usize>() -> [u32; COUNT] {
    let mut found = None;
    support::wait_for("workers", || {
        found = threads_of(WORKER).try_into().ok();
        found.is_some()
    });
    found.expect("just found")
}

fn measure(net: &Net, workers: [u32; 2], to_ue: bool) -> Run {
    let before = workers.map(used_by_thread);
    let served = net.server.begin(move || serve(to_ue));
    thread::sleep(Duration::from_millis(50));
    let own = net.radio.run(move || connect(to_ue));
    let bytes = own.max(served.recv().unwrap());
    let seconds = RUN.as_secs_f64();
    let core = |at: usize| (used_by_thread(workers[at]) - before[at]).as_secs_f64() / seconds;
    Run { gbit: bytes as f64 * 8.0 / seconds / 1e9, upf: core(0), modem: core(1) }
}

/// A datapath facing the other way: its "UE" is the server, its data network the UE's own stack.
fn start_modem() -> PortableDatapath {
    let config = DatapathConfig {
        n3_addresses: vec![RADIO.into()],
        tun: "modem".into(),
        pools: vec![UePool { gateway: IpAddr::V4(ue(0)), prefix: 32 }],
        boundary: support::permitting(&["10.45.0.0/16"]),
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

/// Writes or reads for the duration of the run; returns the bytes read.
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
