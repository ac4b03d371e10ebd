//! Notifications of the PCF to the SMF, and the SMF's responses.

use super::{
    FailureCause, PolicyDecisionFailureCode, RuleReport, ServingNfIdentity, SessionRuleReport,
    SmPolicyAssociationReleaseCause, SmPolicyDecision,
};
use crate::common::{AccessType, PlmnIdNid, RatType, UserLocation};
use crate::problem::{InvalidParam, ProblemDetails};
use crate::record::record;
use crate::uri::Uri;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

record! {
    /// A changed decision of the PCF.
    SmPolicyNotification {
        optional {
            /// URI of the policy association.
            resource_uri: Uri,
            /// The changes.
            sm_policy_decision: SmPolicyDecision,
        }
    }
}

/// The SMF's response to a changed decision, if it has a body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SmPolicyUpdateNotifyResult {
    /// Some rules could not be enforced.
    PartialSuccess(Vec<PartialSuccessReport>),
    /// Some parts of the decision could not be enforced.
    Failures(Vec<PolicyDecisionFailureCode>),
    /// The values that the PCF requested.
    UeCamping(Box<UeCampingRep>),
}

record! {
    /// The part of a decision that could not be enforced.
    PartialSuccessReport {
        required {
            /// The reason.
            failure_cause: FailureCause,
        }
        optional {
            /// Location and access of the UE.
            ue_camping_rep: UeCampingRep,
        }
        repeated {
            /// Reports on PCC rules.
            rule_reports: Vec<RuleReport>,
            /// Reports on session rules.
            sess_rule_reports: Vec<SessionRuleReport>,
            /// Parts of the decision that could not be enforced.
            policy_dec_failure_reports: Vec<PolicyDecisionFailureCode>,
            /// Invalid members of the decision.
            invalid_policy_decs: Vec<InvalidParam>,
        }
    }
}

record! {
    /// A decision of which no part could be enforced: the body of 400 (TS 29.512 5.7.3).
    ErrorReport {
        optional {
            /// The error. In [`crate::ProblemMore`] it is `None`: the problem's own details are the error.
            error: ProblemDetails,
        }
        repeated {
            /// Reports on PCC rules.
            rule_reports: Vec<RuleReport>,
            /// Reports on session rules.
            sess_rule_reports: Vec<SessionRuleReport>,
            /// Parts of the decision that could not be enforced.
            pol_dec_failure_reports: Vec<PolicyDecisionFailureCode>,
            /// Invalid members of the decision.
            invalid_policy_decs: Vec<InvalidParam>,
        }
    }
}

record! {
    /// Location and access of a UE.
    UeCampingRep {
        optional {
            /// Access type.
            access_type: AccessType,
            /// Radio access technology.
            rat_type: RatType,
            /// Serving node.
            serv_nf_id: ServingNfIdentity,
            /// Serving network.
            serving_network: PlmnIdNid,
            /// Location of the UE.
            user_location_info: UserLocation,
            /// Time zone of the UE, such as `+01:00`.
            ue_time_zone: Arc<str>,
        }
    }
}

record! {
    /// Request of the PCF to terminate a policy association (`TerminationNotification` of TS 29.512).
    SmPolicyTerminationNotification {
        required {
            /// URI of the policy association.
            resource_uri: Uri,
            /// The reason.
            cause: SmPolicyAssociationReleaseCause,
        }
    }
}
