//! Nausf_UEAuthentication (TS 29.509): the AUSF authenticates a UE for the AMF.
//!
//! ```text
//!  AMF                              AUSF
//!   │ Authenticate ──────────────────> │   SUCI or SUPI
//!   │ <─────── UeAuthenticationCtx 201 │   RAND, AUTN, HXRES*      or an EAP request
//!   │ Confirm5gAka ──────────────────> │   RES*                    or EapAuthMethod, an EAP response
//!   │ <──── ConfirmationDataResponse   │   SUPI, K_SEAF            or the next EAP request
//! ```

use crate::common::{AuthType, Links, SupiOrSuci, SupportedFeatures};
use crate::http::json_bodies;
use crate::octets::{Base64, Hex, Secret};
use crate::operation::operations;
use crate::record::record;
use pith_types::{Pei, Supi};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

record! {
    /// A request for authentication.
    AuthenticationInfo {
        required {
            /// The UE's identity.
            supi_or_suci: SupiOrSuci,
            /// `5G:mnc070.mcc999.3gppnetwork.org` (TS 24.501 9.12.1).
            serving_network_name: Arc<str>,
        }
        optional {
            /// Resynchronisation data of the USIM, after a synchronisation failure.
            resynchronization_info: ResynchronizationInfo,
            /// PEI of the UE.
            pei: Pei,
            /// UDM group of the subscriber.
            udm_group_id: Arc<str>,
            /// Routing Indicator of the SUCI.
            routing_indicator: Arc<str>,
            /// Optional features of the AMF.
            supported_features: SupportedFeatures,
        }
    }
}

record! {
    /// Resynchronisation data of the USIM (TS 29.503).
    ResynchronizationInfo {
        required {
            /// RAND of the challenge.
            rand: Hex<16>,
            /// AUTS (TS 33.102 6.3.3).
            auts: Hex<14>,
        }
    }
}

record! {
    /// An authentication in progress.
    UeAuthenticationCtx {
        required {
            /// The authentication method.
            auth_type: AuthType,
            /// The challenge.
            #[serde(rename = "5gAuthData")]
            auth_data: AuthData,
            /// Links for the response: `5g-aka` or `eap-session`.
            #[serde(rename = "_links")]
            links: Links,
        }
        optional {
            /// The serving network name.
            serving_network_name: Arc<str>,
        }
    }
}

/// The challenge of a method (`5gAuthData`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AuthData {
    /// A 5G-AKA challenge.
    FiveGAka(Av5gAka),
    /// An EAP packet.
    Eap(Base64),
}

record! {
    /// A 5G-AKA authentication vector for the SEAF.
    Av5gAka {
        required {
            /// RAND.
            rand: Hex<16>,
            /// HXRES*, to which RES* must hash.
            hxres_star: Hex<16>,
            /// AUTN.
            autn: Hex<16>,
        }
    }
}

record! {
    /// The UE's response to 5G-AKA.
    ConfirmationData {
        required {
            /// RES*; `None` (null) if the UE could not respond.
            #[serde(deserialize_with = "crate::record::nullable")]
            res_star: Option<Secret<16>>,
        }
        optional {
            /// Optional features of the AMF.
            supported_features: SupportedFeatures,
        }
    }
}

/// The result of an authentication; not extensible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AuthResult {
    /// The UE is authenticated.
    AuthenticationSuccess,
    /// The authentication failed.
    AuthenticationFailure,
    /// A further EAP exchange follows.
    AuthenticationOngoing,
}

record! {
    /// The result of 5G-AKA.
    ConfirmationDataResponse {
        required {
            /// The result.
            auth_result: AuthResult,
        }
        optional {
            /// SUPI, after success.
            supi: Supi,
            /// K_SEAF, after success.
            kseaf: Secret<32>,
        }
    }
}

record! {
    /// An EAP exchange, in either direction.
    EapSession {
        required {
            /// EAP packet; `None` (null) if there is none to send.
            eap_payload: Option<Base64>,
        }
        optional {
            /// K_SEAF, after success.
            #[serde(rename = "kSeaf")]
            kseaf: Secret<32>,
            /// Links for the next packet.
            #[serde(rename = "_links")]
            links: Links,
            /// The result.
            auth_result: AuthResult,
            /// SUPI, after success.
            supi: Supi,
        }
    }
}

json_bodies! {
    JSON: AuthenticationInfo, ConfirmationData, ConfirmationDataResponse, EapSession;
    HAL: UeAuthenticationCtx;
}

operations! {
    NausfAuth "/nausf-auth/v1";

    /// Starts the authentication of a UE.
    Authenticate "Nausf_UEAuthentication_Authenticate" "ue-authentications"
    Post ["ue-authentications"] {}
    body AuthenticationInfo
    => [UeAuthenticationCtxCreated];

    /// Sends the UE's response to 5G-AKA.
    FiveGAkaConfirmation "Nausf_UEAuthentication_Authenticate" "5g-aka-confirmation"
    Put ["ue-authentications", auth_ctx_id, "5g-aka-confirmation"] { auth_ctx_id: String }
    body ConfirmationData
    => [ConfirmationDataResponse];

    /// Deletes the result of 5G-AKA.
    DeleteFiveGAkaAuthenticationResult
    "Nausf_UEAuthentication_Deregister" "Delete5gAkaAuthenticationResult"
    Delete ["ue-authentications", auth_ctx_id, "5g-aka-confirmation"] { auth_ctx_id: String }
    => [NoContent];

    /// Sends the UE's EAP response.
    EapAuthMethod "Nausf_UEAuthentication_Authenticate" "EapAuthMethod"
    Post ["ue-authentications", auth_ctx_id, "eap-session"] { auth_ctx_id: String }
    body EapSession
    => [EapSession];

    /// Deletes the result of EAP.
    DeleteEapAuthenticationResult
    "Nausf_UEAuthentication_Deregister" "DeleteEapAuthenticationResult"
    Delete ["ue-authentications", auth_ctx_id, "eap-session"] { auth_ctx_id: String }
    => [NoContent];
}
