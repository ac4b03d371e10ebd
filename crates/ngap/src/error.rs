//! Errors of received PDUs, and the answers to them (TS 38.413 clause 10).

use crate::types::Cause;
use oxirush_ngap::ngap::{CauseProtocol, CriticalityDiagnostics, NGAPPDU};
use oxirush_ngap::{Deviation, Error};

/// The Criticality Diagnostics IE (TS 38.413 9.3.1.3).
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostics(pub(crate) CriticalityDiagnostics);

impl Diagnostics {
    /// The code of the procedure with the error.
    pub fn procedure(&self) -> Option<u8> {
        self.0.procedure_code.as_ref().map(|code| code.0)
    }
}

/// Why a PDU was rejected.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NgapError {
    /// The octets are no NGAP PDU (TS 38.413 10.2).
    #[error("not an NGAP PDU: {0}")]
    TransferSyntax(String),
    /// An IE or the procedure has an error that its criticality does not permit to ignore (TS 38.413 10.3).
    #[error("{text}")]
    AbstractSyntax {
        /// Text for logs.
        text: String,
        /// The protocol cause to answer with.
        cause: Cause,
        /// For an ERROR INDICATION: procedure, message and IEs.
        diagnostics: Box<Diagnostics>,
        /// For the procedure's own failure message: the IEs.
        response_diagnostics: Box<Diagnostics>,
        /// The procedure code.
        procedure_code: u8,
        /// Whether the PDU initiates a procedure, and may therefore be answered.
        initiating: bool,
    },
}

/// A message cannot be encoded: a list is too long, a number too large, or its procedure has no struct here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} cannot be encoded: {reason}")]
pub struct EncodeError {
    /// The message's name.
    pub message: &'static str,
    /// Text for logs.
    pub reason: String,
}

impl NgapError {
    pub(crate) fn transfer_syntax(error: &Error) -> Self {
        Self::TransferSyntax(error.to_string())
    }

    /// Converts an error of decoding an IE of that PDU.
    pub(crate) fn of_ie(pdu: &NGAPPDU<'_>, error: &Error) -> Self {
        match Deviation::of(error) {
            Some(deviation) => Self::of_deviations(pdu, &[deviation]),
            None => Self::transfer_syntax(error),
        }
    }

    /// An IE decodes, but its value is invalid: an MCC with letters.
    pub(crate) fn semantic(pdu: &NGAPPDU<'_>, text: &str) -> Self {
        Self::with_cause(pdu, &[], Cause::Protocol(CauseProtocol::semantic_error), text.to_owned())
    }

    /// The most severe deviation determines the cause; the diagnostics contain all.
    pub(crate) fn of_deviations(pdu: &NGAPPDU<'_>, deviations: &[Deviation]) -> Self {
        let cause = deviations.iter().find_map(Deviation::cause);
        let text = text_of(deviations);
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

    /// The diagnostics of the procedure's own failure message.
    pub fn response_diagnostics(&self) -> Option<Diagnostics> {
        match self {
            Self::TransferSyntax(_) => None,
            Self::AbstractSyntax { response_diagnostics, .. } => Some((**response_diagnostics).clone()),
        }
    }
}

/// Deviations in a text. A PDU can have thousands of them.
const IN_TEXT: usize = 4;

/// Text for logs: the first deviations, and the number of the others.
pub(crate) fn text_of(deviations: &[Deviation]) -> String {
    let named = deviations.iter().take(IN_TEXT).map(ToString::to_string).collect::<Vec<_>>().join("; ");
    match deviations.len().saturating_sub(IN_TEXT) {
        0 => named,
        others => format!("{named}; and {others} others"),
    }
}

/// Whether a deviation is ignored: criticality ignore, another criticality than assigned, an unusual but
/// complete encoding (TS 38.413 10.3.4, 10.3.5).
///
/// IEs in another order than in the ASN.1 are accepted, although TS 38.413 10.3.6 requires the receiver to
/// reject the message as falsely constructed: each IE has an id, so the order does not change the meaning,
/// and some gNBs in use do not keep it. A repeated IE is ambiguous and therefore rejected.
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
