//! Enumerations of Nsmf_PDUSession.

use crate::record::open_enum;

open_enum! {
    /// State of the user plane between gNB and UPF.
    UpCnxState {
        Activated = "ACTIVATED",
        Deactivated = "DEACTIVATED",
        Activating = "ACTIVATING",
        Suspended = "SUSPENDED",
    }
}

open_enum! {
    /// Handover state.
    HoState {
        None = "NONE",
        Preparing = "PREPARING",
        Prepared = "PREPARED",
        Completed = "COMPLETED",
        Cancelled = "CANCELLED",
    }
}

open_enum! {
    /// Request type of the UE (TS 24.501 9.11.3.47).
    RequestType {
        InitialRequest = "INITIAL_REQUEST",
        ExistingPduSession = "EXISTING_PDU_SESSION",
        InitialEmergencyRequest = "INITIAL_EMERGENCY_REQUEST",
        ExistingEmergencyPduSession = "EXISTING_EMERGENCY_PDU_SESSION",
    }
}

open_enum! {
    /// Selection mode of the DNN.
    DnnSelectionMode {
        Verified = "VERIFIED",
        UeDnnNotVerified = "UE_DNN_NOT_VERIFIED",
        NwDnnNotVerified = "NW_DNN_NOT_VERIFIED",
    }
}

open_enum! {
    /// Type of NGAP transfer (TS 38.413 9.3.4).
    N2SmInfoType {
        PduResSetupReq = "PDU_RES_SETUP_REQ",
        PduResSetupRsp = "PDU_RES_SETUP_RSP",
        PduResSetupFail = "PDU_RES_SETUP_FAIL",
        PduResRelCmd = "PDU_RES_REL_CMD",
        PduResRelRsp = "PDU_RES_REL_RSP",
        PduResModReq = "PDU_RES_MOD_REQ",
        PduResModRsp = "PDU_RES_MOD_RSP",
        PduResModFail = "PDU_RES_MOD_FAIL",
        PduResNty = "PDU_RES_NTY",
        PduResNtyRel = "PDU_RES_NTY_REL",
        PduResModInd = "PDU_RES_MOD_IND",
        PduResModCfm = "PDU_RES_MOD_CFM",
        PathSwitchReq = "PATH_SWITCH_REQ",
        PathSwitchSetupFail = "PATH_SWITCH_SETUP_FAIL",
        PathSwitchReqAck = "PATH_SWITCH_REQ_ACK",
        PathSwitchReqFail = "PATH_SWITCH_REQ_FAIL",
        HandoverRequired = "HANDOVER_REQUIRED",
        HandoverCmd = "HANDOVER_CMD",
        HandoverPrepFail = "HANDOVER_PREP_FAIL",
        HandoverReqAck = "HANDOVER_REQ_ACK",
        HandoverResAllocFail = "HANDOVER_RES_ALLOC_FAIL",
        SecondaryRatUsage = "SECONDARY_RAT_USAGE",
        PduResModIndFail = "PDU_RES_MOD_IND_FAIL",
        UeContextResumeReq = "UE_CONTEXT_RESUME_REQ",
        UeContextResumeRsp = "UE_CONTEXT_RESUME_RSP",
        UeContextSuspendReq = "UE_CONTEXT_SUSPEND_REQ",
    }
}

open_enum! {
    /// The reason for the change or release of a session (`Cause` of TS 29.502).
    SmContextCause {
        RelDueToHo = "REL_DUE_TO_HO",
        EpsFallback = "EPS_FALLBACK",
        RelDueToUpSec = "REL_DUE_TO_UP_SEC",
        DnnCongestion = "DNN_CONGESTION",
        SNssaiCongestion = "S_NSSAI_CONGESTION",
        RelDueToReactivation = "REL_DUE_TO_REACTIVATION",
        FiveGAnNotResponding = "5G_AN_NOT_RESPONDING",
        RelDueToSliceNotAvailable = "REL_DUE_TO_SLICE_NOT_AVAILABLE",
        RelDueToDuplicateSessionId = "REL_DUE_TO_DUPLICATE_SESSION_ID",
        PduSessionStatusMismatch = "PDU_SESSION_STATUS_MISMATCH",
        HoFailure = "HO_FAILURE",
        InsufficientUpResources = "INSUFFICIENT_UP_RESOURCES",
        PduSessionHandedOver = "PDU_SESSION_HANDED_OVER",
        PduSessionResumed = "PDU_SESSION_RESUMED",
        SmfContextTransfer = "SMF_CONTEXT_TRANSFER",
        RelDueToSubscriptionChange = "REL_DUE_TO_SUBSCRIPTION_CHANGE",
        HoCancel = "HO_CANCEL",
        RelDueToSliceNotAuthorized = "REL_DUE_TO_SLICE_NOT_AUTHORIZED",
        PduSessionHandOverFailure = "PDU_SESSION_HAND_OVER_FAILURE",
        DdnFailureStatus = "DDN_FAILURE_STATUS",
        RelDueToUnspecifiedReason = "REL_DUE_TO_UNSPECIFIED_REASON",
    }
}

open_enum! {
    /// Status of an SM context.
    ResourceStatus {
        Released = "RELEASED",
        Unchanged = "UNCHANGED",
        Transferred = "TRANSFERRED",
        Updated = "UPDATED",
        AltAnchorSmf = "ALT_ANCHOR_SMF",
    }
}

open_enum! {
    /// The requested part of an SM context.
    SmContextType {
        EpsPdnConnection = "EPS_PDN_CONNECTION",
        SmContext = "SM_CONTEXT",
        AfCoordinationInfo = "AF_COORDINATION_INFO",
    }
}
