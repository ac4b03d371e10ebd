//! RAN status of the source gNB for the target gNB (TS 38.413 8.4.6, 8.4.7, 8.4.9, 8.4.10).

use crate::amf::connection::NgConnection;
use crate::amf::consumer;
use crate::amf::context::{Env, UeContext};
use crate::amf::mobility::{Mobility, n14};
use crate::amf::n2;
use pith_ngap::{DownlinkRanEarlyStatusTransfer, DownlinkRanStatusTransfer, EarlyRanStatus, RanStatus};
use pith_sbi::namf_communication::NgapIeType;

/// UPLINK RAN STATUS TRANSFER of the source gNB: relayed to the target gNB, or to its AMF (TS 38.413 8.4.6, 8.4.7).
pub(in crate::amf) fn relay_status(ue: &UeContext, env: &mut Env<'_>, status: RanStatus) {
    match &ue.mobility {
        Mobility::AwaitingN2InfoNotify(state) => {
            let kind = NgapIeType::RanStatusTransContainer;
            consumer::transfer_ran_status(env, state.context(), n14::information(kind, status.encode()));
        }
        _ => send_status(ue, env, status),
    }
}

/// DOWNLINK RAN STATUS TRANSFER to the target gNB.
pub(in crate::amf) fn send_status(ue: &UeContext, env: &mut Env<'_>, status: RanStatus) {
    let Some(target) = prepared_target(ue, env) else { return };
    let (amf_ue_ngap_id, ran_ue_ngap_id) = (target.id, target.ran_id);
    let (message, side) =
        (DownlinkRanStatusTransfer { amf_ue_ngap_id, ran_ue_ngap_id, status }, target.side());
    n2::send_to(env.out, side, message.encode());
}

/// UPLINK RAN EARLY STATUS TRANSFER of the source gNB of a DAPS handover: relayed to the target gNB, or to its AMF (TS 38.413 8.4.9, 8.4.10).
pub(in crate::amf) fn relay_early_status(ue: &UeContext, env: &mut Env<'_>, status: EarlyRanStatus) {
    match &ue.mobility {
        Mobility::AwaitingN2InfoNotify(state) => {
            let kind = NgapIeType::EarlyStatusTransContainer;
            consumer::transfer_ran_status(env, state.context(), n14::information(kind, status.encode()));
        }
        _ => send_early_status(ue, env, status),
    }
}

/// DOWNLINK RAN EARLY STATUS TRANSFER to the target gNB.
pub(in crate::amf) fn send_early_status(ue: &UeContext, env: &mut Env<'_>, status: EarlyRanStatus) {
    let Some(target) = prepared_target(ue, env) else { return };
    let (amf_ue_ngap_id, ran_ue_ngap_id) = (target.id, target.ran_id);
    let (message, side) =
        (DownlinkRanEarlyStatusTransfer { amf_ue_ngap_id, ran_ue_ngap_id, status }, target.side());
    n2::send_to(env.out, side, message.encode());
}

/// The connection at the target gNB, while the UE is between the two.
fn prepared_target<'a>(ue: &UeContext, env: &'a Env<'_>) -> Option<&'a NgConnection> {
    let Mobility::AwaitingHandoverNotify(state) = &ue.mobility else { return None };
    env.connections.find(state.target).and_then(|key| env.connections.get(key))
}
