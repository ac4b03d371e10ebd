//! Handles one packet, independently of how it was received: applies its session's rules, then forwards,
//! queues or drops it.

use super::border::Border;
use super::events::Events;
use super::gpdu::write_header;
use super::n3::{Gpdu, HEADROOM, N3Batch};
use super::n6::N6Batch;
use super::ports::Ports;
use super::queued_packet::{QueuedPacket, WorkerQueue};
use super::routes::{Outer, OuterIds, Routes};
use crate::config::UePool;
use crate::packet::{Flow, source_port, tos_of};
use crate::rules::{Clock, Ingress, Now, Origin, Rule, Rules, Tracer, Worker, WorkerCounters};
use crate::sys::{GtpuSocket, TunQueue};
use pith_pfcp::gtpu::GTPU_PORT;
use pith_upf::contract::{
    Action, AddressRange, Destination, DropReason, Event, Fate, Qfi, Tunnel, UeAddress,
};
use pith_upf::qos::{Colour, Enforcement, Room};
use std::net::{Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Both bits of the ECN field.
const ECN: u8 = 3;

/// State shared by all workers.
#[derive(Debug)]
pub struct Shared {
    pub clock: Clock,
    /// Limits on queued packets.
    pub room: Arc<Room>,
    /// Whether packets between UEs are forwarded without the kernel.
    pub hairpin: bool,
    /// Pools whose packets the kernel must handle.
    pub by_kernel: Arc<[UePool]>,
    /// Whether packets above rates are queued or dropped.
    pub enforcement: Enforcement,
    /// Whether the source port by AF_XDP depends on the packet's flow.
    pub flow_ports: bool,
    /// Whether outer headers get the ECN field of their packet.
    pub outer_ecn: bool,
    /// The largest packet of a UE, in octets, which the UPF advertises.
    pub mtu: u16,
    /// The DUID of the DHCPv6 server.
    pub duid: [u8; 18],
    /// DNS servers by pool, for UEs that request them by DHCPv6.
    pub dns: Box<[(AddressRange, Vec<Ipv6Addr>)]>,
    /// Events for UPF-C.
    pub events: Events,
    /// Packets of traced sessions.
    pub tracer: Tracer,
    /// For each worker, the queue of packets from other workers.
    pub worker_queues: Box<[WorkerQueue]>,
    /// Whether unknown TEIDs are answered with Error Indications.
    pub refuses: AtomicBool,
    #[cfg(test)]
    pub delay: Delay,
}

impl Shared {
    /// The DNS servers of a UE's pool.
    pub fn dns_of(&self, ue: UeAddress) -> &[Ipv6Addr] {
        let Some(prefix) = ue.v6 else { return &[] };
        let pool = self.dns.iter().find(|(pool, _)| pool.contains(prefix.into()));
        pool.map_or(&[], |(_, servers)| servers)
    }
}

/// A delay of workers before they receive packets, for tests of what happens meanwhile.
#[cfg(test)]
#[derive(Debug, Default)]
pub struct Delay {
    pub millis: std::sync::atomic::AtomicU64,
    /// How often a worker was delayed.
    pub count: std::sync::atomic::AtomicU64,
}

#[cfg(test)]
impl Delay {
    pub fn wait(&self) {
        use std::sync::atomic::Ordering::SeqCst;
        let millis = self.millis.load(SeqCst);
        if millis > 0 {
            self.count.fetch_add(1, SeqCst);
            std::thread::sleep(std::time::Duration::from_millis(millis));
        }
    }
}

/// A worker's outputs and counters.
#[derive(Debug)]
pub struct Path {
    pub worker: Worker,
    pub shared: Arc<Shared>,
    pub counters: Arc<WorkerCounters>,
    /// Its sockets on N3, one for each address.
    pub sockets: Vec<GtpuSocket>,
    /// Its queue of the TUN interface.
    pub tun: TunQueue,
    /// Closed destinations and accepted peers.
    pub border: Border,
    /// Its AF_XDP sockets, if any.
    pub ports: Ports,
    /// Routes of its AF_XDP sockets.
    pub routes: Routes,
    /// Identifications of outer IPv4 headers that it writes itself.
    pub outer_ids: OuterIds,
    /// Packets to be sent into tunnels.
    pub n3: N3Batch,
    /// Packets to be sent to the data network.
    pub n6: N6Batch,
    /// Positions of packets read from TUN; kept to reuse its memory.
    pub read: Vec<Range<usize>>,
    /// Packets to be queued at this worker.
    pub queueing: Vec<QueuedPacket>,
    /// Buffers to reuse for packets that must be queued.
    pub spare: Vec<Vec<u8>>,
    /// Packets to be queued at other workers, once this worker's batches are sent: these may contain earlier packets of their flows.
    pub for_others: Vec<(Worker, QueuedPacket)>,
    pub now: Now,
}

/// Whether a packet that its rule forwards can be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendDecision {
    /// Send it; it is charged and counted.
    Send,
    /// Queue it.
    Queue,
}

impl Path {
    pub fn drop(&self, reason: DropReason, packets: usize) {
        self.counters.drops.count_many(reason, packets);
    }

    /// Traces a packet, if its session is traced.
    #[inline]
    pub fn trace(&self, rules: &Rules, rule: Option<&Rule>, ingress: Ingress<'_>, fate: Fate) {
        if rules.state.is_traced() {
            self.shared.tracer.note(self.now, rules, rule, ingress, fate);
        }
    }

    /// Drops a packet of a session.
    pub fn refuse(&self, rules: &Rules, rule: Option<&Rule>, ingress: Ingress<'_>, reason: DropReason) {
        self.drop(reason, 1);
        self.trace(rules, rule, ingress, Fate::Dropped(reason));
    }

    /// The rule for a packet, and its action.
    pub fn select_rule<'r>(
        &self,
        rules: &'r Rules,
        origin: Origin,
        flow: &Flow,
        qfi: Option<Qfi>,
    ) -> Result<(&'r Rule, Action), Refusal<'r>> {
        rules.touch(self.now);
        select_rule(rules, origin, flow, qfi)
    }

    /// Whether a packet with that action can be sent now; a packet to be held is queued.
    pub fn send_decision(
        &self,
        rules: &Rules,
        rule: &Rule,
        action: Action,
        bytes: usize,
    ) -> Result<SendDecision, DropReason> {
        match action {
            Action::Forward(_) => self.forward_decision(rules, rule, bytes),
            Action::Buffer { .. } | Action::Drop => Ok(SendDecision::Queue),
        }
    }

    /// Whether a packet to be forwarded can be sent now. It is queued while its session has queued packets,
    /// and, unless rates are policed, if its flow exceeds its rates.
    fn forward_decision(&self, rules: &Rules, rule: &Rule, bytes: usize) -> Result<SendDecision, DropReason> {
        rule.quota()?;
        if rules.state.waiting(rule.direction()).owner().is_some() {
            return Ok(SendDecision::Queue);
        }
        if rule.flow.admit(self.now.into(), bytes) != Colour::Red {
            self.count(rules, rule, bytes);
            return Ok(SendDecision::Send);
        }
        match self.shared.enforcement {
            Enforcement::Shape => Ok(SendDecision::Queue),
            Enforcement::Police => {
                rule.flow.refuse(bytes, rule.flow.is_above_own_rate(self.now.into()));
                Err(DropReason::RateExceeded)
            }
        }
    }

    /// Counts a forwarded packet.
    pub fn count(&self, rules: &Rules, rule: &Rule, bytes: usize) {
        let session = rules.state.id;
        rule.count(self.worker, bytes, self.now, |urr, volume| {
            self.shared.events.push(Event::Usage { session, urr, volume });
        });
    }

    /// Queues a copy of a packet, here or at the worker that owns its session's queue.
    pub fn queue(&mut self, rules: &Arc<Rules>, rule: &Rule, ingress: Ingress<'_>, packet: &[u8]) {
        let mut bytes = self.spare_buffer();
        bytes.extend_from_slice(packet);
        self.queue_owned(rules, rule, ingress, bytes);
    }

    /// An empty buffer, reused if possible.
    pub fn spare_buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// Queues a packet.
    pub fn queue_owned(&mut self, rules: &Arc<Rules>, rule: &Rule, ingress: Ingress<'_>, bytes: Vec<u8>) {
        let held = matches!(rule.action, Some(Action::Buffer { .. }));
        self.trace(rules, Some(rule), ingress, if held { Fate::Buffered } else { Fate::Queued });
        let queued_packet = QueuedPacket::new(Arc::clone(rules), rule.index, ingress, bytes);
        let owner = rules.state.waiting(rule.direction()).join(self.worker);
        if owner == self.worker {
            self.queueing.push(queued_packet);
        } else {
            self.for_others.push((owner, queued_packet));
        }
    }

    /// Gives other workers the packets for their queues, and wakes them. The batches are sent.
    pub fn give_to_others(&mut self) {
        if self.for_others.is_empty() {
            return;
        }
        let mut packets = std::mem::take(&mut self.for_others);
        let mut receivers = 0u64;
        for (owner, queued_packet) in packets.drain(..) {
            match self.shared.worker_queues.get(owner.0).map(|queue| queue.push(queued_packet)) {
                Some(Ok(())) => receivers |= 1 << (owner.0 % 64),
                Some(Err(queued_packet)) => self.refuse_queued(&queued_packet),
                None => {}
            }
        }
        self.for_others = packets;
        let worker_queues = self.shared.worker_queues.iter().enumerate();
        worker_queues
            .filter(|(at, _)| receivers & 1 << (at % 64) != 0)
            .for_each(|(_, queue)| queue.wake_if_parked());
    }

    /// Drops a packet that its queue has no room for.
    fn refuse_queued(&self, queued_packet: &QueuedPacket) {
        queued_packet.leave();
        let rule = queued_packet.rule();
        rule.iter().for_each(|rule| rule.flow.refuse(queued_packet.bytes.len(), false));
        match Flow::of(&queued_packet.bytes) {
            Some(flow) => {
                let ingress = queued_packet.ingress(&flow);
                self.refuse(&queued_packet.rules, rule, ingress, DropReason::QueueFull);
            }
            None => self.drop(DropReason::QueueFull, 1),
        }
    }

    /// Writes the tunnel's headers before a packet in the N3 batch's arena, by its rule and received QFI, and
    /// adds the packet to the batch.
    pub fn send_in_place(&mut self, by: (&Rule, Option<Qfi>), tunnel: &Tunnel, packet: Range<usize>) {
        let room = self.n3.bytes_mut(packet.start - HEADROOM..packet.start);
        let Some(at) = write_header(room, tunnel, by, packet.len()) else {
            return self.drop(DropReason::N3SendFailed, 1);
        };
        let (inner, gpdu) = (packet.len(), packet.start - HEADROOM + at..packet.end);
        let outer = self.outer(tunnel, self.n3.bytes(packet));
        if let Some((port, head)) = self.tunnel_route(outer, gpdu.len())
            && self.ports.send(port, head.octets(), self.n3.bytes(gpdu.clone()))
        {
            return self.counters.n3_out.count(1, inner);
        }
        self.n3.push(Gpdu { peer: outer.peer, tos: outer.tos, head: gpdu, tail: 0..0, inner });
    }

    /// The outer headers of a packet, by AF_XDP. The GTP-U socket sends from its own port: packets of several flows leave as
    /// one train.
    pub fn outer(&self, tunnel: &Tunnel, packet: &[u8]) -> Outer {
        let by_flow = self.shared.flow_ports && !self.ports.is_empty();
        let port = if by_flow { source_port(packet) } else { GTPU_PORT };
        Outer { peer: peer_of(tunnel), tos: self.outer_tos(tunnel, packet), port }
    }

    /// The type of service of a packet's outer header: the tunnel's DSCP, and the packet's ECN field (RFC 6040 4.1).
    pub fn outer_tos(&self, tunnel: &Tunnel, packet: &[u8]) -> u8 {
        let ecn = if self.shared.outer_ecn { tos_of(packet) & ECN } else { 0 };
        tunnel.dscp.unwrap_or(0) << 2 | ecn
    }

    /// Sends a packet that is not in the arena into a tunnel.
    pub fn send_copy(&mut self, by: (&Rule, Option<Qfi>), tunnel: &Tunnel, packet: &[u8]) {
        if self.send_by_tunnel_by_xsk(by, tunnel, packet) {
            return;
        }
        match self.copy_in(packet) {
            Some(range) => self.send_in_place(by, tunnel, range),
            None => self.drop(DropReason::N3SendFailed, 1),
        }
    }

    /// Copies a packet into the N3 batch's arena, after flushing it if it is full.
    pub fn copy_in(&mut self, packet: &[u8]) -> Option<Range<usize>> {
        if !self.n3.has_room() {
            self.flush_n3();
        }
        self.n3.copy_in(packet)
    }

    /// Sends the N3 batch.
    pub fn flush_n3(&mut self) {
        self.n3.flush(&self.sockets, &self.counters);
    }
}

/// The matching rule, if any, and the reason of the drop.
pub type Refusal<'r> = (Option<&'r Rule>, DropReason);

/// The rule for a packet, and its action.
pub fn select_rule<'r>(
    rules: &'r Rules,
    origin: Origin,
    flow: &Flow,
    qfi: Option<Qfi>,
) -> Result<(&'r Rule, Action), Refusal<'r>> {
    let rule = rules.find(origin, flow, qfi).ok_or((None, DropReason::NoRule))?;
    let refuse = |reason| Err((Some(rule), reason));
    if !rule.permits(qfi) {
        return refuse(DropReason::UnknownQfi);
    }
    // The anchor answers the UE's Neighbour Discovery, behind this UPF.
    let is_for_anchor =
        matches!(rule.action, Some(Action::Forward(Destination::Tunnel(_)))) && flow.is_on_link();
    if rules.is_spoofed(rule, flow.source) && !is_for_anchor {
        return refuse(DropReason::SpoofedSource);
    }
    match rule.action {
        None => refuse(DropReason::NoRule),
        Some(Action::Drop) => refuse(DropReason::RuleDrop),
        // The packet would return from N6 forever.
        Some(Action::Forward(Destination::Network)) if origin == Origin::Network => {
            refuse(DropReason::NoRule)
        }
        Some(action) => match rule.gate() {
            Ok(()) => Ok((rule, action)),
            Err(reason) => refuse(reason),
        },
    }
}

/// The tunnel's GTP-U address.
pub fn peer_of(tunnel: &Tunnel) -> SocketAddr {
    SocketAddr::new(tunnel.peer, GTPU_PORT)
}
