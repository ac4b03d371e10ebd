//! Errors of operations (TS 29.500 5.2.7, TS 29.571 `ProblemDetails`).

use crate::http::Method;
use crate::namf_communication::{N1N2MsgTxfrErrDetail, UeContextCreateErrorData};
use crate::nnrf_accesstoken::AccessTokenErr;
use crate::npcf_smpolicycontrol::ErrorReport;
use crate::nsmf_pdusession::{SmContextCreateErrorData, SmContextUpdateErrorData};
use crate::record::{open_enum, record};
use crate::uri::Uri;
use std::fmt;
use std::sync::Arc;

open_enum! {
    /// The cause in `ProblemDetails`: the protocol errors of TS 29.500 table 5.2.7.2-1 and the application
    /// errors of the services.
    Cause {
        InvalidApi = "INVALID_API",
        InvalidMsgFormat = "INVALID_MSG_FORMAT",
        InvalidQueryParam = "INVALID_QUERY_PARAM",
        MandatoryQueryParamIncorrect = "MANDATORY_QUERY_PARAM_INCORRECT",
        OptionalQueryParamIncorrect = "OPTIONAL_QUERY_PARAM_INCORRECT",
        MandatoryQueryParamMissing = "MANDATORY_QUERY_PARAM_MISSING",
        MandatoryIeIncorrect = "MANDATORY_IE_INCORRECT",
        OptionalIeIncorrect = "OPTIONAL_IE_INCORRECT",
        MandatoryIeMissing = "MANDATORY_IE_MISSING",
        UnspecifiedMsgFailure = "UNSPECIFIED_MSG_FAILURE",
        NfDiscoveryFailure = "NF_DISCOVERY_FAILURE",
        InvalidDiscoveryParam = "INVALID_DISCOVERY_PARAM",
        ModificationNotAllowed = "MODIFICATION_NOT_ALLOWED",
        SubscriptionNotFound = "SUBSCRIPTION_NOT_FOUND",
        ResourceUriStructureNotFound = "RESOURCE_URI_STRUCTURE_NOT_FOUND",
        IncorrectLength = "INCORRECT_LENGTH",
        NfCongestionRisk = "NF_CONGESTION_RISK",
        InsufficientResources = "INSUFFICIENT_RESOURCES",
        UnspecifiedNfFailure = "UNSPECIFIED_NF_FAILURE",
        SystemFailure = "SYSTEM_FAILURE",
        NfCongestion = "NF_CONGESTION",
        TimedOutRequest = "TIMED_OUT_REQUEST",
        TargetNfNotReachable = "TARGET_NF_NOT_REACHABLE",

        /// No such resource or context.
        ContextNotFound = "CONTEXT_NOT_FOUND",
        /// The subscriber is unknown (UDM, UDR, AUSF).
        UserNotFound = "USER_NOT_FOUND",
        /// The subscriber is known, but not the requested data (UDM, UDR).
        DataNotFound = "DATA_NOT_FOUND",
        /// No answer from the upstream NF (AUSF, UDM).
        UpstreamServerError = "UPSTREAM_SERVER_ERROR",
        NetworkFailure = "NETWORK_FAILURE",

        ServingNetworkNotAuthorized = "SERVING_NETWORK_NOT_AUTHORIZED",
        AuthenticationRejected = "AUTHENTICATION_REJECTED",
        InvalidHnPublicKeyIdentifier = "INVALID_HN_PUBLIC_KEY_IDENTIFIER",
        InvalidSchemeOutput = "INVALID_SCHEME_OUTPUT",
        UnsupportedProtectionScheme = "UNSUPPORTED_PROTECTION_SCHEME",
        /// The UDM notifies no changes of the resources (UDM).
        UnsupportedResourceUri = "UNSUPPORTED_RESOURCE_URI",
        AvGenerationProblem = "AV_GENERATION_PROBLEM",

        UnknownFiveGsSubscription = "UNKNOWN_5GS_SUBSCRIPTION",
        NoPsSubscription = "NO_PS_SUBSCRIPTION",
        RoamingNotAllowed = "ROAMING_NOT_ALLOWED",
        AccessNotAllowed = "ACCESS_NOT_ALLOWED",
        RatNotAllowed = "RAT_NOT_ALLOWED",
        DnnNotAllowed = "DNN_NOT_ALLOWED",
        /// Another AMF is registered for the UE (UDM).
        InvalidGuami = "INVALID_GUAMI",
        UnprocessableRequest = "UNPROCESSABLE_REQUEST",

        N1SmError = "N1_SM_ERROR",
        N2SmError = "N2_SM_ERROR",
        SnssaiDenied = "SNSSAI_DENIED",
        DnnDenied = "DNN_DENIED",
        OutOfLadnServiceArea = "OUT_OF_LADN_SERVICE_AREA",
        PdutypeDenied = "PDUTYPE_DENIED",
        SscDenied = "SSC_DENIED",
        SubscriptionDenied = "SUBSCRIPTION_DENIED",
        DnnNotSupported = "DNN_NOT_SUPPORTED",
        PdutypeNotSupported = "PDUTYPE_NOT_SUPPORTED",
        SscNotSupported = "SSC_NOT_SUPPORTED",
        InsufficientResourcesSlice = "INSUFFICIENT_RESOURCES_SLICE",
        InsufficientResourcesSliceDnn = "INSUFFICIENT_RESOURCES_SLICE_DNN",
        DnnCongestion = "DNN_CONGESTION",
        SNssaiCongestion = "S_NSSAI_CONGESTION",
        PeerNotResponding = "PEER_NOT_RESPONDING",
        /// A later request for the session has been processed (TS 29.502 table 6.1.7.3-1).
        LateOverlappingRequest = "LATE_OVERLAPPING_REQUEST",

        IntegrityCheckFail = "INTEGRITY_CHECK_FAIL",
        HandoverFailure = "HANDOVER_FAILURE",
        UeInNonAllowedArea = "UE_IN_NON_ALLOWED_AREA",
        UeInCmIdleState = "UE_IN_CM_IDLE_STATE",
        TemporaryRejectRegistrationOngoing = "TEMPORARY_REJECT_REGISTRATION_ONGOING",
        TemporaryRejectHandoverOngoing = "TEMPORARY_REJECT_HANDOVER_ONGOING",
        UeNotReachable = "UE_NOT_REACHABLE",

        UserUnknown = "USER_UNKNOWN",
        ErrorInitialParameters = "ERROR_INITIAL_PARAMETERS",
        ErrorRequestParameters = "ERROR_REQUEST_PARAMETERS",
        ErrorTriggerEvent = "ERROR_TRIGGER_EVENT",
        PolicyContextDenied = "POLICY_CONTEXT_DENIED",
        PolicyAssociationNotFound = "POLICY_ASSOCIATION_NOT_FOUND",
        ErrorTrafficMappingInfoRejected = "ERROR_TRAFFIC_MAPPING_INFO_REJECTED",
        ErrorConflictingRequest = "ERROR_CONFLICTING_REQUEST",
        ValidationConditionNotMet = "VALIDATION_CONDITION_NOT_MET",
        /// No PCC rule of the PCF's update can be installed (SMF, TS 29.512 table 5.7.3-2).
        PccRuleEvent = "PCC_RULE_EVENT",
        /// No PCC rule or session rule of the PCF's update can be installed (SMF).
        RulePermanentError = "RULE_PERMANENT_ERROR",
        /// No PCC rule or session rule of the PCF's update can be enforced for some time (SMF).
        RuleTemporaryError = "RULE_TEMPORARY_ERROR",

        RequestedServiceNotAuthorized = "REQUESTED_SERVICE_NOT_AUTHORIZED",
        InvalidServiceInformation = "INVALID_SERVICE_INFORMATION",
        FilterRestrictions = "FILTER_RESTRICTIONS",
        RequestedServiceTemporarilyNotAuthorized = "REQUESTED_SERVICE_TEMPORARILY_NOT_AUTHORIZED",
        PduSessionNotAvailable = "PDU_SESSION_NOT_AVAILABLE",
        ApplicationSessionContextNotFound = "APPLICATION_SESSION_CONTEXT_NOT_FOUND",

        SnssaiNotSupported = "SNSSAI_NOT_SUPPORTED",
        NfNotFound = "NF_NOT_FOUND",
        SubscriptionNotAllowed = "SUBSCRIPTION_NOT_ALLOWED",
    }
}

impl Cause {
    /// The HTTP status of the cause; 400 for an unknown cause.
    pub fn status(&self) -> u16 {
        use Cause::*;
        match self {
            ModificationNotAllowed
            | ServingNetworkNotAuthorized
            | AuthenticationRejected
            | InvalidHnPublicKeyIdentifier
            | InvalidSchemeOutput
            | UnknownFiveGsSubscription
            | NoPsSubscription
            | RoamingNotAllowed
            | AccessNotAllowed
            | RatNotAllowed
            | DnnNotAllowed
            | InvalidGuami
            | N1SmError
            | N2SmError
            | SnssaiDenied
            | DnnDenied
            | OutOfLadnServiceArea
            | PdutypeDenied
            | SscDenied
            | SubscriptionDenied
            | DnnNotSupported
            | PdutypeNotSupported
            | SscNotSupported
            | LateOverlappingRequest
            | IntegrityCheckFail
            | HandoverFailure
            | UeInNonAllowedArea
            | PolicyContextDenied
            | ErrorTrafficMappingInfoRejected
            | ErrorConflictingRequest
            | ValidationConditionNotMet
            | RequestedServiceNotAuthorized
            | FilterRestrictions
            | RequestedServiceTemporarilyNotAuthorized
            | SnssaiNotSupported
            | SubscriptionNotAllowed => 403,
            SubscriptionNotFound
            | ResourceUriStructureNotFound
            | ContextNotFound
            | UserNotFound
            | DataNotFound
            | PolicyAssociationNotFound
            | ApplicationSessionContextNotFound
            | NfNotFound => 404,
            UeInCmIdleState | TemporaryRejectRegistrationOngoing | TemporaryRejectHandoverOngoing => 409,
            IncorrectLength => 411,
            UnprocessableRequest => 422,
            NfCongestionRisk => 429,
            InsufficientResources
            | UnspecifiedNfFailure
            | SystemFailure
            | PduSessionNotAvailable
            | AvGenerationProblem
            | InsufficientResourcesSlice
            | InsufficientResourcesSliceDnn => 500,
            UnsupportedProtectionScheme | UnsupportedResourceUri => 501,
            NfCongestion | DnnCongestion | SNssaiCongestion => 503,
            TimedOutRequest | TargetNfNotReachable | UpstreamServerError | NetworkFailure
            | PeerNotResponding | UeNotReachable => 504,
            _ => 400,
        }
    }
}

record! {
    /// The body of an error (RFC 9457, TS 29.571).
    ProblemDetails {
        optional {
            /// A short human-readable description.
            title: Arc<str>,
            /// The HTTP status.
            status: u16,
            /// A human-readable explanation of this occurrence.
            detail: String,
            /// The cause, for programs.
            cause: Cause,
        }
        repeated {
            /// Invalid members or parameters.
            invalid_params: Vec<InvalidParam>,
        }
    }
}

record! {
    /// An invalid member or parameter (TS 29.571).
    InvalidParam {
        required {
            /// A JSON pointer, `query name`, `header name` or `{path variable}`.
            param: String,
        }
        optional {
            /// The reason.
            reason: String,
        }
    }
}

/// The failure of an operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// HTTP status, 300 to 599.
    pub status: u16,
    /// The body, or the part of it that all errors share.
    pub details: ProblemDetails,
    /// Additional data of some errors.
    pub more: Option<ProblemMore>,
}

/// Error data beyond `ProblemDetails`.
#[derive(Debug, Clone, PartialEq)]
pub enum ProblemMore {
    /// Nsmf_PDUSession CreateSMContext: messages for the UE and the gNB.
    SmContextCreateError(Box<SmContextCreateErrorData>),
    /// Nsmf_PDUSession UpdateSMContext: messages for the UE and the gNB.
    SmContextUpdateError(Box<SmContextUpdateErrorData>),
    /// Namf_Communication N1N2MessageTransfer: retry information.
    N1N2MessageTransferError(Box<N1N2MsgTxfrErrDetail>),
    /// Namf_Communication CreateUEContext: the cause for the source gNB.
    UeContextCreateError(Box<UeContextCreateErrorData>),
    /// Npcf_SMPolicyControl UpdateNotify: the rules that the SMF does not enforce.
    SmPolicyUpdateNotifyError(Box<ErrorReport>),
    /// Nnrf_AccessToken: the error of OAuth 2.0.
    AccessTokenErr(Box<AccessTokenErr>),
    /// 405: the methods of the resource (`Allow`).
    Allow(Vec<Method>),
    /// 429 and 503: seconds until the next attempt (`Retry-After`).
    RetryAfter(u32),
    /// 401 and 403: the requirements for the access token (`WWW-Authenticate`).
    Challenge(Challenge),
    /// 307 and 308: the new target (`Location`).
    Redirect(Uri),
}

/// A producer's challenge for an access token (RFC 6750 3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// The error of the token; `None` if there was no token.
    pub error: Option<ChallengeError>,
    /// The required scope.
    pub scope: Option<Arc<str>>,
}

open_enum! {
    /// Errors of an access token (RFC 6750 3.1).
    ChallengeError {
        InvalidRequest = "invalid_request",
        InvalidToken = "invalid_token",
        InsufficientScope = "insufficient_scope",
    }
}

impl Challenge {
    /// The value for `WWW-Authenticate`.
    pub fn header(&self) -> String {
        let mut text = String::from("Bearer realm=\"5GC\"");
        if let Some(error) = &self.error {
            text.push_str(&format!(", error=\"{error}\""));
        }
        if let Some(scope) = &self.scope {
            text.push_str(&format!(", scope=\"{scope}\""));
        }
        text
    }

    /// Parses the header; `None` for another scheme.
    pub fn read(header: &str) -> Option<Self> {
        let (scheme, parameters) = header.split_once(' ').unwrap_or((header, ""));
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let value = |wanted: &str| {
            parameters.split(',').find_map(|parameter| {
                let (name, value) = parameter.split_once('=')?;
                (name.trim() == wanted).then(|| value.trim().trim_matches('"'))
            })
        };
        Some(Self { error: value("error").map(Into::into), scope: value("scope").map(Into::into) })
    }
}

impl Problem {
    /// Whether the peer refused the access token, so that a new one may be accepted (RFC 6750 3.1).
    pub fn is_invalid_token(&self) -> bool {
        let invalid = |challenge: &Challenge| challenge.error != Some(ChallengeError::InvalidRequest);
        self.status == 401
            && matches!(&self.more, Some(ProblemMore::Challenge(challenge)) if invalid(challenge))
    }

    /// The NRF's reason for refusing an access token.
    pub fn access_token_error(&self) -> Option<String> {
        let Some(ProblemMore::AccessTokenErr(error)) = &self.more else { return None };
        let description = error.error_description.as_deref();
        Some(description.map_or_else(|| error.error.to_string(), |text| format!("{}: {text}", error.error)))
    }

    /// A problem with a cause and its status.
    pub fn new(cause: Cause) -> Self {
        let mut problem = Self::of_status(cause.status());
        problem.details.cause = Some(cause);
        problem
    }

    /// A problem with a status and no cause.
    pub fn of_status(status: u16) -> Self {
        let details = ProblemDetails { status: Some(status), ..ProblemDetails::default() };
        Self { status, details, more: None }
    }

    /// A required member, path variable or part is invalid (400).
    pub fn mandatory_ie_incorrect(param: &str, reason: impl fmt::Display) -> Self {
        Self::new(Cause::MandatoryIeIncorrect).param(param, reason)
    }

    /// A required member or part is missing (400).
    pub fn mandatory_ie_missing(param: &str) -> Self {
        Self::new(Cause::MandatoryIeMissing).param(param, "missing")
    }

    /// No such context (404).
    pub fn context_not_found() -> Self {
        Self::new(Cause::ContextNotFound)
    }

    /// No such subscriber (404).
    pub fn user_not_found() -> Self {
        Self::new(Cause::UserNotFound)
    }

    /// No such data of a subscriber (404).
    pub fn data_not_found() -> Self {
        Self::new(Cause::DataNotFound)
    }

    /// An internal error of the server (500).
    pub fn system_failure(detail: impl fmt::Display) -> Self {
        Self::new(Cause::SystemFailure).detail(detail)
    }

    /// Overload; the client should retry after this number of seconds (503).
    pub fn congestion(retry_after_s: u32) -> Self {
        let mut problem = Self::new(Cause::NfCongestion);
        problem.more = Some(ProblemMore::RetryAfter(retry_after_s));
        problem
    }

    /// No answer in time (504).
    pub fn timed_out() -> Self {
        Self::new(Cause::TimedOutRequest)
    }

    /// No instance of the NF is reachable (504).
    pub fn not_reachable(detail: impl fmt::Display) -> Self {
        Self::new(Cause::TargetNfNotReachable).detail(detail)
    }

    /// Adds details of this occurrence.
    #[must_use]
    pub fn detail(mut self, detail: impl fmt::Display) -> Self {
        self.details.detail = Some(detail.to_string());
        self
    }

    /// Adds an invalid member or parameter.
    #[must_use]
    pub fn param(mut self, param: &str, reason: impl fmt::Display) -> Self {
        let reason = Some(reason.to_string());
        self.details.invalid_params.push(InvalidParam { param: param.into(), reason });
        self
    }

    /// Adds data beyond `ProblemDetails`.
    #[must_use]
    pub fn with(mut self, more: ProblemMore) -> Self {
        self.more = Some(more);
        self
    }

    /// The cause, if the peer provided one.
    pub fn cause(&self) -> Option<&Cause> {
        self.details.cause.as_ref()
    }

    /// Whether the problem has this cause.
    pub fn is(&self, cause: &Cause) -> bool {
        self.cause() == Some(cause)
    }

    /// Whether the NF, or one that it requests, does not answer, or not for some time: a later request may succeed. An NF that fails in the request
    /// (500) may do so each time.
    pub fn may_pass(&self) -> bool {
        matches!(self.status, 503 | 504) || self.is(&Cause::NfDiscoveryFailure)
    }
}

/// For the log. Peers also put subscribers' identities into the detail: these are masked.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status)?;
        if let Some(cause) = self.cause() {
            write!(f, " {cause}")?;
        }
        if let Some(detail) = &self.details.detail {
            write!(f, ": {}", crate::masked(detail))?;
        }
        let wrong = self.details.invalid_params.iter();
        for InvalidParam { param, reason } in wrong {
            write!(f, "; {param}: {}", reason.as_deref().unwrap_or("wrong"))?;
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}

impl From<Cause> for Problem {
    fn from(cause: Cause) -> Self {
        Self::new(cause)
    }
}

impl From<Cause> for Box<Problem> {
    fn from(cause: Cause) -> Self {
        Self::new(Problem::new(cause))
    }
}
