//! Location reporting (TS 38.413 8.12, 9.2.11).

use crate::macros::message;
use crate::mobility::LocationRequest;
use crate::types::{Cause, UserLocation};
use pith_types::{AmfUeNgapId, RanUeNgapId};

message! {
    /// LOCATION REPORTING CONTROL (TS 38.413 9.2.11.1).
    LocationReportingControl = InitiatingMessage LocationReportingControl LocationReportingControl {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// What to report, and when.
        lax request: LocationRequest = LocationReportingRequestType,
    }
}

message! {
    /// LOCATION REPORTING FAILURE INDICATION (TS 38.413 9.2.11.2).
    LocationReportingFailureIndication =
        InitiatingMessage LocationReportingFailureIndication LocationReportingFailureIndication {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Why.
        lax cause: Cause = Cause,
    }
}

message! {
    /// LOCATION REPORT (TS 38.413 9.2.11.3).
    LocationReport = InitiatingMessage LocationReport LocationReport {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Where the UE is.
        lax location: UserLocation = UserLocationInformation,
        /// The request that the report answers.
        lax request: LocationRequest = LocationReportingRequestType,
    }
}
