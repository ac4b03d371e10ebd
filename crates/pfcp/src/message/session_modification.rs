//! Session modification (TS 29.244 7.5.4, 7.5.5).

use crate::group::group;
use crate::ie::*;
use crate::message::association::{LoadControlInformation, OverloadControlInformation};
use crate::message::session_establishment::PartialFailureInformation;
use crate::rules::*;

group! {
    /// Session Modification Request (TS 29.244 table 7.5.4.1-1).
    pub struct SessionModificationRequest {
        /// Present if the CP function changes its endpoint.
        C cp_f_seid: FSeid = F_SEID,
        Cs remove_pdrs: RemovePdr = REMOVE_PDR,
        Cs remove_fars: RemoveFar = REMOVE_FAR,
        Cs remove_urrs: RemoveUrr = REMOVE_URR,
        Cs remove_qers: RemoveQer = REMOVE_QER,
        Cs remove_bars: RemoveBar = REMOVE_BAR,
        Cs remove_traffic_endpoints: RemoveTrafficEndpoint = REMOVE_TRAFFIC_ENDPOINT,
        Cs create_pdrs: CreatePdr = CREATE_PDR,
        Cs create_fars: CreateFar = CREATE_FAR,
        Cs create_urrs: CreateUrr = CREATE_URR,
        Cs create_qers: CreateQer = CREATE_QER,
        Cs create_bars: CreateBar = CREATE_BAR,
        Cs create_traffic_endpoints: CreateTrafficEndpoint = CREATE_TRAFFIC_ENDPOINT,
        Cs update_pdrs: UpdatePdr = UPDATE_PDR,
        Cs update_fars: UpdateFar = UPDATE_FAR,
        Cs update_urrs: UpdateUrr = UPDATE_URR,
        Cs update_qers: UpdateQer = UPDATE_QER,
        Cs update_bars: UpdateBar = UPDATE_BAR,
        Cs update_traffic_endpoints: UpdateTrafficEndpoint = UPDATE_TRAFFIC_ENDPOINT,
        C pfcp_sm_req_flags: PfcpSmReqFlags = PFCPSMREQ_FLAGS,
        Cs query_urrs: QueryUrr = QUERY_URR,
        Cs fq_csids: FqCsid = FQ_CSID,
        C user_plane_inactivity_timer: Seconds = USER_PLANE_INACTIVITY_TIMER,
        O query_urr_reference: QueryUrrReference = QUERY_URR_REFERENCE,
        U trace_information: TraceInformation = TRACE_INFORMATION,
        Cs remove_mars: RemoveMar = REMOVE_MAR,
        Cs update_mars: UpdateMar = UPDATE_MAR,
        Cs create_mars: CreateMar = CREATE_MAR,
        /// Present if another SMF of the set takes over the session.
        C node_id: NodeId = NODE_ID,
        Cs remove_srrs: RemoveSrr = REMOVE_SRR,
        Cs create_srrs: CreateSrr = CREATE_SRR,
        Cs update_srrs: UpdateSrr = UPDATE_SRR,
        C ethernet_context_information: EthernetContextInformation = ETHERNET_CONTEXT_INFORMATION,
        Cs access_availability_information: AccessAvailabilityInformation = ACCESS_AVAILABILITY_INFORMATION,
        Cs query_packet_rate_status: QueryPacketRateStatus = QUERY_PACKET_RATE_STATUS,
        O snssai: Snssai = S_NSSAI,
        O rat_type: RatType = RAT_TYPE,
        C group_id: GroupId = GROUP_ID,
        Us dscp_to_ppi_control_information: DscpToPpiControlInformation = DSCP_TO_PPI_CONTROL_INFORMATION,
    }

    /// Ethernet Context Information (TS 29.244 table 7.5.4.21-1).
    pub struct EthernetContextInformation {
        Ms mac_addresses_detected: MacAddresses = MAC_ADDRESSES_DETECTED,
    }

    /// Session Modification Response (TS 29.244 table 7.5.5.1-1).
    pub struct SessionModificationResponse {
        M cause: Cause = CAUSE,
        C offending_ie: OffendingIe = OFFENDING_IE,
        Cs created_pdrs: CreatedPdr = CREATED_PDR,
        O load_control_information: LoadControlInformation = LOAD_CONTROL_INFORMATION,
        O overload_control_information: OverloadControlInformation = OVERLOAD_CONTROL_INFORMATION,
        Cs usage_reports: UsageReport = USAGE_REPORT_IN_SESSION_MODIFICATION_RESPONSE,
        C failed_rule_id: FailedRuleId = FAILED_RULE_ID,
        C additional_usage_reports: AdditionalUsageReports = ADDITIONAL_USAGE_REPORTS_INFORMATION,
        /// Created, or updated.
        Cs created_traffic_endpoints: CreatedTrafficEndpoint = CREATED_TRAFFIC_ENDPOINT,
        Cs updated_pdrs: UpdatedPdr = UPDATED_PDR,
        Cs packet_rate_status_reports: PacketRateStatusReport = PACKET_RATE_STATUS_REPORT_IN_SESSION_MODIFICATION_RESPONSE,
        Cs partial_failure_information: PartialFailureInformation = PARTIAL_FAILURE_INFORMATION,
    }
}
