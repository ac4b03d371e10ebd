//! Nnssf_NSSelection (TS 29.531): which slices a UE gets, and which slice instance serves them.

use crate::common::{AccessType, NfInstanceId, NfType, SupportedFeatures};
use crate::http::json_bodies;
use crate::operation::operations;
use crate::record::{open_enum, record};
use crate::uri::Uri;
use pith_types::{Plmn, Snssai, Tai};
use std::sync::Arc;

record! {
    /// What a UE that registers asks for and may have.
    SliceInfoForRegistration {
        optional {
            /// What it is allowed already over this access.
            allowed_nssai_current_access: AllowedNssai,
            /// What it is allowed already over the other access.
            allowed_nssai_other_access: AllowedNssai,
            /// It asked by the default configured slices.
            default_configured_snssai_ind: bool,
            /// Slices of the home network are to be mapped.
            request_mapping: bool,
        }
        repeated {
            /// Subscribed slices.
            subscribed_nssai: Vec<SubscribedSnssai>,
            /// Slices of the home network that are to be mapped.
            s_nssai_for_mapping: Vec<Snssai>,
            /// Slices that it asks for.
            requested_nssai: Vec<Snssai>,
            /// What they are at home.
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
            /// It holds when the UE asks for none.
            default_indication: bool,
        }
    }
}

record! {
    /// A slice here and at home.
    MappingOfSnssai {
        required {
            /// Here.
            serving_snssai: Snssai,
            /// At home.
            home_snssai: Snssai,
        }
    }
}

open_enum! {
    /// Whether a UE roams, and how.
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
            /// Whether the UE roams.
            roaming_indication: RoamingIndication,
        }
        optional {
            /// What it is at home.
            home_snssai: Snssai,
        }
    }
}

record! {
    /// What a UE gets.
    AuthorizedNetworkSliceInfo {
        optional {
            /// The set of AMFs that can serve it, `999-70-02-001`.
            target_amf_set: Arc<str>,
            /// The slice instance of a PDU session.
            nsi_information: NsiInformation,
            /// Optional features that both have.
            supported_features: SupportedFeatures,
            /// The NRF that knows the AMFs of the set.
            nrf_amf_set: Uri,
        }
        repeated {
            /// Allowed slices by access.
            allowed_nssai_list: Vec<AllowedNssai>,
            /// Slices that the UE is configured with.
            configured_nssai: Vec<ConfiguredSnssai>,
            /// AMFs that can serve it.
            candidate_amf_list: Vec<NfInstanceId>,
            /// Slices that it doesn't get in this network.
            rejected_nssai_in_plmn: Vec<Snssai>,
            /// Slices that it doesn't get in this tracking area.
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
            /// What it is at home.
            mapped_home_snssai: Snssai,
        }
        repeated {
            /// Its instances.
            nsi_information_list: Vec<NsiInformation>,
        }
    }
}

record! {
    /// A slice that the UE is configured with.
    ConfiguredSnssai {
        required {
            /// The slice.
            configured_snssai: Snssai,
        }
        optional {
            /// What it is at home.
            mapped_home_snssai: Snssai,
        }
    }
}

record! {
    /// A slice instance.
    NsiInformation {
        required {
            /// The NRF that knows its NF instances.
            nrf_id: Uri,
        }
        optional {
            /// The slice instance.
            nsi_id: Arc<str>,
        }
    }
}

json_bodies! {
    JSON: AuthorizedNetworkSliceInfo;
}

operations! {
    NnssfNsselection "/nnssf-nsselection/v2";

    /// Asks which slices a UE gets, or which slice instance serves a PDU session.
    NsSelectionGet "Nnssf_NSSelection_Get" "NSSelectionGet"
    Get ["network-slice-information"] {}
    required { nf_type: NfType = "nf-type", nf_id: NfInstanceId = "nf-id" }
    query {
        slice_info_request_for_registration: SliceInfoForRegistration
            = "slice-info-request-for-registration",
        slice_info_request_for_pdu_session: SliceInfoForPduSession
            = "slice-info-request-for-pdu-session",
        home_plmn_id: Plmn = "home-plmn-id",
        tai: Tai = "tai",
        supported_features: SupportedFeatures = "supported-features",
    }
    => [AuthorizedNetworkSliceInfo];
}
