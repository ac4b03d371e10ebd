//! What the PCF decides for a session. Rules refer to the data beside them by id; in an update a
//! `None` in the place of a rule (`null`) takes it away, and what is absent stays.

use super::{
    FlowDirection, FlowStatus, MeteringMethod, PolicyControlRequestTrigger, QosFlowUsage, ReportingLevel,
    SmPolicyAssociationReleaseCause, SmPolicyContextData,
};
use crate::common::{AccessType, Arp, DateTime, PresenceInfo, RatType, SupportedFeatures};
use crate::record::{open_enum, record};
use pith_types::{Ambr, BitRate};
use std::collections::BTreeMap;
use std::sync::Arc;

/// By id; `None` takes away.
pub type Decisions<T> = BTreeMap<Arc<str>, Option<T>>;

record! {
    /// A decision, or what changes of it.
    SmPolicyDecision {
        optional {
            /// Reflective QoS ends after so many seconds.
            reflective_qos_timer: u32,
            /// When the SMF shall ask again.
            revalidation_time: DateTime,
            /// Charged after use.
            offline: bool,
            /// Charged while used.
            online: bool,
            /// What the default QoS flow is for.
            qos_flow_usage: QosFlowUsage,
            /// The session shall end, and why.
            rel_cause: SmPolicyAssociationReleaseCause,
            /// Optional features that both have.
            supp_feat: SupportedFeatures,
        }
        repeated {
            /// Rules for the session as a whole.
            sess_rules: Decisions<SessionRule>,
            /// Rules for flows of data.
            pcc_rules: Decisions<PccRule>,
            /// QoS that rules refer to.
            qos_decs: Decisions<QosData>,
            /// Charging that rules refer to.
            chg_decs: Decisions<ChargingData>,
            /// Gates that rules refer to.
            traff_cont_decs: Decisions<TrafficControlData>,
            /// Usage monitoring that rules refer to.
            um_decs: Decisions<UsageMonitoringData>,
            /// Characteristics of 5QIs that are not standard.
            qos_chars: BTreeMap<Arc<str>, QosCharacteristics>,
            /// Conditions that rules refer to.
            conds: Decisions<ConditionData>,
            /// What the PCF wants to be told of.
            policy_ctrl_req_triggers: Vec<PolicyControlRequestTrigger>,
            /// Areas whose entry and leaving is reported.
            pra_infos: BTreeMap<Arc<str>, PresenceInfo>,
        }
    }
}

record! {
    /// A policy association.
    SmPolicyControl {
        required {
            /// What the SMF told.
            context: SmPolicyContextData,
            /// What the PCF decided.
            policy: SmPolicyDecision,
        }
    }
}

record! {
    /// A rule for the session as a whole.
    SessionRule {
        required {
            /// Its id.
            sess_rule_id: Arc<str>,
        }
        optional {
            /// Session AMBR.
            auth_sess_ambr: Ambr,
            /// QoS of the default QoS flow.
            auth_def_qos: AuthorizedDefaultQos,
            /// Usage monitoring.
            ref_um_data: Arc<str>,
            /// When it holds.
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
            /// Its priority when resources are short.
            arp: Arp,
            /// 1 to 127, instead of that of the 5QI.
            priority_level: u8,
            /// Milliseconds over which rates are averaged, 1 to 4095.
            aver_window: u16,
            /// Octets in a burst, 1 to 4095.
            max_data_burst_vol: u16,
            /// Maximum bit rate, from the UE.
            maxbr_ul: BitRate,
            /// Maximum bit rate, to the UE.
            maxbr_dl: BitRate,
            /// Guaranteed bit rate, from the UE.
            gbr_ul: BitRate,
            /// Guaranteed bit rate, to the UE.
            gbr_dl: BitRate,
        }
    }
}

record! {
    /// A rule for a flow of data.
    PccRule {
        required {
            /// Its id.
            pcc_rule_id: Arc<str>,
        }
        optional {
            /// An application whose packets the UPF knows.
            app_id: Arc<str>,
            /// Version of its content.
            cont_ver: u32,
            /// Lower is tried first, 0 to 255.
            precedence: u32,
            /// When it holds.
            ref_cond_data: Arc<str>,
        }
        repeated {
            /// Packet filters.
            flow_infos: Vec<FlowInformation>,
            /// QoS; one at most.
            ref_qos_data: Vec<Arc<str>>,
            /// Gates; one at most.
            ref_tc_data: Vec<Arc<str>>,
            /// Charging; one at most.
            ref_chg_data: Vec<Arc<str>>,
            /// Usage monitoring; one at most.
            ref_um_data: Vec<Arc<str>>,
        }
    }
}

record! {
    /// A packet filter.
    FlowInformation {
        optional {
            /// An IPFilterRule (RFC 6733 4.3.1), from the side of the UE.
            flow_description: Arc<str>,
            /// Its id.
            pack_filt_id: Arc<str>,
            /// The UE shall have it too.
            packet_filter_usage: bool,
            /// Type of service and its mask, four hexadecimal digits.
            tos_traffic_class: Arc<str>,
            /// Security parameter index, hexadecimal digits.
            spi: Arc<str>,
            /// IPv6 flow label, hexadecimal digits.
            flow_label: Arc<str>,
            /// Which way.
            flow_direction: FlowDirection,
        }
    }
}

record! {
    /// QoS of a flow.
    QosData {
        required {
            /// Its id.
            qos_id: Arc<str>,
        }
        optional {
            /// 5G QoS identifier.
            #[serde(rename = "5qi")]
            five_qi: u8,
            /// Maximum bit rate, from the UE.
            maxbr_ul: BitRate,
            /// Maximum bit rate, to the UE.
            maxbr_dl: BitRate,
            /// Guaranteed bit rate, from the UE.
            gbr_ul: BitRate,
            /// Guaranteed bit rate, to the UE.
            gbr_dl: BitRate,
            /// Its priority when resources are short.
            arp: Arp,
            /// The gNB tells when it cannot keep the guaranteed bit rate.
            qnc: bool,
            /// 1 to 127, instead of that of the 5QI.
            priority_level: u8,
            /// Milliseconds over which rates are averaged, 1 to 4095.
            aver_window: u16,
            /// Octets in a burst, 1 to 4095.
            max_data_burst_vol: u16,
            /// Reflective QoS.
            reflective_qos: bool,
            /// The rule is bound to the default QoS flow.
            def_qos_flow_indication: bool,
        }
    }
}

open_enum! {
    /// Whether a QoS flow has a guaranteed bit rate (TS 29.571).
    QosResourceType {
        NonGbr = "NON_GBR",
        NonCriticalGbr = "NON_CRITICAL_GBR",
        CriticalGbr = "CRITICAL_GBR",
    }
}

record! {
    /// Characteristics of a 5QI that is not standard.
    QosCharacteristics {
        required {
            /// Which.
            #[serde(rename = "5qi")]
            five_qi: u8,
            /// With a guaranteed bit rate or without.
            resource_type: QosResourceType,
            /// 1 to 127.
            priority_level: u8,
            /// Milliseconds.
            packet_delay_budget: u32,
            /// `6E-2` is 6 in 100.
            packet_error_rate: Arc<str>,
        }
        optional {
            /// Milliseconds, 1 to 4095.
            averaging_window: u16,
            /// Octets, 1 to 4095.
            max_data_burst_vol: u16,
        }
    }
}

record! {
    /// How a flow is charged.
    ChargingData {
        required {
            /// Its id.
            chg_id: Arc<str>,
        }
        optional {
            /// By what.
            metering_method: MeteringMethod,
            /// Charged after use.
            offline: bool,
            /// Charged while used.
            online: bool,
            /// Rating group.
            rating_group: u32,
            /// How finely usage is reported.
            reporting_level: ReportingLevel,
            /// Service.
            service_id: u32,
        }
    }
}

record! {
    /// Whether a flow's gate is open.
    TrafficControlData {
        required {
            /// Its id.
            tc_id: Arc<str>,
        }
        optional {
            /// Whether.
            flow_status: FlowStatus,
        }
    }
}

record! {
    /// How much is used before the PCF is told.
    UsageMonitoringData {
        required {
            /// Its id.
            um_id: Arc<str>,
        }
        optional {
            /// Octets both ways.
            volume_threshold: u64,
            /// Octets from the UE.
            volume_threshold_uplink: u64,
            /// Octets to the UE.
            volume_threshold_downlink: u64,
            /// Seconds.
            time_threshold: u32,
            /// When counting starts anew.
            monitoring_time: DateTime,
            /// Seconds without a packet that end the counting of time.
            inactivity_time: u32,
        }
        repeated {
            /// Rules whose flows are not counted.
            ex_usage_pcc_rule_ids: Vec<Arc<str>>,
        }
    }
}

record! {
    /// When a rule holds.
    ConditionData {
        required {
            /// Its id.
            cond_id: Arc<str>,
        }
        optional {
            /// From then on.
            activation_time: DateTime,
            /// Until then.
            deactivation_time: DateTime,
            /// Over this access.
            access_type: AccessType,
            /// On this radio.
            rat_type: RatType,
        }
    }
}
