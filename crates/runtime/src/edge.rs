//! The edge: the thread that terminates N2 and N4 and runs their gateways.
//!
//! ```text
//!  gNB ══SCTP══> SctpTransport ──> N2Gateway ──┐
//!                                              ├──> work queues of the shards
//!  UPF ──UDP───> socket ─────────> N4Gateway ──┘
//!        <────────────────────────  gateways  <──── channel <─────────── shards
//! ```
//!
//! The edge itself processes small batches of a shard's messages if the shard is idle (`work_queue`). While a
//! shard's queue is full, the edge holds gNBs' messages for the shard, within bounds for each gNB (`held`),
//! and drops UPFs' requests, which UPFs retransmit. If a gNB does not read what it is sent, the edge stops
//! reading from it and finally aborts the association (`backlog`).

mod backlog;
mod former;
mod held;

use self::backlog::{Backlogs, HIGH_MARK, Level, MAX_STALL};
pub(crate) use self::former::FormerPeers;
use self::held::HeldInputs;
use crate::clock::Clock;
use crate::events::log_event;
use crate::gate::Gate;
use crate::sctp::{AssociationId, SctpEvent, SctpTransport, SendError};
use crate::shard::ShardQueue;
use crate::wait::{Readable, Sleeper, Waker, waker};
use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender, unbounded};
use pith_nf::fabric::{ShardInput, Timers};
use pith_nf::gateway::n2::{N2Gateway, N2GatewayEffect, N2GatewayInput, NGAP_PPID};
use pith_nf::gateway::n4::{N4Gateway, N4GatewayEffect, N4GatewayInput};
use pith_nf::kit::{GnbHandle, N2Effect, N2Input, N4Effect, Nf, TimerKey, Tnla, UpfInfo};
use pith_types::ShardId;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Datagrams read in a row before other inputs get their turn.
const DATAGRAMS: usize = 64;

/// Largest PFCP datagram.
const DATAGRAM_SIZE: usize = 65_535;

/// Rounds of processing between shards and edge before the edge reads sockets again.
const ROUNDS: usize = 16;

/// Interval at which the edge checks whether a full queue has room for held messages.
const PAUSE: Duration = Duration::from_millis(1);

/// A message to the edge.
pub enum EdgeMessage {
    /// Effect of an AMF.
    N2(N2Effect),
    /// Effect of an SMF.
    N4 {
        /// The SMF's shard.
        shard: ShardId,
        /// The effect.
        effect: Box<N4Effect>,
    },
    /// Query of an operator for the connected gNBs, with its number; the answer is passed to `inspected`.
    InspectGnbs(u64),
    /// Query of an operator for the UPFs with an association.
    InspectUpfs(u64),
    /// Releases associations and ends the edge.
    Close,
}

/// N2 of a process with an AMF.
pub struct N2Side {
    /// The listening transport.
    pub transport: Box<dyn SctpTransport>,
    /// The gateway.
    pub gateway: N2Gateway,
    /// The associations for the next process; absent where nothing outlives this one, or where the kernel aborts them.
    pub(crate) former: Option<FormerPeers>,
}

/// N4 of a process with an SMF.
pub struct N4Side {
    /// The bound socket.
    pub socket: UdpSocket,
    /// The gateway.
    pub gateway: N4Gateway,
}

/// Sends messages to the edge, from any thread.
#[derive(Clone)]
pub struct EdgeHandle {
    inbox: Sender<EdgeMessage>,
    waker: Waker,
}

impl EdgeHandle {
    /// Queues a message; call [`EdgeHandle::wake`] afterwards.
    pub fn send(&self, message: EdgeMessage) {
        // After the edge's end, messages are dropped.
        let _ = self.inbox.send(message);
    }

    /// Wakes the edge after a batch of messages.
    pub fn wake(&self) {
        self.waker.wake();
    }
}

/// An edge that was not started.
pub struct EdgeSeed {
    outlet: Receiver<EdgeMessage>,
    sleeper: Sleeper,
}

/// Creates the handle of an edge, and the value that starts it.
pub fn edge() -> io::Result<(EdgeHandle, EdgeSeed)> {
    let (inbox, outlet) = unbounded();
    let (waker, sleeper) = waker()?;
    Ok((EdgeHandle { inbox, waker }, EdgeSeed { outlet, sleeper }))
}

impl EdgeSeed {
    /// Starts the thread, which waits at the gate. `inspected` receives the answers to operators' queries.
    pub fn start(
        self,
        clock: Clock,
        n2: Option<N2Side>,
        n4: Option<N4Side>,
        shards: Vec<ShardQueue>,
        inspected: impl Fn(u64, Vec<Value>) + Send + 'static,
        gate: Gate,
    ) -> io::Result<JoinHandle<()>> {
        let mut edge = Edge::new(clock, n2, n4, shards, Box::new(inspected));
        thread::Builder::new().name("edge".into()).spawn(move || {
            if gate.wait() {
                edge.run(&self.outlet, &self.sleeper);
            }
        })
    }
}

struct N2State {
    side: N2Side,
    associations: HashMap<Tnla, Link>,
    /// Messages to gNBs whose send buffers are full.
    backlogs: Backlogs,
    /// Messages for shards whose queues are full.
    held: HeldInputs,
}

/// One association.
struct Link {
    association: AssociationId,
    peer: SocketAddr,
    /// Whether the next process is to abort it.
    is_recorded: bool,
}

struct Edge {
    clock: Clock,
    n2: Option<N2State>,
    n4: Option<N4Side>,
    shards: Vec<ShardQueue>,
    timers: Timers<TimerKey>,
    inspected: Inspected,
    is_closing: bool,
}

type Inspected = Box<dyn Fn(u64, Vec<Value>) + Send>;

impl Edge {
    fn new(
        clock: Clock,
        n2: Option<N2Side>,
        n4: Option<N4Side>,
        shards: Vec<ShardQueue>,
        inspected: Inspected,
    ) -> Self {
        let n2 = n2.map(N2State::new);
        Self { clock, n2, n4, shards, timers: Timers::default(), inspected, is_closing: false }
    }

    fn run(&mut self, outlet: &Receiver<EdgeMessage>, sleeper: &Sleeper) {
        self.n4_input(N4GatewayInput::Start);
        let mut datagram = vec![0; DATAGRAM_SIZE];
        let mut events = Vec::new();
        let mut readable = Readable::ALL;
        while !self.is_closing {
            self.read_associations(&mut events);
            if readable.has(self.n4_place()) {
                self.read_datagrams(&mut datagram);
            }
            self.expire();
            self.attend_shards(outlet);
            self.flush();
            let (timeout, is_closing) = (self.timeout(), self.is_closing);
            readable = sleeper.sleep(&self.descriptors(), timeout, || is_closing || !outlet.is_empty());
        }
        self.close();
    }

    /// Processes the shards' inputs and their effects on the edge, until there are none left or `ROUNDS` is
    /// reached.
    fn attend_shards(&mut self, outlet: &Receiver<EdgeMessage>) {
        for _ in 0..ROUNDS {
            self.shards.iter().for_each(ShardQueue::process_or_wake);
            if outlet.is_empty() {
                return;
            }
            outlet.try_iter().for_each(|message| self.message(message));
        }
        self.shards.iter().for_each(ShardQueue::wake);
    }

    /// Index of the N4 socket among the descriptors.
    fn n4_place(&self) -> usize {
        usize::from(self.n2.is_some())
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let n2 = self.n2.as_ref().map(|n2| n2.side.transport.poll_fd());
        n2.into_iter().chain(self.n4.as_ref().map(|n4| n4.socket.as_fd())).collect()
    }

    fn timeout(&mut self) -> Option<Duration> {
        let now = self.clock.now();
        let sctp = self.n2.as_ref().and_then(N2State::next_deadline);
        let sctp = sctp.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timers = self.timers.next_deadline().map(|deadline| deadline.since(now));
        let setup = self.n2.as_ref().and_then(|n2| n2.side.gateway.next_deadline());
        let setup = setup.map(|deadline| deadline.since(now));
        let held = self.n2.as_ref().filter(|n2| !n2.held.is_empty()).map(|_| PAUSE);
        [sctp, timers, setup, held].into_iter().flatten().min()
    }

    fn message(&mut self, message: EdgeMessage) {
        match message {
            EdgeMessage::N2(effect) => self.n2_input(N2GatewayInput::Shard(effect)),
            EdgeMessage::N4 { shard, effect } => {
                self.n4_input(N4GatewayInput::Shard { shard, effect: *effect })
            }
            EdgeMessage::InspectGnbs(exchange) => (self.inspected)(exchange, self.gnbs()),
            EdgeMessage::InspectUpfs(exchange) => (self.inspected)(exchange, self.upfs()),
            EdgeMessage::Close => self.is_closing = true,
        }
    }

    /// Reads messages of gNBs, after those that are held.
    fn read_associations(&mut self, events: &mut Vec<SctpEvent>) {
        let Some(n2) = &mut self.n2 else { return };
        n2.release_held(&self.shards);
        let effects: Vec<_> = n2.side.gateway.advance(self.clock.now()).collect();
        self.n2_effects(effects);
        let Some(n2) = &mut self.n2 else { return };
        let now = Instant::now();
        n2.side.transport.process(now, events);
        n2.side.gateway.set_loads(self.shards.iter().map(ShardQueue::pending));
        n2.side.gateway.set_overloaded(self.shards.iter().any(ShardQueue::is_full));
        for event in events.drain(..) {
            self.sctp(event);
        }
        self.give_up_stalled(now);
    }

    fn sctp(&mut self, event: SctpEvent) {
        let Some(n2) = &mut self.n2 else { return };
        match event {
            SctpEvent::Up { association, peer, local, alternatives, .. } => {
                let tnla = Tnla(association.to_u64());
                let is_recorded = n2.record(association);
                n2.associations.insert(tnla, Link { association, peer, is_recorded });
                self.n2_input(N2GatewayInput::Up { tnla, peer, local, alternatives });
            }
            SctpEvent::Message { association, stream, ppid, payload } => {
                let tnla = Tnla(association.to_u64());
                let is_new = n2.side.gateway.gnb_of(tnla).is_none();
                self.n2_input(N2GatewayInput::Message { tnla, stream, ppid, pdu: payload.into() });
                if is_new {
                    self.pause_if_unread(tnla, association);
                }
            }
            SctpEvent::SendReady { association } => n2.send_rest(association),
            SctpEvent::Down { association, reason } => {
                let tnla = Tnla(association.to_u64());
                tracing::debug!(%association, %reason, "association ended");
                n2.forget(tnla);
                self.n2_input(N2GatewayInput::Down { tnla });
            }
        }
    }

    /// A further association of a gNB that is not read is not read, either.
    fn pause_if_unread(&mut self, tnla: Tnla, association: AssociationId) {
        let Some(n2) = &mut self.n2 else { return };
        if n2.side.gateway.gnb_of(tnla).is_some_and(|gnb| n2.held.keeps_unread(gnb)) {
            n2.side.transport.pause_reading(association);
        }
    }

    fn n2_input(&mut self, input: N2GatewayInput) {
        let Some(n2) = &mut self.n2 else { return };
        let effects: Vec<_> = n2.side.gateway.handle(input).collect();
        self.n2_effects(effects);
    }

    fn n2_effects(&mut self, effects: Vec<N2GatewayEffect>) {
        for effect in effects {
            match effect {
                N2GatewayEffect::Send { tnla, stream, pdu } => self.n2_send(tnla, stream, pdu),
                N2GatewayEffect::ToShard { shard, input } => {
                    if let Some(n2) = &mut self.n2 {
                        n2.to_shard(&self.shards, shard, input);
                    }
                }
                N2GatewayEffect::Close { tnla } => {
                    if let Some(n2) = &mut self.n2
                        && let Some(link) = n2.forget(tnla)
                    {
                        n2.side.transport.abort(link.association);
                    }
                }
                N2GatewayEffect::ShutDown { tnla } => {
                    if let Some(n2) = &mut self.n2
                        && let Some(link) = n2.associations.get(&tnla)
                    {
                        n2.side.transport.shutdown(link.association);
                    }
                }
                N2GatewayEffect::Event(event) => log_event(Nf::Amf, &event),
            }
        }
    }

    fn n2_send(&mut self, tnla: Tnla, stream: u16, pdu: Bytes) {
        let level = self.n2.as_mut().map(|n2| n2.send(tnla, stream, pdu));
        if level == Some(Level::High) {
            self.abort_association(tnla, &format!("more than {HIGH_MARK} octets are queued for it"));
        }
    }

    fn give_up_stalled(&mut self, now: Instant) {
        let stalled = self.n2.as_mut().map(|n2| n2.backlogs.stalled(now));
        for association in stalled.into_iter().flatten() {
            let why = format!("it has accepted no message for {} s", MAX_STALL.as_secs());
            self.abort_association(Tnla(association.to_u64()), &why);
        }
    }

    /// Aborts the association of a gNB that does not read, so that its queue does not grow without bound.
    fn abort_association(&mut self, tnla: Tnla, why: &str) {
        let Some(n2) = &mut self.n2 else { return };
        let name = n2.name(tnla);
        let Some(link) = n2.forget(tnla) else { return };
        tracing::warn!(gnb = name, peer = %link.peer, "gNB {name} does not read its messages; association aborted: {why}");
        n2.side.transport.abort(link.association);
        self.n2_input(N2GatewayInput::Down { tnla });
    }

    fn read_datagrams(&mut self, buffer: &mut [u8]) {
        if let Some(n4) = &mut self.n4 {
            n4.gateway.set_full(self.shards.iter().map(ShardQueue::is_full));
        }
        for _ in 0..DATAGRAMS {
            let Some(n4) = &self.n4 else { return };
            let Ok((length, from)) = n4.socket.recv_from(buffer) else { return };
            let octets = buffer.get(..length).unwrap_or_default().to_vec();
            self.n4_input(N4GatewayInput::Datagram { from, octets });
        }
    }

    fn n4_input(&mut self, input: N4GatewayInput) {
        let now = self.clock.now();
        let Some(n4) = &mut self.n4 else { return };
        for effect in n4.gateway.handle(input) {
            match effect {
                N4GatewayEffect::Send { to, octets } => {
                    // Lost requests are retransmitted after T1.
                    if let Err(error) = n4.socket.send_to(&octets, to) {
                        tracing::debug!(%to, %error, "cannot send a PFCP datagram");
                    }
                }
                N4GatewayEffect::ToShard { shard, input } => {
                    to_shard(&self.shards, shard, ShardInput::N4(Box::new(input)));
                }
                N4GatewayEffect::StartTimer { key, after } => self.timers.start(key, now + after),
                N4GatewayEffect::StopTimer(key) => self.timers.stop(key),
                N4GatewayEffect::Event(event) => log_event(Nf::Smf, &event),
            }
        }
    }

    fn expire(&mut self) {
        let now = self.clock.now();
        while let Some(key) = self.timers.expired(now) {
            self.n4_input(N4GatewayInput::Timer(key));
        }
    }

    fn flush(&mut self) {
        if let Some(n2) = &mut self.n2 {
            n2.side.transport.flush();
        }
    }

    fn gnbs(&self) -> Vec<Value> {
        let gnbs = self.n2.iter().flat_map(|n2| n2.side.gateway.gnbs());
        let ends = |gnb| self.n2.iter().flat_map(move |n2| n2.side.gateway.ends_of(gnb));
        gnbs.map(|(gnb, info)| {
            let associations = ends(gnb).map(|(peer, local)| json!({ "peer": peer, "local": local }));
            let tais = info.supported.iter().map(|(tai, _)| format!("{}-{}", tai.plmn_id, tai.tac));
            json!({
                "name": info.name,
                "globalId": info.global_id,
                "peer": info.peer,
                "associations": associations.collect::<Vec<_>>(),
                "tais": tais.collect::<Vec<_>>(),
            })
        })
        .collect()
    }

    fn upfs(&self) -> Vec<Value> {
        let gateways = self.n4.iter().map(|n4| &n4.gateway);
        let upfs = gateways.flat_map(|gateway| gateway.upfs().map(move |info| (gateway, info)));
        let shown = |(gateway, info): (&N4Gateway, &Arc<UpfInfo>)| json!({ "name": info.name, "address": info.address, "load": gateway.load_of(&info.name) });
        upfs.map(shown).collect()
    }

    /// Releases PFCP and SCTP associations.
    fn close(&mut self) {
        self.n4_input(N4GatewayInput::Stop);
        let Some(n2) = &mut self.n2 else { return };
        for link in n2.associations.values() {
            n2.side.transport.shutdown(link.association);
        }
        n2.side.transport.process(Instant::now(), &mut Vec::new());
        n2.side.transport.flush();
    }
}

impl N2State {
    fn new(side: N2Side) -> Self {
        Self {
            side,
            associations: HashMap::new(),
            backlogs: Backlogs::default(),
            held: HeldInputs::default(),
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        [self.side.transport.next_deadline(), self.backlogs.next_deadline()].into_iter().flatten().min()
    }

    /// A gNB's name for logs, or its address before NG setup.
    fn name(&self, tnla: Tnla) -> String {
        let gnb = self.side.gateway.gnb_of(tnla);
        let known = self.side.gateway.gnbs().find(|(known, _)| Some(*known) == gnb);
        let address = || self.associations.get(&tnla).map(|link| link.peer.to_string());
        known.map(|(_, info)| info.name.clone()).or_else(address).unwrap_or_default()
    }

    fn send(&mut self, tnla: Tnla, stream: u16, pdu: Bytes) -> Level {
        let Some(association) = self.associations.get(&tnla).map(|link| link.association) else {
            return Level::Unchanged;
        };
        if !self.backlogs.holds(association) && offer(&mut *self.side.transport, association, stream, &pdu) {
            return Level::Unchanged;
        }
        let level = self.backlogs.push(association, stream, pdu);
        if level == Level::Low {
            self.side.transport.pause_reading(association);
        }
        level
    }

    fn send_rest(&mut self, association: AssociationId) {
        let Some(mut backlog) = self.backlogs.remove(association) else { return };
        let transport = &mut *self.side.transport;
        backlog.drain(|stream, pdu| offer(transport, association, stream, pdu));
        if !backlog.is_empty() {
            self.backlogs.put_back(association, backlog);
        } else if backlog.keeps_unread() {
            let gnb = self.side.gateway.gnb_of(Tnla(association.to_u64()));
            if !gnb.is_some_and(|gnb| self.held.keeps_unread(gnb)) {
                transport.resume_reading(association);
            }
        }
    }

    /// Records an association for the next process; returns whether it has to be aborted then.
    fn record(&mut self, association: AssociationId) -> bool {
        let Some(former) = &self.side.former else { return false };
        let peer = self.side.transport.former_peer(association);
        if peer.is_some() {
            former.note(association.slot(), peer);
        }
        peer.is_some()
    }

    fn forget(&mut self, tnla: Tnla) -> Option<Link> {
        let link = self.associations.remove(&tnla)?;
        if let Some(former) = self.side.former.as_ref().filter(|_| link.is_recorded) {
            former.note(link.association.slot(), None);
        }
        self.backlogs.remove(link.association);
        Some(link)
    }

    fn to_shard(&mut self, shards: &[ShardQueue], shard: ShardId, input: N2Input) {
        if let Some(gnb) = self.held.send(shards, shard, input) {
            for association in self.associations_of(gnb) {
                self.side.transport.pause_reading(association);
            }
        }
    }

    fn associations_of(&self, gnb: GnbHandle) -> Vec<AssociationId> {
        let of_gnb = self.side.gateway.associations_of(gnb).iter();
        of_gnb.filter_map(|tnla| self.associations.get(tnla)).map(|link| link.association).collect()
    }

    fn release_held(&mut self, shards: &[ShardQueue]) {
        if self.held.is_empty() {
            return;
        }
        for gnb in self.held.release(shards) {
            for association in self.associations_of(gnb) {
                if !self.backlogs.keeps_unread(association) {
                    self.side.transport.resume_reading(association);
                }
            }
        }
    }
}

/// Passes a message to SCTP, on stream 0 if the association has no such stream. `false`: the send buffer is
/// full.
fn offer(transport: &mut dyn SctpTransport, to: AssociationId, stream: u16, pdu: &Bytes) -> bool {
    match transport.send(to, stream, NGAP_PPID, pdu) {
        Ok(()) => true,
        Err(SendError::Backpressure) => false,
        Err(SendError::NoSuchStream) if stream != 0 => offer(transport, to, 0, pdu),
        Err(error) => {
            tracing::debug!(association = %to, %error, "cannot send a message");
            true
        }
    }
}

fn to_shard(shards: &[ShardQueue], shard: ShardId, input: ShardInput) {
    if let Some(queue) = shards.get(usize::from(shard.0)) {
        queue.send(input);
    }
}

#[cfg(test)]
mod tests;
