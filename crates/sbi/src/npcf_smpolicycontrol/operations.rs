//! The operations of Npcf_SMPolicyControl.

use super::{
    SmPolicyContextData, SmPolicyControl, SmPolicyDecision, SmPolicyDeleteData, SmPolicyNotification,
    SmPolicyTerminationNotification, SmPolicyUpdateContextData, SmPolicyUpdateNotifyResult,
};
use crate::http::json_bodies;
use crate::operation::{callbacks, operations};

json_bodies! {
    JSON: SmPolicyContextData, SmPolicyControl, SmPolicyDecision, SmPolicyDeleteData,
        SmPolicyNotification, SmPolicyTerminationNotification, SmPolicyUpdateContextData,
        SmPolicyUpdateNotifyResult;
}

operations! {
    NpcfSmpolicycontrol "/npcf-smpolicycontrol/v1";

    /// Creates an SM policy association.
    CreateSmPolicy "Npcf_SMPolicyControl_Create" "CreateSMPolicy"
    Post ["sm-policies"] {}
    body SmPolicyContextData
    => [SmPolicyDecisionCreated];

    /// Reads an SM policy association.
    GetSmPolicy "Npcf_SMPolicyControl_Get" "GetSMPolicy"
    Get ["sm-policies", sm_policy_id] { sm_policy_id: String }
    => [SmPolicyControl];

    /// Reports events of the session.
    UpdateSmPolicy "Npcf_SMPolicyControl_Update" "UpdateSMPolicy"
    Post ["sm-policies", sm_policy_id, "update"] { sm_policy_id: String }
    body SmPolicyUpdateContextData
    => [SmPolicyDecision];

    /// Deletes an SM policy association.
    DeleteSmPolicy "Npcf_SMPolicyControl_Delete" "DeleteSMPolicy"
    Post ["sm-policies", sm_policy_id, "delete"] { sm_policy_id: String }
    body SmPolicyDeleteData
    => [NoContent];
}

callbacks! {
    NpcfSmpolicycontrol;

    /// Changes a policy.
    SmPolicyUpdateNotify "Npcf_SMPolicyControl_UpdateNotify" "sm-policy" "/update"
    body SmPolicyNotification
    => [NoContent, SmPolicyUpdateNotifyResult];

    /// Requests the SMF to delete a policy association.
    SmPolicyTerminateNotify "Npcf_SMPolicyControl_UpdateNotify" "sm-policy" "/terminate"
    body SmPolicyTerminationNotification
    => [NoContent];
}
