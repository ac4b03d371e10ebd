//! Retrieval of several data sets, subscriptions to changes, and their notifications.

use super::{AccessAndMobilitySubscriptionData, SmSubsData, SmfSelectionSubscriptionData};
use crate::common::{DateTime, NfInstanceId, NotifyItem, ServiceName, SupportedFeatures};
use crate::record::{open_enum, record};
use crate::uri::{ResourceUri, Uri};
use pith_types::{Dnn, Plmn, Snssai};
use std::collections::BTreeMap;
use std::sync::Arc;

open_enum! {
    /// Names of data sets.
    DataSetName {
        Am = "AM",
        SmfSel = "SMF_SEL",
        UecSmf = "UEC_SMF",
        UecAmf = "UEC_AMF",
        Sm = "SM",
        SmsSub = "SMS_SUB",
        SmsMng = "SMS_MNG",
        Trace = "TRACE",
    }
}

record! {
    /// Several data sets.
    SubscriptionDataSets {
        optional {
            /// Data set `AM`.
            am_data: AccessAndMobilitySubscriptionData,
            /// Data set `SMF_SEL`.
            smf_sel_data: SmfSelectionSubscriptionData,
            /// Data set `UEC_SMF`.
            uec_smf_data: UeContextInSmfData,
            /// Data set `SM`.
            sm_data: SmSubsData,
        }
    }
}

record! {
    /// PDU sessions of a subscriber, with their SMFs.
    UeContextInSmfData {
        repeated {
            /// Sessions by PDU session identity in decimal digits.
            pdu_sessions: BTreeMap<Arc<str>, PduSession>,
            /// PGWs of EPS.
            pgw_info: Vec<PgwInfo>,
        }
    }
}

record! {
    /// A PDU session with its SMF.
    PduSession {
        required {
            /// DNN.
            dnn: Dnn,
            /// NF instance of the SMF.
            smf_instance_id: NfInstanceId,
            /// The serving network.
            plmn_id: Plmn,
        }
        optional {
            /// Slice.
            single_nssai: Snssai,
        }
    }
}

record! {
    /// A PGW of EPS.
    PgwInfo {
        required {
            /// DNN.
            dnn: Dnn,
            /// FQDN of the PGW.
            pgw_fqdn: Arc<str>,
        }
        optional {
            /// The serving network.
            plmn_id: Plmn,
        }
    }
}

record! {
    /// A subscription to changes of a subscriber's data.
    SdmSubscription {
        required {
            /// NF instance of the subscriber.
            nf_instance_id: NfInstanceId,
            /// Callback URI of the notifications.
            callback_reference: Uri,
            /// Monitored resources, at least one, such as `/nudm-sdm/v2/imsi-…/am-data`.
            monitored_resource_uris: Vec<ResourceUri>,
        }
        optional {
            /// Whether the subscription ends with the UE's registration.
            implicit_unsubscribe: bool,
            /// Expiry of the subscription.
            expires: DateTime,
            /// Service of the callback.
            amf_service_name: ServiceName,
            /// Restriction to a slice.
            single_nssai: Snssai,
            /// Restriction to a DNN.
            dnn: Dnn,
            /// Identifier of the subscription, assigned by the UDM.
            subscription_id: Arc<str>,
            /// The serving network.
            plmn_id: Plmn,
            /// Whether the response must contain the data.
            immediate_report: bool,
            /// The data, if requested.
            report: SubscriptionDataSets,
            /// Optional features of both sides.
            supported_features: SupportedFeatures,
            /// Whether this subscription replaces the UE's former ones of the same NF instance.
            unique_subscription: bool,
        }
    }
}

record! {
    /// A change of a subscription (JSON Merge Patch).
    SdmSubsModification {
        optional {
            /// The new expiry of the subscription.
            #[serde(default, deserialize_with = "crate::record::not_null")]
            expires: DateTime,
        }
        repeated {
            /// The monitored resources, in place of the former ones; absent: these stay.
            #[serde(deserialize_with = "crate::record::not_empty")]
            monitored_resource_uris: Vec<ResourceUri>,
        }
    }
}

record! {
    /// A notification of changes.
    ModificationNotification {
        required {
            /// Changes by resource, at least one.
            notify_items: Vec<NotifyItem>,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `expires` is not nullable, and `monitoredResourceUris` has `minItems: 1`.
    #[test]
    fn a_modification_has_no_null_and_no_empty_array() {
        let read = |json: &str| serde_json::from_str::<SdmSubsModification>(json);
        assert_eq!(read("{}").unwrap(), SdmSubsModification::default());
        let whole =
            r#"{"expires":"2026-03-31T00:00:00Z","monitoredResourceUris":["/nudm-sdm/v2/imsi-1/am-data"]}"#;
        let whole = read(whole).unwrap();
        assert!(whole.expires.is_some() && whole.monitored_resource_uris.len() == 1);
        for json in
            [r#"{"expires":null}"#, r#"{"monitoredResourceUris":[]}"#, r#"{"monitoredResourceUris":null}"#]
        {
            assert!(read(json).is_err(), "{json}");
        }
    }
}
