//! Divides a server's capacity among its peers, so that no peer uses up the capacity of others.
//!
//! All unknown peers together get half of each resource, and each one an eighth. The rest is reserved for
//! known peers: those at configured addresses and those that have authenticated. A known peer may use at most three
//! times the free amount: three quarters if it is alone, three sevenths beside a peer that uses as much.

use pith_sbi::NfInstanceId;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;

/// Divisors of a resource: the part of all unknown peers together, and of one unknown peer.
const ALL_UNKNOWN_PEERS: usize = 2;
const ONE_UNKNOWN_PEER: usize = 8;
/// A known peer may use at most this multiple of the free amount.
const KNOWN: usize = 3;

/// The peer of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Peer {
    /// A host: an IPv4 address, or an IPv6 /64, as a host chooses its addresses within its /64.
    Host(IpAddr),
    /// A user of this machine, by the credentials of a Unix socket.
    User(u32),
    /// The process of an NF, by the first instance id of its certificate.
    Nf(NfInstanceId),
}

impl Peer {
    /// The peer of an address.
    pub fn at(address: IpAddr) -> Self {
        Self::Host(match address.to_canonical() {
            IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
            v4 => v4,
        })
    }
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Host(address) => address.fmt(f),
            Self::User(uid) => write!(f, "user {uid}"),
            Self::Nf(instance) => write!(f, "NF instance {instance}"),
        }
    }
}

/// Whether a peer is known to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Neither configured nor authenticated.
    Unknown,
    /// Configured, or authenticated by a certificate.
    Known,
}

/// The use of one resource.
#[derive(Debug)]
pub(super) struct Share {
    capacity: usize,
    used: Cell<usize>,
    by_unknown: Cell<usize>,
    by_peer: RefCell<HashMap<Peer, usize>>,
}

/// The reason why a peer gets nothing of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exhausted {
    /// The peer's own share is used up.
    Own,
    /// The share of all unknown peers is used up.
    Unknown,
    /// The whole resource is used up.
    All,
}

/// An allocated part of a resource; released when dropped.
#[derive(Debug)]
pub(super) struct Taken {
    share: Rc<Share>,
    peer: Peer,
    standing: Standing,
    amount: usize,
}

impl Share {
    pub fn of(capacity: usize) -> Rc<Self> {
        let (used, by_unknown) = (Cell::new(0), Cell::new(0));
        Rc::new(Self { capacity, used, by_unknown, by_peer: RefCell::default() })
    }

    /// Allocates an amount for a peer.
    pub fn take(self: &Rc<Self>, peer: Peer, standing: Standing, amount: usize) -> Result<Taken, Exhausted> {
        self.check(peer, standing, amount)?;
        let mut taken = Taken { share: self.clone(), peer, standing, amount: 0 };
        taken.add(amount);
        Ok(taken)
    }

    fn check(&self, peer: Peer, standing: Standing, amount: usize) -> Result<(), Exhausted> {
        let own = self.held_by(peer) + amount;
        let free = self.capacity.saturating_sub(self.used.get());
        match standing {
            Standing::Unknown if own > (self.capacity / ONE_UNKNOWN_PEER).max(1) => Err(Exhausted::Own),
            Standing::Unknown
                if self.by_unknown.get() + amount > (self.capacity / ALL_UNKNOWN_PEERS).max(1) =>
            {
                Err(Exhausted::Unknown)
            }
            _ if amount > free => Err(Exhausted::All),
            Standing::Known if own > KNOWN * free => Err(Exhausted::Own),
            _ => Ok(()),
        }
    }

    /// The amount that a peer uses.
    pub fn held_by(&self, peer: Peer) -> usize {
        self.by_peer.borrow().get(&peer).copied().unwrap_or(0)
    }

    /// The peer that uses most.
    pub fn largest(&self) -> Option<Peer> {
        self.by_peer.borrow().iter().max_by_key(|(_, held)| **held).map(|(peer, _)| *peer)
    }
}

impl Taken {
    /// Allocates more.
    pub fn grow(&mut self, amount: usize) -> Result<(), Exhausted> {
        self.share.check(self.peer, self.standing, amount)?;
        self.add(amount);
        Ok(())
    }

    fn add(&mut self, amount: usize) {
        let share = &self.share;
        self.amount += amount;
        share.used.set(share.used.get() + amount);
        *share.by_peer.borrow_mut().entry(self.peer).or_default() += amount;
        if self.standing == Standing::Unknown {
            share.by_unknown.set(share.by_unknown.get() + amount);
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let share = &self.share;
        share.used.set(share.used.get() - self.amount);
        if self.standing == Standing::Unknown {
            share.by_unknown.set(share.by_unknown.get() - self.amount);
        }
        let mut peers = share.by_peer.borrow_mut();
        if let Some(own) = peers.get_mut(&self.peer) {
            *own -= self.amount;
            if *own == 0 {
                peers.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Standing::{Known, Unknown};

    fn peer(host: u8) -> Peer {
        Peer::at(IpAddr::from([192, 0, 2, host]))
    }

    #[test]
    fn half_is_reserved_for_known_peers() {
        let share = Share::of(16);
        let mut taken = Vec::new();
        for host in 1..=4 {
            taken.extend((0..2).map(|_| share.take(peer(host), Unknown, 1).unwrap()));
            assert_eq!(share.take(peer(host), Unknown, 1).unwrap_err(), Exhausted::Own);
        }
        assert_eq!(share.take(peer(5), Unknown, 1).unwrap_err(), Exhausted::Unknown);
        taken.extend((6..14).map(|host| share.take(peer(host), Known, 1).unwrap()));
        assert_eq!(share.take(peer(14), Known, 1).unwrap_err(), Exhausted::All);
        drop(taken);
        assert_eq!((share.used.get(), share.by_unknown.get()), (0, 0));
        assert!(share.by_peer.borrow().is_empty(), "no entry remains for a peer without allocations");
    }

    #[test]
    fn a_known_peer_leaves_some_to_others() {
        let share = Share::of(16);
        let mut taken = Vec::new();
        let mut fill = |host| {
            while let Ok(one) = share.take(peer(host), Known, 1) {
                taken.push(one);
            }
            share.held_by(peer(host))
        };
        assert_eq!((fill(1), fill(2), fill(3)), (12, 3, 1));
        assert_eq!(share.largest(), Some(peer(1)));
        let mut body = Share::of(1000).take(peer(1), Known, 0).unwrap();
        assert!(body.grow(750).is_ok());
        assert_eq!(body.grow(200), Err(Exhausted::Own));
    }

    #[test]
    fn all_addresses_of_an_ipv6_host_have_one_share() {
        let at = |text: &str| Peer::at(text.parse().unwrap());
        assert_eq!(at("2001:db8::1"), at("2001:db8::ffff:0:0:1"));
        assert_ne!(at("2001:db8::1"), at("2001:db8:0:1::1"));
        assert_eq!(at("::ffff:192.0.2.1"), peer(1));
    }
}
