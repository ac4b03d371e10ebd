//! Path switch after a handover between gNBs (TS 38.413 8.4.4, 9.2.3.8 to 9.2.3.10).

use crate::error::Diagnostics;
use crate::macros::message;
use crate::mobility::NextHop;
use crate::types::{SecurityCapabilities, SessionTransfer, UserLocation};
use oxirush_ngap::ngap::NGAPPDU;
use pith_types::{AmfUeNgapId, RanUeNgapId, Snssai};

message! {
    /// PATH SWITCH REQUEST (TS 38.413 9.2.3.8), from the target gNB.
    PathSwitchRequest = InitiatingMessage PathSwitchRequest PathSwitchRequest {
        /// Assigned by the target gNB.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Assigned by the AMF, for the source gNB.
        req source_amf_ue_ngap_id: AmfUeNgapId = SourceAMF_UE_NGAP_ID,
        lax location: UserLocation = UserLocationInformation,
        /// The UE's algorithms, as known by the source gNB.
        lax security_capabilities: SecurityCapabilities = UESecurityCapabilities,
        /// Sessions to be switched: Path Switch Request Transfers.
        req sessions: Vec<SessionTransfer> = PDUSessionResourceToBeSwitchedDLList,
        /// Sessions that failed: Path Switch Request Setup Failed Transfers.
        lax failed: Vec<SessionTransfer> = PDUSessionResourceFailedToSetupListPSReq,
    }
}

impl PathSwitchRequest {
    /// The request of a PDU that is to be refused for its other IEs. `None` if its ids or its list of sessions can't be decoded.
    pub fn decode_despite_errors(octets: &[u8]) -> Option<Self> {
        Self::read(&NGAPPDU::decode_borrowed(octets).ok()?).ok()
    }
}

message! {
    /// PATH SWITCH REQUEST ACKNOWLEDGE (TS 38.413 9.2.3.9), to the target gNB.
    PathSwitchRequestAcknowledge = SuccessfulOutcome PathSwitchRequest PathSwitchRequestAcknowledge {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// The UE's algorithms, if the gNB's information was wrong.
        opt security_capabilities: SecurityCapabilities = UESecurityCapabilities,
        /// NH and its counter.
        req security_context: NextHop = SecurityContext,
        /// K_AMF has changed.
        opt new_security_context: () = NewSecurityContextInd,
        /// Sessions that were switched: Path Switch Request Acknowledge Transfers.
        lax switched: Vec<SessionTransfer> = PDUSessionResourceSwitchedList,
        /// Sessions to release: Path Switch Request Unsuccessful Transfers.
        lax released: Vec<SessionTransfer> = PDUSessionResourceReleasedListPSAck,
        /// Slices that the UE is allowed to use.
        req allowed_nssai: Vec<Snssai> = AllowedNSSAI,
        /// Errors in the request that its criticality permits to ignore.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// PATH SWITCH REQUEST FAILURE (TS 38.413 9.2.3.10), to the target gNB.
    PathSwitchRequestFailure = UnsuccessfulOutcome PathSwitchRequest PathSwitchRequestFailure {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Sessions to release: Path Switch Request Unsuccessful Transfers.
        lax released: Vec<SessionTransfer> = PDUSessionResourceReleasedListPSFail,
        /// Errors in the request that its criticality permits to ignore.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}
