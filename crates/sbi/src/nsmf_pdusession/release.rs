//! ReleaseSMContext and SMContextStatusNotify: the ends of a PDU session.

use super::{N2SmInfoType, ResourceStatus, SmContextCause};
use crate::common::{AccessType, BinaryData, NfInstanceId, NgApCause, UserLocation};
use crate::record::record;
use serde_json::Value;
use std::sync::Arc;

record! {
    /// Why the AMF ends a PDU session, and where the UE was.
    SmContextReleaseData {
        optional {
            /// Why.
            cause: SmContextCause,
            /// Why, as NGAP puts it.
            ng_ap_cause: NgApCause,
            /// Why, as 5GMM puts it (TS 24.501 9.11.3.2).
            #[serde(rename = "5gMmCauseValue")]
            five_g_mm_cause_value: u32,
            /// Where the UE is.
            ue_location: UserLocation,
            /// Its time zone, `+01:00`.
            ue_time_zone: Arc<str>,
            /// Only the visited part of the session ends.
            vsmf_release_only: bool,
            /// NGAP information from the gNB.
            n2_sm_info: BinaryData,
            /// Which.
            n2_sm_info_type: N2SmInfoType,
        }
    }
}

record! {
    /// What is left of a PDU session: how much small data the UE may still send.
    SmContextReleasedData {
        optional {
            /// By the session's limit.
            small_data_rate_status: Value,
            /// By the access point's limit.
            apn_rate_status: Value,
        }
    }
}

record! {
    /// The SMF tells what became of a PDU session.
    SmContextStatusNotification {
        required {
            /// What.
            status_info: StatusInfo,
        }
        optional {
            /// The SMF that has the session now.
            new_smf_id: NfInstanceId,
            /// The set of that SMF.
            new_smf_set_id: Arc<str>,
            /// The SMF that had it.
            old_smf_id: NfInstanceId,
        }
    }
}

record! {
    /// What became of a PDU session.
    StatusInfo {
        required {
            /// What.
            resource_status: ResourceStatus,
        }
        optional {
            /// Why.
            cause: SmContextCause,
            /// Over which access.
            an_type: AccessType,
        }
    }
}
