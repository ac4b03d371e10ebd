//! ReleaseSMContext and SMContextStatusNotify: the end of a PDU session.

use super::{N2SmInfoType, ResourceStatus, SmContextCause};
use crate::common::{AccessType, BinaryData, NfInstanceId, NgApCause, UserLocation};
use crate::embedded::EmbeddedDocument;
use crate::record::record;
use serde_json::Value;
use std::sync::Arc;

record! {
    /// A request to release a PDU session.
    SmContextReleaseData {
        optional {
            /// The reason.
            cause: SmContextCause,
            /// The reason as an NGAP cause.
            ng_ap_cause: NgApCause,
            /// The reason as a 5GMM cause (TS 24.501 9.11.3.2).
            #[serde(rename = "5gMmCauseValue")]
            five_g_mm_cause_value: u32,
            /// Location of the UE.
            ue_location: UserLocation,
            /// Time zone of the UE, such as `+01:00`.
            ue_time_zone: Arc<str>,
            /// Whether only the V-SMF's part of the session is released.
            vsmf_release_only: bool,
            /// NGAP information from the gNB.
            n2_sm_info: BinaryData,
            /// Type of the NGAP information.
            n2_sm_info_type: N2SmInfoType,
            /// Stored contexts of the UE, between instances of Pith ([`crate::embedded`]).
            #[serde(rename = "vendorSpecific-032473")]
            embedded: EmbeddedDocument,
        }
    }
}

record! {
    /// Remaining small data rates of a released PDU session.
    SmContextReleasedData {
        optional {
            /// Small data rate control status.
            small_data_rate_status: Value,
            /// APN rate control status.
            apn_rate_status: Value,
            /// Stored contexts of the UE, between instances of Pith ([`crate::embedded`]).
            #[serde(rename = "vendorSpecific-032473")]
            embedded: EmbeddedDocument,
        }
    }
}

record! {
    /// A notification of a PDU session's status.
    SmContextStatusNotification {
        required {
            /// The status.
            status_info: StatusInfo,
        }
        optional {
            /// The new SMF of the session.
            new_smf_id: NfInstanceId,
            /// The SMF set of the new SMF.
            new_smf_set_id: Arc<str>,
            /// The previous SMF.
            old_smf_id: NfInstanceId,
        }
    }
}

record! {
    /// Status of a PDU session.
    StatusInfo {
        required {
            /// Status of the resource.
            resource_status: ResourceStatus,
        }
        optional {
            /// The reason.
            cause: SmContextCause,
            /// Access type.
            an_type: AccessType,
        }
    }
}
