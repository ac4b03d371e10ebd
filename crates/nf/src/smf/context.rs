//! The SM context of one PDU session (TS 29.502 5.2.1).
//!
//! A context is plain data. Three identifiers in it are valid in this process only; a document ([`document`]) replaces them:
//! [`SmContext::key`], which owns the timers and calls; the [`UpfHandle`] of a PFCP association in [`UpfSession`] and in
//! the plans of [`super::selection`]; the caller in a [`PendingReply`].

use crate::kit::document::{Document, Json, Pack, Reader, UnpackError, Writer, pack_struct};
pub(super) mod document;

use super::config::Network;
use super::env::Env;
use super::flows::SessionFlows;
use super::procedure::establishment::Accept;
use super::procedure::modification::AwaitingModificationComplete;
use super::procedure::subscription_change::SubscriptionChange;
use super::procedure::{self, State};
use super::timers::{SessionTimer, Timers};
use super::tunnels::Tunnels;
use crate::kit::{
    Addressing, Caller, Duration, Key, Level, N4Effect, Owner, PendingReply, Tag, Target, UpfHandle,
};
use pith_nas::GsmCause;
use pith_nas::ie::GprsTimer2;
use pith_ngap::transfer::{SecondaryRatUsage, Tunnel};
use pith_pfcp::Message;
use pith_sbi::common::{AccessType, NfInstanceId, PlmnIdNid, RatType, UserLocation};
use pith_sbi::nsmf_pdusession::SmContextUpdateData;
use pith_sbi::{ApiRoot, Cause, Problem, Request, Uri};
use pith_types::{Ambr, BitRate, ContextId, Dnn, Guami, Pei, Seid, Snssai, Tac, UeIdentity};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// The default QoS flow of a session: that of the default QoS rule.
pub(super) const DEFAULT_QFI: u8 = 1;

/// Updates of a session that may be pending: the AMF and the UE send one or two at a time.
const MAX_PENDING_UPDATES: usize = 8;

/// The SM context of one PDU session.
#[derive(Debug)]
pub(super) struct SmContext {
    /// Its key in the table; timers and calls carry it as their owner.
    pub key: Key,
    /// Its name in references and in its SEID.
    pub id: ContextId,
    /// The subscriber, or the device of an unauthenticated UE.
    pub ue: UeIdentity,
    /// Whether it is an emergency session.
    pub is_emergency: bool,
    /// PDU session identity, 1 to 15.
    pub pdu_session_id: u8,
    /// Its data network.
    pub dnn: Dnn,
    /// Its slice.
    pub snssai: Snssai,
    /// The tracking area in which the UE requested the session.
    pub tac: Option<Tac>,
    /// The AMF that serves the UE.
    pub amf: AmfLink,
    /// The SMF's SEID at the anchor.
    pub seid: Seid,
    /// The IP versions of the PDU session type: those that the UE requests, then those that are selected.
    pub ip: IpVersions,
    /// Whether the UE requests IPv6 addresses of DNS servers.
    pub asks_dns6: bool,
    /// Whether it is an always-on session, until the UE has got the accept; `None` if it does not request that (TS 23.501 5.6.13).
    pub always_on: Option<bool>,
    /// Requests to the gNB.
    pub gnb: GnbRequests,
    /// The UE's addresses, once they are allocated.
    pub address: UeAddress,
    /// Static addresses and framed routes of the subscription, of the session's IP versions.
    pub addressing: Addressing,
    /// Subscribed, then authorised QoS.
    pub qos: Qos,
    /// The subscribed QoS that the PCF knows.
    pub subscribed: Qos,
    /// A change of the subscription that is not complete. It is independent of [`State`].
    pub subscription_change: Option<SubscriptionChange>,
    /// Its QoS flows besides the default one.
    pub flows: SessionFlows,
    /// Whether the UE derives QoS rules, and for how long it has them.
    pub reflective: ReflectiveQos,
    /// The policy association at the PCF.
    pub policy: Option<Uri>,
    /// Whether the SMF is registered for the session in the UDM (Nudm_UECM).
    pub is_registered: bool,
    /// The 5GSM modification procedure in progress. It is independent of [`State`].
    pub modification: Option<AwaitingModificationComplete>,
    /// The session at a UPF that left the path, or that forwards packets between gNBs in a handover. It is deleted when
    /// [`SessionTimer::PathGrace`] expires, so that packets in transit are still forwarded.
    pub draining: Option<UpfSession>,
    /// Sessions at UPFs whose deletion was requested: a former run may not have sent the request.
    pub leaving: Vec<UpfSession>,
    /// The request for the deletion of the session that has left the path.
    pub deletion: Option<CallId>,
    /// Inputs received while the session could not process them.
    pub pending: Pending,
    /// PDU SESSION ESTABLISHMENT ACCEPT of a session whose UPF restarted before the gNB had set it up, until the session is restored.
    pub accept: Option<Accept>,
    /// The target gNB's endpoint of the N3 tunnel, from the preparation of an N2 handover (TS 29.502 5.2.2.3.4) until the next handover, or
    /// until the user plane is deactivated. See [`SmContext::is_switched`].
    pub handover_target: Option<Tunnel>,
    /// Endpoints of secondary gNBs for some flows after that handover, until the path is switched.
    pub handover_additional: Vec<(Tunnel, Vec<u8>)>,
    /// The N3 tunnels beside the primary one (dual connectivity) that the UPF has, or gets with the request in progress.
    pub tunnels: Tunnels,
    /// Data volume over a secondary RAT, as gNBs have reported it.
    pub secondary_rat: SecondaryRatUsage,
    /// The UPF's N3 endpoint that was sent to the target gNB of that handover, until the path is switched.
    pub handover_uplink: Option<Tunnel>,
    /// Whether the gNBs of that handover have a path for packets that the source gNB has not delivered.
    pub forwards_directly: bool,
    /// How often the gNB did not answer, one time after another, that it sends uplink packets to another endpoint.
    pub unanswered_switches: u8,
    /// The PTI of the UE's last request that the SMF has rejected, or accepted as it was.
    pub answered_pti: Option<u8>,
    /// Its running timers.
    pub timers: Timers,
    /// What the session waits for. Set by [`SmContext::step`], and when the session is read from a document.
    state: State,
    calls: u32,
    /// The session is stored at the end of the turn: another NF counts on what the SMF has begun, and does not request it again.
    pub must_store: bool,
    /// What is left of an ended session at other NFs.
    pub document_at_end: Option<Document>,
}

/// Requests to the gNB about the session's resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct GnbRequests {
    /// Modifications that no gNB has answered since the resources were set up.
    pub modifications: u8,
    /// Setups that were refused because of a handover, one after the other.
    pub refused_setups: u8,
    /// A UPF has reported downlink data that it buffers: the UE is paged for a setup.
    pub has_downlink_data: bool,
    /// Flows that the UE has confirmed, and the gNB has not: a bit for each QFI.
    pub unanswered_flows: u64,
    /// Those of the modifications that were requested before the N2 handover in progress: the target gNB does not get them.
    pub before_handover: u8,
}

impl GnbRequests {
    /// Whether the UE has confirmed flows of which the gNB has not answered the request.
    pub(super) const fn has_unanswered_flows(&self) -> bool {
        self.unanswered_flows != 0
    }

    /// The gNB has answered a modification, and named these flows. If it was the last one, nothing is open.
    pub(super) fn note_flows_answered(&mut self, is_named: impl Fn(u8) -> bool) {
        let named = (0..64_u8).filter(|qfi| is_named(*qfi)).fold(0, |bits, qfi| bits | 1 << qfi);
        self.unanswered_flows &= if self.modifications == 0 { 0 } else { !named };
    }

    /// A modification is requested.
    pub(super) const fn note_modification(&mut self) {
        self.modifications = self.modifications.saturating_add(1);
    }

    /// The gNB answers a modification; returns whether it was requested.
    pub(super) const fn take_answer(&mut self) -> bool {
        let is_requested = self.modifications > 0;
        self.modifications = self.modifications.saturating_sub(1);
        self.before_handover = self.before_handover.saturating_sub(1);
        is_requested
    }

    /// The AMF has refused the last modification: no gNB answers it.
    pub(super) fn withdraw_modification(&mut self) {
        self.modifications = self.modifications.saturating_sub(1);
        self.before_handover = self.before_handover.min(self.modifications);
    }

    /// An N2 handover begins. The AMF queues what the SMF requests from now on until the handover is over.
    pub(super) const fn note_handover(&mut self) {
        self.before_handover = self.modifications;
    }

    /// The UE is at the target gNB of an N2 handover, which gets what the AMF has queued. The source gNB answers nothing any longer.
    pub(super) fn at_target(self) -> Self {
        let modifications = self.modifications.saturating_sub(self.before_handover);
        Self { modifications, ..Self::default() }
    }
}

/// Inputs received while the session was being established or changed. [`procedure::resume_pending`] processes them when
/// the session is [`State::Established`], in the order of these fields.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Updates of the AMF, the oldest first.
    pub updates: Vec<(PendingReply, SmContextUpdateData)>,
    /// UDM or PCF ended the session; the cause for the UE.
    pub release: Option<GsmCause>,
    /// The gNB's endpoint of a tunnel for which the gNB sent an Error Indication.
    pub lost_tunnel: Option<Tunnel>,
    /// The QoS of the PCF's last decision.
    pub qos: Option<Qos>,
    /// A UPF reported downlink data for an idle UE. The UPF reports only the first packet.
    pub downlink_data: bool,
}

/// The user plane of a session: its UPFs, and the tunnel endpoints that UPF and gNB have of each other.
#[derive(Debug, Clone)]
pub(super) struct UserPlane {
    /// The session at the PDU session anchor.
    pub anchor: UpfSession,
    /// The session at the UPF between gNB and anchor, where there is one.
    pub front: Option<FrontUpf>,
    /// The gNB's endpoint of the N3 tunnel, while the user plane is activated (TS 23.501 5.6.8).
    pub gnb: Option<Tunnel>,
    /// The UPF's N3 endpoint that was last sent to the gNB; `None` if the SMF does not know whether the gNB uses it.
    pub gnb_uplink: Option<Tunnel>,
}

impl UserPlane {
    /// A user plane with one UPF, and no gNB yet.
    pub(super) const fn of_anchor(anchor: UpfSession) -> Self {
        Self { anchor, front: None, gnb: None, gnb_uplink: None }
    }

    /// The sessions at its UPFs.
    pub(super) fn upf_sessions(&self) -> impl Iterator<Item = UpfSession> + use<> {
        let front = self.front.as_ref().map(|front| front.session);
        [Some(self.anchor), front].into_iter().flatten()
    }

    /// The session at the UPF that terminates N3.
    pub(super) fn n3_session(&self) -> UpfSession {
        self.front.as_ref().map_or(self.anchor, |front| front.session)
    }

    /// The session at the UPF whose endpoint of the N9 tunnel is among these.
    pub(super) fn session_of_n9_endpoint(&self, tunnels: &[Tunnel]) -> Option<UpfSession> {
        let front = self.front.as_ref()?;
        let ends = [(front.n9, front.session), (self.anchor.tunnel, self.anchor)];
        ends.into_iter().find(|(end, _)| tunnels.contains(end)).map(|(_, session)| session)
    }

    /// Records that the UPF's N3 endpoint is sent to the gNB.
    pub(super) fn note_uplink_sent_to_gnb(&mut self) {
        self.gnb_uplink = Some(self.n3_session().tunnel);
    }

    /// Whether it has a UPF between gNB and anchor that can be removed: the gNB reaches the anchor without it.
    pub(super) fn has_removable_front(&self) -> bool {
        self.front.as_ref().is_some_and(|front| !front.is_needed)
    }
}

/// The IP versions of a PDU session type; none if the UE leaves the type to the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(super) struct IpVersions {
    pub v4: bool,
    pub v6: bool,
}

impl IpVersions {
    pub(super) const NONE: Self = Self { v4: false, v6: false };
    pub(super) const V4: Self = Self { v4: true, v6: false };
    pub(super) const V6: Self = Self { v4: false, v6: true };
    pub(super) const BOTH: Self = Self { v4: true, v6: true };

    /// The versions of one of them.
    pub(super) const fn or(self, other: Self) -> Self {
        Self { v4: self.v4 || other.v4, v6: self.v6 || other.v6 }
    }

    /// The versions of both.
    pub(super) const fn and(self, other: Self) -> Self {
        Self { v4: self.v4 && other.v4, v6: self.v6 && other.v6 }
    }
}

/// The UE's addresses in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct UeAddress {
    /// Its IPv4 address.
    pub v4: Option<Ipv4Addr>,
    /// Its IPv6 prefix of 64 bits; the lower half is zero.
    pub v6: Option<Ipv6Addr>,
    /// Bits of prefix delegation: the session has the prefix of 64 bits less these, which begins with `v6` (TS 23.501 5.8.2.2.4).
    pub delegation: u8,
}

impl UeAddress {
    /// Whether it has none.
    pub(super) const fn is_empty(&self) -> bool {
        self.v4.is_none() && self.v6.is_none()
    }

    /// The addresses, as pools have them.
    pub(super) fn iter(&self) -> impl Iterator<Item = IpAddr> + use<> {
        self.v4.map(IpAddr::V4).into_iter().chain(self.v6.map(IpAddr::V6))
    }

    /// Those for which `is_kept`.
    pub(super) fn filter(&self, is_kept: impl Fn(IpAddr) -> bool) -> Self {
        Self {
            v4: self.v4.filter(|v4| is_kept((*v4).into())),
            v6: self.v6.filter(|v6| is_kept((*v6).into())),
            ..*self
        }
    }

    /// The interface identifier of the UE's link-local address (TS 23.501 5.8.2.2.3). It is the session's own, as it is that of the
    /// prefix, and never that of the UPF, 1.
    pub(super) fn interface_id(&self) -> Option<[u8; 8]> {
        self.v6.map(|prefix| ((prefix.to_bits() >> 64) as u64).to_be_bytes())
    }

    /// The session's whole IPv6 prefix as a string (TS 29.571 5.2.2, Ipv6Prefix).
    pub(super) fn prefix(&self) -> Option<Arc<str>> {
        self.v6.map(|prefix| format!("{prefix}/{}", 64_u8.saturating_sub(self.delegation)).into())
    }
}

/// The AMF that serves the UE, and its URIs.
#[derive(Debug, Clone)]
pub(super) struct AmfLink {
    pub instance: NfInstanceId,
    /// The URI to which the SMF sends SMContextStatusNotify.
    pub status_uri: Uri,
    /// The root of the AMF's services: that of the status URI.
    pub root: Arc<ApiRoot>,
    /// The NF that created the session: only it may change the session.
    pub owner: Owner,
    /// The AMF that prepares a handover of the UE from that one (TS 29.502 5.2.2.3.4.2).
    pub handover_target: Option<Owner>,
}

impl AmfLink {
    /// Whether the caller prepares a handover of the UE.
    pub fn is_handover_target(&self, from: Caller) -> bool {
        self.handover_target.is_some_and(|target| check(target, from).is_ok())
    }

    /// Refuses a caller that does not complete a handover: if an AMF prepares one, only that may (TS 23.502 4.9.1.3.3 step 7).
    pub fn check_completion(&self, from: Caller) -> Result<(), Box<Problem>> {
        check(self.handover_target.unwrap_or(self.owner), from)
    }

    /// Refuses a caller that is not this AMF.
    pub fn check(&self, from: Caller) -> Result<(), Box<Problem>> {
        check(self.owner, from)
    }
}

/// As [`Owner::check`]. The AMF of the SMF's process is no exception: an AMF in another process may have taken the UE over from it. (If that one's
/// UEs come to this process by a take-over, their AMF must name itself first.)
fn check(owner: Owner, from: Caller) -> Result<(), Box<Problem>> {
    match (owner, Owner::of(from)) {
        (Owner::Client(_), Owner::Process) => {
            Err(Problem::of_status(403).detail("the session is another AMF's").into())
        }
        (owner, _) => owner.check(from),
    }
}

/// The UE's access, as the AMF reports it to the SMF (TS 29.502 6.1.6.2.2), and the SMF to the PCF (TS 29.512 5.6.2.3).
#[derive(Debug, Clone)]
pub(super) struct Access {
    pub kind: AccessType,
    pub rat_type: Option<RatType>,
    pub serving_network: PlmnIdNid,
    pub location: Option<UserLocation>,
    pub time_zone: Option<Arc<str>>,
    pub pei: Option<Pei>,
    pub gpsi: Option<Arc<str>>,
    pub guami: Option<Guami>,
}

/// The session at one UPF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UpfSession {
    pub upf: UpfHandle,
    pub seid: Seid,
    /// The UPF's endpoint for uplink packets.
    pub tunnel: Tunnel,
}

/// The session at the UPF between gNB and anchor: an intermediate UPF (TS 23.502 4.3.2.2.1 step 10), an uplink classifier
/// and local anchor (TS 23.501 5.6.4.2), or both.
#[derive(Debug, Clone)]
pub(super) struct FrontUpf {
    pub session: UpfSession,
    /// The UPF's endpoint for downlink packets from the anchor.
    pub n9: Tunnel,
    /// Whether the gNB reaches the anchor only through this UPF.
    pub is_needed: bool,
    /// Whether it is to be removed as soon as the UE is connected.
    pub is_ending: bool,
    /// Destinations of local breakout.
    pub destinations: Vec<Network>,
}

impl FrontUpf {
    /// The destinations of local breakout, as text.
    pub(super) fn breakouts(&self) -> Vec<String> {
        self.destinations.iter().map(|(address, prefix)| format!("{address}/{prefix}")).collect()
    }
}

/// Subscribed, then authorised QoS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Qos {
    pub ambr: Ambr,
    pub five_qi: u8,
    pub arp_priority: u8,
}

/// Reflective QoS of a session (TS 23.501 5.7.5): the UE derives QoS rules from downlink packets with the RQI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ReflectiveQos {
    /// Whether the UE supports it, and has not revoked that (TS 24.501 6.4.1.2, 6.4.2.2).
    pub is_supported: bool,
    /// The RQ timer in seconds: that of the PCF, or of the configuration.
    pub timer: Option<u32>,
    /// The PTI of the request by which the UE has revoked its support, until it has answered the command (TS 24.501 6.4.2.2).
    pub revocation: Option<u8>,
    /// The PCF has not answered the report of the revocation.
    pub awaits_pcf: bool,
    /// The SMF has restarted since, or the AMF has refused the command for some time: it sends the command, and the report, again.
    pub is_interrupted: bool,
}

impl ReflectiveQos {
    /// After a restart: what the UE and the PCF have not answered was possibly not sent.
    pub(super) const fn restarted(self) -> Self {
        Self { is_interrupted: self.revocation.is_some() || self.awaits_pcf, ..self }
    }

    /// The RQ timer for the UE; it has a default one if there is none here (TS 24.501 6.2.5.1.4.3).
    pub(super) fn rq_timer(self) -> Option<GprsTimer2> {
        // A timer of 0 would end each rule at once.
        let seconds = self.timer.filter(|_| self.is_supported)?.max(1);
        Some(GprsTimer2::at_least(std::time::Duration::from_secs(seconds.into())))
    }
}

impl Qos {
    /// The QoS until the subscription data are known.
    pub(super) const UNKNOWN: Self = Self {
        ambr: Ambr { uplink: BitRate::mbps(1), downlink: BitRate::mbps(1) },
        five_qi: 9,
        arp_priority: 15,
    };
}

/// Identifies a call, or a request to a UPF, of a session: the step in its [`Tag`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallId(pub u32);

/// This bit of a [`CallId`] says that the call requests the AMF to page the UE: no state waits for its reply, which may be a refusal.
const PAGING: u32 = 1 << 31;

/// This bit says that the call reports an event to the PCF: a decision in its reply is applied in any state.
const REPORT: u32 = 1 << 30;

/// This bit says that the call sends the UE the command that answers its revocation of reflective QoS: no state waits for its reply, which may be
/// a refusal.
const REVOCATION: u32 = 1 << 29;

impl CallId {
    /// Whether the call answers the UE's revocation of reflective QoS.
    pub(super) const fn answers_revocation(self) -> bool {
        self.0 & REVOCATION != 0
    }

    /// Whether the call reports an event to the PCF.
    pub(super) const fn reports_to_pcf(self) -> bool {
        self.0 & REPORT != 0
    }

    /// Whether the call requests the AMF to page the UE for downlink data.
    pub(super) const fn requests_paging(self) -> bool {
        self.0 & PAGING != 0
    }
}

/// This bit of the refused setups, of which there are few, says that the UPF has downlink data.
const DOWNLINK_DATA: u8 = 0x80;

/// This one says that it has not. Earlier versions, which paged the UE in any case, wrote neither.
const NO_DOWNLINK_DATA: u8 = 0x40;

/// Without the unanswered flows, and the modifications before a handover, which are in sections of their own.
impl Pack for GnbRequests {
    fn pack(&self, writer: &mut Writer<'_>) {
        let Self {
            modifications,
            refused_setups,
            has_downlink_data,
            unanswered_flows: _,
            before_handover: _,
        } = self;
        modifications.pack(writer);
        let data = match (refused_setups, has_downlink_data) {
            (_, true) => DOWNLINK_DATA,
            (0, false) => 0,
            (_, false) => NO_DOWNLINK_DATA,
        };
        (refused_setups | data).pack(writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        let (modifications, refused): (u8, u8) = Pack::unpack(reader)?;
        let has_downlink_data =
            refused & DOWNLINK_DATA != 0 || refused != 0 && refused & NO_DOWNLINK_DATA == 0;
        let refused_setups = refused & !(DOWNLINK_DATA | NO_DOWNLINK_DATA);
        Ok(Self { modifications, refused_setups, has_downlink_data, ..Self::default() })
    }
}

pack_struct!(Pending { updates, release, lost_tunnel, qos, downlink_data });
pack_struct!(UserPlane { anchor, front, gnb, gnb_uplink });

/// Without the target of a handover, which is in a section of its own.
impl Pack for AmfLink {
    fn pack(&self, writer: &mut Writer<'_>) {
        let Self { instance, status_uri, root, owner, handover_target: _ } = self;
        instance.pack(writer);
        status_uri.pack(writer);
        root.pack(writer);
        owner.pack(writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        let (instance, status_uri, root, owner) = Pack::unpack(reader)?;
        Ok(Self { instance, status_uri, root, owner, handover_target: None })
    }
}
pack_struct!(UpfSession { upf, seid, tunnel });
pack_struct!(FrontUpf { session, n9, is_needed, is_ending, destinations });
pack_struct!(Qos { ambr, five_qi, arp_priority });
pack_struct!(ReflectiveQos { is_supported, timer, revocation, awaits_pcf, is_interrupted });

impl Pack for CallId {
    fn pack(&self, writer: &mut Writer<'_>) {
        self.0.pack(writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        u32::unpack(reader).map(Self)
    }
}

/// The access of a session that is being established, as JSON: its parts are SBI data types.
impl Pack for Access {
    fn pack(&self, writer: &mut Writer<'_>) {
        let Self { kind, rat_type, serving_network, location, time_zone, pei, gpsi, guami } = self;
        Json::pack(&(kind, rat_type, serving_network, location, time_zone, pei, gpsi, guami), writer);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, UnpackError> {
        let (kind, rat_type, serving_network, location, time_zone, pei, gpsi, guami) =
            Json::unpack(reader, "access")?;
        Ok(Self { kind, rat_type, serving_network, location, time_zone, pei, gpsi, guami })
    }
}

impl SmContext {
    /// A new session, of which only the request is known.
    pub(super) fn new(
        (key, id, seid): (Key, ContextId, Seid),
        (ue, pdu_session_id): (UeIdentity, u8),
        (dnn, snssai): (Dnn, Snssai),
        tac: Option<Tac>,
        amf: AmfLink,
    ) -> Self {
        Self {
            key,
            id,
            ue,
            is_emergency: false,
            pdu_session_id,
            dnn,
            snssai,
            tac,
            amf,
            seid,
            ip: IpVersions::V4,
            asks_dns6: false,
            always_on: None,
            gnb: GnbRequests::default(),
            address: UeAddress::default(),
            addressing: Addressing::default(),
            qos: Qos::UNKNOWN,
            subscribed: Qos::UNKNOWN,
            subscription_change: None,
            flows: SessionFlows::default(),
            reflective: ReflectiveQos::default(),
            policy: None,
            is_registered: false,
            modification: None,
            draining: None,
            leaving: Vec::new(),
            deletion: None,
            pending: Pending::default(),
            accept: None,
            handover_target: None,
            handover_additional: Vec::new(),
            tunnels: Tunnels::default(),
            secondary_rat: SecondaryRatUsage::default(),
            handover_uplink: None,
            forwards_directly: false,
            unanswered_switches: 0,
            answered_pti: None,
            timers: Timers::default(),
            state: State::Over,
            calls: 0,
            must_store: false,
            document_at_end: None,
        }
    }

    /// What remains of a session of a former run (see [`procedure::restoration`]): pending replies, calls and timers ended with
    /// that run. Returns whether it has a user plane to restore; if not, the session is to end. `is_late`: the gNB may have got another
    /// endpoint since the document was written.
    pub(super) fn recover(mut self, keeps_tunnels: bool, is_late: bool) -> (Self, bool) {
        let modifies = self.modification.take().is_some();
        let is_unverified = self.timers.runs(SessionTimer::RegistrationCheck);
        let change = self.subscription_change.take().map(SubscriptionChange::restarted);
        self.subscription_change = change.or_else(|| is_unverified.then_some(SubscriptionChange::UNVERIFIED));
        self.reflective = self.reflective.restarted();
        self.leaving.extend(self.draining.take());
        self.deletion = None;
        // A UE whose accept was refused does not have the session. Whether another one has got it is unknown: its gNB answers if it has.
        let accept = self.state.accept().or(self.accept);
        self.accept = accept.filter(|accept| !accept.may_be_delivered());
        let amf_continues = self.amf.owner != Owner::Process;
        // The UE may not have got the command. A change of flows is made again in any case.
        let has_new_rates = (modifies || matches!(self.state, procedure::State::AwaitingRates(_)))
            && self.flows.former.is_none();
        let Pending { release, qos, downlink_data, lost_tunnel, .. } = std::mem::take(&mut self.pending);
        let qos = qos.or_else(|| has_new_rates.then(|| self.qos.clone()));
        // If the UE may be connected, its user plane is still to be activated, and the gNB has still lost its tunnel.
        let may_be_connected = amf_continues || keeps_tunnels;
        let downlink_data = downlink_data && may_be_connected;
        let lost_tunnel = lost_tunnel.filter(|_| keeps_tunnels);
        self.pending = Pending { release, qos, downlink_data, lost_tunnel, ..Pending::default() };
        self.timers = Timers::default();
        let has_address = !self.address.is_empty();
        let state = std::mem::take(&mut self.state);
        if amf_continues && matches!(state, procedure::State::AwaitingReleaseComplete(_)) {
            self.state = state;
            return (self, false);
        }
        let is_switching = is_late || matches!(state, procedure::State::AwaitingUplinkSwitch(_));
        if state.phase() == procedure::Phase::Establishing {
            // The UE repeats its request. If it has the session of an earlier one, its AMF learns that this one has ended.
            self.state = state.into_user_plane().map_or(State::Over, State::established);
            return (self, false);
        }
        match state.into_user_plane().filter(|_| has_address) {
            Some(mut user_plane) => {
                if is_switching {
                    // The gNB may not have got the command.
                    user_plane.gnb_uplink = None;
                }
                let is_active = amf_continues || keeps_tunnels;
                self.state = procedure::restoration::AwaitingRestoration::new(user_plane, is_active).into();
                (self, true)
            }
            None => (self, false),
        }
    }

    /// Runs a step, which consumes the state and returns the next one. Nothing else sets the state of a session in use.
    pub(super) fn step(
        &mut self,
        env: &mut Env<'_>,
        step: impl FnOnce(State, &mut Self, &mut Env<'_>) -> State,
    ) {
        let state = std::mem::take(&mut self.state);
        let next = step(state, self, env);
        self.state = procedure::resume_pending(next, self, env);
        if self.draining.is_some() && self.state.user_plane().is_some_and(|it| it.gnb.is_none()) {
            // A UPF that has left the path still sends to the gNB, which has no tunnel any longer.
            self.stop(env, SessionTimer::PathGrace);
            procedure::branching::on_path_grace(self, env);
        }
    }

    /// Takes the state of a session that was read from a document, outside of a step.
    pub(super) fn take_state(&mut self) -> State {
        std::mem::take(&mut self.state)
    }

    /// Places the state of a session that was read from a document.
    pub(super) fn place_state(&mut self, state: State) {
        self.state = state;
    }

    /// What it waits for.
    pub(super) const fn state(&self) -> &State {
        &self.state
    }

    /// Whether the session waits for a UPF that is to apply a change of which only the AMF knows, as it requested it.
    pub(super) fn is_in_transaction(&self) -> bool {
        let waits = matches!(
            self.state,
            State::AwaitingN4Modification(_)
                | State::AwaitingPathSwitch(_)
                | State::AwaitingFlowMobility(_)
                | State::AwaitingForwardingTunnel(_)
                | State::AwaitingN9Modification(_)
        );
        let is_notified = self.pending.release.is_some()
            || self.pending.qos.is_some()
            || self.subscription_change.as_ref().is_some_and(SubscriptionChange::is_notified);
        waits && !is_notified
    }

    /// Whether an N2 handover is being prepared, or is prepared.
    pub(super) const fn is_handed_over(&self) -> bool {
        self.handover_uplink.is_some()
    }

    /// Whether the path was switched to the target gNB of the last N2 handover.
    pub(super) const fn is_switched(&self) -> bool {
        self.handover_target.is_some() && self.handover_uplink.is_none()
    }

    /// No handover is prepared.
    pub(super) fn forget_handover(&mut self) {
        self.forget_target();
        self.handover_uplink = None;
        self.forwards_directly = false;
        self.amf.handover_target = None;
        (self.flows.refused_by_target, self.flows.at_target) = (0, 0);
        self.gnb.before_handover = 0;
    }

    /// The endpoints of the last N2 handover are no longer valid.
    pub(super) fn forget_target(&mut self) {
        self.handover_target = None;
        self.handover_additional.clear();
    }

    /// QFIs of its QoS flows, without those that the gNB has refused or released.
    pub(super) fn flows(&self) -> Vec<u8> {
        self.flows_at_upf().into_iter().filter(|qfi| !self.flows.is_refused(*qfi)).collect()
    }

    /// QFIs of its QoS flows, with those that are to be removed.
    pub(super) fn flows_at_upf(&self) -> Vec<u8> {
        let of_rules = self.flows.current.flows();
        std::iter::once(DEFAULT_QFI).chain(of_rules.iter().map(|flow| flow.qfi)).collect()
    }

    /// Adds what a gNB reports of a secondary RAT.
    pub(super) fn count_secondary_rat(&mut self, usage: Option<SecondaryRatUsage>) {
        self.secondary_rat = self.secondary_rat.plus(usage.unwrap_or_default());
    }

    /// Whether a gNB's endpoint is that of one of its tunnels.
    pub(super) fn has_tunnel(&self, user_plane: &UserPlane, gnb: Tunnel) -> bool {
        user_plane.gnb == Some(gnb) || (user_plane.gnb.is_some() && self.tunnels.has(gnb))
    }

    /// Number of requests that the session has not answered yet.
    pub(super) fn replies_owed(&self) -> usize {
        self.pending.updates.len() + usize::from(self.state.owes_reply())
    }

    /// Queues an update until the session is established again: a session processes one change at a time.
    pub(super) fn queue_update(&mut self, env: &mut Env<'_>, reply: PendingReply, data: SmContextUpdateData) {
        if self.pending.updates.len() < MAX_PENDING_UPDATES {
            return self.pending.updates.push((reply, data));
        }
        let problem = Problem::new(Cause::InsufficientResources).detail("too many updates at once");
        reply.refuse(problem, env.out);
    }

    /// Calls an operation of another NF. The reply has the returned id.
    pub(super) fn call(&mut self, env: &mut Env<'_>, target: Target, request: impl Into<Request>) -> CallId {
        let tag = self.next_tag();
        env.out.call(tag, target, request.into());
        CallId(tag.step)
    }

    /// Requests the AMF to page the UE for downlink data: the id in the reply says so.
    pub(super) fn request_paging(&mut self, env: &mut Env<'_>, target: Target, request: impl Into<Request>) {
        let tag = self.next_tag();
        env.out.call(Tag::new(tag.owner, tag.step | PAGING), target, request.into());
    }

    /// Reports an event to the PCF: the id in the reply says so.
    pub(super) fn report_to_pcf(&mut self, env: &mut Env<'_>, target: Target, request: impl Into<Request>) {
        let tag = self.next_tag();
        env.out.call(Tag::new(tag.owner, tag.step | REPORT), target, request.into());
    }

    /// Sends the UE the answer to its revocation of reflective QoS: the id in the reply says so.
    pub(super) fn answer_revocation(
        &mut self,
        env: &mut Env<'_>,
        target: Target,
        request: impl Into<Request>,
    ) {
        let tag = self.next_tag();
        env.out.call(Tag::new(tag.owner, tag.step | REVOCATION), target, request.into());
    }

    /// Whether one of its addresses is static.
    pub(super) fn has_static(&self, address: IpAddr) -> bool {
        let prefix = self.addressing.v6.map(|(prefix, _)| prefix.into());
        self.addressing.v4.map(IpAddr::V4) == Some(address) || prefix == Some(address)
    }

    /// Sends a request to a UPF. The response has the returned id.
    pub(super) fn ask_upf(
        &mut self,
        env: &mut Env<'_>,
        upf: UpfHandle,
        seid: Seid,
        message: Message,
    ) -> CallId {
        let tag = self.next_tag();
        env.out.n4(N4Effect::Request { tag, upf, seid, message });
        CallId(tag.step)
    }

    /// The id of a call whose reply does not come.
    pub(super) fn unanswered_call(&mut self) -> CallId {
        CallId(self.next_tag().step)
    }

    fn next_tag(&mut self) -> Tag {
        self.calls = self.calls.wrapping_add(1) & !(PAGING | REPORT | REVOCATION);
        Tag::new(self.key.to_u64(), self.calls)
    }

    /// Starts or restarts one of its timers.
    pub(super) fn start(&mut self, env: &mut Env<'_>, timer: SessionTimer, after: Duration) {
        self.timers.start(timer, env.identity.date_time(env.now + after));
        env.out.start(self.key.to_u64(), timer.into(), after);
    }

    /// Stops one of its timers, if it runs.
    pub(super) fn stop(&mut self, env: &mut Env<'_>, timer: SessionTimer) {
        if self.timers.expire(timer) {
            env.out.stop(self.key.to_u64(), timer.into());
        }
    }

    /// The session at the UPF for which the SMF allocated this SEID.
    pub(super) fn upf_session_of(&self, user_plane: Option<&UserPlane>, seid: Seid) -> Option<UpfSession> {
        if seid == self.seid {
            return user_plane.map(|user_plane| user_plane.anchor);
        }
        if seid == self.forwarding_seid() {
            return self.draining;
        }
        let front = user_plane.and_then(|user_plane| user_plane.front.as_ref());
        front.map(|front| front.session).or(self.draining)
    }

    /// Number of UPFs at which it has a PFCP session.
    pub(super) fn n4_sessions(&self) -> usize {
        let of_path = self.state.user_plane().map_or(0, |user_plane| 1 + user_plane.front.iter().count());
        of_path + self.draining.iter().count()
    }

    /// The SMF's SEID at the front UPF.
    pub(super) const fn front_seid(&self) -> Seid {
        Seid(self.seid.0 | FRONT_SEID)
    }

    /// The SMF's SEID of the tunnel for packets that are forwarded in a handover.
    pub(super) const fn forwarding_seid(&self) -> Seid {
        Seid(self.seid.0 ^ FORWARDING_SEID)
    }

    /// Whether that is one of its SEIDs.
    pub(super) const fn has_seid(&self, seid: Seid) -> bool {
        (self.seid.0 ^ seid.0) & !(FRONT_SEID | FORWARDING_SEID) == 0
    }

    /// Logs an event of this session.
    pub(super) fn log(&self, env: &mut Env<'_>, level: Level, text: impl FnOnce() -> String) {
        env.out.log(level, || format!("{} session {}: {}", self.ue.masked(), self.pdu_session_id, text()));
    }
}

/// This bit distinguishes the SMF's SEID for a session's front UPF from the SEID for its anchor. All other bits are equal.
pub(super) const FRONT_SEID: u64 = 1 << 53;

/// This bit is inverted in the SEID of the tunnel for packets that are forwarded in a handover.
const FORWARDING_SEID: u64 = 1 << 52;
