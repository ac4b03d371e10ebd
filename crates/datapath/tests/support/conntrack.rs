//! The kernel's table of connections, as /proc shows it for the calling thread's namespace.

use std::collections::HashMap;
use std::net::Ipv4Addr;

pub const ICMP: u8 = 1;
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;

/// A connection as its UE has it. For ICMP, the UE's port is the identifier, and the remote one the code, which is
/// 0 unless the UE is odd: the kernel regards an answer with another code as none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Connection {
    pub protocol: u8,
    pub ue: (Ipv4Addr, u16),
    pub remote: (Ipv4Addr, u16),
}

/// The public end of each connection; none without connection tracking.
pub fn public_ends() -> HashMap<Connection, (Ipv4Addr, u16)> {
    let text = std::fs::read_to_string("/proc/thread-self/net/nf_conntrack").unwrap_or_default();
    text.lines().filter_map(read).collect()
}

/// "ipv4 2 udp 17 29 src=10.45.1.1 dst=198.51.100.1 sport=5000 dport=7000 src=198.51.100.1 dst=172.17.0.1 sport=7000 …".
fn read(line: &str) -> Option<(Connection, (Ipv4Addr, u16))> {
    let protocol = line.split_whitespace().nth(3)?.parse().ok()?;
    let nth =
        |name: &str, at: usize| line.split_whitespace().filter_map(|word| word.strip_prefix(name)).nth(at);
    let address = |name, at| nth(name, at)?.parse().ok();
    let port = |name, at| nth(name, at)?.parse().ok();
    let (from, to, public) = match protocol {
        ICMP => (port("id=", 0)?, port("code=", 0)?, port("id=", 1)?),
        _ => (port("sport=", 0)?, port("dport=", 0)?, port("dport=", 1)?),
    };
    let connection =
        Connection { protocol, ue: (address("src=", 0)?, from), remote: (address("dst=", 0)?, to) };
    Some((connection, (address("dst=", 1)?, public)))
}
