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
    /// For whom and where a vector is needed.
    AuthenticationInfoRequest {
        required {
            /// `5G:mnc070.mcc999.3gppnetwork.org` (TS 24.501 9.12.1).
            serving_network_name: Arc<str>,
            /// Who asks.
            ausf_instance_id: NfInstanceId,
        }
        optional {
            /// What the USIM sent when the sequence number was out of range.
            resynchronization_info: ResynchronizationInfo,
            /// Optional features that the AUSF has.
            supported_features: SupportedFeatures,
        }
    }
}

record! {
    /// A vector, and whose it is.
    AuthenticationInfoResult {
        required {
            /// The method that the UDM chose.
            auth_type: AuthType,
        }
        optional {
            /// The vector.
            authentication_vector: AuthenticationVector,
            /// Who it is; when asked by SUCI.
            supi: Supi,
            /// Optional features that both have.
            supported_features: SupportedFeatures,
        }
    }
}

/// A vector, by method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "avType")]
pub enum AuthenticationVector {
    /// Of 5G-AKA, for the home network.
    #[serde(rename = "5G_HE_AKA")]
    FiveGHeAka(Av5GHeAka),
    /// Of EAP-AKA'.
    #[serde(rename = "EAP_AKA_PRIME")]
    EapAkaPrime(AvEapAkaPrime),
}

record! {
    /// A vector of 5G-AKA, for the home network.
    Av5GHeAka {
        required {
            /// RAND.
            rand: Hex<16>,
            /// What the UE should answer.
            xres_star: Secret<16>,
            /// AUTN.
            autn: Hex<16>,
            /// K_AUSF.
            kausf: Secret<32>,
        }
    }
}

record! {
    /// A vector of EAP-AKA'.
    AvEapAkaPrime {
        required {
            /// RAND.
            rand: Hex<16>,
            /// What the UE should answer, 4 to 16 octets in hexadecimal digits.
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
    /// How an authentication ended.
    AuthEvent {
        required {
            /// The AUSF.
            nf_instance_id: NfInstanceId,
            /// Whether the UE is who it says.
            success: bool,
            /// When.
            time_stamp: DateTime,
            /// By which method.
            auth_type: AuthType,
            /// In which serving network.
            serving_network_name: Arc<str>,
        }
        optional {
            /// The result shall be removed.
            auth_removal_ind: bool,
        }
    }
}

json_bodies! {
    JSON: AuthenticationInfoRequest, AuthenticationInfoResult, AuthEvent;
}

operations! {
    NudmUeau "/nudm-ueau/v1";

    /// Asks for a vector.
    GenerateAuthData "Nudm_UEAuthentication_Get" "GenerateAuthData"
    Post [supi_or_suci, "security-information", "generate-auth-data"] { supi_or_suci: SupiOrSuci }
    body AuthenticationInfoRequest
    => [AuthenticationInfoResult];

    /// Tells how an authentication ended.
    ConfirmAuth "Nudm_UEAuthentication_ResultConfirmation" "ConfirmAuth"
    Post [supi, "auth-events"] { supi: Supi }
    body AuthEvent
    => [AuthEventCreated];

    /// Has the result of an authentication forgotten.
    DeleteAuth "Nudm_UEAuthentication_ResultConfirmation" "DeleteAuth"
    Put [supi, "auth-events", auth_event_id] { supi: Supi, auth_event_id: String }
    body AuthEvent
    => [NoContent];
}
