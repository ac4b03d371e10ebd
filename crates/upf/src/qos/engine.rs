//! The engine of one thread: all sessions that have packets waiting at it.
//!
//! A session has an entry here from its first packet that must wait until the last has left; before and
//! after, its packets cost no more than [`Flow::admit`](super::Flow::admit).
//!
//! ```text
//!          hold: the FAR buffers ──▶ held ──┐ reshape: new rules forward
//!                                           ▼
//!          offer: a rate is exceeded ──▶ shaper ──▶ run: Outlet::send, Outlet::drop
//! ```

use super::lane::Queues;
use super::pool::{Fifo, Pool, Waiting};
use super::shaper::{After, Outlet, Shaper};
use super::wheel::{TICK, Wheel};
use super::{Ecn, Flows, Room, Time};
use crate::contract::{Direction, DropReason, PdrId, SessionId};
use std::collections::HashMap;
use std::sync::Arc;

/// What has queues of its own: a session in one direction.
pub type Key = (SessionId, Direction);

/// Whose packets, and the flows that they may be of.
#[derive(Debug, Clone, Copy)]
pub struct Whose<'a> {
    /// The session and direction.
    pub key: Key,
    /// Its flows by the rules that hold.
    pub flows: &'a Flows,
}

/// What the engine has to know of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Index of its flow among the session's.
    pub flow: u16,
    /// A hash of its 5-tuple.
    pub tuple: u32,
    /// Bytes of the inner packet.
    pub bytes: usize,
    /// Its ECN field.
    pub ecn: Ecn,
}

/// What new rules want done with a packet that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    /// Sent, as one of that flow.
    Forward(u16),
    /// Held, until new rules come.
    Hold(Hold),
    /// Dropped.
    Drop(DropReason),
}

/// How the packets of a PDR are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// The PDR.
    pub pdr: PdrId,
    /// The BAR's bound on what the session has held.
    pub most: Option<u16>,
    /// Whether the first one is to be told of (PFCP flag NOCP).
    pub notify: bool,
}

/// All sessions that have packets waiting at one thread.
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
    /// PDRs whose packets are held, and were told of.
    told: Vec<PdrId>,
    due: Time,
}

impl<P> Engine<P> {
    /// Nothing waits; bounds are shared with other threads' engines.
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

    /// Sessions that have something waiting.
    pub fn sessions(&self) -> usize {
        self.index.len()
    }

    /// Has a packet wait for its turn.
    pub fn offer(
        &mut self,
        whose: Whose<'_>,
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

    /// Holds a packet of an idle UE until new rules come.
    pub fn hold(
        &mut self,
        whose: Whose<'_>,
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

    /// Applies new rules to what waits: everything is ruled on again. What was held and may go now goes
    /// first, in order; what stays queued keeps its place within its 5-tuple, and its age. What is held is told
    /// of if the rules ask for it and it was not told of before.
    pub fn reshape(
        &mut self,
        whose: Whose<'_>,
        now: Time,
        mut rule: impl FnMut(&mut P) -> Ruling,
        outlet: &mut impl Outlet<P>,
    ) {
        let Some(&entry) = self.index.get(&whose.key) else { return };
        let Some(Some(backlog)) = self.backlogs.get_mut(entry as usize) else { return };
        let (pool, room) = (&mut self.pool, &self.room);
        let all = backlog.take_all(pool);
        let told_before = std::mem::take(&mut backlog.told);
        backlog.shaper.adopt(whose.flows, &mut self.spare);
        for (mut packet, waiting, was_first) in all {
            let mut free = |packet, waiting: Waiting, reason| {
                room.free(waiting.bytes as usize);
                outlet.drop(packet, reason);
            };
            match rule(&mut packet) {
                Ruling::Forward(flow) if was_first => {
                    backlog.shaper.release(pool, packet, Waiting { flow, ..waiting });
                }
                Ruling::Forward(flow) => {
                    backlog.shaper.push(pool, packet, Waiting { flow, ..waiting }, &mut free);
                }
                Ruling::Hold(Hold { pdr, notify, .. }) => {
                    if notify && backlog.tell(pdr) && !told_before.contains(&pdr) {
                        outlet.held(&packet, pdr);
                    }
                    backlog.held.push(pool, packet, waiting);
                }
                Ruling::Drop(reason) => free(packet, waiting, reason),
            }
        }
        backlog.due = Time::NEVER;
        self.wake(entry, now, now);
    }

    /// Drops what is held for a session, and if `all` what is queued too.
    pub fn discard(&mut self, key: Key, all: bool, outlet: &mut impl Outlet<P>) {
        let Some(&entry) = self.index.get(&key) else { return };
        let Some(Some(backlog)) = self.backlogs.get_mut(entry as usize) else { return };
        let room = &self.room;
        let mut drop = |packet, waiting: Waiting| {
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

    /// Sends what may go by now, and drops what has waited in vain.
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
            // Who was served lets those go first that wait for the same rate.
            let behind = if served && backlog.shaper.is_shared() { TICK } else { 0 };
            match after {
                After::Empty => self.retire_if_empty(entry),
                After::At(due) => self.wake(entry, Time(due.0.saturating_add(behind)), now),
                After::More => self.wake(entry, due, now),
            }
        }
    }

    /// When [`run`](Self::run) is needed next.
    pub fn next_due(&self) -> Option<Time> {
        self.wheel.next_due()
    }

    /// Packets held for a session, and packets queued.
    pub fn waiting(&self, key: Key) -> (usize, bool) {
        let backlog = self.backlog(key);
        backlog.map_or((0, false), |backlog| (backlog.held.packets(), !backlog.shaper.is_empty()))
    }

    fn backlog(&self, key: Key) -> Option<&Backlog> {
        self.backlogs.get(*self.index.get(&key)? as usize)?.as_ref()
    }

    fn entry(&mut self, Whose { key, flows }: Whose<'_>) -> u32 {
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

    /// Has an entry come up at `due`, if it would not earlier.
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
    /// Notes that a packet held for a PDR is told of. Is it the first?
    fn tell(&mut self, pdr: PdrId) -> bool {
        let first = !self.told.contains(&pdr);
        if first {
            self.told.push(pdr);
        }
        first
    }

    /// Takes everything out; `true` for what is to go first when it may go: what was released or held.
    fn take_all<P>(&mut self, pool: &mut Pool<P>) -> Vec<(P, Waiting, bool)> {
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

fn waiting(now: Time, arrival: &Arrival) -> Waiting {
    let Arrival { flow, tuple, bytes, ecn } = *arrival;
    Waiting { since: now, bytes: bytes as u32, tuple, flow, ecn }
}
