//! Session reports, initiated by the UP function (TS 29.244 7.5.8, 7.5.9).

use crate::group::group;
use crate::ie::*;
use crate::message::association::{LoadControlInformation, OverloadControlInformation};
use crate::rules::*;

group! {
    /// Session Report Request (TS 29.244 table 7.5.8.1-1).
    pub struct SessionReportRequest {
        M report_type: ReportType = REPORT_TYPE,
        C downlink_data_report: DownlinkDataReport = DOWNLINK_DATA_REPORT,
        Cs usage_reports: UsageReport = USAGE_REPORT_IN_SESSION_REPORT_REQUEST,
        C error_indication_report: ErrorIndicationReport = ERROR_INDICATION_REPORT,
        O load_control_information: LoadControlInformation = LOAD_CONTROL_INFORMATION,
        O overload_control_information: OverloadControlInformation = OVERLOAD_CONTROL_INFORMATION,
        C additional_usage_reports: AdditionalUsageReports = ADDITIONAL_USAGE_REPORTS_INFORMATION,
        C pfcp_sr_req_flags: PfcpSrReqFlags = PFCPSRREQ_FLAGS,
        /// Present if the report is sent to an SMF other than the session's.
        C old_cp_f_seid: FSeid = F_SEID,
        Cs packet_rate_status_reports: PacketRateStatusReport = PACKET_RATE_STATUS_REPORT_IN_SESSION_DELETION_RESPONSE,
        Cs session_reports: SessionReport = SESSION_REPORT,
        O cause: Cause = CAUSE,
    }

    /// Session Report Response (TS 29.244 table 7.5.9.1-1).
    pub struct SessionReportResponse {
        M cause: Cause = CAUSE,
        C offending_ie: OffendingIe = OFFENDING_IE,
        Cs update_bars: UpdateBarInReport = UPDATE_BAR_IN_SESSION_REPORT_RESPONSE,
        C pfcp_sr_rsp_flags: PfcpSrRspFlags = PFCPSRRSP_FLAGS,
        O cp_f_seid: FSeid = F_SEID,
        O n4u_f_teid: FTeid = F_TEID,
        O alternative_smf_ip_address: AlternativeSmfIpAddress = ALTERNATIVE_SMF_IP_ADDRESS,
        Cs fq_csids: FqCsid = FQ_CSID,
        C group_id: GroupId = GROUP_ID,
        C node_id: NodeId = NODE_ID,
    }
}
