//! Enumerations of Npcf_PolicyAuthorization.

use crate::record::open_enum;

open_enum! {
    /// Kind of media.
    MediaType {
        Audio = "AUDIO",
        Video = "VIDEO",
        Data = "DATA",
        Application = "APPLICATION",
        Control = "CONTROL",
        Text = "TEXT",
        Message = "MESSAGE",
        Other_ = "OTHER",
    }
}

open_enum! {
    /// Use of an IP flow.
    FlowUsage {
        NoInfo = "NO_INFO",
        Rtcp = "RTCP",
        AfSignalling = "AF_SIGNALLING",
    }
}

open_enum! {
    /// Events that an application may subscribe to.
    AfEvent {
        AccessTypeChange = "ACCESS_TYPE_CHANGE",
        FailedResourcesAllocation = "FAILED_RESOURCES_ALLOCATION",
        SuccessfulResourcesAllocation = "SUCCESSFUL_RESOURCES_ALLOCATION",
        PlmnChg = "PLMN_CHG",
        QosNotif = "QOS_NOTIF",
        UsageReport = "USAGE_REPORT",
    }
}

open_enum! {
    /// When an event is reported.
    AfNotifMethod {
        EventDetection = "EVENT_DETECTION",
        OneTime = "ONE_TIME",
        Periodic = "PERIODIC",
        PduSesRel = "PDU_SES_REL",
    }
}

open_enum! {
    /// Why the PCF ends an application session.
    TerminationCause {
        AllSdfDeactivation = "ALL_SDF_DEACTIVATION",
        PduSessionTermination = "PDU_SESSION_TERMINATION",
        PsToCsHo = "PS_TO_CS_HO",
        InsufficientServerResources = "INSUFFICIENT_SERVER_RESOURCES",
        InsufficientQosFlowResources = "INSUFFICIENT_QOS_FLOW_RESOURCES",
        SponsoredDataConnectivityDisallowed = "SPONSORED_DATA_CONNECTIVITY_DISALLOWED",
    }
}
