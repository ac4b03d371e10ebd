//! Sends packets to the data network by a packet socket, without the kernel's forwarding: by the copy of its routes
//! ([`Fib`]). The kernel still sends what is not simple: packets without a known next hop, longer than the MTU or
//! with an expired hop limit, which it answers by ICMP, with options, or with a damaged header.

use crate::config::UePool;
use crate::fib::{Fib, NextHop, is_forwarded};
use crate::packet::{Frame, VnetHeader, decrement_ttl, has_right_checksum};
use crate::rules::WorkerCounters;
use crate::sys::{FrameOut, PacketSocket, VNET_HEADER_LEN};
use pith_upf::contract::DropReason;
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::sync::Arc;

const ETHERNET_LEN: usize = 14;
/// Virtio-net header, Ethernet, IPv6 and a TCP header with all options.
const LONGEST_HEAD: usize = VNET_HEADER_LEN + ETHERNET_LEN + 40 + 60;
const IPV4_LEN: usize = 20;
const IPV6_LEN: usize = 40;
const HOP_BY_HOP: u8 = 0;
/// Cached look-ups of destinations.
const PLACES: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 14;

/// A worker's packet socket, and its copy of the routes.
#[derive(Debug)]
pub struct PacketOut {
    socket: PacketSocket,
    fib: Arc<Fib>,
    /// Pools whose packets the kernel must handle.
    by_kernel: Arc<[UePool]>,
    /// The next hop of recent destinations, which is none for those of the kernel.
    cache: Box<[Option<(IpAddr, Option<Link>)>]>,
    heads: Vec<Head>,
}

/// A next hop as a frame needs it.
#[derive(Debug, Clone, Copy)]
struct Link {
    device: u32,
    ethernet: [u8; 12],
    mtu: u16,
}

/// The headers before the rest of a frame.
#[derive(Debug)]
struct Head {
    octets: [u8; LONGEST_HEAD],
    length: usize,
    /// Index of the frame in the batch.
    frame: usize,
    device: u32,
    v6: bool,
    /// Of a single packet: what follows the IP header.
    rest: Range<usize>,
}

impl PacketOut {
    /// Sends no packet until it has routes.
    pub fn new(socket: PacketSocket, by_kernel: Arc<[UePool]>) -> Self {
        let cache = vec![None; PLACES].into_boxed_slice();
        Self { socket, fib: Arc::default(), by_kernel, cache, heads: Vec::new() }
    }

    /// Replaces the routes.
    pub fn set_fib(&mut self, fib: Arc<Fib>) {
        self.fib = fib;
        self.cache.fill(None);
    }

    /// Sends frames of packets in `arena`, and returns the indices of those that the kernel must send. Behind one for the kernel, so are
    /// the others to its destination: no flow is reordered.
    pub fn send(&mut self, frames: &[Frame], arena: &[u8], counters: &WorkerCounters) -> Vec<usize> {
        let (mut others, mut destinations) = (Vec::new(), Vec::new());
        self.heads.clear();
        for (at, frame) in frames.iter().enumerate() {
            let follows =
                || destinations.contains(&destination_of(arena.get(frame.first()).unwrap_or_default()));
            let head = if destinations.is_empty() || !follows() { self.head(frame, arena, at) } else { None };
            match head {
                Some(head) => self.heads.push(head),
                None => {
                    destinations.push(destination_of(arena.get(frame.first()).unwrap_or_default()));
                    others.push(at);
                }
            }
        }
        self.send_heads(frames, arena, counters, &mut others);
        others.sort_unstable();
        others
    }

    /// The headers of a frame; `None` if the kernel must send it.
    fn head(&mut self, frame: &Frame, arena: &[u8], at: usize) -> Option<Head> {
        let first = frame.first();
        let packet = arena.get(first.clone())?;
        let (source, destination, ip_len) = plain_header(packet)?;
        let of_kernel = self.by_kernel.iter().any(|pool| pool.contains(source));
        let link = self.link(destination).filter(|_| !of_kernel)?;
        if frame.longest_packet() > link.mtu.into() {
            return None;
        }
        let train = frame.head(arena);
        let (vnet, headers) = match &train {
            None => (VnetHeader::NONE, packet.get(..ip_len)?),
            Some((head, length)) => {
                let (vnet, headers) = head.get(..*length)?.split_at_checked(VNET_HEADER_LEN)?;
                (VnetHeader::decode(vnet.first_chunk()?).behind(ETHERNET_LEN as u16).encode(), headers)
            }
        };
        let v6 = destination.is_ipv6();
        let kind: [u8; 2] = if v6 { [0x86, 0xdd] } else { [0x08, 0x00] };
        let rest = first.start + ip_len..first.end;
        let mut head =
            Head { octets: [0; LONGEST_HEAD], length: 0, frame: at, device: link.device, v6, rest };
        [&vnet[..], &link.ethernet, &kind].into_iter().for_each(|octets| head.add(octets));
        let ip = head.length;
        head.add(headers);
        decrement_ttl(head.octets.get_mut(ip..head.length)?).then_some(head)
    }

    /// The next hop to a destination, from the cache if possible.
    fn link(&mut self, destination: IpAddr) -> Option<Link> {
        let place = self.cache.get_mut(place_of(destination))?;
        if let Some((cached, link)) = place
            && *cached == destination
        {
            return *link;
        }
        let hop = self.fib.next_hop(destination);
        if let Some(hop) = hop {
            hop.mark_used();
        }
        let link = hop.map(|NextHop { device, ethernet, mtu, .. }| Link {
            device: *device,
            ethernet: *ethernet,
            mtu: *mtu,
        });
        *place = Some((destination, link));
        link
    }

    fn send_heads(&self, frames: &[Frame], arena: &[u8], counters: &WorkerCounters, others: &mut Vec<usize>) {
        let mut parts = Vec::with_capacity(self.heads.len() * 2);
        let mut messages = Vec::with_capacity(self.heads.len());
        for head in &self.heads {
            let bytes = |range: &Range<usize>| IoSlice::new(arena.get(range.clone()).unwrap_or_default());
            let first = parts.len();
            parts.push(IoSlice::new(head.octets.get(..head.length).unwrap_or_default()));
            match frames.get(head.frame) {
                Some(frame) if frame.packets() > 1 => parts.extend(frame.payloads().iter().map(bytes)),
                _ => parts.push(bytes(&head.rest)),
            }
            messages.push(FrameOut { device: head.device, v6: head.v6, parts: first..parts.len() });
        }
        let mut done = 0;
        while let (Some(rest @ [_, ..]), Some(head)) = (messages.get(done..), self.heads.get(done)) {
            match self.socket.send(rest, &parts) {
                Ok(sent) => {
                    let sent = sent.max(1);
                    let of = self.heads.iter().skip(done).take(sent);
                    of.filter_map(|head| frames.get(head.frame)).for_each(|frame| {
                        counters.n6_out.count(frame.packets(), frame.octets());
                    });
                    done += sent;
                }
                Err(error) => {
                    match frames.get(head.frame) {
                        Some(frame) if is_full(&error) => {
                            counters.drops.count_many(DropReason::N6SendFailed, frame.packets());
                        }
                        // The device is gone, or the kernel knows no trains of this kind: what follows may be of the same flow.
                        _ => {
                            others.extend(self.heads.iter().skip(done).map(|head| head.frame));
                            return;
                        }
                    }
                    done += 1;
                }
            }
        }
    }
}

impl Head {
    /// Appends octets that are known to fit.
    fn add(&mut self, octets: &[u8]) {
        let end = self.length + octets.len();
        if let Some(place) = self.octets.get_mut(self.length..end) {
            place.copy_from_slice(octets);
            self.length = end;
        }
    }
}

/// Whether a queue has no room: the kernel's forwarding would drop the packet, too.
fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM))
}

fn place_of(destination: IpAddr) -> usize {
    let bits = match destination {
        IpAddr::V4(v4) => u64::from(v4.to_bits()),
        IpAddr::V6(v6) => (v6.to_bits() >> 64) as u64 ^ v6.to_bits() as u64,
    };
    (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - PLACE_BITS)) as usize
}

/// The destination in an IP header; `None` if there is none.
fn destination_of(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => packet.get(16..20)?.first_chunk::<4>().copied().map(IpAddr::from),
        _ => packet.get(24..40)?.first_chunk::<16>().copied().map(IpAddr::from),
    }
}

/// Source, destination and length of an IP header that a router forwards without further work; `None`: another one.
fn plain_header(packet: &[u8]) -> Option<(IpAddr, IpAddr, usize)> {
    let (source, destination, length) = match packet.first()? >> 4 {
        4 => {
            let header: &[u8; IPV4_LEN] = packet.first_chunk()?;
            let [version, .., s0, s1, s2, s3, d0, d1, d2, d3] = *header;
            if version != 0x45 || !has_right_checksum(header) {
                return None;
            }
            let (source, destination) = (Ipv4Addr::new(s0, s1, s2, s3), Ipv4Addr::new(d0, d1, d2, d3));
            (source.into(), destination.into(), IPV4_LEN)
        }
        _ => {
            let header: &[u8; IPV6_LEN] = packet.first_chunk()?;
            let address = |at: usize| header.get(at..)?.first_chunk::<16>().copied().map(Ipv6Addr::from);
            if header.get(6) == Some(&HOP_BY_HOP) {
                return None;
            }
            (address(8)?.into(), address(24)?.into(), IPV6_LEN)
        }
    };
    (is_forwarded(source) && is_forwarded(destination)).then_some((source, destination, length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::set_ipv4_checksum;

    fn header(change: impl FnOnce(&mut [u8; IPV4_LEN])) -> [u8; IPV4_LEN] {
        let mut header = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 45, 0, 2, 192, 0, 2, 1];
        set_ipv4_checksum(&mut header);
        change(&mut header);
        header
    }

    #[test]
    fn only_plain_headers_are_sent_without_the_kernel() {
        assert!(plain_header(&header(|_| {})).is_some());
        let with_destination = |first| {
            header(|header| {
                header[16] = first;
                set_ipv4_checksum(header);
            })
        };
        for first in [0, 127, 224, 255] {
            assert!(plain_header(&with_destination(first)).is_none(), "{first}");
        }
        assert!(plain_header(&header(|header| header[8] = 63)).is_none(), "damaged");
        assert!(plain_header(&[0x46; 24]).is_none(), "options");
        let mut v6 = [0; IPV6_LEN];
        (v6[0], v6[6], v6[8], v6[24]) = (0x60, 17, 0x20, 0x20);
        assert!(plain_header(&v6).is_some());
        v6[6] = HOP_BY_HOP;
        assert!(plain_header(&v6).is_none(), "hop-by-hop options");
    }
}
