//! What the SMF must know of a subscriber: per slice and data network, session types, QoS, AMBR.

use crate::common::{PduSessionType, SscMode, SubscribedDefaultQos, SupportedFeatures, UpSecurity};
use crate::record::record;
use pith_types::{Ambr, Snssai};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Session management subscription data of all slices that were asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SmSubsData {
    /// A document a slice.
    Individual(Vec<SessionManagementSubscriptionData>),
    /// The same, beside data that subscribers share.
    #[serde(rename_all = "camelCase")]
    Extended {
        /// Which shared data.
        shared_sm_subs_data_ids: Vec<Arc<str>>,
        /// A document a slice.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        individual_sm_subs_data: Vec<SessionManagementSubscriptionData>,
    },
}

impl SmSubsData {
    /// The documents of the slices.
    pub fn individual(&self) -> &[SessionManagementSubscriptionData] {
        match self {
            Self::Individual(individual_sm_subs_data) | Self::Extended { individual_sm_subs_data, .. } => {
                individual_sm_subs_data
            }
        }
    }
}

record! {
    /// Session management subscription data of a slice.
    SessionManagementSubscriptionData {
        required {
            /// The slice.
            single_nssai: Snssai,
        }
        optional {
            /// Optional features that both have.
            supported_features: SupportedFeatures,
        }
        repeated {
            /// By data network; `*` for any.
            dnn_configurations: BTreeMap<Arc<str>, DnnConfiguration>,
        }
    }
}

record! {
    /// What a subscriber has in a data network.
    DnnConfiguration {
        required {
            /// Session types.
            pdu_session_types: PduSessionTypes,
            /// Session and service continuity modes.
            ssc_modes: SscModes,
        }
        optional {
            /// Interworking with EPS.
            iwk_eps_ind: bool,
            /// QoS of the default QoS flow.
            #[serde(rename = "5gQosProfile")]
            five_g_qos_profile: SubscribedDefaultQos,
            /// Session AMBR.
            session_ambr: Ambr,
            /// Charging characteristics.
            #[serde(rename = "3gppChargingCharacteristics")]
            three_gpp_charging_characteristics: Arc<str>,
            /// Protection of the user plane.
            up_security: UpSecurity,
        }
        repeated {
            /// Addresses that are always the UE's.
            static_ip_address: Vec<IpAddress>,
        }
    }
}

record! {
    /// Session types of a subscriber in a data network.
    PduSessionTypes {
        optional {
            /// When the UE names none.
            default_session_type: PduSessionType,
        }
        repeated {
            /// The others that are allowed.
            allowed_session_types: Vec<PduSessionType>,
        }
    }
}

record! {
    /// SSC modes of a subscriber in a data network.
    SscModes {
        required {
            /// When the UE names none.
            default_ssc_mode: SscMode,
        }
        repeated {
            /// The others that are allowed.
            allowed_ssc_modes: Vec<SscMode>,
        }
    }
}

/// An address or a prefix (TS 29.503 `IpAddress`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum IpAddress {
    /// IPv4.
    #[serde(rename = "ipv4Addr")]
    Ipv4(Ipv4Addr),
    /// IPv6.
    #[serde(rename = "ipv6Addr")]
    Ipv6(Ipv6Addr),
    /// IPv6 prefix, `2001:db8::/64`.
    #[serde(rename = "ipv6Prefix")]
    Ipv6Prefix(Arc<str>),
}
