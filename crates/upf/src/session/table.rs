//! All sessions, with indices by id, UE address, GTP-U peer and time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use pith_pfcp::IeType;
use pith_pfcp::ie::{Cause, FailedRuleId, NodeId, QerId};

use super::{RuleSet, Session};
use crate::contract::{self, Action, AddressRange, Destination, Rates, SessionId, Teid, Tunnel, UeAddress};
use crate::qos::{AdmissionRejection, AdmittedRates, guaranteed_rates};
use crate::random::Random;
use crate::rejection::Rejection;
use crate::teids::Teids;

const NOTHING: Rates = Rates { uplink: 0, downlink: 0 };

/// The sessions of a UPF.
#[derive(Debug)]
pub struct SessionTable {
    pub teids: Teids,
    /// Boxed, so that the table moves little when it grows.
    sessions: HashMap<SessionId, Box<Session>>,
    by_v4: HashMap<Ipv4Addr, SessionId>,
    /// By the first prefix of 64 bits, with the last one. A session may have several (TS 23.501 5.8.2.2.4), but no two sessions have one in common.
    by_prefix: BTreeMap<u64, (u64, SessionId)>,
    /// Framed routes by their first address, with the last one; no two have an address in common. One within another of its session is left out.
    by_network: BTreeMap<IpAddr, (IpAddr, SessionId)>,
    /// The first addresses of each session's.
    networks: HashMap<SessionId, Vec<IpAddr>>,
    by_peer: HashMap<(IpAddr, Teid), SessionId>,
    by_due: BTreeSet<(Duration, SessionId)>,
    admitted: AdmittedRates,
    random: Random,
    /// The number of sessions of each SMF.
    by_node: BTreeMap<NodeId, usize>,
}

impl SessionTable {
    /// `guaranteed` limits the sum of guaranteed bit rates.
    pub fn new(mut random: Random, guaranteed: Option<Rates>) -> Self {
        SessionTable {
            teids: Teids::new(random.fork()),
            sessions: HashMap::new(),
            by_v4: HashMap::new(),
            by_prefix: BTreeMap::new(),
            by_network: BTreeMap::new(),
            networks: HashMap::new(),
            by_peer: HashMap::new(),
            by_due: BTreeSet::new(),
            admitted: AdmittedRates::new(guaranteed),
            random,
            by_node: BTreeMap::new(),
        }
    }

    /// An unused, unpredictable id other than 0 (TS 33.513 4.2.2.6).
    pub fn next_id(&mut self) -> SessionId {
        loop {
            let id = SessionId(self.random.next_u64());
            if id.0 != 0 && !self.sessions.contains_key(&id) {
                return id;
            }
        }
    }

    pub fn get(&self, id: SessionId) -> Option<&Session> {
        self.sessions.get(&id).map(Box::as_ref)
    }

    /// A session, to change fields that are not indexed.
    pub fn get_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.sessions.get_mut(&id).map(Box::as_mut)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Session> {
        self.sessions.values().map(Box::as_ref)
    }

    /// All sessions, to change fields that are not indexed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.sessions.values_mut().map(Box::as_mut)
    }

    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Sessions for which `wanted` is true.
    pub fn matching(&self, wanted: impl Fn(&Session) -> bool) -> Vec<SessionId> {
        self.sessions.values().filter(|session| wanted(session)).map(|session| session.id).collect()
    }

    /// Other sessions than `id` with an address of `ue`.
    pub fn sharing_address(&self, id: SessionId, ue: UeAddress) -> Vec<SessionId> {
        let of_v4 = ue.v4.and_then(|v4| self.by_v4.get(&v4).copied());
        let of_v6 = prefixes(ue).into_iter().flat_map(|prefixes| self.overlapping(prefixes));
        let owners: BTreeSet<_> = of_v4.into_iter().chain(of_v6).filter(|owner| *owner != id).collect();
        owners.into_iter().collect()
    }

    /// Sessions with one of these prefixes of 64 bits.
    fn overlapping(&self, (first, last): (u64, u64)) -> impl Iterator<Item = SessionId> {
        let before = self.by_prefix.range(..=last).rev();
        before.map(|(_, (end, id))| (*end, *id)).take_while(move |(end, _)| *end >= first).map(|(_, id)| id)
    }

    /// The first of these framed routes that has an address of another session's.
    pub fn shared_route(&self, id: SessionId, routes: &[AddressRange]) -> Option<AddressRange> {
        let is_shared = |route: &&AddressRange| {
            let (first, last) = route.ends();
            let before = self.by_network.range(..=last).rev();
            let mut sharing = before.take_while(|(_, (end, _))| *end >= first);
            sharing.any(|(_, (_, owner))| *owner != id)
        };
        routes.iter().find(is_shared).copied()
    }

    /// The session of a UE's address, or of a prefix that contains it.
    pub fn of_ue(&self, address: IpAddr) -> Option<SessionId> {
        match address {
            IpAddr::V4(v4) => self.by_v4.get(&v4).copied(),
            IpAddr::V6(v6) => {
                let prefix = upper_half(v6);
                self.overlapping((prefix, prefix)).next()
            }
        }
    }

    /// The session that sends into a tunnel.
    pub fn by_peer_tunnel(&self, peer: IpAddr, teid: Teid) -> Option<SessionId> {
        self.by_peer.get(&(peer, teid)).copied()
    }

    /// Adds a session without rules.
    pub fn insert(&mut self, session: Session) {
        *self.by_node.entry(session.node.clone()).or_default() += 1;
        self.sessions.insert(session.id, session.into());
    }

    /// The number of sessions of an SMF.
    pub fn count_of(&self, node: &NodeId) -> usize {
        self.by_node.get(node).copied().unwrap_or(0)
    }

    /// Assigns a session to another SMF.
    pub fn move_to(&mut self, id: SessionId, node: &NodeId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let before = std::mem::replace(&mut session.node, node.clone());
        self.uncount(&before);
        *self.by_node.entry(node.clone()).or_default() += 1;
    }

    fn uncount(&mut self, node: &NodeId) {
        let Some(count) = self.by_node.get_mut(node) else { return };
        *count -= 1;
        if *count == 0 {
            self.by_node.remove(node);
        }
    }

    /// Checks whether the guaranteed rates of a session's new rules can be admitted.
    pub fn check_admission(&self, id: SessionId, compiled: &contract::Session) -> Result<(), Rejection> {
        let before = self.sessions.get(&id).map_or(NOTHING, |session| session.guaranteed_rates);
        let checked =
            guaranteed_rates(compiled).and_then(|after| self.admitted.check(before, after, compiled));
        checked.map_err(|rejection| {
            let rule = Rejection::rule(FailedRuleId::Qer(QerId(rejection.qer().0))).because_of(IeType::GBR);
            match rejection {
                AdmissionRejection::AboveCapacity(_) => rule.with_cause(Cause::NoResourcesAvailable),
                AdmissionRejection::AboveMaximum(_) | AdmissionRejection::AboveAggregate(_) => rule,
            }
        })
    }

    /// The sum of the sessions' admitted guaranteed rates.
    pub fn admitted_rates(&self) -> Rates {
        self.admitted.sum()
    }

    /// Replaces a session's rules, compiled and with their TEIDs, and frees TEIDs that are no longer used.
    pub fn commit(
        &mut self,
        id: SessionId,
        rules: RuleSet,
        compiled: &contract::Session,
        teids: BTreeSet<Teid>,
    ) {
        self.unindex(id);
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.teids.difference(&teids).for_each(|teid| self.teids.free(*teid));
        session.rules = rules;
        session.teids = teids;
        session.ue = compiled.ue;
        session.tunnels = tunnels(compiled);
        let still = |peer, teid| session.tunnels.iter().any(|to| (to.peer, to.teid) == (peer, teid));
        session.lost_tunnels.retain(|(peer, teid)| still(*peer, *teid));
        let after = guaranteed_rates(compiled).unwrap_or(NOTHING);
        self.admitted.replace(std::mem::replace(&mut session.guaranteed_rates, after), after);
        self.by_v4.extend(session.ue.v4.map(|address| (address, id)));
        self.by_prefix.extend(prefixes(session.ue).map(|(first, last)| (first, (last, id))));
        self.by_peer.extend(session.tunnels.iter().map(|tunnel| ((tunnel.peer, tunnel.teid), id)));
        let routes = &compiled.framed_routes;
        let is_within = |route: &AddressRange, other: &AddressRange| {
            other != route && other.prefix <= route.prefix && other.contains(route.address)
        };
        let outermost = routes.iter().filter(|route| !routes.iter().any(|other| is_within(route, other)));
        let ends: Vec<_> = outermost.map(|route| route.ends()).collect();
        if !ends.is_empty() {
            self.networks.insert(id, ends.iter().map(|(first, _)| *first).collect());
            self.by_network.extend(ends.into_iter().map(|(first, last)| (first, (last, id))));
        }
    }

    /// Removes a session.
    pub fn remove(&mut self, id: SessionId) -> Option<Session> {
        self.unindex(id);
        self.set_due(id, None);
        let session = self.sessions.remove(&id)?;
        self.uncount(&session.node);
        session.teids.iter().for_each(|teid| self.teids.free(*teid));
        self.admitted.replace(session.guaranteed_rates, NOTHING);
        Some(*session)
    }

    fn unindex(&mut self, id: SessionId) {
        for first in self.networks.remove(&id).unwrap_or_default() {
            self.by_network.remove(&first);
        }
        let Some(session) = self.sessions.get(&id) else { return };
        if let Some(v4) = session.ue.v4.filter(|v4| self.by_v4.get(v4) == Some(&id)) {
            self.by_v4.remove(&v4);
        }
        if let Some((first, last)) = prefixes(session.ue)
            && self.by_prefix.get(&first) == Some(&(last, id))
        {
            self.by_prefix.remove(&first);
        }
        for tunnel in &session.tunnels {
            let key = (tunnel.peer, tunnel.teid);
            if self.by_peer.get(&key) == Some(&id) {
                self.by_peer.remove(&key);
            }
        }
    }

    /// Schedules the next check of a session.
    pub fn set_due(&mut self, id: SessionId, due: Option<Duration>) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if let Some(before) = std::mem::replace(&mut session.due, due) {
            self.by_due.remove(&(before, id));
        }
        if let Some(due) = due {
            self.by_due.insert((due, id));
        }
    }

    /// The time of the next check.
    pub fn next_due(&self) -> Option<Duration> {
        self.by_due.first().map(|(due, _)| *due)
    }

    /// Removes the next session whose check is due at `now` from the schedule.
    pub fn take_due(&mut self, now: Duration) -> Option<SessionId> {
        let (_, id) = self.by_due.first().copied().filter(|(due, _)| *due <= now)?;
        self.set_due(id, None);
        Some(id)
    }
}

/// The first and the last prefix of 64 bits that a UE has.
fn prefixes(ue: UeAddress) -> Option<(u64, u64)> {
    let others = (1_u64 << ue.delegation.min(63)) - 1;
    ue.v6.map(upper_half).map(|prefix| (prefix & !others, prefix | others))
}

fn upper_half(address: Ipv6Addr) -> u64 {
    (address.to_bits() >> 64) as u64
}

fn tunnels(compiled: &contract::Session) -> Vec<Tunnel> {
    let tunnel = |far: &contract::Far| match far.action {
        Action::Forward(Destination::Tunnel(tunnel)) => Some(tunnel),
        _ => None,
    };
    compiled.fars.iter().filter_map(tunnel).collect()
}
