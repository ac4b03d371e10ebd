//! The operations of Nnrf_NFManagement.

use super::{NfProfile, NotificationData, SubscriptionData, UriList};
use crate::common::{NfInstanceId, NfType, PatchItem, SupportedFeatures};
use crate::http::json_bodies;
use crate::operation::{callbacks, operations};

json_bodies! {
    JSON: NfProfile, NotificationData, SubscriptionData;
    HAL: UriList;
}

operations! {
    NnrfNfm "/nnrf-nfm/v1";

    /// Lists NF instances.
    GetNfInstances "Nnrf_NFManagement_NFListRetrieval" "GetNFInstances"
    Get ["nf-instances"] {}
    query { nf_type: NfType = "nf-type", limit: u32 = "limit" }
    => [UriList];

    /// Reads the profile of an NF instance.
    GetNfInstance "Nnrf_NFManagement_NFProfileRetrieval" "GetNFInstance"
    Get ["nf-instances", nf_instance_id] { nf_instance_id: NfInstanceId }
    query { requester_features: SupportedFeatures = "requester-features" }
    => [NfProfile];

    /// Registers an NF instance, or replaces its profile.
    RegisterNfInstance "Nnrf_NFManagement_NFRegister" "RegisterNFInstance"
    Put ["nf-instances", nf_instance_id] { nf_instance_id: NfInstanceId }
    body NfProfile
    => [NfProfileCreated, NfProfile];

    /// Updates a profile; a heart-beat replaces `/nfStatus` and possibly `/load`.
    UpdateNfInstance "Nnrf_NFManagement_NFUpdate" "UpdateNFInstance"
    Patch ["nf-instances", nf_instance_id] { nf_instance_id: NfInstanceId }
    body Vec<PatchItem>
    => [NoContent, NfProfile];

    /// Deregisters an NF instance.
    DeregisterNfInstance "Nnrf_NFManagement_NFDeregister" "DeregisterNFInstance"
    Delete ["nf-instances", nf_instance_id] { nf_instance_id: NfInstanceId }
    => [NoContent];

    /// Subscribes to status changes of NF instances.
    CreateSubscription "Nnrf_NFManagement_NFStatusSubscribe" "CreateSubscription"
    Post ["subscriptions"] {}
    body SubscriptionData
    => [SubscriptionDataCreated];

    /// Extends a subscription: updates `/validityTime`.
    UpdateSubscription "Nnrf_NFManagement_NFStatusSubscribe" "UpdateSubscription"
    Patch ["subscriptions", subscription_id] { subscription_id: String }
    body Vec<PatchItem>
    => [NoContent, SubscriptionData];

    /// Ends a subscription.
    RemoveSubscription "Nnrf_NFManagement_NFStatusUnsubscribe" "RemoveSubscription"
    Delete ["subscriptions", subscription_id] { subscription_id: String }
    => [NoContent];
}

callbacks! {
    NnrfNfm;

    /// Notifies a status change of an NF instance.
    NfStatusNotify "Nnrf_NFManagement_NFStatusNotify" "nf-status" ""
    body NotificationData
    => [NoContent];
}
