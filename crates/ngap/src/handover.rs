//! Handover through the AMF (TS 38.413 8.4.1 to 8.4.3, 8.4.5 to 8.4.7, 9.2.3).

use crate::error::Diagnostics;
use crate::macros::message;
use crate::mobility::{EarlyRanStatus, HandoverItem, MobilityRestrictions, NextHop, RanStatus, TargetId};
use crate::trace::TraceActivation;
use crate::types::{Cause, SecurityCapabilities, SessionTransfer, UserLocation};
use oxirush_ngap::ngap::HandoverType;
use pith_types::{Ambr, AmfUeNgapId, Guami, RanUeNgapId, Snssai};

message! {
    /// HANDOVER REQUIRED (TS 38.413 9.2.3.1), from the source gNB.
    HandoverRequired = InitiatingMessage HandoverPreparation HandoverRequired {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        req handover_type: HandoverType = HandoverType,
        lax cause: Cause = Cause,
        /// The target.
        req target: TargetId = TargetID,
        /// A direct path for data forwarding exists.
        lax direct_forwarding_path: () = DirectForwardingPathAvailability,
        /// Its sessions: Handover Required Transfers.
        req sessions: Vec<SessionTransfer> = PDUSessionResourceListHORqd,
        /// Transparent container between the gNBs.
        req source_to_target: Vec<u8> = SourceToTarget_TransparentContainer,
    }
}

message! {
    /// HANDOVER COMMAND (TS 38.413 9.2.3.2), to the source gNB.
    HandoverCommand = SuccessfulOutcome HandoverPreparation HandoverCommand {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        req handover_type: HandoverType = HandoverType,
        /// NAS security parameters for a handover to EPS.
        opt nas_security_parameters: Vec<u8> = NASSecurityParametersFromNGRAN,
        /// Sessions that are handed over: Handover Command Transfers.
        lax sessions: Vec<SessionTransfer> = PDUSessionResourceHandoverList,
        /// Sessions that are released: Handover Preparation Unsuccessful Transfers.
        lax to_release: Vec<SessionTransfer> = PDUSessionResourceToReleaseListHOCmd,
        /// Transparent container between the gNBs.
        req target_to_source: Vec<u8> = TargetToSource_TransparentContainer,
        /// Errors in the request that its criticality permits to ignore.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// HANDOVER PREPARATION FAILURE (TS 38.413 9.2.3.3), to the source gNB.
    HandoverPreparationFailure = UnsuccessfulOutcome HandoverPreparation HandoverPreparationFailure {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        lax cause: Cause = Cause,
        /// Errors in the request that its criticality permits to ignore.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// HANDOVER REQUEST (TS 38.413 9.2.3.4), to the target gNB.
    HandoverRequest = InitiatingMessage HandoverResourceAllocation HandoverRequest {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req handover_type: HandoverType = HandoverType,
        lax cause: Cause = Cause,
        req ue_ambr: Ambr = UEAggregateMaximumBitRate,
        /// Algorithms that the UE supports.
        req security_capabilities: SecurityCapabilities = UESecurityCapabilities,
        /// NH and its counter.
        req security_context: NextHop = SecurityContext,
        /// K_AMF has changed.
        opt new_security_context: () = NewSecurityContextInd,
        /// NAS container of an N2 handover, for the UE (TS 24.501 9.11.2.6).
        opt nas_container: Vec<u8> = NASC,
        /// Its sessions: PDU Session Resource Setup Request Transfers.
        req sessions: Vec<HandoverItem> = PDUSessionResourceSetupListHOReq,
        /// Slices that the UE is allowed to use.
        req allowed_nssai: Vec<Snssai> = AllowedNSSAI,
        /// The trace to begin.
        lax trace: TraceActivation = TraceActivation,
        /// IMEISV with the last four digits of the serial number masked.
        lax masked_imeisv: [u8; 8] = MaskedIMEISV,
        /// Transparent container between the gNBs.
        req source_to_target: Vec<u8> = SourceToTarget_TransparentContainer,
        /// Mobility restrictions of the UE.
        lax mobility_restrictions: MobilityRestrictions = MobilityRestrictionList,
        /// The serving AMF.
        req guami: Guami = GUAMI,
    }
}

message! {
    /// HANDOVER REQUEST ACKNOWLEDGE (TS 38.413 9.2.3.5), from the target gNB.
    HandoverRequestAcknowledge = SuccessfulOutcome HandoverResourceAllocation HandoverRequestAcknowledge {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Sessions that were set up: Handover Request Acknowledge Transfers.
        lax admitted: Vec<SessionTransfer> = PDUSessionResourceAdmittedList,
        /// Sessions that failed: Handover Resource Allocation Unsuccessful Transfers.
        lax failed: Vec<SessionTransfer> = PDUSessionResourceFailedToSetupListHOAck,
        /// Transparent container between the gNBs.
        req target_to_source: Vec<u8> = TargetToSource_TransparentContainer,
        /// Errors in the request that its criticality permits to ignore.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// HANDOVER FAILURE (TS 38.413 9.2.3.6), from the target gNB.
    HandoverFailure = UnsuccessfulOutcome HandoverResourceAllocation HandoverFailure {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        lax cause: Cause = Cause,
        /// Errors in the request that its criticality permits to ignore.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// HANDOVER NOTIFY (TS 38.413 9.2.3.7): the UE has arrived at the target gNB.
    HandoverNotify = InitiatingMessage HandoverNotification HandoverNotify {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        lax location: UserLocation = UserLocationInformation,
    }
}

message! {
    /// HANDOVER CANCEL (TS 38.413 9.2.3.11), from the source gNB.
    HandoverCancel = InitiatingMessage HandoverCancel HandoverCancel {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        lax cause: Cause = Cause,
    }
}

message! {
    /// HANDOVER CANCEL ACKNOWLEDGE (TS 38.413 9.2.3.12), to the source gNB.
    HandoverCancelAcknowledge = SuccessfulOutcome HandoverCancel HandoverCancelAcknowledge {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Errors in the request that its criticality permits to ignore.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// UPLINK RAN STATUS TRANSFER (TS 38.413 9.2.3.13), from the source gNB.
    UplinkRanStatusTransfer = InitiatingMessage UplinkRANStatusTransfer UplinkRANStatusTransfer {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// PDCP counts of its radio bearers, for the target gNB.
        req status: RanStatus = RANStatusTransfer_TransparentContainer,
    }
}

message! {
    /// DOWNLINK RAN STATUS TRANSFER (TS 38.413 9.2.3.14), to the target gNB.
    DownlinkRanStatusTransfer = InitiatingMessage DownlinkRANStatusTransfer DownlinkRANStatusTransfer {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// PDCP counts of its radio bearers, from the source gNB.
        req status: RanStatus = RANStatusTransfer_TransparentContainer,
    }
}

message! {
    /// UPLINK RAN EARLY STATUS TRANSFER (TS 38.413 9.2.3.16), from the source gNB of a DAPS handover.
    UplinkRanEarlyStatusTransfer = InitiatingMessage UplinkRANEarlyStatusTransfer UplinkRANEarlyStatusTransfer {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// First PDCP counts of its radio bearers, for the target gNB.
        req status: EarlyRanStatus = EarlyStatusTransfer_TransparentContainer,
    }
}

message! {
    /// DOWNLINK RAN EARLY STATUS TRANSFER (TS 38.413 9.2.3.17), to the target gNB of a DAPS handover.
    DownlinkRanEarlyStatusTransfer = InitiatingMessage DownlinkRANEarlyStatusTransfer DownlinkRANEarlyStatusTransfer {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// First PDCP counts of its radio bearers, from the source gNB.
        req status: EarlyRanStatus = EarlyStatusTransfer_TransparentContainer,
    }
}
