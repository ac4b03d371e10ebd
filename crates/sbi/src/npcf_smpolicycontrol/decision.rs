//! Policy decisions of the PCF. Rules refer to other data by id. In an update, `None` (`null`) deletes a
//! rule, and absent rules remain.

use super::{
    FlowDirection, FlowStatus, MeteringMethod, PolicyControlRequestTrigger, QosFlowUsage, ReportingLevel,
    SmPolicyAssociationReleaseCause, SmPolicyContextData,
};
use crate::common::{AccessType, Arp, DateTime, PresenceInfo, RatType, SupportedFeatures};
use crate::embedded::EmbeddedDocument;
use crate::record::{open_enum, record};
use pith_types::{Ambr, BitRate};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Decisions by id; `None` deletes one.
pub type Decisions<T> = BTreeMap<Arc<str>, Option<T>>;

record! {
    /// A policy decision, or its changes.
    SmPolicyDecision {
        optional {
            /// Lifetime of QoS rules that UEs derive (reflective QoS), in seconds.
            #[serde(rename = "reflectiveQoSTimer")]
            reflective_qos_timer: u32,
            /// Time by which the SMF must request an update.
            revalidation_time: DateTime,
            /// Whether offline charging applies.
            offline: bool,
            /// Whether online charging applies.
            online: bool,
            /// Use of the default QoS flow.
            qos_flow_usage: QosFlowUsage,
            /// The reason, if the session must be released.
            rel_cause: SmPolicyAssociationReleaseCause,
            /// Optional features of both sides.
            supp_feat: SupportedFeatures,
            /// Stored contexts of the UE, between instances of Pith ([`crate::embedded`]).
            #[serde(rename = "vendorSpecific-032473")]
            embedded: EmbeddedDocument,
        }
        repeated {
            /// Session rules.
            sess_rules: Decisions<SessionRule>,
            /// PCC rules.
            pcc_rules: Decisions<PccRule>,
            /// QoS data of rules.
            qos_decs: Decisions<QosData>,
            /// Charging data of rules.
            chg_decs: Decisions<ChargingData>,
            /// Traffic control data of rules.
            traff_cont_decs: Decisions<TrafficControlData>,
            /// Usage monitoring data of rules.
            um_decs: Decisions<UsageMonitoringData>,
            /// Characteristics of non-standardized 5QIs.
            qos_chars: BTreeMap<Arc<str>, QosCharacteristics>,
            /// Condition data of rules.
            conds: Decisions<ConditionData>,
            /// Triggers of updates.
            policy_ctrl_req_triggers: Vec<PolicyControlRequestTrigger>,
            /// Presence reporting areas.
            pra_infos: BTreeMap<Arc<str>, PresenceInfo>,
        }
    }
}

record! {
    /// An SM policy association.
    SmPolicyControl {
        required {
            /// Context from the SMF.
            context: SmPolicyContextData,
            /// Decision of the PCF.
            policy: SmPolicyDecision,
        }
    }
}

record! {
    /// A session rule.
    SessionRule {
        required {
            /// Identifier of the rule.
            sess_rule_id: Arc<str>,
        }
        optional {
            /// Session AMBR.
            auth_sess_ambr: Ambr,
            /// QoS of the default QoS flow.
            auth_def_qos: AuthorizedDefaultQos,
            /// Reference to usage monitoring data.
            ref_um_data: Arc<str>,
            /// Reference to condition data.
            ref_cond_data: Arc<str>,
        }
    }
}

record! {
    /// QoS of the default QoS flow.
    AuthorizedDefaultQos {
        optional {
            /// 5G QoS identifier.
            #[serde(rename = "5qi")]
            five_qi: u8,
            /// Allocation and retention priority.
            arp: Arp,
            /// Priority level, 1 to 127, in place of that of the 5QI.
            priority_level: u8,
            /// Averaging window in milliseconds, 1 to 4095.
            aver_window: u16,
            /// Maximum data burst volume in octets, 1 to 4095.
            max_data_burst_vol: u16,
            /// Maximum uplink bit rate.
            maxbr_ul: BitRate,
            /// Maximum downlink bit rate.
            maxbr_dl: BitRate,
            /// Guaranteed uplink bit rate.
            gbr_ul: BitRate,
            /// Guaranteed downlink bit rate.
            gbr_dl: BitRate,
        }
    }
}

record! {
    /// A PCC rule.
    PccRule {
        required {
            /// Identifier of the rule.
            pcc_rule_id: Arc<str>,
        }
        optional {
            /// Application that the UPF detects.
            app_id: Arc<str>,
            /// Version of the rule's content.
            cont_ver: u32,
            /// Precedence, 0 to 255; lower values are evaluated first.
            precedence: u32,
            /// Reference to condition data.
            ref_cond_data: Arc<str>,
        }
        repeated {
            /// Packet filters.
            flow_infos: Vec<FlowInformation>,
            /// Reference to QoS data; at most one.
            ref_qos_data: Vec<Arc<str>>,
            /// Reference to traffic control data; at most one.
            ref_tc_data: Vec<Arc<str>>,
            /// Reference to charging data; at most one.
            ref_chg_data: Vec<Arc<str>>,
            /// Reference to usage monitoring data; at most one.
            ref_um_data: Vec<Arc<str>>,
        }
    }
}

record! {
    /// A packet filter.
    FlowInformation {
        optional {
            /// IPFilterRule (RFC 6733 4.3.1).
            flow_description: Arc<str>,
            /// Identifier of the filter.
            pack_filt_id: Arc<str>,
            /// Whether the filter is also sent to the UE.
            packet_filter_usage: bool,
            /// Type of service and its mask, four hexadecimal digits.
            tos_traffic_class: Arc<str>,
            /// Security parameter index, hexadecimal digits.
            spi: Arc<str>,
            /// IPv6 flow label, hexadecimal digits.
            flow_label: Arc<str>,
            /// Direction of the flow.
            flow_direction: FlowDirection,
        }
    }
}

record! {
    /// QoS data of a flow.
    QosData {
        required {
            /// Identifier of the QoS data.
            qos_id: Arc<str>,
        }
        optional {
            /// 5G QoS identifier.
            #[serde(rename = "5qi")]
            five_qi: u8,
            /// Maximum uplink bit rate.
            maxbr_ul: BitRate,
            /// Maximum downlink bit rate.
            maxbr_dl: BitRate,
            /// Guaranteed uplink bit rate.
            gbr_ul: BitRate,
            /// Guaranteed downlink bit rate.
            gbr_dl: BitRate,
            /// Allocation and retention priority.
            arp: Arp,
            /// Whether the gNB reports that it cannot fulfil the guaranteed bit rate.
            qnc: bool,
            /// Priority level, 1 to 127, in place of that of the 5QI.
            priority_level: u8,
            /// Averaging window in milliseconds, 1 to 4095.
            aver_window: u16,
            /// Maximum data burst volume in octets, 1 to 4095.
            max_data_burst_vol: u16,
            /// Whether reflective QoS applies.
            reflective_qos: bool,
            /// Whether the rule is bound to the default QoS flow.
            def_qos_flow_indication: bool,
        }
    }
}

open_enum! {
    /// Resource type of a QoS flow (TS 29.571).
    QosResourceType {
        NonGbr = "NON_GBR",
        NonCriticalGbr = "NON_CRITICAL_GBR",
        CriticalGbr = "CRITICAL_GBR",
    }
}

record! {
    /// Characteristics of a non-standardized 5QI.
    QosCharacteristics {
        required {
            /// 5G QoS identifier.
            #[serde(rename = "5qi")]
            five_qi: u8,
            /// Resource type.
            resource_type: QosResourceType,
            /// Priority level, 1 to 127.
            priority_level: u8,
            /// Packet delay budget in milliseconds.
            packet_delay_budget: u32,
            /// Packet error rate; `6E-2` is 6 in 100.
            packet_error_rate: Arc<str>,
        }
        optional {
            /// Averaging window in milliseconds, 1 to 4095.
            averaging_window: u16,
            /// Maximum data burst volume in octets, 1 to 4095.
            max_data_burst_vol: u16,
        }
    }
}

record! {
    /// Charging data of a flow.
    ChargingData {
        required {
            /// Identifier of the charging data.
            chg_id: Arc<str>,
        }
        optional {
            /// Metering method.
            metering_method: MeteringMethod,
            /// Whether offline charging applies.
            offline: bool,
            /// Whether online charging applies.
            online: bool,
            /// Rating group.
            rating_group: u32,
            /// Reporting level.
            reporting_level: ReportingLevel,
            /// Service identifier.
            service_id: u32,
        }
    }
}

record! {
    /// Traffic control data of a flow.
    TrafficControlData {
        required {
            /// Identifier of the traffic control data.
            tc_id: Arc<str>,
        }
        optional {
            /// Gate status of the flow.
            flow_status: FlowStatus,
        }
    }
}

record! {
    /// Usage monitoring data: thresholds of reports to the PCF.
    UsageMonitoringData {
        required {
            /// Identifier of the usage monitoring data.
            um_id: Arc<str>,
        }
        optional {
            /// Total volume in octets.
            volume_threshold: u64,
            /// Uplink volume in octets.
            volume_threshold_uplink: u64,
            /// Downlink volume in octets.
            volume_threshold_downlink: u64,
            /// Time in seconds.
            time_threshold: u32,
            /// Time at which counting restarts.
            monitoring_time: DateTime,
            /// Inactivity in seconds after which the time counter stops.
            inactivity_time: u32,
        }
        repeated {
            /// PCC rules that are not counted.
            ex_usage_pcc_rule_ids: Vec<Arc<str>>,
        }
    }
}

record! {
    /// Condition data of a rule.
    ConditionData {
        required {
            /// Identifier of the condition data.
            cond_id: Arc<str>,
        }
        optional {
            /// Start of validity.
            activation_time: DateTime,
            /// End of validity.
            deactivation_time: DateTime,
            /// Required access type.
            access_type: AccessType,
            /// Required radio access technology.
            rat_type: RatType,
        }
    }
}
