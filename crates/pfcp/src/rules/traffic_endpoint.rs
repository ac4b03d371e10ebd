//! Traffic endpoints: detection information that several PDRs share (PDI optimisation, TS 29.244 5.2.1A.2).

use super::pdr::{IpMulticastAddressingInfo, RedundantTransmissionDetection};
use crate::group::group;
use crate::ie::*;

group! {
    /// Create Traffic Endpoint (TS 29.244 table 7.5.2.7-1).
    pub struct CreateTrafficEndpoint {
        M traffic_endpoint_id: TrafficEndpointId = TRAFFIC_ENDPOINT_ID,
        C local_f_teid: FTeid = F_TEID,
        C network_instance: NetworkInstance = NETWORK_INSTANCE,
        C redundant_transmission: RedundantTransmissionDetection = REDUNDANT_TRANSMISSION_PARAMETERS,
        Cs ue_ip_addresses: UeIpAddress = UE_IP_ADDRESS,
        C ethernet_pdu_session_information: EthernetPduSessionInformation = ETHERNET_PDU_SESSION_INFORMATION,
        Cs framed_routes: FramedRoute = FRAMED_ROUTE,
        C framed_routing: FramedRouting = FRAMED_ROUTING,
        Cs framed_ipv6_routes: FramedIpv6Route = FRAMED_IPV6_ROUTE,
        Cs qfis: Qfi = QFI,
        O source_interface_type: InterfaceType = THREE_GPP_INTERFACE_TYPE,
        Cs ip_multicast_addressing_info: IpMulticastAddressingInfo = IP_MULTICAST_ADDRESSING_INFO,
        O rat_type: RatType = RAT_TYPE,
    }

    /// Update Traffic Endpoint (TS 29.244 table 7.5.4.13-1).
    pub struct UpdateTrafficEndpoint {
        M traffic_endpoint_id: TrafficEndpointId = TRAFFIC_ENDPOINT_ID,
        U local_f_teid: FTeid = F_TEID,
        U network_instance: NetworkInstance = NETWORK_INSTANCE,
        C redundant_transmission: RedundantTransmissionDetection = REDUNDANT_TRANSMISSION_PARAMETERS,
        Us ue_ip_addresses: UeIpAddress = UE_IP_ADDRESS,
        Us framed_routes: FramedRoute = FRAMED_ROUTE,
        U framed_routing: FramedRouting = FRAMED_ROUTING,
        Us framed_ipv6_routes: FramedIpv6Route = FRAMED_IPV6_ROUTE,
        Us qfis: Qfi = QFI,
        U source_interface_type: InterfaceType = THREE_GPP_INTERFACE_TYPE,
        O rat_type: RatType = RAT_TYPE,
    }

    /// Remove Traffic Endpoint (TS 29.244 table 7.5.4.14-1).
    pub struct RemoveTrafficEndpoint {
        M traffic_endpoint_id: TrafficEndpointId = TRAFFIC_ENDPOINT_ID,
    }

    /// Created or updated Traffic Endpoint: the F-TEIDs allocated by the UP function (TS 29.244 table
    /// 7.5.3.5-1).
    pub struct CreatedTrafficEndpoint {
        M traffic_endpoint_id: TrafficEndpointId = TRAFFIC_ENDPOINT_ID,
        /// The first is the Local F-TEID, a second one is for redundant transmission.
        Cs local_f_teids: FTeid = F_TEID,
        Cs ue_ip_addresses: UeIpAddress = UE_IP_ADDRESS,
    }
}
