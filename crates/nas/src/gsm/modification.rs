//! PDU session modification (TS 24.501 8.3.7 to 8.3.11).

use crate::cause::GsmCause;
use crate::ie::*;
use crate::table::message;
use pith_types::Ambr;

message! {
    /// PDU SESSION MODIFICATION REQUEST (TS 24.501 Table 8.3.7.1.1), UE to network.
    PduSessionModificationRequest {}
    optional {
        /// Capabilities of the UE.
        0x28 gsm_capability: GsmCapability = Tlv(3, 15);
        /// Error in the network's rules.
        0x59 cause: GsmCause = Tv(2);
        /// More than 16 packet filters.
        0x55 maximum_packet_filters: MaximumPacketFilters = Tv(3);
        /// An always-on session is requested.
        0xb0 always_on_requested: AlwaysOn = Tv1;
        /// The UE's maximum rate.
        0x13 integrity_protection_maximum_data_rate: IntegrityProtectionMaximumDataRate = Tv(3);
        /// Requested rules.
        0x7a requested_qos_rules: QosRules = TlvE(7, 65538);
        /// Requested flows.
        0x79 requested_qos_flow_descriptions: QosFlowDescriptions = TlvE(6, 65538);
        /// For mobility to EPS.
        0x75 mapped_eps_bearer_contexts: Vec<u8> = TlvE(7, 65538);
        /// Data network parameters that the UE requests.
        0x7b extended_pco: UplinkPco = TlvE(4, 65538);
        /// Time sensitive networking.
        0x74 port_management_information_container: Vec<u8> = TlvE(4, 65538);
        /// Header compression of CIoT.
        0x66 ip_header_compression_configuration: Vec<u8> = Tlv(5, 257);
        /// Header compression of CIoT.
        0x1f ethernet_header_compression_configuration: u8 = Tlv(3, 3);
        /// Multicast and broadcast sessions to join or leave.
        0x70 requested_mbs_container: Vec<u8> = TlvE(8, 65538);
        /// Service-level authentication and authorization.
        0x72 service_level_aa_container: Vec<u8> = TlvE(4, ANY);
    }
}

message! {
    /// PDU SESSION MODIFICATION REJECT (TS 24.501 Table 8.3.8.1.1), network to UE.
    PduSessionModificationReject {
        /// Cause of the reject.
        cause: GsmCause = V(1);
    }
    optional {
        /// Back-off before another attempt.
        0x37 back_off_timer: GprsTimer3 = Tlv(3, 3);
        /// Scope of the back-off.
        0x61 congestion_re_attempt_indicator: CongestionReAttemptIndicator = Tlv(3, 3);
        /// Data network parameters for the UE.
        0x7b extended_pco: DownlinkPco = TlvE(4, 65538);
        /// Where another attempt is not allowed.
        0x1d re_attempt_indicator: ReAttemptIndicator = Tlv(3, 3);
    }
}

message! {
    /// PDU SESSION MODIFICATION COMMAND (TS 24.501 Table 8.3.9.1.1), network to UE.
    PduSessionModificationCommand {}
    optional {
        /// Cause of the modification.
        0x59 cause: GsmCause = Tv(2);
        /// For all non-GBR flows of the session.
        0x2a session_ambr: Ambr = Tlv(8, 8);
        /// Reflective QoS timer.
        0x56 rq_timer: GprsTimer2 = Tv(2);
        /// The session is always on.
        0x80 always_on: AlwaysOn = Tv1;
        /// Rules that map packets to QoS flows.
        0x7a qos_rules: QosRules = TlvE(7, 65538);
        /// For mobility to EPS.
        0x75 mapped_eps_bearer_contexts: Vec<u8> = TlvE(7, 65538);
        /// Parameters of the QoS flows.
        0x79 qos_flow_descriptions: QosFlowDescriptions = TlvE(6, 65538);
        /// Data network parameters for the UE.
        0x7b extended_pco: DownlinkPco = TlvE(4, 65538);
        /// Access traffic steering.
        0x77 atsss_container: Vec<u8> = TlvE(3, 65538);
        /// Header compression of CIoT.
        0x66 ip_header_compression_configuration: Vec<u8> = Tlv(5, 257);
        /// Time sensitive networking.
        0x74 port_management_information_container: Vec<u8> = TlvE(4, 65538);
        /// Uplink messages allowed in six minutes.
        0x1e serving_plmn_rate_control: u16 = Tlv(4, 4);
        /// Header compression of CIoT.
        0x1f ethernet_header_compression_configuration: u8 = Tlv(3, 3);
        /// Multicast and broadcast sessions joined or left.
        0x71 received_mbs_container: Vec<u8> = TlvE(9, 65538);
        /// Service-level authentication and authorization.
        0x72 service_level_aa_container: Vec<u8> = TlvE(4, ANY);
    }
}

message! {
    /// PDU SESSION MODIFICATION COMPLETE (TS 24.501 Table 8.3.10.1.1), UE to network.
    PduSessionModificationComplete {}
    optional {
        /// Data network parameters that the UE requests.
        0x7b extended_pco: UplinkPco = TlvE(4, 65538);
        /// Time sensitive networking.
        0x74 port_management_information_container: Vec<u8> = TlvE(4, 65538);
    }
}

message! {
    /// PDU SESSION MODIFICATION COMMAND REJECT (TS 24.501 Table 8.3.11.1.1), UE to network.
    PduSessionModificationCommandReject {
        /// Cause of the reject.
        cause: GsmCause = V(1);
    }
    optional {
        /// Data network parameters that the UE requests.
        0x7b extended_pco: UplinkPco = TlvE(4, 65538);
    }
}
