//! Measures user-space SCTP between two processes on loopback: `cargo run --release --example sctp_echo`.
//!
//! The program starts itself as the server (`sctp_echo server MODE ADDRESS`), which echoes messages on stream
//! 0 and discards messages on other streams. `sctp_echo client MODE ADDRESS` measures against a server
//! elsewhere.

use std::env;
use std::net::SocketAddr;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use pith_runtime::sctp::{
    self, AssociationId, NGAP_PPID, SctpConfig, SctpEvent, SctpMode, SctpTransport, SendError,
};

const MESSAGE: [u8; 100] = [0x5a; 100];
const ROUND_TRIPS: usize = 20_000;
const ONE_WAY: usize = 300_000;
const ASSOCIATIONS: usize = 1_000;

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["server", mode, address] => serve(mode.parse()?, address.parse()?),
        ["client", mode, address] => measure(mode, address.parse()?, None),
        [] => ["raw", "udp:9899"].iter().try_for_each(|mode| measure_here(mode)),
        [mode] => measure_here(mode),
        _ => anyhow::bail!("usage: sctp_echo [MODE] | sctp_echo server|client MODE ADDRESS:PORT"),
    }
}

/// Waits until the transport is readable or its next deadline, then processes it.
fn turn(transport: &mut dyn SctpTransport, events: &mut Vec<SctpEvent>) {
    let deadline = transport.next_deadline().unwrap_or_else(|| Instant::now() + Duration::from_secs(1));
    let timeout = deadline.saturating_duration_since(Instant::now());
    wait_readable(transport, timeout);
    transport.process(Instant::now(), events);
}

#[allow(unsafe_code)]
fn wait_readable(transport: &dyn SctpTransport, timeout: Duration) {
    use std::os::fd::AsRawFd;
    let mut poll = libc::pollfd { fd: transport.poll_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let timeout = libc::timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
    // SAFETY: one entry and a timeout, both of which outlive the call.
    unsafe { libc::ppoll(&raw mut poll, 1, &raw const timeout, std::ptr::null()) };
}

fn serve(mode: SctpMode, address: SocketAddr) -> anyhow::Result<()> {
    let mut transport = sctp::open(mode, SctpConfig::default())?;
    transport.listen(address)?;
    let mut events = Vec::new();
    loop {
        turn(&mut *transport, &mut events);
        for event in events.drain(..) {
            if let SctpEvent::Message { association, stream: 0, ppid, payload } = event {
                let _ = transport.send(association, 0, ppid, &payload);
            }
        }
        transport.flush();
    }
}

/// A server process; dropping the value kills it.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Measures against a server process that this program starts.
fn measure_here(mode: &str) -> anyhow::Result<()> {
    let address: SocketAddr = "127.0.0.1:38412".parse()?;
    let server = Command::new(env::current_exe()?).args(["server", mode, &address.to_string()]).spawn()?;
    let server = Server(server);
    std::thread::sleep(Duration::from_millis(200));
    measure(mode, address, Some(server.0.id()))
}

/// Measures against the server at `address`. If the server runs on this host, its CPU time is included.
fn measure(mode: &str, address: SocketAddr, server: Option<u32>) -> anyhow::Result<()> {
    let mut client = Client::open(mode.parse()?, address)?;
    println!("{}", client.transport.description());
    client.round_trips(server)?;
    client.one_way(server)?;
    client.many(address)
}

struct Client {
    transport: Box<dyn SctpTransport>,
    association: AssociationId,
    events: Vec<SctpEvent>,
}

impl Client {
    fn open(mode: SctpMode, address: SocketAddr) -> anyhow::Result<Self> {
        let mut transport = sctp::open(mode, SctpConfig::default())?;
        let association = transport.connect(None, address)?;
        let mut client = Self { transport, association, events: Vec::new() };
        client.until(|event| matches!(event, SctpEvent::Up { .. }))?;
        Ok(client)
    }

    fn until(&mut self, wanted: impl Fn(&SctpEvent) -> bool) -> anyhow::Result<SctpEvent> {
        loop {
            if let Some(at) = self.events.iter().position(&wanted) {
                return Ok(self.events.drain(..=at).next_back().expect("the event just found"));
            }
            if let Some(SctpEvent::Down { reason, .. }) =
                self.events.iter().find(|e| matches!(e, SctpEvent::Down { .. }))
            {
                anyhow::bail!("association down: {reason}");
            }
            turn(&mut *self.transport, &mut self.events);
        }
    }

    fn echo(&mut self) -> anyhow::Result<()> {
        self.transport.send(self.association, 0, NGAP_PPID, &MESSAGE)?;
        self.transport.flush();
        self.until(|event| matches!(event, SctpEvent::Message { .. })).map(drop)
    }

    fn round_trips(&mut self, server: Option<u32>) -> anyhow::Result<()> {
        (0..1000).try_for_each(|_| self.echo())?;
        let mut times = Vec::with_capacity(ROUND_TRIPS);
        let cpu = Cpu::now(server);
        for _ in 0..ROUND_TRIPS {
            let begin = Instant::now();
            self.echo()?;
            times.push(begin.elapsed());
        }
        let cpu = cpu.since(server) / ROUND_TRIPS as f64;
        times.sort();
        let at = |share: f64| times[(share * (times.len() - 1) as f64) as usize].as_secs_f64() * 1e6;
        println!("  round trip of 100 B: p50 {:.1} us, p99 {:.1} us, CPU {:.1} us", at(0.5), at(0.99), cpu);
        Ok(())
    }

    fn one_way(&mut self, server: Option<u32>) -> anyhow::Result<()> {
        let begin = Instant::now();
        let cpu = Cpu::now(server);
        for n in 0..ONE_WAY {
            while self.transport.send(self.association, 1, NGAP_PPID, &MESSAGE)
                == Err(SendError::Backpressure)
            {
                self.until(|event| matches!(event, SctpEvent::SendReady { .. }))?;
            }
            if n % 32 == 31 {
                self.transport.process(Instant::now(), &mut self.events);
            }
        }
        self.echo()?;
        let seconds = begin.elapsed().as_secs_f64();
        let cpu = cpu.since(server) / ONE_WAY as f64;
        println!("  one way, 100 B: {:.0} messages/s, CPU {cpu:.2} us each", ONE_WAY as f64 / seconds);
        Ok(())
    }

    fn many(&mut self, address: SocketAddr) -> anyhow::Result<()> {
        let begin = Instant::now();
        for _ in 0..ASSOCIATIONS {
            self.transport.connect(None, address)?;
        }
        for _ in 0..ASSOCIATIONS {
            self.until(|event| matches!(event, SctpEvent::Up { .. }))?;
        }
        println!("  {ASSOCIATIONS} associations up in {:.0} ms", begin.elapsed().as_secs_f64() * 1e3);
        Ok(())
    }
}

/// CPU time of this process, and of another process on this host, in microseconds.
struct Cpu(f64);

impl Cpu {
    fn now(other: Option<u32>) -> Self {
        Self(scheduled("self") + other.map_or(0.0, |pid| scheduled(&pid.to_string())))
    }

    fn since(&self, other: Option<u32>) -> f64 {
        Self::now(other).0 - self.0
    }
}

/// A process's CPU time according to the scheduler.
fn scheduled(process: &str) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/schedstat")).unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e3
}
