//! Session deletion (TS 29.244 7.5.6, 7.5.7).

use crate::group::group;
use crate::ie::*;
use crate::message::association::{LoadControlInformation, OverloadControlInformation};
use crate::rules::*;

group! {
    /// Session Deletion Request: its header identifies the session (TS 29.244 table 7.5.6-1).
    pub struct SessionDeletionRequest {
        /// Present if another SMF of the set takes over the session.
        C node_id: NodeId = NODE_ID,
        /// Present if that SMF changes the endpoint.
        C cp_f_seid: FSeid = F_SEID,
    }

    /// Session Deletion Response (TS 29.244 table 7.5.7.1-1).
    pub struct SessionDeletionResponse {
        M cause: Cause = CAUSE,
        C offending_ie: OffendingIe = OFFENDING_IE,
        O load_control_information: LoadControlInformation = LOAD_CONTROL_INFORMATION,
        O overload_control_information: OverloadControlInformation = OVERLOAD_CONTROL_INFORMATION,
        Cs usage_reports: UsageReport = USAGE_REPORT_IN_SESSION_DELETION_RESPONSE,
        C additional_usage_reports: AdditionalUsageReports = ADDITIONAL_USAGE_REPORTS_INFORMATION,
        Cs packet_rate_status_reports: PacketRateStatusReport = PACKET_RATE_STATUS_REPORT_IN_SESSION_DELETION_RESPONSE,
        Cs session_reports: SessionReport = SESSION_REPORT,
        C pfcp_sd_rsp_flags: PfcpSdRspFlags = PFCPSDRSP_FLAGS,
    }
}
