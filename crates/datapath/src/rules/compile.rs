//! A session as workers see it: its PDRs in the order they are tried, each with all it leads to.

use super::classify::matches;
use super::usage::{UrrUse, Worker};
use super::{Home, Now, Waiting};
use crate::packet::Flow;
use pith_upf::contract::{
    Action, AddressRange, Destination, Direction, DropReason, Gate, Pdr, PdrId, Qfi, SdfFilter, Session,
    SessionId, Source, Teid, UeAddress, UrrId, Volume,
};
use pith_upf::qos::{Flow as QosFlow, Flows, Key, SessionQos};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Where a packet came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A tunnel that ends here.
    Tunnel(Teid),
    /// The data network.
    Network,
}

/// What lives as long as the session, whatever its rules are.
#[derive(Debug)]
pub struct Life {
    /// Whose.
    pub id: SessionId,
    uplink: Waiting,
    downlink: Waiting,
    last_packet: AtomicU64,
    /// Whether an operator follows its packets; beside what every packet touches anyway.
    traced: AtomicBool,
    home: Option<Arc<Home>>,
}

impl Life {
    /// Of a session that has seen no packet, and its block where a BPF program is to know it.
    pub fn new(id: SessionId, home: Option<Arc<Home>>) -> Self {
        let (uplink, downlink) = (Waiting::default(), Waiting::default());
        let (last_packet, traced) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { id, uplink, downlink, last_packet, traced, home }
    }

    /// Its block.
    pub fn home(&self) -> Option<&Arc<Home>> {
        self.home.as_ref()
    }

    /// Packets of a direction that wait.
    pub fn waiting(&self, direction: Direction) -> &Waiting {
        match direction {
            Direction::Uplink => &self.uplink,
            Direction::Downlink => &self.downlink,
        }
    }

    /// Whether any packet of the session waits.
    pub fn is_waiting(&self) -> bool {
        self.uplink.owner().is_some() || self.downlink.owner().is_some()
    }

    /// Whether an operator follows its packets.
    pub fn is_traced(&self) -> bool {
        self.traced.load(Relaxed)
    }

    /// Has its packets followed, or no longer.
    pub fn set_traced(&self, traced: bool) {
        self.traced.store(traced, Relaxed);
    }

    /// When its last packet came; 0 for never.
    pub fn last_packet(&self) -> u64 {
        self.last_packet.load(Relaxed)
    }
}

/// A session's rules, immutable; new rules are a new value.
#[derive(Debug)]
pub struct Rules {
    /// What stays when rules change.
    pub life: Arc<Life>,
    /// The UE's addresses.
    pub ue: UeAddress,
    /// Networks behind it.
    pub framed: Box<[AddressRange]>,
    /// The far end of the tunnel to the UE, where downlink packets go into one.
    pub downlink_peer: Option<IpAddr>,
    rules: Box<[Rule]>,
    qos: Arc<SessionQos>,
}

impl Rules {
    /// Compiles a session, with the flows and counters that its QERs and URRs have.
    pub fn compile(session: &Session, life: Arc<Life>, qos: Arc<SessionQos>, urrs: &[Arc<UrrUse>]) -> Self {
        let mut pdrs: Vec<&Pdr> = session.pdrs.iter().collect();
        pdrs.sort_by_key(|pdr| pdr.precedence);
        let pdrs = pdrs.into_iter().zip(0..);
        let rules: Box<[Rule]> =
            pdrs.map(|(pdr, index)| Rule::compile(pdr, index, session, &qos, urrs)).collect();
        let framed = session.framed_routes.clone().into();
        let downlink = rules.iter().filter(|rule| rule.direction() == Direction::Downlink);
        let downlink_peer = downlink.filter_map(Rule::peer).next();
        Self { life, ue: session.ue, framed, downlink_peer, rules, qos }
    }

    /// The rule of that index.
    pub fn rule(&self, index: u16) -> Option<&Rule> {
        self.rules.get(usize::from(index))
    }

    /// What the session's packets of a direction wait under.
    pub fn key(&self, direction: Direction) -> Key {
        (self.life.id, direction)
    }

    /// Its flows of a direction.
    pub fn flows(&self, direction: Direction) -> &Flows {
        self.qos.flows(direction)
    }

    /// Its QoS.
    pub fn qos(&self) -> &Arc<SessionQos> {
        &self.qos
    }

    /// The rule for a packet.
    pub fn find(&self, origin: Origin, flow: &Flow, qfi: Option<Qfi>) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.takes(origin, flow, qfi))
    }

    /// Whether a packet that matched `rule` claims to come from a UE that it does not come from.
    pub fn is_spoofed(&self, rule: &Rule, source: IpAddr) -> bool {
        rule.direction() == Direction::Uplink && !self.ue.is_empty() && !self.owns(source)
    }

    /// Whether an address is the UE's, or behind it.
    fn owns(&self, address: IpAddr) -> bool {
        self.ue.contains(address) || self.framed.iter().any(|network| network.contains(address))
    }

    /// The session's own TEIDs; one may come more than once.
    pub fn teids(&self) -> impl Iterator<Item = Teid> {
        self.rules.iter().filter_map(|rule| match rule.source {
            Source::Tunnel { teid, .. } => Some(teid),
            Source::Network => None,
        })
    }

    /// The rules, in the order that they are tried.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// Notes that a packet of the session came.
    pub fn touch(&self, now: Now) {
        if self.life.last_packet.load(Relaxed) != now.0 {
            self.life.last_packet.store(now.0, Relaxed);
        }
    }
}

/// A PDR with its FAR, QERs and URRs.
#[derive(Debug)]
pub struct Rule {
    /// The PDR.
    pub pdr: PdrId,
    /// Which of the session's rules.
    pub index: u16,
    /// Its FAR's action; `None` if it names no FAR.
    pub action: Option<Action>,
    /// The QoS flow to mark packets with.
    pub qfi: Option<Qfi>,
    /// Where its packets come from.
    pub source: Source,
    /// One of these takes the packet; none: all packets.
    pub filters: Box<[SdfFilter]>,
    /// A bit for each QFI that matches; all if the PDR names none.
    pub qfis: u64,
    /// Whether all gates are open.
    pub open: bool,
    /// The flow that its packets are of.
    pub flow: Arc<QosFlow>,
    /// Which of its direction's flows that is.
    pub flow_index: u16,
    /// Its URRs.
    pub urrs: Box<[Arc<UrrUse>]>,
}

impl Rule {
    fn compile(pdr: &Pdr, index: u16, session: &Session, qos: &SessionQos, urrs: &[Arc<UrrUse>]) -> Self {
        let direction = pdr.source.direction();
        let named = || session.qers.iter().filter(|qer| pdr.qers.contains(&qer.id));
        let flow_index = qos.flow_of(pdr);
        let flow = qos.flows(direction).get(usize::from(flow_index));
        Self {
            pdr: pdr.id,
            index,
            action: session.fars.iter().find(|far| far.id == pdr.far).map(|far| far.action),
            qfi: named().find_map(|qer| qer.qfi),
            source: pdr.source,
            filters: pdr.filters.clone().into(),
            qfis: qfi_bits(&pdr.qfis),
            open: named().all(|qer| qer.gates.of(direction) == Gate::Open),
            flow: flow.cloned().unwrap_or_else(|| Arc::new(QosFlow::new([], Arc::default()))),
            flow_index,
            urrs: urrs.iter().filter(|used| pdr.urrs.contains(&used.urr.id)).cloned().collect(),
        }
    }

    fn takes(&self, origin: Origin, flow: &Flow, qfi: Option<Qfi>) -> bool {
        let comes_from = match (self.source, origin) {
            (Source::Tunnel { teid, .. }, Origin::Tunnel(came_by)) => teid == came_by,
            (Source::Network, Origin::Network) => true,
            _ => false,
        };
        let direction = self.direction();
        comes_from
            && (self.qfis == u64::MAX || qfi.is_some_and(|qfi| self.qfis & qfi_bit(qfi) != 0))
            && (self.filters.is_empty() || self.filters.iter().any(|filter| matches(filter, flow, direction)))
    }

    /// The far end of the tunnel that its packets leave by.
    pub fn peer(&self) -> Option<IpAddr> {
        match self.action {
            Some(Action::Forward(Destination::Tunnel(tunnel))) => Some(tunnel.peer),
            _ => None,
        }
    }

    /// Which way its packets go.
    pub fn direction(&self) -> Direction {
        self.source.direction()
    }

    /// Whether all gates are open.
    pub fn gate(&self) -> Result<(), DropReason> {
        if self.open { Ok(()) } else { Err(DropReason::GateClosed) }
    }

    /// Whether no quota is used up.
    pub fn quota(&self) -> Result<(), DropReason> {
        match self.urrs.iter().any(|used| used.exhausted()) {
            true => Err(DropReason::QuotaExhausted),
            false => Ok(()),
        }
    }

    /// Counts a packet that passes, and tells of each URR that comes up to a limit by it.
    pub fn count(&self, worker: Worker, bytes: usize, now: Now, mut reached: impl FnMut(UrrId, Volume)) {
        for used in &self.urrs {
            used.counter.count(worker, self.direction(), bytes, now);
            if let Some(volume) = used.newly_reached() {
                reached(used.urr.id, volume);
            }
        }
    }
}

fn qfi_bit(qfi: Qfi) -> u64 {
    1 << (qfi.0 & 0x3f)
}

fn qfi_bits(qfis: &[Qfi]) -> u64 {
    match qfis {
        [] => u64::MAX,
        some => some.iter().fold(0, |bits, qfi| bits | qfi_bit(*qfi)),
    }
}
