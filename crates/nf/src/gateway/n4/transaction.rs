//! Requests under way in both directions (TS 29.244 6.4).

use crate::kit::{Tag, UpfHandle};
use pith_types::ShardId;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

/// Sequence numbers have 24 bits (TS 29.244 7.2.2.2).
const SEQUENCE_MASK: u32 = 0x00ff_ffff;

/// Answers that are kept for requests that come again.
const KEPT_ANSWERS: usize = 4096;

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// An SMF's, about a session.
    Session { shard: ShardId, tag: Tag, upf: UpfHandle },
    /// An association with the peer of that index.
    Association { peer: usize },
    /// Whether the peer of that index lives.
    Heartbeat { peer: usize },
    /// The end of an association; nobody waits for the answer.
    Release,
}

#[derive(Debug)]
pub(super) struct Pending {
    pub(super) purpose: Purpose,
    to: SocketAddr,
    octets: Vec<u8>,
    sent: u32,
}

/// Requests sent and not answered, and requests received and answered lately.
#[derive(Debug, Default)]
pub(super) struct Transactions {
    sequence: u32,
    pending: HashMap<u32, Pending>,
    /// Received requests: `None` while the SMF works on the answer.
    answers: HashMap<(SocketAddr, u32), Option<Vec<u8>>>,
    order: VecDeque<(SocketAddr, u32)>,
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
    pub(super) fn begin(&mut self, sequence: u32, to: SocketAddr, purpose: Purpose, octets: Vec<u8>) {
        self.pending.insert(sequence, Pending { purpose, to, octets, sent: 1 });
    }

    /// The request that this response of that peer ends.
    pub(super) fn end(&mut self, sequence: u32, from: SocketAddr) -> Option<Pending> {
        self.pending.get(&sequence).filter(|pending| pending.to.ip() == from.ip())?;
        self.pending.remove(&sequence)
    }

    /// What to send again; `None` if it was sent `n1` times.
    pub(super) fn again(&mut self, sequence: u32, n1: u32) -> Option<(SocketAddr, Vec<u8>)> {
        let pending = self.pending.get_mut(&sequence).filter(|pending| pending.sent < n1)?;
        pending.sent += 1;
        Some((pending.to, pending.octets.clone()))
    }

    /// Forgets a request.
    pub(super) fn give_up(&mut self, sequence: u32) -> Option<Pending> {
        self.pending.remove(&sequence)
    }

    /// The pending requests of SMFs to that UPF.
    pub(super) fn of_upf(&self, upf: UpfHandle) -> Vec<(u32, Purpose)> {
        let of_upf =
            |purpose: &Purpose| matches!(purpose, Purpose::Session { upf: other, .. } if *other == upf);
        let pending = self.pending.iter().map(|(sequence, pending)| (*sequence, pending.purpose));
        let mut found: Vec<_> = pending.filter(|(_, purpose)| of_upf(purpose)).collect();
        found.sort_by_key(|(sequence, _)| *sequence);
        found
    }

    /// Notes a request that an SMF is to answer; `false` if it is being worked on already.
    pub(super) fn begin_answer(&mut self, from: SocketAddr, sequence: u32) -> bool {
        if self.answers.contains_key(&(from, sequence)) {
            return false;
        }
        self.keep(from, sequence, None);
        true
    }

    /// Keeps an answer for when the request comes again.
    pub(super) fn keep_answer(&mut self, to: SocketAddr, sequence: u32, octets: Vec<u8>) {
        match self.answers.get_mut(&(to, sequence)) {
            Some(slot) => *slot = Some(octets),
            None => self.keep(to, sequence, Some(octets)),
        }
    }

    /// Forgets the answers to a peer that is gone: if it comes back, it numbers its requests anew.
    pub(super) fn forget_answers(&mut self, peer: SocketAddr) {
        self.answers.retain(|(to, _), _| to.ip() != peer.ip());
        self.order.retain(|(to, _)| to.ip() != peer.ip());
    }

    /// The answer that a request got when it came before.
    pub(super) fn answered(&self, from: SocketAddr, sequence: u32) -> Option<&[u8]> {
        self.answers.get(&(from, sequence))?.as_deref()
    }

    fn keep(&mut self, peer: SocketAddr, sequence: u32, answer: Option<Vec<u8>>) {
        self.answers.insert((peer, sequence), answer);
        self.order.push_back((peer, sequence));
        if self.order.len() > KEPT_ANSWERS
            && let Some(oldest) = self.order.pop_front()
        {
            self.answers.remove(&oldest);
        }
    }
}
