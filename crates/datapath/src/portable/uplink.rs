//! From tunnels to the data network: what the sockets received, as each of its rules says.

use super::path::{Path, Verdict};
use super::signalling::Signaller;
use super::tables::Tables;
use crate::packet::Flow;
use crate::rules::{Held, Origin, Rules};
use crate::sys::Datagram;
use pith_pfcp::gtpu::{ExtensionHeader, GtpuMessageType, Packet};
use pith_upf::contract::{Destination, DropReason, Qfi, Teid};
use std::net::SocketAddr;
use std::ops::Range;

impl Path {
    /// Forwards what was received into `arena` through the socket of that index.
    pub fn uplink(
        &mut self,
        tables: &Tables,
        signaller: &mut Signaller,
        arena: &[u8],
        received: &[Datagram],
        socket: usize,
    ) {
        for train in received {
            let mut start = train.range.start;
            while start < train.range.end {
                let end = (start + train.segment).min(train.range.end);
                self.handle_datagram(tables, signaller, arena, start..end, train.peer, socket);
                start = end;
            }
        }
        self.n6.flush(arena, &mut self.tun, &self.counters);
        self.flush_n3();
    }

    fn handle_datagram(
        &mut self,
        tables: &Tables,
        signaller: &mut Signaller,
        arena: &[u8],
        datagram: Range<usize>,
        peer: SocketAddr,
        socket: usize,
    ) {
        let Ok(packet) = Packet::decode(arena.get(datagram.clone()).unwrap_or_default()) else {
            return self.drop(DropReason::MalformedGtpu, 1);
        };
        if packet.message_type != GtpuMessageType::G_PDU {
            return signaller.answer(self, &packet, peer, socket);
        }
        let start = datagram.start + packet.header_len;
        let inner = start..start + packet.payload.len();
        self.counters.n3_in.count(1, inner.len());
        if packet.uncomprehended(|header| header == ExtensionHeader::PDU_SESSION_CONTAINER).is_some() {
            return signaller.refuse_extension(self, peer, socket);
        }
        let teid = Teid(packet.teid);
        let Some(rules) = tables.by_teid(teid) else {
            return signaller.refuse_teid(self, teid, peer, socket);
        };
        let qfi = packet.pdu_session_information().map(|information| Qfi(information.qfi()));
        self.forward_from_tunnel(tables, rules, arena, inner, teid, qfi);
    }

    fn forward_from_tunnel(
        &mut self,
        tables: &Tables,
        rules: &Rules,
        arena: &[u8],
        inner: Range<usize>,
        teid: Teid,
        qfi: Option<Qfi>,
    ) {
        let bytes = arena.get(inner.clone()).unwrap_or_default();
        let Some(flow) = Flow::of(bytes) else { return self.drop(DropReason::MalformedInner, 1) };
        let origin = Origin::Tunnel(teid);
        let inner = inner.start..inner.start + flow.length;
        let packet = bytes.get(..flow.length).unwrap_or_default();
        let held = || Held { packet: packet.into(), origin, qfi };
        match self.judge(rules, origin, &flow, qfi) {
            Ok(Verdict::Forward(rule, Destination::Network)) => {
                if self.passes(rules, rule, flow.length) {
                    self.send_to_network(tables, &flow, arena, inner);
                }
            }
            Ok(Verdict::Forward(rule, to)) => self.forward_copy(rules, rule, &to, packet),
            Ok(Verdict::Hold(rule, how)) => self.hold(rules, rule, how, held()),
            Ok(Verdict::Defer) => self.deferred.push(held()),
            Err(reason) => self.drop(reason, 1),
        }
    }

    fn send_to_network(&mut self, tables: &Tables, flow: &Flow, arena: &[u8], packet: Range<usize>) {
        match tables.by_ue(flow.destination) {
            Some(rules) => self.hairpin(rules, flow, arena.get(packet).unwrap_or_default()),
            None => self.n6.push(arena, packet, flow),
        }
    }
}
