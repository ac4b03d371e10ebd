//! Enumerations of Npcf_SMPolicyControl.

use crate::record::open_enum;

open_enum! {
    /// Triggers of updates to the PCF.
    PolicyControlRequestTrigger {
        PlmnCh = "PLMN_CH",
        ResMoRe = "RES_MO_RE",
        AcTyCh = "AC_TY_CH",
        UeIpCh = "UE_IP_CH",
        UeMacCh = "UE_MAC_CH",
        AnChCor = "AN_CH_COR",
        UsRe = "US_RE",
        AppSta = "APP_STA",
        AppSto = "APP_STO",
        AnInfo = "AN_INFO",
        CmSesFail = "CM_SES_FAIL",
        PsDaOff = "PS_DA_OFF",
        DefQosCh = "DEF_QOS_CH",
        SeAmbrCh = "SE_AMBR_CH",
        QosNotif = "QOS_NOTIF",
        PraCh = "PRA_CH",
        SareaCh = "SAREA_CH",
        ScnnCh = "SCNN_CH",
        ReTimeout = "RE_TIMEOUT",
        ResRelease = "RES_RELEASE",
        SuccResAllo = "SUCC_RES_ALLO",
        RaiCh = "RAI_CH",
        RatTyCh = "RAT_TY_CH",
        RefQosIndCh = "REF_QOS_IND_CH",
        UeStatusResume = "UE_STATUS_RESUME",
        UeTzCh = "UE_TZ_CH",
        UserLocationCh = "USER_LOCATION_CH",
    }
}

open_enum! {
    /// Direction of a flow.
    FlowDirection {
        Downlink = "DOWNLINK",
        Uplink = "UPLINK",
        Bidirectional = "BIDIRECTIONAL",
        Unspecified = "UNSPECIFIED",
    }
}

open_enum! {
    /// Gate status of a flow (TS 29.514).
    FlowStatus {
        EnabledUplink = "ENABLED-UPLINK",
        EnabledDownlink = "ENABLED-DOWNLINK",
        Enabled = "ENABLED",
        Disabled = "DISABLED",
        Removed = "REMOVED",
    }
}

open_enum! {
    /// Metering methods of charging.
    MeteringMethod {
        Duration = "DURATION",
        Volume = "VOLUME",
        DurationVolume = "DURATION_VOLUME",
        Event = "EVENT",
    }
}

open_enum! {
    /// Reporting levels of charging.
    ReportingLevel {
        SerIdLevel = "SER_ID_LEVEL",
        RatGrLevel = "RAT_GR_LEVEL",
        SponConLevel = "SPON_CON_LEVEL",
    }
}

open_enum! {
    /// Uses of the default QoS flow.
    QosFlowUsage {
        General = "GENERAL",
        ImsSig = "IMS_SIG",
    }
}

open_enum! {
    /// Status of a rule.
    RuleStatus {
        Active = "ACTIVE",
        Inactive = "INACTIVE",
    }
}

open_enum! {
    /// The reason for the failure of a PCC rule.
    FailureCode {
        UnkRuleId = "UNK_RULE_ID",
        NfMal = "NF_MAL",
        ResLim = "RES_LIM",
        MaxNrQosFlow = "MAX_NR_QoS_FLOW",
        MissFlowInfo = "MISS_FLOW_INFO",
        ResAlloFail = "RES_ALLO_FAIL",
        UnsuccQosVal = "UNSUCC_QOS_VAL",
        IncorFlowInfo = "INCOR_FLOW_INFO",
        AppIdErr = "APP_ID_ERR",
        NoQosFlowBound = "NO_QOS_FLOW_BOUND",
        FilterRes = "FILTER_RES",
        UeStaSusp = "UE_STA_SUSP",
        UnknownRefId = "UNKNOWN_REF_ID",
        IncorrectCondData = "INCORRECT_COND_DATA",
        RefIdCollision = "REF_ID_COLLISION",
        MaxNrPacketFiltersExceeded = "MAX_NR_PACKET_FILTERS_EXCEEDED",
    }
}

open_enum! {
    /// The reason for the failure of a session rule.
    SessionRuleFailureCode {
        NfMal = "NF_MAL",
        ResLim = "RES_LIM",
        SessionResourceAllocationFailure = "SESSION_RESOURCE_ALLOCATION_FAILURE",
        UnsuccQosVal = "UNSUCC_QOS_VAL",
        IncorrectUm = "INCORRECT_UM",
        UeStaSusp = "UE_STA_SUSP",
        UnknownRefId = "UNKNOWN_REF_ID",
        IncorrectCondData = "INCORRECT_COND_DATA",
        RefIdCollision = "REF_ID_COLLISION",
    }
}

open_enum! {
    /// The reason for the partial failure of a PCF update.
    FailureCause {
        PccRuleEvent = "PCC_RULE_EVENT",
        PccQosFlowEvent = "PCC_QOS_FLOW_EVENT",
        RulePermanentError = "RULE_PERMANENT_ERROR",
        RuleTemporaryError = "RULE_TEMPORARY_ERROR",
        PolDecError = "POL_DEC_ERROR",
    }
}

open_enum! {
    /// The part of a decision that could not be enforced.
    PolicyDecisionFailureCode {
        TraCtrlDecsErr = "TRA_CTRL_DECS_ERR",
        QosDecsErr = "QOS_DECS_ERR",
        ChgDecsErr = "CHG_DECS_ERR",
        UsaMonDecsErr = "USA_MON_DECS_ERR",
        QosMonDecsErr = "QOS_MON_DECS_ERR",
        ConDataErr = "CON_DATA_ERR",
        PolicyParamErr = "POLICY_PARAM_ERR",
    }
}

open_enum! {
    /// The reason for the release of a session by the SMF.
    PduSessionRelCause {
        PsToCsHo = "PS_TO_CS_HO",
        RuleError = "RULE_ERROR",
    }
}

open_enum! {
    /// The reason for the PCF's termination of a policy association.
    SmPolicyAssociationReleaseCause {
        Unspecified = "UNSPECIFIED",
        UeSubscription = "UE_SUBSCRIPTION",
        InsufficientRes = "INSUFFICIENT_RES",
        ValidationConditionNotMet = "VALIDATION_CONDITION_NOT_MET",
        ReactivationRequested = "REACTIVATION_REQUESTED",
    }
}
