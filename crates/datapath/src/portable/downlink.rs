//! From the data network to UEs: packets and trains read from TUN, into tunnels.

use super::gpdu::write_header;
use super::n3::{Gpdu, HEADROOM};
use super::path::{Path, Verdict, peer_of};
use super::tables::Tables;
use crate::packet::{Flow, Segment, Train, VnetHeader, complete_partial, decrement_ttl};
use crate::rules::{Held, Origin, Rule, Rules};
use pith_upf::contract::{Destination, DropReason, Tunnel};
use std::io;
use std::ops::Range;

/// Packets and trains read before other work has its turn.
const BATCH: usize = 256;

impl Path {
    /// Forwards what waits in the TUN queue, up to a batch. Answers whether there may be more.
    pub fn downlink(&mut self, tables: &Tables) -> bool {
        let mut more = true;
        for _ in 0..BATCH {
            if !self.n3.has_room() {
                self.flush_n3(0);
            }
            match self.n3.read_from(&self.tun) {
                Ok((header, range)) => self.forward_from_network(tables, &VnetHeader::decode(&header), range),
                Err(error) => {
                    more = error.kind() == io::ErrorKind::Interrupted;
                    break;
                }
            }
        }
        self.flush_n3(0);
        more
    }

    /// A packet or train in the N3 batch's arena.
    fn forward_from_network(&mut self, tables: &Tables, header: &VnetHeader, range: Range<usize>) {
        let packet = self.n3.bytes_mut(range.clone());
        let Some(flow) = Flow::of(packet) else { return self.drop(DropReason::MalformedInner, 1) };
        let train = Train::of(header, packet, &flow);
        if train.is_none() {
            complete_partial(header, packet);
        }
        let (packets, bytes) = train.map_or((1, flow.length), |train| (train.count(), train.bytes()));
        self.counters.n6_in.count(packets, bytes);
        let Some(rules) = tables.by_ue(flow.destination) else {
            return self.drop(DropReason::UnknownUe, packets);
        };
        let range = range.start..range.start + flow.length;
        match train {
            None => self.deliver(rules, &flow, range),
            Some(train) => self.deliver_train(rules, &flow, &train, range),
        }
    }

    /// A packet of another UE of this UPF: it takes a hop, but not the way over the kernel.
    pub fn hairpin(&mut self, rules: &Rules, flow: &Flow, packet: &[u8]) {
        let Some(range) = self.copy_in(packet) else { return self.drop(DropReason::N3SendFailed, 1) };
        if decrement_ttl(self.n3.bytes_mut(range.clone())) {
            self.deliver(rules, flow, range);
        } else {
            self.drop(DropReason::TtlExceeded, 1);
        }
    }

    fn deliver(&mut self, rules: &Rules, flow: &Flow, range: Range<usize>) {
        match self.judge(rules, Origin::Network, flow, None) {
            Ok(Verdict::Forward(rule, Destination::Tunnel(tunnel))) => {
                self.forward_in_place(rules, rule, &tunnel, range);
            }
            Ok(verdict) => {
                let packet = self.n3.bytes(range).into();
                self.keep(rules, verdict, packet);
            }
            Err(reason) => self.drop(reason, 1),
        }
    }

    fn deliver_train(&mut self, rules: &Rules, flow: &Flow, train: &Train, range: Range<usize>) {
        match self.judge(rules, Origin::Network, flow, None) {
            Ok(Verdict::Forward(rule, Destination::Tunnel(tunnel))) => {
                for segment in train.segments() {
                    self.forward_segment(rules, rule, &tunnel, train, &segment, range.clone());
                }
            }
            Ok(verdict) => {
                for segment in train.segments() {
                    let packet = train.packet(&segment, self.n3.bytes(range.clone()));
                    self.keep(rules, verdict, packet.into());
                }
            }
            Err(reason) => self.drop(reason, train.count()),
        }
    }

    /// What is not sent at once.
    fn keep(&mut self, rules: &Rules, verdict: Verdict<'_>, packet: Box<[u8]>) {
        let held = Held { packet, origin: Origin::Network, qfi: None };
        match verdict {
            Verdict::Hold(rule, how) => self.hold(rules, rule, how, held),
            Verdict::Defer => self.deferred.push(held),
            // From N6 to N6 would come back for ever.
            Verdict::Forward(..) => self.drop(DropReason::NoRule, 1),
        }
    }

    /// Sends a segment: its headers made anew behind the train, its payload where it lies.
    fn forward_segment(
        &mut self,
        rules: &Rules,
        rule: &Rule,
        tunnel: &Tunnel,
        train: &Train,
        segment: &Segment,
        range: Range<usize>,
    ) {
        let inner = train.header_len() + segment.payload.len();
        if !self.passes(rules, rule, inner) {
            return;
        }
        let Some(head) = self.segment_head(train, segment, range.clone()) else {
            return self.drop(DropReason::N3SendFailed, 1);
        };
        let room = self.n3.bytes_mut(head.start - HEADROOM..head.start);
        let Some(at) = write_header(room, tunnel, rule, inner) else {
            return self.drop(DropReason::N3SendFailed, 1);
        };
        let tail = range.start + segment.payload.start..range.start + segment.payload.end;
        let head = head.start - HEADROOM + at..head.end;
        self.n3.push(Gpdu { peer: peer_of(tunnel), dscp: tunnel.dscp.unwrap_or(0), head, tail, inner });
    }

    /// The headers of a segment, in the arena behind the train at `range`.
    fn segment_head(
        &mut self,
        train: &Train,
        segment: &Segment,
        range: Range<usize>,
    ) -> Option<Range<usize>> {
        if self.n3.headers_full(train.header_len()) {
            self.flush_n3(range.end);
        }
        let head = self.n3.take_header_room(train.header_len())?;
        let (before, room) = self.n3.split_at(range.end);
        let packet = before.get(range.clone())?;
        let out = room.get_mut(head.start - range.end..head.end - range.end)?;
        train.write_header(segment, packet, out);
        Some(head)
    }
}
