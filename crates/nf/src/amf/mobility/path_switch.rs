//! Xn handover: the gNBs have moved the UE, and the target gNB requests the path switch (TS 23.502 4.9.1.2; TS 38.413 8.4.4).
//!
//! | step | state | from | TS 23.502 4.9.1.2.2 |
//! |---|---|---|---|
//! | PATH SWITCH REQUEST | | target gNB | 1 |
//! | UpdateSMContext (PATH_SWITCH_REQ), a session each | [`AwaitingPathSwitch`] | SMFs | 2 to 6 |
//! | PATH SWITCH REQUEST ACKNOWLEDGE with NH and NCC | | | 7 |
//!
//! The NG connection belongs to the target gNB from the request on: it keeps its AMF-UE-NGAP-ID. Downlink messages are queued until
//! the acknowledgement. The source gNB releases its side without the AMF (TS 38.423 8.2.7). If no session is switched, or the UE's mobility
//! restrictions do not allow the target, the target gets PATH SWITCH REQUEST FAILURE and releases the UE, and the source gNB gets UE CONTEXT
//! RELEASE COMMAND.

use super::{Mobility, n2_handover};
use crate::amf::access_keys::{self, NextHop};
use crate::amf::connection::{RanContext, RanSide};
use crate::amf::context::{CallId, Env, UeContext};
use crate::amf::error::unknown_connection;
use crate::amf::procedure::{configuration_update, nas_non_delivery, ue_context_release};
use crate::amf::session::UserPlane;
use crate::amf::{consumer, delivery, ladn, n2, security, trace};
use crate::kit::document::pack_struct;
use crate::kit::{Key, Level, N2Effect, Outbox};
use pith_ngap::transfer::PathSwitchRequestUnsuccessfulTransfer;
use pith_ngap::{
    Cause, CauseProtocol, CauseRadioNetwork, DownlinkNasTransport, Message, NgapError, PathSwitchRequest,
    PathSwitchRequestAcknowledge, PathSwitchRequestFailure, SessionTransfer,
};
use pith_sbi::nsmf_pdusession::N2SmInfoType;
use pith_sbi::{Problem, ProblemMore, Reply, Response};
use pith_types::AmfUeNgapId;
use std::collections::BTreeSet;

/// UpdateSMContext requests to switch the paths of sessions are pending.
#[derive(Debug)]
pub(crate) struct AwaitingPathSwitch {
    calls: Vec<(CallId, u8)>,
    /// The connection at the source gNB.
    source: RanSide,
    /// For the target gNB.
    next_hop: NextHop,
    /// The target gNB has other UE security capabilities than the AMF (TS 33.501 6.7.3.1).
    has_wrong_capabilities: bool,
    switched: Vec<SessionTransfer>,
    released: Vec<SessionTransfer>,
}

pack_struct!(AwaitingPathSwitch { calls, source, next_hop, has_wrong_capabilities, switched, released });

/// PATH SWITCH REQUEST for the UE of a connection. A request that repeats the one in progress is ignored; one of another gNB
/// supersedes it, because the UE has moved on.
pub(crate) fn request(
    ue: &mut UeContext,
    env: &mut Env<'_>,
    (key, target): (Key, RanSide),
    message: PathSwitchRequest,
) {
    let Some(context) = env.connections.get(key).map(|connection| connection.context) else { return };
    let is_switching = matches!(ue.mobility, Mobility::AwaitingPathSwitch(_));
    if is_switching && env.connections.side(key) == Some(target) {
        return env.out.log(Level::Debug, || format!("{}: PathSwitchRequest is repeated", ue.name()));
    }
    if let Err(why) = check(ue, env, (target, context), &message) {
        return refuse(ue, env, (key, target), message, why);
    }
    let Some(next_hop) = access_keys::next_hop(ue) else { return };
    let former = std::mem::take(&mut ue.mobility);
    super::announce_again(&mut ue.sessions, &former);
    let (first, queued) = match former {
        Mobility::AwaitingPathSwitch(state) => state.supersede(ue, env, key, target),
        // The gNBs move the UE over Xn instead.
        state => {
            n2_handover::withdraw(ue, env, &state);
            (None, Vec::new())
        }
    };
    let Some(former) = env.connections.relocate(key, target, RanContext::Switching) else { return };
    configuration_update::on_moved(ue);
    if let Some(connection) = env.connections.get_mut(key) {
        connection.queued = queued;
        trace::forget_failure(ue, connection.id);
    }
    let capability = ue.security.as_ref().map(|security| security::ngap_capabilities(&security.capability));
    let has_wrong_capabilities = message.security_capabilities != capability;
    if has_wrong_capabilities {
        env.out.log(Level::Warn, || {
            format!(
                "{}: the gNB has other UE security capabilities than the AMF (TS 33.501 6.7.3.1)",
                ue.name()
            )
        });
    }
    let moved = ladn::note_location(ue, env.config, message.location);
    let mut state = Box::new(AwaitingPathSwitch {
        calls: Vec::new(),
        source: first.unwrap_or(former),
        next_hop,
        has_wrong_capabilities,
        switched: Vec::new(),
        released: Vec::new(),
    });
    end_missing_sessions(ue, env, &message);
    let is_listed = |id: u8| message.sessions.iter().any(|item| item.pdu_session_id == id);
    delivery::release_held_setups(ue, env, Some(key), is_listed);
    for item in message.sessions {
        let id = item.pdu_session_id;
        if !ue.has_service_for(id) {
            consumer::deactivate(ue, env, id);
            state.released.push(unsuccessful(id, NOT_ALLOWED));
            continue;
        }
        match consumer::switch_path(ue, env, id, item.transfer) {
            Some(call) => state.calls.push((call, id)),
            None => state.released.push(unsuccessful(id, UNKNOWN_SESSION)),
        }
        if let Some(session) = ue.session_mut(id) {
            // The target gNB has its resources, until an SMF commands their release: that command waits for the answer.
            session.user_plane = UserPlane::Activated;
        }
    }
    moved.report(ue, env);
    ue.mobility = state.go_on(ue, env);
}

/// Why a path is not switched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum RefusedPath {
    /// TS 38.413 8.4.4.1: the UE has a context at its gNB.
    #[error("the UE's gNB has no UE context to hand over")]
    NoContext,
    /// The UE is not registered, or has no security context.
    #[error("the UE is not registered")]
    NotRegistered,
    /// A session is in the request twice (TS 38.413 8.4.4.4).
    #[error("the request names a PDU session twice")]
    Twice,
    /// The location in the request is not at the gNB that sent it.
    #[error("the gNB does not serve the tracking area in its request")]
    OtherArea,
}

impl RefusedPath {
    const fn cause(self) -> Cause {
        match self {
            Self::NoContext | Self::NotRegistered => {
                Cause::Protocol(CauseProtocol::message_not_compatible_with_receiver_state)
            }
            Self::Twice => Cause::RadioNetwork(CauseRadioNetwork::multiple_PDU_session_ID_instances),
            Self::OtherArea => Cause::Protocol(CauseProtocol::semantic_error),
        }
    }
}

/// Whether the path can be switched to that gNB: nothing has changed yet.
fn check(
    ue: &UeContext,
    env: &Env<'_>,
    (target, context): (RanSide, RanContext),
    message: &PathSwitchRequest,
) -> Result<(), RefusedPath> {
    if !matches!(context, RanContext::Established | RanContext::Switching) {
        return Err(RefusedPath::NoContext);
    }
    if !ue.is_registered() || ue.security.is_none() {
        return Err(RefusedPath::NotRegistered);
    }
    let mut ids = BTreeSet::new();
    if message.sessions.iter().chain(message.failed.iter().flatten()).any(|it| !ids.insert(it.pdu_session_id))
    {
        return Err(RefusedPath::Twice);
    }
    match &message.location {
        Some(location) if !env.gnbs.serves(target.gnb, &location.tai) => Err(RefusedPath::OtherArea),
        _ => Ok(()),
    }
}

/// The session was released while the UE moved.
const UNKNOWN_SESSION: Cause = Cause::RadioNetwork(CauseRadioNetwork::unknown_PDU_session_ID);

/// The UE's mobility restrictions do not allow service at the target (TS 23.501 5.3.4.1.1).
const NOT_ALLOWED: Cause = Cause::RadioNetwork(CauseRadioNetwork::ho_target_not_allowed);

/// The SMF or its UPF did not switch the session.
const NOT_SWITCHED: Cause =
    Cause::RadioNetwork(CauseRadioNetwork::ho_failure_in_target_5GC_ngran_node_or_target_system);

fn unsuccessful(pdu_session_id: u8, cause: Cause) -> SessionTransfer {
    SessionTransfer { pdu_session_id, transfer: PathSwitchRequestUnsuccessfulTransfer { cause }.encode() }
}

/// Sessions that the target gNB could not set up, and those that it does not list: they count as released by the gNBs (TS 38.413
/// 8.4.4.2). The setup of a session at the source gNB has failed if the target gNB does not have it.
fn end_missing_sessions(ue: &mut UeContext, env: &mut Env<'_>, message: &PathSwitchRequest) {
    for item in message.failed.iter().flatten() {
        consumer::path_switch_setup_failed(ue, env, item.pdu_session_id, item.transfer.clone());
    }
    let is_listed = |id: u8| message.sessions.iter().any(|item| item.pdu_session_id == id);
    let missing = ue.sessions.iter().filter(|session| !is_listed(session.id));
    let missing: Vec<_> = missing.map(|session| (session.id, session.user_plane)).collect();
    for (id, user_plane) in missing {
        if user_plane != UserPlane::Activating {
            consumer::deactivate(ue, env, id);
            continue;
        }
        delivery::fail_setup(ue, env, id, CauseRadioNetwork::xn_handover_triggered);
    }
}

/// PATH SWITCH REQUEST FAILURE with all sessions (TS 38.413 8.4.4.3). The UE's connection stays as it is.
fn refuse(
    ue: &UeContext,
    env: &mut Env<'_>,
    (key, target): (Key, RanSide),
    message: PathSwitchRequest,
    why: RefusedPath,
) {
    env.out.log(Level::Warn, || format!("{}: the path is not switched: {why}", ue.name()));
    env.gnbs.count_refusal(env.now, target.gnb);
    if env.connections.side(key) != Some(target) {
        leave(env.out, target, message.source_amf_ue_ngap_id);
    }
    let cause = why.cause();
    let ids: BTreeSet<u8> = message.sessions.iter().map(|item| item.pdu_session_id).collect();
    let released = ids.into_iter().map(|id| unsuccessful(id, cause)).collect();
    let failure = PathSwitchRequestFailure {
        amf_ue_ngap_id: message.source_amf_ue_ngap_id,
        ran_ue_ngap_id: message.ran_ue_ngap_id,
        released: Some(released),
        diagnostics: None,
    };
    n2::send_to(env.out, target, failure.encode());
}

/// PATH SWITCH REQUEST FAILURE with all sessions: the request has an error that does not permit to process it (TS 38.413 10.3.4.2, 10.3.5). Whether
/// a UE has the AMF-UE-NGAP-ID makes no difference. `is_connected`: the gNB has a connection with the id that it gives.
pub(crate) fn refuse_faulty(
    target: RanSide,
    is_connected: bool,
    request: &PathSwitchRequest,
    error: &NgapError,
    out: &mut Outbox,
) {
    let released = request.sessions.iter().map(|item| unsuccessful(item.pdu_session_id, error.cause()));
    let failure = PathSwitchRequestFailure {
        amf_ue_ngap_id: request.source_amf_ue_ngap_id,
        ran_ue_ngap_id: request.ran_ue_ngap_id,
        released: Some(released.collect()),
        diagnostics: error.response_diagnostics(),
    };
    if !is_connected {
        leave(out, target, request.source_amf_ue_ngap_id);
    }
    n2::send_to(out, target, failure.encode());
}

/// ERROR INDICATION (TS 38.413 10.6): no UE has the AMF-UE-NGAP-ID, or too many requests of the gNB were refused. Both
/// get the same answer.
pub(crate) fn refuse_unknown(env: &mut Env<'_>, target: RanSide, message: &PathSwitchRequest) {
    let amf_id = message.source_amf_ue_ngap_id;
    let cause = unknown_connection(false);
    env.out.log(Level::Warn, || format!("PathSwitchRequest for {amf_id:?}, {:?}: {cause}", target.ran_id));
    env.gnbs.count_refusal(env.now, target.gnb);
    leave(env.out, target, amf_id);
    let from = n2::N2Origin { gnb: target.gnb, binding: target.binding };
    n2::error_indication(from, Some(amf_id), Some(target.ran_id), cause, None, env.out);
}

impl AwaitingPathSwitch {
    /// The requests that SMFs have not answered, with their sessions.
    pub fn calls(&self) -> &[(CallId, u8)] {
        &self.calls
    }

    /// The sessions whose SMFs have not answered.
    pub fn sessions(&self) -> impl Iterator<Item = u8> {
        self.calls.iter().map(|(_, id)| *id)
    }

    /// Whether the state waits for a call that meets the condition.
    pub fn awaits_any(&self, meets: impl Fn(CallId) -> bool) -> bool {
        self.calls.iter().any(|(id, _)| meets(*id))
    }

    /// The reply of one SMF.
    pub fn on_reply(
        mut self: Box<Self>,
        ue: &mut UeContext,
        env: &mut Env<'_>,
        call: CallId,
        reply: Reply,
    ) -> Mobility {
        let at = self.calls.iter().position(|(id, _)| *id == call);
        if let Some((_, id)) = at.map(|at| self.calls.swap_remove(at)) {
            self.take(ue, env, id, reply);
        }
        self.go_on(ue, env)
    }

    fn take(&mut self, ue: &mut UeContext, env: &mut Env<'_>, id: u8, reply: Reply) {
        let transfer = match &reply {
            Ok(Response::SmContextUpdated(updated)) => {
                let is_acknowledged = updated.n2_sm_info_type == Some(N2SmInfoType::PathSwitchReqAck);
                updated.n2_sm_info.as_ref().filter(|_| is_acknowledged)
            }
            _ => None,
        };
        if let (Some(_), Some(transfer)) = (ue.session(id), transfer) {
            let transfer = transfer.content.to_vec();
            return self.switched.push(SessionTransfer { pdu_session_id: id, transfer });
        }
        let problem = reply.err();
        env.out.log(Level::Warn, || {
            let why = problem.as_ref().map_or_else(|| "unexpected reply".into(), ToString::to_string);
            format!("{}: session {id} is not switched: {why}", ue.name())
        });
        let transfer = problem.as_ref().and_then(|problem| transfer_of(problem));
        self.released.push(transfer.map_or_else(
            || unsuccessful(id, NOT_SWITCHED),
            |transfer| SessionTransfer { pdu_session_id: id, transfer },
        ));
        match problem {
            Some(problem) if problem.status == 404 => ue.sessions.retain(|session| session.id != id),
            // An SMF that knows another AMF as the UE's refuses, too.
            _ => consumer::announce_deactivated(ue, env, id),
        }
    }

    /// Answers the target gNB once all SMFs have replied.
    fn go_on(self: Box<Self>, ue: &mut UeContext, env: &mut Env<'_>) -> Mobility {
        if !self.calls.is_empty() {
            return Mobility::AwaitingPathSwitch(self);
        }
        let Some(key) = ue.connection else { return Mobility::Idle };
        let is_switching = env.connections.get(key).is_some_and(|it| it.context == RanContext::Switching);
        if is_switching {
            if self.switched.is_empty() { self.fail(ue, env, key) } else { self.complete(ue, env, key) }
        }
        Mobility::Idle
    }

    /// PATH SWITCH REQUEST ACKNOWLEDGE (TS 38.413 8.4.4.2; TS 33.501 6.9.2.3.2).
    fn complete(self, ue: &mut UeContext, env: &mut Env<'_>, key: Key) {
        let Self { source, next_hop, has_wrong_capabilities, switched, released, .. } = self;
        let Some(connection) = env.connections.get(key) else { return };
        let capability =
            ue.security.as_ref().map(|security| security::ngap_capabilities(&security.capability));
        let ids: Vec<u8> = released.iter().map(|item| item.pdu_session_id).collect();
        let acknowledge = PathSwitchRequestAcknowledge {
            amf_ue_ngap_id: connection.id,
            ran_ue_ngap_id: connection.ran_id,
            security_capabilities: capability.filter(|_| has_wrong_capabilities),
            security_context: (&next_hop).into(),
            new_security_context: None,
            switched: Some(switched),
            released: (!released.is_empty()).then_some(released),
            allowed_nssai: ue.slices.allowed.clone(),
            diagnostics: None,
        };
        let id = connection.id;
        n2::respond(env, key, acknowledge.encode());
        leave(env.out, source, id);
        drop_requests(env, key, &ids);
        n2::open_context(ue, env);
        delivery::guard_requests(ue, env);
        nas_non_delivery::send_again(ue, env);
        if ue.access_keys.is_outdated() {
            // The source gNB did not take the new K_gNB into use before the handover (TS 33.501 6.9.5.1).
            n2::rekey(ue, env);
        }
        ue.log_outcome(env, Level::Info, "Xn handover", "ok");
    }

    /// PATH SWITCH REQUEST FAILURE (TS 38.413 8.4.4.3): no session was switched.
    fn fail(self, ue: &mut UeContext, env: &mut Env<'_>, key: Key) {
        self.send_failure(ue, env, key);
        ue.log_outcome(env, Level::Warn, "Xn handover", "failed: no session was switched");
        restore(ue, env, key, self.source);
        // The UE has left the source gNB, and the target gNB releases it: it is to be in CM-IDLE, where it can be paged.
        n2::release(ue, env, NOT_SWITCHED);
    }

    fn send_failure(&self, ue: &UeContext, env: &mut Env<'_>, key: Key) {
        let Some(connection) = env.connections.get(key) else { return };
        let pending = self.calls.iter().map(|(_, id)| unsuccessful(*id, NOT_SWITCHED));
        let switched = self.switched.iter().map(|item| unsuccessful(item.pdu_session_id, NOT_SWITCHED));
        let released: Vec<_> = self.released.iter().cloned().chain(switched).chain(pending).collect();
        let failure = PathSwitchRequestFailure {
            amf_ue_ngap_id: connection.id,
            ran_ue_ngap_id: connection.ran_id,
            released: Some(released),
            diagnostics: None,
        };
        env.out.log(Level::Warn, || format!("{}: the path is not switched", ue.name()));
        let (side, id) = (connection.side(), connection.id);
        n2::respond(env, key, failure.encode());
        leave(env.out, side, id);
    }

    /// Another gNB requests the path switch: the UE is no longer at this target. Returns the source of the first handover, and the
    /// queued NAS messages with the ids of the later target. SMFs serve the later request after this one.
    fn supersede(
        self,
        ue: &UeContext,
        env: &mut Env<'_>,
        key: Key,
        target: RanSide,
    ) -> (Option<RanSide>, Vec<Vec<u8>>) {
        self.send_failure(ue, env, key);
        let queued = env.connections.get_mut(key).map(|connection| std::mem::take(&mut connection.queued));
        let queued = queued.into_iter().flatten().filter_map(|pdu| readdressed(&pdu, target)).collect();
        (Some(self.source), queued)
    }
}

/// A gNB has no connection of the UE: the gateway forgets its RAN-UE-NGAP-ID.
fn leave(out: &mut Outbox, side: RanSide, amf_id: AmfUeNgapId) {
    out.n2(N2Effect::Left { gnb: side.gnb, ran_id: side.ran_id, amf_id });
}

/// A queued NAS message for another gNB. Resources of sessions are not requested again: the target gNB says which ones it has.
fn readdressed(pdu: &[u8], target: RanSide) -> Option<Vec<u8>> {
    let Ok(Message::DownlinkNasTransport(message)) = Message::decode(pdu) else { return None };
    DownlinkNasTransport { ran_ue_ngap_id: target.ran_id, ..message }.encode().ok()
}

/// The target gNB releases these sessions (TS 38.413 8.4.4.2): what an SMF requested meanwhile for their resources is not sent. NAS messages
/// in these requests are.
fn drop_requests(env: &mut Env<'_>, key: Key, released: &[u8]) {
    let Some(connection) = env.connections.get_mut(key).filter(|_| !released.is_empty()) else { return };
    let queued = std::mem::take(&mut connection.queued);
    connection.queued = queued.into_iter().filter_map(|pdu| without_request(pdu, released)).collect();
}

/// A queued message, or the NAS message in it if it modifies or releases one of these sessions. The AMF names one session in each.
fn without_request(pdu: Vec<u8>, released: &[u8]) -> Option<Vec<u8>> {
    let (amf_ue_ngap_id, ran_ue_ngap_id, nas_pdu) = match Message::decode(&pdu) {
        Ok(Message::PduSessionResourceModifyRequest(message)) => {
            let mut sessions = message.sessions.into_iter();
            let Some(item) = sessions.find(|item| released.contains(&item.pdu_session_id)) else {
                return Some(pdu);
            };
            (message.amf_ue_ngap_id, message.ran_ue_ngap_id, item.nas_pdu)
        }
        Ok(Message::PduSessionResourceReleaseCommand(message)) => {
            if !message.sessions.iter().any(|item| released.contains(&item.pdu_session_id)) {
                return Some(pdu);
            }
            (message.amf_ue_ngap_id, message.ran_ue_ngap_id, message.nas_pdu)
        }
        _ => return Some(pdu),
    };
    let message = DownlinkNasTransport {
        amf_ue_ngap_id,
        ran_ue_ngap_id,
        old_amf: None,
        nas_pdu: nas_pdu?,
        mobility_restrictions: None,
        ue_ambr: None,
        allowed_nssai: None,
    };
    message.encode().ok()
}

/// The connection belongs to the source gNB again. If that is gone, the UE is in CM-IDLE.
fn restore(ue: &mut UeContext, env: &mut Env<'_>, key: Key, source: RanSide) {
    if env.gnbs.contains_key(&source.gnb) {
        env.connections.relocate(key, source, RanContext::Established);
        return;
    }
    n2::close(env, key);
    ue.connection = None;
    ue_context_release::on_connection_lost(ue, env);
    ue_context_release::on_idle(ue, env);
}

/// Path Switch Request Unsuccessful Transfer of an SMF's refusal.
fn transfer_of(problem: &Problem) -> Option<Vec<u8>> {
    let Some(ProblemMore::SmContextUpdateError(error)) = &problem.more else { return None };
    let is_failure = error.n2_sm_info_type == Some(N2SmInfoType::PathSwitchReqFail);
    error.n2_sm_info.as_ref().filter(|_| is_failure).map(|info| info.content.to_vec())
}
