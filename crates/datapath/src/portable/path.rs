//! What a worker does with one packet, wherever it came from: judge it by its session's rules, then
//! forward it, have it wait, or drop it by a name.

use super::border::Border;
use super::events::Events;
use super::gpdu::write_header;
use super::n3::{Gpdu, HEADROOM, N3Batch};
use super::n6::N6Batch;
use super::parcel::{Desk, Parcel};
use super::ports::Ports;
use super::routes::Routes;
use crate::config::UePool;
use crate::packet::Flow;
use crate::rules::{Came, Clock, Now, Origin, Rule, Rules, Tracer, Worker, WorkerCounters};
use crate::sys::{GtpuSocket, TunQueue};
use pith_pfcp::gtpu::GTPU_PORT;
use pith_upf::contract::{Action, Destination, DropReason, Event, Fate, Qfi, Tunnel};
use pith_upf::qos::{Colour, Enforcement, Room};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What all workers share.
#[derive(Debug)]
pub struct Shared {
    /// The clock of all times.
    pub clock: Clock,
    /// Bounds on what waits.
    pub room: Arc<Room>,
    /// Whether packets between UEs go past the kernel.
    pub hairpin: bool,
    /// Pools whose packets it has to see.
    pub by_kernel: Box<[UePool]>,
    /// Whether what exceeds rates waits.
    pub enforcement: Enforcement,
    /// What UPF-C is told.
    pub events: Events,
    /// Packets of sessions that an operator follows.
    pub tracer: Tracer,
    /// Where workers get what is theirs to queue.
    pub desks: Box<[Desk]>,
    /// Whether peers are told of tunnels that are not there.
    pub refuses: AtomicBool,
}

/// A worker's ways out, and its counters.
#[derive(Debug)]
pub struct Path {
    /// Which worker.
    pub worker: Worker,
    /// What it shares with the others.
    pub shared: Arc<Shared>,
    /// Its counters.
    pub counters: Arc<WorkerCounters>,
    /// Its sockets on N3, one for each address.
    pub sockets: Vec<GtpuSocket>,
    /// Its queue of the TUN interface.
    pub tun: TunQueue,
    /// What it lets pass.
    pub border: Border,
    /// Its AF_XDP sockets, none where there is no such path.
    pub ports: Ports,
    /// Where packets may leave by these.
    pub routes: Routes,
    /// Identification of the last outer IPv4 header that was made here.
    pub outer_id: u16,
    /// Packets on their way into tunnels.
    pub n3: N3Batch,
    /// Packets on their way to the data network.
    pub n6: N6Batch,
    /// Where packets read from TUN lie; kept for its memory.
    pub read: Vec<Range<usize>>,
    /// Packets that have to wait at this worker, not yet in its queues.
    pub queueing: Vec<Parcel>,
    /// Buffers of packets that have left, for others that have to wait.
    pub spare: Vec<Vec<u8>>,
    /// Other workers that were handed packets, a bit each.
    pub handed: u64,
    /// The time of this batch.
    pub now: Now,
}

/// What to do with a packet that may pass by its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Send it; it is charged and counted.
    Now,
    /// It has to wait.
    Later,
}

impl Path {
    /// Counts packets dropped.
    pub fn drop(&self, reason: DropReason, packets: usize) {
        self.counters.drops.count_many(reason, packets);
    }

    /// Tells of a packet, if an operator follows its session.
    #[inline]
    pub fn trace(&self, rules: &Rules, rule: Option<&Rule>, came: Came<'_>, fate: Fate) {
        if rules.life.is_traced() {
            self.shared.tracer.note(self.now, rules, rule, came, fate);
        }
    }

    /// Drops a packet of a session.
    pub fn refuse(&self, rules: &Rules, rule: Option<&Rule>, came: Came<'_>, reason: DropReason) {
        self.drop(reason, 1);
        self.trace(rules, rule, came, Fate::Dropped(reason));
    }

    /// The rule for a packet, and what it wants done.
    pub fn judge<'r>(
        &self,
        rules: &'r Rules,
        origin: Origin,
        flow: &Flow,
        qfi: Option<Qfi>,
    ) -> Result<(&'r Rule, Action), Refusal<'r>> {
        rules.touch(self.now);
        judge(rules, origin, flow, qfi)
    }

    /// Whether it is a packet's turn, of which rules want that done. It is not while it is to be held.
    pub fn turn_for(
        &self,
        rules: &Rules,
        rule: &Rule,
        action: Action,
        bytes: usize,
    ) -> Result<Turn, DropReason> {
        match action {
            Action::Forward(_) => self.turn(rules, rule, bytes),
            Action::Buffer { .. } | Action::Drop => Ok(Turn::Later),
        }
    }

    /// Whether it is the turn of a packet that is to be forwarded. While others of its session wait, it is
    /// not; nor if its flow exceeds its rates, but where these are policed.
    fn turn(&self, rules: &Rules, rule: &Rule, bytes: usize) -> Result<Turn, DropReason> {
        rule.quota()?;
        if rules.life.waiting(rule.direction()).owner().is_some() {
            return Ok(Turn::Later);
        }
        if rule.flow.admit(self.now.into(), bytes) != Colour::Red {
            self.count(rules, rule, bytes);
            return Ok(Turn::Now);
        }
        match self.shared.enforcement {
            Enforcement::Shape => Ok(Turn::Later),
            Enforcement::Police => {
                rule.flow.refuse(bytes, rule.flow.is_above_own_rate(self.now.into()));
                Err(DropReason::RateExceeded)
            }
        }
    }

    /// Counts a packet that passes.
    pub fn count(&self, rules: &Rules, rule: &Rule, bytes: usize) {
        let session = rules.life.id;
        rule.count(self.worker, bytes, self.now, |urr, volume| {
            self.shared.events.push(Event::Usage { session, urr, volume });
        });
    }

    /// Has a copy of a packet wait, here or at the worker that has its session's queue.
    pub fn queue(&mut self, rules: &Arc<Rules>, rule: &Rule, came: Came<'_>, packet: &[u8]) {
        let mut bytes = self.spare_buffer();
        bytes.extend_from_slice(packet);
        self.queue_owned(rules, rule, came, bytes);
    }

    /// An empty buffer, if there is one from a packet that has left.
    pub fn spare_buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// Has a packet wait.
    pub fn queue_owned(&mut self, rules: &Arc<Rules>, rule: &Rule, came: Came<'_>, bytes: Vec<u8>) {
        let held = matches!(rule.action, Some(Action::Buffer { .. }));
        self.trace(rules, Some(rule), came, if held { Fate::Buffered } else { Fate::Queued });
        let parcel = Parcel::new(Arc::clone(rules), rule.index, came, bytes);
        let owner = rules.life.waiting(rule.direction()).join(self.worker);
        if owner == self.worker {
            return self.queueing.push(parcel);
        }
        match self.shared.desks.get(owner.0) {
            Some(desk) if desk.hand(parcel) => self.handed |= 1 << (owner.0 % 64),
            _ => {
                rule.flow.refuse(came.flow.length, false);
                rules.life.waiting(rule.direction()).leave();
                self.refuse(rules, Some(rule), came, DropReason::QueueFull);
            }
        }
    }

    /// Wakes the workers that were handed packets.
    pub fn nudge(&mut self) {
        let handed = std::mem::take(&mut self.handed);
        let desks = self.shared.desks.iter().enumerate();
        desks.filter(|(at, _)| handed & 1 << (at % 64) != 0).for_each(|(_, desk)| desk.nudge());
    }

    /// Puts a tunnel's header, by its rule and the QFI that it came with, before a packet in the N3 batch's arena, and the packet into the batch.
    pub fn send_in_place(&mut self, by: (&Rule, Option<Qfi>), tunnel: &Tunnel, packet: Range<usize>) {
        let room = self.n3.bytes_mut(packet.start - HEADROOM..packet.start);
        let Some(at) = write_header(room, tunnel, by, packet.len()) else {
            return self.drop(DropReason::N3SendFailed, 1);
        };
        let (inner, gpdu) = (packet.len(), packet.start - HEADROOM + at..packet.end);
        let (peer, dscp) = (peer_of(tunnel), tunnel.dscp.unwrap_or(0));
        if let Some((port, head)) = self.way_into_tunnel(peer, dscp, gpdu.len())
            && self.ports.send(port, head.octets(), self.n3.bytes(gpdu.clone()))
        {
            return self.counters.n3_out.count(1, inner);
        }
        self.n3.push(Gpdu { peer, dscp, head: gpdu, tail: 0..0, inner });
    }

    /// Sends a packet that lies elsewhere into a tunnel.
    pub fn send_copy(&mut self, by: (&Rule, Option<Qfi>), tunnel: &Tunnel, packet: &[u8]) {
        if self.leaves_by_tunnel(by, tunnel, packet) {
            return;
        }
        match self.copy_in(packet) {
            Some(range) => self.send_in_place(by, tunnel, range),
            None => self.drop(DropReason::N3SendFailed, 1),
        }
    }

    /// Copies a packet into the N3 batch's arena, which is flushed first if it is full.
    pub fn copy_in(&mut self, packet: &[u8]) -> Option<Range<usize>> {
        if !self.n3.has_room() {
            self.flush_n3();
        }
        self.n3.copy_in(packet)
    }

    /// Sends what waits for N3.
    pub fn flush_n3(&mut self) {
        self.n3.flush(&self.sockets, &self.counters);
    }
}

/// The rule that a packet met, if one took it, and why it is dropped.
pub type Refusal<'r> = (Option<&'r Rule>, DropReason);

/// The rule for a packet, and what it wants done: to be forwarded or held, if anything.
pub fn judge<'r>(
    rules: &'r Rules,
    origin: Origin,
    flow: &Flow,
    qfi: Option<Qfi>,
) -> Result<(&'r Rule, Action), Refusal<'r>> {
    let rule = rules.find(origin, flow, qfi).ok_or((None, DropReason::NoRule))?;
    let refuse = |reason| Err((Some(rule), reason));
    if rules.is_spoofed(rule, flow.source) {
        return refuse(DropReason::SpoofedSource);
    }
    match rule.action {
        None => refuse(DropReason::NoRule),
        Some(Action::Drop) => refuse(DropReason::RuleDrop),
        // From N6 to N6 would come back for ever.
        Some(Action::Forward(Destination::Network)) if origin == Origin::Network => {
            refuse(DropReason::NoRule)
        }
        Some(action) => match rule.gate() {
            Ok(()) => Ok((rule, action)),
            Err(reason) => refuse(reason),
        },
    }
}

/// Where a tunnel's packets go.
pub fn peer_of(tunnel: &Tunnel) -> SocketAddr {
    SocketAddr::new(tunnel.peer, GTPU_PORT)
}
