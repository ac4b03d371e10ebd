//! Nnssf_NSSelection (TS 29.531): selection of slices and slice instances for a UE.

use crate::common::{AccessType, NfInstanceId, NfType, SupportedFeatures};
use crate::http::json_bodies;
use crate::operation::operations;
use crate::record::{open_enum, record};
use crate::uri::Uri;
use pith_types::{Plmn, Snssai, Tai};
use std::sync::Arc;

record! {
    /// Slice information of a registering UE.
    SliceInfoForRegistration {
        optional {
            /// Allowed slices of the current access.
            allowed_nssai_current_access: AllowedNssai,
            /// Allowed slices of the other access.
            allowed_nssai_other_access: AllowedNssai,
            /// Whether the requested slices are from the default configured NSSAI.
            default_configured_snssai_ind: bool,
            /// Whether slices of the home network must be mapped.
            request_mapping: bool,
        }
        repeated {
            /// Subscribed slices.
            subscribed_nssai: Vec<SubscribedSnssai>,
            /// Slices of the home network to map.
            s_nssai_for_mapping: Vec<Snssai>,
            /// Requested slices.
            requested_nssai: Vec<Snssai>,
            /// Mapping of the requested slices to the home network.
            mapping_of_nssai: Vec<MappingOfSnssai>,
        }
    }
}

record! {
    /// Slice information for a UE configuration update (TS 29.531 6.1.6.2.13).
    SliceInfoForUeConfigurationUpdate {
        optional {
            /// Allowed slices of the current access.
            allowed_nssai_current_access: AllowedNssai,
            /// Allowed slices of the other access.
            allowed_nssai_other_access: AllowedNssai,
            /// Whether the requested slices are from the default configured NSSAI.
            default_configured_snssai_ind: bool,
        }
        repeated {
            /// Subscribed slices.
            subscribed_nssai: Vec<SubscribedSnssai>,
            /// Slices that the UE requested in its last registration.
            requested_nssai: Vec<Snssai>,
            /// Mapping of the requested slices to the home network.
            mapping_of_nssai: Vec<MappingOfSnssai>,
        }
    }
}

record! {
    /// A subscribed slice.
    SubscribedSnssai {
        required {
            /// The slice.
            subscribed_snssai: Snssai,
        }
        optional {
            /// Whether the slice is a default one.
            default_indication: bool,
        }
    }
}

record! {
    /// Mapping of a slice to the home network.
    MappingOfSnssai {
        required {
            /// Slice in the serving network.
            serving_snssai: Snssai,
            /// Slice in the home network.
            home_snssai: Snssai,
        }
    }
}

open_enum! {
    /// Roaming status of a UE.
    RoamingIndication {
        NonRoaming = "NON_ROAMING",
        LocalBreakout = "LOCAL_BREAKOUT",
        HomeRoutedRoaming = "HOME_ROUTED_ROAMING",
    }
}

record! {
    /// The slice of a PDU session.
    SliceInfoForPduSession {
        required {
            /// The slice.
            s_nssai: Snssai,
            /// Roaming status of the UE.
            roaming_indication: RoamingIndication,
        }
        optional {
            /// Slice in the home network.
            home_snssai: Snssai,
        }
    }
}

record! {
    /// The selected slices and their AMFs.
    AuthorizedNetworkSliceInfo {
        optional {
            /// AMF set that can serve the UE, such as `999-70-02-001`.
            target_amf_set: Arc<str>,
            /// The slice instance of a PDU session.
            nsi_information: NsiInformation,
            /// Optional features of both sides.
            supported_features: SupportedFeatures,
            /// NRF for the AMFs of the set.
            nrf_amf_set: Uri,
        }
        repeated {
            /// Allowed slices by access.
            allowed_nssai_list: Vec<AllowedNssai>,
            /// Configured slices.
            configured_nssai: Vec<ConfiguredSnssai>,
            /// AMFs that can serve the UE.
            candidate_amf_list: Vec<NfInstanceId>,
            /// Slices rejected in this PLMN.
            rejected_nssai_in_plmn: Vec<Snssai>,
            /// Slices rejected in this tracking area.
            rejected_nssai_in_ta: Vec<Snssai>,
        }
    }
}

record! {
    /// Allowed slices of an access.
    AllowedNssai {
        required {
            /// The slices, at least one.
            allowed_snssai_list: Vec<AllowedSnssai>,
            /// The access.
            access_type: AccessType,
        }
    }
}

record! {
    /// An allowed slice.
    AllowedSnssai {
        required {
            /// The slice.
            allowed_snssai: Snssai,
        }
        optional {
            /// Slice in the home network.
            mapped_home_snssai: Snssai,
        }
        repeated {
            /// Slice instances.
            nsi_information_list: Vec<NsiInformation>,
        }
    }
}

record! {
    /// A configured slice.
    ConfiguredSnssai {
        required {
            /// The slice.
            configured_snssai: Snssai,
        }
        optional {
            /// Slice in the home network.
            mapped_home_snssai: Snssai,
        }
    }
}

record! {
    /// A slice instance.
    NsiInformation {
        required {
            /// NRF for the NF instances of the slice instance.
            nrf_id: Uri,
        }
        optional {
            /// Identifier of the slice instance.
            nsi_id: Arc<str>,
        }
    }
}

json_bodies! {
    JSON: AuthorizedNetworkSliceInfo;
}

operations! {
    NnssfNsselection "/nnssf-nsselection/v2";

    /// Selects slices for a registering or registered UE, or the slice instance of a PDU session.
    NsSelectionGet "Nnssf_NSSelection_Get" "NSSelectionGet"
    Get ["network-slice-information"] {}
    required { nf_type: NfType = "nf-type", nf_id: NfInstanceId = "nf-id" }
    query {
        slice_info_request_for_registration: SliceInfoForRegistration
            = "slice-info-request-for-registration",
        slice_info_request_for_pdu_session: SliceInfoForPduSession
            = "slice-info-request-for-pdu-session",
        slice_info_request_for_ue_cu: SliceInfoForUeConfigurationUpdate = "slice-info-request-for-ue-cu",
        home_plmn_id: Plmn = "home-plmn-id",
        tai: Tai = "tai",
        supported_features: SupportedFeatures = "supported-features",
    }
    => [AuthorizedNetworkSliceInfo];
}
