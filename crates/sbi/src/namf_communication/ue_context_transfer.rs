//! UEContextTransfer and RegistrationStatusUpdate: the transfer of a UE from one AMF to another.

use super::{N1MessageContainer, N2InfoContent, TransferReason, UeContext, UeContextTransferStatus};
use crate::common::{AccessType, SupportedFeatures};
use crate::record::record;
use pith_types::Plmn;

record! {
    /// Request of the new AMF for a UE context.
    UeContextTransferReqData {
        required {
            /// The reason of the transfer.
            reason: TransferReason,
            /// Access of the UE.
            access_type: AccessType,
        }
        optional {
            /// The new serving network.
            plmn_id: Plmn,
            /// The REGISTRATION REQUEST, for the old AMF's integrity check.
            reg_request: N1MessageContainer,
            /// Optional features of the new AMF.
            supported_features: SupportedFeatures,
        }
    }
}

record! {
    /// Response of the old AMF.
    UeContextTransferRspData {
        required {
            /// The UE context.
            ue_context: UeContext,
        }
        optional {
            /// UE radio capability.
            ue_radio_capability: N2InfoContent,
            /// UE radio capability for paging.
            ue_radio_capability_for_paging: N2InfoContent,
            /// Optional features of both sides.
            supported_features: SupportedFeatures,
        }
    }
}

record! {
    /// Report of the new AMF on the transfer.
    UeRegStatusUpdateReqData {
        required {
            /// Whether the UE context was accepted.
            transfer_status: UeContextTransferStatus,
        }
        optional {
            /// Whether the new AMF selected another PCF.
            pcf_reselected_ind: bool,
        }
        repeated {
            /// PDU sessions that the old AMF must release.
            to_release_session_list: Vec<u8>,
        }
    }
}

record! {
    /// Response of the old AMF to the report.
    UeRegStatusUpdateRspData {
        required {
            /// Whether the update is complete.
            reg_status_transfer_complete: bool,
        }
    }
}
