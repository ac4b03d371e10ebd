//! The queues of a flow: one for each 5-tuple, served by deficit round robin with new queues first (RFC
//! 8290), so that one connection of a flow does not delay another.

use super::codel::{Codel, CodelAction};
use super::pool::{Fifo, Pool, QueuedInfo};
use super::{Colour, MeteredFlow, Time};
use std::sync::Arc;

/// Maximum number of 5-tuples with their own queue at a time; further ones share.
const SLOTS: usize = 32;
/// Slots that are searched for a 5-tuple.
const PROBES: usize = 8;
/// Bytes that a queue may send in its turn.
const QUANTUM: i32 = 1514;

/// The result of dequeuing.
#[derive(Debug)]
pub enum Dequeued<P> {
    /// Sent; `true`: with a congestion mark.
    Sent(P, QueuedInfo, bool),
    /// Dropped.
    Dropped(P, QueuedInfo),
}

/// A flow and its queued packets.
#[derive(Debug)]
pub struct Lane {
    /// The flow.
    pub flow: Arc<MeteredFlow>,
    /// Bytes served beyond its guaranteed rate, on a scale common to the session's lanes.
    pub served: u64,
    /// The colour of its next packet at the last check.
    pub colour: Colour,
    /// Whether its own maximum rate blocks it, or did last.
    pub above_own_rate: bool,
    packets: usize,
    bytes: usize,
    queues: Queues,
}

/// The queues of a lane; reused by later lanes.
#[derive(Debug)]
pub struct Queues(Box<Slots>);

#[derive(Debug)]
struct Slots {
    slots: [Slot; SLOTS],
    new: Ring,
    old: Ring,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    tuple: u32,
    listed: bool,
    deficit: i32,
    fifo: Fifo,
    codel: Codel,
}

impl Queues {
    pub fn new() -> Self {
        let slots = [Slot::default(); SLOTS];
        Self(Box::new(Slots { slots, new: Ring::default(), old: Ring::default() }))
    }

    /// The slot of a 5-tuple: its own, otherwise a free one, otherwise a shared one.
    fn place(&self, tuple: u32) -> usize {
        let places = (0..PROBES).map(|step| (tuple as usize + step) % SLOTS);
        let own = places.clone().find(|at| self.0.slots[*at].listed && self.0.slots[*at].tuple == tuple);
        let free = || places.clone().find(|at| !self.0.slots[*at].listed);
        own.or_else(free).unwrap_or(tuple as usize % SLOTS)
    }
}

impl Lane {
    /// With no queued packets.
    pub fn new(flow: Arc<MeteredFlow>, queues: Queues) -> Self {
        Self { flow, served: 0, colour: Colour::Yellow, above_own_rate: false, packets: 0, bytes: 0, queues }
    }

    /// Returns the empty queues for reuse.
    pub fn into_queues(self) -> Queues {
        self.queues
    }

    /// Number of queued packets.
    pub fn packets(&self) -> usize {
        self.packets
    }

    /// Number of queues in use.
    pub fn active(&self) -> usize {
        self.queues.0.new.len() + self.queues.0.old.len()
    }

    /// Adds a packet.
    pub fn push<P>(&mut self, pool: &mut Pool<P>, packet: P, waiting: QueuedInfo) {
        let at = self.queues.place(waiting.tuple);
        let slot = &mut self.queues.0.slots[at];
        if !slot.listed {
            *slot = Slot { tuple: waiting.tuple, listed: true, deficit: QUANTUM, ..Slot::default() };
            self.queues.0.new.push(at);
        }
        slot.fifo.push(pool, packet, waiting);
        self.packets += 1;
        self.bytes += waiting.bytes as usize;
    }

    /// Removes the next packet, to be sent or dropped; `None` if the lane is empty. `now` contains the
    /// current time and the time at which the turn was due; delays count from `fresh` at the earliest.
    pub fn pop<P>(&mut self, pool: &mut Pool<P>, now: (Time, Time), fresh: Time) -> Option<Dequeued<P>> {
        loop {
            let from_new = self.queues.0.new.front();
            let at = from_new.or_else(|| self.queues.0.old.front())?;
            let slot = &mut self.queues.0.slots[at];
            if slot.deficit > 0 && !slot.fifo.is_empty() {
                let left = slot.take(pool, now, fresh)?;
                self.forget(left.waiting());
                return Some(left);
            }
            self.end_turn(at, from_new.is_some());
        }
    }

    /// Moves a queue to the end after its turn; removes one that was empty for a whole round.
    fn end_turn(&mut self, at: usize, was_new: bool) {
        let Slots { slots, new, old } = &mut *self.queues.0;
        if was_new {
            new.pop()
        } else {
            old.pop()
        };
        let slot = &mut slots[at];
        if slot.fifo.is_empty() && !(was_new && old.len() > 0) {
            slot.listed = false;
            return;
        }
        if slot.deficit <= 0 {
            slot.deficit += QUANTUM;
        }
        old.push(at);
    }

    /// Drops the oldest packet of the longest queue.
    pub fn drop_from_longest<P>(&mut self, pool: &mut Pool<P>) -> Option<Dequeued<P>> {
        let at = self.longest()?.1;
        let (packet, waiting) = self.queues.0.slots[at].fifo.pop(pool)?;
        self.forget(&waiting);
        Some(Dequeued::Dropped(packet, waiting))
    }

    /// Bytes and index of the longest queue.
    pub fn longest(&self) -> Option<(usize, usize)> {
        let listed = self.queues.0.new.iter().chain(self.queues.0.old.iter());
        listed.map(|at| (self.queues.0.slots[at].fifo.bytes(), at)).max()
    }

    /// Removes all packets, queue by queue.
    pub fn take_all<P>(&mut self, pool: &mut Pool<P>, mut taken: impl FnMut(P, QueuedInfo)) {
        while let Some(at) = self.queues.0.new.pop().or_else(|| self.queues.0.old.pop()) {
            let slot = &mut self.queues.0.slots[at];
            slot.listed = false;
            while let Some((packet, waiting)) = slot.fifo.pop(pool) {
                taken(packet, waiting);
            }
        }
        (self.packets, self.bytes) = (0, 0);
    }

    fn forget(&mut self, waiting: &QueuedInfo) {
        self.packets -= 1;
        self.bytes -= waiting.bytes as usize;
    }
}

impl Slot {
    /// Removes the oldest packet, to be sent or dropped.
    fn take<P>(&mut self, pool: &mut Pool<P>, (now, due): (Time, Time), fresh: Time) -> Option<Dequeued<P>> {
        let last = self.fifo.packets() == 1;
        let (packet, waiting) = self.fifo.pop(pool)?;
        let sojourn = due.0.saturating_sub(waiting.since.max(fresh).0);
        let fate = self.codel.decide(now.0, sojourn, waiting.ecn, last);
        if fate == CodelAction::Drop {
            return Some(Dequeued::Dropped(packet, waiting));
        }
        self.deficit -= waiting.bytes as i32;
        Some(Dequeued::Sent(packet, waiting, fate == CodelAction::Mark))
    }
}

impl<P> Dequeued<P> {
    fn waiting(&self) -> &QueuedInfo {
        match self {
            Self::Sent(_, waiting, _) | Self::Dropped(_, waiting) => waiting,
        }
    }
}

/// Slot indices in order, each at most once.
#[derive(Debug, Default)]
struct Ring {
    places: [u8; SLOTS],
    first: usize,
    count: usize,
}

impl Ring {
    fn len(&self) -> usize {
        self.count
    }

    fn front(&self) -> Option<usize> {
        (self.count > 0).then(|| self.places[self.first].into())
    }

    fn push(&mut self, at: usize) {
        self.places[(self.first + self.count) % SLOTS] = at as u8;
        self.count += 1;
    }

    fn pop(&mut self) -> Option<usize> {
        let front = self.front()?;
        self.first = (self.first + 1) % SLOTS;
        self.count -= 1;
        Some(front)
    }

    fn iter(&self) -> impl Iterator<Item = usize> {
        (0..self.count).map(|n| self.places[(self.first + n) % SLOTS].into())
    }
}
