//! Transport of NAS messages (TS 38.413 8.6, 9.2.5).

use crate::macros::message;
use crate::mobility::MobilityRestrictions;
use crate::types::{Cause, UserLocation};
use oxirush_ngap::ngap::RRCEstablishmentCause;
use pith_types::{Ambr, AmfUeNgapId, FiveGSTmsi, RanUeNgapId, Snssai};

/// What the NSSF told the initial AMF, for the AMF that is to serve the UE (Source to Target AMF Information Reroute, TS 38.413 9.3.3.27).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AmfInformationReroute {
    /// Slices that the NSSF configures, at most 16.
    pub configured: Vec<Snssai>,
    /// Requested slices that the network does not have, at most 8.
    pub rejected_in_plmn: Vec<Snssai>,
    /// Requested slices that the tracking area does not have, at most 8.
    pub rejected_in_ta: Vec<Snssai>,
}

message! {
    /// INITIAL UE MESSAGE (TS 38.413 9.2.5.1).
    InitialUeMessage = InitiatingMessage InitialUEMessage InitialUEMessage {
        /// Assigned by the gNB.
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// The UE's first NAS message.
        req nas_pdu: Vec<u8> = NAS_PDU,
        req location: UserLocation = UserLocationInformation,
        /// The RRC establishment cause.
        lax establishment_cause: RRCEstablishmentCause = RRCEstablishmentCause,
        /// The UE's 5G-S-TMSI in RRC, if it sent one.
        opt s_tmsi: FiveGSTmsi = FiveG_S_TMSI,
        /// The AMF set that another AMF selected: the message was rerouted.
        lax amf_set_id: u16 = AMFSetID,
        /// The gNB requests a UE context.
        lax ue_context_request: () = UEContextRequest,
        /// Slices that another AMF allowed, after a reroute.
        opt allowed_nssai: Vec<Snssai> = AllowedNSSAI,
        /// What the NSSF told that AMF.
        lax reroute: AmfInformationReroute = SourceToTarget_AMFInformationReroute,
    }
}

message! {
    /// DOWNLINK NAS TRANSPORT (TS 38.413 9.2.5.2).
    DownlinkNasTransport = InitiatingMessage DownlinkNASTransport DownlinkNASTransport {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// AMF Name of the AMF that redirected the UE to this one.
        opt old_amf: String = OldAMF,
        /// NAS message for the UE.
        req nas_pdu: Vec<u8> = NAS_PDU,
        /// Mobility restrictions of the UE.
        lax mobility_restrictions: MobilityRestrictions = MobilityRestrictionList,
        lax ue_ambr: Ambr = UEAggregateMaximumBitRate,
        /// Slices that the UE is allowed to use.
        opt allowed_nssai: Vec<Snssai> = AllowedNSSAI,
    }
}

message! {
    /// UPLINK NAS TRANSPORT (TS 38.413 9.2.5.3).
    UplinkNasTransport = InitiatingMessage UplinkNASTransport UplinkNASTransport {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// NAS message from the UE.
        req nas_pdu: Vec<u8> = NAS_PDU,
        lax location: UserLocation = UserLocationInformation,
    }
}

message! {
    /// NAS NON DELIVERY INDICATION (TS 38.413 9.2.5.4).
    NasNonDeliveryIndication = InitiatingMessage NASNonDeliveryIndication NASNonDeliveryIndication {
        req amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        /// The undelivered NAS message.
        lax nas_pdu: Vec<u8> = NAS_PDU,
        lax cause: Cause = Cause,
    }
}

message! {
    /// REROUTE NAS REQUEST (TS 38.413 9.2.5.5): another AMF shall serve the UE.
    RerouteNasRequest = InitiatingMessage RerouteNASRequest RerouteNASRequest {
        req ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        lax amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        /// The INITIAL UE MESSAGE as received.
        req ngap_message: Vec<u8> = NGAP_Message,
        /// The AMF set to select from.
        req amf_set_id: u16 = AMFSetID,
        /// Slices that the UE is allowed to use.
        opt allowed_nssai: Vec<Snssai> = AllowedNSSAI,
        /// What else the NSSF told.
        lax reroute: AmfInformationReroute = SourceToTarget_AMFInformationReroute,
    }
}
