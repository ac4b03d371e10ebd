//! The border of the user plane: where a worker forwards UE packets to, from whom it forwards packets to UEs, and from whom it
//! accepts GTP-U.

use super::tables::{Mix, Tables};
use crate::boundary::{Area, Reach};
use crate::packet::Flow;
use crate::rules::{Now, Rules};
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
    admitted: Option<(SessionId, IpAddr)>,
    accepted: Option<IpAddr>,
    /// Hosts reported to UPF-C in this span.
    unknown_peers: (u64, Vec<IpAddr>),
}

/// How long, in nanoseconds, a host that is no peer is not reported again.
const UNKNOWN_PEER_SPAN: u64 = 60_000_000_000;
/// Reported hosts in one span; UPF-C bounds what it logs.
const MAX_UNKNOWN_PEERS: usize = 16;

impl Border {
    pub fn new(reach: Arc<Reach>) -> Self {
        Self {
            reach,
            peers: HashSet::default(),
            open: None,
            admitted: None,
            accepted: None,
            unknown_peers: (0, Vec::new()),
        }
    }

    /// Clears the cached result after messages, which may have changed it.
    pub fn forget(&mut self) {
        (self.open, self.admitted, self.accepted) = (None, None, None);
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

    /// Whether GTP-U is accepted from configured networks only.
    pub fn has_radios(&self) -> bool {
        self.reach.has_radios()
    }

    /// Whether a host that is no peer, and sends G-PDUs for another's tunnel, is to be reported.
    pub fn is_new_unknown_peer(&mut self, now: Now, source: IpAddr) -> bool {
        let (since, named) = &mut self.unknown_peers;
        if now.0 >= *since + UNKNOWN_PEER_SPAN {
            (*since, *named) = (now.0, Vec::new());
        }
        let is_new = named.len() < MAX_UNKNOWN_PEERS && !named.contains(&source);
        if is_new {
            named.push(source);
        }
        is_new
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

    /// Whether a packet from TUN to a session's UE may have its source address. `by_kernel`: packets between UEs take the
    /// kernel's path, so one with a UE's source may be such a packet; the kernel has marked those from outside.
    #[inline]
    pub fn admits(
        &mut self,
        tables: &Tables,
        rules: &Rules,
        flow: &Flow,
        packet: &[u8],
        by_kernel: bool,
    ) -> bool {
        self.admitted == Some((rules.state.id, flow.source))
            || self.look_up_source(tables, rules, flow, packet, by_kernel)
    }

    fn look_up_source(
        &mut self,
        tables: &Tables,
        rules: &Rules,
        flow: &Flow,
        packet: &[u8],
        by_kernel: bool,
    ) -> bool {
        let (reach, ue) = (&self.reach, rules.ue);
        let admits = match reach.area(flow.source) {
            Area::Closed if reach.is_local(flow.source) => return true,
            Area::Closed => return reach.is_answer(ue, flow, packet),
            // A network behind a UE may have another way to the data network: only the UE's own address counts.
            Area::Open => {
                by_kernel || tables.by_ue(flow.source).is_none_or(|other| !other.ue.contains(flow.source))
            }
            // UEs reach such a host, so its answers pass.
            Area::TunnelPeer => true,
            Area::Tenant(_) if reach.is_here(flow.source) => by_kernel,
            area if reach.is_open_to(ue, area) => true,
            Area::Tenant(_) => return reach.is_answer(ue, flow, packet),
        };
        if admits {
            self.admitted = Some((rules.state.id, flow.source));
        }
        admits
    }
}

/// The UE's addresses. A UPF other than the anchor may not have them.
fn whose(rules: &Rules, flow: &Flow) -> UeAddress {
    if !rules.ue.is_empty() {
        return rules.ue;
    }
    match flow.source {
        IpAddr::V4(v4) => UeAddress::v4(v4),
        IpAddr::V6(v6) => UeAddress::v6(v6),
    }
}
