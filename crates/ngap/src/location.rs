//! Location reporting (TS 38.413 8.12, 9.2.11).

use crate::macros::message;
use crate::mobility::LocationRequest;
use crate::types::{Cause, UserLocation};
use pith_types::{AmfUeNgapId, RanUeNgapId};

message! {
    /// LOCATION REPORTING CONTROL (TS 38.413 9.2.11.1).
    LocationReportingControl = InitiatingMessage LocationReportingControl LocationReportingControl {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// The event to report.
        lax request: LocationRequest = LocationReportingRequestType,
    }
}

message! {
    /// LOCATION REPORTING FAILURE INDICATION (TS 38.413 9.2.11.2).
    LocationReportingFailureIndication =
        InitiatingMessage LocationReportingFailureIndication LocationReportingFailureIndication {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        lax cause: Cause = Cause,
    }
}

message! {
    /// LOCATION REPORT (TS 38.413 9.2.11.3).
    LocationReport = InitiatingMessage LocationReport LocationReport {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        lax location: UserLocation = UserLocationInformation,
        /// The request that the report answers.
        lax request: LocationRequest = LocationReportingRequestType,
    }
}
