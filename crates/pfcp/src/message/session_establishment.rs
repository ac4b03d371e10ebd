//! Session establishment (TS 29.244 7.5.2, 7.5.3).

use crate::group::group;
use crate::ie::*;
use crate::message::association::{LoadControlInformation, OverloadControlInformation};
use crate::rules::*;

group! {
    /// Session Establishment Request (TS 29.244 table 7.5.2.1-1).
    pub struct SessionEstablishmentRequest {
        M node_id: NodeId = NODE_ID,
        M cp_f_seid: FSeid = F_SEID,
        Ms create_pdrs: CreatePdr = CREATE_PDR,
        Ms create_fars: CreateFar = CREATE_FAR,
        Cs create_urrs: CreateUrr = CREATE_URR,
        Cs create_qers: CreateQer = CREATE_QER,
        Cs create_bars: CreateBar = CREATE_BAR,
        Cs create_traffic_endpoints: CreateTrafficEndpoint = CREATE_TRAFFIC_ENDPOINT,
        C pdn_type: PdnType = PDN_TYPE,
        /// FQ-CSIDs of SMF and, in EPC, other nodes, distinguished by their node type.
        Cs fq_csids: FqCsid = FQ_CSID,
        O user_plane_inactivity_timer: Seconds = USER_PLANE_INACTIVITY_TIMER,
        O user_id: UserId = USER_ID,
        O trace_information: TraceInformation = TRACE_INFORMATION,
        O apn_dnn: ApnDnn = APN_DNN,
        Cs create_mars: CreateMar = CREATE_MAR,
        C pfcp_se_req_flags: PfcpSeReqFlags = PFCPSEREQ_FLAGS,
        Cs create_srrs: CreateSrr = CREATE_SRR,
        O recovery_time_stamp: NtpSeconds = RECOVERY_TIME_STAMP,
        O snssai: Snssai = S_NSSAI,
        O rat_type: RatType = RAT_TYPE,
        O group_id: GroupId = GROUP_ID,
        Cs dscp_to_ppi_control_information: DscpToPpiControlInformation = DSCP_TO_PPI_CONTROL_INFORMATION,
    }

    /// Session Establishment Response (TS 29.244 table 7.5.3.1-1).
    pub struct SessionEstablishmentResponse {
        M node_id: NodeId = NODE_ID,
        M cause: Cause = CAUSE,
        C offending_ie: OffendingIe = OFFENDING_IE,
        /// Present if the request is accepted.
        C up_f_seid: FSeid = F_SEID,
        Cs created_pdrs: CreatedPdr = CREATED_PDR,
        O load_control_information: LoadControlInformation = LOAD_CONTROL_INFORMATION,
        O overload_control_information: OverloadControlInformation = OVERLOAD_CONTROL_INFORMATION,
        Cs fq_csids: FqCsid = FQ_CSID,
        C failed_rule_id: FailedRuleId = FAILED_RULE_ID,
        Cs created_traffic_endpoints: CreatedTrafficEndpoint = CREATED_TRAFFIC_ENDPOINT,
        Cs partial_failure_information: PartialFailureInformation = PARTIAL_FAILURE_INFORMATION,
    }

    /// Partial Failure Information (TS 29.244 table 7.5.3.1-2).
    pub struct PartialFailureInformation {
        M failed_rule_id: FailedRuleId = FAILED_RULE_ID,
        M failure_cause: Cause = CAUSE,
        Ms offending_ie_information: OffendingIeInformation = OFFENDING_IE_INFORMATION,
    }
}
