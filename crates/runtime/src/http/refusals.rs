//! Slows peers whose requests are refused. Their refusals must not delay the requests of other NFs: the server reads from
//! such a peer's connections only as fast as [`RATE`] permits, so that the flow control of TCP slows the peer.

use super::rate::Rate;
use super::share::Peer;
use hyper::StatusCode;
use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// Refusals of one peer: 2,000 a second cost less than a tenth of a core. A burst is handled at once; it occurs if the key
/// of access tokens was replaced.
const RATE: Rate = Rate { interval: Duration::from_micros(500), burst: 64 };
/// Peers that are remembered. Peers beyond that are not slowed; each has a connection, and their number is limited.
const PEERS: usize = 4096;

/// Recent refusals, by peer.
#[derive(Default)]
pub(super) struct Refusals(RefCell<HashMap<Peer, Instant>>);

impl Refusals {
    /// Counts a response if it refuses the request as unauthorized or malformed.
    pub fn count(&self, peer: Peer, status: StatusCode, now: Instant) {
        if !matches!(status, StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return;
        }
        let mut peers = self.0.borrow_mut();
        if peers.len() >= PEERS {
            peers.retain(|_, full_at| *full_at > now);
        }
        if peers.len() < PEERS || peers.contains_key(&peer) {
            RATE.add(peers.entry(peer).or_insert(now), now);
        }
    }

    /// The time until which requests of the peer are not read; `None` if they are.
    pub fn paused_until(&self, peer: Peer, now: Instant) -> Option<Instant> {
        let free_at = self.0.borrow().get(&peer).map(|full_at| RATE.free_at(*full_at));
        free_at.flatten().filter(|free_at| *free_at > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn a_peer_with_many_refusals_is_paused_and_others_are_not() {
        let (refusals, now) = (Refusals::default(), Instant::now());
        let peer = |host| Peer::at(IpAddr::from([192, 0, 2, host]));
        for _ in 0..RATE.burst {
            refusals.count(peer(1), StatusCode::FORBIDDEN, now);
            refusals.count(peer(2), StatusCode::NOT_FOUND, now);
        }
        assert_eq!(refusals.paused_until(peer(1), now), None);
        for _ in 0..200 {
            refusals.count(peer(1), StatusCode::UNAUTHORIZED, now);
        }
        assert_eq!(refusals.paused_until(peer(1), now), Some(now + Duration::from_millis(100)));
        assert_eq!(refusals.paused_until(peer(1), now + Duration::from_millis(100)), None);
        assert_eq!(refusals.paused_until(peer(2), now), None);
    }
}
