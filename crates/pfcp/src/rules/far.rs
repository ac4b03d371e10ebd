//! Forwarding Action Rules (FARs): what the UPF does with the packets of a PDR.
//!
//! The first word of each line gives the occurrence of the information element ([`crate::group`]): `M` mandatory, `C`
//! conditional, `O` optional, `U` an update that sets or removes a conditional parameter; a following `s` means that several
//! may be present. The last word is the information element's type.

use crate::group::group;
use crate::ie::*;

group! {
    /// Create FAR (TS 29.244 table 7.5.2.3-1).
    pub struct CreateFar {
        M far_id: FarId = FAR_ID,
        M apply_action: ApplyAction = APPLY_ACTION,
        /// Present if the Apply Action requests forwarding (FORW).
        C forwarding_parameters: ForwardingParameters = FORWARDING_PARAMETERS,
        Cs duplicating_parameters: DuplicatingParameters = DUPLICATING_PARAMETERS,
        C bar_id: BarId = BAR_ID,
        C redundant_transmission: RedundantTransmissionForwarding = REDUNDANT_TRANSMISSION_FORWARDING_PARAMETERS,
    }

    /// Forwarding Parameters (TS 29.244 table 7.5.2.3-2).
    pub struct ForwardingParameters {
        M destination_interface: DestinationInterface = DESTINATION_INTERFACE,
        C network_instance: NetworkInstance = NETWORK_INSTANCE,
        C redirect_information: RedirectInformation = REDIRECT_INFORMATION,
        C outer_header_creation: OuterHeaderCreation = OUTER_HEADER_CREATION,
        C transport_level_marking: TransportLevelMarking = TRANSPORT_LEVEL_MARKING,
        C forwarding_policy: ForwardingPolicy = FORWARDING_POLICY,
        Cs header_enrichments: HeaderEnrichment = HEADER_ENRICHMENT,
        C linked_traffic_endpoint_id: TrafficEndpointId = TRAFFIC_ENDPOINT_ID,
        C proxying: Proxying = PROXYING,
        O destination_interface_type: InterfaceType = THREE_GPP_INTERFACE_TYPE,
        C data_network_access_identifier: DataNetworkAccessIdentifier = DATA_NETWORK_ACCESS_IDENTIFIER,
        C ip_address_and_port_replacement: IpAddressAndPortReplacement = IP_ADDRESS_AND_PORT_NUMBER_REPLACEMENT,
    }

    /// Duplicating Parameters (TS 29.244 table 7.5.2.3-3).
    pub struct DuplicatingParameters {
        M destination_interface: DestinationInterface = DESTINATION_INTERFACE,
        C outer_header_creation: OuterHeaderCreation = OUTER_HEADER_CREATION,
        C transport_level_marking: TransportLevelMarking = TRANSPORT_LEVEL_MARKING,
        C forwarding_policy: ForwardingPolicy = FORWARDING_POLICY,
    }

    /// Redundant Transmission Forwarding Parameters (TS 29.244 table 7.5.2.3-4).
    pub struct RedundantTransmissionForwarding {
        M outer_header_creation: OuterHeaderCreation = OUTER_HEADER_CREATION,
        C network_instance: NetworkInstance = NETWORK_INSTANCE,
    }

    /// Update FAR (TS 29.244 table 7.5.4.3-1).
    pub struct UpdateFar {
        M far_id: FarId = FAR_ID,
        C apply_action: ApplyAction = APPLY_ACTION,
        C update_forwarding_parameters: UpdateForwardingParameters = UPDATE_FORWARDING_PARAMETERS,
        Cs update_duplicating_parameters: UpdateDuplicatingParameters = UPDATE_DUPLICATING_PARAMETERS,
        C redundant_transmission: RedundantTransmissionForwarding = REDUNDANT_TRANSMISSION_FORWARDING_PARAMETERS,
        U bar_id: BarId = BAR_ID,
    }

    /// Update Forwarding Parameters (TS 29.244 table 7.5.4.3-2).
    pub struct UpdateForwardingParameters {
        C destination_interface: DestinationInterface = DESTINATION_INTERFACE,
        U network_instance: NetworkInstance = NETWORK_INSTANCE,
        U redirect_information: RedirectInformation = REDIRECT_INFORMATION,
        U outer_header_creation: OuterHeaderCreation = OUTER_HEADER_CREATION,
        U transport_level_marking: TransportLevelMarking = TRANSPORT_LEVEL_MARKING,
        U forwarding_policy: ForwardingPolicy = FORWARDING_POLICY,
        Us header_enrichments: HeaderEnrichment = HEADER_ENRICHMENT,
        /// Only SNDEM applies here: the UPF sends End Markers to the previous F-TEID.
        C pfcp_sm_req_flags: PfcpSmReqFlags = PFCPSMREQ_FLAGS,
        U linked_traffic_endpoint_id: TrafficEndpointId = TRAFFIC_ENDPOINT_ID,
        U destination_interface_type: InterfaceType = THREE_GPP_INTERFACE_TYPE,
        U data_network_access_identifier: DataNetworkAccessIdentifier = DATA_NETWORK_ACCESS_IDENTIFIER,
        U ip_address_and_port_replacement: IpAddressAndPortReplacement = IP_ADDRESS_AND_PORT_NUMBER_REPLACEMENT,
    }

    /// Update Duplicating Parameters (TS 29.244 table 7.5.4.3-3).
    pub struct UpdateDuplicatingParameters {
        C destination_interface: DestinationInterface = DESTINATION_INTERFACE,
        U outer_header_creation: OuterHeaderCreation = OUTER_HEADER_CREATION,
        U transport_level_marking: TransportLevelMarking = TRANSPORT_LEVEL_MARKING,
        U forwarding_policy: ForwardingPolicy = FORWARDING_POLICY,
    }

    /// Remove FAR (TS 29.244 table 7.5.4.7-1).
    pub struct RemoveFar {
        M far_id: FarId = FAR_ID,
    }
}
