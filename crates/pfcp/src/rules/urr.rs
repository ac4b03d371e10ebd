//! Usage Reporting Rules and usage reports.

use crate::group::group;
use crate::ie::*;

group! {
    /// Create URR (TS 29.244 table 7.5.2.4-1).
    pub struct CreateUrr {
        M urr_id: UrrId = URR_ID,
        M measurement_method: MeasurementMethod = MEASUREMENT_METHOD,
        M reporting_triggers: ReportingTriggers = REPORTING_TRIGGERS,
        C measurement_period: Seconds = MEASUREMENT_PERIOD,
        C volume_threshold: Volume = VOLUME_THRESHOLD,
        C volume_quota: Volume = VOLUME_QUOTA,
        C event_threshold: EventCount = EVENT_THRESHOLD,
        C event_quota: EventCount = EVENT_QUOTA,
        C time_threshold: Seconds = TIME_THRESHOLD,
        C time_quota: Seconds = TIME_QUOTA,
        C quota_holding_time: Seconds = QUOTA_HOLDING_TIME,
        C dropped_dl_traffic_threshold: DroppedDlTrafficThreshold = DROPPED_DL_TRAFFIC_THRESHOLD,
        C quota_validity_time: Seconds = QUOTA_VALIDITY_TIME,
        O monitoring_time: NtpSeconds = MONITORING_TIME,
        O subsequent_volume_threshold: Volume = SUBSEQUENT_VOLUME_THRESHOLD,
        O subsequent_time_threshold: Seconds = SUBSEQUENT_TIME_THRESHOLD,
        O subsequent_volume_quota: Volume = SUBSEQUENT_VOLUME_QUOTA,
        O subsequent_time_quota: Seconds = SUBSEQUENT_TIME_QUOTA,
        O subsequent_event_threshold: EventCount = SUBSEQUENT_EVENT_THRESHOLD,
        O subsequent_event_quota: EventCount = SUBSEQUENT_EVENT_QUOTA,
        C inactivity_detection_time: Seconds = INACTIVITY_DETECTION_TIME,
        Cs linked_urr_ids: UrrId = LINKED_URR_ID,
        C measurement_information: MeasurementInformation = MEASUREMENT_INFORMATION,
        C time_quota_mechanism: TimeQuotaMechanism = TIME_QUOTA_MECHANISM,
        Cs aggregated_urrs: AggregatedUrrs = AGGREGATED_URRS,
        /// The FAR that applies when the quota is exhausted.
        C far_id_for_quota_action: FarId = FAR_ID,
        C ethernet_inactivity_timer: Seconds = ETHERNET_INACTIVITY_TIMER,
        Cs additional_monitoring_times: AdditionalMonitoringTime = ADDITIONAL_MONITORING_TIME,
        O number_of_reports: NumberOfReports = NUMBER_OF_REPORTS,
        Cs exempted_application_ids: ApplicationId = APPLICATION_ID,
        Cs exempted_sdf_filters: SdfFilter = SDF_FILTER,
        C user_plane_inactivity_timer: Seconds = USER_PLANE_INACTIVITY_TIMER,
    }

    /// Aggregated URRs (TS 29.244 table 7.5.2.4-2).
    pub struct AggregatedUrrs {
        M urr_id: UrrId = AGGREGATED_URR_ID,
        M multiplier: Multiplier = MULTIPLIER,
    }

    /// Additional Monitoring Time (TS 29.244 table 7.5.2.4-3).
    pub struct AdditionalMonitoringTime {
        M monitoring_time: NtpSeconds = MONITORING_TIME,
        O subsequent_volume_threshold: Volume = SUBSEQUENT_VOLUME_THRESHOLD,
        O subsequent_time_threshold: Seconds = SUBSEQUENT_TIME_THRESHOLD,
        O subsequent_volume_quota: Volume = SUBSEQUENT_VOLUME_QUOTA,
        O subsequent_time_quota: Seconds = SUBSEQUENT_TIME_QUOTA,
        O subsequent_event_threshold: EventCount = SUBSEQUENT_EVENT_THRESHOLD,
        O subsequent_event_quota: EventCount = SUBSEQUENT_EVENT_QUOTA,
    }

    /// Update URR (TS 29.244 table 7.5.4.4-1).
    pub struct UpdateUrr {
        M urr_id: UrrId = URR_ID,
        C measurement_method: MeasurementMethod = MEASUREMENT_METHOD,
        C reporting_triggers: ReportingTriggers = REPORTING_TRIGGERS,
        U measurement_period: Seconds = MEASUREMENT_PERIOD,
        U volume_threshold: Volume = VOLUME_THRESHOLD,
        U volume_quota: Volume = VOLUME_QUOTA,
        U time_threshold: Seconds = TIME_THRESHOLD,
        U time_quota: Seconds = TIME_QUOTA,
        U event_threshold: EventCount = EVENT_THRESHOLD,
        U event_quota: EventCount = EVENT_QUOTA,
        U quota_holding_time: Seconds = QUOTA_HOLDING_TIME,
        U dropped_dl_traffic_threshold: DroppedDlTrafficThreshold = DROPPED_DL_TRAFFIC_THRESHOLD,
        U quota_validity_time: Seconds = QUOTA_VALIDITY_TIME,
        U monitoring_time: NtpSeconds = MONITORING_TIME,
        U subsequent_volume_threshold: Volume = SUBSEQUENT_VOLUME_THRESHOLD,
        U subsequent_time_threshold: Seconds = SUBSEQUENT_TIME_THRESHOLD,
        U subsequent_volume_quota: Volume = SUBSEQUENT_VOLUME_QUOTA,
        U subsequent_time_quota: Seconds = SUBSEQUENT_TIME_QUOTA,
        U subsequent_event_threshold: EventCount = SUBSEQUENT_EVENT_THRESHOLD,
        U subsequent_event_quota: EventCount = SUBSEQUENT_EVENT_QUOTA,
        U inactivity_detection_time: Seconds = INACTIVITY_DETECTION_TIME,
        Us linked_urr_ids: UrrId = LINKED_URR_ID,
        U measurement_information: MeasurementInformation = MEASUREMENT_INFORMATION,
        U time_quota_mechanism: TimeQuotaMechanism = TIME_QUOTA_MECHANISM,
        Us aggregated_urrs: AggregatedUrrs = AGGREGATED_URRS,
        U far_id_for_quota_action: FarId = FAR_ID,
        U ethernet_inactivity_timer: Seconds = ETHERNET_INACTIVITY_TIMER,
        Us additional_monitoring_times: AdditionalMonitoringTime = ADDITIONAL_MONITORING_TIME,
        U number_of_reports: NumberOfReports = NUMBER_OF_REPORTS,
        Us exempted_application_ids: ApplicationId = APPLICATION_ID,
        Us exempted_sdf_filters: SdfFilter = SDF_FILTER,
        U user_plane_inactivity_timer: Seconds = USER_PLANE_INACTIVITY_TIMER,
    }

    /// Remove URR (TS 29.244 table 7.5.4.8-1).
    pub struct RemoveUrr {
        M urr_id: UrrId = URR_ID,
    }

    /// Query URR (TS 29.244 table 7.5.4.10-1).
    pub struct QueryUrr {
        M urr_id: UrrId = URR_ID,
    }

    /// Usage Report, in a Session Modification Response, a Session Deletion Response or a Session Report
    /// Request (TS 29.244 tables 7.5.5.2-1, 7.5.7.2-1, 7.5.8.3-1). The three have separate types; this table
    /// is their union, which is the last one.
    pub struct UsageReport {
        M urr_id: UrrId = URR_ID,
        M ur_seqn: UrSeqn = UR_SEQN,
        M usage_report_trigger: UsageReportTrigger = USAGE_REPORT_TRIGGER,
        C start_time: NtpSeconds = START_TIME,
        C end_time: NtpSeconds = END_TIME,
        C volume_measurement: VolumeMeasurement = VOLUME_MEASUREMENT,
        C duration_measurement: Seconds = DURATION_MEASUREMENT,
        C application_detection_information: ApplicationDetectionInformation = APPLICATION_DETECTION_INFORMATION,
        C ue_ip_address: UeIpAddress = UE_IP_ADDRESS,
        C network_instance: NetworkInstance = NETWORK_INSTANCE,
        C time_of_first_packet: NtpSeconds = TIME_OF_FIRST_PACKET,
        C time_of_last_packet: NtpSeconds = TIME_OF_LAST_PACKET,
        C usage_information: UsageInformation = USAGE_INFORMATION,
        C query_urr_reference: QueryUrrReference = QUERY_URR_REFERENCE,
        Cs event_time_stamps: NtpSeconds = TIME_STAMP,
        C ethernet_traffic_information: EthernetTrafficInformation = ETHERNET_TRAFFIC_INFORMATION,
        Cs join_ip_multicast: IpMulticastGroup = JOIN_IP_MULTICAST_INFORMATION,
        Cs leave_ip_multicast: IpMulticastGroup = LEAVE_IP_MULTICAST_INFORMATION,
        O predefined_rules_name: PredefinedRulesName = PREDEFINED_RULES_NAME,
    }

    /// Application Detection Information (TS 29.244 table 7.5.8.3-2).
    pub struct ApplicationDetectionInformation {
        M application_id: ApplicationId = APPLICATION_ID,
        C application_instance_id: ApplicationInstanceId = APPLICATION_INSTANCE_ID,
        Cs flow_information: FlowInformation = FLOW_INFORMATION,
        O pdr_id: PdrId = PDR_ID,
    }

    /// Ethernet Traffic Information (TS 29.244 table 7.5.8.3-3).
    pub struct EthernetTrafficInformation {
        Cs mac_addresses_detected: MacAddresses = MAC_ADDRESSES_DETECTED,
        Cs mac_addresses_removed: MacAddresses = MAC_ADDRESSES_REMOVED,
    }

    /// Join or Leave IP Multicast Information (TS 29.244 tables 7.5.8.3-4, 7.5.8.3-5).
    pub struct IpMulticastGroup {
        M ip_multicast_address: IpMulticastAddress = IP_MULTICAST_ADDRESS,
        Cs source_ip_addresses: SourceIpAddress = SOURCE_IP_ADDRESS,
    }
}
