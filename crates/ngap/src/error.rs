//! What is wrong with a PDU, and what its receiver has to answer (TS 38.413 clause 10).

use crate::types::Cause;
use oxirush_ngap::ngap::{CauseProtocol, CriticalityDiagnostics, NGAPPDU};
use oxirush_ngap::{Deviation, Error};

/// The Criticality Diagnostics IE (TS 38.413 9.3.1.3), made of what was wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostics(pub(crate) CriticalityDiagnostics);

/// Why a PDU can't be handled.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NgapError {
    /// The octets are no NGAP PDU (TS 38.413 10.2).
    #[error("no NGAP PDU: {0}")]
    TransferSyntax(String),
    /// An IE or the procedure is wrong in a way that its criticality forbids to overlook
    /// (TS 38.413 10.3).
    #[error("{text}")]
    AbstractSyntax {
        /// What is wrong, for people.
        text: String,
        /// The protocol cause to answer with.
        cause: Cause,
        /// For an ERROR INDICATION: procedure, message and IEs.
        diagnostics: Box<Diagnostics>,
        /// For the procedure's own failure message: the IEs.
        response_diagnostics: Box<Diagnostics>,
        /// The procedure.
        procedure_code: u8,
        /// Whether the PDU begins a procedure, and so may be answered.
        initiating: bool,
    },
}

/// A message can't be written as the protocol has it: a list is too long, a number too large, or it is of a
/// procedure that has no struct here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} can't be encoded: {reason}")]
pub struct EncodeError {
    /// The message.
    pub message: &'static str,
    /// Why, for people.
    pub reason: String,
}

impl NgapError {
    pub(crate) fn transfer_syntax(error: &Error) -> Self {
        Self::TransferSyntax(error.to_string())
    }

    /// What an error of reading an IE of that PDU means.
    pub(crate) fn of_ie(pdu: &NGAPPDU<'_>, error: &Error) -> Self {
        match Deviation::of(error) {
            Some(deviation) => Self::of_deviations(pdu, &[deviation]),
            None => Self::transfer_syntax(error),
        }
    }

    /// An IE decodes, but its value is not one that a peer may send: an MCC with letters.
    pub(crate) fn semantic(pdu: &NGAPPDU<'_>, text: &str) -> Self {
        Self::with_cause(pdu, &[], Cause::Protocol(CauseProtocol::semantic_error), text.to_owned())
    }

    /// The worst of the deviations says the cause; all stand in the diagnostics.
    pub(crate) fn of_deviations(pdu: &NGAPPDU<'_>, deviations: &[Deviation]) -> Self {
        let cause = deviations.iter().find_map(Deviation::cause);
        let text = deviations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        let cause = cause.unwrap_or(CauseProtocol::abstract_syntax_error_reject);
        Self::with_cause(pdu, deviations, Cause::Protocol(cause), text)
    }

    fn with_cause(pdu: &NGAPPDU<'_>, deviations: &[Deviation], cause: Cause, text: String) -> Self {
        Self::AbstractSyntax {
            text,
            cause,
            diagnostics: Box::new(Diagnostics(pdu.criticality_diagnostics(deviations))),
            response_diagnostics: Box::new(Diagnostics(pdu.criticality_diagnostics_for_response(deviations))),
            procedure_code: pdu.procedure_code(),
            initiating: pdu.is_initiating(),
        }
    }

    /// The cause to answer with.
    pub fn cause(&self) -> Cause {
        match self {
            Self::TransferSyntax(_) => Cause::Protocol(CauseProtocol::transfer_syntax_error),
            Self::AbstractSyntax { cause, .. } => *cause,
        }
    }

    /// The diagnostics of an ERROR INDICATION.
    pub fn diagnostics(&self) -> Option<Diagnostics> {
        match self {
            Self::TransferSyntax(_) => None,
            Self::AbstractSyntax { diagnostics, .. } => Some((**diagnostics).clone()),
        }
    }
}

/// Whether a deviation may be overlooked: criticality ignore, another criticality than assigned, an
/// unusual but whole encoding (TS 38.413 10.3.4, 10.3.5).
///
/// IEs in another order than that of the ASN.1 are accepted, where TS 38.413 10.3.6 has the receiver reject the message
/// as falsely constructed. Each IE carries its id, so that the order changes no meaning, and encoders of gNBs that are
/// in use do not keep it. A repeated IE has two meanings: it is rejected as 10.3.6 says.
pub(crate) fn is_tolerable(deviation: &Deviation) -> bool {
    use oxirush_ngap::ngap::Criticality;
    match deviation {
        Deviation::UnexpectedIe { criticality, .. } | Deviation::MissingIe { criticality, .. } => {
            *criticality != Criticality::reject
        }
        Deviation::RepeatedIe { .. } => false,
        Deviation::OutOfOrder { .. } => true,
        Deviation::UnknownProcedure { criticality, .. } => *criticality != Criticality::reject,
        _ => true,
    }
}
