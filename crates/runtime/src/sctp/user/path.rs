//! Paths: pairs of local and remote addresses, with ids for usrsctp.
//!
//! With `AF_CONN`, usrsctp identifies a peer by a pointer. A [`PathId`] is this pointer: a number that is
//! never dereferenced and never reused, so that references of usrsctp to a removed path are harmless.

use std::collections::HashMap;
use std::ffi::c_void;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::ptr::without_provenance_mut;
use std::time::{Duration, Instant};

use super::packet::Ports;

/// Time for which a path without associations is kept: from INIT to COOKIE ECHO, and for late packets.
const IDLE_LIFETIME: Duration = Duration::from_secs(5);
/// Addresses that a path keeps for associations whose peer has moved, also of those that have ended. One that is forgotten is noted again with the
/// peer's next packet.
const MAX_MOVED: usize = 64;
/// Largest number of paths; packets from further addresses are ignored. Limits the cost of spoofed addresses.
const MAX_PATHS: usize = 65_536;

/// Identifies a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PathId(NonZeroUsize);

impl PathId {
    /// The id as usrsctp's address.
    pub fn as_addr(self) -> *mut c_void {
        without_provenance_mut(self.0.get())
    }

    /// The id of usrsctp's address.
    pub fn from_addr(addr: *mut c_void) -> Option<Self> {
        NonZeroUsize::new(addr.addr()).map(Self)
    }

    /// The first id.
    pub fn first() -> Self {
        Self(NonZeroUsize::MIN)
    }
}

/// Both ends of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PathAddress {
    /// Index of the link.
    pub link: usize,
    /// Own address.
    pub local: IpAddr,
    /// The peer's address, with its UDP port if encapsulated (else 0).
    pub remote: SocketAddr,
}

/// A path and its use.
#[derive(Debug)]
pub(super) struct Path {
    pub address: PathAddress,
    /// Addresses of associations whose peer has moved to another UDP port.
    moved: Vec<(Ports, PathAddress)>,
    /// Number of associations and reserved ports on the path.
    users: usize,
    /// Whether the path is registered with usrsctp as an address of this host.
    pub registered: bool,
    last_seen: Instant,
}

/// All paths, by id and by address.
pub(super) struct Paths {
    by_id: HashMap<PathId, Path>,
    by_address: HashMap<PathAddress, PathId>,
    next: PathId,
    swept: Instant,
}

impl Paths {
    pub fn new(now: Instant) -> Self {
        Self { by_id: HashMap::new(), by_address: HashMap::new(), next: PathId::first(), swept: now }
    }

    pub fn find(&self, id: PathId) -> Option<&Path> {
        self.by_id.get(&id)
    }

    /// The addresses of an association on a path.
    pub fn address_of(&self, id: PathId, ports: Ports) -> Option<PathAddress> {
        let path = self.by_id.get(&id)?;
        let moved = path.moved.iter().find(|(of, _)| *of == ports);
        Some(moved.map_or(path.address, |(_, address)| *address))
    }

    /// The peer of an association on a path is at another address. Only the path's associations use it from now on:
    /// packets of others that have its address get another path.
    pub fn relocate(&mut self, id: PathId, ports: Ports, address: PathAddress) {
        let Some(path) = self.by_id.get_mut(&id) else { return };
        path.moved.retain(|(of, _)| *of != ports);
        if path.moved.len() == MAX_MOVED {
            path.moved.remove(0);
        }
        path.moved.push((ports, address));
        if self.by_address.get(&path.address) == Some(&id) {
            self.by_address.remove(&path.address);
        }
    }

    /// The id of a known address.
    pub fn id_of(&self, address: &PathAddress) -> Option<PathId> {
        self.by_address.get(address).copied()
    }

    /// The id of an address, known or new; `None` if the table is full or no ids are left.
    pub fn intern(&mut self, address: PathAddress, now: Instant) -> Option<PathId> {
        let id = match self.id_of(&address) {
            Some(id) => id,
            None if self.by_id.len() >= MAX_PATHS => return None,
            None => self.add(address, now)?,
        };
        if let Some(path) = self.by_id.get_mut(&id) {
            path.last_seen = now;
        }
        Some(id)
    }

    fn add(&mut self, address: PathAddress, now: Instant) -> Option<PathId> {
        let id = self.next;
        self.next = PathId(id.0.checked_add(1)?);
        self.by_id
            .insert(id, Path { address, moved: Vec::new(), users: 0, registered: false, last_seen: now });
        self.by_address.insert(address, id);
        Some(id)
    }

    /// Adds a user of a path.
    pub fn hold(&mut self, id: PathId) {
        if let Some(path) = self.by_id.get_mut(&id) {
            path.users += 1;
        }
    }

    /// Removes a user of a path.
    pub fn release(&mut self, id: PathId, now: Instant) {
        if let Some(path) = self.by_id.get_mut(&id) {
            path.users = path.users.saturating_sub(1);
            path.last_seen = now;
        }
    }

    /// Marks a path as registered; `false` if it already was.
    pub fn mark_registered(&mut self, id: PathId) -> bool {
        self.by_id.get_mut(&id).is_some_and(|path| !std::mem::replace(&mut path.registered, true))
    }

    /// Marks an unused path as not registered; `false` if it was not registered, or is in use.
    pub fn unmark_unused(&mut self, id: PathId) -> bool {
        let unused = self.by_id.get_mut(&id).filter(|path| path.users == 0);
        unused.is_some_and(|path| std::mem::replace(&mut path.registered, false))
    }

    /// Removes expired unused paths, and returns those that were registered.
    pub fn sweep(&mut self, now: Instant) -> Vec<PathId> {
        if now.duration_since(self.swept) < IDLE_LIFETIME / 5 {
            return Vec::new();
        }
        self.swept = now;
        let mut registered = Vec::new();
        self.by_id.retain(|&id, path| {
            let keep = path.users > 0 || now.duration_since(path.last_seen) < IDLE_LIFETIME;
            if !keep {
                if self.by_address.get(&path.address) == Some(&id) {
                    self.by_address.remove(&path.address);
                }
                if path.registered {
                    registered.push(id);
                }
            }
            keep
        });
        registered
    }

    /// Number of known paths.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Ids of all registered paths.
    pub fn registered(&self) -> impl Iterator<Item = PathId> + '_ {
        self.by_id.iter().filter(|(_, path)| path.registered).map(|(&id, _)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> PathAddress {
        PathAddress { link: 0, local: [127, 0, 0, 1].into(), remote: ([127, 0, 0, 2], port).into() }
    }

    #[test]
    fn a_known_address_keeps_its_id() {
        let now = Instant::now();
        let mut paths = Paths::new(now);
        let a = paths.intern(address(1), now).unwrap();
        let b = paths.intern(address(2), now).unwrap();
        assert_ne!(a, b);
        assert_eq!(paths.intern(address(1), now), Some(a));
        assert_eq!(paths.find(b).unwrap().address, address(2));
        assert_eq!(PathId::from_addr(a.as_addr()), Some(a));
    }

    #[test]
    fn unused_paths_expire_and_their_ids_are_not_reused() {
        let now = Instant::now();
        let mut paths = Paths::new(now);
        let used = paths.intern(address(1), now).unwrap();
        let idle = paths.intern(address(2), now).unwrap();
        paths.hold(used);
        assert!(paths.mark_registered(idle));
        assert!(!paths.mark_registered(idle));

        let later = now + IDLE_LIFETIME;
        assert_eq!(paths.sweep(later), [idle]);
        assert!(paths.find(idle).is_none());
        assert!(paths.find(used).is_some());
        assert_ne!(paths.intern(address(2), later), Some(idle));

        paths.release(used, later);
        paths.sweep(later + 2 * IDLE_LIFETIME);
        assert_eq!(paths.len(), 0);
    }

    #[test]
    fn a_relocated_association_leaves_others_of_its_path_where_they_are() {
        let now = Instant::now();
        let mut paths = Paths::new(now);
        let (moved, other) = (Ports { local: 9, remote: 1 }, Ports { local: 9, remote: 2 });
        let path = paths.intern(address(1), now).unwrap();
        paths.hold(path);
        paths.relocate(path, moved, address(2));
        assert_eq!(paths.address_of(path, moved), Some(address(2)));
        assert_eq!(paths.address_of(path, other), Some(address(1)));
        paths.relocate(path, moved, address(3));
        assert_eq!(paths.address_of(path, moved), Some(address(3)));
        let stranger = paths.intern(address(1), now).unwrap();
        assert_ne!(stranger, path, "usrsctp would take it for the peer of an association on the path");
        for remote in 10..1000 {
            paths.relocate(path, Ports { local: 9, remote }, address(2));
        }
        assert_eq!(paths.find(path).unwrap().moved.len(), MAX_MOVED);
        paths.release(path, now);
        paths.hold(stranger);
        paths.sweep(now + IDLE_LIFETIME);
        assert!(paths.find(path).is_none());
        assert_eq!(paths.intern(address(1), now), Some(stranger));
    }

    #[test]
    fn above_the_limit_new_addresses_get_no_path() {
        let now = Instant::now();
        let mut paths = Paths::new(now);
        for port in 0..=u16::MAX {
            paths.intern(address(port), now).unwrap();
        }
        let stranger = PathAddress { local: [127, 0, 0, 9].into(), ..address(1) };
        assert_eq!(paths.intern(stranger, now), None);
        assert!(paths.intern(address(7), now).is_some());
        paths.sweep(now + IDLE_LIFETIME);
        assert!(paths.intern(stranger, now).is_some());
    }
}
