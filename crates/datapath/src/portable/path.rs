//! What a worker does with one packet, wherever it came from: judge it by its session's rules, then
//! forward it, hold it, or drop it by a name.

use super::events::Events;
use super::gpdu::write_header;
use super::n3::{Gpdu, HEADROOM, N3Batch};
use super::n6::{N6Batch, write_packet};
use super::tables::Tables;
use crate::packet::Flow;
use crate::rules::{Buffered, Buffers, Clock, Held, Now, Origin, Queue, Rule, Rules, Worker, WorkerCounters};
use crate::sys::{GtpuSocket, TunQueue};
use pith_pfcp::gtpu::GTPU_PORT;
use pith_upf::contract::{Action, Destination, DropReason, Event, Qfi, Tunnel};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

/// What all workers share.
#[derive(Debug)]
pub struct Shared {
    /// The clock of all times.
    pub clock: Clock,
    /// Bounds on what is held.
    pub buffers: Buffers,
    /// What UPF-C is told.
    pub events: Events,
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
    /// Packets on their way into tunnels.
    pub n3: N3Batch,
    /// Packets on their way to the data network.
    pub n6: N6Batch,
    /// Where packets read from TUN lie; kept for its memory.
    pub read: Vec<Range<usize>>,
    /// Packets that have to meet newer rules, or wait for a release.
    pub deferred: Vec<Held>,
    /// The time of this batch.
    pub now: Now,
}

/// What rules want done with a packet.
#[derive(Debug, Clone, Copy)]
pub enum Verdict<'r> {
    /// Send it, if its QERs agree.
    Forward(&'r Rule, Destination),
    /// Hold it.
    Hold(&'r Rule, Hold),
    /// Packets before it have to leave first.
    Defer,
}

/// How to hold a packet.
#[derive(Debug, Clone, Copy)]
pub struct Hold {
    notify: bool,
    packets: Option<u16>,
}

impl Path {
    /// Counts packets dropped.
    pub fn drop(&self, reason: DropReason, packets: usize) {
        self.counters.drops.count_many(reason, packets);
    }

    /// What the session's rules want done with a packet.
    pub fn judge<'r>(
        &self,
        rules: &'r Rules,
        origin: Origin,
        flow: &Flow,
        qfi: Option<Qfi>,
    ) -> Result<Verdict<'r>, DropReason> {
        rules.touch(self.now);
        // Behind one deferred packet all wait, so that none overtakes another of its flow.
        if rules.life.buffer.is_due() || !self.deferred.is_empty() {
            return Ok(Verdict::Defer);
        }
        judge_now(rules, origin, flow, qfi)
    }

    /// Whether QERs and quotas let a packet of `bytes` pass; it is counted if so, else dropped.
    pub fn passes(&self, rules: &Rules, rule: &Rule, bytes: usize) -> bool {
        if let Err(reason) = rule.enforce(bytes, self.now) {
            self.drop(reason, 1);
            return false;
        }
        let session = rules.life.id;
        rule.count(self.worker, bytes, self.now, |urr, volume| {
            self.shared.events.push(Event::Usage { session, urr, volume });
        });
        true
    }

    /// Holds a packet for a session, and tells of the first.
    pub fn hold(&mut self, rules: &Rules, rule: &Rule, how: Hold, held: Held) {
        let dscp = Flow::of(&held.packet).map_or(0, |flow| flow.tos >> 2);
        let buffer = &rules.life.buffer;
        match buffer.hold(&self.shared.buffers, rules.generation, how.packets, rule.pdr, held) {
            Buffered::First if how.notify => self.shared.events.push(Event::DownlinkData {
                session: rules.life.id,
                pdr: rule.pdr,
                qfi: rule.qfi,
                dscp,
            }),
            Buffered::First | Buffered::Further => {}
            Buffered::Full => self.drop(DropReason::BufferFull, 1),
            Buffered::Outdated(held) => self.deferred.push(held),
        }
    }

    /// Puts a tunnel's header before a packet in the N3 batch's arena, and the packet into the batch,
    /// if QERs let it pass.
    pub fn forward_in_place(&mut self, rules: &Rules, rule: &Rule, tunnel: &Tunnel, packet: Range<usize>) {
        if !self.passes(rules, rule, packet.len()) {
            return;
        }
        let room = self.n3.bytes_mut(packet.start - HEADROOM..packet.start);
        let Some(at) = write_header(room, tunnel, rule, packet.len()) else {
            return self.drop(DropReason::N3SendFailed, 1);
        };
        let (inner, head) = (packet.len(), packet.start - HEADROOM + at..packet.end);
        self.n3.push(Gpdu { peer: peer_of(tunnel), dscp: tunnel.dscp.unwrap_or(0), head, tail: 0..0, inner });
    }

    /// Sends a packet that lies elsewhere, if QERs let it pass.
    pub fn forward_copy(&mut self, rules: &Rules, rule: &Rule, to: &Destination, packet: &[u8]) {
        match to {
            Destination::Tunnel(tunnel) => match self.copy_in(packet) {
                Some(range) => self.forward_in_place(rules, rule, tunnel, range),
                None => self.drop(DropReason::N3SendFailed, 1),
            },
            Destination::Network if self.passes(rules, rule, packet.len()) => {
                write_packet(packet, &self.tun, &self.counters);
            }
            Destination::Network => {}
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

    /// Takes a deferred packet up again, now that its worker has the newest rules.
    pub fn resume(&mut self, tables: &Tables, held: Held) {
        let Some(flow) = Flow::of(&held.packet) else { return };
        let (found, missing) = match held.origin {
            Origin::Tunnel(teid) => (tables.by_teid(teid), DropReason::UnknownTeid),
            Origin::Network => (tables.by_ue(flow.destination), DropReason::UnknownUe),
        };
        let Some(rules) = found else { return self.drop(missing, 1) };
        if rules.life.buffer.is_due() {
            self.release(rules);
        }
        match self.judge(rules, held.origin, &flow, held.qfi) {
            Ok(Verdict::Forward(rule, to)) => self.forward_copy(rules, rule, &to, &held.packet),
            Ok(Verdict::Hold(rule, how)) => self.hold(rules, rule, how, held),
            Ok(Verdict::Defer) => self.deferred.push(held),
            Err(reason) => self.drop(reason, 1),
        }
    }

    /// Sends what a session holds, in order, as far as its rules forward it now; what they drop now is
    /// gone, what they still buffer stays.
    pub fn release(&mut self, rules: &Rules) {
        let shared = Arc::clone(&self.shared);
        rules.life.buffer.release(&shared.buffers, rules.generation, |held| {
            let kept = self.send_held(rules, held);
            self.flush_n3();
            kept
        });
    }

    fn send_held(&mut self, rules: &Rules, packets: Queue) -> Queue {
        let mut kept = Queue::new();
        for (pdr, held) in packets {
            let Some(flow) = Flow::of(&held.packet) else { continue };
            match judge_now(rules, held.origin, &flow, held.qfi) {
                Ok(Verdict::Forward(rule, to)) => self.forward_copy(rules, rule, &to, &held.packet),
                Ok(Verdict::Hold(..) | Verdict::Defer) => kept.push_back((pdr, held)),
                Err(_) => self.drop(DropReason::BufferDiscarded, 1),
            }
        }
        kept
    }
}

/// As [`Path::judge`], whether or not a release is due.
fn judge_now<'r>(
    rules: &'r Rules,
    origin: Origin,
    flow: &Flow,
    qfi: Option<Qfi>,
) -> Result<Verdict<'r>, DropReason> {
    let rule = rules.find(origin, flow, qfi).ok_or(DropReason::NoRule)?;
    if rules.is_spoofed(rule, flow.source) {
        return Err(DropReason::SpoofedSource);
    }
    match rule.action.ok_or(DropReason::NoRule)? {
        Action::Drop => Err(DropReason::RuleDrop),
        Action::Forward(to) => Ok(Verdict::Forward(rule, to)),
        Action::Buffer { notify, packets } => {
            rule.gate()?;
            Ok(Verdict::Hold(rule, Hold { notify, packets }))
        }
    }
}

/// Where a tunnel's packets go.
pub fn peer_of(tunnel: &Tunnel) -> SocketAddr {
    SocketAddr::new(tunnel.peer, GTPU_PORT)
}
