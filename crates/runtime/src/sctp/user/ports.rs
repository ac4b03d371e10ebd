//! Local SCTP ports of outgoing associations, unique among all processes of a network namespace.
//!
//! Processes that share an address see each other's raw packets, so each takes ports of its own: blocks of
//! [`BLOCK`] out of the dynamic range, locked by an abstract Unix socket, which the system frees with the process.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};
use std::time::{Duration, Instant};

use super::path::PathId;

/// Ports that are locked together; a power of two, so that a mask tells whether a port is in a block.
pub(super) const BLOCK: u16 = 256;
/// Dynamic ports (RFC 6335 clause 6): 49152 to 65535.
const FIRST_BLOCK: u16 = 49_152 / BLOCK;
const BLOCKS: u16 = u16::MAX / BLOCK - FIRST_BLOCK + 1;
/// How long a port answers late packets of its last association before it may serve another.
const LINGER: Duration = Duration::from_secs(5);

/// What a port is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClientPort {
    pub path: PathId,
    /// The peer's SCTP port.
    pub remote_port: u16,
}

/// A lock on a name in this network namespace, freed with the value or the process.
#[derive(Debug)]
pub(super) struct NameLock {
    _socket: UnixDatagram,
}

impl NameLock {
    /// Fails with `AddrInUse` while somebody holds it.
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
    /// Where the search for a free block begins: random, so that a restarted process takes other ports.
    origin: u16,
}

impl ClientPorts {
    pub fn new() -> Self {
        let origin = getrandom::u32().map_or(0, |r| (r % u32::from(BLOCKS)) as u16);
        Self { blocks: Vec::new(), in_use: HashMap::new(), lingering: VecDeque::new(), next: 0, origin }
    }

    /// Takes a free port; `None` when there is none. The flag says whether a block came in for it.
    pub fn take(&mut self, user: ClientPort) -> Option<(u16, bool)> {
        let (port, grown) = match self.free_port() {
            Some(port) => (port, false),
            None => (self.grow()?, true),
        };
        self.in_use.insert(port, user);
        Some((port, grown))
    }

    /// Goes round the blocks, so that a port rests as long as possible.
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

    /// Who uses a port.
    pub fn user(&self, port: u16) -> Option<ClientPort> {
        self.in_use.get(&port).copied()
    }

    /// Gives a port back after it has lingered.
    pub fn release(&mut self, port: u16, now: Instant) {
        self.lingering.push_back((now + LINGER, port));
    }

    /// Frees the next port that has lingered long enough, and says who used it.
    pub fn expire(&mut self, now: Instant) -> Option<ClientPort> {
        let (_, port) = self.lingering.pop_front_if(|(until, _)| *until <= now)?;
        self.in_use.remove(&port)
    }

    /// First ports of the blocks that are locked.
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
    fn a_released_port_rests_before_it_serves_again() {
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
