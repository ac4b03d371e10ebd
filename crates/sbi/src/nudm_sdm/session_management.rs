//! Subscription data for the SMF: session types, QoS and AMBR by slice and DNN.

use crate::common::{PduSessionType, SscMode, SubscribedDefaultQos, SupportedFeatures, UpSecurity};
use crate::record::record;
use pith_types::{Ambr, Snssai};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Session management subscription data of all requested slices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SmSubsData {
    /// One document per slice.
    Individual(Vec<SessionManagementSubscriptionData>),
    /// One document per slice, and references to shared data.
    #[serde(rename_all = "camelCase")]
    Extended {
        /// Identifiers of shared data.
        shared_sm_subs_data_ids: Vec<Arc<str>>,
        /// One document per slice.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        individual_sm_subs_data: Vec<SessionManagementSubscriptionData>,
    },
}

impl SmSubsData {
    /// The documents per slice.
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
            /// Optional features of both sides.
            supported_features: SupportedFeatures,
        }
        repeated {
            /// Configurations by DNN; `*` for any.
            dnn_configurations: BTreeMap<Arc<str>, DnnConfiguration>,
        }
    }
}

record! {
    /// The configuration of a DNN.
    DnnConfiguration {
        required {
            /// PDU session types.
            pdu_session_types: PduSessionTypes,
            /// SSC modes.
            ssc_modes: SscModes,
        }
        optional {
            /// Whether interworking with EPS is permitted.
            iwk_eps_ind: bool,
            /// QoS of the default QoS flow.
            #[serde(rename = "5gQosProfile")]
            five_g_qos_profile: SubscribedDefaultQos,
            /// Session AMBR.
            session_ambr: Ambr,
            /// Charging characteristics.
            #[serde(rename = "3gppChargingCharacteristics")]
            three_gpp_charging_characteristics: Arc<str>,
            /// User plane security.
            up_security: UpSecurity,
            /// Whether the data network authenticates the UE.
            secondary_auth: bool,
        }
        repeated {
            /// Static addresses of the UE: IPv4, IPv6 or both.
            static_ip_address: Vec<IpAddress>,
            /// Framed routes: IPv4 networks behind the UE (TS 23.501 5.6.14).
            ipv4_frame_route_list: Vec<FrameRouteInfo>,
            /// Framed routes: IPv6 networks behind the UE.
            ipv6_frame_route_list: Vec<FrameRouteInfo>,
        }
    }
}

record! {
    /// Subscribed PDU session types.
    PduSessionTypes {
        optional {
            /// Default, for a UE that requests none.
            default_session_type: PduSessionType,
        }
        repeated {
            /// Further permitted types.
            allowed_session_types: Vec<PduSessionType>,
        }
    }
}

record! {
    /// Subscribed SSC modes.
    SscModes {
        required {
            /// Default, for a UE that requests none.
            default_ssc_mode: SscMode,
        }
        repeated {
            /// Further permitted modes.
            allowed_ssc_modes: Vec<SscMode>,
        }
    }
}

record! {
    /// A network behind the UE.
    FrameRouteInfo {
        optional {
            /// IPv4 network, such as `192.0.2.0/24`.
            ipv4_mask: Arc<str>,
            /// IPv6 network, such as `2001:db8:5::/48`.
            ipv6_prefix: Arc<str>,
        }
    }
}

impl Eq for FrameRouteInfo {}

/// An address or a prefix (TS 29.503 `IpAddress`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum IpAddress {
    /// IPv4 address.
    #[serde(rename = "ipv4Addr")]
    Ipv4(Ipv4Addr),
    /// IPv6 address.
    #[serde(rename = "ipv6Addr")]
    Ipv6(Ipv6Addr),
    /// IPv6 prefix, such as `2001:db8::/64`.
    #[serde(rename = "ipv6Prefix")]
    Ipv6Prefix(Arc<str>),
}
