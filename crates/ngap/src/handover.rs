//! Handover through the AMF (TS 38.413 8.4.1 to 8.4.3, 8.4.5 to 8.4.7, 9.2.3).

use crate::error::Diagnostics;
use crate::macros::message;
use crate::mobility::{HandoverItem, MobilityRestrictions, NextHop, RanStatus, TargetId};
use crate::types::{Cause, SecurityCapabilities, SessionTransfer, UserLocation};
use oxirush_ngap::ngap::HandoverType;
use pith_types::{Ambr, AmfUeNgapId, Guami, RanUeNgapId, Snssai};

message! {
    /// HANDOVER REQUIRED (TS 38.413 9.2.3.1), from the source gNB.
    HandoverRequired = InitiatingMessage HandoverPreparation HandoverRequired {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// From which system to which.
        req handover_type: HandoverType = HandoverType,
        /// Why.
        lax cause: Cause = Cause,
        /// Where to.
        req target: TargetId = TargetID,
        /// Data can go from gNB to gNB.
        lax direct_forwarding_path: () = DirectForwardingPathAvailability,
        /// Its sessions: Handover Required Transfers.
        req sessions: Vec<SessionTransfer> = PDUSessionResourceListHORqd,
        /// From gNB to gNB.
        req source_to_target: Vec<u8> = SourceToTarget_TransparentContainer,
    }
}

message! {
    /// HANDOVER COMMAND (TS 38.413 9.2.3.2), to the source gNB.
    HandoverCommand = SuccessfulOutcome HandoverPreparation HandoverCommand {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// From which system to which.
        req handover_type: HandoverType = HandoverType,
        /// NAS security parameters for a handover to EPS.
        opt nas_security_parameters: Vec<u8> = NASSecurityParametersFromNGRAN,
        /// Sessions that move: Handover Command Transfers.
        lax sessions: Vec<SessionTransfer> = PDUSessionResourceHandoverList,
        /// Sessions that do not: Handover Preparation Unsuccessful Transfers.
        lax to_release: Vec<SessionTransfer> = PDUSessionResourceToReleaseListHOCmd,
        /// From gNB to gNB.
        req target_to_source: Vec<u8> = TargetToSource_TransparentContainer,
        /// What was wrong with the request and could be overlooked.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// HANDOVER PREPARATION FAILURE (TS 38.413 9.2.3.3), to the source gNB.
    HandoverPreparationFailure = UnsuccessfulOutcome HandoverPreparation HandoverPreparationFailure {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Why.
        lax cause: Cause = Cause,
        /// What was wrong with the request and could be overlooked.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// HANDOVER REQUEST (TS 38.413 9.2.3.4), to the target gNB.
    HandoverRequest = InitiatingMessage HandoverResourceAllocation HandoverRequest {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// From which system to which.
        req handover_type: HandoverType = HandoverType,
        /// Why.
        lax cause: Cause = Cause,
        /// UE-AMBR.
        req ue_ambr: Ambr = UEAggregateMaximumBitRate,
        /// Which algorithms the UE knows.
        req security_capabilities: SecurityCapabilities = UESecurityCapabilities,
        /// NH and its counter.
        req security_context: NextHop = SecurityContext,
        /// K_AMF has changed.
        opt new_security_context: () = NewSecurityContextInd,
        /// NAS container of an N2 handover, for the UE (TS 24.501 9.11.2.6).
        opt nas_container: Vec<u8> = NASC,
        /// Its sessions: PDU Session Resource Setup Request Transfers.
        req sessions: Vec<HandoverItem> = PDUSessionResourceSetupListHOReq,
        /// Slices that the UE may use.
        req allowed_nssai: Vec<Snssai> = AllowedNSSAI,
        /// IMEISV with the last four digits of the serial number masked.
        lax masked_imeisv: [u8; 8] = MaskedIMEISV,
        /// From gNB to gNB.
        req source_to_target: Vec<u8> = SourceToTarget_TransparentContainer,
        /// Where the UE may go.
        lax mobility_restrictions: MobilityRestrictions = MobilityRestrictionList,
        /// The AMF.
        req guami: Guami = GUAMI,
    }
}

message! {
    /// HANDOVER REQUEST ACKNOWLEDGE (TS 38.413 9.2.3.5), from the target gNB.
    HandoverRequestAcknowledge = SuccessfulOutcome HandoverResourceAllocation HandoverRequestAcknowledge {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Sessions that were set up: Handover Request Acknowledge Transfers.
        lax admitted: Vec<SessionTransfer> = PDUSessionResourceAdmittedList,
        /// Sessions that were not: Handover Resource Allocation Unsuccessful Transfers.
        lax failed: Vec<SessionTransfer> = PDUSessionResourceFailedToSetupListHOAck,
        /// From gNB to gNB.
        req target_to_source: Vec<u8> = TargetToSource_TransparentContainer,
        /// What was wrong with the request and could be overlooked.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// HANDOVER FAILURE (TS 38.413 9.2.3.6), from the target gNB.
    HandoverFailure = UnsuccessfulOutcome HandoverResourceAllocation HandoverFailure {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// Why.
        lax cause: Cause = Cause,
        /// What was wrong with the request and could be overlooked.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// HANDOVER NOTIFY (TS 38.413 9.2.3.7): the UE has arrived at the target gNB.
    HandoverNotify = InitiatingMessage HandoverNotification HandoverNotify {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Where it is.
        lax location: UserLocation = UserLocationInformation,
    }
}

message! {
    /// HANDOVER CANCEL (TS 38.413 9.2.3.11), from the source gNB.
    HandoverCancel = InitiatingMessage HandoverCancel HandoverCancel {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Why.
        lax cause: Cause = Cause,
    }
}

message! {
    /// HANDOVER CANCEL ACKNOWLEDGE (TS 38.413 9.2.3.12), to the source gNB.
    HandoverCancelAcknowledge = SuccessfulOutcome HandoverCancel HandoverCancelAcknowledge {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// What was wrong with the request and could be overlooked.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// UPLINK RAN STATUS TRANSFER (TS 38.413 9.2.3.13), from the source gNB.
    UplinkRanStatusTransfer = InitiatingMessage UplinkRANStatusTransfer UplinkRANStatusTransfer {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// PDCP counts of its radio bearers, for the target gNB.
        req status: RanStatus = RANStatusTransfer_TransparentContainer,
    }
}

message! {
    /// DOWNLINK RAN STATUS TRANSFER (TS 38.413 9.2.3.14), to the target gNB.
    DownlinkRanStatusTransfer = InitiatingMessage DownlinkRANStatusTransfer DownlinkRANStatusTransfer {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// PDCP counts of its radio bearers, from the source gNB.
        req status: RanStatus = RANStatusTransfer_TransparentContainer,
    }
}
