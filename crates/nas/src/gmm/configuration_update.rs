//! Generic UE configuration update (TS 24.501 8.2.19, 8.2.20).

use crate::ie::*;
use crate::table::message;

message! {
    /// CONFIGURATION UPDATE COMMAND (TS 24.501 Table 8.2.19.1.1), network to UE.
    ConfigurationUpdateCommand {}
    optional {
        /// Acknowledgement, registration.
        0xd0 indication: ConfigurationUpdateIndication = Tv1;
        /// The UE's new temporary identity.
        0x77 guti: MobileIdentity = TlvE(14, 14);
        /// Registration area.
        0x54 tai_list: TaiList = Tlv(9, 114);
        /// Slices that the UE may use here.
        0x15 allowed_nssai: Nssai = Tlv(4, 74);
        /// Areas where service is allowed or not.
        0x27 service_area_list: ServiceAreaList = Tlv(6, 114);
        /// Full name of the network.
        0x43 full_name: NetworkName = Tlv(3, ANY);
        /// Short name of the network.
        0x45 short_name: NetworkName = Tlv(3, ANY);
        /// Time zone of the UE.
        0x46 local_time_zone: TimeZone = Tv(2);
        /// Time, and time zone of the UE.
        0x47 universal_time: UniversalTime = Tv(8);
        /// Daylight saving adjustment that the time zone includes.
        0x49 daylight_saving_time: DaylightSavingTime = Tlv(3, 3);
        /// Local area data networks.
        0x79 ladn_information: LadnInformation = TlvE(3, 1715);
        /// Mobile initiated connection only.
        0xb0 mico_indication: MicoIndication = Tv1;
        /// The subscription's slices have changed.
        0x90 network_slicing_indication: NetworkSlicingIndication = Tv1;
        /// Slices that the UE may request in this PLMN.
        0x31 configured_nssai: Nssai = Tlv(4, 146);
        /// Slices that are not allowed.
        0x11 rejected_nssai: RejectedNssai = Tlv(4, 42);
        /// The operator's own access categories.
        0x76 operator_defined_access_categories: Vec<u8> = TlvE(3, 8323);
        /// SMS over NAS is available.
        0xf0 sms_indication: u8 = Tv1;
        /// Service gap.
        0x6c t3447: GprsTimer3 = Tlv(3, 3);
        /// Closed access groups.
        0x75 cag_information_list: Vec<u8> = TlvE(3, ANY);
        /// The identity of the UE radio capability.
        0x67 ue_radio_capability_id: UeRadioCapabilityId = Tlv(3, ANY);
        /// Delete UE radio capability identities.
        0xa0 ue_radio_capability_id_deletion: u8 = Tv1;
        /// The access over which the UE is registered.
        0x44 registration_result: RegistrationResult = Tlv(3, 3);
        /// For NB-N1 mode.
        0x1b truncated_s_tmsi_configuration: u8 = Tlv(3, 3);
        /// The signalling connection is kept.
        0xc0 additional_configuration_indication: u8 = Tv1;
        /// Rejected slices with a back-off timer.
        0x68 extended_rejected_nssai: Vec<u8> = Tlv(5, 90);
        /// Service-level authentication and authorization.
        0x72 service_level_aa_container: Vec<u8> = TlvE(4, ANY);
        /// Groups of slices that may be used together.
        0x70 nssrg_information: Vec<u8> = TlvE(7, 4099);
        /// Wait before disaster roaming.
        0x14 disaster_roaming_wait_range: [u8; 2] = Tlv(4, 4);
        /// Wait before the return from disaster roaming.
        0x2c disaster_return_wait_range: [u8; 2] = Tlv(4, 4);
        /// PLMNs to use in a disaster.
        0x13 disaster_plmns: PlmnList = Tlv(2, ANY);
        /// Closed access groups, extended.
        0x71 extended_cag_information_list: Vec<u8> = TlvE(3, ANY);
        /// Paging early indication.
        0x1f updated_peips_assistance_information: Vec<u8> = Tlv(3, ANY);
        /// Slice groups for cell reselection.
        0x73 nsag_information: Vec<u8> = TlvE(9, 3143);
        /// Priority of MPS and MCS.
        0xe0 priority_indicator: u8 = Tv1;
    }
}

message! {
    /// CONFIGURATION UPDATE COMPLETE (TS 24.501 Table 8.2.20.1.1), UE to network.
    ConfigurationUpdateComplete {}
    optional {}
}
