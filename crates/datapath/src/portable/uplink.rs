//! Uplink: packets received from tunnels, handled by their sessions' rules.

use super::path::{Path, SendDecision, peer_of};
use super::signalling::{Sender, Signaller, send_signalling};
use super::tables::Tables;
use crate::packet::{Flow, merge_outer_ecn};
use crate::rules::{Ingress, Origin, Rules, STEPS};
use crate::sys::{Datagram, prefetch};
use pith_pfcp::gtpu::{ExtensionHeader, GtpuMessageType, Packet, Signalling};
use pith_upf::contract::{Action, Destination, Direction, DropReason, Event, Fate, Qfi, Source, Teid};
use pith_upf::qos::Ecn;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

/// Packets that are prefetched together before the first is forwarded.
const BATCH: usize = 64;

/// A received packet of a session's tunnel.
struct Arrived<'t> {
    rules: &'t Arc<Rules>,
    inner: Range<usize>,
    teid: Teid,
    qfi: Option<Qfi>,
}

impl Path {
    /// Forwards what the socket of that index received into `arena`.
    pub fn uplink(
        &mut self,
        tables: &Tables,
        signaller: &mut Signaller,
        arena: &mut [u8],
        received: &[Datagram],
        socket: usize,
    ) {
        let mut arrived = Vec::with_capacity(BATCH);
        for train in received {
            // UEs have no tunnels: GTP-U from a UE's address could impersonate other UEs.
            if tables.by_ue(train.peer.ip()).is_some() {
                self.drop(DropReason::UnsupportedGtpu, train.range.len().div_ceil(train.segment));
                continue;
            }
            let sender = (train.peer, socket, self.border.is_peer(train.peer.ip()));
            let mut start = train.range.start;
            if train.range.is_empty() {
                self.drop(DropReason::MalformedGtpu, 1);
            }
            while start < train.range.end {
                let end = (start + train.segment).min(train.range.end);
                self.handle_datagram(tables, signaller, arena, &mut arrived, start..end, (sender, train.ecn));
                start = end;
            }
        }
        self.forward_arrived(tables, arena, &mut arrived);
        self.n6.flush(arena, &mut self.tun, &self.counters);
        self.flush_n3();
        self.ports.flush();
    }

    /// Answers a signalling message, or appends the packet to `arrived`. A host that is no tunnel's peer is
    /// answered Echo Requests (TS 29.281 7.2.1) and unknown TEIDs (7.3.1), which a restarted UPF needs; its
    /// other messages are dropped.
    fn handle_datagram<'t>(
        &mut self,
        tables: &'t Tables,
        signaller: &mut Signaller,
        arena: &mut [u8],
        arrived: &mut Vec<Arrived<'t>>,
        datagram: Range<usize>,
        ((peer, socket, is_peer), ecn): (Sender, Ecn),
    ) {
        let Ok(packet) = Packet::decode(arena.get(datagram.clone()).unwrap_or_default()) else {
            return self.drop(DropReason::MalformedGtpu, 1);
        };
        let is_open_to_all = [GtpuMessageType::ECHO_REQUEST, GtpuMessageType::G_PDU];
        if !is_peer && !is_open_to_all.contains(&packet.message_type) {
            return self.drop(DropReason::UnknownPeer, 1);
        }
        if packet.message_type == GtpuMessageType::END_MARKER {
            self.forward_arrived(tables, arena, arrived);
            return self.pass_end_marker(tables, Teid(packet.teid));
        }
        if packet.message_type != GtpuMessageType::G_PDU {
            return signaller.answer(self, &packet, (peer, socket, is_peer));
        }
        let start = datagram.start + packet.header_len;
        let inner = start..start + packet.payload.len();
        self.counters.n3_in.count(1, inner.len());
        if packet.uncomprehended(|header| header == ExtensionHeader::PDU_SESSION_CONTAINER).is_some() {
            return signaller.refuse_extension(self, (peer, socket, is_peer));
        }
        let teid = Teid(packet.teid);
        let Some(rules) = tables.by_teid(teid) else {
            return signaller.refuse_teid(self, teid, (peer, socket, is_peer));
        };
        // Uplink may begin before the SMF provides the gNB's tunnel (TS 23.502 4.3.2.2.1, steps 15 and 16a): until then
        // the peer is unknown, and any source is accepted that the configuration permits.
        if !is_peer && (rules.downlink_peer.is_some() || self.border.has_radios()) {
            let tunnel_peer =
                rules.downlink_peer.filter(|_| self.border.is_new_unknown_peer(self.now, peer.ip()));
            let event = tunnel_peer.map(|peer_of| Event::UnknownPeer { source: peer.ip(), peer: peer_of });
            if let Some(event) = event {
                self.shared.events.push(event);
            }
            return self.drop(DropReason::UnknownPeer, 1);
        }
        let qfi = packet.pdu_session_information().map(|information| Qfi(information.qfi()));
        if !merge_outer_ecn(arena.get_mut(inner.clone()).unwrap_or_default(), ecn) {
            return self.drop(DropReason::LostCongestion, 1);
        }
        prefetch(&**rules);
        arrived.push(Arrived { rules, inner, teid, qfi });
        if arrived.len() == BATCH {
            self.forward_arrived(tables, arena, arrived);
        }
    }

    /// Forwards the received packets in order, after prefetching the memory that they need.
    fn forward_arrived(&mut self, tables: &Tables, arena: &[u8], arrived: &mut Vec<Arrived<'_>>) {
        for step in STEPS {
            let mut before = None;
            for Arrived { rules, .. } in &*arrived {
                // Consecutive packets often belong to one session.
                if before.replace(Arc::as_ptr(rules)) != Some(Arc::as_ptr(rules)) {
                    step(rules, Direction::Uplink, self.worker);
                }
            }
        }
        for Arrived { rules, inner, teid, qfi } in arrived.drain(..) {
            self.forward_from_tunnel(tables, rules, arena, inner, teid, qfi);
        }
    }

    /// Forwards an End Marker after the packets before it, if the tunnel's packets are forwarded into another
    /// tunnel (TS 23.501 5.8.2.9); otherwise no peer expects it.
    fn pass_end_marker(&mut self, tables: &Tables, teid: Teid) {
        let Some(rules) = tables.by_teid(teid) else { return };
        let from_here = |source: Source| matches!(source, Source::Tunnel { teid: own, .. } if own == teid);
        let onward = rules.iter().filter(|rule| from_here(rule.source)).find_map(|rule| match rule.action {
            Some(Action::Forward(Destination::Tunnel(tunnel))) => Some(tunnel),
            _ => None,
        });
        let Some(tunnel) = onward else { return };
        self.flush_n3();
        self.ports.flush();
        let mut message = Vec::new();
        Signalling::EndMarker { teid: tunnel.teid.0 }.encode(&mut message);
        let peer = peer_of(&tunnel);
        // The outgoing tunnel may use another IP version than the incoming one.
        let socket = self.sockets.iter().find(|socket| socket.address().is_ipv4() == peer.is_ipv4());
        send_signalling(socket, &message, peer);
    }

    pub fn forward_from_tunnel(
        &mut self,
        tables: &Tables,
        rules: &Arc<Rules>,
        arena: &[u8],
        inner: Range<usize>,
        teid: Teid,
        qfi: Option<Qfi>,
    ) {
        let bytes = arena.get(inner.clone()).unwrap_or_default();
        let Some(flow) = Flow::of(bytes) else { return self.drop(DropReason::MalformedInner, 1) };
        let origin = Origin::Tunnel(teid);
        let ingress = Ingress { origin, qfi, flow: &flow };
        let inner = inner.start..inner.start + flow.length;
        let packet = bytes.get(..flow.length).unwrap_or_default();
        if self.answers_on_link(rules, ingress, packet) {
            return;
        }
        let (rule, action) = match self.select_rule(rules, origin, &flow, qfi) {
            Ok(found) => found,
            Err((rule, reason)) => return self.refuse(rules, rule, ingress, reason),
        };
        if !flow.is_on_link() && rules.is_forged_error(rule, &flow, packet) {
            return self.refuse(rules, Some(rule), ingress, DropReason::SpoofedSource);
        }
        let is_to_network = action == Action::Forward(Destination::Network);
        if is_to_network && !self.border.lets_pass(tables, rules, &flow, packet) {
            return self.refuse(rules, Some(rule), ingress, DropReason::ClosedDestination);
        }
        match (self.send_decision(rules, rule, action, flow.length), action) {
            (Ok(SendDecision::Send), Action::Forward(Destination::Network)) => {
                self.trace(rules, Some(rule), ingress, Fate::ToNetwork);
                self.send_to_network(tables, &flow, arena, inner);
            }
            (Ok(SendDecision::Send), Action::Forward(Destination::Tunnel(tunnel))) => {
                self.trace(rules, Some(rule), ingress, Fate::ToTunnel(tunnel));
                self.send_copy((rule, qfi), &tunnel, packet);
            }
            (Ok(_), _) => self.queue(rules, rule, ingress, packet),
            (Err(reason), _) => self.refuse(rules, Some(rule), ingress, reason),
        }
    }

    /// Whether the kernel must handle the UE's packets: its NAT, firewall or routes apply.
    fn is_the_kernels(&self, ue: IpAddr) -> bool {
        self.shared.by_kernel.iter().any(|pool| pool.contains(ue))
    }

    /// Sends a packet to another UE or to N6. The kernel routes packets for a UE back to TUN.
    pub fn send_to_network(&mut self, tables: &Tables, flow: &Flow, arena: &[u8], packet: Range<usize>) {
        let bytes = arena.get(packet.clone()).unwrap_or_default();
        if !self.send_past_kernel(tables, flow, bytes) {
            self.n6.push(arena, packet, flow);
        }
    }

    /// Sends a packet to another UE, or to N6 by AF_XDP; `false` if the kernel must send it.
    pub fn send_past_kernel(&mut self, tables: &Tables, flow: &Flow, packet: &[u8]) -> bool {
        if let Some(rules) = tables.by_ue(flow.destination).filter(|_| self.shared.hairpin) {
            self.deliver_past_kernel(rules, flow, packet);
            return true;
        }
        !self.is_the_kernels(flow.source) && self.send_to_network_by_xsk(flow, packet)
    }
}
