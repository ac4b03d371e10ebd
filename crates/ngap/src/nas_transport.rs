//! Transport of NAS messages (TS 38.413 8.6, 9.2.5).

use crate::macros::message;
use crate::types::{Cause, UserLocation};
use oxirush_ngap::ngap::RRCEstablishmentCause;
use pith_types::{Ambr, AmfUeNgapId, FiveGSTmsi, RanUeNgapId, Snssai};

message! {
    /// INITIAL UE MESSAGE (TS 38.413 9.2.5.1).
    InitialUeMessage = InitiatingMessage InitialUEMessage InitialUEMessage {
        /// The UE, as the gNB numbers it from now on.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// The UE's first NAS message.
        req nas_pdu: Vec<u8> = NAS_PDU,
        /// Where it is.
        req location: UserLocation = UserLocationInformation,
        /// What it connected for.
        lax establishment_cause: RRCEstablishmentCause = RRCEstablishmentCause,
        /// The UE, as it named itself to the gNB.
        opt s_tmsi: FiveGSTmsi = FiveG_S_TMSI,
        /// The gNB wants a UE context with security.
        lax ue_context_request: () = UEContextRequest,
        /// Slices that another AMF allowed, after a reroute.
        opt allowed_nssai: Vec<Snssai> = AllowedNSSAI,
    }
}

message! {
    /// DOWNLINK NAS TRANSPORT (TS 38.413 9.2.5.2).
    DownlinkNasTransport = InitiatingMessage DownlinkNASTransport DownlinkNASTransport {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// For the UE.
        req nas_pdu: Vec<u8> = NAS_PDU,
        /// UE-AMBR.
        lax ue_ambr: Ambr = UEAggregateMaximumBitRate,
        /// Slices that the UE may use.
        opt allowed_nssai: Vec<Snssai> = AllowedNSSAI,
    }
}

message! {
    /// UPLINK NAS TRANSPORT (TS 38.413 9.2.5.3).
    UplinkNasTransport = InitiatingMessage UplinkNASTransport UplinkNASTransport {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// From the UE.
        req nas_pdu: Vec<u8> = NAS_PDU,
        /// Where it is.
        lax location: UserLocation = UserLocationInformation,
    }
}

message! {
    /// NAS NON DELIVERY INDICATION (TS 38.413 9.2.5.4).
    NasNonDeliveryIndication = InitiatingMessage NASNonDeliveryIndication NASNonDeliveryIndication {
        /// The UE, as the AMF numbered it.
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// What could not be delivered.
        lax nas_pdu: Vec<u8> = NAS_PDU,
        /// Why.
        lax cause: Cause = Cause,
    }
}

message! {
    /// REROUTE NAS REQUEST (TS 38.413 9.2.5.5): another AMF shall serve the UE.
    RerouteNasRequest = InitiatingMessage RerouteNASRequest RerouteNASRequest {
        /// The UE, as the gNB numbered it.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// The UE, as the AMF numbered it.
        lax amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The INITIAL UE MESSAGE as it came.
        req ngap_message: Vec<u8> = NGAP_Message,
        /// Which AMFs.
        req amf_set_id: u16 = AMFSetID,
        /// Slices that the UE may use.
        opt allowed_nssai: Vec<Snssai> = AllowedNSSAI,
    }
}
