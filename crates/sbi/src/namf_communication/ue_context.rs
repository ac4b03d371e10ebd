//! A UE context, as one AMF hands it to another.

use super::{CipheringAlgorithm, IntegrityAlgorithm, KeyAmfType, ScType};
use crate::common::{AccessType, Area, CoreNetworkType, NfInstanceId, RatType, ServiceAreaRestriction};
use crate::npcf_ampolicycontrol::RequestTrigger;
use crate::octets::{Base64, Hex, SecretText};
use crate::record::record;
use crate::uri::Uri;
use pith_types::{Ambr, Dnn, Pei, Snssai, Supi};
use std::sync::Arc;

record! {
    /// A UE context.
    UeContext {
        optional {
            /// The subscriber.
            supi: Supi,
            /// Nobody has checked that the SUPI is the UE's; in an emergency.
            supi_unauth_ind: bool,
            /// The equipment.
            pei: Pei,
            /// The group of UDM instances that serves the subscriber.
            udm_group_id: Arc<str>,
            /// The group of AUSF instances that serves the subscriber.
            ausf_group_id: Arc<str>,
            /// Routing Indicator of the SUCI.
            routing_indicator: Arc<str>,
            /// DRX parameters (TS 38.413 `Paging DRX`).
            drx_parameter: Base64,
            /// Subscribed index to RAT/Frequency Selection Priority.
            sub_rfsp: u16,
            /// The one in use.
            used_rfsp: u16,
            /// Subscribed aggregate maximum bit rate.
            sub_ue_ambr: Ambr,
            /// NAS security.
            seaf_data: SeafData,
            /// 5GMM capability (TS 24.501 9.11.3.1).
            #[serde(rename = "5gMmCapability")]
            five_g_mm_capability: Base64,
            /// The PCF that serves the UE.
            pcf_id: NfInstanceId,
            /// The AM policy association.
            pcf_am_policy_uri: Uri,
            /// Where the UE gets service.
            service_area_restriction: ServiceAreaRestriction,
        }
        repeated {
            /// Public identities.
            gpsi_list: Vec<Arc<str>>,
            /// What the PCF wants to be told of.
            am_policy_req_trigger_list: Vec<RequestTrigger>,
            /// Radio access technologies that are not allowed.
            restricted_rat_list: Vec<RatType>,
            /// Where the UE gets no service.
            forbidden_area_list: Vec<Area>,
            /// Core networks that are not allowed.
            restricted_core_nw_type_list: Vec<CoreNetworkType>,
            /// A context an access.
            mm_context_list: Vec<MmContext>,
            /// PDU sessions.
            session_context_list: Vec<PduSessionContext>,
        }
    }
}

record! {
    /// NAS security of a UE.
    SeafData {
        required {
            /// Key set identifier.
            ng_ksi: NgKsi,
            /// The key.
            key_amf: KeyAmf,
        }
        optional {
            /// Next hop (TS 33.501 6.9.2.1.1).
            nh: SecretText,
            /// Next hop chaining counter, 0 to 7.
            ncc: u8,
            /// The key is another than the one in use with the UE.
            key_amf_change_ind: bool,
            /// The key was derived horizontally (TS 33.501 6.9.3).
            key_amf_h_derivation_ind: bool,
        }
    }
}

record! {
    /// Key set identifier.
    NgKsi {
        required {
            /// Where the security context came from.
            tsc: ScType,
            /// 0 to 6.
            ksi: u8,
        }
    }
}

record! {
    /// A key of an AMF.
    KeyAmf {
        required {
            /// Which.
            key_type: KeyAmfType,
            /// The key, in hexadecimal digits.
            key_val: SecretText,
        }
    }
}

record! {
    /// What belongs to one access.
    MmContext {
        required {
            /// Which.
            access_type: AccessType,
        }
        optional {
            /// NAS algorithms in use.
            nas_security_mode: NasSecurityMode,
            /// NAS COUNT of the last message to the UE.
            nas_downlink_count: u32,
            /// NAS COUNT of the last message from the UE.
            nas_uplink_count: u32,
            /// UE security capability (TS 24.501 9.11.3.54).
            ue_security_capability: Base64,
            /// S1 UE network capability (TS 24.501 9.11.3.48).
            s1_ue_network_capability: Base64,
        }
        repeated {
            /// Allowed slices.
            allowed_nssai: Vec<Snssai>,
            /// What they are in the home network.
            nssai_mapping_list: Vec<NssaiMapping>,
        }
    }
}

record! {
    /// NAS algorithms.
    NasSecurityMode {
        required {
            /// Integrity.
            integrity_algorithm: IntegrityAlgorithm,
            /// Ciphering.
            ciphering_algorithm: CipheringAlgorithm,
        }
    }
}

record! {
    /// A slice here and at home.
    NssaiMapping {
        required {
            /// Here.
            mapped_snssai: Snssai,
            /// At home.
            h_snssai: Snssai,
        }
    }
}

record! {
    /// A PDU session, as an AMF knows it.
    PduSessionContext {
        required {
            /// The UE's number for it.
            pdu_session_id: u8,
            /// The SM context.
            sm_context_ref: Uri,
            /// Its slice.
            s_nssai: Snssai,
            /// Its data network.
            dnn: Dnn,
            /// Over which access.
            access_type: AccessType,
        }
        optional {
            /// The data network chosen instead.
            selected_dnn: Dnn,
            /// The SMF, or the one at home.
            hsmf_id: NfInstanceId,
            /// The SMF in the visited network.
            vsmf_id: NfInstanceId,
            /// The slice instance.
            ns_instance: Arc<str>,
        }
    }
}

impl KeyAmf {
    /// A key of 256 bits.
    pub fn of_octets(key_type: KeyAmfType, key: [u8; 32]) -> Self {
        Self::new(key_type, Hex(key).to_string())
    }

    /// The key, if it has 256 bits.
    pub fn octets(&self) -> Option<[u8; 32]> {
        self.key_val.0.parse().ok().map(|Hex(key)| key)
    }
}
