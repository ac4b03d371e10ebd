//! Policy data of a subscriber for the PCF (TS 29.519).

use crate::common::{PresenceInfo, SupportedFeatures};
use crate::record::record;
use pith_types::{Ambr, BitRate, Dnn, Snssai};
use std::collections::BTreeMap;
use std::sync::Arc;

record! {
    /// Access and mobility policy data.
    AmPolicyData {
        repeated {
            /// Presence reporting areas.
            pra_infos: BTreeMap<Arc<str>, PresenceInfo>,
            /// Operator-defined categories.
            subsc_cats: Vec<Arc<str>>,
        }
    }
}

record! {
    /// Session management policy data.
    SmPolicyData {
        required {
            /// Data by slice in text form, such as `1` or `1-010203` ([`pith_types::Snssai`]).
            sm_policy_snssai_data: BTreeMap<Arc<str>, SmPolicySnssaiData>,
        }
        optional {
            /// Optional features of both sides.
            supp_feat: SupportedFeatures,
        }
    }
}

record! {
    /// Session management policy data of a slice.
    SmPolicySnssaiData {
        required {
            /// The slice.
            snssai: Snssai,
        }
        optional {
            /// Aggregate bit rate of the UE in the slice.
            ue_slice_mbr: Ambr,
        }
        repeated {
            /// Data by DNN.
            sm_policy_dnn_data: BTreeMap<Arc<str>, SmPolicyDnnData>,
        }
    }
}

record! {
    /// Session management policy data of a DNN.
    SmPolicyDnnData {
        required {
            /// DNN.
            dnn: Dnn,
        }
        optional {
            /// Largest sum of guaranteed uplink bit rates.
            gbr_ul: BitRate,
            /// Largest sum of guaranteed downlink bit rates.
            gbr_dl: BitRate,
            /// Whether offline charging applies.
            offline: bool,
            /// Whether online charging applies.
            online: bool,
        }
        repeated {
            /// Services that the subscriber may use.
            allowed_services: Vec<Arc<str>>,
            /// Operator-defined categories.
            subsc_cats: Vec<Arc<str>>,
        }
    }
}
