//! Npcf_SMPolicyControl (TS 29.512): session rules and PCC rules of a PDU session.

mod context;
mod decision;
mod enums;
mod notification;
mod operations;
mod report;

pub use context::{ServingNfIdentity, SmPolicyContextData, SmPolicyDeleteData, SmPolicyUpdateContextData};
pub use decision::{
    AuthorizedDefaultQos, ChargingData, ConditionData, Decisions, FlowInformation, PccRule,
    QosCharacteristics, QosData, QosResourceType, SessionRule, SmPolicyControl, SmPolicyDecision,
    TrafficControlData, UsageMonitoringData,
};
pub use enums::{
    FailureCause, FailureCode, FlowDirection, FlowStatus, MeteringMethod, PduSessionRelCause,
    PolicyControlRequestTrigger, PolicyDecisionFailureCode, QosFlowUsage, ReportingLevel, RuleStatus,
    SessionRuleFailureCode, SmPolicyAssociationReleaseCause,
};
pub use notification::{
    ErrorReport, PartialSuccessReport, SmPolicyNotification, SmPolicyTerminationNotification,
    SmPolicyUpdateNotifyResult, UeCampingRep,
};
pub use operations::{
    CreateSmPolicy, DeleteSmPolicy, GetSmPolicy, SmPolicyTerminateNotify, SmPolicyUpdateNotify,
    UpdateSmPolicy,
};
pub(crate) use operations::{route, route_callback};
pub use report::{AccuUsageReport, QosNotifType, QosNotificationControlInfo, RuleReport, SessionRuleReport};
