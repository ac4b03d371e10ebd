//! The operations of Nudr_DataRepository.

use super::{AmPolicyData, AuthenticationSubscription, DataChangeNotify, SmPolicyData};
use crate::common::{PatchItem, PatchResult, ServingPlmnId};
use crate::http::json_bodies;
use crate::nudm_sdm::{DataSetName, SdmSubscription};
use crate::nudm_ueau::AuthEvent;
use crate::nudm_uecm::{Amf3GppAccessRegistration, SmfRegistration};
use crate::operation::{callbacks, operations};
use pith_types::{Dnn, Snssai, Supi};

json_bodies! {
    JSON: AmPolicyData, AuthenticationSubscription, DataChangeNotify, PatchResult, SmPolicyData, Vec<SmfRegistration>;
    JSON_PATCH: Vec<PatchItem>;
}

operations! {
    NudrDr "/nudr-dr/v2";

    /// Reads authentication data.
    QueryAuthSubsData "Nudr_DM_Query" "QueryAuthSubsData"
    Get ["subscription-data", ue_id, "authentication-data", "authentication-subscription"]
    { ue_id: Supi }
    => [AuthenticationSubscription];

    /// Updates authentication data: the sequence number.
    ModifyAuthenticationSubscription "Nudr_DM_Update" "ModifyAuthenticationSubscription"
    Patch ["subscription-data", ue_id, "authentication-data", "authentication-subscription"]
    { ue_id: Supi }
    body Vec<PatchItem>
    => [NoContent, PatchResult];

    /// Stores the result of an authentication.
    CreateAuthenticationStatus "Nudr_DM_Create" "CreateAuthenticationStatus"
    Put ["subscription-data", ue_id, "authentication-data", "authentication-status"]
    { ue_id: Supi }
    body AuthEvent
    => [NoContent];

    /// Reads the result of an authentication.
    QueryAuthenticationStatus "Nudr_DM_Query" "QueryAuthenticationStatus"
    Get ["subscription-data", ue_id, "authentication-data", "authentication-status"]
    { ue_id: Supi }
    => [AuthEvent];

    /// Deletes the result of an authentication.
    DeleteAuthenticationStatus "Nudr_DM_Delete" "DeleteAuthenticationStatus"
    Delete ["subscription-data", ue_id, "authentication-data", "authentication-status"]
    { ue_id: Supi }
    => [NoContent];

    /// Reads several data sets of the provisioned data; without names, all.
    QueryProvisionedData "Nudr_DM_Query" "QueryProvisionedData"
    Get ["subscription-data", ue_id, serving_plmn_id, "provisioned-data"]
    { ue_id: Supi, serving_plmn_id: ServingPlmnId }
    query { dataset_names: Vec<DataSetName> = "dataset-names" }
    => [SubscriptionDataSets];

    /// Reads access and mobility subscription data.
    QueryAmData "Nudr_DM_Query" "QueryAmData"
    Get ["subscription-data", ue_id, serving_plmn_id, "provisioned-data", "am-data"]
    { ue_id: Supi, serving_plmn_id: ServingPlmnId }
    => [AmData];

    /// Reads SMF selection data.
    QuerySmfSelectData "Nudr_DM_Query" "QuerySmfSelectData"
    Get ["subscription-data", ue_id, serving_plmn_id, "provisioned-data",
         "smf-selection-subscription-data"]
    { ue_id: Supi, serving_plmn_id: ServingPlmnId }
    => [SmfSelData];

    /// Reads session management subscription data.
    QuerySmData "Nudr_DM_Query" "QuerySmData"
    Get ["subscription-data", ue_id, serving_plmn_id, "provisioned-data", "sm-data"]
    { ue_id: Supi, serving_plmn_id: ServingPlmnId }
    query { single_nssai: Snssai = "single-nssai", dnn: Dnn = "dnn" }
    => [SmData];

    /// Stores the registration of the AMF that serves a UE.
    CreateAmfContextThreeGpp "Nudr_DM_Update" "CreateAmfContext3gpp"
    Put ["subscription-data", ue_id, "context-data", "amf-3gpp-access"] { ue_id: Supi }
    body Amf3GppAccessRegistration
    => [NoContent, Amf3GppAccessRegistrationCreated];

    /// Updates the registration of the AMF.
    ModifyAmfContextThreeGpp "Nudr_DM_Update" "AmfContext3gpp"
    Patch ["subscription-data", ue_id, "context-data", "amf-3gpp-access"] { ue_id: Supi }
    body Vec<PatchItem>
    => [NoContent, PatchResult];

    /// Reads the registration of the AMF that serves a UE.
    QueryAmfContextThreeGpp "Nudr_DM_Query" "QueryAmfContext3gpp"
    Get ["subscription-data", ue_id, "context-data", "amf-3gpp-access"] { ue_id: Supi }
    => [Amf3GppAccessRegistration];

    /// Reads the registrations of the SMFs that serve a UE.
    QuerySmfRegList "Nudr_DM_Query" "QuerySmfRegList"
    Get ["subscription-data", ue_id, "context-data", "smf-registrations"] { ue_id: Supi }
    => [SmfRegList];

    /// Stores the registration of the SMF that serves a PDU session.
    CreateOrUpdateSmfRegistration "Nudr_DM_Update" "CreateOrUpdateSmfRegistration"
    Put ["subscription-data", ue_id, "context-data", "smf-registrations", pdu_session_id]
    { ue_id: Supi, pdu_session_id: u8 }
    body SmfRegistration
    => [SmfRegistrationCreated, NoContent];

    /// Deletes the registration of the SMF that serves a PDU session.
    DeleteSmfRegistration "Nudr_DM_Delete" "DeleteSmfRegistration"
    Delete ["subscription-data", ue_id, "context-data", "smf-registrations", pdu_session_id]
    { ue_id: Supi, pdu_session_id: u8 }
    => [NoContent];

    /// Reads the registration of the SMF that serves a PDU session.
    QuerySmfRegistration "Nudr_DM_Query" "QuerySmfRegistration"
    Get ["subscription-data", ue_id, "context-data", "smf-registrations", pdu_session_id]
    { ue_id: Supi, pdu_session_id: u8 }
    => [SmfRegistration];

    /// Stores a subscription to a subscriber's data.
    CreateSdmSubscriptions "Nudr_DM_Create" "CreateSdmSubscriptions"
    Post ["subscription-data", ue_id, "context-data", "sdm-subscriptions"] { ue_id: Supi }
    body SdmSubscription
    => [SdmSubscriptionCreated];

    /// Reads the subscriptions to a subscriber's data.
    QuerySdmSubscriptions "Nudr_DM_Query" "Querysdmsubscriptions"
    Get ["subscription-data", ue_id, "context-data", "sdm-subscriptions"] { ue_id: Supi }
    => [SdmSubscriptions];

    /// Updates a subscription to a subscriber's data.
    UpdateSdmSubscriptions "Nudr_DM_Update" "Updatesdmsubscriptions"
    Put ["subscription-data", ue_id, "context-data", "sdm-subscriptions", subs_id]
    { ue_id: Supi, subs_id: String }
    body SdmSubscription
    => [NoContent];

    /// Changes members of a subscription to a subscriber's data.
    ModifySdmSubscription "Nudr_DM_Update" "ModifysdmSubscription"
    Patch ["subscription-data", ue_id, "context-data", "sdm-subscriptions", subs_id]
    { ue_id: Supi, subs_id: String }
    body Vec<PatchItem>
    => [NoContent, PatchResult];

    /// Deletes a subscription to a subscriber's data.
    RemoveSdmSubscriptions "Nudr_DM_Delete" "RemovesdmSubscriptions"
    Delete ["subscription-data", ue_id, "context-data", "sdm-subscriptions", subs_id]
    { ue_id: Supi, subs_id: String }
    => [NoContent];

    /// Reads access and mobility policy data.
    ReadAccessAndMobilityPolicyData "Nudr_DM_Query" "ReadAccessAndMobilityPolicyData"
    Get ["policy-data", "ues", ue_id, "am-data"] { ue_id: Supi }
    => [AmPolicyData];

    /// Reads session management policy data.
    ReadSessionManagementPolicyData "Nudr_DM_Query" "ReadSessionManagementPolicyData"
    Get ["policy-data", "ues", ue_id, "sm-data"] { ue_id: Supi }
    query { snssai: Snssai = "snssai", dnn: Dnn = "dnn" }
    => [SmPolicyData];
}

callbacks! {
    NudrDr;

    /// Notifies a change of a subscriber's data.
    DataChangeNotification "Nudr_DM_Notify" "data-change" ""
    body DataChangeNotify
    => [NoContent];
}
