//! What the SMF knows of one PDU session (SM context, TS 29.502 5.2.1).
//!
//! All of it is data. Three names in it mean something in this process only; a stored context needs others in their place:
//! [`SmContext::key`], which owns the timers and calls; the [`UpfHandle`] of a PFCP association in [`UpfSession`] and in
//! the plans of [`super::selection`]; the caller in a [`PendingReply`].

use super::config::Network;
use super::env::Env;
use super::procedure::modification::AwaitingModificationComplete;
use super::procedure::{self, State};
use super::timers::{SessionTimer, Timers};
use crate::kit::{Duration, Key, Level, N4Effect, Owner, PendingReply, Tag, Target, UpfHandle};
use pith_nas::GsmCause;
use pith_ngap::transfer::Tunnel;
use pith_pfcp::Message;
use pith_sbi::common::{AccessType, NfInstanceId, PlmnIdNid, RatType, UserLocation};
use pith_sbi::nsmf_pdusession::SmContextUpdateData;
use pith_sbi::{ApiRoot, Cause, Problem, Request, Uri};
use pith_types::{Ambr, BitRate, Dnn, Guami, Pei, Seid, Snssai, Supi, Tac};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// The one QoS flow of a session: the default one.
pub(super) const DEFAULT_QFI: u8 = 1;

/// Updates of a session that may be pending: the AMF and the UE send one or two at a time.
const MOST_PENDING_UPDATES: usize = 8;

/// The SM context of one PDU session.
#[derive(Debug)]
pub(super) struct SmContext {
    /// Its place in the table; also the owner of its timers and calls.
    pub key: Key,
    /// The subscriber.
    pub supi: Supi,
    /// PDU session identity, 1 to 15.
    pub pdu_session_id: u8,
    /// Its data network.
    pub dnn: Dnn,
    /// Its slice.
    pub snssai: Snssai,
    /// The tracking area in which the UE asked for the session.
    pub tac: Option<Tac>,
    /// The AMF that serves the UE.
    pub amf: AmfLink,
    /// The SMF's SEID at the anchor.
    pub seid: Seid,
    /// The UE's address, once it is allocated.
    pub address: Option<Ipv4Addr>,
    /// Subscribed, then authorised QoS.
    pub qos: Qos,
    /// The policy association at the PCF.
    pub policy: Option<Uri>,
    /// Whether the SMF is registered for the session in the UDM (Nudm_UECM).
    pub is_registered: bool,
    /// The 5GSM modification procedure, which runs beside what [`State`] waits for.
    pub modification: Option<AwaitingModificationComplete>,
    /// The session at a UPF that left the path, until packets in transit have passed: [`SessionTimer::PathGrace`] runs.
    pub draining: Option<UpfSession>,
    /// What arrived while the session could not act on it.
    pub pending: Pending,
    /// Its timers that run.
    pub timers: Timers,
    /// What it waits for; [`SmContext::step`] alone sets it.
    state: State,
    calls: u32,
}

/// What arrived while the session was being established or changed. [`procedure::resume_pending`] acts on it as soon as
/// the session is [`State::Established`], in this order.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Updates of the AMF, the oldest first.
    pub updates: Vec<(PendingReply, SmContextUpdateData)>,
    /// UDM or PCF end the session, with this cause for the UE.
    pub release: Option<GsmCause>,
    /// The gNB's end of a tunnel that the gNB does not know any more.
    pub lost_tunnel: Option<Tunnel>,
    /// The PCF's last decision.
    pub qos: Option<Qos>,
    /// A UPF reported packets for an idle UE; it reports them once.
    pub downlink_data: bool,
}

/// The user plane of a session: its UPFs, and what UPF and gNB know of each other.
#[derive(Debug)]
pub(super) struct UserPlane {
    /// The session at the PDU session anchor.
    pub anchor: UpfSession,
    /// The session at the UPF between gNB and anchor, where there is one.
    pub front: Option<FrontUpf>,
    /// The gNB's end of the N3 tunnel, while the user plane is activated (TS 23.501 5.6.8).
    pub gnb: Option<Tunnel>,
    /// The UPF's end that the gNB was given last; `None` if it is not known whether the gNB uses it.
    pub gnb_uplink: Option<Tunnel>,
}

impl UserPlane {
    /// One UPF, and no gNB yet.
    pub(super) const fn of_anchor(anchor: UpfSession) -> Self {
        Self { anchor, front: None, gnb: None, gnb_uplink: None }
    }

    /// The session at the UPF that terminates N3.
    pub(super) fn at_n3(&self) -> UpfSession {
        self.front.as_ref().map_or(self.anchor, |front| front.session)
    }

    /// The session at the UPF whose end of the N9 tunnel is among these.
    pub(super) fn behind_n9(&self, tunnels: &[Tunnel]) -> Option<UpfSession> {
        let front = self.front.as_ref()?;
        let ends = [(front.n9, front.session), (self.anchor.tunnel, self.anchor)];
        ends.into_iter().find(|(end, _)| tunnels.contains(end)).map(|(_, session)| session)
    }

    /// The gNB is given the UPF's end of N3.
    pub(super) fn give_uplink_to_gnb(&mut self) {
        self.gnb_uplink = Some(self.at_n3().tunnel);
    }

    /// Whether it has a UPF before the anchor that it can do without.
    pub(super) fn has_spare_front(&self) -> bool {
        self.front.as_ref().is_some_and(|front| !front.is_needed)
    }
}

/// How the AMF is reached.
#[derive(Debug, Clone)]
pub(super) struct AmfLink {
    pub instance: NfInstanceId,
    /// Where the SMF notifies the session's end.
    pub status_uri: Uri,
    /// The root of the AMF's services: that of the status URI.
    pub root: Arc<ApiRoot>,
    /// The caller whose session it is.
    pub owner: Owner,
}

/// How the UE reaches the network, as the AMF reports it (TS 29.502 6.1.6.2.2) and the SMF to the PCF (TS 29.512 5.6.2.3).
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
    /// The UPF's end of the tunnel of uplink packets.
    pub tunnel: Tunnel,
}

/// The session at the UPF between gNB and anchor: an intermediate UPF (TS 23.502 4.3.2.2.1 step 10), an uplink classifier
/// and local anchor (TS 23.501 5.6.4.2), or both.
#[derive(Debug, Clone)]
pub(super) struct FrontUpf {
    pub session: UpfSession,
    /// The UPF's end of the tunnel of the anchor's downlink packets.
    pub n9: Tunnel,
    /// The gNB does not reach the anchor without it.
    pub is_needed: bool,
    /// It is removed when the UE is connected next.
    pub is_ending: bool,
    /// Destinations whose packets leave here.
    pub destinations: Vec<Network>,
}

impl FrontUpf {
    /// Its destinations, for people.
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

impl Qos {
    /// Until the subscription says otherwise.
    pub(super) const UNKNOWN: Self = Self {
        ambr: Ambr { uplink: BitRate::mbps(1), downlink: BitRate::mbps(1) },
        five_qi: 9,
        arp_priority: 15,
    };
}

/// One call, or one request to a UPF, of a session: the step of its [`Tag`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallId(pub u32);

impl SmContext {
    /// A session of which nothing is known but the request.
    pub(super) fn new(
        (key, seid): (Key, Seid),
        (supi, pdu_session_id): (Supi, u8),
        (dnn, snssai): (Dnn, Snssai),
        tac: Option<Tac>,
        amf: AmfLink,
    ) -> Self {
        Self {
            key,
            supi,
            pdu_session_id,
            dnn,
            snssai,
            tac,
            amf,
            seid,
            address: None,
            qos: Qos::UNKNOWN,
            policy: None,
            is_registered: false,
            modification: None,
            draining: None,
            pending: Pending::default(),
            timers: Timers::default(),
            state: State::Over,
            calls: 0,
        }
    }

    /// Takes a step: it consumes the state and gives the next one. This is the one place that sets a session's state.
    pub(super) fn step(
        &mut self,
        env: &mut Env<'_>,
        step: impl FnOnce(State, &mut Self, &mut Env<'_>) -> State,
    ) {
        let state = std::mem::take(&mut self.state);
        let next = step(state, self, env);
        self.state = procedure::resume_pending(next, self, env);
    }

    /// What it waits for.
    pub(super) const fn state(&self) -> &State {
        &self.state
    }

    /// Answers that it owes.
    pub(super) fn replies_owed(&self) -> usize {
        self.pending.updates.len() + usize::from(self.state.owes_reply())
    }

    /// Keeps an update until the session is established again: one change at a time.
    pub(super) fn keep_update(&mut self, env: &mut Env<'_>, reply: PendingReply, data: SmContextUpdateData) {
        if self.pending.updates.len() < MOST_PENDING_UPDATES {
            return self.pending.updates.push((reply, data));
        }
        let problem = Problem::new(Cause::InsufficientResources).detail("too many updates at once");
        reply.refuse(problem, env.out);
    }

    /// Calls an operation of another NF; the reply comes back with the number given.
    pub(super) fn call(&mut self, env: &mut Env<'_>, target: Target, request: impl Into<Request>) -> CallId {
        let tag = self.next_tag();
        env.out.call(tag, target, request.into());
        CallId(tag.step)
    }

    /// Sends a UPF a request; the response comes back with the number given.
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

    fn next_tag(&mut self) -> Tag {
        self.calls = self.calls.wrapping_add(1);
        Tag { owner: self.key.to_u64(), step: self.calls }
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

    /// The session at the UPF to which this SEID of the SMF belongs.
    pub(super) fn at_upf(&self, user_plane: Option<&UserPlane>, seid: Seid) -> Option<UpfSession> {
        if seid == self.seid {
            return user_plane.map(|user_plane| user_plane.anchor);
        }
        let front = user_plane.and_then(|user_plane| user_plane.front.as_ref());
        front.map(|front| front.session).or(self.draining)
    }

    /// At how many UPFs it has a session.
    pub(super) fn n4_sessions(&self) -> usize {
        let of_path = self.state.user_plane().map_or(0, |user_plane| 1 + user_plane.front.iter().count());
        of_path + self.draining.iter().count()
    }

    /// The SMF's SEID at the front UPF.
    pub(super) const fn front_seid(&self) -> Seid {
        Seid(self.seid.0 | FRONT_SEID)
    }

    /// Tells the operator.
    pub(super) fn log(&self, env: &mut Env<'_>, level: Level, text: impl FnOnce() -> String) {
        env.out.log(level, || format!("{} session {}: {}", self.supi.masked(), self.pdu_session_id, text()));
    }
}

/// What tells the SEID of a session's front UPF from that of its anchor: neither place nor random bits have it.
pub(super) const FRONT_SEID: u64 = 1 << 31;
