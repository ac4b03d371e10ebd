//! How many sessions a second a UPF process establishes over a real PFCP socket: `pith nf upf` with two workers, in a
//! namespace of its own. The SMF is this program; it keeps a window of requests unanswered.

use super::smf::{Requests, Smf};
use super::support::enter_namespace;
use super::support::run as command;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const SMF: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 4);
const UPF: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 7);
const PFCP_PORT: u16 = 8805;
/// Sessions of a run.
const SESSIONS: u32 = 10_000;
/// Requests without an answer at a time; PFCP has no flow control of its own.
const WINDOWS: [usize; 2] = [1, 64];
const RUNS: usize = 3;

/// Sessions a second by window, each the median of its runs, as JSON.
pub fn run() -> String {
    let binary = binary();
    if !binary.exists() {
        println!("socket: {} is missing: run 'make build'; skipped", binary.display());
        return "[]".into();
    }
    let rows: Vec<_> = WINDOWS.into_iter().map(|window| row(&binary, window)).collect();
    format!("[{}]", rows.join(","))
}

/// The release build beside this example.
fn binary() -> PathBuf {
    let example = std::env::current_exe().unwrap();
    example.ancestors().nth(2).expect("target/release/examples/user_paths").join("pith")
}

fn row(binary: &std::path::Path, window: usize) -> String {
    let mut runs: Vec<_> = (0..RUNS)
        .map(|_| {
            let binary = binary.to_owned();
            thread::spawn(move || establish(&binary, window)).join().unwrap()
        })
        .collect();
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let [(least, _), (rate, cpu), (most, _)] = runs[..] else { unreachable!("three runs") };
    println!(
        "PFCP over a socket, {window} unanswered: {rate:.0} sessions a second ({least:.0} to {most:.0}), {cpu:.1} µs of the UPF's CPU each"
    );
    format!(
        "{{\"window\":{window},\"sessions\":{SESSIONS},\"per_second\":{rate:.0},\"least\":{least:.0},\"most\":{most:.0},\"cpu_us\":{cpu:.2}}}"
    )
}

/// Sessions a second, and microseconds of the UPF's CPU for each.
fn establish(binary: &std::path::Path, window: usize) -> (f64, f64) {
    assert!(enter_namespace(), "needs root");
    command("ip link set lo up");
    let upf = Upf::start(binary);
    let socket = UdpSocket::bind((SMF, PFCP_PORT)).unwrap();
    socket.connect((UPF, PFCP_PORT)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut requests = Requests::of(SMF);
    associate(&socket, &mut requests);
    let first = Ipv4Addr::new(10, 45, 1, 0).to_bits();
    let octets: Vec<_> = (0..SESSIONS)
        .map(|at| requests.establishment(Ipv4Addr::from_bits(first + at), 0x2_0000 + at))
        .collect();
    let (begin, cpu) = (Instant::now(), upf.cpu());
    let (mut sent, mut answered, mut buffer) = (0, 0, [0; 2048]);
    while answered < octets.len() {
        while sent < octets.len() && sent - answered < window {
            socket.send(&octets[sent]).unwrap();
            sent += 1;
        }
        let length = socket.recv(&mut buffer).expect("an answer to each request");
        Smf::accepted(&buffer[..length]);
        answered += 1;
    }
    let (taken, cpu) = (begin.elapsed(), upf.cpu() - cpu);
    let count = f64::from(SESSIONS);
    (count / taken.as_secs_f64(), cpu.as_secs_f64() * 1e6 / count)
}

fn associate(socket: &UdpSocket, requests: &mut Requests) {
    let mut buffer = [0; 2048];
    for _ in 0..100 {
        // Until the UPF listens, the reply is ICMP or none.
        if socket.send(&requests.association()).is_ok() && socket.recv(&mut buffer).is_ok() {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("the UPF does not answer");
}

struct Upf(Child);

impl Upf {
    fn start(binary: &std::path::Path) -> Self {
        let mut command = Command::new(binary);
        command.args([
            "nf",
            "upf",
            "--set",
            "upf.workers=2",
            "--set",
            "n4.heartbeat=60s",
            "--set",
            "store.path=memory",
        ]);
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// CPU of all its threads so far.
    fn cpu(&self) -> Duration {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.0.id())).unwrap();
        let nanoseconds = tasks.filter_map(|task| {
            let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanoseconds.sum())
    }
}

impl Drop for Upf {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
