//! Procedures that this AMF does not support: each is refused with the failure message of TS
//! 38.413, so that the gNB keeps the UE as it is.

use super::{N2Origin, send};
use crate::kit::Outbox;
use pith_ngap::{HandoverPreparationFailure, NgapError};
use pith_types::{AmfUeNgapId, RanUeNgapId};

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
    send::send(out, from.gnb, from.binding, failure.encode());
}
