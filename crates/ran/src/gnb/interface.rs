//! Inputs and outputs of a gNB.

use super::associations::N2Stream;
use super::handover::{Cell, XnHandover};
use super::reroute::Redirected;
use crate::violation::Violation;
use pith_ngap::transfer::Tunnel;
use pith_ngap::{
    Cause, CauseRadioNetwork, GlobalRanNodeId, InitialUeMessage, Message, RrcEstablishmentCause,
    SecurityCapabilities,
};
use pith_types::{Ambr, FiveGSTmsi, RanUeNgapId, Tai, Teid};
use std::net::{IpAddr, SocketAddr};

/// A UE, by the caller's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UeKey(pub u32);

/// The radio bearers of a PDU session and its tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bearer {
    /// PDU Session ID.
    pub session: u8,
    /// The UPF's tunnel endpoint on N3.
    pub uplink: Tunnel,
    /// The gNB's tunnel endpoint, or that of a secondary gNB.
    pub downlink: Teid,
    /// The address of that endpoint.
    pub n3: IpAddr,
    /// QFI of the first QoS flow: the default one.
    pub qfi: u8,
    /// All its QoS flows.
    pub flows: QosFlows,
    /// Those with the Reflective QoS Attribute: the UE gets the RQI of their packets (TS 38.415 5.5.3.4).
    pub reflective: QosFlows,
    /// Session-AMBR, which the gNB enforces in uplink.
    pub ambr: Option<Ambr>,
}

/// A set of QoS flows, by QFI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QosFlows(u64);

impl QosFlows {
    /// Whether the flow is in the set.
    pub const fn has(self, qfi: u8) -> bool {
        qfi < 64 && self.0 & 1 << qfi != 0
    }

    /// Adds a flow; QFIs are 0 to 63.
    pub const fn add(&mut self, qfi: u8) {
        self.0 |= 1 << (qfi & 63);
    }

    /// Adds or removes a flow.
    pub const fn set(&mut self, qfi: u8, is_in: bool) {
        if is_in { self.add(qfi) } else { self.remove(qfi) }
    }

    /// Removes a flow.
    pub const fn remove(&mut self, qfi: u8) {
        self.0 &= !(1 << (qfi & 63));
    }

    /// The QFIs, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..64).filter(move |qfi| self.has(*qfi))
    }
}

impl FromIterator<u8> for QosFlows {
    fn from_iter<T: IntoIterator<Item = u8>>(qfis: T) -> Self {
        let mut flows = Self::default();
        qfis.into_iter().for_each(|qfi| flows.add(qfi));
        flows
    }
}

/// One input of a gNB.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum Input<'a> {
    /// An SCTP association is established.
    AssociationUp {
        /// Its number: each association of a gNB has its own.
        association: u8,
        /// Number of outbound streams.
        outbound_streams: u16,
    },
    /// The SCTP association is lost.
    AssociationDown { association: u8 },
    /// An NGAP PDU was received.
    Pdu { association: u8, stream: u16, octets: &'a [u8] },
    /// A UE connects with an initial NAS message.
    Connect {
        ue: UeKey,
        nas: Vec<u8>,
        cause: RrcEstablishmentCause,
        /// The identity that the UE sent over RRC.
        s_tmsi: Option<FiveGSTmsi>,
    },
    /// A UE's first message that another AMF of the gNB does not serve.
    Rerouted { ue: UeKey, message: Box<InitialUeMessage> },
    /// The answer to [`Output::Redirect`]: the UE, if another endpoint had it.
    Redirected { found: Option<Redirected>, stream: N2Stream, message: Box<Message> },
    /// A UE sends a NAS message on its connection.
    Uplink { ue: UeKey, nas: Vec<u8> },
    /// The gNB requests the AMF to release a UE's context.
    ReleaseContext {
        ue: UeKey,
        /// For example `user_inactivity`.
        cause: CauseRadioNetwork,
    },
    /// A UE lost its radio connection.
    RadioLost { ue: UeKey },
    /// The gNB requires the handover of a UE to another gNB through the AMF.
    RequireHandover { ue: UeKey, node: GlobalRanNodeId, tai: Tai },
    /// A UE that left another gNB by [`Output::Leaving`] is in this gNB's cell.
    Arrive { ue: UeKey },
    /// A UE that was to leave by [`Output::Leaving`] stays: it does not accept the NAS container.
    TakeBack { ue: UeKey },
    /// The downlink of a UE's sessions moves to these tunnels: those of a secondary gNB, or back to the gNB's own (dual connectivity).
    MoveFlows { ue: UeKey, tunnels: Vec<(u8, Tunnel)> },
    /// A UE arrives from another gNB.
    XnHandover(Box<XnHandover>),
    /// The gNB loses its state and sends NG RESET.
    Reset,
    /// The time of [`super::Gnb::next_timeout`] is reached.
    Timeout,
}

/// One output of a gNB.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Output {
    /// Send an NGAP PDU.
    Send { association: u8, stream: u16, pdu: Vec<u8> },
    /// The AMF has another endpoint: establish an association with that number.
    AddAssociation { association: u8, endpoint: SocketAddr },
    /// The AMF has removed the endpoint of an association: end it.
    RemoveAssociation { association: u8 },
    /// Deliver a NAS message to a UE.
    Nas { ue: UeKey, nas: Vec<u8> },
    /// Activate AS security with a UE.
    SecurityActivated {
        ue: UeKey,
        k_gnb: [u8; 32],
        /// UE security capabilities from the AMF.
        capabilities: SecurityCapabilities,
    },
    /// A UE is handed over to this gNB: it derives its keys.
    HandedOver {
        ue: UeKey,
        /// K_NG-RAN*.
        key: [u8; 32],
        /// NCC of the key.
        chaining_count: u8,
        cell: Cell,
    },
    /// A UE leaves for the cell of another gNB, which has prepared the handover.
    Leaving {
        ue: UeKey,
        cell: Cell,
        /// Of the target AMF for the UE, if the NAS security changes.
        nas_container: Option<Vec<u8>>,
    },
    /// The target gNB has a tunnel for packets of a bearer that the source gNB forwards.
    ForwardingTunnel { ue: UeKey, teid: Teid, bearer: Bearer },
    /// The source gNB forwards packets of a bearer, whose UE leaves, into a tunnel of the UPF.
    Forward { ue: UeKey, bearer: Bearer, to: Tunnel },
    /// A UE is not handed over.
    HandoverFailed {
        ue: UeKey,
        /// By the core: HANDOVER PREPARATION FAILURE.
        refused: bool,
    },
    /// The AMF has switched the path of a UE that was handed over.
    PathSwitched { ue: UeKey },
    /// The answer to [`Input::MoveFlows`]: bearers with their new tunnels.
    FlowsMoved {
        ue: UeKey,
        moved: Vec<Bearer>,
        /// Whether all have moved.
        is_complete: bool,
    },
    /// Radio bearers and a tunnel are set up.
    BearerUp { ue: UeKey, bearer: Bearer },
    /// The tunnel has another endpoint at the UPF.
    BearerMoved { ue: UeKey, bearer: Bearer },
    /// Radio bearers and the tunnel are released.
    BearerDown { ue: UeKey, bearer: Bearer },
    /// The AMF has a UE's first message rerouted to an AMF of that set. The endpoint has no connection of the UE any longer.
    Reroute { ue: UeKey, amf_set: u16, message: Box<InitialUeMessage> },
    /// The AMF has taken over a UE from the AMF of another endpoint ([`super::Gnb::give_up`]).
    Redirect { old_amf: String, ran_id: RanUeNgapId, stream: N2Stream, message: Box<Message> },
    /// A UE's radio connection is released.
    Released { ue: UeKey },
    /// Page a UE in the cell.
    Paging(FiveGSTmsi),
    /// An event that the tester observes.
    Event(Event),
    /// The core violated a specification.
    Violation(Violation),
}

/// Events that the tester of a gNB observes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// NG Setup succeeded.
    Up,
    /// NG SETUP FAILURE.
    SetupRejected(Cause),
    /// NG SETUP REQUEST was not answered.
    SetupUnanswered,
    /// The last association is lost.
    Down,
    /// An association is lost, and the gNB has others.
    AssociationLost,
    /// The AMF has accepted a further association.
    AssociationJoined,
    /// The AMF has refused a further association.
    JoinRejected(Cause),
    /// The AMF reports the start or the end of overload.
    Overload(bool),
    /// The AMF acknowledged an NG RESET of the gNB.
    ResetAcknowledged,
}
