//! One PDU session as the SMF knows it.

use super::config::Network;
use super::selection::{FrontPlan, Path};
use crate::kit::{Caller, Owner, UpfHandle};
use pith_nas::GsmCause;
use pith_ngap::transfer::Tunnel;
use pith_sbi::common::{AccessType, NfInstanceId, PlmnIdNid, RatType, UserLocation};
use pith_sbi::nsmf_pdusession::SmContextUpdateData;
use pith_sbi::{ApiRoot, Uri};
use pith_types::{Ambr, Dnn, Guami, Pei, Seid, Snssai, Supi, Tac};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// The one QoS flow of a session: the default one.
pub(super) const DEFAULT_QFI: u8 = 1;

/// An SM context.
#[derive(Debug)]
pub(super) struct SmContext {
    /// Whose.
    pub supi: Supi,
    /// PDU session identity, 1 to 15.
    pub pdu_session_id: u8,
    /// Its data network.
    pub dnn: Dnn,
    /// Its slice.
    pub snssai: Snssai,
    /// Procedure transaction identity of the UE's request under way; 0 if the network began.
    pub pti: u8,
    /// Where the UE was when it asked.
    pub tac: Option<Tac>,
    /// What the UE asked for.
    pub asks: Asks,
    /// How the UE reaches the network; until the PCF was told.
    pub access: Option<Box<Access>>,
    /// The UPFs that are to be asked; until the PCF has decided.
    pub planned: Option<Path>,
    /// The AMF that serves the UE.
    pub amf: AmfLink,
    /// The UE's address, once it has one.
    pub address: Option<Ipv4Addr>,
    /// This side's SEID.
    pub seid: Seid,
    /// UPFs that were asked for the session in vain.
    pub tried: Vec<UpfHandle>,
    /// The session at its anchor, once that has answered.
    pub anchor: Option<UpfSession>,
    /// The session at the UPF between gNB and anchor, where there is one and it has answered.
    pub front: Option<Front>,
    /// The session at a UPF that packets no longer go by, until what was on its way has passed.
    pub leaving: Option<UpfSession>,
    /// Where the gNB was last told to send uplink packets; `None` if it is not known whether it heard.
    pub told: Option<Tunnel>,
    /// A UPF told of packets for an idle UE while the session was changing.
    pub data_waits: bool,
    /// UDM or PCF end the session, and what the UE is told; the release begins when the session stands.
    pub withdrawn: Option<GsmCause>,
    /// The gNB's end of the N3 tunnel, while the user plane is active.
    pub gnb: Option<Tunnel>,
    /// The gNB's end of a tunnel that it turned out not to know while the session was changing.
    pub lost: Option<Tunnel>,
    /// What is authorised.
    pub qos: Qos,
    /// What the PCF has decided since, until UPF, gNB and UE are told.
    pub decided: Option<Qos>,
    /// How often PDU SESSION MODIFICATION COMMAND was sent again, while the UE owes an answer; T3591 runs.
    pub modifying: Option<u8>,
    /// The policy association, once it stands.
    pub policy: Option<Uri>,
    /// Whether the UDM knows of the session.
    pub is_registered: bool,
    /// What is under way.
    pub state: State,
    /// What the AMF asked for meanwhile, first come first: the answer of the UPF to new rules goes before it.
    pub held: Vec<(Caller, SmContextUpdateData)>,
    /// The last call made; an answer to an earlier one is late.
    pub step: u32,
}

impl SmContext {
    /// Whether UPF or gNB are changing what they have of the session: updates wait until they have.
    pub(super) const fn is_changing(&self) -> bool {
        use State::{
            AwaitingBuffering, AwaitingClassifier, AwaitingGnb, AwaitingN4Modification, AwaitingRates,
            AwaitingResourceRelease, AwaitingSwitch,
        };
        matches!(
            self.state,
            AwaitingN4Modification(..)
                | AwaitingClassifier(_)
                | AwaitingGnb(_)
                | AwaitingSwitch(_)
                | AwaitingBuffering
                | AwaitingRates(_)
                | AwaitingResourceRelease
        )
    }

    /// At how many UPFs it has a session.
    pub(super) fn n4_sessions(&self) -> usize {
        self.anchor.iter().chain(&self.leaving).count() + self.front.iter().count()
    }

    /// The session at the UPF that the gNB's packets come to.
    pub(super) fn at_n3(&self) -> Option<UpfSession> {
        self.front.as_ref().map(|front| front.session).or(self.anchor)
    }

    /// The session at the UPF that knows it by this side's SEID.
    pub(super) fn at_upf(&self, seid: Seid) -> Option<UpfSession> {
        match seid.0 & FRONT_SEID {
            0 => self.anchor,
            _ => self.front.as_ref().map(|front| front.session).or(self.leaving),
        }
    }

    /// The session at the UPF whose end of the N9 tunnel is among these.
    pub(super) fn session_behind_n9(&self, tunnels: &[Tunnel]) -> Option<UpfSession> {
        let front = self.front.as_ref()?;
        let ends =
            [(Some(front.n9), Some(front.session)), (self.anchor.map(|anchor| anchor.tunnel), self.anchor)];
        ends.into_iter().find(|(end, _)| end.is_some_and(|end| tunnels.contains(&end)))?.1
    }

    /// Whether it has, or asked for, a session at that UPF.
    pub(super) fn is_at(&self, upf: UpfHandle) -> bool {
        let front = self.front.as_ref().map(|front| front.session);
        self.anchor.iter().chain(&front).any(|session| session.upf == upf)
            || self.state.establishing_upf() == Some(upf)
    }

    /// This side's SEID of the session at the front UPF.
    pub(super) const fn front_seid(&self) -> Seid {
        Seid(self.seid.0 | FRONT_SEID)
    }
}

/// What tells the SEID of a session's front UPF from that of its anchor: neither place nor random bits have it.
pub(super) const FRONT_SEID: u64 = 1 << 31;

/// What the UE asks for: protocol configuration options, and IPv6 beside IPv4.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Asks {
    pub dns: bool,
    pub mtu: bool,
    pub ipv4v6: bool,
}

/// How the UE reaches the network, as the AMF tells it (TS 29.502 6.1.6.2.2) and the PCF is told (TS 29.512 5.6.2.3).
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

/// How the AMF is reached.
#[derive(Debug, Clone)]
pub(super) struct AmfLink {
    pub instance: NfInstanceId,
    /// Where it hears of the session's end.
    pub status_uri: Uri,
    /// Where its services stand: those of the status URI.
    pub root: Arc<ApiRoot>,
    /// Whose requests about the session are taken.
    pub owner: Owner,
}

/// The session at the UPF.
#[derive(Debug, Clone, Copy)]
pub(super) struct UpfSession {
    pub upf: UpfHandle,
    pub seid: Seid,
    /// The UPF's end of the tunnel that uplink packets come by.
    pub tunnel: Tunnel,
}

/// The session at the UPF between gNB and anchor: an intermediate UPF (TS 23.502 4.3.2.2.1 step 10), an uplink classifier
/// and local anchor (TS 23.501 5.6.4.2), or both.
#[derive(Debug, Clone)]
pub(super) struct Front {
    pub session: UpfSession,
    /// The UPF's end of the tunnel that the anchor's downlink packets come by.
    pub n9: Tunnel,
    /// The gNB does not reach the anchor without it.
    pub is_needed: bool,
    /// It is to go when the UE is connected next.
    pub is_ending: bool,
    /// Destinations whose packets leave here.
    pub destinations: Vec<Network>,
}

impl Front {
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

/// What an SM context waits for, in the order of the steps of TS 23.502 4.3.2.2.1.
#[derive(Debug)]
pub(super) enum State {
    /// Subscription data of the UDM (step 4); the AMF waits for an answer.
    AwaitingSubscriptionData(Caller),
    /// The decision of the PCF (step 7b).
    AwaitingPolicy,
    /// The answer of the anchor (step 10b); the UPF before it is asked next.
    AwaitingN4Establishment(UpfHandle, Option<FrontPlan>),
    /// The answer of the UPF between gNB and anchor (step 10b).
    AwaitingFrontEstablishment(FrontPlan),
    /// The answer of the anchor, which was told where downlink packets go (step 10b).
    AwaitingN9,
    /// The gNB's tunnel (step 15); UE and gNB have been told.
    AwaitingTunnel,
    /// Nothing.
    Established,
    /// The answer of the UPF to new rules; the AMF waits for an answer.
    AwaitingN4Modification(Caller, UserPlane),
    /// The answer of the UPF to other rates; the UPF before the anchor is asked next, if that is so.
    AwaitingRates(Enforcing),
    /// The answer of a UPF that is to be the classifier of a session that stands (TS 23.502 4.3.5.4 step 3).
    AwaitingClassifier(FrontPlan),
    /// The gNB's, which was told where uplink packets go.
    AwaitingGnb(Towards),
    /// The anchor's, which was told where downlink packets go.
    AwaitingSwitch(Towards),
    /// The answer of the UPF, which is to buffer what it sent into a tunnel that the gNB has lost (TS 23.527 5.3.2.1).
    AwaitingBuffering,
    /// The gNB's confirmation that it released the resources of a tunnel that it had lost (TS 23.527 5.3.2.1).
    AwaitingResourceRelease,
    /// The UE's PDU SESSION RELEASE COMPLETE (TS 24.501 6.3.3.3), T3592 running.
    AwaitingReleaseComplete {
        /// How often the command was sent again.
        retransmissions: u8,
    },
    /// The answer of the UPF to an establishment that is no longer wanted.
    Abandoned(UpfHandle),
}

/// Which of a session's UPFs is told other rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Enforcing {
    /// The anchor; the front UPF is next, if there is one.
    Anchor,
    /// The UPF between gNB and anchor.
    Front,
}

/// By whom the packets of a session are to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Towards {
    Classifier,
    Anchor,
}

impl std::fmt::Display for Towards {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Classifier => "classifier",
            Self::Anchor => "anchor",
        })
    }
}

/// Whether packets can reach the UE (TS 23.501 5.6.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UserPlane {
    Activated,
    Deactivated,
}

impl State {
    /// The UPF that owes an answer to an establishment: until it comes nobody knows what to delete there.
    pub(super) const fn establishing_upf(&self) -> Option<UpfHandle> {
        match self {
            Self::AwaitingN4Establishment(upf, _) | Self::Abandoned(upf) => Some(*upf),
            Self::AwaitingFrontEstablishment(plan) | Self::AwaitingClassifier(plan) => Some(plan.upf),
            _ => None,
        }
    }

    /// For people.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::AwaitingSubscriptionData(_)
            | Self::AwaitingPolicy
            | Self::AwaitingN4Establishment(..)
            | Self::AwaitingFrontEstablishment(_)
            | Self::AwaitingN9 => "establishing",
            Self::AwaitingTunnel => "awaiting-gnb",
            Self::Established
            | Self::AwaitingN4Modification(..)
            | Self::AwaitingRates(_)
            | Self::AwaitingBuffering
            | Self::AwaitingResourceRelease => "established",
            Self::AwaitingClassifier(_) | Self::AwaitingGnb(_) | Self::AwaitingSwitch(_) => "branching",
            Self::AwaitingReleaseComplete { .. } | Self::Abandoned(_) => "releasing",
        }
    }
}
