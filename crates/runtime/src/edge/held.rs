//! Messages of gNBs that the edge holds while the desk of their shard is full.
//!
//! ```text
//!                    ┌─ desk has room ──────────────────────> shard
//!  gNB's message ────┤
//!                    └─ desk is full ──> queue of the gNB ──> shard, one message a gNB in turn
//!                                        more than SHARE: the gNB is not read
//! ```
//!
//! Messages for other shards pass. Only a gNB that sends a full shard more than its share is no longer read, so that SCTP's
//! own window slows it (design section 5); that is one system call for this gNB, and none for the others.

use crate::shard::ShardDesk;
use pith_nf::fabric::ShardInput;
use pith_nf::kit::{GnbHandle, N2Input};
use pith_types::ShardId;
use std::collections::{HashMap, VecDeque};

/// Octets that the edge holds of one gNB before it stops reading it: some hundred messages. The messages of one turn of
/// SCTP (64) may come on top.
pub(super) const SHARE: usize = 64 << 10;

/// Octets that the edge holds of all gNBs; above it, each gNB that sends a full shard anything is no longer read.
const TOTAL: usize = 64 << 20;

/// Octets that a message takes besides its own.
const PLACE: usize = size_of::<N2Input>();

/// The messages held for one shard.
#[derive(Default)]
struct Waiting {
    queues: HashMap<GnbHandle, VecDeque<N2Input>>,
    /// The gNBs with a queue, in the order of their turns.
    turns: VecDeque<GnbHandle>,
}

/// What is held of one gNB, for all shards.
#[derive(Default)]
struct Share {
    octets: usize,
    is_unread: bool,
}

/// All messages held.
#[derive(Default)]
pub(super) struct HeldInputs {
    shards: Vec<Waiting>,
    shares: HashMap<GnbHandle, Share>,
    octets: usize,
}

impl HeldInputs {
    pub fn is_empty(&self) -> bool {
        self.shares.is_empty()
    }

    /// Whether a gNB is not read because of what is held of it.
    pub fn keeps_unread(&self, gnb: GnbHandle) -> bool {
        self.shares.get(&gnb).is_some_and(|share| share.is_unread)
    }

    /// Sends an input to its shard, or holds it while the shard's desk is full. The inputs of a gNB keep their order.
    /// Returns the gNB if it is not to be read from now on.
    pub fn send(&mut self, desks: &[ShardDesk], shard: ShardId, input: N2Input) -> Option<GnbHandle> {
        let number = usize::from(shard.0);
        let desk = desks.get(number)?;
        let gnb = gnb_of(&input);
        if let N2Input::GnbDown { .. } = input {
            // The shard forgets all UEs of the gNB, and what they still asked for with them.
            self.forget(number, gnb);
        }
        let waits = self.shards.get(number).is_some_and(|waiting| waiting.queues.contains_key(&gnb));
        if waits || (desk.is_full() && matches!(input, N2Input::Pdu { .. })) {
            return self.hold(number, gnb, input);
        }
        desk.send(ShardInput::N2(input));
        None
    }

    fn hold(&mut self, shard: usize, gnb: GnbHandle, input: N2Input) -> Option<GnbHandle> {
        if self.shards.len() <= shard {
            self.shards.resize_with(shard + 1, Waiting::default);
        }
        let waiting = self.shards.get_mut(shard)?;
        let octets = size_of_input(&input);
        let queue = waiting.queues.entry(gnb).or_default();
        if queue.is_empty() {
            waiting.turns.push_back(gnb);
        }
        queue.push_back(input);
        self.octets += octets;
        let share = self.shares.entry(gnb).or_default();
        share.octets += octets;
        let pause = !share.is_unread && (share.octets > SHARE || self.octets > TOTAL);
        share.is_unread |= pause;
        pause.then_some(gnb)
    }

    /// Sends what desks have room for, one message a gNB in turn. The gNBs that may be read again.
    pub fn release(&mut self, desks: &[ShardDesk]) -> Vec<GnbHandle> {
        let mut again = Vec::new();
        for (shard, desk) in desks.iter().enumerate() {
            while !desk.is_full()
                && let Some((gnb, input)) = self.next(shard)
            {
                again.extend(self.give_back(gnb, size_of_input(&input)));
                desk.send(ShardInput::N2(input));
            }
        }
        again
    }

    fn next(&mut self, shard: usize) -> Option<(GnbHandle, N2Input)> {
        let waiting = self.shards.get_mut(shard)?;
        let gnb = waiting.turns.pop_front()?;
        let queue = waiting.queues.get_mut(&gnb)?;
        let input = queue.pop_front()?;
        if queue.is_empty() {
            waiting.queues.remove(&gnb);
        } else {
            waiting.turns.push_back(gnb);
        }
        Some((gnb, input))
    }

    /// Returns the gNB if it may be read again: when half its share is free.
    fn give_back(&mut self, gnb: GnbHandle, octets: usize) -> Option<GnbHandle> {
        self.octets = self.octets.saturating_sub(octets);
        let share = self.shares.get_mut(&gnb)?;
        share.octets = share.octets.saturating_sub(octets);
        let has_room = share.octets == 0 || (share.octets <= SHARE / 2 && self.octets <= TOTAL / 2);
        let again = share.is_unread && has_room;
        share.is_unread &= !again;
        if share.octets == 0 {
            self.shares.remove(&gnb);
        }
        again.then_some(gnb)
    }

    fn forget(&mut self, shard: usize, gnb: GnbHandle) {
        let Some(waiting) = self.shards.get_mut(shard) else { return };
        let Some(queue) = waiting.queues.remove(&gnb) else { return };
        waiting.turns.retain(|other| *other != gnb);
        self.give_back(gnb, queue.iter().map(size_of_input).sum());
    }
}

fn gnb_of(input: &N2Input) -> GnbHandle {
    match input {
        N2Input::Pdu { gnb, .. }
        | N2Input::GnbUp { gnb, .. }
        | N2Input::GnbDown { gnb }
        | N2Input::Reset { gnb, .. } => *gnb,
    }
}

fn size_of_input(input: &N2Input) -> usize {
    let own = match input {
        N2Input::Pdu { pdu, .. } => pdu.len(),
        N2Input::Reset { ues, .. } => ues.as_ref().map_or(0, |ues| size_of_val(ues.as_slice())),
        N2Input::GnbUp { .. } | N2Input::GnbDown { .. } => 0,
    };
    PLACE + own
}
