//! Messages of gNBs that the edge holds while the queue of their shard is full.
//!
//! ```text
//!                    ┌─ shard's queue has room ──────────────────> shard
//!  gNB's message ────┤
//!                    └─ it is full ──> held for the gNB ─────────> shard, one message per gNB in turn
//!                                      more than SHARE: the gNB is not read
//! ```
//!
//! Messages for other shards are not affected. The edge stops reading only from a gNB that sends a full shard
//! more than its share, so that SCTP's flow control slows the gNB (design section 5). This takes one system
//! call for this gNB and none for others.

use crate::shard::ShardQueue;
use pith_nf::fabric::ShardInput;
use pith_nf::kit::{GnbHandle, N2Input};
use pith_types::ShardId;
use std::collections::{HashMap, VecDeque};

/// Octets that the edge holds of one gNB before it stops reading from it: some hundred messages. The messages
/// of one turn of SCTP (64) may be added.
pub(super) const SHARE: usize = 64 << 10;

/// Octets that the edge holds of all gNBs. Above it, the edge stops reading from every gNB that sends a
/// message to a full shard.
const TOTAL: usize = 64 << 20;

/// Octets of an entry in addition to the message.
const ENTRY_SIZE: usize = size_of::<N2Input>();

/// The messages held for one shard.
#[derive(Default)]
struct Waiting {
    queues: HashMap<GnbHandle, VecDeque<N2Input>>,
    /// The gNBs with a queue, in round-robin order.
    turns: VecDeque<GnbHandle>,
    /// Inputs of no gNB that must not overtake pending ones.
    last: Vec<N2Input>,
}

/// What the edge holds of one gNB, for all shards.
#[derive(Default)]
struct Share {
    octets: usize,
    is_unread: bool,
}

/// All held messages.
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

    /// Whether a gNB is not read because of its held messages.
    pub fn keeps_unread(&self, gnb: GnbHandle) -> bool {
        self.shares.get(&gnb).is_some_and(|share| share.is_unread)
    }

    /// Sends an input to its shard, or holds it while the shard's queue is full. The inputs of a gNB keep
    /// their order. Returns the gNB if the edge must stop reading from it.
    pub fn send(&mut self, queues: &[ShardQueue], shard: ShardId, input: N2Input) -> Option<GnbHandle> {
        let number = usize::from(shard.0);
        let queue = queues.get(number)?;
        let Some(gnb) = gnb_of(&input) else {
            match self.shards.get_mut(number).filter(|waiting| !waiting.turns.is_empty()) {
                Some(waiting) => waiting.last.push(input),
                None => queue.send(ShardInput::N2(input)),
            }
            return None;
        };
        if let N2Input::GnbDown { .. } = input {
            // The shard removes all UEs of the gNB, so that their held messages are obsolete.
            self.forget(number, gnb);
        }
        let waits = self.shards.get(number).is_some_and(|waiting| waiting.queues.contains_key(&gnb));
        if waits || (queue.is_full() && matches!(input, N2Input::Pdu { .. })) {
            return self.hold(number, gnb, input);
        }
        queue.send(ShardInput::N2(input));
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

    /// Sends held messages while the queues have room, one per gNB in turn. Returns the gNBs that may be read
    /// again.
    pub fn release(&mut self, queues: &[ShardQueue]) -> Vec<GnbHandle> {
        let mut again = Vec::new();
        for (shard, queue) in queues.iter().enumerate() {
            while !queue.is_full()
                && let Some((gnb, input)) = self.next(shard)
            {
                again.extend(self.give_back(gnb, size_of_input(&input)));
                queue.send(ShardInput::N2(input));
            }
            let waiting = self.shards.get_mut(shard).filter(|waiting| waiting.turns.is_empty());
            for input in waiting.map(|waiting| std::mem::take(&mut waiting.last)).into_iter().flatten() {
                queue.send(ShardInput::N2(input));
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

fn gnb_of(input: &N2Input) -> Option<GnbHandle> {
    match input {
        N2Input::Pdu { gnb, .. }
        | N2Input::GnbUp { gnb, .. }
        | N2Input::NgSetup { gnb, .. }
        | N2Input::GnbDown { gnb }
        | N2Input::ReleaseBindings { gnb, .. }
        | N2Input::Reset { gnb, .. } => Some(*gnb),
        N2Input::Held { .. } | N2Input::GiveUp { .. } => None,
    }
}

fn size_of_input(input: &N2Input) -> usize {
    let own = match input {
        N2Input::Pdu { pdu, .. } => pdu.len(),
        N2Input::Reset { ues, .. } => ues.as_ref().map_or(0, |ues| size_of_val(ues.as_slice())),
        N2Input::GnbUp { .. }
        | N2Input::NgSetup { .. }
        | N2Input::GnbDown { .. }
        | N2Input::ReleaseBindings { .. }
        | N2Input::Held { .. }
        | N2Input::GiveUp { .. } => 0,
    };
    ENTRY_SIZE + own
}
