//! Reports of the SMF on rules and usage.

use super::{FailureCode, PolicyDecisionFailureCode, RuleStatus, SessionRuleFailureCode};
use crate::record::{open_enum, record};
use std::sync::Arc;

record! {
    /// A report on PCC rules that failed or are active again.
    RuleReport {
        required {
            /// Identifiers of the rules, at least one.
            pcc_rule_ids: Vec<Arc<str>>,
            /// Status of the rules.
            rule_status: RuleStatus,
        }
        optional {
            /// The reason of the failure.
            failure_code: FailureCode,
        }
        repeated {
            /// Versions of the rules' contents.
            cont_vers: Vec<u32>,
        }
    }
}

record! {
    /// A report on session rules that failed or are active again.
    SessionRuleReport {
        required {
            /// Identifiers of the rules, at least one.
            rule_ids: Vec<Arc<str>>,
            /// Status of the rules.
            rule_status: RuleStatus,
        }
        optional {
            /// The reason of the failure.
            sess_rule_failure_code: SessionRuleFailureCode,
        }
        repeated {
            /// Parts of the decision that could not be enforced.
            policy_dec_failure_reports: Vec<PolicyDecisionFailureCode>,
        }
    }
}

open_enum! {
    /// Whether a guaranteed bit rate is fulfilled (TS 29.514).
    QosNotifType {
        Guaranteed = "GUARANTEED",
        NotGuaranteed = "NOT_GUARANTEED",
    }
}

record! {
    /// A report on guaranteed bit rates.
    QosNotificationControlInfo {
        required {
            /// PCC rules concerned, at least one.
            ref_pcc_rule_ids: Vec<Arc<str>>,
            /// Whether the bit rate is fulfilled.
            notif_type: QosNotifType,
        }
        optional {
            /// Version of the rule's content.
            cont_ver: u32,
        }
    }
}

record! {
    /// Accumulated usage.
    AccuUsageReport {
        required {
            /// Identifier of the usage monitoring data.
            ref_um_ids: Arc<str>,
        }
        optional {
            /// Total volume in octets.
            vol_usage: u64,
            /// Uplink volume in octets.
            vol_usage_uplink: u64,
            /// Downlink volume in octets.
            vol_usage_downlink: u64,
            /// Time in seconds.
            time_usage: u32,
        }
    }
}
