//! What the SMF tells the PCF: when a session begins, when something changes, when it ends.

use super::{
    AccuUsageReport, PduSessionRelCause, PolicyControlRequestTrigger, PolicyDecisionFailureCode,
    QosFlowUsage, QosNotificationControlInfo, RuleReport, SessionRuleReport,
};
use crate::common::{
    AccessType, DateTime, NfInstanceId, PduSessionType, PlmnIdNid, RatType, SubscribedDefaultQos,
    SupportedFeatures, UserLocation,
};
use crate::nsmf_pdusession::DnnSelectionMode;
use crate::problem::InvalidParam;
use crate::record::record;
use crate::uri::Uri;
use pith_types::{Ambr, Dnn, Guami, Pei, Snssai, Supi};
use std::net::Ipv4Addr;
use std::sync::Arc;

record! {
    /// A PDU session that begins.
    SmPolicyContextData {
        required {
            /// The subscriber.
            supi: Supi,
            /// The UE's number for the session.
            pdu_session_id: u8,
            /// What it carries.
            pdu_session_type: PduSessionType,
            /// Its data network.
            dnn: Dnn,
            /// Where to tell changes: `/update` and `/terminate` are put behind it.
            notification_uri: Uri,
            /// Its slice.
            slice_info: Snssai,
        }
        optional {
            /// Public identity.
            gpsi: Arc<str>,
            /// Nobody has checked that the SUPI is the UE's; in an emergency.
            invalid_supi: bool,
            /// Charging characteristics.
            chargingcharacteristics: Arc<str>,
            /// How the data network came to be chosen.
            dnn_sel_mode: DnnSelectionMode,
            /// The access.
            access_type: AccessType,
            /// The radio.
            rat_type: RatType,
            /// The serving network.
            serving_network: PlmnIdNid,
            /// Where the UE is.
            user_location_info: UserLocation,
            /// Its time zone, `+01:00`.
            ue_time_zone: Arc<str>,
            /// The equipment.
            pei: Pei,
            /// The UE's address.
            ipv4_address: Ipv4Addr,
            /// The UE's prefix.
            ipv6_address_prefix: Arc<str>,
            /// Address domain, where addresses overlap.
            ip_domain: Arc<str>,
            /// Subscribed session AMBR.
            subs_sess_ambr: Ambr,
            /// Subscribed QoS of the default QoS flow.
            subs_def_qos: SubscribedDefaultQos,
            /// Packet filters that the UE can take.
            num_of_pack_filter: u32,
            /// Charged while used.
            online: bool,
            /// Charged after use.
            offline: bool,
            /// The UE has 3GPP PS data off.
            #[serde(rename = "3gppPsDataOffStatus")]
            three_gpp_ps_data_off_status: bool,
            /// Reflective QoS works with this UE.
            ref_qos_indication: bool,
            /// What the default QoS flow is for.
            qos_flow_usage: QosFlowUsage,
            /// The AMF that serves the UE.
            serv_nf_id: ServingNfIdentity,
            /// Optional features that the SMF has.
            supp_feat: SupportedFeatures,
            /// The SMF.
            smf_id: NfInstanceId,
            /// When the SMF last lost its contexts.
            recovery_time: DateTime,
        }
        repeated {
            /// Groups.
            inter_grp_ids: Vec<Arc<str>>,
        }
    }
}

record! {
    /// The node that serves a UE.
    ServingNfIdentity {
        optional {
            /// The AMF.
            serv_nf_inst_id: NfInstanceId,
            /// Its identity.
            guami: Guami,
        }
    }
}

record! {
    /// What happened to a PDU session.
    SmPolicyUpdateContextData {
        optional {
            /// The access.
            access_type: AccessType,
            /// The radio.
            rat_type: RatType,
            /// The serving network.
            serving_network: PlmnIdNid,
            /// Where the UE is.
            user_location_info: UserLocation,
            /// Its time zone, `+01:00`.
            ue_time_zone: Arc<str>,
            /// An address that the UE lost.
            rel_ipv4_address: Ipv4Addr,
            /// An address that the UE got.
            ipv4_address: Ipv4Addr,
            /// A prefix that the UE got.
            ipv6_address_prefix: Arc<str>,
            /// A prefix that the UE lost.
            rel_ipv6_address_prefix: Arc<str>,
            /// Subscribed session AMBR.
            subs_sess_ambr: Ambr,
            /// Subscribed QoS of the default QoS flow.
            subs_def_qos: SubscribedDefaultQos,
            /// When the UE was there.
            user_location_info_time: DateTime,
            /// The node that serves the UE.
            serv_nf_id: ServingNfIdentity,
        }
        repeated {
            /// What happened.
            rep_policy_ctrl_req_triggers: Vec<PolicyControlRequestTrigger>,
            /// How much was used.
            accu_usage_reports: Vec<AccuUsageReport>,
            /// PCC rules that fail, or work again.
            rule_reports: Vec<RuleReport>,
            /// Session rules that fail, or work again.
            sess_rule_reports: Vec<SessionRuleReport>,
            /// Guaranteed bit rates that are not met, or met again.
            qnc_reports: Vec<QosNotificationControlInfo>,
            /// Parts of a decision that could not be carried out.
            policy_dec_failure_reports: Vec<PolicyDecisionFailureCode>,
            /// Members of a decision that were wrong.
            invalid_policy_decs: Vec<InvalidParam>,
        }
    }
}

record! {
    /// A PDU session that has ended.
    SmPolicyDeleteData {
        optional {
            /// Where the UE was.
            user_location_info: UserLocation,
            /// Its time zone, `+01:00`.
            ue_time_zone: Arc<str>,
            /// The serving network.
            serving_network: PlmnIdNid,
            /// When the UE was there.
            user_location_info_time: DateTime,
            /// Why.
            pdu_sess_rel_cause: PduSessionRelCause,
        }
        repeated {
            /// How much was used.
            accu_usage_reports: Vec<AccuUsageReport>,
        }
    }
}
