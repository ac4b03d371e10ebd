//! The peers of tunnels, collected from the sessions' rules.

use crate::rules::Rules;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// A host remains a peer this long after its last tunnel: all UEs of a small cell may be idle for a while.
const LINGER: Duration = Duration::from_secs(600);
/// Interval of the search for hosts without tunnels.
const SWEEP: Duration = Duration::from_secs(60);
/// Most peers; GTP-U of others is accepted from `Boundary::radios` only.
const MOST_PEERS: usize = 16_384;

#[derive(Debug, Default)]
pub struct Peers {
    known: HashMap<IpAddr, Peer>,
    swept: Option<Instant>,
    is_full: bool,
}

#[derive(Debug)]
struct Peer {
    /// Number of sessions with a tunnel to it.
    sessions: usize,
    /// Time at which its last tunnel was removed; `None` while it has one.
    idle_since: Option<Instant>,
}

/// Hosts that became peers, and that are peers no longer.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Change {
    pub known: Vec<IpAddr>,
    pub forgotten: Vec<IpAddr>,
}

impl Peers {
    /// Replaces the rules of a session.
    pub fn replace(&mut self, new: Option<&Rules>, old: Option<&Rules>) -> Change {
        let mut known = Vec::new();
        known.extend(new.into_iter().flat_map(peers_of).filter(|peer| self.add(*peer)));
        if old.is_none() {
            return Change { known, forgotten: Vec::new() };
        }
        let now = Instant::now();
        for peer in old.into_iter().flat_map(peers_of) {
            self.remove(peer, now);
        }
        Change { known, forgotten: self.sweep(now) }
    }

    /// Returns whether the host is new.
    fn add(&mut self, peer: IpAddr) -> bool {
        if let Some(known) = self.known.get_mut(&peer) {
            known.sessions += 1;
            known.idle_since = None;
            return false;
        }
        if self.known.len() >= MOST_PEERS {
            if !std::mem::replace(&mut self.is_full, true) {
                tracing::warn!(
                    "more than {MOST_PEERS} hosts have GTP-U tunnels: add the networks of the others to 'upf.radios'"
                );
            }
            return false;
        }
        self.known.insert(peer, Peer { sessions: 1, idle_since: None });
        true
    }

    fn remove(&mut self, peer: IpAddr, now: Instant) {
        if let Some(known) = self.known.get_mut(&peer) {
            known.sessions = known.sessions.saturating_sub(1);
            known.idle_since = (known.sessions == 0).then_some(now);
        }
    }

    /// Removes hosts without tunnels for `LINGER`; checks once per `SWEEP`.
    fn sweep(&mut self, now: Instant) -> Vec<IpAddr> {
        if self.swept.is_some_and(|swept| now.duration_since(swept) < SWEEP) {
            return Vec::new();
        }
        self.swept = Some(now);
        let is_over =
            |peer: &mut Peer| peer.idle_since.is_some_and(|since| now.duration_since(since) >= LINGER);
        self.known.extract_if(|_, peer| is_over(peer)).map(|(peer, _)| peer).collect()
    }

    pub fn all(&self) -> impl Iterator<Item = IpAddr> {
        self.known.keys().copied()
    }
}

/// The peers of a session's tunnels, without duplicates.
fn peers_of(rules: &Rules) -> impl Iterator<Item = IpAddr> {
    let is_first =
        move |(at, peer): &(usize, IpAddr)| !rules.iter().take(*at).any(|rule| rule.peer() == Some(*peer));
    rules
        .iter()
        .enumerate()
        .filter_map(|(at, rule)| Some((at, rule.peer()?)))
        .filter(is_first)
        .map(|(_, peer)| peer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_stays_known_for_a_while_after_its_last_tunnel() {
        let (mut peers, host, start) = (Peers::default(), IpAddr::from([192, 0, 2, 1]), Instant::now());
        assert!(peers.add(host) && !peers.add(host));
        peers.remove(host, start);
        assert!(peers.sweep(start + LINGER).is_empty(), "one session has it still");
        peers.remove(host, start + LINGER);
        assert!(peers.sweep(start + LINGER + SWEEP).is_empty());
        assert!(!peers.add(host), "it is known still");
        peers.remove(host, start + LINGER * 2);
        assert_eq!(peers.sweep(start + LINGER * 3), [host]);
        assert!(peers.add(host));
    }
}
