//! Subscriptions to what becomes of NF instances, and the notifications of it.

use super::NfProfile;
use crate::common::{ChangeItem, DateTime, ExtSnssai, NfInstanceId, NfType, ServiceName, SupportedFeatures};
use crate::record::{open_enum, record};
use crate::uri::Uri;
use pith_types::{Guami, Plmn, Snssai};
use std::sync::Arc;

open_enum! {
    /// What became of an NF instance.
    NotificationEventType {
        NfRegistered = "NF_REGISTERED",
        NfDeregistered = "NF_DEREGISTERED",
        NfProfileChanged = "NF_PROFILE_CHANGED",
    }
}

open_enum! {
    /// An NF instance began or ceased to meet the condition of a subscription.
    ConditionEventType {
        NfAdded = "NF_ADDED",
        NfRemoved = "NF_REMOVED",
    }
}

record! {
    /// A subscription.
    SubscriptionData {
        required {
            /// Where to tell.
            nf_status_notification_uri: Uri,
        }
        optional {
            /// Who subscribes.
            req_nf_instance_id: NfInstanceId,
            /// Of whom; of all, where `None`.
            subscr_cond: SubscrCond,
            /// The NRF's name of it; in its answers.
            subscription_id: Arc<str>,
            /// When it ends.
            validity_time: DateTime,
            /// The network of those that are watched.
            plmn_id: Plmn,
            /// Which changes count.
            notif_condition: NotifCondition,
            /// What the subscriber is.
            req_nf_type: NfType,
            /// The subscriber's name in DNS.
            req_nf_fqdn: Arc<str>,
            /// Optional features that the subscriber has.
            requester_features: SupportedFeatures,
            /// Optional features that the NRF has.
            nrf_supported_features: SupportedFeatures,
        }
        repeated {
            /// Which events; all, where empty.
            req_notif_events: Vec<NotificationEventType>,
            /// The subscriber's slices.
            req_snssais: Vec<ExtSnssai>,
            /// The subscriber's networks.
            req_plmn_list: Vec<Plmn>,
        }
    }
}

record! {
    /// Whom a subscription is about: by one of the conditions that TS 29.510 has; all members that
    /// are there must be met.
    SubscrCond {
        optional {
            /// One instance.
            nf_instance_id: NfInstanceId,
            /// All of a type.
            nf_type: NfType,
            /// All of a group, with their type.
            nf_group_id: Arc<str>,
            /// All that offer a service.
            service_name: ServiceName,
            /// All AMFs of a set.
            amf_set_id: Arc<str>,
            /// All AMFs of a region.
            amf_region_id: Arc<str>,
            /// All of an NF set.
            nf_set_id: Arc<str>,
        }
        repeated {
            /// Some instances.
            nf_instance_id_list: Vec<NfInstanceId>,
            /// AMFs by identity.
            guami_list: Vec<Guami>,
            /// All that serve a slice.
            snssai_list: Vec<Snssai>,
        }
    }
}

impl SubscrCond {
    /// All of a type.
    pub fn of_type(nf_type: NfType) -> Self {
        Self { nf_type: Some(nf_type), ..Self::default() }
    }

    /// All that offer a service.
    pub fn of_service(service_name: ServiceName) -> Self {
        Self { service_name: Some(service_name), ..Self::default() }
    }

    /// One instance.
    pub fn of_instance(nf_instance_id: NfInstanceId) -> Self {
        Self { nf_instance_id: Some(nf_instance_id), ..Self::default() }
    }
}

record! {
    /// Which changes of a profile count; one of the two.
    NotifCondition {
        repeated {
            /// Only those of these members: JSON pointers.
            monitored_attributes: Vec<Arc<str>>,
            /// All but those of these members: JSON pointers.
            unmonitored_attributes: Vec<Arc<str>>,
        }
    }
}

record! {
    /// What became of an NF instance.
    NotificationData {
        required {
            /// What.
            event: NotificationEventType,
            /// Of which.
            nf_instance_uri: Uri,
        }
        optional {
            /// Its profile, when it registered or changed.
            nf_profile: NfProfile,
            /// It began or ceased to meet the condition.
            condition_event: ConditionEventType,
        }
        repeated {
            /// Its changes, instead of its profile.
            profile_changes: Vec<ChangeItem>,
        }
    }
}
