//! The UE context (TS 23.502 table 5.2.2.2.2-1), and the environment of a step on it.

use super::access_keys::AccessKeys;
use super::config::AmfConfig;
pub(crate) use super::gnbs::Gnbs;

use super::connection::{Connections, NgConnection, RanContext};
use super::mobility::Mobility;
use super::mobility::arrival::Arrival;
use super::mobility::departure::Withdrawn;
use super::n2::Initial;
use super::pending_table::{EntryId, PendingTable};
use super::procedure::Procedure;
use super::reachability::Reachability;
use super::security::SecurityContext;
use super::session::PduSession;
use super::slices::Slices;
use super::subscription::Subscription;
use super::table::Index;
use super::time_zone;
use crate::kit::document::{Document, Names, Pack, Reader, UnpackError, Writer, pack_enum, pack_struct};
use crate::kit::{
    Caller, ContextIds, Duration, Event, GnbHandle, Instant, Key, Level, Outbox, Owner, References, Rng, Tag,
    Target, Timer,
};
use bytes::Bytes;
use pith_nas::Unprotected;
use pith_nas::ie::UeSecurityCapability;
use pith_ngap::UserLocation;
use pith_sbi::common::{DateTime, SupiOrSuci};
use pith_sbi::{Request, Uri};
use pith_types::{Ambr, ContextId, FiveGGuti, Pei, Plmn, Supi, Tai};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

pub(crate) struct UeContext {
    /// Its key in the table; also the owner of its timers and calls.
    pub key: Key,
    /// Its name in references. Its 5G-TMSIs and AMF-UE-NGAP-IDs are of the same block.
    pub id: ContextId,
    /// SUPI; known once the UE is authenticated or recognised by its 5G-GUTI.
    pub supi: Option<Supi>,
    /// The identity that the UE sent when it was last authenticated. Shown to the operator while
    /// the SUPI is not proven.
    pub claimed: Option<SupiOrSuci>,
    /// PEI from SECURITY MODE COMPLETE.
    pub pei: Option<Pei>,
    /// Current 5G-GUTI.
    pub guti: Option<FiveGGuti>,
    /// Previous 5G-GUTI, valid until the UE confirms the new one (TS 24.501 5.3.3).
    pub old_guti: Option<FiveGGuti>,
    pub rm: RmState,
    /// The security context in use; `None` before the first security mode control.
    pub security: Option<SecurityContext>,
    /// In place of the context in use: the one of a document that may be outdated. It recognises the UE, and is used for nothing else;
    /// the UE is authenticated before it gets service.
    pub outdated: Option<Box<SecurityContext>>,
    /// Besides: the context of a SECURITY MODE COMMAND that had no answer when its procedure was aborted, or its process ended. The UE has
    /// taken it into use if it received the command (TS 24.501 5.4.2.3).
    pub offered: Option<Box<SecurityContext>>,
    /// UE security capability as last received; also set before there is a security context.
    pub capability: Option<UeSecurityCapability>,
    /// Uplink NAS COUNT from which K_gNB of the current connection is derived (TS 33.501 A.9).
    pub k_gnb_count: pith_nas::NasCount,
    /// Its NG connection; `None` in CM-IDLE (TS 23.501 5.3.3.2.2).
    pub connection: Option<Key>,
    /// Parameters of the INITIAL UE MESSAGE that opened the connection.
    pub initial: Initial,
    /// Its re-allocation to or from another AMF, while it registers.
    pub reallocation: Option<Box<super::reallocation::Reallocation>>,
    /// Last known location.
    pub location: Option<UserLocation>,
    /// Registration area sent to the UE.
    pub registration_area: Vec<Tai>,
    /// UE radio capability received from a gNB, for the next gNB.
    pub radio_capability: Option<Bytes>,
    /// Whether its radio capabilities suffice for IMS voice.
    pub voice: super::procedure::voice_match::VoiceMatch,
    /// DRX and MICO mode, and the priority of its paging.
    pub reachability: Reachability,
    /// Mobility restrictions; `None` if there are none, and UE and gNB know that.
    pub restrictions: Option<Box<super::restrictions::Restrictions>>,
    /// The trace; `None` if there is none, and no gNB has one.
    pub trace: Option<Box<super::trace::UeTrace>>,
    /// Emergency registration and session.
    pub emergency: super::emergency::Emergency,
    /// Subscription data from the UDM.
    pub subscription: Option<Box<Subscription>>,
    /// URI of the subscription to changes of these data (Nudm_SDM).
    pub sdm_subscription: Option<Uri>,
    /// Whether this AMF is registered as the UE's serving AMF in the UDM (Nudm_UECM).
    pub registered_in_udm: bool,
    /// The network whose GUAMI that registration has, if it is not the AMF's first one.
    pub udm_plmn: Option<Plmn>,
    /// Allowed and rejected slices.
    pub slices: Slices,
    /// Whether the UE takes the Extended rejected NSSAI IE instead of the Rejected NSSAI IE (TS 24.501 4.6.2.1, ER-NSSAI).
    pub takes_extended_rejection: bool,
    /// The slices that the UE may request have changed: it gets a Configured NSSAI, until it has confirmed that (TS 23.501 5.15.4.2).
    pub owes_configured_nssai: bool,
    /// The AM policy association.
    pub policy: Option<AmPolicy>,
    /// That of the AMF from which the context came, until this AMF has read its policy.
    pub transferred_policy: Option<Box<TransferredPolicy>>,
    /// PDU sessions, at most 15.
    pub sessions: Vec<PduSession>,
    /// N1 and N2 messages queued until the UE is reachable.
    pub undelivered: Vec<super::delivery::Undelivered>,
    /// Plain NAS messages that the gNB has returned because of a handover, which are sent again after it.
    pub returned: Vec<Vec<u8>>,
    /// What belongs to the request in progress, beside the state of its procedure.
    pub in_progress: Option<Box<super::in_progress::InProgress>>,
    /// The 5GMM procedure in progress; one at a time.
    pub procedure: Procedure,
    /// The handover in progress; it runs beside the 5GMM procedure.
    pub mobility: Mobility,
    /// The handover to another AMF that this one has withdrawn a short time ago, while [`Timer::WithdrawnHandover`] runs.
    pub withdrawn: Option<Box<Withdrawn>>,
    /// Keys of the access stratum.
    pub access_keys: AccessKeys,
    /// The AMF from which the UE is being handed over. The context is in no document, and its sessions are that AMF's.
    pub arrival: Option<Box<Arrival>>,
    /// Start of the current registration.
    pub since: DateTime,
    /// When the UE was last authenticated because of its NAS COUNTs.
    pub reauthenticated: Option<DateTime>,
    /// The AMF that has received the context, if the UE has not returned since.
    pub transferred_to: Option<Owner>,
    /// The security context is deleted when the registration ends.
    pub discards_security: bool,
    /// Its entry in the list of unauthenticated UEs.
    pub half_open: Option<EntryId>,
    /// The pending Nudm_SDM_Subscribe, or the Nudm_UECM_Registration of a UE that another AMF has handed over; no procedure waits for its reply.
    pub sdm_call: Option<CallId>,
    /// The pending Nudm_SDM_Get for changed subscription data.
    pub refresh_call: Option<CallId>,
    /// Its running timers, with their deadlines.
    pub(super) timers: Vec<(Timer, DateTime)>,
    /// Number of the last call.
    pub(super) calls: u32,
    /// What the current step releases at other NFs.
    pub released: Option<Box<Released>>,
    /// Sessions that the current step releases at their SMFs, while the UE goes on.
    pub released_sessions: Vec<PduSession>,
    /// While contexts are not stored: the lowest downlink NAS COUNT that its document does not reserve. Messages from that one on are
    /// not sent: if the process ended now, the next one would use their COUNTs again.
    pub counts_end: Option<u32>,
    /// A gNB or an SMF gets in this turn what the stored document may lack, such as a user plane, or the answer that a session has ended: it is
    /// stored also in a transaction, or the next process would not know what to deactivate, or would have the session still.
    pub must_store: bool,
    /// Another AMF, or a former context, loses the UE in this turn: it is stored before anything is sent, also with `soft`.
    pub must_store_at_once: bool,
    /// UE-AMBR or RFSP index have changed since HANDOVER REQUEST.
    pub modifies_target: bool,
    /// The network that the source gNB has selected for the target of an N2 handover, if it is not the UE's: until HANDOVER REQUEST.
    pub target_plmn: Option<Plmn>,
}

/// Resources at other NFs that are being released.
pub(crate) struct Released {
    /// The context that has them.
    pub document: Document,
    /// Where user planes among them may be active.
    pub leaves: Option<LeftGnb>,
}

/// A gNB to which UPFs may send packets of a UE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeftGnb {
    /// That Global RAN Node ID.
    Named(Arc<str>),
    /// Any gNB.
    Unknown,
}

/// Registration management state (TS 23.501 5.3.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RmState {
    /// RM-DEREGISTERED.
    Deregistered,
    /// RM-REGISTERED.
    Registered,
}

/// An AM policy association and its policy (TS 29.507).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AmPolicy {
    pub uri: Uri,
    /// Index to RAT/Frequency Selection Priority, 1 to 256, if the PCF sets one.
    pub rfsp: Option<u16>,
    /// UE-AMBR, if the PCF sets one.
    pub ue_ambr: Option<Ambr>,
}

/// An AM policy association of the AMF from which the UE's context came (TS 23.502 4.2.2.2.2 step 15).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TransferredPolicy {
    pub uri: Uri,
    /// Whether that AMF was notified that this one takes it: before, it is that AMF's.
    pub is_taken: bool,
}

/// Identifies one SBI call of a UE: the step of its [`Tag`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallId(pub u32);

pack_enum!(RmState { 0 => Deregistered, 1 => Registered });
pack_struct!(AmPolicy { uri, rfsp, ue_ambr });
pack_struct!(TransferredPolicy { uri, is_taken });

impl Pack for CallId {
    fn pack(&self, writer: &mut Writer<'_>) {
        self.0.pack(writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        u32::unpack(reader).map(Self)
    }
}

/// The host of a gNB. Connections of a gNB that is not connected are closed without an answer of the gNB, so the address
/// of those does not matter.
pub(crate) fn host_of(gnbs: &Gnbs, gnb: Option<GnbHandle>) -> IpAddr {
    let info = gnb.and_then(|gnb| gnbs.get(&gnb));
    info.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |info| info.host)
}

/// State that all UEs of a shard share.
pub(crate) struct Shared {
    pub config: AmfConfig,
    pub gnbs: Gnbs,
    pub connections: Connections,
    /// Contexts by the ids in references.
    pub ids: ContextIds,
    /// Indexes from UE identities to contexts.
    pub index: Index,
    pub rng: Rng,
    /// References in callback URIs.
    pub references: References,
    /// Unauthenticated UEs.
    pub half_open: PendingTable,
    /// Actions on other UEs' contexts, deferred to the end of the step.
    pub after: Vec<DeferredAction>,
    /// Contexts are stored.
    pub stores_ues: bool,
    /// Contexts are not stored at present: UEs that are not registered are rejected.
    pub refuses_new: bool,
}

/// What a step on a UE may use in addition to the UE's own context.
pub(crate) struct Env<'a> {
    pub now: Instant,
    pub config: &'a AmfConfig,
    pub gnbs: &'a mut Gnbs,
    pub connections: &'a mut Connections,
    /// Names of contexts.
    pub ids: &'a mut ContextIds,
    /// Indexes from UE identities to contexts.
    pub index: &'a mut Index,
    pub rng: &'a mut Rng,
    /// References in callback URIs.
    pub references: &'a References,
    /// Unauthenticated UEs.
    pub half_open: &'a mut PendingTable,
    /// Effects of the step.
    pub out: &'a mut Outbox,
    /// Actions on other UEs' contexts, deferred to the end of the step.
    pub after: &'a mut Vec<DeferredAction>,
    /// UEs that are not registered are rejected, because contexts are not stored at present.
    pub refuses_new: bool,
    /// Number of UE contexts.
    pub ues: usize,
    /// Contexts are stored.
    pub stores_ues: bool,
}

impl Shared {
    /// The environment of one step.
    pub fn env<'a>(&'a mut self, now: Instant, ues: usize, out: &'a mut Outbox) -> Env<'a> {
        Env {
            now,
            config: &self.config,
            gnbs: &mut self.gnbs,
            connections: &mut self.connections,
            ids: &mut self.ids,
            index: &mut self.index,
            rng: &mut self.rng,
            references: &self.references,
            half_open: &mut self.half_open,
            out,
            after: &mut self.after,
            refuses_new: self.refuses_new,
            ues,
            stores_ues: self.stores_ues,
        }
    }
}

/// An action on another UE's context, deferred until the step has released its own UE's context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeferredAction {
    /// `new` belongs to the same subscriber as `old`: `new` takes the sessions over, and `old` is deleted.
    Supersede { new: Key, old: Key },
    /// The gNB has too many connections to release: this connection is treated as released.
    Close(Key),
}

impl UeContext {
    /// A new context without an identity.
    pub fn new((key, id): (Key, ContextId), since: DateTime) -> Self {
        Self {
            key,
            id,
            supi: None,
            claimed: None,
            pei: None,
            guti: None,
            old_guti: None,
            rm: RmState::Deregistered,
            security: None,
            outdated: None,
            offered: None,
            capability: None,
            k_gnb_count: pith_nas::NasCount::ZERO,
            connection: None,
            initial: Initial::default(),
            reallocation: None,
            location: None,
            registration_area: Vec::new(),
            radio_capability: None,
            voice: Default::default(),
            reachability: Reachability::default(),
            restrictions: None,
            trace: None,
            emergency: Default::default(),
            subscription: None,
            sdm_subscription: None,
            registered_in_udm: false,
            udm_plmn: None,
            slices: Slices::default(),
            takes_extended_rejection: false,
            owes_configured_nssai: false,
            policy: None,
            transferred_policy: None,
            sessions: Vec::new(),
            undelivered: Vec::new(),
            returned: Vec::new(),
            procedure: Procedure::Idle,
            in_progress: None,
            mobility: Mobility::Idle,
            withdrawn: None,
            access_keys: AccessKeys::default(),
            arrival: None,
            since,
            reauthenticated: None,
            transferred_to: None,
            discards_security: false,
            half_open: None,
            sdm_call: None,
            refresh_call: None,
            timers: Vec::new(),
            calls: 0,
            released: None,
            released_sessions: Vec::new(),
            counts_end: None,
            must_store: false,
            must_store_at_once: false,
            modifies_target: false,
            target_plmn: None,
        }
    }

    /// Whether a UPF may send packets of one of the sessions to a gNB.
    pub fn may_have_user_plane(&self) -> bool {
        self.sessions.iter().any(PduSession::may_have_user_plane)
    }

    /// The gNB at which its user planes may be active.
    pub fn left_gnb(&self, env: &Env<'_>) -> LeftGnb {
        let connection = self.connection.and_then(|key| env.connections.get(key));
        let name = connection.and_then(|connection| env.gnbs.gnb_name(connection.gnb));
        name.map_or(LeftGnb::Unknown, |name| LeftGnb::Named(name.into()))
    }

    /// Keeps the context of a SECURITY MODE COMMAND whose procedure ends without an answer: a registered UE may have taken it into use.
    pub(super) fn note_offered(&mut self, context: SecurityContext) {
        self.offered = self.is_registered().then(|| Box::new(context));
    }

    /// Verifies an initial message with the context in use, or with the one that was offered, which it takes into use then.
    pub(super) fn verify_initial(&mut self, pdu: &[u8]) -> Option<Unprotected> {
        if let Some(checked) = self.security.as_mut().and_then(|security| security.nas.unprotect(pdu).ok()) {
            // The UE has not got the command.
            self.offered = None;
            return Some(checked);
        }
        let offered = self.offered.as_mut().filter(|offered| !offered.is_outdated())?;
        let checked = offered.nas.unprotect(pdu).ok()?;
        self.security = self.offered.take().map(|offered| *offered);
        if self.outdated.take().is_some() {
            // A repeated message may have told it: no SMF knows it.
            self.location = None;
        }
        Some(checked)
    }

    /// Whether an outdated context verifies an initial message: the one that was in use, or the one that was offered.
    pub(super) fn recognise_outdated(&mut self, pdu: &[u8]) -> bool {
        if self.outdated.as_mut().is_some_and(|outdated| outdated.recognise(pdu).is_some()) {
            return true;
        }
        let offered = self.offered.as_mut().filter(|offered| offered.is_outdated());
        if offered.is_none_or(|offered| offered.recognise(pdu).is_none()) {
            return false;
        }
        self.outdated = self.offered.take();
        self.security = None;
        true
    }

    pub fn is_registered(&self) -> bool {
        self.rm == RmState::Registered
    }

    /// The UE counts as an unauthenticated one no longer.
    pub fn leave_half_open(&mut self, env: &mut Env<'_>) {
        if let Some(place) = self.half_open.take() {
            env.half_open.remove(place);
        }
    }

    /// Whether a request of the UE to another NF is pending: its transaction is not over.
    pub fn is_in_transaction(&self) -> bool {
        self.procedure.awaits_nf()
            || self.mobility.awaits_nf()
            || self.sessions.iter().any(|session| !session.calls.is_empty())
    }

    /// Whether the context can be deleted: not registered, no procedure in progress, and no handover from another AMF.
    pub fn is_over(&self) -> bool {
        !self.is_registered() && matches!(self.procedure, Procedure::Idle) && self.arrival.is_none()
    }

    /// Whether another AMF has handed the UE over, and it has not registered here since: it has neither a registration area of this AMF nor a
    /// subscription that the UDM has sent. An emergency registration needs no more.
    pub fn lacks_registration(&self) -> bool {
        let is_provisional = self.subscription.as_ref().is_some_and(|it| it.dnns.is_empty());
        let is_known = !self.registration_area.is_empty() || self.sdm_subscription.is_some();
        self.is_registered() && is_provisional && !is_known
    }

    /// Whether that AMF is handing the UE over to this one.
    pub fn arrives_from(&self, amf: Caller) -> bool {
        self.arrival.as_ref().is_some_and(|arrival| arrival.admits(amf))
    }

    /// Requests of other NFs that are not answered yet.
    pub fn replies_owed(&self) -> usize {
        self.arrival.as_ref().map_or(0, |arrival| arrival.replies_owed())
    }

    /// The UE's name in logs: its masked SUPI, or its key.
    pub fn name(&self) -> String {
        match (&self.supi, &self.claimed) {
            (Some(supi), _) | (None, Some(SupiOrSuci::Supi(supi))) => supi.masked(),
            // `Debug` of a SUCI hides the scheme output; scheme and key id remain.
            (None, Some(SupiOrSuci::Suci(suci))) => {
                suci.null_scheme_supi().map_or_else(|| format!("{suci:?}"), |supi| supi.masked())
            }
            (None, None) => format!("ue-{}", self.key.index()),
        }
    }

    pub fn session(&self, id: u8) -> Option<&PduSession> {
        self.sessions.iter().find(|session| session.id == id)
    }

    pub fn session_mut(&mut self, id: u8) -> Option<&mut PduSession> {
        self.sessions.iter_mut().find(|session| session.id == id)
    }

    /// Starts or restarts a timer.
    pub fn start(&mut self, env: &mut Env<'_>, timer: Timer, after: Duration) {
        let deadline = env.config.identity.date_time(env.now + after);
        match self.timers.iter_mut().find(|(running, _)| *running == timer) {
            Some((_, until)) => *until = deadline,
            None => self.timers.push((timer, deadline)),
        }
        env.out.start(self.key.to_u64(), timer, after);
    }

    /// Stops a timer if it runs.
    pub fn stop(&mut self, env: &mut Env<'_>, timer: Timer) {
        if self.take_expired(timer) {
            env.out.stop(self.key.to_u64(), timer);
        }
    }

    /// Stops all timers.
    pub fn stop_all(&mut self, env: &mut Env<'_>) {
        for (timer, _) in self.timers.drain(..) {
            env.out.stop(self.key.to_u64(), timer);
        }
    }

    /// Removes an expired timer; `true` if it was running.
    pub fn take_expired(&mut self, timer: Timer) -> bool {
        let running = self.timers.len();
        self.timers.retain(|(other, _)| *other != timer);
        self.timers.len() < running
    }

    /// Whether a timer runs.
    pub fn runs(&self, timer: Timer) -> bool {
        self.timers.iter().any(|(running, _)| *running == timer)
    }

    /// The running timers, with their deadlines.
    pub fn timers(&self) -> &[(Timer, DateTime)] {
        &self.timers
    }

    /// Sends a request to another NF on behalf of the UE; the reply has the returned call id.
    pub fn call(&mut self, env: &mut Env<'_>, target: Target, request: impl Into<Request>) -> CallId {
        let CallId(step) = self.next_number();
        env.out.call(Tag::new(self.key.to_u64(), step), target, request.into());
        CallId(step)
    }

    /// A call id that this UE has not used before.
    pub fn next_number(&mut self) -> CallId {
        self.calls = self.calls.wrapping_add(1);
        CallId(self.calls)
    }

    /// Whether a downlink message would reach the UE: CM-CONNECTED, the connection is not being released, and its gNB is connected.
    pub fn is_reachable(&self, env: &Env<'_>) -> bool {
        let connection = self.connection.and_then(|key| env.connections.get(key));
        connection.is_some_and(|connection| {
            connection.context != RanContext::Releasing && env.gnbs.contains_key(&connection.gnb)
        })
    }

    /// Whether the gNB has a UE context, or is getting one.
    pub fn has_ran_context(&self, env: &Env<'_>) -> bool {
        let connection = self.connection.and_then(|key| env.connections.get(key));
        connection.is_some_and(|connection| connection.context != RanContext::Absent)
    }

    /// Whether the UE is CM-CONNECTED at a gNB of a former run that may return.
    pub fn awaits_gnb(&self, env: &Env<'_>) -> bool {
        let connection = self.connection.and_then(|key| env.connections.get(key));
        connection.is_some_and(|connection| {
            connection.context != RanContext::Releasing && !env.gnbs.contains_key(&connection.gnb)
        })
    }

    pub fn ng<'e>(&self, env: &'e mut Env<'_>) -> Option<&'e mut NgConnection> {
        env.connections.get_mut(self.connection?)
    }

    /// Logs the outcome of a procedure for the operator.
    pub fn log_outcome(
        &self,
        env: &mut Env<'_>,
        level: Level,
        procedure: &'static str,
        outcome: &'static str,
    ) {
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
        policy.or_else(|| self.subscription.as_ref()?.rfsp).filter(|rfsp| RFSP.contains(rfsp))
    }
}

/// The tag of calls without a UE: their replies are ignored.
pub(super) const IGNORED_REPLY: Tag = Tag::new(u64::MAX, 0);

/// Values of an RFSP index (TS 38.413 9.3.1.61). PCF and UDM may send others.
pub(super) const RFSP: std::ops::RangeInclusive<u16> = 1..=256;

impl Env<'_> {
    /// Whether the UE is in a tracking area that the AMF serves, and its gNB: a gNB speaks for its own areas only.
    pub(super) fn is_in_served_area(&self, ue: &UeContext) -> bool {
        let Some(tai) = ue.location.map(|location| location.tai) else { return false };
        let gnb = ue.connection.and_then(|key| self.connections.get(key)).map(|connection| connection.gnb);
        self.config.tais.contains(&tai) && gnb.is_none_or(|gnb| self.gnbs.serves(gnb, &tai))
    }

    /// The time, and the offset of local time then, if that is configured.
    pub(super) fn local_time(&self) -> Option<(DateTime, time_zone::Offset)> {
        let now = self.config.identity.date_time(self.now);
        Some((now, self.config.local_time?.at(now)))
    }

    /// The time zone of UEs, for other NFs.
    pub fn ue_time_zone(&self) -> Option<Arc<str>> {
        self.local_time().map(|(_, offset)| offset.text().into())
    }

    /// Sends a request whose reply is ignored, such as the deletion of a resource.
    pub fn call_without_reply(&mut self, target: Target, request: impl Into<Request>) {
        self.out.call(IGNORED_REPLY, target, request.into());
    }
}
