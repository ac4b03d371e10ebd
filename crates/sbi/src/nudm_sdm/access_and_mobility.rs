//! Subscription data for the AMF: AMBR, slices, restrictions, DNNs.

use crate::common::{
    Area, CoreNetworkType, NfInstanceId, RatType, ServiceAreaRestriction, SupportedFeatures, TraceData,
};
use crate::record::record;
use pith_types::{Ambr, Snssai};
use std::collections::BTreeMap;
use std::sync::Arc;

record! {
    /// Subscribed slices.
    Nssai {
        required {
            /// Default slices, for a UE that requests none; at least one.
            default_single_nssais: Vec<Snssai>,
        }
        optional {
            /// Optional features of both sides.
            supported_features: SupportedFeatures,
        }
        repeated {
            /// Further slices.
            single_nssais: Vec<Snssai>,
            /// More about slices, by S-NSSAI.
            additional_snssai_data: BTreeMap<Arc<str>, AdditionalSnssaiData>,
        }
    }
}

record! {
    /// More about a subscribed slice.
    AdditionalSnssaiData {
        optional {
            /// Whether the slice requires an authentication of its own (NSSAA).
            required_authn_authz: bool,
        }
    }
}

record! {
    /// Access and mobility subscription data.
    AccessAndMobilitySubscriptionData {
        optional {
            /// Optional features of both sides.
            supported_features: SupportedFeatures,
            /// Subscribed UE-AMBR, for all non-GBR QoS flows.
            subscribed_ue_ambr: Ambr,
            /// Subscribed slices.
            nssai: Nssai,
            /// Service area restriction.
            service_area_restriction: ServiceAreaRestriction,
            /// RFSP index, 1 to 256.
            rfsp_index: u16,
            /// Subscribed periodic registration timer in seconds.
            subs_reg_timer: u32,
            /// Whether MICO mode is permitted.
            mico_allowed: bool,
            /// Whether the multimedia priority service is subscribed.
            mps_priority: bool,
            /// Whether the mission critical service is subscribed.
            mcs_priority: bool,
            /// The trace of the subscriber; null, as absent, if there is none.
            trace_data: TraceData,
        }
        repeated {
            /// GPSIs, such as `msisdn-491234`.
            gpsis: Vec<Arc<str>>,
            /// Restricted radio access technologies.
            rat_restrictions: Vec<RatType>,
            /// Forbidden areas.
            forbidden_areas: Vec<Area>,
            /// Restricted core networks.
            core_network_type_restrictions: Vec<CoreNetworkType>,
            /// DNNs; `*` for any.
            subscribed_dnn_list: Vec<Arc<str>>,
        }
    }
}

record! {
    /// DNNs by slice, for the AMF's selection of an SMF.
    SmfSelectionSubscriptionData {
        optional {
            /// Optional features of both sides.
            supported_features: SupportedFeatures,
        }
        repeated {
            /// Data by slice in text form, such as `1` or `1-010203` ([`pith_types::Snssai`]).
            subscribed_snssai_infos: BTreeMap<Arc<str>, SnssaiInfo>,
        }
    }
}

record! {
    /// DNNs of a slice.
    SnssaiInfo {
        required {
            /// DNNs, at least one.
            dnn_infos: Vec<DnnInfo>,
        }
    }
}

record! {
    /// A DNN of a slice.
    DnnInfo {
        required {
            /// DNN; `*` for any.
            dnn: Arc<str>,
        }
        optional {
            /// Whether it is the default DNN.
            default_dnn_indicator: bool,
            /// Whether local breakout is permitted when roaming.
            lbo_roaming_allowed: bool,
            /// Whether interworking with EPS is permitted.
            iwk_eps_ind: bool,
        }
        repeated {
            /// SMFs with static addresses of the UE.
            smf_list: Vec<NfInstanceId>,
        }
    }
}
