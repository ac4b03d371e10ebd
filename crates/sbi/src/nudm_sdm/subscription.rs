//! Several data sets at once, subscriptions to changes, and the notifications of them.

use super::{AccessAndMobilitySubscriptionData, SmSubsData, SmfSelectionSubscriptionData};
use crate::common::{DateTime, NfInstanceId, NotifyItem, ServiceName, SupportedFeatures};
use crate::record::{open_enum, record};
use crate::uri::{ResourceUri, Uri};
use pith_types::{Dnn, Plmn, Snssai};
use std::collections::BTreeMap;
use std::sync::Arc;

open_enum! {
    /// A data set of a subscriber.
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
    /// Several data sets of a subscriber.
    SubscriptionDataSets {
        optional {
            /// `AM`.
            am_data: AccessAndMobilitySubscriptionData,
            /// `SMF_SEL`.
            smf_sel_data: SmfSelectionSubscriptionData,
            /// `UEC_SMF`.
            uec_smf_data: UeContextInSmfData,
            /// `SM`.
            sm_data: SmSubsData,
        }
    }
}

record! {
    /// The PDU sessions of a subscriber, and who serves them.
    UeContextInSmfData {
        repeated {
            /// By PDU session identity, in decimal digits.
            pdu_sessions: BTreeMap<Arc<str>, PduSession>,
            /// Gateways of the EPS.
            pgw_info: Vec<PgwInfo>,
        }
    }
}

record! {
    /// A PDU session, and who serves it.
    PduSession {
        required {
            /// Its data network.
            dnn: Dnn,
            /// The SMF.
            smf_instance_id: NfInstanceId,
            /// The serving network.
            plmn_id: Plmn,
        }
        optional {
            /// Its slice.
            single_nssai: Snssai,
        }
    }
}

record! {
    /// A gateway of the EPS.
    PgwInfo {
        required {
            /// Its data network.
            dnn: Dnn,
            /// Its name.
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
            /// Who subscribes.
            nf_instance_id: NfInstanceId,
            /// Where to tell the changes.
            callback_reference: Uri,
            /// The resources that are watched, at least one: `/nudm-sdm/v2/imsi-…/am-data`.
            monitored_resource_uris: Vec<ResourceUri>,
        }
        optional {
            /// It ends when the subscriber's registration does.
            implicit_unsubscribe: bool,
            /// When it ends.
            expires: DateTime,
            /// The service that takes the callback.
            amf_service_name: ServiceName,
            /// Only this slice.
            single_nssai: Snssai,
            /// Only this data network.
            dnn: Dnn,
            /// The UDM's name of it.
            subscription_id: Arc<str>,
            /// The serving network.
            plmn_id: Plmn,
            /// The data shall come with the answer.
            immediate_report: bool,
            /// The data.
            report: SubscriptionDataSets,
            /// Optional features that both have.
            supported_features: SupportedFeatures,
        }
    }
}

record! {
    /// The data of a subscriber has changed.
    ModificationNotification {
        required {
            /// What, at least one.
            notify_items: Vec<NotifyItem>,
        }
    }
}
