//! What the AMF knows of one UE (TS 23.502 table 5.2.2.2.2-1), and what a step on it may use.

use super::config::AmfConfig;
use super::connection::{Connections, NgConnection, RanContext};
use super::n2::Initial;
use super::procedure::Procedure;
use super::security::SecurityContext;
use super::session::PduSession;
use super::slices::Slices;
use super::subscription::Subscription;
use super::table::Index;
use super::waiting::{Place, Waiting};
use crate::kit::{Duration, Event, GnbHandle, GnbInfo, Instant, Key, Level, Outbox, Rng, Tag, Target, Timer};
use bytes::Bytes;
use pith_nas::ie::UeSecurityCapability;
use pith_ngap::UserLocation;
use pith_sbi::common::SupiOrSuci;
use pith_sbi::{Request, Uri};
use pith_types::{Ambr, FiveGGuti, Pei, Supi, Tai};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The context of one UE.
pub(crate) struct UeContext {
    /// Its place in the table; also the owner of its timers and calls.
    pub key: Key,
    /// Who it is; known once it is authenticated, or recognised by its 5G-GUTI.
    pub supi: Option<Supi>,
    /// Who it said it is when it was authenticated last: for the operator, while it has proven nothing.
    pub claimed: Option<SupiOrSuci>,
    /// Its equipment, as SECURITY MODE COMPLETE told.
    pub pei: Option<Pei>,
    /// Its temporary identity.
    pub guti: Option<FiveGGuti>,
    /// The identity before, which holds until the UE confirms the new one (TS 24.501 5.3.3).
    pub old_guti: Option<FiveGGuti>,
    /// Whether it is registered.
    pub rm: RmState,
    /// The security context in use with it; `None` before the first security mode control.
    pub security: Option<SecurityContext>,
    /// UE security capability, until and beside the security context.
    pub capability: Option<UeSecurityCapability>,
    /// Uplink NAS COUNT that K_gNB of the present connection is made of (TS 33.501 A.9).
    pub k_gnb_count: pith_nas::NasCount,
    /// Its NG connection; `None` in CM-IDLE (TS 23.501 5.3.3.2.2).
    pub connection: Option<Key>,
    /// What came with the message that began the connection.
    pub initial: Initial,
    /// Where it was seen last.
    pub location: Option<UserLocation>,
    /// Registration area, as the UE was told.
    pub registration_area: Vec<Tai>,
    /// UE radio capability, which the gNB made known, for the next gNB.
    pub radio_capability: Option<Bytes>,
    /// What the UDM told of its subscription.
    pub subscription: Option<Box<Subscription>>,
    /// The subscription to changes of it (Nudm_SDM).
    pub sdm_subscription: Option<Uri>,
    /// Whether this AMF is registered for it in the UDM (Nudm_UECM).
    pub registered_in_udm: bool,
    /// Slices allowed and rejected.
    pub slices: Slices,
    /// The AM policy association.
    pub policy: Option<AmPolicy>,
    /// PDU sessions, 15 at most.
    pub sessions: Vec<PduSession>,
    /// N1 and N2 messages that wait until the UE can be reached.
    pub undelivered: Vec<super::delivery::Undelivered>,
    /// The one 5GMM procedure that runs.
    pub procedure: Procedure,
    /// When its present registration began.
    pub since: Instant,
    /// Another AMF was given the context, and the UE has not come back since.
    pub is_transferred: bool,
    /// The security context is not kept when the registration ends.
    pub drops_security: bool,
    /// Its place among the UEs that have not proved who they are.
    pub half_open: Option<Place>,
    /// The subscription to changes was asked for; no procedure waits for that.
    pub sdm_call: Option<CallId>,
    /// Changed subscription data were asked for.
    pub refresh_call: Option<CallId>,
    timers: Vec<Timer>,
    calls: u32,
}

/// Registration management state (TS 23.501 5.3.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RmState {
    /// RM-DEREGISTERED.
    Deregistered,
    /// RM-REGISTERED.
    Registered,
}

/// An AM policy association and what it says (TS 29.507).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AmPolicy {
    /// The resource.
    pub uri: Uri,
    /// Index to RAT/Frequency Selection Priority, 1 to 256, if the PCF sets one.
    pub rfsp: Option<u16>,
    /// UE-AMBR, if the PCF sets one.
    pub ue_ambr: Option<Ambr>,
}

/// One SBI call of a UE: the step of its [`Tag`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallId(pub u32);

/// gNBs that are up, in an order of their own: a replay pages them as the run did.
pub(crate) type Gnbs = BTreeMap<GnbHandle, Arc<GnbInfo>>;

/// What all UEs of a shard share.
pub(crate) struct Shared {
    /// What the operator set.
    pub config: AmfConfig,
    /// gNBs that are up.
    pub gnbs: Gnbs,
    /// All NG connections.
    pub connections: Connections,
    /// Ways to find UEs.
    pub index: Index,
    /// Randomness.
    pub rng: Rng,
    /// UEs that have not proved who they are.
    pub half_open: Waiting,
    /// What is to be done with other UEs' contexts when the step is over.
    pub after: Vec<After>,
}

/// What a step on a UE may use besides the UE's own context.
pub(crate) struct Env<'a> {
    /// When it is.
    pub now: Instant,
    /// What the operator set.
    pub config: &'a AmfConfig,
    /// gNBs that are up.
    pub gnbs: &'a Gnbs,
    /// All NG connections.
    pub connections: &'a mut Connections,
    /// Ways to find UEs.
    pub index: &'a mut Index,
    /// Randomness.
    pub rng: &'a mut Rng,
    /// UEs that have not proved who they are.
    pub half_open: &'a mut Waiting,
    /// What is to be done outside.
    pub out: &'a mut Outbox,
    /// What is to be done with other UEs' contexts when the step is over.
    pub after: &'a mut Vec<After>,
    /// How many UE contexts there are.
    pub ues: usize,
}

impl Shared {
    /// What a step may use now.
    pub fn env<'a>(&'a mut self, now: Instant, ues: usize, out: &'a mut Outbox) -> Env<'a> {
        Env {
            now,
            config: &self.config,
            gnbs: &self.gnbs,
            connections: &mut self.connections,
            index: &mut self.index,
            rng: &mut self.rng,
            half_open: &mut self.half_open,
            out,
            after: &mut self.after,
            ues,
        }
    }
}

/// What a step wants done once its own UE's context is put down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// `new` is the same subscriber as `old`: it takes over, and `old` ends.
    Supersede {
        /// The context that is now the subscriber's.
        new: Key,
        /// The one before.
        old: Key,
    },
    /// The gNB has too many connections to release: this one counts as released.
    Close(Key),
}

impl UeContext {
    /// A UE of which nothing is known yet.
    pub fn new(key: Key, now: Instant) -> Self {
        Self {
            key,
            supi: None,
            claimed: None,
            pei: None,
            guti: None,
            old_guti: None,
            rm: RmState::Deregistered,
            security: None,
            capability: None,
            k_gnb_count: pith_nas::NasCount::ZERO,
            connection: None,
            initial: Initial::default(),
            location: None,
            registration_area: Vec::new(),
            radio_capability: None,
            subscription: None,
            sdm_subscription: None,
            registered_in_udm: false,
            slices: Slices::default(),
            policy: None,
            sessions: Vec::new(),
            undelivered: Vec::new(),
            procedure: Procedure::Idle,
            since: now,
            is_transferred: false,
            drops_security: false,
            half_open: None,
            sdm_call: None,
            refresh_call: None,
            timers: Vec::new(),
            calls: 0,
        }
    }

    /// Whether it is registered.
    pub fn is_registered(&self) -> bool {
        self.rm == RmState::Registered
    }

    /// Whether nothing is left that the context would be kept for.
    pub fn is_over(&self) -> bool {
        !self.is_registered() && matches!(self.procedure, Procedure::Idle)
    }

    /// How logs name it: SUPI masked, or its key.
    pub fn name(&self) -> String {
        match (&self.supi, &self.claimed) {
            (Some(supi), _) | (None, Some(SupiOrSuci::Supi(supi))) => supi.masked(),
            // Its Debug hides the scheme output; scheme and key id remain.
            (None, Some(SupiOrSuci::Suci(suci))) => {
                suci.null_scheme_supi().map_or_else(|| format!("{suci:?}"), |supi| supi.masked())
            }
            (None, None) => format!("ue-{}", self.key.index()),
        }
    }

    /// The session of that identity.
    pub fn session(&self, id: u8) -> Option<&PduSession> {
        self.sessions.iter().find(|session| session.id == id)
    }

    /// The session of that identity, to change.
    pub fn session_mut(&mut self, id: u8) -> Option<&mut PduSession> {
        self.sessions.iter_mut().find(|session| session.id == id)
    }

    /// Starts one of its timers, or starts it anew.
    pub fn start(&mut self, env: &mut Env<'_>, timer: Timer, after: Duration) {
        if !self.timers.contains(&timer) {
            self.timers.push(timer);
        }
        env.out.start(self.key.to_u64(), timer, after);
    }

    /// Stops one of its timers, if it runs.
    pub fn stop(&mut self, env: &mut Env<'_>, timer: Timer) {
        if self.ran_out(timer) {
            env.out.stop(self.key.to_u64(), timer);
        }
    }

    /// Stops all of its timers.
    pub fn stop_all(&mut self, env: &mut Env<'_>) {
        for timer in self.timers.drain(..) {
            env.out.stop(self.key.to_u64(), timer);
        }
    }

    /// Notes that a timer runs no longer; whether it ran.
    pub fn ran_out(&mut self, timer: Timer) -> bool {
        let running = self.timers.len();
        self.timers.retain(|other| *other != timer);
        self.timers.len() < running
    }

    /// Its timers that run.
    pub fn timers(&self) -> &[Timer] {
        &self.timers
    }

    /// Calls an operation of another NF for it; the reply comes back with the number given.
    pub fn call(&mut self, env: &mut Env<'_>, target: Target, request: impl Into<Request>) -> CallId {
        let CallId(step) = self.next_number();
        env.out.call(Tag { owner: self.key.to_u64(), step }, target, request.into());
        CallId(step)
    }

    /// A number that it has not used before.
    pub fn next_number(&mut self) -> CallId {
        self.calls = self.calls.wrapping_add(1);
        CallId(self.calls)
    }

    /// Whether something sent now would reach it: CM-CONNECTED, and the connection is not being
    /// released.
    pub fn is_reachable(&self, env: &Env<'_>) -> bool {
        let connection = self.connection.and_then(|key| env.connections.get(key));
        connection.is_some_and(|connection| connection.context != RanContext::Releasing)
    }

    /// Its NG connection.
    pub fn ng<'e>(&self, env: &'e mut Env<'_>) -> Option<&'e mut NgConnection> {
        env.connections.get_mut(self.connection?)
    }

    /// Tells the operator how a procedure came out.
    pub fn tell(&self, env: &mut Env<'_>, level: Level, procedure: &'static str, outcome: &'static str) {
        env.out.event(level, || Event {
            level,
            procedure,
            outcome,
            ue: self.name(),
            text: format!("{procedure}: {outcome}"),
        });
    }

    /// UE-AMBR: the PCF's, else the subscription's.
    pub fn ambr(&self) -> Option<Ambr> {
        let policy = self.policy.as_ref().and_then(|policy| policy.ue_ambr);
        policy.or_else(|| self.subscription.as_ref()?.ue_ambr)
    }

    /// Index to RAT/Frequency Selection Priority: the PCF's, else the subscription's.
    pub fn rfsp(&self) -> Option<u16> {
        let policy = self.policy.as_ref().and_then(|policy| policy.rfsp);
        policy.or_else(|| self.subscription.as_ref()?.rfsp)
    }
}

/// The owner of calls that no UE waits for: their replies change nothing.
const NOBODY: u64 = u64::MAX;

impl Env<'_> {
    /// Calls an operation whose answer changes nothing, such as the end of a resource.
    pub fn tell_nf(&mut self, target: Target, request: impl Into<Request>) {
        self.out.call(Tag { owner: NOBODY, step: 0 }, target, request.into());
    }
}
