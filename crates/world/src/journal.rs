//! The ladder: every message between actors, and the records that the invariants need.

use pith_nf::kit::{Instant, Nf, Tag};
use pith_sbi::Uri;
use pith_types::BlockId;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One message, or one event of an actor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceEntry {
    /// Virtual time.
    pub at: Instant,
    /// Sender.
    pub from: String,
    /// Receiver.
    pub to: String,
    /// Its name in the specifications.
    pub what: String,
}

impl TraceEntry {
    /// Without the time: `AMF -> AUSF Nausf_UEAuthentication_Authenticate`.
    pub fn name(&self) -> String {
        format!("{} -> {} {}", self.from, self.to, self.what)
    }
}

impl fmt::Display for TraceEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.at.as_micros();
        let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
        write!(f, "{seconds:>6}.{fraction:06}  {:>5} -> {:<5}  {}", self.from, self.to, self.what)
    }
}

/// The caller: process, shard, NF.
pub(crate) type CallerId = (usize, usize, Nf);

/// The purpose of a callback URI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Callback {
    /// The UDM deregisters the AMF.
    Deregistration,
    /// The PCF changes the policies of a session.
    SmPolicy(u8),
}

/// RAND and AUTN of an authentication vector.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Vector {
    pub rand: [u8; 16],
    pub autn: [u8; 16],
}

/// The number of keys of a subscriber that an AMF has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Keys {
    /// From the home network, which has authenticated the UE. All AMFs have the same number.
    pub new: u64,
    /// From other AMFs, which have derived them.
    pub derived: usize,
}

/// A UE's connection: the identity of its gNB, and its RAN-UE-NGAP-ID there.
pub(crate) type RanConnection = (u32, u32);

/// Records of a world.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    pub now: Instant,
    /// All rungs if `keeps_all`, else the last ones.
    entries: std::collections::VecDeque<TraceEntry>,
    pub keeps_all: bool,
    /// Pending SBI calls.
    pub open_calls: BTreeSet<(CallerId, Tag)>,
    /// The keys that the contexts of a block had when an NF passed it last.
    pub passed: BTreeMap<(CallerId, BlockId), Vec<u64>>,
    /// The callback URIs that UDM and PCF were given last, by SUPI.
    pub callbacks: BTreeMap<(String, Callback), Uri>,
    /// Authentication vectors that left the UDM, by SUPI.
    pub vectors: Vec<(String, Vector)>,
    /// Number of new keys of each subscriber: K_SEAF left the AUSF.
    pub keys: BTreeMap<String, u64>,
    /// The keys of each subscriber that the AMF of a process has got from other AMFs, which have derived them from K_AMF (TS 33.501 6.9.3).
    pub derived_keys: BTreeMap<(String, usize), BTreeSet<String>>,
    /// The times at which an AMF had passed the UE of a connection on to another AMF (TS 23.502 4.2.2.2.3 step 7A).
    pub passed_on: BTreeMap<RanConnection, Instant>,
}

/// Rungs shown with a failure.
const TAIL: usize = 120;

impl Journal {
    pub fn record(&mut self, from: impl Into<String>, to: impl Into<String>, what: impl Into<String>) {
        if !self.keeps_all && self.entries.len() == TAIL {
            self.entries.pop_front();
        }
        self.entries.push_back(TraceEntry {
            at: self.now,
            from: from.into(),
            to: to.into(),
            what: what.into(),
        });
    }

    pub fn entries(&self) -> impl Iterator<Item = &TraceEntry> {
        self.entries.iter()
    }

    /// The number of a subscriber's keys so far at the AMF of a process: K_SEAF of the AUSF, and keys that other AMFs have derived.
    pub fn keys_of(&self, supi: &str, process: usize) -> Keys {
        let derived = self.derived_keys.get(&(supi.to_owned(), process));
        Keys { new: self.keys.get(supi).copied().unwrap_or(0), derived: derived.map_or(0, BTreeSet::len) }
    }

    /// A shard has released a block to another instance. The block waits for the replies that its contexts wait for: a call that is still open was
    /// superseded by a later one, and its reply has no context any longer.
    pub fn note_released(&mut self, (process, shard): (usize, usize), block: BlockId) {
        let Self { passed, open_calls, .. } = self;
        let of_shard =
            passed.extract_if(.., |((at, of, _), passed), _| (*at, *of, *passed) == (process, shard, block));
        for ((place, _), owners) in of_shard {
            open_calls.retain(|(caller, tag)| *caller != place || !owners.contains(&tag.owner));
        }
    }

    /// A process died: its calls are no longer pending.
    pub fn forget(&mut self, process: usize) {
        self.open_calls.retain(|((of, ..), _)| *of != process);
    }
}

/// The journal, shared by all writers. A world has one thread; NFs must be `Send` nevertheless.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedJournal(Arc<Mutex<Journal>>);

impl SharedJournal {
    pub fn open(&self) -> MutexGuard<'_, Journal> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
