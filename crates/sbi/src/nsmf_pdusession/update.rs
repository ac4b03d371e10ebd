//! UpdateSMContext: bodies of request and response.

use super::{EbiArpMapping, HoState, N2SmInfoType, SmContextCause, UpCnxState};
use crate::common::{
    AccessType, BackupAmfInfo, BinaryData, GlobalRanNodeId, NfInstanceId, NgApCause, PlmnIdNid,
    PresenceState, RatType, SupportedFeatures, UserLocation,
};
use crate::embedded::EmbeddedDocument;
use crate::record::record;
use crate::uri::Uri;
use pith_types::{Guami, Pei, Snssai, Tai};
use std::sync::Arc;

record! {
    /// A modification of a PDU session.
    SmContextUpdateData {
        optional {
            /// PEI of the UE.
            pei: Pei,
            /// NF instance of the AMF.
            serving_nf_id: NfInstanceId,
            /// GUAMI of the AMF.
            guami: Guami,
            /// The serving network.
            serving_network: PlmnIdNid,
            /// Access type.
            an_type: AccessType,
            /// The access on which the network reactivates the user plane.
            an_type_to_reactivate: AccessType,
            /// Radio access technology.
            rat_type: RatType,
            /// Presence of the UE in the service area of a LADN.
            presence_in_ladn: PresenceState,
            /// Location of the UE.
            ue_location: UserLocation,
            /// Time zone of the UE, such as `+01:00`.
            ue_time_zone: Arc<str>,
            /// Requested state of the user plane.
            up_cnx_state: UpCnxState,
            /// Handover state.
            ho_state: HoState,
            /// Whether the session is switched by an Xn handover.
            to_be_switched: bool,
            /// Whether the target gNB rejected the session.
            failed_to_be_switched: bool,
            /// A 5GSM message from the UE.
            n1_sm_msg: BinaryData,
            /// NGAP information from the gNB.
            n2_sm_info: BinaryData,
            /// Type of the NGAP information.
            n2_sm_info_type: N2SmInfoType,
            /// Further NGAP information.
            n2_sm_info_ext1: BinaryData,
            /// Type of the further NGAP information.
            n2_sm_info_type_ext1: N2SmInfoType,
            /// The target of a handover.
            target_id: NgRanTargetId,
            /// The target AMF of a handover.
            target_serving_nf_id: NfInstanceId,
            /// Callback URI for the session's status.
            sm_context_status_uri: Uri,
            /// Whether data is forwarded during a handover.
            data_forwarding: bool,
            /// Whether the session must be released.
            release: bool,
            /// The reason.
            cause: SmContextCause,
            /// The reason as an NGAP cause.
            ng_ap_cause: NgApCause,
            /// The reason as a 5GMM cause (TS 24.501 9.11.3.2).
            #[serde(rename = "5gMmCauseValue")]
            five_g_mm_cause_value: u32,
            /// The slice in the serving network.
            s_nssai: Snssai,
            /// Whether the access type may be changed.
            an_type_can_be_changed: bool,
            /// Optional features of the AMF.
            supported_features: SupportedFeatures,
            /// Stored contexts of the UE, between instances of Pith ([`crate::embedded`]).
            #[serde(rename = "vendorSpecific-032473")]
            embedded: EmbeddedDocument,
        }
        repeated {
            /// Backup AMFs.
            backup_amf_info: Vec<BackupAmfInfo>,
            /// Revoked EPS bearers.
            revoke_ebi_list: Vec<u8>,
        }
    }
}

impl SmContextUpdateData {
    /// Whether it says only whether the UE is in the service area of a LADN.
    pub const fn is_presence_report(&self) -> bool {
        let Self { n1_sm_msg, n2_sm_info_type, up_cnx_state, ho_state, release, serving_nf_id, .. } = self;
        self.presence_in_ladn.is_some()
            && n1_sm_msg.is_none()
            && n2_sm_info_type.is_none()
            && up_cnx_state.is_none()
            && ho_state.is_none()
            && release.is_none()
            && serving_nf_id.is_none()
    }
}

record! {
    /// The target of a handover.
    NgRanTargetId {
        required {
            /// The target node.
            ran_node_id: GlobalRanNodeId,
            /// A tracking area of the node.
            tai: Tai,
        }
    }
}

record! {
    /// The response to a modification of a PDU session.
    SmContextUpdatedData {
        optional {
            /// State of the user plane.
            up_cnx_state: UpCnxState,
            /// Handover state.
            ho_state: HoState,
            /// A 5GSM message to the UE.
            n1_sm_msg: BinaryData,
            /// NGAP information for the gNB.
            n2_sm_info: BinaryData,
            /// Type of the NGAP information.
            n2_sm_info_type: N2SmInfoType,
            /// Whether data is forwarded during a handover.
            data_forwarding: bool,
            /// The reason.
            cause: SmContextCause,
            /// Optional features of both sides.
            supported_features: SupportedFeatures,
            /// Stored contexts of the UE, between instances of Pith ([`crate::embedded`]).
            #[serde(rename = "vendorSpecific-032473")]
            embedded: EmbeddedDocument,
        }
        repeated {
            /// Released EPS bearers.
            release_ebi_list: Vec<u8>,
            /// Allocated EPS bearers.
            allocated_ebi_list: Vec<EbiArpMapping>,
            /// Modified EPS bearers.
            modified_ebi_list: Vec<EbiArpMapping>,
        }
    }
}
