//! PDU session establishment (TS 24.501 8.3.1 to 8.3.3).

use crate::cause::GsmCause;
use crate::ie::*;
use crate::table::message;
use pith_types::{Ambr, Dnn};

message! {
    /// PDU SESSION ESTABLISHMENT REQUEST (TS 24.501 Table 8.3.1.1.1), UE to network.
    PduSessionEstablishmentRequest {
        /// The UE's maximum rate.
        integrity_protection_maximum_data_rate: IntegrityProtectionMaximumDataRate = V(2);
    }
    optional {
        /// Requested type.
        0x90 pdu_session_type: PduSessionType = Tv1;
        /// Requested SSC mode.
        0xa0 ssc_mode: SscMode = Tv1;
        /// Capabilities of the UE.
        0x28 gsm_capability: GsmCapability = Tlv(3, 15);
        /// More than 16 packet filters.
        0x55 maximum_packet_filters: MaximumPacketFilters = Tv(3);
        /// An always-on session is requested.
        0xb0 always_on_requested: AlwaysOn = Tv1;
        /// Identity for the data network's authentication.
        0x39 sm_pdu_dn_request_container: Vec<u8> = Tlv(3, 255);
        /// Data network parameters that the UE requests.
        0x7b extended_pco: UplinkPco = TlvE(4, 65538);
        /// Header compression of CIoT.
        0x66 ip_header_compression_configuration: Vec<u8> = Tlv(5, 257);
        /// Time sensitive networking.
        0x6e ds_tt_ethernet_port_mac_address: [u8; 6] = Tlv(8, 8);
        /// Time sensitive networking.
        0x6f ue_ds_tt_residence_time: [u8; 8] = Tlv(10, 10);
        /// Time sensitive networking.
        0x74 port_management_information_container: Vec<u8> = TlvE(4, 65538);
        /// Header compression of CIoT.
        0x1f ethernet_header_compression_configuration: u8 = Tlv(3, 3);
        /// Interface identifier that the UE suggests for its link-local address.
        0x29 suggested_interface_identifier: SuggestedInterfaceIdentifier = Tlv(11, 11);
        /// Service-level authentication and authorization.
        0x72 service_level_aa_container: Vec<u8> = TlvE(4, ANY);
        /// Multicast and broadcast sessions to join.
        0x70 requested_mbs_container: Vec<u8> = TlvE(8, 65538);
        /// Redundant sessions.
        0x34 pdu_session_pair_id: u8 = Tlv(3, 3);
        /// Redundant sessions.
        0x35 redundancy_sequence_number: u8 = Tlv(3, 3);
    }
}

message! {
    /// PDU SESSION ESTABLISHMENT ACCEPT (TS 24.501 Table 8.3.2.1.1), network to UE.
    PduSessionEstablishmentAccept {
        /// Type of the session.
        pdu_session_type: PduSessionType = Low;
        /// SSC mode of the session.
        ssc_mode: SscMode = High;
        /// Rules that map packets to QoS flows.
        qos_rules: QosRules = LvE(6, 65538);
        /// For all non-GBR flows of the session.
        session_ambr: Ambr = Lv(7, 7);
    }
    optional {
        /// Why the session type differs from the requested one.
        0x59 cause: GsmCause = Tv(2);
        /// The UE's address.
        0x29 pdu_address: PduAddress = Tlv(7, 31);
        /// Reflective QoS timer.
        0x56 rq_timer: GprsTimer2 = Tv(2);
        /// Slice of the session.
        0x22 snssai: MappedSnssai = Tlv(3, 10);
        /// The session is always on.
        0x80 always_on: AlwaysOn = Tv1;
        /// For mobility to EPS.
        0x75 mapped_eps_bearer_contexts: Vec<u8> = TlvE(7, 65538);
        /// EAP-success.
        0x78 eap_message: Vec<u8> = TlvE(7, 1503);
        /// Parameters of the QoS flows.
        0x79 qos_flow_descriptions: QosFlowDescriptions = TlvE(6, 65538);
        /// Data network parameters for the UE.
        0x7b extended_pco: DownlinkPco = TlvE(4, 65538);
        /// Data network of the session.
        0x25 dnn: Dnn = Tlv(3, 102);
        /// Features of the network.
        0x17 gsm_network_feature_support: Vec<u8> = Tlv(3, 15);
        /// Uplink messages allowed in six minutes.
        0x18 serving_plmn_rate_control: u16 = Tlv(4, 4);
        /// Access traffic steering.
        0x77 atsss_container: Vec<u8> = TlvE(3, 65538);
        /// User data over the control plane only.
        0xc0 control_plane_only: u8 = Tv1;
        /// Header compression of CIoT.
        0x66 ip_header_compression_configuration: Vec<u8> = Tlv(5, 257);
        /// Header compression of CIoT.
        0x1f ethernet_header_compression_configuration: u8 = Tlv(3, 3);
        /// Service-level authentication and authorization.
        0x72 service_level_aa_container: Vec<u8> = TlvE(4, ANY);
        /// Multicast and broadcast sessions joined.
        0x71 received_mbs_container: Vec<u8> = TlvE(9, 65538);
    }
}

message! {
    /// PDU SESSION ESTABLISHMENT REJECT (TS 24.501 Table 8.3.3.1.1), network to UE.
    PduSessionEstablishmentReject {
        /// Cause of the rejection.
        cause: GsmCause = V(1);
    }
    optional {
        /// Back-off before another attempt.
        0x37 back_off_timer: GprsTimer3 = Tlv(3, 3);
        /// SSC modes that the network allows.
        0xf0 allowed_ssc_mode: AllowedSscMode = Tv1;
        /// EAP-failure.
        0x78 eap_message: Vec<u8> = TlvE(7, 1503);
        /// Scope of the back-off.
        0x61 congestion_re_attempt_indicator: CongestionReAttemptIndicator = Tlv(3, 3);
        /// Data network parameters for the UE.
        0x7b extended_pco: DownlinkPco = TlvE(4, 65538);
        /// Where another attempt is not allowed.
        0x1d re_attempt_indicator: ReAttemptIndicator = Tlv(3, 3);
        /// Service-level authentication and authorization.
        0x72 service_level_aa_container: Vec<u8> = TlvE(4, ANY);
    }
}
