//! What the AMF must know of a subscriber: AMBR, slices, restrictions, data networks.

use crate::common::{
    Area, CoreNetworkType, NfInstanceId, RatType, ServiceAreaRestriction, SupportedFeatures,
};
use crate::record::record;
use pith_types::{Ambr, Snssai};
use std::collections::BTreeMap;
use std::sync::Arc;

record! {
    /// The slices of a subscriber.
    Nssai {
        required {
            /// Those that hold when the UE asks for none, at least one.
            default_single_nssais: Vec<Snssai>,
        }
        optional {
            /// Optional features that both have.
            supported_features: SupportedFeatures,
        }
        repeated {
            /// The others.
            single_nssais: Vec<Snssai>,
        }
    }
}

record! {
    /// Access and mobility subscription data.
    AccessAndMobilitySubscriptionData {
        optional {
            /// Optional features that both have.
            supported_features: SupportedFeatures,
            /// The UE's aggregate maximum bit rate over all non-GBR QoS flows.
            subscribed_ue_ambr: Ambr,
            /// Slices.
            nssai: Nssai,
            /// Where the UE gets service.
            service_area_restriction: ServiceAreaRestriction,
            /// Index to RAT/Frequency Selection Priority, 1 to 256.
            rfsp_index: u16,
            /// Subscribed periodic registration timer, seconds.
            subs_reg_timer: u32,
            /// Mobile Initiated Connection Only is allowed.
            mico_allowed: bool,
            /// Multimedia priority service.
            mps_priority: bool,
            /// Mission critical service.
            mcs_priority: bool,
        }
        repeated {
            /// Public identities, `msisdn-491234`.
            gpsis: Vec<Arc<str>>,
            /// Radio access technologies that are not allowed.
            rat_restrictions: Vec<RatType>,
            /// Where the UE gets no service.
            forbidden_areas: Vec<Area>,
            /// Core networks that are not allowed.
            core_network_type_restrictions: Vec<CoreNetworkType>,
            /// Data networks; `*` for any.
            subscribed_dnn_list: Vec<Arc<str>>,
        }
    }
}

record! {
    /// Data networks by slice, from which the AMF chooses an SMF.
    SmfSelectionSubscriptionData {
        optional {
            /// Optional features that both have.
            supported_features: SupportedFeatures,
        }
        repeated {
            /// By slice as text, such as `1` or `1-010203` ([`pith_types::Snssai`]).
            subscribed_snssai_infos: BTreeMap<Arc<str>, SnssaiInfo>,
        }
    }
}

record! {
    /// The data networks of a slice.
    SnssaiInfo {
        required {
            /// At least one.
            dnn_infos: Vec<DnnInfo>,
        }
    }
}

record! {
    /// A data network of a slice.
    DnnInfo {
        required {
            /// Its name; `*` for any.
            dnn: Arc<str>,
        }
        optional {
            /// It is meant when the UE names none.
            default_dnn_indicator: bool,
            /// Local breakout is allowed when roaming.
            lbo_roaming_allowed: bool,
            /// Interworking with EPS.
            iwk_eps_ind: bool,
        }
        repeated {
            /// SMFs that have static addresses of the UE.
            smf_list: Vec<NfInstanceId>,
        }
    }
}
