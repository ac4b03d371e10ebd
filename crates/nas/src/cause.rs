//! Cause values: 5GMM (TS 24.501 9.11.3.2) and 5GSM (9.11.4.2).

use crate::wire::coded;
use std::fmt;

coded! {
    /// 5GMM cause (TS 24.501 Table 9.11.3.2.1, Annex A).
    GmmCause {
        /// #3
        IllegalUe = 3,
        /// #5
        PeiNotAccepted = 5,
        /// #6
        IllegalMe = 6,
        /// #7
        FiveGsServicesNotAllowed = 7,
        /// #9
        UeIdentityCannotBeDerivedByTheNetwork = 9,
        /// #10
        ImplicitlyDeregistered = 10,
        /// #11
        PlmnNotAllowed = 11,
        /// #12
        TrackingAreaNotAllowed = 12,
        /// #13
        RoamingNotAllowedInThisTrackingArea = 13,
        /// #15
        NoSuitableCellsInTrackingArea = 15,
        /// #20
        MacFailure = 20,
        /// #21
        SynchFailure = 21,
        /// #22
        Congestion = 22,
        /// #23
        UeSecurityCapabilitiesMismatch = 23,
        /// #24
        SecurityModeRejectedUnspecified = 24,
        /// #26
        NonFiveGAuthenticationUnacceptable = 26,
        /// #27
        N1ModeNotAllowed = 27,
        /// #28
        RestrictedServiceArea = 28,
        /// #31
        RedirectionToEpcRequired = 31,
        /// #43
        LadnNotAvailable = 43,
        /// #62
        NoNetworkSlicesAvailable = 62,
        /// #65
        MaximumNumberOfPduSessionsReached = 65,
        /// #67
        InsufficientResourcesForSpecificSliceAndDnn = 67,
        /// #69
        InsufficientResourcesForSpecificSlice = 69,
        /// #71
        NgKsiAlreadyInUse = 71,
        /// #72
        NonThreeGppAccessToFiveGcnNotAllowed = 72,
        /// #73
        ServingNetworkNotAuthorized = 73,
        /// #74
        TemporarilyNotAuthorizedForThisSnpn = 74,
        /// #75
        PermanentlyNotAuthorizedForThisSnpn = 75,
        /// #76
        NotAuthorizedForThisCag = 76,
        /// #77
        WirelineAccessAreaNotAllowed = 77,
        /// #78
        PlmnNotAllowedAtThePresentUeLocation = 78,
        /// #79
        UasServicesNotAllowed = 79,
        /// #80
        DisasterRoamingNotAllowed = 80,
        /// #90
        PayloadWasNotForwarded = 90,
        /// #91
        DnnNotSupportedOrNotSubscribedInTheSlice = 91,
        /// #92
        InsufficientUserPlaneResourcesForThePduSession = 92,
        /// #95
        SemanticallyIncorrectMessage = 95,
        /// #96
        InvalidMandatoryInformation = 96,
        /// #97
        MessageTypeNonExistentOrNotImplemented = 97,
        /// #98
        MessageTypeNotCompatibleWithTheProtocolState = 98,
        /// #99
        InformationElementNonExistentOrNotImplemented = 99,
        /// #100
        ConditionalIeError = 100,
        /// #101
        MessageNotCompatibleWithTheProtocolState = 101,
        /// #111
        ProtocolErrorUnspecified = 111,
    }
}

coded! {
    /// 5GSM cause (TS 24.501 Table 9.11.4.2.1, Annex B).
    GsmCause {
        /// #8
        OperatorDeterminedBarring = 8,
        /// #26
        InsufficientResources = 26,
        /// #27
        MissingOrUnknownDnn = 27,
        /// #28
        UnknownPduSessionType = 28,
        /// #29
        UserAuthenticationOrAuthorizationFailed = 29,
        /// #31
        RequestRejectedUnspecified = 31,
        /// #32
        ServiceOptionNotSupported = 32,
        /// #33
        RequestedServiceOptionNotSubscribed = 33,
        /// #35
        PtiAlreadyInUse = 35,
        /// #36
        RegularDeactivation = 36,
        /// #37
        FiveGsQosNotAccepted = 37,
        /// #38
        NetworkFailure = 38,
        /// #39
        ReactivationRequested = 39,
        /// #41
        SemanticErrorInTheTftOperation = 41,
        /// #42
        SyntacticalErrorInTheTftOperation = 42,
        /// #43
        InvalidPduSessionIdentity = 43,
        /// #44
        SemanticErrorsInPacketFilters = 44,
        /// #45
        SyntacticalErrorInPacketFilters = 45,
        /// #46
        OutOfLadnServiceArea = 46,
        /// #47
        PtiMismatch = 47,
        /// #50
        PduSessionTypeIpv4OnlyAllowed = 50,
        /// #51
        PduSessionTypeIpv6OnlyAllowed = 51,
        /// #54
        PduSessionDoesNotExist = 54,
        /// #57
        PduSessionTypeIpv4v6OnlyAllowed = 57,
        /// #58
        PduSessionTypeUnstructuredOnlyAllowed = 58,
        /// #59
        UnsupportedFiveQiValue = 59,
        /// #61
        PduSessionTypeEthernetOnlyAllowed = 61,
        /// #67
        InsufficientResourcesForSpecificSliceAndDnn = 67,
        /// #68
        NotSupportedSscMode = 68,
        /// #69
        InsufficientResourcesForSpecificSlice = 69,
        /// #70
        MissingOrUnknownDnnInASlice = 70,
        /// #81
        InvalidPtiValue = 81,
        /// #82
        UserPlaneIntegrityProtectionDataRateTooLow = 82,
        /// #83
        SemanticErrorInTheQosOperation = 83,
        /// #84
        SyntacticalErrorInTheQosOperation = 84,
        /// #85
        InvalidMappedEpsBearerIdentity = 85,
        /// #86
        UasServicesNotAllowed = 86,
        /// #95
        SemanticallyIncorrectMessage = 95,
        /// #96
        InvalidMandatoryInformation = 96,
        /// #97
        MessageTypeNonExistentOrNotImplemented = 97,
        /// #98
        MessageTypeNotCompatibleWithTheProtocolState = 98,
        /// #99
        InformationElementNonExistentOrNotImplemented = 99,
        /// #100
        ConditionalIeError = 100,
        /// #101
        MessageNotCompatibleWithTheProtocolState = 101,
        /// #111
        ProtocolErrorUnspecified = 111,
    }
}

/// `#43 invalid pdu session identity`.
fn write_cause(f: &mut fmt::Formatter<'_>, code: u8, name: &dyn fmt::Debug, is_known: bool) -> fmt::Result {
    if !is_known {
        return write!(f, "#{code}");
    }
    write!(f, "#{code} {}", pith_types::words_of_name(&format!("{name:?}")))
}

impl fmt::Display for GmmCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_cause(f, self.code(), self, !matches!(self, Self::Other(_)))
    }
}

impl fmt::Display for GsmCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_cause(f, self.code(), self, !matches!(self, Self::Other(_)))
    }
}
