//! UpdateSMContext: the bodies of request and answer.

use super::{EbiArpMapping, HoState, N2SmInfoType, SmContextCause, UpCnxState};
use crate::common::{
    AccessType, BackupAmfInfo, BinaryData, GlobalRanNodeId, NfInstanceId, NgApCause, PlmnIdNid,
    PresenceState, RatType, SupportedFeatures, UserLocation,
};
use crate::record::record;
use crate::uri::Uri;
use pith_types::{Guami, Pei, Snssai, Tai};
use std::sync::Arc;

record! {
    /// What changes of a PDU session.
    SmContextUpdateData {
        optional {
            /// The equipment.
            pei: Pei,
            /// The AMF.
            serving_nf_id: NfInstanceId,
            /// The AMF's identity.
            guami: Guami,
            /// The serving network.
            serving_network: PlmnIdNid,
            /// The access.
            an_type: AccessType,
            /// The access over which the network is to reactivate the user plane.
            an_type_to_reactivate: AccessType,
            /// The radio.
            rat_type: RatType,
            /// Whether the UE is in the area of a local area data network.
            presence_in_ladn: PresenceState,
            /// Where the UE is.
            ue_location: UserLocation,
            /// Its time zone, `+01:00`.
            ue_time_zone: Arc<str>,
            /// State of the user plane that is wanted.
            up_cnx_state: UpCnxState,
            /// State of a handover.
            ho_state: HoState,
            /// The session moves with an Xn handover.
            to_be_switched: bool,
            /// The target gNB could not take it.
            failed_to_be_switched: bool,
            /// A 5GSM message from the UE.
            n1_sm_msg: BinaryData,
            /// NGAP information from the gNB.
            n2_sm_info: BinaryData,
            /// Which.
            n2_sm_info_type: N2SmInfoType,
            /// More of it.
            n2_sm_info_ext1: BinaryData,
            /// Which.
            n2_sm_info_type_ext1: N2SmInfoType,
            /// The target of a handover.
            target_id: NgRanTargetId,
            /// The AMF at the target of a handover.
            target_serving_nf_id: NfInstanceId,
            /// Where the SMF tells that the session has ended.
            sm_context_status_uri: Uri,
            /// Data is forwarded from the source of a handover.
            data_forwarding: bool,
            /// The session shall end.
            release: bool,
            /// Why.
            cause: SmContextCause,
            /// Why, as NGAP puts it.
            ng_ap_cause: NgApCause,
            /// Why, as 5GMM puts it (TS 24.501 9.11.3.2).
            #[serde(rename = "5gMmCauseValue")]
            five_g_mm_cause_value: u32,
            /// The slice in the serving network.
            s_nssai: Snssai,
            /// The access may be changed.
            an_type_can_be_changed: bool,
            /// Optional features that the AMF has.
            supported_features: SupportedFeatures,
        }
        repeated {
            /// AMFs that take over when this one fails.
            backup_amf_info: Vec<BackupAmfInfo>,
            /// EPS bearers that are taken back.
            revoke_ebi_list: Vec<u8>,
        }
    }
}

record! {
    /// The target of a handover.
    NgRanTargetId {
        required {
            /// The node.
            ran_node_id: GlobalRanNodeId,
            /// A tracking area of it.
            tai: Tai,
        }
    }
}

record! {
    /// What has changed of a PDU session, and what is to be sent on.
    SmContextUpdatedData {
        optional {
            /// State of the user plane.
            up_cnx_state: UpCnxState,
            /// State of a handover.
            ho_state: HoState,
            /// A 5GSM message to the UE.
            n1_sm_msg: BinaryData,
            /// NGAP information for the gNB.
            n2_sm_info: BinaryData,
            /// Which.
            n2_sm_info_type: N2SmInfoType,
            /// Data is forwarded from the source of a handover.
            data_forwarding: bool,
            /// Why.
            cause: SmContextCause,
            /// Optional features that both have.
            supported_features: SupportedFeatures,
        }
        repeated {
            /// EPS bearers that ended.
            release_ebi_list: Vec<u8>,
            /// EPS bearers that began.
            allocated_ebi_list: Vec<EbiArpMapping>,
            /// EPS bearers that changed.
            modified_ebi_list: Vec<EbiArpMapping>,
        }
    }
}
