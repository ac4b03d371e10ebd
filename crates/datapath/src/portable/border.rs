//! The border of the user plane: where a worker forwards UE packets to, and from whom it accepts GTP-U.

use super::tables::{Mix, Tables};
use crate::boundary::Reach;
use crate::packet::Flow;
use crate::rules::Rules;
use pith_upf::contract::{SessionId, UeAddress};
use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::net::IpAddr;
use std::sync::Arc;

/// The border of one worker.
#[derive(Debug)]
pub struct Border {
    reach: Arc<Reach>,
    /// Peers of tunnels.
    peers: HashSet<IpAddr, BuildHasherDefault<Mix>>,
    /// The last permitted session and destination, until a message changes anything: consecutive packets are
    /// often alike.
    open: Option<(SessionId, IpAddr)>,
    accepted: Option<IpAddr>,
}

impl Border {
    pub fn new(reach: Arc<Reach>) -> Self {
        Self { reach, peers: HashSet::default(), open: None, accepted: None }
    }

    /// Clears the cached result after messages, which may have changed it.
    pub fn forget(&mut self) {
        (self.open, self.accepted) = (None, None);
    }

    pub fn set_reach(&mut self, reach: Arc<Reach>) {
        self.reach = reach;
    }

    /// Sets whether GTP-U of a host is accepted.
    pub fn set_peer(&mut self, address: IpAddr, known: bool) {
        if known {
            self.peers.insert(address);
        } else {
            self.peers.remove(&address);
        }
    }

    /// Whether GTP-U of a host is accepted.
    #[inline]
    pub fn is_peer(&mut self, address: IpAddr) -> bool {
        if self.accepted == Some(address) {
            return true;
        }
        let is_peer = self.peers.contains(&address) || self.reach.is_radio(address);
        if is_peer {
            self.accepted = Some(address);
        }
        is_peer
    }

    /// Whether a session's packet may be forwarded to its destination.
    #[inline]
    pub fn lets_pass(&mut self, tables: &Tables, rules: &Rules, flow: &Flow, packet: &[u8]) -> bool {
        self.open == Some((rules.state.id, flow.destination)) || self.look_up(tables, rules, flow, packet)
    }

    fn look_up(&mut self, tables: &Tables, rules: &Rules, flow: &Flow, packet: &[u8]) -> bool {
        let (reach, ue) = (&self.reach, whose(rules, flow));
        let is_open = match tables.by_ue(flow.destination) {
            // Also if the UE has an otherwise closed address, such as one in a framed route, or this host's.
            Some(other) => reach.tenant(other.ue) == reach.tenant(ue),
            None => reach.is_open_to(ue, reach.area(flow.destination)),
        };
        if is_open {
            self.open = Some((rules.state.id, flow.destination));
        }
        is_open || self.reach.is_permitted(ue, flow, packet)
    }
}

/// The UE's addresses. A UPF other than the anchor may not have them.
fn whose(rules: &Rules, flow: &Flow) -> UeAddress {
    if !rules.ue.is_empty() {
        return rules.ue;
    }
    match flow.source {
        IpAddr::V4(v4) => UeAddress { v4: Some(v4), v6: None },
        IpAddr::V6(v6) => UeAddress { v4: None, v6: Some(v6) },
    }
}
