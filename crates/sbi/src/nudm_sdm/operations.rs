//! The operations of Nudm_SubscriberDataManagement.

use super::{
    AccessAndMobilitySubscriptionData, DataSetName, ModificationNotification, Nssai, SdmSubsModification,
    SdmSubscription, SmSubsData, SmfSelectionSubscriptionData, SubscriptionDataSets, UeContextInSmfData,
};
use crate::common::{PlmnIdNid, SupportedFeatures};
use crate::http::json_bodies;
use crate::operation::{callbacks, operations};
use pith_types::{Dnn, Plmn, Snssai, Supi};

json_bodies! {
    JSON: AccessAndMobilitySubscriptionData, ModificationNotification, Nssai, SdmSubscription,
        Vec<SdmSubscription>, SmSubsData, SmfSelectionSubscriptionData, SubscriptionDataSets,
        UeContextInSmfData;
    MERGE_PATCH: SdmSubsModification;
}

operations! {
    NudmSdm "/nudm-sdm/v2";

    /// Retrieves several data sets.
    GetDataSets "Nudm_SDM_Get" "GetDataSets"
    Get [supi] { supi: Supi }
    required { dataset_names: Vec<DataSetName> = "dataset-names" }
    query { plmn_id: PlmnIdNid = "plmn-id" }
    => [SubscriptionDataSets];

    /// Retrieves the subscribed slices.
    GetNssai "Nudm_SDM_Get" "GetNSSAI"
    Get [supi, "nssai"] { supi: Supi }
    query { plmn_id: PlmnIdNid = "plmn-id" }
    => [Nssai];

    /// Retrieves access and mobility subscription data.
    GetAmData "Nudm_SDM_Get" "GetAmData"
    Get [supi, "am-data"] { supi: Supi }
    query { supported_features: SupportedFeatures = "supported-features",
            plmn_id: PlmnIdNid = "plmn-id" }
    => [AmData];

    /// Retrieves SMF selection data.
    GetSmfSelData "Nudm_SDM_Get" "GetSmfSelData"
    Get [supi, "smf-select-data"] { supi: Supi }
    query { plmn_id: PlmnIdNid = "plmn-id" }
    => [SmfSelData];

    /// Retrieves PDU sessions and their SMFs.
    GetUeCtxInSmfData "Nudm_SDM_Get" "GetUeCtxInSmfData"
    Get [supi, "ue-context-in-smf-data"] { supi: Supi }
    => [UeContextInSmfData];

    /// Retrieves session management subscription data.
    GetSmData "Nudm_SDM_Get" "GetSmData"
    Get [supi, "sm-data"] { supi: Supi }
    query { single_nssai: Snssai = "single-nssai", dnn: Dnn = "dnn", plmn_id: Plmn = "plmn-id" }
    => [SmData];

    /// Subscribes to changes.
    SdmSubscribe "Nudm_SDM_Subscribe" "Subscribe"
    Post [ue_id, "sdm-subscriptions"] { ue_id: Supi }
    body SdmSubscription
    => [SdmSubscriptionCreated];

    /// Ends a subscription.
    SdmUnsubscribe "Nudm_SDM_Unsubscribe" "Unsubscribe"
    Delete [ue_id, "sdm-subscriptions", subscription_id] { ue_id: Supi, subscription_id: String }
    => [NoContent];

    /// Changes a subscription.
    SdmModifySubscription "Nudm_SDM_ModifySubscription" "Modify"
    Patch [ue_id, "sdm-subscriptions", subscription_id] { ue_id: Supi, subscription_id: String }
    body SdmSubsModification
    => [SdmSubscription];
}

callbacks! {
    NudmSdm;

    /// Notifies changes of a subscriber's data.
    SdmChangeNotification "Nudm_SDM_Notification" "sdm-change" ""
    body ModificationNotification
    => [NoContent];
}
