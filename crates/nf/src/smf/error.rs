//! Reasons to refuse a session, and the causes that UE and AMF receive (TS 24.501 6.4.1.4; TS 29.502 6.1.3.2.3.1).

use pith_nas::GsmCause;
use pith_nas::NasError;
use pith_sbi::{Cause, Operation, Problem};
use std::net::IpAddr;

/// The reason why no session is established.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum EstablishmentError {
    /// No SMF of this network serves the data network in the slice.
    #[error("data network {asked} is not served: 'smf.data_networks' has {served}")]
    UnknownDnnInSlice {
        /// DNN and slice that the UE requested.
        asked: String,
        /// Those that are configured.
        served: String,
    },
    /// The subscription does not contain the data network.
    #[error("data network {asked} is not subscribed: the subscription has {}", or_none(.subscribed))]
    NotSubscribed {
        /// DNN and slice that the UE requested.
        asked: String,
        /// Those that are subscribed.
        subscribed: String,
    },
    /// The subscription allows only PDU session types that the data network does not have.
    #[error("the subscription allows no PDU session type of the data network")]
    NoIpSubscribed,
    /// The data network or the subscription has IPv4 only.
    #[error("only IPv4 sessions are served: the data network has no 'pool6', or the subscription no IPv6")]
    OnlyIpv4,
    /// The subscription allows IPv6 only.
    #[error("the subscription allows IPv6 sessions only")]
    OnlyIpv6,
    /// A PDU session type without IP.
    #[error("only IPv4, IPv6 and IPv4v6 sessions are served")]
    OnlyIp,
    /// A PDU session type that TS 24.501 does not define.
    #[error("the PDU session type is unknown")]
    UnknownSessionType,
    /// The SMF supports SSC mode 1 only.
    #[error("only SSC mode 1 is served")]
    SscMode,
    /// The 5GSM message is wrong.
    #[error("the 5GSM message is wrong: {0}")]
    Message(NasError),
    /// The 5GSM message is no PDU SESSION ESTABLISHMENT REQUEST, or SUPI, DNN or slice are missing.
    #[error("the request is no complete PDU SESSION ESTABLISHMENT REQUEST")]
    WrongMessage,
    /// A LADN session of a UE that is outside the service area, or of which the AMF does not say that it is inside.
    #[error("the UE is outside the service area of the local area data network")]
    OutsideLadn,
    /// The request has no PTI (TS 24.501 7.3.1).
    #[error("the request has no procedure transaction identity")]
    UnassignedPti,
    /// The request names another session than the AMF (TS 24.501 7.3.2).
    #[error("the request is one for another session")]
    OtherIdentity,
    /// The request has no PDU session identity (TS 24.501 9.4: 0). The decoder has refused the reserved ones.
    #[error("the request has no PDU session identity, which is 1 to 15")]
    UnassignedIdentity,
    /// A session over non-3GPP access, which this SMF does not support.
    #[error("only 3GPP access is served")]
    OtherAccess,
    /// The UE wants to transfer a session from another access or from EPS, which this SMF does not support.
    #[error("the session that the UE wants to transfer does not exist")]
    NoSession,
    /// An emergency session that is not configured.
    #[error("emergency sessions with that data network and slice are not configured ('amf.emergency')")]
    NoEmergencyServices,
    /// The data network is to authenticate the UE, which this SMF does not do.
    #[error("the subscription requires authentication by the data network, which is not supported")]
    SecondaryAuthentication,
    /// The subscribed static addresses or framed routes do not fit the data network, or are malformed.
    #[error("{0}")]
    Addressing(String),
    /// Another session has the subscribed static address.
    #[error("another session has the subscribed static address {0}")]
    StaticAddressInUse(IpAddr),
    /// No UE address or SM context is free.
    #[error("no UE address or context is left")]
    Resources,
    /// No UPF is available, or all refuse.
    #[error("no UPF accepts the session: {0}")]
    UserPlane(String),
    /// The gNB refuses the session's resources.
    #[error("the gNB has no resources for the session")]
    Radio,
    /// An operation of UDM, PCF or AMF failed.
    #[error("another NF failed: {0}")]
    Network(String),
    /// UDM or PCF refused with a cause that maps to a 5GSM cause.
    #[error("{} refused: {said}", operation.name())]
    Refused {
        operation: Operation,
        gsm: GsmCause,
        /// Status, cause and detail.
        said: String,
    },
}

impl EstablishmentError {
    /// Maps the error response of UDM or PCF.
    pub(super) fn of_problem(operation: Operation, problem: &Problem) -> Self {
        match problem.cause().and_then(gsm_cause_of) {
            Some(gsm) => Self::Refused { operation, gsm, said: problem.to_string() },
            None => Self::Network(format!("{} failed: {problem}", operation.name())),
        }
    }

    /// The cause for the UE (TS 24.501 table 9.11.4.2.1).
    pub(super) fn gsm_cause(&self) -> GsmCause {
        match self {
            Self::UnknownDnnInSlice { .. } => GsmCause::MissingOrUnknownDnnInASlice,
            Self::NotSubscribed { .. } | Self::NoIpSubscribed => {
                GsmCause::RequestedServiceOptionNotSubscribed
            }
            Self::OnlyIpv4 => GsmCause::PduSessionTypeIpv4OnlyAllowed,
            Self::OnlyIpv6 => GsmCause::PduSessionTypeIpv6OnlyAllowed,
            Self::OnlyIp => GsmCause::PduSessionTypeIpv4v6OnlyAllowed,
            Self::UnknownSessionType => GsmCause::UnknownPduSessionType,
            Self::SscMode => GsmCause::NotSupportedSscMode,
            Self::Message(error) => error.gsm_cause().unwrap_or(GsmCause::ProtocolErrorUnspecified),
            Self::WrongMessage => GsmCause::MessageTypeNotCompatibleWithTheProtocolState,
            Self::OutsideLadn => GsmCause::OutOfLadnServiceArea,
            Self::UnassignedPti => GsmCause::InvalidPtiValue,
            Self::OtherIdentity | Self::UnassignedIdentity => GsmCause::InvalidPduSessionIdentity,
            Self::NoSession => GsmCause::PduSessionDoesNotExist,
            // Neither time nor another request helps, as with 'insufficient resources': the operator must correct the subscription.
            Self::NoEmergencyServices | Self::Addressing(_) | Self::OtherAccess => {
                GsmCause::RequestRejectedUnspecified
            }
            Self::SecondaryAuthentication => GsmCause::UserAuthenticationOrAuthorizationFailed,
            Self::Resources | Self::StaticAddressInUse(_) | Self::UserPlane(_) | Self::Radio => {
                GsmCause::InsufficientResources
            }
            Self::Network(_) => GsmCause::NetworkFailure,
            Self::Refused { gsm, .. } => *gsm,
        }
    }

    /// The cause for the AMF.
    pub(super) fn cause(&self) -> Cause {
        match self {
            Self::UnknownDnnInSlice { .. } | Self::NoEmergencyServices => Cause::DnnNotSupported,
            Self::NotSubscribed { .. }
            | Self::NoIpSubscribed
            | Self::SecondaryAuthentication
            | Self::Addressing(_) => Cause::SubscriptionDenied,
            Self::OnlyIpv4 | Self::OnlyIpv6 | Self::OnlyIp | Self::UnknownSessionType => {
                Cause::PdutypeNotSupported
            }
            Self::SscMode => Cause::SscNotSupported,
            Self::OutsideLadn => Cause::OutOfLadnServiceArea,
            Self::UnassignedIdentity | Self::OtherAccess => Cause::MandatoryIeIncorrect,
            Self::NoSession => Cause::ContextNotFound,
            Self::Message(_) | Self::WrongMessage | Self::UnassignedPti | Self::OtherIdentity => {
                Cause::N1SmError
            }
            Self::Resources | Self::StaticAddressInUse(_) | Self::UserPlane(_) | Self::Radio => {
                Cause::InsufficientResources
            }
            Self::Network(_) => Cause::NetworkFailure,
            Self::Refused { gsm: GsmCause::MissingOrUnknownDnn, .. } => Cause::DnnDenied,
            Self::Refused { gsm: GsmCause::InsufficientResourcesForSpecificSliceAndDnn, .. } => {
                Cause::InsufficientResourcesSliceDnn
            }
            Self::Refused { .. } => Cause::SubscriptionDenied,
        }
    }
}

/// 5GSM causes of application errors: of the PCF by TS 29.524 table 5.2.2.2-1, of the UDM by clause 5.3.
fn gsm_cause_of(cause: &Cause) -> Option<GsmCause> {
    Some(match cause {
        Cause::UserUnknown
        | Cause::ErrorTrafficMappingInfoRejected
        | Cause::PolicyContextDenied
        | Cause::ValidationConditionNotMet
        | Cause::RoamingNotAllowed
        | Cause::UserNotFound => GsmCause::UserAuthenticationOrAuthorizationFailed,
        Cause::ErrorInitialParameters | Cause::ErrorTriggerEvent => GsmCause::RequestRejectedUnspecified,
        Cause::ErrorConflictingRequest => GsmCause::InsufficientResourcesForSpecificSliceAndDnn,
        Cause::DnnNotAllowed => GsmCause::MissingOrUnknownDnn,
        _ => return None,
    })
}

fn or_none(list: &str) -> &str {
    if list.is_empty() { "none in this slice" } else { list }
}

/// The reason why a session's path is not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BranchingError {
    /// The session is being established or changed.
    #[error("the session is changing: try again in a moment")]
    Busy,
    /// The rules of N9 do not tell QoS flows apart.
    #[error("the session has tunnels to several gNBs (dual connectivity)")]
    SeveralTunnels,
    /// A session can have one classifier only.
    #[error("there is already a UPF between gNB and anchor: 'pith session unbranch' removes a classifier")]
    HasFront,
    /// A session with a second UPF has no PCC rules.
    #[error("the session has QoS flows of its PCF, which a session with a classifier can't have")]
    HasRules,
    /// The session has no classifier to remove.
    #[error("the session has no classifier")]
    NoClassifier,
    /// The gNB reaches the anchor only through this UPF.
    #[error("the gNB does not reach the session's anchor without that UPF")]
    IsNeeded,
    /// The UPF can't be the classifier.
    #[error(transparent)]
    Upf(#[from] super::selection::NoClassifier),
}
