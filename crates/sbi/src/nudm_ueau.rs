//! Nudm_UEAuthentication (TS 29.503 clause 6.3): authentication vectors for the AUSF.

use crate::common::{AuthType, DateTime, NfInstanceId, SupiOrSuci, SupportedFeatures};
use crate::http::json_bodies;
use crate::nausf_ueauthentication::ResynchronizationInfo;
use crate::octets::{Hex, Secret, SecretText};
use crate::operation::operations;
use crate::record::record;
use pith_types::Supi;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

record! {
    /// A request for an authentication vector.
    AuthenticationInfoRequest {
        required {
            /// `5G:mnc070.mcc999.3gppnetwork.org` (TS 24.501 9.12.1).
            serving_network_name: Arc<str>,
            /// NF instance of the AUSF.
            ausf_instance_id: NfInstanceId,
        }
        optional {
            /// Resynchronisation data of the USIM, after a synchronisation failure.
            resynchronization_info: ResynchronizationInfo,
            /// Optional features of the AUSF.
            supported_features: SupportedFeatures,
        }
    }
}

record! {
    /// An authentication vector with the SUPI.
    AuthenticationInfoResult {
        required {
            /// The authentication method selected by the UDM.
            auth_type: AuthType,
        }
        optional {
            /// The vector.
            authentication_vector: AuthenticationVector,
            /// SUPI, if the request contained a SUCI.
            supi: Supi,
            /// Optional features of both sides.
            supported_features: SupportedFeatures,
        }
    }
}

/// The authentication vector of a method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "avType")]
pub enum AuthenticationVector {
    /// A 5G HE AV, for 5G-AKA.
    #[serde(rename = "5G_HE_AKA")]
    FiveGHeAka(Av5GHeAka),
    /// A vector for EAP-AKA'.
    #[serde(rename = "EAP_AKA_PRIME")]
    EapAkaPrime(AvEapAkaPrime),
}

record! {
    /// 5G home environment authentication vector, for 5G-AKA.
    Av5GHeAka {
        required {
            /// RAND.
            rand: Hex<16>,
            /// Expected response XRES*.
            xres_star: Secret<16>,
            /// AUTN.
            autn: Hex<16>,
            /// K_AUSF.
            kausf: Secret<32>,
        }
    }
}

record! {
    /// Authentication vector for EAP-AKA'.
    AvEapAkaPrime {
        required {
            /// RAND.
            rand: Hex<16>,
            /// Expected response XRES, 4 to 16 octets in hexadecimal digits.
            xres: SecretText,
            /// AUTN.
            autn: Hex<16>,
            /// CK'.
            ck_prime: Secret<16>,
            /// IK'.
            ik_prime: Secret<16>,
        }
    }
}

record! {
    /// The result of an authentication.
    AuthEvent {
        required {
            /// NF instance of the AUSF.
            nf_instance_id: NfInstanceId,
            /// Whether the UE is authenticated.
            success: bool,
            /// Time of the authentication.
            time_stamp: DateTime,
            /// The authentication method.
            auth_type: AuthType,
            /// The serving network name.
            serving_network_name: Arc<str>,
        }
        optional {
            /// Whether the stored result must be removed.
            auth_removal_ind: bool,
        }
    }
}

json_bodies! {
    JSON: AuthenticationInfoRequest, AuthenticationInfoResult, AuthEvent;
}

operations! {
    NudmUeau "/nudm-ueau/v1";

    /// Requests an authentication vector.
    GenerateAuthData "Nudm_UEAuthentication_Get" "GenerateAuthData"
    Post [supi_or_suci, "security-information", "generate-auth-data"] { supi_or_suci: SupiOrSuci }
    body AuthenticationInfoRequest
    => [AuthenticationInfoResult];

    /// Reports the result of an authentication.
    ConfirmAuth "Nudm_UEAuthentication_ResultConfirmation" "ConfirmAuth"
    Post [supi, "auth-events"] { supi: Supi }
    body AuthEvent
    => [AuthEventCreated];

    /// Deletes the result of an authentication.
    DeleteAuth "Nudm_UEAuthentication_ResultConfirmation" "DeleteAuth"
    Put [supi, "auth-events", auth_event_id] { supi: Supi, auth_event_id: String }
    body AuthEvent
    => [NoContent];
}
