//! Requests under way in both directions (TS 29.244 6.4).

use crate::kit::Tag;
use pith_pfcp::{Header, MessageType};
use pith_types::ShardId;
use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

/// Sequence numbers have 24 bits (TS 29.244 7.2.2.2).
const SEQUENCE_MASK: u32 = 0x00ff_ffff;

/// Requests of each UPF that are remembered, for when they come again.
const REMEMBERED: usize = 4096;

/// By whom and by which number a request was sent.
type Sender = (SocketAddr, u32);

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// An SMF's, about a session.
    Session { shard: ShardId, tag: Tag },
    /// An association with the peer of that index.
    Association { peer: usize },
    /// Whether the peer of that index lives.
    Heartbeat { peer: usize },
    /// The end of the association with the peer of that index.
    Release { peer: usize },
}

#[derive(Debug)]
pub(super) struct Pending {
    pub(super) purpose: Purpose,
    message_type: MessageType,
    to: SocketAddr,
    octets: Vec<u8>,
    sent: u32,
}

/// A request that was received.
#[derive(Debug)]
struct Received {
    /// Tells one that comes again from another with the same number: its sender began to count anew.
    content: u64,
    /// `None` while it is being worked on.
    answer: Option<Vec<u8>>,
}

/// Whether a request came before.
pub(super) enum Arrival {
    /// It did not.
    New,
    /// It did, and is being worked on.
    InWork,
    /// It did, and was answered so.
    Answered(Vec<u8>),
}

/// Requests sent and not answered, and requests received lately.
#[derive(Debug, Default)]
pub(super) struct Transactions {
    sequence: u32,
    pending: HashMap<u32, Pending>,
    /// How many wait for each UPF.
    waiting: HashMap<SocketAddr, usize>,
    received: HashMap<Sender, Received>,
    /// What was received of each address, oldest first.
    order: HashMap<IpAddr, VecDeque<Sender>>,
}

impl Transactions {
    /// A number that no pending request has.
    pub(super) fn next_sequence(&mut self) -> u32 {
        loop {
            self.sequence = (self.sequence + 1) & SEQUENCE_MASK;
            if self.sequence != 0 && !self.pending.contains_key(&self.sequence) {
                return self.sequence;
            }
        }
    }

    /// Notes a request that was sent for the first time.
    pub(super) fn begin(
        &mut self,
        (sequence, message_type): (u32, MessageType),
        to: SocketAddr,
        purpose: Purpose,
        octets: Vec<u8>,
    ) {
        *self.waiting.entry(to).or_default() += 1;
        self.pending.insert(sequence, Pending { purpose, message_type, to, octets, sent: 1 });
    }

    /// The request that this response ends: it comes from the address and port that the request went to
    /// (TS 29.244 4.2.2.2, 4.2.3.2), and its type is the next one to its request's (TS 29.244 table 7.3-1).
    pub(super) fn end(&mut self, response: &Header, from: SocketAddr) -> Option<Pending> {
        let pending = self.pending.get(&response.sequence)?;
        let ends = pending.to == from && pending.message_type.0 + 1 == response.message_type.0;
        if ends { self.give_up(response.sequence) } else { None }
    }

    /// What to send again; `None` if it was sent `n1` times.
    pub(super) fn again(&mut self, sequence: u32, n1: u32) -> Option<(SocketAddr, Vec<u8>)> {
        let pending = self.pending.get_mut(&sequence).filter(|pending| pending.sent < n1)?;
        pending.sent += 1;
        Some((pending.to, pending.octets.clone()))
    }

    /// Forgets a request.
    pub(super) fn give_up(&mut self, sequence: u32) -> Option<Pending> {
        let pending = self.pending.remove(&sequence)?;
        if let Some(count) = self.waiting.get_mut(&pending.to) {
            *count -= 1;
        }
        Some(pending)
    }

    /// How many requests wait for a peer's responses.
    pub(super) fn waiting_for(&self, peer: SocketAddr) -> usize {
        self.waiting.get(&peer).copied().unwrap_or(0)
    }

    /// The pending requests to that peer, first come first.
    pub(super) fn pending_to(&self, peer: SocketAddr) -> Vec<u32> {
        let pending = self.pending.iter().filter(|(_, pending)| pending.to == peer);
        let mut found: Vec<u32> = pending.map(|(sequence, _)| *sequence).collect();
        found.sort_unstable();
        found
    }

    /// Remembers a request, if it did not come before: what is sent again has the same number and content (TS 29.244 6.4).
    pub(super) fn receive(&mut self, from: SocketAddr, sequence: u32, octets: &[u8]) -> Arrival {
        let (from, content) = ((from, sequence), fingerprint(octets));
        match self.received.get(&from) {
            Some(known) if known.content == content => {
                return known.answer.clone().map_or(Arrival::InWork, Arrival::Answered);
            }
            Some(_) => self.order_of(from).retain(|other| *other != from),
            None => {}
        }
        self.received.insert(from, Received { content, answer: None });
        let order = self.order_of(from);
        order.push_back(from);
        let oldest = if order.len() > REMEMBERED { order.pop_front() } else { None };
        oldest.and_then(|oldest| self.received.remove(&oldest));
        Arrival::New
    }

    /// Keeps an answer for when its request comes again.
    pub(super) fn keep_answer(&mut self, to: SocketAddr, sequence: u32, octets: Vec<u8>) {
        if let Some(received) = self.received.get_mut(&(to, sequence)) {
            received.answer = Some(octets);
        }
    }

    /// Forgets what a peer that is gone was answered: if it comes back, it numbers its requests anew.
    pub(super) fn forget_answers(&mut self, peer: SocketAddr) {
        self.received.retain(|(from, _), received| from.ip() != peer.ip() || received.answer.is_none());
        let received = &self.received;
        self.order.values_mut().for_each(|order| order.retain(|from| received.contains_key(from)));
    }

    fn order_of(&mut self, sender: Sender) -> &mut VecDeque<Sender> {
        self.order.entry(sender.0.ip()).or_default()
    }
}

fn fingerprint(octets: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    octets.hash(&mut hasher);
    hasher.finish()
}
