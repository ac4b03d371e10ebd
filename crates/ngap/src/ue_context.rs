//! UE contexts in the gNB (TS 38.413 8.3, 9.2.2).

use crate::error::Diagnostics;
use crate::macros::message;
use crate::mobility::MobilityRestrictions;
use crate::trace::TraceActivation;
use crate::types::{Cause, SecurityCapabilities, SessionTransfer, SetupItem, UeNgapIds, UserLocation};
use oxirush_ngap::ngap::IMSVoiceSupportIndicator;
use pith_types::{Ambr, AmfUeNgapId, Guami, RanUeNgapId, Snssai};

message! {
    /// INITIAL CONTEXT SETUP REQUEST (TS 38.413 9.2.2.1).
    InitialContextSetupRequest = InitiatingMessage InitialContextSetup InitialContextSetupRequest {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// AMF Name of the AMF that redirected the UE to this one.
        opt old_amf: String = OldAMF,
        /// UE-AMBR; mandatory with sessions.
        opt ue_ambr: Ambr = UEAggregateMaximumBitRate,
        /// The serving AMF.
        req guami: Guami = GUAMI,
        /// Sessions to set up.
        opt sessions: Vec<SetupItem> = PDUSessionResourceSetupListCxtReq,
        /// Slices that the UE is allowed to use.
        req allowed_nssai: Vec<Snssai> = AllowedNSSAI,
        /// Algorithms that the UE supports.
        req security_capabilities: SecurityCapabilities = UESecurityCapabilities,
        /// K_gNB (TS 33.501 6.8.1.1).
        req security_key: [u8; 32] = SecurityKey,
        /// The trace to begin.
        lax trace: TraceActivation = TraceActivation,
        /// Mobility restrictions of the UE.
        lax mobility_restrictions: MobilityRestrictions = MobilityRestrictionList,
        /// The UE's radio capabilities, if the AMF has them.
        lax ue_radio_capability: Vec<u8> = UERadioCapability,
        /// RAT/Frequency Selection Priority, 1 to 256.
        lax rfsp_index: u64 = IndexToRFSP,
        /// IMEISV with the last four digits of the serial number masked.
        lax masked_imeisv: [u8; 8] = MaskedIMEISV,
        /// NAS message for the UE.
        lax nas_pdu: Vec<u8> = NAS_PDU,
    }
}

message! {
    /// INITIAL CONTEXT SETUP RESPONSE (TS 38.413 9.2.2.2).
    InitialContextSetupResponse = SuccessfulOutcome InitialContextSetup InitialContextSetupResponse {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Sessions that were set up: PDU Session Resource Setup Response Transfers.
        lax setup: Vec<SessionTransfer> = PDUSessionResourceSetupListCxtRes,
        /// Sessions that failed: PDU Session Resource Setup Unsuccessful Transfers.
        lax failed: Vec<SessionTransfer> = PDUSessionResourceFailedToSetupListCxtRes,
        /// Errors in the request that its criticality permits to ignore.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// INITIAL CONTEXT SETUP FAILURE (TS 38.413 9.2.2.3).
    InitialContextSetupFailure = UnsuccessfulOutcome InitialContextSetup InitialContextSetupFailure {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Sessions that were not set up: PDU Session Resource Setup Unsuccessful Transfers.
        lax failed: Vec<SessionTransfer> = PDUSessionResourceFailedToSetupListCxtFail,
        lax cause: Cause = Cause,
        /// Errors in the request.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// UE CONTEXT RELEASE REQUEST (TS 38.413 9.2.2.4).
    UeContextReleaseRequest = InitiatingMessage UEContextReleaseRequest UEContextReleaseRequest {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Its sessions with an active user plane.
        opt sessions: Vec<u8> = PDUSessionResourceListCxtRelReq,
        lax cause: Cause = Cause,
    }
}

message! {
    /// UE CONTEXT RELEASE COMMAND (TS 38.413 9.2.2.5).
    UeContextReleaseCommand = InitiatingMessage UEContextRelease UEContextReleaseCommand {
        req ids: UeNgapIds = UE_NGAP_IDs,
        req cause: Cause = Cause,
    }
}

message! {
    /// UE CONTEXT RELEASE COMPLETE (TS 38.413 9.2.2.6).
    UeContextReleaseComplete = SuccessfulOutcome UEContextRelease UEContextReleaseComplete {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        lax location: UserLocation = UserLocationInformation,
        /// Its sessions that had an active user plane.
        opt sessions: Vec<u8> = PDUSessionResourceListCxtRelCpl,
        /// Errors in the command that its criticality permits to ignore.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// UE CONTEXT MODIFICATION REQUEST (TS 38.413 9.2.2.7).
    UeContextModificationRequest = InitiatingMessage UEContextModification UEContextModificationRequest {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// A new K_gNB.
        opt security_key: [u8; 32] = SecurityKey,
        /// RAT/Frequency Selection Priority, 1 to 256.
        lax rfsp_index: u64 = IndexToRFSP,
        lax ue_ambr: Ambr = UEAggregateMaximumBitRate,
        /// Algorithms that the UE supports.
        opt security_capabilities: SecurityCapabilities = UESecurityCapabilities,
    }
}

message! {
    /// UE CONTEXT MODIFICATION RESPONSE (TS 38.413 9.2.2.8).
    UeContextModificationResponse = SuccessfulOutcome UEContextModification UEContextModificationResponse {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Errors in the request that its criticality permits to ignore.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// UE CONTEXT MODIFICATION FAILURE (TS 38.413 9.2.2.9).
    UeContextModificationFailure = UnsuccessfulOutcome UEContextModification UEContextModificationFailure {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        lax cause: Cause = Cause,
        /// Errors in the request.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// UE RADIO CAPABILITY INFO INDICATION (TS 38.413 9.2.13.1).
    UeRadioCapabilityInfoIndication = InitiatingMessage UERadioCapabilityInfoIndication UERadioCapabilityInfoIndication {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// The capabilities, transparent to the AMF.
        lax ue_radio_capability: Vec<u8> = UERadioCapability,
    }
}

message! {
    /// UE RADIO CAPABILITY CHECK REQUEST (TS 38.413 9.2.13.2): do the UE's radio capabilities suffice for IMS voice?
    UeRadioCapabilityCheckRequest = InitiatingMessage UERadioCapabilityCheck UERadioCapabilityCheckRequest {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// The capabilities, if the AMF has them.
        lax ue_radio_capability: Vec<u8> = UERadioCapability,
    }
}

message! {
    /// UE RADIO CAPABILITY CHECK RESPONSE (TS 38.413 9.2.13.3).
    UeRadioCapabilityCheckResponse = SuccessfulOutcome UERadioCapabilityCheck UERadioCapabilityCheckResponse {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Whether they suffice.
        req ims_voice_support: IMSVoiceSupportIndicator = IMSVoiceSupportIndicator,
        /// Errors in the request that its criticality permits to ignore.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// UE TNLA BINDING RELEASE REQUEST (TS 38.413 9.2.12.1): the UE is bound to no TNL association until its next message.
    UeTnlaBindingReleaseRequest = InitiatingMessage UETNLABindingRelease UETNLABindingReleaseRequest {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
    }
}
