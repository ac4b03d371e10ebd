//! Reliable delivery: duplicate requests get the stored response, unanswered requests are retransmitted (TS
//! 29.244 6.4).

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::ops::Bound;
use std::time::Duration;

use pith_pfcp::MessageType;

use crate::handover::{Octets, ResponseRecord};

/// A sequence number is unique among a peer's pending requests.
type Key = (SocketAddr, u32);

/// Maximum number of stored responses; beyond, the oldest of the peer with the most are removed. The limit bounds memory:
/// at up to 33,000 requests a second responses are stored for 15 s, at up to 166,000 for a T1 of 3 s.
const MAX_RESPONSES: usize = 500_000;
/// Responses removed at a time, because finding that peer examines all peers.
const GIVE_WAY: usize = 1024;

/// Sent responses, stored for duplicates of their requests.
#[derive(Debug, Default)]
pub struct Responses {
    kept: HashMap<Key, Response>,
    /// The keys of each address, by age.
    by_age: BTreeMap<IpAddr, VecDeque<(Duration, Key)>>,
    /// The last address whose expired responses were removed.
    visited: Option<IpAddr>,
}

#[derive(Debug)]
struct Response {
    /// A hash of the request: a duplicate has the same content, a new request that reuses the number does
    /// not.
    request: u64,
    octets: Box<[u8]>,
    until: Duration,
}

fn fingerprint(octets: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    octets.hash(&mut hasher);
    hasher.finish()
}

impl Responses {
    /// The stored response to `request`.
    pub fn find(&self, peer: SocketAddr, sequence: u32, request: &[u8]) -> Option<&[u8]> {
        let response = self.kept.get(&(peer, sequence))?;
        (response.request == fingerprint(request)).then_some(&response.octets)
    }

    /// Stores the response to `request` until `until`, and removes those expired at `now`.
    pub fn keep(&mut self, key: Key, request: &[u8], octets: Vec<u8>, now: Duration, until: Duration) {
        self.drop_expired(key.0.ip(), now);
        self.drop_expired_of_next(now);
        if self.kept.len() >= MAX_RESPONSES {
            let most = self.by_age.iter().max_by_key(|(_, responses)| responses.len());
            let most = most.map(|(peer, _)| *peer);
            most.into_iter().for_each(|peer| (0..GIVE_WAY).for_each(|_| self.drop_oldest(peer)));
        }
        self.by_age.entry(key.0.ip()).or_default().push_back((until, key));
        self.kept.insert(key, Response { request: fingerprint(request), octets: octets.into(), until });
    }

    /// Forgets the responses to a peer that has restarted: its sequence numbers begin again, and a request may equal one of
    /// before, such as the one that restores a session.
    pub fn forget(&mut self, peer: SocketAddr) {
        self.kept.retain(|(to, _), _| *to != peer);
    }

    /// The responses that are still stored at `now`, by age, for the UPF's successor.
    pub fn records(&self, now: Duration) -> impl Iterator<Item = ResponseRecord> {
        let keys = self.by_age.values().flatten();
        keys.filter_map(move |(until, key)| {
            let Response { request, octets, until: current } = self.kept.get(key)?;
            let is_current = current == until && *until > now;
            is_current.then(|| ResponseRecord {
                peer: key.0,
                sequence: key.1,
                request: *request,
                octets: Octets(octets.to_vec()),
                until: *until,
            })
        })
    }

    /// Stores a response of the UPF's predecessor.
    pub fn adopt(&mut self, record: ResponseRecord) {
        let ResponseRecord { peer, sequence, request, octets: Octets(octets), until } = record;
        let key = (peer, sequence);
        if self.kept.len() < MAX_RESPONSES {
            self.by_age.entry(peer.ip()).or_default().push_back((until, key));
            self.kept.insert(key, Response { request, octets: octets.into(), until });
        }
    }

    fn drop_expired(&mut self, peer: IpAddr, now: Duration) {
        let oldest = |responses: &Self| responses.by_age.get(&peer)?.front().copied();
        while oldest(self).is_some_and(|(until, _)| until <= now) {
            self.drop_oldest(peer);
        }
    }

    /// Removes expired responses of one more peer, so that those of silent peers are removed, too.
    fn drop_expired_of_next(&mut self, now: Duration) {
        let after = self.visited.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.by_age.range((after, Bound::Unbounded)).next().map(|(peer, _)| *peer);
        self.visited = next;
        next.into_iter().for_each(|peer| self.drop_expired(peer, now));
    }

    fn drop_oldest(&mut self, peer: IpAddr) {
        let Some(responses) = self.by_age.get_mut(&peer) else { return };
        let oldest = responses.pop_front();
        if responses.is_empty() {
            self.by_age.remove(&peer);
        }
        let Some((until, key)) = oldest else { return };
        if self.kept.get(&key).is_some_and(|response| response.until <= until) {
            self.kept.remove(&key);
        }
    }
}

/// A pending request of the UPF.
#[derive(Debug)]
pub struct Outstanding<P> {
    pub peer: SocketAddr,
    pub message_type: MessageType,
    pub purpose: P,
    octets: Vec<u8>,
    attempts: u32,
    due: Duration,
}

impl<P> Outstanding<P> {
    /// The message.
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// How often it was sent.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// When it is sent again.
    pub fn due(&self) -> Duration {
        self.due
    }
}

/// The result of an expired T1.
pub enum Expired<P> {
    /// Retransmit these octets.
    Again(SocketAddr, Vec<u8>),
    /// The request was sent N1 times without response; its sequence number and the request.
    Failed(u32, Outstanding<P>),
}

/// Pending requests of the UPF.
#[derive(Debug)]
pub struct Requests<P> {
    waiting: HashMap<u32, Outstanding<P>>,
    /// The number of pending requests to each peer.
    by_peer: BTreeMap<SocketAddr, usize>,
    timers: BTreeSet<(Duration, u32)>,
    last_sequence: u32,
    t1: Duration,
    n1: u32,
}

impl<P> Requests<P> {
    /// No requests; T1 and N1 as configured.
    pub fn new(t1: Duration, n1: u32) -> Self {
        Requests {
            waiting: HashMap::new(),
            by_peer: BTreeMap::new(),
            timers: BTreeSet::new(),
            last_sequence: 0,
            t1,
            n1,
        }
    }

    /// All pending requests, with their sequence numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Outstanding<P>)> {
        self.waiting.iter().map(|(sequence, request)| (*sequence, request))
    }

    /// The last sequence number.
    pub fn last_sequence(&self) -> u32 {
        self.last_sequence
    }

    /// Uses sequence numbers after that of the UPF's predecessor.
    pub fn continue_after(&mut self, last_sequence: u32) {
        self.last_sequence = last_sequence & 0x00ff_ffff;
    }

    /// Adds a request of the UPF's predecessor, which has sent it `attempts` times; it is due again at `due`.
    pub fn adopt(
        &mut self,
        (sequence, message_type): (u32, MessageType),
        peer: SocketAddr,
        octets: Vec<u8>,
        purpose: P,
        (attempts, due): (u32, Duration),
    ) {
        self.take(sequence);
        self.timers.insert((due, sequence));
        *self.by_peer.entry(peer).or_default() += 1;
        self.waiting.insert(sequence, Outstanding { peer, message_type, purpose, octets, attempts, due });
    }

    /// A sequence number that no pending request has.
    pub fn next_sequence(&mut self) -> u32 {
        loop {
            self.last_sequence = (self.last_sequence + 1) & 0x00ff_ffff;
            if !self.waiting.contains_key(&self.last_sequence) {
                return self.last_sequence;
            }
        }
    }

    /// Adds a request that was sent at `now`.
    pub fn wait(
        &mut self,
        now: Duration,
        peer: SocketAddr,
        (sequence, message_type): (u32, MessageType),
        octets: Vec<u8>,
        purpose: P,
    ) {
        let due = now + self.t1;
        self.timers.insert((due, sequence));
        *self.by_peer.entry(peer).or_default() += 1;
        self.waiting.insert(sequence, Outstanding { peer, message_type, purpose, octets, attempts: 1, due });
    }

    /// Removes and returns the request that a response of `message_type` from `peer` answers.
    pub fn answered(
        &mut self,
        peer: SocketAddr,
        sequence: u32,
        message_type: MessageType,
    ) -> Option<Outstanding<P>> {
        let request = self.waiting.get(&sequence)?;
        let matches = request.peer == peer && request.message_type.0 + 1 == message_type.0;
        if !matches {
            return None;
        }
        self.take(sequence)
    }

    /// The number of pending requests to a peer.
    pub fn waiting_for(&self, peer: SocketAddr) -> usize {
        self.by_peer.get(&peer).copied().unwrap_or(0)
    }

    fn take(&mut self, sequence: u32) -> Option<Outstanding<P>> {
        let request = self.waiting.remove(&sequence)?;
        self.timers.remove(&(request.due, sequence));
        if let Some(count) = self.by_peer.get_mut(&request.peer) {
            *count -= 1;
            if *count == 0 {
                self.by_peer.remove(&request.peer);
            }
        }
        Some(request)
    }

    /// Removes a request that is obsolete.
    pub fn cancel(&mut self, sequence: u32) {
        self.take(sequence);
    }

    /// The time of the next T1 expiry.
    pub fn next_timeout(&self) -> Option<Duration> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// Handles the next expired T1.
    pub fn expired(&mut self, now: Duration) -> Option<Expired<P>> {
        let (due, sequence) = self.timers.first().copied().filter(|(due, _)| *due <= now)?;
        let request = self.waiting.get_mut(&sequence)?;
        if request.attempts >= self.n1 {
            return Some(Expired::Failed(sequence, self.take(sequence)?));
        }
        self.timers.remove(&(due, sequence));
        request.attempts = request.attempts.saturating_add(1);
        request.due = now + self.t1;
        self.timers.insert((request.due, sequence));
        Some(Expired::Again(request.peer, request.octets.clone()))
    }
}
