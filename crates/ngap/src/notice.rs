//! Criticality `ignore and notify`: what a receiver leaves out of a message that it processes is reported to the sender, in the
//! procedure's response or by ERROR INDICATION (TS 38.413 10.3.4.1, 10.3.4.2).

use crate::error::{Diagnostics, text_of};
use crate::message::Message;
use oxirush_ngap::Deviation;
use oxirush_ngap::ngap::{CauseProtocol, Criticality, NGAPPDU};

/// What a message has that was ignored, and is to be reported.
#[derive(Debug, Clone, PartialEq)]
pub struct Notice {
    /// Text for logs.
    pub text: String,
    /// For an ERROR INDICATION: procedure, message and IEs.
    pub diagnostics: Diagnostics,
    /// For the procedure's response: the IEs.
    response_diagnostics: Diagnostics,
    procedure_code: u8,
    is_initiating: bool,
}

impl Notice {
    /// The cause of the ERROR INDICATION.
    pub const CAUSE: crate::Cause =
        crate::Cause::Protocol(CauseProtocol::abstract_syntax_error_ignore_and_notify);

    /// The notice that these deviations require, if any does.
    pub(crate) fn of(pdu: &NGAPPDU<'_>, deviations: &[Deviation]) -> Option<Box<Self>> {
        if !deviations.iter().any(is_notified) {
            return None;
        }
        let notified: Vec<Deviation> = deviations.iter().filter(|it| is_notified(it)).cloned().collect();
        Some(Box::new(Self {
            text: text_of(&notified),
            diagnostics: Diagnostics(pdu.criticality_diagnostics(&notified)),
            response_diagnostics: Diagnostics(pdu.criticality_diagnostics_for_response(&notified)),
            procedure_code: pdu.procedure_code(),
            is_initiating: pdu.is_initiating(),
        }))
    }

    /// Whether the message begins a procedure whose response has room for the notice.
    pub fn awaits_response(&self) -> bool {
        self.is_initiating && WITH_RESPONSE.contains(&self.procedure_code)
    }

    /// The response of the procedure with this notice in it. `None` if the PDU is not that response, or has diagnostics already.
    pub fn add_to(&self, response: &[u8]) -> Option<Vec<u8>> {
        let pdu = NGAPPDU::decode_borrowed(response).ok()?;
        if !self.is_initiating || pdu.is_initiating() || pdu.procedure_code() != self.procedure_code {
            return None;
        }
        let mut message = Message::decode(response).ok()?;
        let place = message.response_diagnostics()?;
        if place.is_some() {
            return None;
        }
        *place = Some(self.response_diagnostics.clone());
        message.encode().ok()
    }
}

/// Whether the sender wants to know that its receiver ignores this.
fn is_notified(deviation: &Deviation) -> bool {
    match deviation {
        Deviation::UnexpectedIe { criticality, .. }
        | Deviation::MissingIe { criticality, .. }
        | Deviation::UnknownProcedure { criticality, .. } => *criticality == Criticality::notify,
        _ => false,
    }
}

/// Codes of the procedures that a gNB initiates and an AMF answers (TS 38.413 9.4.7): handover cancellation and preparation, NG Reset, NG
/// Setup, path switch, PDU session resource modify indication, RAN configuration update.
const WITH_RESPONSE: [u8; 7] = [10, 12, 20, 21, 25, 27, 35];

/// The place of the Criticality Diagnostics IE in the responses of procedures that a gNB initiates.
macro_rules! responses {
    ($($name:ident,)*) => {
        impl Message {
            fn response_diagnostics(&mut self) -> Option<&mut Option<Diagnostics>> {
                match self {
                    $(Self::$name(response) => Some(&mut response.diagnostics),)*
                    _ => None,
                }
            }
        }
    };
}

responses! {
    NgSetupResponse,
    NgSetupFailure,
    RanConfigurationUpdateAcknowledge,
    RanConfigurationUpdateFailure,
    NgResetAcknowledge,
    HandoverCommand,
    HandoverPreparationFailure,
    HandoverCancelAcknowledge,
    PathSwitchRequestAcknowledge,
    PathSwitchRequestFailure,
    PduSessionResourceModifyConfirm,
}
