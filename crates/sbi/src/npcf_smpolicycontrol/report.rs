//! What the SMF reports of rules and of usage.

use super::{FailureCode, PolicyDecisionFailureCode, RuleStatus, SessionRuleFailureCode};
use crate::record::{open_enum, record};
use std::sync::Arc;

record! {
    /// PCC rules that fail, or work again.
    RuleReport {
        required {
            /// Which, at least one.
            pcc_rule_ids: Vec<Arc<str>>,
            /// Whether they work.
            rule_status: RuleStatus,
        }
        optional {
            /// Why not.
            failure_code: FailureCode,
        }
        repeated {
            /// Versions of their content.
            cont_vers: Vec<u32>,
        }
    }
}

record! {
    /// Session rules that fail, or work again.
    SessionRuleReport {
        required {
            /// Which, at least one.
            rule_ids: Vec<Arc<str>>,
            /// Whether they work.
            rule_status: RuleStatus,
        }
        optional {
            /// Why not.
            sess_rule_failure_code: SessionRuleFailureCode,
        }
        repeated {
            /// Parts of the decision that could not be carried out.
            policy_dec_failure_reports: Vec<PolicyDecisionFailureCode>,
        }
    }
}

open_enum! {
    /// Whether a guaranteed bit rate is met (TS 29.514).
    QosNotifType {
        Guaranteed = "GUARANTEED",
        NotGuaranteed = "NOT_GUARANTEED",
    }
}

record! {
    /// Guaranteed bit rates that are not met, or met again.
    QosNotificationControlInfo {
        required {
            /// Of which rules, at least one.
            ref_pcc_rule_ids: Vec<Arc<str>>,
            /// Whether.
            notif_type: QosNotifType,
        }
        optional {
            /// Version of the rule's content.
            cont_ver: u32,
        }
    }
}

record! {
    /// How much was used.
    AccuUsageReport {
        required {
            /// Of which usage monitoring.
            ref_um_ids: Arc<str>,
        }
        optional {
            /// Octets both ways.
            vol_usage: u64,
            /// Octets from the UE.
            vol_usage_uplink: u64,
            /// Octets to the UE.
            vol_usage_downlink: u64,
            /// Seconds.
            time_usage: u32,
        }
    }
}
