//! Paths: the pairs of addresses that packets travel between, under names that usrsctp can hold.
//!
//! With `AF_CONN`, usrsctp knows a peer by one pointer. A [`PathId`] is that pointer: a number, never
//! dereferenced and never used again, so what usrsctp still holds of a forgotten path leads nowhere.

use std::collections::HashMap;
use std::ffi::c_void;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::ptr::without_provenance_mut;
use std::time::{Duration, Instant};

/// How long a path without associations is remembered: from INIT to COOKIE ECHO, and late packets.
const IDLE_LIFETIME: Duration = Duration::from_secs(5);
/// Paths at one time; strangers beyond them are not answered. Bounds what spoofed addresses can cost.
const MAX_PATHS: usize = 65_536;

/// Names a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PathId(NonZeroUsize);

impl PathId {
    /// As usrsctp's address.
    pub fn as_addr(self) -> *mut c_void {
        without_provenance_mut(self.0.get())
    }

    /// From usrsctp's address.
    pub fn from_addr(addr: *mut c_void) -> Option<Self> {
        NonZeroUsize::new(addr.addr()).map(Self)
    }

    /// The first of all names.
    pub fn first() -> Self {
        Self(NonZeroUsize::MIN)
    }
}

/// Where packets come from and go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct PathAddress {
    /// The socket they use: an index into the engine's links.
    pub link: usize,
    /// Own address.
    pub local: IpAddr,
    /// The peer's address, and its UDP port when encapsulated (0 when raw).
    pub remote: SocketAddr,
}

/// A path and what depends on it.
#[derive(Debug)]
pub(super) struct Path {
    pub address: PathAddress,
    /// Associations and reserved ports that use it.
    users: usize,
    /// Whether usrsctp has it as one of this host's addresses.
    pub registered: bool,
    last_seen: Instant,
}

/// All paths, by name and by address.
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

    /// The name of an address that is known.
    pub fn id_of(&self, address: &PathAddress) -> Option<PathId> {
        self.by_address.get(address).copied()
    }

    /// The name of an address, known or new; `None` when there are too many, or no names are left.
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
        self.by_id.insert(id, Path { address, users: 0, registered: false, last_seen: now });
        self.by_address.insert(address, id);
        Some(id)
    }

    /// Notes one more user of a path.
    pub fn hold(&mut self, id: PathId) {
        if let Some(path) = self.by_id.get_mut(&id) {
            path.users += 1;
        }
    }

    /// Notes one user fewer.
    pub fn release(&mut self, id: PathId, now: Instant) {
        if let Some(path) = self.by_id.get_mut(&id) {
            path.users = path.users.saturating_sub(1);
            path.last_seen = now;
        }
    }

    /// Marks a path as registered; `false` if it was already.
    pub fn mark_registered(&mut self, id: PathId) -> bool {
        self.by_id.get_mut(&id).is_some_and(|path| !std::mem::replace(&mut path.registered, true))
    }

    /// Marks a path that nobody uses as not registered; `false` if it was not, or is used.
    pub fn unmark_unused(&mut self, id: PathId) -> bool {
        let unused = self.by_id.get_mut(&id).filter(|path| path.users == 0);
        unused.is_some_and(|path| std::mem::replace(&mut path.registered, false))
    }

    /// Forgets paths that nobody uses any more, and returns those that were registered.
    pub fn sweep(&mut self, now: Instant) -> Vec<PathId> {
        if now.duration_since(self.swept) < IDLE_LIFETIME / 5 {
            return Vec::new();
        }
        self.swept = now;
        let mut registered = Vec::new();
        self.by_id.retain(|&id, path| {
            let keep = path.users > 0 || now.duration_since(path.last_seen) < IDLE_LIFETIME;
            if !keep {
                self.by_address.remove(&path.address);
                if path.registered {
                    registered.push(id);
                }
            }
            keep
        });
        registered
    }

    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Names of all registered paths.
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
    fn an_address_keeps_its_name_while_it_is_remembered() {
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
    fn unused_paths_are_forgotten_after_a_while_and_their_names_stay_void() {
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
    fn strangers_beyond_the_limit_get_no_path_until_others_are_forgotten() {
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
