//! CreateUEContext, ReleaseUEContext and N2InfoNotify: the N2 handover of a UE from one AMF to another.

use super::{N2InfoContainer, N2InfoContent, N2InfoNotifyReason, N2SmInformation, UeContext};
use crate::common::{NgApCause, PlmnIdNid, SupportedFeatures};
use crate::nsmf_pdusession::NgRanTargetId;
use crate::record::record;
use crate::uri::Uri;
use pith_types::{Guami, Supi};
use std::sync::Arc;

record! {
    /// Request of the source AMF to prepare a handover.
    UeContextCreateData {
        required {
            /// The UE context.
            ue_context: UeContext,
            /// The target of the handover.
            target_id: NgRanTargetId,
            /// Source to Target Transparent Container (TS 38.413 9.3.1.20).
            source_to_target_data: N2InfoContent,
            /// PDU sessions to be handed over, each with the source gNB's N2 information.
            pdu_session_list: Vec<N2SmInformation>,
        }
        optional {
            /// Callback URI for the completion of the handover.
            n2_notify_uri: Uri,
            /// UE radio capability.
            ue_radio_capability: N2InfoContent,
            /// UE radio capability for paging.
            ue_radio_capability_for_paging: N2InfoContent,
            /// The source gNB's cause.
            ngap_cause: NgApCause,
            /// Optional features of the source AMF.
            supported_features: SupportedFeatures,
            /// The serving network.
            serving_network: PlmnIdNid,
        }
    }
}

record! {
    /// Response of the target AMF: the handover is prepared.
    UeContextCreatedData {
        required {
            /// The UE context.
            ue_context: UeContext,
            /// Target to Source Transparent Container (TS 38.413 9.3.1.21).
            target_to_source_data: N2InfoContent,
            /// PDU sessions that are handed over, each with N2 information for the source gNB.
            pdu_session_list: Vec<N2SmInformation>,
        }
        optional {
            /// Optional features of both sides.
            supported_features: SupportedFeatures,
            /// Whether the target AMF selected another PCF.
            pcf_reselected_ind: bool,
        }
        repeated {
            /// PDU sessions that are not handed over, each with N2 information for the source gNB.
            failed_session_list: Vec<N2SmInformation>,
        }
    }
}

record! {
    /// Why a handover is not prepared (`UeContextCreateError` without its `error`).
    UeContextCreateErrorData {
        optional {
            /// The cause for the source gNB.
            ngap_cause: NgApCause,
            /// Target NG-RAN Node to Source NG-RAN Node Failure Transparent Container.
            target_to_source_failure_data: N2InfoContent,
        }
    }
}

record! {
    /// Request of the source AMF to delete the UE context of a handover that does not take place.
    UeContextRelease {
        required {
            /// The reason.
            ngap_cause: NgApCause,
        }
        optional {
            /// SUPI of a UE that is identified by its PEI.
            supi: Supi,
            /// Whether the SUPI was not authenticated.
            unauthenticated_supi: bool,
        }
    }
}

record! {
    /// Notification about N2 information of a UE.
    N2InformationNotification {
        required {
            /// The subscription. For a handover the callback URI identifies the UE.
            n2_notify_subscription_id: Arc<str>,
        }
        optional {
            /// The information.
            n2_info_container: N2InfoContainer,
            /// The event of a handover.
            notify_reason: N2InfoNotifyReason,
            /// The GUAMI of the AMF that serves the UE now.
            guami: Guami,
            /// Whether the source AMF notifies the source gNB.
            notify_source_ng_ran: bool,
        }
        repeated {
            /// PDU sessions that the source AMF must release.
            to_release_session_list: Vec<u8>,
        }
    }
}

record! {
    /// Response of the source AMF to the completion of a handover.
    N2InfoNotificationRspData {
        repeated {
            /// Usage of a secondary RAT, of each PDU session.
            sec_rat_data_usage_list: Vec<N2SmInformation>,
        }
    }
}
