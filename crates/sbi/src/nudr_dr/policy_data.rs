//! What the PCF keeps of a subscriber (TS 29.519).

use crate::common::{PresenceInfo, SupportedFeatures};
use crate::record::record;
use pith_types::{Ambr, BitRate, Dnn, Snssai};
use std::collections::BTreeMap;
use std::sync::Arc;

record! {
    /// Access and mobility policy data.
    AmPolicyData {
        repeated {
            /// Areas whose entry and leaving is reported.
            pra_infos: BTreeMap<Arc<str>, PresenceInfo>,
            /// Categories that the operator made.
            subsc_cats: Vec<Arc<str>>,
        }
    }
}

record! {
    /// Session management policy data.
    SmPolicyData {
        required {
            /// By slice as text, such as `1` or `1-010203` ([`pith_types::Snssai`]).
            sm_policy_snssai_data: BTreeMap<Arc<str>, SmPolicySnssaiData>,
        }
        optional {
            /// Optional features that both have.
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
            /// Aggregate maximum bit rate of the UE in the slice.
            ue_slice_mbr: Ambr,
        }
        repeated {
            /// By data network.
            sm_policy_dnn_data: BTreeMap<Arc<str>, SmPolicyDnnData>,
        }
    }
}

record! {
    /// Session management policy data of a data network.
    SmPolicyDnnData {
        required {
            /// The data network.
            dnn: Dnn,
        }
        optional {
            /// Sum of guaranteed bit rates at most, from the UE.
            gbr_ul: BitRate,
            /// Sum of guaranteed bit rates at most, to the UE.
            gbr_dl: BitRate,
            /// Charged after use.
            offline: bool,
            /// Charged while used.
            online: bool,
        }
        repeated {
            /// Services that the subscriber may use.
            allowed_services: Vec<Arc<str>>,
            /// Categories that the operator made.
            subsc_cats: Vec<Arc<str>>,
        }
    }
}
