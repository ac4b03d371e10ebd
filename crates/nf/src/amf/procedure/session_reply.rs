//! The SMF's reply in a transaction of one PDU session (TS 23.502 4.3.2.2.1, 4.3.3, 4.3.4): its
//! messages are forwarded to UE and gNB.

use super::nas_transport::{send_back, session_downlink};
use super::subscription_change;
use crate::amf::consumer;
use crate::amf::context::{CallId, Env, UeContext};
use crate::amf::delivery::{self, SmfMessage};
use crate::amf::error::TransportError;
use crate::amf::mobility::{arrival, departure, n2_handover};
use crate::amf::n1;
use crate::amf::session::{PduSession, SessionCall, UserPlane};
use crate::kit::Level;
use bytes::Bytes;
use pith_nas::ie::PayloadContainerType;
use pith_sbi::nsmf_pdusession::{SmContextUpdateData, SmContextUpdatedData, UpCnxState};
use pith_sbi::{Cause, Operation, Problem, ProblemMore, Reply, Response, Uri};

/// Handles a reply that the procedure in progress does not wait for.
pub(crate) fn on_reply(ue: &mut UeContext, env: &mut Env<'_>, call: CallId, reply: Reply) {
    if ue.sdm_call == Some(call) {
        ue.sdm_call = None;
        // Before its registration the AMF subscribes to nothing for a UE that came by a handover, nor for an emergency registered one.
        let is_subscription = matches!(reply, Ok(Response::SdmSubscriptionCreated(_)));
        let is_of_arrival = ue.lacks_registration() || ue.is_emergency_registered();
        return if is_of_arrival && !is_subscription {
            arrival::on_registered_in_udm(ue, env, reply)
        } else {
            subscribed(ue, env, reply)
        };
    }
    if ue.refresh_call == Some(call) {
        ue.refresh_call = None;
        return subscription_change::on_refreshed(ue, env, reply);
    }
    let mut sessions = ue.sessions.iter_mut();
    let found = sessions.find_map(|session| Some((session.id, session.take_call(call)?)));
    match found {
        Some((id, SessionCall::Create(payload))) => created(ue, env, id, &payload, reply),
        Some((id, SessionCall::Forward(payload))) => forwarded(ue, env, id, &payload, reply),
        Some((id, SessionCall::Report(body))) => reported(ue, env, (id, call), *body, reply),
        Some((id, SessionCall::SelectInstance(payload))) => instance_selected(ue, env, id, &payload, reply),
        Some((id, SessionCall::LeftSwitch)) => left_gnb_switched(ue, env, id, reply),
        None => late(ue, env, reply),
    }
}

/// The reply to Nudm_SDM_Subscribe.
fn subscribed(ue: &mut UeContext, env: &mut Env<'_>, reply: Reply) {
    match reply {
        Ok(Response::SdmSubscriptionCreated(created)) => ue.sdm_subscription = Some(created.location),
        Ok(_) => {}
        Err(problem) => env.out.log(Level::Warn, || format!("no subscription to changes: {problem}")),
    }
}

/// The NSSF's reply about the slice instance. Without one, or without an NSSF, any SMF of the slice serves the session; a slice that is not
/// available where the UE is has none.
fn instance_selected(ue: &mut UeContext, env: &mut Env<'_>, id: u8, payload: &Bytes, reply: Reply) {
    let instance = match reply {
        Ok(Response::AuthorizedNetworkSliceInfo(info)) => info.nsi_information.and_then(|it| it.nsi_id),
        Err(problem) if problem.status == 403 => {
            return not_created(ue, env, id, payload, Some(&problem));
        }
        Ok(_) => None,
        Err(problem) => {
            env.out.log(Level::Warn, || format!("{}: no slice instance, session {id}: {problem}", ue.name()));
            None
        }
    };
    consumer::create_session(ue, env, id, payload, instance);
}

/// The reply to CreateSMContext. On success the SMF sends its messages later by N1N2MessageTransfer.
fn created(ue: &mut UeContext, env: &mut Env<'_>, id: u8, payload: &[u8], reply: Reply) {
    match reply {
        Ok(Response::SmContextCreated(created)) => {
            consumer::sm_context_created(ue, env, id, created.location);
        }
        Ok(_) => not_created(ue, env, id, payload, None),
        Err(problem) => not_created(ue, env, id, payload, Some(&problem)),
    }
}

/// The session was not created: forwards the SMF's PDU SESSION ESTABLISHMENT REJECT to the UE, or
/// returns the UE's request to it.
fn not_created(ue: &mut UeContext, env: &mut Env<'_>, id: u8, payload: &[u8], problem: Option<&Problem>) {
    ue.sessions.retain(|session| session.id != id);
    delivery::drop_queued(ue, id);
    let message = problem.and_then(n1_of);
    // If the SMF has a reject for the UE, the SMF has logged the reason already.
    let level = if message.is_some() { Level::Debug } else { Level::Warn };
    env.out.log(level, || {
        let why = problem.map_or_else(|| "unexpected reply".into(), ToString::to_string);
        format!("{}: {} failed, session {id}: {why}", ue.name(), Operation::PostSmContexts.name())
    });
    match message {
        Some(message) => {
            n1::send(ue, env, session_downlink(id, &message));
        }
        // The SMF has read the message, and ignores it (TS 24.501 7.2, 7.3).
        None if problem.is_some_and(|problem| problem.is(&Cause::N1SmError)) => {}
        None => {
            let kind = PayloadContainerType::N1SmInformation;
            send_back(ue, env, kind, Some(id), payload, TransportError::NotForwarded);
        }
    }
}

/// The 5GSM message in an error response.
fn n1_of(problem: &Problem) -> Option<Bytes> {
    match problem.more.as_ref()? {
        ProblemMore::SmContextCreateError(error) => error.n1_sm_msg.as_ref(),
        ProblemMore::SmContextUpdateError(error) => error.n1_sm_msg.as_ref(),
        _ => None,
    }
    .map(|message| message.content.clone())
}

/// The reply to a forwarded 5GSM message.
fn forwarded(ue: &mut UeContext, env: &mut Env<'_>, id: u8, payload: &[u8], reply: Reply) {
    let problem = match reply {
        Ok(Response::SmContextUpdated(updated)) => return pass_on(ue, env, id, *updated),
        Ok(_) => return,
        Err(problem) => problem,
    };
    match n1_of(&problem) {
        Some(message) => {
            n1::send(ue, env, session_downlink(id, &message));
        }
        None => {
            env.out.log(Level::Warn, || {
                let operation = Operation::UpdateSmContext.name();
                format!("{}: {operation} failed, session {id}: {problem}", ue.name())
            });
            if problem.status == 404 {
                forget(ue, env, id);
            }
            let kind = PayloadContainerType::N1SmInformation;
            send_back(ue, env, kind, Some(id), payload, TransportError::NotForwarded);
        }
    }
}

/// The reply to a report.
fn reported(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    (id, call): (u8, CallId),
    report: SmContextUpdateData,
    reply: Reply,
) {
    let is_lost = reply.as_ref().is_err_and(|problem| problem.status == 504);
    let presence = report.presence_in_ladn.clone().filter(|_| report.is_presence_report() && !is_lost);
    match reply {
        Ok(answer) => {
            if let Some(session) = ue.session_mut(id) {
                session.note_heard(&report);
            }
            if let Response::SmContextUpdated(mut updated) = answer {
                // The AMF knows since it requested a deactivation, and may have had resources set up since: by an activation, or by a
                // setup that was queued for the UE.
                let is_late = ue.session(id).is_some_and(|session| session.last_call != call);
                // Not of a deactivation: an SMF that answers that so would get another one each time.
                let is_active = updated.up_cnx_state == Some(UpCnxState::Activated)
                    && report.up_cnx_state != Some(UpCnxState::Deactivated);
                let is_left = |session: &PduSession| session.user_plane == UserPlane::Deactivated;
                if is_late && is_active && ue.session(id).is_some_and(is_left) {
                    // The gNB's result may have reached the SMF after the request to deactivate.
                    consumer::repeat_deactivation(ue, env, id);
                }
                if is_late || report.up_cnx_state == Some(UpCnxState::Deactivated) {
                    updated.up_cnx_state = None;
                }
                pass_on(ue, env, id, *updated);
            }
        }
        Err(problem) => {
            env.out.log(Level::Warn, || {
                let operation = Operation::UpdateSmContext.name();
                format!("{}: {operation} failed, session {id}: {problem}", ue.name())
            });
            let may_be_unheard = problem.status >= 500 || problem.may_pass();
            let is_postponed = may_be_unheard && !report.is_presence_report() && ue.procedure.activates(id);
            match problem.status {
                404 => forget(ue, env, id),
                _ if is_postponed => consumer::postpone_report(ue, env, id, &report),
                504 => consumer::retransmit_report(ue, env, id, call, report),
                _ => {}
            }
        }
    }
    if let Some(presence) = presence {
        consumer::presence_reported(ue, env, id, &presence);
    }
}

/// The SMF does not have the session.
fn forget(ue: &mut UeContext, env: &mut Env<'_>, id: u8) {
    let session = ue.sessions.extract_if(.., |session| session.id == id).next();
    if let Some(session) = session
        && !n2_handover::session_ended(ue, env, &session)
    {
        delivery::on_ended_by_smf(ue, env, &session);
    }
}

/// Forwards the SMF's messages to UE and gNB.
fn pass_on(ue: &mut UeContext, env: &mut Env<'_>, id: u8, updated: SmContextUpdatedData) {
    if let (Some(UpCnxState::Deactivated), Some(session)) = (&updated.up_cnx_state, ue.session_mut(id))
        && session.user_plane == UserPlane::Activated
    {
        // Otherwise the gNB has not answered a request since.
        session.user_plane = UserPlane::Deactivated;
    }
    let n1 = updated.n1_sm_msg.map(|message| message.content);
    let n2 = updated.n2_sm_info.zip(updated.n2_sm_info_type).map(|(info, kind)| (kind.into(), info.content));
    if let Some(message) = SmfMessage::of_session(id, n1, n2) {
        delivery::send(ue, env, message);
    }
}

/// A reply to a step that is over. What it created is deleted, unless a later step has it.
fn late(ue: &UeContext, env: &mut Env<'_>, reply: Reply) {
    env.out.log(Level::Debug, || format!("{}: a reply was late", ue.name()));
    let is_in_use = match &reply {
        Ok(Response::UeContextCreated(created)) => departure::is_replaced(ue, &created.location),
        // The UE has registered again since, and takes the same association.
        Ok(Response::PolicyUpdate(update)) => has_policy(ue, &update.resource_uri),
        _ => false,
    };
    if !is_in_use {
        consumer::undo(env, reply);
    }
}

/// The SMF has switched the path to a gNB that the UE has left, or may have: it is to deactivate the user plane once more, unless that was activated
/// again since. If the UE may be at another AMF, the session is that one's.
fn left_gnb_switched(ue: &mut UeContext, env: &mut Env<'_>, id: u8, reply: Reply) {
    let may_be_switched = match reply {
        Ok(_) => true,
        Err(problem) if problem.status == 404 => return forget(ue, env, id),
        Err(problem) => problem.status == 504,
    };
    let is_elsewhere = ue.transferred_to.is_some() || departure::may_be_complete(ue);
    let is_left = ue.session(id).is_some_and(|it| it.user_plane == UserPlane::Deactivated);
    if may_be_switched && is_left && !is_elsewhere && !ue.procedure.activates(id) {
        consumer::repeat_deactivation(ue, env, id);
    }
}

/// Whether the UE's AM policy association has that URI, or the one that this AMF takes from another AMF.
fn has_policy(ue: &UeContext, association: &Uri) -> bool {
    let own = ue.policy.as_ref().map(|policy| &policy.uri);
    let transferred = ue.transferred_policy.as_ref().map(|policy| &policy.uri);
    [own, transferred].contains(&Some(association))
}
