//! Subscriptions to status changes of NF instances, and their notifications.

use super::NfProfile;
use crate::common::{ChangeItem, DateTime, ExtSnssai, NfInstanceId, NfType, ServiceName, SupportedFeatures};
use crate::record::{open_enum, record};
use crate::uri::Uri;
use pith_types::{Guami, Plmn, Snssai};
use std::sync::Arc;

open_enum! {
    /// Kind of a status change.
    NotificationEventType {
        NfRegistered = "NF_REGISTERED",
        NfDeregistered = "NF_DEREGISTERED",
        NfProfileChanged = "NF_PROFILE_CHANGED",
    }
}

open_enum! {
    /// Whether an NF instance began or ceased to meet a subscription's condition.
    ConditionEventType {
        NfAdded = "NF_ADDED",
        NfRemoved = "NF_REMOVED",
    }
}

record! {
    /// A subscription.
    SubscriptionData {
        required {
            /// Callback URI of the notifications.
            nf_status_notification_uri: Uri,
        }
        optional {
            /// NF instance of the subscriber.
            req_nf_instance_id: NfInstanceId,
            /// Condition; all NF instances if `None`.
            subscr_cond: SubscrCond,
            /// Identifier of the subscription, assigned by the NRF.
            subscription_id: Arc<str>,
            /// Expiry of the subscription.
            validity_time: DateTime,
            /// PLMN of the monitored NF instances.
            plmn_id: Plmn,
            /// Relevant changes of a profile.
            notif_condition: NotifCondition,
            /// NF type of the subscriber.
            req_nf_type: NfType,
            /// FQDN of the subscriber.
            req_nf_fqdn: Arc<str>,
            /// Optional features of the subscriber.
            requester_features: SupportedFeatures,
            /// Optional features of the NRF.
            nrf_supported_features: SupportedFeatures,
        }
        repeated {
            /// Events; all if empty.
            req_notif_events: Vec<NotificationEventType>,
            /// Slices of the subscriber.
            req_snssais: Vec<ExtSnssai>,
            /// PLMNs of the subscriber.
            req_plmn_list: Vec<Plmn>,
        }
    }
}

record! {
    /// The monitored NF instances, by one of the conditions of TS 29.510. All present members must match.
    SubscrCond {
        optional {
            /// A single NF instance.
            nf_instance_id: NfInstanceId,
            /// All instances of an NF type.
            nf_type: NfType,
            /// All instances of a group, with their type.
            nf_group_id: Arc<str>,
            /// All instances with a service.
            service_name: ServiceName,
            /// All AMFs of an AMF set.
            amf_set_id: Arc<str>,
            /// All AMFs of an AMF region.
            amf_region_id: Arc<str>,
            /// All instances of an NF set.
            nf_set_id: Arc<str>,
        }
        repeated {
            /// Several NF instances.
            nf_instance_id_list: Vec<NfInstanceId>,
            /// AMFs with these GUAMIs.
            guami_list: Vec<Guami>,
            /// All instances that serve a slice.
            snssai_list: Vec<Snssai>,
        }
    }
}

impl SubscrCond {
    /// All instances of an NF type.
    pub fn of_type(nf_type: NfType) -> Self {
        Self { nf_type: Some(nf_type), ..Self::default() }
    }

    /// All instances with a service.
    pub fn of_service(service_name: ServiceName) -> Self {
        Self { service_name: Some(service_name), ..Self::default() }
    }

    /// A single NF instance.
    pub fn of_instance(nf_instance_id: NfInstanceId) -> Self {
        Self { nf_instance_id: Some(nf_instance_id), ..Self::default() }
    }
}

record! {
    /// Relevant changes of a profile; one of the two members.
    NotifCondition {
        repeated {
            /// Members that are relevant: JSON pointers.
            monitored_attributes: Vec<Arc<str>>,
            /// Members that are not relevant: JSON pointers.
            unmonitored_attributes: Vec<Arc<str>>,
        }
    }
}

record! {
    /// A notification of a status change.
    NotificationData {
        required {
            /// Kind of the change.
            event: NotificationEventType,
            /// URI of the NF instance.
            nf_instance_uri: Uri,
        }
        optional {
            /// The profile, after a registration or change.
            nf_profile: NfProfile,
            /// Whether the instance began or ceased to meet the condition.
            condition_event: ConditionEventType,
        }
        repeated {
            /// Changes of the profile, in place of the profile.
            profile_changes: Vec<ChangeItem>,
        }
    }
}
