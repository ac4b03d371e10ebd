//! Packet Detection Rules.

use crate::group::group;
use crate::ie::*;

group! {
    /// Create PDR (TS 29.244 table 7.5.2.2-1).
    pub struct CreatePdr {
        M pdr_id: PdrId = PDR_ID,
        M precedence: Precedence = PRECEDENCE,
        M pdi: Pdi = PDI,
        C outer_header_removal: OuterHeaderRemoval = OUTER_HEADER_REMOVAL,
        /// Absent only if predefined rules determine the forwarding.
        C far_id: FarId = FAR_ID,
        Cs urr_ids: UrrId = URR_ID,
        Cs qer_ids: QerId = QER_ID,
        Cs activate_predefined_rules: PredefinedRulesName = ACTIVATE_PREDEFINED_RULES,
        O activation_time: NtpSeconds = ACTIVATION_TIME,
        O deactivation_time: NtpSeconds = DEACTIVATION_TIME,
        C mar_id: MarId = MAR_ID,
        C packet_replication: PacketReplication = PACKET_REPLICATION_AND_DETECTION_CARRY_ON_INFORMATION,
        Cs ip_multicast_addressing_info: IpMulticastAddressingInfo = IP_MULTICAST_ADDRESSING_INFO,
        Cs ue_ip_address_pool_identities: UeIpAddressPoolIdentity = UE_IP_ADDRESS_POOL_IDENTITY,
        C mptcp_applicable_indication: MptcpApplicableIndication = MPTCP_APPLICABLE_INDICATION,
        C transport_delay_reporting: TransportDelayReporting = TRANSPORT_DELAY_REPORTING,
        O rat_type: RatType = RAT_TYPE,
    }

    /// PDI, Packet Detection Information: a packet matches if it matches every element; of repeated elements
    /// it must match one (TS 29.244 table 7.5.2.2-2).
    pub struct Pdi {
        M source_interface: SourceInterface = SOURCE_INTERFACE,
        C local_f_teid: FTeid = F_TEID,
        C network_instance: NetworkInstance = NETWORK_INSTANCE,
        C redundant_transmission: RedundantTransmissionDetection = REDUNDANT_TRANSMISSION_PARAMETERS,
        Cs ue_ip_addresses: UeIpAddress = UE_IP_ADDRESS,
        Cs traffic_endpoint_ids: TrafficEndpointId = TRAFFIC_ENDPOINT_ID,
        Cs sdf_filters: SdfFilter = SDF_FILTER,
        C application_id: ApplicationId = APPLICATION_ID,
        C ethernet_pdu_session_information: EthernetPduSessionInformation = ETHERNET_PDU_SESSION_INFORMATION,
        Cs ethernet_packet_filters: EthernetPacketFilter = ETHERNET_PACKET_FILTER,
        Cs qfis: Qfi = QFI,
        Cs framed_routes: FramedRoute = FRAMED_ROUTE,
        C framed_routing: FramedRouting = FRAMED_ROUTING,
        Cs framed_ipv6_routes: FramedIpv6Route = FRAMED_IPV6_ROUTE,
        O source_interface_type: InterfaceType = THREE_GPP_INTERFACE_TYPE,
        Cs ip_multicast_addressing_info: IpMulticastAddressingInfo = IP_MULTICAST_ADDRESSING_INFO,
        Cs dns_query_filters: DnsQueryFilter = DNS_QUERY_FILTER,
    }

    /// Ethernet Packet Filter (TS 29.244 table 7.5.2.2-3).
    pub struct EthernetPacketFilter {
        C filter_id: EthernetFilterId = ETHERNET_FILTER_ID,
        C filter_properties: EthernetFilterProperties = ETHERNET_FILTER_PROPERTIES,
        Cs mac_addresses: MacAddress = MAC_ADDRESS,
        C ethertype: Ethertype = ETHERTYPE,
        C c_tag: VlanTag = C_TAG,
        C s_tag: VlanTag = S_TAG,
        Cs sdf_filters: SdfFilter = SDF_FILTER,
    }

    /// IP Multicast Addressing Info (TS 29.244 table 7.5.2.2-4).
    pub struct IpMulticastAddressingInfo {
        M ip_multicast_address: IpMulticastAddress = IP_MULTICAST_ADDRESS,
        Cs source_ip_addresses: SourceIpAddress = SOURCE_IP_ADDRESS,
    }

    /// Redundant Transmission Detection Parameters (TS 29.244 table 7.5.2.2-5).
    pub struct RedundantTransmissionDetection {
        M local_f_teid: FTeid = F_TEID,
        C network_instance: NetworkInstance = NETWORK_INSTANCE,
    }

    /// Transport Delay Reporting (TS 29.244 table 7.5.2.2-6).
    pub struct TransportDelayReporting {
        M preceding_ul_gtpu_peer: RemoteGtpuPeer = REMOTE_GTP_U_PEER,
        O dscp: TransportLevelMarking = TRANSPORT_LEVEL_MARKING,
    }

    /// Update PDR (TS 29.244 table 7.5.4.2-1).
    pub struct UpdatePdr {
        M pdr_id: PdrId = PDR_ID,
        U outer_header_removal: OuterHeaderRemoval = OUTER_HEADER_REMOVAL,
        C precedence: Precedence = PRECEDENCE,
        /// Replaces the whole PDI.
        C pdi: Pdi = PDI,
        C far_id: FarId = FAR_ID,
        Us urr_ids: UrrId = URR_ID,
        Us qer_ids: QerId = QER_ID,
        Cs activate_predefined_rules: PredefinedRulesName = ACTIVATE_PREDEFINED_RULES,
        Cs deactivate_predefined_rules: PredefinedRulesName = DEACTIVATE_PREDEFINED_RULES,
        U activation_time: NtpSeconds = ACTIVATION_TIME,
        U deactivation_time: NtpSeconds = DEACTIVATION_TIME,
        Us ip_multicast_addressing_info: IpMulticastAddressingInfo = IP_MULTICAST_ADDRESSING_INFO,
        U transport_delay_reporting: TransportDelayReporting = TRANSPORT_DELAY_REPORTING,
        O rat_type: RatType = RAT_TYPE,
    }

    /// Remove PDR (TS 29.244 table 7.5.4.6-1).
    pub struct RemovePdr {
        M pdr_id: PdrId = PDR_ID,
    }

    /// Created PDR: the F-TEIDs allocated by the UP function (TS 29.244 table 7.5.3.2-1).
    pub struct CreatedPdr {
        M pdr_id: PdrId = PDR_ID,
        /// The first is the Local F-TEID, a second one is for redundant transmission.
        Cs local_f_teids: FTeid = F_TEID,
        Cs ue_ip_addresses: UeIpAddress = UE_IP_ADDRESS,
    }

    /// Updated PDR: the F-TEIDs newly allocated by the UP function (TS 29.244 table 7.5.5.5-1).
    pub struct UpdatedPdr {
        M pdr_id: PdrId = PDR_ID,
        Cs local_f_teids: FTeid = F_TEID,
        Cs ue_ip_addresses: UeIpAddress = UE_IP_ADDRESS,
    }
}
