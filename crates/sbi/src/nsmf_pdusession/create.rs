//! CreateSMContext: the bodies of request and answer.

use super::{DnnSelectionMode, HoState, N2SmInfoType, RequestType, UpCnxState};
use crate::common::{
    AccessType, Arp, BackupAmfInfo, BinaryData, DateTime, NfInstanceId, PlmnIdNid, PresenceState, RatType,
    ServiceName, SupportedFeatures, UserLocation,
};
use crate::record::record;
use crate::uri::Uri;
use pith_types::{Dnn, Guami, Pei, Snssai, Supi};
use std::sync::Arc;

record! {
    /// A PDU session to be made.
    SmContextCreateData {
        required {
            /// The AMF.
            serving_nf_id: NfInstanceId,
            /// The serving network.
            serving_network: PlmnIdNid,
            /// The access.
            an_type: AccessType,
            /// Where the SMF tells that the session has ended.
            sm_context_status_uri: Uri,
        }
        optional {
            /// The subscriber; `None` only in an emergency.
            supi: Supi,
            /// Nobody has checked that the SUPI is the UE's; in an emergency.
            unauthenticated_supi: bool,
            /// The equipment.
            pei: Pei,
            /// Public identity.
            gpsi: Arc<str>,
            /// The UE's number for it, 1 to 15.
            pdu_session_id: u8,
            /// The data network that was asked for.
            dnn: Dnn,
            /// The one chosen instead of it.
            selected_dnn: Dnn,
            /// The slice in the serving network.
            s_nssai: Snssai,
            /// The slice in the home network.
            hplmn_snssai: Snssai,
            /// The AMF's identity.
            guami: Guami,
            /// The service that takes the callback.
            service_name: ServiceName,
            /// What the UE asked for.
            request_type: RequestType,
            /// PDU SESSION ESTABLISHMENT REQUEST.
            n1_sm_msg: BinaryData,
            /// The radio.
            rat_type: RatType,
            /// Whether the UE is in the area of a local area data network.
            presence_in_ladn: PresenceState,
            /// Where the UE is.
            ue_location: UserLocation,
            /// Its time zone, `+01:00`.
            ue_time_zone: Arc<str>,
            /// What the session was called before.
            old_pdu_session_id: u8,
            /// State of a handover.
            ho_state: HoState,
            /// The PCF that serves the UE in the AMF.
            pcf_id: NfInstanceId,
            /// How the data network came to be chosen.
            sel_mode: DnnSelectionMode,
            /// The group of UDM instances that serves the subscriber.
            udm_group_id: Arc<str>,
            /// Routing Indicator of the SUCI.
            routing_indicator: Arc<str>,
            /// NGAP information from the gNB.
            n2_sm_info: BinaryData,
            /// Which.
            n2_sm_info_type: N2SmInfoType,
            /// An SM context that exists already, at another SMF.
            sm_context_ref: Uri,
            /// State of the user plane.
            up_cnx_state: UpCnxState,
            /// Optional features that the AMF has.
            supported_features: SupportedFeatures,
        }
        repeated {
            /// AMFs that take over when this one fails.
            backup_amf_info: Vec<BackupAmfInfo>,
            /// Sessions whose user plane is to be activated with it.
            pdu_sessions_activate_list: Vec<u8>,
        }
    }
}

record! {
    /// A PDU session in the making.
    SmContextCreatedData {
        optional {
            /// The UE's number for it.
            pdu_session_id: u8,
            /// The slice in the serving network.
            s_nssai: Snssai,
            /// State of the user plane.
            up_cnx_state: UpCnxState,
            /// NGAP information for the gNB.
            n2_sm_info: BinaryData,
            /// Which.
            n2_sm_info_type: N2SmInfoType,
            /// State of a handover.
            ho_state: HoState,
            /// Public identity.
            gpsi: Arc<str>,
            /// When the SMF last lost its contexts.
            recovery_time: DateTime,
            /// Optional features that both have.
            supported_features: SupportedFeatures,
            /// The SMF that was chosen.
            selected_smf_id: NfInstanceId,
        }
        repeated {
            /// EPS bearers of its QoS flows.
            allocated_ebi_list: Vec<EbiArpMapping>,
        }
    }
}

record! {
    /// An EPS bearer and its priority.
    EbiArpMapping {
        required {
            /// EPS bearer identity, 0 to 15.
            eps_bearer_id: u8,
            /// Its priority.
            arp: Arp,
        }
    }
}
