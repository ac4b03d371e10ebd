//! Requests that a shard sent before it panicked, or gave up ([`super::late`]), and that the UPF has not answered. A datagram of the next
//! run could overtake one of these, and the UPF would be left with the rules of the former run.
//!
//! ```text
//!  shard, run 0 ── modification ──> UPF
//!  shard, run 1 ── TakenOver        the request is former
//!  shard, run 1 ── modification     waits
//!                <── response ──    UPF, or T1
//!                   modification ─> UPF
//! ```

use super::{N4Effect, N4Gateway};
use pith_pfcp::Message;
use pith_types::{Seid, ShardId};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// A session at a UPF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SessionAtUpf {
    upf: SocketAddr,
    /// The UPF's SEID; 0 in a request to establish the session (TS 29.244 7.2.2.4.2).
    seid: Seid,
    /// The SMF's SEID in such a request.
    of_smf: Option<u64>,
}

impl SessionAtUpf {
    /// The session of a request.
    pub(super) const fn of(upf: SocketAddr, seid: Seid, message: &Message) -> Self {
        let of_smf = match message {
            Message::SessionEstablishmentRequest(request) => Some(request.cp_f_seid.seid),
            _ => None,
        };
        Self { upf, seid, of_smf }
    }
}

/// Former requests, and the requests that wait for their ends.
#[derive(Debug, Default)]
pub(super) struct FormerRequests {
    /// By sequence number.
    open: BTreeMap<u32, SessionAtUpf>,
    waiting: VecDeque<(SessionAtUpf, ShardId, N4Effect)>,
}

impl FormerRequests {
    /// Records a request that may still arrive.
    pub(super) fn note(&mut self, sequence: u32, session: SessionAtUpf) {
        self.open.insert(sequence, session);
    }

    /// The request was answered.
    pub(super) fn end(&mut self, sequence: u32) {
        self.open.remove(&sequence);
    }

    fn is_open(&self, place: SessionAtUpf) -> bool {
        self.open.values().any(|open| *open == place)
    }
}

impl N4Gateway {
    /// A shard has panicked: what it sent is neither retransmitted nor overtaken.
    pub(super) fn note_former(&mut self, shard: ShardId) {
        self.former.open.extend(self.transactions.stop_retransmitting(shard));
    }

    /// Returns an effect unless it is a request that waits for a former one of its session.
    pub(super) fn wait_for_former(&mut self, shard: ShardId, effect: N4Effect) -> Option<N4Effect> {
        if self.former.open.is_empty() {
            return Some(effect);
        }
        let place = match &effect {
            N4Effect::Request { upf, seid, message, .. } => {
                self.address_of(*upf).map(|address| SessionAtUpf::of(address, *seid, message))
            }
            _ => None,
        };
        match place.filter(|place| self.former.is_open(*place)) {
            Some(place) => {
                self.former.waiting.push_back((place, shard, effect));
                None
            }
            None => Some(effect),
        }
    }

    /// An input was handled: sends what waited for former requests that are over.
    pub(super) fn send_waiting(&mut self) {
        if self.former.open.is_empty() && self.former.waiting.is_empty() {
            return;
        }
        let transactions = &self.transactions;
        self.former.open.retain(|sequence, _| transactions.is_pending(*sequence));
        let is_due =
            |former: &FormerRequests| former.waiting.iter().position(|(place, ..)| !former.is_open(*place));
        while let Some((_, shard, effect)) =
            is_due(&self.former).and_then(|at| self.former.waiting.remove(at))
        {
            self.shard(shard, effect);
        }
    }
}
