//! Interface management: NG Setup, configuration updates, reset, error indication, overload
//! (TS 38.413 8.7, 9.2.6).

use crate::error::{Diagnostics, NgapError};
use crate::macros::message;
use crate::mobility::SonTransfer;
use crate::tnla::{
    AmfTnlaToAdd, AmfTnlaToRemove, AmfTnlaToUpdate, CpTransportLayer, FailedTnla, RanTnlAssociation,
};
use crate::types::{Cause, GlobalRanNodeId, NgConnection, ResetScope, SupportedTa};
use oxirush_ngap::ngap::{self as wire, NGAPPDU, PagingDRX, TimeToWait, UERetentionInformation};
use pith_types::{AmfUeNgapId, FiveGSTmsi, Guami, Plmn, RanUeNgapId, Snssai};

message! {
    /// NG SETUP REQUEST (TS 38.413 9.2.6.1).
    NgSetupRequest = InitiatingMessage NGSetup NGSetupRequest {
        /// The node's identity.
        req global_ran_node_id: GlobalRanNodeId = GlobalRANNodeID,
        /// The node's name.
        lax ran_node_name: String = RANNodeName,
        /// Tracking areas that it serves.
        req supported_tas: Vec<SupportedTa> = SupportedTAList,
        /// Default paging DRX of its UEs.
        lax default_paging_drx: PagingDRX = DefaultPagingDRX,
        /// The node has kept its UE contexts and signalling connections, and proposes to retain them (TS 38.413 8.7.1.2).
        lax ue_retention: UERetentionInformation = UERetentionInformation,
    }
}

message! {
    /// NG SETUP RESPONSE (TS 38.413 9.2.6.2).
    NgSetupResponse = SuccessfulOutcome NGSetup NGSetupResponse {
        /// The AMF's name.
        req amf_name: String = AMFName,
        /// Its identities.
        req served_guamis: Vec<Guami> = ServedGUAMIList,
        /// Its share of new UEs, 0 to 255, relative to other AMFs of its set.
        req relative_amf_capacity: u8 = RelativeAMFCapacity,
        /// Networks that it serves, each with its slices.
        req plmn_support: Vec<(Plmn, Vec<Snssai>)> = PLMNSupportList,
        /// Errors in the request that its criticality permits to ignore.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
        /// The AMF accepts to retain the node's UE contexts and signalling connections (TS 38.413 8.7.1.2).
        lax ue_retention: UERetentionInformation = UERetentionInformation,
    }
}

message! {
    /// NG SETUP FAILURE (TS 38.413 9.2.6.3).
    NgSetupFailure = UnsuccessfulOutcome NGSetup NGSetupFailure {
        req cause: Cause = Cause,
        /// Time before the gNB may retry.
        lax time_to_wait: TimeToWait = TimeToWait,
        /// Errors in the request.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// RAN CONFIGURATION UPDATE (TS 38.413 9.2.6.4).
    RanConfigurationUpdate = InitiatingMessage RANConfigurationUpdate RANConfigurationUpdate {
        /// The node's new name.
        lax ran_node_name: String = RANNodeName,
        /// Tracking areas that it serves now.
        opt supported_tas: Vec<SupportedTa> = SupportedTAList,
        /// Default paging DRX of its UEs.
        lax default_paging_drx: PagingDRX = DefaultPagingDRX,
        /// The node to whose NG-C interface instance the association belongs (TS 38.413 8.7.2.2).
        lax global_ran_node_id: GlobalRanNodeId = GlobalRANNodeID,
        /// Associations that the AMF is to remove.
        opt tnla_to_remove: Vec<RanTnlAssociation> = NGRAN_TNLAssociationToRemoveList,
    }
}

message! {
    /// RAN CONFIGURATION UPDATE ACKNOWLEDGE (TS 38.413 9.2.6.5).
    RanConfigurationUpdateAcknowledge = SuccessfulOutcome RANConfigurationUpdate RANConfigurationUpdateAcknowledge {
        /// Errors in the update that its criticality permits to ignore.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// RAN CONFIGURATION UPDATE FAILURE (TS 38.413 9.2.6.6).
    RanConfigurationUpdateFailure = UnsuccessfulOutcome RANConfigurationUpdate RANConfigurationUpdateFailure {
        req cause: Cause = Cause,
        /// Time before the gNB may retry.
        lax time_to_wait: TimeToWait = TimeToWait,
        /// Errors in the update.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// AMF CONFIGURATION UPDATE (TS 38.413 9.2.6.7).
    AmfConfigurationUpdate = InitiatingMessage AMFConfigurationUpdate AMFConfigurationUpdate {
        /// The AMF's new name.
        opt amf_name: String = AMFName,
        /// Its identities now.
        opt served_guamis: Vec<Guami> = ServedGUAMIList,
        /// Its share of new UEs, 0 to 255.
        lax relative_amf_capacity: u8 = RelativeAMFCapacity,
        /// Networks that it serves now, each with its slices.
        opt plmn_support: Vec<(Plmn, Vec<Snssai>)> = PLMNSupportList,
        /// Endpoints to which the gNB is to set up associations.
        lax tnla_to_add: Vec<AmfTnlaToAdd> = AMF_TNLAssociationToAddList,
        /// Endpoints with which it is to have none.
        lax tnla_to_remove: Vec<AmfTnlaToRemove> = AMF_TNLAssociationToRemoveList,
        /// Endpoints with another usage or weight.
        lax tnla_to_update: Vec<AmfTnlaToUpdate> = AMF_TNLAssociationToUpdateList,
    }
}

message! {
    /// AMF CONFIGURATION UPDATE ACKNOWLEDGE (TS 38.413 9.2.6.8).
    AmfConfigurationUpdateAcknowledge = SuccessfulOutcome AMFConfigurationUpdate AMFConfigurationUpdateAcknowledge {
        /// Endpoints to which the gNB has set up an association.
        lax tnla_set_up: Vec<CpTransportLayer> = AMF_TNLAssociationSetupList,
        /// Endpoints to which it has not.
        lax tnla_failed: Vec<FailedTnla> = AMF_TNLAssociationFailedToSetupList,
        /// Errors in the update that its criticality permits to ignore.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// AMF CONFIGURATION UPDATE FAILURE (TS 38.413 9.2.6.9).
    AmfConfigurationUpdateFailure = UnsuccessfulOutcome AMFConfigurationUpdate AMFConfigurationUpdateFailure {
        req cause: Cause = Cause,
        /// Time before the AMF may retry.
        lax time_to_wait: TimeToWait = TimeToWait,
        /// Errors in the update.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// NG RESET (TS 38.413 9.2.6.11).
    NgReset = InitiatingMessage NGReset NGReset {
        req cause: Cause = Cause,
        /// The whole interface, or some connections.
        req scope: ResetScope = ResetType,
    }
}

message! {
    /// NG RESET ACKNOWLEDGE (TS 38.413 9.2.6.12).
    NgResetAcknowledge = SuccessfulOutcome NGReset NGResetAcknowledge {
        /// The connections that a partial reset named, in its order.
        lax connections: Vec<NgConnection> = UEAssociatedLogicalNGConnectionList,
        /// Errors in the reset that its criticality permits to ignore.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
    }
}

message! {
    /// ERROR INDICATION (TS 38.413 9.2.6.13). It carries a cause or diagnostics, or both.
    ErrorIndication = InitiatingMessage ErrorIndication ErrorIndication {
        lax amf_ue_ngap_id: AmfUeNgapId = AMF_UE_NGAP_ID,
        lax ran_ue_ngap_id: RanUeNgapId = RAN_UE_NGAP_ID,
        lax cause: Cause = Cause,
        /// The errors.
        lax diagnostics: Diagnostics = CriticalityDiagnostics,
        /// The UE's 5G-S-TMSI.
        lax s_tmsi: FiveGSTmsi = FiveG_S_TMSI,
    }
}

message! {
    /// OVERLOAD START (TS 38.413 9.2.6.14).
    OverloadStart = InitiatingMessage OverloadStart OverloadStart {
        /// Percentage of signalling to be left out, 1 to 99.
        lax traffic_load_reduction: u8 = AMFTrafficLoadReductionIndication,
    }
}

/// OVERLOAD STOP (TS 38.413 9.2.6.15): it has no IE that is needed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverloadStop;

impl OverloadStop {
    pub(crate) fn read(_pdu: &NGAPPDU<'_>) -> Result<Self, NgapError> {
        Ok(Self)
    }

    /// The encoded PDU.
    pub fn encode(&self) -> Result<Vec<u8>, crate::EncodeError> {
        let message = wire::OverloadStop::new(wire::ProtocolIEContainer(Vec::new()));
        let pdu = NGAPPDU::of_message(&message, wire::Criticality::reject);
        let encoded = pdu.and_then(|pdu| pdu.encode());
        encoded.map_err(|error| crate::EncodeError { message: "OverloadStop", reason: error.to_string() })
    }
}

message! {
    /// AMF STATUS INDICATION (TS 38.413 9.2.6.10): identities of the AMF that go out of service.
    AmfStatusIndication = InitiatingMessage AMFStatusIndication AMFStatusIndication {
        /// The identities.
        req unavailable_guamis: Vec<Guami> = UnavailableGUAMIList,
    }
}

message! {
    /// UPLINK RAN CONFIGURATION TRANSFER (TS 38.413 9.2.7.1), between 5G RAN nodes.
    UplinkRanConfigurationTransfer = InitiatingMessage UplinkRANConfigurationTransfer UplinkRANConfigurationTransfer {
        /// For the node that it names.
        lax son: SonTransfer = SONConfigurationTransferUL,
    }
}

message! {
    /// DOWNLINK RAN CONFIGURATION TRANSFER (TS 38.413 9.2.7.2), between 5G RAN nodes.
    DownlinkRanConfigurationTransfer =
        InitiatingMessage DownlinkRANConfigurationTransfer DownlinkRANConfigurationTransfer {
        /// Of the node that it names.
        lax son: SonTransfer = SONConfigurationTransferDL,
    }
}
