//! UE contexts in the gNB (TS 38.413 8.3, 9.2.2).

use crate::error::Diagnostics;
use crate::macros::message;
use crate::types::{Cause, SecurityCapabilities, SessionTransfer, SetupItem, UeNgapIds, UserLocation};
use pith_types::{Ambr, AmfUeNgapId, Guami, RanUeNgapId, Snssai};

message! {
    /// INITIAL CONTEXT SETUP REQUEST (TS 38.413 9.2.2.1).
    InitialContextSetupRequest = InitiatingMessage InitialContextSetup InitialContextSetupRequest {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// UE-AMBR; must be there if sessions are.
        opt ue_ambr: Ambr = UEAggregateMaximumBitRate,
        /// The AMF.
        req guami: Guami = GUAMI,
        /// Sessions to set up.
        opt sessions: Vec<SetupItem> = PDUSessionResourceSetupListCxtReq,
        /// Slices that the UE may use.
        req allowed_nssai: Vec<Snssai> = AllowedNSSAI,
        /// Which algorithms the UE knows.
        req security_capabilities: SecurityCapabilities = UESecurityCapabilities,
        /// K_gNB (TS 33.501 6.8.1.1).
        req security_key: [u8; 32] = SecurityKey,
        /// The UE's radio capabilities, if the AMF has them.
        lax ue_radio_capability: Vec<u8> = UERadioCapability,
        /// RAT/Frequency Selection Priority, 1 to 256.
        lax rfsp_index: u64 = IndexToRFSP,
        /// IMEISV with the last four digits of the serial number masked.
        lax masked_imeisv: [u8; 8] = MaskedIMEISV,
        /// For the UE.
        lax nas_pdu: Vec<u8> = NAS_PDU,
    }
}

message! {
    /// INITIAL CONTEXT SETUP RESPONSE (TS 38.413 9.2.2.2).
    InitialContextSetupResponse = SuccessfulOutcome InitialContextSetup InitialContextSetupResponse {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Sessions that were set up: PDU Session Resource Setup Response Transfers.
        lax setup: Vec<SessionTransfer> = PDUSessionResourceSetupListCxtRes,
        /// Sessions that were not: PDU Session Resource Setup Unsuccessful Transfers.
        lax failed: Vec<SessionTransfer> = PDUSessionResourceFailedToSetupListCxtRes,
        /// What was wrong with the request and could be overlooked.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// INITIAL CONTEXT SETUP FAILURE (TS 38.413 9.2.2.3).
    InitialContextSetupFailure = UnsuccessfulOutcome InitialContextSetup InitialContextSetupFailure {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Sessions that were not set up: PDU Session Resource Setup Unsuccessful Transfers.
        lax failed: Vec<SessionTransfer> = PDUSessionResourceFailedToSetupListCxtFail,
        /// Why.
        lax cause: Cause = Cause,
        /// What was wrong with the request.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// UE CONTEXT RELEASE REQUEST (TS 38.413 9.2.2.4).
    UeContextReleaseRequest = InitiatingMessage UEContextReleaseRequest UEContextReleaseRequest {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Its sessions with an active user plane.
        opt sessions: Vec<u8> = PDUSessionResourceListCxtRelReq,
        /// Why.
        lax cause: Cause = Cause,
    }
}

message! {
    /// UE CONTEXT RELEASE COMMAND (TS 38.413 9.2.2.5).
    UeContextReleaseCommand = InitiatingMessage UEContextRelease UEContextReleaseCommand {
        /// Which UE.
        req ids: UeNgapIds = UE_NGAP_IDs,
        /// Why.
        req cause: Cause = Cause,
    }
}

message! {
    /// UE CONTEXT RELEASE COMPLETE (TS 38.413 9.2.2.6).
    UeContextReleaseComplete = SuccessfulOutcome UEContextRelease UEContextReleaseComplete {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Where it was.
        lax location: UserLocation = UserLocationInformation,
        /// Its sessions that had an active user plane.
        opt sessions: Vec<u8> = PDUSessionResourceListCxtRelCpl,
        /// What was wrong with the command and could be overlooked.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// UE CONTEXT MODIFICATION REQUEST (TS 38.413 9.2.2.7).
    UeContextModificationRequest = InitiatingMessage UEContextModification UEContextModificationRequest {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// A new K_gNB.
        opt security_key: [u8; 32] = SecurityKey,
        /// RAT/Frequency Selection Priority, 1 to 256.
        lax rfsp_index: u64 = IndexToRFSP,
        /// UE-AMBR.
        lax ue_ambr: Ambr = UEAggregateMaximumBitRate,
        /// Which algorithms the UE knows.
        opt security_capabilities: SecurityCapabilities = UESecurityCapabilities,
    }
}

message! {
    /// UE CONTEXT MODIFICATION RESPONSE (TS 38.413 9.2.2.8).
    UeContextModificationResponse = SuccessfulOutcome UEContextModification UEContextModificationResponse {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// What was wrong with the request and could be overlooked.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// UE CONTEXT MODIFICATION FAILURE (TS 38.413 9.2.2.9).
    UeContextModificationFailure = UnsuccessfulOutcome UEContextModification UEContextModificationFailure {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Why.
        lax cause: Cause = Cause,
        /// What was wrong with the request.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// UE RADIO CAPABILITY INFO INDICATION (TS 38.413 9.2.13.1).
    UeRadioCapabilityInfoIndication = InitiatingMessage UERadioCapabilityInfoIndication UERadioCapabilityInfoIndication {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// The capabilities, for the next gNB to read.
        lax ue_radio_capability: Vec<u8> = UERadioCapability,
    }
}
