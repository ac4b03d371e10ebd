//! Messages queued for gNBs whose send buffers are full, with bounds.
//!
//! ```text
//!  queued octets   0 ─────────> LOW_MARK ─────────> HIGH_MARK
//!  the gNB         is read      is not read         is aborted
//!                               MAX_STALL: is aborted
//! ```
//!
//! A gNB that does not read keeps its association: SCTP acknowledges for it and probes a closed window
//! without end. So its queue has bounds here. A gNB with a long queue is not read, which bounds what the gNB
//! itself provokes (errors, responses); the edge reads it again once the queue is empty. Messages of other
//! UEs' procedures (PAGING) are bounded by aborting the association.
//!
//! A gNB that writes before it reads, and is not read, would never read again: therefore the time without
//! reading is bounded too.

use crate::sctp::AssociationId;
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// Octets queued for a gNB above which the edge stops reading from it, in addition to the 1 MiB that SCTP
/// holds (`SctpConfig::send_buffer`): several hundred messages, more than a burst leaves queued for a gNB
/// that reads.
pub(super) const LOW_MARK: usize = 64 << 10;

/// Octets queued for a gNB above which the association is aborted. When the edge stops reading, shards may
/// still hold `task_buffer` (4096) of the gNB's messages: this leaves room for a response of 1 KiB to each.
pub(super) const HIGH_MARK: usize = 4 << 20;

/// How long a gNB that is not read may accept no message: as long as SCTP itself waits for a peer that
/// acknowledges nothing (`SctpConfig::max_retransmissions` times `rto_max`).
pub(super) const MAX_STALL: Duration = Duration::from_secs(15);

/// Octets of a queue entry without its message. With them, small messages are counted at their real cost.
const ENTRY_SIZE: usize = size_of::<(u16, Bytes)>();

/// The effect of a message on the queue's level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// No action is needed.
    Unchanged,
    /// The edge must stop reading from the gNB.
    Low,
    /// The association must be aborted.
    High,
}

/// The messages queued for one gNB.
#[derive(Default)]
pub(super) struct Backlog {
    /// Messages with their streams, oldest first.
    messages: VecDeque<(u16, Bytes)>,
    /// Octets of the messages and their entries.
    octets: usize,
    /// Set while the gNB is not read: the time when it last accepted a message.
    stalled_since: Option<Instant>,
}

impl Backlog {
    fn push(&mut self, stream: u16, pdu: Bytes) -> Level {
        self.octets = self.octets.saturating_add(pdu.len() + ENTRY_SIZE);
        self.messages.push_back((stream, pdu));
        match self.octets {
            octets if octets > HIGH_MARK => Level::High,
            octets if octets > LOW_MARK && self.stalled_since.is_none() => Level::Low,
            _ => Level::Unchanged,
        }
    }

    /// Removes messages, oldest first, as long as `offer` accepts them.
    pub fn drain(&mut self, mut offer: impl FnMut(u16, &Bytes) -> bool) {
        let before = self.messages.len();
        while let Some((stream, pdu)) = self.messages.front()
            && offer(*stream, pdu)
        {
            self.octets = self.octets.saturating_sub(pdu.len() + ENTRY_SIZE);
            self.messages.pop_front();
        }
        if self.messages.len() < before && self.stalled_since.is_some() {
            self.stalled_since = Some(Instant::now());
        }
    }

    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Whether the gNB is not read because of this queue.
    pub fn keeps_unread(&self) -> bool {
        self.stalled_since.is_some()
    }

    fn deadline(&self) -> Option<Instant> {
        self.stalled_since.map(|since| since + MAX_STALL)
    }
}

/// The queues of all gNBs; a gNB without queued messages has no entry.
#[derive(Default)]
pub(super) struct Backlogs {
    held: HashMap<AssociationId, Backlog>,
    /// The earliest time at which a gNB may exceed the stall limit.
    look_at: Option<Instant>,
}

impl Backlogs {
    /// Whether messages are queued for a gNB.
    pub fn holds(&self, association: AssociationId) -> bool {
        self.held.contains_key(&association)
    }

    /// Whether a gNB is not read because of its queue.
    pub fn keeps_unread(&self, association: AssociationId) -> bool {
        self.held.get(&association).is_some_and(Backlog::keeps_unread)
    }

    /// Queues a message.
    pub fn push(&mut self, association: AssociationId, stream: u16, pdu: Bytes) -> Level {
        let backlog = self.held.entry(association).or_default();
        let level = backlog.push(stream, pdu);
        if level == Level::Low {
            let now = Instant::now();
            backlog.stalled_since = Some(now);
            self.look_at.get_or_insert(now + MAX_STALL);
        }
        level
    }

    /// Removes the queue of a gNB, to be sent now.
    pub fn remove(&mut self, association: AssociationId) -> Option<Backlog> {
        self.held.remove(&association)
    }

    /// Restores the queue with the messages that could not be sent.
    pub fn put_back(&mut self, association: AssociationId, backlog: Backlog) {
        self.held.insert(association, backlog);
    }

    /// The latest time for the next call of [`Backlogs::stalled`].
    pub fn next_deadline(&self) -> Option<Instant> {
        self.look_at
    }

    /// Associations that exceed the stall limit. Cheap before the earliest possible time.
    pub fn stalled(&mut self, now: Instant) -> Vec<AssociationId> {
        if self.look_at.is_none_or(|at| now < at) {
            return Vec::new();
        }
        let deadlines = || self.held.iter().filter_map(|(id, backlog)| Some((*id, backlog.deadline()?)));
        self.look_at = deadlines().map(|(_, at)| at).filter(|at| *at > now).min();
        deadlines().filter(|(_, at)| *at <= now).map(|(id, _)| id).collect()
    }
}
