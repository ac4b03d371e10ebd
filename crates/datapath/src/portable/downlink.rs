//! Downlink: packets and trains read from TUN, sent into tunnels.

use super::gpdu::write_header;
use super::n3::{Gpdu, HEADROOM};
use super::path::{Path, SendDecision, peer_of};
use super::tables::Tables;
use crate::packet::{Flow, Segment, Train, complete_partial, decrement_ttl};
use crate::rules::{Ingress, Origin, Rule, Rules};
use pith_upf::contract::{Action, Destination, DropReason, Fate, Tunnel};
use std::ops::Range;
use std::sync::Arc;

impl Path {
    /// Reads packets from the TUN queue, up to a batch. Returns whether there may be more.
    pub fn read_from_network(&mut self) -> bool {
        self.n3.read_from(&mut self.tun, &mut self.read)
    }

    /// Forwards the packets that were read.
    pub fn forward_read(&mut self, tables: &Tables) {
        let mut read = std::mem::take(&mut self.read);
        let mut trains = false;
        for packet in read.drain(..) {
            trains |= self.forward_from_network(tables, packet);
        }
        // A train is sent from its slot, which the next read overwrites.
        if trains {
            self.flush_n3();
        }
        self.read = read;
    }

    /// Forwards a packet or train in its slot. Returns whether it is a train.
    fn forward_from_network(&mut self, tables: &Tables, range: Range<usize>) -> bool {
        let header = self.n3.vnet_header(&range);
        let packet = self.n3.bytes_mut(range.clone());
        let Some(flow) = Flow::of(packet) else {
            self.drop(DropReason::MalformedInner, 1);
            return false;
        };
        let train = Train::of(&header, packet, &flow);
        if train.is_none() {
            complete_partial(&header, packet);
        }
        let (packets, bytes) = train.map_or((1, flow.length), |train| (train.count(), train.bytes()));
        self.counters.n6_in.count(packets, bytes);
        let range = range.start..range.start + flow.length;
        match (tables.by_ue(flow.destination), train) {
            (None, _) => self.drop(DropReason::UnknownUe, packets),
            (Some(rules), _) if !self.admits(tables, rules, &flow, range.clone()) => {
                let ingress = Ingress { origin: Origin::Network, qfi: None, flow: &flow };
                (0..packets).for_each(|_| self.refuse(rules, None, ingress, DropReason::SpoofedSource));
            }
            (Some(rules), None) => self.deliver_from_slot(rules, &flow, range),
            (Some(rules), Some(train)) => self.deliver_train(rules, &flow, &train, range),
        }
        train.is_some()
    }

    /// Whether a packet from outside, or of this host, may have its source address.
    fn admits(&mut self, tables: &Tables, rules: &Rules, flow: &Flow, packet: Range<usize>) -> bool {
        let by_kernel = !self.shared.hairpin;
        self.border.admits(tables, rules, flow, self.n3.bytes(packet), by_kernel)
    }

    fn deliver_from_slot(&mut self, rules: &Arc<Rules>, flow: &Flow, range: Range<usize>) {
        if !self.n3.has_room() {
            self.flush_n3();
        }
        let range = self.n3.move_out(range);
        self.deliver(rules, flow, range);
    }

    /// Delivers a packet from another UE of this UPF or from AF_XDP: its hop limit is decremented here,
    /// because the kernel does not route it.
    pub fn deliver_past_kernel(&mut self, rules: &Arc<Rules>, flow: &Flow, packet: &[u8]) {
        let ingress = Ingress { origin: Origin::Network, qfi: None, flow };
        let (rule, action) = match self.select_rule(rules, Origin::Network, flow, None) {
            Ok(found) => found,
            Err((rule, reason)) => return self.refuse(rules, rule, ingress, reason),
        };
        let mut bytes = self.spare_buffer();
        bytes.extend_from_slice(packet);
        if !decrement_ttl(&mut bytes) {
            return self.refuse(rules, Some(rule), ingress, DropReason::TtlExceeded);
        }
        match (self.send_decision(rules, rule, action, packet.len()), action) {
            (Ok(SendDecision::Send), Action::Forward(Destination::Tunnel(tunnel))) => {
                self.trace(rules, Some(rule), ingress, Fate::ToTunnel(tunnel));
                self.send_copy((rule, None), &tunnel, &bytes);
                self.spare.push(bytes);
            }
            (Ok(_), _) => self.queue_owned(rules, rule, ingress, bytes),
            (Err(reason), _) => self.refuse(rules, Some(rule), ingress, reason),
        }
    }

    fn deliver(&mut self, rules: &Arc<Rules>, flow: &Flow, packet: Range<usize>) {
        let ingress = Ingress { origin: Origin::Network, qfi: None, flow };
        let (rule, action) = match self.select_rule(rules, Origin::Network, flow, None) {
            Ok(found) => found,
            Err((rule, reason)) => return self.refuse(rules, rule, ingress, reason),
        };
        match (self.send_decision(rules, rule, action, packet.len()), action) {
            (Ok(SendDecision::Send), Action::Forward(Destination::Tunnel(tunnel))) => {
                self.trace(rules, Some(rule), ingress, Fate::ToTunnel(tunnel));
                self.send_in_place((rule, None), &tunnel, packet);
            }
            (Ok(_), _) => {
                let mut bytes = self.spare_buffer();
                bytes.extend_from_slice(self.n3.bytes(packet));
                self.queue_owned(rules, rule, ingress, bytes);
            }
            (Err(reason), _) => self.refuse(rules, Some(rule), ingress, reason),
        }
    }

    /// Splits a train: packets with tokens are sent, the others are queued one by one, so that the train
    /// takes no more than its share.
    fn deliver_train(&mut self, rules: &Arc<Rules>, flow: &Flow, train: &Train, range: Range<usize>) {
        let whole = Ingress { origin: Origin::Network, qfi: None, flow };
        let (rule, action) = match self.select_rule(rules, Origin::Network, flow, None) {
            Ok(found) => found,
            Err((rule, reason)) => {
                return train.segments().for_each(|_| self.refuse(rules, rule, whole, reason));
            }
        };
        for segment in train.segments() {
            let inner = train.header_len() + segment.payload.len();
            let ingress = Ingress { flow: &Flow { length: inner, ..*flow }, ..whole };
            match (self.send_decision(rules, rule, action, inner), action) {
                (Ok(SendDecision::Send), Action::Forward(Destination::Tunnel(tunnel))) => {
                    self.trace(rules, Some(rule), ingress, Fate::ToTunnel(tunnel));
                    self.send_segment(rule, &tunnel, train, &segment, range.clone());
                }
                (Ok(_), _) => {
                    let mut bytes = self.spare_buffer();
                    train.write_packet(&segment, self.n3.bytes(range.clone()), &mut bytes);
                    self.queue_owned(rules, rule, ingress, bytes);
                }
                (Err(reason), _) => self.refuse(rules, Some(rule), ingress, reason),
            }
        }
    }

    /// Sends a segment with newly built headers; its payload is not copied.
    fn send_segment(
        &mut self,
        rule: &Rule,
        tunnel: &Tunnel,
        train: &Train,
        segment: &Segment,
        range: Range<usize>,
    ) {
        let inner = train.header_len() + segment.payload.len();
        let Some(head) = self.segment_head(train, segment, range.clone()) else {
            return self.drop(DropReason::N3SendFailed, 1);
        };
        let room = self.n3.bytes_mut(head.start - HEADROOM..head.start);
        let Some(at) = write_header(room, tunnel, (rule, None), inner) else {
            return self.drop(DropReason::N3SendFailed, 1);
        };
        let tail = range.start + segment.payload.start..range.start + segment.payload.end;
        let head = head.start - HEADROOM + at..head.end;
        let tos = self.outer_tos(tunnel, self.n3.bytes(range));
        self.n3.push(Gpdu { peer: peer_of(tunnel), tos, head, tail, inner });
    }

    /// Builds the headers of a segment of the train at `range`, behind the slots.
    fn segment_head(
        &mut self,
        train: &Train,
        segment: &Segment,
        range: Range<usize>,
    ) -> Option<Range<usize>> {
        if self.n3.headers_full(train.header_len()) {
            self.flush_n3();
        }
        let head = self.n3.take_header_room(train.header_len())?;
        let (slots, start, rest) = self.n3.split();
        let packet = slots.get(range)?;
        train.write_header(segment, packet, rest.get_mut(head.start - start..head.end - start)?);
        Some(head)
    }
}
