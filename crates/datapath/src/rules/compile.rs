//! A session as workers see it: its PDRs in the order they are tried, each with all it leads to.

use super::classify::matches;
use super::meter::{Meter, admit};
use super::usage::{UrrUse, Worker};
use super::{Now, SessionBuffer};
use crate::packet::Flow;
use pith_upf::contract::{
    Action, Direction, DropReason, Gate, Pdr, PdrId, Qer, Qfi, SdfFilter, Session, SessionId, Source, Teid,
    UeAddress, UrrId, Volume,
};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

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
    /// Packets held.
    pub buffer: SessionBuffer,
    last_packet: AtomicU64,
}

impl Life {
    /// Of a session that has seen no packet.
    pub fn new(id: SessionId) -> Self {
        Self { id, buffer: SessionBuffer::default(), last_packet: AtomicU64::new(0) }
    }

    /// When its last packet came; 0 for never.
    pub fn last_packet(&self) -> u64 {
        self.last_packet.load(Relaxed)
    }
}

/// A session's rules, immutable; new rules are a new value of a higher generation.
#[derive(Debug)]
pub struct Rules {
    /// What stays when rules change.
    pub life: Arc<Life>,
    /// Which of the session's rules these are.
    pub generation: u64,
    /// The UE's addresses.
    pub ue: UeAddress,
    rules: Box<[Rule]>,
}

impl Rules {
    /// Compiles a session, with the meters and counters that its QERs and URRs have.
    pub fn compile(
        session: &Session,
        generation: u64,
        life: Arc<Life>,
        meters: &[(Qer, Option<Arc<Meter>>)],
        urrs: &[Arc<UrrUse>],
    ) -> Self {
        let mut pdrs: Vec<&Pdr> = session.pdrs.iter().collect();
        pdrs.sort_by_key(|pdr| pdr.precedence);
        let rules = pdrs.into_iter().map(|pdr| Rule::compile(pdr, session, meters, urrs)).collect();
        Self { life, generation, ue: session.ue, rules }
    }

    /// The rule for a packet.
    pub fn find(&self, origin: Origin, flow: &Flow, qfi: Option<Qfi>) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.takes(origin, flow, qfi))
    }

    /// Whether a packet that matched `rule` claims to come from a UE that it does not come from.
    pub fn is_spoofed(&self, rule: &Rule, source: IpAddr) -> bool {
        rule.direction() == Direction::Uplink && !self.ue.is_empty() && !self.ue.contains(source)
    }

    /// The session's own TEIDs; one may come more than once.
    pub fn teids(&self) -> impl Iterator<Item = Teid> {
        self.rules.iter().filter_map(|rule| match rule.source {
            Source::Tunnel { teid, .. } => Some(teid),
            Source::Network => None,
        })
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
    /// Its FAR's action; `None` if it names no FAR.
    pub action: Option<Action>,
    /// The QoS flow to mark packets with.
    pub qfi: Option<Qfi>,
    source: Source,
    filters: Box<[SdfFilter]>,
    /// A bit for each QFI that matches; all if the PDR names none.
    qfis: u64,
    open: bool,
    meters: Box<[Arc<Meter>]>,
    urrs: Box<[Arc<UrrUse>]>,
}

impl Rule {
    fn compile(
        pdr: &Pdr,
        session: &Session,
        meters: &[(Qer, Option<Arc<Meter>>)],
        urrs: &[Arc<UrrUse>],
    ) -> Self {
        let direction = pdr.source.direction();
        let named = || meters.iter().filter(|(qer, _)| pdr.qers.contains(&qer.id));
        Self {
            pdr: pdr.id,
            action: session.fars.iter().find(|far| far.id == pdr.far).map(|far| far.action),
            qfi: named().find_map(|(qer, _)| qer.qfi),
            source: pdr.source,
            filters: pdr.filters.clone().into(),
            qfis: qfi_bits(&pdr.qfis),
            open: named().all(|(qer, _)| qer.gates.of(direction) == Gate::Open),
            meters: named().filter_map(|(_, meter)| meter.clone()).collect(),
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

    /// Which way its packets go.
    pub fn direction(&self) -> Direction {
        self.source.direction()
    }

    /// Whether all gates are open.
    pub fn gate(&self) -> Result<(), DropReason> {
        if self.open { Ok(()) } else { Err(DropReason::GateClosed) }
    }

    /// Gates, quotas and rates: whether a packet of `bytes` may pass now. It is charged if it may.
    pub fn enforce(&self, bytes: usize, now: Now) -> Result<(), DropReason> {
        self.gate()?;
        if self.urrs.iter().any(|used| used.exhausted()) {
            return Err(DropReason::QuotaExhausted);
        }
        let meters = self.meters.iter().map(|meter| &**meter);
        if self.meters.is_empty() || admit(meters, self.direction(), bytes, now) {
            return Ok(());
        }
        Err(DropReason::RateExceeded)
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
