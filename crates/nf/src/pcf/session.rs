//! Session management policies (TS 29.512 4.2.2).

use super::{Association, Context, Pcf};
use pith_sbi::npcf_smpolicycontrol::{
    AuthorizedDefaultQos, SessionRule, SmPolicyContextData, SmPolicyControl, SmPolicyDecision,
};
use pith_sbi::nudr_dr::ReadSessionManagementPolicyData;
use std::sync::Arc;

/// The id of the one session rule.
const DEFAULT_RULE: &str = "default";

/// The request for the policy data of the session's slice and data network.
pub(super) fn policy_data(context: &SmPolicyContextData) -> ReadSessionManagementPolicyData {
    ReadSessionManagementPolicyData {
        ue_id: context.supi.clone(),
        snssai: Some(context.slice_info),
        dnn: Some(context.dnn.clone()),
    }
}

/// Authorises the subscribed session-AMBR and default QoS (TS 29.512 4.2.6.3).
pub(super) fn decide(context: &SmPolicyContextData) -> SmPolicyDecision {
    let mut rule = SessionRule::new(Arc::from(DEFAULT_RULE));
    rule.auth_sess_ambr = context.subs_sess_ambr;
    rule.auth_def_qos = context.subs_def_qos.as_ref().map(|subscribed| AuthorizedDefaultQos {
        five_qi: Some(subscribed.five_qi),
        arp: Some(subscribed.arp.clone()),
        priority_level: subscribed.priority_level,
        ..AuthorizedDefaultQos::default()
    });
    let mut decision = SmPolicyDecision::default();
    decision.sess_rules.insert(Arc::from(DEFAULT_RULE), Some(rule));
    decision
}

/// The association's context and decision.
pub(super) fn control(association: &Association) -> Option<SmPolicyControl> {
    let Context::Session(context) = &association.context else { return None };
    Some(SmPolicyControl::new((**context).clone(), Pcf::decision(association)?))
}
