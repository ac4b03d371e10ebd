//! Enumerations of Namf_Communication.

use crate::record::open_enum;

open_enum! {
    /// Class of a NAS message.
    N1MessageClass {
        FiveGmm = "5GMM",
        Sm = "SM",
        Lpp = "LPP",
        Sms = "SMS",
        Updp = "UPDP",
        Lcs = "LCS",
    }
}

open_enum! {
    /// Class of NGAP information.
    N2InformationClass {
        Sm = "SM",
        Nrppa = "NRPPa",
        Pws = "PWS",
        PwsBcal = "PWS-BCAL",
        PwsRf = "PWS-RF",
        Ran = "RAN",
    }
}

open_enum! {
    /// NGAP information element (TS 38.413 9.3.4).
    NgapIeType {
        PduResSetupReq = "PDU_RES_SETUP_REQ",
        PduResRelCmd = "PDU_RES_REL_CMD",
        PduResModReq = "PDU_RES_MOD_REQ",
        HandoverCmd = "HANDOVER_CMD",
        HandoverRequired = "HANDOVER_REQUIRED",
        HandoverPrepFail = "HANDOVER_PREP_FAIL",
        SrcToTarContainer = "SRC_TO_TAR_CONTAINER",
        TarToSrcContainer = "TAR_TO_SRC_CONTAINER",
        TarToSrcFailContainer = "TAR_TO_SRC_FAIL_CONTAINER",
        RanStatusTransContainer = "RAN_STATUS_TRANS_CONTAINER",
        SonConfigTransfer = "SON_CONFIG_TRANSFER",
        NrppaPdu = "NRPPA_PDU",
        UeRadioCapability = "UE_RADIO_CAPABILITY",
        SecondaryRatUsage = "SECONDARY_RAT_USAGE",
        EarlyStatusTransContainer = "EARLY_STATUS_TRANS_CONTAINER",
        UeRadioCapabilityForPaging = "UE_RADIO_CAPABILITY_FOR_PAGING",
    }
}

open_enum! {
    /// The result of a message transfer.
    N1N2MessageTransferCause {
        AttemptingToReachUe = "ATTEMPTING_TO_REACH_UE",
        N1N2TransferInitiated = "N1_N2_TRANSFER_INITIATED",
        WaitingForAsynchronousTransfer = "WAITING_FOR_ASYNCHRONOUS_TRANSFER",
        UeNotResponding = "UE_NOT_RESPONDING",
        N1MsgNotTransferred = "N1_MSG_NOT_TRANSFERRED",
        N2MsgNotTransferred = "N2_MSG_NOT_TRANSFERRED",
        UeNotReachableForSession = "UE_NOT_REACHABLE_FOR_SESSION",
        TemporaryRejectRegistrationOngoing = "TEMPORARY_REJECT_REGISTRATION_ONGOING",
        TemporaryRejectHandoverOngoing = "TEMPORARY_REJECT_HANDOVER_ONGOING",
        AnNotResponding = "AN_NOT_RESPONDING",
        FailureCauseUnspecified = "FAILURE_CAUSE_UNSPECIFIED",
    }
}

open_enum! {
    /// The reason for the transfer of a UE context.
    TransferReason {
        InitReg = "INIT_REG",
        MobiReg = "MOBI_REG",
        /// The new AMF has authenticated the UE.
        MobiRegUeValidated = "MOBI_REG_UE_VALIDATED",
    }
}

open_enum! {
    /// Whether the new AMF accepted the UE context.
    UeContextTransferStatus {
        Transferred = "TRANSFERRED",
        NotTransferred = "NOT_TRANSFERRED",
    }
}

open_enum! {
    /// The event that an N2InfoNotify reports.
    N2InfoNotifyReason {
        HandoverCompleted = "HANDOVER_COMPLETED",
    }
}

open_enum! {
    /// Kind of an AMF key.
    KeyAmfType {
        Kamf = "KAMF",
        /// Derived from K_AMF for the new AMF.
        Kprimeamf = "KPRIMEAMF",
    }
}

open_enum! {
    /// Origin of a security context.
    ScType {
        Native = "NATIVE",
        Mapped = "MAPPED",
    }
}

open_enum! {
    /// NAS integrity algorithms.
    IntegrityAlgorithm {
        Nia0 = "NIA0",
        Nia1 = "NIA1",
        Nia2 = "NIA2",
        Nia3 = "NIA3",
    }
}

open_enum! {
    /// NAS ciphering algorithms.
    CipheringAlgorithm {
        Nea0 = "NEA0",
        Nea1 = "NEA1",
        Nea2 = "NEA2",
        Nea3 = "NEA3",
    }
}
