//! UEContextTransfer and RegistrationStatusUpdate: a UE moves from one AMF to another.

use super::{N1MessageContainer, N2InfoContent, TransferReason, UeContext, UeContextTransferStatus};
use crate::common::{AccessType, SupportedFeatures};
use crate::record::record;
use pith_types::Plmn;

record! {
    /// A new AMF asks for a UE context.
    UeContextTransferReqData {
        required {
            /// Why.
            reason: TransferReason,
            /// Over which access the UE came.
            access_type: AccessType,
        }
        optional {
            /// The new serving network.
            plmn_id: Plmn,
            /// The REGISTRATION REQUEST, for the old AMF to check.
            reg_request: N1MessageContainer,
            /// Optional features that the new AMF has.
            supported_features: SupportedFeatures,
        }
    }
}

record! {
    /// The old AMF gives it.
    UeContextTransferRspData {
        required {
            /// The context.
            ue_context: UeContext,
        }
        optional {
            /// What the UE's radio can do.
            ue_radio_capability: N2InfoContent,
            /// The same, for paging.
            ue_radio_capability_for_paging: N2InfoContent,
            /// Optional features that both have.
            supported_features: SupportedFeatures,
        }
    }
}

record! {
    /// The new AMF tells whether it took the UE.
    UeRegStatusUpdateReqData {
        required {
            /// Whether.
            transfer_status: UeContextTransferStatus,
        }
        optional {
            /// The new AMF chose another PCF.
            pcf_reselected_ind: bool,
        }
        repeated {
            /// Sessions that the old AMF shall end.
            to_release_session_list: Vec<u8>,
        }
    }
}

record! {
    /// The old AMF has let the UE go, or has taken it back.
    UeRegStatusUpdateRspData {
        required {
            /// Done.
            reg_status_transfer_complete: bool,
        }
    }
}
