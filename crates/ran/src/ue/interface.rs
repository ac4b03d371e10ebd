//! Inputs and outputs of a UE.

use super::reachability::PagedWith;
use super::session::SessionRequest;
use crate::gnb::Cell;
use crate::violation::Violation;
use pith_nas::ie::RegistrationKind;
use pith_nas::{GmmCause, GsmCause};
use pith_ngap::{RrcEstablishmentCause, SecurityCapabilities};
use pith_types::{FiveGSTmsi, Tai};

/// One input of a UE.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum Input<'a> {
    /// The user requests registration: initial, or an update if registered.
    Register,
    /// The user requests a PDU session.
    EstablishSession(SessionRequest),
    /// The user releases a PDU session.
    ReleaseSession(u8),
    /// The UE no longer supports reflective QoS in a session.
    RevokeReflectiveQos(u8),
    /// There is uplink data, and the sessions' user plane is not active.
    RequestService,
    /// The user deregisters the UE.
    Deregister {
        /// The UE is switched off: no answer is expected.
        switch_off: bool,
    },
    /// The UE has moved to a cell of that tracking area.
    Camp(Tai),
    /// A NAS message was received.
    Nas(&'a [u8]),
    /// The gNB activates AS security.
    SecurityActivated {
        /// The K_gNB that the AMF sent to the gNB.
        k_gnb: [u8; 32],
        /// The UE security capabilities that the AMF sent to the gNB.
        capabilities: SecurityCapabilities,
    },
    /// The source gNB commands a handover through the AMF.
    HandoverCommand {
        /// Of the target AMF, if the NAS security changes.
        nas_container: Option<&'a [u8]>,
    },
    /// The gNB hands the UE over to a cell of another gNB.
    HandedOver {
        /// K_NG-RAN* of the target gNB.
        key: [u8; 32],
        /// NCC of the key.
        chaining_count: u8,
        cell: Cell,
    },
    /// The radio bearers of a PDU session were set up or released.
    UserPlane {
        /// PDU session identity.
        session: u8,
        up: bool,
    },
    /// The radio connection was released or lost.
    ConnectionReleased,
    /// The UE is paged with its own identity.
    Paging(PagedWith),
    /// The time of [`super::Ue::next_timeout`] is reached.
    Timeout,
}

/// One output of a UE.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Output {
    /// Connect to the network with an initial NAS message.
    Connect {
        nas: Vec<u8>,
        cause: RrcEstablishmentCause,
        /// The UE's identity for the gNB, if it has one that is valid in the area.
        s_tmsi: Option<FiveGSTmsi>,
    },
    /// Send a NAS message on the connection.
    Send(Vec<u8>),
    /// Release the connection.
    Release,
    /// An event that the user observes.
    Event(Event),
    /// The core violated a specification.
    Violation(Violation),
}

/// Events that the user of a UE observes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Registered or updated.
    Registered(RegistrationKind),
    /// Registration failed; the UE may try again by itself after a timer.
    RegistrationFailed(Failure),
    /// A PDU session is active: see [`super::Ue::sessions`].
    SessionEstablished(u8),
    /// A PDU session was not established.
    SessionFailed(u8, SessionFailure),
    /// A PDU session was released.
    SessionReleased(u8),
    /// The service request was accepted.
    ServiceAccepted,
    /// The user plane of a session was requested, and the network could not activate it.
    UserPlaneFailed(u8),
    /// The service request failed.
    ServiceFailed(Failure),
    /// The network did not accept the de-registration; the UE deregisters locally.
    DeregistrationFailed(Failure),
    /// The UE is deregistered.
    Deregistered {
        /// The network started the de-registration.
        by_network: bool,
    },
    /// The UE entered 5GMM-IDLE.
    Idle,
}

/// Why the network does not serve a UE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum Failure {
    /// A reject with that 5GMM cause.
    #[error("rejected with 5GMM cause #{0}")]
    Cause(u8),
    /// AUTHENTICATION REJECT.
    #[error("authentication rejected")]
    AuthenticationRejected,
    /// The network could not authenticate itself.
    #[error("the network failed the authentication check")]
    NetworkNotAuthenticated,
    /// A timer expired.
    #[error("no answer")]
    NoAnswer,
    /// The connection was released during the procedure.
    #[error("connection lost")]
    ConnectionLost,
    /// The UE is outside its service area.
    #[error("outside the service area")]
    RestrictedArea,
    /// An earlier reject made the USIM invalid.
    #[error("the USIM is invalid")]
    InvalidUsim,
}

impl From<GmmCause> for Failure {
    fn from(cause: GmmCause) -> Self {
        Self::Cause(cause.code())
    }
}

/// Why a PDU session was not established.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum SessionFailure {
    /// The SMF rejected with that 5GSM cause.
    #[error("rejected with 5GSM cause #{0}")]
    Cause(u8),
    /// The AMF did not forward the request, with that 5GMM cause.
    #[error("not forwarded: 5GMM cause #{0}")]
    NotForwarded(u8),
    /// T3580 expired for the last time.
    #[error("no answer")]
    NoAnswer,
    /// The accepted session is unusable; the UE released it.
    #[error("the accepted session is not usable")]
    NotUsable,
    /// The identity is in use, the slice is not allowed, or the UE is not registered.
    #[error("not possible now")]
    NotPossible,
}

impl From<GsmCause> for SessionFailure {
    fn from(cause: GsmCause) -> Self {
        Self::Cause(cause.code())
    }
}
