//! Rates of events, and the rate limit of unknown peers' TLS handshakes, as each costs the server a signature.

use super::share::Peer;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// Rates of handshakes: of one unknown peer, and of all unknown peers together.
const OF_ONE: Rate = Rate { interval: Duration::from_millis(50), burst: 64 };
const OF_ALL: Rate = Rate { interval: Duration::from_micros(2500), burst: 256 };
/// Maximum number of unknown peers whose rates are stored.
const MAX_PEERS: usize = 4096;

/// One event per interval, and a burst after a pause.
#[derive(Clone, Copy)]
pub(super) struct Rate {
    pub interval: Duration,
    pub burst: u32,
}

impl Rate {
    /// Whether one more event is within the rate. `full_at` is the time at which the whole burst is available again.
    fn take(self, full_at: &mut Instant, now: Instant) -> bool {
        let next = (*full_at).max(now) + self.interval;
        let is_within = next - now <= self.interval * self.burst;
        if is_within {
            *full_at = next;
        }
        is_within
    }

    /// Counts an event that has happened, whether it is within the rate or not.
    pub fn add(self, full_at: &mut Instant, now: Instant) {
        *full_at = (*full_at).max(now) + self.interval;
    }

    /// The time from which the events so far are within the rate; `None` if they are at any time.
    pub fn free_at(self, full_at: Instant) -> Option<Instant> {
        full_at.checked_sub(self.interval * self.burst)
    }
}

/// The handshakes of unknown peers.
pub(super) struct HandshakeRates {
    all: Instant,
    peers: HashMap<Peer, Instant>,
}

impl HandshakeRates {
    pub fn new(now: Instant) -> Self {
        Self { all: now, peers: HashMap::new() }
    }

    /// Whether the unknown peer may start a handshake now.
    pub fn take(&mut self, peer: Peer, now: Instant) -> bool {
        if self.peers.len() >= MAX_PEERS {
            self.peers.retain(|_, full_at| *full_at > now);
        }
        if self.peers.len() >= MAX_PEERS && !self.peers.contains_key(&peer) {
            return false;
        }
        let of_one = self.peers.entry(peer).or_insert(now);
        OF_ONE.take(of_one, now) && OF_ALL.take(&mut self.all, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn an_unknown_peer_is_limited_and_leaves_room_for_others() {
        let begun = Instant::now();
        let mut rates = HandshakeRates::new(begun);
        let peer = |host| Peer::at(IpAddr::from([192, 0, 2, host]));
        assert_eq!((0..1000).filter(|_| rates.take(peer(1), begun)).count(), 64);
        assert!(rates.take(peer(2), begun));
        let later = begun + Duration::from_secs(1);
        assert_eq!((0..1000).filter(|_| rates.take(peer(1), later)).count(), 20);
        let much_later = begun + Duration::from_secs(60);
        let many = (0..=255).flat_map(|host| [peer(host); 4]);
        assert_eq!(many.filter(|peer| rates.take(*peer, much_later)).count(), 256);
    }
}
