//! Location reporting, and other reports of a UE's gNB (TS 38.413 8.12, 8.3.5, 8.15).

use crate::macros::message;
use crate::mobility::LocationRequest;
use crate::types::{Cause, SessionTransfer, UserLocation};
use oxirush_ngap::ngap::{HandoverFlag, RRCState};
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

message! {
    /// RRC INACTIVE TRANSITION REPORT (TS 38.413 9.2.2.10).
    RrcInactiveTransitionReport = InitiatingMessage RRCInactiveTransitionReport RRCInactiveTransitionReport {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// The state that the UE has entered.
        lax state: RRCState = RRCState,
        lax location: UserLocation = UserLocationInformation,
    }
}

message! {
    /// SECONDARY RAT DATA USAGE REPORT (TS 38.413 9.2.14.1).
    SecondaryRatDataUsageReport = InitiatingMessage SecondaryRATDataUsageReport SecondaryRATDataUsageReport {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Secondary RAT Data Usage Report Transfers, for SMFs.
        lax sessions: Vec<SessionTransfer> = PDUSessionResourceSecondaryRATUsageList,
        /// The report is part of a handover preparation.
        lax handover: HandoverFlag = HandoverFlag,
        lax location: UserLocation = UserLocationInformation,
    }
}
