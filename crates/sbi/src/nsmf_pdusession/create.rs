//! CreateSMContext: bodies of request and response.

use super::{DnnSelectionMode, HoState, N2SmInfoType, RequestType, UpCnxState};
use crate::common::{
    AccessType, Arp, BackupAmfInfo, BinaryData, DateTime, NfInstanceId, PlmnIdNid, PresenceState, RatType,
    ServiceName, SupportedFeatures, UserLocation,
};
use crate::embedded::EmbeddedDocument;
use crate::record::record;
use crate::uri::Uri;
use pith_types::{Dnn, Guami, Pei, Snssai, Supi};
use std::sync::Arc;

record! {
    /// A request to create a PDU session.
    SmContextCreateData {
        required {
            /// NF instance of the AMF.
            serving_nf_id: NfInstanceId,
            /// The serving network.
            serving_network: PlmnIdNid,
            /// Access type.
            an_type: AccessType,
            /// Callback URI for the session's status.
            sm_context_status_uri: Uri,
        }
        optional {
            /// SUPI of the subscriber; absent only for emergency services.
            supi: Supi,
            /// Whether the SUPI was not authenticated, for emergency services.
            unauthenticated_supi: bool,
            /// PEI of the UE.
            pei: Pei,
            /// GPSI.
            gpsi: Arc<str>,
            /// PDU session identity, 1 to 15.
            pdu_session_id: u8,
            /// Requested DNN.
            dnn: Dnn,
            /// The DNN selected in its place.
            selected_dnn: Dnn,
            /// The slice in the serving network.
            s_nssai: Snssai,
            /// The slice in the home network.
            hplmn_snssai: Snssai,
            /// GUAMI of the AMF.
            guami: Guami,
            /// Service of the callback.
            service_name: ServiceName,
            /// Request type of the UE.
            request_type: RequestType,
            /// PDU SESSION ESTABLISHMENT REQUEST.
            n1_sm_msg: BinaryData,
            /// Radio access technology.
            rat_type: RatType,
            /// Presence of the UE in the service area of a LADN.
            presence_in_ladn: PresenceState,
            /// Location of the UE.
            ue_location: UserLocation,
            /// Time zone of the UE, such as `+01:00`.
            ue_time_zone: Arc<str>,
            /// Previous PDU session identity.
            old_pdu_session_id: u8,
            /// Handover state.
            ho_state: HoState,
            /// PCF of the UE's AM policy.
            pcf_id: NfInstanceId,
            /// Selection mode of the DNN.
            sel_mode: DnnSelectionMode,
            /// UDM group of the subscriber.
            udm_group_id: Arc<str>,
            /// Routing Indicator of the SUCI.
            routing_indicator: Arc<str>,
            /// NGAP information from the gNB.
            n2_sm_info: BinaryData,
            /// Type of the NGAP information.
            n2_sm_info_type: N2SmInfoType,
            /// URI of an existing SM context at another SMF.
            sm_context_ref: Uri,
            /// State of the user plane.
            up_cnx_state: UpCnxState,
            /// Optional features of the AMF.
            supported_features: SupportedFeatures,
            /// Stored contexts of the UE, between instances of Pith ([`crate::embedded`]).
            #[serde(rename = "vendorSpecific-032473")]
            embedded: EmbeddedDocument,
        }
        repeated {
            /// Backup AMFs.
            backup_amf_info: Vec<BackupAmfInfo>,
            /// Sessions whose user plane is to be activated.
            pdu_sessions_activate_list: Vec<u8>,
        }
    }
}

record! {
    /// The response to a request to create a PDU session.
    SmContextCreatedData {
        optional {
            /// PDU session identity.
            pdu_session_id: u8,
            /// The slice in the serving network.
            s_nssai: Snssai,
            /// State of the user plane.
            up_cnx_state: UpCnxState,
            /// NGAP information for the gNB.
            n2_sm_info: BinaryData,
            /// Type of the NGAP information.
            n2_sm_info_type: N2SmInfoType,
            /// Handover state.
            ho_state: HoState,
            /// GPSI.
            gpsi: Arc<str>,
            /// Time of the SMF's last restart with loss of contexts.
            recovery_time: DateTime,
            /// Optional features of both sides.
            supported_features: SupportedFeatures,
            /// The selected SMF.
            selected_smf_id: NfInstanceId,
            /// Stored contexts of the UE, between instances of Pith ([`crate::embedded`]).
            #[serde(rename = "vendorSpecific-032473")]
            embedded: EmbeddedDocument,
        }
        repeated {
            /// EPS bearers of the QoS flows.
            allocated_ebi_list: Vec<EbiArpMapping>,
        }
    }
}

record! {
    /// An EPS bearer with its priority.
    EbiArpMapping {
        required {
            /// EPS bearer identity, 0 to 15.
            eps_bearer_id: u8,
            /// Allocation and retention priority.
            arp: Arp,
        }
    }
}
