//! `make kill`: a process is killed at each crash point of each procedure (see the crate's README).

mod campaign;
mod procedures;

pub use campaign::{BrokenRun, Options, Row, Table, campaign};
pub use procedures::{PROCEDURES, Procedure};

use crate::dice::Dice;
use crate::plan::{Faults, LEASE, Plan, Residency};
use crate::world::{Failure, World};
use pith_crypto::nas::CipheringAlgorithm;
use pith_nf::kit::{Instant, Nf};
use pith_runtime::residency::WriteForm;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Instances of the set with [`Victim::Instance`].
const INSTANCES: usize = 2;

/// What a crash broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BreachKind {
    /// A UE lost its registration, its security context or a session.
    Loss,
    /// A NAS COUNT or an SQN was used twice.
    Reuse,
    /// Something is left in the core when all UEs have deregistered.
    Leak,
    /// UEs and core do not agree when all is idle, or a session does not work.
    Disagreement,
    /// A UE or gNB reports a violation of a specification, an NF is inconsistent, or it panicked.
    Violation,
}

/// A broken invariant.
#[derive(Debug, Clone)]
pub struct Breach {
    /// What it is.
    pub kind: BreachKind,
    /// Where and when.
    pub failure: Box<Failure>,
}

/// The process that is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Victim {
    /// The only process, with all NFs and the N2 gateway.
    Core,
    /// A shard of the only process: it panics, and gateways and other shards continue.
    Shard,
    /// As `Shard`, while blocks of ids pass to other shards.
    Move,
    /// One of two instances of AMF, SMF and PCF, which share their UEs over one store. The other one takes its UEs over, if it does not return
    /// within its lease.
    Instance,
    /// The process of one NF; each NF has its own.
    Split(Nf),
}

/// The runs of one procedure in one world.
#[derive(Debug, Clone, Copy)]
pub struct Kill {
    /// What the first UE does, or what happens to it.
    pub procedure: &'static Procedure,
    /// Shape of the core, and times.
    pub seed: u64,
    /// Where contexts are stored.
    pub residency: Residency,
    /// The process that is killed.
    pub victim: Victim,
    /// The core retains the UEs of gNBs that retain them (`amf.n2.retain_ues`); which gNBs do follows from the seed.
    pub retains_ues: bool,
}

impl Victim {
    /// Each NF's process.
    pub fn split() -> Vec<Self> {
        Nf::ALL.into_iter().map(Self::Split).collect()
    }

    /// Whether the residency can be configured: instances of a set have `soft`, `durable` or `procedural`.
    pub(super) const fn may_have(self, residency: Residency) -> bool {
        !matches!(self, Self::Instance)
            || matches!(residency, Residency::Soft | Residency::Durable | Residency::Procedural)
    }
}

impl fmt::Display for Victim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Core => f.write_str("core"),
            Self::Shard => f.write_str("shard"),
            Self::Move => f.write_str("move"),
            Self::Instance => f.write_str("instance"),
            Self::Split(nf) => write!(f, "{}", nf.name()),
        }
    }
}

impl fmt::Display for Kill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, residency) = (self.procedure.name, self.residency.name());
        write!(f, "{name} --residency {residency} --victim {} --seed {}", self.victim, self.seed)?;
        if self.retains_ues { f.write_str(" --retain-ues") } else { Ok(()) }
    }
}

impl Kill {
    fn plan(&self) -> Plan {
        let mut dice = Dice::new(self.seed ^ 0x6b69_6c6c);
        let ciphers = [CipheringAlgorithm::Nea0, CipheringAlgorithm::Nea2];
        let upfs = if self.procedure.needs_classifier { 2 } else { 1 + dice.index(2) };
        let needs_amfs = self.procedure.needs_amfs;
        let mut processes = match self.victim {
            Victim::Core | Victim::Shard | Victim::Move => vec![Nf::ALL.to_vec()],
            Victim::Instance => Plan::processes_of_set(INSTANCES, self.seed.is_multiple_of(3)),
            Victim::Split(_) => Nf::ALL.into_iter().map(|nf| vec![nf]).collect(),
        };
        processes.extend(needs_amfs.then(|| vec![Nf::Amf]));
        Plan {
            seed: self.seed,
            processes,
            shards: (1 + dice.index(3)).max(if self.victim == Victim::Move { 2 } else { 1 }),
            instances: if self.victim == Victim::Instance { INSTANCES } else { 0 },
            lease: LEASE,
            areas: if needs_amfs { 2 } else { 1 },
            gnbs: if self.procedure.needs_gnbs { 2 } else { 1 + dice.index(2) },
            associations: 1,
            offers_endpoints: false,
            joins_by_ng_setup: false,
            // The default is 0: with gNBs that retain their UEs some crash points still fail.
            retaining: if self.retains_ues { 1 + (self.seed % 3) as u8 } else { 0 },
            ues: 2,
            upfs,
            upfs_retain: Plan::retain(self.seed),
            breaks_out: upfs > 1 && !self.procedure.needs_classifier && dice.chance(500),
            oauth2: needs_amfs,
            ciphering: ciphers[dice.index(2)],
            other_ciphering: None,
            derives_k_amf: false,
            reallocates: self.procedure.reallocates,
            residency: self.residency,
            store_latency: None,
            store: (self.residency.needs_runtime_store() || self.victim == Victim::Instance)
                .then_some(self.form()),
            // World::run does that; here restarts do.
            reloads: false,
            faults: Faults::default(),
            moves: 0,
            acts: 0,
            services: self.procedure.services,
        }
    }

    /// What a change writes in the runtime's store.
    fn form(&self) -> WriteForm {
        if self.seed.is_multiple_of(2) { WriteForm::Replace } else { WriteForm::Update }
    }

    /// With two AMFs every second seed has the second one as victim.
    fn victim(&self) -> usize {
        let has_amf = !matches!(self.victim, Victim::Split(nf) if nf != Nf::Amf);
        if self.procedure.needs_amfs && has_amf && self.seed % 2 == 1 {
            return if matches!(self.victim, Victim::Split(_)) { Nf::ALL.len() } else { 1 };
        }
        match self.victim {
            // Which instance follows from the world.
            Victim::Core | Victim::Shard | Victim::Move | Victim::Instance => 0,
            Victim::Split(nf) => Nf::ALL.iter().position(|other| *other == nf).unwrap_or(0),
        }
    }

    /// Whether the residency promises that this cannot happen. With `soft` the last changes may be lost, and with them the record of
    /// resources at other NFs.
    pub fn forbids(&self, kind: BreachKind) -> bool {
        self.residency != Residency::Soft || kind != BreachKind::Leak
    }

    /// Whether there is such a run. With two AMFs one of them ends, and no other NF: a document of all NFs of a UE has room for one AMF, and if
    /// an SMF or the UDM ends with its AMF, a session may be left whose SMF never heard of its new AMF.
    pub(super) fn is_possible(&self) -> bool {
        let is_amf = match self.victim {
            Victim::Core | Victim::Shard => self.seed % 2 == 1,
            Victim::Split(nf) => nf == Nf::Amf,
            Victim::Move | Victim::Instance => false,
        };
        self.victim.may_have(self.residency)
            && self.procedure.may_have(self.residency)
            && (is_amf || !self.procedure.needs_amfs)
    }

    /// Runs the procedure without a crash; returns the number of its crash points.
    pub fn points(&self) -> Result<u64, Breach> {
        self.run(None, false).0
    }

    /// Runs the procedure with a crash at that point; the world shows its ladder.
    pub fn crash_at(&self, point: u64, keeps_ladder: bool) -> (Result<u64, Breach>, Option<World>) {
        self.run(Some(point), keeps_ladder)
    }

    fn run(&self, at: Option<u64>, keeps_ladder: bool) -> (Result<u64, Breach>, Option<World>) {
        let run = || {
            let mut world = World::new(self.plan());
            if keeps_ladder {
                world.keep_ladder();
            }
            let result = match self.victim {
                Victim::Move => {
                    let after = Some(self.time_of_move());
                    world.run_move(self.procedure, (after, false), at).map(|(_, points)| points)
                }
                victim => world.run_kill(self.procedure, (self.victim(), victim == Victim::Shard), at),
            };
            (result, Some(world))
        };
        catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| (Err(self.panicked(&*panic)), None))
    }

    /// Runs the procedure while blocks pass to another shard; see [`World::run_move`]. Returns how many did.
    pub fn move_after(&self, after: Option<Duration>, back: bool) -> Result<u32, Breach> {
        let run = || {
            let plan = self.plan();
            let shards = plan.shards.max(2);
            World::new(Plan { shards, ..plan }).run_move(self.procedure, (after, back), None)
        };
        let result = catch_unwind(AssertUnwindSafe(run));
        result.unwrap_or_else(|panic| Err(self.panicked(&*panic))).map(|(moved, _)| moved)
    }

    /// When blocks pass, after the begin of the procedure.
    const fn time_of_move(&self) -> Duration {
        Duration::from_millis(self.seed * 37 % 200)
    }

    fn panicked(&self, panic: &(dyn std::any::Any + Send)) -> Breach {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("");
        let what = format!("panic: {text}");
        let failure = Failure { seed: self.seed, at: Instant::from_micros(0), what, ladder: Vec::new() };
        Breach { kind: BreachKind::Violation, failure: Box::new(failure) }
    }
}
