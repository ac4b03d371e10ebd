//! A worker's queues: the QoS engine and its outputs.

use super::parcel::{Parcel, hold_of};
use super::path::Path;
use super::tables::Tables;
use crate::packet::{Flow, mark_congestion};
use crate::rules::{Now, Rule, Rules};
use crossbeam_channel::Receiver;
use pith_upf::contract::{Action, Destination, Direction, DropReason, Event, Fate, PdrId};
use pith_upf::qos::{Engine, Outlet, Room, Ruling, Whose};
use std::sync::Arc;
use std::time::Duration;

/// Packets received from other workers at once.
const MOST_TAKEN: usize = 1024;
/// Bytes of packets to N6 that are sent together.
const OUTBOX: usize = 256 << 10;
/// Bytes of the longest packet.
const LONGEST: usize = 65_536;
/// Buffers kept for reuse.
const MOST_SPARE: usize = 1024;

/// A worker's queued packets.
#[derive(Debug)]
pub struct Queues {
    engine: Engine<Parcel>,
    handed: Receiver<Parcel>,
    /// Packets being sent; until they are sent, later packets must not overtake them.
    leaving: Vec<Parcel>,
    /// Packets to N6, concatenated.
    outbox: Vec<u8>,
}

impl Queues {
    pub fn new(room: Arc<Room>, handed: Receiver<Parcel>) -> Self {
        Self { engine: Engine::new(room), handed, leaving: Vec::new(), outbox: Vec::new() }
    }

    /// Whether packets from other workers are pending.
    pub fn is_handed(&self) -> bool {
        !self.handed.is_empty()
    }

    /// Time until the next packet is due.
    pub fn due_in(&self, now: Now) -> Option<Duration> {
        self.engine.next_due().map(|due| Duration::from_nanos(due.0.saturating_sub(now.0)))
    }

    /// Queues new packets and sends those that are due.
    pub fn serve(&mut self, path: &mut Path, tables: &Tables) {
        loop {
            let mut turn = Turn { path, tables, leaving: &mut self.leaving, outbox: &mut self.outbox };
            for parcel in std::mem::take(&mut turn.path.queueing) {
                take_in(&mut self.engine, &mut turn, parcel);
            }
            for parcel in self.handed.try_iter().take(MOST_TAKEN) {
                take_in(&mut self.engine, &mut turn, parcel);
            }
            self.engine.run(turn.path.now.into(), &mut turn);
            turn.finish();
            // A packet sent to another UE of this UPF may have been queued again.
            if path.queueing.is_empty() {
                return;
            }
        }
    }

    /// Applies new rules to queued packets.
    pub fn adopt(&mut self, path: &mut Path, tables: &Tables, rules: &Arc<Rules>) {
        for direction in [Direction::Uplink, Direction::Downlink] {
            if rules.life.waiting(direction).owner() != Some(path.worker) {
                continue;
            }
            let whose = Whose { key: rules.key(direction), flows: rules.flows(direction) };
            let mut turn = Turn { path, tables, leaving: &mut self.leaving, outbox: &mut self.outbox };
            let now = turn.path.now.into();
            self.engine.reshape(whose, now, |parcel| parcel.meet(rules), &mut turn);
            turn.finish();
        }
    }

    /// Drops the packets held for a session, and with `all` also those queued.
    pub fn discard(&mut self, path: &mut Path, tables: &Tables, rules: &Rules, all: bool) {
        for direction in [Direction::Uplink, Direction::Downlink] {
            let mut turn = Turn { path, tables, leaving: &mut self.leaving, outbox: &mut self.outbox };
            self.engine.discard(rules.key(direction), all, &mut turn);
            turn.finish();
        }
    }
}

/// Puts a packet into the engine by this worker's rules, which may differ from those of the worker that
/// received it.
fn take_in(engine: &mut Engine<Parcel>, turn: &mut Turn<'_>, mut parcel: Parcel) {
    let own = turn.tables.by_id(parcel.rules.life.id);
    let Some(rules) = own.filter(|rules| Arc::ptr_eq(&rules.life, &parcel.rules.life)) else {
        return turn.drop(parcel, DropReason::BufferDiscarded);
    };
    if !Arc::ptr_eq(rules, &parcel.rules)
        && let Ruling::Drop(reason) = parcel.meet(rules)
    {
        return turn.drop(parcel, reason);
    }
    let now = turn.path.now.into();
    let (direction, arrival) = (parcel.direction(), parcel.arrival());
    let whose = Whose { key: rules.key(direction), flows: rules.flows(direction) };
    match parcel.rule().and_then(hold_of) {
        Some(hold) => engine.hold(whose, now, arrival, parcel, hold, turn),
        None => engine.offer(whose, now, arrival, parcel, turn),
    }
}

/// The output of the engine.
struct Turn<'a> {
    path: &'a mut Path,
    tables: &'a Tables,
    leaving: &'a mut Vec<Parcel>,
    outbox: &'a mut Vec<u8>,
}

impl Turn<'_> {
    /// Traces a queued packet, if its session is traced.
    fn trace(&self, parcel: &Parcel, fate: Fate) {
        if parcel.rules.life.is_traced()
            && let Some(flow) = Flow::of(&parcel.bytes)
        {
            self.path.trace(&parcel.rules, parcel.rule(), parcel.came(&flow), fate);
        }
    }

    /// Adds a packet to those sent together to N6 or another UE.
    fn to_network(&mut self, flow: &Flow, packet: &[u8]) {
        if self.path.sends_past_kernel(self.tables, flow, packet) {
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
    fn flow_to_network(&mut self, parcel: &Parcel, rule: &Rule) -> Result<Option<Flow>, DropReason> {
        if matches!(rule.action, Some(Action::Forward(Destination::Tunnel(_)))) {
            return Ok(None);
        }
        let flow = Flow::of(&parcel.bytes).ok_or(DropReason::MalformedInner)?;
        match self.path.border.lets_pass(self.tables, &parcel.rules, &flow, &parcel.bytes) {
            true => Ok(Some(flow)),
            false => Err(DropReason::ClosedDestination),
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
        for parcel in self.leaving.drain(..) {
            parcel.leave();
            if self.path.spare.len() < MOST_SPARE {
                self.path.spare.push(parcel.bytes);
            }
        }
    }
}

impl Outlet<Parcel> for Turn<'_> {
    fn send(&mut self, mut parcel: Parcel, marked: bool) -> bool {
        if marked {
            mark_congestion(&mut parcel.bytes);
        }
        let may_pass = parcel.rule().ok_or(DropReason::NoRule).and_then(|rule| rule.quota().map(|()| rule));
        let may_pass = may_pass.and_then(|rule| Ok((rule, self.flow_to_network(&parcel, rule)?)));
        let (rule, flow) = match may_pass {
            Ok(passes) => passes,
            Err(reason) => {
                self.drop(parcel, reason);
                return false;
            }
        };
        self.path.count(&parcel.rules, rule, parcel.bytes.len());
        match (rule.action, flow) {
            (Some(Action::Forward(Destination::Tunnel(tunnel))), _) => {
                self.trace(&parcel, Fate::ToTunnel(tunnel));
                self.path.send_copy((rule, parcel.qfi()), &tunnel, &parcel.bytes);
            }
            (_, Some(flow)) => {
                self.trace(&parcel, Fate::ToNetwork);
                self.to_network(&flow, &parcel.bytes);
            }
            (_, None) => {}
        }
        self.leaving.push(parcel);
        true
    }

    fn drop(&mut self, parcel: Parcel, reason: DropReason) {
        self.path.drop(reason, 1);
        self.trace(&parcel, Fate::Dropped(reason));
        self.leaving.push(parcel);
    }

    fn held(&mut self, parcel: &Parcel, pdr: PdrId) {
        let (session, qfi) = (parcel.rules.life.id, parcel.rule().and_then(|rule| rule.qfi));
        let event = Event::DownlinkData { session, pdr, qfi, dscp: parcel.dscp() };
        self.path.shared.events.push(event);
    }
}
