//! The peers that a client has called recently.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::Instant;

/// Largest number of peers, not counting peers with a call in progress. Peers can choose further peers by callback URIs,
/// so the number must be bounded.
pub(super) const LIMIT: usize = 1024;
/// Time after the last call for which a peer and its connection are kept.
pub(super) const AGE: Duration = Duration::from_secs(600);

/// Peers by name, each with the time of the last call.
pub(super) struct Peers<P> {
    known: HashMap<String, (Rc<P>, Instant)>,
}

impl<P> Default for Peers<P> {
    fn default() -> Self {
        Self { known: HashMap::new() }
    }
}

impl<P: Default> Peers<P> {
    /// The peer with this name, which is added if unknown; records the time of the call.
    pub fn get_or_insert(&mut self, name: &str, now: Instant) -> Rc<P> {
        if !self.known.contains_key(name) {
            self.make_room(now);
        }
        let (peer, called) = self.known.entry(name.to_owned()).or_insert_with(|| (Rc::default(), now));
        *called = now;
        peer.clone()
    }

    /// Removes unused peers: those not called for a long time, and if there are still too many, the one with
    /// the oldest call.
    fn make_room(&mut self, now: Instant) {
        self.known.retain(|_, (peer, called)| Rc::strong_count(peer) > 1 || now - *called < AGE);
        if self.known.len() < LIMIT {
            return;
        }
        let unused = self.known.iter().filter(|(_, (peer, _))| Rc::strong_count(peer) == 1);
        let oldest = unused.min_by_key(|(_, (_, called))| *called).map(|(name, _)| name.clone());
        if let Some(name) = oldest {
            self.known.remove(&name);
        }
    }

    /// The number of peers.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.known.len()
    }
}
