//! Nnrf_NFDiscovery (TS 29.510): discovery of NF instances.

use crate::common::{AccessType, NfInstanceId, NfType, ServiceName, SupportedFeatures};
use crate::http::json_bodies;
use crate::nnrf_nfmanagement::NfProfile;
use crate::operation::operations;
use crate::record::record;
use pith_types::{Dnn, Guami, Plmn, Snssai, Supi, Tai};
use std::sync::Arc;

record! {
    /// The discovered NF instances, in order of preference.
    SearchResult {
        required {
            /// Profiles of the instances.
            nf_instances: Vec<NfProfile>,
        }
        optional {
            /// Validity of the result in seconds.
            validity_period: u32,
            /// Identifier of the search at the NRF.
            search_id: Arc<str>,
            /// Number of all matching instances, if the result is incomplete.
            num_nf_inst_complete: u32,
            /// Optional features of the NRF.
            nrf_supported_features: SupportedFeatures,
        }
    }
}

json_bodies! {
    JSON: SearchResult;
}

operations! {
    NnrfDisc "/nnrf-disc/v1";

    /// Discovers NF instances. Each parameter restricts the result.
    SearchNfInstances "Nnrf_NFDiscovery_Request" "SearchNFInstances"
    Get ["nf-instances"] {}
    required {
        target_nf_type: NfType = "target-nf-type",
        requester_nf_type: NfType = "requester-nf-type",
    }
    query {
        requester_nf_instance_id: NfInstanceId = "requester-nf-instance-id",
        service_names: Vec<ServiceName> = "service-names",
        target_plmn_list: Vec<Plmn> = "target-plmn-list",
        requester_plmn_list: Vec<Plmn> = "requester-plmn-list",
        requester_snssais: Vec<Snssai> = "requester-snssais",
        requester_nf_instance_fqdn: Arc<str> = "requester-nf-instance-fqdn",
        target_nf_instance_id: NfInstanceId = "target-nf-instance-id",
        snssais: Vec<Snssai> = "snssais",
        nsi_list: Vec<Arc<str>> = "nsi-list",
        dnn: Dnn = "dnn",
        tai: Tai = "tai",
        amf_region_id: Arc<str> = "amf-region-id",
        amf_set_id: Arc<str> = "amf-set-id",
        guami: Guami = "guami",
        supi: Supi = "supi",
        routing_indicator: Arc<str> = "routing-indicator",
        access_type: AccessType = "access-type",
        target_nf_set_id: Arc<str> = "target-nf-set-id",
        preferred_locality: Arc<str> = "preferred-locality",
        limit: u32 = "limit",
        requester_features: SupportedFeatures = "requester-features",
    }
    => [SearchResult];
}

impl SearchNfInstances {
    /// A search for an NF type by an NF of another type.
    pub fn new(target_nf_type: NfType, requester_nf_type: NfType) -> Self {
        Self {
            target_nf_type,
            requester_nf_type,
            requester_nf_instance_id: None,
            service_names: None,
            target_plmn_list: None,
            requester_plmn_list: None,
            requester_snssais: None,
            requester_nf_instance_fqdn: None,
            target_nf_instance_id: None,
            snssais: None,
            nsi_list: None,
            dnn: None,
            tai: None,
            amf_region_id: None,
            amf_set_id: None,
            guami: None,
            supi: None,
            routing_indicator: None,
            access_type: None,
            target_nf_set_id: None,
            preferred_locality: None,
            limit: None,
            requester_features: None,
        }
    }
}
