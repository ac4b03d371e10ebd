//! A UE context for the transfer between AMFs.

use super::{CipheringAlgorithm, IntegrityAlgorithm, KeyAmfType, ScType};
use crate::common::{
    AccessType, Area, CoreNetworkType, NfInstanceId, RatType, ServiceAreaRestriction, TraceData,
};
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
            /// SUPI of the subscriber.
            supi: Supi,
            /// Whether the SUPI was not authenticated, for emergency services.
            supi_unauth_ind: bool,
            /// PEI of the UE.
            pei: Pei,
            /// UDM group of the subscriber.
            udm_group_id: Arc<str>,
            /// AUSF group of the subscriber.
            ausf_group_id: Arc<str>,
            /// Routing Indicator of the SUCI.
            routing_indicator: Arc<str>,
            /// DRX parameters (TS 38.413 `Paging DRX`).
            drx_parameter: Base64,
            /// Subscribed index to RAT/Frequency Selection Priority.
            sub_rfsp: u16,
            /// RFSP index in use.
            used_rfsp: u16,
            /// Subscribed UE-AMBR.
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
            /// Service area restriction.
            service_area_restriction: ServiceAreaRestriction,
            /// The trace of the subscriber.
            trace_data: TraceData,
        }
        repeated {
            /// GPSIs.
            gpsi_list: Vec<Arc<str>>,
            /// Triggers of the AM policy association.
            am_policy_req_trigger_list: Vec<RequestTrigger>,
            /// Restricted radio access technologies.
            restricted_rat_list: Vec<RatType>,
            /// Forbidden areas.
            forbidden_area_list: Vec<Area>,
            /// Restricted core networks.
            restricted_core_nw_type_list: Vec<CoreNetworkType>,
            /// Mobility contexts, one for each access.
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
            /// K_AMF.
            key_amf: KeyAmf,
        }
        optional {
            /// Next hop (TS 33.501 6.9.2.1.1).
            nh: SecretText,
            /// Next hop chaining counter, 0 to 7.
            ncc: u8,
            /// Whether K_AMF differs from the one in use with the UE.
            key_amf_change_ind: bool,
            /// Whether K_AMF was derived horizontally (TS 33.501 6.9.3).
            key_amf_h_derivation_ind: bool,
        }
    }
}

record! {
    /// Key set identifier.
    NgKsi {
        required {
            /// Origin of the security context.
            tsc: ScType,
            /// Value, 0 to 6.
            ksi: u8,
        }
    }
}

record! {
    /// An AMF key.
    KeyAmf {
        required {
            /// Kind of the key.
            key_type: KeyAmfType,
            /// The key, in hexadecimal digits.
            key_val: SecretText,
        }
    }
}

record! {
    /// The mobility context of one access.
    MmContext {
        required {
            /// The access.
            access_type: AccessType,
        }
        optional {
            /// NAS algorithms in use.
            nas_security_mode: NasSecurityMode,
            /// NAS COUNT of the last downlink message.
            nas_downlink_count: u32,
            /// NAS COUNT of the last uplink message.
            nas_uplink_count: u32,
            /// UE security capability (TS 24.501 9.11.3.54).
            ue_security_capability: Base64,
            /// S1 UE network capability (TS 24.501 9.11.3.48).
            s1_ue_network_capability: Base64,
        }
        repeated {
            /// Allowed slices.
            allowed_nssai: Vec<Snssai>,
            /// Mapping of allowed slices to the home network.
            nssai_mapping_list: Vec<NssaiMapping>,
        }
    }
}

record! {
    /// NAS algorithms in use.
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
    /// Mapping of a slice to the home network.
    NssaiMapping {
        required {
            /// Slice in the serving network.
            mapped_snssai: Snssai,
            /// Slice in the home network.
            h_snssai: Snssai,
        }
    }
}

record! {
    /// A PDU session in an AMF.
    PduSessionContext {
        required {
            /// PDU session identity.
            pdu_session_id: u8,
            /// URI of the SM context.
            sm_context_ref: Uri,
            /// Slice of the session.
            s_nssai: Snssai,
            /// DNN of the session.
            dnn: Dnn,
            /// Access of the session.
            access_type: AccessType,
        }
        optional {
            /// The DNN selected in place of the requested one.
            selected_dnn: Dnn,
            /// The SMF, or the home SMF of a home-routed session.
            hsmf_id: NfInstanceId,
            /// The SMF in the visited network.
            vsmf_id: NfInstanceId,
            /// The slice instance.
            ns_instance: Arc<str>,
        }
    }
}

impl KeyAmf {
    /// A 256-bit key.
    pub fn of_octets(key_type: KeyAmfType, key: [u8; 32]) -> Self {
        Self::new(key_type, Hex(key).to_string())
    }

    /// The key, if it has 256 bits.
    pub fn octets(&self) -> Option<[u8; 32]> {
        self.key_val.0.parse().ok().map(|Hex(key)| key)
    }
}

impl SeafData {
    /// Adds NH and NCC.
    pub fn set_next_hop(&mut self, nh: [u8; 32], chaining_count: u8) {
        self.nh = Some(Hex(nh).to_string().into());
        self.ncc = Some(chaining_count);
    }

    /// NH and NCC, if NH has 256 bits and NCC three.
    pub fn next_hop(&self) -> Option<([u8; 32], u8)> {
        let Hex(nh) = self.nh.as_ref()?.0.parse().ok()?;
        Some((nh, self.ncc.filter(|ncc| *ncc < 8)?))
    }
}
