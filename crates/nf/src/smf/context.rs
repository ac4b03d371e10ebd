//! One PDU session as the SMF knows it.

use crate::kit::{Caller, UpfHandle};
use pith_ngap::transfer::Tunnel;
use pith_sbi::common::NfInstanceId;
use pith_sbi::nsmf_pdusession::SmContextUpdateData;
use pith_sbi::{ApiRoot, Uri};
use pith_types::{Ambr, Dnn, Seid, Snssai, Supi};
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
    /// What the UE asked for.
    pub asks: Asks,
    /// The AMF that serves the UE.
    pub amf: AmfLink,
    /// The UE's address, once it has one.
    pub address: Option<Ipv4Addr>,
    /// This side's SEID.
    pub seid: Seid,
    /// The UPF's side, once it has answered.
    pub upf: Option<UpfSession>,
    /// The gNB's end of the N3 tunnel, while the user plane is active.
    pub gnb: Option<Tunnel>,
    /// What is authorised.
    pub qos: Qos,
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
    /// Whether the UPF is taking new rules.
    pub(super) const fn is_changing(&self) -> bool {
        matches!(self.state, State::AwaitingN4Modification(..))
    }
}

/// What the UE asks for: protocol configuration options, and IPv6 beside IPv4.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Asks {
    pub dns: bool,
    pub mtu: bool,
    pub ipv4v6: bool,
}

/// How the AMF is reached.
#[derive(Debug, Clone)]
pub(super) struct AmfLink {
    pub instance: NfInstanceId,
    /// Where it hears of the session's end.
    pub status_uri: Uri,
    /// Where its services stand: those of the status URI.
    pub root: Arc<ApiRoot>,
}

/// The session at the UPF.
#[derive(Debug, Clone, Copy)]
pub(super) struct UpfSession {
    pub upf: UpfHandle,
    pub seid: Seid,
    /// The UPF's end of the N3 tunnel.
    pub tunnel: Tunnel,
}

/// Subscribed, then authorised QoS.
#[derive(Debug, Clone)]
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
    /// The answer of the UPF (step 10b).
    AwaitingN4Establishment(UpfHandle),
    /// The gNB's tunnel (step 15); UE and gNB have been told.
    AwaitingTunnel,
    /// Nothing.
    Established,
    /// The answer of the UPF to new rules; the AMF waits for an answer.
    AwaitingN4Modification(Caller, UserPlane),
    /// The UE's PDU SESSION RELEASE COMPLETE (TS 24.501 6.3.3.3), T3592 running.
    AwaitingReleaseComplete {
        /// How often the command was sent again.
        retransmissions: u8,
    },
    /// The answer of the UPF to an establishment that is no longer wanted.
    Abandoned(UpfHandle),
}

/// Whether packets can reach the UE (TS 23.501 5.6.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UserPlane {
    Activated,
    Deactivated,
}

impl State {
    /// For people.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::AwaitingSubscriptionData(_) | Self::AwaitingPolicy | Self::AwaitingN4Establishment(_) => {
                "establishing"
            }
            Self::AwaitingTunnel => "awaiting-gnb",
            Self::Established | Self::AwaitingN4Modification(..) => "established",
            Self::AwaitingReleaseComplete { .. } | Self::Abandoned(_) => "releasing",
        }
    }
}
