//! Session Reporting Rules: events of the session that do not belong to a PDR.

use crate::group::group;
use crate::ie::*;

group! {
    /// Create SRR (TS 29.244 table 7.5.2.9-1).
    pub struct CreateSrr {
        M srr_id: SrrId = SRR_ID,
        C access_availability: AccessAvailabilityControlInformation = ACCESS_AVAILABILITY_CONTROL_INFORMATION,
        Cs qos_monitoring: QosMonitoringControlInformation = QOS_MONITORING_PER_QOS_FLOW_CONTROL_INFORMATION,
        C direct_reporting: DirectReportingInformation = DIRECT_REPORTING_INFORMATION,
    }

    /// Access Availability Control Information (TS 29.244 table 7.5.2.9-2).
    pub struct AccessAvailabilityControlInformation {
        M requested: RequestedAccessAvailabilityInformation = REQUESTED_ACCESS_AVAILABILITY_INFORMATION,
    }

    /// QoS Monitoring per QoS flow Control Information (TS 29.244 table 7.5.2.9-3).
    pub struct QosMonitoringControlInformation {
        Ms qfis: Qfi = QFI,
        M requested: RequestedQosMonitoring = REQUESTED_QOS_MONITORING,
        M reporting_frequency: ReportingFrequency = REPORTING_FREQUENCY,
        C packet_delay_thresholds: PacketDelays = PACKET_DELAY_THRESHOLDS,
        C minimum_wait_time: Seconds = MINIMUM_WAIT_TIME,
        C measurement_period: Seconds = MEASUREMENT_PERIOD,
    }

    /// Direct Reporting Information (TS 29.244 table 7.5.2.9-4).
    pub struct DirectReportingInformation {
        M event_notification_uri: EventNotificationUri = EVENT_NOTIFICATION_URI,
        C notification_correlation_id: NotificationCorrelationId = NOTIFICATION_CORRELATION_ID,
        C reporting_flags: ReportingFlags = REPORTING_FLAGS,
    }

    /// Update SRR (TS 29.244 table 7.5.4.20-1).
    pub struct UpdateSrr {
        M srr_id: SrrId = SRR_ID,
        C access_availability: AccessAvailabilityControlInformation = ACCESS_AVAILABILITY_CONTROL_INFORMATION,
        Cs qos_monitoring: QosMonitoringControlInformation = QOS_MONITORING_PER_QOS_FLOW_CONTROL_INFORMATION,
        C direct_reporting: DirectReportingInformation = DIRECT_REPORTING_INFORMATION,
    }

    /// Remove SRR (TS 29.244 table 7.5.4.19-1).
    pub struct RemoveSrr {
        M srr_id: SrrId = SRR_ID,
    }

    /// Session Report (TS 29.244 table 7.5.8.6-1).
    pub struct SessionReport {
        M srr_id: SrrId = SRR_ID,
        C access_availability: AccessAvailabilityReport = ACCESS_AVAILABILITY_REPORT,
        Cs qos_monitoring: QosMonitoringReport = QOS_MONITORING_REPORT,
    }

    /// Access Availability Report (TS 29.244 table 7.5.8.6-2).
    pub struct AccessAvailabilityReport {
        Ms information: AccessAvailabilityInformation = ACCESS_AVAILABILITY_INFORMATION,
    }

    /// QoS Monitoring Report (TS 29.244 table 7.5.8.6-3).
    pub struct QosMonitoringReport {
        M qfi: Qfi = QFI,
        M measurement: PacketDelays = QOS_MONITORING_MEASUREMENT,
        M time_stamp: NtpSeconds = TIME_STAMP,
        O start_time: NtpSeconds = START_TIME,
    }
}
