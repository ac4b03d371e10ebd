//! Pending requests in both directions (TS 29.244 6.4).

use super::former::SessionAtUpf;
use crate::kit::Tag;
use pith_pfcp::{Header, Message, MessageType};
use pith_types::{Seid, ShardId};
use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

/// Sequence numbers have 24 bits (TS 29.244 7.2.2.2).
const SEQUENCE_MASK: u32 = 0x00ff_ffff;

/// Received requests recorded for each UPF, to detect retransmissions.
const REMEMBERED: usize = 4096;

/// Session requests sent to a UPF and not answered yet. More are queued here: a UPF whose receive buffer has the default
/// size of Linux holds some 270 datagrams, and what it drops is retransmitted only after T1, heartbeats included.
pub(super) const WINDOW: usize = 256;

/// Sender and sequence number of a request.
type Sender = (SocketAddr, u32);

/// The purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A session request of an SMF.
    Session { shard: ShardId, tag: Tag },
    /// An association with the peer of that index.
    Association { peer: usize },
    /// A heartbeat to the peer of that index.
    Heartbeat { peer: usize },
    /// The release of the association with the peer of that index.
    Release { peer: usize },
    /// The deletion of sessions of former runs at the peer of that index.
    Orphans { peer: usize },
    /// The establishment of a session at the peer of that index, which was given up.
    Late { peer: usize },
    /// The deletion of a session that no SM context knows: it was established late, or the UPF has refused to delete it so often.
    Leftover { repetition: u8 },
}

#[derive(Debug)]
pub(super) struct Pending {
    pub(super) purpose: Purpose,
    message_type: MessageType,
    pub(super) to: SocketAddr,
    octets: Vec<u8>,
    /// How often it was sent; 0 while it is queued.
    sent: u32,
    patience: Patience,
}

/// How long a request is retransmitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// N1 transmissions.
    N1,
    /// Until the UPF has answered a heartbeat, and N1 transmissions more: the request changes a session, which would end, or deletes it.
    Heartbeat,
    /// N1 transmissions had no answer. The number is that of the heartbeats which the UPF had answered by then: after the next one the request
    /// is sent N1 times more.
    Exhausted(u64),
}

impl Pending {
    /// Whether the UPF may establish a session when it receives the request.
    pub(super) fn may_establish(&self) -> bool {
        self.is_sent_for_session() && self.message_type == MessageType::SESSION_ESTABLISHMENT_REQUEST
    }

    /// Whether it was sent more than once, or was given up.
    pub(super) const fn was_retransmitted(&self) -> bool {
        self.sent > 1
    }

    /// The UPF's SEID, and the request.
    pub(super) fn request(&self) -> Option<(Seid, Message)> {
        let (header, message) = Message::decode(&self.octets).ok()?;
        Some((Seid(header.seid?), message))
    }

    /// The session.
    pub(super) fn session(&self) -> Option<SessionAtUpf> {
        let (header, message) = Message::decode(&self.octets).ok()?;
        Some(SessionAtUpf::of(self.to, Seid(header.seid?), &message))
    }

    const fn is_sent_for_session(&self) -> bool {
        self.sent > 0 && matches!(self.purpose, Purpose::Session { .. })
    }

    /// Whether it takes a place in the window of its UPF. One that waits for a heartbeat does not: others may be answered.
    const fn is_in_window(&self) -> bool {
        self.is_sent_for_session() && !matches!(self.patience, Patience::Exhausted(_))
    }
}

/// A request that was received.
#[derive(Debug)]
struct Received {
    /// Hash that distinguishes a retransmission from another request with the same number, whose
    /// sender has restarted its numbering.
    content: u64,
    /// `None` while the request is being processed.
    answer: Option<Vec<u8>>,
}

/// Whether a request is a retransmission.
pub(super) enum Arrival {
    /// No.
    New,
    /// Yes, and it is being processed.
    InWork,
    /// Yes, and this was the answer.
    Answered(Vec<u8>),
}

/// The requests to one UPF.
#[derive(Debug, Default)]
struct Outgoing {
    /// Number of pending requests.
    pending: usize,
    /// Number of pending requests that are in the window.
    in_window: usize,
    /// Sequence numbers of requests to send when the window has room.
    queued: VecDeque<u32>,
}

/// Requests sent and not answered, and requests received recently.
#[derive(Debug, Default)]
pub(super) struct Transactions {
    sequence: u32,
    pending: HashMap<u32, Pending>,
    /// The requests to each UPF.
    outgoing: HashMap<SocketAddr, Outgoing>,
    received: HashMap<Sender, Received>,
    /// Requests received from each address, oldest first.
    order: HashMap<IpAddr, VecDeque<Sender>>,
}

impl Transactions {
    /// No requests; the first one has the sequence number after this one.
    pub(super) fn new(sequence: u32) -> Self {
        Self { sequence: sequence & SEQUENCE_MASK, ..Self::default() }
    }

    /// Whether a request of that type is not answered yet.
    pub(super) fn awaits(&self, kind: MessageType) -> bool {
        self.pending.values().any(|pending| pending.message_type == kind)
    }

    /// A sequence number that no pending request has.
    pub(super) fn next_sequence(&mut self) -> u32 {
        loop {
            self.sequence = (self.sequence + 1) & SEQUENCE_MASK;
            if self.sequence != 0 && !self.pending.contains_key(&self.sequence) {
                return self.sequence;
            }
        }
    }

    /// Records a request. Returns whether to send it now; otherwise [`Self::next_queued`] returns it later.
    pub(super) fn begin(
        &mut self,
        (sequence, message_type): (u32, MessageType),
        to: SocketAddr,
        (purpose, patience): (Purpose, Patience),
        octets: Vec<u8>,
    ) -> bool {
        let outgoing = self.outgoing.entry(to).or_default();
        outgoing.pending += 1;
        let is_sent = outgoing.in_window < WINDOW || !matches!(purpose, Purpose::Session { .. });
        let pending = Pending { purpose, message_type, to, octets, sent: u32::from(is_sent), patience };
        if !is_sent {
            outgoing.queued.push_back(sequence);
        }
        outgoing.in_window += usize::from(pending.is_in_window());
        self.pending.insert(sequence, pending);
        is_sent
    }

    /// The next queued request to a UPF, if its window has room: to be sent.
    pub(super) fn next_queued(&mut self, to: SocketAddr) -> Option<(u32, Vec<u8>)> {
        let outgoing = self.outgoing.get_mut(&to)?;
        while outgoing.in_window < WINDOW {
            let sequence = outgoing.queued.pop_front()?;
            // It may have been given up while it was queued.
            let pending = self.pending.get_mut(&sequence);
            if let Some(pending) = pending.filter(|pending| pending.sent == 0 && pending.to == to) {
                pending.sent = 1;
                outgoing.in_window += 1;
                return Some((sequence, pending.octets.clone()));
            }
        }
        None
    }

    /// Removes and returns the request that this response answers. A response is sent from the
    /// address and port that the request was sent to (TS 29.244 4.2.2.2, 4.2.3.2), and its type
    /// follows that of the request (TS 29.244 table 7.3-1).
    pub(super) fn end(&mut self, response: &Header, from: SocketAddr) -> Option<Pending> {
        let pending = self.pending.get(&response.sequence)?;
        let ends = pending.to == from && pending.message_type.0 + 1 == response.message_type.0;
        if ends { self.remove(response.sequence) } else { None }
    }

    /// The message to retransmit; `None` if it was sent `n1_transmissions` times, and the UPF need not answer a heartbeat first. `heartbeats`:
    /// the number of heartbeats that the UPF has answered.
    pub(super) fn retransmit(
        &mut self,
        sequence: u32,
        n1_transmissions: u32,
        heartbeats: u64,
    ) -> Option<(SocketAddr, Vec<u8>)> {
        let pending = self.pending.get_mut(&sequence)?;
        let was_in_window = pending.is_in_window();
        // A request of a shard that has panicked.
        let is_given_up = pending.sent == u32::MAX;
        pending.sent = match pending.patience {
            _ if pending.sent < n1_transmissions => pending.sent + 1,
            _ if is_given_up => return None,
            Patience::N1 => return None,
            Patience::Heartbeat => {
                pending.patience = Patience::Exhausted(heartbeats);
                pending.sent
            }
            Patience::Exhausted(then) if then == heartbeats => pending.sent,
            Patience::Exhausted(_) => {
                pending.patience = Patience::N1;
                1
            }
        };
        if let Some(outgoing) = self.outgoing.get_mut(&pending.to) {
            outgoing.in_window -= usize::from(was_in_window);
            outgoing.in_window += usize::from(pending.is_in_window());
        }
        Some((pending.to, pending.octets.clone()))
    }

    /// The destination of a pending request.
    pub(super) fn destination(&self, sequence: u32) -> Option<SocketAddr> {
        self.pending.get(&sequence).map(|pending| pending.to)
    }

    /// Keeps an establishment that was given up, for its response. It is not retransmitted.
    pub(super) fn keep_late(&mut self, sequence: u32, peer: usize, pending: Pending) {
        self.outgoing.entry(pending.to).or_default().pending += 1;
        let purpose = Purpose::Late { peer };
        self.pending.insert(sequence, Pending { purpose, sent: u32::MAX, ..pending });
    }

    /// Establishments and modifications of a shard are no longer retransmitted, and those that were not sent yet are dropped. Returns the others,
    /// by their sequence numbers.
    pub(super) fn stop_retransmitting(&mut self, shard: ShardId) -> Vec<(u32, SessionAtUpf)> {
        let is_of_shard =
            |purpose: Purpose| matches!(purpose, Purpose::Session { shard: of, .. } if of == shard);
        let is_change = |pending: &Pending| pending.message_type != MessageType::SESSION_DELETION_REQUEST;
        let (mut unsent, mut sent) = (Vec::new(), Vec::new());
        for (sequence, pending) in &mut self.pending {
            if is_of_shard(pending.purpose) && is_change(pending) {
                match pending.sent {
                    0 => unsent.push(*sequence),
                    _ => {
                        pending.sent = u32::MAX;
                        sent.extend(pending.session().map(|session| (*sequence, session)));
                    }
                }
            }
        }
        for sequence in unsent {
            self.remove(sequence);
        }
        sent
    }

    /// Whether a request is not answered.
    pub(super) fn is_pending(&self, sequence: u32) -> bool {
        self.pending.contains_key(&sequence)
    }

    /// Removes a pending request.
    pub(super) fn remove(&mut self, sequence: u32) -> Option<Pending> {
        let pending = self.pending.remove(&sequence)?;
        if let Some(outgoing) = self.outgoing.get_mut(&pending.to) {
            outgoing.pending -= 1;
            outgoing.in_window -= usize::from(pending.is_in_window());
            if outgoing.pending == 0 {
                // What a burst needed is given back.
                self.outgoing.remove(&pending.to);
                shrink(&mut self.pending);
            }
        }
        Some(pending)
    }

    /// Number of pending requests to a peer.
    pub(super) fn waiting_for(&self, peer: SocketAddr) -> usize {
        self.outgoing.get(&peer).map_or(0, |outgoing| outgoing.pending)
    }

    /// The pending requests to that peer that its association's end concerns, oldest first.
    pub(super) fn pending_to(&self, peer: SocketAddr) -> Vec<u32> {
        let outlives =
            |pending: &Pending| matches!(pending.purpose, Purpose::Late { .. } | Purpose::Leftover { .. });
        let pending = self.pending.iter().filter(|(_, pending)| pending.to == peer && !outlives(pending));
        let mut found: Vec<u32> = pending.map(|(sequence, _)| *sequence).collect();
        found.sort_unstable();
        found
    }

    /// Records a request, unless it is a retransmission: that has the same number and content (TS
    /// 29.244 6.4).
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

    /// Keeps an answer for a retransmission of its request.
    pub(super) fn keep_answer(&mut self, to: SocketAddr, sequence: u32, octets: Vec<u8>) {
        if let Some(received) = self.received.get_mut(&(to, sequence)) {
            received.answer = Some(octets);
        }
    }

    /// Deletes the answers to a lost peer: after a restart its sequence numbers start again.
    pub(super) fn forget_answers(&mut self, peer: SocketAddr) {
        self.received.retain(|(from, _), received| from.ip() != peer.ip() || received.answer.is_none());
        let received = &self.received;
        self.order.values_mut().for_each(|order| order.retain(|from| received.contains_key(from)));
    }

    fn order_of(&mut self, sender: Sender) -> &mut VecDeque<Sender> {
        self.order.entry(sender.0.ip()).or_default()
    }
}

/// Requests for which a table keeps its memory when it is empty.
const KEPT: usize = 4096;

fn shrink(pending: &mut HashMap<u32, Pending>) {
    if pending.capacity() > KEPT && pending.len() < KEPT {
        pending.shrink_to(KEPT);
    }
}

fn fingerprint(octets: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    octets.hash(&mut hasher);
    hasher.finish()
}
