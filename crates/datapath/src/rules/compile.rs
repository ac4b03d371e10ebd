//! A session compiled for workers: its PDRs in the order of evaluation, each with its FAR, QERs and URRs.

use super::classify::matches;
use super::usage::{UrrUse, Worker};
use super::{Now, SessionBlock, Waiting};
use crate::packet::Flow;
use pith_upf::contract::{
    Action, AddressRange, Destination, Direction, DropReason, Gate, Pdr, PdrId, Qfi, SdfFilter, Session,
    SessionId, Source, Teid, UeAddress, UrrId, Volume,
};
use pith_upf::qos::{Flows, Key, MeteredFlow, SessionQos};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The side a packet was received on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A tunnel that ends here.
    Tunnel(Teid),
    /// The data network.
    Network,
}

/// The state of a session that outlives its rules.
#[derive(Debug)]
pub struct SessionState {
    pub id: SessionId,
    uplink: Waiting,
    downlink: Waiting,
    last_packet: AtomicU64,
    /// Whether the session is traced; beside the fields that every packet reads anyway.
    traced: AtomicBool,
    block: Option<Arc<SessionBlock>>,
}

impl SessionState {
    /// For a session without packets; `block` is its block, if a BPF program handles it.
    pub fn new(id: SessionId, block: Option<Arc<SessionBlock>>) -> Self {
        let (uplink, downlink) = (Waiting::default(), Waiting::default());
        let (last_packet, traced) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { id, uplink, downlink, last_packet, traced, block }
    }

    pub fn block(&self) -> Option<&Arc<SessionBlock>> {
        self.block.as_ref()
    }

    /// The queued packets of a direction.
    pub fn waiting(&self, direction: Direction) -> &Waiting {
        match direction {
            Direction::Uplink => &self.uplink,
            Direction::Downlink => &self.downlink,
        }
    }

    /// Whether any packet of the session is queued.
    pub fn is_waiting(&self) -> bool {
        self.uplink.owner().is_some() || self.downlink.owner().is_some()
    }

    /// Whether its packets are traced.
    pub fn is_traced(&self) -> bool {
        self.traced.load(Relaxed)
    }

    /// Starts or ends the trace of its packets.
    pub fn set_traced(&self, traced: bool) {
        self.traced.store(traced, Relaxed);
    }

    /// Records a packet that another datapath has seen.
    pub fn note_packet(&self, time: u64) {
        self.last_packet.fetch_max(time, Relaxed);
    }

    /// The time of its last packet; 0: none.
    pub fn last_packet(&self) -> u64 {
        self.last_packet.load(Relaxed)
    }
}

/// A session's rules, immutable; a change creates a new value.
#[derive(Debug)]
pub struct Rules {
    /// The state that outlives the rules.
    pub state: Arc<SessionState>,
    pub ue: UeAddress,
    pub framed: Box<[AddressRange]>,
    /// The peer of the downlink tunnel, if downlink packets are sent into one.
    pub downlink_peer: Option<IpAddr>,
    rules: Box<[Rule]>,
    qos: Arc<SessionQos>,
}

impl Rules {
    /// Compiles a session with the flows of its QERs and the counters of its URRs.
    pub fn compile(
        session: &Session,
        state: Arc<SessionState>,
        qos: Arc<SessionQos>,
        urrs: &[Arc<UrrUse>],
    ) -> Self {
        let mut pdrs: Vec<&Pdr> = session.pdrs.iter().collect();
        pdrs.sort_by_key(|pdr| pdr.precedence);
        let pdrs = pdrs.into_iter().zip(0..);
        let mut rules: Box<[Rule]> =
            pdrs.map(|(pdr, index)| Rule::compile(pdr, index, session, &qos, urrs)).collect();
        if let Some(qfis) = session.uplink_qfis() {
            let permitted = qfis.into_iter().fold(0, |bits, qfi| bits | qfi_bit(qfi));
            let uplink = rules.iter_mut().filter(|rule| rule.direction() == Direction::Uplink);
            uplink.for_each(|rule| rule.permitted_qfis = permitted);
        }
        let framed = session.framed_routes.clone().into();
        let downlink = rules.iter().filter(|rule| rule.direction() == Direction::Downlink);
        let downlink_peer = downlink.filter_map(Rule::peer).next();
        Self { state, ue: session.ue, framed, downlink_peer, rules, qos }
    }

    pub fn rule(&self, index: u16) -> Option<&Rule> {
        self.rules.get(usize::from(index))
    }

    /// The key of the session's queue of a direction.
    pub fn key(&self, direction: Direction) -> Key {
        (self.state.id, direction)
    }

    pub fn flows(&self, direction: Direction) -> &Flows {
        self.qos.flows(direction)
    }

    pub fn qos(&self) -> &Arc<SessionQos> {
        &self.qos
    }

    pub fn find(&self, origin: Origin, flow: &Flow, qfi: Option<Qfi>) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.takes(origin, flow, qfi))
    }

    /// Whether the source address of a packet that matched `rule` does not belong to the UE.
    pub fn is_spoofed(&self, rule: &Rule, source: IpAddr) -> bool {
        rule.direction() == Direction::Uplink && !self.ue.is_empty() && !self.owns(source)
    }

    /// Whether a packet that matched `rule` is an ICMP error about a packet that was not for the UE: hosts and NAT would take it
    /// for one about another UE's connection.
    pub fn is_forged_error(&self, rule: &Rule, flow: &Flow, packet: &[u8]) -> bool {
        flow.is_icmp_error(packet) && self.is_spoofed(rule, flow.quoted_destination(packet))
    }

    /// Whether this UPF is the router on the link of the session's UE, and packets of the link end here: the UE has an IPv6
    /// prefix, and the packet's rule forwards to the data network. At a UPF between gNB and anchor it forwards into a tunnel.
    pub fn ends_link(&self, origin: Origin, flow: &Flow, qfi: Option<Qfi>) -> bool {
        let is_to_network = |rule: &Rule| rule.action == Some(Action::Forward(Destination::Network));
        let is_open = |rule: &Rule| rule.direction() == Direction::Uplink && rule.open && rule.permits(qfi);
        self.ue.v6.is_some()
            && self.find(origin, flow, qfi).is_some_and(|rule| is_open(rule) && is_to_network(rule))
    }

    /// Whether packets from the data network get to the UE from now on, and did not by the `previous` rules, so that the UE needs
    /// a Router Advertisement.
    pub fn opens_link(&self, previous: Option<&Self>) -> bool {
        self.ue.v6.is_some() && self.is_link_open() && !previous.is_some_and(Self::is_link_open)
    }

    fn is_link_open(&self) -> bool {
        let from_network = self.rules.iter().find(|rule| rule.source == Source::Network);
        from_network.is_some_and(|rule| matches!(rule.action, Some(Action::Forward(Destination::Tunnel(_)))))
    }

    /// Whether an address is the UE's, or in a framed route.
    fn owns(&self, address: IpAddr) -> bool {
        self.ue.contains(address) || self.framed.iter().any(|network| network.contains(address))
    }

    /// The networks that the session has beside the UE's own address and prefix of 64 bits: framed routes, and the shorter prefix that it has for
    /// prefix delegation.
    pub fn networks(&self) -> impl Iterator<Item = AddressRange> {
        self.framed.iter().copied().chain(self.ue.shorter_prefix())
    }

    /// The session's own TEIDs; they may contain duplicates.
    pub fn teids(&self) -> impl Iterator<Item = Teid> {
        self.rules.iter().filter_map(|rule| match rule.source {
            Source::Tunnel { teid, .. } => Some(teid),
            Source::Network => None,
        })
    }

    /// The rules, in the order of evaluation.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// Records the time of a packet.
    pub fn touch(&self, now: Now) {
        if self.state.last_packet.load(Relaxed) != now.0 {
            self.state.last_packet.store(now.0, Relaxed);
        }
    }
}

/// A PDR with its FAR, QERs and URRs.
#[derive(Debug)]
pub struct Rule {
    pub pdr: PdrId,
    /// Its index in the session's rules.
    pub index: u16,
    /// Its FAR's action; `None` if it has no FAR.
    pub action: Option<Action>,
    /// The QFI to set.
    pub qfi: Option<Qfi>,
    /// Whether the RQI is set beside it.
    pub rqi: bool,
    /// Where its packets arrive.
    pub source: Source,
    /// Filters, one of which must match; empty: all packets match.
    pub filters: Box<[SdfFilter]>,
    /// A bit for each matching QFI; all set if the PDR names none.
    pub qfis: u64,
    /// A bit for each QFI that matching packets may have; all set unless they are uplink packets whose marking is verified.
    pub permitted_qfis: u64,
    pub open: bool,
    /// The QoS flow of its packets.
    pub flow: Arc<MeteredFlow>,
    /// The index of that flow among those of its direction.
    pub flow_index: u16,
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
            qfi: session.qfi_of(pdr),
            rqi: session.is_reflective(pdr),
            source: pdr.source,
            filters: pdr.filters.clone().into(),
            qfis: qfi_bits(&pdr.qfis),
            permitted_qfis: u64::MAX,
            open: named().all(|qer| qer.gates.of(direction) == Gate::Open),
            flow: flow.cloned().unwrap_or_else(|| Arc::new(MeteredFlow::new([], Arc::default()))),
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

    /// Whether a matching packet may have that QFI. Packets without one may pass: they take the rules that name none, those of the default
    /// flow. A gNB sends the PDU Session Container with each uplink packet (TS 38.415 5.5.2.2), but simulated radios may omit it.
    pub fn permits(&self, qfi: Option<Qfi>) -> bool {
        qfi.is_none_or(|qfi| self.permitted_qfis & qfi_bit(qfi) != 0)
    }

    /// The peer of its outgoing tunnel.
    pub fn peer(&self) -> Option<IpAddr> {
        match self.action {
            Some(Action::Forward(Destination::Tunnel(tunnel))) => Some(tunnel.peer),
            _ => None,
        }
    }

    pub fn direction(&self) -> Direction {
        self.source.direction()
    }

    pub fn gate(&self) -> Result<(), DropReason> {
        if self.open { Ok(()) } else { Err(DropReason::GateClosed) }
    }

    pub fn quota(&self) -> Result<(), DropReason> {
        if self.urrs.iter().any(|used| used.exhausted()) { Err(DropReason::QuotaExhausted) } else { Ok(()) }
    }

    /// Counts a forwarded packet, and calls `reached` for each URR that reaches a limit by it.
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
