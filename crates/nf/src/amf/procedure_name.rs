//! The procedure that changes a UE's context, for the counters of the store.

use super::connection::{Connections, RanContext};
use super::context::UeContext;
use super::mobility::Mobility;
use super::procedure::Procedure;
use super::session::{PduSession, SessionCall};
use crate::kit::ProcedureName;

/// The procedure that the state of a UE belongs to; `None` if it does not follow from the state: then it is that of the step before.
pub(super) fn of(ue: &UeContext, connections: &Connections) -> Option<ProcedureName> {
    match &ue.procedure {
        Procedure::Idle => {}
        Procedure::AwaitingRegistrationComplete(_) => return Some(ProcedureName::Registration),
        Procedure::AwaitingDeregistrationAccept(_) => return Some(ProcedureName::Deregistration),
        Procedure::AwaitingConfigurationUpdateComplete(_) => return Some(ProcedureName::Other),
        Procedure::AwaitingPagingResponse(_) => return Some(ProcedureName::ServiceRequest),
        procedure if procedure.is_registering() => return Some(ProcedureName::Registration),
        _ => return Some(ProcedureName::ServiceRequest),
    }
    if !ue.is_registered() {
        return Some(ProcedureName::Registration);
    }
    match &ue.mobility {
        Mobility::Idle => {}
        Mobility::AwaitingFlows(_) => return Some(ProcedureName::SessionModification),
        _ => return Some(ProcedureName::Handover),
    }
    match ue.connection.and_then(|key| connections.get(key)).map(|it| it.context) {
        None | Some(RanContext::Releasing) => Some(ProcedureName::AnRelease),
        Some(_) => ue.sessions.iter().find_map(of_session),
    }
}

/// The procedure that a session's open requests to its SMF belong to.
fn of_session(session: &PduSession) -> Option<ProcedureName> {
    let sent = session.calls.iter().map(|(_, call)| call);
    let held = session.held.iter().map(|(_, call)| call);
    sent.chain(held).find_map(|call| match call {
        SessionCall::Create(_) | SessionCall::SelectInstance(_) => Some(ProcedureName::SessionEstablishment),
        SessionCall::Forward(message) => match message.get(3) {
            // Message types of TS 24.501 table 9.7.2: PDU SESSION RELEASE REQUEST, COMPLETE.
            Some(0xd1 | 0xd4) => Some(ProcedureName::SessionRelease),
            _ => Some(ProcedureName::SessionModification),
        },
        SessionCall::Report(_) | SessionCall::LeftSwitch => None,
    })
}
