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
    /// Who is to be authenticated.
    AuthenticationInfo {
        required {
            /// The UE as it showed itself.
            supi_or_suci: SupiOrSuci,
            /// `5G:mnc070.mcc999.3gppnetwork.org` (TS 24.501 9.12.1).
            serving_network_name: Arc<str>,
        }
        optional {
            /// What the USIM sent when the sequence number was out of range.
            resynchronization_info: ResynchronizationInfo,
            /// The equipment.
            pei: Pei,
            /// The group of UDM instances that serves the subscriber.
            udm_group_id: Arc<str>,
            /// Routing Indicator of the SUCI.
            routing_indicator: Arc<str>,
            /// Optional features that the AMF has.
            supported_features: SupportedFeatures,
        }
    }
}

record! {
    /// What the USIM sent when the sequence number was out of range (TS 29.503).
    ResynchronizationInfo {
        required {
            /// The challenge that it answers.
            rand: Hex<16>,
            /// AUTS (TS 33.102 6.3.3).
            auts: Hex<14>,
        }
    }
}

record! {
    /// An authentication that has begun.
    UeAuthenticationCtx {
        required {
            /// Which method.
            auth_type: AuthType,
            /// The challenge.
            #[serde(rename = "5gAuthData")]
            auth_data: AuthData,
            /// Where to answer: `5g-aka` or `eap-session`.
            #[serde(rename = "_links")]
            links: Links,
        }
        optional {
            /// The serving network that it is for.
            serving_network_name: Arc<str>,
        }
    }
}

/// The challenge, by method (`5gAuthData`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AuthData {
    /// Of 5G-AKA.
    FiveGAka(Av5gAka),
    /// An EAP packet.
    Eap(Base64),
}

record! {
    /// A challenge of 5G-AKA, as the SEAF gets it.
    Av5gAka {
        required {
            /// RAND.
            rand: Hex<16>,
            /// What RES* must hash to.
            hxres_star: Hex<16>,
            /// AUTN.
            autn: Hex<16>,
        }
    }
}

record! {
    /// The UE's answer to 5G-AKA.
    ConfirmationData {
        required {
            /// RES*; `None` (null) when the UE could not answer.
            res_star: Option<Secret<16>>,
        }
        optional {
            /// Optional features that the AMF has.
            supported_features: SupportedFeatures,
        }
    }
}

/// How it ended, or that it goes on; no other values, ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum AuthResult {
    /// The UE is who it says.
    AuthenticationSuccess,
    /// It is not.
    AuthenticationFailure,
    /// Another round of EAP.
    AuthenticationOngoing,
}

record! {
    /// How 5G-AKA ended.
    ConfirmationDataResponse {
        required {
            /// How.
            auth_result: AuthResult,
        }
        optional {
            /// Who it is; on success.
            supi: Supi,
            /// K_SEAF; on success.
            kseaf: Secret<32>,
        }
    }
}

record! {
    /// One step of EAP, in either direction.
    EapSession {
        required {
            /// An EAP packet; `None` (null) when there is none to send.
            eap_payload: Option<Base64>,
        }
        optional {
            /// K_SEAF; on success.
            #[serde(rename = "kSeaf")]
            kseaf: Secret<32>,
            /// Where to send the next one.
            #[serde(rename = "_links")]
            links: Links,
            /// How it ended.
            auth_result: AuthResult,
            /// Who it is; on success.
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

    /// Begins to authenticate a UE.
    Authenticate "Nausf_UEAuthentication_Authenticate" "ue-authentications"
    Post ["ue-authentications"] {}
    body AuthenticationInfo
    => [UeAuthenticationCtxCreated];

    /// Brings the UE's answer to 5G-AKA.
    FiveGAkaConfirmation "Nausf_UEAuthentication_Authenticate" "5g-aka-confirmation"
    Put ["ue-authentications", auth_ctx_id, "5g-aka-confirmation"] { auth_ctx_id: String }
    body ConfirmationData
    => [ConfirmationDataResponse];

    /// Forgets the result of 5G-AKA.
    DeleteFiveGAkaAuthenticationResult
    "Nausf_UEAuthentication_Deregister" "Delete5gAkaAuthenticationResult"
    Delete ["ue-authentications", auth_ctx_id, "5g-aka-confirmation"] { auth_ctx_id: String }
    => [NoContent];

    /// Brings the UE's answer to EAP.
    EapAuthMethod "Nausf_UEAuthentication_Authenticate" "EapAuthMethod"
    Post ["ue-authentications", auth_ctx_id, "eap-session"] { auth_ctx_id: String }
    body EapSession
    => [EapSession];

    /// Forgets the result of EAP.
    DeleteEapAuthenticationResult
    "Nausf_UEAuthentication_Deregister" "DeleteEapAuthenticationResult"
    Delete ["ue-authentications", auth_ctx_id, "eap-session"] { auth_ctx_id: String }
    => [NoContent];
}
