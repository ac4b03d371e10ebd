//! Any NGAP PDU, decoded.

use crate::error::{EncodeError, NgapError, is_tolerable};
use crate::handover::*;
use crate::interface::*;
use crate::location::*;
use crate::nas_transport::*;
use crate::notice::Notice;
use crate::paging::Paging;
use crate::path_switch::*;
use crate::pdu_session::*;
use crate::trace::*;
use crate::ue_context::*;
use oxirush_ngap::Deviation;
use oxirush_ngap::ngap::{CauseProtocol, Criticality, NGAPPDU, NgapPduKind};

/// The kind of a PDU (TS 38.413 9.4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// The initiating message of a procedure.
    Initiating,
    /// Ends a procedure successfully.
    Successful,
    /// Ends a procedure unsuccessfully.
    Unsuccessful,
}

/// A PDU of a procedure that has no struct here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Other {
    /// The procedure code.
    pub procedure_code: u8,
    /// The kind of PDU.
    pub class: Class,
    /// The cause with which a receiver that does not understand it answers, by its criticality; `None`: it is ignored.
    pub answer: Option<CauseProtocol>,
}

macro_rules! messages {
    ($($kind:ident => $name:ident,)*) => {
        /// Any NGAP PDU.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(clippy::large_enum_variant)]
        pub enum Message {
            $(#[allow(missing_docs)] $name($name),)*
            /// A procedure that has no struct here.
            Other(Other),
        }

        impl Message {
            /// Decodes a PDU; an error contains the answer to its sender.
            pub fn decode(octets: &[u8]) -> Result<Self, NgapError> {
                Self::decode_with_notice(octets).map(|(message, _)| message)
            }

            /// Decodes a PDU; with what was ignored in it and is to be reported to its sender.
            pub fn decode_with_notice(octets: &[u8]) -> Result<(Self, Option<Box<Notice>>), NgapError> {
                let pdu = NGAPPDU::decode_borrowed(octets).map_err(|error| NgapError::transfer_syntax(&error))?;
                let kind = pdu.kind();
                if let NgapPduKind::Other { .. } = kind {
                    return Ok((Self::Other(other(&pdu)), None));
                }
                let deviations = pdu.check_structure().map_err(|error| NgapError::transfer_syntax(&error))?;
                if !deviations.iter().all(is_tolerable) {
                    return Err(NgapError::of_deviations(&pdu, &deviations));
                }
                let message = match kind {
                    $(NgapPduKind::$kind => $name::read(&pdu).map(Self::$name)?,)*
                    _ => Self::Other(other(&pdu)),
                };
                Ok((message, Notice::of(&pdu, &deviations)))
            }

            /// Encodes the PDU.
            pub fn encode(&self) -> Result<Vec<u8>, EncodeError> {
                match self {
                    $(Self::$name(message) => message.encode(),)*
                    Self::Other(_) => {
                        Err(EncodeError { message: self.name(), reason: "it has no struct here".into() })
                    }
                }
            }

            /// The message's name, for logs and ladders.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => stringify!($name),)*
                    Self::Other(_) => "Other",
                }
            }
        }

        $(impl From<$name> for Message {
            fn from(message: $name) -> Self {
                Self::$name(message)
            }
        })*
    };
}

messages! {
    Initiating_NGSetup => NgSetupRequest,
    Successful_NGSetup => NgSetupResponse,
    Unsuccessful_NGSetup => NgSetupFailure,
    Initiating_RANConfigurationUpdate => RanConfigurationUpdate,
    Successful_RANConfigurationUpdate => RanConfigurationUpdateAcknowledge,
    Unsuccessful_RANConfigurationUpdate => RanConfigurationUpdateFailure,
    Initiating_AMFConfigurationUpdate => AmfConfigurationUpdate,
    Successful_AMFConfigurationUpdate => AmfConfigurationUpdateAcknowledge,
    Unsuccessful_AMFConfigurationUpdate => AmfConfigurationUpdateFailure,
    Initiating_NGReset => NgReset,
    Successful_NGReset => NgResetAcknowledge,
    Initiating_ErrorIndication => ErrorIndication,
    Initiating_OverloadStart => OverloadStart,
    Initiating_OverloadStop => OverloadStop,
    Initiating_InitialUEMessage => InitialUeMessage,
    Initiating_DownlinkNASTransport => DownlinkNasTransport,
    Initiating_UplinkNASTransport => UplinkNasTransport,
    Initiating_NASNonDeliveryIndication => NasNonDeliveryIndication,
    Initiating_InitialContextSetup => InitialContextSetupRequest,
    Successful_InitialContextSetup => InitialContextSetupResponse,
    Unsuccessful_InitialContextSetup => InitialContextSetupFailure,
    Initiating_UEContextReleaseRequest => UeContextReleaseRequest,
    Initiating_UEContextRelease => UeContextReleaseCommand,
    Successful_UEContextRelease => UeContextReleaseComplete,
    Initiating_UEContextModification => UeContextModificationRequest,
    Successful_UEContextModification => UeContextModificationResponse,
    Unsuccessful_UEContextModification => UeContextModificationFailure,
    Initiating_UERadioCapabilityInfoIndication => UeRadioCapabilityInfoIndication,
    Initiating_UERadioCapabilityCheck => UeRadioCapabilityCheckRequest,
    Successful_UERadioCapabilityCheck => UeRadioCapabilityCheckResponse,
    Initiating_UETNLABindingRelease => UeTnlaBindingReleaseRequest,
    Initiating_PDUSessionResourceSetup => PduSessionResourceSetupRequest,
    Successful_PDUSessionResourceSetup => PduSessionResourceSetupResponse,
    Initiating_PDUSessionResourceRelease => PduSessionResourceReleaseCommand,
    Successful_PDUSessionResourceRelease => PduSessionResourceReleaseResponse,
    Initiating_PDUSessionResourceModify => PduSessionResourceModifyRequest,
    Successful_PDUSessionResourceModify => PduSessionResourceModifyResponse,
    Initiating_PDUSessionResourceNotify => PduSessionResourceNotify,
    Initiating_PDUSessionResourceModifyIndication => PduSessionResourceModifyIndication,
    Successful_PDUSessionResourceModifyIndication => PduSessionResourceModifyConfirm,
    Initiating_Paging => Paging,
    Initiating_RerouteNASRequest => RerouteNasRequest,
    Initiating_AMFStatusIndication => AmfStatusIndication,
    Initiating_HandoverPreparation => HandoverRequired,
    Successful_HandoverPreparation => HandoverCommand,
    Unsuccessful_HandoverPreparation => HandoverPreparationFailure,
    Initiating_HandoverResourceAllocation => HandoverRequest,
    Successful_HandoverResourceAllocation => HandoverRequestAcknowledge,
    Unsuccessful_HandoverResourceAllocation => HandoverFailure,
    Initiating_HandoverNotification => HandoverNotify,
    Initiating_HandoverCancel => HandoverCancel,
    Successful_HandoverCancel => HandoverCancelAcknowledge,
    Initiating_UplinkRANStatusTransfer => UplinkRanStatusTransfer,
    Initiating_DownlinkRANStatusTransfer => DownlinkRanStatusTransfer,
    Initiating_PathSwitchRequest => PathSwitchRequest,
    Successful_PathSwitchRequest => PathSwitchRequestAcknowledge,
    Unsuccessful_PathSwitchRequest => PathSwitchRequestFailure,
    Initiating_LocationReportingControl => LocationReportingControl,
    Initiating_LocationReportingFailureIndication => LocationReportingFailureIndication,
    Initiating_LocationReport => LocationReport,
    Initiating_RRCInactiveTransitionReport => RrcInactiveTransitionReport,
    Initiating_SecondaryRATDataUsageReport => SecondaryRatDataUsageReport,
    Initiating_UplinkRANEarlyStatusTransfer => UplinkRanEarlyStatusTransfer,
    Initiating_DownlinkRANEarlyStatusTransfer => DownlinkRanEarlyStatusTransfer,
    Initiating_UplinkRANConfigurationTransfer => UplinkRanConfigurationTransfer,
    Initiating_DownlinkRANConfigurationTransfer => DownlinkRanConfigurationTransfer,
    Initiating_TraceStart => TraceStart,
    Initiating_TraceFailureIndication => TraceFailureIndication,
    Initiating_DeactivateTrace => DeactivateTrace,
    Initiating_CellTrafficTrace => CellTrafficTrace,
}

fn other(pdu: &NGAPPDU<'_>) -> Other {
    let class = match pdu {
        NGAPPDU::initiatingMessage(_) => Class::Initiating,
        NGAPPDU::successfulOutcome(_) => Class::Successful,
        _ => Class::Unsuccessful,
    };
    let answer = match pdu.criticality() {
        Criticality::reject => Some(CauseProtocol::abstract_syntax_error_reject),
        Criticality::ignore => None,
        Criticality::notify => Some(CauseProtocol::abstract_syntax_error_ignore_and_notify),
    };
    Other { procedure_code: pdu.procedure_code(), class, answer }
}

/// The diagnostics of an unknown procedure (TS 38.413 10.3.4.1).
pub fn unknown_procedure(octets: &[u8]) -> Option<NgapError> {
    let pdu = NGAPPDU::decode_borrowed(octets).ok()?;
    let deviations: Vec<Deviation> = pdu.check_structure().unwrap_or_default();
    Some(NgapError::of_deviations(&pdu, &deviations))
}
