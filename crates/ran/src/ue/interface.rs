//! What a UE is told, and what it does.

use super::session::SessionRequest;
use crate::violation::Violation;
use pith_nas::ie::RegistrationKind;
use pith_nas::{GmmCause, GsmCause};
use pith_ngap::{RrcEstablishmentCause, SecurityCapabilities};
use pith_types::{FiveGSTmsi, Tai};

/// One thing that happens to a UE.
#[derive(Debug, Clone)]
pub enum Input<'a> {
    /// The user wants service: initial registration, or an update if registered.
    Register,
    /// The user wants a PDU session.
    EstablishSession(SessionRequest),
    /// The user is done with a PDU session.
    ReleaseSession(u8),
    /// There are data to send, and the sessions' user plane is down.
    RequestService,
    /// The user wants to be gone.
    Deregister {
        /// The power goes off: nobody will hear an answer.
        switch_off: bool,
    },
    /// The UE has moved to a cell of that tracking area.
    Camp(Tai),
    /// A NAS message came.
    Nas(&'a [u8]),
    /// The gNB activates AS security.
    SecurityActivated {
        /// K_gNB as the AMF gave it to the gNB.
        k_gnb: [u8; 32],
        /// What the AMF told the gNB that the UE can do.
        capabilities: SecurityCapabilities,
    },
    /// The radio bearers of a PDU session are there, or gone.
    UserPlane {
        /// PDU session identity.
        session: u8,
        /// There or gone.
        up: bool,
    },
    /// The radio connection was released or lost.
    ConnectionReleased,
    /// The UE is paged with its own identity.
    Paging,
    /// The time of [`super::Ue::next_timeout`] has come.
    Timeout,
}

/// One thing that a UE does.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Connect to the network with an initial NAS message.
    Connect {
        /// The message.
        nas: Vec<u8>,
        /// What for.
        cause: RrcEstablishmentCause,
        /// How the UE names itself to the gNB, if it has a name in the area.
        s_tmsi: Option<FiveGSTmsi>,
    },
    /// Send a NAS message on the connection.
    Send(Vec<u8>),
    /// Drop the connection.
    Release,
    /// Something that the user takes note of.
    Event(Event),
    /// The core broke a rule.
    Violation(Violation),
}

/// What the user of a UE sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Registered, or updated.
    Registered(RegistrationKind),
    /// Not registered; the UE may go on by itself after a timer.
    RegistrationFailed(Failure),
    /// A PDU session is active: see [`super::Ue::sessions`].
    SessionEstablished(u8),
    /// A PDU session is not to be had.
    SessionFailed(u8, SessionFailure),
    /// A PDU session is gone.
    SessionReleased(u8),
    /// The service request was accepted.
    ServiceAccepted,
    /// The user plane of a session was asked for, and the network could not re-establish it.
    UserPlaneFailed(u8),
    /// The service request was not accepted.
    ServiceFailed(Failure),
    /// The network did not accept the de-registration; the UE leaves without.
    DeregistrationFailed(Failure),
    /// The UE is deregistered, by its own wish or by the network's.
    Deregistered {
        /// The network began it.
        by_network: bool,
    },
    /// The UE went to 5GMM-IDLE.
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
    /// A timer ran out.
    #[error("no answer")]
    NoAnswer,
    /// The connection was released in the middle.
    #[error("connection lost")]
    ConnectionLost,
    /// An earlier reject forbids to try.
    #[error("the USIM counts as invalid")]
    InvalidUsim,
}

impl From<GmmCause> for Failure {
    fn from(cause: GmmCause) -> Self {
        Self::Cause(cause.code())
    }
}

/// Why there is no PDU session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum SessionFailure {
    /// The SMF rejects with that 5GSM cause.
    #[error("rejected with 5GSM cause #{0}")]
    Cause(u8),
    /// The AMF did not forward the request, for that 5GMM cause.
    #[error("not forwarded: 5GMM cause #{0}")]
    NotForwarded(u8),
    /// T3580 ran out for the last time.
    #[error("no answer")]
    NoAnswer,
    /// What the network offered can not be used; the UE released it.
    #[error("the network's offer is not usable")]
    NotUsable,
    /// The identity is taken, or the slice is not allowed, or the UE is not registered.
    #[error("not possible now")]
    NotPossible,
}

impl From<GsmCause> for SessionFailure {
    fn from(cause: GsmCause) -> Self {
        Self::Cause(cause.code())
    }
}
