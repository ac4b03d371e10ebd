//! The peers of tunnels, collected from the sessions' rules.

use crate::rules::Rules;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// A host remains a peer this long after its last tunnel: a small cell may have no active UE for a night, and the next one may arrive by
/// a handover. Its uplink comes from the new gNB before the SMF knows that gNB's tunnel (TS 23.502 4.9.1.2, 4.9.1.3).
const LINGER: Duration = Duration::from_secs(24 * 3600);
/// Interval of the search for hosts without tunnels.
const SWEEP: Duration = Duration::from_secs(60);
/// Maximum number of accepted peers. A further one takes the place of the one that has been without tunnels for longest; if all have
/// tunnels, its GTP-U is accepted from `Boundary::radios` only.
const MAX_PEERS: usize = 16_384;

#[derive(Debug, Default)]
pub struct Peers {
    /// All hosts with tunnels, so that their sessions are counted, and accepted ones without.
    known: HashMap<IpAddr, Peer>,
    accepted: usize,
    swept: Option<Instant>,
    is_full: bool,
}

#[derive(Debug)]
struct Peer {
    /// Number of sessions with a tunnel to it.
    sessions: usize,
    is_accepted: bool,
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
        let mut change = Change::default();
        for peer in new.into_iter().flat_map(peers_of) {
            self.add(peer, &mut change);
        }
        if old.is_none() {
            return change;
        }
        let now = Instant::now();
        for peer in old.into_iter().flat_map(peers_of) {
            self.remove(peer, now);
        }
        change.forgotten.extend(self.sweep(now));
        change
    }

    /// Counts a session's tunnel to a host.
    fn add(&mut self, peer: IpAddr, change: &mut Change) {
        let is_accepted = self.known.get(&peer).is_some_and(|known| known.is_accepted);
        let accept = is_accepted || self.accepted < MAX_PEERS || self.evict(change);
        let known =
            self.known.entry(peer).or_insert(Peer { sessions: 0, is_accepted: false, idle_since: None });
        known.sessions += 1;
        known.idle_since = None;
        if accept && !is_accepted {
            known.is_accepted = true;
            self.accepted += 1;
            change.known.push(peer);
        }
        if !accept && !std::mem::replace(&mut self.is_full, true) {
            tracing::warn!(
                "more than {MAX_PEERS} hosts have GTP-U tunnels: name the networks of the others in 'upf.radios'"
            );
        }
    }

    /// Removes the accepted host that has been without tunnels for longest. `false`: all have tunnels.
    fn evict(&mut self, change: &mut Change) -> bool {
        let idle = self.known.iter().filter(|(_, peer)| peer.is_accepted);
        let idle = idle.filter_map(|(address, peer)| Some((peer.idle_since?, *address)));
        let Some((_, address)) = idle.min() else { return false };
        self.known.remove(&address);
        self.accepted -= 1;
        change.forgotten.push(address);
        true
    }

    fn remove(&mut self, peer: IpAddr, now: Instant) {
        let Some(known) = self.known.get_mut(&peer) else { return };
        known.sessions = known.sessions.saturating_sub(1);
        known.idle_since = (known.sessions == 0).then_some(now);
        if known.sessions == 0 && !known.is_accepted {
            self.known.remove(&peer);
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
        let over: Vec<_> = self.known.extract_if(|_, peer| is_over(peer)).map(|(peer, _)| peer).collect();
        self.accepted -= over.len();
        over
    }

    /// All accepted peers.
    pub fn all(&self) -> impl Iterator<Item = IpAddr> {
        self.known.iter().filter(|(_, peer)| peer.is_accepted).map(|(address, _)| *address)
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

    /// Whether the host became a peer.
    fn add(peers: &mut Peers, peer: IpAddr) -> bool {
        let mut change = Change::default();
        peers.add(peer, &mut change);
        change.known == [peer]
    }

    #[test]
    fn a_host_stays_known_for_a_while_after_its_last_tunnel() {
        let (mut peers, host, start) = (Peers::default(), IpAddr::from([192, 0, 2, 1]), Instant::now());
        assert!(add(&mut peers, host) && !add(&mut peers, host));
        peers.remove(host, start);
        assert!(peers.sweep(start + LINGER).is_empty(), "one session has it still");
        peers.remove(host, start + LINGER);
        assert!(peers.sweep(start + LINGER + SWEEP).is_empty());
        assert!(!add(&mut peers, host), "it is known still");
        peers.remove(host, start + LINGER * 2);
        assert_eq!(peers.sweep(start + LINGER * 3), [host]);
        assert!(add(&mut peers, host));
    }

    #[test]
    fn invented_peers_do_not_keep_an_honest_one_out() {
        let (mut peers, start) = (Peers::default(), Instant::now());
        let invented = |number: u32| IpAddr::from(std::net::Ipv4Addr::from_bits(0x0a00_0000 + number));
        for number in 0..MAX_PEERS as u32 {
            assert!(add(&mut peers, invented(number)));
            peers.remove(invented(number), start + Duration::from_millis(number.into()));
        }
        let mut change = Change::default();
        peers.add(IpAddr::from([192, 0, 2, 1]), &mut change);
        assert_eq!((change.known, change.forgotten), (vec![IpAddr::from([192, 0, 2, 1])], vec![invented(0)]));
        assert_eq!(peers.all().count(), MAX_PEERS);
    }

    #[test]
    fn sessions_of_a_host_beyond_the_bound_are_counted_too() {
        let (mut peers, start) = (Peers::default(), Instant::now());
        for number in 0..MAX_PEERS as u32 {
            assert!(add(&mut peers, IpAddr::from(std::net::Ipv4Addr::from_bits(0x0a00_0000 + number))));
        }
        let host = IpAddr::from([192, 0, 2, 1]);
        assert!(!add(&mut peers, host), "all others have tunnels");
        peers.remove(IpAddr::from([10, 0, 0, 0]), start);
        assert!(add(&mut peers, host), "its second session, now that there is room");
        peers.remove(host, start);
        assert!(peers.sweep(start + LINGER).is_empty(), "its first session is left");
        assert!(peers.all().any(|peer| peer == host));
        peers.remove(host, start);
        assert_eq!(peers.sweep(start + LINGER + SWEEP), [host]);
    }
}
