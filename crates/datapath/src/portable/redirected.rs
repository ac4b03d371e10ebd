//! Frames that the XDP program redirects by AF_XDP: packets that must be queued, or whose session has queued
//! packets. The program has counted them as received.

use super::path::Path;
use super::signalling::Signaller;
use super::tables::Tables;
use crate::packet::{Flow, link_header_len, merge_outer_ecn};
use crate::sys::BEFORE;
use crate::sys::layout::RedirectInfo;
use pith_pfcp::gtpu::{GTPU_PORT, Packet};
use pith_upf::contract::{DropReason, Qfi, Teid};
use pith_upf::qos::Ecn;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

/// IP protocol number and header length of UDP.
const UDP: u8 = 17;
const UDP_HEADER_LEN: usize = 8;

/// A GTP-U message of a tunnel that ends here.
struct Message {
    range: Range<usize>,
    from: SocketAddr,
    /// The index of the worker's socket that it is addressed to.
    socket: usize,
    /// ECN field of its outer header.
    ecn: Ecn,
}

impl Path {
    /// Forwards frames in `arena`.
    pub fn forward_redirected(
        &mut self,
        tables: &Tables,
        signaller: &mut Signaller,
        arena: &mut [u8],
        frames: &[Range<usize>],
    ) {
        for frame in frames {
            let bytes = arena.get(frame.clone()).unwrap_or_default();
            let at = link_header_len(bytes).unwrap_or(bytes.len());
            let Some(flow) = bytes.get(at..).and_then(Flow::of) else {
                self.drop(DropReason::MalformedInner, 1);
                continue;
            };
            let start = frame.start + at;
            let info = arena.get(frame.start.saturating_sub(BEFORE)..).and_then(RedirectInfo::decode);
            match self.message(&flow, start) {
                Some(message) => self.redirected_from_tunnel(tables, signaller, arena, (&message, info)),
                None => {
                    if let Some(info) = info.filter(|info| info.peer != 0) {
                        let peer = IpAddr::from(info.peer.to_ne_bytes());
                        self.routes.learn(peer, info, &self.ports, self.now);
                    }
                    self.redirected_from_network(tables, arena, start..start + flow.length, &flow);
                }
            }
        }
        self.n6.flush(arena, &mut self.tun, &self.counters);
        self.flush_n3();
        self.ports.flush();
    }

    /// The GTP-U message in a packet at `start`, if it is for this UPF.
    fn message(&self, outer: &Flow, start: usize) -> Option<Message> {
        let (source, destination) = outer.ports?;
        if outer.protocol != UDP || destination != GTPU_PORT {
            return None;
        }
        let is_to = |address: SocketAddr| address.ip() == outer.destination;
        let socket = self.sockets.iter().position(|socket| is_to(socket.address()))?;
        let range = start + outer.transport_at + UDP_HEADER_LEN..start + outer.length;
        let ecn = Ecn::of_tos(outer.tos);
        Some(Message { range, from: SocketAddr::new(outer.source, source), socket, ecn })
    }

    fn redirected_from_tunnel(
        &mut self,
        tables: &Tables,
        signaller: &mut Signaller,
        arena: &mut [u8],
        (message, info): (&Message, Option<RedirectInfo>),
    ) {
        let Ok(packet) = Packet::decode(arena.get(message.range.clone()).unwrap_or_default()) else {
            return self.drop(DropReason::MalformedGtpu, 1);
        };
        let teid = Teid(packet.teid);
        let Some(rules) = tables.by_teid(teid) else {
            let is_peer = self.border.is_peer(message.from.ip());
            return signaller.refuse_teid(self, teid, (message.from, message.socket, is_peer));
        };
        if let (Some(info), Some(flow)) = (info, Flow::of(packet.payload)) {
            let to = if info.peer == 0 { flow.destination } else { IpAddr::from(info.peer.to_ne_bytes()) };
            self.routes.learn(to, info, &self.ports, self.now);
        }
        let start = message.range.start + packet.header_len;
        let qfi = packet.pdu_session_information().map(|information| Qfi(information.qfi()));
        let inner = start..start + packet.payload.len();
        if !merge_outer_ecn(arena.get_mut(inner.clone()).unwrap_or_default(), message.ecn) {
            return self.drop(DropReason::LostCongestion, 1);
        }
        self.forward_from_tunnel(tables, rules, arena, inner, teid, qfi);
    }

    fn redirected_from_network(&mut self, tables: &Tables, arena: &[u8], packet: Range<usize>, flow: &Flow) {
        match tables.by_ue(flow.destination) {
            Some(rules) => self.deliver_past_kernel(rules, flow, arena.get(packet).unwrap_or_default()),
            None => self.drop(DropReason::UnknownUe, 1),
        }
    }
}
