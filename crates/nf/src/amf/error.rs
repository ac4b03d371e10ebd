//! Why procedures fail, and what each failure tells the UE, the gNB or the NF that asked.

use bytes::Bytes;
use pith_nas::GmmCause;
use pith_nas::ie::{RejectedNssai, SnssaiRejection};
use pith_ngap::{Cause as NgapCause, CauseNas, CauseRadioNetwork};
use pith_sbi::{Cause as SbiCause, Problem};
use pith_types::Snssai;

/// Why a registration fails (TS 24.501 5.5.1.2.5, 5.5.1.3.5).
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum RegistrationError {
    /// Emergency registration, which this AMF does not offer.
    #[error("emergency services are not supported")]
    EmergencyNotSupported,
    /// Disaster roaming, which this AMF does not offer.
    #[error("disaster roaming is not supported")]
    DisasterRoamingNotSupported,
    /// The tracking area of the cell is not served.
    #[error("tracking area is not served")]
    TrackingAreaNotServed,
    /// The request has no UE security capability, and none is known.
    #[error("no UE security capability")]
    NoSecurityCapability,
    /// No integrity or ciphering algorithm that both sides accept, or the capability changed
    /// between the initial message and the protected copy of it.
    #[error("UE security capabilities mismatch")]
    SecurityCapabilityMismatch,
    /// A mandatory IE is wrong.
    #[error("invalid mandatory information")]
    InvalidMandatoryInformation,
    /// A SUPI of a kind that is not an IMSI, or no identity even after asking.
    #[error("no usable identity")]
    NoIdentity,
    /// The UE's proof is wrong, twice if it came with a 5G-GUTI: AUTHENTICATION REJECT.
    #[error("authentication failed")]
    AuthenticationFailed {
        /// How EAP ended, if that was the method.
        eap_failure: Option<Bytes>,
        /// What was wrong.
        fault: AuthenticationFault,
    },
    /// The UE refused the SECURITY MODE COMMAND.
    #[error("UE rejected security mode: {0}")]
    SecurityModeRejected(GmmCause),
    /// The home network does not know the subscriber.
    #[error("unknown subscriber")]
    UnknownSubscriber,
    /// The home network can't de-conceal the SUCI: it does not know the key, or the key does not fit.
    #[error("SUCI can't be de-concealed")]
    SuciNotDeconcealed,
    /// The subscription has no 5GS.
    #[error("5GS services not allowed")]
    ServicesNotAllowed,
    /// The subscriber may not use this network.
    #[error("roaming not allowed")]
    RoamingNotAllowed,
    /// The subscriber may not use this radio access technology.
    #[error("radio access technology not allowed")]
    RatNotAllowed,
    /// The home network does not accept this serving network.
    #[error("serving network not authorized")]
    ServingNetworkNotAuthorized,
    /// None of the slices that the UE may use is served here.
    #[error("no network slices available")]
    NoSlicesAvailable(Vec<(Snssai, SnssaiRejection)>),
    /// No place for another UE, or the network behind is overloaded.
    #[error("congestion")]
    Congestion,
    /// Another NF failed or did not answer.
    #[error("{0} failed")]
    Network(&'static str),
    /// Another NF refused, or there was no answer: what it said.
    #[error("{nf}: {said}")]
    Problem {
        /// Which.
        nf: &'static str,
        /// Status, cause and detail.
        said: String,
    },
    /// The UE did not answer, though asked several times: nothing more is sent.
    #[error("UE does not answer")]
    NoAnswer,
}

/// Why a UE, or the network towards it, did not prove itself (TS 24.501 5.4.1.3.5, 5.4.1.3.7; TS 33.501 6.1.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuthenticationFault {
    /// The SIM found AUTN's MAC wrong (5GMM cause #20).
    Mac,
    /// The SIM found SQN out of range again, after it was resynchronised (#21).
    Synchronisation,
    /// The SIM refused for another reason.
    Cause(GmmCause),
    /// The SIM's response is not the expected one, or EAP failed.
    WrongResponse,
    /// The home network refused: so says the AUSF.
    HomeNetwork,
}

/// What the UE is told when a registration fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RegistrationAnswer {
    /// REGISTRATION REJECT.
    Reject(GmmCause),
    /// AUTHENTICATION REJECT, with EAP-Failure if EAP was the method.
    AuthenticationReject(Option<Bytes>),
    /// Nothing.
    None,
}

impl RegistrationError {
    /// What the UE is told.
    pub fn answer(&self) -> RegistrationAnswer {
        use RegistrationAnswer::{AuthenticationReject, None, Reject};
        match self {
            // With #3 the UE would not try again before it is switched off (TS 24.501 5.5.1.2.5), though the USIM is good
            // once the network has its key: #111 for INVALID_HN_PUBLIC_KEY_IDENTIFIER (TS 29.524).
            Self::EmergencyNotSupported
            | Self::SuciNotDeconcealed
            | Self::Network(_)
            | Self::Problem { .. } => Reject(GmmCause::ProtocolErrorUnspecified),
            Self::DisasterRoamingNotSupported => Reject(GmmCause::DisasterRoamingNotAllowed),
            Self::TrackingAreaNotServed => Reject(GmmCause::NoSuitableCellsInTrackingArea),
            Self::NoSecurityCapability => Reject(GmmCause::ConditionalIeError),
            Self::SecurityCapabilityMismatch => Reject(GmmCause::UeSecurityCapabilitiesMismatch),
            Self::InvalidMandatoryInformation => Reject(GmmCause::InvalidMandatoryInformation),
            Self::NoIdentity | Self::UnknownSubscriber => Reject(GmmCause::IllegalUe),
            Self::AuthenticationFailed { eap_failure, .. } => AuthenticationReject(eap_failure.clone()),
            Self::ServicesNotAllowed => Reject(GmmCause::FiveGsServicesNotAllowed),
            Self::RoamingNotAllowed => Reject(GmmCause::PlmnNotAllowed),
            Self::RatNotAllowed => Reject(GmmCause::N1ModeNotAllowed),
            Self::ServingNetworkNotAuthorized => Reject(GmmCause::ServingNetworkNotAuthorized),
            Self::NoSlicesAvailable(_) => Reject(GmmCause::NoNetworkSlicesAvailable),
            Self::Congestion => Reject(GmmCause::Congestion),
            Self::SecurityModeRejected(_) | Self::NoAnswer => None,
        }
    }

    /// Slices that the UE is told it may not use.
    pub fn rejected_nssai(&self) -> Option<RejectedNssai> {
        match self {
            Self::NoSlicesAvailable(rejected) if !rejected.is_empty() => {
                Some(RejectedNssai(rejected.clone()))
            }
            _ => None,
        }
    }

    /// Why the NG connection is released afterwards.
    pub fn ngap_cause(&self) -> NgapCause {
        NgapCause::Nas(match self {
            Self::AuthenticationFailed { .. } => CauseNas::authentication_failure,
            Self::SecurityModeRejected(_) | Self::NoAnswer => CauseNas::unspecified,
            _ => CauseNas::normal_release,
        })
    }

    /// One word for metrics.
    pub fn outcome(&self) -> &'static str {
        match self {
            Self::EmergencyNotSupported => "emergency not supported",
            Self::DisasterRoamingNotSupported => "disaster roaming not supported",
            Self::TrackingAreaNotServed => "tracking area not served",
            Self::NoSecurityCapability | Self::InvalidMandatoryInformation => "invalid message",
            Self::SecurityCapabilityMismatch => "security capability mismatch",
            Self::NoIdentity => "no identity",
            Self::AuthenticationFailed { .. } => "authentication failed",
            Self::SecurityModeRejected(_) => "security mode rejected",
            Self::UnknownSubscriber => "unknown subscriber",
            Self::SuciNotDeconcealed => "unknown home network key",
            Self::ServicesNotAllowed | Self::RoamingNotAllowed | Self::RatNotAllowed => "not allowed",
            Self::ServingNetworkNotAuthorized => "serving network not authorized",
            Self::NoSlicesAvailable(_) => "no slices available",
            Self::Congestion => "congestion",
            Self::Network(_) | Self::Problem { .. } => "network failure",
            Self::NoAnswer => "no answer",
        }
    }

    /// What a problem of that NF means for the UE: the cause that makes it do what is called for.
    pub fn of_problem(nf: &'static str, problem: &Problem) -> Self {
        match problem.cause() {
            Some(SbiCause::UserNotFound) => Self::UnknownSubscriber,
            Some(SbiCause::UnknownFiveGsSubscription | SbiCause::NoPsSubscription) => {
                Self::ServicesNotAllowed
            }
            Some(SbiCause::RoamingNotAllowed | SbiCause::AccessNotAllowed) => Self::RoamingNotAllowed,
            Some(SbiCause::RatNotAllowed) => Self::RatNotAllowed,
            Some(SbiCause::ServingNetworkNotAuthorized) => Self::ServingNetworkNotAuthorized,
            Some(SbiCause::AuthenticationRejected) => {
                Self::AuthenticationFailed { eap_failure: None, fault: AuthenticationFault::HomeNetwork }
            }
            Some(
                SbiCause::InvalidHnPublicKeyIdentifier
                | SbiCause::InvalidSchemeOutput
                | SbiCause::UnsupportedProtectionScheme,
            ) => Self::SuciNotDeconcealed,
            Some(SbiCause::NfCongestion | SbiCause::NfCongestionRisk) => Self::Congestion,
            _ => Self::Problem { nf, said: problem.to_string() },
        }
    }
}

/// Why a service request fails (TS 24.501 5.6.1.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ServiceRequestError {
    /// The 5G-S-TMSI is not known, or the message does not pass the integrity check.
    #[error("UE identity cannot be derived by the network")]
    UnknownUe,
    /// The UE is known, but not registered.
    #[error("implicitly de-registered")]
    NotRegistered,
    /// The tracking area of the cell is not served.
    #[error("tracking area is not served")]
    TrackingAreaNotServed,
}

impl ServiceRequestError {
    /// What SERVICE REJECT says.
    pub fn cause(self) -> GmmCause {
        match self {
            Self::UnknownUe => GmmCause::UeIdentityCannotBeDerivedByTheNetwork,
            Self::NotRegistered => GmmCause::ImplicitlyDeregistered,
            Self::TrackingAreaNotServed => GmmCause::NoSuitableCellsInTrackingArea,
        }
    }
}

/// Why a payload of UL NAS TRANSPORT goes back to the UE (TS 24.501 5.4.5.2.5, 5.4.5.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TransportError {
    /// No NF takes payloads of that kind, there is no session of that identity, or its SMF failed.
    #[error("payload was not forwarded")]
    NotForwarded,
    /// The data network is not subscribed in the slice, or not served.
    #[error("DNN not supported or not subscribed in the slice")]
    DnnNotSupported,
    /// The UE has 15 sessions, or the maximum of the network.
    #[error("maximum number of PDU sessions reached")]
    TooManySessions,
}

impl TransportError {
    /// What DL NAS TRANSPORT says.
    pub fn cause(self) -> GmmCause {
        match self {
            Self::NotForwarded => GmmCause::PayloadWasNotForwarded,
            Self::DnnNotSupported => GmmCause::DnnNotSupportedOrNotSubscribedInTheSlice,
            Self::TooManySessions => GmmCause::MaximumNumberOfPduSessionsReached,
        }
    }
}

/// Why an N1N2MessageTransfer fails (TS 29.518 table 6.1.3.5.3.1-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TransferError {
    /// No UE context of that id.
    #[error("no such UE context")]
    NoContext,
    /// The UE context is there, the session is not.
    #[error("no such PDU session")]
    NoSession,
    /// A registration is in progress: try again.
    #[error("registration in progress")]
    RegistrationOngoing,
    /// The UE is in CM-IDLE, and the message is about resources that its gNB would have.
    #[error("UE in CM-IDLE")]
    Idle,
    /// The request brings nothing that can be sent.
    #[error("nothing to send")]
    Empty,
}

impl TransferError {
    /// What the sender is told.
    pub fn problem(self) -> Problem {
        match self {
            Self::NoContext | Self::NoSession => Problem::context_not_found().detail(self),
            Self::RegistrationOngoing => Problem::new(SbiCause::TemporaryRejectRegistrationOngoing),
            Self::Idle => Problem::new(SbiCause::UeInCmIdleState),
            Self::Empty => Problem::mandatory_ie_missing("n1MessageContainer"),
        }
    }
}

/// Why an NGAP message of a UE is answered with an ERROR INDICATION (TS 38.413 10.4, 10.6).
pub(crate) fn unknown_connection(amf_id_is_known: bool) -> NgapCause {
    NgapCause::RadioNetwork(match amf_id_is_known {
        true => CauseRadioNetwork::inconsistent_remote_UE_NGAP_ID,
        false => CauseRadioNetwork::unknown_local_UE_NGAP_ID,
    })
}
