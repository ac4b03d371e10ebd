//! NGAP (TS 38.413) behind a facade: a struct a message, with the types of [`pith_types`].
//!
//! [`peek`] reads only the ids that identify a PDU's UE; [`Message::decode`] decodes the whole PDU, and
//! returns on error the answer that TS 38.413 clause 10 requires. The codec is `oxirush-ngap`; of its types
//! only enumerations are public here, so that it can be replaced.

mod convert;
mod error;
mod handover;
mod interface;
mod location;
mod macros;
mod message;
mod mobility;
mod nas_transport;
mod notice;
mod paging;
mod path_switch;
mod pdu_session;
mod peek;
mod tnla;
mod trace;
pub mod transfer;
mod types;
mod ue_context;

pub use error::{Diagnostics, EncodeError, NgapError};
pub use handover::{
    DownlinkRanEarlyStatusTransfer, DownlinkRanStatusTransfer, HandoverCancel, HandoverCancelAcknowledge,
    HandoverCommand, HandoverFailure, HandoverNotify, HandoverPreparationFailure, HandoverRequest,
    HandoverRequestAcknowledge, HandoverRequired, UplinkRanEarlyStatusTransfer, UplinkRanStatusTransfer,
};
pub use interface::{
    AmfConfigurationUpdate, AmfConfigurationUpdateAcknowledge, AmfConfigurationUpdateFailure,
    AmfStatusIndication, DownlinkRanConfigurationTransfer, ErrorIndication, NgReset, NgResetAcknowledge,
    NgSetupFailure, NgSetupRequest, NgSetupResponse, OverloadStart, OverloadStop, RanConfigurationUpdate,
    RanConfigurationUpdateAcknowledge, RanConfigurationUpdateFailure, UplinkRanConfigurationTransfer,
};
pub use location::{
    LocationReport, LocationReportingControl, LocationReportingFailureIndication,
    RrcInactiveTransitionReport, SecondaryRatDataUsageReport,
};
pub use message::{Class, Message, Other, unknown_procedure};
pub use mobility::{
    EarlyRanStatus, HandoverItem, LocationRequest, MobilityRestrictions, NextHop, RanStatus, ServiceArea,
    SonTransfer, TargetId,
};
pub use nas_transport::{
    AmfInformationReroute, DownlinkNasTransport, InitialUeMessage, NasNonDeliveryIndication,
    RerouteNasRequest, UplinkNasTransport,
};
pub use notice::Notice;
pub use oxirush_ngap::ngap::{
    CauseMisc, CauseNas, CauseProtocol, CauseRadioNetwork, CauseTransport, EventType as LocationEvent,
    HandoverFlag, HandoverType, IMSVoiceSupportIndicator as ImsVoiceSupport,
    NRPagingEDRXCycle as NrPagingEdrxCycle, NRPagingTimeWindow as NrPagingTimeWindow, PagingDRX as PagingDrx,
    PagingPriority, PrivacyIndicator, RRCEstablishmentCause as RrcEstablishmentCause, RRCState as RrcState,
    TNLAssociationUsage as TnlAssociationUsage, TimeToWait, TraceDepth,
    UERetentionInformation as UeRetentionInformation,
};
pub use paging::{NrPagingEdrx, Paging};
pub use path_switch::{PathSwitchRequest, PathSwitchRequestAcknowledge, PathSwitchRequestFailure};
pub use pdu_session::{
    PduSessionResourceModifyConfirm, PduSessionResourceModifyIndication, PduSessionResourceModifyRequest,
    PduSessionResourceModifyResponse, PduSessionResourceNotify, PduSessionResourceReleaseCommand,
    PduSessionResourceReleaseResponse, PduSessionResourceSetupRequest, PduSessionResourceSetupResponse,
};
pub use peek::{Peek, is_error_indication, peek};
pub use tnla::{
    AmfTnlaToAdd, AmfTnlaToRemove, AmfTnlaToUpdate, CpTransportLayer, FailedTnla, NGAP_PORT,
    RanTnlAssociation,
};
pub use trace::{
    CellTrafficTrace, CollectionEntity, DeactivateTrace, NgRanTraceId, NrCgi, TraceActivation,
    TraceFailureIndication, TraceStart, TracedInterfaces,
};
pub use types::{
    Cause, GlobalRanNodeId, ModifyItem, NgConnection, ResetScope, SecurityCapabilities, SessionTransfer,
    SetupItem, SupportedTa, UeNgapIds, UserLocation, is_amf_name,
};
pub use ue_context::{
    InitialContextSetupFailure, InitialContextSetupRequest, InitialContextSetupResponse,
    UeContextModificationFailure, UeContextModificationRequest, UeContextModificationResponse,
    UeContextReleaseCommand, UeContextReleaseComplete, UeContextReleaseRequest,
    UeRadioCapabilityCheckRequest, UeRadioCapabilityCheckResponse, UeRadioCapabilityInfoIndication,
    UeTnlaBindingReleaseRequest,
};
