//! Buffering Action Rules.

use crate::group::group;
use crate::ie::*;

group! {
    /// Create BAR (TS 29.244 table 7.5.2.6-1).
    pub struct CreateBar {
        M bar_id: BarId = BAR_ID,
        C downlink_data_notification_delay: DownlinkDataNotificationDelay = DOWNLINK_DATA_NOTIFICATION_DELAY,
        C suggested_buffering_packets_count: SuggestedBufferingPacketsCount = SUGGESTED_BUFFERING_PACKETS_COUNT,
        O mt_edt_control_information: MtEdtControlInformation = MT_EDT_CONTROL_INFORMATION,
    }

    /// Update BAR in a Session Modification Request (TS 29.244 table 7.5.4.11-1).
    pub struct UpdateBar {
        M bar_id: BarId = BAR_ID,
        U downlink_data_notification_delay: DownlinkDataNotificationDelay = DOWNLINK_DATA_NOTIFICATION_DELAY,
        U suggested_buffering_packets_count: SuggestedBufferingPacketsCount = SUGGESTED_BUFFERING_PACKETS_COUNT,
        U mt_edt_control_information: MtEdtControlInformation = MT_EDT_CONTROL_INFORMATION,
    }

    /// Update BAR in a Session Report Response (TS 29.244 table 7.5.9.2-1).
    pub struct UpdateBarInReport {
        M bar_id: BarId = BAR_ID,
        U downlink_data_notification_delay: DownlinkDataNotificationDelay = DOWNLINK_DATA_NOTIFICATION_DELAY,
        /// The duration of buffering without further notification.
        U dl_buffering_duration: CodedDuration = DL_BUFFERING_DURATION,
        U dl_buffering_suggested_packet_count: DlBufferingSuggestedPacketCount = DL_BUFFERING_SUGGESTED_PACKET_COUNT,
        U suggested_buffering_packets_count: SuggestedBufferingPacketsCount = SUGGESTED_BUFFERING_PACKETS_COUNT,
    }

    /// Remove BAR (TS 29.244 table 7.5.4.12-1).
    pub struct RemoveBar {
        M bar_id: BarId = BAR_ID,
    }

    /// Downlink Data Report (TS 29.244 table 7.5.8.2-1).
    pub struct DownlinkDataReport {
        Ms pdr_ids: PdrId = PDR_ID,
        Cs service_information: DownlinkDataServiceInformation = DOWNLINK_DATA_SERVICE_INFORMATION,
        O dl_data_packets_size: DlDataPacketsSize = DL_DATA_PACKETS_SIZE,
        O dl_data_status: DataStatus = DATA_STATUS,
    }

    /// Error Indication Report: a GTP-U peer does not know these endpoints (TS 29.244 table 7.5.8.4-1).
    pub struct ErrorIndicationReport {
        Ms remote_f_teids: FTeid = F_TEID,
    }
}
