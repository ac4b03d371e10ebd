//! The gNB's answers about PDU session resources (TS 38.413 8.2), forwarded to the SMF without decoding.

use crate::amf::consumer;
use crate::amf::context::{Env, UeContext};
use crate::amf::delivery;
use crate::amf::session::UserPlane;
use crate::kit::Level;
use pith_ngap::transfer::ReleaseResponseTransfer;
use pith_ngap::{Cause, CauseRadioNetwork, ErrorIndication, SessionTransfer};
use pith_sbi::nsmf_pdusession::N2SmInfoType;
use std::collections::BTreeSet;

/// Result of a setup (TS 38.413 8.2.1.2; TS 23.502 4.3.2.2.1 step 14).
pub(crate) fn set_up(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    setup: Option<Vec<SessionTransfer>>,
    failed: Option<Vec<SessionTransfer>>,
) {
    for item in setup.into_iter().flatten() {
        set_up_one(ue, env, item, N2SmInfoType::PduResSetupRsp, UserPlane::Activated);
    }
    for item in failed.into_iter().flatten() {
        set_up_one(ue, env, item, N2SmInfoType::PduResSetupFail, UserPlane::Deactivated);
    }
    delivery::end_guard(ue, env);
}

/// PDU SESSION RESOURCE SETUP RESPONSE. One without sessions answers the only open request, which has failed. Otherwise sessions that it does not name
/// wait for another response: the guard timer decides.
pub(crate) fn setup_answered(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    setup: Option<Vec<SessionTransfer>>,
    failed: Option<Vec<SessionTransfer>>,
) {
    let is_empty = setup.iter().chain(&failed).flatten().next().is_none();
    if is_empty
        && !ue.mobility.is_handover()
        && let Some(id) = only(&delivery::open_setups(ue, env))
    {
        delivery::fail_open_setup(ue, env, id);
    }
    set_up(ue, env, setup, failed);
}

/// The only one.
fn only(ids: &BTreeSet<u8>) -> Option<u8> {
    ids.first().copied().filter(|_| ids.len() == 1)
}

/// ERROR INDICATION in place of a response (TS 38.413 8.7.5, 10.3): the procedure has failed. Its diagnostics name the procedure, or the cause does. If
/// it may answer several requests, the guard timer decides.
pub(crate) fn error_indicated(ue: &mut UeContext, env: &mut Env<'_>, error: &ErrorIndication) {
    if ue.mobility.is_handover() {
        return;
    }
    let (setups, releases) = (delivery::open_setups(ue, env), delivery::open_releases(ue, env));
    let (is_setup, is_release) = match (error.diagnostics.as_ref().and_then(|it| it.procedure()), error.cause)
    {
        (Some(procedure), _) => (procedure == SETUP, procedure == RELEASE),
        (None, Some(Cause::RadioNetwork(CauseRadioNetwork::unknown_PDU_session_ID))) => (false, true),
        (None, Some(Cause::RadioNetwork(CauseRadioNetwork::multiple_PDU_session_ID_instances))) => {
            (true, false)
        }
        // It may be about any other message.
        (None, _) => (false, false),
    };
    if is_setup && let Some(id) = only(&setups) {
        delivery::fail_open_setup(ue, env, id);
    } else if is_release && let Some(id) = only(&releases) {
        fail_release(ue, env, id);
    }
    delivery::end_guard(ue, env);
}

/// Procedure codes (TS 38.413 9.4.7).
const RELEASE: u8 = 28;
const SETUP: u8 = 29;

fn set_up_one(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    item: SessionTransfer,
    kind: N2SmInfoType,
    user_plane: UserPlane,
) {
    let id = item.pdu_session_id;
    if delivery::takes_setup_answer(ue, env, id, user_plane == UserPlane::Activated) {
        report(ue, env, Some(vec![item]), kind, Some(user_plane));
    } else {
        not_pending(ue, env, id);
    }
}

/// An answer that no session waits for changes nothing (TS 38.413 10.4).
fn not_pending(ue: &UeContext, env: &mut Env<'_>, id: u8) {
    env.out.log(Level::Info, || {
        format!("{}: an answer of the gNB that session {id} does not wait for", ue.name())
    });
}

/// The gNB has not answered a release properly: its resources count as released.
pub(crate) fn fail_release(ue: &mut UeContext, env: &mut Env<'_>, id: u8) {
    env.out
        .log(Level::Warn, || format!("{}: the gNB does not answer the release of session {id}", ue.name()));
    let transfer = ReleaseResponseTransfer.encode();
    released(ue, env, Some(vec![SessionTransfer { pdu_session_id: id, transfer }]));
}

/// PDU SESSION RESOURCE RELEASE RESPONSE. One without sessions answers the only open command.
pub(crate) fn release_answered(ue: &mut UeContext, env: &mut Env<'_>, list: Option<Vec<SessionTransfer>>) {
    let is_empty = list.iter().flatten().next().is_none();
    if is_empty && let Some(id) = only(&delivery::open_releases(ue, env)) {
        fail_release(ue, env, id);
    }
    released(ue, env, list);
}

/// Result of a release (TS 38.413 8.2.2.2).
fn released(ue: &mut UeContext, env: &mut Env<'_>, released: Option<Vec<SessionTransfer>>) {
    for item in released.into_iter().flatten() {
        let id = item.pdu_session_id;
        if !delivery::takes_release_answer(ue, env, id) {
            not_pending(ue, env, id);
            continue;
        }
        match ue.session_mut(id) {
            // The AMF requested this release, not the SMF: no report.
            Some(session) if session.user_plane == UserPlane::Replacing => {
                session.user_plane = UserPlane::Deactivated;
            }
            Some(session) if session.user_plane == UserPlane::Releasing => {
                report(ue, env, Some(vec![item]), N2SmInfoType::PduResRelRsp, Some(UserPlane::Deactivated));
            }
            _ => {}
        }
        delivery::send_held_setup(ue, env, id);
    }
    delivery::end_guard(ue, env);
}

/// Result of a modification (TS 38.413 8.2.3.2).
pub(crate) fn modified(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    modified: Option<Vec<SessionTransfer>>,
    failed: Option<Vec<SessionTransfer>>,
) {
    report(ue, env, modified, N2SmInfoType::PduResModRsp, None);
    report(ue, env, failed, N2SmInfoType::PduResModFail, None);
}

/// The gNB no longer fulfils a QoS flow, or has released resources (TS 38.413 8.2.4.2).
pub(crate) fn notified(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    notified: Option<Vec<SessionTransfer>>,
    released: Option<Vec<SessionTransfer>>,
) {
    report(ue, env, notified, N2SmInfoType::PduResNty, None);
    let ids: Vec<u8> = released.iter().flatten().map(|item| item.pdu_session_id).collect();
    report(ue, env, released, N2SmInfoType::PduResNtyRel, Some(UserPlane::Deactivated));
    for id in ids {
        delivery::send_held_setup(ue, env, id);
    }
    delivery::end_guard(ue, env);
}

/// Forwards a list to the SMFs, one report for each session. Sessions that were released in the
/// meantime are skipped.
fn report(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    list: Option<Vec<SessionTransfer>>,
    kind: N2SmInfoType,
    user_plane: Option<UserPlane>,
) {
    for item in list.into_iter().flatten() {
        if let (Some(session), Some(state)) = (ue.session_mut(item.pdu_session_id), user_plane) {
            session.user_plane = state;
        }
        let id = item.pdu_session_id;
        if kind == N2SmInfoType::PduResNtyRel && ue.mobility.switches_path_of(id) {
            consumer::report_released(ue, env, id, item.transfer, kind.clone());
        } else {
            consumer::report(ue, env, id, item.transfer, kind.clone());
        }
    }
}
