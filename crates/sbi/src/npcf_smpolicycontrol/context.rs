//! Data from the SMF to the PCF: at the start, at changes and at the end of a session.

use super::{
    AccuUsageReport, PduSessionRelCause, PolicyControlRequestTrigger, PolicyDecisionFailureCode,
    QosFlowUsage, QosNotificationControlInfo, RuleReport, SessionRuleReport,
};
use crate::common::{
    AccessType, DateTime, NfInstanceId, PduSessionType, PlmnIdNid, RatType, SubscribedDefaultQos,
    SupportedFeatures, UserLocation,
};
use crate::embedded::EmbeddedDocument;
use crate::nsmf_pdusession::DnnSelectionMode;
use crate::problem::InvalidParam;
use crate::record::record;
use crate::uri::Uri;
use pith_types::{Ambr, Dnn, Guami, Pei, Snssai, Supi};
use std::net::Ipv4Addr;
use std::sync::Arc;

record! {
    /// The context of a new PDU session.
    SmPolicyContextData {
        required {
            /// SUPI of the subscriber.
            supi: Supi,
            /// PDU session identity.
            pdu_session_id: u8,
            /// PDU session type.
            pdu_session_type: PduSessionType,
            /// DNN.
            dnn: Dnn,
            /// Callback URI, to which `/update` and `/terminate` are appended.
            notification_uri: Uri,
            /// Slice.
            slice_info: Snssai,
        }
        optional {
            /// GPSI.
            gpsi: Arc<str>,
            /// Whether the SUPI was not authenticated, for emergency services.
            invalid_supi: bool,
            /// Charging characteristics.
            chargingcharacteristics: Arc<str>,
            /// Selection mode of the DNN.
            dnn_sel_mode: DnnSelectionMode,
            /// Access type.
            access_type: AccessType,
            /// Radio access technology.
            rat_type: RatType,
            /// The serving network.
            serving_network: PlmnIdNid,
            /// Location of the UE.
            user_location_info: UserLocation,
            /// Time zone of the UE, such as `+01:00`.
            ue_time_zone: Arc<str>,
            /// PEI of the UE.
            pei: Pei,
            /// IPv4 address of the UE.
            ipv4_address: Ipv4Addr,
            /// IPv6 prefix of the UE.
            ipv6_address_prefix: Arc<str>,
            /// IP domain, if addresses overlap.
            ip_domain: Arc<str>,
            /// Subscribed session AMBR.
            subs_sess_ambr: Ambr,
            /// Subscribed QoS of the default QoS flow.
            subs_def_qos: SubscribedDefaultQos,
            /// Number of packet filters that the UE supports.
            num_of_pack_filter: u32,
            /// Whether online charging applies.
            online: bool,
            /// Whether offline charging applies.
            offline: bool,
            /// Whether the UE has 3GPP PS data off active.
            #[serde(rename = "3gppPsDataOffStatus")]
            three_gpp_ps_data_off_status: bool,
            /// Whether the UE supports reflective QoS.
            ref_qos_indication: bool,
            /// Use of the default QoS flow.
            qos_flow_usage: QosFlowUsage,
            /// The AMF of the UE.
            serv_nf_id: ServingNfIdentity,
            /// Optional features of the SMF.
            supp_feat: SupportedFeatures,
            /// NF instance of the SMF.
            smf_id: NfInstanceId,
            /// Time of the SMF's last restart with loss of contexts.
            recovery_time: DateTime,
            /// Stored contexts of the UE, between instances of Pith ([`crate::embedded`]).
            #[serde(rename = "vendorSpecific-032473")]
            embedded: EmbeddedDocument,
        }
        repeated {
            /// Internal group identifiers.
            inter_grp_ids: Vec<Arc<str>>,
        }
    }
}

record! {
    /// The node that serves the UE.
    ServingNfIdentity {
        optional {
            /// NF instance of the AMF.
            serv_nf_inst_id: NfInstanceId,
            /// GUAMI of the AMF.
            guami: Guami,
        }
    }
}

record! {
    /// An update of the context of a PDU session.
    SmPolicyUpdateContextData {
        optional {
            /// Access type.
            access_type: AccessType,
            /// Radio access technology.
            rat_type: RatType,
            /// The serving network.
            serving_network: PlmnIdNid,
            /// Location of the UE.
            user_location_info: UserLocation,
            /// Time zone of the UE, such as `+01:00`.
            ue_time_zone: Arc<str>,
            /// Released IPv4 address.
            rel_ipv4_address: Ipv4Addr,
            /// New IPv4 address.
            ipv4_address: Ipv4Addr,
            /// New IPv6 prefix.
            ipv6_address_prefix: Arc<str>,
            /// Released IPv6 prefix.
            rel_ipv6_address_prefix: Arc<str>,
            /// Subscribed session AMBR.
            subs_sess_ambr: Ambr,
            /// Subscribed QoS of the default QoS flow.
            subs_def_qos: SubscribedDefaultQos,
            /// Time of the location.
            user_location_info_time: DateTime,
            /// Whether the UE supports reflective QoS; false: it no longer does.
            ref_qos_indication: bool,
            /// The node that serves the UE.
            serv_nf_id: ServingNfIdentity,
            /// Stored contexts of the UE, between instances of Pith ([`crate::embedded`]).
            #[serde(rename = "vendorSpecific-032473")]
            embedded: EmbeddedDocument,
        }
        repeated {
            /// Triggers that occurred.
            rep_policy_ctrl_req_triggers: Vec<PolicyControlRequestTrigger>,
            /// Accumulated usage.
            accu_usage_reports: Vec<AccuUsageReport>,
            /// Reports on PCC rules.
            rule_reports: Vec<RuleReport>,
            /// Reports on session rules.
            sess_rule_reports: Vec<SessionRuleReport>,
            /// Reports on guaranteed bit rates.
            qnc_reports: Vec<QosNotificationControlInfo>,
            /// Parts of a decision that could not be enforced.
            policy_dec_failure_reports: Vec<PolicyDecisionFailureCode>,
            /// Invalid members of a decision.
            invalid_policy_decs: Vec<InvalidParam>,
        }
    }
}

record! {
    /// Data at the end of a PDU session.
    SmPolicyDeleteData {
        optional {
            /// Last location of the UE.
            user_location_info: UserLocation,
            /// Time zone of the UE, such as `+01:00`.
            ue_time_zone: Arc<str>,
            /// The serving network.
            serving_network: PlmnIdNid,
            /// Time of the location.
            user_location_info_time: DateTime,
            /// The reason for the release.
            pdu_sess_rel_cause: PduSessionRelCause,
            /// Stored contexts of the UE, between instances of Pith ([`crate::embedded`]).
            #[serde(rename = "vendorSpecific-032473")]
            embedded: EmbeddedDocument,
        }
        repeated {
            /// Accumulated usage.
            accu_usage_reports: Vec<AccuUsageReport>,
        }
    }
}
