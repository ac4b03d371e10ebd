//! A world: the agenda of future events, and the actors that handle them.
//!
//! ```text
//!   agenda, timers ──> step ──> process │ gNB │ UE │ UPF ──> effects ──> agenda, timers
//!                        └────> invariants
//! ```
//!
//! One file for each reference point: `sbi`, `n2`, `n4`, `radio`. All events follow from the seed,
//! so a world is reproducible.

mod attack;
mod counts;
mod crash;
mod crash_point;
mod fault;
mod history;
mod instances;
mod invariant;
mod kill;
mod moves;
mod n2;
mod n4;
mod operator;
mod paging;
mod panic;
mod path;
mod process;
mod radio;
mod reallocation;
mod reflection;
mod restoring;
mod run;
mod sbi;
mod services;
mod trust;
mod unstored;
mod user;
mod violation;

pub use attack::{AttackAction, Attacker, ObservedMessages};
pub(crate) use fault::Fault;
pub(crate) use history::Ends;
pub(crate) use operator::REFLECTIVE_RULE;
pub use reflection::ReflectedAnswer;
pub use run::Report;
pub(crate) use services::{EMERGENCY, LOCAL};
pub(crate) use user::{Act, SubscriptionChange};

use crate::database::Database;
use crate::dice::Dice;
use crate::journal::{Journal, SharedJournal, TraceEntry};
use crate::plan::Plan;
use crate::server::Server;
use crate::user_plane::UserPlane;
use attack::AttackerState;
use crash::BeforeCrash;
use crash_point::CrashPoints;
use invariant::Watch;
use n2::SimGnb;
use pith_nf::fabric::{ShardInput, Timers};
use pith_nf::kit::{Instant, Nf, TimerKey};
use pith_ngap::transfer::Tunnel;
use pith_ran::ue::PagedWith;
use pith_runtime::residency::OwnerMemory;
use pith_sbi::token::Verifier;
use pith_upf::contract::SessionId;
use process::Process;
use radio::SimUe;
use sbi::Exchange;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::net::SocketAddr;
use std::sync::MutexGuard;
use std::time::Duration;
use unstored::Unstored;

/// A failed invariant.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The world's seed.
    pub seed: u64,
    /// Virtual time of the failure.
    pub at: Instant,
    /// Description.
    pub what: String,
    /// The last rungs of the ladder before the failure.
    pub ladder: Vec<TraceEntry>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {} at {} s: {}", self.seed, self.at.as_micros() / 1_000_000, self.what)?;
        self.ladder.iter().try_for_each(|entry| writeln!(f, "{entry}"))
    }
}

impl std::error::Error for Failure {}

/// A future event.
#[derive(Debug)]
enum SimEvent {
    /// An input arrives at a shard; it is discarded if its process was killed meanwhile.
    ToShard { process: usize, incarnation: u32, shard: usize, input: Box<ShardInput> },
    /// Changed contexts of a shard are written (`residency: soft`).
    WriteDocuments { process: usize, incarnation: u32, shard: usize },
    /// A slice of the contexts that are not restored is due.
    Restore { process: usize, incarnation: u32, shard: usize },
    /// An association of a killed process ends at the gNB.
    AssociationLost { gnb: usize, association: u64 },
    /// The store of contexts answers again.
    StoreIsBack,
    /// It answers that process again.
    Reached { process: usize },
    /// A turn of an instance's thread for the owner map.
    SetTurn { process: usize, incarnation: u32, repeats: bool },
    /// A process starts.
    Start { process: usize },
    /// A gNB tries to establish its association.
    Associate { gnb: usize, number: u8 },
    /// An NGAP PDU arrives at a gNB, if the association still exists.
    ToGnb { association: u64, stream: u16, pdu: Vec<u8> },
    /// An NGAP PDU arrives at the N2 gateway.
    ToN2Gateway { association: u64, stream: u16, pdu: Vec<u8> },
    /// A PFCP datagram of a UPF arrives at an SMF process.
    ToN4Gateway { process: usize, upf: usize, octets: Vec<u8> },
    /// A PFCP datagram arrives at a UPF.
    ToUpf { upf: usize, peer: SocketAddr, octets: Vec<u8> },
    /// A signal arrives at a gNB over the radio, on a connection.
    Uplink { ue: usize, gnb: usize, connection: u64, signal: radio::Uplink },
    /// A signal arrives at a UE over the radio, on a connection.
    Downlink { ue: usize, connection: u64, signal: radio::Downlink },
    /// A UE receives PAGING.
    Page { ue: usize, with: PagedWith },
    /// An SBI request arrives at its process.
    SbiRequest { exchange: u64 },
    /// An SBI reply arrives, or the deadline passes.
    SbiReply { exchange: u64, reply: Box<sbi::Answered> },
    /// A user acts.
    Act { ue: usize, act: user::Act },
    /// A fault occurs.
    Break(Fault),
    /// The attacker acts.
    Strike,
}

/// Identifies a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum TimerId {
    Nf { process: usize, shard: usize, nf: Nf, key: TimerKey },
    N2Gateway { process: usize },
    N4Gateway { process: usize, key: TimerKey },
    Ue(usize),
    Gnb(usize),
    Upf(usize),
}

/// A channel delivers its messages in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Channel {
    N2 { association: u64, stream: u16, up: bool },
    Air { ue: usize, up: bool },
    Shard { process: usize, shard: usize },
    Store { process: usize, shard: usize },
    Load { process: usize, shard: usize },
}

/// A running world.
pub struct World {
    plan: Plan,
    dice: Dice,
    now: Instant,
    agenda: BTreeMap<(Instant, u64), SimEvent>,
    numbered: u64,
    order: HashMap<Channel, Instant>,
    timers: Timers<TimerId>,
    /// Faults are on.
    faulty: bool,
    processes: Vec<Process>,
    exchanges: BTreeMap<u64, Exchange>,
    /// Checks access tokens.
    verifier: Verifier,
    database: Database,
    upfs: Vec<UserPlane>,
    gnbs: Vec<SimGnb>,
    ues: Vec<SimUe>,
    journal: SharedJournal,
    watch: Watch,
    enemy: AttackerState,
    /// From a crash to the next start, by process.
    before_crash: BTreeMap<usize, BeforeCrash>,
    crash_points: CrashPoints,
    /// The documents of the runtime's stores.
    server: Server,
    /// The owner map of the set, and its leases.
    owner_map: OwnerMemory,
    /// Processes that ended because others had taken over their UEs.
    lost: u32,
    /// The last start, end or stop of a process.
    disturbed: Instant,
    /// Until then, changes of contexts may not be stored after an outage.
    store_back: Instant,
    /// What instances accepted without the store.
    unstored: Unstored,
    /// A shard of this process panics at one of the next inputs.
    panicking: Option<usize>,
    /// Blocks that passed to another shard.
    moved: u32,
    /// Tunnels that gNBs have opened for UEs of other gNBs.
    lent_tunnels: HashSet<Tunnel>,
    /// Sessions that UPFs have established; `true`: no SMF has got a response with the SEID.
    unheard_sessions: BTreeMap<(usize, SessionId), bool>,
    /// The run is one of [`crate::kill`]: nothing may leak.
    is_kill: bool,
}

impl World {
    /// A world at its start: nothing runs yet.
    pub fn new(plan: Plan) -> Self {
        let mut dice = Dice::new(plan.seed);
        let (gnbs, ues) = (n2::gnbs(&plan), radio::ues(&plan, &mut dice));
        let mut database = Database::default();
        ues.iter().for_each(|sim_ue| database.add(sim_ue.subscriber.clone()));
        let now = Instant::from_micros(0);
        let server = Server::new(plan.seed ^ 0x7365_7276_6572, plan.store_latency);
        let mut world = Self {
            processes: (0..)
                .zip(&plan.processes)
                .map(|(number, nfs)| Process::new(number, nfs.clone(), &plan, &server))
                .collect(),
            dice,
            now,
            agenda: BTreeMap::new(),
            numbered: 0,
            order: HashMap::new(),
            timers: Timers::default(),
            faulty: false,
            exchanges: BTreeMap::new(),
            verifier: trust::verifier(),
            database,
            upfs: (0..plan.upfs).map(|upf| UserPlane::start(upf, plan.instances > 0, now)).collect(),
            gnbs,
            ues,
            journal: SharedJournal::default(),
            watch: Watch::default(),
            enemy: AttackerState::default(),
            before_crash: BTreeMap::new(),
            server,
            owner_map: OwnerMemory::simulated(),
            lost: 0,
            disturbed: now,
            store_back: Instant::default(),
            unstored: Unstored::default(),
            crash_points: CrashPoints::default(),
            panicking: None,
            moved: 0,
            lent_tunnels: HashSet::new(),
            unheard_sessions: BTreeMap::new(),
            is_kill: false,
            plan,
        };
        world.switch_on();
        world
    }

    fn switch_on(&mut self) {
        for process in 0..self.processes.len() {
            self.at(Duration::from_millis(10 * process as u64), SimEvent::Start { process });
        }
        for gnb in 0..self.gnbs.len() {
            let first = if self.plan.offers_endpoints { 1 } else { self.plan.associations };
            for number in 0..first {
                self.at(Duration::from_millis(500), SimEvent::Associate { gnb, number });
            }
        }
    }

    /// The messages between actors: all with `keep_ladder`, else the last ones.
    pub fn ladder(&self) -> Vec<TraceEntry> {
        self.journal().entries().cloned().collect()
    }

    /// Keeps every rung of the ladder from now on.
    pub fn keep_ladder(&mut self) {
        self.journal().keeps_all = true;
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.open()
    }

    fn record(&self, from: impl Into<String>, to: impl Into<String>, what: impl Into<String>) {
        self.journal().record(from, to, what);
    }

    /// Schedules an event after that time.
    fn at(&mut self, after: Duration, event: SimEvent) {
        let when = self.now + after;
        self.schedule(when, event);
    }

    /// Schedules an event after that time, but not before earlier ones of the channel.
    fn in_order(&mut self, channel: Channel, after: Duration, event: SimEvent) {
        let last = self.order.entry(channel).or_insert(self.now);
        let when = (self.now + after).max(*last);
        *last = when;
        self.schedule(when, event);
    }

    fn schedule(&mut self, when: Instant, event: SimEvent) {
        self.numbered += 1;
        self.agenda.insert((when, self.numbered), event);
    }

    /// Whether a fault of that frequency occurs now.
    fn fault_occurs(&mut self, per_mille: u32) -> bool {
        self.faulty && per_mille > 0 && self.dice.chance(per_mille)
    }

    /// Starts a timer; while faults are on, it may expire up to 1 s late.
    fn start_timer(&mut self, timer: TimerId, after: Duration) {
        let late = self.fault_occurs(self.plan.faults.late_timers);
        let delay = if late { self.dice.millis(0, 1000) } else { Duration::ZERO };
        self.timers.start(timer, self.now + after + delay);
    }

    /// Sets or stops the only timer of a UE, gNB or UPF, which determines the time itself.
    fn set_wake_up(&mut self, timer: TimerId, when: Option<Instant>) {
        match when {
            Some(when) => self.timers.start(timer, when.max(self.now)),
            None => self.timers.stop(timer),
        }
    }

    /// Runs the next event, if it is due by `until`; then checks the invariants.
    fn step(&mut self, until: Instant) -> Result<bool, Box<Failure>> {
        let planned = self.agenda.first_key_value().map(|((when, _), _)| *when);
        let timer = self.timers.next_deadline();
        let next = planned.into_iter().chain(timer).min().filter(|when| *when <= until);
        let Some(next) = next else { return Ok(false) };
        self.now = self.now.max(next);
        self.journal().now = self.now;
        self.server.set_now(self.now);
        self.set_time_of_leases();
        match self.agenda.first_entry().filter(|_| planned == Some(next)) {
            Some(first) => {
                let event = first.remove();
                self.handle_event(event);
            }
            None => self.expire_timer(),
        }
        self.check_step()?;
        Ok(true)
    }

    /// Runs all events within that time.
    fn pass(&mut self, time: Duration) -> Result<(), Box<Failure>> {
        let until = self.now + time;
        while self.step(until)? {}
        self.now = until;
        Ok(())
    }

    /// Handles the timer that expires now.
    fn expire_timer(&mut self) {
        let timer = self.timers.expired(self.now);
        if let Some(
            timer @ (TimerId::Nf { process, .. }
            | TimerId::N2Gateway { process }
            | TimerId::N4Gateway { process, .. }),
        ) = timer
            && let Some(until) = self.paused_until(process)
        {
            return self.timers.start(timer, until);
        }
        match timer {
            Some(TimerId::Nf { process, shard, nf, key }) => {
                self.to_shard(process, shard, ShardInput::Timer { nf, key });
            }
            Some(TimerId::N2Gateway { process }) => self.n2_gateway_timeout(process),
            Some(TimerId::N4Gateway { process, key }) => self.n4_timer(process, key),
            Some(TimerId::Ue(ue)) => self.ue_timeout(ue),
            Some(TimerId::Gnb(gnb)) => self.gnb_timeout(gnb),
            Some(TimerId::Upf(upf)) => self.upf_tick(upf),
            None => {}
        }
    }

    fn handle_event(&mut self, event: SimEvent) {
        if let Some(until) = self.pause_of(&event) {
            return self.schedule(until, event);
        }
        match event {
            SimEvent::ToShard { process, incarnation, shard, input } => {
                if self.processes[process].is_running_as(incarnation) {
                    self.to_shard(process, shard, *input);
                }
            }
            SimEvent::WriteDocuments { process, incarnation, shard } => {
                if self.processes[process].is_running_as(incarnation) {
                    self.write_documents(process, shard);
                }
            }
            SimEvent::Restore { process, incarnation, shard } => {
                if self.processes[process].is_running_as(incarnation) {
                    self.restore_slice(process, shard);
                }
            }
            SimEvent::AssociationLost { gnb, association } => self.association_lost(gnb, association),
            SimEvent::StoreIsBack => self.store_is_back(),
            SimEvent::Reached { process } => self.reach_again(process),
            SimEvent::SetTurn { process, incarnation, repeats } => {
                if self.processes[process].is_running_as(incarnation) {
                    self.set_turn(process, repeats);
                }
            }
            SimEvent::Start { process } => self.start_process(process),
            SimEvent::Associate { gnb, number } => self.associate(gnb, number),
            SimEvent::ToGnb { association, stream, pdu } => self.to_gnb(association, stream, &pdu),
            SimEvent::ToN2Gateway { association, stream, pdu } => {
                self.to_n2_gateway(association, stream, pdu);
            }
            SimEvent::ToN4Gateway { process, upf, octets } => self.to_n4_gateway(process, upf, octets),
            SimEvent::ToUpf { upf, peer, octets } => self.to_upf(upf, peer, &octets),
            SimEvent::Uplink { ue, gnb, connection, signal } => self.uplink(ue, gnb, connection, signal),
            SimEvent::Downlink { ue, connection, signal } => self.downlink(ue, connection, signal),
            SimEvent::Page { ue, with } => self.page(ue, with),
            SimEvent::SbiRequest { exchange } => self.sbi_request(exchange),
            SimEvent::SbiReply { exchange, reply } => self.sbi_reply(exchange, *reply),
            SimEvent::Act { ue, act } => self.act(ue, act),
            SimEvent::Break(fault) => self.break_it(fault),
            SimEvent::Strike => self.next_action(),
        }
    }
}
