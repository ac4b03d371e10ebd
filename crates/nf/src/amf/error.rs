//! Why procedures fail, and what each failure means for the UE, the gNB or the NF that sent the request.

use bytes::Bytes;
use pith_nas::GmmCause;
use pith_nas::ie::{RejectedNssai, SnssaiRejection};
use pith_ngap::{Cause as NgapCause, CauseNas, CauseRadioNetwork};
use pith_sbi::{Cause as SbiCause, Operation, Problem};
use pith_types::Snssai;

/// Why a registration fails (TS 24.501 5.5.1.2.5, 5.5.1.3.5).
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum RegistrationError {
    /// Emergency registration, without `emergency` in the configuration.
    #[error("emergency services are not supported")]
    EmergencyNotSupported,
    /// The AMF does not serve UEs that register for emergency services with their PEI.
    #[error("PEI not accepted")]
    PeiNotAccepted,
    /// Disaster roaming, which this AMF does not support.
    #[error("disaster roaming is not supported")]
    DisasterRoamingNotSupported,
    /// Onboarding in a stand-alone non-public network, which this AMF does not support.
    #[error("onboarding is not supported")]
    OnboardingNotSupported,
    /// The tracking area of the cell is not served.
    #[error("tracking area is not served")]
    TrackingAreaNotServed,
    /// The request has no UE security capability, and none is stored.
    #[error("no UE security capability")]
    NoSecurityCapability,
    /// UE and AMF have no integrity or ciphering algorithm in common, or the capability in the
    /// protected request differs from the one in the initial message.
    #[error("UE security capabilities mismatch")]
    SecurityCapabilityMismatch,
    /// A mandatory IE is invalid.
    #[error("invalid mandatory information")]
    InvalidMandatoryInformation,
    /// The SUPI is not an IMSI, or the UE sent no identity in response to IDENTITY REQUEST.
    #[error("no usable identity")]
    NoIdentity,
    /// The same in an update of a registration: the network does not know whose it is.
    #[error("UE identity cannot be derived by the network")]
    UnknownUe,
    /// Authentication failed, twice if the UE registered with a 5G-GUTI: AUTHENTICATION REJECT.
    #[error("authentication failed")]
    AuthenticationFailed {
        /// EAP-Failure, if EAP was the method.
        eap_failure: Option<Bytes>,
        fault: AuthenticationFault,
    },
    /// AUTHENTICATION FAILURE with a cause that says nothing of UE or network: the network treats it as #111 (TS 24.501 9.11.3.2).
    #[error("the UE refused the authentication: {0}")]
    AuthenticationRefused(GmmCause),
    /// The UE refused the SECURITY MODE COMMAND.
    #[error("UE rejected security mode: {0}")]
    SecurityModeRejected(GmmCause),
    /// The home network does not know the subscriber.
    #[error("unknown subscriber")]
    UnknownSubscriber,
    /// The subscriber is of another home network, which no NF here knows.
    #[error("subscriber of another home network")]
    ForeignSubscriber,
    /// The home network can't de-conceal the SUCI: the key is unknown or does not match.
    #[error("SUCI can't be de-concealed")]
    SuciNotDeconcealed,
    /// The subscription has no 5GS service.
    #[error("5GS services not allowed")]
    ServicesNotAllowed,
    /// The subscriber may not use this serving network.
    #[error("roaming not allowed")]
    RoamingNotAllowed,
    /// The subscriber may not use this radio access technology.
    #[error("radio access technology not allowed")]
    RatNotAllowed,
    /// The tracking area is a forbidden area of the subscription.
    #[error("tracking area is forbidden by the subscription")]
    ForbiddenArea,
    /// The home network does not accept this serving network.
    #[error("serving network not authorized")]
    ServingNetworkNotAuthorized,
    /// None of the UE's slices is served here.
    #[error("no network slices available")]
    NoSlicesAvailable(Vec<(Snssai, SnssaiRejection)>),
    /// The limit of UE contexts is reached, or an NF reports overload.
    #[error("congestion")]
    Congestion,
    /// The AMF that served the UE is gone, and this one does not have its context yet.
    #[error("the UE's context is not available yet")]
    AwaitsOwner,
    /// Another NF's answer to that operation is none of those that it has.
    #[error("{} sent an unexpected reply", .0.name())]
    WrongAnswer(Operation),
    /// Another NF refused the request or did not answer.
    #[error("{} failed: {said}", operation.name())]
    Problem {
        operation: Operation,
        /// There is no answer (504), rather than one that refuses.
        is_unanswered: bool,
        /// Status, cause and detail.
        said: String,
    },
    /// The UE did not answer after all retransmissions: nothing more is sent.
    #[error("UE does not answer")]
    NoAnswer,
    /// The AMF to which the UE was passed on did not answer: it may serve the UE.
    #[error("the AMF to which the UE was passed on does not answer")]
    ReallocationUnanswered,
}

/// Why authentication failed (TS 24.501 5.4.1.3.5, 5.4.1.3.7; TS 33.501 6.1.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuthenticationFault {
    /// The USIM found AUTN's MAC wrong (5GMM cause #20).
    Mac,
    /// The USIM found SQN out of range again after a resynchronisation (#21).
    Synchronisation,
    /// The UE refused for another reason that is defined for authentication (#26, #71).
    Cause(GmmCause),
    /// RES* does not match, or EAP failed.
    WrongResponse,
    /// The AUSF reports that the home network refused.
    HomeNetwork,
}

/// The answer to the UE when a registration fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RegistrationAnswer {
    /// REGISTRATION REJECT.
    Reject(GmmCause),
    /// AUTHENTICATION REJECT, with EAP-Failure if EAP was the method.
    AuthenticationReject(Option<Bytes>),
    /// No answer.
    None,
}

impl RegistrationError {
    pub fn answer(&self) -> RegistrationAnswer {
        use RegistrationAnswer::{AuthenticationReject, None, Reject};
        match self {
            // #3 would keep the UE from trying again until it is switched off (TS 24.501 5.5.1.2.5), although the USIM is valid once the network has its key. TS 29.524 maps INVALID_HN_PUBLIC_KEY_IDENTIFIER to #111.
            Self::EmergencyNotSupported
            | Self::OnboardingNotSupported
            | Self::SuciNotDeconcealed
            // After AUTHENTICATION REJECT the USIM would be invalid until it is removed or the UE is switched off (TS 24.501 5.4.1.3.5).
            | Self::AuthenticationRefused(_)
            | Self::WrongAnswer(_)
            | Self::Problem { .. } => Reject(GmmCause::ProtocolErrorUnspecified),
            Self::PeiNotAccepted => Reject(GmmCause::PeiNotAccepted),
            Self::DisasterRoamingNotSupported => Reject(GmmCause::DisasterRoamingNotAllowed),
            Self::TrackingAreaNotServed => Reject(GmmCause::NoSuitableCellsInTrackingArea),
            Self::NoSecurityCapability => Reject(GmmCause::ConditionalIeError),
            Self::SecurityCapabilityMismatch => Reject(GmmCause::UeSecurityCapabilitiesMismatch),
            Self::InvalidMandatoryInformation => Reject(GmmCause::InvalidMandatoryInformation),
            Self::NoIdentity | Self::UnknownSubscriber => Reject(GmmCause::IllegalUe),
            Self::UnknownUe => Reject(GmmCause::UeIdentityCannotBeDerivedByTheNetwork),
            Self::AuthenticationFailed { eap_failure, .. } => AuthenticationReject(eap_failure.clone()),
            Self::ServicesNotAllowed => Reject(GmmCause::FiveGsServicesNotAllowed),
            // #3 would keep the UE from its own network, too (TS 24.501 5.5.1.2.5, A.2).
            Self::RoamingNotAllowed | Self::ForeignSubscriber => Reject(GmmCause::PlmnNotAllowed),
            Self::RatNotAllowed => Reject(GmmCause::N1ModeNotAllowed),
            Self::ForbiddenArea => Reject(GmmCause::TrackingAreaNotAllowed),
            Self::ServingNetworkNotAuthorized => Reject(GmmCause::ServingNetworkNotAuthorized),
            Self::NoSlicesAvailable(_) => Reject(GmmCause::NoNetworkSlicesAvailable),
            Self::Congestion | Self::AwaitsOwner => Reject(GmmCause::Congestion),
            Self::SecurityModeRejected(_) | Self::NoAnswer | Self::ReallocationUnanswered => None,
        }
    }

    /// Rejected NSSAI for the answer.
    pub fn rejected_nssai(&self) -> Option<RejectedNssai> {
        match self {
            Self::NoSlicesAvailable(rejected) if !rejected.is_empty() => {
                Some(RejectedNssai(rejected.clone()))
            }
            _ => None,
        }
    }

    /// Cause of the release of the NG connection that follows.
    pub fn ngap_cause(&self) -> NgapCause {
        NgapCause::Nas(match self {
            Self::AuthenticationFailed { .. } | Self::AuthenticationRefused(_) => {
                CauseNas::authentication_failure
            }
            Self::SecurityModeRejected(_) | Self::NoAnswer | Self::ReallocationUnanswered => {
                CauseNas::unspecified
            }
            _ => CauseNas::normal_release,
        })
    }

    /// Outcome label in metrics.
    pub fn outcome(&self) -> &'static str {
        match self {
            Self::EmergencyNotSupported => "emergency not supported",
            Self::PeiNotAccepted => "PEI not accepted",
            Self::DisasterRoamingNotSupported => "disaster roaming not supported",
            Self::OnboardingNotSupported => "onboarding not supported",
            Self::TrackingAreaNotServed => "tracking area not served",
            Self::NoSecurityCapability | Self::InvalidMandatoryInformation => "invalid message",
            Self::SecurityCapabilityMismatch => "security capability mismatch",
            Self::NoIdentity | Self::UnknownUe => "no identity",
            Self::AuthenticationFailed { .. } | Self::AuthenticationRefused(_) => "authentication failed",
            Self::SecurityModeRejected(_) => "security mode rejected",
            Self::UnknownSubscriber | Self::ForeignSubscriber => "unknown subscriber",
            Self::SuciNotDeconcealed => "unknown home network key",
            Self::ServicesNotAllowed
            | Self::RoamingNotAllowed
            | Self::RatNotAllowed
            | Self::ForbiddenArea => "not allowed",
            Self::ServingNetworkNotAuthorized => "serving network not authorized",
            Self::NoSlicesAvailable(_) => "no slices available",
            Self::Congestion => "congestion",
            Self::AwaitsOwner => "context not available",
            Self::WrongAnswer(_) => "wrong answer of an NF",
            Self::Problem { is_unanswered: true, .. } | Self::ReallocationUnanswered => "no answer of an NF",
            Self::Problem { .. } => "refused by an NF",
            Self::NoAnswer => "no answer",
        }
    }

    /// Maps an NF's error to a registration error, and so to the cause that makes the UE react as
    /// TS 24.501 requires.
    pub fn of_problem(operation: Operation, problem: &Problem) -> Self {
        match problem.cause() {
            Some(SbiCause::UserNotFound) => Self::UnknownSubscriber,
            Some(SbiCause::UnknownFiveGsSubscription | SbiCause::NoPsSubscription) => {
                Self::ServicesNotAllowed
            }
            Some(SbiCause::RoamingNotAllowed | SbiCause::AccessNotAllowed) => Self::RoamingNotAllowed,
            // As if the answer had no data.
            Some(SbiCause::DataNotFound) if operation == Operation::GetDataSets => Self::ServicesNotAllowed,
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
            _ => Self::Problem { operation, is_unanswered: problem.status == 504, said: problem.to_string() },
        }
    }
}

/// Why a service request fails (TS 24.501 5.6.1.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ServiceRequestError {
    /// The 5G-S-TMSI is not known, or the message fails the integrity check.
    #[error("UE identity cannot be derived by the network")]
    UnknownUe,
    /// The UE is known, but not registered.
    #[error("implicitly de-registered")]
    NotRegistered,
    /// The tracking area of the cell is not served.
    #[error("tracking area is not served")]
    TrackingAreaNotServed,
    /// The AMF that served the UE is gone, and this one does not have its context yet.
    #[error("the UE's context is not available yet")]
    AwaitsOwner,
    /// The tracking area is forbidden by the subscription.
    #[error("tracking area is forbidden by the subscription")]
    ForbiddenArea,
    /// The UE is outside its service area.
    #[error("outside the service area")]
    RestrictedServiceArea,
}

impl ServiceRequestError {
    /// 5GMM cause of SERVICE REJECT.
    pub fn cause(self) -> GmmCause {
        match self {
            Self::UnknownUe => GmmCause::UeIdentityCannotBeDerivedByTheNetwork,
            Self::NotRegistered => GmmCause::ImplicitlyDeregistered,
            Self::TrackingAreaNotServed | Self::ForbiddenArea => GmmCause::NoSuitableCellsInTrackingArea,
            Self::AwaitsOwner => GmmCause::Congestion,
            Self::RestrictedServiceArea => GmmCause::RestrictedServiceArea,
        }
    }
}

/// Why the AMF returns the payload of UL NAS TRANSPORT to the UE (TS 24.501 5.4.5.2.5, 5.4.5.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TransportError {
    /// No NF takes payloads of that type, there is no such session, or the SMF failed.
    #[error("payload was not forwarded")]
    NotForwarded,
    /// The data network is not subscribed in the slice, or not served.
    #[error("DNN not supported or not subscribed in the slice")]
    DnnNotSupported,
    /// The UE has 15 sessions, or as many as the network permits.
    #[error("maximum number of PDU sessions reached")]
    TooManySessions,
    /// The UE is outside its service area.
    #[error("outside the service area")]
    RestrictedServiceArea,
}

impl TransportError {
    /// 5GMM cause of DL NAS TRANSPORT.
    pub fn cause(self) -> GmmCause {
        match self {
            Self::NotForwarded => GmmCause::PayloadWasNotForwarded,
            Self::DnnNotSupported => GmmCause::DnnNotSupportedOrNotSubscribedInTheSlice,
            Self::TooManySessions => GmmCause::MaximumNumberOfPduSessionsReached,
            Self::RestrictedServiceArea => GmmCause::RestrictedServiceArea,
        }
    }
}

/// Why an N1N2MessageTransfer fails (TS 29.518 table 6.1.3.5.3.1-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TransferError {
    #[error("no such UE context")]
    NoContext,
    /// The UE context exists, the session does not.
    #[error("no such PDU session")]
    NoSession,
    /// Another SMF than the session's.
    #[error("the PDU session belongs to another SMF")]
    OtherSmf,
    /// A registration is in progress: try again.
    #[error("registration in progress")]
    RegistrationOngoing,
    /// A handover is in progress: the SMF may try again after it (TS 23.502 4.9.1.2.1, 4.9.1.3.1).
    #[error("handover in progress")]
    HandoverOngoing,
    /// The UE is in CM-IDLE, and the message is about resources that only a gNB of a connected UE has.
    #[error("UE in CM-IDLE")]
    Idle,
    /// The UE is in MICO mode, and in CM-IDLE (TS 23.501 5.4.1.3).
    #[error("UE in MICO mode")]
    NotReachable,
    /// The UE is outside its service area: it is only reachable for regulatory prioritized services (TS 23.502 4.2.3.3 step 3).
    #[error("UE outside its service area")]
    NonAllowedArea,
    /// Too many messages are queued for the UE, which is being paged.
    #[error("too many messages are queued for this UE")]
    QueueFull,
    /// The request has no content that can be sent.
    #[error("nothing to send")]
    Empty,
    /// An N1 message for a session that is not named.
    #[error("the message is of no PDU session")]
    NoSessionId,
    /// Information for the target gNB of a handover that is not prepared, or not with that AMF.
    #[error("no handover from this AMF is prepared")]
    NoHandover,
    /// Information for the target gNB that is no RAN status.
    #[error("not the status of a RAN")]
    WrongStatus,
    /// An N1 message of another class than session management, which this AMF does not forward.
    #[error("only N1 messages of class SM are supported")]
    OtherClass,
    /// N2 information that is neither for a session nor for the target gNB of a handover.
    #[error("only N2 information of classes SM and RAN is supported")]
    OtherN2Class,
    /// N2 information that is no request for a gNB.
    #[error("N2 information for a gNB is PDU_RES_SETUP_REQ, PDU_RES_MOD_REQ or PDU_RES_REL_CMD")]
    OtherInformation,
    /// The message and its N2 information name different sessions.
    #[error("not the session of the message")]
    OtherSession,
}

impl TransferError {
    /// The error response to the sender.
    pub fn problem(self) -> Problem {
        match self {
            Self::NoContext | Self::NoSession | Self::NoHandover => Problem::context_not_found().detail(self),
            Self::OtherSmf => Problem::of_status(403).detail(self),
            Self::RegistrationOngoing => Problem::new(SbiCause::TemporaryRejectRegistrationOngoing),
            Self::HandoverOngoing => Problem::new(SbiCause::TemporaryRejectHandoverOngoing),
            Self::Idle => Problem::new(SbiCause::UeInCmIdleState),
            Self::NotReachable => Problem::new(SbiCause::UeNotReachable).detail(self),
            Self::NonAllowedArea => Problem::new(SbiCause::UeInNonAllowedArea),
            Self::QueueFull => Problem::new(SbiCause::NfCongestion).detail(self),
            Self::Empty => Problem::mandatory_ie_missing("n1MessageContainer"),
            Self::NoSessionId => Problem::mandatory_ie_missing("pduSessionId"),
            Self::WrongStatus => Problem::mandatory_ie_incorrect("/n2InfoContainer/ranInfo", self),
            Self::OtherClass | Self::OtherN2Class => Problem::of_status(501).detail(self),
            Self::OtherInformation => {
                Problem::mandatory_ie_incorrect("/n2InfoContainer/smInfo/n2InfoContent/ngapIeType", self)
            }
            Self::OtherSession => {
                Problem::mandatory_ie_incorrect("/n2InfoContainer/smInfo/pduSessionId", self)
            }
        }
    }
}

/// Cause of the ERROR INDICATION for an NGAP message with unknown UE ids (TS 38.413 10.4, 10.6).
pub(crate) fn unknown_connection(amf_id_is_known: bool) -> NgapCause {
    NgapCause::RadioNetwork(if amf_id_is_known {
        CauseRadioNetwork::inconsistent_remote_UE_NGAP_ID
    } else {
        CauseRadioNetwork::unknown_local_UE_NGAP_ID
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_names_operation_status_and_cause_of_an_nf_that_fails() {
        let late = Problem::new(SbiCause::TimedOutRequest).detail("no answer in 2 s");
        let error = RegistrationError::of_problem(Operation::GetDataSets, &late);
        assert_eq!(error.to_string(), "Nudm_SDM_Get failed: 504 TIMED_OUT_REQUEST: no answer in 2 s");
        assert_eq!(error.outcome(), "no answer of an NF");
        let broken = Problem::new(SbiCause::SystemFailure);
        let error = RegistrationError::of_problem(Operation::ThreeGppRegistration, &broken);
        assert_eq!(error.to_string(), "Nudm_UECM_Registration failed: 500 SYSTEM_FAILURE");
        assert_eq!(error.outcome(), "refused by an NF");
        let missing = Problem::data_not_found();
        let error = RegistrationError::of_problem(Operation::GetDataSets, &missing);
        assert_eq!(error, RegistrationError::ServicesNotAllowed);
    }
}
