//! The peer process: a server that echoes and counts messages and executes orders.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pith_runtime::sctp::{AssociationId, FormerPeer, SctpConfig, SctpEvent, SctpMode};

use crate::node::Node;

/// Messages with this PPID (that of NGAP) are echoed.
pub const ECHO: u32 = 60;
/// Messages with this PPID are counted.
pub const COUNT: u32 = 1;
/// Messages with this PPID are orders to the server.
pub const ORDER: u32 = 2;

/// Environment variable that makes this program a peer: mode and addresses to listen on.
const ROLE: &str = "PITH_SCTP_PEER";
/// Environment variable with an association that the peer aborts when it has started.
const FORMER: &str = "PITH_SCTP_FORMER";

/// A peer process; dropping the value kills it.
pub struct Peer(Child);

impl Peer {
    pub fn start(mode: SctpMode, addresses: &[SocketAddr]) -> Self {
        Self::start_after(mode, addresses, None)
    }

    /// Starts a peer that aborts an association of a former one.
    pub fn start_after(mode: SctpMode, addresses: &[SocketAddr], former: Option<&FormerPeer>) -> Self {
        let listed: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
        let mut child = Command::new(std::env::current_exe().expect("own path"))
            .args(["--exact", "peer::run", "--ignored", "--nocapture"])
            .env(ROLE, format!("{mode} {}", listed.join(" ")))
            .env(FORMER, former.map(FormerPeer::to_string).unwrap_or_default())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a peer process");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let ready = output.lines().map_while(Result::ok).any(|line| line.ends_with("ready"));
        assert!(ready, "the peer ended before it was ready");
        Self(child)
    }

    /// Kills the process without a shutdown of its associations.
    pub fn kill(mut self) {
        self.0.kill().expect("a kill");
    }

    /// Resident memory of the process, in kB.
    pub fn resident_kb(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).expect("its status");
        let line = status.lines().find(|l| l.starts_with("VmRSS:")).expect("VmRSS");
        line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).expect("a number")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Not a test: the main program of a peer.
#[test]
#[ignore = "started by the tests as their peer"]
fn run() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let mut words = role.split(' ');
    let mode = words.next().and_then(|m| m.parse().ok()).expect("a mode");
    let mut server = Server { node: Node::new(mode, SctpConfig::default()), counted: 0, paused: None };
    for address in words {
        server.node.transport.listen(address.parse().expect("an address")).expect("a listener");
    }
    if let Some(former) = std::env::var(FORMER).ok().and_then(|text| text.parse().ok()) {
        server.node.transport.abort_former(&former);
    }
    println!("ready");
    std::io::stdout().flush().expect("an output");
    loop {
        server.node.turn(Instant::now() + Duration::from_secs(1));
        for event in std::mem::take(&mut server.node.events) {
            if let SctpEvent::Message { association, stream, ppid, payload } = event {
                server.obey(association, stream, ppid, &payload);
            }
        }
        server.node.transport.flush();
    }
}

struct Server {
    node: Node,
    /// Bytes of counted messages.
    counted: usize,
    /// The paused association, until another association sends 'resume'.
    paused: Option<AssociationId>,
}

impl Server {
    fn obey(&mut self, association: AssociationId, stream: u16, ppid: u32, payload: &[u8]) {
        let transport = &mut self.node.transport;
        match (ppid, payload) {
            (COUNT, bytes) => self.counted += bytes.len(),
            (ORDER, b"count") => {
                self.node.send(association, stream, ORDER, self.counted.to_string().as_bytes());
            }
            (ORDER, b"pause") => {
                transport.pause_reading(association);
                self.paused = Some(association);
            }
            (ORDER, b"resume") => {
                if let Some(paused) = self.paused.take() {
                    transport.resume_reading(paused);
                }
            }
            (ORDER, b"former") => {
                let former = transport.former_peer(association).map(|former| former.to_string());
                self.node.send(
                    association,
                    stream,
                    ORDER,
                    former.unwrap_or_else(|| "none".into()).as_bytes(),
                );
            }
            (ORDER, b"abort") => transport.abort(association),
            (ORDER, b"shutdown") => transport.shutdown(association),
            (ORDER, _) => {}
            (_, payload) => self.node.send(association, stream, ppid, payload),
        }
    }
}
