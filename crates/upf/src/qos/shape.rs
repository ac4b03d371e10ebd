//! A session's flows and their meters, compiled from its QERs and PDRs, and the state kept when rules change.

use super::{Burst, FlowCount, FlowCounters, MeterSource, MeteredFlow, Metering};
use crate::contract::{Direction, Pdr, Qer, QerId, Qfi, Session};
use std::sync::Arc;

/// The flows of a session in one direction; a packet's flow is an index.
pub type Flows = Arc<[Arc<MeteredFlow>]>;

/// Whether packets above rates are queued or dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Enforcement {
    /// Queued for a short time; rates are shared fairly.
    #[default]
    Shape,
    /// Dropped.
    Police,
}

impl Enforcement {
    /// The burst size of its buckets.
    pub const fn burst(self) -> Burst {
        match self {
            Self::Shape => Burst::SHAPING,
            Self::Police => Burst::POLICING,
        }
    }
}

/// Meters that apply to all flows of a session in addition to its QERs: those of its slice.
#[derive(Debug, Clone, Default)]
pub struct Aggregates {
    /// For uplink packets.
    pub uplink: Vec<Arc<dyn Metering>>,
    /// For downlink packets.
    pub downlink: Vec<Arc<dyn Metering>>,
}

impl Aggregates {
    fn of(&self, direction: Direction) -> &[Arc<dyn Metering>] {
        match direction {
            Direction::Uplink => &self.uplink,
            Direction::Downlink => &self.downlink,
        }
    }
}

/// The QoS of a session.
#[derive(Debug)]
pub struct SessionQos {
    meters: Vec<QerMeters>,
    uplink: DirectionFlows,
    downlink: DirectionFlows,
}

#[derive(Debug)]
struct QerMeters {
    qer: Qer,
    /// Uplink and downlink; `None` if the QER limits and guarantees nothing.
    both: Option<[Arc<dyn Metering>; 2]>,
}

/// The flows of one direction. `names` has for each flow the QERs that identify it, `qfis` its QFI.
#[derive(Debug)]
struct DirectionFlows {
    names: Vec<Box<[QerId]>>,
    qfis: Vec<Option<Qfi>>,
    flows: Flows,
}

/// The counters of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowUsage {
    /// Uplink or downlink.
    pub direction: Direction,
    /// The QERs that identify it.
    pub qers: Box<[QerId]>,
    /// Its QFI, if it has one.
    pub qfi: Option<Qfi>,
    /// Its counters.
    pub count: FlowCount,
}

impl SessionQos {
    /// Compiles the flows of a session. Meters with the same rates as in `before` and counters of remaining
    /// flows are kept.
    pub fn compile(
        session: &Session,
        before: Option<&Self>,
        enforcement: Enforcement,
        aggregates: &Aggregates,
        source: &dyn MeterSource,
    ) -> Self {
        let meters: Vec<_> =
            session.qers.iter().map(|qer| QerMeters::of(qer, before, enforcement.burst(), source)).collect();
        let half = |direction| {
            let old = before.map(|before| before.half(direction));
            DirectionFlows::compile((session, direction), &meters, aggregates.of(direction), old, source)
        };
        let (uplink, downlink) = (half(Direction::Uplink), half(Direction::Downlink));
        Self { meters, uplink, downlink }
    }

    /// The flows of a direction.
    pub fn flows(&self, direction: Direction) -> &Flows {
        &self.half(direction).flows
    }

    /// The flow of a PDR's packets.
    pub fn flow_of(&self, pdr: &Pdr) -> u16 {
        let name = self.name_of(pdr);
        let names = &self.half(pdr.source.direction()).names;
        names.iter().position(|other| *other == name).unwrap_or(0) as u16
    }

    /// The counters of each flow.
    pub fn usage(&self) -> Vec<FlowUsage> {
        [Direction::Uplink, Direction::Downlink]
            .into_iter()
            .flat_map(|direction| self.usage_of(direction))
            .collect()
    }

    fn usage_of(&self, direction: Direction) -> impl Iterator<Item = FlowUsage> {
        let half = self.half(direction);
        half.names.iter().zip(&half.qfis).zip(half.flows.iter()).map(move |((name, qfi), flow)| FlowUsage {
            direction,
            qers: name.clone(),
            qfi: *qfi,
            count: flow.counters.load(),
        })
    }

    fn half(&self, direction: Direction) -> &DirectionFlows {
        match direction {
            Direction::Uplink => &self.uplink,
            Direction::Downlink => &self.downlink,
        }
    }

    fn name_of(&self, pdr: &Pdr) -> Box<[QerId]> {
        name_of(pdr, &self.meters)
    }
}

impl QerMeters {
    fn of(qer: &Qer, before: Option<&SessionQos>, burst: Burst, source: &dyn MeterSource) -> Self {
        let same =
            |old: &&QerMeters| old.qer.id == qer.id && old.qer.mbr == qer.mbr && old.qer.gbr == qer.gbr;
        let both = match before.and_then(|before| before.meters.iter().find(same)) {
            Some(old) => old.both.clone(),
            None => (qer.mbr.is_some() || qer.gbr.is_some()).then(|| source.make(qer, burst)),
        };
        Self { qer: qer.clone(), both }
    }

    fn meter(&self, direction: Direction) -> Option<Arc<dyn Metering>> {
        let [uplink, downlink] = self.both.as_ref()?;
        Some(Arc::clone(if direction == Direction::Uplink { uplink } else { downlink }))
    }
}

impl DirectionFlows {
    fn compile(
        (session, direction): (&Session, Direction),
        meters: &[QerMeters],
        aggregates: &[Arc<dyn Metering>],
        before: Option<&Self>,
        source: &dyn MeterSource,
    ) -> Self {
        let pdrs = session.pdrs.iter().filter(|pdr| pdr.source.direction() == direction);
        let mut named: Vec<_> = pdrs.map(|pdr| (name_of(pdr, meters), pdr)).collect();
        named.sort_by(|(one, _), (other, _)| one.cmp(other));
        named.dedup_by(|(one, _), (other, _)| one == other);
        let (names, qfis): (Vec<_>, Vec<_>) =
            named.into_iter().map(|(name, pdr)| (name, session.qfi_of(pdr))).unzip();
        let flow = |name: &[QerId]| {
            let named = meters.iter().filter(|meters| name.contains(&meters.qer.id));
            let own = named.filter_map(|meters| meters.meter(direction));
            let counters = before.and_then(|before| before.counters(name));
            let counters = counters.unwrap_or_else(|| source.counters(direction));
            Arc::new(MeteredFlow::new(own, counters).sharing(aggregates))
        };
        let flows = names.iter().map(|name| flow(name)).collect();
        Self { names, qfis, flows }
    }

    fn counters(&self, name: &[QerId]) -> Option<Arc<FlowCounters>> {
        let at = self.names.iter().position(|other| **other == *name)?;
        self.flows.get(at).map(|flow| Arc::clone(&flow.counters))
    }
}

/// The existing QERs of a PDR, in the order of the session's.
fn name_of(pdr: &Pdr, meters: &[QerMeters]) -> Box<[QerId]> {
    meters.iter().map(|meters| meters.qer.id).filter(|id| pdr.qers.contains(id)).collect()
}
