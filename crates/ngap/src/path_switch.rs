//! Path switch after a handover between gNBs (TS 38.413 8.4.4, 9.2.3.8 to 9.2.3.10).

use crate::error::Diagnostics;
use crate::macros::message;
use crate::mobility::NextHop;
use crate::types::{SecurityCapabilities, SessionTransfer, UserLocation};
use pith_types::{AmfUeNgapId, RanUeNgapId, Snssai};

message! {
    /// PATH SWITCH REQUEST (TS 38.413 9.2.3.8), from the target gNB.
    PathSwitchRequest = InitiatingMessage PathSwitchRequest PathSwitchRequest {
        /// The UE, as the target gNB numbers it from now on.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// The UE, as the AMF numbered it for the source gNB.
        req source_amf_ue_ngap_id: AmfUeNgapId = SourceAMF_UE_NGAP_ID,
        /// Where it is.
        lax location: UserLocation = UserLocationInformation,
        /// Which algorithms the UE knows, as the source gNB had it.
        lax security_capabilities: SecurityCapabilities = UESecurityCapabilities,
        /// Sessions that go on: Path Switch Request Transfers.
        req sessions: Vec<SessionTransfer> = PDUSessionResourceToBeSwitchedDLList,
        /// Sessions that do not: Path Switch Request Setup Failed Transfers.
        lax failed: Vec<SessionTransfer> = PDUSessionResourceFailedToSetupListPSReq,
    }
}

message! {
    /// PATH SWITCH REQUEST ACKNOWLEDGE (TS 38.413 9.2.3.9), to the target gNB.
    PathSwitchRequestAcknowledge = SuccessfulOutcome PathSwitchRequest PathSwitchRequestAcknowledge {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Which algorithms the UE knows, if the gNB had it wrong.
        opt security_capabilities: SecurityCapabilities = UESecurityCapabilities,
        /// NH and its counter.
        req security_context: NextHop = SecurityContext,
        /// K_AMF has changed.
        opt new_security_context: () = NewSecurityContextInd,
        /// Sessions that were switched: Path Switch Request Acknowledge Transfers.
        lax switched: Vec<SessionTransfer> = PDUSessionResourceSwitchedList,
        /// Sessions to release: Path Switch Request Unsuccessful Transfers.
        lax released: Vec<SessionTransfer> = PDUSessionResourceReleasedListPSAck,
        /// Slices that the UE may use.
        req allowed_nssai: Vec<Snssai> = AllowedNSSAI,
        /// What was wrong with the request and could be overlooked.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// PATH SWITCH REQUEST FAILURE (TS 38.413 9.2.3.10), to the target gNB.
    PathSwitchRequestFailure = UnsuccessfulOutcome PathSwitchRequest PathSwitchRequestFailure {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// Sessions to release: Path Switch Request Unsuccessful Transfers.
        lax released: Vec<SessionTransfer> = PDUSessionResourceReleasedListPSFail,
        /// What was wrong with the request and could be overlooked.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}
