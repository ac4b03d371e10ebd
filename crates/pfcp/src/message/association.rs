//! PFCP associations: set-up, update and release (TS 29.244 7.4.4).

use crate::group::group;
use crate::ie::*;

group! {
    /// Association Setup Request (TS 29.244 table 7.4.4.1-1).
    pub struct AssociationSetupRequest {
        M node_id: NodeId = NODE_ID,
        M recovery_time_stamp: NtpSeconds = RECOVERY_TIME_STAMP,
        C up_function_features: UpFunctionFeatures = UP_FUNCTION_FEATURES,
        C cp_function_features: CpFunctionFeatures = CP_FUNCTION_FEATURES,
        Cs alternative_smf_ip_addresses: AlternativeSmfIpAddress = ALTERNATIVE_SMF_IP_ADDRESS,
        C smf_set_id: SmfSetId = SMF_SET_ID,
        /// The sessions that the sender asks to retain.
        O session_retention_information: SessionRetentionInformation = PFCP_SESSION_RETENTION_INFORMATION,
        Cs ue_ip_address_pool_information: UeIpAddressPoolInformation = UE_IP_ADDRESS_POOL_INFORMATION,
        Cs gtpu_path_qos_control_information: GtpuPathQosControlInformation = GTP_U_PATH_QOS_CONTROL_INFORMATION,
        Cs clock_drift_control_information: ClockDriftControlInformation = CLOCK_DRIFT_CONTROL_INFORMATION,
        O upf_instance_id: NfInstanceId = NF_INSTANCE_ID,
        O pfcp_as_req_flags: PfcpAsReqFlags = PFCPASREQ_FLAGS,
    }

    /// Association Setup Response (TS 29.244 table 7.4.4.2-1).
    pub struct AssociationSetupResponse {
        M node_id: NodeId = NODE_ID,
        M cause: Cause = CAUSE,
        M recovery_time_stamp: NtpSeconds = RECOVERY_TIME_STAMP,
        C up_function_features: UpFunctionFeatures = UP_FUNCTION_FEATURES,
        C cp_function_features: CpFunctionFeatures = CP_FUNCTION_FEATURES,
        Cs alternative_smf_ip_addresses: AlternativeSmfIpAddress = ALTERNATIVE_SMF_IP_ADDRESS,
        C smf_set_id: SmfSetId = SMF_SET_ID,
        O pfcp_as_rsp_flags: PfcpAsRspFlags = PFCPASRSP_FLAGS,
        Cs clock_drift_control_information: ClockDriftControlInformation = CLOCK_DRIFT_CONTROL_INFORMATION,
        Cs ue_ip_address_pool_information: UeIpAddressPoolInformation = UE_IP_ADDRESS_POOL_INFORMATION,
        Cs gtpu_path_qos_control_information: GtpuPathQosControlInformation = GTP_U_PATH_QOS_CONTROL_INFORMATION,
        O upf_instance_id: NfInstanceId = NF_INSTANCE_ID,
    }

    /// Association Update Request (TS 29.244 table 7.4.4.3-1).
    pub struct AssociationUpdateRequest {
        M node_id: NodeId = NODE_ID,
        O up_function_features: UpFunctionFeatures = UP_FUNCTION_FEATURES,
        O cp_function_features: CpFunctionFeatures = CP_FUNCTION_FEATURES,
        C association_release_request: ReleaseRequestFlags = PFCP_ASSOCIATION_RELEASE_REQUEST,
        C graceful_release_period: CodedDuration = GRACEFUL_RELEASE_PERIOD,
        O pfcp_au_req_flags: PfcpAuReqFlags = PFCPAUREQ_FLAGS,
        Cs alternative_smf_ip_addresses: AlternativeSmfIpAddress = ALTERNATIVE_SMF_IP_ADDRESS,
        O smf_set_id: SmfSetId = SMF_SET_ID,
        Cs clock_drift_control_information: ClockDriftControlInformation = CLOCK_DRIFT_CONTROL_INFORMATION,
        Cs ue_ip_address_pool_information: UeIpAddressPoolInformation = UE_IP_ADDRESS_POOL_INFORMATION,
        Cs gtpu_path_qos_control_information: GtpuPathQosControlInformation = GTP_U_PATH_QOS_CONTROL_INFORMATION,
        Cs ue_ip_address_usage_information: UeIpAddressUsageInformation = UE_IP_ADDRESS_USAGE_INFORMATION,
    }

    /// Association Update Response (TS 29.244 table 7.4.4.4-1).
    pub struct AssociationUpdateResponse {
        M node_id: NodeId = NODE_ID,
        M cause: Cause = CAUSE,
        O up_function_features: UpFunctionFeatures = UP_FUNCTION_FEATURES,
        O cp_function_features: CpFunctionFeatures = CP_FUNCTION_FEATURES,
        Cs ue_ip_address_usage_information: UeIpAddressUsageInformation = UE_IP_ADDRESS_USAGE_INFORMATION,
    }

    /// Association Release Request (TS 29.244 table 7.4.4.5-1).
    pub struct AssociationReleaseRequest {
        M node_id: NodeId = NODE_ID,
    }

    /// Association Release Response (TS 29.244 table 7.4.4.6-1).
    pub struct AssociationReleaseResponse {
        M node_id: NodeId = NODE_ID,
        M cause: Cause = CAUSE,
    }

    /// PFCP Session Retention Information: the entities whose sessions are to be retained; all of the
    /// sender's if empty (TS 29.244 table 7.4.4.1-2).
    pub struct SessionRetentionInformation {
        Cs cp_pfcp_entity_ip_addresses: EntityIpAddress = CP_PFCP_ENTITY_IP_ADDRESS,
    }

    /// UE IP address Pool Information (TS 29.244 table 7.4.4.1-3).
    pub struct UeIpAddressPoolInformation {
        M pool_identity: UeIpAddressPoolIdentity = UE_IP_ADDRESS_POOL_IDENTITY,
        O network_instance: NetworkInstance = NETWORK_INSTANCE,
        Cs snssais: Snssai = S_NSSAI,
        O ip_version: IpVersion = IP_VERSION,
    }

    /// UE IP Address Usage Information (TS 29.244 table 7.4.4.3.1-1).
    pub struct UeIpAddressUsageInformation {
        M sequence_number: SequenceNumber = SEQUENCE_NUMBER,
        M metric: Metric = METRIC,
        M validity_timer: ValidityTimer = VALIDITY_TIMER,
        M number_of_ue_ip_addresses: NumberOfUeIpAddresses = NUMBER_OF_UE_IP_ADDRESSES,
        M network_instance: NetworkInstance = NETWORK_INSTANCE,
        O pool_identity: UeIpAddressPoolIdentity = UE_IP_ADDRESS_POOL_IDENTITY,
        O snssai: Snssai = S_NSSAI,
    }

    /// Clock Drift Control Information (TS 29.244 table 7.4.4.1.2-1).
    pub struct ClockDriftControlInformation {
        M requested: RequestedClockDriftInformation = REQUESTED_CLOCK_DRIFT_INFORMATION,
        Cs time_domain_numbers: TimeDomainNumber = TIME_DOMAIN_NUMBER,
        C configured_time_domain: ConfiguredTimeDomain = CONFIGURED_TIME_DOMAIN,
        C time_offset_threshold: TimeOffsetThreshold = TIME_OFFSET_THRESHOLD,
        C cumulative_rate_ratio_threshold: CumulativeRateRatioThreshold = CUMULATIVE_RATERATIO_THRESHOLD,
    }

    /// GTP-U Path QoS Control Information (TS 29.244 table 7.4.4.1.3-1).
    pub struct GtpuPathQosControlInformation {
        Cs remote_gtpu_peers: RemoteGtpuPeer = REMOTE_GTP_U_PEER,
        C interface_type: GtpuPathInterfaceType = GTP_U_PATH_INTERFACE_TYPE,
        M qos_report_trigger: QosReportTrigger = QOS_REPORT_TRIGGER,
        Cs dscps: TransportLevelMarking = TRANSPORT_LEVEL_MARKING,
        C measurement_period: Seconds = MEASUREMENT_PERIOD,
        C average_packet_delay: Milliseconds = AVERAGE_PACKET_DELAY,
        C minimum_packet_delay: Milliseconds = MINIMUM_PACKET_DELAY,
        C maximum_packet_delay: Milliseconds = MAXIMUM_PACKET_DELAY,
        C minimum_waiting_time: CodedDuration = TIMER,
    }

    /// Load Control Information (TS 29.244 table 7.5.3.3-1).
    pub struct LoadControlInformation {
        M sequence_number: SequenceNumber = SEQUENCE_NUMBER,
        M metric: Metric = METRIC,
    }

    /// Overload Control Information (TS 29.244 table 7.5.3.4-1).
    pub struct OverloadControlInformation {
        M sequence_number: SequenceNumber = SEQUENCE_NUMBER,
        M reduction_metric: Metric = METRIC,
        M period_of_validity: CodedDuration = TIMER,
        C flags: OciFlags = OCI_FLAGS,
    }
}
