//! Routes for sending by AF_XDP, past the kernel's stack. The XDP program passes its route with each frame
//! that it redirects; packets without a known route go by the kernel.

use super::gpdu::write_header;
use super::n3::HEADROOM;
use super::path::Path;
use super::ports::Ports;
use crate::packet::{Flow, decrement_ttl, has_right_checksum, set_ipv4_checksum};
use crate::rules::{Now, Rule};
use crate::sys::layout::{NO_INDEX, RedirectInfo};
use pith_pfcp::gtpu::GTPU_PORT;
use pith_upf::contract::{Qfi, Tunnel};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Validity of a route, in nanoseconds: as long as the program's own cache.
const LIFE: u64 = 100_000_000;
/// Maximum number of cached routes.
const MOST: usize = 16_384;
/// Longest link and IP header.
const HEAD: usize = 18 + 60;
const IPV4_LEN: usize = 20;
const UDP_LEN: usize = 8;
/// TTL of a tunnel's packets.
const HOPS: u8 = 64;
const UDP: u8 = 17;

/// Routes by destination.
#[derive(Debug, Default)]
pub struct Routes {
    by_destination: HashMap<IpAddr, Route>,
}

#[derive(Debug, Clone, Copy)]
struct Route {
    /// The index of the worker's AF_XDP socket.
    port: usize,
    info: RedirectInfo,
    until: u64,
}

impl Routes {
    /// Caches the route that the program passed with a packet for `destination`.
    pub fn learn(&mut self, destination: IpAddr, info: RedirectInfo, ports: &Ports, now: Now) {
        if info.device == NO_INDEX {
            self.by_destination.remove(&destination);
            return;
        }
        let Some(port) = ports.of_slot(info.device) else { return };
        if self.by_destination.len() >= MOST {
            self.by_destination.clear();
        }
        self.by_destination.insert(destination, Route { port, info, until: now.0 + LIFE });
    }

    fn to(&self, destination: IpAddr, now: Now) -> Option<Route> {
        self.by_destination.get(&destination).filter(|route| route.until > now.0).copied()
    }
}

/// Fields of the outer headers of a tunnel packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outer {
    pub peer: SocketAddr,
    /// Type of service.
    pub tos: u8,
    /// UDP source port.
    pub port: u16,
}

/// The headers before the rest of a packet.
pub struct Head {
    octets: [u8; HEAD],
    length: usize,
}

impl Head {
    /// The link header.
    fn of_link(info: &RedirectInfo, v6: bool) -> Self {
        let mut head = Self { octets: [0; HEAD], length: 0 };
        head.add(&info.ethernet);
        if info.vlan != 0 {
            head.add(&[0x81, 0x00]);
            head.add(&info.vlan.to_ne_bytes());
        }
        head.add(if v6 { &[0x86, 0xdd] } else { &[0x08, 0x00] });
        head
    }

    /// Appends octets that are known to fit.
    fn add(&mut self, octets: &[u8]) {
        let end = self.length + octets.len();
        if let Some(place) = self.octets.get_mut(self.length..end) {
            place.copy_from_slice(octets);
            self.length = end;
        }
    }

    /// The octets written so far.
    pub fn octets(&self) -> &[u8] {
        self.octets.get(..self.length).unwrap_or_default()
    }

    fn from(&mut self, at: usize) -> &mut [u8] {
        self.octets.get_mut(at..self.length).unwrap_or_default()
    }
}

impl Path {
    /// Sends a packet to the data network by AF_XDP; `false` if the kernel must send it, which also generates
    /// ICMP errors.
    pub fn send_to_network_by_xsk(&mut self, flow: &Flow, packet: &[u8]) -> bool {
        let Some(route) = self.routes.to(flow.destination, self.now) else { return false };
        if packet.len() > usize::from(route.info.mtu) {
            return false;
        }
        let v6 = flow.destination.is_ipv6();
        let ip_len = if v6 { 40 } else { usize::from(packet.first().map_or(0, |first| first & 0x0f)) * 4 };
        let Some((ip, rest)) = packet.split_at_checked(ip_len) else { return false };
        // The kernel discards a packet with a damaged header (RFC 1812 5.2.2).
        if !v6 && !has_right_checksum(ip) {
            return false;
        }
        let mut head = Head::of_link(&route.info, v6);
        let link_len = head.length;
        head.add(ip);
        if !decrement_ttl(head.from(link_len)) || !self.ports.send(route.port, head.octets(), rest) {
            return false;
        }
        self.counters.n6_out.count(1, packet.len());
        true
    }

    /// Sends a packet into a tunnel by AF_XDP; `false` if the kernel must send it.
    pub fn send_by_tunnel_by_xsk(
        &mut self,
        by: (&Rule, Option<Qfi>),
        tunnel: &Tunnel,
        packet: &[u8],
    ) -> bool {
        let mut room = [0; HEADROOM];
        let Some(at) = write_header(&mut room, tunnel, by, packet.len()) else { return false };
        let header = room.get(at..).unwrap_or_default();
        let outer = self.outer(tunnel, packet);
        let Some((port, mut head)) = self.tunnel_route(outer, header.len() + packet.len()) else {
            return false;
        };
        head.add(header);
        let sent = self.ports.send(port, head.octets(), packet);
        if sent {
            self.counters.n3_out.count(1, packet.len());
        }
        sent
    }

    /// The AF_XDP socket for a G-PDU of that length, and the headers before it.
    pub fn tunnel_route(&mut self, outer: Outer, length: usize) -> Option<(usize, Head)> {
        let (IpAddr::V4(peer), Some(own)) = (outer.peer.ip(), self.own_v4()) else { return None };
        let route = self.routes.to(peer.into(), self.now)?;
        let length = IPV4_LEN + UDP_LEN + length;
        if length > usize::from(route.info.mtu) {
            return None;
        }
        let id = self.outer_ids.take();
        let mut head = Head::of_link(&route.info, false);
        head.add(&outer.header(own, peer, id, length as u16));
        Some((route.port, head))
    }

    /// The source address of tunnel packets.
    fn own_v4(&self) -> Option<Ipv4Addr> {
        self.sockets.iter().find_map(|socket| match socket.address().ip() {
            IpAddr::V4(v4) => Some(v4),
            IpAddr::V6(_) => None,
        })
    }
}

/// Identifications of outer IPv4 headers. CPUs of the XDP program and workers take turns, so that no two packets on their way
/// have the same: a receiver would join their fragments.
#[derive(Debug)]
pub struct OuterIds {
    next: u16,
    step: u16,
}

impl OuterIds {
    /// The ids of one of several senders, which use disjoint ids. `place` is below `places`. A power of two divides the
    /// number of ids; with another step, senders would use each other's ids after 65,536.
    pub fn new(place: usize, places: usize) -> Self {
        Self { next: place as u16, step: places.next_power_of_two() as u16 }
    }

    fn take(&mut self) -> u16 {
        let id = self.next;
        self.next = id.wrapping_add(self.step);
        id
    }
}

impl Outer {
    /// The IPv4 and UDP header of a tunnel packet of `length` bytes in all. The UDP checksum is zero (RFC 768).
    fn header(self, own: Ipv4Addr, peer: Ipv4Addr, id: u16, length: u16) -> [u8; IPV4_LEN + UDP_LEN] {
        let [l0, l1] = length.to_be_bytes();
        let [i0, i1] = id.to_be_bytes();
        let [s0, s1, s2, s3] = own.octets();
        let [d0, d1, d2, d3] = peer.octets();
        let [f0, f1] = self.port.to_be_bytes();
        let [p0, p1] = GTPU_PORT.to_be_bytes();
        let [u0, u1] = length.saturating_sub(IPV4_LEN as u16).to_be_bytes();
        let mut header = [
            0x45, self.tos, l0, l1, i0, i1, 0, 0, HOPS, UDP, 0, 0, s0, s1, s2, s3, d0, d1, d2, d3, //
            f0, f1, p0, p1, u0, u1, 0, 0,
        ];
        if let Some(ip) = header.get_mut(..IPV4_LEN) {
            set_ipv4_checksum(ip);
        }
        header
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn workers_never_use_the_outer_id_of_another() {
        for places in 1..=9 {
            let mut owners = HashMap::new();
            for place in 0..places {
                let mut ids = OuterIds::new(place, places);
                for _ in 0..70_000 {
                    assert_eq!(*owners.entry(ids.take()).or_insert(place), place, "of {places}");
                }
            }
        }
    }
}
