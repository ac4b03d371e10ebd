//! What a gNB is told, and what it does.

use crate::violation::Violation;
use pith_ngap::transfer::Tunnel;
use pith_ngap::{Cause, CauseRadioNetwork, RrcEstablishmentCause, SecurityCapabilities};
use pith_types::{Ambr, FiveGSTmsi, Teid};

/// A UE, as the caller numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UeKey(pub u32);

/// The radio bearers of a PDU session and its tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bearer {
    /// PDU Session ID.
    pub session: u8,
    /// The UPF's end of the N3 tunnel.
    pub uplink: Tunnel,
    /// The gNB's end.
    pub downlink: Teid,
    /// The first QoS flow.
    pub qfi: u8,
    /// Session-AMBR, which the gNB enforces uplink.
    pub ambr: Option<Ambr>,
}

/// One thing that happens to a gNB.
#[derive(Debug, Clone)]
pub enum Input<'a> {
    /// The SCTP association stands.
    AssociationUp {
        /// Streams to send on.
        outbound_streams: u16,
    },
    /// It is gone.
    AssociationDown,
    /// An NGAP PDU came.
    Pdu {
        /// On which stream.
        stream: u16,
        /// The PDU.
        octets: &'a [u8],
    },
    /// A UE connects, with an initial NAS message.
    Connect {
        /// Which UE.
        ue: UeKey,
        /// Its message.
        nas: Vec<u8>,
        /// What for.
        cause: RrcEstablishmentCause,
        /// How it named itself.
        s_tmsi: Option<FiveGSTmsi>,
    },
    /// A UE sends a NAS message on its connection.
    Uplink {
        /// Which UE.
        ue: UeKey,
        /// Its message.
        nas: Vec<u8>,
    },
    /// The gNB wants the AMF to release a UE's context.
    ReleaseContext {
        /// Which UE.
        ue: UeKey,
        /// Why: `user_inactivity`.
        cause: CauseRadioNetwork,
    },
    /// A UE dropped its radio connection.
    RadioLost {
        /// Which UE.
        ue: UeKey,
    },
    /// The gNB loses its state and says so.
    Reset,
    /// The time of [`super::Gnb::next_timeout`] has come.
    Timeout,
}

/// One thing that a gNB does.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Send an NGAP PDU.
    Send {
        /// On which stream.
        stream: u16,
        /// The PDU.
        pdu: Vec<u8>,
    },
    /// Hand a NAS message to a UE.
    Nas {
        /// Which UE.
        ue: UeKey,
        /// The message.
        nas: Vec<u8>,
    },
    /// Activate AS security with a UE.
    SecurityActivated {
        /// Which UE.
        ue: UeKey,
        /// K_gNB.
        k_gnb: [u8; 32],
        /// What the AMF says that the UE can do.
        capabilities: SecurityCapabilities,
    },
    /// Radio bearers and a tunnel stand.
    BearerUp {
        /// Which UE.
        ue: UeKey,
        /// Which session and tunnel.
        bearer: Bearer,
    },
    /// The tunnel has another end at the UPF.
    BearerMoved {
        /// Which UE.
        ue: UeKey,
        /// Which session and tunnel.
        bearer: Bearer,
    },
    /// They are gone.
    BearerDown {
        /// Which UE.
        ue: UeKey,
        /// Which session and tunnel.
        bearer: Bearer,
    },
    /// A UE's radio connection is released.
    Released {
        /// Which UE.
        ue: UeKey,
    },
    /// Page a UE in the cell.
    Paging(FiveGSTmsi),
    /// Something that the tester takes note of.
    Event(Event),
    /// The core broke a rule.
    Violation(Violation),
}

/// What the tester of a gNB sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// NG Setup succeeded.
    Up,
    /// NG SETUP FAILURE.
    SetupRejected(Cause),
    /// NG SETUP REQUEST has no answer.
    SetupUnanswered,
    /// The association is gone.
    Down,
    /// The AMF is overloaded, or not any more.
    Overload(bool),
    /// The AMF acknowledged an NG RESET of the gNB.
    ResetAcknowledged,
}
