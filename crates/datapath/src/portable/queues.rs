//! A worker's queues: the QoS engine and its outputs.

use super::path::Path;
use super::queued_packet::{QueuedPacket, hold_of};
use super::tables::Tables;
use crate::packet::{Flow, mark_congestion};
use crate::rules::{Now, Rule, Rules};
use crossbeam_channel::Receiver;
use pith_upf::contract::{Action, Destination, Direction, DropReason, Event, Fate, PdrId};
use pith_upf::qos::{Engine, Outlet, QueueAction, Room, SessionQueue};
use std::sync::Arc;
use std::time::Duration;

/// Packets received from other workers at once.
const MAX_TAKEN: usize = 1024;
/// Bytes of packets to N6 that are sent together.
const OUTBOX: usize = 256 << 10;
/// Bytes of the longest packet.
const LONGEST: usize = 65_536;
/// Buffers kept for reuse.
const MAX_SPARE: usize = 1024;

/// A worker's queued packets.
#[derive(Debug)]
pub struct Queues {
    pub(super) engine: Engine<QueuedPacket>,
    pub(super) incoming: Receiver<QueuedPacket>,
    /// Packets being sent; until they are sent, later packets must not overtake them.
    leaving: Vec<QueuedPacket>,
    /// Packets to N6, concatenated.
    outbox: Vec<u8>,
}

impl Queues {
    pub fn new(room: Arc<Room>, incoming: Receiver<QueuedPacket>) -> Self {
        Self { engine: Engine::new(room), incoming, leaving: Vec::new(), outbox: Vec::new() }
    }

    /// Whether packets from other workers are pending.
    pub fn has_incoming(&self) -> bool {
        !self.incoming.is_empty()
    }

    /// Time until the next packet is due.
    pub fn due_in(&self, now: Now) -> Option<Duration> {
        self.engine.next_due().map(|due| Duration::from_nanos(due.0.saturating_sub(now.0)))
    }

    /// Queues new packets and sends those that are due.
    pub fn serve(&mut self, path: &mut Path, tables: &Tables) {
        loop {
            let mut outlet =
                QueueOutlet { path, tables, leaving: &mut self.leaving, outbox: &mut self.outbox };
            for queued_packet in std::mem::take(&mut outlet.path.queueing) {
                take_in(&mut self.engine, &mut outlet, queued_packet);
            }
            for queued_packet in self.incoming.try_iter().take(MAX_TAKEN) {
                take_in(&mut self.engine, &mut outlet, queued_packet);
            }
            self.engine.run(outlet.path.now.into(), &mut outlet);
            outlet.finish();
            // A packet sent to another UE of this UPF may have been queued again.
            if path.queueing.is_empty() {
                return;
            }
        }
    }

    /// Applies new rules to queued packets.
    pub fn adopt(&mut self, path: &mut Path, tables: &Tables, rules: &Arc<Rules>) {
        for direction in [Direction::Uplink, Direction::Downlink] {
            if rules.state.waiting(direction).owner() != Some(path.worker) {
                continue;
            }
            let whose = SessionQueue { key: rules.key(direction), flows: rules.flows(direction) };
            let mut outlet =
                QueueOutlet { path, tables, leaving: &mut self.leaving, outbox: &mut self.outbox };
            let now = outlet.path.now.into();
            self.engine.reshape(whose, now, |queued_packet| queued_packet.meet(rules), &mut outlet);
            outlet.finish();
        }
    }

    /// Drops the packets held for a session, and with `all` also those queued.
    pub fn discard(&mut self, path: &mut Path, tables: &Tables, rules: &Rules, all: bool) {
        for direction in [Direction::Uplink, Direction::Downlink] {
            let mut outlet =
                QueueOutlet { path, tables, leaving: &mut self.leaving, outbox: &mut self.outbox };
            self.engine.discard(rules.key(direction), all, &mut outlet);
            outlet.finish();
        }
    }
}

/// Puts a packet into the engine by this worker's rules, which may differ from those of the worker that
/// received it.
fn take_in(engine: &mut Engine<QueuedPacket>, outlet: &mut QueueOutlet<'_>, mut queued_packet: QueuedPacket) {
    let own = outlet.tables.by_id(queued_packet.rules.state.id);
    let Some(rules) = own.filter(|rules| Arc::ptr_eq(&rules.state, &queued_packet.rules.state)) else {
        return outlet.drop(queued_packet, DropReason::BufferDiscarded);
    };
    if !Arc::ptr_eq(rules, &queued_packet.rules)
        && let QueueAction::Drop(reason) = queued_packet.meet(rules)
    {
        return outlet.drop(queued_packet, reason);
    }
    let now = outlet.path.now.into();
    let (direction, arrival) = (queued_packet.direction(), queued_packet.arrival());
    let whose = SessionQueue { key: rules.key(direction), flows: rules.flows(direction) };
    match queued_packet.rule().and_then(hold_of) {
        Some(hold) => engine.hold(whose, now, arrival, queued_packet, hold, outlet),
        None => engine.offer(whose, now, arrival, queued_packet, outlet),
    }
}

/// The output of the engine.
struct QueueOutlet<'a> {
    path: &'a mut Path,
    tables: &'a Tables,
    leaving: &'a mut Vec<QueuedPacket>,
    outbox: &'a mut Vec<u8>,
}

impl QueueOutlet<'_> {
    /// Traces a queued packet, if its session is traced.
    fn trace(&self, queued_packet: &QueuedPacket, fate: Fate) {
        if queued_packet.rules.state.is_traced()
            && let Some(flow) = Flow::of(&queued_packet.bytes)
        {
            self.path.trace(&queued_packet.rules, queued_packet.rule(), queued_packet.ingress(&flow), fate);
        }
    }

    /// Adds a packet to those sent together to N6 or another UE.
    fn to_network(&mut self, flow: &Flow, packet: &[u8]) {
        if self.path.send_past_kernel(self.tables, flow, packet) {
            return;
        }
        if self.outbox.len() + LONGEST > OUTBOX {
            self.flush_n6();
        }
        let start = self.outbox.len();
        self.outbox.extend_from_slice(packet);
        let range = start..self.outbox.len();
        self.path.n6.push(self.outbox, range, flow);
    }

    /// The headers of a packet to the data network, if its current rule permits it; it may have been queued
    /// by another rule.
    fn flow_to_network(
        &mut self,
        queued_packet: &QueuedPacket,
        rule: &Rule,
    ) -> Result<Option<Flow>, DropReason> {
        if matches!(rule.action, Some(Action::Forward(Destination::Tunnel(_)))) {
            return Ok(None);
        }
        let flow = Flow::of(&queued_packet.bytes).ok_or(DropReason::MalformedInner)?;
        if self.path.border.lets_pass(self.tables, &queued_packet.rules, &flow, &queued_packet.bytes) {
            Ok(Some(flow))
        } else {
            Err(DropReason::ClosedDestination)
        }
    }

    fn flush_n6(&mut self) {
        let Path { n6, tun, counters, .. } = &mut *self.path;
        n6.flush(self.outbox, tun, counters);
        self.outbox.clear();
    }

    /// Sends all packets, and then lets later ones be sent directly.
    fn finish(&mut self) {
        if self.leaving.is_empty() {
            return;
        }
        self.flush_n6();
        self.path.flush_n3();
        self.path.ports.flush();
        for queued_packet in self.leaving.drain(..) {
            queued_packet.leave();
            if self.path.spare.len() < MAX_SPARE {
                self.path.spare.push(queued_packet.bytes);
            }
        }
    }
}

impl Outlet<QueuedPacket> for QueueOutlet<'_> {
    fn send(&mut self, mut queued_packet: QueuedPacket, marked: bool) -> bool {
        if marked {
            mark_congestion(&mut queued_packet.bytes);
        }
        let may_pass =
            queued_packet.rule().ok_or(DropReason::NoRule).and_then(|rule| rule.quota().map(|()| rule));
        let may_pass = may_pass.and_then(|rule| Ok((rule, self.flow_to_network(&queued_packet, rule)?)));
        let (rule, flow) = match may_pass {
            Ok(passes) => passes,
            Err(reason) => {
                self.drop(queued_packet, reason);
                return false;
            }
        };
        self.path.count(&queued_packet.rules, rule, queued_packet.bytes.len());
        match (rule.action, flow) {
            (Some(Action::Forward(Destination::Tunnel(tunnel))), _) => {
                self.trace(&queued_packet, Fate::ToTunnel(tunnel));
                self.path.send_copy((rule, queued_packet.qfi()), &tunnel, &queued_packet.bytes);
            }
            (_, Some(flow)) => {
                self.trace(&queued_packet, Fate::ToNetwork);
                self.to_network(&flow, &queued_packet.bytes);
            }
            (_, None) => {}
        }
        self.leaving.push(queued_packet);
        true
    }

    fn drop(&mut self, queued_packet: QueuedPacket, reason: DropReason) {
        self.path.drop(reason, 1);
        self.trace(&queued_packet, Fate::Dropped(reason));
        self.leaving.push(queued_packet);
    }

    fn held(&mut self, queued_packet: &QueuedPacket, pdr: PdrId) {
        let (session, qfi) = (queued_packet.rules.state.id, queued_packet.rule().and_then(|rule| rule.qfi));
        let event = Event::DownlinkData { session, pdr, qfi, dscp: queued_packet.dscp() };
        self.path.shared.events.push(event);
    }
}
