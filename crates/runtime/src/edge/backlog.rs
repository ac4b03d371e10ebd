//! What gNBs are still to be sent, and how much of it the edge puts up with.
//!
//! ```text
//!  octets that wait   0 ─────────> LOW_MARK ─────────> HIGH_MARK
//!  the gNB            is read      is not read         is given up
//!                                  MAX_STALL: is given up
//! ```
//!
//! A gNB that does not read keeps its association: SCTP acknowledges for it, and probes a closed window for ever.
//! So what waits for it has bounds here. Not to read a gNB bounds what it provokes itself (errors, answers); it is
//! read again only when nothing waits any more. What other UEs' procedures send it (PAGING) is bounded by giving it up.
//!
//! A gNB that writes before it reads, and is not read, never reads: so not to be read has an end as well.

use crate::sctp::AssociationId;
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// Octets waiting for one gNB above which it is not read, beside the 1 MiB that SCTP holds
/// (`SctpConfig::send_buffer`): several hundred messages, more than a burst leaves behind at a gNB that reads.
pub(super) const LOW_MARK: usize = 64 << 10;

/// Octets waiting for one gNB above which it is given up. When it is no longer read, shards may still hold
/// `task_buffer` (4096) of its messages: room for an answer of 1 KiB to each.
pub(super) const HIGH_MARK: usize = 4 << 20;

/// How long a gNB that is not read may take nothing at all: as long as SCTP itself waits at most for one that
/// acknowledges nothing (`SctpConfig::max_retransmissions` times `rto_max`).
pub(super) const MAX_STALL: Duration = Duration::from_secs(15);

/// Octets that a message takes besides its own, so that many small ones count for what they cost.
const PLACE: usize = size_of::<(u16, Bytes)>();

/// What a message did to the messages that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// Nothing to be done.
    Unchanged,
    /// From now on the gNB is not to be read.
    Low,
    /// The gNB is to be given up.
    High,
}

/// The messages that wait for one gNB.
#[derive(Default)]
pub(super) struct Backlog {
    /// With their streams, oldest first.
    messages: VecDeque<(u16, Bytes)>,
    /// What they take.
    octets: usize,
    /// Set while the gNB is not read: since when it has taken nothing.
    stalled_since: Option<Instant>,
}

impl Backlog {
    fn push(&mut self, stream: u16, pdu: Bytes) -> Level {
        self.octets = self.octets.saturating_add(pdu.len() + PLACE);
        self.messages.push_back((stream, pdu));
        match self.octets {
            octets if octets > HIGH_MARK => Level::High,
            octets if octets > LOW_MARK && self.stalled_since.is_none() => Level::Low,
            _ => Level::Unchanged,
        }
    }

    /// Takes messages off, oldest first, as long as `offer` takes them.
    pub fn drain(&mut self, mut offer: impl FnMut(u16, &Bytes) -> bool) {
        let before = self.messages.len();
        while let Some((stream, pdu)) = self.messages.front()
            && offer(*stream, pdu)
        {
            self.octets = self.octets.saturating_sub(pdu.len() + PLACE);
            self.messages.pop_front();
        }
        if self.messages.len() < before && self.stalled_since.is_some() {
            self.stalled_since = Some(Instant::now());
        }
    }

    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Whether the gNB is not read because of what waits.
    pub fn keeps_unread(&self) -> bool {
        self.stalled_since.is_some()
    }

    fn deadline(&self) -> Option<Instant> {
        self.stalled_since.map(|since| since + MAX_STALL)
    }
}

/// What waits for all gNBs: entries only where something does.
#[derive(Default)]
pub(super) struct Backlogs {
    held: HashMap<AssociationId, Backlog>,
    /// When one may have stalled for too long; not later than that.
    look_at: Option<Instant>,
}

impl Backlogs {
    /// Whether something waits for a gNB.
    pub fn holds(&self, association: AssociationId) -> bool {
        self.held.contains_key(&association)
    }

    /// Whether a gNB is not read because of what waits for it.
    pub fn keeps_unread(&self, association: AssociationId) -> bool {
        self.held.get(&association).is_some_and(Backlog::keeps_unread)
    }

    /// Adds a message to those that wait.
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

    /// Takes out what waits for a gNB, to be sent now.
    pub fn remove(&mut self, association: AssociationId) -> Option<Backlog> {
        self.held.remove(&association)
    }

    /// Puts back what could not be sent.
    pub fn put_back(&mut self, association: AssociationId, backlog: Backlog) {
        self.held.insert(association, backlog);
    }

    /// When [`Backlogs::stalled`] is to be asked at the latest.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.look_at
    }

    /// Associations that have stalled for too long. Costs nothing before one may have.
    pub fn stalled(&mut self, now: Instant) -> Vec<AssociationId> {
        if self.look_at.is_none_or(|at| now < at) {
            return Vec::new();
        }
        let deadlines = || self.held.iter().filter_map(|(id, backlog)| Some((*id, backlog.deadline()?)));
        self.look_at = deadlines().map(|(_, at)| at).filter(|at| *at > now).min();
        deadlines().filter(|(_, at)| *at <= now).map(|(id, _)| id).collect()
    }
}
