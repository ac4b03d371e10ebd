//! A minimal packet path around the engine, and traffic sources.

use pith_upf::contract::*;
use pith_upf::qos::*;
use std::collections::BTreeMap;
use std::sync::Arc;

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000 * MS;
pub const MBIT: u64 = 1_000_000;
pub const SESSION: SessionId = SessionId(1);
const KEY: Key = (SESSION, Direction::Downlink);
/// The QER of the session's AMBR.
pub const AMBR: QerId = QerId(100);

/// A source of packets at a constant rate, from `start` to `stop`.
#[derive(Debug, Clone)]
pub struct Source {
    /// The PDR that matches its packets.
    pub pdr: u16,
    /// Bits per second.
    pub rate: u64,
    pub bytes: usize,
    pub start: u64,
    pub stop: u64,
    pub ecn: Ecn,
    /// Packets sent together.
    pub burst: u64,
}

impl Source {
    pub fn new(pdr: u16, rate: u64) -> Self {
        Self { pdr, rate, bytes: 1000, start: 0, stop: u64::MAX, ecn: Ecn::NotCapable, burst: 1 }
    }

    fn gap(&self) -> u64 {
        self.bytes as u64 * 8 * SECOND * self.burst / self.rate
    }
}

/// A packet: its source, number, and arrival time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    pub source: usize,
    pub number: u64,
    pub at: u64,
    pub bytes: usize,
}

/// A packet that was sent.
#[derive(Debug, Clone, Copy)]
pub struct Passed {
    pub packet: Packet,
    pub at: u64,
    pub marked: bool,
}

#[derive(Debug, Default)]
pub struct Log {
    pub passed: Vec<Passed>,
    pub dropped: BTreeMap<DropReason, u64>,
    /// PDRs whose held packets were reported.
    pub told: Vec<PdrId>,
    now: u64,
}

impl Outlet<Packet> for Log {
    fn send(&mut self, packet: Packet, marked: bool) -> bool {
        self.passed.push(Passed { packet, at: self.now, marked });
        true
    }

    fn drop(&mut self, _: Packet, reason: DropReason) {
        *self.dropped.entry(reason).or_default() += 1;
    }

    fn held(&mut self, _: &Packet, pdr: PdrId) {
        self.told.push(pdr);
    }
}

/// A QoS flow: a PDR with its own QER with GBR and MBR.
#[derive(Debug, Clone, Copy)]
pub struct QosFlow {
    pub pdr: u16,
    pub gbr: u64,
    pub mbr: u64,
}

/// A session with an AMBR for all its PDRs; `others` are PDRs without a QER of their own.
pub fn session(ambr: u64, flows: &[QosFlow], others: &[u16]) -> Session {
    let rates = |rate| Some(Rates { uplink: rate, downlink: rate });
    let pdr = |id: u16, qers| Pdr {
        id: PdrId(id),
        precedence: 1,
        source: Source_::Network,
        filters: vec![],
        qfis: vec![],
        far: FarId(1),
        qers,
        urrs: vec![],
    };
    let qer = |id, gbr, mbr| Qer { id, gates: Gates::OPEN, mbr, gbr, qfi: None, rqi: false };
    let own = |flow: &QosFlow| QerId(flow.pdr.into());
    let mut pdrs: Vec<_> = flows.iter().map(|flow| pdr(flow.pdr, vec![own(flow), AMBR])).collect();
    pdrs.extend(others.iter().map(|id| pdr(*id, vec![AMBR])));
    let mut qers: Vec<_> =
        flows.iter().map(|flow| qer(own(flow), rates(flow.gbr), rates(flow.mbr))).collect();
    qers.push(qer(AMBR, None, rates(ambr)));
    Session { pdrs, qers, ..Session::new(SESSION) }
}

use pith_upf::contract::Source as Source_;

/// The action on a PDR's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Far {
    Forward,
    Buffer(Option<u16>),
    /// The same, without notification.
    BufferUntold,
    Drop,
}

impl Far {
    fn hold(self, pdr: u16) -> Option<Hold> {
        let hold = |most, notify| Some(Hold { pdr: PdrId(pdr), most, notify });
        match self {
            Far::Buffer(most) => hold(most, true),
            Far::BufferUntold => hold(None, false),
            Far::Forward | Far::Drop => None,
        }
    }
}

/// One session on one packet path.
pub struct Lab {
    pub session: Session,
    pub far: Far,
    pub qos: SessionQos,
    pub engine: Engine<Packet>,
    pub room: Arc<Room>,
    pub log: Log,
    pub sources: Vec<Source>,
    pub offered: u64,
    /// The delay with which the path handles its timers.
    pub lateness: u64,
    aggregates: Aggregates,
    next: Vec<(u64, u64)>,
}

impl Lab {
    pub fn new(session: Session, sources: Vec<Source>) -> Self {
        Self::with(session, sources, BufferLimits::default())
    }

    pub fn with(session: Session, sources: Vec<Source>, limits: BufferLimits) -> Self {
        let room = Arc::new(Room::new(limits));
        let aggregates = Aggregates::default();
        // Sources are not synchronous.
        let next = sources.iter().enumerate().map(|(at, source)| (source.start + 1 + at as u64 * 77_777, 0));
        Self {
            qos: SessionQos::compile(&session, None, Enforcement::Shape, &aggregates, &OnHeap),
            session,
            far: Far::Forward,
            engine: Engine::new(Arc::clone(&room)),
            room,
            log: Log::default(),
            next: next.collect(),
            sources,
            offered: 0,
            lateness: 0,
            aggregates,
        }
    }

    /// Advances time.
    pub fn run_until(&mut self, end: u64) {
        while let Some((at, source)) = self.next_arrival().filter(|(at, _)| *at < end) {
            self.run_timers(at);
            for _ in 0..self.sources[source].burst {
                self.arrive(at, source);
            }
            self.next[source].0 += self.sources[source].gap();
        }
        self.run_timers(end);
        self.log.now = end;
    }

    fn next_arrival(&self) -> Option<(u64, usize)> {
        let live = self.next.iter().zip(&self.sources).enumerate();
        live.filter(|(_, ((at, _), source))| *at < source.stop).map(|(n, ((at, _), _))| (*at, n)).min()
    }

    fn run_timers(&mut self, until: u64) {
        while let Some(due) = self.engine.next_due().map(|due| (due.0 + self.lateness).max(self.log.now)) {
            if due > until {
                return;
            }
            self.log.now = due;
            self.engine.run(Time(due), &mut self.log);
        }
    }

    fn arrive(&mut self, at: u64, source: usize) {
        let Source { pdr, bytes, ecn, .. } = self.sources[source];
        let packet = Packet { source, number: self.next[source].1, at, bytes };
        self.next[source].1 += 1;
        self.offered += 1;
        self.log.now = at;
        let flow = self.flow_of(pdr);
        let arrival = Arrival { flow, tuple: (source as u32 + 1).wrapping_mul(0x9e37_79b9), bytes, ecn };
        let flows = self.qos.flows(Direction::Downlink).clone();
        let whose = SessionQueue { key: KEY, flows: &flows };
        let (held, queued) = self.engine.waiting(KEY);
        if let Some(hold) = self.far.hold(pdr) {
            return self.engine.hold(whose, Time(at), arrival, packet, hold, &mut self.log);
        }
        match self.far {
            Far::Drop => self.log.drop(packet, DropReason::RuleDrop),
            _ if !queued && held == 0 && flows[usize::from(flow)].admit(Time(at), bytes) != Colour::Red => {
                self.log.send(packet, false);
            }
            _ => self.engine.offer(whose, Time(at), arrival, packet, &mut self.log),
        }
    }

    fn flow_of(&self, pdr: u16) -> u16 {
        flow_of(&self.session, &self.qos, pdr).expect("a rule for each source")
    }

    /// Replaces the rules.
    pub fn install(&mut self, session: Session, far: Far) {
        self.qos =
            SessionQos::compile(&session, Some(&self.qos), Enforcement::Shape, &self.aggregates, &OnHeap);
        (self.session, self.far) = (session, far);
        let pdrs: Vec<_> = self.sources.iter().map(|source| source.pdr).collect();
        let (session, qos) = (&self.session, &self.qos);
        let rule = |packet: &mut Packet| {
            let pdr = pdrs[packet.source];
            match (flow_of(session, qos, pdr), far.hold(pdr)) {
                _ if far == Far::Drop => QueueAction::Drop(DropReason::BufferDiscarded),
                (None, _) => QueueAction::Drop(DropReason::NoRule),
                (Some(_), Some(hold)) => QueueAction::Hold(hold),
                (Some(flow), None) => QueueAction::Forward(flow),
            }
        };
        let now = Time(self.log.now);
        let whose = SessionQueue { key: KEY, flows: self.qos.flows(Direction::Downlink) };
        self.engine.reshape(whose, now, rule, &mut self.log);
    }

    pub fn discard(&mut self, all: bool) {
        self.engine.discard(KEY, all, &mut self.log);
    }

    /// Mbit/s of each source between two times.
    pub fn rates(&self, from: u64, to: u64) -> Vec<f64> {
        let mut bits = vec![0.0; self.sources.len()];
        for passed in self.log.passed.iter().filter(|passed| (from..to).contains(&passed.at)) {
            bits[passed.packet.source] += passed.packet.bytes as f64 * 8.0;
        }
        bits.iter().map(|bits| bits * 1e3 / (to - from) as f64).collect()
    }

    /// Longest delay of a share of a source's packets, in milliseconds.
    pub fn delay(&self, source: usize, share: f64) -> f64 {
        let mut delays: Vec<_> = self
            .log
            .passed
            .iter()
            .filter(|p| p.packet.source == source)
            .map(|p| p.at - p.packet.at)
            .collect();
        delays.sort_unstable();
        delays[((delays.len() - 1) as f64 * share) as usize] as f64 / MS as f64
    }

    /// Queued packets by the flows' counters.
    pub fn queued(&self) -> u64 {
        self.qos.usage().iter().map(|usage| usage.count.queued.packets).sum()
    }

    pub fn held(&self) -> usize {
        self.engine.waiting(KEY).0
    }

    pub fn dropped(&self) -> u64 {
        self.log.dropped.values().sum()
    }

    /// Asserts that each source's packets were sent in order.
    pub fn assert_in_order(&self) {
        let mut last = vec![None; self.sources.len()];
        for Passed { packet, .. } in &self.log.passed {
            let before = last[packet.source].replace(packet.number);
            assert!(before < Some(packet.number), "{before:?} before {packet:?}");
        }
    }
}

fn flow_of(session: &Session, qos: &SessionQos, pdr: u16) -> Option<u16> {
    Some(qos.flow_of(session.pdrs.iter().find(|other| other.id == PdrId(pdr))?))
}
