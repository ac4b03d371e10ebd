//! The engine of one thread: all sessions with queued packets.
//!
//! A session has an entry from its first queued packet until its last has left. Otherwise its packets cost no
//! more than [`MeteredFlow::admit`](super::MeteredFlow::admit).
//!
//! ```text
//!          hold: the FAR buffers ──▶ held ──┐ reshape: new rules forward
//!                                           ▼
//!          offer: a rate is exceeded ──▶ shaper ──▶ run: Outlet::send, Outlet::drop
//! ```

use super::lane::Queues;
use super::pool::{Fifo, Pool, QueuedInfo};
use super::shaper::{Outlet, QueueState, Shaper};
use super::wheel::{TICK, Wheel};
use super::{Ecn, Flows, Room, Time};
use crate::contract::{Direction, DropReason, PdrId, SessionId};
use std::collections::HashMap;
use std::sync::Arc;

/// The owner of queues: a session in one direction.
pub type Key = (SessionId, Direction);

/// The key of a packet, and the flows that it may belong to.
#[derive(Debug, Clone, Copy)]
pub struct SessionQueue<'a> {
    /// The session and direction.
    pub key: Key,
    /// Its flows by the current rules.
    pub flows: &'a Flows,
}

/// The description of a packet for the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Index of its flow among the session's flows.
    pub flow: u16,
    /// A hash of its 5-tuple.
    pub tuple: u32,
    /// Bytes of the inner packet.
    pub bytes: usize,
    /// Its ECN field.
    pub ecn: Ecn,
}

/// The action of new rules on a queued packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueAction {
    /// Send it, as a packet of that flow.
    Forward(u16),
    /// Hold it until the rules change again.
    Hold(Hold),
    /// Drop it.
    Drop(DropReason),
}

/// How the packets of a PDR are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// The PDR.
    pub pdr: PdrId,
    /// The BAR's limit of the session's held packets.
    pub most: Option<u16>,
    /// Whether the first one is reported (PFCP flag NOCP).
    pub notify: bool,
}

/// All sessions with queued packets at one thread.
#[derive(Debug)]
pub struct Engine<P> {
    pool: Pool<P>,
    backlogs: Vec<Option<Backlog>>,
    vacant: Vec<u32>,
    index: HashMap<Key, u32>,
    wheel: Wheel,
    spare: Vec<Queues>,
    room: Arc<Room>,
}

#[derive(Debug)]
struct Backlog {
    key: Key,
    shaper: Shaper,
    held: Fifo,
    /// PDRs whose held packets were reported.
    told: Vec<PdrId>,
    due: Time,
}

impl<P> Engine<P> {
    /// An empty engine; the limits are shared with other threads' engines.
    pub fn new(room: Arc<Room>) -> Self {
        Self {
            pool: Pool::new(),
            backlogs: Vec::new(),
            vacant: Vec::new(),
            index: HashMap::new(),
            wheel: Wheel::new(),
            spare: Vec::new(),
            room,
        }
    }

    /// Number of sessions with queued packets.
    pub fn sessions(&self) -> usize {
        self.index.len()
    }

    /// Queues a packet.
    pub fn offer(
        &mut self,
        whose: SessionQueue<'_>,
        now: Time,
        arrival: Arrival,
        packet: P,
        outlet: &mut impl Outlet<P>,
    ) {
        let flow = whose.flows.get(usize::from(arrival.flow));
        if !self.room.reserve(arrival.bytes) {
            flow.inspect(|flow| flow.refuse(arrival.bytes, false));
            return outlet.drop(packet, DropReason::QueueFull);
        }
        let entry = self.entry(whose);
        let Some(Some(backlog)) = self.backlogs.get_mut(entry as usize) else { return };
        let was_idle = backlog.shaper.is_idle(arrival.flow);
        let room = &self.room;
        backlog.shaper.push(
            &mut self.pool,
            packet,
            waiting(now, &arrival),
            &mut |packet, waiting, reason| {
                room.free(waiting.bytes as usize);
                outlet.drop(packet, reason);
            },
        );
        if was_idle && let Some(flow) = flow {
            self.wake(entry, flow.ready_at(), now);
        }
    }

    /// Holds a packet of an idle UE until the rules change.
    pub fn hold(
        &mut self,
        whose: SessionQueue<'_>,
        now: Time,
        arrival: Arrival,
        packet: P,
        hold: Hold,
        outlet: &mut impl Outlet<P>,
    ) {
        let most = hold.most.map_or(self.room.limits().session_packets, usize::from);
        let held = self.backlog(whose.key).map_or(0, |backlog| backlog.held.packets());
        if held >= most || !self.room.reserve(arrival.bytes) {
            return outlet.drop(packet, DropReason::BufferFull);
        }
        let entry = self.entry(whose);
        let Some(Some(backlog)) = self.backlogs.get_mut(entry as usize) else { return };
        if hold.notify && backlog.tell(hold.pdr) {
            outlet.held(&packet, hold.pdr);
        }
        backlog.held.push(&mut self.pool, packet, waiting(now, &arrival));
    }

    /// Applies new rules to all queued and held packets. Held packets that may now be sent are sent first, in
    /// order; queued ones keep their order within the 5-tuple, and their age. Held packets are reported if
    /// the rules request it and they were not reported before.
    pub fn reshape(
        &mut self,
        whose: SessionQueue<'_>,
        now: Time,
        mut rule: impl FnMut(&mut P) -> QueueAction,
        outlet: &mut impl Outlet<P>,
    ) {
        let Some(&entry) = self.index.get(&whose.key) else { return };
        let Some(Some(backlog)) = self.backlogs.get_mut(entry as usize) else { return };
        let (pool, room) = (&mut self.pool, &self.room);
        let all = backlog.take_all(pool);
        let told_before = std::mem::take(&mut backlog.told);
        backlog.shaper.adopt(whose.flows, &mut self.spare);
        for (mut packet, waiting, was_first) in all {
            let mut free = |packet, waiting: QueuedInfo, reason| {
                room.free(waiting.bytes as usize);
                outlet.drop(packet, reason);
            };
            match rule(&mut packet) {
                QueueAction::Forward(flow) if was_first => {
                    backlog.shaper.release(pool, packet, QueuedInfo { flow, ..waiting });
                }
                QueueAction::Forward(flow) => {
                    backlog.shaper.push(pool, packet, QueuedInfo { flow, ..waiting }, &mut free);
                }
                QueueAction::Hold(Hold { pdr, notify, .. }) => {
                    if notify && backlog.tell(pdr) && !told_before.contains(&pdr) {
                        outlet.held(&packet, pdr);
                    }
                    backlog.held.push(pool, packet, waiting);
                }
                QueueAction::Drop(reason) => free(packet, waiting, reason),
            }
        }
        backlog.due = Time::NEVER;
        self.wake(entry, now, now);
    }

    /// Drops the packets held for a session, and with `all` also those queued.
    pub fn discard(&mut self, key: Key, all: bool, outlet: &mut impl Outlet<P>) {
        let Some(&entry) = self.index.get(&key) else { return };
        let Some(Some(backlog)) = self.backlogs.get_mut(entry as usize) else { return };
        let room = &self.room;
        let mut drop = |packet, waiting: QueuedInfo| {
            room.free(waiting.bytes as usize);
            outlet.drop(packet, DropReason::BufferDiscarded);
        };
        while let Some((packet, waiting)) = backlog.held.pop(&mut self.pool) {
            drop(packet, waiting);
        }
        backlog.told.clear();
        if all {
            backlog.shaper.take_all(&mut self.pool, |packet, waiting, _| drop(packet, waiting));
        }
        self.retire_if_empty(entry);
    }

    /// Removes all packets, in the order in which each session's would be sent.
    pub fn take_all(&mut self) -> Vec<P> {
        let mut all = Vec::new();
        for entry in 0..self.backlogs.len() as u32 {
            let Some(Some(backlog)) = self.backlogs.get_mut(entry as usize) else { continue };
            for (packet, waiting, _) in backlog.take_all(&mut self.pool) {
                self.room.free(waiting.bytes as usize);
                all.push(packet);
            }
            self.retire_if_empty(entry);
        }
        all
    }

    /// Sends the packets that are due, and drops those that exceeded the permitted delay.
    pub fn run(&mut self, now: Time, outlet: &mut impl Outlet<P>) {
        while let Some(entry) = self.wheel.pop(now) {
            let Some(Some(backlog)) = self.backlogs.get_mut(entry as usize) else { continue };
            let due = std::mem::replace(&mut backlog.due, Time::NEVER).min(now);
            let room = &self.room;
            let mut served = false;
            let after = backlog.shaper.serve(&mut self.pool, (now, due), outlet, &mut |bytes| {
                room.free(bytes);
                served = true;
            });
            // After its turn, a session lets those that wait for the same shared rate send first.
            let behind = if served && backlog.shaper.is_shared() { TICK } else { 0 };
            match after {
                QueueState::Empty => self.retire_if_empty(entry),
                QueueState::At(due) => self.wake(entry, Time(due.0.saturating_add(behind)), now),
                QueueState::More => self.wake(entry, due, now),
            }
        }
    }

    /// The time at which [`run`](Self::run) is needed next.
    pub fn next_due(&self) -> Option<Time> {
        self.wheel.next_due()
    }

    /// The number of held packets of a session, and whether packets are queued.
    pub fn waiting(&self, key: Key) -> (usize, bool) {
        let backlog = self.backlog(key);
        backlog.map_or((0, false), |backlog| (backlog.held.packets(), !backlog.shaper.is_empty()))
    }

    fn backlog(&self, key: Key) -> Option<&Backlog> {
        self.backlogs.get(*self.index.get(&key)? as usize)?.as_ref()
    }

    fn entry(&mut self, SessionQueue { key, flows }: SessionQueue<'_>) -> u32 {
        if let Some(entry) = self.index.get(&key) {
            return *entry;
        }
        let entry = self.vacant.pop().unwrap_or_else(|| {
            self.backlogs.push(None);
            self.backlogs.len() as u32 - 1
        });
        let shaper = Shaper::new(flows, &mut self.spare);
        let backlog = Backlog { key, shaper, held: Fifo::default(), told: Vec::new(), due: Time::NEVER };
        if let Some(place) = self.backlogs.get_mut(entry as usize) {
            *place = Some(backlog);
        }
        self.index.insert(key, entry);
        entry
    }

    /// Schedules an entry for `due`, unless it is scheduled earlier.
    fn wake(&mut self, entry: u32, due: Time, now: Time) {
        let Some(Some(backlog)) = self.backlogs.get_mut(entry as usize) else { return };
        if due < backlog.due {
            backlog.due = due;
            self.wheel.arm(entry, due, now);
        }
    }

    fn retire_if_empty(&mut self, entry: u32) {
        let Some(place) = self.backlogs.get_mut(entry as usize) else { return };
        if let Some(backlog) = place.take_if(|backlog| backlog.held.is_empty() && backlog.shaper.is_empty()) {
            self.wheel.disarm(entry);
            self.index.remove(&backlog.key);
            backlog.shaper.retire(&mut self.spare);
            self.vacant.push(entry);
        }
    }
}

impl Backlog {
    /// Records that a packet held for a PDR is reported. Returns whether it is the first.
    fn tell(&mut self, pdr: PdrId) -> bool {
        let first = !self.told.contains(&pdr);
        if first {
            self.told.push(pdr);
        }
        first
    }

    /// Removes all packets; `true` for those that are sent first once they may be sent: released or held
    /// ones.
    fn take_all<P>(&mut self, pool: &mut Pool<P>) -> Vec<(P, QueuedInfo, bool)> {
        let (mut all, mut queued) = (Vec::new(), Vec::new());
        self.shaper.take_all(pool, |packet, waiting, released| {
            if released { &mut all } else { &mut queued }.push((packet, waiting, released));
        });
        while let Some((packet, waiting)) = self.held.pop(pool) {
            all.push((packet, waiting, true));
        }
        all.extend(queued);
        all
    }
}

fn waiting(now: Time, arrival: &Arrival) -> QueuedInfo {
    let Arrival { flow, tuple, bytes, ecn } = *arrival;
    QueuedInfo { since: now, bytes: bytes as u32, tuple, flow, ecn }
}
