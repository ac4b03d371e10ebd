//! The border of the user plane: where a worker lets packets of UEs go, and whose GTP-U it accepts.

use super::tables::{Mix, Tables};
use crate::boundary::Reach;
use crate::packet::Flow;
use crate::rules::Rules;
use pith_upf::contract::{SessionId, UeAddress};
use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::net::IpAddr;
use std::sync::Arc;

/// A worker's own.
#[derive(Debug)]
pub struct Border {
    reach: Arc<Reach>,
    /// Hosts that tunnels lead to.
    peers: HashSet<IpAddr, BuildHasherDefault<Mix>>,
    /// What was found last, until a message changes anything: most packets are like the one before.
    open: Option<(SessionId, IpAddr)>,
    accepted: Option<IpAddr>,
}

impl Border {
    /// Without peers.
    pub fn new(reach: Arc<Reach>) -> Self {
        Self { reach, peers: HashSet::default(), open: None, accepted: None }
    }

    /// Messages were taken: what was found last may be otherwise now.
    pub fn forget(&mut self) {
        (self.open, self.accepted) = (None, None);
    }

    /// Other destinations are closed.
    pub fn set_reach(&mut self, reach: Arc<Reach>) {
        self.reach = reach;
    }

    /// GTP-U of a host is accepted, or no longer.
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

    /// Whether a session's packet may go on to the network that it is addressed to.
    #[inline]
    pub fn lets_pass(&mut self, tables: &Tables, rules: &Rules, flow: &Flow, packet: &[u8]) -> bool {
        self.open == Some((rules.life.id, flow.destination)) || self.look_up(tables, rules, flow, packet)
    }

    fn look_up(&mut self, tables: &Tables, rules: &Rules, flow: &Flow, packet: &[u8]) -> bool {
        let (reach, ue) = (&self.reach, whose(rules, flow));
        let is_open = match tables.by_ue(flow.destination) {
            // Also where the UE has an address that is closed otherwise, such as one behind it, or this host's.
            Some(other) => reach.tenant(other.ue) == reach.tenant(ue),
            None => reach.is_open_to(ue, reach.area(flow.destination)),
        };
        if is_open {
            self.open = Some((rules.life.id, flow.destination));
        }
        is_open || self.reach.is_permitted(ue, flow, packet)
    }
}

/// The UE's addresses. A UPF that stands before the anchor may not be told of them.
fn whose(rules: &Rules, flow: &Flow) -> UeAddress {
    if !rules.ue.is_empty() {
        return rules.ue;
    }
    match flow.source {
        IpAddr::V4(v4) => UeAddress { v4: Some(v4), v6: None },
        IpAddr::V6(v6) => UeAddress { v4: None, v6: Some(v6) },
    }
}
