//! NGAP (TS 38.413) behind a facade: a struct a message, with the types of [`pith_types`].
//!
//! [`peek`] reads just the ids that tell whose a PDU is; [`Message::decode`] reads it whole, and
//! where it can't, says what TS 38.413 clause 10 has the receiver answer. The codec underneath
//! is `oxirush-ngap`; nothing of it but its enumerations shows here, so that it stays replaceable.

mod convert;
mod error;
mod interface;
mod macros;
mod message;
mod nas_transport;
mod paging;
mod pdu_session;
mod peek;
pub mod transfer;
mod types;
mod ue_context;

pub use error::{Diagnostics, NgapError};
pub use interface::{
    AmfConfigurationUpdate, AmfConfigurationUpdateAcknowledge, AmfConfigurationUpdateFailure,
    ErrorIndication, NgReset, NgResetAcknowledge, NgSetupFailure, NgSetupRequest, NgSetupResponse,
    OverloadStart, OverloadStop, RanConfigurationUpdate, RanConfigurationUpdateAcknowledge,
    RanConfigurationUpdateFailure,
};
pub use message::{Class, Message, Other, unknown_procedure};
pub use nas_transport::{
    DownlinkNasTransport, InitialUeMessage, NasNonDeliveryIndication, UplinkNasTransport,
};
pub use oxirush_ngap::ngap::{
    CauseMisc, CauseNas, CauseProtocol, CauseRadioNetwork, CauseTransport, PagingDRX as PagingDrx,
    RRCEstablishmentCause as RrcEstablishmentCause, TimeToWait,
};
pub use paging::Paging;
pub use pdu_session::{
    PduSessionResourceModifyRequest, PduSessionResourceModifyResponse, PduSessionResourceNotify,
    PduSessionResourceReleaseCommand, PduSessionResourceReleaseResponse, PduSessionResourceSetupRequest,
    PduSessionResourceSetupResponse,
};
pub use peek::{Peek, peek};
pub use types::{
    Cause, GlobalRanNodeId, ModifyItem, NgConnection, ResetScope, SecurityCapabilities, SessionTransfer,
    SetupItem, SupportedTa, UeNgapIds, UserLocation,
};
pub use ue_context::{
    InitialContextSetupFailure, InitialContextSetupRequest, InitialContextSetupResponse,
    UeContextModificationFailure, UeContextModificationRequest, UeContextModificationResponse,
    UeContextReleaseCommand, UeContextReleaseComplete, UeContextReleaseRequest,
    UeRadioCapabilityInfoIndication,
};
