//! The queued packets of a session in one direction, and their order of service.
//!
//! ```text
//!  released   packets held while the UE was idle: first, in order, and never dropped here
//!  green      flows below their guaranteed rate, whatever the session's rate says (they are charged to it)
//!  yellow     of all others that no rate holds up, the flow that was served least beyond its guarantee
//! ```
//!
//! Serving the least served flow first makes the shares beyond the guaranteed rates max-min fair: with one
//! QoS flow, `R_qos = min(GBR + (AMBR - GBR) / 2, MBR)` and `R_rest = AMBR - R_qos`; with n flows each gets
//! its guarantee and an equal part of the rest, and an unused part is available to the others at once. Within
//! a flow the same holds for its 5-tuples ([`Lane`]).

use super::codel::LONGEST;
use super::lane::{Dequeued, Lane, Queues};
use super::pool::{Fifo, Pool, QueuedInfo};
use super::{Colour, Flows, Time};
use crate::contract::{DropReason, PdrId};

/// Bytes that a session sends before other sessions are served.
const QUANTUM: usize = 64 << 10;
/// Bytes that each 5-tuple may have queued at any rate: two packets.
const LEAST_QUEUE: usize = 3_028;
/// Bytes that a session may have queued at any rate.
const MAX_QUEUED: u64 = 4 << 20;

/// The outputs for queued packets.
pub trait Outlet<P> {
    /// Sends a packet, marked with CE if `marked`; returns whether it was sent.
    fn send(&mut self, packet: P, marked: bool) -> bool;

    /// Drops a packet.
    fn drop(&mut self, packet: P, reason: DropReason);

    /// Reports a packet held for an idle UE: the first of its PDR, whose FAR requests it.
    fn held(&mut self, packet: &P, pdr: PdrId);
}

/// The state after a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueState {
    /// No packet is queued.
    Empty,
    /// The next packet may be sent at that time.
    At(Time),
    /// More packets can be sent at once.
    More,
}

/// The queues of a session in one direction.
#[derive(Debug)]
pub struct Shaper {
    released: Fifo,
    lanes: Vec<Lane>,
    /// The `served` value of the lane in service.
    served: u64,
    /// Earliest time from which the delay of queued packets counts: before, released packets were sent.
    fresh: Time,
    bytes: usize,
    limit: usize,
    /// Whether the session waits for rates that it shares with other sessions.
    shared: bool,
}

impl Shaper {
    pub fn new(flows: &Flows, spare: &mut Vec<Queues>) -> Self {
        let mut shaper = Self {
            released: Fifo::default(),
            lanes: Vec::with_capacity(flows.len()),
            served: 0,
            fresh: Time(0),
            bytes: 0,
            limit: 0,
            shared: false,
        };
        shaper.adopt(flows, spare);
        shaper
    }

    /// Replaces the flows, once no packet is queued in the old flows' lanes.
    pub fn adopt(&mut self, flows: &Flows, spare: &mut Vec<Queues>) {
        spare.extend(self.lanes.drain(..).map(Lane::into_queues));
        let lane = |flow| Lane::new(flow, spare.pop().unwrap_or_else(Queues::new));
        self.lanes.extend(flows.iter().cloned().map(lane));
        self.served = 0;
        self.limit = limit(flows);
        self.shared = flows.iter().any(|flow| flow.is_shared());
    }

    /// Returns the queues, once no packet is queued.
    pub fn retire(mut self, spare: &mut Vec<Queues>) {
        spare.extend(self.lanes.drain(..).map(Lane::into_queues));
    }

    /// Whether the session waits for rates that it shares with other sessions.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    pub fn is_empty(&self) -> bool {
        self.released.is_empty() && self.bytes == 0
    }

    /// Whether that flow has no queued packet.
    pub fn is_idle(&self, flow: u16) -> bool {
        self.lanes.get(usize::from(flow)).is_none_or(|lane| lane.packets() == 0)
    }

    /// Queues a packet in its flow. If too many are queued, the oldest packet of the longest queue is
    /// dropped.
    pub fn push<P>(
        &mut self,
        pool: &mut Pool<P>,
        packet: P,
        waiting: QueuedInfo,
        dropped: &mut impl FnMut(P, QueuedInfo, DropReason),
    ) {
        let served = self.served;
        let Some(lane) = self.lanes.get_mut(usize::from(waiting.flow)) else {
            return dropped(packet, waiting, DropReason::NoRule);
        };
        if lane.packets() == 0 {
            lane.served = lane.served.max(served);
            lane.above_own_rate = lane.flow.is_above_own_rate(waiting.since);
        }
        lane.flow.counters.queued(waiting.bytes as usize);
        lane.push(pool, packet, waiting);
        self.bytes += waiting.bytes as usize;
        while self.bytes > self.limit && self.bytes > LEAST_QUEUE * self.active() {
            self.drop_longest(pool, dropped);
        }
    }

    fn active(&self) -> usize {
        self.lanes.iter().map(Lane::active).sum()
    }

    fn drop_longest<P>(&mut self, pool: &mut Pool<P>, dropped: &mut impl FnMut(P, QueuedInfo, DropReason)) {
        let longest = self.lanes.iter_mut().max_by_key(|lane| lane.longest());
        let Some(lane) = longest else { return self.bytes = 0 };
        let Some(Dequeued::Dropped(packet, waiting)) = lane.drop_from_longest(pool) else {
            return self.bytes = 0;
        };
        self.bytes -= waiting.bytes as usize;
        dropped(packet, waiting, drop_from(lane, &waiting, DropReason::QueueFull));
    }

    /// Queues a held packet before all later packets.
    pub fn release<P>(&mut self, pool: &mut Pool<P>, packet: P, waiting: QueuedInfo) {
        if let Some(lane) = self.lanes.get(usize::from(waiting.flow)) {
            lane.flow.counters.queued(waiting.bytes as usize);
        }
        self.released.push(pool, packet, waiting);
    }

    /// Sends the packets that may be sent now, up to a turn's quantum. The turn was due at `due`; the delay
    /// since then drops no packet. `freed` receives the bytes of each packet that leaves the queue.
    pub fn serve<P>(
        &mut self,
        pool: &mut Pool<P>,
        (now, due): (Time, Time),
        outlet: &mut impl Outlet<P>,
        freed: &mut impl FnMut(usize),
    ) -> QueueState {
        let mut sent = 0;
        while sent < QUANTUM {
            let next = match self.released.front(pool) {
                Some(waiting) => match self.serve_released(pool, waiting, now, outlet) {
                    Ok(bytes) => Some(bytes),
                    Err(ready) => return QueueState::At(ready),
                },
                None => self.serve_lanes(pool, (now, due), outlet),
            };
            let Some(bytes) = next else { return self.after() };
            freed(bytes);
            sent += bytes;
        }
        if self.is_empty() { QueueState::Empty } else { QueueState::More }
    }

    /// Sends the first released packet, or returns the time at which it may be sent.
    fn serve_released<P>(
        &mut self,
        pool: &mut Pool<P>,
        waiting: QueuedInfo,
        now: Time,
        outlet: &mut impl Outlet<P>,
    ) -> Result<usize, Time> {
        let bytes = waiting.bytes as usize;
        let lane = self.lanes.get(usize::from(waiting.flow));
        let colour = lane.map_or(Colour::Yellow, |lane| lane.flow.colour(now));
        if colour == Colour::Red {
            return Err(lane.map_or(now, |lane| lane.flow.ready_at()));
        }
        if let Some((packet, _)) = self.released.pop(pool) {
            let passed = outlet.send(packet, false);
            if let Some(lane) = lane {
                account(lane, now, bytes, colour, passed);
            }
        }
        if self.released.is_empty() {
            self.fresh = now;
        }
        Ok(bytes)
    }

    /// Sends or drops the next packet; `None` if none may be sent now.
    fn serve_lanes<P>(
        &mut self,
        pool: &mut Pool<P>,
        (now, due): (Time, Time),
        outlet: &mut impl Outlet<P>,
    ) -> Option<usize> {
        let fresh = self.fresh;
        let lane = self.next_lane(now)?;
        let left = lane.pop(pool, (now, due), fresh)?;
        let bytes = match left {
            Dequeued::Dropped(packet, waiting) => {
                outlet.drop(packet, drop_from(lane, &waiting, DropReason::QueueDelay));
                waiting.bytes as usize
            }
            Dequeued::Sent(packet, waiting, marked) => {
                let bytes = waiting.bytes as usize;
                let passed = outlet.send(packet, marked);
                account(lane, now, bytes, lane.colour, passed);
                if marked {
                    lane.flow.counters.marked();
                }
                if lane.colour == Colour::Yellow {
                    lane.served += bytes as u64;
                }
                bytes
            }
        };
        self.bytes -= bytes;
        Some(bytes)
    }

    /// The lane to serve next, if any may send.
    fn next_lane(&mut self, now: Time) -> Option<&mut Lane> {
        let mut least = None;
        for (at, lane) in self.lanes.iter_mut().enumerate().filter(|(_, lane)| lane.packets() > 0) {
            lane.colour = lane.flow.colour(now);
            match lane.colour {
                Colour::Green => {
                    least = Some((0, at));
                    break;
                }
                Colour::Yellow if least.is_none_or(|(served, _)| lane.served < served) => {
                    least = Some((lane.served, at));
                }
                Colour::Yellow => lane.above_own_rate = false,
                Colour::Red => lane.above_own_rate = lane.flow.is_above_own_rate(now),
            }
        }
        let (served, at) = least?;
        if self.lanes.get(at)?.colour == Colour::Yellow {
            self.pass_over(served);
        }
        self.lanes.get_mut(at)
    }

    /// A flow that cannot use its turn does not get it later: flows blocked by their own rates fall no
    /// further behind than the flow in service.
    fn pass_over(&mut self, served: u64) {
        self.served = self.served.max(served);
        let held_up = self.lanes.iter_mut().filter(|lane| lane.packets() > 0 && lane.colour == Colour::Red);
        held_up.for_each(|lane| lane.served = lane.served.max(served));
    }

    fn after(&self) -> QueueState {
        if self.is_empty() {
            return QueueState::Empty;
        }
        let waiting = self.lanes.iter().filter(|lane| lane.packets() > 0);
        QueueState::At(waiting.map(|lane| lane.flow.ready_at()).min().unwrap_or(Time(0)))
    }

    /// Removes all packets, oldest rules first: released packets, then lane by lane. `true`: the packet had
    /// been released.
    pub fn take_all<P>(&mut self, pool: &mut Pool<P>, mut taken: impl FnMut(P, QueuedInfo, bool)) {
        while let Some((packet, waiting)) = self.released.pop(pool) {
            if let Some(lane) = self.lanes.get(usize::from(waiting.flow)) {
                lane.flow.counters.left(waiting.bytes as usize);
            }
            taken(packet, waiting, true);
        }
        for lane in &mut self.lanes {
            let counters = std::sync::Arc::clone(&lane.flow.counters);
            lane.take_all(pool, |packet, waiting| {
                counters.left(waiting.bytes as usize);
                taken(packet, waiting, false);
            });
        }
        self.bytes = 0;
    }
}

/// Counts and charges a packet that is sent.
fn account(lane: &Lane, now: Time, bytes: usize, colour: Colour, passed: bool) {
    lane.flow.counters.left(bytes);
    if passed { lane.flow.pass(now, bytes, colour) } else { lane.flow.refuse(bytes, false) }
}

/// Counts a dropped packet, and returns the reason.
fn drop_from(lane: &Lane, waiting: &QueuedInfo, reason: DropReason) -> DropReason {
    lane.flow.counters.left(waiting.bytes as usize);
    lane.flow.refuse(waiting.bytes as usize, lane.above_own_rate);
    if lane.above_own_rate { DropReason::RateExceeded } else { reason }
}

/// Bytes that the flows can send within the longest permitted delay.
fn limit(flows: &Flows) -> usize {
    let bytes = |rate: u64| u128::from(rate) * u128::from(LONGEST) / 8_000_000_000;
    let all: u128 = flows.iter().filter_map(|flow| flow.ceiling()).map(bytes).sum();
    all.clamp(2 * LEAST_QUEUE as u128, MAX_QUEUED.into()) as usize
}
