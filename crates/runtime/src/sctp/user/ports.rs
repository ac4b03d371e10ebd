//! Local SCTP ports of outgoing associations, unique among all processes of a network namespace.
//!
//! Processes that share an address receive each other's raw packets, so that each needs its own ports: blocks
//! of [`BLOCK`] from the dynamic range, locked by an abstract Unix socket, which the system releases with the
//! process.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};
use std::time::{Duration, Instant};

use super::path::PathId;

/// Ports that are locked together; a power of two, so that a mask decides whether a port is in a block.
pub(super) const BLOCK: u16 = 256;
/// Dynamic ports (RFC 6335 clause 6): 49152 to 65535.
const FIRST_BLOCK: u16 = 49_152 / BLOCK;
const BLOCKS: u16 = u16::MAX / BLOCK - FIRST_BLOCK + 1;
/// Time for which a port answers late packets of its last association before it is reused.
const LINGER: Duration = Duration::from_secs(5);

/// The association of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClientPort {
    pub path: PathId,
    /// The peer's SCTP port.
    pub remote_port: u16,
}

/// A lock on a name in this network namespace, released with the value or the process.
#[derive(Debug)]
pub(super) struct NameLock {
    _socket: UnixDatagram,
}

impl NameLock {
    /// Takes the lock; fails with `AddrInUse` while another process holds it.
    pub fn take(name: &str) -> io::Result<Self> {
        let address = UnixAddress::from_abstract_name(format!("pith-sctp/{name}"))?;
        Ok(Self { _socket: UnixDatagram::bind_addr(&address)? })
    }
}

/// The ports of this process.
pub(super) struct ClientPorts {
    blocks: Vec<(u16, NameLock)>,
    in_use: HashMap<u16, ClientPort>,
    lingering: VecDeque<(Instant, u16)>,
    next: u16,
    /// Start of the search for a free block: random, so that a restarted process uses other ports.
    origin: u16,
}

impl ClientPorts {
    pub fn new() -> Self {
        let origin = getrandom::u32().map_or(0, |r| (r % u32::from(BLOCKS)) as u16);
        Self { blocks: Vec::new(), in_use: HashMap::new(), lingering: VecDeque::new(), next: 0, origin }
    }

    /// Allocates a free port; `None` if there is none. The flag says whether a new block was locked.
    pub fn take(&mut self, user: ClientPort) -> Option<(u16, bool)> {
        let (port, grown) = match self.free_port() {
            Some(port) => (port, false),
            None => (self.grow()?, true),
        };
        self.in_use.insert(port, user);
        Some((port, grown))
    }

    /// Searches the blocks in rotation, so that a port is reused as late as possible.
    fn free_port(&mut self) -> Option<u16> {
        let total = u16::try_from(self.blocks.len()).ok()?.checked_mul(BLOCK)?;
        for step in 0..total {
            let index = (u32::from(self.next) + u32::from(step)) % u32::from(total);
            let (block, _) = self.blocks.get((index / u32::from(BLOCK)) as usize)?;
            let port = block + (index % u32::from(BLOCK)) as u16;
            if !self.in_use.contains_key(&port) {
                self.next = ((index + 1) % u32::from(total)) as u16;
                return Some(port);
            }
        }
        None
    }

    fn grow(&mut self) -> Option<u16> {
        let candidates = (0..BLOCKS).map(|i| (FIRST_BLOCK + (self.origin + i) % BLOCKS) * BLOCK);
        let (base, lock) = candidates
            .filter_map(|base| Some((base, NameLock::take(&format!("block/{base}")).ok()?)))
            .next()?;
        self.next = self.blocks.len() as u16 * BLOCK + 1;
        self.blocks.push((base, lock));
        Some(base)
    }

    /// The association of a port.
    pub fn user(&self, port: u16) -> Option<ClientPort> {
        self.in_use.get(&port).copied()
    }

    /// Releases a port after its lingering time.
    pub fn release(&mut self, port: u16, now: Instant) {
        self.lingering.push_back((now + LINGER, port));
    }

    /// Frees the next port whose lingering time has passed, and returns its association.
    pub fn expire(&mut self, now: Instant) -> Option<ClientPort> {
        let (_, port) = self.lingering.pop_front_if(|(until, _)| *until <= now)?;
        self.in_use.remove(&port)
    }

    /// First ports of the locked blocks.
    pub fn blocks(&self) -> impl Iterator<Item = u16> + '_ {
        self.blocks.iter().map(|(base, _)| *base)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn user() -> ClientPort {
        ClientPort { path: PathId::first(), remote_port: 38412 }
    }

    #[test]
    fn thousands_of_ports_are_distinct_and_owned() {
        let mut ports = ClientPorts::new();
        let taken: HashSet<u16> = (0..1000).map(|_| ports.take(user()).unwrap().0).collect();
        assert_eq!(taken.len(), 1000);
        assert!(taken.iter().all(|&p| p >= 49_152 && ports.user(p) == Some(user())));
        assert_eq!(ports.blocks().count(), 4);
    }

    #[test]
    fn two_owners_never_share_a_port() {
        let (mut a, mut b) = (ClientPorts::new(), ClientPorts::new());
        b.origin = a.origin;
        let of_a: HashSet<u16> = (0..300).map(|_| a.take(user()).unwrap().0).collect();
        assert!((0..300).all(|_| !of_a.contains(&b.take(user()).unwrap().0)));
    }

    #[test]
    fn a_released_port_lingers_before_reuse() {
        let now = Instant::now();
        let mut ports = ClientPorts::new();
        let (port, grown) = ports.take(user()).unwrap();
        assert!(grown);
        ports.release(port, now);
        assert_eq!(ports.expire(now), None);
        assert_eq!(ports.user(port), Some(user()));
        assert_eq!(ports.expire(now + LINGER), Some(user()));
        assert_eq!(ports.user(port), None);
    }
}
