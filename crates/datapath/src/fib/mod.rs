//! A copy of the kernel's routes and neighbours, by which workers send packets to the data network without the kernel's
//! forwarding.
//!
//! ```text
//!   rtnetlink: routes, rules, neighbours, links ─▶ follower (a thread) ─▶ Message::Fib ─▶ workers
//! ```
//!
//! The copy knows only what it can follow exactly: one Ethernet next hop of the main table, with a resolved neighbour. Other
//! destinations take TUN, and the kernel decides: its own addresses, unreachable networks, several next hops, tunnels,
//! unresolved neighbours. With routing rules of others all destinations do.

mod detour;
mod follower;
mod read;

pub use detour::{Detour, ProgramSettings};
pub use follower::Follower;

use crate::packet::Prefixes;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Routes and next hops at one time.
#[derive(Debug, Default, PartialEq)]
pub struct Fib {
    /// Addresses and networks that the kernel handles, before all other routes.
    local: Prefixes<()>,
    routes: Prefixes<Route>,
    next_hops: HashMap<Neighbour, NextHop>,
}

/// The route to a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    /// The kernel decides.
    Kernel,
    /// By a gateway.
    Gateway(Neighbour),
    /// On the link of that device.
    OnLink(u32),
}

/// An address on a device's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Neighbour {
    device: u32,
    address: IpAddr,
}

impl PartialEq for NextHop {
    /// Whether packets leave in the same way.
    fn eq(&self, other: &Self) -> bool {
        let way = |hop: &Self| (hop.device, hop.ethernet, hop.mtu, hop.is_stale);
        way(self) == way(other)
    }
}

/// A resolved next hop.
#[derive(Debug)]
pub struct NextHop {
    /// Interface index.
    pub device: u32,
    /// Destination and source of the link header.
    pub ethernet: [u8; 12],
    pub mtu: u16,
    /// Whether the kernel has not confirmed its link address recently.
    is_stale: bool,
    /// Whether a worker sent to it since the last check.
    used: AtomicBool,
}

impl NextHop {
    /// Marks that a worker sends to it: the kernel, which does not see these packets, must confirm its link address.
    pub fn mark_used(&self) {
        if !self.used.load(Relaxed) {
            self.used.store(true, Relaxed);
        }
    }
}

impl Fib {
    /// The next hop to a destination; `None`: the kernel decides.
    pub fn next_hop(&self, destination: IpAddr) -> Option<&NextHop> {
        if !is_forwarded(destination) || self.local.find(destination).is_some() {
            return None;
        }
        let neighbour = match *self.routes.find(destination)? {
            Route::Kernel => return None,
            Route::Gateway(neighbour) => neighbour,
            Route::OnLink(device) => Neighbour { device, address: destination },
        };
        self.next_hops.get(&neighbour)
    }

    /// The neighbours that workers sent to since the last call, and whose link address the kernel has not confirmed recently.
    fn take_unconfirmed(&self) -> impl Iterator<Item = Neighbour> {
        let is_due = |hop: &NextHop| hop.used.swap(false, Relaxed) && hop.is_stale;
        self.next_hops.iter().filter(move |(_, hop)| is_due(hop)).map(|(neighbour, _)| *neighbour)
    }
}

/// Whether a router forwards packets from or to an address, whatever its routes: it is unicast, and neither on this host
/// nor on a link by definition.
pub fn is_forwarded(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !matches!(v4.octets(), [0 | 127 | 224.., ..]),
        IpAddr::V6(v6) => !matches!(v6.octets(), [0 | 0xfe | 0xff, ..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next_hop(device: u32) -> NextHop {
        NextHop { device, ethernet: [7; 12], mtu: 1500, is_stale: true, used: AtomicBool::new(false) }
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_longest_route_leads_to_a_resolved_neighbour_or_to_the_kernel() {
        let mut fib = Fib::default();
        let gateway = Neighbour { device: 2, address: address("192.0.2.1") };
        fib.local.insert(address("192.0.2.9"), 32, ());
        fib.routes.insert(address("0.0.0.0"), 0, Route::Gateway(gateway));
        fib.routes.insert(address("192.0.2.0"), 24, Route::OnLink(3));
        fib.routes.insert(address("198.51.100.0"), 24, Route::Kernel);
        fib.next_hops.insert(gateway, next_hop(2));
        fib.next_hops.insert(Neighbour { device: 3, address: address("192.0.2.7") }, next_hop(3));
        let device = |text: &str| fib.next_hop(address(text)).map(|hop| hop.device);
        for (to, expected) in [
            ("203.0.113.1", Some(2)),
            ("192.0.2.7", Some(3)),
            ("192.0.2.8", None),
            ("192.0.2.9", None),
            ("198.51.100.1", None),
            ("224.0.0.1", None),
            ("255.255.255.255", None),
            ("127.0.0.1", None),
            ("2001:db8::1", None),
            ("fe80::1", None),
        ] {
            assert_eq!(device(to), expected, "{to}");
        }
    }

    #[test]
    fn only_used_neighbours_are_confirmed_and_once_for_each_use() {
        let mut fib = Fib::default();
        let [used, unused] = [1, 2].map(|device| Neighbour { device, address: address("192.0.2.1") });
        fib.next_hops.insert(used, next_hop(1));
        fib.next_hops.insert(unused, next_hop(2));
        fib.next_hops[&used].mark_used();
        assert_eq!(fib.take_unconfirmed().collect::<Vec<_>>(), [used]);
        assert_eq!(fib.take_unconfirmed().count(), 0);
    }
}
