//! Registration (TS 24.501 8.2.6 to 8.2.9).

use crate::cause::GmmCause;
use crate::ie::*;
use crate::table::message;
use pith_types::{Plmn, Tai};

message! {
    /// REGISTRATION REQUEST (TS 24.501 Table 8.2.6.1.1), UE to network.
    RegistrationRequest {
        /// Type: initial, mobility, periodic, emergency.
        registration_type: RegistrationType = Low;
        /// Which security context the message is protected with.
        ng_ksi: NgKsi = High;
        /// SUCI or 5G-GUTI.
        mobile_identity: MobileIdentity = LvE(6, ANY);
    }
    optional {
        /// A native key set in addition to a mapped one.
        0xc0 non_current_native_ng_ksi: NgKsi = Tv1;
        /// Capabilities of the UE.
        0x10 gmm_capability: GmmCapability = Tlv(3, 15);
        /// Algorithms of the UE.
        0x2e ue_security_capability: UeSecurityCapability = Tlv(4, 10);
        /// Slices that the UE requests.
        0x2f requested_nssai: Nssai = Tlv(4, 74);
        /// Last visited registered TAI.
        0x52 last_visited_registered_tai: Tai = Tv(7);
        /// EPS algorithms and more.
        0x17 s1_ue_network_capability: Vec<u8> = Tlv(4, 15);
        /// Sessions with user data pending.
        0x40 uplink_data_status: PduSessionSet = Tlv(4, 34);
        /// Sessions that are active in the UE.
        0x50 pdu_session_status: PduSessionSet = Tlv(4, 34);
        /// Mobile initiated connection only.
        0xb0 mico_indication: MicoIndication = Tv1;
        /// Registration state of the UE in EPC and 5GC.
        0x2b ue_status: UeStatus = Tlv(3, 3);
        /// A native 5G-GUTI in addition to a mapped one.
        0x77 additional_guti: MobileIdentity = TlvE(14, 14);
        /// Sessions of non-3GPP access that may move to 3GPP access.
        0x25 allowed_pdu_session_status: PduSessionSet = Tlv(4, 34);
        /// Voice or data centric.
        0x18 ue_usage_setting: UeUsageSetting = Tlv(3, 3);
        /// Requested DRX cycle.
        0x51 requested_drx_parameters: DrxParameters = Tlv(3, 3);
        /// A TRACKING AREA UPDATE or ATTACH REQUEST of EPS.
        0x70 eps_nas_message_container: Vec<u8> = TlvE(4, ANY);
        /// LADNs that the UE requests.
        0x74 ladn_indication: LadnIndication = TlvE(3, 811);
        /// Type of the payload container.
        0x80 payload_container_type: PayloadContainerType = Tv1;
        /// Another payload.
        0x7b payload_container: Vec<u8> = TlvE(4, 65538);
        /// Whether the requested NSSAI is derived from the default configured one.
        0x90 network_slicing_indication: NetworkSlicingIndication = Tv1;
        /// SMS over NAS, radio capability update.
        0x53 update_type: UpdateType = Tlv(3, 3);
        /// Mobile station classmark 2.
        0x41 mobile_station_classmark_2: Vec<u8> = Tlv(5, 5);
        /// Codecs of circuit switched voice.
        0x42 supported_codecs: Vec<u8> = Tlv(5, ANY);
        /// The complete REGISTRATION REQUEST, ciphered (TS 24.501 4.4.6).
        0x71 nas_message_container: Vec<u8> = TlvE(4, ANY);
        /// EPS bearers that are active in the UE.
        0x60 eps_bearer_context_status: u16 = Tlv(4, 4);
        /// Requested extended DRX.
        0x6e requested_extended_drx_parameters: ExtendedDrxParameters = Tlv(3, 4);
        /// Active time of MICO with active time.
        0x6a t3324: GprsTimer3 = Tlv(3, 3);
        /// The identity of the UE radio capability.
        0x67 ue_radio_capability_id: UeRadioCapabilityId = Tlv(3, ANY);
        /// HPLMN slices to which the requested ones are mapped.
        0x35 requested_mapped_nssai: Vec<u8> = Tlv(3, 42);
        /// Ciphering key data for positioning.
        0x48 additional_information_requested: u8 = Tlv(3, 3);
        /// Wake-up signal.
        0x1a requested_wus_assistance_information: Vec<u8> = Tlv(3, ANY);
        /// A device that is not 5G capable over cable access.
        0xa0 n5gc_indication: u8 = Tv1;
        /// DRX for NB-N1 mode.
        0x30 requested_nb_n1_mode_drx_parameters: u8 = Tlv(3, 3);
        /// NAS signalling connection release, rejection of paging.
        0x29 ue_request_type: u8 = Tlv(3, 3);
        /// Paging restriction.
        0x28 paging_restriction: Vec<u8> = Tlv(3, 35);
        /// Service-level authentication and authorization.
        0x72 service_level_aa_container: Vec<u8> = TlvE(4, ANY);
        /// Network identifier of an onboarding SNPN.
        0x32 nid: [u8; 6] = Tlv(8, 8);
        /// PLMN with a disaster condition.
        0x16 plmn_with_disaster_condition: Plmn = Tlv(5, 5);
        /// Paging early indication.
        0x2a requested_peips_assistance_information: Vec<u8> = Tlv(3, ANY);
        /// Requested periodic update timer.
        0x3b requested_t3512: GprsTimer3 = Tlv(3, 3);
    }
}

message! {
    /// REGISTRATION ACCEPT (TS 24.501 Table 8.2.7.1.1), network to UE.
    RegistrationAccept {
        /// The access over which the UE is registered.
        result: RegistrationResult = Lv(2, 2);
    }
    optional {
        /// The UE's new temporary identity.
        0x77 guti: MobileIdentity = TlvE(14, 14);
        /// Equivalent PLMNs.
        0x4a equivalent_plmns: PlmnList = Tlv(5, 47);
        /// Registration area.
        0x54 tai_list: TaiList = Tlv(9, 114);
        /// Slices that the UE may use here.
        0x15 allowed_nssai: Nssai = Tlv(4, 74);
        /// Requested slices that are not allowed.
        0x11 rejected_nssai: RejectedNssai = Tlv(4, 42);
        /// Slices that the UE may request in this PLMN.
        0x31 configured_nssai: Nssai = Tlv(4, 146);
        /// IMS voice, emergency services.
        0x21 network_feature_support: NetworkFeatureSupport = Tlv(3, 5);
        /// Sessions that are active in the network.
        0x50 pdu_session_status: PduSessionSet = Tlv(4, 34);
        /// Sessions whose user plane could not be set up.
        0x26 reactivation_result: PduSessionSet = Tlv(4, 34);
        /// Causes of the failed reactivations.
        0x72 reactivation_result_error_cause: ReactivationErrors = TlvE(5, 515);
        /// Local area data networks.
        0x79 ladn_information: LadnInformation = TlvE(12, 1715);
        /// Mobile initiated connection only.
        0xb0 mico_indication: MicoIndication = Tv1;
        /// The subscription's slices have changed.
        0x90 network_slicing_indication: NetworkSlicingIndication = Tv1;
        /// Areas where service is allowed or not.
        0x27 service_area_list: ServiceAreaList = Tlv(6, 114);
        /// Periodic registration update.
        0x5e t3512: GprsTimer3 = Tlv(3, 3);
        /// Implicit deregistration over non-3GPP access.
        0x5d non_three_gpp_deregistration_timer: GprsTimer2 = Tlv(3, 3);
        /// Wait after failed attempts.
        0x16 t3502: GprsTimer2 = Tlv(3, 3);
        /// Local emergency numbers.
        0x34 emergency_number_list: EmergencyNumberList = Tlv(5, 50);
        /// Local emergency numbers with URNs.
        0x7a extended_emergency_number_list: Vec<u8> = TlvE(7, 65538);
        /// Steering of roaming.
        0x73 sor_transparent_container: Vec<u8> = TlvE(20, ANY);
        /// EAP-success of an emergency registration.
        0x78 eap_message: Vec<u8> = TlvE(7, 1503);
        /// When the UE includes the NSSAI in RRC.
        0xa0 nssai_inclusion_mode: NssaiInclusionMode = Tv1;
        /// The operator's own access categories.
        0x76 operator_defined_access_categories: Vec<u8> = TlvE(3, 8323);
        /// Negotiated DRX cycle.
        0x51 negotiated_drx_parameters: DrxParameters = Tlv(3, 3);
        /// Emergency numbers of non-3GPP access.
        0xd0 non_three_gpp_nw_policies: u8 = Tv1;
        /// EPS bearers that are active in the network.
        0x60 eps_bearer_context_status: u16 = Tlv(4, 4);
        /// Negotiated extended DRX.
        0x6e negotiated_extended_drx_parameters: ExtendedDrxParameters = Tlv(3, 4);
        /// Service gap.
        0x6c t3447: GprsTimer3 = Tlv(3, 3);
        /// Back-off of the control plane data path.
        0x6b t3448: GprsTimer2 = Tlv(3, 3);
        /// Active time of MICO with active time.
        0x6a t3324: GprsTimer3 = Tlv(3, 3);
        /// The identity of the UE radio capability.
        0x67 ue_radio_capability_id: UeRadioCapabilityId = Tlv(3, ANY);
        /// Delete UE radio capability identities.
        0xe0 ue_radio_capability_id_deletion: u8 = Tv1;
        /// Slices pending slice-specific authentication.
        0x39 pending_nssai: Nssai = Tlv(4, 146);
        /// Positioning assistance keys.
        0x74 ciphering_key_data: Vec<u8> = TlvE(34, ANY);
        /// Closed access groups.
        0x75 cag_information_list: Vec<u8> = TlvE(3, ANY);
        /// For NB-N1 mode.
        0x1b truncated_s_tmsi_configuration: u8 = Tlv(3, 3);
        /// Wake-up signal.
        0x1c negotiated_wus_assistance_information: Vec<u8> = Tlv(3, ANY);
        /// DRX for NB-N1 mode.
        0x29 negotiated_nb_n1_mode_drx_parameters: u8 = Tlv(3, 3);
        /// Rejected slices with a back-off timer.
        0x68 extended_rejected_nssai: Vec<u8> = Tlv(5, 90);
        /// Service-level authentication and authorization.
        0x7b service_level_aa_container: Vec<u8> = TlvE(4, ANY);
        /// Paging early indication.
        0x33 negotiated_peips_assistance_information: Vec<u8> = Tlv(3, ANY);
        /// Rejection of a paging restriction.
        0x35 additional_request_result: u8 = Tlv(3, 3);
        /// Groups of slices that may be used together.
        0x70 nssrg_information: Vec<u8> = TlvE(7, 4099);
        /// Wait before disaster roaming.
        0x14 disaster_roaming_wait_range: [u8; 2] = Tlv(4, 4);
        /// Wait before the return from disaster roaming.
        0x2c disaster_return_wait_range: [u8; 2] = Tlv(4, 4);
        /// PLMNs to use in a disaster.
        0x13 disaster_plmns: PlmnList = Tlv(2, ANY);
        /// Forbidden tracking areas for roaming.
        0x1d forbidden_tais_roaming: TaiList = Tlv(9, 114);
        /// Forbidden tracking areas for regional provision of service.
        0x1e forbidden_tais_regional: TaiList = Tlv(9, 114);
        /// Closed access groups, extended.
        0x71 extended_cag_information_list: Vec<u8> = TlvE(3, ANY);
        /// Slice groups for cell reselection.
        0x7c nsag_information: Vec<u8> = TlvE(9, 3143);
    }
}

message! {
    /// REGISTRATION COMPLETE (TS 24.501 Table 8.2.8.1.1), UE to network.
    RegistrationComplete {}
    optional {
        /// Acknowledgement of steering of roaming.
        0x73 sor_transparent_container: Vec<u8> = TlvE(20, 20);
    }
}

message! {
    /// REGISTRATION REJECT (TS 24.501 Table 8.2.9.1.1), network to UE.
    RegistrationReject {
        /// Cause of the reject.
        cause: GmmCause = V(1);
    }
    optional {
        /// Back-off in congestion.
        0x5f t3346: GprsTimer2 = Tlv(3, 3);
        /// Wait after failed attempts.
        0x16 t3502: GprsTimer2 = Tlv(3, 3);
        /// EAP-failure.
        0x78 eap_message: Vec<u8> = TlvE(7, 1503);
        /// Slices that are not allowed.
        0x69 rejected_nssai: RejectedNssai = Tlv(4, 42);
        /// Closed access groups.
        0x75 cag_information_list: Vec<u8> = TlvE(3, ANY);
        /// Rejected slices with a back-off timer.
        0x68 extended_rejected_nssai: Vec<u8> = Tlv(5, 90);
        /// Wait before the return from disaster roaming.
        0x2c disaster_return_wait_range: [u8; 2] = Tlv(4, 4);
        /// Closed access groups, extended.
        0x71 extended_cag_information_list: Vec<u8> = TlvE(3, ANY);
        /// Minimum time for which the PLMN is not allowed at this location.
        0x3a lower_bound_timer: GprsTimer3 = Tlv(3, 3);
        /// Forbidden tracking areas for roaming.
        0x1d forbidden_tais_roaming: TaiList = Tlv(9, 114);
        /// Forbidden tracking areas for regional provision of service.
        0x1e forbidden_tais_regional: TaiList = Tlv(9, 114);
    }
}
