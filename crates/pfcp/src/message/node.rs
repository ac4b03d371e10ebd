//! Node reports, session sets and PFD management (TS 29.244 7.4.3, 7.4.5 to 7.4.7).

use crate::group::group;
use crate::ie::*;

group! {
    /// PFD Management Request (TS 29.244 table 7.4.3.1-1).
    pub struct PfdManagementRequest {
        /// Empty: deletes all PFDs of all applications.
        Cs application_ids_pfds: ApplicationIdsPfds = APPLICATION_IDS_PFDS,
        O node_id: NodeId = NODE_ID,
    }

    /// Application ID's PFDs (TS 29.244 table 7.4.3.1-2).
    pub struct ApplicationIdsPfds {
        M application_id: ApplicationId = APPLICATION_ID,
        /// Empty: deletes the application's PFDs.
        Cs pfd_contexts: PfdContext = PFD_CONTEXT,
    }

    /// PFD context (TS 29.244 table 7.4.3.1-3).
    pub struct PfdContext {
        Ms pfd_contents: PfdContents = PFD_CONTENTS,
    }

    /// PFD Management Response (TS 29.244 table 7.4.3.2-1).
    pub struct PfdManagementResponse {
        M cause: Cause = CAUSE,
        C offending_ie: OffendingIe = OFFENDING_IE,
        O node_id: NodeId = NODE_ID,
    }

    /// Node Report Request (TS 29.244 table 7.4.5.1.1-1).
    pub struct NodeReportRequest {
        M node_id: NodeId = NODE_ID,
        M node_report_type: NodeReportType = NODE_REPORT_TYPE,
        C vendor_specific_node_report_type: VendorSpecificNodeReportType = VENDOR_SPECIFIC_NODE_REPORT_TYPE,
        C user_plane_path_failure: UserPlanePathReport = USER_PLANE_PATH_FAILURE_REPORT,
        C user_plane_path_recovery: UserPlanePathReport = USER_PLANE_PATH_RECOVERY_REPORT,
        Cs clock_drift_reports: ClockDriftReport = CLOCK_DRIFT_REPORT,
        Cs gtpu_path_qos_reports: GtpuPathQosReport = GTP_U_PATH_QOS_REPORT,
        C peer_up_restart: UserPlanePathReport = PEER_UP_RESTART_REPORT,
    }

    /// User Plane Path Failure Report, User Plane Path Recovery Report or Peer UP Restart Report: the peers concerned
    /// (TS 29.244 tables 7.4.5.1.2-1, 7.4.5.1.3-1, 7.4.5.1.7-1).
    pub struct UserPlanePathReport {
        Ms remote_gtpu_peers: RemoteGtpuPeer = REMOTE_GTP_U_PEER,
    }

    /// Clock Drift Report (TS 29.244 table 7.4.5.1.4-1).
    pub struct ClockDriftReport {
        M time_domain_number: TimeDomainNumber = TIME_DOMAIN_NUMBER,
        O time_offset_measurement: TimeOffsetMeasurement = TIME_OFFSET_MEASUREMENT,
        O cumulative_rate_ratio_measurement: CumulativeRateRatioMeasurement = CUMULATIVE_RATERATIO_MEASUREMENT,
        O time_stamp: NtpSeconds = TIME_STAMP,
        C network_instance: NetworkInstance = NETWORK_INSTANCE,
        C apn_dnn: ApnDnn = APN_DNN,
        C snssai: Snssai = S_NSSAI,
    }

    /// GTP-U Path QoS Report (TS 29.244 table 7.4.5.1.5-1).
    pub struct GtpuPathQosReport {
        M remote_gtpu_peer: RemoteGtpuPeer = REMOTE_GTP_U_PEER,
        C interface_type: GtpuPathInterfaceType = GTP_U_PATH_INTERFACE_TYPE,
        M qos_report_trigger: QosReportTrigger = QOS_REPORT_TRIGGER,
        M time_stamp: NtpSeconds = TIME_STAMP,
        C start_time: NtpSeconds = START_TIME,
        Ms qos_information: QosInformation = QOS_INFORMATION,
    }

    /// QoS Information in a GTP-U Path QoS Report (TS 29.244 table 7.4.5.1.6-1).
    pub struct QosInformation {
        M average_packet_delay: Milliseconds = AVERAGE_PACKET_DELAY,
        C minimum_packet_delay: Milliseconds = MINIMUM_PACKET_DELAY,
        C maximum_packet_delay: Milliseconds = MAXIMUM_PACKET_DELAY,
        C dscp: TransportLevelMarking = TRANSPORT_LEVEL_MARKING,
    }

    /// Node Report Response (TS 29.244 table 7.4.5.2.1-1).
    pub struct NodeReportResponse {
        M node_id: NodeId = NODE_ID,
        M cause: Cause = CAUSE,
        C offending_ie: OffendingIe = OFFENDING_IE,
    }

    /// Session Set Deletion Request (TS 29.244 table 7.4.6.1-1).
    pub struct SessionSetDeletionRequest {
        M node_id: NodeId = NODE_ID,
        /// FQ-CSIDs of SMF, UPF and, in EPC, other nodes, distinguished by their node type.
        Cs fq_csids: FqCsid = FQ_CSID,
    }

    /// Session Set Deletion Response (TS 29.244 table 7.4.6.2-1).
    pub struct SessionSetDeletionResponse {
        M node_id: NodeId = NODE_ID,
        M cause: Cause = CAUSE,
        C offending_ie: OffendingIe = OFFENDING_IE,
    }

    /// Session Set Modification Request (TS 29.244 table 7.4.7.1-1).
    pub struct SessionSetModificationRequest {
        M node_id: NodeId = NODE_ID,
        Ms session_change_info: SessionChangeInfo = PFCP_SESSION_CHANGE_INFO,
    }

    /// PFCP Session Change Info (TS 29.244 table 7.4.7.1-2).
    pub struct SessionChangeInfo {
        Cs smf_fq_csids: FqCsid = FQ_CSID,
        Cs group_ids: GroupId = GROUP_ID,
        Cs cp_ip_addresses: EntityIpAddress = CP_IP_ADDRESS,
        M alternative_smf_ip_address: AlternativeSmfIpAddress = ALTERNATIVE_SMF_IP_ADDRESS,
    }

    /// Session Set Modification Response (TS 29.244 table 7.4.7.2-1).
    pub struct SessionSetModificationResponse {
        M node_id: NodeId = NODE_ID,
        M cause: Cause = CAUSE,
        C offending_ie: OffendingIe = OFFENDING_IE,
    }
}
