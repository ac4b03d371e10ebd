//! PDU session resources in the gNB (TS 38.413 8.2, 9.2.1). Their transfers are in [`crate::transfer`].

use crate::error::Diagnostics;
use crate::macros::message;
use crate::types::{ModifyItem, SessionTransfer, SetupItem, UserLocation};
use pith_types::{Ambr, AmfUeNgapId, RanUeNgapId};

message! {
    /// PDU SESSION RESOURCE SETUP REQUEST (TS 38.413 9.2.1.1).
    PduSessionResourceSetupRequest = InitiatingMessage PDUSessionResourceSetup PDUSessionResourceSetupRequest {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// NAS message for the UE that belongs to no session.
        opt nas_pdu: Vec<u8> = NAS_PDU,
        /// Sessions to set up.
        req sessions: Vec<SetupItem> = PDUSessionResourceSetupListSUReq,
        lax ue_ambr: Ambr = UEAggregateMaximumBitRate,
    }
}

message! {
    /// PDU SESSION RESOURCE SETUP RESPONSE (TS 38.413 9.2.1.2).
    PduSessionResourceSetupResponse = SuccessfulOutcome PDUSessionResourceSetup PDUSessionResourceSetupResponse {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Sessions that were set up: PDU Session Resource Setup Response Transfers.
        lax setup: Vec<SessionTransfer> = PDUSessionResourceSetupListSURes,
        /// Sessions that failed: PDU Session Resource Setup Unsuccessful Transfers.
        lax failed: Vec<SessionTransfer> = PDUSessionResourceFailedToSetupListSURes,
        /// Errors in the request that its criticality permits to ignore.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// PDU SESSION RESOURCE RELEASE COMMAND (TS 38.413 9.2.1.3).
    PduSessionResourceReleaseCommand = InitiatingMessage PDUSessionResourceRelease PDUSessionResourceReleaseCommand {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// NAS message for the UE.
        lax nas_pdu: Vec<u8> = NAS_PDU,
        /// Sessions to release: PDU Session Resource Release Command Transfers.
        req sessions: Vec<SessionTransfer> = PDUSessionResourceToReleaseListRelCmd,
    }
}

message! {
    /// PDU SESSION RESOURCE RELEASE RESPONSE (TS 38.413 9.2.1.4).
    PduSessionResourceReleaseResponse = SuccessfulOutcome PDUSessionResourceRelease PDUSessionResourceReleaseResponse {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Sessions that were released: PDU Session Resource Release Response Transfers.
        lax released: Vec<SessionTransfer> = PDUSessionResourceReleasedListRelRes,
        lax location: UserLocation = UserLocationInformation,
        /// Errors in the command that its criticality permits to ignore.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// PDU SESSION RESOURCE MODIFY REQUEST (TS 38.413 9.2.1.5).
    PduSessionResourceModifyRequest = InitiatingMessage PDUSessionResourceModify PDUSessionResourceModifyRequest {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Sessions to modify.
        req sessions: Vec<ModifyItem> = PDUSessionResourceModifyListModReq,
    }
}

message! {
    /// PDU SESSION RESOURCE MODIFY RESPONSE (TS 38.413 9.2.1.6).
    PduSessionResourceModifyResponse = SuccessfulOutcome PDUSessionResourceModify PDUSessionResourceModifyResponse {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Sessions that were modified: PDU Session Resource Modify Response Transfers.
        lax modified: Vec<SessionTransfer> = PDUSessionResourceModifyListModRes,
        /// Sessions that failed: PDU Session Resource Modify Unsuccessful Transfers.
        lax failed: Vec<SessionTransfer> = PDUSessionResourceFailedToModifyListModRes,
        /// Errors in the request that its criticality permits to ignore.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// PDU SESSION RESOURCE NOTIFY (TS 38.413 9.2.1.7).
    PduSessionResourceNotify = InitiatingMessage PDUSessionResourceNotify PDUSessionResourceNotify {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Sessions whose QoS fulfilment has changed: PDU Session Resource Notify Transfers.
        opt notified: Vec<SessionTransfer> = PDUSessionResourceNotifyList,
        /// Sessions that the gNB released: PDU Session Resource Notify Released Transfers.
        lax released: Vec<SessionTransfer> = PDUSessionResourceReleasedListNot,
    }
}

message! {
    /// PDU SESSION RESOURCE MODIFY INDICATION (TS 38.413 9.2.1.8).
    PduSessionResourceModifyIndication =
        InitiatingMessage PDUSessionResourceModifyIndication PDUSessionResourceModifyIndication {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Sessions that the gNB has modified: PDU Session Resource Modify Indication Transfers.
        req sessions: Vec<SessionTransfer> = PDUSessionResourceModifyListModInd,
        lax location: UserLocation = UserLocationInformation,
    }
}

message! {
    /// PDU SESSION RESOURCE MODIFY CONFIRM (TS 38.413 9.2.1.9).
    PduSessionResourceModifyConfirm =
        SuccessfulOutcome PDUSessionResourceModifyIndication PDUSessionResourceModifyConfirm {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Confirmed sessions: PDU Session Resource Modify Confirm Transfers.
        lax confirmed: Vec<SessionTransfer> = PDUSessionResourceModifyListModCfm,
        /// Sessions whose modification does not: PDU Session Resource Modify Indication Unsuccessful
        /// Transfers.
        lax failed: Vec<SessionTransfer> = PDUSessionResourceFailedToModifyListModCfm,
        /// Errors in the indication that its criticality permits to ignore.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}
