//! QoS Enforcement Rules.

use crate::group::group;
use crate::ie::*;

group! {
    /// Create QER (TS 29.244 table 7.5.2.5-1).
    pub struct CreateQer {
        M qer_id: QerId = QER_ID,
        C qer_correlation_id: QerCorrelationId = QER_CORRELATION_ID,
        M gate_status: GateStatus = GATE_STATUS,
        C maximum_bitrate: BitRates = MBR,
        C guaranteed_bitrate: BitRates = GBR,
        C packet_rate: PacketRate = PACKET_RATE,
        C packet_rate_status: PacketRateStatus = PACKET_RATE_STATUS,
        C dl_flow_level_marking: DlFlowLevelMarking = DL_FLOW_LEVEL_MARKING,
        C qfi: Qfi = QFI,
        C rqi: Rqi = RQI,
        C paging_policy_indicator: PagingPolicyIndicator = PAGING_POLICY_INDICATOR,
        O averaging_window: Milliseconds = AVERAGING_WINDOW,
        C qer_control_indications: QerControlIndications = QER_CONTROL_INDICATIONS,
        C qer_indications: QerIndications = QER_INDICATIONS,
    }

    /// Update QER (TS 29.244 table 7.5.4.5-1).
    pub struct UpdateQer {
        M qer_id: QerId = QER_ID,
        U qer_correlation_id: QerCorrelationId = QER_CORRELATION_ID,
        C gate_status: GateStatus = GATE_STATUS,
        U maximum_bitrate: BitRates = MBR,
        U guaranteed_bitrate: BitRates = GBR,
        U packet_rate: PacketRate = PACKET_RATE,
        U dl_flow_level_marking: DlFlowLevelMarking = DL_FLOW_LEVEL_MARKING,
        U qfi: Qfi = QFI,
        U rqi: Rqi = RQI,
        U paging_policy_indicator: PagingPolicyIndicator = PAGING_POLICY_INDICATOR,
        U averaging_window: Milliseconds = AVERAGING_WINDOW,
        U qer_control_indications: QerControlIndications = QER_CONTROL_INDICATIONS,
    }

    /// Remove QER (TS 29.244 table 7.5.4.9-1).
    pub struct RemoveQer {
        M qer_id: QerId = QER_ID,
    }

    /// Query Packet Rate Status (TS 29.244 table 7.5.4.22-1).
    pub struct QueryPacketRateStatus {
        M qer_id: QerId = QER_ID,
    }

    /// Packet Rate Status Report, in a Session Modification or Deletion Response or a Session Report Request
    /// (TS 29.244 tables 7.5.5.4-1, 7.5.7.1-2).
    pub struct PacketRateStatusReport {
        M qer_id: QerId = QER_ID,
        M packet_rate_status: PacketRateStatus = PACKET_RATE_STATUS,
    }

    /// DSCP to PPI Control Information (TS 29.244 table 7.5.2.1-6).
    pub struct DscpToPpiControlInformation {
        Ms mappings: DscpToPpiMapping = DSCP_TO_PPI_MAPPING_INFORMATION,
        /// The flows that it applies to; all if empty.
        Cs qfis: Qfi = QFI,
    }
}
