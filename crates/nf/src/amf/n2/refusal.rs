//! Procedures that this AMF does not support: each is refused with the failure message of TS
//! 38.413, so that the gNB keeps the UE as it is.

use super::{N2Origin, send};
use crate::amf::context::{Env, UeContext};
use crate::kit::{Level, Outbox};
use pith_ngap::transfer::ModifyIndicationUnsuccessfulTransfer;
use pith_ngap::{
    Cause, CauseProtocol, HandoverPreparationFailure, NgapError, PduSessionResourceModifyConfirm,
    PduSessionResourceModifyIndication, SessionTransfer,
};
use pith_types::{AmfUeNgapId, RanUeNgapId};

/// Cause of sessions that are not moved or modified (TS 38.413 9.3.1.2).
const NOT_SUPPORTED: Cause = Cause::Protocol(CauseProtocol::message_not_compatible_with_receiver_state);

/// A HANDOVER REQUIRED that can't be decoded: the same failure message, with the diagnostics (TS
/// 38.413 10.3.4.2, 10.3.5).
pub(super) fn faulty_handover_required(
    from: N2Origin,
    ids: (AmfUeNgapId, RanUeNgapId),
    error: &NgapError,
    out: &mut Outbox,
) {
    let diagnostics = match error {
        NgapError::AbstractSyntax { response_diagnostics, .. } => Some((**response_diagnostics).clone()),
        NgapError::TransferSyntax(_) => None,
    };
    let (amf_ue_ngap_id, ran_ue_ngap_id) = ids;
    let cause = Some(error.cause());
    let failure = HandoverPreparationFailure { amf_ue_ngap_id, ran_ue_ngap_id, cause, diagnostics };
    send::send(out, from.gnb, from.stream, failure.encode());
}

/// PDU SESSION RESOURCE MODIFY INDICATION: PDU SESSION RESOURCE MODIFY CONFIRM, all sessions in the list of those that
/// were not modified (TS 38.413 8.2.5.2).
pub(super) fn modify_indication(
    ue: &UeContext,
    env: &mut Env<'_>,
    from: N2Origin,
    message: PduSessionResourceModifyIndication,
) {
    env.out
        .log(Level::Warn, || format!("{}: PDU session modification by the gNB is not supported", ue.name()));
    let transfer = ModifyIndicationUnsuccessfulTransfer { cause: NOT_SUPPORTED }.encode();
    let confirm = PduSessionResourceModifyConfirm {
        amf_ue_ngap_id: message.amf_ue_ngap_id,
        ran_ue_ngap_id: message.ran_ue_ngap_id,
        confirmed: None,
        failed: Some(with_transfer(message.sessions, &transfer)),
        diagnostics: None,
    };
    send::send(env.out, from.gnb, from.stream, confirm.encode());
}

fn with_transfer(sessions: Vec<SessionTransfer>, transfer: &[u8]) -> Vec<SessionTransfer> {
    let item = |session: SessionTransfer| SessionTransfer { transfer: transfer.to_vec(), ..session };
    sessions.into_iter().map(item).collect()
}
