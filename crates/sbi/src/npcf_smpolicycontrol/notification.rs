//! What the PCF tells the SMF on its own, and what the SMF answers.

use super::{
    FailureCause, PolicyDecisionFailureCode, RuleReport, ServingNfIdentity, SessionRuleReport,
    SmPolicyAssociationReleaseCause, SmPolicyDecision,
};
use crate::common::{AccessType, PlmnIdNid, RatType, UserLocation};
use crate::problem::InvalidParam;
use crate::record::record;
use crate::uri::Uri;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

record! {
    /// The PCF has changed its decision.
    SmPolicyNotification {
        optional {
            /// Which policy association.
            resource_uri: Uri,
            /// What changes.
            sm_policy_decision: SmPolicyDecision,
        }
    }
}

/// What the SMF answers to a changed decision, where it has something to tell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SmPolicyUpdateNotifyResult {
    /// Part of it could not be carried out.
    PartialSuccess(Vec<PartialSuccessReport>),
    /// Parts of it could not be carried out.
    Failures(Vec<PolicyDecisionFailureCode>),
    /// What the PCF asked for.
    UeCamping(Box<UeCampingRep>),
}

record! {
    /// What of a decision could not be carried out.
    PartialSuccessReport {
        required {
            /// Why.
            failure_cause: FailureCause,
        }
        optional {
            /// Where the UE is.
            ue_camping_rep: UeCampingRep,
        }
        repeated {
            /// PCC rules that fail.
            rule_reports: Vec<RuleReport>,
            /// Session rules that fail.
            sess_rule_reports: Vec<SessionRuleReport>,
            /// Parts of the decision that could not be carried out.
            policy_dec_failure_reports: Vec<PolicyDecisionFailureCode>,
            /// Members of the decision that were wrong.
            invalid_policy_decs: Vec<InvalidParam>,
        }
    }
}

record! {
    /// Where a UE is.
    UeCampingRep {
        optional {
            /// Over which access.
            access_type: AccessType,
            /// On which radio.
            rat_type: RatType,
            /// Served by whom.
            serv_nf_id: ServingNfIdentity,
            /// In which network.
            serving_network: PlmnIdNid,
            /// In which place.
            user_location_info: UserLocation,
            /// Its time zone, `+01:00`.
            ue_time_zone: Arc<str>,
        }
    }
}

record! {
    /// The PCF wants a policy association to end (`TerminationNotification` of TS 29.512).
    SmPolicyTerminationNotification {
        required {
            /// Which.
            resource_uri: Uri,
            /// Why.
            cause: SmPolicyAssociationReleaseCause,
        }
    }
}
